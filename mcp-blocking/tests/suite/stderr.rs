//! The standard error of programs: it is always read and reported by lines, and its end is part of
//! the error.

use crate::common::{ANSWER, BOUND, HELLO, bounded, group, legacy, members, quick, server, sh, until};
use mcp_blocking::{CallError, Client, ClientOptions, ConnectError, Stderr, connect_with, tools};
use mcp_proto::client::Termination;
use mcp_proto::exchange::{Closed, ExitStatus};
use std::sync::{Arc, Mutex, OnceLock, Weak, mpsc};
use std::time::Instant;

/// Returns a configuration that passes lines to this function.
fn told(config: ClientOptions, told: impl Fn(&str) + Send + Sync + 'static) -> ClientOptions {
    config.stderr(Stderr::Lines(Arc::new(told)))
}

fn text(client: &Client) -> String {
    client.call(tools::call("add")).expect("an answer").first_text().expect("a text").to_owned()
}

// covers: B-141, B-129, B-145
#[test]
fn connect_error_has_the_standard_error_of_an_exited_program() {
    bounded(|| {
        let script = "echo 'reading the licence' >&2; echo 'no licence found' >&2; exit 7";
        for config in [legacy(), told(legacy(), |_| {})] {
            let failed = connect_with(sh(script), config).expect_err("it exits");
            assert!(matches!(failed, ConnectError::Negotiation(_)), "{failed:?}");
            assert!(failed.to_string().contains("code 7"), "{failed}");
            assert!(failed.to_string().ends_with("no licence found"), "{failed}");
        }
    });
}

// covers: B-141, B-129
#[test]
fn call_error_has_the_standard_error_of_an_exited_program() {
    bounded(|| {
        // More than the pipe holds, with its end after standard output is closed.
        let script = "read -r line; exec >&-; head -c 200000 /dev/zero | tr '\\0' 'x' >&2; echo >&2; echo 'out of memory' >&2; exit 9";
        let client = connect_with(server(script), legacy()).expect("hello");
        let ended = client.call(tools::call("add")).expect_err("no answer");
        assert!(matches!(ended, CallError::Closed { .. }), "{ended:?}");
        let Termination::Closed(Closed::Exited(status)) = client.close() else { panic!("it exits") };
        assert_eq!(status.code, Some(9));
        assert!(status.stderr.ends_with("x\nout of memory\n"), "{status:?}");
        assert_eq!(status.stderr.len(), ExitStatus::STDERR_TAIL);
    });
}

// covers: B-129, B-130, S2-07, STDIO-C-004, STDIO-C-005
#[test]
fn a_megabyte_of_standard_error_blocks_nothing() {
    bounded(|| {
        let megabyte = "head -c 1048576 /dev/zero | tr '\\0' 'x' >&2";
        let script = format!("{megabyte}\n{HELLO}\nread -r line; {megabyte}; {ANSWER}; read -r line");
        for config in [legacy(), told(legacy(), |_| {})] {
            let client = connect_with(sh(&script), config).expect("hello");
            assert_eq!(text(&client), "3");
        }
    });
}

// covers: B-129, B-281
#[test]
fn function_that_panics_on_a_line_receives_the_next() {
    bounded(|| {
        let script = format!("echo bad >&2; echo good >&2; read -r line; {ANSWER}; read -r line");
        let (said, lines) = mpsc::channel();
        let fails = move |line: &str| {
            if line == "bad" {
                std::panic::resume_unwind(Box::new("the callback fails"));
            }
            said.send(line.to_owned()).expect("heard");
        };
        let client = connect_with(server(&script), told(legacy(), fails)).expect("hello");
        assert_eq!(lines.recv_timeout(BOUND).as_deref(), Ok("good"));
        assert_eq!(text(&client), "3");
    });
}

// covers: B-277
#[test]
fn function_that_holds_the_client_is_dropped_at_its_end() {
    bounded(|| {
        let own: Arc<OnceLock<Client>> = Arc::default();
        let held: Weak<OnceLock<Client>> = Arc::downgrade(&own);
        let seen = Arc::clone(&own);
        let config = told(legacy(), move |_| assert!(seen.get().is_none_or(|client| client.stats().channels <= 1)));
        let client = connect_with(server("while read -r line; do :; done"), config).expect("hello");
        own.set(client.clone()).expect("once");
        drop(own);
        assert_eq!(client.close(), Termination::Requested);
        until(|| held.strong_count() == 0);
    });
}

// covers: B-277, B-134, B-138
#[test]
fn function_is_dropped_even_if_another_process_holds_the_pipe() {
    bounded(|| {
        let fifo = std::env::temp_dir().join(format!("mcp-blocking-stderr-{}", std::process::id()));
        let fifo = fifo.to_str().expect("unicode");
        let script = format!(
            "mkfifo {fifo}; setsid sh -c 'echo escaped >&2; read -r line <{fifo}' >&- & while read -r line; do :; done"
        );
        let (said, lines) = mpsc::channel();
        let held = Arc::new(());
        let weak = Arc::downgrade(&held);
        let config = told(quick(legacy()), move |line| {
            let _held = &held;
            drop(said.send(line.to_owned()));
        });
        let client = connect_with(server(&script), config).expect("hello");
        assert_eq!(lines.recv_timeout(BOUND).as_deref(), Ok("escaped"));
        let began = Instant::now();
        assert_eq!(client.close(), Termination::Requested);
        assert!(began.elapsed() < BOUND, "{:?}", began.elapsed());
        until(|| weak.strong_count() == 0);
        until(|| client.stats().detached_threads == 1);
        std::fs::write(fifo, "go\n").expect("written");
        until(|| client.stats().detached_threads == 0);
        std::fs::remove_file(fifo).expect("removed");
    });
}

// covers: B-138, B-280
#[test]
fn function_for_lines_may_close_the_client() {
    bounded(|| {
        let own: Arc<OnceLock<Client>> = Arc::default();
        let (said, closed) = mpsc::channel();
        let said = Mutex::new(Some(said));
        let seen = Arc::clone(&own);
        let config = told(quick(legacy()), move |line| {
            if line == "fatal" {
                until(|| seen.get().is_some());
                let ended = seen.get().expect("set").close();
                if let Some(said) = said.lock().expect("no panic").take() {
                    said.send(ended).expect("heard");
                }
            }
        });
        let client = connect_with(server("echo fatal >&2; while read -r line; do :; done"), config).expect("hello");
        let group = group(&client);
        own.set(client).expect("once");
        assert_eq!(closed.recv_timeout(BOUND), Ok(Termination::Requested));
        until(|| members(group).is_empty());
    });
}
