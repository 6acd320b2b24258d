//! Cancellation, deadlines, ends of exchanges, shutdown.

use super::*;

const CALL: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}"#;
const CANCEL: &str =
    r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"enough"}}"#;

// covers: CANC-B-010, CANC-B-013, X-34, STDIO-S-013, STDIO-S-014, B-063, B-222, B-047
#[test]
fn cancellation_reaches_the_handler_and_ends_the_request() {
    for (line, cancel) in [
        (CALL.to_string(), CANCEL.to_string()),
        (modern("1", "tools/call", ""), CANCEL.to_string()),
        (modern("0", "tools/call", ""), CANCEL.replace('1', "0")),
        (modern("\"\"", "tools/call", ""), CANCEL.replace('1', "\"\"")),
    ] {
        let mut bench = Bench::new().initialized(A, "2025-06-18", "{}");
        let (responder, _) = bench.request(A, &line);
        let key = responder.key();
        bench.item(A, read(&cancel));
        assert_eq!(bench.outputs(), [Output::Event(Event::Cancelled(key))]);
        assert_eq!(
            bench.server.notify(bench.now, key, Note::Progress(crate::model::Progress::new(1.0))).unwrap_err().why,
            Refusal::Gone
        );
        bench.complete(responder, "{}");
        assert!(bench.outputs().is_empty());
        assert!(bench.at_rest());
    }
}

// covers: CANC-B-011, CANC-B-015, CANC-B-016, CANC-B-007, B-064
#[test]
fn unknown_cancellation_is_ignored_and_reported() {
    let mut bench = Bench::new().initialized(A, "2025-11-25", "{}");
    let (responder, _) = bench.request(A, CALL);
    for params in [
        r#"{"requestId":2}"#,
        r#"{"requestId":"1"}"#,
        "{}",
        r#"{"requestId":null}"#,
        r#"{"requestId":{}}"#,
        r#"{"requestId":"init"}"#,
    ] {
        bench.item(A, read(&format!(r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{params}}}"#)));
        assert_eq!(bench.codes(), ["unknown-cancel"], "{params}");
    }
    bench.complete(responder, "{}");
    assert_eq!(bench.heard(A).len(), 1);
    bench.item(A, read(CANCEL));
    assert_eq!(bench.codes(), ["unknown-cancel"]);
}

// covers: B-063
#[test]
fn request_gets_one_response() {
    let mut bench = Bench::new().initialized(A, "2025-11-25", "{}");
    let (responder, _) = bench.request(A, CALL);
    let answer = responder.write(Outcome::Complete(Object::new()));
    bench.server.respond(bench.now, answer.clone());
    bench.server.respond(bench.now, answer.clone());
    assert_eq!(bench.heard(A).len(), 1);
    // Nor does it answer a later request with the same id, or a request of another engine.
    bench.runs(A, CALL);
    let mut other = Bench::seeded([8; 32], |_| {}).initialized(A, "2025-11-25", "{}");
    other.runs(A, CALL);
    bench.server.respond(bench.now, answer.clone());
    other.server.respond(other.now, answer);
    assert!(bench.outputs().is_empty() && other.outputs().is_empty());
}

// covers: B-066, B-268, CANC-B-010
#[test]
fn failed_exchange_cancels_only_its_own_requests() {
    let mut bench = Bench::new().initialized(A, "2025-06-18", "{}").initialized(B, "2025-06-18", "{}");
    let (on_a, _) = bench.request(A, CALL);
    let (on_b, _) = bench.request(B, CALL);
    bench.handle_event(A, failed());
    assert_eq!(bench.outputs(), [Output::Event(Event::Cancelled(on_a.key()))]);
    bench.complete(on_a, "{}");
    assert!(bench.outputs().is_empty());
    bench.complete(on_b, "{}");
    assert_eq!(bench.heard(B).len(), 1);
    bench.handle_event(A, failed());
    bench.handle_event(A, ExchangeEvent::Unsent(5));
    bench.handle_event(A, ExchangeEvent::Inbound(Inbound::End));
    assert!(bench.outputs().is_empty() && bench.at_rest());
    bench.item(A, read(CALL));
    assert_eq!(bench.codes(), ["unknown-exchange"]);
}

// covers: B-140, STDIO-S-017
#[test]
fn requests_may_finish_within_the_grace_after_end_of_input() {
    let mut bench = Bench::new().initialized(A, "2025-06-18", "{}");
    let (quick, _) = bench.request(A, CALL);
    let (slow, _) = bench.request(A, &CALL.replace("\"id\":1", "\"id\":2"));
    bench.item(A, Inbound::End);
    assert!(bench.outputs().is_empty());
    bench.complete(quick, "{}");
    assert_eq!(bench.heard(A).len(), 1);
    bench.item(A, read(CALL));
    assert_eq!(bench.codes(), ["dropped-notification"], "it has said all");
    bench.pass(Duration::from_millis(1000));
    let ended = [Output::Send(A, Outbound::End), Output::Event(Event::Cancelled(slow.key()))];
    assert_eq!(bench.outputs(), ended);
    bench.complete(slow, "{}");
    assert!(bench.outputs().is_empty() && bench.at_rest());
    // With nothing running there is no grace period; the last response ends it at once.
    let mut bench = Bench::new().initialized(A, "2025-06-18", "{}").initialized(B, "2025-06-18", "{}");
    bench.item(A, Inbound::End);
    assert_eq!(bench.outputs(), [Output::Send(A, Outbound::End)]);
    let (last, _) = bench.request(B, CALL);
    bench.item(B, Inbound::End);
    bench.complete(last, "{}");
    assert_eq!(bench.outputs().last(), Some(&Output::Send(B, Outbound::End)));
    assert!(bench.at_rest());
}

// covers: B-140, B-077
#[test]
fn no_input_request_after_end_of_input() {
    let ask = || Outcome::NeedInput { requests: [("r".into(), InputRequest::Roots)].into(), state: None };
    for asked_before in [true, false] {
        let mut bench = Bench::new().initialized(A, "2025-06-18", r#"{"roots":{}}"#);
        let (responder, _) = bench.request(A, CALL);
        if asked_before {
            bench.answer(responder, ask());
            assert_eq!(bench.heard(A).len(), 1);
            bench.item(A, Inbound::End);
        } else {
            bench.item(A, Inbound::End);
            bench.answer(responder, ask());
            assert_eq!(error(&bench.heard(A)[0]).code, -32603);
        }
        assert!(asked_before == bench.outputs().contains(&Output::Send(A, Outbound::End)));
        assert!(bench.at_rest());
    }
}

// covers: TIME-B-005, B-066
#[test]
fn handler_deadline_cancels_the_handler_with_an_error() {
    let mut bench = Bench::with(|config| config.limits.server.handler_deadline = Some(Duration::from_secs(5)))
        .initialized(A, "2025-06-18", "{}");
    let (responder, _) = bench.request(A, CALL);
    assert_eq!(bench.server.poll_timeout(), Some(Instant::from_millis(5000)));
    bench.pass(Duration::from_millis(4999));
    assert!(bench.outputs().is_empty());
    bench.pass(Duration::from_millis(1));
    let outputs = bench.outputs();
    assert!(matches!(&outputs[0], Output::Event(Event::Diagnostic(d)) if d.kind == DiagnosticKind::HandlerDeadline));
    assert_eq!(outputs[1], Output::Event(Event::Cancelled(responder.key())));
    assert_eq!(error(&on(A, &outputs[2]).unwrap()).code, -32603);
    bench.complete(responder, "{}");
    assert!(bench.outputs().is_empty() && bench.at_rest());
    // A response before the tick wins over the deadline.
    let (responder, _) = bench.request(A, CALL);
    bench.now = bench.now + Duration::from_secs(9);
    bench.complete(responder, "{}");
    bench.pass(Duration::ZERO);
    assert_eq!(bench.heard(A).len(), 1);
}

// covers: TIME-B-001
#[test]
fn input_from_the_client_fires_no_timer() {
    let mut bench = Bench::with(|config| config.limits.server.handler_deadline = Some(Duration::from_secs(5)))
        .initialized(A, "2025-06-18", "{}");
    let (responder, _) = bench.request(A, CALL);
    bench.now = bench.now + Duration::from_secs(9);
    assert_eq!(bench.say(A, &legacy("\"ping\"", "ping", "{}")).len(), 1, "the answer to the ping alone");
    assert_eq!(bench.server.poll_timeout(), Some(Instant::from_millis(5000)), "due, and not fired");
    bench.complete(responder, "{}");
    result(&bench.heard(A)[0]);
}

// covers: B-173, B-272, INIT-B-017, STDIO-S-018
#[test]
fn shutdown_waits_for_requests_and_terminates_once() {
    let mut bench = Bench::new().initialized(A, "2025-06-18", "{}").initialized(B, "2025-06-18", "{}");
    let (quick, _) = bench.request(A, CALL);
    let (slow, _) = bench.request(B, CALL);
    bench.server.shutdown(bench.now, Duration::from_secs(3));
    assert_eq!(error(&bench.say(A, &legacy("2", "tools/call", "{}"))[0]).code, -32603);
    assert_eq!(bench.say(A, &legacy("3", "ping", "{}")).len(), 1);
    bench.handle_event(ExchangeId(9), ExchangeEvent::Opened(Peer::default()));
    assert_eq!(bench.outputs(), [Output::Abort(ExchangeId(9))]);
    bench.complete(quick, "{}");
    assert_eq!(bench.heard(A).len(), 1);
    assert!(!bench.server.is_terminated());
    bench.server.shutdown(bench.now, Duration::from_secs(60));
    bench.pass(Duration::from_secs(3));
    let outputs = bench.outputs();
    assert_eq!(outputs[0], Output::Event(Event::Cancelled(slow.key())));
    assert_eq!(error(&on(B, &outputs[1]).unwrap()).code, -32603);
    assert_eq!(
        outputs[2..],
        [Output::Send(A, Outbound::End), Output::Send(B, Outbound::End), Output::Event(Event::Terminated)]
    );
    assert!(bench.server.is_terminated());
    bench.complete(slow, "{}");
    bench.server.shutdown(bench.now, Duration::ZERO);
    bench.handle_event(A, failed());
    bench.item(B, read(CALL));
    bench.pass(Duration::from_secs(100));
    let note = Note::Custom("x".into(), Object::new());
    assert_eq!(bench.server.notify(bench.now, RequestKey::new(1), note).unwrap_err().why, Refusal::Closed);
    assert!(bench.outputs().is_empty() && bench.at_rest() && bench.server.poll_timeout().is_none());
}

// covers: B-173
#[test]
fn shutdown_without_requests_ends_at_once() {
    let mut bench = Bench::new().open(A);
    bench.server.shutdown(bench.now, Duration::from_secs(3));
    assert_eq!(bench.outputs(), [Output::Send(A, Outbound::End), Output::Event(Event::Terminated)]);
    let mut bench = Bench::new().initialized(A, "2025-06-18", "{}");
    let (responder, _) = bench.request(A, CALL);
    bench.server.shutdown(bench.now, Duration::from_secs(3));
    bench.server.shutdown(bench.now, Duration::from_secs(1));
    assert_eq!(bench.server.poll_timeout(), Some(Instant::from_millis(1000)));
    bench.complete(responder, "{}");
    let outputs = bench.outputs();
    assert_eq!(outputs.last(), Some(&Output::Event(Event::Terminated)));
    assert_eq!(outputs.iter().filter(|output| **output == Output::Event(Event::Terminated)).count(), 1);
}

// covers: B-089
#[test]
fn exchange_without_first_request_times_out() {
    let limit = |config: &mut ServerConfig| config.limits.server.handshake_timeout = Some(Duration::from_secs(5));
    let mut bench = Bench::with(limit).open(A);
    bench.say(A, &legacy("1", "ping", "{}"));
    bench.pass(Duration::from_secs(5));
    let outputs = bench.outputs();
    assert_eq!(outputs.last(), Some(&Output::Abort(A)));
    assert!(bench.at_rest() && bench.server.wire.env.exchanges.is_empty());
    let mut bench = Bench::with(limit).initialized(A, "2025-06-18", "{}").open(B);
    bench.runs(B, &modern("1", "tools/list", ""));
    assert!(bench.server.poll_timeout().is_none());
}

// covers: B-272
#[test]
fn nothing_follows_termination_within_a_batch() {
    let mut bench = Bench::new().initialized(A, "2025-03-26", "{}");
    let (responder, _) = bench.request(A, CALL);
    bench.server.shutdown(bench.now, Duration::from_secs(3));
    bench.item(
        A,
        read(&format!(r#"[{CANCEL},{{"jsonrpc":"2.0","method":"n"}},{{"jsonrpc":"2.0","id":7,"method":"ping"}},1]"#)),
    );
    let outputs = bench.outputs();
    assert!(outputs.contains(&Output::Event(Event::Cancelled(responder.key()))));
    assert_eq!(outputs.last(), Some(&Output::Event(Event::Terminated)), "{outputs:?}");
}
