//! The program of a server: `node-server ADAPTER PORT SHAPE URL...`. Its tools say whose call they
//! answer. A bearer token is the name of a principal.

use super::redis::Shape;
use crate::adapters::{Adapter, Server};
use mcp_driver::ServerOptions;
use mcp_proto::input::{Admission, Principal};
use mcp_proto::server::{Event, Hosts, SsePaths};
use mcp_proto::{Cx, ElicitResult, Form, Progress, Router, TaskOptions, TaskSupport, ToolError, tool};
use smol::Timer;
use std::process::ExitCode;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use std::{io, thread};

/// The word for the program.
pub const SERVER: &str = "node-server";

/// In the place of a shape: the server has no store.
pub(super) const NO_STORE: &str = "none";

/// The beginning of a line of the program, for each time that a task runs.
pub(super) const RUNS: &str = "runs ";

#[derive(serde::Deserialize)]
struct Asked {
    text: String,
    #[serde(default)]
    millis: u64,
    #[serde(default)]
    steps: u32,
}

/// Waits in steps, with progress.
fn wait(cx: &Cx, asked: &Asked) {
    let steps = if asked.steps == 0 { 10 } else { asked.steps };
    for step in 0..steps {
        if cx.is_cancelled() {
            return;
        }
        thread::sleep(Duration::from_millis(asked.millis) / steps);
        // The client may not want it.
        let _ = cx.progress(Progress::new(f64::from(step)));
    }
}

fn ask(cx: &Cx, asked: &Asked) -> Result<String, ToolError> {
    match cx.elicit("word", Form::new(asked.text.as_str()).text("word"))? {
        ElicitResult::Accept(content) => {
            let word: Option<String> = content.optional("word")?;
            Ok(format!("{} {}", asked.text, word.unwrap_or_default()))
        }
        ElicitResult::Decline | ElicitResult::Cancel => Ok("declined".into()),
    }
}

fn job(cx: &Cx, asked: Asked, runs: fn(&str)) -> Result<String, ToolError> {
    cx.into_task(TaskOptions::new().poll(Duration::from_millis(200)))?;
    runs(&asked.text);
    wait(cx, &asked);
    Ok(asked.text)
}

/// A task that does not run again, and takes no thread.
async fn once(cx: Cx, asked: Asked) -> Result<String, ToolError> {
    cx.into_task(TaskOptions::new())?;
    Timer::after(Duration::from_millis(asked.millis)).await;
    Ok(asked.text)
}

/// Ends the access of a principal.
type Revoke = Arc<OnceLock<Box<dyn Fn(&Principal) + Send + Sync>>>;

fn router(revoke: Revoke, runs: fn(&str)) -> Router {
    Router::new("nodes", "1")
        .tool(tool("echo"), |_cx, asked: Asked| Ok(asked.text))
        .tool(tool("slow"), |cx, asked: Asked| {
            wait(cx, &asked);
            Ok(asked.text)
        })
        .tool(tool("ask"), |cx, asked: Asked| ask(cx, &asked))
        .tool(tool("job").task(TaskSupport::Optional).rerun(true), move |cx, asked: Asked| job(cx, asked, runs))
        .tool_async(tool("once").task(TaskSupport::Optional), once)
        .tool(tool("revoke"), move |_cx, asked: Asked| {
            revoke.get().into_iter().for_each(|revoke| revoke(&Principal(asked.text.clone().into())));
            Ok("revoked")
        })
        .configure(|config| {
            config.state_keys = Some([7; 32].into());
            config.hosts = Hosts::Any;
            config.stream_after = Duration::from_millis(100);
            config.sse = Some(SsePaths::default());
            config.limits.server.max_streams = 20_000;
            config.limits.server.max_exchanges = 20_000;
            config.limits.server.max_sessions = 20_000;
            config.limits.server.max_running_requests = 20_000;
            // Sessions at rest are touched as often as they may be.
            config.limits.server.session_sweep = Duration::from_secs(60);
            config.limits.server.max_tasks = 40_000;
        })
}

/// Serves with these options. `runs` gets the text of each task that runs.
///
/// # Errors
/// It cannot listen.
pub(super) fn serve(adapter: Adapter, options: ServerOptions, address: &str, runs: fn(&str)) -> io::Result<Server> {
    let revoke = Revoke::default();
    let options = options.on_admit(|head, _| {
        let token = head.and_then(|head| head.headers.get("authorization")?.strip_prefix("Bearer "));
        Admission::Accept(token.map(|name| Principal(name.into())))
    });
    let server = adapter.serve_http((router(Arc::clone(&revoke), runs), options), address)?;
    drop(revoke.set(Box::new(server.revoking())));
    Ok(server)
}

/// Serves until it is killed.
pub fn main(args: Vec<String>) -> ExitCode {
    let Some((adapter, rest)) = Adapter::first_of(args) else { return ExitCode::FAILURE };
    let [port, shape, urls @ ..] = &rest[..] else { return ExitCode::FAILURE };
    let store = Shape::named(shape).and_then(|shape| shape.store(urls));
    let told = |event| {
        if let Event::Diagnostic(diagnostic) = event {
            let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            println!("{:.3} {diagnostic}", unix.as_secs_f64());
        }
    };
    let options = match store {
        Some(store) => ServerOptions::new().store(store),
        None if shape == NO_STORE => ServerOptions::new(),
        None => return ExitCode::FAILURE,
    };
    match serve(adapter, options.on_event(told), &format!("127.0.0.1:{port}"), |text| println!("{RUNS}{text}")) {
        Ok(server) => {
            server.wait();
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}
