//! Notifications of changes: `subscriptions/listen` of 2026-07-28 on every transport, and the
//! unsolicited `list_changed` of the legacy revisions, on a duplex connection or on the session's
//! own stream. Each client receives one notification of a change. Changes that wait for room are
//! merged.

use super::client::{Bound, ClientKey};
use super::env::ServerEnv;
use super::keys::{ReplyTo, SessionRef, TaskKey};
use super::requests::Requests;
use super::responder::ResponderData;
use super::response::{ErrorReply, SerializedResponse};
use super::store::{SessionChange, TaskDigest};
use super::tasks::{TaskEntry, TaskRecord};
use super::watched::{WatchedResources, Watcher};
use super::weight;
use super::wire::Wire;
use crate::exchange::ExchangeId;
use crate::input::{Change, RequestKey, Watch};
use crate::model::lifecycle::meta;
use crate::rpc::{Id, Object, RawJson, notification, result_response};
use crate::version::ProtocolVersion;
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use bytes::Bytes;

/// The open subscriptions, and the number of changes.
pub(super) struct Listens {
    shared: Arc<ResponderData>,
    table: BTreeMap<RequestKey, Listen>,
    /// Number of published changes of lists.
    changes: u64,
    /// Their number when the server joined its store.
    at_join: Option<u64>,
    /// The number of the latest change of each list.
    latest: [u64; 3],
}

/// An open subscription.
#[derive(Debug)]
pub(super) struct Listen {
    exchange: ExchangeId,
    reply_to: ReplyTo,
    /// The client that it counts for.
    client: ClientKey,
    /// The memory that it holds, in bytes, as estimated.
    size: usize,
    /// The id of its request, which each of its notifications repeats.
    id: Id,
    version: ProtocolVersion,
    /// The lists whose changes it includes.
    lists: [bool; 3],
    /// The resources that it includes.
    watched: Option<Box<WatchedResources>>,
    /// The tasks that it includes, and the change of each that its client was notified of.
    tasks: BTreeMap<TaskKey, u64>,
    /// The tasks of the store that it includes, and the version of each that its client has got.
    stored: BTreeMap<TaskDigest, u64>,
    /// Number of changes of lists that its client was notified of.
    told: u64,
}

/// The notifications of changed lists: of tools, of prompts, of resources.
const LISTS: [&str; 3] =
    ["notifications/tools/list_changed", "notifications/prompts/list_changed", "notifications/resources/list_changed"];
const UPDATED: &str = "notifications/resources/updated";
const TASK: &str = "notifications/tasks";

/// A request for a subscription.
pub(super) struct SubscriptionRequest {
    pub(super) exchange: ExchangeId,
    pub(super) id: Id,
    pub(super) version: ProtocolVersion,
    /// What it includes: only what the server announces.
    pub(super) filter: Watch,
    /// Where its request is answered, if that is open.
    pub(super) reply_to: Option<ReplyTo>,
}

impl Listen {
    /// Releases its amounts of the shared limits.
    fn give_back(&self, env: &mut ServerEnv, key: RequestKey) {
        if let Some(watched) = &self.watched {
            env.watched.forget(watched, Watcher::Listen(key));
        }
        self.tasks.keys().for_each(|task| env.tasks.unwatch(*task, key));
        self.stored.keys().for_each(|task| env.unwatch_stored_task(*task, key));
        env.shares.give_back(self.client, Bound::RunningBytes, self.size);
        env.shares.give_back(self.client, Bound::Streams, 1);
    }
}

impl Listens {
    pub(super) fn new(shared: Arc<ResponderData>) -> Self {
        Self { shared, table: BTreeMap::new(), changes: 0, at_join: None, latest: [0; 3] }
    }

    /// Returns the number of open subscriptions.
    pub(super) fn len(&self) -> usize {
        self.table.len()
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// Returns the number of published changes of lists.
    pub(super) const fn changes(&self) -> u64 {
        self.changes
    }

    /// The server has joined its store, for the first time or again.
    pub(super) fn has_joined(&mut self) {
        self.at_join.get_or_insert(self.changes);
    }

    /// Returns the number of changes before the server joined its store. A session that it loads
    /// later may have been without a listener since.
    pub(super) fn changes_at_join(&self) -> u64 {
        self.at_join.unwrap_or_default()
    }

    /// Removes everything, since the server terminates.
    pub(super) fn clear(&mut self) {
        self.table.clear();
    }

    /// Notifies the clients of a change. Returns false, and does nothing, unless the server
    /// declares that it does.
    pub(super) fn publish(&mut self, wire: &mut Wire, change: Change) -> bool {
        let declared = &wire.env.config.capabilities;
        let (list, is_declared) = match change {
            Change::Tools => (0, declared.announces_tools()),
            Change::Prompts => (1, declared.announces_prompts()),
            Change::Resources => (2, declared.announces_resources()),
            Change::Resource(uri) => {
                let is_declared = declared.watches_resources();
                if is_declared {
                    self.publish_update(wire, &uri.into());
                }
                return is_declared;
            }
        };
        if !is_declared {
            return false;
        }
        self.changes += 1;
        self.latest[list] = self.changes;
        let watchers: Vec<ExchangeId> = wire.env.watchers.iter().copied().collect();
        watchers.into_iter().for_each(|x| self.tell_changes(wire, x));
        true
    }

    /// Notifies the clients of everything that they watch: any of it may have changed.
    pub(super) fn publish_all(&mut self, wire: &mut Wire) {
        let watched: Vec<String> = wire.env.watched.uris().map(Into::into).collect();
        let lists = [Change::Tools, Change::Prompts, Change::Resources];
        for change in lists.into_iter().chain(watched.into_iter().map(Change::Resource)) {
            self.publish(wire, change);
        }
    }

    /// Notifies the clients that watch a resource, or one that it is a part of.
    fn publish_update(&mut self, wire: &mut Wire, uri: &Arc<str>) {
        let max = wire.env.config.limits.server.max_watched;
        let mut carriers = BTreeSet::new();
        for (watcher, whole) in wire.env.watched.of(uri) {
            match watcher {
                Watcher::Session(session_ref) => {
                    if let Some(session) = wire.session_mut(session_ref) {
                        session.watched_mut().mark(uri, &whole, max);
                    }
                    carriers.extend(wire.carrier(session_ref));
                }
                Watcher::Listen(key) => {
                    let Some(listen) = self.table.get_mut(&key) else { continue };
                    listen.watched.iter_mut().for_each(|watched| watched.mark(uri, &whole, max));
                    carriers.insert(listen.exchange);
                }
            }
        }
        carriers.into_iter().for_each(|x| self.tell_changes(wire, x));
    }

    /// The client is initialized: it receives notifications of changes from now on.
    pub(super) fn session_is_ready(&mut self, wire: &mut Wire, session_ref: SessionRef) {
        let Some(session) = wire.session_mut(session_ref) else { return };
        let was_ready = session.is_ready();
        session.set_ready();
        if !was_ready {
            wire.note_change(session_ref, SessionChange::Ready);
        }
        if let SessionRef::Duplex(x) = session_ref {
            wire.env.watchers.insert(x);
        }
        wire.carrier(session_ref).into_iter().for_each(|x| self.tell_changes(wire, x));
    }

    /// Sends pending notifications of changes on an exchange, as far as there is room.
    pub(super) fn tell_changes(&mut self, wire: &mut Wire, x: ExchangeId) {
        let Some(exchange) = wire.env.exchanges.get(&x) else { return };
        let subscriptions: Vec<RequestKey> = exchange.listens.iter().copied().collect();
        for key in subscriptions {
            self.tell_subscription(wire, key);
        }
        let Some((session_ref, reply_to)) = wire.target_of_changes(x) else { return };
        let announced = wire.session(session_ref).and_then(|session| session.needs_announcement(self.changes));
        if let Some(announced) = announced {
            let notes = self.notes(announced, [true; 3], None);
            if !has_room(wire, reply_to, &notes) {
                return;
            }
            if let Some(session) = wire.session_mut(session_ref) {
                session.announce(self.changes);
            }
            notes.into_iter().for_each(|note| wire.send(reply_to, note));
        }
        while let Some(uri) = wire.session(session_ref).and_then(|session| session.update()) {
            let note = notification(UPDATED, Some(&Object::new().with("uri", &**uri)));
            if !wire.has_room(reply_to, note.len()) {
                return;
            }
            if let Some(session) = wire.session_mut(session_ref) {
                session.watched_mut().told();
            }
            wire.send(reply_to, note);
        }
    }

    pub(super) fn tell_subscription(&mut self, wire: &mut Wire, key: RequestKey) {
        let Some(listen) = self.table.get(&key) else { return };
        let reply_to = listen.reply_to;
        if listen.told < self.changes {
            let notes = self.notes(listen.told, listen.lists, Some(&listen.id));
            if !has_room(wire, reply_to, &notes) {
                return;
            }
            if let Some(listen) = self.table.get_mut(&key) {
                listen.told = self.changes;
            }
            notes.into_iter().for_each(|note| wire.send(reply_to, note));
        }
        while let Some(listen) = self.table.get_mut(&key)
            && let Some(watched) = &mut listen.watched
            && let Some(uri) = watched.update()
        {
            let params = Object::new().with(meta::META, subscription(&listen.id)).with("uri", &**uri);
            let note = notification(UPDATED, Some(&params));
            if !wire.has_room(reply_to, note.len()) {
                return;
            }
            watched.told();
            wire.send(reply_to, note);
        }
        self.tell_tasks_of(wire, key, reply_to);
    }

    /// Sends the state of the tasks of a subscription that have changed, as far as there is room.
    fn tell_tasks_of(&mut self, wire: &mut Wire, key: RequestKey, reply_to: ReplyTo) {
        let Some(listen) = self.table.get_mut(&key) else { return };
        let id = subscription(&listen.id);
        for (key, told) in &mut listen.tasks {
            let is_news = |task: &&TaskEntry| task.changes > *told && wire.env.shows_task(task);
            let Some(task) = wire.env.tasks.get(*key).filter(is_news) else { continue };
            let note = notification(TASK, Some(&task.detailed().with(meta::META, &id)));
            let changes = task.changes;
            if !wire.has_room(reply_to, note.len()) {
                return;
            }
            *told = changes;
            wire.send(reply_to, note);
        }
    }

    /// The store has this version of a task that a subscription includes. A client that has no room
    /// for it gets it later.
    pub(super) fn tell_stored(
        &mut self,
        wire: &mut Wire,
        key: RequestKey,
        (task, version): (TaskDigest, u64),
        record: &TaskRecord,
    ) {
        let Some(listen) = self.table.get_mut(&key) else { return };
        let is_own = record.owner == wire.env.rights(listen.exchange).principal;
        let note = || {
            let state = TaskEntry::view(record).detailed();
            notification(TASK, Some(&state.with(meta::META, subscription(&listen.id))))
        };
        if let Some(told) = listen.stored.get_mut(&task).filter(|told| is_own && **told != version) {
            let note = note();
            if !wire.has_room(listen.reply_to, note.len()) {
                return;
            }
            *told = version;
            wire.send(listen.reply_to, note);
        }
        if !is_own || record.has_ended() {
            self.forget_stored(&mut wire.env, key, task);
        }
    }

    /// A subscription does not include a task of the store any more.
    pub(super) fn forget_stored(&mut self, env: &mut ServerEnv, key: RequestKey, task: TaskDigest) {
        if let Some(listen) = self.table.get_mut(&key) {
            listen.stored.remove(&task);
        }
        env.unwatch_stored_task(task, key);
    }

    /// A task leaves this server: the subscriptions that include it read it in the store from now
    /// on.
    pub(super) fn watch_in_store(&mut self, env: &mut ServerEnv, key: TaskKey) {
        for by in env.tasks.watchers(key) {
            let Some(listen) = self.table.get_mut(&by) else { continue };
            let (Some(told), Some(task)) = (listen.tasks.remove(&key), env.tasks.get(key)) else { continue };
            let (id, version) = (task.id.clone(), if told == task.changes { task.stored_version() } else { 0 });
            let is_over = task.has_ended() && told == task.changes;
            env.tasks.unwatch(key, by);
            if !is_over {
                let task = env.watch_stored_task(&id, by);
                listen.stored.insert(task, version);
                env.read_watched_task(task);
            }
        }
    }

    /// Returns the notifications of the lists that have changed after change number `told`, one for
    /// each of them. `id`: the subscription that they belong to.
    fn notes(&self, told: u64, lists: [bool; 3], id: Option<&Id>) -> Vec<Bytes> {
        let changed = LISTS.into_iter().zip(self.latest).zip(lists);
        let changed = changed.filter(|((_, latest), is_included)| *is_included && *latest > told);
        let params = id.map(|id| Object::new().with(meta::META, subscription(id)));
        changed.map(|((method, _), _)| notification(method, params.as_ref())).collect()
    }

    /// Opens a subscription (2026-07-28 subscriptions). The acknowledgement names the notifications
    /// that the engine will send. It omits those that the engine does not announce.
    pub(super) fn open(
        &mut self,
        wire: &mut Wire,
        requests: &mut Requests,
        wanted: SubscriptionRequest,
    ) -> Result<(), ErrorReply> {
        let SubscriptionRequest { exchange: x, id, version, filter, reply_to } = wanted;
        let here = wire.env.exchanges.get(&x).map_or(0, |exchange| exchange.listens.len());
        if here >= wire.env.config.limits.server.max_streams_per_client {
            return Err(ErrorReply::full("there are too many streams"));
        }
        let watched: usize = filter.uris.iter().chain(&filter.tasks).map(|name| weight::of_watched(name)).sum();
        let size = weight::of_listen(&id, size_of::<(RequestKey, Listen)>()) + watched;
        let client = wire.env.client_on(x, None);
        wire.env.check_share(&client, Bound::Streams, 1).map_err(|full| full.reject("there are too many streams"))?;
        requests
            .make_room(wire, &client, Bound::RunningBytes, size)
            .map_err(|full| full.reject("the server has no room for the stream"))?;
        let params = Object::new().with(meta::META, subscription(&id)).with("notifications", filter.write());
        let key = requests.mint_key();
        let client = wire.env.shares.take(&client, Bound::Streams, 1);
        wire.env.shares.add(client, Bound::RunningBytes, size);
        let reply_to = reply_to.unwrap_or_else(|| wire.open_target(x, version));
        let lists = [filter.tools, filter.prompts, filter.resources];
        let mut watched = WatchedResources::default();
        for uri in &filter.uris {
            watched.insert(&mut wire.env.watched, uri, Watcher::Listen(key), 0);
        }
        let watched = (!filter.uris.is_empty()).then(|| Box::new(watched));
        let told = self.changes;
        let (tasks, stored) = wire.env.watched_tasks(key, &filter);
        let to_read: Vec<TaskDigest> = stored.keys().copied().collect();
        let id_ = id.clone();
        let listen =
            Listen { exchange: x, reply_to, client, size, id: id_, version, lists, watched, tasks, stored, told };
        self.table.insert(key, listen);
        if let Some(exchange) = wire.env.exchanges.get_mut(&x) {
            exchange.listens.insert(key);
        }
        if let Some(session) = wire.session_mut(SessionRef::Duplex(x)) {
            session.insert(id, key);
        }
        wire.env.watchers.insert(x);
        wire.env.end_with_token(x);
        wire.send(reply_to, notification("notifications/subscriptions/acknowledged", Some(&params)));
        wire.env.drop_head(x);
        self.tell_subscription(wire, key);
        to_read.into_iter().for_each(|task| wire.env.read_watched_task(task));
        Ok(())
    }

    /// Removes a subscription without a message. Returns false if there is none with this key.
    pub(super) fn forget(&mut self, wire: &mut Wire, key: RequestKey) -> bool {
        let Some(listen) = self.table.remove(&key) else { return false };
        listen.give_back(&mut wire.env, key);
        if let Some(exchange) = wire.env.exchanges.get_mut(&listen.exchange) {
            exchange.listens.remove(&key);
        }
        if let Some(session) = wire.session_mut(SessionRef::Duplex(listen.exchange)) {
            session.remove(&listen.id);
        }
        true
    }

    /// Ends every subscription with its result.
    pub(super) fn end_all(&mut self, wire: &mut Wire) {
        let open: Vec<RequestKey> = self.table.keys().copied().collect();
        open.into_iter().for_each(|key| self.end(wire, key));
    }

    /// Ends a subscription: sends its result, and on a duplex connection `notifications/cancelled`
    /// (2026-07-28 cancellation).
    pub(super) fn end(&mut self, wire: &mut Wire, key: RequestKey) {
        let Some(listen) = self.table.remove(&key) else { return };
        listen.give_back(&mut wire.env, key);
        let Listen { exchange: x, reply_to, id, version, .. } = listen;
        if let Some(exchange) = wire.env.exchanges.get_mut(&x) {
            exchange.listens.remove(&key);
        }
        let result = Object::new().with(meta::META, subscription(&id));
        let result = result_response(&id, &self.shared.complete(version, "subscriptions/listen", result, "complete"));
        let reply = SerializedResponse::new(result, None);
        wire.reply(reply_to, reply);
        if let Some(session) = wire.session_mut(SessionRef::Duplex(x)) {
            session.remove(&id);
            let params = Object::new().with("requestId", &id);
            wire.send(reply_to, notification("notifications/cancelled", Some(&params)));
        }
    }
}

/// Returns whether all these messages can be sent now.
fn has_room(wire: &Wire, reply_to: ReplyTo, notes: &[Bytes]) -> bool {
    notes.is_empty() || wire.has_room(reply_to, notes.iter().map(Bytes::len).sum())
}

/// Returns the metadata by which a client tells its subscriptions apart.
fn subscription(id: &Id) -> RawJson {
    Object::new().with(meta::SUBSCRIPTION_ID, id).into()
}
