//! Starting anew what has ended: a program, or the connection to a Unix socket (2026-07-28 stdio, unexpected termination). What is
//! here is when and how often; the new negotiation is `era.rs`.

use super::era::Phase;
use super::{Client, Event, Target, Termination, Timer, Verdict};
use crate::exchange::{Closed, Endpoint};
use crate::time::Instant;
use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;

/// How a server that has ended by itself is started anew: for [`ClientConfig::restart`](super::ClientConfig::restart).
///
/// The server is a program or what is behind a Unix socket; a channel that was given cannot be opened a second time. It is started anew
/// only if the two sides had agreed once: a program that never says hello ends the client. When it ends, the calls that were sent to it
/// end as lost with it, with [`CallError::Closed`](crate::CallError::Closed), and none is repeated; its questions are withdrawn. Calls
/// that are made from then on wait, within their time limits, and are sent once the two sides have agreed anew. The negotiation begins
/// with the revision that was agreed on before. A new server that cannot be reached, ends or is silent during that negotiation has ended
/// as well; one that answers and cannot be agreed with ends the client. What the client itself cuts
/// ([`Malformed::Fatal`](super::Malformed::Fatal)) is not started anew.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Restart {
    /// How long is waited before the first start, the second, and so on; the last one serves for all after it. None: no wait. Counted are
    /// the starts within [`within`](Self::within), so a server that has run that long is waited for as at the beginning. Default 500 ms,
    /// 1 s, 2 s, 4 s.
    pub waits: Vec<Duration>,
    /// A random time up to this is added to each wait, so that many clients do not come at once. Counted in whole milliseconds. Default
    /// zero.
    pub jitter: Duration,
    /// How many starts there may be within [`within`](Self::within), included the first one that was agreed with. When a server ends and
    /// there were so many, the client ends as it would without restarts. Default 5.
    pub max_starts: usize,
    /// The time in which starts are counted. Default 30 s.
    pub within: Duration,
}

impl Default for Restart {
    fn default() -> Self {
        Self {
            waits: vec![500, 1000, 2000, 4000].into_iter().map(Duration::from_millis).collect(),
            jitter: Duration::ZERO,
            max_starts: 5,
            within: Duration::from_secs(30),
        }
    }
}

/// What a client remembers of its starts.
#[derive(Debug, Default)]
pub(super) struct Restarts {
    /// When each start was, the oldest first; no more than are counted.
    starts: VecDeque<Instant>,
    /// What was agreed on, once it was.
    learnt: Option<Verdict>,
    /// The wait is over, and the exchange that has ended is not quite gone.
    is_due: bool,
}

impl Restarts {
    /// What the two sides have agreed on, now or before.
    pub(super) const fn learnt(&self) -> Option<Verdict> {
        self.learnt
    }

    pub(super) fn learn(&mut self, verdict: Verdict) {
        self.learnt = Some(verdict);
    }
}

impl Client {
    /// A duplex exchange is started.
    pub(super) fn count_start(&mut self) {
        let Some(restart) = &self.config.restart else { return };
        if self.restarts.learnt.is_none() {
            // One that was not agreed with was no start of this server.
            self.restarts.starts.clear();
        }
        self.restarts.starts.push_back(self.now);
        while self.restarts.starts.len() > restart.max_starts {
            self.restarts.starts.pop_front();
        }
    }

    /// Whether a server that ends may be started anew, as far as is known before it ends.
    pub(super) fn can_restart(&self) -> bool {
        let again = matches!(&self.config.target, Target::Duplex(Endpoint::Program(_) | Endpoint::Unix(_)));
        again && self.config.restart.is_some() && self.restarts.learnt.is_some()
    }

    /// The server has ended. It is started anew after a while, or else the client ends.
    pub(super) fn lost(&mut self, why: Closed) {
        let Some((attempt, wait)) = self.next_start() else { return self.shut(Termination::Closed(why)) };
        self.end_sent_calls(&why);
        self.end_pings();
        self.end_watching();
        self.ids.retire_handshake();
        self.withdraw_all();
        self.end_start();
        self.timers.set(Timer::ExitGrace, None);
        self.restarts.is_due = false;
        self.phase = Phase::Restarting;
        self.timers.set(Timer::Restart, Some(self.now + wait));
        self.out.event(Event::Restarting { attempt, wait, why });
    }

    /// The number of the next start and the wait before it; `None` if there is to be none.
    fn next_start(&mut self) -> Option<(u32, Duration)> {
        if !self.can_restart() {
            return None;
        }
        let restart = self.config.restart.as_ref()?;
        let starts = &mut self.restarts.starts;
        while starts.front().is_some_and(|at| self.now.since(*at) >= restart.within) {
            starts.pop_front();
        }
        let counted = starts.len();
        if counted >= restart.max_starts {
            return None;
        }
        let attempt = counted.max(1);
        let wait = restart.waits.get(attempt - 1).or(restart.waits.last()).copied().unwrap_or_default();
        let jitter = match u64::try_from(restart.jitter.as_millis()).unwrap_or(u64::MAX) {
            0 => 0,
            most => self.seed.next_u64() % most.saturating_add(1),
        };
        let attempt = u32::try_from(attempt).unwrap_or(u32::MAX);
        Some((attempt, wait.saturating_add(Duration::from_millis(jitter))))
    }

    /// The wait is over. A server that has closed its output and lives on is given the time of its shutdown first: there are never two.
    pub(super) fn on_restart(&mut self) {
        self.restarts.is_due = true;
        self.restart_if_due();
    }

    pub(super) fn restart_if_due(&mut self) {
        if matches!(self.phase, Phase::Restarting) && self.restarts.is_due && self.exchanges.is_empty() {
            self.begin();
        }
    }
}
