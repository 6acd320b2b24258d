//! The common memory limit for incomplete requests on all connections of a server.

use super::*;
use crate::input::Admission;
use crate::server::ServerCommands;
use crate::wired::{Connection, ConnectionOutput, SharedServer};

/// Bytes of half of a large request, and the number of halves within the limit.
const HALF: usize = 200_000;
const FIT: usize = 5;

fn crowded(change: impl FnOnce(&mut ServerConfig)) -> Raw {
    Raw::new(|config| {
        config.limits.server.max_held = 1 << 20;
        change(config);
    })
}

/// A request with this number of spaces after its message.
fn padded(id: u32, padding: usize) -> String {
    let text = post(id, "tools/call");
    let (head, body) = text.split_once("\r\n\r\n").expect("a head");
    let length = |n: usize| format!("Content-Length: {n}");
    let head = head.replace(&length(body.len()), &length(body.len() + padding));
    format!("{head}\r\n\r\n{body}{}", " ".repeat(padding))
}

/// The halves of a large request.
fn halves() -> (String, String) {
    let mut first = padded(1, 2 * HALF);
    let second = first.split_off(first.len() - HALF);
    (first, second)
}

/// Begins this number of large requests, each on a new connection. Returns the connections that are
/// not refused.
fn begin(raw: &mut Raw, n: usize) -> Vec<ConnectionId> {
    let begun: Vec<ConnectionId> = (0..n).map(|_| raw.accept()).collect();
    let is_read_on = |channel: &ConnectionId| {
        let text = raw.feed(*channel, halves().0);
        if !text.is_empty() {
            let head = text.to_lowercase();
            assert!(head.starts_with("http/1.1 503 ") && head.contains("\r\nretry-after: 1\r\n"), "{text}");
            assert!(head.contains("\r\nconnection: close\r\n"), "{text}");
            assert_eq!(raw.closes.remove(channel), Some(vec![Shutdown::WriteHalf]));
            assert_eq!(raw.feed(*channel, halves().1), "", "nothing more is read of it");
        }
        text.is_empty()
    };
    begun.into_iter().filter(is_read_on).collect()
}

// covers: B-189
#[test]
fn large_requests_beyond_the_limit_get_503() {
    let mut raw = crowded(|_| {});
    let (small, slow) = (raw.accept(), raw.accept());
    let text = padded(3, 40_000);
    raw.feed(slow, text[..1_000].to_string());
    for _ in 0..3 {
        let begun = begin(&mut raw, 3 * FIT);
        assert_eq!(begun.len(), FIT);
        assert_eq!(answers(&raw.feed(small, post(7, "server/discover"))), [(200, Some(7))]);
        let new = raw.accept();
        assert_eq!(answers(&raw.feed(new, post(8, "server/discover"))), [(200, Some(8))]);
        for channel in begun {
            assert_eq!(raw.feed(channel, halves().1), "");
            assert_eq!(answers(&raw.answer(channel)), [(200, Some(1))], "whoever had room is served");
        }
    }
    // A small request in many pieces, with no memory left.
    assert_eq!(begin(&mut raw, 2 * FIT).len(), FIT);
    for piece in text.as_bytes()[1_000..].chunks(100) {
        assert_eq!(raw.feed(slow, piece.to_vec()), "");
    }
    assert_eq!(answers(&raw.answer(slow)), [(200, Some(3))]);
}

// covers: B-189
#[test]
fn memory_is_freed_at_every_end_of_a_request() {
    type End = fn(&mut Raw, ConnectionId);
    let ends: [End; 5] = [
        |raw, channel| raw.server.handle_io(raw.now, channel, IoEvent::Closed(Closed::Reset)),
        |raw, channel| raw.server.handle_io(raw.now, channel, IoEvent::ReadClosed),
        |raw, channel| drop(raw.feed(channel, halves().1)),
        |raw, channel| drop(raw.feed(channel, "x".repeat(2 * HALF))),
        |raw, channel| {
            while !raw.closes.contains_key(&channel) {
                raw.tick();
                raw.take(channel);
            }
        },
    ];
    for (which, end) in ends.into_iter().enumerate() {
        let mut raw = crowded(|config| config.keep_alive = None);
        for _ in 0..3 {
            let begun = begin(&mut raw, FIT + 1);
            assert_eq!(begun.len(), FIT, "end {which}");
            raw.closes.clear();
            for channel in begun {
                end(&mut raw, channel);
                raw.take(channel);
            }
        }
    }
}

#[test]
fn head_counts_toward_the_limit() {
    for (max_held, answer) in [(1 << 20, ""), (0, "HTTP/1.1 503 ")] {
        let mut raw = crowded(|config| {
            config.limits.server.max_held = max_held;
            config.limits.frame.max_head = 1 << 20;
        });
        let channel = raw.accept();
        let head = format!("POST /mcp HTTP/1.1\r\nHost: localhost\r\nX: {}", "x".repeat(HALF));
        assert_eq!(raw.feed(channel, head).get(..13).unwrap_or_default(), answer);
    }
}

#[test]
fn pipelined_request_beyond_the_limit_pauses_reading() {
    let mut raw = crowded(|_| {});
    let channel = raw.accept();
    raw.feed(channel, post(1, "tools/call"));
    let begun = begin(&mut raw, FIT + 1);
    // It does not fit into the remaining memory.
    let text = padded(2, HALF);
    let mut pieces = text.as_bytes().chunks(10_000);
    while !raw.paused.contains(&channel) {
        assert_eq!(raw.feed(channel, pieces.next().expect("it stops before").to_vec()), "");
    }
    assert!(pieces.len() > 5 && pieces.len() < 15, "{} pieces are left", pieces.len());
    for channel in &begun[1..] {
        raw.server.handle_io(raw.now, *channel, IoEvent::Closed(Closed::Reset));
    }
    assert!(raw.paused.contains(&channel), "it waits for its own response");
    let mut text = raw.answer(channel);
    assert!(!raw.paused.contains(&channel), "there is room");
    pieces.for_each(|piece| text += &raw.feed(channel, piece.to_vec()));
    text += &raw.answer(channel);
    assert_eq!(answers(&text), [(200, Some(1)), (200, Some(2))]);
}

const NOTHING: [u16; 0] = [];

/// A shared server, and connections as their tasks own them.
struct Tasks {
    engine: SharedServer,
    connections: Vec<Connection>,
    /// Every change of reading, on any connection.
    reads: Vec<bool>,
}

impl Tasks {
    fn new(admit: bool) -> Self {
        let mut config = ServerConfig::new(Implementation::new("raw", "1"));
        config.limits.server.max_held = 1 << 20;
        config.admit = admit;
        let engine = SharedServer::new(Arc::new(config), [5; 32], Instant::ZERO);
        Self { engine, connections: Vec::new(), reads: Vec::new() }
    }

    /// Adds a connection, which sends these bytes.
    fn join(&mut self, bytes: String) -> Vec<u16> {
        let connection = self.engine.accept(Instant::ZERO, Kind::HttpServer, Peer::default());
        self.connections.push(connection);
        self.feed(self.connections.len() - 1, bytes)
    }

    /// Feeds a connection and returns the statuses of the responses.
    fn feed(&mut self, connection: usize, bytes: String) -> Vec<u16> {
        self.connections[connection].handle_io(Instant::ZERO, IoEvent::Read(bytes.into()));
        self.turn(connection)
    }

    fn turn(&mut self, at: usize) -> Vec<u16> {
        let connection = &mut self.connections[at];
        loop {
            let turn = connection.take_turn();
            let is_empty = turn.is_empty();
            let reply = self.engine.exchange(Instant::ZERO, turn);
            if is_empty && reply.is_empty() {
                break;
            }
            connection.apply(Instant::ZERO, reply);
        }
        let written = core::iter::from_fn(|| connection.poll_output()).filter_map(|output| match output {
            ConnectionOutput::Write(bytes) => bytes.strip_prefix(b"HTTP/1.1 ").map(|rest| rest[..3].to_vec()),
            ConnectionOutput::Read(reads) => {
                self.reads.push(reads);
                None
            }
            ConnectionOutput::Secure(_) | ConnectionOutput::Close(_) => None,
        });
        written.map(|status| String::from_utf8_lossy(&status).parse().expect("a status")).collect()
    }
}

// covers: B-189
#[test]
fn memory_is_freed_when_connections_are_dropped() {
    let mut tasks = Tasks::new(false);
    for _ in 0..3 {
        for _ in 0..FIT {
            assert_eq!(tasks.join(halves().0), NOTHING);
        }
        assert_eq!(tasks.join(halves().0), [503]);
        // As when a task panics: nothing is reported.
        tasks.connections.clear();
    }
}

#[test]
fn body_held_for_admission_is_refused_once_it_is_read() {
    for room in [true, false] {
        let mut tasks = Tasks::new(true);
        for _ in 0..FIT {
            assert_eq!(tasks.join(halves().0), NOTHING, "held back as bytes, which take as much room");
        }
        assert_eq!(tasks.join(halves().0), NOTHING, "not refused");
        assert_eq!(tasks.reads.last(), Some(&false), "nor read on");
        if room {
            tasks.connections.drain(..FIT);
        }
        let last = tasks.connections.len() - 1;
        let tokens: Vec<_> = core::iter::from_fn(|| tasks.engine.poll_event())
            .filter_map(|event| match event {
                Event::Admit(token, _) => Some(token),
                _ => None,
            })
            .collect();
        let token = tokens.into_iter().nth(FIT).expect("it is asked about");
        tasks.engine.admit(Instant::ZERO, token, Admission::Accept(None));
        assert_eq!(tasks.turn(last), NOTHING);
        let piece = " ".repeat(HALF / 2);
        let refused: &[u16] = if room { &[] } else { &[503] };
        assert_eq!(tasks.feed(last, piece), refused);
    }
}
