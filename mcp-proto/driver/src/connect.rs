//! Errors of connecting a client.

use alloc::string::String;
use core::fmt;
use mcp_proto::client::Termination;
use mcp_proto::error::NegotiationError;
use mcp_proto::exchange::Closed;
use mcp_proto::peer_text::Visible;

/// A client could not connect. Nothing is left open, unless a time limit was reached
/// ([`NegotiationCause::is_timeout`](mcp_proto::error::NegotiationCause::is_timeout)): the error
/// does not wait for a program that still has to be ended. Its `Display` has
/// [escapes](mcp_proto::error#text-of-a-peer).
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum ConnectError {
    /// The URL is not that of a server.
    Url(mcp_proto::client::BadUrl),
    /// The command contains something that is not Unicode.
    Command(mcp_proto::process::NotUnicode),
    /// Negotiation failed. The error has the step, the cause and the time.
    ///
    /// The client starts a program that exited during the probe a second time, and `first` says how
    /// the first process ended. To start it only once, set
    /// [`ClientConfig::policy`](mcp_proto::ClientConfig::policy) to
    /// [`Policy::Legacy`](mcp_proto::client::Policy::Legacy), provide the
    /// [`verdict`](mcp_proto::ClientConfig::verdict) of an earlier client, or turn
    /// [`restart_after_probe`](mcp_proto::ClientConfig::restart_after_probe) off.
    Negotiation(NegotiationError),
    /// The connection ended.
    Closed(Closed),
    /// The operating system provided no random bytes, or no pipe to a server in this process. The
    /// text is that of the system.
    System(String),
    /// The operating system could not start a thread. The text is that of the system.
    Thread(String),
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url(e) => e.fmt(f),
            Self::Command(e) => e.fmt(f),
            Self::Negotiation(e) if e.first.is_some() => {
                write!(f, "{e} (it is started once with Policy::Legacy, a verdict, or restart_after_probe = false)")
            }
            Self::Negotiation(e) => e.fmt(f),
            Self::Closed(why) => why.fmt(f),
            Self::System(why) => {
                write!(f, "the system does not provide what a connection needs: {}", Visible(why))
            }
            Self::Thread(why) => write!(f, "no thread can be started: {}", Visible(why)),
        }
    }
}

impl core::error::Error for ConnectError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Url(e) => Some(e),
            Self::Command(e) => Some(e),
            Self::Negotiation(e) => Some(e),
            Self::Closed(why) => Some(why),
            Self::System(_) | Self::Thread(_) => None,
        }
    }
}

impl From<Termination> for ConnectError {
    fn from(why: Termination) -> Self {
        match why {
            Termination::Negotiation(e) => Self::Negotiation(e),
            Termination::Closed(why) => Self::Closed(why),
            Termination::Requested => Self::Closed(Closed::Aborted),
        }
    }
}

/// Returns why a connection could not be opened. `what` is the address, path or command of the
/// attempt.
pub fn not_opened(what: &dyn fmt::Display, e: &std::io::Error) -> Closed {
    match e.kind() {
        std::io::ErrorKind::ConnectionRefused => Closed::Refused,
        std::io::ErrorKind::TimedOut => Closed::Timeout,
        _ => Closed::Unreachable(alloc::format!("{what}: {e}")),
    }
}

/// Returns the error of a server that cannot listen at `what`, an address or a path. It has the
/// kind of `e`.
pub fn not_bound(what: &dyn fmt::Display, e: &std::io::Error) -> std::io::Error {
    std::io::Error::new(e.kind(), alloc::format!("cannot listen at {what}: {e}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::boxed::Box;
    use alloc::string::ToString;
    use core::error::Error;
    use core::time::Duration;
    use mcp_proto::error::{HttpError, NegotiationCause, Stage, StartFailure};
    use mcp_proto::exchange::ExitStatus;
    use std::io::{self, ErrorKind};

    #[test]
    fn system_error_names_the_attempt() {
        assert_eq!(not_opened(&"a", &ErrorKind::ConnectionRefused.into()), Closed::Refused);
        assert_eq!(not_opened(&"a", &ErrorKind::TimedOut.into()), Closed::Timeout);
        let missing = not_opened(&"my-server", &io::Error::new(ErrorKind::NotFound, "no such file"));
        assert_eq!(missing, Closed::Unreachable("my-server: no such file".into()));
    }

    #[test]
    fn termination_becomes_the_connect_error() {
        let closed = ConnectError::from(Termination::Closed(Closed::Reset));
        assert_eq!(closed, ConnectError::Closed(Closed::Reset));
        assert_eq!(closed.source().map(ToString::to_string), Some(Closed::Reset.to_string()));
        assert_eq!(ConnectError::from(Termination::Requested), ConnectError::Closed(Closed::Aborted));
        assert!(ConnectError::Thread("none".into()).source().is_none());
    }

    #[test]
    fn error_of_a_second_start_names_the_switches() {
        let exited = Closed::Exited(ExitStatus::exited(1));
        let cause = NegotiationCause::Closed(exited.clone());
        let first = Some(Box::new(StartFailure { stage: Stage::Discover, why: exited }));
        let e = NegotiationError {
            stage: Stage::Initialize,
            cause,
            after: Duration::from_millis(7),
            first,
            earlier: Vec::new(),
        };
        let text = ConnectError::Negotiation(e).to_string();
        let twice =
            "initialize failed after 7 ms: started twice: exit 1 after server/discover, exit 1 after initialize";
        assert!(text.starts_with(twice), "{text}");
        for switch in ["Policy::Legacy", "verdict", "restart_after_probe"] {
            assert!(text[twice.len()..].contains(switch), "{text}");
        }
    }

    // covers: S2-44
    #[test]
    fn control_characters_become_escapes() {
        let text = || String::from("a\u{1b}[2J\nb");
        let cause = NegotiationCause::Denied(text());
        let e = NegotiationError {
            stage: Stage::Initialize,
            cause,
            after: Duration::from_millis(7),
            first: None,
            earlier: Vec::new(),
        };
        for error in [
            ConnectError::Negotiation(e),
            ConnectError::Closed(Closed::Broken(text())),
            ConnectError::System(text()),
            ConnectError::Thread(text()),
        ] {
            let shown = error.to_string();
            assert!(shown.contains(r"a\u{1b}[2J\nb") && !shown.contains('\n'), "{shown}");
        }
    }

    #[test]
    fn cause_has_its_own_type_in_the_chain_of_sources() {
        let cause = NegotiationCause::Http(Box::new(HttpError::new(500)));
        let (stage, after) = (Stage::Initialize, Duration::ZERO);
        let e = ConnectError::Negotiation(NegotiationError { stage, cause, after, first: None, earlier: Vec::new() });
        let first: &(dyn Error + 'static) = &e;
        let mut chain = core::iter::successors(Some(first), |error| (*error).source());
        assert!(chain.any(|error| error.downcast_ref::<HttpError>() == Some(&HttpError::new(500))));
    }
}
