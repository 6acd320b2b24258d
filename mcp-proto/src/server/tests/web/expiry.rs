//! The end of what a token has opened, when it expires.

use super::*;
use crate::auth::Access;
use crate::server::SsePaths;

/// The Unix time at the beginning of each test.
const BEGAN: Duration = Duration::from_secs(1_000_000);
/// The time for which a token is valid.
const VALID: Duration = Duration::from_secs(60);

fn guarded() -> Site {
    Site::with(|config| {
        config.admit = true;
        config.origin_unix = BEGAN;
        config.keep_alive = None;
        config.sse = Some(SsePaths::default());
        config.web_socket = true;
        config.capabilities.tools.get_or_insert_default().list_changed = true;
    })
}

/// Admits the pending request with a token that is valid from now on.
fn grant(site: &mut Site) {
    let mut access = Access::new("ada");
    access.expires = Some(BEGAN + site.bench.now.since_origin() + VALID);
    let Some(Event::Admit(token, _)) = site.event() else { panic!("something waits for its admission") };
    site.bench.server.admit(site.bench.now, token, Admission::Granted(access.into()));
    site.take();
}

fn post(site: &mut Site, headers: Headers, body: &str) -> ExchangeId {
    let x = site.post(headers, body);
    grant(site);
    x
}

fn get(site: &mut Site, headers: Headers) -> ExchangeId {
    let x = site.bare("GET", headers);
    grant(site);
    x
}

fn modern_headers(method: &str) -> Headers {
    let headers = Headers::new().with("MCP-Protocol-Version", "2026-07-28").with("Mcp-Method", method);
    if method == "tools/call" { headers.with("Mcp-Name", "t") } else { headers }
}

fn listen(id: &str) -> String {
    modern(id, "subscriptions/listen", r#","notifications":{"toolsListChanged":true}"#)
}

/// Lets a time pass that ends just before the tokens from the beginning expire, then the rest.
fn expire(site: &mut Site, before: impl FnOnce(&mut Site)) {
    site.pass(VALID - Duration::from_millis(1));
    before(site);
    site.pass(Duration::from_millis(1));
}

#[test]
fn subscription_ends_with_its_result_and_a_call_goes_on() {
    let mut site = guarded();
    let listens = post(&mut site, modern_headers("subscriptions/listen"), &listen("1"));
    let calls = post(&mut site, modern_headers("tools/call"), &modern("2", "tools/call", r#","name":"t""#));
    let (responder, _) = site.handed();
    for x in [listens, calls] {
        site.said(x);
    }
    expire(&mut site, |site| assert!(site.said(listens).is_empty()));
    let said = site.said(listens);
    assert!(said.len() == 2 && said[0].contains(r#""resultType":"complete""#) && said[1] == "end", "{said:?}");
    assert!(site.said(calls).is_empty());
    site.complete(responder, "{}");
    assert!(site.said(calls)[0].starts_with("200 "));
    assert!(site.at_rest());
}

#[test]
fn stream_of_a_session_ends_and_the_session_goes_on() {
    let mut site = guarded();
    let x = post(&mut site, Headers::new(), &initialize("2025-11-25", "{}"));
    let session = site.head(x).headers.get("mcp-session-id").unwrap().to_string();
    let client = Client { session, version: "2025-11-25" };
    assert!(matches!(site.event(), Some(Event::SessionOpened(_))));
    let stream = get(&mut site, client.headers());
    let calls = post(&mut site, client.headers(), &call(1));
    let (responder, _) = site.handed();
    site.said(stream);
    expire(&mut site, |site| assert!(site.said(stream).is_empty()));
    assert_eq!(site.said(stream), ["end"]);
    site.complete(responder, "{}");
    let said = site.said(calls);
    assert!(said.iter().any(|said| said.contains(r#""id":1,"result""#)), "{said:?}");
    // The client comes back with another token, and hears of changes again.
    let stream = get(&mut site, client.headers());
    site.bench.server.publish(site.bench.now, crate::input::Change::Tools);
    let said = site.said(stream);
    assert!(said.last().unwrap().contains("list_changed"), "{said:?}");
    assert_eq!(site.bench.server.sessions(), 1);
}

#[test]
fn stream_that_another_get_took_over_has_the_newer_token() {
    let mut site = guarded();
    let x = post(&mut site, Headers::new(), &initialize("2025-11-25", "{}"));
    let session = site.head(x).headers.get("mcp-session-id").unwrap().to_string();
    let client = Client { session, version: "2025-11-25" };
    assert!(matches!(site.event(), Some(Event::SessionOpened(_))));
    let first = get(&mut site, client.headers());
    site.pass(VALID / 2);
    let second = get(&mut site, client.headers());
    assert_eq!(site.said(first).last().map(String::as_str), Some("end"));
    site.said(second);
    site.pass(VALID / 2);
    assert!(site.said(second).is_empty());
    site.pass(VALID / 2);
    assert_eq!(site.said(second), ["end"]);
}

fn open_sse(site: &mut Site) -> (ExchangeId, String) {
    let stream = site.bare_at("/sse", "GET", Headers::new().with("Accept", "text/event-stream"));
    grant(site);
    let target = event(site.said(stream).last().unwrap()).1.to_string();
    site.post_at(&target, Headers::new(), &initialize("2024-11-05", "{}"));
    grant(site);
    site.said(stream);
    (stream, target)
}

#[test]
fn stream_of_http_sse_ends_after_its_calls() {
    let mut site = guarded();
    let (idle, _) = open_sse(&mut site);
    let (stream, target) = open_sse(&mut site);
    site.post_at(&target, Headers::new(), &legacy("5", "tools/call", r#"{"name":"t"}"#));
    grant(&mut site);
    let (responder, incoming) = site.handed();
    assert!(incoming.context.access.is_some());
    expire(&mut site, |site| assert!(site.said(idle).is_empty()));
    assert_eq!(site.said(idle), ["end"]);
    assert!(site.said(stream).is_empty(), "a call runs");
    // The token of this POST is newer, but the stream ends soon.
    site.post_at(&target, Headers::new(), &legacy("6", "tools/call", r#"{"name":"t"}"#));
    grant(&mut site);
    let said = site.said(stream);
    assert!(said[0].contains(r#""id":6,"error""#) && said[0].contains("invalid_token"), "{said:?}");
    site.complete(responder, "{}");
    let said = site.said(stream);
    assert!(said.len() == 2 && said[0].contains(r#""id":5,"result""#) && said[1] == "end", "{said:?}");
    assert!(site.at_rest());
}

#[test]
fn request_over_http_sse_has_the_access_of_its_post() {
    let mut site = guarded();
    let (_, target) = open_sse(&mut site);
    site.pass(VALID / 2);
    site.post_at(&target, Headers::new(), &legacy("5", "tools/call", r#"{"name":"t"}"#));
    grant(&mut site);
    let (_responder, incoming) = site.handed();
    assert_eq!(incoming.context.access.unwrap().expires, Some(BEGAN + VALID + VALID / 2));
}

fn open_web_socket(site: &mut Site) -> ExchangeId {
    let handshake = Headers::new()
        .with("Upgrade", "websocket")
        .with("Connection", "Upgrade")
        .with("Sec-WebSocket-Version", "13")
        .with("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==");
    let x = site.bare("GET", handshake);
    grant(site);
    assert_eq!(site.head(x).status, 101);
    site.said(x);
    x
}

#[test]
fn web_socket_is_aborted_after_its_calls() {
    let mut site = guarded();
    let (idle, busy) = (open_web_socket(&mut site), open_web_socket(&mut site));
    for body in [listen("1"), modern("2", "tools/call", r#","name":"t""#)] {
        site.bench.item(busy, read(&body));
    }
    let (responder, incoming) = site.handed();
    assert!(incoming.context.access.is_some());
    site.said(busy);
    expire(&mut site, |site| assert!(site.said(idle).is_empty()));
    assert_eq!(site.said(idle), ["abort"]);
    let said = site.said(busy);
    assert!(said.len() == 2 && said[0].contains("subscriptionId") && said[1].contains("cancelled"), "{said:?}");
    site.bench.item(busy, read(&modern("3", "tools/call", r#","name":"t""#)));
    let said = site.said(busy);
    assert!(error(&said[0]).data.unwrap().as_str().contains("invalid_token"), "{said:?}");
    assert_eq!(site.codes(), ["expired-access"]);
    site.complete(responder, "{}");
    let said = site.said(busy);
    assert!(said.len() == 2 && said[0].contains(r#""id":2,"result""#) && said[1] == "abort", "{said:?}");
    assert!(site.at_rest());
}

#[test]
fn call_that_is_cancelled_no_longer_keeps_a_web_socket() {
    let mut site = guarded();
    let x = open_web_socket(&mut site);
    site.bench.item(x, read(&modern("2", "tools/call", r#","name":"t""#)));
    let _ = site.handed();
    site.pass(VALID);
    assert!(site.said(x).is_empty());
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}"#;
    site.bench.item(x, read(cancel));
    assert_eq!(site.said(x), ["abort"]);
    assert!(site.at_rest());
}

#[test]
fn expired_token_opens_nothing_for_long() {
    let mut site = guarded();
    let x = site.post(modern_headers("subscriptions/listen"), &listen("1"));
    let mut access = Access::new("ada");
    access.expires = Some(BEGAN - VALID);
    let Some(Event::Admit(token, _)) = site.event() else { panic!() };
    site.bench.server.admit(site.bench.now, token, Admission::Granted(access.into()));
    assert_eq!(site.bench.server.poll_timeout(), Some(site.bench.now));
    site.pass(Duration::ZERO);
    assert_eq!(site.said(x).last().map(String::as_str), Some("end"));
    assert!(site.at_rest());
}

#[test]
fn token_without_an_end_ends_nothing() {
    let mut site = guarded();
    let x = site.post(modern_headers("subscriptions/listen"), &listen("1"));
    let Some(Event::Admit(token, _)) = site.event() else { panic!() };
    site.bench.server.admit(site.bench.now, token, Admission::Granted(Access::new("ada").into()));
    site.said(x);
    site.pass(VALID * 1_000);
    assert!(site.said(x).is_empty());
}
