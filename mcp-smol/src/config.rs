//! The options of clients and servers.

use crate::ClientEvent;
use crate::future::BoxFuture;
use mcp_proto::adapter::{Question, Reply, ServerOptions};
use mcp_proto::client::BadHeader;
use mcp_proto::client::ClientConfig;
use mcp_proto::exchange::{ConnectionId, ConnectionNotice};
use mcp_proto::process::Stderr;
#[cfg(feature = "record")]
use mcp_proto::record::Recorder;
use mcp_proto::wired::WiredClient;
use mcp_proto::{
    Authorization, Challenge, Denied, ElicitRequest, ElicitResult, ErrorObject, InputAnswer, InputRequest, Instant,
    MessageHook, Object, Router, WireMessage,
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
    pub(crate) engine: Option<CreateEngine>,
}

type Change = Box<dyn FnOnce(&mut ClientConfig) + Send>;

/// Creates a client as [`WiredClient::new`] does, with something in addition.
pub(crate) type CreateEngine = Box<dyn FnOnce(Arc<ClientConfig>, [u8; 32], Instant) -> WiredClient + Send>;

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
        f.debug_struct("Config")
            .field("stderr", &self.stderr)
            .field("recorded", &self.engine.is_some())
            .finish_non_exhaustive()
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
    #[cfg(feature = "record")]
    #[must_use]
    pub fn record(mut self, recorder: Recorder) -> Self {
        self.engine = Some(Box::new(|config, seed, now| recorder.client(config, seed, now)));
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

/// A router with the options of its server. A [`Router`] converts to one with the defaults.
pub struct Service {
    pub(crate) router: Router,
    pub(crate) options: ServerOptions,
}

impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Service").field("options", &self.options).finish_non_exhaustive()
    }
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
