//! The standard error of programs: it is always read and reported by lines, and its end is part of
//! the error.

use super::*;
use std::sync::Weak;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Returns a configuration that passes lines to this function.
pub(crate) fn told(config: ClientOptions, told: impl Fn(&str) + Send + Sync + 'static) -> ClientOptions {
    config.stderr(Stderr::Lines(Arc::new(told)))
}

/// Returns how a server ended during a call.
fn end(program: Program) -> ExitStatus {
    let client = connect_with(program, legacy()).wait().expect("hello");
    match call(&client, "add") {
        Err(CallError::Closed { why: Closed::Exited(status), .. }) => status,
        other => panic!("{other:?}"),
    }
}

/// Responds to every call, after 100,000 bytes on standard error.
const NOISY: &str = r#"id=2; while read -r line; do
    head -c 99999 /dev/zero | tr '\0' 'x' >&2; echo >&2
    echo '{"jsonrpc":"2.0","id":'$id',"result":{"content":[]}}'; id=$((id + 1)); done"#;

// covers: B-141, B-129, B-145
#[test]
fn error_quotes_a_program_that_exits() {
    let _limit = limit();
    let script = "echo 'reading the licence' >&2; echo 'no licence found' >&2; exit 7";
    for config in [legacy(), told(legacy(), |_| {})] {
        let failed = connect_with(sh(script), config).wait().expect_err("it exits");
        assert!(matches!(failed, ConnectError::Negotiation(_)), "{failed:?}");
        let quote = "the program exited with code 7; last line of its standard error: no licence found";
        assert!(failed.to_string().ends_with(quote), "{failed}");
    }
    let program = server("read -r line; echo 'out of memory' >&2; kill -9 $$");
    let client = connect_with(program, legacy()).wait().expect("hello");
    let ended = call(&client, "add").expect_err("no answer").to_string();
    let quote = "the program was killed by signal 9; last line of its standard error: out of memory";
    assert!(ended.ends_with(quote), "{ended}");
}

// covers: B-141, B-129
#[test]
fn end_of_standard_error_is_complete_after_any_output() {
    let _limit = limit();
    // More than the pipe holds; in the second script after standard output is closed.
    let flood = "head -c 1048576 /dev/zero | tr '\\0' 'x' >&2; echo >&2; echo last >&2; exit 7";
    for script in [format!("read -r line; {flood}"), format!("read -r line; exec >&-; {flood}")] {
        for _ in 0..10 {
            let client = connect_with(server(&script), legacy()).wait().expect("hello");
            let ended = call(&client, "add").expect_err("no answer");
            assert!(matches!(ended, CallError::Closed { .. }), "{ended:?}");
            let Termination::Closed(Closed::Exited(status)) = client.close().wait() else { panic!("it exits") };
            assert_eq!(status.code, Some(7));
            assert!(status.stderr.ends_with("x\nlast\n"), "{status:?}");
            assert_eq!(status.stderr.len(), ExitStatus::STDERR_TAIL);
        }
    }
}

// covers: B-141
#[test]
fn output_after_the_exit_is_read() {
    let _limit = limit();
    // Written after the program and its output have ended.
    let late = "(while ! grep -q ') Z' /proc/$$/stat; do :; done; echo late >&2) >&- & exit 3";
    // Even an implementation that does not wait may see it by chance, once.
    for _ in 0..3 {
        let status = end(server(&format!("read -r line; {late}")));
        assert_eq!(status, ExitStatus::exited(3).with_stderr("late\n"));
    }
}

// covers: B-138, B-141
#[test]
fn grandchild_that_holds_standard_error_does_not_hide_exit() {
    let _limit = limit();
    let program = server("sleep 1000 >&- <&- & read -r line; echo gone >&2; exit 5");
    let client = connect_with(program, legacy()).wait().expect("hello");
    let group = group(&client);
    let began = Instant::now();
    let Err(CallError::Closed { why, .. }) = call(&client, "add") else { panic!("the program exits") };
    assert_eq!(why, Closed::Exited(ExitStatus::exited(5).with_stderr("gone\n")));
    assert!(began.elapsed() < BOUND / 2, "{:?}", began.elapsed());
    until(|| members(group).is_empty());
}

// covers: B-129, B-130, S2-07, STDIO-C-004, STDIO-C-005
#[test]
fn endless_standard_error_does_not_block_the_protocol() {
    let _limit = limit();
    // More than any pipe holds, before it reads its first byte.
    let early = format!("head -c 2000000 /dev/zero | tr '\\0' 'x' >&2; {HELLO} {NOISY}");
    for config in [legacy(), told(legacy(), |_| {})] {
        let client = connect_with(sh(&early), config).wait().expect("hello");
        (0..20).for_each(|_| drop(call(&client, "add").expect("an answer")));
        assert_eq!(client.close().wait(), Termination::Requested);
    }
}

// covers: B-129, B-281
#[test]
fn function_that_panics_at_every_line_is_harmless() {
    let _limit = limit();
    let bytes = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&bytes);
    let config = told(legacy(), move |line| {
        count.fetch_add(line.len(), Ordering::SeqCst);
        std::panic::resume_unwind(Box::new("on purpose"));
    });
    let client = connect_with(server(NOISY), config).wait().expect("hello");
    (0..10).for_each(|_| drop(call(&client, "add").expect("an answer")));
    client.close().wait();
    assert_eq!(bytes.load(Ordering::SeqCst), 10 * 99_999);
}

// covers: B-277
#[test]
fn function_that_holds_the_client_is_dropped_at_its_end() {
    let _limit = limit();
    let own: Arc<OnceLock<Client>> = Arc::default();
    let held: Weak<OnceLock<Client>> = Arc::downgrade(&own);
    let seen = Arc::clone(&own);
    let config = told(legacy(), move |_| assert!(seen.get().is_none_or(|client| client.stats().channels <= 1)));
    let client = connect_with(server("while read -r line; do :; done"), config).wait().expect("hello");
    own.set(client.clone()).expect("once");
    drop(own);
    assert_eq!(client.close().wait(), Termination::Requested);
    until(|| held.strong_count() == 0);
}

// covers: B-277, B-134, B-138
#[test]
fn function_is_dropped_even_if_another_process_holds_the_pipe() {
    let _limit = limit();
    let fifo = temp("stderr");
    let script = format!(
        "mkfifo {0}; setsid sh -c 'echo escaped >&2; read -r line <{0}' >&- & while read -r line; do :; done",
        fifo.display()
    );
    let (said, lines) = mpsc::channel();
    let held = Arc::new(());
    let weak = Arc::downgrade(&held);
    let config = told(quick(legacy()), move |line| {
        let _held = &held;
        drop(said.send(line.to_owned()));
    });
    let client = connect_with(server(&script), config).wait().expect("hello");
    assert_eq!(lines.recv_timeout(BOUND).as_deref(), Ok("escaped"));
    let began = Instant::now();
    assert_eq!(client.close().wait(), Termination::Requested);
    assert!(began.elapsed() < BOUND, "{:?}", began.elapsed());
    until(|| weak.strong_count() == 0);
    until(|| client.stats().detached_threads == stuck_threads(1));
    std::fs::write(&fifo, "go\n").expect("written");
    until(|| client.stats().detached_threads == 0);
    std::fs::remove_file(&fifo).expect("removed");
}
