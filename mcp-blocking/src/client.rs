//! The handle of a client: connecting, calling, closing.

use crate::driver::{Shared, State};
use crate::sync::{Condvar, MutexGuard, wait, wait_until};
use crate::target::IntoTarget;
use mcp_proto::adapter::{ClientOptions, Collected, ConnectError};
use mcp_proto::call::Paged;
use mcp_proto::client::{Termination, Verdict};
use mcp_proto::exchange::Shutdown;
use mcp_proto::input::{CallId, NotificationId};
use mcp_proto::stats::ClientStats;
use mcp_proto::wired::ConnectionOutput;
use mcp_proto::{Call, CallError, Calling, Instant, IntoCall, Object, Pages, Progress, Refusal, ServerInfo};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Time that `close` waits in addition to the time limits of the shutdown.
const MARGIN: Duration = Duration::from_secs(1);

/// Connects to a server, and waits for the end of negotiation.
///
/// # Errors
/// [`ConnectError`], with the step that failed and the reason. Nothing is left running.
pub fn connect(target: impl IntoTarget) -> Result<Client, ConnectError> {
    connect_with(target, ClientOptions::new())
}

/// Like [`connect`], with options.
///
/// # Errors
/// As [`connect`].
pub fn connect_with(target: impl IntoTarget, options: ClientOptions) -> Result<Client, ConnectError> {
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
pub fn connecting(target: impl IntoTarget, options: ClientOptions) -> Result<Connecting, ConnectError> {
    let target = target.into_target()?;
    let seed = crate::os::seed().map_err(|e| ConnectError::System(e.to_string()))?;
    let shared = Shared::new(target.config, options, target.given, seed);
    Ok(Connecting { client: Client { handle: Arc::new(Handle { shared }) } })
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
        let shared = &self.client.handle.shared;
        shared.begin().map_err(|e| ConnectError::Thread(e.to_string()))?;
        let mut state = shared.lock();
        loop {
            state = shared.heed_exit(state);
            if let Some(why) = state.calls.terminated() {
                return Err(why.clone().into());
            }
            if state.calls.ready().is_some() {
                break;
            }
            state = wait(&shared.milestones, state, None);
        }
        drop(state);
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
    handle: Arc<Handle>,
}

struct Handle {
    shared: Arc<Shared>,
}

impl Client {
    /// Makes a call and waits for its result. The callback for progress runs on this thread. A
    /// panic in it cancels the call.
    ///
    /// # Errors
    /// [`CallError`].
    pub fn call<C: IntoCall>(&self, call: C) -> Result<<C::Method as mcp_proto::Method>::Output, CallError> {
        self.start(call)?.wait()
    }

    /// Makes a call without waiting for its result.
    ///
    /// # Errors
    /// [`CallError::Refused`] if the engine refused the call.
    pub fn start<C: IntoCall>(&self, call: C) -> Result<Pending<C::Method, C::Told>, CallError> {
        let (call, told) = call.into_call();
        let shared = &self.handle.shared;
        let mut state = shared.heed_exit(shared.lock());
        let calling = state.engine.call(shared.clock.now(), call).map_err(|refused| CallError::Refused(refused.why))?;
        let wake = Arc::<Condvar>::default();
        state.calls.begin(calling.id(), Arc::clone(&wake));
        shared.pump(&mut state);
        drop(state);
        Ok(Pending { client: self.clone(), id: calling.id(), calling: Some(calling), wake, told })
    }

    /// Returns the elements of a paged list. Each page is fetched when it is needed.
    pub fn pages<M: Paged>(&self, call: Call<M>) -> Elements<M> {
        let max = self.handle.shared.config.limits.client.max_pages;
        Elements { client: self.clone(), pages: Pages::new(call, max) }
    }

    /// Cancels a call, even if another thread waits for it. Does nothing if it has ended.
    pub fn cancel(&self, call: CallId, reason: Option<&str>) {
        let shared = &self.handle.shared;
        let mut state = shared.lock();
        state.engine.cancel(shared.clock.now(), call, reason);
        shared.pump(&mut state);
    }

    /// Queues a notification of a custom method and returns at once. [`PendingNotification::wait`]
    /// waits for its delivery; dropping the returned value changes nothing. If the client is closed
    /// or dropped right after, it still sends the notification, within the time limits of the
    /// shutdown.
    ///
    /// # Errors
    /// The reason why it was not sent.
    pub fn notify(&self, method: &str, params: Object) -> Result<PendingNotification, Refusal> {
        let shared = &self.handle.shared;
        let mut state = shared.heed_exit(shared.lock());
        let id = state.engine.notify_tracked(shared.clock.now(), method, params).map_err(|refused| refused.why)?;
        let wake = Arc::<Condvar>::default();
        state.calls.begin_notification(id, Arc::clone(&wake));
        shared.pump(&mut state);
        drop(state);
        Ok(PendingNotification { shared: Arc::clone(shared), id, wake })
    }

    /// Returns the description of the server, from its latest start.
    pub fn server(&self) -> Option<ServerInfo> {
        self.handle.shared.lock().calls.ready().cloned()
    }

    /// Returns the result of the negotiation with the server, for a later client of the same
    /// server.
    pub fn verdict(&self) -> Option<Verdict> {
        self.handle.shared.lock().engine.client().verdict()
    }

    /// Returns a snapshot of the client's numbers.
    pub fn stats(&self) -> ClientStats {
        self.handle.shared.lock().stats()
    }

    /// Closes the client: all calls end; a program is asked to exit, then terminated, then killed
    /// with its group. Returns when this is done, within the time limits of these steps plus a
    /// second in any case. Returns why the client ended.
    pub fn close(&self) -> Termination {
        self.handle.shared.shut_down()
    }

    /// Returns a handle that closes this client without keeping it open: for a signal handler, or
    /// for a callback of the client itself.
    pub fn closer(&self) -> Closer {
        Closer { shared: Arc::clone(&self.handle.shared) }
    }
}

/// Closes a client without keeping it open, as a clone of the [`Client`] would. It may outlive the
/// client. [`Client::closer`] and [`Connecting::closer`] return one.
#[derive(Clone)]
pub struct Closer {
    shared: Arc<Shared>,
}

impl Closer {
    /// Like [`Client::close`]. If the client is already closing, waits for the end of that.
    pub fn close(&self) -> Termination {
        self.shared.shut_down()
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
        let code = *self.shared.lock().exit.get_or_insert(code);
        self.shared.shut_down();
        std::process::exit(code)
    }
}

impl fmt::Debug for Closer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Closer").finish_non_exhaustive()
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("stats", &self.stats()).finish_non_exhaustive()
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.shared.shut_down();
    }
}

impl Shared {
    fn shut_down(self: &Arc<Self>) -> Termination {
        let mut state = self.lock();
        if !state.begun {
            // Nothing was started, so there is nothing to end, and no thread that drops the values
            // of the application.
            state.calls.abandon().for_each(drop);
            let held = state.let_go();
            drop(state);
            drop(held);
            state = self.lock();
        } else if state.calls.terminated().is_none() {
            state.engine.close(self.clock.now());
            self.pump(&mut state);
        }
        let until = self.clock.now() + self.config.limits.end_time().saturating_add(MARGIN);
        let ended = |state: &State| state.calls.terminated().is_some();
        let state = wait_until(&self.milestones, state, &self.clock, until, ended);
        let exit = state.exit;
        let why = match state.calls.terminated() {
            Some(why) => why.clone(),
            None => self.abandon(state),
        };
        if let Some(code) = exit {
            std::process::exit(code);
        }
        why
    }

    /// Does not return if the process exits with this client ([`Closer::exit`]): waits for the end
    /// of the client, and exits the process.
    fn heed_exit<'a>(self: &'a Arc<Self>, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        if state.exit.is_none() {
            return state;
        }
        drop(state);
        self.shut_down();
        self.lock()
    }

    /// The time limits of the shutdown are over. Whatever has not ended is aborted without waiting
    /// for it.
    fn abandon(self: &Arc<Self>, mut state: MutexGuard<'_, State>) -> Termination {
        let channels: Vec<_> = state.channels.keys().copied().collect();
        for channel in channels {
            self.act(&mut state, channel, ConnectionOutput::Close(Shutdown::Abort));
        }
        self.pump(&mut state);
        Termination::Requested
    }
}

/// A pending call. Dropping it cancels the call.
#[must_use = "a call that is not waited for is cancelled"]
pub struct Pending<M, F> {
    client: Client,
    id: CallId,
    calling: Option<Calling<M>>,
    wake: Arc<Condvar>,
    told: F,
}

impl<M: mcp_proto::Method, F: FnMut(Progress)> Pending<M, F> {
    /// Returns the id of the call.
    pub fn id(&self) -> CallId {
        self.id
    }

    /// Cancels the call, also on the server. [`wait`](Self::wait) returns [`CallError::Cancelled`].
    pub fn cancel(&self, reason: Option<&str>) {
        self.client.cancel(self.id, reason);
    }

    /// Waits for the result. The callback for progress runs on this thread.
    ///
    /// # Errors
    /// [`CallError`].
    pub fn wait(mut self) -> Result<M::Output, CallError> {
        loop {
            if let Some(result) = self.turn(None) {
                return result;
            }
        }
    }

    /// Like [`wait`](Self::wait), for at most `limit`. The call continues after that.
    ///
    /// # Errors
    /// This call itself, if it has not ended.
    pub fn wait_timeout(mut self, limit: Duration) -> Result<Result<M::Output, CallError>, Self> {
        let until = self.client.handle.shared.clock.now() + limit;
        self.turn(Some(until)).ok_or(self)
    }

    /// Reports progress until the call has ended or the time is over.
    fn turn(&mut self, until: Option<Instant>) -> Option<Result<M::Output, CallError>> {
        let shared = Arc::clone(&self.client.handle.shared);
        let mut state = shared.lock();
        loop {
            state = shared.heed_exit(state);
            let Collected { progress, outcome } = state.calls.collect(self.id)?;
            if outcome.is_some() || !progress.is_empty() {
                drop(state);
                progress.into_iter().for_each(&mut self.told);
                if let Some(outcome) = outcome {
                    return Some(self.calling.take()?.finish(outcome));
                }
                state = shared.lock();
                continue;
            }
            let left = until.map(|until| until.since(shared.clock.now()));
            if left.is_some_and(|left| left.is_zero()) {
                return None;
            }
            state = wait(&self.wake, state, left);
        }
    }
}

impl<M, F> Drop for Pending<M, F> {
    fn drop(&mut self) {
        if self.calling.is_some() {
            self.client.handle.shared.lock().calls.forget(self.id);
            self.client.cancel(self.id, None);
        }
    }
}

impl<M, F> fmt::Debug for Pending<M, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pending").field("call", &self.id).finish_non_exhaustive()
    }
}

/// The delivery of a notification, from [`Client::notify`]. Dropping it changes nothing, and it
/// does not keep the client open.
pub struct PendingNotification {
    shared: Arc<Shared>,
    id: NotificationId,
    wake: Arc<Condvar>,
}

impl PendingNotification {
    /// Waits for the delivery of the notification: over HTTP until the server responded with a 2xx
    /// status, on any other connection until its bytes are written.
    ///
    /// # Errors
    /// [`CallError`] if the client gave up first.
    pub fn wait(self) -> Result<(), CallError> {
        loop {
            if let Some(outcome) = self.turn(None) {
                return outcome;
            }
        }
    }

    /// Like [`wait`](Self::wait), for at most `limit`. The delivery continues after that.
    ///
    /// # Errors
    /// This value itself, if the notification is still being delivered.
    pub fn wait_timeout(self, limit: Duration) -> Result<Result<(), CallError>, Self> {
        let until = self.shared.clock.now() + limit;
        self.turn(Some(until)).ok_or(self)
    }

    /// Waits until it has ended or the time is over.
    fn turn(&self, until: Option<Instant>) -> Option<Result<(), CallError>> {
        let mut state = self.shared.lock();
        loop {
            state = self.shared.heed_exit(state);
            if let Some(outcome) = state.calls.collect_notification(self.id) {
                return Some(outcome);
            }
            let left = until.map(|until| until.since(self.shared.clock.now()));
            if left.is_some_and(|left| left.is_zero()) {
                return None;
            }
            state = wait(&self.wake, state, left);
        }
    }
}

impl Drop for PendingNotification {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        if state.calls.forget_notification(self.id).is_some() {
            state.engine.untrack(self.shared.clock.now(), self.id);
            self.shared.pump(&mut state);
        }
    }
}

impl fmt::Debug for PendingNotification {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PendingNotification").field(&self.id).finish()
    }
}

/// The elements of a paged list. Ends after an error.
pub struct Elements<M: Paged> {
    client: Client,
    pages: Pages<M>,
}

impl<M: Paged> Iterator for Elements<M> {
    type Item = Result<M::Element, CallError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(element) = self.pages.pop() {
                return Some(Ok(element));
            }
            let page = self.client.call(self.pages.next()?);
            if let Err(e) = self.pages.fetched(page) {
                return Some(Err(e));
            }
        }
    }
}

impl<M: Paged> fmt::Debug for Elements<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Elements").finish_non_exhaustive()
    }
}
