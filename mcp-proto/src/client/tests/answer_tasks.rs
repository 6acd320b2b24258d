//! Questions of a server of 2025-11-25 that are tasks.

use super::*;
use crate::model::elicitation::ElicitResult;

fn rig() -> Rig {
    let config = ClientConfig { answer_as_tasks: true, ..ClientConfig::given().with_elicitation() };
    Rig::ready(ProtocolVersion::V2025_11_25, config)
}

impl Rig {
    /// The server makes a request. Returns the response, if there is one now.
    fn asked(&mut self, id: u32, method: &str, params: Value) -> Option<Value> {
        let before = self.sent.len();
        self.say(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        self.sent.get(before).cloned()
    }

    /// The server asks a question that is a task. Returns the id of the task.
    fn asked_as_task(&mut self, id: u32, ttl: u64) -> String {
        let params =
            json!({"message": "Who?", "requestedSchema": {"type": "object", "properties": {}}, "task": {"ttl": ttl}});
        let response = self.asked(id, "elicitation/create", params).expect("a task at once");
        let task = &response["result"]["task"];
        assert_eq!((task["status"].as_str(), task["ttl"].as_u64()), (Some("working"), Some(ttl.min(3_600_000))));
        task["taskId"].as_str().unwrap().into()
    }
}

fn accepted() -> InputAnswer {
    InputAnswer::Elicitation(ElicitResult::Accept(Object::new()))
}

fn about(task: &str) -> Value {
    json!({"taskId": task})
}

// covers: TASKL-B-001
#[test]
fn client_declares_tasks_for_what_it_answers() {
    let declared = |config: ClientConfig, version| {
        let mut rig = Rig::new(ClientConfig { versions: Versions::new([version]), ..config });
        rig.open();
        rig.sent[0]["params"]["capabilities"].get("tasks").cloned()
    };
    let config = || ClientConfig { answer_as_tasks: true, ..ClientConfig::given().with_elicitation() };
    let tasks = json!({"list": {}, "cancel": {}, "requests": {"elicitation": {"create": {}}}});
    assert_eq!(declared(config(), ProtocolVersion::V2025_11_25), Some(tasks));
    assert_eq!(declared(config(), ProtocolVersion::V2025_06_18), None);
    let without = ClientConfig { answer_as_tasks: false, ..config() };
    assert_eq!(declared(without, ProtocolVersion::V2025_11_25), None);
}

// covers: TASKL-B-013, TASKL-B-014, TASKL-B-017, TASKL-B-018, TASKL-B-019, TASKL-B-023, TASKL-B-045
#[test]
fn server_fetches_the_answer_of_its_task() {
    let mut rig = rig();
    let task = rig.asked_as_task(1, 60_000);
    assert_eq!(task.len(), 32, "24 random bytes");
    assert_eq!(rig.asked(2, "tasks/result", about(&task)), None, "there is no answer");
    let key = rig.questions()[0].0;
    rig.reply(key, accepted());
    let response = rig.sent.last().unwrap().clone();
    assert_eq!((&response["id"], &response["result"]["action"]), (&json!(2), &json!("accept")));
    let related = &response["result"]["_meta"]["io.modelcontextprotocol/related-task"];
    assert_eq!(related, &json!({"taskId": task}));
    let state = rig.asked(3, "tasks/get", about(&task)).unwrap();
    assert_eq!(state["result"]["status"], "completed");
    assert!(state["result"].get("_meta").is_none());
    let again = rig.asked(4, "tasks/result", about(&task)).unwrap();
    assert_eq!(again["result"], response["result"]);
    let listed = rig.asked(5, "tasks/list", json!({})).unwrap();
    assert_eq!(listed["result"]["tasks"].as_array().map(Vec::len), Some(1));
}

// covers: TASKL-B-038, TASKL-B-039, TASKL-B-040, TASKL-B-042
#[test]
fn cancelled_task_withdraws_its_question() {
    let mut rig = rig();
    let task = rig.asked_as_task(1, 60_000);
    rig.asked(2, "tasks/result", about(&task));
    let key = rig.questions()[0].0;
    let cancelled = rig.asked(3, "tasks/cancel", about(&task)).unwrap();
    assert_eq!(cancelled["error"]["code"], -32602, "the request for the answer comes first");
    assert_eq!(rig.sent.last().unwrap()["result"]["status"], "cancelled");
    assert!(rig.events.contains(&Event::InputWithdrawn(key)));
    rig.reply(key, accepted());
    let state = rig.asked(4, "tasks/get", about(&task)).unwrap();
    assert_eq!(state["result"]["status"], "cancelled");
    for (id, method, of) in
        [(5, "tasks/cancel", &*task), (6, "tasks/get", "x"), (7, "tasks/result", "x"), (8, "tasks/cancel", "x")]
    {
        let refused = rig.asked(id, method, about(of)).unwrap();
        assert_eq!(refused["error"]["code"], -32602, "{method}");
    }
}

// covers: TASKL-B-021, TASKL-B-047
#[test]
fn tasks_of_a_server_are_bounded_in_number_and_time() {
    let mut rig = rig();
    let first = rig.asked_as_task(0, 1_000);
    rig.asked(900, "tasks/result", about(&first));
    rig.tick(ms(1_000));
    assert_eq!(rig.sent.last().unwrap()["error"]["code"], -32603, "its time is over");
    assert_eq!(rig.client.questions(), 0);
    assert_eq!(rig.client.cx.answer_tasks.len(), 0);
    let max = rig.client.config().limits.client.max_inputs.min(64) as u32;
    for id in 1..=max {
        rig.asked_as_task(id, u64::MAX);
    }
    let params = json!({"message": "?", "requestedSchema": {"type": "object", "properties": {}}, "task": {}});
    let refused = rig.asked(901, "elicitation/create", params).unwrap();
    assert_eq!(refused["error"]["code"], -32603);
    assert!(rig.diagnostics().contains(&DiagnosticKind::TooManyInputs));
    rig.handle_event(rig.exchange(), ExchangeEvent::Inbound(Inbound::End));
    assert_eq!(rig.client.cx.answer_tasks.len(), 0);
    assert_eq!(rig.client.questions(), 0);
}

// covers: TASKL-B-010
#[test]
fn client_that_does_not_answer_as_tasks_ignores_the_wish() {
    let mut rig = Rig::ready(ProtocolVersion::V2025_11_25, ClientConfig::given().with_elicitation());
    let params = json!({"message": "?", "requestedSchema": {"type": "object", "properties": {}}, "task": {"ttl": 1}});
    assert_eq!(rig.asked(1, "elicitation/create", params), None);
    let key = rig.questions()[0].0;
    rig.reply(key, accepted());
    assert_eq!(rig.sent.last().unwrap()["result"]["action"], "accept");
    assert_eq!(rig.asked(2, "tasks/list", json!({})).unwrap()["error"]["code"], -32601);
}
