//! The way of messages to clients: the open exchanges, and the sessions and streams that outlive
//! them. For each running request this is the duplex connection on which it arrived, or the
//! response stream of its POST. This module contains every difference between the two.

use super::ExchangeId;
use super::client::ClientKey;
use super::env::ServerEnv;
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

/// See the [module](self).
pub(super) struct Wire {
    pub(super) env: ServerEnv,
    pub(super) http: HttpState,
}

/// Sessions.
impl Wire {
    pub(super) fn session(&self, session: SessionRef) -> Option<&Session> {
        match session {
            SessionRef::Duplex(x) => self.env.duplex(x).map(|duplex| &duplex.session),
            SessionRef::Http(session) => self.http.http_session(session).map(|session| &session.session),
        }
    }

    pub(super) fn session_mut(&mut self, session: SessionRef) -> Option<&mut Session> {
        match session {
            SessionRef::Duplex(x) => self.env.duplex_mut(x).map(|duplex| &mut duplex.session),
            SessionRef::Http(session) => self.http.http_session_mut(session).map(|session| &mut session.session),
        }
    }

    /// Returns the exchange on which the client of a session is notified of changes now.
    pub(super) fn carrier(&self, session: SessionRef) -> Option<ExchangeId> {
        match session {
            SessionRef::Duplex(x) => Some(x),
            SessionRef::Http(session) => self.http.carrier_of_own_stream(session),
        }
    }

    /// Returns the client that a session counts for.
    pub(super) fn holder(&self, session: SessionRef) -> Option<ClientKey> {
        match session {
            SessionRef::Duplex(x) => self.env.exchanges.get(&x).map(|exchange| exchange.client),
            SessionRef::Http(session) => self.http.http_session(session).map(|session| session.opener),
        }
    }

    /// Returns the session of a request. `None` for an HTTP request without a session.
    pub(super) fn session_of(&self, to: ReplyTo) -> Option<SessionRef> {
        match to {
            ReplyTo::Duplex(exchange) => Some(SessionRef::Duplex(exchange)),
            ReplyTo::Stream(stream) => self.http.stream(stream)?.session().map(SessionRef::Http),
            ReplyTo::Task(session) => session,
        }
    }

    /// Returns where messages to the client of a session go that belong to no open request, if it
    /// can be reached now.
    fn own_target(&self, session: Option<SessionRef>) -> Option<ReplyTo> {
        let x = self.carrier(session?)?;
        self.target_of_changes(x).map(|(_, reply_to)| reply_to)
    }

    pub(super) fn session_of_mut(&mut self, to: ReplyTo) -> Option<&mut Session> {
        self.session_mut(self.session_of(to)?)
    }

    /// Returns the session and the reply target for the changes of a legacy client, if the exchange
    /// carries them.
    pub(super) fn target_of_changes(&self, x: ExchangeId) -> Option<(SessionRef, ReplyTo)> {
        let exchange = self.env.exchanges.get(&x)?;
        match exchange.binding.duplex() {
            Some(duplex) => duplex.session.negotiated().map(|_| (SessionRef::Duplex(x), ReplyTo::Duplex(x))),
            None => {
                let (session, stream) = self.http.own_stream(&self.env, x)?;
                Some((SessionRef::Http(session), ReplyTo::Stream(stream)))
            }
        }
    }
}

/// Reply targets.
impl Wire {
    /// Returns the reply target of the requests whose messages are sent on this exchange.
    pub(super) fn target_on(&self, exchange: ExchangeId) -> Option<ReplyTo> {
        let binding = &self.env.exchanges.get(&exchange)?.binding;
        if let Some(http) = binding.http() {
            return http.stream().map(ReplyTo::Stream);
        }
        binding.duplex().map(|_| ReplyTo::Duplex(exchange))
    }

    /// Opens the place where a request of this exchange is answered: over HTTP the response stream
    /// of its POST.
    pub(super) fn open_target(&mut self, exchange: ExchangeId, version: ProtocolVersion) -> ReplyTo {
        if self.env.http(exchange).is_some() {
            return ReplyTo::Stream(self.http.open_stream(&mut self.env, exchange, None, version, false));
        }
        ReplyTo::Duplex(exchange)
    }

    /// Returns the target of the engine's own requests to the client of a request.
    pub(super) fn target_of_questions(&mut self, to: ReplyTo) -> ReplyTo {
        match to {
            ReplyTo::Duplex(_) | ReplyTo::Task(_) => to,
            ReplyTo::Stream(stream) => ReplyTo::Stream(self.http.stream_to_ask_on(stream)),
        }
    }

    /// Returns the target of a notification for a request that may be over.
    pub(super) fn target_of_later(&mut self, to: ReplyTo, session: SessionRef) -> ReplyTo {
        match (to, session) {
            (ReplyTo::Stream(stream), SessionRef::Http(session)) => {
                ReplyTo::Stream(self.http.stream_to_tell_on(stream, session))
            }
            (ReplyTo::Duplex(_) | ReplyTo::Stream(_) | ReplyTo::Task(_), _) => to,
        }
    }

    /// Returns the running requests that are answered there.
    pub(super) fn running(&self, to: ReplyTo) -> Option<&ShortSet<RequestKey>> {
        match to {
            ReplyTo::Duplex(exchange) => Some(self.env.duplex(exchange)?.running()),
            ReplyTo::Stream(stream) => Some(self.http.stream(stream)?.running()),
            ReplyTo::Task(_) => None,
        }
    }

    pub(super) fn running_mut(&mut self, to: ReplyTo) -> Option<&mut ShortSet<RequestKey>> {
        match to {
            ReplyTo::Duplex(exchange) => Some(self.env.duplex_mut(exchange)?.running_mut()),
            ReplyTo::Stream(stream) => Some(self.http.stream_mut(stream)?.running_mut()),
            ReplyTo::Task(_) => None,
        }
    }

    /// Returns whether the client can receive a request of the engine now, or when it resumes the
    /// stream that carries it.
    pub(super) fn carries_questions(&self, to: ReplyTo) -> bool {
        match to {
            ReplyTo::Duplex(exchange) => self.env.duplex(exchange).is_some(),
            ReplyTo::Stream(stream) => self.http.can_ask_on(stream),
            ReplyTo::Task(session) => self.own_target(session).is_some(),
        }
    }

    /// Returns whether the client has closed its sending side, so that it cannot respond.
    pub(super) fn has_left(&self, to: ReplyTo) -> bool {
        match to {
            ReplyTo::Duplex(exchange) => self.env.duplex(exchange).is_some_and(Duplex::has_ended),
            ReplyTo::Stream(_) | ReplyTo::Task(_) => false,
        }
    }

    /// Returns whether a message of this size can be sent now.
    pub(super) fn has_room(&self, to: ReplyTo, size: usize) -> bool {
        match to {
            ReplyTo::Duplex(exchange) => self.env.has_room(exchange, size),
            ReplyTo::Stream(stream) => {
                let Some(stream) = self.http.stream(stream) else { return false };
                match stream.exchange() {
                    Some(exchange) => self.env.has_room(exchange, size),
                    None => stream.is_sent_elsewhere(),
                }
            }
            ReplyTo::Task(session) => self.own_target(session).is_some_and(|own| self.has_room(own, size)),
        }
    }

    /// Returns whether a message of this size can be sent now, or is kept for a client that resumes
    /// the stream.
    pub(super) fn takes(&self, to: ReplyTo, size: usize) -> bool {
        self.has_room(to, size)
            || match to {
                ReplyTo::Duplex(_) | ReplyTo::Task(_) => false,
                ReplyTo::Stream(stream) => self.http.stream(stream).is_some_and(ResponseStream::is_kept),
            }
    }
}

/// Messages.
impl Wire {
    /// Sends a notification or a request of the engine.
    pub(super) fn send(&mut self, to: ReplyTo, message: Bytes) {
        match to {
            ReplyTo::Duplex(exchange) => self.env.send(exchange, Outbound::Message(message)),
            ReplyTo::Stream(stream) => self.http.stream_send(&mut self.env, stream, message),
            ReplyTo::Task(session) => {
                self.own_target(session).into_iter().for_each(|own| self.send(own, message.clone()))
            }
        }
    }

    /// Sends an element of the content of a result before the result.
    pub(super) fn send_part(&mut self, to: ReplyTo, part: &Content) -> Result<(), Refusal> {
        match to {
            ReplyTo::Duplex(_) | ReplyTo::Task(_) => Err(Refusal::NotWanted),
            ReplyTo::Stream(stream) => self.http.send_part(&mut self.env, stream, part),
        }
    }

    /// Sends the response of a request.
    pub(super) fn reply(&mut self, to: ReplyTo, reply: SerializedResponse) {
        match to {
            ReplyTo::Duplex(exchange) => match reply.batch {
                Some(batch) => self.end_in_batch(exchange, batch, Some(reply.message)),
                None => self.env.send(exchange, Outbound::Message(reply.message)),
            },
            ReplyTo::Stream(stream) => self.http.stream_reply(&mut self.env, stream, reply),
            // The task has the outcome.
            ReplyTo::Task(_) => {}
        }
    }

    /// A request ends without a response.
    pub(super) fn no_reply(&mut self, to: ReplyTo, batch: Option<u64>) {
        match to {
            ReplyTo::Duplex(exchange) => {
                if let Some(batch) = batch {
                    self.end_in_batch(exchange, batch, None);
                }
            }
            ReplyTo::Stream(stream) => self.http.stream_no_reply(&mut self.env, stream),
            ReplyTo::Task(_) => {}
        }
    }

    /// A request of a batch is over. The application had a part in the batch, so its array is no
    /// response of the engine itself.
    fn end_in_batch(&mut self, exchange: ExchangeId, batch: u64, response: Option<Bytes>) {
        let array = self.env.duplex_mut(exchange).and_then(|duplex| duplex.end_in_batch(batch, response));
        if let Some(array) = array {
            self.env.send(exchange, Outbound::Message(array));
        }
    }

    /// Sends the end of the exchange of a response stream, so that the client resumes it later.
    /// Returns that exchange, which is over then. `None`: no exchange carries the stream.
    pub(super) fn close_for_resumption(
        &mut self,
        to: ReplyTo,
        retry: Option<Duration>,
    ) -> Result<Option<ExchangeId>, Refusal> {
        match to {
            ReplyTo::Duplex(_) | ReplyTo::Task(_) => Err(Refusal::NotWanted),
            ReplyTo::Stream(stream) => self.http.close_stream(&mut self.env, stream, retry),
        }
    }
}
