//! The end of the server of a duplex connection. The client terminates with it. For another server,
//! the application or its supervisor connects another client.

use super::link::Link;
use super::phase::{HandshakeEvent, Phase};
use super::{Client, State, Termination, Timer};
use crate::exchange::{Closed, Sent};

impl Client {
    /// Handles the end of the server's output. The client can receive no more responses, but the
    /// exit status of a program usually follows at once and gives the reason.
    pub(super) fn on_output_ended(&mut self) {
        match core::mem::replace(&mut self.env.phase, Phase::Terminated) {
            Phase::Ready(info) => self.env.phase = Phase::Ending(info),
            phase @ (Phase::Probing { .. } | Phase::Initializing { .. }) => {
                self.env.timers.set(Timer::Handshake, None);
                self.env.phase = phase;
            }
            phase @ (Phase::Lapsed | Phase::Ending(_) | Phase::Closing(_) | Phase::Terminated) => {
                return self.env.phase = phase;
            }
        }
        if let Link::Duplex(duplex) = &mut self.link {
            duplex.send_end(&mut self.env);
        }
        self.pings.end(&mut self.env);
        self.forget_subscriptions();
        // The client can send no more answers.
        self.questions.withdraw_all(&mut self.env);
        let grace = self.env.config.limits.client.exit_grace;
        self.env.timers.set(Timer::ExitGrace, Some(self.env.now + grace));
    }

    /// Continues without the exit status, which did not arrive in time.
    pub(super) fn on_exit_grace(&mut self) {
        match self.env.state() {
            State::Probing | State::Initializing => {
                if let Link::Duplex(duplex) = &mut self.link
                    && duplex.abort(&mut self.env)
                {
                    self.on_handshake(HandshakeEvent::Closed(Sent::Maybe, Closed::Eof));
                }
            }
            State::Ready | State::Ending => self.shut(Termination::Closed(Closed::Eof)),
            State::Lapsed | State::Closing | State::Terminated => {}
        }
    }

    /// Handles the end of the duplex exchange.
    pub(super) fn on_duplex_failed(&mut self, sent: Sent, why: Closed) {
        self.env.timers.set(Timer::ExitGrace, None);
        self.notifications.end_all(&mut self.env, &why);
        match self.env.state() {
            State::Probing | State::Initializing => self.on_handshake(HandshakeEvent::Closed(sent, why)),
            State::Ready | State::Ending => self.shut(Termination::Closed(why)),
            State::Closing | State::Lapsed | State::Terminated => {}
        }
    }
}
