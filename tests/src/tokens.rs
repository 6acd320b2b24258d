//! Access tokens as an authorization server signs them: JSON Web Tokens with ES256.

use crate::base64url::encode as base64url;
use rcgen::{KeyPair, PKCS_ECDSA_P256_SHA256, PublicKeyData as _, SigningKey as _};
use std::time::{SystemTime, UNIX_EPOCH};

/// The name of the key in its set.
const KID: &str = "k";

/// The bytes of each of the two numbers of a signature, and of each coordinate of a key.
const NUMBER: usize = 32;

/// The key of an authorization server, and what its tokens say.
pub struct TokenSigner {
    key: KeyPair,
    /// The issuer.
    pub issuer: String,
    /// The resource that they are for.
    pub audience: String,
}

impl TokenSigner {
    /// Makes a key for the tokens of an issuer, which are for this resource.
    ///
    /// # Panics
    /// If there is no cryptography.
    pub fn new(issuer: &str, audience: &str) -> Self {
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).expect("a key");
        Self { key, issuer: issuer.into(), audience: audience.into() }
    }

    /// Returns the uncompressed point of its public key (SEC 1 section 2.3.3).
    pub fn point(&self) -> &[u8] {
        self.key.der_bytes()
    }

    /// Returns its set of keys (RFC 7517).
    pub fn keys(&self) -> String {
        let (x, y) = self.point()[1..].split_at(NUMBER);
        let (x, y) = (base64url(x), base64url(y));
        format!(
            r#"{{"keys":[{{"kty":"EC","crv":"P-256","kid":"{KID}","use":"sig","alg":"ES256","x":"{x}","y":"{y}"}}]}}"#
        )
    }

    /// Returns a valid token of this user.
    pub fn token(&self, user: &str) -> String {
        let input = self.input(user, KID);
        format!("{input}.{}", base64url(two_numbers(&self.sign_der(input.as_bytes()))))
    }

    /// Returns a token with a signature that is not valid. Its claims are acceptable, and each
    /// `number` has another one.
    pub fn forged(&self, number: usize) -> String {
        self.unsigned(&format!("user {number}"), KID)
    }

    /// Returns such a token that names another key for each `number`.
    pub fn of_unknown_key(&self, number: usize) -> String {
        self.unsigned("eve", &format!("unknown {number}"))
    }

    /// Signs this. The signature is in DER (RFC 3279 section 2.2.3).
    ///
    /// # Panics
    /// If there is no cryptography.
    pub fn sign_der(&self, input: &[u8]) -> Vec<u8> {
        self.key.sign(input).expect("a signature")
    }

    fn unsigned(&self, user: &str, kid: &str) -> String {
        format!("{}.{}", self.input(user, kid), base64url([7; 2 * NUMBER]))
    }

    fn input(&self, user: &str, kid: &str) -> String {
        let (issuer, audience, expires) = (&self.issuer, &self.audience, unix() + 3600);
        let header = format!(r#"{{"alg":"ES256","typ":"at+jwt","kid":"{kid}"}}"#);
        let claims = format!(
            r#"{{"iss":"{issuer}","aud":"{audience}","sub":"{user}","client_id":"app","scope":"files","exp":{expires}}}"#
        );
        format!("{}.{}", base64url(header.as_bytes()), base64url(claims.as_bytes()))
    }
}

/// Returns the numbers of a signature in DER, one after the other (RFC 7518 section 3.4).
fn two_numbers(der: &[u8]) -> Vec<u8> {
    let mut numbers = [[0; NUMBER]; 2];
    // Each is an integer behind its tag and its length, with a zero before a first bit of 1.
    let mut rest = &der[2..];
    for number in &mut numbers {
        let (digits, after) = rest[2..].split_at(usize::from(rest[1]));
        let digits = &digits[digits.len().saturating_sub(NUMBER)..];
        number[NUMBER - digits.len()..].copy_from_slice(digits);
        rest = after;
    }
    numbers.concat()
}

/// Returns the Unix time in seconds.
fn unix() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())
}
