//! Requests whose client is away: no exchange carries their stream. The client may resume as long
//! as its session lasts. The cost is bounded until then: the engine's requests have less time, and
//! the engine evicts requests of such clients if there is no room.

use super::sessions::HttpState;
use super::streams::ResponseStream;
use crate::error::DiagnosticKind;
use crate::input::{RequestKey, SessionKey};
use crate::server::client::ClientIdentity;
use crate::server::env::ServerEnv;
use crate::server::keys::{ReplyTo, ServerTimer, SessionRef};
use crate::server::requests::Requests;
use crate::server::running::{RequestStage, ServedRequest};
use crate::server::wire::Wire;

impl HttpState {
    /// Returns whether no exchange whose client is there carries the stream of a request or the
    /// session's own stream. A client that has closed its sending side may still read or have left:
    /// the server learns that only when it writes.
    fn is_away(&self, env: &ServerEnv, reply_to: ReplyTo) -> bool {
        let ReplyTo::Stream(key) = reply_to else { return false };
        let Some(stream) = self.streams.get(&key) else { return false };
        let own = stream.session().and_then(|session| self.http_session(session)?.own);
        let own = own.and_then(|own| self.streams.get(&own));
        let is_there = |stream: &ResponseStream| {
            let exchange = stream.exchange().and_then(|x| env.exchanges.get(&x)?.binding.http());
            exchange.is_some_and(|http| !http.read_closed)
        };
        !is_there(stream) && !own.is_some_and(is_there)
    }

    /// Returns whether a request waits for a client that is away, or its client can neither resume
    /// nor cancel it, since it belongs to no session.
    fn is_unheard(&self, env: &ServerEnv, running: &ServedRequest) -> bool {
        let ReplyTo::Stream(stream) = running.reply_to else { return false };
        let is_lost = self.stream(stream).is_some_and(|stream| stream.session().is_none() && stream.is_lost());
        is_lost || matches!(running.stage, RequestStage::Asking(_)) && self.is_away(env, running.reply_to)
    }
}

impl Requests {
    /// Returns the running handlers whose client has left and cannot resume.
    pub(in crate::server) fn unheard(&self, http: &HttpState) -> impl Iterator<Item = RequestKey> {
        let is_unheard = move |(_, running): &(RequestKey, &ServedRequest)| match (running.reply_to, &running.stage) {
            (ReplyTo::Stream(stream), RequestStage::Handler) => {
                http.stream(stream).is_some_and(ResponseStream::is_lost)
            }
            _ => false,
        };
        self.iter().filter(is_unheard).map(|(key, _)| key)
    }

    /// Sets the deadline of the engine's requests: less while the client is away.
    pub(in crate::server) fn time_questions(&self, wire: &mut Wire, key: RequestKey) {
        let Some(running) = self.get(key) else { return };
        let RequestStage::Asking(asking) = &running.stage else { return };
        let until = asking.until;
        let time = match wire.http.is_away(&wire.env, running.reply_to) {
            false => until,
            // A client that was away before gets no more time.
            true => match wire.env.timers.get(ServerTimer::Ask(key)).filter(|armed| *armed < until) {
                Some(armed) => armed,
                None => until.min(wire.env.now + wire.env.config.limits.server.away_timeout),
            },
        };
        wire.env.timers.set(ServerTimer::Ask(key), Some(time));
    }

    /// As [`time_questions`](Self::time_questions), for all requests of a session whose client has
    /// come back or left.
    pub(super) fn time_questions_of(&self, wire: &mut Wire, session: SessionKey) {
        let Some(session) = wire.session(SessionRef::Http(session)) else { return };
        session.asking().into_iter().for_each(|key| self.time_questions(wire, key));
    }

    /// Evicts the oldest request of a client, or of all clients, that is of no use to a client that
    /// is away, to free a slot. Returns false if there is none.
    pub(in crate::server) fn evict_unheard(&mut self, wire: &mut Wire, of: Option<&ClientIdentity>) -> bool {
        let found = self.iter().find(|(_, running)| {
            of.is_none_or(|client| wire.env.shares.client(running.client) == Some(client))
                && wire.http.is_unheard(&wire.env, running)
        });
        let Some((key, stage)) = found.map(|(key, running)| (key, &running.stage)) else { return false };
        let is_asking = matches!(stage, RequestStage::Asking(_));
        wire.env.diagnose(DiagnosticKind::DroppedAnswer, "its client is gone, and its place is needed");
        if is_asking {
            self.end_request(wire, key, "the client was away, and the server needed the room");
        } else {
            self.cancel(wire, key, false);
        }
        true
    }
}
