//! The introspection of tokens (RFC 7662).

use super::source::{self, Metadata};
use crate::auth::Secret;
use crate::auth::form::{self, Form, encode_component};
use crate::auth::metadata::NO_OBJECT;
use crate::error::UrlFault;
use crate::fetch::{FetchError, FetchRequest, FetchResponse};
use crate::rpc::{Object, RawJson};
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use core::time::Duration;

/// Maximum time for an answer.
const ANSWER_TIME: Duration = Duration::from_secs(10);

/// Maximum length of an answer, in bytes.
const MAX_ANSWER: usize = 64 << 10;

/// Returns the request about a token, from this client (RFC 7662 section 2.1).
///
/// # Errors
/// [`UrlFault`] if the URL of the introspection may not be used.
pub(super) fn request(
    metadata: &Metadata,
    token: &Secret,
    client_id: &str,
    client_secret: &Secret,
) -> Result<FetchRequest, UrlFault> {
    let url = source::own_url(&metadata.endpoint)?;
    let reach = source::reach(&url);
    let lists = |method: &str| metadata.auth_methods.iter().any(|listed| listed == method);
    let mut body = Form::new().with("token", token.expose()).with("token_type_hint", "access_token");
    let mut authorization = None;
    if lists("client_secret_post") && !lists("client_secret_basic") {
        body.push("client_id", client_id);
        body.push("client_secret", client_secret.expose());
    } else {
        // RFC 6749 section 2.3.1.
        let pair = format!("{}:{}", encode_component(client_id), encode_component(client_secret.expose()));
        authorization = Some(format!("Basic {}", STANDARD.encode(pair)));
    }
    let mut request = FetchRequest::post(url, form::MEDIA_TYPE, body.into_bytes());
    request.headers.push("Accept", "application/json");
    if let Some(authorization) = authorization {
        request.headers.push("Authorization", authorization);
    }
    (request.reach, request.timeout, request.max_body) = (reach, ANSWER_TIME, MAX_ANSWER);
    Ok(request)
}

/// Returns the claims of a token that is active. `None`: it is not (RFC 7662 section 2.2).
///
/// # Errors
/// Why the answer says neither.
pub(super) fn read(outcome: &Result<Box<FetchResponse>, FetchError>) -> Result<Option<Object>, String> {
    let response = source::document(outcome)?;
    let json = RawJson::parse_indented(&response.body).map_err(|_| NO_OBJECT)?;
    let members = Object::read(&json).map_err(|_| NO_OBJECT)?;
    let is_active: bool = members.required("active").map_err(|_| "it does not say whether the token is active")?;
    Ok(is_active.then_some(members))
}

#[cfg(test)]
mod tests;
