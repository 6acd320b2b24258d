//! One side of a WebSocket for suites that judge the framing alone: their messages are no JSON-RPC.

use bytes::Bytes;
use mcp_proto::exchange::{Body, Headers, Inbound, Outbound, RequestHead, WsDialect};
use mcp_proto::frame::{Conn, Kind, accept_web_socket};
use mcp_proto::limits::FrameLimits;

/// The codec of a WebSocket connection whose text messages are returned as they are.
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
        match self.request.take().and_then(|head| accept_web_socket(&head)) {
            Some(head) => self.conn.encode(Outbound::Response { head, body: Body::WebSocket(WsDialect::JsonRpc) }),
            None => self.ended = true,
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
    let mut limits = FrameLimits::default();
    limits.max_line = max;
    limits
}
