//! Programs that exit and are restarted, and the steps of a shutdown, as events for the
//! application.

use super::*;
use mcp_proto::exchange::{ConnectionNotice, Shutdown};
use std::net::Shutdown::Both;
use std::os::unix::net::UnixListener;
use std::sync::mpsc;

/// Returns a server that can be started several times: it responds to any ids. It answers this many
/// calls and exits with code 3 at the next one.
fn again(calls: u32) -> Program {
    let script = r#"
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
    sh(script).args(["sh", &calls.to_string()])
}

/// Returns a configuration that restarts a server after this many milliseconds.
fn restarting(config: ClientOptions, wait: u64, max_starts: Option<usize>) -> ClientOptions {
    config.set(move |config| {
        let mut restart = Restart::default();
        restart.waits = vec![Duration::from_millis(wait)];
        restart.max_starts = max_starts.unwrap_or(restart.max_starts);
        config.restart = Some(restart);
    })
}

/// Adds a receiver of every notice about its connections, with its time.
fn noticed(config: ClientOptions) -> (ClientOptions, mpsc::Receiver<(Instant, ConnectionNotice)>) {
    let (told, notices) = mpsc::channel();
    (config.on_notice(move |_, notice| drop(told.send((Instant::now(), notice)))), notices)
}

fn answer(client: &Client) -> Result<String, CallError> {
    call(client, "add").map(|result| text(Ok(result)))
}

/// Returns the attempt and the cause of an announced start.
fn announced(event: &ClientEvent) -> Option<(u32, Closed)> {
    match event {
        ClientEvent::Restarting { attempt, why, .. } => Some((*attempt, why.clone())),
        _ => None,
    }
}

/// Returns the announced starts until the client has ended.
fn all_announced(events: &mpsc::Receiver<ClientEvent>, why: Termination) -> Vec<(u32, Closed)> {
    let mut starts = Vec::new();
    loop {
        match events.recv_timeout(BOUND).expect("an event of the end") {
            ClientEvent::Terminated(ended) => {
                assert_eq!(ended, why);
                return starts;
            }
            event => starts.extend(announced(&event)),
        }
    }
}

// covers: STDIO-C-019, R-32, B-133
#[test]
fn exited_program_is_restarted_and_loses_only_calls_in_flight() {
    let _limit = limit();
    let (config, events) = told(restarting(legacy(), 50, None));
    let client = connect_with(again(1), config).wait().expect("hello");
    let first = group(&client);
    assert_eq!(answer(&client).as_deref(), Ok("1"));
    assert_eq!(answer(&client), Err(CallError::Closed { sent: Sent::Maybe, why: exited(3) }));
    // The call waits for the next server, and is sent to it.
    assert_eq!(answer(&client).as_deref(), Ok("1"));
    let second = group(&client);
    assert_ne!(first, second);
    assert!(members(first).is_empty() && is_reaped(first), "left: {:?}", members(first));
    until(|| client.stats().detached_threads == 0);
    assert_eq!(client.stats().restarts, 1);
    assert_eq!(client.close().wait(), Termination::Requested);
    drop(client);
    until(|| members(second).is_empty());
    assert_eq!(all_announced(&events, Termination::Requested), [(1, exited(3))]);
}

// covers: R-33
#[test]
fn program_that_always_exits_exhausts_restarts_and_ends_client() {
    let _limit = limit();
    let file = temp("restarts");
    let mut program = again(1);
    let exits = format!("echo $$ >> {}; exit 7", file.display());
    program.args.iter_mut().for_each(|arg| *arg = arg.replace("n=0", &exits));
    let (config, events) = told(restarting(legacy(), 10, None));
    let client = connect_with(program, config).wait().expect("hello");
    let starts = [1, 2, 3, 4].map(|attempt| (attempt, exited(7)));
    assert_eq!(all_announced(&events, Termination::Closed(exited(7))), starts);
    assert_eq!(client.close().wait(), Termination::Closed(exited(7)));
    let starts = std::fs::read_to_string(&file).expect("the starts");
    std::fs::remove_file(&file).expect("removed");
    let started: Vec<u32> = starts.lines().map(|pid| pid.parse().expect("a process id")).collect();
    assert_eq!(started.len(), 5);
    started.into_iter().for_each(|pid| until(|| members(pid).is_empty()));
}

// covers: STDIO-C-015, STDIO-C-016, B-138
#[test]
fn shutdown_of_unresponsive_program_reports_each_step_in_time() {
    let _limit = limit();
    let (config, notices) = noticed(restarting(quick(legacy()), 10, None));
    let (config, events) = told(config);
    // Before the handshake; otherwise it could be ended before it ignores the signal.
    let script = format!("trap '' TERM\n{HELLO}while :; do read -r line || sleep 0.02; done");
    let client = connect_with(sh(&script), config).wait().expect("hello");
    let began = Instant::now();
    assert_eq!(client.close().wait(), Termination::Requested);
    let (mut steps, mut ends) = (Vec::new(), Vec::new());
    drop(client);
    for (at, notice) in all(&notices) {
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
    assert_eq!(ends, [killed(9)]);
    assert_eq!(all_announced(&events, Termination::Requested), [], "it was to end");
}

// covers: B-141
#[test]
fn closed_program_still_reports_its_status() {
    let _limit = limit();
    let (config, notices) = noticed(legacy());
    let client = connect_with(server("while read -r line; do :; done; exit 5"), config).wait().expect("hello");
    assert_eq!(client.close().wait(), Termination::Requested);
    drop(client);
    assert_eq!(all(&notices).pop().map(|(_, notice)| notice), Some(ConnectionNotice::Closed(exited(5))));
}

#[test]
fn close_during_the_restart_delay_is_immediate() {
    let _limit = limit();
    let (config, events) = told(restarting(legacy(), 600_000, None));
    let client = connect_with(again(0), config).wait().expect("hello");
    assert_eq!(answer(&client), Err(CallError::Closed { sent: Sent::Maybe, why: exited(3) }));
    let waiting = client.start(tools::call("add").timeout(None));
    let began = Instant::now();
    assert_eq!(client.close().wait(), Termination::Requested);
    assert!(began.elapsed() < BOUND / 2, "{:?}", began.elapsed());
    assert_eq!(waiting.wait(), Err(CallError::Closed { sent: Sent::No, why: Closed::Aborted }));
    drop(client);
    assert_eq!(all_announced(&events, Termination::Requested).len(), 1);
}

// covers: STDIO-C-019
#[test]
fn unix_socket_is_reconnected_when_its_server_returns() {
    let _limit = limit();
    let path = temp("reconnected");
    let serve_one = || {
        let listener = UnixListener::bind(&path).expect("listens");
        let (told, socket) = mpsc::channel();
        std::thread::spawn(move || {
            let (stream, _) = listener.accept().expect("a client");
            told.send(stream.try_clone().expect("a clone")).expect("it waits");
            let (input, output) = pair(stream);
            serve(router().0, input, output).wait().expect("served");
        });
        socket
    };
    let first = serve_one();
    let (config, events) = told(restarting(ClientOptions::new(), 20, Some(1000)));
    let target = UnixSocket(path.to_str().expect("unicode").into());
    let client = connect_with(target, config).wait().expect("hello");
    assert_eq!(add(&client).as_deref(), Ok("3"));
    // The server ends, and for a while there is none.
    std::fs::remove_file(&path).expect("removed");
    first.recv_timeout(BOUND).expect("a client").shutdown(Both).expect("cut");
    let attempts = std::iter::from_fn(|| Some(events.recv_timeout(BOUND).expect("an event")));
    assert_eq!(attempts.filter(|event| announced(event).is_some()).take(3).count(), 3);
    let second = serve_one();
    assert_eq!(add(&client).as_deref(), Ok("3"));
    assert_eq!(client.close().wait(), Termination::Requested);
    drop(second);
    std::fs::remove_file(&path).expect("removed");
}
