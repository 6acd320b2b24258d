//! A server of a few lines: it negotiates 2025-11-25 with a session. A closure of the test makes
//! all other responses.

use super::super::net::Net;
use super::site::{Conn, Site};
use super::wire::{self, Request};
use bytes::Bytes;
use mcp_proto::Instant;
use serde_json::json;
use std::collections::BTreeMap;
use std::time::Duration;

/// A delayed message: its time and order, its connection, and whether that ends then.
type Later = BTreeMap<(Instant, u64), (Conn, Option<Bytes>)>;

/// The server: `answer` receives every request except those of the handshake and of the end.
pub struct Stub<F> {
    answer: F,
    later: Later,
    next: u64,
}

/// The answer to one request.
pub struct Turn<'a> {
    /// The connection of the request.
    pub conn: Conn,
    /// The connections.
    pub net: &'a mut Net,
    later: &'a mut Later,
    next: &'a mut u64,
}

impl<F: FnMut(&mut Turn<'_>, &Request)> Stub<F> {
    /// A server that answers like this.
    pub const fn new(answer: F) -> Self {
        Self { answer, later: BTreeMap::new(), next: 0 }
    }
}

impl<F: FnMut(&mut Turn<'_>, &Request)> Site for Stub<F> {
    fn request(&mut self, conn: Conn, request: Request, net: &mut Net) {
        let body = request.json();
        let mut turn = Turn { conn, net, later: &mut self.later, next: &mut self.next };
        match (request.method.as_str(), body["method"].as_str()) {
            ("DELETE", _) => turn.respond(200, &[], ""),
            ("POST", Some("initialize")) => {
                let capabilities = json!({"tools": {"listChanged": true}});
                let info = json!({"name": "stub", "version": "1"});
                let result = json!({"protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": info});
                let answer = json!({"jsonrpc": "2.0", "id": body["id"], "result": result}).to_string();
                turn.respond(200, &[("Content-Type", "application/json"), ("Mcp-Session-Id", "one")], &answer);
            }
            ("POST", Some(method)) if method.starts_with("notifications/") => turn.respond(202, &[], ""),
            _ => (self.answer)(&mut turn, &request),
        }
    }

    fn gone(&mut self, conn: Conn, _net: &mut Net) {
        self.later.retain(|_, (of, _)| *of != conn);
    }

    fn due(&self) -> Option<Instant> {
        self.later.keys().next().map(|(at, _)| *at)
    }

    fn wake(&mut self, net: &mut Net) {
        match self.later.pop_first() {
            Some((_, (conn, Some(bytes)))) => net.write(conn, bytes),
            Some((_, (conn, None))) => net.end(conn),
            None => {}
        }
    }
}

impl Turn<'_> {
    /// A whole response.
    pub fn respond(&mut self, status: u16, headers: &[(&str, &str)], body: &str) {
        self.net.write(self.conn, wire::response(status, headers, body));
    }

    /// The result of the request, as JSON.
    pub fn result(&mut self, request: &Request, result: &serde_json::Value) {
        let answer = json!({"jsonrpc": "2.0", "id": request.json()["id"], "result": result}).to_string();
        self.respond(200, &[("Content-Type", "application/json")], &answer);
    }

    /// Begins a stream of events.
    pub fn stream(&mut self) {
        self.net.write(self.conn, wire::stream_head(&[], true));
    }

    /// Sends an event.
    pub fn event(&mut self, id: Option<&str>, retry: Option<u64>, data: &str) {
        self.net.write(self.conn, wire::piece(&wire::event(id, retry, data), true));
    }

    /// Ends the stream; the connection may be used again.
    pub fn end(&mut self) {
        self.net.write(self.conn, wire::LAST_CHUNK);
    }

    /// Sends an event after a while, if the connection is still open.
    pub fn event_after(&mut self, after: Duration, id: Option<&str>, data: &str) {
        self.later(after, Some(wire::piece(&wire::event(id, None, data), true)));
    }

    /// Cuts the connection after a while.
    pub fn cut_after(&mut self, after: Duration) {
        self.later(after, None);
    }

    fn later(&mut self, after: Duration, bytes: Option<Bytes>) {
        *self.next += 1;
        self.later.insert((self.net.now + after, *self.next), (self.conn, bytes));
    }
}
