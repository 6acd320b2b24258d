//! The listener: the GET over which a server up to 2025-11-25 says what belongs to no request (transports, listening for messages from the
//! server). It is optional on both sides. Calls wait a moment for it, since there are servers that ask the questions of a call on it; then
//! they go on without it, and nothing that happens to it ever ends one.

use super::exchange_end::ExchangeEnd;
use super::stream::Next;
use super::{Http, Reported, Request, Role};
use crate::client::ids::Purpose;
use crate::client::link::Exchange;
use crate::client::{Client, Event, ListenerEnd, ListenerStart, ListenerTime, Timer};
use crate::error::StreamEnd;
use crate::exchange::{Closed, ExchangeId};
use crate::rpc::Object;
use core::time::Duration;

/// How long calls wait for the listener at most.
const HOLD: Duration = Duration::from_secs(1);

impl Client {
    /// `initialize` was answered, and `notifications/initialized` is not sent yet.
    pub(in crate::client) fn before_initialized(&mut self) {
        let limit = self.listener_time().map_or(HOLD, |limit| limit.min(HOLD));
        self.http_state.holding = true;
        self.timers.set(Timer::Hold, Some(self.now + limit));
        if self.config.listener == ListenerStart::BeforeInitialized {
            self.open_listener();
        }
    }

    /// `notifications/initialized` was taken, or will not be.
    pub(super) fn on_initialized_taken(&mut self) {
        match self.config.listener {
            ListenerStart::AfterInitialized => self.open_listener(),
            ListenerStart::BeforeInitialized => {}
            ListenerStart::Never => self.release(),
        }
    }

    fn open_listener(&mut self) {
        let exchange = self.exchanges.mint();
        self.http_state.listener = Some(exchange);
        let limit = self.listener_time();
        self.timers.set(Timer::Answer(exchange), limit.map(|limit| self.now + limit));
        let headers = self.bare_headers();
        self.begin_http(exchange, Http::new(Role::Listener, Request::get(headers, None)));
    }

    fn listener_time(&self) -> Option<Duration> {
        match self.config.listener_start {
            ListenerTime::Quarter => {
                let quarter = self.config.timeout.map_or(HOLD, |timeout| timeout / 4);
                Some(quarter.clamp(Duration::from_millis(1), HOLD))
            }
            ListenerTime::After(time) => Some(time),
            ListenerTime::Unlimited => None,
        }
    }

    /// Calls wait for the listener no longer.
    pub(in crate::client) fn release(&mut self) {
        if core::mem::take(&mut self.http_state.holding) {
            self.timers.set(Timer::Hold, None);
            self.send_queued();
        }
    }

    pub(super) fn on_listener_head(&mut self, exchange: ExchangeId) {
        let idle = self.config.listener_idle.map(|idle| self.now + idle);
        let Some(http) = self.exchanges.http(exchange).filter(|http| http.is_stream()) else { return self.release() };
        // Calls were made without it: what the server said meanwhile is lost, if there is no event to go on from.
        let missed = !self.http_state.holding && http.stream.cursor.is_none();
        self.timers.set(Timer::Idle(exchange), idle);
        self.http_state.reported = Reported::Open;
        if missed {
            self.report_tools_gap();
        }
        self.release();
    }

    pub(super) fn on_listener_exchange_end(&mut self, exchange: ExchangeId, over: ExchangeEnd) {
        self.release();
        let Some(http) = self.exchanges.http(exchange) else { return };
        let (is_answered, in_session) = (http.head.is_some(), http.in_session);
        let (goes_on, end, at_least) = match over {
            ExchangeEnd::Failed { why: Closed::Timeout, .. } if !http.stream.was_open() => {
                (false, StreamEnd::Idle, None)
            }
            ExchangeEnd::Failed { why, .. } => (!matches!(why, Closed::Denied(_)), StreamEnd::Closed(why), None),
            ExchangeEnd::End if !is_answered => (true, StreamEnd::Ended, None),
            ExchangeEnd::End => Self::end_of_attempt(http),
        };
        if !goes_on && !http.stream.was_open() {
            // There is none to be had, which is legal (405), or sounds like it.
            self.leave_listener();
            if end != StreamEnd::Status(405) {
                self.diagnose_listener(&end);
            }
            return;
        }
        if goes_on {
            return self.on_listener_end(exchange, end, at_least);
        }
        let may_be_gone = end == StreamEnd::Status(404) && in_session;
        self.give_up_listener(exchange, end, false);
        if may_be_gone && self.config.watch_tools {
            self.ask_for_session();
        }
    }

    /// A GET proves nothing about the session. Who waits for changes makes no POST that would, so one is made.
    fn ask_for_session(&mut self) {
        let Some(version) = self.version() else { return };
        let id = self.send_request(Purpose::Ping, "ping", Object::new(), version);
        if let Some(exchange) = self.ids.exchange(&id) {
            self.limit_attempt(exchange);
        }
    }

    /// The listener has ended, in a way that may be followed by another attempt.
    pub(super) fn on_listener_end(&mut self, exchange: ExchangeId, end: StreamEnd, at_least: Option<Duration>) {
        let was_open = self.exchanges.http(exchange).is_some_and(|http| http.stream.is_open());
        match self.config.listener_end {
            ListenerEnd::Ignore if was_open => self.leave_listener(),
            ListenerEnd::Stop if was_open => self.give_up_listener(exchange, end, false),
            ListenerEnd::Resume | ListenerEnd::Stop | ListenerEnd::Ignore => {
                if let Next::Over = self.schedule_resume(exchange, end.clone(), at_least) {
                    self.give_up_listener(exchange, end, self.config.watch_tools);
                }
            }
        }
    }

    /// No more attempts, for a while or at all. Each of the two is reported once until the listener is open again.
    pub(super) fn give_up_listener(&mut self, exchange: ExchangeId, cause: StreamEnd, again: bool) {
        let again = self.exchanges.http_mut(exchange).map(|http| http.stream.backoff.give_up()).filter(|_| again);
        let news = match again {
            Some(wait) => {
                self.schedule_retry(exchange, wait);
                Reported::Paused
            }
            None => {
                self.leave_listener();
                Reported::Lost
            }
        };
        if self.http_state.reported < news {
            self.http_state.reported = news;
            self.out.event(Event::ListenerLost { cause, again });
        }
    }

    /// There is no listener any more.
    pub(super) fn leave_listener(&mut self) {
        let Some(exchange) = self.http_state.listener.take() else { return };
        self.end_timers(exchange);
        if let Some(Exchange::Http(_)) = self.exchanges.get(&exchange) {
            self.drop_exchange(exchange);
        }
    }
}
