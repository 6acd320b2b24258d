//! Calls over HTTP with mirrored arguments: an engine with a router.

use crate::exchange::{Body, ExchangeEvent, ExchangeId, Headers, Inbound, Outbound, Peer, RequestHead, ResponseHead};
use crate::input::Outcome;
use crate::route::{Handler, RouteResult, Router, tool};
use crate::rpc::{Object, Payload, parse};
use crate::server::{Event, Output, Server, ServerCommands};
use crate::time::Instant;
use crate::tools::Tool;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use proptest::prelude::*;

const X: ExchangeId = ExchangeId(1);
const NOW: Instant = Instant::ZERO;

const SCHEMA: &str = r#"{"type":"object","properties":{
    "region":{"type":"string","x-mcp-header":"Region"},
    "count":{"type":"integer","x-mcp-header":"Count"},
    "dry":{"type":["boolean","null"],"x-mcp-header":"Dry"},
    "any":{"type":["string","integer"],"x-mcp-header":"Any"},
    "where":{"type":"object","properties":{"zone":{"type":"string","x-mcp-header":"Zone"}}},
    "plain":{"type":"string"}}}"#;

fn annotated() -> Tool {
    tool("t").input_schema(SCHEMA.replace('\n', ""))
}

fn answer(said: &[u8]) -> Result<(), (i64, String)> {
    let Ok(crate::rpc::Message::Response(response)) = parse(said.to_vec().into(), 128) else { panic!("no answer") };
    match response.payload {
        Payload::Result(_) => Ok(()),
        Payload::Error(error) => Err((error.code, error.message)),
    }
}

/// A handler that no test runs.
fn unused() -> Handler {
    Handler::inline(|_| Outcome::internal("unused"))
}

/// Returns the status of a request to a server with these tools, and its response.
fn asked(tools: impl IntoIterator<Item = Tool>, head: Option<Headers>, body: &str) -> (u16, Result<(), (i64, String)>) {
    let router = tools.into_iter().fold(Router::new("r", "1"), |router, tool| router.add(tool, unused()));
    let mut server = Server::new(Arc::new(router.config()), [1; 32], NOW);
    let begin = match head {
        Some(headers) => ExchangeEvent::Inbound(Inbound::Request(RequestHead {
            method: "POST".into(),
            target: "/mcp".into(),
            headers,
        })),
        None => ExchangeEvent::Opened(Peer::default()),
    };
    server.handle_event(NOW, X, begin);
    server.handle_event(
        NOW,
        X,
        ExchangeEvent::Inbound(Inbound::Message(parse(body.as_bytes().to_vec().into(), 128).unwrap())),
    );
    loop {
        match server.poll_output().expect("an answer") {
            Output::Event(Event::Request(responder, incoming)) => {
                let answer = match router.route(responder, incoming) {
                    RouteResult::Answer(answer) => answer,
                    RouteResult::Handle { responder, .. } => responder.write(Outcome::Complete(Object::new())),
                };
                server.respond(NOW, answer);
            }
            Output::Send(X, Outbound::Response { head: ResponseHead { status, .. }, body: Body::Full(body) }) => {
                return (status, answer(&body));
            }
            Output::Send(X, Outbound::Message(message)) => return (0, answer(&message)),
            _ => {}
        }
    }
}

fn call(arguments: &str) -> String {
    let meta =
        r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}"#;
    let params = format!(r#"{{"_meta":{{{meta}}},"name":"t","arguments":{arguments}}}"#);
    format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#)
}

fn headers(fields: &[(&str, &str)]) -> Headers {
    let own = Headers::new()
        .with("Content-Type", "application/json")
        .with("Accept", "application/json, text/event-stream")
        .with("MCP-Protocol-Version", "2026-07-28")
        .with("Mcp-Method", "tools/call")
        .with("Mcp-Name", "t");
    fields.iter().fold(own, |headers, (name, value)| headers.with(name, *value))
}

/// Calls the annotated tool.
fn called(arguments: &str, fields: &[(&str, &str)]) -> Result<(), String> {
    match asked([annotated()], Some(headers(fields)), &call(arguments)) {
        (200, Ok(())) => Ok(()),
        (400, Err((-32020, text))) => Err(text),
        other => panic!("{arguments} {fields:?}: {other:?}"),
    }
}

#[track_caller]
fn refused(arguments: &str, fields: &[(&str, &str)], text: &str) {
    let why = called(arguments, fields).expect_err(arguments);
    assert!(why.contains(text), "{arguments} {fields:?}: {why}");
}

// covers: HDR-S-015, HDR-S-031, HDR-S-032, HDR-B-007
#[test]
fn every_annotated_argument_has_a_matching_field() {
    let all = r#"{"region":"us-west1","count":42,"dry":false,"where":{"zone":"z"},"plain":"p"}"#;
    let fields = [
        ("Mcp-Param-Region", "us-west1"),
        ("mcp-param-count", "42"),
        ("MCP-PARAM-DRY", " false\t"),
        ("Mcp-Param-zone", "z"),
    ];
    assert_eq!(called(all, &fields), Ok(()));
    for missing in 0..fields.len() {
        let mut fields = fields.to_vec();
        let (name, _) = fields.remove(missing);
        let why = called(all, &fields).unwrap_err().to_lowercase();
        assert_eq!(why, format!("the header {} is missing", name.to_lowercase()));
        fields.push((name, "other"));
        assert!(called(all, &fields).unwrap_err().ends_with("does not match the argument"));
    }
    for other in ["us-west", "US-WEST1", "us-west11", "", "\"us-west1\""] {
        refused(r#"{"region":"us-west1"}"#, &[("Mcp-Param-Region", other)], "does not match the argument");
    }
}

// covers: HDR-S-030, HDR-S-032
#[test]
fn absent_argument_has_no_field() {
    for nothing in [
        "{}",
        "null",
        r#"{"region":null,"count":null,"dry":null,"where":null}"#,
        r#"{"where":{"zone":null},"zone":"z"}"#,
    ] {
        assert_eq!(called(nothing, &[]), Ok(()), "{nothing}");
        for field in ["Mcp-Param-Region", "mcp-param-count", "Mcp-Param-Dry", "Mcp-Param-Zone"] {
            for value in ["", "null", "z", "0", "=?base64?!?="] {
                refused(nothing, &[(field, value)], "mirrors an argument that is not there");
            }
        }
    }
    // An empty string is a value.
    assert_eq!(called(r#"{"region":""}"#, &[("Mcp-Param-Region", "")]), Ok(()));
    refused(r#"{"region":""}"#, &[], "is missing");
}

// covers: HDR-S-014, HDR-B-022
#[test]
fn integers_compare_as_numbers_in_the_range_of_a_field() {
    let count = |argument: &str, field: &str| {
        called(&format!(r#"{{"count":{argument}}}"#), &[("Mcp-Param-Count", field)]).is_ok()
    };
    for (argument, field) in [
        ("42", "42"),
        ("42", "42.0"),
        ("42.0", "42"),
        ("4.2e1", "420e-1"),
        ("-7", "-7"),
        ("0", "-0"),
        ("0", "0.0"),
        ("42", "=?base64?NDI=?="),
        ("9007199254740991", "9007199254740991"),
        ("-9007199254740991", "-9007199254740991"),
    ] {
        assert!(count(argument, field), "{argument} {field}");
    }
    for (argument, field) in [
        ("42", "43"),
        ("42", "42.5"),
        ("42", "-42"),
        ("42", "042"),
        ("42", "+42"),
        ("42", "0x2a"),
        ("42", "42 0"),
        ("42", "\"42\""),
        ("42", "=?base64?IDQy?="),
        ("42", ""),
        ("42", "true"),
        ("9007199254740992", "9007199254740992"),
        ("-9007199254740992", "-9007199254740992"),
        ("9007199254740991", "9007199254740992"),
        ("1.5", "1.5"),
        ("1e300", "1e300"),
        ("[42]", "42"),
    ] {
        assert!(!count(argument, field), "{argument} {field}");
    }
    // A string in the body compares as text, even if it looks like a number.
    assert_eq!(called(r#"{"any":"42"}"#, &[("Mcp-Param-Any", "42")]), Ok(()));
    refused(r#"{"any":"42"}"#, &[("Mcp-Param-Any", "42.0")], "does not match");
    assert_eq!(called(r#"{"any":42}"#, &[("Mcp-Param-Any", "42.0")]), Ok(()));
    refused(r#"{"dry":true}"#, &[("Mcp-Param-Dry", "True")], "does not match");
    refused(r#"{"dry":true}"#, &[("Mcp-Param-Dry", "1")], "does not match");
    refused(r#"{"dry":{}}"#, &[("Mcp-Param-Dry", "{}")], "does not match");
}

// covers: HDR-S-013, HDR-S-032, HDR-S-033, HDR-S-038, SEPX-S-004, SEPX-S-005
#[test]
fn every_field_of_a_name_is_decoded_and_checked() {
    let region = |argument: &str, fields: &[&str]| {
        let fields: Vec<_> = fields.iter().map(|field| ("Mcp-Param-Region", *field)).collect();
        called(&format!(r#"{{"region":"{argument}"}}"#), &fields)
    };
    for (argument, field) in [
        ("Hello", "=?base64?SGVsbG8=?="),
        ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
        (" padded ", "=?base64?IHBhZGRlZCA=?="),
        (r"line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
        ("SGVsbG8=", "SGVsbG8="),
        ("=?base64?SGVsbG8=", "=?base64?SGVsbG8="),
        ("=?BASE64?SGVsbG8=?=", "=?BASE64?SGVsbG8=?="),
        ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
    ] {
        assert_eq!(region(argument, &[field]), Ok(()), "{argument}");
        assert_eq!(region(argument, &[field, field]), Ok(()), "{argument}");
        for other in ["x", "", "=?base64?!?="] {
            region(argument, &[field, other]).unwrap_err();
            region(argument, &[other, field]).unwrap_err();
        }
    }
    for (argument, field, text) in [
        ("Hello", "=?base64?SGVsbG8?=", "is not the Base64"),
        ("Hello", "=?base64?SGVs!!!bG8=?=", "is not the Base64"),
        ("Hello", "Hel\u{1}lo", "must not contain"),
        ("caf\u{e9}", "caf\u{e9}", "must not contain"),
        ("x", "=?base64?/w==?=", "not UTF-8"),
    ] {
        let why = region(argument, &[field]).unwrap_err();
        assert!(why.starts_with("the header Mcp-Param-Region ") && why.contains(text), "{why}");
    }
}

// covers: HDR-S-032, HDR-C-027
#[test]
fn unannotated_and_non_http_arguments_are_not_checked() {
    for field in ["Mcp-Param-Other", "Mcp-Param-Plain", "Mcp-Param-", "X-Mcp-Param-Region", "Mcp-Param-Where"] {
        assert_eq!(called(r#"{"plain":"p"}"#, &[(field, "=?base64?!?=")]), Ok(()), "{field}");
    }
    let arguments = call(r#"{"region":"r"}"#);
    assert_eq!(asked([tool("t")], Some(headers(&[("Mcp-Param-Region", "x")])), &arguments), (200, Ok(())));
    assert_eq!(asked([annotated()], None, &arguments), (0, Ok(())));
}

// covers: HDR-S-010, HDR-S-032
#[test]
fn fields_are_checked_before_anything_else() {
    let code = |body: &str, fields: &[(&str, &str)]| {
        let (status, answer) = asked([annotated()], Some(headers(fields)), body);
        (status, answer.map_err(|(code, _)| code))
    };
    let body = call(r#"{"region":"r"}"#);
    let forged = body.replace(r#""name":"t""#, r#""name":"t","requestState":"forged""#);
    assert_eq!(code(&forged, &[]), (400, Err(-32020)));
    assert_eq!(code(&forged, &[("Mcp-Param-Region", "r")]), (200, Err(-32602)));
    assert_eq!(code(&call("[1]"), &[]), (200, Err(-32602)));
    assert_eq!(code(&call("[1]"), &[("Mcp-Param-Region", "r")]), (400, Err(-32020)));
    let (status, answer) =
        asked([annotated()], Some(headers(&[]).with("x", "y")), &body.replace(r#""name":"t""#, r#""x":1"#));
    assert_eq!((status, answer.unwrap_err().0), (400, -32020), "a name that the body does not have");
}

// covers: HDR-S-017, HDR-S-018, HDR-S-019, HDR-S-020, HDR-S-021, HDR-S-023, HDR-S-024
#[test]
fn tool_with_invalid_annotation_is_not_offered() {
    let one = |kind: &str, name: &str| {
        format!(r#"{{"type":"object","properties":{{"a":{{"type":"{kind}","x-mcp-header":{name}}}}}}}"#)
    };
    let legal = r#"{"type":"string","x-mcp-header":"A"}"#;
    let bad = [
        (one("string", r#""""#), "is empty"),
        (one("string", r#""my header""#), "is not a token"),
        (one("string", r#""a:b""#), "is not a token"),
        (one("string", r#""a\r\nX: y""#), "is not a token"),
        (one("string", r#""\u0000""#), "is not a token"),
        (one("string", "7"), "is not a string"),
        (one("number", r#""A""#), "is on a type other than"),
        (one("object", r#""A""#), "is on a type other than"),
        (format!(r#"{{"properties":{{"a":{legal},"b":{}}}}}"#, legal.replace('A', "a")), "occurs twice"),
        (format!(r#"{{"properties":{{"a":{{"type":"array","items":{legal}}}}}}}"#), "not reachable"),
        (format!(r#"{{"oneOf":[{{"properties":{{"a":{legal}}}}}]}}"#), "not reachable"),
        (format!(r##"{{"$defs":{{"a":{legal}}},"properties":{{"a":{{"$ref":"#/$defs/a"}}}}}}"##), "not reachable"),
        (r#"{"x-mcp-header":"A"}"#.to_string(), "not reachable"),
    ];
    for (schema, why) in bad {
        let tool = tool("named").input_schema(schema.as_str());
        let e = tool.check().unwrap_err();
        assert_eq!(e.name, "named");
        assert!(e.why.contains(why), "{schema}: {e}");
        assert!(e.to_string().starts_with("the tool `named` cannot be offered: `x-mcp-header` at "));
        let added = std::panic::catch_unwind(|| Router::new("r", "1").add(tool, unused()).config());
        let text = added.unwrap_err().downcast::<String>().unwrap();
        assert_eq!(*text, e.to_string(), "the panic says what the check says");
    }
    annotated().check().unwrap();
    assert_eq!(tool("t").check(), Ok(()));
}

proptest! {
    // covers: HDR-S-013, HDR-S-014, HDR-S-032
    #[test]
    fn server_accepts_the_fields_of_the_client(region: Option<String>, count in proptest::option::of(-9_007_199_254_740_991_i64..=9_007_199_254_740_991), dry: Option<bool>) {
        use crate::model::headers::encode;
        let arguments = Object::new()
            .with_opt("region", region.as_deref())
            .with_opt("count", count)
            .with_opt("dry", dry);
        let fields = [
            ("Mcp-Param-Region", region.as_deref().map(encode)),
            ("Mcp-Param-Count", count.map(|n| n.to_string().into())),
            ("Mcp-Param-Dry", dry.map(|b| b.to_string().into())),
        ];
        let fields: Vec<_> = fields.iter().filter_map(|(name, value)| Some((*name, value.as_deref()?))).collect();
        prop_assert_eq!(called(arguments.to_json().as_str(), &fields), Ok(()));
    }
}
