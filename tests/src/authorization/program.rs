//! A client as a program of its own: its lease must end with it, however it ends.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::{io, thread};

use super::user::{PAUSE, User, call};
use crate::adapters::Adapter;
use crate::browser::Consent;
use crate::interop::setup::beside;

/// The word for the program.
pub const PROGRAM: &str = "auth-client";

/// Runs the program: it calls a tool again and again until its standard input ends, and prints the
/// number of its calls.
pub fn run(adapter: Adapter, args: &[String]) -> ExitCode {
    let [url, store] = args else {
        eprintln!("usage: {PROGRAM} blocking|smol URL FOLDER");
        return ExitCode::from(2);
    };
    let over = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&over);
    thread::spawn(move || {
        // An error is an end, too.
        let _ = io::stdin().read_to_end(&mut Vec::new());
        told.store(true, Ordering::Relaxed);
    });
    let user = User::new(adapter, PathBuf::from(store));
    let calls = || {
        let client = user.start(url, Consent::Given).map_err(|why| why.to_string())?;
        let mut calls = 0;
        while !over.load(Ordering::Relaxed) {
            call(&client, "whoami")?;
            calls += 1;
            thread::sleep(PAUSE);
        }
        client.close().map(|_| calls)
    };
    match calls() {
        Ok(calls) => {
            println!("{calls}");
            ExitCode::SUCCESS
        }
        Err(why) => {
            println!("{why}");
            user.said().iter().for_each(|line| println!("{line}"));
            ExitCode::FAILURE
        }
    }
}

/// The running program. Dropping it kills it.
#[derive(Debug)]
pub(super) struct Program {
    child: Child,
    output: Option<BufReader<ChildStdout>>,
}

impl Program {
    /// Starts it.
    pub(super) fn start(adapter: Adapter, url: &str, store: &Path) -> Result<Self, String> {
        let mut command = Command::new(beside("mcp-tests")?);
        command.args([PROGRAM, adapter.name(), url]).arg(store).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|why| format!("{PROGRAM}: {why}"))?;
        let output = child.stdout.take().map(BufReader::new);
        Ok(Self { child, output })
    }

    /// Asks it to end, and returns the number of its calls.
    pub(super) fn end(mut self) -> Result<usize, String> {
        drop(self.child.stdin.take());
        let lines = self.output.take().into_iter().flat_map(BufRead::lines).map_while(Result::ok);
        let said: Vec<String> = lines.collect();
        said.first().and_then(|line| line.parse().ok()).ok_or_else(|| format!("a program says: {}", said.join("\n")))
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
