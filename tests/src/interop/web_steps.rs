//! The steps with each server over HTTP, after those of every server.

use serde_json::json;

use super::areas;
use super::listening::Transport;
use super::servers::{LEGACY, MODERN, Server, everything, fit, offered, refused, unknown};
use super::steps::{Does, Expect, Step, call, step};
use super::web::{Cut, Web};

/// The error of a call whose response is lost.
const LOST: &str = "Transport closed";

pub(super) fn everything_web(server: &Server, revision: &str) -> Vec<Step> {
    let mut steps = everything(server, revision);
    let has_listener = server.web.is_some_and(|web| web.transport == Transport::Streamable);
    steps.retain(|step| !has_listener || step.name != "changed");
    let long = "trigger-long-running-operation";
    steps.push(step("timeout", Does::TimeOut(long, json!({ "duration": 60, "steps": 1 }))));
    steps
}

pub(super) fn everything_restarted(_: &Web, _: &str) -> Vec<Step> {
    vec![call("restarted", "get-sum", json!({ "a": 2, "b": 2 }), Expect::text("is 4."))]
}

pub(super) fn everything_cuts(web: &Web, _: &str) -> Vec<Cut> {
    let arguments = json!({ "duration": 0.9, "steps": 3 });
    let cut = |name, outcome| Cut { name, tool: "trigger-long-running-operation", arguments, outcome };
    // The tool is read-only.
    vec![cut(if web.store { "resumed" } else { "repeated" }, Ok("Steps: 3"))]
}

pub(super) fn python(server: &Server, revision: &str) -> Vec<Step> {
    let Some(web) = server.web else { return Vec::new() };
    // A wait that is known to fail can be short.
    let patience = if web.json { 1 } else { 5 };
    let mut steps = offered(revision);
    steps.retain(|step| step.name != "changed");
    if web.json {
        // A JSON response cannot carry it.
        replace(&mut steps, call("progress", "count", json!({ "steps": 3 }), Expect::text("counted to 3")));
        replace(&mut steps, call("cancelled", "cancelled", json!({ "within": patience }), Expect::text("1 cancelled")));
    }
    if revision != MODERN && (web.json || !web.sessions) {
        let refused = [("form", "greet"), ("declined", "greet"), ("model", "sample"), ("roots", "roots")];
        for (name, tool) in refused {
            replace(&mut steps, step(name, Does::Refused(tool, json!({}), "no back-channel")));
        }
    }
    steps.push(unknown("Unknown tool"));
    steps.push(step("timeout", Does::TimeOut("wait", json!({}))));
    steps.push(call("timeout told", "cancelled", json!({ "within": patience }), Expect::text("1 cancelled")));
    if web.sessions || revision == MODERN {
        steps.push(step("changed", Does::Changed("note")));
    }
    if web.store && revision == LEGACY {
        let polled = Expect::text("polled 3 times").progress(3);
        steps.push(call("poll", "poll", json!({ "times": 3 }), polled));
        steps.push(step("polled", Does::Said("GET 200 after ", 4)));
        steps.push(call("hush", "hush", json!({}), Expect::text("hushed")));
        steps.push(step("changed again", Does::Changed("note")));
        steps.push(step("listener resumed", Does::Said("GET 200 after _GET_stream", 1)));
    }
    steps.extend(areas::offered(revision, web.reaches(revision)));
    if web.sessions && web.transport != Transport::WebSocket && revision != MODERN {
        steps.push(call("forget", "forget", json!({}), Expect::text("forgot 1")));
        steps.push(call("a new session", "add", json!({ "a": 2, "b": 2 }), Expect::text("4")));
    }
    fit(&mut steps, revision);
    steps
}

/// The steps in which the server requests input.
const ASKING: [&str; 4] = ["form", "declined", "model", "roots"];

/// This SDK waits forever for the answer to a request that it cannot deliver.
pub(super) fn python1(server: &Server, revision: &str) -> Vec<Step> {
    let mut steps = python(server, revision);
    steps.retain(|step| server.web.is_some_and(|web| web.sessions && !web.json) || !ASKING.contains(&step.name));
    steps
}

pub(super) fn typescript(server: &Server, revision: &str) -> Vec<Step> {
    let mut steps = rmcp(server, revision);
    if server.name.starts_with("sdk 1.") {
        replace(&mut steps, unknown("not found"));
    }
    if server.name.starts_with("fastmcp") {
        replace(&mut steps, unknown("Unknown tool"));
    }
    steps
}

pub(super) fn rmcp(server: &Server, revision: &str) -> Vec<Step> {
    let Some(web) = server.web else { return Vec::new() };
    let mut steps = offered(revision);
    let hears = web.sessions || revision == MODERN;
    // If every request is a separate server, the answer to a request for input reaches no handler.
    steps.retain(|step| step.name != "changed" && (hears || !ASKING.contains(&step.name)));
    steps.push(refused());
    steps.push(step("timeout", Does::TimeOut("wait", json!({}))));
    steps.push(call("timeout told", "cancelled", json!({}), Expect::text("1 cancelled")));
    if hears {
        steps.push(step("changed", Does::Changed("note")));
    }
    steps.extend(areas::offered(revision, web.reaches(revision)));
    fit(&mut steps, revision);
    steps
}

/// Replaces the step of the same name, at the same position.
fn replace(steps: &mut [Step], other: Step) {
    if let Some(step) = steps.iter_mut().find(|step| step.name == other.name) {
        *step = other;
    }
}

pub(super) fn python_restarted(web: &Web, revision: &str) -> Vec<Step> {
    if web.transport == Transport::WebSocket {
        return Vec::new();
    }
    let mut steps = vec![call("restarted", "add", json!({ "a": 2, "b": 3 }), Expect::text("5"))];
    if web.sessions || revision == MODERN {
        steps.push(step("changed still", Does::Regained("note")));
    }
    steps
}

pub(super) fn python_cuts(web: &Web, revision: &str) -> Vec<Cut> {
    let cut = |name, tool, outcome| Cut { name, tool, arguments: json!({ "steps": 3, "pause": 0.3 }), outcome };
    match web {
        Web { json: true, .. } | Web { transport: Transport::WebSocket, .. } => Vec::new(),
        // The session ends with its stream.
        Web { transport: Transport::Sse, .. } => {
            vec![cut("repeated", "count", Ok("counted to 3")), cut("lost", "tally", Err(LOST))]
        }
        Web { store: true, .. } if revision != MODERN => vec![cut("resumed", "tally", Ok("counted to 3"))],
        _ if revision == MODERN => vec![cut("repeated", "count", Ok("counted to 3")), cut("lost", "tally", Err(LOST))],
        // A stream without event ids cannot be resumed, and whether a call may run twice is up to
        // the application.
        _ => vec![cut("lost", "tally", Err(LOST))],
    }
}
