//! The handle of a client and the futures it gives: a waker for each waiting call, and nothing of the protocol.

use crate::clock::Origin;
use crate::config::BoxFuture;
use crate::driver::Driver;
use crate::spawned::Spawned;
use crate::sync::{Mutex, MutexGuard, Watchers, lock};
use mcp_proto::call::{Method, Paged};
use mcp_proto::client::{Event, Termination, Verdict};
use mcp_proto::driver::{Calls, Collected, ConnectError, Noted};
use mcp_proto::exchange::{Action, Closed, ConnectionId};
use mcp_proto::input::{CallId, NotificationId};
use mcp_proto::stats::ClientStats;
use mcp_proto::wired::WiredClient;
use mcp_proto::{Call, CallError, Calling, IntoCall, Object, Pages, Progress, Refusal, ServerInfo};
use smol::future::{Future, FutureExt};
use smol::stream::Stream;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// A client that has not connected yet, returned by [`connecting`](crate::connecting): a future of the [`Client`]. It starts nothing before
/// it is polled. Dropping it ends the attempt and leaves nothing behind.
#[must_use = "nothing is started before it is awaited"]
pub struct Connecting {
    closer: Closer,
    connected: BoxFuture<Result<Client, ConnectError>>,
}

impl Connecting {
    pub(crate) fn new(shared: Arc<Shared>, driver: Driver) -> Self {
        let closer = Closer { shared: Arc::clone(&shared) };
        let connected = Box::pin(async move {
            let driver = Spawned::new(driver);
            let client = Client::new(shared, Some(driver.clone()));
            crate::sync::spawn(driver);
            client.ready().await?;
            Ok(client)
        });
        Self { closer, connected }
    }

    /// Returns a handle that closes this attempt, and after it the connected client.
    pub fn closer(&self) -> Closer {
        self.closer.clone()
    }
}

impl Future for Connecting {
    type Output = Result<Client, ConnectError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.connected.as_mut().poll(cx)
    }
}

impl fmt::Debug for Connecting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connecting").finish_non_exhaustive()
    }
}

/// A client. Cheap to clone; dropping the last clone closes the connection, which the [`Driver`](crate::Driver) then does in order.
/// A client of [`connect`](crate::connect) ends its driver itself when the last clone is dropped: that blocks for as long as a program
/// takes to exit, usually some milliseconds, and at the most until it is killed. [`close`](Self::close) does not block.
#[derive(Clone)]
pub struct Client {
    handle: Arc<Handle>,
}

/// What all clones of a client share.
struct Handle {
    shared: Arc<Shared>,
    /// The driver, if it is ours to end.
    driver: Option<Spawned>,
}

/// What the handles and the driver share.
pub(crate) struct Shared {
    pub(crate) origin: Origin,
    state: Mutex<State>,
    /// Those who wait for the start or the end of the client.
    watchers: Watchers,
}

pub(crate) struct State {
    pub(crate) engine: WiredClient,
    /// Wakes the driver, which then asks the engine what to do.
    pub(crate) driver: Option<Waker>,
    calls: Calls<Option<Waker>>,
    /// The driver carries out what the engine says.
    begun: bool,
    /// The driver was dropped, or is not to begin.
    abandoned: bool,
    /// The process is to end with this code once the client has ended.
    exit: Option<i32>,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("server", &self.server()).finish_non_exhaustive()
    }
}

impl Client {
    pub(crate) fn new(shared: Arc<Shared>, driver: Option<Spawned>) -> Self {
        Self { handle: Arc::new(Handle { shared, driver }) }
    }

    fn shared(&self) -> &Arc<Shared> {
        &self.handle.shared
    }

    /// Makes a call and waits for its end. Dropping the future cancels the call, and the server is told.
    ///
    /// # Errors
    /// [`CallError`]; says whether the request can have reached the server.
    pub async fn call<C: IntoCall>(&self, call: C) -> Result<<C::Method as Method>::Output, CallError> {
        self.start(call).await
    }

    /// Makes a call now; the future that is returned waits for its end.
    pub fn start<C: IntoCall>(&self, call: C) -> Pending<C::Method, C::Told> {
        let (call, told) = call.into_call();
        let calling = self.shared().command(|shared, state| {
            if state.abandoned {
                return Err(Refusal::Closed);
            }
            let calling = state.engine.call(shared.origin.now(), call).map_err(|refused| refused.why)?;
            state.calls.begin(calling.id(), None);
            Ok(calling)
        });
        Pending { client: self.clone(), calling: Some(calling), told }
    }

    /// The elements of a paged list, fetched page by page as the stream is polled. Ends at the first error.
    pub fn pages<M: Paged>(
        &self,
        call: Call<M>,
    ) -> Pin<Box<impl Stream<Item = Result<M::Element, CallError>> + use<M>>> {
        let max = self.shared().lock().engine.client().config().limits.client.max_pages;
        let walk = (self.clone(), Pages::new(call, max));
        Box::pin(smol::stream::unfold(walk, |(client, mut pages)| async move {
            loop {
                if let Some(element) = pages.pop() {
                    return Some((Ok(element), (client, pages)));
                }
                let page = client.call(pages.next()?).await;
                if let Err(e) = pages.fetched(page) {
                    return Some((Err(e), (client, pages)));
                }
            }
        }))
    }

    /// Queues a notification of a custom method. The returned future waits for its delivery; dropping it changes nothing. If the client is
    /// closed or dropped right after, it still sends the notification, within the time limits of the shutdown.
    ///
    /// # Errors
    /// [`Refusal`]: nothing was sent.
    pub fn notify(&self, method: &str, params: Object) -> Result<PendingNotification, Refusal> {
        let shared = self.shared();
        let sent = shared.command(|shared, state| {
            let sent = state.engine.notify_tracked(shared.origin.now(), method, params);
            let id = sent.map_err(|refused| refused.why)?;
            state.calls.begin_notification(id, None);
            Ok(id)
        });
        sent.map(|id| PendingNotification { shared: Arc::clone(shared), id })
    }

    /// Waits until the two sides have agreed. Calls need not wait for it: they are sent when it is so.
    ///
    /// # Errors
    /// [`ConnectError`] if the connection ended instead.
    pub async fn ready(&self) -> Result<(), ConnectError> {
        self.shared()
            .watch(|state| match state.calls.terminated() {
                _ if state.calls.ready().is_some() => Some(Ok(())),
                Some(why) => Some(Err(why.clone().into())),
                None => None,
            })
            .await
    }

    /// What is known of the server; `None` before the two sides have agreed.
    pub fn server(&self) -> Option<ServerInfo> {
        self.shared().lock().calls.ready().cloned()
    }

    /// What was found out about the server, for a later client of the same one; `None` before the two sides have agreed.
    pub fn verdict(&self) -> Option<Verdict> {
        self.shared().lock().engine.client().verdict()
    }

    /// What the client holds at the moment and what it has done, in numbers.
    pub fn stats(&self) -> ClientStats {
        self.shared().lock().engine.stats()
    }

    /// Ends the connection in order, and waits until it has ended: a program is given time to exit, then told to terminate, then killed.
    /// Calls that have not ended end. May be called again, also while another waits. Needs the driver to run.
    pub async fn close(&self) -> Termination {
        self.shared().end().await
    }

    /// What closes this client, and does not keep it open: for a signal handler, or for a callback of the client itself.
    pub fn closer(&self) -> Closer {
        Closer { shared: Arc::clone(self.shared()) }
    }
}

/// Closes a client, and does not keep it open as a clone of the [`Client`] would. It may outlive the client. From
/// [`Client::closer`] and [`Connecting::closer`].
#[derive(Clone)]
pub struct Closer {
    shared: Arc<Shared>,
}

impl Closer {
    /// As [`Client::close`]. If the client is being closed or dropped at the moment, waits for the end of that.
    pub async fn close(&self) -> Termination {
        self.shared.end().await
    }

    /// Closes the client, then exits this process with this code. Meant for a signal handler: `smol::block_on(closer.exit(130))`. The first
    /// of several codes wins.
    ///
    /// Otherwise a pending call would end with an error, and a `main` that returns this error would exit before the client is closed, or
    /// with another code. So from now on the futures that connect, call, notify and close this client stay pending. Dropping the last handle
    /// of a client of [`connect`](crate::connect) exits the process. Exiting takes as long as [`close`](Self::close). Other clients of the
    /// process are not closed.
    pub async fn exit(&self, code: i32) -> ! {
        let code = *self.shared.lock().exit.get_or_insert(code);
        self.shared.close();
        let ended = async {
            self.shared.watchers.watch(|| self.shared.lock().calls.terminated().map(drop)).await;
        };
        ended.or(crate::clock::after(self.shared.ladder())).await;
        std::process::exit(code)
    }
}

impl fmt::Debug for Closer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Closer").finish_non_exhaustive()
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.shared.close();
        if let Some(driver) = &self.driver {
            driver.finish(self.shared.ladder());
            let state = self.shared.lock();
            if let (Some(code), Some(_)) = (state.exit, state.calls.terminated()) {
                drop(state);
                std::process::exit(code);
            }
        }
    }
}

/// A call under way: a future of its end. Dropping it before its end cancels the call, and the server is told.
pub struct Pending<M: Method, F = fn(Progress)> {
    client: Client,
    /// `None` once the end was handed out.
    calling: Option<Result<Calling<M>, Refusal>>,
    told: F,
}

impl<M: Method, F> Pending<M, F> {
    /// The id that diagnostics may name; `None` if the call was refused or has ended.
    pub fn id(&self) -> Option<CallId> {
        Some(self.calling.as_ref()?.as_ref().ok()?.id())
    }

    /// Cancels the call for a reason that the server is told. The future then ends with [`CallError::Cancelled`], unless the call had
    /// ended before.
    pub fn cancel(&self, reason: Option<&str>) {
        if let Some(id) = self.id() {
            self.client.shared().command(|shared, state| state.engine.cancel(shared.origin.now(), id, reason));
        }
    }
}

/// Nothing in it is ever pinned.
impl<M: Method, F> Unpin for Pending<M, F> {}

impl<M: Method, F: FnMut(Progress)> Future for Pending<M, F> {
    type Output = Result<M::Output, CallError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        if this.client.shared().lock().exit.is_some() {
            return Poll::Pending;
        }
        let id = match &this.calling {
            Some(Ok(calling)) => calling.id(),
            Some(Err(why)) => {
                let why = why.clone();
                this.calling = None;
                return Poll::Ready(Err(CallError::Refused(why)));
            }
            None => return Poll::Pending,
        };
        // The waker of before is let go at the end, outside the lock: it may be the last of a task that holds a client.
        let (_before, collected) = this.client.shared().lock().collect(id, cx.waker());
        let Some(Collected { progress, outcome }) = collected else { return Poll::Pending };
        // Outside the lock: it is the caller's code, and may use the client.
        progress.into_iter().for_each(&mut this.told);
        match (outcome, this.calling.take()) {
            (Some(outcome), Some(Ok(calling))) => Poll::Ready(calling.finish(outcome)),
            (_, calling) => {
                this.calling = calling;
                Poll::Pending
            }
        }
    }
}

impl<M: Method, F> Drop for Pending<M, F> {
    fn drop(&mut self) {
        let Some(id) = self.id() else { return };
        let waker = self.client.shared().command(|shared, state| {
            let waker = state.calls.wake(id).and_then(Option::take);
            state.calls.forget(id);
            state.engine.cancel(shared.origin.now(), id, None);
            waker
        });
        // Outside the lock: it may be the last of a task that holds a client.
        drop(waker);
    }
}

impl<M: Method, F> fmt::Debug for Pending<M, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Pending").field(&self.id()).finish()
    }
}

/// The delivery of a notification, from [`Client::notify`]: a future. Over HTTP it resolves once the server responded with a 2xx status, on
/// any other connection once the bytes are written, and with an error if the client gave up first. Dropping it changes nothing, and it
/// does not keep the client open.
pub struct PendingNotification {
    shared: Arc<Shared>,
    id: NotificationId,
}

impl Future for PendingNotification {
    type Output = Result<(), CallError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = self.shared.lock();
        if state.exit.is_some() {
            return Poll::Pending;
        }
        if let Some(outcome) = state.calls.collect_notification(self.id) {
            return Poll::Ready(outcome);
        }
        let before = state.calls.wake_notification(self.id).and_then(|wake| wake.replace(cx.waker().clone()));
        // The waker of before is dropped outside the lock: it may be the last of a task that holds a client.
        drop(state);
        drop(before);
        Poll::Pending
    }
}

impl Drop for PendingNotification {
    fn drop(&mut self) {
        let waker = self.shared.command(|shared, state| {
            let waker = state.calls.forget_notification(self.id)?;
            state.engine.untrack(shared.origin.now(), self.id);
            waker
        });
        // Outside the lock: it may be the last of a task that holds a client.
        drop(waker);
    }
}

impl fmt::Debug for PendingNotification {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PendingNotification").field(&self.id).finish()
    }
}

impl Shared {
    pub(crate) fn new(engine: WiredClient, origin: Origin) -> Self {
        let (calls, driver) = (Calls::default(), None);
        let state = State { engine, driver, calls, begun: false, abandoned: false, exit: None };
        Self { origin, state: Mutex::new(state), watchers: Watchers::default() }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Tells the engine something, then wakes the driver, which may have something to do now.
    fn command<T>(&self, tell: impl FnOnce(&Self, &mut State) -> T) -> T {
        let mut state = self.lock();
        let told = tell(self, &mut state);
        let driver = state.driver.take();
        drop(state);
        driver.into_iter().for_each(Waker::wake);
        told
    }

    /// How long it may take until everything has ended, and a little more.
    fn ladder(&self) -> Duration {
        let time = self.lock().engine.client().config().limits.end_time().saturating_add(Duration::from_secs(1));
        // Beyond this an instant could overflow, and nobody waits so long.
        time.min(Duration::from_secs(3600))
    }

    fn close(&self) {
        let abandoned = self.command(|shared, state| {
            state.engine.close(shared.origin.now());
            state.abandoned |= !state.begun;
            state.abandoned
        });
        if abandoned {
            // Nothing was started, so there is nothing to end.
            self.abandon(std::iter::empty());
        }
    }

    /// Closes, and waits for the end.
    async fn end(&self) -> Termination {
        self.close();
        self.watch(|state| state.calls.terminated().cloned()).await
    }

    /// Waits until `look` sees what it looks for; for ever if the process is to end with this client ([`Closer::exit`]).
    async fn watch<T>(&self, mut look: impl FnMut(&State) -> Option<T>) -> T {
        let look = || {
            let state = self.lock();
            if state.exit.is_some() { None } else { look(&state) }
        };
        self.watchers.watch(look).await
    }

    /// Takes note of what concerns those who wait; hands back what is not about a call.
    pub(crate) fn note(&self, event: Event) -> Option<Event> {
        let mut state = self.lock();
        let (woken, milestone, rest) = state.note(event);
        drop(state);
        woken.into_iter().for_each(Waker::wake);
        if milestone {
            self.watchers.wake();
        }
        rest
    }

    /// The driver is gone, and with it the channels `open`: everything ends now.
    pub(crate) fn abandon(&self, open: impl Iterator<Item = ConnectionId>) {
        let mut state = self.lock();
        state.abandoned = true;
        if state.calls.terminated().is_some() {
            return;
        }
        let now = self.origin.now();
        state.engine.close(now);
        open.for_each(|channel| state.engine.closed(now, channel, Closed::Aborted));
        let mut woken = Vec::new();
        while let Some(action) = state.engine.poll_output() {
            match action {
                Action::Open(channel, _) => state.engine.closed(now, channel, Closed::Aborted),
                Action::Event(event) => woken.extend(state.note(event).0),
                _ => {}
            }
        }
        woken.extend(state.calls.abandon().filter_map(Option::take));
        drop(state);
        woken.into_iter().for_each(Waker::wake);
        self.watchers.wake();
    }
}

impl State {
    /// The driver carries out what the engine says from here on; `false`: it has nothing to do.
    pub(crate) fn begin(&mut self) -> bool {
        self.begun = !self.abandoned;
        self.begun
    }

    /// Takes note of an event: whose call it concerns, whether it concerns those who watch, and what is left of it for the application.
    fn note(&mut self, event: Event) -> (Option<Waker>, bool, Option<Event>) {
        match self.calls.note(event) {
            Noted::Call(waker) => (waker.and_then(Option::take), false, None),
            Noted::Milestone(event) => (None, true, Some(event)),
            Noted::Other(event) => (None, false, Some(event)),
        }
    }

    /// Takes what has come in for a call, and sees to it that `waker` is woken by more. Also hands out the waker of before.
    fn collect(&mut self, call: CallId, waker: &Waker) -> (Option<Waker>, Option<Collected>) {
        let before = self.calls.wake(call).and_then(|wake| wake.replace(waker.clone()));
        (before, self.calls.collect(call))
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use crate::{Object, Router, connect};
    use smol::future::poll_once;

    // covers: B-133
    #[test]
    fn notification_stays_pending_once_the_process_is_to_exit() {
        smol::block_on(async {
            let client = connect(Router::new("server", "1")).await.expect("connected");
            let notify = || client.notify("acme/note", Object::new()).expect("accepted");
            let earlier = notify();
            notify().await.expect("delivered, and the earlier one before it");
            client.shared().lock().exit = Some(130);
            assert!(poll_once(earlier).await.is_none());
            // Dropping the client would end this process.
            client.shared().lock().exit = None;
        });
    }
}
