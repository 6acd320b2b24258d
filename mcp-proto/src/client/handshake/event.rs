//! The events of a handshake, and what follows one.

use crate::error::{HttpError, NegotiationCause, NegotiationError};
use crate::exchange::{Closed, Sent};
use crate::rpc::{DecodeError, ErrorObject, Payload};
use alloc::boxed::Box;
use alloc::string::String;

/// An event of the pending handshake: of the probe (`server/discover`), or of `initialize`. Its
/// request is retired, except after `Idless`, `Timeout`, `StartTimeout` and `Resumed`, and after
/// the end of a duplex exchange.
#[derive(Debug)]
pub(in crate::client) enum HandshakeEvent {
    /// The response to the probe.
    Discovered(Payload),
    /// The response to `initialize`.
    Initialized(Payload),
    /// An error response without an id.
    Idless(ErrorObject),
    /// The response is unreadable.
    Invalid(DecodeError),
    /// A message hook denied the request, or the response.
    Denied(String),
    /// The server refused the request over HTTP, without a response.
    Refused {
        /// Whether the refusal is typical of a server of the other era.
        tells_of_era: bool,
        /// The error of the refusal.
        error: Box<HttpError>,
    },
    /// The exchange ended, or the output of a duplex server. With `Sent::No`, the exchange was not
    /// open, or the server has not seen the request.
    Closed(Sent, Closed),
    /// HTTP+SSE: there is no `endpoint` event, so the client could not send the request.
    NoEndpoint(Box<NegotiationCause>),
    /// The limit for the response is over.
    Timeout,
    /// The limit for the whole start is over.
    StartTimeout,
    /// The request was sent again, with credentials.
    Resumed,
    /// WebSocket: the server demanded credentials for the connection, and the application has given
    /// them.
    Reopen,
}

/// What follows an event of the handshake for the rest of the client.
#[derive(Debug)]
#[must_use]
pub(in crate::client) enum Next {
    /// Nothing.
    Wait,
    /// The negotiation succeeded: the session begins.
    Ready,
    /// The server has opened no new session. The next call tries again, and the others end.
    Lapsed(NegotiationError),
    /// The negotiation failed, and the client ends.
    Failed(NegotiationError),
}
