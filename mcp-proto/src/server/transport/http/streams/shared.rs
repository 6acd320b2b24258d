//! The streams of sessions that several servers share. Each is written by one server at a time: it
//! claims the stream when its first event is there, and sends an event once the store has it. A
//! server that has lost its claim sends nothing more.

mod replies;

use super::super::history::{OVERHEAD, event_id};
use super::{HttpState, ResponseStream};
use crate::error::DiagnosticKind;
use crate::exchange::{ExchangeId, Outbound};
use crate::limits::ServerLimits;
use crate::rpc::{ErrorObject, Id, Message, Object, RawJson, code, error_response, parse};
use crate::server::env::ServerEnv;
use crate::server::keys::StreamKey;
use crate::server::store::{
    Durability, Epoch, NodeItem, NodeTag, RequestDigest, SessionDigest, StoreRequest, StoredEvent, Then,
};
use alloc::collections::{BTreeSet, VecDeque};
use alloc::vec::Vec;
use bytes::Bytes;
use core::mem::take;
use core::time::Duration;

/// The number of the own stream of a session.
pub(in super::super) const OWN: u64 = 0;

/// The error of a request whose server does not run it any more.
const LOST: &str = "the node that ran this request was lost";

/// The number of events of a stream that may wait for the store while its client is elsewhere.
const WAITING: usize = 100;

/// What the store has of a stream, and what it does not have yet.
#[derive(Debug)]
pub(in crate::server) struct SharedStream {
    claim: StreamClaim,
    /// The ids of the requests that it answers, as JSON.
    requests: Vec<Bytes>,
    /// The number of the last event that the store has.
    stored: u64,
    /// The events that it does not have.
    waiting: VecDeque<WaitingEvent>,
    /// The servers that send it to its client as well.
    tails: BTreeSet<NodeTag>,
    /// Its exchange ends when nothing waits.
    closes: bool,
    kept: KeptEvents,
}

/// The newest events of a stream that this server has added, as far as the store keeps them.
#[derive(Debug, Default)]
struct KeptEvents {
    sizes: VecDeque<usize>,
    bytes: usize,
    /// There were older ones, which are not kept.
    are_rest: bool,
}

impl KeptEvents {
    /// Adds one of this size. Returns the number of the newest events that the store keeps from now
    /// on, within the limits of a history. The events of another server have no sizes here: they
    /// are kept until there is no room for those of this one.
    fn add(&mut self, size: usize, limits: &ServerLimits) -> usize {
        self.sizes.push_back(size);
        self.bytes += size;
        let is_too_much = |kept: &Self| kept.sizes.len() > limits.history_events || kept.bytes > limits.history_bytes;
        while self.sizes.len() > 1 && is_too_much(self) {
            self.bytes -= self.sizes.pop_front().unwrap_or_default();
            self.are_rest = true;
        }
        if self.are_rest { self.sizes.len() } else { limits.history_events.max(1) }
    }
}

/// Whether this server may write a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum StreamClaim {
    None,
    Asked,
    Held(Epoch),
    /// Another server has the own stream of the session: it gets the messages.
    Elsewhere(Epoch),
}

#[derive(Debug)]
struct WaitingEvent {
    retry: Option<Duration>,
    data: Bytes,
    is_last: bool,
    /// Where the store was asked to keep it. It may be there until the store says something else,
    /// even after another server has taken the stream.
    place: Option<Place>,
    /// The number of events that the store keeps with it.
    keep: usize,
    /// The store has not replied yet.
    is_asked: bool,
    /// The store has one like it at its place. This says nothing of the events before it: another
    /// server that has taken the stream may have added it.
    is_stored: bool,
    /// It was sent before the store has it.
    is_sent: bool,
}

/// The place of an event in a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::server) struct Place {
    epoch: Epoch,
    number: u64,
}

impl WaitingEvent {
    const fn new(retry: Option<Duration>, data: Bytes, is_last: bool) -> Self {
        Self { retry, data, is_last, place: None, keep: 0, is_asked: false, is_stored: false, is_sent: false }
    }
}

/// What follows once the store has events.
enum GrowthOutcome {
    Nothing,
    /// The stream has ended.
    Over,
    /// This exchange ends before the stream.
    Closes(ExchangeId),
}

impl SharedStream {
    pub(super) fn new() -> Self {
        Self {
            claim: StreamClaim::None,
            requests: Vec::new(),
            stored: 0,
            waiting: VecDeque::new(),
            tails: BTreeSet::new(),
            closes: false,
            kept: KeptEvents::default(),
        }
    }

    /// Returns whether the store lacks events of it.
    pub(super) fn waits(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Returns the number of the last event that the store has.
    pub(in super::super) const fn stored(&self) -> u64 {
        self.stored
    }

    /// This server may write the stream, which has events up to this one. Returns whether it could
    /// before: some of them may be waiting here for the reply of the store.
    pub(in super::super) fn hold(&mut self, epoch: Epoch, last: u64) -> bool {
        if self.claim == StreamClaim::Held(epoch) {
            return true;
        }
        (self.claim, self.stored) = (StreamClaim::Held(epoch), last);
        false
    }

    /// Returns whether this server may write the stream, as far as it knows.
    pub(in super::super) const fn is_held(&self) -> bool {
        matches!(self.claim, StreamClaim::Held(_))
    }

    /// Returns whether this server may write the stream in this epoch.
    pub(in super::super) fn is_held_in(&self, epoch: Epoch) -> bool {
        self.claim == StreamClaim::Held(epoch)
    }

    /// Returns the epoch of another server that has taken the stream since this one.
    pub(in super::super) fn taken_since(&self, epoch: Epoch) -> Option<Epoch> {
        match self.claim {
            StreamClaim::Elsewhere(newer) if newer.number > epoch.number => Some(newer),
            _ => None,
        }
    }

    /// Another server takes this one for that which has the stream. The store tells which one has
    /// it: if each server believed what it knows, a message could go in a circle.
    fn doubt(&mut self) {
        if let StreamClaim::Elsewhere(_) = self.claim {
            self.claim = StreamClaim::None;
        }
    }

    /// The store has the event of this place.
    fn note_stored(&mut self, place: Place) {
        if let Some(event) = self.waiting.iter_mut().find(|event| event.place == Some(place)) {
            event.is_stored = true;
        }
    }

    /// The store has an event that was added when this server had the stream before. Forgets it,
    /// once the store has all before it, and returns the bytes: the server that has the stream
    /// sends them.
    fn take_stored(&mut self, place: Place) -> usize {
        self.note_stored(place);
        let stored = self.waiting.iter().take_while(|event| event.is_stored).count();
        self.waiting.drain(..stored).map(|event| event.data.len()).sum()
    }

    /// The store does not have the event of this place, nor what was to follow it.
    fn unplace(&mut self, place: Place) {
        let after = |event: &&mut WaitingEvent| {
            event.place.is_some_and(|other| other.epoch == place.epoch && other.number >= place.number)
        };
        for event in self.waiting.iter_mut().filter(after) {
            (event.place, event.is_asked, event.is_stored) = (None, false, false);
        }
    }
}

impl ResponseStream {
    /// Returns whether another server sends it to its client, and the store takes more.
    pub(in crate::server) fn is_sent_elsewhere(&self) -> bool {
        self.shared.as_ref().is_some_and(|shared| !shared.tails.is_empty() && shared.waiting.len() < WAITING)
    }

    /// Returns whether it waits for the store to have all of it.
    pub(super) fn is_being_stored(&self) -> bool {
        self.shared.as_ref().is_some_and(|shared| shared.waits())
    }
}

/// Returns the digest of the id of a request.
fn request_digest(id: &Id) -> RequestDigest {
    RequestDigest::of(&id_json(id))
}

fn id_json(id: &Id) -> Bytes {
    let json = Object::new().with("id", id).get("id");
    json.map_or_else(Bytes::new, |json| Bytes::copy_from_slice(json.as_bytes()))
}

/// Returns the request that a message answers.
fn answered(message: &Bytes) -> Option<RequestDigest> {
    match parse(message.clone(), u32::MAX) {
        Ok(Message::Response(response)) => Some(request_digest(&response.id)),
        Ok(_) | Err(_) => None,
    }
}

impl HttpState {
    /// A stream answers this request.
    pub(in crate::server) fn answers_request(&mut self, key: StreamKey, id: &Id) {
        if let Some(shared) = self.streams.get_mut(&key).and_then(|stream| stream.shared.as_mut()) {
            shared.requests.push(id_json(id));
        }
    }

    fn shared_mut(&mut self, key: StreamKey) -> Option<&mut SharedStream> {
        self.streams.get_mut(&key)?.shared.as_deref_mut()
    }

    fn digest_of(&self, key: StreamKey) -> Option<SessionDigest> {
        let session = self.http_session(self.streams.get(&key)?.session?)?;
        Some(SessionDigest(session.digest))
    }

    /// Adds an event to a stream that servers share. Returns false if it is another one.
    pub(super) fn append_shared(
        &mut self,
        env: &mut ServerEnv,
        key: StreamKey,
        retry: Option<Duration>,
        data: &Bytes,
        is_last: bool,
    ) -> bool {
        let max = env.config.limits.server.max_store_bytes;
        let Some(stream) = self.streams.get_mut(&key) else { return false };
        let (number, is_own, exchange) = (stream.number, stream.is_own, stream.exchange);
        let Some(shared) = &mut stream.shared else { return false };
        let mut event = WaitingEvent::new(retry, data.clone(), is_last);
        let is_answer = is_last || answered(data).is_some();
        if !is_answer && env.held_for_store().saturating_add(data.len()) > max {
            env.diagnose(DiagnosticKind::DroppedNotification, "the store does not reply");
            return true;
        }
        // The numbers of a request's stream begin with 1 at every server.
        let is_numbered = matches!(shared.claim, StreamClaim::Held(_)) || !is_own;
        if let Some(x) = exchange.filter(|_| is_numbered && env.config.durability == Durability::Behind) {
            let at = shared.stored + shared.waiting.len() as u64 + 1;
            let id = Some(event_id(number, at));
            (event.is_sent, stream.said) = (true, Some(at));
            env.send_on_stream(x, Outbound::Event { event: None, id, retry, data: data.clone() });
        }
        env.hold_for_store(data.len());
        shared.waiting.push_back(event);
        self.store_waiting(env, key);
        true
    }

    /// Everything of a stream was sent, but for what waits for the store. Returns false if it is
    /// not shared.
    pub(super) fn finish_shared(&mut self, env: &mut ServerEnv, key: StreamKey) -> bool {
        let Some(stream) = self.streams.get_mut(&key) else { return false };
        let is_over = core::mem::replace(&mut stream.is_over, true);
        if stream.shared.is_none() {
            stream.is_over = is_over;
            return false;
        }
        if !is_over {
            self.append_shared(env, key, None, &Bytes::new(), true);
        }
        true
    }

    /// Claims a stream that has lasted for some time, so that other servers know who runs its
    /// requests. Returns whether its response does not become a stream of events now.
    pub(in super::super) fn claim_late(&mut self, env: &mut ServerEnv, key: StreamKey, x: ExchangeId) -> bool {
        let Some(stream) = self.streams.get(&key) else { return false };
        let (can_stream, is_primed) = (stream.can_stream, stream.is_primed());
        let Some(StreamClaim::None) = stream.shared.as_ref().map(|shared| shared.claim) else { return false };
        self.claim_stream(env, key, None);
        if can_stream && !is_primed {
            env.keep_alive_in(x, env.config.keep_alive);
        }
        !can_stream || !is_primed
    }

    /// A stream was answered as a whole. If it was claimed, it ends in the store too, and stays
    /// until that is done. Returns false otherwise.
    pub(super) fn end_claim(&mut self, env: &mut ServerEnv, key: StreamKey) -> bool {
        let Some(stream) = self.streams.get_mut(&key) else { return false };
        let Some(StreamClaim::Asked | StreamClaim::Held(_)) = stream.shared.as_ref().map(|shared| shared.claim) else {
            return false;
        };
        (stream.exchange, stream.is_over) = (None, true);
        self.append_shared(env, key, None, &Bytes::new(), true)
    }

    fn claim_stream(&mut self, env: &mut ServerEnv, key: StreamKey, over: Option<Epoch>) {
        let Some(session) = self.digest_of(key) else { return };
        let Some(node) = env.node.as_ref().map(|node| node.own()) else { return };
        let Some(stream) = self.streams.get_mut(&key) else { return };
        let number = stream.number;
        let Some(shared) = &mut stream.shared else { return };
        let requests = shared.requests.clone();
        let request = StoreRequest::Claim { session, stream: number, requests, node, over };
        shared.claim = StreamClaim::Asked;
        if !env.ask_store(request, Then::Claim(key)) {
            shared.claim = StreamClaim::None;
            env.stall(key);
        }
    }

    /// Asks the store to keep what waits.
    pub(in super::super) fn store_waiting(&mut self, env: &mut ServerEnv, key: StreamKey) {
        let Some(claim) = self.shared_mut(key).filter(|shared| shared.waits()).map(|shared| shared.claim) else {
            return;
        };
        if env.node.as_ref().is_none_or(|node| !node.may_send()) {
            return env.stall(key);
        }
        match claim {
            StreamClaim::None => self.claim_stream(env, key, None),
            StreamClaim::Asked => {}
            StreamClaim::Held(epoch) => self.append_waiting(env, key, epoch),
            StreamClaim::Elsewhere(epoch) => self.pass_on(env, key, epoch),
        }
    }

    fn append_waiting(&mut self, env: &mut ServerEnv, key: StreamKey, epoch: Epoch) {
        let keep = env.config.limits.server.history_keep;
        let Some(session) = self.digest_of(key) else { return };
        let Some(stream) = self.streams.get_mut(&key) else { return };
        let (number, is_sent) = (stream.number, stream.exchange.is_some());
        let Some(shared) = &mut stream.shared else { return };
        for (event, nth) in shared.waiting.iter_mut().zip(shared.stored + 1..) {
            let place = *event.place.get_or_insert_with(|| {
                event.keep = shared.kept.add(event.data.len() + OVERHEAD, &env.config.limits.server);
                Place { epoch, number: nth }
            });
            if !event.is_asked {
                let stored = StoredEvent { number: place.number, data: event.data.clone() };
                let (answers, last) = (answered(&event.data), event.is_last.then_some(keep));
                let (epoch, keep) = (place.epoch, event.keep);
                let request = StoreRequest::Append {
                    session,
                    stream: number,
                    epoch,
                    event: stored,
                    is_sent,
                    answers,
                    keep,
                    last,
                };
                if !env.ask_store(request, Then::Append(key, place)) {
                    return env.stall(key);
                }
                event.is_asked = true;
            }
            if place.epoch != epoch {
                // Its reply says what the others follow.
                return;
            }
        }
    }

    /// Passes the messages of the own stream of a session on to the server that has it.
    fn pass_on(&mut self, env: &mut ServerEnv, key: StreamKey, epoch: Epoch) {
        let Some(session) = self.digest_of(key) else { return };
        if self.shared_mut(key).is_some_and(|shared| shared.waiting.front().is_some_and(|first| first.place.is_some()))
        {
            // It may be in the store: its reply tells.
            return self.append_waiting(env, key, epoch);
        }
        let Some(shared) = self.shared_mut(key) else { return };
        for event in take(&mut shared.waiting) {
            env.release_for_store(event.data.len());
            if event.data.is_empty() {
                continue;
            }
            let item = NodeItem::Own { session, message: event.data.clone() };
            let request = StoreRequest::Send { node: epoch.node.tag(), item };
            if !env.ask_store(request, Then::PassOn(key, event.data)) {
                env.diagnose(DiagnosticKind::DroppedNotification, "the store does not reply");
            }
        }
    }

    /// The store has the events of a stream up to this one: they are sent, and those that follow
    /// and that it has as well.
    fn grow(&mut self, env: &mut ServerEnv, key: StreamKey, number: u64) -> GrowthOutcome {
        let Some(session) = self.digest_of(key) else { return GrowthOutcome::Nothing };
        let Some(stream) = self.streams.get_mut(&key) else { return GrowthOutcome::Nothing };
        let Some(shared) = &mut stream.shared else { return GrowthOutcome::Nothing };
        let (before, mut is_last) = (shared.stored, false);
        while (shared.stored < number || shared.waiting.front().is_some_and(|next| next.is_stored))
            && let Some(event) = shared.waiting.pop_front()
        {
            shared.stored += 1;
            is_last |= event.is_last;
            env.release_for_store(event.data.len());
            let Some(x) = stream.exchange.filter(|_| !event.is_sent) else { continue };
            let id = Some(event_id(stream.number, shared.stored));
            stream.said = Some(shared.stored);
            env.send_on_stream(x, Outbound::Event { event: None, id, retry: event.retry, data: event.data });
        }
        for tail in shared.tails.iter().filter(|_| shared.stored > before) {
            let item = NodeItem::Grown { session, stream: stream.number };
            env.ask_store(StoreRequest::Send { node: *tail, item }, Then::Nothing);
        }
        match stream.exchange {
            _ if is_last => GrowthOutcome::Over,
            Some(x) if shared.closes && !shared.waits() => {
                shared.closes = false;
                GrowthOutcome::Closes(x)
            }
            _ => GrowthOutcome::Nothing,
        }
    }

    /// Ends the exchange of a stream once the store has everything, so that its client resumes it.
    /// Returns false if the stream is not shared.
    pub(super) fn close_shared(&mut self, key: StreamKey) -> bool {
        let Some(shared) = self.shared_mut(key) else { return false };
        shared.closes = true;
        true
    }

    /// Sends what waits for the store, since the stream ends. It has no ids, for it cannot be
    /// resumed. The own stream of a session can: another server sends its messages.
    pub(super) fn send_waiting(&mut self, env: &mut ServerEnv, key: StreamKey, x: ExchangeId) {
        let Some(stream) = self.streams.get(&key).filter(|stream| !stream.is_own) else { return };
        let waiting = stream.shared.iter().flat_map(|shared| &shared.waiting);
        for event in waiting.filter(|event| !event.is_sent && !event.data.is_empty()) {
            env.send_on_stream(x, Outbound::Event { event: None, id: None, retry: None, data: event.data.clone() });
        }
    }

    /// Forgets what waits for the store.
    pub(super) fn forget_waiting(&mut self, env: &mut ServerEnv, key: StreamKey) {
        if let Some(shared) = self.shared_mut(key) {
            take(&mut shared.waiting).iter().for_each(|event| env.release_for_store(event.data.len()));
        }
    }

    /// Returns the streams that this server may write.
    fn held(&self) -> Vec<StreamKey> {
        let is_held = |stream: &ResponseStream| {
            matches!(stream.shared.as_ref().map(|shared| shared.claim), Some(StreamClaim::Held(_)))
        };
        self.streams.iter().filter(|(_, stream)| is_held(stream)).map(|(key, _)| *key).collect()
    }
}

/// Returns the events that end a stream whose server is lost: an error for each request without an
/// answer.
pub(in super::super) fn lost_events(open: &[Bytes]) -> Vec<Bytes> {
    let error = ErrorObject::new(code::INTERNAL_ERROR, LOST);
    let id = |json: &Bytes| Object::new().with("id", RawJson::parse(json.to_vec()).ok()?).id("id");
    let errors: Vec<Bytes> = open.iter().filter_map(id).map(|id| error_response(Some(&id), &error)).collect();
    if errors.is_empty() { alloc::vec![Bytes::new()] } else { errors }
}
