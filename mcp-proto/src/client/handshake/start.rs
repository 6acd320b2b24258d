//! The start of a client as a whole. One time limit covers the period from the first connection to
//! the end of the negotiation, including all retries. If a second process was started, this module
//! also keeps the end of the first one. `handshake.rs` contains the steps.

use crate::client::Timer;
use crate::client::env::ClientEnv;
use crate::error::{NegotiationCause, NegotiationError, RefusedAttempt, Stage, StartFailure};
use crate::exchange::Closed;
use crate::time::Instant;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::time::Duration;

/// The current start, or the last one.
#[derive(Debug, Default)]
pub(super) struct StartAttempt {
    began: Instant,
    /// The time that is left, while the application obtains credentials. `None` while the time
    /// runs.
    held: Option<Duration>,
    /// The time limit of the current step.
    limit: Duration,
    /// The end of the first process, if a second one was started.
    first: Option<Box<StartFailure>>,
    /// What the server refused before.
    earlier: Vec<RefusedAttempt>,
    /// Whether this start has tried HTTP+SSE.
    tried_sse: bool,
}

impl StartAttempt {
    /// Begins a start: the first one, or one for a new session.
    pub(super) fn begin(&mut self, env: &mut ClientEnv) {
        *self = Self { began: env.now, ..Self::default() };
        env.has_noted_nulls = false;
        env.timers.set(Timer::Start, Some(env.now + env.config.connect_timeout));
    }

    /// Ends the start.
    pub(super) fn end(&mut self, env: &mut ClientEnv) {
        self.held = None;
        env.timers.set(Timer::Handshake, None);
        env.timers.set(Timer::Start, None);
    }

    /// Stops the clock while the application obtains credentials, which has no time limit.
    pub(super) fn hold(&mut self, env: &mut ClientEnv) {
        env.timers.set(Timer::Handshake, None);
        if let Some(due) = env.timers.get(Timer::Start) {
            self.held = Some(due.since(env.now));
            env.timers.set(Timer::Start, None);
        }
    }

    /// Limits a step of the start, from now on. `None`: only the limit of the start holds.
    pub(super) fn limit(&mut self, env: &mut ClientEnv, limit: Option<Duration>) {
        self.limit = limit.unwrap_or_default();
        env.timers.set(Timer::Handshake, limit.map(|limit| env.now + limit));
    }

    /// Returns the time limit of the current step.
    pub(super) const fn step(&self) -> Duration {
        self.limit
    }

    /// Resumes the clock if it was stopped.
    pub(super) fn resume(&mut self, env: &mut ClientEnv) {
        if let Some(left) = self.held.take() {
            env.timers.set(Timer::Start, Some(env.now + left));
        }
    }

    /// Records the end of the first process, before the client starts a second one.
    pub(super) fn set_first_end(&mut self, stage: Stage, why: Closed) {
        self.first = Some(Box::new(StartFailure { stage, why }));
    }

    /// Records what the server refused, before the client tries something else.
    pub(super) fn note_refusal(&mut self, stage: Stage, cause: &NegotiationCause) {
        self.earlier.push(RefusedAttempt { stage, cause: cause.clone() });
    }

    /// Records that this start tries HTTP+SSE. Returns whether it has not tried it before.
    pub(super) const fn try_sse(&mut self) -> bool {
        !core::mem::replace(&mut self.tried_sse, true)
    }

    /// Returns the error of a start that fails now.
    pub(super) fn error(&self, env: &ClientEnv, stage: Stage, cause: NegotiationCause) -> NegotiationError {
        let (after, first, earlier) = (env.now.since(self.began), self.first.clone(), self.earlier.clone());
        NegotiationError { stage, cause, after, first, earlier }
    }
}
