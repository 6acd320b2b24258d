//! What only the connection of an HTTP server does: the next request, the wait for its body, and what becomes of its answer.
//!
//! Persistence and pipelining are those of RFC 9112 section 9: a pipelined request starts only after the answer before it is written, and
//! never once its client is gone.

use super::{Connection, Due, RateFloor, Side};
use crate::exchange::{BadRequest, Closed, ExchangeEvent, ExchangeId, Inbound, Peer, Sent};
use crate::wired::room::{MemoryBudget, Reservation};

impl Connection {
    /// For an engine that admits requests and connections: reads no further than the head of an HTTP request, and nothing of a connection of
    /// lines that a listener accepted, until [`Outbound::Continue`](crate::exchange::Outbound::Continue) is said on its exchange. A client that waits to be asked for its body is asked only then. An answer
    /// that is said instead is the last: the channel ends in order. While a body is held back no time of the client runs, and of what it
    /// sends all the same no more is held than [`FrameLimits::max_read_ahead`](crate::limits::FrameLimits::max_read_ahead).
    #[must_use]
    pub fn holding(mut self, holding: bool) -> Self {
        let is_asked = self.side != Side::DuplexServer || self.peer.as_ref().is_some_and(|peer| peer.is_accepted());
        self.conn.set_holding(holding && is_asked);
        self
    }

    /// Holds of half-read requests no more than there is room for among all connections that were given this room.
    pub(in crate::wired) fn within(mut self, room: &MemoryBudget) -> Self {
        self.share = (self.side == Side::HttpServer).then(|| room.share());
        self
    }

    /// Tells what is held now that all is understood that can be. True: there is no room for what came, and the request is refused like one
    /// that is malformed. What only waits is not refused: no more of it is read.
    pub(super) fn outgrows(&mut self) -> bool {
        let held = self.conn.buffered();
        let fits = self.share.as_mut().is_none_or(|share| share.hold(held));
        if fits || self.holds() || self.ending.is_some() || self.gone.is_some() {
            return false;
        }
        self.refuse(BadRequest { status: 503, why: "there is no room for the request now" });
        true
    }

    /// Whether what is read only waits, and there is no room for more of it.
    pub(super) fn waits_for_room(&self) -> bool {
        self.holds() && self.share.as_ref().is_some_and(Reservation::is_full)
    }

    /// Whether what is read waits as raw bytes: a body that is held back, or requests behind an answer that is not out. A client that does
    /// not read its answers cannot make us compute more of them.
    pub(super) fn holds(&self) -> bool {
        let unfinished = if self.exchange.is_some() { self.asked || self.conn.is_held() } else { self.unsent > 0 };
        self.side == Side::HttpServer && unfinished
    }

    /// Begins the exchange of the next request, unless its client has gone.
    pub(super) fn accept(&mut self) -> bool {
        if self.eof || self.gone.is_some() || self.ending.is_some() || self.holds() {
            return false;
        }
        match self.conn.poll_item() {
            Some(item) => {
                let exchange = self.mint();
                self.await_body();
                if let (Inbound::Request(_), Some(peer)) = (&item, &self.peer) {
                    self.facts.push_back((exchange, ExchangeEvent::From(Peer::clone(peer))));
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

    /// Whether a byte of the next request came.
    pub(super) fn has_begun(&self) -> bool {
        !self.conn.at_boundary()
    }

    pub(super) fn mint(&mut self) -> ExchangeId {
        self.sequence += 1;
        let exchange = ExchangeId::accepted(self.number, self.sequence);
        self.exchange = Some(exchange);
        self.handed = false;
        self.asked = false;
        exchange
    }

    /// The head is there, and the body is wanted: its time begins.
    pub(super) fn await_body(&mut self) {
        self.pace = RateFloor::from(self.now);
        self.body_goes_on(0);
    }

    /// So many bytes of the body came. It may neither stand still nor trickle.
    pub(super) fn body_goes_on(&mut self, n: usize) {
        if self.conn.is_held() {
            self.timer = None;
        } else {
            self.arm_paced(n, self.limits.body_timeout, Due::Body);
        }
    }

    /// The client sends nothing more and has sent its whole request. Whether it may still read the answer is known to the engine. False: it
    /// was told.
    pub(super) fn read_closed(&mut self, exchange: ExchangeId) -> bool {
        let first = !core::mem::replace(&mut self.told_eof, true);
        if first {
            self.facts.push_back((exchange, ExchangeEvent::ReadClosed));
        }
        first
    }

    /// The request that was begun does not come: the engine says so like it says that one is malformed.
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

    /// The answer is said. The channel goes on if the codec read the whole request and both sides want to.
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

    /// So many bytes of an answer that was said are written.
    pub(super) fn answer_goes_out(&mut self, n: usize) {
        self.pace.goes_on(self.now, n, self.limits.write_stall, self.limits.min_rate);
        if self.unsent == 0 {
            self.answered = None;
        }
    }

    /// What is awaited next: that the answer is taken, or another request.
    pub(super) fn arm_next(&mut self) {
        if self.unsent > 0 {
            self.arm_paced(0, self.limits.write_stall, Due::Write);
        } else {
            self.arm(self.limits.idle_timeout, Due::Idle);
        }
    }

    /// The channel ends before an answer that was said is written.
    pub(super) fn unwritten(&mut self, why: &Closed) {
        if let Some(exchange) = self.answered.take() {
            self.facts.push_back((exchange, ExchangeEvent::Failed { sent: Sent::Maybe, why: why.clone() }));
        }
    }
}
