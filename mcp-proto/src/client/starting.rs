//! The start of a client as a whole: one clock from the first channel to the agreement, whatever is retried in between, and what became of
//! the first process where a second one was started. The steps themselves are in `era.rs`.

use super::era::Phase;
use super::{Client, Termination, Timer};
use crate::error::{NegotiationCause, NegotiationError, Stage, StartFailure};
use crate::exchange::{Closed, ExitStatus};
use crate::time::Instant;
use alloc::boxed::Box;
use core::time::Duration;

/// The start that is under way, or the last one.
#[derive(Debug, Default)]
pub(super) struct Starting {
    began: Instant,
    /// What is left of the time while the application looks for credentials; `None` while the clock runs.
    held: Option<Duration>,
    /// How the first process ended, if a second one was started.
    first: Option<Box<StartFailure>>,
}

impl Client {
    /// A start begins: the first one, one after a restart, or one for a new session.
    pub(super) fn begin_start(&mut self) {
        self.starting = Starting { began: self.now, held: None, first: None };
        self.timers.set(Timer::Start, Some(self.now + self.config.connect_timeout));
    }

    /// The start is over, one way or the other.
    pub(super) fn end_start(&mut self) {
        self.starting.held = None;
        self.timers.set(Timer::Handshake, None);
        self.timers.set(Timer::Start, None);
    }

    /// The application looks for credentials, which may take as long as it likes.
    #[cfg(feature = "http")]
    pub(super) fn hold_start(&mut self) {
        self.timers.set(Timer::Handshake, None);
        if let Some(due) = self.timers.get(Timer::Start) {
            self.starting.held = Some(due.since(self.now));
            self.timers.set(Timer::Start, None);
        }
    }

    /// The clock goes on, if it was held.
    pub(super) fn resume_start(&mut self) {
        if let Some(left) = self.starting.held.take() {
            self.timers.set(Timer::Start, Some(self.now + left));
        }
    }

    /// Whether a server that ended like this, before the two sides had agreed, may be started once more. Exit statuses 126 and 127 are
    /// those of a shell or launcher that cannot run its command (POSIX.1-2024, Shell Command Language, 2.8.2): it would fail again.
    pub(super) fn may_start_again(&self, why: &Closed) -> bool {
        let no_command = matches!(why, Closed::Exited(ExitStatus { code: Some(126 | 127), .. }));
        self.config.restart_after_probe && !no_command
    }

    /// The first process ended in this way, and a second one is started.
    pub(super) fn note_first_end(&mut self, stage: Stage, why: Closed) {
        self.starting.first = Some(Box::new(StartFailure { stage, why }));
    }

    pub(super) fn negotiation_error(&self, stage: Stage, cause: NegotiationCause) -> NegotiationError {
        let after = self.now.since(self.starting.began);
        NegotiationError { stage, cause, after, first: self.starting.first.clone() }
    }

    /// The client has ended now: the time until then is what whoever waited has seen pass.
    pub(super) fn date_termination(&self, why: Termination) -> Termination {
        match why {
            Termination::Negotiation(e) => {
                Termination::Negotiation(NegotiationError { after: self.now.since(self.starting.began), ..e })
            }
            why @ (Termination::Requested | Termination::Closed(_)) => why,
        }
    }

    /// The whole start took too long.
    pub(super) fn on_start_timeout(&mut self) {
        let stage = match &self.phase {
            _ if !self.exchanges.has_reached_server() => Stage::Connect,
            Phase::Probing { .. } => Stage::Discover,
            Phase::Initializing { .. } => Stage::Initialize,
            Phase::Ready(_)
            | Phase::Lapsed
            | Phase::Ending(_)
            | Phase::Restarting
            | Phase::Closing(_)
            | Phase::Terminated => return,
        };
        self.fail(stage, NegotiationCause::StartTimeout(self.config.connect_timeout));
    }
}
