//! The opening of a stream by GET: the session's own stream, or the rest of an interrupted one
//! (2025-11-25 transports, resumability and redelivery).

use super::HttpState;
use crate::exchange::{ExchangeId, Headers, Outbound};
use crate::input::SessionKey;
use crate::server::Server;
use crate::server::client::Bound;
use crate::server::env::ServerEnv;
use crate::server::keys::{ReplyTo, ServerTimer, SessionRef, StreamKey};
use crate::server::response::ErrorReply;
use crate::server::store::SessionChange;
use crate::server::transport::http::ResponseStage;
use crate::server::transport::http::history::{event_id, number_in};
use crate::server::transport::http::legacy::bad_request;
use crate::server::wire::Wire;
use alloc::vec::Vec;
use bytes::Bytes;

impl HttpState {
    /// Checks the limits for the own stream of a session. It needs no room if an exchange carries
    /// it already.
    pub(in super::super) fn check_streams(
        &self,
        env: &ServerEnv,
        x: ExchangeId,
        key: StreamKey,
    ) -> Result<(), ErrorReply> {
        match self.streams.get(&key) {
            Some(stream) if stream.is_own && stream.exchange.is_none() => {
                let checked = env.check_share(&env.client_on(x, stream.session), Bound::Streams, 1);
                checked.map_err(|full| full.reject("there are too many streams"))
            }
            _ => Ok(()),
        }
    }
}

impl Wire {
    /// A client listens: it is initialized, even if its notification was lost.
    pub(in super::super) fn is_listening(&mut self, session: SessionKey) {
        let session_ref = SessionRef::Http(session);
        if let Some(session) = self.session_mut(session_ref).filter(|session| !session.is_ready()) {
            session.set_ready();
            self.note_change(session_ref, SessionChange::Ready);
        }
    }
}

impl Server {
    /// Attaches an exchange to the session's own stream, after the last event that was sent. With
    /// `replays`, before the oldest event that is kept.
    pub(in super::super) fn attach_own(
        &mut self,
        x: ExchangeId,
        session: SessionKey,
        replays: bool,
    ) -> Result<(), ErrorReply> {
        let negotiated = self.wire.session(SessionRef::Http(session)).and_then(|session| session.negotiated());
        let version = negotiated.map(|negotiated| negotiated.version);
        let Some(version) = version else { return Err(bad_request("Session not found")) };
        let key = self.wire.http.own_stream_of(session, version);
        self.wire.is_listening(session);
        self.wire.http.check_streams(&self.wire.env, x, key)?;
        let said = self.wire.http.streams.get(&key).and_then(|stream| stream.said);
        let after = said.filter(|_| !replays).unwrap_or(0);
        self.attach(x, key, after, true);
        Ok(())
    }

    /// Attaches an exchange to the stream of an event, after that event.
    pub(in super::super) fn attach_after(
        &mut self,
        x: ExchangeId,
        session: SessionKey,
        cursor: &str,
    ) -> Result<(), ErrorReply> {
        let unknown = || bad_request("no event that is kept has this id");
        let number = number_in(cursor).ok_or_else(unknown)?;
        let found = self.wire.http.http_session(session).and_then(|session| {
            let is_gone = |key: &StreamKey| self.wire.http.streams.get(key).is_some_and(|s| s.gone == Some(number));
            session.history.stream_of(number).or_else(|| session.streams.iter().copied().find(is_gone))
        });
        let key = found.ok_or_else(unknown)?;
        let stream = self.wire.http.streams.get(&key).ok_or_else(unknown)?;
        if event_id(stream.number, number) != cursor {
            return Err(unknown());
        }
        self.wire.http.check_streams(&self.wire.env, x, key)?;
        self.attach(x, key, number, false);
        Ok(())
    }

    /// Lets an exchange carry a stream, after an event. The exchange that carried it before ends.
    fn attach(&mut self, x: ExchangeId, key: StreamKey, after: u64, is_fresh: bool) {
        let Some(stream) = self.wire.http.streams.get_mut(&key) else { return };
        let missed: Vec<u64> = stream.kept.iter().copied().filter(|number| *number > after).collect();
        stream.said = missed.last().copied().or(stream.said).max(Some(after)).filter(|said| *said > 0);
        let session = stream.session.and_then(|session| self.wire.http.http_session(session));
        let events = session.map(|session| session.history.data(missed)).unwrap_or_default();
        self.attach_with(x, key, events, is_fresh);
    }

    /// Lets an exchange carry a stream, and sends these events of it first.
    pub(in super::super) fn attach_with(
        &mut self,
        x: ExchangeId,
        key: StreamKey,
        events: Vec<(u64, Bytes)>,
        is_fresh: bool,
    ) {
        let Some(stream) = self.wire.http.streams.get_mut(&key) else { return };
        let before = stream.exchange.replace(x);
        let (session_key, number, is_own, is_over) = (stream.session, stream.number, stream.is_own, stream.is_over);
        let primes = is_fresh && stream.is_primed();
        let is_shared = stream.shared.is_some();
        stream.said = events.last().map(|(number, _)| *number).or(stream.said);
        before.into_iter().for_each(|before| self.end_carrier(before));
        if let Some(http) = self.wire.env.http(x) {
            http.stage = ResponseStage::Carrying(key);
        }
        self.wire.env.timers.set(ServerTimer::Keep(key), None);
        self.wire.env.begin_events(x, Headers::new());
        if is_shared && events.is_empty() {
            // The first event waits for the store.
            self.wire.env.send_comment(x);
        }
        if events.is_empty() && primes {
            self.wire.http.stream_event(&mut self.wire.env, key, Some(self.shared.config.retry), Bytes::new());
        } else if events.is_empty() && !is_shared {
            self.wire.env.send_comment(x);
        }
        for (event, data) in events {
            let id = Some(event_id(number, event));
            self.wire.env.send(x, Outbound::Event { event: None, id, retry: None, data });
        }
        if is_over && !is_shared {
            return self.wire.http.end_of_stream(&mut self.wire.env, key, x, session_key);
        }
        self.wire.env.drop_head(x);
        session_key.into_iter().for_each(|session| self.requests.time_questions_of(&mut self.wire, session));
        self.wire.env.keep_alive_in(x, self.shared.config.keep_alive);
        self.requests.send_held(&mut self.wire, ReplyTo::Stream(key));
        if is_own {
            let client = self.wire.env.shares.take(&self.wire.env.client_on(x, session_key), Bound::Streams, 1);
            self.wire.http.own.insert(x, client);
            self.wire.env.watchers.insert(x);
            self.wire.env.end_with_token(x);
            self.listens.tell_changes(&mut self.wire, x);
        }
    }

    /// Ends an exchange that carries the own stream of a session, which the client opens again with
    /// another GET. Does nothing to any other exchange.
    pub(in crate::server) fn end_own_exchange(&mut self, x: ExchangeId) {
        if self.wire.http.own_stream(&self.wire.env, x).is_some() {
            self.end_carrier(x);
        }
    }

    /// Ends an exchange, and not the stream that it carries.
    fn end_carrier(&mut self, x: ExchangeId) {
        let is_open = self.wire.env.http(x).is_some_and(|http| matches!(http.stage, ResponseStage::Carrying(_)));
        let max = self.shared.config.limits.server.max_unsent;
        if self.wire.env.unwritten(x) > max {
            // The client does not read it: drop its unwritten bytes.
            return self.abort(x);
        }
        if is_open {
            self.wire.env.send(x, Outbound::End);
        }
        self.drop_exchange(x);
    }
}
