//! Single connections under scripted input. The tests compare their outputs as lines of text.

use super::*;
use crate::rpc::{Message, Payload};
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use bytes::Bytes;
use core::time::Duration;

mod decoding;
mod serving;
mod timers;

/// A connection and its clock.
struct Bench {
    connection: Connection,
    now: Instant,
}

impl Bench {
    fn client(kind: Kind, program: bool) -> Self {
        Self::client_within(kind, program, &FrameLimits::default())
    }

    fn client_within(kind: Kind, program: bool, limits: &FrameLimits) -> Self {
        let mut connection = Connection::client(kind, program, limits, Instant::ZERO);
        connection.begin(ExchangeId(7));
        Self { connection, now: Instant::ZERO }
    }

    fn server(kind: Kind) -> Self {
        Self::server_within(kind, &FrameLimits::default())
    }

    fn server_within(kind: Kind, limits: &FrameLimits) -> Self {
        Self { connection: Connection::server(1, kind, Peer::default(), limits, Instant::ZERO), now: Instant::ZERO }
    }

    fn told(&mut self) -> Vec<String> {
        let mut told = Vec::new();
        while let Some((exchange, event)) = self.connection.poll_event() {
            told.push(format!("{} {}", exchange.0 & ExchangeId::MAX_SEQUENCE, event_text(&event)));
        }
        let mut written = Vec::new();
        let flush = |told: &mut Vec<String>, written: &mut Vec<u8>| {
            if !written.is_empty() {
                let text = String::from_utf8_lossy(written).into_owned();
                told.push(format!("> {}", text.split("\r\n").next().unwrap_or_default().trim_end()));
                written.clear();
            }
        };
        while let Some(output) = self.connection.poll_output() {
            match output {
                ConnectionOutput::Write(bytes) => written.extend_from_slice(&bytes),
                ConnectionOutput::Read(reads) => assert_eq!(reads, self.connection.wants_read()),
                ConnectionOutput::Secure(name) => told.push(format!("secure {name}")),
                ConnectionOutput::Close(how) => {
                    flush(&mut told, &mut written);
                    told.push(format!("close {how:?}"));
                }
            }
        }
        flush(&mut told, &mut written);
        while let Some(diagnostic) = self.connection.poll_diagnostic() {
            told.push(format!("diagnostic {}", diagnostic.kind.code()));
        }
        told
    }

    fn handle_io(&mut self, wire: IoEvent) -> Vec<String> {
        self.connection.handle_io(self.now, wire);
        self.told()
    }

    fn open(&mut self) -> Vec<String> {
        self.handle_io(IoEvent::Opened(Peer::default()))
    }

    fn feed(&mut self, text: &str) -> Vec<String> {
        self.handle_io(IoEvent::Read(Bytes::copy_from_slice(text.as_bytes())))
    }

    fn eof(&mut self) -> Vec<String> {
        self.handle_io(IoEvent::ReadClosed)
    }

    fn written(&mut self, n: usize) -> Vec<String> {
        self.handle_io(IoEvent::Written(n))
    }

    /// Reports everything as written. Omits the reports of unsent bytes.
    fn all_written(&mut self) -> Vec<String> {
        let n = self.connection.unsent;
        without_unsent(self.written(n))
    }

    /// Sends an item. Omits the reports of unsent bytes.
    fn say(&mut self, outgoing: Outbound) -> Vec<String> {
        without_unsent(self.send(outgoing))
    }

    fn closed(&mut self, why: Closed) -> Vec<String> {
        self.handle_io(IoEvent::Closed(why))
    }

    fn send(&mut self, outgoing: Outbound) -> Vec<String> {
        let exchange = self.connection.exchange().unwrap_or(ExchangeId(0));
        self.connection.send(self.now, exchange, outgoing);
        self.told()
    }

    /// Advances the time to the next timer and fires it.
    fn tick(&mut self) -> Vec<String> {
        self.now = self.connection.poll_timeout().expect("a timer is armed");
        self.connection.handle_timeout(self.now);
        self.told()
    }

    /// Milliseconds to the next timer.
    fn timer(&self) -> Option<u128> {
        self.connection.poll_timeout().map(|at| at.since(self.now).as_millis())
    }
}

fn without_unsent(mut told: Vec<String>) -> Vec<String> {
    told.retain(|line| !line.contains(" unsent "));
    told
}

fn event_text(event: &ExchangeEvent) -> String {
    match event {
        ExchangeEvent::Opened(_) => "opened".into(),
        ExchangeEvent::From(peer) => format!("from {:?}", peer.name),
        ExchangeEvent::Unsendable { id: Some(id), reason } => format!("unsendable {id}: {reason}"),
        ExchangeEvent::Unsendable { id: None, reason } => format!("unsendable: {reason}"),
        ExchangeEvent::Unsent(n) => format!("unsent {n}"),
        ExchangeEvent::Repeated => "repeated".into(),
        ExchangeEvent::ReadClosed => "read closed".into(),
        ExchangeEvent::Waiting => "waiting".into(),
        ExchangeEvent::Failed { sent, why } => format!("failed {sent:?} {why:?}"),
        ExchangeEvent::Inbound(Inbound::Message(Message::Request(request))) => format!("request {}", request.id),
        ExchangeEvent::Inbound(Inbound::Message(Message::Notification(notification))) => {
            format!("note {}", notification.method)
        }
        ExchangeEvent::Inbound(Inbound::Message(Message::Response(response))) => match &response.payload {
            Payload::Result(_) => format!("result {}", response.id),
            Payload::Error(_) => format!("error {}", response.id),
        },
        ExchangeEvent::Inbound(Inbound::Invalid(defect)) => format!("bad {:?}", defect.kind),
        ExchangeEvent::Inbound(Inbound::Request(head)) => format!("{} {}", head.method, head.target),
        ExchangeEvent::Inbound(Inbound::Response(head)) => head.status.to_string(),
        ExchangeEvent::Inbound(Inbound::Reject(defect)) => format!("reject {}", defect.status),
        ExchangeEvent::Inbound(Inbound::Event(_)) => "event".into(),
        ExchangeEvent::Inbound(Inbound::End) => "end".into(),
        ExchangeEvent::Inbound(other) => format!("{other:?}"),
    }
}

fn note(method: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"{method}"}}"#)
}

fn message(text: &str) -> Outbound {
    Outbound::Message(Bytes::copy_from_slice(text.as_bytes()))
}

const NOTHING: [&str; 0] = [];

// covers: B-117, S2-13
#[test]
fn lines_are_read_in_any_pieces_until_the_end_of_input() {
    let text = format!("{}\n{}\r\n\n{}", note("a"), note("b"), r#"{"half"#);
    let whole = ["1 opened", "1 note a", "1 note b", "1 bad Truncated", "1 end"];
    for cut in 0..text.len() {
        let mut bench = Bench::server(Kind::Lines);
        let mut told = bench.feed(&text[..cut]);
        told.extend(bench.feed(&text[cut..]));
        told.extend(bench.eof());
        assert_eq!(told, whole, "cut at {cut}");
        assert!(!bench.connection.is_closed());
        assert_eq!(bench.closed(Closed::Reset), ["1 failed No Reset"]);
        assert!(bench.connection.is_closed());
    }
}

// covers: B-117
#[test]
fn time_of_taking_events_does_not_change_them() {
    let inputs = || {
        let line = |text: &str| IoEvent::Read(Bytes::from(format!("{}\n", note(text))));
        [line("a"), line("b"), IoEvent::ReadClosed, IoEvent::Closed(Closed::Eof)]
    };
    let mut early = Bench::server(Kind::Lines);
    let mut late = Bench::server(Kind::Lines);
    let mut told = early.told();
    for wire in inputs() {
        told.extend(early.handle_io(wire));
    }
    for wire in inputs() {
        late.connection.handle_io(Instant::ZERO, wire);
    }
    assert!(!late.connection.is_closed(), "what was read is still to be taken");
    assert_eq!(late.told(), told);
    assert_eq!(told, ["1 opened", "1 note a", "1 note b", "1 end", "1 failed No Eof"]);
}

// covers: S2-09, S2-10
#[test]
fn frames_wait_for_the_open_connection_and_keep_their_order() {
    let mut bench = Bench::client(Kind::Lines, true);
    assert_eq!(bench.send(message(&note("a"))), ["7 unsent 31"]);
    assert_eq!(bench.send(message(&note("b"))), ["7 unsent 62"]);
    assert!(!bench.connection.wants_read());
    let both = format!("> {}\n{}", note("a"), note("b"));
    assert_eq!(bench.open(), ["7 opened", &both]);
    assert!(bench.connection.wants_read());
}

// covers: S0-33
#[test]
fn exchange_is_unsent_only_without_any_output() {
    let mut never_open = Bench::client(Kind::Lines, true);
    never_open.send(message(&note("a")));
    let why = Closed::Unreachable("no such file".into());
    assert_eq!(never_open.closed(why.clone()), [format!("7 failed No {why:?}")]);

    let mut silent = Bench::client(Kind::Lines, true);
    silent.open();
    assert_eq!(silent.closed(Closed::Reset), ["7 failed No Reset"]);

    let mut handed = Bench::client(Kind::Lines, true);
    handed.open();
    handed.send(message(&note("a")));
    let why = Closed::Exited(ExitStatus::exited(1));
    assert_eq!(handed.closed(why.clone()), ["7 end".into(), format!("7 failed Maybe {why:?}")]);
}

// covers: S0-33
#[test]
fn closed_connection_has_no_output() {
    let mut bench = Bench::client(Kind::Lines, true);
    bench.open();
    bench.send(message(&note("a")));
    bench.closed(Closed::Reset);
    assert_eq!(bench.timer(), None);
    assert_eq!(bench.feed("{}\n"), NOTHING);
    assert_eq!(bench.written(10), NOTHING);
    assert_eq!(bench.eof(), NOTHING);
    assert_eq!(bench.closed(Closed::Eof), NOTHING);
    bench.connection.send(bench.now, ExchangeId(7), message(&note("b")));
    bench.connection.abort(bench.now, ExchangeId(7));
    bench.connection.close(bench.now);
    bench.connection.handle_timeout(Instant::new(Duration::MAX));
    assert_eq!(bench.told(), NOTHING);
    assert!(!bench.connection.wants_read());
}

#[test]
fn connection_that_opens_too_late_fails_once_and_closes() {
    let mut bench = Bench::client(Kind::Lines, false);
    bench.send(message(&note("a")));
    assert_eq!(bench.timer(), Some(10_000));
    bench.connection.handle_timeout(Instant::from_millis(9_999));
    assert_eq!(bench.told(), NOTHING);
    assert_eq!(bench.tick(), ["7 failed No Timeout", "close Abort"]);
    assert_eq!(bench.open(), NOTHING);
    assert_eq!(bench.closed(Closed::Aborted), NOTHING);
    assert!(bench.connection.is_closed());
}

#[test]
fn program_shutdown_steps_follow_their_timers() {
    let mut bench = Bench::client(Kind::Lines, true);
    bench.open();
    assert_eq!(bench.send(Outbound::End), ["close WriteHalf"]);
    assert_eq!(bench.send(message(&note("late"))), NOTHING, "nothing follows the end");
    assert_eq!(bench.timer(), Some(2_000));
    assert_eq!(bench.feed(&format!("{}\n", note("still"))), ["7 note still"]);
    assert_eq!(bench.tick(), ["close Terminate"]);
    assert_eq!(bench.timer(), Some(2_000));
    assert_eq!(bench.tick(), ["close Abort"]);
    assert_eq!(bench.timer(), None);
    let why = Closed::Exited(ExitStatus::killed(9));
    assert_eq!(bench.closed(why.clone()), ["7 end".into(), format!("7 failed No {why:?}")]);
}

#[test]
fn socket_is_half_closed_and_then_aborted() {
    let mut bench = Bench::client(Kind::Lines, false);
    bench.send(message(&note("a")));
    assert_eq!(bench.send(Outbound::End), NOTHING, "not open yet");
    assert_eq!(bench.open(), ["7 opened".into(), format!("> {}", note("a")), "close WriteHalf".into()]);
    assert_eq!(bench.timer(), Some(2_000));
    assert_eq!(bench.tick(), ["close Abort"]);

    let mut ended = Bench::client(Kind::Lines, true);
    ended.open();
    ended.send(Outbound::End);
    assert_eq!(ended.eof(), ["7 end"]);
    let exit = ExitStatus::exited(0);
    assert_eq!(ended.closed(Closed::Exited(exit.clone())), [format!("7 failed No {:?}", Closed::Exited(exit))]);
    assert_eq!(ended.timer(), None);
}

#[test]
fn event_before_the_tick_wins_over_the_timer() {
    let mut bench = Bench::client(Kind::Lines, false);
    bench.now = Instant::from_millis(10_000);
    assert_eq!(bench.open(), ["7 opened"], "the time to open is over, but nobody said so");
    bench.connection.handle_timeout(bench.now);
    assert_eq!(bench.told(), NOTHING);
}

// covers: S0-34, S2-10
#[test]
fn unsent_counts_output_not_reported_as_written() {
    let mut bench = Bench::client(Kind::Lines, true);
    bench.send(message(&note("a")));
    assert_eq!(bench.written(5), NOTHING, "nothing was handed over yet");
    bench.open();
    assert_eq!(bench.written(12), ["7 unsent 19"]);
    assert_eq!(bench.send(message(&note("b"))), ["7 unsent 50".into(), format!("> {}", note("b"))]);
    assert_eq!(bench.written(0), NOTHING);
    assert_eq!(bench.written(1_000), ["7 unsent 0"]);
    assert_eq!(bench.written(1), NOTHING);
}

#[test]
fn last_responses_of_a_duplex_server_get_the_idle_timeout() {
    let mut bench = Bench::server(Kind::Lines);
    bench.told();
    bench.send(message(&note("last")));
    assert_eq!(bench.send(Outbound::End), ["close WriteHalf"]);
    assert_eq!(bench.timer(), Some(60_000), "some of it is unsent");
    bench.now = bench.now + Duration::from_secs(40);
    bench.written(1);
    assert_eq!(bench.timer(), Some(60_000), "some of it was accepted");
    let rest = bench.connection.unsent();
    bench.written(rest);
    assert_eq!(bench.timer(), Some(2_000), "only the other side is awaited");
}

#[test]
fn aborted_exchange_has_no_events_and_is_closed() {
    let mut bench = Bench::server(Kind::Lines);
    bench.connection.handle_io(bench.now, IoEvent::Read(Bytes::from(format!("{}\n{}\n", note("a"), note("b")))));
    let (exchange, _) = bench.connection.poll_event().expect("it is open");
    bench.connection.poll_event().expect("the first message");
    bench.connection.send(bench.now, exchange, message(&note("lost")));
    bench.connection.abort(bench.now, exchange);
    assert_eq!(bench.told(), ["close Abort"]);
    bench.connection.abort(bench.now, exchange);
    assert_eq!(bench.feed("{}\n"), NOTHING);
    assert_eq!(bench.closed(Closed::Aborted), NOTHING);
}

// covers: B-049, B-072
#[test]
fn exchange_ids_of_two_connections_differ() {
    let exchange_of = |number| {
        let mut connection =
            Connection::server(number, Kind::Lines, Peer::default(), &FrameLimits::default(), Instant::ZERO);
        let (exchange, _) = connection.poll_event().expect("it is open");
        assert_eq!(exchange.connection(), number);
        exchange
    };
    assert_ne!(exchange_of(1), exchange_of(2));
    let mut one = Connection::server(1, Kind::Lines, Peer::default(), &FrameLimits::default(), Instant::ZERO);
    one.send(Instant::ZERO, exchange_of(2), message(&note("for the other")));
    while one.poll_event().is_some() {}
    assert_eq!(one.poll_output(), None);
}

#[test]
fn reading_stops_only_at_a_limit() {
    let limits = FrameLimits { max_read_ahead: 100, ..FrameLimits::default() };
    let mut bench = Bench::server_within(Kind::Lines, &limits);
    bench.told();
    bench.feed(&note("x").repeat(10));
    assert!(bench.connection.wants_read(), "one long line that is not complete is no reason to stop");
    bench.feed("\n");
    let line = Bytes::from(format!("{}\n", note("a")));
    for n in 1..=4 {
        bench.connection.handle_io(bench.now, IoEvent::Read(line.clone()));
        assert_eq!(bench.connection.wants_read(), n < 4, "{n} lines that nobody takes");
    }
    assert_eq!(bench.told().len(), 4);
    assert!(bench.connection.wants_read());
}

mod http {
    use super::*;

    pub(super) fn post(id: u32) -> String {
        let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"m"}}"#);
        format!(
            "POST /mcp HTTP/1.1\r\nhost: h\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )
    }

    pub(super) fn response(id: u32) -> String {
        let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#);
        format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}", body.len())
    }

    pub(super) fn full(status: u16) -> Outbound {
        let headers = Headers::new().with("content-type", "application/json");
        Outbound::Response { head: ResponseHead { status, headers }, body: Body::Full(Bytes::from_static(b"{}")) }
    }

    pub(super) fn stream() -> Outbound {
        let headers = Headers::new().with("content-type", "text/event-stream");
        Outbound::Response { head: ResponseHead { status: 200, headers }, body: Body::Stream }
    }

    pub(super) fn event() -> Outbound {
        Outbound::Event { event: None, id: None, retry: None, data: Bytes::from_static(b"{}") }
    }

    pub(super) fn request() -> Outbound {
        let headers = Headers::new().with("host", "h").with("content-type", "application/json");
        let head = RequestHead { method: "POST".into(), target: "/mcp".into(), headers };
        Outbound::Request { head, body: Bytes::from_static(b"{}") }
    }

    pub(super) fn begun() -> Bench {
        let mut bench = Bench::client(Kind::HttpClient, false);
        bench.open();
        bench.send(request());
        bench.all_written();
        bench
    }

    #[test]
    fn pipelined_request_waits_for_the_previous_response() {
        let mut bench = Bench::server(Kind::HttpServer);
        let two = format!("{}{}", post(1), post(1));
        assert_eq!(bench.feed(&two), ["1 POST /mcp", "1 request 1", "1 end"]);
        assert_eq!(bench.say(full(200)), ["> HTTP/1.1 200 OK"]);
        let unsent = bench.connection.unsent;
        assert_eq!(bench.written(unsent - 1), ["1 unsent 1"], "a byte of the answer is not out");
        assert_eq!(bench.written(1), ["1 unsent 0", "2 POST /mcp", "2 request 1", "2 end"]);
        assert_eq!(bench.say(full(200)), ["> HTTP/1.1 200 OK"]);
    }

    #[test]
    fn pipelined_request_of_a_closed_client_never_starts() {
        let two = format!("{}{}", post(1), post(2));
        for gone in [IoEvent::ReadClosed, IoEvent::Closed(Closed::Reset), IoEvent::Closed(Closed::Eof)] {
            let why = if gone == IoEvent::Closed(Closed::Reset) { "Reset" } else { "Eof" };
            let mut waiting = Bench::server(Kind::HttpServer);
            waiting.feed(&two);
            let told = waiting.handle_io(gone.clone());
            let expected =
                if gone == IoEvent::ReadClosed { "1 read closed".into() } else { format!("1 failed No {why}") };
            assert_eq!(told[0], expected);
            assert!(told[1..].iter().all(|line| line == "close Abort"), "{told:?}");
            let answer = ["> HTTP/1.1 200 OK", "close WriteHalf"];
            assert_eq!(waiting.say(full(200)), if gone == IoEvent::ReadClosed { &answer[..] } else { &[] });
            assert_eq!(without_unsent(waiting.all_written()), NOTHING);

            let mut writing = Bench::server(Kind::HttpServer);
            writing.feed(&two);
            writing.say(full(200));
            let told = writing.handle_io(gone);
            let lost = format!("1 failed Maybe {why}");
            assert!(told.iter().all(|line| line == "close WriteHalf" || *line == lost), "{told:?}");
            assert_eq!(writing.all_written(), NOTHING);
        }
    }

    // covers: B-117
    #[test]
    fn time_of_taking_server_events_does_not_change_them() {
        let inputs = [IoEvent::Read(Bytes::from(format!("{}{}", post(1), post(2)))), IoEvent::ReadClosed];
        let (mut early, mut late) = (Bench::server(Kind::HttpServer), Bench::server(Kind::HttpServer));
        let told: Vec<String> = inputs.iter().flat_map(|wire| early.handle_io(wire.clone())).collect();
        for wire in inputs {
            late.connection.handle_io(Instant::ZERO, wire);
        }
        assert_eq!(told, ["1 POST /mcp", "1 request 1", "1 end", "1 read closed"]);
        assert_eq!(late.told(), told);
    }

    #[test]
    fn end_of_input_after_a_request_is_reported_once() {
        let mut bench = Bench::server(Kind::HttpServer);
        bench.feed(&post(1));
        bench.send(stream());
        assert_eq!(bench.eof(), ["1 read closed"]);
        assert_eq!(bench.eof(), NOTHING);
        let said = bench.say(Outbound::Event { event: None, id: None, retry: None, data: "{}".into() });
        assert_eq!(said, ["> a"]);
        assert_eq!(bench.say(Outbound::End).last().unwrap(), "close WriteHalf");
        assert_eq!(bench.closed(Closed::Eof), ["1 failed Maybe Eof"], "not all of it was written");

        let mut cut = Bench::server(Kind::HttpServer);
        cut.feed(&post(1));
        cut.send(stream());
        assert_eq!(cut.eof(), ["1 read closed"]);
        assert_eq!(cut.closed(Closed::Reset), ["1 failed Maybe Reset"]);

        let mut aborted = Bench::server(Kind::HttpServer);
        aborted.feed(&post(1));
        assert_eq!(aborted.eof(), ["1 read closed"]);
        aborted.connection.abort(aborted.now, ExchangeId::accepted(1, 1));
        assert_eq!(aborted.told(), ["close Abort"]);

        let mut half = Bench::server(Kind::HttpServer);
        let text = post(1);
        assert_eq!(half.feed(&text[..text.len() - 3]), ["1 POST /mcp"]);
        assert_eq!(half.eof(), ["1 failed No Eof", "close Abort"]);
    }

    #[test]
    fn refusing_server_lingers_until_the_client_reads() {
        let mut bench = Bench::server(Kind::HttpServer);
        let refused = "POST /mcp HTTP/1.1\r\nhost: h\r\ncontent-length: 99999999\r\n\r\nxxxx";
        assert_eq!(bench.feed(refused), ["1 reject 413"]);
        assert_eq!(bench.timer(), None, "no body is awaited");
        assert_eq!(bench.say(full(413)), ["> HTTP/1.1 413 Content Too Large", "close WriteHalf"]);
        bench.all_written();
        assert_eq!(bench.feed(&post(1)), NOTHING, "read on, unparsed");
        assert!(bench.connection.wants_read());
        assert_eq!(bench.timer(), Some(2_000));
        assert_eq!(bench.tick(), ["close Abort"]);

        let mut unread = Bench::server(Kind::HttpServer);
        let text = post(1);
        unread.feed(&text[..text.len() - 3]);
        assert_eq!(unread.say(full(401)), ["> HTTP/1.1 401 Unauthorized", "close WriteHalf"]);
        assert_eq!(unread.feed(&text[text.len() - 3..]), NOTHING, "the body was not awaited");
    }

    #[test]
    fn expect_continue_is_answered() {
        let mut bench = Bench::server(Kind::HttpServer);
        let text = post(1).replace("host: h", "host: h\r\nexpect: 100-continue");
        let (head, body) = text.split_at(text.find("{").expect("a body"));
        assert_eq!(bench.feed(head).last().map(String::as_str), Some("> HTTP/1.1 100 Continue"));
        bench.all_written();
        assert_eq!(bench.feed(body), ["1 request 1", "1 end"]);
    }

    #[test]
    fn connection_close_half_closes_after_the_response() {
        let mut bench = Bench::server(Kind::HttpServer);
        bench.feed(&post(1).replace("host: h", "host: h\r\nconnection: close"));
        assert_eq!(bench.say(full(200)), ["> HTTP/1.1 200 OK", "close WriteHalf"]);
        assert_eq!(bench.timer(), Some(30_000), "it may take its time to be written");
        bench.now = Instant::from_millis(10_000);
        bench.written(10);
        assert_eq!(bench.timer(), Some(20_009), "and is not to trickle");
        bench.all_written();
        assert_eq!(bench.timer(), Some(2_000));
        assert_eq!(bench.tick(), ["close Abort"]);
    }

    #[test]
    fn each_server_wait_has_its_timer() {
        let mut silent = Bench::server(Kind::HttpServer);
        assert_eq!(silent.timer(), Some(10_000), "the first head from the accept");
        assert_eq!(silent.tick(), ["close Abort"]);

        let mut bench = Bench::server(Kind::HttpServer);
        bench.now = Instant::from_millis(4_000);
        bench.feed("POST /m");
        assert_eq!(bench.timer(), Some(6_000), "bytes do not extend it");
        bench.feed(&post(1)[7..post(1).len() - 3]);
        assert_eq!(bench.timer(), Some(30_000), "the body");
        bench.feed(&post(1)[post(1).len() - 3..]);
        assert_eq!(bench.timer(), None, "the engine takes its time");
        bench.say(full(200));
        bench.now = Instant::from_millis(40_000);
        bench.all_written();
        assert_eq!(bench.timer(), Some(60_000), "idle");
        bench.now = Instant::from_millis(90_000);
        bench.feed("P");
        assert_eq!(bench.timer(), Some(10_000), "a further head from its first byte");
    }

    #[test]
    fn pipelined_requests_stop_reading_at_the_limit() {
        let limits = FrameLimits { max_read_ahead: 1_000, ..FrameLimits::default() };
        let mut bench = Bench::server_within(Kind::HttpServer, &limits);
        bench.feed(&post(1));
        assert!(bench.connection.wants_read());
        while bench.connection.wants_read() {
            assert_eq!(bench.feed(&post(2)), NOTHING);
            assert!(bench.connection.conn.buffered() < 10_000);
        }
        bench.say(full(200));
        bench.all_written();
        assert_eq!(bench.connection.exchange(), Some(ExchangeId::accepted(1, 2)));
    }

    // covers: B-054
    #[test]
    fn stream_events_keep_their_order_until_the_end() {
        let mut bench = Bench::server(Kind::HttpServer);
        bench.feed(&post(1));
        assert_eq!(bench.send(stream()).last().map(String::as_str), Some("> HTTP/1.1 200 OK"));
        assert_eq!(bench.send(event()).len(), 2);
        let exchange = bench.connection.exchange().expect("it is on");
        bench.send(Outbound::End);
        bench.connection.send(bench.now, exchange, event());
        assert_eq!(bench.told(), NOTHING);
    }

    #[test]
    fn response_ends_the_exchange_and_keeps_the_connection() {
        let mut bench = begun();
        assert_eq!(bench.timer(), None);
        assert_eq!(bench.feed(&response(1)), ["7 200", "7 result 1", "7 end"]);
        assert!(bench.connection.is_idle());
        assert_eq!(bench.timer(), Some(60_000));
        assert_eq!(bench.tick(), ["close Abort"]);
        assert!(!bench.connection.is_idle());
        assert_eq!(bench.closed(Closed::Aborted), NOTHING);
    }

    #[test]
    fn connection_is_not_kept_after_close_or_extra_bytes() {
        let mut told_so = begun();
        let text = response(1).replace("200 OK", "200 OK\r\nconnection: close");
        assert_eq!(told_so.feed(&text), ["7 200", "7 result 1", "7 end", "close Abort"]);

        let mut at_once = begun();
        let told = at_once.feed(&format!("{}HTTP/1.1", response(1)));
        assert_eq!(told, ["7 200", "7 result 1", "7 end", "close Abort", "diagnostic late-bytes"]);

        let mut later = begun();
        later.feed(&response(1));
        assert_eq!(later.feed("x"), ["close Abort", "diagnostic late-bytes"]);
        assert_eq!(later.feed("x"), NOTHING);

        let mut ended = begun();
        ended.feed(&response(1));
        assert_eq!(ended.eof(), ["close Abort"]);
    }

    // covers: S2-19
    #[test]
    fn connection_is_kept_despite_a_late_write_report() {
        let mut bench = Bench::client(Kind::HttpClient, false);
        bench.open();
        bench.send(request());
        assert_eq!(bench.feed(&response(1)), ["7 200", "7 result 1", "7 end"]);
        assert!(bench.connection.is_idle(), "some bytes, which only the report lacks");
        assert_eq!(bench.timer(), Some(2_000));
        assert_eq!(bench.tick(), ["close Abort"], "a report that never comes");

        let mut large = Bench::client(Kind::HttpClient, false);
        large.open();
        let Outbound::Request { head, .. } = request() else { panic!("a request") };
        large.send(Outbound::Request { head, body: vec![b'1'; 100_000].into() });
        assert_eq!(large.feed(&response(1)), ["7 200", "7 result 1", "7 end"]);
        assert!(!large.connection.is_idle(), "answered early: the rest is still on its way");
        assert_eq!(large.all_written(), NOTHING);
        assert!(large.connection.is_idle());
    }

    // covers: S2-13
    #[test]
    fn truncated_response_fails_the_exchange() {
        let text = response(1);
        for cut in 0..text.len() {
            let mut bench = begun();
            bench.feed(&text[..cut]);
            let told = bench.eof();
            assert_eq!(told, ["7 failed Maybe Eof", "close Abort"], "cut at {cut}");
            let mut reset = begun();
            reset.feed(&text[..cut]);
            assert_eq!(reset.closed(Closed::Reset), ["7 failed Maybe Reset"], "cut at {cut}");
        }
    }

    #[test]
    fn body_without_a_length_ends_with_the_input() {
        let text =
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}";
        let mut bench = begun();
        assert_eq!(bench.feed(text), ["7 200"]);
        assert_eq!(bench.eof(), ["7 result 1", "7 end", "close Abort"]);
        let mut silent = begun();
        silent.feed(text);
        assert_eq!(silent.closed(Closed::Eof), ["7 result 1", "7 end"], "a driver may leave out the end of input");
    }

    #[test]
    fn invalid_framing_fails_the_exchange_and_aborts() {
        let mut bench = begun();
        let told = bench.feed("SSH-2.0-OpenSSH_9.9\r\n\r\n");
        assert!(told[0].starts_with("7 failed Maybe Broken("), "{told:?}");
        assert_eq!(told[1..], ["close Abort"]);
        assert_eq!(bench.feed(&response(1)), NOTHING);
    }
}
