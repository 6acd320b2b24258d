//! Handlers: functions of the application in the form that a router stores. They belong to no
//! runtime. Needs an allocator only.

use super::cx::Cx;
use super::output::ToolError;
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

/// What a function of the application returns: a value, or a future of it. A function that returns
/// a value may block; the future of one is polled on an executor. `Form` is inferred: it tells the
/// two apart.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is neither `{T}` nor a future of it",
    note = "a future is `Send` and borrows nothing: clone what it needs before `async move`"
)]
pub trait MaybeFuture<T, Form>: Sized {
    /// Creates a handler. `begin` calls the function, or has the value without it (`Err`), and
    /// `end` makes the outcome of the value.
    fn handler(
        begin: impl Fn(&Cx) -> Result<Self, T> + Send + Sync + 'static,
        end: impl Fn(&Cx, T) -> Outcome + Copy + Send + Sync + 'static,
    ) -> Handler;

    /// Creates a callback of a client.
    fn callback<Q>(f: impl Fn(Q) -> Self + Send + Sync + 'static) -> Callback<Q, T>;
}

/// The [form](MaybeFuture) of a value.
#[derive(Debug)]
pub struct Now;

/// The [form](MaybeFuture) of a future.
#[derive(Debug)]
pub struct Later;

/// A callback of a client.
pub enum Callback<Q, A> {
    /// May block.
    Sync(Arc<dyn Fn(Q) -> A + Send + Sync>),
    /// Returns a future.
    Async(Arc<dyn Fn(Q) -> BoxFuture<A> + Send + Sync>),
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

    /// Creates the handler of a function that takes decoded arguments. `end` makes the outcome.
    pub(super) fn of<A, O, R, M>(
        f: impl Fn(&Cx, A) -> R + Send + Sync + 'static,
        end: impl Fn(&Cx, Result<O, ToolError>) -> Outcome + Copy + Send + Sync + 'static,
    ) -> Self
    where
        A: DeserializeOwned,
        R: MaybeFuture<Result<O, ToolError>, M>,
    {
        R::handler(move |cx| cx.arguments().map(|arguments| f(cx, arguments)).map_err(Err), end)
    }
}

impl<T> MaybeFuture<T, Now> for T {
    fn handler(
        begin: impl Fn(&Cx) -> Result<Self, T> + Send + Sync + 'static,
        end: impl Fn(&Cx, T) -> Outcome + Copy + Send + Sync + 'static,
    ) -> Handler {
        Handler::Sync(Arc::new(move |cx| end(cx, begin(cx).unwrap_or_else(|value| value))))
    }

    fn callback<Q>(f: impl Fn(Q) -> Self + Send + Sync + 'static) -> Callback<Q, T> {
        Callback::Sync(Arc::new(f))
    }
}

impl<T, F: Future<Output = T> + Send + 'static> MaybeFuture<T, Later> for F {
    fn handler(
        begin: impl Fn(&Cx) -> Result<Self, T> + Send + Sync + 'static,
        end: impl Fn(&Cx, T) -> Outcome + Copy + Send + Sync + 'static,
    ) -> Handler {
        Handler::Async(Arc::new(move |cx| match begin(&cx) {
            Ok(future) => Box::pin(async move { end(&cx, future.await) }),
            Err(value) => Box::pin(ready(end(&cx, value))),
        }))
    }

    fn callback<Q>(f: impl Fn(Q) -> Self + Send + Sync + 'static) -> Callback<Q, T> {
        Callback::Async(Arc::new(move |question| Box::pin(f(question))))
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
