//! Handlers: functions of the application in the form that a router stores. They belong to no
//! runtime. Needs an allocator only.

use super::cx::Cx;
use super::output::{IntoOutput, ToolError};
use crate::input::Outcome;
use alloc::boxed::Box;
use alloc::sync::Arc;
use core::fmt;
use core::future::{Future, ready};
use core::pin::Pin;
use serde::de::DeserializeOwned;

/// A boxed future of a driver's executor.
pub type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// A handler that returns its outcome.
pub type HandlerFn = Arc<dyn Fn(&Cx) -> Outcome + Send + Sync>;

/// A handler that returns a future of its outcome.
pub type AsyncHandlerFn = Arc<dyn Fn(Cx) -> BoxFuture<Outcome> + Send + Sync>;

/// A handler of requests. [`Router::tool`](super::Router::tool) and its siblings create one from a
/// function. Create one directly if the function decodes its own arguments and returns the whole
/// outcome. The driver runs it.
#[derive(Clone)]
pub enum Handler {
    /// May block: the driver runs it on a thread that may wait.
    Sync(HandlerFn),
    /// Must not block: the driver runs it on the thread that routes the request, and everything
    /// else on that thread waits for it.
    Inline(HandlerFn),
    /// The driver polls its future on its executor, or on a thread that may wait.
    Async(AsyncHandlerFn),
}

impl Handler {
    /// Creates a handler that may block.
    pub fn sync(f: impl Fn(&Cx) -> Outcome + Send + Sync + 'static) -> Self {
        Self::Sync(Arc::new(f))
    }

    /// Creates a handler that does not block.
    pub fn inline(f: impl Fn(&Cx) -> Outcome + Send + Sync + 'static) -> Self {
        Self::Inline(Arc::new(f))
    }

    /// Creates a handler that returns a future.
    pub fn future<F, R>(f: F) -> Self
    where
        F: Fn(Cx) -> R + Send + Sync + 'static,
        R: Future<Output = Outcome> + Send + 'static,
    {
        Self::Async(Arc::new(move |cx| Box::pin(f(cx))))
    }

    /// Calls a handler on this thread. `None` if it returns a future.
    pub fn call(&self, cx: &Cx) -> Option<Outcome> {
        match self {
            Self::Sync(f) | Self::Inline(f) => Some(f(cx)),
            Self::Async(_) => None,
        }
    }

    /// Returns whether two handlers are clones of one, or both are absent.
    pub(super) fn same(one: Option<&Self>, other: Option<&Self>) -> bool {
        match (one, other) {
            (None, None) => true,
            (Some(Self::Sync(one)), Some(Self::Sync(other))) => Arc::ptr_eq(one, other),
            (Some(Self::Inline(one)), Some(Self::Inline(other))) => Arc::ptr_eq(one, other),
            (Some(Self::Async(one)), Some(Self::Async(other))) => Arc::ptr_eq(one, other),
            _ => false,
        }
    }

    /// Wraps a function that takes decoded arguments.
    pub(super) fn function<A, O, F>(f: F) -> HandlerFn
    where
        F: Fn(&Cx, A) -> Result<O, ToolError> + Send + Sync + 'static,
        A: DeserializeOwned,
        O: IntoOutput,
    {
        Arc::new(move |cx| cx.outcome(cx.arguments().and_then(|arguments| f(cx, arguments))))
    }

    /// Wraps a function that takes decoded arguments and returns a future.
    pub(super) fn async_function<A, O, R, F>(f: F) -> Self
    where
        F: Fn(Cx, A) -> R + Send + Sync + 'static,
        A: DeserializeOwned,
        R: Future<Output = Result<O, ToolError>> + Send + 'static,
        O: IntoOutput + 'static,
    {
        Self::Async(Arc::new(move |cx| match cx.arguments() {
            Ok(arguments) => {
                let handled = f(cx.clone(), arguments);
                Box::pin(async move { cx.outcome(handled.await) })
            }
            Err(e) => Box::pin(ready(cx.outcome(Err::<O, _>(e)))),
        }))
    }
}

impl fmt::Debug for Handler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sync(_) => "Sync",
            Self::Inline(_) => "Inline",
            Self::Async(_) => "Async",
        })
    }
}
