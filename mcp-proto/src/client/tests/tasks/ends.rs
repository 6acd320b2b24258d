//! Every way in which a call that is a task ends before the outcome.

use super::*;

impl Rig {
    fn cancel(&mut self, call: CallId) {
        self.client.cancel(self.now, call, Some("no longer needed"));
        self.drain();
    }

    /// The server ends.
    fn lose(&mut self) {
        self.handle_event(self.exchange(), ExchangeEvent::Inbound(Inbound::End));
        self.tick(self.client.config().limits.client.exit_grace);
    }
}

// covers: TASKX-B-027, TASKX-C-029, CANC-B-009
#[test]
fn cancelled_call_cancels_its_task() {
    let mut rig = modern();
    let call = rig.task_call(created(&json!({})));
    rig.cancel(call);
    assert_eq!(*rig.outcome(call), Err(CallError::Cancelled { reason: Some("no longer needed".into()) }));
    assert_eq!(rig.methods(), ["tasks/cancel"]);
    assert_eq!(rig.sent[0]["params"]["taskId"], "t-1");
    rig.answer(&rig.last_id(), json!({"resultType": "complete"}));
    rig.assert_at_rest();
    assert_eq!(rig.diagnostics(), []);
}

#[test]
fn call_that_is_cancelled_while_it_asks_withdraws_its_questions() {
    let mut rig = modern();
    let call = rig.task_call(created(&json!({})));
    rig.state(task("input_required", &json!({"inputRequests": {"a": form("a")}})));
    rig.cancel(call);
    assert!(rig.events.iter().any(|event| matches!(event, Event::InputWithdrawn(_))));
    rig.answer(&rig.last_id(), json!({"resultType": "complete"}));
    rig.assert_at_rest();
}

// The request of the engine itself is cancelled as any other: it is no task.
#[test]
fn request_about_a_task_ends_with_its_call() {
    let mut rig = modern();
    let call = rig.task_call(created(&json!({})));
    rig.poll();
    let open = rig.last_id();
    rig.sent.clear();
    rig.cancel(call);
    assert_eq!(rig.methods(), ["tasks/cancel", "notifications/cancelled"]);
    assert_eq!(rig.sent[1]["params"]["requestId"], open);
    rig.answer(&rig.last_id(), json!({"resultType": "complete"}));
    rig.assert_at_rest();
}

// covers: TASKX-B-017
#[test]
fn time_of_a_task_is_its_own_or_that_of_its_call() {
    let endless = json!({"ttlMs": null});
    for (call, result, total) in [
        (tools::call("echo"), json!({}), ms(60_000)),
        (tools::call("echo").max_total(ms(5_000)), json!({}), ms(5_000)),
        (tools::call("echo"), endless, ms(24 * 3_600_000)),
    ] {
        let mut rig = modern();
        let call = rig.call(call.timeout(None));
        rig.answer(&rig.last_id(), created(&result));
        rig.tick(total - ms(1));
        assert!(!rig.has_ended(call));
        rig.sent.clear();
        rig.tick(ms(1));
        assert!(matches!(rig.outcome(call), Err(CallError::Timeout { after, .. }) if *after == total), "{total:?}");
        assert_eq!(rig.methods()[0], "tasks/cancel");
    }
}

#[test]
fn task_that_comes_after_the_end_of_its_call_is_cancelled() {
    let mut rig = modern();
    let call = rig.echo();
    let id = rig.last_id();
    rig.cancel(call);
    assert_eq!(rig.methods(), ["tools/call", "notifications/cancelled"]);
    rig.answer(&id, created(&json!({})));
    assert_eq!(rig.methods(), ["tools/call", "notifications/cancelled", "tasks/cancel"]);
    assert_eq!(rig.diagnostics(), [DiagnosticKind::LateAnswer]);
    rig.answer(&id, created(&json!({"taskId": "t-2"})));
    assert_eq!(rig.sent.len(), 3, "a response is of use once");
    rig.answer(&rig.last_id(), json!({"resultType": "complete"}));
    rig.assert_at_rest();
    let mut rig = modern_of(ClientConfig { tasks: false, ..config() });
    let call = rig.echo();
    let id = rig.last_id();
    rig.cancel(call);
    rig.answer(&id, created(&json!({})));
    assert_eq!(rig.sent.len(), 2, "the client has no tasks");
}

#[test]
fn client_that_closes_ends_its_calls_once() {
    let mut rig = modern();
    let [waits, asks] = ["t-1", "t-2"].map(|id| rig.task_call(created(&json!({"taskId": id}))));
    rig.client.close(rig.now);
    rig.drain();
    for call in [waits, asks] {
        assert!(matches!(rig.outcome(call), Err(CallError::Closed { sent: Sent::Maybe, .. })));
    }
}

#[test]
fn lost_connection_ends_its_calls_once() {
    let mut rig = modern();
    let call = rig.task_call(created(&json!({})));
    rig.poll();
    rig.lose();
    assert!(matches!(rig.outcome(call), Err(CallError::Closed { .. })));
}

// Each state of a call that is a task, and each thing that can happen in it. The call ends at most
// once, and what is left of it afterwards is nothing.
#[test]
fn every_input_in_every_state_ends_a_call_at_most_once() {
    let begin = |state: &str| {
        let mut rig = modern();
        let call = rig.task_call(created(&json!({})));
        match state {
            "waits" => {}
            "polls" => rig.poll(),
            "asks" => rig.state(task("input_required", &json!({"inputRequests": {"a": form("a")}}))),
            "answers" => {
                rig.state(task("input_required", &json!({"inputRequests": {"a": form("a"), "b": form("b")}})));
                let key = rig.questions()[0].0;
                rig.reply(key, accepted("x"));
            }
            other => panic!("{other}"),
        }
        (rig, call)
    };
    let inputs = [
        "working",
        "input_required",
        "completed",
        "failed",
        "cancelled",
        "unknown",
        "nonsense",
        "error",
        "told",
        "cancel",
        "tick",
        "answer",
        "close",
        "lost",
    ];
    for (state, input) in ["waits", "polls", "asks", "answers"].into_iter().flat_map(|s| inputs.map(|i| (s, i))) {
        let (mut rig, call) = begin(state);
        let open = rig.sent.iter().rev().find(|m| m.get("method").is_some());
        let id = open.map_or(json!(0), |m| m["id"].clone());
        match input {
            "working" => rig.answer(&id, task("working", &json!({}))),
            "input_required" => {
                rig.answer(&id, task("input_required", &json!({"inputRequests": {"c": form("c")}})));
            }
            "completed" => rig.answer(&id, task("completed", &json!({"result": {"content": []}}))),
            "failed" => rig.answer(&id, task("failed", &json!({"error": {"code": 1, "message": "no"}}))),
            "cancelled" => rig.answer(&id, task("cancelled", &json!({}))),
            "unknown" => rig.say(error(&id, -32602)),
            "nonsense" => rig.answer(&id, json!({"status": 7})),
            "error" => rig.say(error(&id, -32601)),
            "told" => rig
                .say(json!({"jsonrpc": "2.0", "method": "notifications/tasks", "params": task("working", &json!({}))})),
            "cancel" => rig.cancel(call),
            "tick" => rig.tick(ms(1_200)),
            "answer" => {
                let open = rig.questions().last().map(|(key, _)| *key);
                open.into_iter().for_each(|key| rig.reply(key, accepted("y")));
            }
            "close" => rig.client.close(rig.now),
            "lost" => rig.lose(),
            other => panic!("{other}"),
        }
        rig.drain();
        if !rig.has_ended(call) {
            rig.cancel(call);
        }
        assert!(rig.outcome(call).is_ok() == (input == "completed" && state == "polls"), "{state} {input}");
        for request in rig.sent.clone() {
            if request["method"] == "tasks/cancel" && rig.client.state() == State::Ready {
                rig.answer(&request["id"], json!({"resultType": "complete"}));
            }
        }
        assert!(rig.client.cx.calls.first().is_none(), "{state} {input}: {:?}", rig.client.cx.calls.first());
        assert_eq!(rig.client.questions(), 0, "{state} {input}");
    }
}
