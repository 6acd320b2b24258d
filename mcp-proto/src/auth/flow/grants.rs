//! Runs without a user: the client asks for tokens with its own credentials, with an assertion of
//! its platform, or with what an identity provider makes of the login of a user. Everything after
//! the search for the issuer happens under the lease of a change, so that several processes with
//! one record ask once.

use super::Flow;
use super::request::FormRequest;
use super::run::Stage;
use crate::auth::assertion;
use crate::auth::enterprise::{self, Exchange};
use crate::auth::form::Form;
use crate::auth::grant::{Grant, IdentityProvider};
use crate::auth::registration;
use crate::auth::secret::Secret;
use crate::auth::step::{AssertionPurpose, AssertionRequest, Output, Purpose, StepId, StoreFault};
use crate::auth::token::{self, NewTokens, TokenAnswer};
use crate::error::AuthError;
use crate::fetch::{FetchError, FetchResponse};
use alloc::boxed::Box;
use alloc::format;
use alloc::sync::Arc;

/// How often a run asks again after the answer of a firewall.
const MAX_FIREWALLS: u32 = 3;

impl Flow {
    /// The issuer is known.
    pub(super) fn begin_grant(&mut self) {
        let Some(found) = self.run.as_ref().and_then(|run| run.found.clone()) else { return };
        let client = registration::choose_known(&self.env.config, &found.issuer);
        let client = client.and_then(|client| self.check_first_issuer(&client, &found).map(|()| client));
        let client = match client {
            Ok(client) => client,
            Err(why) => return self.fail(why),
        };
        let scopes = self.scopes();
        if let Some(run) = &mut self.run {
            (run.client, run.scopes) = (Some(client), scopes);
        }
        self.lease(Purpose::Change);
    }

    /// The record is known, and has no other tokens than those in use.
    pub(super) fn obtain(&mut self) {
        let config = Arc::clone(&self.env.config);
        let Some(found) = self.run.as_ref().and_then(|run| run.found.clone()) else { return };
        let (purpose, audience, token_endpoint) = match &config.grant {
            Grant::Assertion => (AssertionPurpose::Workload, &found.issuer.issuer, &found.issuer.token_endpoint),
            Grant::Enterprise(provider) => {
                (AssertionPurpose::Identity, &provider.client.issuer, &provider.token_endpoint)
            }
            Grant::Code | Grant::Device | Grant::ClientCredentials => {
                return self.request_grant(token::client_credentials());
            }
        };
        let (audience, token_endpoint) = (audience.clone(), token_endpoint.clone());
        let resource = Some(found.identifier.clone());
        let request = Box::new(AssertionRequest { purpose, audience, token_endpoint, resource });
        let step = self.env.step(|step| Output::Assert(step, request));
        let limit = self.env.config.limits.token_time;
        self.enter(Stage::Asserting(step), Some(limit));
    }

    pub(super) fn on_asserted(&mut self, step: StepId, outcome: Result<Secret, StoreFault>) -> bool {
        if !self.waits(|stage| matches!(stage, Stage::Asserting(open) if *open == step)) {
            return false;
        }
        let max = self.env.config.limits.max_token;
        let config = Arc::clone(&self.env.config);
        match (outcome, &config.grant) {
            (Err(StoreFault(why)), _) => self.fail(AuthError::Assertion(why)),
            (Ok(assertion), _) if assertion.is_empty() => self.fail(AuthError::Assertion("it is empty".into())),
            (Ok(assertion), _) if assertion.len() > max => {
                self.fail(AuthError::Assertion(format!("it is longer than {max} bytes")));
            }
            (Ok(assertion), Grant::Enterprise(provider)) => self.exchange(provider, &assertion),
            (Ok(assertion), _) => self.request_grant(assertion::redeem(&assertion)),
        }
        true
    }

    /// Lets the identity provider make a grant of the login of the user.
    fn exchange(&mut self, provider: &IdentityProvider, subject: &Secret) {
        let Some(run) = &self.run else { return };
        let Some(found) = run.found.clone() else { return };
        let exchange = Exchange {
            subject,
            subject_type: provider.subject,
            audience: &found.issuer.issuer,
            resource: &found.identifier,
            scopes: &run.scopes,
        };
        let request = FormRequest {
            purpose: "token_endpoint",
            url: provider.token_endpoint.clone(),
            issuer: provider.client.issuer.clone(),
            client: registration::at_provider(&provider.client),
            form: exchange.form(),
            stage: Stage::Exchanging,
            proof: None,
        };
        self.send(request);
    }

    pub(super) fn exchanged(&mut self, outcome: &Result<Box<FetchResponse>, FetchError>) {
        let config = Arc::clone(&self.env.config);
        let Grant::Enterprise(provider) = &config.grant else { return };
        let max = config.limits.max_token;
        match token::read_as(&provider.token_endpoint, outcome, |members| enterprise::grant(members, max)) {
            TokenAnswer::Tokens(grant) => self.request_grant(assertion::redeem(&grant)),
            other => self.refuse_grant(other),
        }
    }

    /// Asks the issuer for tokens with a grant.
    fn request_grant(&mut self, form: Form) {
        let omits = self.env.config.compat.omit_resource;
        let Some(run) = &self.run else { return };
        let (Some(found), Some(client)) = (run.found.clone(), run.client.clone()) else { return };
        let form = token::with_use(form, &run.scopes, (!omits).then_some(&*found.identifier));
        self.request_tokens(client, form, Stage::Granting);
    }

    pub(super) fn granted(&mut self, outcome: &Result<Box<FetchResponse>, FetchError>) {
        match self.answer(outcome) {
            // The grant is there again, so a refresh token is of no use (RFC 6749 section 4.4.3).
            TokenAnswer::Tokens(new) => self.keep_new(NewTokens { refresh: None, ..new }),
            other => self.refuse_grant(other),
        }
    }

    /// Ends the run with a refusal, or tries again if that may help. After a refusal of the grant
    /// the same one is not sent again, nor is there another one.
    fn refuse_grant<T>(&mut self, answer: TokenAnswer<T>) {
        match answer {
            TokenAnswer::Transient { problem, retry_after } => self.retry(problem, retry_after),
            TokenAnswer::Firewall(problem) if self.failures() < MAX_FIREWALLS => self.retry(problem, None),
            TokenAnswer::InvalidGrant(problem)
            | TokenAnswer::InvalidClient(problem)
            | TokenAnswer::Firewall(problem)
            | TokenAnswer::Other(problem) => self.fail(AuthError::Token(problem)),
            TokenAnswer::Tokens(_) => {}
        }
    }
}
