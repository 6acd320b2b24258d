//! Events that a link reports to its client. No event names a status, a header field or a stream:
//! the link has interpreted them.

use crate::client::handshake::HandshakeEvent;
use crate::client::ids::Purpose;
use crate::error::{CallError, HttpError, StreamEnd};
use crate::exchange::{Closed, ExchangeId, Sent};
use crate::input::{AuthKey, CallId, Challenge, NotificationId};
use crate::rpc::{ErrorObject, Id, InvalidMessage, Message};
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

/// An event of a link, for its client.
#[derive(Debug)]
pub(in crate::client) enum LinkEvent {
    /// The server sent a message.
    Message(ExchangeId, Message),
    /// The server sent bytes that are no message.
    Invalid(ExchangeId, InvalidMessage),
    /// The server refused the request of an exchange with this error, which need not name the
    /// request.
    Refused(ExchangeId, Id, Purpose, ErrorObject),
    /// The driver refused to write a request: a message hook denied it.
    RequestDenied(ExchangeId, Id, String),
    /// The driver refused to write a notification.
    NotificationDenied(String),
    /// Duplex: the driver reported its unwritten bytes.
    Written {
        /// Number of bytes that were written.
        written: u64,
        /// Number of bytes that were written or wait to be written.
        with_unsent: u64,
    },
    /// Duplex: the server sends no more messages.
    OutputEnded,
    /// Duplex: the exchange ended. With `Sent::No`, it was never open, so the server has seen no
    /// message.
    Failed(Sent, Closed),
    /// The request of a call may have run, whatever the response to a later request is.
    Reached(CallId),
    /// The request of a call ended without a response.
    CallEnded {
        /// The call.
        call: CallId,
        /// Its request, which is not retired.
        id: Id,
        /// Whether the response was lost, and the client may repeat the call in this revision.
        is_lost: bool,
        /// The end of the call, if it is not repeated.
        error: CallError,
    },
    /// The request of the handshake, which is retired, ended without a response.
    Handshake(HandshakeEvent),
    /// A ping, which is retired, ended without a response.
    PingLost,
    /// A message hook denied a ping, which is not retired.
    PingDenied(Id, String),
    /// A subscription, whose request is retired, ended.
    SubscriptionEnded(Id, SubscriptionEnd),
    /// The server named the delay before the client may subscribe again.
    SubscriptionRetry(Duration),
    /// The delivery of a tracked notification ended.
    NotificationEnded(NotificationId, Result<(), CallError>),
    /// The server refused a request because its session has ended.
    SessionLost(Box<SessionLoss>),
    /// HTTP+SSE: the server has opened a session at another endpoint on the same stream.
    SessionReplaced,
    /// HTTP+SSE: the client gave up the stream, for this time.
    StreamLost(StreamEnd, Option<Duration>),
    /// Calls no longer wait for the listener.
    Released,
    /// The client may have missed changes.
    ChangesMissed,
    /// The server refused the listener in a way that the end of the session may explain.
    SessionDoubted,
    /// An exchange waits for credentials. The challenge is present if the client must report it to
    /// the application. Its calls are those that wait.
    Parked(ParkedKind, Option<(AuthKey, Challenge, Vec<CallId>)>),
    /// The client sent a parked request again.
    Resumed(Purpose),
    /// The application answered a challenge, or nothing needs the answer any more. Every exchange
    /// that waited for it was sent or has ended.
    Authorized,
}

/// The kind of message that waits for credentials.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::client) enum ParkedKind {
    /// A request of the client.
    Request(Purpose),
    /// A response to a request of the server.
    Response,
    /// The listener.
    Listener,
    /// A message that neither the client nor the application waits for.
    Other,
}

/// How the subscription ended.
#[derive(Debug)]
pub(in crate::client) enum SubscriptionEnd {
    /// The client may subscribe again.
    Ended(StreamEnd),
    /// The server does not offer subscriptions.
    Refused(StreamEnd),
    /// A message hook denied it, or a user its login.
    Denied(String),
}

/// The message that the server refused because it does not know the session.
#[derive(Debug)]
pub(in crate::client) struct SessionLoss {
    /// The refused request. `None` for a notification or a response.
    pub(in crate::client) request: Option<(Id, Purpose)>,
    /// The refused notification, if it is tracked.
    pub(in crate::client) notification: Option<NotificationId>,
    /// The refusal.
    pub(in crate::client) error: HttpError,
}

/// The message of an exchange that the client discarded with its session.
#[derive(Debug)]
pub(in crate::client) enum DiscardedMessage {
    /// A request of a call.
    Call {
        /// The call.
        call: CallId,
        /// Its request.
        id: Id,
        /// Whether the request was certainly not processed: it waited for credentials or for a
        /// connection.
        unsent: bool,
    },
    /// A response to a request of the server.
    Response,
    /// Anything else.
    Other,
}
