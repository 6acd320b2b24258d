//! A correct driver breaks no rule, and each rule catches its error in the same driver.

use super::rules::{ConnectionRules, Rule};
use super::state::DriverState;
use super::{DriverRules, check};
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use bytes::Bytes;
use core::iter::from_fn;
use core::time::Duration;
use mcp_proto::client::{ClientCommands, ClientConfig, Event};
use mcp_proto::error::CallError;
use mcp_proto::exchange::*;
use mcp_proto::model::lifecycle::Implementation;
use mcp_proto::observer::{Observable, Observer};
use mcp_proto::server::{ServerCommands, ServerConfig};
use mcp_proto::time::Instant;
use mcp_proto::wired::{Connection, ConnectionOutput, Kind, SharedServer, WiredClient};
use std::panic::{AssertUnwindSafe, catch_unwind};
use world::{Loop, Serves, Tasks, World};

mod world;

/// All rules.
const ALL: [Rule; 18] = [
    Rule::TimeBack,
    Rule::Timer,
    Rule::Outputs,
    Rule::Turn,
    Rule::Woken,
    Rule::Unknown,
    Rule::AfterClosed,
    Rule::BeforeOpened,
    Rule::OpenedTwice,
    Rule::BeforeSecured,
    Rule::NotSecuring,
    Rule::AfterReadClosed,
    Rule::EmptyRead,
    Rule::ReadOff,
    Rule::Written,
    Rule::EarlyEof,
    Rule::Aborted,
    Rule::BothEnded,
];

/// Returns the engine with checks.
fn checked<E: Observable>(mut engine: E) -> E
where
    DriverRules: Observer<E>,
{
    check(&mut engine);
    engine
}

/// Returns the text of the panic.
fn panic_of(f: impl FnOnce()) -> String {
    let panic = catch_unwind(AssertUnwindSafe(f)).expect_err("a rule is broken");
    panic
        .downcast_ref::<String>()
        .cloned()
        .or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string))
        .expect("text")
}

/// Plants the error that breaks a rule in a driver, runs it, and returns the text of the panic.
fn broken(rule: Rule) -> String {
    let (client, server) = ([Some(rule), None], [None, Some(rule)]);
    panic_of(|| match rule {
        Rule::TimeBack => later_call(World::new(Kind::Lines, client)),
        Rule::Timer | Rule::Outputs => timed_out_call(World::new(Kind::Lines, client)),
        Rule::Turn => World::<Tasks>::new(Kind::HttpServer, server).run(30_000),
        Rule::Woken => ignored_waker(),
        Rule::Unknown | Rule::OpenedTwice | Rule::Written => World::<Loop>::new(Kind::Lines, client).run(1_000),
        Rule::AfterClosed | Rule::BothEnded => end_of_client(World::new(Kind::Lines, client)),
        Rule::BeforeOpened | Rule::AfterReadClosed | Rule::EmptyRead => {
            end_of_server(World::new(Kind::Lines, client));
        }
        Rule::BeforeSecured => secured_by(&[IoEvent::Opened(Peer::default()), IoEvent::ReadClosed]),
        Rule::NotSecuring => secured_by(&[IoEvent::Opened(Peer::default()), IoEvent::Secured, IoEvent::Secured]),
        Rule::ReadOff => admission(World::<Loop>::with(Kind::Lines, server, |_, config| config.admit = true)),
        Rule::EarlyEof => client_that_only_connects(World::<Loop>::new(Kind::HttpServer, server)),
        Rule::Aborted => cancelled_call(World::<Loop>::new(Kind::HttpServer, client)),
    })
}

fn later_call(mut world: World<Loop>) {
    world.run(5_000);
    world.call(60);
    world.run(6_000);
}

fn timed_out_call(mut world: World<Loop>) {
    world.application().holds = true;
    world.call(1);
    world.run(30_000);
}

/// A client of a server with TLS, whose driver reports these events.
fn secured_by(events: &[IoEvent]) {
    let config = ClientConfig::url("https://localhost/mcp").expect("it is a URL");
    let mut client = checked(WiredClient::new(config.into(), [1; 32], Instant::ZERO));
    client.call(Instant::ZERO, mcp_proto::ping()).expect("it is accepted");
    let Some(Action::Open(id, _)) = client.poll_output() else { panic!("the connection is opened first") };
    for event in events {
        client.handle_io(Instant::ZERO, id, event.clone());
        while client.poll_output().is_some() {}
    }
}

fn end_of_client(mut world: World<Loop>) {
    world.run(1_000);
    world.end();
}

fn end_of_server(mut world: World<Loop>) {
    world.run(1_000);
    world.shutdown();
    world.run(2_000);
}

/// The connection waits for its admission, and its driver does not read.
fn admission<S: Serves>(mut world: World<S>) {
    world.net.piece = 64;
    world.run(1_000);
    world.admit();
    world.call(60);
    world.run(2_000);
    assert!(matches!(*world.client.engine.outcomes, [Ok(_)]));
    world.end();
}

fn client_that_only_connects<S: Serves>(mut world: World<S>) {
    world.net.refuses = true;
    let socket = world.net.connect();
    world.net.sockets[socket][0].is_ended = true;
    world.run(1_000);
}

fn cancelled_call<S: Serves>(mut world: World<S>) {
    world.application().holds = true;
    let call = world.call(60);
    world.run(1_000);
    world.client.engine.client.cancel(world.now, call, None);
    world.run(10_000);
    assert!(matches!(*world.client.engine.outcomes, [Err(CallError::Cancelled { .. })]));
    world.end();
}

/// Returns whether a text is that of a rule, with any values.
fn is_text_of(rule: Rule, text: &str) -> bool {
    let mut parts = rule.template().split("{}");
    let rest = parts.next().and_then(|first| text.split_once(first)).map(|(_, rest)| rest);
    parts.try_fold(rest, |rest, part| Some(Some(rest?.split_once(part)?.1))).is_some_and(|rest| rest.is_some())
}

#[test]
fn time_that_goes_back_is_caught() {
    assert_eq!(broken(Rule::TimeBack), "`now` went back from 5s to 4s");
}

#[test]
fn late_timer_is_caught() {
    assert_eq!(broken(Rule::Timer), "a timer was due 11.0 s ago and no `handle_timeout`");
}

#[test]
fn outputs_that_are_left_are_caught() {
    assert_eq!(broken(Rule::Outputs), "an input 10.0 s ago and no `poll_output`");
}

#[test]
fn missing_turn_is_caught() {
    assert_eq!(broken(Rule::Turn), "connection 1: an event 10.0 s ago and no turn");
}

/// A connection takes no turn although the server has woken its driver.
fn ignored_waker() {
    let config = ServerConfig::new(Implementation::new("s", "1"));
    let mut server = checked(SharedServer::new(Arc::new(config), [1; 32], Instant::ZERO));
    let mut connection = server.accept(Instant::ZERO, Kind::Lines, Peer::default());
    loop {
        let turn = connection.take_turn();
        let is_empty = turn.is_empty();
        let reply = server.exchange(Instant::ZERO, turn);
        if is_empty && reply.is_empty() {
            break;
        }
        connection.apply(Instant::ZERO, reply);
    }
    server.shutdown(Instant::ZERO, Duration::ZERO);
    assert_eq!((server.poll_woken(), server.poll_woken()), (Some(1), None));
    while server.poll_event().is_some() {}
    assert_eq!(server.poll_woken(), None);
    for _ in 0..4 {
        let due = server.poll_timeout().expect("a turn is due");
        server.handle_timeout(due);
    }
}

#[test]
fn ignored_waker_is_caught() {
    assert_eq!(broken(Rule::Woken), "connection 1: woken 10.0 s ago and no turn");
}

#[test]
fn event_of_an_unknown_connection_is_caught() {
    assert_eq!(broken(Rule::Unknown), "connection 77: `Opened`, and no such connection");
}

#[test]
fn event_after_closed_is_caught() {
    assert_eq!(broken(Rule::AfterClosed), "connection 1: `Closed` after `Closed`");
}

#[test]
fn event_before_opened_is_caught() {
    assert_eq!(broken(Rule::BeforeOpened), "connection 1: `ReadClosed` before `Opened`");
}

#[test]
fn second_opened_is_caught() {
    assert_eq!(broken(Rule::OpenedTwice), "connection 1: `Opened`, and it was open");
    assert_eq!(broken(Rule::BeforeSecured), "connection 1: `ReadClosed` before `Secured`");
    assert_eq!(broken(Rule::NotSecuring), "connection 1: `Secured`, and no `Secure`");
}

#[test]
fn event_after_read_closed_is_caught() {
    assert_eq!(broken(Rule::AfterReadClosed), "connection 1: `ReadClosed` after `ReadClosed`");
}

#[test]
fn end_of_input_as_an_empty_read_is_caught() {
    assert_eq!(broken(Rule::EmptyRead), "connection 1: `Read` of no bytes");
}

#[test]
fn second_read_while_reading_was_off_is_caught() {
    assert_eq!(broken(Rule::ReadOff), "connection 1: read while reading was off");
}

#[test]
fn bytes_that_were_not_given_are_caught() {
    let text = broken(Rule::Written);
    let values: Option<(usize, usize)> = text
        .strip_prefix("connection 1: ")
        .and_then(|rest| rest.split_once(" bytes written of "))
        .and_then(|(written, of)| Some((written.parse().ok()?, of.parse().ok()?)));
    assert!(values.is_some_and(|(written, of)| written == 2 * of), "{text}");
}

#[test]
fn early_closed_is_caught() {
    assert_eq!(broken(Rule::EarlyEof), "connection 1: `Closed(Eof)`, and this side has not ended");
}

#[test]
fn abort_without_closed_is_caught() {
    let text = broken(Rule::Aborted);
    assert!(text.ends_with(": closed 10.0 s ago by us and no `Closed`"), "{text}");
}

#[test]
fn end_of_both_directions_without_closed_is_caught() {
    assert_eq!(broken(Rule::BothEnded), "connection 1: both directions ended 10.0 s ago and no `Closed`");
}

#[test]
fn every_rule_has_a_row_and_a_line_in_the_table() {
    assert_eq!(ALL.len(), Rule::BothEnded as usize + 1, "the list is complete");
    let table = include_str!("../check.rs").lines().filter(|line| line.starts_with("/// | "));
    let rows: Vec<&str> = table.skip(1).collect();
    assert_eq!(rows.len(), ALL.len());
    for (rule, row) in ALL.into_iter().zip(rows) {
        assert!(is_text_of(rule, &broken(rule)), "{rule:?}");
        assert!(is_text_of(rule, row), "{rule:?}: {row}");
        let others = ALL.into_iter().filter(|other| *other != rule);
        assert_eq!(others.filter(|other| is_text_of(*other, row)).count(), 0, "{row}");
    }
}

/// Runs two calls and the end on every transport, with both forms of a server.
fn everywhere(size: usize, room: usize, piece: usize, pace: Option<usize>) {
    fn conversation<S: Serves>(kind: Kind, size: usize, room: usize, piece: usize, pace: Option<usize>) {
        let mut world = World::<S>::new(kind, [None, None]);
        (world.net.room, world.net.piece, world.net.pace) = (room, piece, pace);
        world.application().size = size;
        world.call(60);
        world.run(10_000);
        world.call(60);
        world.run(20_000);
        assert!(matches!(*world.client.engine.outcomes, [Ok(_), Ok(_)]), "{:?}", world.client.engine.outcomes);
        world.end();
    }
    for kind in [Kind::Lines, Kind::HttpServer] {
        conversation::<Loop>(kind, size, room, piece, pace);
        conversation::<Tasks>(kind, size, room, piece, pace);
    }
}

#[test]
fn correct_driver_breaks_no_rule() {
    everywhere(100, usize::MAX, usize::MAX, None);
}

#[test]
fn correct_driver_with_a_slow_peer_breaks_no_rule() {
    // Each response takes four seconds.
    everywhere(100_000, 100, 25, Some(1));
}

#[test]
fn correct_driver_that_is_refused_breaks_no_rule() {
    for kind in [Kind::Lines, Kind::HttpServer] {
        let mut world = World::<Loop>::new(kind, [None, None]);
        world.net.refuses = true;
        world.call(60);
        world.run(10_000);
        assert!(matches!(*world.client.engine.outcomes, [Err(_)]), "{:?}", world.client.engine.outcomes);
        world.end();
    }
}

#[test]
fn correct_driver_that_aborts_breaks_no_rule() {
    cancelled_call(World::<Loop>::new(Kind::HttpServer, [None, None]));
    cancelled_call(World::<Tasks>::new(Kind::HttpServer, [None, None]));
}

#[test]
fn correct_driver_that_stops_reading_breaks_no_rule() {
    let admit = |_: &mut ClientConfig, config: &mut ServerConfig| config.admit = true;
    admission(World::<Loop>::with(Kind::Lines, [None, None], admit));
    admission(World::<Tasks>::with(Kind::Lines, [None, None], admit));
}

#[test]
fn correct_driver_that_half_closes_breaks_no_rule() {
    /// The server ends its direction after the first request, since the client has ended its own.
    /// The client reads the response late.
    fn served<S: Serves>() {
        let mut world = World::<S>::new(Kind::HttpServer, [None, None]);
        let socket = world.net.connect();
        let request = "GET /nothing HTTP/1.1\r\nhost: localhost\r\n\r\n";
        world.net.sockets[socket][0].bytes.extend(request.bytes());
        world.net.sockets[socket][0].is_ended = true;
        world.net.room = 50;
        let mut length = 0;
        for turn in 1..10 {
            world.run(3_000 * turn);
            length += world.net.sockets[socket][1].bytes.drain(..).count();
        }
        assert!(world.net.sockets[socket][1].is_ended && length > 100, "{length} bytes, then the end");
        world.end();
    }
    served::<Loop>();
    served::<Tasks>();
    client_that_only_connects(World::<Loop>::new(Kind::HttpServer, [None, None]));
    client_that_only_connects(World::<Tasks>::new(Kind::HttpServer, [None, None]));
}

fn client() -> WiredClient {
    checked(WiredClient::new(Arc::new(ClientConfig::given()), [1; 32], Instant::ZERO))
}

fn outputs(client: &mut WiredClient) -> usize {
    from_fn(|| client.poll_output()).count()
}

#[test]
fn text_has_the_bytes_that_were_not_written_before() {
    let mut rules = ConnectionRules::open(ConnectionId(3), false);
    rules.write(52);
    rules.event(Instant::ZERO, &IoEvent::Written(40)).expect("no rule is broken");
    let text = rules.event(Instant::ZERO, &IoEvent::Written(40)).expect_err("a rule is broken");
    assert_eq!(text, "connection 3: 40 bytes written of 12");
}

#[test]
fn given_connection_is_open_from_the_start() {
    let (client, id) = WiredClient::over(Arc::new(ClientConfig::given()), [1; 32], Instant::ZERO).expect("given");
    let mut client = checked(client);
    assert_ne!(outputs(&mut client), 0);
    client.handle_io(Instant::ZERO, id, IoEvent::ReadClosed);
    let text = panic_of(|| client.handle_io(Instant::ZERO, id, IoEvent::Opened(Peer::default())));
    assert_eq!(text, "connection 1: `Opened`, and it was open");
}

#[test]
fn accepted_connection_is_open_from_the_start() {
    let limits = mcp_proto::Limits::default().frame;
    let connection = Connection::server(5, Kind::Lines, Peer::default(), &limits, Instant::ZERO);
    let mut connection = checked(connection);
    let text = panic_of(|| connection.handle_io(Instant::ZERO, IoEvent::Opened(Peer::default())));
    assert_eq!(text, "connection 5: `Opened`, and it was open");
    let connection = Connection::client(Kind::Lines, false, &limits, Instant::ZERO);
    let mut connection = checked(connection);
    let text = panic_of(|| connection.handle_io(Instant::ZERO, IoEvent::ReadClosed));
    assert_eq!(text, "connection 0: `ReadClosed` before `Opened`");
}

#[test]
fn program_may_outlive_its_directions() {
    let at = Instant::from_millis;
    let config = ClientConfig::program(Program::new("p"));
    let mut client = checked(WiredClient::new(Arc::new(config), [1; 32], at(0)));
    let Some(Action::Open(id, _)) = client.poll_output() else { panic!("the program starts first") };
    client.handle_io(at(0), id, IoEvent::Opened(Peer::default()));
    let mut unwritten = 0;
    let mut carry_out = |client: &mut WiredClient, now| {
        while let Some(action) = client.poll_output() {
            if let Action::Write(id, bytes) = action {
                client.handle_io(now, id, IoEvent::Written(bytes.len()));
                unwritten += bytes.len();
            }
        }
    };
    client.close(at(0));
    carry_out(&mut client, at(0));
    client.handle_io(at(0), id, IoEvent::ReadClosed);
    carry_out(&mut client, at(0));
    let mut now = at(0);
    // Its input and its output have ended. It has two seconds to exit, then as many after SIGTERM.
    while client.poll_timeout().is_some_and(|due| due < at(4_000)) {
        now = client.poll_timeout().expect("a timer");
        client.handle_timeout(now);
        carry_out(&mut client, now);
    }
    assert!(now >= at(2_000));
    client.handle_io(now, id, IoEvent::Closed(Closed::Exited(ExitStatus::exited(0))));
    assert_ne!(outputs(&mut client), 0);
}

#[test]
fn rules_with_a_time_have_a_timer() {
    let at = Instant::from_millis;
    for is_late in [false, true] {
        let mut client = client();
        let Some(Action::Open(id, _)) = client.poll_output() else { panic!("the connection is opened first") };
        outputs(&mut client);
        client.close(at(100));
        assert_eq!(client.poll_timeout(), Some(at(10_100)), "for the outputs");
        let aborts = from_fn(|| client.poll_output()).any(|action| action == Action::Close(id, Shutdown::Abort));
        assert!(aborts);
        assert_eq!(client.poll_timeout(), Some(at(10_100)), "for `Closed`");
        client.handle_timeout(at(10_099));
        outputs(&mut client);
        let closed = || IoEvent::Closed(Closed::Aborted);
        if is_late {
            let text = panic_of(|| client.handle_io(at(10_200), id, closed()));
            assert_eq!(text, "connection 1: closed 10.1 s ago by us and no `Closed`", "too late");
            continue;
        }
        let text = panic_of(|| client.handle_timeout(at(10_100)));
        assert_eq!(text, "connection 1: closed 10.0 s ago by us and no `Closed`");
        // In a drop, a second panic would abort the process.
        client.handle_io(at(10_200), id, closed());
    }
}

#[test]
fn one_read_may_be_under_way() {
    let mut rules = ConnectionRules::open(ConnectionId(1), false);
    let read = || IoEvent::Read(Bytes::from_static(b"{}"));
    for _ in 0..2 {
        rules.read(false);
        rules.event(Instant::ZERO, &read()).expect("no rule is broken");
        rules.read(true);
        rules.event(Instant::ZERO, &read()).expect("no rule is broken");
    }
    rules.close(Instant::ZERO, Shutdown::Abort);
    rules.event(Instant::ZERO, &read()).expect("no rule is broken");
    let text = rules.event(Instant::ZERO, &read()).expect_err("a rule is broken");
    assert_eq!(text, "connection 1: read while reading was off");
}

#[test]
fn outputs_of_a_closed_connection_are_void() {
    let mut client = client();
    let Some(Action::Open(id, _)) = client.poll_output() else { panic!("the connection is opened first") };
    client.handle_io(Instant::ZERO, id, IoEvent::Opened(Peer::default()));
    client.handle_io(Instant::ZERO, id, IoEvent::Closed(Closed::Reset));
    let writes = from_fn(|| client.poll_output()).any(|action| matches!(action, Action::Write(of, _) if of == id));
    assert!(writes, "the write is still in the queue");
    client.close(Instant::ZERO);
    outputs(&mut client);
    assert_eq!(client.poll_timeout(), None);
}

#[test]
fn nothing_is_due_after_the_last_output() {
    let mut client = client();
    let Some(Action::Open(id, _)) = client.poll_output() else { panic!("the connection is opened first") };
    client.close(Instant::ZERO);
    client.handle_io(Instant::ZERO, id, IoEvent::Closed(Closed::Aborted));
    let is_last = |action: &Action<Event>| matches!(action, Action::Event(Event::Terminated(_)));
    assert!(from_fn(|| client.poll_output()).any(|action| is_last(&action)));
    assert_eq!(client.poll_timeout(), None);
    client.handle_timeout(Instant::from_millis(20_000));
    client.handle_timeout(Instant::from_millis(40_000));
}

#[test]
fn timer_that_is_armed_late_is_late_only_after_its_arming() {
    let at = Instant::from_millis;
    let mut state = DriverState::new();
    state.input(at(5_000)).expect("no rule is broken");
    state.armed(Some(at(1_000)));
    state.took_action::<()>(None);
    state.input(at(14_999)).expect("no rule is broken");
    state.took_action::<()>(None);
    assert_eq!(
        state.input(at(15_000)).expect_err("a rule is broken"),
        "a timer was due 10.0 s ago and no `handle_timeout`"
    );
}

#[test]
fn timer_that_the_engine_arms_again_is_not_late() {
    let mut state = DriverState::new();
    for second in 1..15 {
        state.timeout(Instant::from_millis(second * 1_000)).expect("no rule is broken");
        state.armed(Some(Instant::from_millis(1_000)));
        state.took_action::<()>(None);
    }
}

#[test]
fn failed_write_may_end_without_a_half_close() {
    let mut rules = ConnectionRules::open(ConnectionId(1), false);
    rules.write(12);
    rules.event(Instant::ZERO, &IoEvent::Written(12)).expect("no rule is broken");
    rules.event(Instant::ZERO, &IoEvent::ReadClosed).expect("no rule is broken");
    rules.event(Instant::ZERO, &IoEvent::Closed(Closed::Eof)).expect("no rule is broken");
}

#[test]
fn engine_without_checks_ignores_errors() {
    let mut client = WiredClient::new(Arc::new(ClientConfig::given()), [1; 32], Instant::ZERO);
    let engine = client.timeout_reason();
    client.handle_io(Instant::from_millis(5), ConnectionId(1), IoEvent::Written(40));
    client.handle_io(Instant::from_millis(4), ConnectionId(9), IoEvent::ReadClosed);
    assert_eq!(client.timeout_reason(), engine);
    assert_ne!(outputs(&mut client), 0);
    let mut connection = Connection::server(1, Kind::Lines, Peer::default(), &Default::default(), Instant::ZERO);
    connection.handle_io(Instant::ZERO, IoEvent::Opened(Peer::default()));
    assert_eq!(connection.poll_output(), None::<ConnectionOutput>);
    assert_eq!(connection.poll_timeout().map(|at| at - Instant::ZERO), None::<Duration>);
}
