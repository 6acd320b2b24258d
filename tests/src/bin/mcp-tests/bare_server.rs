//! A server on a bare loop: `bare-server` serves its standard streams. `bare-server http N` serves
//! N connections over HTTP and prints its address.

use mcp_driver::check;
use mcp_proto::model::elicitation::{ElicitResult, Form};
use mcp_proto::route::Cx;
use mcp_proto::{Progress, Router, ToolError, tool};
use mcp_tests::exit_code;
use mcp_tests::poll_loop::{Hooks, serve_http, serve_stdio};
use serde::Deserialize;
use std::future::pending;
use std::io::{self, Write};
use std::net::TcpListener;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU32, Ordering};

/// Number of calls of `wait` that have stopped.
static STOPPED: AtomicU32 = AtomicU32::new(0);

pub(crate) fn main(args: Vec<String>) -> ExitCode {
    exit_code("bare-server", run(&args).map(|()| true))
}

fn run(args: &[String]) -> io::Result<()> {
    let router = Router::new("bare", "1.0")
        .tool(tool("add").describe("adds two integers"), |_cx, Add { a, b }| Ok(a.checked_add(b).ok_or("too large")?))
        .tool(tool("count").describe("counts, and tells how far it is"), count)
        .tool(tool("confirm").describe("asks the user"), |cx, ()| confirm(cx))
        .tool(tool("echo").describe("returns its text"), |_cx, Echo { text }| Ok(text))
        .tool_async(tool("wait").describe("waits until it is cancelled"), |cx, ()| wait(cx))
        .tool(tool("stopped").describe("how many calls of wait were cancelled"), |_cx, ()| {
            Ok(STOPPED.load(Ordering::Relaxed))
        })
        .tool(tool("pid").describe("the process that serves"), |_cx, ()| Ok(std::process::id()))
        .tool(tool("exit").describe("exits without an answer"), |_cx, ()| -> Result<(), ToolError> {
            std::process::exit(3)
        });
    let hooks = Hooks { begin: |server| drop(check(server)), ..Hooks::default() };
    let connections = match args {
        [http, n] if http == "http" => n.parse().map_err(io::Error::other)?,
        _ => return serve_stdio(&router, hooks),
    };
    let listener = TcpListener::bind("127.0.0.1:0")?;
    writeln!(io::stdout(), "http://{}/mcp", listener.local_addr()?)?;
    serve_http(&router, listener, connections, hooks)
}

#[derive(Deserialize)]
struct Add {
    a: i64,
    b: i64,
}

#[derive(Deserialize)]
struct Count {
    to: u32,
}

fn count(cx: &Cx, Count { to }: Count) -> Result<u32, ToolError> {
    for n in 1..=to {
        // Fails if the client did not request progress.
        let _ = cx.progress(Progress::new(f64::from(n)).total(f64::from(to)));
    }
    Ok(to)
}

fn confirm(cx: &Cx) -> Result<&'static str, ToolError> {
    Ok(match cx.elicit("sure", Form::new("Are you sure?").text("why"))? {
        ElicitResult::Accept(_) => "done",
        ElicitResult::Decline | ElicitResult::Cancel => "left alone",
    })
}

#[derive(Deserialize)]
struct Echo {
    text: String,
}

/// Counts the calls of `wait` that are dropped.
struct Stopped;

impl Drop for Stopped {
    fn drop(&mut self) {
        STOPPED.fetch_add(1, Ordering::Relaxed);
    }
}

async fn wait(cx: Cx) -> Result<(), ToolError> {
    let _stopped = Stopped;
    let _ = cx.progress(Progress::new(1.0));
    pending().await
}
