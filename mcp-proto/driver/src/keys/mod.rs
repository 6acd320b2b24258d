//! Signatures of authorization, with the cryptography of rustls: assertions and proofs that a
//! client signs, tokens that a server verifies. The fronts use them. A driver without fronts
//! answers the steps `Sign`, `NewKey` and `Verify` of an engine with them, outside its locks.
//! Without the feature `rustls` each function fails.

#[cfg(feature = "rustls")]
mod der;
#[cfg_attr(not(feature = "rustls"), path = "absent.rs")]
mod library;

#[cfg(all(test, any(feature = "tls", feature = "tls-graviola"), not(shuttle)))]
mod tests;

pub use library::{generate, sign, verify};

/// Whether this build makes keys: the cryptography of an application makes none.
pub(crate) const MAKES_KEYS: bool = cfg!(any(feature = "tls", feature = "tls-graviola"));
