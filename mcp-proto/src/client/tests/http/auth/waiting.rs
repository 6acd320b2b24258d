//! Requests that wait for credentials, and the timeouts that are paused meanwhile.

use super::*;
use crate::Authorization;
use crate::InputAnswer;

// covers: TIME-B-001, R-28, S0-45
#[test]
fn timeout_of_a_call_pauses_for_credentials() {
    let mut http = modern(|_| {});
    let call = http.rig.echo();
    http.rig.tick(ms(20_000));
    challenge_last(&mut http, 401, BEARER);
    // Another call joins, later.
    let other = http.rig.echo();
    http.rig.tick(ms(5_000));
    challenge_last(&mut http, 401, BEARER);
    assert_eq!(http.rig.client.poll_timeout(), None);
    http.rig.tick(Duration::from_secs(3600));
    assert!(!http.rig.has_ended(call) && !http.rig.has_ended(other));
    token(&mut http, "t");
    http.rig.tick(ms(9_999));
    assert!(!http.rig.has_ended(call));
    http.rig.tick(ms(1));
    assert!(matches!(http.rig.outcome(call), Err(CallError::Timeout { after, .. }) if *after == ms(30_000)));
    http.rig.tick(ms(14_999));
    assert!(!http.rig.has_ended(other));
    http.rig.tick(ms(1));
    assert!(matches!(http.rig.outcome(other), Err(CallError::Timeout { .. })));
    http.assert_at_rest();
}

// covers: TIME-B-001, R-28
#[test]
fn total_timeout_and_cancel_end_waiting_calls() {
    for legacy in [false, true] {
        let mut http = if legacy { Http::legacy(authorizing) } else { modern(|_| {}) };
        http.rig.clear();
        let total = http.rig.call(tools::call("x").timeout(None).max_total(ms(40_000)));
        challenge_last(&mut http, 401, BEARER);
        let cancelled = http.rig.echo();
        challenge_last(&mut http, 401, BEARER);
        let count = http.posts().len();
        http.rig.tick(ms(39_999));
        assert!(!http.rig.has_ended(total));
        http.rig.tick(ms(1));
        assert!(matches!(http.rig.outcome(total), Err(CallError::Timeout { after, .. }) if *after == ms(40_000)));
        http.rig.client.cancel(http.rig.now, cancelled, None);
        http.rig.drain();
        assert!(matches!(http.rig.outcome(cancelled), Err(CallError::Cancelled { .. })));
        assert_eq!(
            http.lines(count),
            [] as [&str; 0],
            "the server has not begun with it, so there is nothing to cancel"
        );
        assert!(http.rig.aborted.is_empty(), "its exchange was over");
        // Credentials that arrive now resume nothing, but apply to later requests.
        token(&mut http, "late");
        assert_eq!(http.posts().len(), count);
        let closed = http.rig.echo();
        assert_eq!(credentials(&last_post(&http)), ["Bearer late"]);
        challenge_last(&mut http, 401, BEARER);
        assert_eq!(asked(&http), 2);
        let key = needed(&http)[1].0;
        http.rig.client.close(http.rig.now);
        http.rig.drain();
        assert!(matches!(http.rig.outcome(closed), Err(CallError::Closed { .. })));
        let count = http.posts().len();
        give(&mut http, key, Authorization::Headers(Headers::new().with("Authorization", "Bearer x")));
        give(&mut http, AuthKey::new(77), Authorization::Refuse);
        assert_eq!(http.posts().len(), count, "after the end it does nothing");
        http.rig.tick(Duration::from_secs(2));
        http.assert_at_rest();
    }
}

// covers: TIME-B-001, R-28
#[test]
fn handshake_and_its_calls_pause_for_credentials() {
    for legacy in [false, true] {
        let mut http = Http::with(|config| {
            authorizing(config);
            config.policy = if legacy { Policy::Legacy } else { Policy::Auto };
        });
        http.rig.tick(ms(10_000));
        let queued = http.rig.echo();
        challenge_last(&mut http, 401, BEARER);
        http.rig.tick(ms(10));
        let later = http.rig.echo();
        assert_eq!(http.rig.client.poll_timeout(), None, "{:?}", http.rig.client.timeout_reason());
        http.rig.tick(Duration::from_secs(3600));
        assert!(!http.rig.has_ended(queued) && !http.rig.has_ended(later));
        token(&mut http, "t");
        assert_eq!(http.rig.client.timeout_reason(), Some(Timer::Handshake));
        http.rig.tick(ms(29_999));
        assert_eq!(http.rig.termination(), None);
        http.rig.tick(ms(1));
        assert!(http.rig.termination().is_some(), "a handshake that is silent ends as ever");
        http.assert_at_rest();
    }
}

//
#[test]
fn connect_timeout_does_not_run_while_credentials_are_awaited() {
    let mut http = Http::with(|config| {
        authorizing(config);
        config.connect_timeout = ms(15_000);
    });
    http.rig.tick(ms(10_000));
    challenge_last(&mut http, 401, BEARER);
    http.rig.tick(Duration::from_secs(3600));
    assert_eq!(http.rig.termination(), None);
    token(&mut http, "t");
    http.rig.tick(ms(4_999));
    assert_eq!(http.rig.termination(), None);
    http.rig.tick(ms(1));
    assert!(http.rig.termination().is_some(), "what was left of the time is over");
    http.assert_at_rest();
}

// covers: B-159, R-28
#[test]
fn call_pauses_while_its_input_response_waits() {
    let mut http = Http::legacy(|config| {
        authorizing(config);
        config.capabilities.roots = Some(Default::default());
    });
    let call = http.rig.echo();
    let (exchange, id) = http.last();
    http.stream(exchange);
    http.event(exchange, &json!({"jsonrpc": "2.0", "id": 5, "method": "roots/list"}));
    http.rig.reply(http.rig.questions()[0].0, InputAnswer::roots(["file:///"]));
    let response = last_post(&http);
    challenge(&mut http, response.0, 401, BEARER);
    http.rig.tick(Duration::from_secs(60));
    assert!(!http.rig.has_ended(call), "the server still waits for us");
    token(&mut http, "t");
    assert_eq!(bare(&last_post(&http)), bare(&response));
    http.refuse(http.last().0, 202);
    http.event(exchange, &result(&id));
    assert!(http.rig.outcome(call).is_ok());
    // In the other case the response is refused, and the call runs until its timeout.
    let call = http.rig.echo();
    let exchange = http.last().0;
    http.stream(exchange);
    http.event(exchange, &json!({"jsonrpc": "2.0", "id": 6, "method": "roots/list"}));
    http.rig.reply(http.rig.questions()[1].0, InputAnswer::roots(["file:///"]));
    challenge_last(&mut http, 401, "Bearer other=\"1\"");
    http.rig.tick(Duration::from_secs(60));
    refuse(&mut http);
    assert!(http.rig.diagnostics().contains(&DiagnosticKind::DroppedResponse));
    http.rig.tick(ms(29_999));
    assert!(!http.rig.has_ended(call));
    http.rig.tick(ms(1));
    assert!(matches!(http.rig.outcome(call), Err(CallError::Timeout { .. })));
}

// covers: TIME-B-001, R-28
#[test]
fn call_that_awaits_a_refresh_pauses_for_credentials() {
    let mut http = modern(|_| {});
    let calls = [http.rig.echo(), http.rig.echo()];
    let posts = http.posts()[1..].to_vec();
    http.answer(posts[0].0, 400, &error(&posts[0].2["id"], -32020));
    challenge_last(&mut http, 401, BEARER);
    // It joins the others while the list waits already.
    http.answer(posts[1].0, 400, &error(&posts[1].2["id"], -32020));
    http.rig.tick(Duration::from_secs(3600));
    assert!(calls.iter().all(|call| !http.rig.has_ended(*call)));
    token(&mut http, "t");
    http.rig.tick(ms(29_999));
    assert!(calls.iter().all(|call| !http.rig.has_ended(*call)));
    http.rig.tick(ms(1));
    assert!(calls.iter().all(|call| http.rig.has_ended(*call)));
}

// covers: PING-B-003, R-28
#[test]
fn ping_that_waits_for_credentials_is_not_missed() {
    let missed = |http: &Http| http.rig.events.iter().filter(|e| matches!(e, Event::PingMissed { .. })).count();
    let mut http = modern(|config| config.ping = Some(Duration::from_secs(60)));
    http.rig.tick(Duration::from_secs(60));
    challenge_last(&mut http, 401, BEARER);
    http.rig.tick(Duration::from_secs(3600));
    assert_eq!((missed(&http), http.rig.client.poll_timeout()), (0, None));
    token(&mut http, "t");
    http.rig.tick(ms(9_999));
    assert_eq!(missed(&http), 0);
    http.rig.tick(ms(1));
    assert!(matches!(http.rig.events.last(), Some(Event::PingMissed { waited, in_a_row: 1 }) if *waited == ms(10_000)));
    // Refused, it counts as a ping without a response.
    http.rig.tick(Duration::from_secs(60));
    challenge_last(&mut http, 401, BEARER);
    refuse(&mut http);
    assert_eq!(missed(&http), 2);
    http.rig.client.close(http.rig.now);
    http.rig.drain();
    http.assert_at_rest();
}

// covers: B-159, R-28, S0-51
#[test]
fn expired_credentials_of_a_stream_are_requested_again() {
    // The listener.
    let mut http = Http::initialized(authorizing);
    http.refuse(http.last().0, 202);
    for n in 1..=3 {
        challenge_last(&mut http, 401, BEARER);
        assert_eq!(asked(&http), n);
        token(&mut http, "t");
        let listener = http.last().0;
        http.stream(listener);
        http.numbered(listener, &format!("e{n}"), Some(100), None);
        http.item(listener, Inbound::End);
        http.rig.tick(ms(60_000));
        assert_eq!(http.lines(http.posts().len() - 1), [format!("GET e{n}")]);
    }
    // The rest of a response.
    let mut http = Http::legacy(authorizing);
    let call = http.rig.call(tools::call("x").timeout(None));
    let id = http.last().1;
    for n in 1..=3 {
        challenge_last(&mut http, 401, BEARER);
        assert_eq!(asked(&http), n);
        token(&mut http, "t");
        let exchange = http.last().0;
        http.stream(exchange);
        http.numbered(exchange, &format!("e{n}"), Some(100), None);
        http.item(exchange, Inbound::End);
        http.rig.tick(ms(60_000));
    }
    let exchange = http.last().0;
    http.stream(exchange);
    http.event(exchange, &result(&id));
    assert!(http.rig.outcome(call).is_ok());
}

// covers: B-159, S0-47, R-28
#[test]
fn refused_challenge_to_a_resumption_ends_the_call() {
    for authorize in [false, true] {
        let mut http = Http::legacy(|config| config.authorize = authorize);
        let call = http.rig.echo();
        let exchange = http.last().0;
        http.stream(exchange);
        http.numbered(exchange, "e1", None, None);
        http.item(exchange, Inbound::End);
        http.rig.tick(ms(1100));
        challenge_last(&mut http, 401, BEARER);
        assert_eq!(asked(&http), usize::from(authorize));
        if authorize {
            refuse(&mut http);
        }
        let text = format!("HTTP 401: who are you [WWW-Authenticate: {BEARER}]");
        assert_eq!(http.rig.outcome(call).clone().unwrap_err().to_string(), text);
    }
}

//
#[test]
fn resumption_with_new_credentials_has_a_timeout() {
    let mut http = Http::legacy(authorizing);
    http.rig.call(tools::call("x").timeout(None));
    let exchange = http.last().0;
    http.stream(exchange);
    http.numbered(exchange, "e1", None, None);
    http.item(exchange, Inbound::End);
    http.rig.tick(ms(1100));
    challenge_last(&mut http, 401, BEARER);
    token(&mut http, "t");
    let silent = http.last().0;
    http.rig.tick(ms(30_000));
    assert_eq!(http.rig.aborted, [silent]);
    http.rig.tick(ms(1100));
    assert_eq!(http.lines(http.posts().len() - 1), ["GET e1"]);
}

// covers: R-28, S0-45
#[test]
fn request_with_older_credentials_is_repeated_silently() {
    let mut http = modern(|_| {});
    let calls = [http.rig.echo(), http.rig.echo()];
    let posts = http.posts()[1..].to_vec();
    challenge(&mut http, posts[0].0, 401, BEARER);
    token(&mut http, "t");
    challenge(&mut http, posts[1].0, 401, BEARER);
    assert_eq!((asked(&http), http.posts().len()), (1, 5));
    let again = last_post(&http);
    assert_eq!((bare(&again), credentials(&again)), (bare(&posts[1]), vec!["Bearer t".to_string()]));
    http.answer(again.0, 200, &result(&again.2["id"]));
    assert!(http.rig.outcome(calls[1]).is_ok());
}

//
#[test]
fn call_that_waits_for_credentials_outlives_its_session() {
    let mut http = Http::legacy(authorizing);
    let waits = http.rig.echo();
    let first = last_post(&http);
    challenge(&mut http, first.0, 401, BEARER);
    http.rig.echo();
    http.refuse(http.last().0, 404);
    assert!(!http.rig.has_ended(waits));
    token(&mut http, "t");
    http.accept("s2");
    let note = http.last().0;
    http.refuse(note, 202);
    http.refuse(http.last().0, 405);
    let calls: Vec<Post> = http.posts().into_iter().filter(|post| post.2["method"] == "tools/call").collect();
    assert_eq!(calls.len(), 4, "both are made again");
    let (exchange, head, body, _) = &calls[2];
    assert_eq!(head.headers.get("mcp-session-id"), Some("s2"));
    http.answer(*exchange, 200, &result(&body["id"]));
    assert!(http.rig.outcome(waits).is_ok());
}
