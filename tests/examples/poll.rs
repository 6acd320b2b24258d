//! The engine on one thread with `poll(2)`, without an executor: the loop is
//! `mcp_tests::poll_loop`, and this program shows it.
//!
//! ```text
//! poll npx -y @modelcontextprotocol/server-everything   a client of a command,
//! poll http://127.0.0.1:8000/mcp                        or of a URL
//! poll --serve                    a server on standard input and output,
//! poll --serve 127.0.0.1:8000     or over HTTP
//! ```
//!
//! `cargo run --example poll -- ARGUMENTS` starts it.
//!
//! The client lists the tools, and calls those that only read and need no argument.
#![forbid(unsafe_code)]

use mcp_proto::{ClientConfig, Program, Router, tool, tools};
use mcp_tests::poll_loop::{Hooks, PollLoop, serve_http, serve_stdio};
use std::error::Error;
use std::net::TcpListener;
use std::time::Duration;

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.split_first() {
        Some((flag, place)) if flag == "--serve" => serve(place.first().map(String::as_str)),
        Some((url, _)) if url.contains("://") => run(ClientConfig::url(url)?),
        Some((command, args)) => run(ClientConfig::program(Program::new(command).args(args))),
        None => Err("usage: poll COMMAND... | URL | --serve [ADDRESS]".into()),
    }
}

fn run(config: ClientConfig) -> Result<(), Box<dyn Error>> {
    let mut client = PollLoop::new(config)?;
    let page = client.call(tools::list())?;
    for tool in page.elements {
        println!("{}: {}", tool.name, tool.description.as_deref().unwrap_or_default());
        if tool.annotations.read_only == Some(true) && tool.required_arguments().is_empty() {
            let result = client.call(tools::call(&tool.name).timeout(Duration::from_secs(10)));
            println!("    {}", result.map_or_else(|e| e.to_string(), |result| format!("{:?}", result.first_text())));
        }
        // An application would handle its events here.
        while client.next_event().is_some() {}
    }
    Ok(client.close()?)
}

fn serve(address: Option<&str>) -> Result<(), Box<dyn Error>> {
    let clock = tool("tick").describe("says tock").read_only();
    let router = Router::new("clock", "1.0").tool_async(clock, |_cx, ()| async { Ok("tock") });
    let Some(address) = address else { return Ok(serve_stdio(&router, Hooks::default())?) };
    let listener = TcpListener::bind(address)?;
    println!("http://{}/mcp", listener.local_addr()?);
    Ok(serve_http(&router, listener, usize::MAX, Hooks::default())?)
}
