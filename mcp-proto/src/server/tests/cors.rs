//! What a browser is told about pages of other origins.
#![cfg(feature = "http")]

use super::*;
use crate::exchange::{Headers, RequestHead};

const PAGE: (&str, &str) = ("Origin", "http://localhost:5173");

fn server(cors: bool, hosts: Hosts) -> Bench {
    Bench::with(|config| {
        config.cors = cors;
        config.hosts = hosts;
    })
}

fn request(method: &str, fields: &[(&str, &str)]) -> RequestHead {
    let headers = fields.iter().fold(Headers::new(), |headers, (name, value)| headers.with(name, *value));
    RequestHead { method: method.into(), target: "/mcp".into(), headers }
}

/// The question of a browser before a page calls a tool.
fn question(origin: (&str, &str), asked: &str) -> RequestHead {
    let method = ("Access-Control-Request-Method", "POST");
    request("OPTIONS", &[("Host", "localhost"), origin, method, ("Access-Control-Request-Headers", asked)])
}

/// The head that answers.
fn answered(bench: &mut Bench, head: RequestHead, body: &str) -> crate::exchange::ResponseHead {
    bench.item(A, Inbound::Request(head));
    if !body.is_empty() {
        bench.item(A, read(body));
    }
    bench.item(A, Inbound::End);
    let head = bench.outputs().into_iter().find_map(|output| match output {
        Output::Send(A, Outbound::Response { head, .. }) => Some(head),
        _ => None,
    });
    head.expect("an answer")
}

/// A request to the server itself, with these fields beside what it needs.
fn discover(fields: &[(&str, &str)]) -> RequestHead {
    let own = [
        ("Content-Type", "application/json"),
        ("Accept", "application/json, text/event-stream"),
        ("MCP-Protocol-Version", "2026-07-28"),
        ("Mcp-Method", "server/discover"),
    ];
    request("POST", &[&own, fields].concat())
}

fn asks() -> String {
    modern("1", "server/discover", "")
}

/// The fields of the protocol, and what caches need to know of it.
fn fields(headers: &Headers) -> Vec<(&str, &str)> {
    headers.iter().filter(|(name, _)| name.starts_with("Access-") || *name == "Vary").collect()
}

// covers: S3-24, R-20, B-184
#[test]
fn unless_it_is_asked_for_no_answer_has_a_field_of_it() {
    for hosts in [Hosts::Loopback, Hosts::Any] {
        let mut bench = server(false, hosts);
        let head = answered(&mut bench, question(PAGE, "content-type"), "");
        assert_eq!((head.status, fields(&head.headers)), (405, vec![]));
        let head = answered(&mut bench, discover(&[PAGE]), &asks());
        assert_eq!((head.status, fields(&head.headers)), (200, vec![]));
    }
}

// covers: S3-24, R-20
#[test]
fn a_page_that_may_is_told_what_it_may() {
    let mut bench = server(true, Hosts::Loopback);
    let head = answered(&mut bench, question(PAGE, "content-type"), "");
    assert_eq!(head.status, 204);
    assert_eq!(
        fields(&head.headers),
        [
            ("Vary", "Access-Control-Request-Method, Access-Control-Request-Headers"),
            ("Access-Control-Allow-Methods", "POST, GET, DELETE"),
            (
                "Access-Control-Allow-Headers",
                "Content-Type, Accept, Authorization, Last-Event-ID, Mcp-Session-Id, MCP-Protocol-Version, Mcp-Method, Mcp-Name"
            ),
            ("Access-Control-Max-Age", "7200"),
            ("Vary", "Origin"),
            ("Access-Control-Allow-Origin", "http://localhost:5173"),
            ("Access-Control-Expose-Headers", "Mcp-Session-Id, WWW-Authenticate, Retry-After"),
        ]
    );
    assert!(bench.server.env.exchanges.is_empty());
    let asked = "mcp-param-region , x-other,Mcp-Param-\u{e9}, mcp-param-a b,mcp-param-,mcp-params,Mcp-Param-(x)";
    let head = answered(&mut bench, question(PAGE, asked), "");
    let allowed = head.headers.get("Access-Control-Allow-Headers").unwrap();
    assert!(allowed.ends_with(", Mcp-Method, Mcp-Name, mcp-param-region, mcp-param-"), "{allowed}");
}

// covers: S3-24, R-20
#[test]
fn every_answer_to_a_page_lets_it_read_what_it_needs() {
    let mut bench = server(true, Hosts::Loopback);
    let expected = [
        ("Vary", "Origin"),
        ("Access-Control-Allow-Origin", "http://localhost:5173"),
        ("Access-Control-Expose-Headers", "Mcp-Session-Id, WWW-Authenticate, Retry-After"),
    ];
    for (head, body, status) in [
        (discover(&[PAGE]), asks(), 200),
        (discover(&[PAGE, ("Mcp-Method", "x")]), asks(), 400),
        (request("PUT", &[PAGE]), String::new(), 405),
        (request("OPTIONS", &[PAGE]), String::new(), 405),
    ] {
        let head = answered(&mut bench, head, &body);
        assert_eq!((head.status, fields(&head.headers)), (status, expected.to_vec()));
    }
    // A stream too.
    let call = [
        ("Content-Type", "application/json"),
        ("Accept", "application/json, text/event-stream"),
        ("MCP-Protocol-Version", "2026-07-28"),
        ("Mcp-Method", "tools/call"),
        ("Mcp-Name", "t"),
        PAGE,
    ];
    bench.item(A, Inbound::Request(request("POST", &call)));
    let (responder, _) = bench.request(A, &modern("1", "tools/call", r#","name":"t""#));
    bench.server.notify(bench.now, responder.key(), Note::Custom("x/y".into(), Object::new())).unwrap();
    let outputs = bench.outputs();
    let Output::Send(A, Outbound::Response { head, body: Body::Stream }) = &outputs[0] else { panic!("{outputs:?}") };
    assert_eq!(fields(&head.headers), expected);
    bench.complete(responder, "{}");
    bench.outputs();
    // Whoever is no page gets no more than what caches need.
    let head = answered(&mut bench, discover(&[]), &asks());
    assert_eq!(fields(&head.headers), [("Vary", "Origin")]);
}

// covers: S3-43, B-180, B-183
#[test]
fn a_page_that_may_not_is_told_nothing_but_that() {
    let mut bench = server(true, Hosts::Loopback);
    for origin in ["https://evil.example", "null", "http://localhost.evil.example", ""] {
        let head = answered(&mut bench, question(("Origin", origin), "content-type"), "");
        assert_eq!((head.status, fields(&head.headers)), (403, vec![]), "{origin}");
        let head = answered(&mut bench, discover(&[("Origin", origin)]), &asks());
        assert_eq!((head.status, fields(&head.headers)), (403, vec![]), "{origin}");
    }
    let head = answered(&mut bench, discover(&[("Host", "evil.example"), PAGE]), &asks());
    assert_eq!((head.status, fields(&head.headers)), (403, vec![]));
    // Of two origins it is none.
    let head = answered(&mut bench, discover(&[PAGE, ("origin", "http://127.0.0.1")]), &asks());
    assert_eq!((head.status, fields(&head.headers)), (200, vec![("Vary", "Origin")]));
    // What lacks an origin is no question of a browser.
    let head = answered(&mut bench, request("OPTIONS", &[("Access-Control-Request-Method", "POST")]), "");
    assert_eq!((head.status, fields(&head.headers)), (405, vec![("Vary", "Origin")]));
    // Where all are served each is told of itself, never of all, and none of what breaks a field.
    let mut bench = server(true, Hosts::Any);
    for (origin, told) in
        [("null", Some("null")), ("https://evil.example", Some("https://evil.example")), ("a b", None)]
    {
        let head = answered(&mut bench, discover(&[("Origin", origin)]), &asks());
        assert_eq!(head.headers.get("Access-Control-Allow-Origin"), told);
        assert_eq!(head.headers.get("Access-Control-Allow-Credentials"), None);
    }
}

// covers: S3-24, B-180
#[test]
fn a_browser_asks_before_it_has_a_token_and_reads_why_it_was_refused() {
    let mut bench = Bench::with(|config| {
        config.cors = true;
        config.admit = true;
    });
    assert_eq!(answered(&mut bench, question(PAGE, "authorization"), "").status, 204);
    bench.item(A, Inbound::Request(discover(&[PAGE])));
    let events = bench.events();
    let [Event::Admit(token, _)] = &events[..] else { panic!("{events:?}") };
    let key = token.key();
    let refusal = Admission::Unauthorized("Bearer".into());
    bench.server.apply(bench.now, Input::Command(ServerCommand::Admit(key, refusal))).unwrap();
    let outputs = bench.outputs();
    let head = outputs.iter().find_map(|output| match output {
        Output::Send(A, Outbound::Response { head, .. }) => Some(head),
        _ => None,
    });
    let head = head.unwrap();
    assert_eq!((head.status, head.headers.get("Access-Control-Allow-Origin")), (401, Some("http://localhost:5173")));
    // What HTTP itself refuses is read as well.
    let mut bench = server(true, Hosts::Loopback);
    bench.item(A, Inbound::Request(discover(&[PAGE])));
    bench.item(A, Inbound::Reject(crate::exchange::BadRequest { status: 413, why: "too large" }));
    let outputs = bench.outputs();
    let Some(Output::Send(A, Outbound::Response { head, .. })) = outputs.last() else { panic!("{outputs:?}") };
    assert_eq!((head.status, head.headers.get("Access-Control-Allow-Origin")), (413, Some("http://localhost:5173")));
    // And that there is no room for it.
    let mut bench = Bench::with(|config| {
        config.cors = true;
        config.limits.server.max_exchanges = 0;
    });
    let head = answered(&mut bench, discover(&[PAGE]), &asks());
    assert_eq!((head.status, head.headers.get("Access-Control-Allow-Origin")), (503, Some("http://localhost:5173")));
}
