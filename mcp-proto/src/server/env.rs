//! The state that every part of the engine uses: the open exchanges and their outputs, the timers,
//! the shares of the clients, and the time of the current input.

use super::client::{Bound, ClientIdentity};
use super::era::{Caller, RequestParts};
use super::event::Event;
use super::keys::{ServerTimer, SessionRef};
use super::load::size;
use super::response::ErrorReply;
use super::rights::ClientRights;
use super::shares::{Full, Shares};
use super::store::Node;
use super::tasks::Tasks;
use super::transport::{Binding, Duplex, ServedExchange};
use super::watched::{WatchIndex, Watcher};
use super::{Output, ServerConfig};
use crate::auth::{Resource, ResourceDocument};
use crate::error::DiagnosticKind;
use crate::event_queue::EventQueue;
use crate::exchange::{ExchangeId, Outbound, Peer, RequestHead};
use crate::input::{AdmitKey, AdmitToken, Principal, SessionKey};
use crate::model::lifecycle::{self, meta};
use crate::model::skipped;
use crate::rpc::{Object, RawJson, Request, code};
use crate::short_map::ShortMap;
use crate::time::{Instant, Timers};
use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::sync::Arc;

/// See the [module](self).
pub(super) struct ServerEnv {
    pub(super) config: Arc<ServerConfig>,
    /// The time of the latest input.
    pub(super) now: Instant,
    pub(super) exchanges: ShortMap<ExchangeId, ServedExchange>,
    pub(super) queue: EventQueue<Output>,
    pub(super) timers: Timers<ServerTimer>,
    /// The amount of the shared limits that each client uses.
    pub(super) shares: Shares,
    /// Exchanges that wait for admission.
    pub(super) admitting: ShortMap<AdmitKey, ExchangeId>,
    /// Exchanges whose clients may receive notifications of changes.
    pub(super) watchers: BTreeSet<ExchangeId>,
    /// The resources that clients watch.
    pub(super) watched: WatchIndex,
    pub(super) tasks: Tasks,
    /// This server as a node of a store.
    pub(super) node: Option<Box<Node>>,
    /// Exchanges that were answered before their request body was read. The engine ignores the body
    /// until it ends.
    pub(super) unread: BTreeSet<ExchangeId>,
    /// The head of a request that is not needed any more.
    pub(super) dropped_head: Arc<RequestHead>,
    /// The metadata document of the server as a resource.
    pub(super) document: Option<ResourceDocument>,
    /// Duplex exchanges whose token has expired, and which end when no request of them runs.
    pub(super) expired: BTreeSet<ExchangeId>,
}

impl ServerEnv {
    pub(super) fn new(config: Arc<ServerConfig>, now: Instant, node: impl FnOnce() -> Node) -> Self {
        let limits = &config.limits.server;
        let queue = EventQueue::reporting_later(limits.max_queued_events, limits.max_queued_event_bytes);
        let document = config.resource.as_deref().and_then(Resource::document);
        let node = config.has_store().then(|| Box::new(node()));
        Self {
            config,
            now,
            exchanges: ShortMap::new(),
            queue,
            timers: Timers::default(),
            shares: Shares::default(),
            admitting: ShortMap::new(),
            watchers: BTreeSet::new(),
            watched: WatchIndex::default(),
            tasks: Tasks::default(),
            node,
            unread: BTreeSet::new(),
            dropped_head: Arc::default(),
            document,
            expired: BTreeSet::new(),
        }
    }

    /// Removes an exchange that is over. Returns it: the caller handles its requests, its
    /// subscriptions and its stream.
    pub(super) fn close(&mut self, x: ExchangeId) -> Option<ServedExchange> {
        let exchange = self.exchanges.remove(&x)?;
        if let Some(key) = exchange.binding.waits_for_admission()
            && self.forget_admission(x, key)
        {
            self.emit(Event::AdmitWithdrawn(key));
        }
        let declared = exchange.binding.duplex().map_or(0, Duplex::weight);
        self.shares.give_back(exchange.client, Bound::ClientData, declared);
        self.shares.give_back(exchange.client, Bound::Exchanges, 1);
        self.watchers.remove(&x);
        self.expired.remove(&x);
        if let Some(watched) = exchange.binding.duplex().and_then(|duplex| duplex.session.watched()) {
            self.watched.forget(watched, Watcher::Session(SessionRef::Duplex(x)));
        }
        for timer in
            [ServerTimer::Handshake, ServerTimer::Stall, ServerTimer::End, ServerTimer::KeepAlive, ServerTimer::Expiry]
        {
            self.timers.set(timer(x), None);
        }
        Some(exchange)
    }

    /// Removes an exchange that was answered. Its request does not run, so no other state refers to
    /// it.
    pub(super) fn end(&mut self, x: ExchangeId) {
        let ended = self.close(x);
        debug_assert!(ended.is_none_or(|exchange| exchange.listens.is_empty()), "a subscription has its stream");
    }

    /// Emits the admission of an exchange. `head`: that of its HTTP request.
    pub(super) fn ask_admission(
        &mut self,
        x: ExchangeId,
        key: AdmitKey,
        peer: Arc<Peer>,
        head: Option<Arc<RequestHead>>,
    ) {
        self.admitting.insert(key, x);
        let timeout = self.now + self.config.limits.server.admit_timeout;
        self.timers.set(ServerTimer::Admit(x), Some(timeout));
        self.emit(Event::Admit(AdmitToken::new(key, peer), head));
    }

    /// Starts the timer for the first request.
    pub(super) fn await_handshake(&mut self, x: ExchangeId) {
        if let Some(timeout) = self.config.limits.server.handshake_timeout {
            self.timers.set(ServerTimer::Handshake(x), Some(self.now + timeout));
        }
    }

    /// The first request has arrived. A ping does not count.
    pub(super) fn end_handshake(&mut self, x: ExchangeId) {
        self.timers.set(ServerTimer::Handshake(x), None);
    }

    /// The application has decided about an exchange, or need not decide any more. Returns whether
    /// it had not decided before.
    pub(super) fn forget_admission(&mut self, x: ExchangeId, key: AdmitKey) -> bool {
        self.timers.set(ServerTimer::Admit(x), None);
        self.admitting.remove(&key).is_some()
    }

    /// An exchange stays open by itself: it ends when the token of its client expires.
    pub(super) fn end_with_token(&mut self, x: ExchangeId) {
        let rights = self.exchanges.get(&x).and_then(|exchange| exchange.binding.rights());
        if let Some(end) = rights.and_then(|rights| rights.end(self.config.origin_unix)) {
            self.timers.set(ServerTimer::Expiry(x), Some(end.max(self.now)));
        }
    }

    /// Removes everything, since the server terminates.
    pub(super) fn clear(&mut self) {
        self.exchanges.clear();
        self.expired.clear();
        self.admitting.clear();
        self.watchers.clear();
        self.watched.clear();
        self.tasks = Tasks::default();
        self.shares = Shares::default();
        self.timers.clear();
        self.unread.clear();
    }

    /// Returns the id of the first request of the engine to a client. Servers that share a store
    /// have different ones, so that an answer finds the server that has asked.
    pub(super) fn first_question(&self) -> i64 {
        self.node.as_ref().map_or(0, |node| i64::from(node.tag().0) << 32) + 1
    }

    /// Emits an event of the application.
    pub(super) fn emit(&mut self, event: Event) {
        self.queue.push(Output::Event(event));
    }

    pub(super) fn diagnose(&mut self, kind: DiagnosticKind, detail: &str) {
        self.queue.diagnostic(kind, detail);
    }

    /// Takes the params of a request. An id above the limit is an error; a progress token above
    /// it is dropped and reported.
    pub(super) fn parts(&mut self, request: &mut Request) -> Result<RequestParts, ErrorReply> {
        let max = self.config.limits.frame.max_id;
        if request.id.size() > max {
            let rejection = ErrorReply::new(DiagnosticKind::LongId, code::INVALID_REQUEST, "the id is too long");
            return Err(ErrorReply { status: Some(400), ..rejection });
        }
        let mut parts = RequestParts::of(request)?;
        if parts.meta.id(meta::PROGRESS_TOKEN).is_some_and(|token| token.size() > max) {
            parts.meta.remove(meta::PROGRESS_TOKEN);
            self.diagnose(DiagnosticKind::LongId, "the progress token is too long");
        }
        Ok(parts)
    }

    /// Emits a diagnostic if a client says of itself, in these params of `initialize`, something
    /// that is taken as it is meant.
    pub(super) fn note_deviation(&mut self, params: &Object) {
        let (info, capabilities) = (params.get("clientInfo"), params.get("capabilities"));
        if let Some(detail) = lifecycle::deviation("clientInfo", info.as_ref(), capabilities.as_ref()) {
            self.diagnose(DiagnosticKind::Deviation, &detail);
        }
    }

    /// Emits diagnostics about what cannot be decoded in the answer of a client to the request for
    /// input of this name.
    pub(super) fn diagnose_answer(&mut self, name: &str, answer: &RawJson) {
        for detail in skipped::in_answer(answer).details(name) {
            self.diagnose(DiagnosticKind::InvalidElement, &detail);
        }
    }

    /// Sends on an open exchange. Does nothing if it is over.
    pub(super) fn send(&mut self, x: ExchangeId, outbound: Outbound) {
        let Some(exchange) = self.exchanges.get_mut(&x) else { return };
        let outbound = match (&exchange.binding, outbound) {
            (Binding::Http(http), outbound) => self.config.for_page(http.head(), outbound),
            (Binding::Duplex(duplex), Outbound::Message(data)) if duplex.sse.is_some() => {
                Outbound::Event { event: None, id: None, retry: None, data }
            }
            (Binding::Duplex(_), outbound) => outbound,
        };
        exchange.load.queued += size(&outbound);
        self.queue.push(Output::Send(x, outbound));
    }

    /// Returns the next output, and counts the bytes that the driver has to write.
    pub(super) fn poll_output(&mut self) -> Option<Output> {
        let output = self.queue.pop()?;
        if let Output::Send(x, outbound) = &output
            && let Some(exchange) = self.exchanges.get_mut(x)
        {
            let size = size(outbound);
            exchange.load.queued = exchange.load.queued.saturating_sub(size);
            exchange.load.handed = exchange.load.handed.saturating_add(size);
        }
        Some(output)
    }

    /// Returns whether a message of this size can be sent on an exchange now.
    pub(super) fn has_room(&self, x: ExchangeId, size: usize) -> bool {
        let max = self.config.limits.server.max_unsent;
        self.exchanges.get(&x).is_some_and(|exchange| exchange.load.total().saturating_add(size) <= max)
    }

    /// Returns the bytes that were sent on an exchange and are not written.
    pub(super) fn unwritten(&self, x: ExchangeId) -> usize {
        self.exchanges.get(&x).map_or(0, |exchange| exchange.load.total())
    }

    pub(super) fn duplex(&self, x: ExchangeId) -> Option<&Duplex> {
        self.exchanges.get(&x)?.binding.duplex()
    }

    pub(super) fn duplex_mut(&mut self, x: ExchangeId) -> Option<&mut Duplex> {
        self.exchanges.get_mut(&x)?.binding.duplex_mut()
    }

    /// Returns when a periodic timer fires again. Never now, or one tick would fire it forever.
    pub(super) fn again(&self, after: core::time::Duration) -> Instant {
        self.now + after.max(core::time::Duration::from_millis(1))
    }

    /// Checks whether a client may take `more` of a bound.
    pub(super) fn check_share(&self, client: &ClientIdentity, bound: Bound, more: usize) -> Result<(), Full> {
        self.shares.check(&self.config.limits.server, client, bound, more)
    }

    /// An exchange was admitted: it counts for this principal. Returns false if the principal has
    /// its share of the exchanges.
    pub(super) fn counts_as(&mut self, x: ExchangeId, principal: Option<&Principal>) -> bool {
        let Some(principal) = principal else { return true };
        let client = ClientIdentity::Principal(principal.clone());
        if self.shares.held(&client, Bound::Exchanges) >= Bound::Exchanges.share(&self.config.limits.server) {
            return false;
        }
        if let Some(exchange) = self.exchanges.get_mut(&x) {
            self.shares.give_back(exchange.client, Bound::Exchanges, 1);
            exchange.client = self.shares.take(&client, Bound::Exchanges, 1);
        }
        true
    }

    /// Returns the client of a message on an exchange that belongs to this session.
    pub(super) fn client_on(&self, x: ExchangeId, session: Option<SessionKey>) -> ClientIdentity {
        let known = self.exchanges.get(&x).and_then(|exchange| self.shares.client(exchange.client));
        match (known, session) {
            (
                None | Some(ClientIdentity::Session(_) | ClientIdentity::Connection(_) | ClientIdentity::Exchange(_)),
                Some(session),
            ) => ClientIdentity::Session(session),
            (Some(client), _) => client.clone(),
            (None, None) => ClientIdentity::Exchange(x),
        }
    }

    /// Whom a request on an exchange comes from.
    pub(super) fn caller(&self, x: ExchangeId) -> Caller {
        let Some(exchange) = self.exchanges.get(&x) else { return Caller::default() };
        let (peer, mut rights) = (exchange.peer.clone(), self.rights(x));
        let http = match &exchange.binding {
            Binding::Http(http) => Some(Arc::clone(http.head())),
            Binding::Duplex(duplex) => match duplex.sse.as_ref().map(|sse| &sse.posted) {
                Some(post) => {
                    // The token of the POST may be newer than that of the stream.
                    rights.access = post.as_ref().and_then(|post| post.access.clone());
                    post.as_ref().map(|post| Arc::clone(&post.head))
                }
                None => duplex.upgrade.clone(),
            },
        };
        Caller { peer, http, rights, session: None }
    }

    /// Returns as whom the client of an exchange was admitted.
    pub(super) fn rights(&self, x: ExchangeId) -> ClientRights {
        let exchange = self.exchanges.get(&x);
        exchange.and_then(|exchange| exchange.binding.rights()).cloned().unwrap_or_default()
    }
}
