//! Notifications of changes: `subscriptions/listen` of 2026-07-28 on every transport, and the
//! unsolicited `list_changed` of the legacy revisions, on a duplex connection or on the session's
//! own stream. Each client receives one notification of a change. Changes that wait for room are
//! merged.

use super::client::{Bound, ClientKey};
use super::env::Env;
use super::keys::{ReplyTo, SessionRef};
use super::requests::Requests;
use super::responder::Shared;
use super::response::{ErrorReply, SerializedResponse};
use super::transport::HttpState;
use super::{ServerConfig, weight};
use crate::exchange::ExchangeId;
use crate::input::{Change, RequestKey};
use crate::model::lifecycle::meta;
use crate::rpc::{Id, Object, RawJson, notification, result_response};
use crate::version::ProtocolVersion;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// The open subscriptions, and the number of changes.
pub(super) struct Listens {
    shared: Arc<Shared>,
    table: BTreeMap<RequestKey, Listen>,
    /// Number of published changes of the list of tools.
    changes: u64,
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
    /// Whether it includes changes of the list of tools.
    tools: bool,
    /// Number of changes that its client was notified of.
    told: u64,
}

const TOOLS: &str = "notifications/tools/list_changed";
const TOOLS_FILTER: &str = "toolsListChanged";

/// A request for a subscription.
pub(super) struct Wanted {
    exchange: ExchangeId,
    id: Id,
    version: ProtocolVersion,
    /// Whether it includes changes of the list of tools, and the server announces them.
    tools: bool,
}

impl Wanted {
    pub(super) fn read(
        config: &ServerConfig,
        exchange: ExchangeId,
        id: Id,
        params: &Object,
        version: ProtocolVersion,
    ) -> Result<Self, ErrorReply> {
        let filter = params.object("notifications").map_err(|e| ErrorReply::params(format!("{e}")))?;
        let wanted = filter.optional::<bool>(TOOLS_FILTER).map_err(|e| ErrorReply::params(format!("{e}")))?;
        let tools = wanted == Some(true) && config.capabilities.announces_tools();
        Ok(Self { exchange, id, version, tools })
    }
}

impl Listen {
    /// Releases its amounts of the shared limits.
    fn give_back(&self, env: &mut Env) {
        env.shares.give_back(self.client, Bound::RunningBytes, self.size);
        env.shares.give_back(self.client, Bound::Streams, 1);
    }
}

impl Listens {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self { shared, table: BTreeMap::new(), changes: 0 }
    }

    /// Returns the number of open subscriptions.
    pub(super) fn len(&self) -> usize {
        self.table.len()
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// Returns the number of published changes of the list of tools.
    pub(super) const fn changes(&self) -> u64 {
        self.changes
    }

    /// Removes everything, since the server terminates.
    pub(super) fn clear(&mut self) {
        self.table.clear();
    }

    /// Notifies every client of a change, if the server declares that it does.
    pub(super) fn publish(&mut self, env: &mut Env, http: &mut HttpState, change: Change) {
        let declared = match change {
            Change::Tools => env.config.capabilities.announces_tools(),
        };
        if !declared {
            return;
        }
        self.changes += 1;
        let watchers: Vec<ExchangeId> = env.watchers.iter().copied().collect();
        watchers.into_iter().for_each(|x| self.tell_changes(env, http, x));
    }

    /// The client is initialized: it receives notifications of changes from now on.
    pub(super) fn session_is_ready(&mut self, env: &mut Env, http: &mut HttpState, session_ref: SessionRef) {
        let Some(session) = session_ref.get_mut(env, http) else { return };
        session.set_ready();
        let carrier = match session_ref {
            SessionRef::Duplex(x) => {
                env.watchers.insert(x);
                Some(x)
            }
            SessionRef::Http(session) => http.carrier_of_own_stream(session),
        };
        carrier.into_iter().for_each(|x| self.tell_changes(env, http, x));
    }

    /// Sends pending notifications of changes on an exchange, as far as there is room.
    pub(super) fn tell_changes(&mut self, env: &mut Env, http: &mut HttpState, x: ExchangeId) {
        let Some(exchange) = env.exchanges.get(&x) else { return };
        let subscriptions: Vec<RequestKey> = exchange.listens.iter().copied().collect();
        for key in subscriptions {
            self.tell_subscription(env, http, key);
        }
        let Some((session_ref, reply_to)) = ReplyTo::for_changes(env, http, x) else { return };
        if session_ref.get(env, http).is_none_or(|session| !session.needs_announcement(self.changes)) {
            return;
        }
        let note = notification(TOOLS, None);
        if reply_to.has_room(env, http, note.len()) {
            let changes = self.changes;
            if let Some(session) = session_ref.get_mut(env, http) {
                session.announce(changes);
            }
            reply_to.send(env, http, note);
        }
    }

    fn tell_subscription(&mut self, env: &mut Env, http: &mut HttpState, key: RequestKey) {
        let changes = self.changes;
        let Some(listen) = self.table.get(&key) else { return };
        if !listen.tools || listen.told >= changes {
            return;
        }
        let reply_to = listen.reply_to;
        let note = notification(TOOLS, Some(&Object::new().with(meta::META, subscription(&listen.id))));
        if !reply_to.has_room(env, http, note.len()) {
            return;
        }
        if let Some(listen) = self.table.get_mut(&key) {
            listen.told = changes;
        }
        reply_to.send(env, http, note);
    }

    /// Opens a subscription (2026-07-28 subscriptions). The acknowledgement names the notifications
    /// that the engine will send. It omits those that the engine does not announce.
    pub(super) fn open(
        &mut self,
        env: &mut Env,
        http: &mut HttpState,
        requests: &mut Requests,
        wanted: Wanted,
    ) -> Result<(), ErrorReply> {
        let Wanted { exchange: x, id, version, tools } = wanted;
        let here = env.exchanges.get(&x).map_or(0, |exchange| exchange.listens.len());
        if here >= env.config.limits.server.max_streams_per_client {
            return Err(ErrorReply::full("there are too many streams"));
        }
        let (client, size) = (env.client_on(x, None), weight::of_listen(&id, size_of::<(RequestKey, Listen)>()));
        env.check_share(&client, Bound::Streams, 1).map_err(|full| full.reject("there are too many streams"))?;
        requests
            .make_room(env, http, &client, Bound::RunningBytes, size)
            .map_err(|full| full.reject("the server has no room for the stream"))?;
        let mut honoured = Object::new();
        if tools {
            honoured.set(TOOLS_FILTER, true);
        }
        let params = Object::new().with(meta::META, subscription(&id)).with("notifications", honoured);
        let key = requests.mint_key();
        let client = env.shares.take(&client, Bound::Streams, 1);
        env.shares.add(client, Bound::RunningBytes, size);
        let reply_to = ReplyTo::open(env, http, x, version);
        let listen = Listen { exchange: x, reply_to, client, size, id: id.clone(), version, tools, told: self.changes };
        self.table.insert(key, listen);
        if let Some(exchange) = env.exchanges.get_mut(&x) {
            exchange.listens.insert(key);
        }
        if let Some(session) = SessionRef::Duplex(x).get_mut(env, http) {
            session.insert(id, key);
        }
        env.watchers.insert(x);
        reply_to.send(env, http, notification("notifications/subscriptions/acknowledged", Some(&params)));
        env.drop_head(x);
        Ok(())
    }

    /// Removes a subscription without a message. Returns false if there is none with this key.
    pub(super) fn forget(&mut self, env: &mut Env, http: &mut HttpState, key: RequestKey) -> bool {
        let Some(listen) = self.table.remove(&key) else { return false };
        listen.give_back(env);
        if let Some(exchange) = env.exchanges.get_mut(&listen.exchange) {
            exchange.listens.remove(&key);
        }
        if let Some(session) = SessionRef::Duplex(listen.exchange).get_mut(env, http) {
            session.remove(&listen.id);
        }
        true
    }

    /// Ends every subscription with its result.
    pub(super) fn end_all(&mut self, env: &mut Env, http: &mut HttpState) {
        let open: Vec<RequestKey> = self.table.keys().copied().collect();
        open.into_iter().for_each(|key| self.end(env, http, key));
    }

    /// Ends a subscription: sends its result, and on a duplex connection `notifications/cancelled`
    /// (2026-07-28 cancellation).
    pub(super) fn end(&mut self, env: &mut Env, http: &mut HttpState, key: RequestKey) {
        let Some(listen) = self.table.remove(&key) else { return };
        listen.give_back(env);
        let Listen { exchange: x, reply_to, id, version, .. } = listen;
        if let Some(exchange) = env.exchanges.get_mut(&x) {
            exchange.listens.remove(&key);
        }
        let result = Object::new().with(meta::META, subscription(&id));
        let result = result_response(&id, &self.shared.complete(version, "subscriptions/listen", result, "complete"));
        let reply = SerializedResponse { message: result, code: None, batch: None };
        reply_to.reply(env, http, reply);
        if let Some(session) = SessionRef::Duplex(x).get_mut(env, http) {
            session.remove(&id);
            let params = Object::new().with("requestId", &id);
            reply_to.send(env, http, notification("notifications/cancelled", Some(&params)));
        }
    }
}

/// Returns the metadata by which a client tells its subscriptions apart.
fn subscription(id: &Id) -> RawJson {
    Object::new().with(meta::SUBSCRIPTION_ID, id).into()
}
