//! Where logins are kept.

use crate::sync::{Mutex, lock};
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use core::fmt;
use mcp_proto::auth::{Purpose, Record, SaveFault, StoreFault, StoreKey, Stored, Version};

/// Keeps the logins of a program, each as one [`Record`]. Its functions may block: a client calls
/// them on a thread for that. A keychain is an implementation of the application.
pub trait TokenStore: Send + Sync {
    /// Returns the record with its version: [`Version::ABSENT`] if there is none.
    ///
    /// # Errors
    /// [`StoreFault`]: the login then stays in memory.
    fn load(&self, key: &StoreKey) -> Result<Stored, StoreFault>;

    /// Replaces the record as a whole if it still has the expected version. `None` removes it.
    /// Returns the new version. The comparison and the change are one step, for other processes as
    /// well.
    ///
    /// # Errors
    /// [`SaveFault::Conflict`] with the record that is there, if it has another version. Nothing
    /// has changed then.
    fn save(&self, key: &StoreKey, expected: Version, record: Option<&Record>) -> Result<Version, SaveFault>;

    /// Takes a lease of the record, and does not wait. `None`: it is held already. Dropping the
    /// returned value releases it, and so does the death of the process.
    ///
    /// # Errors
    /// [`StoreFault`]: the login then goes on without a lease.
    fn lease(&self, key: &StoreKey, purpose: Purpose) -> Result<Option<Box<dyn Send>>, StoreFault>;
}

impl<T: TokenStore + ?Sized> TokenStore for Arc<T> {
    fn load(&self, key: &StoreKey) -> Result<Stored, StoreFault> {
        T::load(self, key)
    }

    fn save(&self, key: &StoreKey, expected: Version, record: Option<&Record>) -> Result<Version, SaveFault> {
        T::save(self, key, expected, record)
    }

    fn lease(&self, key: &StoreKey, purpose: Purpose) -> Result<Option<Box<dyn Send>>, StoreFault> {
        T::lease(self, key, purpose)
    }
}

/// A store in the memory of this process. Its clones share their records. Its `Debug` shows none of
/// them.
#[derive(Clone, Default)]
pub struct MemoryStore(Arc<Mutex<Memory>>);

#[derive(Default)]
struct Memory {
    records: BTreeMap<StoreKey, Stored>,
    /// Versions of changes, so that a record that returns to an earlier content has another one.
    last: u64,
    leases: BTreeSet<(StoreKey, Purpose)>,
}

/// A lease that is held.
struct MemoryLease {
    store: MemoryStore,
    of: (StoreKey, Purpose),
}

impl MemoryStore {
    /// Creates an empty store.
    pub fn new() -> Self {
        Self::default()
    }
}

impl TokenStore for MemoryStore {
    fn load(&self, key: &StoreKey) -> Result<Stored, StoreFault> {
        Ok(lock(&self.0).records.get(key).cloned().unwrap_or_default())
    }

    fn save(&self, key: &StoreKey, expected: Version, record: Option<&Record>) -> Result<Version, SaveFault> {
        let mut memory = lock(&self.0);
        let found = memory.records.get(key);
        if found.map_or(Version::ABSENT, |found| found.version) != expected {
            return Err(SaveFault::Conflict(found.cloned().unwrap_or_default()));
        }
        let Some(record) = record else {
            memory.records.remove(key);
            return Ok(Version::ABSENT);
        };
        memory.last += 1;
        let version = Version(memory.last);
        memory.records.insert(key.clone(), Stored { record: Some(Box::new(record.clone())), version });
        Ok(version)
    }

    fn lease(&self, key: &StoreKey, purpose: Purpose) -> Result<Option<Box<dyn Send>>, StoreFault> {
        let of = (key.clone(), purpose);
        if !lock(&self.0).leases.insert(of.clone()) {
            return Ok(None);
        }
        Ok(Some(Box::new(MemoryLease { store: self.clone(), of })))
    }
}

impl Drop for MemoryLease {
    fn drop(&mut self) {
        lock(&self.store.0).leases.remove(&self.of);
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore").field("records", &lock(&self.0).records.len()).finish_non_exhaustive()
    }
}

#[cfg(all(test, not(shuttle)))]
pub(super) mod tests {
    use super::*;
    use alloc::vec::Vec;
    use mcp_proto::auth::{AuthMethod, ClientSource, Entry, RegisteredClient, Scopes};

    pub(in crate::login) fn key(account: &str) -> StoreKey {
        StoreKey { server: "https://server.example/mcp".into(), account: account.into() }
    }

    /// A record that differs from those with other issuers.
    pub(in crate::login) fn record(issuer: &str) -> Record {
        let client = RegisteredClient {
            client_id: "id".into(),
            client_secret: Some("canary".into()),
            secret_expires: None,
            method: AuthMethod::Basic,
            redirect_uri: Some("http://127.0.0.1:4242/callback".into()),
            scopes: Scopes::parse("a b"),
            source: ClientSource::Dynamic,
        };
        let (issuer, resource) = (issuer.into(), "https://server.example/mcp".into());
        let mut record = Record::default();
        record.entries.push(Entry { issuer, resource, client, requested: Scopes::parse("a"), tokens: None });
        record
    }

    /// Checks what every store has to do. `other` has the same records, in another process or as
    /// if.
    pub(in crate::login) fn check_store(store: &dyn TokenStore, other: &dyn TokenStore) {
        let (one, two) = (record("https://one.example"), record("https://two.example"));
        assert_eq!(store.load(&key("")), Ok(Stored::default()));
        let first = store.save(&key(""), Version::ABSENT, Some(&one)).expect("saved");
        let stored = Stored { record: Some(Box::new(one.clone())), version: first };
        assert_ne!(first, Version::ABSENT);
        assert_eq!(other.load(&key("")), Ok(stored.clone()));
        assert_eq!(other.load(&key("another")), Ok(Stored::default()));
        for stale in [Version::ABSENT, Version(12)] {
            assert_eq!(other.save(&key(""), stale, Some(&two)), Err(SaveFault::Conflict(stored.clone())));
            assert_eq!(other.save(&key(""), stale, None), Err(SaveFault::Conflict(stored.clone())));
        }
        assert_eq!(store.load(&key("")), Ok(stored));
        let second = other.save(&key(""), first, Some(&two)).expect("saved");
        let newer = Stored { record: Some(Box::new(two)), version: second };
        assert_eq!(store.save(&key(""), first, None), Err(SaveFault::Conflict(newer)));
        assert_eq!(store.save(&key(""), second, None), Ok(Version::ABSENT));
        assert_eq!(other.load(&key("")), Ok(Stored::default()));
        assert_eq!(other.save(&key(""), second, Some(&one)), Err(SaveFault::Conflict(Stored::default())));
        assert_eq!(store.save(&key(""), Version::ABSENT, None), Ok(Version::ABSENT), "there is nothing to remove");
    }

    /// Checks the leases of a store. `other` has the same records.
    pub(in crate::login) fn check_leases(store: &dyn TokenStore, other: &dyn TokenStore) {
        let of = [("", Purpose::Login), ("", Purpose::Change), ("another", Purpose::Login)];
        let take = |store: &dyn TokenStore, (account, purpose)| store.lease(&key(account), purpose).expect("no fault");
        let held: Vec<_> = of.iter().map(|of| take(store, *of).expect("free")).collect();
        assert!(of.iter().all(|of| take(store, *of).is_none() && take(other, *of).is_none()));
        drop(held);
        assert!(of.iter().all(|of| take(other, *of).is_some()));
    }

    /// Several threads that add an entry each, as long as they have to.
    pub(in crate::login) fn check_race(stores: &[&(dyn TokenStore + Sync)]) {
        std::thread::scope(|scope| {
            for (number, store) in stores.iter().enumerate() {
                scope.spawn(move || {
                    let own = record(&alloc::format!("https://{number}.example")).entries.remove(0);
                    let mut stored = store.load(&key("race")).expect("loaded");
                    loop {
                        let mut record = stored.record.map(|record| *record).unwrap_or_default();
                        record.entries.push(own.clone());
                        match store.save(&key("race"), stored.version, Some(&record)) {
                            Ok(_) => return,
                            Err(SaveFault::Conflict(newer)) => stored = newer,
                            Err(SaveFault::Fault(why)) => panic!("{why}"),
                        }
                    }
                });
            }
        });
        let all = stores[0].load(&key("race")).expect("loaded").record.expect("a record");
        assert_eq!(all.entries.len(), stores.len(), "each is kept");
    }

    // covers: B-243
    #[test]
    fn record_in_memory_is_replaced_if_it_has_the_expected_version() {
        let store = MemoryStore::new();
        check_store(&store, &store.clone());
        let other: Arc<dyn TokenStore> = Arc::new(store.clone());
        check_store(&other, &store);
        check_race(&[&store, &store, &store, &store]);
    }

    #[test]
    fn lease_in_memory_is_held_once_and_released_by_drop() {
        let store = MemoryStore::new();
        check_leases(&store, &store.clone());
    }

    // covers: AUTHS-C-017
    #[test]
    fn store_in_memory_shows_no_secret() {
        let store = MemoryStore::new();
        store.save(&key(""), Version::ABSENT, Some(&record("https://one.example"))).expect("saved");
        assert_eq!(alloc::format!("{store:?}"), "MemoryStore { records: 1, .. }");
    }
}
