//! The listener of older servers: its life, and the messages on it.

use super::*;
use crate::InputAnswer;
use crate::client::{ListenerEnd, ListenerStart, ListenerTime, SseDecode};
use crate::error::StreamEnd;

fn lost(http: &Http) -> Vec<(StreamEnd, Option<u64>)> {
    let lost = |event: &Event| match event {
        Event::ListenerLost { cause, again, ends_session: false } => {
            Some((cause.clone(), again.map(|wait| wait.as_secs())))
        }
        _ => None,
    };
    http.rig.events.iter().filter_map(lost).collect()
}

fn changes(http: &Http) -> usize {
    http.rig.events.iter().filter(|event| **event == Event::Changed(Change::Tools)).count()
}

fn list_changed() -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
}

/// Returns the latest listener and the number of exchanges.
fn listener(http: &Http) -> (ExchangeId, usize) {
    let posts = http.posts();
    (posts.iter().rev().find(|(_, head, ..)| head.method == "GET").unwrap().0, posts.len())
}

// covers: S0-02, S0-50, S0-51, S0-36, SHTTP-C-031, B-035
#[test]
fn calls_wait_for_the_listener_up_to_a_timeout() {
    let mut http = Http::initialized(|_| {});
    let early = http.rig.echo();
    assert_eq!(http.lines(1), ["POST notifications/initialized"]);
    let note = http.last().0;
    http.refuse(note, 202);
    assert_eq!(http.lines(2), ["GET -"], "not before the notification was taken");
    http.rig.call(tools::list());
    assert_eq!(http.posts().len(), 3);
    http.stream(http.last().0);
    assert_eq!(http.lines(3), ["POST tools/call", "POST tools/list"], "in the order of the calls");
    assert!(!http.rig.has_ended(early));
    // A server that never answers the notification, or the listener.
    for answered in [false, true] {
        let mut http = Http::initialized(|_| {});
        let early = http.rig.echo();
        if answered {
            http.refuse(http.last().0, 202);
        }
        let count = http.posts().len();
        http.rig.tick(ms(999));
        assert_eq!(http.posts().len(), count);
        http.rig.tick(ms(1));
        assert_eq!(http.lines(count), ["POST tools/call"]);
        let (exchange, id) = http.last();
        http.answer(exchange, 200, &result(&id));
        assert!(http.rig.outcome(early).is_ok());
    }
}

// covers: S0-52, S0-53
#[test]
fn open_timeout_follows_the_call_timeout_or_is_configured() {
    let given_up = |set: &dyn Fn(&mut ClientConfig)| {
        let mut http = Http::initialized(set);
        http.refuse(http.last().0, 202);
        let (listener, _) = listener(&http);
        let mut waited = 0;
        while !http.rig.aborted.contains(&listener) && waited < 100_000 {
            http.rig.tick(ms(1));
            waited += 1;
        }
        waited
    };
    assert_eq!(given_up(&|_| {}), 1000);
    assert_eq!(given_up(&|config| config.timeout = Some(ms(400))), 100);
    assert_eq!(given_up(&|config| config.timeout = Some(ms(2))), 1);
    assert_eq!(given_up(&|config| config.timeout = None), 1000);
    assert_eq!(given_up(&|config| config.compat.listener_start = ListenerTime::After(ms(7))), 7);
    assert_eq!(given_up(&|config| config.compat.listener_start = ListenerTime::Unlimited), 100_000);
}

// covers: S0-54, B-024, B-160, SHTTP-C-015, S3-08
#[test]
fn calls_work_without_a_listener() {
    for (status, kind, silent) in [
        (405, None, true),
        (400, None, false),
        (404, Some("text/html"), false),
        (501, None, false),
        (200, Some("text/html"), false),
        (200, Some("application/json"), false),
        (204, None, false),
    ] {
        let mut http = Http::initialized(|_| {});
        let call = http.rig.echo();
        http.refuse(http.last().0, 202);
        let get = http.last().0;
        let headers = kind.map_or_else(Headers::new, |kind| Headers::new().with("content-type", kind));
        http.item(get, Inbound::Response(ResponseHead { status, headers }));
        http.item(get, Inbound::Body(Bytes::from_static(b"data: {}\n\n")));
        http.item(get, Inbound::End);
        assert_eq!(http.lines(3), ["POST tools/call"], "{status}");
        let told = http.rig.diagnostics();
        assert_eq!(told, if silent { vec![] } else { vec![DiagnosticKind::ListenerOff] }, "{status}");
        http.rig.tick(Duration::from_secs(29));
        assert_eq!(http.posts().len(), 4, "it is not tried again");
        assert!(!http.rig.has_ended(call));
    }
    let mut http = Http::initialized(|config| config.compat.listener = ListenerStart::Never);
    let call = http.rig.echo();
    http.refuse(http.last().0, 202);
    assert_eq!(http.lines(2), ["POST tools/call"]);
    assert!(!http.rig.has_ended(call));
}

// covers: S0-02, R-01
#[test]
fn listener_can_open_before_the_notification() {
    let mut http = Http::initialized(|config| config.compat.listener = ListenerStart::BeforeInitialized);
    assert_eq!(http.lines(1), ["GET -", "POST notifications/initialized"]);
    let (listener, _) = listener(&http);
    http.stream(listener);
    http.refuse(http.last().0, 202);
    http.rig.echo();
    assert_eq!(http.lines(3), ["POST tools/call"]);
}

// covers: B-029, B-030, S0-56, S0-57, SHTTP-B-037, B-020, R-10
#[test]
fn ended_listener_is_reopened_and_lost_with_one_event() {
    let mut http = Http::legacy(|_| {});
    let call = http.rig.echo();
    // Without an event there is no position to resume from.
    let (first, count) = listener(&http);
    http.item(first, Inbound::End);
    assert_eq!(http.posts().len(), count);
    http.rig.tick(ms(999));
    assert_eq!(http.posts().len(), count, "never before the wait is over");
    http.rig.tick(ms(101));
    assert_eq!(http.lines(count), ["GET -"]);
    let (second, _) = listener(&http);
    http.stream(second);
    http.numbered(second, "e7", Some(200), Some(&list_changed()));
    http.rig.handle_event(second, ExchangeEvent::Failed { sent: Sent::Maybe, why: Closed::Reset });
    http.rig.tick(ms(220));
    assert_eq!(http.lines(count + 1), ["GET e7"]);
    // Two failures in a row: once with a temporary status, once without a response.
    let (third, _) = listener(&http);
    http.refuse(third, 503);
    http.rig.tick(ms(399));
    assert_eq!(http.lines(count + 2).len(), 0, "twice the wait after the third short round");
    http.rig.tick(ms(41));
    assert_eq!(http.lines(count + 2), ["GET e7"]);
    assert_eq!(lost(&http), []);
    let (fourth, _) = listener(&http);
    http.stream(fourth);
    http.item(fourth, Inbound::End);
    assert_eq!(lost(&http), [(StreamEnd::Ended, None)]);
    let count = http.posts().len();
    http.rig.tick(Duration::from_secs(10));
    assert_eq!(http.posts().len(), count);
    assert!(!http.rig.has_ended(call), "no call is touched");
}

// covers: B-025, B-225
#[test]
fn lost_listener_with_a_subscription_is_retried() {
    let mut http = Http::legacy(|config| config.watch.tools = true);
    let (mut get, _) = listener(&http);
    http.numbered(get, "e1", Some(100), None);
    http.rig.handle_event(get, ExchangeEvent::Failed { sent: Sent::Maybe, why: Closed::Reset });
    let mut attempts = 0;
    for _ in 0..1000 {
        http.rig.tick(ms(100));
        let (now, _) = listener(&http);
        if now != get {
            (get, attempts) = (now, attempts + 1);
            http.rig.handle_event(get, ExchangeEvent::Failed { sent: Sent::No, why: Closed::Refused });
        }
    }
    assert_eq!(lost(&http), [(StreamEnd::Closed(Closed::Refused), Some(30))]);
    assert!((6..=9).contains(&attempts), "{attempts} in 100 s");
    assert_eq!(http.posts().pop().unwrap().1.headers.get("last-event-id"), Some("e1"), "the cursor is kept");
    http.rig.tick(Duration::from_secs(40));
    let (open, _) = listener(&http);
    http.stream(open);
    http.event(open, &list_changed());
    assert_eq!(changes(&http), 1);
    // It works, so its next end is reported again.
    http.refuse(open, 200);
}

// covers: B-025, B-225
#[test]
fn listener_refused_after_a_pause_is_reported_as_lost() {
    let mut http = Http::legacy(|config| config.watch.tools = true);
    let (get, _) = listener(&http);
    http.numbered(get, "e1", Some(100), None);
    http.rig.handle_event(get, ExchangeEvent::Failed { sent: Sent::Maybe, why: Closed::Reset });
    while lost(&http).is_empty() {
        http.rig.tick(ms(100));
        let (get, _) = listener(&http);
        if !http.rig.over.contains(&get) {
            http.rig.handle_event(get, ExchangeEvent::Failed { sent: Sent::No, why: Closed::Refused });
        }
    }
    let (_, count) = listener(&http);
    http.rig.tick(Duration::from_secs(40));
    assert_eq!(http.lines(count), ["GET e1"]);
    // The server no longer has the event, so the client stops, after it announced another attempt.
    let (get, count) = listener(&http);
    http.refuse(get, 400);
    let refused = Closed::Refused;
    assert_eq!(
        lost(&http),
        [(StreamEnd::Closed(refused), Some(30)), (StreamEnd::Status { status: 400, retry_after: None }, None)]
    );
    http.rig.tick(Duration::from_secs(3600));
    assert_eq!(http.lines(count).iter().filter(|line| line.starts_with("GET")).count(), 0);
}

// covers: B-025, B-225
#[test]
fn listener_refused_for_a_time_is_not_opened_before_it() {
    let mut http = Http::legacy(|config| config.watch.tools = true);
    let (get, _) = listener(&http);
    http.numbered(get, "e1", Some(100), None);
    http.item(get, Inbound::End);
    for wait in [110, 66_000] {
        http.rig.tick(ms(wait));
        http.put_off(listener(&http).0, 60);
    }
    let told = lost(&http);
    assert!(matches!(&told[..], [(cause, Some(60))] if cause.to_string() == "HTTP 503 [retry after 60 s]"), "{told:?}");
    let (_, count) = listener(&http);
    http.rig.tick(ms(59_999));
    assert_eq!(http.lines(count), Vec::<String>::new());
    http.rig.tick(ms(1));
    assert_eq!(http.lines(count), ["GET e1"]);
}

// covers: B-019
#[test]
fn body_of_a_refusal_is_no_sign_of_life() {
    let refused = json!({"jsonrpc": "2.0", "error": {"code": -32000, "message": "busy"}, "id": null});
    let event = SseEvent { id: Some("x".into()), retry: Some(ms(10)), data: Data::None };
    for as_stream in [false, true] {
        let mut http = Http::legacy(|_| {});
        let (first, count) = listener(&http);
        http.numbered(first, "e1", Some(50), None);
        http.item(first, Inbound::End);
        for _ in 0..1000 {
            http.rig.tick(ms(10));
            let (get, _) = listener(&http);
            if !http.rig.over.contains(&get) && as_stream {
                let headers = Headers::new().with("content-type", "text/event-stream");
                http.item(get, Inbound::Response(ResponseHead { status: 503, headers }));
                http.item(get, Inbound::Event(event.clone()));
                http.item(get, Inbound::End);
            } else if !http.rig.over.contains(&get) {
                http.answer(get, 503, &refused);
            }
        }
        assert_eq!(http.lines(count), ["GET e1", "GET e1"], "{as_stream}");
        assert_eq!(lost(&http), [(StreamEnd::Status { status: 503, retry_after: None }, None)]);
    }
}

// covers: S0-57, S0-58, R-10
#[test]
fn end_of_the_listener_is_reported_as_configured() {
    for (end, told) in [(ListenerEnd::Stop, vec![(StreamEnd::Ended, None)]), (ListenerEnd::Ignore, vec![])] {
        let mut http = Http::legacy(|config| config.compat.listener_end = end);
        let (get, count) = listener(&http);
        http.item(get, Inbound::End);
        http.rig.tick(Duration::from_secs(25));
        assert_eq!((lost(&http), http.posts().len()), (told, count));
        let call = http.rig.echo();
        let (exchange, id) = http.last();
        http.answer(exchange, 200, &result(&id));
        assert!(http.rig.outcome(call).is_ok());
    }
}

// covers: B-033
#[test]
fn listener_has_only_an_idle_timeout() {
    let mut http = Http::legacy(|_| {});
    let (get, count) = listener(&http);
    for _ in 0..100 {
        http.rig.tick(Duration::from_secs(299));
        http.item(get, Inbound::Comment);
    }
    assert_eq!((http.posts().len(), http.rig.aborted.len()), (count, 0));
    // After a long silence the connection may be dead.
    http.rig.tick(Duration::from_secs(300));
    assert_eq!(http.rig.aborted, [get]);
    http.rig.tick(ms(1100));
    assert_eq!(http.lines(count), ["GET -"]);
    assert_eq!(lost(&http), []);
    // Without an idle timeout it stays open.
    let mut http = Http::legacy(|config| config.listener_idle = None);
    http.rig.tick(Duration::from_secs(1_000_000));
    assert_eq!(http.rig.aborted, []);
}

// covers: S0-18, S0-12, S3-07, S3-09, B-016
#[test]
fn server_requests_on_any_stream_are_answered_by_post() {
    let ask = |id: Value| json!({"jsonrpc": "2.0", "id": id, "method": "roots/list"});
    let roots = |config: &mut ClientConfig| config.capabilities.roots = Some(Default::default());
    for on_listener in [true, false] {
        let mut http = Http::legacy(roots);
        let call = http.rig.call(tools::call("x").timeout(ms(1000)));
        let other = http.rig.call(tools::call("y").timeout(ms(1000)));
        let posts = http.posts();
        let (stream, count) = (posts[posts.len() - 2].0, posts.len());
        http.stream(stream);
        let asked_on = if on_listener { listener(&http).0 } else { stream };
        http.event(asked_on, &ask(json!("q")));
        http.event(asked_on, &json!({"jsonrpc": "2.0", "id": 1, "method": "acme/what"}));
        assert_eq!(http.posts().pop().unwrap().2["error"]["code"], -32601);
        // The same request on another stream is a duplicate, and not answered twice.
        http.event(stream, &ask(json!("q")));
        let (key, _) = http.rig.questions()[0];
        assert_eq!(http.rig.questions().len(), 1);
        // The timeout of the requesting call is paused. On the listener the call is unknown, so all
        // are paused.
        http.rig.tick(ms(5000));
        assert!(!http.rig.has_ended(call));
        assert_eq!(http.rig.has_ended(other), !on_listener);
        http.rig.reply(key, InputAnswer::roots(["file:///"]));
        let answer = http.posts().pop().unwrap().2;
        assert_eq!(answer, json!({"jsonrpc": "2.0", "id": "q", "result": {"roots": [{"uri": "file:///"}]}}));
        let posted = if on_listener { 2 } else { 3 };
        assert_eq!(http.posts().len(), count + posted);
        http.rig.tick(ms(1000));
        assert!(http.rig.has_ended(call));
    }
}

// covers: S0-18
#[test]
fn refused_response_is_reported_and_ends_nothing() {
    let mut http = Http::legacy(|_| {});
    let (get, _) = listener(&http);
    http.event(get, &json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}));
    let (exchange, _, body, _) = http.posts().pop().unwrap();
    assert_eq!(body, json!({"jsonrpc": "2.0", "id": 1, "result": {}}));
    http.refuse(exchange, 500);
    assert_eq!(http.rig.diagnostics(), [DiagnosticKind::DroppedResponse]);
    assert_eq!(http.rig.client.state(), State::Ready);
}

#[test]
fn answer_that_a_busy_server_refuses_is_repeated() {
    let mut http = Http::legacy(|_| {});
    let (get, _) = listener(&http);
    http.event(get, &json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}));
    let (mut exchange, _, answer, _) = http.posts().pop().unwrap();
    let count = http.posts().len();
    for (nth, status) in [503, 502, 504, 429, 503, 503].into_iter().enumerate() {
        http.refuse(exchange, status);
        assert_eq!(http.posts().len(), count + nth, "not at once");
        http.rig.tick(ms(500 << nth));
        let again = http.posts().pop().unwrap();
        assert_eq!((http.posts().len(), &again.2), (count + nth + 1, &answer));
        exchange = again.0;
    }
    assert_eq!(http.rig.diagnostics(), []);
    http.refuse(exchange, 503);
    http.rig.tick(ms(60_000));
    assert_eq!((http.posts().len(), http.rig.diagnostics()), (count + 6, vec![DiagnosticKind::DroppedResponse]));
}

// covers: B-225
#[test]
fn late_listener_may_have_missed_a_change() {
    let watch = |config: &mut ClientConfig| {
        config.watch.tools = true;
        config.compat.listener_start = ListenerTime::After(ms(3000));
    };
    for late in [false, true] {
        let mut http = Http::initialized(watch);
        http.refuse(http.last().0, 202);
        if late {
            http.rig.tick(ms(1500));
        } else {
            http.refuse(http.last().0, 503);
            http.rig.tick(ms(1100));
        }
        http.stream(listener(&http).0);
        assert_eq!(changes(&http), 1, "{late}");
    }
    let mut http = Http::initialized(watch);
    http.refuse(http.last().0, 202);
    http.stream(listener(&http).0);
    assert_eq!(changes(&http), 0, "no call was made before it");
}

#[test]
fn unaccepted_cancellations_are_bounded_by_max_calls() {
    let mut http = Http::legacy(|config| {
        config.limits.client.max_calls = 8;
        config.timeout = None;
    });
    let cancellations = |http: &Http| -> Vec<ExchangeId> {
        let is_one = |body: &Value| body["method"] == "notifications/cancelled";
        http.posts().into_iter().filter(|(_, _, body, _)| is_one(body)).map(|(exchange, ..)| exchange).collect()
    };
    let cancel = |http: &mut Http| {
        let call = http.rig.echo();
        http.rig.client.cancel(http.rig.now, call, None);
        http.rig.drain();
    };
    for _ in 0..100 {
        cancel(&mut http);
    }
    let sent = cancellations(&http);
    assert_eq!(sent.len(), 8);
    assert_eq!(http.rig.diagnostics(), [DiagnosticKind::DroppedNotification; 92]);
    // An accepted one frees a place.
    http.refuse(sent[0], 202);
    cancel(&mut http);
    assert_eq!(cancellations(&http).len(), 9);
}

#[test]
fn unaccepted_responses_are_bounded_by_max_calls() {
    let mut http = Http::legacy(|config| config.limits.client.max_calls = 8);
    let (get, count) = listener(&http);
    for id in 0..1000 {
        http.event(get, &json!({"jsonrpc": "2.0", "id": id, "method": "ping"}));
    }
    assert_eq!(http.posts().len(), count + 8);
    assert_eq!(http.rig.diagnostics(), [DiagnosticKind::DroppedResponse; 992]);
    // An accepted one frees a place.
    http.refuse(http.last().0, 202);
    http.event(get, &json!({"jsonrpc": "2.0", "id": 1000, "method": "ping"}));
    assert_eq!(http.posts().len(), count + 9);
    // Calls are counted separately.
    http.rig.echo();
    assert_eq!(http.lines(count + 9), ["POST tools/call"]);
}

// covers: S0-18, S3-21
#[test]
fn response_refused_with_404_ends_the_session() {
    let mut http = Http::legacy(|_| {});
    let (get, _) = listener(&http);
    http.event(get, &json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}));
    http.refuse(http.last().0, 404);
    assert_eq!(http.rig.diagnostics(), [DiagnosticKind::DroppedResponse]);
    assert_eq!(http.rig.client.state(), State::Initializing);
}

// covers: B-225
#[test]
fn time_without_a_listener_counts_as_one_change() {
    let mut http = Http::legacy(|config| config.watch.tools = true);
    let (get, _) = listener(&http);
    http.event(get, &list_changed());
    assert_eq!(changes(&http), 1);
    // A new session.
    http.rig.echo();
    http.refuse(http.last().0, 404);
    http.accept("s2");
    http.refuse(http.last().0, 202);
    http.stream(listener(&http).0);
    assert_eq!(changes(&http), 2);
    // A break without an event id: messages in between are lost.
    let (get, _) = listener(&http);
    http.item(get, Inbound::End);
    http.rig.tick(ms(1100));
    http.stream(listener(&http).0);
    assert_eq!(changes(&http), 3);
    // With an event id the server sends them again.
    let (get, _) = listener(&http);
    http.numbered(get, "e1", None, None);
    http.item(get, Inbound::End);
    http.rig.tick(ms(1100));
    http.stream(listener(&http).0);
    assert_eq!(changes(&http), 3);
}

// covers: B-016
#[test]
fn progress_counts_on_any_stream() {
    let mut http = Http::legacy(|_| {});
    let call = http.rig.call(tools::call("x").progress());
    let (_, id) = http.last();
    http.event(listener(&http).0, &note(&id, 5));
    assert!(http.rig.events.iter().any(|event| matches!(event, Event::Progress { call: of, .. } if *of == call)));
}

// covers: S0-55, S0-02
#[test]
fn unparseable_notification_response_keeps_the_listener() {
    let mut http = Http::initialized(|config| config.compat.sse_decode = SseDecode::Reject);
    let note = http.last().0;
    http.stream(note);
    let data = Data::Invalid(parse(Bytes::from_static(b"{"), 128).unwrap_err());
    http.item(note, Inbound::Event(SseEvent { id: None, retry: None, data }));
    http.item(note, Inbound::End);
    assert_eq!(http.lines(2), ["GET -"]);
}

// covers: B-029, B-096, B-160
#[test]
fn watching_client_notices_the_end_of_its_session() {
    let ended = |watch: bool| {
        let mut http = Http::legacy(|config| config.watch.tools = watch);
        let (get, count) = listener(&http);
        http.item(get, Inbound::End);
        http.rig.tick(ms(1100));
        http.refuse(listener(&http).0, 404);
        assert_eq!(lost(&http), [(StreamEnd::Status { status: 404, retry_after: None }, None)]);
        (http, count)
    };
    let (http, count) = ended(false);
    assert_eq!(http.lines(count), ["GET -"], "the next call will find out");
    let (mut http, count) = ended(true);
    assert_eq!(http.lines(count), ["GET -", "POST ping"]);
    http.refuse(http.last().0, 404);
    http.accept("s2");
    http.refuse(http.last().0, 202);
    http.stream(listener(&http).0);
    assert_eq!(http.lines(count + 2), ["POST initialize", "POST notifications/initialized", "GET -"]);
    assert_eq!(changes(&http), 1);
    // The session is alive and only the listener is gone, or the server does not respond.
    for answered in [true, false] {
        let (mut http, count) = ended(true);
        let (ping, id) = http.last();
        if answered {
            http.answer(ping, 200, &json!({"jsonrpc": "2.0", "id": id, "result": {}}));
        } else {
            http.rig.tick(Duration::from_secs(30));
            assert_eq!(http.rig.aborted.last(), Some(&ping));
        }
        http.rig.tick(Duration::from_secs(3600));
        assert_eq!((http.lines(count).len(), http.rig.client.state()), (2, State::Ready));
        assert_eq!(http.rig.client.poll_timeout(), None);
    }
}
