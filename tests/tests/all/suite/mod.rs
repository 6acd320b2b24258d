//! The suite of both adapters: real programs, pipes and sockets, and misbehaving peers. Two modules
//! have it, `on_smol` and `on_threads`. Each has a module `adapter` with the names of its adapter,
//! which are the same in both, so the suite also proves that they are. [`Wait`] is the difference:
//! the functions of `mcp-smol` return futures, those of `mcp-blocking` wait. No test sleeps to let
//! something happen: each waits for its condition, and fails at its time limit.

mod admissions;
mod client_http;
mod coding;
mod common;
mod deviating;
pub(crate) mod endings;
mod guarded;
mod hook;
mod observed;
mod own;
mod pages;
mod programs;
mod proxies;
pub(crate) mod raw;
mod redirects;
mod refusals;
mod replaced;
mod served;
mod server_http;
mod sessions;
mod shutdown;
mod stalls;
mod standard;
mod starts;
mod stderr;
mod stores;
pub(crate) mod supervised;
mod tls;
mod transports;
mod unix;

pub(crate) use super::adapter::*;
pub(crate) use common::*;
pub(crate) use mcp_proto::exchange::{Closed, ExitStatus, Sent};
pub(crate) use own::{Add, Count, Seen, Text, router, with_endless, yield_once};
pub(crate) use std::sync::{Arc, Mutex, OnceLock, mpsc};
pub(crate) use std::time::{Duration, Instant};

/// What a function of the adapter returns: a future, or the result itself.
pub(crate) trait Wait {
    type Output;

    /// Waits for the result, at most for twice the time limit of these tests.
    fn wait(self) -> Self::Output;
}
