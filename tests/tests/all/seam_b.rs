//! Bring your own HTTP: the two engines without connections, each on top of a foreign HTTP library.
//!
//! A user of such a library writes this. A [`Client`] outputs exchanges to start and to abort, and
//! takes their events. A [`Server`] takes requests, and outputs responses. [`frame::BodyDecoder`]
//! turns the body of either direction, in any pieces, into the items of an engine, and
//! [`frame::encode_event`] and [`frame::encode_comment`] write the parts of a stream. Nothing else
//! is needed: the library keeps its connections, its framing and its pool.
//!
//! Time does not advance here. A program passes the current time to every call, sleeps at most
//! until `poll_timeout` of each engine, and then calls its `handle_timeout`.

use bytes::Bytes;
use mcp_proto::call::RawResult;
use mcp_proto::client::{self, ClientCommands, Event};
use mcp_proto::error::WaitReason;
use mcp_proto::exchange::{
    Body, Closed, ExchangeEvent, ExchangeId, Headers, Inbound, Outbound, RequestHead, ResponseHead, Sent, Start,
};
use mcp_proto::input::{CallId, InputKey, Note};
use mcp_proto::model::lifecycle::Implementation;
use mcp_proto::route::{Cx, RouteResult};
use mcp_proto::rpc::Object;
use mcp_proto::server::{self, IncomingRequest, Responder, ServerCommands};
use mcp_proto::version::{ProtocolVersion, Versions};
use mcp_proto::{
    CallError, Client, ClientConfig, ElicitResult, Form, InputAnswer, Instant, Limits, Outcome, Progress, Router,
    Server, ServerConfig, frame, tool, tools,
};
use std::collections::BTreeMap;
use std::mem;
use std::sync::Arc;

const NOW: Instant = Instant::ZERO;

// ---- The HTTP library: a request goes in; a response comes out, its head first, its body in
// pieces. ----

/// A request in transit.
struct Request {
    number: u64,
    head: RequestHead,
    body: Bytes,
}

/// The next part of a response.
#[derive(Debug)]
enum Part {
    Head {
        status: u16,
        headers: Headers,
    },
    Chunk(Bytes),
    End,
    /// The connection broke.
    Cut,
}

// ---- The client of such a library. ----

struct HttpClient {
    engine: Client,
    /// The bodies that are being read.
    bodies: BTreeMap<ExchangeId, frame::BodyDecoder>,
    requests: Vec<Request>,
    /// Exchanges that are not needed any more. A library closes their connections, or resets their
    /// streams.
    dropped: Vec<u64>,
    events: Vec<Event>,
}

impl HttpClient {
    fn new() -> Self {
        let config = ClientConfig::url("http://localhost/mcp").expect("it is a url").with_elicitation();
        let engine = Client::new(Arc::new(config), [1; 32], NOW);
        let (bodies, requests, dropped, events) = Default::default();
        let mut client = Self { engine, bodies, requests, dropped, events };
        client.carry_out();
        client
    }

    /// Carries out the outputs of the engine.
    fn carry_out(&mut self) {
        while let Some(output) = self.engine.poll_output() {
            match output {
                client::Output::Start(x, Start::Http { head, body, .. }) => {
                    self.requests.push(Request { number: x.0, head, body });
                }
                client::Output::Abort(x) => {
                    self.bodies.remove(&x);
                    self.dropped.push(x.0);
                }
                client::Output::Event(event) => self.events.push(event),
                // An HTTP exchange has its whole request at the start, and a url never leads to a
                // duplex one.
                client::Output::Send(..) | client::Output::Start(..) => unreachable!("{output:?}"),
            }
        }
    }

    /// Handles a part of a response.
    fn received(&mut self, number: u64, part: Part) {
        let x = ExchangeId(number);
        match part {
            Part::Head { status, headers } => {
                let head = ResponseHead { status, headers };
                self.bodies.insert(x, frame::BodyDecoder::of_response(&head, &Limits::default().frame));
                self.engine.handle_event(NOW, x, ExchangeEvent::Inbound(Inbound::Response(head)));
            }
            Part::Chunk(bytes) => self.read(x, |body| body.bytes(bytes)),
            Part::End => self.read(x, frame::BodyDecoder::end),
            Part::Cut => self.fail(x, Closed::Reset),
        }
        self.carry_out();
    }

    fn read(&mut self, x: ExchangeId, feed: impl FnOnce(&mut frame::BodyDecoder)) {
        let Some(body) = self.bodies.get_mut(&x) else { return };
        feed(body);
        while let Some(item) = self.bodies.get_mut(&x).and_then(frame::BodyDecoder::poll_item) {
            self.engine.handle_event(NOW, x, ExchangeEvent::Inbound(item));
            // The engine may abort it. Then its body is gone before the next item.
            self.carry_out();
        }
        if let Some(why) = self.bodies.get(&x).and_then(frame::BodyDecoder::broken).cloned() {
            self.fail(x, Closed::Broken(why));
        }
    }

    fn fail(&mut self, x: ExchangeId, why: Closed) {
        self.bodies.remove(&x);
        self.engine.handle_event(NOW, x, ExchangeEvent::Failed { sent: Sent::Maybe, why });
    }

    fn call(&mut self, call: mcp_proto::Call<tools::CallTool>) -> CallId {
        let calling = self.engine.call(NOW, call).expect("there is room");
        self.carry_out();
        calling.id()
    }

    fn events(&mut self) -> Vec<Event> {
        mem::take(&mut self.events)
    }

    /// Returns the only event.
    fn only_event(&mut self) -> Event {
        let mut events = self.events();
        assert_eq!(events.len(), 1, "{events:?}");
        events.remove(0)
    }
}

// ---- The server of such a library. ----

struct HttpServer {
    engine: Server,
    router: Router,
    parts: Vec<(u64, Part)>,
    /// Requests whose handlers did not run yet.
    waiting: Vec<(Responder, IncomingRequest)>,
    cancelled: usize,
}

impl HttpServer {
    fn new() -> Self {
        let router = Router::new("greeter", "1.0")
            .tool(tool("greet").describe("greets the user by name"), |cx, ()| {
                let answer = cx.elicit("who", Form::new("What is your name?").text("name"))?;
                let ElicitResult::Accept(content) = answer else { return Ok("hello, stranger".to_string()) };
                Ok(format!("hello, {}", content.required::<String>("name")?))
            })
            .tool(tool("hello").describe("greets anybody"), |_cx, ()| Ok("hello"));
        let engine = Server::new(Arc::new(router.config()), [2; 32], NOW);
        Self { engine, router, parts: Vec::new(), waiting: Vec::new(), cancelled: 0 }
    }

    /// Handles a request. Its body may come in pieces as well; here it is complete.
    fn received(&mut self, request: Request) {
        let x = ExchangeId(request.number);
        let mut body = frame::BodyDecoder::of_request(&request.head, &Limits::default().frame);
        self.engine.handle_event(NOW, x, ExchangeEvent::Inbound(Inbound::Request(request.head)));
        body.bytes(request.body);
        body.end();
        while let Some(item) = body.poll_item() {
            self.engine.handle_event(NOW, x, ExchangeEvent::Inbound(item));
        }
        self.carry_out();
    }

    /// The client of a request has disconnected, or aborted it.
    fn left(&mut self, number: u64) {
        self.engine.handle_event(
            NOW,
            ExchangeId(number),
            ExchangeEvent::Failed { sent: Sent::Maybe, why: Closed::Reset },
        );
        self.carry_out();
    }

    /// Carries out the outputs of the engine.
    fn carry_out(&mut self) {
        while let Some(output) = self.engine.poll_output() {
            match output {
                server::Output::Send(x, outgoing) => self.respond(x.0, outgoing),
                server::Output::Abort(x) => self.parts.push((x.0, Part::Cut)),
                server::Output::Event(server::Event::Request(responder, incoming)) => {
                    self.waiting.push((responder, incoming));
                }
                server::Output::Event(server::Event::Cancelled(_)) => self.cancelled += 1,
                server::Output::Event(event) => panic!("{event:?}"),
            }
        }
    }

    /// Sends a part of a response in the types of the library.
    fn respond(&mut self, number: u64, outgoing: Outbound) {
        let mut say = |part| self.parts.push((number, part));
        match outgoing {
            Outbound::Response { head: ResponseHead { status, headers }, body } => {
                say(Part::Head { status, headers });
                if let Body::Full(bytes) = body {
                    say(Part::Chunk(bytes));
                    say(Part::End);
                }
            }
            Outbound::Event { event, id, retry, data } => {
                say(Part::Chunk(frame::encode_event(event, id.as_deref(), retry, &data)))
            }
            Outbound::Continue => {}
            Outbound::Comment(text) => say(Part::Chunk(frame::encode_comment(&text))),
            Outbound::End => say(Part::End),
            // Clients send the first, and duplex exchanges the second.
            Outbound::Request { .. } | Outbound::Message(_) => unreachable!("{outgoing:?}"),
        }
    }

    /// Runs the handler of the oldest request, which sends progress meanwhile.
    fn work(&mut self) {
        let (responder, incoming) = self.waiting.remove(0);
        let key = responder.key();
        if incoming.context.wants_progress {
            for n in 1..=3 {
                let note = Note::Progress(Progress::new(f64::from(n)).total(3.0));
                self.engine.notify(NOW, key, note).expect("it is wanted, and it increases");
            }
        }
        let answer = match self.router.route(responder, incoming) {
            RouteResult::Answer(answer) => answer,
            RouteResult::Handle { handler, invocation, responder } => {
                // These handlers send no notification.
                responder.write(handler.call(&Cx::detached(invocation)).expect("no future"))
            }
        };
        self.engine.respond(NOW, answer);
        self.carry_out();
    }
}

// ---- Both, and the network between them. ----

struct Web {
    client: HttpClient,
    server: HttpServer,
    /// The response parts come in pieces of at most this size.
    piece: usize,
    /// The body of a response is passed on when it is complete, as some libraries do.
    buffered: bool,
    held: BTreeMap<u64, Vec<Part>>,
    /// The requests that were made, and the heads and the texts of their responses.
    requests: Vec<(RequestHead, String)>,
    responses: BTreeMap<u64, (u16, String, String)>,
}

impl Web {
    fn new(piece: usize, buffered: bool) -> Self {
        let (client, server) = (HttpClient::new(), HttpServer::new());
        let mut web = Self {
            client,
            server,
            piece,
            buffered,
            held: BTreeMap::new(),
            requests: Vec::new(),
            responses: BTreeMap::new(),
        };
        web.rest();
        let told = web.client.events();
        assert!(matches!(told.as_slice(), [Event::Ready(_)]), "{told:?}");
        web
    }

    /// Delivers everything in transit, in both directions.
    fn rest(&mut self) {
        loop {
            if !self.client.dropped.is_empty() {
                for number in mem::take(&mut self.client.dropped) {
                    self.server.left(number);
                }
            } else if !self.client.requests.is_empty() {
                for request in mem::take(&mut self.client.requests) {
                    let body = String::from_utf8_lossy(&request.body).into_owned();
                    self.requests.push((request.head.clone(), body));
                    self.server.received(request);
                }
            } else if !self.server.parts.is_empty() {
                for (number, part) in mem::take(&mut self.server.parts) {
                    self.carry(number, part);
                }
            } else {
                break;
            }
        }
    }

    /// Lets the server answer pending requests, and delivers the responses.
    fn work(&mut self) {
        self.server.work();
        self.rest();
    }

    fn carry(&mut self, number: u64, part: Part) {
        match &part {
            Part::Head { status, headers } => {
                let content_type = headers.get("content-type").unwrap_or_default().to_string();
                self.responses.insert(number, (*status, content_type, String::new()));
            }
            Part::Chunk(bytes) => {
                let response = self.responses.get_mut(&number).expect("the head comes first");
                response.2 += std::str::from_utf8(bytes).expect("it is utf-8");
            }
            Part::End | Part::Cut => {}
        }
        let complete = !matches!(part, Part::Head { .. } | Part::Chunk(_));
        let held = self.held.entry(number).or_default();
        held.push(part);
        if self.buffered && !complete {
            return;
        }
        for part in self.held.remove(&number).into_iter().flatten() {
            let Part::Chunk(bytes) = part else {
                self.client.received(number, part);
                continue;
            };
            for piece in bytes.chunks(self.piece) {
                self.client.received(number, Part::Chunk(Bytes::copy_from_slice(piece)));
            }
        }
    }

    /// The status, the type and the body of the latest response.
    fn response(&self) -> (u16, &str, &str) {
        let (status, content_type, body) = self.responses.values().next_back().expect("there was one");
        (*status, content_type, body)
    }
}

/// Returns a network for every way in which a library may pass on a body.
fn webs() -> impl Iterator<Item = Web> {
    [(usize::MAX, false), (7, false), (1, false), (usize::MAX, true), (7, true)]
        .into_iter()
        .map(|(n, b)| Web::new(n, b))
}

fn said(outcome: Result<RawResult, CallError>) -> String {
    let result = outcome.expect("it succeeds");
    let result = mcp_proto::CallToolResult::read(&result.json).expect("it is the result of a tool");
    result.first_text().expect("it says something").to_string()
}

// covers: HTTP-C-007, HTTP-C-008, HTTP-C-009, HTTP-C-010, HTTP-C-016, HTTP-S-015, HDR-C-001,
// HDR-C-004, HDR-C-005, S1-14, S2-14, S2-16
#[test]
fn call_is_one_request_and_may_get_json() {
    for mut web in webs() {
        let call = web.client.call(tools::call("hello"));
        web.rest();
        let (head, body) = web.requests.last().expect("it was sent");
        assert_eq!((&*head.method, &*head.target), ("POST", "/mcp"));
        for (name, value) in [
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", "tools/call"),
            ("mcp-name", "hello"),
        ] {
            assert_eq!(head.headers.get(name), Some(value));
        }
        assert!(body.starts_with(r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","#), "{body}");

        web.work();
        let (status, content_type, body) = web.response();
        assert_eq!((status, content_type), (200, "application/json"));
        assert!(body.starts_with(r#"{"jsonrpc":"2.0","id":2,"result":{"#), "{body}");
        let Event::Ended { call: ended, outcome } = web.client.only_event() else { panic!("the call has ended") };
        assert_eq!((ended, said(outcome).as_str()), (call, "hello"));
        assert_eq!(web.requests.len(), 2, "one for the discovery, one for the call");
    }
}

// covers: HTTP-C-016, HTTP-S-015, HTTP-S-018, HTTP-S-021, S1-03, S1-14, S2-22
#[test]
fn progress_arrives_on_the_stream_before_the_response() {
    for mut web in webs() {
        let call = web.client.call(tools::call("hello").progress());
        web.rest();
        web.work();
        let (status, content_type, body) = web.response();
        assert_eq!((status, content_type), (200, "text/event-stream"));
        assert_eq!(body.matches("data: ").count(), 4);
        let mut told = web.client.events().into_iter();
        for n in 1..=3 {
            let progress = Progress::new(f64::from(n)).total(3.0);
            assert_eq!(told.next(), Some(Event::Progress { call, progress }));
        }
        let Some(Event::Ended { outcome, .. }) = told.next() else { panic!("the call has ended") };
        assert_eq!((said(outcome).as_str(), told.next()), ("hello", None));
    }
}

// covers: MRTR-C-016, MRTR-C-019, MRTR-C-021, HTTP-C-011, TOOL-S-006
#[test]
fn input_request_is_a_result_and_leads_to_a_new_request() {
    for mut web in webs() {
        let call = web.client.call(tools::call("greet"));
        web.rest();
        web.work();
        let (_, _, question) = web.response();
        let state = question.split(r#""requestState":""#).nth(1).and_then(|rest| rest.split('"').next());
        let state = state.expect("it is sealed into the answer").to_string();
        assert!(question.contains(r#""resultType":"input_required""#), "{question}");

        let Event::InputNeeded { token, call: of, .. } = web.client.only_event() else { panic!("the user is asked") };
        assert_eq!(of, Some(call));
        let answer = ElicitResult::Accept(Object::new().with("name", "Ada"));
        web.client.engine.answer(NOW, token, InputAnswer::Elicitation(answer));
        web.client.carry_out();
        web.rest();
        let (_, retry) = web.requests.last().expect("it was sent");
        assert!(retry.starts_with(r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","#), "{retry}");
        assert!(retry.contains(r#""inputResponses":{"who":{"action":"accept","content":{"name":"Ada"}}}"#), "{retry}");
        assert!(retry.contains(&format!(r#""requestState":"{state}""#)), "{retry}");

        web.work();
        let Event::Ended { call: ended, outcome } = web.client.only_event() else { panic!("the call has ended") };
        assert_eq!((ended, said(outcome).as_str()), (call, "hello, Ada"));
    }
}

// covers: HTTP-S-028, HTTP-S-030, HTTP-C-017, CANC-C-001, CANC-S-003
#[test]
fn cancellation_aborts_the_exchange() {
    for mut web in webs() {
        let call = web.client.call(tools::call("hello").progress());
        web.rest();
        web.client.engine.cancel(NOW, call, Some("enough"));
        web.client.carry_out();
        let requests = web.requests.len();
        web.rest();
        assert_eq!(
            web.client.events(),
            [Event::Ended { call, outcome: Err(CallError::Cancelled { reason: Some("enough".into()) }) }]
        );
        assert_eq!(web.requests.len(), requests, "no message says it");
        assert_eq!((web.server.cancelled, web.server.engine.running()), (1, 0));

        // The handler did not see it, and responds. The response is dropped.
        let (responder, _) = web.server.waiting.remove(0);
        web.server.engine.respond(NOW, responder.write(Outcome::Complete(Object::new())));
        web.server.carry_out();
        assert!(web.server.parts.is_empty());
    }
}

// covers: S2-28
#[test]
fn timed_out_call_aborts_the_exchange() {
    let mut web = Web::new(usize::MAX, false);
    let call = web.client.call(tools::call("hello"));
    web.rest();
    let due = web.client.engine.poll_timeout().expect("the call has a limit");
    web.client.engine.handle_timeout(due);
    web.client.carry_out();
    web.rest();
    let outcome = Err(CallError::Timeout { after: due - NOW, sent: Sent::Maybe, awaited: WaitReason::Response });
    assert_eq!(web.client.only_event(), Event::Ended { call, outcome });
    assert_eq!((web.server.cancelled, web.server.engine.running()), (1, 0));
}

// covers: HTTP-C-027
#[test]
fn truncated_response_ends_only_its_call() {
    let mut web = Web::new(usize::MAX, false);
    let [cut, other] = ["hello", "greet"].map(|name| web.client.call(tools::call(name)));
    let numbers: Vec<u64> = web.client.requests.iter().map(|request| request.number).collect();
    web.rest();
    web.client.received(numbers[0], Part::Cut);
    // Later messages of the server about it are ignored.
    web.work();
    web.work();
    let told = web.client.events();
    let why = Closed::Reset;
    assert_eq!(told[0], Event::Ended { call: cut, outcome: Err(CallError::Closed { sent: Sent::Maybe, why }) });
    assert!(matches!(&told[1..], [Event::InputNeeded { call: Some(of), .. }] if *of == other), "{told:?}");
}

#[test]
fn close_cancels_open_calls_and_aborts_every_exchange() {
    let mut web = Web::new(usize::MAX, false);
    let asking = web.client.call(tools::call("greet"));
    web.rest();
    web.work();
    let Event::InputNeeded { token, .. } = web.client.only_event() else { panic!("the user is asked") };
    let key: InputKey = token.key();
    let running = web.client.call(tools::call("hello"));
    web.rest();
    web.client.engine.close(NOW);
    web.client.carry_out();
    web.rest();
    let told = web.client.events();
    for call in [asking, running] {
        let ends =
            told.iter().filter(|event| matches!(event, Event::Ended { call: of, outcome: Err(_) } if *of == call));
        assert_eq!(ends.count(), 1, "{told:?}");
    }
    assert!(told.contains(&Event::InputWithdrawn(key)));
    assert_eq!(told.last(), Some(&Event::Terminated(client::Termination::Requested)));
    assert_eq!((web.server.cancelled, web.server.engine.running()), (1, 0));
}

// covers: HTTP-S-034
#[test]
fn server_answers_any_request_of_a_library() {
    let mut server = HttpServer::new();
    let mut config = ServerConfig::new(Implementation::new("greeter", "1.0"));
    config.versions = Versions::new([ProtocolVersion::V2026_07_28]);
    server.engine = Server::new(Arc::new(config), [3; 32], NOW);
    let head = RequestHead { method: "GET".into(), target: "/mcp".into(), headers: Headers::new() };
    let x = ExchangeId(9);
    for item in [Inbound::Request(head), Inbound::End] {
        server.engine.handle_event(NOW, x, ExchangeEvent::Inbound(item));
    }
    let outputs: Vec<_> = std::iter::from_fn(|| server.engine.poll_output()).collect();
    let answer = outputs.iter().find_map(|output| match output {
        server::Output::Send(of, Outbound::Response { head, .. }) if *of == x => Some(head),
        _ => None,
    });
    let answer = answer.expect("there is an answer");
    assert_eq!((answer.status, answer.headers.get("allow")), (405, Some("POST")));
}
