//! The I/O events of a connection, by its role.

use super::{Connection, ConnectionRole};
use crate::exchange::{Closed, ExchangeEvent, Peer, Shutdown};
use crate::frame::Work;
use alloc::boxed::Box;
use alloc::sync::Arc;
use bytes::Bytes;

impl Connection {
    pub(super) fn opened(&mut self, peer: Peer) {
        if self.open || self.ending == Some(Shutdown::Abort) {
            return;
        }
        if !self.is_proxied() && peer.address.is_some() {
            self.peer = Some(Arc::new(peer.clone()));
        }
        if !self.begin_tunnel() {
            self.connected(peer);
        }
    }

    /// The connection leads to the server.
    pub(super) fn connected(&mut self, peer: Peer) {
        match self.securing() {
            Some(securing) => securing.opened(),
            None => self.begin_use(peer),
        }
    }

    pub(super) fn begin_use(&mut self, peer: Peer) {
        self.open = true;
        self.timer = None;
        match (self.role, self.exchange) {
            (ConnectionRole::DuplexClient { .. }, Some(exchange)) => {
                self.events.push_back((exchange, ExchangeEvent::Opened(peer)))
            }
            (ConnectionRole::HttpClient, None) => self.arm_idle(),
            (ConnectionRole::HttpClient, Some(_)) => self.arm_request(),
            (ConnectionRole::WsClient, Some(_)) => self.ask_for_web_socket(),
            _ => {}
        }
        if self.ending.is_some() {
            self.arm_end();
        }
    }

    pub(super) fn read(&mut self, bytes: Bytes) {
        if self.is_in_tunnel_request() {
            return self.read_tunnel_response(bytes);
        }
        if !self.open || self.eof || bytes.is_empty() || self.ending == Some(Shutdown::Abort) {
            return;
        }
        match (self.role, self.exchange) {
            // After a refusal the connection continues to read, so that the client receives the
            // response and no reset (RFC 9112 section 9.6).
            (ConnectionRole::HttpServer, None) if self.ending.is_some() => return,
            (ConnectionRole::HttpClient, None) => return self.late_bytes(),
            (ConnectionRole::HttpClient, Some(_)) => self.answer_comes(),
            (ConnectionRole::DuplexClient { .. } | ConnectionRole::DuplexServer, None) => return,
            (ConnectionRole::WsClient | ConnectionRole::WsServer, None) => return,
            (ConnectionRole::WsClient | ConnectionRole::WsServer, Some(_)) => self.on_sign_of_life(),
            _ => {}
        }
        self.backlog += bytes.len();
        self.conn.bytes(bytes);
    }

    pub(super) fn end_of_input(&mut self) {
        if self.is_in_tunnel_request() {
            return self.tunnel_broke("it closed the connection".into());
        }
        if !self.open || self.eof {
            return;
        }
        self.eof = true;
        match (self.role, self.exchange) {
            (ConnectionRole::HttpClient | ConnectionRole::WsClient, None) => self.abort_channel(),
            // A complete response is still written.
            (ConnectionRole::HttpServer, None) if self.ending.is_none() => self.half_close(),
            (_, Some(_)) => self.conn.eof(),
            _ => {}
        }
    }

    pub(super) fn written(&mut self, n: usize) {
        let n = self.tunnel_request_written(n).min(self.taken);
        if n == 0 {
            return;
        }
        self.taken -= n;
        self.unsent -= n;
        self.traffic.bytes_out += n as u64;
        if let Some(exchange) = self.exchange.or(self.answered) {
            self.events.push_back((exchange, ExchangeEvent::Unsent(self.unsent)));
        }
        if self.answered.is_some() {
            self.answer_goes_out(n);
        }
        if self.unsent == 0 && self.conn.is_web_socket() {
            // The answer to a ping waits until here.
            self.collect();
        }
        match (self.role, self.ending) {
            (ConnectionRole::HttpServer | ConnectionRole::DuplexServer, Some(Shutdown::WriteHalf)) => self.arm_end(),
            (ConnectionRole::HttpServer, None) if self.exchange.is_none() => self.arm_next(),
            (ConnectionRole::HttpClient, None) if self.exchange.is_none() && self.unsent == 0 => {
                self.arm_idle();
            }
            (ConnectionRole::HttpClient, None) if self.exchange.is_some() => self.arm_request(),
            _ => {}
        }
    }

    pub(super) fn closed(&mut self, why: Closed) {
        // A driver may leave out `Eof` where `Closed` implies it as well.
        if matches!(why, Closed::Eof | Closed::Exited(_)) && self.open && !self.eof {
            self.eof = true;
            self.conn.eof();
        }
        if !self.is_client() {
            // The driver of a server drops the connection now, and resumes nothing.
            (self.work, self.resume) = (Work::unlimited(), None);
        }
        self.unwritten(&why);
        self.gone = Some(Box::new(why));
        self.outputs.clear();
        self.timer = None;
    }
}
