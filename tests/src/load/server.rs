//! The server of the scenes, on either adapter. It serves over HTTP, and prints its state on
//! standard output for each line on standard input: bytes of heap in use, connections, requests,
//! calls of `echo`. At the end of its input it stops.

use super::Setup;
use crate::adapters::Adapter;
use mcp_driver::ServerOptions;
use mcp_proto::exchange::RequestHead;
use mcp_proto::input::{Admission, Change, Principal};
use mcp_proto::model::elicitation::Form;
use mcp_proto::route::Cx;
use mcp_proto::server::Sessions;
use mcp_proto::stats::ServerStats;
use mcp_proto::{Handler, Object, Outcome, Progress, Router, ToolError, tool};
use serde::Deserialize;
use std::future::{pending, ready};
use std::io::{self, BufRead, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

/// How many calls of `echo` ran.
static ECHOED: AtomicU64 = AtomicU64::new(0);

/// How long the server may take to stop.
const GRACE: Duration = Duration::from_secs(1);

/// Serves until the end of standard input. `heap`: how many bytes of the heap are in use.
///
/// # Errors
/// It cannot listen, or a standard stream fails.
pub fn serve(adapter: Adapter, patience: Duration, setup: Setup, heap: fn() -> usize) -> io::Result<()> {
    let router = match adapter {
        Adapter::Blocking => router(patience, setup, |tool| Handler::sync(move |cx| run(cx, tool))),
        Adapter::Smol => router(patience, setup, |tool| Handler::future(move |cx| ready(run(&cx, tool)))),
    };
    let admits = matches!(setup, Setup::Principals | Setup::Small);
    let (router, options) = match adapter {
        Adapter::Blocking => {
            let options = ServerOptions::new();
            let options = if admits { options.on_admit(|head, _| admission(head)) } else { options };
            (router.add(tool("wait"), Handler::sync(wait)), options)
        }
        Adapter::Smol => {
            let options = ServerOptions::new();
            let admit = |head: Option<Arc<RequestHead>>, _| ready(admission(head.as_deref()));
            let options = if admits { options.on_admit_async(admit) } else { options };
            (router.add(tool("wait"), Handler::future(|_| pending())), options)
        }
    };
    let server = adapter.serve_http((router, options), "127.0.0.1:0")?;
    println!("LISTENING {}", server.address());
    answer(heap, || server.stats())?;
    server.stop(GRACE);
    Ok(())
}

fn answer(heap: fn() -> usize, stats: impl Fn() -> ServerStats) -> io::Result<()> {
    let mut output = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        line?;
        let (stats, heap, echoed) = (stats(), heap(), ECHOED.load(Ordering::Relaxed));
        writeln!(output, "{heap} {} {} {echoed} {}", stats.channels, stats.requests, stats.running)?;
        output.flush()?;
    }
    Ok(())
}

type Tool = fn(&Cx) -> Result<String, ToolError>;

/// The tools, for whatever runs them.
fn router(patience: Duration, setup: Setup, handler: impl Fn(Tool) -> Handler) -> Router {
    let tools: [(&str, Tool); 6] =
        [("echo", echo), ("big", big), ("flood", flood), ("change", change), ("notes", notes), ("ask", ask)];
    let router = Router::new("load", env!("CARGO_PKG_VERSION")).tools_change().configure(|config| {
        config.sessions = Sessions::Optional;
        config.limits.frame.head_timeout = patience;
        config.limits.frame.body_timeout = patience;
        config.limits.frame.write_stall = patience;
        config.limits.server.write_stall = patience;
        if setup == Setup::Principals {
            // A thousand calls at once, beside the share of one client.
            config.limits.server.max_running_requests = 2048;
        }
        if setup == Setup::Many {
            let limits = &mut config.limits.server;
            (limits.max_exchanges, limits.max_streams) = (1 << 17, 1 << 17);
            limits.max_streams_per_client = 1 << 17;
        }
        if setup == Setup::Small {
            let limits = &mut config.limits.server;
            limits.max_running_requests = 64;
            limits.max_running_bytes = 64 << 20;
            limits.max_exchanges = 400;
            limits.max_streams = 40;
            limits.max_sessions = 80;
            limits.max_client_data_total = 1 << 20;
            limits.history_total = 16 << 20;
            limits.max_held = 16 << 20;
        }
    });
    tools.into_iter().fold(router, |router, (name, run)| router.add(tool(name), handler(run)))
}

fn run(cx: &Cx, tool: Tool) -> Outcome {
    cx.outcome(tool(cx))
}

/// The principal of a request is the one named by its token.
fn admission(head: Option<&RequestHead>) -> Admission {
    let token = head.and_then(|head| head.headers.get("Authorization")?.strip_prefix("Bearer "));
    Admission::Accept(token.map(|name| Principal(name.into())))
}

/// Never returns by itself.
fn wait(cx: &Cx) -> Outcome {
    while !cx.is_cancelled() {
        thread::park_timeout(Duration::from_millis(20));
    }
    cx.outcome("cancelled")
}

#[derive(Deserialize)]
struct Notes {
    count: u32,
    size: usize,
}

/// Sends this number of notifications of this size.
fn notes(cx: &Cx) -> Result<String, ToolError> {
    let Notes { count, size } = cx.arguments()?;
    let params = Object::new().with("text", "n".repeat(size).as_str());
    for _ in 0..count {
        // It is refused if its client reads too slowly, and kept if that has gone.
        let _ = cx.notify("acme/note", params.clone());
        thread::sleep(Duration::from_micros(50));
    }
    Ok("said".into())
}

/// Asks the user.
fn ask(cx: &Cx) -> Result<String, ToolError> {
    cx.elicit("name", Form::new("Who are you?").text("name"))?;
    Ok("asked".into())
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

/// Returns this number of characters.
fn big(cx: &Cx) -> Result<String, ToolError> {
    let Size { size } = cx.arguments()?;
    Ok("x".repeat(size))
}

/// Sends a thousand progress notifications of a kilobyte each, then returns this number of
/// characters.
fn flood(cx: &Cx) -> Result<String, ToolError> {
    for n in 0..1000 {
        // It is refused once too much is unsent, and the flood continues.
        let _ = cx.progress(Progress::new(f64::from(n)).message("y".repeat(1024)));
    }
    big(cx)
}

/// The tools have changed.
fn change(cx: &Cx) -> Result<String, ToolError> {
    cx.publish(Change::Tools);
    Ok("changed".into())
}
