//! The duplex exchange: stdio, a socket, a pair of streams.

use super::{Duplex, Exchange};
use crate::client::era::Phase;
use crate::client::outbox::Outbox;
use crate::client::{Client, State, Timer};
use crate::exchange::{Closed, ExchangeEvent, ExchangeId, Inbound, Outbound, Sent};

impl Client {
    pub(super) fn on_duplex(&mut self, exchange: ExchangeId, fact: ExchangeEvent) {
        match fact {
            ExchangeEvent::Opened(_) => self.exchanges.mark_opened(exchange),
            ExchangeEvent::Unsent(n) => {
                let Some(duplex) = self.exchanges.duplex_mut(exchange) else { return };
                duplex.written += duplex.unsent.saturating_sub(n) as u64;
                duplex.unsent = n;
                let written = duplex.written;
                self.on_written(written, written.saturating_add(n as u64));
            }
            ExchangeEvent::Unsendable { id: Some(id), reason } => self.deny(exchange, &id, Sent::No, reason),
            ExchangeEvent::Unsendable { id: None, reason } => self.on_notification_denied(reason),
            ExchangeEvent::Inbound(Inbound::End) => self.on_duplex_end(exchange),
            ExchangeEvent::Inbound(item) => {
                // An item proves that it is open, also where a driver of seam B does not say so.
                self.exchanges.mark_opened(exchange);
                match self.state() {
                    State::Probing | State::Initializing | State::Ready => self.on_items(exchange, item),
                    // Everything was settled when the end was decided.
                    State::Lapsed | State::Ending | State::Restarting | State::Closing | State::Terminated => {}
                }
            }
            ExchangeEvent::Failed { why, .. } => self.on_duplex_failed(exchange, why),
            // Sent to servers only, or over HTTP only.
            ExchangeEvent::From(_) | ExchangeEvent::ReadClosed | ExchangeEvent::Repeated | ExchangeEvent::Waiting => {}
        }
    }

    /// The server will say no more. Nothing can be answered now, but a program's exit status usually follows at once and says why.
    fn on_duplex_end(&mut self, exchange: ExchangeId) {
        match core::mem::replace(&mut self.phase, Phase::Terminated) {
            Phase::Ready(info) => self.phase = Phase::Ending(info),
            phase @ (Phase::Probing { .. } | Phase::Initializing { .. }) => {
                self.timers.set(Timer::Handshake, None);
                self.phase = phase;
            }
            phase @ (Phase::Lapsed | Phase::Ending(_) | Phase::Restarting | Phase::Closing(_) | Phase::Terminated) => {
                return self.phase = phase;
            }
        }
        if let Some(Exchange::Duplex(duplex)) = self.exchanges.get_mut(&exchange) {
            duplex.send_end(exchange, &mut self.out);
        }
        self.end_pings();
        self.end_watching();
        // No answer could be sent any more.
        self.withdraw_all();
        let grace = self.config.limits.client.exit_grace;
        self.timers.set(Timer::ExitGrace, Some(self.now + grace));
    }

    /// The exit status did not come in time.
    pub(in crate::client) fn on_exit_grace(&mut self) {
        match self.state() {
            State::Probing | State::Initializing => {
                let Some(exchange) = self.duplex() else { return };
                self.exchanges.remove(&exchange);
                self.out.abort(exchange);
                self.on_handshake_closed(true, Closed::Eof);
            }
            State::Ready | State::Ending => self.lost(Closed::Eof),
            State::Lapsed | State::Restarting | State::Closing | State::Terminated => {}
        }
    }

    fn on_duplex_failed(&mut self, exchange: ExchangeId, why: Closed) {
        let Some(state) = self.exchanges.remove(&exchange) else { return };
        self.timers.set(Timer::ExitGrace, None);
        self.end_notifications(&why);
        match self.state() {
            State::Probing | State::Initializing => {
                let opened = matches!(state, Exchange::Duplex(Duplex { opened: true, .. }));
                self.on_handshake_closed(opened, why);
            }
            State::Ready | State::Ending => self.lost(why),
            State::Restarting => self.restart_if_due(),
            State::Closing => self.terminate_if_done(),
            State::Lapsed | State::Terminated => {}
        }
    }
}

impl Duplex {
    /// We have said all: once.
    pub(super) fn send_end(&mut self, exchange: ExchangeId, out: &mut Outbox) {
        if !core::mem::replace(&mut self.sent_end, true) {
            out.send(exchange, Outbound::End);
        }
    }
}
