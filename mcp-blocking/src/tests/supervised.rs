//! Supervised clients in the model: calls, programs that exit, replaced servers, and the end.

use super::{Text, check, config, pass_idle_time, programs};
use crate::sync::thread;
use crate::{
    CallError, CallRefusal, Program, ServerSpec, SupervisedError, Supervision, Supervisor, SupervisorOptions,
    supervise, tools,
};
use mcp_proto::{Call, ClientConfig};
use mcp_supervisor::Lists;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

fn spec(program: &str, lists: Lists) -> ServerSpec {
    let mut spec = ServerSpec::new(ClientConfig::program(Program::new(program)));
    spec.lists = lists;
    spec
}

/// A supervisor of one server that connects again at once.
fn supervised(program: &str, lists: Lists) -> Supervisor {
    let mut policy = Supervision::default();
    (policy.waits, policy.max_attempts) = (vec![Duration::ZERO; 100], 100);
    let supervisor = supervise(SupervisorOptions::new().policy(policy).clients(|_| config())).expect("a thread");
    supervisor.add("a", spec(program, lists)).expect("a new key");
    supervisor
}

fn echo(text: &str) -> Call<tools::CallTool> {
    tools::call("echo").arguments(&Text { text: text.into() })
}

/// Runs these at the same time, each on a thread. Time passes while nothing else happens: the
/// thread of a connection reads again some time after a caller has left it.
fn together<const N: usize>(works: [Box<dyn FnOnce() + Send>; N]) {
    let ended = Arc::<AtomicUsize>::default();
    let threads = works.map(|work| {
        let ended = Arc::clone(&ended);
        thread::spawn(move || {
            work();
            ended.fetch_add(1, Ordering::SeqCst);
        })
    });
    pass_idle_time(|| ended.load(Ordering::SeqCst) == N);
    threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
}

/// Calls `echo`, and expects its result.
fn echoes(supervisor: &Supervisor, text: &'static str) -> Box<dyn FnOnce() + Send> {
    let supervisor = supervisor.clone();
    Box::new(move || {
        let echoed = supervisor.call("a", echo(text)).expect("a result");
        assert_eq!(echoed.first_text(), Some(text));
    })
}

fn closes(supervisor: &Supervisor) -> Box<dyn FnOnce() + Send> {
    let supervisor = supervisor.clone();
    Box::new(move || assert_eq!(supervisor.close(), 0))
}

// covers: B-131, B-066, B-277
#[test]
fn calls_of_two_threads_share_one_client_and_end_once() {
    check(300, 512, || {
        programs::server();
        let supervisor = supervised("server", Lists::ALL);
        together([echoes(&supervisor, "one"), echoes(&supervisor, "other")]);
        assert_eq!(supervisor.health("a").expect("a server").counters.attempts, 1);
        together([Box::new(|| drop(supervisor))]);
    });
}

// covers: B-025, R-33, S0-62
#[test]
fn exit_of_a_program_ends_or_repeats_each_call_once() {
    check(300, 512, || {
        programs::exiting();
        let supervisor = supervised("exiting", Lists::NONE);
        let exits = supervisor.clone();
        // It runs before the exit, or once more on the next program.
        let repeats = supervisor.clone();
        together([
            Box::new(move || {
                let exited = exits.call("a", tools::call("exit"));
                assert!(matches!(exited, Err(SupervisedError::Call(CallError::Closed { .. }))), "{exited:?}");
            }),
            Box::new(move || {
                let echoed = repeats.call("a", echo("again").repeatable()).expect("a result");
                assert_eq!(echoed.first_text(), Some("again"));
            }),
        ]);
        together([closes(&supervisor)]);
    });
}

// covers: B-084
#[test]
fn call_that_meets_a_replacement_or_the_end_has_one_end() {
    check(300, 512, || {
        programs::server();
        let supervisor = supervised("server", Lists::NONE);
        let call = || -> Box<dyn FnOnce() + Send> {
            let supervisor = supervisor.clone();
            Box::new(move || match supervisor.call("a", echo("text")) {
                Ok(echoed) => assert_eq!(echoed.first_text(), Some("text")),
                Err(SupervisedError::Refused(CallRefusal::Replaced | CallRefusal::Closed)) => {}
                Err(e) => panic!("{e:?}"),
            })
        };
        let replaces = supervisor.clone();
        let replace: Box<dyn FnOnce() + Send> = Box::new(move || {
            assert!(replaces.replace("a", spec("server", Lists::NONE)));
            assert_eq!(replaces.close(), 0);
        });
        together([call(), call(), replace]);
    });
}
