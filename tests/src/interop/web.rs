//! The servers for our client over HTTP, with the steps of each.

use std::ffi::OsString;
use std::path::PathBuf;

use mcp_proto::CallError;
use mcp_proto::client::{Policy, Verdict};
use serde_json::Value;

use super::areas::Reaches;
use super::listening::{Listening, PORT, Transport};
use super::processes::Watch;
use super::relay::Relay;
use super::servers::{
    self, CODE_0, FAILED, LATE, LEGACY, LEGACY_ONLY, MODERN, NO_LISTEN, NO_SUBSCRIBE, OFFERED, OLDEST, Server, UNNAMED,
    UNSUBSCRIBED,
};
use super::session::Session;
use super::setup::{Installed, programs};
use super::steps::{Step, complaints, talk};
use super::web_steps::{
    everything_cuts, everything_restarted, everything_web, python, python_cuts, python_restarted, python1, rmcp,
    typescript,
};
use super::{Deviation, Place, Plan, Row, Shows};
use crate::adapters::Adapter;

/// The properties of a server over HTTP.
#[derive(Clone, Copy, Debug)]
pub struct Web {
    /// The only transport that it has.
    pub transport: Transport,
    /// Up to 2025-11-25 it has sessions: it keeps state for its clients.
    pub sessions: bool,
    /// It responds with 404 to a request of an unknown session, as a restarted server must.
    pub renews: bool,
    /// It responds with JSON instead of an event stream.
    pub json: bool,
    /// It can resume a stream that was cut.
    pub store: bool,
    /// The prefix of the line that reports the end of a session by the client.
    pub ended: &'static str,
    /// Returns the steps after it was killed and restarted, for a revision.
    pub restarted: fn(&Web, &str) -> Vec<Step>,
    /// Returns calls during which every connection is cut at the first progress, for a revision.
    pub cuts: fn(&Web, &str) -> Vec<Cut>,
}

impl Web {
    pub(super) fn reaches(&self, revision: &str) -> Reaches {
        match revision {
            MODERN if self.json => Reaches::BesideCalls,
            MODERN => Reaches::Always,
            _ if !self.sessions => Reaches::Never,
            _ if self.json => Reaches::BesideCalls,
            _ => Reaches::Always,
        }
    }
}

/// A call during which every connection is cut.
#[derive(Clone, Debug)]
pub struct Cut {
    /// The name of the step in the table.
    pub name: &'static str,
    /// The tool, which reports progress.
    pub tool: &'static str,
    /// Its arguments.
    pub arguments: Value,
    /// The text that the result, or otherwise the error, contains.
    pub outcome: Result<&'static str, &'static str>,
}

/// The first revision with this transport.
const FIRST: &str = "2025-03-26";
/// The first revision whose requests name it, and which has requests to the user.
pub(super) const SECOND: &str = "2025-06-18";

const UNHEARD: &str = "where it answers with JSON, it does not notice that the client has left";
const DEAF: &[Deviation] =
    &[(MODERN, "cancelled", UNHEARD, Shows::Always), (MODERN, "timeout told", UNHEARD, Shows::Always)];
/// If every request is a separate server, it does not know the call of a notification either.
const DEAF_ALWAYS: &[Deviation] = &[
    (MODERN, "cancelled", UNHEARD, Shows::Always),
    (MODERN, "timeout told", UNHEARD, Shows::Always),
    (LEGACY, "cancelled", UNHEARD, Shows::Always),
    (LEGACY, "timeout told", UNHEARD, Shows::Always),
    (FIRST, "cancelled", UNHEARD, Shows::Always),
    (FIRST, "timeout told", UNHEARD, Shows::Always),
];
/// The last one concerns a revision that is not reached without sessions.
const TYPESCRIPT1: &[Deviation] = &[
    (LEGACY, "missing", UNNAMED, Shows::Always),
    (FIRST, "missing", UNNAMED, Shows::Always),
    (SECOND, "missing", UNNAMED, Shows::Always),
];
/// The last four concern sessions, and the last two a revision that only one variant reaches.
const PYTHON1: &[Deviation] = &[
    (LEGACY, "missing", CODE_0, Shows::Always),
    (FIRST, "missing", CODE_0, Shows::Always),
    (LEGACY, "updated", NO_SUBSCRIBE, Shows::Always),
    (FIRST, "updated", NO_SUBSCRIBE, Shows::Always),
    (SECOND, "missing", CODE_0, Shows::Always),
    (SECOND, "updated", NO_SUBSCRIBE, Shows::Always),
];
/// The last three concern sessions.
const FASTMCP: &[Deviation] = &[
    (MODERN, "changed", NO_LISTEN, Shows::Always),
    (MODERN, "updated", NO_LISTEN, Shows::Always),
    (MODERN, "grown", NO_LISTEN, Shows::Always),
    (MODERN, "changed still", NO_LISTEN, Shows::Always),
    (LEGACY, "gate", FAILED, Shows::Always),
    (LEGACY, "updated", UNSUBSCRIBED, Shows::Always),
    (SECOND, "updated", UNSUBSCRIBED, Shows::Always),
    (FIRST, "updated", UNSUBSCRIBED, Shows::Always),
];
/// Those of a server over stdio that it has over HTTP+SSE too.
const UNNAMED_SSE: &[Deviation] =
    &[(LEGACY, "missing", UNNAMED, Shows::Always), (OLDEST, "missing", UNNAMED, Shows::Always)];
const FASTMCP_SSE: &[Deviation] = &[
    (LEGACY, "gate", FAILED, Shows::Always),
    (LEGACY, "updated", UNSUBSCRIBED, Shows::Always),
    (OLDEST, "updated", UNSUBSCRIBED, Shows::Always),
];
/// The tools that `server-everything` must list.
const EVERYTHING: &[&str] = &["echo", "get-sum", "trigger-sampling-request", "get-roots-list"];
/// 404 means that a session has ended; 400 may mean anything.
const NO_404: &str = "it answers 400 to a session that it does not know, where 404 makes a client begin a new one";

const ALL: &[(Policy, &str)] = &[
    (Policy::Auto, MODERN),
    (Policy::Modern, MODERN),
    (Policy::Legacy, LEGACY),
    (Policy::Legacy, SECOND),
    (Policy::Legacy, FIRST),
];

/// The policies of a server that supports only legacy revisions.
const LEGACY_ALL: &[(Policy, &str)] =
    &[(Policy::Auto, LEGACY), (Policy::Legacy, LEGACY), (Policy::Legacy, SECOND), (Policy::Legacy, FIRST)];
const LEGACY_SOME: &[(Policy, &str)] = &[(Policy::Auto, LEGACY), (Policy::Legacy, FIRST)];

const SOME: &[(Policy, &str)] = &[(Policy::Auto, MODERN), (Policy::Legacy, LEGACY), (Policy::Legacy, FIRST)];

/// Returns the table.
pub fn servers(installed: &Installed) -> Vec<Server> {
    // A server that this project writes with another SDK.
    let server = |name: &'static str, program: &[OsString], flags: &'static [&'static str]| {
        let has = |flag: &str| flags.contains(&flag);
        Server {
            name,
            command: program.iter().cloned().chain([PORT.into()]).chain(flags.iter().map(OsString::from)).collect(),
            env: Vec::new(),
            reached: match flags {
                [] => ALL,
                ["--sse"] => LEGACY_ONLY,
                _ => SOME,
            },
            refuses: if has("--sse") { &[Policy::Modern] } else { &[] },
            tools: OFFERED,
            steps: python,
            deviations: &[],
            faults: &[],
            folder: installed.scratch.join("web"),
            web: Some(Web {
                transport: match flags {
                    ["--sse"] => Transport::Sse,
                    ["--web-socket"] => Transport::WebSocket,
                    _ => Transport::Streamable,
                },
                sessions: !has("--stateless"),
                renews: !has("--web-socket"),
                json: has("--json"),
                store: has("--store"),
                ended: match flags {
                    ["--sse"] => "GET ended",
                    ["--web-socket"] => "WebSocket ended",
                    _ => "DELETE 200",
                },
                restarted: python_restarted,
                cuts: python_cuts,
            }),
        }
    };
    let program = |interpreter: &PathBuf, program: &str| {
        [interpreter.into(), "-B".into(), programs().join("python").join(program).into()]
    };
    let python = |name, flags: &'static [&'static str]| Server {
        deviations: match flags {
            ["--json"] => DEAF,
            ["--stateless", "--json"] => DEAF_ALWAYS,
            _ => &[],
        },
        ..server(name, &program(&installed.python2, "web2.py"), flags)
    };
    let older = |name, flags: &'static [&'static str]| Server {
        reached: match flags {
            [] | ["--web-socket"] => LEGACY_ALL,
            ["--sse"] => LEGACY_ONLY,
            _ => LEGACY_SOME,
        },
        refuses: if matches!(flags, [] | ["--sse"] | ["--web-socket"]) { &[Policy::Modern] } else { &[] },
        steps: python1,
        deviations: match flags {
            [] | ["--web-socket"] => PYTHON1,
            ["--sse"] => servers::PYTHON1,
            ["--stateless"] => &PYTHON1[..2],
            _ => &PYTHON1[..4],
        },
        faults: if matches!(flags, ["--sse"] | ["--web-socket"]) { &[LATE] } else { &[] },
        ..server(name, &program(&installed.python1, "web1.py"), flags)
    };
    let fastmcp = |name, flags: &'static [&'static str]| Server {
        steps: typescript,
        deviations: match flags {
            [] => FASTMCP,
            ["--sse"] => FASTMCP_SSE,
            _ => &FASTMCP[..5],
        },
        ..server(name, &program(&installed.fastmcp, "webfast.py"), flags)
    };
    let rmcp = |name, flags: &'static [&'static str]| {
        let mut server = server(name, &[installed.rmcp.clone().into(), "listen".into()], flags);
        server.steps = rmcp;
        server.web = server.web.map(|web| Web { store: web.sessions, ended: "DELETE 20", ..web });
        server
    };
    let node = |name, script: &str, flags: &'static [&'static str]| Server {
        steps: typescript,
        ..server(name, &[installed.node.clone().into(), installed.modules.join(script).into()], flags)
    };
    let older_node = |name, flags: &'static [&'static str]| Server {
        reached: match flags {
            [] | ["--web-socket"] => LEGACY_ALL,
            ["--sse"] => LEGACY_ONLY,
            _ => LEGACY_SOME,
        },
        refuses: if matches!(flags, [] | ["--sse"] | ["--web-socket"]) { &[Policy::Modern] } else { &[] },
        deviations: match flags {
            [] | ["--web-socket"] => TYPESCRIPT1,
            ["--sse"] => UNNAMED_SSE,
            _ => &TYPESCRIPT1[..2],
        },
        ..node(name, "server1.mjs", flags)
    };
    let everything_js = installed.modules.join("node_modules/@modelcontextprotocol/server-everything/dist/index.js");
    vec![
        Server {
            name: "server-everything 2026.8.31, HTTP",
            command: vec![installed.node.clone().into(), everything_js.clone().into(), "streamableHttp".into()],
            env: vec![("PORT", PORT.into())],
            reached: LEGACY_ALL,
            refuses: &[Policy::Modern],
            tools: EVERYTHING,
            steps: everything_web,
            deviations: &[
                (LEGACY, "restarted", NO_404, Shows::Always),
                (SECOND, "restarted", NO_404, Shows::Always),
                (FIRST, "restarted", NO_404, Shows::Always),
                (LEGACY, "missing", UNNAMED, Shows::Always),
                (SECOND, "missing", UNNAMED, Shows::Always),
                (FIRST, "missing", UNNAMED, Shows::Always),
            ],
            faults: &[],
            folder: installed.scratch.join("web"),
            web: Some(Web {
                transport: Transport::Streamable,
                sessions: true,
                renews: false,
                json: false,
                store: true,
                ended: "Received session termination request",
                restarted: everything_restarted,
                cuts: everything_cuts,
            }),
        },
        Server {
            name: "server-everything 2026.8.31, HTTP+SSE",
            command: vec![installed.node.clone().into(), everything_js.into(), "sse".into()],
            env: vec![("PORT", PORT.into())],
            reached: LEGACY_ONLY,
            refuses: &[Policy::Modern],
            tools: EVERYTHING,
            steps: everything_web,
            deviations: UNNAMED_SSE,
            faults: &[],
            folder: installed.scratch.join("web"),
            web: Some(Web {
                transport: Transport::Sse,
                sessions: true,
                renews: true,
                json: false,
                store: false,
                ended: "Client Disconnected: ",
                restarted: everything_restarted,
                cuts: everything_cuts,
            }),
        },
        older_node("sdk 1.32.2 (TypeScript), HTTP", &[]),
        older_node("sdk 1.32.2 (TypeScript), HTTP+SSE", &["--sse"]),
        older_node("sdk 1.32.2 (TypeScript), WebSocket", &["--web-socket"]),
        older_node("sdk 1.32.2 (TypeScript), HTTP stateless", &["--stateless"]),
        node("server 2.4.0 (TypeScript), HTTP", "server2.mjs", &[]),
        node("server 2.4.0 (TypeScript), HTTP stateless", "server2.mjs", &["--stateless"]),
        python("mcp 2.3.0 (Python), HTTP", &[]),
        python("mcp 2.3.0 (Python), HTTP+SSE", &["--sse"]),
        python("mcp 2.3.0 (Python), HTTP store", &["--store"]),
        python("mcp 2.3.0 (Python), HTTP JSON", &["--json"]),
        python("mcp 2.3.0 (Python), HTTP stateless", &["--stateless"]),
        python("mcp 2.3.0 (Python), HTTP stateless JSON", &["--stateless", "--json"]),
        older("mcp 1.30.0 (Python), HTTP", &[]),
        older("mcp 1.30.0 (Python), HTTP+SSE", &["--sse"]),
        older("mcp 1.30.0 (Python), WebSocket", &["--web-socket"]),
        older("mcp 1.30.0 (Python), HTTP store", &["--store"]),
        older("mcp 1.30.0 (Python), HTTP JSON", &["--json"]),
        older("mcp 1.30.0 (Python), HTTP stateless", &["--stateless"]),
        fastmcp("fastmcp 4.2.3 (Python), HTTP", &[]),
        fastmcp("fastmcp 4.2.3 (Python), HTTP+SSE", &["--sse"]),
        fastmcp("fastmcp 4.2.3 (Python), HTTP stateless", &["--stateless"]),
        rmcp("rmcp 3.11.0 (Rust), HTTP", &[]),
        rmcp("rmcp 3.11.0 (Rust), HTTP stateless", &["--stateless"]),
        rmcp("rmcp 3.11.0 (Rust), HTTP stateless JSON", &["--stateless", "--json"]),
    ]
}

/// One server, and how to connect to it.
struct Visit<'a> {
    server: &'a Server,
    web: &'a Web,
    policy: Policy,
    revision: &'static str,
    adapter: Adapter,
}

/// Runs one server with one policy over one adapter.
pub fn run(server: &Server, policy: Policy, revision: &'static str, adapter: Adapter) -> Row {
    let mut row = Row::new(server.name, "server", revision, adapter);
    let Some(web) = &server.web else { return row };
    let mut listening = match Listening::start(&server.command, &server.env) {
        Ok(listening) => listening,
        Err(why) => {
            row.note(server, "start", Err(why));
            return row;
        }
    };
    let visit = Visit { server, web, policy, revision, adapter };
    match visit.connect(listening.url(web.transport), None) {
        Ok(session) => visit.converse(session, &mut listening, &mut row),
        Err(why) => row.note(server, "connect", Err(why)),
    }
    leave(server, &mut listening, &mut row);
    row
}

/// Tries to connect to a server with a policy that it refuses.
pub fn refuse(server: &Server, policy: Policy, adapter: Adapter) -> Row {
    let mut row = Row::new(server.name, "server", "none", adapter);
    let Some(web) = &server.web else { return row };
    let mut listening = match Listening::start(&server.command, &server.env) {
        Ok(listening) => listening,
        Err(why) => {
            row.note(server, "start", Err(why));
            return row;
        }
    };
    let place = Place::Url(listening.url(web.transport));
    let plan = Plan { place, policy, revision: MODERN, verdict: None, root: server.root() };
    let refused = match Session::connect(adapter, plan) {
        Ok(session) => Err(format!("it speaks {}", session.revision())),
        Err(why) => Ok(why),
    };
    row.note(server, "refused", refused);
    leave(server, &mut listening, &mut row);
    row
}

/// Ends a server, which no connection of ours may delay.
fn leave(server: &Server, listening: &mut Listening, row: &mut Row) {
    let watch = Watch::these(vec![listening.id()]);
    row.note(server, "exit", listening.end());
    row.note(server, "no process", watch.gone());
    row.stderr = listening.lines();
}

impl Visit<'_> {
    fn connect(&self, url: String, verdict: Option<Verdict>) -> Result<Session, String> {
        let (policy, revision, root) = (self.policy, self.revision, self.server.root());
        Session::connect(self.adapter, Plan { place: Place::Url(url), policy, revision, verdict, root })
    }

    /// Takes all steps with a server, in several sessions.
    fn converse(&self, session: Session, listening: &mut Listening, row: &mut Row) {
        let (server, mut sessions) = (self.server, usize::from(self.web.renews));
        talk(server, self.policy, self.revision, &session, Some(listening), row);
        let (verdict, ear) = (session.verdict(), session.ear().clone());
        complaints(server, &ear.diagnostics(), row);
        // A WebSocket ends with its server.
        let outlives = self.web.transport != Transport::WebSocket;
        match if outlives { listening.restart() } else { Ok(()) } {
            Ok(()) => {
                for step in (self.web.restarted)(self.web, self.revision) {
                    let mut done = step.run(&session, Some(&mut *listening));
                    // If another message first learns that the session has ended, the client cannot
                    // know whether a pending call has run. The caller decides, and these calls may
                    // run twice.
                    if done.as_ref().is_err_and(|why| *why == CallError::SessionEnded.to_string()) {
                        done = step.run(&session, Some(&mut *listening));
                    }
                    row.note(server, step.name, done);
                }
            }
            Err(why) => row.note(server, "restart", Err(why)),
        }
        row.close(server, session);
        sessions += 1;
        row.note(server, "verdict", self.connect_again(listening.url(self.web.transport), verdict));
        for cut in (self.web.cuts)(self.web, self.revision) {
            // Over HTTP+SSE, a session ends with its stream. A call that is repeated needs another.
            let is_renewed = self.web.transport == Transport::Sse && cut.outcome.is_ok();
            sessions += if is_renewed { 2 } else { 1 };
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

    /// Connects with the findings of an earlier client, so that no unnecessary probe is made.
    fn connect_again(&self, url: String, verdict: Option<Verdict>) -> Result<String, String> {
        let known = verdict.ok_or("none")?;
        let session = self.connect(url, Some(known))?;
        let (revision, listed, ear) = (session.revision(), session.tools(), session.ear().clone());
        session.close()?;
        listed?;
        match ear.diagnostics() {
            complaints
                if revision == self.revision
                    && known.transport == self.web.transport.in_verdict()
                    && complaints.is_empty() =>
            {
                Ok(format!("{} over {:?}", known.version, known.transport))
            }
            complaints => Err(format!("{known:?}, {revision}, {complaints:?}")),
        }
    }

    /// Makes a call through a relay, and cuts all connections at the first progress.
    fn cut(&self, cut: &Cut, listening: &Listening) -> Result<String, String> {
        let relay = Relay::to(listening.port()).map_err(|why| why.to_string())?;
        let session = self.connect(relay.url(self.web.transport), None)?;
        // The client learns which tools may be called twice.
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
        // Over HTTP+SSE, the status of another message may be the first sign that the session has
        // ended.
        let is_sse = self.web.transport == Transport::Sse;
        match (&answer, cut.outcome) {
            _ if once => Err(format!("it was not cut: {answer:?}")),
            (Ok(answer), Ok(text)) if answer.text.contains(text) => {
                Ok(format!("{:?} after {reconnected} reconnections", answer.text))
            }
            (Err(why), Err(text)) if why.contains(text) || is_sse && *why == CallError::SessionEnded.to_string() => {
                Ok(why.clone())
            }
            _ => Err(format!("{answer:?} after {reconnected} reconnections, expected {:?}", cut.outcome)),
        }
    }
}
