use super::*;
use crate::InputAnswer;
use crate::model::elicitation::{ElicitRequest, ElicitResult};
use crate::model::roots::Roots;
use crate::model::sampling::SampleResult;
use crate::rpc::ErrorObject;

fn capable() -> ClientConfig {
    let mut config = ClientConfig::given().with_elicitation();
    config.capabilities.sampling = Some(Default::default());
    config.capabilities.roots = Some(Default::default());
    config
}

fn legacy() -> Rig {
    Rig::ready(ProtocolVersion::V2025_11_25, capable())
}

fn modern() -> Rig {
    Rig::ready(ProtocolVersion::V2026_07_28, capable())
}

fn form() -> Value {
    json!({
        "message": "Who?",
        "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
    })
}

fn ask(rig: &mut Rig, id: Value, method: &str, params: Value) {
    rig.say(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
}

fn accept(name: &str) -> InputAnswer {
    InputAnswer::Elicitation(ElicitResult::Accept(Object::new().with("name", name)))
}

fn roots() -> InputAnswer {
    InputAnswer::Roots(Roots::default())
}

/// Answers the last request with a result that requires more input.
fn need(rig: &mut Rig, requests: Option<Value>, state: Option<&str>) {
    let mut result = json!({"resultType": "input_required"});
    if let Some(requests) = requests {
        result["inputRequests"] = requests;
    }
    if let Some(state) = state {
        result["requestState"] = json!(state);
    }
    rig.answer(&rig.last_id(), result);
}

// covers: PING-B-001, B-068, RPC-B-028, S0-04
#[test]
fn legacy_ping_is_answered_in_every_state() {
    let mut rig = Rig::new(ClientConfig { policy: Policy::Legacy, ..ClientConfig::given() });
    rig.open();
    for id in [json!("p"), json!(0), json!(i64::MIN)] {
        rig.say(json!({"jsonrpc": "2.0", "id": id, "method": "ping"}));
        assert_eq!(*rig.sent.last().unwrap(), json!({"jsonrpc": "2.0", "id": id, "result": {}}));
    }
    let id = rig.last_id();
    rig.answer(&id, initialized("2025-11-25"));
    ask(&mut rig, json!(""), "ping", json!({"_meta": {}}));
    assert_eq!(*rig.sent.last().unwrap(), json!({"jsonrpc": "2.0", "id": "", "result": {}}));
    assert!(rig.questions().is_empty());
}

// covers: S0-12, B-050, INIT-B-014, ELIC-C-001, RPC-B-031
#[test]
fn undeclared_or_unknown_method_is_method_not_found() {
    let mut rig = Rig::legacy();
    for method in ["roots/list", "sampling/createMessage", "elicitation/create", "acme/ask", "tools/list", ""] {
        ask(&mut rig, json!(method), method, form());
        let answer = rig.sent.last().unwrap();
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(method), &json!(-32601)), "{method}");
    }
    assert!(rig.questions().is_empty());
    assert_eq!(rig.diagnostics().len(), 6);
    // Declared, but missing in the revision.
    let mut rig = Rig::ready(ProtocolVersion::V2025_03_26, capable());
    ask(&mut rig, json!(1), "elicitation/create", form());
    assert_eq!(rig.sent.last().unwrap()["error"]["code"], -32601);
}

// covers: ELIC-C-002, ELIC-C-003, ELIC-C-007, ELIC-C-020, RPC-B-009
#[test]
fn legacy_input_request_is_answered_with_its_id() {
    let mut rig = legacy();
    ask(&mut rig, json!("q"), "elicitation/create", form());
    let (key, request) = rig.questions().pop().unwrap();
    assert!(matches!(request, InputRequest::Elicitation(ElicitRequest::Form(ref form)) if form.message == "Who?"));
    rig.reply(key, accept("Ada"));
    let result = json!({"action": "accept", "content": {"name": "Ada"}});
    assert_eq!(rig.sent, [json!({"jsonrpc": "2.0", "id": "q", "result": result})]);
    rig.reply(key, accept("again"));
    assert_eq!(rig.sent.len(), 1, "an answer can be given once");
    let mut url = form();
    url["mode"] = json!("url");
    url["url"] = json!("https://example.com");
    ask(&mut rig, json!(2), "elicitation/create", url);
    assert_eq!(rig.sent.last().unwrap()["error"]["code"], -32602, "a mode that was not declared");
}

// covers: ELIC-C-021, B-228
#[test]
fn decline_and_cancel_have_no_content() {
    for (result, action) in [(ElicitResult::Decline, "decline"), (ElicitResult::Cancel, "cancel")] {
        let mut rig = legacy();
        ask(&mut rig, json!(1), "elicitation/create", form());
        let key = rig.questions()[0].0;
        rig.reply(key, InputAnswer::Elicitation(result.clone()));
        assert_eq!(rig.sent[0]["result"], json!({"action": action}));
        let mut rig = modern();
        rig.echo();
        need(&mut rig, Some(json!({"who": {"method": "elicitation/create", "params": form()}})), None);
        let key = rig.questions()[0].0;
        rig.reply(key, InputAnswer::Elicitation(result));
        assert_eq!(rig.sent.last().unwrap()["params"]["inputResponses"], json!({"who": {"action": action}}));
    }
}

// covers: ELIC-C-023, ELIC-B-025
#[test]
fn content_that_does_not_fit_the_schema_is_never_sent() {
    for answer in [
        InputAnswer::Elicitation(ElicitResult::Accept(Object::new())),
        InputAnswer::Elicitation(ElicitResult::Accept(Object::new().with("name", 1i64))),
        roots(),
        InputAnswer::Error(ErrorObject::new(-1, "User rejected")),
    ] {
        let mut rig = legacy();
        ask(&mut rig, json!(1), "elicitation/create", form());
        let key = rig.questions()[0].0;
        rig.reply(key, answer.clone());
        assert!(rig.sent[0]["error"]["code"].is_i64());
        let mut rig = modern();
        let call = rig.echo();
        need(&mut rig, Some(json!({"who": {"method": "elicitation/create", "params": form()}})), None);
        let key = rig.questions()[0].0;
        rig.reply(key, answer);
        assert!(matches!(rig.outcome(call), Err(CallError::Input(_))));
        assert_eq!(rig.sent.len(), 1);
        rig.assert_at_rest();
    }
}

// covers: B-048
#[test]
fn request_with_an_id_in_use_is_refused() {
    let mut rig = legacy();
    ask(&mut rig, json!(1), "roots/list", json!({}));
    ask(&mut rig, json!(1), "roots/list", json!({}));
    assert_eq!(rig.sent.len(), 1);
    assert_eq!(rig.sent[0]["error"]["code"], -32600);
    assert_eq!(rig.diagnostics(), [DiagnosticKind::DuplicateRequestId]);
    let key = rig.questions()[0].0;
    rig.reply(key, roots());
    assert_eq!(rig.sent[1]["result"], json!({"roots": []}));
    ask(&mut rig, json!(1), "roots/list", json!({}));
    assert_eq!(rig.questions().len(), 2, "free again");
}

// covers: B-187
#[test]
fn server_request_with_a_long_id_is_refused() {
    let mut rig = legacy();
    let long = "i".repeat(1025);
    for method in ["roots/list", "ping", "unknown"] {
        ask(&mut rig, json!(long), method, json!({}));
        let answer = rig.sent.last().unwrap();
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(long), &json!(-32600)), "{method}");
    }
    assert!(rig.questions().is_empty());
    ask(&mut rig, json!(long[1..]), "roots/list", json!({}));
    assert_eq!(rig.questions().len(), 1);
    rig.say(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": long}}));
    assert_eq!(rig.diagnostics(), [DiagnosticKind::LongId; 4]);
    assert!(!rig.events.iter().any(|event| matches!(event, Event::InputWithdrawn(_))));
}

#[test]
fn client_diagnostics_stay_small() {
    let mut rig = legacy();
    rig.say(json!({"jsonrpc": "2.0", "id": "i".repeat(100_000), "result": {}}));
    rig.say(json!({"jsonrpc": "2.0", "id": 1, "method": "m".repeat(100_000)}));
    let details: Vec<usize> = rig
        .events
        .iter()
        .filter_map(|event| if let Event::Diagnostic(d) = event { Some(d.detail.len()) } else { None })
        .collect();
    assert_eq!(details.len(), 2);
    assert!(details.iter().all(|length| *length < 1000), "{details:?}");
}

// covers: CANC-B-010, CANC-B-011, CANC-B-015
#[test]
fn cancelled_input_request_is_not_answered() {
    let mut rig = legacy();
    ask(&mut rig, json!("q"), "sampling/createMessage", json!({"messages": [], "maxTokens": 1}));
    let (key, request) = rig.questions().pop().unwrap();
    assert!(matches!(request, InputRequest::Sampling(ref request) if request.max_tokens == 1));
    let cancel =
        |id: Value| json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}});
    rig.say(cancel(json!("other")));
    rig.say(json!({"jsonrpc": "2.0", "method": "notifications/cancelled"}));
    rig.say(cancel(json!("q")));
    rig.say(cancel(json!("q")));
    assert_eq!(rig.events.iter().filter(|event| **event == Event::InputWithdrawn(key)).count(), 1);
    assert_eq!(rig.diagnostics(), [DiagnosticKind::UnknownCancel; 3]);
    rig.reply(key, InputAnswer::Sampling(SampleResult::text("m", "t")));
    assert!(rig.sent.is_empty());
    rig.assert_at_rest();
}

// covers: B-073, TIME-B-001
#[test]
fn timeout_pauses_for_input_but_the_total_does_not() {
    let mut rig = legacy();
    let call = rig.call(tools::call("x").timeout(ms(1000)));
    let bounded = rig.call(tools::call("y").timeout(ms(1000)).max_total(ms(60_000)));
    rig.tick(ms(600));
    ask(&mut rig, json!(1), "roots/list", json!({}));
    let during = rig.call(tools::call("z").timeout(ms(1000)));
    rig.tick(ms(59_000));
    assert!(!rig.has_ended(call) && !rig.has_ended(during));
    rig.tick(ms(400));
    assert!(matches!(rig.outcome(bounded), Err(CallError::Timeout { after, .. }) if *after == ms(60_000)));
    let key = rig.questions()[0].0;
    rig.reply(key, roots());
    rig.tick(ms(399));
    assert!(!rig.has_ended(call));
    rig.tick(ms(1));
    assert!(rig.has_ended(call), "600 before and 400 after");
    assert!(!rig.has_ended(during));
    rig.tick(ms(600));
    assert!(rig.has_ended(during));
}

#[test]
fn modern_input_pauses_only_its_own_call() {
    let mut rig = modern();
    let other = rig.echo();
    let call = rig.echo();
    rig.tick(ms(10_000));
    need(&mut rig, Some(json!({"r": {"method": "roots/list"}})), None);
    rig.tick(ms(20_000));
    assert!(rig.has_ended(other) && !rig.has_ended(call));
    rig.tick(Duration::from_secs(3600));
    let key = rig.questions()[0].0;
    rig.reply(key, roots());
    rig.tick(ms(19_999));
    assert!(!rig.has_ended(call));
    rig.tick(ms(1));
    assert!(matches!(rig.outcome(call), Err(CallError::Timeout { .. })));
}

// covers: MRTR-C-014, MRTR-C-016, MRTR-C-017, MRTR-C-019, MRTR-C-020, MRTR-C-021, RPC-C-027, B-219
#[test]
fn round_answers_all_requests_and_retries_with_a_new_id() {
    let mut rig = modern();
    let bystander = rig.call(tools::call("bystander"));
    let call = rig.call(tools::call("x").arguments(&json!({"a": 1})).progress());
    let first = rig.sent[1].clone();
    let state = "opaque \u{e9}\" \\u0041 =";
    need(
        &mut rig,
        Some(json!({
            "who": {"method": "elicitation/create", "params": form()},
            "where": {"method": "roots/list"},
            "what": {"method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 5}},
        })),
        Some(state),
    );
    let questions = rig.questions();
    assert_eq!(questions.len(), 3);
    for (key, request) in questions {
        assert_eq!(rig.sent.len(), 2, "one is open");
        let answer = match request {
            InputRequest::Elicitation(_) => accept("Ada"),
            InputRequest::Sampling(_) => InputAnswer::Sampling(SampleResult::text("m", "t")),
            InputRequest::Roots => roots(),
        };
        rig.reply(key, answer);
    }
    let second = rig.sent[2].clone();
    assert_ne!(second["id"], first["id"]);
    assert_eq!(second["method"], first["method"]);
    assert_eq!(second["params"]["arguments"], json!({"a": 1}));
    assert_eq!(second["params"]["requestState"], state);
    assert_eq!(
        second["params"]["inputResponses"],
        json!({
            "who": {"action": "accept", "content": {"name": "Ada"}},
            "where": {"roots": []},
            "what": {"role": "assistant", "content": {"type": "text", "text": "t"}, "model": "m", "stopReason": "endTurn"},
        })
    );
    let token = |m: &Value| m["params"]["_meta"]["progressToken"].clone();
    assert_eq!((token(&first), token(&second)), (first["id"].clone(), second["id"].clone()), "a fresh token");
    assert!(second["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"].is_object());
    assert!(rig.sent.iter().all(|m| m.get("method").is_some()), "no response was sent");
    rig.answer(&second["id"], json!({"content": []}));
    assert!(rig.outcome(call).is_ok());
    assert!(!rig.has_ended(bystander));
    rig.answer(&first["id"], json!({"content": []}));
    assert_eq!(rig.diagnostics(), [DiagnosticKind::LateAnswer]);
}

// covers: MRTR-C-016, MRTR-C-017
#[test]
fn request_state_is_echoed_exactly() {
    let mut rig = modern();
    rig.echo();
    let raw = r#""\u0041\/ \ud83d\ude00 \"""#;
    let id = rig.last_id();
    let text = format!(
        r#"{{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"input_required","requestState":{raw},"inputRequests":{{"r":{{"method":"roots/list"}}}}}}}}"#
    );
    let Message::Response(_) = parse(text.clone().into(), 128).unwrap() else { panic!() };
    rig.handle_event(rig.exchange(), ExchangeEvent::Inbound(Inbound::Message(parse(text.into(), 128).unwrap())));
    let key = rig.questions()[0].0;
    let input = Input::Command(ClientCommand::Answer(key, roots()));
    rig.client.apply(rig.now, input).unwrap();
    let Some(Output::Send(_, Outbound::Message(bytes))) = rig.client.poll_output() else { panic!() };
    assert!(String::from_utf8_lossy(&bytes).contains(&format!(r#""requestState":{raw}"#)));
}

// covers: MRTR-C-018
#[test]
fn round_without_a_state_is_answered_without_one() {
    let mut rig = modern();
    rig.echo();
    need(&mut rig, Some(json!({"r": {"method": "roots/list"}})), Some("one"));
    let key = rig.questions()[0].0;
    rig.reply(key, roots());
    need(&mut rig, Some(json!({"r": {"method": "roots/list"}})), None);
    let key = rig.questions()[1].0;
    rig.reply(key, roots());
    assert_eq!(rig.sent[1]["params"]["requestState"], "one");
    assert_eq!(rig.sent[2]["params"].get("requestState"), None);
}

// covers: MRTR-C-015, B-218
#[test]
fn round_without_input_requests_is_retried_with_backoff() {
    let mut rig = modern();
    let call = rig.call(tools::call("x").timeout(None));
    for round in 1..=4u32 {
        need(&mut rig, None, Some("s"));
        assert!(matches!(rig.client.timeout_reason(), Some(Timer::Round(c)) if c == call));
        let wait = rig.client.poll_timeout().unwrap() - rig.now;
        let floor = ms(100 << round);
        assert!(wait >= floor && wait <= floor + floor / 4, "{wait:?}");
        rig.tick(wait);
        let retry = rig.sent.last().unwrap();
        assert_eq!(retry["params"]["requestState"], "s");
        assert_eq!(retry["params"].get("inputResponses"), None);
    }
    rig.answer(&rig.last_id(), json!({"content": []}));
    assert!(rig.outcome(call).is_ok());
    rig.assert_at_rest();
}

// covers: B-219, B-220
#[test]
fn too_many_rounds_end_the_call() {
    for more in [false, true] {
        let mut rig = modern();
        let call = rig.echo();
        for round in 0..10 {
            need(&mut rig, Some(json!({"r": {"method": "roots/list"}})), None);
            let key = rig.questions()[round].0;
            rig.reply(key, roots());
        }
        assert_eq!(rig.sent.len(), 11);
        if more {
            need(&mut rig, Some(json!({"r": {"method": "roots/list"}})), None);
            assert_eq!(*rig.outcome(call), Err(CallError::TooManyRounds(10)));
            assert_eq!(rig.questions().len(), 10);
        } else {
            rig.answer(&rig.last_id(), json!({"content": []}));
            assert!(rig.outcome(call).is_ok());
        }
        rig.assert_at_rest();
    }
}

// covers: MRTR-C-026, ELIC-C-020
#[test]
fn round_that_cannot_be_answered_ends_the_call() {
    let wrong = [
        (json!({"resultType": "input_required"}), false),
        (json!({"resultType": "input_required", "inputRequests": {}}), false),
        (json!({"resultType": "input_required", "requestState": 7}), false),
        (json!({"resultType": "input_required", "inputRequests": [1]}), false),
        (json!({"resultType": "input_required", "inputRequests": {"a": {"params": {}}}}), false),
        (json!({"resultType": "input_required", "inputRequests": {"a": {"method": "ping"}}}), true),
        (
            json!({"resultType": "input_required", "inputRequests": {"a": {"method": "elicitation/create", "params": {"mode": "url", "message": "m", "url": "https://x"}}}}),
            true,
        ),
    ];
    for (result, input) in wrong {
        let mut rig = modern();
        let call = rig.echo();
        rig.answer(&rig.last_id(), result.clone());
        match rig.outcome(call) {
            Err(CallError::Input(_)) => assert!(input, "{result}"),
            Err(CallError::Decode(_)) => assert!(!input, "{result}"),
            other => panic!("{other:?}"),
        }
        assert!(rig.questions().is_empty());
        rig.assert_at_rest();
    }
    // Undeclared, and on a method that cannot ask for input.
    let mut rig = Rig::modern();
    let call = rig.echo();
    need(&mut rig, Some(json!({"r": {"method": "roots/list"}})), None);
    assert!(matches!(rig.outcome(call), Err(CallError::Input(_))));
    assert_eq!(rig.diagnostics(), [DiagnosticKind::MissingCapability]);
    let mut rig = modern();
    let call = rig.call(tools::list());
    need(&mut rig, Some(json!({"r": {"method": "roots/list"}})), None);
    assert!(matches!(rig.outcome(call), Err(CallError::Decode(_))));
}

#[test]
fn end_of_a_call_cancels_its_input_requests() {
    let mut rig = modern();
    let call = rig.echo();
    need(&mut rig, Some(json!({"a": {"method": "roots/list"}, "b": {"method": "roots/list"}})), None);
    rig.client.cancel(rig.now, call, None);
    rig.drain();
    let withdrawn = rig.events.iter().filter(|event| matches!(event, Event::InputWithdrawn(_))).count();
    assert_eq!(withdrawn, 2);
    assert_eq!(rig.sent.len(), 1, "nothing is out that could be cancelled");
    assert!(matches!(rig.events.last(), Some(Event::Ended { .. })));
    rig.assert_at_rest();
}

#[test]
fn open_input_requests_are_bounded() {
    let mut config = capable();
    config.limits.client.max_inputs = 2;
    let mut rig = Rig::ready(ProtocolVersion::V2025_11_25, config.clone());
    for n in 0..3 {
        ask(&mut rig, json!(n), "roots/list", json!({}));
    }
    assert_eq!(rig.questions().len(), 2);
    assert_eq!(rig.sent[0]["error"]["code"], -32603);
    assert_eq!(rig.diagnostics(), [DiagnosticKind::TooManyInputs]);
    let mut rig = Rig::ready(ProtocolVersion::V2026_07_28, config);
    let call = rig.echo();
    let requests: serde_json::Map<String, Value> =
        (0..3).map(|n| (n.to_string(), json!({"method": "roots/list"}))).collect();
    need(&mut rig, Some(Value::Object(requests)), None);
    assert!(matches!(rig.outcome(call), Err(CallError::Input(_))));
    assert!(rig.questions().is_empty());
}
