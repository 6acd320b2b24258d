//! The end of connections, as reported to the application.

use crate::client::{ClientCommands, ClientConfig, Event, Policy, Termination, Timer};
use crate::exchange::*;
use crate::input::*;
use crate::limits::Limits;
use crate::model::tools;
use crate::time::Instant;
use crate::wired::{WiredClient, WiredTimer};
use alloc::sync::Arc;
use alloc::vec::Vec;
use bytes::Bytes;
use core::time::Duration;

const CHANNEL: ConnectionId = ConnectionId(1);
const HANDSHAKE: WiredTimer = WiredTimer::Engine(Timer::Handshake);

/// A client of a program that is open and has answered `initialize`.
fn ready(config: ClientConfig) -> (WiredClient, Vec<Action<Event>>) {
    let config = ClientConfig { policy: Policy::Legacy, ..config };
    let mut client = WiredClient::new(Arc::new(config), [1; 32], Instant::ZERO);
    client.handle_io(Instant::ZERO, CHANNEL, IoEvent::Opened(Peer::default()));
    client.handle_io(Instant::ZERO, CHANNEL, IoEvent::Read(hello(1)));
    let said = drain(&mut client);
    assert!(said.iter().any(|action| matches!(action, Action::Event(Event::Ready(_)))));
    (client, said)
}

fn hello(id: u64) -> Bytes {
    let result = r#"{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}"#;
    Bytes::from(alloc::format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}\n"))
}

fn program() -> ClientConfig {
    ClientConfig::program(Program::new("server"))
}

fn drain(client: &mut WiredClient) -> Vec<Action<Event>> {
    core::iter::from_fn(|| client.poll_output()).collect()
}

fn step(step: Shutdown) -> [Action<Event>; 2] {
    [Action::Close(CHANNEL, step), Action::Notice(CHANNEL, ConnectionNotice::Closing(step))]
}

// covers: STDIO-C-015, STDIO-C-016, S0-26, R-31
#[test]
fn each_shutdown_step_and_the_exit_status_are_reported() {
    let (mut client, _) = ready(program());
    let limits = Limits::default().frame;
    let mut now = Instant::from_millis(10);
    client.close(now);
    assert_eq!(drain(&mut client), step(Shutdown::WriteHalf));
    now = now + limits.exit_timeout;
    assert_eq!(client.poll_timeout(), Some(now));
    client.handle_timeout(now);
    assert_eq!(drain(&mut client), step(Shutdown::Terminate));
    now = now + limits.terminate_timeout;
    client.handle_timeout(now);
    assert_eq!(drain(&mut client), step(Shutdown::Abort));
    let why = Closed::Exited(ExitStatus::killed(9));
    client.handle_io(now, CHANNEL, IoEvent::Closed(why.clone()));
    let closed = Action::Notice(CHANNEL, ConnectionNotice::Closed(why));
    let terminated = Action::Event(Event::Terminated(Termination::Requested));
    assert_eq!(drain(&mut client), [closed, terminated], "the last is still the last");
}

// covers: R-31
#[test]
fn shutdown_without_waits_ends_a_program_at_once() {
    let mut config = program();
    (config.limits.frame.exit_timeout, config.limits.frame.terminate_timeout) = (Duration::ZERO, Duration::ZERO);
    let (mut client, _) = ready(config);
    let now = Instant::from_millis(10);
    client.close(now);
    let mut steps = drain(&mut client);
    while client.poll_timeout() == Some(now) && !steps.ends_with(&step(Shutdown::Abort)) {
        client.handle_timeout(now);
        steps.append(&mut drain(&mut client));
    }
    let all: Vec<_> = [Shutdown::WriteHalf, Shutdown::Terminate, Shutdown::Abort].into_iter().flat_map(step).collect();
    assert_eq!(steps, all);
}

#[test]
fn orderly_exit_reports_its_status_without_further_steps() {
    let (mut client, _) = ready(program());
    client.close(Instant::ZERO);
    assert_eq!(drain(&mut client), step(Shutdown::WriteHalf));
    let why = Closed::Exited(ExitStatus::exited(7));
    client.handle_io(Instant::ZERO, CHANNEL, IoEvent::Closed(why.clone()));
    let closed = Action::Notice(CHANNEL, ConnectionNotice::Closed(why));
    assert_eq!(drain(&mut client), [closed, Action::Event(Event::Terminated(Termination::Requested))]);
}

#[test]
fn connection_that_never_opens_is_aborted_and_closed() {
    let mut client = WiredClient::new(Arc::new(program()), [1; 32], Instant::ZERO);
    drain(&mut client);
    let now = Instant::ZERO + Limits::default().frame.open_timeout;
    client.handle_timeout(now);
    assert_eq!(drain(&mut client), step(Shutdown::Abort));
    client.handle_io(now, CHANNEL, IoEvent::Closed(Closed::Aborted));
    let told = drain(&mut client);
    assert_eq!(told[0], Action::Notice(CHANNEL, ConnectionNotice::Closed(Closed::Aborted)));
    assert!(matches!(told[1..], [Action::Event(Event::Terminated(Termination::Negotiation(_)))]));
}

#[test]
fn late_reports_about_a_dead_program_change_nothing() {
    let (mut client, _) = ready(program());
    let call = client.call(Instant::ZERO, tools::call("x")).expect("accepted").id();
    drain(&mut client);
    let why = Closed::Exited(ExitStatus::exited(3));
    client.handle_io(Instant::ZERO, CHANNEL, IoEvent::Closed(why.clone()));
    let said = drain(&mut client);
    assert!(matches!(&said[0], Action::Event(Event::Ended { call: ended, outcome: Err(_) }) if *ended == call));
    let closed = Action::Notice(CHANNEL, ConnectionNotice::Closed(why.clone()));
    assert_eq!(said[1..], [closed, Action::Event(Event::Terminated(Termination::Closed(why)))]);

    let late = [
        IoEvent::Opened(Peer::default()),
        IoEvent::Read(hello(1)),
        IoEvent::ReadClosed,
        IoEvent::Closed(Closed::Reset),
    ];
    for wire in late {
        client.apply(Instant::ZERO, Input::Event(CHANNEL, wire)).expect("an event cannot fail");
    }
    assert_eq!((drain(&mut client), client.poll_timeout()), (Vec::new(), None));
}

// covers: B-094, STDIO-C-016
#[test]
fn silent_program_fails_with_the_time_that_passed_until_its_end() {
    let mut client = WiredClient::new(Arc::new(program()), [1; 32], Instant::ZERO);
    client.handle_io(Instant::ZERO, CHANNEL, IoEvent::Opened(Peer::default()));
    // With the defaults: the probe 10 s, `initialize` 30 s, then 2 s until SIGTERM.
    for (at, reason) in [(10, HANDSHAKE), (40, HANDSHAKE), (42, WiredTimer::Connection(CHANNEL))] {
        let now = Instant::from_millis(at * 1000);
        assert_eq!((client.poll_timeout(), client.timeout_reason()), (Some(now), Some(reason)));
        client.handle_timeout(now);
    }
    assert!(drain(&mut client).ends_with(&step(Shutdown::Terminate)));
    client.handle_io(Instant::from_millis(42_000), CHANNEL, IoEvent::Closed(Closed::Exited(ExitStatus::killed(15))));
    let Some(Action::Event(Event::Terminated(Termination::Negotiation(why)))) = drain(&mut client).pop() else {
        panic!("it has not ended")
    };
    assert_eq!(why.to_string(), "initialize failed after 40000 ms: no response within 30000 ms");
}

// covers: B-094
#[test]
fn connection_not_yet_open_is_aborted_at_connect_timeout() {
    let mut targets = vec![ClientConfig::unix("/socket")];
    targets.push(ClientConfig::url("http://localhost/mcp").expect("it is a url"));
    for target in targets {
        let (connect_timeout, policy) = (Duration::from_secs(3), Policy::Legacy);
        let config = ClientConfig { connect_timeout, policy, ..target };
        let mut client = WiredClient::new(Arc::new(config), [1; 32], Instant::ZERO);
        drain(&mut client);
        let now = Instant::from_millis(3_000);
        assert_eq!(
            (client.poll_timeout(), client.timeout_reason()),
            (Some(now), Some(WiredTimer::Engine(Timer::Start)))
        );
        client.handle_timeout(now);
        let mut said = drain(&mut client);
        assert!(said.contains(&step(Shutdown::Abort)[0]), "{said:?}");
        client.handle_io(now, CHANNEL, IoEvent::Closed(Closed::Aborted));
        said.extend(drain(&mut client));
        let Some(Action::Event(Event::Terminated(Termination::Negotiation(why)))) = said.pop() else {
            panic!("it has not ended")
        };
        assert_eq!(why.to_string(), "connecting failed after 3000 ms: the start took longer than 3000 ms");
    }
}
