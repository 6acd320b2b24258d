//! What the lease of a change is good for: clients whose store is slow share a login with it, and
//! lose the login without it.

use std::thread;
use std::time::Duration;

use mcp_driver::{FileStore, TokenStore};
use mcp_proto::auth::{Purpose, Record, SaveFault, StoreFault, StoreKey, Stored, Version};

use super::servers::{BRIEF, BRIEFLY, Servers};
use super::steps::{calling, equal, open};
use super::user::User;

/// Number of clients that share the store.
const CLIENTS: usize = 4;
/// How long the store takes to save: all clients want to renew the tokens meanwhile.
const SLOW: Duration = Duration::from_millis(400);

/// A store that takes its time.
struct SlowStore {
    store: FileStore,
    /// A lease of a change keeps others out.
    leases: bool,
}

impl TokenStore for SlowStore {
    fn load(&self, key: &StoreKey) -> Result<Stored, StoreFault> {
        self.store.load(key)
    }

    fn save(&self, key: &StoreKey, expected: Version, record: Option<&Record>) -> Result<Version, SaveFault> {
        thread::sleep(SLOW);
        self.store.save(key, expected, record)
    }

    fn lease(&self, key: &StoreKey, purpose: Purpose) -> Result<Option<Box<dyn Send>>, StoreFault> {
        match purpose {
            Purpose::Change if !self.leases => Ok(Some(Box::new(()))),
            _ => self.store.lease(key, purpose),
        }
    }
}

/// With leases each refresh token is used once. Without them one is used twice, and the
/// authorization server refuses all tokens of the login.
pub(super) fn without(servers: &Servers, user: &User) -> Result<String, String> {
    open(user, &servers.url(BRIEF))?.close()?;
    servers.events()?;
    share(servers, user, true)?;
    let events = servers.events()?;
    equal(&(events.refusals(), events.refreshes() > 0), (0, true))?;
    let why = share(servers, user, false).err().ok_or("no client loses the login")?;
    let refusals = servers.events()?.refusals();
    equal(&(refusals > 0), true)?;
    Ok(format!("{refusals} refused without leases: {}", why.lines().next().unwrap_or_default()))
}

/// Lets clients call across the expiry of a token.
fn share(servers: &Servers, user: &User, leases: bool) -> Result<(), String> {
    let url = servers.url(BRIEF);
    let calls = || {
        let store = SlowStore { store: FileStore::at(user.store()), leases };
        let client = user.connect(&url, |login| login.store(store).not_interactive()).map_err(|why| why.to_string())?;
        calling(&client, BRIEFLY * 2)?;
        client.close().map(drop)
    };
    thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS).map(|_| scope.spawn(calls)).collect();
        let ends: Vec<Result<(), String>> =
            clients.into_iter().map(|client| client.join().map_err(|_| "a client panicked".to_owned())?).collect();
        ends.into_iter().collect()
    })
}
