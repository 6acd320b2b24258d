//! The responses of a correct server, for requests that do not matter to a script.

use super::{Ask, Step, json, whole};

/// The session that [`good_legacy`] opens.
pub const SESSION: &str = "b7a1c2";

/// Responds like a server of 2026-07-28. Its tools return their name.
pub fn good_modern(ask: &Ask) -> Vec<Step> {
    match ask.what.as_str() {
        "server/discover" => vec![json(concat!(
            r#"{"jsonrpc":"2.0","id":{id},"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"#,
            r#""capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private"}}"#
        ))],
        _ => good(ask),
    }
}

/// Responds like a server of 2025-11-25 with sessions, and without a listener stream.
pub fn good_legacy(ask: &Ask) -> Vec<Step> {
    match ask.what.as_str() {
        "initialize" => vec![whole(
            "200 OK",
            "Content-Type: application/json\r\nMcp-Session-Id: b7a1c2\r\n",
            concat!(
                r#"{"jsonrpc":"2.0","id":{id},"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"#,
                r#""serverInfo":{"name":"stub","version":"1"}}}"#
            ),
        )],
        "server/discover" => vec![whole("400 Bad Request", "", "Bad Request: Server not initialized")],
        _ => good(ask),
    }
}

fn good(ask: &Ask) -> Vec<Step> {
    match (ask.what.as_str(), ask.body.get("id")) {
        ("open", _) => Vec::new(),
        ("GET" | "GET resumed", _) => vec![whole("405 Method Not Allowed", "Allow: POST, DELETE\r\n", "")],
        ("DELETE", _) => vec![whole("200 OK", "", "")],
        (_, None) => vec![whole("202 Accepted", "", "")],
        ("tools/list", _) => vec![json(r#"{"jsonrpc":"2.0","id":{id},"result":{"resultType":"complete","tools":[]}}"#)],
        _ => vec![answer(ask)],
    }
}

/// Returns the result of a call: the name of the tool.
fn answer(ask: &Ask) -> Step {
    let name = ask.body["params"]["name"].as_str().unwrap_or_default();
    let start = r#"{"jsonrpc":"2.0","id":{id},"result":{"resultType":"complete","content":[{"type":"text","text":""#;
    json(format!(r#"{start}{name}"}}]}}}}"#))
}
