//! The options of a server that mean the same in every driver.

#[cfg(feature = "auth")]
use super::client_options::ClientOptions;
use super::front::Guard;
#[cfg(feature = "auth")]
use super::front::{Delay, GuardState};
use super::job::{Job, Promise};
#[cfg(feature = "auth")]
use super::os::Clock;
#[cfg(feature = "redis")]
use super::store::Redis;
use super::store::{StoreDriver, StorePort, StoreQueue};
use super::sync::{Mutex, lock};
use alloc::boxed::Box;
#[cfg(feature = "redis")]
use alloc::string::String;
use alloc::sync::Arc;
use core::fmt;
use core::future::Future;
#[cfg(feature = "auth")]
use core::mem::take;
#[cfg(feature = "auth")]
use mcp_proto::auth::{Resource, VerifierConfig};
use mcp_proto::exchange::{Peer, RequestHead};
use mcp_proto::hook::{Denial, MessageHook, Ruling, WireMessage};
use mcp_proto::input::Outcome;
use mcp_proto::input::{Admission, AdmitToken, ServerCommand};
use mcp_proto::route::{BlockingCall, BoxFuture, Router, block_here};
use mcp_proto::server::store::{News, NodeItem};
use mcp_proto::server::{Event, ServerConfig};
use mcp_proto::telemetry::{Observe, Telemetry};
use std::io;

/// The options of a server: its callbacks, and its threads.
#[must_use]
pub struct ServerOptions {
    threads: usize,
    abandoned_threads: usize,
    checked: bool,
    /// Behind a lock only to be `Sync`: the driver takes it.
    event: Mutex<Option<EventCallback>>,
    message: Option<MessageHook>,
    telemetry: Option<Telemetry>,
    admit: Option<AdmitCallback>,
    /// What verifies tokens, once the server has begun.
    guard: Option<Arc<Guard>>,
    /// The options of the client that makes its fetches. Behind a lock only to be `Sync`.
    #[cfg(feature = "auth")]
    fetching: Mutex<ClientOptions>,
    spawn: Option<Arc<Spawn>>,
    store: Option<Arc<dyn StoreDriver>>,
    pub(super) block: Block,
}

/// A router with the options of its server. A [`Router`] converts to one with the defaults.
#[derive(Debug)]
pub struct Service {
    /// What is served.
    pub router: Router,
    /// The options of the server.
    pub options: ServerOptions,
}

impl From<Router> for Service {
    fn from(router: Router) -> Self {
        Self { router, options: ServerOptions::new() }
    }
}

impl From<(Router, ServerOptions)> for Service {
    fn from((router, options): (Router, ServerOptions)) -> Self {
        Self { router, options }
    }
}

/// The callback for events of a server.
pub type EventCallback = Box<dyn FnMut(Event) + Send>;

/// Runs a task on the executor of the application, or drops it.
pub type Spawn = dyn Fn(BoxFuture<()>) + Send + Sync;

/// Runs a handler that may block within a future: see [`ServerOptions::block_with`].
pub type Block = fn(BlockingCall) -> BoxFuture<Outcome>;

type Admit = dyn Fn(Option<&RequestHead>, &Peer) -> Admission + Send + Sync;
type AdmitAsync = dyn Fn(Option<Arc<RequestHead>>, Peer) -> BoxFuture<Admission> + Send + Sync;

enum AdmitCallback {
    Sync(Arc<Admit>),
    Async(Arc<AdmitAsync>),
    /// No callback: the guard decides.
    #[cfg(feature = "auth")]
    Verify(TokenCheck),
}

/// Which tokens a server accepts.
#[cfg(feature = "auth")]
#[derive(Clone)]
pub(super) struct TokenCheck {
    pub(super) resource: Arc<Resource>,
    pub(super) config: Arc<VerifierConfig>,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            threads: 256,
            abandoned_threads: 256,
            checked: false,
            event: Mutex::new(None),
            message: None,
            telemetry: None,
            admit: None,
            guard: None,
            #[cfg(feature = "auth")]
            fetching: Mutex::default(),
            spawn: None,
            store: None,
            block: block_here,
        }
    }
}

impl ServerOptions {
    /// Creates options without callbacks.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the maximum number of threads that run handlers. A quarter of them, rounded up, is the
    /// share of one client; the one client of standard input and output, or of a pair of streams,
    /// has all of them. Further requests wait for a thread, up to the limit of the engine. If none
    /// becomes free for 5 s, they are answered with `-32603`, and the server emits
    /// [`DiagnosticKind::StuckHandlers`](mcp_proto::error::DiagnosticKind::StuckHandlers). 256 by
    /// default. Applies to mcp-blocking; mcp-smol runs handlers on the blocking pool of smol.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads.max(1);
        self
    }

    /// Sets the maximum number of threads that run abandoned handlers, beside those of
    /// [`threads`](Self::threads). A handler counts as abandoned if it does not return although its
    /// request was cancelled, its client has left, or its deadline is over
    /// ([`handler_deadline`](mcp_proto::limits::ServerLimits::handler_deadline)); another handler
    /// may use its place then. Beyond this number, an abandoned handler keeps its place, and
    /// requests that find no thread are answered with `-32603` "handlers do not return". 256 by
    /// default. With 0, every handler keeps its place until it returns. The callback of an
    /// admission is treated in the same way, with as many threads of its own. Applies to
    /// mcp-blocking.
    pub fn abandoned_threads(mut self, threads: usize) -> Self {
        self.abandoned_threads = threads;
        self
    }

    /// Sets the callback for events: notifications of clients, diagnostics, opened and ended
    /// sessions, and events that are kept for resumption ([`ServerConfig::report_kept`]), in the
    /// order in which they are sent. Without a callback all of them are dropped. There is no event
    /// for the end of the server: `stop` and `wait` return then.
    ///
    /// The adapter documents where it runs, and what it may do. A panic in it is caught.
    /// [`Event::Lost`] counts notifications and diagnostics beyond
    /// [`max_queued_events`](mcp_proto::limits::ServerLimits::max_queued_events).
    pub fn on_event(mut self, told: impl FnMut(Event) + Send + 'static) -> Self {
        self.event = Mutex::new(Some(Box::new(told)));
        self
    }

    /// Sets the message hook, which sees every message in both directions before it is handled or
    /// written, and may refuse or replace it. See [`MessageHook`]. The tasks or threads of the
    /// connections call it. It must not block.
    pub fn on_message<R: Into<Ruling>>(
        mut self,
        ask: impl Fn(&WireMessage<'_>) -> Result<R, Denial> + Send + Sync + 'static,
    ) -> Self {
        self.message = Some(MessageHook::new(ask));
        self
    }

    /// Sets the telemetry: this learns of the beginning and the end of every request that the
    /// router gets. See [`Observe`].
    pub fn observe(mut self, observe: impl Observe + 'static) -> Self {
        self.telemetry = Some(Telemetry::new(observe));
        self
    }

    /// Sets the callback that admits requests and connections. It may block. It runs for every HTTP
    /// request, with its head and before its body is read, and for every connection to a Unix
    /// socket, without a head and before anything is read. It returns the principal of the request
    /// or the connection, or the reason for a refusal. A refused connection is closed. The [`Peer`]
    /// has what is known of the client: its address, which behind a proxy is that of the proxy, or
    /// the [`Credentials`](mcp_proto::exchange::Credentials) of the process on a Unix socket. It
    /// does not run for standard input and output.
    ///
    /// It has at most [`admit_timeout`](mcp_proto::limits::ServerLimits::admit_timeout). A panic in
    /// it refuses. A request with a forbidden `Host` or path is refused without it, and the
    /// preflight request of a browser ([`ServerConfig::cors`]) is answered without it. It replaces
    /// `verify`: the later of the two counts.
    ///
    /// ```
    /// use mcp_driver::ServerOptions;
    /// use mcp_proto::input::Admission;
    ///
    /// let by_token = ServerOptions::new().on_admit(|head, _peer| {
    ///     match head.and_then(|head| head.headers.get("Authorization")) {
    ///         Some("Bearer good") => Admission::Accept(Some("ada".into())),
    ///         _ => Admission::Unauthorized("Bearer".into()),
    ///     }
    /// });
    /// let by_user = ServerOptions::new().on_admit(|_head, peer| match &peer.credentials {
    ///     Some(process) if process.uid == 1000 => Admission::Accept(Some("ada".into())),
    ///     _ => Admission::Forbidden(None),
    /// });
    /// # drop((by_token, by_user));
    /// ```
    pub fn on_admit(
        mut self,
        admit: impl Fn(Option<&RequestHead>, &Peer) -> Admission + Send + Sync + 'static,
    ) -> Self {
        self.admit = Some(AdmitCallback::Sync(Arc::new(admit)));
        self
    }

    /// Like [`on_admit`](Self::on_admit), with a callback that returns a future. The future is
    /// dropped when the exchange ends.
    pub fn on_admit_async<F, R>(mut self, admit: F) -> Self
    where
        F: Fn(Option<Arc<RequestHead>>, Peer) -> R + Send + Sync + 'static,
        R: Future<Output = Admission> + Send + 'static,
    {
        self.admit = Some(AdmitCallback::Async(Arc::new(move |head, peer| Box::pin(admit(head, peer)))));
        self
    }

    /// Accepts requests with a token of OAuth 2.1 for this resource only, and serves its metadata
    /// document (RFC 9728). It replaces [`on_admit`](Self::on_admit), whichever is later. A handler
    /// reads what the token grants with [`Cx::granted`](mcp_proto::Cx::granted).
    ///
    /// Signatures are verified with the cryptography of rustls: this needs the feature `tls`,
    /// `tls-graviola` or `rustls`; without any, every request gets 503. The keys of the issuer are
    /// fetched when the first token comes. Meanwhile requests wait, at most for
    /// [`admit_timeout`](mcp_proto::limits::ServerLimits::admit_timeout). An issuer that does not
    /// answer is a
    /// [`DiagnosticKind::IssuerUnavailable`](mcp_proto::error::DiagnosticKind::IssuerUnavailable).
    /// Connections to a Unix socket have no token: they are closed. Standard input and output are
    /// served without one.
    ///
    /// ```
    /// use mcp_driver::ServerOptions;
    /// use mcp_proto::auth::{Resource, VerifierConfig};
    ///
    /// let resource = Resource::new("https://example.com/mcp", ["https://issuer.example"]);
    /// let tokens = VerifierConfig::jwt("https://issuer.example");
    /// let options = ServerOptions::new().verify(resource, tokens);
    /// # drop(options);
    /// ```
    #[cfg(feature = "auth")]
    pub fn verify(mut self, resource: Resource, config: VerifierConfig) -> Self {
        self.admit = Some(AdmitCallback::Verify(TokenCheck { resource: Arc::new(resource), config: Arc::new(config) }));
        self
    }

    /// Sets the options of the client that fetches the keys of issuers for
    /// [`verify`](Self::verify): its TLS, its proxy. By default the proxies of the environment
    /// apply, as for every client.
    #[cfg(feature = "auth")]
    pub fn fetch_with(mut self, options: ClientOptions) -> Self {
        self.fetching = Mutex::new(options);
        self
    }

    /// Sets the function that spawns the tasks of a server on an executor of the application, such
    /// as `|task| executor.spawn(task).detach()`. A dropped task ends in order. Without it the
    /// adapter runs them: mcp-smol on smol's global executor, mcp-blocking on its own threads.
    pub fn on_executor(mut self, spawn: impl Fn(BoxFuture<()>) + Send + Sync + 'static) -> Self {
        self.spawn = Some(Arc::new(spawn));
        self
    }

    /// Sets the store that this server shares with others, which then serve their clients together:
    /// see [`mcp_proto::server::store`]. All of them need the same name and the same
    /// [`ServerConfig::state_keys`]; without these the server does not start
    /// ([`io::ErrorKind::InvalidInput`]).
    pub fn store(mut self, store: impl StoreDriver) -> Self {
        self.store = Some(Arc::new(store));
        self
    }

    /// Sets a store on Redis 7 or Valkey at this URL: see [`Redis`](super::store::Redis), which has
    /// more options.
    #[cfg(feature = "redis")]
    pub fn redis(self, url: impl Into<String>) -> Self {
        self.store(Redis::new(url))
    }

    /// Sets how a handler that may block runs within the future of
    /// [`Router::around_async`](mcp_proto::Router::around_async). By default it blocks the thread
    /// that polls the future, which a driver on threads expects. A driver with an executor sets it.
    pub fn block_with(mut self, block: Block) -> Self {
        self.block = block;
        self
    }

    /// Makes the engine panic when the driver breaks a rule, for the tests of a driver: see
    /// [`check`](super::check).
    pub fn checked(mut self) -> Self {
        self.checked = true;
        self
    }

    /// Returns whether the engine panics when the driver breaks a rule.
    pub const fn is_checked(&self) -> bool {
        self.checked
    }

    /// Returns the maximum number of threads that run handlers.
    pub const fn max_threads(&self) -> usize {
        self.threads
    }

    /// Returns the maximum number of threads that run abandoned handlers.
    pub const fn max_abandoned_threads(&self) -> usize {
        self.abandoned_threads
    }

    /// Applies the options to the configuration of the engine.
    pub fn configure(&self, config: &mut ServerConfig) {
        config.store = config.store.or_else(|| self.store.as_ref().map(|store| store.serves()));
        config.admit |= self.admit.is_some();
        #[cfg(feature = "auth")]
        if let Some(AdmitCallback::Verify(check)) = &self.admit {
            config.resource = Some(Arc::clone(&check.resource));
        }
        if let Some(hook) = &self.message {
            config.on_message = Some(hook.clone());
        }
        if let Some(telemetry) = &self.telemetry {
            config.observe = Some(telemetry.clone());
        }
    }

    /// Returns the way to the store of a server with this configuration. `None`: it has none.
    pub(super) fn store_queue(&self, config: &ServerConfig) -> io::Result<Option<StoreQueue>> {
        if self.store.is_some() && config.state_keys.is_none() {
            let why = "servers that share a store need `ServerConfig::state_keys`";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        Ok(self.store.as_ref().map(|_| StoreQueue::new()))
    }

    /// Connects a server to its store. `link` leads to its engine.
    pub(super) fn start_store(
        &self,
        queue: Option<StoreQueue>,
        link: impl Fn(ServerCommand) + Send + Sync + 'static,
    ) -> io::Result<()> {
        match self.store.as_ref().zip(queue) {
            Some((store, queue)) => store.start(StorePort::new(queue, link)),
            None => Ok(()),
        }
    }

    /// Takes the callback for events.
    pub fn take_event(&mut self) -> Option<EventCallback> {
        lock(&self.event).take()
    }

    /// Returns the function that spawns tasks, if the application gave one.
    pub const fn spawn(&self) -> Option<&Arc<Spawn>> {
        self.spawn.as_ref()
    }

    /// Returns the state of the guard, if tokens are verified. `key` is that of the server.
    #[cfg(feature = "auth")]
    pub(super) fn guard_state(
        &self,
        key: Option<[u8; 32]>,
        clock: Clock,
        delay: Delay,
    ) -> io::Result<Option<GuardState>> {
        let Some(AdmitCallback::Verify(check)) = &self.admit else { return Ok(None) };
        let fetching = take(&mut *lock(&self.fetching));
        GuardState::new(check.clone(), fetching, key, clock, delay).map(Some)
    }

    /// Lets this decide about admissions.
    #[cfg(feature = "auth")]
    pub(super) fn set_guard(&mut self, guard: Option<Arc<Guard>>) {
        self.guard = guard;
    }

    /// Notes a command to the engine: the tokens of a principal that is revoked are forgotten.
    pub(super) fn note(&self, command: &ServerCommand) {
        let Some(guard) = &self.guard else { return };
        match command {
            ServerCommand::Revoke(principal)
            | ServerCommand::Arrived(NodeItem::News { news: News::Revoked(principal), .. }) => guard.forget(principal),
            _ => {}
        }
    }

    /// Returns what verifies tokens.
    pub(super) const fn guard(&self) -> Option<&Arc<Guard>> {
        self.guard.as_ref()
    }

    /// Returns the job that decides about an admission. `None` if it is decided, or will be by the
    /// guard.
    pub(super) fn admit(&self, promise: Promise<AdmitToken>, head: Option<Arc<RequestHead>>) -> Option<Job> {
        if let Some(guard) = &self.guard {
            guard.admit(promise, head);
            return None;
        }
        let peer = promise.to().map(|token| token.peer().clone()).unwrap_or_default();
        match self.admit.as_ref()? {
            AdmitCallback::Sync(f) => {
                let f = Arc::clone(f);
                Some(Job::sync(promise, move || f(head.as_deref(), &peer)))
            }
            AdmitCallback::Async(f) => Job::future(promise, || f(head, peer)),
            #[cfg(feature = "auth")]
            AdmitCallback::Verify(_) => None,
        }
    }
}

impl fmt::Debug for ServerOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerOptions").field("threads", &self.threads).finish_non_exhaustive()
    }
}
