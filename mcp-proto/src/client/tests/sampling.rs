use super::*;
use crate::InputAnswer;
use crate::model::capabilities::{RootsCapability, SamplingCapability};
use crate::model::sampling::{Block, SampleResult, ToolUse};

fn with(sampling: SamplingCapability) -> ClientConfig {
    let mut config = ClientConfig::given();
    config.capabilities.sampling = Some(sampling);
    config.capabilities.roots = Some(RootsCapability::default());
    config
}

fn text(role: &str, text: &str) -> Value {
    json!({"role": role, "content": {"type": "text", "text": text}})
}

fn used(id: &str) -> Value {
    let used = json!({"type": "tool_use", "id": id, "name": "weather", "input": {}, "_meta": {"cache": id}});
    json!({"role": "assistant", "content": [used]})
}

fn result_of(id: &str) -> Value {
    json!({"type": "tool_result", "toolUseId": id, "content": [{"type": "text", "text": "sunny"}]})
}

fn plain() -> Value {
    json!({"messages": [text("user", "?")], "maxTokens": 10})
}

fn with_tools() -> Value {
    json!({
        "messages": [text("user", "?")], "maxTokens": 10, "toolChoice": {"mode": "auto"},
        "tools": [{"name": "weather", "inputSchema": {"type": "object"}}],
    })
}

/// Asks the client, in the way of the revision. Returns the code of the error, if it refuses.
fn ask(version: ProtocolVersion, config: ClientConfig, method: &str, params: &Value) -> (Rig, Option<i64>) {
    let mut rig = Rig::ready(version, config);
    match version.era() {
        Era::Legacy => {
            rig.say(json!({"jsonrpc": "2.0", "id": "s", "method": method, "params": params}));
            let code = rig.sent.last().map(|said| said["error"]["code"].as_i64().unwrap());
            (rig, code)
        }
        Era::Modern => {
            let call = rig.echo();
            let asks = json!({"s": {"method": method, "params": params}});
            rig.answer(&rig.last_id(), json!({"resultType": "input_required", "inputRequests": asks}));
            let code = rig.has_ended(call).then(|| match rig.outcome(call) {
                Err(CallError::Input(error)) => error.code,
                other => panic!("{other:?}"),
            });
            (rig, code)
        }
    }
}

/// Answers the only question. Returns the answer on the wire.
fn reply(rig: &mut Rig, answer: InputAnswer) -> Value {
    let key = rig.questions()[0].0;
    rig.reply(key, answer);
    let said = rig.sent.last().unwrap();
    match said.get("method") {
        None => said.clone(),
        Some(_) => json!({"result": said["params"]["inputResponses"]["s"]}),
    }
}

// covers: SAMP-C-004
#[test]
fn tools_need_their_capability_and_their_revision() {
    for version in ProtocolVersion::ALL {
        let none = ClientConfig::given();
        let (plain, tools) = (plain(), with_tools());
        let choice = json!({"messages": [], "maxTokens": 1, "toolChoice": {"mode": "none"}});
        let balanced = json!({
            "maxTokens": 1,
            "messages": [text("user", "?"), used("a"), {"role": "user", "content": [result_of("a")]}],
        });
        let has_tools = version.rules().sampling_tools;
        for (config, params, code) in [
            (none, &plain, Some(-32601)),
            (with(SamplingCapability::default()), &plain, None),
            (with(SamplingCapability::default()), &tools, Some(-32602)),
            (with(SamplingCapability::default()), &choice, Some(-32602)),
            (with(SamplingCapability::default()), &balanced, Some(-32602)),
            (with(SamplingCapability::with_tools()), &plain, None),
            (with(SamplingCapability::with_tools()), &tools, (!has_tools).then_some(-32602)),
            (with(SamplingCapability::with_tools()), &balanced, (!has_tools).then_some(-32602)),
        ] {
            let (rig, refused) = ask(version, config, "sampling/createMessage", params);
            assert_eq!(refused, code, "{version} {params}");
            assert_eq!(rig.questions().len(), usize::from(code.is_none()));
            assert_eq!(rig.diagnostics().len(), usize::from(code.is_some()), "{version} {params}");
        }
    }
}

// covers: SAMP-C-016, SAMP-B-006, SAMP-B-007
#[test]
fn unbalanced_uses_of_tools_are_invalid_params() {
    let mixed = json!([result_of("a"), {"type": "text", "text": "and?"}]);
    for messages in [
        json!([text("user", "?"), used("a")]),
        json!([text("user", "?"), used("a"), text("user", "!")]),
        json!([used("a"), {"role": "user", "content": mixed}]),
        json!([used("a"), {"role": "user", "content": [result_of("b")]}]),
        json!([{"role": "user", "content": [result_of("a")]}]),
    ] {
        for version in [ProtocolVersion::V2025_11_25, ProtocolVersion::V2026_07_28] {
            let params = json!({"messages": messages, "maxTokens": 1});
            let (rig, code) = ask(version, with(SamplingCapability::with_tools()), "sampling/createMessage", &params);
            assert_eq!((code, rig.questions().len()), (Some(-32602), 0), "{version} {messages}");
            assert_eq!(rig.diagnostics(), [DiagnosticKind::BadParams]);
        }
    }
}

// covers: SAMP-C-021, SAMP-C-024
#[test]
fn answer_of_a_model_is_sent_as_the_revision_has_it() {
    let uses = SampleResult::tool_use("m", [ToolUse::new("a", "weather", Object::new().with("city", "Paris"))]);
    for version in ProtocolVersion::ALL {
        let (mut rig, _) = ask(version, with(SamplingCapability::default()), "sampling/createMessage", &plain());
        let said = reply(&mut rig, InputAnswer::Sampling(SampleResult::text("m", "Paris")));
        let expected = json!({
            "role": "assistant", "content": {"type": "text", "text": "Paris"}, "model": "m", "stopReason": "endTurn",
        });
        assert_eq!(said["result"], expected, "{version}");
        // A use of a tool that the server did not offer, and content that the revision does not
        // have.
        for wrong in [
            uses.clone(),
            SampleResult { content: vec![], ..SampleResult::text("m", "") },
            SampleResult { content: vec![Block::text("a"), Block::text("b")], ..SampleResult::text("m", "") },
        ] {
            let fits = wrong.content.len() == 2 && version.rules().sampling_tools;
            let (mut rig, _) = ask(version, with(SamplingCapability::default()), "sampling/createMessage", &plain());
            let key = rig.questions()[0].0;
            rig.reply(key, InputAnswer::Sampling(wrong));
            let refused = match version.era() {
                Era::Legacy => rig.sent.last().unwrap()["error"]["code"] == -32603,
                Era::Modern => rig.events.iter().any(|event| matches!(event, Event::Ended { outcome: Err(_), .. })),
            };
            assert_eq!(refused, !fits, "{version}");
        }
    }
    for version in [ProtocolVersion::V2025_11_25, ProtocolVersion::V2026_07_28] {
        let config = with(SamplingCapability::with_tools());
        let (mut rig, _) = ask(version, config, "sampling/createMessage", &with_tools());
        let said = reply(&mut rig, InputAnswer::Sampling(uses.clone()));
        let used = json!({"type": "tool_use", "id": "a", "name": "weather", "input": {"city": "Paris"}});
        assert_eq!(
            (&said["result"]["content"], &said["result"]["stopReason"]),
            (&used, &json!("toolUse")),
            "{version}"
        );
    }
}

// covers: ROOT-C-002, ROOT-C-003
#[test]
fn roots_are_declared_listed_and_checked() {
    for version in ProtocolVersion::ALL {
        let (_, code) = ask(version, ClientConfig::given(), "roots/list", &json!({}));
        assert_eq!(code, Some(-32601), "{version}");
        let mut config = with(SamplingCapability::default());
        config.capabilities.roots.as_mut().unwrap().list_changed = true;
        let (mut rig, _) = ask(version, config.clone(), "roots/list", &json!(null));
        let said = reply(&mut rig, InputAnswer::roots(["file:///home/ann"]));
        assert_eq!(said["result"], json!({"roots": [{"uri": "file:///home/ann"}]}), "{version}");
        for uri in ["https://notes.example/", "/home/ann", "file:///home/../root"] {
            let (mut rig, _) = ask(version, config.clone(), "roots/list", &json!(null));
            let key = rig.questions()[0].0;
            rig.reply(key, InputAnswer::roots(["file:///home/ann", uri]));
            assert!(rig.sent.iter().all(|said| !said.to_string().contains(uri)), "{version} {uri}");
        }
    }
}
