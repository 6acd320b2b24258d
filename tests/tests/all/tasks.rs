//! Calls that become tasks, over HTTP: both adapters on each side, in both eras.

use mcp_driver::ClientOptions;
use mcp_proto::client::Policy;
use mcp_proto::tasks::Detached;
use mcp_proto::{Call, CallError, CallToolResult, ElicitResult, Object, RawJson, TaskHandle, tasks, tools};
use mcp_tests::adapters::{Adapter, Client, Server};
use mcp_tests::task_peers::{self, router};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Serves it. The sender learns of each beginning and end of the tool that never ends by itself.
fn serve(adapter: Adapter, seen: &Sender<bool>) -> Server {
    let seen = Mutex::new(seen.clone());
    let router = router(adapter, move |begins| {
        let _ = seen.lock().expect("no panic").send(begins);
    });
    adapter.serve_http(router, "127.0.0.1:0").expect("it listens")
}

/// A client of this era whose user is called Ada. Counts the questions.
fn connect(adapter: Adapter, server: &Server, policy: Policy, asked: &Arc<AtomicUsize>) -> Client {
    let url = format!("http://{}/mcp", server.address());
    task_peers::connect(adapter, url.as_str(), policy, asked).expect("it connects")
}

fn call(name: &str, policy: Policy) -> Call<tools::CallTool> {
    let call = tools::call(name).arguments(&Object::new());
    if policy == Policy::Legacy { call.as_task() } else { call }
}

fn pairs() -> impl Iterator<Item = (Adapter, Adapter, Policy)> {
    let both = Adapter::ALL.into_iter().flat_map(|server| Adapter::ALL.map(|client| (server, client)));
    both.flat_map(|(server, client)| [Policy::Modern, Policy::Legacy].map(|policy| (server, client, policy)))
}

fn text(result: &CallToolResult) -> &str {
    result.first_text().expect("a text")
}

// covers: TASKX-C-003, TASKX-C-018, TASKL-B-026
#[test]
fn task_that_asks_is_one_call_in_both_eras() {
    for (of_server, of_client, policy) in pairs() {
        let (seen, _) = channel();
        let server = serve(of_server, &seen);
        let asked = Arc::default();
        let client = connect(of_client, &server, policy, &asked);
        let mut states = Vec::new();
        let greeted = client.call(call("greet", policy).on_task(|update| states.push(update.task.status)));
        assert_eq!(text(&greeted.expect("a result")), "hello Ada, true", "{of_server:?} {of_client:?} {policy:?}");
        assert_eq!(asked.load(Ordering::Relaxed), 1, "{states:?}");
        assert!(!states.is_empty());
        client.close().expect("in order");
        server.stop(Duration::ZERO);
    }
}

// covers: TASKX-C-014
#[test]
fn detached_task_is_continued_by_another_client() {
    for (of_server, of_client, policy) in pairs() {
        let (seen, _) = channel();
        let server = serve(of_server, &seen);
        let asked = Arc::default();
        let client = connect(of_client, &server, policy, &asked);
        let detached = client.call(call("greet", policy).detach()).expect("a result");
        client.close().expect("in order");
        let Detached::Task(handle) = detached else { panic!("{detached:?}") };
        let kept = handle.to_json().as_str().to_owned();
        let handle = TaskHandle::read(&RawJson::parse(kept).expect("JSON")).expect("a handle");
        let client = connect(of_client, &server, policy, &asked);
        let greeted = client.call(tasks::attach(handle.clone())).expect("a result");
        assert_eq!(text(&greeted), "hello Ada, true");
        // The session of 2025-11-25 that ended may have been asked, and taken its answer along.
        let questions = asked.load(Ordering::Relaxed);
        assert!(questions == 1 || (policy == Policy::Legacy && questions == 2), "{questions}");
        // The result is kept.
        let again = client.call(tasks::attach(handle.clone())).expect("a result");
        assert_eq!(text(&again), "hello Ada, true");
        let state = client.call(tasks::get(handle.id())).expect("a state");
        assert!(state.task.status.is_final());
        client.close().expect("in order");
        server.stop(Duration::ZERO);
    }
}

// covers: TASKX-B-027, TASKL-B-039
#[test]
fn call_that_is_cancelled_or_dropped_cancels_its_task() {
    for (of_server, of_client, policy) in pairs() {
        let (seen, sees) = channel();
        let server = serve(of_server, &seen);
        let client = connect(of_client, &server, policy, &Arc::default());
        let (began, begins) = channel();
        let watched = call("forever", policy).on_task(move |_| {
            let _ = began.send(());
        });
        let next = || {
            sees.recv_timeout(Duration::from_secs(10))
                .unwrap_or_else(|_| panic!("{of_server:?} {of_client:?} {policy:?}"))
        };
        std::thread::scope(|scope| {
            let pending = client.start(watched);
            let id = pending.id().expect("accepted");
            let ending = scope.spawn(move || pending.wait());
            begins.recv().expect("a task");
            // A handler whose request is cancelled before its beginning does not run.
            assert!(next(), "it begins");
            match &client {
                Client::Blocking(client) => client.cancel(id, None),
                Client::Smol(client, _) => client.cancel(id, None),
            }
            let outcome = ending.join().expect("no panic");
            assert!(matches!(outcome, Err(CallError::Cancelled { .. })), "{outcome:?}");
        });
        assert!(!next(), "and ends");
        // Its id may still be on its way: it cancels the task when it comes. A request of
        // 2026-07-28 that is dropped before its response is cancelled as any other.
        if policy == Policy::Legacy {
            let dropped = client.start(call("forever", policy));
            assert!(next(), "it begins");
            drop(dropped);
            assert!(!next(), "and ends");
        }
        client.close().expect("in order");
        server.stop(Duration::ZERO);
    }
}

// covers: TASKX-S-002, TASKL-B-003
#[test]
fn call_of_a_client_without_tasks_is_an_ordinary_one() {
    for (of_server, of_client, policy) in pairs() {
        let (seen, _) = channel();
        let server = serve(of_server, &seen);
        let options = ClientOptions::new()
            .set(move |config| config.policy = policy)
            .on_elicit(|_| ElicitResult::accept(&Object::new().with("name", "Ada")));
        let client = of_client.connect(&*format!("http://{}/mcp", server.address()), options).expect("it connects");
        let greeted = client.call(call("greet", policy)).expect("a result");
        assert_eq!(text(&greeted), "hello Ada, false");
        client.close().expect("in order");
        server.stop(Duration::ZERO);
    }
}
