//! Handlers as functions, in the form that the router stores.

use mcp_proto::route::FromFn;
use mcp_proto::{Cx, IntoOutput, Outcome};
use serde::de::DeserializeOwned;
use std::fmt;
use std::sync::Arc;

/// The tools of a server. A handler is a function of a [`Cx`] and its arguments: `|cx, a: Add| …`.
pub type Router = mcp_proto::Router<Handler>;

/// A function that handles requests. Several run at once, each on a thread. If it panics, the
/// response is an error.
#[derive(Clone)]
pub struct Handler(pub(crate) Arc<dyn Fn(Cx) -> Outcome + Send + Sync>);

impl Handler {
    /// Creates a handler that decodes its own arguments and returns the whole outcome.
    pub fn new(f: impl Fn(Cx) -> Outcome + Send + Sync + 'static) -> Self {
        Self(Arc::new(f))
    }
}

impl<F, A, R> FromFn<F, A> for Handler
where
    F: Fn(Cx, A) -> R + Send + Sync + 'static,
    A: DeserializeOwned,
    R: IntoOutput,
{
    fn from_fn(f: F) -> Self {
        Self::new(move |cx| match cx.arguments() {
            Ok(arguments) => cx.outcome(f(cx.clone(), arguments)),
            Err(e) => cx.outcome(Err::<String, _>(e)),
        })
    }
}

impl fmt::Debug for Handler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Handler(..)")
    }
}
