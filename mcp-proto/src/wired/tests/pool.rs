//! A client over HTTP with scripted connections: each request is answered, or its connection is
//! lost.

use crate::client::{ClientCommands, ClientConfig, Event, Repeat};
use crate::error::CallError;
use crate::exchange::*;
use crate::frame::Kind;
use crate::hook::MessageHook;
use crate::input::*;
use crate::model::lifecycle::Implementation;
use crate::model::tools;
use crate::rpc::Object;
use crate::server::{self, ServerCommands, ServerConfig};
use crate::time::Instant;
use crate::wired::{WiredClient, WiredServer};
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use bytes::Bytes;
use core::sync::atomic::{AtomicUsize, Ordering};

mod dead;
mod streams;
mod urgent;
mod waiting;

struct Hand {
    client: WiredClient,
    now: Instant,
    /// Suppresses the reports of written bytes.
    silent: bool,
    /// The bytes written to each connection and not yet answered.
    asked: BTreeMap<u64, Vec<u8>>,
}

impl Hand {
    /// A client after negotiation over connection 1, which is idle.
    fn ready(max_connections: usize) -> Self {
        Self::hooked(max_connections, None)
    }

    fn hooked(max_connections: usize, hook: Option<MessageHook>) -> Self {
        let mut config = ClientConfig::url("http://localhost/mcp").expect("it is a url");
        config.limits.frame.max_connections_per_origin = max_connections;
        config.on_message = hook;
        Self::with(config)
    }

    fn with(mut config: ClientConfig) -> Self {
        // Repetition by the engine has its own tests.
        config.repeat = Repeat::Never;
        let client = WiredClient::new(Arc::new(config), [1; 32], Instant::ZERO);
        let mut hand = Self { client, now: Instant::ZERO, silent: false, asked: BTreeMap::new() };
        assert_eq!(hand.told(), ["open 1"]);
        assert_eq!(hand.open(1), ["write 1"]);
        assert_eq!(hand.answer(1), ["ready"]);
        hand
    }

    fn told(&mut self) -> Vec<String> {
        let mut told: Vec<String> = Vec::new();
        while let Some(action) = self.client.poll_output() {
            let line = match action {
                Action::Open(channel, _) => format!("open {}", channel.0),
                Action::Secure(channel, name) => format!("secure {} {name}", channel.0),
                Action::Write(channel, bytes) => {
                    self.asked.entry(channel.0).or_default().extend_from_slice(&bytes);
                    if !self.silent {
                        self.client.handle_io(self.now, channel, IoEvent::Written(bytes.len()));
                    }
                    format!("write {}", channel.0)
                }
                Action::Read(channel, reads) => format!("read {} {reads}", channel.0),
                Action::Close(channel, how) => format!("close {} {how:?}", channel.0),
                Action::Event(Event::Ready(_)) => "ready".into(),
                Action::Event(Event::Ended { call, outcome: Ok(_) }) => format!("call {} succeeded", call.0),
                Action::Event(Event::Ended { call, outcome: Err(CallError::Closed { sent, why }) }) => {
                    format!("call {} {sent:?} {why:?}", call.0)
                }
                Action::Event(Event::Ended { call, outcome: Err(error) }) => format!("call {}: {error}", call.0),
                Action::Event(Event::Terminated(_)) => "terminated".into(),
                // Other tests cover the end of connections.
                Action::Notice(..) => continue,
                Action::Event(other) => format!("{other:?}"),
            };
            // A request may be written in pieces.
            if told.last() != Some(&line) {
                told.push(line);
            }
        }
        told
    }

    fn call(&mut self, repeatable: bool) -> (CallId, Vec<String>) {
        let call = if repeatable { tools::call("x").repeatable() } else { tools::call("x") };
        let calling = self.client.call(self.now, call).expect("it is accepted");
        (calling.id(), self.told())
    }

    fn handle_event(&mut self, channel: u64, wire: IoEvent) -> Vec<String> {
        self.client.apply(self.now, Input::Event(ConnectionId(channel), wire)).expect("an event cannot fail");
        self.told()
    }

    fn open(&mut self, channel: u64) -> Vec<String> {
        self.handle_event(channel, IoEvent::Opened(Peer::default()))
    }

    fn closed(&mut self, channel: u64) -> Vec<String> {
        self.handle_event(channel, IoEvent::Closed(Closed::Reset))
    }

    /// Answers the pending request of a connection.
    fn answer(&mut self, channel: u64) -> Vec<String> {
        let response = self.response(channel);
        self.handle_event(channel, IoEvent::Read(response))
    }

    /// Returns the response of a server. A modern server needs no other state.
    fn response(&mut self, channel: u64) -> Bytes {
        let asked = self.asked.remove(&channel).expect("something was asked");
        let config = ServerConfig::new(Implementation::new("server", "1"));
        let mut server = WiredServer::new(Arc::new(config), [2; 32], self.now);
        let end = server.accept(self.now, Kind::HttpServer, Peer::default());
        server.handle_io(self.now, end, IoEvent::Read(asked.into()));
        let mut response = Vec::new();
        while let Some(action) = server.poll_output() {
            match action {
                Action::Write(_, bytes) => response.extend_from_slice(&bytes),
                Action::Event(server::Event::Request(responder, _)) => {
                    let content = crate::rpc::RawJson::parse("[]").expect("it is json");
                    let outcome = Outcome::Complete(Object::new().with("content", content));
                    server.respond(self.now, responder.write(outcome));
                }
                other => panic!("{other:?}"),
            }
        }
        response.into()
    }
}

const NOTHING: [&str; 0] = [];

#[test]
fn idle_connection_is_reused_before_opening_a_new_one() {
    let mut hand = Hand::ready(16);
    assert_eq!(hand.call(false).1, ["write 1"]);
    assert_eq!(hand.call(false).1, ["open 2"]);
    assert_eq!(hand.open(2), ["write 2"]);
    assert_eq!(hand.answer(2), ["call 2 succeeded"]);
    assert_eq!(hand.call(false).1, ["write 2"]);
    assert_eq!(hand.answer(1), ["call 1 succeeded"]);
    assert_eq!(hand.call(false).1, ["write 1"]);
}

// covers: S2-44
#[test]
fn hook_sees_a_repeated_request_once() {
    let asked = Arc::new(AtomicUsize::new(0));
    let counter = asked.clone();
    let hook = MessageHook::new(move |message| {
        counter.fetch_add(usize::from(message.method() == Some("tools/call")), Ordering::Relaxed);
        Ok(())
    });
    let mut hand = Hand::hooked(1, Some(hook));
    assert_eq!(hand.call(true).1, ["write 1"]);
    assert_eq!(hand.closed(1), ["open 2"]);
    assert_eq!(hand.open(2), ["write 2"]);
    assert_eq!(asked.load(Ordering::Relaxed), 1);
}

#[test]
fn repeated_request_uses_a_new_connection() {
    let mut hand = Hand::ready(16);
    hand.call(false);
    hand.call(false);
    hand.open(2);
    hand.answer(1);
    hand.answer(2);
    assert_eq!(hand.call(true).1, ["write 2"]);
    assert_eq!(hand.closed(2), ["open 3"], "though connection 1 is idle");
}

#[test]
fn other_losses_are_reported() {
    let mut once = Hand::ready(16);
    once.call(false);
    assert_eq!(once.closed(1), ["call 1 Maybe Reset"], "it is not repeatable");

    let mut begun = Hand::ready(16);
    begun.call(true);
    assert_eq!(begun.handle_event(1, IoEvent::Read(Bytes::from_static(b"H"))), NOTHING);
    assert_eq!(begun.closed(1), ["call 1 Maybe Reset"], "the answer had begun");

    let mut fresh = Hand::ready(16);
    fresh.call(false);
    assert_eq!(fresh.call(true).1, ["open 2"]);
    assert_eq!(fresh.closed(2), ["call 2 No Reset"], "the connection was new");
}

// covers: B-116
#[test]
fn bytes_after_a_response_are_reported_for_all_pieces() {
    let told = |late: usize| {
        let mut hand = Hand::ready(16);
        hand.call(false);
        let bytes = [&hand.response(1)[..], b"late"].concat();
        let (one, two) = bytes.split_at(bytes.len() - late);
        let mut told = hand.handle_event(1, IoEvent::Read(Bytes::copy_from_slice(one)));
        told.extend(hand.handle_event(1, IoEvent::Read(Bytes::copy_from_slice(two))));
        told.sort();
        told
    };
    assert!(told(0).iter().any(|line| line.contains("LateBytes")), "{:?}", told(0));
    for late in 1..=4 {
        assert_eq!(told(late), told(0));
    }
}

#[test]
fn connection_that_ends_while_idle_is_not_used() {
    let mut hand = Hand::ready(16);
    assert_eq!(hand.handle_event(1, IoEvent::ReadClosed), ["close 1 Abort"]);
    assert_eq!(hand.call(false).1, ["open 2"]);
    assert_eq!(hand.closed(1), NOTHING);

    let mut late = Hand::ready(16);
    let told = late.handle_event(1, IoEvent::Read(Bytes::from_static(b"x")));
    assert!(told.len() == 2 && told[0].contains("LateBytes") && told[1] == "close 1 Abort", "{told:?}");
    assert_eq!(late.call(false).1, ["open 2"]);

    let mut old = Hand::ready(16);
    old.now = old.client.poll_timeout().expect("the idle timer");
    old.client.handle_timeout(old.now);
    assert_eq!(old.told(), ["close 1 Abort"]);
}

#[test]
fn requests_beyond_the_limit_wait_until_cancelled() {
    let mut hand = Hand::ready(1);
    assert_eq!(hand.call(false).1, ["write 1"]);
    let (second, told) = hand.call(false);
    assert_eq!(told, NOTHING);
    assert_eq!(hand.call(false).1, NOTHING);
    hand.client.cancel(hand.now, second, None);
    assert_eq!(hand.told(), ["call 2: cancelled"]);
    assert_eq!(hand.answer(1), ["write 1", "call 1 succeeded"]);
    assert_eq!(hand.answer(1), ["call 3 succeeded"]);
}

#[test]
fn connection_that_opens_too_late_fails_and_frees_its_place() {
    let mut hand = Hand::ready(1);
    hand.handle_event(1, IoEvent::ReadClosed);
    hand.closed(1);
    assert_eq!(hand.call(true).1, ["open 2"]);
    assert_eq!(hand.call(true).1, NOTHING);
    hand.now = hand.now + core::time::Duration::from_secs(10);
    assert_eq!(hand.client.poll_timeout(), Some(hand.now));
    hand.client.handle_timeout(hand.now);
    assert_eq!(hand.told(), ["close 2 Abort", "call 1 No Timeout"]);
    assert_eq!(hand.open(2), NOTHING);
    assert_eq!(hand.handle_event(2, IoEvent::Closed(Closed::Aborted)), ["open 3"]);
}

#[test]
fn client_terminates_after_all_its_connections() {
    let mut hand = Hand::ready(16);
    hand.call(false);
    hand.call(false);
    hand.open(2);
    hand.answer(1);
    hand.client.close(hand.now);
    let mut told = hand.told();
    told.sort();
    let call = told.remove(0);
    assert!(call.starts_with("call 2 "), "{call}");
    assert_eq!(told, ["close 1 Abort", "close 2 Abort"]);
    assert_eq!(hand.closed(2), NOTHING);
    assert_eq!(hand.closed(1), ["terminated".to_string()]);
    assert_eq!(hand.client.poll_timeout(), None);
}
