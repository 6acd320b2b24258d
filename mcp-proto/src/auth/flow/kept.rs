//! The record of a flow, and the credentials of it that are in use.

use super::Attach;
use super::env::FlowEnv;
use crate::auth::config::{AuthConfig, Dpop};
use crate::auth::dpop::alg_of;
use crate::auth::grant::Grant;
use crate::auth::jws::KeyPair;
use crate::auth::record::{ClientSource, Entry, Record, TokenType, Tokens, Version};
use crate::auth::scopes::Scopes;
use crate::auth::secret::Secret;
use crate::auth::step::{Generation, Stored};
use crate::time::Instant;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::time::Duration;

/// Maximum number of entries of a record.
const MAX_ENTRIES: usize = 4;
/// Maximum time before the end of a token at which it is renewed.
const MAX_MARGIN: Duration = Duration::from_secs(60);

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Kept {
    is_loaded: bool,
    /// The entries that this configuration may use, the latest first.
    entries: Vec<Entry>,
    /// Those of other clients, which stay as they are.
    others: Vec<Entry>,
    version: Version,
    credentials: Option<Credentials>,
    generation: Generation,
    /// The number of the tokens whose refresh token the issuer refused for an unclear reason, or
    /// that are not to be used. They stay in the record, and are not tried again.
    refused: Option<u64>,
}

/// An access token in use.
#[derive(Clone, Debug)]
pub(super) struct Credentials {
    token: Secret,
    /// The key that the token is bound to.
    key: Option<Box<KeyPair>>,
    /// When it expires, and when it is to be renewed.
    times: Option<(Instant, Instant)>,
    /// The number of the tokens in the record.
    number: u64,
}

impl Credentials {
    /// Returns whether the token has not expired.
    pub(super) fn is_valid(&self, now: Instant) -> bool {
        self.times.is_none_or(|(end, _)| now < end)
    }

    /// Returns what a request carries.
    pub(super) fn attach(&self) -> Attach<'_> {
        match &self.key {
            Some(_) => Attach::Bound,
            None => Attach::Bearer(&self.token),
        }
    }

    /// Returns the token and the key that it is bound to, if it is.
    pub(super) fn bound(&self) -> Option<(&Secret, &KeyPair)> {
        self.key.as_ref().map(|key| (&self.token, &**key))
    }

    /// Returns whether the token is not to be renewed yet.
    pub(super) fn is_fresh(&self, now: Instant) -> bool {
        self.times.is_none_or(|(_, renewal)| now < renewal)
    }
}

impl Kept {
    pub(super) const fn is_loaded(&self) -> bool {
        self.is_loaded
    }

    pub(super) const fn version(&self) -> Version {
        self.version
    }

    pub(super) const fn generation(&self) -> Generation {
        self.generation
    }

    pub(super) const fn credentials(&self) -> Option<&Credentials> {
        self.credentials.as_ref()
    }

    /// Returns the entry in use.
    pub(super) fn entry(&self) -> Option<&Entry> {
        self.entries.first()
    }

    /// Returns the entries that this configuration may use.
    pub(super) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Returns the entry of this issuer.
    pub(super) fn entry_of(&self, issuer: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.issuer == issuer)
    }

    /// Returns the refresh token of the entry in use.
    pub(super) fn refresh_token(&self) -> Option<&Secret> {
        let tokens = self.entry()?.tokens.as_ref()?;
        tokens.refresh_token.as_ref().filter(|_| self.refused != Some(tokens.generation))
    }

    /// Returns the granted scopes of the tokens in use.
    pub(super) fn granted(&self) -> Scopes {
        let tokens = self.entry().and_then(|entry| entry.tokens.as_ref());
        tokens.map(|tokens| tokens.granted.clone()).unwrap_or_default()
    }

    /// Returns the record as it is to be stored.
    pub(super) fn record(&self) -> Option<Box<Record>> {
        let entries = self.entries.iter().chain(&self.others).take(MAX_ENTRIES);
        let record = Record { entries: entries.cloned().collect() };
        (!record.entries.is_empty()).then(|| Box::new(record))
    }

    /// Replaces the entries by those of the store.
    fn read(&mut self, env: &FlowEnv, stored: Stored) {
        self.version = stored.version;
        let entries = stored.record.map(|record| record.entries).unwrap_or_default();
        let entries = entries.into_iter().take(MAX_ENTRIES);
        (self.entries, self.others) = entries.partition(|entry| is_own(entry, &env.config));
    }

    /// Replaces the record by that of the store. Returns whether its tokens are other ones than
    /// those in use, so that they are in use now.
    pub(super) fn load(&mut self, env: &FlowEnv, stored: Stored) -> bool {
        let client = |kept: &Self| kept.entry().map(|entry| (entry.issuer.clone(), entry.client.client_id.clone()));
        let before = client(self);
        self.is_loaded = true;
        self.read(env, stored);
        let is_same = before == client(self);
        let tokens = self.entry().and_then(|entry| entry.tokens.as_ref());
        if let Some(unfit) = tokens.filter(|tokens| !fits(tokens, env.config.dpop)) {
            self.refused = Some(unfit.generation);
        }
        let tokens = self.entry().and_then(|entry| entry.tokens.as_ref());
        let tokens = tokens.filter(|tokens| self.refused != Some(tokens.generation));
        let number = self.credentials.as_ref().map(|credentials| credentials.number);
        match tokens {
            Some(tokens) if is_same && number == Some(tokens.generation) => false,
            Some(tokens) => {
                let credentials = credentials(env, tokens);
                self.credentials = Some(credentials);
                self.generation.0 += 1;
                true
            }
            None => {
                self.drop_credentials();
                false
            }
        }
    }

    /// The store failed: goes on in memory.
    pub(super) const fn load_nothing(&mut self) {
        self.is_loaded = true;
    }

    pub(super) const fn saved(&mut self, version: Version) {
        self.version = version;
    }

    /// Puts this entry first, in place of that of the same issuer. A client that is given stays
    /// beside another one.
    pub(super) fn put(&mut self, entry: Entry) {
        let is_other = |known: &Entry| {
            let is_given = known.client.source == ClientSource::Given;
            known.issuer != entry.issuer || is_given && known.client.client_id != entry.client.client_id
        };
        self.entries.retain(is_other);
        self.entries.insert(0, entry);
        self.entries.truncate(MAX_ENTRIES);
    }

    /// Uses the tokens of the first entry.
    pub(super) fn take(&mut self, env: &FlowEnv) {
        if let Some(tokens) = self.entry().and_then(|entry| entry.tokens.as_ref()) {
            self.credentials = Some(credentials(env, tokens));
            self.generation.0 += 1;
        }
    }

    /// Takes the record of the store that replaced this one meanwhile, and keeps the first entry.
    /// The scopes that others requested meanwhile are not lost.
    pub(super) fn rebase(&mut self, env: &FlowEnv, stored: Stored) {
        let own = self.entry().cloned();
        self.read(env, stored);
        if let Some(mut entry) = own {
            if let Some(other) = self.entry_of(&entry.issuer) {
                entry.requested = entry.requested.union(&other.requested);
            }
            self.put(entry);
        }
    }

    /// Returns whether the record of the store has other tokens in use than those of the entry here
    /// with this number.
    pub(super) fn is_replaced(&self, env: &FlowEnv, stored: &Stored, number: u64) -> bool {
        let mut entries = stored.record.iter().flat_map(|record| &record.entries);
        let first = entries.find(|entry| is_own(entry, &env.config));
        first.is_none_or(|first| {
            let is_same = self
                .entry()
                .is_some_and(|own| own.issuer == first.issuer && own.client.client_id == first.client.client_id);
            !is_same || first.tokens.as_ref().is_none_or(|tokens| tokens.generation != number)
        })
    }

    /// Returns whether the record of the store has tokens of the issuer in use.
    pub(super) fn has_tokens_in(&self, stored: &Stored) -> bool {
        let mut entries = stored.record.iter().flat_map(|record| &record.entries);
        entries.any(|entry| entry.tokens.is_some() && self.entry().is_some_and(|own| own.issuer == entry.issuer))
    }

    /// Removes the tokens of the first entry, whose refresh token the issuer refused.
    pub(super) fn drop_tokens(&mut self) {
        if let Some(entry) = self.entries.first_mut() {
            entry.tokens = None;
        }
        self.drop_credentials();
    }

    /// Uses the tokens of the first entry no more, although they stay in the record.
    pub(super) fn refuse_tokens(&mut self) {
        self.refused = self.entry().and_then(|entry| entry.tokens.as_ref()).map(|tokens| tokens.generation);
        self.drop_credentials();
    }

    /// Removes the client of the first entry, which the issuer does not know any more.
    pub(super) fn drop_entry(&mut self) {
        if !self.entries.is_empty() {
            self.entries.remove(0);
        }
        self.drop_credentials();
    }

    /// Removes everything that this configuration may use.
    pub(super) fn clear(&mut self) {
        self.entries.clear();
        self.drop_credentials();
    }

    pub(super) fn drop_credentials(&mut self) {
        if self.credentials.take().is_some() {
            self.generation.0 += 1;
        }
    }
}

fn credentials(env: &FlowEnv, tokens: &Tokens) -> Credentials {
    let times = tokens.expires.map(|expires| {
        let left = expires.saturating_sub(env.unix());
        // More than the whole lifetime means that a clock was set.
        let lifetime = tokens.lifetime.unwrap_or(left);
        let left = Duration::from_secs(left.min(lifetime));
        let margin = MAX_MARGIN.min(Duration::from_secs(lifetime) / 5);
        (env.now + left, env.now + left.saturating_sub(margin))
    });
    let key = tokens.dpop_key.clone().filter(|_| tokens.token_type == TokenType::Dpop);
    Credentials { token: tokens.access_token.clone(), key, times, number: tokens.generation }
}

/// Returns whether an entry is of a client of this configuration. One that names no client for the
/// issuer uses the login that is there.
fn is_own(entry: &Entry, config: &AuthConfig) -> bool {
    match config.grant {
        Grant::Assertion => entry.client.client_id.is_empty(),
        _ => config.given_at(&entry.issuer).is_none_or(|given| given.client_id == entry.client.client_id),
    }
}

/// Returns whether tokens of the record can be used: a bound one has its key, and a bearer token
/// may be used at all.
fn fits(tokens: &Tokens, dpop: Dpop) -> bool {
    match tokens.token_type {
        TokenType::Bearer => dpop != Dpop::Required,
        TokenType::Dpop => tokens.dpop_key.as_ref().is_some_and(|key| alg_of(&key.public).is_some()),
    }
}
