//! What a token request has beside its form if the tokens are to be bound to a key (RFC 9449
//! section 5): the key, the proof, and a repetition with the nonce of the issuer.

use super::Flow;
use super::proofs::to_sign;
use super::request::FormRequest;
use super::run::{Found, Goal, Stage};
use crate::auth::config::Dpop;
use crate::auth::dpop::{self, ProofClaims};
use crate::auth::jws::{self, Alg, KeyPair};
use crate::auth::record::TokenType;
use crate::auth::step::{Output, StepId, StoreFault};
use crate::auth::token;
use crate::error::AuthError;
use crate::fetch::{FetchError, FetchResponse};
use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

/// The latest token request of a run: prepared, under way, or answered.
#[derive(Debug)]
pub(super) struct TokenRequest {
    /// It has no authentication of the client yet, and no proof.
    request: FormRequest,
    /// The key of its proof. `None`: it has no proof.
    key: Option<Box<KeyPair>>,
    /// Whether it was repeated with a nonce.
    is_repeated: bool,
}

/// The key of a token request.
enum TokenKey {
    None,
    Known(Box<KeyPair>),
    /// One that is to be made.
    New(Alg),
}

impl Flow {
    /// Sends a token request, with a proof if its tokens are to be bound to a key.
    pub(super) fn bind(&mut self, request: FormRequest) {
        let (key, new) = match self.token_key() {
            Ok(TokenKey::None) => (None, None),
            Ok(TokenKey::Known(key)) => (Some(key), None),
            Ok(TokenKey::New(alg)) => (None, Some(alg)),
            Err(why) => return self.fail(why),
        };
        let Some(run) = &mut self.run else { return };
        run.token_request = Some(Box::new(TokenRequest { request, key, is_repeated: false }));
        match new {
            Some(alg) => {
                let step = self.env.step(|step| Output::NewKey(step, alg));
                let limit = self.env.config.limits.token_time;
                self.enter(Stage::MakingKey(step, alg), Some(limit));
            }
            None => self.prove_token_request(),
        }
    }

    /// Returns the key of the next token request. A refresh token is bound to the key of its
    /// tokens. Otherwise a run makes a new one: the key before may be of no use any more.
    fn token_key(&self) -> Result<TokenKey, AuthError> {
        let run = self.run.as_ref();
        let known = |key: Option<&KeyPair>| key.map_or(TokenKey::None, |key| TokenKey::Known(Box::new(key.clone())));
        if run.is_some_and(|run| matches!(run.goal, Goal::Refresh { .. })) && self.needs_user() {
            let tokens = self.kept.entry().and_then(|entry| entry.tokens.as_ref());
            return Ok(known(tokens.and_then(|tokens| tokens.dpop_key.as_deref())));
        }
        match (self.token_request_key(), run.and_then(|run| run.found.as_deref())) {
            (None, Some(found)) => Ok(self.new_key(found)?.map_or(TokenKey::None, TokenKey::New)),
            (key, _) => Ok(known(key)),
        }
    }

    /// Returns the algorithm of the key that new tokens are bound to, or `None` if they are bearer
    /// tokens.
    ///
    /// # Errors
    /// [`AuthError::NoDpop`] if bound ones are demanded, and not possible.
    pub(super) fn new_key(&self, found: &Found) -> Result<Option<Alg>, AuthError> {
        let metadata = found.resource.as_ref().and_then(|resource| resource.dpop);
        let resource = self.proofs.asked.or(metadata);
        let chosen = dpop::choose(self.env.config.dpop, resource, found.issuer.dpop);
        chosen.map_err(|_| AuthError::NoDpop { issuer: found.issuer.issuer.clone() })
    }

    pub(super) fn on_key_made(&mut self, step: StepId, outcome: Result<Box<KeyPair>, StoreFault>) -> bool {
        let Some(run) = &mut self.run else { return false };
        let Stage::MakingKey(open, alg) = run.stage else { return false };
        if open != step {
            return false;
        }
        match outcome {
            Ok(pair) if dpop::alg_of(&pair.public) == Some(alg) => {
                if let Some(request) = &mut run.token_request {
                    request.key = Some(pair);
                }
                self.prove_token_request();
            }
            Ok(_) => self.fail(AuthError::Signature("the key is of another kind".to_owned())),
            Err(StoreFault(why)) => self.fail(AuthError::Signature(why)),
        }
        true
    }

    /// Sends the request, after the signature of its proof if it has one.
    fn prove_token_request(&mut self) {
        let id = dpop::id(&self.env.random());
        let Some(token_request) = self.run.as_ref().and_then(|run| run.token_request.as_ref()) else { return };
        let Some(key) = &token_request.key else { return self.send_token_request(None) };
        let url = match self.endpoint(token_request.request.purpose, &token_request.request.url) {
            Ok(url) => url,
            Err(why) => return self.fail(why),
        };
        let nonce = self.proofs.nonces.get(&url.origin);
        let claims = ProofClaims { method: "POST", url: &url, issued: self.env.unix(), id, token: None, nonce };
        let Some((input, request)) = to_sign(key, &claims) else {
            return self.fail(AuthError::Signature("the key is of another kind".to_owned()));
        };
        let step = self.env.step(|step| Output::Sign(step, request));
        let limit = self.env.config.limits.token_time;
        self.enter(Stage::Proving(step, input), Some(limit));
    }

    pub(super) fn on_token_request_signed(&mut self, step: StepId, outcome: Result<Vec<u8>, StoreFault>) -> bool {
        let Some(Stage::Proving(open, input)) = self.run.as_ref().map(|run| &run.stage) else { return false };
        if *open != step {
            return false;
        }
        match outcome {
            Ok(signature) => {
                let proof = jws::compact(input, &signature);
                self.send_token_request(Some(proof));
            }
            Err(StoreFault(why)) => self.fail(AuthError::Signature(why)),
        }
        true
    }

    fn send_token_request(&mut self, proof: Option<String>) {
        let request = self.run.as_ref().and_then(|run| run.token_request.as_ref());
        if let Some(request) = request.map(|token_request| token_request.request.clone()) {
            self.send(FormRequest { proof, ..request });
        }
    }

    /// Repeats the token request with the nonce that its response has: once, and with another
    /// proof. Returns whether it does.
    pub(super) fn repeats_with_nonce(
        &mut self,
        step: StepId,
        outcome: &Result<Box<FetchResponse>, FetchError>,
    ) -> bool {
        let Some(run) = self.run.as_mut().filter(|run| run.open_fetch() == Some(step)) else { return false };
        let request = run.token_request.as_mut().filter(|request| request.key.is_some() && !request.is_repeated);
        let Some(request) = request.filter(|_| token::asks_for_nonce(outcome)) else { return false };
        request.is_repeated = true;
        self.prove_token_request();
        true
    }

    /// Returns the types that the token in the answer to the request may have.
    pub(super) fn token_types(&self) -> &'static [TokenType] {
        match self.token_request_key() {
            Some(_) if self.env.config.dpop == Dpop::Required => &[TokenType::Dpop],
            Some(_) => &[TokenType::Dpop, TokenType::Bearer],
            None => &[TokenType::Bearer],
        }
    }

    /// Returns the key that the token request has a proof of.
    pub(super) fn token_request_key(&self) -> Option<&KeyPair> {
        self.run.as_ref()?.token_request.as_ref()?.key.as_deref()
    }
}
