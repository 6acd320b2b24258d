//! The servers that our client meets over HTTP, and what it does with each.

use std::ffi::OsString;

use mcp_proto::CallError;
use mcp_proto::client::{Policy, Verdict};
use serde_json::{Value, json};

use super::listening::{Listening, PORT};
use super::processes::Watch;
use super::relay::Relay;
use super::servers::{LEGACY, MODERN, OFFERED, Server, everything, fit, offered};
use super::setup::{Installed, programs};
use super::steps::{Connect, Does, Expect, Step, call, complaints, step, talk};
use super::{Deviation, Place, Plan, Row, Session, Shows};

/// What a server is over HTTP.
#[derive(Clone, Copy, Debug)]
pub struct Web {
    /// Up to 2025-11-25 it has sessions: it remembers its clients.
    pub sessions: bool,
    /// It says 404 to a request of a session that it does not know, as one that was started anew must.
    pub renews: bool,
    /// It answers with a JSON text in place of a stream of events.
    pub json: bool,
    /// It can send the rest of a stream that was cut.
    pub store: bool,
    /// How the line begins with which it tells that its client has ended the session.
    pub ended: &'static str,
    /// What is done once it was killed and started anew, and what comes of it, in a revision.
    pub restarted: fn(&Web, &str) -> Vec<Step>,
    /// Calls during which every connection is cut at the first progress, in a revision.
    pub cuts: fn(&Web, &str) -> Vec<Cut>,
}

/// A call during which every connection is cut.
#[derive(Clone, Debug)]
pub struct Cut {
    /// What the step is called in the table.
    pub name: &'static str,
    /// The tool, which reports progress.
    pub tool: &'static str,
    /// Its arguments.
    pub arguments: Value,
    /// What the answer, or otherwise the error, contains.
    pub outcome: Result<&'static str, &'static str>,
}

/// The first revision with this transport.
const FIRST: &str = "2025-03-26";
/// The first revision whose requests name it, and with questions for the user.
pub(super) const SECOND: &str = "2025-06-18";

const UNHEARD: &str = "where it answers with JSON, it does not notice that the client has left";
const DEAF: &[Deviation] =
    &[(MODERN, "cancelled", UNHEARD, Shows::Always), (MODERN, "timeout told", UNHEARD, Shows::Always)];
/// Nor does it know of which call a notification tells where every request is a server of its own.
const DEAF_ALWAYS: &[Deviation] = &[
    (MODERN, "cancelled", UNHEARD, Shows::Always),
    (MODERN, "timeout told", UNHEARD, Shows::Always),
    (LEGACY, "cancelled", UNHEARD, Shows::Always),
    (LEGACY, "timeout told", UNHEARD, Shows::Always),
    (FIRST, "cancelled", UNHEARD, Shows::Always),
    (FIRST, "timeout told", UNHEARD, Shows::Always),
];
/// 404 is what says that a session is gone; 400 may mean anything.
const NO_404: &str = "it answers 400 to a session that it does not know, where 404 makes a client begin a new one";

/// What becomes of a call whose answer is lost.
const LOST: &str = "Transport closed";

const ALL: &[(Policy, &str)] = &[
    (Policy::Auto, MODERN),
    (Policy::Modern, MODERN),
    (Policy::Legacy, LEGACY),
    (Policy::Legacy, SECOND),
    (Policy::Legacy, FIRST),
];

/// Of a server that knows nothing newer.
const LEGACY_ALL: &[(Policy, &str)] =
    &[(Policy::Auto, LEGACY), (Policy::Legacy, LEGACY), (Policy::Legacy, SECOND), (Policy::Legacy, FIRST)];
const LEGACY_SOME: &[(Policy, &str)] = &[(Policy::Auto, LEGACY), (Policy::Legacy, FIRST)];

const SOME: &[(Policy, &str)] = &[(Policy::Auto, MODERN), (Policy::Legacy, LEGACY), (Policy::Legacy, FIRST)];

/// The table.
pub fn servers(installed: &Installed) -> Vec<Server> {
    let python = |name: &'static str, program: &str, flags: &'static [&'static str]| {
        let second = program == "web2.py";
        let interpreter = if second { &installed.python2 } else { &installed.python1 };
        let program = programs().join("python").join(program);
        let words = [interpreter.into(), "-B".into(), program.into(), PORT.into()];
        let has = |flag: &str| flags.contains(&flag);
        Server {
            name,
            command: words.into_iter().chain(flags.iter().map(OsString::from)).collect(),
            env: Vec::new(),
            reached: match (second, flags) {
                (true, []) => ALL,
                (true, _) => SOME,
                (false, []) => LEGACY_ALL,
                (false, _) => LEGACY_SOME,
            },
            refuses: if second || !flags.is_empty() { &[] } else { &[Policy::Modern] },
            tools: OFFERED,
            steps: if second { python } else { python1 },
            deviations: match (second, has("--json"), has("--stateless")) {
                (_, false, _) => &[],
                (true, true, false) => DEAF,
                (true, true, true) => DEAF_ALWAYS,
                (false, true, _) => &[],
            },
            faults: &[],
            folder: installed.scratch.join("web"),
            web: Some(Web {
                sessions: !has("--stateless"),
                renews: true,
                json: has("--json"),
                store: has("--store"),
                ended: "DELETE 200",
                restarted: python_restarted,
                cuts: python_cuts,
            }),
        }
    };
    let rmcp = |name: &'static str, flags: &'static [&'static str]| {
        let words = [installed.rmcp.clone().into(), "listen".into(), PORT.into()];
        let has = |flag: &str| flags.contains(&flag);
        Server {
            name,
            command: words.into_iter().chain(flags.iter().map(OsString::from)).collect(),
            env: Vec::new(),
            reached: if flags.is_empty() { ALL } else { SOME },
            refuses: &[],
            tools: OFFERED,
            steps: rmcp,
            deviations: &[],
            faults: &[],
            folder: installed.scratch.join("web"),
            web: Some(Web {
                sessions: !has("--stateless"),
                renews: true,
                json: has("--json"),
                store: !has("--stateless"),
                ended: "DELETE 20",
                restarted: python_restarted,
                cuts: python_cuts,
            }),
        }
    };
    let everything_js = installed.modules.join("node_modules/@modelcontextprotocol/server-everything/dist/index.js");
    vec![
        Server {
            name: "server-everything 2026.8.31, HTTP",
            command: vec![installed.node.clone().into(), everything_js.into(), "streamableHttp".into()],
            env: vec![("PORT", PORT.into())],
            reached: &[
                (Policy::Auto, LEGACY),
                (Policy::Legacy, LEGACY),
                (Policy::Legacy, SECOND),
                (Policy::Legacy, FIRST),
            ],
            refuses: &[Policy::Modern],
            tools: &["echo", "get-sum", "trigger-sampling-request", "get-roots-list"],
            steps: everything_web,
            deviations: &[
                (LEGACY, "restarted", NO_404, Shows::Always),
                (SECOND, "restarted", NO_404, Shows::Always),
                (FIRST, "restarted", NO_404, Shows::Always),
            ],
            faults: &[],
            folder: installed.scratch.join("web"),
            web: Some(Web {
                sessions: true,
                renews: false,
                json: false,
                store: true,
                ended: "Received session termination request",
                restarted: |_, _| vec![call("restarted", "get-sum", json!({ "a": 2, "b": 2 }), Expect::text("is 4."))],
                cuts: everything_cuts,
            }),
        },
        python("mcp 2.3.0 (Python), HTTP", "web2.py", &[]),
        python("mcp 2.3.0 (Python), HTTP store", "web2.py", &["--store"]),
        python("mcp 2.3.0 (Python), HTTP JSON", "web2.py", &["--json"]),
        python("mcp 2.3.0 (Python), HTTP stateless", "web2.py", &["--stateless"]),
        python("mcp 2.3.0 (Python), HTTP stateless JSON", "web2.py", &["--stateless", "--json"]),
        python("mcp 1.30.0 (Python), HTTP", "web1.py", &[]),
        python("mcp 1.30.0 (Python), HTTP store", "web1.py", &["--store"]),
        python("mcp 1.30.0 (Python), HTTP JSON", "web1.py", &["--json"]),
        python("mcp 1.30.0 (Python), HTTP stateless", "web1.py", &["--stateless"]),
        rmcp("rmcp 3.9.0 (Rust), HTTP", &[]),
        rmcp("rmcp 3.9.0 (Rust), HTTP stateless", &["--stateless"]),
        rmcp("rmcp 3.9.0 (Rust), HTTP stateless JSON", &["--stateless", "--json"]),
    ]
}

fn everything_web(server: &Server, revision: &str) -> Vec<Step> {
    let mut steps = everything(server, revision);
    steps.retain(|step| step.name != "changed");
    let long = "trigger-long-running-operation";
    steps.push(step("timeout", Does::TimeOut(long, json!({ "duration": 60, "steps": 1 }))));
    steps
}

fn everything_cuts(_: &Web, _: &str) -> Vec<Cut> {
    let arguments = json!({ "duration": 0.9, "steps": 3 });
    vec![Cut { name: "resumed", tool: "trigger-long-running-operation", arguments, outcome: Ok("Steps: 3") }]
}

fn python(server: &Server, revision: &str) -> Vec<Step> {
    let Some(web) = server.web else { return Vec::new() };
    // What is known to be in vain need not take long.
    let patience = if web.json { 1 } else { 5 };
    let mut steps = offered(revision);
    steps.retain(|step| step.name != "changed");
    if web.json {
        // A JSON text has no room for it.
        replace(&mut steps, call("progress", "count", json!({ "steps": 3 }), Expect::text("counted to 3")));
        replace(&mut steps, call("cancelled", "cancelled", json!({ "within": patience }), Expect::text("1 cancelled")));
    }
    if revision != MODERN && (web.json || !web.sessions) {
        let refused = [("form", "greet"), ("declined", "greet"), ("model", "sample"), ("roots", "roots")];
        for (name, tool) in refused {
            replace(&mut steps, step(name, Does::Refused(tool, json!({}), "no back-channel")));
        }
    }
    steps.push(call("unknown", "no-such-tool", json!({}), Expect::text("Unknown tool").fails()));
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
    if web.sessions && revision != MODERN {
        steps.push(call("forget", "forget", json!({}), Expect::text("forgot 1")));
        steps.push(call("a new session", "add", json!({ "a": 2, "b": 2 }), Expect::text("4")));
    }
    fit(&mut steps, revision);
    steps
}

/// What asks the client.
const ASKING: [&str; 4] = ["form", "declined", "model", "roots"];

/// This SDK waits for ever for what it has asked where nobody can hear it.
fn python1(server: &Server, revision: &str) -> Vec<Step> {
    let mut steps = python(server, revision);
    steps.retain(|step| server.web.is_some_and(|web| web.sessions && !web.json) || !ASKING.contains(&step.name));
    steps
}

fn rmcp(server: &Server, revision: &str) -> Vec<Step> {
    let Some(web) = server.web else { return Vec::new() };
    let mut steps = offered(revision);
    let hears = web.sessions || revision == MODERN;
    // Where every request is a server of its own, the answer to a question finds nobody.
    steps.retain(|step| step.name != "changed" && (hears || !ASKING.contains(&step.name)));
    steps.push(step("unknown", Does::Refused("no-such-tool", json!({}), "no-such-tool")));
    steps.push(step("timeout", Does::TimeOut("wait", json!({}))));
    steps.push(call("timeout told", "cancelled", json!({}), Expect::text("1 cancelled")));
    if hears {
        steps.push(step("changed", Does::Changed("note")));
    }
    fit(&mut steps, revision);
    steps
}

/// Another step of the same name, in the same place.
fn replace(steps: &mut [Step], other: Step) {
    if let Some(step) = steps.iter_mut().find(|step| step.name == other.name) {
        *step = other;
    }
}

fn python_restarted(web: &Web, revision: &str) -> Vec<Step> {
    let mut steps = vec![call("restarted", "add", json!({ "a": 2, "b": 3 }), Expect::text("5"))];
    if web.sessions || revision == MODERN {
        steps.push(step("changed still", Does::Regained("note")));
    }
    steps
}

fn python_cuts(web: &Web, revision: &str) -> Vec<Cut> {
    let cut = |name, tool, outcome| Cut { name, tool, arguments: json!({ "steps": 3, "pause": 0.3 }), outcome };
    match web {
        Web { json: true, .. } => Vec::new(),
        Web { store: true, .. } if revision != MODERN => vec![cut("resumed", "tally", Ok("counted to 3"))],
        _ if revision == MODERN => vec![cut("repeated", "count", Ok("counted to 3")), cut("lost", "tally", Err(LOST))],
        // There is no more of a stream without a cursor, and what a call does twice is for the application to say.
        _ => vec![cut("lost", "tally", Err(LOST))],
    }
}

/// One server, and how it is reached.
struct Visit<'a> {
    server: &'a Server,
    web: &'a Web,
    policy: Policy,
    revision: &'static str,
    connect: Connect,
}

/// Runs one server with one policy over one adapter.
pub fn run(server: &Server, policy: Policy, revision: &'static str, adapter: &'static str, connect: Connect) -> Row {
    let mut row = Row::new(server.name, "server", revision, adapter);
    let Some(web) = &server.web else { return row };
    let mut listening = match Listening::start(&server.command, &server.env) {
        Ok(listening) => listening,
        Err(why) => {
            row.note(server, "start", Err(why));
            return row;
        }
    };
    let visit = Visit { server, web, policy, revision, connect };
    match visit.connect(listening.url(), None) {
        Ok(session) => visit.converse(session, &mut listening, &mut row),
        Err(why) => row.note(server, "connect", Err(why)),
    }
    leave(server, &mut listening, &mut row);
    row
}

/// Tries to reach one server over one adapter with a policy that it refuses.
pub fn refuse(server: &Server, policy: Policy, adapter: &'static str, connect: Connect) -> Row {
    let mut row = Row::new(server.name, "server", "none", adapter);
    let mut listening = match Listening::start(&server.command, &server.env) {
        Ok(listening) => listening,
        Err(why) => {
            row.note(server, "start", Err(why));
            return row;
        }
    };
    let plan =
        Plan { place: Place::Url(listening.url()), policy, revision: MODERN, verdict: None, root: server.root() };
    let refused = match connect(plan) {
        Ok(session) => Err(format!("it speaks {}", session.revision())),
        Err(why) => Ok(why),
    };
    row.note(server, "refused", refused);
    leave(server, &mut listening, &mut row);
    row
}

/// Ends a server, which no connection of ours may keep from it.
fn leave(server: &Server, listening: &mut Listening, row: &mut Row) {
    let watch = Watch::these(vec![listening.id()]);
    row.note(server, "exit", listening.end());
    row.note(server, "no process", watch.gone());
    row.stderr = listening.lines();
}

impl Visit<'_> {
    fn connect(&self, url: String, verdict: Option<Verdict>) -> Result<Box<dyn Session>, String> {
        let (policy, revision, root) = (self.policy, self.revision, self.server.root());
        (self.connect)(Plan { place: Place::Url(url), policy, revision, verdict, root })
    }

    /// All that is done with a server, in several sessions.
    fn converse(&self, mut session: Box<dyn Session>, listening: &mut Listening, row: &mut Row) {
        let (server, mut sessions) = (self.server, usize::from(self.web.renews));
        talk(server, self.policy, self.revision, session.as_mut(), Some(listening), row);
        let (verdict, ear) = (session.verdict(), session.ear().clone());
        complaints(server, &ear.diagnostics(), row);
        match listening.restart() {
            Ok(()) => {
                for step in (self.web.restarted)(self.web, self.revision) {
                    let mut done = step.run(session.as_mut(), Some(&mut *listening));
                    // If another message hears first that the session is gone, a call that is on its way may have run for all that the client
                    // knows. Whoever made it decides, and these may run twice.
                    if done.as_ref().is_err_and(|why| *why == CallError::SessionEnded.to_string()) {
                        done = step.run(session.as_mut(), Some(&mut *listening));
                    }
                    row.note(server, step.name, done);
                }
            }
            Err(why) => row.note(server, "restart", Err(why)),
        }
        row.close(server, session);
        sessions += 1;
        row.note(server, "verdict", self.anew(listening.url(), verdict));
        for cut in (self.web.cuts)(self.web, self.revision) {
            sessions += 1;
            row.note(server, cut.name, self.cut(&cut, listening));
        }
        let ended = if self.web.sessions && self.revision != MODERN {
            listening.said(self.web.ended, sessions)
        } else {
            let lines = listening.lines();
            match lines.iter().find(|line| line.starts_with(self.web.ended)) {
                None => Ok("none".to_owned()),
                Some(line) => Err(line.clone()),
            }
        };
        row.note(server, "sessions ended", ended);
    }

    /// Connects with what was found out, so that nothing is tried that need not be.
    fn anew(&self, url: String, verdict: Option<Verdict>) -> Result<String, String> {
        let known = verdict.ok_or("none")?;
        let mut session = self.connect(url, Some(known))?;
        let (revision, listed, ear) = (session.revision(), session.tools(), session.ear().clone());
        session.close()?;
        listed?;
        match ear.diagnostics() {
            complaints if revision == self.revision && complaints.is_empty() => Ok(known.version.to_string()),
            complaints => Err(format!("{revision}, {complaints:?}")),
        }
    }

    /// Makes a call through a relay, and cuts all connections at the first progress.
    fn cut(&self, cut: &Cut, listening: &Listening) -> Result<String, String> {
        let relay = Relay::to(listening.port()).map_err(|why| why.to_string())?;
        let mut session = self.connect(relay.url(), None)?;
        // It learns which tools may be called twice.
        session.tools()?;
        let mut once = true;
        let answer = session.call_told(cut.tool, &cut.arguments, None, &mut |_| {
            if once {
                relay.cut();
            }
            once = false;
        });
        let reconnected = session.ear().reconnected();
        session.close()?;
        match (&answer, cut.outcome) {
            _ if once => Err(format!("it was not cut: {answer:?}")),
            (Ok(answer), Ok(text)) if answer.text.contains(text) => {
                Ok(format!("{:?} after {reconnected} reconnections", answer.text))
            }
            (Err(why), Err(text)) if why.contains(text) => Ok(why.clone()),
            _ => Err(format!("{answer:?} after {reconnected} reconnections, expected {:?}", cut.outcome)),
        }
    }
}
