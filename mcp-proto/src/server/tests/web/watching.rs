//! Watched resources and levels in the sessions of the older revisions, and the subscriptions of
//! 2026-07-28, over HTTP.

use super::super::watching::{announces, listen, publish, subscribe, update};
use super::*;
use crate::LogLevel;
use crate::input::{Change, Note};
use crate::model::logging::LogMessage;

fn modern_headers(method: &str) -> Headers {
    Headers::new().with("MCP-Protocol-Version", "2026-07-28").with("Mcp-Method", method)
}

fn updates(site: &mut Site, x: ExchangeId) -> Vec<String> {
    let said = site.said(x);
    said.iter().filter(|line| line.contains("resources/updated")).map(|line| update(event(line).1).0).collect()
}

fn accepted(site: &mut Site, client: &Client, body: &str) -> bool {
    let x = site.post(client.headers(), body);
    site.said(x) == [r#"200 {"jsonrpc":"2.0","id":1,"result":{}}"#]
}

// covers: RSUB-C-001, RSUB-S-002
#[test]
fn each_session_watches_for_itself() {
    let mut site = Site::with(|config| {
        announces(config);
        config.admit = true;
    });
    // Two sessions of one principal.
    let open = |site: &mut Site| {
        let x = site.begin("POST", Headers::new().with("Content-Type", "application/json"));
        site.admit_all();
        site.bench.item(x, read(&initialize("2025-11-25", "{}")));
        let session = site.head(x).headers.get("mcp-session-id").unwrap().to_owned();
        Client { session, version: "2025-11-25" }
    };
    let clients = [open(&mut site), open(&mut site)];
    let own = clients.clone().map(|client| {
        let x = site.begin("GET", client.headers());
        site.admit_all();
        site.bench.item(x, Inbound::End);
        x
    });
    let x = site.begin("POST", clients[0].headers().with("Content-Type", "application/json"));
    site.admit_all();
    site.bench.item(x, read(&subscribe(1, "a:1")));
    publish(&mut site.bench, "a:1");
    assert_eq!(updates(&mut site, own[0]), ["a:1"]);
    assert_eq!(updates(&mut site, own[1]), [""; 0], "the other session of the same principal");
}

// covers: RSUB-S-002, RSUB-C-001, SHTTP-S-034
#[test]
fn updates_wait_for_the_stream_of_the_session() {
    let mut site = Site::with(announces);
    let client = site.session("2025-11-25", "{}");
    assert!(accepted(&mut site, &client, &subscribe(1, "a:1")));
    for _ in 0..3 {
        publish(&mut site.bench, "a:1");
        publish(&mut site.bench, "a:2");
        site.bench.server.publish(site.bench.now, Change::Prompts);
    }
    let own = site.bare("GET", client.headers());
    let said = site.said(own);
    assert_eq!(said.iter().filter(|line| line.contains("resources/updated")).count(), 1);
    assert_eq!(said.iter().filter(|line| line.contains("prompts/list_changed")).count(), 1);
    publish(&mut site.bench, "a:1/part");
    assert_eq!(updates(&mut site, own), ["a:1/part"]);
    // The end of the session ends it.
    let x = site.bare("DELETE", client.headers());
    assert!(site.said(x)[0].starts_with("200 "));
    publish(&mut site.bench, "a:1");
    assert!(site.at_rest() && site.bench.server.wire.env.watched.is_empty());
}

// covers: RSUB-C-001, LOG-S-005
#[test]
fn without_a_session_nothing_is_watched() {
    let mut site = Site::with(|config| {
        announces(config);
        config.sessions = Sessions::Off;
    });
    let x = site.post(Headers::new(), &initialize("2025-11-25", "{}"));
    let said = site.said(x);
    let declared = result(said[0].strip_prefix("200 ").unwrap()).object("capabilities").unwrap();
    let expected = r#"{"tools":{},"prompts":{},"resources":{},"logging":{}}"#;
    assert_eq!(declared.to_json().as_str(), expected, "no stream could carry an announcement");
    let named = || Headers::new().with("MCP-Protocol-Version", "2025-11-25");
    for sessions in [Sessions::Off, Sessions::Optional] {
        let mut site = Site::with(|config| {
            announces(config);
            config.sessions = sessions;
        });
        let x = site.post(named(), &subscribe(1, "a:1"));
        assert_eq!(site.refusal(x), (200, -32601));
        let x = site.post(named(), &legacy("1", "logging/setLevel", r#"{"level":"info"}"#));
        assert_eq!(site.refusal(x), (200, -32603));
        assert!(site.at_rest() && site.bench.server.wire.env.watched.is_empty());
    }
}

// covers: SUB-S-017, HTTP-S-031
#[test]
fn older_methods_are_not_found_on_2026_07_28() {
    for (method, rest) in [
        ("resources/subscribe", r#","uri":"a:1""#),
        ("resources/unsubscribe", r#","uri":"a:1""#),
        ("logging/setLevel", r#","level":"info""#),
    ] {
        let mut site = Site::with(announces);
        let x = site.post(modern_headers(method), &modern("1", method, rest));
        assert_eq!(site.refusal(x), (404, -32601), "{method}");
    }
}

// covers: SUB-S-006, SUB-S-016, SUB-S-008
#[test]
fn accepted_subscription_keeps_its_stream() {
    let mut site = Site::with(|config| {
        announces(config);
        config.admit_watch = true;
    });
    let body = listen("1", r#"{"resourceSubscriptions":["a:1","a:2"]}"#);
    let x = site.post(modern_headers("subscriptions/listen"), &body);
    let (responder, _) = site.handed();
    assert_eq!(site.said(x), [""; 0]);
    site.complete(responder, r#"{"notifications":{"resourceSubscriptions":["a:1"]}}"#);
    let said = site.said(x);
    assert_eq!((said[0].as_str(), said.len()), ("200 stream", 2));
    assert!(said[1].contains(r#""notifications":{"resourceSubscriptions":["a:1"]}"#), "{said:?}");
    publish(&mut site.bench, "a:1");
    publish(&mut site.bench, "a:2");
    assert_eq!(updates(&mut site, x), ["a:1"]);
    site.cut(x);
    assert!(site.at_rest() && site.bench.server.wire.env.watched.is_empty() && site.bench.server.listens.is_empty());
    // A refusal is an answer, and so is the end of a client that does not wait.
    let x = site.post(modern_headers("subscriptions/listen"), &body);
    let (responder, _) = site.handed();
    site.bench.answer(responder, Outcome::Error(ErrorObject::new(-32602, "no")));
    assert_eq!(site.refusal(x).1, -32602);
    let x = site.post(modern_headers("subscriptions/listen"), &body);
    let (responder, _) = site.handed();
    site.cut(x);
    site.complete(responder, r#"{"notifications":{"resourceSubscriptions":["a:1"]}}"#);
    let x = site.post(modern_headers("subscriptions/listen").with("Accept", "application/json"), &body);
    assert_eq!(site.refusal(x).0, 406);
    assert!(site.at_rest() && site.bench.server.wire.env.watched.is_empty() && site.bench.server.listens.is_empty());
}

// covers: LOG-S-007, LOG-S-008, LOG-S-004, HTTP-S-022
#[test]
fn log_message_is_sent_on_the_stream_of_its_request_only() {
    let log = || Note::Log(LogMessage::new(LogLevel::Info, "d"));
    let mut site = Site::with(announces);
    let client = site.session("2025-11-25", "{}");
    let own = site.bare("GET", client.headers());
    site.said(own);
    let all = r#"{"toolsListChanged":true,"resourceSubscriptions":["a:1"]}"#;
    let open = site.post(modern_headers("subscriptions/listen"), &listen("1", all));
    site.said(open);
    let call = client.call(&mut site, 2);
    let (responder, _) = site.handed();
    site.bench.server.notify(site.bench.now, responder.key(), log()).unwrap();
    let line = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"d"}}"#;
    assert_eq!(event(site.said(call).last().unwrap()).1, line);
    site.complete(responder, "{}");
    let meta = r#""_meta":{"io.modelcontextprotocol/logLevel":"info","#;
    let body = modern("1", "x/y", "").replace(r#""_meta":{"#, meta);
    let x = site.post(modern_headers("x/y"), &body);
    let (responder, _) = site.handed();
    site.bench.server.notify(site.bench.now, responder.key(), log()).unwrap();
    assert_eq!(event(site.said(x).last().unwrap()).1, line);
    site.complete(responder, "{}");
    assert_eq!((site.said(own).len(), site.said(open).len()), (0, 0));
}

// covers: LOG-S-004, LOG-C-002
#[test]
fn log_level_applies_to_its_session() {
    let mut site = Site::with(announces);
    let (quiet, loud) = (site.session("2025-11-25", "{}"), site.session("2025-11-25", "{}"));
    assert!(accepted(&mut site, &quiet, &legacy("1", "logging/setLevel", r#"{"level":"error"}"#)));
    for (client, wants) in [(quiet, false), (loud, true)] {
        client.call(&mut site, 2);
        let (responder, _) = site.handed();
        let log = Note::Log(LogMessage::new(LogLevel::Warning, "d"));
        assert_eq!(site.bench.server.notify(site.bench.now, responder.key(), log).is_ok(), wants);
    }
}

// covers: LOG-S-010, SHTTP-S-034
#[test]
fn logs_of_a_client_that_is_away_do_not_push_out_its_answers() {
    let mut site = Site::with(announces);
    let client = site.session("2025-11-25", "{}");
    let done = client.call(&mut site, 2);
    let (first, _) = site.handed();
    site.pass(Duration::from_secs(1));
    let cursor = event(&site.said(done)[1]).0.to_owned();
    let other = client.call(&mut site, 3);
    let (second, _) = site.handed();
    site.pass(Duration::from_secs(1));
    site.cut(done);
    site.complete(first, "{}");
    site.cut(other);
    for _ in 0..10_000 {
        let log = Note::Log(LogMessage::new(LogLevel::Info, "d"));
        let refused = site.bench.server.notify(site.bench.now, second.key(), log).unwrap_err();
        assert_eq!(refused.why, Refusal::Full);
    }
    let again = site.bare("GET", client.after(&cursor));
    assert_eq!(event(site.said(again).iter().rfind(|line| line.contains("result")).unwrap()).1, answer(2));
    site.complete(second, "{}");
}
