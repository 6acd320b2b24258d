//! Several servers, kept connected.

use crate::client::{Client, end, threads_of};
use crate::driver::Driver;
use crate::here;
use crate::pool::Pool;
use crate::sync;
use mcp_driver::{self, ConnectError, Delay, DriverHandle, Events, block_on, block_on_for};
use mcp_proto::call::Method;
use mcp_proto::{Instant, IntoCall};
use mcp_supervisor::front::{CallStep, Launch, SupervisorDriver, SupervisorOptions};
use mcp_supervisor::{
    CallRefusal, Catalogue, Freshness, Health, KeyInUse, ListKind, NameRules, Prefix, ServerSpec, SupervisedError,
    ToolNames,
};
use std::fmt;
use std::future::{pending, poll_fn};
use std::sync::Arc;
use std::time::Duration;

/// Creates a supervisor without servers, and starts its thread.
///
/// # Errors
/// [`ConnectError`] if the system provides no random bytes or no thread.
pub fn supervise(options: SupervisorOptions) -> Result<Supervisor, ConnectError> {
    let threads = Threads {
        events: Pool::new("mcp-events", 1, Events::deliver),
        callbacks: Pool::new("mcp-callback", MAX_CALLBACKS, |callback: Box<dyn FnOnce() + Send>| callback()),
    };
    let (supervisor, driver) = mcp_supervisor::front::Supervisor::begin(options, threads)?;
    let drives = move || drive(driver);
    sync::spawn("mcp-supervisor", drives).map_err(|e| ConnectError::Thread(e.to_string()))?;
    Ok(Supervisor(supervisor))
}

/// Keeps several servers connected, each under a key: see [`mcp_supervisor`]. A handle that
/// can be cloned and used from any thread. [`supervise`] returns one.
///
/// It has one thread besides those of its clients, and one for its events while there are any.
/// Dropping the last handle closes all clients, and waits for their end as dropping a client does.
///
/// ```
/// use mcp_blocking::{Program, SupervisorOptions, supervise};
/// use mcp_supervisor::ServerSpec;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let supervisor = supervise(SupervisorOptions::new())?;
/// let program = mcp_proto::ClientConfig::program(Program::new("no-such-program"));
/// supervisor.add("files", ServerSpec::new(program))?;
/// supervisor.settled();
/// assert!(supervisor.health("files").is_some_and(|health| health.cause.is_some()));
/// supervisor.close();
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Supervisor(mcp_supervisor::front::Supervisor<Threads>);

impl Supervisor {
    /// Adds a server, and connects to it as its specification says. Does not wait for it.
    ///
    /// # Errors
    /// [`KeyInUse`] if there is a server of this key, or if the supervisor is closed.
    pub fn add(&self, key: impl Into<String>, spec: ServerSpec) -> Result<(), KeyInUse> {
        self.0.add(key, spec)
    }

    /// Gives a server another specification. Its client is closed. Calls that run end with
    /// [`CallRefusal::Replaced`], and those that wait go on waiting. Returns false if there is no
    /// server of this key.
    pub fn replace(&self, key: &str, spec: ServerSpec) -> bool {
        self.0.replace(key, spec)
    }

    /// Removes a server and closes its client. Its calls end with [`CallRefusal::Removed`]. Returns
    /// false if there is no server of this key.
    pub fn remove(&self, key: &str) -> bool {
        self.0.remove(key)
    }

    /// Connects to a server now, without a delay: see
    /// [`mcp_supervisor::front::Supervisor::reconnect`].
    pub fn reconnect(&self, key: &str) -> bool {
        self.0.reconnect(key)
    }

    /// Makes a call, and waits for its one end: also for the connection, within the time of the
    /// call, and for a second run of it if the connection is lost and that is safe. The callback
    /// for progress runs on this thread.
    ///
    /// # Errors
    /// [`SupervisedError`].
    pub fn call<C: IntoCall>(&self, key: &str, call: C) -> Result<<C::Method as Method>::Output, SupervisedError> {
        if let Some((_, threads)) = self.0.client_and_driver(key) {
            threads.0.refresh();
        }
        let (mut call, mut via) = here::noting_writes(|| self.0.start(key, call));
        let mut step = block_on(poll_fn(|cx| call.poll_step(cx)));
        loop {
            match step {
                CallStep::Runs(ClientThreads(driver)) => {
                    driver.carry_out_all();
                    step = driver.wait_for(via.take(), poll_fn(|cx| call.poll_step(cx)));
                }
                CallStep::Ended(outcome) => return outcome,
            }
        }
    }

    /// Waits until a server is connected: see [`mcp_supervisor::front::Supervisor::ready`]. `limit`
    /// is the maximum time.
    ///
    /// # Errors
    /// [`CallRefusal`].
    pub fn ready(&self, key: &str, limit: Option<Duration>) -> Result<(), CallRefusal> {
        block_on(self.0.ready(key, limit))
    }

    /// Waits until nothing is under way but attempts after one that failed: each server is
    /// connected and its lists are loaded, or it could not be reached, or nothing has asked for it.
    pub fn settled(&self) {
        block_on(self.0.settled());
    }

    /// Returns the client of a server that is connected, for what only a client offers. It is that
    /// of this connection: after a reconnection the server has another one. `None` if the server is
    /// not connected.
    pub fn client(&self, key: &str) -> Option<Client> {
        self.0.client_and_driver(key).map(|(client, threads)| Client { client, driver: threads.0 })
    }

    /// Returns the keys of the servers, in order.
    pub fn keys(&self) -> Vec<String> {
        self.0.keys()
    }

    /// Returns the state of a server. `None` if there is none of this key. Its times are those of
    /// [`now`](Self::now).
    pub fn health(&self, key: &str) -> Option<Health> {
        self.0.health(key)
    }

    /// Returns the time since the supervisor was created, to which [`health`](Self::health) and
    /// refusals refer.
    pub fn now(&self) -> Instant {
        self.0.now()
    }

    /// Returns the lists of a server, as far as they are known. Empty if there is no server of this
    /// key.
    pub fn catalogue(&self, key: &str) -> Catalogue {
        self.0.catalogue(key)
    }

    /// Returns how far a list of a server can be relied on.
    pub fn freshness(&self, key: &str, list: ListKind) -> Freshness {
        self.0.freshness(key, list)
    }

    /// Returns the tools of all servers, each with its definition and a name for a language model.
    pub fn tool_names(&self, rules: NameRules, prefix: Prefix) -> ToolNames<String> {
        self.0.tool_names(rules, prefix)
    }

    /// Closes all clients in order, all at the same time, and waits for their end, at most for
    /// [`close_timeout`](mcp_supervisor::Supervision::close_timeout). All calls are refused.
    /// May be called repeatedly and concurrently. Returns the number of clients that have not ended
    /// in time.
    pub fn close(&self) -> usize {
        block_on(self.0.close())
    }
}

impl fmt::Debug for Supervisor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Maximum number of threads that resolve configurations at the same time.
const MAX_CALLBACKS: usize = 16;

/// The thread of a supervisor.
fn drive(mut driver: SupervisorDriver<Threads>) {
    while driver.turn() {
        let clock = driver.clock();
        block_on_for(clock.until(driver.poll_timeout()), driver.woken());
    }
}

/// The clients of a supervisor run on threads.
struct Threads {
    events: Pool<Events>,
    callbacks: Pool<Box<dyn FnOnce() + Send>>,
}

/// The driver of a client.
#[derive(Clone)]
struct ClientThreads(Arc<Driver>);

impl Launch for Threads {
    type Driver = ClientThreads;

    fn delay(&self) -> Delay {
        |_| Box::pin(pending())
    }

    fn create(&self, client: &mcp_driver::Client, driving: DriverHandle) -> ClientThreads {
        ClientThreads(threads_of(client, driving, None))
    }

    fn begin(&self, driver: &ClientThreads) -> Result<(), ConnectError> {
        driver.0.begin().map_err(|e| ConnectError::Thread(e.to_string()))
    }

    fn run(&self, callback: Box<dyn FnOnce() + Send>) {
        // Without a thread it is dropped, and the time for it ends.
        drop(self.callbacks.submit(callback));
    }

    fn deliver(&self, events: Events) {
        // Without a thread they wait for the next one.
        drop(self.events.submit(events));
    }

    fn finish(&self, client: &mcp_driver::Client, driver: ClientThreads) {
        end(&client.closer(), &driver.0);
    }
}
