//! Where the response of a request goes, and what else is sent for it: on the duplex connection
//! that brought it, or on the response stream of its POST. Everything that differs between the two
//! for a running request is here.

use super::binding::{Duplex, HttpState};
use super::env::Env;
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
use super::binding::{ResponseStream, StreamKey};

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

#[cfg_attr(not(feature = "http"), expect(unused_variables, reason = "only HTTP has a state of its own"))]
impl ReplyTo {
    /// Returns where the requests are answered whose messages go out on this exchange.
    pub(super) fn on(env: &Env, exchange: ExchangeId) -> Option<Self> {
        let binding = &env.exchanges.get(&exchange)?.binding;
        #[cfg(feature = "http")]
        if let Some(http) = binding.http() {
            return http.stream().map(Self::Stream);
        }
        binding.duplex().map(|_| Self::Duplex(exchange))
    }

    /// Opens the place where a request of this exchange is answered: over HTTP the response stream
    /// of its POST.
    pub(super) fn open(env: &mut Env, http: &mut HttpState, exchange: ExchangeId, version: ProtocolVersion) -> Self {
        #[cfg(feature = "http")]
        if env.http(exchange).is_some() {
            return Self::Stream(http.open_stream(env, exchange, None, version, false));
        }
        #[cfg(not(feature = "http"))]
        let _ = (env, http, version);
        Self::Duplex(exchange)
    }

    /// Returns the session of a request. `None` for an HTTP request without a session.
    pub(super) fn session(self, http: &HttpState) -> Option<SessionRef> {
        match self {
            Self::Duplex(exchange) => Some(SessionRef::Duplex(exchange)),
            #[cfg(feature = "http")]
            Self::Stream(stream) => http.stream(stream)?.session().map(SessionRef::Http),
        }
    }

    pub(super) fn session_mut<'a>(self, env: &'a mut Env, http: &'a mut HttpState) -> Option<&'a mut Session> {
        self.session(http)?.get_mut(env, http)
    }

    /// Returns the running requests that are answered there.
    pub(super) fn running<'a>(self, env: &'a Env, http: &'a HttpState) -> Option<&'a BTreeSet<RequestKey>> {
        match self {
            Self::Duplex(exchange) => Some(env.duplex(exchange)?.running()),
            #[cfg(feature = "http")]
            Self::Stream(stream) => Some(http.stream(stream)?.running()),
        }
    }

    pub(super) fn running_mut<'a>(
        self,
        env: &'a mut Env,
        http: &'a mut HttpState,
    ) -> Option<&'a mut BTreeSet<RequestKey>> {
        match self {
            Self::Duplex(exchange) => Some(env.duplex_mut(exchange)?.running_mut()),
            #[cfg(feature = "http")]
            Self::Stream(stream) => Some(http.stream_mut(stream)?.running_mut()),
        }
    }

    /// Returns where the engine's own requests to the client go.
    pub(super) fn for_questions(self, http: &mut HttpState) -> Self {
        match self {
            Self::Duplex(_) => self,
            #[cfg(feature = "http")]
            Self::Stream(stream) => Self::Stream(http.stream_to_ask_on(stream)),
        }
    }

    /// Sends a notification or a request of the engine.
    pub(super) fn send(self, env: &mut Env, http: &mut HttpState, message: Bytes) {
        match self {
            Self::Duplex(exchange) => env.send(exchange, Outbound::Message(message)),
            #[cfg(feature = "http")]
            Self::Stream(stream) => http.stream_send(env, stream, message),
        }
    }

    /// Returns whether the client has closed its sending side: it cannot be asked.
    pub(super) fn has_left(self, env: &Env) -> bool {
        match self {
            Self::Duplex(exchange) => env.duplex(exchange).is_some_and(Duplex::has_ended),
            #[cfg(feature = "http")]
            Self::Stream(_) => false,
        }
    }

    /// Returns whether a message of this size can be sent now.
    pub(super) fn has_room(self, env: &Env, http: &HttpState, size: usize) -> bool {
        match self {
            Self::Duplex(exchange) => env.has_room(exchange, size),
            #[cfg(feature = "http")]
            Self::Stream(stream) => {
                let carrier = http.stream(stream).and_then(ResponseStream::exchange);
                carrier.is_some_and(|exchange| env.has_room(exchange, size))
            }
        }
    }

    /// Returns whether a message of this size can be sent now, or is kept for a client that resumes
    /// the stream.
    pub(super) fn takes(self, env: &Env, http: &HttpState, size: usize) -> bool {
        self.has_room(env, http, size)
            || match self {
                Self::Duplex(_) => false,
                #[cfg(feature = "http")]
                Self::Stream(stream) => http.stream(stream).is_some_and(ResponseStream::is_kept),
            }
    }
}

impl Server {
    /// Sends the response of a request.
    pub(super) fn reply_to(&mut self, reply_to: ReplyTo, reply: Reply) {
        match reply_to {
            ReplyTo::Duplex(exchange) => self.duplex_reply(exchange, reply),
            #[cfg(feature = "http")]
            ReplyTo::Stream(stream) => self.http.stream_reply(&mut self.env, stream, reply),
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
            ReplyTo::Stream(stream) => self.http.stream_no_reply(&mut self.env, stream),
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

    /// Ends a duplex connection whose client has closed its sending side, once none of its requests
    /// runs.
    pub(super) fn end_if_quiet(&mut self, reply_to: ReplyTo) {
        match reply_to {
            ReplyTo::Duplex(exchange) => {
                let is_quiet = reply_to.running(&self.env, &self.http).is_some_and(BTreeSet::is_empty);
                if is_quiet && self.env.duplex(exchange).is_some_and(Duplex::has_ended) {
                    self.end_duplex(exchange);
                }
            }
            #[cfg(feature = "http")]
            ReplyTo::Stream(_) => {}
        }
    }

    /// Sends pending progress, as far as there is room.
    pub(super) fn send_held(&mut self, reply_to: ReplyTo) {
        let waiting: Vec<RequestKey> = reply_to.running(&self.env, &self.http).into_iter().flatten().copied().collect();
        for key in waiting {
            let Some(held) = self.requests.get(&key).and_then(|running| running.held_size()) else { continue };
            if !reply_to.has_room(&self.env, &self.http, held) {
                return;
            }
            if let Some(held) = self.requests.get_mut(&key).and_then(|running| running.take_held()) {
                reply_to.send(&mut self.env, &mut self.http, held);
            }
        }
    }
}
