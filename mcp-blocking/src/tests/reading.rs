//! The scenarios in which callers read for themselves. No time passes in most of them, so a
//! connection that no thread reads, although a caller waits, is a deadlock.

use super::os::waits_of_callers;
use super::scenarios::{connected, echo};
use super::{Text, check, pass_idle_time, programs};
use crate::sync::thread;
use crate::{CallError, Client, tools};
use mcp_proto::client::Termination;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// Checks a scenario. A caller has to read in some of its schedules.
fn check_reads(schedules: usize, capacity: usize, scenario: impl Fn() + Send + Sync + Clone + 'static) {
    let count = Arc::new(AtomicUsize::new(0));
    let waits = Arc::clone(&count);
    check(schedules, capacity, move || {
        scenario();
        waits.fetch_add(waits_of_callers(), Ordering::SeqCst);
    });
    assert!(count.load(Ordering::SeqCst) > 0, "no caller reads");
}

/// Returns a client that has just made a call.
fn used() -> Client {
    programs::server();
    let client = connected("server");
    assert_eq!(echo(&client, "first").as_deref(), Ok("first"));
    client
}

fn is_cancelled(ended: &Result<mcp_proto::CallToolResult, CallError>) -> bool {
    matches!(ended, Err(CallError::Cancelled { .. }))
}

// covers: B-066, B-131
#[test]
fn callers_read_their_answers_one_after_another() {
    check_reads(500, 4096, || {
        let client = used();
        for text in ["second", "third"] {
            assert_eq!(echo(&client, text).as_deref(), Ok(text));
        }
        assert_eq!(client.close(), Termination::Requested);
    });
}

// covers: B-066, B-131, B-277
#[test]
fn reading_is_handed_over_while_callers_wait() {
    for capacity in [8, 4096] {
        check_reads(1000, capacity, || {
            let client = used();
            let callers = ["a", "b", "c"].map(|text| {
                let client = client.clone();
                thread::spawn(move || (0..2).for_each(|_| assert_eq!(echo(&client, text).as_deref(), Ok(text))))
            });
            callers.into_iter().for_each(|caller| caller.join().expect("no panic"));
            assert_eq!(client.close(), Termination::Requested);
        });
    }
}

// covers: B-066, B-277, B-272
#[test]
fn caller_that_reads_is_woken_by_a_cancellation() {
    check_reads(1000, 4096, || {
        let client = used();
        let pending = client.start(tools::call("never"));
        let id = pending.id().expect("a call");
        let caller = thread::spawn(move || assert!(is_cancelled(&pending.wait())));
        let other = client.clone();
        let other = thread::spawn(move || assert_eq!(echo(&other, "x").as_deref(), Ok("x")));
        client.cancel(id, None);
        [caller, other].into_iter().for_each(|thread| thread.join().expect("no panic"));
        assert_eq!(client.close(), Termination::Requested);
    });
}

// covers: B-066, B-277, B-133
#[test]
fn caller_that_reads_is_woken_by_a_close() {
    check_reads(1000, 4096, || {
        let client = used();
        let callers = [tools::call("never"), tools::call("never")].map(|call| {
            let client = client.clone();
            thread::spawn(move || {
                let ended = client.call(call).expect_err("no answer");
                assert!(matches!(ended, CallError::Closed { .. } | CallError::Refused(_)), "{ended:?}");
            })
        });
        let closed = Arc::new(AtomicBool::new(false));
        let done = Arc::clone(&closed);
        let closer = thread::spawn(move || {
            assert_eq!(client.close(), Termination::Requested);
            done.store(true, Ordering::SeqCst);
        });
        callers.into_iter().for_each(|caller| caller.join().expect("no panic"));
        // The server gives its handlers time to end.
        pass_idle_time(|| closed.load(Ordering::SeqCst));
        closer.join().expect("no panic");
    });
}

// covers: B-066, TIME-B-002
#[test]
fn caller_that_reads_keeps_its_time_limits() {
    check_reads(500, 4096, || {
        let ended = Arc::new(AtomicBool::new(false));
        let done = Arc::clone(&ended);
        let caller = thread::spawn(move || {
            let client = used();
            let pending = client.start(tools::call("never").timeout(Duration::from_secs(60)));
            let pending = pending.wait_timeout(Duration::from_secs(1)).expect_err("no answer");
            let over = pending.wait().expect_err("no answer");
            assert!(matches!(over, CallError::Timeout { .. }), "{over:?}");
            assert_eq!(client.close(), Termination::Requested);
            done.store(true, Ordering::SeqCst);
        });
        pass_idle_time(|| ended.load(Ordering::SeqCst));
        caller.join().expect("no panic");
    });
}

// covers: B-066, B-131
#[test]
fn callback_for_progress_may_call_the_same_client() {
    check_reads(500, 4096, || {
        let client = used();
        let (other, told) = (client.clone(), Arc::new(AtomicUsize::new(0)));
        let count = Arc::clone(&told);
        let call = tools::call("progress").arguments(&Text { text: "x".into() }).on_progress(move |_| {
            assert_eq!(echo(&other, "nested").as_deref(), Ok("nested"));
            count.fetch_add(1, Ordering::SeqCst);
        });
        assert_eq!(client.call(call).expect("an answer").first_text(), Some("x"));
        assert_eq!(told.load(Ordering::SeqCst), 1);
        assert_eq!(client.close(), Termination::Requested);
    });
}

// covers: B-066
#[test]
fn connection_is_read_soon_after_its_last_call() {
    check_reads(500, 4096, || {
        let client = used();
        assert_eq!(echo(&client, "second").as_deref(), Ok("second"));
        // No caller waits for this one, and it ends.
        let pending = client.start(tools::call("echo").arguments(&Text { text: "third".into() }));
        pass_idle_time(|| client.stats().calls == 0);
        assert_eq!(pending.wait().expect("an answer").first_text(), Some("third"));
        assert_eq!(client.close(), Termination::Requested);
    });
}
