//! The number of resumptions of a stream, and the delay of its messages: whole conversations in
//! virtual time.

use super::*;
use crate::client::{ListenerStart, Resume, StreamOf};
use crate::error::StreamEnd;

/// Serves a GET: its exchange, the number of the round from 1 on, and the time in milliseconds
/// since the start.
type Serve<'a> = &'a mut dyn FnMut(&mut Http, ExchangeId, usize, u64);

/// Sends the events of a round, by its number.
type Say<'a> = &'a dyn Fn(&mut Http, ExchangeId, usize);

/// Advances the time by this number of milliseconds, from timer to timer and in steps of at most
/// `step`. Serves each GET at once and accepts each POST. Returns the times of the GETs.
fn pass(http: &mut Http, millis: u64, step: u64, serve: Serve<'_>) -> Vec<u64> {
    let (began, mut seen, mut at) = (http.rig.now, http.rig.starts.len(), vec![]);
    let until = began + ms(millis);
    while http.rig.now < until {
        let next = http.rig.client.poll_timeout().unwrap_or(until).min(http.rig.now + ms(step)).min(until);
        http.rig.tick(next.since(http.rig.now));
        while let Some((exchange, start)) = http.rig.starts.get(seen) {
            let (exchange, is_get) = (*exchange, matches!(start, Start::Http { head, .. } if head.method == "GET"));
            seen += 1;
            let now = http.rig.now.since(began).as_millis() as u64;
            if is_get {
                at.push(now);
                serve(http, exchange, at.len(), now);
            } else {
                http.refuse(exchange, 202);
            }
        }
    }
    at
}

fn progress(n: usize) -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": n}})
}

fn asked() -> Value {
    json!({"jsonrpc": "2.0", "id": "p", "method": "ping"})
}

/// Opens a stream, sends on it, and closes it.
fn round(http: &mut Http, exchange: ExchangeId, say: impl FnOnce(&mut Http)) {
    http.stream(exchange);
    say(http);
    if !http.rig.over.contains(&exchange) {
        http.item(exchange, Inbound::End);
    }
}

/// A call without a timeout whose response was cut after event `0`. Returns it with the id of its
/// request.
fn cut_call(http: &mut Http, retry: Option<u64>) -> (CallId, Value) {
    let call = http.rig.call(tools::call("x").timeout(None));
    let (exchange, id) = http.last();
    http.stream(exchange);
    http.numbered(exchange, "0", retry, Some(&progress(0)));
    http.item(exchange, Inbound::End);
    (call, id)
}

/// A listener that was cut after event `0`.
fn cut_listener(http: &mut Http, retry: u64) {
    let listener = http.rig.starts.last().unwrap().0;
    http.numbered(listener, "0", Some(retry), Some(&progress(0)));
    http.item(listener, Inbound::End);
}

/// Returns the times of the GETs in 30 s at `retry: 0`, for a call and for a listener with such
/// rounds, and whether the call has ended.
fn thirty_seconds(say: Say<'_>) -> ([Vec<u64>; 2], bool) {
    let mut ended = false;
    let at = [true, false].map(|of_call| {
        let mut http =
            Http::legacy(|config| config.compat.listener = if of_call { NEVER } else { config.compat.listener });
        let call = of_call.then(|| cut_call(&mut http, Some(0)).0);
        if call.is_none() {
            cut_listener(&mut http, 0);
        }
        let at = pass(&mut http, 30_000, 30_000, &mut |http, get, n, _| round(http, get, |http| say(http, get, n)));
        ended |= call.is_some_and(|call| http.rig.has_ended(call));
        at
    });
    (at, ended)
}

const NEVER: ListenerStart = ListenerStart::Never;

// covers: B-019, B-020, B-022
#[test]
fn repeated_events_and_pings_are_no_progress_of_a_call() {
    let replay = |http: &mut Http, get, _| http.numbered(get, "0", Some(0), Some(&progress(0)));
    let ping = |http: &mut Http, get, _| http.event(get, &asked());
    let primer = |http: &mut Http, get, _| http.numbered(get, "0", Some(0), None);
    let rounds: [(&str, Say<'_>); 3] = [("repeats", &replay), ("pings", &ping), ("an id that was seen", &primer)];
    for (name, say) in rounds {
        let ([call, listener], ended) = thirty_seconds(say);
        assert!(call.len() <= 2 && ended, "{name}, a call: {} GETs, ended: {ended}", call.len());
        assert!((8..=15).contains(&listener.len()), "{name}, a listener: {} GETs", listener.len());
    }
}

// covers: B-019, B-022
#[test]
fn new_ids_without_a_message_resume_15_times_in_30_s() {
    let id = |http: &mut Http, get, n: usize| http.numbered(get, &format!("e{n}"), None, None);
    let ping = |http: &mut Http, get, n: usize| http.numbered(get, &format!("e{n}"), None, Some(&asked()));
    let other = |http: &mut Http, get, n: usize| {
        let data = Data::Other { event: "x".into(), data: Bytes::from_static(b"y") };
        http.item(get, Inbound::Event(SseEvent { id: Some(format!("e{n}")), retry: None, data }));
    };
    let rounds: [Say<'_>; 3] = [&id, &ping, &other];
    for say in rounds {
        let ([call, listener], ended) = thirty_seconds(say);
        assert!((12..=15).contains(&call.len()) && !ended, "a call: {} GETs at {call:?}", call.len());
        assert!((8..=15).contains(&listener.len()), "a listener: {} GETs at {listener:?}", listener.len());
    }
}

// covers: B-019, B-020, B-022
#[test]
fn new_messages_resume_40_times_in_30_s_then_once_a_second() {
    let news = |http: &mut Http, get, n: usize| http.numbered(get, &format!("e{n}"), None, Some(&progress(n)));
    // Some servers give every event the same id, or none.
    let one_id = |http: &mut Http, get, n: usize| http.numbered(get, "0", None, Some(&progress(n)));
    let no_id = |http: &mut Http, get, n: usize| http.event(get, &progress(n));
    let rounds: [Say<'_>; 3] = [&news, &one_id, &no_id];
    for say in rounds {
        let (at, ended) = thirty_seconds(say);
        assert!(!ended);
        for at in at {
            assert!((33..=40).contains(&at.len()), "{} GETs", at.len());
            let last = at.windows(2).map(|pair| pair[1] - pair[0]).skip(9);
            assert!(last.clone().all(|gap| (1000..=1100).contains(&gap)), "{:?}", last.collect::<Vec<_>>());
        }
    }
}

// covers: B-019
#[test]
fn repeated_events_are_found_in_the_last_16() {
    let mut http = Http::legacy(|_| {});
    let (call, _) = cut_call(&mut http, Some(100));
    http.rig.clear();
    let at = pass(&mut http, 60_000, 60_000, &mut |http, get, _, _| {
        round(http, get, |http| {
            for n in 0..16 {
                http.numbered(get, &format!("r{n}"), None, Some(&progress(n)));
            }
        });
    });
    // One round delivers a message, two more deliver none.
    assert_eq!(at.len(), 3);
    assert!(http.rig.has_ended(call));
    let told = http.rig.events.iter().filter(|event| matches!(event, Event::Log { .. })).count();
    assert_eq!(told, 3 * 16);
    let mut http = Http::legacy(|_| {});
    let (call, _) = cut_call(&mut http, Some(100));
    let at = pass(&mut http, 10_000, 10_000, &mut |http, get, _, _| {
        round(http, get, |http| {
            for n in 0..17 {
                http.numbered(get, &format!("r{n}"), None, Some(&progress(n)));
            }
        });
    });
    assert!(at.len() > 8 && !http.rig.has_ended(call), "the first is forgotten when it comes again");
}

// covers: SHTTP-C-018, B-023, S1-02
#[test]
fn polling_with_messages_is_at_most_1200_ms_behind() {
    let mut http = Http::legacy(|config| config.compat.listener = NEVER);
    let (call, id) = cut_call(&mut http, Some(1000));
    let (mut told, mut seen) = (0, vec![]);
    pass(&mut http, 602_000, 602_000, &mut |http, get, _, now| {
        round(http, get, |http| {
            while told < 1000 && told * 600 <= now {
                seen.push(now - told * 600);
                told += 1;
                http.numbered(get, &format!("e{told}"), None, Some(&progress(told as usize)));
            }
            if now >= 600_000 {
                seen.push(now - 600_000);
                http.numbered(get, "last", None, Some(&result(&id)));
            }
        });
    });
    assert!(http.rig.outcome(call).is_ok());
    assert_eq!(seen.len(), 1001);
    assert!(seen.iter().all(|behind| *behind <= 1200), "{} ms behind", seen.iter().max().unwrap());
}

// covers: SHTTP-C-018, B-023
#[test]
fn polling_without_messages_delivers_within_6_s() {
    for ready in (500..30_000).step_by(500) {
        let mut http = Http::legacy(|_| {});
        let (call, id) = cut_call(&mut http, Some(1000));
        let mut seen = 0;
        pass(&mut http, ready + 10_000, ready + 10_000, &mut |http, get, n, now| {
            round(http, get, |http| {
                if now < ready {
                    http.numbered(get, &format!("e{n}"), None, None);
                } else {
                    seen = now;
                    http.numbered(get, "last", None, Some(&result(&id)));
                }
            });
        });
        assert!(http.rig.outcome(call).is_ok());
        assert!(seen - ready <= 6000, "ready at {ready} ms, seen at {seen} ms");
    }
    // A result after 20 s arrives within the default timeout.
    let mut http = Http::legacy(|_| {});
    let call = http.rig.echo();
    let (exchange, id) = http.last();
    http.stream(exchange);
    http.numbered(exchange, "0", Some(1000), None);
    http.item(exchange, Inbound::End);
    pass(&mut http, 40_000, 40_000, &mut |http, get, n, now| {
        let answer = result(&id);
        round(http, get, |http| http.numbered(get, &format!("e{n}"), None, (now > 20_000).then_some(&answer)));
    });
    assert!(http.rig.outcome(call).is_ok());
}

// covers: B-029, B-023
#[test]
fn listener_cut_after_each_event_is_at_most_2_s_behind() {
    const EVERY: u64 = 2000;
    let mut http = Http::legacy(|_| {});
    cut_listener(&mut http, 1000);
    let (mut sent, mut seen, mut open): (u64, _, Option<ExchangeId>) = (0, vec![], None);
    let began = http.rig.now;
    let mut send = |http: &mut Http, get: ExchangeId, now: u64| {
        while (sent + 1) * EVERY <= now {
            sent += 1;
            seen.push(now - sent * EVERY);
            http.numbered(get, &format!("e{sent}"), None, Some(&progress(sent as usize)));
        }
        seen.len()
    };
    while http.rig.now.since(began) < ms(3_600_000) {
        let offset = http.rig.now.since(began).as_millis() as u64;
        pass(&mut http, 20, 20, &mut |http, get, _, now| {
            http.stream(get);
            open = Some(get);
            let before = send(http, get, 0);
            if send(http, get, offset + now) > before {
                http.item(get, Inbound::End);
                open = None;
            }
        });
        let now = http.rig.now.since(began).as_millis() as u64;
        if let Some(get) = open {
            let before = send(&mut http, get, 0);
            if send(&mut http, get, now) > before {
                http.item(get, Inbound::End);
                open = None;
            }
        }
    }
    assert!(seen.len() >= 1799, "{} events", seen.len());
    assert!(seen.iter().all(|behind| *behind <= 2000), "{} ms behind", seen.iter().max().unwrap());
    assert!(!http.rig.events.iter().any(|event| matches!(event, Event::ListenerLost { .. })));
}

// covers: B-019, B-023
#[test]
fn round_of_ten_seconds_resets_the_doubling() {
    for (open, waited) in [(9_900, 1000..=1100), (10_000, 50..=55)] {
        let mut http = Http::legacy(|_| {});
        let (call, _) = cut_call(&mut http, Some(50));
        pass(&mut http, 6000, 6000, &mut |http, get, n, _| {
            round(http, get, |http| http.numbered(get, &format!("e{n}"), None, Some(&progress(n))));
        });
        // The next round stays open.
        let mut held = None;
        let at = pass(&mut http, 1100, 1100, &mut |http, get, _, _| {
            http.stream(get);
            http.numbered(get, "held", None, Some(&progress(9)));
            held = Some(get);
        });
        let get = held.unwrap();
        http.rig.tick(ms(open - (1100 - at[0])));
        http.item(get, Inbound::End);
        let wait = http.waits().pop().unwrap();
        assert!(waited.contains(&wait), "{wait} ms after {open} ms");
        assert!(!http.rig.has_ended(call));
    }
}

// covers: S1-08, S1-11, S1-13, R-04
#[test]
fn strict_policy_ends_a_call_after_two_attempts() {
    for delivers in [true, false] {
        let mut http = Http::legacy(|config| config.resume = Resume::Strict(2));
        let (call, _) = cut_call(&mut http, Some(100));
        let at = pass(&mut http, 30_000, 30_000, &mut |http, get, n, _| {
            let news = progress(n);
            round(http, get, |http| http.numbered(get, &format!("e{n}"), None, delivers.then_some(&news)));
        });
        assert_eq!(at, [100, 200]);
        assert!(matches!(http.rig.outcome(call), Err(CallError::NoResponse { attempts: 2, .. })));
    }
}

// covers: B-020, S1-06
#[test]
fn attempt_is_reported_with_wait_cause_and_last_event() {
    let mut http = Http::legacy(|_| {});
    let (call, _) = cut_call(&mut http, None);
    pass(&mut http, 5000, 5000, &mut |http, get, n, _| match n {
        1 => http.refuse(get, 503),
        _ => round(http, get, |http| http.numbered(get, &format!("e{n}"), None, Some(&progress(n)))),
    });
    let told = http.rig.events.iter().filter_map(|event| match event {
        Event::Reconnecting { stream, attempt, wait, cause, last_event } => {
            assert_eq!(*stream, StreamOf::Call(call));
            assert!((1000..=1100).contains(&wait.as_millis()), "{wait:?}");
            Some((*attempt, cause.clone(), last_event.clone().unwrap()))
        }
        _ => None,
    });
    let told: Vec<_> = told.take(4).collect();
    let after = |attempt, cause, id: &str| (attempt, cause, id.to_string());
    assert_eq!(
        told[..2],
        [after(1, StreamEnd::Ended, "0"), after(2, StreamEnd::Status { status: 503, retry_after: None }, "0")]
    );
    assert_eq!(told[2..], [after(1, StreamEnd::Ended, "e2"), after(1, StreamEnd::Ended, "e3")]);
}

// covers: B-028
#[test]
fn stream_is_not_resumed_from_an_oversized_event_id() {
    let long = "x".repeat(1025);
    let mut http = Http::legacy(|_| {});
    let call = http.rig.call(tools::call("x").timeout(None));
    let exchange = http.last().0;
    http.stream(exchange);
    http.numbered(exchange, "0", Some(10), None);
    http.numbered(exchange, &long, None, Some(&progress(1)));
    assert_eq!(http.rig.diagnostics(), [DiagnosticKind::LongEventId]);
    http.item(exchange, Inbound::End);
    assert!(matches!(http.rig.outcome(call), Err(CallError::NoResponse { attempts: 0, .. })));
    // An id of the maximum size is sent back, and a listener begins without.
    for (id, sent) in [("x".repeat(1024), Some("x".repeat(1024))), (long, None)] {
        let mut http = Http::legacy(|_| {});
        let listener = http.rig.starts.last().unwrap().0;
        http.numbered(listener, "0", Some(10), None);
        http.numbered(listener, &id, None, Some(&progress(1)));
        http.item(listener, Inbound::End);
        pass(&mut http, 100, 100, &mut |http, get, _, _| http.stream(get));
        let (_, head, ..) = http.posts().pop().unwrap();
        assert_eq!(head.headers.get("last-event-id").map(ToString::to_string), sent);
    }
}
