//! What the application watches: the whole set, in both eras, through new sessions.

use super::http::Http;
use super::subscription::{acknowledged, closing, told};
use super::*;
use crate::model::logging::LogLevel;

const LISTS: [&str; 3] =
    ["notifications/tools/list_changed", "notifications/prompts/list_changed", "notifications/resources/list_changed"];

/// The capabilities of a server that announces everything.
pub(super) fn announcing() -> Value {
    json!({
        "tools": {"listChanged": true}, "prompts": {"listChanged": true},
        "resources": {"subscribe": true, "listChanged": true}, "logging": {},
    })
}

fn all(uris: &[&str]) -> Watch {
    let lists = Watch::new().with_tools().with_prompts().with_resources();
    uris.iter().fold(lists, |watch, uri| watch.with_uri(*uri))
}

/// The filter of a subscription to everything.
fn full(uris: &[&str]) -> Value {
    let mut filter = json!({"toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true});
    if !uris.is_empty() {
        filter["resourceSubscriptions"] = json!(uris);
    }
    filter
}

/// Lets the server answer the handshake of the last exchange with these capabilities.
pub(super) fn greet(rig: &mut Rig, version: &str, capabilities: &Value) {
    rig.open();
    let id = rig.last_id();
    let mut hello = if version == "2026-07-28" { discover(&[version]) } else { initialized(version) };
    hello["capabilities"] = capabilities.clone();
    rig.answer(&id, hello);
    assert_eq!(rig.client.state(), State::Ready);
}

/// A client of a program that announces everything, after negotiation.
fn watching(version: ProtocolVersion, watch: Watch) -> Rig {
    let mut config = ClientConfig { watch, ..ClientConfig::program(Program::new("s")) };
    config.versions = Versions::new([version]);
    let mut rig = Rig::new(config);
    greet(&mut rig, version.as_str(), &announcing());
    rig
}

fn legacy(watch: Watch) -> Rig {
    watching(ProtocolVersion::V2025_11_25, watch)
}

fn modern(watch: Watch) -> Rig {
    watching(ProtocolVersion::V2026_07_28, watch)
}

fn set(rig: &mut Rig, watch: Watch) {
    rig.client.watch(rig.now, watch).unwrap();
    rig.drain();
}

/// Returns the requests about resources that have no response yet: the method, the URI and the id.
fn asked(rig: &Rig) -> Vec<(String, String, Value)> {
    let about = |message: &Value| {
        let method = message["method"].as_str().filter(|method| method.starts_with("resources/"))?;
        Some((method.into(), message["params"]["uri"].as_str()?.into(), message["id"].clone()))
    };
    rig.sent.iter().filter_map(about).collect()
}

fn subscribed(rig: &Rig) -> Vec<String> {
    asked(rig)
        .into_iter()
        .map(|(method, uri, _)| format!("{} {uri}", method.trim_start_matches("resources/")))
        .collect()
}

/// The server accepts every pending request about a resource.
fn accept_all(rig: &mut Rig) {
    loop {
        let pending = asked(rig);
        rig.sent.clear();
        if pending.is_empty() {
            return;
        }
        pending.iter().for_each(|(.., id)| rig.answer(id, json!({})));
    }
}

pub(super) fn changed(rig: &Rig) -> Vec<Change> {
    let change = |event: &Event| if let Event::Changed(change) = event { Some(change.clone()) } else { None };
    rig.events.iter().filter_map(change).collect()
}

fn reported(rig: &Rig) -> Vec<Watch> {
    let watch = |event: &Event| if let Event::Watching(watch) = event { Some(watch.clone()) } else { None };
    rig.events.iter().filter_map(watch).collect()
}

fn updated(uri: &str) -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": uri}})
}

/// An update that belongs to a subscription.
fn updated_of(uri: &str, id: &Value) -> Value {
    let mut note = told("notifications/resources/updated", id);
    note["params"]["uri"] = json!(uri);
    note
}

fn listens(rig: &Rig) -> Vec<(Value, Value)> {
    let listen = |message: &Value| {
        (message["method"] == "subscriptions/listen")
            .then(|| (message["id"].clone(), message["params"]["notifications"].clone()))
    };
    rig.sent.iter().filter_map(listen).collect()
}

fn cancelled(rig: &Rig) -> Vec<Value> {
    let of = |message: &Value| {
        (message["method"] == "notifications/cancelled").then(|| message["params"]["requestId"].clone())
    };
    rig.sent.iter().filter_map(of).collect()
}

// covers: RSUB-C-001, RSUB-S-002, X-18
#[test]
fn older_server_gets_one_request_for_each_resource() {
    for version in [
        ProtocolVersion::V2024_11_05,
        ProtocolVersion::V2025_03_26,
        ProtocolVersion::V2025_06_18,
        ProtocolVersion::V2025_11_25,
    ] {
        let mut rig = watching(version, all(&["a:1", "a:2"]));
        assert_eq!(subscribed(&rig), ["subscribe a:1", "subscribe a:2"]);
        assert_eq!(reported(&rig), [], "the server has not answered");
        accept_all(&mut rig);
        assert_eq!(reported(&rig), [all(&["a:1", "a:2"])]);
        assert_eq!(changed(&rig), [], "nothing was missed");
        for method in LISTS {
            rig.say(json!({"jsonrpc": "2.0", "method": method}));
        }
        // The server knows the parts of a resource.
        rig.say(updated("a:1"));
        rig.say(updated("a:2/part"));
        let resource = |uri: &str| Change::Resource(uri.into());
        let expected = [Change::Tools, Change::Prompts, Change::Resources, resource("a:1"), resource("a:2/part")];
        assert_eq!(changed(&rig), expected);
        assert!(!rig.events.iter().any(|event| matches!(event, Event::Notification { .. })));
        rig.say(json!({"jsonrpc": "2.0", "method": "notifications/resources/updated"}));
        assert_eq!((changed(&rig).len(), rig.diagnostics()), (5, vec![DiagnosticKind::BadParams]));
    }
}

// covers: RSUB-C-001, SUB-C-007
#[test]
fn only_declared_changes_are_watched() {
    let wanted = all(&["a:1"]);
    let rows = [
        (json!({}), Watch::new()),
        (json!({"resources": {}, "tools": {}}), Watch::new()),
        (json!({"resources": {"listChanged": true}}), Watch::new().with_resources()),
        (json!({"prompts": {"listChanged": true}}), Watch::new().with_prompts()),
        (json!({"resources": {"subscribe": true}}), Watch::new().with_uri("a:1")),
    ];
    for (declared, expected) in rows {
        for version in ["2025-11-25", "2026-07-28"] {
            let mut config = ClientConfig { watch: wanted.clone(), ..ClientConfig::given() };
            config.versions = Versions::new([ProtocolVersion::parse(version).unwrap()]);
            let mut rig = Rig::new(config);
            greet(&mut rig, version, &declared);
            if let Some((id, filter)) = listens(&rig).pop() {
                assert_eq!((version, &filter), ("2026-07-28", &expected.write().to_json().decode::<Value>().unwrap()));
                rig.say(acknowledged(&id, filter));
            }
            accept_all(&mut rig);
            assert_eq!(reported(&rig), *core::slice::from_ref(&expected), "{version} {declared}");
            assert_eq!(rig.diagnostics(), []);
        }
    }
}

// covers: RSUB-C-001
#[test]
fn refused_resource_is_not_watched() {
    let mut rig = legacy(Watch::new().with_uri("a:1").with_uri("a:2"));
    let [(_, _, first), (_, _, second)] = &asked(&rig)[..] else { panic!() };
    rig.say(error(first, -32602));
    assert_eq!(reported(&rig), []);
    rig.answer(second, json!({}));
    assert_eq!(reported(&rig), [Watch::new().with_uri("a:2")]);
    assert_eq!(rig.diagnostics(), [DiagnosticKind::BadSubscription]);
    rig.sent.clear();
    rig.tick(Duration::from_secs(3600));
    // It is not asked again, until the application names it again.
    set(&mut rig, Watch::new().with_uri("a:1").with_uri("a:2").with_tools());
    assert_eq!(subscribed(&rig), [""; 0]);
    set(&mut rig, Watch::new().with_uri("a:2"));
    set(&mut rig, Watch::new().with_uri("a:1").with_uri("a:2"));
    assert_eq!(subscribed(&rig), ["subscribe a:1"]);
    accept_all(&mut rig);
    assert_eq!(reported(&rig).last(), Some(&Watch::new().with_uri("a:1").with_uri("a:2")));
    rig.client.close(rig.now);
    rig.drain();
    rig.assert_at_rest();
}

// covers: RSUB-C-001
#[test]
fn silent_request_about_a_resource_is_made_again() {
    let mut rig = legacy(Watch::new().with_uri("a:1"));
    rig.tick(Duration::from_secs(30));
    assert_eq!(rig.diagnostics(), [DiagnosticKind::BadSubscription]);
    assert_eq!((reported(&rig), changed(&rig)), (vec![Watch::new()], vec![]));
    rig.sent.clear();
    rig.tick(Duration::from_secs(30));
    assert_eq!(subscribed(&rig), ["subscribe a:1"]);
    accept_all(&mut rig);
    assert_eq!(reported(&rig).last(), Some(&Watch::new().with_uri("a:1")));
    assert_eq!(changed(&rig), [Change::Resource("a:1".into())], "it may have changed meanwhile");
}

// covers: RSUB-C-001
#[test]
fn set_replaces_the_one_before_on_an_older_server() {
    let mut rig = legacy(Watch::new().with_uri("a:1").with_uri("a:2"));
    accept_all(&mut rig);
    rig.clear();
    set(&mut rig, Watch::new().with_uri("a:2").with_uri("a:3").with_prompts());
    assert_eq!(subscribed(&rig), ["unsubscribe a:1", "subscribe a:3"]);
    accept_all(&mut rig);
    assert_eq!(reported(&rig), [Watch::new().with_uri("a:2").with_uri("a:3").with_prompts()]);
    rig.clear();
    // The same set again is nothing.
    set(&mut rig, Watch::new().with_uri("a:2").with_uri("a:3").with_prompts());
    assert_eq!((rig.sent.len(), rig.events.len()), (0, 0));
    set(&mut rig, Watch::new());
    assert_eq!(subscribed(&rig), ["unsubscribe a:2", "unsubscribe a:3"]);
    accept_all(&mut rig);
    assert_eq!((reported(&rig), changed(&rig)), (vec![Watch::new()], vec![]));
    rig.client.close(rig.now);
    rig.drain();
    rig.assert_at_rest();
}

// covers: RSUB-C-001
#[test]
fn application_may_change_its_mind_before_the_answer() {
    let mut rig = legacy(Watch::new().with_uri("a:1"));
    set(&mut rig, Watch::new());
    set(&mut rig, Watch::new().with_uri("a:1").with_uri("a:2"));
    set(&mut rig, Watch::new().with_uri("a:2"));
    assert_eq!(subscribed(&rig), ["subscribe a:1", "subscribe a:2"], "one request for each at a time");
    let pending = asked(&rig);
    rig.sent.clear();
    pending.iter().for_each(|(.., id)| rig.answer(id, json!({})));
    assert_eq!((subscribed(&rig), reported(&rig)), (vec!["unsubscribe a:1".into()], vec![]));
    accept_all(&mut rig);
    assert_eq!(reported(&rig), [Watch::new().with_uri("a:2")]);
}

// covers: RSUB-C-001
#[test]
fn requests_about_resources_leave_room_for_calls() {
    let uris: Vec<String> = (0..100).map(|n| format!("a:{n:03}")).collect();
    let watch = uris.iter().fold(Watch::new(), |watch, uri| watch.with_uri(uri.as_str()));
    let mut rig = legacy(watch.clone());
    assert_eq!(subscribed(&rig).len(), 8);
    let call = rig.echo();
    assert_eq!((rig.methods().last(), rig.client.running()), (Some(&"tools/call"), 1));
    let id = rig.last_id();
    rig.answer(&id, json!({"content": []}));
    assert!(rig.outcome(call).is_ok());
    accept_all(&mut rig);
    assert_eq!(reported(&rig), [watch]);
}

// covers: RSUB-C-001
#[test]
fn set_is_bounded() {
    let config = |watch: Watch| {
        let mut config = ClientConfig { watch, ..ClientConfig::given() };
        config.limits.client.max_watched = 2;
        config
    };
    let three = Watch::new().with_uri("a").with_uri("b").with_uri("c");
    let mut rig = Rig::new(config(Watch::new().with_tools()));
    let refused = rig.client.watch(rig.now, three.clone()).unwrap_err();
    assert_eq!(
        (refused.why, &refused.value, rig.client.watched()),
        (Refusal::Full, &three, &Watch::new().with_tools())
    );
    let rig = Rig::new(config(three.clone().with_tools()));
    assert_eq!(rig.client.watched(), &Watch::new().with_uri("a").with_uri("b").with_tools());
    assert_eq!(rig.diagnostics(), [DiagnosticKind::BadSubscription]);
    let mut rig = legacy(Watch::new());
    rig.client.close(rig.now);
    let refused = rig.client.watch(rig.now, three).unwrap_err();
    assert_eq!(refused.why, Refusal::Closed);
}

// covers: SUB-C-007
#[test]
fn one_subscription_names_everything_that_is_watched() {
    let mut rig = modern(all(&["a:1"]));
    let (id, filter) = listens(&rig).pop().unwrap();
    assert_eq!((listens(&rig).len(), &filter), (1, &full(&["a:1"])));
    rig.say(acknowledged(&id, filter));
    assert_eq!((reported(&rig), changed(&rig)), (vec![all(&["a:1"])], vec![]));
}

// covers: SUB-C-007, SUB-C-009, SUB-S-016
#[test]
fn every_kind_of_change_comes_with_its_subscription() {
    let mut rig = modern(all(&["a:1"]));
    let (id, _) = listens(&rig).pop().unwrap();
    // The server honours a part of it.
    rig.say(acknowledged(&id, json!({"promptsListChanged": true, "resourceSubscriptions": ["a:1", "a:9"]})));
    assert_eq!(rig.diagnostics(), [DiagnosticKind::BadSubscription]);
    assert_eq!(reported(&rig), [Watch::new().with_prompts().with_uri("a:1")]);
    rig.say(told(LISTS[1], &id));
    rig.say(updated_of("a:1/part", &id));
    let expected = [Change::Prompts, Change::Resource("a:1/part".into())];
    assert_eq!((changed(&rig), rig.diagnostics().len()), (expected.to_vec(), 1));
    // What it did not honour, what belongs to no subscription, and an update of nothing.
    let wrong =
        [told(LISTS[0], &id), told(LISTS[2], &id), updated("a:1"), told("notifications/resources/updated", &id)];
    for message in wrong {
        rig.say(message);
    }
    assert_eq!((changed(&rig).len(), rig.diagnostics()), (2, vec![DiagnosticKind::BadSubscription; 5]));
}

// covers: SUB-C-010, SUB-C-011
#[test]
fn new_subscription_replaces_the_old_one_without_a_gap() {
    let mut rig = modern(Watch::new().with_tools());
    let (old, filter) = listens(&rig).pop().unwrap();
    rig.say(acknowledged(&old, filter));
    rig.clear();
    set(&mut rig, Watch::new().with_tools().with_uri("a:1"));
    let (new, filter) = listens(&rig).pop().unwrap();
    assert_eq!(cancelled(&rig), [json!(null); 0], "the old one is open until the new one is acknowledged");
    rig.say(told(LISTS[0], &old));
    assert_eq!(changed(&rig), [Change::Tools]);
    // Further changes of the set wait for the acknowledgement.
    set(&mut rig, Watch::new().with_prompts());
    set(&mut rig, Watch::new().with_prompts().with_resources());
    assert_eq!(listens(&rig).len(), 1);
    rig.say(acknowledged(&new, filter));
    assert_eq!(cancelled(&rig), *core::slice::from_ref(&old));
    assert_eq!(reported(&rig), [Watch::new().with_tools().with_uri("a:1")]);
    let (last, filter) = listens(&rig).pop().unwrap();
    assert_eq!(filter, json!({"promptsListChanged": true, "resourcesListChanged": true}));
    rig.say(told(LISTS[0], &new));
    rig.say(acknowledged(&last, filter));
    assert_eq!(cancelled(&rig), [old.clone(), new.clone()]);
    assert_eq!(changed(&rig), [Change::Tools, Change::Tools], "no gap was reported");
    // Nothing of the old ones is believed, and their ends are no news.
    let heard = rig.events.len();
    rig.answer(&old, closing(&old)["result"].clone());
    rig.say(told(LISTS[0], &new));
    assert_eq!(changed(&rig).len(), 2);
    assert!(rig.events[heard..].iter().all(|event| matches!(event, Event::Diagnostic(_))));
    rig.tick(Duration::from_secs(3600));
    assert_eq!(listens(&rig).len(), 2);
    // Nothing is watched: the subscription ends.
    rig.clear();
    set(&mut rig, Watch::new());
    assert_eq!((cancelled(&rig), reported(&rig)), (vec![last], vec![Watch::new()]));
    rig.assert_at_rest();
}

// covers: SUB-C-010, SUB-C-011
#[test]
fn change_that_crosses_the_end_of_its_subscription_is_legal() {
    let mut rig = modern(Watch::new().with_tools());
    let (old, filter) = listens(&rig).pop().unwrap();
    rig.say(acknowledged(&old, filter));
    set(&mut rig, Watch::new().with_tools().with_prompts());
    let (new, filter) = listens(&rig).pop().unwrap();
    rig.say(acknowledged(&new, filter));
    // The server has both until it reads the cancellation of the old one.
    rig.say(told(LISTS[0], &old));
    rig.say(told(LISTS[0], &new));
    assert_eq!((changed(&rig), rig.diagnostics()), (vec![Change::Tools], vec![]));
    set(&mut rig, Watch::new());
    rig.say(told(LISTS[0], &new));
    assert_eq!((changed(&rig).len(), rig.diagnostics()), (1, vec![]));
    // The one before ended long ago.
    rig.say(told(LISTS[0], &old));
    assert_eq!((changed(&rig).len(), rig.diagnostics()), (1, vec![DiagnosticKind::BadSubscription]));
}

// covers: SUB-C-010, SUB-C-013
#[test]
fn server_that_allows_one_subscription_gets_one() {
    let refusals: [fn(&Value) -> Value; 3] = [|id| error(id, -32603), |id| error(id, -32602), closing];
    for refusal in refusals {
        let mut rig = modern(Watch::new().with_tools());
        let (old, filter) = listens(&rig).pop().unwrap();
        rig.say(acknowledged(&old, filter));
        set(&mut rig, Watch::new().with_tools().with_prompts());
        let (new, _) = listens(&rig).pop().unwrap();
        rig.clear();
        rig.say(refusal(&new));
        assert_eq!(cancelled(&rig), [old]);
        let (again, filter) = listens(&rig).pop().unwrap();
        rig.say(acknowledged(&again, filter));
        assert_eq!(changed(&rig), [Change::Tools, Change::Prompts], "there was a gap");
        assert_eq!(reported(&rig), [Watch::new().with_tools().with_prompts()]);
    }
    // The server does not answer the second one.
    let mut rig = modern(Watch::new().with_tools());
    let (old, filter) = listens(&rig).pop().unwrap();
    rig.say(acknowledged(&old, filter));
    set(&mut rig, Watch::new().with_prompts());
    let (new, _) = listens(&rig).pop().unwrap();
    rig.clear();
    rig.tick(Duration::from_secs(30));
    assert_eq!((cancelled(&rig), listens(&rig).len()), (vec![new, old], 1));
}

// covers: SUB-C-010, SUB-C-013
#[test]
fn old_subscription_may_end_before_the_new_one_begins() {
    let mut rig = modern(Watch::new().with_tools());
    let (old, filter) = listens(&rig).pop().unwrap();
    rig.say(acknowledged(&old, filter));
    set(&mut rig, Watch::new().with_tools().with_prompts());
    let (new, filter) = listens(&rig).pop().unwrap();
    rig.clear();
    rig.say(closing(&old));
    assert_eq!((rig.sent.len(), rig.events.len()), (0, 0), "the new one is on its way");
    rig.say(acknowledged(&new, filter));
    assert_eq!(changed(&rig), [Change::Tools, Change::Prompts]);
    assert_eq!((listens(&rig).len(), cancelled(&rig).len()), (0, 0));
    // Both end with the client.
    set(&mut rig, Watch::new().with_tools());
    let (last, _) = listens(&rig).pop().unwrap();
    rig.client.close(rig.now);
    rig.drain();
    assert_eq!(cancelled(&rig), [new, last]);
    rig.assert_at_rest();
}

// covers: SUB-C-007
#[test]
fn set_may_change_before_negotiation_and_between_attempts() {
    let mut config = ClientConfig::given();
    config.versions = Versions::new([ProtocolVersion::V2026_07_28]);
    let mut rig = Rig::new(config);
    set(&mut rig, Watch::new().with_tools());
    greet(&mut rig, "2026-07-28", &announcing());
    let (id, filter) = listens(&rig).pop().unwrap();
    // Before the acknowledgement.
    set(&mut rig, Watch::new().with_prompts());
    rig.say(acknowledged(&id, filter));
    let (id, filter) = listens(&rig).pop().unwrap();
    assert_eq!(filter, json!({"promptsListChanged": true}));
    rig.say(acknowledged(&id, filter));
    // While the client waits before the next attempt.
    rig.say(closing(&id));
    set(&mut rig, Watch::new().with_resources());
    assert_eq!(listens(&rig).len(), 2);
    rig.tick(ms(1100));
    assert_eq!(listens(&rig).pop().unwrap().1, json!({"resourcesListChanged": true}));
    let (id, _) = listens(&rig).pop().unwrap();
    rig.say(closing(&id));
    rig.clear();
    set(&mut rig, Watch::new());
    assert_eq!(reported(&rig), [Watch::new()]);
    rig.tick(Duration::from_secs(3600));
    assert_eq!(rig.sent.len(), 0);
    rig.assert_at_rest();
}

/// A client of a server of 2025-11-25 over HTTP that announces everything, with a session `s1`.
fn session(watch: Watch, level: Option<LogLevel>) -> Http {
    let mut http = Http::with(|config| {
        (config.policy, config.watch, config.log_level) = (Policy::Legacy, watch, level);
    });
    http.accept_with("s1", &announcing());
    settle(&mut http);
    http
}

/// The server accepts everything except calls, also the listener.
fn settle(http: &mut Http) {
    let mut from = 0;
    while from < http.posts().len() {
        let (exchange, head, body, _) = http.posts()[from].clone();
        from += 1;
        if !http.rig.is_open(exchange) || http.rig.over.contains(&exchange) {
            continue;
        }
        match body["method"].as_str() {
            None if head.method == "GET" => http.stream(exchange),
            Some(method) if method.starts_with("notifications/") => http.refuse(exchange, 202),
            Some("resources/subscribe" | "resources/unsubscribe" | "logging/setLevel") => {
                let body = json!({"jsonrpc": "2.0", "id": body["id"], "result": {}});
                http.answer(exchange, 200, &body);
            }
            _ => {}
        }
    }
}

// covers: RSUB-C-001, LOG-C-002, B-225
#[test]
fn new_session_renews_resources_and_level() {
    let mut http = session(all(&["a:1"]), Some(LogLevel::Error));
    assert_eq!(reported(&http.rig), [all(&["a:1"])]);
    let from = http.posts().len();
    http.rig.clear();
    let call = http.rig.echo();
    let exchange = http.last().0;
    http.refuse(exchange, 404);
    http.accept_with("s2", &announcing());
    settle(&mut http);
    let lines = http.lines(from);
    let expected = [
        "POST tools/call",
        "POST initialize",
        "POST notifications/initialized",
        "GET -",
        "POST logging/setLevel",
        "POST resources/subscribe",
        "POST tools/call",
    ];
    assert_eq!(lines, expected);
    for (_, head, ..) in &http.posts()[from + 2..] {
        assert_eq!(head.headers.get("mcp-session-id"), Some("s2"));
    }
    let every = [Change::Tools, Change::Prompts, Change::Resources, Change::Resource("a:1".into())];
    assert_eq!((changed(&http.rig), reported(&http.rig)), (every.to_vec(), vec![all(&["a:1"])]));
    assert!(!http.rig.has_ended(call));
}

// covers: RSUB-C-001, B-225
#[test]
fn reopened_listener_reports_what_may_have_been_missed() {
    let mut http = session(all(&["a:1"]), None);
    http.rig.clear();
    let listener = http.posts().into_iter().find(|(_, head, ..)| head.method == "GET").unwrap().0;
    http.item(listener, Inbound::End);
    http.rig.tick(Duration::from_secs(2));
    let again = http.last().0;
    http.stream(again);
    let every = [Change::Tools, Change::Prompts, Change::Resources, Change::Resource("a:1".into())];
    assert_eq!(changed(&http.rig), every);
}
