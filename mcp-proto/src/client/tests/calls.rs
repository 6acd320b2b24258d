use super::*;
use crate::Call;

fn progress(token: &Value, n: f64) -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": token, "progress": n}})
}

fn cancelled(rig: &Rig) -> Vec<Value> {
    let named = |m: &&Value| m["method"] == "notifications/cancelled";
    rig.sent.iter().filter(named).map(|m| m["params"]["requestId"].clone()).collect()
}

fn timed_out(rig: &Rig, call: CallId) -> Duration {
    match rig.outcome(call) {
        Err(CallError::Timeout { after, sent: Sent::Maybe, .. }) => *after,
        other => panic!("{other:?}"),
    }
}

// covers: RPC-B-001, RPC-B-003, RPC-B-004, RPC-B-005, RPC-C-006, S0-08, S0-10, S2-01, B-048, R-03
#[test]
fn responses_in_any_order_reach_their_calls() {
    let mut rig = Rig::legacy();
    let calls: Vec<CallId> = (0..3).map(|_| rig.echo()).collect();
    let ids: Vec<Value> = rig.sent.iter().map(|m| m["id"].clone()).collect();
    assert!(ids[0] != ids[1] && ids[1] != ids[2] && ids.iter().all(Value::is_i64));
    assert!(rig.sent.iter().all(|m| m["jsonrpc"] == "2.0" && m["method"] == "tools/call"));
    for n in [2, 0, 1] {
        rig.answer(&ids[n], json!({"content": [], "n": n}));
    }
    for (n, call) in calls.iter().enumerate() {
        let result = rig.outcome(*call).as_ref().unwrap();
        assert_eq!(Object::read(&result.json).unwrap().get("n"), Some((n as i64).into()));
    }
    rig.echo();
    assert!(!ids.contains(&rig.last_id()));
}

// covers: S0-48, S2-03, RPC-B-039, RPC-B-034, B-275, R-23
#[test]
fn server_errors_differ_from_local_errors() {
    let mut rig = Rig::legacy();
    let call = rig.echo();
    let id = rig.last_id();
    rig.say(
        json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32001, "message": "Request timed out", "data": [1]}}),
    );
    let outcome = rig.outcome(call).clone().unwrap_err();
    assert_eq!(outcome.to_string(), "MCP error -32001: Request timed out");
    assert!(matches!(outcome, CallError::Rpc(e) if e.code == -32001 && e.data == RawJson::parse("[1]").ok()));
    let call = rig.echo();
    rig.tick(ms(30_000));
    assert!(matches!(rig.outcome(call), Err(CallError::Timeout { .. })));
}

// covers: B-044, B-047, RPC-B-009
#[test]
fn response_id_must_match_in_type_and_value() {
    let mut rig = Rig::new(given_with(|compat| compat.match_text_ids = false));
    rig.open();
    let id = rig.last_id().as_i64().unwrap();
    for wrong in [json!(id.to_string()), json!(0), json!(""), json!("0"), json!(-id), json!(i64::MIN), json!(i64::MAX)]
    {
        rig.answer(&wrong, discover(&["2026-07-28"]));
    }
    assert_eq!(rig.client.state(), State::Probing);
    assert_eq!(rig.diagnostics(), [DiagnosticKind::UnknownId; 7]);
}

// covers: B-045, R-03
#[test]
fn decimal_string_id_matches_a_pending_number() {
    let mut rig = Rig::legacy();
    let calls = [rig.echo(), rig.echo()];
    let ids: Vec<i64> = rig.sent.iter().map(|m| m["id"].as_i64().unwrap()).collect();
    rig.answer(&json!(format!("0{}", ids[0])), json!({}));
    assert_eq!(rig.diagnostics(), [DiagnosticKind::UnknownId], "only the canonical decimal");
    for id in &ids {
        rig.answer(&json!(id.to_string()), json!({}));
    }
    assert!(calls.iter().all(|call| rig.outcome(*call).is_ok()));
    assert_eq!(rig.diagnostics(), [DiagnosticKind::UnknownId, DiagnosticKind::TextId]);
    rig.answer(&json!(ids[0].to_string()), json!({}));
    rig.assert_at_rest();
}

// covers: R-03
#[test]
fn snowflake_ids_are_unique_increasing_strings() {
    let given = given_with(|compat| compat.ids = IdPolicy::Snowflake { node: 5 });
    let config = ClientConfig { origin_unix: Duration::from_secs(1_800_000_000), ..given };
    let mut rig = Rig::ready(ProtocolVersion::V2025_11_25, config);
    rig.echo();
    rig.echo();
    rig.tick(ms(1));
    rig.echo();
    let ids: Vec<u64> = rig.sent.iter().map(|m| m["id"].as_str().unwrap().parse().unwrap()).collect();
    assert!(ids[0] < ids[1] && ids[1] < ids[2]);
    assert_eq!(ids[2] >> 22, 1_800_000_000_001);
    assert_eq!(ids[2] >> 12 & 0x3ff, 5);
}

// covers: TIME-B-001, TIME-B-002, TIME-B-003, S0-28, S0-42, S0-63, B-059, B-060, CANC-C-001,
// CANC-C-002, S2-43, R-06
#[test]
fn call_times_out_exactly_and_is_cancelled_once() {
    for mut rig in [Rig::legacy(), Rig::modern()] {
        let default = rig.echo();
        let own = rig.call(tools::call("slow").timeout(ms(61_500)));
        let never = rig.call(tools::call("never").timeout(None));
        let ids: Vec<Value> = rig.sent.iter().map(|m| m["id"].clone()).collect();
        assert_eq!(rig.client.poll_timeout(), Some(rig.now + ms(30_000)));
        assert_eq!(rig.client.timeout_reason(), Some(Timer::Call(default)));
        rig.tick(ms(29_999));
        assert!(!rig.has_ended(default));
        rig.tick(ms(1));
        assert_eq!(timed_out(&rig, default), ms(30_000));
        assert_eq!(cancelled(&rig), [ids[0].clone()]);
        rig.tick(ms(31_500));
        assert_eq!(timed_out(&rig, own), ms(61_500));
        assert_eq!(cancelled(&rig), [ids[0].clone(), ids[1].clone()]);
        assert_eq!(rig.client.poll_timeout(), None);
        rig.tick(Duration::from_secs(1 << 40));
        assert!(!rig.has_ended(never));
    }
}

// covers: B-059
#[test]
fn zero_timeout_fires_at_once_and_the_maximum_never() {
    let mut rig = Rig::legacy();
    let zero = rig.call(tools::call("x").timeout(Duration::ZERO));
    let max = rig.call(tools::call("x").timeout(Duration::MAX));
    assert!(!rig.has_ended(zero));
    rig.tick(Duration::ZERO);
    assert_eq!(timed_out(&rig, zero), Duration::ZERO);
    rig.tick(Duration::from_secs(1 << 50));
    assert!(!rig.has_ended(max));
}

#[test]
fn response_before_the_tick_wins_over_the_timer() {
    let mut rig = Rig::legacy();
    let call = rig.echo();
    let id = rig.last_id();
    rig.now = rig.now + ms(60_000);
    rig.answer(&id, json!({}));
    rig.tick(Duration::ZERO);
    assert!(rig.outcome(call).is_ok());
    assert!(cancelled(&rig).is_empty());
}

// covers: CANC-B-012, CANC-B-013, CANC-C-006, CANC-B-007, CANC-B-014, B-052, B-065, S0-29, S0-43,
// S0-64, S0-13
#[test]
fn cancelled_call_ends_at_once_and_ignores_its_response() {
    for mut rig in [Rig::legacy(), Rig::modern()] {
        let call = rig.echo();
        let other = rig.echo();
        let id = rig.sent[0]["id"].clone();
        // Nothing is being written, and the cancellation does not wait for it.
        rig.handle_event(rig.exchange(), ExchangeEvent::Unsent(usize::MAX));
        rig.client.cancel(rig.now, call, Some("changed my mind"));
        rig.client.cancel(rig.now, call, None);
        rig.drain();
        assert_eq!(rig.outcome(call).clone().unwrap_err().to_string(), "cancelled: changed my mind");
        assert_eq!(cancelled(&rig), core::slice::from_ref(&id), "once");
        assert_eq!(rig.sent.last().unwrap()["params"]["reason"], "changed my mind");
        rig.answer(&id, json!({}));
        assert_eq!(rig.diagnostics(), [DiagnosticKind::LateAnswer]);
        assert!(!rig.has_ended(other));
        rig.client.cancel(rig.now, CallId(999), None);
        rig.drain();
        assert_eq!(cancelled(&rig).len(), 1, "only what was called is cancelled");
    }
}

// covers: S0-30, R-06
#[test]
fn local_only_cancellation_sends_nothing() {
    let config = given_with(|compat| compat.cancel_signal = CancelSignal::LocalOnly);
    let mut rig = Rig::ready(ProtocolVersion::V2025_11_25, config);
    let call = rig.echo();
    rig.client.cancel(rig.now, call, None);
    rig.drain();
    assert!(matches!(rig.outcome(call), Err(CallError::Cancelled { reason: None })));
    assert!(cancelled(&rig).is_empty());
}

#[test]
fn call_cancelled_before_it_was_sent_sends_nothing() {
    let mut rig = Rig::program();
    let call = rig.echo();
    rig.client.cancel(rig.now, call, None);
    rig.open();
    rig.answer(&rig.last_id(), discover(&["2026-07-28"]));
    assert_eq!(rig.methods(), ["server/discover"]);
    assert!(matches!(rig.outcome(call), Err(CallError::Cancelled { .. })));
}

// covers: PROG-B-002
#[test]
fn running_calls_have_different_progress_tokens() {
    for mut rig in [Rig::legacy(), Rig::modern()] {
        let first = rig.call(tools::call("x").progress());
        for _ in 0..20 {
            rig.call(tools::call("x").progress());
        }
        rig.client.cancel(rig.now, first, None);
        rig.call(tools::call("x").progress());
        rig.drain();
        let tokens: Vec<String> =
            rig.sent.iter().filter_map(|m| m.pointer("/params/_meta/progressToken")).map(Value::to_string).collect();
        let distinct: std::collections::BTreeSet<&String> = tokens.iter().collect();
        assert_eq!((tokens.len(), distinct.len()), (22, 22), "{tokens:?}");
    }
}

// covers: PROG-B-001, PROG-B-004, PROG-B-005, PROG-B-008, B-058, B-288
#[test]
fn progress_reaches_the_call_with_its_token() {
    for mut rig in [Rig::legacy(), Rig::modern()] {
        let quiet = rig.echo();
        assert_eq!(rig.sent[0].pointer("/params/_meta/progressToken"), None, "nobody listens");
        let a = rig.call(tools::call("a").progress());
        let b = rig.call(
            tools::call("b").progress().param("_meta", RawJson::encode(&json!({"progressToken": 1, "own": true}))),
        );
        let tokens: Vec<Value> = rig.sent[1..].iter().map(|m| m["params"]["_meta"]["progressToken"].clone()).collect();
        assert!(tokens.iter().all(Value::is_i64) && tokens[0] != tokens[1]);
        assert_eq!(rig.sent[2]["params"]["_meta"]["own"], true);
        let params = json!({"progressToken": tokens[1], "progress": 0.5, "total": 2.5, "message": "half"});
        rig.say(json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}));
        rig.say(progress(&tokens[0], 1.0));
        let told: Vec<(CallId, f64)> = rig
            .events
            .iter()
            .filter_map(|event| match event {
                Event::Progress { call, progress } => Some((*call, progress.progress)),
                _ => None,
            })
            .collect();
        assert_eq!(told, [(b, 0.5), (a, 1.0)]);
        assert!(!rig.has_ended(quiet));
    }
}

// covers: B-053, B-054, PROG-B-003, PROG-B-006, PROG-B-010, B-064
#[test]
fn invalid_progress_is_only_reported() {
    let mut rig = Rig::legacy();
    let call = rig.call(tools::call("a").progress());
    let token = rig.last_id();
    rig.say(progress(&json!("nobody"), 1.0));
    rig.say(progress(&json!(token.to_string()), 1.0));
    rig.say(progress(&token, 2.0));
    rig.say(progress(&token, 2.0));
    rig.say(json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": token, "progress": "x"}}));
    rig.say(json!({"jsonrpc": "2.0", "method": "notifications/progress"}));
    rig.answer(&token, json!({"content": []}));
    rig.say(progress(&token, 3.0));
    let kinds = [
        DiagnosticKind::UnknownProgress,
        DiagnosticKind::UnknownProgress,
        DiagnosticKind::StaleProgress,
        DiagnosticKind::BadParams,
        DiagnosticKind::UnknownProgress,
        DiagnosticKind::UnknownProgress,
    ];
    assert_eq!(rig.diagnostics(), kinds);
    let told = rig.events.iter().filter(|event| matches!(event, Event::Progress { .. })).count();
    assert_eq!(told, 1);
    assert!(rig.outcome(call).is_ok());
    assert_eq!(rig.client.state(), State::Ready);
}

// covers: B-056, B-057, TIME-B-004, TIME-B-005
#[test]
fn progress_resets_the_timeout_within_the_total() {
    let mut rig = Rig::legacy();
    let call = rig.call(tools::call("a").timeout(ms(1000)).reset_on_progress(true).max_total(ms(2500)));
    let plain = rig.call(tools::call("b").timeout(ms(1000)).progress());
    let (token, plain_token) = (rig.sent[0]["params"]["_meta"]["progressToken"].clone(), rig.last_id());
    assert!(token.is_i64(), "though nobody listens");
    for n in 1..=3 {
        rig.tick(ms(900));
        rig.say(progress(&token, f64::from(n)));
        rig.say(progress(&plain_token, f64::from(n)));
        if n == 2 {
            assert_eq!(timed_out(&rig, plain), ms(1000));
        }
    }
    assert_eq!(timed_out(&rig, call), ms(2500), "at 2500, though progress went on");
    assert!(!rig.events.iter().any(|event| matches!(event, Event::Progress { call: c, .. } if *c == call)));
    let call = rig.call(tools::call("a").timeout(None).reset_on_progress(true));
    rig.tick(ms(599_999));
    assert!(!rig.has_ended(call));
    rig.tick(ms(1));
    assert_eq!(timed_out(&rig, call), ms(600_000), "the default total");
}

// covers: B-057, TIME-B-005
#[test]
fn ended_call_leaves_no_timer() {
    let mut rig = Rig::legacy();
    let total = || tools::call("a").timeout(ms(1000)).reset_on_progress(true).max_total(ms(2500));
    let answered = rig.call(total());
    rig.answer(&rig.last_id(), json!({"content": []}));
    assert!(rig.outcome(answered).is_ok());
    rig.assert_at_rest();
    let cancelled = rig.call(total());
    rig.client.cancel(rig.now, cancelled, None);
    rig.drain();
    rig.assert_at_rest();
    let late = rig.call(total());
    rig.tick(ms(1000));
    assert_eq!(timed_out(&rig, late), ms(1000));
    rig.assert_at_rest();
}

// covers: B-071, B-051, RPC-B-013, RPC-B-014, RPC-B-010
#[test]
fn malformed_response_fails_its_call_at_once() {
    let broken = |id: &Value| {
        [
            format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":["#),
            format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":"x","message":"y"}}}}"#),
            format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":1}}}}"#),
            format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}},"error":{{"code":1,"message":"y"}}}}"#),
            format!(r#"{{"id":{id},"result":{{}}}}"#),
        ]
    };
    for n in 0..5 {
        let mut rig = Rig::legacy();
        let call = rig.echo();
        let other = rig.echo();
        let defect = parse(broken(&rig.sent[0]["id"])[n].clone().into(), 128).unwrap_err();
        rig.handle_event(rig.exchange(), ExchangeEvent::Inbound(Inbound::Invalid(defect)));
        assert!(matches!(rig.outcome(call), Err(CallError::Decode(_))), "{n}");
        assert_eq!(rig.diagnostics(), [DiagnosticKind::BadMessage]);
        assert!(!rig.has_ended(other));
    }
}

#[test]
fn malformed_server_request_fails_no_call_with_its_id() {
    let mut rig = Rig::legacy();
    let call = rig.echo();
    let id = rig.last_id();
    let defect = parse(format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping","params":[}}"#).into(), 128).unwrap_err();
    rig.handle_event(rig.exchange(), ExchangeEvent::Inbound(Inbound::Invalid(defect)));
    assert!(!rig.has_ended(call));
}

// covers: RPC-C-022, RPC-C-023, RPC-B-025, B-221
#[test]
fn unknown_result_type_is_invalid() {
    let outcome = |result: Value| {
        let mut rig = Rig::modern();
        let call = rig.echo();
        rig.answer(&rig.last_id(), result);
        rig.outcome(call).clone()
    };
    assert!(outcome(json!({"content": []})).is_ok());
    assert!(outcome(json!({"content": [], "resultType": "complete"})).is_ok());
    for odd in [json!("task"), json!("COMPLETE"), json!(""), json!(7)] {
        assert!(matches!(outcome(json!({"content": [], "resultType": odd})), Err(CallError::Decode(_))));
    }
}

// covers: RPC-B-025, VER-B-012
#[test]
fn result_type_of_an_extension_needs_both_declarations() {
    const EXTENSION: &str = "com.example/later";
    for (ours, theirs, accepted) in
        [(true, true, "later"), (true, false, "later"), (false, true, "later"), (true, true, "other")]
    {
        let mut config = ClientConfig { policy: Policy::Modern, ..ClientConfig::given() };
        if ours {
            config.capabilities.extensions.declare(EXTENSION, Object::new()).unwrap();
        }
        let mut rig = Rig::new(config);
        rig.open();
        let mut discovered = discover(&["2026-07-28"]);
        if theirs {
            discovered["capabilities"]["extensions"] = json!({EXTENSION: {}});
        }
        rig.answer(&rig.last_id(), discovered);
        let call = custom::<Value>("example/do", &Object::new()).accept_result(EXTENSION, accepted);
        let call = rig.call(call);
        rig.answer(&rig.last_id(), json!({"resultType": "later", "ticket": 7}));
        match rig.outcome(call) {
            Ok(result) => assert!(ours && theirs && accepted == "later" && result.json.as_str().contains("ticket")),
            Err(CallError::Decode(_)) => assert!(!(ours && theirs && accepted == "later")),
            other => panic!("{other:?}"),
        }
    }
}

// covers: RPC-B-012, RPC-B-011, B-287, S2-02, TOOL-B-018, TOOL-B-019, TOOL-C-026, TOOL-C-027
#[test]
fn results_are_decoded_leniently_and_without_loss() {
    let mut rig = Rig::modern();
    let calling = rig.client.call(rig.now, tools::call("x")).unwrap();
    let failing = rig.client.call(rig.now, tools::call("x")).unwrap();
    rig.drain();
    let ids: Vec<Value> = rig.sent.iter().map(|m| m["id"].clone()).collect();
    let content = json!([{"type": "text", "text": "a\u{0}b", "annotations": {"priority": 1}}, {"type": "odd", "x": 1}]);
    rig.answer(&ids[0], json!({"content": content, "structuredContent": null, "resultType": "complete", "extra": 1}));
    rig.answer(&ids[1], json!({"isError": true, "content": [{"type": "text", "text": "boom"}]}));
    let outcome = rig.outcome(calling.id()).clone();
    let result = calling.finish(outcome).unwrap();
    assert_eq!(result.first_text(), Some("a\u{0}b"));
    assert_eq!(result.structured, Some(RawJson::null()), "null is not absent");
    assert_eq!(result.content.len(), 2);
    assert_eq!(result.other.get("extra"), Some(1i64.into()));
    let outcome = rig.outcome(failing.id()).clone();
    let failed = failing.finish(outcome).unwrap();
    assert!(failed.is_error, "a tool's own failure is a result, for the model");
    assert_eq!(failed.structured, None);
}

// covers: PAGE-C-001, PAGE-C-003, PAGE-C-004, PAGE-C-006, X-37, B-284, B-285, B-286
#[test]
fn paging_stops_at_a_repeated_cursor_and_at_the_limit() {
    let page = |names: &[&str], cursor: Option<&str>| {
        let tools: Vec<Value> = names.iter().map(|n| json!({"name": n, "inputSchema": {"type": "object"}})).collect();
        match cursor {
            Some(cursor) => json!({"tools": tools, "nextCursor": cursor}),
            None => json!({"tools": tools, "nextCursor": null}),
        }
    };
    let walk = |answers: &[Value], max: usize| -> (Vec<String>, Vec<Value>, bool) {
        let mut rig = Rig::legacy();
        let mut pages = Pages::new(tools::list(), max);
        let (mut names, mut answers) = (vec![], answers.iter());
        while let Some(call) = pages.next() {
            let calling = rig.client.call(rig.now, call).unwrap();
            rig.drain();
            rig.answer(&rig.last_id(), answers.next().expect("one page too many").clone());
            let outcome = rig.outcome(calling.id()).clone();
            if let Err(error) = pages.fetched(calling.finish(outcome)) {
                return (names, vec![error.to_string().into()], false);
            }
            names.extend(core::iter::from_fn(|| pages.pop()).map(|tool| tool.name));
        }
        let cursors = rig.sent.iter().map(|m| m["params"]["cursor"].clone()).collect();
        (names, cursors, true)
    };
    let answers = [page(&["a"], Some("")), page(&[], Some(" x\u{7f}/=\n")), page(&["b", "c"], None)];
    let (names, cursors, whole) = walk(&answers, 1000);
    assert_eq!(names, ["a", "b", "c"]);
    assert_eq!(cursors, [Value::Null, json!(""), json!(" x\u{7f}/=\n")]);
    assert!(whole);
    let (_, error, whole) = walk(&[page(&["a"], Some("k")), page(&["b"], Some("k"))], 1000);
    assert_eq!((error, whole), (vec![json!("the result cannot be decoded: the server repeats a page cursor")], false));
    for (most, text) in [(1, "the list has more than 1 page"), (2, "the list has more than 2 pages")] {
        let (_, error, whole) = walk(&[page(&["a"], Some("1")), page(&["b"], Some("2"))], most);
        assert_eq!((error, whole), (vec![json!(text)], false));
    }
}

/// Returns whether a key of `_meta` fits the grammar: an optional prefix of labels with dots and a
/// slash, then a name.
fn is_meta_key(key: &str) -> bool {
    let (prefix, name) = key.rsplit_once('/').map_or((None, key), |(prefix, name)| (Some(prefix), name));
    let edge = |c: char| c.is_ascii_alphanumeric();
    let label = |label: &str| {
        label.starts_with(|c: char| c.is_ascii_alphabetic())
            && label.ends_with(edge)
            && label.chars().all(|c| edge(c) || c == '-')
    };
    prefix.is_none_or(|prefix| prefix.split('.').all(label))
        && (name.is_empty() || name.starts_with(edge) && name.ends_with(edge))
}

// covers: META-B-001, META-B-002, META-B-004, META-B-021
#[test]
fn own_metadata_keys_are_well_formed_and_reserved() {
    const BARE: [&str; 4] = ["progressToken", "traceparent", "tracestate", "baggage"];
    let mut count = 0;
    for mut rig in [Rig::legacy(), Rig::modern()] {
        rig.call(tools::call("a").progress());
        rig.call(tools::list());
        for message in &rig.sent {
            let Some(meta) = message.pointer("/params/_meta") else { continue };
            for key in meta.as_object().unwrap().keys() {
                assert!(is_meta_key(key), "{key}");
                assert!(BARE.contains(&key.as_str()) || key.starts_with("io.modelcontextprotocol/"), "{key}");
                count += 1;
            }
        }
    }
    assert_eq!(count, 1 + 4 + 3, "the token in either era, and three members of each modern request");
    for odd in ["-a", "a-", "1a.b/c", "a..b/c", "/c", "a.b-/c", "a/_c", "a_b/c"] {
        assert!(!is_meta_key(odd), "{odd}");
    }
}

// covers: META-B-008, META-B-023
#[test]
fn unknown_metadata_is_passed_on_unchanged() {
    let odd = json!({"io.modelcontextprotocol/later": [null, {"a": 1}], "com.mcp.tools/x": 7, "traceparent": false, "own": "x"});
    let mut rig = Rig::modern();
    let calling = rig.client.call(rig.now, tools::call("x")).unwrap();
    rig.drain();
    let block = json!({"type": "text", "text": "t", "_meta": odd});
    rig.answer(&rig.last_id(), json!({"content": [block], "_meta": odd}));
    let outcome = rig.outcome(calling.id()).clone();
    let result = calling.finish(outcome).unwrap();
    let same = |meta: Option<RawJson>| serde_json::from_slice::<Value>(meta.unwrap().as_bytes()).unwrap() == odd;
    assert!(same(result.other.get("_meta")));
    assert!(same(Object::read(&result.content[0].write()).unwrap().get("_meta")));

    let calling = rig.client.call(rig.now, tools::list()).unwrap();
    rig.drain();
    rig.answer(&rig.last_id(), json!({"tools": [{"name": "a", "inputSchema": {"type": "object"}, "_meta": odd}]}));
    let outcome = rig.outcome(calling.id()).clone();
    let page = calling.finish(outcome).unwrap();
    assert!(same(Some(page.elements[0].meta.to_json())));

    let call = rig.call(tools::call("x").progress());
    let params = json!({"progressToken": rig.last_id(), "progress": 1, "_meta": odd});
    rig.say(json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}));
    assert!(matches!(rig.events.last(), Some(Event::Progress { call: c, .. }) if *c == call));
    assert!(rig.diagnostics().is_empty());
}

#[test]
fn custom_methods_are_ordinary_calls() {
    let mut rig = Rig::modern();
    let calling = rig.client.call(rig.now, custom::<Value>("acme/sum", &json!({"a": 1}))).unwrap();
    rig.drain();
    assert_eq!(rig.sent[0]["method"], "acme/sum");
    assert_eq!(rig.sent[0]["params"]["a"], 1);
    assert!(rig.sent[0]["params"]["_meta"].is_object());
    rig.answer(&rig.last_id(), json!({"sum": [1, 2]}));
    let outcome = rig.outcome(calling.id()).clone();
    assert_eq!(calling.finish(outcome).unwrap(), json!({"sum": [1, 2]}));
    let unencodable: Call<Custom<Value>> = custom("acme/sum", &1);
    let refused = rig.client.call(rig.now, unencodable).unwrap_err();
    assert!(matches!(refused.why, Refusal::Unencodable(_)));
}

// covers: PING-B-001, PING-S-006
#[test]
fn ping_uses_the_method_of_its_era() {
    let mut rig = Rig::legacy();
    let call = rig.call(ping());
    assert_eq!(rig.methods(), ["ping"]);
    assert!(rig.sent[0].get("params").is_none());
    rig.answer(&rig.last_id(), json!({}));
    assert!(rig.outcome(call).is_ok());
    let mut rig = Rig::modern();
    let calling = rig.client.call(rig.now, ping()).unwrap();
    rig.drain();
    assert_eq!(rig.methods(), ["server/discover"]);
    rig.answer(&rig.last_id(), discover(&["2026-07-28"]));
    let outcome = rig.outcome(calling.id()).clone();
    assert_eq!(calling.finish(outcome), Ok(()));
}
