//! A web server that writes what its script says, byte for byte, valid or not, and records its
//! requests. It parses only as much HTTP as it needs to find the end of a request, and uses no HTTP
//! library, so it can send what no library would.

mod good;

pub use good::{SESSION, good_legacy, good_modern};

use serde_json::Value;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Maximum time for something that must happen.
pub const SOON: Duration = Duration::from_secs(10);

/// Size of one write of a large output, in bytes.
const BLOCK: usize = 64 << 10;

/// One step of a stub's response to a request. After the last one the connection continues with the
/// next request.
#[derive(Clone, Debug)]
pub enum Step {
    /// Writes this. `{id}` is replaced with the id of the request.
    Say(Cow<'static, str>),
    /// Writes these bytes.
    Bytes(&'static [u8]),
    /// Writes a response with its length: status, further fields (each with its line end) and body,
    /// in which `{id}` is replaced.
    Whole(&'static str, Cow<'static, str>, Cow<'static, str>),
    /// Writes this repeatedly, for this number of times.
    Repeat(&'static str, u64),
    /// Writes this byte by byte, with this delay.
    Drip(&'static str, Duration),
    /// Writes nothing for this time.
    Wait(Duration),
    /// Writes nothing before this request has arrived as well: see [`Ask::what`].
    After(&'static str),
    /// Waits for this request, and writes this with its id in place of `{id}`: the response on
    /// another stream than that of the request.
    To(&'static str, Cow<'static, str>),
    /// Writes nothing more. The connection stays open until the client ends it.
    Hold,
    /// Neither writes nor reads anything more, like a machine without power: it does not even
    /// notice the end of the connection.
    Vanish,
    /// Closes the connection in order.
    Close,
    /// Resets the connection.
    Reset,
}

/// Writes this. `{id}` is replaced with the id of the request.
pub fn say(text: impl Into<Cow<'static, str>>) -> Step {
    Step::Say(text.into())
}

/// Writes this endlessly.
pub const fn endless(text: &'static str) -> Step {
    Step::Repeat(text, u64::MAX)
}

/// Returns a response with its length.
pub fn whole(status: &'static str, fields: impl Into<Cow<'static, str>>, body: impl Into<Cow<'static, str>>) -> Step {
    Step::Whole(status, fields.into(), body.into())
}

/// Returns a JSON response.
pub fn json(body: impl Into<Cow<'static, str>>) -> Step {
    whole("200 OK", "Content-Type: application/json\r\n", body)
}

/// The head of an event stream that the end of its connection ends.
pub const EVENTS: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";

/// A request to a stub.
#[derive(Clone, Debug)]
pub struct Ask {
    /// The time since the start of the stub.
    pub at: Duration,
    /// The target of the request: its path, and its query.
    pub target: String,
    /// The connection, counted from 0.
    pub connection: usize,
    /// The kind, for scripts: the method of a POST's message with the tool that it calls
    /// (`tools/call add`), `response`, or the HTTP method, which is `GET resumed` with a
    /// `Last-Event-ID`. `open` is not a request: the connection was just accepted. It is not
    /// recorded.
    pub what: String,
    /// Number of earlier requests of the same kind.
    pub count: usize,
    /// The fields.
    pub fields: Vec<(String, String)>,
    /// The id of the message, as on the wire.
    pub id: String,
    /// The message. `null` if it is none.
    pub body: Value,
}

impl Ask {
    fn new(at: Duration, connection: usize, what: String) -> Self {
        let (target, fields, id) = Default::default();
        Self { at, target, connection, what, count: 0, fields, id, body: Value::Null }
    }

    /// Returns a field. Case does not matter.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(one, _)| one.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }
}

/// The script of a stub: its response to a request.
type Script = Box<dyn Fn(&Ask) -> Vec<Step> + Send + Sync>;

/// A running stub. Dropping it ends it.
pub struct Stub {
    address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    script: Script,
    began: Instant,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    asks: Vec<Ask>,
    counts: BTreeMap<String, usize>,
    connections: usize,
    streams: BTreeMap<usize, TcpStream>,
    /// The connections with a response in progress.
    busy: BTreeSet<usize>,
    stopped: bool,
}

impl State {
    fn times(&self, what: &str) -> usize {
        self.counts.get(what).copied().unwrap_or_default()
    }
}

impl Stub {
    /// Starts a stub that responds as `script` says.
    ///
    /// # Errors
    /// The system provides no socket.
    pub fn start(script: impl Fn(&Ask) -> Vec<Step> + Send + Sync + 'static) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let (state, changed) = Default::default();
        let shared = Arc::new(Shared { script: Box::new(script), began: Instant::now(), state, changed });
        let accepting = Arc::clone(&shared);
        thread::spawn(move || accepting.accept(&listener));
        Ok(Self { address, shared })
    }

    /// Returns its URL.
    pub fn url(&self) -> String {
        format!("{}/mcp", self.origin())
    }

    /// Returns its origin.
    pub fn origin(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns all requests so far.
    pub fn asks(&self) -> Vec<Ask> {
        self.shared.state().asks.clone()
    }

    /// Returns the requests of this kind so far.
    pub fn asked(&self, what: &str) -> Vec<Ask> {
        self.shared.state().asks.iter().filter(|ask| ask.what == what).cloned().collect()
    }

    /// Returns the number of requests of this kind.
    pub fn times(&self, what: &str) -> usize {
        self.shared.state().times(what)
    }

    /// Returns the number of connections so far.
    pub fn connections(&self) -> usize {
        self.shared.state().connections
    }

    /// Waits until every response is complete or its client has disconnected. Returns false after
    /// `limit`.
    pub fn is_done_within(&self, limit: Duration) -> bool {
        self.shared.wait(limit, |state| state.busy.is_empty())
    }

    /// Waits for this number of requests of this kind.
    pub fn was_asked(&self, what: &str, times: usize) -> bool {
        self.shared.wait(SOON, |state| state.times(what) >= times)
    }
}

impl Drop for Stub {
    fn drop(&mut self) {
        let mut state = self.shared.state();
        state.stopped = true;
        for stream in state.streams.values() {
            // It may have ended by itself.
            let _ = stream.shutdown(Shutdown::Both);
        }
        drop(state);
        self.shared.changed.notify_all();
        // Wakes the accepting thread.
        let _ = TcpStream::connect(self.address);
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let changed = change(&mut self.state());
        self.changed.notify_all();
        changed
    }

    /// Waits until `is_so`, at most for `limit`.
    fn wait(&self, limit: Duration, is_so: impl Fn(&State) -> bool) -> bool {
        let waiting = |state: &mut State| !is_so(state) && !state.stopped;
        let waited = self.changed.wait_timeout_while(self.state(), limit, waiting);
        is_so(&waited.unwrap_or_else(PoisonError::into_inner).0)
    }

    fn accept(self: Arc<Self>, listener: &TcpListener) {
        for stream in listener.incoming() {
            let Ok(stream) = stream else { return };
            let Ok(clone) = stream.try_clone() else { return };
            let number = self.change(|state| {
                let number = state.connections;
                state.connections += 1;
                state.streams.insert(number, clone);
                (!state.stopped).then_some(number)
            });
            let Some(number) = number else { return };
            let shared = Arc::clone(&self);
            thread::spawn(move || {
                // Either side may end it, in any way.
                let _ = shared.serve(number, stream);
                shared.change(|state| {
                    state.busy.remove(&number);
                    state.streams.remove(&number);
                });
            });
        }
    }

    fn serve(&self, connection: usize, stream: TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        let mut stream = BufReader::new(stream);
        let open = Ask::new(self.began.elapsed(), connection, "open".to_owned());
        let mut over = self.answer(&open, &mut stream)?;
        while !over && let Some(ask) = self.hear(connection, &mut stream)? {
            over = self.answer(&ask, &mut stream)?;
            self.change(|state| state.busy.remove(&connection));
        }
        Ok(())
    }

    /// Responds to this request as the script says. Returns true if the connection is over.
    fn answer(&self, ask: &Ask, stream: &mut BufReader<TcpStream>) -> io::Result<bool> {
        for step in (self.script)(ask) {
            if self.take(&step, ask, stream)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns the next request. `None` if there is none.
    fn hear(&self, connection: usize, stream: &mut BufReader<TcpStream>) -> io::Result<Option<Ask>> {
        let mut line = String::new();
        if stream.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        let mut words = line.split(' ').map(str::to_owned);
        let (verb, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let mut fields = Vec::new();
        let mut length = 0;
        loop {
            line.clear();
            stream.read_line(&mut line)?;
            let Some((name, value)) = line.trim_end().split_once(':') else { break };
            if name.eq_ignore_ascii_case("content-length") {
                length = value.trim().parse().map_err(io::Error::other)?;
            }
            fields.push((name.to_owned(), value.trim().to_owned()));
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body)?;
        let body: Value = serde_json::from_slice(&body).unwrap_or_default();
        let what = match (verb.as_str(), body["method"].as_str()) {
            ("POST", Some("tools/call")) => {
                format!("tools/call {}", body["params"]["name"].as_str().unwrap_or_default())
            }
            ("POST", Some(method)) => method.to_owned(),
            ("POST", None) => "response".to_owned(),
            ("GET", _) if fields.iter().any(|(name, _)| name.eq_ignore_ascii_case("last-event-id")) => {
                "GET resumed".to_owned()
            }
            _ => verb,
        };
        let id = body["id"].to_string();
        let ask = Ask { target, fields, id, body, ..Ask::new(self.began.elapsed(), connection, what) };
        Ok(Some(self.change(|state| {
            let count = state.counts.entry(ask.what.clone()).or_default();
            let ask = Ask { count: *count, ..ask };
            *count += 1;
            state.asks.push(ask.clone());
            state.busy.insert(connection);
            ask
        })))
    }

    /// Carries out a step. Returns true if it was the last one on this connection.
    fn take(&self, step: &Step, ask: &Ask, stream: &mut BufReader<TcpStream>) -> io::Result<bool> {
        let long = Duration::from_secs(3600);
        let out = stream.get_mut();
        match step {
            Step::Say(text) => out.write_all(text.replace("{id}", &ask.id).as_bytes())?,
            Step::Bytes(bytes) => out.write_all(bytes)?,
            Step::Whole(status, fields, body) => {
                let body = body.replace("{id}", &ask.id);
                let head = format!("HTTP/1.1 {status}\r\n{fields}Content-Length: {}\r\n\r\n", body.len());
                out.write_all((head + &body).as_bytes())?;
            }
            Step::Repeat(text, count) => {
                let at_once = (BLOCK / text.len()).max(1) as u64;
                let block = text.repeat((BLOCK / text.len()).max(1));
                for _ in 0..count / at_once {
                    pour(out, block.as_bytes())?;
                }
                for _ in 0..count % at_once {
                    out.write_all(text.as_bytes())?;
                }
            }
            Step::Drip(text, gap) => {
                for byte in text.replace("{id}", &ask.id).bytes() {
                    out.write_all(&[byte])?;
                    self.wait(*gap, |state| state.stopped);
                }
            }
            Step::Wait(time) => drop(self.wait(*time, |state| state.stopped)),
            Step::After(what) => drop(self.wait(long, |state| state.times(what) > 0)),
            Step::To(what, text) => {
                self.wait(long, |state| state.times(what) > 0);
                let id = self.state().asks.iter().find(|ask| ask.what == *what).map(|ask| ask.id.clone());
                out.write_all(text.replace("{id}", &id.unwrap_or_default()).as_bytes())?;
            }
            Step::Hold => {
                io::copy(stream, &mut io::sink())?;
                return Ok(true);
            }
            Step::Vanish => {
                // It does not count: no client can disconnect from it.
                self.change(|state| state.busy.remove(&ask.connection));
                self.wait(long, |state| state.stopped);
                return Ok(true);
            }
            Step::Close => return Ok(true),
            Step::Reset => {
                // The connection ends with its last descriptor.
                self.change(|state| state.streams.remove(&ask.connection));
                rustix::net::sockopt::set_socket_linger(&*out, Some(Duration::ZERO))?;
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Writes everything, to a client that may have disconnected meanwhile. Linux keeps such a
/// connection for a minute if it accepted no more bytes at that time, and reports this only as the
/// end of the input.
fn pour(out: &mut TcpStream, mut bytes: &[u8]) -> io::Result<()> {
    out.set_write_timeout(Some(Duration::from_millis(100)))?;
    while !bytes.is_empty() {
        match out.write(bytes) {
            Ok(n) => bytes = &bytes[n..],
            Err(e) if e.kind() == ErrorKind::WouldBlock => {
                out.set_nonblocking(true)?;
                let peeked = out.peek(&mut [0]);
                out.set_nonblocking(false)?;
                if peeked.is_ok_and(|n| n == 0) {
                    return Err(ErrorKind::BrokenPipe.into());
                }
            }
            Err(e) => return Err(e),
        }
    }
    out.set_write_timeout(None)
}
