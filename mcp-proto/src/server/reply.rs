//! Where the response of a request goes, and what else is sent for it: on the duplex connection
//! that brought it, or on the response stream of its POST. Everything that differs between the two
//! for a running request is here.

use super::session::{Session, SessionRef};
use super::{ExchangeId, Server};
use crate::exchange::Outbound;
use crate::input::RequestKey;
use crate::version::ProtocolVersion;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use bytes::Bytes;
use core::time::Duration;

#[cfg(feature = "http")]
use super::binding::StreamKey;

/// Where the response of a request goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ReplyTo {
    /// A duplex connection.
    Duplex(ExchangeId),
    /// The response stream of an HTTP POST. A legacy one can outlive the exchange that brought it.
    #[cfg(feature = "http")]
    Stream(StreamKey),
}

/// A response, as the transports need it.
pub(super) struct Reply {
    pub(super) message: Bytes,
    /// The code of an error, which decides the status of a modern HTTP response.
    #[cfg_attr(not(feature = "http"), expect(dead_code, reason = "only HTTP has a status"))]
    pub(super) code: Option<i64>,
    /// The batch that it belongs to, on a duplex connection.
    pub(super) batch: Option<u64>,
}

impl Server {
    /// Returns where the requests are answered whose messages go out on this exchange.
    pub(super) fn reply_to_on(&self, exchange: ExchangeId) -> Option<ReplyTo> {
        let binding = &self.env.exchanges.get(&exchange)?.binding;
        #[cfg(feature = "http")]
        if let Some(http) = binding.http() {
            return http.stream().map(ReplyTo::Stream);
        }
        binding.duplex().map(|_| ReplyTo::Duplex(exchange))
    }

    /// Opens the place where a request of this exchange is answered: over HTTP the response stream
    /// of its POST.
    pub(super) fn open_reply(&mut self, exchange: ExchangeId, version: ProtocolVersion) -> ReplyTo {
        #[cfg(feature = "http")]
        if self.env.exchanges.get(&exchange).is_some_and(|exchange| exchange.binding.http().is_some()) {
            return ReplyTo::Stream(self.http.open_stream(&mut self.env, exchange, None, version, false));
        }
        #[cfg(not(feature = "http"))]
        let _ = version;
        ReplyTo::Duplex(exchange)
    }

    /// Returns the session that a request belongs to. `None` for an HTTP request without a session.
    pub(super) fn session_ref(&self, reply_to: ReplyTo) -> Option<SessionRef> {
        match reply_to {
            ReplyTo::Duplex(exchange) => Some(SessionRef::Duplex(exchange)),
            #[cfg(feature = "http")]
            ReplyTo::Stream(stream) => self.http.stream(stream)?.session().map(SessionRef::Http),
        }
    }

    pub(super) fn session_at(&mut self, reply_to: ReplyTo) -> Option<&mut Session> {
        let session_ref = self.session_ref(reply_to)?;
        self.session_mut(session_ref)
    }

    /// Returns the running requests that are answered there.
    pub(super) fn running_at(&self, reply_to: ReplyTo) -> Option<&BTreeSet<RequestKey>> {
        match reply_to {
            ReplyTo::Duplex(exchange) => Some(self.env.duplex(exchange)?.running()),
            #[cfg(feature = "http")]
            ReplyTo::Stream(stream) => Some(self.http.stream(stream)?.running()),
        }
    }

    pub(super) fn running_at_mut(&mut self, reply_to: ReplyTo) -> Option<&mut BTreeSet<RequestKey>> {
        match reply_to {
            ReplyTo::Duplex(exchange) => Some(self.env.duplex_mut(exchange)?.running_mut()),
            #[cfg(feature = "http")]
            ReplyTo::Stream(stream) => Some(self.http.stream_mut(stream)?.running_mut()),
        }
    }

    /// Returns where the engine's own requests to the client go for a request.
    pub(super) fn ask_on(&mut self, reply_to: ReplyTo) -> ReplyTo {
        match reply_to {
            ReplyTo::Duplex(_) => reply_to,
            #[cfg(feature = "http")]
            ReplyTo::Stream(stream) => ReplyTo::Stream(self.http.stream_to_ask_on(stream)),
        }
    }

    /// Sends the response of a request.
    pub(super) fn reply_to(&mut self, reply_to: ReplyTo, reply: Reply) {
        match reply_to {
            ReplyTo::Duplex(exchange) => self.duplex_reply(exchange, reply),
            #[cfg(feature = "http")]
            ReplyTo::Stream(stream) => self.stream_reply(stream, reply),
        }
    }

    /// A request ends without a response.
    pub(super) fn no_reply_to(&mut self, reply_to: ReplyTo, batch: Option<u64>) {
        match reply_to {
            ReplyTo::Duplex(exchange) => {
                if let Some(batch) = batch {
                    self.end_in_batch(exchange, batch, None);
                }
            }
            #[cfg(feature = "http")]
            ReplyTo::Stream(stream) => self.stream_no_reply(stream),
        }
    }

    /// Sends a notification or a request of the engine.
    pub(super) fn send_to(&mut self, reply_to: ReplyTo, message: Bytes) {
        match reply_to {
            ReplyTo::Duplex(exchange) => self.env.send(exchange, Outbound::Message(message)),
            #[cfg(feature = "http")]
            ReplyTo::Stream(stream) => self.http.stream_send(&mut self.env, stream, message),
        }
    }

    /// Closes the exchange of a response stream, so that the client resumes it later. Returns
    /// whether that is possible.
    #[cfg(feature = "http")]
    pub(super) fn close_for_resumption(&mut self, reply_to: ReplyTo, retry: Option<Duration>) -> bool {
        match reply_to {
            ReplyTo::Duplex(_) => false,
            ReplyTo::Stream(stream) => self.close_stream(stream, retry),
        }
    }

    #[cfg(not(feature = "http"))]
    pub(super) const fn close_for_resumption(&mut self, _: ReplyTo, _: Option<Duration>) -> bool {
        false
    }

    /// Returns whether the client of a request cannot be asked: it has closed its sending side.
    pub(super) fn has_left(&self, reply_to: ReplyTo) -> bool {
        match reply_to {
            ReplyTo::Duplex(exchange) => self.has_ended(exchange),
            #[cfg(feature = "http")]
            ReplyTo::Stream(_) => false,
        }
    }

    /// Ends a duplex connection whose client has closed its sending side, once none of its requests
    /// runs.
    pub(super) fn end_if_quiet(&mut self, reply_to: ReplyTo) {
        match reply_to {
            ReplyTo::Duplex(exchange) => {
                let is_quiet = self.running_at(reply_to).is_some_and(BTreeSet::is_empty);
                if is_quiet && self.has_ended(exchange) {
                    self.end_duplex(exchange);
                }
            }
            #[cfg(feature = "http")]
            ReplyTo::Stream(_) => {}
        }
    }

    /// Returns whether a message of this size can be sent now.
    pub(super) fn has_room(&self, reply_to: ReplyTo, size: usize) -> bool {
        let carrier = match reply_to {
            ReplyTo::Duplex(exchange) => Some(exchange),
            #[cfg(feature = "http")]
            ReplyTo::Stream(stream) => self.http.stream(stream).and_then(|stream| stream.exchange()),
        };
        carrier.is_some_and(|exchange| self.env.has_room(exchange, size))
    }

    /// Returns whether a message of this size can be sent now, or is kept for a client that resumes
    /// the stream.
    pub(super) fn takes(&self, reply_to: ReplyTo, size: usize) -> bool {
        self.has_room(reply_to, size)
            || match reply_to {
                ReplyTo::Duplex(_) => false,
                #[cfg(feature = "http")]
                ReplyTo::Stream(stream) => self.http.stream(stream).is_some_and(|stream| stream.is_kept()),
            }
    }

    /// Sends pending progress, as far as there is room.
    pub(super) fn send_held(&mut self, reply_to: ReplyTo) {
        let waiting: Vec<RequestKey> = self.running_at(reply_to).into_iter().flatten().copied().collect();
        for key in waiting {
            let Some(held) = self.requests.get(&key).and_then(|running| running.held_size()) else { continue };
            if !self.has_room(reply_to, held) {
                return;
            }
            if let Some(held) = self.requests.get_mut(&key).and_then(|running| running.take_held()) {
                self.send_to(reply_to, held);
            }
        }
    }
}
