//! Proofs of possession of a key (RFC 9449, DPoP), as a client writes them: the algorithms, the
//! composition, and the nonces of the servers. A signature is a step.

use super::config::Dpop;
use super::identifier;
use super::jwk::PublicKey;
use super::jws::{self, Alg};
use super::secret::Secret;
use crate::exchange::Origin;
use crate::fetch::HttpTarget;
use crate::rpc::Object;
use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;
use base64::prelude::{BASE64_URL_SAFE_NO_PAD, Engine as _};

/// The field with a proof.
pub(super) const FIELD: &str = "DPoP";
/// The field with a nonce.
pub(crate) const NONCE_FIELD: &str = "DPoP-Nonce";
/// Maximum length of a nonce, in bytes. A longer one is ignored.
const MAX_NONCE: usize = 512;
/// Maximum number of servers whose nonces are known: the resource, and its issuers.
const MAX_SERVERS: usize = 8;

/// The algorithms that a server accepts for proofs, of those for which this client makes keys.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct ProofAlgs {
    es256: bool,
    eddsa: bool,
}

impl ProofAlgs {
    /// A server that lists none accepts all.
    pub(super) const ALL: Self = Self { es256: true, eddsa: true };

    /// Reads a list of names.
    pub(super) fn listed<'a>(names: impl Iterator<Item = &'a str>) -> Self {
        let none = Self { es256: false, eddsa: false };
        names.fold(none, |found, name| Self {
            es256: found.es256 || name == Alg::Es256.as_str(),
            eddsa: found.eddsa || name == Alg::EdDsa.as_str(),
        })
    }

    /// Returns the algorithms, the preferred one first.
    pub(super) fn to_vec(self) -> Vec<Alg> {
        [(self.es256, Alg::Es256), (self.eddsa, Alg::EdDsa)]
            .into_iter()
            .filter(|(has, _)| *has)
            .map(|(_, alg)| alg)
            .collect()
    }

    /// Returns the preferred algorithm that both accept.
    fn common(self, other: Self) -> Option<Alg> {
        match () {
            () if self.es256 && other.es256 => Some(Alg::Es256),
            () if self.eddsa && other.eddsa => Some(Alg::EdDsa),
            () => None,
        }
    }
}

/// Returns the algorithm of the key that new tokens are bound to, or `None` if they are not bound.
/// `resource` has the algorithms of a server that asks for proofs, `issuer` those that its issuer
/// lists. A list of the issuer alone is no reason: the server may not know the scheme.
///
/// # Errors
/// Bound tokens are required, and the two accept no common algorithm.
pub(super) fn choose(
    config: Dpop,
    resource: Option<ProofAlgs>,
    issuer: Option<ProofAlgs>,
) -> Result<Option<Alg>, NoCommonAlg> {
    match config {
        Dpop::Off => Ok(None),
        Dpop::IfOffered => Ok(resource.zip(issuer).and_then(|(resource, issuer)| resource.common(issuer))),
        Dpop::Required => {
            let alg = resource.unwrap_or(ProofAlgs::ALL).common(issuer.unwrap_or(ProofAlgs::ALL));
            alg.map(Some).ok_or(NoCommonAlg)
        }
    }
}

/// There is no algorithm that the client, the server and its issuer have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct NoCommonAlg;

/// What a proof says (RFC 9449 section 4.2).
#[derive(Debug)]
pub(super) struct ProofClaims<'a> {
    /// The method of the request.
    pub(super) method: &'a str,
    /// Its URL.
    pub(super) url: &'a HttpTarget,
    /// The Unix time in seconds.
    pub(super) issued: u64,
    /// An id that no other proof has.
    pub(super) id: String,
    /// The access token that the request carries.
    pub(super) token: Option<&'a Secret>,
    /// The latest nonce of the server.
    pub(super) nonce: Option<&'a str>,
}

/// Returns the input of the signature of a proof, or `None` for a key without an algorithm.
pub(super) fn input(key: &PublicKey, claims: &ProofClaims<'_>) -> Option<String> {
    let header = Object::new().with("typ", "dpop+jwt").with("alg", alg_of(key)?.as_str()).with("jwk", key.write());
    let payload = Object::new()
        .with("jti", &*claims.id)
        .with("htm", claims.method)
        .with("htu", identifier::without_query(claims.url))
        .with("iat", claims.issued)
        .with_opt("ath", claims.token.map(hash_of))
        .with_opt("nonce", claims.nonce);
    Some(jws::signing_input(&header, &payload))
}

/// Returns the id of a proof: 16 of these bytes, which cannot be guessed.
pub(super) fn id(random: &[u8; 32]) -> String {
    let (half, _) = random.split_at(16);
    BASE64_URL_SAFE_NO_PAD.encode(half)
}

/// Returns the algorithm of the proofs of a key. `None` for a kind of key that is never made.
pub(super) const fn alg_of(key: &PublicKey) -> Option<Alg> {
    match key {
        PublicKey::P256 { .. } => Some(Alg::Es256),
        PublicKey::Ed25519(_) => Some(Alg::EdDsa),
        _ => None,
    }
}

fn hash_of(token: &Secret) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(hmac_sha256::Hash::hash(token.expose().as_bytes()))
}

/// The latest nonce of each server, by its origin (RFC 9449 section 8.2).
#[derive(Debug, Default)]
pub(super) struct Nonces(VecDeque<(Origin, String)>);

impl Nonces {
    /// Returns the latest nonce of a server.
    pub(super) fn get(&self, origin: &Origin) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == origin).map(|(_, nonce)| nonce.as_str())
    }

    /// Takes the nonce of a response, whatever its status is. Returns whether there is one.
    pub(super) fn note(&mut self, origin: &Origin, nonce: Option<&str>) -> bool {
        let Some(nonce) = nonce.filter(|nonce| is_nonce(nonce)) else { return false };
        self.0.retain(|(known, _)| known != origin);
        if self.0.len() == MAX_SERVERS {
            self.0.pop_front();
        }
        self.0.push_back((origin.clone(), nonce.into()));
        true
    }
}

/// Returns whether a text is a nonce (RFC 9449 section 8.1) of a length that is bearable.
fn is_nonce(text: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\');
    (1..=MAX_NONCE).contains(&text.len()) && text.bytes().all(is_allowed)
}

#[cfg(test)]
mod tests;
