//! Requests to the endpoints of an issuer: forms, with the authentication of the client.

use super::Flow;
use super::run::{Goal, Stage};
use crate::auth::assertion;
use crate::auth::client_auth;
use crate::auth::config::AuthMethod;
use crate::auth::dpop;
use crate::auth::form::Form;
use crate::auth::jws::SignRequest;
use crate::auth::record::RegisteredClient;
use crate::auth::step::{Output, StepId, StoreFault};
use crate::auth::token::{self, TokenAnswer};
use crate::error::AuthError;
use crate::exchange::{Headers, Reach};
use crate::fetch::{FetchError, FetchRequest, FetchResponse, HttpTarget};
use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

/// Maximum time for each request that revokes a token.
const REVOCATION_TIME: Duration = Duration::from_secs(5);
/// Maximum length of a signature: that of a key of RSA with 8192 bits.
const MAX_SIGNATURE: usize = 1024;

/// A form for an endpoint of an issuer.
#[derive(Clone, Debug)]
pub(super) struct FormRequest {
    /// The name of the endpoint in the metadata.
    pub(super) purpose: &'static str,
    pub(super) url: String,
    /// The issuer of the endpoint, the audience of an assertion of the client.
    pub(super) issuer: String,
    pub(super) client: RegisteredClient,
    pub(super) form: Form,
    /// The stage that waits for the response.
    pub(super) stage: fn(StepId) -> Stage,
    /// The proof of possession of a key.
    pub(super) proof: Option<String>,
}

/// A request that waits for the signature of the client's assertion.
#[derive(Debug)]
pub(super) struct FormToSign {
    request: FormRequest,
    /// What is signed.
    input: String,
}

impl Flow {
    /// Sends a token request to the issuer.
    pub(super) fn request_tokens(&mut self, client: RegisteredClient, mut form: Form, stage: fn(StepId) -> Stage) {
        let Some(found) = self.run.as_ref().and_then(|run| run.found.clone()) else { return };
        let parameters = self.env.config.parameters.iter().filter(|parameter| parameter.is_in_token_requests());
        parameters.for_each(|parameter| form.push(&parameter.name, &parameter.value));
        let (url, issuer) = (found.issuer.token_endpoint.clone(), found.issuer.issuer.clone());
        self.bind(FormRequest { purpose: "token_endpoint", url, issuer, client, form, stage, proof: None });
    }

    /// Reads the answer of the issuer to a token request.
    pub(super) fn answer(&self, outcome: &Result<Box<FetchResponse>, FetchError>) -> TokenAnswer {
        let found = self.run.as_ref().and_then(|run| run.found.as_ref());
        let url = found.map(|found| &*found.issuer.token_endpoint).unwrap_or_default();
        token::read(url, outcome, self.env.config.limits.max_token, self.token_types())
    }

    /// Sends a form with the authentication of its client. A key signs first.
    pub(super) fn send(&mut self, mut request: FormRequest) {
        if request.client.method == AuthMethod::Key {
            return self.sign(request);
        }
        let mut headers = Headers::new();
        client_auth::apply(&request.client, &mut request.form, &mut headers);
        self.send_form(request, headers);
    }

    /// Asks for the signature of the client's assertion (RFC 7523 section 3).
    fn sign(&mut self, request: FormRequest) {
        let client_id = &request.client.client_id;
        let Some(key) = self.env.config.key_of(&request.issuer, client_id).cloned() else {
            return self.fail_unsigned("the configuration has no key for this client".to_owned());
        };
        let found = self.run.as_ref().and_then(|run| run.found.as_deref());
        let metadata = found.map(|found| &found.issuer).filter(|found| found.issuer == request.issuer);
        let alg = assertion::alg_name(metadata, key.alg).to_owned();
        let jti = self.env.random_text();
        let input = assertion::of_client(client_id, &request.issuer, (&key, &alg), (self.env.unix(), &jti));
        let sign = SignRequest { key: key.key, alg: key.alg, input: input.clone().into() };
        let step = self.env.step(|step| Output::Sign(step, Box::new(sign)));
        let limit = self.env.config.limits.token_time;
        self.enter(Stage::Signing(step, Box::new(FormToSign { request, input })), Some(limit));
    }

    pub(super) fn on_assertion_signed(&mut self, step: StepId, outcome: Result<Vec<u8>, StoreFault>) -> bool {
        let Some(run) = self.run.as_mut() else { return false };
        if !matches!(&run.stage, Stage::Signing(open, _) if *open == step) {
            return false;
        }
        let Stage::Signing(_, unsigned) = core::mem::replace(&mut run.stage, Stage::Waiting) else { return false };
        let FormToSign { mut request, input } = *unsigned;
        match outcome {
            Ok(signature) if (1..=MAX_SIGNATURE).contains(&signature.len()) => {
                assertion::authenticate(&mut request.form, &input, &signature);
                self.send_form(request, Headers::new());
            }
            Ok(_) => self.fail_unsigned("the signature has a wrong length".to_owned()),
            Err(StoreFault(why)) => self.fail_unsigned(why),
        }
        true
    }

    /// The client cannot authenticate. A logout removes the record nevertheless.
    fn fail_unsigned(&mut self, why: String) {
        match self.run.as_ref().map(|run| run.goal) {
            Some(Goal::Logout) => self.remove(Some(false)),
            _ => self.fail(AuthError::Signature(why)),
        }
    }

    /// Sends a form. The fields of its header authenticate the client.
    fn send_form(&mut self, request: FormRequest, mut headers: Headers) {
        let FormRequest { purpose, url, client, form, stage, proof, .. } = request;
        proof.into_iter().for_each(|proof| headers.push(dpop::FIELD, proof));
        if let Some(run) = &mut self.run {
            run.sent = form.secrets().chain(client.client_secret).filter(|secret| !secret.is_empty()).collect();
        }
        let limits = self.env.config.limits;
        self.post(purpose, &url, |target, reach| token::request(target, form, headers, &limits, reach), stage);
        if let Some(run) = self.run.as_mut().filter(|run| matches!(run.stage, Stage::Revoking(_))) {
            run.until = Some(self.env.now + REVOCATION_TIME);
        }
    }

    /// Checks the URL of an endpoint by the rules for every URL of a peer.
    pub(super) fn endpoint(&self, purpose: &str, url: &str) -> Result<HttpTarget, AuthError> {
        let checked = self.env.config.policy.check(url, &self.env.server);
        checked.map_err(|fault| AuthError::BadUrl { purpose: purpose.into(), url: url.into(), fault })
    }

    /// Sends a request to an endpoint of the issuer, and waits for its response.
    pub(super) fn post(
        &mut self,
        purpose: &str,
        url: &str,
        request: impl FnOnce(HttpTarget, Reach) -> FetchRequest,
        stage: impl FnOnce(StepId) -> Stage,
    ) {
        let target = match self.endpoint(purpose, url) {
            Ok(target) => target,
            Err(why) => return self.fail(why),
        };
        let reach = self.env.config.policy.reach(&target, &self.env.server, self.env.peer);
        let limits = self.env.config.limits;
        let request = request(target, reach);
        let Some(run) = &mut self.run else { return };
        if run.fetches >= limits.max_fetches {
            return self.fail(AuthError::Limit("max_fetches".into()));
        }
        run.fetches += 1;
        let step = self.env.fetch(request);
        self.enter(stage(step), None);
    }
}
