//! Restarts of a program, or of the connection to a Unix socket, that has ended (2026-07-28 stdio,
//! unexpected termination). This module decides when and how often. `era.rs` performs the new
//! negotiation.

use super::env::Env;
use super::link::Link;
use super::phase::{HandshakeEvent, Phase};
use super::{Client, Event, State, Target, Termination, Timer, Verdict};
use crate::error::CallError;
use crate::exchange::{Closed, Endpoint, Sent};
use crate::time::Instant;
use alloc::collections::VecDeque;
use core::time::Duration;

/// The starts of the server, and the result of its negotiation.
#[derive(Debug, Default)]
pub(super) struct Restarts {
    /// The time of each start, the oldest first. Holds at most as many as the client counts.
    starts: VecDeque<Instant>,
    /// The result of the last successful negotiation.
    learnt: Option<Verdict>,
    /// Whether the delay is over. The exchange that has ended may still be open in the link.
    is_due: bool,
}

impl Restarts {
    /// Returns the result of the current or the last successful negotiation.
    pub(super) const fn learnt(&self) -> Option<Verdict> {
        self.learnt
    }

    pub(super) fn learn(&mut self, verdict: Verdict) {
        self.learnt = Some(verdict);
    }

    /// Counts the start of a duplex exchange.
    pub(super) fn count_start(&mut self, env: &Env) {
        let Some(restart) = &env.config.restart else { return };
        if self.learnt.is_none() {
            // Before the first successful negotiation, only the latest start counts.
            self.starts.clear();
        }
        self.starts.push_back(env.now);
        while self.starts.len() > restart.max_starts {
            self.starts.pop_front();
        }
    }

    /// Returns whether the client may restart a server when it exits, as far as this is known
    /// before.
    pub(super) fn can_restart(&self, env: &Env) -> bool {
        let again =
            matches!(&env.config.target, Target::Duplex(Endpoint::Program(_) | Endpoint::Unix(_)) | Target::Ws(_));
        again && env.config.restart.is_some() && self.learnt.is_some()
    }

    /// Returns the number of the next start and the delay before it. `None` if there is no next
    /// start.
    fn next(&mut self, env: &mut Env) -> Option<(u32, Duration)> {
        if !self.can_restart(env) {
            return None;
        }
        let restart = env.config.restart.as_ref()?;
        while self.starts.front().is_some_and(|at| env.now.since(*at) >= restart.within) {
            self.starts.pop_front();
        }
        let counted = self.starts.len();
        if counted >= restart.max_starts {
            return None;
        }
        let attempt = counted.max(1);
        let wait = restart.waits.get(attempt - 1).or(restart.waits.last()).copied().unwrap_or_default();
        let jitter = match u64::try_from(restart.jitter.as_millis()).unwrap_or(u64::MAX) {
            0 => 0,
            most => env.seed.next_u64() % most.saturating_add(1),
        };
        let attempt = u32::try_from(attempt).unwrap_or(u32::MAX);
        Some((attempt, wait.saturating_add(Duration::from_millis(jitter))))
    }
}

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
            phase @ (Phase::Lapsed | Phase::Ending(_) | Phase::Restarting | Phase::Closing(_) | Phase::Terminated) => {
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

    /// Handles a timer about the end of the server: the exit status did not arrive in time, or the
    /// delay before the restart is over.
    pub(super) fn on_end_timer(&mut self, timer: Timer) {
        if timer == Timer::Restart {
            self.restarts.is_due = true;
            return self.restart_if_due();
        }
        self.on_exit_grace();
    }

    /// Continues without the exit status.
    fn on_exit_grace(&mut self) {
        match self.env.state() {
            State::Probing | State::Initializing => {
                if let Link::Duplex(duplex) = &mut self.link
                    && duplex.abort(&mut self.env)
                {
                    self.on_handshake(HandshakeEvent::Closed(Sent::Maybe, Closed::Eof));
                }
            }
            State::Ready | State::Ending => self.lost(Closed::Eof),
            State::Lapsed | State::Restarting | State::Closing | State::Terminated => {}
        }
    }

    /// Handles the end of the duplex exchange.
    pub(super) fn on_duplex_failed(&mut self, sent: Sent, why: Closed) {
        self.env.timers.set(Timer::ExitGrace, None);
        self.notifications.end_all(&mut self.env, &why);
        match self.env.state() {
            State::Probing | State::Initializing => self.on_handshake(HandshakeEvent::Closed(sent, why)),
            State::Ready | State::Ending => self.lost(why),
            State::Restarting => self.restart_if_due(),
            State::Closing | State::Lapsed | State::Terminated => {}
        }
    }

    /// Handles the end of the server. The client restarts it after a delay, or terminates.
    pub(super) fn lost(&mut self, why: Closed) {
        let Some((attempt, wait)) = self.restarts.next(&mut self.env) else {
            return self.shut(Termination::Closed(why));
        };
        self.forget_subscriptions();
        self.end_sent_calls(&why);
        self.elicitations.clear();
        self.pings.end(&mut self.env);
        self.env.ids.retire_handshake();
        self.questions.withdraw_all(&mut self.env);
        self.starting.end(&mut self.env);
        self.env.timers.set(Timer::ExitGrace, None);
        self.restarts.is_due = false;
        self.env.phase = Phase::Restarting;
        self.env.timers.set(Timer::Restart, Some(self.env.now + wait));
        self.env.event(Event::Restarting { attempt, wait, why });
    }

    /// Ends every call that was sent, since its response can no longer arrive. Unsent calls wait
    /// for the next server.
    fn end_sent_calls(&mut self, why: &Closed) {
        for call in self.calls.queued(false) {
            self.end(call, Err(CallError::Closed { sent: Sent::Maybe, why: why.clone() }));
        }
    }

    /// Restarts the server after the delay. If the old server has closed its output but still runs,
    /// the client shuts it down first. Two servers never run at once.
    fn restart_if_due(&mut self) {
        if matches!(self.env.phase, Phase::Restarting) && self.restarts.is_due && self.link.is_empty() {
            self.begin();
        }
    }
}
