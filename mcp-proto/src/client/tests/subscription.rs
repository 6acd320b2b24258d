//! The subscription to tool list changes on a duplex connection.

use super::*;
use crate::error::StreamEnd;

/// Messages of a server about a subscription.
type Says<'a> = &'a dyn Fn(&Value) -> Vec<Value>;

/// A step of a test, with the id of the subscription.
type Step<'a> = &'a dyn Fn(&mut Rig, &Value);

const ID: &str = "io.modelcontextprotocol/subscriptionId";

/// The probe result of a modern server with tools. `told` is its `listChanged` capability.
pub(super) fn hello(told: bool) -> Value {
    let mut hello = discover(&["2026-07-28"]);
    hello["capabilities"] = json!({"tools": {"listChanged": told}});
    hello
}

/// A notification of the subscription with this id.
pub(super) fn told(method: &str, id: &Value) -> Value {
    json!({"jsonrpc": "2.0", "method": method, "params": {"_meta": {ID: id}}})
}

pub(super) fn changed(id: &Value) -> Value {
    told("notifications/tools/list_changed", id)
}

/// The acknowledgement with this filter.
pub(super) fn acknowledged(id: &Value, filter: Value) -> Value {
    let mut ack = told("notifications/subscriptions/acknowledged", id);
    ack["params"]["notifications"] = filter;
    ack
}

pub(super) fn yes(id: &Value) -> Value {
    acknowledged(id, json!({"toolsListChanged": true}))
}

/// The closing result.
pub(super) fn closing(id: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": {"resultType": "complete", "_meta": {ID: id}}})
}

pub(super) fn changes(rig: &Rig) -> usize {
    rig.events.iter().filter(|event| **event == Event::Changed(Change::Tools)).count()
}

pub(super) fn lost(rig: &Rig) -> Vec<(StreamEnd, Option<u64>)> {
    let lost = |event: &Event| match event {
        Event::ListenerLost { cause, again, ends_session: false } => {
            Some((cause.clone(), again.map(|wait| wait.as_secs())))
        }
        _ => None,
    };
    rig.events.iter().filter_map(lost).collect()
}

fn listens(rig: &Rig) -> usize {
    rig.methods().iter().filter(|method| **method == "subscriptions/listen").count()
}

/// A client of a program that watches tools, after the probe. Returns it with the id of the
/// subscription.
fn watching(set: impl FnOnce(&mut ClientConfig)) -> (Rig, Value) {
    let mut config = ClientConfig { watch: Watch::new().with_tools(), ..ClientConfig::program(Program::new("server")) };
    set(&mut config);
    let mut rig = Rig::new(config);
    rig.open();
    let id = rig.last_id();
    rig.answer(&id, hello(true));
    let id = rig.last_id();
    (rig, id)
}

/// Like [`watching`], with an acknowledged subscription.
fn subscribed() -> (Rig, Value) {
    let (mut rig, id) = watching(|_| {});
    rig.say(yes(&id));
    (rig, id)
}

// covers: SUB-C-002, SUB-C-007
#[test]
fn subscription_opens_only_if_enabled_and_supported() {
    let (rig, id) = watching(|_| {});
    assert_eq!(rig.methods(), ["server/discover", "subscriptions/listen"]);
    let listen = rig.sent.last().unwrap();
    assert_eq!((&listen["id"], &listen["params"]["notifications"]), (&id, &json!({"toolsListChanged": true})));
    assert_eq!(listen["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
    for (wanted, told) in [(false, true), (true, false), (false, false)] {
        let mut rig =
            Rig::new(ClientConfig { watch: Watch { tools: wanted, ..Watch::new() }, ..ClientConfig::given() });
        rig.open();
        let id = rig.last_id();
        rig.answer(&id, hello(told));
        assert_eq!((rig.client.state(), listens(&rig)), (State::Ready, 0));
    }
    // Older servers send changes without a subscription.
    let mut rig = Rig::ready(
        ProtocolVersion::V2025_11_25,
        ClientConfig { watch: Watch::new().with_tools(), ..ClientConfig::given() },
    );
    rig.say(json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}));
    assert_eq!((listens(&rig), changes(&rig)), (0, 1));
}

// covers: SUB-C-009, STDIO-C-011, SUB-B-005, B-226
#[test]
fn only_acknowledged_changes_of_the_subscription_count() {
    let (mut rig, id) = watching(|_| {});
    let text = json!(id.to_string());
    let before = [
        // Before the acknowledgement, of another subscription, with another id type, and without a
        // subscription.
        changed(&id),
        yes(&json!(99)),
        yes(&text),
        changed(&json!(99)),
        json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}),
        json!({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged"}),
    ];
    for (n, message) in before.into_iter().enumerate() {
        rig.say(message.clone());
        assert_eq!(rig.diagnostics(), vec![DiagnosticKind::BadSubscription; n + 1], "{message}");
    }
    assert_eq!(changes(&rig), 0);
    rig.clear();
    rig.say(yes(&id));
    assert_eq!(
        (changes(&rig), rig.diagnostics()),
        (0, vec![]),
        "there was nothing before it that could have been missed"
    );
    rig.say(changed(&id));
    assert_eq!((changes(&rig), rig.diagnostics()), (1, vec![]));
    let after = [
        yes(&id),
        changed(&text),
        changed(&json!(99)),
        // It was not requested.
        told("notifications/prompts/list_changed", &id),
        told("notifications/resources/updated", &id),
        told("notifications/resources/list_changed", &json!(99)),
    ];
    for (n, message) in after.into_iter().enumerate() {
        rig.say(message.clone());
        assert_eq!(rig.diagnostics(), vec![DiagnosticKind::BadSubscription; n + 1], "{message}");
    }
    assert_eq!(changes(&rig), 1);
    assert!(!rig.events.iter().any(|event| matches!(event, Event::Notification { .. })));
    // Messages without a subscription are handled as usual.
    rig.say(json!({"jsonrpc": "2.0", "method": "acme/note", "params": {"level": "info", "data": 1}}));
    assert!(matches!(rig.events.last(), Some(Event::Notification { method, .. }) if method == "acme/note"));
}

// covers: SUB-C-010, SUB-C-009, SUB-B-005, STDIO-C-011
#[test]
fn subscription_of_the_application_is_independent() {
    let (mut rig, ours) = subscribed();
    let filter = json!({"notifications": {"toolsListChanged": true, "promptsListChanged": true}});
    rig.call(custom::<Value>("subscriptions/listen", &filter));
    let theirs = rig.last_id();
    rig.say(acknowledged(&theirs, json!({"promptsListChanged": true})));
    rig.say(told("notifications/prompts/list_changed", &theirs));
    rig.say(changed(&ours));
    rig.say(changed(&theirs));
    let notes: Vec<&str> = rig
        .events
        .iter()
        .filter_map(|event| match event {
            Event::Notification { method, .. } => Some(&**method),
            _ => None,
        })
        .collect();
    assert_eq!(
        notes,
        [
            "notifications/subscriptions/acknowledged",
            "notifications/prompts/list_changed",
            "notifications/tools/list_changed"
        ]
    );
    assert_eq!((changes(&rig), rig.diagnostics()), (1, vec![]));
}

// covers: SUB-C-007, SUB-C-011, B-226
#[test]
fn reduced_acknowledgement_cancels_the_subscription() {
    for filter in [json!({}), json!({"toolsListChanged": false}), json!({"promptsListChanged": true}), json!(7)] {
        let (mut rig, id) = watching(|_| {});
        rig.say(acknowledged(&id, filter.clone()));
        assert_eq!(rig.diagnostics(), [DiagnosticKind::BadSubscription], "{filter}");
        let cancelled = rig.sent.last().unwrap();
        assert_eq!((&cancelled["method"], &cancelled["params"]["requestId"]), (&json!("notifications/cancelled"), &id));
        rig.tick(Duration::from_secs(3600));
        assert_eq!(listens(&rig), 1, "it is not asked again");
        rig.say(changed(&id));
        assert_eq!(changes(&rig), 0);
        rig.assert_at_rest();
    }
}

// covers: R-30, B-223, B-225, SUB-C-013
#[test]
fn ended_subscription_is_opened_again_after_a_wait() {
    let cancelled =
        |id: &Value| json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}});
    let ways: [Says<'_>; 4] =
        [&|id| vec![closing(id)], &|id| vec![cancelled(id)], &|id| vec![closing(id), cancelled(id)], &|id| {
            vec![cancelled(id), closing(id)]
        }];
    for way in ways {
        let (mut rig, id) = subscribed();
        let call = rig.echo();
        for message in way(&id) {
            rig.say(message);
        }
        assert_eq!(rig.diagnostics(), [], "all of it is legal");
        assert!(matches!(
            rig.events.last(),
            Some(Event::Reconnecting { stream: StreamOf::Listener, attempt: 1, cause: StreamEnd::Ended, .. })
        ));
        assert_eq!(listens(&rig), 1, "not at once");
        rig.tick(ms(1100));
        assert_eq!(listens(&rig), 2);
        let again = rig.last_id();
        assert_ne!(again, id);
        assert_eq!(changes(&rig), 0);
        rig.say(yes(&again));
        assert_eq!(changes(&rig), 1, "what happened meanwhile is not known");
        rig.say(changed(&id));
        assert_eq!((changes(&rig), rig.diagnostics()), (1, vec![DiagnosticKind::BadSubscription]));
        assert!(!rig.has_ended(call), "no call is touched");
    }
    // A cancellation of another request keeps its meaning.
    let (mut rig, _) = subscribed();
    rig.say(cancelled(&json!(99)));
    assert_eq!(rig.diagnostics(), [DiagnosticKind::UnknownCancel]);
}

// covers: B-225, SUB-C-013
#[test]
fn subscription_is_retried_forever_with_backoff() {
    let (mut rig, mut id) = watching(|_| {});
    let (mut times, mut seen) = (vec![], 1);
    for _ in 0..1200 {
        rig.tick(ms(100));
        if listens(&rig) > seen {
            (id, seen) = (rig.last_id(), listens(&rig));
            times.push(rig.now);
        }
        if !rig.sent.is_empty() && seen > 0 && rig.client.cx.env.ids.pending() == 1 {
            rig.say(error(&id, -32603));
        }
    }
    assert!((7..=11).contains(&seen), "{seen} attempts in two minutes");
    let [(StreamEnd::Error(e), Some(30))] = &lost(&rig)[..] else { panic!("{:?}", lost(&rig)) };
    assert_eq!(e.code, -32603);
    // A successful attempt ends the backoff, and the next end is reported again.
    while rig.client.cx.env.ids.pending() == 0 {
        rig.tick(ms(100));
    }
    id = rig.last_id();
    rig.say(yes(&id));
    assert_eq!(changes(&rig), 1, "nobody would have told of a change before");
    for _ in 0..600 {
        if rig.client.cx.env.ids.pending() == 1 {
            id = rig.last_id();
            rig.say(error(&id, -32603));
        }
        rig.tick(ms(100));
    }
    assert_eq!(lost(&rig).len(), 2);
    rig.client.close(rig.now);
    rig.drain();
    rig.assert_at_rest();
}

// covers: B-209, SUB-C-013
#[test]
fn unsupported_subscription_is_not_retried() {
    for code in [-32601, -32600, -32602, -32020, -32021, -32022] {
        let (mut rig, id) = watching(|_| {});
        rig.say(error(&id, code));
        assert_eq!(rig.diagnostics(), [DiagnosticKind::ListenerOff], "{code}");
        rig.tick(Duration::from_secs(3600));
        assert_eq!((listens(&rig), lost(&rig)), (1, vec![]));
        assert_eq!(rig.client.state(), State::Ready);
        rig.assert_at_rest();
    }
    // A server that supported it before is asked again, regardless of the error.
    let (mut rig, id) = subscribed();
    rig.say(closing(&id));
    rig.tick(ms(1100));
    let id = rig.last_id();
    rig.say(error(&id, -32601));
    rig.tick(Duration::from_secs(60));
    assert_eq!(listens(&rig), 3);
    // An unreadable result is an end as well.
    let (mut rig, id) = subscribed();
    rig.say(json!({"jsonrpc": "2.0", "id": id, "result": {}, "error": {}}));
    rig.tick(ms(1100));
    assert_eq!(listens(&rig), 2);
}

// covers: TIME-B-001, SUB-C-011, B-225
#[test]
fn only_the_acknowledgement_has_a_timeout() {
    let (mut rig, id) = subscribed();
    rig.tick(Duration::from_secs(1 << 30));
    rig.say(changed(&id));
    assert_eq!((changes(&rig), listens(&rig)), (1, 1));
    assert_eq!(rig.client.poll_timeout(), None);

    let (mut rig, id) = watching(|_| {});
    rig.tick(ms(29_999));
    assert_eq!(rig.methods().len(), 2);
    rig.tick(ms(1));
    let cancelled = rig.sent.last().unwrap();
    assert_eq!((&cancelled["method"], &cancelled["params"]["requestId"]), (&json!("notifications/cancelled"), &id));
    assert!(matches!(rig.events.last(), Some(Event::Reconnecting { cause: StreamEnd::Idle, .. })));
    rig.say(yes(&id));
    assert_eq!(rig.diagnostics(), [DiagnosticKind::BadSubscription]);
    rig.tick(ms(1100));
    assert_eq!(listens(&rig), 2);
}

// covers: B-105, SUB-C-011
#[test]
fn subscription_ends_with_the_client() {
    let steps: [Step<'_>; 3] = [&|_, _| {}, &|rig, id| rig.say(yes(id)), &|rig, id| rig.say(closing(id))];
    for (step, is_open) in steps.into_iter().zip([true, true, false]) {
        let (mut rig, id) = watching(|_| {});
        step(&mut rig, &id);
        rig.clear();
        rig.client.close(rig.now);
        rig.drain();
        let told: Vec<&Value> = rig.sent.iter().map(|message| &message["params"]["requestId"]).collect();
        assert_eq!(
            (rig.methods(), told),
            if is_open { (vec!["notifications/cancelled"], vec![&id]) } else { (vec![], vec![]) }
        );
        let sent = rig.sent.len();
        rig.say(changed(&id));
        rig.tick(Duration::from_secs(60));
        rig.handle_event(rig.exchange(), ExchangeEvent::Failed { sent: Sent::Maybe, why: Closed::Eof });
        assert_eq!((rig.sent.len(), changes(&rig)), (sent, 0));
        assert!(rig.termination().is_some());
        rig.assert_at_rest();
    }
    // It also ends with the output of the server.
    let (mut rig, id) = subscribed();
    rig.handle_event(rig.exchange(), ExchangeEvent::Inbound(Inbound::End));
    rig.say(changed(&id));
    assert_eq!((changes(&rig), rig.client.cx.env.ids.pending()), (0, 0));
}
