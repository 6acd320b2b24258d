//! Servers that deviate from the specification: what is left out or taken as it is meant, and the
//! diagnostics.

use super::*;
use crate::Call;
use crate::Method;
use crate::model::content::Content;
use crate::model::{completion, prompts, resources};
use crate::rpc::{InvalidKind, InvalidMessage};

impl Rig {
    /// The details of the diagnostics of this kind.
    fn details(&self, kind: DiagnosticKind) -> Vec<String> {
        let detail = |event: &Event| match event {
            Event::Diagnostic(diagnostic) if diagnostic.kind == kind => Some(diagnostic.detail.clone()),
            _ => None,
        };
        self.events.iter().filter_map(detail).collect()
    }

    /// Makes a call that the server answers with this result.
    fn answered<M: Method>(&mut self, call: Call<M>, result: &Value) -> Result<M::Output, CallError> {
        let call = self.call(call);
        self.answer(&self.last_id(), result.clone());
        self.outcome(call).clone().and_then(|result| Ok(M::decode(result)?))
    }
}

fn tool(name: &str) -> Value {
    json!({"name": name, "inputSchema": {"type": "object"}})
}

#[test]
fn element_that_is_left_out_has_a_diagnostic() {
    let broken = json!({"name": "b"});
    for mut rig in [Rig::modern(), Rig::legacy()] {
        let page = rig.answered(tools::list(), &json!({"tools": [tool("a"), broken, tool("c")]})).unwrap();
        assert_eq!((page.elements.len(), page.skipped.len()), (2, 1));
        let details = rig.details(DiagnosticKind::InvalidElement);
        assert_eq!(details, ["tools/list: element 1 (`b`): `inputSchema` is missing"]);
        rig.clear();
        assert!(rig.answered(resources::list(), &json!({"resources": [broken]})).unwrap().elements.is_empty());
        assert!(rig.answered(resources::templates(), &json!({"resourceTemplates": [broken]})).is_ok());
        assert!(rig.answered(prompts::list(), &json!({"prompts": [1]})).is_ok());
        let values = json!({"completion": {"values": ["a", 1]}});
        assert_eq!(rig.answered(completion::prompt("p"), &values).unwrap().values, ["a"]);
        let message = json!({"role": "user", "content": {"type": "text"}});
        assert!(rig.answered(prompts::get("p"), &json!({"messages": [message]})).is_ok());
        let contents = json!([{"uri": "x:", "text": "t"}, {"uri": "x:"}]);
        assert!(rig.answered(resources::read("x:"), &json!({"contents": contents})).is_ok());
        let blocks = json!([{"type": "text"}, {"type": "new"}, {"type": "text", "text": "done"}]);
        let result = rig.answered(tools::call("t"), &json!({"content": blocks})).unwrap();
        assert!(matches!(result.content[0], Content::Unknown(_)) && result.first_text() == Some("done"));
        let details = rig.details(DiagnosticKind::InvalidElement);
        let about: Vec<_> = details.iter().map(|detail| detail.split(':').next().unwrap()).collect();
        let methods = ["resources/list", "resources/templates/list", "prompts/list", "completion/complete"];
        assert_eq!(about[..4], methods);
        assert_eq!(about[4..], ["prompts/get", "resources/read", "tools/call"]);
        assert_eq!(details[6], "tools/call: element 0: `text` is missing");
        // What cannot be decoded as a whole is the error of its call.
        rig.clear();
        let failed = rig.answered(tools::list(), &json!({"tools": 1}));
        assert!(matches!(failed, Err(CallError::Decode(_))), "{failed:?}");
        assert_eq!(rig.diagnostics(), []);
    }
}

#[test]
fn many_elements_that_are_left_out_are_no_flood() {
    let mut rig = Rig::legacy();
    let all: Vec<Value> = (0..2000).map(|n| json!({"name": format!("{n}{}", "x".repeat(400))})).collect();
    let page = rig.answered(tools::list(), &json!({"tools": all})).unwrap();
    assert_eq!((page.elements.len(), page.skipped.len(), page.skipped.named().len()), (0, 2000, 100));
    let details = rig.details(DiagnosticKind::InvalidElement);
    assert_eq!((details.len(), details[4].as_str()), (5, "tools/list: 1996 further elements"));
    assert!(details.iter().all(|detail| detail.len() < 300), "{details:?}");
}

#[test]
fn positions_are_those_in_all_pages() {
    let mut rig = Rig::legacy();
    let mut pages = Pages::new(tools::list(), 9);
    for next in ["1", "2"] {
        let call = pages.next().unwrap();
        let page = rig.answered(call, &json!({"tools": [tool("a"), {"name": "b"}], "nextCursor": next}));
        pages.fetched(page).unwrap();
        while pages.pop().is_some() {}
    }
    let positions: Vec<_> = pages.skipped().named().iter().map(|one| one.index).collect();
    assert_eq!(positions, [1, 3]);
}

// covers: RPC-B-010
#[test]
fn nulls_for_absent_members_have_one_diagnostic() {
    let mut config = ClientConfig::given();
    config.versions = Versions::new([ProtocolVersion::V2025_11_25]);
    let mut rig = Rig::new(config);
    rig.open();
    let id = rig.last_id();
    rig.say(json!({"jsonrpc": "2.0", "id": id, "result": initialized("2025-11-25"), "error": null}));
    assert_eq!(rig.client.state(), State::Ready);
    for _ in 0..10 {
        let call = rig.echo();
        let id = rig.last_id();
        rig.say(json!({"jsonrpc": "2.0", "id": id, "method": null, "result": {"a": null}, "error": null}));
        assert_eq!(rig.outcome(call).as_ref().unwrap().json.as_str(), r#"{"a":null}"#);
    }
    let call = rig.echo();
    let id = rig.last_id();
    rig.say(json!({"jsonrpc": "2.0", "id": id, "error": {"code": -5, "message": "no"}, "result": null}));
    assert!(matches!(rig.outcome(call), Err(CallError::Rpc(error)) if error.code == -5));
    assert_eq!(rig.details(DiagnosticKind::Deviation), ["response 1: a member that is absent is null"]);
    // Nothing but the result decides what it is.
    rig.clear();
    let call = rig.echo();
    let id = rig.last_id();
    rig.say(json!({"jsonrpc": "2.0", "id": id, "result": null}));
    assert_eq!(rig.outcome(call).as_ref().unwrap().json.as_str(), "null");
    for odd in [json!({"result": null, "error": null}), json!({"error": null})] {
        let call = rig.echo();
        let mut message = json!({"jsonrpc": "2.0", "id": rig.last_id()});
        message.as_object_mut().unwrap().extend(odd.as_object().unwrap().clone());
        rig.say(message.clone());
        assert!(matches!(rig.outcome(call), Err(CallError::Decode(_))), "{message}");
    }
}

#[test]
fn what_a_malformed_error_says_reaches_its_call() {
    for (error, said) in [
        (json!("out of memory"), "out of memory"),
        (json!({"code": "E_FAIL", "message": "out of memory"}), "E_FAIL: out of memory"),
        (json!({"message": "\u{1b}[2J"}), "\\u{1b}[2J"),
    ] {
        let mut rig = Rig::legacy();
        let call = rig.echo();
        let id = rig.last_id();
        rig.say(json!({"jsonrpc": "2.0", "id": id, "error": error}));
        let Err(error @ CallError::Decode(_)) = rig.outcome(call) else { panic!("{:?}", rig.events) };
        assert!(error.to_string().ends_with(said), "{error}");
    }
}

/// What the server says of itself is taken as it is meant, in both eras.
#[test]
fn handshake_that_deviates_is_taken_as_it_is_meant() {
    for (info, capabilities, detail) in [
        (json!({"name": "s"}), json!({"tools": {}}), "`serverInfo` has no version"),
        (json!({"name": "s", "version": null}), json!({"tools": {}}), "`serverInfo` has no version"),
        (json!({"name": "s", "version": 2.5}), json!({"tools": {}}), "the version in `serverInfo` is a number"),
        (json!({"name": "s", "version": "1"}), json!([]), "`capabilities` is an array"),
        (json!({"name": "s", "version": "1"}), json!({"tools": []}), "the capability `tools` is an array"),
    ] {
        for version in [ProtocolVersion::V2025_11_25, ProtocolVersion::V2026_07_28] {
            let mut config = ClientConfig::given();
            config.versions = Versions::new([version]);
            let mut rig = Rig::new(config);
            rig.open();
            let result = match version.era() {
                Era::Legacy => json!({
                    "protocolVersion": version.as_str(), "capabilities": capabilities, "serverInfo": info,
                }),
                Era::Modern => json!({
                    "resultType": "complete", "supportedVersions": [version.as_str()], "capabilities": capabilities,
                    "_meta": {"io.modelcontextprotocol/serverInfo": info},
                }),
            };
            rig.answer(&rig.last_id(), result);
            assert_eq!(rig.client.state(), State::Ready, "{detail}");
            assert_eq!(rig.details(DiagnosticKind::Deviation), [detail]);
            let known = rig.client.cx.env.server_info().unwrap();
            assert_eq!(known.capabilities.tools.is_some(), capabilities != json!([]));
            let version = known.implementation.as_ref().unwrap().version.clone();
            assert_eq!(version, info["version"].as_str().unwrap_or(if info["version"].is_null() { "" } else { "2.5" }));
        }
    }
}

// covers: B-064
#[test]
fn notification_with_an_array_is_dropped() {
    let mut config = given_with(|compat| compat.malformed = OnMalformed::Fatal);
    config.versions = Versions::new([ProtocolVersion::V2025_11_25]);
    let mut rig = Rig::ready(ProtocolVersion::V2025_11_25, config);
    rig.say(json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": [1]}));
    assert_eq!((rig.diagnostics(), rig.client.state()), (vec![DiagnosticKind::BadMessage], State::Ready));
    assert!(rig.sent.is_empty());
    rig.clear();
    rig.say(json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": []}));
    assert!(rig.events.contains(&Event::Changed(Change::Tools)), "{:?}", rig.events);
    let invalid = InvalidMessage::new(InvalidKind::BadParams, b"");
    assert!(!invalid.is_notification(), "a line that is no message ends the connection");
}
