#![forbid(unsafe_code)]
//! Tests of the three crates from outside: a driver on a bare loop, the simulator, checks of the
//! sources, the coverage of requirements, planted faults, peers of other SDKs, and a scripted web
//! server.

pub mod adapters;
pub mod api;
pub mod autobahn;
pub mod certificates;
pub mod conformance;
pub mod cost;
pub mod fleet;
pub mod forward_proxy;
mod frames;
pub mod fuzz;
pub mod heap;
pub mod hostile;
pub mod interop;
pub mod items;
pub mod kitchen;
pub mod load;
pub mod modules;
pub mod network;
pub mod orphans;
pub mod peer;
pub mod planted;
pub mod poll_loop;
pub mod prose;
pub mod shim;
pub mod sim;
pub mod soak;
pub mod sources;
pub mod stub;
pub mod survey;
pub mod trace;
#[cfg(feature = "validate")]
pub mod validate;

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Returns the exit code of a program whose run has passed, has failed, or could not be made.
/// Prints why it could not.
pub fn exit_code(program: &str, run: Result<bool, impl Display>) -> ExitCode {
    match run {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(why) => {
            eprintln!("{program}: {why}");
            ExitCode::FAILURE
        }
    }
}

/// Returns the path of an example, as a test finds it. `cargo test` builds examples with the tests,
/// but not where `--test` names one of them. A cargo that a test starts would compile them with
/// other features and other variables, and the next build everything again.
///
/// # Panics
///
/// Panics if the example is not built.
#[must_use]
pub fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("a test knows its path");
    let profile = test.parent().and_then(Path::parent).expect("a test is in `deps` of its profile");
    let path = profile.join("examples").join(name).with_extension(std::env::consts::EXE_EXTENSION);
    assert!(path.is_file(), "{name} is not built: run `cargo build -p mcp-tests --examples`");
    path
}

/// Writes tests as a table: the name of each, and its check.
#[macro_export]
macro_rules! tests {
    ($(fn $name:ident => $check:expr;)*) => {
        $(
            #[test]
            fn $name() {
                $check;
            }
        )*
    };
}

/// The examples of the README, compiled as tests.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
pub struct Readme;
