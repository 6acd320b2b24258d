//! POST requests in the older revisions, with and without a session, and input requests to the
//! client.

use super::*;
use crate::exchange::BadRequest;
use crate::rpc::Message;

const ELICITS: &str = r#"{"elicitation":{}}"#;

// covers: SHTTP-S-011, SHTTP-S-012, SHTTP-S-013, S3-06
#[test]
fn notifications_and_responses_get_202_without_a_body() {
    let mut site = Site::new();
    let client = site.session("2025-11-25", ELICITS);
    while site.event().is_some() {}
    let x = site.post(client.headers(), r#"{"jsonrpc":"2.0","method":"x/y","params":{"a":1}}"#);
    assert_eq!(site.said(x), ["202 "]);
    assert!(matches!(site.event(), Some(Event::Notification { method, .. }) if method == "x/y"));
    let x = site.post(client.headers(), r#"{"jsonrpc":"2.0","id":77,"result":{}}"#);
    assert_eq!((site.said(x), site.codes()), (vec!["202 ".to_string()], vec!["unknown-id"]));
    let x = site.post(client.headers(), r#"{"jsonrpc":"2.0","error":{"code":1,"message":"m"}}"#);
    assert_eq!((site.said(x), site.codes()), (vec!["202 ".to_string()], vec!["idless-error"]));
    for (body, code) in [("nonsense", -32700), (r#"{"jsonrpc":"2.0","id":1}"#, -32600), ("[]", -32600)] {
        let x = site.post(client.headers(), body);
        assert_eq!(site.refusal(x), (400, code), "{body}");
    }
}

// covers: S3-37, RPC-B-004
#[test]
fn null_or_missing_id_makes_no_request() {
    let mut site = Site::new();
    let client = site.session("2025-11-25", "{}");
    let x = site.post(client.headers(), &legacy("null", "tools/call", "{}"));
    assert_eq!(site.refusal(x), (400, -32600));
    // Without an id it is a notification, which gets no response.
    let x = site.post(client.headers(), r#"{"jsonrpc":"2.0","method":"tools/call","params":{}}"#);
    assert_eq!(site.said(x), ["202 "]);
    assert_eq!((site.requests.len(), site.bench.server.running()), (0, 0));
}

// covers: X-45, X-11, RPC-S-026, S3-31, R-21, B-178, PING-B-001
#[test]
fn error_of_a_well_formed_request_gets_200() {
    let mut site = Site::new();
    let client = site.session("2025-11-25", "{}");
    for code in [-32601, -32602, -32603, -32002, 5] {
        let x = client.call(&mut site, 1);
        let (responder, _) = site.handed();
        site.bench.answer(responder, Outcome::Error(ErrorObject::new(code, "m")));
        assert_eq!(site.refusal(x), (200, code));
    }
    let x = site.post(client.headers(), &legacy("1", "server/discover", "{}"));
    assert_eq!(site.refusal(x), (200, -32601));
    let x = site.post(client.headers(), &legacy("1", "ping", "{}"));
    assert_eq!(site.said(x), [r#"200 {"jsonrpc":"2.0","id":1,"result":{}}"#]);
    let first = client.call(&mut site, 9);
    let again = client.call(&mut site, 9);
    assert_eq!(site.refusal(again), (400, -32600));
    assert!(site.said(first).is_empty());
}

// covers: SHTTP-C-029, B-222
#[test]
fn cancelled_request_ends_without_a_response() {
    let mut site = Site::new();
    let (client, other) = (site.session("2025-11-25", "{}"), site.session("2025-11-25", "{}"));
    while site.event().is_some() {}
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
    for streams in [false, true] {
        let x = client.call(&mut site, 1);
        let (responder, _) = site.handed();
        if streams {
            site.pass(Duration::from_secs(1));
            site.said(x);
        }
        // The id of one client has no meaning for another.
        site.post(other.headers(), cancel);
        assert_eq!((site.event(), site.codes()), (None, vec!["unknown-cancel"]));
        let note = site.post(client.headers(), cancel);
        assert_eq!(site.said(note), ["202 "]);
        assert_eq!(site.event(), Some(Event::Cancelled(responder.key())));
        let said = site.said(x);
        assert_eq!(said.last().map(String::as_str), Some("end"));
        assert!(!said.iter().any(|line| line.contains("jsonrpc")), "{said:?}");
        site.complete(responder, "{}");
        assert!(site.said(x).is_empty());
    }
    let json = client.headers().with("Accept", "application/json");
    let x = site.post(json, &call(1));
    site.post(client.headers(), cancel);
    assert_eq!(site.said(x), ["202 "]);
}

// covers: SHTTP-S-023, SHTTP-S-024, SHTTP-S-034, S3-09, B-072
#[test]
fn input_request_uses_the_stream_of_its_request() {
    let mut site = Site::new();
    let (client, other) = (site.session("2025-11-25", ELICITS), site.session("2025-11-25", ELICITS));
    let own = site.bare("GET", client.headers());
    site.said(own);
    let x = client.call(&mut site, 1);
    let (responder, _) = site.handed();
    site.bench.answer(responder, ask("who"));
    let said = site.said(x);
    assert_eq!((said[0].as_str(), said.len()), ("200 stream", 3));
    let Message::Request(question) = message(event(&said[2]).1) else { panic!("{said:?}") };
    assert_eq!(question.method, "elicitation/create");
    assert!(site.said(own).is_empty());
    let reply =
        format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{"action":"accept","content":{{"it":"me"}}}}}}"#, question.id);
    // A response with the same id in another session is not accepted.
    let y = site.post(other.headers(), &reply);
    assert_eq!(site.said(y), ["202 "]);
    assert!(site.requests.is_empty());
    let y = site.post(client.headers(), &reply);
    assert_eq!(site.said(y), ["202 "]);
    let (responder, incoming) = site.handed();
    assert!(incoming.inputs.contains_key("who"));
    site.complete(responder, "{}");
    let said = site.said(x);
    assert_eq!((event(&said[0]).1, said[1].as_str()), (answer(1).as_str(), "end"));
}

// covers: SHTTP-S-034, S3-32, R-21
#[test]
fn input_request_falls_back_to_the_session_stream() {
    let mut site = Site::new();
    let client = site.session("2025-11-25", ELICITS);
    let x = site.post(client.headers().with("Accept", "application/json"), &call(1));
    let (responder, _) = site.handed();
    site.bench.answer(responder, ask("who"));
    assert!(site.said(x).is_empty());
    // No client listens yet, so the request waits.
    let own = site.bare("GET", client.headers());
    let said = site.said(own);
    let Message::Request(question) = message(event(&said[1]).1) else { panic!("{said:?}") };
    let reply = format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{"action":"decline"}}}}"#, question.id);
    site.post(client.headers(), &reply);
    let (responder, _) = site.handed();
    site.complete(responder, "{}");
    assert_eq!(site.said(x), [format!("200 {}", answer(1))]);
    assert!(site.said(own).is_empty());
}

// covers: S3-08, HTTP-S-015, B-169, B-170
#[test]
fn response_type_follows_the_accept_field() {
    let mut site = Site::new();
    let client = site.session("2025-11-25", "{}");
    let with = |accept: &str| client.headers().with("Accept", accept);
    let x = site.post(with("text/event-stream"), &call(1));
    let (responder, _) = site.handed();
    site.complete(responder, "{}");
    let said = site.said(x);
    assert_eq!((said[0].as_str(), event(&said[1]).1, said[2].as_str()), ("200 stream", answer(1).as_str(), "end"));
    // Immediate responses and errors follow the same rule.
    for body in [legacy("2", "ping", "{}"), initialize("2025-11-25", "{}"), legacy("2", "server/discover", "{}")] {
        let headers = match body.contains("initialize") {
            true => Headers::new().with("Accept", "text/event-stream"),
            false => with("text/event-stream"),
        };
        let x = site.post(headers, &body);
        let said = site.said(x);
        assert_eq!((said[0].as_str(), said[2].as_str(), said.len()), ("200 stream", "end", 3), "{body}");
        assert!(matches!(read(event(&said[1]).1), Inbound::Message(Message::Response(_) | Message::Error(_))));
        let opened = site.head(x).headers.get("mcp-session-id").is_some();
        assert_eq!(opened, body.contains("initialize"));
    }
    // With JSON alone, a notification before the response cannot be sent.
    let x = site.post(with("application/json"), &call(2));
    let (responder, _) = site.handed();
    site.bench
        .server
        .notify(site.bench.now, responder.key(), Note::Progress(crate::model::Progress::new(1.0)))
        .unwrap();
    site.pass(Duration::from_secs(3600));
    assert!(site.codes().contains(&"dropped-notification"));
    site.complete(responder, "{}");
    assert_eq!(site.said(x), [format!("200 {}", answer(2))]);
    for (method, accept, status) in [("POST", "text/html", 406), ("GET", "application/json", 406)] {
        let x = match method {
            "POST" => site.post(with(accept), &call(3)),
            _ => site.bare(method, with(accept)),
        };
        assert_eq!(site.refusal(x).0, status);
    }
    let x = site.post(client.headers().with("Content-Type", "text/plain"), &call(3));
    assert_eq!(site.refusal(x).0, 415);
    let x = site
        .post(client.headers().with("Content-Type", " Application/Json ; charset=utf-8"), &legacy("1", "ping", "{}"));
    assert!(site.said(x)[0].starts_with("200 "), "the session was busy until now, and is not idle");
}

// covers: S3-05, R-18, X-06, RPC-B-042, B-188, SHTTP-S-021
#[test]
fn batch_gets_one_response_where_supported() {
    let batch = format!(
        r#"[{},{},{},{{"jsonrpc":"2.0","method":"x"}},{{"jsonrpc":"2.0","id":8}},{}]"#,
        call(1),
        legacy("2", "ping", "{}"),
        call(3),
        initialize("2025-03-26", "{}")
    );
    let mut site = Site::new();
    let client = site.session("2025-03-26", "{}");
    let x = site.post(client.headers(), &batch);
    let (first, _) = site.handed();
    let (third, _) = site.handed();
    site.complete(third, "{}");
    assert!(site.said(x).is_empty());
    site.complete(first, "{}");
    let said = site.said(x);
    let [only] = &said[..] else { panic!("{said:?}") };
    let Inbound::Batch(elements) = read(only.strip_prefix("200 ").unwrap()) else { panic!("{only}") };
    assert_eq!(elements.len(), 4, "what is no message and may be a bad answer is not answered");
    // A notification before the last response makes it a stream, with an event for each response.
    let x = site.post(client.headers(), &format!("[{},{},{}]", call(1), legacy("2", "ping", "{}"), call(3)));
    let (first, _) = site.handed();
    let (third, _) = site.handed();
    site.bench.server.notify(site.bench.now, first.key(), Note::Progress(crate::model::Progress::new(1.0))).unwrap();
    site.complete(third, "{}");
    site.complete(first, "{}");
    let said = site.said(x);
    assert_eq!((said[0].as_str(), said.last().map(String::as_str), said.len()), ("200 stream", Some("end"), 6));
    // An immediate response has the same form.
    let pings = format!("[{},{}]", legacy("4", "ping", "{}"), legacy("5", "ping", "{}"));
    let x = site.post(client.headers().with("Accept", "text/event-stream"), &pings);
    let said = site.said(x);
    assert_eq!((said[0].as_str(), said[2].as_str(), said.len()), ("200 stream", "end", 3));
    assert!(matches!(read(event(&said[1]).1), Inbound::Batch(elements) if elements.len() == 2));
    let notes = site.post(client.headers(), r#"[{"jsonrpc":"2.0","method":"x"},{"jsonrpc":"2.0","id":9,"result":{}}]"#);
    assert_eq!(site.said(notes), ["202 "]);
    for version in ["2025-06-18", "2025-11-25"] {
        let client = site.session(version, "{}");
        let x = site.post(client.headers(), &batch);
        assert_eq!(site.refusal(x), (400, -32600));
    }
    assert!(site.requests.is_empty());
}

// covers: B-188
#[test]
fn batch_can_cancel_its_requests_and_obeys_the_limits() {
    let mut site = Site::with(|config| config.limits.server.max_running_per_exchange = 2);
    let client = site.session("2025-03-26", "{}");
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
    let x = site.post(client.headers(), &format!("[{},{cancel},{},{},{}]", call(1), call(2), call(2), call(3)));
    let _cancelled = site.handed();
    let (second, _) = site.handed();
    let (third, _) = site.handed();
    assert!(site.said(x).is_empty() && site.requests.is_empty());
    site.complete(second, "{}");
    site.complete(third, "{}");
    let Inbound::Batch(elements) = read(site.said(x)[0].strip_prefix("200 ").unwrap()) else { panic!("an array") };
    assert_eq!(elements.len(), 3, "two results and the error of the second 2");
    let x = site.post(client.headers(), &format!("[{},{},{}]", call(1), call(2), call(3)));
    let (first, _) = site.handed();
    let (second, _) = site.handed();
    assert!(site.requests.is_empty());
    site.complete(first, "{}");
    site.complete(second, "{}");
    assert!(site.said(x)[0].contains("busy"));
}

// covers: SHTTP-S-059, SHTTP-S-060, X-14, HTTP-S-032, SHTTP-S-056, B-176, B-204, B-205, SHTTP-S-033
#[test]
fn request_with_revision_is_served_without_a_session() {
    let named = |name: &str| Headers::new().with("MCP-Protocol-Version", name);
    for sessions in [Sessions::Optional, Sessions::Off] {
        let mut site = Site::with(|config| config.sessions = sessions);
        for version in ["2025-11-25", "2025-06-18", "2025-03-26"] {
            let x = site.post(named(version), &call(1));
            let (responder, incoming) = site.handed();
            assert_eq!((incoming.context.version.as_str(), incoming.context.session), (version, None));
            site.bench
                .server
                .notify(site.bench.now, responder.key(), Note::Progress(crate::model::Progress::new(1.0)))
                .unwrap();
            site.complete(responder, "{}");
            let said = site.said(x);
            // No client can resume the stream, so its events have no id.
            assert_eq!((said[0].as_str(), event(&said[1]).0, event(&said[2]).0, said.len()), ("200 stream", "", "", 4));
            let x = site.post(named(version), &call(2));
            let (responder, _) = site.handed();
            site.cut(x);
            assert_eq!(site.bench.server.running(), 1);
            site.complete(responder, "{}");
            let x = site.post(named(version), r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
            assert_eq!(site.said(x), ["202 "]);
        }
        let x = site.post(named("2025-11-25").with("MCP-Protocol-Version", "2025-06-18"), &call(1));
        assert_eq!(site.refusal(x).0, 400);
        for name in ["2024-01-01", "nonsense", ""] {
            let x = site.post(named(name), &call(1));
            assert_eq!(site.refusal(x).0, 400, "{name}");
        }
        assert!(site.at_rest());
    }
    // A request without session and revision gets an error that names both options.
    let mut site = Site::with(|config| config.sessions = Sessions::Optional);
    let x = site.post(Headers::new(), &call(1));
    let said = site.said(x);
    assert!(
        ["400 ", "Missing session ID", "MCP-Protocol-Version"].iter().all(|text| said[0].contains(text)),
        "{said:?}"
    );
    let mut site = Site::with(|config| config.sessions = Sessions::Off);
    let x = site.post(Headers::new().with("Mcp-Session-Id", "ignored"), &call(1));
    let (responder, incoming) = site.handed();
    assert_eq!(incoming.context.version.as_str(), "2025-03-26");
    site.complete(responder, "{}");
    assert!(site.said(x)[0].starts_with("200 "));
    let x = site.post(Headers::new(), &initialize("2025-11-25", "{}"));
    assert!(site.said(x)[0].starts_with("200 ") && site.head(x).headers.get("mcp-session-id").is_none());
    for method in ["GET", "DELETE"] {
        let x = site.bare(method, Headers::new());
        assert_eq!(site.refusal(x).0, 405);
        assert_eq!(site.head(x).headers.get("allow"), Some("POST"));
    }
    assert!(site.at_rest());
}

// covers: S2-20, R-21
#[test]
fn other_methods_and_other_paths_are_not_served() {
    let mut site = Site::new();
    for method in ["PUT", "PATCH", "OPTIONS", "HEAD", "TRACE", "get"] {
        let x = site.bare(method, Headers::new());
        assert_eq!(site.refusal(x), (405, -32600));
        assert_eq!(site.head(x).headers.get("Allow"), Some("GET, POST, DELETE"));
    }
    let at = |site: &mut Site, target: &str| {
        site.last += 1;
        let x = ExchangeId(site.last);
        let headers = Headers::new().with("Content-Type", "application/json");
        site.bench.item(x, Inbound::Request(RequestHead { method: "POST".into(), target: target.into(), headers }));
        site.bench.item(x, read(&initialize("2025-11-25", "{}")));
        site.bench.item(x, Inbound::End);
        site.head(x).status
    };
    for (target, status) in [
        ("/mcp", 200),
        ("/mcp?x=1", 200),
        ("/", 404),
        ("/mcp/", 404),
        ("/MCP", 404),
        ("/.well-known/oauth-protected-resource", 404),
    ] {
        assert_eq!(at(&mut site, target), status, "{target}");
    }
    assert!(site.codes().iter().all(|code| *code != "unknown-exchange"));
    let mut site = Site::with(|config| config.path = None);
    assert_eq!(at(&mut site, "/anything"), 200);
}

// covers: HTTP-S-030
#[test]
fn bodies_of_refused_requests_may_interleave() {
    let foreign = || Headers::new().with("Host", "evil.example").with("Content-Type", "application/json");
    for admit in [false, true] {
        let mut site = Site::with(|config| config.admit = admit);
        let refused: Vec<ExchangeId> = (0..3)
            .map(|_| {
                let x = site.begin("POST", foreign());
                assert_eq!(site.refusal(x).0, 403);
                x
            })
            .collect();
        site.codes();
        // Each body comes in the pieces of another: a message, a batch, an unreadable body, and one
        // that exceeds its limit.
        let [a, b, c] = refused[..] else { unreachable!() };
        for (x, item) in [
            (a, read(&call(1))),
            (b, read("[]")),
            (c, read("{")),
            (a, Inbound::End),
            (c, Inbound::Reject(BadRequest { status: 413, why: "too large" })),
            (b, Inbound::End),
        ] {
            site.bench.item(x, item);
            assert_eq!((site.codes(), site.said(x)), (Vec::new(), Vec::new()), "{x:?}");
        }
        // After its end an exchange is unknown.
        site.bench.item(a, read(&call(1)));
        assert_eq!(site.codes(), ["unknown-exchange"]);
    }
}

// covers: B-189
#[test]
fn refused_bodies_are_remembered_up_to_the_limit() {
    let mut site = Site::with(|config| config.limits.server.max_exchanges = 4);
    for _ in 0..10 {
        let x = site.begin("POST", Headers::new().with("Host", "evil.example"));
        assert_eq!(site.refusal(x).0, 403);
        site.codes();
        site.bench.item(x, read(&call(1)));
        assert_eq!(site.codes(), Vec::<&str>::new());
    }
    assert_eq!(site.bench.server.wire.env.unread.len(), 4);
}

// covers: X-09, X-10, R-25, B-109, HTTP-S-034, HTTP-S-035
#[test]
fn modern_get_and_delete_get_405() {
    let mut site = Site::new();
    let client = site.session("2025-11-25", "{}");
    for method in ["GET", "DELETE"] {
        let headers = Headers::new().with("Mcp-Session-Id", client.session.as_str());
        let x = site.bare(method, headers.with("MCP-Protocol-Version", "2026-07-28"));
        assert_eq!(site.refusal(x).0, 405);
        assert_eq!(site.head(x).headers.get("Allow"), Some("POST"));
    }
    // A request of that era is served without a session, even if it names one.
    for session in [client.session.as_str(), "unknown", ""] {
        let headers = Headers::new().with("Mcp-Session-Id", session).with("MCP-Protocol-Version", "2026-07-28");
        let x = site.post(headers.with("Mcp-Method", "x/y"), &modern("1", "x/y", ""));
        let (responder, incoming) = site.handed();
        assert_eq!((incoming.context.version.as_str(), incoming.context.session), ("2026-07-28", None));
        site.complete(responder, "{}");
        assert!(site.said(x)[0].starts_with("200 ") && site.head(x).headers.get("mcp-session-id").is_none());
    }
    let types = client.headers().with("Content-Type", "application/json").with("Content-Type", "text/plain");
    let x = site.post(types, &legacy("1", "ping", "{}"));
    assert_eq!(site.refusal(x).0, 415);
    // A request with `Expect` gets 100, unless its head is refused.
    let x = site.begin("POST", client.headers().with("Expect", "100-continue"));
    assert_eq!(site.said(x), ["Continue"]);
    let x = site.begin("POST", client.headers().with("Expect", "100-continue").with("Host", "evil.example"));
    assert_eq!(site.refusal(x).0, 403);
}

// covers: B-180, S3-43, SHTTP-S-002, SHTTP-S-003, SHTTP-S-004, HTTP-S-004
#[test]
fn foreign_origin_is_refused_by_its_head() {
    let mut site = Site::new();
    let client = site.session("2025-11-25", "{}");
    for method in ["POST", "GET", "DELETE", "OPTIONS"] {
        let x = site.begin(method, client.headers().with("Origin", "https://evil.example"));
        assert_eq!(site.refusal(x), (403, -32600), "before a byte of the body");
        assert_eq!(site.head(x).headers.get("connection"), Some("close"));
        assert!(site.head(x).headers.iter().all(|(name, _)| !name.starts_with("Access-Control")));
    }
    assert!(site.codes().contains(&"foreign-host"));
}

// covers: B-175, B-072
#[test]
fn clients_are_isolated() {
    let mut site = Site::new();
    let clients: Vec<Client> = (0..20).map(|_| site.session("2025-11-25", "{}")).collect();
    let calls: Vec<ExchangeId> = clients.iter().map(|client| client.call(&mut site, 1)).collect();
    let handed: Vec<Handed> = calls.iter().map(|_| site.handed()).collect();
    for (n, (responder, _)) in handed.into_iter().enumerate().rev() {
        site.complete(responder, &format!(r#"{{"n":{n}}}"#));
    }
    for (n, x) in calls.into_iter().enumerate() {
        let said = site.said(x);
        let body = said[0].strip_prefix("200 ").unwrap();
        assert_eq!(result(body).required::<usize>("n").unwrap(), n);
    }
}

// covers: B-189, S2-18
#[test]
fn full_server_responds_503_with_retry_after() {
    let mut site = Site::with(|config| {
        config.limits.server.max_running_requests = 1;
        config.limits.server.max_streams = 1;
    });
    let (client, other) = (site.session("2025-11-25", "{}"), site.session("2025-11-25", "{}"));
    client.call(&mut site, 1);
    let (_responder, _) = site.handed();
    let x = other.call(&mut site, 1);
    assert_eq!(site.refusal(x), (503, -32603));
    assert!(site.head(x).headers.get("retry-after").is_some());
    let own = site.bare("GET", client.headers());
    let full = site.bare("GET", other.headers());
    assert_eq!(site.refusal(full).0, 503);
    // The same client may open it again.
    let again = site.bare("GET", client.headers());
    assert_eq!(site.said(again)[0], "200 stream");
    assert_eq!(site.said(own).last().map(String::as_str), Some("end"));
    let cursor = site.said(again).last().map(|line| event(line).0.to_string());
    site.cut(again);
    let theirs = site.bare("GET", other.headers());
    assert_eq!(site.said(theirs)[0], "200 stream");
    // A cursor also frees no place.
    let back = site.bare("GET", client.after(&cursor.unwrap_or_else(|| "s2-1".into())));
    assert_eq!(site.refusal(back).0, 503);
}

// covers: B-189, B-222
#[test]
fn orphaned_request_is_evicted_for_a_new_one() {
    let mut site = Site::with(|config| config.limits.server.max_running_requests = 2);
    let alone = || Headers::new().with("MCP-Protocol-Version", "2025-06-18");
    let gone = site.post(alone(), &call(1));
    let (orphan, _) = site.handed();
    let heard = site.post(alone(), &call(2));
    let (responder, _) = site.handed();
    site.cut(gone);
    assert_eq!(site.bench.server.running(), 2, "leaving is not cancelling");
    let next = site.post(alone(), &call(3));
    assert_eq!(site.event(), Some(Event::Cancelled(orphan.key())));
    let (third, _) = site.handed();
    let full = site.post(alone(), &call(4));
    assert_eq!(site.refusal(full).0, 503);
    site.complete(orphan, "{}");
    site.complete(responder, "{}");
    site.complete(third, "{}");
    assert_eq!(
        (site.said(heard), site.said(next)),
        (vec![format!("200 {}", answer(2))], vec![format!("200 {}", answer(3))])
    );
    assert!(site.at_rest());
}

#[test]
fn peer_applies_to_one_request() {
    let mut site = Site::new();
    let ann = Peer::default().named("ann");
    let ask = |site: &mut Site| {
        let x = site.post(Headers::new().with("MCP-Protocol-Version", "2025-11-25"), &call(1));
        let (responder, incoming) = site.handed();
        site.complete(responder, "{}");
        (x, Peer::clone(&incoming.context.peer))
    };
    let (x, peer) = ask(&mut site);
    assert_eq!(peer, Peer::default(), "nothing was told");
    let next = ExchangeId(x.0 + 1);
    site.bench.handle_event(next, ExchangeEvent::From(ann.clone().into()));
    assert_eq!(ask(&mut site), (next, ann.clone()));
    assert_eq!(ask(&mut site).1, Peer::default());
    // An exchange without a request.
    site.bench.handle_event(ExchangeId(99), ExchangeEvent::From(ann.into()));
    assert_eq!(ask(&mut site).1, Peer::default());
}

// covers: HTTP-S-006, SHTTP-S-006, S3-45
#[test]
fn admission_precedes_the_body() {
    use crate::input::Admission;
    let mut site = Site::with(|config| config.admit = true);
    let shown = |site: &mut Site| {
        core::iter::from_fn(|| site.event()).find_map(|event| match event {
            Event::Admit(token, _) => Some(token),
            _ => None,
        })
    };
    let headers = || Headers::new().with("Content-Type", "application/json");
    let x = site.begin("POST", headers());
    let token = shown(&mut site).expect("it is shown");
    assert!(site.said(x).is_empty());
    site.bench.server.admit(site.bench.now, token, Admission::Accept(None));
    assert_eq!(site.said(x), ["Continue"]);
    site.bench.item(x, read(&initialize("2025-11-25", "{}")));
    assert!(site.said(x)[0].starts_with("200 "));
    let x = site.begin("POST", headers());
    let token = shown(&mut site).expect("it is shown");
    site.bench.server.admit(site.bench.now, token, Admission::Unauthorized(r#"Bearer scope="a""#.into()));
    assert_eq!(site.refusal(x), (401, -32600));
    assert_eq!(site.head(x).headers.get("www-authenticate"), Some(r#"Bearer scope="a""#));
    let x = site.begin("POST", headers());
    let token = shown(&mut site).expect("it is shown");
    site.bench.server.admit(site.bench.now, token, Admission::Forbidden(None));
    assert_eq!(site.refusal(x).0, 403);
    // Without a decision the request is refused at the timeout, and a late decision changes
    // nothing.
    let x = site.begin("POST", headers());
    let token = shown(&mut site).expect("it is shown");
    site.pass(Duration::from_secs(10));
    assert_eq!(site.refusal(x).0, 503);
    assert_eq!(site.event(), Some(Event::AdmitWithdrawn(token.key())));
    site.bench.server.admit(site.bench.now, token, Admission::Accept(None));
    assert!(site.said(x).is_empty());
    // A client that is gone needs no decision either. One that was decided about is not withdrawn.
    let x = site.begin("POST", headers());
    let token = shown(&mut site).expect("it is shown");
    site.cut(x);
    assert_eq!(site.event(), Some(Event::AdmitWithdrawn(token.key())));
    let x = site.begin("POST", headers());
    let token = shown(&mut site).expect("it is shown");
    site.bench.server.admit(site.bench.now, token, Admission::Accept(None));
    site.cut(x);
    assert_eq!(site.event(), None);
    // A foreign host is refused without an event.
    let x = site.begin("POST", headers().with("Host", "evil.example"));
    assert_eq!(site.refusal(x).0, 403);
    assert_eq!(shown(&mut site), None);
}

#[test]
fn malformed_response_counts_as_an_error() {
    let mut site = Site::new();
    let client = site.session("2025-11-25", ELICITS);
    let x = client.call(&mut site, 1);
    let (responder, _) = site.handed();
    let requests = vec![("q".to_string(), Form::new("?").text("it").into())];
    site.bench.answer(responder, Outcome::NeedInput { requests, state: None });
    site.said(x);
    let y = site.post(client.headers(), r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"m"}}"#);
    assert_eq!(site.refusal(y).0, 400);
    let (_responder, incoming) = site.handed();
    assert!(incoming.inputs["q"].is_err());
}

// covers: X-06, B-188
#[test]
fn modern_request_in_a_batch_is_refused() {
    let mut site = Site::new();
    let client = site.session("2025-03-26", "{}");
    let x = site.post(client.headers(), &format!("[{},{}]", modern("1", "tools/call", ""), legacy("2", "ping", "{}")));
    let said = site.said(x);
    let Inbound::Batch(elements) = read(said[0].strip_prefix("200 ").unwrap()) else { panic!("{said:?}") };
    assert_eq!((elements.len(), said[0].matches("-32600").count()), (2, 1));
    assert!(site.requests.is_empty());
}

#[test]
fn refused_request_evicts_nothing() {
    let mut site = Site::with(|config| config.limits.server.max_running_requests = 1);
    let alone = || Headers::new().with("MCP-Protocol-Version", "2025-06-18");
    let gone = site.post(alone(), &call(1));
    let (_responder, _) = site.handed();
    site.cut(gone);
    site.bench.server.shutdown(site.bench.now, Duration::from_secs(5));
    let late = site.post(alone(), &call(2));
    assert_eq!((site.refusal(late).0, site.event()), (503, None));
}
