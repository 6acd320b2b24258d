//! Revoking the access of a principal: its remaining state, and the effects on other principals.

use super::*;
use crate::exchange::PeerKind;
use crate::input::Admission;
use crate::input::{InputResult, Principal, SessionKey};

fn guarded() -> Site {
    Site::with(|config| {
        config.admit = true;
        config.capabilities.tools.get_or_insert_default().list_changed = true;
    })
}

/// Admits the pending request with this principal.
fn admit(site: &mut Site, who: &str) {
    let admitted = site.event().and_then(|event| if let Event::Admit(token, _) = event { Some(token) } else { None });
    let token = admitted.expect("something waits for its admission");
    site.bench.server.admit(site.bench.now, token, Admission::Accept(Some(who.into())));
    site.take();
}

fn post(site: &mut Site, who: &str, headers: Headers, body: &str) -> ExchangeId {
    let x = site.post(headers, body);
    admit(site, who);
    x
}

fn get(site: &mut Site, who: &str, headers: Headers) -> ExchangeId {
    let x = site.bare("GET", headers);
    admit(site, who);
    x
}

/// Opens a session of this principal.
fn session(site: &mut Site, who: &str) -> (Client, SessionKey) {
    let x = post(site, who, Headers::new(), &initialize("2025-11-25", r#"{"elicitation":{}}"#));
    let id = site.head(x).headers.get("mcp-session-id").expect("a session is opened").to_string();
    let Some(Event::SessionOpened(key)) = site.event() else { panic!("it is told of") };
    (Client { session: id, version: "2025-11-25" }, key)
}

fn revoke(site: &mut Site, who: &str) {
    site.bench.server.revoke(site.bench.now, &who.into());
    site.take();
}

fn headers(method: &str) -> Headers {
    let headers = Headers::new().with("MCP-Protocol-Version", "2026-07-28").with("Mcp-Method", method);
    if method == "tools/call" { headers.with("Mcp-Name", "t") } else { headers }
}

/// Returns the code of the error in the last response or event of these lines.
fn last_error(said: &[String]) -> i64 {
    let line = said.iter().rev().find(|line| line.contains("jsonrpc")).expect("an answer");
    error(&line[line.find('{').expect("an object")..]).code
}

// covers: S3-45, B-111, S3-42
#[test]
fn sessions_and_streams_of_a_revoked_principal_end() {
    let mut site = guarded();
    let (ada, of_ada) = session(&mut site, "ada");
    let (bob, _) = session(&mut site, "bob");
    let streams = [get(&mut site, "ada", ada.headers()), get(&mut site, "bob", bob.headers())];
    let calls = [post(&mut site, "ada", ada.headers(), &call(1)), post(&mut site, "bob", bob.headers(), &call(1))];
    let [(of_ada_runs, _), (of_bob_runs, _)] = [site.handed(), site.handed()];
    // One request has an input request, and another is disconnected and resumed later.
    let asks = post(&mut site, "ada", ada.headers(), &call(2));
    let (responder, _) = site.handed();
    site.bench.answer(responder, ask("q"));
    let late = post(&mut site, "ada", ada.headers(), &call(3));
    let (_late_runs, _) = site.handed();
    site.pass(Duration::from_millis(500));
    site.cut(late);
    streams.iter().chain(&calls).chain([&asks]).for_each(|x| drop(site.said(*x)));
    assert_eq!((site.bench.server.sessions(), site.bench.server.running()), (2, 4));

    revoke(&mut site, "ada");
    let cancelled: Vec<_> = core::iter::from_fn(|| site.event()).collect();
    assert!(cancelled.contains(&Event::Cancelled(of_ada_runs.key())), "{cancelled:?}");
    assert_eq!(cancelled.last(), Some(&Event::SessionEnded(of_ada, SessionEnd::Revoked)));
    assert_eq!(site.said(streams[0]), ["end"]);
    for x in [calls[0], asks] {
        let said = site.said(x);
        assert_eq!((last_error(&said), said.last().map(String::as_str)), (-32603, Some("end")), "{said:?}");
    }
    assert_eq!((site.bench.server.sessions(), site.bench.server.running()), (1, 1));
    // Nothing of the session is left, even for a client that is admitted with the same principal
    // again.
    for x in [
        post(&mut site, "ada", ada.headers(), &legacy("9", "ping", "{}")),
        get(&mut site, "ada", ada.headers()),
        get(&mut site, "ada", ada.after("s4-1")),
    ] {
        let said = site.said(x);
        assert!(said.last().is_some_and(|said| said.starts_with("404 ")), "{said:?}");
    }
    // A late result of the handler is dropped.
    site.complete(of_ada_runs, "{}");
    // The other principal is not affected.
    assert!(site.said(streams[1]).is_empty() && site.said(calls[1]).is_empty());
    site.complete(of_bob_runs, "{}");
    assert!(site.said(calls[1]).iter().any(|said| said.ends_with(&answer(1))));
    let x = post(&mut site, "bob", bob.headers(), &legacy("9", "ping", "{}"));
    assert!(site.said(x)[1].starts_with("200 "));
}

// covers: S3-45, SUB-S-012
#[test]
fn requests_of_a_revoked_principal_end_in_every_revision() {
    let mut site = guarded();
    let body = modern("1", "tools/call", r#","name":"t""#);
    let runs = post(&mut site, "ada", headers("tools/call"), &body);
    let (ada_runs, _) = site.handed();
    let other = post(&mut site, "bob", headers("tools/call"), &body);
    let (bob_runs, _) = site.handed();
    let listen = modern("2", "subscriptions/listen", r#","notifications":{"toolsListChanged":true}"#);
    let listens = post(&mut site, "ada", headers("subscriptions/listen"), &listen);
    // A sessionless request of an older revision whose client is disconnected.
    let alone = post(&mut site, "ada", Headers::new().with("MCP-Protocol-Version", "2025-11-25"), &call(3));
    let (alone_runs, _) = site.handed();
    site.cut(alone);
    // Its body is still incomplete.
    let half = site.begin("POST", headers("tools/call").with("Content-Type", "application/json"));
    admit(&mut site, "ada");
    // The principal of this request is not known yet.
    let waits = site.begin("POST", headers("tools/call").with("Content-Type", "application/json"));
    for x in [runs, other, listens, half] {
        site.said(x);
    }
    let command = Input::Command(ServerCommand::Revoke(Principal("ada".into())));
    assert_eq!(site.bench.server.apply(site.bench.now, command), Ok(InputResult::Done));

    assert_eq!(last_error(&site.said(runs)), -32603);
    let said = site.said(listens);
    assert_eq!((said.len(), said[1].as_str()), (2, "end"), "{said:?}");
    assert_eq!(site.refusal(half).0, 403);
    site.bench.item(half, read(&body));
    let events: Vec<_> = core::iter::from_fn(|| site.event()).collect();
    for key in [ada_runs.key(), alone_runs.key()] {
        assert!(events.contains(&Event::Cancelled(key)), "{events:?}");
    }
    site.take();
    assert!(site.requests.is_empty(), "the body of a refused request is not run");
    assert_eq!(site.bench.server.running(), 1);
    assert!(site.said(other).is_empty() && site.said(waits).is_empty());
    site.complete(bob_runs, "{}");
    assert!(site.said(other)[0].starts_with("200 "));
}

// covers: S3-45
#[test]
fn connection_of_a_revoked_principal_is_closed() {
    let mut bench = Bench::with(|config| config.admit = true);
    let opened = |bench: &mut Bench, x, who: Option<&str>| {
        bench.handle_event(x, ExchangeEvent::Opened(Peer::unix(None)));
        let token = bench.events().into_iter().find_map(|event| match event {
            Event::Admit(token, None) => Some(token),
            _ => None,
        });
        let principal = who.map(Principal::from);
        bench.server.admit(bench.now, token.expect("it is shown"), Admission::Accept(principal));
        bench.heard(x);
    };
    let (unnamed, given) = (ExchangeId(3), ExchangeId(4));
    opened(&mut bench, A, Some("ada"));
    opened(&mut bench, B, Some("bob"));
    opened(&mut bench, unnamed, None);
    bench.handle_event(given, ExchangeEvent::Opened(Peer::default()));
    assert_eq!(Peer::default().kind, PeerKind::Given);
    for x in [A, B, unnamed, given] {
        bench.runs(x, &modern("1", "tools/call", r#","name":"t""#));
        assert_eq!(bench.say(x, &modern("2", "subscriptions/listen", r#","notifications":{}"#)).len(), 1);
    }
    bench.server.revoke(bench.now, &"ada".into());
    let outputs = bench.outputs();
    let said: Vec<String> = outputs.iter().filter_map(|output| on(A, output)).collect();
    assert_eq!((error(&said[0]).code, said.last().map(String::as_str)), (-32603, Some("end")), "{said:?}");
    assert!(said[1].contains("subscriptionId") && said.len() == 4, "{said:?}");
    for x in [B, unnamed, given] {
        assert!(outputs.iter().all(|output| on(x, output).is_none()), "{x:?}");
    }
    assert_eq!((bench.server.wire.env.exchanges.len(), bench.server.running()), (3, 3));
    bench.item(A, read(&modern("3", "tools/call", r#","name":"t""#)));
    assert_eq!(bench.codes(), ["unknown-exchange"]);
    // No name equals the principal of a connection without one.
    for who in ["", "nobody", "ada"] {
        bench.server.revoke(bench.now, &who.into());
        assert_eq!(bench.outputs(), []);
    }
    // A shutdown waits for the requests, which end with their principal.
    for x in [unnamed, given] {
        bench.handle_event(x, failed());
    }
    bench.server.shutdown(bench.now, Duration::from_secs(60));
    assert!(!bench.server.is_terminated());
    bench.server.revoke(bench.now, &"bob".into());
    assert!(bench.server.is_terminated());
    bench.server.revoke(bench.now, &"bob".into());
    assert_eq!(bench.events().last(), Some(&Event::Terminated));
}
