//! The response to a request that a resource denies (RFC 6750 section 3, RFC 9728 section 5.1, RFC
//! 9449 section 7.1).

use super::document::OFFLINE;
use super::{AccessDenial, ProofUse, Resource, ResourceDocument};
use crate::auth::{Alg, Scopes};
use crate::exchange::Headers;
use alloc::string::{String, ToString};
use core::time::Duration;

/// The codes of errors that a JSON-RPC error carries where there is no response of HTTP.
pub(crate) const INVALID_TOKEN: &str = "invalid_token";
pub(crate) const INSUFFICIENT_SCOPE: &str = "insufficient_scope";

/// The response to a request that is denied.
#[derive(Debug)]
pub(crate) struct DenialResponse {
    pub(crate) status: u16,
    /// The fields that the denial adds.
    pub(crate) headers: Headers,
    /// The reason, for people.
    pub(crate) why: &'static str,
}

/// What the challenges of a response say.
#[derive(Default)]
struct ChallengeContent<'a> {
    /// The code of an error, and its description.
    error: Option<(&'static str, &'a str)>,
    scopes: Option<Scopes>,
    /// Whether the token needs no replacement: the fault is one of its proof.
    keeps_token: bool,
}

impl DenialResponse {
    /// Returns the response to a denial. Without a resource, a challenge names no scopes that the
    /// denial does not name.
    pub(crate) fn new(denial: &AccessDenial, resource: Option<&Resource>, document: Option<&ResourceDocument>) -> Self {
        let (status, error, why) = match denial {
            AccessDenial::Missing => (401, None, "credentials are needed"),
            AccessDenial::Invalid(text) => (401, Some((INVALID_TOKEN, *text)), "the credentials are not valid"),
            AccessDenial::Malformed(text) => (400, Some(("invalid_request", *text)), "the credentials are malformed"),
            AccessDenial::Scope(_) => (403, Some((INSUFFICIENT_SCOPE, "")), "the credentials do not suffice"),
            AccessDenial::Proof(text) => {
                (401, Some(("invalid_dpop_proof", *text)), "the proof of possession is not valid")
            }
            AccessDenial::Nonce(_) => (401, Some(("use_dpop_nonce", "")), "the proof of possession needs a nonce"),
            AccessDenial::Unavailable { retry_after } => {
                let headers = Headers::new().with("Retry-After", seconds(*retry_after).to_string());
                return Self { status: 503, headers, why: "it is not known now whether the credentials are valid" };
            }
        };
        let content = ChallengeContent {
            error,
            scopes: match denial {
                AccessDenial::Missing | AccessDenial::Invalid(_) => resource.map(Resource::initial_scopes),
                AccessDenial::Scope(scopes) => Some(scopes.clone()),
                _ => None,
            },
            keeps_token: matches!(denial, AccessDenial::Proof(_) | AccessDenial::Nonce(_)),
        };
        let mut headers = content.write(resource.map_or(ProofUse::Off, |resource| resource.dpop), document);
        if let AccessDenial::Nonce(nonce) = denial {
            headers.push("DPoP-Nonce", nonce);
            headers.push("Cache-Control", "no-store");
        }
        Self { status, headers, why }
    }
}

impl Resource {
    /// Returns the scopes that a client without a token is asked for.
    fn initial_scopes(&self) -> Scopes {
        let scopes = if self.scopes_required.is_empty() { &self.scopes_supported } else { &self.scopes_required };
        scopes.iter().filter(|scope| *scope != OFFLINE).collect()
    }
}

impl ChallengeContent<'_> {
    /// Returns the fields with a challenge for each scheme that is accepted.
    fn write(&self, proofs: ProofUse, document: Option<&ResourceDocument>) -> Headers {
        let bound = self.keeps_token || proofs != ProofUse::Off;
        let plain = !self.keeps_token && proofs != ProofUse::Required;
        let schemes = [("Bearer", plain), ("DPoP", bound)].into_iter().filter(|(_, is_accepted)| *is_accepted);
        schemes.fold(Headers::new(), |headers, (scheme, _)| {
            headers.with("WWW-Authenticate", self.challenge(scheme, document))
        })
    }

    fn challenge(&self, scheme: &str, document: Option<&ResourceDocument>) -> String {
        let (error, description) = self.error.unwrap_or_default();
        let scopes = self.scopes.as_ref().map(Scopes::to_string).unwrap_or_default();
        let algs = if scheme == "DPoP" { Alg::ALL.map(Alg::as_str).join(" ") } else { String::new() };
        let params = [
            ("error", error),
            ("error_description", description),
            ("scope", &scopes),
            ("algs", &algs),
            ("resource_metadata", document.map_or("", |document| &document.url)),
        ];
        let mut text = String::from(scheme);
        for (n, (name, value)) in params.into_iter().filter(|(_, value)| !value.is_empty()).enumerate() {
            text.push_str(if n == 0 { " " } else { ", " });
            text.push_str(name);
            push_quoted(&mut text, value);
        }
        text
    }
}

/// Appends `=` and a value in quotation marks (RFC 9110 section 5.6.4). What is not visible ASCII
/// must not reach the field, and is left out.
fn push_quoted(text: &mut String, value: &str) {
    text.push_str("=\"");
    for c in value.chars().filter(|c| *c == ' ' || c.is_ascii_graphic()) {
        if matches!(c, '"' | '\\') {
            text.push('\\');
        }
        text.push(c);
    }
    text.push('"');
}

/// Returns whole seconds, rounded up, at least one.
const fn seconds(time: Duration) -> u64 {
    let whole = if time.subsec_nanos() > 0 { time.as_secs().saturating_add(1) } else { time.as_secs() };
    if whole == 0 { 1 } else { whole }
}

#[cfg(test)]
mod tests;
