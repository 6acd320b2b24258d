//! How channels end, as the application is told it.

use crate::client::{ClientConfig, Event, Restart, Termination, Timer};
use crate::exchange::*;
use crate::input::*;
use crate::limits::Limits;
use crate::model::tools;
use crate::time::Instant;
use crate::wired::WiredClient;
use alloc::sync::Arc;
use alloc::vec::Vec;
use bytes::Bytes;
use core::time::Duration;

const CHANNEL: ConnectionId = ConnectionId(1);

/// A client of a program that has opened and been told hello.
fn ready(config: ClientConfig) -> (WiredClient, Vec<Action<Event>>) {
    let config = ClientConfig { policy: crate::client::Policy::Legacy, ..config };
    let mut client = WiredClient::new(Arc::new(config), [1; 32], Instant::ZERO);
    client.opened(Instant::ZERO, CHANNEL, Peer::default());
    client.bytes(Instant::ZERO, CHANNEL, hello(1));
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
    [Action::Close(CHANNEL, step), Action::Event(Event::ChannelClosing { channel: CHANNEL, step })]
}

// covers: STDIO-C-015, STDIO-C-016, S0-26
#[test]
fn each_step_of_the_ladder_is_told_when_it_is_taken_and_the_end_with_its_status() {
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
    client.closed(now, CHANNEL, why.clone());
    let closed = Event::ChannelClosed { channel: CHANNEL, why };
    assert_eq!(
        drain(&mut client),
        [closed, Event::Terminated(Termination::Requested)].map(Action::Event),
        "the last is still the last"
    );
}

#[test]
fn a_program_that_exits_in_order_is_told_with_its_status_and_without_further_steps() {
    let (mut client, _) = ready(program());
    client.close(Instant::ZERO);
    assert_eq!(drain(&mut client), step(Shutdown::WriteHalf));
    let why = Closed::Exited(ExitStatus::exited(7));
    client.closed(Instant::ZERO, CHANNEL, why.clone());
    let closed = Event::ChannelClosed { channel: CHANNEL, why };
    assert_eq!(drain(&mut client), [closed, Event::Terminated(Termination::Requested)].map(Action::Event));
}

#[test]
fn a_channel_that_never_opens_is_aborted_and_closed() {
    let mut client = WiredClient::new(Arc::new(program()), [1; 32], Instant::ZERO);
    drain(&mut client);
    let now = Instant::ZERO + Limits::default().frame.open_timeout;
    client.handle_timeout(now);
    assert_eq!(drain(&mut client), step(Shutdown::Abort));
    client.closed(now, CHANNEL, Closed::Aborted);
    let told = drain(&mut client);
    assert_eq!(told[0], Action::Event(Event::ChannelClosed { channel: CHANNEL, why: Closed::Aborted }));
    assert!(matches!(told[1..], [Action::Event(Event::Terminated(Termination::Negotiation(_)))]));
}

// covers: STDIO-C-019
#[test]
fn a_program_is_opened_anew_and_what_is_told_of_the_dead_one_changes_nothing() {
    let (mut client, _) = ready(ClientConfig { restart: Some(Restart::default()), ..program() });
    let call = client.call(Instant::ZERO, tools::call("x")).expect("accepted").id();
    drain(&mut client);
    let why = Closed::Exited(ExitStatus::exited(3));
    client.closed(Instant::ZERO, CHANNEL, why.clone());
    let said = drain(&mut client);
    assert!(matches!(&said[0], Action::Event(Event::Ended { call: ended, outcome: Err(_) }) if *ended == call));
    let wait = Duration::from_millis(500);
    let restarting = Event::Restarting { attempt: 1, wait, why: why.clone() };
    assert_eq!(said[1..], [restarting, Event::ChannelClosed { channel: CHANNEL, why }].map(Action::Event));

    let late =
        [IoEvent::Opened(Peer::default()), IoEvent::Bytes(hello(1)), IoEvent::Eof, IoEvent::Closed(Closed::Reset)];
    for wire in late.clone() {
        client.apply(Instant::ZERO, Input::Event(CHANNEL, wire)).expect("a fact cannot fail");
    }
    assert_eq!(drain(&mut client), []);
    let now = Instant::ZERO + wait;
    client.handle_timeout(now);
    let next = ConnectionId(2);
    let said = drain(&mut client);
    assert!(matches!(&said[..], [Action::Open(channel, Endpoint::Program(_))] if *channel == next), "{said:?}");
    client.opened(now, next, Peer::default());
    for wire in late {
        client.apply(now, Input::Event(CHANNEL, wire)).expect("a fact cannot fail");
    }
    let said = drain(&mut client);
    assert!(matches!(&said[..], [Action::Write(channel, _)] if *channel == next), "{said:?}");
    client.bytes(now, next, hello(3));
    assert!(drain(&mut client).iter().any(|action| matches!(action, Action::Event(Event::Ready(_)))));
}

// covers: B-094, STDIO-C-016
#[test]
fn silent_program_fails_with_the_time_that_passed_until_its_end() {
    let mut client = WiredClient::new(Arc::new(program()), [1; 32], Instant::ZERO);
    client.opened(Instant::ZERO, CHANNEL, Peer::default());
    // With the defaults: the probe 10 s, `initialize` 30 s, then 2 s until SIGTERM.
    for (at, reason) in [(10, Timer::Handshake), (40, Timer::Handshake), (42, Timer::Connection)] {
        let now = Instant::from_millis(at * 1000);
        assert_eq!((client.poll_timeout(), client.timeout_reason()), (Some(now), Some(reason)));
        client.handle_timeout(now);
    }
    assert!(drain(&mut client).ends_with(&step(Shutdown::Terminate)));
    client.closed(Instant::from_millis(42_000), CHANNEL, Closed::Exited(ExitStatus::killed(15)));
    let Some(Action::Event(Event::Terminated(Termination::Negotiation(why)))) = drain(&mut client).pop() else {
        panic!("it has not ended")
    };
    assert_eq!(why.to_string(), "initialize failed after 42000 ms: no answer within 30000 ms");
}

// covers: B-094
#[test]
fn channel_that_is_still_being_opened_is_aborted_at_connect_timeout() {
    let mut targets = vec![ClientConfig::unix("/socket")];
    #[cfg(feature = "http")]
    targets.push(ClientConfig::url("http://localhost/mcp").expect("it is a url"));
    for target in targets {
        let config = ClientConfig { connect_timeout: Duration::from_secs(3), ..target };
        let mut client = WiredClient::new(Arc::new(config), [1; 32], Instant::ZERO);
        drain(&mut client);
        let now = Instant::from_millis(3_000);
        assert_eq!((client.poll_timeout(), client.timeout_reason()), (Some(now), Some(Timer::Start)));
        client.handle_timeout(now);
        let mut said = drain(&mut client);
        assert!(said.contains(&step(Shutdown::Abort)[0]), "{said:?}");
        client.closed(now, CHANNEL, Closed::Aborted);
        said.extend(drain(&mut client));
        let Some(Action::Event(Event::Terminated(Termination::Negotiation(why)))) = said.pop() else {
            panic!("it has not ended")
        };
        assert_eq!(why.to_string(), "connecting failed after 3000 ms: the start took longer than 3000 ms");
    }
}
