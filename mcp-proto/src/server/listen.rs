//! Notifications of changes: `subscriptions/listen` of 2026-07-28 on every transport, and the
//! unsolicited `list_changed` of the legacy revisions, on a duplex connection or on the session's
//! own stream. Each client receives one notification of a change. Changes that wait for room are
//! merged.

use super::era::ErrorReply;
use super::reply::{Reply, ReplyTo};
use super::session::SessionRef;
use super::shares::{Bound, ClientKey};
use super::weight;
use super::{Life, Server};
use crate::exchange::ExchangeId;
use crate::input::{Change, RequestKey};
use crate::model::lifecycle::meta;
use crate::rpc::{Id, Object, RawJson, notification, result_response};
use crate::version::ProtocolVersion;
use alloc::format;
use alloc::vec::Vec;

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

impl Server {
    pub(super) fn on_publish(&mut self, change: Change) {
        let declared = match change {
            Change::Tools => self.shared.config.capabilities.announces_tools(),
        };
        if !declared || self.is_terminated() {
            return;
        }
        self.changes += 1;
        let watchers: Vec<ExchangeId> = self.env.watchers.iter().copied().collect();
        watchers.into_iter().for_each(|x| self.tell_changes(x));
    }

    /// Sends pending notifications of changes on an exchange, as far as there is room.
    pub(super) fn tell_changes(&mut self, x: ExchangeId) {
        let Some(exchange) = self.env.exchanges.get(&x) else { return };
        let subscriptions: Vec<RequestKey> = exchange.listens.iter().copied().collect();
        for key in subscriptions {
            self.tell_subscription(key);
        }
        let Some((session_ref, reply_to)) = self.older(x) else { return };
        if session_ref.get(&self.env, &self.http).is_none_or(|session| !session.needs_announcement(self.changes)) {
            return;
        }
        let note = notification(TOOLS, None);
        if reply_to.has_room(&self.env, &self.http, note.len()) {
            let changes = self.changes;
            if let Some(session) = session_ref.get_mut(&mut self.env, &mut self.http) {
                session.announce(changes);
            }
            reply_to.send(&mut self.env, &mut self.http, note);
        }
    }

    fn tell_subscription(&mut self, key: RequestKey) {
        let changes = self.changes;
        let Some(listen) = self.listens.get(&key) else { return };
        if !listen.tools || listen.told >= changes {
            return;
        }
        let reply_to = listen.reply_to;
        let note = notification(TOOLS, Some(&Object::new().with(meta::META, subscription(&listen.id))));
        if !reply_to.has_room(&self.env, &self.http, note.len()) {
            return;
        }
        if let Some(listen) = self.listens.get_mut(&key) {
            listen.told = changes;
        }
        reply_to.send(&mut self.env, &mut self.http, note);
    }

    /// Returns the session and the reply target for the changes of a legacy client, if the exchange
    /// carries them.
    fn older(&self, x: ExchangeId) -> Option<(SessionRef, ReplyTo)> {
        let exchange = self.env.exchanges.get(&x)?;
        match exchange.binding.duplex() {
            Some(duplex) => duplex.session.negotiated().map(|_| (SessionRef::Duplex(x), ReplyTo::Duplex(x))),
            #[cfg(feature = "http")]
            None => self.own_stream(x).map(|(session, stream)| (SessionRef::Http(session), ReplyTo::Stream(stream))),
            #[cfg(not(feature = "http"))]
            None => None,
        }
    }

    /// Opens a subscription (2026-07-28 subscriptions). The acknowledgement names what is honoured;
    /// what the engine does not announce is left out.
    pub(super) fn listen(
        &mut self,
        x: ExchangeId,
        id: Id,
        params: &Object,
        version: ProtocolVersion,
    ) -> Result<(), ErrorReply> {
        let filter = params.object("notifications").map_err(|e| ErrorReply::params(format!("{e}")))?;
        let wanted = filter.optional::<bool>(TOOLS_FILTER).map_err(|e| ErrorReply::params(format!("{e}")))?;
        let limits = &self.shared.config.limits.server;
        let here = self.env.exchanges.get(&x).map_or(0, |exchange| exchange.listens.len());
        if self.life != Life::Serving {
            return Err(ErrorReply::full("the server is shutting down"));
        }
        if here >= limits.max_streams_per_client {
            return Err(ErrorReply::full("there are too many streams"));
        }
        let (client, size) = (self.env.client_on(x, None), weight::of_listen(&id));
        self.env.check_share(&client, Bound::Streams, 1).map_err(|full| full.reject("there are too many streams"))?;
        self.make_room(&client, Bound::RunningBytes, size)
            .map_err(|full| full.reject("the server has no room for the stream"))?;
        let tools = wanted == Some(true) && self.shared.config.capabilities.announces_tools();
        let mut honoured = Object::new();
        if tools {
            honoured.set(TOOLS_FILTER, true.into());
        }
        let params = Object::new().with(meta::META, subscription(&id)).with("notifications", honoured);
        let key = self.mint_key();
        let client = self.env.shares.take(&client, Bound::Streams, 1);
        self.env.shares.add(client, Bound::RunningBytes, size);
        let reply_to = ReplyTo::open(&mut self.env, &mut self.http, x, version);
        let listen = Listen { exchange: x, reply_to, client, size, id: id.clone(), version, tools, told: self.changes };
        self.listens.insert(key, listen);
        if let Some(exchange) = self.env.exchanges.get_mut(&x) {
            exchange.listens.insert(key);
        }
        if let Some(session) = SessionRef::Duplex(x).get_mut(&mut self.env, &mut self.http) {
            session.insert(id, key);
        }
        self.env.watchers.insert(x);
        reply_to.send(
            &mut self.env,
            &mut self.http,
            notification("notifications/subscriptions/acknowledged", Some(&params)),
        );
        #[cfg(feature = "http")]
        self.env.drop_head(x);
        Ok(())
    }

    /// Removes a subscription without a message. Returns false if there is none with this key.
    pub(super) fn forget_listen(&mut self, key: RequestKey) -> bool {
        let Some(listen) = self.listens.remove(&key) else { return false };
        self.give_back_listen(&listen);
        if let Some(exchange) = self.env.exchanges.get_mut(&listen.exchange) {
            exchange.listens.remove(&key);
        }
        if let Some(session) = SessionRef::Duplex(listen.exchange).get_mut(&mut self.env, &mut self.http) {
            session.remove(&listen.id);
        }
        true
    }

    fn give_back_listen(&mut self, listen: &Listen) {
        self.env.shares.give_back(listen.client, Bound::RunningBytes, listen.size);
        self.env.shares.give_back(listen.client, Bound::Streams, 1);
    }

    /// Ends every subscription with its result.
    pub(super) fn end_listens(&mut self) {
        let open: Vec<RequestKey> = self.listens.keys().copied().collect();
        open.into_iter().for_each(|key| self.end_listen(key));
    }

    /// Ends a subscription: sends its result, and on a duplex connection `notifications/cancelled`
    /// (2026-07-28 cancellation).
    pub(super) fn end_listen(&mut self, key: RequestKey) {
        let Some(listen) = self.listens.remove(&key) else { return };
        self.give_back_listen(&listen);
        let Listen { exchange: x, reply_to, id, version, .. } = listen;
        if let Some(exchange) = self.env.exchanges.get_mut(&x) {
            exchange.listens.remove(&key);
        }
        let result = Object::new().with(meta::META, subscription(&id));
        let result = result_response(&id, &self.shared.complete(version, "subscriptions/listen", result, "complete"));
        self.reply_to(reply_to, Reply { message: result, code: None, batch: None });
        if let Some(session) = SessionRef::Duplex(x).get_mut(&mut self.env, &mut self.http) {
            session.remove(&id);
            let params = Object::new().with("requestId", &id);
            reply_to.send(&mut self.env, &mut self.http, notification("notifications/cancelled", Some(&params)));
        }
    }
}

/// Returns the metadata by which a client tells its subscriptions apart.
fn subscription(id: &Id) -> RawJson {
    Object::new().with(meta::SUBSCRIPTION_ID, id).into()
}
