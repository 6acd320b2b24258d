//! The state that obtains and keeps the credentials of one client: a *flow*. It has at most one
//! *run* at a time, from the need of credentials to its end, and every request that needs them
//! waits for the same run. `run.rs` has what all runs share, `end.rs` how they end, `login.rs` the
//! steps of a login, `refresh.rs` and `logout.rs` the two others. `grants.rs` has the runs without
//! a user, `device.rs` what a login with a code on another device does in place of a page,
//! `request.rs` the requests to the endpoints of an issuer, `token_request.rs` what those for
//! tokens have beside that, and `proofs.rs` the proofs of requests to the server.

mod device;
mod end;
mod env;
mod grants;
mod kept;
mod login;
mod logout;
mod proofs;
mod refresh;
mod request;
mod run;
mod token_request;

#[cfg(test)]
mod tests;

use super::challenge::TokenChallenge;
use super::config::AuthConfig;
use super::scopes::Scopes;
use super::secret::Secret;
use super::step::{Generation, Input, Output, StepId};
use crate::error::AuthError;
use crate::fetch::{FetchError, FetchResponse, HttpTarget};
use crate::time::{Instant, earliest};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use core::net::IpAddr;
use core::time::Duration;
use env::FlowEnv;
use kept::{Credentials, Kept};
use proofs::Proofs;
pub(crate) use proofs::RequestProof;
use run::{Goal, Hints, Run};

/// Obtains and keeps the credentials of one client for its server. A [`Client`](crate::Client)
/// contains one if its configuration asks for that. It can be driven without a client as well.
#[derive(Debug)]
pub struct Flow {
    env: FlowEnv,
    kept: Kept,
    run: Option<Box<Run>>,
    /// The latest login failed: until when no request begins one, how long that was, and why.
    quiet: Option<(Instant, Duration, AuthError)>,
    /// The authorization server failed: until when no request begins a refresh, and why.
    pause: Option<(Instant, AuthError)>,
    /// The latest demands for more scopes that a login could not satisfy, and until when they are
    /// remembered.
    refused: VecDeque<(Demand, Instant)>,
    found: Option<(Arc<run::Found>, Instant)>,
    proofs: Proofs,
}

/// The state of a flow, without its data.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum FlowState {
    /// The record was not loaded yet.
    Idle,
    /// It loads the record.
    Loading,
    /// It waits for a lease of the record.
    Leasing,
    /// It looks for the issuer.
    Discovering,
    /// It waits for its listener.
    Listening,
    /// It registers at the issuer.
    Registering,
    /// It waits for the user.
    Authorizing,
    /// It waits for the response to a token request.
    Redeeming,
    /// It waits to repeat a refresh.
    Waiting,
    /// It stores the record.
    Saving,
    /// It revokes the tokens.
    Revoking,
    /// It waits for a signature.
    Signing,
    /// It waits for an assertion.
    Asserting,
    /// It has a token.
    Holding,
    /// It has none, and requests go out without one.
    Empty,
}

/// How often a request was repeated for the sake of its credentials.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Tried {
    refreshed: bool,
    authorized: bool,
    stepped: bool,
    /// It was repeated with a nonce of the server.
    nonce: bool,
    again: u8,
}

/// A demand for more scopes: the hash of the operation that was refused, and the scopes. Another
/// operation with the same scopes may be one that a login satisfies.
type Demand = ([u8; 32], Scopes);

/// Maximum number of repeats of a request because others changed the credentials meanwhile.
const MAX_AGAIN: u8 = 3;
/// Maximum number of remembered demands for scopes, and the time for which they are.
const MAX_REFUSED: usize = 64;
const REFUSED_TIME: Duration = Duration::from_secs(300);
/// Maximum time without logins after failed ones.
const MAX_QUIET: Duration = Duration::from_secs(600);
/// The first and the longest time without token requests after a failed one that needed no user.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// What happens with a request that a server refused for its credentials.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Reaction {
    /// It waits for the run.
    Wait,
    /// It is repeated with the present credentials.
    Again,
    /// It ends with this error.
    Final(AuthError),
}

/// What a request carries.
#[derive(Debug)]
pub(crate) enum Attach<'a> {
    /// Nothing: there are no credentials.
    None,
    /// This token in its field `Authorization`.
    Bearer(&'a Secret),
    /// A token with a proof of its own ([`Flow::prove`]).
    Bound,
    /// It waits for the run.
    Wait,
}

/// The refusal of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Refused<'a> {
    pub(crate) status: u16,
    /// Its `WWW-Authenticate` fields.
    pub(crate) fields: &'a [String],
    /// Its field `Mcp-Auth-Server`.
    pub(crate) auth_server: Option<&'a str>,
    /// The credentials that the request carried.
    pub(crate) sent: Generation,
    /// What the request asks for: its method, and the name that it is for.
    pub(crate) operation: &'a str,
}

impl Flow {
    /// Creates the flow of a client for this server. It does nothing before a request or a command
    /// needs it. `origin_unix` is the Unix time of [`Instant::ZERO`]. `seed` must be unpredictable
    /// and used for nothing else.
    pub fn new(
        config: Arc<AuthConfig>,
        server: HttpTarget,
        origin_unix: Duration,
        seed: [u8; 32],
        now: Instant,
    ) -> Self {
        let _compiled_in = config.support();
        Self {
            env: FlowEnv::new(config, server, origin_unix, seed, now),
            kept: Kept::default(),
            run: None,
            quiet: None,
            pause: None,
            refused: VecDeque::new(),
            found: None,
            proofs: Proofs::default(),
        }
    }

    /// Returns the state.
    pub fn state(&self) -> FlowState {
        match &self.run {
            Some(run) => run.state(),
            None if self.kept.credentials().is_some() => FlowState::Holding,
            None if self.kept.is_loaded() => FlowState::Empty,
            None => FlowState::Idle,
        }
    }

    /// Returns the number of the present credentials.
    pub const fn generation(&self) -> Generation {
        self.kept.generation()
    }

    /// Returns the next output.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.env.poll()
    }

    /// Returns the instant for the next [`handle_timeout`](Self::handle_timeout).
    pub fn poll_timeout(&self) -> Option<Instant> {
        earliest(self.run_timeout(), self.proofs.until())
    }

    fn run_timeout(&self) -> Option<Instant> {
        self.run.as_ref().and_then(|run| earliest(run.until, run.retry))
    }

    /// Handles the time limits of the run and of signatures that are due.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.env.now = self.env.now.max(now);
        self.proofs.expire(self.env.now);
        if self.run_timeout().is_some_and(|until| until <= self.env.now) {
            self.on_timeout();
        }
    }

    /// Handles the answer to a step. Returns whether the step was open. Nothing changes otherwise.
    pub fn handle(&mut self, now: Instant, input: Input) -> bool {
        self.env.now = self.env.now.max(now);
        match input {
            Input::Leased(step, outcome) => self.on_leased(step, outcome),
            Input::Loaded(step, outcome) => self.on_loaded(step, outcome),
            Input::Saved(step, outcome) => self.on_saved(step, outcome),
            Input::Listening(step, outcome) => self.on_listening(step, outcome),
            Input::Redirected(step, url) => self.on_redirected(step, url.expose()),
            Input::Declined(step) => self.on_declined(step),
            Input::KeyMade(step, outcome) => self.on_key_made(step, outcome),
            Input::Signed(step, outcome) => self.on_signed(step, outcome),
            Input::Asserted(step, outcome) => self.on_asserted(step, outcome),
        }
    }

    /// Handles the end of an HTTP request. Returns whether its step was open.
    pub fn fetched(&mut self, now: Instant, step: StepId, outcome: &Result<Box<FetchResponse>, FetchError>) -> bool {
        self.env.now = self.env.now.max(now);
        self.on_fetched(step, outcome)
    }

    /// Begins a login that no request needs, in place of a present one. Does nothing during a
    /// login. Another run ends first.
    pub fn login(&mut self, now: Instant) {
        self.env.now = self.env.now.max(now);
        match self.run.as_ref().map(|run| &run.goal) {
            Some(Goal::Login { .. }) => {}
            Some(Goal::Load | Goal::Refresh { .. } | Goal::Logout) | None => {
                self.abandon();
                self.begin(Goal::Login { forced: true }, Hints::default());
            }
        }
    }

    /// Revokes the tokens, and removes the record. A run ends first, and what waits for it ends
    /// with [`AuthError::Ended`].
    pub fn logout(&mut self, now: Instant) {
        self.env.now = self.env.now.max(now);
        (self.quiet, self.pause) = (None, None);
        match self.run.as_mut().map(|run| &mut run.goal) {
            Some(Goal::Logout) => {}
            // The record is on its way. What waits for it goes out after the logout.
            Some(goal @ Goal::Load) => *goal = Goal::Logout,
            Some(Goal::Login { .. } | Goal::Refresh { .. }) => {
                self.abandon();
                self.env.emit(Output::Failed(Box::new(AuthError::Ended)));
                self.begin(Goal::Logout, Hints::default());
            }
            None => self.begin(Goal::Logout, Hints::default()),
        }
    }

    /// Ends the run, since the client ends. Its leases, its listener and its page end with it.
    pub fn close(&mut self, now: Instant) {
        self.env.now = self.env.now.max(now);
        self.proofs.clear();
        if self.abandon() {
            self.env.emit(Output::Failed(Box::new(AuthError::Ended)));
        }
    }

    /// Notes the address of the peer of a connection to the server.
    pub(crate) const fn reached(&mut self, address: Option<IpAddr>) {
        if address.is_some() {
            self.env.peer = address;
        }
    }

    /// Returns what a request carries now. Begins a run if it needs one.
    pub(crate) fn attach(&mut self, now: Instant) -> Attach<'_> {
        self.env.now = self.env.now.max(now);
        if self.run.is_none() {
            if !self.kept.is_loaded() {
                self.begin(Goal::Load, Hints::default());
            } else if self.needs_refresh() {
                self.begin(Goal::Refresh { forced: false }, Hints::default());
            }
        }
        self.attached(now)
    }

    /// Returns what a request carries now. Begins nothing.
    pub(crate) fn attached(&self, now: Instant) -> Attach<'_> {
        let now = self.env.now.max(now);
        // A request waits for a refresh although the token is still valid: with the request, the
        // program might end, and lose the new tokens.
        let replaces = self.run.as_ref().is_some_and(|run| matches!(run.goal, Goal::Refresh { .. } | Goal::Logout));
        let credentials = self.kept.credentials();
        let is_valid = credentials.is_some_and(|credentials| credentials.is_valid(now));
        if self.run.is_some() && (replaces || !is_valid) {
            return Attach::Wait;
        }
        // The server decides about one that is not valid: a clock may be wrong.
        credentials.map_or(Attach::None, Credentials::attach)
    }

    fn needs_refresh(&self) -> bool {
        let is_paused = self.pause.as_ref().is_some_and(|(until, _)| self.env.now < *until);
        let is_due = self.kept.credentials().is_some_and(|credentials| !credentials.is_fresh(self.env.now));
        let can = match self.needs_user() {
            true => self.kept.refresh_token().is_some(),
            false => self.quiet.as_ref().is_none_or(|(until, ..)| *until <= self.env.now),
        };
        is_due && !is_paused && can
    }

    /// Returns whether a user takes part in a login.
    fn needs_user(&self) -> bool {
        self.env.config.grant.needs_user()
    }

    /// Returns whether this refusal asks for credentials, or for others.
    pub(crate) fn is_challenge(refused: &Refused<'_>) -> bool {
        match refused.status {
            401 => true,
            403 => challenge(refused.fields).is_some_and(|challenge| challenge.is_insufficient_scope()),
            _ => false,
        }
    }

    /// Handles the refusal of a request.
    pub(crate) fn refuse(&mut self, now: Instant, refused: &Refused<'_>, tried: &mut Tried) -> Reaction {
        self.env.now = self.env.now.max(now);
        let challenge = challenge(refused.fields);
        if let Some(reaction) = self.refuse_proof(refused.status, challenge.as_ref(), tried) {
            return reaction;
        }
        if refused.sent < self.kept.generation() && self.kept.credentials().is_some() && tried.again < MAX_AGAIN {
            tried.again += 1;
            return if self.run.is_some() { Reaction::Wait } else { Reaction::Again };
        }
        let hints = Hints {
            metadata: challenge.as_ref().and_then(|challenge| challenge.resource_metadata.clone()),
            scope: challenge.and_then(|challenge| challenge.scope),
            auth_server: refused.auth_server.map(ToString::to_string),
        };
        match refused.status {
            403 => self.refuse_scope(hints, refused.operation, tried),
            _ => self.refuse_token(hints, tried),
        }
    }

    fn refuse_token(&mut self, hints: Hints, tried: &mut Tried) -> Reaction {
        let has_refresh = self.needs_user() && self.kept.refresh_token().is_some();
        let can_refresh = has_refresh && !tried.refreshed && !tried.authorized;
        match self.kept.credentials() {
            _ if self.run.is_some() => Reaction::Wait,
            Some(_) if can_refresh => match &self.pause {
                Some((until, why)) if self.env.now < *until => Reaction::Final(why.clone()),
                Some(_) | None => {
                    tried.refreshed = true;
                    self.begin(Goal::Refresh { forced: true }, hints);
                    Reaction::Wait
                }
            },
            Some(_) | None if tried.authorized => {
                // Another request must not open a page for the same end.
                self.fall_quiet(AuthError::Rejected);
                Reaction::Final(AuthError::Rejected)
            }
            Some(_) | None => {
                tried.authorized = true;
                self.begin_login(hints)
            }
        }
    }

    fn refuse_scope(&mut self, hints: Hints, operation: &str, tried: &mut Tried) -> Reaction {
        let wanted = hints.scope.clone().unwrap_or_default();
        let error = || AuthError::Scope { scopes: wanted.to_string() };
        let demand = (hmac_sha256::Hash::hash(operation.as_bytes()), wanted.clone());
        let now = self.env.now;
        self.refused.retain(|(_, until)| now < *until);
        let is_refused = self.refused.iter().any(|(known, _)| *known == demand);
        if self.run.is_some() && !tried.stepped {
            return Reaction::Wait;
        }
        if tried.stepped || is_refused || self.kept.granted().contains_all(&wanted) {
            if self.refused.len() == MAX_REFUSED {
                self.refused.pop_front();
            }
            if !is_refused {
                self.refused.push_back((demand, now + REFUSED_TIME));
            }
            return Reaction::Final(error());
        }
        tried.stepped = true;
        if !self.env.config.begins_runs() {
            return Reaction::Final(error());
        }
        self.begin_login(hints)
    }

    /// Notes that a login failed, so that no request begins one for a time.
    fn fall_quiet(&mut self, why: AuthError) {
        let (first, longest) = if self.needs_user() { (self.env.config.limits.quiet, MAX_QUIET) } else { PAUSES };
        let wait = self.quiet.as_ref().map_or(first, |(_, wait, _)| (*wait * 2).min(longest));
        self.quiet = Some((self.env.now + wait, wait, why));
    }

    /// Begins a login that a request needs.
    fn begin_login(&mut self, hints: Hints) -> Reaction {
        if !self.env.config.begins_runs() {
            return Reaction::Final(AuthError::LoginRequired);
        }
        match self.barrier() {
            Some(why) => Reaction::Final(why),
            None => {
                self.begin(Goal::Login { forced: false }, hints);
                Reaction::Wait
            }
        }
    }

    /// Returns why no request begins a login now: the latest one failed shortly before.
    fn barrier(&self) -> Option<AuthError> {
        let now = self.env.now;
        match (&self.quiet, &self.pause) {
            (Some((until, _, why)), _) if now < *until => Some(AuthError::Quiet(Box::new(why.clone()))),
            (_, Some((until, why))) if now < *until => Some(why.clone()),
            _ => None,
        }
    }
}

/// Returns the challenge for a token in these fields.
fn challenge(fields: &[String]) -> Option<TokenChallenge> {
    TokenChallenge::of(fields.iter().map(String::as_str))
}
