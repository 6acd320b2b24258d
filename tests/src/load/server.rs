//! The server that the scenes are played with, on either adapter: it serves over HTTP, and says on standard output how it is whenever it is
//! asked on standard input: bytes of heap in use, connections, requests, calls of `echo`. At the end of its input it stops.

use super::Adapter;
use mcp_blocking as blocking;
use mcp_proto::input::Change;
use mcp_proto::route::Cx;
use mcp_proto::server::Sessions;
use mcp_proto::stats::ServerStats;
use mcp_proto::{Outcome, Progress, Router, ToolError, tool};
use serde::Deserialize;
use std::future::ready;
use std::io::{self, BufRead, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// How many calls of `echo` ran.
static ECHOED: AtomicU64 = AtomicU64::new(0);

/// How long the server may take to stop.
const GRACE: Duration = Duration::from_secs(1);

/// Serves until the end of standard input. `heap`: how many bytes of the heap are in use.
///
/// # Errors
/// It cannot listen, or a standard stream fails.
pub fn serve(adapter: Adapter, patience: Duration, heap: fn() -> usize) -> io::Result<()> {
    match adapter {
        Adapter::Blocking => {
            let router = router(patience, |tool| blocking::Handler::new(move |cx| run(&cx, tool)));
            let server = blocking::serve_http(router, "127.0.0.1:0")?;
            println!("LISTENING {}", server.local_addr());
            answer(heap, || server.stats())?;
            server.stop(GRACE);
            Ok(())
        }
        Adapter::Smol => {
            let router = router(patience, |tool| mcp_smol::Handler::new(move |cx| ready(run(&cx, tool))));
            let server = smol::block_on(mcp_smol::serve_http(router, "127.0.0.1:0"))?;
            println!("LISTENING {}", server.local_addr());
            answer(heap, || server.stats())?;
            smol::block_on(server.stop(GRACE));
            Ok(())
        }
    }
}

fn answer(heap: fn() -> usize, stats: impl Fn() -> ServerStats) -> io::Result<()> {
    let mut output = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        line?;
        let (stats, heap, echoed) = (stats(), heap(), ECHOED.load(Ordering::Relaxed));
        writeln!(output, "{heap} {} {} {echoed}", stats.channels, stats.requests)?;
        output.flush()?;
    }
    Ok(())
}

type Tool = fn(&Cx) -> Result<String, ToolError>;

/// The tools, for whatever runs them.
fn router<H>(patience: Duration, handler: impl Fn(Tool) -> H) -> Router<H> {
    let tools: [(&str, Tool); 4] = [("echo", echo), ("big", big), ("flood", flood), ("change", change)];
    let router = Router::new("load", env!("CARGO_PKG_VERSION")).tools_change().configure(|config| {
        config.sessions = Sessions::Optional;
        config.limits.frame.head_timeout = patience;
        config.limits.frame.body_timeout = patience;
        config.limits.frame.write_stall = patience;
        config.limits.server.write_stall = patience;
    });
    tools.into_iter().fold(router, |router, (name, run)| router.add(tool(name), handler(run)))
}

fn run(cx: &Cx, tool: Tool) -> Outcome {
    cx.outcome(tool(cx))
}

#[derive(Deserialize)]
struct Echo {
    text: String,
}

/// Returns its text.
fn echo(cx: &Cx) -> Result<String, ToolError> {
    let Echo { text } = cx.arguments()?;
    ECHOED.fetch_add(1, Ordering::Relaxed);
    Ok(text)
}

#[derive(Deserialize)]
struct Size {
    size: usize,
}

/// Returns so many characters.
fn big(cx: &Cx) -> Result<String, ToolError> {
    let Size { size } = cx.arguments()?;
    Ok("x".repeat(size))
}

/// Tells progress a thousand times, a kilobyte each, then returns so many characters.
fn flood(cx: &Cx) -> Result<String, ToolError> {
    for n in 0..1000 {
        // It is refused once too much is unsent, and the flood goes on.
        let _ = cx.progress(Progress::new(f64::from(n)).message("y".repeat(1024)));
    }
    big(cx)
}

/// The tools have changed.
fn change(cx: &Cx) -> Result<String, ToolError> {
    cx.publish(Change::Tools);
    Ok("changed".into())
}
