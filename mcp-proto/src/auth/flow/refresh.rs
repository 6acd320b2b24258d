//! A refresh: the metadata first, then, under the lease of a change, the record, the token request
//! and the record again. It never destroys what it did not try.

use super::Flow;
use super::run::{Goal, Stage};
use crate::auth::record::{ClientSource, Entry};
use crate::auth::step::Purpose;
use crate::auth::token::{self, TokenAnswer};
use crate::error::{AuthError, Problem};
use crate::fetch::{FetchError, FetchResponse};
use alloc::boxed::Box;
use core::time::Duration;

/// The first and the longest wait before a refresh is repeated.
const FIRST_WAIT: Duration = Duration::from_secs(1);
const MAX_WAIT: Duration = Duration::from_secs(60);

impl Flow {
    /// The issuer is known. Another one than that of the tokens gets none of their secrets.
    pub(super) fn begin_refresh(&mut self) {
        match self.used_entry() {
            Some(_) => self.lease(Purpose::Change),
            None => self.login_instead(),
        }
    }

    /// Sends the refresh token.
    pub(super) fn refresh(&mut self) {
        let omits = self.env.config.compat.omit_resource;
        let (Some(entry), Some(refresh)) = (self.used_entry(), self.kept.refresh_token()) else {
            return self.login_instead();
        };
        let form = token::refresh(refresh, (!omits).then_some(&*entry.resource));
        let client = entry.client.clone();
        self.request_tokens(client, form, Stage::Refreshing);
    }

    pub(super) fn refreshed(&mut self, outcome: &Result<Box<FetchResponse>, FetchError>) {
        let answer = self.answer(outcome);
        let Some(entry) = self.kept.entry().cloned() else { return self.login_instead() };
        match answer {
            TokenAnswer::Tokens(new) => {
                let (before, number) = match &entry.tokens {
                    Some(tokens) => (tokens.refresh_token.clone(), tokens.generation),
                    None => (None, 0),
                };
                if let Some(run) = &mut self.run {
                    run.refreshed = Some(number);
                }
                let granted = entry.tokens.as_ref().map(|tokens| tokens.granted.clone()).unwrap_or_default();
                let tokens = self.tokens(new, before, number, &granted);
                self.keep(Entry { tokens: Some(tokens), ..entry });
            }
            // The record was read under the lease, so the refused token is the latest.
            TokenAnswer::InvalidGrant(_) => {
                self.kept.drop_tokens();
                self.store_loss();
            }
            TokenAnswer::InvalidClient(problem) => match entry.client.source {
                ClientSource::Dynamic => {
                    self.kept.drop_entry();
                    self.store_loss();
                }
                ClientSource::Given | ClientSource::Document => self.fail(AuthError::Token(problem)),
            },
            TokenAnswer::Transient { problem, retry_after } => self.retry(problem, retry_after),
            TokenAnswer::Firewall(problem) if self.failures() < 3 => self.retry(problem, None),
            // Real servers answer like this to a dead token. It stays until a record replaces it.
            TokenAnswer::Firewall(problem) | TokenAnswer::Other(problem) => {
                self.kept.refuse_tokens();
                match self.env.config.interactive {
                    true => self.login_instead(),
                    false => self.fail(AuthError::Token(problem)),
                }
            }
        }
    }

    /// Removes the refused tokens from the stored record. A login follows.
    fn store_loss(&mut self) {
        self.save(Stage::SavingLoss);
    }

    pub(super) fn failures(&self) -> u32 {
        self.run.as_ref().map_or(0, |run| run.failures)
    }

    /// Repeats the refresh after a wait, or ends it once it took too long.
    pub(super) fn retry(&mut self, problem: Problem, retry_after: Option<Duration>) {
        self.release(Purpose::Change);
        let now = self.env.now;
        let limit = self.env.config.limits.discovery_time;
        let is_early = self.kept.credentials().is_some_and(|credentials| credentials.is_valid(now));
        let Some(run) = &mut self.run else { return };
        run.failures += 1;
        let first = *run.first_failure.get_or_insert(now);
        let doubled = FIRST_WAIT * 2_u32.saturating_pow(run.failures.min(10) - 1);
        let wait = doubled.min(MAX_WAIT).max(retry_after.unwrap_or_default().min(MAX_WAIT));
        if is_early && run.goal == (Goal::Refresh { forced: false }) || (now + wait).since(first) > limit {
            return self.fail(AuthError::Unavailable(problem));
        }
        run.stage = Stage::Waiting;
        (run.until, run.retry) = (None, Some(now + wait));
    }
}
