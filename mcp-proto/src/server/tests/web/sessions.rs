//! Opening, naming and ending sessions.

use super::*;
use crate::input::{Admission, Principal};

const EVERY: [&str; 3] = ["2025-03-26", "2025-06-18", "2025-11-25"];

// covers: SHTTP-S-046, SHTTP-S-047, SHTTP-S-048, S3-15, S3-16, S3-17, S3-30, X-10, B-202
#[test]
fn initialize_opens_a_session_with_an_id_of_its_own() {
    let mut site = Site::new();
    let mut ids = BTreeSet::new();
    for version in EVERY {
        let x = site.post(Headers::new(), &initialize(version, "{}"));
        let said = site.said(x);
        let (status, body) = said[0].split_once(' ').unwrap();
        assert_eq!((status, result(body).required::<String>("protocolVersion").unwrap().as_str()), ("200", version));
        let id = site.head(x).headers.get("Mcp-Session-Id").unwrap().to_string();
        assert!(id.len() >= 32 && id.bytes().all(|byte| (0x21..=0x7e).contains(&byte)), "{id}");
        assert!(ids.insert(id));
        assert!(matches!(site.event(), Some(Event::SessionOpened(_))));
    }
    // Another engine with another seed has other ids. One with the same seed has the same ids.
    let first = |seed: u8| {
        let mut bench = Bench::seeded([seed; 32], |_| {});
        bench.item(
            A,
            Inbound::Request(RequestHead {
                method: "POST".into(),
                target: "/mcp".into(),
                headers: Headers::new().with("Content-Type", "application/json"),
            }),
        );
        bench.item(A, read(&initialize("2025-11-25", "{}")));
        let head = bench.outputs().into_iter().find_map(|output| match output {
            Output::Send(_, Outbound::Response { head, .. }) => Some(head),
            _ => None,
        });
        head.unwrap().headers.get("mcp-session-id").unwrap().to_string()
    };
    assert_eq!(first(1), first(1));
    assert_ne!(first(1), first(2));
}

// covers: SHTTP-S-051, SHTTP-S-053, S3-19, S3-20, S3-25, B-100, B-115, X-10
#[test]
fn missing_session_id_gets_400_and_unknown_id_404() {
    let mut site = Site::with(|config| config.sessions = Sessions::Required);
    let client = site.session("2025-11-25", "{}");
    let ping = legacy("1", "ping", "{}");
    let x = site.post(client.headers(), &ping);
    assert_eq!(site.said(x), [r#"200 {"jsonrpc":"2.0","id":1,"result":{}}"#]);
    let without = || Headers::new().with("MCP-Protocol-Version", "2025-11-25");
    let with = |id: &str| without().with("Mcp-Session-Id", id);
    for (headers, status) in [
        (without(), 400),
        (with("unknown"), 404),
        (with(&client.session[1..]), 404),
        (with(""), 400),
        (with("a b"), 400),
        (with("s\u{e9}"), 400),
        (with(&"x".repeat(4096)), 404),
        (with(&"x".repeat(4097)), 400),
        (with(&client.session).with("Mcp-Session-Id", "another"), 400),
    ] {
        for method in ["POST", "GET", "DELETE"] {
            let x = match method {
                "POST" => site.post(headers.clone(), &ping),
                _ => site.bare(method, headers.clone()),
            };
            let said = site.said(x);
            let (code, body) = said[0].split_once(' ').unwrap();
            let error = error(body);
            assert_eq!((code, error.code), (status.to_string().as_str(), -32600), "{method} {headers:?}");
            let texts = ["Missing session ID", "Invalid session ID", "Session not found"];
            assert!(texts.contains(&error.message.as_str()), "{error}");
        }
        let note = site.post(headers.clone(), r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        let answer = site.post(headers, r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
        assert_eq!((site.refusal(note).0, site.refusal(answer).0), (status, status));
    }
    let x = site.post(Headers::new(), &ping);
    assert_eq!(site.refusal(x), (400, -32600));
    // A notification without a revision could also be of 2026-07-28.
    let note = site.post(Headers::new(), r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    assert_eq!(site.said(note), ["202 "]);
    assert_eq!(site.bench.server.wire.http.sessions(), 1);
}

// covers: SHTTP-S-053, S3-22, S3-29, S3-36, S3-42, SHTTP-S-052, B-172, S2-30, SHTTP-S-026
#[test]
fn delete_ends_a_session_with_its_streams_and_requests() {
    let mut site = Site::new();
    let (client, other) = (site.session("2025-11-25", "{}"), site.session("2025-11-25", "{}"));
    let own = site.bare("GET", client.headers());
    let waits = client.call(&mut site, 1);
    let (first, _) = site.handed();
    let streams = client.call(&mut site, 2);
    let (second, _) = site.handed();
    site.bench.server.notify(site.bench.now, second.key(), Note::Progress(crate::model::Progress::new(1.0))).unwrap();
    site.said(own);
    site.said(streams);
    let x = site.bare("DELETE", client.headers());
    assert_eq!(site.said(x), [r#"200 {"success":true}"#]);
    // A pending response becomes an error, a stream ends after an error, and the session stream
    // just ends.
    assert_eq!(site.refusal(waits), (200, -32603));
    let said = site.said(streams);
    assert_eq!((error(event(&said[0]).1).code, said[1].as_str(), said.len()), (-32603, "end", 2));
    assert_eq!(site.said(own), ["end"]);
    let cancelled: Vec<_> = core::iter::from_fn(|| site.event()).collect();
    assert!(cancelled.contains(&Event::Cancelled(first.key())) && cancelled.contains(&Event::Cancelled(second.key())));
    assert!(matches!(cancelled.last(), Some(Event::SessionEnded(_, SessionEnd::Deleted))));
    let x = site.bare("DELETE", client.headers());
    assert_eq!(site.refusal(x).0, 404);
    let x = client.call(&mut site, 3);
    assert_eq!(site.refusal(x).0, 404);
    // The other session is not affected.
    let x = other.call(&mut site, 1);
    let (responder, _) = site.handed();
    site.complete(responder, "{}");
    assert_eq!(site.said(x), [format!("200 {}", answer(1))]);
    site.bare("DELETE", other.headers());
    assert!(site.at_rest());
}

// covers: S3-38, S3-39, S3-40, S3-50, B-113, R-34, SHTTP-S-052
#[test]
fn idle_session_ends_after_half_an_hour() {
    const MINUTE: Duration = Duration::from_secs(60);
    let mut site = Site::new();
    let idle = site.session("2025-11-25", "{}");
    let listens = site.session("2025-11-25", "{}");
    let works = site.session("2025-11-25", "{}");
    let own = site.bare("GET", listens.headers());
    works.call(&mut site, 1);
    let (responder, _) = site.handed();
    while site.event().is_some() {}
    site.pass(29 * MINUTE);
    assert_eq!(site.bench.server.wire.http.sessions(), 3);
    // A request resets the idle time.
    site.post(idle.headers(), &legacy("1", "ping", "{}"));
    site.pass(29 * MINUTE);
    assert_eq!((site.event(), site.bench.server.wire.http.sessions()), (None, 3));
    site.pass(6 * MINUTE);
    assert!(matches!(site.event(), Some(Event::SessionEnded(_, SessionEnd::Idle))));
    let x = site.post(idle.headers(), &legacy("2", "ping", "{}"));
    assert_eq!(site.refusal(x).0, 404);
    // A session with an open stream or a running request is idle only after their end.
    assert_eq!(site.bench.server.wire.http.sessions(), 2);
    site.cut(own);
    site.complete(responder, "{}");
    site.pass(29 * MINUTE);
    assert_eq!(site.bench.server.wire.http.sessions(), 2);
    site.pass(6 * MINUTE);
    assert!(site.at_rest());
}

#[test]
fn sessions_and_streams_are_counted() {
    let mut site = Site::new();
    let numbers = |site: &Site| (site.bench.server.sessions(), site.bench.server.streams());
    let client = site.session("2025-11-25", "{}");
    let other = site.session("2025-06-18", "{}");
    assert_eq!(numbers(&site), (2, 0));
    let own = site.bare("GET", client.headers());
    client.call(&mut site, 1);
    let (responder, _) = site.handed();
    assert_eq!(numbers(&site), (2, 2));
    // A JSON response leaves nothing to resume. The session stream waits for its client.
    site.complete(responder, "{}");
    site.cut(own);
    assert_eq!(numbers(&site), (2, 1));
    site.bare("DELETE", client.headers());
    assert_eq!(numbers(&site), (1, 0));
    site.bare("DELETE", other.headers());
    assert_eq!(numbers(&site), (0, 0));
}

// covers: S3-40, R-34
#[test]
fn expired_session_gets_404_before_the_sweep() {
    let mut site = Site::with(|config| config.limits.server.session_sweep = Duration::from_secs(7 * 3600));
    let client = site.session("2025-11-25", "{}");
    site.pass(Duration::from_secs(30 * 60));
    let x = client.call(&mut site, 1);
    assert_eq!(site.refusal(x).0, 404);
    assert_eq!(site.bench.server.wire.http.sessions(), 0);
}

// covers: B-091
#[test]
fn revision_other_than_that_of_the_session_is_refused() {
    let own = |client: &Client| Headers::new().with("Mcp-Session-Id", client.session.as_str());
    for version in EVERY {
        let mut site = Site::new();
        let client = site.session(version, r#"{"roots":{}}"#);
        site.codes();
        for other in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"].iter().filter(|other| **other != version)
        {
            let named = || own(&client).with("MCP-Protocol-Version", *other);
            let refused = [
                site.post(named(), &legacy("1", "ping", "{}")),
                site.post(named(), &call(2)),
                site.post(named(), r#"{"jsonrpc":"2.0","method":"notifications/x"}"#),
                site.post(named(), r#"{"jsonrpc":"2.0","id":1,"result":{}}"#),
                site.post(named(), r#"[{"jsonrpc":"2.0","id":3,"method":"ping"}]"#),
                site.bare("GET", named().with("Accept", "text/event-stream")),
                site.bare("DELETE", named()),
            ];
            for x in refused {
                let said = site.said(x);
                let (status, body) = said[0].split_once(' ').unwrap();
                let error = error(body);
                assert_eq!((status, error.code), ("400", -32022), "{version}, {other}");
                let data = Object::read(&error.data.unwrap()).unwrap();
                assert_eq!(data.required::<Vec<String>>("supported").unwrap(), [version]);
                assert_eq!(data.required::<String>("requested").unwrap(), *other);
            }
            assert_eq!(site.codes(), ["unsupported-version"; 7], "{version}, {other}");
        }
        // The session continues, with the negotiated revision and without any.
        for headers in [own(&client).with("MCP-Protocol-Version", version), own(&client)] {
            let x = site.post(headers, &legacy("1", "ping", "{}"));
            assert_eq!(site.said(x), [r#"200 {"jsonrpc":"2.0","id":1,"result":{}}"#]);
        }
    }
}

// covers: B-189, B-206, S3-50
#[test]
fn full_sessions_evict_an_unused_one() {
    let mut site = Site::with(|config| config.limits.server.max_sessions = 2);
    let used = site.session("2025-11-25", "{}");
    site.post(Headers::new(), &initialize("2025-11-25", "{}"));
    let x = site.post(Headers::new(), &initialize("2025-11-25", "{}"));
    assert_eq!(site.refusal(x), (503, -32603));
    assert!(site.head(x).headers.get("Retry-After").is_some());
    // `server/discover` leaves no state.
    let discover = Headers::new().with("MCP-Protocol-Version", "2026-07-28").with("Mcp-Method", "server/discover");
    let x = site.post(discover, &modern("1", "server/discover", ""));
    assert!(site.said(x)[0].starts_with("200 ") && site.head(x).headers.get("mcp-session-id").is_none());
    site.pass(Duration::from_secs(60));
    let x = site.post(Headers::new(), &initialize("2025-11-25", "{}"));
    assert!(site.said(x)[0].starts_with("200 "));
    let x = site.post(used.headers(), &legacy("1", "ping", "{}"));
    assert!(site.said(x)[0].starts_with("200 "));
    // Repeated refusals do not search all sessions each time.
    let swept = site.bench.server.wire.http.swept();
    for millis in [0, 999, 1000] {
        site.bench.now = swept + Duration::from_millis(millis);
        let x = site.post(Headers::new(), &initialize("2025-11-25", "{}"));
        assert_eq!(site.refusal(x).0, 503);
        assert_eq!(site.bench.server.wire.http.swept(), if millis < 1000 { swept } else { site.bench.now });
    }
}

// covers: SHTTP-S-006, B-111, B-112, S3-45, B-036, SEC-S-007
#[test]
fn session_belongs_to_the_principal_that_opened_it() {
    let mut site = Site::with(|config| config.admit = true);
    let admit = |site: &mut Site, who: &str| {
        let Some(Event::Admit(token, Some(head))) = site.event() else { panic!("it is shown") };
        assert_eq!(head.headers.get("authorization"), Some(who));
        let principal = who.split(' ').next().map(|name| Principal(name.into()));
        site.bench.server.admit(site.bench.now, token, Admission::Accept(principal));
        site.take();
    };
    let headers = |who: &str, session: Option<&str>| {
        let headers = Headers::new().with("Authorization", who).with("MCP-Protocol-Version", "2025-11-25");
        session.into_iter().fold(headers, |headers, session| headers.with("Mcp-Session-Id", session))
    };
    let x = site.post(headers("ann 1", None), &initialize("2025-11-25", "{}"));
    admit(&mut site, "ann 1");
    let session = site.head(x).headers.get("mcp-session-id").unwrap().to_string();
    assert!(matches!(site.event(), Some(Event::SessionOpened(_))));
    let ping = legacy("1", "ping", "{}");
    for (who, status) in [("ann 1", "200"), ("bob 1", "404"), ("ann 2", "200")] {
        let x = site.post(headers(who, Some(&session)), &ping);
        admit(&mut site, who);
        assert!(site.said(x).iter().any(|said| said.starts_with(status)), "{who}");
    }
    for (method, cursor) in [("GET", None), ("GET", Some("s1-1")), ("DELETE", None)] {
        let headers = headers("bob 1", Some(&session));
        let headers = cursor.into_iter().fold(headers, |headers, cursor| headers.with("Last-Event-ID", cursor));
        let x = site.bare(method, headers);
        admit(&mut site, "bob 1");
        let said = site.said(x);
        assert!(said.iter().any(|said| said.starts_with("404 ")), "{method} {said:?}");
    }
    assert_eq!(site.bench.server.wire.http.sessions(), 1);
    let x = site.post(headers("ann 3", Some(&session)), &legacy("7", "tools/list", "{}"));
    admit(&mut site, "ann 3");
    let (_responder, incoming) = site.handed();
    assert_eq!(incoming.context.principal, Some(Principal("ann".into())));
    assert!(incoming.context.session.is_some() && incoming.context.http.is_some());
    site.cut(x);
}

// covers: ELIC-S-032, ELIC-S-033, ELIC-S-041, MRTR-S-012, SEC-S-007
#[test]
fn state_of_a_principal_is_refused_for_another() {
    let mut site = Site::with(|config| config.admit = true);
    let headers = || {
        Headers::new().with("MCP-Protocol-Version", "2026-07-28").with("Mcp-Method", "tools/call").with("Mcp-Name", "t")
    };
    let body = |rest: &str| modern_with("1", "tools/call", r#"{"elicitation":{}}"#, &format!(r#","name":"t"{rest}"#));
    let mut call = |who: Option<&str>, rest: &str| {
        let x = site.post(headers(), &body(rest));
        let Some(Event::Admit(token, _)) = site.event() else { panic!("it is shown") };
        let principal = who.map(|who| Principal(who.into()));
        site.bench.server.admit(site.bench.now, token, Admission::Accept(principal));
        let (mut responder, mut incoming) = site.handed();
        let opened = responder.open(&mut incoming);
        site.bench.answer(responder, ask("q"));
        let said = site.said(x);
        let result = result(said.last().unwrap().strip_prefix("200 ").unwrap());
        (opened.is_ok(), result.required::<String>("requestState").unwrap())
    };
    let (_, state) = call(Some("ann"), "");
    let with = format!(r#","requestState":"{state}""#);
    for (who, good) in [(Some("ann"), true), (Some("bob"), false), (Some(""), false), (None, false)] {
        let (opened, _) = call(who, &with);
        assert_eq!(opened, good, "{who:?}");
    }
}

// covers: B-190, B-115, ELIC-S-041
#[test]
fn client_secrets_are_not_shown() {
    let (token, secret) = ("tok-5e71f0", "q-9d2c11");
    let mut site = Site::with(|config| {
        config.admit = true;
        config.state_keys = Some((*b"0123456789-key-0123456789-key-01").into());
    });
    let mut shown = format!("{:?}", site.bench.server.config());
    let headers =
        || Headers::new().with("Authorization", format!("Bearer {token}")).with("MCP-Protocol-Version", "2025-11-25");
    let mut session = String::new();
    for step in 0..4 {
        let named = if step == 0 { headers() } else { headers().with("Mcp-Session-Id", session.as_str()) };
        let named = if step == 3 { named.with("Mcp-Session-Id", "another") } else { named };
        let body = if step == 0 { initialize("2025-11-25", "{}") } else { call(step) };
        let headers = named.with("Content-Type", "application/json");
        site.last += 1;
        let x = ExchangeId(site.last);
        let target = format!("/mcp?token={secret}");
        site.bench.item(x, Inbound::Request(RequestHead { method: "POST".into(), target: target.into(), headers }));
        site.take();
        let event = site.event();
        shown += &format!("{event:?}");
        let Some(Event::Admit(token, _)) = event else { panic!("it is shown") };
        site.bench.server.admit(site.bench.now, token, Admission::Accept(None));
        site.bench.item(x, read(&body));
        let outputs = site.bench.outputs();
        for output in &outputs {
            if let Output::Send(_, Outbound::Response { head, .. }) = output {
                session = head.headers.get("mcp-session-id").map_or(session, Into::into);
            }
        }
        shown += &format!("{outputs:?} {:?}", site.bench.server);
    }
    assert!(session.len() >= 32);
    for planted in [token, secret, session.as_str(), "0123456789-key"] {
        assert!(!shown.contains(planted), "{planted} is in {shown}");
    }
}

// covers: X-41, SHTTP-C-054, B-208
#[test]
fn initialize_is_refused_only_in_an_open_session() {
    let mut site = Site::new();
    let client = site.session("2025-11-25", "{}");
    let x = site.post(client.headers(), &initialize("2025-11-25", "{}"));
    assert_eq!(site.refusal(x), (400, -32600));
    site.bare("DELETE", client.headers());
    let x = site.post(client.headers(), &initialize("2025-11-25", "{}"));
    assert_ne!(site.head(x).headers.get("mcp-session-id"), Some(client.session.as_str()));
    assert!(site.said(x)[0].starts_with("200 "));
}

// covers: B-173, B-172
#[test]
fn shutdown_ends_session_streams() {
    let mut site = Site::new();
    let client = site.session("2025-11-25", "{}");
    let own = site.bare("GET", client.headers());
    let waits = client.call(&mut site, 1);
    let (responder, _) = site.handed();
    site.said(own);
    site.bench.server.shutdown(site.bench.now, Duration::from_secs(5));
    assert_eq!(site.said(own), ["end"]);
    assert!(!site.bench.server.is_terminated());
    let late = client.call(&mut site, 2);
    assert_eq!(site.refusal(late), (503, -32603));
    let back = site.bare("GET", client.after("s1-1"));
    assert_eq!(site.refusal(back), (503, -32603));
    site.complete(responder, "{}");
    assert_eq!(site.said(waits), [format!("200 {}", answer(1))]);
    assert!(site.bench.server.is_terminated() && site.at_rest());
}

// covers: S3-13, B-039, B-149
#[test]
fn shutdown_waits_for_an_undelivered_response() {
    for comes in [true, false] {
        let mut site = Site::new();
        let client = site.session("2025-11-25", "{}");
        let x = client.call(&mut site, 1);
        let (responder, _) = site.handed();
        site.bench.server.notify(site.bench.now, responder.key(), Note::CloseStream(None)).unwrap();
        assert_eq!(site.said(x).last().map(String::as_str), Some("end"));
        site.bench.server.shutdown(site.bench.now, Duration::from_secs(5));
        site.complete(responder, "{}");
        assert!(!site.bench.server.is_terminated(), "its answer was not fetched");
        let fresh = site.bare("GET", client.headers());
        assert_eq!(site.refusal(fresh).0, 503);
        if comes {
            let y = site.bare("GET", client.after("s1-1"));
            let said = site.said(y);
            assert_eq!((event(&said[1]).1, said[2].as_str()), (answer(1).as_str(), "end"));
        } else {
            site.pass(Duration::from_millis(4_999));
            assert!(!site.bench.server.is_terminated());
            site.pass(Duration::from_millis(1));
        }
        assert!(site.bench.server.is_terminated() && site.at_rest());
    }
}

// covers: B-187, S3-50
#[test]
fn client_data_of_all_sessions_is_bounded() {
    let said = format!(r#"{{"x":"{}"}}"#, "x".repeat(10_000));
    let mut site = Site::with(|config| {
        config.limits.server.client_shares = 1;
        config.limits.server.max_client_data_total = 25_000;
    });
    let first = site.session("2025-11-25", &said);
    site.session("2025-11-25", &said);
    let x = site.post(Headers::new(), &initialize("2025-11-25", &said));
    assert_eq!(site.refusal(x), (503, -32603));
    site.bare("DELETE", first.headers());
    site.session("2025-11-25", &said);
}

// covers: B-173
#[test]
fn cancelling_the_last_request_in_shutdown_is_answered() {
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
    let others = format!(r#"{cancel},{{"jsonrpc":"2.0","method":"x"}},{},{{"jsonrpc":"2.0","id":1}}"#, call(2));
    for (body, answered) in [(cancel.to_string(), "202 "), (format!("[{others}]"), "200 ")] {
        let mut site = Site::new();
        let client = site.session("2025-03-26", "{}");
        let x = client.call(&mut site, 1);
        let (responder, _) = site.handed();
        site.bench.server.shutdown(site.bench.now, Duration::from_secs(5));
        while site.event().is_some() {}
        let note = site.post(client.headers(), &body);
        assert!(site.said(note)[0].starts_with(answered));
        assert_eq!(site.said(x).last().map(String::as_str), Some("end"));
        assert_eq!(site.event(), Some(Event::Cancelled(responder.key())));
        assert_eq!(site.events.pop_back(), Some(Event::Terminated), "nothing follows it");
        assert!(site.at_rest());
    }
}

// covers: B-173, S3-38
#[test]
fn shutdown_does_not_wait_for_expired_sessions() {
    let mut site = Site::new();
    let client = site.session("2025-11-25", "{}");
    client.call(&mut site, 1);
    let (responder, _) = site.handed();
    site.bench.server.notify(site.bench.now, responder.key(), Note::CloseStream(None)).unwrap();
    site.bench.server.shutdown(site.bench.now, Duration::from_secs(24 * 3600));
    site.complete(responder, "{}");
    site.pass(Duration::from_secs(29 * 60));
    assert!(!site.bench.server.is_terminated());
    site.pass(Duration::from_secs(6 * 60));
    assert!(site.bench.server.is_terminated() && site.at_rest());
}

// covers: S3-36, S3-50
#[test]
fn session_deleted_during_shutdown_leaves_no_state() {
    let mut site = Site::new();
    let (client, other) = (site.session("2025-11-25", r#"{"elicitation":{}}"#), site.session("2025-11-25", "{}"));
    other.call(&mut site, 1);
    let (_responder, _) = site.handed();
    site.post(client.headers().with("Accept", "application/json"), &call(1));
    let (responder, _) = site.handed();
    site.bench.answer(responder, ask("who"));
    site.bench.server.shutdown(site.bench.now, Duration::from_secs(5));
    site.bare("DELETE", client.headers());
    assert_eq!((site.bench.server.sessions(), site.bench.server.streams()), (1, 1));
}
