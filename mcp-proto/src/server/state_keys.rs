//! The keys that servers share which answer for one another.

use core::fmt;
use hmac_sha256::HMAC;

/// The keys that servers share which answer for one another. Unpredictable, secret, and used for
/// nothing else.
///
/// A new key takes two steps, since servers are not restarted all at once. First every server gets
/// the new key as [`previous`](Self::previous), then every server gets it as
/// [`current`](Self::current), with the old one as `previous`. The old one is needed for as long as
/// something that was made with it is valid: a state for
/// [`state_lifetime`](crate::limits::ServerLimits::state_lifetime).
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
    /// Another key whose states are accepted. A request that began under it goes on under it.
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

    /// Returns the key of the ids of web pages.
    pub(super) fn naming_pages(&self, age: KeyAge) -> [u8; 32] {
        HMAC::mac("elicitation ids", self.sealing(age))
    }
}
