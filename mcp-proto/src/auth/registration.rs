//! How a client becomes known at an issuer: by configuration, by the URL of a client metadata
//! document, or by dynamic registration (RFC 7591).

#[cfg(test)]
mod tests;

use super::client_auth::{key_method, method, method_to_register};
use super::config::{AuthConfig, AuthMethod, Registration};
use super::device;
use super::grant::{ClientAuth, GivenClient, Grant};
use super::identifier::{IssuerMatch, same_issuer};
use super::metadata::{IssuerMetadata, object};
use super::record::{ClientSource, Entry, RegisteredClient};
use super::scopes::Scopes;
use super::secret::Secret;
use crate::error::{AuthError, Problem, UrlFault};
use crate::fetch::{FetchResponse, HttpTarget};
use crate::rpc::{Object, RawJson};
use alloc::borrow::ToOwned;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use bytes::Bytes;
use core::net::IpAddr;

/// The maximum length of a client identifier, and of a secret.
const MAX_CREDENTIAL: usize = 4096;

/// The client of a login.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Choice {
    /// This one is known at the issuer.
    Client(RegisteredClient),
    /// A new one, which has to be registered first.
    Register,
}

/// Returns the client for an issuer, in the order of 2026-07-28: one that is given for it, the one
/// that was registered there before, a client metadata document, a new registration. The order of
/// the configuration has no influence. `stored` is the client of the record for this very issuer.
/// One whose secret has expired counts as none.
///
/// # Errors
/// [`AuthError::OtherIssuer`] or [`AuthError::NoRegistration`] if there is none,
/// [`AuthError::NoClientAuth`] if it cannot authenticate there, and [`AuthError::BadUrl`] if
/// the URL of its document is none.
pub(super) fn choose(
    config: &AuthConfig,
    issuer: &IssuerMetadata,
    stored: Option<&RegisteredClient>,
    now_unix: u64,
) -> Result<Choice, AuthError> {
    if let Some(given) = given(config, issuer) {
        return given.map(Choice::Client);
    }
    let is_dynamic = config.registrations.contains(&Registration::Dynamic);
    // The other sources are read from the configuration, which can have changed.
    let usable = |stored: &&RegisteredClient| {
        stored.source == ClientSource::Dynamic && stored.secret_expires.is_none_or(|expires| expires > now_unix)
    };
    if let Some(stored) = stored.filter(usable).filter(|_| is_dynamic) {
        return Ok(Choice::Client(stored.clone()));
    }
    if let Some(document) = document(config, issuer) {
        return document.map(Choice::Client);
    }
    if is_dynamic && issuer.registration_endpoint.is_some() {
        return method_to_register(issuer).map(|_| Choice::Register);
    }
    Err(unknown(config, issuer))
}

/// Returns the client for an issuer under a grant without a user. It never registers.
///
/// # Errors
/// As [`choose`].
pub(super) fn choose_known(config: &AuthConfig, issuer: &IssuerMetadata) -> Result<RegisteredClient, AuthError> {
    let found = match &config.grant {
        // The assertion says who it is.
        Grant::Assertion => return Ok(registered("", None, AuthMethod::None, ClientSource::Given)),
        Grant::Enterprise(_) => given(config, issuer).or_else(|| document(config, issuer)),
        Grant::Code | Grant::Device | Grant::ClientCredentials => given(config, issuer),
    };
    found.unwrap_or_else(|| Err(unknown(config, issuer)))
}

/// Returns the client as its identity provider knows it, whose metadata is not fetched.
pub(super) fn at_provider(client: &GivenClient) -> RegisteredClient {
    let (secret, method) = match &client.auth {
        ClientAuth::Key(_) => (None, AuthMethod::Key),
        ClientAuth::Secret(secret) if !secret.is_empty() => (Some(secret.clone()), AuthMethod::Basic),
        ClientAuth::Secret(_) | ClientAuth::None => (None, AuthMethod::None),
    };
    registered(&client.client_id, secret, method, ClientSource::Given)
}

/// Returns the client that is given for this issuer.
fn given(config: &AuthConfig, issuer: &IssuerMetadata) -> Option<Result<RegisteredClient, AuthError>> {
    let given = config.given_at(&issuer.issuer)?;
    Some(client(issuer, &given.client_id, &given.auth, ClientSource::Given))
}

/// Checks that a client that is given without its issuer stays at the first one. `entries` are
/// those of the record.
///
/// # Errors
/// [`AuthError::OtherIssuer`] otherwise.
pub(super) fn check_first_issuer(
    config: &AuthConfig,
    client: &RegisteredClient,
    issuer: &str,
    entries: &[Entry],
) -> Result<(), AuthError> {
    let is_free = config.all_given().any(|given| given.issuer.is_empty() && given.client_id == client.client_id);
    let is_elsewhere = |entry: &&Entry| {
        entry.client.source == ClientSource::Given
            && entry.client.client_id == client.client_id
            && same_issuer(&entry.issuer, issuer, config.compat.issuer_slash) == IssuerMatch::Different
    };
    match entries.iter().find(is_elsewhere).filter(|_| is_free && client.source == ClientSource::Given) {
        Some(entry) => Err(AuthError::OtherIssuer { given: [entry.issuer.clone()].into(), issuer: issuer.to_owned() }),
        None => Ok(()),
    }
}

/// Returns the client with a metadata document, if the issuer fetches such documents.
fn document(config: &AuthConfig, issuer: &IssuerMetadata) -> Option<Result<RegisteredClient, AuthError>> {
    let mut ways = config.registrations.iter();
    let url = ways.find_map(|way| if let Registration::Document(url) = way { Some(url) } else { None })?;
    if !issuer.client_id_metadata_document {
        return None;
    }
    Some(match document_fault(url) {
        Some(fault) => Err(AuthError::BadUrl { purpose: "client_id".into(), url: url.clone(), fault }),
        None => client(issuer, url, &ClientAuth::None, ClientSource::Document),
    })
}

/// Returns why there is no client for an issuer.
fn unknown(config: &AuthConfig, issuer: &IssuerMetadata) -> AuthError {
    let given: Vec<_> = config.all_given().map(|given| given.issuer.clone()).collect();
    let issuer = issuer.issuer.clone();
    if given.is_empty() { AuthError::NoRegistration { issuer } } else { AuthError::OtherIssuer { given, issuer } }
}

/// Returns why a URL cannot be the one of a client metadata document: it is an `https:` URL with a
/// path (draft-ietf-oauth-client-id-metadata-document section 3).
fn document_fault(url: &str) -> Option<UrlFault> {
    match HttpTarget::parse(url) {
        Ok(_) if url.contains('#') => Some(UrlFault::Fragment),
        Ok(target) if !target.origin.tls => Some(UrlFault::Plain),
        Ok(target) if !target.path.starts_with("/?") && target.path != "/" => None,
        Ok(_) | Err(_) => Some(UrlFault::Form),
    }
}

/// Returns a client that needs no registration.
fn client(
    issuer: &IssuerMetadata,
    client_id: &str,
    auth: &ClientAuth,
    source: ClientSource,
) -> Result<RegisteredClient, AuthError> {
    let (secret, method) = match auth {
        ClientAuth::Key(key) => (None, key_method(issuer, key.alg)?),
        ClientAuth::Secret(secret) if !secret.is_empty() => (Some(secret.clone()), method(issuer, true)?),
        ClientAuth::Secret(_) | ClientAuth::None => (None, method(issuer, false)?),
    };
    Ok(registered(client_id, secret.filter(|_| method != AuthMethod::None), method, source))
}

fn registered(client_id: &str, secret: Option<Secret>, method: AuthMethod, source: ClientSource) -> RegisteredClient {
    RegisteredClient {
        client_id: client_id.to_owned(),
        client_secret: secret,
        secret_expires: None,
        method,
        redirect_uri: None,
        scopes: Scopes::new(),
        source,
    }
}

/// Returns the body of a registration request (RFC 7591 section 2). A client without a redirect URI
/// is one whose user enters a code at another device (RFC 8628). Some issuers refuse scopes that
/// they do not know, so a second request can leave them out.
pub(super) fn request(
    config: &AuthConfig,
    redirect_uri: Option<&str>,
    issuer: &IssuerMetadata,
    scopes: &Scopes,
) -> Bytes {
    let scope = (!scopes.is_empty()).then(|| scopes.to_string());
    let texts = |texts: &[&str]| texts.iter().copied().map(RawJson::from).collect::<Vec<_>>();
    let (grant, response_types): (_, &[&str]) = match redirect_uri {
        Some(_) => ("authorization_code", &["code"]),
        None => (device::GRANT, &[]),
    };
    let object = Object::new()
        .with("client_name", &*config.client_name)
        .with("redirect_uris", texts(redirect_uri.as_slice()))
        .with("grant_types", texts(&[grant, "refresh_token"]))
        .with("response_types", texts(response_types))
        .with("token_endpoint_auth_method", method_to_register(issuer).unwrap_or(AuthMethod::None).as_str())
        .with("application_type", redirect_uri.map_or("native", application_type))
        .with_opt("scope", scope.as_deref())
        .with("software_id", &*config.client_name);
    object.to_json().to_bytes()
}

/// Returns the type of a client with this redirect URI (OpenID Connect Dynamic Client Registration
/// section 2): a URL of a host on the network is that of a web server. One of a loopback host, or
/// with a scheme of its own, is that of a program on the machine of the user.
fn application_type(redirect_uri: &str) -> &'static str {
    let is_local =
        |host: &str| host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    match HttpTarget::parse(redirect_uri) {
        Ok(target) if !is_local(&target.origin.host) => "web",
        Ok(_) | Err(_) => "native",
    }
}

/// Reads the answer to a registration request (RFC 7591 section 3.2).
///
/// # Errors
/// [`Problem`] if it is an error. A body with `error` is one at any status.
pub(super) fn read(
    response: &FetchResponse,
    issuer: &IssuerMetadata,
    redirect_uri: Option<&str>,
    scopes: &Scopes,
) -> Result<RegisteredClient, Problem> {
    let problem = Problem { url: response.url.clone(), status: Some(response.status), ..Problem::default() };
    let why = |why: &str| Problem { why: Some(why.to_owned()), ..problem.clone() };
    let body = object(&response.body).ok();
    let said = |key| body.as_ref().and_then(|body| error_text(body, key));
    if let Some(error) = said("error") {
        return Err(problem.saying(Some(&error), said("error_description").as_deref()));
    }
    if !matches!(response.status, 200 | 201) {
        return Err(problem);
    }
    let body = body.ok_or_else(|| why("the response is no JSON object"))?;
    let text = |key| match body.str(key) {
        Some(text) if text.len() > MAX_CREDENTIAL => Err(why("a credential is too long")),
        text => Ok(text.filter(|text| !text.is_empty())),
    };
    let client_id = text("client_id")?.ok_or_else(|| why("the response has no client_id"))?.into_owned();
    let secret = text("client_secret")?.map(|secret| Secret::new(secret.into_owned()));
    let method = match body.str("token_endpoint_auth_method").map(|name| AuthMethod::parse(&name)) {
        // It has no key that it could have registered.
        Some(None | Some(AuthMethod::Key)) => {
            return Err(why("the response names a way of authentication that this client does not have"));
        }
        // Whatever it names: without a secret there is nothing to send.
        Some(Some(_)) | None if secret.is_none() => AuthMethod::None,
        Some(Some(method)) => method,
        None => method(issuer, true).map_err(|e| why(&e.to_string()))?,
    };
    let secret = secret.filter(|_| method != AuthMethod::None);
    let expires = body.get("client_secret_expires_at").and_then(|value| value.decode::<u64>().ok());
    Ok(RegisteredClient {
        client_id,
        secret_expires: expires.filter(|expires| *expires > 0 && secret.is_some()),
        client_secret: secret,
        method,
        redirect_uri: redirect_uri.map(ToOwned::to_owned),
        scopes: scopes.clone(),
        source: ClientSource::Dynamic,
    })
}

/// Returns a member that describes an error: its text, or the JSON of another value. `null` is
/// none.
fn error_text(body: &Object, key: &str) -> Option<String> {
    let value = body.get(key).filter(|value| *value != RawJson::null())?;
    Some(body.str(key).as_deref().unwrap_or(value.as_str()).to_owned())
}
