//! How a client behaves, and what it can do for its server.

use crate::callbacks::Callbacks;
use mcp_proto::client::Event;
use mcp_proto::process::Stderr;
use mcp_proto::{ClientConfig, ElicitRequest, ElicitResult, ErrorObject, InputAnswer, Object};
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

    /// Hands notifications and diagnostics of the server to this function, one at a time and in order, and that the two sides have
    /// agreed and that the client has ended. By default they are dropped. What it is too slow for is counted and told as
    /// [`Event::Lost`].
    pub fn on_event(mut self, told: impl Fn(Event) + Send + Sync + 'static) -> Self {
        self.callbacks.event = Some(Arc::new(told));
        self
    }

    /// Where the standard error of a program leads. A function that gets its lines runs on a thread of its own.
    pub fn stderr(mut self, stderr: Stderr) -> Self {
        self.stderr = stderr;
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
            .finish_non_exhaustive()
    }
}
