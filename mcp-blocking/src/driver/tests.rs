//! Behaviour of waiting work that is not visible from outside.

use super::*;
use mcp_proto::adapter::{Server, ServerOptions, block_on};
use mcp_proto::exchange::Peer;
use mcp_proto::wired::Kind;
use mcp_proto::{Router, tool};
use std::future::pending;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
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
    line(stream, id, "tools/call", r#""name":"stuck","arguments":{}"#);
}

fn cancel(stream: &mut UnixStream, id: u32) {
    line(stream, id, "notifications/cancelled", &format!(r#""requestId":{id}"#));
}

/// A server with one thread for handlers and one for admissions.
struct Narrow {
    server: Server,
    driver: Arc<Driver>,
}

impl Narrow {
    fn new(router: Router, options: ServerOptions) -> Self {
        let (server, driving) = Server::begin(router, options, |_| Box::pin(pending())).expect("a seed");
        let driver = Driver::new(driving, Callbacks::new((1, 1), 1, None), Duration::MAX, None);
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
