//! Requests whose client is away: no exchange carries their stream. The client may resume as long
//! as its session lasts. What it costs meanwhile is bounded: the engine's requests have less time,
//! and its requests give way where there is no room.

use super::streams::ResponseStream;
use crate::error::DiagnosticKind;
use crate::input::{RequestKey, SessionKey};
use crate::server::reply::ReplyTo;
use crate::server::requests::{Running, Stage};
use crate::server::session::SessionRef;
use crate::server::shares::Client;
use crate::server::{Server, Timer};

impl Server {
    /// Returns whether no exchange whose client is there carries the stream of a request or the
    /// session's own stream. A client that has closed its sending side may still read or have left:
    /// the server learns that only when it writes.
    fn is_away(&self, reply_to: ReplyTo) -> bool {
        let ReplyTo::Stream(key) = reply_to else { return false };
        let Some(stream) = self.http.streams.get(&key) else { return false };
        let own = stream.session().and_then(|session| self.http.http_session(session)?.own);
        let own = own.and_then(|own| self.http.streams.get(&own));
        let is_there = |stream: &ResponseStream| {
            let exchange = stream.exchange().and_then(|x| self.env.exchanges.get(&x)?.binding.http());
            exchange.is_some_and(|http| !http.read_closed)
        };
        !is_there(stream) && !own.is_some_and(is_there)
    }

    /// Returns the number of running handlers whose client has left and cannot resume.
    pub(crate) fn unheard(&self) -> usize {
        let is_unheard = |running: &&Running| match (running.reply_to, &running.stage) {
            (ReplyTo::Stream(stream), Stage::Handler) => self.http.stream(stream).is_some_and(ResponseStream::is_lost),
            _ => false,
        };
        self.requests.values().filter(is_unheard).count()
    }

    /// Sets the deadline of the engine's requests: less while the client is away.
    pub(in crate::server) fn time_questions(&mut self, key: RequestKey) {
        let Some(running) = self.requests.get(&key) else { return };
        let Stage::Asking(asking) = &running.stage else { return };
        let until = asking.until;
        let time = match self.is_away(running.reply_to) {
            false => until,
            // A client that was away before gets no more time.
            true => match self.env.timers.get(Timer::Ask(key)).filter(|armed| *armed < until) {
                Some(armed) => armed,
                None => until.min(self.env.now + self.shared.config.limits.server.away_timeout),
            },
        };
        self.env.timers.set(Timer::Ask(key), Some(time));
    }

    /// The same for all requests of a session whose client has come or left.
    pub(super) fn time_questions_of(&mut self, session: SessionKey) {
        let Some(session) = SessionRef::Http(session).get(&self.env, &self.http) else { return };
        session.asking().into_iter().for_each(|key| self.time_questions(key));
    }

    /// Ends the oldest request of a client, or of all clients, that is of no use to a client that
    /// is away: its place is needed. Returns false if there is none.
    pub(in crate::server) fn end_unheard(&mut self, of: Option<&Client>) -> bool {
        let found = self.requests.iter().find(|(_, running)| {
            of.is_none_or(|client| self.env.shares.client(running.client) == Some(client)) && self.is_unheard(running)
        });
        let Some((key, stage)) = found.map(|(key, running)| (*key, &running.stage)) else { return false };
        let is_asking = matches!(stage, Stage::Asking(_));
        self.env.diagnose(DiagnosticKind::DroppedAnswer, "its client is gone, and its place is needed");
        if is_asking {
            self.end_request(key, "the client was away, and the server needed the room");
        } else {
            self.cancel(key, false);
        }
        true
    }

    /// Returns whether a request waits for a client that is away, or its client can neither resume
    /// nor cancel it, since it belongs to no session.
    fn is_unheard(&self, running: &Running) -> bool {
        let ReplyTo::Stream(stream) = running.reply_to else { return false };
        let is_lost = self.http.stream(stream).is_some_and(|stream| stream.session().is_none() && stream.is_lost());
        is_lost || matches!(running.stage, Stage::Asking(_)) && self.is_away(running.reply_to)
    }
}
