//! What all runs of a flow share: leases, the record, and the search for the issuer.

use super::device::Device;
use super::request::FormToSign;
use super::token_request::TokenRequest;
use super::{Flow, FlowState};
use crate::auth::config::{LoopbackHost, Redirect};
pub(super) use crate::auth::discovery::Found;
use crate::auth::discovery::{Discovery, Next};
use crate::auth::jws::Alg;
use crate::auth::record::{Entry, RegisteredClient, Version};
use crate::auth::scopes::Scopes;
use crate::auth::secret::Secret;
use crate::auth::step::{AuthReport, Input, Lease, Output, Purpose, SaveFault, StepId, StoreFault, Stored};
use crate::error::AuthError;
use crate::fetch::{FetchError, FetchResponse};
use crate::time::Instant;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
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
    /// The code that the user enters at another device.
    pub(super) device: Option<Device>,
    pub(super) token_request: Option<Box<TokenRequest>>,
    /// The secrets in the latest form. An issuer may repeat them in the text of an error.
    pub(super) sent: Vec<Secret>,
    /// The number of the tokens that a refresh has replaced.
    pub(super) refreshed: Option<u64>,
    /// Failed attempts to store the record, or to refresh.
    pub(super) failures: u32,
    pub(super) first_failure: Option<Instant>,
    /// The token that a logout revokes now.
    pub(super) revocation: Option<Revocation>,
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
    /// It makes the key that new tokens are bound to.
    MakingKey(StepId, Alg),
    /// It waits for the signature of the proof of a token request, which has this input.
    Proving(StepId, String),
    /// The code of a login, which the lease of a change precedes.
    Redeeming(StepId),
    Refreshing(StepId),
    /// It waits for the signature of what authenticates the client in a request.
    Signing(StepId, Box<FormToSign>),
    /// It asks for the code that the user enters at another device.
    RequestingCode(StepId),
    /// It asks again and again whether the user has entered the code, or waits to do so.
    Polling(Option<StepId>),
    /// It waits for an assertion of the application.
    Asserting(StepId),
    /// The identity provider exchanges the assertion.
    Exchanging(StepId),
    /// It asks for tokens without a user.
    Granting(StepId),
    /// It waits to repeat a refresh.
    Waiting,
    /// It stores the tokens.
    Saving(StepId),
    /// It stores a record without tokens that were refused, before a login.
    SavingLoss(StepId),
    /// It stores a record without a client that was refused, before it ends with this error.
    SavingRefusal(StepId, Box<AuthError>),
    /// It revokes a token.
    Revoking(StepId),
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
            Stage::Browsing(_) | Stage::RequestingCode(_) | Stage::Polling(_) => FlowState::Authorizing,
            Stage::Redeeming(_) | Stage::Refreshing(_) | Stage::Exchanging(_) | Stage::Granting(_) => {
                FlowState::Redeeming
            }
            Stage::MakingKey(..) | Stage::Proving(..) | Stage::Signing(..) => FlowState::Signing,
            Stage::Asserting(_) => FlowState::Asserting,
            Stage::Waiting => FlowState::Waiting,
            Stage::SavingClient(_)
            | Stage::Saving(_)
            | Stage::SavingLoss(_)
            | Stage::SavingRefusal(..)
            | Stage::Removing(_) => FlowState::Saving,
            Stage::Revoking(_) => FlowState::Revoking,
        }
    }

    pub(super) const fn is_login(&self) -> bool {
        matches!(self.goal, Goal::Login { .. })
    }

    /// Returns whether a user has logged in at a page, and the code is not sent yet.
    pub(super) const fn has_code(&self) -> bool {
        self.page.is_some()
    }

    /// Returns the redirect URI. `None` without one.
    pub(super) fn redirect_uri(&self) -> Option<&str> {
        Some(&*self.redirect_uri).filter(|uri| !uri.is_empty())
    }

    /// Returns the request whose response it waits for.
    pub(super) fn open_fetch(&self) -> Option<StepId> {
        match &self.stage {
            Stage::Discovering(_, open) | Stage::Polling(open) => *open,
            Stage::Registering(open)
            | Stage::Redeeming(open)
            | Stage::Refreshing(open)
            | Stage::RequestingCode(open)
            | Stage::Exchanging(open)
            | Stage::Granting(open)
            | Stage::Revoking(open) => Some(*open),
            _ => None,
        }
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
            device: None,
            token_request: None,
            sent: Vec::new(),
            refreshed: None,
            failures: 0,
            first_failure: None,
            revocation: None,
            revoked: None,
        }));
        match goal {
            Goal::Load => self.load(),
            Goal::Login { .. } if self.needs_user() => self.lease(Purpose::Login),
            Goal::Login { .. } | Goal::Refresh { .. } => self.discover(),
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
    pub(super) fn waits(&self, is_meant: impl FnOnce(&Stage) -> bool) -> bool {
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
        let has_code = self.run.as_ref().is_some_and(|run| run.has_code());
        match purpose {
            Purpose::Change if has_code => self.redeem(),
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
            Some(Goal::Refresh { .. }) if is_other => self.succeed(),
            Some(Goal::Login { .. } | Goal::Refresh { .. }) if !self.needs_user() => self.obtain(),
            Some(Goal::Login { .. }) => self.discover(),
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
            Some(Stage::SavingClient(open)) if *open == step => (Stage::SavingClient, Self::ask_user),
            Some(Stage::Saving(open)) if *open == step => (Stage::Saving, Self::succeed),
            Some(Stage::SavingLoss(open)) if *open == step => (Stage::SavingLoss, Self::login_instead),
            Some(Stage::Removing(open)) if *open == step => (Stage::Removing, Self::removed),
            Some(Stage::SavingRefusal(open, why)) if *open == step => {
                let why = (**why).clone();
                self.refusal_saved(outcome, why);
                return true;
            }
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
        let refreshed = self.run.as_ref().and_then(|run| run.refreshed);
        let is_outdated = refreshed.is_some_and(|number| self.kept.is_replaced(&self.env, &stored, number));
        match self.run.as_ref().map(|run| &run.stage) {
            // The refused tokens are not the latest.
            Some(Stage::SavingLoss(_)) => {
                self.use_stored(stored);
                return true;
            }
            // A login has granted more than what was refreshed, or a logout has removed it.
            Some(Stage::Saving(_)) if is_outdated => {
                self.kept.drop_credentials();
                self.use_stored(stored);
                return true;
            }
            // Another process has got tokens that the new client must not replace yet.
            Some(Stage::SavingClient(_)) if self.kept.has_tokens_in(&stored) => {
                self.kept.load(&self.env, stored);
                self.ask_user();
                return true;
            }
            Some(Stage::Removing(_)) => {
                self.kept.rebase(&self.env, stored);
                self.kept.clear();
            }
            _ => self.kept.rebase(&self.env, stored),
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

    /// Ends the run with the tokens of the store. Without any, a login follows.
    fn use_stored(&mut self, stored: Stored) {
        match self.kept.load(&self.env, stored) {
            true => self.succeed(),
            false => self.login_instead(),
        }
    }

    /// Searches for the issuer, unless its metadata is known.
    pub(super) fn discover(&mut self) {
        let Some(run) = &mut self.run else { return };
        if run.found.is_some() {
            // It tries again.
            return self.discovered();
        }
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

    pub(super) fn discovery_failed(&mut self, why: AuthError) {
        let goal = self.run.as_ref().map(|run| run.goal);
        match (goal, why) {
            (Some(Goal::Logout), _) => self.remove(None),
            (Some(Goal::Refresh { .. }), AuthError::Unavailable(problem)) => self.retry(problem, None),
            (_, AuthError::Unavailable(problem)) if !self.needs_user() => self.retry(problem, None),
            (_, why) => self.fail(why),
        }
    }

    /// The issuer is known.
    fn discovered(&mut self) {
        match self.run.as_ref().map(|run| run.goal) {
            Some(Goal::Logout) => self.revoke(),
            _ if !self.needs_user() => self.begin_grant(),
            Some(Goal::Refresh { .. }) => self.begin_refresh(),
            Some(Goal::Login { .. } | Goal::Load) | None => self.begin_login_at_issuer(),
        }
    }

    pub(super) fn on_fetched(&mut self, step: StepId, outcome: &Result<Box<FetchResponse>, FetchError>) -> bool {
        if self.note_nonce_of(outcome) && self.repeats_with_nonce(step, outcome) {
            return true;
        }
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
            Stage::RequestingCode(open) if *open == step => self.code_received(outcome),
            Stage::Polling(Some(open)) if *open == step => self.polled(outcome),
            Stage::Exchanging(open) if *open == step => self.exchanged(outcome),
            Stage::Granting(open) if *open == step => self.granted(outcome),
            Stage::Revoking(open) if *open == step => self.revoked(outcome),
            _ => return false,
        }
        true
    }

    /// Returns the entry of the run's issuer.
    pub(super) fn entry_at_issuer(&self) -> Option<&Entry> {
        let found = self.run.as_ref()?.found.as_ref()?;
        self.kept.entry_of(&found.issuer.issuer)
    }

    /// Returns the entry in use, if it is of the run's issuer. No other issuer gets its secrets.
    pub(super) fn used_entry(&self) -> Option<&Entry> {
        let found = self.run.as_ref()?.found.as_ref()?;
        self.kept.entry().filter(|entry| entry.issuer == found.issuer.issuer)
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
            | Self::Declined(step)
            | Self::KeyMade(step, _)
            | Self::Signed(step, _)
            | Self::Asserted(step, _) => *step,
        }
    }
}
