//! Pings of a client's own, while nothing else tells whether the server is alive (2025-11-25 utilities, ping). 2026-07-28 has no ping;
//! there it is `server/discover`, as for a ping that the application makes. They are no calls: nothing of them but a miss is told.

use super::era::Phase;
use super::ids::Purpose;
use super::{Client, Event, Timer};
use crate::error::DiagnosticKind;
use crate::rpc::{Id, Object};
use crate::time::Instant;
use crate::version::Era;
use alloc::format;
use core::time::Duration;

/// The shortest period. A shorter one would send a ping for every turn of a driver.
const SHORTEST: Duration = Duration::from_millis(10);

/// The pings of one start of the server.
#[derive(Debug, Default)]
pub(super) struct Pings {
    /// The one that is not answered, and when it was sent.
    out: Option<(Id, Instant)>,
    /// How many were missed since the last answer.
    missed: u32,
}

impl Client {
    /// The two sides have agreed.
    pub(super) fn begin_pings(&mut self) {
        self.pings = Pings::default();
        self.arm_ping();
    }

    /// Nothing is answered any more.
    pub(super) fn end_pings(&mut self) {
        self.timers.set(Timer::Ping, None);
        self.pings.out = None;
        self.ids.retire_pings();
    }

    fn arm_ping(&mut self) {
        let period = self.config.ping.map(|period| period.max(SHORTEST));
        self.timers.set(Timer::Ping, period.map(|period| self.now + period));
    }

    /// A ping is due, or its answer.
    pub(super) fn on_ping_timer(&mut self) {
        let Phase::Ready(info) = &self.phase else { return };
        let version = info.version;
        match self.pings.out.take() {
            Some((id, at)) => {
                self.send_cancel(&id, Some("timed out"));
                self.ids.retire(&id);
                self.miss(self.now - at);
            }
            // It would only wait behind what the server does not take.
            None if self.is_full() => self.miss(Duration::ZERO),
            None => {
                self.timers.set(Timer::Ping, Some(self.now + self.config.ping_timeout));
                let id = self.send_request(Purpose::Ping, method(version.era()), Object::new(), version);
                self.pings.out = Some((id, self.now));
            }
        }
    }

    /// A ping was sent once more, with other credentials.
    #[cfg(feature = "http")]
    pub(super) fn arm_pong(&mut self) {
        if let Some((_, at)) = &mut self.pings.out {
            *at = self.now;
            self.timers.set(Timer::Ping, Some(self.now + self.config.ping_timeout));
        }
    }

    /// An answer to a ping. Also an error is one: whoever says it is alive.
    pub(super) fn on_pong(&mut self, id: &Id) {
        self.ids.retire(id);
        self.pings = Pings::default();
        self.arm_ping();
    }

    /// A hook refused our ping: of the server nothing is known then, and nothing bad.
    pub(super) fn on_ping_denied(&mut self, id: &Id, reason: &str) {
        self.diagnose(DiagnosticKind::Denied, format!("a ping of ours: {reason}"));
        self.on_pong(id);
    }

    /// The exchange of a ping ended without an answer. Its id is retired.
    #[cfg(feature = "http")]
    pub(super) fn on_ping_lost(&mut self) {
        if let Some((_, at)) = self.pings.out.take() {
            self.miss(self.now - at);
        }
    }

    fn miss(&mut self, waited: Duration) {
        self.pings.missed = self.pings.missed.saturating_add(1);
        self.out.soft(Event::PingMissed { waited, in_a_row: self.pings.missed });
        self.arm_ping();
    }
}

/// What asks a server of this era whether it is alive.
pub(super) const fn method(era: Era) -> &'static str {
    match era {
        Era::Legacy => "ping",
        Era::Modern => "server/discover",
    }
}
