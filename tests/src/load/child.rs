//! The server of a scene: a process that prints its state on request.

use super::Setup;
use crate::adapters::Adapter;
use crate::peer::usage::Usage;
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

/// How long the server may take to answer a word, to start and to end.
const SOON: Duration = Duration::from_secs(20);

/// How often it is looked whether something is so.
const LOOK: Duration = Duration::from_millis(5);

pub(super) struct Child {
    process: std::process::Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    pub(super) adapter: Adapter,
    pub(super) address: SocketAddr,
}

/// How the server is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Look {
    /// Bytes of its heap that are in use.
    pub(super) heap: i64,
    /// Connections that are open.
    pub(super) connections: usize,
    /// Requests that were handed to the application since the start.
    pub(super) requests: u64,
    /// Calls of `echo` that ran.
    pub(super) echoed: u64,
    /// Requests that run.
    pub(super) running: usize,
    /// Resident memory, in bytes.
    pub(super) resident: i64,
}

impl Child {
    pub(super) fn start(load: &Path, adapter: Adapter, patience: Duration, setup: Setup) -> Result<Self, String> {
        let mut command = Command::new(load);
        command.args(["load", "serve", adapter.name(), &patience.as_millis().to_string(), setup.name()]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut process = command.spawn().map_err(|e| format!("the server does not start: {e}"))?;
        let (told, lines) = channel();
        if let Some(output) = process.stdout.take() {
            thread::spawn(move || {
                BufReader::new(output).lines().map_while(Result::ok).for_each(|line| drop(told.send(line)));
            });
        }
        let input = process.stdin.take();
        let mut child = Self { process, input, lines, adapter, address: SocketAddr::from(([127, 0, 0, 1], 0)) };
        let line = child.line()?;
        let address = line.strip_prefix("LISTENING ").and_then(|address| address.parse().ok());
        child.address = address.ok_or_else(|| format!("the server does not listen: {line}"))?;
        Ok(child)
    }

    fn line(&self) -> Result<String, String> {
        self.lines.recv_timeout(SOON).map_err(|e| format!("the server does not answer: {e}"))
    }

    /// How it is now.
    pub(super) fn look(&mut self) -> Result<Look, String> {
        let input = self.input.as_mut().ok_or("it was ended")?;
        writeln!(input).and_then(|()| input.flush()).map_err(|e| format!("the server is gone: {e}"))?;
        let line = self.line()?;
        let numbers: Vec<i64> = line.split(' ').filter_map(|number| number.parse().ok()).collect();
        let [heap, connections, requests, echoed, running] = numbers[..] else {
            return Err(format!("it says {line:?}"));
        };
        Ok(Look {
            heap,
            connections: connections as usize,
            requests: requests as u64,
            echoed: echoed as u64,
            running: running as usize,
            resident: self.usage().resident as i64 * 1024,
        })
    }

    /// Looks until it is so.
    pub(super) fn until(&mut self, what: &str, limit: Duration, is_so: impl Fn(&Look) -> bool) -> Result<Look, String> {
        let end = Instant::now() + limit;
        loop {
            let look = self.look()?;
            if is_so(&look) {
                return Ok(look);
            }
            if Instant::now() >= end {
                return Err(format!("never {what}: {look:?}"));
            }
            thread::park_timeout(LOOK);
        }
    }

    pub(super) fn id(&self) -> u32 {
        self.process.id()
    }

    pub(super) fn usage(&self) -> Usage {
        Usage::of(Some(self.process.id()))
    }

    /// Ends it in order.
    pub(super) fn end(mut self) -> Result<(), String> {
        drop(self.input.take());
        let end = Instant::now() + SOON;
        loop {
            match self.process.try_wait() {
                Ok(Some(status)) if status.success() => return Ok(()),
                Ok(Some(status)) => return Err(format!("the server ended with {status}")),
                Err(e) => return Err(e.to_string()),
                Ok(None) if Instant::now() >= end => return Err("the server does not end".into()),
                Ok(None) => thread::park_timeout(LOOK),
            }
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if matches!(self.process.try_wait(), Ok(None)) {
            let _ = self.process.kill();
            let _ = self.process.wait();
        }
    }
}
