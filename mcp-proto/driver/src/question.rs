//! The decisions that an application makes in a callback: the answer to a request of the server,
//! and the response to a challenge. Both have one form, so that a driver has one way to run
//! callbacks.

use mcp_proto::client::Event;
use mcp_proto::input::{AuthKey, AuthToken, Authorization, Challenge, InputAnswer, InputKey, InputRequest, InputToken};

/// A decision that the application has to make.
#[derive(Clone, PartialEq, Debug)]
pub enum Question {
    /// A request of the server for input.
    Input(InputRequest),
    /// A challenge of the server for credentials.
    Challenge(Challenge),
}

/// The decision of the application.
#[derive(Clone, PartialEq, Debug)]
pub enum Reply {
    /// The answer to a request for input.
    Input(InputAnswer),
    /// The response to a challenge.
    Authorization(Authorization),
}

/// The right to reply, once.
#[derive(PartialEq, Debug)]
#[must_use]
pub enum ReplyToken {
    /// For a request for input.
    Input(InputToken),
    /// For a challenge.
    Authorization(AuthToken),
}

/// Identifies a [`ReplyToken`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum ReplyKey {
    /// A request for input.
    Input(InputKey),
    /// A challenge.
    Authorization(AuthKey),
}

impl Question {
    /// Returns the question in an event.
    ///
    /// # Errors
    /// The event, if it contains no question.
    pub fn of(event: Event) -> Result<(ReplyToken, Self), Event> {
        match event {
            Event::InputNeeded { token, request, .. } => Ok((ReplyToken::Input(token), Self::Input(request))),
            Event::AuthNeeded { token, challenge, .. } => {
                Ok((ReplyToken::Authorization(token), Self::Challenge(challenge)))
            }
            other => Err(other),
        }
    }
}

impl ReplyToken {
    /// Returns the key that identifies it.
    pub const fn key(&self) -> ReplyKey {
        match self {
            Self::Input(token) => ReplyKey::Input(token.key()),
            Self::Authorization(token) => ReplyKey::Authorization(token.key()),
        }
    }
}
