//! A web server that says what its script says, byte for byte, right or wrong, and remembers what it was asked. It knows as much of HTTP as
//! it takes to find the end of a request, and no library of it, so it can say what no library would.

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

/// How long something that must happen may take.
pub const SOON: Duration = Duration::from_secs(10);

/// What is written at once where much is written.
const BLOCK: usize = 64 << 10;

/// One thing that a stub does in answer to a request. After the last of them the connection goes on with the next request.
#[derive(Clone, Debug)]
pub enum Step {
    /// Says this; `{id}` stands for the id of the request.
    Say(Cow<'static, str>),
    /// Says these bytes.
    Bytes(&'static [u8]),
    /// Says an answer with its length: its status, further fields (each with its line end) and body, in which `{id}` is filled in.
    Whole(&'static str, Cow<'static, str>, Cow<'static, str>),
    /// Says this so many times.
    Repeat(&'static str, u64),
    /// Says this one byte after the other, with so long between them.
    Drip(&'static str, Duration),
    /// Says nothing for so long.
    Wait(Duration),
    /// Says nothing until it was asked this as well: see [`Ask::what`].
    After(&'static str),
    /// Says nothing more. The connection stays until the client ends it.
    Hold,
    /// Neither says nor hears anything more, as a machine does that has lost its power: not even the end of the connection.
    Vanish,
    /// Ends the connection in order.
    Close,
    /// Ends it with a reset.
    Reset,
}

/// Says this; `{id}` stands for the id of the request.
pub fn say(text: impl Into<Cow<'static, str>>) -> Step {
    Step::Say(text.into())
}

/// Says this without end.
pub const fn endless(text: &'static str) -> Step {
    Step::Repeat(text, u64::MAX)
}

/// An answer with its length.
pub fn whole(status: &'static str, fields: impl Into<Cow<'static, str>>, body: impl Into<Cow<'static, str>>) -> Step {
    Step::Whole(status, fields.into(), body.into())
}

/// An answer of JSON.
pub fn json(body: impl Into<Cow<'static, str>>) -> Step {
    whole("200 OK", "Content-Type: application/json\r\n", body)
}

/// The head of an event stream that the end of its connection ends.
pub const EVENTS: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";

/// What a stub was asked once.
#[derive(Clone, Debug)]
pub struct Ask {
    /// When, since the stub was started.
    pub at: Duration,
    /// On which connection, counted from 0.
    pub connection: usize,
    /// What, for scripts: the method of a POST's message and the tool it calls (`tools/call add`), `response`, or else the verb, which is
    /// `GET resumed` with a `Last-Event-ID`. `open` is nothing that was asked: the connection has just been made. It is not remembered.
    pub what: String,
    /// How often the same was asked before.
    pub count: usize,
    /// The fields.
    pub fields: Vec<(String, String)>,
    /// The id of the message, as it is on the wire.
    pub id: String,
    /// The message; `null` if it is none.
    pub body: Value,
}

impl Ask {
    fn new(at: Duration, connection: usize, what: String) -> Self {
        Self { at, connection, what, count: 0, fields: Vec::new(), id: String::new(), body: Value::Null }
    }

    /// A field, whatever the case of its name.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(one, _)| one.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }
}

/// What a stub does when it is asked something.
type Script = Box<dyn Fn(&Ask) -> Vec<Step> + Send + Sync>;

/// A stub that runs. It ends when it is dropped.
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
    /// The connections on which it is not done with an answer.
    busy: BTreeSet<usize>,
    stopped: bool,
}

impl State {
    fn times(&self, what: &str) -> usize {
        self.counts.get(what).copied().unwrap_or_default()
    }
}

impl Stub {
    /// Starts one that answers as `script` says.
    ///
    /// # Errors
    /// The system gives no socket.
    pub fn start(script: impl Fn(&Ask) -> Vec<Step> + Send + Sync + 'static) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let (state, changed) = Default::default();
        let shared = Arc::new(Shared { script: Box::new(script), began: Instant::now(), state, changed });
        let accepting = Arc::clone(&shared);
        thread::spawn(move || accepting.accept(&listener));
        Ok(Self { address, shared })
    }

    /// Where it listens.
    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// All that it was asked so far.
    pub fn asks(&self) -> Vec<Ask> {
        self.shared.state().asks.clone()
    }

    /// What it was asked of this kind so far.
    pub fn asked(&self, what: &str) -> Vec<Ask> {
        self.shared.state().asks.iter().filter(|ask| ask.what == what).cloned().collect()
    }

    /// How often it was asked this.
    pub fn times(&self, what: &str) -> usize {
        self.shared.state().times(what)
    }

    /// How many connections were made to it.
    pub fn connections(&self) -> usize {
        self.shared.state().connections
    }

    /// Waits so long until it is done with every answer: all of it is said, or the client has let go of it.
    pub fn is_done_within(&self, limit: Duration) -> bool {
        self.shared.wait(limit, |state| state.busy.is_empty())
    }

    /// Waits until it was asked so often of this kind.
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
        // Wakes the thread that accepts.
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

    /// Waits until it is so, for so long at most.
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
                // It ends when either side ends it, and how does not matter.
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

    /// Says what the script has for this. True: the connection is over.
    fn answer(&self, ask: &Ask, stream: &mut BufReader<TcpStream>) -> io::Result<bool> {
        for step in (self.script)(ask) {
            if self.take(&step, ask, stream)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The next request. `None`: there is none.
    fn hear(&self, connection: usize, stream: &mut BufReader<TcpStream>) -> io::Result<Option<Ask>> {
        let mut line = String::new();
        if stream.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        let verb = line.split(' ').next().unwrap_or_default().to_owned();
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
        let ask = Ask { fields, id, body, ..Ask::new(self.began.elapsed(), connection, what) };
        Ok(Some(self.change(|state| {
            let count = state.counts.entry(ask.what.clone()).or_default();
            let ask = Ask { count: *count, ..ask };
            *count += 1;
            state.asks.push(ask.clone());
            state.busy.insert(connection);
            ask
        })))
    }

    /// Takes a step. True: it was the last on this connection.
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
            Step::Hold => {
                io::copy(stream, &mut io::sink())?;
                return Ok(true);
            }
            Step::Vanish => {
                // It does not count: nobody can let go of what is not there.
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

/// Writes it all, to a client that may have let go meanwhile. Linux keeps such a connection for a minute if it took no more bytes just then,
/// and tells nobody but by the end of what there is to read.
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
