//! The introspection of tokens (RFC 7662).

use super::source::{self, Metadata};
use crate::auth::form::{self, Form};
use crate::auth::metadata::object;
use crate::auth::{Secret, client_auth};
use crate::error::UrlFault;
use crate::fetch::{FetchError, FetchRequest, FetchResponse};
use crate::rpc::Object;
use alloc::boxed::Box;
use alloc::string::String;
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
    let is_posted = lists("client_secret_post") && !lists("client_secret_basic");
    if is_posted {
        body.push("client_id", client_id);
        body.push("client_secret", client_secret.expose());
    }
    let mut request = FetchRequest::post(url, form::MEDIA_TYPE, body.into_bytes());
    request.headers.push("Accept", "application/json");
    if !is_posted {
        request.headers.push("Authorization", client_auth::basic(client_id, client_secret));
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
    let members = object(&response.body)?;
    let is_active: bool = members.required("active").map_err(|_| "it does not say whether the token is active")?;
    Ok(is_active.then_some(members))
}

#[cfg(test)]
mod tests;
