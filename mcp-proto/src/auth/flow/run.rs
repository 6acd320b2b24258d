//! What all runs of a flow share: leases, the record, the search for the issuer, time limits, and
//! the end.

use super::{Flow, FlowState};
use crate::auth::config::{LoopbackHost, Redirect};
pub(super) use crate::auth::discovery::Found;
use crate::auth::discovery::{Discovery, Next};
use crate::auth::record::{Entry, RegisteredClient, Version};
use crate::auth::scopes::Scopes;
use crate::auth::secret::Secret;
use crate::auth::step::{AuthReport, Input, Lease, Output, PageResult, Purpose, SaveFault, StepId, StoreFault, Stored};
use crate::error::{AuthError, Problem};
use crate::fetch::{FetchError, FetchResponse};
use crate::time::Instant;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use core::time::Duration;

/// One run: what it is for, where it is, and what it has found out.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) goal: Goal,
    pub(super) stage: Stage,
    /// The limit of the stage.
    pub(super) until: Option<Instant>,
    /// When a refresh is tried again.
    pub(super) retry: Option<Instant>,
    pub(super) hints: Hints,
    /// The leases that it holds or waits for.
    leases: [bool; 2],
    pub(super) fetches: u32,
    pub(super) found: Option<Arc<Found>>,
    pub(super) client: Option<RegisteredClient>,
    /// The scopes that a login requests.
    pub(super) scopes: Scopes,
    pub(super) redirect_uri: String,
    pub(super) listener: Option<StepId>,
    pub(super) browser: Option<StepId>,
    pub(super) host: LoopbackHost,
    pub(super) registrations: u8,
    /// The scopes that the next registration names: an issuer may allow no others later. Empty:
    /// none, and the issuer decides.
    pub(super) registers_for: Scopes,
    pub(super) page: Option<Page>,
    /// Failed attempts to store the record, or to refresh.
    pub(super) failures: u32,
    pub(super) first_failure: Option<Instant>,
    /// Whether the tokens of a logout were revoked.
    pub(super) revoked: Option<bool>,
}

/// What a run is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Goal {
    /// To know the record.
    Load,
    /// New tokens by a user. `forced`: also if the record has tokens that were not tried.
    Login { forced: bool },
    /// New tokens by the refresh token. `forced`: also if the token in use has not expired.
    Refresh { forced: bool },
    /// No tokens.
    Logout,
}

/// Where a run is: the step whose answer it waits for.
#[derive(Debug)]
pub(super) enum Stage {
    Leasing(StepId, Purpose),
    Loading(StepId),
    Discovering(Box<Discovery>, Option<StepId>),
    Listening(StepId),
    Registering(StepId),
    /// It stores a registration.
    SavingClient(StepId),
    Browsing(StepId),
    /// The code of a login, which the lease of a change precedes.
    Redeeming(StepId),
    Refreshing(StepId),
    /// It waits to repeat a refresh.
    Waiting,
    /// It stores the tokens.
    Saving(StepId),
    /// It stores a record without tokens that were refused, before a login.
    SavingLoss(StepId),
    /// It revokes a token.
    Revoking(StepId, Revocation),
    /// It removes the record.
    Removing(StepId),
}

/// A token that is revoked.
#[derive(Debug)]
pub(super) enum Revocation {
    /// The refresh token. The access token follows.
    Refresh(Secret),
    /// The access token, after the refresh token or without one.
    Access { after_refresh: bool },
}

/// The secrets of an open page.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) state: Secret,
    pub(super) verifier: Secret,
    /// The code, once it is known.
    pub(super) code: Option<Secret>,
}

/// What the refusal of the server says about the way to credentials.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Hints {
    /// The URL of the metadata of the resource.
    pub(super) metadata: Option<String>,
    /// The scopes that the request needs.
    pub(super) scope: Option<Scopes>,
    /// The field `Mcp-Auth-Server`.
    pub(super) auth_server: Option<String>,
}

/// The time for which the metadata of an issuer is used.
const FOUND_TIME: Duration = Duration::from_secs(3600);
/// Maximum number of attempts to store a record.
const MAX_SAVES: u32 = 3;

impl Run {
    pub(super) const fn state(&self) -> FlowState {
        match &self.stage {
            Stage::Leasing(..) => FlowState::Leasing,
            Stage::Loading(_) => FlowState::Loading,
            Stage::Discovering(..) => FlowState::Discovering,
            Stage::Listening(_) => FlowState::Listening,
            Stage::Registering(_) => FlowState::Registering,
            Stage::Browsing(_) => FlowState::Authorizing,
            Stage::Redeeming(_) | Stage::Refreshing(_) => FlowState::Redeeming,
            Stage::Waiting => FlowState::Waiting,
            Stage::SavingClient(_) | Stage::Saving(_) | Stage::SavingLoss(_) | Stage::Removing(_) => FlowState::Saving,
            Stage::Revoking(..) => FlowState::Revoking,
        }
    }

    pub(super) const fn is_login(&self) -> bool {
        matches!(self.goal, Goal::Login { .. })
    }

    fn lease(&mut self, purpose: Purpose) -> &mut bool {
        match purpose {
            Purpose::Login => &mut self.leases[0],
            Purpose::Change => &mut self.leases[1],
        }
    }
}

impl Flow {
    /// Begins a run.
    pub(super) fn begin(&mut self, goal: Goal, hints: Hints) {
        let host = match self.env.config.redirect {
            Redirect::Loopback { host, .. } => host,
            Redirect::Fixed(_) => LoopbackHost::default(),
        };
        self.run = Some(Box::new(Run {
            goal,
            stage: Stage::Waiting,
            until: None,
            retry: None,
            hints,
            leases: [false; 2],
            fetches: 0,
            found: None,
            client: None,
            scopes: Scopes::new(),
            redirect_uri: String::new(),
            listener: None,
            browser: None,
            host,
            registrations: 0,
            registers_for: Scopes::new(),
            page: None,
            failures: 0,
            first_failure: None,
            revoked: None,
        }));
        match goal {
            Goal::Load => self.load(),
            Goal::Login { .. } => self.lease(Purpose::Login),
            Goal::Refresh { .. } => self.discover(),
            Goal::Logout if self.kept.is_loaded() => self.begin_logout(),
            Goal::Logout => self.load(),
        }
    }

    /// Enters a stage with its time limit.
    pub(super) fn enter(&mut self, stage: Stage, limit: Option<Duration>) {
        let until = limit.map(|limit| self.env.now + limit);
        if let Some(run) = &mut self.run {
            (run.stage, run.until, run.retry) = (stage, until, None);
        }
    }

    /// Takes a lease.
    pub(super) fn lease(&mut self, purpose: Purpose) {
        let key = self.env.key.clone();
        let step = self.env.step(|step| Output::Lease(step, key, purpose));
        if let Some(run) = &mut self.run {
            *run.lease(purpose) = true;
        }
        let limit = match purpose {
            // Another process may show its page for minutes.
            Purpose::Login => self.env.config.limits.page_time * 2,
            Purpose::Change => self.env.config.limits.lease_time,
        };
        self.enter(Stage::Leasing(step, purpose), Some(limit));
    }

    /// Releases a lease, if it is held or asked for.
    pub(super) fn release(&mut self, purpose: Purpose) {
        let Some(run) = &mut self.run else { return };
        if core::mem::take(run.lease(purpose)) {
            self.env.emit(Output::Release(self.env.key.clone(), purpose));
        }
    }

    pub(super) fn load(&mut self) {
        let key = self.env.key.clone();
        let step = self.env.step(|step| Output::Load(step, key));
        let limit = self.env.config.limits.lease_time;
        self.enter(Stage::Loading(step), Some(limit));
    }

    /// Stores the record.
    pub(super) fn save(&mut self, stage: impl FnOnce(StepId) -> Stage) {
        let (key, version, record) = (self.env.key.clone(), self.kept.version(), self.kept.record());
        let step = self.env.step(|step| Output::Save(step, key, version, record));
        let limit = self.env.config.limits.lease_time;
        self.enter(stage(step), Some(limit));
    }

    /// Returns whether the run waits for this step.
    fn waits(&self, is_meant: impl FnOnce(&Stage) -> bool) -> bool {
        self.run.as_ref().is_some_and(|run| is_meant(&run.stage))
    }

    pub(super) fn on_leased(&mut self, step: StepId, outcome: Result<Lease, StoreFault>) -> bool {
        let Some(Stage::Leasing(open, purpose)) = self.run.as_ref().map(|run| &run.stage) else { return false };
        let (open, purpose) = (*open, *purpose);
        if open != step {
            return false;
        }
        match outcome {
            Ok(Lease::Waiting) if purpose == Purpose::Login => self.env.report(AuthReport::OtherLogin),
            Ok(Lease::Waiting) => {}
            Ok(Lease::Held) => self.after_lease(purpose),
            Err(why) => {
                self.env.report(AuthReport::NoStore(why));
                self.release(purpose);
                self.after_lease(purpose);
            }
        }
        true
    }

    /// Goes on with a lease, or without one if the store has none.
    fn after_lease(&mut self, purpose: Purpose) {
        let is_login = self.run.as_ref().is_some_and(|run| run.is_login());
        match purpose {
            Purpose::Change if is_login => self.redeem(),
            Purpose::Change | Purpose::Login => self.load(),
        }
    }

    pub(super) fn on_loaded(&mut self, step: StepId, outcome: Result<Stored, StoreFault>) -> bool {
        if !self.waits(|stage| matches!(stage, Stage::Loading(open) if *open == step)) {
            return false;
        }
        let is_other = match outcome {
            Ok(stored) => self.kept.load(&self.env, stored),
            Err(why) => {
                self.env.report(AuthReport::NoStore(why));
                self.kept.load_nothing();
                false
            }
        };
        match self.run.as_ref().map(|run| run.goal) {
            Some(Goal::Load) => self.loaded(),
            Some(Goal::Logout) => self.begin_logout(),
            Some(Goal::Login { forced: false }) if is_other && self.has_wanted() => self.succeed(),
            Some(Goal::Login { .. }) => self.discover(),
            Some(Goal::Refresh { .. }) if is_other => self.succeed(),
            Some(Goal::Refresh { .. }) => self.refresh(),
            None => {}
        }
        true
    }

    /// The record is known. A token that is about to expire is renewed in the same run.
    fn loaded(&mut self) {
        if self.needs_refresh() {
            let hints = Hints::default();
            self.begin(Goal::Refresh { forced: false }, hints);
        } else {
            self.succeed();
        }
    }

    /// Returns whether the granted scopes have those that the request needs.
    fn has_wanted(&self) -> bool {
        let wanted = self.run.as_ref().and_then(|run| run.hints.scope.as_ref());
        wanted.is_none_or(|wanted| self.kept.granted().is_empty() || self.kept.granted().contains_all(wanted))
    }

    pub(super) fn on_saved(&mut self, step: StepId, outcome: Result<Version, SaveFault>) -> bool {
        type ToStage = fn(StepId) -> Stage;
        let (stage, then): (ToStage, fn(&mut Self)) = match self.run.as_ref().map(|run| &run.stage) {
            Some(Stage::SavingClient(open)) if *open == step => (Stage::SavingClient, Self::browse),
            Some(Stage::Saving(open)) if *open == step => (Stage::Saving, Self::succeed),
            Some(Stage::SavingLoss(open)) if *open == step => (Stage::SavingLoss, Self::login_instead),
            Some(Stage::Removing(open)) if *open == step => (Stage::Removing, Self::removed),
            _ => return false,
        };
        match outcome {
            Ok(version) => self.kept.saved(version),
            Err(SaveFault::Fault(why)) => self.env.report(AuthReport::NotSaved(why)),
            Err(SaveFault::Conflict(stored)) => return self.on_conflict(stored, stage, then),
        }
        then(self);
        true
    }

    /// Another process replaced the record meanwhile.
    fn on_conflict(&mut self, stored: Stored, stage: fn(StepId) -> Stage, then: fn(&mut Self)) -> bool {
        match self.run.as_ref().map(|run| &run.stage) {
            // The refused tokens are not the latest.
            Some(Stage::SavingLoss(_)) => {
                let is_other = self.kept.load(&self.env, stored);
                if is_other {
                    self.succeed()
                } else {
                    self.login_instead()
                }
                return true;
            }
            Some(Stage::Removing(_)) => self.kept.saved(stored.version),
            _ => self.kept.rebase(stored),
        }
        let attempts = self.run.as_mut().map_or(MAX_SAVES, |run| {
            run.failures += 1;
            run.failures
        });
        if attempts < MAX_SAVES {
            self.save(stage);
        } else {
            self.env.report(AuthReport::NotSaved(StoreFault("others replace the record all the time".into())));
            then(self);
        }
        true
    }

    /// Searches for the issuer, unless its metadata is known.
    pub(super) fn discover(&mut self) {
        let Some(run) = &mut self.run else { return };
        let is_recent = |since: &Instant| self.env.now.since(*since) < FOUND_TIME;
        // A refusal of the server may have another issuer behind it.
        let is_needed = run.is_login() || run.goal == Goal::Refresh { forced: true };
        if let Some((found, _)) = self.found.as_ref().filter(|(_, since)| !is_needed && is_recent(since)) {
            run.found = Some(Arc::clone(found));
            return self.discovered();
        }
        let preferred = self.kept.entry().map(|entry| entry.issuer.as_str());
        let (metadata, auth_server) = (run.hints.metadata.as_deref(), run.hints.auth_server.as_deref());
        let discovery = Discovery::new(&self.env.config, &self.env.server, metadata, auth_server, preferred);
        let limit = self.env.config.limits.discovery_time;
        self.enter(Stage::Discovering(Box::new(discovery), None), Some(limit));
        self.discover_next();
    }

    fn discover_next(&mut self) {
        let Some(run) = &mut self.run else { return };
        let Stage::Discovering(discovery, open) = &mut run.stage else { return };
        match discovery.next(&self.env.config, &self.env.server, self.env.peer) {
            Next::Fetch(_) if run.fetches >= self.env.config.limits.max_fetches => {
                self.fail(AuthError::Limit("max_fetches".into()));
            }
            Next::Fetch(request) => {
                run.fetches += 1;
                *open = Some(self.env.fetch(*request));
            }
            Next::Found(found) => {
                found.reports.iter().for_each(|report| self.env.report(report.clone()));
                let found = Arc::new(*found);
                self.found = Some((Arc::clone(&found), self.env.now));
                run.found = Some(found);
                self.discovered();
            }
            Next::Failed(why) => self.discovery_failed(why),
        }
    }

    fn discovery_failed(&mut self, why: AuthError) {
        let goal = self.run.as_ref().map(|run| run.goal);
        match (goal, why) {
            (Some(Goal::Refresh { .. }), AuthError::Unavailable(problem)) => self.retry(problem, None),
            (Some(Goal::Logout), _) => self.remove(None),
            (_, why) => self.fail(why),
        }
    }

    /// The issuer is known.
    fn discovered(&mut self) {
        match self.run.as_ref().map(|run| run.goal) {
            Some(Goal::Refresh { .. }) => self.begin_refresh(),
            Some(Goal::Logout) => self.revoke(),
            Some(Goal::Login { .. } | Goal::Load) | None => self.begin_login_at_issuer(),
        }
    }

    pub(super) fn on_fetched(&mut self, step: StepId, outcome: &Result<Box<FetchResponse>, FetchError>) -> bool {
        let Some(run) = &mut self.run else { return false };
        match &mut run.stage {
            Stage::Discovering(discovery, open) if *open == Some(step) => {
                *open = None;
                discovery.answer(outcome);
                self.discover_next();
            }
            Stage::Registering(open) if *open == step => self.registered(outcome),
            Stage::Redeeming(open) if *open == step => self.redeemed(outcome),
            Stage::Refreshing(open) if *open == step => self.refreshed(outcome),
            Stage::Revoking(open, _) if *open == step => self.revoked(outcome),
            _ => return false,
        }
        true
    }

    pub(super) fn on_timeout(&mut self) {
        let Some(run) = &mut self.run else { return };
        if run.retry.is_some_and(|retry| retry <= self.env.now) {
            run.retry = None;
            return self.discover();
        }
        let key = self.env.key.clone();
        let why = || StoreFault("it did not answer in time".into());
        match &run.stage {
            Stage::Loading(step) => {
                let step = *step;
                self.on_loaded(step, Err(why()));
            }
            Stage::SavingClient(step) | Stage::Saving(step) | Stage::SavingLoss(step) | Stage::Removing(step) => {
                let step = *step;
                self.on_saved(step, Err(SaveFault::Fault(why())));
            }
            // The code must not expire.
            Stage::Leasing(_, Purpose::Change) if run.is_login() => {
                self.release(Purpose::Change);
                self.redeem();
            }
            Stage::Leasing(..) => self.fail(AuthError::Busy),
            Stage::Listening(step) => {
                let step = *step;
                self.on_listening(step, Err(why()));
            }
            Stage::Discovering(_, step) => {
                step.iter().for_each(|step| self.env.emit(Output::CancelFetch(*step)));
                let why =
                    Problem { url: key.server, why: Some("the search took too long".into()), ..Problem::default() };
                self.discovery_failed(AuthError::Unavailable(why));
            }
            // Their fetches have a limit of their own.
            Stage::Registering(_) | Stage::Redeeming(_) | Stage::Refreshing(_) | Stage::Waiting => {}
            Stage::Browsing(_) => self.fail(AuthError::PageTimeout),
            Stage::Revoking(step, _) => {
                self.env.emit(Output::CancelFetch(*step));
                self.remove(Some(false));
            }
        }
    }

    /// Ends the run: requests that wait go out.
    pub(super) fn succeed(&mut self) {
        if self.run.as_ref().is_some_and(|run| run.is_login()) {
            self.quiet = None;
        }
        self.pause = None;
        self.end(PageResult::Accepted);
        self.env.emit(Output::Changed(self.kept.generation()));
    }

    /// Ends the run: requests that wait end with this error. But with a token that is still valid
    /// they go out.
    pub(super) fn fail(&mut self, why: AuthError) {
        let is_login = self.run.as_ref().is_some_and(|run| run.is_login());
        let is_early = self.run.as_ref().is_some_and(|run| run.goal == Goal::Refresh { forced: false });
        self.end(PageResult::Refused);
        match &why {
            AuthError::Unavailable(_) | AuthError::Busy => {
                self.pause = Some((self.env.now + Duration::from_secs(10), why.clone()));
            }
            _ if is_login => self.fall_quiet(why.clone()),
            _ => {}
        }
        let is_valid = self.kept.credentials().is_some_and(|credentials| credentials.is_valid(self.env.now));
        if is_early && is_valid {
            return self.env.emit(Output::Changed(self.kept.generation()));
        }
        self.env.emit(Output::Failed(Box::new(why)));
    }

    /// Ends the run without a result. Returns whether there was one.
    pub(super) fn abandon(&mut self) -> bool {
        if let Some(run) = &self.run {
            let open = match &run.stage {
                Stage::Discovering(_, open) => *open,
                Stage::Registering(open) | Stage::Redeeming(open) | Stage::Refreshing(open) => Some(*open),
                Stage::Revoking(open, _) => Some(*open),
                _ => None,
            };
            open.into_iter().for_each(|step| self.env.emit(Output::CancelFetch(step)));
        }
        let is_open = self.run.is_some();
        self.end(PageResult::Ended);
        is_open
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

    /// Returns the entry of the run's issuer.
    pub(super) fn entry_at_issuer(&self) -> Option<&Entry> {
        let found = self.run.as_ref()?.found.as_ref()?;
        self.kept.entry_of(&found.issuer.issuer)
    }

    /// Ignores an input that no listener or page waits for.
    pub(super) fn waits_for_user(&self, step: StepId) -> bool {
        let listener = self.run.as_ref().and_then(|run| run.listener);
        self.waits(|stage| matches!(stage, Stage::Browsing(open) if *open == step || listener == Some(step)))
    }
}

impl Input {
    /// Returns the step that it answers.
    pub const fn step(&self) -> StepId {
        match self {
            Self::Leased(step, _)
            | Self::Loaded(step, _)
            | Self::Saved(step, _)
            | Self::Listening(step, _)
            | Self::Redirected(step, _)
            | Self::Declined(step) => *step,
        }
    }
}
