//! What a verifier has begun, and not ended.

use super::expiring::Digest;
use super::jwt::Grant;
use super::proof::Proof;
use super::{Access, CheckId};
use crate::auth::{Alg, Secret, StepId};
use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use bytes::Bytes;
use core::fmt;

/// What a step is for.
#[derive(Debug)]
pub(super) enum Step {
    /// The signature of this token.
    Signature(Digest),
    /// The question to an issuer about this token.
    Question(usize, Digest),
    /// The metadata or the keys of an issuer.
    Source(usize),
    /// The proof of this request.
    Proof(CheckId),
}

/// A token that is being verified.
#[derive(Debug)]
pub(super) struct PendingToken {
    pub(super) issuer: usize,
    pub(super) stage: Stage,
    /// The requests that wait for it.
    pub(super) checks: Vec<CheckId>,
}

#[derive(Debug)]
pub(super) enum Stage {
    /// It waits for the keys of its issuer.
    Keys(Box<SignedToken>),
    /// Its signature is being verified.
    Signature(Grant),
    /// It waits for the metadata of its issuer, or for a place among the open questions.
    Queue(Secret),
    /// Its issuer is being asked.
    Question,
}

/// A JSON Web Token whose claims are acceptable.
pub(super) struct SignedToken {
    pub(super) alg: Alg,
    pub(super) kid: Option<String>,
    pub(super) input: Bytes,
    pub(super) signature: Bytes,
    pub(super) grant: Grant,
}

impl fmt::Debug for SignedToken {
    /// Shows nothing of the token itself.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SignedToken").field("grant", &self.grant).finish_non_exhaustive()
    }
}

/// A request that waits for a decision.
#[derive(Debug)]
pub(super) enum WaitingRequest {
    /// For this token.
    Token(Digest, Option<Box<Proof>>),
    /// For this step, which verifies its proof.
    Proof(StepId, Box<Proof>, Arc<Access>),
}
