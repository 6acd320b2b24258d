//! Tests of the check of transcripts against a schema.

use mcp_tests::validate::{Schema, revision};
use serde_json::json;

/// Returns a schema with the shape of the official document and one method.
fn schema() -> Schema {
    let message = |member: &str| json!({ "type": "object", "required": ["jsonrpc", member] });
    let ask = json!({ "type": "object", "properties": { "method": { "const": "ask" }, "params": { "type": "object" } }, "required": ["params"] });
    let tell = json!({ "type": "object", "properties": { "method": { "const": "tell" } }, "required": ["method"] });
    let refused = json!({ "properties": { "error": { "allOf": [{ "properties": { "code": { "const": 7 }, "data": { "type": "string" } }, "required": ["data"] }] } } });
    Schema::new(json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$defs": {
            "JSONRPCMessage": { "type": "object" },
            "JSONRPCRequest": message("method"),
            "JSONRPCNotification": message("method"),
            "JSONRPCResultResponse": message("result"),
            "JSONRPCErrorResponse": message("error"),
            "ClientRequest": { "anyOf": [{ "$ref": "#/$defs/AskRequest" }] },
            "ServerNotification": { "$ref": "#/$defs/TellNotification" },
            "AskRequest": ask,
            "AskResult": { "type": "object", "required": ["told"] },
            "TellNotification": tell,
            "RefusedError": refused,
        }
    }))
    .expect("the document has definitions")
}

#[test]
fn each_line_is_held_against_its_own_definition() {
    let lines = [
        ("> {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ask\",\"params\":{}}", true),
        ("< {\"jsonrpc\":\"2.0\",\"method\":\"tell\"}", true),
        ("> {\"jsonrpc\":\"2.0\",\"method\":\"tell\"}", false),
        ("< {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"told\":1}}", true),
        ("< {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"told\":1}}", false),
        ("> {\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ask\"}", false),
        ("> {\"jsonrpc\":\"2.0\",\"id\":\"3\",\"method\":\"ask\",\"params\":{}}", true),
        ("< {\"jsonrpc\":\"2.0\",\"id\":\"3\",\"result\":{}}", false),
        ("< {\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"ask\",\"params\":{}}", false),
        ("< {\"jsonrpc\":\"2.0\",\"id\":4,\"error\":{\"code\":7}}", false),
        ("< {\"jsonrpc\":\"2.0\",\"id\":4,\"error\":{\"code\":7,\"data\":\"x\"}}", true),
        ("> {\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"nothing\",\"params\":{}}", false),
        ("{}", false),
    ];
    let text: String = lines.iter().map(|(line, _)| format!("{line}\n")).collect();
    let verdicts: Vec<_> = schema().check(&text).into_iter().map(|(_, verdict)| verdict.is_ok()).collect();
    assert_eq!(verdicts, lines.map(|(_, good)| good), "{:#?}", schema().check(&text));
}

#[test]
fn the_transcript_names_its_revision() {
    assert_eq!(revision("# quickstart\n# revision: 2025-11-25\n> {}"), Some("2025-11-25"));
    assert!(schema().check("# a note\n\n").is_empty());
}
