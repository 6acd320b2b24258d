//! Whole conversations, whatever the pieces in which the bytes come and whenever the outputs are taken.

use super::net::Net;
use crate::Limits;
use crate::client::{self, ClientConfig, Policy};
use crate::error::{CallError, Refusal};
use crate::exchange::*;
use crate::frame::Kind;
use crate::input::*;
use crate::model::Progress;
use crate::model::lifecycle::Implementation;
use crate::model::tools;
use crate::rpc::Object;
use crate::server::{Event, ServerConfig};
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

/// The same lines on either side, whatever came between those of the other.
fn by_side(log: &[String]) -> (Vec<&String>, Vec<&String>) {
    log.iter().partition(|line| line.starts_with("server: "))
}

// covers: B-054, B-117, B-283, S2-10
#[test]
fn a_conversation_of_lines_is_the_same_in_both_eras_and_however_it_is_cut_and_drained() {
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
#[cfg(feature = "http")]
#[test]
fn a_conversation_over_http_is_the_same_however_it_is_cut_and_drained() {
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
fn what_comes_before_the_tick_wins_over_the_timers_of_both_sides() {
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
fn calls_end_when_the_channel_does_and_nothing_follows() {
    let mut net = Net::new(ClientConfig::given(), Limits::default(), usize::MAX);
    net.rest();
    net.call(tools::call("slow"));
    net.rest();
    net.log();
    net.tell(Input::Event(ConnectionId(1), IoEvent::Closed(Closed::Reset)));
    net.tell(Input::Event(ConnectionId(1), IoEvent::Bytes(Bytes::from_static(b"{}\n"))));
    net.tell(Input::Event(ConnectionId(9), IoEvent::Eof));
    net.rest();
    assert_eq!(net.log(), ["call 1: Transport closed: the connection was reset", "terminated Closed(Reset)"]);
    assert_eq!(net.client.poll_timeout(), None);
    assert_eq!(net.client.timeout_reason(), None);
    assert!(net.client.call(net.now, tools::call("more")).is_err());
    assert_eq!(net.client.poll_output(), None);
}

// covers: S0-09, S0-21, S2-06
#[test]
fn a_notification_is_one_object_and_a_newline() {
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

// covers: S0-34, S2-10
#[test]
fn bytes_that_are_not_written_hold_back_further_calls() {
    let mut config = ClientConfig::given();
    config.limits.client.max_unsent = 100;
    let mut net = Net::new(config, Limits::default(), usize::MAX);
    net.rest();
    net.client.call(net.now, tools::call("one")).expect("the limit is not reached");
    assert!(net.client.call(net.now, tools::call("two")).is_err_and(|refused| refused.why == Refusal::Full));
    net.client.written(net.now, ConnectionId(1), 10_000);
    net.client.call(net.now, tools::call("three")).expect("all is written");
    let writes = core::iter::from_fn(|| net.client.poll_output()).filter(|action| matches!(action, Action::Write(..)));
    assert_eq!(writes.count(), 2);
}

#[test]
fn a_given_channel_is_opened_once_and_a_program_as_often_as_it_is_started() {
    let exit = Closed::Exited(ExitStatus::exited(2));
    let mut given = WiredClient::new(Arc::new(ClientConfig::given()), [1; 32], Instant::ZERO);
    let program = ClientConfig::program(Program::new("server"));
    let mut started = WiredClient::new(Arc::new(program), [1; 32], Instant::ZERO);
    let mut told = [&mut given, &mut started].map(|client| {
        assert!(matches!(client.poll_output(), Some(Action::Open(ConnectionId(1), _))));
        client.opened(Instant::ZERO, ConnectionId(1), Peer::default());
        // A server of an older revision may end on a request that it does not know.
        client.closed(Instant::ZERO, ConnectionId(1), exit.clone());
        core::iter::from_fn(|| client.poll_output()).filter(|action| !matches!(action, Action::Write(..)))
    });
    let [given, started] = told.each_mut().map(|told| told.map(|action| format!("{action:?}")).collect::<Vec<_>>());
    assert!(given.last().is_some_and(|last| last.contains("Terminated(Negotiation")), "{given:?}");
    assert!(!given.iter().any(|action| action.starts_with("Open(")), "{given:?}");
    assert!(started.iter().any(|action| action.starts_with("Open(ConnectionId(2)")), "{started:?}");
}

// covers: B-141
#[test]
fn a_program_that_ends_within_an_answer_is_the_reason_for_the_end_of_the_call() {
    let (mut config, now) = (ClientConfig::program(Program::new("server")), Instant::ZERO);
    config.policy = Policy::Legacy;
    let mut client = WiredClient::new(Arc::new(config), [1; 32], now);
    let channel = ConnectionId(1);
    client.opened(now, channel, Peer::default());
    client.bytes(now, channel, INITIALIZED.into());
    let call = client.call(now, tools::call("add")).expect("it is ready").id();
    client.bytes(now, channel, br#"{"jsonrpc":"2.0","id":2,"result":{"content":["#[..].into());
    client.eof(now, channel);
    let why = Closed::Exited(ExitStatus::exited(3).with_stderr("no space left"));
    client.closed(now, channel, why.clone());
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
fn a_client_that_is_closed_ends_once_its_channel_is_closed() {
    let mut net = Net::new(ClientConfig::given(), Limits::default(), usize::MAX);
    net.rest();
    net.log();
    net.client.close(net.now);
    net.client.close(net.now);
    let closes = |net: &mut Net, how| {
        assert_eq!(net.client.poll_output(), Some(Action::Close(ConnectionId(1), how)));
        assert!(matches!(net.client.poll_output(), Some(Action::Event(client::Event::ChannelClosing { .. }))));
        assert_eq!(net.client.poll_output(), None, "the end waits for the channel");
    };
    closes(&mut net, Shutdown::WriteHalf);
    net.client.handle_timeout(net.now + Duration::from_secs(2));
    closes(&mut net, Shutdown::Abort);
    net.client.closed(net.now, ConnectionId(1), Closed::Aborted);
    assert!(matches!(net.client.poll_output(), Some(Action::Event(client::Event::ChannelClosed { .. }))));
    assert!(matches!(net.client.poll_output(), Some(Action::Event(client::Event::Terminated(_)))));
    assert_eq!(net.client.poll_output(), None);
}

#[test]
fn a_server_that_shuts_down_closes_its_channels_and_ends_last() {
    let mut net = Net::new(ClientConfig::given(), Limits::default(), usize::MAX);
    net.rest();
    net.call(tools::call("slow"));
    net.rest();
    net.log();
    net.tell_server(Input::Command(ServerCommand::Shutdown(Duration::from_secs(1))));
    assert_eq!(net.server.accept(net.now, Kind::Lines, Peer::default()), None);
    net.rest();
    assert_eq!(net.server.running(), 1);
    net.tick();
    while net.server.poll_timeout().is_some() {
        net.tick();
    }
    let log = net.log();
    assert!(log.contains(&"server: terminated".to_string()), "{log:?}");
    assert!(net.actions.1.last().is_some_and(|action| action.contains("Terminated")), "{:?}", net.actions.1);
    assert!(!net.server.wants_read(net.server_end(ConnectionId(1))));
}

fn server_config() -> Arc<ServerConfig> {
    let mut config = ServerConfig::new(Implementation::new("server", "1"));
    config.capabilities.tools = Some(Object::new());
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
fn two_channels_with_equal_ids_never_meet() {
    let now = Instant::ZERO;
    let mut server = WiredServer::new(server_config(), [3; 32], now);
    let ends = [0; 2].map(|_| server.accept(now, Kind::Lines, Peer::default()).expect("there is room"));
    for (end, tool) in ends.into_iter().zip(["one", "two"]) {
        server.bytes(now, end, Bytes::from(format!("{INITIALIZE}{}", line_call(tool))));
    }
    // An id that is in use on its channel does not touch the request that uses it.
    server.bytes(now, ends[0], Bytes::from(line_call("again")));
    // What one channel does wrong is not seen on the other.
    let bad = server.accept(now, Kind::Lines, Peer::default()).expect("there is room");
    server.bytes(now, bad, Bytes::from_static(b"\xff{]\n"));
    server.closed(now, bad, Closed::Reset);
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

/// One turn of a connection's task.
fn turn(engine: &mut SharedServer, connection: &mut Connection) -> String {
    let now = Instant::ZERO;
    loop {
        let (facts, diagnostics) = connection.take_facts();
        let told = facts.len();
        engine.facts(now, facts, diagnostics);
        let mail: Vec<_> = core::iter::from_fn(|| engine.poll_mail(connection.number())).collect();
        if told + mail.len() == 0 {
            break;
        }
        mail.into_iter().for_each(|mail| mail.deliver(now, connection));
    }
    let mut text = String::new();
    while let Some(output) = connection.poll_output() {
        match output {
            ConnectionOutput::Write(bytes) => text += &String::from_utf8_lossy(&bytes),
            ConnectionOutput::Close(how) => text += &format!("close {how:?}"),
        }
    }
    text
}

// covers: B-049, B-072
#[test]
fn a_hub_keeps_what_it_says_in_the_mailbox_of_the_lane_that_asked() {
    let now = Instant::ZERO;
    let mut engine = SharedServer::new(server_config(), [3; 32], now);
    let mut connections = [0; 2].map(|_| engine.join(now, Kind::Lines, Peer::default()).expect("there is room"));
    for (connection, tool) in connections.iter_mut().zip(["one", "two"]) {
        connection.handle_io(now, IoEvent::Bytes(Bytes::from(format!("{INITIALIZE}{}", line_call(tool)))));
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
    engine.leave(now, connections[0].number());
    assert_eq!(engine.running(), 0, "the request of a connection that is closed is cancelled");
    engine.respond(now, first.write(Outcome::Complete(Object::new())));
    assert_eq!((engine.poll_woken(), engine.poll_mail(connections[0].number())), (None, None));
    let further = engine.join(now, Kind::Lines, Peer::default()).expect("there is room");
    assert!(further.number() > connections[1].number(), "numbers are not used again");
}

// covers: S2-10, B-054, B-072
#[test]
fn a_mailbox_keeps_the_order_in_which_the_engine_was_told() {
    let now = Instant::ZERO;
    let mut engine = SharedServer::new(server_config(), [3; 32], now);
    let mut connection = engine.join(now, Kind::Lines, Peer::default()).expect("there is room");
    let params = r#"{"name":"one","_meta":{"progressToken":"t"}}"#;
    let call = format!(r#"{{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{params}}}"#) + "\n";
    connection.handle_io(now, IoEvent::Bytes(Bytes::from(format!("{INITIALIZE}{call}"))));
    turn(&mut engine, &mut connection);
    let Some(Event::Request(responder, _)) = engine.poll_event() else { panic!("it was handed out") };
    // Whoever has the engine speaks; the task of the connection looks into its mailbox only afterwards.
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
fn a_server_takes_no_more_channels_than_its_limit() {
    let mut config = ServerConfig::new(Implementation::new("server", "1"));
    config.limits.server.max_exchanges = 1;
    let config = Arc::new(config);
    let now = Instant::ZERO;
    let mut engine = SharedServer::new(config.clone(), [3; 32], now);
    let connection = engine.join(now, Kind::Lines, Peer::default()).expect("there is room");
    assert!(engine.join(now, Kind::Lines, Peer::default()).is_none());
    engine.leave(now, connection.number());
    assert!(engine.join(now, Kind::Lines, Peer::default()).is_some());

    let mut server = WiredServer::new(config, [3; 32], now);
    let end = server.accept(now, Kind::Lines, Peer::default()).expect("there is room");
    assert_eq!(server.accept(now, Kind::Lines, Peer::default()), None);
    server.closed(now, end, Closed::Eof);
    assert!(server.accept(now, Kind::Lines, Peer::default()).is_some());
}

#[test]
fn what_nobody_takes_is_counted() {
    let mut config = ClientConfig::given();
    config.limits.client.max_queued_events = 2;
    let mut net = Net::new(config, Limits::default(), usize::MAX);
    net.rest();
    let line = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/custom\"}\n";
    net.client.bytes(net.now, ConnectionId(1), Bytes::from(line.repeat(5)));
    let events: Vec<_> = core::iter::from_fn(|| net.client.poll_output()).collect();
    let is_note = |action: &&Action<_>| matches!(action, Action::Event(client::Event::Notification { .. }));
    assert_eq!(events.iter().filter(is_note).count(), 2);
    let lost = client::Event::Lost { notifications: 3, diagnostics: 0 };
    assert!(events.contains(&Action::Event(lost)), "{events:?}");
}
