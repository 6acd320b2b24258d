//! The options of clients and servers.

use crate::future::{BoxFuture, Spawn};
use crate::handler::Handler;
use crate::{ClientEvent, ServerEvent};
use mcp_proto::adapter::{Question, Reply};
use mcp_proto::client::BadHeader;
use mcp_proto::client::ClientConfig;
use mcp_proto::exchange::{ConnectionId, ConnectionNotice, Peer, RequestHead};
use mcp_proto::input::Admission;
use mcp_proto::process::Stderr;
use mcp_proto::record::Recorder;
use mcp_proto::server::ServerConfig;
use mcp_proto::{
    Authorization, Challenge, Denied, ElicitRequest, ElicitResult, ErrorObject, InputAnswer, InputRequest, MessageHook,
    Object, Router, WireMessage,
};
use smol::future::Future;
use std::fmt;
use std::sync::Arc;

/// The options of a client, with its callbacks. Registering a callback declares the capability.
///
/// Callbacks are futures that the [`Driver`](crate::Driver) polls. They run concurrently with
/// everything else, and may call the same client. A callback that holds a [`Client`](crate::Client)
/// keeps it open; end such a client with [`close`](crate::Client::close).
#[derive(Default)]
pub struct Config {
    pub(crate) changes: Vec<Change>,
    pub(crate) hooks: Hooks,
    pub(crate) stderr: Stderr,
    pub(crate) recorder: Option<Recorder>,
}

type Change = Box<dyn FnOnce(&mut ClientConfig) + Send>;

/// The callbacks of a client.
#[derive(Default)]
pub(crate) struct Hooks {
    elicit: Option<Hook<ElicitRequest>>,
    sample: Option<Hook<Object>>,
    roots: Option<Hook<()>>,
    authorize: Option<Hook<Challenge>>,
    pub(crate) event: Option<Box<dyn FnMut(ClientEvent) + Send>>,
    pub(crate) notice: Option<Box<dyn FnMut(ConnectionId, ConnectionNotice) + Send>>,
}

type Hook<Q> = Box<dyn Fn(Q) -> BoxFuture<Reply> + Send>;

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config").field("stderr", &self.stderr).field("recorder", &self.recorder).finish_non_exhaustive()
    }
}

impl Config {
    /// Creates options with the defaults of [`ClientConfig`] and without callbacks.
    pub fn new() -> Self {
        Self::default()
    }

    /// Changes any field of the engine's configuration except its target, which `connect` sets.
    #[must_use]
    pub fn set(mut self, change: impl FnOnce(&mut ClientConfig) + Send + 'static) -> Self {
        self.changes.push(Box::new(change));
        self
    }

    /// Adds a header field to every HTTP request: `Authorization`, a tenant, a trace.
    ///
    /// # Errors
    /// [`BadHeader`] if the field is invalid, or if the client writes it itself.
    pub fn header(self, name: &str, value: &str) -> Result<Self, BadHeader> {
        BadHeader::check(name, value)?;
        let (name, value) = (name.to_owned(), value.to_owned());
        Ok(self.set(move |config| config.headers.push(&name, value)))
    }

    /// Sets the callback for requests to the user, in a form.
    #[must_use]
    pub fn on_elicit<F, R>(mut self, ask: F) -> Self
    where
        F: Fn(ElicitRequest) -> R + Send + 'static,
        R: Future<Output = ElicitResult> + Send + 'static,
    {
        self.hooks.elicit = Some(Box::new(move |request| {
            let answer = ask(request);
            Box::pin(async { Reply::Input(InputAnswer::Elicitation(answer.await)) })
        }));
        self.set(|config| config.capabilities.elicitation = Some(Object::new()))
    }

    /// Sets the callback for requests to a language model, with the params and the result on the
    /// wire.
    #[must_use]
    pub fn on_sample<F, R>(mut self, ask: F) -> Self
    where
        F: Fn(Object) -> R + Send + 'static,
        R: Future<Output = Result<Object, ErrorObject>> + Send + 'static,
    {
        self.hooks.sample = Some(Box::new(move |params| {
            let answer = ask(params);
            Box::pin(async { Reply::Input(answer.await.map_or_else(InputAnswer::Error, InputAnswer::Sampling)) })
        }));
        self.set(|config| config.capabilities.sampling = Some(Object::new()))
    }

    /// Sets the callback that lists the roots, with the result on the wire.
    #[must_use]
    pub fn on_roots<F, R>(self, list: F) -> Self
    where
        F: Fn() -> R + Send + 'static,
        R: Future<Output = Result<Object, ErrorObject>> + Send + 'static,
    {
        self.answer_roots(Box::new(move |()| {
            let answer = list();
            Box::pin(async { Reply::Input(answer.await.map_or_else(InputAnswer::Error, InputAnswer::Roots)) })
        }))
    }

    /// Sets the roots to these URIs.
    #[must_use]
    pub fn roots<S: Into<String>>(self, uris: impl IntoIterator<Item = S>) -> Self {
        let uris: Vec<String> = uris.into_iter().map(Into::into).collect();
        self.answer_roots(Box::new(move |()| Box::pin(std::future::ready(Reply::Input(InputAnswer::roots(&uris))))))
    }

    /// Sets the callback that provides credentials. HTTP requests that the server refused for lack
    /// of credentials wait for it and are then repeated. Without this callback they end with the
    /// status.
    #[must_use]
    pub fn on_authorize<F, R>(mut self, get: F) -> Self
    where
        F: Fn(Challenge) -> R + Send + 'static,
        R: Future<Output = Authorization> + Send + 'static,
    {
        self.hooks.authorize = Some(Box::new(move |challenge| {
            let answer = get(challenge);
            Box::pin(async { Reply::Authorization(answer.await) })
        }));
        self.set(|config| config.authorize = true)
    }

    /// Sets the callback for events: notifications, diagnostics, and changes of the client. These
    /// are the end of the negotiation, a restart, a missed ping, the resumption or loss of a stream
    /// over HTTP, a change of the tools, and the end. Without a callback all of them are dropped.
    /// The driver runs the callback, so it must not block. A panic in it is caught.
    #[must_use]
    pub fn on_event(mut self, told: impl FnMut(ClientEvent) + Send + 'static) -> Self {
        self.hooks.event = Some(Box::new(told));
        self
    }

    /// Sets the callback for each step of the end of a connection, and for the exit status of a
    /// program. The driver runs it, so it must not block. A panic in it is caught.
    #[must_use]
    pub fn on_notice(mut self, told: impl FnMut(ConnectionId, ConnectionNotice) + Send + 'static) -> Self {
        self.hooks.notice = Some(Box::new(told));
        self
    }

    /// Sets the message hook, which sees every message in both directions before it is handled or
    /// written, and may refuse it. See [`MessageHook`]. It runs under the lock of the client: it
    /// must not block, and must not call the client.
    #[must_use]
    pub fn on_message(self, ask: impl Fn(&WireMessage<'_>) -> Result<(), Denied> + Send + Sync + 'static) -> Self {
        let hook = MessageHook::new(ask);
        self.set(move |config| config.on_message = Some(hook))
    }

    /// Sets the destination of a program's standard error. By default it is inherited. The driver
    /// calls a function for its lines, so the function must not block.
    #[must_use]
    pub fn stderr(mut self, stderr: Stderr) -> Self {
        self.stderr = stderr;
        self
    }

    /// Records the client from the start until its end: see [`record`](mcp_proto::record) for the
    /// contents of a recording. `Recorder::to(Redaction::Redacted, File::create(path)?)` writes to
    /// a file. The writer is called under the lock of the client, so that a crash loses nothing and
    /// the lines are in order. A file is fast enough; pass lines to a thread if writing may be
    /// slow. If the writer fails, the recording ends with a diagnostic, and the client continues.
    #[must_use]
    pub fn record(mut self, recorder: Recorder) -> Self {
        self.recorder = Some(recorder);
        self
    }

    fn answer_roots(mut self, list: Hook<()>) -> Self {
        self.hooks.roots = Some(list);
        self.set(|config| config.capabilities.roots = Some(Object::new()))
    }
}

impl Hooks {
    /// Runs the callback for this question. `None` if there is none.
    pub(crate) fn ask(&self, question: Question) -> Option<BoxFuture<Reply>> {
        match question {
            Question::Input(InputRequest::Elicitation(request)) => self.elicit.as_ref().map(|ask| ask(request)),
            Question::Input(InputRequest::Sampling(params)) => self.sample.as_ref().map(|ask| ask(params)),
            Question::Input(InputRequest::Roots) => self.roots.as_ref().map(|ask| ask(())),
            Question::Input(_) => None,
            Question::Challenge(challenge) => self.authorize.as_ref().map(|ask| ask(challenge)),
        }
    }
}

/// A router with the options of its server. A [`Router`](crate::Router) converts to one with the
/// defaults.
pub struct Service {
    pub(crate) router: Router<Handler>,
    pub(crate) config: ServerConfig,
    pub(crate) event: Option<Box<dyn FnMut(ServerEvent) + Send>>,
    pub(crate) spawn: Option<Box<Spawn>>,
    pub(crate) admit: Option<Box<Admit>>,
}

/// Decides on an HTTP request or a connection.
pub(crate) type Admit = dyn Fn(Option<Arc<RequestHead>>, Peer) -> BoxFuture<Admission> + Send + Sync;

impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Service").field("config", &self.config).finish_non_exhaustive()
    }
}

impl Service {
    /// Creates the options of a server for `router`.
    pub fn new(router: Router<Handler>) -> Self {
        let config = router.config();
        Self { router, config, event: None, spawn: None, admit: None }
    }

    /// Sets the callback for events: notifications of clients, diagnostics, opened and ended
    /// sessions, and events to store for resumption ([`ServerConfig::store`]), the latter before
    /// they are sent. Without a callback all of them are dropped. There is no event for the end of
    /// the server: [`Server::stop`](crate::Server::stop) and [`Server::wait`](crate::Server::wait)
    /// return then.
    ///
    /// The server waits while the callback runs, so a slow one misses nothing.
    /// [`ServerEvent::Lost`] counts notifications and diagnostics beyond
    /// [`max_queued_events`](mcp_proto::limits::ServerLimits::max_queued_events) that were emitted
    /// at once. The callback runs under the lock of the server: it must not block, and must not use
    /// the server. A panic in it is caught.
    #[must_use]
    pub fn on_event(mut self, told: impl FnMut(ServerEvent) + Send + 'static) -> Self {
        self.event = Some(Box::new(told));
        self
    }

    /// Sets the message hook, which sees every message in both directions before it is handled or
    /// written, and may refuse it. See [`MessageHook`]. The tasks of the connections call it,
    /// outside of the lock of the server. It must not block.
    #[must_use]
    pub fn on_message(mut self, ask: impl Fn(&WireMessage<'_>) -> Result<(), Denied> + Send + Sync + 'static) -> Self {
        self.config.on_message = Some(MessageHook::new(ask));
        self
    }

    /// Sets the callback that admits requests and connections. It runs for every HTTP request, with
    /// its head and before its body is read, and for every connection to a Unix socket, without a
    /// head and before anything is read. It returns the principal of the request or the connection,
    /// or the reason for a refusal. A refused connection is closed. The [`Peer`] has what is known
    /// of the client: its address, which behind a proxy is that of the proxy, or the
    /// [`Credentials`](crate::Credentials) of the process on a Unix socket. For
    /// [`Server::serve_lines`](crate::Server::serve_lines), the callback runs if the peer was
    /// created with [`Peer::unix`] or [`Peer::tcp`]. It does not run for standard input and output.
    ///
    /// It has at most [`admit_timeout`](mcp_proto::limits::ServerLimits::admit_timeout), and is
    /// dropped when the connection closes. A panic in it refuses. A request with a forbidden `Host`
    /// or path is refused without it, and the preflight request of a browser
    /// ([`ServerConfig::cors`]) is answered without it.
    ///
    /// ```
    /// use mcp_smol::{Admission, Router, Service};
    ///
    /// let by_token = Service::new(Router::new("vault", "1.0")).on_admit(|head, _peer| async move {
    ///     match head.as_ref().and_then(|head| head.headers.get("Authorization")) {
    ///         Some("Bearer good") => Admission::Accept(Some("ada".into())),
    ///         _ => Admission::Unauthorized("Bearer".into()),
    ///     }
    /// });
    /// let by_user = Service::new(Router::new("vault", "1.0")).on_admit(|_head, peer| async move {
    ///     match peer.credentials {
    ///         Some(process) if process.uid == 1000 => Admission::Accept(Some("ada".into())),
    ///         _ => Admission::Forbidden(None),
    ///     }
    /// });
    /// # drop((by_token, by_user));
    /// ```
    #[must_use]
    pub fn on_admit<F, R>(mut self, admit: F) -> Self
    where
        F: Fn(Option<Arc<RequestHead>>, Peer) -> R + Send + Sync + 'static,
        R: Future<Output = Admission> + Send + 'static,
    {
        self.admit = Some(Box::new(move |head, peer| Box::pin(admit(head, peer))));
        self.config.admit = true;
        self
    }

    /// Sets the function that spawns the tasks of a server (its listener, its connections, its
    /// handlers) instead of smol's global executor: `|task| executor.spawn(task).detach()`. A
    /// dropped task ends in order.
    #[must_use]
    pub fn on_executor(mut self, spawn: impl Fn(smol::future::Boxed<()>) + Send + Sync + 'static) -> Self {
        self.spawn = Some(Box::new(spawn));
        self
    }
}

impl From<Router<Handler>> for Service {
    fn from(router: Router<Handler>) -> Self {
        Self::new(router)
    }
}
