//! The examples that serve and speak dialects, and that keep data for each session, run as their
//! programs do.

#[path = "../../examples/sample_dialect/client.rs"]
mod client;
#[path = "../../examples/opentelemetry/observe.rs"]
mod opentelemetry_sample;
#[path = "../../examples/sample_dialect/server.rs"]
mod server;
#[path = "../../examples/session_data.rs"]
mod session_data;
#[path = "../../examples/tracing/observe.rs"]
mod tracing_sample;

use mcp_blocking::{ClientOptions, Policy, Router, ServerOptions, Service, connect_with, tool, tools};
use opentelemetry::Context;
use opentelemetry::trace::{Span as _, SpanKind, Status, TraceContextExt as _, Tracer as _, TracerProvider as _};
use opentelemetry_sample::OpenTelemetry;
use opentelemetry_sdk::metrics::{InMemoryMetricExporter, SdkMeterProvider};
use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider};
use session_data::{Entry, SessionData};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tracing::Subscriber;
use tracing::span::Attributes;
use tracing_subscriber::layer::{Context as LayerContext, SubscriberExt as _};
use tracing_subscriber::{Layer, Registry};

// covers: S3-27, S3-33, S4-03
#[test]
fn sample_dialect_is_served_and_spoken() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    std::thread::spawn(move || server::serve(&listener));
    let mut client = client::SampleClient::connect(&url).unwrap();
    assert_eq!(client.call("count", &[("to", 3)]).unwrap(), ["1", "2", "3"]);
    assert_eq!(client.call("nonsense", &[]).unwrap_err().to_string(), "there is no such tool");
    assert_eq!(client.call("count", &[("to", 12)]).unwrap().len(), 12);
}

// covers: META-B-020
#[test]
fn opentelemetry_has_one_trace_of_a_call_and_its_request() {
    let exporter = InMemorySpanExporter::default();
    let tracers = SdkTracerProvider::builder().with_simple_exporter(exporter.clone()).build();
    let metrics = InMemoryMetricExporter::default();
    let meters = SdkMeterProvider::builder().with_periodic_exporter(metrics.clone()).build();
    let observe = || OpenTelemetry::new(&tracers, &meters);
    let router = Router::new("s", "1").tool(tool("fails"), |_, ()| Err::<&str, _>("no".into()));
    let server = Service::from((router, ServerOptions::new().observe(observe())));
    let client = connect_with(server, ClientOptions::new().observe(observe())).unwrap();
    let of_test = tracers.tracer("test").start("begin");
    let root = of_test.span_context().clone();
    {
        let _current = Context::current_with_span(of_test).attach();
        client.call(tools::call("fails")).unwrap();
    }
    client.close();
    meters.force_flush().unwrap();

    let spans = exporter.get_finished_spans().unwrap();
    let of = |kind: SpanKind| spans.iter().find(|span| span.span_kind == kind).expect("a span");
    let (call, request) = (of(SpanKind::Client), of(SpanKind::Server));
    assert_eq!((&*call.name, &*request.name), ("tools/call fails", "tools/call fails"));
    assert_eq!(call.parent_span_id, root.span_id());
    assert_eq!(request.parent_span_id, call.span_context.span_id());
    for span in [call, request] {
        assert_eq!(span.span_context.trace_id(), root.trace_id());
        let value = |key: &str| {
            let attribute = span.attributes.iter().find(|attribute| attribute.key.as_str() == key);
            attribute.map(|attribute| attribute.value.to_string())
        };
        let keys = ["mcp.method.name", "gen_ai.tool.name", "error.type", "network.transport", "mcp.protocol.version"];
        let expected = ["tools/call", "fails", "tool_error", "pipe", "2026-07-28"];
        assert_eq!(keys.map(value), expected.map(|text| Some(text.to_owned())));
        assert!(matches!(span.status, Status::Error { .. }));
    }
    let exported = format!("{:?}", metrics.get_finished_metrics().unwrap());
    for name in ["mcp.client.operation.duration", "mcp.server.operation.duration"] {
        assert!(exported.contains(name), "{exported}");
    }
}

/// Counts the spans of the crate `tracing` that end.
struct Spans(Arc<Mutex<Vec<&'static str>>>);

impl<S: Subscriber> Layer<S> for Spans {
    fn on_new_span(&self, attributes: &Attributes<'_>, _: &tracing::Id, _: LayerContext<'_, S>) {
        self.0.lock().unwrap().push(attributes.metadata().name());
    }
}

#[test]
fn tracing_has_a_span_of_the_call_and_one_of_the_request() {
    let seen = Arc::default();
    tracing::subscriber::set_global_default(Registry::default().with(Spans(Arc::clone(&seen)))).unwrap();
    let router = Router::new("s", "1").tool(tool("tick"), |_, ()| Ok("tock"));
    let server = Service::from((router, ServerOptions::new().observe(tracing_sample::Tracing::default())));
    let client = connect_with(server, ClientOptions::new().observe(tracing_sample::Tracing::default())).unwrap();
    assert_eq!(client.call(tools::call("tick")).unwrap().first_text(), Some("tock"));
    client.close();
    assert_eq!(*seen.lock().unwrap(), ["call", "request"]);
}

/// Sends a request of HTTP, and returns what the server says up to this text.
fn ask(stream: &mut TcpStream, head: &str, body: &str, end: &str) -> String {
    write!(
        stream,
        "{head}\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut said = Vec::new();
    while !String::from_utf8_lossy(&said).contains(end) {
        let mut buffer = [0; 1 << 10];
        let n = stream.read(&mut buffer).unwrap();
        assert!(n > 0, "{}", String::from_utf8_lossy(&said));
        said.extend_from_slice(&buffer[..n]);
    }
    String::from_utf8(said).unwrap()
}

// covers: S3-34
#[test]
fn sample_dialect_resumes_after_an_event_by_its_number() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    std::thread::spawn(move || server::serve(&listener));
    let opening = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#;
    let opened = ask(&mut stream, "POST / HTTP/1.1", opening, "serverInfo");
    let session = opened.lines().find(|line| line.to_ascii_lowercase().starts_with("mcp-session-id:")).unwrap();
    let count = r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"count","arguments":{"to":12}}}"#;
    ask(&mut stream, &format!("POST / HTTP/1.1\r\n{session}"), count, "requestId");
    let resumed = ask(&mut stream, &format!("GET / HTTP/1.1\r\n{session}\r\nLast-Event-ID: 9"), "", "connected");
    let numbers: Vec<_> = resumed.lines().filter_map(|line| line.strip_prefix("id: ")).collect();
    assert!(numbers.starts_with(&["10", "11", "12", "13"]), "{resumed}");
}

// covers: S3-41
#[test]
fn each_session_has_its_own_data_until_it_ends() {
    let data = SessionData::default();
    let server = session_data::serve(&data, "127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", server.local_addr().unwrap());
    let connect = || {
        let options = ClientOptions::new().set(|config| config.policy = Policy::Legacy);
        connect_with(url.as_str(), options).unwrap()
    };
    let remember = |client: &mcp_blocking::Client, value: Option<&str>| {
        let entry = Entry { name: "color".into(), value: value.map(String::from) };
        let result = client.call(tools::call("remember").arguments(&entry)).unwrap();
        (result.is_error, result.first_text().unwrap().to_owned())
    };
    let (one, two) = (connect(), connect());
    assert_eq!(remember(&one, Some("red")), (false, "set".into()));
    assert_eq!(remember(&two, None), (true, "not set".into()));
    assert_eq!(remember(&two, Some("blue")), (false, "set".into()));
    assert_eq!(remember(&one, None), (false, "red".into()));
    assert_eq!(data.len(), 2);
    one.close();
    two.close();
    // Closing a client ends its session, with a DELETE.
    let over = std::time::Instant::now() + Duration::from_secs(30);
    while data.len() > 0 && std::time::Instant::now() < over {
        std::thread::yield_now();
    }
    assert_eq!(data.len(), 0, "nothing is left of an ended session");
    server.stop(Duration::ZERO);
}
