//! Authentication of a client at a token endpoint (RFC 6749 section 2.3).

#[cfg(test)]
mod tests;

use super::config::AuthMethod;
use super::form::{Form, encode_component};
use super::jws::Alg;
use super::metadata::IssuerMetadata;
use super::record::RegisteredClient;
use super::secret::Secret;
use crate::error::AuthError;
use crate::exchange::Headers;
use alloc::format;
use alloc::string::String;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// The methods of this client, the preferred ones first.
const METHODS: [AuthMethod; 3] = [AuthMethod::Basic, AuthMethod::Post, AuthMethod::None];

/// Returns the method of a client whose registration names none: the first of [`METHODS`] that the
/// issuer lists. An issuer without a list knows `client_secret_basic` (RFC 8414 section 2). A
/// client without a secret has no method but `none`, which issuers accept without listing it.
///
/// # Errors
/// [`AuthError::NoClientAuth`] if the issuer lists other methods only.
pub(super) fn method(issuer: &IssuerMetadata, has_secret: bool) -> Result<AuthMethod, AuthError> {
    if !has_secret {
        return Ok(AuthMethod::None);
    }
    let Some(offered) = offered(issuer) else { return Ok(AuthMethod::Basic) };
    let found = METHODS.into_iter().find(|method| offered.iter().any(|name| name == method.as_str()));
    found.ok_or_else(|| AuthError::NoClientAuth { issuer: issuer.issuer.clone(), offered: offered.into() })
}

/// Returns the method that a registration asks for: `none` if the issuer lists it, since a program
/// on the machine of a user keeps no secret (RFC 8252 section 8.5).
///
/// # Errors
/// As [`method`].
pub(super) fn method_to_register(issuer: &IssuerMetadata) -> Result<AuthMethod, AuthError> {
    match offered(issuer) {
        Some(offered) if offered.iter().any(|name| name == AuthMethod::None.as_str()) => Ok(AuthMethod::None),
        _ => method(issuer, true),
    }
}

/// Returns the method of a client with a key.
///
/// # Errors
/// [`AuthError::NoClientAuth`] if the issuer lists methods or algorithms, and not these. It gets no
/// request then.
pub(super) fn key_method(issuer: &IssuerMetadata, alg: Alg) -> Result<AuthMethod, AuthError> {
    let none = |offered: &[String]| AuthError::NoClientAuth { issuer: issuer.issuer.clone(), offered: offered.into() };
    let (methods, algs) = (offered(issuer), issuer.token_auth_algs.as_deref().unwrap_or_default());
    match methods {
        Some(methods) if !methods.iter().any(|name| name == AuthMethod::Key.as_str()) => Err(none(methods)),
        _ if !algs.is_empty() && !algs.iter().any(|name| Alg::parse(name) == Some(alg)) => Err(none(algs)),
        _ => Ok(AuthMethod::Key),
    }
}

/// Returns the methods that the issuer lists. An empty list says as little as none: RFC 8414
/// section 3.2 demands that it is left out.
fn offered(issuer: &IssuerMetadata) -> Option<&[String]> {
    issuer.token_auth_methods.as_deref().filter(|methods| !methods.is_empty())
}

/// Adds what identifies a client to a request for the token endpoint of its issuer. `client_id` is
/// in the form also with a field `Authorization`: RFC 6749 permits it, and some servers need it. A
/// workload has no identifier, and an assertion of the client contains it.
pub(super) fn apply(client: &RegisteredClient, form: &mut Form, headers: &mut Headers) {
    if client.method != AuthMethod::Key && !client.client_id.is_empty() {
        form.push("client_id", &client.client_id);
    }
    let Some(secret) = client.client_secret.as_ref().filter(|secret| !secret.is_empty()) else { return };
    match client.method {
        AuthMethod::None | AuthMethod::Key => {}
        AuthMethod::Post => form.push("client_secret", secret.expose()),
        AuthMethod::Basic => headers.push("Authorization", basic(&client.client_id, secret)),
    }
}

/// Returns the field `Authorization` of a client with a secret.
pub(super) fn basic(client_id: &str, secret: &Secret) -> String {
    // Form-encoded first: both may contain a colon (RFC 6749 section 2.3.1).
    let pair = format!("{}:{}", encode_component(client_id), encode_component(secret.expose()));
    format!("Basic {}", STANDARD.encode(pair))
}
