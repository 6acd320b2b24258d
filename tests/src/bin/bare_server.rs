//! A server on a bare loop: `bare_server` serves its standard streams. `bare_server http N` serves
//! N connections over HTTP and prints its address.
#![forbid(unsafe_code)]

use mcp_proto::model::elicitation::{ElicitRequest, ElicitResult};
use mcp_proto::route::Cx;
use mcp_proto::{IntoOutput, Outcome, Progress, Router, ToolError, tool};
use mcp_tests::poll_loop::{Handler, serve_http, serve_stdio};
use serde::Deserialize;
use std::io::{self, Write};
use std::net::TcpListener;
use std::sync::atomic::{AtomicU32, Ordering};

/// Number of calls of `wait` that have stopped.
static STOPPED: AtomicU32 = AtomicU32::new(0);

fn main() -> io::Result<()> {
    let router = Router::new("bare", "1.0")
        .add(tool("add").describe("adds two integers"), (|cx| done(cx, add(cx))) as Handler)
        .add(tool("count").describe("counts, and tells how far it is"), |cx| done(cx, count(cx)))
        .add(tool("confirm").describe("asks the user"), |cx| done(cx, confirm(cx)))
        .add(tool("echo").describe("returns its text"), |cx| done(cx, echo(cx)))
        .add(tool("wait").describe("waits until it is cancelled"), wait)
        .add(tool("stopped").describe("how many calls of wait were cancelled"), |cx| {
            done(cx, STOPPED.load(Ordering::Relaxed))
        })
        .add(tool("pid").describe("the process that serves"), |cx| done(cx, std::process::id()))
        .add(tool("exit").describe("exits without an answer"), |_| std::process::exit(3));
    let args: Vec<String> = std::env::args().skip(1).collect();
    let connections = match args.as_slice() {
        [http, n] if http == "http" => n.parse().map_err(io::Error::other)?,
        _ => return serve_stdio(&router),
    };
    let listener = TcpListener::bind("127.0.0.1:0")?;
    writeln!(io::stdout(), "http://{}/mcp", listener.local_addr()?)?;
    serve_http(&router, listener, connections)
}

fn done(cx: &Cx, output: impl IntoOutput) -> Option<Outcome> {
    Some(cx.outcome(output))
}

#[derive(Deserialize)]
struct Add {
    a: i64,
    b: i64,
}

fn add(cx: &Cx) -> Result<i64, ToolError> {
    let Add { a, b } = cx.arguments()?;
    a.checked_add(b).ok_or_else(|| "too large".into())
}

#[derive(Deserialize)]
struct Count {
    to: u32,
}

fn count(cx: &Cx) -> Result<u32, ToolError> {
    let Count { to } = cx.arguments()?;
    for n in 1..=to {
        // Fails if the client did not request progress.
        let _ = cx.progress(Progress::new(f64::from(n)).total(f64::from(to)));
    }
    Ok(to)
}

fn confirm(cx: &Cx) -> Result<&'static str, ToolError> {
    Ok(match cx.elicit("sure", ElicitRequest::form("Are you sure?").text("why"))? {
        ElicitResult::Accept(_) => "done",
        ElicitResult::Decline | ElicitResult::Cancel => "left alone",
    })
}

#[derive(Deserialize)]
struct Echo {
    text: String,
}

fn echo(cx: &Cx) -> Result<String, ToolError> {
    let Echo { text } = cx.arguments()?;
    Ok(text)
}

fn wait(cx: &Cx) -> Option<Outcome> {
    // Only once, since progress must increase.
    let _ = cx.progress(Progress::new(1.0));
    if cx.is_cancelled() {
        STOPPED.fetch_add(1, Ordering::Relaxed);
    }
    None
}
