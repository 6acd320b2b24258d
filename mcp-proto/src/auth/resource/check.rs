//! What a verifier decides about, and what it wants for that.

use super::{Access, AccessDenial};
use crate::auth::{Alg, PublicKey, StepId};
use crate::exchange::RequestHead;
use crate::fetch::FetchRequest;
use crate::peer_text::Visible;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use bytes::Bytes;
use core::fmt;

/// A signature to verify. Its `Debug` shows neither what is signed nor the signature, which
/// together may be a token.
#[derive(Clone, PartialEq)]
pub struct Verification {
    /// The algorithm. It fits the key.
    pub alg: Alg,
    /// The key.
    pub key: PublicKey,
    /// What is signed.
    pub input: Bytes,
    /// The signature, as RFC 7518 section 3 defines it.
    pub signature: Bytes,
}

impl fmt::Debug for Verification {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Verification").field("alg", &self.alg).field("key", &self.key).finish_non_exhaustive()
    }
}

/// An output of a [`Verifier`](super::Verifier).
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum VerifierOutput {
    /// Make this HTTP request. Answer with [`fetched`](super::Verifier::fetched).
    Fetch(StepId, Box<FetchRequest>),
    /// Verify this signature, outside any lock. Answer with
    /// [`verified`](super::Verifier::verified).
    Verify(StepId, Box<Verification>),
    /// The decision on a request.
    Decided(CheckId, Result<Arc<Access>, AccessDenial>),
    /// What happened, for a log.
    Report(VerifierReport),
}

/// What happened at a verifier, for a log: why it cannot find out whether tokens are valid. It
/// reports the same at most once in 30 s. Its `Display` has
/// [escapes](crate::error#text-of-a-peer).
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum VerifierReport {
    /// The keys of this issuer, or the URL of its introspection, could not be fetched, and why.
    NoKeys(String, String),
    /// This issuer could not be asked about a token, and why.
    NoIntrospection(String, String),
    /// Signatures cannot be verified, and why.
    NoCryptography(String),
}

impl fmt::Display for VerifierReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoKeys(issuer, why) => write!(f, "no keys of {}: {}", Visible(issuer), Visible(why)),
            Self::NoIntrospection(issuer, why) => {
                write!(f, "{} could not be asked about a token: {}", Visible(issuer), Visible(why))
            }
            Self::NoCryptography(why) => write!(f, "signatures cannot be verified: {}", Visible(why)),
        }
    }
}

/// Identifies a request that a verifier decides about. The caller chooses it, and uses it for one
/// request at a time: for an admission, the number of its key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CheckId(pub u64);

/// The request that a verifier decides about.
#[derive(Clone, Copy, Debug)]
pub struct Check<'a> {
    /// What identifies it in the decision.
    pub id: CheckId,
    /// Its head.
    pub head: &'a RequestHead,
}
