//! A response on its way to the transports.

use crate::auth::Scopes;
use crate::error::{DiagnosticKind, excerpt};
use crate::rpc::{ErrorObject, code};
use alloc::format;
use alloc::string::String;
use bytes::Bytes;

/// A response, as the transports need it.
pub(super) struct SerializedResponse {
    pub(super) message: Bytes,
    /// The code of an error, which decides the status of a modern HTTP response.
    pub(super) code: Option<i64>,
    /// The batch that it belongs to, on a duplex connection.
    pub(super) batch: Option<u64>,
    /// The scopes that the request needs, if its client lacks one: over HTTP the status says so.
    pub(super) lacks: Option<Scopes>,
}

impl SerializedResponse {
    pub(super) const fn new(message: Bytes, code: Option<i64>) -> Self {
        Self { message, code, batch: None, lacks: None }
    }
}

/// The error response of a request.
#[derive(Debug)]
pub(super) struct ErrorReply {
    pub(super) error: ErrorObject,
    pub(super) kind: DiagnosticKind,
    /// The HTTP status, if the code does not decide it.
    pub(super) status: Option<u16>,
}

impl ErrorReply {
    pub(super) fn new(kind: DiagnosticKind, code: i64, message: impl Into<String>) -> Self {
        Self { error: ErrorObject::new(code, message), kind, status: None }
    }

    /// The response with this error.
    pub(super) const fn of(kind: DiagnosticKind, error: ErrorObject) -> Self {
        Self { error, kind, status: None }
    }

    pub(super) fn params(message: impl Into<String>) -> Self {
        Self::new(DiagnosticKind::BadParams, code::INVALID_PARAMS, message)
    }

    /// The error for missing or malformed metadata, which has its own status over HTTP.
    pub(super) fn metadata(message: impl Into<String>) -> Self {
        Self { status: Some(400), ..Self::params(message) }
    }

    /// The error for a request above a limit.
    pub(super) fn full(why: &str) -> Self {
        Self { status: Some(503), ..Self::new(DiagnosticKind::TooManyRequests, code::INTERNAL_ERROR, why) }
    }

    pub(super) fn method(method: &str) -> Self {
        let message = format!("Method not found: {}", excerpt(method));
        Self::new(DiagnosticKind::UnknownMethod, code::METHOD_NOT_FOUND, message)
    }
}
