//! Both adapters behind one interface, with the adapter as a value: a program that exists for each
//! of them is written once.

use mcp_driver::{ClientOptions, ConnectError, IntoTarget, ServerHandle, Service, Watcher};
use mcp_proto::call::{CallCallbacks, CallListener, IntoCall, Method, PagedMethod};
use mcp_proto::client::{Termination, Verdict};
use mcp_proto::error::AuthError;
use mcp_proto::input::{CallId, Principal};
use mcp_proto::route::IntoOutput;
use mcp_proto::skills::{Held, SkillError};
use mcp_proto::stats::{ClientStats, ServerStats};
use mcp_proto::{Call, CallError, Change, Cx, LogLevel, Object, Refusal, Router, ServerInfo, Tool, ToolError, Watch};
use mcp_supervisor::front::SupervisorOptions;
use mcp_supervisor::{Freshness, Health, KeyInUse, ListKind, ServerSpec, SupervisedError};
use rustls::ServerConfig;
use serde::de::DeserializeOwned;
use smol::future::FutureExt;
use smol::{Timer, block_on};
use std::error::Error;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;
use std::{io, iter};

/// Maximum time for a driver to end after its client.
const SOON: Duration = Duration::from_secs(10);

/// One of the two.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Adapter {
    /// `mcp-blocking`.
    Blocking,
    /// `mcp-smol`.
    Smol,
}

/// A target that is the same for both.
pub trait AnyTarget: IntoTarget<mcp_blocking::Given> + IntoTarget<mcp_smol::Given> {}

impl<T: IntoTarget<mcp_blocking::Given> + IntoTarget<mcp_smol::Given>> AnyTarget for T {}

impl Adapter {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Blocking, Self::Smol];

    /// Returns its name in the arguments of programs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Blocking => "blocking",
            Self::Smol => "smol",
        }
    }

    /// Returns the name of its crate.
    pub const fn package(self) -> &'static str {
        match self {
            Self::Blocking => "mcp-blocking",
            Self::Smol => "mcp-smol",
        }
    }

    /// Returns the adapter with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|adapter| adapter.name() == name)
    }

    /// Splits the arguments of a program whose first one names the adapter.
    pub fn first_of(args: Vec<String>) -> Option<(Self, Vec<String>)> {
        let (name, rest) = args.split_first()?;
        Some((Self::named(name)?, rest.to_vec()))
    }

    /// Connects a client, and waits for the end of negotiation.
    ///
    /// # Errors
    /// Why it cannot connect.
    pub fn connect(self, target: impl AnyTarget, options: ClientOptions) -> Result<Client, ConnectError> {
        Ok(match self {
            Self::Blocking => Client::Blocking(mcp_blocking::connect_with(target, options)?),
            Self::Smol => Client::Smol(block_on(mcp_smol::connect_with(target, options))?, None),
        })
    }

    /// The same. If the application can run the driver of such a client, it does, as a task.
    ///
    /// # Errors
    /// Why it cannot connect.
    pub fn connect_driven(self, target: impl AnyTarget, options: ClientOptions) -> Result<Client, ConnectError> {
        if self == Self::Blocking {
            return self.connect(target, options);
        }
        let (client, driver) = mcp_smol::connect_driven(target, options)?;
        let driver = smol::spawn(driver);
        block_on(client.ready())?;
        Ok(Client::Smol(client, Some(driver)))
    }

    /// Creates a supervisor without servers.
    ///
    /// # Errors
    /// Why there is none.
    pub fn supervise(self, options: SupervisorOptions) -> Result<Supervisor, ConnectError> {
        Ok(match self {
            Self::Blocking => Supervisor::Blocking(mcp_blocking::supervise(options)?),
            Self::Smol => Supervisor::Smol(mcp_smol::supervise(options)?),
        })
    }

    /// Serves standard input and output until the client disconnects.
    ///
    /// # Errors
    /// A standard stream fails.
    pub fn serve_stdio(self, service: impl Into<Service>) -> io::Result<()> {
        match self {
            Self::Blocking => mcp_blocking::serve_stdio(service),
            Self::Smol => block_on(mcp_smol::serve_stdio(service)),
        }
    }

    /// Serves HTTP at this address.
    ///
    /// # Errors
    /// It cannot listen.
    pub fn serve_http(self, service: impl Into<Service>, address: impl ToSocketAddrs) -> io::Result<Server> {
        let addresses: Vec<SocketAddr> = address.to_socket_addrs()?.collect();
        Ok(match self {
            Self::Blocking => Server::Blocking(mcp_blocking::serve_http(service, &addresses[..])?),
            Self::Smol => Server::Smol(block_on(mcp_smol::serve_http(service, &addresses[..]))?),
        })
    }

    /// The same, with TLS.
    ///
    /// # Errors
    /// It cannot listen.
    pub fn serve_https(
        self,
        service: impl Into<Service>,
        address: impl ToSocketAddrs,
        tls: Arc<ServerConfig>,
    ) -> io::Result<Server> {
        let addresses: Vec<SocketAddr> = address.to_socket_addrs()?.collect();
        Ok(match self {
            Self::Blocking => Server::Blocking(mcp_blocking::serve_https(service, &addresses[..], tls)?),
            Self::Smol => Server::Smol(block_on(mcp_smol::serve_https(service, &addresses[..], tls))?),
        })
    }

    /// Adds a tool to a router of this adapter, with the kind of handler that waits as the adapter
    /// does: a function that blocks, or a future, which a cancellation drops.
    pub fn add_tool<A, O, R>(
        self,
        router: Router,
        tool: impl Into<Tool>,
        handler: impl Fn(Cx, A) -> R + Send + Sync + 'static,
    ) -> Router
    where
        A: DeserializeOwned,
        O: IntoOutput + 'static,
        R: Future<Output = Result<O, ToolError>> + Send + 'static,
    {
        match self {
            Self::Blocking => router.tool(tool, move |cx, arguments| block_on(handler(cx.clone(), arguments))),
            Self::Smol => router.tool_async(tool, handler),
        }
    }
}

/// A client of either.
pub enum Client {
    /// Of `mcp-blocking`.
    Blocking(mcp_blocking::Client),
    /// Of `mcp-smol`, with its driver if that is a task of this program.
    Smol(mcp_smol::Client, Option<smol::Task<()>>),
}

impl Client {
    /// Makes a call, and waits for its result.
    ///
    /// # Errors
    /// Why the call has none.
    pub fn call<C: IntoCall>(&self, call: C) -> Result<<C::Method as Method>::Output, CallError> {
        match self {
            Self::Blocking(client) => client.call(call),
            Self::Smol(client, _) => block_on(client.call(call)),
        }
    }

    /// Begins a call.
    pub fn start<C: IntoCall>(&self, call: C) -> Pending<C::Method, C::Listener> {
        match self {
            Self::Blocking(client) => Pending::Blocking(client.start(call)),
            Self::Smol(client, _) => Pending::Smol(client.start(call)),
        }
    }

    /// Returns all elements of a list, from all pages.
    ///
    /// # Errors
    /// Why the call of a page has no result.
    pub fn all<M: PagedMethod>(&self, list: Call<M>) -> Result<Vec<M::Element>, CallError> {
        match self {
            Self::Blocking(client) => client.pages(list).collect(),
            Self::Smol(client, _) => block_on(client.pages(list).all()),
        }
    }

    /// Reads a file of a skill, and checks it.
    ///
    /// # Errors
    /// Why its bytes are not to be used.
    pub fn read_skill(&self, held: &Held, uri: &str) -> Result<Vec<u8>, SkillError> {
        match self {
            Self::Blocking(client) => held.read(client, uri),
            Self::Smol(client, _) => block_on(held.read(client, uri)),
        }
    }

    /// Watches these changes until the watcher is dropped.
    ///
    /// # Errors
    /// Why it is refused.
    pub fn watch(&self, watch: Watch) -> Result<Watcher, Refusal> {
        match self {
            Self::Blocking(client) => client.watch(watch),
            Self::Smol(client, _) => client.watch(watch),
        }
    }

    /// Requests log messages of this level or above.
    pub fn log_level(&self, level: Option<LogLevel>) {
        match self {
            Self::Blocking(client) => client.log_level(level),
            Self::Smol(client, _) => client.log_level(level),
        }
    }

    /// The application has other credentials.
    pub fn credentials_changed(&self) {
        match self {
            Self::Blocking(client) => client.credentials_changed(),
            Self::Smol(client, _) => client.credentials_changed(),
        }
    }

    /// The user says that the web page with this id is complete.
    pub fn elicited(&self, id: &str) {
        match self {
            Self::Blocking(client) => client.elicited(id),
            Self::Smol(client, _) => client.elicited(id),
        }
    }

    /// Sends a notification.
    ///
    /// # Errors
    /// Why it is refused.
    pub fn notify(&self, method: &str, params: Object) -> Result<(), Refusal> {
        match self {
            Self::Blocking(client) => client.notify(method, params).map(drop),
            Self::Smol(client, _) => client.notify(method, params).map(drop),
        }
    }

    /// Returns what the server said of itself.
    pub fn server(&self) -> Option<ServerInfo> {
        match self {
            Self::Blocking(client) => client.server(),
            Self::Smol(client, _) => client.server(),
        }
    }

    /// Returns what the client found out about the server.
    pub fn verdict(&self) -> Option<Verdict> {
        match self {
            Self::Blocking(client) => client.verdict(),
            Self::Smol(client, _) => client.verdict(),
        }
    }

    /// Returns its counters.
    pub fn stats(&self) -> ClientStats {
        match self {
            Self::Blocking(client) => client.stats(),
            Self::Smol(client, _) => client.stats(),
        }
    }

    /// Logs a user in, and waits for the end of it.
    ///
    /// # Errors
    /// Why the user is not logged in.
    pub fn login(&self) -> Result<(), AuthError> {
        match self {
            Self::Blocking(client) => client.login(),
            Self::Smol(client, _) => block_on(client.login()),
        }
    }

    /// Logs the user out. Returns whether the authorization server confirmed that it revoked the
    /// tokens, if there was something to confirm.
    ///
    /// # Errors
    /// Why the login is not removed.
    pub fn logout(&self) -> Result<Option<bool>, AuthError> {
        match self {
            Self::Blocking(client) => client.logout(),
            Self::Smol(client, _) => block_on(client.logout()),
        }
    }

    /// Closes it in order.
    ///
    /// # Errors
    /// What is left of it in this process.
    pub fn close(self) -> Result<Termination, String> {
        let (why, left) = match self {
            Self::Blocking(client) => (client.close(), client.stats()),
            Self::Smol(client, driver) => {
                let why = block_on(client.close());
                let left = client.stats();
                drop(client);
                if let Some(driver) = driver {
                    within(SOON, driver).ok_or("the driver goes on")?;
                }
                (why, left)
            }
        };
        if left.channels == 0 { Ok(why) } else { Err(format!("{why:?}, but {left:?}")) }
    }
}

/// A call of either that was begun.
pub enum Pending<M: Method, F = CallCallbacks> {
    /// Of `mcp-blocking`.
    Blocking(mcp_blocking::PendingCall<M, F>),
    /// Of `mcp-smol`.
    Smol(mcp_smol::PendingCall<M, F>),
}

impl<M: Method, F: CallListener> Pending<M, F> {
    /// Returns its id, if it was accepted.
    pub fn id(&self) -> Option<CallId> {
        match self {
            Self::Blocking(call) => call.id(),
            Self::Smol(call) => call.id(),
        }
    }

    /// Cancels it.
    pub fn cancel(&self, reason: Option<&str>) {
        match self {
            Self::Blocking(call) => call.cancel(reason),
            Self::Smol(call) => call.cancel(reason),
        }
    }

    /// Waits for its result.
    ///
    /// # Errors
    /// Why it has none.
    pub fn wait(self) -> Result<M::Output, CallError> {
        match self {
            Self::Blocking(call) => call.wait(),
            Self::Smol(call) => block_on(call),
        }
    }

    /// Waits for its result, at most for this time.
    ///
    /// # Errors
    /// The call itself, if it has not ended.
    pub fn wait_timeout(self, limit: Duration) -> Result<Result<M::Output, CallError>, Self> {
        match self {
            Self::Blocking(call) => call.wait_timeout(limit).map_err(Self::Blocking),
            Self::Smol(mut call) => within(limit, &mut call).ok_or(Self::Smol(call)),
        }
    }
}

/// Returns the cause of this type for which a client could not connect.
pub fn cause<T: Error + 'static>(error: &ConnectError) -> Option<&T> {
    let mut next: Option<&(dyn Error + 'static)> = Some(error);
    iter::from_fn(|| {
        let error = next?;
        next = error.source();
        Some(error)
    })
    .find_map(|error| error.downcast_ref())
}

/// Waits for a future, at most for this time.
fn within<T>(limit: Duration, future: impl Future<Output = T>) -> Option<T> {
    let late = async {
        Timer::after(limit).await;
        None
    };
    block_on(async { Some(future.await) }.or(late))
}

/// A supervisor of either.
#[derive(Clone, Debug)]
pub enum Supervisor {
    /// Of `mcp-blocking`.
    Blocking(mcp_blocking::Supervisor),
    /// Of `mcp-smol`.
    Smol(mcp_smol::Supervisor),
}

impl Supervisor {
    /// Adds a server.
    ///
    /// # Errors
    /// There is one with this key.
    pub fn add(&self, key: &str, spec: ServerSpec) -> Result<(), KeyInUse> {
        match self {
            Self::Blocking(supervisor) => supervisor.add(key, spec),
            Self::Smol(supervisor) => supervisor.add(key, spec),
        }
    }

    /// Makes a call, and waits for its end.
    ///
    /// # Errors
    /// Why it has no result.
    pub fn call<C: IntoCall>(&self, key: &str, call: C) -> Result<<C::Method as Method>::Output, SupervisedError> {
        match self {
            Self::Blocking(supervisor) => supervisor.call(key, call),
            Self::Smol(supervisor) => block_on(supervisor.call(key, call)),
        }
    }

    /// Waits until nothing is under way but attempts after one that failed.
    pub fn settled(&self) {
        match self {
            Self::Blocking(supervisor) => supervisor.settled(),
            Self::Smol(supervisor) => block_on(supervisor.settled()),
        }
    }

    /// Returns the state of a server.
    pub fn health(&self, key: &str) -> Option<Health> {
        match self {
            Self::Blocking(supervisor) => supervisor.health(key),
            Self::Smol(supervisor) => supervisor.health(key),
        }
    }

    /// Returns how far a list of a server can be relied on.
    pub fn freshness(&self, key: &str, list: ListKind) -> Freshness {
        match self {
            Self::Blocking(supervisor) => supervisor.freshness(key, list),
            Self::Smol(supervisor) => supervisor.freshness(key, list),
        }
    }

    /// Closes all clients, and returns the number of those that have not ended in time.
    pub fn close(&self) -> usize {
        match self {
            Self::Blocking(supervisor) => supervisor.close(),
            Self::Smol(supervisor) => block_on(supervisor.close()),
        }
    }
}

/// A server of either that listens.
pub enum Server {
    /// Of `mcp-blocking`.
    Blocking(mcp_blocking::Server),
    /// Of `mcp-smol`.
    Smol(mcp_smol::Server),
}

impl Server {
    /// Returns its address.
    ///
    /// # Panics
    /// If it has none.
    pub fn address(&self) -> SocketAddr {
        let address = match self {
            Self::Blocking(server) => server.local_addr(),
            Self::Smol(server) => server.local_addr(),
        };
        address.expect("an address")
    }

    /// Returns its counters.
    pub fn stats(&self) -> ServerStats {
        match self {
            Self::Blocking(server) => server.stats(),
            Self::Smol(server) => server.stats(),
        }
    }

    /// Notifies every client that watches this change.
    pub fn publish(&self, change: Change) {
        match self {
            Self::Blocking(server) => server.publish(change),
            Self::Smol(server) => server.publish(change),
        }
    }

    /// Returns what ends the access of a principal.
    pub fn revoking(&self) -> impl Fn(&Principal) + Send + Sync + 'static {
        let handle: ServerHandle = match self {
            Self::Blocking(server) => ServerHandle::clone(server),
            Self::Smol(server) => ServerHandle::clone(server),
        };
        move |principal| handle.revoke(principal)
    }

    /// Waits for its end.
    pub fn wait(&self) {
        match self {
            Self::Blocking(server) => server.wait(),
            Self::Smol(server) => block_on(server.wait()),
        }
    }

    /// Stops it, with every connection and session.
    pub fn stop(&self, grace: Duration) {
        match self {
            Self::Blocking(server) => server.stop(grace),
            Self::Smol(server) => block_on(server.stop(grace)),
        }
    }
}
