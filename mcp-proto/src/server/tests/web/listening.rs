//! Notifications of changes: subscriptions over HTTP and on a duplex exchange, and the
//! corresponding behaviour of the older revisions.

use super::*;
use crate::input::Change;

const ID: &str = "io.modelcontextprotocol/subscriptionId";
const CHANGED: &str = "notifications/tools/list_changed";

fn announces(config: &mut ServerConfig) {
    config.capabilities.tools.get_or_insert_default().list_changed = true;
    config.capabilities.logging = Some(Object::new());
}

fn listen(id: &str, filter: &str) -> String {
    modern(id, "subscriptions/listen", &format!(r#","notifications":{filter}"#))
}

fn headers() -> Headers {
    Headers::new().with("MCP-Protocol-Version", "2026-07-28").with("Mcp-Method", "subscriptions/listen")
}

/// Returns the method of a notification, its subscription, and the filter that it repeats.
fn note(text: &str) -> (String, Option<RawJson>, Option<Object>) {
    let crate::rpc::Message::Notification(note) = message(text) else { panic!("{text}") };
    let params = Object::read_opt(note.params.as_ref()).unwrap();
    let meta = params.optional_object("_meta").unwrap().unwrap_or_default();
    (note.method.into_owned(), meta.get(ID), params.optional_object("notifications").unwrap())
}

fn publish(site: &mut Site) {
    site.bench.server.publish(site.bench.now, Change::Tools);
    site.take();
}

// covers: META-S-019, SUB-S-001, SUB-S-003, SUB-S-004, SUB-S-006, SUB-S-008, SUB-S-012, SUB-S-015,
// SEPX-S-009, X-18, R-30, B-034
#[test]
fn subscription_is_acknowledged_notified_and_ended() {
    for id in ["7", r#""7""#] {
        let mut site = Site::with(announces);
        publish(&mut site);
        let x = site.post(headers(), &listen(id, r#"{"toolsListChanged":true,"promptsListChanged":true}"#));
        let said = site.said(x);
        assert_eq!((said[0].as_str(), said.len()), ("200 stream", 2));
        let (method, subscription, filter) = note(event(&said[1]).1);
        assert_eq!(method, "notifications/subscriptions/acknowledged");
        assert_eq!(subscription.unwrap(), RawJson::parse(id.as_bytes().to_vec()).unwrap());
        let filter = filter.unwrap();
        assert_eq!((filter.required("toolsListChanged"), filter.iter().count()), (Ok(true), 1));
        publish(&mut site);
        let said = site.said(x);
        let (method, subscription, _) = note(event(&said[0]).1);
        assert_eq!((method.as_str(), said.len()), (CHANGED, 1));
        assert_eq!(subscription.unwrap(), RawJson::parse(id.as_bytes().to_vec()).unwrap());
        site.bench.server.shutdown(site.bench.now, Duration::from_secs(1));
        let said = site.said(x);
        let closing = result(event(&said[0]).1);
        assert_eq!(closing.required::<String>("resultType").unwrap(), "complete");
        let meta = closing.optional_object("_meta").unwrap().unwrap();
        assert_eq!(meta.get(ID).unwrap(), RawJson::parse(id.as_bytes().to_vec()).unwrap());
        assert_eq!(said[1..], ["end"]);
        assert!(site.bench.server.is_terminated());
    }
}

// covers: SUB-S-001, SUB-S-006, SUB-C-002, X-18
#[test]
fn only_requested_changes_are_sent() {
    let mut site = Site::with(announces);
    let x = site.post(headers(), &listen("1", r#"{"promptsListChanged":true}"#));
    assert_eq!(note(event(&site.said(x)[1]).1).2.unwrap().iter().count(), 0);
    publish(&mut site);
    assert!(site.said(x).is_empty());
    for filter in ["7", r#"{"toolsListChanged":"yes"}"#] {
        let y = site.post(headers(), &listen("2", filter));
        assert_eq!(site.refusal(y), (200, -32602));
    }
    let y = site.post(headers(), &modern("2", "subscriptions/listen", ""));
    assert_eq!(site.refusal(y), (200, -32602));
    // A server without these capabilities sends nothing.
    let mut site = Site::new();
    let x = site.post(headers(), &listen("1", r#"{"toolsListChanged":true}"#));
    assert_eq!(note(event(&site.said(x)[1]).1).2.unwrap().iter().count(), 0);
    publish(&mut site);
    assert!(site.said(x).is_empty());
}

// covers: SUB-C-011
#[test]
fn subscription_ends_with_its_exchange_and_is_bounded() {
    let mut site = Site::with(|config| {
        announces(config);
        config.limits.server.max_streams = 2;
    });
    let open = |site: &mut Site| site.post(headers(), &listen("1", r#"{"toolsListChanged":true}"#));
    let (a, b) = (open(&mut site), open(&mut site));
    let full = open(&mut site);
    assert_eq!(site.refusal(full), (503, -32603));
    site.cut(a);
    let again = open(&mut site);
    for x in [a, b, again] {
        assert_eq!(site.said(x)[0], "200 stream");
    }
    publish(&mut site);
    // All three have the same id. Each gets the notification on its own stream, and the closed one
    // affects no other.
    for (x, told) in [(a, 0), (b, 1), (again, 1)] {
        assert_eq!(site.said(x).len(), told);
    }
    // It runs no handler, so nothing waits for it.
    assert_eq!(site.bench.server.running(), 0);
    site.cut(b);
    site.cut(again);
    assert!(site.at_rest() && site.bench.server.listens.is_empty() && site.bench.server.wire.env.watchers.is_empty());
    let json = site.post(headers().with("Accept", "application/json"), &listen("1", "{}"));
    assert_eq!(site.refusal(json).0, 406);
}

// covers: CANC-S-004, SUB-S-008, SUB-S-012, SEPX-S-009, X-01, SUB-C-011, SUB-C-010
#[test]
fn duplex_subscriptions_are_distinguished_by_id() {
    let mut bench = Bench::with(announces).open(A);
    let said = bench.say(A, &listen("1", r#"{"toolsListChanged":true}"#));
    assert_eq!(note(&said[0]).0, "notifications/subscriptions/acknowledged");
    bench.say(A, &listen(r#""b""#, r#"{"toolsListChanged":true}"#));
    let again = bench.say(A, &listen("1", "{}"));
    assert_eq!(error(&again[0]).code, -32600);
    bench.server.publish(bench.now, Change::Tools);
    let told: Vec<_> = bench.heard(A).iter().map(|said| note(said).1.unwrap()).collect();
    assert_eq!(told.len(), 2);
    assert_ne!(told[0], told[1]);
    bench.say(A, r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#);
    bench.server.publish(bench.now, Change::Tools);
    assert_eq!(bench.heard(A).len(), 1);
    bench.server.shutdown(bench.now, Duration::ZERO);
    let said = bench.heard(A);
    assert_eq!(result(&said[0]).required::<String>("resultType").unwrap(), "complete");
    assert_eq!((note(&said[1]).0.as_str(), said[2].as_str()), ("notifications/cancelled", "end"));
}

// covers: B-189
#[test]
fn subscriptions_of_a_duplex_exchange_are_bounded() {
    let mut bench = Bench::with(|config| {
        announces(config);
        config.limits.server.max_streams_per_client = 1;
    })
    .open(A);
    bench.say(A, &listen("1", "{}"));
    assert_eq!(error(&bench.say(A, &listen("2", "{}"))[0]).code, -32603);
    bench.handle_event(A, failed());
    assert!(bench.at_rest() && bench.server.listens.is_empty() && bench.server.wire.env.watchers.is_empty());
}

// covers: SHTTP-S-034, SHTTP-S-035, X-18, RSUB-S-003
#[test]
fn session_stream_gets_one_notification_for_many_changes() {
    let mut site = Site::with(announces);
    let client = site.session("2025-11-25", "{}");
    let x = client.call(&mut site, 1);
    let (responder, _) = site.handed();
    site.pass(Duration::from_secs(1));
    site.said(x);
    publish(&mut site);
    publish(&mut site);
    // Never on the stream of a request.
    assert!(site.said(x).is_empty());
    let own = site.bare("GET", client.headers());
    let said = site.said(own);
    assert_eq!(said.iter().filter(|said| said.contains(CHANGED)).count(), 1);
    publish(&mut site);
    let told = site.said(own);
    assert_eq!((note(event(&told[0]).1).0.as_str(), told.len()), (CHANGED, 1));
    // A disconnected client gets one notification after it reconnects, also with a last event id.
    site.cut(own);
    publish(&mut site);
    let again = site.bare("GET", client.after(event(&told[0]).0));
    assert_eq!(site.said(again).iter().filter(|said| said.contains(CHANGED)).count(), 1);
    let new = site.session("2025-11-25", "{}");
    let own = site.bare("GET", new.headers());
    assert!(!site.said(own).iter().any(|said| said.contains(CHANGED)));
    site.complete(responder, "{}");
}

// covers: X-18, RSUB-S-003
#[test]
fn legacy_duplex_client_gets_changes_after_initialized() {
    let ready = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    for version in ["2024-11-05", "2025-11-25"] {
        let mut bench = Bench::with(announces).initialized(A, version, "{}");
        bench.server.publish(bench.now, Change::Tools);
        assert!(bench.heard(A).is_empty());
        let said = bench.say(A, ready);
        assert_eq!((note(&said[0]).0.as_str(), said.len()), (CHANGED, 1));
        bench.server.publish(bench.now, Change::Tools);
        assert_eq!(bench.heard(A).len(), 1);
    }
    let mut bench = Bench::new().initialized(A, "2025-11-25", "{}");
    bench.say(A, ready);
    bench.server.publish(bench.now, Change::Tools);
    assert!(bench.heard(A).is_empty());
}

// covers: B-187
#[test]
fn changes_are_merged_for_a_slow_client() {
    let mut site = Site::with(announces);
    let x = site.post(headers(), &listen("1", r#"{"toolsListChanged":true}"#));
    site.said(x);
    site.unsent(x, 2 << 20);
    for _ in 0..10_000 {
        site.bench.server.publish(site.bench.now, Change::Tools);
    }
    assert!(site.said(x).is_empty());
    site.unsent(x, 0);
    assert_eq!(site.said(x).len(), 1);
}

// covers: SUB-S-012, SUB-S-008, B-173
#[test]
fn shutdown_ends_every_stream_in_order() {
    let mut site = Site::with(announces);
    let wire = ExchangeId(1000);
    site.bench.handle_event(wire, ExchangeEvent::Opened(Peer::default()));
    site.bench.item(wire, read(&listen("9", "{}")));
    let clients = [site.session("2025-11-25", "{}"), site.session("2025-06-18", "{}")];
    let own: Vec<ExchangeId> = clients.iter().map(|client| site.bare("GET", client.headers())).collect();
    let open: Vec<ExchangeId> = ["1", "2"].iter().map(|id| site.post(headers(), &listen(id, "{}"))).collect();
    for x in own.iter().chain(&open).chain([&wire]) {
        site.said(*x);
    }
    site.bench.server.shutdown(site.bench.now, Duration::from_secs(5));
    for x in own {
        assert_eq!(site.said(x), ["end"]);
    }
    for x in open {
        let said = site.said(x);
        assert_eq!(
            (result(event(&said[0]).1).required::<String>("resultType").unwrap().as_str(), said.len()),
            ("complete", 2)
        );
    }
    let said = site.said(wire);
    assert_eq!((note(&said[1]).0.as_str(), said.last().map(String::as_str)), ("notifications/cancelled", Some("end")));
    assert!(site.bench.server.is_terminated());
}

// covers: HTTP-S-022, LOG-S-008
#[test]
fn request_notifications_are_not_sent_on_a_subscription() {
    let mut site = Site::with(announces);
    let open = site.post(headers(), &listen("1", r#"{"toolsListChanged":true}"#));
    site.said(open);
    let call = Headers::new()
        .with("MCP-Protocol-Version", "2026-07-28")
        .with("Mcp-Method", "tools/call")
        .with("Mcp-Name", "t");
    let meta = r#""_meta":{"progressToken":1,"io.modelcontextprotocol/logLevel":"info","#;
    let body = modern("1", "tools/call", r#","name":"t""#).replace(r#""_meta":{"#, meta);
    let x = site.post(call, &body);
    let (responder, _) = site.handed();
    let log = crate::model::logging::LogMessage::new(crate::LogLevel::Info, "d");
    let notes = [Note::Progress(crate::model::Progress::new(1.0)), Note::Log(log)];
    for note in notes {
        site.bench.server.notify(site.bench.now, responder.key(), note).unwrap();
    }
    site.complete(responder, "{}");
    assert_eq!((site.said(x).len(), site.said(open).len()), (5, 0));
}
