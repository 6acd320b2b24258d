//! Responses with a decisive head and an invalid, stalled or endless body.

use super::*;
use crate::client::ListenerStart;
use crate::exchange::{Headers, ResponseHead};

/// A client over HTTP after negotiation with a legacy server. Its recorded outputs are cleared.
fn agreed() -> Rig {
    let mut config = ClientConfig::url("http://127.0.0.1:8000/mcp").unwrap();
    (config.policy, config.compat.listener) = (Policy::Legacy, ListenerStart::Never);
    let mut rig = Rig::new(config);
    let exchange = rig.exchange();
    head(&mut rig, exchange, 200, "application/json");
    let answer = json!({"jsonrpc": "2.0", "id": 1, "result": initialized("2025-11-25")});
    rig.handle_event(
        exchange,
        ExchangeEvent::Inbound(Inbound::Message(parse(answer.to_string().into(), 128).unwrap())),
    );
    rig.handle_event(exchange, ExchangeEvent::Inbound(Inbound::End));
    let exchange = rig.exchange();
    head(&mut rig, exchange, 202, "");
    rig.handle_event(exchange, ExchangeEvent::Inbound(Inbound::End));
    assert_eq!(rig.client.state(), State::Ready);
    rig.clear();
    rig
}

fn head(rig: &mut Rig, exchange: ExchangeId, status: u16, kind: &str) {
    let headers = if kind.is_empty() { Headers::new() } else { Headers::new().with("Content-Type", kind) };
    rig.handle_event(exchange, ExchangeEvent::Inbound(Inbound::Response(ResponseHead { status, headers })));
}

fn piece(rig: &mut Rig, exchange: ExchangeId, bytes: &'static [u8]) {
    rig.handle_event(exchange, ExchangeEvent::Inbound(Inbound::Body(Bytes::from_static(bytes))));
}

fn error(rig: &Rig, call: CallId) -> CallError {
    rig.outcome(call).clone().unwrap_err()
}

fn broken() -> ExchangeEvent {
    ExchangeEvent::Failed { sent: Sent::Maybe, why: Closed::Broken("the body is larger than the limit".into()) }
}

// covers: B-014, S0-46
#[test]
fn error_status_is_reported_despite_an_invalid_body() {
    let mut rig = agreed();
    let call = rig.call(tools::call("x"));
    let exchange = rig.exchange();
    head(&mut rig, exchange, 500, "text/html");
    piece(&mut rig, exchange, b"oh");
    rig.handle_event(exchange, broken());
    assert_eq!(error(&rig, call).to_string(), "HTTP 500: oh");

    let call = rig.call(tools::call("x"));
    let exchange = rig.exchange();
    head(&mut rig, exchange, 503, "text/html");
    piece(&mut rig, exchange, b"busy");
    rig.tick(rig.client.cx.env.config.limits.client.drain_time);
    assert_eq!(error(&rig, call).to_string(), "HTTP 503: busy");
    assert!(rig.aborted.contains(&exchange));

    let call = rig.call(tools::call("x"));
    let exchange = rig.exchange();
    head(&mut rig, exchange, 500, "text/html");
    piece(&mut rig, exchange, &[b'x'; 9000]);
    let CallError::Http(e) = error(&rig, call) else { panic!() };
    assert_eq!((e.status, e.body_head.len()), (500, 8 << 10));
    assert!(rig.aborted.contains(&exchange));
    rig.assert_at_rest();
}

// covers: B-024
#[test]
fn success_of_another_type_is_refused_by_its_head() {
    let mut rig = agreed();
    let call = rig.call(tools::call("x"));
    let exchange = rig.exchange();
    head(&mut rig, exchange, 200, "text/html");
    let told = CallError::ContentType { status: 200, content_type: Some("text/html".into()) };
    assert_eq!(error(&rig, call), told);
    assert!(rig.aborted.contains(&exchange));

    // Without a type the body may be empty or not. The call cannot distinguish the two.
    let call = rig.call(tools::call("x"));
    let exchange = rig.exchange();
    head(&mut rig, exchange, 200, "");
    assert!(!rig.aborted.contains(&exchange));
    piece(&mut rig, exchange, b"<p>hello</p>");
    assert_eq!(error(&rig, call), CallError::ContentType { status: 200, content_type: None });
    assert!(rig.aborted.contains(&exchange));
    rig.assert_at_rest();
}

#[test]
fn empty_success_is_reported_regardless_of_its_type() {
    let mut rig = agreed();
    for kind in ["", "application/json"] {
        let call = rig.call(tools::call("x"));
        let exchange = rig.exchange();
        head(&mut rig, exchange, 200, kind);
        rig.handle_event(exchange, ExchangeEvent::Inbound(Inbound::End));
        let told = error(&rig, call);
        assert_eq!(told, CallError::ContentType { status: 200, content_type: None });
        assert_eq!(told.to_string(), "HTTP 200 without a response body");
    }
    rig.assert_at_rest();
}

// covers: B-150
#[test]
fn notification_succeeds_by_status_alone() {
    let mut rig = agreed();
    let notify = |rig: &mut Rig, kind: &str| {
        rig.client.notify(rig.now, "custom/told", Object::new()).unwrap();
        rig.drain();
        let exchange = rig.exchange();
        head(rig, exchange, 200, kind);
        exchange
    };
    let exchange = notify(&mut rig, "text/html");
    piece(&mut rig, exchange, b"<p>fine</p>");
    rig.handle_event(exchange, broken());

    let exchange = notify(&mut rig, "application/json");
    let null = parse(Bytes::from_static(b"null"), 128).unwrap_err();
    rig.handle_event(exchange, ExchangeEvent::Inbound(Inbound::Invalid(null)));
    rig.handle_event(exchange, ExchangeEvent::Inbound(Inbound::End));

    // An open response is aborted.
    let exchange = notify(&mut rig, "text/event-stream");
    rig.tick(rig.client.cx.env.config.limits.client.drain_time);
    assert!(rig.aborted.contains(&exchange));
    assert_eq!(rig.events, []);
    rig.assert_at_rest();
}
