//! JSON Web Signatures in the compact form (RFC 7515) that this crate writes: the assertion of a
//! client, and the proof of possession of a key. The signature itself is a step.

use super::jwk::PublicKey;
use super::secret::Secret;
use crate::rpc::Object;
use alloc::format;
use alloc::string::String;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;

/// An algorithm of a signature (RFC 7518 section 3.1, RFC 8037 section 3.1). There is none that is
/// symmetric, and no `none`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum Alg {
    /// ECDSA with P-256 and SHA-256.
    Es256,
    /// ECDSA with P-384 and SHA-384.
    Es384,
    /// EdDSA with Ed25519.
    EdDsa,
    /// RSASSA-PKCS1-v1_5 with SHA-256.
    Rs256,
    /// RSASSA-PKCS1-v1_5 with SHA-384.
    Rs384,
    /// RSASSA-PKCS1-v1_5 with SHA-512.
    Rs512,
    /// RSASSA-PSS with SHA-256.
    Ps256,
    /// RSASSA-PSS with SHA-384.
    Ps384,
    /// RSASSA-PSS with SHA-512.
    Ps512,
}

impl Alg {
    /// All algorithms, the preferred ones first.
    pub const ALL: [Self; 9] = [
        Self::Es256,
        Self::EdDsa,
        Self::Es384,
        Self::Ps256,
        Self::Rs256,
        Self::Ps384,
        Self::Rs384,
        Self::Ps512,
        Self::Rs512,
    ];

    /// Returns the name in the IANA registry of JSON Web Signature algorithms. Ed25519 has two
    /// names: this is `EdDSA`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Es256 => "ES256",
            Self::Es384 => "ES384",
            Self::EdDsa => "EdDSA",
            Self::Rs256 => "RS256",
            Self::Rs384 => "RS384",
            Self::Rs512 => "RS512",
            Self::Ps256 => "PS256",
            Self::Ps384 => "PS384",
            Self::Ps512 => "PS512",
        }
    }

    /// Returns the algorithm with this name. `Ed25519` (RFC 9864) is [`EdDsa`](Self::EdDsa).
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "Ed25519" => Some(Self::EdDsa),
            _ => Self::ALL.into_iter().find(|alg| alg.as_str() == name),
        }
    }
}

/// A key that signs.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
pub enum SignKey {
    /// A private key: PKCS#8 (RFC 5958) as PEM, or as Base64 of its DER.
    Pkcs8(Secret),
    /// A key that the application has, under this name: the driver asks the application to sign.
    Named(String),
}

/// What is to be signed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SignRequest {
    /// The key.
    pub key: SignKey,
    /// The algorithm.
    pub alg: Alg,
    /// The input of the signature (RFC 7515 section 5.1). It is no secret before it is signed.
    pub input: Bytes,
}

/// A key pair that was made for a proof of possession.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
pub struct KeyPair {
    /// The private key: Base64 of PKCS#8.
    pub private: Secret,
    /// The public key.
    pub public: PublicKey,
}

/// Returns the input of a signature over this header and payload (RFC 7515 section 5.1).
pub(super) fn signing_input(header: &Object, payload: &Object) -> String {
    let encode = |object: &Object| URL_SAFE_NO_PAD.encode(object.to_json().as_bytes());
    format!("{}.{}", encode(header), encode(payload))
}

/// Returns the compact form (RFC 7515 section 7.1).
pub(super) fn compact(input: &str, signature: &[u8]) -> String {
    format!("{input}.{}", URL_SAFE_NO_PAD.encode(signature))
}
