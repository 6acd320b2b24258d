//! How connections share an executor: polled by hand or by a single-threaded executor, over streams
//! in memory. No time passes, so the counts depend only on the order of polls.

use super::*;
use crate::clock::delay;
use crate::jobs::Jobs;
use crate::stream::Stream;
use crate::{Router, ServerOptions, tool};
use mcp_driver::{DriverHandle, Server, Spawn};
use mcp_proto::exchange::Peer;
use mcp_proto::wired::Kind;
use smol::Executor;
use smol::io::{AsyncRead, AsyncWrite};
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Wake;

/// Number of requests of each client.
const REQUESTS: usize = 40;

/// Whether its task was woken.
#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// An HTTP client, as both ends of its connection.
#[derive(Clone)]
struct Client(Arc<Mutex<Talk>>);

struct Talk {
    number: usize,
    /// Bytes of the requests that the server has not read.
    unread: Vec<u8>,
    /// Requests that it sends once `unread` was read and, if it is patient, answered.
    left: usize,
    patient: bool,
    request: fn() -> Vec<u8>,
    /// Its latest request has no response.
    waits: bool,
    /// It ends its side after its last response.
    ends: bool,
    /// Maximum size of a read or write, in bytes.
    at_once: usize,
    reader: Option<Waker>,
    writer: Option<Waker>,
    takes: Takes,
    /// The numbers of the clients that got a response, in order.
    served: Served,
}

/// How it reads responses.
#[derive(Clone, Copy, PartialEq)]
enum Takes {
    All,
    NothingYet,
    NothingAnyMore,
}

type Served = Arc<Mutex<Vec<usize>>>;

impl Client {
    /// Creates a client that sends each request after the response to the previous one.
    fn patient(number: usize, served: &Served) -> Self {
        let (unread, served) = (Vec::new(), served.clone());
        let (left, patient, waits, takes) = (REQUESTS, true, false, Takes::All);
        Self(Arc::new(Mutex::new(Talk {
            number,
            unread,
            left,
            patient,
            request,
            waits,
            ends: true,
            at_once: usize::MAX,
            reader: None,
            writer: None,
            takes,
            served,
        })))
    }

    /// Creates a client that sends all requests at once, each in its own write.
    fn impatient(served: &Served) -> Self {
        let client = Self::patient(0, served);
        client.talk(|talk| talk.patient = false);
        client
    }

    fn talk<T>(&self, change: impl FnOnce(&mut Talk) -> T) -> T {
        change(&mut self.0.lock().expect("no panic"))
    }
}

impl AsyncRead for Client {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        self.talk(|talk| {
            if talk.unread.is_empty() && talk.left > 0 && !(talk.patient && talk.waits) {
                talk.left -= 1;
                talk.waits = true;
                talk.unread = (talk.request)();
            }
            let n = buffer.len().min(talk.unread.len()).min(talk.at_once);
            talk.unread.drain(..n).zip(buffer).for_each(|(byte, to)| *to = byte);
            match n {
                0 if talk.left == 0 && !talk.waits && talk.ends => Poll::Ready(Ok(0)),
                0 => {
                    talk.reader = Some(cx.waker().clone());
                    Poll::Pending
                }
                n => Poll::Ready(Ok(n)),
            }
        })
    }
}

impl AsyncWrite for Client {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.talk(|talk| match talk.takes {
            Takes::All => {
                let bytes = &bytes[..bytes.len().min(talk.at_once)];
                let answers = bytes.windows(13).filter(|part| part == b"HTTP/1.1 200 ").count();
                talk.served.lock().expect("no panic").extend(vec![talk.number; answers]);
                if answers > 0 {
                    talk.waits = false;
                    talk.reader.take().into_iter().for_each(Waker::wake);
                }
                Poll::Ready(Ok(bytes.len()))
            }
            Takes::NothingYet => {
                talk.writer = Some(cx.waker().clone());
                Poll::Pending
            }
            Takes::NothingAnyMore => Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
        })
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// Returns a call of the tool `tick`.
fn request() -> Vec<u8> {
    post("tools/call", "Mcp-Name: tick\r\n", r#""name":"tick","#)
}

/// Returns a request that the engine answers in the turn in which it gets it, without a handler.
fn discover() -> Vec<u8> {
    post("server/discover", "", "")
}

fn post(method: &str, fields: &str, params: &str) -> Vec<u8> {
    let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}"#;
    let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{{params}{meta}}}}}"#);
    let head = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
        Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\n";
    format!("{head}Mcp-Method: {method}\r\n{fields}Content-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

/// A server whose timers nothing drives.
struct Bench {
    server: Server,
    _driving: DriverHandle,
    jobs: Jobs,
}

impl Bench {
    fn new(router: Router) -> Self {
        Self::on(router, Arc::new(crate::sync::spawn))
    }

    fn on(router: Router, spawn: Arc<Spawn>) -> Self {
        let (server, driving) = Server::begin(router, ServerOptions::new(), delay).expect("a seed");
        Self { server, _driving: driving, jobs: Jobs::new(spawn) }
    }

    fn connection(&self, client: &Client) -> ConnectionTask {
        self.connect((client.clone(), client.clone()).into())
    }

    fn connect(&self, stream: Stream) -> ConnectionTask {
        let connection = self.server.accept(Kind::HttpServer, Peer::default(), false);
        ConnectionTask::new(Transport::accepted(connection, stream, self.jobs.clone()))
    }
}

fn server() -> Bench {
    Bench::new(Router::new("clock", "1").tool_async(tool("tick"), |_cx, ()| async { Ok("tock") }))
}

/// Polls a connection like an executor, only when it was woken. Calls `polled` after each poll.
fn run(mut connection: ConnectionTask, mut polled: impl FnMut()) -> Option<()> {
    let woken = Arc::<Woken>::default();
    let waker = Waker::from(woken.clone());
    woken.wake_by_ref();
    while woken.0.swap(false, Ordering::SeqCst) {
        let end = Pin::new(&mut connection).poll(&mut Context::from_waker(&waker));
        polled();
        if let Poll::Ready(end) = end {
            return Some(end);
        }
    }
    None
}

#[test]
fn one_poll_serves_at_most_one_request() {
    for request in [request, discover] {
        let (server, served, mut before) = (server(), Served::default(), 0);
        let client = Client::patient(0, &served);
        client.talk(|talk| talk.request = request);
        let end = run(server.connection(&client), || {
            let now = served.lock().expect("no panic").len();
            assert!(now <= before + 1, "{} requests in one poll", now - before);
            before = now;
        });
        assert_eq!((end, before), (Some(()), REQUESTS));
    }
}

#[test]
fn one_poll_answers_one_request_of_a_read() {
    let (served, mut before) = (Served::default(), 0);
    let client = Client::impatient(&served);
    // As many as the first read accepts.
    let requests = (4 << 10) / request().len();
    client.talk(|talk| (talk.unread, talk.left, talk.ends) = (request().repeat(requests), 0, false));
    let server = server();
    let end = run(server.connection(&client), || {
        let now = served.lock().expect("no panic").len();
        assert!(now <= before + 1, "{} requests in one poll", now - before);
        before = now;
    });
    assert_eq!((end, before), (None, requests));
    assert!(requests > 4, "{requests} in one read");
}

#[test]
fn clients_that_never_pause_are_served_in_turn() {
    const CLIENTS: usize = 5;
    let (executor, server, served) = (Executor::new(), server(), Served::default());
    let tasks: Vec<_> =
        (0..CLIENTS).map(|number| executor.spawn(server.connection(&Client::patient(number, &served)))).collect();
    smol::block_on(executor.run(async {
        for task in tasks {
            task.await;
        }
    }));
    let served = served.lock().expect("no panic");
    assert_eq!(served.len(), CLIENTS * REQUESTS);
    for round in served.chunks(CLIENTS) {
        let mut round = round.to_vec();
        round.sort_unstable();
        assert!(round.into_iter().eq(0..CLIENTS), "not in turn: {served:?}");
    }
}

// covers: B-277
#[test]
fn connection_is_polled_again_after_its_turn() {
    let served = Served::default();
    // Nothing else wakes it: everything that the client sends is there from the start, and most
    // parts of it mean nothing to the engine yet.
    let client = Client::impatient(&served);
    client.talk(|talk| talk.at_once = 100);
    let server = server();
    let end = run(server.connection(&client), || ());
    assert_eq!((end, served.lock().expect("no panic").len()), (Some(()), REQUESTS));
}

// covers: B-277
#[test]
fn connection_ends_at_once_if_its_response_cannot_be_written() {
    let (server, client, woken) = (server(), Client::impatient(&Served::default()), Arc::<Woken>::default());
    // It sends one request, reads no response, and sends nothing more.
    client.talk(|talk| (talk.left, talk.takes) = (1, Takes::NothingYet));
    let mut connection = server.connection(&client);
    let waker = Waker::from(woken.clone());
    let mut poll = || Pin::new(&mut connection).poll(&mut Context::from_waker(&waker));
    while woken.0.swap(false, Ordering::SeqCst) || client.talk(|talk| talk.writer.is_none()) {
        assert!(poll().is_pending());
    }
    client.talk(|talk| talk.takes = Takes::NothingAnyMore);
    let mut end = poll();
    while end.is_pending() && woken.0.swap(false, Ordering::SeqCst) {
        end = poll();
    }
    assert_eq!(end, Poll::Ready(()));
}

// covers: B-149, B-141
#[test]
fn connection_dropped_after_any_poll_leaves_nothing() {
    for hangs in [true, false] {
        let mut states = std::collections::BTreeSet::new();
        for polls in 0..60 {
            let executor = Arc::new(Executor::new());
            let there = executor.clone();
            let router = Router::new("clock", "1").tool_async(tool("tick"), move |_cx, ()| async move {
                for _ in 0..3 {
                    smol::future::yield_now().await;
                }
                if hangs {
                    std::future::pending::<()>().await;
                }
                Ok("tock")
            });
            let spawn = move |task| there.spawn(task).detach();
            let server = Bench::on(router, Arc::new(spawn));
            let client = Client::impatient(&Served::default());
            client.talk(|talk| (talk.left, talk.at_once) = (2, 50));
            let mut connection = server.connection(&client);
            for _ in 0..polls {
                let _ = Pin::new(&mut connection).poll(&mut Context::from_waker(Waker::noop()));
                executor.try_tick();
            }
            states.insert(server.server.stats().running);
            drop(connection);
            // Tasks that the drop has cancelled end.
            while executor.try_tick() {}
            let stats = server.server.stats();
            assert_eq!((stats.running, stats.channels), (0, 0), "after {polls} polls");
            assert!(executor.is_empty(), "after {polls} polls a handler is left");
        }
        assert!(states.contains(&0) && states.contains(&1), "{states:?}");
    }
}

/// Creates a server, and a client with one call that has an argument of this size.
fn large_call(size: usize) -> (Bench, Client) {
    let router =
        Router::new("clock", "1").tool_async(tool("tick"), |_cx, _: BTreeMap<String, String>| async { Ok("tock") });
    let client = Client::impatient(&Served::default());
    let call = String::from_utf8(request()).expect("ASCII");
    let (head, body) = call.split_once("\r\n\r\n").expect("a head");
    let arguments = format!(r#""name":"tick","arguments":{{"text":"{}"}}"#, "x".repeat(size));
    let body = body.replace(r#""name":"tick""#, &arguments);
    let (head, _) = head.rsplit_once(": ").expect("a length");
    let unread = format!("{head}: {}\r\n\r\n{body}", body.len()).into_bytes();
    client.talk(|talk| (talk.unread, talk.left, talk.waits) = (unread, 0, true));
    (Bench::new(router), client)
}

// covers: B-277
#[test]
fn large_message_is_parsed_by_another_thread() {
    for (size, parses) in [(1 << 20, true), (16 << 10, false)] {
        let (server, client) = large_call(size);
        let (mut connection, mut parsed) = (server.connection(&client), false);
        smol::block_on(poll_fn(|cx| {
            let end = Pin::new(&mut connection).poll(cx);
            parsed |= matches!(connection.0, Place::Pool(_));
            end
        }));
        assert_eq!(parsed, parses, "{size}");
        client.talk(|talk| assert_eq!(talk.served.lock().expect("no panic").len(), 1, "{size}"));
    }
}

// covers: B-149, B-141
#[test]
fn connection_dropped_during_parsing_leaves_nothing() {
    let (server, client) = large_call(1 << 20);
    let mut connection = server.connection(&client);
    while !matches!(connection.0, Place::Pool(_)) {
        assert!(Pin::new(&mut connection).poll(&mut Context::from_waker(Waker::noop())).is_pending());
    }
    drop(connection);
    // The thread leaves the server when it has parsed everything.
    smol::block_on(server.server.stop(std::time::Duration::ZERO));
    let stats = server.server.stats();
    assert_eq!((stats.running, stats.channels), (0, 0));
}

/// A client that sends empty lines endlessly.
struct EmptyLines;

impl AsyncRead for EmptyLines {
    fn poll_read(self: Pin<&mut Self>, _cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        buffer.iter_mut().zip(b"\r\n".iter().cycle()).for_each(|(to, byte)| *to = *byte);
        Poll::Ready(Ok(buffer.len()))
    }
}

// covers: B-277
#[test]
fn timers_fire_between_reads_that_other_threads_parse() {
    let limit = std::time::Duration::from_millis(50);
    // Otherwise the lines before the head would be refused before.
    let router = Router::new("clock", "1").configure(|config| {
        let frame = &mut config.limits.frame;
        (frame.max_head, frame.head_timeout) = (usize::MAX, limit);
    });
    let server = Bench::new(router);
    let client = Client::patient(0, &Served::default());
    let mut connection = server.connect((EmptyLines, client).into());
    let (mut polls, mut parsed) = (0, false);
    let end = smol::block_on(poll_fn(|cx| {
        polls += 1;
        parsed |= matches!(connection.0, Place::Pool(_));
        match Pin::new(&mut connection).poll(cx) {
            Poll::Pending if polls < 2_000 => Poll::Pending,
            end => Poll::Ready(end),
        }
    }));
    assert!(end.is_ready() && parsed, "{end:?} after {polls} polls");
}
