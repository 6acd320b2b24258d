//! The tools of the tested server: the same functions on each driver.

use crate::hostile::shim;
use crate::shim::Tools;
use mcp_proto::model::elicitation::{ElicitResult, Form};
use mcp_proto::route::Cx;
use mcp_proto::rpc::Object;
use mcp_proto::{Handler, Outcome, Router, ServerConfig, TaskOptions, TaskSupport, ToolError, tool};
use serde::Deserialize;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A tool. `None`: it must be called again soon.
pub(crate) type Tool = fn(&Cx) -> Option<Outcome>;

const TOOLS: &[(&str, Tool)] =
    &[("echo", echo), ("mark", mark), ("big", big), ("wait", wait), ("tell", tell), ("ask", ask), ("late", late)];

/// The number of runs of the tool that only a smuggled call reaches.
static MARKS: AtomicUsize = AtomicUsize::new(0);

static WAITS: Mutex<Waits> =
    Mutex::new(Waits { begun: BTreeSet::new(), freed: BTreeSet::new(), left: BTreeSet::new() });

/// The states of the calls of `wait`, by their tags.
struct Waits {
    begun: BTreeSet<String>,
    freed: BTreeSet<String>,
    left: BTreeSet<String>,
}

pub(super) fn router(wrap: fn(Tool) -> Handler, change: impl FnOnce(&mut ServerConfig)) -> Router {
    let empty = Router::new("target", "1.0").watchable().configure(change);
    let with_tasks = |name| if name == "late" { tool(name).task(TaskSupport::Optional) } else { tool(name) };
    TOOLS.iter().fold(empty, |router, (name, function)| router.add(with_tasks(*name), wrap(*function)))
}

/// The number of runs of `mark`.
pub(super) fn marks() -> usize {
    seen().marks
}

/// Whether this call of `wait` has begun.
pub(super) fn has_begun(tag: &str) -> bool {
    seen().begun.contains(tag)
}

/// Whether this call of `wait` was cancelled before its release.
pub(super) fn was_stopped(tag: &str) -> bool {
    seen().left.contains(tag)
}

/// Releases this call of `wait`.
pub(crate) fn free(tag: &str) {
    match shim::running() {
        Some(shim) => shim.free(tag),
        None => drop(waits().freed.insert(tag.into())),
    }
}

/// The state of the tools, which run in this process or in a shim.
fn seen() -> Tools {
    shim::running().map_or_else(state, |shim| shim.tools())
}

/// The state of the tools of this process.
pub(crate) fn state() -> Tools {
    let waits = waits();
    Tools { marks: MARKS.load(Ordering::SeqCst), begun: waits.begun.clone(), left: waits.left.clone() }
}

/// The driver has dropped this call, since it was cancelled.
pub(super) fn dropped(cx: &Cx) {
    if let Ok(Tag { tag }) = cx.arguments() {
        waits().left.insert(tag);
    }
}

fn waits() -> MutexGuard<'static, Waits> {
    WAITS.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Deserialize)]
struct Text {
    text: String,
}

fn echo(cx: &Cx) -> Option<Outcome> {
    let echo = || cx.arguments().map(|Text { text }| text);
    Some(cx.outcome(echo()))
}

fn mark(cx: &Cx) -> Option<Outcome> {
    MARKS.fetch_add(1, Ordering::SeqCst);
    Some(cx.outcome("marked"))
}

#[derive(Deserialize)]
struct Big {
    bytes: usize,
}

fn big(cx: &Cx) -> Option<Outcome> {
    let big = || cx.arguments().map(|Big { bytes }| "x".repeat(bytes));
    Some(cx.outcome(big()))
}

#[derive(Deserialize)]
struct Tag {
    tag: String,
}

#[derive(Deserialize)]
struct Wait {
    tag: String,
    /// The size of its result. With 0, its result is the tag.
    #[serde(default)]
    bytes: usize,
}

/// Waits until it is released or cancelled.
fn wait(cx: &Cx) -> Option<Outcome> {
    let (tag, bytes) = match cx.arguments() {
        Ok(Wait { tag, bytes }) => (tag, bytes),
        Err(e) => return Some(cx.outcome(Err::<String, ToolError>(e))),
    };
    let mut waits = waits();
    if cx.is_cancelled() {
        waits.left.insert(tag);
        return Some(cx.outcome(Err::<String, ToolError>("cancelled".into())));
    }
    waits.begun.insert(tag.clone());
    waits.freed.contains(&tag).then(|| cx.outcome(if bytes == 0 { tag } else { "x".repeat(bytes) }))
}

/// Becomes a task, then waits as `wait` does.
fn late(cx: &Cx) -> Option<Outcome> {
    match cx.into_task(TaskOptions::new()) {
        Ok(true) => wait(cx),
        Ok(false) => Some(cx.outcome("there is no room")),
        Err(e) => Some(cx.outcome(Err::<String, ToolError>(e))),
    }
}

/// The size of a piece of an endless message.
const AT_ONCE: usize = 32;

/// Sends notifications without end, as long as they are accepted.
fn tell(cx: &Cx) -> Option<Outcome> {
    if cx.is_cancelled() {
        dropped(cx);
        return Some(cx.outcome(Err::<String, ToolError>("cancelled".into())));
    }
    if let Ok(Tag { tag }) = cx.arguments() {
        waits().begun.insert(tag);
    }
    for _ in 0..AT_ONCE {
        if cx.notify("notifications/news", Object::new().with("news", "x".repeat(4 << 10).as_str())).is_err() {
            break;
        }
    }
    None
}

fn ask(cx: &Cx) -> Option<Outcome> {
    let ask = || {
        Ok::<_, ToolError>(match cx.elicit("name", Form::new("What is your name?").text("name"))? {
            ElicitResult::Accept(content) => format!("accepted {content:?}"),
            ElicitResult::Decline | ElicitResult::Cancel => "declined".into(),
        })
    };
    Some(cx.outcome(ask()))
}
