//! CORS: the response fields for pages of other origins.

use super::*;
use crate::exchange::{Headers, RequestHead};
use crate::input::Admission;

const PAGE: (&str, &str) = ("Origin", "http://localhost:5173");

fn server(cors: bool, hosts: Hosts) -> Bench {
    Bench::with(|config| {
        config.cors = cors;
        config.hosts = hosts;
    })
}

fn request(method: &str, fields: &[(&str, &str)]) -> RequestHead {
    let headers = fields.iter().fold(Headers::new(), |headers, (name, value)| headers.with(name, *value));
    RequestHead { method: method.to_owned().into(), target: "/mcp".into(), headers }
}

/// The preflight request of a browser before a page calls a tool.
fn question(origin: (&str, &str), asked: &str) -> RequestHead {
    let method = ("Access-Control-Request-Method", "POST");
    request("OPTIONS", &[("Host", "localhost"), origin, method, ("Access-Control-Request-Headers", asked)])
}

/// Sends a request and returns the head of the response.
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

/// A `server/discover` request with these fields in addition to the required ones.
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

/// The CORS fields and the `Vary` field of a response.
fn fields(headers: &Headers) -> Vec<(&str, &str)> {
    headers.iter().filter(|(name, _)| name.starts_with("Access-") || *name == "Vary").collect()
}

// covers: S3-24, R-20, B-184
#[test]
fn cors_is_off_by_default() {
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
fn preflight_of_an_allowed_origin_gets_the_cors_fields() {
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
    assert!(bench.server.wire.env.exchanges.is_empty());
    let asked = "mcp-param-region , x-other,Mcp-Param-\u{e9}, mcp-param-a b,mcp-param-,mcp-params,Mcp-Param-(x)";
    let head = answered(&mut bench, question(PAGE, asked), "");
    let allowed = head.headers.get("Access-Control-Allow-Headers").unwrap();
    assert!(allowed.ends_with(", Mcp-Method, Mcp-Name, mcp-param-region, mcp-param-"), "{allowed}");
}

// covers: S3-24, R-20
#[test]
fn every_response_to_a_page_has_the_cors_fields() {
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
    // The same holds for an event stream.
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
    // A request without `Origin` gets only the `Vary` field.
    let head = answered(&mut bench, discover(&[]), &asks());
    assert_eq!(fields(&head.headers), [("Vary", "Origin")]);
}

// covers: S3-43, B-180, B-183
#[test]
fn foreign_origin_gets_403_without_cors_fields() {
    let mut bench = server(true, Hosts::Loopback);
    for origin in ["https://evil.example", "null", "http://localhost.evil.example", ""] {
        let head = answered(&mut bench, question(("Origin", origin), "content-type"), "");
        assert_eq!((head.status, fields(&head.headers)), (403, vec![]), "{origin}");
        let head = answered(&mut bench, discover(&[("Origin", origin)]), &asks());
        assert_eq!((head.status, fields(&head.headers)), (403, vec![]), "{origin}");
    }
    let head = answered(&mut bench, discover(&[("Host", "evil.example"), PAGE]), &asks());
    assert_eq!((head.status, fields(&head.headers)), (403, vec![]));
    // Two origins allow neither.
    let head = answered(&mut bench, discover(&[PAGE, ("origin", "http://127.0.0.1")]), &asks());
    assert_eq!((head.status, fields(&head.headers)), (200, vec![("Vary", "Origin")]));
    // A request without `Origin` is not a preflight request.
    let head = answered(&mut bench, request("OPTIONS", &[("Access-Control-Request-Method", "POST")]), "");
    assert_eq!((head.status, fields(&head.headers)), (405, vec![("Vary", "Origin")]));
    // With all origins allowed, the response repeats the origin, never `*`, and omits an invalid
    // one.
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
fn preflight_needs_no_token_and_errors_are_readable() {
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
    // The page can also read an error of HTTP itself.
    let mut bench = server(true, Hosts::Loopback);
    bench.item(A, Inbound::Request(discover(&[PAGE])));
    bench.item(A, Inbound::Reject(crate::exchange::BadRequest { status: 413, why: "too large" }));
    let outputs = bench.outputs();
    let Some(Output::Send(A, Outbound::Response { head, .. })) = outputs.last() else { panic!("{outputs:?}") };
    assert_eq!((head.status, head.headers.get("Access-Control-Allow-Origin")), (413, Some("http://localhost:5173")));
    // The page can also read that the server is full.
    let mut bench = Bench::with(|config| {
        config.cors = true;
        config.limits.server.max_exchanges = 0;
    });
    let head = answered(&mut bench, discover(&[PAGE]), &asks());
    assert_eq!((head.status, head.headers.get("Access-Control-Allow-Origin")), (503, Some("http://localhost:5173")));
}
