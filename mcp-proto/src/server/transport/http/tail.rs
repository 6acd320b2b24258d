//! The opening of a stream by GET, in a session that several servers share: the session's own
//! stream, which this server takes over, or one that another server writes. That one is *tailed*:
//! its events are read from the store, and sent here.

use super::exchange::{ResponseStage, StoreWait};
use super::history::event_id;
use super::legacy::{bad_request, unknown_session};
use super::sessions::HttpState;
use super::streams::{OWN, lost_events};
use crate::error::DiagnosticKind;
use crate::exchange::{ExchangeId, Headers, Outbound};
use crate::input::SessionKey;
use crate::server::env::ServerEnv;
use crate::server::keys::{ServerTimer, SessionRef, StreamKey};
use crate::server::store::{
    Epoch, Incarnation, NodeItem, SessionDigest, StoreError, StoreReply, StoreRequest, StoredEvent, Then,
};
use crate::server::{Server, UnknownEvent};
use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;

/// The number of events that one reply of the store has.
const PAGE: usize = 100;

/// A stream of another server, sent on an exchange here.
#[derive(Debug)]
pub(in crate::server) struct Tail {
    session: SessionDigest,
    stream: u64,
    /// The number of the last event that was sent.
    said: u64,
    owner: Epoch,
    is_reading: bool,
    /// It has grown since the read began.
    has_grown: bool,
}

/// A stream that a client opens, while the store is asked.
#[derive(Debug)]
pub(in crate::server) struct Opening {
    x: ExchangeId,
    session: SessionKey,
    digest: SessionDigest,
    stream: u64,
    /// The number of the event after which it begins. `None`: the last one that was sent.
    after: Option<u64>,
    /// The epoch that ends with it.
    over: Option<Epoch>,
    /// What was read so far.
    events: Vec<StoredEvent>,
}

impl HttpState {
    /// Returns the stream of a session with this number.
    pub(in crate::server) fn stream_numbered(&self, session: SessionDigest, number: u64) -> Option<StreamKey> {
        let session = self.http_session(self.session_of_digest(session)?)?;
        let mut streams = session.streams.iter().copied();
        streams.find(|key| self.streams.get(key).is_some_and(|stream| stream.number == number))
    }
}

impl Server {
    /// Opens the own stream of a session, or resumes a stream after an event. Returns false if no
    /// other server shares the session.
    pub(super) fn open_shared(&mut self, x: ExchangeId, session: SessionKey, cursor: Option<&str>) -> bool {
        let Some(entry) = self.wire.http.http_session(session).filter(|entry| entry.shared.is_some()) else {
            return false;
        };
        let digest = SessionDigest(entry.digest);
        let place = cursor.map(read_event_id);
        let (stream, after) = match place {
            None => (OWN, None),
            Some(Some((stream, number))) => (stream, Some(number)),
            Some(None) => {
                self.refuse_cursor(x, session);
                return true;
            }
        };
        let opening = Box::new(Opening { x, session, digest, stream, after, over: None, events: Vec::new() });
        self.wait_for_store(x, StoreWait::Open);
        self.ask_opening(opening);
        true
    }

    /// Asks the store for the next thing that a stream needs which a client opens.
    fn ask_opening(&mut self, opening: Box<Opening>) {
        let Some(node) = self.wire.env.node.as_ref().map(|node| node.own()) else { return };
        let Opening { x, digest: session, stream, over, .. } = *opening;
        let request = match (opening.events.last(), opening.after) {
            (Some(last), _) => StoreRequest::Read { session, stream, after: last.number },
            (None, Some(after)) if stream != OWN => StoreRequest::Read { session, stream, after },
            (None, _) => StoreRequest::Claim { session, stream, requests: Vec::new(), node, over },
        };
        if !self.wire.env.ask_store(request, Then::Opening(opening)) {
            self.refuse_opening(x);
        }
    }

    fn refuse_opening(&mut self, x: ExchangeId) {
        if self.take_wait(x).is_some() {
            self.wire.env.refuse_busy(x, None, "the store of the sessions does not reply");
        }
    }

    /// Refuses a stream whose event is not known, or opens the own stream instead.
    fn refuse_cursor(&mut self, x: ExchangeId, session: SessionKey) {
        if self.shared.config.compat.unknown_event == UnknownEvent::ReplayFromOldest && self.is_serving() {
            self.open_shared(x, session, None);
        } else {
            self.wire.env.reject(x, None, 400, &bad_request("no event that is kept has this id"));
        }
    }

    /// The store has replied about a stream that a client opens.
    pub(in crate::server) fn opening_is_stored(
        &mut self,
        mut opening: Box<Opening>,
        result: Result<StoreReply, StoreError>,
    ) {
        let (x, session) = (opening.x, opening.session);
        if self.wire.http.http_session(session).is_none() {
            if self.take_wait(x).is_some() {
                self.wire.env.reject(x, None, 404, &unknown_session());
            }
            return;
        }
        match result {
            Err(_) => self.refuse_opening(x),
            // This server was another node when it asked.
            Ok(StoreReply::Claimed { epoch, .. }) if self.wire.env.has_been(epoch.node) => {
                opening.over = Some(epoch);
                self.ask_opening(opening);
            }
            Ok(StoreReply::Claimed { epoch, last, sent, .. }) => self.own_is_claimed(opening, epoch, last, sent),
            Ok(StoreReply::Owned(epoch)) => {
                opening.over = Some(epoch);
                self.ask_opening(opening);
            }
            Ok(StoreReply::Stream { events, owner, is_over }) => {
                let is_page = events.len() >= PAGE && !is_over;
                opening.events.extend(events);
                if is_page {
                    return self.ask_opening(opening);
                }
                self.opening_is_read(opening, owner, is_over);
            }
            Ok(_) => {
                if self.take_wait(x).is_some() {
                    self.refuse_cursor(x, session);
                }
                // Its session may have ended: the next request finds out.
                self.session_is_outdated(opening.digest);
            }
        }
    }

    /// This server has the own stream of a session from now on.
    fn own_is_claimed(&mut self, mut opening: Box<Opening>, epoch: Epoch, last: u64, sent: u64) {
        let Opening { session, digest, over, after, .. } = *opening;
        let version = self.wire.session(SessionRef::Http(session)).and_then(|session| session.negotiated());
        let Some(version) = version.map(|terms| terms.version) else { return };
        if let Some(before) = over.filter(|before| before.node != epoch.node) {
            let item = NodeItem::Taken { session: digest, stream: OWN, epoch };
            let request = StoreRequest::Send { node: before.node.tag(), item };
            self.wire.env.ask_store(request, Then::Nothing);
        }
        self.wire.is_listening(session);
        let is_first = self.wire.http.http_session(session).is_some_and(|entry| entry.own.is_none());
        if let Some(session) = self.wire.session_mut(SessionRef::Http(session)).filter(|_| is_first && epoch.number > 1)
        {
            // Its client has listened elsewhere before. What has changed since is not known here.
            session.announce(0);
        }
        let key = self.wire.http.own_stream_of(session, version);
        let Some(shared) = self.wire.http.stream_mut(key).and_then(|stream| stream.shared.as_mut()) else { return };
        // A store that was asked to end the newer epoch, and does not know it, has gone back.
        if let Some(newer) = shared.taken_since(epoch).filter(|newer| over != Some(*newer)) {
            opening.over = Some(newer);
            return self.ask_opening(opening);
        }
        if shared.hold(epoch, last) {
            self.stream_has_grown(key, last);
        }
        let after = after.unwrap_or(sent);
        if after < last {
            let request = StoreRequest::Read { session: digest, stream: OWN, after };
            let x = opening.x;
            if !self.wire.env.ask_store(request, Then::Opening(Box::new(Opening { after: Some(after), ..*opening }))) {
                self.refuse_opening(x);
            }
            return;
        }
        self.attach_shared(&opening, key);
    }

    /// All events after a cursor were read.
    fn opening_is_read(&mut self, mut opening: Box<Opening>, owner: Epoch, is_over: bool) {
        let Opening { x, digest, stream, after, .. } = *opening;
        let said = opening.events.last().map_or(after.unwrap_or(0), |event| event.number);
        let here = self.wire.http.stream_numbered(digest, stream).filter(|_| !is_over);
        if stream == OWN && here.is_none() {
            // It was claimed, and lost while the store was asked.
            opening.events.clear();
            opening.over = None;
            return self.ask_opening(opening);
        }
        if let Some(key) = here {
            let shared = self.wire.http.stream(key).and_then(|stream| stream.shared.as_ref());
            let (stored, is_held) = shared.map_or((0, true), |shared| (shared.stored(), shared.is_held()));
            if stream == OWN && shared.is_some_and(|shared| !shared.is_held_in(owner)) {
                // Another server has taken it meanwhile.
                opening.events.clear();
                opening.over = None;
                return self.ask_opening(opening);
            }
            if stored > said {
                // It has grown while the store was asked.
                let request = StoreRequest::Read { session: digest, stream, after: said };
                if !self.wire.env.ask_store(request, Then::Opening(opening)) {
                    self.refuse_opening(x);
                }
                return;
            }
            if is_held {
                // What is read here is not sent again once the store replies to what added it.
                self.stream_has_grown(key, said);
            }
            return self.attach_shared(&opening, key);
        }
        if self.take_wait(x).is_none() {
            return;
        }
        self.wire.env.begin_events(x, Headers::new());
        self.send_stored(x, stream, opening.events);
        if is_over {
            self.wire.env.send(x, Outbound::End);
            return self.wire.env.end(x);
        }
        self.tail(x, Tail { session: digest, stream, said, owner, is_reading: false, has_grown: false });
    }

    /// Lets an exchange carry a stream of this server, after what the store has of it.
    fn attach_shared(&mut self, opening: &Opening, key: StreamKey) {
        let x = opening.x;
        if self.take_wait(x).is_none() {
            return;
        }
        if let Err(rejection) = self.wire.http.check_streams(&self.wire.env, x, key) {
            return self.wire.env.reject(x, None, 400, &rejection);
        }
        let is_fresh = opening.stream == OWN && opening.after.is_none();
        let events = opening.events.iter().map(|event| (event.number, event.data.clone())).collect();
        self.attach_with(x, key, events, is_fresh);
        self.wire.http.store_waiting(&mut self.wire.env, key);
    }

    fn send_stored(&mut self, x: ExchangeId, stream: u64, events: Vec<StoredEvent>) {
        if events.is_empty() {
            self.wire.env.send_comment(x);
        }
        for StoredEvent { number, data } in events {
            let id = Some(event_id(stream, number));
            self.wire.env.send(x, Outbound::Event { event: None, id, retry: None, data });
        }
    }
}

/// Streams of other servers.
impl Server {
    fn tail(&mut self, x: ExchangeId, tail: Tail) {
        if let Some(http) = self.wire.env.http(x) {
            http.stage = ResponseStage::Tailing;
        }
        self.wire.env.drop_head(x);
        self.wire.env.keep_alive_in(x, self.shared.config.keep_alive);
        self.wire.http.tails.insert(x, tail);
        self.tell_owner(x);
        self.wire.env.look_at_tails();
    }

    /// Tells the server of a stream that it is sent here.
    fn tell_owner(&mut self, x: ExchangeId) {
        let Some(by) = self.wire.env.node.as_ref().map(|node| node.tag()) else { return };
        let Some(Tail { session, stream, owner, .. }) = self.wire.http.tails.get(&x) else { return };
        let item = NodeItem::Tail { session: *session, stream: *stream, by };
        self.wire.env.ask_store(StoreRequest::Send { node: owner.node.tag(), item }, Then::Nothing);
    }

    /// A stream has got an event.
    pub(in crate::server) fn on_grown(&mut self, session: SessionDigest, stream: u64) {
        let tails = self.wire.http.tails.iter_mut();
        let grown = tails.filter(|(_, tail)| (tail.session, tail.stream) == (session, stream));
        let grown: Vec<ExchangeId> = grown
            .map(|(x, tail)| {
                tail.has_grown = true;
                *x
            })
            .collect();
        grown.into_iter().for_each(|x| self.read_tail(x));
    }

    /// The server that writes a stream, as the store says, does not have it. If it is over, the
    /// claim says so.
    pub(in crate::server) fn on_gone(&mut self, session: SessionDigest, stream: u64) {
        self.claim_lost(|tail| (tail.session, tail.stream) == (session, stream));
    }

    fn read_tail(&mut self, x: ExchangeId) {
        let is_behind = self.wire.env.unwritten(x) > self.shared.config.limits.server.max_unsent;
        let Some(tail) = self.wire.http.tails.get_mut(&x).filter(|tail| !tail.is_reading) else { return };
        tail.has_grown = is_behind;
        if is_behind {
            // Its client does not read: what follows is left in the store until it does.
            return;
        }
        tail.is_reading = true;
        let request = StoreRequest::Read { session: tail.session, stream: tail.stream, after: tail.said };
        if !self.wire.env.ask_store(request, Then::Tail(x)) {
            tail.is_reading = false;
        }
    }

    /// The store has returned events of a stream of another server.
    pub(in crate::server) fn tail_is_read(&mut self, x: ExchangeId, result: Result<StoreReply, StoreError>) {
        let Some(tail) = self.wire.http.tails.get_mut(&x) else { return };
        tail.is_reading = false;
        match result {
            Ok(StoreReply::Stream { events, owner, is_over }) => {
                let is_page = events.len() >= PAGE;
                tail.said = events.last().map_or(tail.said, |event| event.number);
                tail.owner = owner;
                let (stream, has_grown) = (tail.stream, tail.has_grown);
                if !events.is_empty() {
                    self.send_stored(x, stream, events);
                    self.wire.env.keep_alive_in(x, self.shared.config.keep_alive);
                }
                if is_over {
                    self.end_tail(x);
                } else if is_page || has_grown {
                    self.read_tail(x);
                }
            }
            Ok(StoreReply::Gap(before)) if before > tail.said => {
                // Its client reads too slowly: the store has dropped what is in between.
                tail.said = before;
                let why = "a client has not read events while the store kept them";
                self.wire.env.diagnose(DiagnosticKind::DroppedNotification, why);
                self.read_tail(x);
            }
            // It is not kept any more, or its session has ended.
            Ok(_) => self.end_tail(x),
            // It is read again soon.
            Err(_) => {}
        }
    }

    /// The client of a stream of another server has read something.
    pub(in crate::server) fn tail_is_written(&mut self, x: ExchangeId) {
        if self.wire.http.tails.get(&x).is_some_and(|tail| tail.has_grown) {
            self.read_tail(x);
        }
    }

    fn end_tail(&mut self, x: ExchangeId) {
        self.wire.env.send(x, Outbound::End);
        self.drop_exchange(x);
    }

    /// Looks whether the servers live whose streams are sent here, and have them, and reads the
    /// streams: what has told of their growth may be lost.
    pub(in crate::server) fn on_tails(&mut self) {
        let tailed: Vec<ExchangeId> = self.wire.http.tails.keys().copied().collect();
        let owners: BTreeSet<Incarnation> = self.wire.http.tails.values().map(|tail| tail.owner.node).collect();
        for x in tailed {
            self.read_tail(x);
            self.tell_owner(x);
        }
        for node in owners {
            self.wire.env.ask_store(StoreRequest::IsMember { node }, Then::IsMember(node));
        }
        if !self.wire.http.tails.is_empty() {
            self.wire.env.look_at_tails();
        }
    }

    /// The store knows whether a server lives. Streams of a lost one are ended here.
    pub(in crate::server) fn member_is_known(&mut self, node: Incarnation, result: Result<StoreReply, StoreError>) {
        let own = self.wire.env.node.as_ref().map(|node| node.own());
        // A stream of this server that it does not have is one that it has begun to end.
        if result == Ok(StoreReply::NoNode) || own == Some(node) {
            self.claim_lost(|tail| tail.owner.node == node);
        }
    }

    /// Claims streams that are sent here, and that no server writes.
    fn claim_lost(&mut self, is_lost: impl Fn(&Tail) -> bool) {
        let Some(own) = self.wire.env.node.as_ref().map(|node| node.own()) else { return };
        let lost = self.wire.http.tails.iter().filter(|(_, tail)| is_lost(tail));
        let lost: Vec<(ExchangeId, SessionDigest, u64, Epoch)> =
            lost.map(|(x, tail)| (*x, tail.session, tail.stream, tail.owner)).collect();
        for (x, session, stream, owner) in lost {
            let request = StoreRequest::Claim { session, stream, requests: Vec::new(), node: own, over: Some(owner) };
            self.wire.env.ask_store(request, Then::ClaimLost(x));
        }
    }

    /// This server ends a stream whose server is lost, or another one has.
    pub(in crate::server) fn lost_is_claimed(&mut self, x: ExchangeId, result: Result<StoreReply, StoreError>) {
        let Some(tail) = self.wire.http.tails.get_mut(&x) else { return };
        let (session, stream) = (tail.session, tail.stream);
        match result {
            Ok(StoreReply::Claimed { epoch, last, open, .. }) => {
                tail.owner = epoch;
                self.wire.env.diagnose(DiagnosticKind::NodeLost, "a request of it has no answer");
                let keep = self.shared.config.limits.server.history_keep;
                let events = lost_events(&open);
                let count = events.len();
                for ((data, number), nth) in events.into_iter().zip(last + 1..).zip(1..) {
                    let event = StoredEvent { number, data };
                    let last = (nth == count).then_some(keep);
                    let (keep, answers) = (self.shared.config.limits.server.history_events.max(1), None);
                    let append =
                        StoreRequest::Append { session, stream, epoch, event, is_sent: false, answers, keep, last };
                    self.wire.env.ask_store(append, Then::Nothing);
                }
                self.read_tail(x);
            }
            Ok(StoreReply::Owned(epoch)) => tail.owner = epoch,
            Ok(_) => self.read_tail(x),
            Err(_) => {}
        }
    }
}

impl ServerEnv {
    /// Sets the time of the next look at the streams of other servers.
    fn look_at_tails(&mut self) {
        if self.timers.get(ServerTimer::Tails).is_none() {
            self.timers.set(ServerTimer::Tails, Some(self.again(self.config.limits.server.node_renewal)));
        }
    }
}

/// Returns the stream and the number in the id of an event.
fn read_event_id(id: &str) -> Option<(u64, u64)> {
    let (stream, number) = id.strip_prefix('s')?.split_once('-')?;
    let (stream, number) = (stream.parse().ok()?, number.parse().ok()?);
    (event_id(stream, number) == id).then_some((stream, number))
}
