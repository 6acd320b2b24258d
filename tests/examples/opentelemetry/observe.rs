//! Spans and metrics of OpenTelemetry for calls and requests, by the semantic conventions for MCP
//! of its GenAI group.

use mcp_blocking::TraceContext;
use mcp_blocking::telemetry::{Observe, Side, SpanEnd, SpanOutcome, SpanStart, Transport};
use opentelemetry::metrics::{Histogram, Meter, MeterProvider as _};
use opentelemetry::trace::{
    Span as _, SpanBuilder, SpanContext, SpanId, SpanKind, Status, TraceContextExt as _, TraceFlags, TraceId,
    TraceState, Tracer as _, TracerProvider as _,
};
use opentelemetry::{Context, KeyValue, Value};
use opentelemetry_sdk::metrics::SdkMeterProvider;
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider, Span};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// Makes spans and metrics of what clients and servers do. One value can serve all of a process.
pub(crate) struct OpenTelemetry {
    tracer: SdkTracer,
    client_duration: Histogram<f64>,
    server_duration: Histogram<f64>,
    /// The spans that have not ended, by their numbers.
    open: Mutex<HashMap<usize, Span>>,
}

/// The bounds of the durations, in seconds, that the conventions ask for.
const SECONDS: [f64; 14] = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0];

impl OpenTelemetry {
    pub(crate) fn new(tracers: &SdkTracerProvider, meters: &SdkMeterProvider) -> Self {
        let meter: Meter = meters.meter("mcp");
        let duration =
            |name: &'static str| meter.f64_histogram(name).with_unit("s").with_boundaries(SECONDS.to_vec()).build();
        Self {
            tracer: tracers.tracer("mcp"),
            client_duration: duration("mcp.client.operation.duration"),
            server_duration: duration("mcp.server.operation.duration"),
            open: Mutex::default(),
        }
    }
}

impl Observe for OpenTelemetry {
    fn began(&self, start: &SpanStart<'_>) -> Option<TraceContext> {
        let parent = match &start.trace {
            Some(trace) => Context::new().with_remote_span_context(remote(trace)),
            // The span of the function that makes the call, if it has one.
            None => Context::current(),
        };
        let kind = match start.side {
            Side::Client => SpanKind::Client,
            Side::Server => SpanKind::Server,
        };
        let builder = SpanBuilder::from_name(start.name().into_owned()).with_kind(kind).with_attributes(of_span(start));
        let span = self.tracer.build_with_context(builder, &parent);
        let of = span.span_context();
        let context = TraceContext::new(of.trace_id().to_bytes(), of.span_id().to_bytes(), of.is_sampled());
        self.open.lock().unwrap_or_else(PoisonError::into_inner).insert(start.id, span);
        // What else the sender has put into the context goes on as it is.
        context.map(|context| match &start.trace {
            None => context,
            Some(trace) => {
                context.with_state(trace.state().unwrap_or_default()).with_baggage(trace.baggage().unwrap_or_default())
            }
        })
    }

    fn ended(&self, end: &SpanEnd<'_>) {
        let mut attributes = of_metric(end);
        let duration = match end.span.side {
            Side::Client => &self.client_duration,
            Side::Server => &self.server_duration,
        };
        duration.record(end.duration.as_secs_f64(), &attributes);
        let span = self.open.lock().unwrap_or_else(PoisonError::into_inner).remove(&end.span.id);
        let Some(mut span) = span else { return };
        if let Some(error) = end.outcome.error_type() {
            span.set_status(Status::error(error));
        }
        attributes.retain(|of| matches!(of.key.as_str(), ERROR_TYPE | RPC_STATUS | VERSION));
        span.set_attributes(attributes);
        span.end();
    }
}

const METHOD: &str = "mcp.method.name";
const VERSION: &str = "mcp.protocol.version";
const ERROR_TYPE: &str = "error.type";
const RPC_STATUS: &str = "rpc.response.status_code";

fn remote(trace: &TraceContext) -> SpanContext {
    let flags = if trace.is_sampled() { TraceFlags::SAMPLED } else { TraceFlags::default() };
    let (trace_id, span_id) = (TraceId::from_bytes(trace.trace_id()), SpanId::from_bytes(trace.parent_id()));
    let state: TraceState = trace.state().and_then(|state| state.parse().ok()).unwrap_or_default();
    SpanContext::new(trace_id, span_id, flags, true, state)
}

/// What is known at the beginning.
fn of_span(start: &SpanStart<'_>) -> Vec<KeyValue> {
    let mut attributes = vec![KeyValue::new(METHOD, start.method.to_owned())];
    attributes.extend(target(start));
    let network = match start.transport {
        Transport::Lines => "pipe",
        _ => "tcp",
    };
    attributes.push(KeyValue::new("network.transport", network));
    if let Some(id) = start.request {
        attributes.push(KeyValue::new("jsonrpc.request.id", id.to_string()));
    }
    if let ("resources/read", Some(uri)) = (start.method, &start.target) {
        attributes.push(KeyValue::new("mcp.resource.uri", uri.clone().into_owned()));
    }
    attributes
}

/// The tool or the prompt. The URI of a resource has too many values for a metric.
fn target(start: &SpanStart<'_>) -> Vec<KeyValue> {
    let Some(name) = &start.target else { return Vec::new() };
    let named = |key: &'static str| KeyValue::new(key, Value::from(name.clone().into_owned()));
    match start.method {
        "tools/call" => vec![KeyValue::new("gen_ai.operation.name", "execute_tool"), named("gen_ai.tool.name")],
        "prompts/get" => vec![named("gen_ai.prompt.name")],
        _ => Vec::new(),
    }
}

fn of_metric(end: &SpanEnd<'_>) -> Vec<KeyValue> {
    let mut attributes = vec![KeyValue::new(METHOD, end.span.method.to_owned())];
    // A server counts the names that clients choose, unless no tool has the name.
    if end.outcome != SpanOutcome::Rpc(-32602) {
        attributes.extend(target(&end.span));
    }
    if let Some(revision) = end.revision {
        attributes.push(KeyValue::new(VERSION, revision.as_str()));
    }
    if let Some(error) = end.outcome.error_type() {
        attributes.push(KeyValue::new(ERROR_TYPE, error));
    }
    if let SpanOutcome::Rpc(code) = end.outcome {
        attributes.push(KeyValue::new(RPC_STATUS, code.to_string()));
    }
    attributes
}
