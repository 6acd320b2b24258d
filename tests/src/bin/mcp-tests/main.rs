#![forbid(unsafe_code)]
//! The programs of this package in one executable: `mcp-tests PROGRAM ARGUMENTS...`. It is linked
//! once, and its programs start each other from it. Those whose heap is counted are in `mcp-heap`,
//! and those that must be small are executables of their own.

mod auth;
mod auth_client;
mod autobahn;
mod bare_server;
mod conformance;
mod conformance_client;
mod cost;
mod everything_server;
mod extension_peers;
mod fleet;
mod host;
mod hostile;
mod interop;
mod interop_server;
mod jose;
mod kitchen;
mod network;
#[cfg(feature = "full")]
mod nodes;
mod planted;
mod replay;
mod seeds;
mod shim;
mod survey;
mod task_peers;
mod trace;
mod transcript;
#[cfg(feature = "full")]
mod validate;

use mcp_tests::Program;
use std::process::ExitCode;

const PROGRAMS: &[Program] = &[
    ("auth", auth::main),
    ("auth-client", auth_client::main),
    ("autobahn", autobahn::main),
    ("bare-server", bare_server::main),
    ("conformance", conformance::main),
    ("conformance-client", conformance_client::main),
    ("cost", cost::main),
    ("everything-server", everything_server::main),
    ("fleet", fleet::main),
    ("host", host::main),
    ("hostile", hostile::main),
    ("interop", interop::main),
    ("interop-server", interop_server::main),
    ("jose", jose::main),
    ("kitchen", kitchen::main),
    ("network", network::main),
    #[cfg(feature = "full")]
    ("node-server", mcp_tests::nodes::server::main),
    #[cfg(feature = "full")]
    ("nodes", nodes::main),
    ("planted", planted::main),
    ("replay", replay::main),
    ("seeds", seeds::main),
    ("shim", shim::main),
    ("survey", survey::main),
    ("extension-server", extension_peers::server),
    ("extensions", extension_peers::main),
    ("task-client", task_peers::client),
    ("task-server", task_peers::server),
    ("tasks", task_peers::main),
    ("trace", trace::main),
    ("trace-relay", interop::relay),
    ("transcript", transcript::main),
    #[cfg(feature = "full")]
    ("validate", validate::main),
];

fn main() -> ExitCode {
    mcp_tests::run_program("mcp-tests", PROGRAMS)
}
