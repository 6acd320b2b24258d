//! Bring your own HTTP: the engine of a client on top of `ureq`, which has its own connections, its
//! own framing and its own pool. Real sockets, real time, and no connection in between.
//!
//! A user of any such library writes the first half. `exchange` in the documentation of `mcp-proto`
//! explains it.

use bytes::Bytes;
use mcp_blocking::{Router, serve_http, tool};
use mcp_proto::call::{IntoCall, RawResult};
use mcp_proto::client::{Client, ClientCommands, ClientConfig, Event, Output, Termination};
use mcp_proto::error::{NegotiationCause, NegotiationError, Stage};
use mcp_proto::exchange::{
    Closed, ExchangeEvent, ExchangeId, Headers, Inbound, Origin, RequestHead, ResponseHead, Sent, Start,
};
use mcp_proto::input::CallId;
use mcp_proto::input::Change;
use mcp_proto::rpc::Object;
use mcp_proto::{CallError, CallToolResult, ElicitResult, Form, InputAnswer, Instant, Progress, frame, tools};
use mcp_tests::stub::{Ask, Step, Stub, good_legacy, say, whole};
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Read};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::Duration;
use ureq::Agent;
use ureq::http::Request;

/// The maximum time of a wait for a condition.
const BOUND: Duration = Duration::from_secs(20);

// ---- The results of a request, from its thread. ----

enum Part {
    Head(ResponseHead),
    Bytes(Bytes),
    End,
    Failed(Sent, Closed),
}

/// Makes one request and reports its events, until it has ended or is aborted. `ureq` blocks while
/// it reads, so each request has a thread.
fn fetch(agent: &Agent, url: &str, head: &RequestHead, body: &[u8], mut tell: impl FnMut(Part) -> bool) {
    let mut request = Request::builder().method(&*head.method).uri(url);
    // The library sets the host and the length of the body.
    for (name, value) in head.headers.iter().filter(|(name, _)| !name.eq_ignore_ascii_case("host")) {
        request = request.header(name, value);
    }
    let response = match body {
        [] => request.body(()).map_err(ureq::Error::from).and_then(|request| agent.run(request)),
        body => request.body(body).map_err(ureq::Error::from).and_then(|request| agent.run(request)),
    };
    let mut response = match response {
        Ok(response) => response,
        Err(e) => {
            let (sent, why) = closed(&e);
            tell(Part::Failed(sent, why));
            return;
        }
    };
    let text = |value: &ureq::http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let fields = response.headers().iter();
    let headers = fields.fold(Headers::new(), |headers, (name, value)| headers.with(name.as_str(), text(value)));
    let mut wanted = tell(Part::Head(ResponseHead { status: response.status().as_u16(), headers }));
    let mut reader = response.body_mut().as_reader();
    let mut buffer = vec![0; 16 << 10];
    // An early end drops the connection, which the library then closes.
    while wanted {
        wanted = match reader.read(&mut buffer) {
            Ok(0) => {
                tell(Part::End);
                false
            }
            Ok(n) => tell(Part::Bytes(Bytes::copy_from_slice(&buffer[..n]))),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => true,
            Err(_) => {
                tell(Part::Failed(Sent::Maybe, Closed::Reset));
                false
            }
        };
    }
}

/// An error of the library as one of the engine. `Sent::No` is a promise: only if no connection was
/// made.
fn closed(e: &ureq::Error) -> (Sent, Closed) {
    match e {
        ureq::Error::HostNotFound => (Sent::No, Closed::Unresolved),
        ureq::Error::ConnectionFailed => (Sent::No, Closed::Unreachable(e.to_string())),
        ureq::Error::Timeout(ureq::Timeout::Resolve | ureq::Timeout::Connect) => (Sent::No, Closed::Timeout),
        ureq::Error::Timeout(_) => (Sent::Maybe, Closed::Timeout),
        ureq::Error::Io(e) if e.kind() == io::ErrorKind::ConnectionRefused => (Sent::No, Closed::Refused),
        ureq::Error::Io(_) => (Sent::Maybe, Closed::Reset),
        other => (Sent::Maybe, Closed::Broken(other.to_string())),
    }
}

// ---- The engine on top of it. ----

struct Driver {
    engine: Client,
    agent: Agent,
    began: std::time::Instant,
    exchanges: BTreeMap<ExchangeId, Open>,
    told: (Sender<Told>, Receiver<Told>),
    events: VecDeque<Event>,
}

/// An event of an exchange, from its thread.
type Told = (ExchangeId, Part);

/// An exchange that the engine still needs.
struct Open {
    /// The reader of the body, after the head.
    body: Option<frame::BodyDecoder>,
    wanted: Arc<AtomicBool>,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.wanted.store(false, Ordering::Relaxed);
    }
}

impl Driver {
    fn new(config: ClientConfig) -> Self {
        let agent = Agent::config_builder()
            // The engine decides about statuses and redirects.
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .timeout_connect(Some(config.limits.frame.open_timeout))
            .build()
            .new_agent();
        let engine = Client::new(Arc::new(config), [7; 32], Instant::ZERO);
        let (exchanges, events) = Default::default();
        Self { engine, agent, began: std::time::Instant::now(), exchanges, told: mpsc::channel(), events }
    }

    fn now(&self) -> Instant {
        Instant::new(self.began.elapsed())
    }

    /// Carries out the outputs of the engine.
    fn carry_out(&mut self) {
        while let Some(output) = self.engine.poll_output() {
            match output {
                Output::Start(exchange, Start::Http { origin, head, body, .. }) => {
                    self.start(exchange, &origin, head, body);
                }
                Output::Abort(exchange) => drop(self.exchanges.remove(&exchange)),
                Output::Event(event) => self.events.push_back(event),
                // An HTTP exchange has its whole request at the start, and a url never leads to a
                // duplex one.
                Output::Send(..) | Output::Start(..) => unreachable!("{output:?}"),
            }
        }
    }

    fn start(&mut self, exchange: ExchangeId, origin: &Origin, head: RequestHead, body: Bytes) {
        let url = format!("http://{}:{}{}", origin.host, origin.port, head.target);
        let (agent, tell, wanted) = (self.agent.clone(), self.told.0.clone(), Arc::new(AtomicBool::new(true)));
        self.exchanges.insert(exchange, Open { body: None, wanted: Arc::clone(&wanted) });
        thread::spawn(move || {
            let tell = |part| wanted.load(Ordering::Relaxed) && tell.send((exchange, part)).is_ok();
            fetch(&agent, &url, &head, &body, tell);
        });
    }

    /// Handles an event of an exchange. Events of an ended exchange are dropped.
    fn received(&mut self, exchange: ExchangeId, part: Part) {
        let Some(open) = self.exchanges.get_mut(&exchange) else { return };
        match part {
            Part::Head(head) => {
                open.body = Some(frame::BodyDecoder::of_response(&head, &self.engine.config().limits.frame));
                self.engine.handle_event(self.now(), exchange, ExchangeEvent::Inbound(Inbound::Response(head)));
            }
            Part::Bytes(bytes) => self.read(exchange, |body| body.bytes(bytes)),
            Part::End => self.read(exchange, frame::BodyDecoder::end),
            Part::Failed(sent, why) => self.fail(exchange, sent, why),
        }
    }

    fn read(&mut self, exchange: ExchangeId, feed: impl FnOnce(&mut frame::BodyDecoder)) {
        if let Some(body) = self.body(exchange) {
            feed(body);
        }
        while let Some(item) = self.body(exchange).and_then(frame::BodyDecoder::poll_item) {
            let end = item == Inbound::End;
            self.engine.handle_event(self.now(), exchange, ExchangeEvent::Inbound(item));
            // The engine may abort the exchange after any item.
            self.carry_out();
            if end {
                self.exchanges.remove(&exchange);
            }
        }
        if let Some(how) = self.body(exchange).and_then(|body| body.broken().cloned()) {
            self.fail(exchange, Sent::Maybe, Closed::Broken(how));
        }
    }

    fn body(&mut self, exchange: ExchangeId) -> Option<&mut frame::BodyDecoder> {
        self.exchanges.get_mut(&exchange)?.body.as_mut()
    }

    fn fail(&mut self, exchange: ExchangeId, sent: Sent, why: Closed) {
        self.exchanges.remove(&exchange);
        self.engine.handle_event(self.now(), exchange, ExchangeEvent::Failed { sent, why });
    }

    /// Runs until `find` returns a value for one of the events.
    fn until<T>(&mut self, mut find: impl FnMut(&mut Client, Event) -> Option<T>) -> T {
        loop {
            self.carry_out();
            while let Some(event) = self.events.pop_front() {
                if let Some(found) = find(&mut self.engine, event) {
                    return found;
                }
                self.carry_out();
            }
            assert!(self.began.elapsed() < BOUND, "it takes too long");
            let due = self.engine.poll_timeout().map_or(BOUND, |at| at.since(self.now()));
            match self.told.1.recv_timeout(due.min(BOUND)) {
                Ok((exchange, part)) => self.received(exchange, part),
                Err(_) => self.engine.handle_timeout(self.now()),
            }
        }
    }

    fn begin<C: IntoCall>(&mut self, call: C) -> CallId {
        let (call, _) = call.into_call();
        self.engine.call(self.now(), call).expect("there is room").id()
    }

    fn end(&mut self, of: CallId) -> Result<RawResult, CallError> {
        self.until(|_, event| match event {
            Event::Ended { call, outcome } if call == of => Some(outcome),
            _ => None,
        })
    }

    fn close(&mut self) -> Termination {
        self.engine.close(self.now());
        self.until(|_, event| if let Event::Terminated(why) = event { Some(why) } else { None })
    }
}

// ---- The tests. ----

#[derive(serde::Serialize, serde::Deserialize)]
struct Count {
    to: u32,
}

fn router(running: &Arc<AtomicUsize>) -> Router {
    let running = Arc::clone(running);
    Router::new("served", "1.0")
        .tool(tool("double"), |_cx, of: Count| Ok(of.to * 2))
        .tool(tool("count"), |cx, count: Count| {
            for n in 1..=count.to {
                let _ = cx.progress(Progress::new(n.into()));
            }
            Ok(count.to)
        })
        .tool(tool("greet"), |cx, ()| {
            let answer = cx.elicit("who", Form::new("What is your name?").text("name"))?;
            let ElicitResult::Accept(content) = answer else { return Ok("hello, stranger".to_string()) };
            let name: String = content.required("name")?;
            Ok(format!("hello, {name}"))
        })
        .tool(tool("wait"), move |cx, ()| {
            running.fetch_add(1, Ordering::SeqCst);
            while !cx.is_cancelled() {
                thread::park_timeout(Duration::from_millis(2));
            }
            Ok(())
        })
}

fn config(address: impl std::fmt::Display) -> ClientConfig {
    ClientConfig::url(&format!("http://{address}/mcp")).expect("it is a url").with_elicitation()
}

fn said(outcome: Result<RawResult, CallError>) -> String {
    let result = CallToolResult::read(&outcome.expect("it succeeds").json).expect("it is the result of a tool");
    result.first_text().expect("it says something").to_string()
}

// covers: S2-19, B-153, S0-14, S0-15
#[test]
fn sequential_calls_share_the_connection_of_the_library() {
    let server = serve_http(router(&Arc::default()), "127.0.0.1:0").expect("listens");
    let mut driver = Driver::new(config(server.local_addr().expect("an address")));
    for n in 0..20 {
        let call = driver.begin(tools::call("double").arguments(&Count { to: n }));
        assert_eq!(said(driver.end(call)), (2 * n).to_string());
        assert_eq!(server.stats().channels, 1);
    }
    assert_eq!(driver.close(), Termination::Requested);
}

// covers: S0-16, S0-17, S2-22
#[test]
fn progress_arrives_while_the_body_is_read() {
    let server = serve_http(router(&Arc::default()), "127.0.0.1:0").expect("listens");
    let mut driver = Driver::new(config(server.local_addr().expect("an address")));
    let call = driver.begin(tools::call("count").arguments(&Count { to: 5 }).progress());
    let mut told = Vec::new();
    let outcome = driver.until(|_, event| match event {
        Event::Progress { call: of, progress } => {
            assert_eq!(of, call);
            told.push(progress.progress);
            None
        }
        Event::Ended { outcome, .. } => Some(outcome),
        _ => None,
    });
    assert_eq!((said(outcome).as_str(), told.last()), ("5", Some(&5.0)));
}

// covers: MRTR-C-016, B-073
#[test]
fn input_request_of_the_server_is_answered() {
    let server = serve_http(router(&Arc::default()), "127.0.0.1:0").expect("listens");
    let mut driver = Driver::new(config(server.local_addr().expect("an address")));
    driver.begin(tools::call("greet"));
    let now = driver.now();
    let outcome = driver.until(|engine, event| match event {
        Event::InputNeeded { token, .. } => {
            let answer = ElicitResult::Accept(Object::new().with("name", "Ada"));
            engine.answer(now, token, InputAnswer::Elicitation(answer));
            None
        }
        Event::Ended { outcome, .. } => Some(outcome),
        _ => None,
    });
    assert_eq!(said(outcome), "hello, Ada");
}

// covers: B-155, S0-42, S0-43, S2-28
#[test]
fn timed_out_call_ends_alone() {
    let running = Arc::new(AtomicUsize::new(0));
    let server = serve_http(router(&running), "127.0.0.1:0").expect("listens");
    let mut driver = Driver::new(config(server.local_addr().expect("an address")));
    // Until then negotiation is complete and the handler has begun, on a busy machine as well.
    let slow = driver.begin(tools::call("wait").timeout(Duration::from_secs(2)));
    let other = driver.begin(tools::call("wait"));
    assert!(matches!(driver.end(slow), Err(CallError::Timeout { sent: Sent::Maybe, .. })));
    let quick = driver.begin(tools::call("double").arguments(&Count { to: 2 }));
    assert_eq!(said(driver.end(quick)), "4");
    let now = driver.now();
    driver.engine.cancel(now, other, Some("enough"));
    assert_eq!(driver.end(other), Err(CallError::Cancelled { reason: Some("enough".into()) }));
    assert_eq!(driver.exchanges.len(), 0, "nothing of it is kept");
    assert_eq!(running.load(Ordering::SeqCst), 2);
}

// covers: B-087
#[test]
fn refused_connection_reports_its_cause_and_nothing_sent() {
    let address = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("an address");
    let mut driver = Driver::new(config(address));
    let call = driver.begin(tools::call("double"));
    let mut sent = None;
    let why = driver.until(|_, event| match event {
        Event::Ended { call: of, outcome: Err(e) } if of == call => {
            sent = Some(e.sent());
            None
        }
        Event::Terminated(why) => Some(why),
        _ => None,
    });
    let Termination::Negotiation(NegotiationError { stage, cause, .. }) = why else { panic!("{why:?}") };
    assert_eq!((stage, cause), (Stage::Connect, NegotiationCause::Closed(Closed::Refused)));
    assert_eq!(sent, Some(Sent::No));
}

/// A legacy server: a session, responses as streams, and a listener that stays open.
fn older() -> Stub {
    const CHUNKED: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
    let chunk = |text: &str| say(format!("{:x}\r\n{text}\r\n", text.len()));
    let stub = Stub::start(move |ask| match ask.what.as_str() {
        "server/discover" => vec![whole("400 Bad Request", "", "")],
        "initialize" => {
            let info = r#"{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"older","version":"1"}}"#;
            let fields = "Content-Type: application/json\r\nMcp-Session-Id: s1\r\n";
            vec![whole("200 OK", fields, format!(r#"{{"jsonrpc":"2.0","id":{{id}},"result":{info}}}"#))]
        }
        "tools/call anything" => {
            let note = r#"data: {"jsonrpc":"2.0","method":"custom/note"}"#;
            let result = r#"{"content":[{"type":"text","text":"old"}]}"#;
            let answer = format!(r#"data: {{"jsonrpc":"2.0","id":{},"result":{result}}}"#, ask.id);
            vec![say(CHUNKED), chunk(&format!("{note}\n\n{answer}\n\n")), say("0\r\n\r\n")]
        }
        "GET" => {
            let changed = r#"data: {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
            vec![say(CHUNKED), chunk(&format!("{changed}\n\n")), Step::Hold]
        }
        _ => good_legacy(ask),
    });
    stub.expect("a socket")
}

// covers: S0-37, S0-38, S0-39, S0-40, S0-51, S0-16, S0-17
#[test]
fn legacy_server_gets_session_listener_and_delete() {
    let stub = older();
    let address = stub.url().trim_start_matches("http://").trim_end_matches("/mcp").to_owned();
    let mut driver = Driver::new(config(address));
    let call = driver.begin(tools::call("anything"));
    let (mut notes, mut changed, mut result) = (0, 0, None);
    driver.until(|_, event| {
        match event {
            Event::Notification { .. } => notes += 1,
            Event::Changed(Change::Tools) => changed += 1,
            Event::Ended { call: of, outcome } if of == call => result = Some(said(outcome)),
            _ => {}
        }
        (notes > 0 && changed > 0 && result.is_some()).then_some(())
    });
    assert_eq!(result.as_deref(), Some("old"));
    // The end of the response may follow its last event.
    while driver.exchanges.len() > 1 {
        let (exchange, part) = driver.told.1.recv_timeout(BOUND).expect("the response ends");
        driver.received(exchange, part);
    }
    assert_eq!(driver.exchanges.len(), 1, "the listener is open");
    assert_eq!(driver.close(), Termination::Requested);
    let line = |ask: &Ask| {
        let field = |name| ask.field(name).unwrap_or("-");
        format!("{} {} {}", ask.what, field("mcp-session-id"), field("mcp-protocol-version"))
    };
    let asked: Vec<String> = stub.asks().iter().map(line).collect();
    let after: Vec<&str> = asked.iter().map(String::as_str).skip_while(|line| *line != "initialize - -").collect();
    assert_eq!(
        after,
        [
            "initialize - -",
            "notifications/initialized s1 2025-06-18",
            "GET s1 2025-06-18",
            "tools/call anything s1 2025-06-18",
            "DELETE s1 2025-06-18",
        ],
        "{asked:?}"
    );
}
