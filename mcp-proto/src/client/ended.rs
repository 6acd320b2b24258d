//! The end of the client: the application closes it, the negotiation fails, or the server of a
//! duplex connection ends. For another server, the application or its supervisor connects another
//! client.

use super::handshake::HandshakeEvent;
use super::link::Link;
use super::{Client, Event, State, Target, Termination, Timer};
use crate::error::CallError;
use crate::exchange::{Closed, Endpoint, Sent};

impl Client {
    /// Handles the end of the server's output. The client can receive no more responses, but the
    /// exit status of a program usually follows at once and gives the reason.
    pub(super) fn on_output_ended(&mut self) {
        match self.state() {
            State::Ready => self.cx.env.phase.end_output(),
            State::Probing | State::Initializing => self.cx.env.timers.set(Timer::Handshake, None),
            State::NoServer | State::Lapsed | State::Ending | State::Closing | State::Terminated => return,
        }
        if let Link::Duplex(duplex) = &mut self.cx.link {
            duplex.send_end(&mut self.cx.env);
        }
        self.pings.end(&mut self.cx.env);
        self.forget_subscriptions();
        // The client can send no more answers.
        self.cx.questions.withdraw_all(&mut self.cx.env);
        self.cx.answer_tasks.clear(&mut self.cx.env);
        let grace = self.cx.env.config.limits.client.exit_grace;
        self.cx.env.timers.set(Timer::ExitGrace, Some(self.cx.env.now + grace));
    }

    /// Continues without the exit status, which did not arrive in time.
    pub(super) fn on_exit_grace(&mut self) {
        match self.cx.env.state() {
            State::Probing | State::Initializing => {
                if let Link::Duplex(duplex) = &mut self.cx.link
                    && duplex.abort(&mut self.cx.env)
                {
                    self.on_handshake(HandshakeEvent::Closed(Sent::Maybe, Closed::Eof));
                }
            }
            State::Ready | State::Ending => self.shut(Termination::Closed(Closed::Eof)),
            State::NoServer | State::Lapsed | State::Closing | State::Terminated => {}
        }
    }

    /// Handles the end of the duplex exchange.
    pub(super) fn on_duplex_failed(&mut self, sent: Sent, why: Closed) {
        self.cx.env.timers.set(Timer::ExitGrace, None);
        self.notifications.end_all(&mut self.cx.env, &why);
        match self.cx.env.state() {
            State::Probing | State::Initializing => self.on_handshake(HandshakeEvent::Closed(sent, why)),
            State::Ready | State::Ending => self.shut(Termination::Closed(why)),
            State::NoServer | State::Closing | State::Lapsed | State::Terminated => {}
        }
    }

    /// Ends all calls, questions and exchanges. `Terminated` follows when the last exchange has
    /// ended.
    pub(super) fn shut(&mut self, why: Termination) {
        match self.cx.env.state() {
            State::Closing | State::Terminated => return,
            State::NoServer | State::Probing | State::Initializing | State::Ready | State::Lapsed | State::Ending => {}
        }
        let session = self.cx.env.version().filter(|_| why == Termination::Requested && !self.cx.env.is_duplex());
        self.stop_refreshing();
        self.cx.tools.clear();
        if why == Termination::Requested {
            self.subscription.to_cancel(&self.cx.env).iter().for_each(|id| self.cx.send_cancel(id, None));
        }
        self.forget_subscriptions();
        self.end_all_calls(&why);
        self.pings.end(&mut self.cx.env);
        self.close_login();
        self.fetches.end_all(&mut self.cx.env);
        self.cx.env.ids.retire_handshake();
        self.cx.questions.withdraw_all(&mut self.cx.env);
        self.cx.answer_tasks.clear(&mut self.cx.env);
        if let Some(http) = self.cx.link.http_mut() {
            http.clear();
        }
        self.cx.env.timers.clear();
        let requested = why == Termination::Requested;
        self.cx.env.phase.close(why);
        if let Some(http) = self.cx.link.http_mut() {
            http.delete_session_last(session);
        }
        self.end_exchanges(requested);
        self.terminate_if_done();
    }

    /// Ends every call, since no response can arrive any more.
    fn end_all_calls(&mut self, why: &Termination) {
        while let Some((call, state)) = self.cx.calls.first() {
            let (_, sent) = self.cx.whereabouts(state);
            let error = match why {
                // Too many sessions ended in a row.
                Termination::Negotiation(_) if sent == Sent::Maybe => CallError::SessionEnded,
                Termination::Negotiation(e) => CallError::Negotiation(e.clone()),
                Termination::Requested => CallError::Closed { sent, why: Closed::Aborted },
                Termination::Closed(why) => CallError::Closed { sent, why: why.clone() },
            };
            self.end(call, Err(error));
        }
    }

    /// Ends all exchanges: a duplex one in order, HTTP ones at once. If the application closed the
    /// client, a notification that is in flight over HTTP has limited time to complete. The client
    /// also drops a connection that is still being opened, since its server has seen nothing. A
    /// program runs already, or will run, and has time to end in order.
    fn end_exchanges(&mut self, requested: bool) {
        let is_program = matches!(self.cx.env.config.target, Target::Duplex(Endpoint::Program(_)));
        match &mut self.cx.link {
            Link::Duplex(duplex) if duplex.has_reached_server() || is_program => duplex.send_end(&mut self.cx.env),
            Link::Duplex(_) => self.drop_duplex(),
            Link::Http(_, http) => {
                for exchange in http.ids() {
                    self.with_http(|http, env| http.end(env, exchange, requested));
                    self.terminate_if_done();
                }
            }
        }
    }

    /// Drops the duplex exchange. The notifications on it end as aborted.
    pub(super) fn drop_duplex(&mut self) {
        if let Link::Duplex(duplex) = &mut self.cx.link
            && duplex.abort(&mut self.cx.env)
        {
            self.notifications.end_all(&mut self.cx.env, &Closed::Aborted);
        }
        self.terminate_if_done();
    }

    pub(super) fn terminate_if_done(&mut self) {
        if !self.cx.link.is_empty() || self.cx.env.state() != State::Closing {
            return;
        }
        if let Some(http) = self.cx.link.http_mut()
            && http.delete_session(&mut self.cx.env)
        {
            return;
        }
        self.notifications.end_all(&mut self.cx.env, &Closed::Aborted);
        if let Some(why) = self.cx.env.phase.terminate() {
            self.cx.env.timers.clear();
            self.cx.env.out.finish(Event::Terminated(why));
        }
    }
}
