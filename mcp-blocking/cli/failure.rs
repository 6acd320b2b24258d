//! Why a command failed: for people, and as an exit code.

use mcp_blocking::mcp_proto::error::{HttpError, NegotiationCause};
use mcp_blocking::mcp_proto::exchange::Closed;
use mcp_blocking::{CallError, ConnectError};
use std::process::ExitCode;
use std::{fmt, io};

/// The exit code without a connection.
pub(crate) const NO_CONNECTION: u8 = 3;

#[derive(Debug)]
pub(crate) enum Failure {
    /// The arguments of the command, or a file, are wrong.
    Usage(String),
    Connect(Box<ConnectError>),
    Call(Box<CallError>),
    /// The user declined.
    Declined,
    /// Standard output, or a file, cannot be written.
    Output(io::Error),
}

impl Failure {
    pub(crate) fn usage(why: impl Into<String>) -> Self {
        Self::Usage(why.into())
    }

    /// Returns whether the reader of the output has gone: it has what it needs.
    pub(crate) fn is_broken_pipe(&self) -> bool {
        matches!(self, Self::Output(e) if e.kind() == io::ErrorKind::BrokenPipe)
    }

    pub(crate) fn code(&self) -> ExitCode {
        ExitCode::from(match self {
            _ if self.is_broken_pipe() => 0,
            Self::Call(error) => match **error {
                CallError::Timeout { .. } => 4,
                CallError::Closed { .. } | CallError::Negotiation(_) => NO_CONNECTION,
                _ => 1,
            },
            Self::Output(_) => 1,
            Self::Usage(_) => 2,
            Self::Connect(error) => match cause(error) {
                Some(NegotiationCause::Timeout(_) | NegotiationCause::StartTimeout(_)) => 4,
                _ => NO_CONNECTION,
            },
            Self::Declined => 5,
        })
    }

    /// Returns what a user can do about it.
    pub(crate) fn advice(&self) -> Vec<String> {
        let http = match self {
            Self::Connect(error) => match cause(error) {
                Some(NegotiationCause::Http(http)) => Some(&**http),
                _ => return cause(error).map(of_cause).unwrap_or_default(),
            },
            Self::Call(error) => match &**error {
                CallError::Http(http) => Some(&**http),
                _ => None,
            },
            _ => None,
        };
        http.map(of_status).unwrap_or_default()
    }
}

fn cause(error: &ConnectError) -> Option<&NegotiationCause> {
    match error {
        ConnectError::Negotiation(error) => Some(&error.cause),
        _ => None,
    }
}

fn of_status(http: &HttpError) -> Vec<String> {
    let mut advice = Vec::new();
    match http.status {
        401 | 403 => {
            advice.push("the server requires credentials: --header 'Authorization: Bearer TOKEN'".to_owned());
        }
        404 | 405 => advice.push("no MCP server at this path: it often ends with /mcp or /sse".to_owned()),
        407 => advice.push("the proxy requires credentials: HTTPS_PROXY=http://user:password@host:port".to_owned()),
        _ => {}
    }
    advice
}

fn of_cause(cause: &NegotiationCause) -> Vec<String> {
    let advice = match cause {
        NegotiationCause::Closed(Closed::Refused) => "nothing listens there: is the server running?",
        NegotiationCause::Closed(Closed::Unresolved) => "is the name of the host right?",
        NegotiationCause::Closed(Closed::Tls(_)) => {
            "the certificate must be valid for this host, and issued by an authority that this system trusts"
        }
        NegotiationCause::Closed(Closed::Unreachable(_)) => "is the command installed, and in PATH?",
        NegotiationCause::Closed(Closed::Exited(_)) => "does the command need other arguments or variables?",
        NegotiationCause::Timeout(_) | NegotiationCause::StartTimeout(_) => {
            "the server does not answer; `mcp doctor` tries older revisions and other transports"
        }
        NegotiationCause::NoMutualVersion(_) => "leave out --revision",
        _ => return Vec::new(),
    };
    vec![advice.to_owned()]
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(why) => f.write_str(why),
            Self::Connect(error) => write!(f, "cannot connect: {error}"),
            Self::Call(error) => error.fmt(f),
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

impl From<CallError> for Failure {
    fn from(error: CallError) -> Self {
        Self::Call(Box::new(error))
    }
}

impl From<io::Error> for Failure {
    fn from(e: io::Error) -> Self {
        Self::Output(e)
    }
}
