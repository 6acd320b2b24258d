//! The work of one turn: bytes that become much larger by their content coding, and bytes that
//! become no item.

use super::super::timers::{Due, PAUSE};
use super::*;
use crate::exchange::{Data, SseEvent};
use crate::frame::Work;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write;

/// Maximum number of decoded bytes in one turn: those after the turn are at most one piece.
const MOST: usize = Work::AT_ONCE + (32 << 10);

const EVENT: &str = "data: {\"jsonrpc\":\"2.0\",\"method\":\"m\"}\n\n";

/// Returns a connection that has sent a GET.
fn asked() -> Connection {
    let mut connection = Connection::client(Kind::HttpClient, false, &FrameLimits::default(), Instant::ZERO);
    connection.begin(ExchangeId(7));
    connection.handle_io(Instant::ZERO, IoEvent::Opened(Peer::default()));
    let head = RequestHead { method: "GET".into(), target: "/".into(), headers: Headers::new().with("host", "h") };
    connection.send(Instant::ZERO, ExchangeId(7), Outbound::Request { head, body: Bytes::new() });
    events(&mut connection);
    connection
}

/// Returns an event stream in gzip: a part of it, this many times, and an end.
fn stream(part: &str, count: usize, end: &str) -> Bytes {
    response("text/event-stream", &(part.repeat(count) + end))
}

/// Returns a response with this body in gzip.
fn response(kind: &str, body: &str) -> Bytes {
    let mut coded = GzEncoder::new(Vec::new(), Compression::fast());
    coded.write_all(body.as_bytes()).unwrap();
    let coded = coded.finish().unwrap();
    let head = format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-encoding: gzip\r\n");
    let length = coded.len();
    [format!("{head}content-length: {length}\r\n\r\n").as_bytes(), &coded].concat().into()
}

fn events(connection: &mut Connection) -> Vec<ExchangeEvent> {
    core::iter::from_fn(|| connection.poll_event()).map(|(_, event)| event).collect()
}

/// Returns the events of all turns, and the number of pauses between them.
fn turns(connection: &mut Connection, bytes: Bytes) -> (Vec<ExchangeEvent>, usize) {
    let mut now = connection.now;
    connection.handle_io(now, IoEvent::Read(bytes));
    let (mut all, mut pauses) = (events(connection), 0);
    while connection.pauses() {
        assert!(!connection.wants_read());
        let at = connection.poll_timeout().expect("it goes on by itself");
        assert_eq!(at, now + PAUSE);
        (now, pauses) = (at, pauses + 1);
        connection.handle_timeout(now);
        all.extend(events(connection));
    }
    (all, pauses)
}

/// Returns whether it is the event of the stream.
fn is_event(event: &ExchangeEvent) -> bool {
    matches!(event, ExchangeEvent::Inbound(Inbound::Event(SseEvent { data: Data::Message(_), .. })))
}

#[test]
fn each_turn_decodes_a_bounded_number_of_bytes() {
    const SIZE: usize = 2 << 20;
    // Blank lines, comments, unknown fields, and lines that end in another way.
    for part in ["\n", "\r\n", "\r", ":\n", ":ccccccccc\n\n", "x\n", "id: 1\n", &"u".repeat(4000)] {
        let mut connection = asked();
        let bytes = stream(part, SIZE / part.len(), &format!("\n{EVENT}"));
        assert!(bytes.len() < 64 << 10, "{}", bytes.len());
        let (all, pauses) = turns(&mut connection, bytes);
        assert!(pauses + 1 >= SIZE / MOST, "{part:?}: {pauses} pauses");
        // A line costs more than its bytes, and so does an item.
        let cost = SIZE + SIZE / part.len() * 2 * (Work::UNIT + 1);
        assert!(pauses <= cost / Work::AT_ONCE + 1, "{part:?}: {pauses} pauses");
        assert_eq!(all.iter().filter(|event| is_event(event)).count(), 1, "{part:?}");
        assert_eq!(all.last(), Some(&ExchangeEvent::Inbound(Inbound::End)), "{part:?}");
        assert_eq!(connection.exchange(), None);
    }
}

#[test]
fn small_expansion_has_no_pause() {
    let mut connection = asked();
    let (all, pauses) = turns(&mut connection, stream(":ccccccccc\n\n", 1000, ""));
    assert_eq!((all.len(), pauses), (1002, 0));
    assert_eq!(connection.exchange(), None);
    assert!(connection.poll_timeout().is_some_and(|at| at > Instant::ZERO + PAUSE));
}

/// A driver may report more before a pause is over: the rest of what it read, or what it wrote.
#[test]
fn what_happens_in_a_pause_does_not_shorten_it() {
    let mut connection = asked();
    let bytes = stream("\n", 2 << 20, EVENT);
    connection.handle_io(Instant::ZERO, IoEvent::Read(bytes.slice(..6000)));
    events(&mut connection);
    let held = connection.conn.buffered();
    assert!(connection.pauses());
    for event in [IoEvent::Read(bytes.slice(6000..6010)), IoEvent::Written(10), IoEvent::Read(bytes.slice(6010..))] {
        connection.handle_io(Instant::ZERO, event);
        assert_eq!(events(&mut connection), []);
        assert!(connection.pauses() && connection.conn.buffered() >= held);
    }
    let mut now = Instant::ZERO;
    let mut all = Vec::new();
    while connection.pauses() {
        now = now + PAUSE;
        connection.handle_timeout(now);
        all.extend(events(&mut connection));
    }
    assert_eq!(all.iter().filter(|event| is_event(event)).count(), 1);
}

/// A driver that comes late finds that both are over, the pause and the limit of the body: what was
/// received before counts first.
#[test]
fn what_was_received_comes_before_a_limit() {
    let mut connection = asked();
    let body = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"a":"{}"}}}}"#, "x".repeat(1 << 20));
    connection.handle_io(Instant::ZERO, IoEvent::Read(response("application/json", &body)));
    let (mut now, mut all) = (Instant::ZERO, events(&mut connection));
    assert!(all.len() == 1 && connection.pauses());
    while connection.pauses() {
        now = now + PAUSE;
        connection.timer = Some((now, Due::Body));
        connection.handle_timeout(now);
        all.extend(events(&mut connection));
    }
    assert!(matches!(all[1..], [ExchangeEvent::Inbound(Inbound::Message(_)), ..]), "{all:?}");
}

/// The peer has closed, and everything that it sent before still counts.
#[test]
fn end_in_a_pause_loses_nothing() {
    let mut connection = asked();
    connection.handle_io(Instant::ZERO, IoEvent::Read(stream("\n", 1 << 20, EVENT)));
    assert_eq!(events(&mut connection).len(), 1);
    connection.handle_io(Instant::ZERO, IoEvent::Closed(Closed::Eof));
    let (mut now, mut all) = (Instant::ZERO, Vec::new());
    while connection.pauses() {
        assert!(!connection.is_closed());
        now = now + PAUSE;
        connection.handle_timeout(now);
        all.extend(events(&mut connection));
    }
    assert!(is_event(&all[0]), "{all:?}");
    assert_eq!(all[1..], [ExchangeEvent::Inbound(Inbound::End)]);
    assert!(connection.is_closed());
}

#[test]
fn stream_without_an_event_ends_in_turns() {
    let line = format!("{}\n", "u".repeat((1 << 16) - 1));
    let (all, pauses) = turns(&mut asked(), stream(&line, 300, EVENT));
    let why = Closed::Broken("the event stream has no event in 16777216 bytes".into());
    assert_eq!(all.last(), Some(&ExchangeEvent::Failed { sent: Sent::No, why }));
    assert!((50..=80).contains(&pauses), "{pauses}");
}

/// A program, in one read, whatever its driver reads at once.
fn program() -> Connection {
    let mut connection = Connection::client(Kind::Lines, true, &FrameLimits::default(), Instant::ZERO);
    connection.begin(ExchangeId(7));
    connection.handle_io(Instant::ZERO, IoEvent::Opened(Peer::default()));
    events(&mut connection);
    connection
}

#[test]
fn blank_lines_take_turns_and_end_after_16_mib() {
    const NOTE: &str = "{\"jsonrpc\":\"2.0\",\"method\":\"m\"}\n";
    let text = |blank: &str, count: usize| Bytes::from(format!("{}{NOTE}", blank.repeat(count)));
    for blank in ["\n", "\r\n", " \t"] {
        let (all, pauses) = turns(&mut program(), text(blank, (1 << 20) / blank.len()));
        assert_eq!((all.len(), pauses), (1, 1), "{blank:?}");
    }
    let mut connection = program();
    let blank = text("\n", (8 << 20) - 1);
    for _ in 0..4 {
        // A message begins the count again.
        assert_eq!(turns(&mut connection, blank.clone()).0.len(), 1);
    }
    let (all, _) = turns(&mut connection, text("\n", (16 << 20) + 1));
    let why = "16777216 bytes of blank lines without a message".into();
    assert_eq!(all, [ExchangeEvent::Failed { sent: Sent::No, why: Closed::Broken(why) }]);
    assert_eq!(connection.poll_output(), Some(ConnectionOutput::Close(Shutdown::Abort)));
    assert_eq!(connection.conn.buffered(), 0);
}

#[test]
fn many_messages_in_one_read_take_turns() {
    const COUNT: usize = 20_000;
    let text = "{\"jsonrpc\":\"2.0\",\"method\":\"m\"}\n".repeat(COUNT);
    let (all, pauses) = turns(&mut program(), Bytes::from(text));
    assert_eq!(all.len(), COUNT);
    assert!((6..=8).contains(&pauses), "{pauses}");
}

/// A body that a server decodes takes turns too, and its last turn parses a large message: a thread
/// of its own should do it.
#[test]
fn coded_request_takes_turns_at_a_server() {
    let mut connection =
        Connection::server(1, Kind::HttpServer, Peer::default(), &FrameLimits::default(), Instant::ZERO);
    let mut coded = GzEncoder::new(Vec::new(), Compression::fast());
    let text = format!("{{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"params\":{{\"x\":\"{}\"}}}}", "x".repeat(3 << 20));
    coded.write_all(text.as_bytes()).unwrap();
    let coded = coded.finish().unwrap();
    let head = "POST / HTTP/1.1\r\nhost: h\r\ncontent-type: application/json\r\ncontent-encoding: gzip\r\n";
    let head = format!("{head}content-length: {}\r\n\r\n", coded.len());
    connection.handle_io(Instant::ZERO, IoEvent::Read([head.as_bytes(), &coded].concat().into()));
    assert!(!connection.takes_long());
    let (mut now, mut all, mut long) = (Instant::ZERO, events(&mut connection), 0);
    while connection.pauses() {
        now = now + PAUSE;
        connection.handle_timeout(now);
        long += usize::from(connection.takes_long());
        all.extend(events(&mut connection));
    }
    assert!((8..=12).contains(&long), "{long}");
    let [
        ExchangeEvent::Inbound(Inbound::Request(_)),
        ExchangeEvent::Inbound(Inbound::Message(_)),
        ExchangeEvent::Inbound(Inbound::End),
    ] = &all[..]
    else {
        panic!("{} events", all.len())
    };
}

// covers: B-166
#[test]
fn content_coding_that_is_none_is_reported_once() {
    let mut bench = http::begun();
    let response = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-encoding: none\r\n\
                    content-length: 36\r\n\r\n{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}";
    assert_eq!(bench.feed(response), ["7 200", "7 result 1", "7 end", "diagnostic false-coding"]);
    bench.connection.begin(ExchangeId(8));
    bench.send(http::request());
    bench.all_written();
    assert_eq!(bench.feed(response), ["8 200", "8 result 1", "8 end"]);
    let mut server = Bench::server(Kind::HttpServer);
    let request = http::post(1).replace("content-length", "content-encoding: utf-8\r\ncontent-length");
    assert_eq!(server.feed(&request).pop().as_deref(), Some("diagnostic false-coding"));
}
