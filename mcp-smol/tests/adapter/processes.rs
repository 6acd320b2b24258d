//! Programs as servers, correct and faulty: the results for the user, and the cleanup.

use crate::common::{group, legacy, members, run, server, sh, until};
use mcp_proto::client::Termination;
use mcp_proto::error::{Awaited, NegotiationCause, Stage};
use mcp_proto::exchange::{Closed, ExitStatus, Program, Sent};
use mcp_proto::{CallError, CallToolResult, Object};
use mcp_smol::{
    Client, ClientEvent, ClientOptions, ConnectError, Driver, IntoTarget, Stderr, connect, connect_driven, connecting,
    tools,
};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Wake, Waker};
use std::time::{Duration, Instant};

const ANSWER: &str = r#"echo '{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"3"}]}}'"#;

fn connected(program: Program) -> (Client, smol::Task<()>) {
    let (client, driver): (Client, Driver) = connect_driven(program, legacy()).expect("a target");
    (client, smol::spawn(driver))
}

async fn ready(program: Program) -> (Client, smol::Task<()>) {
    let (client, driver) = connected(program);
    client.ready().await.expect("ready");
    (client, driver)
}

async fn call(client: &Client) -> Result<CallToolResult, CallError> {
    client.call(tools::call("add")).await
}

// covers: S0-25, S0-09, S0-10
#[test]
fn program_is_started_as_described_and_responds() {
    run(async {
        let says = |text: &str| {
            format!(r#"echo '{{"jsonrpc":"2.0","id":2,"result":{{"content":[{{"type":"text","text":"'{text}'"}}]}}}}'"#)
        };
        let script =
            format!("{}read -r line; {}; read -r line", crate::common::HELLO, says("$1 $SET ${HOME-none} $PWD"));
        let mut program = sh(&script).args(["zero", "one"]).env("SET", "two").current_dir("/");
        program.env.push(("HOME".into(), None));
        let (client, _driver) = ready(program).await;
        assert_eq!(call(&client).await.expect("an answer").first_text(), Some("one two none /"));
    });
}

// covers: S0-25
#[test]
fn std_command_is_a_program() {
    run(async {
        let mut command = std::process::Command::new("/bin/sh");
        command.args(["-c", &format!("{}read -r line; {ANSWER}; read -r line", crate::common::HELLO)]);
        let (client, driver) = connect_driven(command, legacy()).expect("a target");
        let _driver = smol::spawn(driver);
        assert_eq!(call(&client).await.expect("an answer").first_text(), Some("3"));
    });
}

// covers: B-141, S0-27, S0-33
#[test]
fn server_exit_during_a_call_ends_it_with_the_exit_status() {
    run(async {
        let (client, driver) = ready(server("read -r line; exit 3")).await;
        let ended = call(&client).await.expect_err("no answer");
        let why = Closed::Exited(ExitStatus::exited(3));
        assert_eq!(ended, CallError::Closed { sent: Sent::Maybe, why });
        assert_eq!(ended.to_string(), "Transport closed: the program exited with code 3");
        driver.await;
    });
}

// covers: B-141
#[test]
fn killed_server_reports_the_signal() {
    run(async {
        let (client, _driver) = ready(server("read -r line; kill -9 $$")).await;
        let ended = call(&client).await.expect_err("no answer");
        let why = Closed::Exited(ExitStatus::killed(9));
        assert_eq!(ended, CallError::Closed { sent: Sent::Maybe, why });
    });
}

// covers: S0-63, B-060, B-061
#[test]
fn unresponsive_server_times_out_the_call_and_gets_a_cancel() {
    run(async {
        let script = r#"read -r line; read -r cancel; case "$cancel" in *notifications/cancelled*) text=told;; esac
            read -r line; echo '{"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"'$text'"}]}}'; read -r line"#;
        let (client, _driver) = ready(server(script)).await;
        let limit = Duration::from_millis(100);
        let ended = client.call(tools::call("add").timeout(limit)).await.expect_err("no answer");
        assert_eq!(ended, CallError::Timeout { after: limit, sent: Sent::Maybe, awaited: Awaited::Response });
        assert_eq!(call(&client).await.expect("an answer").first_text(), Some("told"));
    });
}

// covers: S0-29
#[test]
fn dropping_a_call_cancels_only_that_call_on_the_server() {
    run(async {
        let script = r#"read -r line; read -r cancel; case "$cancel" in *notifications/cancelled*'"requestId":2'*) text=told;; esac
            read -r line; echo '{"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"'$text'"}]}}'; read -r line"#;
        let (client, _driver) = ready(server(script)).await;
        drop(client.start(tools::call("add")));
        assert_eq!(call(&client).await.expect("an answer").first_text(), Some("told"));
    });
}

// covers: S0-64
#[test]
fn cancelled_call_ends_with_its_reason() {
    run(async {
        let (client, _driver) = ready(server("read -r line; read -r line; read -r line")).await;
        let pending = client.start(tools::call("add"));
        pending.cancel(Some("enough"));
        let ended = pending.await.expect_err("no answer");
        assert_eq!(ended, CallError::Cancelled { reason: Some("enough".into()) });
    });
}

// covers: S0-31, B-274
#[test]
fn invalid_lines_are_skipped_and_reported() {
    run(async {
        let script =
            format!(r#"echo garbage; printf '\377\376\n'; echo '{{"half":'; read -r line; {ANSWER}; read -r line"#);
        let (client, _driver, codes) = observed(server(&script), legacy());
        assert_eq!(call(&client).await.expect("an answer").first_text(), Some("3"));
        assert_eq!(*codes.lock().expect("no panic"), ["bad-message"; 3]);
    });
}

/// Creates a client that collects its diagnostics.
fn observed(program: Program, config: ClientOptions) -> (Client, smol::Task<()>, Arc<Mutex<Vec<&'static str>>>) {
    let codes = Arc::new(Mutex::new(Vec::new()));
    let told = codes.clone();
    let config = config.on_event(move |event| {
        if let ClientEvent::Diagnostic(diagnostic) = event {
            told.lock().expect("no panic").push(diagnostic.kind.code());
        }
    });
    let (client, driver) = connect_driven(program, config).expect("a target");
    (client, smol::spawn(driver), codes)
}

// covers: B-052, S0-13
#[test]
fn second_and_late_responses_are_ignored_and_reported() {
    run(async {
        let again = ANSWER.replace(r#""id":2"#, r#""id":3"#);
        let last = ANSWER.replace(r#""id":2"#, r#""id":4"#);
        // Twice for the first call; for the second only after its cancellation; then once for the
        // third.
        let script =
            format!("read -r a; {ANSWER}; {ANSWER}; read -r b; read -r cancel; {again}; read -r c; {last}; read -r d");
        let (client, _driver, codes) = observed(server(&script), legacy());
        call(&client).await.expect("an answer");
        drop(client.start(tools::call("add")));
        call(&client).await.expect("an answer");
        assert_eq!(*codes.lock().expect("no panic"), ["late-answer"; 2]);
    });
}

// covers: B-141
#[test]
fn truncated_last_message_is_reported_and_ends_the_call() {
    run(async {
        let script = r#"read -r line; printf '{"jsonrpc":"2.0","id":2,"resu'; exit 6"#;
        let (client, _driver, codes) = observed(server(script), legacy());
        let ended = call(&client).await.expect_err("no answer");
        assert_ne!(ended.sent(), Sent::No, "{ended:?}");
        until(|| *codes.lock().expect("no panic") == ["bad-message"]).await;
    });
}

#[test]
fn server_that_ignores_the_probe_is_legacy() {
    run(async {
        let hello = crate::common::HELLO.replace(r#""id":1"#, r#""id":2"#);
        let answer = ANSWER.replace(r#""id":2"#, r#""id":3"#);
        let config = ClientOptions::new().set(|config| config.probe_timeout = Duration::from_millis(50));
        let (client, _driver, codes) =
            observed(sh(&format!("read -r probe; {hello} read -r line; {answer}; read -r line")), config);
        assert_eq!(call(&client).await.expect("an answer").first_text(), Some("3"));
        assert_eq!(*codes.lock().expect("no panic"), ["fell-back-to-legacy"]);
    });
}

// covers: B-145, B-087
#[test]
fn missing_program_fails_the_connect_at_once_and_is_named() {
    run(async {
        let (client, driver) = connected(Program::new("/nonexistent/server"));
        let Err(ConnectError::Negotiation(failed)) = client.ready().await else { panic!("it is not there") };
        assert_eq!(failed.stage, Stage::Connect);
        assert!(
            matches!(&failed.cause, NegotiationCause::Closed(Closed::Unreachable(why)) if why.contains("/nonexistent/server"))
        );
        let ended = call(&client).await.expect_err("no answer");
        assert_eq!(ended.sent(), Sent::No);
        driver.await;
    });
}

// covers: B-087
#[test]
fn program_that_exits_at_once_fails_connect_with_its_status() {
    run(async {
        let (client, _driver) = connected(sh("exit 7"));
        let Err(ConnectError::Negotiation(failed)) = client.ready().await else { panic!("it is gone") };
        assert_eq!(failed.stage, Stage::Initialize);
        let status = ExitStatus::exited(7);
        assert_eq!(failed.cause, NegotiationCause::Closed(Closed::Exited(status)));
    });
}

// covers: B-133, B-134, B-137, B-272, S0-26
#[test]
fn close_ends_and_reaps_the_whole_group() {
    run(async {
        let (client, driver) = ready(server("sleep 1000 & read -r line")).await;
        let group = group(&client);
        until(|| members(group).len() == 2).await;
        assert_eq!(client.close().await, Termination::Requested);
        until(|| members(group).is_empty()).await;
        assert!(!std::path::Path::new(&format!("/proc/{group}")).exists(), "reaped");
        assert_eq!(client.close().await, Termination::Requested);
        assert!(matches!(call(&client).await, Err(CallError::Refused(_))));
        driver.await;
    });
}

// covers: B-133
#[test]
fn dropping_the_last_handle_ends_the_group() {
    run(async {
        let (client, driver) = ready(server("sleep 1000 & read -r line")).await;
        let group = group(&client);
        let other = client.clone();
        drop(client);
        assert!(other.server().is_some());
        drop(other);
        driver.await;
        until(|| members(group).is_empty()).await;
    });
}

// covers: B-133, S0-26
#[test]
fn dropped_client_leaves_nothing_without_an_executor() {
    // It rejects the probe, completes a handshake, and then ignores the end of its input and
    // SIGTERM.
    let hello = r#"trap '' TERM; read -r line; echo '{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"?"}}'; read -r line;
        printf '{"jsonrpc":"2.0","id":2,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"%s","version":"1"}}}\n' $$;
        while :; do sleep 1000; done"#;
    let client = smol::block_on(connect(sh(hello))).expect("ready");
    let group = group(&client);
    let second = client.clone();
    drop(client);
    assert!(!members(group).is_empty(), "a handle is left");
    drop(second);
    // `main` could return here, and whatever still runs would remain. SIGKILL was sent; the system
    // needs a moment.
    run(async { until(|| members(group).is_empty()).await });
    assert!(!std::path::Path::new(&format!("/proc/{group}")).exists(), "it was awaited");
}

// covers: B-133
#[test]
fn panic_ends_the_group() {
    run(async {
        let (client, driver) = ready(server("sleep 1000 & read -r line")).await;
        let group = group(&client);
        let panicked = std::thread::spawn(move || {
            let _client = client;
            std::panic::resume_unwind(Box::new("on purpose"));
        });
        assert!(panicked.join().is_err());
        driver.await;
        until(|| members(group).is_empty()).await;
    });
}

// covers: B-133, S0-26
#[test]
fn dropped_driver_kills_the_group_and_ends_calls() {
    run(async {
        let (client, driver) =
            ready(server("trap '' TERM; sleep 1000 & while :; do read -r line || sleep 1000; done")).await;
        let group = group(&client);
        let pending = client.start(tools::call("add"));
        driver.cancel().await;
        let ended = pending.await.expect_err("no answer");
        assert!(matches!(ended, CallError::Closed { why: Closed::Aborted, .. }), "{ended:?}");
        until(|| members(group).is_empty() && !std::path::Path::new(&format!("/proc/{group}")).exists()).await;
        assert!(matches!(call(&client).await, Err(CallError::Refused(_))));
        client.close().await;
    });
}

/// Records, when it is woken, whether a process group has ended. The waking thread continues only
/// after that.
struct Witness {
    group: u32,
    gone: Mutex<Option<bool>>,
}

impl Wake for Witness {
    fn wake(self: Arc<Self>) {
        let end = Instant::now() + Duration::from_secs(10);
        // If it was killed, the system needs a moment.
        while !members(self.group).is_empty() && Instant::now() < end {
            std::thread::park_timeout(Duration::from_millis(2));
        }
        self.gone.lock().expect("no panic").get_or_insert(members(self.group).is_empty());
    }
}

// covers: B-133, B-141
#[test]
fn dropped_driver_kills_the_program_before_its_calls_end() {
    run(async {
        let program = server("trap '' TERM; while :; do read -r line || sleep 1000; done");
        let (client, mut driver) = connect_driven(program, legacy()).expect("a target");
        smol::future::or(async { client.ready().await.expect("ready") }, &mut driver).await;
        let mut pending = client.start(tools::call("add"));
        let witness = Arc::new(Witness { group: group(&client), gone: Mutex::default() });
        let waker = Waker::from(Arc::clone(&witness));
        assert!(Pin::new(&mut pending).poll(&mut Context::from_waker(&waker)).is_pending());
        drop(driver);
        assert_eq!(*witness.gone.lock().expect("no panic"), Some(true), "who waits saw the program live on");
        let ended = pending.await.expect_err("no answer");
        assert!(matches!(ended, CallError::Closed { why: Closed::Aborted, .. }), "{ended:?}");
    });
}

/// Returns the error of a start and the time until then.
async fn start_error(
    target: impl IntoTarget<mcp_smol::Given>,
    config: ClientOptions,
) -> (mcp_proto::error::NegotiationError, Duration) {
    let began = Instant::now();
    let failed = mcp_smol::connect_with(target, config).await.expect_err("it is silent");
    let took = began.elapsed();
    let ConnectError::Negotiation(e) = failed else { panic!("{failed:?}") };
    assert!(e.after <= took && took - e.after < Duration::from_secs(5), "{e} in {took:?}");
    assert!(e.to_string().contains(&format!("failed after {} ms", e.after.as_millis())), "{e}");
    (e, took)
}

// covers: B-094, B-135
#[test]
fn connect_timeout_ends_the_start_of_a_silent_program() {
    run(async {
        let limit = Duration::from_millis(600);
        let config = ClientOptions::new().stderr(Stderr::Discard).set(move |config| {
            config.connect_timeout = limit;
            config.probe_timeout = limit / 2;
            config.limits.frame.exit_timeout = Duration::from_millis(100);
        });
        let (e, took) = start_error(sh("exec sleep 600"), config).await;
        assert_eq!((e.stage, &e.cause), (Stage::Initialize, &NegotiationCause::StartTimeout(limit)));
        // The program has time until the first step of the shutdown is over.
        assert!(e.after >= limit + Duration::from_millis(100) && took < Duration::from_secs(10), "{e} in {took:?}");
    });
}

// covers: B-094
#[cfg(feature = "http")]
#[test]
fn connect_timeout_ends_the_start_over_a_silent_socket() {
    run(async {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}/mcp", listener.local_addr().expect("an address"));
        let limit = Duration::from_millis(300);
        let (e, took) = start_error(url, ClientOptions::new().set(move |config| config.connect_timeout = limit)).await;
        assert_eq!((e.stage, &e.cause), (Stage::Discover, &NegotiationCause::StartTimeout(limit)));
        assert!(e.after >= limit && took < Duration::from_secs(10), "{e} in {took:?}");
    });
}

// covers: B-087, B-094
#[test]
fn error_of_a_program_that_dies_twice_reports_both_ends() {
    run(async {
        let config = ClientOptions::new().stderr(Stderr::Discard);
        let program = sh("read -r line; echo 'locked' >&2; exit 1");
        let failed = mcp_smol::connect_with(program, config).await.expect_err("it dies").to_string();
        let twice = "started twice: exit 1 after server/discover, exit 1 after initialize; last line of its standard error: locked";
        assert!(failed.contains(twice) && failed.contains("restart_after_probe"), "{failed}");
    });
}

// covers: B-135
#[test]
fn closing_during_connect_leaves_no_process() {
    run(async {
        let file = std::env::temp_dir().join(format!("mcp-smol-{}-connecting", std::process::id()));
        let script =
            format!("echo $$ > {0}.new; mv {0}.new {0}; trap '' TERM; while :; do sleep 600; done", file.display());
        let config = legacy().set(|config| {
            config.limits.frame.exit_timeout = Duration::from_millis(100);
            config.limits.frame.terminate_timeout = Duration::from_millis(100);
        });
        let connecting = connecting(sh(&script), config).expect("a target");
        let closer = connecting.closer();
        let closing = async {
            until(|| file.exists()).await;
            closer.close().await
        };
        let (failed, closed) = smol::future::zip(connecting, closing).await;
        assert_eq!(failed.expect_err("it is closed"), ConnectError::Closed(Closed::Aborted));
        assert_eq!(closed, Termination::Requested);
        let pid: u32 = std::fs::read_to_string(&file).expect("a process id").trim().parse().expect("a number");
        std::fs::remove_file(&file).expect("written");
        until(|| members(pid).is_empty()).await;
    });
}

// covers: S0-24
#[test]
fn connecting_starts_nothing_before_it_is_awaited() {
    run(async {
        let file = std::env::temp_dir().join(format!("mcp-smol-{}-unstarted", std::process::id()));
        let program = || sh(&format!("echo started > {}", file.display()));
        let closed = connecting(program(), legacy()).expect("a target");
        // Even though nothing drives it yet.
        closed.closer().close().await;
        assert!(matches!(closed.await.expect_err("it is closed"), ConnectError::Closed(Closed::Aborted)));
        let dropped = connecting(program(), legacy()).expect("a target");
        let closer = dropped.closer();
        drop(dropped);
        closer.close().await;
        let (client, driver) = connect_driven(program(), legacy()).expect("a target");
        client.close().await;
        driver.await;
        assert!(!file.exists(), "a program was started");
    });
}

// covers: B-135, B-088
#[test]
fn dropping_everything_before_negotiation_leaves_nothing() {
    run(async {
        let file = std::env::temp_dir().join(format!("mcp-smol-{}-handshake", std::process::id()));
        let script =
            format!("echo $$ > {}.new; mv {}.new {}; sleep 1000", file.display(), file.display(), file.display());
        let (client, driver) = connected(sh(&script));
        until(|| file.exists()).await;
        let group: u32 = std::fs::read_to_string(&file).expect("written").trim().parse().expect("a process id");
        std::fs::remove_file(&file).expect("written");
        assert!(!members(group).is_empty());
        drop((client, driver.cancel().await));
        until(|| members(group).is_empty()).await;
    });
}

// covers: B-138, B-141
#[test]
fn grandchild_that_holds_the_pipe_does_not_hide_the_exit() {
    run(async {
        let (client, driver) = ready(server("sleep 1000 & read -r line; exit 5")).await;
        let group = group(&client);
        let ended = call(&client).await.expect_err("no answer");
        let why = Closed::Exited(ExitStatus::exited(5));
        assert_eq!(ended, CallError::Closed { sent: Sent::Maybe, why });
        driver.await;
        until(|| members(group).is_empty()).await;
    });
}

#[test]
fn response_in_the_pipe_at_exit_is_read() {
    run(async {
        // Written by a descendant when the program has exited and is not reaped.
        let late = format!("(while ! grep -q ') Z' /proc/$$/stat; do :; done; {ANSWER}) & exit 0");
        // It has half a second, which a busy machine may exceed. If nothing were read after the
        // exit, no attempt would succeed.
        for _ in 0..10 {
            let (client, _driver) = ready(server(&format!("read -r line; {late}"))).await;
            if let Ok(answer) = call(&client).await {
                return assert_eq!(answer.first_text(), Some("3"));
            }
        }
        panic!("no answer");
    });
}

// covers: B-138
#[test]
fn program_that_ignores_eof_and_sigterm_is_killed() {
    run(async {
        let mut quickest = Duration::MAX;
        // There is no other wait, but a busy machine may need several attempts to show it.
        while quickest >= Duration::from_millis(1200) {
            let config = legacy().set(|config| {
                config.limits.frame.exit_timeout = Duration::from_millis(100);
                config.limits.frame.terminate_timeout = Duration::from_millis(100);
            });
            // Before the handshake; otherwise it could be ended before it ignores the signal.
            let program = sh(&format!("trap '' TERM\n{}while :; do sleep 1000; done", crate::common::HELLO));
            let (client, driver) = connect_driven(program, config).expect("a target");
            let driver = smol::spawn(driver);
            client.ready().await.expect("ready");
            let group = group(&client);
            let start = Instant::now();
            assert_eq!(client.close().await, Termination::Requested);
            quickest = quickest.min(start.elapsed());
            assert!(quickest >= Duration::from_millis(200), "{quickest:?}");
            until(|| members(group).is_empty()).await;
            driver.await;
        }
    });
}

// covers: B-138
#[test]
fn program_that_closes_its_output_is_ended() {
    run(async {
        let config = legacy().set(|config| config.limits.frame.exit_timeout = Duration::from_millis(100));
        let (client, driver) = connect_driven(server("read -r line; exec >&-; sleep 1000"), config).expect("a target");
        let driver = smol::spawn(driver);
        client.ready().await.expect("ready");
        let group = group(&client);
        call(&client).await.expect_err("no answer");
        driver.await;
        until(|| members(group).is_empty()).await;
    });
}

// covers: B-131
#[test]
fn full_pipes_in_both_directions_do_not_deadlock() {
    run(async {
        // At the first byte of the request, a mebibyte of blanks before it reads more; after the
        // rest of it, as many again.
        let blank = "head -c 1048576 /dev/zero | tr '\\0' ' '; echo";
        let (client, _driver) = ready(server(&format!(
            "head -c 1 > /dev/null; {blank}; head -n 1 > /dev/null; {blank}; {ANSWER}; cat > /dev/null"
        )))
        .await;
        let text = "x".repeat(1 << 20);
        let arguments = Object::new().with("text", text.as_str());
        let params = Ok(arguments.into());
        let answer = client.call(tools::call("add").param("arguments", params)).await.expect("an answer");
        assert_eq!(answer.first_text(), Some("3"));
    });
}

// covers: B-144
#[test]
fn broken_pipe_is_an_error_value() {
    run(async {
        let (client, driver) = ready(server("exec <&-; echo; sleep 0.2; exit 4")).await;
        let text = "x".repeat(1 << 20);
        let params = Ok(Object::new().with("text", text.as_str()).into());
        let ended = client.call(tools::call("add").param("arguments", params)).await.expect_err("no answer");
        assert!(matches!(ended, CallError::Closed { why: Closed::Exited(_), .. }), "{ended:?}");
        driver.await;
    });
}

// covers: B-129, B-130
#[test]
fn standard_error_is_always_read_line_by_line() {
    run(async {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let told = lines.clone();
        let config =
            legacy().stderr(Stderr::Lines(Arc::new(move |line| told.lock().expect("no panic").push(line.to_string()))));
        let flood = "echo first >&2; head -c 1048576 /dev/zero | tr '\\0' 'x' >&2; echo >&2; echo last >&2";
        let (client, driver) =
            connect_driven(sh(&format!("{flood}\n{} read -r line; {ANSWER}; exit 0", crate::common::HELLO)), config)
                .expect("a target");
        let driver = smol::spawn(driver);
        assert_eq!(call(&client).await.expect("an answer").first_text(), Some("3"));
        driver.await;
        let lines = lines.lock().expect("no panic");
        assert_eq!(lines.first().map(String::as_str), Some("first"));
        assert_eq!(lines.last().map(String::as_str), Some("last"));
        assert_eq!(lines.iter().filter(|line| line.starts_with('x')).map(String::len).sum::<usize>(), 1 << 20);
        assert!(lines.iter().all(|line| line.len() <= 64 << 10));
    });
}

// covers: B-277
#[test]
fn client_may_be_closed_while_other_tasks_wait() {
    run(async {
        let (client, driver) = ready(server("while read -r line; do :; done")).await;
        let waiting: Vec<_> = (0..10)
            .map(|_| {
                let client = client.clone();
                smol::spawn(async move { call(&client).await })
            })
            .collect();
        let closing = client.clone();
        let closed = std::thread::spawn(move || smol::block_on(closing.close()));
        for waiting in waiting {
            waiting.await.expect_err("no answer");
        }
        assert_eq!(closed.join().expect("no panic"), Termination::Requested);
        driver.await;
    });
}
