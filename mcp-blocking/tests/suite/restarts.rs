//! Programs that exit and are restarted, and the steps of a shutdown, as events for the
//! application.

use crate::common::{BOUND, HELLO, bounded, group, legacy, members, quick, server, sh, until};
use mcp_blocking::{CallError, Client, ClientOptions, connect_with, tools};
use mcp_proto::client::{Event, Restart, Termination};
use mcp_proto::exchange::{Closed, ConnectionNotice, ExitStatus, Sent, Shutdown};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// A server that can be started several times: it responds to any ids. `$1` is the number of calls
/// that it answers; it exits with code 3 at the next one.
pub(crate) const AGAIN: &str = r#"
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

/// Returns a configuration that restarts a server after this many milliseconds.
fn restarting(config: ClientOptions, wait: u64) -> ClientOptions {
    config.set(move |config| {
        let mut restart = Restart::default();
        restart.waits = vec![Duration::from_millis(wait)];
        config.restart = Some(restart);
    })
}

/// Adds a receiver of all events with their times.
fn told(config: ClientOptions) -> (ClientOptions, mpsc::Receiver<(Instant, Event)>) {
    let (told, events) = mpsc::channel();
    (config.on_event(move |event| drop(told.send((Instant::now(), event)))), events)
}

fn call(client: &Client) -> Result<String, CallError> {
    client.call(tools::call("add")).map(|result| result.first_text().unwrap_or_default().to_owned())
}

fn exited(code: i32) -> Closed {
    Closed::Exited(ExitStatus::exited(code))
}

/// Returns the announced starts: attempt and cause.
fn announced(events: &[(Instant, Event)]) -> Vec<(u32, Closed)> {
    let restarting = |event: &Event| match event {
        Event::Restarting { attempt, why, .. } => Some((*attempt, why.clone())),
        _ => None,
    };
    events.iter().filter_map(|(_, event)| restarting(event)).collect()
}

/// With every notice about its connections, and when.
fn noticed(config: ClientOptions) -> (ClientOptions, mpsc::Receiver<(Instant, ConnectionNotice)>) {
    let (told, notices) = mpsc::channel();
    (config.on_notice(move |_, notice| drop(told.send((Instant::now(), notice)))), notices)
}

/// Returns all events until the client has ended.
fn all(events: &mpsc::Receiver<(Instant, Event)>) -> Vec<(Instant, Event)> {
    let mut all = Vec::new();
    while !matches!(all.last(), Some((_, Event::Terminated(_)))) {
        all.push(events.recv_timeout(BOUND).expect("an event of the end"));
    }
    all
}

// covers: STDIO-C-019, R-32, B-133
#[test]
fn exited_program_is_restarted_and_loses_only_calls_in_flight() {
    bounded(|| {
        let (config, events) = told(restarting(legacy(), 50));
        let client = connect_with(sh(AGAIN).args(["sh", "1"]), config).expect("hello");
        let first = group(&client);
        assert_eq!(call(&client).as_deref(), Ok("1"));
        assert_eq!(call(&client), Err(CallError::Closed { sent: Sent::Maybe, why: exited(3) }));
        // The call waits for the next server, and is sent to it.
        assert_eq!(call(&client).as_deref(), Ok("1"));
        let second = group(&client);
        assert_ne!(first, second);
        assert!(members(first).is_empty(), "left: {:?}", members(first));
        assert!(!std::path::Path::new(&format!("/proc/{first}")).exists(), "it is not reaped");
        until(|| client.stats().detached_threads == 0);
        assert_eq!(client.stats().restarts, 1);
        assert_eq!(client.close(), Termination::Requested);
        until(|| members(second).is_empty());
        assert_eq!(announced(&all(&events)), [(1, exited(3))]);
    });
}

// covers: R-33
#[test]
fn program_that_always_exits_exhausts_restarts_and_ends_client() {
    bounded(|| {
        let file = std::env::temp_dir().join(format!("mcp-blocking-starts-{}", std::process::id()));
        let script = AGAIN.replace("n=0", &format!("echo $$ >> {}; exit 7", file.display()));
        let (config, events) = told(restarting(legacy(), 10));
        let client = connect_with(sh(&script).args(["sh", "1"]), config).expect("hello");
        let told = all(&events);
        assert_eq!(announced(&told), [1, 2, 3, 4].map(|attempt| (attempt, exited(7))));
        assert_eq!(told.last().map(|(_, last)| last), Some(&Event::Terminated(Termination::Closed(exited(7)))));
        assert_eq!(client.close(), Termination::Closed(exited(7)));
        let starts = std::fs::read_to_string(&file).expect("the starts");
        drop(std::fs::remove_file(&file));
        let started: Vec<u32> = starts.lines().map(|pid| pid.parse().expect("a process id")).collect();
        assert_eq!(started.len(), 5);
        started.into_iter().for_each(|pid| until(|| members(pid).is_empty()));
    });
}

// covers: STDIO-C-015, STDIO-C-016, B-138
#[test]
fn shutdown_of_unresponsive_program_reports_each_step_in_time() {
    bounded(|| {
        let (config, notices) = noticed(quick(legacy()));
        // Before it says hello, or it could be ended sooner than it ignores anything.
        let script = format!("trap '' TERM\n{HELLO}while :; do read -r line || sleep 0.02; done");
        let client = connect_with(sh(&script), config).expect("hello");
        let began = Instant::now();
        assert_eq!(client.close(), Termination::Requested);
        let (mut steps, mut ends) = (Vec::new(), Vec::new());
        drop(client);
        for (at, notice) in notices.iter() {
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
            assert!(*at >= due && *at < due + BOUND / 2, "{step:?} after {at:?}");
        }
        assert_eq!(ends, [Closed::Exited(ExitStatus::killed(9))]);
    });
}

// covers: B-141
#[test]
fn closed_program_still_reports_its_status() {
    bounded(|| {
        let (config, notices) = noticed(legacy());
        let client = connect_with(server("while read -r line; do :; done; exit 5"), config).expect("hello");
        assert_eq!(client.close(), Termination::Requested);
        drop(client);
        assert_eq!(notices.iter().last().map(|(_, notice)| notice), Some(ConnectionNotice::Closed(exited(5))));
    });
}

#[test]
fn close_during_the_restart_delay_is_immediate() {
    bounded(|| {
        let (config, events) = told(restarting(legacy(), 600_000));
        let client = connect_with(sh(AGAIN).args(["sh", "0"]), config).expect("hello");
        assert_eq!(call(&client), Err(CallError::Closed { sent: Sent::Maybe, why: exited(3) }));
        let waiting = client.start(tools::call("add").timeout(None));
        let began = Instant::now();
        assert_eq!(client.close(), Termination::Requested);
        assert!(began.elapsed() < BOUND / 2, "{:?}", began.elapsed());
        assert_eq!(waiting.wait(), Err(CallError::Closed { sent: Sent::No, why: Closed::Aborted }));
        assert_eq!(announced(&all(&events)).len(), 1);
    });
}
