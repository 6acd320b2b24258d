//! The clients that use our server. Each is a small program with another SDK that takes the same
//! steps and prints a line with the result of each.

use std::ffi::OsString;
use std::fs::{self, File};
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::listening::Transport;
use super::processes::Watch;
use super::servers::{LEGACY, MODERN};
use super::setup::{Installed, SERVER, programs};
use super::{Deviation, Row, Shows, judge};
use crate::adapters::Adapter;

/// A client of another project.
#[derive(Clone, Debug)]
pub struct Client {
    /// Its name in the table.
    pub name: &'static str,
    /// The program and its first arguments. The mode of negotiation, the revision and our server
    /// follow.
    pub command: Vec<OsString>,
    /// The modes in which it can negotiate.
    pub reached: &'static [Reach],
    /// Whether it starts our server once more to probe it, and kills that process.
    pub probes: fn(&str) -> bool,
    /// Steps that it does not support.
    pub lacks: &'static [&'static str],
    /// Its known deviations.
    pub deviations: &'static [Deviation],
    /// The transport by which it uses our server over HTTP. `None` over stdio.
    pub web: Option<Transport>,
    /// Diagnostics of our server by code, with the reason why the peer causes them.
    pub faults: &'static [(&'static str, &'static str)],
}

/// How a client negotiates, and with which server.
#[derive(Clone, Copy, Debug)]
pub struct Reach {
    /// `auto`, `modern` or `legacy`. `stateless` is `legacy` without the steps that need a session.
    pub mode: &'static str,
    /// The variant of our server.
    pub ours: Ours,
    /// The resulting revision.
    pub revision: &'static str,
}

/// A variant of our server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ours {
    /// All features.
    Whole,
    /// Only the revisions with `initialize`.
    Older,
    /// Only this revision.
    Only(&'static str),
    /// No sessions.
    Stateless,
}

impl Ours {
    /// Returns its arguments.
    pub(super) fn flags(self) -> Vec<OsString> {
        match self {
            Self::Whole => Vec::new(),
            Self::Older => vec!["--legacy".into()],
            Self::Only(revision) => vec!["--only".into(), revision.into()],
            Self::Stateless => vec!["--stateless".into()],
        }
    }
}

/// The steps of every program, in order.
pub(super) const STEPS: &[&str] = &[
    "revision",
    "list",
    "resources",
    "read",
    "blob",
    "templates",
    "template",
    "missing",
    "prompts",
    "prompt",
    "completion",
    "variable",
    "schema",
    "logging",
    "updated",
    "consult",
    "page",
    "page told",
    "page refused",
    "structured",
    "text",
    "progress",
    "form",
    "declined",
    "model",
    "roots",
    "failing",
    "unknown",
    "bad arguments",
    "cancel",
    "cancelled",
    "after",
    "many",
    "large",
    "print",
    "note",
    "ping",
    "no fault",
    "burst",
    "changed",
    "close",
];

/// Maximum time of a program for all of them.
pub(super) const LIMIT: Duration = Duration::from_secs(120);
/// Interval of the checks for its exit.
pub(super) const LOOK: Duration = Duration::from_millis(10);

/// A server with only legacy revisions responds to a request of 2026-07-28 with -32022 and their
/// names. This client supports one of them too.
pub(super) const OLDER: &str = "it does not use `initialize` where -32022 names older revisions only";
/// Both SDKs pass a notification to its listener in a later turn of the event loop than a response,
/// which removes the listener.
pub(super) const BURST: &str = "progress that is read together with the answer is dropped";

/// Returns the table.
pub fn clients(installed: &Installed) -> Vec<Client> {
    let node = |program: &str| vec![installed.node.clone().into(), installed.modules.join(program).into()];
    let python = |interpreter: &std::path::PathBuf, program: &str| {
        vec![interpreter.into(), "-B".into(), programs().join("python").join(program).into()]
    };
    let both: &[_] = &[
        Reach { mode: "auto", ours: Ours::Whole, revision: MODERN },
        Reach { mode: "modern", ours: Ours::Whole, revision: MODERN },
        Reach { mode: "auto", ours: Ours::Older, revision: LEGACY },
        Reach { mode: "legacy", ours: Ours::Whole, revision: LEGACY },
    ];
    let legacy: &[_] = &[Reach { mode: "legacy", ours: Ours::Whole, revision: LEGACY }];
    let client = |name, command, reached| Client {
        name,
        command,
        reached,
        probes: |_| false,
        lacks: &[],
        deviations: &[],
        web: None,
        faults: &[],
    };
    vec![
        Client {
            probes: |mode| mode != "legacy",
            deviations: &[(MODERN, "burst", BURST, Shows::AtTimes), (LEGACY, "burst", BURST, Shows::AtTimes)],
            ..client("client 2.4.0 (TypeScript)", node("client2.mjs"), both)
        },
        Client {
            deviations: &[(LEGACY, "burst", BURST, Shows::AtTimes)],
            ..client("sdk 1.32.2 (TypeScript)", node("client1.mjs"), legacy)
        },
        client("mcp 2.3.0 (Python)", python(&installed.python2, "client2.py"), both),
        client("mcp 1.30.0 (Python)", python(&installed.python1, "client1.py"), legacy),
        client("fastmcp 4.2.3 (Python)", python(&installed.fastmcp, "clientfast.py"), both),
        Client {
            lacks: &["no fault"],
            deviations: &[(LEGACY, "connect", OLDER, Shows::Always)],
            ..client("rmcp 3.11.0 (Rust)", vec![installed.rmcp.clone().into()], both)
        },
    ]
}

/// Runs one client with our server over one adapter.
pub fn run(client: &Client, reach: Reach, adapter: Adapter, installed: &Installed) -> Row {
    let Reach { mode, revision, .. } = reach;
    let mut row = Row::new(client.name, "client", revision, adapter);
    let mut note = |name: &str, result| {
        row.steps.push((name.to_owned(), judge(client.deviations, revision, name, result)));
    };
    let ended = match play(client, reach, adapter, installed) {
        Ok(ended) => ended,
        Err(why) => {
            note("start", Err(why));
            return row;
        }
    };
    if let Some(why) = ended.stdout.lines().find_map(|line| verdict(line, "connect")) {
        note("connect", why);
    } else {
        let applies = |step: &str| !client.lacks.contains(&step) && has(revision, step);
        for name in STEPS.iter().copied().filter(|step| applies(step)) {
            let told = ended.stdout.lines().find_map(|line| verdict(line, name));
            note(name, told.unwrap_or_else(|| Err("nothing was said of it".to_owned())));
        }
        note("server's end", ended.server((client.probes)(mode)));
        let success = ended.status.is_some_and(|status| status.success());
        note("exit", if success { Ok("exited with success".to_owned()) } else { Err(format!("{:?}", ended.status)) });
    }
    note("no process", Watch::these(ended.started()).gone());
    row.stderr = ended.stderr.lines().map(str::to_owned).collect();
    row
}

/// Returns whether a revision has what a step is about.
pub fn has(revision: &str, step: &str) -> bool {
    match step {
        "ping" => revision != MODERN,
        "structured" | "schema" | "form" | "declined" => revision >= "2025-06-18",
        "consult" | "page" | "page refused" => revision >= LEGACY,
        "page told" => revision == LEGACY,
        _ => true,
    }
}

/// Returns the result in a line, if it is that of this step.
pub fn verdict(line: &str, step: &str) -> Option<Result<String, String>> {
    if line.strip_prefix("ok ") == Some(step) {
        return Some(Ok("ok".to_owned()));
    }
    Some(Err(line.strip_prefix("FAIL ")?.strip_prefix(step)?.strip_prefix(": ")?.to_owned()))
}

/// The result of a program.
struct Ended {
    /// `None` if it did not exit in time.
    status: Option<ExitStatus>,
    stdout: String,
    stderr: String,
    report: String,
}

/// Runs the program to its end.
fn play(client: &Client, reach: Reach, adapter: Adapter, installed: &Installed) -> Result<Ended, String> {
    let file = |kind: &str| installed.scratch.join(format!("client.{kind}"));
    let told = |why: std::io::Error| why.to_string();
    for kind in ["stdout", "stderr", "report"] {
        File::create(file(kind)).map_err(told)?;
    }
    let (program, arguments) = client.command.split_first().ok_or("no program")?;
    let mut command = Command::new(program);
    command
        .args(arguments)
        .args([reach.mode, reach.revision])
        .arg(&installed.server)
        .arg(SERVER)
        .arg("--report")
        .arg(file("report"));
    if adapter == Adapter::Smol {
        command.arg("--smol");
    }
    command.args(reach.ours.flags());
    command.stdin(Stdio::null());
    command.stdout(File::create(file("stdout")).map_err(told)?).stderr(File::create(file("stderr")).map_err(told)?);
    let mut child = command.spawn().map_err(told)?;
    let until = Instant::now() + LIMIT;
    let mut status = None;
    while status.is_none() && Instant::now() < until {
        thread::sleep(LOOK);
        status = child.try_wait().map_err(told)?;
    }
    if status.is_none() {
        child.kill().and_then(|()| child.wait()).map_err(told)?;
    }
    let read = |kind| fs::read(file(kind)).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).map_err(told);
    Ok(Ended { status, stdout: read("stdout")?, stderr: read("stderr")?, report: read("report")? })
}

impl Ended {
    /// Returns the ids of our servers that started.
    fn started(&self) -> Vec<u32> {
        self.ids("started ")
    }

    fn ids(&self, prefix: &str) -> Vec<u32> {
        self.report.lines().filter_map(|line| line.strip_prefix(prefix)?.parse().ok()).collect()
    }

    /// Checks that the used server exited in order. One that was only probed need not.
    fn server(&self, probed: bool) -> Result<String, String> {
        let (started, ended) = (self.started(), self.ids("ended "));
        let expected = if probed { 2 } else { 1 };
        let in_order = started.last().is_some_and(|last| ended.contains(last));
        if started.len() == expected && in_order {
            Ok(format!("in order, of {expected} started"))
        } else {
            Err(format!("started {started:?}, ended in order {ended:?}"))
        }
    }
}
