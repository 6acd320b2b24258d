//! The clients that use our server over HTTP: the programs of [`clients`](super::clients), with a
//! URL, over both transports. Beyond the steps over stdio they resume streams that our server
//! closes or that are cut, and continue after our server was killed and restarted.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Instant;

use super::clients::{BURST, Client, LIMIT, LOOK, OLDER, Ours, Reach, STEPS, clients, has, verdict};
use super::listening::{Listening, PORT, Transport};
use super::processes::Watch;
use super::relay::Relay;
use super::servers::{LEGACY, MODERN, OLDEST};
use super::setup::{Installed, SERVER};
use super::web::SECOND;
use super::{Deviation, Mark, Row, Shows, judge};
use crate::adapters::Adapter;

/// The further steps over HTTP, in order, before the last of [`STEPS`].
const WEB: &[&str] = &["resumed", "cut", "changed again", "gone", "restarted", "changed still"];
/// Steps that need a session in eras with sessions: without one, nothing links a cancellation to
/// its request.
const IN_SESSION: &[&str] = &[
    "logging",
    "updated",
    "consult",
    "page",
    "page told",
    "page refused",
    "form",
    "declined",
    "model",
    "roots",
    "cancel",
    "cancelled",
    "changed",
    "resumed",
    "cut",
    "changed again",
    "gone",
    "changed still",
];

/// The line with which a program requests that our server is killed and restarted. It continues at
/// the next line of its standard input.
const RESTART: &str = "restart";
/// The line with which it requests that all its connections are cut.
const CUT: &str = "cut";

/// As over stdio.
const DROPPED: &[Deviation] = &[(MODERN, "burst", BURST, Shows::AtTimes), (LEGACY, "burst", BURST, Shows::AtTimes)];

const CLOSED: &str = "it cancels a subscription also after it has closed its stream";

/// As over stdio.
const NEWER: &[Deviation] = &[(LEGACY, "connect", OLDER, Shows::Always)];

const BOTH: &[Reach] = &[
    Reach { mode: "auto", ours: Ours::Whole, revision: MODERN },
    Reach { mode: "modern", ours: Ours::Whole, revision: MODERN },
    Reach { mode: "auto", ours: Ours::Older, revision: LEGACY },
    Reach { mode: "legacy", ours: Ours::Whole, revision: LEGACY },
    Reach { mode: "stateless", ours: Ours::Stateless, revision: LEGACY },
];
const OLD: &[Reach] = &[
    Reach { mode: "legacy", ours: Ours::Whole, revision: LEGACY },
    Reach { mode: "legacy", ours: Ours::Only(SECOND), revision: SECOND },
    Reach { mode: "stateless", ours: Ours::Stateless, revision: LEGACY },
];

/// Over HTTP+SSE, nothing lies between a notification and the response.
const DROPPED_SSE: &[Deviation] = &[
    (LEGACY, "burst", BURST, Shows::AtTimes),
    (OLDEST, "burst", BURST, Shows::AtTimes),
    (LEGACY, "resumed", BURST, Shows::AtTimes),
    (OLDEST, "resumed", BURST, Shows::AtTimes),
];
/// Nothing lies between them on a WebSocket either.
const DROPPED_WEB_SOCKET: &[Deviation] = &[
    (LEGACY, "burst", BURST, Shows::AtTimes),
    (SECOND, "burst", BURST, Shows::AtTimes),
    (OLDEST, "burst", BURST, Shows::AtTimes),
];
/// HTTP+SSE has one stream for everything, and a session ends with it.
const NO_RESUMPTION: &[&str] = &["cut", "changed again"];
/// HTTP+SSE has only older revisions. A client that tries a newer one first is refused, and uses
/// `initialize`.
const BOTH_SSE: &[Reach] = &[
    Reach { mode: "auto", ours: Ours::Whole, revision: LEGACY },
    Reach { mode: "legacy", ours: Ours::Whole, revision: LEGACY },
    Reach { mode: "legacy", ours: Ours::Only(OLDEST), revision: OLDEST },
];
const OLD_SSE: &[Reach] = &[
    Reach { mode: "legacy", ours: Ours::Whole, revision: LEGACY },
    Reach { mode: "legacy", ours: Ours::Only(OLDEST), revision: OLDEST },
];
/// A WebSocket carries every revision. These clients are of the revisions with `initialize`.
const OLD_WEB_SOCKET: &[Reach] = &[
    Reach { mode: "legacy", ours: Ours::Whole, revision: LEGACY },
    Reach { mode: "legacy", ours: Ours::Only(SECOND), revision: SECOND },
    Reach { mode: "legacy", ours: Ours::Only(OLDEST), revision: OLDEST },
];

/// Returns the table.
pub fn callers(installed: &Installed) -> Vec<Client> {
    let mut callers = clients(installed);
    for caller in &mut callers {
        caller.web = Some(Transport::Streamable);
        let known: (_, &[_], &[_], _) = match caller.name {
            "client 2.4.0 (TypeScript)" => ("client 2.4.0 (TypeScript), HTTP", &[], DROPPED, BOTH),
            "sdk 1.32.2 (TypeScript)" => ("sdk 1.32.2 (TypeScript), HTTP", &[], DROPPED, OLD),
            "mcp 2.3.0 (Python)" => ("mcp 2.3.0 (Python), HTTP", &[], &[], BOTH),
            "mcp 1.30.0 (Python)" => ("mcp 1.30.0 (Python), HTTP", &[], &[], OLD),
            "fastmcp 4.2.3 (Python)" => ("fastmcp 4.2.3 (Python), HTTP", &[], &[], BOTH),
            // It opens a new session by itself.
            _ => ("rmcp 3.11.0 (Rust), HTTP", &["no fault", "gone"], NEWER, BOTH),
        };
        (caller.name, caller.lacks, caller.deviations, caller.reached) = known;
        if caller.name.starts_with("client 2.") {
            caller.faults = &[("unknown-cancel", CLOSED)];
        }
    }
    callers.extend(clients(installed).into_iter().filter_map(over_sse));
    callers.extend(clients(installed).into_iter().filter_map(over_web_socket));
    callers
}

/// Returns the entry of a client over a WebSocket. `None` if it does not have that transport.
fn over_web_socket(mut client: Client) -> Option<Client> {
    client.name = match client.name {
        "sdk 1.32.2 (TypeScript)" => "sdk 1.32.2 (TypeScript), WebSocket",
        "mcp 1.30.0 (Python)" => "mcp 1.30.0 (Python), WebSocket",
        _ => return None,
    };
    (client.deviations, client.reached) = (DROPPED_WEB_SOCKET, OLD_WEB_SOCKET);
    // Nothing of it outlives its connection.
    (client.web, client.lacks) = (Some(Transport::WebSocket), WEB);
    Some(client)
}

/// Returns the entry of a client over HTTP+SSE. `None` if it does not have that transport.
fn over_sse(mut client: Client) -> Option<Client> {
    let known: (_, &[_], _) = match client.name {
        "client 2.4.0 (TypeScript)" => ("client 2.4.0 (TypeScript), HTTP+SSE", DROPPED_SSE, BOTH_SSE),
        "sdk 1.32.2 (TypeScript)" => ("sdk 1.32.2 (TypeScript), HTTP+SSE", DROPPED_SSE, OLD_SSE),
        "mcp 2.3.0 (Python)" => ("mcp 2.3.0 (Python), HTTP+SSE", &[], BOTH_SSE),
        "mcp 1.30.0 (Python)" => ("mcp 1.30.0 (Python), HTTP+SSE", &[], OLD_SSE),
        "fastmcp 4.2.3 (Python)" => ("fastmcp 4.2.3 (Python), HTTP+SSE", &[], BOTH_SSE),
        _ => return None,
    };
    (client.name, client.deviations, client.reached) = known;
    (client.web, client.lacks) = (Some(Transport::Sse), NO_RESUMPTION);
    Some(client)
}

/// Runs one client with our server over one adapter.
pub fn run(client: &Client, reach: Reach, adapter: Adapter, installed: &Installed) -> Row {
    let mut row = Row::new(client.name, "client", reach.revision, adapter);
    let Some(transport) = client.web else { return row };
    let mut note = |name: &str, result| {
        row.steps.push((name.to_owned(), judge(client.deviations, reach.revision, name, result)));
    };
    let mut server = vec![installed.server.clone().into(), SERVER.into(), "--http".into(), PORT.into()];
    server.extend(reach.ours.flags());
    match transport {
        Transport::Streamable => {}
        Transport::Sse => server.push("--sse".into()),
        Transport::WebSocket => server.push("--web-socket".into()),
    }
    if adapter == Adapter::Smol {
        server.push("--smol".into());
    }
    let mut listening = match Listening::start(&server, &[]) {
        Ok(listening) => listening,
        Err(why) => {
            note("start", Err(why));
            return row;
        }
    };
    // If a client can resume a stream, its connections are cut.
    let relay = (reach.mode == "legacy" && reach.revision == LEGACY).then(|| Relay::to(listening.port()));
    let played = relay.transpose().map_err(|why| why.to_string()).and_then(|relay| {
        let url = relay.as_ref().map_or(listening.url(transport), |relay| relay.url(transport));
        Program::start(client, reach, &url, &listening, installed)?.play(&mut listening, relay.as_ref())
    });
    let (mut stderr, mut restarted) = (String::new(), usize::MAX);
    match played {
        Err(why) => note("start", Err(why)),
        Ok(ended) => {
            if let Some(why) = ended.said.iter().find_map(|line| verdict(line, "connect")) {
                note("connect", why);
            } else {
                let (last, first) = STEPS.split_last().expect("there are steps");
                let applies = |step: &&str| !client.lacks.contains(step) && applies(step, reach);
                for name in first.iter().chain(WEB).chain([last]).copied().filter(applies) {
                    let told = ended.said.iter().find_map(|line| verdict(line, name));
                    note(name, told.unwrap_or_else(|| Err("nothing was said of it".to_owned())));
                }
                // A server has no such events of the connections of HTTP+SSE.
                let has_sessions = transport == Transport::Streamable && reach.ours != Ours::Stateless;
                let has_sessions = has_sessions && reach.revision != MODERN;
                note("sessions", sessions(&listening, ended.restarted, has_sessions));
                let success = ended.status.is_some_and(|status| status.success());
                let exit =
                    if success { Ok("exited with success".to_owned()) } else { Err(format!("{:?}", ended.status)) };
                note("exit", exit);
            }
            (stderr, restarted) = (ended.stderr, ended.restarted);
        }
    }
    let watch = Watch::these(vec![listening.id()]);
    note("server's end", listening.end());
    note("no process", watch.gone());
    let lines = listening.lines();
    row.steps.push(("no complaint".to_owned(), complaints(client, &lines, restarted, reach)));
    row.stderr = stderr.lines().map(str::to_owned).chain(lines).collect();
    row
}

/// Returns whether a step applies.
pub fn applies(step: &str, reach: Reach) -> bool {
    let modern = reach.revision == MODERN;
    match step {
        // The output of a server does not concern this transport.
        "print" => false,
        step if !has(reach.revision, step) => false,
        step if reach.ours == Ours::Stateless && IN_SESSION.contains(&step) => false,
        "cut" | "changed again" => reach.mode == "legacy" && reach.revision == LEGACY,
        "gone" => !modern,
        _ => true,
    }
}

/// Checks that the client has opened a session after the latest restart of our server, if there are
/// any, and has ended all that it opened.
fn sessions(listening: &Listening, restarted: usize, has_sessions: bool) -> Result<String, String> {
    let count = |what: &str| {
        let lines = listening.lines();
        lines.iter().skip(restarted).filter(|line| line.starts_with(what)).count()
    };
    let opened = count("session opened");
    if !has_sessions {
        return if opened == 0 { Ok("none".to_owned()) } else { Err(format!("{opened} opened")) };
    }
    let until = Instant::now() + super::SOON;
    while count("session ended: Deleted") < opened && Instant::now() < until {
        thread::sleep(LOOK);
    }
    match (opened, count("session ended: Deleted")) {
        (1.., ended) if ended == opened => Ok(format!("{opened} opened and ended")),
        (_, ended) => Err(format!("{opened} opened, {ended} ended")),
    }
}

/// Checks the diagnostics of our server, beyond the expected ones. `restarted` lines precede the
/// restart.
pub fn complaints(client: &Client, lines: &[String], restarted: usize, reach: Reach) -> Mark {
    let complaint = |(at, line): (usize, &'_ String)| {
        let text = line.strip_prefix("diagnostic ")?;
        let is = |complaint: &str| text.starts_with(complaint);
        let tries_modern = reach.ours == Ours::Older || reach.mode == "auto" && client.web == Some(Transport::Sse);
        let must = match reach.ours {
            // A client that tries the modern era first.
            _ if tries_modern && is("unsupported-version:") => true,
            // A client that requests a listener stream.
            Ours::Stateless if is("http-defect: the method is not served here") => true,
            // A client with a session from before the restart.
            _ => at >= restarted && is("bad-session:"),
        };
        (!must).then(|| text.to_owned())
    };
    let complaints: Vec<String> = lines.iter().enumerate().filter_map(complaint).collect();
    let reason = |fault: &String| client.faults.iter().find(|(code, _)| fault.starts_with(&format!("{code}:")));
    let known = complaints.iter().find_map(reason);
    match (complaints.iter().any(|fault| reason(fault).is_none()), known) {
        (true, _) => Mark::Failed(complaints.join("; ")),
        (false, Some((_, reason))) => Mark::Deviates(complaints.join("; "), reason),
        (false, None) => Mark::Passed("none".to_owned()),
    }
}

/// A running client.
struct Program {
    child: Child,
    lines: Receiver<String>,
    stdin: ChildStdin,
    stderr: PathBuf,
}

/// The result of a program.
struct Ended {
    /// `None` if it did not exit in time.
    status: Option<ExitStatus>,
    /// Its lines.
    said: Vec<String>,
    stderr: String,
    /// Number of lines of our server before its restart.
    restarted: usize,
}

impl Program {
    fn start(
        client: &Client,
        reach: Reach,
        url: &str,
        listening: &Listening,
        installed: &Installed,
    ) -> Result<Self, String> {
        let told = |why: std::io::Error| why.to_string();
        // No other running server has the port.
        let stderr = installed.scratch.join(format!("caller-{}.stderr", listening.port()));
        let (program, arguments) = client.command.split_first().ok_or("no program")?;
        let mut child = Command::new(program)
            .args(arguments)
            .args([reach.mode, reach.revision, url])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(File::create(&stderr).map_err(told)?)
            .spawn()
            .map_err(told)?;
        let (stdout, stdin) = child.stdout.take().zip(child.stdin.take()).ok_or("no pipes")?;
        let (say, lines) = mpsc::channel();
        thread::spawn(move || {
            for line in BufReader::new(stdout).split(b'\n').map_while(Result::ok) {
                if say.send(String::from_utf8_lossy(&line).trim_end().to_owned()).is_err() {
                    break;
                }
            }
        });
        Ok(Self { child, lines, stdin, stderr })
    }

    /// Lets it take its steps to their end.
    fn play(mut self, listening: &mut Listening, relay: Option<&Relay>) -> Result<Ended, String> {
        let told = |why: std::io::Error| why.to_string();
        let until = Instant::now() + LIMIT;
        let (mut said, mut restarted) = (Vec::new(), 0);
        // The end of its output is an error as well.
        while let Ok(line) = self.lines.recv_timeout(until.saturating_duration_since(Instant::now())) {
            if let Some(relay) = relay.filter(|_| [RESTART, CUT].contains(&line.as_str())) {
                relay.cut();
            }
            if line == RESTART {
                restarted = listening.lines().len();
                listening.restart()?;
            }
            if [RESTART, CUT].contains(&line.as_str()) {
                // Fails if the program has exited meanwhile, which is detected elsewhere.
                let _ = self.stdin.write_all(b"\n");
            }
            said.push(line);
        }
        let mut status = None;
        while status.is_none() && Instant::now() < until {
            status = self.child.try_wait().map_err(told)?;
            thread::sleep(LOOK);
        }
        let stderr = fs::read(&self.stderr).map_err(told)?;
        Ok(Ended { status, said, stderr: String::from_utf8_lossy(&stderr).into_owned(), restarted })
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // Fails only if the process has already exited.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
