//! Token requests and their answers (RFC 6749 section 5).

use super::config::AuthLimits;
use super::form::{self, Form};
use super::metadata::object;
use super::record::TokenType;
use super::scopes::Scopes;
use super::secret::Secret;
use crate::error::Problem;
use crate::exchange::{Headers, Reach};
use crate::fetch::{FetchError, FetchRequest, FetchResponse, HttpTarget, Redirects};
use crate::peer_text::beginning;
use crate::rpc::{JsonKind, Object};
use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::time::Duration;

/// The longest lifetime that is believed: 400 days, in seconds.
const MAX_LIFETIME: f64 = 400.0 * 24.0 * 60.0 * 60.0;

/// What a token endpoint answered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum TokenAnswer<T = NewTokens> {
    /// Tokens, or what the request asked for in their place.
    Tokens(T),
    /// The code or the refresh token is not valid any more: `invalid_grant`.
    InvalidGrant(Problem),
    /// The issuer does not know the client: `invalid_client`.
    InvalidClient(Problem),
    /// It is not available now. A later request may succeed.
    Transient {
        /// What went wrong.
        problem: Problem,
        /// The time for which it asked not to be tried again.
        retry_after: Option<Duration>,
    },
    /// Something before the endpoint refused the request: 403, 404 or 405 without a JSON object.
    Firewall(Problem),
    /// Anything else. The same request would get the same answer.
    Other(Problem),
}

/// The tokens of an answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct NewTokens {
    /// The access token. It can be sent in a header field.
    pub(super) access: Secret,
    /// How it is used: one of the types that were asked for.
    pub(super) token_type: TokenType,
    /// The refresh token. `None`: the one before is still valid.
    pub(super) refresh: Option<Secret>,
    /// The lifetime of the access token in seconds. `None` if it is unknown.
    pub(super) expires_in: Option<u64>,
    /// The granted scopes. `None`: those that were requested.
    pub(super) scopes: Option<Scopes>,
}

/// Returns the form that redeems an authorization code (RFC 6749 section 4.1.3, RFC 7636 section
/// 4.5, RFC 8707 section 2).
pub(super) fn exchange(code: &Secret, verifier: &Secret, redirect_uri: &str, resource: Option<&str>) -> Form {
    let form = Form::new()
        .with("grant_type", "authorization_code")
        .with("code", code.expose())
        .with("redirect_uri", redirect_uri)
        .with("code_verifier", verifier.expose());
    with_resource(form, resource)
}

/// Returns the form that asks for another access token (RFC 6749 section 6). It names no scope, so
/// they stay the same.
pub(super) fn refresh(token: &Secret, resource: Option<&str>) -> Form {
    let form = Form::new().with("grant_type", "refresh_token").with("refresh_token", token.expose());
    with_resource(form, resource)
}

/// Returns the form that revokes a token (RFC 7009 section 2.1). The hint is the type of the token.
pub(super) fn revoke(token: &Secret, hint: &str) -> Form {
    Form::new().with("token", token.expose()).with("token_type_hint", hint)
}

/// Returns the form that asks for a token of the client itself (RFC 6749 section 4.4.2).
pub(super) fn client_credentials() -> Form {
    Form::new().with("grant_type", "client_credentials")
}

/// Adds what the tokens are for to the form of a grant without a user.
pub(super) fn with_use(form: Form, scopes: &Scopes, resource: Option<&str>) -> Form {
    let form = if scopes.is_empty() { form } else { form.with("scope", &scopes.to_string()) };
    with_resource(form, resource)
}

pub(super) fn with_resource(form: Form, resource: Option<&str>) -> Form {
    match resource {
        Some(resource) => form.with("resource", resource),
        None => form,
    }
}

/// Returns the request with a form. The header fields are those that authenticate the client.
pub(super) fn request(
    url: HttpTarget,
    form: Form,
    headers: Headers,
    limits: &AuthLimits,
    reach: Reach,
) -> FetchRequest {
    FetchRequest {
        method: "POST".into(),
        headers: headers.with("Content-Type", form::MEDIA_TYPE).with("Accept", "application/json"),
        body: form.into_bytes(),
        redirects: Redirects::None,
        reach,
        timeout: limits.token_time,
        max_body: limits.max_document,
        ..FetchRequest::get(url)
    }
}

/// Returns whether an answer asks for the same request with the nonce that is in it (RFC 9449
/// section 8).
pub(super) fn asks_for_nonce(outcome: &Result<Box<FetchResponse>, FetchError>) -> bool {
    let members = outcome.as_ref().ok().and_then(|response| Members::read(response));
    members.is_some_and(|members| members.text("error").as_deref() == Some("use_dpop_nonce"))
}

/// Reads the answer of the endpoint at this URL. `types`: those that the token may have.
pub(super) fn read(
    url: &str,
    outcome: &Result<Box<FetchResponse>, FetchError>,
    max_token: usize,
    types: &[TokenType],
) -> TokenAnswer {
    read_as(url, outcome, |members| members.tokens(max_token, types))
}

/// Reads the answer of the endpoint at this URL, and of a success what this returns.
pub(super) fn read_as<T>(
    url: &str,
    outcome: &Result<Box<FetchResponse>, FetchError>,
    take: impl FnOnce(&Members) -> Result<T, String>,
) -> TokenAnswer<T> {
    let problem = Problem { url: url.into(), ..Problem::default() };
    let response = match outcome {
        Ok(response) => response,
        Err(error) => {
            let problem = Problem { why: Some(error.to_string()), ..problem };
            return match error {
                FetchError::TooLong => TokenAnswer::Other(problem),
                _ => TokenAnswer::Transient { problem, retry_after: None },
            };
        }
    };
    let status = response.status;
    let problem = Problem { status: Some(status), ..problem };
    let is_transient = matches!(status, 408 | 429 | 500..);
    let transient = |problem| TokenAnswer::Transient { problem, retry_after: response.headers.retry_after() };
    let Some(members) = Members::read(response) else {
        let problem = Problem { why: Some(no_members(response).into()), ..problem };
        return match status {
            _ if is_transient => transient(problem),
            403..=405 => TokenAnswer::Firewall(problem),
            _ => TokenAnswer::Other(problem),
        };
    };
    // An error is one at any status.
    if members.has_error() {
        let error = members.text("error");
        let problem = problem.saying(error.as_deref(), members.description().as_deref());
        return match error.as_deref() {
            Some("invalid_grant") => TokenAnswer::InvalidGrant(problem),
            Some("invalid_client") => TokenAnswer::InvalidClient(problem),
            Some("temporarily_unavailable" | "server_error") => transient(problem),
            _ if is_transient => transient(problem),
            _ => TokenAnswer::Other(problem),
        };
    }
    if (200..300).contains(&status) {
        return match take(&members) {
            Ok(tokens) => TokenAnswer::Tokens(tokens),
            Err(why) => TokenAnswer::Other(Problem { why: Some(why), ..problem }),
        };
    }
    let problem = problem.saying(None, members.description().as_deref());
    if is_transient { transient(problem) } else { TokenAnswer::Other(problem) }
}

/// Says what a response without members is.
const fn no_members(response: &FetchResponse) -> &'static str {
    match response.redirect {
        Some(_) => "it redirects, and a token request follows no redirect",
        None => "the response is no JSON object",
    }
}

/// The members of a body.
pub(super) enum Members {
    Json(Object),
    Form(Vec<(String, String)>),
}

impl Members {
    /// Reads a JSON object, or a form, which some token endpoints answer with.
    fn read(response: &FetchResponse) -> Option<Self> {
        if let Ok(object) = object(&response.body) {
            return Some(Self::Json(object));
        }
        let media_type = response.headers.get("content-type")?.split(';').next()?.trim();
        let is_form = media_type.eq_ignore_ascii_case(form::MEDIA_TYPE);
        let fields = form::decode(core::str::from_utf8(&response.body).ok().filter(|_| is_form)?);
        let is_answer = fields.iter().any(|(name, _)| matches!(name.as_str(), "error" | "access_token"));
        is_answer.then_some(Self::Form(fields))
    }

    /// Returns a member that is a text, unless it is empty.
    pub(super) fn text(&self, name: &str) -> Option<Cow<'_, str>> {
        let text = match self {
            Self::Json(object) => object.str(name),
            Self::Form(fields) => fields.iter().find(|(known, _)| known == name).map(|(_, value)| value.into()),
        };
        text.filter(|text| !text.is_empty())
    }

    /// Returns whether it is an error. A code that is no text is one, and an empty one is none.
    fn has_error(&self) -> bool {
        match self {
            Self::Json(object) if !matches!(object.kind("error"), Some(JsonKind::String | JsonKind::Null) | None) => {
                true
            }
            _ => self.text("error").is_some(),
        }
    }

    /// Returns the description of an error. Some servers have a member of their own for it.
    fn description(&self) -> Option<Cow<'_, str>> {
        ["error_description", "message", "msg"].into_iter().find_map(|name| self.text(name))
    }

    /// Returns the tokens, or says what is wrong with them.
    fn tokens(&self, max: usize, types: &[TokenType]) -> Result<NewTokens, String> {
        let access = self.text("access_token").ok_or("there is no access token")?;
        let name = self.text("token_type").ok_or("there is no type of the token")?;
        let Some(token_type) = TokenType::parse(&name).filter(|token_type| types.contains(token_type)) else {
            return Err(format!("the token has the type {}", beginning(&name, Problem::MAX_CODE)));
        };
        let refresh = self.text("refresh_token");
        if access.len().max(refresh.as_ref().map_or(0, |token| token.len())) > max {
            return Err("a token is longer than the limit".into());
        }
        // RFC 6749 appendix A.12 and A.17, without the space, which ends a token in a field.
        if !access.bytes().chain(refresh.iter().flat_map(|token| token.bytes())).all(|byte| byte.is_ascii_graphic()) {
            return Err("a token has characters that it may not have".into());
        }
        Ok(NewTokens {
            access: access.as_ref().into(),
            token_type,
            refresh: refresh.map(|token| token.as_ref().into()),
            expires_in: self.seconds("expires_in"),
            scopes: self.scopes(),
        })
    }

    /// Returns a time in seconds, a number or digits, at most 400 days. One that is not positive is
    /// unknown.
    pub(super) fn seconds(&self, name: &str) -> Option<u64> {
        let digits = |text: Cow<'_, str>| {
            let text = text.trim();
            text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
        };
        let seconds: f64 = match self {
            Self::Json(object) if object.kind(name) == Some(JsonKind::Number) => object.optional(name).ok().flatten(),
            _ => self.text(name).and_then(digits),
        }?;
        let seconds = Duration::try_from_secs_f64(seconds.min(MAX_LIFETIME)).ok()?;
        Some(seconds.as_secs()).filter(|seconds| *seconds > 0)
    }

    /// Returns the scopes: a text, or an array of texts.
    fn scopes(&self) -> Option<Scopes> {
        const NAME: &str = "scope";

        match self {
            Self::Json(object) if object.kind(NAME) == Some(JsonKind::Array) => {
                let scopes: Vec<String> = object.required(NAME).ok()?;
                Some(scopes.iter().map(String::as_str).collect())
            }
            Self::Json(object) => object.str(NAME).map(|text| Scopes::parse(&text)),
            Self::Form(fields) => fields.iter().find(|(name, _)| name == NAME).map(|(_, value)| Scopes::parse(value)),
        }
    }
}

#[cfg(test)]
mod tests;
