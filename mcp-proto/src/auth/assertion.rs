//! Assertions: the one that a client with a key authenticates with, and those that a platform or an
//! identity provider issues (RFC 7521, RFC 7523).

#[cfg(test)]
mod tests;

use super::form::Form;
use super::grant::ClientKey;
use super::jws::{self, Alg};
use super::metadata::IssuerMetadata;
use super::secret::Secret;
use super::step::AssertionRequest;
use crate::rpc::{JsonKind, Object, RawJson};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use core::time::Duration;

/// The grant with an assertion (RFC 7523 section 2.1).
const GRANT: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
/// The type of the assertion of a client (RFC 7523 section 2.2).
const CLIENT_ASSERTION: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
/// The lifetime of the assertion of a client, in seconds.
const LIFETIME: u64 = 60;

/// Returns the form that asks for tokens with an assertion.
pub(super) fn redeem(assertion: &Secret) -> Form {
    Form::new().with("grant_type", GRANT).with("assertion", assertion.expose())
}

/// Returns the input of the signature of a client's assertion (RFC 7523 section 3). The issuer
/// alone is its audience. The text `jti` identifies it.
pub(super) fn of_client(
    client_id: &str,
    issuer: &str,
    (key, alg): (&ClientKey, &str),
    (unix, jti): (u64, &Secret),
) -> String {
    let header = Object::new().with("alg", alg).with("typ", "JWT").with_opt("kid", key.kid.as_deref());
    let payload = Object::new()
        .with("iss", client_id)
        .with("sub", client_id)
        .with("aud", issuer)
        .with("jti", jti.expose())
        .with("iat", unix)
        .with("exp", unix + LIFETIME);
    jws::signing_input(&header, &payload)
}

/// Returns the name of an algorithm as this issuer spells it: Ed25519 has two.
pub(super) fn alg_name(issuer: Option<&IssuerMetadata>, alg: Alg) -> &str {
    let mut listed = issuer.and_then(|issuer| issuer.token_auth_algs.as_deref()).into_iter().flatten();
    listed.find(|name| Alg::parse(name) == Some(alg)).map_or(alg.as_str(), String::as_str)
}

/// Adds the assertion of a client to a form.
pub(super) fn authenticate(form: &mut Form, input: &str, signature: &[u8]) {
    form.push("client_assertion_type", CLIENT_ASSERTION);
    form.push("client_assertion", &jws::compact(input, signature));
}

impl AssertionRequest {
    /// Returns what is wrong with an assertion for this request, if it is a JWT: it is for others
    /// than the issuer, or has expired by this Unix time in seconds. The issuer decides, so this is
    /// a warning for a user or a log. No signature is verified.
    pub fn doubt(&self, assertion: &Secret, unix: u64) -> Option<String> {
        let claims = assertion.expose().split('.').nth(1)?;
        let claims = URL_SAFE_NO_PAD.decode(claims.trim_end_matches('=')).ok()?;
        let claims = Object::read(&RawJson::parse_indented(&claims).ok()?).ok()?;
        let expires = claims.get("exp").and_then(|exp| Duration::try_from_secs_f64(exp.decode().ok()?).ok());
        if expires.is_some_and(|expires| expires.as_secs() <= unix) {
            return Some("the assertion has expired".into());
        }
        let audiences: Vec<String> = match claims.kind("aud") {
            Some(JsonKind::Array) => claims.required("aud").ok()?,
            _ => claims.str("aud").into_iter().map(Into::into).collect(),
        };
        let is_meant = |audience: &String| {
            let is_issuer = audience.trim_end_matches('/') == self.audience.trim_end_matches('/');
            is_issuer || *audience == self.token_endpoint
        };
        let issuer = &self.audience;
        (!audiences.iter().any(is_meant)).then(|| format!("the assertion does not name its audience {issuer}"))
    }
}
