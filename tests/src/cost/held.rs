//! The heap that a client takes for its calls in flight, and a supervisor for its servers.

use super::raw;
use bytes::Bytes;
use mcp_proto::client::{ClientCommands, Policy};
use mcp_proto::exchange::{Action, ConnectionId, IoEvent, Peer};
use mcp_proto::model::capabilities::ServerCapabilities;
use mcp_proto::wired::WiredClient;
use mcp_proto::{ClientConfig, Instant, tools};
use mcp_supervisor::{Output, ServerSpec, Supervision, Supervisor};
use serde_json::json;
use std::sync::Arc;

/// Returns the bytes of each of this number of calls in flight on one client over lines, once their
/// bytes are written.
pub(super) fn calls_in_flight(count: usize, used: fn() -> usize) -> usize {
    let mut config = ClientConfig::given();
    config.policy = Policy::Modern;
    config.limits.client.max_calls = count;
    let mut client = WiredClient::new(Arc::new(config), [1; 32], Instant::ZERO);
    let arguments = json!({ "text": "x".repeat(64) });
    // The first connects, so that the others find a client as it is at rest.
    let first = client.call(Instant::ZERO, tools::call("echo").arguments(&arguments)).expect("there is room");
    connect(&mut client);
    let before = used();
    let mut calls = Vec::with_capacity(count - 1);
    for _ in 1..count {
        calls.push(client.call(Instant::ZERO, tools::call("echo").arguments(&arguments)).expect("there is room"));
        take_requests(&mut client);
    }
    // The handles that a caller holds count as well.
    let each = (used() - before) / (count - 1);
    drop((first, calls));
    each
}

/// Returns the bytes of each of this number of servers of a supervisor, connected and without
/// lists. Their clients, and their configuration, are not part of it.
pub(super) fn supervised_servers(count: usize, used: fn() -> usize) -> usize {
    let config = Arc::new(ClientConfig::given());
    let before = used();
    let mut supervisor = Supervisor::new(Supervision::default(), [1; 32]);
    for number in 0..count {
        let added = supervisor.add(Instant::ZERO, number, ServerSpec::new(Arc::clone(&config)));
        assert!(added.is_ok(), "{added:?}");
        while let Some(output) = supervisor.poll_output() {
            if let Output::Connect { generation, .. } = output {
                supervisor.ready(Instant::ZERO, generation, &ServerCapabilities::default());
            }
        }
    }
    assert!(supervisor.is_settled() && supervisor.poll_timeout().is_none(), "it rests");
    (used() - before) / count
}

/// Opens the connection, and answers until the first call is on its way.
fn connect(client: &mut WiredClient) {
    loop {
        for (connection, bytes) in take_requests(client) {
            match raw::answer(&bytes) {
                Ok(Some(text)) if !text.contains("content") => {
                    let line = Bytes::from(text + "\n");
                    client.handle_io(Instant::ZERO, connection, IoEvent::Read(line));
                }
                answer => return assert!(answer.is_ok(), "{answer:?}"),
            }
        }
    }
}

/// Carries out the actions of the client, and returns what it writes.
fn take_requests(client: &mut WiredClient) -> Vec<(ConnectionId, Bytes)> {
    let mut requests = Vec::new();
    while let Some(action) = client.poll_output() {
        match action {
            Action::Open(connection, _) => {
                let peer = Peer::tcp(([127, 0, 0, 1], 1).into());
                client.handle_io(Instant::ZERO, connection, IoEvent::Opened(peer));
            }
            Action::Write(connection, bytes) => {
                client.handle_io(Instant::ZERO, connection, IoEvent::Written(bytes.len()));
                requests.push((connection, bytes));
            }
            _ => {}
        }
    }
    requests
}
