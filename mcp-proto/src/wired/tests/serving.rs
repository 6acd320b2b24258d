//! A server over HTTP with scripted clients: many, invalid, slow and disconnecting ones, and their
//! effects on others.

use crate::exchange::*;
use crate::frame::{Conn, Kind};
use crate::input::*;
use crate::limits::FrameLimits;
use crate::model::lifecycle::Implementation;
use crate::rpc::{Message, Object, code};
use crate::server::{Event, Responder, ServerCommands, ServerConfig};
use crate::sizes::scaled;
use crate::time::Instant;
use crate::wired::WiredServer;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use bytes::Bytes;
use core::time::Duration;

mod room;

/// A server, its output on each connection, and its pending requests.
struct Raw {
    server: WiredServer,
    now: Instant,
    text: BTreeMap<ConnectionId, String>,
    closes: BTreeMap<ConnectionId, Vec<Shutdown>>,
    requests: Vec<Responder>,
    /// Whether written bytes are reported.
    reads: bool,
    /// Connections that are not read.
    paused: BTreeSet<ConnectionId>,
}

impl Raw {
    fn new(change: impl FnOnce(&mut ServerConfig)) -> Self {
        let mut config = ServerConfig::new(Implementation::new("raw", "1"));
        config.capabilities.tools = Some(Default::default());
        change(&mut config);
        Self {
            server: WiredServer::new(Arc::new(config), [5; 32], Instant::ZERO),
            now: Instant::ZERO,
            text: BTreeMap::new(),
            closes: BTreeMap::new(),
            requests: Vec::new(),
            reads: true,
            paused: BTreeSet::new(),
        }
    }

    fn accept(&mut self) -> ConnectionId {
        self.server.accept(self.now, Kind::HttpServer, Peer::default())
    }

    /// Feeds bytes and returns the output.
    fn feed(&mut self, channel: ConnectionId, bytes: impl Into<Bytes>) -> String {
        self.server.handle_io(self.now, channel, IoEvent::Read(bytes.into()));
        self.take(channel)
    }

    fn take(&mut self, channel: ConnectionId) -> String {
        while let Some(action) = self.server.poll_output() {
            match action {
                Action::Write(channel, bytes) => {
                    *self.text.entry(channel).or_default() += core::str::from_utf8(&bytes).expect("it is utf-8");
                    if self.reads {
                        self.server.handle_io(self.now, channel, IoEvent::Written(bytes.len()));
                    }
                }
                Action::Close(channel, how) => self.closes.entry(channel).or_default().push(how),
                Action::Event(Event::Request(responder, _)) => self.requests.push(responder),
                Action::Read(channel, true) => assert!(self.paused.remove(&channel), "it was read"),
                Action::Read(channel, false) => assert!(self.paused.insert(channel), "it was not read"),
                Action::Event(_) | Action::Open(..) | Action::Secure(..) | Action::Notice(..) => {}
            }
        }
        self.text.remove(&channel).unwrap_or_default()
    }

    /// Answers the oldest request.
    fn answer(&mut self, channel: ConnectionId) -> String {
        let answer = self.requests.remove(0).write(Outcome::Complete(Object::new()));
        self.server.respond(self.now, answer);
        self.take(channel)
    }

    /// Fires the next timer.
    fn tick(&mut self) {
        self.now = self.server.poll_timeout().expect("a timer is armed");
        self.server.handle_timeout(self.now);
    }
}

/// A request to the engine or to the application.
fn post(id: u32, method: &str) -> String {
    let meta =
        r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
    let (name, field) = if method == "tools/call" { (r#""name":"t","#, "Mcp-Name: t\r\n") } else { ("", "") };
    let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{{name}"_meta":{meta}}}}}"#);
    format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: {method}\r\n\
         {field}Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// Returns the statuses and ids of consecutive responses.
fn answers(text: &str) -> Vec<(u16, Option<i64>)> {
    let mut answers = Vec::new();
    let mut rest = Bytes::copy_from_slice(text.as_bytes());
    while !rest.is_empty() {
        let length = rest.windows(4).position(|window| window == b"\r\n\r\n").expect("a head") + 4;
        let head = core::str::from_utf8(&rest[..length]).expect("it is utf-8").to_lowercase();
        let (_, after) = head.split_once("content-length: ").expect("a length");
        let body: usize = after.split("\r\n").next().expect("a line").parse().expect("a number");
        let status = head[9..12].parse().expect("a status");
        let body = rest.split_to(length + body).split_off(length);
        let id = match crate::rpc::parse(body, 128) {
            Ok(Message::Response(response)) => response.id.to_string().parse().ok(),
            _ => None,
        };
        answers.push((status, id));
    }
    answers
}

#[test]
fn admission_and_handler_see_the_peer_of_each_request() {
    let mut raw = Raw::new(|config| config.admit = true);
    let ann = Peer::default().named("ann");
    let known = raw.server.accept(raw.now, Kind::HttpServer, ann.clone());
    let unknown = raw.accept();
    for (channel, peer) in [(known, ann), (unknown, Peer::default())] {
        let mut seen = Vec::new();
        raw.server.handle_io(raw.now, channel, IoEvent::Read(post(1, "tools/call").repeat(2).into()));
        while let Some(action) = raw.server.poll_output() {
            match action {
                Action::Event(Event::Admit(token, _)) => {
                    seen.push(token.peer().clone());
                    raw.server.admit(raw.now, token, Admission::Accept(None));
                }
                Action::Event(Event::Request(responder, incoming)) => {
                    seen.push(Peer::clone(&incoming.context.peer));
                    raw.server.respond(raw.now, responder.write(Outcome::Complete(Object::new())));
                }
                Action::Write(channel, bytes) => raw.server.handle_io(raw.now, channel, IoEvent::Written(bytes.len())),
                _ => {}
            }
        }
        assert_eq!(seen, vec![Peer { connection: Some(channel.0), ..peer }; 4]);
    }
}

// covers: S2-26
#[test]
fn idle_stream_gets_the_configured_keep_alive() {
    let chosen = [
        ("", "3\r\n:\n\n\r\n"),
        ("heartbeat", "d\r\n: heartbeat\n\n\r\n"),
        ("a\ndata: b", "f\r\n: a\n: data: b\n\n\r\n"),
    ];
    for (text, chunk) in chosen {
        let mut raw = Raw::new(|config| config.keep_alive_text = text.into());
        let channel = raw.accept();
        assert_eq!(raw.feed(channel, post(1, "tools/call")), "");
        raw.tick();
        assert_eq!(raw.now, Instant::new(Duration::from_secs(15)));
        let written = raw.take(channel);
        let (head, body) = written.split_once("\r\n\r\n").expect("a head");
        assert!(head.ends_with("connection: keep-alive"), "{head}");
        assert_eq!(body, chunk);
        raw.tick();
        assert_eq!(raw.take(channel), chunk);
    }
}

#[test]
fn many_requests_in_one_write_are_answered_in_order() {
    const MANY: u32 = scaled(10_000) as u32;
    let mut raw = Raw::new(|_| {});
    let channel = raw.accept();
    let all: String = (1..=MANY).map(|id| post(id, "server/discover")).collect();
    let text = raw.feed(channel, all);
    assert!(answers(&text).into_iter().eq((1..=MANY.into()).map(|id| (200, Some(id)))));
    assert!(raw.closes.is_empty() && raw.paused.is_empty());
    assert_eq!(raw.server.stats().requests, 0);
}

#[test]
fn pipelined_requests_run_in_turn_and_are_bounded() {
    let mut raw = Raw::new(|config| config.limits.frame.max_read_ahead = 10_000);
    let channel = raw.accept();
    let (mut sent, mut text) = (0, String::new());
    while raw.paused.is_empty() {
        sent += 1;
        text += &raw.feed(channel, post(sent, "tools/call"));
        assert_eq!((raw.server.running(), raw.requests.len()), (1, 1));
    }
    assert!(sent < 40 && text.is_empty(), "{sent} requests were read");
    for _ in 0..sent {
        text += &raw.answer(channel);
        assert!(raw.server.running() <= 1);
    }
    assert!(answers(&text).into_iter().eq((1..=sent).map(|id| (200, Some(id.into())))));
    assert!(raw.paused.is_empty(), "it is read again");
}

// covers: B-187
#[test]
fn client_that_never_reads_gets_one_response_and_is_aborted() {
    let mut raw = Raw::new(|config| config.limits.frame.max_read_ahead = 10_000);
    raw.reads = false;
    let (channel, other) = (raw.accept(), raw.accept());
    let mut text = String::new();
    for id in 1..1_000 {
        if !raw.paused.contains(&channel) {
            text += &raw.feed(channel, post(id, "server/discover"));
        }
    }
    assert_eq!(answers(&text), [(200, Some(1))]);
    assert_eq!(answers(&raw.feed(other, post(7, "server/discover"))), [(200, Some(7))], "others are served");
    raw.server.handle_io(raw.now, other, IoEvent::Written(1_000));
    raw.tick();
    assert_eq!(raw.now, Instant::from_millis(30_000));
    raw.take(channel);
    assert_eq!(raw.closes, BTreeMap::from([(channel, vec![Shutdown::Abort])]));
}

#[test]
fn garbage_after_a_request_is_refused_after_its_response() {
    for garbage in ["\0\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", "\n"] {
        let mut raw = Raw::new(|_| {});
        let (channel, other) = (raw.accept(), raw.accept());
        raw.feed(channel, format!("{}{garbage}{}", post(1, "tools/call"), post(2, "tools/call")));
        assert_eq!(raw.requests.len(), 1);
        let statuses: Vec<u16> = answers(&raw.answer(channel)).into_iter().map(|(status, _)| status).collect();
        assert_eq!((statuses, raw.requests.len()), (vec![200, 400], 0), "{garbage:?}");
        assert_eq!(raw.closes, BTreeMap::from([(channel, vec![Shutdown::WriteHalf])]));
        assert_eq!(answers(&raw.feed(other, post(7, "server/discover"))), [(200, Some(7))]);
    }
}

#[test]
fn pipelined_request_is_answered_after_an_event_stream() {
    let mut raw = Raw::new(|_| {});
    let channel = raw.accept();
    raw.feed(channel, post(1, "tools/call") + &post(2, "server/discover"));
    let key = raw.requests[0].key();
    for _ in 0..3 {
        raw.server.notify(raw.now, key, Note::Custom("x/y".into(), Object::new())).expect("it runs");
        assert!(!raw.take(channel).contains("supportedVersions"));
    }
    let text = raw.answer(channel);
    let (stream, next) = text.split_once("\r\n0\r\n\r\n").expect("the stream ends");
    assert!(stream.contains(r#""id":1"#), "{stream}");
    assert_eq!(answers(next), [(200, Some(2))]);
}

// covers: B-189
#[test]
fn incomplete_request_times_out_alone() {
    let text = post(1, "tools/call");
    for cut in [1, 100, text.len() - 1] {
        let mut raw = Raw::new(|config| config.keep_alive = None);
        let (late, other) = (raw.accept(), raw.accept());
        assert_eq!(raw.feed(late, text[..cut].to_string()), "");
        raw.feed(other, text.clone());
        let answer = (0..10).find_map(|_| {
            raw.tick();
            Some(raw.take(late)).filter(|text| !text.is_empty())
        });
        let answer = answer.expect("its time comes");
        assert!(raw.now <= Instant::from_millis(30_000) && answer.starts_with("HTTP/1.1 408 "), "{answer}");
        assert_eq!((raw.closes.get(&late), raw.closes.get(&other)), (Some(&vec![Shutdown::WriteHalf]), None));
        assert_eq!(raw.requests.len(), 1);
        assert_eq!(answers(&raw.answer(other)), [(200, Some(1))]);
    }
}

// covers: B-167
#[test]
fn disconnect_within_a_response_affects_no_other_client() {
    let whole = |streams: bool, cut: Option<usize>| {
        let mut raw = Raw::new(|_| {});
        let (leaver, other) = (raw.accept(), raw.accept());
        raw.reads = false;
        raw.feed(leaver, post(1, "tools/call"));
        raw.feed(other, post(2, "tools/call"));
        let key = raw.requests[0].key();
        if streams {
            raw.server.notify(raw.now, key, Note::Custom("x/y".into(), Object::new())).expect("it runs");
        }
        let mut length = raw.take(leaver).len();
        if cut.is_none_or(|cut| cut >= length) {
            length += raw.answer(leaver).len();
        }
        if let Some(cut) = cut {
            raw.server.handle_io(raw.now, leaver, IoEvent::Written(cut));
            raw.server.handle_io(raw.now, leaver, IoEvent::Closed(Closed::Reset));
            raw.take(leaver);
            assert_eq!(raw.server.stats().channels, 1, "cut at {cut}");
            raw.requests.retain(|responder| responder.key() != key);
            assert_eq!(raw.requests.len(), 1);
            assert_eq!(answers(&raw.answer(other)), [(200, Some(2))], "cut at {cut}");
            assert_eq!(raw.server.running(), 0, "cut at {cut}");
        }
        length
    };
    for streams in [false, true] {
        for cut in 0..=whole(streams, None) {
            whole(streams, Some(cut));
        }
    }
}

// covers: B-189
#[test]
fn client_beyond_the_connection_limit_gets_a_response() {
    let mut raw = Raw::new(|config| config.limits.server.max_exchanges = 2);
    let (first, _) = (raw.accept(), raw.accept());
    let refused = raw.accept();
    let bytes = raw.take(refused);
    assert_eq!(raw.closes.remove(&refused), Some(vec![Shutdown::WriteHalf]));
    assert_eq!(raw.feed(refused, post(1, "server/discover")), "", "it is read and not parsed");
    raw.tick();
    raw.take(refused);
    assert_eq!((raw.now, raw.closes.remove(&refused)), (Instant::from_millis(2_000), Some(vec![Shutdown::Abort])));
    raw.server.handle_io(raw.now, refused, IoEvent::Closed(Closed::Aborted));
    raw.server.handle_io(raw.now, first, IoEvent::Closed(Closed::Eof));
    let next = raw.accept();
    assert_eq!(answers(&raw.feed(next, post(1, "server/discover"))), [(200, Some(1))], "a place is free again");

    let mut client = Conn::new(Kind::HttpClient, &FrameLimits::default());
    let head = RequestHead { method: "POST".into(), target: "/mcp".into(), headers: Headers::new().with("host", "h") };
    client.encode(Outbound::Request { head, body: Bytes::from_static(b"{}") });
    client.bytes(bytes.into());
    let items: Vec<Inbound> = core::iter::from_fn(|| client.poll_item()).collect();
    let [Inbound::Response(head), Inbound::Message(Message::Error(error)), Inbound::End] = &items[..] else {
        panic!("{items:?}")
    };
    assert_eq!((head.status, head.headers.get("retry-after")), (503, Some("1")));
    assert_eq!(error.code, code::INTERNAL_ERROR);
    assert!(!client.keep_alive());
}

// covers: B-187, B-189
#[test]
fn at_most_64_refused_clients_get_a_response_at_a_time() {
    let mut raw = Raw::new(|config| config.limits.server.max_exchanges = 1);
    raw.accept();
    let refused: Vec<ConnectionId> = (0..65).map(|_| raw.accept()).collect();
    let responses = refused.iter().filter(|refused| !raw.take(**refused).is_empty()).count();
    assert_eq!((responses, raw.closes[&refused[64]].as_slice()), (64, &[Shutdown::Abort][..]));
    for refused in refused {
        raw.server.handle_io(raw.now, refused, IoEvent::Closed(Closed::Reset));
    }
    let next = raw.accept();
    assert!(raw.take(next).starts_with("HTTP/1.1 503"));
    assert_eq!(raw.server.stats().channels, 1);
}
