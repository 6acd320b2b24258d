//! Proofs of possession for the requests to the server (RFC 9449 section 7), and the nonces of all
//! servers. A request waits for the signature of its proof; each attempt has a proof of its own.

use super::run::Stage;
use super::{Flow, Reaction, Tried};
use crate::auth::challenge::{ProofFault, TokenChallenge};
use crate::auth::dpop::{self, FIELD, NONCE_FIELD, Nonces, ProofAlgs, ProofClaims};
use crate::auth::jws::{self, KeyPair, SignKey, SignRequest};
use crate::auth::record::TokenType;
use crate::auth::step::{Generation, Output, StepId, StoreFault};
use crate::error::AuthError;
use crate::exchange::{Headers, Origin};
use crate::fetch::{FetchError, FetchResponse, HttpTarget};
use crate::time::Instant;
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Proofs {
    pub(super) nonces: Nonces,
    /// The algorithms of the latest challenge of the scheme `DPoP`. `None`: there was none.
    pub(super) asked: Option<ProofAlgs>,
    /// The proofs that are not signed yet. There is one for each request that waits.
    open: BTreeMap<StepId, OpenProof>,
    done: VecDeque<(StepId, Result<RequestProof, AuthError>)>,
}

#[derive(Debug)]
struct OpenProof {
    /// What is signed.
    input: String,
    proof: RequestProof,
    /// The latest time for the signature.
    until: Instant,
}

/// What a request carries in place of a bearer token: for this request only, and once.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct RequestProof {
    /// The fields `Authorization` and `DPoP`.
    pub(crate) fields: Headers,
    /// The credentials that it is of.
    pub(crate) generation: Generation,
}

impl Proofs {
    /// Returns the latest time for the next signature. All have as much time.
    pub(super) fn until(&self) -> Option<Instant> {
        self.open.values().next().map(|open| open.until)
    }

    /// Ends the proofs that were not signed in time.
    pub(super) fn expire(&mut self, now: Instant) {
        while self.until().is_some_and(|until| until <= now)
            && let Some((step, _)) = self.open.pop_first()
        {
            self.done.push_back((step, Err(AuthError::Signature("it took too long".into()))));
        }
    }

    /// Drops all proofs, since the requests end.
    pub(super) fn clear(&mut self) {
        self.open.clear();
        self.done.clear();
    }
}

impl Flow {
    /// Begins the proof of a request that carries the present token, which is bound to a key. Ends
    /// with [`poll_proof`](Self::poll_proof), or with [`withdraw_proof`](Self::withdraw_proof).
    /// `None` if the token is not bound.
    pub(crate) fn prove(&mut self, now: Instant, method: &str, url: &HttpTarget) -> Option<StepId> {
        self.env.now = self.env.now.max(now);
        let id = dpop::id(&self.env.random());
        let (token, key) = self.kept.credentials()?.bound()?;
        let nonce = self.proofs.nonces.get(&url.origin);
        let claims = ProofClaims { method, url, issued: self.env.unix(), id, token: Some(token), nonce };
        let (input, request) = to_sign(key, &claims)?;
        let authorization = format!("{} {}", TokenType::Dpop.as_str(), token.expose());
        let fields = Headers::new().with("Authorization", authorization);
        let proof = RequestProof { fields, generation: self.kept.generation() };
        let step = self.env.step(|step| Output::Sign(step, request));
        let until = self.env.now + self.env.config.limits.token_time;
        self.proofs.open.insert(step, OpenProof { input, proof, until });
        Some(step)
    }

    /// Returns the next proof that is signed, or why it is not.
    pub(crate) fn poll_proof(&mut self) -> Option<(StepId, Result<RequestProof, AuthError>)> {
        self.proofs.done.pop_front()
    }

    /// Drops a proof whose request has ended.
    pub(crate) fn withdraw_proof(&mut self, step: StepId) {
        self.proofs.open.remove(&step);
        self.proofs.done.retain(|(done, _)| *done != step);
    }

    pub(super) fn on_signed(&mut self, step: StepId, outcome: Result<Vec<u8>, StoreFault>) -> bool {
        let Some(OpenProof { input, mut proof, .. }) = self.proofs.open.remove(&step) else {
            return match self.run.as_ref().map(|run| &run.stage) {
                Some(Stage::Proving(..)) => self.on_token_request_signed(step, outcome),
                _ => self.on_assertion_signed(step, outcome),
            };
        };
        let done = match outcome {
            Ok(signature) => {
                proof.fields.push(FIELD, jws::compact(&input, &signature));
                Ok(proof)
            }
            Err(StoreFault(why)) => Err(AuthError::Signature(why)),
        };
        self.proofs.done.push_back((step, done));
        true
    }

    /// Takes the nonce of a response of the server.
    pub(crate) fn note_nonce(&mut self, origin: &Origin, nonce: Option<&str>) {
        self.proofs.nonces.note(origin, nonce);
    }

    /// Takes the nonce of a response of an issuer. Returns whether there is one.
    pub(super) fn note_nonce_of(&mut self, outcome: &Result<Box<FetchResponse>, FetchError>) -> bool {
        let Ok(response) = outcome else { return false };
        let nonce = response.headers.get(NONCE_FIELD);
        HttpTarget::parse(&response.url).is_ok_and(|url| self.proofs.nonces.note(&url.origin, nonce))
    }

    /// Handles what a refusal says of the proof of a request. Neither a refresh nor a login would
    /// help. `None`: it is about the token.
    pub(super) fn refuse_proof(
        &mut self,
        status: u16,
        challenge: Option<&TokenChallenge>,
        tried: &mut Tried,
    ) -> Option<Reaction> {
        let dpop = challenge?.dpop;
        // A server may have stopped to ask for bound tokens.
        if status == 401 || dpop.is_some() {
            self.proofs.asked = dpop.map(|dpop| dpop.algs);
        }
        let dpop = dpop?;
        let is_bound = self.kept.credentials().is_some_and(|credentials| credentials.bound().is_some());
        match dpop.fault.filter(|_| status == 401 && is_bound)? {
            ProofFault::Nonce if !tried.nonce => {
                tried.nonce = true;
                Some(Reaction::Again)
            }
            ProofFault::Nonce | ProofFault::Invalid => Some(Reaction::Final(AuthError::ProofRefused)),
        }
    }
}

/// Returns the input of the signature of a proof, and the step that signs it. `None` for a key of a
/// kind that is never made.
pub(super) fn to_sign(key: &KeyPair, claims: &ProofClaims<'_>) -> Option<(String, Box<SignRequest>)> {
    let (alg, input) = dpop::alg_of(&key.public).zip(dpop::input(&key.public, claims))?;
    let request = SignRequest { key: SignKey::Pkcs8(key.private.clone()), alg, input: input.clone().into() };
    Some((input, Box::new(request)))
}
