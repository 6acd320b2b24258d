//! Notifications for a request.

use super::*;
use crate::model::Progress;

fn call(version: &str, token: &str) -> (Bench, Responder) {
    let mut bench = Bench::new().initialized(A, version, "{}");
    let (responder, incoming) =
        bench.request(A, &legacy("1", "tools/call", &format!(r#"{{"_meta":{{"progressToken":{token}}}}}"#)));
    assert!(incoming.context.wants_progress);
    (bench, responder)
}

fn tell(bench: &mut Bench, responder: &Responder, progress: Progress) -> Result<(), Refusal> {
    bench.server.notify(bench.now, responder.key(), Note::Progress(progress)).map_err(|refused| refused.why)
}

// covers: PROG-B-001, PROG-B-004, PROG-B-005, PROG-B-006, B-055, B-288, RPC-S-029, META-B-022
#[test]
fn progress_has_the_exact_token_of_the_request() {
    for token in ["0", "\"0\"", "\"\"", "-7", "9223372036854775807", "\"t\""] {
        let (mut bench, responder) = call("2025-06-18", token);
        tell(&mut bench, &responder, Progress::new(0.5).total(2.0).message("m")).unwrap();
        let expected = format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":0.5,"total":2,"message":"m"}}}}"#
        );
        assert_eq!(bench.heard(A), [expected]);
    }
    // 2024-11-05 has no message.
    let (mut bench, responder) = call("2024-11-05", "1");
    tell(&mut bench, &responder, Progress::new(1.0).message("m")).unwrap();
    assert!(!bench.heard(A)[0].contains("message"));
}

// covers: PROG-B-007, PROG-B-001, B-055
#[test]
fn no_progress_without_a_token() {
    let mut bench = Bench::new().initialized(A, "2025-06-18", "{}");
    let (responder, incoming) = bench.request(A, &legacy("1", "tools/call", r#"{"_meta":{"progressToken":null}}"#));
    assert!(!incoming.context.wants_progress);
    assert_eq!(tell(&mut bench, &responder, Progress::new(1.0)), Err(Refusal::NotWanted));
    assert!(bench.outputs().is_empty());
    for token in ["1.5", "{}", "true"] {
        let said = bench.say(A, &legacy("2", "tools/call", &format!(r#"{{"_meta":{{"progressToken":{token}}}}}"#)));
        assert_eq!(error(&said[0]).code, -32602);
    }
}

// covers: PROG-B-003
#[test]
fn progress_must_increase() {
    let (mut bench, responder) = call("2025-06-18", "1");
    for (progress, outcome) in [
        (1.0, Ok(())),
        (1.0, Err(Refusal::NotIncreasing)),
        (0.0, Err(Refusal::NotIncreasing)),
        (1.5, Ok(())),
        (-1.0, Err(Refusal::NotIncreasing)),
    ] {
        assert_eq!(tell(&mut bench, &responder, Progress::new(progress)), outcome);
        assert_eq!(bench.heard(A).len(), usize::from(outcome.is_ok()));
    }
    for number in [f64::NAN, f64::INFINITY] {
        assert!(matches!(tell(&mut bench, &responder, Progress::new(number)), Err(Refusal::Unencodable(_))));
    }
    tell(&mut bench, &responder, Progress::new(2.0)).unwrap();
}

// covers: PROG-B-010, PROG-B-006, B-054, B-282
#[test]
fn no_progress_after_the_response() {
    let (mut bench, responder) = call("2025-06-18", "1");
    let key = responder.key();
    bench.complete(responder, "{}");
    bench.outputs();
    let refused = bench.server.notify(bench.now, key, Note::Progress(Progress::new(1.0))).unwrap_err();
    assert_eq!(refused.why, Refusal::Gone);
    assert_eq!(refused.value, Note::Progress(Progress::new(1.0)));
    let custom = Note::Custom("x".into(), Object::new());
    assert_eq!(bench.server.notify(bench.now, key, custom).unwrap_err().why, Refusal::Gone);
    assert!(bench.outputs().is_empty());
}

// covers: PROG-B-009, B-187, B-074
#[test]
fn only_the_newest_progress_waits_for_a_slow_client() {
    let (mut bench, responder) = call("2025-06-18", "1");
    bench.handle_event(A, ExchangeEvent::Unsent((1 << 20) - 10));
    for n in 1..=5 {
        tell(&mut bench, &responder, Progress::new(f64::from(n))).unwrap();
    }
    let custom = Note::Custom("x/y".into(), Object::new());
    let refused = bench.server.notify(bench.now, responder.key(), custom.clone()).unwrap_err();
    assert_eq!(refused.why, Refusal::Full);
    assert!(bench.heard(A).is_empty());
    bench.handle_event(A, ExchangeEvent::Unsent(100));
    let said = bench.heard(A);
    assert_eq!(said.len(), 1);
    assert!(said[0].contains(r#""progress":5"#), "{said:?}");
    bench.server.notify(bench.now, responder.key(), custom).unwrap();
    assert_eq!(bench.heard(A), [r#"{"jsonrpc":"2.0","method":"x/y","params":{}}"#]);
    // The response exceeds the limit, and the pending progress precedes it.
    bench.handle_event(A, ExchangeEvent::Unsent(1 << 20));
    tell(&mut bench, &responder, Progress::new(6.0)).unwrap();
    bench.complete(responder, "{}");
    let said = bench.heard(A);
    assert!(said[0].contains(r#""progress":6"#) && said[1].contains("result") && said.len() == 2, "{said:?}");
    bench.handle_event(A, ExchangeEvent::Unsent(0));
    assert!(bench.outputs().is_empty() && bench.at_rest());
}

// covers: B-187
#[test]
fn outputs_in_the_queue_count_as_unsent() {
    let (mut bench, responder) = call("2025-06-18", "1");
    let big = || Note::Custom("x".into(), Object::new().with("data", "x".repeat(600_000).as_str()));
    bench.server.notify(bench.now, responder.key(), big()).unwrap();
    assert_eq!(bench.server.notify(bench.now, responder.key(), big()).unwrap_err().why, Refusal::Full);
    // The outputs are taken, but their bytes are not reported yet.
    bench.handle_event(A, ExchangeEvent::Unsent(0));
    bench.outputs();
    assert_eq!(bench.server.notify(bench.now, responder.key(), big()).unwrap_err().why, Refusal::Full);
    bench.handle_event(A, ExchangeEvent::Unsent(0));
    bench.server.notify(bench.now, responder.key(), big()).unwrap();
}

// covers: CANC-S-005, PROG-B-003
#[test]
fn custom_notification_cannot_use_engine_methods() {
    let (mut bench, responder) = call("2025-06-18", "1");
    for method in ["notifications/progress", "notifications/cancelled"] {
        let note = Note::Custom(method.into(), Object::new());
        assert_eq!(bench.server.notify(bench.now, responder.key(), note).unwrap_err().why, Refusal::NotWanted);
    }
}

// covers: PROG-B-003, B-054
#[test]
fn newer_progress_replaces_the_pending_one() {
    let (mut bench, responder) = call("2025-06-18", "1");
    bench.handle_event(A, ExchangeEvent::Unsent((1 << 20) - 200));
    tell(&mut bench, &responder, Progress::new(1.0).message("x".repeat(300))).unwrap();
    assert!(bench.heard(A).is_empty(), "no room for the long one");
    tell(&mut bench, &responder, Progress::new(2.0)).unwrap();
    let said = bench.heard(A);
    assert!(said[0].contains(r#""progress":2}"#) && said.len() == 1, "{said:?}");
    bench.handle_event(A, ExchangeEvent::Unsent(0));
    assert!(bench.heard(A).is_empty());
    bench.complete(responder, "{}");
    assert_eq!(bench.heard(A).len(), 1, "the answer alone");
}
