//! Bring your own HTTP: the engine of a server on top of `hyper`, which has its own connections and
//! its own framing. Real sockets, real time, and no connection in between. The client is ours, over
//! TCP.
//!
//! A user of any such library writes the first half. `exchange` in the documentation of `mcp-proto`
//! explains it.

use bytes::Bytes;
use hyper::body::{Body as _, Frame, Incoming as Body, SizeHint};
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use mcp_blocking::{Client, ClientOptions, connect_with};
use mcp_proto::client::{self, Termination};
use mcp_proto::error::Diagnostic;
use mcp_proto::exchange::{
    self, BadRequest, Closed, ExchangeEvent, ExchangeId, Headers, Inbound, Outbound, Peer, RequestHead, ResponseHead,
    Sent,
};
use mcp_proto::input::{Admission, Change, Note, Principal, RequestKey};
use mcp_proto::route::RouteResult;
use mcp_proto::rpc::Object;
use mcp_proto::server::{Event, IncomingRequest, Output, Responder, Server, ServerCommands};
use mcp_proto::{
    CallError, CallToolResult, Cx, ElicitResult, Form, Instant, Progress, ProtocolVersion, Refusal, Router, Versions,
    frame, tool, tools,
};
use smol::channel::{Receiver, Sender, unbounded};
use smol::io::{AsyncRead, AsyncWrite};
use smol::net::{TcpListener, TcpStream};
use smol::stream::{Stream, StreamExt as _};
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::io::{self, Read as _, Write as _};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, mpsc};
use std::task::{Context, Poll, ready};
use std::thread;
use std::time::Duration;

/// The maximum time of a wait for a condition.
const BOUND: Duration = Duration::from_secs(20);

// ---- The engine, with its outputs in the types of a library. ----

struct Web {
    router: Router,
    began: std::time::Instant,
    state: Mutex<State>,
    /// Notified after every input of the engine, since its next deadline may be another.
    changed: Condvar,
}

struct State {
    engine: Server,
    next: u64,
    /// The requests without a complete response.
    open: BTreeMap<ExchangeId, Open>,
    running: BTreeMap<RequestKey, Arc<AtomicBool>>,
    /// State for the tests.
    sessions: (usize, usize),
    streams: usize,
    cancelled: usize,
    diagnostics: Vec<Diagnostic>,
}

struct Open {
    say: Sender<Part>,
    /// Bytes that the library has not taken yet.
    unsent: usize,
    /// Whether its end was sent: it is over once all bytes are taken.
    ended: bool,
}

/// The messages about a request to its task.
enum Part {
    /// The body is needed.
    Continue,
    /// The response: complete, or only its head.
    Head(ResponseHead, Option<Bytes>),
    Bytes(Bytes),
    End,
}

impl Web {
    fn new(router: Router) -> Arc<Self> {
        let engine = Server::new(Arc::new(router.config()), [9; 32], Instant::ZERO);
        let (open, running, sessions, diagnostics) = Default::default();
        let state = State { engine, next: 0, open, running, sessions, streams: 0, cancelled: 0, diagnostics };
        let web = Arc::new(Self {
            router,
            began: std::time::Instant::now(),
            state: Mutex::new(state),
            changed: Condvar::new(),
        });
        let clock = Arc::downgrade(&web);
        thread::spawn(move || {
            while let Some(web) = clock.upgrade() {
                web.wait_for_a_deadline();
            }
        });
        web
    }

    fn now(&self) -> Instant {
        Instant::new(self.began.elapsed())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panic")
    }

    /// Handles a request.
    fn begin(self: &Arc<Self>, peer: Peer, head: RequestHead) -> (Exchange, Receiver<Part>) {
        let (say, heard) = unbounded();
        let mut state = self.lock();
        state.next += 1;
        let x = ExchangeId(state.next);
        state.open.insert(x, Open { say, unsent: 0, ended: false });
        // Under one lock with its head: no input of another request may come between.
        state.engine.handle_event(self.now(), x, ExchangeEvent::From(peer.into()));
        state.engine.handle_event(self.now(), x, ExchangeEvent::Inbound(Inbound::Request(head)));
        self.carry_out(state);
        (Exchange { web: Arc::clone(self), x, over: false }, heard)
    }

    fn tell(self: &Arc<Self>, x: ExchangeId, event: ExchangeEvent) {
        let mut state = self.lock();
        state.engine.handle_event(self.now(), x, event);
        self.carry_out(state);
    }

    /// This number of bytes of a response was taken.
    fn taken(self: &Arc<Self>, x: ExchangeId, count: usize) {
        let mut state = self.lock();
        let Some(open) = state.open.get_mut(&x) else { return };
        open.unsent -= count;
        self.tell_unsent(&mut state, x);
        self.carry_out(state);
    }

    /// Reports the bytes of a response that are not taken yet. The engine needs this until all are
    /// taken, also after its end.
    fn tell_unsent(&self, state: &mut State, x: ExchangeId) {
        let Some(Open { unsent, ended, .. }) = state.open.get(&x) else { return };
        let (unsent, over) = (*unsent, *ended && *unsent == 0);
        if over {
            state.open.remove(&x);
        }
        state.engine.handle_event(self.now(), x, ExchangeEvent::Unsent(unsent));
    }

    /// Carries out the outputs of the engine. Must be called after every input of the engine.
    fn carry_out(self: &Arc<Self>, mut state: MutexGuard<'_, State>) {
        while let Some(output) = state.engine.poll_output() {
            match output {
                Output::Send(x, outgoing) => self.say(&mut state, x, outgoing),
                // Its task sees the end of the messages.
                Output::Abort(x) => drop(state.open.remove(&x)),
                Output::Event(Event::Request(responder, incoming)) => {
                    let (web, cancelled) = (Arc::clone(self), Arc::<AtomicBool>::default());
                    state.running.insert(responder.key(), Arc::clone(&cancelled));
                    thread::spawn(move || web.run(responder, incoming, cancelled));
                }
                Output::Event(Event::Cancelled(key)) => {
                    state.cancelled += 1;
                    if let Some(cancelled) = state.running.get(&key) {
                        cancelled.store(true, Ordering::Relaxed);
                    }
                }
                Output::Event(Event::Admit(token, head)) => {
                    let admission = match head.as_ref().and_then(|head| head.headers.get("authorization")) {
                        Some("Bearer secret") => Admission::Accept(Some(Principal("somebody".into()))),
                        _ => Admission::Unauthorized("Bearer realm=\"tests\"".into()),
                    };
                    state.engine.admit(self.now(), token, admission);
                }
                Output::Event(Event::SessionOpened(_)) => state.sessions.0 += 1,
                Output::Event(Event::SessionEnded(..)) => state.sessions.1 += 1,
                Output::Event(Event::Diagnostic(diagnostic)) => state.diagnostics.push(diagnostic),
                Output::Event(_) => {}
            }
        }
        drop(state);
        self.changed.notify_all();
    }

    fn say(&self, state: &mut State, x: ExchangeId, outgoing: Outbound) {
        let Some(open) = state.open.get_mut(&x) else { return };
        let part = match outgoing {
            Outbound::Continue => Part::Continue,
            Outbound::Response { head, body: exchange::Body::Full(body) } => Part::Head(head, Some(body)),
            Outbound::Response { head, body: exchange::Body::Stream } => Part::Head(head, None),
            Outbound::Event { event, id, retry, data } => {
                Part::Bytes(frame::encode_event(event, id.as_deref(), retry, &data))
            }
            Outbound::Comment(text) => Part::Bytes(frame::encode_comment(&text)),
            Outbound::End => Part::End,
            // Clients send the first, duplex exchanges the second. The third is not configured.
            Outbound::Request { .. }
            | Outbound::Message(_)
            | Outbound::Response { body: exchange::Body::WebSocket(_), .. } => return,
        };
        state.streams += usize::from(matches!(part, Part::Head(_, None)));
        let whole = matches!(part, Part::Head(_, Some(_)));
        if let Part::Bytes(bytes) = &part {
            open.unsent += bytes.len();
        }
        open.ended = matches!(part, Part::End);
        let tells = matches!(part, Part::Bytes(_) | Part::End);
        // The receiver may be gone. Then the drop by the library reports it.
        let _ = open.say.try_send(part);
        if whole {
            state.open.remove(&x);
        } else if tells {
            self.tell_unsent(state, x);
        }
    }

    /// Answers a request on a new thread.
    fn run(self: Arc<Self>, responder: Responder, incoming: IncomingRequest, cancelled: Arc<AtomicBool>) {
        let key = responder.key();
        let answer = match self.router.route(responder, incoming) {
            RouteResult::Answer(answer) => answer,
            RouteResult::Handle { handler, invocation, responder } => {
                let [teller, crier] = [Arc::clone(&self), Arc::clone(&self)];
                let note = move |note| teller.notify(key, note);
                let cx = Cx::linked(invocation, cancelled, note, move |change| crier.publish(change));
                responder.write(handler.call(&cx).expect("no future"))
            }
        };
        let mut state = self.lock();
        state.running.remove(&key);
        state.engine.respond(self.now(), answer);
        self.carry_out(state);
    }

    fn notify(self: &Arc<Self>, key: RequestKey, note: Note) -> Result<(), Refusal> {
        let mut state = self.lock();
        let sent = state.engine.notify(self.now(), key, note).map_err(|refused| refused.why);
        self.carry_out(state);
        sent
    }

    fn publish(self: &Arc<Self>, change: Change) {
        let mut state = self.lock();
        state.engine.publish(self.now(), change);
        self.carry_out(state);
    }

    fn wait_for_a_deadline(self: &Arc<Self>) {
        let mut state = self.lock();
        let now = self.now();
        let left = state.engine.poll_timeout().map(|due| due.since(now));
        if left.is_some_and(|left| left.is_zero()) {
            state.engine.handle_timeout(now);
            return self.carry_out(state);
        }
        // Checks regularly whether the client is still connected.
        let time = left.unwrap_or(BOUND).min(Duration::from_millis(100));
        drop(self.changed.wait_timeout(state, time).expect("no panic"));
    }
}

/// One request, from its head to the end of its response. A drop before that means that its client
/// has disconnected.
struct Exchange {
    web: Arc<Web>,
    x: ExchangeId,
    over: bool,
}

impl Drop for Exchange {
    fn drop(&mut self) {
        if !self.over {
            self.web.lock().open.remove(&self.x);
            self.web.tell(self.x, ExchangeEvent::Failed { sent: Sent::Maybe, why: Closed::Reset });
        }
    }
}

// ---- The library. ----

/// Answers one request. An error makes the library cut the connection.
async fn serve(web: Arc<Web>, peer: Peer, request: hyper::Request<Body>) -> io::Result<hyper::Response<Answer>> {
    let (parts, mut incoming) = request.into_parts();
    let limits = web.router.config().limits;
    let head = head_of(&parts);
    let mut body = frame::BodyDecoder::of_request(&head, &limits.frame);
    let waits = web.router.config().admit;
    let (mut exchange, heard) = web.begin(peer, head);
    let mut first = if waits { heard.recv().await.ok() } else { heard.try_recv().ok() };
    // The body is read until there is a response.
    while !matches!(first, Some(Part::Head(..))) {
        match poll_fn(|cx| Pin::new(&mut incoming).poll_frame(cx)).await {
            Some(Ok(frame)) => body.bytes(frame.into_data().unwrap_or_default()),
            // The drop reports that the rest of the request is not needed.
            Some(Err(_)) => return Err(io::ErrorKind::ConnectionReset.into()),
            None => body.end(),
        }
        let mut ended = false;
        while let Some(item) = body.poll_item() {
            ended |= item == Inbound::End;
            web.tell(exchange.x, ExchangeEvent::Inbound(item));
        }
        if body.broken().is_some() {
            let defect = BadRequest { status: 413, why: "the body is larger than the limit" };
            web.tell(exchange.x, ExchangeEvent::Inbound(Inbound::Reject(defect)));
        }
        if ended || body.broken().is_some() {
            first = heard.recv().await.ok();
            break;
        }
        first = heard.try_recv().ok();
    }
    let Some(Part::Head(head, full)) = first else { return Err(io::ErrorKind::ConnectionAborted.into()) };
    exchange.over = full.is_some();
    let answer = Answer { full, heard: Box::pin(heard), exchange };
    let mut response = hyper::Response::new(answer);
    *response.status_mut() = hyper::StatusCode::from_u16(head.status).expect("a status");
    for (name, value) in head.headers.iter() {
        let name: hyper::header::HeaderName = name.parse().expect("a name");
        response.headers_mut().append(name, value.parse().expect("a value"));
    }
    Ok(response)
}

/// Converts the head of a request to the type of the engine.
fn head_of(parts: &hyper::http::request::Parts) -> RequestHead {
    let mut headers = Headers::new();
    for (name, value) in &parts.headers {
        // Bytes other than UTF-8 are Latin-1, the original meaning.
        let text = match std::str::from_utf8(value.as_bytes()) {
            Ok(text) => text.to_owned(),
            Err(_) => value.as_bytes().iter().map(|&byte| char::from(byte)).collect(),
        };
        headers.push(name.as_str(), text);
    }
    RequestHead { method: parts.method.to_string().into(), target: parts.uri.to_string().into(), headers }
}

/// The body of a response: complete, or in events over time. The library drops it when the client
/// has disconnected.
struct Answer {
    full: Option<Bytes>,
    heard: Pin<Box<Receiver<Part>>>,
    exchange: Exchange,
}

impl hyper::body::Body for Answer {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        if let Some(full) = self.full.take() {
            return Poll::Ready(Some(Ok(Frame::data(full))));
        }
        if self.exchange.over {
            return Poll::Ready(None);
        }
        Poll::Ready(match ready!(self.heard.as_mut().poll_next(cx)) {
            Some(Part::Bytes(bytes)) => {
                self.exchange.web.taken(self.exchange.x, bytes.len());
                Some(Ok(Frame::data(bytes)))
            }
            Some(Part::End) => {
                self.exchange.over = true;
                None
            }
            Some(Part::Continue | Part::Head(..)) | None => Some(Err(io::ErrorKind::ConnectionAborted.into())),
        })
    }

    fn is_end_stream(&self) -> bool {
        self.exchange.over && self.full.as_ref().is_none_or(Bytes::is_empty)
    }

    fn size_hint(&self) -> SizeHint {
        match &self.full {
            Some(full) => SizeHint::with_exact(full.len() as u64),
            None => SizeHint::default(),
        }
    }
}

/// Converts a socket of `smol` to the type of the library.
struct Socket(TcpStream);

impl Read for Socket {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, mut buf: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        let mut bytes = [0; 8 << 10];
        let room = buf.remaining().min(bytes.len());
        let count = ready!(Pin::new(&mut self.0).poll_read(cx, &mut bytes[..room]))?;
        buf.put_slice(&bytes[..count]);
        Poll::Ready(Ok(()))
    }
}

impl Write for Socket {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_close(cx)
    }
}

/// Serves all connections, until the task is dropped.
fn listen(web: &Arc<Web>) -> (SocketAddr, smol::Task<()>) {
    let web = Arc::clone(web);
    let listener = smol::block_on(TcpListener::bind("127.0.0.1:0")).expect("listens");
    let address = listener.local_addr().expect("an address");
    let task = smol::spawn(async move {
        let mut streams = listener.incoming();
        while let Some(Ok(stream)) = streams.next().await {
            let web = Arc::clone(&web);
            let peer = stream.peer_addr().map(Peer::tcp).unwrap_or_default();
            let service = service_fn(move |request| serve(Arc::clone(&web), peer.clone(), request));
            smol::spawn(http1::Builder::new().serve_connection(Socket(stream), service)).detach();
        }
    });
    (address, task)
}

// ---- The tests. ----

#[derive(serde::Serialize, serde::Deserialize)]
struct Count {
    to: u32,
}

fn router() -> Router {
    Router::new("served", "1.0")
        .tool(tool("double"), |_cx, Count { to }| Ok(to * 2))
        .tool(tool("count"), |cx, Count { to }| {
            for n in 1..=to {
                let _ = cx.progress(Progress::new(n.into()));
            }
            Ok(to)
        })
        .tool(tool("greet"), |cx, ()| {
            let answer = cx.elicit("who", Form::new("What is your name?").text("name"))?;
            let ElicitResult::Accept(content) = answer else { return Ok("hello, stranger".to_string()) };
            Ok(format!("hello, {}", content.required::<String>("name")?))
        })
        .tool(tool("wait"), |cx, ()| {
            let _ = cx.progress(Progress::new(0.0));
            let began = std::time::Instant::now();
            while !cx.is_cancelled() && began.elapsed() < BOUND {
                thread::park_timeout(Duration::from_millis(2));
            }
            Ok("over")
        })
        .tool(tool("change"), |cx, ()| {
            cx.publish(Change::Tools);
            Ok("changed")
        })
        .tool(tool("who"), |cx, ()| Ok(cx.context().peer.name.clone().unwrap_or_default()))
        .tools_change()
}

/// A server on the library, and our connected client of this revision.
struct Pair {
    web: Arc<Web>,
    client: Client,
    _listening: smol::Task<()>,
}

/// Both eras.
const VERSIONS: [ProtocolVersion; 2] = [ProtocolVersion::V2025_11_25, ProtocolVersion::V2026_07_28];

fn pair(router: Router, version: ProtocolVersion) -> Pair {
    pair_with(router, version, ClientOptions::new())
}

fn pair_with(router: Router, version: ProtocolVersion, config: ClientOptions) -> Pair {
    let web = Web::new(router);
    let (address, _listening) = listen(&web);
    let config = config
        .set(move |config| config.versions = Versions::new([version]))
        .on_elicit(|_| ElicitResult::Accept(Object::new().with("name", "Ada")));
    let client = connect_with(format!("http://{address}/mcp").as_str(), config).expect("connected");
    Pair { web, client, _listening }
}

impl Pair {
    /// Waits until the server has this state.
    #[track_caller]
    fn until(&self, what: &str, mut is: impl FnMut(&State) -> bool) {
        let began = std::time::Instant::now();
        let mut state = self.web.lock();
        while !is(&state) {
            assert!(began.elapsed() < BOUND, "{what}: {:?}", state.diagnostics);
            state = self.web.changed.wait_timeout(state, Duration::from_millis(20)).expect("no panic").0;
        }
    }

    /// Closes the client. The server must have no state of it left.
    fn end(self) {
        assert_eq!(self.client.close(), Termination::Requested);
        self.until("nothing is left", |state| {
            state.open.is_empty() && state.running.is_empty() && state.engine.running() == 0
        });
        let diagnostics = self.web.lock().diagnostics.clone();
        assert_eq!(diagnostics, [], "nobody did anything wrong");
    }
}

fn said(result: Result<CallToolResult, CallError>) -> String {
    result.expect("it succeeds").first_text().expect("it says something").to_owned()
}

// covers: HTTP-S-015, SHTTP-S-014, SHTTP-S-046, S3-30
#[test]
fn tools_are_listed_and_called_in_both_eras() {
    for version in VERSIONS {
        let pair = pair(router(), version);
        let names: Vec<_> = pair.client.pages(tools::list()).map(|tool| tool.expect("a tool").name).collect();
        assert_eq!(names, ["change", "count", "double", "greet", "wait", "who"]);
        for to in 0..20 {
            assert_eq!(said(pair.client.call(tools::call("double").arguments(&Count { to }))), (2 * to).to_string());
        }
        assert!(said(pair.client.call(tools::call("who"))).starts_with("127.0.0.1:"), "the address of the client");
        let opened = pair.web.lock().sessions.0;
        assert_eq!(opened, usize::from(version == ProtocolVersion::V2025_11_25));
        pair.end();
    }
}

// covers: HTTP-S-018, S0-16, S2-22
#[test]
fn progress_arrives_on_the_stream_of_its_call() {
    for version in VERSIONS {
        let pair = pair(router(), version);
        let mut told = Vec::new();
        let call =
            tools::call("count").arguments(&Count { to: 5 }).on_progress(|progress| told.push(progress.progress));
        assert_eq!(said(pair.client.call(call)), "5");
        assert_eq!(told.last(), Some(&5.0));
        pair.end();
    }
}

// covers: B-282
#[test]
fn exchange_ends_when_its_whole_response_was_taken() {
    for version in VERSIONS {
        // One to listen, one to call.
        let pair = pair(router().configure(|config| config.limits.server.max_exchanges = 3), version);
        for to in 1..=10 {
            let call = tools::call("count").arguments(&Count { to }).progress();
            assert_eq!(said(pair.client.call(call)), to.to_string());
        }
        pair.end();
    }
}

// covers: MRTR-S-001
#[test]
fn input_request_to_the_client_is_answered() {
    for version in VERSIONS {
        let pair = pair(router(), version);
        assert_eq!(said(pair.client.call(tools::call("greet"))), "hello, Ada");
        pair.end();
    }
}

// covers: HTTP-S-028, CANC-S-003, B-222
#[test]
fn cancelled_call_is_cancelled_at_the_server() {
    for version in VERSIONS {
        let pair = pair(router(), version);
        let call = pair.client.start(tools::call("wait").progress());
        pair.until("its stream is open", |state| state.streams > 0 && !state.running.is_empty());
        call.cancel(None);
        assert!(matches!(call.wait(), Err(CallError::Cancelled { .. })));
        pair.until("it is cancelled", |state| state.cancelled == 1 && state.running.is_empty());
        assert_eq!(said(pair.client.call(tools::call("double").arguments(&Count { to: 2 }))), "4");
        pair.end();
    }
}

// covers: SUB-S-015
#[test]
fn change_reaches_the_listeners() {
    for version in VERSIONS {
        let (tell, told) = mpsc::channel();
        let listening = ClientOptions::new().set(|config| config.watch.tools = true).on_event(move |event| {
            if matches!(event, client::Event::Changed(Change::Tools)) {
                let _ = tell.send(());
            }
        });
        let pair = pair_with(router(), version, listening);
        let began = std::time::Instant::now();
        // Only its own side knows whether it listens already.
        loop {
            assert_eq!(said(pair.client.call(tools::call("change"))), "changed");
            if told.recv_timeout(Duration::from_millis(50)).is_ok() {
                break;
            }
            assert!(began.elapsed() < BOUND, "nobody is told");
        }
        pair.end();
    }
}

// covers: S3-22
#[test]
fn closed_client_ends_its_session() {
    let pair = pair(router(), ProtocolVersion::V2025_11_25);
    let web = Arc::clone(&pair.web);
    pair.end();
    assert_eq!(web.lock().sessions, (1, 1));
}

// covers: S3-45
#[test]
fn request_is_admitted_by_its_head() {
    for version in VERSIONS {
        let admitting = || router().configure(|config| config.admit = true);
        let config = ClientOptions::new().header("Authorization", "Bearer secret").expect("a field");
        let pair = pair_with(admitting(), version, config);
        assert_eq!(said(pair.client.call(tools::call("double").arguments(&Count { to: 2 }))), "4");
        pair.end();
        let web = Web::new(admitting());
        let (address, _listening) = listen(&web);
        let answer = posted(address, "localhost", &[b'x'; 10]);
        assert!(answer.starts_with("http/1.1 401 ") && answer.contains("www-authenticate: bearer realm="), "{answer}");
    }
}

/// Posts the head of a request and this number of bytes of a longer body. Returns the response in
/// lower case.
fn posted(address: SocketAddr, host: &str, body: &[u8]) -> String {
    let mut stream = std::net::TcpStream::connect(address).expect("connected");
    stream.set_read_timeout(Some(BOUND)).expect("a timeout");
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len() + 1
    );
    stream.write_all(head.as_bytes()).expect("writable");
    stream.write_all(body).expect("writable");
    let (mut answer, mut bytes) = (String::new(), [0; 4096]);
    while !answer.contains('}') {
        let count = stream.read(&mut bytes).expect("an answer");
        assert_ne!(count, 0, "the answer is whole: {answer}");
        answer.push_str(&String::from_utf8_lossy(&bytes[..count]).to_lowercase());
    }
    answer
}

// covers: HTTP-S-002, HTTP-S-003, B-180
#[test]
fn request_is_refused_before_its_body_arrives() {
    let web = Web::new(router().configure(|config| config.limits.frame.max_request_body = 100));
    let (address, _listening) = listen(&web);
    let answer = posted(address, "evil.example", b"");
    assert!(answer.starts_with("http/1.1 403 "), "{answer}");
    let told = web.lock().diagnostics.iter().any(|diagnostic| diagnostic.detail == "the host \"evil.example\"");
    assert!(told, "the refusal is told");
    let answer = posted(address, "localhost", &[b'x'; 200]);
    assert!(answer.starts_with("http/1.1 413 "), "{answer}");
    assert!(web.lock().open.is_empty() && web.lock().engine.running() == 0);
}
