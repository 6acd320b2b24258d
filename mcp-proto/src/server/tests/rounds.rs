//! Input requests: results in the modern era, requests of the server in older ones, with one
//! interface for the handler.

use super::*;
use crate::input::InputAnswer;
use crate::model::elicitation::ElicitResult;
use crate::model::sampling::SampleRequest;

const ELICITS: &str = r#"{"elicitation":{}}"#;
const CALL: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}"#;
const ACCEPT: &str = r#"{"action":"accept","content":{"it":"yes"}}"#;

fn ask_with(name: &str, state: &str) -> Outcome {
    let state = Some(RawJson::parse(state.as_bytes().to_vec()).unwrap());
    Outcome::NeedInput { requests: vec![question(name)], state }
}

/// Calls a tool whose handler asks for input. Returns the sealed state of the response.
fn asked(bench: &mut Bench, outcome: Outcome) -> String {
    let (responder, _) = bench.request(A, &call("1", ""));
    bench.answer(responder, outcome);
    state_of(&bench.heard(A)[0])
}

fn state_of(said: &str) -> String {
    result(said).required("requestState").unwrap()
}

fn call(id: &str, rest: &str) -> String {
    modern_with(id, "tools/call", ELICITS, &format!(r#","name":"t","arguments":{{"a":1,"b":[{{"c":2,"d":3}}]}}{rest}"#))
}

fn retry(id: &str, state: &str, responses: &str) -> String {
    call(id, &format!(r#","inputResponses":{responses},"requestState":"{state}""#))
}

// covers: MRTR-S-001, MRTR-S-002, MRTR-S-004, MRTR-S-005, MRTR-S-006, RPC-S-021, RPC-S-026, X-04,
// CACHE-S-002, ELIC-S-005, TOOL-S-006
#[test]
fn modern_input_request_is_a_result() {
    let mut bench = Bench::new().open(A);
    let (responder, _) = bench
        .request(A, &modern_with("1", "tools/call", r#"{"elicitation":{"form":{}},"roots":{},"sampling":{}}"#, ""));
    let sampling = SampleRequest::new(1).into();
    let requests = vec![question("q"), ("r".into(), InputRequest::Roots), ("s".into(), sampling)];
    bench.answer(responder, Outcome::NeedInput { requests, state: None });
    let said = bench.heard(A);
    assert_eq!(said.len(), 1);
    let result = result(&said[0]);
    assert_eq!(result.required::<String>("resultType").unwrap(), "input_required");
    let expected = concat!(
        r#"{"q":{"method":"elicitation/create","params":{"message":"?","requestedSchema":"#,
        r#"{"type":"object","properties":{"it":{"type":"string"}},"required":["it"]}}},"#,
        r#""r":{"method":"roots/list"},"s":{"method":"sampling/createMessage","params":{"messages":[],"maxTokens":1}}}"#
    );
    assert_eq!(result.get("inputRequests").unwrap().as_str(), expected);
    assert!(
        result.get("requestState").is_some() && result.get("ttlMs").is_none() && result.get("cacheScope").is_none()
    );
    assert!(result.object("_meta").unwrap().get("io.modelcontextprotocol/serverInfo").is_some());
    // No state is kept for a retry, which may never come (MRTR-S-008).
    assert!(bench.at_rest());
}

// covers: MRTR-S-008, MRTR-S-010, MRTR-S-024, VER-S-008, VER-B-010
#[test]
fn retry_returns_the_state_and_the_input_responses() {
    let mut bench = Bench::new().open(A);
    let sealed = asked(&mut bench, ask_with("q", r#"{"draft":1}"#));
    // Another connection, even another server with the same key, can serve the retry.
    let mut bench = Bench::new().open(B);
    let line = retry("2", &sealed, &format!(r#"{{"q":{ACCEPT},"unasked":{{}}}}"#));
    let (mut responder, mut incoming) = bench.request(B, &line);
    assert!(matches!(incoming.state, Some(RequestState::Sealed(_))));
    assert!(incoming.params.get("inputResponses").is_none() && incoming.params.get("requestState").is_none());
    responder.open(&mut incoming).unwrap();
    assert_eq!(incoming.state, Some(RequestState::Kept(object(r#"{"draft":1}"#).into())));
    assert_eq!(incoming.inputs.keys().collect::<Vec<_>>(), ["q"]);
    assert_eq!(incoming.inputs["q"].as_ref().unwrap().as_str(), ACCEPT);
    bench.complete(responder, "{}");
    assert_eq!(bench.heard(B).len(), 1);
}

// covers: MRTR-S-002, MRTR-S-025, B-219, B-220
#[test]
fn input_of_all_rounds_returns_and_rounds_are_bounded() {
    let mut bench = Bench::with(|config| config.limits.server.max_rounds = 3).open(A);
    let mut state = asked(&mut bench, ask("q1"));
    for round in 2..=4_u32 {
        let responses = format!(r#"{{"q{}":{{"action":"decline"}}}}"#, round - 1);
        let (mut responder, mut incoming) = bench.request(A, &retry("1", &state, &responses));
        responder.open(&mut incoming).unwrap();
        assert_eq!(incoming.inputs.len() as u32, round - 1);
        bench.answer(responder, ask(&format!("q{round}")));
        let said = bench.heard(A);
        if round == 4 {
            assert_eq!(error(&said[0]).code, -32603);
        } else {
            state = state_of(&said[0]);
        }
    }
}

// covers: MRTR-S-009, MRTR-S-010, MRTR-S-012
#[test]
fn modified_or_foreign_state_is_refused() {
    let mut bench = Bench::new().open(A);
    let state = asked(&mut bench, ask_with("q", "1"));
    let other_key =
        asked(&mut Bench::with(|config| config.state_keys = Some([9; 32].into())).open(A), ask_with("q", "1"));
    let other_seed = asked(&mut Bench::seeded([8; 32], |_| {}).open(A), ask_with("q", "1"));
    let good = retry("1", &state, "{}");
    let mut lines = vec![
        retry("1", &other_key, "{}"),
        retry("1", &other_seed, "{}"),
        retry("1", "", "{}"),
        retry("1", "!!", "{}"),
        retry("1", &state[..state.len() - 2], "{}"),
        // Other arguments, another tool or another method make another request.
        good.replace(r#""a":1"#, r#""a":2"#),
        good.replace(r#""name":"t""#, r#""name":"u""#),
        good.replace("tools/call", "prompts/get"),
        good.replace(r#""name":"t","#, r#""name":"t","extra":1,"#),
    ];
    for at in 0..state.len() {
        let mut forged = state.clone().into_bytes();
        forged[at] = if forged[at] == b'A' { b'B' } else { b'A' };
        lines.push(retry("1", &String::from_utf8(forged).unwrap(), "{}"));
    }
    for line in lines {
        let (mut responder, mut incoming) = bench.request(A, &line);
        let error = responder.open(&mut incoming).unwrap_err();
        assert_eq!(error.code, -32602, "{line}");
        bench.answer(responder, Outcome::Error(error));
        let outputs = bench.outputs();
        assert!(matches!(&outputs[0], Output::Event(Event::Diagnostic(d)) if d.kind == DiagnosticKind::BadState));
        assert_eq!(super::error(&on(A, &outputs[1]).unwrap()).code, -32602);
    }
    let (mut responder, mut incoming) = bench.request(A, &good);
    responder.open(&mut incoming).unwrap();
    // The order of members does not matter.
    let reordered =
        retry("2", &state, "{}").replace(r#"{"a":1,"b":[{"c":2,"d":3}]}"#, r#"{"b":[{"d":3,"c":2}],"a":1}"#);
    let (mut responder, mut incoming) = bench.request(A, &reordered);
    responder.open(&mut incoming).unwrap();
}

// covers: MRTR-S-012
#[test]
fn state_expires_by_wall_clock_time() {
    let clock = |unix: u64| move |config: &mut ServerConfig| config.origin_unix = Duration::from_secs(unix);
    let state = asked(&mut Bench::with(clock(1_000_000)).open(A), ask("q"));
    for (unix, good) in [(1_000_600, true), (1_000_601, false)] {
        let mut bench = Bench::with(clock(unix)).open(A);
        let (mut responder, mut incoming) = bench.request(A, &retry("1", &state, "{}"));
        assert_eq!(responder.open(&mut incoming).is_ok(), good);
    }
}

// covers: MRTR-S-022, MRTR-S-023
#[test]
fn malformed_input_responses_are_refused() {
    let mut bench = Bench::new().open(A);
    for rest in
        [r#","inputResponses":[]"#, r#","inputResponses":{"q":1}"#, r#","requestState":{}"#, r#","inputResponses":"x""#]
    {
        let (mut responder, mut incoming) = bench.request(A, &call("1", rest));
        assert_eq!(responder.open(&mut incoming).unwrap_err().code, -32602, "{rest}");
        bench.complete(responder, "{}");
        assert_eq!(error(&bench.heard(A)[0]).code, -32602, "{rest}");
    }
    // Other methods have no such members.
    let (_, incoming) = bench.request(A, &modern("1", "x/y", r#","inputResponses":[],"requestState":1"#));
    assert!(incoming.params.get("inputResponses").is_some() && incoming.state.is_none());
}

// covers: MRTR-S-003, MRTR-S-005
#[test]
fn only_some_methods_may_ask_for_input() {
    let two = || vec![question("a"), question("b")];
    let cases: [(&str, Vec<(String, InputRequest)>); 3] = [
        ("tools/list", vec![question("a")]),
        ("tools/call", vec![question("a"), question("a")]),
        ("prompts/get", [two(), vec![question("c")]].concat()),
    ];
    let mut bench = Bench::with(|config| config.limits.server.max_questions = 2).open(A);
    for (method, requests) in cases {
        let (responder, _) = bench.request(A, &modern_with("1", method, ELICITS, ""));
        bench.answer(responder, Outcome::NeedInput { requests, state: None });
        assert_eq!(error(&bench.heard(A)[0]).code, -32603, "{method}");
    }
    let (responder, _) = bench.request(A, &modern_with("1", "resources/read", ELICITS, ""));
    bench.answer(responder, Outcome::NeedInput { requests: two(), state: None });
    result(&bench.heard(A)[0]);
    let (responder, _) = bench.request(A, &call("1", ""));
    let large = format!("\"{}\"", "x".repeat(64 << 10));
    bench.answer(responder, ask_with("q", &large));
    assert_eq!(error(&bench.heard(A)[0]).code, -32603);
}

// covers: META-S-015, MRTR-S-007, ELIC-S-004, X-36, RPC-B-036
#[test]
fn missing_modern_capability_is_an_error() {
    let mut bench = Bench::new().open(A);
    for (capabilities, request, required) in [
        ("{}", question("q"), r#"{"elicitation":{"form":{}}}"#),
        (r#"{"elicitation":{"url":{}}}"#, question("q"), r#"{"elicitation":{"form":{}}}"#),
        (ELICITS, ("r".into(), InputRequest::Roots), r#"{"roots":{}}"#),
        (ELICITS, ("s".into(), SampleRequest::new(1).into()), r#"{"sampling":{}}"#),
    ] {
        let (responder, _) = bench.request(A, &modern_with("1", "tools/call", capabilities, ""));
        bench.answer(responder, Outcome::NeedInput { requests: vec![request], state: None });
        let error = error(&bench.heard(A)[0]);
        assert_eq!(error.code, -32021);
        assert_eq!(error.data.unwrap().as_str(), format!(r#"{{"requiredCapabilities":{required}}}"#));
    }
}

// covers: ELIC-S-004, INIT-B-014, INIT-B-013, X-36
#[test]
fn missing_legacy_capability_fails_tool_or_request() {
    for (version, capabilities) in
        [("2025-06-18", "{}"), ("2024-11-05", ELICITS), ("2025-11-25", r#"{"elicitation":{"url":{}}}"#)]
    {
        let mut bench = Bench::new().initialized(A, version, capabilities);
        let (responder, _) = bench.request(A, CALL);
        bench.answer(responder, ask("q"));
        let result = result(&bench.heard(A)[0]);
        assert!(result.required::<bool>("isError").unwrap());
        assert!(result.get("content").unwrap().as_str().contains("elicitation"));
        let (responder, _) = bench.request(A, &legacy("1", "prompts/get", "{}"));
        bench.answer(responder, ask("q"));
        assert_eq!(error(&bench.heard(A)[0]).code, -32603);
    }
}

// covers: B-073, RPC-B-028, INIT-B-014, MRTR-S-001
#[test]
fn legacy_input_request_reenters_the_handler() {
    let mut bench = Bench::new().initialized(A, "2025-11-25", r#"{"elicitation":{},"roots":{}}"#);
    let (responder, _) = bench.request(A, CALL);
    let old = responder.key();
    let requests = vec![question("q"), ("r".into(), InputRequest::Roots)];
    bench.answer(responder, Outcome::NeedInput { requests, state: Some(RawJson::from(7_i64)) });
    let said = bench.heard(A);
    assert_eq!(
        said[0],
        concat!(
            r#"{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"message":"?","requestedSchema":"#,
            r#"{"type":"object","properties":{"it":{"type":"string"}},"required":["it"]}}}"#
        )
    );
    assert_eq!(said[1], r#"{"jsonrpc":"2.0","id":2,"method":"roots/list"}"#);
    // Meanwhile the exchange serves other requests.
    assert_eq!(bench.say(A, &legacy("5", "ping", "{}")).len(), 1);
    bench.item(A, read(r#"{"jsonrpc":"2.0","id":2,"error":{"code":-1,"message":"no"}}"#));
    assert!(bench.outputs().is_empty());
    bench.item(A, read(&format!(r#"{{"jsonrpc":"2.0","id":1,"result":{ACCEPT}}}"#)));
    let (responder, incoming) = bench.handed();
    assert_ne!(responder.key(), old);
    assert_eq!(incoming.state, Some(RequestState::Kept(RawJson::from(7_i64))));
    assert_eq!(incoming.inputs["q"].as_ref().unwrap().as_str(), ACCEPT);
    assert_eq!(incoming.inputs["r"].as_ref().unwrap_err().message, "no");
    assert_eq!(incoming.params, object(r#"{"name":"t"}"#));
    // A second round sees the responses of the first one.
    bench.answer(responder, ask("again"));
    assert!(bench.heard(A)[0].contains(r#""id":3"#));
    bench.item(A, read(r#"{"jsonrpc":"2.0","id":"3","result":{"action":"cancel"}}"#));
    let outputs = bench.outputs();
    assert!(matches!(&outputs[0], Output::Event(Event::Diagnostic(d)) if d.kind == DiagnosticKind::TextId));
    let Some(Output::Event(Event::Request(responder, incoming))) = outputs.into_iter().nth(1) else { panic!() };
    assert_eq!(incoming.inputs.len(), 3);
    bench.complete(responder, r#"{"content":[]}"#);
    assert_eq!(bench.heard(A), [r#"{"jsonrpc":"2.0","id":1,"result":{"content":[]}}"#]);
    assert!(bench.at_rest());
}

// covers: PROG-B-003
#[test]
fn progress_keeps_increasing_across_rounds() {
    let mut bench = Bench::new().initialized(A, "2025-11-25", ELICITS);
    let (responder, _) = bench.request(A, &legacy("1", "tools/call", r#"{"_meta":{"progressToken":"t"}}"#));
    let note = |n: f64| Note::Progress(crate::model::Progress::new(n));
    bench.server.notify(bench.now, responder.key(), note(5.0)).unwrap();
    let old = responder.key();
    bench.answer(responder, ask("q"));
    assert_eq!(bench.server.notify(bench.now, old, note(6.0)).unwrap_err().why, Refusal::Gone);
    bench.outputs();
    let (responder, _) = bench.request(A, &format!(r#"{{"jsonrpc":"2.0","id":1,"result":{ACCEPT}}}"#));
    assert_eq!(bench.server.notify(bench.now, responder.key(), note(5.0)).unwrap_err().why, Refusal::NotIncreasing);
    bench.server.notify(bench.now, responder.key(), note(5.5)).unwrap();
}

// covers: CANC-B-010, B-066
#[test]
fn cancelled_request_cancels_its_input_requests() {
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
    let mut bench = Bench::new().initialized(A, "2025-11-25", ELICITS);
    let (responder, _) = bench.request(A, CALL);
    bench.answer(responder, ask("q"));
    bench.outputs();
    bench.item(A, read(cancel));
    let outputs = bench.outputs();
    assert_eq!(outputs.len(), 1, "{outputs:?}");
    assert_eq!(on(A, &outputs[0]).unwrap(), cancel);
    bench.item(A, read(&format!(r#"{{"jsonrpc":"2.0","id":1,"result":{ACCEPT}}}"#)));
    assert_eq!(bench.codes(), ["late-answer"]);
    assert!(bench.at_rest());
    // The end of the exchange also leaves no state.
    let (responder, _) = bench.request(A, CALL);
    bench.answer(responder, ask("q"));
    bench.outputs();
    bench.handle_event(A, failed());
    assert!(bench.outputs().is_empty() && bench.at_rest());
}

// covers: TIME-B-001, TIME-B-002, B-067
#[test]
fn input_request_times_out() {
    let mut bench = Bench::with(|config| config.limits.server.handler_deadline = Some(Duration::from_secs(10)));
    bench = bench.initialized(A, "2025-11-25", ELICITS);
    let (responder, _) = bench.request(A, CALL);
    bench.pass(Duration::from_secs(6));
    bench.answer(responder, ask("q"));
    bench.outputs();
    // The deadline of the handler does not run while the client answers.
    bench.pass(Duration::from_secs(200));
    let (responder, _) = bench.request(A, &format!(r#"{{"jsonrpc":"2.0","id":1,"result":{ACCEPT}}}"#));
    assert_eq!(bench.server.poll_timeout(), Some(bench.now + Duration::from_secs(4)));
    bench.answer(responder, ask("q2"));
    bench.outputs();
    bench.pass(Duration::from_secs(300));
    let outputs = bench.outputs();
    assert!(matches!(&outputs[0], Output::Event(Event::Diagnostic(d)) if d.kind == DiagnosticKind::AskTimeout));
    assert!(on(A, &outputs[1]).unwrap().contains(r#""method":"notifications/cancelled","params":{"requestId":2}"#));
    assert_eq!(error(&on(A, &outputs[2]).unwrap()).code, -32603);
    assert!(outputs.len() == 3 && bench.at_rest());
}

// covers: B-071
#[test]
fn malformed_response_ends_the_wait() {
    let mut bench = Bench::new().initialized(A, "2025-11-25", ELICITS);
    let (responder, _) = bench.request(A, CALL);
    bench.answer(responder, ask("q"));
    bench.outputs();
    let (_, incoming) = bench.request(A, r#"{"jsonrpc":"2.0","id":1,"result":{"action":"#);
    assert!(incoming.inputs["q"].is_err());
}

// covers: MRTR-S-004
#[test]
fn empty_input_request_reenters_up_to_the_limit() {
    let mut bench = Bench::with(|config| config.limits.server.max_rounds = 2).initialized(A, "2025-11-25", "{}");
    let nothing = || Outcome::NeedInput { requests: vec![], state: None };
    let (mut responder, _) = bench.request(A, CALL);
    for _ in 0..2 {
        bench.answer(responder, nothing());
        (responder, _) = bench.handed();
    }
    bench.answer(responder, nothing());
    assert_eq!(error(&bench.heard(A)[0]).code, -32603);
    assert!(bench.at_rest());
}

// covers: B-173
#[test]
fn shutdown_cancels_input_requests_and_answers() {
    let mut bench = Bench::new().initialized(A, "2025-11-25", ELICITS);
    let (responder, _) = bench.request(A, CALL);
    bench.answer(responder, ask("q"));
    bench.outputs();
    bench.server.shutdown(bench.now, Duration::ZERO);
    let outputs = bench.outputs();
    assert!(on(A, &outputs[0]).unwrap().contains("notifications/cancelled"));
    assert_eq!(error(&on(A, &outputs[1]).unwrap()).code, -32603);
    assert_eq!(outputs[2..], [Output::Send(A, Outbound::End), Output::Event(Event::Terminated)]);
}

// covers: ELIC-S-030, B-228
#[test]
fn every_elicitation_action_is_read() {
    let (_, request) = question("q");
    for (answer, expected) in
        [(r#"{"action":"decline"}"#, ElicitResult::Decline), (r#"{"action":"cancel"}"#, ElicitResult::Cancel)]
    {
        let answer = request.read_answer(&object(answer).into()).unwrap();
        assert_eq!(answer, InputAnswer::Elicitation(expected));
    }
}

// covers: MRTR-S-009, MRTR-S-010, MRTR-S-012, B-187
#[test]
fn params_size_is_checked_before_the_sealed_state() {
    let mut bench = Bench::with(|config| config.limits.server.max_state_params = 100).open(A);
    let line = |filler: usize, rest: &str| {
        let arguments = format!(r#","name":"t","arguments":"{}"{rest}"#, "a".repeat(filler));
        modern_with("1", "tools/call", ELICITS, &arguments)
    };
    let most = 100 - "namearguments".len() - r#""t""#.len() - r#""""#.len();
    let (responder, _) = bench.request(A, &line(most, ""));
    bench.answer(responder, ask("q"));
    let state = state_of(&bench.heard(A)[0]);
    let (mut responder, mut incoming) = bench.request(A, &line(most, &format!(r#","requestState":"{state}""#)));
    responder.open(&mut incoming).unwrap();
    bench.complete(responder, "{}");
    // With one more byte, the request cannot ask for input, and its state is not read.
    let (responder, _) = bench.request(A, &line(most + 1, ""));
    bench.heard(A);
    bench.answer(responder, ask("q"));
    assert_eq!(error(&bench.heard(A)[0]).code, -32603);
    for state in [state.as_str(), "junk"] {
        let (mut responder, mut incoming) = bench.request(A, &line(most + 1, &format!(r#","requestState":"{state}""#)));
        let error = responder.open(&mut incoming).unwrap_err();
        assert_eq!((error.code, error.message.contains("too large")), (-32602, true));
        bench.answer(responder, Outcome::Error(error));
        assert!(bench.codes().contains(&"bad-state"));
    }
}

// covers: MRTR-S-024
#[test]
fn unrequested_input_responses_reach_no_handler() {
    let mut bench = Bench::new().open(A);
    let line = call("1", &format!(r#","inputResponses":{{"q":{ACCEPT}}}"#));
    bench.item(A, read(&line));
    let outputs = bench.outputs();
    assert!(
        matches!(&outputs[0], Output::Event(Event::Diagnostic(d)) if d.kind == DiagnosticKind::UnexpectedResponse),
        "{outputs:?}"
    );
    let Some(Output::Event(Event::Request(mut responder, mut incoming))) = outputs.into_iter().nth(1) else { panic!() };
    assert!(incoming.inputs.is_empty() && incoming.nonce.is_none());
    responder.open(&mut incoming).unwrap();
    assert!(incoming.inputs.is_empty() && incoming.nonce.is_none());
    bench.complete(responder, "{}");
    // With `ServerCompat::unasked_answers` they reach the handler.
    let mut bench = Bench::with(|config| config.compat.unasked_answers = true).open(A);
    let (_, incoming) = bench.request(A, &line);
    assert_eq!(incoming.inputs["q"].as_ref().unwrap().as_str(), ACCEPT);
}

// covers: MRTR-S-010, MRTR-S-012, MRTR-S-024
#[test]
fn nonce_identifies_a_replayed_state() {
    let mut bench = Bench::new().open(A);
    let first = asked(&mut bench, ask("q"));
    let second = asked(&mut bench, ask("q"));
    let mut nonce = |state: &str| {
        let (mut responder, mut incoming) = bench.request(A, &retry("1", state, &format!(r#"{{"q":{ACCEPT}}}"#)));
        responder.open(&mut incoming).unwrap();
        bench.answer(responder, ask("r"));
        (incoming.nonce.unwrap(), state_of(&bench.heard(A)[0]))
    };
    let (once, third) = nonce(&first);
    assert_eq!(nonce(&first).0, once, "the same state, played again");
    let nonces = BTreeSet::from([once, nonce(&second).0, nonce(&third).0]);
    assert_eq!(nonces.len(), 3, "each round has its own");
    // Before 2026-07-28 the engine keeps the state itself.
    let mut bench = Bench::new().initialized(A, "2025-11-25", ELICITS);
    let (responder, incoming) = bench.request(A, CALL);
    assert_eq!(incoming.nonce, None);
    bench.answer(responder, ask("q"));
    bench.heard(A);
    bench.item(A, read(&format!(r#"{{"jsonrpc":"2.0","id":1,"result":{ACCEPT}}}"#)));
    assert_eq!(bench.handed().1.nonce, None);
}

// covers: MRTR-S-010, MRTR-S-012
#[test]
fn state_is_bound_to_the_server_name() {
    let named = |name: &'static str| {
        move |config: &mut ServerConfig| {
            config.info = Implementation::new(name, "1.0");
            config.state_keys = Some([9; 32].into());
        }
    };
    let state = asked(&mut Bench::with(named("pay")).open(A), ask("q"));
    for (name, good) in [("pay", true), ("log", false)] {
        let mut bench = Bench::seeded([8; 32], named(name)).open(A);
        let (mut responder, mut incoming) = bench.request(A, &retry("1", &state, "{}"));
        assert_eq!(responder.open(&mut incoming).is_ok(), good, "{name}");
    }
}

// covers: MRTR-S-010, MRTR-S-012
#[test]
fn request_goes_on_under_the_key_it_began_with() {
    const OLD: [u8; 32] = [1; 32];
    const NEW: [u8; 32] = [2; 32];
    let fleet = |seed: u8, current: [u8; 32], previous: Option<[u8; 32]>| {
        Bench::seeded([seed; 32], move |config| config.state_keys = Some(StateKeys { current, previous })).open(A)
    };
    // The steps of a rotation: old and new servers run beside each other in each.
    let old = || fleet(1, OLD, None);
    let knows = || fleet(2, OLD, Some(NEW));
    let turned = || fleet(3, NEW, Some(OLD));
    let new = || fleet(4, NEW, None);
    type Servers<'a> = &'a dyn Fn() -> Bench;
    let rows: [(Servers<'_>, Servers<'_>, bool); 8] = [
        (&old, &knows, true),
        (&knows, &old, true),
        (&knows, &turned, true),
        (&turned, &knows, true),
        (&turned, &new, true),
        (&new, &turned, true),
        (&old, &new, false),
        (&new, &old, false),
    ];
    for (nth, (asks, takes, good)) in rows.into_iter().enumerate() {
        let mut bench = asks();
        let (responder, incoming) = bench.request(A, &call("1", ""));
        let page = incoming.elicitation_id("pay");
        bench.answer(responder, ask("q"));
        let state = state_of(&bench.heard(A)[0]);
        let mut bench = takes();
        let (mut responder, mut incoming) = bench.request(A, &retry("2", &state, &format!(r#"{{"q":{ACCEPT}}}"#)));
        assert_eq!(responder.open(&mut incoming).is_ok(), good, "row {nth}");
        if !good {
            continue;
        }
        // The next round is sealed under the same key, so a server that knows only that one serves
        // it.
        assert_eq!(incoming.elicitation_id("pay"), page, "row {nth}");
        bench.answer(responder, ask("r"));
        let state = state_of(&bench.heard(A)[0]);
        let (mut responder, mut incoming) = asks().request(A, &retry("3", &state, &format!(r#"{{"r":{ACCEPT}}}"#)));
        responder.open(&mut incoming).unwrap();
        assert_eq!((incoming.elicitation_id("pay"), incoming.rounds), (page, 2), "row {nth}");
        drop(responder);
    }
}

// covers: MRTR-S-009, MRTR-S-010
#[test]
fn state_is_bound_to_params_at_every_depth() {
    let deep = |inner: &str| {
        let (open, close) = (r#"[{"b":"#.repeat(60), r#","a":[]}]"#.repeat(60));
        modern_with("1", "tools/call", ELICITS, &format!(r#","arguments":{open}{inner}{close}"#))
    };
    let mut bench = Bench::new().open(A);
    let (responder, _) = bench.request(A, &deep(r#"{"x":1,"y":[2,"3"]}"#));
    bench.answer(responder, ask("q"));
    let state = state_of(&bench.heard(A)[0]);
    let rows = [
        (r#"{"x":1,"y":[2,"3"]}"#, true),
        (r#"{"y":[2,"3"],"x":1}"#, true),
        (r#"{"\u0078":1,"y":[2,"3"]}"#, true),
        (r#"{"x":1,"y":["3",2]}"#, false),
        (r#"{"x":1,"y":[2,"3",[]]}"#, false),
        (r#"{"x":1,"y":[[2,"3"]]}"#, false),
        (r#"{"x":1,"y":[2],"z":"3"}"#, false),
        (r#"{"x":2,"y":[2,"3"]}"#, false),
        (r#"{"x":"1","y":[2,"3"]}"#, false),
    ];
    for (inner, good) in rows {
        let line = deep(inner).replacen(r#","arguments""#, &format!(r#","requestState":"{state}","arguments""#), 1);
        let (mut responder, mut incoming) = bench.request(A, &line);
        assert_eq!(responder.open(&mut incoming).is_ok(), good, "{inner}");
        bench.complete(responder, "{}");
    }
}
