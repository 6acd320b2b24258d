//! Programs that start, or do not: the error for the user, and what is left behind.

use super::*;
use mcp_proto::error::{NegotiationCause, NegotiationError, Stage};
use std::process::Command;
use std::sync::Arc;

fn connected(program: Program) -> Client {
    connect_with(program, legacy()).wait().expect("hello")
}

/// Returns the error of a start, with the time until then.
fn start_error(target: impl IntoTarget<Given>, config: ClientOptions) -> (NegotiationError, Duration) {
    let began = Instant::now();
    let failed = connect_with(target, config).wait().expect_err("it fails");
    let took = began.elapsed();
    let ConnectError::Negotiation(e) = failed else { panic!("{failed:?}") };
    assert!(e.after <= took && took - e.after < Duration::from_secs(5), "{e} in {took:?}");
    assert!(e.to_string().contains(&format!("failed after {} ms", e.after.as_millis())), "{e}");
    (e, took)
}

// covers: S0-25, S0-09, S0-10, STDIO-C-001, B-080
#[test]
fn program_is_started_as_described_and_responds() {
    let _limit = limit();
    let says = r#"echo '{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"'"$1 $SET ${HOME-none} $PWD"'"}]}}'"#;
    let program = server(&format!("read -r line; {says}; read -r line")).args(["zero", "one"]);
    let mut program = program.env("SET", "two").current_dir("/");
    program.env.push(("HOME".into(), None));
    let client = connected(program);
    assert_eq!(text(call(&client, "add")), "one two none /");
    assert_eq!(client.close().wait(), Termination::Requested);
    assert_eq!(client.stats().calls, 0);
}

// covers: S0-25, S2-04, S2-05
#[test]
fn command_passes_arguments_directory_and_environment() {
    let _limit = limit();
    let script = r#"
        read -r line
        echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"'"$1 $PWD $MARK"'","version":"1"}}}'
        read -r line; read -r line
    "#;
    let mut command = Command::new("/bin/sh");
    command.args(["-c", script, "sh", "one"]).current_dir("/").env("MARK", "two");
    let client = connect_with(command, legacy()).wait().expect("hello");
    assert_eq!(client.server().and_then(|server| server.implementation).expect("hello").name, "one / two");
}

// covers: B-145, S0-25, B-087, B-094
#[test]
fn missing_program_fails_the_connect_and_is_named() {
    let _limit = limit();
    let (e, _) = start_error(Program::new("/no/such/program"), legacy());
    assert_eq!(e.stage, Stage::Connect);
    let NegotiationCause::Closed(Closed::Unreachable(why)) = &e.cause else { panic!("{e}") };
    assert!(why.contains("/no/such/program") && e.to_string().contains(&**why), "{e}");
}

// covers: B-087, B-094, B-141
#[test]
fn exit_during_the_handshake_fails_connect_with_exit_status() {
    let _limit = limit();
    for (script, code) in [("exit 7", 7), ("read -r line; exit 4", 4)] {
        let (e, _) = start_error(sh(script), legacy());
        assert_eq!((e.stage, e.cause), (Stage::Initialize, NegotiationCause::Closed(exited(code))));
    }
}

// covers: B-135, B-088, B-094
#[test]
fn unresponsive_server_fails_the_connect_and_is_ended() {
    let _limit = limit();
    let file = temp("mute");
    let script = format!("echo $$ > {}; trap '' TERM; while :; do read -r line || sleep 600; done", file.display());
    let config = quick(legacy()).set(|config| config.initialize_timeout = Duration::from_secs(3));
    let (e, _) = start_error(sh(&script), config);
    assert!(matches!(e.cause, NegotiationCause::Timeout(_)), "{e}");
    let pid = take_pid(&file);
    until(|| members(pid).is_empty());
}

// covers: B-094, B-135
#[test]
fn connect_timeout_ends_the_start_of_a_silent_program() {
    let _limit = limit();
    let limit = Duration::from_millis(600);
    let config = quick(ClientOptions::new().stderr(Stderr::Discard)).set(move |config| {
        config.connect_timeout = limit;
    });
    let (e, took) = start_error(sh("exec sleep 600"), config);
    assert_eq!((e.stage, &e.cause), (Stage::Initialize, &NegotiationCause::StartTimeout(limit)));
    assert!(e.after >= limit && took < BOUND / 2, "{e} in {took:?}");
}

// covers: B-094, B-135, B-088
#[test]
fn error_of_a_late_start_does_not_wait_for_its_program() {
    let _limit = limit();
    let file = temp("late");
    let script = format!("echo $$ > {}; trap '' TERM; while :; do read -r line || sleep 600; done", file.display());
    let limit = Duration::from_millis(1500);
    // Its end takes longer than any test.
    let slow = move |config: &mut ClientConfig| {
        config.connect_timeout = limit;
        config.limits.frame.exit_timeout = Duration::from_secs(3);
        config.limits.frame.terminate_timeout = Duration::from_secs(1);
    };
    let (e, took) = start_error(sh(&script), ClientOptions::new().stderr(Stderr::Discard).set(slow));
    assert_eq!(e.cause, NegotiationCause::StartTimeout(limit));
    assert!(e.after >= limit && took < limit + Duration::from_secs(2), "{e} in {took:?}");
    let pid = take_pid(&file);
    assert!(!members(pid).is_empty(), "it has not ended yet");
    // The steps of its end go on.
    until(|| members(pid).is_empty() && is_reaped(pid));
    // The `Closer` waits for them.
    let connecting = connecting(
        sh(&script),
        quick(ClientOptions::new().stderr(Stderr::Discard)).set(move |config| {
            config.connect_timeout = limit;
        }),
    );
    let connecting = connecting.expect("a target");
    let closer = connecting.closer();
    connecting.wait().expect_err("it is too late");
    let pid = take_pid(&file);
    assert!(matches!(closer.close().wait(), Termination::Negotiation(e) if e.cause.is_timeout()));
    until(|| members(pid).is_empty() && is_reaped(pid));
}

// covers: B-094
#[test]
fn connect_timeout_ends_the_start_over_a_silent_socket() {
    let _limit = limit();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/mcp", listener.local_addr().expect("an address"));
    let limit = Duration::from_millis(300);
    let (e, took) = start_error(url, ClientOptions::new().set(move |config| config.connect_timeout = limit));
    assert_eq!((e.stage, &e.cause), (Stage::Initialize, &NegotiationCause::StartTimeout(limit)));
    assert!(e.after >= limit && took < BOUND / 2, "{e} in {took:?}");
}

// covers: B-087, B-094
#[test]
fn error_of_a_program_that_dies_twice_reports_both_ends() {
    let _limit = limit();
    let program = sh("read -r line; echo 'locked' >&2; exit 1");
    let config = ClientOptions::new().stderr(Stderr::Discard);
    let failed = connect_with(program, config).wait().expect_err("it dies").to_string();
    let twice =
        "started twice: exit 1 after server/discover, exit 1 after initialize; last line of its standard error: locked";
    assert!(failed.contains(twice) && failed.contains("restart_after_probe"), "{failed}");
}

// covers: B-087
#[test]
fn program_with_missing_command_is_started_once() {
    let _limit = limit();
    let file = temp("starts");
    let script = format!("echo start >> {}; read -r line; exec /no/such/command", file.display());
    let (e, _) = start_error(sh(&script), ClientOptions::new().stderr(Stderr::Discard));
    let NegotiationCause::Closed(Closed::Exited(status)) = &e.cause else { panic!("{e}") };
    assert_eq!(status.code, Some(127), "{e}");
    assert_eq!(std::fs::read_to_string(&file).expect("it was started"), "start\n");
    std::fs::remove_file(&file).expect("removed");
}

// covers: B-135
#[test]
fn closing_during_connect_leaves_no_process() {
    let _limit = limit();
    let file = temp("connecting");
    let script =
        format!("echo $$ > {0}.new; mv {0}.new {0}; trap '' TERM; while :; do sleep 600; done", file.display());
    let connecting = connecting(sh(&script), quick(legacy())).expect("a target");
    let closer = connecting.closer();
    let path = file.clone();
    let closing = std::thread::spawn(move || {
        until(|| path.exists());
        closer.close().wait()
    });
    let failed = connecting.wait().expect_err("it is closed");
    assert_eq!(failed, ConnectError::Closed(Closed::Aborted));
    assert_eq!(closing.join().expect("no panic"), Termination::Requested);
    let pid = take_pid(&file);
    until(|| members(pid).is_empty());
}

// covers: S0-24
#[test]
fn connecting_starts_nothing_before_it_is_waited_for() {
    let _limit = limit();
    let file = temp("unstarted");
    let program = || sh(&format!("echo started > {}", file.display()));
    let held = Arc::new(());
    let keeps = Arc::clone(&held);
    let config = legacy().on_event(move |_| drop(Arc::clone(&keeps)));
    let closed = connecting(program(), config).expect("a target");
    closed.closer().close().wait();
    assert_eq!(closed.wait().expect_err("it is closed"), ConnectError::Closed(Closed::Aborted));
    assert_eq!(Arc::strong_count(&held), 1, "what the application gave is let go");
    let dropped = connecting(program(), legacy()).expect("a target");
    let closer = dropped.closer();
    drop(dropped);
    assert_eq!(closer.close().wait(), Termination::Requested);
    assert!(!file.exists(), "a program was started");
}

// covers: B-137
#[test]
fn server_that_exits_on_the_probe_is_restarted() {
    let _limit = limit();
    let script = r#"
        read -r line; case "$line" in *server/discover*) exit 1;; esac
        echo '{"jsonrpc":"2.0","id":2,"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"old","version":"1"}}}'
        read -r line; read -r line
        echo '{"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"3"}]}}'
        read -r line
    "#;
    let config = legacy().set(|config| config.policy = Policy::Auto);
    let client = connect_with(sh(script), config).wait().expect("hello");
    assert_eq!(text(call(&client, "add")), "3");
    until(|| client.stats().channels == 1);
}

#[test]
fn server_that_ignores_the_probe_is_legacy() {
    let _limit = limit();
    let hello = HELLO.replace(r#""id":1"#, r#""id":2"#);
    let answer = ANSWER.replace(r#""id":2"#, r#""id":3"#);
    let (config, told) = told(ClientOptions::new().set(|config| config.probe_timeout = Duration::from_millis(50)));
    let program = sh(&format!("read -r probe; {hello} read -r line; {answer}; read -r line"));
    let client = connect_with(program, config).wait().expect("hello");
    assert_eq!(text(call(&client, "add")), "3");
    assert_eq!(codes(client, &told), ["fell-back-to-legacy"]);
}
