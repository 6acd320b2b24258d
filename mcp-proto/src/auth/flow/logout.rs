//! A logout: the tokens are revoked as far as the issuer offers it (RFC 7009), then the record is
//! removed.

use super::Flow;
use super::request::FormRequest;
use super::run::{Revocation, Stage};
use crate::auth::secret::Secret;
use crate::auth::step::AuthReport;
use crate::auth::token;
use crate::fetch::{FetchError, FetchResponse};
use alloc::boxed::Box;

impl Flow {
    /// The record is known.
    pub(super) fn begin_logout(&mut self) {
        match self.kept.entry().is_some_and(|entry| entry.tokens.is_some()) {
            true => self.discover(),
            false => self.remove(None),
        }
    }

    /// Revokes the refresh token, then the access token.
    pub(super) fn revoke(&mut self) {
        let found = self.run.as_ref().and_then(|run| run.found.clone());
        let tokens = self.used_entry().and_then(|entry| entry.tokens.clone());
        let (Some(found), Some(tokens)) = (found, tokens) else { return self.remove(None) };
        if found.issuer.revocation_endpoint.is_none() {
            return self.remove(None);
        }
        match tokens.refresh_token {
            Some(refresh) => self.revoke_token(&refresh, "refresh_token", Revocation::Refresh(tokens.access_token)),
            None => {
                self.revoke_token(&tokens.access_token, "access_token", Revocation::Access { after_refresh: false })
            }
        }
    }

    fn revoke_token(&mut self, secret: &Secret, hint: &'static str, what: Revocation) {
        let found = self.run.as_ref().and_then(|run| run.found.clone());
        let url = found.and_then(|found| found.issuer.revocation_endpoint.clone()).unwrap_or_default();
        let Some(client) = self.used_entry().map(|entry| entry.client.clone()) else { return self.remove(None) };
        if self.env.config.policy.check(&url, &self.env.server).is_err() {
            return self.remove(Some(false));
        }
        let Some(run) = &mut self.run else { return };
        run.revocation = Some(what);
        let issuer = run.found.as_ref().map(|found| found.issuer.issuer.clone()).unwrap_or_default();
        let (form, stage) = (token::revoke(secret, hint), Stage::Revoking);
        let purpose = "revocation_endpoint";
        self.send(FormRequest { purpose, url, issuer, client, form, stage, proof: None });
    }

    pub(super) fn revoked(&mut self, outcome: &Result<Box<FetchResponse>, FetchError>) {
        let Some(what) = self.run.as_mut().and_then(|run| run.revocation.take()) else { return };
        let is_done = outcome.as_ref().is_ok_and(|response| response.status == 200);
        match what {
            Revocation::Refresh(access) if is_done => {
                self.revoke_token(&access, "access_token", Revocation::Access { after_refresh: true });
            }
            Revocation::Refresh(_) => self.remove(Some(false)),
            // The login ends with its refresh token. Some issuers revoke no access tokens.
            Revocation::Access { after_refresh } => self.remove(Some(after_refresh || is_done)),
        }
    }

    /// Removes the record.
    pub(super) fn remove(&mut self, revoked: Option<bool>) {
        if let Some(run) = &mut self.run {
            run.revoked = revoked;
        }
        self.kept.clear();
        self.save(Stage::Removing);
    }

    /// The record is removed.
    pub(super) fn removed(&mut self) {
        let revoked = self.run.as_ref().and_then(|run| run.revoked);
        self.env.report(AuthReport::LoggedOut { revoked });
        self.succeed();
    }
}
