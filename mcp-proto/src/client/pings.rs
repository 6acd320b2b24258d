//! Pings of the engine, for the time in which no other message shows whether the server is alive
//! (2025-11-25 utilities, ping). 2026-07-28 has no ping: the client sends `server/discover`
//! instead, also for a ping of the application. The pings of the engine are no calls. The
//! application receives an event only for a missed one.

use super::ctx::Ctx;
use super::env::ClientEnv;
use super::ids::Purpose;
use super::{Event, State, Timer};
use crate::error::DiagnosticKind;
use crate::rpc::{Id, Object};
use crate::time::Instant;
use crate::version::Era;
use alloc::format;
use core::time::Duration;

/// The shortest period. A shorter one would send a ping in every turn of a driver.
const SHORTEST: Duration = Duration::from_millis(10);

/// The pings of one session.
#[derive(Debug, Default)]
pub(super) struct Pings {
    /// The pending ping, and the time at which it was sent.
    out: Option<(Id, Instant)>,
    /// Pings missed since the last response.
    missed: u32,
}

impl Pings {
    /// Starts the pings, after a negotiation or a response.
    pub(super) fn begin(&mut self, env: &mut ClientEnv) {
        *self = Self::default();
        Self::arm(env);
    }

    /// Stops the pings, since the server sends no more responses.
    pub(super) fn end(&mut self, env: &mut ClientEnv) {
        env.timers.set(Timer::Ping, None);
        self.out = None;
        env.ids.retire_pings();
    }

    fn arm(env: &mut ClientEnv) {
        // A dialect without negotiation has nothing that every server answers.
        let period = env.config.ping.filter(|_| !env.only_calls_tools()).map(|period| period.max(SHORTEST));
        env.timers.set(Timer::Ping, period.map(|period| env.now + period));
    }

    /// Restarts the timer of a ping that was sent again with other credentials.
    pub(super) fn arm_pong(&mut self, env: &mut ClientEnv) {
        if let Some((_, at)) = &mut self.out {
            *at = env.now;
            env.timers.set(Timer::Ping, Some(env.now + env.config.ping_timeout));
        }
    }

    /// Handles the response to a ping. An error counts too: its sender is alive.
    pub(super) fn on_pong(&mut self, env: &mut ClientEnv, id: &Id) {
        env.ids.retire(id);
        self.begin(env);
    }

    /// Handles a ping that a message hook denied. The denial is no evidence about the server.
    pub(super) fn on_denied(&mut self, env: &mut ClientEnv, id: &Id, reason: &str) {
        env.diagnose(DiagnosticKind::Denied, format!("a ping of ours: {reason}"));
        self.on_pong(env, id);
    }

    /// Counts a ping as missed whose exchange ended without a response. Its id is retired.
    pub(super) fn on_lost(&mut self, env: &mut ClientEnv) {
        if let Some((_, at)) = self.out.take() {
            self.miss(env, env.now - at);
        }
    }

    fn miss(&mut self, env: &mut ClientEnv, waited: Duration) {
        self.missed = self.missed.saturating_add(1);
        env.event(Event::PingMissed { waited, in_a_row: self.missed });
        Self::arm(env);
    }

    /// Sends the next ping, or counts one as missed whose response is overdue.
    pub(super) fn on_timer(&mut self, cx: &mut Ctx) {
        let Some(version) = cx.env.version().filter(|_| cx.env.state() == State::Ready) else { return };
        match self.out.take() {
            Some((id, at)) => {
                cx.send_cancel(&id, Some("timed out"));
                cx.env.ids.retire(&id);
                let waited = cx.env.now - at;
                self.miss(&mut cx.env, waited);
            }
            // The ping would only wait behind bytes that the server does not read.
            None if cx.link.is_full(&cx.env) => self.miss(&mut cx.env, Duration::ZERO),
            None => {
                cx.env.timers.set(Timer::Ping, Some(cx.env.now + cx.env.config.ping_timeout));
                let id = cx.send_request(Purpose::Ping, method(version.era()), Object::new(), version);
                self.out = Some((id, cx.env.now));
            }
        }
    }

    /// Makes a ping beside the periodic ones, to find out whether the session still exists. The end
    /// of a listener proves nothing about the session. A client that waits for changes makes no
    /// other request that would.
    pub(super) fn ask_for_session(cx: &mut Ctx) {
        let Some(version) = cx.env.version() else { return };
        let id = cx.send_request(Purpose::Ping, "ping", Object::new(), version);
        if let (Some(exchange), Some(http)) = (cx.env.ids.exchange(&id), cx.link.http_mut()) {
            http.limit_attempt(&mut cx.env, exchange);
        }
    }
}

/// Returns the method that checks whether a server of this era is alive.
pub(super) const fn method(era: Era) -> &'static str {
    match era {
        Era::Legacy => "ping",
        Era::Modern => "server/discover",
    }
}
