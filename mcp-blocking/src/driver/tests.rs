//! Behaviour of waiting work that is not visible from outside.

mod stuck;

use super::*;
use crate::direct::{Direct, WriteNow};
use mcp_driver::{Server, ServerOptions, block_on};
use mcp_proto::exchange::Peer;
use mcp_proto::wired::Kind;
use mcp_proto::{Router, tool};
use std::future::pending;
use std::io::{BufRead, BufReader, IoSlice, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;

const BOUND: Duration = Duration::from_secs(20);

fn until(mut is_so: impl FnMut() -> bool) {
    let end = std::time::Instant::now() + BOUND;
    while !is_so() {
        assert!(std::time::Instant::now() < end, "the condition did not come true");
        std::thread::park_timeout(Duration::from_millis(2));
    }
}

fn line(stream: &mut UnixStream, id: u32, method: &str, params: &str) {
    let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"}}"#;
    let id = if method == "tools/call" { format!(r#""id":{id},"#) } else { String::new() };
    writeln!(stream, r#"{{"jsonrpc":"2.0",{id}"method":"{method}","params":{{{params},{meta}}}}}"#).expect("written");
}

fn call(stream: &mut UnixStream, id: u32) {
    call_tool(stream, id, "stuck", "{}");
}

fn call_tool(stream: &mut UnixStream, id: u32, name: &str, arguments: &str) {
    line(stream, id, "tools/call", &format!(r#""name":"{name}","arguments":{arguments}"#));
}

fn cancel(stream: &mut UnixStream, id: u32) {
    line(stream, id, "notifications/cancelled", &format!(r#""requestId":{id}"#));
}

/// A server with few threads for handlers and one for admissions.
struct Narrow {
    server: Server,
    driver: Arc<Driver>,
}

impl Narrow {
    /// Creates a server with one thread for handlers, for which they wait for any time.
    fn new(router: Router, options: ServerOptions) -> Self {
        Self::bounded(router, options, PoolBounds { threads: 1, share: 1, abandoned: 0, patience: None })
    }

    fn bounded(router: Router, options: ServerOptions, bounds: PoolBounds) -> Self {
        let (server, driving) = Server::begin(router, options, |_| Box::pin(pending())).expect("a seed");
        let driver = Driver::new(driving, Callbacks::new(bounds, 1, None), Duration::MAX, None);
        driver.begin().expect("a thread");
        Self { server, driver }
    }

    /// Connects a client.
    fn connect(&self, kind: Kind) -> UnixStream {
        let (client, stream) = UnixStream::pair().expect("a pair");
        let connection = self.server.accept(kind, Peer::default(), false);
        self.driver.serve(connection, stream.into()).expect("threads");
        client
    }

    fn stop(&self) {
        block_on(self.server.stop(Duration::ZERO));
    }

    /// Returns the numbers of running requests, and of handlers whose response has no receiver.
    fn held(&self) -> (usize, usize) {
        let stats = self.server.stats();
        (stats.running, stats.abandoned_handlers)
    }
}

/// Creates a server whose tool reports when it is entered, and then waits to be released.
fn stuck() -> (Narrow, mpsc::Receiver<()>, mpsc::Sender<()>) {
    let (told, entered) = mpsc::channel();
    let (open, gate) = mpsc::channel::<()>();
    let (told, gate) = (Mutex::new(told), Mutex::new(gate));
    let router = Router::new("narrow", "1").tool(tool("stuck"), move |_cx, (): ()| {
        lock(&told).send(()).expect("heard");
        lock(&gate).recv_timeout(BOUND).expect("opened");
        Ok(())
    });
    (Narrow::new(router, ServerOptions::new()), entered, open)
}

// covers: B-174, B-187
#[test]
fn cancelled_request_does_not_wait_for_a_thread() {
    let (narrow, entered, open) = stuck();
    let waiting = || narrow.driver.callbacks.handlers.waiting();
    let mut client = narrow.connect(Kind::Lines);
    call(&mut client, 100);
    entered.recv_timeout(BOUND).expect("entered");
    (1..=20).for_each(|id| call(&mut client, id));
    until(|| waiting() == 20);
    (1..=20).for_each(|id| cancel(&mut client, id));
    until(|| waiting() == 0);
    assert_eq!(narrow.held(), (1, 0));
    open.send(()).expect("waits");
    until(|| narrow.held() == (0, 0));
    assert!(entered.try_recv().is_err(), "a handler of a cancelled request was run");
    drop(client);
    narrow.stop();
}

// covers: B-174, B-187
#[test]
fn handler_that_ignores_cancellation_counts_until_it_returns() {
    let (narrow, entered, open) = stuck();
    let mut client = narrow.connect(Kind::Lines);
    call(&mut client, 1);
    entered.recv_timeout(BOUND).expect("entered");
    assert_eq!(narrow.held(), (1, 0));
    cancel(&mut client, 1);
    until(|| narrow.held() == (0, 1));
    // A request that waits for the thread does not hold one.
    call(&mut client, 2);
    until(|| narrow.held() == (1, 1));
    cancel(&mut client, 2);
    until(|| narrow.held() == (0, 1));
    open.send(()).expect("waits");
    until(|| narrow.held() == (0, 0));
    // A disconnect of the client is a cancellation.
    call(&mut client, 3);
    entered.recv_timeout(BOUND).expect("entered");
    drop(client);
    until(|| narrow.held() == (0, 1));
    // So is the end of the server, which waits for no handler.
    narrow.stop();
    assert_eq!(narrow.held(), (0, 1));
    open.send(()).expect("waits");
    until(|| narrow.held() == (0, 0));
}

// covers: B-173
#[test]
fn server_that_shuts_down_sends_its_responses_before_it_closes() {
    let (narrow, entered, open) = stuck();
    let mut client = narrow.connect(Kind::Lines);
    call(&mut client, 7);
    entered.recv_timeout(BOUND).expect("entered");
    let said = std::thread::scope(|scope| {
        scope.spawn(|| narrow.stop());
        let mut said = String::new();
        client.read_to_string(&mut said).expect("an end in order");
        // The server waits for the other half of the connection.
        drop(client);
        said
    });
    assert!(said.contains(r#""id":7"#) && said.contains(r#""error""#), "{said:?}");
    open.send(()).expect("waits");
}

// covers: B-141
#[test]
fn stopped_server_requests_no_further_admission() {
    let (told, asked) = mpsc::channel();
    let (open, gate) = mpsc::channel::<()>();
    let (told, gate) = (Mutex::new(told), Mutex::new(gate));
    let options = ServerOptions::new().on_admit(move |_, _| {
        lock(&told).send(()).expect("heard");
        lock(&gate).recv_timeout(BOUND).expect("opened");
        mcp_proto::input::Admission::Accept(None)
    });
    let narrow = Narrow::new(Router::new("guarded", "1"), options);
    let clients: Vec<_> = (0..3)
        .map(|_| {
            let mut client = narrow.connect(Kind::HttpServer);
            let head =
                "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n";
            client.write_all(head.as_bytes()).expect("written");
            client
        })
        .collect();
    asked.recv_timeout(BOUND).expect("the first");
    until(|| narrow.driver.callbacks.others.waiting() == 2);
    drop(clients);
    narrow.stop();
    (0..3).for_each(|_| open.send(()).expect("a thread is in it"));
    drop(narrow);
    // The asking thread has ended, and has not asked again.
    assert_eq!(asked.recv_timeout(BOUND), Err(mpsc::RecvTimeoutError::Disconnected));
}

fn thread_name() -> String {
    std::thread::current().name().unwrap_or_default().to_owned()
}

// covers: B-131
#[test]
fn handlers_run_where_their_kind_says() {
    let (told, names) = mpsc::channel();
    let told = || {
        let told = Mutex::new(told.clone());
        move |what: &str| lock(&told).send((what.to_owned(), thread_name())).expect("heard")
    };
    let (inline, blocking, first, later) = (told(), told(), told(), Arc::new(told()));
    let router = Router::new("kinds", "1")
        .inline(|router| {
            router.tool(tool("inline"), move |_cx, (): ()| {
                inline("inline");
                Ok(())
            })
        })
        .tool(tool("blocking"), move |_cx, (): ()| {
            blocking("blocking");
            Ok(())
        })
        .tool_async(tool("ready"), move |_cx, (): ()| {
            first("ready");
            async { Ok(()) }
        })
        .tool_async(tool("later"), move |_cx, (): ()| {
            let (told, mut polled) = (Arc::clone(&later), false);
            std::future::poll_fn(move |cx| {
                told("later");
                if std::mem::replace(&mut polled, true) {
                    return Poll::Ready(Ok(()));
                }
                cx.waker().wake_by_ref();
                Poll::Pending
            })
        });
    let narrow = Narrow::new(router, ServerOptions::new());
    let mut client = narrow.connect(Kind::Lines);
    for (id, name) in [(1, "inline"), (2, "blocking"), (3, "ready"), (4, "later")] {
        call_tool(&mut client, id, name, "{}");
    }
    let mut seen: Vec<_> = (0..5).map(|_| names.recv_timeout(BOUND).expect("told")).collect();
    seen.sort();
    let seen: Vec<_> = seen.iter().map(|(what, thread)| (what.as_str(), thread.as_str())).collect();
    assert_eq!(
        seen,
        [
            ("blocking", "mcp-handler"),
            ("inline", "mcp-reader"),
            ("later", "mcp-handler"),
            ("later", "mcp-reader"),
            ("ready", "mcp-reader"),
        ]
    );
    drop(client);
    narrow.stop();
}

// covers: B-131
#[test]
fn answers_of_one_read_leave_in_one_write() {
    const CALLS: u32 = 12;
    let router = Router::new("batch", "1").inline(|router| router.tool(tool("stuck"), |_cx, (): ()| Ok("done")));
    let narrow = Narrow::new(router, ServerOptions::new());
    let (client, stream) = UnixStream::pair().expect("a pair");
    // All of them are there before the server reads.
    let mut calls = client.try_clone().expect("a descriptor");
    (1..=CALLS).for_each(|id| call(&mut calls, id));
    let writes = Arc::new(AtomicU32::new(0));
    let mut stream = Stream::from(stream);
    stream.direct = stream.direct.map(|direct| Box::new(Counted(direct, Arc::clone(&writes))) as Direct);
    let connection = narrow.server.accept(Kind::Lines, Peer::default(), false);
    narrow.driver.serve(connection, stream).expect("a thread");
    let mut answers = BufReader::new(&client).lines();
    (1..=CALLS).for_each(|_| assert!(answers.next().expect("an answer").expect("a line").contains("done")));
    assert_eq!(writes.load(Ordering::SeqCst), 1);
    drop((calls, client));
    narrow.stop();
}

/// Counts the writes to a stream.
struct Counted(Direct, Arc<AtomicU32>);

impl WriteNow for Counted {
    fn write_now(&self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        self.1.fetch_add(1, Ordering::SeqCst);
        self.0.write_now(pieces)
    }
}

#[derive(serde::Deserialize)]
struct Text {
    text: String,
}

// covers: B-131, S2-09
#[test]
fn inline_handlers_and_full_streams_do_not_deadlock() {
    const SIZE: usize = 1 << 20;
    let router = Router::new("large", "1").inline(|router| router.tool(tool("echo"), |_cx, echo: Text| Ok(echo.text)));
    let narrow = Narrow::new(router, ServerOptions::new());
    let client = narrow.connect(Kind::Lines);
    let mut writer = client.try_clone().expect("a descriptor");
    // The peer writes everything before it reads anything: the answers fill their direction
    // meanwhile, and the server has to read on.
    for id in 1..=4 {
        let text = "x".repeat(SIZE);
        call_tool(&mut writer, id, "echo", &format!(r#"{{"text":"{text}"}}"#));
    }
    let mut answers = BufReader::new(&client).lines();
    (1..=4).for_each(|_| assert!(answers.next().expect("an answer").expect("a line").len() > SIZE));
    // The thread that wrote what was too much ends with its connection, also after a write of
    // another thread has failed.
    client.shutdown(std::net::Shutdown::Read).expect("open");
    call_tool(&mut writer, 5, "echo", r#"{"text":"x"}"#);
    until(|| narrow.server.stats().channels == 0 && narrow.driver.detached() == 0);
    drop((writer, client));
    narrow.stop();
}
