//! Streams that end early, and the consequences for their calls.

use super::*;
use crate::client::{Repeat, Resume, SseDecode, StreamOf};
use crate::error::StreamEnd;
use core::error::Error;

/// A call whose response began with an event and was cut, and the number of exchanges.
fn primed(http: &mut Http, retry: u64) -> (CallId, Value, usize) {
    let call = http.rig.call(tools::call("x").timeout(None));
    let (exchange, id) = http.last();
    http.stream(exchange);
    http.numbered(exchange, "p0", Some(retry), None);
    let count = http.posts().len();
    http.item(exchange, Inbound::End);
    (call, id, count)
}

/// Answers each attempt with `answer` for this time. Returns the times of the attempts in
/// milliseconds.
fn attempts(http: &mut Http, time: u64, mut answer: impl FnMut(&mut Http, ExchangeId, usize)) -> Vec<u64> {
    let began = http.rig.now;
    let mut at = vec![];
    let mut count = http.posts().len();
    // Some thousands of ticks.
    let tick = ms((time / 10_000).max(5));
    while http.rig.now.since(began) < ms(time) {
        http.rig.tick(tick);
        if http.posts().len() > count {
            count += 1;
            at.push(http.rig.now.since(began).as_millis() as u64);
            let exchange = http.posts()[count - 1].0;
            answer(http, exchange, at.len());
        }
    }
    at
}

// covers: S1-01, S1-02, S1-05, S1-07, S1-09, S1-13, S1-15, S3-10, S4-09, S4-11, S4-13,
// SHTTP-C-018, SHTTP-C-020, SHTTP-C-043, B-023, S0-50
#[test]
fn stream_is_resumed_after_the_retry_time_of_the_server() {
    let mut http = Http::legacy(|_| {});
    let (call, id, count) = primed(&mut http, 500);
    let told = http.rig.events.iter().find(|event| matches!(event, Event::Reconnecting { .. }));
    let Some(Event::Reconnecting { stream, attempt: 1, wait, cause: StreamEnd::Ended, last_event }) = told else {
        panic!("{told:?}")
    };
    assert_eq!((*stream, last_event.as_deref()), (StreamOf::Call(call), Some("p0")));
    assert!((ms(500)..=ms(550)).contains(wait));
    http.rig.tick(ms(499));
    assert_eq!(http.posts().len(), count, "not before the wait is over");
    http.rig.tick(ms(51));
    assert_eq!(http.lines(count), ["GET p0"]);
    assert_eq!(http.posts().pop().unwrap().1.headers.get("accept"), Some("text/event-stream"));
    // The cursor advances from one attempt to the next, also with an event without a message.
    let second = http.last().0;
    http.stream(second);
    let data = Data::Other { event: "ping".into(), data: Bytes::new() };
    http.item(second, Inbound::Event(SseEvent { id: Some("p1".into()), retry: None, data }));
    http.rig.handle_event(second, ExchangeEvent::Failed { sent: Sent::Maybe, why: Closed::Reset });
    http.rig.tick(ms(1100));
    assert_eq!(http.lines(count + 1), ["GET p1"]);
    let third = http.last().0;
    http.stream(third);
    http.numbered(third, "p2", None, Some(&result(&id)));
    assert!(http.rig.outcome(call).is_ok());
    assert_eq!(http.rig.diagnostics(), [DiagnosticKind::ControlEvent], "of the ping alone");
    // An open stream is aborted after a while.
    http.rig.tick(Duration::from_secs(5));
    assert_eq!(http.rig.aborted.last(), Some(&third));
    http.rig.tick(Duration::from_secs(60));
    assert_eq!(http.posts().len(), count + 2);
}

// covers: B-019, B-020, S1-08, S1-11, S1-09, B-028
#[test]
fn silent_server_gets_two_attempts_with_the_cursor() {
    let mut http = Http::legacy(|_| {});
    let (call, _, count) = primed(&mut http, 50);
    let at = attempts(&mut http, 30_000, |http, exchange, _| {
        http.stream(exchange);
        http.item(exchange, Inbound::End);
    });
    assert_eq!(at.len(), 2, "{at:?}");
    assert_eq!(http.lines(count), ["GET p0", "GET p0"]);
    let error = http.rig.outcome(call).clone().unwrap_err();
    assert!(matches!(&error, CallError::NoResponse { attempts: 2, cause: StreamEnd::Ended, .. }));
    assert_eq!(
        error.to_string(),
        "No valid JSON-RPC response found in SSE stream: the stream ended, after 2 attempts to resume it"
    );
}

// covers: B-019, B-022
#[test]
fn attempts_without_messages_back_off() {
    let mut http = Http::legacy(|_| {});
    let (call, ..) = primed(&mut http, 50);
    let at = attempts(&mut http, 30_000, |http, exchange, n| {
        http.stream(exchange);
        http.numbered(exchange, &format!("e{n}"), None, None);
        http.item(exchange, Inbound::End);
    });
    assert!((10..=13).contains(&at.len()), "{at:?}");
    let waits = http.waits();
    assert!(waits[1..].windows(2).all(|pair| pair[0] < pair[1] || pair[1] >= 5000), "{waits:?}");
    assert!(waits.iter().all(|wait| (50..=5500).contains(wait)), "{waits:?}");
    assert!(!http.rig.has_ended(call), "it may be at work");
}

// covers: S0-28, B-027, B-032
#[test]
fn end_of_a_call_ends_its_attempts() {
    for end in 0..3 {
        let mut http = Http::legacy(|_| {});
        let call = http.rig.call(tools::call("x").timeout(ms(700)));
        let exchange = http.last().0;
        http.stream(exchange);
        http.numbered(exchange, "p0", None, None);
        http.item(exchange, Inbound::End);
        let count = http.posts().len();
        match end {
            0 => http.rig.tick(ms(700)),
            1 => http.rig.client.cancel(http.rig.now, call, None),
            _ => http.rig.client.close(http.rig.now),
        }
        http.rig.drain();
        assert!(http.rig.has_ended(call));
        http.rig.tick(Duration::from_secs(60));
        assert!(!http.lines(count).contains(&"GET p0".to_string()));
    }
}

// covers: B-026, B-024, S3-14
#[test]
fn only_temporary_statuses_allow_further_attempts() {
    let ended = |answer: &dyn Fn(&mut Http, ExchangeId)| {
        let mut http = Http::legacy(|_| {});
        let (call, ..) = primed(&mut http, 50);
        let at = attempts(&mut http, 5000, |http, exchange, _| answer(http, exchange));
        (at.len(), http.rig.outcome(call).clone().unwrap_err())
    };
    for status in [408, 429, 502, 503, 504] {
        let (attempts, error) = ended(&|http, exchange| http.refuse(exchange, status));
        assert!(
            matches!(error, CallError::NoResponse { attempts: 2, cause: StreamEnd::Status { status: s, .. }, .. } if s == status)
        );
        assert_eq!(attempts, 2);
    }
    let (attempts, error) = ended(&|http, exchange| {
        http.rig.handle_event(exchange, ExchangeEvent::Failed { sent: Sent::No, why: Closed::Refused })
    });
    assert_eq!((attempts, error.source().map(ToString::to_string)), (2, Some(Closed::Refused.to_string())));
    for status in [400, 404, 405, 500] {
        let (attempts, error) = ended(&|http, exchange| http.refuse(exchange, status));
        assert!(error.to_string().ends_with(", after 1 attempt to resume it"), "{error}");
        assert!(
            matches!(error, CallError::NoResponse { attempts: 1, cause: StreamEnd::Status { status: s, .. }, .. } if s == status)
        );
        assert_eq!(attempts, 1);
    }
    let (attempts, error) = ended(&|http, exchange| {
        let headers = Headers::new().with("content-type", "application/json");
        http.item(exchange, Inbound::Response(ResponseHead { status: 200, headers }));
        http.item(exchange, Inbound::End);
    });
    assert_eq!(attempts, 1);
    assert!(matches!(error, CallError::NoResponse { cause: StreamEnd::ContentType(Some(_)), .. }), "{error:?}");
    // Messages in between are not lost.
    let mut http = Http::legacy(|_| {});
    let (call, id, _) = primed(&mut http, 50);
    attempts_until_third(&mut http, &id);
    assert!(http.rig.outcome(call).is_ok());
}

fn attempts_until_third(http: &mut Http, id: &Value) {
    let id = id.clone();
    attempts(http, 3000, |http, exchange, n| match n {
        1 => http.refuse(exchange, 503),
        2 => {
            http.stream(exchange);
            http.numbered(exchange, "p1", None, None);
            http.item(exchange, Inbound::End);
        }
        _ => {
            http.stream(exchange);
            http.event(exchange, &result(&id));
        }
    });
}

#[test]
fn retry_after_of_a_status_is_respected() {
    let mut http = Http::legacy(|_| {});
    let (_, _, count) = primed(&mut http, 50);
    http.rig.tick(ms(60));
    http.put_off(http.last().0, 7);
    assert!((7000..=7700).contains(http.waits().last().unwrap()), "{:?}", http.waits());
    http.rig.tick(ms(6999));
    assert_eq!(http.posts().len(), count + 1);
    http.rig.tick(ms(701));
    assert_eq!(http.posts().len(), count + 2);
}

// covers: B-019, B-026
#[test]
fn error_in_a_refused_attempt_is_not_the_response() {
    let refused = json!({"jsonrpc": "2.0", "error": {"code": -32000, "message": "no"}, "id": null});
    for (status, allowed) in [(503, 2), (405, 1), (404, 1)] {
        let mut http = Http::legacy(|_| {});
        let (call, ..) = primed(&mut http, 50);
        let at = attempts(&mut http, 5000, |http, exchange, _| http.answer(exchange, status, &refused));
        assert_eq!(at.len(), allowed, "{status}: {at:?}");
        let error = http.rig.outcome(call).clone().unwrap_err();
        assert!(
            matches!(error, CallError::NoResponse { cause: StreamEnd::Status { status: s, .. }, .. } if s == status),
            "{error:?}"
        );
    }
    // A response with the id of the request counts.
    let mut http = Http::legacy(|_| {});
    let (call, id, _) = primed(&mut http, 50);
    attempts(&mut http, 1000, |http, exchange, _| http.answer(exchange, 503, &error_of(&id)));
    assert!(matches!(http.rig.outcome(call), Err(CallError::Rpc(e)) if e.code == -32603));
}

// covers: S1-04
#[test]
fn no_attempt_after_a_revoked_cursor() {
    let mut http = Http::legacy(|_| {});
    let (call, _, count) = primed(&mut http, 50);
    let at = attempts(&mut http, 5000, |http, exchange, _| {
        http.stream(exchange);
        http.numbered(exchange, "", None, None);
        http.item(exchange, Inbound::End);
    });
    // A GET without an event id opens a listener, and does not resume a response.
    assert_eq!((at.len(), http.lines(count)), (1, vec!["GET p0".to_string()]));
    assert!(matches!(http.rig.outcome(call), Err(CallError::NoResponse { cause: StreamEnd::Ended, .. })));
}

// covers: S1-04, B-023
#[test]
fn streams_have_their_own_waits_and_cursors() {
    let mut http = Http::legacy(|_| {});
    primed(&mut http, 100);
    let call = http.rig.call(tools::call("y").timeout(None));
    let exchange = http.last().0;
    http.stream(exchange);
    http.numbered(exchange, "other", Some(3000), None);
    http.item(exchange, Inbound::End);
    let count = http.posts().len();
    http.rig.tick(ms(120));
    assert_eq!(http.lines(count), ["GET p0"]);
    http.rig.tick(ms(3300));
    assert!(http.lines(count).contains(&"GET other".to_string()));
    assert!(!http.rig.has_ended(call));
}

// covers: S1-10, S1-12, B-028, B-017, S0-19
#[test]
fn stream_without_an_event_id_is_not_resumed() {
    let mut http = Http::legacy(|_| {});
    let call = http.rig.echo();
    let exchange = http.last().0;
    http.stream(exchange);
    http.item(exchange, Inbound::End);
    let error = http.rig.outcome(call).clone().unwrap_err();
    assert_eq!(error.to_string(), "No valid JSON-RPC response found in SSE stream");
    let call = http.rig.echo();
    let (exchange, id) = http.last();
    http.stream(exchange);
    http.numbered(exchange, "e", None, Some(&error_of(&id)));
    http.item(exchange, Inbound::End);
    assert!(matches!(http.rig.outcome(call), Err(CallError::Rpc(_))));
    let count = http.posts().len();
    http.rig.tick(Duration::from_secs(20));
    assert_eq!(http.posts().len(), count, "nothing is asked for any more");
}

fn error_of(id: &Value) -> Value {
    error(id, -32603)
}

// covers: S0-60, S1-08
#[test]
fn resumption_can_be_strict_or_off() {
    let asked = |resume: Resume| {
        let mut http = Http::legacy(|config| config.resume = resume);
        let (call, ..) = primed(&mut http, 50);
        let at = attempts(&mut http, 2000, |http, exchange, n| {
            http.stream(exchange);
            http.numbered(exchange, &format!("e{n}"), None, None);
            http.item(exchange, Inbound::End);
        });
        assert!(http.rig.has_ended(call));
        at.len()
    };
    assert_eq!(asked(Resume::Strict(2)), 2);
    assert_eq!(asked(Resume::Never), 0);
}

// covers: SHTTP-C-018
#[test]
fn long_running_tool_is_polled_until_its_result() {
    let mut http = Http::legacy(|config| config.listener_idle = None);
    let (call, id, _) = primed(&mut http, 5000);
    let (began, ready) = (http.rig.now, ms(600_000));
    let at = attempts(&mut http, 640_000, |http, exchange, n| {
        http.stream(exchange);
        if http.rig.now.since(began) >= ready {
            http.numbered(exchange, "last", None, Some(&result(&id)));
        } else {
            http.numbered(exchange, &format!("e{n}"), None, None);
        }
        http.item(exchange, Inbound::End);
    });
    assert!(http.rig.outcome(call).is_ok());
    let seen = at.iter().find(|at| **at >= 600_000).unwrap();
    assert!(*seen <= 606_000, "{at:?}");
    assert!(http.waits().iter().all(|wait| (5000..=5500).contains(wait)));
}

// covers: HTTP-C-027, HTTP-B-026, B-152
#[test]
fn modern_stream_loss_repeats_only_repeatable_calls() {
    let broken = |repeat: Repeat, repeatable: bool| {
        let mut http = Http::with(|config| config.repeat = repeat);
        let (exchange, id) = http.last();
        http.answer(exchange, 200, &discover_body(&id, &["2026-07-28"]));
        let call = tools::call("x").timeout(None);
        let call = http.rig.call(if repeatable { call.repeatable() } else { call });
        let (exchange, first) = http.last();
        http.stream(exchange);
        http.numbered(exchange, "ignored", Some(10), None);
        http.rig.handle_event(exchange, ExchangeEvent::Failed { sent: Sent::Maybe, why: Closed::Reset });
        let (again, second) = http.last();
        let repeated = again != exchange;
        if repeated {
            assert_ne!(first, second, "under a new id");
            assert_eq!(http.posts().pop().unwrap().1.headers.get("last-event-id"), None);
            http.stream(again);
            http.item(again, Inbound::End);
            assert_eq!(http.last().0, again, "once");
        }
        assert!(http.rig.outcome(call).is_err());
        http.assert_at_rest();
        repeated
    };
    assert!(!broken(Repeat::Safe, false));
    assert!(broken(Repeat::Safe, true));
    assert!(broken(Repeat::Always, false));
    assert!(!broken(Repeat::Never, true));
}

#[test]
fn unsent_repetition_leaves_the_call_maybe_sent() {
    let mut http = Http::ready();
    let call = http.rig.call(tools::call("x").repeatable());
    let first = http.last().0;
    http.rig.handle_event(first, ExchangeEvent::Failed { sent: Sent::Maybe, why: Closed::Reset });
    let second = http.last().0;
    assert_ne!(first, second);
    http.rig.handle_event(second, ExchangeEvent::Failed { sent: Sent::No, why: Closed::Refused });
    assert_eq!(http.rig.outcome(call), &Err(CallError::Closed { sent: Sent::Maybe, why: Closed::Refused }));
}

// covers: S0-55, S4-04, B-008, R-09
#[test]
fn event_without_a_message_is_skipped_or_ends_the_stream() {
    let bad = || {
        Inbound::Event(SseEvent {
            id: Some("b".into()),
            retry: None,
            data: Data::Invalid(parse(Bytes::from_static(b"{"), 128).unwrap_err()),
        })
    };
    let mut http = Http::legacy(|_| {});
    let call = http.rig.echo();
    let (exchange, id) = http.last();
    http.stream(exchange);
    http.item(exchange, bad());
    assert_eq!(http.rig.diagnostics(), [DiagnosticKind::BadMessage]);
    http.event(exchange, &result(&id));
    assert!(http.rig.outcome(call).is_ok());
    let mut http = Http::legacy(|config| config.compat.sse_decode = SseDecode::Reject);
    let listener = http.last().0;
    http.item(listener, bad());
    assert!(http.rig.events.iter().any(|event| matches!(event, Event::ListenerLost { .. })));
    assert_eq!(http.rig.aborted, [listener]);
    let call = http.rig.echo();
    let (exchange, _) = http.last();
    http.stream(exchange);
    http.item(exchange, bad());
    assert!(matches!(http.rig.outcome(call), Err(CallError::Decode(_))));
    assert_eq!(http.rig.aborted, [listener, exchange]);
    let count = http.posts().len();
    http.rig.tick(Duration::from_secs(20));
    assert_eq!(http.posts().len(), count);
}

// covers: S4-02, S4-03, S4-10, S4-13, B-007
#[test]
fn events_of_other_types_are_skipped() {
    let mut http = Http::legacy(|_| {});
    let call = http.rig.echo();
    let (exchange, id) = http.last();
    http.stream(exchange);
    let data = Data::Other { event: "endpoint".into(), data: Bytes::from_static(b"/x") };
    http.item(exchange, Inbound::Event(SseEvent { id: None, retry: None, data }));
    http.event(exchange, &result(&id));
    assert!(http.rig.outcome(call).is_ok());
    assert_eq!(http.rig.diagnostics(), [DiagnosticKind::ControlEvent]);
}

// covers: S4-03, S4-11, S2-23, R-17
#[test]
fn listed_events_reach_the_application_with_their_stream_and_id() {
    let mut http = Http::legacy(|config| config.control = ["content", "end"].map(String::from).into());
    let listener = http.last().0;
    let call = http.rig.echo();
    let (exchange, id) = http.last();
    http.stream(exchange);
    let event = |event: &str, id: Option<&str>, data: &'static str| {
        let data = Data::Other { event: event.into(), data: Bytes::from_static(data.as_bytes()) };
        Inbound::Event(SseEvent { id: id.map(Into::into), retry: None, data })
    };
    http.item(exchange, event("content", Some("7"), "{\"part\":1}"));
    http.item(listener, event("end", None, ""));
    http.item(exchange, event("other", Some("8"), "x"));
    http.event(exchange, &result(&id));
    assert!(http.rig.outcome(call).is_ok(), "the stream goes on");
    let control = |stream, event: &str, id: Option<&str>, data: &'static str| {
        let (event, id) = (event.into(), id.map(Into::into));
        let data = Bytes::from_static(data.as_bytes());
        Event::Control(ControlEvent { stream: Some(stream), event, id, data }.into())
    };
    let seen: Vec<&Event> = http.rig.events.iter().filter(|event| matches!(event, Event::Control(_))).collect();
    let expected = [
        control(StreamOf::Call(call), "content", Some("7"), "{\"part\":1}"),
        control(StreamOf::Listener, "end", None, ""),
    ];
    assert_eq!(seen, expected.iter().collect::<Vec<_>>());
    assert_eq!(http.rig.diagnostics(), [DiagnosticKind::ControlEvent], "of the one that is not listed");
}

// covers: S4-04, S4-09, S4-13
#[test]
fn diagnostics_of_a_stream_name_its_url_and_last_event() {
    let mut http = Http::legacy(|_| {});
    let listener = http.last().0;
    let bad = |id: Option<&str>| {
        let data = Data::Invalid(parse(Bytes::from_static(b"{"), 128).unwrap_err());
        Inbound::Event(SseEvent { id: id.map(Into::into), retry: None, data })
    };
    http.item(listener, bad(None));
    http.item(listener, bad(Some("4")));
    http.item(listener, bad(None));
    let call = http.rig.echo();
    let (exchange, _) = http.last();
    http.stream(exchange);
    http.item(exchange, bad(None));
    assert!(!http.rig.has_ended(call));
    let place = |event: &Event| match event {
        Event::Diagnostic(diagnostic) => {
            let place = diagnostic.stream.as_ref().expect("a stream");
            assert_eq!(&*place.url, "http://127.0.0.1:8000/mcp?x=1");
            Some(place.last_event.as_deref().map(ToString::to_string))
        }
        _ => None,
    };
    let places: Vec<Option<String>> = http.rig.events.iter().filter_map(place).collect();
    assert_eq!(places, [None, Some("4".into()), Some("4".into()), None]);
    let Some(Event::Diagnostic(diagnostic)) = http.rig.events.get(1) else { panic!() };
    assert!(
        diagnostic.to_string().ends_with("; on the stream of http://127.0.0.1:8000/mcp?x=1 after the event 4"),
        "{diagnostic}"
    );
    // Outside of a stream there is none.
    http.rig.clear();
    http.rig.handle_event(ExchangeId(999), ExchangeEvent::Unsent(0));
    assert!(matches!(&http.rig.events[..], [Event::Diagnostic(diagnostic)] if diagnostic.stream.is_none()));
}

// covers: S3-05
#[test]
fn batch_in_an_event_is_read_element_by_element() {
    let mut http = Http::legacy(|config| config.versions = Versions::new([ProtocolVersion::V2025_11_25]));
    let call = http.rig.echo();
    let (exchange, id) = http.last();
    http.stream(exchange);
    let note = json!({"jsonrpc": "2.0", "method": "acme/news"});
    let text = Bytes::from(json!([note, result(&id)]).to_string());
    let data = Data::from(crate::rpc::parse_batch_or_message(text, &Default::default()));
    http.item(exchange, Inbound::Event(SseEvent { id: None, retry: None, data }));
    assert!(http.rig.outcome(call).is_ok());
    assert!(http.rig.events.iter().any(|event| matches!(event, Event::Notification { .. })));
    // Only 2025-03-26 has them, but they are always read.
    assert_eq!(http.rig.diagnostics(), [DiagnosticKind::UnexpectedBatch]);
}
