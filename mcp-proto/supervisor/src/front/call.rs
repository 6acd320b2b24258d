//! A call through a supervisor, on one client after another.

use super::shared::{PolledStep, SupervisorShared};
use super::{Launch, Supervisor};
use crate::{CallKind, CallPlan, CallRefusal, SupervisedError, Ticket};
use alloc::string::String;
use core::fmt;
use core::future::{Future, poll_fn};
use core::marker::PhantomData;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use mcp_driver::NewsQueue;
use mcp_proto::call::{CallListener, IntoCall, Method};
use mcp_proto::error::CallError;

/// A call that the supervisor knows. Dropping it ends it there.
pub(super) struct Reservation<L: Launch> {
    shared: SupervisorShared<L>,
    ticket: Ticket,
}

impl<L: Launch> Reservation<L> {
    pub(super) const fn new(shared: SupervisorShared<L>, ticket: Ticket) -> Self {
        Self { shared, ticket }
    }

    /// Waits until the call can run.
    pub(super) async fn granted(&self) -> Result<(), CallRefusal> {
        match poll_fn(|cx| self.poll(cx).1).await {
            CallStep::Ended(Err(SupervisedError::Refused(why))) => Err(why),
            CallStep::Runs(_) | CallStep::Ended(_) => Ok(()),
        }
    }

    fn poll(&self, cx: &Context<'_>) -> (NewsQueue, PolledStep<L>) {
        self.shared.poll_call(self.ticket, cx.waker())
    }
}

impl<L: Launch> Drop for Reservation<L> {
    fn drop(&mut self) {
        self.shared.forget(self.ticket);
    }
}

/// A call through a [`Supervisor`], from [`Supervisor::start`]: a future of its one end. It runs
/// whether or not it is polled. Dropping it earlier cancels the call, also on the server. It keeps
/// the supervisor open.
#[must_use = "dropping it cancels the call"]
pub struct SupervisedCall<M: Method, F, L: Launch> {
    stage: CallStage<L>,
    listener: F,
    method: PhantomData<fn() -> M>,
    /// It keeps the supervisor open.
    _supervisor: Supervisor<L>,
}

enum CallStage<L: Launch> {
    /// It was refused at once.
    Refused(CallRefusal),
    Begun(Reservation<L>),
    /// Its end was returned.
    Over,
}

/// What became of a call.
#[derive(Debug)]
#[must_use]
pub enum CallStep<T, D> {
    /// It runs on a client, or on another one than before: this is what the adapter keeps for it.
    Runs(D),
    /// It has ended.
    Ended(Result<T, SupervisedError>),
}

impl<M: Method, F: CallListener, L: Launch> SupervisedCall<M, F, L> {
    pub(super) fn new<C>(supervisor: &Supervisor<L>, key: &str, call: C) -> Self
    where
        C: IntoCall<Method = M, Listener = F>,
    {
        let (call, listener) = call.into_call();
        let shared = supervisor.shared();
        let timeout =
            call.raw().options.timeout.unwrap_or_else(|| shared.read(|core| core.call_timeout(&String::from(key))));
        let plan = CallPlan { timeout, ..CallPlan::new(CallKind::of(&call)) };
        let stage = match shared.reserve(key, plan, Some(call.into_raw())) {
            Ok(reservation) => CallStage::Begun(reservation),
            Err(why) => CallStage::Refused(why),
        };
        Self { stage, listener, method: PhantomData, _supervisor: supervisor.clone() }
    }

    /// For an adapter: waits until the call has moved to a client, or has ended.
    pub fn poll_step(&mut self, cx: &Context<'_>) -> Poll<CallStep<M::Output, L::Driver>> {
        let outcome = match &self.stage {
            CallStage::Refused(why) => Err(SupervisedError::Refused(why.clone())),
            CallStage::Begun(reservation) => {
                let (news, step) = reservation.poll(cx);
                news.into_iter().for_each(|news| self.listener.on_news(news));
                match ready!(step) {
                    CallStep::Runs(driver) => return Poll::Ready(CallStep::Runs(driver)),
                    CallStep::Ended(outcome) => outcome,
                }
            }
            CallStage::Over => return Poll::Pending,
        };
        self.stage = CallStage::Over;
        let decode = |result| M::decode(result).map_err(|e| SupervisedError::Call(CallError::Decode(e)));
        Poll::Ready(CallStep::Ended(outcome.and_then(decode)))
    }
}

/// Nothing in it is ever pinned.
impl<M: Method, F, L: Launch> Unpin for SupervisedCall<M, F, L> {}

impl<M: Method, F: CallListener, L: Launch> Future for SupervisedCall<M, F, L> {
    type Output = Result<M::Output, SupervisedError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        loop {
            if let CallStep::Ended(outcome) = ready!(this.poll_step(cx)) {
                return Poll::Ready(outcome);
            }
        }
    }
}

impl<M: Method, F, L: Launch> fmt::Debug for SupervisedCall<M, F, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ticket = match &self.stage {
            CallStage::Begun(reservation) => Some(reservation.ticket),
            CallStage::Refused(_) | CallStage::Over => None,
        };
        f.debug_tuple("SupervisedCall").field(&ticket).finish()
    }
}
