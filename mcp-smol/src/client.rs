//! The handle of a client and its futures. Each waiting call has a waker; there is no protocol
//! state.

use crate::driver::Driver;
use crate::future::BoxFuture;
use crate::shared::Shared;
use crate::spawned::Spawned;
use mcp_proto::adapter::{Collected, ConnectError};
use mcp_proto::call::{Method, Paged};
use mcp_proto::client::{Termination, Verdict};
use mcp_proto::input::{CallId, NotificationId};
use mcp_proto::stats::ClientStats;
use mcp_proto::{Call, CallError, Calling, IntoCall, Object, Pages, Progress, Refusal, ServerInfo};
use smol::future::{Future, FutureExt};
use smol::stream::Stream;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// A client that has not connected yet, returned by [`connecting`](crate::connecting): a future of
/// the [`Client`]. It starts nothing before it is polled. Dropping it ends the attempt and leaves
/// nothing behind.
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

/// A client. Cheap to clone. Dropping the last clone closes the connection in order, which the
/// [`Driver`](crate::Driver) carries out. A client of [`connect`](crate::connect) waits for its
/// driver when the last clone is dropped: this blocks until the program has exited, usually some
/// milliseconds, at most until it was killed. [`close`](Self::close) does not block.
#[derive(Clone)]
pub struct Client {
    handle: Arc<Handle>,
}

/// The state that all clones of a client share.
struct Handle {
    shared: Arc<Shared>,
    /// The driver, if this client has to end it.
    driver: Option<Spawned>,
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

    /// Makes a call and waits for its end. Dropping the future cancels the call, also on the
    /// server.
    ///
    /// # Errors
    /// [`CallError`]. It states whether the request can have reached the server.
    pub async fn call<C: IntoCall>(&self, call: C) -> Result<<C::Method as Method>::Output, CallError> {
        self.start(call).await
    }

    /// Makes a call now, and returns a future of its end.
    pub fn start<C: IntoCall>(&self, call: C) -> Pending<C::Method, C::Told> {
        let (call, told) = call.into_call();
        let calling = self.shared().command(|shared, state| {
            if state.abandoned {
                return Err(Refusal::Closed);
            }
            let calling = state.engine.call(shared.clock.now(), call).map_err(|refused| refused.why)?;
            state.calls.begin(calling.id(), None);
            Ok(calling)
        });
        Pending { client: self.clone(), calling: Some(calling), told }
    }

    /// Returns a stream of the elements of a paged list. It fetches each page when it is needed,
    /// and ends at the first error.
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

    /// Queues a notification of a custom method. The returned future waits for its delivery;
    /// dropping it changes nothing. If the client is closed or dropped right after, it still sends
    /// the notification, within the time limits of the shutdown.
    ///
    /// # Errors
    /// [`Refusal`]: nothing was sent.
    pub fn notify(&self, method: &str, params: Object) -> Result<PendingNotification, Refusal> {
        let shared = self.shared();
        let sent = shared.command(|shared, state| {
            let sent = state.engine.notify_tracked(shared.clock.now(), method, params);
            let id = sent.map_err(|refused| refused.why)?;
            state.calls.begin_notification(id, None);
            Ok(id)
        });
        sent.map(|id| PendingNotification { shared: Arc::clone(shared), id })
    }

    /// Waits for the end of negotiation. Calls need not wait for it: the engine sends them then.
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

    /// Returns the description of the server. `None` before the end of negotiation.
    pub fn server(&self) -> Option<ServerInfo> {
        self.shared().lock().calls.ready().cloned()
    }

    /// Returns the result of the negotiation with the server, for a later client of the same
    /// server. `None` before the end of negotiation.
    pub fn verdict(&self) -> Option<Verdict> {
        self.shared().lock().engine.client().verdict()
    }

    /// Returns a snapshot of the client's numbers.
    pub fn stats(&self) -> ClientStats {
        self.shared().lock().engine.stats()
    }

    /// Closes the connection in order, and waits for its end: a program has time to exit, then is
    /// terminated, then killed. Pending calls end. May be called repeatedly and concurrently. Needs
    /// a running driver.
    pub async fn close(&self) -> Termination {
        self.shared().end().await
    }

    /// Returns a handle that closes this client without keeping it open: for a signal handler, or
    /// for a callback of the client itself.
    pub fn closer(&self) -> Closer {
        Closer { shared: Arc::clone(self.shared()) }
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
    pub async fn close(&self) -> Termination {
        self.shared.end().await
    }

    /// Closes the client, then exits this process with this code. Meant for a signal handler:
    /// `smol::block_on(closer.exit(130))`. The first of several codes wins.
    ///
    /// Otherwise a pending call would end with an error, and a `main` that returns this error would
    /// exit before the client is closed, or with another code. From now on the futures that
    /// connect, call, notify and close this client therefore stay pending, and dropping the last
    /// handle of a client of [`connect`](crate::connect) exits the process. Exiting takes as long
    /// as [`close`](Self::close). Other clients of the process are not closed.
    pub async fn exit(&self, code: i32) -> ! {
        let code = *self.shared.lock().exit.get_or_insert(code);
        self.shared.close();
        self.shared.ended().or(crate::clock::after(self.shared.ladder())).await;
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

/// A pending call: a future of its end. Dropping it earlier cancels the call, also on the server.
pub struct Pending<M: Method, F = fn(Progress)> {
    client: Client,
    /// `None` once the end was returned.
    calling: Option<Result<Calling<M>, Refusal>>,
    told: F,
}

impl<M: Method, F> Pending<M, F> {
    /// Returns the id of the call, for diagnostics. `None` if the call was refused or has ended.
    pub fn id(&self) -> Option<CallId> {
        Some(self.calling.as_ref()?.as_ref().ok()?.id())
    }

    /// Cancels the call, and sends the reason to the server. The future then ends with
    /// [`CallError::Cancelled`], unless the call had ended before.
    pub fn cancel(&self, reason: Option<&str>) {
        if let Some(id) = self.id() {
            self.client.shared().command(|shared, state| state.engine.cancel(shared.clock.now(), id, reason));
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
        // The earlier waker is dropped at the end, outside of the lock: it may be the last one of a
        // task that holds a client.
        let (_before, collected) = this.client.shared().lock().collect(id, cx.waker());
        let Some(Collected { progress, outcome }) = collected else { return Poll::Pending };
        // Outside of the lock: this is code of the application, which may use the client.
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
            state.engine.cancel(shared.clock.now(), id, None);
            waker
        });
        // Outside of the lock: it may be the last waker of a task that holds a client.
        drop(waker);
    }
}

impl<M: Method, F> fmt::Debug for Pending<M, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Pending").field(&self.id()).finish()
    }
}

/// The delivery of a notification, from [`Client::notify`]: a future. Over HTTP it completes once
/// the server responded with a 2xx status, on any other connection once the bytes are written, and
/// with an error if the client gave up first. Dropping it changes nothing, and it does not keep the
/// client open.
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
        // The earlier waker is dropped outside of the lock: it may be the last one of a task that
        // holds a client.
        drop(state);
        drop(before);
        Poll::Pending
    }
}

impl Drop for PendingNotification {
    fn drop(&mut self) {
        let waker = self.shared.command(|shared, state| {
            let waker = state.calls.forget_notification(self.id)?;
            state.engine.untrack(shared.clock.now(), self.id);
            waker
        });
        // Outside of the lock: it may be the last waker of a task that holds a client.
        drop(waker);
    }
}

impl fmt::Debug for PendingNotification {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PendingNotification").field(&self.id).finish()
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use crate::{Object, Router, connect};
    use smol::future::poll_once;

    // covers: B-133
    #[test]
    fn notification_stays_pending_while_the_process_exits() {
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
