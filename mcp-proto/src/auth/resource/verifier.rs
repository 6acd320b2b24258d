//! The state that decides whether a token is valid: a *verifier*. It contains no engine and no
//! cryptography: what it wants leaves as a step.

use super::config::{IssuerConfig, Trust, VerifierConfig};
use super::credentials::{self, Scheme};
use super::expiring::{Digest, ExpiringTable};
use super::jwt::{Grant, Jwt, Rules};
use super::pending::{PendingToken, SignedToken, Stage, Step, WaitingRequest};
use super::proof::{Proof, Proofs};
use super::source::{Answer, Progress, Source};
use super::{
    Access, AccessDenial, Check, CheckId, ProofUse, Resource, Verification, VerifierOutput, VerifierReport,
    introspection,
};
use crate::auth::identifier::{self, IssuerMatch};
use crate::auth::{Principal, PublicKey, StepId, StoreFault};
use crate::fetch::{FetchError, FetchResponse};
use crate::seed::Seed;
use crate::time::Instant;
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

/// Maximum number of valid tokens that are remembered, and for how long: since their signature was
/// verified, or since their issuer was asked.
const MAX_GRANTS: usize = 10_000;
const SIGNED_TIME: Duration = Duration::from_secs(300);
const ASKED_TIME: Duration = Duration::from_secs(60);

/// The same for refused tokens. They have a table of their own, so that they replace no valid ones.
const MAX_REFUSED: usize = 1_000;
const REFUSED_TIME: Duration = Duration::from_secs(5);

/// Maximum number of questions to one issuer that are open.
const MAX_ASKED: usize = 16;

/// When to try again after a refusal because of a limit, or without cryptography.
const RETRY_TIME: Duration = Duration::from_secs(1);

/// The time between two reports about the same.
const REPORT_TIME: Duration = Duration::from_secs(30);

/// How often what has expired is removed.
const PURGE_TIME: Duration = Duration::from_secs(300);

/// Decides whether the tokens of requests are valid: JSON Web Tokens by their signature (RFC 9068
/// section 4), others by asking their issuer (RFC 7662), both with proofs of possession if the
/// resource [accepts](Resource::dpop) them (RFC 9449).
///
/// It remembers a valid token for at most 5 minutes, or one minute if it asked the issuer, so it
/// decides most requests at once. Requests with the same token share its verification, and all
/// share the fetch of the keys of their issuer.
#[derive(Debug)]
pub struct Verifier {
    config: Arc<VerifierConfig>,
    resource: Arc<Resource>,
    origin_unix: Duration,
    now: Instant,
    outputs: VecDeque<VerifierOutput>,
    last_step: u64,
    steps: BTreeMap<StepId, Step>,
    /// What is known of each issuer, in the order of the configuration.
    issuers: Vec<IssuerState>,
    grants: ExpiringTable<Grant>,
    refused: ExpiringTable<&'static str>,
    proofs: Proofs,
    /// The tokens that are being verified.
    tokens: BTreeMap<Digest, PendingToken>,
    waiting: BTreeMap<CheckId, WaitingRequest>,
    purge_at: Option<Instant>,
    /// Until when [`NoCryptography`](VerifierReport::NoCryptography) is not reported again.
    quiet_until: Instant,
}

#[derive(Debug)]
struct IssuerState {
    source: Source,
    /// The tokens that wait for a place among the open questions.
    queue: VecDeque<Digest>,
    asked: usize,
    /// Until when a failure is not reported again.
    quiet_until: Instant,
}

impl Verifier {
    /// Creates a verifier for this resource. `origin_unix` is the Unix time of [`Instant::ZERO`].
    /// `seed` must be unpredictable and used for nothing else. Servers that share it accept the
    /// nonces of each other.
    pub fn new(
        config: Arc<VerifierConfig>,
        resource: Arc<Resource>,
        origin_unix: Duration,
        seed: [u8; 32],
        now: Instant,
    ) -> Self {
        let seed = Seed::new(seed);
        let issuers = config.issuers.iter().map(|issuer| IssuerState {
            source: Source::new(issuer),
            queue: VecDeque::new(),
            asked: 0,
            quiet_until: Instant::ZERO,
        });
        Self {
            issuers: issuers.collect(),
            proofs: Proofs::new(&resource.identifier, config.proof_window, config.nonces.then_some(&seed)),
            config,
            resource,
            origin_unix,
            now,
            outputs: VecDeque::new(),
            last_step: 0,
            steps: BTreeMap::new(),
            grants: ExpiringTable::new(MAX_GRANTS),
            refused: ExpiringTable::new(MAX_REFUSED),
            tokens: BTreeMap::new(),
            waiting: BTreeMap::new(),
            purge_at: None,
            quiet_until: Instant::ZERO,
        }
    }

    /// Decides about a request. [`VerifierOutput::Decided`] follows, at once or later, unless it is
    /// [withdrawn](Self::withdraw).
    pub fn check(&mut self, now: Instant, check: Check<'_>) {
        self.now = self.now.max(now);
        if let Err(denial) = self.begin(check) {
            self.decide(check.id, Err(denial));
        }
    }

    /// Forgets a request that needs no decision any more.
    pub fn withdraw(&mut self, id: CheckId) {
        if let Some(WaitingRequest::Token(digest, _)) = self.waiting.remove(&id)
            && let Some(token) = self.tokens.get_mut(&digest)
        {
            token.checks.retain(|check| *check != id);
            // A step that runs has its place in the limits until it ends.
            if token.checks.is_empty() && matches!(token.stage, Stage::Keys(_) | Stage::Queue(_)) {
                self.issuers[token.issuer].queue.retain(|queued| *queued != digest);
                self.tokens.remove(&digest);
            }
        }
    }

    /// Handles the result of a verification: whether the signature is valid. An error means that
    /// there is no cryptography.
    pub fn verified(&mut self, now: Instant, step: StepId, outcome: Result<bool, StoreFault>) {
        self.now = self.now.max(now);
        let outcome = outcome.map_err(|why| self.no_cryptography(&why));
        match self.steps.remove(&step) {
            Some(Step::Signature(digest)) => self.on_signature(digest, outcome),
            Some(Step::Proof(id)) => self.on_proof(id, step, outcome),
            Some(other) => drop(self.steps.insert(step, other)),
            None => {}
        }
    }

    /// Handles the end of an HTTP request.
    pub fn fetched(&mut self, now: Instant, step: StepId, outcome: &Result<Box<FetchResponse>, FetchError>) {
        self.now = self.now.max(now);
        match self.steps.remove(&step) {
            Some(Step::Source(at)) => {
                let progress = self.issuers[at].source.fetched(self.now, outcome);
                self.proceed(at, progress);
            }
            Some(Step::Question(at, digest)) => self.on_answer(at, digest, outcome),
            Some(other) => drop(self.steps.insert(step, other)),
            None => {}
        }
    }

    /// Forgets the tokens of a principal. The next request with one is verified again.
    pub fn forget(&mut self, principal: &Principal) {
        self.grants.retain(|grant| grant.access.principal != *principal);
    }

    /// Returns the next output.
    pub fn poll_output(&mut self) -> Option<VerifierOutput> {
        self.outputs.pop_front()
    }

    /// Returns the instant for the next [`handle_timeout`](Self::handle_timeout). `None` if nothing
    /// is remembered.
    pub const fn poll_timeout(&self) -> Option<Instant> {
        self.purge_at
    }

    /// Fires what is due: removes what has expired.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.now = self.now.max(now);
        if self.purge_at.is_some_and(|at| at <= self.now) {
            self.grants.purge(self.now);
            self.refused.purge(self.now);
            self.proofs.purge(self.now);
            let is_empty = self.grants.is_empty() && self.refused.is_empty() && self.proofs.is_empty();
            self.purge_at = (!is_empty).then(|| self.now + PURGE_TIME);
        }
    }

    /// Begins a check, and ends it if the token is known.
    ///
    /// # Errors
    /// Why the request is denied.
    fn begin(&mut self, Check { id, head }: Check<'_>) -> Result<(), AccessDenial> {
        let (scheme, token) = credentials::read(head)?;
        let proof = match scheme {
            Scheme::Bearer => None,
            Scheme::Dpop if self.resource.dpop == ProofUse::Off => {
                return Err(AccessDenial::Invalid("the server accepts no tokens that are bound to a key"));
            }
            Scheme::Dpop => Some(Box::new(self.proofs.read(head, token, self.unix())?)),
        };
        let digest = hmac_sha256::Hash::hash(token.as_bytes());
        if let Some(grant) = self.grants.get(self.now, &digest) {
            let grant = grant.clone();
            return self.granted(id, proof, &grant);
        }
        if let Some(why) = self.refused.get(self.now, &digest) {
            return Err(AccessDenial::Invalid(why));
        }
        self.check_room()?;
        if let Some(pending) = self.tokens.get_mut(&digest) {
            pending.checks.push(id);
            self.waiting.insert(id, WaitingRequest::Token(digest, proof));
            return Ok(());
        }
        let (issuer, stage) = self.read_token(token).map_err(|why| {
            self.refuse(digest, why);
            AccessDenial::Invalid(why)
        })?;
        if matches!(stage, Stage::Queue(_)) {
            self.issuers[issuer].queue.push_back(digest);
        }
        self.tokens.insert(digest, PendingToken { issuer, stage, checks: [id].into() });
        self.waiting.insert(id, WaitingRequest::Token(digest, proof));
        self.resume(digest);
        Ok(())
    }

    /// Returns an error if too many requests wait. A step that nothing waits for any more counts.
    fn check_room(&self) -> Result<(), AccessDenial> {
        let load = self.waiting.len().max(self.steps.len()).max(self.tokens.len());
        if load < self.config.max_waiting { Ok(()) } else { Err(AccessDenial::Unavailable { retry_after: RETRY_TIME }) }
    }

    /// Returns the issuer of a token, and how its verification begins.
    ///
    /// # Errors
    /// Why the token is not valid.
    fn read_token(&self, token: &str) -> Result<(usize, Stage), &'static str> {
        let config = &*self.config;
        let is_asked = |issuer: &IssuerConfig| matches!(issuer.trust, Trust::Introspection { .. });
        let jwt = Jwt::read(token);
        let named = jwt.as_ref().and_then(|jwt| jwt.claims.str("iss"));
        let at = match named {
            Some(named) => {
                let is_it = |issuer: &IssuerConfig| {
                    identifier::same_issuer(&named, &issuer.issuer, true) != IssuerMatch::Different
                };
                config.issuers.iter().position(is_it).ok_or("the token is of another issuer")?
            }
            None => config.issuers.iter().position(is_asked).ok_or(match jwt {
                Some(_) => "the token names no issuer",
                None => "the token is no JSON Web Token",
            })?,
        };
        let issuer = &config.issuers[at];
        match jwt {
            Some(jwt) if !is_asked(issuer) => {
                let alg = jwt.alg(&issuer.algs)?;
                let kid = match jwt.header.kind("kid") {
                    None => None,
                    Some(_) => Some(jwt.header.str("kid").ok_or("the token names no key")?.into_owned()),
                };
                let grant = jwt.grant(&self.rules(issuer))?;
                let (input, signature) = (jwt.input(token), jwt.signature);
                Ok((at, Stage::Keys(Box::new(SignedToken { alg, kid, input, signature, grant }))))
            }
            _ => Ok((at, Stage::Queue(token.into()))),
        }
    }

    fn rules<'a>(&'a self, issuer: &'a IssuerConfig) -> Rules<'a> {
        Rules { config: &self.config, issuer, identifier: &self.resource.identifier, unix: self.unix() }
    }

    /// Continues with a token that waits for its issuer.
    fn resume(&mut self, digest: Digest) {
        let Some(PendingToken { issuer: at, stage, .. }) = self.tokens.get(&digest) else { return };
        let at = *at;
        match stage {
            Stage::Keys(token) => {
                let answer = self.issuers[at].source.key(self.now, token.alg, token.kid.as_deref());
                match answer {
                    Answer::Found((key, issuer)) => self.verify(digest, key, &issuer),
                    Answer::Wait => {}
                    Answer::Unknown => self.invalid(digest, "the key of the token is not known"),
                    Answer::Unavailable(retry_after) => self.unavailable(digest, retry_after),
                }
                let progress = self.issuers[at].source.next(self.now);
                self.proceed(at, progress);
            }
            Stage::Queue(_) => self.ask(at),
            Stage::Signature(_) | Stage::Question => {}
        }
    }

    /// Has the signature of a token verified.
    fn verify(&mut self, digest: Digest, key: PublicKey, issuer: &str) {
        let Some(pending) = self.tokens.get_mut(&digest) else { return };
        let Stage::Keys(token) = &pending.stage else { return };
        if token.grant.access.issuer != issuer {
            return self.invalid(digest, "the token is of another issuer");
        }
        let SignedToken { alg, input, signature, grant, .. } = &**token;
        let (input, signature) = (input.clone(), signature.clone());
        let verification = Verification { alg: *alg, key, input, signature };
        pending.stage = Stage::Signature(grant.clone());
        let step = self.step(Step::Signature(digest));
        self.outputs.push_back(VerifierOutput::Verify(step, Box::new(verification)));
    }

    /// Asks an issuer about the tokens that wait for it, as far as there are places.
    fn ask(&mut self, at: usize) {
        let config = Arc::clone(&self.config);
        let Trust::Introspection { client_id, client_secret } = &config.issuers[at].trust else { return };
        while self.issuers[at].asked < MAX_ASKED
            && let Some(digest) = self.issuers[at].queue.front().copied()
        {
            let Some(PendingToken { stage: Stage::Queue(token), .. }) = self.tokens.get(&digest) else {
                // Its requests were withdrawn.
                self.issuers[at].queue.pop_front();
                continue;
            };
            let answer = self.issuers[at].source.endpoint(self.now);
            let request = match &answer {
                Answer::Found(metadata) => Some(introspection::request(metadata, token, client_id, client_secret)),
                _ => None,
            };
            match (request, answer) {
                (Some(Ok(request)), _) => {
                    self.issuers[at].asked += 1;
                    self.issuers[at].queue.pop_front();
                    if let Some(pending) = self.tokens.get_mut(&digest) {
                        pending.stage = Stage::Question;
                    }
                    let step = self.step(Step::Question(at, digest));
                    self.outputs.push_back(VerifierOutput::Fetch(step, Box::new(request)));
                }
                (Some(Err(fault)), _) => {
                    self.issuers[at].queue.pop_front();
                    self.no_introspection(at, fault.to_string());
                    self.unavailable(digest, RETRY_TIME);
                }
                (None, Answer::Unavailable(retry_after)) => {
                    self.issuers[at].queue.pop_front();
                    self.unavailable(digest, retry_after);
                }
                (None, _) => break,
            }
        }
        let progress = self.issuers[at].source.next(self.now);
        self.proceed(at, progress);
    }

    /// Does what the source of an issuer wants.
    fn proceed(&mut self, at: usize, progress: Progress) {
        match progress {
            Progress::Nothing => {}
            Progress::Fetch(request) => {
                let step = self.step(Step::Source(at));
                self.outputs.push_back(VerifierOutput::Fetch(step, request));
            }
            Progress::Ended(outcome) => {
                if let Err(why) = outcome {
                    let issuer = self.config.issuers[at].issuer.clone();
                    self.report(at, VerifierReport::NoKeys(issuer, why));
                }
                let waiting = self.tokens.iter().filter(|(_, pending)| pending.issuer == at);
                let waiting: Vec<Digest> = waiting.map(|(digest, _)| *digest).collect();
                waiting.into_iter().for_each(|digest| self.resume(digest));
            }
        }
    }

    fn on_signature(&mut self, digest: Digest, outcome: Result<bool, AccessDenial>) {
        let Some(PendingToken { stage: Stage::Signature(grant), .. }) = self.tokens.get(&digest) else { return };
        match outcome {
            Ok(true) => {
                let grant = grant.clone();
                self.valid(digest, grant, self.now + SIGNED_TIME);
            }
            Ok(false) => self.invalid(digest, "the signature of the token is not valid"),
            Err(denial) => self.end(digest, &Err(denial)),
        }
    }

    fn on_answer(&mut self, at: usize, digest: Digest, outcome: &Result<Box<FetchResponse>, FetchError>) {
        self.issuers[at].asked -= 1;
        let config = Arc::clone(&self.config);
        // It was asked at the endpoint of this metadata, or of one that was fetched since then.
        let issuer = self.issuers[at].source.issuer().to_string();
        match introspection::read(outcome) {
            Ok(Some(claims)) => match self.rules(&config.issuers[at]).grant(&claims, &issuer) {
                Ok(grant) => {
                    // RFC 7662 section 4: not beyond the expiry, without the leeway.
                    let expires =
                        grant.access.expires.unwrap_or(Duration::MAX).saturating_sub(config.issuers[at].leeway);
                    self.valid(digest, grant, self.at_unix(expires).min(self.now + ASKED_TIME));
                }
                Err(why) => self.invalid(digest, why),
            },
            Ok(None) => self.invalid(digest, "the token is not active"),
            Err(why) => {
                self.no_introspection(at, why);
                self.unavailable(digest, RETRY_TIME);
            }
        }
        self.ask(at);
    }

    fn on_proof(&mut self, id: CheckId, step: StepId, outcome: Result<bool, AccessDenial>) {
        // It may have been withdrawn.
        if !matches!(self.waiting.get(&id), Some(WaitingRequest::Proof(waits_for, ..)) if *waits_for == step) {
            return;
        }
        let Some(WaitingRequest::Proof(_, proof, access)) = self.waiting.remove(&id) else { return };
        let decision = match outcome {
            Ok(true) => self.proofs.redeem(&proof, self.now, self.origin_unix).map(|()| access),
            Ok(false) => Err(AccessDenial::Proof("the signature of the proof is not valid")),
            Err(denial) => Err(denial),
        };
        self.remember();
        self.decide(id, decision);
    }

    /// Remembers a valid token until then, and ends its verification.
    fn valid(&mut self, digest: Digest, grant: Grant, until: Instant) {
        let expires = grant.access.expires.map_or(Instant::new(Duration::MAX), |expires| self.at_unix(expires));
        if expires <= self.now {
            return self.invalid(digest, "the token has expired");
        }
        self.grants.insert(self.now, digest, until.min(expires), grant.clone());
        self.remember();
        self.end(digest, &Ok(grant));
    }

    /// Remembers a refused token, and ends its verification.
    fn invalid(&mut self, digest: Digest, why: &'static str) {
        self.refuse(digest, why);
        self.end(digest, &Err(AccessDenial::Invalid(why)));
    }

    fn unavailable(&mut self, digest: Digest, retry_after: Duration) {
        self.end(digest, &Err(AccessDenial::Unavailable { retry_after }));
    }

    fn refuse(&mut self, digest: Digest, why: &'static str) {
        self.refused.insert(self.now, digest, self.now + REFUSED_TIME, why);
        self.remember();
    }

    /// Ends the verification of a token for all requests that wait for it.
    fn end(&mut self, digest: Digest, outcome: &Result<Grant, AccessDenial>) {
        let checks = self.tokens.remove(&digest).map(|pending| pending.checks).unwrap_or_default();
        for id in checks {
            let Some(WaitingRequest::Token(_, proof)) = self.waiting.remove(&id) else { continue };
            let denial = match outcome {
                Ok(grant) => self.granted(id, proof, grant).err(),
                Err(denial) => Some(denial.clone()),
            };
            if let Some(denial) = denial {
                self.decide(id, Err(denial));
            }
        }
    }

    /// Decides about a request whose token is valid. If it has a proof, that is verified first.
    ///
    /// # Errors
    /// Why the request is denied.
    fn granted(&mut self, id: CheckId, proof: Option<Box<Proof>>, grant: &Grant) -> Result<(), AccessDenial> {
        let access = Arc::clone(&grant.access);
        match (proof, &grant.jkt) {
            (None, None) if self.resource.dpop == ProofUse::Required => {
                Err(AccessDenial::Invalid("the token is not bound to a key of its client"))
            }
            (None, None) => {
                self.decide(id, Ok(access));
                Ok(())
            }
            // RFC 9449 section 7.2.
            (None, Some(_)) => Err(AccessDenial::Invalid("the token is bound to a key, and needs its proof")),
            (Some(_), None) => Err(AccessDenial::Invalid("the token is not bound to a key")),
            (Some(proof), Some(jkt)) if *proof.jkt != **jkt => {
                Err(AccessDenial::Invalid("the token is bound to another key"))
            }
            (Some(proof), Some(_)) => {
                self.check_room()?;
                let step = self.step(Step::Proof(id));
                self.outputs.push_back(VerifierOutput::Verify(step, proof.verification.clone()));
                self.waiting.insert(id, WaitingRequest::Proof(step, proof, access));
                Ok(())
            }
        }
    }

    fn decide(&mut self, id: CheckId, decision: Result<Arc<Access>, AccessDenial>) {
        self.outputs.push_back(VerifierOutput::Decided(id, decision));
    }

    fn no_cryptography(&mut self, why: &StoreFault) -> AccessDenial {
        if self.now >= self.quiet_until {
            self.quiet_until = self.now + REPORT_TIME;
            self.outputs.push_back(VerifierOutput::Report(VerifierReport::NoCryptography(why.0.clone())));
        }
        AccessDenial::Unavailable { retry_after: RETRY_TIME }
    }

    fn no_introspection(&mut self, at: usize, why: String) {
        let issuer = self.config.issuers[at].issuer.clone();
        self.report(at, VerifierReport::NoIntrospection(issuer, why));
    }

    /// Reports a failure of an issuer, unless one was reported just before.
    fn report(&mut self, at: usize, report: VerifierReport) {
        let issuer = &mut self.issuers[at];
        if self.now >= issuer.quiet_until {
            issuer.quiet_until = self.now + REPORT_TIME;
            self.outputs.push_back(VerifierOutput::Report(report));
        }
    }

    fn step(&mut self, step: Step) -> StepId {
        self.last_step += 1;
        let id = StepId(self.last_step);
        self.steps.insert(id, step);
        id
    }

    /// Arms the timer that removes what has expired.
    fn remember(&mut self) {
        self.purge_at.get_or_insert(self.now + PURGE_TIME);
    }

    fn at_unix(&self, unix: Duration) -> Instant {
        Instant::new(unix.saturating_sub(self.origin_unix))
    }

    fn unix(&self) -> Duration {
        self.now.unix(self.origin_unix)
    }
}

#[cfg(test)]
mod tests;
