//! The keys of an issuer (RFC 7517).

use crate::auth::metadata::object;
use crate::auth::{Alg, PublicKey};
use crate::exchange::{Headers, members};
use crate::rpc::{Object, RawJson};
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

/// Maximum number of keys of one issuer. Those beyond it are left out.
const MAX: usize = 64;

/// How long keys are used: if the response says nothing, at least, and at most.
const LIFETIME: u64 = 10 * 60;
const MIN_LIFETIME: u64 = 60;
const MAX_LIFETIME: u64 = 24 * 60 * 60;

/// The public keys of an issuer that verify signatures. Symmetric keys are not among them.
#[derive(Clone, Debug)]
pub(super) struct KeySet(Vec<IssuerKey>);

#[derive(Clone, Debug)]
struct IssuerKey {
    kid: Option<String>,
    /// The only algorithm that it is for.
    alg: Option<Alg>,
    key: PublicKey,
}

impl KeySet {
    /// Reads a JSON Web Key Set. Keys that cannot be used are left out (RFC 7517 section 5).
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn read(document: &[u8]) -> Result<Self, &'static str> {
        let set = object(document)?;
        let keys = set.array("keys").map_err(|_| "it has no array of keys")?;
        let keys: Vec<_> = keys.iter().filter_map(IssuerKey::read).take(MAX).collect();
        if keys.is_empty() { Err("it has no key for signatures that is known") } else { Ok(Self(keys)) }
    }

    /// Returns the key for this algorithm and with this name. Without a name there must be only one
    /// for the algorithm.
    pub(super) fn find(&self, alg: Alg, kid: Option<&str>) -> Option<&PublicKey> {
        let is_for = |key: &&IssuerKey| key.key.fits(alg) && key.alg.is_none_or(|only| only == alg);
        let mut found = self.0.iter().filter(is_for).filter(|key| kid.is_none() || key.kid.as_deref() == kid);
        let first = found.next()?;
        (kid.is_some() || found.next().is_none()).then_some(&first.key)
    }
}

impl IssuerKey {
    fn read(json: &RawJson) -> Option<Self> {
        let jwk = Object::read(json).ok()?;
        let is_for_others = jwk.contains("use") && jwk.str("use").as_deref() != Some("sig");
        let operations: Option<Vec<String>> = jwk.optional("key_ops").ok()?;
        if is_for_others || operations.is_some_and(|operations| !operations.iter().any(|name| name == "verify")) {
            return None;
        }
        let alg = match jwk.kind("alg") {
            None => None,
            Some(_) => Some(Alg::parse(&jwk.str("alg")?)?),
        };
        Some(Self { kid: jwk.str("kid").map(String::from), alg, key: PublicKey::read(&jwk).ok()? })
    }
}

/// Returns how long the keys of a response are used (RFC 9111 section 5.2.2.1).
pub(super) fn lifetime(headers: &Headers) -> Duration {
    let directives = headers.all("cache-control").flat_map(members);
    let max_age = directives.filter_map(|directive| directive.split_once('=')).find_map(|(name, value)| {
        name.eq_ignore_ascii_case("max-age").then(|| value.trim_matches('"').parse::<u64>().ok()).flatten()
    });
    Duration::from_secs(max_age.map_or(LIFETIME, |seconds| seconds.clamp(MIN_LIFETIME, MAX_LIFETIME)))
}

#[cfg(test)]
mod tests;
