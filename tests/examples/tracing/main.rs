#![forbid(unsafe_code)]
//! `cargo run --example tracing` calls a server in this process, and prints the spans of the call
//! and of its request.

mod observe;

use mcp_blocking::{ClientOptions, Router, ServerOptions, Service, connect_with, tool, tools};
use observe::Tracing;
use std::error::Error;
use std::io;
use tracing::info_span;
use tracing_subscriber::fmt::format::FmtSpan;

fn main() -> Result<(), Box<dyn Error>> {
    tracing_subscriber::fmt().with_writer(io::stderr).with_span_events(FmtSpan::CLOSE).init();
    let router = Router::new("clock", "1").tool(tool("tick"), |_, ()| Ok("tock"));
    let server = Service::from((router, ServerOptions::new().observe(Tracing::default())));
    let client = connect_with(server, ClientOptions::new().observe(Tracing::default()))?;
    let _of_main = info_span!("main").entered();
    println!("{}", client.call(tools::call("tick"))?.first_text().unwrap_or_default());
    client.close();
    Ok(())
}
