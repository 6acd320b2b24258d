//! Programs that exit and are restarted, and the steps of a shutdown, as events for the
//! application.

use crate::common::{HELLO, group, legacy, members, run, sh, until};
use mcp_proto::client::{Restart, Termination};
use mcp_proto::exchange::{Closed, ConnectionNotice, ExitStatus, Program, Sent, Shutdown};
use mcp_proto::{CallError, ClientConfig};
use mcp_smol::{Client, ClientEvent, ClientOptions, connect_driven, tools};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// A server that can be started several times: it responds to any ids. `$1` is the number of calls
/// that it answers; it exits with code 3 at the next one.
const AGAIN: &str = r#"
    id() { id=${line#*'"id":'}; id=${id%%[,\}]*}; }
    read -r line; id
    echo '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"'$$'","version":"1"}}}'
    read -r line
    n=0
    while [ $n -lt $1 ] && read -r line; do
        id; n=$((n+1))
        echo '{"jsonrpc":"2.0","id":'$id',"result":{"content":[{"type":"text","text":"'$n'"}]}}'
    done
    read -r line || exit 0
    exit 3
"#;

type Told = Arc<Mutex<Vec<(Instant, ClientEvent)>>>;

/// Creates a client that restarts its server after this many milliseconds. Returns all events of
/// the application with their times.
fn restarting(program: Program, config: ClientOptions, wait: u64) -> (Client, smol::Task<()>, Told) {
    let told = Told::default();
    let tell = told.clone();
    let config = config.on_event(move |event| tell.lock().expect("no panic").push((Instant::now(), event)));
    let config = config.set(move |config| {
        let mut restart = Restart::default();
        restart.waits = vec![Duration::from_millis(wait)];
        config.restart = Some(restart);
    });
    let (client, driver) = connect_driven(program, config).expect("a target");
    (client, smol::spawn(driver), told)
}

async fn call(client: &Client) -> Result<String, CallError> {
    client.call(tools::call("add")).await.map(|result| result.first_text().unwrap_or_default().to_owned())
}

fn exited(code: i32) -> Closed {
    Closed::Exited(ExitStatus::exited(code))
}

/// Returns the announced starts: attempt and cause.
fn announced(told: &Told) -> Vec<(u32, Closed)> {
    let restarting = |event: &ClientEvent| match event {
        ClientEvent::Restarting { attempt, why, .. } => Some((*attempt, why.clone())),
        _ => None,
    };
    told.lock().expect("no panic").iter().filter_map(|(_, event)| restarting(event)).collect()
}

// covers: STDIO-C-019, R-32, B-133
#[test]
fn exited_program_is_restarted_and_loses_only_calls_in_flight() {
    run(async {
        let (client, driver, told) = restarting(sh(AGAIN).args(["sh", "1"]), legacy(), 50);
        client.ready().await.expect("hello");
        let first = group(&client);
        assert_eq!(call(&client).await.as_deref(), Ok("1"));
        assert_eq!(call(&client).await, Err(CallError::Closed { sent: Sent::Maybe, why: exited(3) }));
        // The call waits for the next server, and is sent to it.
        assert_eq!(call(&client).await.as_deref(), Ok("1"));
        let second = group(&client);
        assert_ne!(first, second);
        assert!(members(first).is_empty(), "left: {:?}", members(first));
        assert!(!std::path::Path::new(&format!("/proc/{first}")).exists(), "it is not reaped");
        assert_eq!(client.stats().restarts, 1);
        assert_eq!(client.close().await, Termination::Requested);
        driver.await;
        assert!(members(second).is_empty(), "left: {:?}", members(second));
        assert_eq!(announced(&told), [(1, exited(3))]);
    });
}

// covers: R-33
#[test]
fn program_that_always_exits_exhausts_restarts_and_ends_client() {
    run(async {
        let file = std::env::temp_dir().join(format!("mcp-smol-starts-{}", std::process::id()));
        let script = AGAIN.replace("n=0", &format!("echo $$ >> {}; exit 7", file.display()));
        let (client, driver, told) = restarting(sh(&script).args(["sh", "1"]), legacy(), 10);
        driver.await;
        assert_eq!(announced(&told), [1, 2, 3, 4].map(|attempt| (attempt, exited(7))));
        assert_eq!(client.close().await, Termination::Closed(exited(7)));
        let starts = std::fs::read_to_string(&file).expect("the starts");
        drop(std::fs::remove_file(&file));
        let started: Vec<u32> = starts.lines().map(|pid| pid.parse().expect("a process id")).collect();
        assert_eq!(started.len(), 5);
        until(|| started.iter().all(|pid| members(*pid).is_empty())).await;
    });
}

// covers: STDIO-C-015, STDIO-C-016, B-138
#[test]
fn shutdown_of_unresponsive_program_reports_each_step_in_time() {
    run(async {
        let quick = legacy().set(|config| {
            config.limits.frame.exit_timeout = Duration::from_millis(100);
            config.limits.frame.terminate_timeout = Duration::from_millis(100);
        });
        // Before the handshake; otherwise it could be ended before it ignores the signal.
        let script = format!("trap '' TERM\n{HELLO}while :; do read -r line || sleep 0.02; done");
        let (notice, notices) = std::sync::mpsc::channel();
        let quick = quick.on_notice(move |_, told| drop(notice.send((Instant::now(), told))));
        let (client, driver, told) = restarting(sh(&script), quick, 10);
        client.ready().await.expect("hello");
        let began = Instant::now();
        assert_eq!(client.close().await, Termination::Requested);
        driver.await;
        let (mut steps, mut ends) = (Vec::new(), Vec::new());
        for (at, notice) in notices.try_iter() {
            match notice {
                ConnectionNotice::Closing(step) => steps.push((step, at - began)),
                ConnectionNotice::Closed(why) => ends.push(why),
            }
        }
        let order: Vec<Shutdown> = steps.iter().map(|(step, _)| *step).collect();
        assert_eq!(order, [Shutdown::WriteHalf, Shutdown::Terminate, Shutdown::Abort]);
        for ((step, at), millis) in steps.iter().zip([0, 100, 200]) {
            let due = Duration::from_millis(millis);
            // With a tolerance upwards, since the machine may be busy; exact downwards.
            assert!(*at >= due && *at < due + Duration::from_secs(10), "{step:?} after {at:?}");
        }
        assert_eq!(ends, [Closed::Exited(ExitStatus::killed(9))]);
        assert_eq!(announced(&told), [], "it was to end");
    });
}

#[test]
fn close_during_the_restart_delay_is_immediate() {
    run(async {
        let (client, driver, told) = restarting(sh(AGAIN).args(["sh", "0"]), legacy(), 600_000);
        assert_eq!(call(&client).await, Err(CallError::Closed { sent: Sent::Maybe, why: exited(3) }));
        let waiting = client.start(tools::call("add").timeout(None));
        assert_eq!(client.close().await, Termination::Requested);
        assert_eq!(waiting.await.map(drop), Err(CallError::Closed { sent: Sent::No, why: Closed::Aborted }));
        driver.await;
        assert_eq!(announced(&told).len(), 1);
    });
}

// covers: STDIO-C-019
#[test]
fn unix_socket_is_reconnected_when_its_server_returns() {
    run(async {
        let path = std::env::temp_dir().join(format!("mcp-smol-restart-{}.sock", std::process::id()));
        let listen = || smol::net::unix::UnixListener::bind(&path).expect("listens");
        let serving = |listener: smol::net::unix::UnixListener| async move {
            let (stream, _) = listener.accept().await.expect("a client");
            let router = crate::calc::router(&crate::calc::Seen::default());
            mcp_smol::serve(router, stream.clone(), stream).await
        };
        let first = smol::spawn(serving(listen()));
        let told = Told::default();
        let tell = told.clone();
        let config =
            ClientOptions::new().on_event(move |event| tell.lock().expect("no panic").push((Instant::now(), event)));
        let config = config.set(|config| {
            let mut restart = Restart::default();
            restart.waits = vec![Duration::from_millis(20)];
            restart.max_starts = 1000;
            config.restart = Some(restart);
        });
        let target = ClientConfig::unix(path.to_str().expect("unicode")).target;
        let config = config.set(move |config| config.target = target);
        let (client, driver) = connect_driven(Program::new("none"), config).expect("a target");
        let driver = smol::spawn(driver);
        let add = || client.call(tools::call("add").arguments(&crate::calc::Add { a: 1, b: 2 }));
        assert_eq!(add().await.expect("a sum").first_text(), Some("3"));
        // The server ends, and for a while there is none.
        first.cancel().await;
        std::fs::remove_file(&path).expect("removed");
        until(|| announced(&told).len() >= 3).await;
        let _second = smol::spawn(serving(listen()));
        assert_eq!(add().await.expect("a sum").first_text(), Some("3"));
        assert_eq!(client.close().await, Termination::Requested);
        driver.await;
        std::fs::remove_file(&path).expect("removed");
    });
}
