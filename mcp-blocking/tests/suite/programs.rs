//! Programs as servers, correct and faulty: the results for the user, and the cleanup.

use crate::common::{ANSWER, BOUND, HELLO, bounded, group, legacy, members, quick, server, sh, until};
use mcp_blocking::{
    CallError, CallToolResult, Client, ClientOptions, ConnectError, Group, Object, Program, Stderr, connect_with,
    connecting, tools,
};
use mcp_proto::client::{Event, Policy, Termination};
use mcp_proto::error::{Awaited, NegotiationCause, Stage};
use mcp_proto::exchange::{Closed, ExitStatus, Sent};
use std::process::Command;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

fn connected(program: Program) -> Client {
    connect_with(program, legacy()).expect("hello")
}

fn call(client: &Client) -> Result<CallToolResult, CallError> {
    client.call(tools::call("add"))
}

fn exited(code: i32) -> Closed {
    Closed::Exited(ExitStatus::exited(code))
}

fn killed(signal: i32) -> Closed {
    Closed::Exited(ExitStatus::killed(signal))
}

/// Waits for the first notification of a program.
fn noticed(config: ClientOptions) -> (ClientOptions, mpsc::Receiver<()>) {
    let (told, events) = mpsc::channel();
    let config = config.on_event(move |event| {
        if matches!(event, Event::Notification { .. }) {
            told.send(()).expect("heard");
        }
    });
    (config, events)
}

/// The notification of a script that is ready.
const NOTICE: &str = r#"echo '{"jsonrpc":"2.0","method":"custom/ready"}'"#;

// covers: S0-25, S0-09, S0-10, STDIO-C-001, B-080
#[test]
fn program_is_started_and_responds() {
    bounded(|| {
        let client = connected(server(&format!("read -r line; {ANSWER}; read -r line")));
        assert_eq!(call(&client).expect("an answer").first_text(), Some("3"));
        assert_eq!(client.close(), Termination::Requested);
        assert_eq!(client.stats().calls, 0);
    });
}

// covers: S0-25, S2-04, S2-05
#[test]
fn command_passes_arguments_directory_and_environment() {
    bounded(|| {
        let script = r#"
            read -r line
            echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"'"$1 $PWD $MARK"'","version":"1"}}}'
            read -r line; read -r line
        "#;
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script, "sh", "one"]).current_dir("/").env("MARK", "two");
        let client = connect_with(command, legacy()).expect("hello");
        assert_eq!(client.server().and_then(|server| server.implementation).expect("hello").name, "one / two");
    });
}

// covers: B-145, S0-25, B-094
#[test]
fn missing_program_fails_the_connect_and_is_named() {
    bounded(|| {
        let failed = connect_with(Program::new("/no/such/program"), legacy()).expect_err("no such program");
        let ConnectError::Negotiation(e) = &failed else { panic!("{failed:?}") };
        assert_eq!(e.stage, Stage::Connect);
        assert!(failed.to_string().contains("/no/such/program"), "{failed}");
    });
}

// covers: B-087, B-094, B-141
#[test]
fn exit_during_the_handshake_fails_connect_with_exit_status() {
    bounded(|| {
        let failed = connect_with(sh("read -r line; exit 4"), legacy()).expect_err("no hello");
        let ConnectError::Negotiation(e) = &failed else { panic!("{failed:?}") };
        assert_eq!(e.stage, Stage::Initialize);
        assert_eq!(e.cause, NegotiationCause::Closed(exited(4)));
    });
}

// covers: B-135, B-088, B-094
#[test]
fn unresponsive_server_fails_the_connect_and_is_ended() {
    bounded(|| {
        let file = std::env::temp_dir().join(format!("mcp-blocking-mute-{}", std::process::id()));
        let script = format!("echo $$ > {}; trap '' TERM; while :; do read -r line || sleep 600; done", file.display());
        let config = quick(legacy()).set(|config| config.initialize_timeout = Duration::from_secs(3));
        let failed = connect_with(sh(&script), config).expect_err("no hello");
        assert!(matches!(failed, ConnectError::Negotiation(ref e) if matches!(e.cause, NegotiationCause::Timeout(_))));
        let pid: u32 = std::fs::read_to_string(&file).expect("a process id").trim().parse().expect("a number");
        drop(std::fs::remove_file(&file));
        until(|| members(pid).is_empty());
    });
}

/// Returns the text of a start's error and the time until then.
fn start_error(
    target: impl mcp_blocking::IntoTarget<mcp_blocking::Given>,
    config: ClientOptions,
) -> (mcp_proto::error::NegotiationError, Duration) {
    let began = Instant::now();
    let failed = connect_with(target, config).expect_err("it is silent");
    let took = began.elapsed();
    let ConnectError::Negotiation(e) = failed else { panic!("{failed:?}") };
    assert!(e.after <= took && took - e.after < Duration::from_secs(5), "{e} in {took:?}");
    assert!(e.to_string().contains(&format!("failed after {} ms", e.after.as_millis())), "{e}");
    (e, took)
}

// covers: B-094, B-135
#[test]
fn connect_timeout_ends_the_start_of_a_silent_program() {
    bounded(|| {
        let limit = Duration::from_millis(600);
        let config = quick(ClientOptions::new().stderr(Stderr::Discard)).set(move |config| {
            config.connect_timeout = limit;
            config.probe_timeout = limit / 2;
        });
        let (e, took) = start_error(sh("exec sleep 600"), config);
        assert_eq!((e.stage, &e.cause), (Stage::Initialize, &NegotiationCause::StartTimeout(limit)));
        // The program has time until the first step of the shutdown is over.
        assert!(e.after >= limit + Duration::from_millis(100) && took < BOUND / 2, "{e} in {took:?}");
    });
}

// covers: B-094
#[test]
fn connect_timeout_ends_the_start_over_a_silent_socket() {
    bounded(|| {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}/mcp", listener.local_addr().expect("an address"));
        let limit = Duration::from_millis(300);
        let (e, took) = start_error(url, ClientOptions::new().set(move |config| config.connect_timeout = limit));
        assert_eq!((e.stage, &e.cause), (Stage::Discover, &NegotiationCause::StartTimeout(limit)));
        assert!(e.after >= limit && took < BOUND / 2, "{e} in {took:?}");
    });
}

// covers: B-087, B-094
#[test]
fn error_of_a_program_that_dies_twice_reports_both_ends() {
    bounded(|| {
        let config = ClientOptions::new().stderr(Stderr::Discard);
        let failed =
            connect_with(sh("read -r line; echo 'locked' >&2; exit 1"), config).expect_err("it dies").to_string();
        let twice = "started twice: exit 1 after server/discover, exit 1 after initialize; last line of its standard error: locked";
        assert!(failed.contains(twice) && failed.contains("restart_after_probe"), "{failed}");
    });
}

// covers: B-087
#[test]
fn program_with_missing_command_is_started_once() {
    bounded(|| {
        let file = std::env::temp_dir().join(format!("mcp-blocking-starts-{}", std::process::id()));
        let script = format!("echo start >> {}; read -r line; exec /no/such/command", file.display());
        let failed =
            connect_with(sh(&script), ClientOptions::new().stderr(Stderr::Discard)).expect_err("it cannot run");
        let ConnectError::Negotiation(e) = &failed else { panic!("{failed:?}") };
        assert!(
            matches!(&e.cause, NegotiationCause::Closed(Closed::Exited(status)) if status.code == Some(127)),
            "{e}"
        );
        assert_eq!(std::fs::read_to_string(&file).expect("it was started"), "start\n");
        drop(std::fs::remove_file(&file));
    });
}

// covers: B-135
#[test]
fn closing_during_connect_leaves_no_process() {
    bounded(|| {
        let file = std::env::temp_dir().join(format!("mcp-blocking-connecting-{}", std::process::id()));
        let script =
            format!("echo $$ > {0}.new; mv {0}.new {0}; trap '' TERM; while :; do sleep 600; done", file.display());
        let connecting = connecting(sh(&script), quick(legacy())).expect("a target");
        let closer = connecting.closer();
        let path = file.clone();
        let closing = std::thread::spawn(move || {
            until(|| path.exists());
            closer.close()
        });
        let failed = connecting.wait().expect_err("it is closed");
        assert_eq!(failed, ConnectError::Closed(Closed::Aborted));
        assert_eq!(closing.join().expect("no panic"), Termination::Requested);
        let pid: u32 = std::fs::read_to_string(&file).expect("a process id").trim().parse().expect("a number");
        drop(std::fs::remove_file(&file));
        until(|| members(pid).is_empty());
    });
}

// covers: S0-24
#[test]
fn connecting_starts_nothing_before_wait() {
    bounded(|| {
        let file = std::env::temp_dir().join(format!("mcp-blocking-unstarted-{}", std::process::id()));
        let program = || sh(&format!("echo started > {}", file.display()));
        let held = Arc::new(());
        let keeps = Arc::clone(&held);
        let config = legacy().on_event(move |_| drop(Arc::clone(&keeps)));
        let closed = connecting(program(), config).expect("a target");
        closed.closer().close();
        assert_eq!(closed.wait().expect_err("it is closed"), ConnectError::Closed(Closed::Aborted));
        assert_eq!(Arc::strong_count(&held), 1, "what the application gave is let go");
        let dropped = connecting(program(), legacy()).expect("a target");
        let closer = dropped.closer();
        drop(dropped);
        assert_eq!(closer.close(), Termination::Requested);
        assert!(!file.exists(), "a program was started");
    });
}

// covers: B-141, S0-27, S0-33, S2-13
#[test]
fn server_exit_during_a_call_ends_it_with_the_exit_status() {
    bounded(|| {
        let client = connected(server("read -r line; exit 3"));
        let ended = call(&client).expect_err("no answer");
        assert_eq!(ended, CallError::Closed { sent: Sent::Maybe, why: exited(3) });
        assert_eq!(ended.to_string(), "Transport closed: the program exited with code 3");
        assert_eq!(client.close(), Termination::Closed(exited(3)));
        let refused = call(&client).expect_err("closed");
        assert!(matches!(refused, CallError::Refused(_) | CallError::Closed { sent: Sent::No, .. }), "{refused:?}");
    });
}

// covers: B-141
#[test]
fn killed_server_reports_the_signal() {
    bounded(|| {
        let client = connected(server("read -r line; kill -9 $$"));
        assert_eq!(call(&client), Err(CallError::Closed { sent: Sent::Maybe, why: killed(9) }));
    });
}

// covers: B-141
#[test]
fn output_before_the_exit_is_read() {
    bounded(|| {
        // A descendant writes the last part when the program has exited and is not reaped.
        let late = format!("{{ while ! grep -q ') Z' /proc/$$/stat; do :; done; {ANSWER}; }} & exit 0");
        // It has half a second, which a busy machine may exceed. If nothing were read after the
        // exit, no attempt would succeed.
        let attempt = || call(&connected(server(&format!("read -r line; {late}"))));
        let answer = (0..10).find_map(|_| attempt().ok()).expect("an answer");
        assert_eq!(answer.first_text(), Some("3"));
    });
}

// covers: S0-28, S0-63, TIME-B-001, TIME-B-002, TIME-B-003, B-060, B-061
#[test]
fn unresponsive_server_times_out_the_call_and_gets_a_cancel() {
    bounded(|| {
        let told = r#"read -r line; read -r line; case "$line" in *notifications/cancelled*) ;; *) exit 1;; esac
            read -r line; echo '{"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"told"}]}}'; read -r line"#;
        let client = connected(server(told));
        let after = Duration::from_millis(50);
        let began = Instant::now();
        let ended = client.call(tools::call("add").timeout(after)).expect_err("no answer");
        // The timer thread sleeps until a later deadline, and is woken for this one.
        assert!(began.elapsed() >= after && began.elapsed() < BOUND / 2, "{:?}", began.elapsed());
        assert_eq!(ended, CallError::Timeout { after, sent: Sent::Maybe, awaited: Awaited::Response });
        assert_eq!(call(&client).expect("an answer").first_text(), Some("told"));
    });
}

// covers: S0-29, S0-64, CANC-C-001, CANC-B-012, B-052
#[test]
fn cancelled_call_notifies_server_and_drops_late_response() {
    bounded(|| {
        let late = format!(
            r#"read -r line; read -r line; case "$line" in *notifications/cancelled*"too slow"*) ;; *) exit 1;; esac
            {ANSWER}; read -r line; echo '{{"jsonrpc":"2.0","id":3,"result":{{"content":[{{"type":"text","text":"next"}}]}}}}'; read -r line"#
        );
        let client = connected(server(&late));
        let pending = client.start(tools::call("add"));
        pending.cancel(Some("too slow"));
        assert_eq!(pending.wait(), Err(CallError::Cancelled { reason: Some("too slow".into()) }));
        assert_eq!(call(&client).expect("an answer").first_text(), Some("next"));
    });
}

// covers: CANC-C-001, B-066
#[test]
fn dropped_call_is_cancelled_and_leaves_nothing() {
    bounded(|| {
        let told = r#"read -r line; read -r line; case "$line" in *notifications/cancelled*) ;; *) exit 1;; esac
            read -r line; echo '{"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"told"}]}}'; read -r line"#;
        let client = connected(server(told));
        drop(client.start(tools::call("add")));
        assert_eq!(client.stats().calls, 0);
        assert_eq!(call(&client).expect("an answer").first_text(), Some("told"));
    });
}

// covers: S0-31, B-120, B-274
#[test]
fn each_invalid_line_is_one_diagnostic() {
    bounded(|| {
        let noise = format!("echo 'Listening on stdio...'; read -r line; echo '{{]'; echo; {ANSWER}; read -r line");
        let (told, events) = mpsc::channel();
        let client =
            connect_with(server(&noise), legacy().on_event(move |event| drop(told.send(event)))).expect("hello");
        assert_eq!(call(&client).expect("an answer").first_text(), Some("3"));
        let mut codes = Vec::new();
        while codes.len() < 2 {
            if let Event::Diagnostic(diagnostic) = events.recv_timeout(BOUND).expect("an event") {
                codes.push(diagnostic.kind.code());
            }
        }
        assert_eq!(codes, ["bad-message", "bad-message"]);
    });
}

// covers: S0-26, STDIO-C-015, STDIO-C-016, B-137, B-138
#[test]
fn close_ends_a_program_by_closing_its_input() {
    bounded(|| {
        let config = legacy().set(|config| config.limits.frame.exit_timeout = BOUND);
        let client = connect_with(server("while read -r line; do :; done; exit 0"), config).expect("hello");
        let group = group(&client);
        let began = Instant::now();
        assert_eq!(client.close(), Termination::Requested);
        assert!(began.elapsed() < BOUND, "it was waited for: {:?}", began.elapsed());
        assert!(members(group).is_empty(), "left: {:?}", members(group));
        assert_eq!(client.stats().channels, 0);
        assert_eq!(client.close(), Termination::Requested);
        until(|| client.stats().detached_threads == 0);
    });
}

// covers: B-138, B-139, STDIO-C-016
#[test]
fn program_that_ignores_eof_is_terminated() {
    bounded(|| {
        let file = std::env::temp_dir().join(format!("mcp-blocking-term-{}", std::process::id()));
        // Before the handshake; otherwise it could be ended before it handles the signal.
        let trap = format!("trap 'echo terminated > {}; exit 0' TERM", file.display());
        let client = connect_with(
            sh(&format!("{trap}\n{HELLO}while :; do sleep 0.02; done")),
            quick(legacy()).set(|config| {
                config.limits.frame.terminate_timeout = BOUND;
            }),
        )
        .expect("hello");
        let group = group(&client);
        assert_eq!(client.close(), Termination::Requested);
        until(|| members(group).is_empty());
        assert_eq!(std::fs::read_to_string(&file).expect("what the trap wrote"), "terminated\n");
        drop(std::fs::remove_file(&file));
    });
}

// covers: B-133, B-134, B-138
#[test]
fn unresponsive_program_is_killed_with_its_group() {
    bounded(|| {
        let script = "trap '' TERM; sh -c 'trap \"\" TERM; while :; do sleep 600; done' & while :; do sleep 600; done";
        let client = connect_with(server(script), quick(legacy())).expect("hello");
        let group = group(&client);
        until(|| members(group).len() >= 4);
        assert_eq!(client.close(), Termination::Requested);
        until(|| members(group).is_empty());
    });
}

// covers: B-133, B-277
#[test]
fn dropping_the_last_handle_on_any_thread_ends_the_program() {
    bounded(|| {
        let client = connected(server("while read -r line; do :; done"));
        let group = group(&client);
        let other = client.clone();
        drop(client);
        assert!(!members(group).is_empty(), "a handle is left");
        std::thread::spawn(move || drop(other)).join().expect("no panic");
        assert!(members(group).is_empty(), "left: {:?}", members(group));
    });
}

// covers: B-133
#[test]
fn panic_that_drops_the_client_ends_the_program() {
    bounded(|| {
        let (said, group) = mpsc::channel();
        let panicked = std::thread::spawn(move || {
            let client = connected(server("while read -r line; do :; done"));
            said.send(crate::common::group(&client)).expect("heard");
            std::panic::resume_unwind(Box::new("the application fails"));
        });
        let group = group.recv_timeout(BOUND).expect("hello");
        assert!(panicked.join().is_err());
        assert!(members(group).is_empty(), "left: {:?}", members(group));
    });
}

// covers: B-134, B-141, B-137
#[test]
fn grandchild_that_holds_the_output_delays_the_end_briefly() {
    bounded(|| {
        let client = connected(server("sleep 600 & read -r line; exit 3"));
        let group = group(&client);
        let began = Instant::now();
        assert_eq!(call(&client), Err(CallError::Closed { sent: Sent::Maybe, why: exited(3) }));
        assert!(began.elapsed() < BOUND / 2, "{:?}", began.elapsed());
        until(|| members(group).is_empty());
    });
}

// covers: B-148, B-138
#[test]
fn stuck_reader_is_counted_and_not_waited_for() {
    bounded(|| {
        // The grandchild leaves the group and so survives. It holds the output of the program until
        // something is written to the fifo.
        let fifo = std::env::temp_dir().join(format!("mcp-blocking-fifo-{}", std::process::id()));
        let fifo = fifo.to_str().expect("unicode");
        let escapes = format!(r#"{NOTICE}; read -r line <{fifo}"#).replace('\'', r"'\''");
        let script = format!("mkfifo {fifo}; setsid sh -c '{escapes}' & while read -r line; do :; done");
        let (config, ready) = noticed(quick(legacy()));
        let client = connect_with(server(&script), config).expect("hello");
        ready.recv_timeout(BOUND).expect("escaped");
        let group = group(&client);
        let began = Instant::now();
        assert_eq!(client.close(), Termination::Requested);
        assert!(began.elapsed() < BOUND, "{:?}", began.elapsed());
        until(|| members(group).is_empty());
        // One for its output and one for its standard error.
        until(|| client.stats().detached_threads == 2);
        std::fs::write(fifo, "go\n").expect("written");
        until(|| client.stats().detached_threads == 0);
        std::fs::remove_file(fifo).expect("removed");
    });
}

// covers: B-141, B-138, STDIO-S-018, S0-27
#[test]
fn program_that_closes_its_output_is_ended() {
    bounded(|| {
        let client = connect_with(server("read -r line; exec >&-; while :; do sleep 600; done"), quick(legacy()));
        let client = client.expect("hello");
        let group = group(&client);
        let ended = call(&client).expect_err("no answer");
        assert!(matches!(ended, CallError::Closed { sent: Sent::Maybe, .. }), "{ended:?}");
        assert!(matches!(client.close(), Termination::Closed(_)));
        until(|| members(group).is_empty());
    });
}

// covers: B-137
#[test]
fn server_that_exits_on_the_probe_is_restarted() {
    bounded(|| {
        let script = r#"
            read -r line; case "$line" in *server/discover*) exit 1;; esac
            echo '{"jsonrpc":"2.0","id":2,"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"old","version":"1"}}}'
            read -r line; read -r line
            echo '{"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"3"}]}}'
            read -r line
        "#;
        let config = legacy().set(|config| config.policy = Policy::Auto);
        let client = connect_with(sh(script), config).expect("hello");
        assert_eq!(call(&client).expect("an answer").first_text(), Some("3"));
        until(|| client.stats().channels == 1);
    });
}

// covers: B-131
#[test]
fn full_pipes_in_both_directions_do_not_deadlock() {
    bounded(|| {
        // The server writes a megabyte before it reads one. Neither fits into a pipe.
        let script = format!(
            r#"head -c 1048576 /dev/zero | tr '\0' 'x'; echo; read -r line; case ${{#line}} in ???????) ;; *) exit 1;; esac; {ANSWER}; read -r line"#
        );
        let client = connected(server(&script));
        let arguments = Object::new().with("text", "y".repeat(1 << 20).as_str());
        let sum = client.call(tools::call("add").param("arguments", Ok(arguments.into())));
        assert_eq!(sum.expect("an answer").first_text(), Some("3"));
    });
}

// covers: B-129, S2-07, STDIO-C-004, STDIO-C-005
#[test]
fn standard_error_is_always_read_line_by_line() {
    bounded(|| {
        let script = format!(
            "i=0; while [ $i -lt 3000 ]; do echo \"line $i of a server that has much to say, and says it at some length\" >&2; \
             i=$((i+1)); done; read -r line; {ANSWER}; read -r line"
        );
        let (told, lines) = mpsc::channel();
        let stderr = Stderr::Lines(Arc::new(move |line: &str| drop(told.send(line.to_owned()))));
        let client = connect_with(server(&script), legacy().stderr(stderr)).expect("hello");
        assert_eq!(call(&client).expect("an answer").first_text(), Some("3"));
        for n in 0..3000 {
            let line = lines.recv_timeout(BOUND).expect("a line");
            assert!(line.starts_with(&format!("line {n} of")), "{line}");
        }
    });
}

// covers: B-144, S0-34
#[test]
fn program_that_closes_its_input_does_not_break_the_client() {
    bounded(|| {
        let deaf = format!("exec <&-; {NOTICE}; while :; do sleep 600; done");
        let (config, ready) = noticed(legacy());
        let client = connect_with(server(&deaf), config).expect("hello");
        ready.recv_timeout(BOUND).expect("deaf");
        // The program does not read it, and the write fails. A response could still arrive.
        let pending = client.start(tools::call("add"));
        let pending = pending.wait_timeout(Duration::from_millis(50)).expect_err("not ended");
        let group = rustix::process::Pid::from_raw(group(&client).try_into().expect("small")).expect("not zero");
        rustix::process::kill_process_group(group, rustix::process::Signal::KILL).expect("killed");
        assert_eq!(pending.wait(), Err(CallError::Closed { sent: Sent::Maybe, why: killed(9) }));
    });
}

// covers: S0-10, B-277
#[test]
fn concurrent_calls_of_two_threads_get_their_own_responses() {
    bounded(|| {
        // Responds to both calls in reverse order.
        let script = r#"read -r line; read -r line
            echo '{"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"3"}]}}'
            echo '{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"2"}]}}'
            read -r line"#;
        let client = connected(server(script));
        let texts: Vec<_> = std::thread::scope(|scope| {
            let calls: Vec<_> = (0..2).map(|_| scope.spawn(|| call(&client).expect("an answer"))).collect();
            calls
                .into_iter()
                .filter_map(|call| call.join().expect("no panic").first_text().map(str::to_owned))
                .collect()
        });
        assert!(texts == ["2", "3"] || texts == ["3", "2"], "{texts:?}");
    });
}

// covers: B-133, S0-26
#[test]
fn program_in_inherited_group_is_ended_alone() {
    bounded(|| {
        let file = std::env::temp_dir().join(format!("mcp-blocking-sleeper-{}", std::process::id()));
        let script = format!(
            "trap '' TERM; sleep 600 >&- 2>&- & echo $! > {}; {NOTICE}; while :; do sleep 0.05; done",
            file.display()
        );
        let (config, ready) = noticed(quick(legacy()));
        let client = connect_with(server(&script).group(Group::Inherit), config).expect("hello");
        ready.recv_timeout(BOUND).expect("started");
        let (pid, ours) = (group(&client), crate::common::group_of(std::process::id()).expect("we run"));
        assert_eq!(crate::common::group_of(pid), Some(ours));
        let sleeper: u32 = std::fs::read_to_string(&file).expect("a process id").trim().parse().expect("a number");
        std::fs::remove_file(&file).expect("removed");
        assert_eq!(client.close(), Termination::Requested);
        assert_eq!(crate::common::group_of(pid), None);
        assert_eq!(crate::common::group_of(sleeper), Some(ours), "what it had started was not touched");
        let sleeper = rustix::process::Pid::from_raw(sleeper.try_into().expect("small")).expect("not zero");
        rustix::process::kill_process(sleeper, rustix::process::Signal::KILL).expect("killed");
    });
}

// covers: B-138, B-139, STDIO-C-016
#[test]
fn program_in_inherited_group_gets_its_own_signal() {
    bounded(|| {
        let config = quick(legacy()).set(|config| config.limits.frame.terminate_timeout = BOUND);
        let script = "trap 'exit 6' TERM; while :; do sleep 0.02; done";
        let client = connect_with(server(script).group(Group::Inherit), config).expect("hello");
        let pid = group(&client);
        assert_eq!(client.close(), Termination::Requested);
        assert_eq!(crate::common::group_of(pid), None);
    });
}

// covers: B-148, B-138, B-131
#[test]
fn stuck_writer_is_counted_and_not_waited_for() {
    bounded(|| {
        // The grandchild leaves the group and so survives. It holds all streams of the program, and
        // reads none.
        let fifo = std::env::temp_dir().join(format!("mcp-blocking-deaf-{}", std::process::id()));
        let fifo = fifo.to_str().expect("unicode");
        let escapes = format!("{NOTICE}; read -r line <{fifo}").replace('\'', r"'\''");
        let script = format!("exec 3<&0; mkfifo {fifo}; setsid sh -c '{escapes}' & while :; do sleep 0.05; done");
        let (config, ready) = noticed(quick(legacy()));
        let client = connect_with(server(&script), config).expect("hello");
        ready.recv_timeout(BOUND).expect("escaped");
        let arguments = Object::new().with("text", "y".repeat(1 << 20).as_str());
        let call = client.start(tools::call("add").param("arguments", Ok(arguments.into())));
        let (group, began) = (group(&client), Instant::now());
        assert_eq!(client.close(), Termination::Requested);
        assert!(began.elapsed() < BOUND, "{:?}", began.elapsed());
        assert!(matches!(call.wait(), Err(CallError::Closed { sent: Sent::Maybe, .. })));
        until(|| members(group).is_empty());
        until(|| client.stats().detached_threads == 3);
        std::fs::write(fifo, "go\n").expect("written");
        until(|| client.stats().detached_threads == 0);
        std::fs::remove_file(fifo).expect("removed");
    });
}
