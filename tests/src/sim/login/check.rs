//! The invariants of logins.

use super::issuer::Addressee;
use super::process::Process;
use super::store::Store;
use super::world::SERVER_PORT;
use mcp_proto::auth::{Record, Scopes};
use mcp_proto::exchange::{Origin, RequestHead};
use std::collections::BTreeMap;
use std::fmt::Debug;

/// The marker of every secret of this world.
pub(super) const MARK: &str = "canary-";

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

    /// A request carries a secret only to its addressee.
    pub(super) fn sent(&self, origin: &Origin, head: &RequestHead, body: &str) {
        assert!(!head.target.contains(MARK), "a secret in a URL: {}", head.target);
        let fields: String = head.headers.iter().map(|(name, value)| format!("{name}: {value}\n")).collect();
        for part in [fields.as_str(), body] {
            for (at, _) in part.match_indices(MARK) {
                let rest = &part[at..];
                let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '-').unwrap_or(rest.len());
                let secret = &rest[..end];
                let to = self.secrets.get(secret).unwrap_or_else(|| panic!("an unknown secret {secret}"));
                let is_meant = match to {
                    Addressee::Issuer(port) => origin.port == *port,
                    Addressee::Server(issuer) if origin.port == *issuer => &*head.target == "/revoke",
                    Addressee::Server(_) => origin.port == SERVER_PORT,
                };
                assert!(is_meant, "a secret of {to:?} goes to port {} at {}", origin.port, head.target);
            }
        }
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
        assert_eq!(process.listener, None, "a listener is left");
        assert_eq!(process.pages.len(), 0, "a page is left");
        let unended = process.calls.iter().filter(|(_, ends)| **ends != 1);
        assert_eq!(unended.count(), 0, "calls that did not end once: {:?}", process.calls);
    }

    /// Nothing is held in the store at the end.
    pub(super) fn store_at_rest(store: &Store) {
        assert!(store.is_at_rest(), "a lease is left: {store:?}");
    }
}
