//! The keys that sign.

use super::peer::Peer;
use crate::base64url;
use mcp_driver::keys;
use mcp_proto::auth::{Alg, PublicKey, Secret, SignKey};
use mcp_proto::rpc::Object;
use serde_json::{Value, json};

/// The algorithms of a key of RSA.
const RSA: [Alg; 6] = [Alg::Rs256, Alg::Rs384, Alg::Rs512, Alg::Ps256, Alg::Ps384, Alg::Ps512];

/// A key pair.
#[derive(Clone, Debug)]
pub(super) struct Key {
    /// Its name.
    pub(super) kid: &'static str,
    /// What it signs.
    pub(super) algs: &'static [Alg],
    /// The private key, as PEM.
    private: Secret,
    /// The public key.
    pub(super) public: PublicKey,
}

/// The keys that the issuer publishes, and those of strangers, in the same order.
#[derive(Clone, Debug)]
pub(super) struct Keys {
    pub(super) own: Vec<Key>,
    pub(super) strangers: Vec<Key>,
}

impl Keys {
    /// Makes new ones. A peer makes those of RSA, since the driver makes none.
    pub(super) fn make(peer: &mut Peer) -> Result<Self, String> {
        let mut all = Vec::new();
        for kids in [["p256", "ed25519", "p384", "rsa"], ["p256-2", "ed25519-2", "p384-2", "rsa-2"]] {
            let [p256, ed25519, p384, rsa] = kids;
            all.push(vec![
                Key::make(p256, &[Alg::Es256])?,
                Key::make(ed25519, &[Alg::EdDsa])?,
                Key::make(p384, &[Alg::Es384])?,
                Key::rsa(rsa, peer)?,
            ]);
        }
        let strangers = all.pop().unwrap_or_default();
        Ok(Self { own: all.pop().unwrap_or_default(), strangers })
    }

    /// What a peer has to know: the public keys, and all private ones.
    pub(super) fn tell(&self, rules: &mut Value) {
        let list = |keys: &[Key]| keys.iter().map(Key::jwk).collect::<Vec<Value>>();
        rules["keys"] = list(&self.own).into();
        rules["strangers"] = list(&self.strangers).into();
        let private =
            self.own.iter().chain(&self.strangers).map(|key| (key.kid.to_owned(), key.private.expose().into()));
        rules["private"] = Value::Object(private.collect());
    }
}

impl Key {
    /// Makes a key pair of ECDSA or Ed25519.
    pub(super) fn make(kid: &'static str, algs: &'static [Alg]) -> Result<Self, String> {
        let alg = algs.first().copied().unwrap_or(Alg::Es256);
        let pair = keys::generate(alg)?;
        let private = match alg {
            Alg::EdDsa => first_version(pair.private.expose()).ok_or("the key has another form")?,
            _ => pair.private.expose().to_owned(),
        };
        Ok(Self { kid, algs, private: pem(&private).into(), public: pair.public })
    }

    fn rsa(kid: &'static str, peer: &mut Peer) -> Result<Self, String> {
        peer.ask(vec![json!(["rsa"])])?;
        let made = peer.answers()?.pop().ok_or("no answer")??;
        let jwk = Object::encode(&made["jwk"]).map_err(|why| why.to_string())?;
        let public = PublicKey::read(&jwk)?;
        let private = made["pkcs8"].as_str().unwrap_or_default().to_owned();
        Ok(Self { kid, algs: &RSA, private: private.into(), public })
    }

    /// The key for the engine.
    pub(super) fn sign_key(&self) -> SignKey {
        SignKey::Pkcs8(self.private.clone())
    }

    /// Returns the public key as JSON, with its name.
    pub(super) fn jwk(&self) -> Value {
        let mut jwk = self.bare_jwk();
        jwk["kid"] = self.kid.into();
        jwk
    }

    /// Returns the public key as JSON.
    pub(super) fn bare_jwk(&self) -> Value {
        serde_json::from_str(self.public.write().to_json().as_str()).unwrap_or_default()
    }

    /// Signs a header and claims.
    pub(super) fn sign(&self, alg: Alg, header: &str, claims: &str) -> Result<String, String> {
        let input = format!("{}.{}", base64url::encode(header), base64url::encode(claims));
        let signature = keys::sign(&self.sign_key(), alg, input.as_bytes())?;
        Ok(format!("{input}.{}", base64url::encode(signature)))
    }
}

/// Returns a private key of Ed25519 without its public key (RFC 8410 section 7): other libraries
/// do not read the second version of PKCS#8.
fn first_version(base64: &str) -> Option<String> {
    let der = decoded(base64)?;
    let seed = der.get(16..48)?;
    let version = [0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20];
    let url = base64url::encode([&version, seed].concat());
    // 48 bytes: no padding.
    Some(url.replace('-', "+").replace('_', "/"))
}

fn decoded(base64: &str) -> Option<Vec<u8>> {
    base64url::decode(&base64.trim_end_matches('=').replace('+', "-").replace('/', "_"))
}

fn pem(base64: &str) -> String {
    let lines: Vec<String> =
        base64.as_bytes().chunks(64).map(|line| String::from_utf8_lossy(line).into_owned()).collect();
    format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n", lines.join("\n"))
}
