//! Tests of `rpc`: what is accepted, what is rejected and why, and that written messages read back.

use super::grammar::{self, MAX_DEPTH, Scan};
use super::*;
use crate::exchange::Inbound;
use crate::limits::FrameLimits;
use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use bytes::Bytes;
use proptest::prelude::*;

fn read(text: &str) -> Result<Message, InvalidMessage> {
    parse(Bytes::copy_from_slice(text.as_bytes()), 128)
}

fn raw(text: &str) -> RawJson {
    RawJson::parse(text.to_owned()).unwrap()
}

fn request_of(id: impl Into<Id>, method: &str, params: Option<&str>) -> Message {
    Message::Request(Request { id: id.into(), method: method.to_string().into(), params: params.map(raw) })
}

fn result_of(id: impl Into<Id>, result: &str) -> Message {
    Message::Response(Response::new(id.into(), Payload::Result(raw(result))))
}

fn error_of(id: impl Into<Id>, error: ErrorObject) -> Message {
    Message::Response(Response::new(id.into(), Payload::Error(error)))
}

fn notification_of(method: &str, params: Option<&str>) -> Message {
    Message::Notification(Notification { method: method.to_string().into(), params: params.map(raw) })
}

// covers: RPC-B-001, RPC-B-003, RPC-B-011, RPC-B-012, RPC-B-013, RPC-B-014, RPC-B-015, RPC-B-016,
// S0-01, S0-11, S0-12, B-050, B-051, B-287
#[test]
fn keys_decide_the_kind_of_a_message() {
    let cases = [
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, request_of(1, "ping", None)),
        (r#"{"jsonrpc":"2.0","id":"a","method":"m","params":{"x":[1]}}"#, request_of("a", "m", Some(r#"{"x":[1]}"#))),
        (r#"{"method":"","id":7,"jsonrpc":"2.0","params":{}}"#, request_of(7, "", Some("{}"))),
        (r#"{"jsonrpc":"2.0","id":1,"method":"m","params":null}"#, request_of(1, "m", None)),
        (r#"{"jsonrpc":"2.0","method":"m"}"#, notification_of("m", None)),
        (r#"{"jsonrpc":"2.0","method":"m","params":{"id":3}}"#, notification_of("m", Some(r#"{"id":3}"#))),
        (r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, result_of(1, "{}")),
        (r#"{"jsonrpc":"2.0","id":1,"result":null}"#, result_of(1, "null")),
        (r#"{"jsonrpc":"2.0","id":1,"result":[ 1, 2 ],"params":7}"#, result_of(1, "[ 1, 2 ]")),
        (
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no","more":0}}"#,
            error_of(1, ErrorObject::new(-32601, "no")),
        ),
        (
            r#"{"jsonrpc":"2.0","id":"x","error":{"code":1.0,"message":"","data":[null]}}"#,
            error_of("x", ErrorObject::new(1, "").with_data(raw("[null]"))),
        ),
        (
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"m","data":null}}"#,
            Message::Error(ErrorObject::new(-32700, "m").with_data(RawJson::null())),
        ),
        (r#"{"jsonrpc":"2.0","error":{"message":"m","code":5}}"#, Message::Error(ErrorObject::new(5, "m"))),
        // Escapes are decoded in keys and in values. Other keys are ignored, even if they repeat.
        (
            r#"{"\u006asonrpc":"\u0032.0","i\u0064":"\u0061","\u006dethod":"tools\/list","x":1,"x":{"method":2}}"#,
            request_of("a", "tools/list", None),
        ),
        (" \t\r\n{\"jsonrpc\" : \"2.0\" , \"method\" : \"m\" } \r\n\t", notification_of("m", None)),
    ];
    for (text, message) in cases {
        assert_eq!(read(text), Ok(message), "{text}");
    }
}

// covers: RPC-B-003, RPC-B-004, RPC-B-009, B-044, B-046, B-047
#[test]
fn ids_keep_their_type_and_value() {
    let legal: &[(&str, Id)] = &[
        ("0", 0.into()),
        ("-0", 0.into()),
        ("-1", (-1).into()),
        ("9223372036854775807", i64::MAX.into()),
        ("-9223372036854775808", i64::MIN.into()),
        ("9007199254740993", 9_007_199_254_740_993.into()),
        ("1.0", 1.into()),
        ("1e0", 1.into()),
        ("-0.0", 0.into()),
        ("0e99999999999999999999", 0.into()),
        ("1E+2", 100.into()),
        ("1200e-2", 12.into()),
        ("1.50e1", 15.into()),
        ("-9007199254740992.0", (-9_007_199_254_740_992).into()),
        ("9.007199254740992e15", 9_007_199_254_740_992.into()),
        (r#""""#, "".into()),
        (r#""0""#, "0".into()),
        (r#""1.0""#, "1.0".into()),
        (r#""\u00e9\ud83d\ude00\n\"""#, "é😀\n\"".into()),
    ];
    for (text, id) in legal {
        assert_eq!(
            read(&format!(r#"{{"jsonrpc":"2.0","id":{text},"method":"m"}}"#)),
            Ok(request_of(id.clone(), "m", None))
        );
        assert_eq!(read(&format!(r#"{{"jsonrpc":"2.0","id":{text},"result":1}}"#)), Ok(result_of(id.clone(), "1")));
        assert_eq!(Object::new().with("t", raw(text)).id("t").as_ref(), Some(id));
        let echo = error_response(Some(id), &ErrorObject::new(1, "m"));
        assert_eq!(parse(echo, 128), Ok(error_of(id.clone(), ErrorObject::new(1, "m"))));
    }
    let illegal = [
        "null",
        "true",
        "[]",
        "{}",
        "1.5",
        "1e-1",
        "9223372036854775808",
        "-9223372036854775809",
        "9007199254740993.0",
        "1e16",
        "1e400",
        "1e99999999999999999999",
        "1e-99999999999999999999",
        "1.0000000000000000000000000000001",
    ];
    for text in illegal {
        let request = read(&format!(r#"{{"jsonrpc":"2.0","id":{text},"method":"m"}}"#)).unwrap_err();
        assert_eq!((request.kind, request.id, request.has_method), (InvalidKind::BadId, None, true), "{text}");
        let result = read(&format!(r#"{{"jsonrpc":"2.0","id":{text},"result":1}}"#)).unwrap_err();
        assert_eq!((result.kind, result.id, result.has_method), (InvalidKind::BadId, None, false), "{text}");
        if text != "null" {
            let error = format!(r#"{{"jsonrpc":"2.0","id":{text},"error":{{"code":1,"message":""}}}}"#);
            assert_eq!(read(&error).unwrap_err().kind, InvalidKind::BadId, "{text}");
        }
        assert_eq!(Object::new().with("t", raw(text)).id("t"), None);
    }
}

// covers: B-124, B-292
#[test]
fn lone_surrogate_affects_only_its_batch_element() {
    let batch = r#"[{"jsonrpc":"2.0","method":"a"},{"jsonrpc":"2.0","method":"b","params":{"x":"\ud800"}},7,{"jsonrpc":"2.0","method":"c"}]"#;
    let Ok(Document::Batch(elements)) =
        parse_batch_or_message(batch.as_bytes().to_vec().into(), &FrameLimits::default())
    else {
        panic!()
    };
    let kinds: Vec<Result<String, InvalidKind>> = elements
        .into_iter()
        .map(|element| match element {
            Ok(Message::Notification(note)) => Ok(note.method.into_owned()),
            Ok(other) => panic!("{other:?}"),
            Err(defect) => Err(defect.kind),
        })
        .collect();
    let (lone, scalar) = (Err(InvalidKind::LoneSurrogate), Err(InvalidKind::NotAnObject));
    assert_eq!(kinds, [Ok("a".into()), lone, scalar, Ok("c".into())]);
}

// covers: RPC-B-007
#[test]
fn written_notification_has_no_id() {
    let params = Object::new().with("requestId", 5_i64);
    for params in [None, Some(&params)] {
        let text = notification("notifications/cancelled", params);
        let object = Object::read(&RawJson::parse(text.clone()).unwrap()).unwrap();
        assert_eq!(object.get("id"), None, "{text:?}");
        assert!(matches!(parse(text, 128), Ok(Message::Notification(_))));
    }
}

// covers: RPC-B-001, RPC-B-004, RPC-B-010, RPC-B-011, RPC-B-013, RPC-B-014, RPC-B-018, B-050,
// B-121, B-124, B-292
#[test]
fn every_invalid_message_has_its_kind_and_known_members() {
    use InvalidKind::*;
    let one = || Some(Id::Int(1));
    let cases: &[(&str, InvalidKind, Option<Id>, bool)] = &[
        ("", Truncated, None, false),
        ("  ", Truncated, None, false),
        ("nul", Truncated, None, false),
        (r#"{"id":1,"method":"m""#, Truncated, one(), true),
        (r#"{"id":1,"meth"#, Truncated, one(), false),
        (r#"{"id":1"#, Truncated, None, false),
        ("hello", Syntax, None, false),
        ("nulL", Syntax, None, false),
        ("{}}", Syntax, None, false),
        ("\u{feff}{}", Syntax, None, false),
        ("{\"id\":1,\0", Syntax, one(), false),
        ("{\"id\":1,\"x\":\"\0\"}", Syntax, one(), false),
        ("{\"id\":1,\"x\":\"\n\"}", Syntax, one(), false),
        ("{\"id\":1,\"x\":\"1234567890\u{1f}\"}", Syntax, one(), false),
        (r#"{"id":1,"x":"\x"}"#, Syntax, one(), false),
        (r#"{"id":1,"x":"\u12g4"}"#, Syntax, one(), false),
        (r#"{"id":1x}"#, Syntax, None, false),
        (r#"{"id":01}"#, Syntax, None, false),
        (r#"{"id":1,}"#, Syntax, one(), false),
        (r#"{,"id":1}"#, Syntax, None, false),
        (r#"{"id":1 "x":2}"#, Syntax, one(), false),
        (r#"{"id":1,"x":[1,]}"#, Syntax, one(), false),
        (r#"{"id":1,"x":[1}]"#, Syntax, one(), false),
        (r#"{"id":1,"x":{"a":1]}"#, Syntax, one(), false),
        (r#"{"id":1,"x":{"a",1}}"#, Syntax, one(), false),
        (r#"{"id":1,"x":{1:1}}"#, Syntax, one(), false),
        (r#"{"id":1,"x":1.}"#, Syntax, one(), false),
        (r#"{"id":1,"x":.1}"#, Syntax, one(), false),
        (r#"{"id":1,"x":+1}"#, Syntax, one(), false),
        (r#"{"id":1,"x":1e}"#, Syntax, one(), false),
        (r#"{"id":1,"x":-}"#, Syntax, one(), false),
        (r#"{"id":1,"x":'a'}"#, Syntax, one(), false),
        (r#"{"id":1,"x":NaN}"#, Syntax, one(), false),
        (r#"{"id":1} {"id":2}"#, Syntax, one(), false),
        // Parsing continues after a lone surrogate, so an id after it is found.
        (r#"{"method":"\ud800","id":1}"#, LoneSurrogate, one(), true),
        (r#"{"id":1,"x":"\udc00\ud800"}"#, LoneSurrogate, one(), false),
        (r#"{"id":1,"x":"\ud800x\udc00"}"#, LoneSurrogate, one(), false),
        (r#"{"id":1,"x":"\ud800\ud800\udc00"}"#, LoneSurrogate, one(), false),
        (r#"{"id":1,"\udfff":0}"#, LoneSurrogate, one(), false),
        (r#"{"id":"\ud800","x":0}"#, LoneSurrogate, None, false),
        (r#"{"id":1,"x":"\ud800",}"#, Syntax, one(), false),
        (r#""\ud800""#, LoneSurrogate, None, false),
        ("1", NotAnObject, None, false),
        ("null", NotAnObject, None, false),
        (r#""{}""#, NotAnObject, None, false),
        ("[]", EmptyBatch, None, false),
        ("[1]", UnexpectedBatch, None, false),
        (r#"[{"jsonrpc":"2.0","id":1,"method":"m"}]"#, UnexpectedBatch, None, false),
        (r#"{"jsonrpc":"2.0","id":1,"id":1,"method":"m"}"#, DuplicateKey, one(), true),
        (r#"{"jsonrpc":"2.0","id":1,"\u0069d":2,"result":0}"#, DuplicateKey, one(), false),
        (r#"{"jsonrpc":"2.0","jsonrpc":"2.0","id":1,"result":0}"#, DuplicateKey, one(), false),
        (r#"{"jsonrpc":"2.0","id":1,"method":"m","method":"m"}"#, DuplicateKey, one(), true),
        (r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{},"params":{}}"#, DuplicateKey, one(), true),
        (r#"{"jsonrpc":"2.0","id":1,"result":0,"result":0}"#, DuplicateKey, one(), false),
        (r#"{"jsonrpc":"2.0","id":1,"error":0,"error":0}"#, DuplicateKey, one(), false),
        (r#"{"id":1,"method":"m"}"#, NotJsonRpc, one(), true),
        (r#"{"jsonrpc":"1.0","id":1,"result":0}"#, NotJsonRpc, one(), false),
        (r#"{"jsonrpc":2.0,"id":1,"result":0}"#, NotJsonRpc, one(), false),
        (r#"{"jsonrpc":"2.0 ","id":1,"result":0}"#, NotJsonRpc, one(), false),
        (r#"{"jsonrpc":"2.0","id":1,"method":"m","result":0}"#, Ambiguous, one(), true),
        (r#"{"jsonrpc":"2.0","id":1,"method":"m","error":null}"#, Ambiguous, one(), true),
        (r#"{"jsonrpc":"2.0","id":1,"result":null,"error":null}"#, Ambiguous, one(), false),
        (r#"{"jsonrpc":"2.0","id":1}"#, Shapeless, one(), false),
        (r#"{"jsonrpc":"2.0","id":null,"params":{}}"#, Shapeless, None, false),
        (r#"{"jsonrpc":"2.0","id":1,"method":null}"#, BadMethod, one(), true),
        (r#"{"jsonrpc":"2.0","id":1,"method":["m"]}"#, BadMethod, one(), true),
        (r#"{"jsonrpc":"2.0","id":null,"method":"m"}"#, BadId, None, true),
        (r#"{"jsonrpc":"2.0","id":1.5,"method":"m","params":1}"#, BadId, None, true),
        (r#"{"jsonrpc":"2.0","result":0}"#, MissingId, None, false),
        (r#"{"jsonrpc":"2.0","id":1,"method":"m","params":[1]}"#, BadParams, one(), true),
        (r#"{"jsonrpc":"2.0","method":"m","params":"{}"}"#, BadParams, None, true),
        (r#"{"jsonrpc":"2.0","method":"m","params":false}"#, BadParams, None, true),
        (r#"{"jsonrpc":"2.0","id":1,"error":null}"#, BadError, one(), false),
        (r#"{"jsonrpc":"2.0","id":1,"error":{"code":1}}"#, BadError, one(), false),
        (r#"{"jsonrpc":"2.0","id":1,"error":{"message":""}}"#, BadError, one(), false),
        (r#"{"jsonrpc":"2.0","id":1,"error":{"code":1.5,"message":""}}"#, BadError, one(), false),
        (r#"{"jsonrpc":"2.0","id":1,"error":{"code":"1","message":""}}"#, BadError, one(), false),
        (r#"{"jsonrpc":"2.0","error":{"code":1,"message":null}}"#, BadError, None, false),
    ];
    for (text, kind, id, has_method) in cases {
        let head = text.as_bytes().to_vec().into();
        let (id, has_method, invalid) = (id.clone(), *has_method, read(text).unwrap_err());
        let error_text = invalid.error_text.clone();
        assert_eq!(error_text.is_some(), *kind == BadError, "{text}");
        assert_eq!(invalid, InvalidMessage { kind: *kind, id, has_method, head, error_text }, "{text}");
    }
}

// covers: RPC-B-010
#[test]
fn null_is_an_absence_only_where_the_meaning_is_certain() {
    let error = || ErrorObject::new(-1, "m");
    let with_nulls = |message| match message {
        Message::Response(response) => Message::Response(Response { has_nulls: true, ..response }),
        other => other,
    };
    for (members, expected) in [
        (r#""id":1,"result":0,"error":null"#, result_of(1, "0")),
        (r#""error" : null, "id":1,"result":{"a":null}"#, result_of(1, r#"{"a":null}"#)),
        (r#""id":1,"error":{"code":-1,"message":"m"},"result":null"#, error_of(1, error())),
        (r#""id":1,"method":null,"result":[]"#, result_of(1, "[]")),
        (r#""id":1,"\u006dethod":null,"result":false,"error":null"#, result_of(1, "false")),
        (r#""id":1,"method":null,"result":null,"error":{"code":-1,"message":"m"}"#, error_of(1, error())),
        (r#""id":1,"method":null,"result":null"#, result_of(1, "null")),
        (r#""id":null,"error":{"code":-1,"message":"m"},"result":null"#, Message::Error(error())),
    ] {
        let text = format!(r#"{{"jsonrpc":"2.0",{members}}}"#);
        assert_eq!(read(&text), Ok(with_nulls(expected)), "{text}");
    }
    assert_eq!(read(r#"{"jsonrpc":"2.0","id":1,"result":null}"#), Ok(result_of(1, "null")));
    for (members, kind) in [
        (r#""id":1,"result":null,"error":null"#, InvalidKind::Ambiguous),
        (r#""id":1,"method":null,"result":null,"error":null"#, InvalidKind::Ambiguous),
        (r#""id":1,"error":null"#, InvalidKind::BadError),
        (r#""id":1,"method":null,"error":null"#, InvalidKind::BadError),
        (r#""id":1,"method":"m","result":null"#, InvalidKind::Ambiguous),
        (r#""id":1,"method":"m","result":null,"error":null"#, InvalidKind::Ambiguous),
        (r#""id":1,"result":0,"error":{"code":-1,"message":"m"},"method":null"#, InvalidKind::Ambiguous),
        (r#""id":null,"method":"m""#, InvalidKind::BadId),
        (r#""id":1,"method":null"#, InvalidKind::BadMethod),
        (r#""result":0,"error":null"#, InvalidKind::MissingId),
    ] {
        let text = format!(r#"{{"jsonrpc":"2.0",{members}}}"#);
        assert_eq!(read(&text).map_err(|invalid| invalid.kind), Err(kind), "{text}");
    }
}

#[test]
fn malformed_error_keeps_what_it_says() {
    let long = "x".repeat(5000);
    let trace = format!("\"{long}\"");
    for (error, said) in [
        (r#""boom""#, "boom"),
        (r#"{"code":"E_FAIL","message":"boom"}"#, "E_FAIL: boom"),
        (r#"{"code":1.5,"message":"boom"}"#, "1.5: boom"),
        (r#"{"message":"boom"}"#, "boom"),
        (r#"{"code":1}"#, r#"{"code":1}"#),
        (r#"["boom"]"#, r#"["boom"]"#),
        ("null", "null"),
        (trace.as_str(), &long[..1024]),
    ] {
        let text = format!(r#"{{"jsonrpc":"2.0","id":1,"error":{error}}}"#);
        let invalid = read(&text).unwrap_err();
        assert_eq!((invalid.kind, invalid.error_text.as_deref()), (InvalidKind::BadError, Some(said)));
        let shown = invalid.to_string();
        assert!(shown.starts_with("the error lacks an integer code or a message: ") && shown.ends_with(said));
    }
}

// covers: B-064
#[test]
fn empty_array_of_params_is_an_empty_object() {
    for params in ["[]", "[ \t ]"] {
        let request = read(&format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{params}}}"#));
        assert_eq!(request, Ok(request_of(1, "m", Some("{}"))));
        let notification = read(&format!(r#"{{"jsonrpc":"2.0","method":"m","params":{params}}}"#));
        assert_eq!(notification, Ok(notification_of("m", Some("{}"))));
    }
    for params in ["[1]", "[[]]", "[{}]"] {
        let invalid = read(&format!(r#"{{"jsonrpc":"2.0","method":"m","params":{params}}}"#)).unwrap_err();
        assert!(invalid.is_notification(), "{params}");
        let invalid = read(&format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{params}}}"#)).unwrap_err();
        assert!(invalid.kind == InvalidKind::BadParams && !invalid.is_notification(), "{params}");
    }
}

// covers: RPC-B-002, B-123
#[test]
fn invalid_utf8_is_found_in_reading_order() {
    let cases: &[(&[u8], InvalidKind, Option<Id>)] = &[
        (b"{\"id\":1,\"x\":\"\xff\"}", InvalidKind::Utf8, Some(Id::Int(1))),
        (b"{\"id\":1\xff", InvalidKind::Utf8, None),
        (b"{\"id\":1}\xff", InvalidKind::Utf8, Some(Id::Int(1))),
        (b"\xc0\x80", InvalidKind::Utf8, None),
        (b"\"\xed\xa0\x80\"", InvalidKind::Utf8, None),
        (b"{\"id\":1,]\xff", InvalidKind::Syntax, Some(Id::Int(1))),
        // The end of the input splits a character.
        (b"{\"id\":1,\"x\":\"\xe2\x82", InvalidKind::Truncated, Some(Id::Int(1))),
    ];
    for (bytes, kind, id) in cases {
        let defect = parse(Bytes::from_static(bytes), 128).unwrap_err();
        assert_eq!((defect.kind, &defect.id), (*kind, id), "{bytes:?}");
    }
}

// covers: B-121, B-123, B-128
#[test]
fn every_prefix_is_truncated_with_its_complete_members() {
    let text = r#"{"jsonrpc":"2.0","id":12,"x":[true,null,-1.5e+7,{"é\ud83d\ude00":"\\"}],"method":"m"}"#;
    let (id_known, method_known) = (text.find(",\"x\"").unwrap(), text.find(":\"m\"").unwrap());
    for cut in 0..text.len() {
        let defect = parse(Bytes::copy_from_slice(&text.as_bytes()[..cut]), 128).unwrap_err();
        assert_eq!(defect.kind, InvalidKind::Truncated, "{cut}");
        assert_eq!(defect.id, (cut > id_known).then_some(Id::Int(12)), "{cut}");
        assert_eq!(defect.has_method, cut > method_known, "{cut}");
    }
    assert_eq!(read(text), Ok(request_of(12, "m", None)));
}

// covers: B-292
#[test]
fn nesting_is_limited_without_recursion() {
    let nested = |levels: usize| {
        let inner = levels - 2;
        format!(
            r#"{{"id":1,"jsonrpc":"2.0","method":"m","params":{{"x":{}{}}}}}"#,
            "[".repeat(inner),
            "]".repeat(inner)
        )
    };
    assert!(read(&nested(128)).is_ok());
    let defect = read(&nested(129)).unwrap_err();
    assert_eq!((defect.kind, defect.id, defect.has_method), (InvalidKind::TooDeep, Some(Id::Int(1)), true));
    assert_eq!(read(&"[".repeat(1 << 20)).unwrap_err().kind, InvalidKind::TooDeep);
    assert_eq!(parse(Bytes::from(nested(5)), 4).unwrap_err().kind, InvalidKind::TooDeep);
    assert!(parse(Bytes::from(nested(5)), 5).is_ok());
    assert_eq!(parse(Bytes::from_static(b"{}"), 0).unwrap_err().kind, InvalidKind::TooDeep);
    assert_eq!(parse(Bytes::from_static(b"{}"), u32::MAX).unwrap_err().kind, InvalidKind::NotJsonRpc);
    assert!(RawJson::parse("[{".repeat(64).replace('{', "{\"\":") + "1" + &"}]".repeat(64)).is_ok());
}

// covers: B-124, S0-31
#[test]
fn batch_fails_as_a_whole_only_for_its_syntax() {
    let limits = FrameLimits { max_batch: 3, max_depth: 3, ..FrameLimits::default() };
    let item = |text: &str| Inbound::from(parse_batch_or_message(Bytes::copy_from_slice(text.as_bytes()), &limits));
    let note = r#"{"jsonrpc":"2.0","method":"m"}"#;
    let bad = |kind, text: &str| InvalidMessage::new(kind, text.as_bytes());
    assert_eq!(item(note), Inbound::Message(notification_of("m", None)));
    assert_eq!(
        item(&format!(" [ {note} , [ {note} ],\"\\ud800\"]")),
        Inbound::Batch(alloc::vec![
            Ok(notification_of("m", None)),
            Err(bad(InvalidKind::UnexpectedBatch, &format!("[ {note} ]"))),
            Err(bad(InvalidKind::LoneSurrogate, "\"\\ud800\"")),
        ])
    );
    // An indented batch is compacted as a whole.
    assert_eq!(
        item("[\n  {\"jsonrpc\": \"2.0\",\r\n \"id\": 4, \"result\": [\n 1]},\n 7\n]\n"),
        Inbound::Batch(alloc::vec![Ok(result_of(4, "[ 1]")), Err(bad(InvalidKind::NotAnObject, "7"))])
    );
    // The depth is that of an element.
    let deep = r#"{"jsonrpc":"2.0","method":"m","params":{"x":[]}}"#;
    assert_eq!(item(&format!("[{deep}]")), Inbound::Batch(alloc::vec![Ok(notification_of("m", Some(r#"{"x":[]}"#)))]));
    for (text, kind) in [
        ("[]", InvalidKind::EmptyBatch),
        ("[1,2,3,4]", InvalidKind::BatchTooLong),
        ("[1,2,3,4", InvalidKind::Truncated),
        ("[1,2,]", InvalidKind::Syntax),
        ("[1 2]", InvalidKind::Syntax),
        ("[[[[[]]]]]", InvalidKind::TooDeep),
        ("7", InvalidKind::NotAnObject),
    ] {
        assert_eq!(item(text), Inbound::Invalid(bad(kind, text)), "{text}");
    }
}

// covers: STDIO-B-002, B-127
#[test]
fn only_line_breaks_between_tokens_are_removed() {
    let pretty = "{\n  \"jsonrpc\": \"2.0\",\r\n  \"id\": 1,\n  \"method\": \"m\",\n  \"params\": {\n    \"a b\": \"c\\nd\"\n  }\n}\n";
    assert_eq!(read(pretty), Ok(request_of(1, "m", Some("{    \"a b\": \"c\\nd\"  }"))));
    assert_eq!(read("tru\ne").unwrap_err().kind, InvalidKind::Syntax);
    assert_eq!(read("1\n2").unwrap_err().kind, InvalidKind::Syntax);
    assert!(["{\n}", "{\r}"].iter().all(|text| RawJson::parse(*text).is_err()));
    assert_eq!(RawJson::parse("\r\n {} \n").unwrap().as_str(), "{}");
}

// covers: B-009
#[test]
fn only_a_large_part_shares_the_bytes_of_the_text() {
    // The size of the params, and of what is around them.
    for (size, around, shares) in [(100, 0, false), (3 << 10, 0, false), (4 << 10, 0, true), (5 << 10, 20 << 10, false)]
    {
        let (x, y) = ("x".repeat(size), "y".repeat(around));
        let text =
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{{"x":[{{"y":"{x}"}}]}},"around":"{y}"}}"#);
        let text = Bytes::from(text);
        let within = |part: &[u8]| text.as_ptr_range().contains(&part.as_ptr());
        let Ok(Message::Request(request)) = parse(text.clone(), 128) else { panic!("{size}") };
        let params = request.params.unwrap();
        assert_eq!(within(params.as_bytes()), shares, "{size} {around}");
        let range = params.as_bytes().as_ptr_range();
        let elements = Object::read(&params).unwrap().array("x").unwrap();
        assert!(range.contains(&elements[0].as_bytes().as_ptr()), "a value shares the text of its object");
    }
}

#[test]
fn object_keys_are_decoded_and_the_last_duplicate_counts() {
    let object = Object::read(&raw(r#" { "a" : 1 , "\u0061\n" : [ ] , "b":{"a":7}, "a" : {} } "#)).unwrap();
    let members: Vec<_> = object.iter().map(|(key, value)| format!("{key} {value:?}")).collect();
    assert_eq!(members, ["a {}", "a\n [ ]", r#"b {"a":7}"#]);
    assert!(Object::read(&raw("{}")).unwrap().is_empty());
    assert!(Object::read(&raw("[1]")).is_err());
    let array = Object::new().with("x", raw(r#"[ 1 , [2,3] ,"]" ]"#)).array("x").unwrap();
    assert_eq!(array.iter().map(RawJson::as_str).collect::<Vec<_>>(), ["1", "[2,3]", "\"]\""]);
    assert_eq!(Object::new().with("x", raw("[]")).array("x").unwrap(), []);
}

// covers: RPC-B-001
#[test]
fn long_strings_are_judged_at_every_position() {
    for at in 0..200 {
        for part in ["\u{1}", "\n", "\\n", "\\\"", "\\u0041", "\\x", "é", "\"", "\u{7f}"] {
            let text = format!(r#"{{"a":"{}{part}{}","b":[1]}}"#, "x".repeat(at), "y".repeat(200 - at));
            let model: Option<BTreeMap<String, serde_json::Value>> = serde_json::from_str(&text).ok();
            let object = RawJson::parse(text.clone()).ok().map(|json| Object::read(&json).unwrap());
            let members =
                object.map(|all| all.iter().map(|(key, one)| (key.into_owned(), one.decode().unwrap())).collect());
            assert_eq!(members, model, "{text}");
        }
    }
}

// covers: STDIO-B-002, B-127, B-292
#[test]
fn control_characters_are_written_as_escapes() {
    let every: String = (0..0x80_u8).map(char::from).chain("é\u{2028}😀".chars()).collect();
    let written = RawJson::from(every.as_str());
    assert!(written.as_bytes().iter().all(|&byte| byte >= 0x20));
    assert_eq!(written.decode::<String>().unwrap(), every);
}

/// Any JSON value, in the model of serde_json.
fn json() -> impl Strategy<Value = serde_json::Value> {
    let text = prop_oneof!["\\PC{0,12}", any::<String>(), Just("jsonrpc".into()), Just("id".into())];
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        any::<u64>().prop_map(Into::into),
        any::<f64>().prop_map(Into::into),
        text.clone().prop_map(Into::into),
    ];
    leaf.prop_recursive(5, 40, 6, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6).prop_map(Into::into),
            proptest::collection::vec((text.clone(), inner), 0..6)
                .prop_map(|members| serde_json::Value::Object(members.into_iter().collect())),
        ]
    })
}

/// Returns whether serde_json accepts the text. Its rules for surrogates and depth differ.
fn judge(text: &[u8]) -> bool {
    serde_json::from_slice::<serde_json::Value>(text).is_ok()
}

proptest! {
    // covers: B-292
    #[test]
    fn valid_json_is_accepted_compact_and_indented(value in json()) {
        for text in [serde_json::to_string(&value).unwrap(), serde_json::to_string_pretty(&value).unwrap()] {
            let scanned = grammar::value(text.as_bytes()).unwrap();
            prop_assert_eq!(scanned, 0..text.len());
            for after in ["", ",1", "]", "}", " "] {
                let followed = format!("{text}{after}");
                prop_assert_eq!(Scan::new(followed.as_bytes(), MAX_DEPTH).skip().unwrap(), 0..text.len());
            }
            let known = match read(&text) {
                Ok(_) => true,
                Err(defect) => defect.kind.code() != code::PARSE_ERROR,
            };
            prop_assert!(known, "{}", text);
        }
        if let serde_json::Value::Object(map) = &value {
            let object = Object::encode(&value).unwrap();
            // Either parser may lose the last digit of a number.
            let map: serde_json::Map<_, _> = serde_json::from_str(&serde_json::to_string(map).unwrap()).unwrap();
            prop_assert_eq!(object.len(), map.len());
            for (key, value) in object.iter() {
                prop_assert_eq!(&value.decode::<serde_json::Value>().unwrap(), &map[&*key]);
            }
        }
    }

    // covers: B-123, B-292
    #[test]
    fn changed_byte_is_accepted_or_rejected_like_serde_json(
        value in json(),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let mut text = serde_json::to_vec(&value).unwrap();
        let at = at.index(text.len());
        text[at] = byte;
        match grammar::value(&text) {
            Ok(_) => prop_assert!(judge(&text) || overflows(&text)),
            Err(InvalidKind::LoneSurrogate | InvalidKind::TooDeep) => {}
            Err(_) => prop_assert!(!judge(&text)),
        }
    }

    // covers: B-123
    #[test]
    fn pieces_of_json_are_accepted_or_rejected_like_serde_json(
        pieces in proptest::collection::vec(prop::sample::select(PIECES), 0..12),
    ) {
        let text = pieces.concat();
        match grammar::value(text.as_bytes()) {
            Ok(_) => prop_assert!(judge(text.as_bytes())),
            Err(InvalidKind::LoneSurrogate) => prop_assert!(!judge(text.as_bytes())),
            Err(_) => prop_assert!(!judge(text.as_bytes())),
        }
    }

    // covers: B-123
    #[test]
    fn arbitrary_bytes_have_an_outcome(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
        let bytes = Bytes::from(bytes);
        let _ = parse(bytes.clone(), 128);
        let _ = parse_batch_or_message(bytes, &FrameLimits::default());
    }

    // covers: RPC-B-009, STDIO-B-002, B-044, B-127, B-292
    #[test]
    fn written_messages_read_back_without_line_breaks(
        id in prop_oneof![any::<i64>().prop_map(Id::Int), any::<String>().prop_map(Id::Text)],
        method in any::<String>(),
        params in json(),
        code in any::<i64>(),
    ) {
        let params = Object::new().with(&method, RawJson::encode(&params).unwrap());
        let text = params.to_json();
        let error = ErrorObject::new(code, method.clone()).with_data(text.clone());
        let written = [
            (request(&id, &method, Some(&params)), request_of(id.clone(), &method, Some(text.as_str()))),
            (request(&id, &method, None), request_of(id.clone(), &method, None)),
            (notification(&method, Some(&params)), notification_of(&method, Some(text.as_str()))),
            (result_response(&id, &params), result_of(id.clone(), text.as_str())),
            (error_response(Some(&id), &error), error_of(id.clone(), error.clone())),
            (error_response(None, &error), Message::Error(error)),
        ];
        for (bytes, message) in written {
            prop_assert!(memchr::memchr2(b'\r', b'\n', &bytes).is_none());
            prop_assert_eq!(parse(bytes, 128), Ok(message));
        }
    }
}

/// A number beyond the range of a double is valid JSON here, and an error for serde_json.
fn overflows(text: &[u8]) -> bool {
    serde_json::from_slice::<serde_json::Value>(text).is_err_and(|e| e.to_string().contains("out of range"))
}

const PIECES: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    ":",
    ",",
    " ",
    "\n",
    "\"\"",
    "\"a\"",
    "\"",
    "\\",
    "\\u",
    "d83d",
    "de00",
    "00e9",
    "0",
    "1",
    "-",
    ".",
    "e",
    "+",
    "true",
    "false",
    "null",
    "é",
    "\"\\ud83d\\ude00\"",
    "\"\\ud83d\"",
    "\u{feff}",
    "\0",
];

#[test]
fn objects_and_raw_json_are_arguments_and_print_as_json() {
    let text = r#"{"n":12345678901234567890123,"x":1.10,"s":"ü"}"#;
    let raw = RawJson::parse(text).unwrap();
    let object = Object::read(&raw).unwrap();
    assert_eq!(format!("{raw:?}"), text);
    assert_eq!(format!("{object:?}"), text);
    for taken in [raw.to_object(), object.to_object()] {
        assert_eq!(taken.unwrap().to_json().as_str(), text, "the numbers are as they were");
    }
    let called = |call: crate::Call<crate::model::tools::CallTool>| format!("{:?}", call.into_raw());
    assert_eq!(called(crate::tools::call("a").arguments(&raw)), called(crate::tools::call("a").arguments(&object)));
    assert!(called(crate::tools::call("a").arguments(&raw)).contains(text));
    for other in ["[1]", "1", "null"] {
        assert!(RawJson::parse(other).unwrap().to_object().is_err(), "{other}");
    }
}

/// What `T` gets as text from this crate, and from `serde_json`.
fn encoded<T: serde::Serialize>(value: &T) -> (String, String) {
    let ours = RawJson::encode(value).expect("it is JSON");
    (ours.as_str().into(), serde_json::to_string(value).expect("it is JSON"))
}

#[test]
fn raw_json_serializes_as_its_value() {
    for text in [
        "null",
        "true",
        "false",
        "0",
        "-7",
        "18446744073709551615",
        "-170141183460469231731687303715884105728",
        "340282366920938463463374607431768211455",
        "0.5",
        r#""a\"ü""#,
        "[]",
        "[1,[2,null]]",
        "{}",
        r#"{"b":[{"c":1.5}],"a":"x"}"#,
    ] {
        let raw = RawJson::parse(text).unwrap();
        assert_eq!(encoded(&raw), (text.into(), text.into()));
        assert_eq!(encoded(&[raw]), (format!("[{text}]"), format!("[{text}]")));
    }
    let escaped = RawJson::parse(r#"["\u00fc",1.50,1E2]"#).unwrap();
    assert_eq!(encoded(&escaped), (escaped.as_str().into(), r#"["ü",1.5,100.0]"#.into()));
}

#[test]
fn text_of_raw_json_is_kept_unless_it_is_nested() {
    let text = r#"{"n":12345678901234567890123456789012345678901,"x":1.10,"a":1,"a":2}"#;
    let raw = RawJson::parse(text).unwrap();
    assert_eq!(encoded(&raw).0, text);
    assert_eq!(encoded(&&raw).0, text);
    assert_eq!(encoded(&[raw]).0, r#"[{"n":1.2345678901234568e+40,"x":1.1,"a":2}]"#);
    assert_eq!(encoded(&[RawJson::parse("-0").unwrap()]).0, "[-0.0]");
    let huge = RawJson::parse("1e999").unwrap();
    assert_eq!(RawJson::encode(&huge).unwrap(), huge);
    let refused = RawJson::encode(&[huge]).unwrap_err().to_string();
    assert!(refused.contains("the number 1e999 is out of range"), "{refused}");
}

// covers: S2-44
#[test]
fn shown_json_has_no_characters_that_a_terminal_obeys() {
    let text = "{\"a\":\t\"x\u{9b}31m\u{202e}\u{7f}ü\"}";
    let raw = RawJson::parse(text).unwrap();
    assert_eq!(raw.to_string(), "{\"a\":\t\"x\\u009b31m\\u202e\\u007fü\"}");
    let shown = RawJson::parse(raw.to_string()).unwrap();
    assert_eq!(shown.decode::<serde_json::Value>(), raw.decode(), "the value is the same");
}

#[test]
fn member_of_raw_json_is_found_in_objects_only() {
    let raw = RawJson::parse(r#"{"a":1.10,"b":null,"a\u0062":{"c":"d"}}"#).unwrap();
    assert_eq!(raw.get("a").map(|a| a.to_string()), Some("1.10".into()));
    assert_eq!(raw.get("b"), Some(RawJson::null()));
    assert_eq!(raw.get("ab").and_then(|inner| inner.get("c")), Some("d".into()));
    assert_eq!(raw.get("c"), None);
    for other in ["[1]", "null", r#""a""#] {
        assert_eq!(RawJson::parse(other).unwrap().get("a"), None, "{other}");
    }
}
