//! Telemetry: what an observer of a client and one of a server learn, in both adapters on each
//! side.

use mcp_driver::{ClientOptions, ServerOptions};
use mcp_proto::client::Policy;
use mcp_proto::telemetry::{Observe, Side, SpanEnd, SpanOutcome, SpanStart};
use mcp_proto::{
    CallError, Cx, ElicitResult, ErrorObject, Form, Object, ProtocolVersion, Router, TraceContext, custom, resource,
    resources, tool, tools,
};
use mcp_tests::adapters::{Adapter, Client, Server};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The longest wait for what has to come.
const SOON: Duration = Duration::from_secs(10);

/// Keeps what it learns, and gives each span a context of its own.
struct Tracer {
    ended: Sender<Ended>,
    open: Mutex<BTreeMap<usize, TraceContext>>,
    next: AtomicU8,
}

/// A span that has ended.
#[derive(Clone, PartialEq, Debug)]
struct Ended {
    side: Side,
    name: String,
    outcome: SpanOutcome,
    revision: Option<ProtocolVersion>,
    /// Its own context, and that of its parent.
    trace: TraceContext,
    parent: Option<TraceContext>,
    has_request: bool,
    bytes: (usize, usize),
}

fn tracer(first: u8) -> (Tracer, Receiver<Ended>) {
    let (ended, of_test) = channel();
    (Tracer { ended, open: Mutex::default(), next: AtomicU8::new(first) }, of_test)
}

impl Observe for Tracer {
    fn began(&self, span: &SpanStart<'_>) -> Option<TraceContext> {
        let id = [self.next.fetch_add(1, Ordering::Relaxed); 8];
        let own = match &span.trace {
            Some(parent) => parent.child(id),
            None => TraceContext::new([1; 16], id, true),
        };
        let own = own.expect("no id is zero");
        let before = self.open.lock().unwrap().insert(span.id, own.clone());
        assert_eq!(before, None, "each number is used once");
        Some(own)
    }

    fn ended(&self, end: &SpanEnd<'_>) {
        let trace = self.open.lock().unwrap().remove(&end.span.id).expect("it has begun");
        assert!(end.duration < SOON);
        let ended = Ended {
            side: end.span.side,
            name: end.span.name().into_owned(),
            outcome: end.outcome,
            revision: end.revision,
            trace,
            parent: end.span.trace.clone(),
            has_request: end.span.request.is_some(),
            bytes: (end.span.bytes, end.bytes),
        };
        // After the end of the test nothing receives it.
        let _ = self.ended.send(ended);
    }
}

fn serve(adapter: Adapter, router: Router, observe: impl Observe + 'static) -> Server {
    let service = (router, ServerOptions::new().observe(observe));
    adapter.serve_http(service, "127.0.0.1:0").expect("it listens")
}

fn connect(adapter: Adapter, server: &Server, policy: Policy, observe: impl Observe + 'static) -> Client {
    let options = ClientOptions::new().set(move |config| config.policy = policy).observe(observe);
    adapter.connect(&*format!("http://{}/mcp", server.address()), options).expect("it connects")
}

fn sides() -> impl Iterator<Item = (Adapter, Adapter, Policy)> {
    let pairs = Adapter::ALL.into_iter().flat_map(|server| Adapter::ALL.map(|client| (server, client)));
    pairs.flat_map(|(server, client)| [Policy::Modern, Policy::Legacy].map(|policy| (server, client, policy)))
}

// covers: META-B-020
#[test]
fn spans_of_a_call_its_request_and_its_handler_form_one_trace() {
    for (of_server, of_client, policy) in sides() {
        let in_handler = Arc::new(Mutex::new(None));
        let seen = Arc::clone(&in_handler);
        let router = Router::new("s", "1").tool(tool("t"), move |cx: &Cx, ()| {
            *seen.lock().unwrap() = cx.trace();
            Ok("done")
        });
        let ((at_server, requests), (at_client, calls)) = (tracer(0x10), tracer(0x20));
        let server = serve(of_server, router, at_server);
        let client = connect(of_client, &server, policy, at_client);
        let parent = TraceContext::new([7; 16], [9; 8], true).expect("ids").with_baggage("user=x");
        client.call(tools::call("t").trace(&parent)).expect("a result");

        let (call, request) = (calls.recv_timeout(SOON).unwrap(), requests.recv_timeout(SOON).unwrap());
        assert_eq!((&*call.name, &*request.name), ("tools/call t", "tools/call t"));
        assert_eq!((call.side, request.side), (Side::Client, Side::Server));
        assert_eq!((call.outcome, request.outcome), (SpanOutcome::Complete, SpanOutcome::Complete));
        assert_eq!(call.revision, request.revision, "{policy:?}");
        assert_eq!((call.has_request, request.has_request), (false, true));
        assert!(call.bytes.0 > 0 && call.bytes.1 > 0 && request.bytes.1 > call.bytes.1, "{call:?} {request:?}");
        // Each is the parent of the next, in one trace.
        assert_eq!(call.parent.as_ref(), Some(&parent));
        assert_eq!(request.parent.as_ref(), Some(&call.trace));
        assert_eq!(in_handler.lock().unwrap().as_ref(), Some(&request.trace));
        assert_eq!(request.trace.trace_id(), [7; 16]);
        assert_eq!(request.trace.baggage(), Some("user=x"));
        client.close().expect("in order");
        server.stop(Duration::ZERO);
    }
}

#[test]
fn every_call_and_every_routed_request_ends_once() {
    for (of_server, of_client, policy) in sides() {
        let (began, begins) = channel();
        let router = Router::new("s", "1")
            .tool(tool("fails"), |_, ()| Err::<&str, _>("no".into()))
            .tool(tool("panics"), |_, ()| -> Result<&str, _> { panic!("on purpose") })
            .tool(tool("waits"), move |cx: &Cx, ()| {
                began.send(()).unwrap();
                while !cx.is_cancelled() {
                    std::thread::yield_now();
                }
                Ok("late")
            })
            .resource(resource("a://b"), |_| Ok("text"))
            .method("acme/refuse", |_, ()| Err::<(), _>(ErrorObject::new(-31_000, "refused").into()));
        let ((at_server, requests), (at_client, calls)) = (tracer(0x10), tracer(0x20));
        let server = serve(of_server, router, at_server);
        let client = connect(of_client, &server, policy, at_client);
        let both = |name: &str, at_client: SpanOutcome, at_server: SpanOutcome| {
            for (ended, expected) in [(&calls, at_client), (&requests, at_server)] {
                let span = ended.recv_timeout(SOON).unwrap_or_else(|_| panic!("{name}: no end, {policy:?}"));
                assert_eq!((&*span.name, span.outcome), (name, expected), "{policy:?} {:?}", span.side);
            }
        };
        let same = |name: &str, outcome| both(name, outcome, outcome);

        drop(client.call(tools::call("fails")).expect("a result"));
        same("tools/call fails", SpanOutcome::ToolError);
        client.call(tools::call("panics")).expect_err("an error");
        same("tools/call panics", SpanOutcome::Rpc(-32603));
        client.call(tools::call("unknown")).expect_err("an error");
        same("tools/call unknown", SpanOutcome::Rpc(-32602));
        let waited = client.call(tools::call("waits").timeout(Duration::from_millis(500)));
        assert!(matches!(waited, Err(CallError::Timeout { .. })), "{waited:?}");
        both("tools/call waits", SpanOutcome::Timeout, SpanOutcome::Cancelled);
        begins.recv_timeout(SOON).expect("it has begun");
        client.call(resources::read("a://b")).expect("a result");
        same("resources/read", SpanOutcome::Complete);
        client.call(custom::<()>("acme/refuse", &Object::new())).expect_err("an error");
        same("acme/refuse", SpanOutcome::Rpc(-31_000));
        client.call(tools::list()).expect("a list");
        same("tools/list", SpanOutcome::Complete);

        // A pending call ends with its client, whose handler is cancelled.
        let pending = client.start(tools::call("waits").timeout(None));
        begins.recv_timeout(SOON).expect("it has begun");
        client.close().expect("in order");
        drop(pending);
        let end = calls.recv_timeout(SOON).expect("an end");
        assert!(matches!(end.outcome, SpanOutcome::Lost | SpanOutcome::Cancelled), "{end:?}");
        assert_eq!(requests.recv_timeout(SOON).expect("an end").outcome, SpanOutcome::Cancelled);
        server.stop(Duration::ZERO);
        assert_eq!((calls.try_recv().ok(), requests.try_recv().ok()), (None, None), "{of_server:?} {of_client:?}");
    }
}

/// On 2025-11-25 the handler runs again, for a request that its client makes once.
#[test]
fn each_round_of_a_request_is_a_span() {
    for (of_server, of_client, policy) in sides() {
        let router = Router::new("s", "1").tool(tool("asks"), |cx: &Cx, ()| {
            cx.elicit("who", Form::new("who?"))?;
            Ok("done")
        });
        let ((at_server, requests), (at_client, calls)) = (tracer(0x10), tracer(0x20));
        let server = serve(of_server, router, at_server);
        let options = ClientOptions::new()
            .set(move |config| config.policy = policy)
            .observe(at_client)
            .on_elicit(|_| ElicitResult::Decline);
        let client = of_client.connect(&*format!("http://{}/mcp", server.address()), options).expect("it connects");
        client.call(tools::call("asks")).expect("a result");
        let rounds = [(); 2].map(|()| requests.recv_timeout(SOON).expect("an end"));
        let outcomes = [SpanOutcome::InputRequired, SpanOutcome::Complete];
        assert_eq!(rounds.each_ref().map(|span| span.outcome), outcomes);
        let call = calls.recv_timeout(SOON).expect("an end");
        assert_eq!(rounds.map(|span| span.parent), [(); 2].map(|()| Some(call.trace.clone())), "{policy:?}");
        client.close().expect("in order");
        server.stop(Duration::ZERO);
    }
}

/// Uses its own client, which it could not under the lock of that.
struct Reentrant(Arc<Mutex<Option<Arc<Client>>>>, Sender<usize>);

impl Observe for Reentrant {
    fn began(&self, _: &SpanStart<'_>) -> Option<TraceContext> {
        self.look();
        panic!("on purpose");
    }

    fn ended(&self, _: &SpanEnd<'_>) {
        self.look();
        panic!("on purpose");
    }
}

impl Reentrant {
    fn look(&self) {
        let client = self.0.lock().unwrap();
        self.1.send(client.as_ref().map_or(0, |client| client.stats().calls)).unwrap();
    }
}

#[test]
fn observers_run_outside_of_every_lock_and_may_panic() {
    for (of_server, of_client, policy) in sides() {
        let router = Router::new("s", "1").tool(tool("t"), |_, ()| Ok("done"));
        let (seen, looks) = channel();
        let (of_observer, at_server) = (Arc::default(), Reentrant(Arc::default(), seen.clone()));
        let server = serve(of_server, router, at_server);
        let client = Arc::new(connect(of_client, &server, policy, Reentrant(Arc::clone(&of_observer), seen)));
        *of_observer.lock().unwrap() = Some(Arc::clone(&client));
        assert_eq!(client.call(tools::call("t")).expect("a result").first_text(), Some("done"));
        // Both began; neither span exists, since the beginning panicked.
        assert_eq!([(); 2].map(|()| looks.recv_timeout(SOON).ok().map(|calls| calls < 2)), [Some(true); 2]);
        drop(of_observer.lock().unwrap().take());
        Arc::into_inner(client).expect("the only one").close().expect("in order");
        server.stop(Duration::ZERO);
        assert_eq!(looks.try_iter().count(), 0);
    }
}
