//! Where the keys of an issuer come from, or its introspection: a state that says which document it
//! wants next.

use super::Trust;
use super::config::IssuerConfig;
use super::keys::{self, KeySet};
use crate::auth::identifier::{self, IssuerMatch};
use crate::auth::metadata::object;
use crate::auth::{Alg, PublicKey, UrlPolicy};
use crate::error::UrlFault;
use crate::exchange::{Headers, Reach};
use crate::fetch::{FetchError, FetchRequest, FetchResponse, HttpTarget, Redirects};
use crate::time::Instant;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::time::Duration;

/// Maximum time for one document.
const FETCH_TIME: Duration = Duration::from_secs(10);

/// Maximum lengths of documents, in bytes.
const MAX_METADATA: usize = 64 << 10;
const MAX_KEYS: usize = 256 << 10;

/// How long metadata is used.
const METADATA_TIME: Duration = Duration::from_secs(60 * 60);

/// How long keys and metadata are used while newer ones cannot be fetched.
const KEPT_TIME: Duration = Duration::from_secs(24 * 60 * 60);

/// The shortest time between two fetches for keys that are not in the set.
const UNKNOWN_TIME: Duration = Duration::from_secs(30);

/// The times between two fetches that fail: the first one, doubled up to the last one.
const FIRST_WAIT: Duration = Duration::from_secs(1);
const LAST_WAIT: Duration = Duration::from_secs(30);

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Source {
    issuer: String,
    /// Whether the tokens are verified by keys.
    needs_keys: bool,
    metadata: Option<Metadata>,
    keys: Option<LoadedKeys>,
    fetch: Fetch,
    failure: Option<Failure>,
}

/// What the metadata of an issuer says (RFC 8414 section 2).
#[derive(Clone, Debug)]
pub(super) struct Metadata {
    /// The issuer, as it spells itself.
    pub(super) issuer: String,
    /// The URL of its keys, or of its introspection.
    pub(super) endpoint: String,
    /// The methods in which clients may authenticate at its introspection.
    pub(super) auth_methods: Vec<String>,
    /// When it was fetched. `None`: it is configured.
    at: Option<Instant>,
}

#[derive(Debug)]
struct LoadedKeys {
    set: KeySet,
    /// The issuer that they belong to, as it spells itself.
    issuer: String,
    at: Instant,
    /// Until when they are used without a further fetch.
    until: Instant,
}

/// What is fetched.
#[derive(Debug)]
enum Fetch {
    Nothing,
    /// The metadata, at the first of these URLs, and what was wrong with those before.
    Metadata {
        urls: VecDeque<String>,
        faults: String,
        asked: bool,
    },
    Keys {
        asked: bool,
    },
}

/// The latest fetch failed.
#[derive(Clone, Copy, Debug)]
struct Failure {
    wait: Duration,
    until: Instant,
}

/// What a source says to a question.
#[derive(Clone, Debug)]
pub(super) enum Answer<T> {
    Found(T),
    /// A fetch has to end first.
    Wait,
    /// There is no such key.
    Unknown,
    /// It cannot be found out now. Ask again after this time.
    Unavailable(Duration),
}

/// What a source wants to be done.
#[derive(Debug)]
pub(super) enum Progress {
    Nothing,
    Fetch(Box<FetchRequest>),
    /// The fetch has ended: those that wait may ask again. An error is for a log.
    Ended(Result<(), String>),
}

impl Source {
    pub(super) fn new(config: &IssuerConfig) -> Self {
        let needs_keys = matches!(config.trust, Trust::Jwt);
        let endpoint = if needs_keys { &config.jwks_uri } else { &config.introspection_endpoint };
        let issuer = config.issuer.clone();
        let metadata = endpoint.clone().map(|endpoint| Metadata {
            issuer: issuer.clone(),
            endpoint,
            auth_methods: Vec::new(),
            at: None,
        });
        Self { issuer, needs_keys, metadata, keys: None, fetch: Fetch::Nothing, failure: None }
    }

    /// Returns the key for an algorithm and with a name, and the issuer that it belongs to. Call
    /// [`next`](Self::next) after it.
    pub(super) fn key(&mut self, now: Instant, alg: Alg, kid: Option<&str>) -> Answer<(PublicKey, String)> {
        let has_failed = self.failure.is_some();
        let usable = |keys: &&LoadedKeys| now < keys.until || has_failed && now < keys.at + KEPT_TIME;
        let Some(keys) = self.keys.as_ref().filter(usable) else { return self.ask(now) };
        let found = keys.set.find(alg, kid).map(|key| (key.clone(), keys.issuer.clone()));
        let (is_stale, may_be_new) = (now >= keys.until, now >= keys.at + UNKNOWN_TIME);
        match found {
            Some(found) => {
                if is_stale {
                    // They are used while newer ones cannot be fetched: without a wait.
                    self.ask::<()>(now);
                }
                Answer::Found(found)
            }
            None if has_failed || may_be_new || self.is_busy() => self.ask(now),
            None => Answer::Unknown,
        }
    }

    /// Returns the metadata with the endpoint of the introspection. Call [`next`](Self::next) after
    /// it.
    pub(super) fn endpoint(&mut self, now: Instant) -> Answer<Metadata> {
        let has_failed = self.failure.is_some();
        let lifetime = if has_failed { KEPT_TIME } else { METADATA_TIME };
        match self.metadata.as_ref().filter(|metadata| metadata.is_younger(now, lifetime)) {
            Some(metadata) => {
                let (found, is_stale) = (metadata.clone(), !metadata.is_younger(now, METADATA_TIME));
                if is_stale {
                    self.ask::<()>(now);
                }
                Answer::Found(found)
            }
            None => self.ask(now),
        }
    }

    /// Returns the issuer, as it spells itself.
    pub(super) fn issuer(&self) -> &str {
        self.metadata.as_ref().map_or(&self.issuer, |metadata| &metadata.issuer)
    }

    /// Begins a fetch, unless one is running or has just failed.
    fn ask<T>(&mut self, now: Instant) -> Answer<T> {
        match self.failure {
            _ if self.is_busy() => Answer::Wait,
            Some(Failure { until, .. }) if now < until => Answer::Unavailable(until - now),
            _ => {
                let is_known = self.metadata.as_ref().is_some_and(|known| known.is_younger(now, METADATA_TIME));
                self.fetch = if is_known {
                    Fetch::Keys { asked: false }
                } else {
                    let issuer = own_url(&self.issuer);
                    let faults = issuer.as_ref().err().map(ToString::to_string).unwrap_or_default();
                    let urls = issuer.map(|issuer| identifier::issuer_urls(&issuer).into()).unwrap_or_default();
                    Fetch::Metadata { urls, faults, asked: false }
                };
                Answer::Wait
            }
        }
    }

    const fn is_busy(&self) -> bool {
        !matches!(self.fetch, Fetch::Nothing)
    }

    /// Returns what is to be done next.
    pub(super) fn next(&mut self, now: Instant) -> Progress {
        loop {
            let outcome = match &mut self.fetch {
                Fetch::Nothing | Fetch::Metadata { asked: true, .. } | Fetch::Keys { asked: true } => {
                    return Progress::Nothing;
                }
                Fetch::Keys { asked } => {
                    *asked = true;
                    let url = self.metadata.as_ref().map_or("", |metadata| &metadata.endpoint);
                    get(url, MAX_KEYS).map_err(|fault| format!("{url}: {fault}"))
                }
                Fetch::Metadata { urls, faults, asked } => {
                    let Some(url) = urls.front() else {
                        let why = core::mem::take(faults);
                        return self.end(now, Err(why));
                    };
                    *asked = true;
                    get(url, MAX_METADATA).map_err(|fault| fault.to_string())
                }
            };
            match outcome {
                Ok(request) => return Progress::Fetch(Box::new(request)),
                Err(why) => {
                    if let Some(end) = self.failed(now, why, true) {
                        return end;
                    }
                }
            }
        }
    }

    /// Takes the end of the request that [`next`](Self::next) returned, and returns what is to be
    /// done then.
    pub(super) fn fetched(&mut self, now: Instant, outcome: &Result<Box<FetchResponse>, FetchError>) -> Progress {
        let is_final = matches!(outcome, Ok(response) if (400..500).contains(&response.status));
        let read = match document(outcome) {
            Ok(response) => self.read(now, response),
            Err(why) => Err(why),
        };
        match (read, &self.fetch) {
            (_, Fetch::Nothing) => Progress::Nothing,
            (Ok(()), Fetch::Metadata { .. }) if self.needs_keys => {
                self.fetch = Fetch::Keys { asked: false };
                self.next(now)
            }
            (Ok(()), _) => self.end(now, Ok(())),
            (Err(why), _) => match self.failed(now, why, is_final) {
                Some(end) => end,
                None => self.next(now),
            },
        }
    }

    fn read(&mut self, now: Instant, response: &FetchResponse) -> Result<(), String> {
        match self.fetch {
            Fetch::Nothing => {}
            Fetch::Metadata { .. } => self.metadata = Some(self.read_metadata(now, &response.body)?),
            Fetch::Keys { .. } => {
                let set = KeySet::read(&response.body)?;
                let issuer = self.issuer().into();
                self.keys = Some(LoadedKeys { set, issuer, at: now, until: now + keys::lifetime(&response.headers) });
            }
        }
        Ok(())
    }

    /// Notes that a document cannot be had. Returns the end, unless it may be at another URL.
    /// `is_final`: asking the same URL again would not help.
    fn failed(&mut self, now: Instant, why: String, is_final: bool) -> Option<Progress> {
        match &mut self.fetch {
            Fetch::Metadata { urls, faults, asked } => {
                let url = urls.pop_front().unwrap_or_default();
                let border = if faults.is_empty() { "" } else { "; " };
                *faults = format!("{faults}{border}{url}: {why}");
                *asked = false;
                None
            }
            _ => {
                // The metadata may name another URL by now.
                if is_final {
                    self.metadata.take_if(|metadata| metadata.at.is_some());
                }
                Some(self.end(now, Err(why)))
            }
        }
    }

    fn end(&mut self, now: Instant, outcome: Result<(), String>) -> Progress {
        self.fetch = Fetch::Nothing;
        self.failure = match (&outcome, self.failure) {
            (Ok(()), _) => None,
            (Err(_), before) => {
                let wait = before.map_or(FIRST_WAIT, |before| (before.wait * 2).min(LAST_WAIT));
                Some(Failure { wait, until: now + wait })
            }
        };
        Progress::Ended(outcome)
    }

    fn read_metadata(&self, now: Instant, document: &[u8]) -> Result<Metadata, String> {
        let members = object(document)?;
        let issuer = members.required_str("issuer").map_err(|why| why.to_string())?;
        if identifier::same_issuer(&issuer, &self.issuer, true) == IssuerMatch::Different {
            return Err("it is of another issuer".into());
        }
        let endpoint = if self.needs_keys { "jwks_uri" } else { "introspection_endpoint" };
        let endpoint = members.required_str(endpoint).map_err(|why| why.to_string())?;
        own_url(&endpoint).map_err(|fault| format!("{endpoint}: {fault}"))?;
        let auth_methods = members.optional("introspection_endpoint_auth_methods_supported").ok().flatten();
        Ok(Metadata {
            issuer: issuer.into_owned(),
            endpoint: endpoint.into_owned(),
            auth_methods: auth_methods.unwrap_or_default(),
            at: Some(now),
        })
    }
}

impl Metadata {
    fn is_younger(&self, now: Instant, lifetime: Duration) -> bool {
        self.at.is_none_or(|at| now < at + lifetime)
    }
}

/// Parses a URL of an issuer. The operator trusts it, so it may lead anywhere, but not in plain
/// text to another machine.
///
/// # Errors
/// [`UrlFault`] if it may not be used.
pub(super) fn own_url(url: &str) -> Result<HttpTarget, UrlFault> {
    let target = HttpTarget::parse(url).map_err(|_| UrlFault::Form)?;
    UrlPolicy::default().check(url, &target)
}

/// Returns the addresses to which a URL of an issuer may lead: a name of this machine must not
/// resolve to another one.
pub(super) fn reach(target: &HttpTarget) -> Reach {
    if target.origin.tls { Reach::Any } else { Reach::Loopback }
}

fn get(url: &str, max_body: usize) -> Result<FetchRequest, UrlFault> {
    let target = own_url(url)?;
    Ok(FetchRequest {
        headers: Headers::new().with("Accept", "application/json"),
        redirects: Redirects::Follow { max: 3 },
        reach: reach(&target),
        timeout: FETCH_TIME,
        max_body,
        ..FetchRequest::get(target)
    })
}

/// Returns the response with a document.
///
/// # Errors
/// Why there is none.
pub(super) fn document(outcome: &Result<Box<FetchResponse>, FetchError>) -> Result<&FetchResponse, String> {
    match outcome {
        Ok(response) if response.status == 200 => Ok(response),
        Ok(response) => Err(response.redirect.map_or(format!("HTTP {}", response.status), |why| why.to_string())),
        Err(why) => Err(why.to_string()),
    }
}

#[cfg(test)]
mod tests;
