//! The invariants of logins.

use super::keys::{Keys, Proof, Thumbprint, decode};
use super::process::Process;
use super::servers::Request;
use super::store::Store;
use super::world::SERVER_PORT;
use hmac_sha256::Hash;
use mcp_proto::auth::{Record, Scopes};
use std::collections::BTreeMap;
use std::fmt::Debug;

/// The marker of every secret of this world.
pub(super) const MARK: &str = "canary-";

/// Whom a secret may reach.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Addressee {
    /// This issuer.
    Issuer(u16),
    /// The guarded server, and the issuer that revokes it. The key that the token is bound to.
    Server(u16, Option<Thumbprint>),
    /// The user, or the signer: it is in no request.
    Local,
}

/// What is checked during a run.
#[derive(Debug, Default)]
pub(super) struct Checks {
    secrets: BTreeMap<String, Addressee>,
    /// The scopes that were requested for each issuer and client.
    requested: BTreeMap<(String, String), Scopes>,
}

impl Checks {
    /// Notes secrets that an issuer has minted.
    pub(super) fn minted(&mut self, secrets: Vec<(String, Addressee)>) {
        self.secrets.extend(secrets);
    }

    /// A request carries a secret only to its addressee, and a proof of the key of its token.
    /// Returns that proof. The process has this Unix time in seconds.
    pub(super) fn sent(&mut self, keys: &mut Keys, request: &Request<'_>, unix: u64) -> Option<Proof> {
        let target = &*request.head.target;
        assert!(!target.contains(MARK), "a secret in a URL: {target}");
        let headers = &request.head.headers;
        let fields: String = headers.iter().map(|(name, value)| format!("{name}: {value}\n")).collect();
        let basic = headers.get("authorization").and_then(|field| field.strip_prefix("Basic "));
        let basic = String::from_utf8(basic.map(decode).unwrap_or_default()).expect("UTF-8");
        for part in [&*fields, request.body, &*basic] {
            for (at, _) in part.match_indices(MARK) {
                let rest = &part[at..];
                let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '-').unwrap_or(rest.len());
                let secret = &rest[..end];
                let to = self.secrets.get(secret).unwrap_or_else(|| panic!("an unknown secret {secret}"));
                let is_meant = match to {
                    Addressee::Issuer(port) => request.port == *port,
                    Addressee::Server(issuer, _) if request.port == *issuer => target == "/revoke",
                    Addressee::Server(..) => request.port == SERVER_PORT,
                    Addressee::Local => false,
                };
                assert!(is_meant, "a secret of {to:?} goes to port {} at {target}", request.port);
            }
        }
        let url = format!("http://127.0.0.1:{}{}", request.port, request.path);
        let proof = headers.get("dpop").map(|text| keys.proof(text, &request.head.method, &url, unix));
        if let Some(nonce) = proof.as_ref().and_then(|proof| proof.nonce.as_deref()) {
            assert!(nonce.starts_with(&format!("n{}-", request.port)), "the nonce {nonce} goes to {}", request.port);
        }
        match (request.is_fetch, &proof) {
            (false, _) => self.presented(headers.get("authorization"), proof.as_ref()),
            (true, Some(proof)) => assert!(proof.token.is_none() && request.path == "/token", "a proof at {target}"),
            (true, None) => {}
        }
        proof
    }

    /// A token that is bound to a key has a proof of that key, and no other one has a proof.
    fn presented(&self, authorization: Option<&str>, proof: Option<&Proof>) {
        let Some(authorization) = authorization else { return assert!(proof.is_none(), "a proof without a token") };
        let (scheme, token) = authorization.split_once(' ').expect("a scheme and a token");
        let Some(Addressee::Server(_, key)) = self.secrets.get(token) else { panic!("{authorization} is no token") };
        assert_eq!(scheme, if key.is_some() { "DPoP" } else { "Bearer" }, "the wrong scheme for a token");
        assert_eq!(proof.map(|proof| proof.key), *key, "the proof of another key");
        let hash = proof.and_then(|proof| proof.token.as_deref());
        assert_eq!(hash, key.map(|_| Hash::hash(token.as_bytes())).as_ref().map(|hash| &hash[..]), "another token");
    }

    /// Nothing that is shown contains a secret.
    pub(super) fn shown(&self, value: &impl Debug) {
        let text = format!("{value:?}");
        assert!(!text.contains(MARK), "a secret is shown: {text}");
    }

    /// What was requested never shrinks, and the record has its bounds.
    pub(super) fn saved(&mut self, record: Option<&Record>) {
        let Some(record) = record else { return self.requested.clear() };
        assert!(record.entries.len() <= 4, "a record of {} entries", record.entries.len());
        for entry in &record.entries {
            assert!(entry.requested.iter().count() <= 64);
            let key = (entry.issuer.clone(), entry.client.client_id.clone());
            let before = self.requested.entry(key).or_default();
            assert!(
                entry.requested.contains_all(before),
                "{before} was requested, and the record has {}",
                entry.requested
            );
            before.clone_from(&entry.requested);
        }
    }

    /// Nothing is left of a process that has ended.
    pub(super) fn at_rest(process: &Process) {
        assert!(process.client.is_terminated(), "it does not end: {:?}", process.client.closing());
        assert_eq!(process.client.poll_timeout(), None, "a timer is left");
        assert_eq!(process.open.len(), 0, "exchanges are left");
        assert_eq!(process.listener(), None, "a listener is left");
        assert_eq!(process.pages().count(), 0, "a page is left");
        let unended = process.calls.iter().filter(|(_, ends)| **ends != 1);
        assert_eq!(unended.count(), 0, "calls that did not end once: {:?}", process.calls);
    }

    /// Nothing is held in the store at the end.
    pub(super) fn store_at_rest(store: &Store) {
        assert!(store.is_at_rest(), "a lease is left: {store:?}");
    }
}
