#![forbid(unsafe_code)]
//! `cargo run --example opentelemetry PROGRAM ARGUMENTS…` serves standard input and output. Its
//! tool `relay` calls a tool of the server that the program is, so that the spans of both servers
//! and both clients form one trace. A line of standard error tells each span.

mod observe;

use mcp_blocking::{
    ClientOptions, Cx, Json, Program, Router, ServerOptions, ToolError, connect_with, serve_stdio, tool, tools,
};
use observe::OpenTelemetry;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::metrics::SdkMeterProvider;
use opentelemetry_sdk::trace::{SdkTracerProvider, SpanData, SpanExporter};
use std::env;
use std::process::ExitCode;

/// Tells each span in a line of standard error: its trace, its own id, that of its parent, its
/// name.
#[derive(Debug)]
struct Print;

impl SpanExporter for Print {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        for span in batch {
            let of = &span.span_context;
            eprintln!("span {} {} {} {}", of.trace_id(), of.span_id(), span.parent_span_id, span.name);
        }
        Ok(())
    }
}

#[derive(serde::Deserialize)]
struct Relay {
    name: String,
}

fn main() -> ExitCode {
    let mut arguments = env::args().skip(1);
    let Some(program) = arguments.next() else {
        eprintln!("usage: opentelemetry PROGRAM ARGUMENTS...");
        return ExitCode::from(2);
    };
    let tracers = SdkTracerProvider::builder().with_simple_exporter(Print).build();
    let meters = SdkMeterProvider::default();
    let observe = || OpenTelemetry::new(&tracers, &meters);
    let behind = connect_with(Program::new(program).args(arguments), ClientOptions::new().observe(observe()));
    let client = match behind {
        Ok(client) => client,
        Err(why) => {
            eprintln!("{why}");
            return ExitCode::FAILURE;
        }
    };
    let relay = client.clone();
    let router = Router::new("relay", "1").tool(tool("relay"), move |cx: &Cx, tool: Relay| {
        let mut call = tools::call(&tool.name);
        if let Some(trace) = cx.trace() {
            call = call.trace(&trace);
        }
        let result = relay.call(call).map_err(|why| ToolError::from(why.to_string()))?;
        Ok(Json(serde_json::json!({ "text": result.first_text() })))
    });
    let served = serve_stdio((router, ServerOptions::new().observe(observe())));
    client.close();
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}
