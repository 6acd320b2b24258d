//! Handlers: closures of the application in the form that the router stores.

use crate::future::BoxFuture;
use mcp_proto::route::FromFn;
use mcp_proto::{Cx, IntoOutput, Outcome, ToolError};
use serde::de::DeserializeOwned;
use smol::future::Future;
use std::fmt;

/// A handler of requests: a function from [`Cx`] to a future. [`Router::tool`](crate::Router::tool)
/// creates one from a closure, as does [`Handler::new`].
pub struct Handler(pub(crate) Box<dyn Fn(Cx) -> BoxFuture<Outcome> + Send + Sync>);

impl fmt::Debug for Handler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Handler")
    }
}

impl Handler {
    /// Creates a handler that decodes its own arguments and returns the whole outcome.
    pub fn new<F, R>(f: F) -> Self
    where
        F: Fn(Cx) -> R + Send + Sync + 'static,
        R: Future<Output = Outcome> + Send + 'static,
    {
        Self(Box::new(move |cx| Box::pin(f(cx))))
    }
}

impl<F, A, R, O> FromFn<F, A> for Handler
where
    F: Fn(Cx, A) -> R + Send + Sync + 'static,
    A: DeserializeOwned + Send + 'static,
    R: Future<Output = Result<O, ToolError>> + Send + 'static,
    O: IntoOutput + Send + 'static,
{
    fn from_fn(f: F) -> Self {
        Self(Box::new(move |cx| match cx.arguments::<A>() {
            Ok(arguments) => {
                let handled = f(cx.clone(), arguments);
                Box::pin(async move { cx.outcome(handled.await) })
            }
            Err(e) => {
                let outcome = cx.outcome(Err::<O, _>(e));
                Box::pin(std::future::ready(outcome))
            }
        }))
    }
}
