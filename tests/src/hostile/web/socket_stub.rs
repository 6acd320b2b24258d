//! A WebSocket server of 2026-07-28 that writes what its script says, byte for byte, valid or not,
//! when its tool `bad` is called. Its other tools return their names, except `wait`, which never
//! returns.

use crate::frames::{CLOSE, PONG, TEXT, code, plain, read};
use bytes::Bytes;
use mcp_proto::exchange::{Action, IoEvent, Peer};
use mcp_proto::wired::{Kind, WiredServer};
use mcp_proto::{Implementation, Instant, ServerConfig};
use serde_json::{Value, json};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

/// The response to a call with this id.
type Script = Box<dyn Fn(&mut Wire, &Value) -> io::Result<()> + Send + Sync>;

/// A running stub. It ends with the process.
pub(in crate::hostile) struct SocketStub {
    address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    bad: Script,
    told: Mutex<Told>,
}

/// What the clients have done so far.
#[derive(Clone, Default, Debug)]
pub(in crate::hostile) struct Told {
    pub(super) connections: usize,
    /// The connections that have not ended.
    pub(super) open: usize,
    pub(super) pongs: u64,
    /// The codes of their `Close` frames.
    pub(super) closes: Vec<Option<u16>>,
    /// The tools that were called.
    pub(super) calls: Vec<String>,
}

/// One connection of a stub.
pub(in crate::hostile) struct Wire {
    stream: BufReader<TcpStream>,
    shared: Arc<Shared>,
}

impl SocketStub {
    pub(in crate::hostile) fn start(
        bad: impl Fn(&mut Wire, &Value) -> io::Result<()> + Send + Sync + 'static,
    ) -> Result<Self, String> {
        let listener = TcpListener::bind("127.0.0.1:0").map_err(|e| e.to_string())?;
        let address = listener.local_addr().map_err(|e| e.to_string())?;
        let shared = Arc::new(Shared { bad: Box::new(bad), told: Mutex::default() });
        let accepting = Arc::clone(&shared);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let shared = Arc::clone(&accepting);
                shared.change(|told| (told.connections, told.open) = (told.connections + 1, told.open + 1));
                thread::spawn(move || {
                    // Either side may end it, in any way.
                    let _ = Wire { stream: BufReader::new(stream), shared: Arc::clone(&shared) }.serve();
                    shared.change(|told| told.open -= 1);
                });
            }
        });
        Ok(Self { address, shared })
    }

    pub(in crate::hostile) fn url(&self) -> String {
        format!("ws://{}/mcp", self.address)
    }

    pub(super) fn told(&self) -> Told {
        self.shared.told().clone()
    }
}

impl Shared {
    fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut Told)) {
        change(&mut self.told());
    }
}

impl Wire {
    fn serve(mut self) -> io::Result<()> {
        self.stream.get_ref().set_nodelay(true)?;
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if self.stream.read_line(&mut head)? == 0 {
                return Ok(());
            }
        }
        self.say(&accept(head))?;
        while let Some(message) = self.hear()? {
            let (id, tool) = (&message["id"], message["params"]["name"].as_str().unwrap_or_default());
            match message["method"].as_str() {
                Some("server/discover") => self.say(&result(
                    id,
                    json!({"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "ttlMs": 0,
                        "cacheScope": "private"}),
                ))?,
                Some("tools/call") => match tool {
                    "bad" => {
                        let shared = Arc::clone(&self.shared);
                        (shared.bad)(&mut self, id)?;
                    }
                    "wait" => {}
                    name => self.say(&answer(id, name))?,
                },
                _ => {}
            }
        }
        Ok(())
    }

    /// Writes these bytes.
    pub(super) fn say(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.get_mut().write_all(bytes)
    }

    /// Writes this, then the part repeatedly, for this number of bytes or as long as the peer
    /// accepts them, and at last this. Nothing is read meanwhile.
    pub(super) fn pour(&mut self, first: &[u8], part: &[u8], bytes: u64, last: &[u8]) -> io::Result<()> {
        pour(self.stream.get_mut(), first, part, bytes, last)
    }

    /// The same, on a new thread.
    pub(in crate::hostile) fn pour_beside(
        &mut self,
        first: &[u8],
        part: &[u8],
        bytes: u64,
        last: &[u8],
    ) -> io::Result<()> {
        let mut out = self.stream.get_ref().try_clone()?;
        let [first, part, last] = [first, part, last].map(<[u8]>::to_vec);
        // It ends with the connection, in any way.
        thread::spawn(move || pour(&mut out, &first, &part, bytes, &last));
        Ok(())
    }

    /// Returns the next message. Answers the `Close` of the client, after which there is none.
    fn hear(&mut self) -> io::Result<Option<Value>> {
        loop {
            match self.frame()? {
                (TEXT, text) => {
                    let message: Value = serde_json::from_slice(&text).map_err(io::Error::other)?;
                    let tool = message["params"]["name"].as_str().map(str::to_owned);
                    self.shared.change(|told| told.calls.extend(tool));
                    return Ok(Some(message));
                }
                (CLOSE, payload) => return self.say(&plain(CLOSE, &payload)).map(|()| None),
                _ => {}
            }
        }
    }

    /// Reads until this tool was called, which may be the case, and answers nothing.
    pub(super) fn await_call(&mut self, tool: &str) -> io::Result<()> {
        while !self.shared.told().calls.iter().any(|called| called == tool) {
            self.hear()?.ok_or(io::ErrorKind::UnexpectedEof)?;
        }
        Ok(())
    }

    /// Reads and answers nothing, not even a `Close`, until the client ends the connection.
    pub(super) fn hear_out(&mut self) -> io::Result<()> {
        loop {
            self.frame()?;
        }
    }

    fn frame(&mut self) -> io::Result<(u8, Vec<u8>)> {
        let stream = &mut self.stream;
        let (first, payload) = read(|count| {
            let mut bytes = vec![0; count];
            stream.read_exact(&mut bytes).map(|()| bytes)
        })?;
        self.shared.change(|told| match first {
            PONG => told.pongs += 1,
            CLOSE => told.closes.push(code(&payload)),
            _ => {}
        });
        Ok((first, payload))
    }
}

fn pour(out: &mut TcpStream, first: &[u8], part: &[u8], bytes: u64, last: &[u8]) -> io::Result<()> {
    out.write_all(first)?;
    let block = part.repeat((BLOCK / part.len()).max(1));
    let mut written = 0;
    while written < bytes {
        out.write_all(&block)?;
        written = written.saturating_add(block.len() as u64);
    }
    out.write_all(last)
}

/// Bytes of one write of endless data.
const BLOCK: usize = 64 << 10;

/// Returns the frame of the result of a call: the name of the tool.
pub(super) fn answer(id: &Value, tool: &str) -> Vec<u8> {
    result(id, json!({"content": [{"type": "text", "text": tool}]}))
}

/// Returns the text of the result of a call.
pub(super) fn text(id: &Value, mut result: Value) -> String {
    result["resultType"] = "complete".into();
    json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string()
}

fn result(id: &Value, result: Value) -> Vec<u8> {
    plain(TEXT, text(id, result).as_bytes())
}

/// Returns what our own server answers to a handshake, so that the stub needs no SHA-1. Only this
/// handshake is valid in every row.
fn accept(head: String) -> Vec<u8> {
    let mut config = ServerConfig::new(Implementation::new("stub", "1"));
    config.web_socket = true;
    let mut engine = WiredServer::new(Arc::new(config), [7; 32], Instant::ZERO);
    let connection = engine.accept(Instant::ZERO, Kind::HttpServer, Peer::default());
    engine.handle_io(Instant::ZERO, connection, IoEvent::Read(Bytes::from(head)));
    let written = std::iter::from_fn(|| engine.poll_output()).filter_map(|action| match action {
        Action::Write(_, bytes) => Some(bytes),
        _ => None,
    });
    written.flatten().collect()
}
