//! Requests of a handler to a language model and for the roots, on every revision.

use super::*;
use crate::model::content::Role;
use crate::model::sampling::{Block, SampleRequest, SamplingMessage, ToolChoice, ToolResult, ToolUse};
use crate::version::Era;

const SAMPLES: &str = r#"{"sampling":{}}"#;
const TOOLS: &str = r#"{"sampling":{"tools":{}}}"#;

fn used(id: &str) -> ToolUse {
    ToolUse::new(id, "weather", Object::new())
}

fn weather() -> crate::model::tools::Tool {
    crate::model::page::ListElement::read(&object(r#"{"name":"weather","inputSchema":{"type":"object"}}"#).into())
        .unwrap()
}

/// Calls a tool whose handler asks for this. Returns what the client receives, and the diagnostics.
fn asked(version: ProtocolVersion, declared: &str, request: InputRequest) -> (String, Vec<&'static str>) {
    let mut bench = match version.era() {
        Era::Modern => Bench::new().open(A),
        Era::Legacy => Bench::new().initialized(A, version.as_str(), declared),
    };
    let call = match version.era() {
        Era::Modern => modern_with("1", "tools/call", declared, r#","name":"t""#),
        Era::Legacy => legacy("1", "tools/call", r#"{"name":"t"}"#),
    };
    let (responder, _) = bench.request(A, &call);
    bench.answer(responder, Outcome::NeedInput { requests: vec![("s".into(), request)], state: None });
    let outputs = bench.outputs();
    let said: Vec<String> = outputs.iter().filter_map(|output| on(A, output)).collect();
    let code = |output: &Output| match output {
        Output::Event(Event::Diagnostic(d)) => Some(d.kind.code()),
        _ => None,
    };
    assert_eq!(said.len(), 1, "{said:?}");
    (said[0].clone(), outputs.iter().filter_map(code).collect())
}

fn sampling(request: SampleRequest) -> InputRequest {
    InputRequest::Sampling(request.into())
}

// covers: SAMP-S-003
#[test]
fn model_with_tools_is_asked_only_with_the_capability() {
    let plain = || SampleRequest::new(5).user("?");
    let messages = || {
        let uses = SamplingMessage::new(Role::Assistant, vec![Block::ToolUse(used("a"))]);
        plain().message(uses).message(SamplingMessage::results([ToolResult::text(&used("a"), "sunny")]))
    };
    for version in ProtocolVersion::ALL {
        for (request, needs_tools) in [
            (plain(), false),
            (plain().tool(weather()), true),
            (plain().tool_choice(ToolChoice::None), true),
            (messages(), true),
        ] {
            for declared in ["{}", SAMPLES, TOOLS] {
                let (said, told) = asked(version, declared, sampling(request.clone()));
                let is_sent = match needs_tools {
                    false => declared != "{}",
                    true => declared == TOOLS && version.rules().sampling_tools,
                };
                assert_eq!(said.contains("sampling/createMessage"), is_sent, "{version} {declared}: {said}");
                let expected = if is_sent { vec![] } else { vec!["missing-capability"] };
                assert_eq!(told, expected, "{version} {declared}");
                if !is_sent && version.era() == Era::Modern {
                    let required = if needs_tools { TOOLS } else { SAMPLES };
                    let data = error(&said).data.unwrap();
                    assert_eq!(data.as_str(), format!(r#"{{"requiredCapabilities":{required}}}"#));
                }
            }
        }
    }
}

// covers: SAMP-B-006, SAMP-B-007, SAMP-S-008
#[test]
fn unbalanced_uses_of_tools_are_not_sent() {
    let uses = || SamplingMessage::new(Role::Assistant, vec![Block::ToolUse(used("a"))]);
    let mixed =
        SamplingMessage::new(Role::User, vec![Block::ToolResult(ToolResult::text(&used("a"), "x")), Block::text("y")]);
    for messages in [
        vec![uses()],
        vec![uses(), SamplingMessage::user("!")],
        vec![uses(), mixed],
        vec![uses(), SamplingMessage::results([ToolResult::text(&used("b"), "x")])],
    ] {
        for version in [ProtocolVersion::V2025_11_25, ProtocolVersion::V2026_07_28] {
            let mut request = SampleRequest::new(5).tool(weather());
            request.messages = messages.clone();
            let (said, told) = asked(version, TOOLS, sampling(request));
            assert_eq!((error(&said).code, told), (-32603, vec!["invalid-input-request"]), "{version} {messages:?}");
        }
    }
}

// covers: SAMP-S-005
#[test]
fn context_of_servers_is_requested_only_with_the_capability() {
    for version in ProtocolVersion::ALL {
        for (context, declared) in
            [("thisServer", SAMPLES), ("thisServer", r#"{"sampling":{"context":{}}}"#), ("none", SAMPLES)]
        {
            let request = SampleRequest { include_context: Some(context.into()), ..SampleRequest::new(5) };
            let (said, _) = asked(version, declared, sampling(request));
            // Older revisions have no capability for it.
            let is_sent = context == "none" || declared != SAMPLES || !version.rules().sampling_tools;
            assert_eq!(said.contains("includeContext"), is_sent, "{version} {context} {declared}");
        }
    }
}

#[test]
fn roots_are_requested_only_with_the_capability() {
    for version in ProtocolVersion::ALL {
        for declared in ["{}", r#"{"roots":{}}"#, r#"{"roots":{"listChanged":true}}"#] {
            let (said, _) = asked(version, declared, InputRequest::Roots);
            assert_eq!(said.contains("roots/list"), declared != "{}", "{version} {declared}: {said}");
        }
    }
}
