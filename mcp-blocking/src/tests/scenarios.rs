//! The scenarios of the model.

use super::{Text, check, config, ladder, pass_idle_time, pass_time, programs, router};
use crate::pool::Pool;
use crate::sync::{Condvar, Mutex, lock, thread, wait};
use crate::{CallError, Client, Program, Stderr, connect_with, tools};
use mcp_proto::client::{Policy, Termination};
use mcp_proto::exchange::{Closed, ExitStatus};
use std::io::{BufRead, BufReader, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

/// An event that happens once and can be waited for.
#[derive(Clone, Default)]
struct Event(Arc<(Mutex<bool>, Condvar)>);

impl Event {
    fn happen(&self) {
        *lock(&self.0.0) = true;
        self.0.1.notify_all();
    }

    fn wait(&self) {
        let mut happened = lock(&self.0.0);
        while !*happened {
            happened = wait(&self.0.1, happened, None);
        }
    }
}

pub(super) fn echo(client: &Client, text: &str) -> Result<String, CallError> {
    let echoed = client.call(tools::call("echo").arguments(&Text { text: text.into() }))?;
    Ok(echoed.first_text().unwrap_or_default().to_owned())
}

pub(super) fn connected(program: &str) -> Client {
    connect_with(Program::new(program), config()).expect("connected")
}

/// Three threads make calls: one waits, one drops its call, one cancels it. Then the client is
/// closed.
fn calls_from_three_threads(text: &'static str) {
    programs::server();
    let client = connected("server");
    let start = |client: &Client| client.start(tools::call("echo").arguments(&Text { text: text.into() }));
    let threads = [
        thread::spawn({
            let client = client.clone();
            move || assert_eq!(echo(&client, text).as_deref(), Ok(text))
        }),
        thread::spawn({
            let client = client.clone();
            move || drop(start(&client))
        }),
        thread::spawn({
            let client = client.clone();
            move || {
                let pending = start(&client);
                pending.cancel(None);
                let ended = pending.wait();
                assert!(matches!(ended, Ok(_) | Err(CallError::Cancelled { .. })), "{ended:?}");
            }
        }),
    ];
    threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
    assert_eq!(client.stats().calls, 0);
    assert_eq!(client.close(), Termination::Requested);
    assert_eq!(client.stats().channels, 0);
}

// covers: B-131, B-066, B-277, B-137
#[test]
fn calls_of_many_threads_end_once_over_pipes_of_one_byte() {
    check(400, 1, || calls_from_three_threads("a text that is longer than a pipe"));
}

// covers: B-131, B-066, B-277
#[test]
fn calls_of_many_threads_end_once_over_pipes_of_a_message() {
    check(2000, 4096, || calls_from_three_threads("short"));
}

// covers: B-131, B-066, B-277
#[test]
fn every_kind_of_handler_answers_once_in_every_schedule() {
    for capacity in [8, 4096] {
        check(500, capacity, || {
            programs::server();
            let client = connected("server");
            let start = |tool| client.start(tools::call(tool).arguments(&Text { text: "x".into() }));
            let threads = ["inline", "later", "echo"].map(|tool| {
                let pending = start(tool);
                thread::spawn(move || assert_eq!(pending.wait().expect("an answer").first_text(), Some("x")))
            });
            let cancelled = start("later");
            cancelled.cancel(None);
            let ended = cancelled.wait();
            assert!(matches!(ended, Ok(_) | Err(CallError::Cancelled { .. })), "{ended:?}");
            threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
            assert_eq!(client.close(), Termination::Requested);
        });
    }
}

// covers: B-141, B-066, B-137
#[test]
fn exiting_program_ends_every_call_once() {
    check(1000, 64, || {
        programs::exiting();
        let client = connected("exiting");
        let other = client.clone();
        let other = thread::spawn(move || echo(&other, "x"));
        let exited = Closed::Exited(ExitStatus::exited(3));
        let lost = |ended: &CallError| matches!(ended, CallError::Closed { why, .. } if *why == exited);
        let ended = client.call(tools::call("exit")).expect_err("no answer");
        assert!(lost(&ended), "{ended:?}");
        match other.join().expect("no panic") {
            Ok(text) => assert_eq!(text, "x"),
            // The client had ended before the call.
            Err(CallError::Refused(_)) => {}
            Err(ended) => assert!(lost(&ended), "{ended:?}"),
        }
        assert_eq!(client.close(), Termination::Closed(exited));
    });
}

// covers: B-138, B-133, B-137, B-066
#[test]
fn program_that_never_reads_is_ended_step_by_step() {
    for ignores_term in [false, true] {
        check(500, 8, move || {
            programs::deaf(ignores_term);
            let config = ladder(config()).set(|config| {
                config.policy = Policy::Legacy;
                config.timeout = None;
            });
            let client = connect_with(Program::new("deaf"), config).expect("connected");
            let other = client.clone();
            let caller = thread::spawn(move || {
                let ended = echo(&other, &"long".repeat(8)).expect_err("no peer reads it");
                assert!(matches!(ended, CallError::Closed { .. } | CallError::Refused(_)), "{ended:?}");
            });
            let closed = Arc::new(AtomicBool::new(false));
            let done = Arc::clone(&closed);
            let closer = thread::spawn(move || {
                assert_eq!(client.close(), Termination::Requested);
                done.store(true, Ordering::SeqCst);
            });
            pass_time(|| closed.load(Ordering::SeqCst));
            [caller, closer].into_iter().for_each(|thread| thread.join().expect("no panic"));
        });
    }
}

// covers: B-129, B-141
#[test]
fn end_of_standard_error_is_reported_in_every_schedule() {
    const SAID: &[u8] = b"cannot start: no licence\nbye";
    check(2000, 1, || {
        programs::failing(SAID);
        let told = Arc::new(Mutex::new(String::new()));
        let lines = Arc::clone(&told);
        let stderr = Stderr::Lines(Arc::new(move |line: &str| {
            lock(&lines).push_str(line);
            lock(&lines).push('|');
        }));
        let failed = connect_with(Program::new("failing"), config().stderr(stderr)).expect_err("it exits");
        assert!(failed.to_string().ends_with("bye"), "{failed}");
        assert_eq!(*lock(&told), "cannot start: no licence|bye|");
    });
}

// covers: B-134, B-138, B-141
#[test]
fn pipe_held_by_another_process_delays_the_end_within_limits() {
    check(1000, 1, || {
        let release = Event::default();
        let held = release.clone();
        programs::leaving(move || held.wait());
        let failed = Arc::new(AtomicBool::new(false));
        let done = Arc::clone(&failed);
        let connecting = thread::spawn(move || {
            let ended = connect_with(Program::new("leaving"), config().stderr(Stderr::Discard));
            let ended = ended.expect_err("it exits").to_string();
            assert!(ended.contains("code 5"), "{ended}");
            done.store(true, Ordering::SeqCst);
        });
        // Only time ends it, since the pipe stays open.
        pass_idle_time(|| failed.load(Ordering::SeqCst));
        connecting.join().expect("no panic");
        release.happen();
    });
}

// covers: B-277, B-272, B-133
#[test]
fn client_may_be_closed_by_any_thread_while_calls_wait() {
    check(1000, 64, || {
        programs::server();
        let client = connected("server");
        let threads = [
            thread::spawn({
                let client = client.clone();
                move || match echo(&client, "x") {
                    Ok(text) => assert_eq!(text, "x"),
                    Err(CallError::Closed { .. } | CallError::Refused(_)) => {}
                    Err(other) => panic!("{other:?}"),
                }
            }),
            thread::spawn({
                let client = client.clone();
                move || assert_eq!(client.close(), Termination::Requested)
            }),
            thread::spawn(move || drop(client)),
        ];
        threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
    });
}

// covers: B-131, B-140, B-142
#[test]
fn server_answers_all_requests_and_returns_at_eof() {
    check(1000, 1, || {
        let ((input, mut asks), (answers, output)) = (super::os::Pipe::ends(), super::os::Pipe::ends());
        let serving = thread::spawn(move || crate::serve(router(), input, output));
        let asking = thread::spawn(move || {
            for id in [1, 2] {
                let meta = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}"#;
                let call = format!(
                    r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"echo","arguments":{{"text":"x"}},"_meta":{meta}}}}}"#
                );
                writeln!(asks, "{call}").expect("it is read");
            }
        });
        let mut lines: Vec<String> = BufReader::new(answers).lines().map(|line| line.expect("a line")).collect();
        lines.sort();
        assert_eq!(lines.len(), 2, "{lines:?}");
        for (id, line) in [1, 2].into_iter().zip(&lines) {
            assert!(line.contains(&format!(r#""id":{id}"#)) && line.contains(r#""text":"x""#), "{line}");
        }
        asking.join().expect("no panic");
        serving.join().expect("no panic").expect("no error");
    });
}

// covers: B-075
#[test]
fn pool_loses_no_job_when_threads_end_and_start() {
    check(20_000, 1, || {
        let (done, doing) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
        let (count, at_once) = (Arc::clone(&done), Arc::clone(&doing));
        let finished = Event::default();
        let last = finished.clone();
        let pool = Arc::new(Pool::new("pool", 2, move |_job: u32| {
            assert!(at_once.fetch_add(1, Ordering::SeqCst) < 2);
            thread::yield_now();
            at_once.fetch_sub(1, Ordering::SeqCst);
            if count.fetch_add(1, Ordering::SeqCst) == 3 {
                last.happen();
            }
        }));
        let submitting = [0, 2].map(|first| {
            let pool = Arc::clone(&pool);
            thread::spawn(move || (first..first + 2).for_each(|job| pool.submit(job).expect("a thread")))
        });
        // Idle threads end meanwhile.
        for _ in 0..2 {
            super::World::tick();
            thread::yield_now();
        }
        submitting.into_iter().for_each(|thread| thread.join().expect("no panic"));
        finished.wait();
        drop(pool);
        assert_eq!(done.load(Ordering::SeqCst), 4);
    });
}

// covers: B-060, TIME-B-002
#[test]
fn call_that_times_out_ends_once_despite_a_late_response() {
    check(1000, 64, || {
        programs::server();
        let client = connected("server");
        let ended = Arc::new(AtomicBool::new(false));
        let done = Arc::clone(&ended);
        let caller = thread::spawn(move || {
            let call = tools::call("echo").arguments(&Text { text: "x".into() }).timeout(Duration::from_secs(1));
            match client.call(call) {
                // Time also passes for a server that has not read the request.
                Ok(_) | Err(CallError::Timeout { .. } | CallError::Closed { .. } | CallError::Refused(_)) => {}
                Err(other) => panic!("{other:?}"),
            }
            drop(client);
            done.store(true, Ordering::SeqCst);
        });
        pass_time(|| ended.load(Ordering::SeqCst));
        caller.join().expect("no panic");
    });
}
