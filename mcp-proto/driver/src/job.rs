//! One run of a callback of the application, on whatever the driver has, with exactly one result.

use super::sync::{Mutex, guarded, lock, locked};
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use core::task::{Context, Poll, Waker};
use mcp_proto::error::Refusal;
use mcp_proto::input::ServerCommand;
use mcp_proto::route::BoxFuture;

/// The way of the callbacks of a server to its engine: one function for each server. The driver
/// gives it to [`RunningCallbacks`](super::RunningCallbacks). Callbacks call it on their threads,
/// so the driver locks its engine in it, or uses a [`Mailbox`](super::Mailbox).
///
/// A [`Job`] that is dropped calls it too. A driver must therefore not drop jobs, nor
/// wake tasks, while it holds a lock that the function takes.
///
/// # Errors
/// The refusal of the engine. [`Refusal::Gone`] if the engine no longer exists.
pub type ServerLink = Arc<dyn Fn(ServerCommand) -> Result<(), Refusal> + Send + Sync>;

/// A callback of the application to run: a handler, or the callback of an admission or of a request
/// for input. It reports its result once. So does a callback that panics, that is dropped before
/// its end, or whose request is cancelled: the peer gets an error, unless the engine has already
/// dropped the request.
#[derive(Debug)]
#[must_use = "dropping it answers with an error"]
pub enum Job {
    /// Run it on a thread that may wait.
    Sync(SyncJob),
    /// Poll it on an executor, or on a thread that may wait.
    Async(AsyncJob),
}

/// The kind of a callback, for a driver with a bounded number of threads. Give each kind threads of
/// its own: the end of a handler may depend on an admission, and that of a call on a request for
/// input.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum JobKind {
    /// The handler of a request of this client: see
    /// [`Responder::client`](mcp_proto::server::Responder::client).
    Handler(u64),
    /// The callback that admits a request or a connection.
    Admission,
    /// The callback of a client that answers a request of the server.
    Question,
}

/// Why a driver with a bounded number of threads does not run a handler. Its request is answered
/// with `-32603` and this as the message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rejection {
    /// No thread has become free for some time.
    Busy = 1,
    /// As many handlers as the driver permits run on although nothing waits for their results.
    HandlersDoNotReturn,
}

impl Rejection {
    /// Returns the rejection of this number.
    fn of(number: u8) -> Option<Self> {
        [Self::Busy, Self::HandlersDoNotReturn].into_iter().find(|why| *why as u8 == number)
    }
}

/// The threads for handlers of a server are all in use, and none becomes free: see
/// [`DriverHandle::handlers_stuck`](super::DriverHandle::handlers_stuck).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StuckHandlers {
    /// Number of threads that run handlers.
    pub running: usize,
    /// Number of these handlers whose result has no receiver.
    pub abandoned: usize,
    /// Number of requests that waited for a thread, and are answered with an error.
    pub rejected: usize,
}

impl fmt::Display for StuckHandlers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { running, abandoned, rejected } = self;
        write!(f, "{running} handlers run, {abandoned} of them abandoned; {rejected} requests waited")
    }
}

/// Tells whether something still waits for the result of a [`Job`], also while it runs. A driver
/// that starts a thread in place of one that does not return reads it.
#[derive(Clone, Debug)]
pub struct JobWatch(Arc<Cancel>);

impl JobWatch {
    pub(super) fn new<T: Recipient>(promise: &Promise<T>) -> Self {
        Self(Arc::clone(&promise.cancel))
    }

    /// Returns whether its result has no receiver: it was cancelled (by the peer, by its
    /// disconnect, at a deadline or at a shutdown), or
    /// [`DriverHandle::mark_unheard`](super::DriverHandle::mark_unheard) has found that its client
    /// cannot resume. This never changes back.
    pub fn is_unwanted(&self) -> bool {
        self.0.is_set() || self.0.unheard.load(Ordering::Relaxed)
    }

    /// Wakes this waker when it is cancelled. Returns whether it is cancelled already.
    #[cfg(feature = "auth")]
    pub(super) fn wake_on_cancel(&self, waker: &Waker) -> bool {
        self.0.poll(waker)
    }

    /// Returns one of work that nothing cancels.
    #[cfg(feature = "auth")]
    pub(super) fn of_guard() -> Self {
        Self(Arc::default())
    }
}

/// A callback that may block.
pub struct SyncJob {
    run: Box<dyn FnOnce() + Send>,
    cancel: Arc<Cancel>,
    kind: JobKind,
}

/// A callback that returns a future. Polling it polls that future; cancelling the request drops
/// that future, and completes this one.
#[must_use = "futures do nothing unless polled"]
pub struct AsyncJob {
    future: BoxFuture<JobResult>,
    cancel: Arc<Cancel>,
    kind: JobKind,
}

/// The result of an [`AsyncJob`]. Dropping it serialises the result and passes it to the engine, so
/// that a driver may do this on another thread: see [locks](super#locks).
#[must_use = "dropping it sends the result"]
pub struct JobResult(Box<dyn LateAnswer>);

impl Job {
    /// Returns the kind of the callback.
    pub const fn kind(&self) -> JobKind {
        match self {
            Self::Sync(SyncJob { kind, .. }) | Self::Async(AsyncJob { kind, .. }) => *kind,
        }
    }

    /// Returns what tells whether its result is still wanted, also while it runs.
    pub fn watch(&self) -> JobWatch {
        let (Self::Sync(SyncJob { cancel, .. }) | Self::Async(AsyncJob { cancel, .. })) = self;
        JobWatch(Arc::clone(cancel))
    }

    /// Answers without running it: a handler with an error that says why, any other callback as
    /// dropping it does.
    pub fn reject(self, why: Rejection) {
        let (Self::Sync(SyncJob { cancel, .. }) | Self::Async(AsyncJob { cancel, .. })) = &self;
        cancel.rejection.store(why as u8, Ordering::Relaxed);
        drop(self);
    }

    /// Returns whether it was cancelled: dropping it frees its place in a queue.
    pub fn is_cancelled(&self) -> bool {
        match self {
            Self::Sync(SyncJob { cancel, .. }) | Self::Async(AsyncJob { cancel, .. }) => cancel.is_set(),
        }
    }

    /// Wakes this waker when the job is cancelled before it begins, for a driver that keeps it in a
    /// queue; for a callback that may block, also while it runs. Wakes it at once if it is
    /// cancelled already.
    pub fn wake_on_cancel(&self, waker: &Waker) {
        let (Self::Sync(SyncJob { cancel, .. }) | Self::Async(AsyncJob { cancel, .. })) = self;
        if cancel.poll(waker) {
            waker.wake_by_ref();
        }
    }

    /// Returns a job that calls this function.
    pub(super) fn sync<T: Recipient>(promise: Promise<T>, f: impl FnOnce() -> T::Value + Send + 'static) -> Self {
        let (cancel, kind) = (Arc::clone(&promise.cancel), promise.kind);
        Self::Sync(SyncJob { run: Box::new(move || promise.run(f)), cancel, kind })
    }

    /// Returns a job that polls a future. `None` if the function that returns the future panicked.
    pub(super) fn future<T: Recipient>(promise: Promise<T>, f: impl FnOnce() -> BoxFuture<T::Value>) -> Option<Self> {
        let (cancel, kind) = (Arc::clone(&promise.cancel), promise.kind);
        match guarded(f) {
            Some(future) => Some(Self::Async(AsyncJob {
                future: Box::pin(PolledJob { future: Some(future), promise: Some(promise) }),
                cancel,
                kind,
            })),
            None => {
                promise.finish(Err(Failure::Panicked));
                None
            }
        }
    }
}

impl SyncJob {
    /// Runs it, unless it was cancelled before.
    pub fn run(self) {
        (self.run)();
    }
}

impl Future for AsyncJob {
    type Output = JobResult;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<JobResult> {
        self.future.as_mut().poll(cx)
    }
}

impl JobResult {
    /// Returns whether dropping it may take longer than about half a millisecond: see
    /// [`Responder::takes_long`](mcp_proto::server::Responder::takes_long).
    pub fn takes_long(&self) -> bool {
        self.0.takes_long()
    }
}

impl fmt::Debug for SyncJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SyncJob").field("kind", &self.kind).finish_non_exhaustive()
    }
}

impl fmt::Debug for AsyncJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AsyncJob").field("kind", &self.kind).finish_non_exhaustive()
    }
}

impl fmt::Debug for JobResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Finished(..)")
    }
}

/// Whether a callback is cancelled, and the waker of its task.
#[derive(Debug, Default)]
pub(super) struct Cancel {
    cancelled: AtomicBool,
    entered: AtomicBool,
    /// Its client has left and cannot resume. It is not cancelled.
    unheard: AtomicBool,
    /// Why it is not run: the number of a [`Rejection`], or 0.
    rejection: AtomicU8,
    waker: Mutex<Option<Waker>>,
}

impl Cancel {
    /// Cancels the callback and wakes its task. Do not call it under a lock.
    pub(super) fn set(&self) {
        self.cancelled.store(true, Ordering::Release);
        let waker = lock(&self.waker).take();
        waker.into_iter().for_each(Waker::wake);
    }

    pub(super) fn is_set(&self) -> bool {
        self.cancelled.load(Ordering::Acquire)
    }

    /// Records that no client can receive the result.
    pub(super) fn mark_unheard(&self) {
        self.unheard.store(true, Ordering::Relaxed);
    }

    /// Returns whether the callback has begun, although it is cancelled.
    pub(super) fn is_abandoned(&self) -> bool {
        self.is_set() && self.entered.load(Ordering::Relaxed)
    }

    /// Returns whether it is cancelled. Otherwise wakes the task at its cancellation.
    fn poll(&self, waker: &Waker) -> bool {
        drop(locked(&self.waker, |slot| match &*slot {
            Some(known) if known.will_wake(waker) => None,
            _ => slot.replace(waker.clone()),
        }));
        self.is_set()
    }
}

/// Why a callback has no result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Failure {
    Absent,
    Panicked,
    Cancelled,
    Dropped,
    Rejected(Rejection),
}

impl Failure {
    /// Returns the message of the error for the peer. `callback` is what has no result.
    pub(super) fn message(self, callback: &str) -> String {
        match self {
            Self::Absent => format!("the {callback} does not exist"),
            Self::Panicked => format!("the {callback} panicked"),
            Self::Cancelled => format!("the {callback} was cancelled"),
            Self::Dropped => format!("the {callback} was dropped"),
            Self::Rejected(Rejection::Busy) => "the server is busy".into(),
            Self::Rejected(Rejection::HandlersDoNotReturn) => "handlers do not return".into(),
        }
    }
}

/// What waits for the result of a callback: the right to answer, once.
pub(super) trait Recipient: Send + Unpin + 'static {
    /// The result.
    type Value: Send + Unpin;
    /// The command that brings the result to the engine.
    type Command: 'static;

    /// Returns the command for this result, or for the reason why there is none.
    fn command(self, result: Result<Self::Value, Failure>) -> Self::Command;

    fn kind(&self) -> JobKind;

    /// Returns whether [`command`](Self::command) may take longer than about half a millisecond.
    fn takes_long(&self) -> bool {
        false
    }
}

/// The way of commands to an engine.
pub(super) type LinkTo<C> = Arc<dyn Fn(C) -> Result<(), Refusal> + Send + Sync>;

/// The result that a callback owes. Dropping it reports that there is none.
pub(super) struct Promise<T: Recipient> {
    to: Option<T>,
    result: Result<T::Value, Failure>,
    link: LinkTo<T::Command>,
    cancel: Arc<Cancel>,
    kind: JobKind,
}

impl<T: Recipient> Promise<T> {
    pub(super) fn new(to: T, link: LinkTo<T::Command>, cancel: Arc<Cancel>) -> Self {
        let kind = to.kind();
        Self { to: Some(to), result: Err(Failure::Dropped), link, cancel, kind }
    }

    /// Returns the recipient.
    pub(super) const fn to(&self) -> Option<&T> {
        self.to.as_ref()
    }

    /// Returns its parts. Nothing is reported.
    pub(super) fn into_parts(mut self) -> Option<(T, LinkTo<T::Command>, Arc<Cancel>)> {
        self.to.take().map(|to| (to, Arc::clone(&self.link), Arc::clone(&self.cancel)))
    }

    pub(super) fn finish(mut self, result: Result<T::Value, Failure>) {
        self.result = result;
    }

    /// Runs the callback on this thread.
    pub(super) fn run(self, f: impl FnOnce() -> T::Value) {
        if self.cancel.is_set() {
            guarded(|| drop(f));
            return self.finish(Err(Failure::Cancelled));
        }
        self.cancel.entered.store(true, Ordering::Relaxed);
        let result = guarded(f).ok_or(Failure::Panicked);
        self.finish(result);
    }

    pub(super) fn takes_long(&self) -> bool {
        self.to.as_ref().is_some_and(Recipient::takes_long)
    }
}

impl<T: Recipient> Drop for Promise<T> {
    fn drop(&mut self) {
        if let Some(to) = self.to.take() {
            let result = core::mem::replace(&mut self.result, Err(Failure::Dropped));
            let result = match (result, Rejection::of(self.cancel.rejection.load(Ordering::Relaxed))) {
                (Err(Failure::Dropped), Some(why)) => Err(Failure::Rejected(why)),
                (result, _) => result,
            };
            // The engine ignores the result for a request that has ended, and refuses none.
            let _ = (self.link)(to.command(result));
        }
    }
}

/// A promise with its result.
trait LateAnswer: Send {
    fn takes_long(&self) -> bool;
}

impl<T: Recipient> LateAnswer for Promise<T> {
    fn takes_long(&self) -> bool {
        self.takes_long()
    }
}

/// A future of the application, and the promise of its result.
struct PolledJob<T: Recipient> {
    future: Option<BoxFuture<T::Value>>,
    promise: Option<Promise<T>>,
}

impl<T: Recipient> PolledJob<T> {
    fn end(&mut self, result: Result<T::Value, Failure>) -> Option<Promise<T>> {
        let future = self.future.take();
        guarded(|| drop(future));
        let mut promise = self.promise.take()?;
        promise.result = result;
        Some(promise)
    }
}

impl<T: Recipient> Future for PolledJob<T> {
    type Output = JobResult;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<JobResult> {
        let this = self.get_mut();
        let (Some(future), Some(promise)) = (&mut this.future, &this.promise) else { return Poll::Pending };
        let result = if promise.cancel.poll(cx.waker()) {
            Err(Failure::Cancelled)
        } else {
            promise.cancel.entered.store(true, Ordering::Relaxed);
            match guarded(|| future.as_mut().poll(cx)) {
                Some(Poll::Pending) => return Poll::Pending,
                Some(Poll::Ready(value)) => Ok(value),
                None => Err(Failure::Panicked),
            }
        };
        this.end(result).map_or(Poll::Pending, |promise| Poll::Ready(JobResult(Box::new(promise))))
    }
}

impl<T: Recipient> Drop for PolledJob<T> {
    fn drop(&mut self) {
        drop(self.end(Err(Failure::Dropped)));
    }
}
