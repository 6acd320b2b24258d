//! What our client does with a server: the steps, and what must come of each.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use mcp_proto::client::Policy;
use serde_json::{Value, json};

use super::listening::Listening;
use super::processes::Watch;
use super::servers::{LEGACY, MODERN, Server};
use super::{Answer, Mark, Place, Plan, Row, Session, judge};

/// How many calls are under way at once in [`Does::Many`].
pub const MANY: usize = 100;
/// The length of the text that goes both ways in [`Does::Large`].
pub const LARGE: usize = 1 << 20;

/// The limit of time in [`Does::TimeOut`]; the tool takes far longer.
const LIMIT: Duration = Duration::from_millis(300);

/// A step of the other table.
const PIPED: &str = "this server does not listen";

/// How an adapter reaches a server.
pub type Connect = fn(Plan<'_>) -> Result<Box<dyn Session>, String>;

/// One thing to do.
#[derive(Clone, Debug)]
pub struct Step {
    /// What it is called in the table.
    pub name: &'static str,
    /// What is done.
    pub does: Does,
}

/// What is done.
#[derive(Clone, Debug)]
pub enum Does {
    /// Calls this tool with these arguments.
    Call(&'static str, Value, Box<Expect>),
    /// Calls this tool; the answer is a JSON-RPC error whose text contains this.
    Refused(&'static str, Value, &'static str),
    /// Calls this tool [`MANY`] times at once, each with another text in this argument that must come back.
    Many(&'static str, &'static str),
    /// Calls this tool with a text of [`LARGE`] bytes in this argument that must come back.
    Large(&'static str, &'static str),
    /// Calls this tool, which takes far longer, and cancels the call.
    Cancel(&'static str, Value),
    /// Calls this tool, which takes far longer, with a limit of time.
    TimeOut(&'static str, Value),
    /// Asks whether the server is there.
    Ping,
    /// Our client has told that the tools have changed, or does.
    HasChanged,
    /// Calls this tool, whereupon our client tells that the tools have changed.
    Changed(&'static str),
    /// Calls this tool, whereupon our client tells that the tools have changed, or has told that it does not hear of it for a while.
    Regained(&'static str),
    /// The server has said so many lines that begin with this, or says them.
    Said(&'static str, usize),
}

/// What must come of a call.
#[derive(Clone, Debug, Default)]
pub struct Expect {
    /// The text contains this.
    text: &'static str,
    /// The data is this.
    structured: Option<Value>,
    /// The tool fails.
    fails: bool,
    /// So many progress notifications, which rise.
    progress: usize,
    /// What is asked.
    asks: &'static [&'static str],
    /// What the user fills in; none declines.
    form: Option<Value>,
}

impl Expect {
    /// A success whose text contains this.
    pub fn text(text: &'static str) -> Self {
        Self { text, ..Self::default() }
    }

    /// And whose data is this.
    pub fn structured(self, json: Value) -> Self {
        Self { structured: Some(json), ..self }
    }

    /// But of a tool that fails.
    pub fn fails(self) -> Self {
        Self { fails: true, ..self }
    }

    /// After so many notifications.
    pub fn progress(self, progress: usize) -> Self {
        Self { progress, ..self }
    }

    /// After these were asked.
    pub fn asks(self, asks: &'static [&'static str]) -> Self {
        Self { asks, ..self }
    }

    /// And the user filled this in.
    pub fn form(self, form: Value) -> Self {
        Self { form: Some(form), ..self }
    }

    pub(super) fn check(&self, answer: &Answer) -> Result<String, String> {
        let rising = answer.progress.windows(2).all(|pair| pair[0] < pair[1]);
        // A server asks for the roots when it likes.
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

/// A call.
pub fn call(name: &'static str, tool: &'static str, arguments: Value, expect: Expect) -> Step {
    Step { name, does: Does::Call(tool, arguments, Box::new(expect)) }
}

/// Anything else.
pub fn step(name: &'static str, does: Does) -> Step {
    Step { name, does }
}

impl Step {
    pub(super) fn run(&self, session: &mut dyn Session, web: Option<&mut Listening>) -> Result<String, String> {
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
                // No two parts of it are the same, and not every character is one byte.
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
            Does::HasChanged => session.ear().changed(0).map(|times| format!("{times} times")),
            Does::Changed(tool) => {
                let before = session.ear().changes();
                session.call(tool, &json!({}), None)?;
                session.ear().changed(before).map(|times| format!("{times} times"))
            }
            Does::Said(prefix, times) => web.ok_or(PIPED)?.said(prefix, *times),
            Does::Regained(tool) => {
                let ear = session.ear().clone();
                let before = ear.changes();
                session.call(tool, &json!({}), None)?;
                match ear.lost() {
                    Some(why) => Ok(why),
                    None => ear.changed(before).map(|times| format!("{times} times")),
                }
            }
        }
    }
}

/// Tries to reach one server over one adapter with a policy that it refuses.
pub fn refuse(server: &Server, policy: Policy, adapter: &'static str, connect: Connect) -> Row {
    let mut row = Row::new(server.name, "server", "none", adapter);
    let refused = match plan(server, policy, MODERN).and_then(connect) {
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
pub fn run(server: &Server, policy: Policy, revision: &'static str, adapter: &'static str, connect: Connect) -> Row {
    let mut row = Row::new(server.name, "server", revision, adapter);
    let mut session = match plan(server, policy, revision).and_then(connect) {
        Ok(session) => session,
        Err(why) => {
            row.note(server, "connect", Err(why));
            return row;
        }
    };
    let watch = Watch::children();
    talk(server, policy, revision, session.as_mut(), None, &mut row);
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
    session: &mut dyn Session,
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
    for step in (server.steps)(server, revision) {
        row.note(server, step.name, step.run(session, web.as_deref_mut()));
    }
    if policy == Policy::Auto && revision == LEGACY {
        let (fell_back, _) = fell_back(session.ear().diagnostics());
        let once = fell_back.len() == 1;
        row.note(server, "fell back", if once { Ok(fell_back.concat()) } else { Err(format!("{fell_back:?}")) });
    }
}

/// The complaints that tell of the older era, and the others.
fn fell_back(complaints: Vec<String>) -> (Vec<String>, Vec<String>) {
    complaints.into_iter().partition(|fault| fault.starts_with("fell-back-to-legacy:"))
}

/// Judges what our client complained of.
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
    /// Notes a step of a server, judged with what is known of it at hand.
    pub(super) fn note(&mut self, server: &Server, step: &str, result: Result<String, String>) {
        self.steps.push((step.to_owned(), judge(server.deviations, self.revision, step, result)));
    }

    /// Ends a session.
    pub(super) fn close(&mut self, server: &Server, session: Box<dyn Session>) {
        let closing = Instant::now();
        let closed = session.close();
        self.note(server, "close", closed.map(|()| format!("closed in {} ms", closing.elapsed().as_millis())));
    }
}
