//! The parts of a connection that only an HTTP server needs: the next request, the wait for its
//! body, and the progress of its response.
//!
//! Persistence and pipelining are those of RFC 9112 section 9. A pipelined request starts only
//! after the previous response is written, and never once its client has closed.

use super::{Connection, ConnectionRole, Due, RateFloor};
use crate::exchange::{BadRequest, Closed, ExchangeEvent, ExchangeId, Inbound, Sent};
use crate::wired::room::{MemoryBudget, Reservation};
use alloc::sync::Arc;

impl Connection {
    /// For an engine that admits requests and connections. The connection reads no further than the
    /// head of an HTTP request, until [`Outbound::Continue`](crate::exchange::Outbound::Continue)
    /// is sent on its exchange. It reads nothing of a connection of newline-delimited messages that
    /// a listener accepted, until then. It sends `100 Continue` to a client that waits for it only
    /// then. A response that is sent instead is the last one, and the connection closes in order,
    /// unless the whole body has arrived and has a known length: it is dropped then. While a body
    /// is held back, no timeout of the client runs. The connection holds no more than
    /// [`FrameLimits::max_read_ahead`](crate::limits::FrameLimits::max_read_ahead) of the bytes
    /// that the client sends anyway.
    #[must_use]
    pub fn holding(mut self, holding: bool) -> Self {
        let is_asked =
            self.role != ConnectionRole::DuplexServer || self.peer.as_ref().is_some_and(|peer| peer.is_accepted());
        self.conn.set_holding(holding && is_asked);
        self
    }

    /// Sets whether the bodies of an HTTP connection may have a content coding: see
    /// [`Conn::set_coding`](crate::frame::Conn::set_coding).
    #[must_use]
    pub fn with_coding(mut self, on: bool) -> Self {
        self.conn.set_coding(on);
        self
    }

    /// Limits the bytes of partly read requests, and of partly read messages of a WebSocket, to the
    /// budget that all connections with this budget share.
    pub(in crate::wired) fn within(mut self, room: &MemoryBudget) -> Self {
        self.share = (self.role == ConnectionRole::HttpServer).then(|| room.share());
        self
    }

    /// Updates the reservation after all parsing. Returns true if there is no room for the bytes
    /// that were read: the request is refused like a malformed one, and a WebSocket is closed.
    /// Bytes that only wait are not refused. The driver reads no more of them.
    pub(super) fn outgrows(&mut self) -> bool {
        let held = self.conn.buffered();
        let fits = self.share.as_mut().is_none_or(|share| share.hold(held));
        if fits || self.holds() || self.ending.is_some() || self.gone.is_some() {
            return false;
        }
        if self.role == ConnectionRole::WsServer {
            self.has_no_room("there is no room for the message now");
        } else {
            self.refuse(BadRequest { status: 503, why: "there is no room for the request now" });
        }
        true
    }

    /// Returns whether the bytes that were read only wait, and there is no room for more of them.
    pub(super) fn waits_for_room(&self) -> bool {
        self.holds() && self.share.as_ref().is_some_and(Reservation::is_full)
    }

    /// Returns whether the bytes that were read wait in raw form: a body that is held back, or
    /// requests behind an unfinished response. A client that does not read its responses cannot
    /// make the server compute more of them.
    pub(super) fn holds(&self) -> bool {
        let unfinished = if self.exchange.is_some() { self.asked || self.conn.is_held() } else { self.unsent > 0 };
        self.role == ConnectionRole::HttpServer && unfinished
    }

    /// Starts the exchange of the next request, unless its client has closed.
    pub(super) fn accept(&mut self) -> bool {
        if self.eof || self.gone.is_some() || self.ending.is_some() || self.holds() {
            return false;
        }
        match self.conn.poll_item() {
            Some(item) => {
                let exchange = self.mint();
                self.await_body();
                if let (Inbound::Request(_), Some(peer)) = (&item, &self.peer) {
                    self.events.push_back((exchange, ExchangeEvent::From(Arc::clone(peer))));
                }
                self.item(exchange, item);
                true
            }
            None if self.conn.broken().is_some() => {
                self.abort_channel();
                false
            }
            None => {
                if self.has_begun() && !matches!(self.timer, Some((_, Due::Head))) {
                    self.arm(self.limits.head_timeout, Due::Head);
                }
                false
            }
        }
    }

    /// Returns whether a byte of the next request was received.
    pub(super) fn has_begun(&self) -> bool {
        !self.conn.at_boundary()
    }

    pub(super) fn mint(&mut self) -> ExchangeId {
        self.sequence += 1;
        let exchange = ExchangeId::accepted(self.number, self.sequence);
        self.exchange = Some(exchange);
        self.handed = false;
        self.asked = false;
        self.begin_part();
        exchange
    }

    /// The head was received, and the body is awaited: starts its timeout.
    pub(super) fn await_body(&mut self) {
        self.pace = RateFloor::from(self.now);
        self.body_goes_on(0);
    }

    /// Counts `n` received bytes of the body. The body may neither stall nor trickle.
    pub(super) fn body_goes_on(&mut self, n: usize) {
        if self.conn.is_held() {
            self.timer = None;
        } else {
            self.arm_paced(n, self.limits.body_timeout, Due::Body);
        }
    }

    /// The client has sent its whole request and sends nothing more. Only the engine knows whether
    /// the client may still read the response. Returns false if this was already reported.
    pub(super) fn read_closed(&mut self, exchange: ExchangeId) -> bool {
        let first = !core::mem::replace(&mut self.told_eof, true);
        if first {
            self.events.push_back((exchange, ExchangeEvent::ReadClosed));
        }
        first
    }

    /// The rest of a request did not arrive in time. The engine responds as to a malformed one.
    pub(super) fn overdue(&mut self, why: &'static str) {
        self.refuse(BadRequest { status: 408, why });
    }

    fn refuse(&mut self, defect: BadRequest) {
        let Some(item) = self.conn.give_up(defect) else { return self.abort_channel() };
        let exchange = match self.exchange {
            Some(exchange) => exchange,
            None => self.mint(),
        };
        self.item(exchange, item);
    }

    /// The engine has sent the response. The connection stays open if the codec read the whole
    /// request and both sides want to keep it.
    pub(super) fn answered(&mut self, exchange: ExchangeId) {
        self.exchange = None;
        self.answered = (self.unsent > 0).then_some(exchange);
        self.pace = RateFloor::from(self.now);
        let distinct = self.sequence < ExchangeId::MAX_SEQUENCE;
        if !self.eof && distinct && self.conn.keep_alive() {
            self.arm_next();
        } else {
            self.half_close();
        }
    }

    /// Counts `n` written bytes of a response that the engine has sent.
    pub(super) fn answer_goes_out(&mut self, n: usize) {
        self.pace.goes_on(self.now, n, self.limits.write_stall, self.limits.min_rate);
        if self.unsent == 0 {
            self.answered = None;
        }
    }

    /// Arms the timer for the next wait: until the peer has accepted the response, or for another
    /// request.
    pub(super) fn arm_next(&mut self) {
        if self.unsent > 0 {
            self.arm_paced(0, self.limits.write_stall, Due::Write);
        } else {
            self.arm(self.limits.idle_timeout, Due::Idle);
        }
    }

    /// The connection ends before a response that the engine has sent is written.
    pub(super) fn unwritten(&mut self, why: &Closed) {
        if let Some(exchange) = self.answered.take() {
            self.events.push_back((exchange, ExchangeEvent::Failed { sent: Sent::Maybe, why: why.clone() }));
        }
    }
}
