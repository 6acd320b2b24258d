//! Errors without texts of a server, a proxy, the system or an application: what a redacted
//! recording holds of them. Kinds, codes and times remain.

use crate::client::Termination;
use crate::error::{CallError, HttpError, InvalidResult, NegotiationCause, NegotiationError, Refusal, StreamEnd};
use crate::error::{RefusedAttempt, StartFailure};
use crate::exchange::{AuthError, Closed, ExitStatus, ProxyFailure, TlsFailure, UpgradeRefusal};
use crate::rpc::{DecodeError, EncodeError, ErrorObject, Id};
use crate::schema::{BadSchema, Mismatch};
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

/// Returns the reason for the end of a client.
pub fn termination(why: &Termination) -> Termination {
    match why {
        Termination::Requested => Termination::Requested,
        Termination::Negotiation(error) => Termination::Negotiation(negotiation(error)),
        Termination::Closed(why) => Termination::Closed(closed(why)),
    }
}

/// Returns the error of a call.
pub fn call(error: &CallError) -> CallError {
    match error {
        CallError::Timeout { .. }
        | CallError::SessionEnded
        | CallError::NoConsent { .. }
        | CallError::TooManyRounds(_)
        | CallError::TooManyPages(_) => error.clone(),
        CallError::ContentType { status, content_type: _ } => {
            CallError::ContentType { status: *status, content_type: None }
        }
        CallError::Rpc(error) => CallError::Rpc(rpc(error)),
        CallError::Input(error) => CallError::Input(rpc(error)),
        CallError::Cancelled { reason: _ } => CallError::Cancelled { reason: None },
        CallError::Closed { sent, why } => CallError::Closed { sent: *sent, why: closed(why) },
        CallError::NoResponse { id: _, attempts, any_message, cause } => CallError::NoResponse {
            id: Id::Int(0),
            attempts: *attempts,
            any_message: *any_message,
            cause: stream_end(cause),
        },
        CallError::Http(error) => CallError::Http(Box::new(http(error))),
        CallError::Decode(_) => CallError::Decode(DecodeError::new("")),
        CallError::Negotiation(error) => CallError::Negotiation(negotiation(error)),
        CallError::Refused(Refusal::Unencodable(_)) => CallError::Refused(Refusal::Unencodable(EncodeError::new(""))),
        CallError::Refused(why) => CallError::Refused(why.clone()),
        CallError::NotRepeated(_) => CallError::NotRepeated(EncodeError::new("")),
        CallError::InvalidResult(why) => CallError::InvalidResult(match why {
            InvalidResult::Mismatch(_) => InvalidResult::Mismatch(Mismatch::new("", "")),
            InvalidResult::Schema(_) => InvalidResult::Schema(BadSchema::invalid("", "")),
            InvalidResult::NoStructure | InvalidResult::NoContent => why.clone(),
        }),
        CallError::TaskLost { id: _ } => CallError::TaskLost { id: String::new() },
        CallError::Denied { sent, reason: _ } => CallError::Denied { sent: *sent, reason: String::new() },
    }
}

fn negotiation(error: &NegotiationError) -> NegotiationError {
    let attempt = |of: &RefusedAttempt| RefusedAttempt { stage: of.stage, cause: cause(&of.cause) };
    let failure = |of: &StartFailure| StartFailure { stage: of.stage, why: closed(&of.why) };
    NegotiationError {
        stage: error.stage,
        cause: cause(&error.cause),
        after: error.after,
        first: error.first.as_deref().map(|first| Box::new(failure(first))),
        earlier: error.earlier.iter().map(attempt).collect(),
    }
}

fn cause(cause: &NegotiationCause) -> NegotiationCause {
    match cause {
        NegotiationCause::Timeout(_) | NegotiationCause::StartTimeout(_) => cause.clone(),
        NegotiationCause::NoMutualVersion(_) => NegotiationCause::NoMutualVersion(Vec::new()),
        NegotiationCause::Rpc(error) => NegotiationCause::Rpc(rpc(error)),
        NegotiationCause::Http(error) => NegotiationCause::Http(Box::new(http(error))),
        NegotiationCause::Decode(_) => NegotiationCause::Decode(DecodeError::new("")),
        NegotiationCause::Closed(why) => NegotiationCause::Closed(closed(why)),
        NegotiationCause::NoEndpoint(end) => NegotiationCause::NoEndpoint(stream_end(end)),
        NegotiationCause::BadEndpoint(_) => NegotiationCause::BadEndpoint(String::new()),
        NegotiationCause::Denied(_) => NegotiationCause::Denied(String::new()),
    }
}

/// Returns the end of a stream.
pub fn stream_end(end: &StreamEnd) -> StreamEnd {
    match end {
        StreamEnd::Closed(why) => StreamEnd::Closed(closed(why)),
        StreamEnd::Error(error) => StreamEnd::Error(rpc(error)),
        StreamEnd::ContentType(_) => StreamEnd::ContentType(None),
        StreamEnd::Ended | StreamEnd::Status { .. } | StreamEnd::Idle => end.clone(),
    }
}

fn closed(why: &Closed) -> Closed {
    match why {
        Closed::Exited(ExitStatus { code, signal, stderr: _ }) => {
            Closed::Exited(ExitStatus { code: *code, signal: *signal, stderr: String::new() })
        }
        Closed::Denied(_) => Closed::Denied(String::new()),
        Closed::Unreachable(_) => Closed::Unreachable(String::new()),
        Closed::Broken(_) => Closed::Broken(String::new()),
        Closed::Tls(failure) => Closed::Tls(TlsFailure::new(failure.kind, "")),
        Closed::Proxy(failure) => {
            Closed::Proxy(ProxyFailure { status: failure.status, ..ProxyFailure::new(failure.kind, "", "") })
        }
        Closed::WebSocket { code, reason: _ } => Closed::WebSocket { code: *code, reason: String::new() },
        Closed::NotUpgraded(response) => Closed::NotUpgraded(Box::new(UpgradeRefusal {
            redirect: response.redirect,
            retry_after: response.retry_after,
            ..UpgradeRefusal::new(response.status)
        })),
        Closed::Unauthorized(_) => Closed::Unauthorized(Box::new(AuthError::LoginRequired)),
        Closed::Eof
        | Closed::Reset
        | Closed::Refused
        | Closed::Unresolved
        | Closed::NotPublic
        | Closed::Aborted
        | Closed::Timeout => why.clone(),
    }
}

fn http(error: &HttpError) -> HttpError {
    let mut bare = HttpError::new(error.status);
    (bare.redirect, bare.retry_after) = (error.redirect, error.retry_after);
    bare.error = error.error.as_ref().map(rpc);
    bare
}

fn rpc(error: &ErrorObject) -> ErrorObject {
    ErrorObject::new(error.code, "")
}
