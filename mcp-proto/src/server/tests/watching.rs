//! Watched resources: `resources/subscribe` of the older revisions and the filter of 2026-07-28, on
//! a duplex exchange.

use super::*;
use crate::input::{Change, Watch};
use crate::model::capabilities::{ListCapability, ResourcesCapability};
use crate::sizes::scaled;

pub(super) const OLDER: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
const READY: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
const UPDATED: &str = "notifications/resources/updated";

/// Declares that everything is announced.
pub(super) fn announces(config: &mut ServerConfig) {
    let list = ListCapability { list_changed: true, ..ListCapability::default() };
    config.capabilities.tools = Some(list.clone());
    config.capabilities.prompts = Some(list);
    let resources = ResourcesCapability { list_changed: true, subscribe: true, ..ResourcesCapability::default() };
    config.capabilities.resources = Some(resources);
    config.capabilities.logging = Some(Object::new());
}

/// A server that announces everything, with a client of this revision.
fn connected(version: &str, change: impl FnOnce(&mut ServerConfig)) -> Bench {
    let bench = Bench::with(|config| {
        announces(config);
        change(config);
    });
    if version == "2026-07-28" {
        return bench.open(A);
    }
    let mut bench = bench.initialized(A, version, "{}");
    assert_eq!(bench.say(A, READY), [""; 0]);
    bench
}

pub(super) fn subscribe(id: u32, uri: &str) -> String {
    legacy(&id.to_string(), "resources/subscribe", &format!(r#"{{"uri":"{uri}"}}"#))
}

fn unsubscribe(id: u32, uri: &str) -> String {
    legacy(&id.to_string(), "resources/unsubscribe", &format!(r#"{{"uri":"{uri}"}}"#))
}

pub(super) fn listen(id: &str, filter: &str) -> String {
    modern(id, "subscriptions/listen", &format!(r#","notifications":{filter}"#))
}

pub(super) fn publish(bench: &mut Bench, uri: &str) {
    bench.server.publish(bench.now, Change::Resource(uri.into()));
}

/// Returns the URI of an update, and its subscription.
pub(super) fn update(text: &str) -> (String, Option<String>) {
    let crate::rpc::Message::Notification(note) = message(text) else { panic!("{text}") };
    assert_eq!(note.method, UPDATED);
    let params = Object::read_opt(note.params.as_ref()).unwrap();
    let meta = params.optional_object("_meta").unwrap().unwrap_or_default();
    let id = meta.get("io.modelcontextprotocol/subscriptionId").map(|id| id.as_str().to_string());
    (params.required("uri").unwrap(), id)
}

fn updates(bench: &mut Bench) -> Vec<String> {
    bench.heard(A).iter().map(|text| update(text).0).collect()
}

fn is_empty(bench: &Bench) -> bool {
    bench.at_rest() && bench.server.wire.env.watched.is_empty() && bench.server.listens.is_empty()
}

// covers: RSUB-C-001, RSUB-S-002, RSUB-S-003
#[test]
fn watched_resource_is_announced_until_it_is_watched_no_more() {
    for version in OLDER {
        let mut bench = connected(version, |_| {});
        publish(&mut bench, "a:1");
        assert_eq!(updates(&mut bench), [""; 0], "an update that nobody asked for");
        assert_eq!(bench.say(A, &subscribe(1, "a:1")), [r#"{"jsonrpc":"2.0","id":1,"result":{}}"#]);
        bench.say(A, &subscribe(2, "a:1"));
        publish(&mut bench, "a:1");
        publish(&mut bench, "a:2");
        assert_eq!(
            bench.heard(A),
            [r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"a:1"}}"#]
        );
        assert_eq!(bench.say(A, &unsubscribe(3, "a:1")), [r#"{"jsonrpc":"2.0","id":3,"result":{}}"#]);
        publish(&mut bench, "a:1");
        assert_eq!(updates(&mut bench), [""; 0]);
        // Nothing is left of it, and to end it again is no error.
        assert_eq!(bench.say(A, &unsubscribe(4, "a:1")), [r#"{"jsonrpc":"2.0","id":4,"result":{}}"#]);
        assert!(is_empty(&bench));
        for (change, method) in
            [(Change::Prompts, "prompts"), (Change::Resources, "resources"), (Change::Tools, "tools")]
        {
            bench.server.publish(bench.now, change);
            let expected = format!(r#"{{"jsonrpc":"2.0","method":"notifications/{method}/list_changed"}}"#);
            assert_eq!(bench.heard(A), [expected]);
        }
    }
}

// covers: SUB-S-016, RSUB-S-002
#[test]
fn update_of_a_part_is_announced_to_the_watcher_of_the_whole() {
    let watched = ["file:///dir", "file:///all/", "db://t"];
    let rows = [
        ("file:///dir/a", true),
        ("file:///dir/b/c", true),
        ("file:///dir#x", true),
        ("file:///dir", true),
        ("file:///directory", false),
        ("file:///", false),
        ("file:///all/x", true),
        ("file:///all", false),
        ("db://t?x=1", false),
    ];
    for version in ["2025-11-25", "2026-07-28"] {
        let mut bench = connected(version, |_| {});
        if version == "2026-07-28" {
            let uris = watched.map(|uri| format!("\"{uri}\"")).join(",");
            bench.say(A, &listen("1", &format!(r#"{{"resourceSubscriptions":[{uris}]}}"#)));
        } else {
            watched.iter().zip(1..).for_each(|(uri, id)| drop(bench.say(A, &subscribe(id, uri))));
        }
        for (uri, is_told) in rows {
            publish(&mut bench, uri);
            let expected: &[&str] = if is_told { &[uri] } else { &[] };
            assert_eq!(updates(&mut bench), expected, "{version}");
        }
    }
}

// covers: SUB-S-001, SUB-S-003, SUB-S-006, SUB-S-008, SUB-S-015, SUB-S-016, RES-S-008, DISC-S-006
#[test]
fn modern_subscription_includes_what_it_names() {
    let everything = r#"{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true,"resourceSubscriptions":["a:1"]}"#;
    let rows = [
        ("{}", "{}", [false; 4]),
        (everything, everything, [true; 4]),
        (r#"{"toolsListChanged":true}"#, r#"{"toolsListChanged":true}"#, [true, false, false, false]),
        (r#"{"promptsListChanged":true,"x":1}"#, r#"{"promptsListChanged":true}"#, [false, true, false, false]),
        (
            r#"{"resourcesListChanged":true,"toolsListChanged":false}"#,
            r#"{"resourcesListChanged":true}"#,
            [false, false, true, false],
        ),
        (r#"{"resourceSubscriptions":["a:1"]}"#, r#"{"resourceSubscriptions":["a:1"]}"#, [false, false, false, true]),
        (r#"{"resourceSubscriptions":[]}"#, "{}", [false; 4]),
    ];
    let changes = || [Change::Tools, Change::Prompts, Change::Resources, Change::Resource("a:1".into())];
    for (filter, honoured, told) in rows {
        let mut bench = connected("2026-07-28", |_| {});
        let said = bench.say(A, &listen(r#""s""#, filter));
        let ack = format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{{"_meta":{{"io.modelcontextprotocol/subscriptionId":"s"}},"notifications":{honoured}}}}}"#
        );
        assert_eq!(said, [ack]);
        for (change, is_told) in changes().into_iter().zip(told) {
            bench.server.publish(bench.now, change);
            let heard = bench.heard(A);
            assert_eq!(heard.len(), usize::from(is_told), "{filter}: {heard:?}");
            assert!(heard.iter().all(|text| text.contains(r#""io.modelcontextprotocol/subscriptionId":"s""#)));
        }
        publish(&mut bench, "a:2");
        assert_eq!(updates(&mut bench), [""; 0]);
        bench.say(A, r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"s"}}"#);
        changes().into_iter().for_each(|change| bench.server.publish(bench.now, change));
        assert!(bench.heard(A).is_empty() && is_empty(&bench));
    }
    for filter in
        [r#"{"resourceSubscriptions":"a:1"}"#, r#"{"resourceSubscriptions":[1]}"#, r#"{"promptsListChanged":1}"#]
    {
        let said = connected("2026-07-28", |_| {}).say(A, &listen("1", filter));
        assert_eq!(error(&said[0]).code, -32602, "{filter}");
    }
    // What the server does not declare is left out, and not announced.
    let mut bench = Bench::with(|config| config.capabilities.prompts = Some(ListCapability::default())).open(A);
    let said = bench.say(A, &listen("1", everything));
    assert!(said[0].contains(r#""notifications":{}"#), "{said:?}");
    changes().into_iter().for_each(|change| bench.server.publish(bench.now, change));
    assert_eq!(bench.heard(A), [""; 0]);
    // What it declares is in the result of `server/discover`.
    let said = connected("2026-07-28", |_| {}).say(A, &modern("1", "server/discover", ""));
    let declared = result(&said[0]).object("capabilities").unwrap();
    let expected = r#"{"tools":{"listChanged":true},"prompts":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true},"logging":{}}"#;
    assert_eq!(declared.to_json().as_str(), expected);
}

// covers: SUB-S-017, LOG-S-005, X-17, X-18
#[test]
fn methods_of_the_older_revisions_exist_where_they_are_declared() {
    let rows = [
        ("resources/subscribe", r#"{"uri":"a:1"}"#, "{}"),
        ("resources/unsubscribe", r#"{"uri":"a:1"}"#, "{}"),
        ("logging/setLevel", r#"{"level":"info"}"#, r#"{"level":"loud"}"#),
    ];
    for (method, params, invalid) in rows {
        for version in OLDER {
            let mut bench = Bench::new().initialized(A, version, "{}");
            assert_eq!(error(&bench.say(A, &legacy("1", method, params))[0]).code, -32601, "{version} {method}");
            let mut bench = connected(version, |_| {});
            assert_eq!(bench.say(A, &legacy("1", method, params)), [r#"{"jsonrpc":"2.0","id":1,"result":{}}"#]);
            for (id, params) in [("2", invalid), ("3", "{}"), ("4", r#"{"uri":1,"level":1}"#)] {
                assert_eq!(error(&bench.say(A, &legacy(id, method, params))[0]).code, -32602, "{method} {params}");
            }
            // None of them is a request of the application.
            assert!(bench.at_rest());
        }
        let rest = format!(",{}", &params[1..params.len() - 1]);
        let said = connected("2026-07-28", |_| {}).say(A, &modern("1", method, &rest));
        assert_eq!(error(&said[0]).code, -32601, "{method}");
    }
}

// covers: RSUB-S-002
#[test]
fn each_connection_watches_for_itself() {
    let mut bench = connected("2025-11-25", |_| {}).initialized(B, "2025-11-25", "{}");
    bench.say(B, READY);
    bench.say(A, &subscribe(1, "a:1"));
    bench.say(B, &subscribe(1, "a:2"));
    publish(&mut bench, "a:1");
    publish(&mut bench, "a:2");
    let outputs = bench.outputs();
    for (x, uri) in [(A, "a:1"), (B, "a:2")] {
        let told: Vec<_> = outputs.iter().filter_map(|output| on(x, output)).map(|text| update(&text).0).collect();
        assert_eq!(told, [uri]);
    }
    bench.handle_event(A, failed());
    publish(&mut bench, "a:1");
    publish(&mut bench, "a:2");
    assert_eq!(bench.heard(B).len(), 1);
    bench.handle_event(B, failed());
    assert!(is_empty(&bench) && bench.server.wire.env.shares.is_empty());
}

// covers: RSUB-S-002
#[test]
fn update_waits_for_initialized() {
    let mut bench = Bench::with(announces).initialized(A, "2025-11-25", "{}");
    bench.say(A, &subscribe(1, "a:1"));
    publish(&mut bench, "a:1");
    publish(&mut bench, "a:1");
    assert_eq!(updates(&mut bench), [""; 0]);
    let said = bench.say(A, READY);
    assert_eq!(said.iter().map(|text| update(text).0).collect::<Vec<_>>(), ["a:1"]);
}

// covers: B-187
#[test]
fn updates_are_merged_and_bounded_for_a_slow_client() {
    for version in ["2025-11-25", "2026-07-28"] {
        let mut bench = connected(version, |config| config.limits.server.max_watched = 4);
        if version == "2026-07-28" {
            bench.say(
                A,
                &listen(
                    "1",
                    r#"{"resourceSubscriptions":["a:1","a:2"],"promptsListChanged":true,"toolsListChanged":true}"#,
                ),
            );
        } else {
            bench.say(A, &subscribe(1, "a:1"));
            bench.say(A, &subscribe(2, "a:2"));
        }
        bench.handle_event(A, ExchangeEvent::Unsent(2 << 20));
        for n in 0..scaled(100_000) {
            publish(&mut bench, "a:2");
            publish(&mut bench, &format!("a:1/{n}"));
            if n % 1000 == 0 {
                bench.server.publish(bench.now, Change::Tools);
                bench.server.publish(bench.now, Change::Prompts);
            }
        }
        assert_eq!(bench.heard(A), [""; 0]);
        bench.handle_event(A, ExchangeEvent::Unsent(0));
        let heard = bench.heard(A);
        let (lists, updates) = heard.split_at(2);
        assert!(lists[0].contains("tools/list_changed") && lists[1].contains("prompts/list_changed"), "{heard:?}");
        let updates: Vec<_> = updates.iter().map(|text| update(text).0).collect();
        assert_eq!(updates, ["a:1", "a:1/0", "a:1/1", "a:1/2", "a:2"], "{version}");
        bench.handle_event(A, ExchangeEvent::Unsent(0));
        assert_eq!(bench.heard(A), [""; 0]);
    }
}

// covers: RSUB-C-001, B-189
#[test]
fn very_many_watched_resources_are_a_bounded_number() {
    const MANY: usize = scaled(100_000);
    let mut bench = connected("2025-11-25", |_| {});
    let mut refused = 0;
    for n in 0..MANY {
        let said = bench.say(A, &subscribe(n as u32, &format!("a:{n}")));
        if let crate::rpc::Message::Response(response) = message(&said[0])
            && let Payload::Error(error) = response.payload
        {
            assert_eq!(error.code, -32603);
            refused += 1;
        }
    }
    let held = bench.server.wire.env.shares.all(Bound::ClientData);
    assert_eq!(refused, MANY - 1000);
    assert!(held < 512 << 10, "{held} bytes for 1000 URIs");
    // It still gets what it watches, and may watch another one instead.
    publish(&mut bench, "a:0");
    assert_eq!(updates(&mut bench), ["a:0"]);
    bench.say(A, &unsubscribe(200_000, "a:0"));
    assert_eq!(bench.say(A, &subscribe(200_001, "b:0")), [r#"{"jsonrpc":"2.0","id":200001,"result":{}}"#]);
    bench.handle_event(A, failed());
    assert!(is_empty(&bench) && bench.server.wire.env.shares.is_empty());
    // On 2026-07-28 the acknowledgement has those that the server watches.
    let mut bench = connected("2026-07-28", |_| {});
    let uris: Vec<String> = (0..MANY).map(|n| format!("\"a:{n:06}\"")).collect();
    let said = bench.say(A, &listen("1", &format!(r#"{{"resourceSubscriptions":[{}]}}"#, uris.join(","))));
    let crate::rpc::Message::Notification(note) = message(&said[0]) else { panic!() };
    let filter = Object::read_opt(note.params.as_ref()).unwrap().object("notifications").unwrap();
    assert_eq!(Watch::read(&filter).unwrap().uris.len(), 1000);
    publish(&mut bench, "a:000999");
    publish(&mut bench, "a:001000");
    assert_eq!(updates(&mut bench), ["a:000999"]);
    bench.handle_event(A, failed());
    assert!(is_empty(&bench) && bench.server.wire.env.shares.is_empty());
}

// covers: B-189
#[test]
fn long_uris_count_with_their_length() {
    let mut bench = connected("2025-11-25", |config| config.limits.server.max_client_data_total = 1 << 20);
    let long = "x".repeat(100 << 10);
    let accepted = (0..100).filter(|n| {
        let said = bench.say(A, &subscribe(*n, &format!("a:{n}/{long}")));
        said[0].contains(r#""result":{}"#)
    });
    // A quarter of the limit is the share of one client.
    assert_eq!(accepted.count(), 2);
    let mut bench = connected("2026-07-28", |config| config.limits.server.max_running_bytes = 1 << 20);
    let filter = format!(r#"{{"resourceSubscriptions":["a:1/{long}","a:2/{long}","a:3/{long}"]}}"#);
    assert_eq!(error(&bench.say(A, &listen("1", &filter))[0]).code, -32603);
    assert!(is_empty(&bench));
}

// covers: RSUB-C-001, SUB-S-006
#[test]
fn application_may_decide_on_each_resource() {
    let mut bench = connected("2025-11-25", |config| config.admit_watch = true);
    let (responder, incoming) = bench.request(A, &subscribe(1, "a:1"));
    assert_eq!((&*incoming.method, incoming.params.str("uri").as_deref()), ("resources/subscribe", Some("a:1")));
    publish(&mut bench, "a:1");
    assert_eq!(updates(&mut bench), [""; 0], "it is not accepted yet");
    bench.complete(responder, "{}");
    assert_eq!(bench.heard(A), [r#"{"jsonrpc":"2.0","id":1,"result":{}}"#]);
    let (responder, _) = bench.request(A, &subscribe(2, "a:2"));
    bench.answer(responder, Outcome::Error(ErrorObject::new(-32602, "no")));
    assert_eq!(error(&bench.heard(A)[0]).code, -32602);
    publish(&mut bench, "a:1");
    publish(&mut bench, "a:2");
    assert_eq!(updates(&mut bench), ["a:1"]);
    // It ends without a decision.
    assert_eq!(bench.say(A, &unsubscribe(3, "a:1")), [r#"{"jsonrpc":"2.0","id":3,"result":{}}"#]);
    assert!(is_empty(&bench));
    // The limit counts also after the decision.
    let mut bench = connected("2025-11-25", |config| {
        config.admit_watch = true;
        config.limits.server.max_watched = 1;
    });
    let handed: Vec<Responder> = (1..=2).map(|n| bench.request(A, &subscribe(n, &format!("a:{n}"))).0).collect();
    handed.into_iter().for_each(|responder| bench.complete(responder, "{}"));
    let heard = bench.heard(A);
    assert_eq!((heard[0].as_str(), error(&heard[1]).code), (r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, -32603));
}

// covers: SUB-S-003, SUB-S-004, SUB-S-006
#[test]
fn application_may_decide_on_a_subscription() {
    let filter = r#"{"toolsListChanged":true,"resourceSubscriptions":["a:1","a:2"]}"#;
    let mut bench = connected("2026-07-28", |config| config.admit_watch = true);
    // Without URIs there is nothing to decide.
    assert!(bench.say(A, &listen("1", r#"{"toolsListChanged":true}"#))[0].contains("acknowledged"));
    let (responder, incoming) = bench.request(A, &listen("2", filter));
    assert_eq!(
        (&*incoming.method, incoming.params.get("notifications").unwrap().as_str()),
        ("subscriptions/listen", filter)
    );
    publish(&mut bench, "a:1");
    assert_eq!(updates(&mut bench), [""; 0], "nothing comes before the acknowledgement");
    bench.complete(responder, r#"{"notifications":{"resourceSubscriptions":["a:2","a:3"]}}"#);
    let heard = bench.heard(A);
    assert!(
        heard.len() == 1 && heard[0].contains(r#""notifications":{"resourceSubscriptions":["a:2","a:3"]}"#),
        "{heard:?}"
    );
    publish(&mut bench, "a:1");
    publish(&mut bench, "a:2");
    assert_eq!(bench.heard(A).iter().map(|text| update(text)).collect::<Vec<_>>(), [("a:2".into(), Some("2".into()))]);
    // It refuses all of it, or answers with something else.
    let (responder, _) = bench.request(A, &listen("3", filter));
    bench.answer(responder, Outcome::Error(ErrorObject::new(-32602, "no")));
    assert_eq!(error(&bench.heard(A)[0]).code, -32602);
    let (responder, _) = bench.request(A, &listen("4", filter));
    bench.complete(responder, "{}");
    assert_eq!(error(&bench.heard(A)[0]).code, -32603);
    // The client cancels before the decision, which then decides nothing.
    let (responder, _) = bench.request(A, &listen("5", filter));
    bench.say(A, r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}"#);
    bench.complete(responder, &format!(r#"{{"notifications":{filter}}}"#));
    assert_eq!(bench.heard(A), [""; 0]);
    bench.handle_event(A, failed());
    assert!(is_empty(&bench) && bench.server.wire.env.shares.is_empty());
}

// covers: LOG-S-009
#[test]
fn unknown_level_of_a_modern_request_is_an_error() {
    for level in ["\"trace\"", "\"ERROR\"", "7", "{}"] {
        for method in ["x/y", "tools/call", "server/discover"] {
            let meta = format!(r#""_meta":{{"io.modelcontextprotocol/logLevel":{level},"#);
            let line = modern("1", method, "").replace(r#""_meta":{"#, &meta);
            let said = connected("2026-07-28", |_| {}).say(A, &line);
            assert_eq!(error(&said[0]).code, -32602, "{method} {level}");
        }
    }
}

// covers: LOG-S-010, B-187
#[test]
fn logs_of_a_client_that_does_not_read_are_dropped_and_counted() {
    let mut bench = connected("2025-11-25", |_| {});
    let (responder, _) = bench.request(A, &legacy("1", "x/y", "{}"));
    let data = "x".repeat(10 << 10);
    let log = || crate::model::logging::LogMessage::new(crate::LogLevel::Info, data.as_str());
    const MANY: usize = scaled(10_000);
    let mut sent = 0;
    for _ in 0..MANY {
        match bench.server.notify(bench.now, responder.key(), Note::Log(log())) {
            Ok(()) => sent += 1,
            Err(refused) => assert_eq!(refused.why, Refusal::Full),
        }
    }
    // `max_unsent` is 1 MiB.
    assert!((90..=110).contains(&sent), "{sent}");
    let dropped = |bench: &mut Bench| {
        let detail = |event| match event {
            Event::Diagnostic(d) if d.kind == DiagnosticKind::DroppedLog => Some(d.detail),
            _ => None,
        };
        bench.events().into_iter().filter_map(detail).collect::<Vec<String>>()
    };
    assert_eq!(bench.outputs().len(), sent);
    bench.handle_event(A, ExchangeEvent::Unsent(0));
    bench.server.notify(bench.now, responder.key(), Note::Log(log())).unwrap();
    assert_eq!(dropped(&mut bench), [format!("{} log messages", MANY - sent)]);
    // Those at the end of the request are counted with it. Its response is never dropped.
    bench.handle_event(A, ExchangeEvent::Unsent(2 << 20));
    assert!(bench.server.notify(bench.now, responder.key(), Note::Log(log())).is_err());
    bench.complete(responder, "{}");
    let outputs = bench.outputs();
    assert!(outputs.iter().any(|output| on(A, output).as_deref() == Some(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#)));
    let told = |output: &Output| matches!(output, Output::Event(Event::Diagnostic(d)) if d.detail == "1 log messages");
    assert_eq!(outputs.iter().filter(|output| told(output)).count(), 1);
}
