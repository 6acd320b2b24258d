#![forbid(unsafe_code)]
//! The tests of the crates from outside that take no more than seconds each.

mod api;
mod around;
mod both;
mod cached;
#[cfg(unix)]
mod canaries;
mod checked_sources;
#[cfg(unix)]
mod command;
mod conventions;
mod corpus;
mod cost;
mod diagnostics;
mod everything;
mod extensions;
mod fleet;
mod harness;
mod http_pool;
mod layering;
mod logins;
mod nodes;
#[cfg(target_os = "linux")]
mod on_smol;
#[cfg(target_os = "linux")]
mod on_threads;
mod peers;
mod planted;
mod poll_loop;
mod prose;
mod purity;
#[cfg(unix)]
mod raw_loop;
mod raw_server;
mod readme;
mod record;
mod recorded;
mod schemas;
mod seam_b;
mod sim;
mod stdio;
mod tasks;
mod telemetry;
mod web;

/// Returns a fifth of the size of a simulation. The full stage, which compiles feature `full`, has
/// the whole size, and the step `sim` many times as much.
const fn sized(whole: u64) -> u64 {
    if cfg!(feature = "full") { whole } else { whole / 5 }
}
