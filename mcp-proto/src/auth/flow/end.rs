//! How a run ends: by its time limit, with or without tokens, or before it has a result.

use super::Flow;
use super::run::{Goal, Stage};
use crate::auth::step::{Input, Output, PageResult, Purpose, SaveFault, StoreFault};
use crate::error::{AuthError, Problem};
use alloc::boxed::Box;
use core::time::Duration;

impl Flow {
    /// Handles the time limit of the stage, or the time of the next attempt.
    pub(super) fn on_timeout(&mut self) {
        let Some(run) = &mut self.run else { return };
        if run.retry.is_some_and(|retry| retry <= self.env.now) {
            run.retry = None;
            return match run.stage {
                Stage::Polling(_) => self.poll(),
                _ => self.discover(),
            };
        }
        let key = self.env.key.clone();
        let why = || StoreFault("it did not answer in time".into());
        let input = match &run.stage {
            Stage::Loading(step) => Input::Loaded(*step, Err(why())),
            Stage::SavingClient(step)
            | Stage::Saving(step)
            | Stage::SavingLoss(step)
            | Stage::SavingRefusal(step, _)
            | Stage::Removing(step) => Input::Saved(*step, Err(SaveFault::Fault(why()))),
            // The code must not expire.
            Stage::Leasing(_, Purpose::Change) if run.has_code() => {
                self.release(Purpose::Change);
                return self.redeem();
            }
            Stage::Leasing(..) => return self.fail(AuthError::Busy),
            Stage::Listening(step) => Input::Listening(*step, Err(why())),
            Stage::Discovering(_, step) => {
                step.iter().for_each(|step| self.env.emit(Output::CancelFetch(*step)));
                let why =
                    Problem { url: key.server, why: Some("the search took too long".into()), ..Problem::default() };
                return self.discovery_failed(AuthError::Unavailable(why));
            }
            Stage::MakingKey(step, _) => Input::KeyMade(*step, Err(why())),
            Stage::Proving(step, _) | Stage::Signing(step, _) => Input::Signed(*step, Err(why())),
            Stage::Asserting(step) => Input::Asserted(*step, Err(why())),
            // Their fetches have a limit of their own.
            Stage::Registering(_)
            | Stage::Redeeming(_)
            | Stage::Refreshing(_)
            | Stage::RequestingCode(_)
            | Stage::Exchanging(_)
            | Stage::Granting(_)
            | Stage::Waiting => return,
            Stage::Browsing(_) | Stage::Polling(_) => return self.fail(AuthError::PageTimeout),
            Stage::Revoking(step) => {
                self.env.emit(Output::CancelFetch(*step));
                return self.remove(Some(false));
            }
        };
        self.handle(self.env.now, input);
    }

    /// Ends the run: requests that wait go out.
    pub(super) fn succeed(&mut self) {
        if self.falls_quiet() {
            self.quiet = None;
        }
        self.pause = None;
        self.end(PageResult::Accepted);
        self.env.emit(Output::Changed(self.kept.generation()));
    }

    /// Ends the run: requests that wait end with this error. But with a token that is still valid
    /// they go out.
    pub(super) fn fail(&mut self, mut why: AuthError) {
        self.hide_secrets(&mut why);
        let falls_quiet = self.falls_quiet();
        let is_early = self.run.as_ref().is_some_and(|run| run.goal == Goal::Refresh { forced: false });
        self.end(PageResult::Refused);
        match &why {
            AuthError::Unavailable(_) | AuthError::Busy => {
                self.pause = Some((self.env.now + Duration::from_secs(10), why.clone()));
            }
            _ if falls_quiet => self.fall_quiet(why.clone()),
            _ => {}
        }
        let is_valid = self.kept.credentials().is_some_and(|credentials| credentials.is_valid(self.env.now));
        if is_early && is_valid {
            return self.env.emit(Output::Changed(self.kept.generation()));
        }
        self.env.emit(Output::Failed(Box::new(why)));
    }

    /// Removes what the latest form had from the text of the issuer, which may repeat it.
    fn hide_secrets(&self, why: &mut AuthError) {
        let (AuthError::Token(problem) | AuthError::Unavailable(problem)) = why else { return };
        for text in [&mut problem.error, &mut problem.description, &mut problem.why].into_iter().flatten() {
            let sent = self.run.iter().flat_map(|run| &run.sent);
            sent.for_each(|secret| *text = text.replace(secret.expose(), "…"));
        }
    }

    /// Returns whether a failure of the run delays the next one: it does not depend on a refresh
    /// token, which can be refused once only.
    fn falls_quiet(&self) -> bool {
        let goal = self.run.as_ref().map(|run| run.goal);
        matches!(goal, Some(Goal::Login { .. })) || !self.needs_user() && matches!(goal, Some(Goal::Refresh { .. }))
    }

    /// Ends the run without a result. Returns whether there was one.
    pub(super) fn abandon(&mut self) -> bool {
        self.cancel_fetch();
        let is_open = self.run.is_some();
        self.end(PageResult::Ended);
        is_open
    }

    /// Cancels the request whose response the run waits for.
    pub(super) fn cancel_fetch(&mut self) {
        if let Some(step) = self.run.as_ref().and_then(|run| run.open_fetch()) {
            self.env.emit(Output::CancelFetch(step));
        }
    }

    /// Ends the listener, the page and the leases of the run.
    fn end(&mut self, result: PageResult) {
        let Some(run) = &self.run else { return };
        let steps = [run.listener, run.browser];
        steps.into_iter().flatten().for_each(|step| self.env.emit(Output::Finish(step, result)));
        self.release(Purpose::Change);
        self.release(Purpose::Login);
        self.run = None;
    }
}
