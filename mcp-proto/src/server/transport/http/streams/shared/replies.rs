//! What a server does with the replies of the store about streams, and with what other servers say
//! of them.

use super::{GrowthOutcome, LOST, Place, ResponseStream, StreamClaim, WaitingEvent, request_digest};
use crate::error::DiagnosticKind;
use crate::exchange::Outbound;
use crate::input::RequestKey;
use crate::rpc::Id;
use crate::server::keys::{ReplyTo, ServerTimer, SessionRef, StreamKey};
use crate::server::store::{
    Epoch, NodeItem, NodeTag, RequestDigest, SessionDigest, StoreError, StoreReply, StoreRequest, Then,
};
use crate::server::{Server, SessionEnd};
use alloc::vec::Vec;
use bytes::Bytes;
use core::time::Duration;

impl Server {
    /// The store has replied to the claim of a stream.
    pub(in crate::server) fn stream_is_claimed(&mut self, key: StreamKey, result: Result<StoreReply, StoreError>) {
        let Some(stream) = self.wire.http.stream(key) else { return };
        let (session, is_own) = (stream.session(), stream.is_own);
        match result {
            Ok(StoreReply::Claimed { epoch, last, cancelled, .. }) => {
                if self.wire.env.has_been(epoch.node) {
                    // This server was another node when it asked.
                    return self.wire.http.claim_stream(&mut self.wire.env, key, Some(epoch));
                }
                if let Some(shared) =
                    self.wire.http.shared_mut(key).filter(|shared| shared.taken_since(epoch).is_none())
                {
                    shared.hold(epoch, last);
                }
                for request in cancelled {
                    self.cancel_of_digest(session.map(SessionRef::Http), request);
                }
                self.wire.http.store_waiting(&mut self.wire.env, key);
            }
            // The node that this server was before is no more, and has its tag.
            Ok(StoreReply::Owned(epoch)) if is_own && self.wire.env.has_been(epoch.node) => {
                self.wire.http.claim_stream(&mut self.wire.env, key, Some(epoch));
            }
            Ok(StoreReply::Owned(epoch)) if is_own => {
                if let Some(shared) =
                    self.wire.http.shared_mut(key).filter(|shared| shared.taken_since(epoch).is_none())
                {
                    shared.claim = StreamClaim::Elsewhere(epoch);
                }
                self.wire.http.store_waiting(&mut self.wire.env, key);
            }
            Ok(StoreReply::Missing) => {
                session.into_iter().for_each(|session| self.end_session(session, SessionEnd::Idle));
            }
            Ok(_) => self.lose_stream(key),
            Err(_) => {
                if let Some(shared) = self.wire.http.shared_mut(key) {
                    shared.claim = StreamClaim::None;
                }
                self.wire.env.stall(key);
            }
        }
    }

    /// The store has replied to an event of a stream.
    pub(in crate::server) fn event_is_appended(
        &mut self,
        key: StreamKey,
        place: Place,
        result: Result<StoreReply, StoreError>,
    ) {
        let Some(stream) = self.wire.http.stream(key) else { return };
        let (session, is_own) = (stream.session(), stream.is_own);
        let Some(shared) = self.wire.http.shared_mut(key) else { return };
        let is_current = shared.claim == StreamClaim::Held(place.epoch);
        match result {
            Ok(StoreReply::Done) if is_current => {
                shared.note_stored(place);
                let before = shared.stored;
                self.stream_has_grown(key, before);
            }
            Ok(StoreReply::Done) => {
                let held = shared.take_stored(place);
                self.wire.env.release_for_store(held);
                self.wire.http.store_waiting(&mut self.wire.env, key);
            }
            Ok(StoreReply::Gap(last)) if is_current && last >= shared.stored => {
                shared.unplace(Place { number: last + 1, ..place });
                self.stream_has_grown(key, last);
            }
            Ok(StoreReply::Fenced(epoch)) if is_own && is_current && epoch.number <= place.epoch.number => {
                // The store has gone back in time, and knows an older epoch only.
                shared.unplace(place);
                self.wire.http.claim_stream(&mut self.wire.env, key, Some(epoch));
            }
            Ok(StoreReply::Fenced(epoch)) if is_own => {
                shared.unplace(place);
                self.own_stream_is_taken(key, epoch);
            }
            Ok(StoreReply::Missing) => {
                session.into_iter().for_each(|session| self.end_session(session, SessionEnd::Idle));
            }
            // The store has another stream than it had.
            Ok(_) => self.lose_stream(key),
            Err(_) => {
                let asked = shared.waiting.iter_mut().filter(|event| event.place == Some(place));
                asked.for_each(|event| event.is_asked = false);
                self.wire.env.stall(key);
            }
        }
    }

    /// The store has the events of a stream of this server up to this one.
    pub(in crate::server::transport::http) fn stream_has_grown(&mut self, key: StreamKey, number: u64) {
        match self.wire.http.grow(&mut self.wire.env, key, number) {
            GrowthOutcome::Nothing => self.wire.http.store_waiting(&mut self.wire.env, key),
            GrowthOutcome::Over => self.end_shared_stream(key),
            GrowthOutcome::Closes(x) => {
                self.wire.env.send(x, Outbound::End);
                self.drop_exchange(x);
            }
        }
    }

    /// A stream has ended, and the store has all of it.
    fn end_shared_stream(&mut self, key: StreamKey) {
        let Some(stream) = self.wire.http.stream(key) else { return };
        let (exchange, session) = (stream.exchange(), stream.session());
        self.wire.http.remove_stream(&mut self.wire.env, key);
        if let Some(x) = exchange {
            self.wire.env.send(x, Outbound::End);
            self.wire.env.timers.set(ServerTimer::KeepAlive(x), None);
            self.wire.env.end(x);
        }
        session.into_iter().for_each(|session| self.wire.http.touch_session(&mut self.wire.env, session));
    }

    /// Another server may write a stream of this one, or it is not known what the store has of it.
    /// Its client resumes it there, or learns that its request is lost.
    fn lose_stream(&mut self, key: StreamKey) {
        self.wire.env.diagnose(DiagnosticKind::Fenced, "");
        let Some(stream) = self.wire.http.stream(key) else { return };
        let running: Vec<RequestKey> = stream.running().iter().collect();
        let (exchange, can_resume) = (stream.exchange(), stream.is_own || stream.said.is_some());
        if can_resume || exchange.is_none() {
            self.wire.http.forget_waiting(&mut self.wire.env, key);
            exchange.into_iter().for_each(|x| self.abort(x));
            // Nothing of them is sent: the stream is not there any more.
            self.wire.http.remove_stream(&mut self.wire.env, key);
            return running.into_iter().for_each(|request| self.requests.cancel(&mut self.wire, request, false));
        }
        if let Some(shared) = self.wire.http.shared_mut(key) {
            // The store is not asked to keep the errors.
            shared.claim = StreamClaim::Asked;
        }
        running.into_iter().for_each(|request| self.requests.end_request(&mut self.wire, request, LOST));
        self.end_stream(key);
    }

    /// This server is another node now: none of its streams is its own.
    pub(in crate::server) fn lose_streams(&mut self) {
        self.wire.http.held().into_iter().for_each(|key| self.lose_stream(key));
    }

    /// Another server has the own stream of a session: it gets the messages, and sends them.
    pub(in crate::server) fn own_stream_is_taken(&mut self, key: StreamKey, epoch: Epoch) {
        let Some(shared) = self.wire.http.shared_mut(key) else { return };
        let known = match shared.claim {
            StreamClaim::Held(known) | StreamClaim::Elsewhere(known) => known.number,
            StreamClaim::None | StreamClaim::Asked => 0,
        };
        if known >= epoch.number {
            // It arrives late, or once more.
            return self.wire.http.store_waiting(&mut self.wire.env, key);
        }
        shared.claim = StreamClaim::Elsewhere(epoch);
        if let Some(x) = self.wire.http.stream(key).and_then(ResponseStream::exchange) {
            self.end_own_exchange(x);
        }
        self.wire.http.store_waiting(&mut self.wire.env, key);
    }

    /// A message of the own stream of a session was passed on, or was not.
    pub(in crate::server) fn message_is_passed_on(
        &mut self,
        key: StreamKey,
        message: Bytes,
        result: Result<StoreReply, StoreError>,
    ) {
        let Some(shared) = self.wire.http.shared_mut(key) else { return };
        let StreamClaim::Elsewhere(epoch) = shared.claim else {
            // This server has it meanwhile.
            self.wire.http.append_shared(&mut self.wire.env, key, None, &message, false);
            return;
        };
        match result {
            Ok(StoreReply::Done) => {}
            Ok(StoreReply::NoNode) => {
                let held = message.len();
                shared.waiting.push_front(WaitingEvent::new(None, message, false));
                self.wire.env.hold_for_store(held);
                self.wire.http.claim_stream(&mut self.wire.env, key, Some(epoch));
            }
            Ok(_) => self.wire.env.diagnose(DiagnosticKind::DroppedNotification, "the server of its client is busy"),
            Err(_) => {
                let held = message.len();
                shared.waiting.push_front(WaitingEvent::new(None, message, false));
                self.wire.env.hold_for_store(held);
                self.wire.env.stall(key);
            }
        }
    }

    /// This server shuts down: the client of a stream opens it at another server at once.
    pub(in crate::server::transport::http) fn move_listener(&mut self, key: StreamKey) {
        let Some(stream) = self.wire.http.stream(key).filter(|stream| stream.shared.is_some()) else { return };
        if let Some(x) = stream.exchange() {
            let data = Bytes::new();
            self.wire.env.send(x, Outbound::Event { event: None, id: None, retry: Some(Duration::ZERO), data });
        }
    }

    /// Asks the store again for what it did not carry out.
    pub(in crate::server) fn store_stalled(&mut self) {
        for key in self.wire.env.take_stalled() {
            self.wire.http.store_waiting(&mut self.wire.env, key);
        }
    }

    /// Another server sends a stream of this one to its client as well.
    pub(in crate::server) fn on_tail(&mut self, session: SessionDigest, stream: u64, by: NodeTag) {
        let found = self.wire.http.stream_numbered(session, stream);
        if let Some(key) = found
            && let Some(shared) = self.wire.http.shared_mut(key)
        {
            shared.tails.insert(by);
            self.requests.send_held(&mut self.wire, ReplyTo::Stream(key));
        }
        let item = match found {
            // It may have grown meanwhile.
            Some(_) => NodeItem::Grown { session, stream },
            None => NodeItem::Gone { session, stream },
        };
        self.wire.env.ask_store(StoreRequest::Send { node: by, item }, Then::Nothing);
    }

    /// Another server has a message for a client whose own stream is here.
    pub(in crate::server) fn on_own_message(&mut self, session: SessionDigest, message: Bytes) {
        let Some(key) = self.wire.http.session_of_digest(session) else {
            return self.wire.env.diagnose(DiagnosticKind::DroppedNotification, "its session has ended here");
        };
        let version = self.wire.session(SessionRef::Http(key)).and_then(|session| session.negotiated());
        let Some(version) = version.map(|terms| terms.version) else { return };
        let own = self.wire.http.own_stream_of(key, version);
        if let Some(shared) = self.wire.http.shared_mut(own) {
            shared.doubt();
        }
        self.wire.http.stream_send(&mut self.wire.env, own, message);
    }

    /// A client has cancelled a request at another server.
    pub(in crate::server) fn cancel_of_digest(&mut self, session: Option<SessionRef>, request: RequestDigest) {
        let running =
            session.and_then(|session| self.wire.session(session)?.request_of(|id| request_digest(id) == request));
        if let Some(key) = running {
            self.requests.cancel(&mut self.wire, key, true);
        }
    }

    /// A client cancels a request that does not run here. Returns false without a store.
    pub(in crate::server) fn cancel_elsewhere(&mut self, session: Option<SessionRef>, id: &Id) -> bool {
        let key = session.and_then(SessionRef::http);
        let Some(entry) = key.and_then(|key| self.wire.http.http_session(key)) else { return false };
        if entry.shared.is_none() {
            return false;
        }
        let (session, request, client) = (SessionDigest(entry.digest), request_digest(id), entry.client.clone());
        let keep = self.shared.config.stream_after * 2;
        let cancel = StoreRequest::Cancel { session, request, keep };
        if !self.wire.env.ask_store_for(&client, cancel, Then::Cancel(session, request)) {
            self.wire.env.diagnose(DiagnosticKind::UnknownCancel, "the store does not take it");
        }
        true
    }

    /// The store knows which server runs a request that was cancelled, or none does yet.
    pub(in crate::server) fn cancelled_is_found(
        &mut self,
        session: SessionDigest,
        request: RequestDigest,
        result: Result<StoreReply, StoreError>,
    ) {
        if let Ok(StoreReply::Owned(epoch)) = result {
            let item = NodeItem::Cancel { session, request };
            self.wire.env.ask_store(StoreRequest::Send { node: epoch.node.tag(), item }, Then::Nothing);
        }
    }
}
