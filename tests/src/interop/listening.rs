//! A server that listens on a port of loopback, as a child process.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::SOON;

/// In an argument or a variable of the environment of a server: the port that it is to listen on.
pub const PORT: &str = "{port}";

/// How often it is looked whether it listens, or has ended.
const LOOK: Duration = Duration::from_millis(10);
/// How long a server may take to listen: an interpreter reads its libraries first.
const START: Duration = Duration::from_secs(60);
/// On how many ports it is tried: another process may take one that was free.
const PORTS: usize = 5;

/// A child process that listens. Dropping it ends the process.
#[derive(Debug)]
pub struct Listening {
    child: Child,
    command: Vec<OsString>,
    env: Vec<(&'static str, OsString)>,
    port: u16,
    said: Said,
}

/// The lines that a process writes, to standard output and to standard error.
#[derive(Clone, Debug, Default)]
struct Said(Arc<(Mutex<Vec<String>>, Condvar)>);

impl Listening {
    /// Starts a program with a free port in the place of [`PORT`], and waits until it listens.
    ///
    /// # Errors
    /// It does not, and what it said.
    pub fn start(command: &[OsString], env: &[(&'static str, OsString)]) -> Result<Self, String> {
        let mut last = String::new();
        for _ in 0..PORTS {
            let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|socket| socket.local_addr());
            let port = free.map_err(|why| why.to_string())?.port();
            let said = Said::default();
            let mut started = Self {
                child: spawn(command, env, port, &said)?,
                command: command.to_vec(),
                env: env.to_vec(),
                port,
                said,
            };
            match started.until_it_listens() {
                Ok(()) => return Ok(started),
                Err(why) => last = why,
            }
        }
        Err(last)
    }

    /// Kills it, and starts it anew on the same port: what it knew is lost.
    ///
    /// # Errors
    /// It does not listen again, and what it said.
    pub fn restart(&mut self) -> Result<(), String> {
        self.kill();
        self.child = spawn(&self.command, &self.env, self.port, &self.said)?;
        self.until_it_listens()
    }

    /// Where it is reached.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/mcp", self.port)
    }

    /// The port that it listens on.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The id of the process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// All that it has said, in every life of it.
    pub fn lines(&self) -> Vec<String> {
        self.said.lock().clone()
    }

    /// Waits until it has said so many lines that begin with this.
    ///
    /// # Errors
    /// It does not: how many there are.
    pub fn said(&self, prefix: &str, times: usize) -> Result<String, String> {
        let count = |lines: &[String]| lines.iter().filter(|line| line.starts_with(prefix)).count();
        let waited = self.said.0.1.wait_timeout_while(self.said.lock(), SOON, |lines| count(lines) < times);
        let (lines, _) = waited.unwrap_or_else(PoisonError::into_inner);
        match count(&lines) {
            said if said >= times => Ok(format!("{said} times {prefix:?}")),
            said => Err(format!("{said} times {prefix:?}, expected {times}")),
        }
    }

    /// Asks it to end as one does at a terminal, and waits until it has. A server that waits for its connections to be closed ends only if
    /// none was left open.
    ///
    /// # Errors
    /// It does not end, and was killed.
    pub fn end(&mut self) -> Result<String, String> {
        let begun = Instant::now();
        let id = i32::try_from(self.id()).ok().and_then(Pid::from_raw).ok_or("no process id")?;
        kill_process(id, Signal::INT).map_err(|why| why.to_string())?;
        while begun.elapsed() < SOON {
            if let Some(status) = self.child.try_wait().map_err(|why| why.to_string())? {
                return Ok(format!("ended in {} ms: {status}", begun.elapsed().as_millis()));
            }
            thread::sleep(LOOK);
        }
        self.kill();
        Err("it did not end, and was killed".to_owned())
    }

    fn until_it_listens(&mut self) -> Result<(), String> {
        let until = Instant::now() + START;
        loop {
            if let Some(status) = self.child.try_wait().map_err(|why| why.to_string())? {
                return Err(format!("it ended before it listened: {status}; it said {:?}", self.lines()));
            }
            if TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).is_ok() {
                return Ok(());
            }
            if Instant::now() > until {
                return Err(format!("it does not listen on port {}; it said {:?}", self.port, self.lines()));
            }
            thread::sleep(LOOK);
        }
    }

    fn kill(&mut self) {
        // It fails only if the process has ended, which is what is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Said {
    fn lock(&self) -> MutexGuard<'_, Vec<String>> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in the lines of a stream, until its end.
    fn hear(&self, stream: impl Read + Send + 'static) {
        let said = self.clone();
        thread::spawn(move || {
            for line in BufReader::new(stream).split(b'\n').map_while(Result::ok) {
                said.lock().push(String::from_utf8_lossy(&line).trim_end().to_owned());
                said.0.1.notify_all();
            }
        });
    }
}

fn spawn(command: &[OsString], env: &[(&str, OsString)], port: u16, said: &Said) -> Result<Child, String> {
    let filled = |word: &OsString| match word.to_str() {
        Some(PORT) => port.to_string().into(),
        _ => word.clone(),
    };
    let (program, arguments) = command.split_first().ok_or("no program")?;
    let mut child = Command::new(program)
        .args(arguments.iter().map(filled))
        .envs(env.iter().map(|(name, value)| (name, filled(value))))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|why| format!("{}: {why}", program.display()))?;
    if let Some(stream) = child.stdout.take() {
        said.hear(stream);
    }
    if let Some(stream) = child.stderr.take() {
        said.hear(stream);
    }
    Ok(child)
}
