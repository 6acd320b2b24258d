//! Tasks that several servers share.

use super::*;
use crate::model::tasks::TaskOptions;
use crate::server::store::TaskDigest;
use crate::server::tasks::TaskRecord;

const TASKS: &str = r#"{"extensions":{"io.modelcontextprotocol/tasks":{}},"elicitation":{}}"#;
const DECLARED: &str = r#"{"elicitation":{}}"#;

fn modern_headers(method: &str, name: &str) -> Headers {
    Headers::new()
        .with("MCP-Protocol-Version", "2026-07-28")
        .with("Mcp-Method", method)
        .with("Mcp-Name", name)
        .with("Accept", "application/json, text/event-stream")
}

impl Nodes {
    /// Sends a request of 2026-07-28, and returns the response, if it is there.
    fn ask(&mut self, at: usize, method: &str, rest: &str) -> Option<String> {
        let name = rest.split(r#""name":""#).nth(1).or_else(|| rest.split(r#""taskId":""#).nth(1));
        let name = name.and_then(|rest| rest.split('"').next()).unwrap_or_default().to_owned();
        let x = self.post(at, modern_headers(method, &name), &modern_with("1", method, TASKS, rest));
        self.sites[at].said(x).pop().map(|line| line.split_once(' ').unwrap().1.to_owned())
    }

    /// Calls a tool that becomes a task at once. Returns its handler and its id.
    fn task(&mut self, at: usize, options: TaskOptions) -> (Responder, String) {
        let x = self.post(
            at,
            modern_headers("tools/call", "build"),
            &modern_with("1", "tools/call", TASKS, r#","name":"build""#),
        );
        let (responder, _) = self.sites[at].handed();
        let bench = &mut self.sites[at].bench;
        bench.server.notify(bench.now, responder.key(), Note::IntoTask(options)).unwrap();
        self.settle();
        let said = self.sites[at].said(x).pop().expect("the task");
        let created = result(said.split_once(' ').unwrap().1);
        (responder, created.required("taskId").unwrap())
    }

    fn get(&mut self, at: usize, id: &str) -> Object {
        let said = self.ask(at, "tasks/get", &format!(r#","taskId":"{id}""#)).expect("a response");
        result(&said)
    }

    fn status(&mut self, at: usize, id: &str) -> String {
        self.get(at, id).required("status").unwrap()
    }

    /// Opens a subscription that includes a task.
    fn watch(&mut self, at: usize, id: &str) -> ExchangeId {
        let rest = format!(r#","notifications":{{"taskIds":["{id}"]}}"#);
        let body = modern_with("9", "subscriptions/listen", TASKS, &rest);
        self.post(at, modern_headers("subscriptions/listen", ""), &body)
    }

    /// Returns the states of tasks that a subscription was told since the last look.
    fn told(&mut self, at: usize, x: ExchangeId) -> Vec<String> {
        let said = self.sites[at].said(x);
        let (_, data) = events(&said);
        let notes = data.into_iter().filter(|data| data.contains("notifications/tasks"));
        notes
            .map(|data| {
                let crate::rpc::Message::Notification(note) = message(data) else { panic!("{data}") };
                let params = Object::read(&note.params.unwrap()).unwrap();
                params.required("statusMessage").or_else(|_| params.required("status")).unwrap()
            })
            .collect()
    }

    fn with_tasks(count: u8) -> Self {
        Self::with(count, |config| config.tasks = true)
    }

    /// Lets all but some servers live for a time.
    fn live(&mut self, of: &[usize], seconds: u64) {
        for _ in 0..seconds {
            for at in of {
                self.sites[*at].bench.pass(SECOND);
            }
            let now = self.sites[of[0]].bench.now;
            self.sites.iter_mut().for_each(|site| site.bench.now = now);
            self.settle();
        }
    }
}

// covers: TASKX-S-010
#[test]
fn task_of_one_server_is_known_at_all() {
    let mut nodes = Nodes::with_tasks(3);
    let (responder, id) = nodes.task(0, TaskOptions::new());
    (0..3).for_each(|at| assert_eq!(nodes.status(at, &id), "working", "server {at}"));
    let bench = &mut nodes.sites[0].bench;
    bench.server.notify(bench.now, responder.key(), Note::Status("compiling".into())).unwrap();
    nodes.settle();
    assert_eq!(nodes.get(1, &id).required::<String>("statusMessage").unwrap(), "compiling");
    nodes.finish(0, responder);
    for at in 0..3 {
        let task = nodes.get(at, &id);
        assert_eq!(task.required::<String>("status").unwrap(), "completed");
        assert!(task.get("result").is_some());
    }
    assert!(nodes.sites.iter().all(|site| site.bench.server.wire.env.tasks.is_empty()), "the store has it");
    // Its server need not live for that.
    nodes.kill(0);
    nodes.live(&[1, 2], 20);
    assert_eq!(nodes.status(2, &id), "completed");
}

#[test]
fn task_is_created_once_the_store_has_it() {
    let mut nodes = Nodes::with_tasks(1);
    nodes.is_away = true;
    let x = nodes.post(
        0,
        modern_headers("tools/call", "build"),
        &modern_with("1", "tools/call", TASKS, r#","name":"build""#),
    );
    let (responder, _) = nodes.sites[0].handed();
    let bench = &mut nodes.sites[0].bench;
    bench.server.notify(bench.now, responder.key(), Note::IntoTask(TaskOptions::new())).unwrap();
    nodes.settle();
    assert_eq!(nodes.sites[0].said(x), [""; 0]);
    nodes.pass(2 * SECOND);
    let said = nodes.sites[0].said(x).pop().expect("an error");
    assert_eq!(error(said.split_once(' ').unwrap().1).code, -32603);
    // Its handler should stop.
    assert!(nodes.events(0).iter().any(|event| matches!(event, Event::Cancelled(key) if *key == responder.key())));
    nodes.sites[0].complete(responder, "{}");
    assert!(nodes.sites[0].bench.server.wire.env.tasks.is_empty());
}

#[test]
fn end_of_a_task_is_shown_once_the_store_has_it() {
    let mut nodes = Nodes::with_tasks(2);
    let (responder, id) = nodes.task(0, TaskOptions::new());
    nodes.is_away = true;
    nodes.finish(0, responder);
    assert_eq!(nodes.ask(0, "tasks/get", &format!(r#","taskId":"{id}""#)), None, "it could still be cancelled");
    nodes.pass(2 * SECOND);
    nodes.is_away = false;
    // The other one is faster.
    nodes.ask(1, "tasks/cancel", &format!(r#","taskId":"{id}""#)).unwrap();
    nodes.pass(2 * SECOND);
    (0..2).for_each(|at| assert_eq!(nodes.status(at, &id), "cancelled", "server {at}"));
}

#[test]
fn task_survives_a_store_that_goes_back() {
    let mut nodes = Nodes::with_tasks(2);
    let nothing = nodes.store.clone();
    let (responder, id) = nodes.task(0, TaskOptions::new());
    let created = nodes.store.clone();
    for before in [created, nothing] {
        let bench = &mut nodes.sites[0].bench;
        bench.server.notify(bench.now, responder.key(), Note::Status("linking".into())).unwrap();
        nodes.settle();
        nodes.store = before;
        let bench = &mut nodes.sites[0].bench;
        bench.server.notify(bench.now, responder.key(), Note::Status("compiling".into())).unwrap();
        nodes.settle();
        assert_eq!(nodes.get(1, &id).required::<String>("statusMessage").unwrap(), "compiling");
    }
    nodes.finish(0, responder);
    (0..2).for_each(|at| assert_eq!(nodes.status(at, &id), "completed", "server {at}"));
}

#[test]
fn task_is_cancelled_at_another_server() {
    let mut nodes = Nodes::with_tasks(2);
    let (responder, id) = nodes.task(0, TaskOptions::new());
    nodes.events(0);
    let said = nodes.ask(1, "tasks/cancel", &format!(r#","taskId":"{id}""#)).unwrap();
    assert!(result(&said).get("resultType").is_some());
    assert!(nodes.events(0).iter().any(|event| matches!(event, Event::Cancelled(key) if *key == responder.key())));
    nodes.finish(0, responder);
    (0..2).for_each(|at| assert_eq!(nodes.status(at, &id), "cancelled", "server {at}"));
}

#[test]
fn question_of_a_task_is_answered_at_any_server() {
    let mut nodes = Nodes::with_tasks(3);
    let (responder, id) = nodes.task(0, TaskOptions::new());
    let two = vec![question("q"), question("r")];
    nodes.sites[0].bench.answer(responder, Outcome::NeedInput { requests: two, state: Some("s".into()) });
    nodes.settle();
    let task = nodes.get(1, &id);
    assert_eq!(task.required::<String>("status").unwrap(), "input_required");
    assert!(task.object("inputRequests").unwrap().get("r").is_some());
    assert!(nodes.sites[0].bench.server.wire.env.tasks.is_empty() && nodes.sites[0].bench.server.running() == 0);
    // The server that has asked need not live.
    nodes.kill(0);
    nodes.live(&[1, 2], 20);
    let accept = r#"{"action":"accept","content":{"it":"yes"}}"#;
    let update = |name: &str| format!(r#","taskId":"{id}","inputResponses":{{"{name}":{accept},"x":{{}}}}"#);
    let bad = format!(r#","taskId":"{id}","inputResponses":{{"q":{{"action":7}}}}"#);
    assert_eq!(error(&nodes.ask(1, "tasks/update", &bad).unwrap()).code, -32602);
    nodes.ask(1, "tasks/update", &update("q")).unwrap();
    assert_eq!(nodes.status(2, &id), "input_required");
    assert!(nodes.sites[1].requests.is_empty());
    nodes.ask(2, "tasks/update", &update("r")).unwrap();
    let (responder, incoming) = nodes.sites[2].handed();
    assert_eq!(incoming.inputs.keys().collect::<Vec<_>>(), ["q", "r"]);
    assert_eq!((incoming.rounds, &incoming.state), (1, &Some(RequestState::Kept("s".into()))));
    assert_eq!(incoming.params.required::<String>("name").unwrap(), "build");
    assert_eq!(nodes.status(1, &id), "working");
    nodes.finish(2, responder);
    assert_eq!(nodes.status(1, &id), "completed");
}

#[test]
fn task_of_a_lost_server_fails_or_runs_again() {
    let mut nodes = Nodes::with_tasks(3);
    let (first, fails) = nodes.task(0, TaskOptions::new());
    let (second, runs) = nodes.task(0, TaskOptions::new().rerun(true));
    let (third, unseen) = nodes.task(0, TaskOptions::new().rerun(true));
    drop((first, second, third));
    nodes.kill(0);
    nodes.live(&[1, 2], 16);
    // A client asks before any server has looked for them.
    let failed = nodes.get(1, &fails);
    assert_eq!(failed.required::<String>("status").unwrap(), "failed");
    assert!(failed.object("error").unwrap().required::<String>("message").unwrap().contains("was lost"));
    nodes.live(&[1, 2], 20);
    let mut handed = Vec::new();
    for at in [1, 2] {
        while !nodes.sites[at].requests.is_empty() {
            handed.push((at, nodes.sites[at].handed()));
        }
    }
    assert_eq!(handed.len(), 2, "each of them once");
    for (at, (responder, incoming)) in handed {
        assert_eq!(incoming.params.required::<String>("name").unwrap(), "build");
        nodes.finish(at, responder);
    }
    for id in [runs, unseen] {
        assert_eq!(nodes.status(1, &id), "completed");
    }
}

#[test]
fn ten_thousand_tasks_of_a_lost_server_end_within_a_minute() {
    let count = crate::sizes::scaled(10_000);
    let mut nodes = Nodes::with_tasks(2);
    let (responder, _) = nodes.task(0, TaskOptions::new());
    drop(responder);
    let put = |request: &StoreRequest| match request {
        StoreRequest::PutTask { version: 1, record, .. } => Some((request.clone(), record.clone())),
        _ => None,
    };
    let (request, record) = nodes.asked().iter().find_map(put).expect("a new task");
    let record = TaskRecord::decode(&record).unwrap();
    let now = nodes.now();
    let digests: Vec<TaskDigest> = (0..count)
        .map(|nth| {
            let id = format!("{}-{nth}", record.id);
            let StoreRequest::PutTask { version, owner, principal, created, ttl, .. } = request.clone() else {
                panic!()
            };
            let task = TaskDigest::of(&id);
            let record = TaskRecord { id, ..record.clone() }.encode();
            let request = StoreRequest::PutTask { task, version, record, owner, principal, created, ttl };
            assert_eq!(nodes.store.apply(now, request), StoreReply::Done);
            task
        })
        .collect();
    nodes.kill(0);
    nodes.live(&[1], 16);
    // A batch follows soon after the one before.
    for _ in 0..440 {
        nodes.sites[1].bench.pass(SECOND / 10);
        nodes.sites[0].bench.now = nodes.sites[1].bench.now;
        nodes.settle();
    }
    let now = nodes.now();
    for task in digests {
        let StoreReply::Task { record, .. } = nodes.store.apply(now, StoreRequest::GetTask { task }) else { panic!() };
        assert!(TaskRecord::decode(&record).unwrap().has_ended());
    }
}

#[test]
fn server_that_was_taken_for_dead_changes_no_task() {
    let mut nodes = Nodes::with_tasks(2);
    let (responder, id) = nodes.task(0, TaskOptions::new().rerun(true));
    let own = nodes.owns[0].take();
    // The other one takes it over meanwhile.
    nodes.live(&[1], 40);
    let (second, _) = nodes.sites[1].handed();
    nodes.owns[0] = own;
    let now = nodes.sites[1].bench.now;
    nodes.sites[0].bench.now = now;
    nodes.sites[0].bench.server.handle_timeout(now);
    nodes.sites[0].complete(responder, r#"{"late":true}"#);
    nodes.settle();
    assert_eq!(nodes.status(1, &id), "working");
    nodes.finish(1, second);
    assert!(nodes.get(0, &id).object("result").unwrap().get("late").is_none());
}

// covers: TASKX-S-030, TASKX-S-032
#[test]
fn subscription_learns_of_tasks_of_other_servers() {
    let mut nodes = Nodes::with_tasks(3);
    let (responder, id) = nodes.task(0, TaskOptions::new());
    let (own, other) = (nodes.watch(0, &id), nodes.watch(1, &id));
    assert_eq!((nodes.told(0, own), nodes.told(1, other)), (vec!["working".into()], vec!["working".into()]));
    let bench = &mut nodes.sites[0].bench;
    bench.server.notify(bench.now, responder.key(), Note::Status("compiling".into())).unwrap();
    nodes.settle();
    assert_eq!((nodes.told(0, own), nodes.told(1, other)), (vec!["compiling".into()], vec![]));
    nodes.live(&[0, 1, 2], 16);
    assert_eq!((nodes.told(0, own), nodes.told(1, other)), (vec![], vec!["compiling".into()]), "it is read again");
    // From here on, the task belongs to no server, and then to another one.
    nodes.sites[0].bench.answer(responder, ask("q"));
    nodes.settle();
    for (at, x) in [(0, own), (1, other)] {
        assert_eq!(nodes.told(at, x), ["input_required"], "server {at}");
    }
    let answer = r#"{"q":{"action":"accept","content":{"it":"yes"}}}"#;
    nodes.ask(2, "tasks/update", &format!(r#","taskId":"{id}","inputResponses":{answer}"#)).unwrap();
    let (responder, _) = nodes.sites[2].handed();
    nodes.finish(2, responder);
    for (at, x) in [(0, own), (1, other)] {
        assert_eq!(nodes.told(at, x).last().unwrap(), "completed", "server {at}");
        assert!(nodes.sites[at].bench.server.wire.env.tasks.is_empty(), "an end is the last change");
    }
}

#[test]
fn decision_on_resources_admits_to_no_task() {
    let mut nodes = Nodes::with(2, |config| {
        (config.admit, config.tasks, config.admit_watch) = (true, true, true);
    });
    nodes.principal = Some("ada");
    let (responder, id) = nodes.task(0, TaskOptions::new());
    nodes.principal = Some("bob");
    let rest = format!(r#","notifications":{{"resourceSubscriptions":["file:///a"],"taskIds":["{id}"]}}"#);
    let body = modern_with("9", "subscriptions/listen", TASKS, &rest);
    for at in 0..2 {
        let x = nodes.post(at, modern_headers("subscriptions/listen", ""), &body);
        let (asked, incoming) = nodes.sites[at].handed();
        let accepted = Object::new().with("notifications", incoming.params.object("notifications").unwrap());
        nodes.sites[at].complete(asked, &RawJson::from(accepted).to_string());
        nodes.settle();
        let said = nodes.sites[at].said(x);
        assert!(said.iter().any(|line| line.contains("acknowledged")), "{said:?}");
        nodes.live(&[0, 1], 16);
        assert_eq!(nodes.told(at, x), [""; 0], "server {at}");
    }
    nodes.finish(0, responder);
}

#[test]
fn new_task_of_a_server_that_is_lost_is_refused() {
    let mut nodes = Nodes::with_tasks(1);
    nodes.is_away = true;
    let x = nodes.post(
        0,
        modern_headers("tools/call", "build"),
        &modern_with("1", "tools/call", TASKS, r#","name":"build""#),
    );
    let (responder, _) = nodes.sites[0].handed();
    let bench = &mut nodes.sites[0].bench;
    bench.server.notify(bench.now, responder.key(), Note::IntoTask(TaskOptions::new())).unwrap();
    nodes.settle();
    // The lease ends before the store has the task.
    nodes.sites[0].bench.server.lose_tasks();
    nodes.settle();
    let said = nodes.sites[0].said(x).pop().expect("a response");
    assert_eq!(error(said.split_once(' ').unwrap().1).code, -32603);
    drop(responder);
}

#[test]
fn end_without_an_acknowledgement_outlasts_a_shutdown() {
    let mut nodes = Nodes::with(2, |config| {
        config.tasks = true;
        config.limits.server.max_tasks = 1;
    });
    let (responder, id) = nodes.task(0, TaskOptions::new());
    nodes.is_away = true;
    nodes.finish(0, responder);
    // A new one gets no place.
    nodes.post(0, modern_headers("tools/call", "build"), &modern_with("1", "tools/call", TASKS, r#","name":"build""#));
    let (second, incoming) = nodes.sites[0].handed();
    assert!(!incoming.may_be_task || incoming.task.is_none());
    nodes.finish(0, second);
    let now = nodes.sites[0].bench.now;
    nodes.sites[0].bench.server.shutdown(now, 20 * SECOND);
    nodes.settle();
    assert!(!nodes.sites[0].bench.server.is_terminated(), "the end is not kept");
    nodes.is_away = false;
    nodes.live(&[0, 1], 5);
    assert!(nodes.sites[0].bench.server.is_terminated());
    assert_eq!(nodes.status(1, &id), "completed");
}

#[test]
fn two_requests_for_a_result_do_not_fight_for_the_task() {
    let mut nodes = Nodes::with(3, |config| (config.admit, config.tasks) = (true, true));
    nodes.principal = Some("ada");
    let client = nodes.session(0, DECLARED);
    nodes.post(0, streaming(&client), &legacy("1", "tools/call", r#"{"name":"build","task":{}}"#));
    let (responder, _) = nodes.sites[0].handed();
    let bench = &mut nodes.sites[0].bench;
    bench.server.notify(bench.now, responder.key(), Note::IntoTask(TaskOptions::new())).unwrap();
    nodes.settle();
    let listed = nodes.post(0, client.headers(), &legacy("2", "tasks/list", "{}"));
    let said = nodes.sites[0].said(listed).pop().unwrap();
    let tasks = result(said.split_once(' ').unwrap().1).array("tasks").unwrap();
    let id: String = Object::read(&tasks[0]).unwrap().required("taskId").unwrap();
    nodes.sites[0].bench.answer(responder, ask("q"));
    nodes.settle();
    let body = |id_of: u32| legacy(&id_of.to_string(), "tasks/result", &format!(r#"{{"taskId":"{id}"}}"#));
    let first = nodes.post(1, streaming(&client), &body(3));
    assert!(nodes.sites[1].said(first).iter().any(|line| line.contains("elicitation/create")));
    nodes.asked();
    let second = nodes.post(2, streaming(&client), &body(4));
    let said = nodes.sites[2].said(second);
    let question = said.iter().find(|line| line.contains("elicitation/create")).expect("it is asked there");
    let crate::rpc::Message::Request(question) = message(event(question).1) else { panic!("{said:?}") };
    nodes.live(&[0, 1, 2], 12);
    assert!(nodes.asked().iter().filter(|request| matches!(request, StoreRequest::PutTask { .. })).count() < 4);
    let accept = format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{"action":"decline"}}}}"#, question.id);
    nodes.post(0, client.headers(), &accept);
    let (responder, _) = nodes.sites[2].handed();
    nodes.finish(2, responder);
    nodes.live(&[0, 1, 2], 12);
    for (at, x, answer) in [(1, first, r#""id":3"#), (2, second, r#""id":4"#)] {
        let said = nodes.sites[at].said(x);
        assert!(said.iter().any(|line| line.contains(answer)), "server {at}: {said:?}");
    }
}

#[test]
fn question_whose_reply_was_lost_keeps_its_answer() {
    let mut nodes = Nodes::with_tasks(2);
    let (responder, id) = nodes.task(0, TaskOptions::new());
    nodes.loses_replies = true;
    nodes.sites[0].bench.answer(responder, ask("q"));
    nodes.settle();
    // The store has the question, and its server does not know that.
    nodes.loses_replies = false;
    let answer = r#"{"q":{"action":"accept","content":{"it":"yes"}}}"#;
    nodes.ask(0, "tasks/update", &format!(r#","taskId":"{id}","inputResponses":{answer}"#)).unwrap();
    nodes.live(&[0, 1], 5);
    let (responder, incoming) = nodes.sites[0].handed();
    assert_eq!(incoming.inputs.len(), 1);
    nodes.finish(0, responder);
    assert_eq!(nodes.status(1, &id), "completed");
}

#[test]
fn subscription_learns_that_a_question_was_not_answered_in_time() {
    let mut nodes = Nodes::with_tasks(2);
    let (responder, id) = nodes.task(0, TaskOptions::new().ttl(60 * SECOND));
    nodes.sites[0].bench.answer(responder, ask("q"));
    nodes.settle();
    let x = nodes.watch(1, &id);
    assert_eq!(nodes.told(1, x), ["input_required"]);
    nodes.live(&[0, 1], 80);
    assert_eq!(nodes.told(1, x), ["the time of the task is over"]);
}

#[test]
fn task_of_another_principal_is_not_watched() {
    let mut nodes = Nodes::with(2, |config| (config.admit, config.tasks) = (true, true));
    nodes.principal = Some("ada");
    let (responder, id) = nodes.task(0, TaskOptions::new());
    nodes.principal = Some("bob");
    let watches = [(0, nodes.watch(0, &id)), (1, nodes.watch(1, &id))];
    nodes.finish(0, responder);
    nodes.live(&[0, 1], 20);
    for (at, x) in watches {
        assert_eq!(nodes.told(at, x), [""; 0], "server {at}");
        assert!(nodes.sites[at].bench.server.wire.env.tasks.is_empty());
    }
}

#[test]
fn task_belongs_to_its_principal_at_every_server() {
    let mut nodes = Nodes::with(2, |config| (config.admit, config.tasks) = (true, true));
    nodes.principal = Some("ada");
    let (responder, id) = nodes.task(0, TaskOptions::new());
    for (name, good) in [(Some("bob"), false), (None, false), (Some("ada"), true)] {
        nodes.principal = name;
        for at in 0..2 {
            for (method, rest) in [("tasks/get", ""), ("tasks/update", r#","inputResponses":{}"#)] {
                let said = nodes.ask(at, method, &format!(r#","taskId":"{id}"{rest}"#)).unwrap();
                let message = message(&said);
                let crate::rpc::Message::Response(response) = message else { panic!("{said}") };
                assert_eq!(matches!(response.payload, Payload::Result(_)), good, "{name:?} {method} at {at}: {said}");
            }
        }
    }
    nodes.principal = Some("bob");
    assert_eq!(error(&nodes.ask(1, "tasks/cancel", &format!(r#","taskId":"{id}""#)).unwrap()).code, -32602);
    nodes.principal = Some("ada");
    assert_eq!(nodes.status(1, &id), "working");
    nodes.finish(0, responder);
    // An id that no server has made never reaches the store.
    nodes.asked();
    let said = nodes.ask(1, "tasks/get", r#","taskId":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA""#).unwrap();
    assert_eq!((error(&said).code, nodes.asked()), (-32602, vec![]));
}

#[test]
fn older_client_waits_and_answers_at_any_server() {
    let mut nodes = Nodes::with(2, |config| (config.admit, config.tasks) = (true, true));
    nodes.principal = Some("ada");
    let client = nodes.session(0, DECLARED);
    let body = legacy("1", "tools/call", r#"{"name":"build","task":{}}"#);
    let x = nodes.post(0, streaming(&client), &body);
    let (responder, _) = nodes.sites[0].handed();
    let bench = &mut nodes.sites[0].bench;
    bench.server.notify(bench.now, responder.key(), Note::IntoTask(TaskOptions::new())).unwrap();
    nodes.settle();
    let said = nodes.sites[0].said(x).pop().unwrap();
    let id: String = result(said.split_once(' ').unwrap().1).object("task").unwrap().required("taskId").unwrap();
    // It waits at the other one.
    let waits = nodes.post(1, streaming(&client), &legacy("2", "tasks/result", &format!(r#"{{"taskId":"{id}"}}"#)));
    assert!(nodes.sites[1].said(waits).iter().all(|line| !line.contains("jsonrpc")));
    nodes.sites[0].bench.answer(responder, ask("q"));
    nodes.settle();
    let said = nodes.sites[1].said(waits);
    let question = said.iter().find(|line| line.contains("elicitation/create")).expect("it is asked there");
    let crate::rpc::Message::Request(question) = message(event(question).1) else { panic!("{said:?}") };
    let accept = format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{"action":"decline"}}}}"#, question.id);
    nodes.post(0, client.headers(), &accept);
    let (responder, incoming) = nodes.sites[1].handed();
    assert!(incoming.inputs["q"].as_ref().unwrap().as_str().contains("decline"));
    nodes.is_away = true;
    nodes.finish(1, responder);
    assert!(nodes.sites[1].said(waits).iter().all(|line| !line.contains(r#""id":2"#)), "the store does not have it");
    nodes.is_away = false;
    nodes.live(&[0, 1], 20);
    let said = nodes.sites[1].said(waits);
    assert!(said.iter().any(|line| line.contains(r#""id":2"#) && line.contains(&id)), "{said:?}");
    let x = nodes.post(0, client.headers(), &legacy("3", "tasks/list", "{}"));
    let said = nodes.sites[0].said(x).pop().unwrap();
    assert!(said.contains(&id) && said.contains("completed"), "{said}");
    let x = nodes.post(0, client.headers(), &legacy("4", "tasks/cancel", &format!(r#"{{"taskId":"{id}"}}"#)));
    let said = nodes.sites[0].said(x).pop().unwrap();
    assert_eq!(error(said.split_once(' ').unwrap().1).code, -32602);
}

#[test]
fn waiting_task_outlives_who_carried_its_questions() {
    let mut nodes = Nodes::with(2, |config| (config.admit, config.tasks) = (true, true));
    nodes.principal = Some("ada");
    let client = nodes.session(0, DECLARED);
    let x = nodes.post(0, streaming(&client), &legacy("1", "tools/call", r#"{"name":"build","task":{}}"#));
    let (responder, _) = nodes.sites[0].handed();
    let bench = &mut nodes.sites[0].bench;
    bench.server.notify(bench.now, responder.key(), Note::IntoTask(TaskOptions::new())).unwrap();
    nodes.settle();
    let said = nodes.sites[0].said(x).pop().unwrap();
    let id: String = result(said.split_once(' ').unwrap().1).object("task").unwrap().required("taskId").unwrap();
    nodes.sites[0].bench.answer(responder, ask("q"));
    nodes.settle();
    let named = format!(r#"{{"taskId":"{id}"}}"#);
    nodes.post(1, streaming(&client), &legacy("2", "tasks/result", &named));
    nodes.kill(1);
    for _ in 0..40 {
        nodes.sites[0].bench.pass(SECOND);
        nodes.settle();
    }
    let x = nodes.post(0, client.headers(), &legacy("3", "tasks/get", &named));
    let said = nodes.sites[0].said(x).pop().unwrap();
    assert!(said.contains("input_required"), "{said}");
}

/// A part of a store can go back without the part that has the leases: a shard of a cluster.
#[test]
fn task_is_settled_that_its_server_does_not_have() {
    for (reruns, at) in [(true, 0), (true, 1), (false, 0), (false, 1)] {
        let mut nodes = Nodes::with_tasks(2);
        nodes.asked();
        let (responder, id) = nodes.task(0, TaskOptions::new());
        let (mut record, ttl, owner, created) = nodes
            .asked()
            .into_iter()
            .find_map(|request| match request {
                StoreRequest::PutTask { record, ttl, owner, created, .. } => Some((record, ttl, owner, created)),
                _ => None,
            })
            .expect("the task is stored");
        nodes.finish(0, responder);
        assert_eq!(nodes.status(1, &id), "completed");
        if reruns {
            let mut before = TaskRecord::decode(&record).unwrap();
            before.reruns = true;
            record = before.encode();
        }
        let now = nodes.now();
        let task = TaskDigest::of(&id);
        let StoreReply::Task { version, .. } = nodes.store.apply(now, StoreRequest::GetTask { task }) else { panic!() };
        let back = StoreRequest::PutTask { task, version: version + 1, record, owner, principal: None, created, ttl };
        assert_eq!(nodes.store.apply(now, back), StoreReply::Done);
        nodes.sites[0].codes();
        let first = nodes.status(at, &id);
        if at == 1 {
            // It asks the server of the task, once it has not changed for some time.
            assert_eq!(first, "working");
            nodes.live(&[0, 1], 15);
            nodes.status(1, &id);
        }
        if reruns {
            let (responder, _) = nodes.sites[0].handed();
            assert_eq!(nodes.status(at, &id), "working");
            nodes.finish(0, responder);
            assert_eq!(nodes.status(at, &id), "completed");
        } else {
            assert_eq!(nodes.status(at, &id), "failed");
        }
        assert!(nodes.sites[0].codes().contains(&"node-lost"));
    }
}

#[test]
fn server_of_a_long_task_is_asked_rarely() {
    let mut nodes = Nodes::with_tasks(2);
    let (responder, id) = nodes.task(0, TaskOptions::new());
    nodes.live(&[0, 1], 15);
    nodes.asked();
    for _ in 0..30 {
        assert_eq!(nodes.status(1, &id), "working");
        nodes.live(&[0, 1], 1);
    }
    let sent = nodes.asked().into_iter().filter(|request| matches!(request, StoreRequest::Send { .. })).count();
    assert_eq!(sent, 2);
    nodes.finish(0, responder);
    assert_eq!(nodes.status(1, &id), "completed");
}
