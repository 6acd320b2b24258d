//! Keys and signatures without cryptography: a public key is a number, and a signature is a keyed
//! hash. What was signed is read as an issuer and a server read it, and nothing of it may occur
//! twice.

use super::check::MARK;
use hmac_sha256::{HMAC, Hash};
use mcp_proto::auth::{Alg, KeyPair, PublicKey};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Identifies a public key: the SHA-256 of its JSON (RFC 7638).
pub(super) type Thumbprint = [u8; 32];

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Keys {
    /// The private keys of the pairs.
    pairs: BTreeMap<Thumbprint, String>,
    made: u64,
    /// The ids of proofs and assertions.
    ids: BTreeSet<String>,
    /// The number of proofs that were read.
    pub(super) proofs: u64,
}

/// A proof of possession (RFC 9449).
#[derive(Clone, Debug)]
pub(super) struct Proof {
    /// The key that it is of.
    pub(super) key: Thumbprint,
    /// The hash of the access token that it belongs to.
    pub(super) token: Option<Vec<u8>>,
    pub(super) nonce: Option<String>,
}

impl Keys {
    /// Makes a private key.
    pub(super) fn private(&mut self) -> String {
        self.made += 1;
        format!("{MARK}key-{}", self.made)
    }

    /// Makes a key pair.
    pub(super) fn pair(&mut self, alg: Alg) -> KeyPair {
        let private = self.private();
        let number = |name: &str| Hash::hash(format!("{name} of {private}").as_bytes()).to_vec();
        let public = match alg {
            Alg::EdDsa => PublicKey::Ed25519(number("x")),
            _ => PublicKey::P256 { x: number("x"), y: number("y") },
        };
        let thumbprint = decode(&public.thumbprint()).try_into().expect("a hash");
        self.pairs.insert(thumbprint, private.clone());
        KeyPair { private: private.into(), public }
    }

    /// Signs with a private key.
    pub(super) fn sign(private: &str, input: &[u8]) -> Vec<u8> {
        [HMAC::mac(input, private.as_bytes()); 2].concat()
    }

    /// Reads the proof of a request, made by a process whose Unix time in seconds is this one.
    pub(super) fn proof(&mut self, text: &str, method: &str, url: &str, unix: u64) -> Proof {
        let jws = Jws::read(text);
        assert_eq!(jws.header["typ"], "dpop+jwt");
        let key = Hash::hash(jws.header["jwk"].to_string().as_bytes());
        let private = self.pairs.get(&key).expect("a key that was made");
        assert!(jws.is_of(private), "a proof of another key");
        assert_eq!(
            (&jws.payload["htm"], &jws.payload["htu"]),
            (&method.into(), &url.into()),
            "a proof for another use"
        );
        let age = unix.checked_sub(jws.payload["iat"].as_u64().expect("a time")).expect("a proof of the future");
        assert!(age <= 31, "a proof is {age} s old");
        self.note(&jws);
        self.proofs += 1;
        let text = |name: &str| jws.payload[name].as_str().map(str::to_owned);
        Proof { key, token: text("ath").map(|hash| decode(&hash)), nonce: text("nonce") }
    }

    /// Reads the assertion of a client (RFC 7523 section 3).
    pub(super) fn assertion(&mut self, text: &str, private: &str, client: &str, issuer: &str) {
        let jws = Jws::read(text);
        assert!(jws.is_of(private), "an assertion of another key");
        let payload = &jws.payload;
        assert_eq!(
            (&payload["iss"], &payload["sub"], &payload["aud"]),
            (&client.into(), &client.into(), &issuer.into())
        );
        let times = ["iat", "exp"].map(|name| payload[name].as_u64().expect("a time"));
        assert_eq!(times[1] - times[0], 60);
        self.note(&jws);
    }

    /// Each attempt has a proof of its own.
    fn note(&mut self, jws: &Jws) {
        let id = jws.payload["jti"].as_str().expect("an id").to_owned();
        assert!(!id.contains(MARK), "a secret in a signed text");
        assert!(self.ids.insert(id), "a proof or an assertion is used twice: {}", jws.payload);
    }
}

/// A JSON Web Signature in the compact form (RFC 7515 section 7.1).
#[derive(Debug)]
struct Jws {
    header: Value,
    payload: Value,
    input: String,
    signature: Vec<u8>,
}

impl Jws {
    fn read(text: &str) -> Self {
        let (input, signature) = text.rsplit_once('.').expect("three parts");
        let (header, payload) = input.split_once('.').expect("three parts");
        let object = |part| serde_json::from_slice(&decode(part)).expect("JSON");
        let (header, payload) = (object(header), object(payload));
        Self { header, payload, input: input.to_owned(), signature: decode(signature) }
    }

    fn is_of(&self, private: &str) -> bool {
        self.signature == Keys::sign(private, self.input.as_bytes())
    }
}

/// Decodes Base64 with either alphabet.
pub(super) fn decode(text: &str) -> Vec<u8> {
    let digit = |c| match c {
        b'A'..=b'Z' => c - b'A',
        b'a'..=b'z' => c - b'a' + 26,
        b'0'..=b'9' => c - b'0' + 52,
        b'-' | b'+' => 62,
        b'_' | b'/' => 63,
        other => panic!("no digit of Base64: {other}"),
    };
    let digits: Vec<u8> = text.trim_end_matches('=').bytes().map(digit).collect();
    let group = |four: &[u8]| {
        let bits = (0..4).fold(0_u32, |bits, at| bits << 6 | u32::from(four.get(at).copied().unwrap_or(0)));
        bits.to_be_bytes()[1..four.len()].to_vec()
    };
    digits.chunks(4).flat_map(group).collect()
}
