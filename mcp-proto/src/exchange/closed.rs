//! How a connection or an exchange ended.

use super::{AuthError, ExitStatus, ProxyFailure, TlsFailure, UpgradeRefusal};
use crate::peer_text::Visible;
use alloc::boxed::Box;
use alloc::string::String;
use core::fmt;
use core::time::Duration;

/// How a connection or an exchange ended. Its `Display` has [escapes](crate::error#text-of-a-peer).
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum Closed {
    /// The peer closed it.
    Eof,
    /// It was reset.
    Reset,
    /// No program listens at the address.
    Refused,
    /// The host name has no address.
    Unresolved,
    /// The host has no address within the [`Reach`](super::Reach) of the request, such as one of
    /// the public internet.
    NotPublic,
    /// No route, or the program could not be started. The text is that of the operating system.
    Unreachable(String),
    /// The program exited.
    Exited(ExitStatus),
    /// This side closed it.
    Aborted,
    /// It timed out.
    Timeout,
    /// The peer violated the framing, so that nothing after it can be parsed. The text says how.
    Broken(String),
    /// TLS failed (RFC 8446).
    Tls(TlsFailure),
    /// The forward proxy did not pass on the connection or the request.
    Proxy(ProxyFailure),
    /// It never began, since a [`MessageHook`](crate::hook::MessageHook) refused its message for
    /// this reason.
    Denied(String),
    /// The peer closed a WebSocket (RFC 6455 section 7.4).
    WebSocket {
        /// The code, if it sent one.
        code: Option<u16>,
        /// The reason, for people. Often empty.
        reason: String,
    },
    /// The server answered the handshake of a WebSocket with another HTTP response.
    NotUpgraded(Box<UpgradeRefusal>),
    /// The request has no credentials that the server accepts: a [login](crate::auth) failed.
    Unauthorized(Box<AuthError>),
}

impl Closed {
    /// Returns the time for which the server asked not to be tried again.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::NotUpgraded(response) => response.retry_after,
            _ => None,
        }
    }

    /// Returns whether another attempt of the client's own would end in the same way: a hook or a
    /// user refused it.
    pub(crate) fn is_refusal(&self) -> bool {
        match self {
            Self::Denied(_) => true,
            Self::Unauthorized(why) => !why.is_transient(),
            _ => false,
        }
    }
}

impl fmt::Display for Closed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Eof => f.write_str("the peer closed the connection"),
            Self::Reset => f.write_str("the connection was reset"),
            Self::Refused => f.write_str("the connection was refused"),
            Self::Unresolved => f.write_str("the host name has no address"),
            Self::NotPublic => f.write_str("the host has no address that the request may reach"),
            Self::Unreachable(why) => write!(f, "unreachable: {}", Visible(why)),
            Self::Exited(status) => status.fmt(f),
            Self::Aborted => f.write_str("this side closed the connection"),
            Self::Timeout => f.write_str("the connection timed out"),
            Self::Broken(how) => write!(f, "the framing is broken: {}", Visible(how)),
            Self::Tls(failure) => failure.fmt(f),
            Self::Proxy(failure) => failure.fmt(f),
            Self::Denied(reason) => write!(f, "refused by the message hook: {}", Visible(reason)),
            Self::WebSocket { code, reason } => {
                f.write_str("the peer closed the websocket")?;
                if let Some(code) = code {
                    write!(f, " with code {code}")?;
                }
                if reason.is_empty() { Ok(()) } else { write!(f, ": {}", Visible(reason)) }
            }
            Self::NotUpgraded(response) => response.fmt(f),
            Self::Unauthorized(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for Closed {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Unauthorized(error) => Some(&**error),
            _ => None,
        }
    }
}
