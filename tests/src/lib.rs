#![forbid(unsafe_code)]
//! Tests of the crates from outside: a driver on a bare loop, the simulator, checks of the
//! sources, the coverage of requirements, planted faults, peers of other SDKs, and a scripted web
//! server.

pub mod adapters;
pub mod api;
pub mod authorization;
pub mod autobahn;
pub mod base64url;
pub mod browser;
pub mod certificates;
pub mod conformance;
pub mod cost;
pub mod extension_peers;
pub mod fleet;
pub mod forward_proxy;
mod frames;
pub mod fuzz;
pub mod heap;
pub mod hostile;
pub mod interop;
pub mod items;
pub mod jose;
pub mod kitchen;
pub mod load;
pub mod modules;
pub mod network;
#[cfg(feature = "full")]
pub mod nodes;
pub mod orphans;
pub mod peer;
pub mod planted;
pub mod poll_loop;
pub mod prose;
pub mod rows;
pub mod shim;
pub mod sim;
pub mod soak;
pub mod sources;
pub mod stub;
pub mod survey;
pub mod task_peers;
pub mod tokens;
pub mod trace;
#[cfg(feature = "full")]
pub mod validate;

use std::fmt::Display;
use std::path::PathBuf;
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

/// A program of an executable with several: its name, and what it does with its arguments.
pub type Program = (&'static str, fn(Vec<String>) -> ExitCode);

/// Runs the program that the first argument of this process names, with the other arguments.
pub fn run_program(executable: &str, programs: &[Program]) -> ExitCode {
    let mut args = std::env::args().skip(1);
    let name = args.next().unwrap_or_default();
    match programs.iter().find(|(known, _)| *known == name) {
        Some((_, main)) => main(args.collect()),
        None => {
            let names: Vec<&str> = programs.iter().map(|(name, _)| *name).collect();
            eprintln!("usage: {executable} PROGRAM ARGUMENTS..., where PROGRAM is one of {}", names.join(", "));
            ExitCode::from(2)
        }
    }
}

/// Returns the path of an example, as a test or a program of this package finds it. A cargo that a
/// test starts would compile it with other features, and the next build everything again.
///
/// # Errors
/// The example is not built.
pub fn example(name: &str) -> Result<PathBuf, String> {
    let this = std::env::current_exe().map_err(|why| format!("our own path: {why}"))?;
    let folder =
        this.ancestors().skip(1).find(|folder| !folder.ends_with("deps")).ok_or("our own path has no folder")?;
    let path = folder.join("examples").join(name).with_extension(std::env::consts::EXE_EXTENSION);
    match path.is_file() {
        true => Ok(path),
        false => Err(format!("{name} is not built: run `cargo build -p mcp-tests --features full --examples`")),
    }
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

/// The examples of the README and of the guide, compiled as tests.
#[cfg(doctest)]
mod examples {
    #[doc = include_str!("../../README.md")]
    pub struct Readme;
    #[doc = include_str!("../../mcp-proto/driver/src/guide/clients.md")]
    pub struct Clients;
    #[doc = include_str!("../../mcp-proto/driver/src/guide/login.md")]
    pub struct Login;
    #[doc = include_str!("../../mcp-proto/driver/src/guide/servers.md")]
    pub struct Servers;
    #[doc = include_str!("../../mcp-proto/driver/src/guide/extensions.md")]
    pub struct Extensions;
    #[doc = include_str!("../../mcp-proto/driver/src/guide/hosts.md")]
    pub struct Hosts;
    #[doc = include_str!("../../mcp-proto/driver/src/guide/interrupts.md")]
    pub struct Interrupts;
    #[doc = include_str!("../../mcp-proto/driver/src/guide/tests.md")]
    pub struct Tests;
    #[doc = include_str!("../../mcp-proto/driver/src/guide/loops.md")]
    pub struct Loops;
    #[cfg(feature = "full")]
    #[doc = include_str!("../../mcp-proto/driver/src/guide/nodes.md")]
    pub struct Nodes;
}
