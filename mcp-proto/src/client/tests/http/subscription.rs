//! The subscription to tool list changes over HTTP: one POST whose event stream stays open.

use super::super::subscription::{acknowledged, changed, changes, closing, hello, lost, told, yes};
use super::*;
use crate::error::StreamEnd;

/// Ends a subscription.
type End<'a> = &'a dyn Fn(&mut Http, ExchangeId, &Value);

/// A client that watches tools. The last exchange is the request for the subscription.
pub(super) fn watching(set: impl FnOnce(&mut ClientConfig)) -> Http {
    let mut http = Http::with(|config| {
        config.watch.tools = true;
        set(config);
    });
    let (exchange, id) = http.last();
    http.answer(exchange, 200, &json!({"jsonrpc": "2.0", "id": id, "result": hello(true)}));
    http.rig.clear();
    http
}

/// Like [`watching`], with an open and acknowledged subscription. Returns its exchange and id.
fn subscribed(set: impl FnOnce(&mut ClientConfig)) -> (Http, ExchangeId, Value) {
    let mut http = watching(set);
    let (exchange, id) = http.last();
    http.stream(exchange);
    http.event(exchange, &yes(&id));
    (http, exchange, id)
}

/// Returns the number of subscription requests.
fn listens(http: &Http) -> usize {
    http.posts().iter().filter(|post| post.2["method"] == "subscriptions/listen").count()
}

// covers: SUB-C-002, SUB-C-009, B-226
#[test]
fn only_changes_on_the_subscription_stream_count() {
    let mut http = watching(|_| {});
    let call = http.rig.echo();
    let (other, other_id) = http.last();
    let (exchange, head, body, repeatable) = http.posts()[1].clone();
    assert_eq!((head.headers.get("mcp-method"), repeatable), (Some("subscriptions/listen"), true));
    assert_eq!(body["params"]["notifications"], json!({"toolsListChanged": true}));
    let id = &body["id"];
    http.stream(exchange);
    http.stream(other);
    for (on, message) in [
        (exchange, changed(id)),
        (exchange, yes(&other_id)),
        (exchange, acknowledged(&json!(7), json!({"toolsListChanged": true}))),
        (other, yes(id)),
    ] {
        http.event(on, &message);
    }
    assert_eq!(http.rig.diagnostics(), [DiagnosticKind::BadSubscription; 4]);
    http.event(exchange, &yes(id));
    http.event(other, &changed(id));
    http.event(exchange, &told("notifications/prompts/list_changed", id));
    assert_eq!((changes(&http.rig), http.rig.diagnostics().len()), (0, 6));
    http.event(exchange, &changed(id));
    assert_eq!((changes(&http.rig), http.rig.diagnostics().len()), (1, 6));
    assert!(!http.rig.has_ended(call));
}

// covers: SUB-C-007, SUB-C-011, B-222
#[test]
fn reduced_acknowledgement_closes_the_stream() {
    let mut http = watching(|_| {});
    let (exchange, id) = http.last();
    http.stream(exchange);
    http.event(exchange, &acknowledged(&id, json!({"promptsListChanged": true})));
    assert_eq!(
        (http.rig.aborted.clone(), http.rig.diagnostics()),
        (vec![exchange], vec![DiagnosticKind::BadSubscription])
    );
    http.rig.tick(Duration::from_secs(3600));
    assert_eq!(http.posts().len(), 2, "closing is the signal, and it is not asked again");
    http.assert_at_rest();
}

// covers: SUB-C-010, SUB-C-014
#[test]
fn replaced_stream_may_have_held_a_change() {
    let mut http = Http::with(|config| config.watch.tools = true);
    let (exchange, id) = http.last();
    let mut hello = hello(true);
    hello["capabilities"]["resources"] = json!({"subscribe": true});
    http.answer(exchange, 200, &json!({"jsonrpc": "2.0", "id": id, "result": hello}));
    http.rig.clear();
    let (old, id) = http.last();
    http.stream(old);
    http.event(old, &yes(&id));
    assert_eq!(changes(&http.rig), 0);
    let now = http.rig.now;
    http.rig.client.watch(now, Watch::new().with_tools().with_uri("a:1")).unwrap();
    http.rig.drain();
    let (new, id) = http.last();
    http.stream(new);
    // The streams have no order: a change from before this may be on its way on the old one.
    http.event(new, &acknowledged(&id, json!({"toolsListChanged": true, "resourceSubscriptions": ["a:1"]})));
    assert_eq!((http.rig.aborted.clone(), changes(&http.rig)), (vec![old], 1));
    let is_of_resource = |event: &Event| matches!(event, Event::Changed(Change::Resource(_)));
    assert!(!http.rig.events.iter().any(is_of_resource), "it was not watched before");
}

// covers: B-209, B-200, SUB-C-013
#[test]
fn unsupported_subscription_is_not_retried_over_http() {
    for (status, code) in [(404, None), (404, Some(-32601)), (400, Some(-32602)), (405, None), (403, None), (500, None)]
    {
        let mut http = watching(|_| {});
        let (exchange, id) = http.last();
        let call = http.rig.echo();
        match code {
            Some(code) => http.answer(exchange, status, &error(&id, code)),
            None => http.refuse(exchange, status),
        }
        assert_eq!(
            (http.rig.client.state(), http.rig.diagnostics()),
            (State::Ready, vec![DiagnosticKind::ListenerOff])
        );
        http.rig.tick(ms(29_999));
        assert_eq!((listens(&http), lost(&http.rig)), (1, vec![]), "{status}");
        assert!(!http.rig.has_ended(call));
    }
}

// covers: B-225, SUB-C-013, B-223
#[test]
fn broken_subscription_is_reopened_and_reports_one_change() {
    let ways: [(End<'_>, StreamEnd); 4] = [
        (
            &|http, exchange, id| {
                http.event(exchange, &closing(id));
                http.item(exchange, Inbound::End);
            },
            StreamEnd::Ended,
        ),
        (&|http, exchange, _| http.item(exchange, Inbound::End), StreamEnd::Ended),
        (
            &|http, exchange, _| {
                http.rig.handle_event(exchange, ExchangeEvent::Failed { sent: Sent::Maybe, why: Closed::Reset })
            },
            StreamEnd::Closed(Closed::Reset),
        ),
        (
            &|http, exchange, _| {
                http.rig.tick(Duration::from_secs(300));
                assert_eq!(http.rig.aborted, [exchange]);
            },
            StreamEnd::Idle,
        ),
    ];
    for (end, told) in ways {
        let (mut http, exchange, id) = subscribed(|_| {});
        let call = http.rig.call(tools::call("x").timeout(None));
        end(&mut http, exchange, &id);
        let found = http.rig.events.iter().rev().find_map(|event| match event {
            Event::Reconnecting { stream: StreamOf::Listener, cause, last_event: None, .. } => Some(cause.clone()),
            _ => None,
        });
        assert_eq!(found, Some(told));
        assert_eq!(listens(&http), 1);
        http.rig.tick(ms(1100));
        let (again, new) = http.last();
        assert_eq!(listens(&http), 2);
        assert_ne!(new, id);
        http.stream(again);
        assert_eq!(changes(&http.rig), 0);
        http.event(again, &yes(&new));
        assert_eq!(changes(&http.rig), 1);
        assert!(!http.rig.has_ended(call));
    }
}

// covers: B-225
#[test]
fn subscription_refused_for_a_time_is_not_opened_before_it() {
    let (mut http, exchange, _) = subscribed(|_| {});
    http.item(exchange, Inbound::End);
    for wait in [1100, 66_000] {
        http.rig.tick(ms(wait));
        http.put_off(http.last().0, 60);
    }
    let told = lost(&http.rig);
    assert!(matches!(&told[..], [(cause, Some(60))] if cause.to_string() == "HTTP 503 [retry after 60 s]"), "{told:?}");
    http.rig.tick(ms(59_999));
    assert_eq!(listens(&http), 3);
    http.rig.tick(ms(1));
    assert_eq!(listens(&http), 4);
}

/// The client ends the old one, since a server may allow only one, and waits.
// covers: B-225, SUB-C-010
#[test]
fn replacement_refused_for_a_time_is_not_sent_before_it() {
    let mut http = Http::with(|config| config.watch.tools = true);
    let (exchange, id) = http.last();
    let mut hello = hello(true);
    hello["capabilities"]["resources"] = json!({"subscribe": true});
    http.answer(exchange, 200, &json!({"jsonrpc": "2.0", "id": id, "result": hello}));
    let (old, id) = http.last();
    http.stream(old);
    http.event(old, &yes(&id));
    let now = http.rig.now;
    http.rig.client.watch(now, Watch::new().with_tools().with_uri("a:1")).unwrap();
    http.rig.drain();
    http.put_off(http.last().0, 60);
    assert_eq!((http.rig.aborted.clone(), listens(&http)), (vec![old], 2));
    let wait = *http.waits().last().unwrap();
    assert!((60_000..=66_000).contains(&wait), "{wait}");
    http.rig.tick(ms(wait - 1));
    assert_eq!(listens(&http), 2);
    http.rig.tick(ms(1));
    assert_eq!(listens(&http), 3);
    let (new, id) = http.last();
    http.stream(new);
    http.event(new, &acknowledged(&id, json!({"toolsListChanged": true, "resourceSubscriptions": ["a:1"]})));
    assert_eq!(changes(&http.rig), 1, "it may have missed one meanwhile");
}

// covers: B-225
#[test]
fn late_subscription_may_have_missed_a_change() {
    let mut http = watching(|_| {});
    http.refuse(http.last().0, 503);
    http.rig.tick(ms(1100));
    let (exchange, id) = http.last();
    http.stream(exchange);
    http.event(exchange, &yes(&id));
    assert_eq!((listens(&http), changes(&http.rig)), (2, 1));
}

// covers: B-225, B-020
#[test]
fn lost_subscription_is_reported_once_and_retried() {
    let mut http = watching(|_| {});
    let mut seen = 1;
    for _ in 0..1200 {
        if listens(&http) == seen {
            let exchange = http.last().0;
            match seen % 3 {
                0 => http.refuse(exchange, 503),
                1 => http.rig.handle_event(exchange, ExchangeEvent::Failed { sent: Sent::No, why: Closed::Refused }),
                _ => {
                    http.stream(exchange);
                    http.item(exchange, Inbound::End);
                }
            }
            seen += 1;
        }
        http.rig.tick(ms(100));
    }
    assert!((7..=12).contains(&seen), "{seen}");
    assert_eq!(lost(&http.rig), [(StreamEnd::Ended, Some(30))]);
    assert_eq!(http.rig.client.state(), State::Ready);
    http.rig.client.close(http.rig.now);
    http.rig.drain();
    http.assert_at_rest();
}

// covers: S1-13, B-023
#[test]
fn retry_time_of_the_server_is_respected() {
    let waited = |end: &dyn Fn(&mut Http, ExchangeId, &Value)| {
        let (mut http, exchange, id) = subscribed(|_| {});
        end(&mut http, exchange, &id);
        let mut waited = 0;
        while listens(&http) == 1 && waited < 100_000 {
            http.rig.tick(ms(100));
            waited += 100;
        }
        waited
    };
    let named = waited(&|http, exchange, _| {
        http.item(exchange, Inbound::Event(SseEvent { id: None, retry: Some(ms(7_000)), data: Data::None }));
        http.item(exchange, Inbound::End);
    });
    assert!((7_000..=7_700).contains(&named), "{named}");
    let mut http = watching(|_| {});
    let exchange = http.last().0;
    let headers = Headers::new().with("retry-after", "12");
    http.item(exchange, Inbound::Response(ResponseHead { status: 503, headers }));
    http.item(exchange, Inbound::End);
    http.rig.tick(ms(11_999));
    assert_eq!(listens(&http), 1);
    http.rig.tick(ms(1201));
    assert_eq!(listens(&http), 2);
}

// covers: TIME-B-001, SUB-C-011, B-164
#[test]
fn subscription_ends_only_by_silence_or_missing_parts() {
    let (mut http, exchange, id) = subscribed(|_| {});
    for _ in 0..100 {
        http.rig.tick(Duration::from_secs(290));
        http.item(exchange, Inbound::Comment);
    }
    http.event(exchange, &changed(&id));
    assert_eq!((listens(&http), changes(&http.rig)), (1, 1));
    // No head, and a head without an acknowledgement. Comments do not replace the latter.
    for head in [false, true] {
        let mut http = watching(|_| {});
        let exchange = http.last().0;
        if head {
            http.stream(exchange);
        }
        http.rig.tick(ms(29_999));
        if head {
            http.item(exchange, Inbound::Comment);
        }
        assert!(http.rig.aborted.is_empty());
        http.rig.tick(ms(1));
        assert_eq!(http.rig.aborted, [exchange]);
        http.rig.tick(ms(1100));
        assert_eq!((listens(&http), http.lines(2).len()), (2, 1), "and nothing else is sent");
    }
}

// covers: B-105, SUB-C-011
#[test]
fn http_subscription_ends_with_the_client() {
    let (mut http, exchange, id) = subscribed(|_| {});
    http.rig.client.close(http.rig.now);
    http.rig.drain();
    assert_eq!((http.rig.aborted.clone(), http.posts().len()), (vec![exchange], 2));
    assert!(http.rig.termination().is_some());
    http.event(exchange, &changed(&id));
    http.rig.tick(Duration::from_secs(3600));
    assert_eq!(changes(&http.rig), 0);
    http.assert_at_rest();
    // Also between two attempts.
    let (mut http, exchange, _) = subscribed(|_| {});
    http.item(exchange, Inbound::End);
    http.rig.client.close(http.rig.now);
    http.rig.drain();
    http.rig.tick(Duration::from_secs(3600));
    assert_eq!(listens(&http), 1);
    http.assert_at_rest();
}
