//! A request or an admission of a server on its way to a callback of the application.

use super::job::{Cancel, Failure, Job, JobKind, JobWatch, Promise, Recipient, ServerLink};
use super::options::{Block, ServerOptions};
use super::os::Clock;
use super::shared_router::SharedRouter;
use super::sync::guarded;
use alloc::boxed::Box;
use alloc::sync::Arc;
use core::fmt;
use mcp_proto::error::Refusal;
use mcp_proto::exchange::RequestHead;
use mcp_proto::input::{Admission, AdmitToken, Answer, Note, Outcome, RequestKey, ServerCommand};
use mcp_proto::route::{BadReplacement, BlockingCall, BoxFuture, Cx, Handler, Port, RouteResult, Router};
use mcp_proto::server::{IncomingRequest, Responder};
use mcp_proto::span::Span;

/// A request, or an admission, that is to be routed. Dropping it answers with an error.
#[must_use = "dropping it answers with an error"]
pub struct Work(WorkKind);

#[expect(clippy::large_enum_variant, reason = "most are requests; a box would be one allocation more for each")]
enum WorkKind {
    Request(Promise<Responder>, IncomingRequest),
    Admission(Promise<AdmitToken>, Option<Arc<RequestHead>>),
}

impl Work {
    pub(super) fn request(
        link: &ServerLink,
        responder: Responder,
        incoming: IncomingRequest,
        cancel: Arc<Cancel>,
    ) -> Self {
        Self(WorkKind::Request(Promise::new(responder, Arc::clone(link), cancel), incoming))
    }

    pub(super) fn admission(
        link: &ServerLink,
        token: AdmitToken,
        head: Option<Arc<RequestHead>>,
        cancel: Arc<Cancel>,
    ) -> Self {
        Self(WorkKind::Admission(Promise::new(token, Arc::clone(link), cancel), head))
    }

    /// Returns whether [`route`](Self::route) may take longer than about half a millisecond: see
    /// [`Responder::takes_long`].
    pub fn takes_long(&self) -> bool {
        match &self.0 {
            WorkKind::Request(promise, _) => promise.takes_long(),
            WorkKind::Admission(..) => false,
        }
    }

    /// Returns what tells whether its result is still wanted.
    pub fn watch(&self) -> JobWatch {
        match &self.0 {
            WorkKind::Request(promise, _) => JobWatch::new(promise),
            WorkKind::Admission(promise, _) => JobWatch::new(promise),
        }
    }

    /// Returns the callback to run. `None` if the router has the answer, or the callback has run
    /// inline. This reads and writes JSON, and may run code of the application: see
    /// [locks](super#locks). An admission without a callback is refused.
    pub fn route(self, router: &SharedRouter, options: &ServerOptions) -> Option<Job> {
        match self.0 {
            WorkKind::Request(promise, incoming) => handle(promise, incoming, router, options.block),
            WorkKind::Admission(promise, head) => options.admit(promise, head),
        }
    }
}

fn handle(
    promise: Promise<Responder>,
    mut incoming: IncomingRequest,
    router: &SharedRouter,
    block: Block,
) -> Option<Job> {
    let (responder, link, cancel) = promise.into_parts()?;
    let span = RequestSpan::begin(&responder, &mut incoming, &cancel);
    match router.get().route(responder, incoming) {
        RouteResult::Answer(answer) => {
            RequestSpan::end(span, &answer);
            // The engine ignores the answer to a cancelled request, and refuses none.
            let _ = link(ServerCommand::Respond(answer));
            None
        }
        RouteResult::Handle { handler, invocation, responder } => {
            let (key, router) = (responder.key(), router.clone());
            let port = RequestPort { key, link: Arc::clone(&link), cancel: Arc::clone(&cancel), router, block };
            let running = RoutedRequest { responder, span };
            let (cx, promise) = (Cx::new(invocation, Arc::new(port)), Promise::new(running, link, cancel));
            match handler {
                Handler::Sync(f) => Some(Job::sync(promise, move || f(&cx))),
                Handler::Inline(f) => {
                    promise.run(|| f(&cx));
                    None
                }
                Handler::Async(f) => Job::future(promise, || f(cx)),
            }
        }
    }
}

/// A request before it is routed.
impl Recipient for Responder {
    type Value = Outcome;
    type Command = ServerCommand;

    fn command(self, result: Result<Outcome, Failure>) -> ServerCommand {
        ServerCommand::Respond(answer(self, result))
    }

    fn kind(&self) -> JobKind {
        JobKind::Handler(self.client())
    }

    fn takes_long(&self) -> bool {
        self.takes_long()
    }
}

/// A request whose handler runs.
struct RoutedRequest {
    responder: Responder,
    span: Option<Box<RequestSpan>>,
}

impl Recipient for RoutedRequest {
    type Value = Outcome;
    type Command = ServerCommand;

    fn command(self, result: Result<Outcome, Failure>) -> ServerCommand {
        let answer = answer(self.responder, result);
        RequestSpan::end(self.span, &answer);
        ServerCommand::Respond(answer)
    }

    fn kind(&self) -> JobKind {
        self.responder.kind()
    }

    fn takes_long(&self) -> bool {
        self.responder.takes_long()
    }
}

fn answer(responder: Responder, result: Result<Outcome, Failure>) -> Answer {
    responder.write(result.unwrap_or_else(|why| Outcome::internal(&why.message("handler"))))
}

/// A request that the telemetry follows. No lock is held where it begins and ends.
struct RequestSpan {
    span: Span,
    clock: Clock,
    cancel: Arc<Cancel>,
}

impl RequestSpan {
    fn begin(responder: &Responder, incoming: &mut IncomingRequest, cancel: &Arc<Cancel>) -> Option<Box<Self>> {
        let telemetry = responder.config().observe.as_ref()?;
        let clock = Clock::start();
        let span = guarded(|| Span::of_request(telemetry, responder, incoming, clock.now()))?;
        Some(Box::new(Self { span, clock, cancel: Arc::clone(cancel) }))
    }

    fn end(this: Option<Box<Self>>, answer: &Answer) {
        if let Some(this) = this {
            let Self { span, clock, cancel } = *this;
            let ended = span.end_request(answer, cancel.is_set(), clock.now());
            let _ = guarded(|| ended.report());
        }
    }
}

impl Recipient for AdmitToken {
    type Value = Admission;
    type Command = ServerCommand;

    fn command(self, result: Result<Admission, Failure>) -> ServerCommand {
        ServerCommand::Admit(self.key(), result.unwrap_or(Admission::Forbidden(None)))
    }

    fn kind(&self) -> JobKind {
        JobKind::Admission
    }
}

/// The connection of a handler's [`Cx`] to its request.
struct RequestPort {
    key: RequestKey,
    link: ServerLink,
    cancel: Arc<Cancel>,
    router: SharedRouter,
    block: Block,
}

impl Port for RequestPort {
    fn note(&self, note: Note) -> Result<(), Refusal> {
        if self.cancel.is_set() {
            return Err(Refusal::Gone);
        }
        (self.link)(ServerCommand::Notify(self.key, note))
    }

    fn command(&self, command: ServerCommand) {
        // Only a server that no longer exists refuses it.
        let _ = (self.link)(command);
    }

    fn update(&self, change: &mut dyn FnMut(Router) -> Router) -> Result<(), BadReplacement> {
        let changes = self.router.update(change)?.into_iter();
        changes.for_each(|change| self.command(ServerCommand::Publish(change)));
        Ok(())
    }

    fn block(&self, run: BlockingCall) -> BoxFuture<Outcome> {
        (self.block)(run)
    }

    fn is_cancelled(&self) -> bool {
        self.cancel.is_set()
    }
}

impl fmt::Debug for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            WorkKind::Request(..) => "Work::Request",
            WorkKind::Admission(..) => "Work::Admission",
        })
    }
}
