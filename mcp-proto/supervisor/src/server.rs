//! One server: its state, its attempts to connect, and the calls that wait for it.

use super::catalogue::Kept;
use super::{
    Cause, Counters, Generation, Health, ListKind, Lists, ServerSpec, ServerState, Supervision, Ticket, WhenDown,
};
use alloc::collections::{BTreeSet, VecDeque};
use alloc::sync::Arc;
use core::time::Duration;
use mcp_proto::client::{ClientConfig, Target};
use mcp_proto::error::CallError;
use mcp_proto::seed::Seed;
use mcp_proto::time::Instant;

/// One server.
#[derive(Debug)]
pub(super) struct Server<K> {
    pub(super) key: K,
    pub(super) spec: ServerSpec,
    pub(super) phase: Phase,
    pub(super) kept: Kept,
    /// The calls that wait for a connection, in order.
    pub(super) waiting: BTreeSet<Ticket>,
    /// Attempts that failed since the server was connected.
    failures: u32,
    /// The times of the attempts that count, the oldest first.
    attempts: VecDeque<Instant>,
    /// The time before the latest probe, while the server has not recovered.
    probed_after: Option<Duration>,
    /// When the next attempt begins at the earliest, as the server has asked.
    not_before: Instant,
    /// Handshakes since the server has answered a request, or was connected for long enough.
    barren: u32,
    /// Calls in a row that the server refused with HTTP 400 or 404.
    refused: u32,
    /// Whether such calls have caused another connection since a call was answered.
    is_renewed: bool,
    pub(super) counters: Counters,
    pub(super) cause: Option<Cause>,
}

/// What a server does.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    /// Nothing, since nothing has asked for a connection.
    Idle,
    /// The attempt begins once the clients before are closed, or at the time of the timer.
    Blocked {
        attempt: Attempt,
    },
    /// The application resolves the configuration.
    Resolving {
        generation: Generation,
        attempt: Attempt,
    },
    /// The client connects.
    Connecting {
        generation: Generation,
        attempt: Attempt,
    },
    Ready {
        generation: Generation,
        since: Instant,
    },
    /// A delay before the next attempt.
    Waiting {
        until: Instant,
    },
    Down {
        since: Instant,
        next: Option<Instant>,
    },
}

/// What an attempt to connect is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Attempt {
    Usual,
    /// Of a server that is down since this time.
    Probe {
        since: Instant,
    },
}

/// What follows a failure.
pub(super) enum Next {
    /// An attempt with this number, after a delay.
    Attempt(u32, Duration),
    /// The server is down, and is probed at this time.
    Down(Option<Instant>),
}

impl<K> Server<K> {
    pub(super) fn new(key: K, spec: ServerSpec) -> Self {
        let kept = Kept::new(spec.catalogue.clone());
        Self {
            key,
            spec,
            phase: Phase::Idle,
            kept,
            waiting: BTreeSet::new(),
            failures: 0,
            attempts: VecDeque::new(),
            probed_after: None,
            not_before: Instant::ZERO,
            barren: 0,
            refused: 0,
            is_renewed: false,
            counters: Counters::default(),
            cause: None,
        }
    }

    /// Returns the client that serves calls now.
    pub(super) const fn ready(&self) -> Option<Generation> {
        match self.phase {
            Phase::Ready { generation, .. } => Some(generation),
            _ => None,
        }
    }

    /// Returns the client that is connected, or will be.
    pub(super) const fn current(&self) -> Option<Generation> {
        match self.phase {
            Phase::Ready { generation, .. }
            | Phase::Connecting { generation, .. }
            | Phase::Resolving { generation, .. } => Some(generation),
            Phase::Idle | Phase::Blocked { .. } | Phase::Waiting { .. } | Phase::Down { .. } => None,
        }
    }

    /// Returns since when the server is down, and when it is probed, as calls see it: also while a
    /// probe runs.
    pub(super) const fn down(&self, now: Instant) -> Option<(Instant, Option<Instant>)> {
        match self.phase {
            Phase::Down { since, next } => Some((since, next)),
            Phase::Blocked { attempt: Attempt::Probe { since } }
            | Phase::Resolving { attempt: Attempt::Probe { since }, .. }
            | Phase::Connecting { attempt: Attempt::Probe { since }, .. } => Some((since, Some(now))),
            _ => None,
        }
    }

    /// Returns whether one more attempt is allowed now.
    pub(super) fn may_attempt(&mut self, now: Instant, policy: &Supervision) -> bool {
        while self.attempts.front().is_some_and(|at| now.since(*at) >= policy.within) {
            self.attempts.pop_front();
        }
        self.attempts.len() < policy.max_attempts.max(1)
    }

    /// Counts an attempt that begins now.
    pub(super) fn count_attempt(&mut self, now: Instant) {
        self.attempts.push_back(now);
        self.counters.attempts += 1;
    }

    /// The client is connected.
    pub(super) const fn connected(&mut self, generation: Generation, now: Instant) {
        self.phase = Phase::Ready { generation, since: now };
        self.refused = 0;
        if !self.is_barren() {
            self.failures = 0;
        }
    }

    /// The client has made a handshake: the first one, or one for a new session.
    pub(super) const fn session_began(&mut self) {
        self.barren = self.barren.saturating_add(1);
    }

    /// The server has answered a request: the session is of use.
    pub(super) const fn answered(&mut self) {
        (self.barren, self.failures, self.refused) = (0, 0, 0);
    }

    /// A call has ended on the client that is connected. Returns whether another client is to take
    /// its place, since the server refuses all calls: it may have lost the session, and not say so
    /// as the protocol demands.
    pub(super) fn call_ended(&mut self, outcome: Result<(), &CallError>) -> bool {
        match outcome {
            Err(CallError::Http(error)) if matches!(error.status, 400 | 404) => {
                self.refused = self.refused.saturating_add(1);
            }
            Err(error) if !is_answer(error) => self.refused = 0,
            Ok(()) | Err(_) => {
                self.answered();
                self.is_renewed = false;
            }
        }
        self.refused >= MAX_REFUSED && !core::mem::replace(&mut self.is_renewed, true)
    }

    /// Returns whether the server loses each session at once.
    const fn is_barren(&self) -> bool {
        self.barren >= MAX_BARREN
    }

    /// The server is not connected any more, or could not be. Returns what follows.
    pub(super) fn failed(&mut self, now: Instant, cause: Cause, policy: &Supervision, seed: &mut Seed) -> Next {
        let down_since = self.down(now).map(|(since, _)| since);
        match self.phase {
            Phase::Ready { since, .. } => {
                if now.since(since) >= policy.within {
                    // It has recovered: the next time that it is down is the first one.
                    (self.probed_after, self.barren, self.failures) = (None, 0, 0);
                }
                if self.is_barren() {
                    self.counters.failures += 1;
                } else {
                    self.counters.losses += u64::from(cause != Cause::Requested);
                }
            }
            _ => self.counters.failures += 1,
        }
        self.not_before = now + cause.retry_after().unwrap_or_default().min(MAX_RETRY_AFTER);
        self.cause = Some(cause);
        self.kept.disconnect();
        self.failures = self.failures.saturating_add(1);
        let wait = usize::try_from(self.failures - 1).ok().and_then(|index| policy.waits.get(index));
        match (wait, down_since) {
            (Some(wait), None) => {
                let wait = longer(self.at_least(*wait, now), policy.jitter, seed);
                self.phase = Phase::Waiting { until: now + wait };
                Next::Attempt(self.failures, wait)
            }
            (_, since) => self.rest(since.unwrap_or(now), now, policy, seed),
        }
    }

    /// The server is down. Returns what follows.
    pub(super) fn rest(&mut self, since: Instant, now: Instant, policy: &Supervision, seed: &mut Seed) -> Next {
        let next = match policy.when_down {
            WhenDown::GiveUp => None,
            WhenDown::Probe { first, max } => {
                let after = self.probed_after.map_or(first, |before| before.saturating_mul(2)).min(max).max(MIN_DELAY);
                self.probed_after = Some(after);
                Some(now + longer(self.at_least(after, now), policy.jitter, seed))
            }
        };
        self.phase = Phase::Down { since, next };
        Next::Down(next)
    }

    /// Returns a delay from now on that is not shorter than the server has asked for.
    fn at_least(&self, wait: Duration, now: Instant) -> Duration {
        wait.max(MIN_DELAY).max(self.not_before.since(now))
    }

    /// The application asks for an attempt: the delays begin again.
    pub(super) const fn forgive(&mut self) {
        (self.failures, self.barren) = (0, 0);
    }

    /// Returns whether nothing is under way, but attempts after one that failed.
    pub(super) fn is_settled(&self) -> bool {
        match self.phase {
            Phase::Ready { .. } => self.kept.is_settled(),
            Phase::Blocked { .. } | Phase::Resolving { .. } | Phase::Connecting { .. } => self.failures > 0,
            Phase::Idle | Phase::Waiting { .. } | Phase::Down { .. } => true,
        }
    }

    pub(super) fn health(&self, now: Instant) -> Health {
        let state = match self.phase {
            Phase::Idle => ServerState::Idle,
            Phase::Blocked { .. } => ServerState::Waiting { until: now },
            Phase::Resolving { generation, attempt } | Phase::Connecting { generation, attempt } => {
                ServerState::Connecting { generation, probe: attempt != Attempt::Usual }
            }
            Phase::Ready { generation, since } => ServerState::Ready { generation, since },
            Phase::Waiting { until } => ServerState::Waiting { until },
            Phase::Down { since, next } => ServerState::Down { since, next },
        };
        let cause = self.kept.fault().map(Cause::NotListed).or_else(|| self.cause.clone());
        Health { state, cause, lists: self.kept.health(), counters: self.counters, waiting: self.waiting.len() }
    }
}

/// Returns whether two clients with this configuration must not be open at once: the program, or
/// the one connection, belongs to the client. Over HTTP the calls of the old client end on their
/// own.
pub(super) fn is_exclusive(config: &Arc<ClientConfig>) -> bool {
    !matches!(config.target, Target::Http(_))
}

/// Returns a configuration with which a client also watches these lists: servers of 2026-07-28
/// announce no change that was not asked for.
pub(super) fn watching(config: Arc<ClientConfig>, lists: Lists) -> Arc<ClientConfig> {
    let mut watch = config.watch.clone();
    watch.tools |= lists.has(ListKind::Tools);
    watch.prompts |= lists.has(ListKind::Prompts);
    watch.resources |= lists.has(ListKind::Resources) || lists.has(ListKind::ResourceTemplates);
    if watch == config.watch {
        return config;
    }
    let mut config = Arc::unwrap_or_clone(config);
    config.watch = watch;
    Arc::new(config)
}

/// Number of handshakes without an answer after them from which on the end of a connection counts
/// as an attempt that failed: the delays grow, and the server is down in the end. A client makes as
/// many by itself.
const MAX_BARREN: u32 = 3;

/// Number of refused calls in a row after which another client takes the place of the connected
/// one.
const MAX_REFUSED: u32 = 3;

/// Maximum delay that a server can ask for.
pub(super) const MAX_RETRY_AFTER: Duration = Duration::from_secs(300);

/// Returns whether a call ended with this error because of what the server has answered.
const fn is_answer(error: &CallError) -> bool {
    matches!(
        error,
        CallError::Rpc(_)
            | CallError::Decode(_)
            | CallError::Input(_)
            | CallError::NoConsent { .. }
            | CallError::TooManyRounds(_)
            | CallError::TooManyPages(_)
            | CallError::InvalidResult(_)
    )
}

/// Minimum delay before an attempt: servers that fail at once never keep the supervisor from
/// returning, whatever its policy.
const MIN_DELAY: Duration = Duration::from_millis(1);

/// Returns a delay that is longer by at most a quarter.
fn longer(wait: Duration, jitter: bool, seed: &mut Seed) -> Duration {
    let most = u64::try_from(wait.as_millis() / 4).unwrap_or(u64::MAX);
    if !jitter || most == 0 {
        return wait;
    }
    wait.saturating_add(Duration::from_millis(seed.next_u64() % most.saturating_add(1)))
}
