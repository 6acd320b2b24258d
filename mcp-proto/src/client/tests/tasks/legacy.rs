//! The tasks of 2025-11-25.

use super::*;

fn legacy_of(capabilities: Value, config: ClientConfig) -> Rig {
    let mut rig = Rig::new(ClientConfig { versions: Versions::new([ProtocolVersion::V2025_11_25]), ..config });
    rig.open();
    let mut result = initialized("2025-11-25");
    result["capabilities"] = capabilities;
    rig.answer(&rig.last_id(), result);
    rig.clear();
    rig
}

fn legacy() -> Rig {
    legacy_of(json!({"tools": {}, "tasks": {"requests": {"tools": {"call": {}}}, "cancel": {}}}), config())
}

fn task(status: &str) -> Value {
    json!({
        "taskId": "t-1", "status": status, "createdAt": "2026-11-29T10:00:00Z",
        "lastUpdatedAt": "2026-11-29T10:00:00Z", "ttl": 60_000, "pollInterval": 1_000,
    })
}

fn created() -> Value {
    json!({"task": task("working")})
}

impl Rig {
    /// The client lists these tools: each with its word for tasks.
    fn list(&mut self, tools: &[(&str, Option<&str>)]) {
        self.call(tools::list());
        let tool = |(name, support): &(&str, Option<&str>)| {
            let mut tool = json!({"name": name, "inputSchema": {"type": "object"}});
            if let Some(support) = support {
                tool["execution"] = json!({"taskSupport": support});
            }
            tool
        };
        let tools: Vec<Value> = tools.iter().map(tool).collect();
        self.answer(&self.last_id(), json!({"tools": tools}));
        self.sent.clear();
    }

    fn asks_for_task(&mut self, call: Call<tools::CallTool>) -> bool {
        self.call(call);
        self.sent.last().unwrap()["params"].get("task").is_some()
    }
}

// covers: TASKL-C-005, TASKL-C-007, TASKL-C-008, TASKL-B-012
#[test]
fn tool_says_whether_its_calls_ask_for_tasks() {
    let mut rig = legacy();
    rig.list(&[("must", Some("required")), ("may", Some("optional")), ("not", Some("forbidden")), ("silent", None)]);
    assert!(rig.asks_for_task(tools::call("must")));
    assert!(!rig.asks_for_task(tools::call("may")));
    assert!(rig.asks_for_task(tools::call("may").as_task()));
    assert!(!rig.asks_for_task(tools::call("not").as_task()));
    assert!(!rig.asks_for_task(tools::call("silent").as_task()));
    assert!(rig.asks_for_task(tools::call("unlisted").as_task()));
    assert!(!rig.asks_for_task(tools::call("unlisted")));
}

// covers: TASKL-C-004, TASKL-B-002, TASKL-B-003
#[test]
fn no_task_is_asked_for_without_both_capabilities() {
    let bare = json!({"tools": {}});
    let lists_only = json!({"tools": {}, "tasks": {"list": {}}});
    let both = json!({"tools": {}, "tasks": {"requests": {"tools": {"call": {}}}}});
    for mut rig in [
        legacy_of(bare, config()),
        legacy_of(lists_only, config()),
        legacy_of(both, ClientConfig { tasks: false, ..config() }),
        Rig::ready(ProtocolVersion::V2025_06_18, config()),
    ] {
        rig.list(&[("must", Some("required"))]);
        assert!(!rig.asks_for_task(tools::call("must").as_task()));
        rig.answer(&rig.last_id(), json!({"task": {"taskId": "x"}, "content": []}));
        assert!(rig.events.iter().any(|event| matches!(event, Event::Ended { outcome: Ok(_), .. })));
    }
}

// covers: TASKL-B-018, TASKL-B-019, TASKL-B-022, TASKL-B-024, TASKL-B-031
#[test]
fn outcome_of_a_task_is_fetched_when_it_has_ended() {
    let mut rig = legacy();
    let call = rig.call(tools::call("echo").as_task());
    rig.answer(&rig.last_id(), created());
    rig.state(task("working"));
    rig.state(task("completed"));
    assert_eq!(rig.methods(), ["tasks/get", "tasks/result"]);
    assert!(rig.sent.iter().all(|m| m["params"].get("_meta").is_none()));
    rig.answer(&rig.last_id(), json!({"content": [{"type": "text", "text": "done"}]}));
    assert!(rig.outcome(call).is_ok());
    rig.assert_at_rest();
}

// covers: TASKL-B-026, TASKL-B-027, TASKL-C-029
#[test]
fn questions_come_while_the_client_waits_for_the_outcome() {
    let mut rig = legacy();
    let call = rig.call(tools::call("echo").as_task());
    rig.answer(&rig.last_id(), created());
    rig.state(task("input_required"));
    assert_eq!(rig.methods(), ["tasks/get", "tasks/result"]);
    let result = rig.last_id();
    let mut question = form("a");
    question["jsonrpc"] = json!("2.0");
    question["id"] = json!(7);
    question["params"]["_meta"] = json!({"io.modelcontextprotocol/related-task": {"taskId": "t-1"}});
    rig.say(question);
    let key = rig.questions()[0].0;
    rig.reply(key, accepted("x"));
    assert_eq!(rig.sent.last().unwrap()["id"], 7);
    rig.tick(ms(40_000));
    assert!(!rig.has_ended(call), "the outcome may take as long as the task");
    rig.answer(&result, json!({"content": [], "isError": true}));
    assert!(rig.outcome(call).is_ok());
    rig.assert_at_rest();
}

#[test]
fn failed_task_ends_with_the_error_of_its_request() {
    let mut rig = legacy();
    let call = rig.call(tools::call("echo").as_task());
    rig.answer(&rig.last_id(), created());
    rig.state(task("failed"));
    rig.say(error(&rig.last_id(), -32603));
    assert!(matches!(rig.outcome(call), Err(CallError::Rpc(e)) if e.code == -32603));
    rig.assert_at_rest();
}

// Before the id of the task has arrived nothing can cancel it, and `notifications/cancelled` must
// not.
// covers: TASKL-B-041, CANC-B-009
#[test]
fn abandoned_request_for_a_task_cancels_the_task_that_comes() {
    for times_out in [false, true] {
        let mut rig = legacy();
        let call = rig.call(tools::call("echo").as_task().progress());
        let id = rig.last_id();
        if times_out {
            rig.tick(ms(30_000));
            assert!(matches!(rig.outcome(call), Err(CallError::Timeout { .. })));
        } else {
            rig.client.cancel(rig.now, call, None);
            rig.drain();
            assert!(matches!(rig.outcome(call), Err(CallError::Cancelled { .. })));
        }
        rig.client.cancel(rig.now, call, None);
        rig.drain();
        assert_eq!(rig.methods(), ["tools/call"]);
        assert_eq!(rig.client.running(), 1, "it counts");
        let progress = json!({"progressToken": id, "progress": 1});
        rig.say(json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": progress}));
        assert!(!rig.events.iter().any(|event| matches!(event, Event::Progress { .. })), "it has ended");
        assert_eq!(rig.diagnostics(), []);
        rig.answer(&id, created());
        assert_eq!(rig.methods(), ["tools/call", "tasks/cancel"]);
        rig.answer(&rig.last_id(), task("cancelled"));
        assert!(rig.outcome(call).is_err(), "it ended once");
        rig.assert_at_rest();
    }
}

#[test]
fn abandoned_request_without_a_task_leaves_nothing() {
    for response in [Some(json!({"content": []})), None] {
        let mut rig = legacy();
        let call = rig.call(tools::call("echo").as_task());
        let id = rig.last_id();
        rig.client.cancel(rig.now, call, None);
        rig.drain();
        match response {
            Some(result) => rig.answer(&id, result),
            None => rig.tick(ms(600_000)),
        }
        assert_eq!(rig.methods(), ["tools/call"]);
        assert!(rig.outcome(call).is_err());
        rig.assert_at_rest();
    }
}

// covers: TASKL-B-032, TASKL-B-033
#[test]
fn notification_of_a_status_only_hastens_the_next_request() {
    let mut rig = legacy();
    rig.call(tools::call("echo").as_task());
    rig.answer(&rig.last_id(), created());
    rig.sent.clear();
    let told = |id: &str| {
        let mut params = task("completed");
        params["taskId"] = json!(id);
        json!({"jsonrpc": "2.0", "method": "notifications/tasks/status", "params": params})
    };
    rig.say(told("of-another"));
    assert_eq!(rig.methods(), [""; 0]);
    rig.say(told("t-1"));
    rig.say(told("t-1"));
    assert_eq!(rig.methods(), ["tasks/get"]);
    assert_eq!(rig.diagnostics(), []);
}

// covers: TASKL-B-035, TASKL-B-036, TASKL-B-038
#[test]
fn tasks_are_listed_in_pages_and_cancelled_by_hand() {
    let mut rig = legacy();
    let mut pages = Pages::new(tasks::list(), 10);
    for (cursor, next) in [(None, Some("n/1")), (Some("n/1"), None)] {
        let page = rig.client.call(rig.now, pages.next().unwrap()).unwrap();
        rig.drain();
        assert_eq!(rig.sent.last().unwrap()["params"].get("cursor").and_then(Value::as_str), cursor);
        rig.answer(&rig.last_id(), json!({"tasks": [task("working")], "nextCursor": next}));
        let id = page.id();
        let page = page.finish(rig.outcome(id).clone());
        pages.fetched(page).unwrap();
        assert_eq!(pages.pop().unwrap().id, "t-1");
    }
    assert!(pages.next().is_none());
    let call = rig.call(tasks::cancel("t-1"));
    rig.say(error(&rig.last_id(), -32602));
    assert!(matches!(rig.outcome(call), Err(CallError::Rpc(e)) if e.code == -32602));
}
