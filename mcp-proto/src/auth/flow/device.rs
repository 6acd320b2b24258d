//! A login with a code that the user enters at a page on any device (RFC 8628). It replaces the
//! page and its redirect.

use super::Flow;
use super::request::FormRequest;
use super::run::Stage;
use crate::auth::device::{self, DeviceAuthorization};
use crate::auth::secret::Secret;
use crate::auth::step::{AuthReport, DeviceCode, Output, StepId};
use crate::auth::token::{self, TokenAnswer};
use crate::error::AuthError;
use crate::fetch::{FetchError, FetchResponse};
use crate::time::Instant;
use alloc::boxed::Box;
use alloc::string::ToString;
use core::time::Duration;

/// By how much the issuer lengthens the interval (RFC 8628 section 3.5).
const SLOWER: Duration = Duration::from_secs(5);

/// A code that the user may have entered.
#[derive(Debug)]
pub(super) struct Device {
    code: Secret,
    /// The time between two token requests.
    interval: Duration,
    until: Instant,
}

impl Flow {
    /// The client is known: asks for a code.
    pub(super) fn request_code(&mut self) {
        let omits = self.env.config.compat.omit_resource;
        let Some(run) = &self.run else { return };
        let (Some(found), Some(client)) = (run.found.clone(), run.client.clone()) else { return };
        let request = FormRequest {
            purpose: "device_authorization_endpoint",
            url: found.issuer.device_endpoint.clone().unwrap_or_default(),
            issuer: found.issuer.issuer.clone(),
            client,
            form: device::request(&run.scopes, (!omits).then_some(&*found.identifier)),
            stage: Stage::RequestingCode,
            proof: None,
        };
        self.send(request);
    }

    pub(super) fn code_received(&mut self, outcome: &Result<Box<FetchResponse>, FetchError>) {
        let found = self.run.as_ref().and_then(|run| run.found.as_ref());
        let url = found.and_then(|found| found.issuer.device_endpoint.as_deref()).unwrap_or_default();
        let max = self.env.config.limits.max_token;
        match token::read_as(url, outcome, |members| device::read(members, max)) {
            TokenAnswer::Tokens(code) => self.show_code(code),
            TokenAnswer::Transient { problem, .. } => self.fail(AuthError::Unavailable(problem)),
            TokenAnswer::InvalidClient(problem) => self.refuse_client(AuthError::Token(problem)),
            TokenAnswer::InvalidGrant(problem) | TokenAnswer::Firewall(problem) | TokenAnswer::Other(problem) => {
                self.fail(AuthError::Authorization(problem));
            }
        }
    }

    /// Shows the code to the user.
    fn show_code(&mut self, code: DeviceAuthorization) {
        let Some(found) = self.run.as_ref().and_then(|run| run.found.clone()) else { return };
        if let Err(why) = self.endpoint("verification_uri", &code.verification_uri) {
            return self.fail(why);
        }
        let mut link = code.verification_uri_complete;
        let checked = link.as_deref().map(|url| self.endpoint("verification_uri_complete", url));
        if let Some(Err(why)) = checked {
            self.env.report(AuthReport::Deviation(why.to_string()));
            link = None;
        }
        let until = self.env.now + code.lifetime;
        let Some(run) = &mut self.run else { return };
        let shown = Box::new(DeviceCode {
            user_code: code.user_code,
            verification_uri: code.verification_uri,
            verification_uri_complete: link.map(Secret::from),
            issuer: found.issuer.issuer.clone(),
            scopes: run.scopes.clone(),
            until,
        });
        run.browser = Some(self.env.step(|step| Output::ShowCode(step, shown)));
        run.device = Some(Device { code: code.device_code, interval: code.interval, until });
        self.wait_for_code();
    }

    /// Waits for the time of the next token request, or for the end of the code.
    fn wait_for_code(&mut self) {
        let now = self.env.now;
        let Some(run) = &mut self.run else { return };
        let Some(device) = &run.device else { return };
        run.stage = Stage::Polling(None);
        run.until = Some(device.until);
        run.retry = Some(now + device.interval).filter(|retry| *retry < device.until);
        // The lifetime of the code limits the number of these requests.
        run.fetches = run.fetches.saturating_sub(1);
    }

    /// Asks whether the user has entered the code.
    pub(super) fn poll(&mut self) {
        let omits = self.env.config.compat.omit_resource;
        let Some(run) = &self.run else { return };
        let (Some(found), Some(client), Some(device)) = (run.found.clone(), run.client.clone(), &run.device) else {
            return;
        };
        let form = device::redeem(&device.code, (!omits).then_some(&*found.identifier));
        self.request_tokens(client, form, |step| Stage::Polling(Some(step)));
    }

    pub(super) fn polled(&mut self, outcome: &Result<Box<FetchResponse>, FetchError>) {
        let answer = self.answer(outcome);
        let error = match &answer {
            TokenAnswer::Transient { problem, .. } | TokenAnswer::Other(problem) => problem.error.clone(),
            _ => None,
        };
        match (error.as_deref(), answer) {
            (Some("authorization_pending"), _) => self.wait_for_code(),
            (Some("slow_down"), _) => self.slow_down(|_| SLOWER),
            (Some("expired_token"), _) => self.fail(AuthError::PageTimeout),
            (Some("access_denied"), TokenAnswer::Other(problem)) => self.fail(AuthError::Authorization(problem)),
            (_, TokenAnswer::Transient { retry_after, .. }) => {
                self.slow_down(|interval| interval.max(retry_after.unwrap_or_default()));
            }
            (_, answer) => self.end_login(answer),
        }
    }

    /// Lengthens the interval of the token requests by what this makes of it.
    fn slow_down(&mut self, by: impl FnOnce(Duration) -> Duration) {
        if let Some(device) = self.run.as_mut().and_then(|run| run.device.as_mut()) {
            device.interval = device::longer(device.interval, by(device.interval));
        }
        self.wait_for_code();
    }

    /// Returns whether this step shows the code, so that the user can decline.
    pub(super) fn shows_code(&self, step: StepId) -> bool {
        self.run.as_ref().is_some_and(|run| run.device.is_some() && run.browser == Some(step))
    }
}
