//! JSON Web Tokens as a resource checks them (RFC 7519, RFC 9068 section 4, RFC 8725), and the
//! claims of tokens in any form.

use super::config::IssuerConfig;
use super::{Access, Trust, VerifierConfig};
use crate::auth::{Alg, Scopes};
use crate::rpc::{JsonKind, Object, RawJson};
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use core::time::Duration;

/// The latest time that is believed, in Unix seconds: beyond the year 9999.
const MAX_TIME: f64 = 1e12;

/// A token in the compact form (RFC 7515 section 7.1), whose signature was not verified.
pub(super) struct Jwt {
    pub(super) header: Object,
    pub(super) claims: Object,
    /// The length of what is signed, which is the beginning of the token.
    signed: usize,
    pub(super) signature: Bytes,
}

impl Jwt {
    /// Reads a token. `None` if it is none: no three parts, or no JSON objects in the first two.
    pub(super) fn read(token: &str) -> Option<Self> {
        let mut parts = token.split('.');
        let (Some(header), Some(claims), Some(signature), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return None;
        };
        let decode = |part: &str| URL_SAFE_NO_PAD.decode(part).ok();
        let object = |part| Object::read(&RawJson::parse_indented(&decode(part)?).ok()?).ok();
        Some(Self {
            header: object(header)?,
            claims: object(claims)?,
            signed: header.len() + 1 + claims.len(),
            signature: decode(signature)?.into(),
        })
    }

    /// Returns what is signed, of the token that this was read from (RFC 7515 section 5.2).
    pub(super) fn input(&self, token: &str) -> Bytes {
        Bytes::copy_from_slice(&token.as_bytes()[..self.signed.min(token.len())])
    }

    /// Returns the algorithm of the signature.
    ///
    /// # Errors
    /// It is none of the accepted ones, or the token demands an extension (RFC 7515 section
    /// 4.1.11).
    pub(super) fn alg(&self, accepted: &[Alg]) -> Result<Alg, &'static str> {
        if self.header.contains("crit") {
            return Err("the token demands an extension");
        }
        let alg = self.header.str("alg").and_then(|name| Alg::parse(&name));
        alg.filter(|alg| accepted.contains(alg)).ok_or("the algorithm of the token is not accepted")
    }

    /// Returns whether the token has the type of access tokens (RFC 9068 section 4).
    ///
    /// # Errors
    /// It has another one, and that is not accepted.
    fn is_access_token(&self, config: &IssuerConfig) -> Result<bool, &'static str> {
        const WRONG: &str = "the token is no access token";

        let typ = match self.header.kind("typ") {
            None => None,
            Some(_) => Some(self.header.str("typ").ok_or(WRONG)?),
        };
        let typ = typ.as_deref().map(without_tree);
        match typ {
            Some(typ) if typ.eq_ignore_ascii_case("at+jwt") => Ok(true),
            // An explicit type is for another purpose (RFC 8725 section 3.11).
            Some(typ) if typ.to_ascii_lowercase().ends_with("+jwt") => Err(WRONG),
            _ if config.any_typ => Ok(false),
            _ => Err(WRONG),
        }
    }

    /// Returns what the token grants if its signature is valid.
    ///
    /// # Errors
    /// Why it grants nothing.
    pub(super) fn grant(&self, rules: &Rules<'_>) -> Result<Grant, &'static str> {
        let is_access_token = self.is_access_token(rules.issuer)?;
        let issuer = self.claims.str("iss").ok_or("the token names no issuer")?;
        let grant = rules.grant(&self.claims, &issuer)?;
        if !is_access_token && grant.access.scopes.is_empty() {
            return Err("the token has no scope, so it may be an ID token");
        }
        Ok(grant)
    }
}

/// What a token grants.
#[derive(Clone, Debug)]
pub(super) struct Grant {
    pub(super) access: Arc<Access>,
    /// The thumbprint of the key that the token is bound to (RFC 9449 section 6.1).
    pub(super) jkt: Option<Arc<str>>,
}

/// What the claims of a token are compared with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules<'a> {
    pub(super) config: &'a VerifierConfig,
    pub(super) issuer: &'a IssuerConfig,
    /// The identifier of the resource.
    pub(super) identifier: &'a str,
    /// The Unix time.
    pub(super) unix: Duration,
}

impl Rules<'_> {
    /// Returns what these claims grant: those of a token, or of a response to an introspection.
    ///
    /// # Errors
    /// Why they grant nothing.
    pub(super) fn grant(&self, claims: &Object, issuer: &str) -> Result<Grant, &'static str> {
        let leeway = self.issuer.leeway;
        if claims.contains("iss") && claims.str("iss").as_deref() != Some(issuer) {
            return Err("the token is of another issuer");
        }
        let audiences = texts(claims, "aud").ok_or("the audience of the token is malformed")?;
        if !audiences.iter().any(|audience| self.is_own(audience)) {
            return Err("the token is for another audience");
        }
        // RFC 7662 permits to leave it out: the issuer says whether the token is active.
        let expires = time(claims, "exp")?;
        if expires.is_none() && matches!(self.issuer.trust, Trust::Jwt) {
            return Err("the token has no expiry");
        }
        let expires = expires.map(|expires| expires.saturating_add(leeway));
        if expires.is_some_and(|expires| expires <= self.unix) {
            return Err("the token has expired");
        }
        if time(claims, "nbf")?.is_some_and(|begin| begin > self.unix.saturating_add(leeway)) {
            return Err("the token is not valid yet");
        }
        // OpenID Connect Core section 2 and 3.3.2.11.
        if ["nonce", "at_hash", "c_hash"].iter().any(|claim| claims.contains(claim)) {
            return Err("the token is an ID token");
        }
        let jkt = binding(claims)?;
        let scopes = self.scopes(claims).ok_or("the scope of the token is malformed")?;
        // A number in its place would be the same principal for all its users.
        let subject = match claims.kind("sub") {
            None | Some(JsonKind::Null) => None,
            Some(_) => Some(claims.str("sub").ok_or("the subject of the token is malformed")?.into_owned()),
        };
        let client = ["client_id", "azp", "cid", "appid"].into_iter().find_map(|claim| claims.str(claim));
        let client = client.map(String::from);
        if subject.is_none() && client.is_none() {
            return Err("the token names no subject");
        }
        let principal = RawJson::encode(&(issuer, &subject, &client)).map_err(|_| "the subject cannot be written")?;
        let access = Access {
            principal: principal.as_str().into(),
            issuer: issuer.into(),
            subject,
            client,
            scopes: self.config.widen(&scopes),
            expires,
            claims: claims.clone(),
        };
        Ok(Grant { access: Arc::new(access), jkt })
    }

    fn is_own(&self, audience: &String) -> bool {
        match &*self.issuer.audiences {
            [] => audience == self.identifier,
            own => own.contains(audience),
        }
    }

    fn scopes(&self, claims: &Object) -> Option<Scopes> {
        let claim = match &self.issuer.scope_claim {
            Some(claim) => claim,
            None if claims.contains("scope") => "scope",
            None => "scp",
        };
        let texts = texts(claims, claim)?;
        Some(texts.iter().flat_map(|text| text.split(' ')).collect())
    }
}

/// Returns the thumbprint of the key that a token is bound to.
///
/// # Errors
/// It is bound in another way (RFC 7800), such as to a certificate, which nothing here checks.
fn binding(claims: &Object) -> Result<Option<Arc<str>>, &'static str> {
    const UNKNOWN: &str = "the token is bound to its client in a way that is not supported";

    let Some(confirmation) = claims.optional_object("cnf").map_err(|_| UNKNOWN)? else { return Ok(None) };
    let jkt = confirmation.str("jkt").filter(|_| confirmation.len() == 1).ok_or(UNKNOWN)?;
    Ok(Some(jkt.to_string().into()))
}

/// Returns a claim that is a time (RFC 7519 section 2, `NumericDate`).
pub(super) fn time(claims: &Object, name: &str) -> Result<Option<Duration>, &'static str> {
    let seconds: Option<f64> = claims.optional(name).map_err(|_| "a time of the token is malformed")?;
    // The bounds are those of a duration.
    Ok(seconds.map(|seconds| Duration::try_from_secs_f64(seconds.clamp(0.0, MAX_TIME)).unwrap_or_default()))
}

/// Returns a claim that is a text or an array of texts. `None` if it is anything else.
fn texts(claims: &Object, name: &str) -> Option<Vec<String>> {
    match claims.kind(name) {
        None | Some(JsonKind::Null) => Some(Vec::new()),
        Some(JsonKind::Array) => claims.required(name).ok(),
        Some(_) => claims.str(name).map(|text| [text.into_owned()].into()),
    }
}

/// Returns a media type without the tree that RFC 7515 section 4.1.9 advises to leave out.
pub(super) fn without_tree(typ: &str) -> &str {
    const TREE: &str = "application/";

    match typ.split_at_checked(TREE.len()) {
        Some((tree, rest)) if tree.eq_ignore_ascii_case(TREE) => rest,
        _ => typ,
    }
}

#[cfg(test)]
mod tests;
