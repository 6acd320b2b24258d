//! Several servers, kept connected, on any runtime: the handle of the application.

mod call;
mod driver;
mod options;
mod shared;

pub use call::{CallStep, SupervisedCall};
pub use driver::SupervisorDriver;
pub use options::SupervisorOptions;

use crate::{
    CallKind, CallPlan, CallRefusal, Catalogue, Freshness, Health, KeyInUse, ListKind, NameRules, Prefix, ServerSpec,
    SupervisedError, ToolNames,
};
use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;
use mcp_driver::ConnectError;
use mcp_driver::{Client, Delay, DriverHandle, Events};
use mcp_proto::call::{IntoCall, Method};
use mcp_proto::time::Instant;
use shared::SupervisorShared;

/// What a [`Supervisor`] needs of an adapter.
pub trait Launch: Send + Sync + 'static {
    /// What the adapter keeps for each client.
    type Driver: Clone + Send + Sync + 'static;

    /// Returns the timer of the runtime.
    fn delay(&self) -> Delay;

    /// Creates what drives a client. Starts nothing.
    fn create(&self, client: &Client, driving: DriverHandle) -> Self::Driver;

    /// Begins to drive a client, to its end.
    ///
    /// # Errors
    /// The system lacks a resource.
    fn begin(&self, driver: &Self::Driver) -> Result<(), ConnectError>;

    /// Runs a callback that may block, on a thread that may wait.
    fn run(&self, callback: Box<dyn FnOnce() + Send>);

    /// Passes events to the application, where the adapter passes those of clients.
    fn deliver(&self, events: Events);

    /// Waits for the end of a client that closes, for the time limits of its shutdown at most. What
    /// has not ended then is aborted.
    fn finish(&self, client: &Client, driver: Self::Driver);
}

/// Keeps several servers connected, each under a key: see [`supervise`](crate). Cheap to
/// clone. Dropping the last clone closes all clients, and waits for their programs as dropping a
/// client does. A pending call keeps it open.
pub struct Supervisor<L: Launch>(Arc<SupervisorOwner<L>>);

/// Ends everything when the last handle is dropped. The driver shares the rest without owning it.
struct SupervisorOwner<L: Launch>(SupervisorShared<L>);

impl<L: Launch> Supervisor<L> {
    /// For an adapter: creates a supervisor without servers, and its driver.
    ///
    /// # Errors
    /// [`ConnectError::System`]: the operating system provides no random bytes.
    pub fn begin(options: SupervisorOptions, launch: L) -> Result<(Self, SupervisorDriver<L>), ConnectError> {
        let shared = SupervisorShared::create(options, launch)?;
        Ok((Self(Arc::new(SupervisorOwner(shared.clone()))), SupervisorDriver::new(shared)))
    }

    /// Adds a server, and connects to it as its specification says. Does not wait for it.
    ///
    /// # Errors
    /// [`KeyInUse`] if there is a server of this key, or if the supervisor is closed.
    pub fn add(&self, key: impl Into<String>, spec: ServerSpec) -> Result<(), KeyInUse> {
        self.shared().with(|state, now, _| state.core.add(now, key.into(), spec))
    }

    /// Gives a server another specification. Its client is closed. Calls that run end with
    /// [`CallRefusal::Replaced`], and those that wait go on waiting. Returns false if there is no
    /// server of this key.
    pub fn replace(&self, key: &str, spec: ServerSpec) -> bool {
        self.shared().with(|state, now, _| state.core.replace(now, &String::from(key), spec))
    }

    /// Removes a server and closes its client. Its calls end with [`CallRefusal::Removed`]. Returns
    /// false if there is no server of this key.
    pub fn remove(&self, key: &str) -> bool {
        self.shared().with(|state, now, _| state.core.remove(now, &String::from(key)))
    }

    /// Connects to a server now, without a delay, also if it is connected or down. Returns false if
    /// there is no server of this key, or if it had too many attempts
    /// ([`max_attempts`](crate::Supervision::max_attempts)).
    pub fn reconnect(&self, key: &str) -> bool {
        self.shared().with(|state, now, _| state.core.reconnect(now, &String::from(key)))
    }

    /// Makes a call, and waits for its one end: also for the connection, within the time of the
    /// call, and for a second run of it if the connection is lost and that is safe. Dropping the
    /// future cancels the call, also on the server.
    ///
    /// # Errors
    /// [`SupervisedError`].
    pub async fn call<C: IntoCall>(
        &self,
        key: &str,
        call: C,
    ) -> Result<<C::Method as Method>::Output, SupervisedError> {
        self.start(key, call).await
    }

    /// Begins a call, and returns a future of its end.
    pub fn start<C: IntoCall>(&self, key: &str, call: C) -> SupervisedCall<C::Method, C::Listener, L> {
        SupervisedCall::new(self, key, call)
    }

    /// Waits until a server is connected, as a call does, and counts as one. Connects to it if
    /// nothing has done so. `limit` is the maximum time.
    ///
    /// # Errors
    /// [`CallRefusal`].
    pub async fn ready(&self, key: &str, limit: Option<Duration>) -> Result<(), CallRefusal> {
        let plan = CallPlan { timeout: limit, ..CallPlan::new(CallKind::Other) };
        self.shared().reserve(key, plan, None)?.granted().await
    }

    /// Waits until nothing is under way but attempts after one that failed: each server is
    /// connected and its lists are loaded, or it could not be reached, or nothing has asked for it.
    pub async fn settled(&self) {
        self.shared().watch(|state| state.core.is_settled().then_some(())).await;
    }

    /// Returns the client of a server that is connected, for what only a client offers. It is that
    /// of this connection: after a reconnection the server has another one. `None` if the server is
    /// not connected.
    pub fn client(&self, key: &str) -> Option<Client> {
        self.shared().client(key).map(|(client, _)| client)
    }

    /// For an adapter: as [`client`](Self::client), with what the adapter keeps for it.
    pub fn client_and_driver(&self, key: &str) -> Option<(Client, L::Driver)> {
        self.shared().client(key)
    }

    /// Returns the keys of the servers, in order.
    pub fn keys(&self) -> Vec<String> {
        self.shared().read(|core| core.keys().cloned().collect())
    }

    /// Returns the state of a server. `None` if there is none of this key. Its times are those of
    /// [`now`](Self::now).
    pub fn health(&self, key: &str) -> Option<Health> {
        self.shared().read(|core| core.health(&String::from(key)))
    }

    /// Returns the time since the supervisor was created, to which [`health`](Self::health) and
    /// refusals refer.
    pub fn now(&self) -> Instant {
        self.shared().now()
    }

    /// Returns the lists of a server, as far as they are known. They share their elements with the
    /// supervisor. Empty if there is no server of this key.
    pub fn catalogue(&self, key: &str) -> Catalogue {
        self.shared().read(|core| core.catalogue(&String::from(key)).cloned().unwrap_or_default())
    }

    /// Returns how far a list of a server can be relied on.
    pub fn freshness(&self, key: &str, list: ListKind) -> Freshness {
        self.shared().read(|core| core.freshness(&String::from(key), list))
    }

    /// Returns the tools of all servers, each with its definition and a name for a language model.
    pub fn tool_names(&self, rules: NameRules, prefix: Prefix) -> ToolNames<String> {
        self.shared().read(|core| core.tool_names(rules, prefix))
    }

    /// Closes all clients in order, all at the same time, and waits for their end, at most for
    /// [`close_timeout`](crate::Supervision::close_timeout). All calls are refused. May
    /// be called repeatedly and concurrently. Returns the number of clients that have not ended in
    /// time.
    pub async fn close(&self) -> usize {
        self.shared().with(|state, now, _| state.core.close(now));
        self.shared().watch(|state| state.closed()).await
    }

    fn shared(&self) -> &SupervisorShared<L> {
        &self.0.0
    }
}

impl<L: Launch> Clone for Supervisor<L> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<L: Launch> fmt::Debug for Supervisor<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Supervisor").field("keys", &self.keys()).finish_non_exhaustive()
    }
}

impl<L: Launch> Drop for SupervisorOwner<L> {
    fn drop(&mut self) {
        for running in self.0.begin_end() {
            self.0.setup.launch.finish(&running.client, running.driver);
        }
        self.0.end(true);
    }
}
