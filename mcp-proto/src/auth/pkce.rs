//! Proof keys for code exchange (RFC 7636), S256 only.

use super::secret::Secret;
use alloc::string::String;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// The verifier of one authorization request, and its S256 challenge.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct ProofKey {
    /// What the token request has.
    pub(super) verifier: Secret,
    /// What the authorization request has.
    pub(super) challenge: String,
}

impl ProofKey {
    /// Returns the key for random bytes (RFC 7636 sections 4.1 and 4.2).
    pub(super) fn new(random: [u8; 32]) -> Self {
        let verifier = URL_SAFE_NO_PAD.encode(random);
        let challenge = URL_SAFE_NO_PAD.encode(hmac_sha256::Hash::hash(verifier.as_bytes()));
        Self { verifier: verifier.into(), challenge }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: AUTHF-C-002, B-252
    #[test]
    fn challenge_is_that_of_the_standard() {
        // RFC 7636 appendix B.
        let random = [
            116, 24, 223, 180, 151, 153, 224, 37, 79, 250, 96, 125, 216, 173, 187, 186, 22, 212, 37, 77, 105, 214, 191,
            240, 91, 88, 5, 88, 83, 132, 141, 121,
        ];
        let key = ProofKey::new(random);
        assert_eq!(key.verifier.expose(), "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk");
        assert_eq!(key.challenge, "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
    }

    #[test]
    fn verifier_is_long_enough_and_not_shown() {
        for random in [[0; 32], [255; 32]] {
            let key = ProofKey::new(random);
            assert_eq!((key.verifier.len(), key.challenge.len()), (43, 43));
            assert!(!alloc::format!("{key:?}").contains(key.verifier.expose()));
        }
        assert_ne!(ProofKey::new([0; 32]), ProofKey::new([1; 32]));
    }
}
