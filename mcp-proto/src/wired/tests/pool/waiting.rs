//! Requests that wait for a connection: the errors of their calls, the counters, and the requests
//! that do not wait.

use super::*;
use crate::client::{ClientCommands, Policy};
use crate::error::WaitReason;
use core::time::Duration;

const LIMIT: Duration = Duration::from_secs(3);

impl Hand {
    /// Like [`Hand::ready`], with a timeout of [`LIMIT`].
    fn limited(max_connections: usize) -> Self {
        let mut config = ClientConfig::url("http://localhost/mcp").expect("it is a url");
        config.limits.frame.max_connections_per_origin = max_connections;
        config.timeout = Some(LIMIT);
        Self::with(config)
    }

    /// Advances the time. Returns the ended calls: the id, whether it may have been sent, and the
    /// awaited step.
    fn ends(&mut self, after: Duration) -> Vec<(u64, Sent, Option<WaitReason>)> {
        self.now = self.now + after;
        self.client.handle_timeout(self.now);
        self.ended()
    }

    fn ended(&mut self) -> Vec<(u64, Sent, Option<WaitReason>)> {
        let mut ends = Vec::new();
        while let Some(action) = self.client.poll_output() {
            match action {
                Action::Event(Event::Ended { call, outcome: Err(error) }) => {
                    let awaited = match &error {
                        CallError::Timeout { awaited, .. } => Some(awaited.clone()),
                        _ => None,
                    };
                    ends.push((call.0, error.sent(), awaited));
                }
                Action::Write(channel, bytes) => self.asked.entry(channel.0).or_default().extend_from_slice(&bytes),
                _ => {}
            }
        }
        ends
    }
}

#[test]
fn call_that_times_out_before_it_has_a_connection_was_not_sent() {
    let mut hand = Hand::limited(1);
    hand.call(false);
    hand.call(false);
    assert_eq!(hand.client.stats().waiting, 1);
    let sent = (1, Sent::Maybe, Some(WaitReason::Response));
    let unsent = (2, Sent::No, Some(WaitReason::Connection));
    assert_eq!(hand.ends(LIMIT), [sent, unsent], "the clock of the second ran while it waited");
    assert_eq!(hand.client.stats().waiting, 0);
    let asked = String::from_utf8(hand.asked[&1].clone()).expect("it is text");
    assert_eq!(asked.matches(r#""method":"tools/call""#).count(), 1, "one was written");
}

#[test]
fn call_whose_connection_is_not_open_was_not_sent() {
    let mut hand = Hand::limited(16);
    hand.call(false);
    assert_eq!(hand.call(false).1, ["open 2"]);
    let unsent = (2, Sent::No, Some(WaitReason::Connection));
    assert!(hand.ends(LIMIT).contains(&unsent));
}

#[test]
fn call_may_have_been_sent_from_its_first_write_on() {
    for written in [false, true] {
        let mut hand = Hand::limited(16);
        hand.silent = true;
        hand.call(false);
        hand.call(false);
        hand.client.apply(hand.now, Input::Event(ConnectionId(2), IoEvent::Opened(Peer::default()))).expect("an event");
        if written {
            assert_eq!(hand.told(), ["write 2"]);
        }
        let sent = (2, Sent::Maybe, Some(WaitReason::Response));
        assert!(hand.ends(LIMIT).contains(&sent), "whether or not the driver took the write: {written}");
    }
}

#[test]
fn call_that_waited_and_was_written_then_may_have_been_sent() {
    let mut hand = Hand::limited(1);
    hand.call(false);
    hand.call(false);
    assert_eq!(hand.answer(1), ["write 1", "call 1 succeeded"]);
    assert_eq!(hand.ends(LIMIT), [(2, Sent::Maybe, Some(WaitReason::Response))]);
}

#[test]
fn closing_ends_waiting_calls_as_not_sent() {
    let mut hand = Hand::limited(1);
    hand.call(false);
    hand.call(false);
    hand.client.close(hand.now);
    assert_eq!(hand.ended(), [(1, Sent::Maybe, None), (2, Sent::No, None)]);
}

#[test]
fn call_lost_with_its_connection_may_have_been_sent() {
    let mut hand = Hand::limited(1);
    hand.call(true);
    assert_eq!(hand.closed(1), ["open 2"]);
    assert_eq!(
        hand.ends(LIMIT),
        [(1, Sent::Maybe, Some(WaitReason::Response))],
        "the first connection may have carried it"
    );
}

#[test]
fn cancel_notification_is_sent_at_once_for_sent_calls_only() {
    let mut config = ClientConfig::url("http://localhost/mcp").expect("it is a url");
    config.limits.frame.max_connections_per_origin = 1;
    config.policy = Policy::Legacy;
    let client = WiredClient::new(Arc::new(config), [1; 32], Instant::ZERO);
    let mut hand = Hand { client, now: Instant::ZERO, silent: false, asked: BTreeMap::new() };
    let ok = |fields: &str, body: &str| {
        let length = body.len();
        let head =
            format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n{fields}content-length: {length}\r\n\r\n");
        IoEvent::Read((head + body).into())
    };
    hand.told();
    hand.open(1);
    let result = r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}"#;
    hand.handle_event(1, ok("mcp-session-id: s\r\n", result));
    // `notifications/initialized`, then the listener, which the server does not support.
    hand.handle_event(1, IoEvent::Read(Bytes::from_static(b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n")));
    hand.handle_event(1, IoEvent::Read(Bytes::from_static(b"HTTP/1.1 405 No\r\ncontent-length: 0\r\n\r\n")));
    hand.asked.clear();
    let (sent, told) = hand.call(false);
    assert_eq!(told, ["write 1"]);
    let (waiting, _) = hand.call(false);
    hand.client.cancel(hand.now, waiting, None);
    assert_eq!(hand.told(), ["call 2: cancelled"]);

    hand.client.cancel(hand.now, sent, None);
    assert_eq!(
        hand.told(),
        ["open 2", "close 1 Abort", "call 1: cancelled"],
        "though connection 1 takes its place still"
    );
    assert_eq!(hand.open(2), ["write 2"]);
    let asked = String::from_utf8(hand.asked[&2].clone()).expect("it is text");
    assert!(asked.contains("notifications/cancelled"), "{asked}");

    hand.client.close(hand.now);
    let told = hand.told();
    assert!(!told.contains(&"terminated".to_string()), "the session is not ended: {told:?}");
}

#[test]
fn most_recently_used_idle_connections_are_kept() {
    let mut config = ClientConfig::url("http://localhost/mcp").expect("it is a url");
    config.limits.frame.max_idle_per_origin = 2;
    let mut hand = Hand::with(config);
    for n in 1..=4 {
        hand.call(false);
        if n > 1 {
            hand.open(n);
        }
    }
    assert_eq!(hand.answer(3), ["call 3 succeeded"]);
    assert_eq!(hand.answer(4), ["call 4 succeeded"]);
    assert_eq!(hand.answer(1), ["call 1 succeeded"]);
    assert_eq!(hand.answer(2), ["call 2 succeeded"]);
    let pass = |hand: &mut Hand, millis| {
        hand.now = hand.now + Duration::from_millis(millis);
        hand.client.handle_timeout(hand.now);
        hand.told()
    };
    assert_eq!(pass(&mut hand, 999), NOTHING, "they may be needed again");
    assert_eq!(pass(&mut hand, 1), ["close 3 Abort", "close 4 Abort"]);
    assert_eq!(pass(&mut hand, 58_999), NOTHING);
    assert_eq!(hand.call(false).1, ["write 2"]);
}
