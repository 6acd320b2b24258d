//! Calls with callbacks for what comes before their end.

use super::task::TaskUpdate;
use super::{Call, Method, Progress};
use alloc::boxed::Box;
use core::fmt;

/// What comes for a call before its end.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum CallNews {
    /// Its progress.
    Progress(Progress),
    /// The state of the task that it is.
    Task(Box<TaskUpdate>),
}

/// The callbacks of a call. They run where the caller waits, one at a time and in order.
pub trait CallListener {
    /// Something has come.
    fn on_news(&mut self, news: CallNews);
}

/// The callbacks of one call: see [`Call::on_progress`] and [`Call::on_task`].
pub struct CallCallbacks<P = fn(Progress), T = fn(TaskUpdate)> {
    progress: P,
    task: T,
}

impl CallCallbacks {
    /// Callbacks that do nothing.
    const NONE: Self = Self { progress: |_| {}, task: |_| {} };
}

impl<P: FnMut(Progress), T: FnMut(TaskUpdate)> CallListener for CallCallbacks<P, T> {
    fn on_news(&mut self, news: CallNews) {
        match news {
            CallNews::Progress(progress) => (self.progress)(progress),
            CallNews::Task(update) => (self.task)(*update),
        }
    }
}

impl<P, T> fmt::Debug for CallCallbacks<P, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallCallbacks").finish_non_exhaustive()
    }
}

/// A call with callbacks: see [`Call::on_progress`] and [`Call::on_task`].
pub struct CallWithCallbacks<M, P = fn(Progress), T = fn(TaskUpdate)> {
    call: Call<M>,
    callbacks: CallCallbacks<P, T>,
}

impl<M, P, T> fmt::Debug for CallWithCallbacks<M, P, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CallWithCallbacks").field(&self.call).finish()
    }
}

impl<M: Method> Call<M> {
    /// Requests progress, and sets the callback that receives it. It runs where the caller waits.
    #[must_use]
    pub fn on_progress<F: FnMut(Progress)>(self, told: F) -> CallWithCallbacks<M, F> {
        CallWithCallbacks { call: self, callbacks: CallCallbacks::NONE }.on_progress(told)
    }

    /// Sets the callback that receives each state of the task that the call becomes. It runs where
    /// the caller waits, and never if the call becomes none
    /// ([`ClientConfig::tasks`](crate::ClientConfig::tasks)).
    #[must_use]
    pub fn on_task<F: FnMut(TaskUpdate)>(self, told: F) -> CallWithCallbacks<M, fn(Progress), F> {
        CallWithCallbacks { call: self, callbacks: CallCallbacks::NONE }.on_task(told)
    }
}

impl<M: Method, P, T> CallWithCallbacks<M, P, T> {
    /// See [`Call::on_progress`].
    #[must_use]
    pub fn on_progress<F: FnMut(Progress)>(self, told: F) -> CallWithCallbacks<M, F, T> {
        let callbacks = CallCallbacks { progress: told, task: self.callbacks.task };
        CallWithCallbacks { call: self.call.progress(), callbacks }
    }

    /// See [`Call::on_task`].
    #[must_use]
    pub fn on_task<F: FnMut(TaskUpdate)>(self, told: F) -> CallWithCallbacks<M, P, F> {
        let callbacks = CallCallbacks { progress: self.callbacks.progress, task: told };
        CallWithCallbacks { call: self.call, callbacks }
    }
}

/// The argument of an adapter's `call`: a [`Call`], with or without callbacks.
pub trait IntoCall {
    /// The method of the call.
    type Method: Method;
    /// Its callbacks.
    type Listener: CallListener;

    /// Splits it into the call and the callbacks.
    fn into_call(self) -> (Call<Self::Method>, Self::Listener);
}

impl<M: Method> IntoCall for Call<M> {
    type Method = M;
    type Listener = CallCallbacks;

    fn into_call(self) -> (Call<M>, CallCallbacks) {
        (self, CallCallbacks::NONE)
    }
}

impl<M: Method, P: FnMut(Progress), T: FnMut(TaskUpdate)> IntoCall for CallWithCallbacks<M, P, T> {
    type Method = M;
    type Listener = CallCallbacks<P, T>;

    fn into_call(self) -> (Call<M>, CallCallbacks<P, T>) {
        (self.call, self.callbacks)
    }
}
