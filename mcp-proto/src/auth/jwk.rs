//! Public keys as JSON Web Keys (RFC 7517, RFC 7518 section 6, RFC 8037 section 2).

use super::jws::Alg;
use crate::rpc::Object;
use alloc::string::String;
use alloc::vec::Vec;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// A public key that verifies signatures. Symmetric keys have no form here.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum PublicKey {
    /// A point on P-256: its two coordinates of 32 bytes.
    P256 {
        /// The first coordinate.
        x: Vec<u8>,
        /// The second coordinate.
        y: Vec<u8>,
    },
    /// A point on P-384: its two coordinates of 48 bytes.
    P384 {
        /// The first coordinate.
        x: Vec<u8>,
        /// The second coordinate.
        y: Vec<u8>,
    },
    /// A key of Ed25519, 32 bytes.
    Ed25519(Vec<u8>),
    /// A key of RSA, without leading zeros.
    Rsa {
        /// The modulus.
        n: Vec<u8>,
        /// The exponent.
        e: Vec<u8>,
    },
}

/// The members of private and symmetric keys (RFC 7518 section 6).
const PRIVATE: [&str; 8] = ["d", "p", "q", "dp", "dq", "qi", "oth", "k"];

/// The lengths of a modulus in bytes: 2,048 bits (RFC 7518 section 3.3) up to what libraries verify
/// with.
const MODULUS: core::ops::RangeInclusive<usize> = 256..=1024;

/// The longest exponent of RSA, in bytes.
const MAX_EXPONENT: usize = 8;

/// The beginnings of a `SubjectPublicKeyInfo` (RFC 5280 section 4.1) up to the key itself: RFC 5480
/// sections 2.1.1.1 and 2.2, RFC 8410 section 4.
const SPKI_P256: &[u8] = b"\x30\x59\x30\x13\x06\x07\x2a\x86\x48\xce\x3d\x02\x01\x06\x08\x2a\x86\x48\xce\x3d\x03\x01\
\x07\x03\x42\x00\x04";
const SPKI_P384: &[u8] = b"\x30\x76\x30\x10\x06\x07\x2a\x86\x48\xce\x3d\x02\x01\x06\x05\x2b\x81\x04\x00\x22\x03\x62\
\x00\x04";
const SPKI_ED25519: &[u8] = b"\x30\x2a\x30\x05\x06\x03\x2b\x65\x70\x03\x21\x00";

impl PublicKey {
    /// Reads a JSON Web Key. Members that do not belong to the key itself, such as `kid`, do not
    /// count.
    ///
    /// # Errors
    /// Why it is none: another type or curve, a length that does not fit, less than 2,048 bits for
    /// RSA, or members of a private or a symmetric key.
    pub fn read(jwk: &Object) -> Result<Self, &'static str> {
        if PRIVATE.iter().any(|member| jwk.contains(member)) {
            return Err("the key is not public");
        }
        let member = |name: &str| jwk.str(name).and_then(|text| URL_SAFE_NO_PAD.decode(&*text).ok());
        let coordinate = |name, len| member(name).filter(|bytes| bytes.len() == len);
        let number = |name| member(name).map(|bytes| without_zeros(&bytes).to_vec());
        let (kty, crv) = (jwk.str("kty"), jwk.str("crv"));
        let key = match (kty.as_deref(), crv.as_deref()) {
            (Some("EC"), Some("P-256")) => {
                coordinate("x", 32).zip(coordinate("y", 32)).map(|(x, y)| Self::P256 { x, y })
            }
            (Some("EC"), Some("P-384")) => {
                coordinate("x", 48).zip(coordinate("y", 48)).map(|(x, y)| Self::P384 { x, y })
            }
            (Some("OKP"), Some("Ed25519")) => coordinate("x", 32).map(Self::Ed25519),
            (Some("RSA"), _) => {
                let (n, e) = number("n").zip(number("e")).ok_or("the key has no modulus or no exponent")?;
                // The first byte of the shortest modulus is a full one: it has no leading zero bit.
                let is_long = MODULUS.contains(&n.len()) && (n.len() > *MODULUS.start() || n[0] >= 0x80);
                (is_long && (1..=MAX_EXPONENT).contains(&e.len())).then_some(Self::Rsa { n, e })
            }
            _ => return Err("the type or the curve of the key is not known"),
        };
        key.ok_or("the key has a wrong length")
    }

    /// Returns the JSON Web Key with the members that the key needs, and no others.
    pub fn write(&self) -> Object {
        let encode = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        let point = |crv: &str, x: &[u8]| Object::new().with("crv", crv).with("kty", "EC").with("x", encode(x));
        // In the order of their names, as a thumbprint has them.
        match self {
            Self::P256 { x, y } => point("P-256", x).with("y", encode(y)),
            Self::P384 { x, y } => point("P-384", x).with("y", encode(y)),
            Self::Ed25519(x) => Object::new().with("crv", "Ed25519").with("kty", "OKP").with("x", encode(x)),
            Self::Rsa { n, e } => Object::new().with("e", encode(e)).with("kty", "RSA").with("n", encode(n)),
        }
    }

    /// Returns the thumbprint of the key with SHA-256 (RFC 7638), in base64url: the `jkt` of a
    /// token that is bound to it.
    pub fn thumbprint(&self) -> String {
        URL_SAFE_NO_PAD.encode(hmac_sha256::Hash::hash(self.write().to_json().as_bytes()))
    }

    /// Returns the key in the form that libraries verify with: the uncompressed point (SEC 1
    /// section 2.3.3), the bytes of an Ed25519 key, or the DER of an `RSAPublicKey` (RFC 8017
    /// appendix A.1.1).
    pub fn verification_bytes(&self) -> Vec<u8> {
        match self {
            Self::P256 { x, y } | Self::P384 { x, y } => [&[4], &x[..], y].concat(),
            Self::Ed25519(x) => x.clone(),
            Self::Rsa { n, e } => {
                let mut numbers = Vec::with_capacity(n.len() + e.len() + 16);
                der_integer(&mut numbers, n);
                der_integer(&mut numbers, e);
                let mut sequence = Vec::with_capacity(numbers.len() + 8);
                der(&mut sequence, 0x30, &[&numbers]);
                sequence
            }
        }
    }

    /// Reads the DER of a `SubjectPublicKeyInfo` (RFC 5280 section 4.1) with a key of P-256, P-384
    /// or Ed25519. `None` for any other.
    pub fn from_spki(der: &[u8]) -> Option<Self> {
        let of_length = |prefix, len| der.strip_prefix(prefix).filter(|rest: &&[u8]| rest.len() == len);
        let halves = |point: &[u8]| {
            let (x, y) = point.split_at(point.len() / 2);
            (x.to_vec(), y.to_vec())
        };
        if let Some(point) = of_length(SPKI_P256, 64) {
            let (x, y) = halves(point);
            return Some(Self::P256 { x, y });
        }
        if let Some(point) = of_length(SPKI_P384, 96) {
            let (x, y) = halves(point);
            return Some(Self::P384 { x, y });
        }
        of_length(SPKI_ED25519, 32).map(|key| Self::Ed25519(key.to_vec()))
    }

    /// Returns whether the algorithm works with a key of this type.
    pub const fn fits(&self, alg: Alg) -> bool {
        match alg {
            Alg::Es256 => matches!(self, Self::P256 { .. }),
            Alg::Es384 => matches!(self, Self::P384 { .. }),
            Alg::EdDsa => matches!(self, Self::Ed25519(_)),
            Alg::Rs256 | Alg::Rs384 | Alg::Rs512 | Alg::Ps256 | Alg::Ps384 | Alg::Ps512 => {
                matches!(self, Self::Rsa { .. })
            }
        }
    }
}

fn without_zeros(bytes: &[u8]) -> &[u8] {
    let first = bytes.iter().position(|byte| *byte != 0).unwrap_or(bytes.len());
    &bytes[first..]
}

/// Appends an `INTEGER` that is not negative (X.690 section 8.3).
fn der_integer(out: &mut Vec<u8>, number: &[u8]) {
    let number = without_zeros(number);
    let sign: &[u8] = if number.first().is_none_or(|byte| *byte >= 0x80) { &[0] } else { &[] };
    der(out, 0x02, &[sign, number]);
}

/// Appends an element with this content (X.690 section 8.1).
fn der(out: &mut Vec<u8>, tag: u8, content: &[&[u8]]) {
    let len = content.iter().map(|part| part.len()).sum::<usize>();
    let bytes = len.to_be_bytes();
    let bytes = without_zeros(&bytes);
    out.push(tag);
    match u8::try_from(len) {
        Ok(short @ ..=0x7f) => out.push(short),
        // A length has at most eight bytes.
        _ => {
            out.push(0x80 | bytes.len() as u8);
            out.extend_from_slice(bytes);
        }
    }
    content.iter().for_each(|part| out.extend_from_slice(part));
}

#[cfg(test)]
mod tests;
