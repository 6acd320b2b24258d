//! A web server that refuses everything with 404 and the JSON-RPC error -32601. If the suite
//! accepts it in a scenario, a pass of that scenario proves nothing.

use crate::stub::{Step, Stub, whole};
use std::io;

const ANSWER: &str = r#"{"jsonrpc":"2.0","id":{id},"error":{"code":-32601,"message":"Method not found"}}"#;

/// Serves until it is dropped. Each connection carries one request.
///
/// # Errors
/// The error of the operating system.
pub fn serve() -> io::Result<Stub> {
    Stub::start(|ask| match ask.what.as_str() {
        "open" => Vec::new(),
        _ => {
            let fields = "Content-Type: application/json\r\nConnection: close\r\n";
            vec![whole("404 Not Found", fields, ANSWER), Step::Close]
        }
    })
}
