//! Why a command failed: for people, and as an exit code.

use crate::advice::{Hints, of_call, of_connect, of_login};
use crate::exit;
use crate::output::one_line;
use crate::wording;
use mcp_blocking::mcp_proto::error::{AuthError, NegotiationCause, Problem};
use mcp_blocking::{CallError, ConnectError, Object};
use std::process::ExitCode;
use std::{fmt, io};

#[derive(Debug)]
pub(crate) enum Failure {
    /// The arguments of the command, or a file, are wrong.
    Usage(String),
    Connect(Box<ConnectError>),
    /// A call failed: its method, with the name of what was called.
    Call {
        request: String,
        error: Box<CallError>,
    },
    /// A login failed that the user asked for.
    Login(Box<AuthError>),
    /// The user declined.
    Declined,
    /// Standard output, or a file, cannot be written.
    Output(io::Error),
}

impl Failure {
    pub(crate) fn usage(why: impl Into<String>) -> Self {
        Self::Usage(why.into())
    }

    /// Returns what makes a failure of the error of this request.
    pub(crate) fn of(request: impl Into<String>) -> impl FnOnce(CallError) -> Self {
        |error| Self::Call { request: request.into(), error: Box::new(error) }
    }

    /// Returns whether the reader of the output has gone: it has what it needs.
    pub(crate) fn is_broken_pipe(&self) -> bool {
        matches!(self, Self::Output(e) if e.kind() == io::ErrorKind::BrokenPipe)
    }

    pub(crate) fn code(&self) -> ExitCode {
        ExitCode::from(self.exit_code())
    }

    /// Returns the failure for a program: the shape is part of the help.
    pub(crate) fn to_json(&self, advice: Vec<String>) -> Object {
        let kind = match (self, self.exit_code()) {
            (Self::Output(_), _) => "output",
            (_, exit::USAGE) => "usage",
            (_, exit::NO_CONNECTION) => "connection",
            (_, exit::TIMEOUT) => "timeout",
            (_, exit::DECLINED) => "declined",
            (_, exit::LIMIT) => "limit",
            (_, exit::LOGIN) => "login",
            _ => "server",
        };
        let (request, rpc, status) = match self {
            Self::Call { request, error } => {
                let (rpc, status) = wording::codes(error);
                (Some(request), rpc, status)
            }
            Self::Connect(error) => {
                let (rpc, status) = wording::cause(error).map_or((None, None), wording::cause_codes);
                (None, rpc, status)
            }
            _ => (None, None, None),
        };
        Object::new()
            .with("kind", kind)
            .with("message", self.to_string())
            .with("advice", advice)
            .with("exitCode", i64::from(self.exit_code()))
            .with_opt("request", request)
            .with_opt("code", rpc)
            .with_opt("httpStatus", status.map(i64::from))
    }

    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            _ if self.is_broken_pipe() => 0,
            _ if self.is_limit() => exit::LIMIT,
            _ if self.login().is_some() => self.login().map_or(exit::LOGIN, login_code),
            Self::Call { error, .. } => match &**error {
                CallError::Timeout { .. } => exit::TIMEOUT,
                CallError::Closed { .. } | CallError::Negotiation(_) => exit::NO_CONNECTION,
                _ => exit::FAULT,
            },
            Self::Output(_) => exit::FAULT,
            Self::Login(_) => exit::LOGIN,
            Self::Usage(_) => exit::USAGE,
            Self::Connect(error) => match wording::cause(error) {
                Some(NegotiationCause::Timeout(_) | NegotiationCause::StartTimeout(_)) => exit::TIMEOUT,
                _ => exit::NO_CONNECTION,
            },
            Self::Declined => exit::DECLINED,
        }
    }

    /// Returns whether the server sent more than this command accepts.
    pub(crate) fn is_limit(&self) -> bool {
        match self {
            Self::Connect(error) => wording::is_connect_limit(error),
            Self::Call { error, .. } => wording::is_call_limit(error),
            _ => false,
        }
    }

    /// Returns why a login failed, or was not there, if that is the reason.
    pub(crate) fn login(&self) -> Option<&AuthError> {
        match self {
            Self::Login(error) => Some(error),
            Self::Connect(error) => wording::connect_login(error),
            Self::Call { error, .. } => error.unauthorized(),
            _ => None,
        }
    }

    /// Returns what a user can do about it, a line each.
    pub(crate) fn advice(&self, hints: &Hints) -> Vec<String> {
        if let Some(error) = self.login() {
            return of_login(error, hints);
        }
        match self {
            Self::Connect(error) if wording::is_connect_limit(error) => vec![hints.of_limit()],
            Self::Call { error, .. } if wording::is_call_too_large(error) => vec![hints.of_limit()],
            Self::Connect(error) => of_connect(error, hints),
            Self::Call { error, .. } => of_call(error, hints),
            _ => Vec::new(),
        }
    }
}

/// Returns whether the user declined at the page (RFC 6749 section 4.1.2.1).
pub(crate) fn is_declined(problem: &Problem) -> bool {
    problem.error.as_deref() == Some("access_denied")
}

/// Returns the exit code of a login that failed.
fn login_code(error: &AuthError) -> u8 {
    match error {
        AuthError::Declined => exit::DECLINED,
        AuthError::Authorization(problem) if is_declined(problem) => exit::DECLINED,
        // It can be tried again as it is.
        AuthError::Unavailable(_) | AuthError::Busy => exit::NO_CONNECTION,
        _ => exit::LOGIN,
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(why) => f.write_str(why),
            Self::Connect(error) => write!(f, "cannot connect: {}", wording::connect_error(error)),
            Self::Call { request, error } => write!(f, "{}: {}", one_line(request), wording::call_error(error)),
            Self::Login(error) => write!(f, "cannot log in: {error}"),
            Self::Declined => f.write_str("declined: nothing was started"),
            Self::Output(e) => e.fmt(f),
        }
    }
}

impl From<ConnectError> for Failure {
    fn from(error: ConnectError) -> Self {
        Self::Connect(Box::new(error))
    }
}

impl From<io::Error> for Failure {
    fn from(e: io::Error) -> Self {
        Self::Output(e)
    }
}
