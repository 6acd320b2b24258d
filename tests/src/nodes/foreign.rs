//! Clients of other SDKs: child processes with several clients each.

use super::callers::Tally;
use super::ground::Ground;
use super::programs;
use crate::interop::setup::{Installed, copy, empty};
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// The time in which a program ends: that of a call, and of another one.
const ENDS: Duration = Duration::from_secs(120);

/// What the clients of a program had.
#[derive(Debug)]
pub(super) struct Foreign {
    pub(super) name: String,
    pub(super) count: usize,
    pub(super) tally: Tally,
}

/// Clients that run.
pub(super) struct Running {
    name: String,
    count: usize,
    child: Child,
}

/// The SDKs, with the ways of each and the number of its clients.
const CLIENTS: &[(&str, &str, usize)] = &[
    ("typescript 1", "legacy", 14),
    ("typescript 1", "sse", 6),
    ("typescript 2", "modern", 14),
    ("typescript 2", "legacy", 10),
    ("typescript 2", "sse", 6),
    ("python 1", "legacy", 14),
    ("python 1", "sse", 6),
    ("python 2", "modern", 14),
    ("python 2", "legacy", 10),
    ("python 2", "sse", 6),
    ("rmcp", "modern", 10),
    ("rmcp", "legacy", 10),
];

/// Starts them.
pub(super) fn start(installed: &Installed, ground: &Ground) -> Result<Vec<Running>, String> {
    // A script must be below the packages to find them.
    let scripts = installed.modules.join("nodes");
    empty(&scripts).map_err(|why| format!("{}: {why}", scripts.display()))?;
    for file in ["calls.mjs", "client1.mjs", "client2.mjs"] {
        copy(&programs(), &scripts, file)?;
    }
    CLIENTS.iter().map(|(sdk, mode, count)| Running::start(installed, ground, (sdk, mode, *count))).collect()
}

/// Ends them.
pub(super) fn end(running: Vec<Running>) -> Vec<Foreign> {
    let mut running = running;
    running.iter_mut().for_each(|running| drop(running.child.stdin.take()));
    running.into_iter().map(Running::end).collect()
}

impl Running {
    fn start(installed: &Installed, ground: &Ground, (sdk, mode, count): (&str, &str, usize)) -> Result<Self, String> {
        let (node, python) = (|file: &str| installed.modules.join(file), |file: &str| programs().join(file));
        let none = PathBuf::new();
        let (program, script): (&PathBuf, PathBuf) = match sdk {
            "typescript 1" => (&installed.node, node("nodes/client1.mjs")),
            "typescript 2" => (&installed.node, node("nodes/client2.mjs")),
            "python 1" => (&installed.python1, python("client1.py")),
            "python 2" => (&installed.python2, python("client2.py")),
            _ => (&installed.rmcp, none),
        };
        let path = if mode == "sse" { "sse" } else { "mcp" };
        let mut command = Command::new(program);
        if script.as_os_str().is_empty() {
            command.arg("nodes");
        } else {
            command.arg(script);
        }
        command.arg(format!("http://{}/{path}", ground.address())).arg(count.to_string()).arg(mode);
        command.env("PYTHONDONTWRITEBYTECODE", "1");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let child = command.spawn().map_err(|why| format!("{sdk}: {why}"))?;
        Ok(Self { name: format!("{sdk}, {mode}"), count, child })
    }

    fn end(mut self) -> Foreign {
        // Its output fits into the pipe.
        let begun = Instant::now();
        while begun.elapsed() < ENDS && self.child.try_wait().is_ok_and(|status| status.is_none()) {
            thread::sleep(Duration::from_millis(50));
        }
        // It may have ended by itself.
        let _ = self.child.kill();
        let stdout = self.child.stdout.take();
        let last = stdout.and_then(|stdout| BufReader::new(stdout).lines().map_while(Result::ok).last());
        let tally = last.as_deref().map_or_else(
            || Err("no output".to_owned()),
            |line| serde_json::from_str(line).map_err(|why| format!("{why}: {line:.200}")),
        );
        // It may have failed before its last line.
        let _ = self.child.wait();
        let tally = tally.unwrap_or_else(|why| Tally { faults: vec![why], ..Tally::default() });
        Foreign { name: self.name, count: self.count, tally }
    }
}
