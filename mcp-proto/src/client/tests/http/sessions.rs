//! Negotiation with an older server over HTTP, its sessions, and their ends.

use super::*;
use crate::InputAnswer;

/// Returns the content of a POST, except for the id of the request.
fn wire(post: &(ExchangeId, RequestHead, Value, bool)) -> (String, String, Value) {
    let (_, head, body, _) = post;
    let mut body = body.clone();
    body.as_object_mut().map(|body| body.remove("id"));
    (head.method.to_string(), format!("{:?}", head.headers.iter().collect::<Vec<_>>()), body)
}

// covers: VER-C-031, B-197, B-203, S3-48, S0-02
#[test]
fn refused_probe_leads_to_a_plain_initialize() {
    let direct = Http::with(|config| config.policy = Policy::Legacy);
    let direct = wire(direct.posts().last().unwrap());
    assert!(!direct.1.contains("Mcp-"), "{}", direct.1);
    let html = |http: &mut Http, exchange, status| {
        http.head(exchange, status);
        http.item(exchange, Inbound::Body(Bytes::from_static(b"<html>")));
        http.item(exchange, Inbound::End);
    };
    for status in [400, 404, 405, 406, 415, 422] {
        let mut http = Http::new();
        let (exchange, _) = http.last();
        html(&mut http, exchange, status);
        assert_eq!(http.posts().len(), 2, "{status}");
        assert_eq!(wire(http.posts().last().unwrap()), direct);
    }
    // Any JSON-RPC error, with any status, with or without the id of the request.
    for (status, code, named) in [(200, -32601, true), (400, -32000, false), (400, -32600, true), (404, -32601, true)] {
        let mut http = Http::new();
        let (exchange, id) = http.last();
        let mut body = json!({"jsonrpc": "2.0", "error": {"code": code, "message": "no"}});
        if named {
            body["id"] = id;
        }
        http.answer(exchange, status, &body);
        assert_eq!(wire(http.posts().last().unwrap()), direct, "{status} {code}");
    }
    // Success without a response, as from a server that ignores the posted message.
    for status in [200, 202] {
        let mut http = Http::new();
        let (exchange, _) = http.last();
        html(&mut http, exchange, status);
        assert_eq!(wire(http.posts().last().unwrap()), direct, "{status}");
    }
}

// covers: B-200, VER-C-030
#[test]
fn inconclusive_responses_end_the_negotiation() {
    for status in [301, 307, 401, 403, 408, 429, 500, 502, 503, 504] {
        let mut http = Http::new();
        let (exchange, _) = http.last();
        http.refuse(exchange, status);
        assert_eq!(http.posts().len(), 1, "{status}");
        let found = matches!(
            http.rig.termination(),
            Some(Termination::Negotiation(NegotiationError { stage: Stage::Discover, cause: NegotiationCause::Http(e), .. }))
                if e.status == status
        );
        assert!(found, "{status}: {:?}", http.rig.termination());
    }
    // A JSON-RPC error in the body does not change that, for the probe and for `initialize`.
    for status in [307, 408, 429, 500, 503] {
        for verdict in [None, Some(Verdict::new(ProtocolVersion::V2025_11_25))] {
            let mut http = Http::with(|config| config.verdict = verdict);
            let (exchange, id) = http.last();
            http.answer(exchange, status, &error(&id, -32603));
            assert_eq!(http.posts().len(), 1, "{status}");
            let found = matches!(
                http.rig.termination(),
                Some(Termination::Negotiation(NegotiationError { cause: NegotiationCause::Http(e), .. }))
                    if e.status == status && e.error.as_ref().is_some_and(|error| error.code == -32603)
            );
            assert!(found, "{status}: {:?}", http.rig.termination());
        }
    }
    let mut http = Http::new();
    let (exchange, _) = http.last();
    http.rig.handle_event(exchange, ExchangeEvent::Failed { sent: Sent::Maybe, why: Closed::Reset });
    assert_eq!(http.posts().len(), 1);
    assert!(http.rig.termination().is_some());
}

// covers: SHTTP-C-007, SHTTP-C-008, SHTTP-C-009, SHTTP-C-010, SHTTP-C-032, SHTTP-C-049,
// SHTTP-C-050, SHTTP-C-057, SHTTP-C-058, VER-B-032
// covers: S0-37, S0-39, S0-40, S3-05, S3-18, B-031, B-101, B-102
#[test]
fn session_and_revision_are_sent_with_all_later_requests() {
    let mut http = Http::with(|config| {
        config.capabilities.roots = Some(Default::default());
        config.headers = Headers::new().with("X-Tenant", "t").with("Accept", "text/html");
    });
    // A session in the response to the probe is ignored.
    let (probe, _) = http.last();
    http.item(
        probe,
        Inbound::Response(ResponseHead { status: 400, headers: Headers::new().with("mcp-session-id", "no") }),
    );
    http.item(probe, Inbound::End);
    let initialize = http.posts().pop().unwrap().1;
    assert_eq!(
        (initialize.headers.get("mcp-session-id"), initialize.headers.get("mcp-protocol-version")),
        (None, None)
    );
    http.accept("s1");
    let note = http.last().0;
    http.refuse(note, 202);
    let listener = http.last().0;
    http.stream(listener);
    http.rig.call(tools::call("x"));
    let (call, _) = http.last();
    // Another session in the response to a call is ignored.
    let headers = Headers::new().with("content-type", "text/event-stream").with("mcp-session-id", "no");
    http.item(call, Inbound::Response(ResponseHead { status: 200, headers }));
    http.event(call, &json!({"jsonrpc": "2.0", "id": 7, "method": "roots/list"}));
    http.rig.reply(http.rig.questions()[0].0, InputAnswer::roots(["file:///"]));
    http.numbered(call, "e1", None, None);
    http.item(call, Inbound::End);
    http.rig.tick(ms(1100));
    http.rig.client.cancel(http.rig.now, CallId(1), None);
    http.rig.client.close(http.rig.now);
    http.rig.drain();
    http.refuse(http.last().0, 202);
    let methods = http.lines(2);
    assert_eq!(
        methods,
        [
            "POST notifications/initialized",
            "GET -",
            "POST tools/call",
            "POST response",
            "GET e1",
            "POST notifications/cancelled",
            "DELETE -"
        ]
    );
    for (_, head, body, _) in &http.posts()[2..] {
        assert_eq!(head.headers.get("mcp-session-id"), Some("s1"), "{head:?}");
        assert!(!format!("{head:?}").contains("s1"), "the session is a secret");
        assert!(body.is_object() == (head.method == "POST") && !body.is_array());
        assert_eq!(head.headers.get("mcp-protocol-version"), Some("2025-11-25"));
        assert_eq!(head.headers.get("x-tenant"), Some("t"));
        let accept = if head.method == "GET" { "text/event-stream" } else { "application/json, text/event-stream" };
        let accepts: Vec<_> = head.headers.all("accept").collect();
        assert_eq!(accepts, if head.method == "DELETE" { vec![] } else { vec![accept] });
        assert_eq!(head.headers.get("mcp-method"), None);
    }
}

#[test]
fn session_begins_with_a_response_by_text_id() {
    let mut http = Http::with(|config| config.policy = Policy::Legacy);
    let (exchange, id) = http.last();
    let headers = Headers::new().with("content-type", "application/json").with("mcp-session-id", "s1");
    http.item(exchange, Inbound::Response(ResponseHead { status: 200, headers }));
    let body = json!({"jsonrpc": "2.0", "id": id.to_string(), "result": initialized("2025-11-25")});
    http.item(exchange, Inbound::Message(parse(body.to_string().into(), 128).unwrap()));
    http.item(exchange, Inbound::End);
    assert_eq!(http.posts().pop().unwrap().1.headers.get("mcp-session-id"), Some("s1"));
}

// covers: S3-17
#[test]
fn invalid_session_id_is_not_used() {
    for bad in ["a b", "ü", "\u{7f}", "tab\t"] {
        let mut http = Http::with(|config| config.policy = Policy::Legacy);
        http.accept(bad);
        assert_eq!(http.posts().pop().unwrap().1.headers.get("mcp-session-id"), None, "{bad:?}");
        assert!(http.rig.diagnostics().contains(&DiagnosticKind::BadSession));
    }
}

// covers: SHTTP-C-054, S3-21, B-096, B-098, B-099, B-100, B-114, S3-20
#[test]
fn ended_session_is_replaced_once_and_calls_repeated() {
    let mut http = Http::legacy(|_| {});
    let refused = http.rig.echo();
    let first = http.last().0;
    let too = http.rig.echo();
    let second = http.last().0;
    let running = http.rig.echo();
    let reads = http.rig.call(tools::list());
    let count = http.posts().len();
    http.refuse(first, 404);
    // Unanswered requests end with the session, unless they may be repeated. Closed streams keep no
    // call waiting.
    assert_eq!(http.rig.outcome(running), &Err(CallError::SessionEnded));
    assert_eq!(http.rig.outcome(too), &Err(CallError::SessionEnded));
    assert_eq!(http.lines(count), ["POST initialize"]);
    http.refuse(second, 404);
    let late = http.rig.echo();
    assert_eq!(http.lines(count), ["POST initialize"], "one for all; a new call waits for it");
    assert_eq!(http.posts().pop().unwrap().1.headers.get("mcp-session-id"), None);
    http.accept("s2");
    let note = http.last().0;
    http.refuse(note, 202);
    let listener = http.last().0;
    http.stream(listener);
    let expected = [
        "POST initialize",
        "POST notifications/initialized",
        "GET -",
        "POST tools/call",
        "POST tools/list",
        "POST tools/call",
    ];
    assert_eq!(http.lines(count), expected);
    for (_, head, ..) in &http.posts()[count + 1..] {
        assert_eq!(head.headers.get("mcp-session-id"), Some("s2"));
    }
    // A second 404 for the same call ends it.
    let again = http.posts()[count + 3].0;
    http.refuse(again, 404);
    assert!(matches!(http.rig.outcome(refused), Err(CallError::Http(e)) if e.status == 404));
    assert_eq!(http.rig.outcome(late), &Err(CallError::SessionEnded));
    assert_eq!(http.rig.outcome(reads), &Err(CallError::SessionEnded), "it was made twice");
    assert_eq!(http.rig.client.state(), State::Initializing);
}

// covers: B-097
#[test]
fn repeatedly_ended_sessions_end_the_client() {
    let mut http = Http::legacy(|_| {});
    for n in 1..=3 {
        let call = http.rig.echo();
        http.refuse(http.last().0, 404);
        if n == 3 {
            assert!(http.rig.has_ended(call));
            break;
        }
        http.accept("again");
        let note = http.last().0;
        http.refuse(note, 202);
        let listener = http.last().0;
        http.stream(listener);
        // The call is repeated, and fails.
        http.rig.client.cancel(http.rig.now, call, None);
        http.rig.drain();
    }
    assert!(matches!(
        http.rig.termination(),
        Some(Termination::Negotiation(NegotiationError { stage: Stage::Initialize, cause: NegotiationCause::Http(e), .. })) if e.status == 404
    ));
    // An answered call resets the count.
    let mut http = Http::legacy(|_| {});
    for _ in 0..8 {
        let call = http.rig.echo();
        http.refuse(http.last().0, 404);
        http.accept("again");
        let note = http.last().0;
        http.refuse(note, 202);
        let listener = http.last().0;
        http.stream(listener);
        let (exchange, id) = http.last();
        http.answer(exchange, 200, &result(&id));
        assert!(http.rig.outcome(call).is_ok());
    }
}

// covers: B-097, SHTTP-C-054
#[test]
fn long_sessions_may_end_without_limit() {
    let mut http = Http::legacy(|config| config.timeout = None);
    for _ in 0..8 {
        http.rig.tick(Duration::from_secs(30));
        let call = http.rig.echo();
        http.refuse(http.last().0, 404);
        http.accept("again");
        let note = http.last().0;
        http.refuse(note, 202);
        let listener = http.last().0;
        http.stream(listener);
        http.rig.client.cancel(http.rig.now, call, None);
        http.rig.drain();
        assert_eq!(http.rig.client.state(), State::Ready);
    }
}

// covers: B-097
#[test]
fn short_sessions_after_a_long_one_end_the_client() {
    let mut http = Http::legacy(|config| config.timeout = None);
    http.rig.tick(Duration::from_secs(31));
    let mut ended = 0;
    while http.rig.termination().is_none() && ended < 20 {
        let call = http.rig.echo();
        http.refuse(http.last().0, 404);
        ended += 1;
        if http.rig.client.state() == State::Initializing {
            http.accept("again");
            http.refuse(http.last().0, 202);
            let listener = http.last().0;
            http.stream(listener);
            http.rig.client.cancel(http.rig.now, call, None);
            http.rig.drain();
        }
    }
    assert_eq!(ended, 3, "the one that lasted, and two that did not");
    assert!(matches!(http.rig.termination(), Some(Termination::Negotiation(_))));
}

/// A server without a route for notifications: it answers 404 to each of them.
// covers: B-085, B-100
#[test]
fn second_404_to_initialized_is_no_end_of_the_session() {
    let mut http = Http::with(|config| config.policy = Policy::Legacy);
    http.accept("s1");
    let count = http.posts().len();
    http.refuse(http.last().0, 404);
    assert_eq!(http.lines(count), ["POST initialize"], "it may be the end of the session");
    http.accept("s2");
    http.refuse(http.last().0, 404);
    assert_eq!(http.rig.diagnostics().pop(), Some(DiagnosticKind::DroppedNotification));
    let listener = http.last().0;
    http.stream(listener);
    assert_eq!(http.rig.client.state(), State::Ready);
    // Other notifications do not end it either.
    http.rig.client.notify(http.rig.now, "custom/note", Object::new()).unwrap();
    http.rig.drain();
    http.refuse(http.last().0, 404);
    let call = http.rig.echo();
    let (exchange, id) = http.last();
    http.answer(exchange, 200, &result(&id));
    assert!(http.rig.outcome(call).is_ok());
    assert_eq!(http.posts().iter().filter(|post| post.2["method"] == "initialize").count(), 2);
    // A request does, with one handshake: the server is known now.
    let call = http.rig.echo();
    http.refuse(http.last().0, 404);
    http.accept("s3");
    http.refuse(http.last().0, 404);
    http.stream(http.last().0);
    let (exchange, id) = http.last();
    http.answer(exchange, 200, &result(&id));
    assert!(http.rig.outcome(call).is_ok());
    assert_eq!(http.posts().iter().filter(|post| post.2["method"] == "initialize").count(), 3);
    assert_eq!(http.rig.client.state(), State::Ready);
}

// covers: B-100
#[test]
fn accepted_initialized_makes_its_next_404_an_end_again() {
    let mut http = Http::with(|config| config.policy = Policy::Legacy);
    http.accept("s1");
    http.refuse(http.last().0, 404);
    http.accept("s2");
    http.refuse(http.last().0, 202);
    http.stream(http.last().0);
    let call = http.rig.echo();
    let (exchange, id) = http.last();
    http.answer(exchange, 200, &result(&id));
    assert!(http.rig.outcome(call).is_ok());
    // The session has ended meanwhile.
    http.rig.client.notify(http.rig.now, "custom/note", Object::new()).unwrap();
    http.rig.drain();
    let count = http.posts().len();
    http.refuse(http.last().0, 404);
    assert_eq!(http.lines(count), ["POST initialize"]);
    http.accept("s3");
    let count = http.posts().len();
    http.refuse(http.last().0, 404);
    assert_eq!(http.lines(count), ["POST initialize"]);
}

// covers: SHTTP-C-054, S3-22
#[test]
fn response_404_with_a_result_ends_the_session() {
    let mut http = Http::legacy(|_| {});
    let call = http.rig.echo();
    let (exchange, id) = http.last();
    let count = http.posts().len();
    http.answer(exchange, 404, &result(&id));
    assert!(!http.rig.has_ended(call));
    assert_eq!(http.rig.diagnostics(), [DiagnosticKind::UnexpectedResponse]);
    assert_eq!(http.lines(count), ["POST initialize"]);
    http.accept("s2");
    http.refuse(http.last().0, 202);
    http.refuse(http.last().0, 405);
    let (exchange, id) = http.last();
    http.answer(exchange, 200, &result(&id));
    assert!(http.rig.outcome(call).is_ok());
    // Without a session, the result counts.
    let mut http = Http::with(|config| config.policy = Policy::Legacy);
    let (exchange, id) = http.last();
    http.answer(exchange, 200, &json!({"jsonrpc": "2.0", "id": id, "result": initialized("2025-11-25")}));
    http.refuse(http.last().0, 202);
    http.refuse(http.last().0, 405);
    let call = http.rig.echo();
    let (exchange, id) = http.last();
    http.answer(exchange, 404, &result(&id));
    assert!(http.rig.outcome(call).is_ok());
    assert_eq!(http.rig.client.state(), State::Ready);
}

#[test]
fn failed_renewal_ends_calls_until_the_next_call() {
    let mut http = Http::legacy(|_| {});
    let call = http.rig.echo();
    http.refuse(http.last().0, 404);
    let waiting = http.rig.echo();
    http.refuse(http.last().0, 503);
    for call in [call, waiting] {
        let error = http.rig.outcome(call).clone().unwrap_err();
        assert!(
            matches!(&error, CallError::Negotiation(e) if matches!(&e.cause, NegotiationCause::Http(e) if e.status == 503))
        );
        assert_eq!(error.sent(), Sent::No);
    }
    assert_eq!((http.rig.client.state(), http.rig.client.poll_timeout()), (State::Lapsed, None));
    let later = http.rig.echo();
    let count = http.posts().len();
    assert_eq!(http.lines(count - 1), ["POST initialize"]);
    http.accept("s2");
    let note = http.last().0;
    http.refuse(note, 202);
    http.refuse(http.last().0, 405);
    let (exchange, id) = http.last();
    http.answer(exchange, 200, &result(&id));
    assert!(http.rig.outcome(later).is_ok());
}

// covers: B-088, B-098
#[test]
fn unanswered_new_session_leaves_no_state() {
    let mut http = Http::legacy(|_| {});
    let call = http.rig.echo();
    http.refuse(http.last().0, 404);
    let silent = http.last().0;
    http.rig.tick(Duration::from_secs(30));
    assert!(http.rig.has_ended(call));
    assert_eq!(http.rig.client.state(), State::Lapsed);
    assert_eq!(http.rig.aborted.last(), Some(&silent));
    http.assert_at_rest();
}

// covers: B-100, B-151, B-209
#[test]
fn other_statuses_do_not_end_a_session() {
    for (status, code) in [(400, None), (410, None), (500, None), (503, None), (404, Some(-32601))] {
        let mut http = Http::legacy(|_| {});
        let call = http.rig.echo();
        let (exchange, id) = http.last();
        match code {
            Some(code) => http.answer(exchange, status, &error(&id, code)),
            None => http.refuse(exchange, status),
        }
        assert!(http.rig.outcome(call).is_err());
        assert_eq!(http.rig.client.state(), State::Ready);
    }
    // Without a session, for 2026-07-28 and for a server without sessions.
    let mut http = Http::ready();
    let call = http.rig.echo();
    http.refuse(http.last().0, 404);
    assert!(matches!(http.rig.outcome(call), Err(CallError::Http(_))));
    assert_eq!(http.rig.client.state(), State::Ready);
}

// covers: SHTTP-C-055, S0-38, S0-41, S3-22, B-032, B-105, B-106, B-107
#[test]
fn close_sends_one_delete_with_a_timeout() {
    let closed = |end: &dyn Fn(&mut Http, ExchangeId)| {
        let mut http = Http::legacy(|_| {});
        let call = http.rig.echo();
        http.rig.client.close(http.rig.now);
        http.rig.drain();
        assert!(matches!(http.rig.outcome(call), Err(CallError::Closed { .. })));
        let (delete, head, ..) = http.posts().pop().unwrap();
        assert_eq!(head.method, "DELETE");
        assert_eq!(http.rig.termination(), None, "it is waited for");
        let count = http.posts().len();
        end(&mut http, delete);
        assert_eq!(http.rig.termination(), Some(&Termination::Requested));
        http.rig.client.close(http.rig.now);
        http.rig.tick(Duration::from_secs(3600));
        assert_eq!(http.posts().len(), count, "nothing is started any more");
        http.assert_at_rest();
    };
    for status in [200, 204, 404, 405, 500] {
        closed(&|http, delete| http.refuse(delete, status));
    }
    closed(&|http, delete| {
        http.rig.handle_event(delete, ExchangeEvent::Failed { sent: Sent::No, why: Closed::Refused })
    });
    closed(&|http, delete| {
        http.rig.tick(Duration::from_secs(2));
        assert_eq!(http.rig.aborted.last(), Some(&delete));
    });
    // Without a session there is no DELETE.
    let mut http = Http::ready();
    let count = http.posts().len();
    http.rig.client.close(http.rig.now);
    http.rig.drain();
    assert_eq!(http.posts().len(), count);
    assert!(http.rig.termination().is_some());
}

// covers: B-222, SHTTP-C-029, S0-30, R-06
#[test]
fn cancellation_is_sent_once_in_the_form_of_the_era() {
    let cancelled = |signal: CancelSignal| {
        let mut http = Http::legacy(|config| config.compat.cancel_signal = signal);
        let count = http.posts().len();
        let call = http.rig.echo();
        let (exchange, id) = http.last();
        http.rig.client.cancel(http.rig.now, call, Some("no more"));
        http.rig.drain();
        assert_eq!(http.rig.aborted.last(), Some(&exchange));
        http.rig.client.cancel(http.rig.now, call, None);
        http.rig.drain();
        (http.lines(count + 1), http.posts().pop().unwrap().2, id)
    };
    let (lines, body, id) = cancelled(CancelSignal::Server);
    assert_eq!(lines, ["POST notifications/cancelled"]);
    assert_eq!(body["params"], json!({"requestId": id, "reason": "no more"}));
    assert_eq!(cancelled(CancelSignal::LocalOnly).0, [] as [&str; 0]);
}

// covers: B-150, S0-22
#[test]
fn any_success_status_accepts_a_notification() {
    for (status, taken) in [(200, true), (202, true), (204, true), (299, true), (400, false), (500, false)] {
        let mut http = Http::initialized(|_| {});
        let note = http.last().0;
        http.head(note, status);
        http.item(note, Inbound::Body(Bytes::from_static(b"<html>fine")));
        http.item(note, Inbound::End);
        let refused = http.rig.diagnostics().contains(&DiagnosticKind::DroppedNotification);
        assert_eq!(refused, !taken, "{status}");
        assert_eq!(http.lines(2), ["GET -"]);
    }
}

// covers: B-100
#[test]
fn call_that_may_have_run_is_never_reported_as_unsent() {
    // It was sent when the session ended, may be repeated, and cannot be sent again.
    let mut http = Http::legacy(|_| {});
    let out = http.rig.call(tools::list());
    let refused = http.rig.echo();
    http.refuse(http.last().0, 404);
    http.refuse(http.last().0, 503);
    assert_eq!(http.rig.outcome(out), &Err(CallError::SessionEnded));
    assert_eq!(http.rig.outcome(refused).clone().unwrap_err().sent(), Sent::No);
    // It times out while it waits for the new session.
    let mut http = Http::legacy(|_| {});
    let out = http.rig.call(tools::list().timeout(ms(500)));
    let refused = http.rig.call(tools::call("echo").timeout(ms(500)));
    http.refuse(http.last().0, 404);
    http.rig.tick(ms(500));
    assert_eq!(http.rig.outcome(out).clone().unwrap_err().sent(), Sent::Maybe);
    assert_eq!(http.rig.outcome(refused).clone().unwrap_err().sent(), Sent::No);
    // It was sent when the last permitted session ends.
    let mut http = Http::legacy(|_| {});
    let mut out = None;
    for _ in 0..3 {
        out = Some(http.rig.echo());
        let refused = http.rig.echo();
        http.refuse(http.last().0, 404);
        if http.rig.termination().is_none() {
            http.accept("again");
            http.refuse(http.last().0, 202);
            let listener = http.last().0;
            http.stream(listener);
            http.rig.client.cancel(http.rig.now, refused, None);
            http.rig.drain();
        }
    }
    assert!(http.rig.termination().is_some());
    assert_eq!(http.rig.outcome(out.unwrap()), &Err(CallError::SessionEnded));
}

// covers: B-100, B-154
#[test]
fn repeated_request_that_ends_unanswered_may_have_run() {
    // The second attempt finds an ended session, and a new one cannot be opened.
    let mut http = Http::legacy(|_| {});
    let call = http.rig.call(tools::list());
    let (exchange, _) = http.last();
    http.rig.client.handle_event(http.rig.now, exchange, ExchangeEvent::Repeated);
    http.refuse(exchange, 404);
    http.refuse(http.last().0, 503);
    assert_eq!(http.rig.outcome(call), &Err(CallError::SessionEnded));
    // The same without the first attempt.
    let mut http = Http::legacy(|_| {});
    let call = http.rig.call(tools::list());
    http.refuse(http.last().0, 404);
    http.refuse(http.last().0, 503);
    assert_eq!(http.rig.outcome(call).clone().unwrap_err().sent(), Sent::No);
}

// covers: B-096
#[test]
fn unanswered_handshake_ends_before_the_next_begins() {
    let mut http = Http::legacy(|_| {});
    http.rig.call(tools::call("echo").timeout(None));
    http.refuse(http.last().0, 404);
    let first = http.last().0;
    http.rig.tick(Duration::from_secs(30));
    assert_eq!(http.rig.client.state(), State::Lapsed);
    assert!(http.rig.aborted.contains(&first));
    http.rig.echo();
    assert_ne!(http.last().0, first);
    http.accept("s2");
    http.refuse(http.last().0, 202);
    assert_eq!(http.rig.client.state(), State::Ready);
}
