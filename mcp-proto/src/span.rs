//! The span of a call or a request: what begins and ends the calls of an [`Observe`]. A driver uses
//! it, and a program that drives an engine itself.
//!
//! [`Observe`]: crate::telemetry::Observe

use crate::call::{RawCall, RawResult};
use crate::client::Target;
use crate::error::CallError;
use crate::exchange::PeerKind;
use crate::input::{Answer, RequestAnswer};
use crate::model::lifecycle::meta::META;
use crate::rpc::{Id, Object};
use crate::server::{Context, IncomingRequest, Responder};
use crate::telemetry::{Side, SpanEnd, SpanOutcome, SpanStart, Telemetry, Transport};
use crate::time::Instant;
use crate::trace_context::TraceContext;
use crate::version::ProtocolVersion;
use alloc::borrow::Cow;
use core::fmt;
use core::time::Duration;

/// A call or a request that an [`Observe`](crate::telemetry::Observe) follows, from its beginning
/// to its end.
#[must_use = "the observer expects an end"]
pub struct Span {
    telemetry: Telemetry,
    id: usize,
    side: Side,
    method: Cow<'static, str>,
    /// They contain the target.
    params: Object,
    revision: Option<ProtocolVersion>,
    transport: Transport,
    request: Option<Id>,
    trace: Option<TraceContext>,
    began_at: Instant,
}

/// A span with its end, which its observer has to learn.
#[must_use = "the observer expects an end"]
pub struct EndedSpan {
    span: Span,
    revision: Option<ProtocolVersion>,
    duration: Duration,
    outcome: SpanOutcome,
    bytes: usize,
}

impl Span {
    /// Begins a call of the client of this target, before the engine gets it.
    pub fn of_call(telemetry: &Telemetry, call: &mut RawCall, target: &Target, now: Instant) -> Self {
        let params = call.params.clone().unwrap_or_default();
        let span = Self {
            telemetry: telemetry.clone(),
            id: telemetry.number(),
            side: Side::Client,
            method: call.method.clone(),
            trace: params.optional_object(META).ok().flatten().and_then(|meta| TraceContext::read(&meta)),
            params,
            revision: None,
            transport: transport_to(target),
            request: None,
            began_at: now,
        };
        if let Some(trace) = telemetry.observer().began(&span.start()) {
            call.set_trace(&trace);
        }
        span
    }

    /// Begins a request, before a router routes it.
    pub fn of_request(
        telemetry: &Telemetry,
        responder: &Responder,
        incoming: &mut IncomingRequest,
        now: Instant,
    ) -> Self {
        let context = &incoming.context;
        let span = Self {
            telemetry: telemetry.clone(),
            id: telemetry.number(),
            side: Side::Server,
            method: incoming.method.clone(),
            params: incoming.params.clone(),
            revision: Some(context.version),
            transport: transport_of(context),
            request: Some(responder.id().clone()),
            trace: TraceContext::read(&incoming.meta),
            began_at: now,
        };
        if let Some(trace) = telemetry.observer().began(&span.start()) {
            trace.write(&mut incoming.meta);
        }
        span
    }

    /// Ends a call. `revision` is what the client has negotiated, if it has.
    pub fn end_call(
        self,
        outcome: &Result<RawResult, CallError>,
        revision: Option<ProtocolVersion>,
        now: Instant,
    ) -> EndedSpan {
        let bytes = outcome.as_ref().map_or(0, |result| result.json.as_str().len());
        let outcome = match outcome {
            Ok(result) if self.method == "tools/call" && is_error(result) => SpanOutcome::ToolError,
            Ok(_) => SpanOutcome::Complete,
            Err(error) => error.into(),
        };
        self.end(outcome, bytes, revision, now)
    }

    /// Ends a request with this answer. `is_cancelled`: nothing waits for it any more.
    pub fn end_request(self, answer: &Answer, is_cancelled: bool, now: Instant) -> EndedSpan {
        let (outcome, bytes) = match &answer.what {
            RequestAnswer::Message { bytes, outcome, .. } => (*outcome, bytes.len()),
            RequestAnswer::Denied { bytes, code, .. } => (SpanOutcome::Rpc(*code), bytes.len()),
            RequestAnswer::Listen(_) => (SpanOutcome::Complete, 0),
            RequestAnswer::Ask { .. } => (SpanOutcome::InputRequired, 0),
        };
        let revision = self.revision;
        self.end(if is_cancelled { SpanOutcome::Cancelled } else { outcome }, bytes, revision, now)
    }

    fn end(self, outcome: SpanOutcome, bytes: usize, revision: Option<ProtocolVersion>, now: Instant) -> EndedSpan {
        let duration = now - self.began_at;
        EndedSpan { span: self, revision, duration, outcome, bytes }
    }

    fn start(&self) -> SpanStart<'_> {
        let key = match &*self.method {
            "tools/call" | "prompts/get" => Some("name"),
            "resources/read" => Some("uri"),
            _ => None,
        };
        SpanStart {
            id: self.id,
            side: self.side,
            method: &self.method,
            target: key.and_then(|key| self.params.str(key)),
            revision: self.revision,
            transport: self.transport,
            request: self.request.as_ref(),
            trace: self.trace.clone(),
            bytes: self.params.slices().map(|(key, value)| key.len() + value.len()).sum(),
        }
    }
}

impl EndedSpan {
    /// Calls the observer. Hold no lock that it, or another thread that calls it, may need.
    pub fn report(self) {
        let Self { span, revision, duration, outcome, bytes } = self;
        span.telemetry.observer().ended(&SpanEnd { span: span.start(), revision, duration, outcome, bytes });
    }
}

/// Never shows the params.
impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, side, method, .. } = self;
        f.debug_struct("Span").field("id", id).field("side", side).field("method", method).finish_non_exhaustive()
    }
}

impl fmt::Debug for EndedSpan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { span, duration, outcome, .. } = self;
        let mut out = f.debug_struct("EndedSpan");
        out.field("span", span).field("duration", duration).field("outcome", outcome).finish_non_exhaustive()
    }
}

/// Returns how the messages of a request travel.
fn transport_of(context: &Context) -> Transport {
    match (&context.http, context.peer.kind) {
        (Some(_), _) => Transport::Http,
        // No server takes lines over TCP.
        (None, PeerKind::Tcp) => Transport::WebSocket,
        (None, _) => Transport::Lines,
    }
}

fn transport_to(target: &Target) -> Transport {
    match target {
        Target::Duplex(_) | Target::NoServer => Transport::Lines,
        Target::Http(_) => Transport::Http,
        Target::Ws(_) => Transport::WebSocket,
    }
}

fn is_error(result: &RawResult) -> bool {
    Object::read(&result.json).is_ok_and(|result| result.get("isError").is_some_and(|is_error| is_error == true.into()))
}
