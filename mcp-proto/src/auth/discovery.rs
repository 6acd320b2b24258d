//! The search for the metadata of a server and of its issuer, as a value: it says which document it
//! wants next, and what it found.

mod answer;

use super::config::AuthConfig;
use super::grant::Grant;
use super::identifier::{self, IssuerMatch};
use super::metadata::{IssuerMetadata, ResourceMetadata};
use super::policy::MAX_URL;
use super::step::AuthReport;
use crate::error::{AuthError, Problem, TriedUrl, UrlFault};
use crate::exchange::Headers;
use crate::fetch::{FetchError, FetchRequest, FetchResponse, HttpTarget, Redirects};
use crate::peer_text::beginning;
use crate::version::ProtocolVersion;
use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use answer::{Document, Fault, FaultKind};
use core::net::IpAddr;
use core::time::Duration;

/// Maximum time for one document.
const DOCUMENT_TIME: Duration = Duration::from_secs(10);

/// What a search wants, or its end.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Next {
    /// This document.
    Fetch(Box<FetchRequest>),
    /// The issuer was found.
    Found(Box<Found>),
    /// It was not.
    Failed(AuthError),
}

/// What a search found.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Found {
    /// The metadata of the server, if it has any.
    pub(super) resource: Option<ResourceMetadata>,
    /// The identifier of the server.
    pub(super) identifier: String,
    pub(super) issuer: IssuerMetadata,
    /// What was tolerated.
    pub(super) reports: Vec<AuthReport>,
}

/// The search for the issuer of a server. It has no timers and makes no requests.
#[derive(Clone, Debug)]
pub(super) struct Discovery {
    /// The issuer whose metadata is looked for. `None`: it is that of the server.
    current: Option<Issuer>,
    /// The URLs of its metadata that are left. The first one is asked.
    urls: VecDeque<String>,
    /// Whether the first URL was asked, and has no answer.
    is_asked: bool,
    answer: Option<Result<Document, Fault>>,
    /// Whether all URLs so far say that there is no such metadata.
    is_absent: bool,
    /// The field `Mcp-Auth-Server` of the server.
    auth_server: Option<String>,
    /// The issuer of the record.
    preferred: Option<String>,
    /// The metadata of the server.
    resource: Option<ResourceMetadata>,
    /// The issuers that are left.
    issuers: VecDeque<Issuer>,
    /// Whether the default endpoints of 2025-03-26 are the last resort.
    has_defaults: bool,
    /// What may succeed later.
    unavailable: Option<Problem>,
    no_pkce: Option<AuthError>,
    /// The URLs that were tried. One whose document is used has no reason.
    tried: Vec<TriedUrl>,
    end: Option<Result<Box<Found>, AuthError>>,
}

/// An issuer, and where its metadata may be.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Issuer {
    /// One that a document or the configuration names.
    Named(String),
    /// The origin of the server (2025-03-26).
    Origin,
}

impl Discovery {
    /// Returns the search for a server. The hint is the `resource_metadata` of its challenge,
    /// `auth_server` its field `Mcp-Auth-Server`, and `preferred` the issuer of the record.
    pub(super) fn new(
        config: &AuthConfig,
        server: &HttpTarget,
        hint: Option<&str>,
        auth_server: Option<&str>,
        preferred: Option<&str>,
    ) -> Self {
        let mut urls = VecDeque::new();
        match &config.metadata_url {
            Some(url) => urls.push_back(url.clone()),
            None => {
                urls.extend(hint.map(ToOwned::to_owned));
                let derived = identifier::resource_urls(server);
                urls.extend(derived.into_iter().filter(|url| hint != Some(url)));
            }
        }
        Self {
            current: None,
            urls,
            is_asked: false,
            answer: None,
            is_absent: true,
            auth_server: auth_server.map(ToOwned::to_owned),
            preferred: preferred.map(ToOwned::to_owned),
            resource: None,
            issuers: VecDeque::new(),
            has_defaults: false,
            unavailable: None,
            no_pkce: None,
            tried: Vec::new(),
            end: None,
        }
    }

    /// Returns what the search wants next. It is the same until there is an answer. `peer` is the
    /// address to which the connection to the server led.
    pub(super) fn next(&mut self, config: &AuthConfig, server: &HttpTarget, peer: Option<IpAddr>) -> Next {
        loop {
            match &self.end {
                Some(Ok(found)) => return Next::Found(found.clone()),
                Some(Err(error)) => return Next::Failed(error.clone()),
                None => {}
            }
            let Some(url) = self.urls.front().cloned() else {
                self.leave(config, server);
                continue;
            };
            let answer = match self.answer.take() {
                Some(answer) => answer,
                None => match self.request(&url, config, server, peer) {
                    Err(fault) => Err(Fault::not_asked(fault.to_string())),
                    Ok(request) => {
                        self.is_asked = true;
                        return Next::Fetch(Box::new(request));
                    }
                },
            };
            self.urls.pop_front();
            let at = self.tried.len();
            match answer.and_then(|document| self.read(&url, &document, config, server)) {
                Ok(()) => {
                    let why = self.end.as_ref().and_then(|end| Some(end.as_ref().err()?.to_string()));
                    self.tried.insert(at, TriedUrl { url, status: Some(200), why: why.unwrap_or_default() });
                }
                Err(fault) => self.skip(&url, fault),
            }
        }
    }

    /// Takes the end of the request that [`next`](Self::next) returned. Ignores every other one.
    pub(super) fn answer(&mut self, outcome: &Result<Box<FetchResponse>, FetchError>) {
        if core::mem::take(&mut self.is_asked) {
            self.answer = Some(answer::document(outcome));
        }
    }

    /// Returns the URLs so far. One whose document is used has no reason.
    pub(super) fn tried(&self) -> &[TriedUrl] {
        &self.tried
    }

    /// Returns the request for a document.
    fn request(
        &self,
        url: &str,
        config: &AuthConfig,
        server: &HttpTarget,
        peer: Option<IpAddr>,
    ) -> Result<FetchRequest, UrlFault> {
        let target = config.policy.check(url, server)?;
        if config.policy.is_beyond(&target, server, peer) {
            return Err(UrlFault::Reach);
        }
        let mut headers = Headers::new().with("Accept", "application/json");
        if self.current == Some(Issuer::Origin) {
            headers.push("MCP-Protocol-Version", ProtocolVersion::V2025_03_26.as_str());
        }
        Ok(FetchRequest {
            headers,
            redirects: Redirects::Follow { max: 3 },
            reach: config.policy.reach(&target, server, peer),
            timeout: config.limits.discovery_time.min(DOCUMENT_TIME),
            max_body: config.limits.max_document,
            ..FetchRequest::get(target)
        })
    }

    /// Notes that a URL has no document that can be used.
    fn skip(&mut self, url: &str, Fault { kind, status, why }: Fault) {
        let url = beginning(url, MAX_URL).to_owned();
        if kind == FaultKind::Unavailable && self.unavailable.is_none() {
            let why = status.is_none().then(|| why.clone());
            self.unavailable = Some(Problem { url: url.clone(), status, why, ..Problem::default() });
        }
        self.is_absent &= kind == FaultKind::Absent;
        self.tried.push(TriedUrl { url, status, why });
    }

    /// Uses a document.
    fn read(&mut self, url: &str, document: &Document, config: &AuthConfig, server: &HttpTarget) -> Result<(), Fault> {
        if let Err(fault) = config.policy.check(&document.url, server) {
            let error = bad_url("redirect", &document.url, fault);
            return Err(Fault::content(error.to_string()));
        }
        match self.current.clone() {
            None => self.read_resource(url, &document.body, config, server),
            Some(Issuer::Named(asked)) => self.read_issuer(&asked, url, &document.body, config, server),
            Some(Issuer::Origin) => self.read_issuer(&identifier::origin(server), url, &document.body, config, server),
        }
    }

    fn read_resource(
        &mut self,
        url: &str,
        document: &[u8],
        config: &AuthConfig,
        server: &HttpTarget,
    ) -> Result<(), Fault> {
        let metadata = ResourceMetadata::read(document).map_err(Fault::content)?;
        if !identifier::fits(&metadata.resource, server) {
            self.end = Some(Err(AuthError::ResourceMismatch {
                url: url.to_owned(),
                wanted: identifier::own_identifier(server),
                found: beginning(&metadata.resource, MAX_URL).to_owned(),
            }));
            return Ok(());
        }
        let issuers = self.issuers(&metadata.authorization_servers, config);
        if issuers.is_empty() {
            return Err(Fault::content("it names no authorization server"));
        }
        self.resource = Some(metadata);
        self.issuers = issuers;
        // The other places of this metadata no longer count.
        self.unavailable = None;
        self.next_issuer(config, server);
        Ok(())
    }

    /// Returns the issuers to try, of those that the metadata of the server lists.
    fn issuers(&self, listed: &[String], config: &AuthConfig) -> VecDeque<Issuer> {
        if let Some(only) = &config.issuer {
            return [Issuer::Named(only.clone())].into();
        }
        let is_preferred = |issuer: &&String| {
            self.preferred.as_ref().is_some_and(|preferred| {
                identifier::same_issuer(issuer, preferred, config.compat.issuer_slash) != IssuerMatch::Different
            })
        };
        let hint = self.auth_server.as_ref().filter(|_| config.compat.auth_server_hint);
        let mut issuers = VecDeque::new();
        for issuer in listed.iter().find(is_preferred).into_iter().chain(listed).chain(hint) {
            let issuer = Issuer::Named(issuer.clone());
            if !issuers.contains(&issuer) {
                issuers.push_back(issuer);
            }
        }
        issuers
    }

    /// Goes on when no URL is left.
    fn leave(&mut self, config: &AuthConfig, server: &HttpTarget) {
        match &self.current {
            None if self.unavailable.is_none() => {
                self.issuers = self.issuers(&[], config);
                if self.is_absent && config.issuer.is_none() && config.compat.first_revision {
                    self.issuers.push_front(Issuer::Origin);
                }
            }
            Some(Issuer::Origin) => self.has_defaults = self.is_absent,
            None | Some(Issuer::Named(_)) => {}
        }
        self.next_issuer(config, server);
    }

    /// Begins to look for the metadata of the next issuer, or ends.
    fn next_issuer(&mut self, config: &AuthConfig, server: &HttpTarget) {
        self.is_absent = true;
        self.current = self.issuers.pop_front();
        let urls = match &self.current {
            Some(Issuer::Origin) => Ok(vec![identifier::first_revision_url(server)]),
            Some(Issuer::Named(issuer)) => issuer_urls(issuer, config, server).map_err(|why| (issuer.clone(), why)),
            None => {
                self.end = Some(self.last_resort(server).map(Box::new));
                Ok(Vec::new())
            }
        };
        match urls {
            Ok(urls) => self.urls = urls.into(),
            Err((issuer, why)) => {
                self.urls.clear();
                self.skip(&issuer, Fault::not_asked(why));
            }
        }
    }

    /// Returns how the search ends without a document.
    fn last_resort(&mut self, server: &HttpTarget) -> Result<Found, AuthError> {
        if let Some(problem) = self.unavailable.take() {
            return Err(AuthError::Unavailable(problem));
        }
        if self.has_defaults {
            return Ok(self.found(IssuerMetadata::first_revision(server), Vec::new(), server));
        }
        let mut tried: Vec<_> = self.tried.iter().filter(|tried| !tried.why.is_empty()).cloned().collect();
        if let Some(issuer) = self.auth_server.as_deref().map(|issuer| beginning(issuer, MAX_URL))
            && !tried.iter().any(|tried| tried.url == issuer)
        {
            let why = "the field Mcp-Auth-Server names it (setting: auth_server_hint)";
            tried.push(TriedUrl { url: issuer.to_owned(), status: None, why: why.into() });
        }
        Err(self.no_pkce.take().unwrap_or(AuthError::Discovery { tried }))
    }

    fn found(&mut self, issuer: IssuerMetadata, reports: Vec<AuthReport>, server: &HttpTarget) -> Found {
        let resource = self.resource.take();
        let own = || identifier::own_identifier(server);
        let identifier = resource.as_ref().map_or_else(own, |metadata| metadata.resource.clone());
        Found { resource, identifier, issuer, reports }
    }

    fn read_issuer(
        &mut self,
        asked: &str,
        url: &str,
        document: &[u8],
        config: &AuthConfig,
        server: &HttpTarget,
    ) -> Result<(), Fault> {
        let mut issuer = IssuerMetadata::read(document).map_err(Fault::content)?;
        let mut reports = Vec::new();
        reports.extend(identity(&mut issuer, asked, url, config)?);
        let check = |name: &str, url: &str| {
            config.policy.check(url, server).map(|_| ()).map_err(|fault| bad_url(name, url, fault).to_string())
        };
        check("token_endpoint", &issuer.token_endpoint).map_err(Fault::content)?;
        if let Some(url) = &issuer.authorization_endpoint {
            check("authorization_endpoint", url).map_err(Fault::content)?;
        }
        // A login can do without these.
        for (name, endpoint) in [
            ("registration_endpoint", &mut issuer.registration_endpoint),
            ("revocation_endpoint", &mut issuer.revocation_endpoint),
            ("device_authorization_endpoint", &mut issuer.device_endpoint),
        ] {
            if let Some(Err(why)) = endpoint.as_ref().map(|url| check(name, url)) {
                reports.push(AuthReport::Deviation(why));
                *endpoint = None;
            }
        }
        if let (Grant::Code, Err(error)) = (&config.grant, pkce(&issuer)) {
            let is_tolerated = config.compat.unlisted_pkce && matches!(error, AuthError::NoPkce { listed: false, .. });
            if !is_tolerated {
                let fault = Fault::content(error.to_string());
                self.no_pkce.get_or_insert(error);
                return Err(fault);
            }
            reports.push(AuthReport::Deviation(error.to_string()));
        }
        self.end = Some(Ok(Box::new(self.found(issuer, reports, server))));
        Ok(())
    }
}

/// Returns the URLs of the metadata of an issuer.
///
/// # Errors
/// Why it is none.
fn issuer_urls(issuer: &str, config: &AuthConfig, server: &HttpTarget) -> Result<Vec<String>, String> {
    let target = config.policy.check(issuer, server).map_err(|fault| fault.to_string())?;
    if target.path.contains('?') {
        return Err(UrlFault::Query.to_string());
    }
    let urls = identifier::issuer_urls(&target);
    if urls.is_empty() { Err("it is a URL of metadata, and no issuer".into()) } else { Ok(urls) }
}

/// Checks that a document is that of the issuer that was asked for (RFC 8414 section 3.3). Returns
/// what was tolerated.
fn identity(
    issuer: &mut IssuerMetadata,
    asked: &str,
    url: &str,
    config: &AuthConfig,
) -> Result<Option<AuthReport>, Fault> {
    if issuer.issuer.is_empty() {
        if !config.compat.missing_issuer {
            return Err(Fault::content("it names no issuer (setting: missing_issuer)"));
        }
        issuer.issuer = asked.to_owned();
        return Ok(Some(AuthReport::Deviation(format!("the metadata at {url} names no issuer"))));
    }
    let found = beginning(&issuer.issuer, MAX_URL);
    match identifier::same_issuer(&issuer.issuer, asked, config.compat.issuer_slash) {
        IssuerMatch::Equal => Ok(None),
        IssuerMatch::Slash => {
            let text = format!("the metadata at {url} is of the issuer {found}, and not of {asked}");
            Ok(Some(AuthReport::Deviation(text)))
        }
        IssuerMatch::Different => Err(Fault::content(format!("it is of the issuer {found}, and not of {asked}"))),
    }
}

/// Checks that an issuer supports proof keys with S256 (RFC 7636).
fn pkce(issuer: &IssuerMetadata) -> Result<(), AuthError> {
    let methods = issuer.code_challenge_methods.as_deref().unwrap_or_default();
    if methods.iter().any(|method| method == "S256") {
        return Ok(());
    }
    Err(AuthError::NoPkce { issuer: issuer.issuer.clone(), listed: !methods.is_empty() })
}

fn bad_url(purpose: &str, url: &str, fault: UrlFault) -> AuthError {
    AuthError::BadUrl { purpose: purpose.into(), url: beginning(url, MAX_URL).to_owned(), fault }
}

#[cfg(test)]
mod tests;
