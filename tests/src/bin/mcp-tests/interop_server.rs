//! Our server for the clients of other SDKs: `interop-server [--smol] [--legacy | --only REVISION]
//! [--report FILE]` on standard input and output, or `interop-server [--smol] [--legacy | --only
//! REVISION] [--stateless] [--sse] [--web-socket] --http PORT` on a loopback port. `--legacy`
//! supports only the revisions with `initialize`. `--stateless` has no sessions. `--sse` also
//! serves HTTP+SSE, and `--web-socket` accepts WebSockets.

use std::path::PathBuf;
use std::process::ExitCode;

use mcp_proto::{ProtocolVersion, Versions};
use mcp_tests::adapters::Adapter;
use mcp_tests::exit_code;
use mcp_tests::interop::offer::Offer;

pub(crate) fn main(args: Vec<String>) -> ExitCode {
    let mut offer =
        Offer { adapter: Adapter::Blocking, versions: None, stateless: false, sse: false, web_socket: false };
    let (mut report, mut port) = (None, None);
    let mut words = args.into_iter();
    while let Some(word) = words.next() {
        let mut next = || words.next();
        let known = match word.as_str() {
            "--smol" => {
                offer.adapter = Adapter::Smol;
                true
            }
            "--legacy" => {
                offer.versions = Some(Offer::older());
                true
            }
            "--only" => {
                let version = next().and_then(|word| ProtocolVersion::parse(&word));
                offer.versions = version.map(|version| Versions::new([version]));
                offer.versions.is_some()
            }
            "--stateless" => {
                offer.stateless = true;
                true
            }
            "--web-socket" => {
                offer.web_socket = true;
                true
            }
            "--sse" => {
                offer.sse = true;
                true
            }
            "--report" => {
                report = next().map(PathBuf::from);
                report.is_some()
            }
            "--http" => {
                port = next().and_then(|word| word.parse().ok());
                port.is_some()
            }
            _ => false,
        };
        if !known {
            eprintln!("interop-server: {} is unknown, or what follows it", word);
            return ExitCode::from(2);
        }
    }
    let served = match port {
        Some(port) => offer.serve_http(port),
        None => offer.serve(report.as_deref()),
    };
    exit_code("interop-server", served.map(|()| true))
}
