//! The options of a client.

use crate::callbacks::Callbacks;
use mcp_proto::client::BadHeader;
use mcp_proto::client::Event;
use mcp_proto::exchange::{ConnectionId, ConnectionNotice};
use mcp_proto::process::Stderr;
#[cfg(feature = "record")]
use mcp_proto::record::Recorder;
use mcp_proto::wired::WiredClient;
use mcp_proto::{
    Authorization, Challenge, ClientConfig, Denied, ElicitRequest, ElicitResult, ErrorObject, InputAnswer, Instant,
    MessageHook, Object, WireMessage,
};
use std::fmt;
use std::sync::Arc;

/// The options of a [`Client`](crate::Client), with its callbacks. Registering a callback declares
/// the capability. Callbacks run on their own threads, never on one that the connection needs, so
/// they may call the same client. A callback that holds a [`Client`](crate::Client) keeps it open
/// until [`close`](crate::Client::close).
#[derive(Default)]
#[must_use]
pub struct Config {
    changes: Vec<Change>,
    pub(crate) callbacks: Callbacks,
    pub(crate) stderr: Stderr,
    pub(crate) engine: Option<CreateEngine>,
}

type Change = Box<dyn FnOnce(&mut ClientConfig) + Send>;

/// Creates a client as [`WiredClient::new`] does, with something in addition.
pub(crate) type CreateEngine = Box<dyn FnOnce(Arc<ClientConfig>, [u8; 32], Instant) -> WiredClient + Send>;

impl Config {
    /// Creates options with the defaults: no callbacks, inherited standard error, everything else
    /// as in [`ClientConfig`].
    pub fn new() -> Self {
        Self::default()
    }

    /// Changes the configuration of the engine: policy, revisions, timeouts, limits, the
    /// description of the client.
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
    pub fn on_elicit(mut self, ask: impl Fn(ElicitRequest) -> ElicitResult + Send + Sync + 'static) -> Self {
        self.callbacks.elicit = Some(Arc::new(ask));
        self.set(|config| config.capabilities.elicitation = Some(Object::new()))
    }

    /// Sets the callback for requests to a language model, with the params and the result on the
    /// wire.
    pub fn on_sample(mut self, ask: impl Fn(Object) -> Result<Object, ErrorObject> + Send + Sync + 'static) -> Self {
        self.callbacks.sample = Some(Arc::new(ask));
        self.set(|config| config.capabilities.sampling = Some(Object::new()))
    }

    /// Sets the callback that lists the roots, with the result on the wire.
    pub fn on_roots(self, list: impl Fn() -> Result<Object, ErrorObject> + Send + Sync + 'static) -> Self {
        self.answer_roots(move || list().map_or_else(InputAnswer::Error, InputAnswer::Roots))
    }

    /// Sets the roots to these URIs.
    pub fn roots<S: Into<String>>(self, uris: impl IntoIterator<Item = S>) -> Self {
        let uris: Vec<String> = uris.into_iter().map(Into::into).collect();
        self.answer_roots(move || InputAnswer::roots(&uris))
    }

    /// Sets the callback that provides credentials. HTTP requests that the server refused for lack
    /// of credentials wait for it and are then repeated. Without this callback they end with the
    /// status.
    pub fn on_authorize(mut self, get: impl Fn(Challenge) -> Authorization + Send + Sync + 'static) -> Self {
        self.callbacks.authorize = Some(Arc::new(get));
        self.set(|config| config.authorize = true)
    }

    /// Sets the callback for events, which runs for one at a time, in order, on its own thread.
    /// Events are notifications, diagnostics, and changes of the client: the end of the
    /// negotiation, a restart, a missed ping, the resumption or loss of a stream over HTTP, a
    /// change of the tools, the end. Without a callback all of them are dropped. If the callback is
    /// too slow, further events are counted in an [`Event::Lost`].
    pub fn on_event(mut self, told: impl Fn(Event) + Send + Sync + 'static) -> Self {
        self.callbacks.event = Some(Arc::new(told));
        self
    }

    /// Sets the callback for each step of the end of a connection, and for the exit status of a
    /// program. It runs on the thread of the events, in order with them.
    pub fn on_notice(mut self, told: impl Fn(ConnectionId, ConnectionNotice) + Send + Sync + 'static) -> Self {
        self.callbacks.notice = Some(Arc::new(told));
        self
    }

    /// Sets the message hook, which sees every message in both directions before it is handled or
    /// written, and may refuse it. See [`MessageHook`]. It runs under the lock of the client: it
    /// must not block, and must not call the client.
    pub fn on_message(self, ask: impl Fn(&WireMessage<'_>) -> Result<(), Denied> + Send + Sync + 'static) -> Self {
        let hook = MessageHook::new(ask);
        self.set(move |config| config.on_message = Some(hook))
    }

    /// Sets the destination of a program's standard error. A function for its lines runs on its own
    /// thread, for one line after another. It may call and close the client. It is dropped when the
    /// client has ended; whatever another process writes there later is read and dropped.
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
    pub fn record(mut self, recorder: Recorder) -> Self {
        self.engine = Some(Box::new(|config, seed, now| recorder.client(config, seed, now)));
        self
    }

    fn answer_roots(mut self, answer: impl Fn() -> InputAnswer + Send + Sync + 'static) -> Self {
        self.callbacks.roots = Some(Arc::new(answer));
        self.set(|config| config.capabilities.roots = Some(Object::new()))
    }

    /// Applies the changes to a configuration that has its target.
    pub(crate) fn apply(&mut self, config: &mut ClientConfig) {
        for change in self.changes.drain(..) {
            change(config);
        }
    }
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("callbacks", &self.callbacks)
            .field("stderr", &self.stderr)
            .field("recorded", &self.engine.is_some())
            .finish_non_exhaustive()
    }
}
