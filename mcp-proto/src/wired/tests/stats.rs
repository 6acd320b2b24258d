//! The numbers of a snapshot, compared with the bytes written and read.

use super::net::Net;
use crate::Limits;
use crate::client::{ClientConfig, Event, Policy};
use crate::error::{Diagnostic, DiagnosticKind};
use crate::exchange::*;
use crate::frame::Kind;
use crate::input::*;
use crate::model::lifecycle::Implementation;
use crate::model::tools;
use crate::server::store::{Memory, StoreRequest};
use crate::server::{self, ServerCommands, ServerConfig};
use crate::stats::{ClientStats, ServerStats, Traffic};
use crate::time::Instant;
use crate::wired::{Connection, ConnectionOutput, SharedServer, Turn, WiredClient, WiredServer};
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use bytes::Bytes;
use core::time::Duration;

/// Bytes from the client and to the client, as counted by the net.
fn bytes(net: &Net) -> (u64, u64) {
    let of = |up: bool| net.wire.iter().filter(|((_, to), _)| *to == up).map(|(_, bytes)| bytes.len() as u64).sum();
    (of(true), of(false))
}

#[test]
fn both_sides_count_the_same_bytes_and_messages() {
    for chunk in [usize::MAX, 7, 1] {
        let mut net = Net::new(ClientConfig::given(), Limits::default(), chunk);
        net.rest();
        net.call(tools::call("add"));
        net.call(tools::call("steps").progress());
        net.call(tools::call("slow"));
        net.rest();
        let (up, down) = bytes(&net);
        let client = net.client.stats();
        assert_eq!((client.traffic.bytes_out, client.traffic.bytes_in), (up, down));
        // The probe and three calls, all but one of the responses, and two progress notifications.
        assert_eq!((client.traffic.messages_out, client.traffic.messages_in), (4, 5));
        assert_eq!((client.calls, client.calls_made, client.channels), (1, 3, 1));
        assert_eq!((client.unsent, client.queued), (0, 0));
        let server = net.server.stats();
        assert_eq!((server.traffic.bytes_in, server.traffic.bytes_out), (up, down));
        assert_eq!((server.traffic.messages_in, server.traffic.messages_out), (4, 5));
        assert_eq!((server.running, server.requests, server.channels), (1, 3, 1));

        net.tell(Input::Command(ClientCommand::Close));
        net.rest();
        while net.client.poll_timeout().is_some() || net.server.stats().channels > 0 {
            net.tick();
        }
        let (up, down) = bytes(&net);
        let client = net.client.stats();
        let traffic = Traffic { bytes_in: down, bytes_out: up, messages_in: 5, messages_out: 4, defects_in: 0 };
        assert_eq!(client, ClientStats { calls_made: 3, traffic, ..ClientStats::default() }, "nothing is held");
        assert_eq!((net.server.stats().running, net.server.stats().requests), (0, 3));
        assert_eq!(net.server.stats().traffic.bytes_out, down);
    }
}

#[test]
fn closed_http_connections_are_counted() {
    let config = ClientConfig::url("http://localhost/mcp").expect("it is a url");
    let mut net = Net::new(config, Limits::default(), usize::MAX);
    net.rest();
    for _ in 0..3 {
        net.call(tools::call("add"));
        net.rest();
        // Each connection is closed before the next call.
        while net.client.stats().channels > 0 {
            net.tick();
        }
    }
    let (up, down) = bytes(&net);
    assert!(net.channels() >= 3);
    let (client, server) = (net.client.stats().traffic, net.server.stats().traffic);
    assert_eq!((client.bytes_out, client.bytes_in), (up, down));
    assert_eq!((server.bytes_in, server.bytes_out), (up, down));
    assert_eq!((client.messages_out, client.messages_in), (4, 4));
    assert_eq!((server.messages_in, server.messages_out), (4, 4));
}

#[test]
fn server_counts_sessions_and_streams() {
    let mut config = ClientConfig::url("http://localhost/mcp").expect("it is a url");
    config.policy = Policy::Legacy;
    let mut net = Net::new(config, Limits::default(), usize::MAX);
    net.rest();
    let numbers = |net: &Net| {
        let stats = net.server.stats();
        (stats.sessions, stats.streams)
    };
    assert_eq!(numbers(&net), (1, 1), "a session, and what its client listens on");
    net.call(tools::call("slow"));
    net.rest();
    assert_eq!(numbers(&net), (1, 2));
    net.tell(Input::Command(ClientCommand::Close));
    net.rest();
    while net.client.poll_timeout().is_some() {
        net.tick();
    }
    assert_eq!(numbers(&net), (0, 0));
}

#[test]
fn shared_server_counts_sessions() {
    let now = Instant::ZERO;
    let mut engine = SharedServer::new(Arc::new(ServerConfig::new(Implementation::new("s", "1"))), [1; 32], now);
    let mut connection: Connection = engine.accept(now, Kind::HttpServer, Peer::default());
    let body = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#;
    let head = alloc::format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    connection.handle_io(now, IoEvent::Read(Bytes::from(head + body)));
    assert!(!engine.exchange(now, connection.take_turn()).is_empty());
    assert_eq!((engine.stats().sessions, engine.stats().streams), (1, 0));
}

#[test]
fn server_joins_its_store_before_any_input() {
    let mut config = ServerConfig::new(Implementation::new("s", "1"));
    (config.state_keys, config.store) = (Some([1; 32].into()), Some(Memory::SERVES));
    let config = Arc::new(config);
    let event = SharedServer::new(config.clone(), [1; 32], Instant::ZERO).poll_event();
    assert!(matches!(event, Some(server::Event::Store(_, StoreRequest::Join { .. }))));
    let action = WiredServer::new(config, [1; 32], Instant::ZERO).poll_output();
    assert!(matches!(action, Some(Action::Event(server::Event::Store(_, StoreRequest::Join { .. })))));
}

fn line(text: &str) -> Bytes {
    Bytes::from(alloc::format!("{text}\n"))
}

// covers: B-274
#[test]
fn dropped_and_lost_events_are_counted_by_kind() {
    let mut config = ClientConfig::program(Program::new("server"));
    config.policy = Policy::Legacy;
    config.limits.client.max_queued_events = 3;
    config.ping = Some(Duration::from_secs(60));
    let (channel, mut now) = (ConnectionId(1), Instant::ZERO);
    let mut client = WiredClient::new(Arc::new(config), [1; 32], now);
    assert_eq!((client.stats().channels, client.stats().queued), (1, 1), "it is being opened");
    client.handle_io(now, channel, IoEvent::Opened(Peer::default()));
    let written: usize = core::iter::from_fn(|| client.poll_output())
        .map(|action| if let Action::Write(_, bytes) = action { bytes.len() } else { 0 })
        .sum();
    assert_eq!((client.stats().unsent, client.stats().traffic.bytes_out), (written, 0));
    client.handle_io(now, channel, IoEvent::Written(written - 1));
    assert_eq!((client.stats().unsent, client.stats().traffic.bytes_out), (1, written as u64 - 1));
    client.handle_io(now, channel, IoEvent::Written(1));

    let result = r#"{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}"#;
    client.handle_io(
        now,
        channel,
        IoEvent::Read(line(&alloc::format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#))),
    );
    for text in ["garbage", "more", r#"{"jsonrpc":"2.0","id":77,"result":{}}"#, r#"{"jsonrpc":"2.0","method":"x/y"}"#] {
        client.handle_io(now, channel, IoEvent::Read(line(text)));
        client.handle_io(now, channel, IoEvent::Read(line(text)));
    }
    let stats = client.stats();
    let kinds: Vec<_> = stats.diagnostics.iter().map(|(kind, n)| (*kind, *n)).collect();
    assert_eq!(kinds, [(DiagnosticKind::BadMessage, 4), (DiagnosticKind::UnknownId, 2)]);
    assert_eq!((stats.traffic.messages_in, stats.traffic.defects_in), (5, 4));
    // Three of eight are queued, and one entry for the lost ones.
    assert_eq!((stats.lost_notifications, stats.lost_diagnostics), (2, 3));
    let told = core::iter::from_fn(|| client.poll_output()).find_map(|action| match action {
        Action::Event(Event::Lost { notifications, diagnostics }) => Some((notifications, diagnostics)),
        _ => None,
    });
    assert_eq!(told, Some((2, 3)), "what is counted is what is told");
    assert_eq!(client.stats().lost_diagnostics, 3, "and stays counted");

    for wait in [60, 10] {
        now = now + Duration::from_secs(wait);
        client.handle_timeout(now);
    }
    client.handle_io(now, channel, IoEvent::Closed(Closed::Reset));
    let stats = client.stats();
    assert_eq!((stats.pings_missed, stats.calls_made, stats.channels), (1, 0, 0));
}

#[test]
fn shared_server_counts_the_traffic_of_its_connections() {
    let now = Instant::ZERO;
    let mut engine = SharedServer::new(Arc::new(ServerConfig::new(Implementation::new("s", "1"))), [1; 32], now);
    let mut connection: Connection = engine.accept(now, Kind::Lines, Peer::default());
    let text = line(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
    let length = text.len() as u64;
    connection.handle_io(now, IoEvent::Read(text));
    connection.handle_io(now, IoEvent::Read(line("garbage")));
    let reply = engine.exchange(now, connection.take_turn());
    connection.apply(now, reply);
    let mut written = 0;
    while let Some(ConnectionOutput::Write(bytes)) = connection.poll_output() {
        written += bytes.len();
        connection.handle_io(now, IoEvent::Written(bytes.len()));
    }
    connection.handle_io(now, IoEvent::Closed(Closed::Eof));
    for _ in 0..2 {
        assert!(engine.exchange(now, connection.take_turn()).is_empty(), "it is counted once");
    }
    let ServerStats { channels, traffic, diagnostics, requests, .. } = engine.stats();
    assert_eq!((channels, requests), (0, 0));
    assert_eq!((traffic.bytes_in, traffic.bytes_out), (length + 8, written as u64));
    assert_eq!((traffic.messages_in, traffic.defects_in), (1, 1));
    assert_eq!(diagnostics.get(&DiagnosticKind::BadMessage), Some(&1));
    assert!(traffic.messages_out >= 1);
}

#[test]
fn no_output_follows_the_end_of_a_server() {
    let now = Instant::ZERO;
    let mut engine = SharedServer::new(Arc::new(ServerConfig::new(Implementation::new("s", "1"))), [1; 32], now);
    engine.shutdown(now, Duration::ZERO);
    let diagnostics = vec![Diagnostic::new(DiagnosticKind::Denied, "")];
    let turn = Turn { connection: 1, events: vec![], diagnostics, traffic: Traffic::default(), is_closed: false };
    assert!(engine.exchange(now, turn).is_empty());
    let events: Vec<server::Event> = core::iter::from_fn(|| engine.poll_event()).collect();
    assert_eq!(events, [server::Event::Terminated]);
    assert_eq!(engine.stats().diagnostics.get(&DiagnosticKind::Denied), Some(&1), "it is counted");
}
