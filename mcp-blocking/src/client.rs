//! The handle of a client: connecting, calling, closing.

use crate::driver::{Callbacks, Driver};
use crate::here;
use crate::pool::PoolBounds;
use crate::transport::Given;
use mcp_driver::{self, ClientHandle, ClientOptions, ConnectError, DriverHandle, IntoTarget, block_on_for};
use mcp_proto::call::{CallCallbacks, CallListener, Method, PagedMethod, SkippedList};
use mcp_proto::client::{FetchError, FetchRequest, FetchResponse, Termination};
#[cfg(feature = "auth")]
use mcp_proto::error::AuthError;
use mcp_proto::input::CallId;
#[cfg(feature = "skills")]
use mcp_proto::skills::{Held, SkillError, SkillReader};
use mcp_proto::stats::ClientStats;
use mcp_proto::{Call, CallError, IntoCall, Object, Refusal};
use std::fmt;
use std::future::pending;
use std::ops::Deref;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

/// Connects to a server, and waits for the end of negotiation.
///
/// # Errors
/// [`ConnectError`], with the step that failed and the reason. Nothing is left running,
/// unless a time limit was reached: a program may still be ending then, on a thread of its driver.
/// The [`Closer`] of [`connecting`] waits for it.
pub fn connect(target: impl IntoTarget<Given>) -> Result<Client, ConnectError> {
    connect_with(target, ClientOptions::new())
}

/// Like [`connect`], with options.
///
/// # Errors
/// As [`connect`].
pub fn connect_with(target: impl IntoTarget<Given>, options: ClientOptions) -> Result<Client, ConnectError> {
    connecting(target, options)?.wait()
}

/// Like [`connect_with`], in two steps. The returned value has started nothing yet, and another
/// thread or a signal handler can close it before and while it connects.
/// [`ClientConfig::connect_timeout`](mcp_proto::ClientConfig::connect_timeout) counts from this
/// call.
///
/// ```
/// use mcp_blocking::{ClientOptions, Router, connecting};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let connecting = connecting(Router::new("calc", "1.0"), ClientOptions::new())?;
/// let closer = connecting.closer(); // for a handler of Ctrl-C: `move || closer.exit(130)`
/// let client = connecting.wait()?;
/// closer.close();
/// # drop(client);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`ConnectError`] if the target is invalid, or the system provides no random bytes.
pub fn connecting(target: impl IntoTarget<Given>, options: ClientOptions) -> Result<Connecting, ConnectError> {
    let (config, given) = target.into_target()?.into_parts();
    let (client, driving) = mcp_driver::Client::begin(config, options, |_| Box::pin(pending()))?;
    let driver = threads_of(&client, driving, given);
    let (closer, at_drop) = (client.closer(), Arc::clone(&driver));
    client.set_on_drop(move || drop(end(&closer, &at_drop)));
    Ok(Connecting { client: Client { client, driver } })
}

/// Returns what drives a client. It has started no thread.
pub(crate) fn threads_of(client: &mcp_driver::Client, driving: DriverHandle, given: Option<Given>) -> Arc<Driver> {
    // As many threads as there can be open requests for input: a callback may wait for a call of
    // the same client, which may also require input.
    let inputs = client.max_inputs();
    // It has no handlers.
    let handlers = PoolBounds { threads: 1, share: 1, abandoned: inputs, patience: None };
    let callbacks = Callbacks::new(handlers, inputs, None);
    Driver::new(driving, callbacks, client.open_timeout(), given)
}

/// Closes a client, and waits for its end within the time limits of its shutdown. Whatever has not
/// ended then is aborted without waiting for it.
pub(crate) fn end(closer: &mcp_driver::Closer, driver: &Arc<Driver>) -> Termination {
    driver.wait(None, Some(closer.end_time()), closer.close()).unwrap_or_else(|| {
        driver.abort();
        Termination::Requested
    })
}

/// A client that has not connected yet, returned by [`connecting`]. Dropping it closes it.
#[must_use = "nothing is started before `wait`"]
pub struct Connecting {
    client: Client,
}

impl Connecting {
    /// Connects, and blocks until negotiation has succeeded.
    ///
    /// # Errors
    /// As [`connect`]; [`ConnectError::Closed`] if a [`Closer`] closed it.
    pub fn wait(self) -> Result<Client, ConnectError> {
        self.client.driver.begin().map_err(|e| ConnectError::Thread(e.to_string()))?;
        if let Err(why) = self.client.driver.wait_for(None, self.client.client.ready()) {
            // What has not ended by then is left to the driver.
            self.client.client.unset_on_drop();
            return Err(why);
        }
        Ok(self.client)
    }

    /// Returns a handle that closes this attempt, and after it the connected client.
    pub fn closer(&self) -> Closer {
        self.client.closer()
    }
}

impl fmt::Debug for Connecting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connecting").finish_non_exhaustive()
    }
}

/// A connected client: a handle that can be cloned and used from any thread.
///
/// Dropping the last handle closes the client like [`close`](Self::close), also during a panic.
#[derive(Clone)]
pub struct Client {
    pub(crate) client: mcp_driver::Client,
    pub(crate) driver: Arc<Driver>,
}

impl Client {
    /// Makes a call and waits for its result. The callback for progress runs on this thread. A
    /// panic in it cancels the call.
    ///
    /// # Errors
    /// [`CallError`].
    pub fn call<C: IntoCall>(&self, call: C) -> Result<<C::Method as Method>::Output, CallError> {
        self.start(call).wait()
    }

    /// Makes a call without waiting for its result.
    pub fn start<C: IntoCall>(&self, call: C) -> PendingCall<C::Method, C::Listener> {
        self.driver.refresh();
        let (pending, via) = here::noting_writes(|| self.client.start(call));
        self.driver.carry_out_all();
        PendingCall { pending, via, driver: Arc::clone(&self.driver) }
    }

    /// Returns the elements of a paged list. Each page is fetched when it is needed.
    pub fn pages<M: PagedMethod>(&self, call: Call<M>) -> Elements<M> {
        Elements { elements: self.client.pages(call), driver: Arc::clone(&self.driver) }
    }

    /// Queues a notification of a custom method and returns at once. [`PendingNotification::wait`]
    /// waits for its delivery; dropping the returned value changes nothing. If the client is closed
    /// or dropped right after, it still sends the notification, within the time limits of the
    /// shutdown.
    ///
    /// # Errors
    /// The reason why it was not sent.
    pub fn notify(&self, method: &str, params: Object) -> Result<PendingNotification, Refusal> {
        self.driver.refresh();
        let (pending, via) = here::noting_writes(|| self.client.notify(method, params));
        Ok(PendingNotification { pending: pending?, via, driver: Arc::clone(&self.driver) })
    }

    /// Makes an HTTP request that is not MCP over the connections of the client, and waits for its
    /// response: see [`fetch`](mcp_proto::ClientCommands::fetch).
    ///
    /// # Errors
    /// [`FetchError`]. A response with any status is none.
    pub fn fetch(&self, request: FetchRequest) -> Result<FetchResponse, FetchError> {
        self.driver.refresh();
        self.driver.wait_for(None, pin!(self.client.fetch(request)))
    }

    /// Logs in, also if no request needs it, and waits for the end: see
    /// [`login`](mcp_proto::ClientCommands::login). The login in the store is replaced.
    ///
    /// # Errors
    /// [`AuthError`]. [`AuthError::Ended`] if the client ends first, if the user logs out, and
    /// without [`OAuth`](crate::OAuth) or HTTP.
    #[cfg(feature = "auth")]
    pub fn login(&self) -> Result<(), AuthError> {
        self.driver.refresh();
        self.driver.wait_for(None, pin!(self.client.login()))
    }

    /// Revokes the tokens, removes the login from the store, and waits for the end: see
    /// [`logout`](mcp_proto::ClientCommands::logout). Returns whether the authorization server
    /// confirmed that it revoked the tokens, `None` if it offers no revocation, or if there were
    /// none.
    ///
    /// # Errors
    /// [`AuthError::Ended`] if the client ends first, if a login begins meanwhile, and without
    /// [`OAuth`](crate::OAuth) or HTTP.
    #[cfg(feature = "auth")]
    pub fn logout(&self) -> Result<Option<bool>, AuthError> {
        self.driver.refresh();
        self.driver.wait_for(None, pin!(self.client.logout()))
    }

    /// Returns a snapshot of the client's numbers.
    pub fn stats(&self) -> ClientStats {
        let mut stats = self.client.stats();
        stats.detached_threads = self.driver.detached();
        stats
    }

    /// Closes the client: all calls end; a program is asked to exit, then terminated, then killed
    /// with its group. The page of a login that has just ended is shown, and its record stored.
    /// Returns when this is done, within the time limits of these steps plus a second in any case.
    /// Returns why the client ended.
    pub fn close(&self) -> Termination {
        end(&self.client.closer(), &self.driver)
    }

    /// Returns a handle that closes this client without keeping it open: for a signal handler, or
    /// for a callback of the client itself.
    pub fn closer(&self) -> Closer {
        Closer { closer: self.client.closer(), driver: Arc::clone(&self.driver) }
    }
}

/// Reads a file of a skill, and waits for it.
#[cfg(feature = "skills")]
impl SkillReader for Client {
    type Output<'a> = Result<Vec<u8>, SkillError>;

    fn read_skill<'a>(&'a self, held: &'a Held, uri: &'a str) -> Self::Output<'a> {
        self.driver.refresh();
        self.driver.wait_for(None, self.client.read_skill(held, uri))
    }
}

/// The commands that do not wait.
impl Deref for Client {
    type Target = ClientHandle;

    fn deref(&self) -> &ClientHandle {
        &self.client
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("server", &self.server()).finish_non_exhaustive()
    }
}

/// Closes a client without keeping it open, as a clone of the [`Client`] would. It may outlive the
/// client. [`Client::closer`] and [`Connecting::closer`] return one.
#[derive(Clone)]
pub struct Closer {
    closer: mcp_driver::Closer,
    driver: Arc<Driver>,
}

impl Closer {
    /// Like [`Client::close`]. If the client is already closing, waits for the end of that.
    pub fn close(&self) -> Termination {
        end(&self.closer, &self.driver)
    }

    /// Closes the client, then exits this process with this code. Meant for a signal handler. The
    /// first of several codes wins.
    ///
    /// Otherwise a pending call would end with an error, and a `main` that returns this error would
    /// exit before the client is closed, or with another code. From now on connecting, calling,
    /// notifying, closing and dropping this client therefore do not return: the process exits
    /// instead. Exiting takes as long as [`close`](Self::close). Other clients of the process are
    /// not closed.
    pub fn exit(&self, code: i32) -> ! {
        let code = self.closer.begin_exit(code);
        block_on_for(self.closer.end_time(), self.closer.ended());
        std::process::exit(code)
    }
}

impl fmt::Debug for Closer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Closer").finish_non_exhaustive()
    }
}

/// A pending call. Dropping it cancels the call. It keeps the client open, as the client itself
/// does.
#[must_use = "a call that is not waited for is cancelled"]
pub struct PendingCall<M: Method, F = CallCallbacks> {
    pending: mcp_driver::PendingCall<M, F>,
    /// The connection to which the request was written at once.
    via: Option<u64>,
    driver: Arc<Driver>,
}

impl<M: Method, F: CallListener> PendingCall<M, F> {
    /// Returns the id of the call, for diagnostics. `None` if the call was refused or has ended.
    pub fn id(&self) -> Option<CallId> {
        self.pending.id()
    }

    /// Cancels the call, also on the server. [`wait`](Self::wait) returns [`CallError::Cancelled`].
    pub fn cancel(&self, reason: Option<&str>) {
        self.pending.cancel(reason);
    }

    /// Waits for the result. The callbacks of the call run on this thread.
    ///
    /// # Errors
    /// [`CallError`].
    pub fn wait(self) -> Result<M::Output, CallError> {
        self.driver.wait_for(self.via, self.pending)
    }

    /// Like [`wait`](Self::wait), for at most `limit`. The call continues after that.
    ///
    /// # Errors
    /// This call itself, if it has not ended.
    pub fn wait_timeout(mut self, limit: Duration) -> Result<Result<M::Output, CallError>, Self> {
        self.driver.wait(self.via, Some(limit), &mut self.pending).ok_or(self)
    }
}

impl<M: Method, F> fmt::Debug for PendingCall<M, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.pending.fmt(f)
    }
}

/// The delivery of a notification, from [`Client::notify`]. Dropping it changes nothing, and it
/// does not keep the client open.
pub struct PendingNotification {
    pending: mcp_driver::PendingNotification,
    via: Option<u64>,
    driver: Arc<Driver>,
}

impl PendingNotification {
    /// Waits for the delivery of the notification: over HTTP until the server responded with a 2xx
    /// status, on any other connection until its bytes are written.
    ///
    /// # Errors
    /// [`CallError`] if the client gave up first.
    pub fn wait(self) -> Result<(), CallError> {
        self.driver.wait_for(self.via, self.pending)
    }

    /// Like [`wait`](Self::wait), for at most `limit`. The delivery continues after that.
    ///
    /// # Errors
    /// This value itself, if the notification is still being delivered.
    pub fn wait_timeout(mut self, limit: Duration) -> Result<Result<(), CallError>, Self> {
        self.driver.wait(self.via, Some(limit), &mut self.pending).ok_or(self)
    }
}

impl fmt::Debug for PendingNotification {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.pending.fmt(f)
    }
}

/// The elements of a paged list. Ends after an error.
pub struct Elements<M: PagedMethod> {
    elements: mcp_driver::Elements<M>,
    driver: Arc<Driver>,
}

impl<M: PagedMethod> Elements<M> {
    /// Returns the elements that the pages so far have left out, since they could not be decoded.
    pub const fn skipped(&self) -> &SkippedList {
        self.elements.skipped()
    }
}

impl<M: PagedMethod> Iterator for Elements<M> {
    type Item = Result<M::Element, CallError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.driver.refresh();
        self.driver.wait_for(None, self.elements.next())
    }
}

impl<M: PagedMethod> fmt::Debug for Elements<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.elements.fmt(f)
    }
}
