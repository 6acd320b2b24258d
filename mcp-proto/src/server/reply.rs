//! The target of the response to a request, and of other messages for the request: the duplex
//! connection on which it arrived, or the response stream of its POST. This module contains every
//! difference between the two for a running request.

use super::ExchangeId;
use super::client::ClientKey;
use super::env::Env;
use super::keys::{ReplyTo, SessionRef};
use super::response::SerializedResponse;
use super::session::Session;
use super::transport::{Duplex, HttpState, ResponseStream};
use crate::error::Refusal;
use crate::exchange::Outbound;
use crate::input::RequestKey;
use crate::model::content::Content;
use crate::short_set::ShortSet;
use crate::version::ProtocolVersion;
use bytes::Bytes;
use core::time::Duration;

impl SessionRef {
    pub(super) fn get<'a>(self, env: &'a Env, http: &'a HttpState) -> Option<&'a Session> {
        match self {
            Self::Duplex(x) => env.duplex(x).map(|duplex| &duplex.session),
            Self::Http(session) => http.http_session(session).map(|session| &session.session),
        }
    }

    /// Returns the client that a session counts for.
    pub(super) fn holder(self, env: &Env, http: &HttpState) -> Option<ClientKey> {
        match self {
            Self::Duplex(x) => env.exchanges.get(&x).map(|exchange| exchange.client),
            Self::Http(session) => http.http_session(session).map(|session| session.opener),
        }
    }

    pub(super) fn get_mut<'a>(self, env: &'a mut Env, http: &'a mut HttpState) -> Option<&'a mut Session> {
        match self {
            Self::Duplex(x) => env.duplex_mut(x).map(|duplex| &mut duplex.session),
            Self::Http(session) => http.http_session_mut(session).map(|session| &mut session.session),
        }
    }
}

impl ReplyTo {
    /// Returns the reply target of the requests whose messages are sent on this exchange.
    pub(super) fn on(env: &Env, exchange: ExchangeId) -> Option<Self> {
        let binding = &env.exchanges.get(&exchange)?.binding;
        if let Some(http) = binding.http() {
            return http.stream().map(Self::Stream);
        }
        binding.duplex().map(|_| Self::Duplex(exchange))
    }

    /// Opens the place where a request of this exchange is answered: over HTTP the response stream
    /// of its POST.
    pub(super) fn open(env: &mut Env, http: &mut HttpState, exchange: ExchangeId, version: ProtocolVersion) -> Self {
        if env.http(exchange).is_some() {
            return Self::Stream(http.open_stream(env, exchange, None, version, false));
        }
        Self::Duplex(exchange)
    }

    /// Returns the session of a request. `None` for an HTTP request without a session.
    pub(super) fn session(self, http: &HttpState) -> Option<SessionRef> {
        match self {
            Self::Duplex(exchange) => Some(SessionRef::Duplex(exchange)),
            Self::Stream(stream) => http.stream(stream)?.session().map(SessionRef::Http),
        }
    }

    pub(super) fn session_mut<'a>(self, env: &'a mut Env, http: &'a mut HttpState) -> Option<&'a mut Session> {
        self.session(http)?.get_mut(env, http)
    }

    /// Returns the running requests that are answered there.
    pub(super) fn running<'a>(self, env: &'a Env, http: &'a HttpState) -> Option<&'a ShortSet<RequestKey>> {
        match self {
            Self::Duplex(exchange) => Some(env.duplex(exchange)?.running()),
            Self::Stream(stream) => Some(http.stream(stream)?.running()),
        }
    }

    pub(super) fn running_mut<'a>(
        self,
        env: &'a mut Env,
        http: &'a mut HttpState,
    ) -> Option<&'a mut ShortSet<RequestKey>> {
        match self {
            Self::Duplex(exchange) => Some(env.duplex_mut(exchange)?.running_mut()),
            Self::Stream(stream) => Some(http.stream_mut(stream)?.running_mut()),
        }
    }

    /// Returns the target of the engine's own requests to the client.
    pub(super) fn for_questions(self, http: &mut HttpState) -> Self {
        match self {
            Self::Duplex(_) => self,
            Self::Stream(stream) => Self::Stream(http.stream_to_ask_on(stream)),
        }
    }

    /// Returns whether the client can receive a request of the engine now, or when it resumes the
    /// stream that carries it.
    pub(super) fn carries_questions(self, http: &HttpState) -> bool {
        match self {
            Self::Duplex(_) => true,
            Self::Stream(stream) => http.can_ask_on(stream),
        }
    }

    /// Returns the target of a notification for a request that may be over.
    pub(super) fn for_later(self, http: &mut HttpState, session: SessionRef) -> Self {
        match (self, session) {
            (Self::Stream(stream), SessionRef::Http(session)) => Self::Stream(http.stream_to_tell_on(stream, session)),
            (Self::Duplex(_) | Self::Stream(_), _) => self,
        }
    }

    /// Returns the session and the reply target for the changes of a legacy client, if the exchange
    /// carries them.
    pub(super) fn for_changes(env: &Env, http: &HttpState, x: ExchangeId) -> Option<(SessionRef, Self)> {
        let exchange = env.exchanges.get(&x)?;
        match exchange.binding.duplex() {
            Some(duplex) => duplex.session.negotiated().map(|_| (SessionRef::Duplex(x), Self::Duplex(x))),
            None => http.own_stream(env, x).map(|(session, stream)| (SessionRef::Http(session), Self::Stream(stream))),
        }
    }

    /// Sends a notification or a request of the engine.
    pub(super) fn send(self, env: &mut Env, http: &mut HttpState, message: Bytes) {
        match self {
            Self::Duplex(exchange) => env.send(exchange, Outbound::Message(message)),
            Self::Stream(stream) => http.stream_send(env, stream, message),
        }
    }

    /// Sends an element of the content of a result before the result.
    pub(super) fn send_part(self, env: &mut Env, http: &mut HttpState, part: &Content) -> Result<(), Refusal> {
        match self {
            Self::Duplex(_) => Err(Refusal::NotWanted),
            Self::Stream(stream) => http.send_part(env, stream, part),
        }
    }

    /// Returns whether the client has closed its sending side, so that it cannot respond.
    pub(super) fn has_left(self, env: &Env) -> bool {
        match self {
            Self::Duplex(exchange) => env.duplex(exchange).is_some_and(Duplex::has_ended),
            Self::Stream(_) => false,
        }
    }

    /// Returns whether a message of this size can be sent now.
    pub(super) fn has_room(self, env: &Env, http: &HttpState, size: usize) -> bool {
        match self {
            Self::Duplex(exchange) => env.has_room(exchange, size),
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
                Self::Stream(stream) => http.stream(stream).is_some_and(ResponseStream::is_kept),
            }
    }

    /// Sends the response of a request.
    pub(super) fn reply(self, env: &mut Env, http: &mut HttpState, reply: SerializedResponse) {
        match self {
            Self::Duplex(exchange) => env.duplex_reply(exchange, reply),
            Self::Stream(stream) => http.stream_reply(env, stream, reply),
        }
    }

    /// A request ends without a response.
    pub(super) fn no_reply(self, env: &mut Env, http: &mut HttpState, batch: Option<u64>) {
        match self {
            Self::Duplex(exchange) => {
                if let Some(batch) = batch {
                    env.end_in_batch(exchange, batch, None);
                }
            }
            Self::Stream(stream) => http.stream_no_reply(env, stream),
        }
    }

    /// Sends the end of the exchange of a response stream, so that the client resumes it later.
    /// Returns that exchange, which is over then. `None`: no exchange carries the stream.
    pub(super) fn close_for_resumption(
        self,
        env: &mut Env,
        http: &mut HttpState,
        retry: Option<Duration>,
    ) -> Result<Option<ExchangeId>, Refusal> {
        match self {
            Self::Duplex(_) => Err(Refusal::NotWanted),
            Self::Stream(stream) => http.close_stream(env, stream, retry),
        }
    }
}
