//! What is said once: how a client behaves and what it can do for its server, and what a server is told besides its router.

use crate::server::Spawn;
use crate::{ClientEvent, Handler, ServerEvent};
#[cfg(feature = "http")]
use mcp_proto::client::BadHeader;
use mcp_proto::client::ClientConfig;
use mcp_proto::driver::{Question, Reply};
use mcp_proto::exchange::{Peer, RequestHead};
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
use std::pin::Pin;
use std::sync::Arc;

pub(crate) type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// How a client behaves, and what it can do for the server. Registering a callback is what declares the capability.
///
/// Callbacks are futures that the [`Driver`](crate::Driver) polls: they run beside everything else, and may call the same client. A
/// callback that holds a [`Client`](crate::Client) keeps it open; end such a client with [`close`](crate::Client::close).
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
}

type Hook<Q> = Box<dyn Fn(Q) -> BoxFuture<Reply> + Send>;

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config").field("stderr", &self.stderr).field("recorder", &self.recorder).finish_non_exhaustive()
    }
}

impl Config {
    /// What [`ClientConfig`] says by default, no callbacks.
    pub fn new() -> Self {
        Self::default()
    }

    /// Changes any field of the engine's configuration but its target, which `connect` sets.
    #[must_use]
    pub fn set(mut self, change: impl FnOnce(&mut ClientConfig) + Send + 'static) -> Self {
        self.changes.push(Box::new(change));
        self
    }

    /// Adds a header field to every HTTP request: `Authorization`, a tenant, a trace.
    ///
    /// # Errors
    /// [`BadHeader`] if the field cannot be sent, or is one that the client writes itself.
    #[cfg(feature = "http")]
    pub fn header(self, name: &str, value: &str) -> Result<Self, BadHeader> {
        BadHeader::check(name, value)?;
        let (name, value) = (name.to_owned(), value.to_owned());
        Ok(self.set(move |config| config.headers.push(&name, value)))
    }

    /// The server may ask the user, with a form.
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

    /// The server may ask a language model; params and result are those of the wire.
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

    /// The server may ask for the roots; the result is that of the wire.
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

    /// The server may ask for the roots: these URIs.
    #[must_use]
    pub fn roots<S: Into<String>>(self, uris: impl IntoIterator<Item = S>) -> Self {
        let uris: Vec<String> = uris.into_iter().map(Into::into).collect();
        self.answer_roots(Box::new(move |()| Box::pin(std::future::ready(Reply::Input(InputAnswer::roots(&uris))))))
    }

    /// The server may want credentials, or others: requests over HTTP that it refused for that reason wait until this has answered, and are
    /// made once more. Without it they end with the status.
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

    /// Is told of notifications and diagnostics, which are dropped otherwise, and what becomes of the connection: that the two sides have
    /// agreed, each step of the end of a channel, a restart, a missed ping, a stream over HTTP that is gone on with or given up, that the
    /// tools may have changed, and that the client has ended. It is called by the driver: it must not wait. A panic in it is caught.
    #[must_use]
    pub fn on_event(mut self, told: impl FnMut(ClientEvent) + Send + 'static) -> Self {
        self.hooks.event = Some(Box::new(told));
        self
    }

    /// Asks this function about every message, in and out, before it is acted upon or written; it may refuse. See [`MessageHook`]. It is
    /// called under the lock of the client: it must not wait, and not call the client.
    #[must_use]
    pub fn on_message(self, ask: impl Fn(&WireMessage<'_>) -> Result<(), Denied> + Send + Sync + 'static) -> Self {
        let hook = MessageHook::new(ask);
        self.set(move |config| config.on_message = Some(hook))
    }

    /// Where the standard error of a program goes. Default: to ours. A function that gets its lines is called by the driver: it must not
    /// wait.
    #[must_use]
    pub fn stderr(mut self, stderr: Stderr) -> Self {
        self.stderr = stderr;
        self
    }

    /// Records the client from its first moment, until it has ended: see [`record`](mcp_proto::record) for what is written and what is
    /// left out. `Recorder::to(Redaction::Redacted, File::create(path)?)` writes to a file. The writer is called under the lock of the
    /// client, so that nothing is lost in a crash and the lines are in order: a file is quick enough, and what may take long should be
    /// handed to a thread. If it fails, the recording ends with a diagnostic, and the client goes on.
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
    /// What answers this question; `None` if nothing is registered for it.
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

/// A router with what the engine that serves it is told besides. A [`Router`](crate::Router) alone is one with the defaults.
pub struct Service {
    pub(crate) router: Router<Handler>,
    pub(crate) config: ServerConfig,
    pub(crate) event: Option<Box<dyn FnMut(ServerEvent) + Send>>,
    pub(crate) spawn: Option<Box<Spawn>>,
    pub(crate) admit: Option<Box<Admit>>,
}

/// Decides about a request over HTTP, or a connection.
pub(crate) type Admit = dyn Fn(Option<Arc<RequestHead>>, Peer) -> BoxFuture<Admission> + Send + Sync;

impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Service").field("config", &self.config).finish_non_exhaustive()
    }
}

impl Service {
    /// Serves `router`.
    pub fn new(router: Router<Handler>) -> Self {
        let config = router.config();
        Self { router, config, event: None, spawn: None, admit: None }
    }

    /// Is told of notifications of clients, of diagnostics, of sessions that open and end, and of events that are kept for clients to come
    /// back for ([`ServerConfig::store`]), these before they are sent. Without a function all of them are dropped. That the server has shut
    /// down it is not told: [`Server::stop`](crate::Server::stop) and [`Server::wait`](crate::Server::wait) return then.
    ///
    /// It is called as things happen, and the server waits while it runs, so it misses nothing for being slow; [`ServerEvent::Lost`] tells
    /// of notifications and diagnostics that came at once, more than
    /// [`max_queued_events`](mcp_proto::limits::ServerLimits::max_queued_events). It runs under the lock of the server: it must not wait,
    /// and must not use the server. A panic in it is caught.
    #[must_use]
    pub fn on_event(mut self, told: impl FnMut(ServerEvent) + Send + 'static) -> Self {
        self.event = Some(Box::new(told));
        self
    }

    /// Asks this function about every message, in and out, before it is acted upon or written; it may refuse. See [`MessageHook`]. It is
    /// called by the tasks of the connections, outside the lock of the server: it must not wait.
    #[must_use]
    pub fn on_message(mut self, ask: impl Fn(&WireMessage<'_>) -> Result<(), Denied> + Send + Sync + 'static) -> Self {
        self.config.on_message = Some(MessageHook::new(ask));
        self
    }

    /// Asks this function who may be served: about every request over HTTP, by its head and before its body is read, and about every
    /// connection to a Unix socket, without a head and before anything of it is read. It says who the request or the connection comes from,
    /// or why it is refused; a refused connection is closed. The [`Peer`] is who is at the other end, as far as that is known: the address of
    /// the client, behind a proxy that of the proxy, and on a Unix socket the [`Credentials`](crate::Credentials) of the process. A
    /// connection given to [`Server::serve_lines`](crate::Server::serve_lines) is asked about if its peer was made with [`Peer::unix`] or
    /// [`Peer::tcp`]; standard input and output are not.
    ///
    /// It may take up to [`admit_timeout`](mcp_proto::limits::ServerLimits::admit_timeout), and is dropped when the connection has gone; a
    /// panic in it refuses. What the `Host` or the path forbids is refused without it, and the preflight of a browser
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

    /// Runs the tasks of a server that has several (its listener, its connections, its handlers) with this function, and not on smol's
    /// global executor: `|task| executor.spawn(task).detach()`. A task that is dropped ends in order.
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
