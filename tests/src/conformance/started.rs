//! One of our servers as a process, while the suite uses it.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// Maximum time until a server listens.
const START: Duration = Duration::from_secs(30);

/// A listening process. Dropping it kills the process.
#[derive(Debug)]
pub struct Started {
    child: Child,
    address: String,
    log: PathBuf,
}

impl Started {
    /// Starts a program with these first arguments on a free loopback port, and waits until it
    /// reports that it listens. Its standard error goes to a file.
    ///
    /// # Errors
    /// It does not listen in time.
    pub fn start(program: &Path, words: &[&str], log: PathBuf) -> Result<Self, String> {
        let told = |why: std::io::Error| format!("{}: {why}", program.display());
        let unwritten = |why: std::io::Error| format!("{}: {why}", log.display());
        log.parent().map_or(Ok(()), fs::create_dir_all).map_err(unwritten)?;
        let mut command = Command::new(program);
        command.args(words).args(["--verbose", "--http", "127.0.0.1:0"]).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.stderr(File::create(&log).map_err(unwritten)?).spawn().map_err(told)?;
        let output = child.stdout.take();
        // From here on it is killed in any case.
        let mut started = Self { child, address: String::new(), log };
        let (say, said) = mpsc::channel();
        thread::spawn(move || {
            for line in output.into_iter().flat_map(|output| BufReader::new(output).lines()).map_while(Result::ok) {
                // There is no receiver after the first line.
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

    /// Returns the URL of its endpoint.
    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// Returns its standard error so far.
    pub fn said(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.log).unwrap_or_default()).into_owned()
    }

    /// Returns its fault: it has exited, or a panic occurred in it.
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
        // It may have exited by itself, which was reported.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
