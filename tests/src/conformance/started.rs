//! A server of ours as a process, while the suite asks it.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// How long a server may take to listen.
const START: Duration = Duration::from_secs(30);

/// A process that listens. Dropping it kills the process.
#[derive(Debug)]
pub struct Started {
    child: Child,
    address: String,
    log: PathBuf,
}

impl Started {
    /// Starts a program on a port of loopback that is free, and waits until it says that it listens. What it writes to standard error goes
    /// to a file.
    ///
    /// # Errors
    /// It does not say so.
    pub fn start(program: &Path, log: PathBuf) -> Result<Self, String> {
        let told = |why: std::io::Error| format!("{}: {why}", program.display());
        let unwritten = |why: std::io::Error| format!("{}: {why}", log.display());
        log.parent().map_or(Ok(()), fs::create_dir_all).map_err(unwritten)?;
        let mut command = Command::new(program);
        command.args(["--verbose", "--http", "127.0.0.1:0"]).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.stderr(File::create(&log).map_err(unwritten)?).spawn().map_err(told)?;
        let output = child.stdout.take();
        // From here on it is killed whatever happens.
        let mut started = Self { child, address: String::new(), log };
        let (say, said) = mpsc::channel();
        thread::spawn(move || {
            for line in output.into_iter().flat_map(|output| BufReader::new(output).lines()).map_while(Result::ok) {
                // Nobody listens once the first line was said.
                let _ = say.send(line);
            }
        });
        let line =
            said.recv_timeout(START).map_err(|why| format!("{}: it does not listen: {why}", program.display()))?;
        let address =
            line.strip_prefix("LISTENING ").ok_or_else(|| format!("{}: it says {line:?}", program.display()))?;
        address.clone_into(&mut started.address);
        Ok(started)
    }

    /// Where its endpoint is.
    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// What it has written to standard error so far.
    pub fn said(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.log).unwrap_or_default()).into_owned()
    }

    /// What is wrong with it: it has ended, or something in it panicked.
    pub fn fault(&mut self) -> Option<String> {
        match self.child.try_wait() {
            Ok(None) => {}
            Ok(Some(status)) => return Some(format!("the server has ended: {status}")),
            Err(why) => return Some(format!("the server cannot be asked whether it has ended: {why}")),
        }
        let said = self.said();
        said.lines().find(|line| line.contains("panicked at")).map(|line| format!("the server panicked: {line}"))
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        // It may have ended by itself, which was told.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
