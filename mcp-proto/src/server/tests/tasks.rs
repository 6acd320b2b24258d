//! Tasks of 2026-07-28: a request that is answered with one, and everything that clients do with
//! it.

mod legacy;
mod sequences;

use super::*;
use crate::input::Admission;
use crate::model::tasks::TaskOptions;

const BOTH: &str = r#"{"extensions":{"io.modelcontextprotocol/tasks":{}},"elicitation":{"form":{}}}"#;

/// A server with tasks, and an open duplex connection.
fn bench() -> Bench {
    bench_with(|_| {})
}

fn bench_with(change: impl FnOnce(&mut ServerConfig)) -> Bench {
    let with_tasks = |config: &mut ServerConfig| {
        config.tasks = true;
        config.origin_unix = Duration::from_secs(1_764_424_400);
        change(config);
    };
    Bench::with(with_tasks).open(A)
}

fn call(id: u32, capabilities: &str) -> String {
    modern_with(&id.to_string(), "tools/call", capabilities, r#","name":"t","arguments":{}"#)
}

/// A request about a task.
fn about(id: u32, method: &str, task: &str, rest: &str) -> String {
    modern_with(&id.to_string(), method, BOTH, &format!(r#","taskId":"{task}"{rest}"#))
}

impl Bench {
    /// Makes a task of this request. Returns the result that its client gets.
    fn becomes(&mut self, x: ExchangeId, handed: &Handed, options: TaskOptions) -> Object {
        assert!(handed.1.task.as_ref().unwrap().take());
        self.server.notify(self.now, handed.0.key(), Note::IntoTask(options)).unwrap();
        let said = self.heard(x);
        assert_eq!(said.len(), 1, "{said:?}");
        result(&said[0])
    }

    /// Begins a task, and returns it with its id.
    fn task(&mut self, id: u32) -> (Handed, String) {
        let handed = self.request(A, &call(id, BOTH));
        let created = self.becomes(A, &handed, TaskOptions::new());
        (handed, created.required("taskId").unwrap())
    }

    /// Returns the state of a task.
    fn get(&mut self, task: &str) -> Object {
        let said = self.say(A, &about(900, "tasks/get", task, ""));
        result(&said[0])
    }

    fn status(&mut self, task: &str) -> String {
        self.get(task).required("status").unwrap()
    }
}

// covers: TASKX-S-001, TASKX-S-007, TASKX-S-008, TASKX-S-010, TASKX-S-015, TASKX-S-016,
// TASKX-S-038, TASKX-S-040
#[test]
fn a_request_becomes_a_task_that_keeps_its_result() {
    let mut bench = bench();
    let handed = bench.request(A, &call(1, BOTH));
    bench.now = Instant::from_millis(2_007);
    let options = TaskOptions::new().ttl(Duration::from_secs(60)).poll(Duration::from_millis(250));
    let created = bench.becomes(A, &handed, options);
    let id: String = created.required("taskId").unwrap();
    assert_eq!(id.len(), 32, "24 random bytes");
    assert_eq!(created.str("resultType").as_deref(), Some("task"));
    assert_eq!(created.str("createdAt").as_deref(), Some("2025-11-29T13:53:22.007Z"));
    assert_eq!((created.get("ttlMs"), created.get("pollIntervalMs")), (Some(60_000_u64.into()), Some(250_u64.into())));
    assert_eq!(created.str("status").as_deref(), Some("working"));
    for absent in ["task", "result", "error", "inputRequests", "requestState", "ttl", "pollInterval"] {
        assert!(!created.contains(absent), "{absent}");
    }
    let state = bench.get(&id);
    assert_eq!(state.str("resultType").as_deref(), Some("complete"));
    assert_eq!(state.str("status").as_deref(), Some("working"));
    bench.complete(handed.0, r#"{"content":[{"type":"text","text":"done"}],"isError":true}"#);
    assert_eq!(bench.heard(A), [""; 0], "its request was answered");
    let state = bench.get(&id);
    assert_eq!(state.str("status").as_deref(), Some("completed"), "an error of a tool is a result");
    assert_eq!(state.object("result").unwrap().get("isError"), Some(true.into()));
    assert!(bench.server.requests.is_empty());
}

// covers: TASKX-S-009, TASKX-S-037, TASKX-S-038
#[test]
fn a_task_fails_with_the_error_of_its_request() {
    let mut bench = bench();
    let (handed, id) = bench.task(1);
    bench.answer(handed.0, Outcome::Error(ErrorObject::new(-32603, "the quota is used up")));
    let state = bench.get(&id);
    assert_eq!(state.str("status").as_deref(), Some("failed"));
    assert_eq!(state.str("statusMessage").as_deref(), Some("the quota is used up"));
    assert_eq!(state.object("error").unwrap().get("code"), Some((-32603_i64).into()));
    assert!(!state.contains("result"));
}

// covers: TASKX-S-002, TASKX-S-036, TASKX-S-031
#[test]
fn a_client_that_declares_no_tasks_gets_none() {
    let mut bench = bench();
    let handed = bench.request(A, &call(1, "{}"));
    assert!(handed.1.task.is_none());
    let key = handed.0.key();
    let refused = bench.server.notify(bench.now, key, Note::IntoTask(TaskOptions::new()));
    assert_eq!(refused.map_err(|refused| refused.why), Err(Refusal::NotWanted));
    for (method, rest) in [
        ("tasks/get", r#","taskId":"x""#),
        ("tasks/update", r#","taskId":"x","inputResponses":{}"#),
        ("tasks/cancel", r#","taskId":"x""#),
        ("subscriptions/listen", r#","notifications":{"taskIds":["x"]}"#),
    ] {
        let error = error(&bench.say(A, &modern("2", method, rest))[0]);
        assert_eq!(error.code, -32021, "{method}");
        let required = Object::read(&error.data.unwrap()).unwrap().object("requiredCapabilities").unwrap();
        assert!(required.object("extensions").unwrap().contains("io.modelcontextprotocol/tasks"), "{method}");
    }
}

// covers: TASKX-B-039
#[test]
fn a_server_without_tasks_leaves_the_methods_to_the_application() {
    let mut bench = Bench::new().open(A);
    let (responder, incoming) = bench.request(A, &about(1, "tasks/get", "x", ""));
    assert_eq!(incoming.method, "tasks/get");
    bench.complete(responder, "{}");
    assert!(bench.request(A, &call(2, BOTH)).1.task.is_none());
}

/// Opens a connection of this principal.
fn admitted(bench: &mut Bench, x: ExchangeId, who: &str) {
    let peer = Peer::unix(None);
    bench.handle_event(x, ExchangeEvent::Opened(peer));
    let asked = bench.events().into_iter().find_map(|event| match event {
        Event::Admit(token, _) => Some(token),
        _ => None,
    });
    bench.server.admit(bench.now, asked.expect("it is asked about"), Admission::Accept(Some(who.into())));
    bench.outputs();
}

// covers: TASKX-S-024, TASKX-S-035, TASKX-S-040, TASKL-B-044, B-082
#[test]
fn a_task_of_another_principal_is_unknown() {
    let mut bench = Bench::with(|config| (config.tasks, config.admit) = (true, true));
    for (x, who) in [(A, "ann"), (B, "bob")] {
        admitted(&mut bench, x, who);
    }
    let (handed, id) = bench.task(1);
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let line = about(5, method, &id, r#","inputResponses":{}"#);
        assert_eq!(error(&bench.say(B, &line)[0]).code, -32602, "{method}");
    }
    assert_eq!(bench.status(&id), "working");
    let said = bench.say(A, &about(6, "tasks/get", "unknown", ""));
    assert_eq!(error(&said[0]), error(&bench.say(B, &about(6, "tasks/get", &id, ""))[0]), "as if there were none");
    bench.complete(handed.0, "{}");
    bench.server.revoke(bench.now, &"ann".into());
    assert!(bench.server.wire.env.tasks.is_empty(), "the tasks of a principal end with it");
}

// covers: TASKX-S-010
#[test]
fn a_task_survives_its_connection() {
    let mut bench = bench().open(B);
    let (handed, id) = bench.task(1);
    bench.handle_event(A, failed());
    assert!(!bench.events().iter().any(|event| matches!(event, Event::Cancelled(_))));
    bench.complete(handed.0, "{}");
    let said = bench.say(B, &about(2, "tasks/get", &id, ""));
    assert_eq!(result(&said[0]).str("status").as_deref(), Some("completed"));
}

// covers: TASKX-B-027, CANC-B-009
#[test]
fn a_task_is_not_cancelled_by_the_id_of_its_request() {
    let mut bench = bench();
    let (handed, id) = bench.task(1);
    bench.item(A, read(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#));
    assert_eq!(bench.codes(), ["unknown-cancel"]);
    assert_eq!(bench.status(&id), "working");
    // The client may use the id again.
    let again = bench.request(A, &call(1, BOTH)).0;
    bench.complete(again, "{}");
    bench.complete(handed.0, "{}");
    bench.outputs();
    assert_eq!(bench.status(&id), "completed");
}

// covers: TASKX-S-028, TASKX-C-029
#[test]
fn cancelling_ends_a_task_at_once() {
    let mut bench = bench();
    let (handed, id) = bench.task(1);
    let key = handed.0.key();
    for round in 0..2 {
        bench.item(A, read(&about(3, "tasks/cancel", &id, "")));
        let outputs = bench.outputs();
        let cancelled = outputs.iter().any(|output| *output == Output::Event(Event::Cancelled(key)));
        assert_eq!(cancelled, round == 0, "its handler stops, once");
        let acknowledged = result(&outputs.iter().find_map(|output| on(A, output)).unwrap());
        assert_eq!(acknowledged.str("resultType").as_deref(), Some("complete"));
        assert!(!acknowledged.contains("taskId") && !acknowledged.contains("status"));
    }
    bench.complete(handed.0, "{}");
    assert_eq!(bench.status(&id), "cancelled", "a late outcome is dropped");
    assert!(bench.server.requests.is_empty());
}

/// Lets the handler of a task ask for these, and returns what the client sees of it.
fn asks(bench: &mut Bench, responder: Responder, id: &str, names: &[&str]) -> Object {
    let requests = names.iter().map(|name| question(name)).collect();
    bench.answer(responder, Outcome::NeedInput { requests, state: Some(RawJson::from("kept")) });
    bench.get(id)
}

const ACCEPTED: &str = r#"{"action":"accept","content":{"it":"x"}}"#;

fn answers(id: u32, task: &str, of: &[(&str, &str)]) -> String {
    let of: Vec<String> = of.iter().map(|(name, answer)| format!(r#""{name}":{answer}"#)).collect();
    about(id, "tasks/update", task, &format!(r#","inputResponses":{{{}}}"#, of.join(",")))
}

// covers: TASKX-S-015, TASKX-S-021, TASKX-S-023, TASKX-S-025, TASKX-S-026
#[test]
fn the_questions_of_a_task_wait_in_it() {
    let mut bench = bench();
    let (handed, id) = bench.task(1);
    let state = asks(&mut bench, handed.0, &id, &["one", "two"]);
    assert_eq!(state.str("status").as_deref(), Some("input_required"));
    let asked = state.object("inputRequests").unwrap();
    assert_eq!(asked.object("one").unwrap().str("method").as_deref(), Some("elicitation/create"));
    assert!(!state.contains("requestState"));
    let said = bench.say(A, &answers(2, &id, &[("one", ACCEPTED), ("three", ACCEPTED)]));
    assert_eq!(result(&said[0]).str("resultType").as_deref(), Some("complete"));
    let asked = bench.get(&id).object("inputRequests").unwrap();
    assert!(asked.contains("two") && !asked.contains("one"));
    // One that is answered already is ignored.
    bench.say(A, &answers(3, &id, &[("one", r#"{"action":"decline"}"#)]));
    let (responder, incoming) = bench.request(A, &answers(4, &id, &[("two", ACCEPTED)]));
    assert_eq!(incoming.inputs.keys().collect::<Vec<_>>(), ["one", "two"]);
    assert_eq!(incoming.inputs["one"].as_ref().unwrap().as_bytes(), ACCEPTED.as_bytes());
    assert_eq!(incoming.state, Some(RequestState::Kept("kept".into())));
    assert_eq!(incoming.rounds, 1);
    assert_eq!(bench.status(&id), "working");
    bench.complete(responder, "{}");
    assert_eq!(bench.status(&id), "completed");
}

// covers: TASKX-S-023
#[test]
fn an_answer_of_another_shape_takes_nothing() {
    let mut bench = bench();
    let (handed, id) = bench.task(1);
    asks(&mut bench, handed.0, &id, &["one", "two"]);
    let said = bench.say(A, &answers(2, &id, &[("one", ACCEPTED), ("two", "7")]));
    assert_eq!(error(&said[0]).code, -32602);
    assert!(bench.get(&id).object("inputRequests").unwrap().contains("one"));
    let said = bench.say(A, &about(3, "tasks/update", &id, ""));
    assert_eq!(error(&said[0]).code, -32602, "without the member");
}

// covers: TASKX-S-021
#[test]
fn a_name_of_a_question_is_used_once() {
    let mut bench = bench();
    let (handed, id) = bench.task(1);
    asks(&mut bench, handed.0, &id, &["one"]);
    let (responder, _) = bench.request(A, &answers(2, &id, &[("one", ACCEPTED)]));
    let state = asks(&mut bench, responder, &id, &["one"]);
    assert_eq!(state.str("status").as_deref(), Some("failed"));
    assert_eq!(state.object("error").unwrap().get("code"), Some((-32603_i64).into()));
}

// covers: TASKX-S-011
#[test]
fn what_is_asked_before_the_task_is_a_round_of_the_request() {
    let mut bench = bench();
    let handed = bench.request(A, &call(1, BOTH));
    bench.answer(handed.0, ask("one"));
    let asked = result(&bench.heard(A)[0]);
    assert_eq!(asked.str("resultType").as_deref(), Some("input_required"));
    let state: String = asked.required("requestState").unwrap();
    let rest =
        format!(r#","name":"t","arguments":{{}},"requestState":"{state}","inputResponses":{{"one":{ACCEPTED}}}"#);
    let (mut responder, mut incoming) = bench.request(A, &modern_with("2", "tools/call", BOTH, &rest));
    responder.open(&mut incoming).unwrap();
    assert_eq!(incoming.rounds, 1);
    let created = bench.becomes(A, &(responder, incoming), TaskOptions::new());
    assert_eq!(created.str("resultType").as_deref(), Some("task"));
}

// covers: TASKX-S-033
#[test]
fn nothing_but_its_state_is_sent_about_a_task() {
    let mut bench = bench_with(|config| config.capabilities.logging = Some(Object::new()));
    let meta = r#","name":"t","arguments":{}"#;
    let line = modern_with("1", "tools/call", BOTH, meta)
        .replace(r#""_meta":{"#, r#""_meta":{"progressToken":"p","io.modelcontextprotocol/logLevel":"debug","#);
    let handed = bench.request(A, &line);
    let key = handed.0.key();
    let progress = || Note::Progress(crate::model::Progress::new(1.0));
    bench.server.notify(bench.now, key, progress()).unwrap();
    bench.outputs();
    let created = bench.becomes(A, &handed, TaskOptions::new());
    let log = crate::model::logging::LogMessage::new(crate::LogLevel::Error, "x");
    let custom = Note::Custom("x/y".into(), Object::new());
    let progress = Note::Progress(crate::model::Progress::new(2.0));
    for note in [progress, Note::Log(log), custom] {
        let refused = bench.server.notify(bench.now, key, note);
        assert_eq!(refused.map_err(|refused| refused.why), Err(Refusal::NotWanted));
    }
    bench.server.notify(bench.now, key, Note::Status("half of it".into())).unwrap();
    let state = bench.get(&created.required::<String>("taskId").unwrap());
    assert_eq!(state.str("statusMessage").as_deref(), Some("half of it"));
}

// covers: TASKX-B-017, TASKX-S-015
#[test]
fn a_task_whose_time_is_over_fails() {
    let mut bench = bench();
    let handed = bench.request(A, &call(1, BOTH));
    let created = bench.becomes(A, &handed, TaskOptions::new().ttl(Duration::from_secs(10)));
    let id: String = created.required("taskId").unwrap();
    bench.now = Instant::from_millis(9_999);
    bench.server.handle_timeout(bench.now);
    assert_eq!(bench.status(&id), "working");
    bench.pass(Duration::from_millis(1));
    assert!(bench.events().contains(&Event::Cancelled(handed.0.key())));
    let state = bench.get(&id);
    assert_eq!(state.str("status").as_deref(), Some("failed"));
    assert_eq!(state.object("error").unwrap().get("code"), Some((-32603_i64).into()));
    // It is kept for a while after its end.
    bench.pass(Duration::from_secs(5 * 60 - 1));
    assert_eq!(bench.status(&id), "failed");
    bench.pass(Duration::from_secs(1));
    assert_eq!(error(&bench.say(A, &about(9, "tasks/get", &id, ""))[0]).code, -32602);
    assert!(bench.server.wire.env.tasks.is_empty() && bench.server.wire.env.timers.next().is_none());
}

#[test]
fn the_time_of_a_task_is_bounded() {
    let mut bench = bench();
    for (asked, granted) in [(Some(u64::MAX), 86_400_000), (None, 3_600_000)] {
        let handed = bench.request(A, &call(1, BOTH));
        let options =
            TaskOptions { ttl: asked.map(Duration::from_millis), poll: Some(Duration::ZERO), ..TaskOptions::new() };
        let created = bench.becomes(A, &handed, options);
        assert_eq!(created.get("ttlMs"), Some(RawJson::from(granted as u64)));
        assert_eq!(created.get("pollIntervalMs"), Some(1_u64.into()));
    }
}

// covers: TASKL-B-047
#[test]
fn without_room_the_task_that_ended_first_goes() {
    let mut bench = bench_with(|config| {
        config.limits.server.max_tasks = 2;
        config.limits.server.client_shares = 1;
    });
    let (first, one) = bench.task(1);
    let (second, two) = bench.task(2);
    let full = bench.request(A, &call(3, BOTH));
    assert!(full.1.task.is_none() && full.1.may_be_task, "both run");
    bench.complete(full.0, "{}");
    bench.outputs();
    bench.complete(second.0, "{}");
    let (_, three) = bench.task(4);
    assert_eq!(error(&bench.say(A, &about(9, "tasks/get", &two, ""))[0]).code, -32602);
    assert_eq!((bench.status(&one), bench.status(&three)), ("working".into(), "working".into()));
    bench.complete(first.0, "{}");
}

#[test]
fn a_result_without_room_becomes_an_error() {
    let mut bench = bench_with(|config| {
        config.limits.server.max_task_bytes = 400;
        config.limits.server.client_shares = 1;
    });
    let (first, one) = bench.task(1);
    let (second, two) = bench.task(2);
    bench.complete(first.0, &format!(r#"{{"content":[],"x":"{}"}}"#, "x".repeat(150)));
    assert_eq!(bench.status(&one), "completed");
    bench.complete(second.0, &format!(r#"{{"content":[],"x":"{}"}}"#, "x".repeat(1_000)));
    assert_eq!(bench.status(&two), "failed");
    assert_eq!(bench.status(&one), "completed", "a result that can have no room removes none");
}

#[test]
fn one_client_does_not_take_the_places_of_all() {
    let mut bench = bench_with(|config| config.limits.server.max_tasks = 8).open(B);
    let own: Vec<_> = (0..3).map(|id| bench.request(A, &call(id, BOTH))).collect();
    let places: Vec<bool> = own.iter().map(|(_, incoming)| incoming.task.is_some()).collect();
    assert_eq!(places, [true, true, false], "a share of four");
    assert!(bench.request(B, &call(1, BOTH)).1.task.is_some());
}

#[test]
fn a_request_that_becomes_no_task_gives_its_place_back() {
    let mut bench = bench();
    for id in 0..3 {
        let handed = bench.request(A, &call(id, BOTH));
        bench.complete(handed.0, "{}");
    }
    let handed = bench.request(A, &call(4, BOTH));
    bench.item(A, read(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":4}}"#));
    drop(handed);
    bench.handle_event(A, failed());
    bench.outputs();
    assert!(bench.server.wire.env.shares.is_empty());
}

/// The notifications about tasks among these lines: the status of each.
fn told(lines: &[String]) -> Vec<String> {
    let of_task = lines.iter().filter(|line| line.contains("\"notifications/tasks\""));
    let status = |line: &String| match message(line) {
        crate::rpc::Message::Notification(note) => {
            let params = Object::read(&note.params.unwrap()).unwrap();
            assert!(params.object("_meta").unwrap().contains("io.modelcontextprotocol/subscriptionId"));
            params.required("status").unwrap()
        }
        other => panic!("{other:?}"),
    };
    of_task.map(status).collect()
}

fn listen(id: u32, tasks: &[&str]) -> String {
    let ids: Vec<String> = tasks.iter().map(|id| format!("\"{id}\"")).collect();
    let rest = format!(r#","notifications":{{"taskIds":[{}]}}"#, ids.join(","));
    modern_with(&id.to_string(), "subscriptions/listen", BOTH, &rest)
}

// covers: TASKX-S-030, TASKX-S-032
#[test]
fn a_subscription_gets_each_state_of_its_tasks() {
    let mut bench = bench().open(B);
    let (handed, id) = bench.task(1);
    let said = bench.say(B, &listen(7, &[&id, "unknown"]));
    assert!(said[0].contains(&id) && !said[0].contains("unknown"), "{said:?}");
    assert_eq!(told(&said), ["working"]);
    bench.server.notify(bench.now, handed.0.key(), Note::Status("x".into())).unwrap();
    assert_eq!(told(&bench.heard(B)), ["working"]);
    bench.answer(handed.0, ask("one"));
    assert_eq!(told(&bench.heard(B)), ["input_required"]);
    bench.item(B, read(&answers(8, &id, &[("one", ACCEPTED)])));
    let outputs = bench.outputs();
    let lines: Vec<String> = outputs.iter().filter_map(|output| on(B, output)).collect();
    assert_eq!(told(&lines), ["working"]);
    let responder = outputs.into_iter().find_map(|output| match output {
        Output::Event(Event::Request(responder, _)) => Some(responder),
        _ => None,
    });
    bench.complete(responder.unwrap(), "{}");
    let lines = bench.heard(B);
    assert_eq!(told(&lines), ["completed"]);
    assert!(lines[0].contains("\"result\""), "{lines:?}");
    bench.handle_event(B, failed());
    assert!(bench.server.listens.is_empty());
}

// covers: TASKX-S-032
#[test]
fn a_slow_subscription_gets_the_latest_state_only() {
    let mut bench = bench_with(|config| config.limits.server.max_unsent = 600).open(B);
    let (handed, id) = bench.task(1);
    bench.say(B, &listen(7, &[&id]));
    bench.handle_event(B, ExchangeEvent::Unsent(600));
    let key = handed.0.key();
    for text in ["a", "b", "c"] {
        bench.server.notify(bench.now, key, Note::Status(text.into())).unwrap();
    }
    bench.complete(handed.0, "{}");
    assert_eq!(bench.heard(B), [""; 0]);
    bench.handle_event(B, ExchangeEvent::Unsent(0));
    assert_eq!(told(&bench.heard(B)), ["completed"], "once, and nothing before it");
    bench.handle_event(B, ExchangeEvent::Unsent(0));
    assert_eq!(told(&bench.heard(B)), [""; 0]);
}

// covers: TASKX-S-009
#[test]
fn a_shutdown_fails_what_still_runs() {
    let mut bench = bench();
    let (handed, id) = bench.task(1);
    bench.server.shutdown(bench.now, Duration::from_secs(1));
    assert_eq!(bench.status(&id), "working");
    bench.pass(Duration::from_secs(1));
    let events = bench.events();
    assert!(events.contains(&Event::Cancelled(handed.0.key())) && events.contains(&Event::Terminated));
    assert!(bench.server.wire.env.tasks.is_empty());
}

// covers: TASKX-B-039
#[test]
fn a_server_with_tasks_declares_them() {
    let mut bench = bench();
    let said = bench.say(A, &modern("1", "server/discover", ""));
    let capabilities = result(&said[0]).object("capabilities").unwrap();
    assert!(capabilities.object("extensions").unwrap().contains("io.modelcontextprotocol/tasks"));
    assert!(!capabilities.contains("tasks"));
}
