//! The handles of a client: calls, notifications, and its end.

mod handle;
#[cfg(feature = "auth")]
mod logins;
mod outputs;
mod shared;
mod state;
#[cfg(all(test, not(shuttle)))]
mod tests;
mod waiters;
mod watches;

pub use handle::ClientHandle;
pub(super) use outputs::OutputMark;
pub(super) use shared::{ClientShared, ClientTurn};
pub use waiters::NewsQueue;

use super::{Delay, DriverHandle, first};
use crate::ConnectError;
use crate::client_observer::CallTag;
use crate::client_options::ClientOptions;
use crate::os::exit;
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::future::{Future, poll_fn};
use core::ops::Deref;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use core::time::Duration;
use mcp_proto::call::{
    Call, CallCallbacks, CallHandle, CallListener, IntoCall, Method, PagedMethod, Pages, RawCall, SkippedList,
};
use mcp_proto::client::{ClientConfig, FetchError, FetchRequest, FetchResponse, Target, Termination};
use mcp_proto::error::{CallError, Refusal};
use mcp_proto::input::{CallId, NotificationId};
use mcp_proto::rpc::Object;
use mcp_proto::stats::ClientStats;
use waiters::EndFuture;
use watches::WatchId;

/// A client. Cheap to clone. Dropping the last clone closes the connection in order, which the
/// driver carries out.
#[derive(Clone)]
pub struct Client(Arc<ClientOwner>);

/// What all clones of a client share. Dropping it closes the client.
struct ClientOwner {
    handle: ClientHandle,
}

impl Client {
    /// Creates a client, and what its driver drives. Nothing happens before that. `delay` bounds
    /// [`Closer::exit`].
    ///
    /// # Errors
    /// [`ConnectError::System`]: the operating system provides no random bytes.
    pub fn begin(
        config: ClientConfig,
        options: ClientOptions,
        delay: Delay,
    ) -> Result<(Self, DriverHandle), ConnectError> {
        let shared = ClientShared::create(config, options, delay)?;
        let driving = DriverHandle(Arc::clone(&shared) as _);
        Ok((Self(Arc::new(ClientOwner { handle: ClientHandle::new(shared) })), driving))
    }

    /// For an adapter: sets a function to call when the last clone is dropped, after the client
    /// has begun to close. It may wait for the end, so that `main` does not return before it.
    pub fn set_on_drop(&self, wait: impl FnOnce() + Send + 'static) {
        let wait = Box::new(wait);
        self.shared().look(|state, _| state.on_drop = Some(wait));
    }

    /// For an adapter: returns the time limit for opening a connection.
    pub fn open_timeout(&self) -> Duration {
        self.shared().look(|state, _| state.engine.client().config().limits.frame.open_timeout)
    }

    /// For an adapter: returns the maximum number of questions of the server at a time.
    pub fn max_inputs(&self) -> usize {
        self.shared().look(|state, _| state.engine.client().config().limits.client.max_inputs)
    }

    /// For an adapter: returns the time limits of the shutdown, plus a second: within this time a
    /// client that closes has ended, if its driver runs.
    pub fn end_time(&self) -> Duration {
        self.shared().end_time()
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
    pub fn start<C: IntoCall>(&self, call: C) -> PendingCall<C::Method, C::Listener> {
        let (call, listener) = call.into_call();
        let calling = self.shared().call(call);
        PendingCall { client: self.clone(), calling: Some(calling), listener }
    }

    /// Makes a call of a supervisor, which learns of it as the observer of the client.
    pub fn run(&self, tag: CallTag, call: RawCall) {
        self.shared().run(tag, call);
    }

    /// Cancels a call of a supervisor, also on the server.
    pub fn cancel_run(&self, tag: CallTag) {
        self.shared().with(|state, now, _| state.cancel_run(now, tag));
    }

    /// Returns the elements of a paged list. Each page is fetched when it is needed.
    pub fn pages<M: PagedMethod>(&self, call: Call<M>) -> Elements<M> {
        let max = self.shared().look(|state, _| state.engine.client().config().limits.client.max_pages);
        Elements { client: self.clone(), pages: Pages::new(call, max), fetching: None }
    }

    /// Queues a notification of a custom method. The returned future waits for its delivery;
    /// dropping it changes nothing. If the client is closed or dropped right after, it still sends
    /// the notification, within the time limits of the shutdown.
    ///
    /// # Errors
    /// [`Refusal`]: nothing was sent.
    pub fn notify(&self, method: &str, params: Object) -> Result<PendingNotification, Refusal> {
        let shared = Arc::clone(self.shared());
        let id = shared.with(|state, now, _| state.notify(now, method, params))?;
        Ok(PendingNotification(EndFuture { shared, id }))
    }

    /// Makes an HTTP request that is not MCP over the connections of the client, and waits for its
    /// response: see [`Client::fetch`](mcp_proto::ClientCommands::fetch). Dropping the future
    /// cancels the request: its connection is closed or given up, and nothing of its response is
    /// kept.
    ///
    /// # Errors
    /// [`FetchError`]. A response with any status is none.
    pub async fn fetch(&self, request: FetchRequest) -> Result<FetchResponse, FetchError> {
        let shared = Arc::clone(self.shared());
        let id = shared.with(|state, now, _| state.fetch(now, request)).map_err(FetchError::Refused)?;
        EndFuture { shared, id }.await.map(|response| *response)
    }

    /// Like [`fetch`](Self::fetch). The end goes to this function, on a thread of the driver, or
    /// here if the fetch is refused.
    #[cfg(feature = "auth")]
    pub(super) fn fetch_then(
        &self,
        request: FetchRequest,
        call: impl FnOnce(Result<Box<FetchResponse>, FetchError>) + Send + 'static,
    ) {
        let begun = self.shared().with(|state, now, _| state.fetch_then(now, request, Box::new(call)));
        if let Err((why, call)) = begun {
            call(Err(FetchError::Refused(why)));
        }
    }

    /// Waits for the end of negotiation. Calls need not wait for it: the engine sends them then.
    ///
    /// # Errors
    /// [`ConnectError`] if the connection ended instead, or as soon as a time limit is reached. A
    /// program may still be ending then, which [`close`](Self::close) waits for.
    pub async fn ready(&self) -> Result<(), ConnectError> {
        self.shared()
            .watch_unless_exiting(|state| match (&state.terminated, state.overdue()) {
                // Without a server there is nothing to negotiate.
                _ if state.ready.is_some() || state.engine.client().config().target == Target::NoServer => Some(Ok(())),
                (Some(why), _) => Some(Err(why.clone().into())),
                (None, Some(why)) => Some(Err(ConnectError::Negotiation(why.clone()))),
                (None, None) => None,
            })
            .await
    }

    /// For an adapter: leaves the end of this client to its driver, so that dropping the last clone
    /// does not wait for it.
    pub fn unset_on_drop(&self) {
        drop(self.shared().look(|state, _| state.on_drop.take()));
    }

    /// Returns a snapshot of the client's numbers.
    pub fn stats(&self) -> ClientStats {
        self.shared().look(|state, _| state.stats())
    }

    /// Closes the connection in order, and waits for its end: a program has time to exit, then is
    /// terminated, then killed. Pending calls end. May be called repeatedly and concurrently. Needs
    /// a running driver. The page of a login that has just ended is shown, and its record stored.
    /// Returns why the client ended.
    pub async fn close(&self) -> Termination {
        self.shared().end().await
    }

    /// Returns a handle that closes this client without keeping it open: for a signal handler, or
    /// for a callback of the client itself.
    pub fn closer(&self) -> Closer {
        Closer { shared: Arc::clone(self.shared()) }
    }

    /// Begins to close it, without waiting for the end.
    pub fn begin_close(&self) {
        self.shared().close();
    }

    fn shared(&self) -> &Arc<ClientShared> {
        self.0.handle.shared()
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("server", &self.server()).finish_non_exhaustive()
    }
}

/// The commands that do not wait.
impl Deref for Client {
    type Target = ClientHandle;

    fn deref(&self) -> &ClientHandle {
        &self.0.handle
    }
}

impl Drop for ClientOwner {
    fn drop(&mut self) {
        let shared = self.handle.shared();
        shared.close();
        let on_drop = shared.look(|state, _| state.on_drop.take());
        if let Some(wait) = on_drop {
            wait();
            #[cfg(feature = "auth")]
            crate::os::block_on_for(shared::MARGIN, shared.left());
            if let Some(code) = shared.look(|state, _| state.exit.filter(|_| state.terminated.is_some())) {
                exit(code);
            }
        }
    }
}

/// Closes a client without keeping it open, as a clone of the [`Client`] would. It may outlive the
/// client. [`Client::closer`] returns one.
#[derive(Clone)]
pub struct Closer {
    shared: Arc<ClientShared>,
}

impl Closer {
    /// Like [`Client::close`]. If the client is already closing, waits for the end of that.
    pub async fn close(&self) -> Termination {
        self.shared.end().await
    }

    /// Closes the client, then exits this process with this code. Meant for a signal handler. The
    /// first of several codes wins.
    ///
    /// Otherwise a pending call would end with an error, and a `main` that returns this error would
    /// exit before the client is closed, or with another code. From now on the futures that
    /// connect, call, notify and close this client therefore stay pending, and dropping the last
    /// handle exits the process if it waits for the end. Exiting takes as long as
    /// [`close`](Self::close). Other clients of the process are not closed.
    pub async fn exit(&self, code: i32) -> ! {
        let code = self.begin_exit(code);
        first(self.shared.ended(), (self.shared.setup.delay)(self.shared.end_time())).await;
        exit(code)
    }

    /// For an adapter: begins an [`exit`](Self::exit). Returns the code to exit with.
    pub fn begin_exit(&self, code: i32) -> i32 {
        let code = self.shared.look(|state, _| *state.exit.get_or_insert(code));
        self.shared.close();
        code
    }

    /// For an adapter: waits for the end of the client, also after
    /// [`begin_exit`](Self::begin_exit).
    pub async fn ended(&self) {
        self.shared.ended().await;
    }

    /// For an adapter: see [`Client::end_time`].
    pub fn end_time(&self) -> Duration {
        self.shared.end_time()
    }
}

impl fmt::Debug for Closer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Closer").finish_non_exhaustive()
    }
}

/// A pending call: a future of its end. Dropping it earlier cancels the call, also on the server.
/// It keeps the client open, as the client itself does.
#[must_use = "dropping it cancels the call"]
pub struct PendingCall<M: Method, F = CallCallbacks> {
    client: Client,
    /// `None` once the end was returned.
    calling: Option<Result<CallHandle<M>, Refusal>>,
    listener: F,
}

impl<M: Method, F> PendingCall<M, F> {
    /// Returns the id of the call, for diagnostics. `None` if the call was refused or has ended.
    pub fn id(&self) -> Option<CallId> {
        Some(self.calling.as_ref()?.as_ref().ok()?.id())
    }

    /// Cancels the call, and sends the reason to the server. The future then ends with
    /// [`CallError::Cancelled`], unless the call had ended before.
    pub fn cancel(&self, reason: Option<&str>) {
        if let Some(id) = self.id() {
            self.client.cancel(id, reason);
        }
    }
}

/// Nothing in it is ever pinned.
impl<M: Method, F> Unpin for PendingCall<M, F> {}

impl<M: Method, F: CallListener> Future for PendingCall<M, F> {
    type Output = Result<M::Output, CallError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let shared = this.client.shared();
        let id = match &this.calling {
            Some(Ok(calling)) => calling.id(),
            Some(Err(_)) if shared.look(|state, _| state.exit.is_some()) => return Poll::Pending,
            Some(Err(why)) => {
                let why = why.clone();
                this.calling = None;
                return Poll::Ready(Err(CallError::Refused(why)));
            }
            None => return Poll::Pending,
        };
        let Some(received) = shared.poll_end(id, cx.waker()) else { return Poll::Pending };
        received.news.into_iter().for_each(|news| this.listener.on_news(news));
        match (received.outcome, this.calling.take()) {
            (Some(outcome), Some(Ok(calling))) => Poll::Ready(calling.finish(outcome)),
            (_, calling) => {
                this.calling = calling;
                Poll::Pending
            }
        }
    }
}

impl<M: Method, F> Drop for PendingCall<M, F> {
    fn drop(&mut self) {
        if let Some(id) = self.id() {
            self.client.shared().forget(id);
        }
    }
}

impl<M: Method, F> fmt::Debug for PendingCall<M, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Pending").field(&self.id()).finish()
    }
}

/// The delivery of a notification, from [`Client::notify`]: a future. Over HTTP it completes once
/// the server responded with a 2xx status, on any other connection once the bytes are written, and
/// with an error if the client gave up first. Dropping it changes nothing, and it does not keep the
/// client open.
pub struct PendingNotification(EndFuture<NotificationId>);

impl Future for PendingNotification {
    type Output = Result<(), CallError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(cx)
    }
}

impl fmt::Debug for PendingNotification {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PendingNotification").field(&self.0.id).finish()
    }
}

/// What a part of the application watches, from [`watch`](ClientHandle::watch). Dropping it ends
/// that. It does not keep the client open.
#[must_use = "dropping it ends the watch"]
pub struct Watcher {
    pub(super) shared: Arc<ClientShared>,
    pub(super) id: WatchId,
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.shared.with(|state, now, _| state.unwatch(now, self.id));
    }
}

impl fmt::Debug for Watcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Watcher").field(&self.id).finish()
    }
}

/// The elements of a paged list, from [`Client::pages`].
pub struct Elements<M: PagedMethod> {
    client: Client,
    pages: Pages<M>,
    fetching: Option<PendingCall<M>>,
}

impl<M: PagedMethod> Elements<M> {
    /// Returns the next element, and fetches a page if it needs one. `None` at the end of the list,
    /// and after an error. Dropping the future loses no element.
    pub async fn next(&mut self) -> Option<Result<M::Element, CallError>> {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    /// Returns the elements that the pages so far have left out, since they could not be decoded.
    pub const fn skipped(&self) -> &SkippedList {
        self.pages.skipped()
    }

    /// Returns all elements that are left.
    ///
    /// # Errors
    /// The first error: the elements before it are dropped.
    pub async fn all(mut self) -> Result<Vec<M::Element>, CallError> {
        let mut all = Vec::new();
        while let Some(element) = self.next().await {
            all.push(element?);
        }
        Ok(all)
    }

    /// As [`next`](Self::next), for an implementation of a stream.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<M::Element, CallError>>> {
        loop {
            if let Some(fetching) = &mut self.fetching {
                let page = ready!(Pin::new(fetching).poll(cx));
                self.fetching = None;
                if let Err(e) = self.pages.fetched(page) {
                    return Poll::Ready(Some(Err(e)));
                }
            }
            if let Some(element) = self.pages.pop() {
                return Poll::Ready(Some(Ok(element)));
            }
            match self.pages.next() {
                Some(call) => self.fetching = Some(self.client.start(call)),
                None => return Poll::Ready(None),
            }
        }
    }
}

impl<M: PagedMethod> fmt::Debug for Elements<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Elements").finish_non_exhaustive()
    }
}
