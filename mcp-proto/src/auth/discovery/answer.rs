//! What a request for a document came to.

use super::super::metadata::NO_OBJECT;
use crate::exchange::Closed;
use crate::fetch::{FetchError, FetchResponse};
use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use bytes::Bytes;

/// A document.
#[derive(Clone, Debug)]
pub(super) struct Document {
    /// The URL that it came from, after redirects.
    pub(super) url: String,
    pub(super) body: Bytes,
}

/// Why a document is not used.
#[derive(Clone, Debug)]
pub(super) struct Fault {
    pub(super) kind: FaultKind,
    pub(super) status: Option<u16>,
    pub(super) why: String,
}

/// What a fault says of a later attempt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum FaultKind {
    /// There is no such document.
    Absent,
    /// The document cannot be used.
    Unusable,
    /// It may be there later.
    Unavailable,
}

impl Fault {
    /// The URL was not asked.
    pub(super) fn not_asked(why: impl Into<String>) -> Self {
        Self { kind: FaultKind::Unusable, status: None, why: why.into() }
    }

    /// The document has another content.
    pub(super) fn content(why: impl Into<String>) -> Self {
        let why = why.into();
        // A site may answer every path with a page.
        let kind = if why == NO_OBJECT { FaultKind::Absent } else { FaultKind::Unusable };
        Self { kind, status: Some(200), why }
    }
}

/// Classifies the end of a request.
///
/// # Errors
/// [`Fault`] if it has no document.
pub(super) fn document(outcome: &Result<Box<FetchResponse>, FetchError>) -> Result<Document, Fault> {
    match outcome {
        Ok(response) if response.status == 200 => {
            Ok(Document { url: response.url.clone(), body: response.body.clone() })
        }
        Ok(response) => {
            let kind = match response.status {
                // The server is busy, which tells nothing of the document.
                408 | 429 | 500..=599 => FaultKind::Unavailable,
                400..=499 => FaultKind::Absent,
                _ => FaultKind::Unusable,
            };
            let status = format!("HTTP {}", response.status);
            let why = response.redirect.map_or(status, |refusal| refusal.to_string());
            Err(Fault { kind, status: Some(response.status), why })
        }
        Err(why) => {
            let kind = match why {
                FetchError::TooLong | FetchError::Closed { why: Closed::NotPublic | Closed::Denied(_), .. } => {
                    FaultKind::Unusable
                }
                FetchError::Closed { .. } | FetchError::Timeout(_) | FetchError::Refused(_) => FaultKind::Unavailable,
            };
            Err(Fault { kind, status: None, why: why.to_string() })
        }
    }
}
