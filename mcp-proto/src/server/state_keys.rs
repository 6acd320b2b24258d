//! The keys that servers share which answer for one another.

use alloc::string::String;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use core::fmt;
use hmac_sha256::HMAC;

/// The random bytes of the id of a session, and those of its proof.
const RANDOM: usize = 18;
const PROOF: usize = 6;

/// The keys that servers share which answer for one another. Unpredictable, secret, and used for
/// nothing else.
///
/// A new key takes two steps, since servers are not restarted all at once. First every server gets
/// the new key as [`previous`](Self::previous), then every server gets it as
/// [`current`](Self::current), with the old one as `previous`. The old one is needed for as long as
/// something that was made with it is valid: a state for
/// [`state_lifetime`](crate::limits::ServerLimits::state_lifetime), and with a
/// [store](crate::server::store) a task for
/// [`max_task_ttl`](crate::limits::ServerLimits::max_task_ttl). Drop it after the longer of the
/// two. A session in a store has no such time while it is in use: one that began before the
/// exchange then gets 404, and its client begins a new one.
///
/// ```
/// use mcp_proto::server::{ServerConfig, StateKeys};
/// use mcp_proto::Router;
///
/// let (new, old) = ([1; 32], [2; 32]); // from a secret store
/// let router = Router::new("calc", "1.0").configure(|config| {
///     config.state_keys = Some(StateKeys { current: new, previous: Some(old) });
/// });
/// # drop(router);
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct StateKeys {
    /// The key for everything new.
    pub current: [u8; 32],
    /// Another key, whose states, sessions and tasks are accepted. A request that began under it
    /// goes on under it.
    pub previous: Option<[u8; 32]>,
}

impl From<[u8; 32]> for StateKeys {
    fn from(current: [u8; 32]) -> Self {
        Self { current, previous: None }
    }
}

impl fmt::Debug for StateKeys {
    /// Never shows a key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StateKeys").field("previous", &self.previous.is_some()).finish_non_exhaustive()
    }
}

/// Which of the [`StateKeys`] a request uses, in all its rounds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum KeyAge {
    Current,
    Previous,
}

impl StateKeys {
    /// Returns the key that seals states.
    pub(super) fn sealing(&self, age: KeyAge) -> &[u8; 32] {
        match age {
            KeyAge::Current => &self.current,
            KeyAge::Previous => self.previous.as_ref().unwrap_or(&self.current),
        }
    }

    /// Returns the id of a session that servers share, from random bytes. It has a proof that a
    /// server with these keys has made it.
    pub(super) fn session_id(&self, random: &[u8; RANDOM]) -> String {
        let mut id = [0; RANDOM + PROOF];
        id[..RANDOM].copy_from_slice(random);
        id[RANDOM..].copy_from_slice(&self.proof(KeyAge::Current, random));
        URL_SAFE_NO_PAD.encode(id)
    }

    /// Returns whether a server with one of these keys has made the id of a session.
    pub(super) fn has_made_session(&self, id: &str) -> bool {
        self.made_session(id).is_some()
    }

    /// Returns the random bytes of the id of a session, if a server with one of these keys has made
    /// it.
    pub(super) fn made_session(&self, id: &str) -> Option<[u8; RANDOM]> {
        let bytes = URL_SAFE_NO_PAD.decode(id).ok().filter(|bytes| bytes.len() == RANDOM + PROOF)?;
        let (random, proof) = bytes.split_at(RANDOM);
        // All bytes are compared, so that the time tells nothing.
        let is_of = |age| self.proof(age, random).iter().zip(proof).fold(0, |all, (a, b)| all | (a ^ b)) == 0;
        let is_made = is_of(KeyAge::Current) || self.previous.is_some() && is_of(KeyAge::Previous);
        random.try_into().ok().filter(|_| is_made)
    }

    fn proof(&self, age: KeyAge, random: &[u8]) -> [u8; PROOF] {
        let [a, b, c, d, e, f, ..] = HMAC::mac(random, HMAC::mac("session ids", self.sealing(age)));
        [a, b, c, d, e, f]
    }

    /// Returns the key of the ids of web pages.
    pub(super) fn naming_pages(&self, age: KeyAge) -> [u8; 32] {
        HMAC::mac("elicitation ids", self.sealing(age))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn session_id_is_accepted_under_both_keys_and_no_other() {
        let keys = |current: u8, previous: Option<u8>| StateKeys {
            current: [current; 32],
            previous: previous.map(|previous| [previous; 32]),
        };
        let id = keys(1, None).session_id(&[7; RANDOM]);
        assert_eq!(id.len(), 32);
        for (known, good) in [(keys(1, None), true), (keys(2, Some(1)), true), (keys(1, Some(2)), true)] {
            assert_eq!(known.has_made_session(&id), good);
        }
        assert!(!keys(2, None).has_made_session(&id) && !keys(2, Some(3)).has_made_session(&id));
        for at in 0..id.len() {
            let mut other = id.clone().into_bytes();
            other[at] = if other[at] == b'A' { b'B' } else { b'A' };
            assert!(!keys(1, None).has_made_session(core::str::from_utf8(&other).unwrap()), "byte {at}");
        }
        for other in ["", "AA", &id[..31], &alloc::format!("{id}A"), "!"] {
            assert!(!keys(1, None).has_made_session(other), "{other}");
        }
    }
}
