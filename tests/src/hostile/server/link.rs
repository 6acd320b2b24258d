//! A connection of a client that writes any bytes, and reads as a strict client would.

use crate::frames;
use crate::hostile::rows::expect;
use crate::stub::SOON;
use rustix::net::sockopt::{set_socket_linger, set_socket_recv_buffer_size};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection};
use serde_json::Value;
use std::fmt;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Bytes of one write of endless data.
const BLOCK: usize = 64 << 10;

/// Time without progress after which a server counts as one that accepts no more.
const FULL: Duration = Duration::from_millis(500);

/// Maximum size of a response: these clients request no larger one.
const LONGEST: usize = 64 << 20;

pub(super) struct Link {
    stream: TcpStream,
    /// Its side of TLS, if that has begun.
    tls: Option<Box<ClientConnection>>,
    /// The bytes that were read and not used yet.
    held: Vec<u8>,
    /// Bytes of one read, and the pause between two, if slow.
    pace: Option<Pace>,
}

/// Returns the side of a client of TLS with our server.
pub(super) fn handshake(config: Arc<ClientConfig>) -> Result<ClientConnection, String> {
    let name = ServerName::try_from("localhost").map_err(|e| e.to_string())?;
    ClientConnection::new(config, name).map_err(|e| e.to_string())
}

/// A response of a server.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) fields: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
}

impl Answer {
    /// Returns a field, with any case of its name.
    pub(super) fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(one, _)| one.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// Returns the message in it: the body, or the last event with data.
    pub(super) fn json(&self) -> Result<Value, String> {
        let body = String::from_utf8_lossy(&self.body);
        let events = self.field("Content-Type").is_some_and(|kind| kind.starts_with("text/event-stream"));
        let mut data =
            body.lines().filter_map(|line| line.strip_prefix("data:")).filter(|data| !data.trim().is_empty());
        let text = if events { data.next_back().unwrap_or_default() } else { &body };
        serde_json::from_str(text).map_err(|e| format!("{e}: {self}"))
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let body = String::from_utf8_lossy(&self.body);
        write!(f, "{} {}", self.status, body.chars().take(200).collect::<String>())
    }
}

/// The reading rate of a link.
struct Pace {
    part: usize,
    gap: Duration,
    next: Instant,
}

impl Pace {
    /// Waits for the next part. Returns its size. A late part is not waited for: a busy machine
    /// makes no reader slower.
    fn wait(&mut self) -> usize {
        thread::park_timeout(self.next.saturating_duration_since(Instant::now()));
        self.next += self.gap;
        self.part
    }
}

impl Link {
    pub(super) fn to(address: SocketAddr) -> Result<Self, String> {
        let stream = TcpStream::connect_timeout(&address, SOON).map_err(|e| format!("no connection: {e}"))?;
        let set = stream.set_nodelay(true).and_then(|()| stream.set_read_timeout(Some(SOON)));
        set.map_err(|e| e.to_string())?;
        Ok(Self { stream, tls: None, held: Vec::new(), pace: None })
    }

    /// Begins TLS, and completes the handshake.
    pub(super) fn secure(&mut self, config: Arc<ClientConfig>) -> Result<(), String> {
        let mut tls = handshake(config)?;
        tls.complete_io(&mut self.stream).map_err(|e| format!("no handshake: {e}"))?;
        self.tls = Some(Box::new(tls));
        Ok(())
    }

    /// Returns its side of TLS.
    pub(super) fn tls(&mut self) -> Option<&mut ClientConnection> {
        self.tls.as_deref_mut()
    }

    /// Waits for a response for this time, in place of [`SOON`].
    pub(super) fn be_patient(&self, time: Duration) -> Result<(), String> {
        self.stream.set_read_timeout(Some(time)).map_err(|e| e.to_string())
    }

    /// Sets a small receive buffer, so that the server notices the reading rate.
    pub(super) fn narrow(&self) -> Result<(), String> {
        set_socket_recv_buffer_size(&self.stream, 64 << 10).map_err(|e| e.to_string())
    }

    /// Writes this. The reader sees the result: a server may have refused, and closed, before all
    /// of it was written.
    pub(super) fn say(&mut self, bytes: &[u8]) {
        let _ = match &mut self.tls {
            Some(tls) => rustls::Stream::new(&mut **tls, &mut self.stream).write_all(bytes),
            None => self.stream.write_all(bytes),
        };
    }

    /// Writes these bytes below TLS.
    pub(super) fn say_below(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes);
    }

    /// Writes this until the server accepts no more of it for some time. Returns the number of
    /// bytes.
    pub(super) fn fill(&mut self, bytes: &[u8]) -> Result<usize, String> {
        self.stream.set_write_timeout(Some(FULL)).map_err(|e| e.to_string())?;
        let mut taken = 0;
        while taken < bytes.len() {
            match self.stream.write(&bytes[taken..]) {
                Ok(n) => taken += n,
                Err(e) if e.kind() == ErrorKind::WouldBlock => break,
                Err(e) => return Err(format!("after {taken} bytes: {e}")),
            }
        }
        self.stream.set_write_timeout(None).map_err(|e| e.to_string())?;
        Ok(taken)
    }

    /// Writes this repeatedly on a new thread, for this number of bytes or as long as the peer
    /// accepts them. Then returns the number of bytes.
    pub(super) fn pour(&self, part: &[u8], bytes: u64) -> Result<JoinHandle<u64>, String> {
        let mut out = self.stream.try_clone().map_err(|e| e.to_string())?;
        let block = part.repeat((BLOCK / part.len()).max(1));
        Ok(thread::spawn(move || {
            let mut taken = 0;
            while taken < bytes && out.write_all(&block).is_ok() {
                taken += block.len() as u64;
            }
            taken
        }))
    }

    /// Writes this on a new thread: it may be more than the server takes before it is read.
    pub(super) fn say_beside(&self, bytes: Vec<u8>) -> Result<JoinHandle<u64>, String> {
        let length = bytes.len() as u64;
        self.pour(&bytes, length)
    }

    /// Writes this repeatedly on a new thread, with this pause, until the peer does not accept it.
    pub(super) fn drip(&self, part: &'static [u8], gap: Duration) -> Result<JoinHandle<()>, String> {
        let mut out = self.stream.try_clone().map_err(|e| e.to_string())?;
        Ok(thread::spawn(move || {
            while out.write_all(part).is_ok() {
                thread::park_timeout(gap);
            }
        }))
    }

    /// Reads the next response completely, in parts of this size with this pause.
    pub(super) fn answer_in_parts(&mut self, part: usize, gap: Duration) -> Result<Answer, String> {
        self.pace = Some(Pace { part, gap, next: Instant::now() });
        let answer = self.answer();
        self.pace = None;
        answer
    }

    /// Reads the next response completely.
    pub(super) fn answer(&mut self) -> Result<Answer, String> {
        let mut answer = self.head()?;
        answer.body = match (answer.field("Transfer-Encoding"), answer.field("Content-Length")) {
            _ if answer.status < 200 || matches!(answer.status, 204 | 304) => Vec::new(),
            (Some("chunked"), None) => {
                let mut body = Vec::new();
                while let Some(chunk) = self.chunk()? {
                    body.extend(chunk);
                }
                body
            }
            (None, Some(length)) => {
                let length = length.parse().map_err(|e| format!("its length is {length:?}: {e}"))?;
                self.take(length)?
            }
            (None, None) => {
                while self.more()? {}
                std::mem::take(&mut self.held)
            }
            other => return Err(format!("its framing is {other:?}")),
        };
        Ok(answer)
    }

    /// Reads the head of the next response, without a body or before a stream.
    pub(super) fn head(&mut self) -> Result<Answer, String> {
        let end = loop {
            match self.held.windows(4).position(|end| end == b"\r\n\r\n") {
                Some(at) => break at + 4,
                None if self.more()? => {}
                None if self.held.is_empty() => return Err("it ends without an answer".into()),
                None => return Err(format!("it ends in a head: {}", self.shown())),
            }
        };
        let head = String::from_utf8(self.take(end)?).map_err(|e| e.to_string())?;
        let mut lines = head.trim_end().split("\r\n");
        let line = lines.next().unwrap_or_default();
        let status = line.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)).and_then(|code| code.parse().ok());
        let status = status.ok_or_else(|| format!("no status: {line:?}"))?;
        let fields = lines.map(|line| match line.split_once(": ") {
            Some((name, value)) => Ok((name.to_string(), value.to_string())),
            None => Err(format!("no field: {line:?}")),
        });
        Ok(Answer { status, fields: fields.collect::<Result<_, _>>()?, body: Vec::new() })
    }

    /// Reads the head of the next response, which is a success.
    pub(super) fn opens(&mut self) -> Result<(), String> {
        let head = self.head()?;
        expect(head.status == 200, || format!("{head} in place of 200"))
    }

    /// Reads the next response completely, which is a success.
    pub(super) fn served(&mut self) -> Result<(), String> {
        let answer = self.answer()?;
        expect(answer.status == 200, || format!("{answer} in place of 200"))
    }

    /// Reads the next chunk of a body. `None` after the last.
    pub(super) fn chunk(&mut self) -> Result<Option<Vec<u8>>, String> {
        let end = loop {
            match self.held.windows(2).position(|end| end == b"\r\n") {
                Some(at) => break at,
                None if self.more()? => {}
                None => return Err(format!("it ends in a chunk: {}", self.shown())),
            }
        };
        let line = String::from_utf8(self.take(end + 2)?).map_err(|e| e.to_string())?;
        let size = usize::from_str_radix(line.trim_end(), 16).map_err(|e| format!("a chunk of {line:?}: {e}"))?;
        let mut chunk = self.take(size + 2)?;
        chunk.truncate(size);
        Ok(Some(chunk).filter(|_| size > 0))
    }

    /// Reads chunks of a stream until their content contains this. Returns the whole content.
    pub(super) fn until(&mut self, text: &str) -> Result<String, String> {
        let mut all = String::new();
        while !all.contains(text) {
            match self.chunk()? {
                Some(chunk) => all += &String::from_utf8(chunk).map_err(|e| e.to_string())?,
                None => return Err(format!("the stream ends without {text:?}: {all:?}")),
            }
        }
        Ok(all)
    }

    /// Reads the next frame of a WebSocket: its first byte and its payload.
    pub(super) fn frame(&mut self) -> Result<(u8, Vec<u8>), String> {
        frames::read(|count| self.take(count))
    }

    /// Returns what the server has sent. Waits if that is nothing.
    pub(super) fn some(&mut self) -> Result<Vec<u8>, String> {
        if self.held.is_empty() && !self.more()? {
            return Err("it ends without a word".into());
        }
        Ok(std::mem::take(&mut self.held))
    }

    /// Checks that the server closes the connection without a further response.
    pub(super) fn is_over(&mut self) -> Result<(), String> {
        match self.more() {
            Ok(true) => Err(format!("more is said: {}", self.shown())),
            Ok(false) if self.held.is_empty() => Ok(()),
            Ok(false) => Err(format!("more was said: {}", self.shown())),
            Err(why) => Err(format!("it is not closed: {why}")),
        }
    }

    /// Returns the output of the server before it closes the connection.
    pub(super) fn rest(&mut self) -> Result<Vec<u8>, String> {
        while self.more()? {}
        Ok(std::mem::take(&mut self.held))
    }

    /// Closes the writing side, and continues to read.
    pub(super) fn finish(&self) {
        let _ = self.stream.shutdown(Shutdown::Write);
    }

    /// Closes both directions, for all threads that write on it. A write may wait for room in the
    /// window of a server that has closed its socket already: the kernel probes that at ever longer
    /// intervals, for two minutes.
    pub(super) fn leave(self) {
        let _ = self.stream.shutdown(Shutdown::Both);
    }

    /// Resets the connection.
    pub(super) fn reset(self) {
        let _ = set_socket_linger(&self.stream, Some(Duration::ZERO));
    }

    /// Reads some bytes. Returns false at the end, which may be a reset.
    fn more(&mut self) -> Result<bool, String> {
        let mut buffer = [0; 16 << 10];
        if self.held.len() > LONGEST {
            return Err("it says too much".into());
        }
        let size = self.pace.as_mut().map_or(buffer.len(), Pace::wait).min(buffer.len());
        let read = match &mut self.tls {
            Some(tls) => rustls::Stream::new(&mut **tls, &mut self.stream).read(&mut buffer[..size]),
            None => self.stream.read(&mut buffer[..size]),
        };
        match read {
            Ok(n) => {
                self.held.extend_from_slice(&buffer[..n]);
                Ok(n > 0)
            }
            Err(e) if matches!(e.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe) => Ok(false),
            Err(e) if e.kind() == ErrorKind::Interrupted => Ok(true),
            Err(e) if e.kind() == ErrorKind::WouldBlock => {
                Err(format!("nothing is said for {SOON:?}: {}", self.shown()))
            }
            Err(e) => Err(e.to_string()),
        }
    }

    fn take(&mut self, count: usize) -> Result<Vec<u8>, String> {
        while self.held.len() < count {
            if !self.more()? {
                return Err(format!("it ends too soon: {}", self.shown()));
            }
        }
        let rest = self.held.split_off(count);
        Ok(std::mem::replace(&mut self.held, rest))
    }

    fn shown(&self) -> String {
        String::from_utf8_lossy(&self.held[..self.held.len().min(200)]).into_owned()
    }
}
