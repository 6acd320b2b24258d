//! A call through a supervisor, on one client after another.

use super::shared::{Next, Running, SupervisorShared};
use super::{Launch, Supervisor};
use crate::adapter::front::client::Pending;
use crate::call::{Call, IntoCall, Method, Progress};
use crate::error::CallError;
use crate::supervise::{CallKind, CallPlan, CallRefusal, CallVerdict, SupervisedError, Ticket};
use alloc::string::String;
use alloc::sync::Arc;
use core::fmt;
use core::future::{Future, poll_fn};
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use core::time::Duration;

/// A call that the supervisor knows. Dropping it ends it there.
pub(super) struct Reservation<L: Launch> {
    shared: Arc<SupervisorShared<L>>,
    ticket: Ticket,
}

impl<L: Launch> Reservation<L> {
    pub(super) const fn new(shared: Arc<SupervisorShared<L>>, ticket: Ticket) -> Self {
        Self { shared, ticket }
    }

    /// Waits until the call can run.
    pub(super) async fn granted(&self) -> Result<(), CallRefusal> {
        match poll_fn(|cx| self.poll_next(cx)).await {
            Next::Run(..) => Ok(()),
            Next::Refuse(why) => Err(why),
        }
    }

    fn poll_next(&self, cx: &Context<'_>) -> Poll<Next<L::Driver>> {
        self.shared.poll_next(self.ticket, cx.waker())
    }

    /// Reports the end of the call on its client.
    pub(super) fn finished(&self, outcome: Result<(), &CallError>) -> CallVerdict {
        self.shared.with(|state, now, _| state.core.finished(now, self.ticket, outcome))
    }
}

impl<L: Launch> Drop for Reservation<L> {
    fn drop(&mut self) {
        self.shared.forget(self.ticket);
    }
}

/// A call through a [`Supervisor`], from [`Supervisor::start`]: a future of its one end. Dropping
/// it earlier cancels the call, also on the server. It keeps the supervisor open.
#[must_use = "dropping it cancels the call"]
pub struct SupervisedCall<M: Method, F, L: Launch> {
    /// The call on its client. `None` before it ran there for the first time.
    pending: Option<Pending<M, F>>,
    stage: Stage<L>,
    reservation: Option<Reservation<L>>,
    call: Call<M>,
    /// The callback for progress, until the call runs.
    told: Option<F>,
    /// It keeps the supervisor open.
    _supervisor: Supervisor<L>,
}

enum Stage<L: Launch> {
    /// It was refused at once.
    Refused(CallRefusal),
    /// It waits for a client.
    Waits,
    /// It can run on this client.
    Granted(Running<L::Driver>, Option<Duration>),
    Runs,
    /// Its end was returned.
    Over,
}

/// What became of a call on its client.
#[derive(Debug)]
#[must_use]
pub enum CallStep<T> {
    /// It has ended.
    Ended(Result<T, SupervisedError>),
    /// It runs on another client, which it has to wait for.
    Again,
}

impl<M: Method, F: FnMut(Progress), L: Launch> SupervisedCall<M, F, L> {
    pub(super) fn new<C>(supervisor: &Supervisor<L>, key: &str, call: C) -> Self
    where
        C: IntoCall<Method = M, Told = F>,
    {
        let (call, told) = call.into_call();
        let shared = supervisor.shared();
        let timeout =
            call.raw().options.timeout.unwrap_or_else(|| shared.read(|core| core.call_timeout(&String::from(key))));
        let plan = CallPlan { timeout, ..CallPlan::new(CallKind::of(&call)) };
        let (stage, reservation) = match shared.reserve(key, plan) {
            Ok(reservation) => (Stage::Waits, Some(reservation)),
            Err(why) => (Stage::Refused(why), None),
        };
        Self { pending: None, stage, reservation, call, told: Some(told), _supervisor: supervisor.clone() }
    }

    /// For an adapter: waits until it can run on a client, and returns what the adapter keeps for
    /// that.
    ///
    /// # Errors
    /// The end of the call.
    pub fn poll_granted(&mut self, cx: &Context<'_>) -> Poll<Result<L::Driver, SupervisedError>> {
        if let (Stage::Waits, Some(reservation)) = (&self.stage, &self.reservation) {
            self.stage = match ready!(reservation.poll_next(cx)) {
                Next::Run(running, timeout) => Stage::Granted(running, timeout),
                Next::Refuse(why) => Stage::Refused(why),
            };
        }
        match &self.stage {
            Stage::Granted(running, _) => Poll::Ready(Ok(running.driver.clone())),
            Stage::Refused(why) => {
                let why = why.clone();
                self.end();
                Poll::Ready(Err(SupervisedError::Refused(why)))
            }
            Stage::Waits | Stage::Runs | Stage::Over => Poll::Pending,
        }
    }

    /// For an adapter: sends it to the server, after
    /// [`poll_granted`](Self::poll_granted) has returned. Otherwise does nothing.
    pub fn send(&mut self) {
        let Stage::Granted(running, timeout) = &self.stage else { return };
        let call = self.call.clone().timeout(*timeout);
        match (&mut self.pending, self.told.take()) {
            (Some(pending), _) => drop(pending.start_again(&running.client, call)),
            (pending, Some(told)) => *pending = Some(running.client.start(Told { call, told })),
            (None, None) => {}
        }
        self.stage = Stage::Runs;
    }

    /// For an adapter: waits for its end on the client, after [`send`](Self::send).
    pub fn poll_ran(&mut self, cx: &mut Context<'_>) -> Poll<CallStep<M::Output>> {
        let (Stage::Runs, Some(reservation), Some(pending)) = (&self.stage, &self.reservation, &mut self.pending)
        else {
            return Poll::Pending;
        };
        let outcome = ready!(Pin::new(pending).poll(cx));
        match reservation.finished(outcome.as_ref().map(|_| ())) {
            CallVerdict::Final => {
                self.end();
                Poll::Ready(CallStep::Ended(outcome.map_err(SupervisedError::Call)))
            }
            // It was refused meanwhile, and its client was closed, which has ended it there: the
            // refusal is what it waits for.
            CallVerdict::Again | CallVerdict::Ignore => {
                self.stage = Stage::Waits;
                Poll::Ready(CallStep::Again)
            }
        }
    }

    fn end(&mut self) {
        self.stage = Stage::Over;
        self.pending = None;
        self.reservation = None;
    }
}

/// A call and its callback for progress, whether it requests progress or not.
struct Told<M, F> {
    call: Call<M>,
    told: F,
}

impl<M: Method, F: FnMut(Progress)> IntoCall for Told<M, F> {
    type Method = M;
    type Told = F;

    fn into_call(self) -> (Call<M>, F) {
        (self.call, self.told)
    }
}

/// Nothing in it is ever pinned.
impl<M: Method, F, L: Launch> Unpin for SupervisedCall<M, F, L> {}

impl<M: Method, F: FnMut(Progress), L: Launch> Future for SupervisedCall<M, F, L> {
    type Output = Result<M::Output, SupervisedError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        loop {
            if let Stage::Runs = this.stage {
                match ready!(this.poll_ran(cx)) {
                    CallStep::Ended(outcome) => return Poll::Ready(outcome),
                    CallStep::Again => {}
                }
            }
            match ready!(this.poll_granted(cx)) {
                Ok(_) => this.send(),
                Err(why) => return Poll::Ready(Err(why)),
            }
        }
    }
}

impl<M: Method, F, L: Launch> fmt::Debug for SupervisedCall<M, F, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ticket = self.reservation.as_ref().map(|reservation| reservation.ticket);
        f.debug_tuple("SupervisedCall").field(&ticket).finish()
    }
}
