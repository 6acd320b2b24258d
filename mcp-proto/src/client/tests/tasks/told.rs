//! Servers that tell of the tasks that are asked for seldom (2026-07-28).

use super::*;

fn slow() -> Value {
    created(&json!({"pollIntervalMs": 5_000}))
}

impl Rig {
    fn listen(&self) -> Value {
        self.sent.iter().rev().find(|m| m["method"] == "subscriptions/listen").expect("a subscription").clone()
    }

    /// The server tells of the state of a task, on this subscription.
    fn tell(&mut self, subscription: &Value, mut state: Value) {
        state["_meta"] = json!({"io.modelcontextprotocol/subscriptionId": subscription});
        self.say(json!({"jsonrpc": "2.0", "method": "notifications/tasks", "params": state}));
    }
}

#[test]
fn server_that_is_asked_seldom_tells_of_a_task() {
    let mut rig = modern();
    let call = rig.echo();
    rig.answer(&rig.last_id(), slow());
    let listen = rig.listen();
    assert_eq!(listen["params"]["notifications"], json!({"taskIds": ["t-1"]}));
    rig.say_watched(&["t-1"]);
    rig.tell(&listen["id"], task("working", &json!({"statusMessage": "half", "pollIntervalMs": 5_000})));
    assert_eq!(rig.updates().last().unwrap().task.message.as_deref(), Some("half"));
    let wait = rig.client.poll_timeout().unwrap() - rig.now;
    assert!((ms(25_000)..=ms(27_500)).contains(&wait), "it asks five times as seldom: {wait:?}");
    rig.tell(&listen["id"], task("completed", &json!({"result": {"content": []}})));
    assert!(rig.outcome(call).is_ok());
    assert_eq!(rig.methods().last(), Some(&"notifications/cancelled"), "nothing is watched any more");
    assert_eq!(rig.diagnostics(), []);
}

#[test]
fn server_that_does_not_tell_is_asked_as_often_as_it_wants() {
    let mut rig = modern();
    let call = rig.echo();
    rig.answer(&rig.last_id(), slow());
    rig.say(error(&rig.listen()["id"], -32601));
    let wait = rig.client.poll_timeout().unwrap() - rig.now;
    assert!((ms(5_000)..=ms(5_500)).contains(&wait), "{wait:?}");
    rig.state(task("completed", &json!({"result": {"content": []}})));
    assert!(rig.outcome(call).is_ok());
}

#[test]
fn questions_that_a_server_tells_are_put_once() {
    let mut rig = modern();
    rig.echo();
    rig.answer(&rig.last_id(), slow());
    let listen = rig.listen();
    rig.say_watched(&["t-1"]);
    let asks = json!({"inputRequests": {"a": form("a")}, "pollIntervalMs": 5_000});
    rig.tell(&listen["id"], task("input_required", &asks));
    rig.state(task("input_required", &asks));
    rig.tell(&listen["id"], task("input_required", &asks));
    assert_eq!(rig.questions().len(), 1);
}

// covers: TASKX-B-039
#[test]
fn state_of_no_subscription_or_no_task_changes_nothing() {
    let mut rig = modern();
    let call = rig.echo();
    rig.answer(&rig.last_id(), slow());
    let listen = rig.listen();
    rig.say_watched(&["t-1"]);
    let done = json!({"result": {"content": []}});
    rig.tell(&json!("of-another"), task("completed", &done));
    rig.tell(&listen["id"], task("asleep", &done));
    let mut of_another = task("completed", &done);
    of_another["taskId"] = json!("t-2");
    rig.tell(&listen["id"], of_another);
    assert!(!rig.has_ended(call));
    assert_eq!(rig.diagnostics(), [DiagnosticKind::BadSubscription, DiagnosticKind::BadParams]);
}

// A state that comes while a request is open is older than its response, or the same.
#[test]
fn state_that_comes_during_a_request_waits_for_its_response() {
    let mut rig = modern();
    let call = rig.echo();
    rig.answer(&rig.last_id(), slow());
    let listen = rig.listen();
    rig.say_watched(&["t-1"]);
    rig.poll();
    rig.tell(&listen["id"], task("completed", &json!({"result": {"content": []}})));
    assert!(!rig.has_ended(call));
    rig.answer(&rig.last_id(), task("completed", &json!({"result": {"content": []}})));
    assert!(rig.outcome(call).is_ok());
}

#[test]
fn watches_of_the_application_and_of_tasks_are_one() {
    let mut rig = Rig::new(ClientConfig { versions: Versions::new([ProtocolVersion::V2026_07_28]), ..config() });
    rig.open();
    let mut result = discover(&["2026-07-28"]);
    result["capabilities"] =
        json!({"tools": {"listChanged": true}, "extensions": {"io.modelcontextprotocol/tasks": {}}});
    rig.answer(&rig.last_id(), result);
    rig.client.watch(rig.now, Watch::new().with_tools()).unwrap();
    rig.drain();
    let acknowledge = |rig: &mut Rig| {
        let listen = rig.listen();
        rig.say(json!({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": {
            "_meta": {"io.modelcontextprotocol/subscriptionId": listen["id"]},
            "notifications": listen["params"]["notifications"],
        }}));
    };
    acknowledge(&mut rig);
    rig.echo();
    rig.answer(&rig.last_id(), slow());
    assert_eq!(rig.listen()["params"]["notifications"], json!({"toolsListChanged": true, "taskIds": ["t-1"]}));
    acknowledge(&mut rig);
    let watching: Vec<&Watch> = rig
        .events
        .iter()
        .filter_map(|event| if let Event::Watching(watch) = event { Some(watch) } else { None })
        .collect();
    assert!(watching.iter().all(|watch| **watch == Watch::new().with_tools()), "{watching:?}");
    rig.echo();
    rig.answer(&rig.last_id(), created(&json!({"taskId": "t-2", "pollIntervalMs": 5_000})));
    acknowledge(&mut rig);
    rig.sent.clear();
    rig.client.close(rig.now);
    rig.drain();
    assert!(!rig.methods().contains(&"subscriptions/listen"), "{:?}", rig.methods());
}
