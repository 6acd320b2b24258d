//! The listener: the GET on which a server up to 2025-11-25 sends messages that belong to no
//! request (transports, listening for messages from the server). It is optional on both sides.
//! Calls wait for it for a limited time, since some servers send the input requests of a call on
//! it. Then they continue without it. No failure of the listener ever ends a call.

use super::exchange_end::ExchangeEnd;
use super::stream::NextRound;
use super::{ExchangeRole, HttpExchange, HttpLink, HttpRequest, MessageSummary, ReportedState};
use crate::client::env::ClientEnv;
use crate::client::link::event::LinkEvent;
use crate::client::{Event, HttpTransport, ListenerEnd, ListenerStart, ListenerTime, Timer};
use crate::error::{DiagnosticKind, StreamEnd};
use crate::exchange::{Closed, ExchangeId};
use alloc::string::ToString;
use core::time::Duration;

/// Maximum time that calls wait for the listener.
const HOLD: Duration = Duration::from_secs(1);

impl HttpLink {
    /// Handles the response to `initialize`, before `notifications/initialized` is sent.
    pub(in crate::client) fn before_initialized(&mut self, env: &mut ClientEnv) {
        let limit = self.listener_time(env).map_or(HOLD, |limit| limit.min(HOLD));
        self.holding = true;
        env.timers.set(Timer::Hold, Some(env.now + limit));
        if env.config.compat.listener == ListenerStart::BeforeInitialized && self.transport() != HttpTransport::Sse {
            self.open_listener(env);
        }
    }

    /// Handles the end of `notifications/initialized`, which the server accepted or never will.
    pub(super) fn on_initialized_taken(&mut self, env: &mut ClientEnv) {
        match env.config.compat.listener {
            _ if self.transport() == HttpTransport::Sse => self.release(env),
            ListenerStart::AfterInitialized => self.open_listener(env),
            ListenerStart::BeforeInitialized => {}
            ListenerStart::Never => self.release(env),
        }
    }

    fn open_listener(&mut self, env: &mut ClientEnv) {
        let exchange = self.exchanges.mint();
        self.listener = Some(exchange);
        let limit = self.listener_time(env);
        env.timers.set(Timer::Answer(exchange), limit.map(|limit| env.now + limit));
        let http = HttpExchange::new(ExchangeRole::Listener, HttpRequest::get(env.version(), None));
        self.begin_http(env, exchange, http, Some(MessageSummary::NOTHING));
    }

    fn listener_time(&self, env: &ClientEnv) -> Option<Duration> {
        match env.config.compat.listener_start {
            ListenerTime::Quarter => {
                let quarter = env.config.timeout.map_or(HOLD, |timeout| timeout / 4);
                Some(quarter.clamp(Duration::from_millis(1), HOLD))
            }
            ListenerTime::After(time) => Some(time),
            ListenerTime::Unlimited => None,
        }
    }

    /// Ends the wait of calls for the listener.
    pub(in crate::client) fn release(&mut self, env: &mut ClientEnv) {
        if core::mem::take(&mut self.holding) {
            env.timers.set(Timer::Hold, None);
            self.events.push_back(LinkEvent::Released);
        }
    }

    pub(super) fn on_listener_head(&mut self, env: &mut ClientEnv, exchange: ExchangeId) {
        let idle = env.config.listener_idle.map(|idle| env.now + idle);
        let Some(http) = self.exchanges.get(exchange).filter(|http| http.is_stream()) else { return self.release(env) };
        // Calls ran without the listener. Messages that the server sent meanwhile are lost, unless
        // the stream resumes from an event.
        let missed = !self.holding && http.stream.cursor.is_none();
        env.timers.set(Timer::Idle(exchange), idle);
        self.reported = ReportedState::Open;
        if missed {
            self.events.push_back(LinkEvent::ChangesMissed);
        }
        self.release(env);
    }

    pub(super) fn on_listener_exchange_end(&mut self, env: &mut ClientEnv, exchange: ExchangeId, over: ExchangeEnd) {
        self.release(env);
        let Some(http) = self.exchanges.get(exchange) else { return };
        if http.stream.is_open() {
            env.drop_cached();
        }
        let (is_answered, in_session) = (http.head.is_some(), http.in_session);
        let (goes_on, end) = match over {
            ExchangeEnd::Failed { why: Closed::Timeout, .. } if !http.stream.was_open() => (false, StreamEnd::Idle),
            ExchangeEnd::Failed { why, .. } => (!why.is_refusal(), StreamEnd::Closed(why)),
            ExchangeEnd::End if !is_answered => (true, StreamEnd::Ended),
            ExchangeEnd::End => Self::end_of_attempt(http),
        };
        if !goes_on && !http.stream.was_open() {
            // The server offers no listener, which is legal (405), or its response suggests that.
            self.leave_listener(env);
            if !matches!(end, StreamEnd::Status { status: 405, .. }) {
                env.diagnose(DiagnosticKind::ListenerOff, end.to_string());
            }
            return;
        }
        if goes_on {
            return self.on_listener_end(env, exchange, end);
        }
        let may_be_gone = matches!(end, StreamEnd::Status { status: 404, .. }) && in_session;
        self.give_up_listener(env, exchange, end, false);
        if may_be_gone && !env.watch.is_empty() {
            self.events.push_back(LinkEvent::SessionDoubted);
        }
    }

    /// Handles the end of a listener that another attempt may follow.
    pub(super) fn on_listener_end(&mut self, env: &mut ClientEnv, exchange: ExchangeId, end: StreamEnd) {
        let was_open = self.exchanges.get(exchange).is_some_and(|http| http.stream.is_open());
        if was_open {
            // Of whatever changes now, the client learns late or never.
            env.drop_cached();
        }
        match env.config.compat.listener_end {
            ListenerEnd::Ignore if was_open => self.leave_listener(env),
            ListenerEnd::Stop if was_open => self.give_up_listener(env, exchange, end, false),
            ListenerEnd::Resume | ListenerEnd::Stop | ListenerEnd::Ignore => {
                if let NextRound::Over = self.schedule_resume(env, exchange, end.clone()) {
                    self.give_up_listener(env, exchange, end, !env.watch.is_empty());
                }
            }
        }
    }

    /// Stops the attempts, temporarily or finally. Each of the two is reported once until the
    /// listener is open again.
    pub(super) fn give_up_listener(
        &mut self,
        env: &mut ClientEnv,
        exchange: ExchangeId,
        cause: StreamEnd,
        again: bool,
    ) {
        let give_up = |http: &mut HttpExchange| http.stream.backoff.give_up(cause.retry_after());
        let again = self.exchanges.get_mut(exchange).map(give_up).filter(|_| again);
        let news = match again {
            Some(wait) => {
                self.schedule_retry(env, exchange, wait);
                ReportedState::Paused
            }
            None => {
                self.leave_listener(env);
                ReportedState::Lost
            }
        };
        if self.reported < news {
            self.reported = news;
            env.event(Event::ListenerLost { cause, again, ends_session: false });
        }
    }

    /// Drops the listener.
    pub(super) fn leave_listener(&mut self, env: &mut ClientEnv) {
        let Some(exchange) = self.listener.take() else { return };
        self.end_timers(env, exchange);
        self.drop_exchange(env, exchange);
    }
}
