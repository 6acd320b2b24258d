//! Other peoples' clients and servers, over stdio and over HTTP: how they are installed and started, and what must happen between them and
//! ours.
//!
//! `tests/interop` holds exact versions. They are installed below the target folder, once for each content of the lock files; what cannot be
//! installed is a failure, never a reason to skip. [`servers`] is the table of servers that our client meets over stdio, [`web`] that of those it
//! meets over HTTP, [`clients`] that of clients that meet our server ([`offer`]).

pub mod blocking;
pub mod callers;
pub mod clients;
pub mod listening;
pub mod offer;
pub mod processes;
pub mod relay;
pub mod servers;
pub mod setup;
pub mod smol;
pub mod steps;
#[cfg(test)]
mod tests;
pub mod web;

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mcp_proto::client::{Event, Policy, Verdict};
use mcp_proto::{CallToolResult, ElicitResult, ErrorObject, Object, RawJson};
use serde_json::{Value, json};

/// How long a call runs before it is cancelled, so that the server has begun it. What it would take by itself is far more.
const BEFORE_CANCEL: Duration = Duration::from_millis(200);
/// How long a server may take to exit after the end of its input: an interpreter takes more than a second on a busy machine.
const EXIT: Duration = Duration::from_secs(8);
/// How long anything may take that should be at once: machines are slow at times.
const SOON: Duration = Duration::from_secs(10);

/// What became of a step.
#[derive(Clone, Debug, PartialEq)]
pub enum Mark {
    /// It went as it must; what happened.
    Passed(String),
    /// It did not; why.
    Failed(String),
    /// It did not, which is known: what happened, and why that is the peer's doing.
    Deviates(String, &'static str),
}

/// A step that a peer is known to get wrong: the revision, the step, why it is the peer's doing, and whether it shows in every run. An entry
/// that is to show in every run, and shows in no row of one, is stale and fails it.
pub type Deviation = (&'static str, &'static str, &'static str, Shows);

/// Whether a deviation depends on chance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shows {
    /// It does not.
    Always,
    /// It depends on what is read together.
    AtTimes,
}

/// One line of the table.
#[derive(Clone, Debug)]
pub struct Row {
    /// The peer and its version.
    pub peer: String,
    /// What the peer is: `server` or `client`.
    pub role: &'static str,
    /// The revision that was spoken.
    pub revision: &'static str,
    /// Our adapter.
    pub adapter: &'static str,
    /// The steps in their order.
    pub steps: Vec<(String, Mark)>,
    /// What the peer wrote to standard error.
    pub stderr: Vec<String>,
    /// How long it all took.
    pub time: Duration,
}

impl Row {
    /// A row without steps.
    fn new(peer: &str, role: &'static str, revision: &'static str, adapter: &'static str) -> Self {
        Self {
            peer: peer.to_owned(),
            role,
            revision,
            adapter,
            steps: Vec::new(),
            stderr: Vec::new(),
            time: Duration::ZERO,
        }
    }

    /// How many steps passed, failed, and are known to deviate.
    pub fn count(&self) -> (usize, usize, usize) {
        let of = |wanted: fn(&Mark) -> bool| self.steps.iter().filter(|(_, mark)| wanted(mark)).count();
        (
            of(|mark| matches!(mark, Mark::Passed(_))),
            of(|mark| matches!(mark, Mark::Failed(_))),
            of(|mark| matches!(mark, Mark::Deviates(..))),
        )
    }
}

/// Judges a step with the list of known deviations at hand.
pub fn judge(known: &[Deviation], revision: &str, step: &str, result: Result<String, String>) -> Mark {
    let known = known.iter().find(|(of, name, ..)| *of == revision && *name == step);
    match (result, known) {
        (Ok(what), _) => Mark::Passed(what),
        (Err(why), None) => Mark::Failed(why),
        (Err(why), Some((_, _, reason, _))) => Mark::Deviates(why, reason),
    }
}

/// What a call returned.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// The texts of the result, joined by line feeds.
    pub text: String,
    /// The result as data.
    pub structured: Option<Value>,
    /// Whether the tool failed.
    pub is_error: bool,
    /// The progress values in the order they came.
    pub progress: Vec<f64>,
    /// What was asked meanwhile.
    pub asked: Vec<&'static str>,
}

impl Answer {
    fn new(result: &CallToolResult, progress: Vec<f64>, asked: Vec<&'static str>) -> Self {
        let texts: Vec<&str> = result.content.iter().filter_map(|block| block.as_text()).collect();
        let structured = result.structured.as_ref().and_then(|json| json.decode().ok());
        Self { text: texts.join("\n"), structured, is_error: result.is_error, progress, asked }
    }
}

/// Where a server is.
#[derive(Debug)]
pub enum Place {
    /// At the other end of the pipes of this program.
    Program(Command),
    /// At this URL.
    Url(String),
}

/// How a client connects.
#[derive(Debug)]
pub struct Plan<'a> {
    /// To what.
    pub place: Place,
    /// Which eras it tries.
    pub policy: Policy,
    /// The revision that it is to speak; if that is an older one of its era, the client knows no other.
    pub revision: &'a str,
    /// What an earlier client has found out.
    pub verdict: Option<Verdict>,
    /// The root that it declares.
    pub root: String,
}

/// A client of one adapter, connected to a peer. The same steps are run with each.
pub trait Session {
    /// The revision in use.
    fn revision(&self) -> String;
    /// What was found out about the server.
    fn verdict(&self) -> Option<Verdict>;
    /// The names of all tools, through all pages.
    fn tools(&mut self) -> Result<Vec<String>, String>;
    /// Calls a tool, and tells each progress as it comes. A question for the user is accepted with `form`, or declined without one.
    fn call_told(
        &mut self,
        tool: &str,
        arguments: &Value,
        form: Option<&Value>,
        told: &mut dyn FnMut(f64),
    ) -> Result<Answer, String>;
    /// Calls a tool.
    fn call(&mut self, tool: &str, arguments: &Value, form: Option<&Value>) -> Result<Answer, String> {
        self.call_told(tool, arguments, form, &mut |_| ())
    }
    /// Calls a tool with a limit of time. `Ok` only if the call ended because of it.
    fn time_out(&mut self, tool: &str, arguments: &Value, limit: Duration) -> Result<(), String>;
    /// Begins all the calls of a tool before it waits for the first. The answers, in the order of the arguments.
    fn many(&mut self, tool: &str, arguments: &[Value]) -> Result<Vec<Answer>, String>;
    /// Calls a tool, cancels the call, and waits for its end. `Ok` only if it ended as cancelled.
    fn cancel(&mut self, tool: &str, arguments: &Value) -> Result<(), String>;
    /// Asks whether the server is there.
    fn ping(&mut self) -> Result<(), String>;
    /// What was heard.
    fn ear(&self) -> &Ear;
    /// Ends the session. `Ok` only if nothing of it is left in this process.
    fn close(self: Box<Self>) -> Result<(), String>;
}

/// What the callbacks of a session share with its steps. A clone hears and says the same.
#[derive(Clone, Default)]
pub struct Ear(Arc<(Mutex<Heard>, Condvar)>);

/// What was heard, and what is to be answered.
#[derive(Default)]
struct Heard {
    /// What the user fills in; none declines.
    form: Option<Object>,
    /// The URI of the one root.
    root: String,
    asked: Vec<&'static str>,
    notifications: BTreeMap<String, usize>,
    tools_changed: usize,
    reconnected: usize,
    lost: Option<String>,
    diagnostics: Vec<String>,
    stderr: Vec<String>,
}

impl Ear {
    /// Knows this root.
    pub fn new(root: &str) -> Self {
        let ear = Self::default();
        root.clone_into(&mut ear.lock().root);
        ear
    }

    fn lock(&self) -> MutexGuard<'_, Heard> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A call begins: what the user will fill in.
    fn begin(&self, form: Option<&Value>) -> Result<(), String> {
        let form = form.map(Object::encode).transpose().map_err(|why| why.to_string())?;
        let mut heard = self.lock();
        heard.form = form;
        heard.asked.clear();
        Ok(())
    }

    /// What was asked since it began.
    fn asked(&self) -> Vec<&'static str> {
        self.lock().asked.clone()
    }

    fn elicit(&self) -> ElicitResult {
        let mut heard = self.lock();
        heard.asked.push("user");
        heard.form.clone().map_or(ElicitResult::Decline, ElicitResult::Accept)
    }

    fn sample(&self, question: &Object) -> Result<Object, ErrorObject> {
        self.lock().asked.push("model");
        if question.get("messages").is_none() {
            return Err(ErrorObject::new(-32602, "no messages"));
        }
        let content = json!({ "type": "text", "text": "forty-two" });
        Ok(Object::new().with("role", "assistant").with("model", "none").with("content", raw(&content)))
    }

    fn roots(&self) -> Result<Object, ErrorObject> {
        let mut heard = self.lock();
        heard.asked.push("roots");
        Ok(Object::new().with("roots", raw(&json!([{ "uri": heard.root, "name": "the only one" }]))))
    }

    fn event(&self, event: Event) {
        let mut heard = self.lock();
        match event {
            Event::Notification { method, .. } => *heard.notifications.entry(method).or_default() += 1,
            Event::ToolsChanged => heard.tools_changed += 1,
            Event::Reconnecting { .. } => heard.reconnected += 1,
            Event::ListenerLost { cause, again } => heard.lost = Some(format!("lost: {cause}, again {again:?}")),
            Event::Diagnostic(diagnostic) => heard.diagnostics.push(diagnostic.to_string()),
            _ => return,
        }
        self.0.1.notify_all();
    }

    fn line(&self, line: &str) {
        self.lock().stderr.push(line.to_owned());
    }

    /// How often the tools have changed.
    pub fn changes(&self) -> usize {
        self.lock().tools_changed
    }

    /// Waits until the tools have changed more often than that.
    pub fn changed(&self, before: usize) -> Result<usize, String> {
        let waited = self.0.1.wait_timeout_while(self.lock(), SOON, |heard| heard.tools_changed <= before);
        let (heard, _) = waited.unwrap_or_else(PoisonError::into_inner);
        match heard.tools_changed {
            times if times > before => Ok(times),
            times => Err(format!("{times} times, as before; what came is {:?}", heard.notifications)),
        }
    }

    /// What was told of a listener or a subscription that was given up.
    pub fn lost(&self) -> Option<String> {
        self.lock().lost.clone()
    }

    /// How often the rest of a stream was to be asked for.
    pub fn reconnected(&self) -> usize {
        self.lock().reconnected
    }

    /// What the peer did wrong, as our client sees it.
    pub fn diagnostics(&self) -> Vec<String> {
        self.lock().diagnostics.clone()
    }

    /// What the peer wrote to standard error.
    pub fn stderr(&self) -> Vec<String> {
        self.lock().stderr.clone()
    }
}

fn raw(value: &Value) -> RawJson {
    RawJson::encode(value).unwrap_or_else(|_| RawJson::null())
}
