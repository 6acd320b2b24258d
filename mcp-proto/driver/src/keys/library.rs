//! Keys and signatures of the provider of rustls.

use super::der;
use crate::tls::provider;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mcp_proto::auth::{Alg, KeyPair, PublicKey, SignKey, Verification};
use rustls::SignatureScheme;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{AlgorithmIdentifier, PrivateKeyDer, PrivatePkcs8KeyDer, alg_id};
use rustls::sign::SigningKey;

/// Signs this, as RFC 7518 section 3 defines it. This takes about 100 µs, with RSA some
/// milliseconds.
///
/// # Errors
/// There is no cryptography, the application has the key, or the key is none for this algorithm.
/// The text shows nothing of the key.
pub fn sign(key: &SignKey, alg: Alg, input: &[u8]) -> Result<Vec<u8>, String> {
    let Algorithm { scheme, number, .. } = algorithm(alg)?;
    let key = match key {
        SignKey::Pkcs8(key) => load(private_key(key.expose())?)?,
        SignKey::Named(name) => return Err(format!("the application does not sign with the key {name:?}")),
    };
    let signer = key.choose_scheme(&[scheme]).ok_or_else(|| format!("the key does not sign {}", alg.as_str()))?;
    let signature = signer.sign(input).map_err(|why| why.to_string())?;
    match number {
        None => Ok(signature),
        Some(size) => der::numbers(&signature, size).ok_or_else(|| "the signature has no known form".into()),
    }
}

/// Returns whether a signature is right. One of a wrong length, or with a key of another algorithm,
/// is not. This takes about 100 µs.
///
/// # Errors
/// There is no cryptography, or it lacks this algorithm.
pub fn verify(verification: &Verification) -> Result<bool, String> {
    let Verification { alg, key, input, signature } = verification;
    let Algorithm { of_key, of_signature, number, .. } = algorithm(*alg)?;
    let provider = provider()?;
    let mut known = provider.signature_verification_algorithms.all.iter();
    let verifier = known
        .find(|known| known.public_key_alg_id() == of_key && known.signature_alg_id() == of_signature)
        .ok_or_else(|| format!("the cryptography does not verify {}", alg.as_str()))?;
    if !key.fits(*alg) || number.is_some_and(|size| signature.len() != 2 * size) {
        return Ok(false);
    }
    let encoded = number.map(|_| der::signature(signature));
    let signature = encoded.as_deref().unwrap_or(signature);
    Ok(verifier.verify_signature(&key.verification_bytes(), input, signature).is_ok())
}

/// Makes a key pair for this algorithm: of ECDSA, or of Ed25519.
///
/// # Errors
/// There is no cryptography, it is the application's own, which makes no keys, or keys for this
/// algorithm are not made.
pub fn generate(alg: Alg) -> Result<KeyPair, String> {
    let private = new_key(alg)?;
    let key = load(PrivatePkcs8KeyDer::from(private.as_slice()).clone_key().into())?;
    let public = key.public_key().and_then(|key| PublicKey::from_spki(&key));
    let public = public.ok_or("the cryptography does not show the public key")?;
    Ok(KeyPair { private: STANDARD.encode(private).into(), public })
}

/// Returns a new private key as PKCS#8.
#[cfg(feature = "tls")]
fn new_key(alg: Alg) -> Result<Vec<u8>, String> {
    use ring::rand::SystemRandom;
    use ring::signature::{
        ECDSA_P256_SHA256_ASN1_SIGNING, ECDSA_P384_SHA384_ASN1_SIGNING, EcdsaKeyPair, Ed25519KeyPair,
    };

    let random = SystemRandom::new();
    let key = match alg {
        Alg::Es256 => EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &random),
        Alg::Es384 => EcdsaKeyPair::generate_pkcs8(&ECDSA_P384_SHA384_ASN1_SIGNING, &random),
        Alg::EdDsa => Ed25519KeyPair::generate_pkcs8(&random),
        _ => return Err(not_made(alg)),
    };
    key.map(|key| key.as_ref().to_vec()).map_err(|_| "the system has no random numbers".into())
}

/// Returns a new private key as PKCS#8.
#[cfg(all(feature = "tls-graviola", not(feature = "tls")))]
fn new_key(alg: Alg) -> Result<Vec<u8>, String> {
    use graviola::signing::ecdsa::{P256, P384, SigningKey};
    use graviola::signing::eddsa::Ed25519SigningKey;

    let mut buffer = [0; 256];
    let key = match alg {
        Alg::Es256 => SigningKey::<P256>::generate().and_then(|key| key.to_pkcs8_der(&mut buffer).map(<[u8]>::to_vec)),
        Alg::Es384 => SigningKey::<P384>::generate().and_then(|key| key.to_pkcs8_der(&mut buffer).map(<[u8]>::to_vec)),
        Alg::EdDsa => Ed25519SigningKey::generate().and_then(|key| key.to_pkcs8_der(&mut buffer).map(<[u8]>::to_vec)),
        _ => return Err(not_made(alg)),
    };
    key.map_err(|why| format!("the cryptography makes no key: {why:?}"))
}

#[cfg(not(any(feature = "tls", feature = "tls-graviola")))]
fn new_key(_alg: Alg) -> Result<Vec<u8>, String> {
    Err("the cryptography of the application makes no keys: use the feature `tls`".into())
}

#[cfg(any(feature = "tls", feature = "tls-graviola"))]
fn not_made(alg: Alg) -> String {
    format!("keys for {} are not made", alg.as_str())
}

/// Reads a private key: PEM, or Base64 of PKCS#8.
fn private_key(text: &str) -> Result<PrivateKeyDer<'static>, String> {
    let text = text.trim();
    if text.starts_with("-----BEGIN") {
        return PrivateKeyDer::from_pem_slice(text.as_bytes())
            .map_err(|_| "the key is not a private key in PEM".into());
    }
    let der = STANDARD.decode(text).map_err(|_| "the key is neither PEM nor Base64")?;
    Ok(PrivatePkcs8KeyDer::from(der).into())
}

fn load(key: PrivateKeyDer<'static>) -> Result<Arc<dyn SigningKey>, String> {
    provider()?.key_provider.load_private_key(key).map_err(|_| "the private key is not one that signs".into())
}

/// What an algorithm of a signature is for rustls.
struct Algorithm {
    of_key: AlgorithmIdentifier,
    of_signature: AlgorithmIdentifier,
    scheme: SignatureScheme,
    /// The size of each of its two numbers, if a signature consists of two.
    number: Option<usize>,
}

fn algorithm(alg: Alg) -> Result<Algorithm, String> {
    use SignatureScheme as Scheme;
    let (of_key, of_signature, scheme, number) = match alg {
        Alg::Es256 => (alg_id::ECDSA_P256, alg_id::ECDSA_SHA256, Scheme::ECDSA_NISTP256_SHA256, Some(32)),
        Alg::Es384 => (alg_id::ECDSA_P384, alg_id::ECDSA_SHA384, Scheme::ECDSA_NISTP384_SHA384, Some(48)),
        Alg::EdDsa => (alg_id::ED25519, alg_id::ED25519, Scheme::ED25519, None),
        Alg::Rs256 => (alg_id::RSA_ENCRYPTION, alg_id::RSA_PKCS1_SHA256, Scheme::RSA_PKCS1_SHA256, None),
        Alg::Rs384 => (alg_id::RSA_ENCRYPTION, alg_id::RSA_PKCS1_SHA384, Scheme::RSA_PKCS1_SHA384, None),
        Alg::Rs512 => (alg_id::RSA_ENCRYPTION, alg_id::RSA_PKCS1_SHA512, Scheme::RSA_PKCS1_SHA512, None),
        Alg::Ps256 => (alg_id::RSA_ENCRYPTION, alg_id::RSA_PSS_SHA256, Scheme::RSA_PSS_SHA256, None),
        Alg::Ps384 => (alg_id::RSA_ENCRYPTION, alg_id::RSA_PSS_SHA384, Scheme::RSA_PSS_SHA384, None),
        Alg::Ps512 => (alg_id::RSA_ENCRYPTION, alg_id::RSA_PSS_SHA512, Scheme::RSA_PSS_SHA512, None),
        other => return Err(format!("{} is not supported", other.as_str())),
    };
    Ok(Algorithm { of_key, of_signature, scheme, number })
}
