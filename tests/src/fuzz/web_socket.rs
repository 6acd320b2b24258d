//! WebSockets, compared with another reader: the first bytes choose the side that reads, its
//! limits, the cuts, and whether the rest is the bytes of the peer or a script of its frames.

use super::script::{Script, pieces};
use super::web_socket_model::{Last, Model, Part};
use bytes::Bytes;
use mcp_proto::Instant;
use mcp_proto::exchange::{
    Body, Closed, ExchangeEvent, ExchangeId, Headers, Inbound, IoEvent, Outbound, Peer, RequestHead, ResponseHead,
    WsDialect,
};
use mcp_proto::frame::{Conn, Kind};
use mcp_proto::limits::FrameLimits;
use mcp_proto::rpc::parse_batch_or_message;
use mcp_proto::wired::{Connection, ConnectionOutput};
use std::iter::from_fn;

/// What the client's key and masks are drawn from.
const SEED: [u8; 32] = [7; 32];

/// The response to the handshake with the key of that seed.
const RESPONSE: &[u8] = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
    Sec-WebSocket-Accept: taq1T1CwP77EutIgxu1caQkjNkU=\r\n\r\n";

/// A handshake, of any client.
const REQUEST: &[u8] = b"GET /mcp HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
    Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

/// Maximum length of the payload of a control frame.
const MOST_CONTROL: usize = 125;

/// A script of frames ends at this number of bytes.
const MOST_SCRIPTED: usize = 200_000;

/// Any cut of the bytes of a peer gives the messages and the end that the model finds in the whole,
/// and holds no more than the limits allow. Everything that is written is well-formed, and the
/// other side reads it. A peer that does not read causes one pong, and one more with a close.
///
/// # Panics
/// If not.
pub fn check(data: &[u8]) {
    let mut script = Script::new(data);
    let is_client = script.below(2) == 1;
    let mut limits = FrameLimits::default();
    limits.max_line = *script.pick(&[1 << 20, 1000, 125, 10, 0, 70_000]);
    limits.max_batch = 3;
    let cut = u64::from(script.byte());
    let flags = script.byte();
    let (closes, is_scripted) = (flags & 1 != 0, flags & 2 != 0);
    let case = Case { is_client, limits, closes };
    let bytes = if is_scripted { frames(&mut script, !is_client) } else { script.rest().to_vec() };
    let expected = Expected::of(&case, &bytes);

    let whole = case.read([Bytes::copy_from_slice(&bytes)], Polls::Always);
    expected.check(&case, &whole);
    assert_eq!(case.read(pieces(&bytes, cut), Polls::Always), whole, "in pieces");
    assert_eq!(case.read(pieces(&bytes, cut), Polls::Late), whole, "in pieces, polled late");
    let late = case.read(pieces(&bytes, cut), Polls::AtEnd);
    assert_eq!((late.items, late.end, late.written), (whole.items, whole.end, whole.written), "polled at the end");
    for reports in [true, false] {
        Driven::new(&case, reports).check(pieces(&bytes, cut), &expected);
    }
    case.return_messages(&expected, cut);
}

/// The side that reads.
struct Case {
    is_client: bool,
    limits: FrameLimits,
    /// It closes the connection before it reads.
    closes: bool,
}

/// When a codec is polled.
#[derive(Clone, Copy, PartialEq)]
enum Polls {
    /// After each piece.
    Always,
    /// After all pieces, before the end of the connection.
    Late,
    /// Only after the end, with the bytes of the handshake still unread.
    AtEnd,
}

/// The outcome of a codec.
#[derive(Debug, PartialEq)]
struct Read {
    items: Vec<Inbound>,
    end: Option<Closed>,
    /// Whether nothing was read in part before the end of the connection.
    at_boundary: bool,
    written: Vec<u8>,
}

impl Case {
    fn kind(&self) -> Kind {
        if self.is_client { Kind::WsClient(WsDialect::JsonRpc) } else { Kind::HttpServer }
    }

    /// The bytes of the peer before its frames.
    fn opening(&self) -> Bytes {
        Bytes::from_static(if self.is_client { RESPONSE } else { REQUEST })
    }

    /// The code with which this side closes.
    fn own_code(&self) -> u16 {
        if self.is_client { 1000 } else { 1001 }
    }

    fn read(&self, pieces: impl IntoIterator<Item = Bytes>, polls: Polls) -> Read {
        let mut conn = Conn::seeded(self.kind(), &self.limits, SEED);
        if self.is_client {
            conn.encode(Outbound::Request { head: request(), body: Bytes::new() });
        }
        conn.bytes(self.opening());
        if polls != Polls::AtEnd {
            self.open(&mut conn);
        }
        let mut items = Vec::new();
        for piece in pieces {
            conn.bytes(piece);
            if polls == Polls::Always {
                items.extend(from_fn(|| conn.poll_item()));
                // A message, a control frame, and the payload of a ping.
                let most = self.limits.max_line + 2 * MOST_CONTROL;
                assert!(conn.buffered() <= most, "{} bytes are held", conn.buffered());
            }
        }
        if polls != Polls::AtEnd {
            items.extend(from_fn(|| conn.poll_item()));
        }
        let at_boundary = conn.at_boundary();
        conn.eof();
        if polls == Polls::AtEnd {
            self.open(&mut conn);
        }
        items.extend(from_fn(|| conn.poll_item()));
        let end = conn.take_end();
        assert_eq!((conn.take_end(), conn.poll_item(), conn.broken()), (None, None, None), "after the end");
        let mut written = take_written(&mut conn);
        if matches!(end, Some(Closed::WebSocket { .. } | Closed::Broken(_))) || self.closes {
            for part in [Outbound::Message(Bytes::from_static(b"{}")), Outbound::End] {
                conn.encode(part);
                written.extend(take_written(&mut conn));
            }
        }
        assert!(conn.buffered() <= MOST_CONTROL, "{} bytes are held after the end", conn.buffered());
        Read { items, end, at_boundary, written }
    }

    /// Completes the handshake.
    fn open(&self, conn: &mut Conn) {
        if self.is_client {
            assert!(matches!(conn.poll_item(), Some(Inbound::Response(_))), "{:?}", conn.broken());
        } else {
            assert!(matches!(conn.poll_item(), Some(Inbound::Request(_))));
            assert_eq!(conn.poll_item(), Some(Inbound::End));
            conn.encode(response());
        }
        assert_eq!(conn.take_refused(), None);
        take_written(conn);
        if self.closes {
            conn.encode(Outbound::End);
        }
    }

    /// The peer writes the messages that this side has read: they are read again.
    fn return_messages(&self, expected: &Expected, cut: u64) {
        let peer = Self { is_client: !self.is_client, limits: self.limits.clone(), closes: false };
        let mut conn = Conn::seeded(peer.kind(), &peer.limits, SEED);
        if peer.is_client {
            conn.encode(Outbound::Request { head: request(), body: Bytes::new() });
        }
        conn.bytes(peer.opening());
        peer.open(&mut conn);
        let mut texts = Vec::new();
        for part in &expected.parts {
            if let Part::Text(text) = part {
                conn.encode(Outbound::Message(Bytes::copy_from_slice(text)));
                assert_eq!(conn.take_refused(), None);
                texts.push(part.clone());
            }
        }
        conn.encode(Outbound::End);
        let written = take_written(&mut conn);
        let close = Last::Close(Some(peer.own_code()), String::new());
        assert_eq!(peer.written(&written), (texts, close), "as the model reads it");
        let read = self.read(pieces(&written, cut), Polls::Always);
        let end = Closed::WebSocket { code: Some(peer.own_code()), reason: String::new() };
        assert_eq!((read.items, read.end), (expected.items.clone(), Some(end)), "as the codec reads it");
    }

    /// What this side has written: frames in the shortest form, each with a mask exactly if it is a
    /// client, and nothing after a close.
    fn written(&self, bytes: &[u8]) -> (Vec<Part>, Last) {
        let mut model = Model { rest: bytes, masked: self.is_client, max: usize::MAX };
        let (parts, last) = model.read();
        assert_eq!(model.rest, b"", "after a close");
        assert!(!matches!(last, Last::Fail(_) | Last::Cut { whole: false }), "it writes {last:?}");
        (parts, last)
    }
}

/// What the model finds.
#[derive(Debug)]
struct Expected {
    parts: Vec<Part>,
    last: Last,
    /// The messages among the parts.
    items: Vec<Inbound>,
}

impl Expected {
    fn of(case: &Case, bytes: &[u8]) -> Self {
        let (parts, last) = Model { rest: bytes, masked: !case.is_client, max: case.limits.max_line }.read();
        let texts = parts.iter().filter_map(|part| if let Part::Text(text) = part { Some(text) } else { None });
        let parse = |text: &Vec<u8>| parse_batch_or_message(text.clone().into(), &case.limits).into();
        let items = texts.map(parse).collect();
        Self { parts, last, items }
    }

    /// The latest ping, as the pong that answers it.
    fn pong(&self) -> Option<Part> {
        self.pongs().pop()
    }

    /// The pongs that would answer every ping.
    fn pongs(&self) -> Vec<Part> {
        let pong = |part: &Part| if let Part::Ping(payload) = part { Some(Part::Pong(payload.clone())) } else { None };
        self.parts.iter().filter_map(pong).collect()
    }

    /// Checks what a codec found, and how it answered without being asked for a pong.
    fn check(&self, case: &Case, read: &Read) {
        let show = || format!("{self:?}, and {read:?}");
        assert_eq!(read.items, self.items, "{}", show());
        self.check_end(read.end.as_ref());
        // Nothing is begun after the last part, since the rest does not count.
        assert_eq!(read.at_boundary, self.last != (Last::Cut { whole: false }), "{}", show());
        let (parts, last) = case.written(&read.written);
        if case.closes {
            let close = Last::Close(Some(case.own_code()), String::new());
            return assert_eq!((parts, last), (vec![], close), "{}", show());
        }
        if self.check_close(&last) {
            // The latest ping is answered before the close.
            assert_eq!(parts, Vec::from_iter(self.pong()), "{}", show());
        } else {
            assert_eq!(parts, [], "{}", show());
        }
    }

    /// Checks how the connection ended.
    fn check_end(&self, end: Option<&Closed>) {
        let is_same = match (&self.last, end) {
            (Last::Cut { .. }, Some(Closed::Eof)) | (Last::Fail(_), Some(Closed::Broken(_))) => true,
            (Last::Close(code, reason), Some(Closed::WebSocket { code: other, reason: why })) => {
                (code, reason) == (other, why)
            }
            _ => false,
        };
        assert!(is_same, "{:?} is {end:?}", self.last);
    }

    /// Checks the answer to the last part. Returns whether it is a close.
    fn check_close(&self, answer: &Last) -> bool {
        let is_right = match (&self.last, answer) {
            (Last::Cut { .. }, Last::Cut { .. }) => true,
            (Last::Close(code, _), Last::Close(answer, reason)) => code == answer && reason.is_empty(),
            (Last::Fail(codes), Last::Close(Some(code), _)) => codes.contains(code),
            _ => false,
        };
        assert!(is_right, "{:?} is answered with {answer:?}", self.last);
        !matches!(answer, Last::Cut { .. })
    }
}

/// A connection with its driver.
struct Driven<'a> {
    case: &'a Case,
    connection: Connection,
    exchange: ExchangeId,
    /// The driver reports each write at once. Otherwise it reports all at the end.
    reports: bool,
    items: Vec<Inbound>,
    end: Option<Closed>,
    unsent: usize,
    written: Vec<u8>,
}

const NOW: Instant = Instant::ZERO;

impl<'a> Driven<'a> {
    /// A connection after the handshake.
    fn new(case: &'a Case, reports: bool) -> Self {
        let connection = if case.is_client {
            Connection::web_socket(request(), WsDialect::JsonRpc, SEED, &case.limits, NOW)
        } else {
            Connection::server(1, Kind::HttpServer, Peer::default(), &case.limits, NOW)
        };
        let (items, written) = (Vec::new(), Vec::new());
        let exchange = ExchangeId(1);
        let mut driven = Self { case, connection, exchange, reports: true, items, end: None, unsent: 0, written };
        if case.is_client {
            driven.connection.begin(exchange);
            driven.tell(IoEvent::Opened(Peer::default()));
        }
        driven.tell(IoEvent::Read(case.opening()));
        if !case.is_client {
            driven.exchange = driven.connection.exchange().expect("a request was read");
            driven.connection.send(NOW, driven.exchange, response());
            driven.settle();
        }
        driven.items.clear();
        driven.written.clear();
        driven.reports = reports;
        driven
    }

    fn tell(&mut self, event: IoEvent) {
        self.connection.handle_io(NOW, event);
        self.settle();
    }

    fn settle(&mut self) {
        loop {
            while let Some((_, event)) = self.connection.poll_event() {
                match event {
                    ExchangeEvent::Inbound(item) => self.items.push(item),
                    ExchangeEvent::Failed { why, .. } => assert_eq!(self.end.replace(why), None, "it ends once"),
                    _ => {}
                }
            }
            while let Some(output) = self.connection.poll_output() {
                if let ConnectionOutput::Write(bytes) = output {
                    self.unsent += bytes.len();
                    self.written.extend_from_slice(&bytes);
                }
            }
            if !self.reports || self.unsent == 0 {
                return;
            }
            self.connection.handle_io(NOW, IoEvent::Written(std::mem::take(&mut self.unsent)));
        }
    }

    /// Reads everything. Every ping is answered, or a later one instead of it.
    fn check(mut self, pieces: Vec<Bytes>, expected: &Expected) {
        for piece in pieces {
            self.tell(IoEvent::Read(piece));
        }
        let (unread, _) = self.case.written(&self.written);
        let is_flooded = !self.reports && unread.len() > 1 + usize::from(self.end.is_some());
        assert!(!is_flooded, "{unread:?} wait for a peer that does not read");
        let ended = self.end.is_some();
        self.reports = true;
        self.settle();
        self.tell(IoEvent::ReadClosed);
        assert_eq!(self.items, expected.items);
        expected.check_end(self.end.as_ref());
        let (parts, last) = self.case.written(&self.written);
        let is_closed = expected.check_close(&last);
        assert_eq!(is_closed, ended, "the end does not wait");
        assert_eq!(parts.last(), expected.pong().as_ref(), "the latest ping is answered");
        // In order, and each at most once.
        let mut pongs = expected.pongs().into_iter();
        assert!(parts.iter().all(|part| pongs.any(|pong| pong == *part)), "{parts:?} answer {:?}", expected.parts);
    }
}

/// The frames of a script, well-formed but for their first bytes and their contents.
fn frames(script: &mut Script<'_>, masked: bool) -> Vec<u8> {
    let mut bytes = Vec::new();
    while !script.is_over() && bytes.len() < MOST_SCRIPTED {
        let first = script.byte();
        let times = *script.pick(&[1, 1, 1, 2, 20, 300]);
        let payload = script.chunk().repeat(times);
        let mask = if masked { 0x80 } else { 0 };
        bytes.push(first);
        match payload.len() {
            length @ ..126 => bytes.push(mask | length as u8),
            length @ 126..65536 => {
                bytes.push(mask | 126);
                bytes.extend((length as u16).to_be_bytes());
            }
            length => {
                bytes.push(mask | 127);
                bytes.extend((length as u64).to_be_bytes());
            }
        }
        let key = if masked { [first, payload.len() as u8, 0x37, 0xfa] } else { [0; 4] };
        bytes.extend(key.iter().filter(|_| masked));
        bytes.extend(payload.iter().zip(key.iter().cycle()).map(|(byte, key)| byte ^ key));
    }
    bytes
}

fn request() -> RequestHead {
    RequestHead { method: "GET".into(), target: "/".into(), headers: Headers::new().with("Host", "a") }
}

/// The codec of a server does not check it.
fn response() -> Outbound {
    let head = ResponseHead { status: 101, headers: Headers::new() };
    Outbound::Response { head, body: Body::WebSocket(WsDialect::JsonRpc) }
}

fn take_written(conn: &mut Conn) -> Vec<u8> {
    from_fn(|| conn.poll_write()).flatten().collect()
}
