//! A server that listens on a loopback port, as a child process.

use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Read};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use mcp_proto::client::HttpTransport;
use rustix::process::{Pid, Signal, kill_process};

use super::{SOON, tls};

/// Placeholder for the port in the arguments and the environment of a server.
pub const PORT: &str = "{port}";

/// Interval of the checks for its listener and its exit.
const LOOK: Duration = Duration::from_millis(10);
/// Maximum time until a server listens: an interpreter first loads its libraries.
const START: Duration = Duration::from_secs(60);
/// Number of ports to try: another process may take a port that was free.
const PORTS: usize = 5;

/// The transports of a server that listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// Streamable HTTP.
    Streamable,
    /// HTTP+SSE.
    Sse,
    /// WebSocket.
    WebSocket,
}

impl Transport {
    /// Returns the transport in a verdict, where WebSocket has none.
    pub(super) fn in_verdict(self) -> HttpTransport {
        match self {
            Self::Streamable | Self::WebSocket => HttpTransport::Streamable,
            Self::Sse => HttpTransport::Sse,
        }
    }

    /// Returns the URL of a server with this address.
    pub(super) fn url(self, address: SocketAddr) -> String {
        let s = if tls::is_on() { "s" } else { "" };
        match self {
            Self::Streamable => format!("http{s}://{address}/mcp"),
            Self::Sse => format!("http{s}://{address}/sse"),
            Self::WebSocket => format!("ws{s}://{address}/mcp"),
        }
    }
}

/// A listening child process. Dropping it ends the process.
#[derive(Debug)]
pub struct Listening {
    child: Child,
    command: Vec<OsString>,
    env: Vec<(&'static str, OsString)>,
    port: u16,
    said: Said,
}

/// The lines of a process on standard output and standard error.
#[derive(Clone, Debug, Default)]
struct Said(Arc<(Mutex<Vec<String>>, Condvar)>);

impl Listening {
    /// Starts a program with a free port for [`PORT`], and waits until it listens.
    ///
    /// # Errors
    /// It does not listen, with its output.
    pub fn start(command: &[OsString], env: &[(&'static str, OsString)]) -> Result<Self, String> {
        Self::start_configured(command, env, |_| Ok(()))
    }

    /// The same, for a program that reads its port in a file, which `configure` writes.
    ///
    /// # Errors
    /// It does not listen, with its output, or the file cannot be written.
    pub fn start_configured(
        command: &[OsString],
        env: &[(&'static str, OsString)],
        configure: impl Fn(u16) -> io::Result<()>,
    ) -> Result<Self, String> {
        let mut last = String::new();
        for _ in 0..PORTS {
            let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|socket| socket.local_addr());
            let port = free.map_err(|why| why.to_string())?.port();
            configure(port).map_err(|why| format!("the configuration: {why}"))?;
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

    /// Kills it, and restarts it on the same port, without its state.
    ///
    /// # Errors
    /// It does not listen again, with its output.
    pub fn restart(&mut self) -> Result<(), String> {
        self.kill_and(|| Ok(()))
    }

    /// The same, after something else while it does not run.
    ///
    /// # Errors
    /// It does not listen again, with its output, or the error of that.
    pub fn kill_and(&mut self, meanwhile: impl FnOnce() -> Result<(), String>) -> Result<(), String> {
        self.kill();
        meanwhile()?;
        self.child = spawn(&self.command, &self.env, self.port, &self.said)?;
        self.until_it_listens()
    }

    /// Returns its URL for a transport.
    pub fn url(&self, transport: Transport) -> String {
        transport.url(SocketAddr::from((Ipv4Addr::LOCALHOST, self.port)))
    }

    /// Returns its port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns its output so far, including that before restarts.
    pub fn lines(&self) -> Vec<String> {
        self.said.lock().clone()
    }

    /// Forgets its output so far, which would take memory for as long as it runs.
    pub fn forget_lines(&self) {
        *self.said.lock() = Vec::new();
    }

    /// Waits for this number of lines that begin with `prefix`.
    ///
    /// # Errors
    /// The number of these lines, if there are too few.
    pub fn said(&self, prefix: &str, times: usize) -> Result<String, String> {
        let count = |lines: &[String]| lines.iter().filter(|line| line.starts_with(prefix)).count();
        let waited = self.said.0.1.wait_timeout_while(self.said.lock(), SOON, |lines| count(lines) < times);
        let (lines, _) = waited.unwrap_or_else(PoisonError::into_inner);
        match count(&lines) {
            said if said >= times => Ok(format!("{said} times {prefix:?}")),
            said => Err(format!("{said} times {prefix:?}, expected {times}")),
        }
    }

    /// Asks it to exit as a terminal does, and waits for the exit. A server that waits for its
    /// connections to close exits only if none was left open.
    ///
    /// # Errors
    /// It did not exit, and was killed.
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
            // Before the server listens, a connection may have this port as its own, and reach
            // itself.
            let other = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port))
                .and_then(|stream| Ok(stream.local_addr()? != stream.peer_addr()?));
            if other.unwrap_or(false) {
                return Ok(());
            }
            if Instant::now() > until {
                return Err(format!("it does not listen on port {}; it said {:?}", self.port, self.lines()));
            }
            thread::sleep(LOOK);
        }
    }

    fn kill(&mut self) {
        // Fails only if the process has already exited.
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

    /// Reads the lines of a stream up to its end.
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
