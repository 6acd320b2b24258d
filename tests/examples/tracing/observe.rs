//! Spans of the crate `tracing` for calls and requests.

use mcp_blocking::TraceContext;
use mcp_blocking::telemetry::{Observe, Side, SpanEnd, SpanStart};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use tracing::field::Empty;
use tracing::{Span, info_span};

/// Makes spans of what clients and servers do. That of a call is within the span of the function
/// that makes it.
#[derive(Default)]
pub(crate) struct Tracing {
    /// The spans that have not ended, by their numbers.
    open: Mutex<HashMap<usize, Span>>,
}

impl Observe for Tracing {
    fn began(&self, start: &SpanStart<'_>) -> Option<TraceContext> {
        let (name, trace) = (start.name(), start.trace.as_ref().map(TraceContext::traceparent));
        let (method, trace) = (start.method, trace.as_deref());
        let span = match start.side {
            Side::Client => info_span!("call", %name, method, trace, outcome = Empty, error = Empty),
            Side::Server => info_span!("request", %name, method, trace, outcome = Empty, error = Empty),
        };
        self.open.lock().unwrap_or_else(PoisonError::into_inner).insert(start.id, span);
        // `tracing` has no ids that another process knows: the context goes on as it is.
        None
    }

    fn ended(&self, end: &SpanEnd<'_>) {
        let span = self.open.lock().unwrap_or_else(PoisonError::into_inner).remove(&end.span.id);
        let Some(span) = span else { return };
        span.record("outcome", tracing::field::debug(&end.outcome));
        if let Some(error) = end.outcome.error_type() {
            span.record("error", &*error);
        }
    }
}
