//! Keys and tokens: one type each, for all kinds of subjects.

use super::{Admission, Challenge, InputRequest};
use core::cmp::Ordering;
use core::fmt;
use core::hash::{Hash, Hasher};
use core::marker::PhantomData;

/// Identifies a subject of the kind `K` within one engine, which never reuses a key.
pub struct Key<K>(u64, PhantomData<fn() -> K>);

/// The right to decide on one subject of the kind `K`, once.
#[must_use = "without a decision, the engine waits for it until a time limit"]
pub struct Token<K>(Key<K>);

/// A kind of subject that keys identify.
pub trait KeyKind {
    /// The name of the kind. `Debug` of keys and tokens shows it.
    const NAME: &'static str;
}

/// Identifies a request that a server runs. It is not the id on the wire.
pub type RequestKey = Key<RunningRequest>;
/// Identifies a session of a legacy HTTP client. It is not the id on the wire.
pub type SessionKey = Key<HttpSession>;
/// Identifies a request for input.
pub type InputKey = Key<InputRequest>;
/// The right to answer one request for input, once.
pub type InputToken = Token<InputRequest>;
/// Identifies a challenge that waits for credentials.
pub type AuthKey = Key<Challenge>;
/// The right to respond to one challenge, once.
pub type AuthToken = Token<Challenge>;
/// Identifies an HTTP request or a connection that waits for admission.
pub type AdmitKey = Key<Admission>;

/// The kind of [`RequestKey`]s. It has no values.
#[derive(Debug)]
pub enum RunningRequest {}

/// The kind of [`SessionKey`]s. It has no values.
#[derive(Debug)]
pub enum HttpSession {}

impl KeyKind for RunningRequest {
    const NAME: &'static str = "Request";
}

impl KeyKind for HttpSession {
    const NAME: &'static str = "Session";
}

impl KeyKind for InputRequest {
    const NAME: &'static str = "Input";
}

impl KeyKind for Challenge {
    const NAME: &'static str = "Auth";
}

impl KeyKind for Admission {
    const NAME: &'static str = "Admit";
}

impl<K> Key<K> {
    /// Creates the key with this number. Only an engine creates keys that identify something; other
    /// code needs this to read keys that it has stored.
    pub const fn new(number: u64) -> Self {
        Self(number, PhantomData)
    }

    /// Returns the number.
    pub const fn number(self) -> u64 {
        self.0
    }
}

impl<K> Token<K> {
    pub(crate) const fn new(key: Key<K>) -> Self {
        Self(key)
    }

    /// Returns the key that identifies the subject in an [`Input`](super::Input).
    pub const fn key(&self) -> Key<K> {
        self.0
    }
}

// A derive would demand each trait of `K`, too.

impl<K> Clone for Key<K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K> Copy for Key<K> {}

impl<K> PartialEq for Key<K> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl<K> Eq for Key<K> {}

impl<K> PartialOrd for Key<K> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<K> Ord for Key<K> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.cmp(&other.0)
    }
}

impl<K> Hash for Key<K> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl<K: KeyKind> fmt::Debug for Key<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple(&alloc::format!("{}Key", K::NAME)).field(&self.0).finish()
    }
}

impl<K> PartialEq for Token<K> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl<K> Eq for Token<K> {}

impl<K: KeyKind> fmt::Debug for Token<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple(&alloc::format!("{}Token", K::NAME)).field(&self.0).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;

    #[test]
    fn keys_are_ordered_by_number_and_named_by_kind() {
        assert!(InputKey::new(1) < InputKey::new(2) && InputKey::new(3) == InputKey::new(3));
        assert_eq!(SessionKey::new(7).number(), 7);
        let names = [
            (format!("{:?}", RequestKey::new(1)), "RequestKey(1)"),
            (format!("{:?}", SessionKey::new(1)), "SessionKey(1)"),
            (format!("{:?}", InputToken::new(InputKey::new(1))), "InputToken(InputKey(1))"),
            (format!("{:?}", AuthToken::new(AuthKey::new(1))), "AuthToken(AuthKey(1))"),
            (format!("{:?}", AdmitKey::new(1)), "AdmitKey(1)"),
        ];
        for (shown, name) in names {
            assert_eq!(shown, name);
        }
    }
}
