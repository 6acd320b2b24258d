//! What happens to the bytes between both ends of a connection: frames of a WebSocket are split,
//! added and broken, and events are added to the stream of HTTP+SSE.

use super::Fault;
use crate::frames;
use crate::sim::fault::Chaos;
use bytes::Bytes;

const TEXT: u8 = 1;
const CLOSE: u8 = 8;
const PING: u8 = 9;
const PONG: u8 = 10;
const FIN: u8 = 0x80;

/// One connection.
#[derive(Debug, Default)]
pub(super) struct Relay {
    /// The direction to the client, and that to the server.
    frames: [Frames; 2],
    stream: Stream,
}

impl Relay {
    /// Returns what arrives of these bytes of a WebSocket.
    pub(super) fn web_socket(&mut self, chaos: &mut Chaos, up: bool, bytes: &[u8]) -> Bytes {
        self.frames[usize::from(up)].relay(chaos, up, bytes).into()
    }

    /// Returns what arrives of these bytes of HTTP+SSE. `may_move`: the client follows the server
    /// to another endpoint.
    pub(super) fn sse(&mut self, chaos: &mut Chaos, may_move: bool, bytes: &Bytes) -> Bytes {
        self.stream.relay(chaos, may_move, bytes)
    }
}

/// One direction of a WebSocket.
#[derive(Debug, Default)]
struct Frames {
    /// Whether the handshake is over, and whether it has succeeded.
    opened: Option<bool>,
    buffer: Vec<u8>,
}

impl Frames {
    fn relay(&mut self, chaos: &mut Chaos, up: bool, bytes: &[u8]) -> Vec<u8> {
        self.buffer.extend_from_slice(bytes);
        let mut out = Vec::new();
        if self.opened.is_none()
            && let Some(end) = self.buffer.windows(4).position(|window| window == b"\r\n\r\n")
        {
            self.opened = Some(up || self.buffer.starts_with(b"HTTP/1.1 101"));
            out.extend(self.buffer.drain(..end + 4));
        }
        match self.opened {
            None => {}
            Some(false) => out.append(&mut self.buffer),
            Some(true) => {
                while let Some((first, payload, len)) = read(&self.buffer) {
                    self.buffer.drain(..len);
                    split(&mut out, chaos, up, first, &payload);
                    disturb(&mut out, chaos, up);
                }
            }
        }
        out
    }
}

/// Reads a whole frame: its first byte, its payload without a mask, and its length.
fn read(bytes: &[u8]) -> Option<(u8, Vec<u8>, usize)> {
    let mut rest = bytes;
    let (first, payload) = frames::read(|count| rest.split_off(..count).map(<[u8]>::to_vec).ok_or(())).ok()?;
    Some((first, payload, bytes.len() - rest.len()))
}

/// Writes a frame, with a mask to the server.
fn write(out: &mut Vec<u8>, chaos: &mut Chaos, masked: bool, first: u8, payload: &[u8]) {
    let mask = masked.then(|| (chaos.rng.below(1 << 32) as u32).to_be_bytes());
    out.extend(frames::frame(first, mask, payload));
}

/// Writes a message in one frame or in several, also within a character, with control frames
/// between them.
fn split(out: &mut Vec<u8>, chaos: &mut Chaos, up: bool, first: u8, payload: &[u8]) {
    if first != FIN | TEXT || !chaos.hit(Fault::Reframe, 500) {
        return write(out, chaos, up, first, payload);
    }
    let (mut rest, mut code) = (payload, TEXT);
    for _ in 0..chaos.rng.below(4) {
        let (piece, after) = rest.split_at(chaos.rng.below(rest.len() as u64 + 1) as usize);
        write(out, chaos, up, code, piece);
        (rest, code) = (after, 0);
        control(out, chaos, up);
    }
    write(out, chaos, up, FIN | code, rest);
}

/// Adds a control frame that changes nothing.
fn control(out: &mut Vec<u8>, chaos: &mut Chaos, up: bool) {
    if chaos.hit(Fault::ControlFrame, 200) {
        let payload = vec![b'p'; chaos.rng.below(126) as usize];
        let code = chaos.rng.of(&[PING, PONG]);
        write(out, chaos, up, FIN | code, &payload);
    }
}

/// Adds a frame between two messages.
fn disturb(out: &mut Vec<u8>, chaos: &mut Chaos, up: bool) {
    control(out, chaos, up);
    if chaos.hit(Fault::CloseFrame, 8) {
        let code: u16 = chaos.rng.of(&[1000, 1001, 1011, 3000, 4999]);
        let payload = if chaos.rng.per_mille(200) { Vec::new() } else { code.to_be_bytes().to_vec() };
        write(out, chaos, up, FIN | CLOSE, &payload);
    }
    if chaos.hit(Fault::BadFrame, 8) {
        match chaos.rng.below(5) {
            0 => write(out, chaos, !up, FIN | TEXT, b"{}"),
            1 => write(out, chaos, up, FIN | 0x40 | TEXT, b"{}"),
            2 => write(out, chaos, up, FIN | 3, b""),
            3 => write(out, chaos, up, FIN, b"{}"),
            _ => write(out, chaos, up, FIN | CLOSE, b"x"),
        }
    }
}

/// What the server sends on a connection of HTTP+SSE.
#[derive(Debug, Default)]
struct Stream {
    is_open: bool,
    /// The endpoint that the server has named.
    reference: Option<String>,
    moves: u64,
}

impl Stream {
    fn relay(&mut self, chaos: &mut Chaos, may_move: bool, bytes: &Bytes) -> Bytes {
        let text = String::from_utf8_lossy(bytes);
        self.is_open |= text.contains("text/event-stream");
        if let Some((_, after)) = text.split_once("event: endpoint\ndata: ") {
            self.reference = after.split('\n').next().map(str::to_owned);
        }
        // After a chunk, and not after the last one.
        let is_between = text.ends_with("\r\n") && !text.ends_with("0\r\n\r\n");
        let Some(reference) = self.reference.clone().filter(|_| self.is_open && is_between) else {
            return bytes.clone();
        };
        let data = match chaos
            .pick(&[Fault::SameEndpoint, Fault::OtherEndpoint, Fault::ForeignEndpoint, Fault::BadEndpoint], 120)
        {
            None => return bytes.clone(),
            Some(Fault::ForeignEndpoint) => format!("http://elsewhere.example{reference}"),
            Some(Fault::BadEndpoint) => chaos.rng.of(&["", "http://[", "mailto:x", "\u{1}"]).to_owned(),
            Some(Fault::OtherEndpoint) if may_move => {
                self.moves += 1;
                format!("{reference}&moved={}", self.moves)
            }
            Some(_) => match chaos.rng.below(3) {
                0 => format!("http://localhost{reference}"),
                1 => format!("http://LOCALHOST:80{reference}"),
                _ => reference,
            },
        };
        let event = format!("event: endpoint\ndata: {data}\n\n");
        let chunk = format!("{:x}\r\n{event}\r\n", event.len());
        [bytes, chunk.as_bytes()].concat().into()
    }
}
