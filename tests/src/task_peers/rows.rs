//! The rows: one pair of a client and a server each, with one of our adapters.

use mcp_proto::client::Policy;
use mcp_proto::{CallError, Object, RawJson, TaskHandle, tasks, tools};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use super::ours::{CLIENT, SERVER, connect, router};
use super::theirs::Ground;
use crate::adapters::{Adapter, Client};
use crate::interop::setup::last_line;
use crate::rows::Row;

/// All rows.
pub const ROWS: &[Row<Ground>] = &[
    Row { name: "ext-tasks 0.2.2 on 2026-07-28", run: |ground, adapter| ext(ground, adapter, "modern") },
    Row { name: "ext-tasks 0.2.2 on 2025-11-25", run: |ground, adapter| ext(ground, adapter, "legacy") },
    Row { name: "rmcp follows", run: rmcp_follows },
    Row { name: "rmcp serves", run: |ground, adapter| follow(adapter, ground.rmcp_server()) },
    Row { name: "FastMCP serves", run: |ground, adapter| follow(adapter, ground.fastmcp_server()) },
    Row { name: "killed in the middle", run: killed },
];

fn expect(said: &str, expected: &Value) -> Result<String, String> {
    let value: Value = serde_json::from_str(said).map_err(|why| format!("{why}: {said}"))?;
    if value == *expected { Ok(said.to_owned()) } else { Err(format!("{said} instead of {expected}")) }
}

/// A client on `ext-tasks` calls our server: once with an answer, and once to cancel.
fn ext(ground: &Ground, adapter: Adapter, era: &str) -> Result<String, String> {
    let run = |words: &[&str]| last_line(ground.ext(words).arg(&ground.ours).args([SERVER, adapter.name()]));
    let greeted = json!({ "kind": "task", "status": "completed", "text": "hello Ada, true", "asked": 1 });
    let said = expect(&run(&[era])?, &greeted)?;
    expect(&run(&[era, "--cancel"])?, &json!({ "kind": "task", "status": "cancelled", "asked": 0 }))?;
    Ok(said)
}

/// A client on `rmcp` calls our server.
fn rmcp_follows(ground: &Ground, adapter: Adapter) -> Result<String, String> {
    let said = last_line(ground.rmcp_client().arg(&ground.ours).args([SERVER, adapter.name()]))?;
    expect(&said, &json!({ "text": "hello Ada, true", "asked": 1, "status": "cancelled" }))
}

/// A client of ours follows a task of this server, and cancels another one.
fn follow(adapter: Adapter, server: Command) -> Result<String, String> {
    let asked = Arc::new(AtomicUsize::new(0));
    let client = connect(adapter, server, Policy::Auto, &asked).map_err(|why| why.to_string())?;
    let mut states = Vec::new();
    let call = tools::call("greet").arguments(&Object::new());
    let greeted = client.call(call.on_task(|update| states.push(update.task.status))).map_err(|why| why.to_string())?;
    let text = greeted.first_text().unwrap_or_default().to_owned();
    let asked = asked.load(Ordering::Relaxed);
    if text != "hello Ada" || asked != 1 || states.is_empty() {
        return Err(format!("{text}, asked {asked} times, {states:?}"));
    }
    cancel(&client)?;
    client.close()?;
    Ok(format!("{text}: {} states", states.len()))
}

/// Cancels a call as soon as it is a task.
fn cancel(client: &Client) -> Result<(), String> {
    let (began, begins) = channel();
    let call = tools::call("forever").arguments(&Object::new()).on_task(move |_| {
        let _ = began.send(());
    });
    let pending = client.start(call);
    let id = pending.id().ok_or("it is refused")?;
    let outcome = thread::scope(|scope| {
        let ending = scope.spawn(move || pending.wait());
        begins.recv_timeout(Duration::from_secs(30)).map_err(|_| "it becomes no task")?;
        match client {
            Client::Blocking(client) => client.cancel(id, None),
            Client::Smol(client, _) => client.cancel(id, None),
        }
        ending.join().map_err(|_| "a panic")
    })?;
    match outcome {
        Err(CallError::Cancelled { .. }) => Ok(()),
        other => Err(format!("it ended as {other:?}")),
    }
}

/// A client begins a task and is killed. Another process waits for the result.
fn killed(ground: &Ground, adapter: Adapter) -> Result<String, String> {
    let server = adapter.serve_http(router(adapter, |_| ()), "127.0.0.1:0").map_err(|why| why.to_string())?;
    let url = format!("http://{}/mcp", server.address());
    let mut command = Command::new(&ground.ours);
    command.args([CLIENT, adapter.name(), &url]).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = command.spawn().map_err(|why| why.to_string())?;
    let mut line = String::new();
    let read = child.stdout.take().map(|output| BufReader::new(output).read_line(&mut line));
    let ended = child.kill().and_then(|()| child.wait());
    read.transpose().and(ended).map_err(|why| why.to_string())?;
    let handle = RawJson::parse(line.clone()).map_err(|why| format!("{why}: {line}"))?;
    let handle = TaskHandle::read(&handle).map_err(|why| why.to_string())?;
    let asked = Arc::new(AtomicUsize::new(0));
    let client = connect(adapter, url.as_str(), Policy::Modern, &asked).map_err(|why| why.to_string())?;
    let greeted = client.call(tasks::attach(handle)).map_err(|why| why.to_string())?;
    let text = greeted.first_text().unwrap_or_default().to_owned();
    client.close()?;
    server.stop(Duration::ZERO);
    match (text.as_str(), asked.load(Ordering::Relaxed)) {
        ("hello Ada, true", 1) => Ok(text),
        (text, asked) => Err(format!("{text}, asked {asked} times")),
    }
}
