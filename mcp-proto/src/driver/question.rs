//! What a callback of the application decides: the answer to a question of the server, or to a challenge. Both in one form, so that a driver
//! has one way to run them.

use crate::client::Event;
use crate::input::{AuthKey, AuthToken, Authorization, Challenge, InputAnswer, InputKey, InputRequest, InputToken};
use crate::time::Instant;
use crate::wired::WiredClient;

/// What is asked.
#[derive(Clone, PartialEq, Debug)]
pub enum Question {
    /// A question of the server.
    Input(InputRequest),
    /// A challenge of the server.
    Challenge(Challenge),
}

/// What the application says to it.
#[derive(Clone, PartialEq, Debug)]
pub enum Reply {
    /// To a question.
    Input(InputAnswer),
    /// To a challenge.
    Authorization(Authorization),
}

/// The right to reply, once.
#[derive(PartialEq, Debug)]
#[must_use]
pub enum ReplyToken {
    /// To a question.
    Input(InputToken),
    /// To a challenge.
    Authorization(AuthToken),
}

/// Names a [`ReplyToken`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum ReplyKey {
    /// To a question.
    Input(InputKey),
    /// To a challenge.
    Authorization(AuthKey),
}

impl Question {
    /// What the event asks.
    ///
    /// # Errors
    /// The event, if it asks nothing.
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
    /// Its name.
    pub const fn key(&self) -> ReplyKey {
        match self {
            Self::Input(token) => ReplyKey::Input(token.key()),
            Self::Authorization(token) => ReplyKey::Authorization(token.key()),
        }
    }

    /// Hands the reply to the engine; `None`, or one of the other kind: nothing can be replied, for the reason `why`.
    pub fn reply(self, engine: &mut WiredClient, now: Instant, reply: Option<Reply>, why: &str) {
        match (self, reply) {
            (Self::Input(token), Some(Reply::Input(answer))) => engine.answer(now, token, answer),
            (Self::Input(token), _) => engine.answer(now, token, InputAnswer::internal(why)),
            (Self::Authorization(token), Some(Reply::Authorization(with))) => engine.authorize(now, token, with),
            (Self::Authorization(token), _) => engine.authorize(now, token, Authorization::Refuse),
        }
    }
}
