//! Whole conversations, independent of the pieces of the bytes and of the time of taking the
//! outputs.

use super::net::Net;
use crate::Limits;
use crate::client::{self, ClientCommands, ClientConfig, Policy};
use crate::error::{CallError, Refusal, RefusedCommand};
use crate::exchange::*;
use crate::frame::Kind;
use crate::input::*;
use crate::model::Progress;
use crate::model::lifecycle::Implementation;
use crate::model::tools;
use crate::rpc::Object;
use crate::server::{Event, ServerCommands, ServerConfig};
use crate::time::Instant;
use crate::wired::{Connection, ConnectionOutput, SharedServer, WiredClient, WiredServer};
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use bytes::Bytes;
use core::time::Duration;

const CHUNKS: [usize; 3] = [usize::MAX, 7, 1];

/// Calls with and without progress, a cancelled one, and the end.
fn conversation(net: &mut Net) {
    net.rest();
    net.call(tools::call("add"));
    net.call(tools::call("steps").progress());
    let slow = net.call(tools::call("slow"));
    net.rest();
    net.tell(Input::Command(ClientCommand::Cancel(slow.id(), None)));
    net.rest();
    let late = net.held.pop().expect("the slow call was handed out");
    net.answer(late, "too late");
    net.call(tools::call("after"));
    net.rest();
    net.tell(Input::Command(ClientCommand::Close));
    net.rest();
}

fn told(version: &str) -> Vec<String> {
    let ready = format!("ready {version}");
    let told = [
        ready.as_str(),
        "server: tools/call add",
        "server: tools/call steps",
        "server: tools/call slow",
        "call 1 succeeded",
        "call 2 is at 1",
        "call 2 is at 2",
        "call 2 succeeded",
        "call 3: cancelled",
        "server: cancelled",
        "server: tools/call after",
        "call 4 succeeded",
        "terminated Requested",
    ];
    told.map(ToString::to_string).to_vec()
}

/// Splits the log by side, since the order between the two sides may differ.
fn by_side(log: &[String]) -> (Vec<&String>, Vec<&String>) {
    log.iter().partition(|line| line.starts_with("server: "))
}

// covers: B-054, B-117, B-283, S2-10
#[test]
fn conversation_of_lines_is_independent_of_pieces() {
    for (policy, version) in [(Policy::Modern, "2026-07-28"), (Policy::Legacy, "2025-11-25")] {
        let mut wires = Vec::new();
        for chunk in CHUNKS {
            let mut config = ClientConfig::given();
            config.policy = policy;
            let mut net = Net::new(config, Limits::default(), chunk);
            conversation(&mut net);
            assert_eq!(by_side(&net.log), by_side(&told(version)), "pieces of {chunk}");
            assert_eq!(net.channels(), 1);
            net.check_replay();
            wires.push(net.wire);
        }
        assert!(wires.windows(2).all(|pair| pair[0] == pair[1]));
    }
}

// covers: B-054, B-117, B-283
#[test]
fn conversation_over_http_is_independent_of_pieces() {
    let mut wires = Vec::new();
    for chunk in CHUNKS {
        let config = ClientConfig::url("http://localhost/mcp").expect("it is a url");
        let mut net = Net::new(config, Limits::default(), chunk);
        conversation(&mut net);
        assert_eq!(by_side(&net.log), by_side(&told("2026-07-28")), "pieces of {chunk}");
        assert_eq!(net.channels(), 3, "three calls at once; every other request found an idle connection");
        net.check_replay();
        wires.push(net.wire);
    }
    assert!(wires.windows(2).all(|pair| pair[0] == pair[1]));
    let text: Vec<u8> = wires[0].iter().filter(|((_, out), _)| !out).flat_map(|(_, bytes)| bytes.clone()).collect();
    let text = String::from_utf8_lossy(&text);
    assert!(text.contains("text/event-stream") && text.contains("application/json"), "{text}");
}

// covers: TIME-B-001
#[test]
fn input_before_the_tick_wins_over_the_timers() {
    let mut limits = Limits::default();
    limits.server.handler_deadline = Some(Duration::from_secs(20));
    let mut net = Net::new(ClientConfig::given(), limits, usize::MAX);
    net.rest();
    net.call(tools::call("slow"));
    net.rest();
    net.log();
    net.now = net.now + Duration::from_secs(60);
    net.call(tools::call("quick"));
    net.rest();
    let slow = net.held.pop().expect("the slow call was handed out");
    net.answer(slow, "just in time");
    net.rest();
    assert_eq!(net.log(), ["server: tools/call quick", "call 2 succeeded", "call 1 succeeded"]);
}

// covers: S0-33, S2-13
#[test]
fn calls_end_with_their_connection() {
    let mut net = Net::new(ClientConfig::given(), Limits::default(), usize::MAX);
    net.rest();
    net.call(tools::call("slow"));
    net.rest();
    net.log();
    net.tell(Input::Event(ConnectionId(1), IoEvent::Closed(Closed::Reset)));
    net.tell(Input::Event(ConnectionId(1), IoEvent::Read(Bytes::from_static(b"{}\n"))));
    net.tell(Input::Event(ConnectionId(9), IoEvent::ReadClosed));
    net.rest();
    assert_eq!(net.log(), ["call 1: Transport closed: the connection was reset", "terminated Closed(Reset)"]);
    assert_eq!(net.client.poll_timeout(), None);
    assert_eq!(net.client.timeout_reason(), None);
    assert!(net.client.call(net.now, tools::call("more")).is_err());
    assert_eq!(net.client.poll_output(), None);
}

// covers: S0-09, S0-21, S2-06
#[test]
fn notification_is_one_object_and_a_newline() {
    let mut net = Net::new(ClientConfig::given(), Limits::default(), usize::MAX);
    net.rest();
    for (params, text) in [
        (Object::new(), "{\"jsonrpc\":\"2.0\",\"method\":\"acme/note\"}\n"),
        (Object::new().with("a", 1i64), "{\"jsonrpc\":\"2.0\",\"method\":\"acme/note\",\"params\":{\"a\":1}}\n"),
    ] {
        net.client.notify(net.now, "acme/note", params).expect("it is ready");
        let written = core::iter::from_fn(|| net.client.poll_output()).flat_map(|action| match action {
            Action::Write(_, bytes) => bytes.to_vec(),
            other => panic!("{other:?}"),
        });
        assert_eq!(String::from_utf8(written.collect()).as_deref(), Ok(text));
    }
}

// covers: S0-34, S2-10, R-08
#[test]
fn unsent_bytes_refuse_further_calls() {
    let mut config = ClientConfig::given();
    config.limits.client.max_unsent = 100;
    let mut net = Net::new(config, Limits::default(), usize::MAX);
    net.rest();
    net.client.call(net.now, tools::call("one")).expect("the limit is not reached");
    assert!(net.client.call(net.now, tools::call("two")).is_err_and(|refused| refused.why == Refusal::Full));
    net.client.handle_io(net.now, ConnectionId(1), IoEvent::Written(10_000));
    net.client.call(net.now, tools::call("three")).expect("all is written");
    let writes = core::iter::from_fn(|| net.client.poll_output()).filter(|action| matches!(action, Action::Write(..)));
    assert_eq!(writes.count(), 2);
}

#[test]
fn only_programs_are_opened_again() {
    let exit = Closed::Exited(ExitStatus::exited(2));
    let mut given = WiredClient::new(Arc::new(ClientConfig::given()), [1; 32], Instant::ZERO);
    let program = ClientConfig::program(Program::new("server"));
    let mut started = WiredClient::new(Arc::new(program), [1; 32], Instant::ZERO);
    let mut told = [&mut given, &mut started].map(|client| {
        assert!(matches!(client.poll_output(), Some(Action::Open(ConnectionId(1), _))));
        client.handle_io(Instant::ZERO, ConnectionId(1), IoEvent::Opened(Peer::default()));
        // A server of an older revision may exit on a request that it does not know.
        client.handle_io(Instant::ZERO, ConnectionId(1), IoEvent::Closed(exit.clone()));
        core::iter::from_fn(|| client.poll_output()).filter(|action| !matches!(action, Action::Write(..)))
    });
    let [given, started] = told.each_mut().map(|told| told.map(|action| format!("{action:?}")).collect::<Vec<_>>());
    assert!(given.last().is_some_and(|last| last.contains("Terminated(Negotiation")), "{given:?}");
    assert!(!given.iter().any(|action| action.starts_with("Open(")), "{given:?}");
    assert!(started.iter().any(|action| action.starts_with("Open(ConnectionId(2)")), "{started:?}");
}

// covers: B-141
#[test]
fn program_exit_within_a_response_ends_the_call() {
    let (mut config, now) = (ClientConfig::program(Program::new("server")), Instant::ZERO);
    config.policy = Policy::Legacy;
    let mut client = WiredClient::new(Arc::new(config), [1; 32], now);
    let channel = ConnectionId(1);
    client.handle_io(now, channel, IoEvent::Opened(Peer::default()));
    client.handle_io(now, channel, IoEvent::Read(INITIALIZED.into()));
    let call = client.call(now, tools::call("add")).expect("it is ready").id();
    client.handle_io(now, channel, IoEvent::Read(br#"{"jsonrpc":"2.0","id":2,"result":{"content":["#[..].into()));
    client.handle_io(now, channel, IoEvent::ReadClosed);
    let why = Closed::Exited(ExitStatus::exited(3).with_stderr("no space left"));
    client.handle_io(now, channel, IoEvent::Closed(why.clone()));
    let ended = core::iter::from_fn(|| client.poll_output()).find_map(|action| match action {
        Action::Event(client::Event::Ended { call: of, outcome }) if of == call => Some(outcome),
        _ => None,
    });
    assert_eq!(ended, Some(Err(CallError::Closed { sent: Sent::Maybe, why })));
}

const INITIALIZED: &[u8] = concat!(
    r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{},"#,
    r#""serverInfo":{"name":"s","version":"1"}}}"#,
    "\n"
)
.as_bytes();

#[test]
fn closed_client_terminates_after_its_connection() {
    let mut net = Net::new(ClientConfig::given(), Limits::default(), usize::MAX);
    net.rest();
    net.log();
    net.client.close(net.now);
    net.client.close(net.now);
    let closes = |net: &mut Net, how| {
        assert_eq!(net.client.poll_output(), Some(Action::Close(ConnectionId(1), how)));
        assert!(matches!(net.client.poll_output(), Some(Action::Notice(_, ConnectionNotice::Closing(_)))));
        assert_eq!(net.client.poll_output(), None, "the end waits for the channel");
    };
    closes(&mut net, Shutdown::WriteHalf);
    net.client.handle_timeout(net.now + Duration::from_secs(2));
    closes(&mut net, Shutdown::Abort);
    net.client.handle_io(net.now, ConnectionId(1), IoEvent::Closed(Closed::Aborted));
    assert!(matches!(net.client.poll_output(), Some(Action::Notice(_, ConnectionNotice::Closed(_)))));
    assert!(matches!(net.client.poll_output(), Some(Action::Event(client::Event::Terminated(_)))));
    assert_eq!(net.client.poll_output(), None);
}

#[test]
fn server_terminates_after_its_connections() {
    let mut net = Net::new(ClientConfig::given(), Limits::default(), usize::MAX);
    net.rest();
    net.call(tools::call("slow"));
    net.rest();
    net.log();
    net.tell_server(Input::Command(ServerCommand::Shutdown(Duration::from_secs(1))));
    let late = net.server.accept(net.now, Kind::Lines, Peer::default());
    assert_eq!(net.server.poll_output(), Some(Action::Close(late, Shutdown::Abort)));
    net.tell_server(Input::Event(late, IoEvent::Closed(Closed::Aborted)));
    net.rest();
    assert_eq!(net.server.running(), 1);
    net.tick();
    while net.server.poll_timeout().is_some() {
        net.tick();
    }
    let log = net.log();
    assert!(log.contains(&"server: terminated".to_string()), "{log:?}");
    assert!(net.actions.1.last().is_some_and(|action| action.contains("Terminated")), "{:?}", net.actions.1);
}

fn server_config() -> Arc<ServerConfig> {
    let mut config = ServerConfig::new(Implementation::new("server", "1"));
    config.capabilities.tools = Some(Default::default());
    Arc::new(config)
}

const INITIALIZE: &str = concat!(
    r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","#,
    r#""capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#,
    "\n",
    r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
    "\n"
);

fn line_call(tool: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{{"name":"{tool}"}}}}"#) + "\n"
}

// covers: B-048, B-049, B-072, B-110
#[test]
fn equal_ids_on_two_connections_are_independent() {
    let now = Instant::ZERO;
    let mut server = WiredServer::new(server_config(), [3; 32], now);
    let ends = [0; 2].map(|_| server.accept(now, Kind::Lines, Peer::default()));
    for (end, tool) in ends.into_iter().zip(["one", "two"]) {
        server.handle_io(now, end, IoEvent::Read(Bytes::from(format!("{INITIALIZE}{}", line_call(tool)))));
    }
    // A duplicate id on a connection does not affect the first request with it.
    server.handle_io(now, ends[0], IoEvent::Read(Bytes::from(line_call("again"))));
    // An error on one connection does not affect the other.
    let bad = server.accept(now, Kind::Lines, Peer::default());
    server.handle_io(now, bad, IoEvent::Read(Bytes::from_static(b"\xff{]\n")));
    server.handle_io(now, bad, IoEvent::Closed(Closed::Reset));
    let (mut requests, mut written) = (Vec::new(), BTreeMap::<ConnectionId, Vec<u8>>::new());
    let mut take = |server: &mut WiredServer, requests: &mut Vec<_>| {
        while let Some(action) = server.poll_output() {
            match action {
                Action::Event(Event::Request(responder, incoming)) => requests.push((responder, incoming)),
                Action::Write(end, bytes) => written.entry(end).or_default().extend_from_slice(&bytes),
                Action::Event(_) => {}
                other => panic!("{other:?}"),
            }
        }
        written.clone()
    };
    take(&mut server, &mut requests);
    assert_eq!(server.running(), 2);
    while let Some((responder, incoming)) = requests.pop() {
        let name: String = incoming.params.required("name").expect("it has a name");
        server.respond(now, responder.write(Outcome::Complete(Object::new().with("said", name.as_str()))));
    }
    let written = take(&mut server, &mut requests);
    for (end, tool) in ends.into_iter().zip(["one", "two"]) {
        let text = String::from_utf8_lossy(&written[&end]);
        let refused = usize::from(tool == "one");
        assert_eq!((text.lines().count(), text.matches("-32600").count()), (2 + refused, refused), "{text}");
        assert!(text.contains(&format!(r#""said":"{tool}""#)), "{text}");
    }
}

/// Takes one turn of a connection's task. Returns the outputs as text.
fn turn(engine: &mut SharedServer, connection: &mut Connection) -> String {
    let now = Instant::ZERO;
    loop {
        let turn = connection.take_turn();
        let is_empty = turn.is_empty();
        let reply = engine.exchange(now, turn);
        if is_empty && reply.is_empty() {
            break;
        }
        connection.apply(now, reply);
    }
    let mut text = String::new();
    while let Some(output) = connection.poll_output() {
        match output {
            ConnectionOutput::Secure(name) => text += &format!("secure {name}"),
            ConnectionOutput::Write(bytes) => text += &String::from_utf8_lossy(&bytes),
            ConnectionOutput::Read(reads) => text += &format!("read {reads}"),
            ConnectionOutput::Close(how) => text += &format!("close {how:?}"),
        }
    }
    text
}

// covers: B-049, B-072
#[test]
fn messages_of_a_shared_server_reach_their_connection() {
    let now = Instant::ZERO;
    let mut engine = SharedServer::new(server_config(), [3; 32], now);
    let mut connections = [0; 2].map(|_| engine.accept(now, Kind::Lines, Peer::default()));
    for (connection, tool) in connections.iter_mut().zip(["one", "two"]) {
        connection.handle_io(now, IoEvent::Read(Bytes::from(format!("{INITIALIZE}{}", line_call(tool)))));
        assert_eq!(turn(&mut engine, connection).lines().count(), 1);
    }
    while engine.poll_woken().is_some() {}
    let mut requests = Vec::new();
    while let Some(event) = engine.poll_event() {
        if let Event::Request(responder, incoming) = event {
            requests.push((responder, incoming));
        }
    }
    assert_eq!((requests.len(), engine.running()), (2, 2));
    let (second, _) = requests.pop().expect("two");
    let (first, _) = requests.pop().expect("two");
    engine.respond(now, second.write(Outcome::Complete(Object::new().with("said", "two"))));
    assert_eq!(engine.poll_woken(), Some(connections[1].number()));
    assert_eq!(engine.poll_woken(), None, "each is named once");
    assert_eq!(turn(&mut engine, &mut connections[0]), "");
    assert!(turn(&mut engine, &mut connections[1]).contains(r#""said":"two""#));

    connections[0].handle_io(now, IoEvent::Closed(Closed::Reset));
    assert_eq!(turn(&mut engine, &mut connections[0]), "");
    assert_eq!(engine.running(), 0, "the request of a connection that is closed is cancelled");
    engine.respond(now, first.write(Outcome::Complete(Object::new())));
    assert_eq!(engine.poll_woken(), None);
    let further = engine.accept(now, Kind::Lines, Peer::default());
    assert!(further.number() > connections[1].number(), "numbers are not used again");
}

// covers: S2-10, B-054, B-072
#[test]
fn messages_to_a_connection_keep_the_order_of_commands() {
    let now = Instant::ZERO;
    let mut engine = SharedServer::new(server_config(), [3; 32], now);
    let mut connection = engine.accept(now, Kind::Lines, Peer::default());
    let params = r#"{"name":"one","_meta":{"progressToken":"t"}}"#;
    let call = format!(r#"{{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{params}}}"#) + "\n";
    connection.handle_io(now, IoEvent::Read(Bytes::from(format!("{INITIALIZE}{call}"))));
    turn(&mut engine, &mut connection);
    let Some(Event::Request(responder, _)) = engine.poll_event() else { panic!("it was handed out") };
    // Any task can make the engine send. The task of the connection takes the messages only later.
    for n in 1..=2 {
        let note = Note::Progress(Progress::new(f64::from(n)));
        engine.notify(now, responder.key(), note).expect("it runs");
    }
    engine.respond(now, responder.write(Outcome::Complete(Object::new().with("said", "one"))));
    let text = turn(&mut engine, &mut connection);
    let said: Vec<&str> = text.lines().collect();
    assert!(said[0].contains(r#""progress":1"#) && said[1].contains(r#""progress":2"#), "{text}");
    assert!(said.len() == 3 && said[2].contains(r#""said":"one""#), "{text}");
}

#[test]
fn client_over_an_open_connection_opens_nothing() {
    let now = Instant::ZERO;
    let (mut client, connection) =
        WiredClient::over(Arc::new(ClientConfig::given()), [1; 32], now).expect("nothing is to be opened");
    let Some(Action::Write(on, bytes)) = client.poll_output() else { panic!("it begins with the negotiation") };
    assert!(on == connection && bytes.starts_with(b"{"));
    assert_eq!(client.poll_output(), None);
    client.handle_io(now, connection, IoEvent::Closed(Closed::Eof));
    let ends: Vec<_> = core::iter::from_fn(|| client.poll_output()).collect();
    assert_eq!(ends[0], Action::Notice(connection, ConnectionNotice::Closed(Closed::Eof)));
    assert!(matches!(ends[1..], [Action::Event(client::Event::Terminated(_))]), "it is not opened again");

    let config = Arc::new(ClientConfig::program(Program::new("server")));
    let refused = WiredClient::over(config.clone(), [1; 32], now).map(drop);
    assert_eq!(refused, Err(RefusedCommand { value: config, why: Refusal::NotReopenable }));
}

#[test]
fn server_is_terminated_once_its_connections_are_closed() {
    let now = Instant::ZERO;
    let mut server = WiredServer::new(server_config(), [3; 32], now);
    let connection = server.accept(now, Kind::Lines, Peer::default());
    server.shutdown(now, Duration::ZERO);
    assert_eq!(server.poll_output(), Some(Action::Close(connection, Shutdown::WriteHalf)));
    assert_eq!((server.poll_output(), server.is_terminated()), (None, false));
    server.handle_io(now, connection, IoEvent::Closed(Closed::Eof));
    assert_eq!(server.poll_output(), Some(Action::Event(Event::Terminated)));
    assert_eq!((server.poll_output(), server.is_terminated()), (None, true));
}

#[test]
fn server_that_shut_down_aborts_a_peer_that_does_not_read() {
    let mut server = WiredServer::new(server_config(), [3; 32], Instant::ZERO);
    let id = server.accept(Instant::ZERO, Kind::Lines, Peer::default());
    server.handle_io(Instant::ZERO, id, IoEvent::Read(Bytes::from_static(INITIALIZE.as_bytes())));
    server.shutdown(Instant::ZERO, Duration::ZERO);
    let abort = Action::Close(id, Shutdown::Abort);
    let actions: Vec<_> = core::iter::from_fn(|| server.poll_output()).collect();
    assert!(actions.contains(&Action::Close(id, Shutdown::WriteHalf)) && !actions.contains(&abort), "{actions:?}");
    let at = Instant::ZERO + Limits::default().frame.linger_timeout + Duration::from_secs(1);
    assert_eq!(server.poll_timeout(), Some(at));
    server.handle_timeout(at);
    assert_eq!((server.poll_output(), server.is_terminated()), (Some(abort), false));
    server.handle_io(at, id, IoEvent::Closed(Closed::Aborted));
    assert_eq!(server.poll_output(), Some(Action::Event(Event::Terminated)));
}

#[test]
fn server_limits_its_connections() {
    let mut config = ServerConfig::new(Implementation::new("server", "1"));
    config.limits.server.max_exchanges = 1;
    let config = Arc::new(config);
    let now = Instant::ZERO;
    let mut engine = SharedServer::new(config.clone(), [3; 32], now);
    let mut connection = engine.accept(now, Kind::Lines, Peer::default());
    let mut refused = engine.accept(now, Kind::Lines, Peer::default());
    assert_eq!(turn(&mut engine, &mut refused), "close Abort");
    assert_eq!(engine.stats().channels, 1);
    for connection in [&mut refused, &mut connection] {
        connection.handle_io(now, IoEvent::Closed(Closed::Aborted));
        turn(&mut engine, connection);
    }
    let mut connection = engine.accept(now, Kind::Lines, Peer::default());
    assert_eq!(turn(&mut engine, &mut connection), "", "there is room again");

    let mut server = WiredServer::new(config, [3; 32], now);
    let end = server.accept(now, Kind::Lines, Peer::default());
    let refused = server.accept(now, Kind::Lines, Peer::default());
    assert_eq!(server.poll_output(), Some(Action::Close(refused, Shutdown::Abort)));
    server.handle_io(now, end, IoEvent::Closed(Closed::Eof));
    server.accept(now, Kind::Lines, Peer::default());
    assert_eq!(server.poll_output(), None, "there is room again");
}

#[test]
fn lost_events_are_counted() {
    let mut config = ClientConfig::given();
    config.limits.client.max_queued_events = 2;
    let mut net = Net::new(config, Limits::default(), usize::MAX);
    net.rest();
    let line = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/custom\"}\n";
    net.client.handle_io(net.now, ConnectionId(1), IoEvent::Read(Bytes::from(line.repeat(5))));
    let events: Vec<_> = core::iter::from_fn(|| net.client.poll_output()).collect();
    let is_note = |action: &&Action<_>| matches!(action, Action::Event(client::Event::Notification { .. }));
    assert_eq!(events.iter().filter(is_note).count(), 2);
    let lost = client::Event::Lost { notifications: 3, diagnostics: 0 };
    assert!(events.contains(&Action::Event(lost)), "{events:?}");
}
