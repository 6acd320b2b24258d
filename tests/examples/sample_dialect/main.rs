#![forbid(unsafe_code)]
//! A dialect in which nothing but the handshake is MCP, served and spoken: a POST only starts a
//! call, and the events `content`, `end` and `error` on the stream of its session have the result.
//!
//! `cargo run --example sample_dialect` starts a server and calls its tool.

mod client;
mod server;

use std::net::TcpListener;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let url = format!("http://{}/mcp", listener.local_addr()?);
    std::thread::spawn(move || server::serve(&listener));
    let mut client = client::SampleClient::connect(&url)?;
    println!("{}", client.call("count", &[("to", 3)])?.join(" "));
    println!("{}", client.call("nonsense", &[]).unwrap_err());
    Ok(())
}
