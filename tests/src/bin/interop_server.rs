#![forbid(unsafe_code)]
//! Our server for the clients of other SDKs: `interop_server [--smol] [--legacy | --only REVISION]
//! [--report FILE]` on standard input and output, or `interop_server [--smol] [--legacy | --only
//! REVISION] [--stateless] [--sse] [--web-socket] --http PORT` on a loopback port. `--legacy`
//! supports only the revisions with `initialize`. `--stateless` has no sessions. `--sse` also
//! serves HTTP+SSE, and `--web-socket` accepts WebSockets.

use std::env;
use std::path::PathBuf;
use std::process::ExitCode;

use mcp_proto::{ProtocolVersion, Versions};
use mcp_tests::adapters::Adapter;
use mcp_tests::exit_code;
use mcp_tests::interop::offer::Offer;

fn main() -> ExitCode {
    let mut offer =
        Offer { adapter: Adapter::Blocking, versions: None, stateless: false, sse: false, web_socket: false };
    let (mut report, mut port) = (None, None);
    let mut words = env::args_os().skip(1);
    while let Some(word) = words.next() {
        let mut next = || words.next().and_then(|word| word.into_string().ok());
        let known = match word.to_str() {
            Some("--smol") => {
                offer.adapter = Adapter::Smol;
                true
            }
            Some("--legacy") => {
                offer.versions = Some(Offer::older());
                true
            }
            Some("--only") => {
                let version = next().and_then(|word| ProtocolVersion::parse(&word));
                offer.versions = version.map(|version| Versions::new([version]));
                offer.versions.is_some()
            }
            Some("--stateless") => {
                offer.stateless = true;
                true
            }
            Some("--web-socket") => {
                offer.web_socket = true;
                true
            }
            Some("--sse") => {
                offer.sse = true;
                true
            }
            Some("--report") => {
                report = next().map(PathBuf::from);
                report.is_some()
            }
            Some("--http") => {
                port = next().and_then(|word| word.parse().ok());
                port.is_some()
            }
            _ => false,
        };
        if !known {
            eprintln!("interop_server: {} is unknown, or what follows it", word.display());
            return ExitCode::from(2);
        }
    }
    let served = match port {
        Some(port) => offer.serve_http(port),
        None => offer.serve(report.as_deref()),
    };
    exit_code("interop_server", served.map(|()| true))
}
