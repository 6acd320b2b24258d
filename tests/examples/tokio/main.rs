//! The engine on tokio: the port is `driver` and `streams`, and this program shows it.
//!
//! ```text
//! tokio npx -y @modelcontextprotocol/server-everything   a client of a command,
//! tokio http://127.0.0.1:8000/mcp                        of a URL,
//! tokio ./mcp.sock                                       or of a Unix socket
//! tokio --serve                     a server on standard input and output,
//! tokio --serve 127.0.0.1:8000      over HTTP,
//! tokio --serve ./mcp.sock          or on a Unix socket
//! tokio --shim                      for `hostile --driver`
//! ```
//!
//! `cargo run --example tokio -- ARGUMENTS` starts it.
//!
//! The client lists the tools, and calls those that only read and need no argument.
#![forbid(unsafe_code)]

mod driver;
mod shim;
mod streams;

use mcp_driver::{ClientOptions, ConnectError, IntoTarget, TakenStdio, Target};
use mcp_proto::exchange::{Program, UnixSocket};
use mcp_proto::{Router, tool, tools};
use std::error::Error;
use std::path::Path;
use std::time::Duration;

type Done = Result<(), Box<dyn Error>>;

fn main() -> Done {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let done = match words.split_first() {
        Some((flag, place)) if flag == "--serve" => runtime.block_on(serve(place.first().map(String::as_str))),
        Some((flag, _)) if flag == "--shim" => runtime.block_on(shim()),
        Some((command, args)) => runtime.block_on(run(command, args)),
        None => Err("usage: tokio COMMAND... | URL | SOCKET | --serve [ADDRESS | SOCKET]".into()),
    };
    // A callback that ignores its cancellation must not keep the process.
    runtime.shutdown_timeout(Duration::from_secs(1));
    done
}

fn target(command: &str, args: &[String]) -> Result<Target<driver::Io>, ConnectError> {
    if command.contains("://") {
        command.into_target()
    } else if command.ends_with(".sock") {
        UnixSocket(command.into()).into_target()
    } else {
        Program::new(command).args(args).into_target()
    }
}

async fn run(command: &str, args: &[String]) -> Done {
    let (client, driver) = driver::connect(target(command, args)?, ClientOptions::new())?;
    client.ready().await?;
    for tool in client.pages(tools::list()).all().await? {
        println!("{}: {}", tool.name, tool.description.as_deref().unwrap_or_default());
        if tool.annotations.read_only == Some(true) && tool.required_arguments().is_empty() {
            let result = client.call(tools::call(&tool.name).timeout(Duration::from_secs(10))).await;
            println!("    {}", result.map_or_else(|e| e.to_string(), |result| format!("{:?}", result.first_text())));
        }
    }
    client.close().await;
    Ok(driver.await?)
}

async fn serve(place: Option<&str>) -> Done {
    let clock =
        Router::new("clock", "1.0").tool_async(tool("tick").describe("waits a second").read_only(), |_cx, ()| async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            Ok("tock")
        });
    let Some(place) = place else {
        let taken = TakenStdio::take()?;
        let (input, output) = taken.streams()?;
        return Ok(streams::serve_blocking(clock, input, output).await?);
    };
    let server = driver::server(clock)?;
    if place.ends_with(".sock") {
        streams::listen_unix(&server, Path::new(place))?;
    } else {
        println!("http://{}/mcp", driver::listen_http(&server, place).await?);
    }
    server.wait().await;
    Ok(())
}

/// Reads the commands on a thread that may block.
async fn shim() -> Done {
    let port = shim::Tokio(tokio::runtime::Handle::current());
    Ok(tokio::task::spawn_blocking(|| mcp_tests::shim::run(mcp_tests::shim::Fronts(port))).await??)
}
