//! The dialect of tool streams: parts of a result, its end, and nothing but calls of tools.

use super::*;
use crate::exchange::Dialect;
use crate::input::Watch;
use crate::schema::Validator;

impl Http {
    fn tool_stream(set: impl FnOnce(&mut ClientConfig)) -> Self {
        let mut http = Self::with(|config| {
            config.dialect = Dialect::ToolStream;
            set(config);
        });
        assert_eq!(http.rig.client.state(), State::Ready, "without a word to the server");
        assert!(http.posts().is_empty());
        http.rig.clear();
        http
    }

    /// An event of this type.
    fn typed(&mut self, exchange: ExchangeId, event: &str, data: &str) {
        let data = Data::Other { event: event.into(), data: Bytes::copy_from_slice(data.as_bytes()) };
        self.item(exchange, Inbound::Event(SseEvent { id: None, retry: None, data }));
    }

    /// Makes a call, and opens the stream of its response.
    fn streamed(&mut self) -> (CallId, ExchangeId, Value) {
        let call = self.rig.echo();
        let (exchange, id) = self.last();
        self.stream(exchange);
        (call, exchange, id)
    }

    fn ended(&mut self, call: CallId) -> Result<Value, CallError> {
        let outcome = self.rig.outcome(call).clone();
        self.rig.clear();
        outcome.map(|result| serde_json::from_str(result.json.as_str()).unwrap())
    }
}

/// The end of a result with these members.
fn complete(id: &Value, result: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string()
}

// covers: S2-22, S2-14, S2-15, S2-01
#[test]
fn call_is_a_post_of_its_message_alone() {
    let mut http = Http::tool_stream(|config| {
        config.headers = Headers::new().with("X-Key", "k");
        config.log_level = Some(crate::LogLevel::Info);
    });
    http.rig.echo();
    let (_, head, body, _) = http.posts().pop().unwrap();
    assert_eq!(body, json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "echo"}}));
    let names: Vec<&str> = head.headers.iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["Host", "X-Key", "Content-Type", "Accept"]);
    assert_eq!(head.headers.get("accept"), Some("application/json, text/event-stream"));
}

// covers: S2-23, S2-27, R-17
#[test]
fn parts_are_joined_into_the_result() {
    let mut http = Http::tool_stream(|_| {});
    let (call, exchange, id) = http.streamed();
    http.typed(exchange, "result", r#"{"content":[{"type":"text","text":"a"}],"structuredContent":{"n":1}}"#);
    http.item(exchange, Inbound::Comment);
    http.typed(
        exchange,
        "result",
        "{\"content\":\n[ {\"type\":\"text\",\"text\":\"b\"}],\"structuredContent\":{\"n\":2}}",
    );
    assert!(!http.rig.has_ended(call));
    http.typed(exchange, "complete", &complete(&id, &json!({"isError": false})));
    let whole = json!({
        "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
        "structuredContent": {"n": 2},
        "isError": false,
    });
    assert_eq!(http.ended(call), Ok(whole));
    // Each response has parts of its own.
    let (call, exchange, id) = http.streamed();
    http.typed(exchange, "complete", &complete(&id, &json!({"content": []})));
    assert_eq!(http.ended(call), Ok(json!({"content": []})));
}

// covers: S2-24, S2-30, R-17
#[test]
fn content_of_the_end_replaces_that_of_the_parts() {
    let mut http = Http::tool_stream(|_| {});
    let content = json!([{"type": "text", "text": "whole"}]);
    for (own, expected) in [
        (json!({"content": content}), json!({"other": 1, "content": content})),
        (json!({"content": content, "other": 2}), json!({"other": 2, "content": content})),
        (json!({"content": []}), json!({"other": 1, "content": [{"type": "text", "text": "part"}]})),
    ] {
        let (call, exchange, id) = http.streamed();
        http.typed(exchange, "result", r#"{"content":[{"type":"text","text":"part"}],"other":1}"#);
        http.typed(exchange, "complete", &complete(&id, &own));
        assert_eq!(http.ended(call), Ok(expected), "{own}");
        // What follows the end changes nothing.
        http.typed(exchange, "result", r#"{"content":[]}"#);
        http.item(exchange, Inbound::End);
        assert!(!http.rig.has_ended(call));
    }
}

// covers: S2-25, S2-39, R-17
#[test]
fn error_event_ends_the_call() {
    let mut http = Http::tool_stream(|_| {});
    for with_id in [json!(null), json!("own"), json!("none")] {
        let (call, exchange, id) = http.streamed();
        http.typed(exchange, "result", r#"{"content":[]}"#);
        let mut error = json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32000, "message": "no"}});
        match with_id.as_str() {
            Some("own") => {}
            Some(_) => drop(error.as_object_mut().unwrap().remove("id")),
            None => error["id"] = Value::Null,
        }
        http.typed(exchange, "error", &error.to_string());
        assert!(matches!(http.ended(call), Err(CallError::Rpc(error)) if error.code == -32000), "{with_id}");
    }
}

// covers: S2-30, R-17
#[test]
fn stream_without_an_end_is_no_response() {
    let mut http = Http::tool_stream(|_| {});
    let (call, exchange, _) = http.streamed();
    http.typed(exchange, "result", r#"{"content":[{"type":"text","text":"a"}]}"#);
    http.item(exchange, Inbound::End);
    assert!(matches!(http.ended(call), Err(CallError::NoResponse { attempts: 0, .. })));
    assert_eq!(http.posts().len(), 1, "no attempt to resume it");
}

#[test]
fn unusable_end_is_an_error_at_once() {
    let mut http = Http::tool_stream(|_| {});
    for (event, data) in [("complete", "{"), ("complete", r#"{"content":[]}"#), ("error", "no")] {
        let (call, exchange, _) = http.streamed();
        http.typed(exchange, event, data);
        assert!(matches!(http.ended(call), Err(CallError::Decode(_))), "{event} {data}");
    }
    // A part that cannot be read is reported, and the end decides.
    let (call, exchange, id) = http.streamed();
    for part in ["[]", "{", r#"{"content":1}"#] {
        http.typed(exchange, "result", part);
    }
    assert_eq!(http.rig.diagnostics(), [DiagnosticKind::BadMessage; 3]);
    http.typed(exchange, "complete", &complete(&id, &json!({"content": []})));
    assert!(http.ended(call).is_ok());
}

#[test]
fn parts_are_bounded_by_the_size_of_an_event() {
    let mut http = Http::tool_stream(|config| config.limits.frame.max_event = 100);
    let (call, exchange, _) = http.streamed();
    let part = format!(r#"{{"content":["{}"]}}"#, "x".repeat(30));
    http.typed(exchange, "result", &part);
    http.typed(exchange, "result", &part);
    assert!(!http.rig.has_ended(call));
    http.typed(exchange, "result", &part);
    assert!(matches!(http.ended(call), Err(CallError::Decode(e)) if e.to_string().contains("100 bytes")));
    assert!(http.rig.aborted.contains(&exchange));
}

#[test]
fn members_beside_the_content_are_few() {
    let mut http = Http::tool_stream(|_| {});
    let part = |members: usize| {
        let members: Vec<String> = (0..members).map(|n| format!(r#""m{n}":1"#)).collect();
        format!("{{{}}}", members.join(","))
    };
    let (call, exchange, id) = http.streamed();
    // Those of later parts take the place of earlier ones.
    (0..100).for_each(|_| http.typed(exchange, "result", &part(64)));
    http.typed(exchange, "complete", &complete(&id, &json!({})));
    assert_eq!(http.ended(call).unwrap().as_object().unwrap().len(), 65, "with the content");
    let (call, exchange, _) = http.streamed();
    http.typed(exchange, "result", &part(65));
    assert!(matches!(http.ended(call), Err(CallError::Decode(e)) if e.to_string().contains("64 members")));
}

#[test]
fn settings_of_the_negotiation_have_no_effect() {
    let verdict = Some(Verdict::new(ProtocolVersion::V2025_11_25));
    for policy in [Policy::Auto, Policy::Legacy, Policy::Modern] {
        let mut http = Http::tool_stream(|config| (config.policy, config.verdict) = (policy, verdict));
        let (call, exchange, id) = http.streamed();
        http.typed(exchange, "complete", &complete(&id, &json!({"content": []})));
        assert!(http.ended(call).is_ok());
    }
    let http = Http::with(|config| {
        config.dialect = Dialect::ToolStream;
        config.versions = Versions::new([ProtocolVersion::V2025_11_25]);
    });
    let ended = http.rig.termination();
    assert!(
        matches!(
            ended,
            Some(Termination::Negotiation(NegotiationError { cause: NegotiationCause::NoMutualVersion(_), .. }))
        ),
        "{ended:?}"
    );
}

// A client that validates results fetches the list of tools first, which the dialect does not have.
#[test]
fn validation_does_not_hold_up_a_call() {
    let mut http = Http::tool_stream(|config| {
        let validator = Validator::new(|_: &RawJson| unreachable!("no tool is listed"));
        config.validate = Some(ResultValidation::reject(validator));
    });
    let (call, exchange, id) = http.streamed();
    http.typed(exchange, "complete", &complete(&id, &json!({"content": []})));
    assert!(http.ended(call).is_ok());
}

// covers: S2-28, S2-17
#[test]
fn timeout_only_aborts_the_exchange() {
    let mut http = Http::tool_stream(|_| {});
    let (call, exchange, _) = http.streamed();
    http.rig.tick(Duration::from_secs(30));
    assert!(http.rig.aborted.contains(&exchange));
    assert_eq!(http.posts().len(), 1, "no notification");
    let error = http.ended(call).unwrap_err();
    assert_eq!((error.to_rpc_error().code, error.to_rpc_error().message), (-32603, error.to_string()));
    // A JSON response is as good as a stream.
    let call = http.rig.echo();
    let (exchange, id) = http.last();
    http.answer(exchange, 200, &json!({"jsonrpc": "2.0", "id": id, "result": {"content": []}}));
    assert_eq!(http.ended(call), Ok(json!({"content": []})));
    let call = http.rig.echo();
    let exchange = http.last().0;
    http.refuse(exchange, 502);
    let error = http.ended(call).unwrap_err().to_rpc_error();
    assert_eq!(error.data.unwrap().as_str(), r#"{"httpStatus":502}"#);
}

#[test]
fn nothing_but_tools_is_in_the_dialect() {
    let mut http = Http::tool_stream(|config| {
        config.ping = Some(Duration::from_secs(1));
        config.watch = Watch::new().with_tools();
    });
    let now = http.rig.now;
    for method in ["tools/list", "ping", "server/discover"] {
        let refused = http.rig.client.call(now, custom::<Value>(method, &Object::new())).unwrap_err();
        assert_eq!(refused.why, Refusal::NotInDialect, "{method}");
    }
    let refused = http.rig.client.notify(now, "x/y", Object::new()).unwrap_err();
    assert_eq!(refused.why, Refusal::NotInDialect);
    http.rig.tick(Duration::from_secs(60));
    assert!(http.posts().is_empty());
    assert!(!http.rig.events.iter().any(|event| matches!(event, Event::PingMissed { .. })));
}

// covers: R-17
#[test]
fn events_of_the_dialect_mean_nothing_in_mcp() {
    let mut http = Http::ready();
    let (call, exchange, id) = http.streamed();
    http.typed(exchange, "complete", &complete(&id, &json!({"content": []})));
    http.typed(exchange, "error", r#"{"jsonrpc":"2.0","error":{"code":1,"message":"m"}}"#);
    assert!(!http.rig.has_ended(call));
    assert_eq!(http.rig.diagnostics(), [DiagnosticKind::ControlEvent; 2]);
    http.event(exchange, &json!({"jsonrpc": "2.0", "id": id, "result": {"content": []}}));
    assert!(http.ended(call).is_ok());
}
