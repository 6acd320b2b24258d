//! Which calls run a second time, and which errors of a call end the connection of its server.

use super::{CallKind, Cause, RetryTool};
use mcp_proto::client::Termination;
use mcp_proto::error::CallError;
use mcp_proto::exchange::{Closed, Sent};
use mcp_proto::model::tools::Tool;

/// What the error of a call tells about the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Told {
    /// Nothing. The server has answered, or the application has ended the call.
    Nothing,
    /// The connection ended before the response. The server may have run the call.
    Lost,
    /// The client could not reach the server: it has no connection any more.
    Unreachable,
}

impl Told {
    /// Returns what an error tells. `is_closing` is whether the supervisor has closed the client,
    /// which ends all its calls.
    pub(super) fn by(error: &CallError, is_closing: bool) -> Self {
        match error {
            CallError::Closed { why: Closed::Denied(_), .. } => Self::Nothing,
            // The application has closed the client itself.
            CallError::Closed { why: Closed::Aborted, .. } if !is_closing => Self::Nothing,
            CallError::Closed { sent: Sent::No, .. } | CallError::Negotiation(_) => Self::Unreachable,
            // Another request would come before the time that the server has asked for.
            CallError::NoResponse { cause, .. } if cause.retry_after().is_some_and(|after| !after.is_zero()) => {
                Self::Nothing
            }
            CallError::Closed { .. } | CallError::NoResponse { .. } | CallError::SessionEnded => Self::Lost,
            _ => Self::Nothing,
        }
    }

    /// Returns whether the connection of the server is lost. `is_exclusive` is whether the client
    /// had only that one.
    pub(super) const fn ends_connection(self, is_exclusive: bool) -> bool {
        match self {
            Self::Nothing => false,
            Self::Lost => is_exclusive,
            Self::Unreachable => true,
        }
    }

    /// Returns whether a call may run again after this.
    pub(super) fn allows(self, kind: &CallKind, retry: RetryTool, tools: &[Tool]) -> bool {
        let is_safe = || match kind {
            CallKind::Read => true,
            CallKind::Tool(name) => tools.iter().find(|tool| tool.name == *name).is_some_and(has_no_second_effect),
            CallKind::Other => false,
        };
        match (self, kind, retry) {
            (Self::Nothing, _, _) | (_, CallKind::Tool(_), RetryTool::Never) => false,
            (Self::Unreachable, _, _) | (_, CallKind::Tool(_), RetryTool::Always) => true,
            (Self::Lost, _, _) => is_safe(),
        }
    }
}

/// Returns why a server is lost whose call has ended with this error. If its client is exclusive,
/// the one connection has ended, and the client with it.
pub(super) fn loss(error: &CallError, is_exclusive: bool) -> Cause {
    match error {
        CallError::Closed { why, .. } if is_exclusive => Cause::Ended(Termination::Closed(why.clone())),
        error => Cause::Unreachable(error.clone()),
    }
}

/// Returns whether a second call of the tool has no effect, as its server declares.
fn has_no_second_effect(tool: &Tool) -> bool {
    tool.annotations.read_only == Some(true) || tool.annotations.idempotent == Some(true)
}
