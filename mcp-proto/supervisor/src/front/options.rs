//! The options of a supervisor, which are the same in every adapter.

use crate::{Event, Supervision, Supervisor as Decisions};
use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use core::fmt;
use mcp_driver::ClientOptions;
use mcp_proto::client::ClientConfig;
#[cfg(feature = "record")]
use mcp_proto::record::Recorder;
use mcp_proto::route::BoxFuture;

/// The options of a supervisor, with its callbacks.
#[must_use]
pub struct SupervisorOptions {
    policy: Supervision,
    pub(super) clients: Box<dyn Fn(&str) -> ClientOptions + Send + Sync>,
    pub(super) event: Option<Box<dyn FnMut(Event<String>) + Send>>,
    pub(super) resolve: Option<Resolve>,
    #[cfg(feature = "record")]
    recorder: Option<Recorder>,
}

/// The result of a callback that resolves a configuration. The text of an error is for people.
pub(super) type ResolveResult = Result<ClientConfig, String>;

/// The callback that resolves a configuration, in either form.
#[derive(Clone)]
pub(super) enum Resolve {
    Sync(ResolveFn<ResolveResult>),
    Async(ResolveFn<BoxFuture<ResolveResult>>),
}

type ResolveFn<R> = Arc<dyn Fn(&str, ClientConfig) -> R + Send + Sync>;

impl SupervisorOptions {
    /// Returns the defaults.
    pub fn new() -> Self {
        Self {
            policy: Supervision::default(),
            clients: Box::new(|_| ClientOptions::new()),
            event: None,
            resolve: None,
            #[cfg(feature = "record")]
            recorder: None,
        }
    }

    /// Sets how the supervisor treats its servers.
    pub fn policy(mut self, policy: Supervision) -> Self {
        self.policy = policy;
        self
    }

    /// Sets the function that creates the options of each client, from the key of its server: the
    /// callbacks that answer the server, for example. It is called for each attempt to connect, by
    /// the driver of the supervisor, and must not block. It must not hold the supervisor, which
    /// would then never end by itself.
    pub fn clients(mut self, create: impl Fn(&str) -> ClientOptions + Send + Sync + 'static) -> Self {
        self.clients = Box::new(create);
        self
    }

    /// Sets the callback for events. It runs where those of clients run. One that holds the
    /// supervisor keeps it open. A panic in it is caught.
    pub fn on_event(mut self, told: impl FnMut(Event<String>) + Send + 'static) -> Self {
        self.event = Some(Box::new(told));
        self
    }

    /// Sets the callback that resolves a configuration before each attempt to connect, for
    /// specifications that [ask for it](crate::ServerSpec::resolve): it gets the key and
    /// the configuration of the specification. It may block.
    pub fn on_resolve(
        mut self,
        resolve: impl Fn(&str, ClientConfig) -> Result<ClientConfig, String> + Send + Sync + 'static,
    ) -> Self {
        self.resolve = Some(Resolve::Sync(Arc::new(resolve)));
        self
    }

    /// As [`on_resolve`](Self::on_resolve), with a future.
    pub fn on_resolve_async<F, R>(mut self, resolve: F) -> Self
    where
        F: Fn(&str, ClientConfig) -> R + Send + Sync + 'static,
        R: Future<Output = Result<ClientConfig, String>> + Send + 'static,
    {
        self.resolve = Some(Resolve::Async(Arc::new(move |key, config| Box::pin(resolve(key, config)))));
        self
    }

    /// Records the decisions of the supervisor, with all that leads to them, until it is closed:
    /// see [`record`](crate::record). Of its clients, each is recorded if its
    /// [options](Self::clients) say so. The writer is called under the lock of the supervisor: see
    /// [`ClientOptions::record`].
    #[cfg(feature = "record")]
    pub fn record(mut self, recorder: Recorder) -> Self {
        self.recorder = Some(recorder);
        self
    }

    /// Creates the supervisor of the core, recorded if there is a recorder.
    pub(super) fn create(&mut self, seed: [u8; 32]) -> Decisions<String> {
        let policy = core::mem::take(&mut self.policy);
        #[cfg(feature = "record")]
        if let Some(recorder) = self.recorder.take() {
            return Decisions::recorded(policy, seed, recorder);
        }
        Decisions::new(policy, seed)
    }
}

impl Default for SupervisorOptions {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for SupervisorOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SupervisorOptions").field("policy", &self.policy).finish_non_exhaustive()
    }
}
