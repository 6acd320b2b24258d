//! Proofs of the possession of a key (DPoP, RFC 9449 section 4.3) as a resource checks them.

use super::expiring::{Digest, ExpiringTable};
use super::jwt::{Jwt, time, without_tree};
use super::{AccessDenial, Verification};
use crate::auth::{Alg, PublicKey, identifier};
use crate::exchange::RequestHead;
use crate::fetch::HttpTarget;
use crate::seed::Seed;
use crate::time::Instant;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use core::time::Duration;
use hmac_sha256::{HMAC, Hash};
use iri_string::types::UriAbsoluteStr;

/// Maximum length of a proof, in bytes.
const MAX_PROOF: usize = 8 << 10;

/// Maximum number of proofs that are remembered.
const MAX_REMEMBERED: usize = 100_000;

/// The time in seconds for which a nonce is the current one. It is valid for as long after that.
const SLOT: u64 = 120;

/// The length of a nonce in bytes, before its encoding.
const NONCE_LEN: usize = 16;

/// What proofs are compared with, and those that were used.
#[derive(Debug)]
pub(super) struct Proofs {
    /// The origin of the resource, as its clients see it. `None`: the identifier is no URL.
    origin: Option<String>,
    window: Duration,
    /// The key of the nonces, if they are demanded. It needs no table: a nonce is a function of the
    /// time.
    nonces: Option<NonceKey>,
    used: ExpiringTable<()>,
}

/// A proof whose signature is not verified yet.
#[derive(Debug)]
pub(super) struct Proof {
    /// The signature.
    pub(super) verification: Box<Verification>,
    /// The thumbprint of its key.
    pub(super) jkt: String,
    /// What identifies it.
    digest: Digest,
    /// The Unix time from which on it is not accepted any more.
    expires: Duration,
}

impl Proofs {
    pub(super) fn new(identifier: &str, window: Duration, nonces: Option<&Seed>) -> Self {
        Self {
            origin: HttpTarget::parse(identifier).ok().map(|target| identifier::origin(&target)),
            window,
            nonces: nonces.map(|seed| NonceKey(seed.derive("nonces of proofs"))),
            used: ExpiringTable::new(MAX_REMEMBERED),
        }
    }

    /// Reads the proof of a request with this token (RFC 9449 section 4.3), but for its signature
    /// and the key of the token.
    ///
    /// # Errors
    /// Why it is not accepted.
    pub(super) fn read(&self, head: &RequestHead, token: &str, unix: Duration) -> Result<Proof, AccessDenial> {
        let mut fields = head.headers.all("dpop");
        let (Some(text), None) = (fields.next(), fields.next()) else {
            return Err(AccessDenial::Proof("there must be one proof of possession"));
        };
        let text = text.trim();
        if text.len() > MAX_PROOF {
            return Err(AccessDenial::Proof("the proof is too long"));
        }
        let jwt = Jwt::read(text).ok_or(AccessDenial::Proof("the proof is no JSON Web Token"))?;
        let proof = self.check(&jwt, text, head, token, unix).map_err(AccessDenial::Proof)?;
        match &self.nonces {
            Some(nonces) if !jwt.claims.str("nonce").is_some_and(|nonce| nonces.accepts(&nonce, unix)) => {
                Err(AccessDenial::Nonce(nonces.current(unix)))
            }
            _ => Ok(proof),
        }
    }

    fn check(
        &self,
        jwt: &Jwt,
        text: &str,
        head: &RequestHead,
        token: &str,
        unix: Duration,
    ) -> Result<Proof, &'static str> {
        let typ = jwt.header.str("typ");
        if !typ.is_some_and(|typ| without_tree(&typ).eq_ignore_ascii_case("dpop+jwt")) {
            return Err("the proof has another type");
        }
        let alg = jwt.alg(&Alg::ALL)?;
        let jwk = jwt.header.object("jwk").map_err(|_| "the proof has no key")?;
        let key = PublicKey::read(&jwk)?;
        if !key.fits(alg) {
            return Err("the algorithm of the proof does not fit its key");
        }
        let claims = &jwt.claims;
        let id = claims.str("jti").filter(|id| !id.is_empty()).ok_or("the proof has no identifier")?;
        if claims.str("htm").as_deref() != Some(&*head.method) {
            return Err("the proof is for another method");
        }
        if !claims.str("htu").is_some_and(|url| self.is_target(&url, &head.target)) {
            return Err("the proof is for another URL");
        }
        if claims.str("ath").as_deref() != Some(&URL_SAFE_NO_PAD.encode(Hash::hash(token.as_bytes()))) {
            return Err("the proof is for another token");
        }
        let issued = time(claims, "iat")?.ok_or("the proof has no time")?;
        // With a nonce its own clock does not matter (RFC 9449 section 11.1).
        let expires = match self.nonces {
            Some(_) => unix.saturating_add(Duration::from_secs(2 * SLOT)),
            None => issued.saturating_add(self.window),
        };
        if self.nonces.is_none() && (expires <= unix || issued > unix.saturating_add(self.window)) {
            return Err("the proof is too old, or from the future");
        }
        let jkt = key.thumbprint();
        let mut digest = Hash::new();
        digest.update(jkt.as_bytes());
        digest.update(id.as_bytes());
        let (input, signature) = (jwt.input(text), jwt.signature.clone());
        let verification = Box::new(Verification { alg, key, input, signature });
        Ok(Proof { verification, jkt, digest: digest.finalize(), expires })
    }

    /// Notes that a proof was used, once its signature is verified.
    ///
    /// # Errors
    /// It was used before (RFC 9449 section 11.1), or it has expired meanwhile, so that a second
    /// use would not be seen.
    pub(super) fn redeem(&mut self, proof: &Proof, now: Instant, origin_unix: Duration) -> Result<(), AccessDenial> {
        if self.used.get(now, &proof.digest).is_some() {
            return Err(AccessDenial::Proof("the proof was used before"));
        }
        let until = Instant::new(proof.expires.saturating_sub(origin_unix));
        if until <= now {
            return Err(AccessDenial::Proof("the proof is too old"));
        }
        self.used.insert(now, proof.digest, until, ());
        Ok(())
    }

    /// Forgets the proofs that are not accepted any more.
    pub(super) fn purge(&mut self, now: Instant) {
        self.used.purge(now);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.used.is_empty()
    }

    /// Returns whether a URL is that of a request with this target, without query and fragment.
    fn is_target(&self, url: &str, target: &str) -> bool {
        let Some(origin) = &self.origin else { return false };
        let own = normal(&format!("{origin}{target}"));
        own.is_some() && own == normal(url)
    }
}

/// Returns a URL in the normal form (RFC 3986 section 6.2), without query and fragment. `None` if
/// it is none.
fn normal(url: &str) -> Option<String> {
    let url = url.split(['?', '#']).next().unwrap_or(url);
    let url = HttpTarget::parse(url).ok()?.url();
    Some(UriAbsoluteStr::new(&url).ok()?.normalize().to_string())
}

/// The key from which nonces are made.
struct NonceKey([u8; 32]);

impl NonceKey {
    /// Returns the nonce for new proofs.
    fn current(&self, unix: Duration) -> String {
        self.of_slot(unix.as_secs() / SLOT)
    }

    /// Returns whether a nonce is the current one, or the one before it.
    fn accepts(&self, nonce: &str, unix: Duration) -> bool {
        let slot = unix.as_secs() / SLOT;
        [slot, slot.saturating_sub(1)].into_iter().any(|slot| self.of_slot(slot) == nonce)
    }

    fn of_slot(&self, slot: u64) -> String {
        URL_SAFE_NO_PAD.encode(&HMAC::mac(slot.to_be_bytes(), self.0)[..NONCE_LEN])
    }
}

impl core::fmt::Debug for NonceKey {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("NonceKey")
    }
}

#[cfg(test)]
mod tests;
