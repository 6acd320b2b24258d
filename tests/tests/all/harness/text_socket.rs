//! The WebSocket of the suites that judge framing alone.

use bytes::Bytes;
use mcp_tests::autobahn::text_socket::TextSocket;

const MAX: usize = 1000;

/// Carries what one side has to write to the other, and returns its texts.
fn carry(from: &mut TextSocket, to: &mut TextSocket) -> Vec<Bytes> {
    while let Some(bytes) = from.poll_write() {
        to.bytes(bytes);
    }
    core::iter::from_fn(|| to.poll_text()).collect()
}

fn open() -> (TextSocket, TextSocket) {
    let mut client = TextSocket::client("localhost", "/a?b=c", MAX, [7; 32]);
    let mut server = TextSocket::server(MAX);
    assert!(carry(&mut client, &mut server).is_empty());
    assert!(carry(&mut server, &mut client).is_empty());
    (client, server)
}

#[test]
fn texts_go_both_ways_as_they_are() {
    let (mut client, mut server) = open();
    for text in ["", "*", "{}", "[1,2", "\u{10ffff}"] {
        client.text(text.into());
        assert_eq!(carry(&mut client, &mut server), [text]);
        server.text(text.into());
        assert_eq!(carry(&mut server, &mut client), [text]);
    }
    assert!(!client.is_ended() && !server.is_ended());
}

#[test]
fn pings_are_answered_and_a_close_ends_both_sides() {
    let (mut client, mut server) = open();
    client.bytes(Bytes::from_static(b"\x89\x01a"));
    assert_eq!(client.poll_text(), None);
    assert!(client.poll_write().is_some_and(|pong| pong[0] == 0x8a));
    client.bytes(Bytes::from_static(b"\x82\x00"));
    assert_eq!(client.poll_text(), None);
    assert!(client.is_ended(), "a binary message");
    assert!(carry(&mut client, &mut server).is_empty());
    assert!(server.is_ended());
}

#[test]
fn end_and_other_requests_end_a_socket() {
    let (mut client, _) = open();
    client.eof();
    assert_eq!((client.poll_text(), client.is_ended()), (None, true));
    for request in ["GET / HTTP/1.1\r\nhost: h\r\n\r\n", "no request\r\n\r\n"] {
        let mut server = TextSocket::server(MAX);
        server.bytes(request.into());
        assert_eq!((server.poll_text(), server.is_ended()), (None, true), "{request}");
    }
    let mut client = TextSocket::client("localhost", "/", MAX, [7; 32]);
    client.bytes(Bytes::from_static(b"HTTP/1.1 101 Switching Protocols\r\n\r\n"));
    assert_eq!((client.poll_text(), client.is_ended()), (None, true));
}
