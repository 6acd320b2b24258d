//! Hostile bytes for an engine alone: a great number of small messages in one read, while no
//! outputs are taken.

use bytes::Bytes;
use mcp_proto::client::{ClientCommands, Event, Policy};
use mcp_proto::exchange::{Action, ConnectionId, IoEvent, Peer, Shutdown};
use mcp_proto::server::Event as ServerEvent;
use mcp_proto::wired::{Kind, WiredClient, WiredServer};
use mcp_proto::{ClientConfig, Implementation, Instant, ServerConfig, ping};
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

const HELLO: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}"#;
const GREETING: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
"#;
const NOTE: &str = "{\"jsonrpc\":\"2.0\",\"method\":\"custom/tick\"}\n";
const NOW: Instant = Instant::ZERO;

/// This number of notifications in one read of a client, then a call.
pub(super) fn client_notes(count: u64) -> Result<String, String> {
    let (notifications, _, lost, _) = client(&NOTE.repeat(usize::try_from(count).unwrap_or(0)))?;
    if notifications + lost != count {
        return Err(format!("{notifications} told, {lost} lost of {count}"));
    }
    Ok(format!("{notifications} told, {lost} counted as lost; the next call is answered"))
}

/// This number of invalid lines in one read of a client whose outputs are not taken, then a call.
pub(super) fn client_nonsense(count: u64) -> Result<String, String> {
    let (_, diagnostics, _, lost) = client(&"?\n".repeat(usize::try_from(count).unwrap_or(0)))?;
    if diagnostics + lost != count || lost == 0 {
        return Err(format!("{diagnostics} told, {lost} lost of {count}"));
    }
    Ok(format!("{diagnostics} told, {lost} counted as lost; the next call is answered"))
}

/// The final events of a client whose outputs were not taken: notifications, diagnostics, and the
/// lost ones of both.
fn client(hostile: &str) -> Result<(u64, u64, u64, u64), String> {
    let mut config = ClientConfig::given();
    config.policy = Policy::Legacy;
    let mut engine = WiredClient::new(Arc::new(config), [7; 32], NOW);
    let channel = std::iter::from_fn(|| engine.poll_output()).find_map(|action| match action {
        Action::Open(channel, _) => Some(channel),
        _ => None,
    });
    let channel = channel.ok_or("it opens nothing")?;
    engine.handle_io(NOW, channel, IoEvent::Opened(Peer::default()));
    engine.handle_io(NOW, channel, IoEvent::Read(Bytes::from(format!("{HELLO}\n"))));
    while engine.poll_output().is_some() {}
    engine.handle_io(NOW, channel, IoEvent::Read(Bytes::copy_from_slice(hostile.as_bytes())));
    let mut now = NOW;
    while let Some(at) = turn(now, engine.poll_timeout()) {
        now = at;
        engine.handle_timeout(now);
    }
    engine.call(now, ping()).map_err(|_| "it is refused")?;
    engine.handle_io(
        now,
        channel,
        IoEvent::Read(Bytes::from_static(b"{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}}\n")),
    );
    let (mut told, mut answered) = ((0, 0, 0, 0), false);
    while let Some(action) = engine.poll_output() {
        match action {
            Action::Event(Event::Notification { .. }) => told.0 += 1,
            Action::Event(Event::Diagnostic(_)) => told.1 += 1,
            Action::Event(Event::Lost { notifications, diagnostics }) => {
                told.2 += notifications;
                told.3 += diagnostics;
            }
            Action::Event(Event::Ended { outcome, .. }) => answered = outcome.is_ok(),
            _ => {}
        }
    }
    if answered { Ok(told) } else { Err("the next call is not answered".into()) }
}

/// Returns the time of the next turn of a connection that parses what it has read.
fn turn(now: Instant, timeout: Option<Instant>) -> Option<Instant> {
    timeout.filter(|at| *at <= now + Duration::from_millis(1))
}

/// Takes all turns of a server.
fn take_turns(engine: &mut WiredServer) -> Instant {
    let mut now = NOW;
    while let Some(at) = turn(now, engine.poll_timeout()) {
        now = at;
        engine.handle_timeout(now);
    }
    now
}

/// A server after `initialize`.
fn server() -> Result<(WiredServer, ConnectionId), String> {
    let config = ServerConfig::new(Implementation::new("s", "1"));
    let mut engine = WiredServer::new(Arc::new(config), [7; 32], NOW);
    let channel = engine.accept(NOW, Kind::Lines, Peer::default());
    engine.handle_io(NOW, channel, IoEvent::Read(Bytes::from_static(GREETING.as_bytes())));
    while let Some(action) = engine.poll_output() {
        if let Action::Write(channel, bytes) = action {
            engine.handle_io(NOW, channel, IoEvent::Written(bytes.len()));
        }
    }
    Ok((engine, channel))
}

/// This number of notifications in one read of a server, then a ping.
pub(super) fn server_notes(count: u64) -> Result<String, String> {
    let (mut engine, channel) = server()?;
    engine.handle_io(NOW, channel, IoEvent::Read(Bytes::from(NOTE.repeat(usize::try_from(count).unwrap_or(0)))));
    let now = take_turns(&mut engine);
    engine.handle_io(
        now,
        channel,
        IoEvent::Read(Bytes::from_static(b"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"ping\"}\n")),
    );
    let (mut told, mut lost, mut answered) = (0, 0, false);
    while let Some(action) = engine.poll_output() {
        match action {
            Action::Event(ServerEvent::Notification { .. }) => told += 1,
            Action::Event(ServerEvent::Lost { notifications, .. }) => lost += notifications,
            Action::Write(..) => answered = true,
            _ => {}
        }
    }
    match answered && told + lost == count {
        true => Ok(format!("{told} told, {lost} counted as lost; the ping after them is answered")),
        false => Err(format!("{told} told, {lost} lost of {count}; answered: {answered}")),
    }
}

/// This number of pings in one read of a server, from a client that reads no response.
pub(super) fn server_pings(count: u64) -> Result<String, String> {
    let (mut engine, channel) = server()?;
    let mut pings = String::new();
    for id in 1..=count {
        writeln!(pings, r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#).map_err(|e| e.to_string())?;
    }
    engine.handle_io(NOW, channel, IoEvent::Read(Bytes::from(pings)));
    take_turns(&mut engine);
    let (mut bytes, mut cut) = (0, false);
    while let Some(action) = engine.poll_output() {
        match action {
            Action::Write(_, answer) => bytes += answer.len(),
            Action::Close(_, Shutdown::Abort) => cut = true,
            _ => {}
        }
    }
    let mib = bytes as f64 / f64::from(1 << 20);
    Ok(format!("{mib:.1} MiB of answers queued, {}", if cut { "then it is cut off" } else { "all answered" }))
}
