//! A build without the feature `http` refuses HTTP, and everything else works.
#![cfg(not(feature = "http"))]

use bytes::Bytes;
use mcp_proto::Instant;
use mcp_proto::client::{BadUrl, ClientConfig};
use mcp_proto::exchange::{Action, IoEvent, Peer, Shutdown};
use mcp_proto::frame::{Conn, Kind};
use mcp_proto::limits::FrameLimits;
use mcp_proto::model::lifecycle::Implementation;
use mcp_proto::server::ServerConfig;
use mcp_proto::wired::WiredServer;
use std::sync::Arc;

#[test]
fn urls_and_http_connections_are_refused() {
    let refused = ClientConfig::url("http://localhost/mcp").expect_err("there is no HTTP");
    assert_eq!((refused, refused.to_string().as_str()), (BadUrl, "HTTP is not compiled in"));
    for kind in [Kind::HttpClient, Kind::HttpServer] {
        let mut conn = Conn::new(kind, &FrameLimits::default());
        conn.bytes(Bytes::from_static(b"GET / HTTP/1.1\r\nhost: h\r\n\r\n"));
        assert_eq!((conn.poll_item(), conn.poll_write(), conn.buffered()), (None, None, 0));
        assert_eq!(conn.broken().map(String::as_str), Some("HTTP is not compiled in"));
    }
}

#[test]
fn an_http_connection_of_a_server_is_aborted() {
    let config = Arc::new(ServerConfig::new(Implementation::new("server", "1")));
    let mut server = WiredServer::new(config, [7; 32], Instant::ZERO);
    let id = server.accept(Instant::ZERO, Kind::HttpServer, Peer::default());
    server.handle_io(Instant::ZERO, id, IoEvent::Read(Bytes::from_static(b"GET / HTTP/1.1\r\nhost: h\r\n\r\n")));
    let actions: Vec<_> = std::iter::from_fn(|| server.poll_output()).collect();
    assert!(actions.contains(&Action::Close(id, Shutdown::Abort)), "{actions:?}");
}

#[test]
fn lines_are_served() {
    let config = Arc::new(ServerConfig::new(Implementation::new("server", "1")));
    let mut server = WiredServer::new(config, [7; 32], Instant::ZERO);
    let id = server.accept(Instant::ZERO, Kind::Lines, Peer::default());
    let ping = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n";
    server.handle_io(Instant::ZERO, id, IoEvent::Read(Bytes::from_static(ping)));
    let actions: Vec<_> = std::iter::from_fn(|| server.poll_output()).collect();
    let is_response = |action: &Action<_>| matches!(action, Action::Write(of, _) if *of == id);
    assert!(actions.iter().any(is_response), "{actions:?}");
}
