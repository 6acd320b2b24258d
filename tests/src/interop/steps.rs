//! The steps of our client with a server, and their required results.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use mcp_proto::client::Policy;
use mcp_proto::input::Change;
use serde_json::{Value, json};

use super::areas;
use super::listening::{Listening, Transport};
use super::processes::Watch;
use super::servers::{LEGACY, MODERN, Server};
use super::session::Session;
use super::{Answer, Mark, Place, Plan, Row, judge};
use crate::adapters::Adapter;

/// Number of concurrent calls in [`Does::Many`].
pub const MANY: usize = 100;
/// Length of the text that goes in both directions in [`Does::Large`].
pub const LARGE: usize = 1 << 20;

/// The timeout in [`Does::TimeOut`]. The tool takes far longer.
const LIMIT: Duration = Duration::from_millis(300);

/// The error of a step that belongs to the other table.
const PIPED: &str = "this server does not listen";

/// One step.
#[derive(Clone, Debug)]
pub struct Step {
    /// Its name in the table.
    pub name: &'static str,
    /// The action.
    pub does: Does,
}

/// The action of a step.
#[derive(Clone, Debug)]
pub enum Does {
    /// Calls this tool with these arguments.
    Call(&'static str, Value, Box<Expect>),
    /// Calls this tool. The response is a JSON-RPC error whose text contains this.
    Refused(&'static str, Value, &'static str),
    /// Calls this tool [`MANY`] times at once, each with another text in this argument, which must
    /// be returned.
    Many(&'static str, &'static str),
    /// Calls this tool with a text of [`LARGE`] bytes in this argument, which must be returned.
    Large(&'static str, &'static str),
    /// Calls this tool, which takes far longer, and cancels the call.
    Cancel(&'static str, Value),
    /// Calls this tool, which takes far longer, with a timeout.
    TimeOut(&'static str, Value),
    /// Checks that the server responds.
    Ping,
    /// Waits until our client has reported that the tools have changed.
    HasChanged,
    /// Calls this tool, after which our client must report that the tools have changed.
    Changed(&'static str),
    /// Calls this tool, after which our client must report that the tools have changed, or has
    /// reported that it receives no changes for a while.
    Regained(&'static str),
    /// Uses what the server offers beside its tools.
    Check(fn(&Session) -> Result<String, String>),
    /// Waits for this number of lines of the server that begin with this text.
    Said(&'static str, usize),
}

/// The required result of a call.
#[derive(Clone, Debug, Default)]
pub struct Expect {
    /// The text contains this.
    text: &'static str,
    /// The data equals this.
    structured: Option<Value>,
    /// The tool fails.
    fails: bool,
    /// Number of progress notifications, with increasing values.
    progress: usize,
    /// The requests of the server.
    asks: &'static [&'static str],
    /// The content of the user. `None` declines.
    form: Option<Value>,
}

impl Expect {
    /// Requires a success whose text contains this.
    pub fn text(text: &'static str) -> Self {
        Self { text, ..Self::default() }
    }

    /// Requires this data.
    pub fn structured(self, json: Value) -> Self {
        Self { structured: Some(json), ..self }
    }

    /// Requires a failed tool.
    pub fn fails(self) -> Self {
        Self { fails: true, ..self }
    }

    /// Requires this number of notifications.
    pub fn progress(self, progress: usize) -> Self {
        Self { progress, ..self }
    }

    /// Requires these requests of the server.
    pub fn asks(self, asks: &'static [&'static str]) -> Self {
        Self { asks, ..self }
    }

    /// Lets the user respond with this content.
    pub fn form(self, form: Value) -> Self {
        Self { form: Some(form), ..self }
    }

    /// Checks the response to a call. Returns the required text.
    ///
    /// # Errors
    /// It differs, with the response and what is required.
    pub fn check(&self, answer: &Answer) -> Result<String, String> {
        let rising = answer.progress.windows(2).all(|pair| pair[0] < pair[1]);
        // A server may request the roots at any time.
        let asked = answer.asked.iter().copied().filter(|what| *what != "roots" || self.asks.contains(what));
        let same = answer.is_error == self.fails
            && answer.progress.len() == self.progress
            && asked.collect::<Vec<_>>() == self.asks
            && self.structured.as_ref().is_none_or(|json| Some(json) == answer.structured.as_ref());
        if same && rising && answer.text.contains(self.text) {
            Ok(format!("{:?}", self.text))
        } else {
            Err(format!("{answer:?}, expected {self:?}"))
        }
    }
}

/// Creates a call.
pub fn call(name: &'static str, tool: &'static str, arguments: Value, expect: Expect) -> Step {
    Step { name, does: Does::Call(tool, arguments, Box::new(expect)) }
}

/// Creates any other step.
pub fn step(name: &'static str, does: Does) -> Step {
    Step { name, does }
}

impl Step {
    pub(super) fn run(&self, session: &Session, web: Option<&mut Listening>) -> Result<String, String> {
        match &self.does {
            Does::Call(tool, arguments, expect) => {
                expect.check(&session.call(tool, arguments, expect.form.as_ref())?)
            }
            Does::Refused(tool, arguments, text) => match session.call(tool, arguments, None) {
                Err(why) if why.contains(text) => Ok(why),
                other => Err(format!("{other:?}, expected an error with {text:?}")),
            },
            Does::Many(tool, argument) => {
                let text = |n: usize| format!("number {n} of {MANY};");
                let arguments: Vec<Value> = (0..MANY).map(|n| json!({ *argument: text(n) })).collect();
                let answers = session.many(tool, &arguments)?;
                let wrong = answers.iter().enumerate().find(|(n, answer)| !answer.text.contains(&text(*n)));
                match wrong {
                    None if answers.len() == MANY => Ok(format!("{MANY} answers")),
                    other => Err(format!("{} answers, wrong is {other:?}", answers.len())),
                }
            }
            Does::Large(tool, argument) => {
                // All parts of it differ, and not every character is one byte.
                let mut text = String::new();
                for n in 0.. {
                    if text.len() >= LARGE {
                        break;
                    }
                    let _ = write!(text, "{n}\u{fc} ");
                }
                let answer = session.call(tool, &json!({ *argument: text }), None)?;
                if answer.text.contains(&text) {
                    Ok(format!("{} bytes each way", text.len()))
                } else {
                    Err(format!("{} bytes of another text came back", answer.text.len()))
                }
            }
            Does::Cancel(tool, arguments) => session.cancel(tool, arguments).map(|()| "cancelled".to_owned()),
            Does::TimeOut(tool, arguments) => session.time_out(tool, arguments, LIMIT).map(|()| "timed out".to_owned()),
            Does::Ping => session.ping().map(|()| "answered".to_owned()),
            Does::HasChanged => session.ear().changed(&Change::Tools, 0).map(|times| format!("{times} times")),
            Does::Check(check) => check(session),
            Does::Changed(tool) => {
                session.announced()?;
                let before = session.ear().changes();
                session.call(tool, &json!({}), None)?;
                session.ear().changed(&Change::Tools, before).map(|times| format!("{times} times"))
            }
            Does::Said(prefix, times) => web.ok_or(PIPED)?.said(prefix, *times),
            Does::Regained(tool) => {
                session.announced()?;
                let ear = session.ear().clone();
                let before = ear.changes();
                session.call(tool, &json!({}), None)?;
                match ear.lost() {
                    Some(why) => Ok(why),
                    None => ear.changed(&Change::Tools, before).map(|times| format!("{times} times")),
                }
            }
        }
    }
}

/// Tries to connect to a server with a policy that it refuses.
pub fn refuse(server: &Server, policy: Policy, adapter: Adapter) -> Row {
    let mut row = Row::new(server.name, "server", "none", adapter);
    let refused = match plan(server, policy, MODERN).and_then(|plan| Session::connect(adapter, plan)) {
        Ok(session) => Err(format!("it speaks {}", session.revision())),
        Err(why) => Ok(why),
    };
    row.steps.push(("refused".to_owned(), judge(&[], "none", "refused", refused)));
    row.steps.push(("no process".to_owned(), judge(&[], "none", "no process", Watch::none())));
    row
}

fn plan<'a>(server: &Server, policy: Policy, revision: &'a str) -> Result<Plan<'a>, String> {
    Ok(Plan { place: Place::Program(server.command()?), policy, revision, verdict: None, root: server.root() })
}

/// Runs one server with one policy over one adapter.
pub fn run(server: &Server, policy: Policy, revision: &'static str, adapter: Adapter) -> Row {
    let mut row = Row::new(server.name, "server", revision, adapter);
    let session = match plan(server, policy, revision).and_then(|plan| Session::connect(adapter, plan)) {
        Ok(session) => session,
        Err(why) => {
            row.note(server, "connect", Err(why));
            return row;
        }
    };
    let watch = Watch::children();
    talk(server, policy, revision, &session, None, &mut row);
    let ear = session.ear().clone();
    complaints(server, &ear.diagnostics(), &mut row);
    row.close(server, session);
    row.note(server, "exit", server.exited());
    row.note(server, "no process", watch.gone());
    row.stderr = ear.stderr();
    row
}

/// Takes the steps of a server.
pub(super) fn talk(
    server: &Server,
    policy: Policy,
    revision: &str,
    session: &Session,
    mut web: Option<&mut Listening>,
    row: &mut Row,
) {
    let got = session.revision();
    row.note(server, "revision", if got == revision { Ok(got) } else { Err(format!("it is {got}")) });
    let listed = session.tools().and_then(|names| {
        match server.tools.iter().find(|tool| !names.iter().any(|name| name == *tool)) {
            None => Ok(format!("{} tools", names.len())),
            Some(tool) => Err(format!("{tool} is not in {names:?}")),
        }
    });
    row.note(server, "list", listed);
    if revision == MODERN && LASTING.iter().any(|name| server.name.starts_with(name)) {
        row.note(server, "kept", areas::kept(session));
    }
    for step in (server.steps)(server, revision) {
        row.note(server, step.name, step.run(session, web.as_deref_mut()));
    }
    let mut wanted = Vec::new();
    if policy == Policy::Auto && revision == LEGACY {
        wanted.push(FALLS[0]);
    }
    if server.web.is_some_and(|web| web.transport == Transport::Sse) {
        wanted.push(FALLS[1]);
    }
    if !wanted.is_empty() {
        let (fell_back, _) = fell_back(session.ear().diagnostics());
        let same = fell_back.iter().map(|fault| fault.split(' ').next().unwrap_or_default()).eq(wanted);
        row.note(server, "fell back", if same { Ok(fell_back.join("; ")) } else { Err(format!("{fell_back:?}")) });
    }
}

/// The beginnings of the names of the servers that say how long their results last.
const LASTING: [&str; 2] = ["server 2.", "mcp 2."];

/// The codes of the diagnostics of a client that tries another era, or another transport.
const FALLS: [&str; 2] = ["fell-back-to-legacy:", "fell-back-to-sse:"];

/// Separates the diagnostics about another era or transport from the others.
fn fell_back(complaints: Vec<String>) -> (Vec<String>, Vec<String>) {
    complaints.into_iter().partition(|fault| FALLS.iter().any(|code| fault.starts_with(code)))
}

/// Checks the diagnostics of our client.
pub(super) fn complaints(server: &Server, diagnostics: &[String], row: &mut Row) {
    let (_, faults) = fell_back(diagnostics.to_vec());
    let reason = |fault: &String| server.faults.iter().find(|(code, _)| fault.starts_with(&format!("{code}:")));
    let known = faults.iter().find_map(reason).map(|(_, reason)| *reason);
    let mark = match (faults.iter().any(|fault| reason(fault).is_none()), known) {
        (false, None) => Mark::Passed("nothing to complain of".to_owned()),
        (false, Some(reason)) => Mark::Deviates(faults.join("; "), reason),
        (true, _) => Mark::Failed(faults.join("; ")),
    };
    row.steps.push(("no fault".to_owned(), mark));
}

impl Row {
    /// Records the result of a step, given the known deviations of the server.
    pub(super) fn note(&mut self, server: &Server, step: &str, result: Result<String, String>) {
        self.steps.push((step.to_owned(), judge(server.deviations, self.revision, step, result)));
    }

    /// Closes a session.
    pub(super) fn close(&mut self, server: &Server, session: Session) {
        let closing = Instant::now();
        let closed = session.close();
        self.note(server, "close", closed.map(|()| format!("closed in {} ms", closing.elapsed().as_millis())));
    }
}
