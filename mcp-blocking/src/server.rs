//! Serving a [`Router`]: handlers as functions, and the pairs of streams they are reached by.

use crate::events::Told;
use crate::os::TakenStdio;
use crate::service::Service;
use crate::sync::wait;
use mcp_proto::exchange::Peer;
use mcp_proto::route::FromFn;
use mcp_proto::server::Event;
use mcp_proto::wired::Kind;
use mcp_proto::{Cx, Denied, IntoOutput, MessageHook, Outcome, WireMessage};
use serde::de::DeserializeOwned;
use std::fmt;
use std::io::{self, Read, Write};
use std::sync::Arc;

/// What a server offers. A handler is a function of a [`Cx`] and of its arguments: `|cx, a: Add| …`.
pub type Router = mcp_proto::Router<Handler>;

/// A function that serves a request. Several run at once, each on a thread. One that panics is answered with an error.
#[derive(Clone)]
pub struct Handler(pub(crate) Arc<dyn Fn(Cx) -> Outcome + Send + Sync>);

impl Handler {
    /// A handler that reads its arguments and makes its outcome itself.
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

/// How a server runs, beside what [`Router::configure`](mcp_proto::Router::configure) says.
#[must_use]
pub struct Serving {
    pub(crate) threads: usize,
    pub(crate) event: Option<Arc<Told<Event>>>,
    pub(crate) message: Option<MessageHook>,
}

impl Default for Serving {
    fn default() -> Self {
        Self { threads: 64, event: None, message: None }
    }
}

impl Serving {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// How many handlers run at once. The requests beyond it wait, as many as the limits of the engine let in. Default 64.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    /// Hands notifications and diagnostics to this function, one at a time and in order. By default they are dropped.
    pub fn on_event(mut self, told: impl Fn(Event) + Send + Sync + 'static) -> Self {
        self.event = Some(Arc::new(told));
        self
    }

    /// Asks this function about every message, in and out, before it is acted upon or written; it may refuse. See [`MessageHook`]. It runs
    /// on the threads of the connections, several at once, and holds up the connection that it is asked for.
    pub fn on_message(mut self, ask: impl Fn(&WireMessage<'_>) -> Result<(), Denied> + Send + Sync + 'static) -> Self {
        self.message = Some(MessageHook::new(ask));
        self
    }
}

impl fmt::Debug for Serving {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Serving").field("threads", &self.threads).finish_non_exhaustive()
    }
}

/// Serves the client at the other end of standard input and output, until the end of input and of what was begun before it.
///
/// While this runs, the two streams belong to it: whatever else reads standard input finds its end, and what is printed goes to standard
/// error.
///
/// # Errors
/// What the operating system says when the streams cannot be taken, or no thread be started.
pub fn serve_stdio(router: Router) -> io::Result<()> {
    serve_stdio_with(router, Serving::new())
}

/// As [`serve_stdio`], with options.
///
/// # Errors
/// As [`serve_stdio`].
pub fn serve_stdio_with(router: Router, serving: Serving) -> io::Result<()> {
    let taken = TakenStdio::take()?;
    let (reader, writer) = taken.streams()?;
    serve_with(router, serving, reader, writer)
}

/// Serves the client at the other end of a pair of streams, until the end of input and of what was begun before it.
///
/// # Errors
/// What the operating system says when no thread can be started.
pub fn serve(
    router: Router,
    reader: impl Read + Send + 'static,
    writer: impl Write + Send + 'static,
) -> io::Result<()> {
    serve_with(router, Serving::new(), reader, writer)
}

/// As [`serve`], with options.
///
/// # Errors
/// As [`serve`].
pub fn serve_with(
    router: Router,
    serving: Serving,
    reader: impl Read + Send + 'static,
    writer: impl Write + Send + 'static,
) -> io::Result<()> {
    let service = Service::start(router, serving)?;
    let joined = service.join(Kind::Lines, Peer::default(), None, Box::new(reader), Box::new(writer));
    let mut desk = service.lock();
    while joined.is_ok() && !desk.connections.is_empty() {
        desk = wait(&service.changed, desk, None);
    }
    drop(desk);
    service.end();
    joined
}
