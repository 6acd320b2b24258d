//! A server that answers a call only after the response to its input request, which it sends on the
//! listener.

use super::*;
use crate::client::{ClientCommands, Policy};
use crate::model::elicitation::ElicitResult;

fn ok(headers: &str, body: &str) -> IoEvent {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n";
    IoEvent::Read(Bytes::from(format!("{head}{headers}content-length: {}\r\n\r\n{body}", body.len())))
}

fn accepted() -> IoEvent {
    IoEvent::Read(Bytes::from_static(b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n"))
}

/// A legacy client with a limit of one connection, and an open listener on connection 1.
fn listening() -> Hand {
    let mut config = ClientConfig::url("http://localhost/mcp").expect("it is a url").with_elicitation();
    config.policy = Policy::Legacy;
    config.limits.frame.max_connections_per_origin = 1;
    let client = WiredClient::new(Arc::new(config), [1; 32], Instant::ZERO);
    let mut hand = Hand { client, now: Instant::ZERO, silent: false, asked: BTreeMap::new() };
    assert_eq!(hand.told(), ["open 1"]);
    assert_eq!(hand.open(1), ["write 1"]);
    let result = r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}"#;
    assert_eq!(hand.handle_event(1, ok("mcp-session-id: s\r\n", result)), ["write 1", "ready"], "the notification");
    assert_eq!(hand.handle_event(1, accepted()), ["write 1"], "the listener");
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
    assert_eq!(hand.handle_event(1, IoEvent::Read(Bytes::from_static(head.as_bytes()))), NOTHING);
    hand
}

// covers: B-073, S0-18
#[test]
fn input_response_does_not_wait_for_a_free_connection() {
    let mut hand = listening();
    assert_eq!(hand.call(false).1, ["open 2"]);
    assert_eq!(hand.open(2), ["write 2"]);
    let question = r#"data: {"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"?","requestedSchema":{"type":"object","properties":{}}}}"#;
    let question = Bytes::from(format!("{question}\n\n"));
    hand.client.apply(hand.now, Input::Event(ConnectionId(1), IoEvent::Read(question))).expect("an event cannot fail");
    let Some(Action::Event(Event::InputNeeded { token, .. })) = hand.client.poll_output() else { panic!("a question") };
    hand.client.answer(hand.now, token, InputAnswer::Elicitation(ElicitResult::Decline));
    assert_eq!(hand.told(), ["open 3"]);
    assert_eq!(hand.open(3), ["write 3"]);
    assert_eq!(hand.handle_event(3, accepted()), ["close 3 Abort"], "there is room for one");
    let result = r#"{"jsonrpc":"2.0","id":2,"result":{"content":[]}}"#;
    assert_eq!(hand.handle_event(2, ok("", result)), ["call 1 succeeded"]);
}
