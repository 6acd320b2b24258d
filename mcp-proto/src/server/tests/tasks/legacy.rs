//! Tasks of 2025-11-25: the client decides, waits with `tasks/result`, and is asked on its session.

use super::*;

const VERSION: &str = "2025-11-25";

fn bench() -> Bench {
    bench_with(|_| {}).initialized_again(A, r#"{"elicitation":{}}"#)
}

impl Bench {
    fn initialized_again(mut self, x: ExchangeId, capabilities: &str) -> Self {
        let said = self.say(x, &initialize(VERSION, capabilities));
        assert!(said[0].contains(VERSION), "{said:?}");
        self.item(x, read(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#));
        self.outputs();
        self
    }

    /// Begins a task, as a router does at once. Returns its id.
    fn legacy_task(&mut self, id: &str) -> (Handed, String) {
        let handed = self.request(A, &as_task(id, "{}"));
        let created = self.becomes(A, &handed, TaskOptions::new());
        let task = created.object("task").unwrap();
        (handed, task.required("taskId").unwrap())
    }

    fn legacy_get(&mut self, task: &str) -> Object {
        let said = self.say(A, &legacy("900", "tasks/get", &format!(r#"{{"taskId":"{task}"}}"#)));
        result(&said[0])
    }
}

fn as_task(id: &str, task: &str) -> String {
    legacy(id, "tools/call", &format!(r#"{{"name":"t","arguments":{{}},"task":{task}}}"#))
}

fn named(id: &str, method: &str, task: &str) -> String {
    legacy(id, method, &format!(r#"{{"taskId":"{task}"}}"#))
}

// covers: TASKL-B-001, TASKL-B-046, SEPX-S-010
#[test]
fn the_capability_names_what_the_server_can_do() {
    let mut bench = super::bench();
    let said = bench.say(A, &initialize(VERSION, "{}"));
    let tasks = result(&said[0]).object("capabilities").unwrap().object("tasks").unwrap();
    assert!(tasks.contains("cancel") && !tasks.contains("list"), "whose would it list");
    assert!(tasks.object("requests").unwrap().object("tools").unwrap().contains("call"));
    assert!(!said[0].contains("io.modelcontextprotocol/tasks"), "the extension is of another revision");
    let mut bench = super::bench();
    let said = bench.say(A, &initialize("2025-06-18", "{}"));
    assert!(!result(&said[0]).object("capabilities").unwrap().contains("tasks"));
}

// covers: TASKL-B-012, TASKL-B-013, TASKL-B-014, TASKL-B-017, TASKL-B-018, TASKL-B-019,
// TASKL-B-020, TASKL-B-023, TASKL-B-024
#[test]
fn a_result_waits_for_the_end_of_its_task() {
    let mut bench = bench();
    let handed = bench.request(A, &as_task("1", r#"{"ttl":60000}"#));
    assert!(!handed.1.params.contains("task"));
    let created = bench.becomes(A, &handed, TaskOptions::new());
    let task = created.object("task").unwrap();
    assert_eq!(task.get("ttl"), Some(60_000_u64.into()));
    assert_eq!(task.str("status").as_deref(), Some("working"));
    let id: String = task.required("taskId").unwrap();
    assert!(!bench.legacy_get(&id).contains("_meta"));
    assert_eq!(bench.say(A, &named("2", "tasks/result", &id)), [""; 0], "it waits");
    bench.complete(handed.0, r#"{"content":[]}"#);
    let said = bench.heard(A);
    assert!(said[0].contains("notifications/tasks/status") && said[0].contains("completed"), "{said:?}");
    assert!(!said[0].contains("related-task"));
    let fetched = result(&said[1]);
    let related = fetched.object("_meta").unwrap().object("io.modelcontextprotocol/related-task").unwrap();
    assert_eq!(related.str("taskId").as_deref(), Some(&*id));
    assert!(fetched.contains("content"));
    let again = bench.say(A, &named("3", "tasks/result", &id));
    assert_eq!(result(&again[0]), fetched, "as often as the client wants");
    assert!(bench.server.requests.is_empty());
}

// covers: TASKL-B-019, TASKL-S-048
#[test]
fn a_failed_task_has_the_error_of_its_request() {
    let mut bench = bench();
    let (handed, id) = bench.legacy_task("1");
    bench.answer(handed.0, Outcome::Error(ErrorObject::new(-32000, "no")));
    bench.outputs();
    assert_eq!(bench.legacy_get(&id).str("status").as_deref(), Some("failed"));
    let said = bench.say(A, &named("2", "tasks/result", &id));
    assert_eq!(error(&said[0]), ErrorObject::new(-32000, "no"));
    let (handed, id) = bench.legacy_task("3");
    bench.complete(handed.0, r#"{"content":[],"isError":true}"#);
    bench.outputs();
    assert_eq!(bench.legacy_get(&id).str("status").as_deref(), Some("failed"), "an error of a tool is one too");
    assert!(result(&bench.say(A, &named("4", "tasks/result", &id))[0]).contains("isError"));
}

// covers: TASKL-B-016, TASKL-B-038, TASKL-B-039, TASKL-B-040
#[test]
fn a_cancelled_task_stays_cancelled() {
    let mut bench = bench();
    let (handed, id) = bench.legacy_task("1");
    assert_eq!(bench.say(A, &named("2", "tasks/result", &id)), [""; 0]);
    let said = bench.say(A, &named("3", "tasks/cancel", &id));
    assert_eq!(result(&said[0]).str("status").as_deref(), Some("cancelled"));
    assert!(said.iter().any(|line| line.contains(r#""id":2"#)), "what waits for it ends: {said:?}");
    assert_eq!(error(&bench.say(A, &named("4", "tasks/cancel", &id))[0]).code, -32602);
    bench.complete(handed.0, "{}");
    assert_eq!(bench.legacy_get(&id).str("status").as_deref(), Some("cancelled"));
}

// covers: TASKL-B-023, TASKL-B-026, TASKL-B-015
#[test]
fn the_questions_of_a_task_wait_for_a_client_that_knows_it() {
    for method in ["tasks/get", "tasks/result"] {
        let mut bench = bench();
        let (handed, id) = bench.legacy_task("1");
        bench.answer(handed.0, ask("one"));
        let said = bench.heard(A);
        assert!(said.iter().any(|line| line.contains("input_required")), "{said:?}");
        assert!(!said.iter().any(|line| line.contains("elicitation/create")), "{said:?}");
        let said = bench.say(A, &named("2", method, &id));
        let asked = said.last().unwrap();
        assert!(asked.contains("elicitation/create"), "after the state: {said:?}");
        assert!(asked.contains("io.modelcontextprotocol/related-task") && asked.contains(&id), "{asked}");
        // It is not asked again where it can still be seen.
        assert_eq!(bench.say(A, &named("3", "tasks/result", &id)), [""; 0]);
        let answer = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{ACCEPTED}}}"#);
        let (responder, incoming) = bench.request(A, &answer);
        assert!(incoming.inputs.contains_key("one"));
        bench.complete(responder, "{}");
        assert!(bench.heard(A).iter().any(|line| line.contains(r#""id":3"#)));
    }
}

// covers: TASKL-B-026, TASKL-B-027
#[test]
fn a_question_waits_for_a_client_that_can_see_it() {
    let mut bench = bench().open(B).initialized_again(B, r#"{"elicitation":{}}"#);
    let (handed, id) = bench.legacy_task("1");
    bench.handle_event(A, failed());
    bench.outputs();
    bench.answer(handed.0, ask("one"));
    assert_eq!(bench.heard(B), [""; 0]);
    let said = bench.say(B, &named("2", "tasks/result", &id));
    assert!(said[0].contains("elicitation/create"), "{said:?}");
    let answer = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{ACCEPTED}}}"#);
    let (responder, _) = bench.request(B, &answer);
    bench.complete(responder, "{}");
    assert!(bench.heard(B)[0].contains(r#""id":2"#));
}

// covers: TASKL-B-018
#[test]
fn waiting_for_a_result_can_be_cancelled() {
    let mut bench = bench();
    let (handed, id) = bench.legacy_task("1");
    bench.say(A, &named("2", "tasks/result", &id));
    bench.item(A, read(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}"#));
    assert_eq!(bench.server.running(), 1);
    bench.complete(handed.0, "{}");
    assert!(!bench.heard(A).iter().any(|line| line.contains(r#""id":2"#)));
}

// covers: PROG-B-012, PROG-B-013
#[test]
fn progress_goes_on_until_the_end_of_a_task() {
    let mut bench = bench();
    let params = r#"{"name":"t","arguments":{},"task":{},"_meta":{"progressToken":"p"}}"#;
    let handed = bench.request(A, &legacy("1", "tools/call", params));
    bench.becomes(A, &handed, TaskOptions::new());
    let key = handed.0.key();
    bench.server.notify(bench.now, key, Note::Progress(crate::model::Progress::new(1.0))).unwrap();
    assert!(bench.heard(A)[0].contains("notifications/progress"));
    bench.complete(handed.0, "{}");
    let late = bench.server.notify(bench.now, key, Note::Progress(crate::model::Progress::new(2.0)));
    assert_eq!(late.map_err(|refused| refused.why), Err(Refusal::Gone));
}

// covers: TASKL-B-035, TASKL-B-036, TASKL-B-037, TASKL-B-042, TASKL-B-043, TASKL-B-044
#[test]
fn a_list_has_the_tasks_of_its_principal_in_pages() {
    let mut bench = Bench::with(|config| {
        (config.tasks, config.admit) = (true, true);
        config.limits.server.page_size = 2;
    });
    for (x, who) in [(A, "ann"), (B, "bob")] {
        admitted(&mut bench, x, who);
        bench = bench.initialized_again(x, "{}");
    }
    let ids: Vec<String> = (1..=3).map(|id| bench.legacy_task(&id.to_string()).1).collect();
    let listed = |bench: &mut Bench, x, params: &str| {
        let page = result(&bench.say(x, &legacy("50", "tasks/list", params))[0]);
        let tasks = page.array("tasks").unwrap();
        let ids = tasks.iter().map(|task| Object::read(task).unwrap().required::<String>("taskId").unwrap());
        (ids.collect::<Vec<_>>(), page.optional::<String>("nextCursor").unwrap())
    };
    let (first, cursor) = listed(&mut bench, A, "{}");
    assert_eq!(first, ids[..2]);
    let (rest, end) = listed(&mut bench, A, &format!(r#"{{"cursor":"{}"}}"#, cursor.unwrap()));
    assert_eq!((rest, end), (ids[2..].to_vec(), None));
    assert_eq!(listed(&mut bench, B, "{}"), (Vec::new(), None));
    let said = bench.say(A, &legacy("51", "tasks/list", r#"{"cursor":"?"}"#));
    assert_eq!(error(&said[0]).code, -32602);
}

// covers: TASKL-B-025, TASKL-B-034
#[test]
fn the_params_name_the_task_and_nothing_else_does() {
    let mut bench = bench();
    let (handed, id) = bench.legacy_task("1");
    let other = r#""_meta":{"io.modelcontextprotocol/related-task":{"taskId":"of-another"}}"#;
    let named = |number: &str, method: &str| legacy(number, method, &format!(r#"{{"taskId":"{id}",{other}}}"#));
    let state = result(&bench.say(A, &named("2", "tasks/get"))[0]);
    assert_eq!(state.str("taskId").as_deref(), Some(&*id));
    assert_eq!(bench.say(A, &named("3", "tasks/result")), [""; 0]);
    bench.complete(handed.0, "{}");
    let said = bench.heard(A);
    let told = said.iter().find(|line| line.contains("notifications/tasks/status")).expect("a status");
    assert!(told.contains(&id) && !told.contains("related-task"), "{told}");
    assert!(said.iter().any(|line| line.contains(r#""id":3"#)), "{said:?}");
}

// covers: TASKL-B-010, TASKL-B-003
#[test]
fn another_revision_ignores_the_wish_for_a_task() {
    let mut bench = super::bench();
    bench.say(A, &initialize("2025-06-18", "{}"));
    let (responder, incoming) = bench.request(A, &as_task("1", "{}"));
    assert!(incoming.task.is_none() && incoming.params.contains("task"));
    bench.complete(responder, "{}");
    let (responder, incoming) = bench.request(A, &named("2", "tasks/get", "x"));
    assert_eq!(incoming.method, "tasks/get", "which is for the application");
    bench.complete(responder, "{}");
}
