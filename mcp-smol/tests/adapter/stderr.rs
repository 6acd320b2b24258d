//! The standard error of programs: it is always read, never blocks, and its end is part of the
//! error.

use crate::common::{HELLO, group, legacy, members, run, server, sh, until};
use mcp_proto::exchange::{Closed, ExitStatus, Program};
use mcp_proto::{CallError, CallToolResult};
use mcp_smol::{Client, Closer, Stderr, Termination, connect_driven, tools};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

fn connected(program: Program, stderr: Stderr) -> Client {
    let (client, driver) = connect_driven(program, legacy().stderr(stderr)).expect("a target");
    smol::spawn(driver).detach();
    client
}

async fn call(client: &Client) -> Result<CallToolResult, CallError> {
    client.call(tools::call("add")).await
}

/// Returns how a server ended during a call.
async fn end(program: Program) -> ExitStatus {
    match call(&connected(program, Stderr::Discard)).await {
        Err(CallError::Closed { why: Closed::Exited(status), .. }) => status,
        other => panic!("{other:?}"),
    }
}

/// Responds to every call, after 100,000 bytes on standard error.
const NOISY: &str = r#"id=2; while read -r line; do
    head -c 99999 /dev/zero | tr '\0' 'x' >&2; echo >&2
    echo '{"jsonrpc":"2.0","id":'$id',"result":{"content":[]}}'; id=$((id + 1)); done"#;

// covers: B-141
#[test]
fn error_quotes_a_program_that_exits_at_once() {
    run(async {
        let client = connected(sh("echo starting >&2; echo 'no such file: config' >&2; exit 7"), Stderr::Discard);
        let failed = client.ready().await.expect_err("it is gone").to_string();
        assert!(
            failed.ends_with("the program exited with code 7; last line of its standard error: no such file: config"),
            "{failed}"
        );
        let client = connected(server("read -r line; echo 'out of memory' >&2; kill -9 $$"), Stderr::Discard);
        let ended = call(&client).await.expect_err("no answer").to_string();
        assert!(
            ended.ends_with("the program was killed by signal 9; last line of its standard error: out of memory"),
            "{ended}"
        );
    });
}

// covers: B-141
#[test]
fn end_of_standard_error_is_complete_after_any_output() {
    run(async {
        for _ in 0..10 {
            let flood = "read -r line; head -c 1048576 /dev/zero | tr '\\0' 'x' >&2; echo >&2; echo last >&2; exit 7";
            let status = end(server(flood)).await;
            assert_eq!(status.code, Some(7));
            assert!(status.stderr.ends_with("x\nlast\n"), "{:?}", status.stderr);
            assert_eq!(status.stderr.len(), ExitStatus::STDERR_TAIL);
        }
    });
}

// covers: B-141
#[test]
fn output_after_the_exit_is_read() {
    run(async {
        // Written after the program and its output have ended.
        let late = "(while ! grep -q ') Z' /proc/$$/stat; do :; done; echo late >&2) >&- & exit 3";
        // Even an implementation that does not wait may see it by chance, once.
        for _ in 0..3 {
            let status = end(server(&format!("read -r line; {late}"))).await;
            assert_eq!(status, ExitStatus::exited(3).with_stderr("late\n"));
        }
    });
}

// covers: B-138, B-141
#[test]
fn grandchild_that_holds_standard_error_does_not_hide_exit() {
    run(async {
        let program = server("sleep 1000 >&- <&- & read -r line; echo gone >&2; exit 5");
        let client = connected(program, Stderr::Discard);
        client.ready().await.expect("ready");
        let group = group(&client);
        let start = Instant::now();
        let Err(CallError::Closed { why: Closed::Exited(status), .. }) = call(&client).await else { panic!("no end") };
        assert!(start.elapsed() < Duration::from_secs(15), "{:?}", start.elapsed());
        assert_eq!(status, ExitStatus::exited(5).with_stderr("gone\n"));
        until(|| members(group).is_empty()).await;
    });
}

// covers: B-129, B-130
#[test]
fn endless_standard_error_does_not_block_the_protocol() {
    run(async {
        // More than any pipe holds, before it reads its first byte.
        let early = format!("head -c 2000000 /dev/zero >&2; {HELLO} {NOISY}");
        let client = connected(sh(&early), Stderr::Discard);
        for _ in 0..20 {
            call(&client).await.expect("an answer");
        }
        assert_eq!(client.close().await, Termination::Requested);
    });
}

// covers: B-129
#[test]
fn function_that_panics_at_every_line_is_harmless() {
    run(async {
        let bytes = Arc::new(AtomicUsize::new(0));
        let told = bytes.clone();
        let panics = Stderr::Lines(Arc::new(move |line: &str| {
            told.fetch_add(line.len(), Ordering::SeqCst);
            std::panic::resume_unwind(Box::new("on purpose"));
        }));
        let client = connected(server(NOISY), panics);
        for _ in 0..10 {
            call(&client).await.expect("an answer");
        }
        client.close().await;
        assert_eq!(bytes.load(Ordering::SeqCst), 10 * 99_999);
    });
}

// covers: B-129
#[test]
fn function_for_lines_may_close_the_client() {
    run(async {
        let slot = Arc::new(std::sync::Mutex::new(None::<Closer>));
        let here = slot.clone();
        let closes = Stderr::Lines(Arc::new(move |_: &str| {
            if let Some(closer) = here.lock().expect("no panic").take() {
                // This begins the close. The close ends only after the function has returned.
                drop(smol::block_on(smol::future::poll_once(closer.close())));
            }
        }));
        let (client, driver) =
            connect_driven(server("read -r line; echo fatal >&2; read -r line"), legacy().stderr(closes))
                .expect("a target");
        *slot.lock().expect("no panic") = Some(client.closer());
        let pending = client.start(tools::call("add"));
        let (ended, ()) = smol::future::zip(pending, driver).await;
        assert!(matches!(ended, Err(CallError::Closed { .. })), "{ended:?}");
    });
}
