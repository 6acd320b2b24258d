//! Event streams in the pool, and the effect of the ends of their calls on it.

use super::*;
use crate::client::{ClientCommands, Timer};
use crate::wired::WiredTimer;
use core::time::Duration;

const HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
const END: &str = "0\r\n\r\n";

fn chunk(text: &str) -> String {
    format!("{:x}\r\n{text}\r\n", text.len())
}

impl Hand {
    fn text(&mut self, channel: u64, text: &str) -> Vec<String> {
        self.handle_event(channel, IoEvent::Read(Bytes::copy_from_slice(text.as_bytes())))
    }

    /// Returns the response to the pending request, as an event in a chunk.
    fn event(&mut self, channel: u64) -> String {
        let response = self.response(channel);
        let text = core::str::from_utf8(&response).expect("it is text");
        let (_, body) = text.split_once("\r\n\r\n").expect("it has a body");
        chunk(&format!("data: {body}\n\n"))
    }

    fn tick(&mut self) -> Vec<String> {
        self.now = self.client.poll_timeout().expect("a timer is armed");
        self.client.handle_timeout(self.now);
        self.told()
    }
}

fn limited(connections: usize, streams: usize) -> Hand {
    let mut config = ClientConfig::url("http://localhost/mcp").expect("it is a url");
    config.limits.frame.max_connections_per_origin = connections;
    config.limits.frame.max_streams_per_origin = streams;
    Hand::with(config)
}

#[test]
fn request_does_not_wait_behind_a_stream() {
    let mut hand = Hand::ready(1);
    assert_eq!(hand.call(false).1, ["write 1"]);
    assert_eq!(hand.call(false).1, NOTHING, "the answer may come at once");
    assert_eq!(hand.text(1, HEAD), ["open 2"]);
    assert_eq!(hand.open(2), ["write 2"]);
    assert_eq!(hand.answer(2), ["call 2 succeeded"]);
    for n in 3..6 {
        assert_eq!(hand.call(false).1, ["write 2"]);
        assert_eq!(hand.answer(2), [format!("call {n} succeeded")]);
    }
    let event = hand.event(1) + END;
    assert_eq!(hand.text(1, &event), ["call 1 succeeded", "close 1 Abort"], "there is room for one connection");
    assert_eq!(hand.closed(1), NOTHING);
    assert_eq!(hand.call(false).1, ["write 2"]);
}

#[test]
fn streams_beyond_their_limit_count_as_connections() {
    let mut hand = limited(2, 1);
    hand.call(false);
    hand.call(false);
    hand.open(2);
    assert_eq!(hand.text(1, HEAD), NOTHING);
    assert_eq!(hand.text(2, HEAD), NOTHING);
    assert_eq!(hand.call(false).1, ["open 3"], "one stream is not counted");
    assert_eq!(hand.call(false).1, NOTHING, "the other is");
    hand.open(3);
    assert_eq!(hand.text(3, HEAD), NOTHING);
    let event = hand.event(2) + END;
    assert_eq!(hand.text(2, &event), ["call 2 succeeded", "write 2"], "a place is free, and a connection");
}

#[test]
fn ended_stream_frees_its_place_once_closed() {
    let mut hand = limited(1, 0);
    let call = hand.call(false).0;
    hand.text(1, HEAD);
    assert_eq!(hand.call(false).1, NOTHING);
    hand.client.cancel(hand.now, call, None);
    assert_eq!(hand.told(), ["close 1 Abort", "call 1: cancelled"]);
    assert_eq!(hand.handle_event(1, IoEvent::Closed(Closed::Aborted)), ["open 2"]);
    hand.open(2);
    hand.text(2, HEAD);
    assert_eq!(hand.call(false).1, NOTHING);
    assert_eq!(hand.closed(2), ["open 3", "call 2 Maybe Reset"]);
}

// covers: B-153, S2-19
#[test]
fn sequential_calls_share_one_connection() {
    let mut hand = Hand::ready(16);
    for n in 1..=20 {
        assert_eq!(hand.call(false).1, ["write 1"], "call {n}");
        let told = match n % 3 {
            0 => hand.answer(1),
            1 => {
                let event = hand.event(1);
                hand.text(1, &[HEAD, &event, END].concat())
            }
            _ => {
                let note = chunk("data: {\"jsonrpc\":\"2.0\",\"method\":\"custom/note\"}\n\n");
                let event = hand.event(1);
                let told = hand.text(1, &[HEAD, &note, &event].concat());
                assert_eq!(hand.text(1, END), NOTHING, "what follows the answer is read to its end");
                told
            }
        };
        assert_eq!(told.last(), Some(&format!("call {n} succeeded")));
    }
    assert_eq!(hand.client.stats().channels, 1);
}

// covers: B-153
#[test]
fn stream_open_after_its_response_is_closed_in_time() {
    let mut hand = Hand::ready(16);
    hand.call(false);
    let event = hand.event(1);
    assert_eq!(hand.text(1, &[HEAD, &event].concat()), ["call 1 succeeded"]);
    assert_eq!(hand.call(false).1, ["open 2"], "nobody waits for its end");
    assert_eq!(hand.open(2), ["write 2"]);
    assert!(
        matches!(hand.client.timeout_reason(), Some(WiredTimer::Engine(Timer::Drain(_)))),
        "{:?}",
        hand.client.timeout_reason()
    );
    let began = hand.now;
    assert_eq!(hand.tick(), ["close 1 Abort"]);
    assert_eq!(hand.now.since(began), Duration::from_secs(5));
    assert_eq!(hand.answer(2), ["call 2 succeeded"]);
}

// covers: B-155, S0-42
#[test]
fn timeout_ends_only_its_own_exchange() {
    let mut hand = Hand::ready(16);
    let short = tools::call("x").timeout(Duration::from_secs(1));
    hand.client.call(hand.now, short).expect("it is accepted");
    assert_eq!(hand.told(), ["write 1"]);
    assert_eq!(hand.call(false).1, ["open 2"]);
    assert_eq!(hand.call(false).1, ["open 3"]);
    hand.open(2);
    hand.open(3);
    assert_eq!(hand.answer(3), ["call 3 succeeded"]);
    let told = hand.tick();
    assert!(told.len() == 2 && told[0] == "close 1 Abort" && told[1].starts_with("call 1"), "{told:?}");
    hand.handle_event(1, IoEvent::Closed(Closed::Aborted));
    assert_eq!(hand.answer(2), ["call 2 succeeded"]);
    assert_eq!(hand.call(false).1, ["write 2"], "the others are kept");
    assert_eq!(hand.call(false).1, ["write 3"]);
}

// covers: B-155, B-164
#[test]
fn stalled_body_ends_only_its_own_call() {
    for content in [false, true] {
        let mut config = ClientConfig::url("http://localhost/mcp").expect("it is a url");
        config.timeout = None;
        let mut hand = Hand::with(config);
        hand.call(false);
        hand.call(false);
        hand.open(2);
        let whole = hand.response(1);
        let head = whole.windows(4).position(|end| end == b"\r\n\r\n").expect("it has a head") + 4;
        hand.handle_event(1, IoEvent::Read(whole.slice(..if content { whole.len() - 1 } else { head })));
        hand.text(2, HEAD);
        assert_eq!(hand.tick(), ["close 1 Abort", "call 1 Maybe Timeout"], "content: {content}");
        assert_eq!(hand.now, Instant::ZERO + Duration::from_secs(30));
        hand.closed(1);
        assert_eq!(hand.client.poll_timeout(), None, "a stream may rest");
        let event = hand.event(2) + END;
        assert_eq!(hand.text(2, &event), ["call 2 succeeded"]);
    }
}

// After a failed write a client still reads. The driver reports no more written bytes (RFC 9112
// section 9.5).
#[test]
fn response_counts_even_if_its_request_was_not_written() {
    let mut hand = Hand::ready(16);
    hand.silent = true;
    assert_eq!(hand.call(true).1, ["write 1"]);
    let answer = hand.response(1);
    assert_eq!(hand.handle_event(1, IoEvent::Read(answer)), ["call 1 succeeded"]);
    assert_eq!(hand.handle_event(1, IoEvent::ReadClosed), ["close 1 Abort"]);
    assert_eq!(hand.call(true).1, ["open 2"]);
}
