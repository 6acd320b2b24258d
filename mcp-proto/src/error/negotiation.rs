//! The errors of a negotiation.

use super::{HttpError, StreamEnd};
use crate::exchange::{AuthError, Closed, ExitStatus, LastWords};
use crate::peer_text::{Visible, write_list};
use crate::rpc::{DecodeError, ErrorObject};
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

/// Why negotiation failed. Its `Display` has [escapes](super#text-of-a-peer).
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
pub struct NegotiationError {
    /// The step that failed.
    pub stage: Stage,
    /// The cause.
    pub cause: NegotiationCause,
    /// Time since the start. It does not include the shutdown of the connection, in which a program
    /// has time to exit.
    pub after: Duration,
    /// How the first process ended, if the server was started a second time
    /// ([`ClientConfig::restart_after_probe`](crate::ClientConfig::restart_after_probe)). Then
    /// `cause` is about the second one.
    pub first: Option<Box<StartFailure>>,
    /// What the server refused before, in order. Over HTTP the client tries each era, then
    /// HTTP+SSE. On a duplex connection this has only an `initialize` that was refused after the
    /// probe, if the server was then started a second time.
    pub earlier: Vec<RefusedAttempt>,
}

/// A way to begin that the server refused.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
pub struct RefusedAttempt {
    /// The step that the server refused.
    pub stage: Stage,
    /// How it refused it.
    pub cause: NegotiationCause,
}

/// How a process, or the connection to a Unix socket, ended before negotiation had succeeded.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
pub struct StartFailure {
    /// The step during which it ended.
    pub stage: Stage,
    /// How it ended.
    pub why: Closed,
}

/// The step of a negotiation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
pub enum Stage {
    /// The connection was being opened.
    Connect,
    /// `server/discover` was sent.
    Discover,
    /// `initialize` was sent.
    Initialize,
    /// The stream of HTTP+SSE was opened, and its `endpoint` event awaited.
    Endpoint,
}

/// The cause of a failed negotiation.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum NegotiationCause {
    /// The server responded with an error.
    Rpc(ErrorObject),
    /// The server responded with an HTTP status that does not reveal its era.
    Http(Box<HttpError>),
    /// The response cannot be decoded.
    Decode(DecodeError),
    /// No response arrived within this time.
    Timeout(Duration),
    /// The whole start took longer than
    /// [`ClientConfig::connect_timeout`](crate::ClientConfig::connect_timeout), which is this time.
    StartTimeout(Duration),
    /// The connection ended.
    Closed(Closed),
    /// The server opened no stream of HTTP+SSE, or ended it before the `endpoint` event.
    NoEndpoint(StreamEnd),
    /// The `endpoint` event of HTTP+SSE names no usable URL, for this reason.
    BadEndpoint(String),
    /// The server supports only these revisions. The client supports none of them, or its policy
    /// forbids them.
    NoMutualVersion(Vec<String>),
    /// A [`MessageHook`](crate::hook::MessageHook) refused the request or the response, for this
    /// reason.
    Denied(String),
}

impl NegotiationError {
    /// Returns the time for which the server asked not to be tried again (`Retry-After`, RFC 9110
    /// section 10.2.3), as sent. `None` if it did not, or named a date.
    pub fn retry_after(&self) -> Option<Duration> {
        match &self.cause {
            NegotiationCause::Http(error) => error.retry_after,
            NegotiationCause::Closed(why) => why.retry_after(),
            NegotiationCause::NoEndpoint(end) => end.retry_after(),
            _ => None,
        }
    }
}

impl NegotiationError {
    /// Returns why the client has no credentials that the server accepts, if that is the cause.
    /// Only with [`ClientConfig::auth`](crate::ClientConfig::auth).
    pub fn unauthorized(&self) -> Option<&AuthError> {
        match &self.cause {
            NegotiationCause::Closed(Closed::Unauthorized(error))
            | NegotiationCause::NoEndpoint(StreamEnd::Closed(Closed::Unauthorized(error))) => Some(error),
            _ => None,
        }
    }
}

impl NegotiationCause {
    /// Returns whether a time limit was reached.
    pub const fn is_timeout(&self) -> bool {
        matches!(self, Self::Timeout(_) | Self::StartTimeout(_))
    }
}

impl fmt::Display for NegotiationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} failed after {} ms: ", self.stage, self.after.as_millis())?;
        match (&self.first, &self.cause) {
            (None, cause) => {
                cause.fmt(f)?;
                let mut earlier = self.earlier.iter();
                earlier.try_for_each(|RefusedAttempt { stage, cause }| write!(f, "; before that, {stage}: {cause}"))
            }
            (Some(first), NegotiationCause::Closed(why)) => {
                write!(f, "started twice: {first}, {}", StartFailure { stage: self.stage, why: why.clone() })?;
                last_words(why).or_else(|| last_words(&first.why)).map_or(Ok(()), |words| words.fmt(f))
            }
            (Some(first), cause) => write!(f, "{cause}; started twice: {first}"),
        }
    }
}

fn last_words(why: &Closed) -> Option<LastWords<'_>> {
    match why {
        Closed::Exited(status) => Some(status.last_words()).filter(|words| !words.is_empty()),
        _ => None,
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Connect => "connecting",
            Self::Discover => "server/discover",
            Self::Initialize => "initialize",
            Self::Endpoint => "the `endpoint` event of HTTP+SSE",
        })
    }
}

impl fmt::Display for StartFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.why {
            Closed::Exited(ExitStatus { code: Some(code), .. }) => write!(f, "exit {code}")?,
            Closed::Exited(ExitStatus { signal: Some(signal), .. }) => write!(f, "signal {signal}")?,
            Closed::Exited(_) => f.write_str("exit")?,
            why => why.fmt(f)?,
        }
        write!(f, " after {}", self.stage)
    }
}

impl fmt::Display for NegotiationCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rpc(e) => e.fmt(f),
            Self::Http(e) => e.fmt(f),
            Self::Decode(e) => e.fmt(f),
            Self::Timeout(limit) => write!(f, "no response within {} ms", limit.as_millis()),
            Self::StartTimeout(limit) => write!(f, "the start took longer than {} ms", limit.as_millis()),
            Self::Closed(why) => why.fmt(f),
            Self::NoEndpoint(end) => end.fmt(f),
            Self::BadEndpoint(why) => Visible(why).fmt(f),
            Self::Denied(reason) => write!(f, "refused by the message hook: {}", Visible(reason)),
            Self::NoMutualVersion(theirs) => {
                f.write_str("no mutual protocol version; the server supports ")?;
                write_list(f, theirs.iter().map(String::as_str))
            }
        }
    }
}

impl core::error::Error for NegotiationError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match &self.cause {
            NegotiationCause::Rpc(e) => Some(e),
            NegotiationCause::Http(e) => Some(&**e),
            NegotiationCause::Decode(e) => Some(e),
            NegotiationCause::Closed(why) => Some(why),
            _ => None,
        }
    }
}
