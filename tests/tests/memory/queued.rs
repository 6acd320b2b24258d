//! The memory of a peer's notifications while the application takes no event, measured by a
//! counting allocator.

use bytes::Bytes;
use mcp_proto::client::{self, Client, ClientConfig, Policy};
use mcp_proto::exchange::{ExchangeEvent, ExchangeId, Inbound, Peer};
use mcp_proto::limits::Limits;
use mcp_proto::rpc::parse_batch_or_message;
use mcp_proto::server::{self, Server};
use mcp_proto::{Implementation, Instant, ServerConfig};
use mcp_tests::heap::used;
use std::iter;
use std::sync::Arc;

const NOW: Instant = Instant::ZERO;
const X: ExchangeId = ExchangeId(1);

/// The number of notifications: five times as many of 4 MiB as fit into the limit.
const TOLD: usize = 16;

fn item(text: String) -> Inbound {
    parse_batch_or_message(Bytes::from(text), &Limits::default().frame).into()
}

fn notification(params: usize, junk: usize) -> Inbound {
    let (params, junk) = ("x".repeat(params), "j".repeat(junk));
    item(format!(r#"{{"jsonrpc":"2.0","method":"n","params":{{"x":"{params}"}},"junk":"{junk}"}}"#))
}

/// Returns the memory of [`TOLD`] notifications, and the number of lost ones.
fn held(mut tell: impl FnMut(Inbound), lost: impl FnOnce() -> u64, params: usize, junk: usize) -> (usize, u64) {
    let before = used();
    for _ in 0..TOLD {
        tell(notification(params, junk));
    }
    (used() - before, lost())
}

fn server(params: usize, junk: usize) -> (usize, u64) {
    let mut server = Server::new(Arc::new(ServerConfig::new(Implementation::new("memory", "1"))), [7; 32], NOW);
    server.handle_event(NOW, X, ExchangeEvent::Opened(Peer::default()));
    let server = std::cell::RefCell::new(server);
    let lost = || {
        let outputs: Vec<_> = iter::from_fn(|| server.borrow_mut().poll_output()).collect();
        outputs
            .iter()
            .map(|output| match output {
                server::Output::Event(server::Event::Lost { notifications, .. }) => *notifications,
                _ => 0,
            })
            .sum()
    };
    held(|item| server.borrow_mut().handle_event(NOW, X, ExchangeEvent::Inbound(item)), lost, params, junk)
}

fn client(params: usize, junk: usize) -> (usize, u64) {
    let mut config = ClientConfig::given();
    config.policy = Policy::Legacy;
    let mut client = Client::new(Arc::new(config), [7; 32], NOW);
    let Some(client::Output::Start(x, _)) = client.poll_output() else { panic!("it starts") };
    client.handle_event(NOW, x, ExchangeEvent::Opened(Peer::default()));
    let result = r#"{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}"#;
    client.handle_event(
        NOW,
        x,
        ExchangeEvent::Inbound(item(format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#))),
    );
    let outputs: Vec<_> = iter::from_fn(|| client.poll_output()).collect();
    assert!(
        outputs.iter().any(|output| matches!(output, client::Output::Event(client::Event::Ready(_)))),
        "{outputs:?}"
    );
    let client = std::cell::RefCell::new(client);
    let lost = || {
        let outputs: Vec<_> = iter::from_fn(|| client.borrow_mut().poll_output()).collect();
        outputs
            .iter()
            .map(|output| match output {
                client::Output::Event(client::Event::Lost { notifications, .. }) => *notifications,
                _ => 0,
            })
            .sum()
    };
    held(|item| client.borrow_mut().handle_event(NOW, x, ExchangeEvent::Inbound(item)), lost, params, junk)
}

// covers: B-274, B-187
#[test]
fn queued_notifications_hold_no_more_than_their_limit() {
    let _alone = crate::alone();
    const BOUND: usize = 16 << 20;
    for (engine, held) in [("server", server as fn(usize, usize) -> (usize, u64)), ("client", client)] {
        let (bytes, lost) = held(4 << 20, 0);
        assert!((BOUND / 2..BOUND + (64 << 10)).contains(&bytes), "{engine} holds {bytes} bytes");
        assert_eq!(lost, TOLD as u64 - 3, "{engine}: three of 4 MiB and some fit into 16 MiB");
        // The params of a dropped message are dropped as well.
        let (bytes, lost) = held(100, 1 << 20);
        assert!(bytes < TOLD * 1024, "{engine} holds {bytes} bytes");
        assert_eq!(lost, 0, "{engine}");
    }
}
