//! Handles for applications and for HTTP libraries, and the loop that drives them, on any runtime.
//! They wait with [`Waker`]s, so an executor, or a parked thread ([`block_on`](super::block_on)),
//! can await them.

mod backlog;
mod client;
mod connection;
mod events;
mod gateway;
#[cfg_attr(not(feature = "auth"), path = "guard/absent.rs")]
mod guard;
mod handle;
mod server;
mod shared;
#[cfg(all(test, not(shuttle)))]
mod tests;

pub use client::{Client, ClientHandle, Closer, Elements, NewsQueue, PendingCall, PendingNotification, Watcher};
pub use connection::{DrivenConnection, TurnResult};
pub use events::WaitingEvents;
pub use gateway::{Exchange, Gateway, Part};
pub(super) use guard::Guard;
#[cfg(feature = "auth")]
pub(super) use guard::GuardState;
pub use handle::ServerHandle;
pub use server::{CALLBACK_GRACE, ListenerGuard, Server};
pub use shared::{Front, Later, Shared};

use super::asking::PendingQuestion;
use super::client_options::ClientCallbacks;
use super::job::{Job, JobWatch, StuckHandlers};
use super::os::{Clock, block_on_for};
use super::work::Work;
use alloc::sync::Arc;
use core::fmt;
use core::future::poll_fn;
use core::pin::pin;
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use mcp_proto::exchange::Endpoint;
use mcp_proto::route::BoxFuture;
use mcp_proto::time::Instant;

/// Returns a future that ends after a time: the timer of the runtime. It bounds
/// [`Server::stop`] and [`Closer::exit`], which a connection that nothing drives, or a callback,
/// could otherwise delay for any time. A driver on threads has no such future: it returns one that
/// never ends, and bounds both with [`block_on_for`](super::block_on_for). A loop with timers of
/// its own reaches them by a thread-local variable.
pub type Delay = fn(Duration) -> BoxFuture<()>;

/// What a driver does next.
#[derive(Debug)]
#[must_use]
pub enum Task {
    /// Open this connection, report that to its [`transfer`](DrivenConnection::transfer), and drive
    /// it to its end.
    Open(DrivenConnection, Endpoint),
    /// Route this to its callback, and run the callback.
    Route(RouteTask),
    /// Call [`Events::deliver`]: the application gets its events.
    Deliver(Events),
    /// Drive this client, which makes the fetches of a server that verifies tokens, to its end, as
    /// any other client. Its connections have this time to open. A driver that cannot drops it.
    Drive(DriverHandle, Duration),
    /// It has ended: nothing follows.
    Ended,
}

/// A request, an admission or a question on its way to a callback of the application. Dropping it
/// answers with an error.
#[must_use = "dropping it answers with an error"]
pub struct RouteTask(RoutingKind);

#[expect(clippy::large_enum_variant, reason = "most are requests; a box for each would be one allocation more")]
enum RoutingKind {
    Work(Work, Arc<dyn Route>),
    Asking(PendingQuestion, Arc<ClientCallbacks>),
    /// Verifies the tokens of the requests that have waited for a fetch.
    #[cfg(feature = "auth")]
    Guard(Arc<Guard>),
}

/// Leads what the engine of a server hands out to its callback.
trait Route: Send + Sync {
    fn route(&self, work: Work) -> Option<Job>;
}

impl RouteTask {
    /// Returns whether this is a question of a server to a client: the callback may begin to block
    /// as soon as it is routed.
    pub fn is_question(&self) -> bool {
        matches!(self.0, RoutingKind::Asking(..))
    }

    /// Returns whether [`route`](Self::route) may take longer than about half a millisecond, so
    /// that an executor should not do it.
    pub fn takes_long(&self) -> bool {
        match &self.0 {
            RoutingKind::Work(work, _) => work.takes_long(),
            RoutingKind::Asking(..) => false,
            #[cfg(feature = "auth")]
            RoutingKind::Guard(_) => true,
        }
    }

    /// Returns what tells whether its result is still wanted.
    pub fn watch(&self) -> JobWatch {
        match &self.0 {
            RoutingKind::Work(work, _) => work.watch(),
            RoutingKind::Asking(asking, _) => asking.watch(),
            #[cfg(feature = "auth")]
            RoutingKind::Guard(_) => JobWatch::of_guard(),
        }
    }

    /// Returns the callback to run. `None` if it is answered already. This reads and writes JSON,
    /// and may run code of the application: see [locks](super#locks).
    pub fn route(self) -> Option<Job> {
        match self.0 {
            RoutingKind::Work(work, server) => server.route(work),
            RoutingKind::Asking(asking, callbacks) => callbacks.route(asking),
            #[cfg(feature = "auth")]
            RoutingKind::Guard(guard) => {
                guard.run();
                None
            }
        }
    }
}

impl fmt::Debug for RouteTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            RoutingKind::Work(work, _) => work.fmt(f),
            RoutingKind::Asking(asking, _) => asking.fmt(f),
            #[cfg(feature = "auth")]
            RoutingKind::Guard(_) => f.write_str("Guard(..)"),
        }
    }
}

/// Events that wait for the application.
#[must_use = "the application does not get them"]
pub struct Events {
    /// `None` once they are delivered.
    of: Option<Arc<dyn Deliver>>,
}

/// Has events for the application.
trait Deliver: Send + Sync {
    fn deliver(&self);
    /// Somebody else has to deliver them.
    fn unclaim_events(&self);
}

impl Events {
    fn new(of: Arc<dyn Deliver>) -> Self {
        Self { of: Some(of) }
    }

    /// Passes the waiting events to the callback of the application, in order, and those that are
    /// added meanwhile. A panic of the callback is caught.
    pub fn deliver(mut self) {
        if let Some(of) = self.of.take() {
            of.deliver();
        }
    }
}

/// Somebody else has to deliver them.
impl Drop for Events {
    fn drop(&mut self) {
        if let Some(of) = self.of.take() {
            of.unclaim_events();
        }
    }
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Events(..)")
    }
}

/// A client, a server or a gateway as its driver sees it: one loop drives any of them.
///
/// The loop carries out tasks until there are none, then sleeps until
/// [`poll_timeout`](Self::poll_timeout), or until [`woken`](Self::woken) ends, and calls
/// [`handle_timeout`](Self::handle_timeout). [`run`](Self::run) is that loop as a future, and
/// [`block`](Self::block) runs it on a thread. Each connection is driven apart, in the same loop,
/// in a task or in threads of its own: see [`DrivenConnection`].
///
/// Dropping it ends everything at once: calls end with an error, callbacks are cancelled, and the
/// drivers of connections are woken to abort them.
#[must_use = "nothing happens without a driver"]
pub struct DriverHandle(Arc<dyn Role>);

/// A client, a server or a gateway, for its driver. A program that is only one of them does not
/// contain the code of the others.
trait Role: Deliver {
    /// Its name for people.
    fn name(&self) -> &'static str;
    fn clock(&self) -> Clock;
    /// Returns the next task for the driver of the engine.
    fn next_task(self: Arc<Self>) -> Option<Task>;
    /// Returns the next task for any other thread.
    fn next_task_of_command(self: Arc<Self>) -> Option<Task>;
    fn poll_timeout(&self) -> Option<Instant>;
    fn handle_timeout(&self);
    fn poll_woken(&self, waker: &Waker) -> Poll<()>;
    /// Ends everything at once.
    fn abandon(&self);
    fn mark_unheard(&self);
    fn handlers_stuck(&self, stuck: StuckHandlers);
}

impl DriverHandle {
    /// Returns the clock of the engine.
    pub fn clock(&self) -> Clock {
        self.0.clock()
    }

    /// Returns the next task. `None` if there is none for now. From its first call on, a client
    /// connects.
    pub fn next_task(&self) -> Option<Task> {
        Arc::clone(&self.0).next_task()
    }

    /// As [`next_task`](Self::next_task), for a thread that has given a command and does not leave
    /// its tasks to the driver. Never [`Task::Ended`].
    pub fn next_task_of_command(&self) -> Option<Task> {
        Arc::clone(&self.0).next_task_of_command()
    }

    /// Returns when to call [`handle_timeout`](Self::handle_timeout). `None` if there is no timer.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.0.poll_timeout()
    }

    /// Fires the timers that are due. Does nothing if none is.
    pub fn handle_timeout(&self) {
        self.0.handle_timeout();
    }

    /// Returns `Ready` if there may be a task, or if the deadline is earlier than the last one that
    /// [`poll_timeout`](Self::poll_timeout) returned. Otherwise wakes the task at that time. Only
    /// the last task that polled it is woken.
    pub fn poll_woken(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.0.poll_woken(cx.waker())
    }

    /// Waits as [`poll_woken`](Self::poll_woken) says.
    pub async fn woken(&self) {
        poll_fn(|cx| self.poll_woken(cx)).await;
    }

    /// Drives until the end, for a runtime with tasks: passes each task to `carry_out`, which
    /// spawns what takes time, and waits with `delay` for the next timer. Dropping the future drops
    /// this.
    pub async fn run<F>(self, delay: impl Fn(Duration) -> F, mut carry_out: impl FnMut(Task))
    where
        F: Future<Output = ()>,
    {
        loop {
            while let Some(task) = self.next_task() {
                if matches!(task, Task::Ended) {
                    return;
                }
                carry_out(task);
            }
            // In each round: a command may have moved the deadline without a task, and `woken`
            // compares the deadline with this one.
            match self.poll_timeout() {
                Some(due) => first(self.woken(), delay(self.clock().until(Some(due)))).await,
                None => self.woken().await,
            }
            self.handle_timeout();
        }
    }

    /// Drives until the end on this thread: passes each task to `carry_out`, which starts a thread
    /// for what takes time.
    pub fn block(self, mut carry_out: impl FnMut(Task)) {
        loop {
            while let Some(task) = self.next_task() {
                if matches!(task, Task::Ended) {
                    return;
                }
                carry_out(task);
            }
            block_on_for(self.clock().until(self.poll_timeout()), self.woken());
            self.handle_timeout();
        }
    }

    /// For a driver with a bounded number of threads: marks the jobs of a server that run for
    /// clients which have left and cannot resume, so that [`JobWatch::is_unwanted`] tells it. They
    /// are not cancelled. Call it when jobs wait for a thread. Does nothing for a client and for a
    /// gateway.
    pub fn mark_unheard(&self) {
        self.0.mark_unheard();
    }

    /// For a driver with a bounded number of threads: a server emits
    /// [`DiagnosticKind::StuckHandlers`](mcp_proto::error::DiagnosticKind::StuckHandlers). Call it
    /// before [`Job::reject`]. Does nothing for a client and for a gateway.
    pub fn handlers_stuck(&self, stuck: StuckHandlers) {
        self.0.handlers_stuck(stuck);
    }

    /// Ends everything at once, as dropping this does.
    pub fn abandon(&self) {
        self.0.abandon();
    }
}

impl Drop for DriverHandle {
    fn drop(&mut self) {
        self.abandon();
    }
}

impl fmt::Debug for DriverHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Driving").field(&self.0.name()).finish()
    }
}

/// Whether a driver has to look again, with its waker.
#[derive(Debug, Default)]
pub struct Attention {
    driver: Option<Waker>,
    /// The deadline that the driver knows, if it knows one.
    due: Option<Option<Instant>>,
    /// The deadline is earlier than the driver knows.
    earlier: bool,
}

impl Attention {
    /// The driver looks at the tasks: it is awake. Returns its waker.
    pub fn awake(&mut self) -> Option<Waker> {
        self.driver.take()
    }

    /// The driver looks at the deadline.
    fn look(&mut self, due: Option<Instant>) -> Option<Instant> {
        (self.due, self.earlier) = (Some(due), false);
        due
    }

    /// Returns the driver to wake, if this deadline is earlier than it knows, or if there is a
    /// task.
    fn check(&mut self, due: Option<Instant>, has_task: bool) -> Option<Waker> {
        if let (Some(known), Some(due)) = (self.due, due)
            && known.is_none_or(|known| due < known)
        {
            self.earlier = true;
        }
        if self.earlier || has_task { self.driver.take() } else { None }
    }

    /// Returns whether the driver has to look. Otherwise registers its waker, and returns the one
    /// before.
    fn poll(&mut self, has_task: bool, waker: &Waker) -> (Poll<()>, Option<Waker>) {
        if self.earlier || has_task {
            return (Poll::Ready(()), self.driver.take());
        }
        (Poll::Pending, self.driver.replace(waker.clone()))
    }
}

/// Waits for the first of two futures.
async fn first(one: impl Future<Output = ()>, other: impl Future<Output = ()>) {
    let (mut one, mut other) = (pin!(one), pin!(other));
    poll_fn(|cx| match one.as_mut().poll(cx) {
        Poll::Pending => other.as_mut().poll(cx),
        ready => ready,
    })
    .await;
}
