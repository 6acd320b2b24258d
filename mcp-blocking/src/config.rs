//! How a client behaves, and what it can do for its server.

use crate::callbacks::Callbacks;
#[cfg(feature = "http")]
use mcp_proto::client::BadHeader;
use mcp_proto::client::Event;
use mcp_proto::process::Stderr;
use mcp_proto::record::Recorder;
use mcp_proto::{
    Authorization, Challenge, ClientConfig, Denied, ElicitRequest, ElicitResult, ErrorObject, InputAnswer, MessageHook,
    Object, WireMessage,
};
use std::fmt;
use std::sync::Arc;

/// The configuration of a [`Client`](crate::Client). Registering a callback declares the capability. Callbacks run on threads of their
/// own, never on one that the connection needs, so they may call the same client. One that holds a [`Client`](crate::Client) keeps it
/// open until [`close`](crate::Client::close).
#[derive(Default)]
#[must_use]
pub struct Config {
    changes: Vec<Change>,
    pub(crate) callbacks: Callbacks,
    pub(crate) stderr: Stderr,
    pub(crate) recorder: Option<Recorder>,
}

type Change = Box<dyn FnOnce(&mut ClientConfig) + Send>;

impl Config {
    /// The defaults: no callbacks, standard error inherited, everything else as [`ClientConfig`] has it.
    pub fn new() -> Self {
        Self::default()
    }

    /// Changes the configuration of the engine: policy, revisions, timeouts, limits, who we are.
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

    /// Asks the user with this function when the server does (elicitation, by form).
    pub fn on_elicit(mut self, ask: impl Fn(ElicitRequest) -> ElicitResult + Send + Sync + 'static) -> Self {
        self.callbacks.elicit = Some(Arc::new(ask));
        self.set(|config| config.capabilities.elicitation = Some(Object::new()))
    }

    /// Asks a language model with this function when the server does (sampling); params and result are as they are on the wire.
    pub fn on_sample(mut self, ask: impl Fn(Object) -> Result<Object, ErrorObject> + Send + Sync + 'static) -> Self {
        self.callbacks.sample = Some(Arc::new(ask));
        self.set(|config| config.capabilities.sampling = Some(Object::new()))
    }

    /// Lists the roots with this function when the server asks; the result is as it is on the wire.
    pub fn on_roots(self, list: impl Fn() -> Result<Object, ErrorObject> + Send + Sync + 'static) -> Self {
        self.answer_roots(move || list().map_or_else(InputAnswer::Error, InputAnswer::Roots))
    }

    /// Tells the server these roots (URIs) when it asks.
    pub fn roots<S: Into<String>>(self, uris: impl IntoIterator<Item = S>) -> Self {
        let uris: Vec<String> = uris.into_iter().map(Into::into).collect();
        self.answer_roots(move || InputAnswer::roots(&uris))
    }

    /// Gets credentials with this function when the server wants some, or others: requests over HTTP that it refused for that reason wait
    /// until it has answered, and are made once more. Without it they end with the status.
    pub fn on_authorize(mut self, get: impl Fn(Challenge) -> Authorization + Send + Sync + 'static) -> Self {
        self.callbacks.authorize = Some(Arc::new(get));
        self.set(|config| config.authorize = true)
    }

    /// Hands notifications and diagnostics of the server to this function, one at a time and in order, and what becomes of the
    /// connection: that the two sides have agreed, each step of the end of a channel, a restart, a missed ping, a stream over HTTP that
    /// is gone on with or given up, that the tools may have changed, and that the client has ended. By default they are dropped. What it
    /// is too slow for is counted and told as [`Event::Lost`].
    pub fn on_event(mut self, told: impl Fn(Event) + Send + Sync + 'static) -> Self {
        self.callbacks.event = Some(Arc::new(told));
        self
    }

    /// Asks this function about every message, in and out, before it is acted upon or written; it may refuse. See [`MessageHook`]. It runs
    /// under the lock of the client: it must not wait, and not call the client.
    pub fn on_message(self, ask: impl Fn(&WireMessage<'_>) -> Result<(), Denied> + Send + Sync + 'static) -> Self {
        let hook = MessageHook::new(ask);
        self.set(move |config| config.on_message = Some(hook))
    }

    /// Where the standard error of a program leads. A function that gets its lines runs on a thread of its own, one line after another;
    /// it may call and close the client. It is let go when the client has ended: what another process still writes there then is read
    /// and dropped.
    pub fn stderr(mut self, stderr: Stderr) -> Self {
        self.stderr = stderr;
        self
    }

    /// Records the client from its first moment, until it has ended: see [`record`](mcp_proto::record) for what is written and what is
    /// left out. `Recorder::to(Redaction::Redacted, File::create(path)?)` writes to a file. The writer is called under the lock of the
    /// client, so that nothing is lost in a crash and the lines are in order: a file is quick enough, and what may take long should be
    /// handed to a thread. If it fails, the recording ends with a diagnostic, and the client goes on.
    pub fn record(mut self, recorder: Recorder) -> Self {
        self.recorder = Some(recorder);
        self
    }

    fn answer_roots(mut self, answer: impl Fn() -> InputAnswer + Send + Sync + 'static) -> Self {
        self.callbacks.roots = Some(Arc::new(answer));
        self.set(|config| config.capabilities.roots = Some(Object::new()))
    }

    /// Applies the changes to a configuration that knows its target.
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
            .field("recorder", &self.recorder)
            .finish_non_exhaustive()
    }
}
