//! One side of a WebSocket for suites that judge the framing alone: their messages are no JSON-RPC.

use crate::exchange::{Body, Headers, Inbound, Outbound, RequestHead, WsDialect};
use crate::frame::{Conn, Kind, Upgrade, WsSupport, check_request};
use crate::limits::FrameLimits;
use bytes::Bytes;

/// The codec of a WebSocket connection whose text messages are returned as they are. For this
/// project's own tests; an application has no use for it.
#[derive(Debug)]
pub struct TextSocket {
    conn: Conn,
    /// The handshake request of a client, as far as it was read.
    request: Option<RequestHead>,
    /// Nothing follows.
    ended: bool,
}

impl TextSocket {
    /// Creates the side of a server. `max` is the maximum length of a message in bytes.
    pub fn server(max: usize) -> Self {
        Self::new(Conn::new(Kind::HttpServer, &limits(max)))
    }

    /// Creates the side of a client, which asks this host for this target.
    pub fn client(host: &str, target: &str, max: usize, seed: [u8; 32]) -> Self {
        let mut conn = Conn::seeded(Kind::WsClient(WsDialect::JsonRpc), &limits(max), seed);
        let headers = Headers::new().with("Host", host);
        let head = RequestHead { method: "GET".into(), target: target.into(), headers };
        conn.encode(Outbound::Request { head, body: Bytes::new() });
        Self::new(conn)
    }

    fn new(conn: Conn) -> Self {
        Self { conn, request: None, ended: false }
    }

    /// Adds bytes that were read.
    pub fn bytes(&mut self, bytes: Bytes) {
        self.conn.bytes(bytes);
    }

    /// Reports that the peer sends nothing more.
    pub fn eof(&mut self) {
        self.conn.eof();
    }

    /// Returns the next text message. `None` until more bytes are read, or if the connection
    /// [has ended](Self::is_ended).
    pub fn poll_text(&mut self) -> Option<Bytes> {
        while !self.conn.is_web_socket() {
            let Some(item) = self.conn.poll_item() else {
                self.ended |= self.conn.broken().is_some();
                return None;
            };
            match item {
                Inbound::Request(head) => self.request = Some(head),
                Inbound::End => self.accept(),
                Inbound::Reject(_) => self.ended = true,
                // Only the response to a handshake opens the connection of a client.
                _ => {}
            }
        }
        let text = self.conn.poll_text();
        if text.is_none() {
            self.ended |= self.conn.take_end().is_some();
        }
        text
    }

    /// Answers a handshake.
    fn accept(&mut self) {
        match (self.request.take(), WsSupport::get()) {
            (Some(head), Some(support)) => match check_request(&head, false, support) {
                Upgrade::Accept(accepted) => {
                    let body = Body::WebSocket(WsDialect::JsonRpc);
                    self.conn.encode(Outbound::Response { head: accepted.response(), body });
                }
                Upgrade::None | Upgrade::Refuse(_) => self.ended = true,
            },
            _ => self.ended = true,
        }
    }

    /// Sends a text message, unless the connection is closed.
    pub fn text(&mut self, text: Bytes) {
        self.conn.encode(Outbound::Message(text));
    }

    /// Returns the next bytes to write. Those of an earlier call must be written: a pong follows
    /// only then.
    pub fn poll_write(&mut self) -> Option<Bytes> {
        self.conn.poll_write().or_else(|| self.conn.poll_pong())
    }

    /// Returns whether the peer has closed or broken the connection. It is to be closed once
    /// everything is written.
    pub fn is_ended(&self) -> bool {
        self.ended
    }
}

fn limits(max: usize) -> FrameLimits {
    FrameLimits { max_line: max, ..FrameLimits::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
