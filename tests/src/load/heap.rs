//! The heap of the engine alone, in bytes: a [`WiredServer`] in this process, without a socket or a
//! thread. The scenes measure the drivers.

use super::raw;
use bytes::Bytes;
use mcp_proto::exchange::{Action, Closed, ConnectionId, IoEvent, Peer};
use mcp_proto::route::{Cx, RouteResult};
use mcp_proto::server::{Event, ServerCommands};
use mcp_proto::wired::{Kind, WiredServer};
use mcp_proto::{Handler, Instant, Router, tool};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

/// What counts the heap of this process.
#[derive(Clone, Copy, Debug)]
pub struct Meter {
    /// Bytes that are in use.
    pub used: fn() -> usize,
    /// Allocations that were made, those that were given back included.
    pub made: fn() -> usize,
}

/// How many there are of everything.
const COUNT: usize = 1000;

/// Something that a server holds.
struct Row {
    name: &'static str,
    /// The most that one of it may take, in bytes.
    most: i64,
    make: fn(&mut Engine, u64) -> ConnectionId,
}

const ROWS: &[Row] = &[
    Row { name: "connection that says nothing", most: 1300, make: |engine, _| engine.open() },
    Row { name: "connection with half a head", most: 1400, make: half_a_head },
    Row { name: "connection that has asked once", most: 2000, make: asked_once },
    Row { name: "session", most: 1024, make: session },
    Row { name: "session with its stream", most: 4096, make: stream_of_session },
    Row { name: "subscription", most: 3072, make: subscription },
];

/// A line for each row, and one for the memory of a call.
///
/// # Errors
/// What takes more than it may, or stays when it is gone.
pub fn table(meter: Meter) -> Vec<(&'static str, Result<String, String>)> {
    let mut lines: Vec<_> = ROWS.iter().map(|row| (row.name, row.line(meter.used))).collect();
    lines.push(("allocations of one call", calls(meter)));
    lines
}

/// Returns the bytes that each of a thousand takes, for every row.
///
/// # Errors
/// What stays when it is gone.
pub fn held(used: fn() -> usize) -> Vec<(&'static str, Result<i64, String>)> {
    ROWS.iter().map(|row| (row.name, row.measure(used).map(|held| held.each))).collect()
}

/// The heap that something takes.
struct Held {
    /// Bytes of each.
    each: i64,
    /// Bytes of each that are kept for the next.
    kept: i64,
}

impl Row {
    fn line(&self, used: fn() -> usize) -> Result<String, String> {
        let Held { each, kept } = self.measure(used)?;
        if each > self.most {
            return Err(format!("{each} bytes each, more than {}", self.most));
        }
        Ok(format!("{each:>8} bytes each: {kept} are kept for the next, and none is lost"))
    }

    fn measure(&self, heap: fn() -> usize) -> Result<Held, String> {
        let used = || heap() as i64;
        let mut engine = Engine::new();
        let mut open = Vec::with_capacity(COUNT);
        // Whatever is made once is made by the first.
        self.come_and_go(heap, &mut engine, &mut open, 1);
        let before = used();
        let during = self.come_and_go(heap, &mut engine, &mut open, COUNT);
        // Queues that grew for this number are kept. A second time nothing may stay.
        let after = used();
        self.come_and_go(heap, &mut engine, &mut open, COUNT);
        let each = |bytes: i64| bytes / COUNT as i64;
        let (each, kept, left) = (each(during - before), each(after - before), each(used() - after));
        if left != 0 {
            return Err(format!("{left} bytes of each stay"));
        }
        Ok(Held { each, kept })
    }

    /// Makes this number of them, and ends them. Returns the heap in use meanwhile.
    fn come_and_go(&self, used: fn() -> usize, engine: &mut Engine, open: &mut Vec<ConnectionId>, count: usize) -> i64 {
        (0..count as u64).for_each(|n| open.push((self.make)(engine, n)));
        let during = used() as i64;
        open.drain(..).for_each(|channel| engine.close(channel));
        engine.pass(Duration::from_secs(24 * 3600));
        during
    }
}

/// Calls on one connection, one after the other.
fn calls(meter: Meter) -> Result<String, String> {
    let mut engine = Engine::new();
    let channel = engine.open();
    let call = raw::call(1, "echo", json!({ "text": "x".repeat(64) }));
    let before_first = engine.tell(channel, &call);
    let before = ((meter.made)(), (meter.used)());
    for _ in 0..COUNT {
        if engine.tell(channel, &call) != before_first {
            return Err("the answers differ".into());
        }
    }
    let made = ((meter.made)() - before.0) as f64 / COUNT as f64;
    let kept = (meter.used)() as i64 - before.1 as i64;
    // An answer and the bytes of the request are copied by this program.
    Ok(format!("{made:>8.1} each, {kept} bytes kept after {COUNT}"))
}

fn half_a_head(engine: &mut Engine, _: u64) -> ConnectionId {
    let channel = engine.open();
    engine.tell(channel, "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-");
    channel
}

fn asked_once(engine: &mut Engine, id: u64) -> ConnectionId {
    let channel = engine.open();
    let said = engine.tell(channel, &raw::call(id, "echo", json!({ "text": "x" })));
    assert!(said.starts_with("HTTP/1.1 200"), "{said}");
    channel
}

/// Its connection is closed: what rests is the session.
fn session(engine: &mut Engine, id: u64) -> ConnectionId {
    let (channel, _) = begun(engine, id);
    engine.close(channel);
    channel
}

fn stream_of_session(engine: &mut Engine, id: u64) -> ConnectionId {
    let (channel, session) = begun(engine, id);
    let said = engine.tell(channel, &raw::get(&session));
    assert!(said.contains("text/event-stream"), "{said}");
    channel
}

fn subscription(engine: &mut Engine, id: u64) -> ConnectionId {
    let channel = engine.open();
    let said = engine.tell(channel, &raw::listen(id));
    assert!(said.contains("notifications/subscriptions/acknowledged"), "{said}");
    channel
}

/// A connection, and a session that was begun on it.
fn begun(engine: &mut Engine, id: u64) -> (ConnectionId, String) {
    let channel = engine.open();
    let said = engine.tell(channel, &raw::initialize(id));
    let session = raw::field(&said, "mcp-session-id").unwrap_or_else(|| panic!("no session: {said}")).to_string();
    let said = engine.tell(channel, &raw::initialized(&session));
    assert!(said.starts_with("HTTP/1.1 202"), "{said}");
    (channel, session)
}

/// A server and its output.
struct Engine {
    server: WiredServer,
    router: Router,
    now: Instant,
    said: Vec<u8>,
}

impl Engine {
    fn new() -> Self {
        let echo = Handler::inline(|cx| cx.outcome(cx.raw().as_str()));
        let router = Router::new("load", "1").tools_change().add(tool("echo"), echo);
        let server = WiredServer::new(Arc::new(router.config()), [7; 32], Instant::ZERO);
        Self { server, router, now: Instant::ZERO, said: Vec::new() }
    }

    fn open(&mut self) -> ConnectionId {
        let peer = Peer::tcp(([127, 0, 0, 1], 50_000).into());
        self.server.accept(self.now, Kind::HttpServer, peer)
    }

    /// Feeds bytes, and returns the immediate output.
    fn tell(&mut self, channel: ConnectionId, text: &str) -> String {
        self.server.handle_io(self.now, channel, IoEvent::Read(Bytes::copy_from_slice(text.as_bytes())));
        self.carry_out();
        String::from_utf8(std::mem::take(&mut self.said)).expect("it is unicode")
    }

    fn close(&mut self, channel: ConnectionId) {
        self.server.handle_io(self.now, channel, IoEvent::Closed(Closed::Eof));
        self.carry_out();
    }

    fn pass(&mut self, time: Duration) {
        self.now = self.now + time;
        self.server.handle_timeout(self.now);
        self.carry_out();
    }

    fn carry_out(&mut self) {
        while let Some(action) = self.server.poll_output() {
            match action {
                Action::Write(channel, bytes) => {
                    self.said.extend_from_slice(&bytes);
                    self.server.handle_io(self.now, channel, IoEvent::Written(bytes.len()));
                }
                Action::Event(Event::Request(responder, incoming)) => {
                    let answer = match self.router.route(responder, incoming) {
                        RouteResult::Answer(answer) => answer,
                        RouteResult::Handle { handler, invocation, responder } => {
                            responder.write(handler.call(&Cx::detached(invocation)).expect("no future"))
                        }
                    };
                    self.server.respond(self.now, answer);
                }
                _ => {}
            }
        }
    }
}
