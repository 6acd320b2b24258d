//! Functions around the handlers of a router: see [`Router::before`](super::Router::before),
//! [`Router::after`](super::Router::after) and
//! [`Router::around_async`](super::Router::around_async).

use super::cx::{Cx, Invocation};
use super::handler::{BoxFuture, Handler, HandlerFn};
use super::output::ToolError;
use crate::input::Outcome;
use crate::model::tasks::TaskOptions;
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

type BeforeFn = Arc<dyn Fn(&Cx) -> Result<(), ToolError> + Send + Sync>;
type AfterFn = Arc<dyn Fn(&Cx, &mut Outcome) + Send + Sync>;
type AroundFn = Arc<dyn Fn(Cx, Next) -> BoxFuture<Outcome> + Send + Sync>;

/// What [`Router::before`](super::Router::before) adds: a function, or a
/// [`RateLimit`](super::RateLimit).
pub trait Before: Send + Sync + 'static {
    /// Decides on a request before its handler runs.
    ///
    /// # Errors
    /// The answer to the request, as the error of its handler would be. The handler does not run.
    fn before(&self, cx: &Cx) -> Result<(), ToolError>;

    /// Returns whether it returns at once, so that a handler that is
    /// [inline](super::Router::inline) stays so. The default is no.
    fn is_inline(&self) -> bool {
        false
    }
}

impl<F: Fn(&Cx) -> Result<(), ToolError> + Send + Sync + 'static> Before for F {
    fn before(&self, cx: &Cx) -> Result<(), ToolError> {
        self(cx)
    }
}

/// The functions around every handler of a router, the outermost first.
#[derive(Clone, Debug)]
pub(super) struct Layers {
    layers: Arc<Vec<Layer>>,
    /// Whether all of them return at once.
    are_inline: bool,
}

#[derive(Clone)]
enum Layer {
    Before(BeforeFn),
    After(AfterFn),
    Around(AroundFn),
}

/// The rest of the way of a request to its handler, for a function that
/// [`Router::around_async`](super::Router::around_async) has added.
#[must_use = "the handler runs only if this does"]
pub struct Next {
    layers: Arc<Vec<Layer>>,
    at: usize,
    handler: Handler,
}

impl Default for Layers {
    fn default() -> Self {
        Self { layers: Arc::default(), are_inline: true }
    }
}

impl Layers {
    pub(super) fn before(&mut self, f: impl Before, is_inline: bool) {
        let is_inline = is_inline || f.is_inline();
        self.add(Layer::Before(Arc::new(move |cx| f.before(cx))), is_inline);
    }

    pub(super) fn after(&mut self, f: AfterFn, is_inline: bool) {
        self.add(Layer::After(f), is_inline);
    }

    pub(super) fn around(&mut self, f: AroundFn) {
        self.add(Layer::Around(f), false);
    }

    fn add(&mut self, layer: Layer, is_inline: bool) {
        Arc::make_mut(&mut self.layers).push(layer);
        self.are_inline &= is_inline;
    }

    pub(super) fn are_none(&self) -> bool {
        self.layers.is_empty()
    }

    /// Returns the handler with the functions around it. The request becomes a task, if it begins
    /// as one, when all of them have let it pass.
    pub(super) fn wrap(&self, handler: Handler, mut invocation: Invocation) -> (Handler, Invocation) {
        let handler = match invocation.take_beginning() {
            Some(options) => begin_as(handler, options),
            None => handler,
        };
        (self.around_handler(handler), invocation)
    }

    fn around_handler(&self, handler: Handler) -> Handler {
        let layers = Arc::clone(&self.layers);
        let waits = self.layers.iter().any(|layer| matches!(layer, Layer::Around(_)));
        match handler {
            Handler::Sync(f) if !waits => Handler::Sync(Arc::new(move |cx| pass(&layers, cx, &f))),
            Handler::Inline(f) if !waits && self.are_inline => {
                Handler::Inline(Arc::new(move |cx| pass(&layers, cx, &f)))
            }
            Handler::Inline(f) if !waits => Handler::Sync(Arc::new(move |cx| pass(&layers, cx, &f))),
            handler => Handler::Async(Arc::new(move |cx| {
                Next { layers: Arc::clone(&layers), at: 0, handler: handler.clone() }.run(cx)
            })),
        }
    }
}

/// Makes a task of the request when the handler begins.
fn begin_as(handler: Handler, options: TaskOptions) -> Handler {
    // An error means that the request is over.
    let begin = move |cx: &Cx| drop(cx.into_task(options));
    let sync = |f: HandlerFn| -> HandlerFn {
        Arc::new(move |cx| {
            begin(cx);
            f(cx)
        })
    };
    match handler {
        Handler::Sync(f) => Handler::Sync(sync(f)),
        Handler::Inline(f) => Handler::Inline(sync(f)),
        Handler::Async(f) => Handler::Async(Arc::new(move |cx| {
            begin(&cx);
            f(cx)
        })),
    }
}

/// Calls a handler behind functions that do not wait.
fn pass(layers: &[Layer], cx: &Cx, handler: &HandlerFn) -> Outcome {
    let Some((layer, rest)) = layers.split_first() else { return handler(cx) };
    match layer {
        Layer::Before(f) => match f(cx) {
            Ok(()) => pass(rest, cx, handler),
            Err(error) => cx.failed(error),
        },
        Layer::After(f) => {
            let mut outcome = pass(rest, cx, handler);
            f(cx, &mut outcome);
            outcome
        }
        // `wrap` makes a future where there is one.
        Layer::Around(_) => pass(rest, cx, handler),
    }
}

impl Next {
    /// Runs the handler, and the functions within this one. Await it at most once; without it the
    /// handler does not run.
    pub fn run(mut self, cx: Cx) -> BoxFuture<Outcome> {
        let Some(layer) = self.layers.get(self.at).cloned() else { return run(self.handler, cx) };
        self.at += 1;
        match layer {
            Layer::Before(f) => match f(&cx) {
                Ok(()) => self.run(cx),
                Err(error) => Box::pin(core::future::ready(cx.failed(error))),
            },
            Layer::After(f) => Box::pin(async move {
                let mut outcome = self.run(cx.clone()).await;
                f(&cx, &mut outcome);
                outcome
            }),
            Layer::Around(f) => f(cx, self),
        }
    }
}

/// Runs a handler. One that may block runs where the driver lets it.
fn run(handler: Handler, cx: Cx) -> BoxFuture<Outcome> {
    match handler {
        Handler::Inline(f) => Box::pin(async move { f(&cx) }),
        Handler::Async(f) => f(cx),
        Handler::Sync(f) => {
            let port = Arc::clone(cx.port());
            port.block(Box::new(move || f(&cx)))
        }
    }
}

impl fmt::Debug for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Before(_) => "Before",
            Self::After(_) => "After",
            Self::Around(_) => "Around",
        })
    }
}

impl fmt::Debug for Next {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Next").field("handler", &self.handler).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
