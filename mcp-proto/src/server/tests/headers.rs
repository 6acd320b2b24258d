//! The header fields that repeat parts of the request body.

use super::*;
use crate::exchange::{Headers, RequestHead};

/// A request of 2026-07-28 with these fields in addition to the required ones.
fn head(fields: &[(&str, &str)]) -> RequestHead {
    let own = [("Content-Type", "application/json"), ("Accept", "application/json, text/event-stream")];
    let headers = [&own, fields].concat().iter().fold(Headers::new(), |all, (name, value)| all.with(name, *value));
    RequestHead { method: "POST".into(), target: "/mcp".into(), headers }
}

/// Returns `Ok` for a request that reaches the application, otherwise status, code and text of the
/// error.
fn judged(fields: &[(&str, &str)], body: &str) -> Result<(), (u16, i64, String)> {
    let mut bench = Bench::new();
    bench.item(A, Inbound::Request(head(fields)));
    bench.item(A, read(body));
    let outputs = bench.outputs();
    if outputs.iter().any(|output| matches!(output, Output::Event(Event::Request(..)))) {
        return Ok(());
    }
    let said: Vec<_> = outputs.iter().filter_map(|output| on(A, output)).collect();
    let (status, body) = said[0].split_once(' ').unwrap();
    let error = error(body);
    let kinds = outputs.iter().filter_map(|output| match output {
        Output::Event(Event::Diagnostic(diagnostic)) => Some(diagnostic.kind),
        _ => None,
    });
    let told = kinds.filter(|kind| *kind == DiagnosticKind::HeaderMismatch).count();
    assert_eq!(told, usize::from(error.code == -32020), "{outputs:?}");
    assert!(bench.server.wire.env.exchanges.is_empty() && bench.at_rest());
    Err((status.parse().unwrap(), error.code, error.message))
}

/// `rest` as in [`modern`]; `fields` replaces the three standard fields.
fn call(method: &str, rest: &str, fields: &[(&str, &str)]) -> Result<(), (u16, i64, String)> {
    judged(fields, &modern("1", method, rest))
}

#[track_caller]
fn mismatch(judged: Result<(), (u16, i64, String)>, text: &str) {
    let (status, code, message) = judged.unwrap_err();
    assert_eq!((status, code), (400, -32020), "{message}");
    assert!(message.contains(text), "{message}");
}

const VERSION: (&str, &str) = ("MCP-Protocol-Version", "2026-07-28");

// covers: HDR-S-010, HDR-S-011, B-211
#[test]
fn each_standard_header_is_required() {
    let all = [VERSION, ("Mcp-Method", "tools/call"), ("Mcp-Name", "t")];
    let name = r#","name":"t""#;
    assert_eq!(call("tools/call", name, &all), Ok(()));
    for missing in 0..all.len() {
        let mut fields = all.to_vec();
        let (field, _) = fields.remove(missing);
        mismatch(call("tools/call", name, &fields), &format!("the header {field} is missing"));
    }
    assert_eq!(
        call("tools/list", "", &all[..1].iter().copied().chain([("Mcp-Method", "tools/list")]).collect::<Vec<_>>()),
        Ok(())
    );
}

// covers: HDR-S-009, HDR-S-011, TASKX-C-034
#[test]
fn named_methods_require_the_name_header() {
    for (method, key) in [
        ("tools/call", "name"),
        ("prompts/get", "name"),
        ("resources/read", "uri"),
        ("tasks/get", "taskId"),
        ("tasks/update", "taskId"),
        ("tasks/cancel", "taskId"),
    ] {
        let params = format!(r#","{key}":"a b","other":"x""#);
        let said = |name: Option<&str>| {
            let name = name.map(|name| ("Mcp-Name", name));
            let fields: Vec<_> = [VERSION, ("Mcp-Method", method)].into_iter().chain(name).collect();
            call(method, &params, &fields)
        };
        assert_eq!(said(Some("a b")), Ok(()), "{method}");
        mismatch(said(None), "Mcp-Name is missing");
        for other in ["x", "a  b", "A b", "", "a b, a b"] {
            mismatch(said(Some(other)), "Mcp-Name does not say what the body says");
        }
    }
    // For other methods the header is not checked.
    let fields = [VERSION, ("Mcp-Method", "tools/list"), ("Mcp-Name", "x")];
    assert_eq!(call("tools/list", r#","name":"t""#, &fields), Ok(()));
    // A name that the body lacks must not be in the header. Without both, the body is wrong.
    for rest in ["", r#","name":7"#, r#","name":null"#] {
        let fields = [VERSION, ("Mcp-Method", "tools/call"), ("Mcp-Name", "7")];
        mismatch(call("tools/call", rest, &fields), "Mcp-Name does not say what the body says");
        assert_eq!(call("tools/call", rest, &fields[..2]), Ok(()), "the router answers");
    }
}

// covers: HDR-B-007, HDR-B-008, B-170
#[test]
fn header_names_ignore_case_and_values_ignore_outer_space() {
    let name = r#","name":"Tool""#;
    for [version, method, own] in [
        ["mcp-protocol-version", "mcp-method", "mcp-name"],
        ["MCP-PROTOCOL-VERSION", "MCP-METHOD", "MCP-NAME"],
        ["mCP-Protocol-version", "McP-mEtHoD", "mcp-NAME"],
    ] {
        let fields = [(version, " 2026-07-28\t"), (method, "\ttools/call "), (own, "  Tool \t ")];
        assert_eq!(call("tools/call", name, &fields), Ok(()));
    }
    for (method, own) in
        [("Tools/Call", "Tool"), ("TOOLS/CALL", "Tool"), ("tools/call", "tool"), ("tools/call", "TOOL")]
    {
        let fields = [VERSION, ("Mcp-Method", method), ("Mcp-Name", own)];
        mismatch(call("tools/call", name, &fields), "does not say what the body says");
    }
    // Other white space is part of the value, and not valid in a header.
    mismatch(
        call("tools/call", name, &[VERSION, ("Mcp-Method", "tools/call"), ("Mcp-Name", "\u{a0}Tool")]),
        "must not contain",
    );
}

// covers: HDR-S-003, HDR-S-010, B-212
#[test]
fn version_mismatch_differs_from_unsupported_version() {
    let body = modern("1", "tools/list", "");
    let asked = |header: &str, body: &str| {
        judged(&[("MCP-Protocol-Version", header), ("Mcp-Method", "tools/list")], body)
            .map_err(|(status, code, _)| (status, code))
    };
    assert_eq!(asked("2026-07-28", &body), Ok(()));
    for header in ["2025-11-25", "2099-01-01", "2026-07-28x", "2026-07-2", "", "2026-07-28, 2026-07-28", "\u{e9}"] {
        assert_eq!(asked(header, &body), Err((400, -32020)), "{header}");
    }
    let newer = body.replace("2026-07-28", "2099-01-01");
    assert_eq!(asked("2099-01-01", &newer), Err((400, -32022)));
    assert_eq!(asked("2026-07-28", &newer), Err((400, -32020)));
}

// covers: HDR-S-012, HDR-S-013, HDR-S-038, HDR-B-037, B-211, B-215, B-216
#[test]
fn name_header_is_decoded_only_if_well_formed() {
    let said = |header: &str, name: &str| {
        let name = RawJson::from(name);
        let fields = [VERSION, ("Mcp-Method", "tools/call"), ("Mcp-Name", header)];
        call("tools/call", &format!(r#","name":{}"#, name.as_str()), &fields)
    };
    for (header, name) in [
        ("=?base64?SGVsbG8=?=", "Hello"),
        ("Hello", "Hello"),
        ("=?base64?SGVsbG8sIOS4lueVjA==?=", "Hello, 世界"),
        ("=?base64?IHBhZGRlZCA=?=", " padded "),
        ("=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?=", "=?base64?literal?="),
        ("SGVsbG8=", "SGVsbG8="),
        ("=?base64?SGVsbG8=", "=?base64?SGVsbG8="),
        ("=?BASE64?SGVsbG8=?=", "=?BASE64?SGVsbG8=?="),
        ("", ""),
    ] {
        assert_eq!(said(header, name), Ok(()), "{header}");
    }
    for (header, name, text) in [
        ("=?base64?SGVsbG8?=", "Hello", "is not the Base64"),
        ("=?base64?SGVs!!!bG8=?=", "Hello", "is not the Base64"),
        ("=?base64?SGVsbG9=?=", "Hello", "is not the Base64"),
        ("=?base64?//8=?=", "\u{ff}", "not UTF-8"),
        ("=?base64?literal?=", "=?base64?literal?=", "is not the Base64"),
        ("=?BASE64?SGVsbG8=?=", "Hello", "does not say"),
        ("Hello, 世界", "Hello, 世界", "must not contain"),
        ("Hel\u{1}lo", "Hel\u{1}lo", "must not contain"),
        ("=?base64?IEhlbGxv?=", "Hello", "does not say"),
    ] {
        mismatch(said(header, name), text);
    }
}

// covers: HDR-S-009, HDR-S-012, B-211
#[test]
fn method_header_has_one_valid_encoding() {
    let said = |header: &str, method: &str| call(method, "", &[VERSION, ("Mcp-Method", header)]);
    assert_eq!(said("x/y", "x/y"), Ok(()));
    assert_eq!(said("=?base64?eC/Dqf==?=", "x/\u{e9}").map_err(|e| e.1), Err(-32020));
    assert_eq!(said("=?base64?eC/DqQ==?=", "x/\u{e9}"), Ok(()));
    // An intermediary that reads the header would see another method.
    mismatch(said("=?base64?dG9vbHMvbGlzdA==?=", "tools/list"), "Mcp-Method does not say");
    mismatch(said("x/\u{e9}", "x/\u{e9}"), "must not contain");
}

// covers: HDR-S-009, HDR-S-012, B-211
#[test]
fn every_repeated_header_must_match_the_body() {
    let own = [VERSION, ("Mcp-Method", "tools/call"), ("Mcp-Name", "t")];
    let rest = r#","name":"t""#;
    for (name, value) in own {
        let same = [&own[..], &[(name, value)]].concat();
        assert_eq!(call("tools/call", rest, &same), Ok(()));
        for other in ["other", "=?base64?!?=", "\u{e9}", ""] {
            for fields in [[&own[..], &[(name, other)]].concat(), [&[(name, other)], &own[..]].concat()] {
                let (status, code, _) = call("tools/call", rest, &fields).unwrap_err();
                assert_eq!((status, code), (400, -32020), "{fields:?}");
            }
        }
    }
}

// covers: HTTP-S-031, HTTP-S-033, HDR-S-011
#[test]
fn modern_only_server_requires_the_version_header() {
    let asked = |fields: &[(&str, &str)], body: &str| {
        let mut bench = Bench::with(|config| config.versions = Versions::new([ProtocolVersion::V2026_07_28]));
        bench.item(A, Inbound::Request(head(fields)));
        bench.item(A, read(body));
        let said = bench.heard(A);
        let (status, body) = said[0].split_once(' ').unwrap();
        (status.parse::<u16>().unwrap(), error(body).code)
    };
    let method = [("Mcp-Method", "tools/list")];
    assert_eq!(asked(&[], &legacy("1", "tools/list", "{}")), (400, -32020));
    assert_eq!(asked(&method, &legacy("1", "tools/list", "{}")), (400, -32020));
    assert_eq!(asked(&method, &modern("1", "tools/list", "")), (400, -32020));
    for removed in ["initialize", "ping"] {
        assert_eq!(asked(&[VERSION, ("Mcp-Method", removed)], &modern("1", removed, "")), (404, -32601));
    }
}

proptest::proptest! {
    // covers: B-211, B-215, HDR-S-009, HDR-S-013
    #[test]
    fn request_runs_only_if_decoded_name_matches_body(name: String, other: String) {
        use crate::model::headers::encode;
        let rest = format!(r#","name":{}"#, RawJson::from(name.as_str()).as_str());
        let said = |header: &str| call("tools/call", &rest, &[VERSION, ("Mcp-Method", "tools/call"), ("Mcp-Name", header)]);
        proptest::prop_assert!(said(&encode(&name)).is_ok());
        proptest::prop_assert_eq!(said(&encode(&other)).is_ok(), name == other);
    }
}
