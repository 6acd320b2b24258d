//! A WebSocket (RFC 6455): its handshake on both sides, the check whether the peer is alive, and
//! its end. A server closes the connection first, and a client waits for that for a limited time
//! (section 7.1.1).

use super::{Connection, ConnectionOutput, ConnectionRole, Due};
use crate::auth::NONCE_FIELD;
use crate::exchange::{
    Closed, ExchangeEvent, ExchangeId, Outbound, Peer, RequestHead, ResponseHead, Sent, Shutdown, UpgradeRefusal,
};
use crate::frame::CloseCode;
use crate::time::Instant;
use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use bytes::Bytes;

/// The state of a WebSocket.
#[derive(Debug)]
pub(super) struct WebSocket {
    /// The client's handshake, until the connection is open.
    handshake: Option<RequestHead>,
    /// When the latest byte was received.
    heard: Instant,
}

impl WebSocket {
    pub(super) const fn asking(handshake: RequestHead, now: Instant) -> Self {
        Self { handshake: Some(handshake), heard: now }
    }
}

impl Connection {
    /// Client: sends the handshake. Until the server has accepted it, the exchange is not open.
    pub(super) fn ask_for_web_socket(&mut self) {
        if let Some(head) = self.web_socket.as_mut().and_then(|socket| socket.handshake.take()) {
            self.conn.encode(Outbound::Request { head, body: Bytes::new() });
            self.collect();
            self.arm(self.limits.open_timeout, Due::Answer);
        }
    }

    /// Client: handles the response to the handshake.
    pub(super) fn web_socket_answered(&mut self, exchange: ExchangeId, head: &ResponseHead) {
        if self.conn.is_web_socket() {
            self.collect();
            let peer = Peer { address: self.address(), ..Peer::default() };
            self.events.push_back((exchange, ExchangeEvent::Opened(peer)));
            return self.await_sign_of_life();
        }
        let mut response = UpgradeRefusal::new(head.status);
        response.address = self.address();
        response.challenges = head.headers.all("www-authenticate").map(ToOwned::to_owned).collect();
        response.dpop_nonce = head.headers.get(NONCE_FIELD).map(ToOwned::to_owned);
        response.retry_after = head.headers.retry_after();
        let mut locations = head.headers.all("location");
        response.location = locations.next().filter(|_| locations.next().is_none()).map(ToOwned::to_owned);
        self.exchange = None;
        let why = Closed::NotUpgraded(Box::new(response));
        self.events.push_back((exchange, ExchangeEvent::Failed { sent: Sent::No, why }));
        self.abort_channel();
    }

    /// Server: an HTTP response has completed the handshake. Both sides: `last` closes the
    /// connection in order, and messages of the peer are read until its own `Close`.
    pub(super) fn upgrade_or_close(&mut self, last: bool) {
        if !self.conn.is_web_socket() {
            return;
        }
        if self.role == ConnectionRole::HttpServer {
            self.role = ConnectionRole::WsServer;
            self.asked = false;
            self.await_sign_of_life();
        } else if last {
            self.arm(self.limits.linger_timeout, Due::Linger);
        }
    }

    /// Takes the answer to a ping of the peer, once everything before it is written.
    #[inline(never)]
    pub(super) fn collect_pong(&mut self) {
        if self.unsent == 0
            && let Some(pong) = self.conn.poll_pong()
        {
            self.unsent += pong.len();
            self.outputs.push_back(ConnectionOutput::Write(pong));
        }
    }

    /// Ends the exchange if the peer has closed the connection, or broken a rule. The codec has
    /// queued the answer. Returns whether it has.
    #[inline(never)]
    pub(super) fn ends_web_socket(&mut self, exchange: ExchangeId) -> bool {
        let Some(why) = self.conn.take_end() else { return false };
        self.collect();
        self.exchange = None;
        let is_gone = why == Closed::Eof;
        self.events.push_back((exchange, ExchangeEvent::Failed { sent: Sent::Maybe, why }));
        if is_gone {
            self.abort_channel()
        } else {
            self.leave_web_socket()
        }
        true
    }

    /// Ends the exchange, since the server has no room for the message that the peer sends.
    pub(super) fn has_no_room(&mut self, why: &str) {
        let Some(exchange) = self.exchange.take() else { return };
        let failed = ExchangeEvent::Failed { sent: Sent::Maybe, why: Closed::Broken(why.into()) };
        self.events.push_back((exchange, failed));
        self.conn.give_up_web_socket(CloseCode::TryLater);
        self.collect();
        self.leave_web_socket();
    }

    /// Closes an open WebSocket without waiting for the peer: the engine has no use for what it
    /// sends. Returns whether there is one.
    pub(super) fn close_web_socket(&mut self) -> bool {
        let code = match self.role {
            ConnectionRole::WsServer => CloseCode::Policy,
            _ => CloseCode::GoingAway,
        };
        if !self.open || self.gone.is_some() || self.ending.is_some() || !self.conn.give_up_web_socket(code) {
            return false;
        }
        self.collect();
        self.exchange = None;
        self.leave_web_socket();
        true
    }

    /// Both sides have sent their `Close`, or this one will read no other.
    fn leave_web_socket(&mut self) {
        match self.role {
            ConnectionRole::WsServer => self.half_close(),
            _ => {
                // The server closes first.
                self.ending = Some(Shutdown::WriteHalf);
                self.arm_end();
            }
        }
    }

    /// Starts the time after which a silent peer is asked for a sign of life.
    fn await_sign_of_life(&mut self) {
        self.web_socket = Some(Box::new(WebSocket { handshake: None, heard: self.now }));
        self.timer = self.limits.ping_interval.map(|after| (self.now + after, Due::Ping));
    }

    /// Asks the peer for a sign of life, if it was silent.
    pub(super) fn ping_web_socket(&mut self) {
        let (Some(interval), Some(socket)) = (self.limits.ping_interval, &self.web_socket) else { return };
        let due = socket.heard + interval;
        if self.now < due {
            self.timer = Some((due, Due::Ping));
            return;
        }
        self.conn.ping();
        self.collect();
        self.arm(self.limits.pong_timeout, Due::Pong);
    }

    /// A byte of the peer was received.
    pub(super) fn on_sign_of_life(&mut self) {
        if let Some(socket) = &mut self.web_socket {
            socket.heard = self.now;
        }
        if let Some((_, Due::Pong)) = self.timer {
            self.await_sign_of_life();
        }
    }
}
