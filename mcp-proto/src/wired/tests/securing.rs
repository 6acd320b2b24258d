//! A connection to a server with TLS: what the driver is asked for, and when.

use crate::client::{ClientCommands, ClientConfig, Event};
use crate::error::CallError;
use crate::exchange::*;
use crate::time::Instant;
use crate::tools;
use crate::wired::WiredClient;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::time::Duration;

const ID: ConnectionId = ConnectionId(1);

/// A client that has begun to connect, with a call.
fn client(url: &str) -> WiredClient {
    let config = ClientConfig::url(url).expect("it is a URL");
    let mut client = WiredClient::new(config.into(), [1; 32], Instant::ZERO);
    client.call(Instant::ZERO, tools::call("x")).expect("it is accepted");
    client
}

/// Returns what the driver is asked for, and how calls have ended.
fn told(client: &mut WiredClient) -> Vec<String> {
    let line = |action| match action {
        Action::Open(_, Endpoint::Origin(origin)) => Some(format!("open {} {}", origin.host, origin.port)),
        Action::Secure(_, name) => Some(format!("secure {name}")),
        Action::Write(_, bytes) => {
            let text = String::from_utf8_lossy(&bytes).into_owned();
            Some(format!("write {}", text.split(' ').next().unwrap_or_default()))
        }
        Action::Close(_, how) => Some(format!("close {how:?}")),
        Action::Event(Event::Ended { outcome: Err(e), .. }) => Some(match e {
            CallError::Negotiation(_) => format!("failed, {:?}", e.sent()),
            other => other.to_string(),
        }),
        _ => None,
    };
    core::iter::from_fn(|| client.poll_output()).filter_map(line).collect()
}

// covers: TLS-C-001
#[test]
fn nothing_is_written_before_the_connection_is_secured() {
    for (url, method) in [("https://localhost/mcp", "POST"), ("wss://localhost/mcp", "GET")] {
        let mut client = client(url);
        assert_eq!(told(&mut client), ["open localhost 443"]);
        client.handle_io(Instant::ZERO, ID, IoEvent::Opened(Peer::default()));
        assert_eq!(told(&mut client), ["secure localhost"]);
        // Events that belong to the time after it are ignored.
        client.handle_io(Instant::ZERO, ID, IoEvent::Opened(Peer::default()));
        client.handle_io(Instant::ZERO, ID, IoEvent::Read("HTTP/1.1 200 OK\r\n\r\n".into()));
        assert_eq!(told(&mut client), [""; 0]);
        client.handle_io(Instant::ZERO, ID, IoEvent::Secured);
        assert_eq!(told(&mut client), [format!("write {method}")]);
        client.handle_io(Instant::ZERO, ID, IoEvent::Secured);
        assert_eq!(told(&mut client), [""; 0]);
    }
    let mut plain = client("http://localhost/mcp");
    plain.handle_io(Instant::ZERO, ID, IoEvent::Opened(Peer::default()));
    assert_eq!(told(&mut plain), ["open localhost 80", "write POST"]);
}

#[test]
fn failed_handshake_has_sent_nothing() {
    for url in ["https://localhost/mcp", "wss://localhost/mcp"] {
        let mut client = client(url);
        client.handle_io(Instant::ZERO, ID, IoEvent::Opened(Peer::default()));
        let why = TlsFailure::new(TlsFailureKind::Expired, "");
        client.handle_io(Instant::ZERO, ID, IoEvent::Closed(Closed::Tls(why)));
        assert_eq!(told(&mut client), ["open localhost 443", "secure localhost", "failed, No"], "{url}");
    }
}

#[test]
fn handshake_counts_toward_the_time_to_open() {
    let mut client = client("https://localhost/mcp");
    let limit = client.client().config().limits.frame.open_timeout;
    let (half, whole) = (Instant::new(limit / 2), Instant::new(limit));
    client.handle_io(half, ID, IoEvent::Opened(Peer::default()));
    assert_eq!(told(&mut client), ["open localhost 443", "secure localhost"]);
    client.handle_timeout(Instant::new(limit - Duration::from_nanos(1)));
    assert_eq!(told(&mut client), [""; 0]);
    client.handle_timeout(whole);
    assert_eq!(told(&mut client), ["close Abort", "failed, No"]);
    client.handle_io(whole, ID, IoEvent::Secured);
    assert_eq!(told(&mut client), [""; 0], "it comes too late");
}

#[test]
fn client_that_closes_aborts_the_handshake() {
    let mut client = client("https://localhost/mcp");
    client.handle_io(Instant::ZERO, ID, IoEvent::Opened(Peer::default()));
    client.close(Instant::ZERO);
    let told = told(&mut client);
    assert!(
        told.contains(&"close Abort".to_string()) && !told.iter().any(|line| line.starts_with("write")),
        "{told:?}"
    );
}

// covers: WS-C-011
#[test]
fn calls_over_a_websocket_wait_for_one_connection() {
    let mut client = client("wss://localhost/mcp");
    for _ in 0..3 {
        client.call(Instant::ZERO, tools::call("x")).expect("it is accepted");
    }
    client.handle_io(Instant::ZERO, ID, IoEvent::Opened(Peer::default()));
    client.call(Instant::ZERO, tools::call("x")).expect("it is accepted");
    assert_eq!(told(&mut client), ["open localhost 443", "secure localhost"]);
}
