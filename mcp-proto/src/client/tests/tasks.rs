//! Calls whose result is a task.

mod ends;
mod legacy;
mod told;

use super::*;
use crate::model::elicitation::ElicitResult;
use crate::model::tasks::{self, Detached, TaskHandle, TaskStatus, TaskUpdate};
use crate::rpc::ErrorObject;

fn config() -> ClientConfig {
    ClientConfig { tasks: true, ..ClientConfig::given().with_elicitation() }
}

/// A client with tasks after negotiation with a server of 2026-07-28 that has them.
fn modern() -> Rig {
    modern_of(config())
}

fn modern_of(config: ClientConfig) -> Rig {
    let mut rig = Rig::new(ClientConfig { versions: Versions::new([ProtocolVersion::V2026_07_28]), ..config });
    rig.open();
    let mut result = discover(&["2026-07-28"]);
    result["capabilities"]["extensions"] = json!({"io.modelcontextprotocol/tasks": {}});
    rig.answer(&rig.last_id(), result);
    rig.clear();
    rig
}

fn task(status: &str, more: &Value) -> Value {
    let mut task = json!({
        "taskId": "t-1", "status": status, "createdAt": "2026-11-29T10:00:00Z",
        "lastUpdatedAt": "2026-11-29T10:00:00Z", "ttlMs": 60_000, "pollIntervalMs": 1_000,
    });
    task.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    task
}

/// The result of a call that is a task.
fn created(more: &Value) -> Value {
    let mut task = task("working", more);
    task["resultType"] = json!("task");
    task
}

fn form(name: &str) -> Value {
    json!({"method": "elicitation/create", "params": {
        "mode": "form", "message": name, "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}},
    }})
}

fn accepted(name: &str) -> InputAnswer {
    InputAnswer::Elicitation(ElicitResult::Accept(Object::new().with("name", name)))
}

impl Rig {
    /// Makes a call whose result is this task.
    fn task_call(&mut self, result: Value) -> CallId {
        let call = self.echo();
        self.answer(&self.last_id(), result);
        self.sent.clear();
        call
    }

    /// Waits for the next request about the task, and answers it with this state.
    fn state(&mut self, state: Value) {
        self.poll();
        self.answer(&self.last_id(), state);
    }

    /// Waits for the next request for the state of the task.
    fn poll(&mut self) {
        self.sent.clear();
        let at = self.client.poll_timeout().unwrap();
        self.tick(at - self.now);
        assert_eq!(self.methods(), ["tasks/get"]);
    }

    fn updates(&self) -> Vec<&TaskUpdate> {
        let mut updates = Vec::new();
        for event in &self.events {
            if let Event::Task { update, .. } = event {
                updates.push(&**update);
            }
        }
        updates
    }

    fn handle(&self) -> TaskHandle {
        self.updates().last().unwrap().handle.clone()
    }
}

// covers: TASKX-C-003, TASKX-C-014
#[test]
fn call_that_becomes_a_task_ends_with_its_result() {
    let mut rig = modern();
    let call = rig.echo();
    let declared = &rig.sent[0]["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"]["extensions"];
    assert_eq!(declared, &json!({"io.modelcontextprotocol/tasks": {}}));
    assert!(rig.sent[0]["params"].get("task").is_none());
    rig.answer(&rig.last_id(), created(&json!({})));
    assert!(!rig.has_ended(call));
    assert_eq!(rig.updates()[0].task.status, TaskStatus::Working);
    rig.state(task("working", &json!({"statusMessage": "half"})));
    assert_eq!(rig.sent[0]["params"]["taskId"], "t-1");
    assert_eq!(rig.updates()[1].task.message.as_deref(), Some("half"));
    rig.state(task("completed", &json!({"result": {"content": [{"type": "text", "text": "done"}]}})));
    let outcome = rig.outcome(call).clone();
    let result = CallHandle::<tools::CallTool>::new(call).finish(outcome).unwrap();
    assert_eq!(result.first_text(), Some("done"));
    rig.assert_at_rest();
}

#[test]
fn failed_and_cancelled_tasks_end_their_calls_with_errors() {
    let mut rig = modern();
    let call = rig.task_call(created(&json!({})));
    rig.state(task("failed", &json!({"error": {"code": -32603, "message": "the quota"}})));
    assert!(matches!(rig.outcome(call), Err(CallError::Rpc(e)) if e.message == "the quota"));
    rig.assert_at_rest();
    let call = rig.task_call(created(&json!({})));
    rig.state(task("cancelled", &json!({"statusMessage": "by another"})));
    assert_eq!(*rig.outcome(call), Err(CallError::Cancelled { reason: Some("by another".into()) }));
    rig.assert_at_rest();
}

// covers: TASKX-C-012
#[test]
fn interval_is_that_of_the_server_within_bounds() {
    let second = Some(1_000);
    for (asked, least, most) in
        [(second, 1_000, 1_100), (None, 1_000, 1_100), (Some(0), 50, 55), (Some(4_999), 4_999, 5_499)]
    {
        for _ in 0..20 {
            let mut rig = modern();
            rig.task_call(created(&json!({"pollIntervalMs": asked})));
            let wait = rig.client.poll_timeout().unwrap() - rig.now;
            assert!((ms(least)..=ms(most)).contains(&wait), "{asked:?}: {wait:?}");
        }
    }
    let mut rig = modern();
    rig.echo();
    rig.answer(&rig.last_id(), created(&json!({"pollIntervalMs": u64::MAX, "ttlMs": null})));
    rig.say_watched(&[]);
    let wait = rig.client.poll_timeout().unwrap() - rig.now;
    assert!((ms(3_600_000)..=ms(3_960_000)).contains(&wait), "{wait:?}");
}

impl Rig {
    /// The server acknowledges the last subscription, with these tasks.
    fn say_watched(&mut self, tasks: &[&str]) {
        let listen = self.sent.iter().rev().find(|m| m["method"] == "subscriptions/listen");
        let id = listen.expect("a subscription")["id"].clone();
        self.say(json!({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": {
            "_meta": {"io.modelcontextprotocol/subscriptionId": id}, "notifications": {"taskIds": tasks},
        }}));
    }
}

// The call has no clock of its own then, but each request about the task has.
#[test]
fn request_that_fails_for_a_time_is_repeated_later() {
    let mut rig = modern();
    let call = rig.task_call(created(&json!({"ttlMs": null})));
    for least in [1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000] {
        rig.poll();
        rig.say(error(&rig.last_id(), -32603));
        let wait = rig.client.poll_timeout().unwrap() - rig.now;
        assert!((ms(least)..=ms(least + least / 10)).contains(&wait), "{least}: {wait:?}");
    }
    rig.poll();
    rig.tick(ms(30_000));
    assert!(!rig.has_ended(call), "only the request timed out");
    rig.state(task("completed", &json!({"result": {"content": []}})));
    assert!(rig.outcome(call).is_ok());
    rig.assert_at_rest();
}

#[test]
fn task_that_the_server_does_not_know_is_lost() {
    let mut rig = modern();
    let call = rig.task_call(created(&json!({})));
    rig.poll();
    rig.say(error(&rig.last_id(), -32602));
    assert_eq!(*rig.outcome(call), Err(CallError::TaskLost { id: "t-1".into() }));
    rig.assert_at_rest();
}

// covers: TASKX-C-004
#[test]
fn task_that_was_not_offered_is_an_invalid_result() {
    let undeclared = modern_of(ClientConfig { tasks: false, ..config() });
    let unoffered = Rig::ready(ProtocolVersion::V2026_07_28, config());
    for mut rig in [undeclared, unoffered] {
        let call = rig.echo();
        rig.answer(&rig.last_id(), created(&json!({})));
        assert!(matches!(rig.outcome(call), Err(CallError::Decode(_))));
    }
    let mut rig = modern();
    let call = rig.call(custom::<Value>("prompts/get", &json!({"name": "p"})));
    rig.answer(&rig.last_id(), created(&json!({})));
    assert!(matches!(rig.outcome(call), Err(CallError::Decode(_))), "no task is the result of another method");
    for bad in [json!({"status": "asleep"}), json!({"taskId": null})] {
        let call = rig.echo();
        rig.answer(&rig.last_id(), created(&bad));
        assert!(matches!(rig.outcome(call), Err(CallError::Decode(_))), "{bad}");
    }
    rig.assert_at_rest();
}

// covers: TASKX-C-018, TASKX-C-020, TASKX-C-022
#[test]
fn each_question_is_put_once_and_answered_once() {
    let mut rig = modern();
    let call = rig.task_call(created(&json!({})));
    rig.state(task("input_required", &json!({"inputRequests": {"a": form("a"), "b": form("b")}})));
    let asked: Vec<InputKey> = rig.questions().into_iter().map(|(key, _)| key).collect();
    assert_eq!(asked.len(), 2);
    rig.state(task("input_required", &json!({"inputRequests": {"a": form("a"), "b": form("b")}})));
    assert_eq!(rig.questions().len(), 2, "they were put before");
    rig.sent.clear();
    rig.reply(asked[0], accepted("x"));
    assert_eq!(rig.methods(), ["tasks/update"]);
    let answer = json!({"a": {"action": "accept", "content": {"name": "x"}}});
    assert_eq!(rig.sent[0]["params"]["inputResponses"], answer);
    let update = rig.last_id();
    rig.reply(asked[1], accepted("y"));
    assert_eq!(rig.sent.len(), 1, "one request about a task at a time");
    rig.answer(&update, json!({"resultType": "complete"}));
    assert_eq!(rig.methods(), ["tasks/update", "tasks/update"]);
    assert_eq!(rig.sent[1]["params"]["inputResponses"], json!({"b": {"action": "accept", "content": {"name": "y"}}}));
    rig.answer(&rig.last_id(), json!({"resultType": "complete"}));
    // The server has not seen them yet: an acknowledgement is eventually consistent.
    rig.state(task("input_required", &json!({"inputRequests": {"a": form("a"), "b": form("b"), "c": form("c")}})));
    assert_eq!(rig.questions().len(), 3);
    rig.state(task("working", &json!({})));
    assert_eq!(rig.client.questions(), 0, "the server does not want the third any more");
    rig.state(task("completed", &json!({"result": {"content": []}})));
    assert!(rig.outcome(call).is_ok());
    rig.assert_at_rest();
}

#[test]
fn update_that_failed_for_a_time_is_repeated_if_still_wanted() {
    let mut rig = modern();
    rig.task_call(created(&json!({})));
    rig.state(task("input_required", &json!({"inputRequests": {"a": form("a")}})));
    let key = rig.questions()[0].0;
    rig.reply(key, accepted("x"));
    rig.say(error(&rig.last_id(), -32603));
    rig.sent.clear();
    rig.state(task("input_required", &json!({"inputRequests": {"a": form("a")}})));
    assert_eq!(rig.methods(), ["tasks/get", "tasks/update"]);
    rig.say(error(&rig.last_id(), -32603));
    rig.state(task("working", &json!({})));
    assert_eq!(rig.methods(), ["tasks/get"], "it has arrived");
}

// covers: TASKX-C-019
#[test]
fn question_that_cannot_be_put_ends_the_call_and_the_task() {
    let mut rig = modern();
    let call = rig.task_call(created(&json!({})));
    rig.state(task("input_required", &json!({"inputRequests": {"a": {"method": "roots/list"}}})));
    assert!(matches!(rig.outcome(call), Err(CallError::Input(_))), "the client has no roots");
    assert_eq!(rig.methods(), ["tasks/get", "tasks/cancel"]);
}

// covers: TASKX-C-014
#[test]
fn handle_of_a_detached_call_continues_it_in_another_program() {
    let mut rig = modern();
    let detached = rig.client.call(rig.now, tools::call("echo").detach()).unwrap();
    rig.drain();
    let call = detached.id();
    rig.answer(&rig.last_id(), created(&json!({})));
    let Ok(Detached::Task(handle)) = detached.finish(rig.outcome(call).clone()) else { panic!("a task") };
    assert_eq!(handle.id(), "t-1");
    rig.assert_at_rest();
    assert_eq!(rig.methods(), ["tools/call"], "it is not cancelled");
    let handle = TaskHandle::read(&handle.to_json()).unwrap();
    let mut rig = modern();
    let call = rig.call(tasks::attach(handle));
    rig.state(task("input_required", &json!({"inputRequests": {"a": form("a")}})));
    let key = rig.questions()[0].0;
    rig.reply(key, accepted("x"));
    rig.answer(&rig.last_id(), json!({"resultType": "complete"}));
    rig.state(task("working", &json!({})));
    let handle = rig.handle();
    assert!(!rig.has_ended(call));
    // Another start of the program, and a server that is slow to see the answer.
    let mut rig = modern();
    let call = rig.call(tasks::attach(handle));
    rig.state(task("input_required", &json!({"inputRequests": {"a": form("a")}})));
    assert_eq!(rig.questions().len(), 0, "no question is put twice");
    rig.state(task("completed", &json!({"result": {"content": []}})));
    assert!(rig.outcome(call).is_ok());
    rig.assert_at_rest();
}

#[test]
fn detached_call_without_a_task_has_its_result() {
    let mut rig = modern();
    let detached = rig.client.call(rig.now, tools::call("echo").detach()).unwrap();
    rig.drain();
    rig.answer(&rig.last_id(), json!({"resultType": "complete", "content": []}));
    let call = detached.id();
    assert!(matches!(detached.finish(rig.outcome(call).clone()), Ok(Detached::Result(_))));
}

#[test]
fn handle_of_another_server_is_refused_before_anything_is_sent() {
    let mut rig = modern();
    rig.task_call(created(&json!({})));
    let handle = rig.handle();
    let of_another = TaskHandle { server: "other".into(), ..handle.clone() };
    let at_a_url = TaskHandle { authority: Some("a.test".into()), ..handle.clone() };
    let of_another_era = TaskHandle { version: ProtocolVersion::V2025_11_25, ..handle.clone() };
    for handle in [of_another, at_a_url, of_another_era] {
        let mut rig = modern();
        let call = rig.call(tasks::attach(handle));
        assert_eq!(*rig.outcome(call), Err(CallError::Refused(Refusal::OtherServer)));
        assert_eq!(rig.methods(), [""; 0]);
        rig.assert_at_rest();
    }
    let mut rig = modern_of(ClientConfig { tasks: false, ..config() });
    let call = rig.call(tasks::attach(handle));
    assert_eq!(*rig.outcome(call), Err(CallError::Refused(Refusal::OtherServer)));
}

#[test]
fn tasks_can_be_read_updated_and_cancelled_by_hand() {
    let mut rig = modern();
    let get = rig.client.call(rig.now, tasks::get("t-1")).unwrap();
    rig.drain();
    rig.answer(&rig.last_id(), task("input_required", &json!({"inputRequests": {"a": form("a")}})));
    let id = get.id();
    let state = get.finish(rig.outcome(id).clone()).unwrap();
    assert_eq!((state.task.status, state.questions.len()), (TaskStatus::InputRequired, 1));
    rig.call(tasks::update("t-1", [("a", accepted("x"))]));
    assert_eq!(rig.sent.last().unwrap()["params"]["inputResponses"]["a"]["action"], "accept");
    rig.call(tasks::cancel("t-1"));
    assert_eq!(rig.sent.last().unwrap()["params"]["taskId"], "t-1");
    let refused = tasks::update("t-1", [("a", InputAnswer::Error(ErrorObject::new(-32603, "no")))]);
    assert!(refused.into_raw().params.is_err());
}
