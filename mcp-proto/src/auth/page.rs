//! The authorization request and its answer (RFC 6749 section 4.1, RFC 9207).

#[cfg(test)]
mod tests;

use super::config::{AuthConfig, Prompt};
use super::form::{Form, decode};
use super::metadata::IssuerMetadata;
use super::record::ClientSource;
use super::scopes::Scopes;
use super::secret::Secret;
use crate::error::{AuthError, Problem, UrlFault};
use crate::fetch::HttpTarget;
use crate::peer_text::beginning;
use alloc::borrow::ToOwned;
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// The maximum length of the URL of a page.
const MAX_PAGE: usize = 8 << 10;
/// The maximum length of the URL of a redirect.
const MAX_REDIRECT: usize = 16 << 10;
/// The maximum length of what an error shows of the issuer in a redirect.
const MAX_ISSUER: usize = 2048;
/// The scope of refresh tokens (OpenID Connect Core section 11).
const OFFLINE: &str = "offline_access";

/// An authorization request.
pub(super) struct PageRequest<'a> {
    pub(super) issuer: &'a IssuerMetadata,
    pub(super) client_id: &'a str,
    /// Where the identifier is from.
    pub(super) source: ClientSource,
    pub(super) redirect_uri: &'a str,
    pub(super) scopes: &'a Scopes,
    pub(super) state: &'a Secret,
    /// The challenge of the proof key (RFC 7636 section 4.2).
    pub(super) challenge: &'a str,
    /// The identifier of the resource (RFC 8707 section 2).
    pub(super) resource: Option<&'a str>,
    pub(super) config: &'a AuthConfig,
}

/// Returns the URL of the page of a login (RFC 6749 section 4.1.1). It keeps the query of the
/// endpoint.
///
/// # Errors
/// [`AuthError::BadUrl`] if the issuer has no such endpoint, and [`AuthError::Limit`] if the URL is
/// too long.
pub(super) fn url(request: &PageRequest<'_>) -> Result<String, AuthError> {
    let endpoint = request.issuer.authorization_endpoint.as_deref().unwrap_or_default();
    let fault = match HttpTarget::parse(endpoint) {
        Ok(_) if endpoint.contains('#') => Some(UrlFault::Fragment),
        Ok(_) => None,
        Err(_) => Some(UrlFault::Form),
    };
    if let Some(fault) = fault {
        return Err(AuthError::BadUrl { purpose: "authorization_endpoint".into(), url: endpoint.into(), fault });
    }
    let form = form(request);
    let set = decode(form.text());
    // No parameter is there twice (RFC 6749 section 3.1).
    let is_kept = |pair: &&str| decode(pair).iter().any(|(name, _)| set.iter().all(|(other, _)| other != name));
    let (place, query) = endpoint.split_once('?').unwrap_or((endpoint, ""));
    let query: Vec<_> = query.split('&').filter(is_kept).chain([form.text()]).collect();
    let url = format!("{place}?{}", query.join("&"));
    if url.len() > MAX_PAGE {
        return Err(AuthError::Limit(format!("{MAX_PAGE} bytes for the URL of the page")));
    }
    Ok(url)
}

/// Returns the parameters of a page.
fn form(request: &PageRequest<'_>) -> Form {
    let PageRequest { client_id, source, redirect_uri, scopes, state, challenge, resource, config, .. } = request;
    let mut form = Form::new()
        .with("response_type", "code")
        .with("client_id", client_id)
        .with("redirect_uri", redirect_uri)
        .with("state", state.expose())
        .with("code_challenge", challenge)
        .with("code_challenge_method", "S256");
    if !scopes.is_empty() {
        form.push("scope", &scopes.to_string());
    }
    if let Some(resource) = resource {
        form.push("resource", resource);
    }
    let prompt = match &config.prompt {
        // Not for a client of an operator: the user may have no right to consent.
        Prompt::Auto => (scopes.contains(OFFLINE) && *source != ClientSource::Given).then_some("consent"),
        Prompt::Omit => None,
        Prompt::Value(prompt) => Some(&**prompt),
    };
    if let Some(prompt) = prompt {
        form.push("prompt", prompt);
    }
    let more = config.parameters.iter().filter(|parameter| parameter.is_in_page());
    more.for_each(|parameter| form.push(&parameter.name, &parameter.value));
    form
}

/// What a redirect says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Answer {
    /// The code, which is sent to the token endpoint of this issuer only, and once.
    Code(Secret),
    /// The issuer refuses: [`AuthError::Authorization`].
    Refused(AuthError),
    /// It is from another issuer: [`AuthError::WrongIssuer`]. It ends the login, and none of its
    /// texts is used (RFC 9207 section 2.4).
    WrongIssuer(AuthError),
    /// It does not belong to this login, which goes on. The text says why.
    Ignored(&'static str),
}

/// Reads the URL of a redirect, or one that the user gave, for a login at this issuer. The order of
/// the checks is part of the contract: before `state` is right, nothing ends the login, and before
/// `iss` is right, nothing else is read.
pub(super) fn answer(url: &str, redirect_uri: &str, state: &Secret, issuer: &IssuerMetadata) -> Answer {
    let url = url.trim();
    if url.len() > MAX_REDIRECT {
        return Answer::Ignored("the URL is too long");
    }
    let url = url.split('#').next().unwrap_or_default();
    let (place, query) = url.split_once('?').unwrap_or((url, ""));
    if !is_same_place(place, redirect_uri.split('?').next().unwrap_or_default()) {
        return Answer::Ignored("the URL is not the redirect URI");
    }
    let parameters = decode(query);
    let names: BTreeSet<_> = parameters.iter().map(|(name, _)| name).collect();
    if names.len() < parameters.len() {
        return Answer::Ignored("a parameter is there twice");
    }
    let value = |name: &str| parameters.iter().find(|(known, _)| known == name).map(|(_, value)| &**value);
    match value("state") {
        None => return Answer::Ignored("there is no state"),
        Some(found) if Secret::from(found) != *state => return Answer::Ignored("the state is not that of this login"),
        Some(_) => {}
    }
    let found = value("iss");
    // Byte for byte: another spelling can be another issuer (RFC 9207 section 2.4).
    if found.map_or(issuer.iss_parameter, |found| found != issuer.issuer) {
        let found = found.map(|found| beginning(found, MAX_ISSUER).to_owned());
        return Answer::WrongIssuer(AuthError::WrongIssuer { wanted: issuer.issuer.clone(), found });
    }
    match (value("error"), value("code").filter(|code| !code.is_empty())) {
        (Some(error), _) => {
            let problem = Problem { url: issuer.issuer.clone(), ..Problem::default() };
            Answer::Refused(AuthError::Authorization(problem.saying(Some(error), value("error_description"))))
        }
        (None, Some(code)) => Answer::Code(code.into()),
        (None, None) => Answer::Ignored("there is neither a code nor an error"),
    }
}

/// Returns whether two URLs without a query are the same. A browser spells scheme, host and port in
/// its own way (RFC 3986 section 6.2); the path is compared byte for byte.
fn is_same_place(found: &str, wanted: &str) -> bool {
    let same = |(found, wanted): (HttpTarget, HttpTarget)| found.origin == wanted.origin && found.path == wanted.path;
    found == wanted || HttpTarget::parse(found).ok().zip(HttpTarget::parse(wanted).ok()).is_some_and(same)
}

/// Returns the path of the redirect URI of a dynamic registration: each issuer has its own below
/// this one. So an answer of one issuer is not taken for that of another, also without `iss` (RFC
/// 9700 section 2.1).
pub(super) fn callback_path(base: &str, issuer: &str) -> String {
    let [a, b, c, d, e, f, g, h, ..] = hmac_sha256::Hash::hash(issuer.as_bytes());
    format!("{}/{:016x}", base.trim_end_matches('/'), u64::from_be_bytes([a, b, c, d, e, f, g, h]))
}
