//! The share of one client in each common resource. Each test has a greedy client, which takes all
//! that it can get, and a modest one.

use super::web::{Client, Site, answer, call};
use super::*;
use crate::exchange::Headers;
use crate::input::{Admission, AdmitToken, Principal};
use crate::limits::ServerLimits;
use crate::server::client::ClientIdentity;
use core::net::{IpAddr, SocketAddr};

/// Documentation addresses (RFC 5737): none of them is loopback.
const GREEDY: [u8; 4] = [192, 0, 2, 1];
const MODEST: [u8; 4] = [198, 51, 100, 7];

fn from(address: [u8; 4]) -> Peer {
    Peer::tcp(SocketAddr::from((address, 5000)))
}

/// A server for clients of other machines.
fn remote(change: impl FnOnce(&mut ServerConfig)) -> Site {
    Site::with(|config| {
        config.hosts = Hosts::Any;
        change(config);
    })
}

/// A server with these limits. The greedy client sends all requests until [`modest`] is called.
fn site(change: impl FnOnce(&mut ServerLimits)) -> Site {
    let mut site = remote(|config| change(&mut config.limits.server));
    site.peer = from(GREEDY);
    site
}

fn modest(site: &mut Site) {
    site.peer = from(MODEST);
}

fn newer(method: &str) -> Headers {
    Headers::new().with("MCP-Protocol-Version", "2026-07-28").with("Mcp-Method", method).with("Mcp-Name", "t")
}

/// A call of 2026-07-28.
fn modern_call(site: &mut Site, rest: &str) -> ExchangeId {
    site.post(newer("tools/call"), &modern("1", "tools/call", &format!(r#","name":"t"{rest}"#)))
}

/// A subscription of 2026-07-28.
fn subscribe(site: &mut Site, id: &str) -> ExchangeId {
    let headers = newer("subscriptions/listen").with("Accept", "application/json, text/event-stream");
    site.post(headers, &modern(id, "subscriptions/listen", r#","notifications":{}"#))
}

fn is_busy(site: &mut Site, x: ExchangeId) -> bool {
    let said = site.said(x);
    said.iter().any(|line| line.starts_with("503 ") && line.contains("its share"))
}

// covers: B-187
#[test]
fn one_client_runs_a_share_of_all_requests() {
    let mut site = site(|limits| limits.max_running_requests = 8);
    for _ in 0..2 {
        modern_call(&mut site, "");
        let _ = site.handed();
    }
    let third = modern_call(&mut site, "");
    assert!(is_busy(&mut site, third));
    modest(&mut site);
    for _ in 0..2 {
        modern_call(&mut site, "");
        let _ = site.handed();
    }
}

// covers: B-187
#[test]
fn finished_request_frees_its_share() {
    let mut site = site(|limits| limits.max_running_requests = 4);
    for round in 0..6 {
        let x = modern_call(&mut site, "");
        let (responder, _) = site.handed();
        if round % 2 == 0 {
            site.complete(responder, "{}");
        } else {
            site.cut(x);
        }
    }
    assert!(site.at_rest());
}

// covers: B-187
#[test]
fn one_client_holds_a_share_of_all_request_bytes() {
    let mut site = site(|limits| limits.max_running_bytes = 800_000);
    let large = format!(r#","arguments":{{"x":"{}"}}"#, "x".repeat(70_000));
    let first = modern_call(&mut site, &large);
    let _ = site.handed();
    let second = modern_call(&mut site, &large);
    let third = modern_call(&mut site, &large);
    assert!(!is_busy(&mut site, first) && is_busy(&mut site, third));
    site.cut(second);
    modest(&mut site);
    let other = modern_call(&mut site, &large);
    assert!(!is_busy(&mut site, other));
}

// covers: B-187, MRTR-S-024
#[test]
fn responses_of_a_client_count_in_its_share() {
    let mut site = site(|limits| limits.max_running_bytes = 800_000);
    let client = site.session("2025-11-25", r#"{"elicitation":{}}"#);
    client.call(&mut site, 1);
    let (responder, _) = site.handed();
    site.bench.answer(responder, ask("q"));
    let reply = format!(
        r#"{{"jsonrpc":"2.0","id":1,"result":{{"action":"accept","content":{{"it":"{}"}}}}}}"#,
        "x".repeat(250_000)
    );
    site.post(client.headers(), &reply);
    let (_, incoming) = site.handed();
    assert!(incoming.inputs["q"].is_err(), "it counts as an error, since there is no room for it");
}

// covers: B-103, B-187
#[test]
fn one_client_has_a_share_of_all_exchanges() {
    let mut site = site(|limits| limits.max_exchanges = 8);
    let held: Vec<ExchangeId> = (0..2).map(|_| site.begin("POST", Headers::new())).collect();
    let third = site.begin("POST", Headers::new());
    assert!(site.said(third)[0].starts_with("503 "));
    modest(&mut site);
    let other = modern_call(&mut site, "");
    let (responder, _) = site.handed();
    site.complete(responder, "{}");
    assert!(site.said(other)[0].starts_with("200 "));
    site.cut(held[0]);
    site.peer = from(GREEDY);
    modern_call(&mut site, "");
    let _ = site.handed();
}

// covers: B-187
#[test]
fn one_client_has_a_share_of_all_streams() {
    let mut site = site(|limits| limits.max_streams = 8);
    let client = site.session("2025-11-25", "{}");
    let own = site.bare("GET", client.headers());
    subscribe(&mut site, "1");
    let third = subscribe(&mut site, "2");
    assert!(is_busy(&mut site, third));
    let other = site.session("2025-11-25", "{}");
    let fourth = site.bare("GET", other.headers());
    assert!(is_busy(&mut site, fourth));
    site.cut(own);
    let again = site.bare("GET", other.headers());
    assert!(!is_busy(&mut site, again));
    modest(&mut site);
    for id in ["1", "2"] {
        let x = subscribe(&mut site, id);
        assert!(!is_busy(&mut site, x));
    }
}

// covers: B-187
#[test]
fn subscriptions_count_their_ids() {
    let long = |n: usize| format!(r#""{n}{}""#, "i".repeat(1000));
    let mut site = site(|limits| limits.max_running_bytes = 400_000);
    let before = site.bench.server.running_bytes();
    let first = subscribe(&mut site, &long(0));
    let one = site.bench.server.running_bytes() - before;
    assert!(one > 2000, "{one}");
    let refused = (1..200).any(|n| {
        let x = subscribe(&mut site, &long(n));
        is_busy(&mut site, x)
    });
    assert!(refused);
    modest(&mut site);
    let other = subscribe(&mut site, &long(0));
    assert!(!is_busy(&mut site, other));
    let held = site.bench.server.running_bytes();
    site.cut(first);
    assert!(site.bench.server.running_bytes() < held - 2000);
}

// covers: B-187, S3-50
#[test]
fn one_client_opens_a_share_of_all_sessions() {
    let mut site = site(|limits| limits.max_sessions = 8);
    let first = site.session("2025-11-25", "{}");
    site.session("2025-11-25", "{}");
    let x = site.post(Headers::new(), &initialize("2025-11-25", "{}"));
    assert!(is_busy(&mut site, x));
    modest(&mut site);
    site.session("2025-11-25", "{}");
    site.peer = from(GREEDY);
    site.bare("DELETE", first.headers());
    site.session("2025-11-25", "{}");
}

// covers: B-187, S3-50
#[test]
fn one_client_has_a_share_of_all_client_data() {
    let mut site = site(|limits| limits.max_client_data_total = 100_000);
    let much = format!(r#"{{"x":"{}"}}"#, "x".repeat(10_000));
    site.session("2025-11-25", &much);
    site.session("2025-11-25", &much);
    let x = site.post(Headers::new(), &initialize("2025-11-25", &much));
    assert!(is_busy(&mut site, x));
    let little = site.session("2025-11-25", "{}");
    modest(&mut site);
    site.session("2025-11-25", &much);
    // The quota for stream histories is unaffected.
    assert_eq!(site.bench.server.wire.env.shares.all(Bound::History), 0);
    assert!(!little.session.is_empty());
}

// covers: B-187
#[test]
fn client_data_counts_until_the_connection_closes() {
    let mut bench = Bench::with(|config| config.limits.server.max_client_data_total = 30_000);
    let much = format!(r#"{{"x":"{}"}}"#, "x".repeat(12_000));
    let peer = |connection| Peer { connection: Some(connection), ..Peer::default() };
    bench.handle_event(A, ExchangeEvent::Opened(peer(1)));
    let said = bench.say(A, &initialize("2025-11-25", &much));
    assert_eq!(error(&said[0]).code, -32603);
    assert!(said[0].contains("its share"), "{said:?}");
    let mut bench = Bench::with(|config| {
        config.limits.server.client_shares = 1;
        config.limits.server.max_client_data_total = 30_000;
    });
    for (x, connection) in [(A, 1), (B, 2)] {
        bench.handle_event(x, ExchangeEvent::Opened(peer(connection)));
        assert!(bench.say(x, &initialize("2025-11-25", &much))[0].contains("protocolVersion"));
    }
    let third = ExchangeId(3);
    bench.handle_event(third, ExchangeEvent::Opened(peer(3)));
    assert_eq!(error(&bench.say(third, &initialize("2025-11-25", &much))[0]).code, -32603);
    bench.handle_event(A, failed());
    assert!(bench.say(third, &initialize("2025-11-25", &much))[0].contains("protocolVersion"));
    bench.handle_event(B, failed());
    bench.handle_event(third, failed());
    assert!(bench.server.wire.env.shares.is_empty());
}

/// Makes the server send this number of 1000-byte notifications to a disconnected client that can
/// resume the stream.
fn keep_notes(site: &mut Site, client: &Client, id: u32, notes: u64) {
    let x = client.call(site, id);
    let (responder, _) = site.handed();
    let note = |n: u64| Note::Custom("x".into(), Object::new().with("data", "x".repeat(1000).as_str()).with("n", n));
    site.bench.server.notify(site.bench.now, responder.key(), note(0)).unwrap();
    site.cut(x);
    for n in 1..notes {
        site.bench.server.notify(site.bench.now, responder.key(), note(n)).unwrap();
    }
    site.complete(responder, "{}");
}

// covers: S3-34, B-042, B-187
#[test]
fn histories_of_one_client_evict_none_of_another() {
    let mut site = site(|limits| limits.history_total = 400_000);
    modest(&mut site);
    let modest = site.session("2025-11-25", "{}");
    keep_notes(&mut site, &modest, 1, 60);
    let kept = site.kept();
    site.peer = from(GREEDY);
    for _ in 0..100 {
        let greedy = site.session("2025-11-25", "{}");
        keep_notes(&mut site, &greedy, 1, 20);
    }
    assert!(site.kept() - kept <= 100_000, "the client has no more than its share: {}", site.kept() - kept);
    site.peer = from(MODEST);
    let back = site.bare("GET", modest.after("s1-2"));
    let said = site.said(back);
    assert_eq!(said.len(), 62, "59 notes, the response, the end, and the head");
    assert_eq!(web::event(&said[60]).1, answer(1));
}

// covers: S3-34, B-042, B-187
#[test]
fn full_histories_evict_from_the_largest_client() {
    let mut site = site(|limits| {
        limits.client_shares = 2;
        limits.history_total = 400_000;
    });
    for address in [GREEDY, [203, 0, 113, 1]] {
        site.peer = from(address);
        let greedy = site.session("2025-11-25", "{}");
        keep_notes(&mut site, &greedy, 1, 300);
    }
    modest(&mut site);
    let modest = site.session("2025-11-25", "{}");
    keep_notes(&mut site, &modest, 1, 100);
    assert!(site.kept() <= 400_000);
    let back = site.bare("GET", modest.after("s1-2"));
    assert_eq!(site.said(back).len(), 102, "99 notes, the response, the end, and the head");
}

// covers: B-187
#[test]
fn client_identity_follows_peer_and_configuration() {
    let config = {
        let mut config = ServerConfig::new(Implementation::new("bench", "1.0"));
        config.proxies = vec![IpAddr::from([203, 0, 113, 9])];
        config
    };
    let of = |address: Option<&str>, connection: Option<u64>| {
        let peer = Peer { address: address.map(|text| text.parse().unwrap()), connection, ..Peer::default() };
        ClientIdentity::of(A, &peer, &config)
    };
    let address = |text: &str| ClientIdentity::Address(text.parse().unwrap());
    let rows = [
        (of(Some("192.0.2.1"), Some(1)), address("192.0.2.1")),
        (of(Some("::ffff:192.0.2.1"), Some(1)), address("192.0.2.1")),
        (of(Some("2001:db8:1:2:3:4:5:6"), Some(1)), address("2001:db8:1:2::")),
        (of(Some("2001:db8:1:2:ffff::1"), None), address("2001:db8:1:2::")),
        (of(Some("127.0.0.1"), Some(1)), ClientIdentity::Connection(1)),
        (of(Some("127.1.2.3"), Some(2)), ClientIdentity::Connection(2)),
        (of(Some("::ffff:127.0.0.1"), Some(1)), ClientIdentity::Connection(1)),
        (of(Some("::1"), Some(1)), ClientIdentity::Connection(1)),
        (of(Some("203.0.113.9"), Some(1)), ClientIdentity::Connection(1)),
        (of(Some("::ffff:203.0.113.9"), Some(1)), ClientIdentity::Connection(1)),
        (of(None, Some(1)), ClientIdentity::Connection(1)),
        (of(None, None), ClientIdentity::Exchange(A)),
        (of(Some("::1"), None), ClientIdentity::Exchange(A)),
    ];
    for (row, (is, should_be)) in rows.into_iter().enumerate() {
        assert_eq!(is, should_be, "row {row}");
    }
}

// covers: B-187
#[test]
fn sessions_and_connections_behind_a_proxy_are_clients() {
    let mut site = site(|limits| limits.max_running_requests = 8);
    let proxy =
        |connection| Peer { connection: Some(connection), ..Peer::tcp(SocketAddr::from(([127, 0, 0, 1], 5000))) };
    site.peer = proxy(1);
    let (greedy, modest) = (site.session("2025-11-25", "{}"), site.session("2025-11-25", "{}"));
    for id in 1..=2 {
        greedy.call(&mut site, id);
        let _ = site.handed();
    }
    let third = greedy.call(&mut site, 3);
    assert!(site.said(third)[0].contains("its share"));
    modest.call(&mut site, 1);
    let _ = site.handed();
    for _ in 0..2 {
        modern_call(&mut site, "");
        let _ = site.handed();
    }
    let refused = modern_call(&mut site, "");
    assert!(is_busy(&mut site, refused));
    site.peer = proxy(2);
    modern_call(&mut site, "");
    let _ = site.handed();
}

/// Admits the pending request.
fn admit(site: &mut Site, principal: Option<&str>) {
    let token: AdmitToken = loop {
        if let Event::Admit(token, _) = site.event().expect("a request waits for its admission") {
            break token;
        }
    };
    let admission = Admission::Accept(principal.map(|name| Principal(name.into())));
    site.bench.server.admit(site.bench.now, token, admission);
    site.take();
}

// covers: B-187
#[test]
fn principal_has_one_share_at_all_addresses() {
    let mut site = remote(|config| {
        config.admit = true;
        config.limits.server.max_exchanges = 20;
        config.limits.server.max_running_requests = 8;
    });
    let mut call_as = |name: Option<&str>, address: [u8; 4]| {
        site.peer = from(address);
        let x = site.begin("POST", newer("tools/call").with("Content-Type", "application/json"));
        admit(&mut site, name);
        site.bench.item(x, read(&modern("1", "tools/call", r#","name":"t""#)));
        site.bench.item(x, Inbound::End);
        let busy = is_busy(&mut site, x);
        (x, busy)
    };
    assert!(!call_as(Some("ann"), GREEDY).1);
    let (second, busy) = call_as(Some("ann"), MODEST);
    assert!(!busy && call_as(Some("ann"), [203, 0, 113, 1]).1, "the third request of one principal");
    assert!(!call_as(Some("bob"), GREEDY).1, "another principal at the same address");
    site.cut(second);
}

// covers: B-103, B-187
#[test]
fn admitted_exchange_counts_for_its_principal() {
    let mut site = remote(|config| {
        config.admit = true;
        config.limits.server.max_exchanges = 8;
    });
    site.peer = from(GREEDY);
    let mut open = Vec::new();
    for _ in 0..2 {
        open.push(site.begin("POST", newer("tools/call")));
        admit(&mut site, Some("ann"));
    }
    // The principal took over the exchange from the quota of its address.
    open.push(site.begin("POST", newer("tools/call")));
    admit(&mut site, Some("bob"));
    site.peer = from(MODEST);
    let third = site.begin("POST", newer("tools/call"));
    admit(&mut site, Some("ann"));
    assert!(is_busy(&mut site, third));
    open.into_iter().for_each(|x| site.cut(x));
    assert!(site.at_rest());
}

// covers: B-187
#[test]
fn sessionless_batch_has_the_limit_of_a_session() {
    let mut site = Site::with(|config| config.limits.server.max_running_per_exchange = 16);
    let calls: Vec<String> = (0..1000).map(call).collect();
    let x = site.post(Headers::new().with("MCP-Protocol-Version", "2025-03-26"), &format!("[{}]", calls.join(",")));
    assert_eq!(site.bench.server.running(), 16);
    for _ in 0..16 {
        let (responder, _) = site.handed();
        site.complete(responder, "{}");
    }
    let said = site.said(x).join("");
    assert_eq!((said.matches(r#""result""#).count(), said.matches("-32603").count()), (16, 984));
}

/// Opens a session that calls a tool with an input request, and closes the connection before the
/// client reads the request. `id` is the id of the call.
fn asks_and_goes(site: &mut Site, id: u32) -> (Client, ExchangeId) {
    let client = site.session("2025-11-25", r#"{"elicitation":{}}"#);
    let x = client.call(site, id);
    let (responder, _) = site.handed();
    site.bench.answer(responder, ask("q"));
    site.cut(x);
    (client, x)
}

// covers: B-187, MRTR-S-024
#[test]
fn input_request_of_a_disconnected_client_waits_30_s() {
    let mut site = Site::new();
    let (client, _) = asks_and_goes(&mut site, 1);
    site.pass(Duration::from_millis(29_999));
    assert_eq!(site.bench.server.running(), 1);
    site.pass(Duration::from_millis(1));
    assert_eq!(site.bench.server.running(), 0);
    assert!(site.codes().contains(&"ask-timeout"));
    // A client that reconnects then gets the error.
    let back = site.bare("GET", client.after("s1-1"));
    assert!(site.said(back).iter().any(|line| line.contains("the client did not answer in time")));
}

// covers: B-187
#[test]
fn half_closed_client_counts_as_disconnected_for_input() {
    let mut site = Site::new();
    let client = site.session("2025-11-25", r#"{"elicitation":{}}"#);
    let x = client.call(&mut site, 1);
    let (responder, _) = site.handed();
    site.bench.answer(responder, ask("q"));
    site.bench.handle_event(x, ExchangeEvent::ReadClosed);
    site.pass(Duration::from_millis(29_999));
    assert_eq!(site.bench.server.running(), 1);
    site.pass(Duration::from_millis(1));
    assert_eq!(site.bench.server.running(), 0);
    // It still reads, so it gets the error.
    assert!(site.said(x).iter().any(|line| line.contains("the client did not answer in time")));
}

// covers: B-187
#[test]
fn reconnected_client_has_its_full_timeout() {
    for own in [false, true] {
        let mut site = Site::new();
        let (client, _) = asks_and_goes(&mut site, 1);
        site.pass(Duration::from_secs(20));
        let headers = if own { client.headers() } else { client.after("s1-1") };
        let back = site.bare("GET", headers);
        site.pass(Duration::from_secs(250));
        assert_eq!(site.bench.server.running(), 1, "own stream: {own}");
        // It leaves again: what is left of the first 300 s is less than 30 s here.
        site.cut(back);
        site.pass(Duration::from_millis(29_999));
        assert_eq!(site.bench.server.running(), 1, "own stream: {own}");
        site.pass(Duration::from_millis(1));
        assert_eq!(site.bench.server.running(), 0, "own stream: {own}");
    }
}

// covers: B-187
#[test]
fn disconnected_input_request_is_evicted_for_a_request() {
    let mut site = Site::with(|config| config.limits.server.max_running_requests = 4);
    let gone: Vec<Client> = (0..4).map(|_| asks_and_goes(&mut site, 1).0).collect();
    assert_eq!(site.bench.server.running(), 4);
    modern_call(&mut site, "");
    let _ = site.handed();
    assert_eq!(site.bench.server.running(), 4, "the oldest gave its place");
    let back = site.bare("GET", gone[0].after("s1-1"));
    assert!(site.said(back).iter().any(|line| line.contains("needed the room")));
    let back = site.bare("GET", gone[1].after("s1-1"));
    assert!(site.said(back).iter().any(|line| line.contains("elicitation/create")));
}

// covers: B-187
#[test]
fn open_stream_drops_the_head_of_its_request() {
    let long = |headers: Headers| headers.with("X-Long", "x".repeat(50_000));
    let mut site = Site::new();
    let client = site.session("2025-11-25", "{}");
    let own = site.bare("GET", long(client.headers()));
    let listen = {
        let headers = long(newer("subscriptions/listen").with("Accept", "text/event-stream"));
        site.post(headers, &modern("1", "subscriptions/listen", r#","notifications":{}"#))
    };
    for x in [own, listen] {
        let head = site.bench.server.wire.env.exchanges.get(&x).unwrap().binding.http().unwrap().head();
        assert!(head.headers.get("x-long").is_none() && head.target.is_empty());
    }
}
