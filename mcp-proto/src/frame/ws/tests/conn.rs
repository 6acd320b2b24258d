//! The codec of a connection that becomes a WebSocket.

use super::super::handshake::{Upgrade, check_request};
use super::*;
use crate::exchange::{Body, Closed, Headers, Inbound, Outbound, RequestHead, WsDialect};
use crate::frame::{Conn, Kind};
use crate::limits::FrameLimits;
use core::iter::from_fn;

const TEXT: &[u8] = br#"{"jsonrpc":"2.0","method":"m"}"#;

fn written(conn: &mut Conn) -> Bytes {
    from_fn(|| conn.poll_write()).flatten().collect()
}

/// Returns a client that has sent its handshake, its request, and a response to it.
fn handshake() -> (Conn, Bytes, Bytes) {
    let limits = FrameLimits::default();
    let mut client = Conn::seeded(Kind::WsClient(WsDialect::JsonRpc), &limits, [7; 32]);
    let head = RequestHead { method: "GET".into(), target: "/".into(), headers: Headers::new().with("Host", "h") };
    client.encode(Outbound::Request { head, body: Bytes::new() });
    let request = written(&mut client);
    let mut server = Conn::new(Kind::HttpServer, &limits);
    server.bytes(request.clone());
    let response = accept(&mut server);
    (client, request, response)
}

/// Reads the request, and returns the response.
fn accept(server: &mut Conn) -> Bytes {
    let Some(Inbound::Request(head)) = server.poll_item() else { panic!() };
    assert_eq!(server.poll_item(), Some(Inbound::End));
    let Upgrade::Accept(accepted) = check_request(&head, false, WsSupport::get().unwrap()) else { panic!() };
    server.encode(Outbound::Response { head: accepted.response(), body: Body::WebSocket(WsDialect::JsonRpc) });
    written(server)
}

/// The message after the handshake, and then the end.
fn check_rest(conn: &mut Conn) {
    assert!(matches!(conn.poll_item(), Some(Inbound::Message(_))));
    assert_eq!((conn.poll_item(), conn.take_end(), conn.take_end()), (None, Some(Closed::Eof), None));
}

// covers: WS-S-013
#[test]
fn bytes_after_the_handshake_are_the_first_frame() {
    let (_, request, _) = handshake();
    let bytes = [&request, &Reader::Server.wire(&[(0x81, TEXT)])[..]].concat();
    // The frame is read with the request, in part or as a whole.
    for end in request.len()..=bytes.len() {
        let mut server = Conn::new(Kind::HttpServer, &FrameLimits::default());
        server.bytes(Bytes::copy_from_slice(&bytes[..end]));
        accept(&mut server);
        server.bytes(Bytes::copy_from_slice(&bytes[end..]));
        assert!(matches!(server.poll_item(), Some(Inbound::Message(_))), "{end}");
        assert!(server.poll_item().is_none() && server.at_boundary());
    }
}

// covers: WS-S-013
#[test]
fn end_reported_before_the_handshake_is_read_is_kept() {
    let (mut client, request, response) = handshake();
    client.bytes([&response, &Reader::Client.wire(&[(0x81, TEXT)])[..]].concat().into());
    client.eof();
    assert!(matches!(client.poll_item(), Some(Inbound::Response(_))));
    check_rest(&mut client);
    let mut server = Conn::new(Kind::HttpServer, &FrameLimits::default());
    server.bytes([&request, &Reader::Server.wire(&[(0x81, TEXT)])[..]].concat().into());
    server.eof();
    accept(&mut server);
    check_rest(&mut server);
}
