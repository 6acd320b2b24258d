//! The opening handshake.

use super::super::handshake::*;
use super::*;
use crate::exchange::{BadRequest, Headers, RequestHead, ResponseHead, WsDialect};

/// The key of RFC 6455 section 1.3, and the proof for it.
const SAMPLE: &str = "dGhlIHNhbXBsZSBub25jZQ==";
const ACCEPT: &str = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";

fn fields(lines: &[(&str, &str)]) -> Headers {
    lines.iter().fold(Headers::new(), |headers, (name, value)| headers.with(name, value))
}

fn support() -> WsSupport {
    WsSupport::get().unwrap()
}

/// The fields of a handshake, without those of these names, and with these in addition.
fn request(without: &[&str], with: &[(&str, &str)]) -> RequestHead {
    let all = request_fields(Headers::new().with("Host", "h"), SAMPLE, WsDialect::JsonRpc);
    let kept = all.iter().filter(|(name, _)| !without.iter().any(|other| name.eq_ignore_ascii_case(other)));
    let headers = fields(&kept.chain(with.iter().copied()).collect::<Vec<_>>());
    RequestHead { method: "GET".into(), target: "/mcp".into(), headers }
}

fn accepted(protocol: Option<&'static str>) -> Upgrade {
    Upgrade::Accept(HandshakeReply { accept: ACCEPT.into(), protocol })
}

#[track_caller]
fn refused(head: &RequestHead, expected: u16) {
    match check_request(head, false, support()) {
        Upgrade::Refuse(BadRequest { status, .. }) if status == expected => {}
        other => panic!("{other:?}"),
    }
}

// covers: WS-C-007
#[test]
fn request_has_the_fields_of_the_standard() {
    assert_eq!(key(*b"the sample nonce"), SAMPLE);
    assert_ne!(key([0; 16]), key([1; 16]));
    let headers = request_fields(Headers::new().with("Host", "h"), SAMPLE, WsDialect::JsonRpc);
    let expected = [
        ("Host", "h"),
        ("Upgrade", "websocket"),
        ("Connection", "Upgrade"),
        ("Sec-WebSocket-Version", "13"),
        ("Sec-WebSocket-Protocol", "mcp"),
        ("Sec-WebSocket-Key", SAMPLE),
    ];
    assert_eq!(headers, fields(&expected));
    assert_eq!(request_fields(Headers::new(), SAMPLE, WsDialect::JsonRpc), fields(&expected[1..]));
}

/// Checks a response to [`SAMPLE`] whose fields of these names are replaced.
fn response(status: u16, changed: &[(&str, &str)]) -> Result<(), &'static str> {
    let all = [("Upgrade", "websocket"), ("Connection", "Upgrade"), ("Sec-WebSocket-Accept", ACCEPT)];
    let kept = all.iter().filter(|(name, _)| !changed.iter().any(|(other, _)| name.eq_ignore_ascii_case(other)));
    // An empty value means that there is no field.
    let headers = fields(&kept.chain(changed).filter(|(_, value)| !value.is_empty()).copied().collect::<Vec<_>>());
    check_response(&ResponseHead { status, headers }, SAMPLE, WsDialect::JsonRpc, support())
}

// covers: WS-C-008
#[test]
fn response_must_upgrade_and_match_the_key() {
    assert_eq!(response(101, &[]), Ok(()));
    for fine in [
        [("upgrade", "WebSocket"), ("connection", "UPGRADE")],
        [("Upgrade", " websocket "), ("Connection", "keep-alive, upgrade")],
        [("Connection", "keep-alive"), ("Connection", ",Upgrade")],
    ] {
        assert_eq!(response(101, &fine), Ok(()), "{fine:?}");
    }
    for status in [100, 102, 200, 204, 301, 400, 401, 403, 426, 500] {
        assert_eq!(response(status, &[]), Err("the status is not 101"));
    }
    for upgrade in ["", "h2c", "websockets", "websocket, h2c", "web socket", "websocket/13"] {
        assert_eq!(response(101, &[("Upgrade", upgrade)]), Err("the response does not upgrade to websocket"));
    }
    for connection in ["", "close", "upgraded", "keep-alive"] {
        let why = "the connection field of the response has no upgrade";
        assert_eq!(response(101, &[("Connection", connection)]), Err(why));
    }
    let mismatch = Err("the sec-websocket-accept field does not match the key");
    let small = ACCEPT.to_lowercase();
    for accept in ["", "x", SAMPLE, &small, &ACCEPT[..27], "Kfh9QIsMVZcl6xEPYxPHzW8SZ8w="] {
        assert_eq!(response(101, &[("Sec-WebSocket-Accept", accept)]), mismatch);
    }
    assert_eq!(response(101, &[("Sec-WebSocket-Accept", ACCEPT), ("sec-websocket-accept", ACCEPT)]), mismatch);
}

// covers: WS-C-009
#[test]
fn response_names_only_what_was_offered() {
    let protocol = |value: &'static str| ("Sec-WebSocket-Protocol", value);
    assert_eq!(response(101, &[protocol("mcp")]), Ok(()));
    for other in ["MCP", "chat", "mcp, chat", "mcp2"] {
        let why = "the server chose a subprotocol that was not offered";
        assert_eq!(response(101, &[protocol(other)]), Err(why));
        assert_eq!(response(101, &[protocol("mcp"), protocol(other)]), Err(why));
    }
    for extension in ["permessage-deflate", "x", ",, a;b=c"] {
        let why = "the server uses an extension that was not offered";
        assert_eq!(response(101, &[("Sec-WebSocket-Extensions", extension)]), Err(why));
    }
    // An empty list uses none.
    assert_eq!(response(101, &[("Sec-WebSocket-Extensions", " ")]), Ok(()));
    assert_eq!(request(&[], &[]).headers.get("sec-websocket-extensions"), None);
}

// covers: WS-S-012
#[test]
fn request_of_the_standard_is_accepted() {
    assert_eq!(check_request(&request(&[], &[]), false, support()), accepted(Some("mcp")));
    let spelled = request(
        &["Upgrade", "Connection"],
        &[("upgrade", "h2c, WebSocket"), ("CONNECTION", "keep-alive"), ("connection", "upgrade")],
    );
    assert_eq!(check_request(&spelled, false, support()), accepted(Some("mcp")));
    let extension = [("Sec-WebSocket-Extensions", "permessage-deflate; client_max_window_bits")];
    assert_eq!(check_request(&request(&[], &extension), false, support()), accepted(Some("mcp")));
}

// covers: WS-S-012
#[test]
fn request_without_upgrade_is_an_ordinary_one() {
    for upgrade in [&[][..], &[("Upgrade", "h2c")], &[("Upgrade", "websocket2, websocket/13")]] {
        let mut head = request(&["Upgrade"], upgrade);
        for method in ["GET", "POST", "OPTIONS"] {
            head.method = method.into();
            assert_eq!(check_request(&head, false, support()), Upgrade::None);
            assert_eq!(check_request(&head, true, support()), Upgrade::None);
        }
    }
}

// covers: WS-S-012
#[test]
fn malformed_handshake_is_refused_with_400() {
    for method in ["POST", "get", "HEAD", "OPTIONS"] {
        refused(&RequestHead { method: method.into(), ..request(&[], &[]) }, 400);
    }
    let old = check_request(&request(&[], &[]), true, support());
    assert!(matches!(old, Upgrade::Refuse(BadRequest { status: 400, .. })), "{old:?}");
    for connection in [&[][..], &[("Connection", "close")], &[("Connection", "xupgrade")]] {
        refused(&request(&["Connection"], connection), 400);
    }
    let keys = ["", "x", "dGhlIHNhbXBsZSBub25jZQ", "dGhlIHNhbXBsZSBub25j", "dGhlIHNhbXBsZSBub25jZWU=", "!!!!", "é=="];
    refused(&request(&["Sec-WebSocket-Key"], &[]), 400);
    for key in keys.into_iter().chain([&*"A".repeat(1000)]) {
        refused(&request(&["Sec-WebSocket-Key"], &[("Sec-WebSocket-Key", key)]), 400);
    }
    refused(&request(&[], &[("Sec-WebSocket-Key", SAMPLE)]), 400);
    assert_eq!(refusal_fields(400), Headers::new());
}

// covers: WS-S-012
#[test]
fn other_version_is_refused_with_ours() {
    refused(&request(&["Sec-WebSocket-Version"], &[]), 426);
    for version in ["8", "0", "013", "13.0", "", "13, 8", "14"] {
        // The key of another version may be anything.
        let fields = [("Sec-WebSocket-Version", version), ("Sec-WebSocket-Key", "x")];
        refused(&request(&["Sec-WebSocket-Version", "Sec-WebSocket-Key"], &fields), 426);
    }
    refused(&request(&[], &[("Sec-WebSocket-Version", "8")]), 426);
    let fields = refusal_fields(426);
    assert_eq!(fields.get("sec-websocket-version"), Some("13"));
    assert_eq!((fields.get("upgrade"), fields.get("connection")), (Some("websocket"), Some("Upgrade")));
}

// covers: WS-S-013
#[test]
fn subprotocol_is_answered_if_it_was_offered() {
    let offered = |fields: &[&str]| {
        let fields: Vec<_> = fields.iter().map(|value| ("Sec-WebSocket-Protocol", *value)).collect();
        check_request(&request(&["Sec-WebSocket-Protocol"], &fields), false, support())
    };
    for fields in [&["mcp"][..], &["chat, mcp"], &["chat", "mcp"], &["a,b,,\tmcp ,c"], &["mcp", "mcp"]] {
        assert_eq!(offered(fields), accepted(Some("mcp")), "{fields:?}");
    }
    for fields in [&[][..], &[""], &["MCP"], &["chat"], &["mcp2, xmcp", "m cp"]] {
        assert_eq!(offered(fields), accepted(None), "{fields:?}");
    }
    for protocol in [Some("mcp"), None] {
        let head = HandshakeReply { accept: ACCEPT.into(), protocol }.response();
        assert_eq!((head.status, head.headers.get("sec-websocket-protocol")), (101, protocol));
        assert_eq!(check_response(&head, SAMPLE, WsDialect::JsonRpc, support()), Ok(()));
        assert!(check_response(&head, &key([0; 16]), WsDialect::JsonRpc, support()).is_err());
    }
}
