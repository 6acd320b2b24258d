use super::*;
use alloc::string::ToString;
use alloc::vec;
use serde_json::{Value, json};

const NEWEST: ProtocolVersion = ProtocolVersion::V2026_07_28;

fn raw(value: &Value) -> RawJson {
    RawJson::parse(value.to_string().into_bytes()).unwrap()
}

fn object(value: &Value) -> Object {
    Object::read(&raw(value)).unwrap()
}

fn value(object: &Object) -> Value {
    serde_json::from_str(object.to_json().as_str()).unwrap()
}

fn used(id: &str) -> ToolUse {
    ToolUse::new(id, "weather", object(&json!({"city": "Paris"})))
}

fn uses(ids: &[&str]) -> SamplingMessage {
    SamplingMessage::new(Role::Assistant, ids.iter().map(|id| Block::ToolUse(used(id))).collect())
}

fn results(ids: &[&str]) -> SamplingMessage {
    SamplingMessage::results(ids.iter().map(|id| ToolResult::text(&used(id), "sunny")))
}

fn request(messages: Vec<SamplingMessage>) -> SampleRequest {
    SampleRequest { messages, ..SampleRequest::new(10) }
}

fn weather() -> Tool {
    Tool::read(&raw(&json!({
        "name": "weather", "title": "Weather", "inputSchema": {"type": "object"}, "outputSchema": {"type": "object"},
        "annotations": {"readOnlyHint": true}, "icons": [{"src": "https://a.example/i.png"}], "_meta": {"a": 1},
    })))
    .unwrap()
}

// covers: SAMP-B-009, SAMP-C-021, SAMP-C-024
#[test]
fn every_member_is_read_and_written_unchanged() {
    let all = json!({
        "messages": [
            {"role": "user", "content": {"type": "text", "text": "Weather?", "annotations": {"priority": 1}}},
            {
                "role": "assistant", "_meta": {"m": 1},
                "content": [
                    {"type": "text", "text": "I look."},
                    {"type": "tool_use", "id": "a", "name": "weather", "input": {"city": "Paris"}, "_meta": {"cache": "x"}},
                ],
            },
            {
                "role": "user",
                "content": {
                    "type": "tool_result", "toolUseId": "a", "content": [{"type": "text", "text": "sunny"}],
                    "structuredContent": {"sky": "clear"}, "isError": true, "_meta": {"cache": "y"},
                },
            },
        ],
        "maxTokens": 400, "systemPrompt": "Short.", "includeContext": "none", "temperature": 0.5,
        "stopSequences": ["END"], "metadata": {"p": [1]}, "toolChoice": {"mode": "required"},
        "modelPreferences": {
            "hints": [{"name": "sonnet"}, {"name": "claude"}], "costPriority": 0.1, "speedPriority": 0.2,
            "intelligencePriority": 0.9, "vendor": 1,
        },
        "tools": [{"name": "weather", "inputSchema": {"type": "object"}}],
        "future": {"x": null},
    });
    let request = SampleRequest::read(object(&all)).unwrap();
    assert_eq!(value(&request.write(NEWEST)), all);
    assert_eq!(request.model_preferences.as_ref().unwrap().hints, ["sonnet", "claude"], "in the order of preference");
    let result = json!({
        "role": "assistant", "model": "m-1", "stopReason": "somethingNew", "_meta": {"a": 1},
        "content": [{"type": "text", "text": "a"}, {"type": "image", "data": "aaaa", "mimeType": "image/png"}],
    });
    let read = SampleResult::read(object(&result)).unwrap();
    assert_eq!((read.first_text(), read.stop_reason.as_deref()), (Some("a"), Some("somethingNew")));
    assert_eq!(value(&read.write(NEWEST)), result);
    // A use that goes back in a later request keeps what the client needs of it.
    let answer = SampleResult::read(object(&json!({
        "role": "assistant", "model": "m", "stopReason": "toolUse",
        "content": {"type": "tool_use", "id": "a", "name": "n", "input": {}, "_meta": {"cache": "x"}},
    })));
    let message = answer.unwrap().into_message().write(NEWEST);
    assert!(message[0].as_str().contains(r#""_meta":{"cache":"x"}"#), "{message:?}");
}

// covers: SAMP-B-009
#[test]
fn messages_have_a_role_and_content() {
    let text = json!({"type": "text", "text": "x"});
    for (message, is_valid) in [
        (json!({"role": "user", "content": text}), true),
        (json!({"role": "assistant", "content": [text, text]}), true),
        (json!({"role": "user", "content": []}), true),
        (json!({"content": text}), false),
        (json!({"role": "system", "content": text}), false),
        (json!({"role": "user"}), false),
        (json!({"role": "user", "content": "x"}), false),
        (json!({"role": "user", "content": {"text": "x"}}), false),
        (json!({"role": "user", "content": {"type": "tool_use", "id": "a", "name": "n"}}), false),
        (json!({"role": "user", "content": {"type": "tool_result", "content": []}}), false),
    ] {
        let params = json!({"messages": [message], "maxTokens": 1});
        assert_eq!(SampleRequest::read(object(&params)).is_ok(), is_valid, "{message}");
    }
    for params in [
        json!({"maxTokens": 1}),
        json!({"messages": []}),
        json!({"messages": [], "maxTokens": "1"}),
        json!({"messages": [], "maxTokens": 1, "toolChoice": {"mode": "sometimes"}}),
        json!({"messages": [], "maxTokens": 1, "tools": [{"inputSchema": {}}]}),
    ] {
        assert!(SampleRequest::read(object(&params)).is_err(), "{params}");
    }
    let choice =
        |mode: Value| SampleRequest::read(object(&json!({"messages": [], "maxTokens": 1, "toolChoice": mode})));
    assert_eq!(choice(json!({})).unwrap().tool_choice, Some(ToolChoice::Auto), "the default");
}

#[test]
fn lowered_request_has_only_what_its_revision_has() {
    let other = Object::new().with("_meta", Object::new());
    let audio = Block::Content(Content::Audio { data: "aaaa".into(), mime_type: "audio/wav".into(), other });
    let message = SamplingMessage::new(Role::User, vec![Block::text("a"), audio]);
    let request = SampleRequest::new(7).message(message).tool(weather()).tool_choice(ToolChoice::None);
    for version in ProtocolVersion::ALL {
        let written = value(&request.write(version));
        let messages = written["messages"].as_array().unwrap();
        let kinds: Vec<&str> = match version.rules().sampling_tools {
            true => {
                messages[0]["content"].as_array().unwrap().iter().map(|block| block["type"].as_str().unwrap()).collect()
            }
            // One message for each block.
            false => messages.iter().map(|message| message["content"]["type"].as_str().unwrap()).collect(),
        };
        let audio = if version.rules().audio { "audio" } else { "text" };
        assert_eq!(kinds, ["text", audio], "{version}");
        let tool = &written["tools"][0];
        assert_eq!(tool.get("title").is_some(), version.rules().titles, "{version}");
    }
    // A message of one block is not an array, which older revisions do not know.
    let single = value(&SampleRequest::new(1).user("a").write(NEWEST));
    assert_eq!(single["messages"][0]["content"], json!({"type": "text", "text": "a"}));
}

// covers: SAMP-B-006, SAMP-B-007, SAMP-S-008, SAMP-C-016
#[test]
fn uses_and_results_of_tools_are_balanced() {
    let user = || SamplingMessage::user("?");
    let mixed = SamplingMessage::new(
        Role::User,
        vec![Block::ToolResult(ToolResult::text(&used("a"), "sunny")), Block::text("and?")],
    );
    let by_user = SamplingMessage::new(Role::User, vec![Block::ToolUse(used("a"))]);
    let by_model = SamplingMessage::new(Role::Assistant, results(&["a"]).content);
    for (messages, is_balanced) in [
        (vec![], true),
        (vec![user(), SamplingMessage::assistant("!")], true),
        (vec![user(), uses(&["a"]), results(&["a"])], true),
        (vec![user(), uses(&["a", "b"]), results(&["b", "a"]), uses(&["a"]), results(&["a"])], true),
        // A result is missing.
        (vec![user(), uses(&["a"])], false),
        (vec![user(), uses(&["a"]), user()], false),
        (vec![uses(&["a", "b"]), results(&["a"])], false),
        (vec![uses(&["a"]), uses(&["b"]), results(&["b"])], false),
        (vec![uses(&["a", "b"]), results(&["a"]), results(&["b"])], false),
        // A result is of no use, or of another one, or there twice.
        (vec![results(&["a"])], false),
        (vec![uses(&["a"]), results(&["b"])], false),
        (vec![uses(&["a"]), results(&["a", "b"])], false),
        (vec![uses(&["a"]), results(&["a", "a"])], false),
        (vec![uses(&["a", "b"]), results(&["a", "a"])], false),
        (vec![uses(&["a"]), results(&["a"]), results(&["a"])], false),
        // Other content beside the results, uses with one id, the wrong author.
        (vec![uses(&["a"]), mixed], false),
        (vec![uses(&["a", "a"]), results(&["a"])], false),
        (vec![by_user, results(&["a"])], false),
        (vec![uses(&["a"]), by_model], false),
    ] {
        let text = format!("{messages:?}");
        assert_eq!(request(messages).check().is_ok(), is_balanced, "{text}");
    }
}

// covers: SAMP-S-003, SAMP-C-004
#[test]
fn tools_and_what_comes_of_them_need_the_capability() {
    assert!(!request(vec![SamplingMessage::user("?")]).uses_tools());
    assert!(SampleRequest::new(1).tool(weather()).uses_tools());
    assert!(SampleRequest::new(1).tool_choice(ToolChoice::None).uses_tools());
    assert!(request(vec![uses(&["a"]), results(&["a"])]).uses_tools());
}

#[test]
fn result_fits_its_request_and_its_revision() {
    let (plain, with_tools) = (SampleRequest::new(1), SampleRequest::new(1).tool(weather()));
    let text = || SampleResult::text("m", "x");
    let with = |content: Vec<Block>| SampleResult { content, ..text() };
    let two = with(vec![Block::text("a"), Block::text("b")]);
    let uses = SampleResult::tool_use("m", [used("a")]);
    let result = with(results(&["a"]).content);
    for version in ProtocolVersion::ALL {
        let has_tools = version.rules().sampling_tools;
        for (result, request, fits) in [
            (&text(), &plain, true),
            (&with(vec![]), &plain, false),
            (&two, &plain, has_tools),
            (&uses, &plain, false),
            (&uses, &with_tools, true),
            (&result, &with_tools, false),
        ] {
            assert_eq!(result.check(request, version).is_ok(), fits, "{version}: {result:?}");
        }
        let written = value(&text().write(version));
        assert_eq!(written["content"], json!({"type": "text", "text": "x"}), "{version}");
    }
    assert_eq!(uses.uses().map(|used| used.id.to_string()).collect::<Vec<_>>(), ["a"]);
}
