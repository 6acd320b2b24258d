//! The program of a server: `node-server ADAPTER PORT STORE`. Its tools say whose call they answer.

use crate::adapters::Adapter;
use mcp_driver::ServerOptions;
use mcp_proto::server::Hosts;
use mcp_proto::{Cx, ElicitResult, Form, Progress, Router, TaskOptions, TaskSupport, ToolError, tool};
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

/// The word for the program.
pub const SERVER: &str = "node-server";

#[derive(serde::Deserialize)]
struct Asked {
    text: String,
    #[serde(default)]
    millis: u64,
}

/// Waits in steps, with progress.
fn wait(cx: &Cx, millis: u64) {
    for step in 0..10_u32 {
        if cx.is_cancelled() {
            return;
        }
        thread::sleep(Duration::from_millis(millis) / 10);
        // Nobody may want it.
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

fn job(cx: &Cx, asked: Asked) -> Result<String, ToolError> {
    cx.into_task(TaskOptions::new().poll(Duration::from_millis(200)).rerun(true))?;
    wait(cx, asked.millis);
    Ok(asked.text)
}

/// Returns its tools.
pub fn router() -> Router {
    Router::new("nodes", "1")
        .tool(tool("echo"), |_cx, asked: Asked| Ok(asked.text))
        .tool(tool("slow"), |cx, asked: Asked| {
            wait(cx, asked.millis);
            Ok(asked.text)
        })
        .tool(tool("ask"), |cx, asked: Asked| ask(cx, &asked))
        .tool(tool("job").task(TaskSupport::Optional), |cx, asked: Asked| job(cx, asked))
        .configure(|config| {
            config.state_keys = Some([7; 32].into());
            config.hosts = Hosts::Any;
            config.stream_after = Duration::from_millis(100);
        })
}

/// Serves until it is killed.
pub fn main(args: Vec<String>) -> ExitCode {
    let Some((adapter, rest)) = Adapter::first_of(args) else { return ExitCode::FAILURE };
    let [port, store] = &rest[..] else { return ExitCode::FAILURE };
    let options = ServerOptions::new().redis(store.as_str());
    match adapter.serve_http((router(), options), format!("127.0.0.1:{port}")) {
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
