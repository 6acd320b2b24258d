//! Behaviour of waiting work that is not visible from outside.

use super::*;
use mcp_proto::tool;
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

/// Creates a server with one thread and a tool that reports when it is entered and then waits to be
/// released.
fn narrow() -> (Arc<Service>, mpsc::Receiver<()>, mpsc::Sender<()>) {
    let (told, entered) = mpsc::channel();
    let (open, gate) = mpsc::channel::<()>();
    let (told, gate) = (Mutex::new(told), Mutex::new(gate));
    let router = Router::new("narrow", "1").tool(tool("stuck"), move |_cx, (): ()| {
        lock(&told).send(()).expect("heard");
        lock(&gate).recv_timeout(BOUND).expect("opened");
        Ok(())
    });
    (Service::start(router, ServerOptions::new().threads(1)).expect("a thread"), entered, open)
}

/// Connects a client to it.
fn joined(service: &Arc<Service>, kind: Kind) -> UnixStream {
    let (client, stream) = UnixStream::pair().expect("a pair");
    service.accept(kind, Peer::default(), stream.into()).expect("threads");
    client
}

// covers: B-174, B-187
#[test]
fn cancelled_request_does_not_wait_for_a_thread() {
    let (service, entered, open) = narrow();
    let mut client = joined(&service, Kind::Lines);
    line(&mut client, 0, "tools/call", r#""name":"stuck","arguments":{}"#);
    entered.recv_timeout(BOUND).expect("entered");
    for id in 1..=20 {
        line(&mut client, id, "tools/call", r#""name":"stuck","arguments":{}"#);
    }
    until(|| service.handlers.waiting() == 20);
    for id in 1..=20 {
        line(&mut client, id, "notifications/cancelled", &format!(r#""requestId":{id}"#));
    }
    until(|| service.handlers.waiting() == 0);
    assert_eq!(service.stats().running, 1);
    open.send(()).expect("waits");
    until(|| service.stats().running == 0);
    assert!(entered.try_recv().is_err(), "a handler of a cancelled request was run");
    service.stop(Duration::ZERO);
}

// covers: B-174, B-187
#[test]
fn handler_that_ignores_cancellation_counts_until_it_returns() {
    let (service, entered, open) = narrow();
    let held = || (service.stats().running, service.stats().abandoned_handlers);
    let mut client = joined(&service, Kind::Lines);
    line(&mut client, 1, "tools/call", r#""name":"stuck","arguments":{}"#);
    entered.recv_timeout(BOUND).expect("entered");
    assert_eq!(held(), (1, 0));
    line(&mut client, 1, "notifications/cancelled", r#""requestId":1"#);
    until(|| held() == (0, 1));
    // A request that waits for the thread does not hold one.
    line(&mut client, 2, "tools/call", r#""name":"stuck","arguments":{}"#);
    until(|| held() == (1, 1));
    line(&mut client, 2, "notifications/cancelled", r#""requestId":2"#);
    until(|| held() == (0, 1));
    open.send(()).expect("waits");
    until(|| held() == (0, 0));
    // A disconnect of the client is a cancellation.
    line(&mut client, 3, "tools/call", r#""name":"stuck","arguments":{}"#);
    entered.recv_timeout(BOUND).expect("entered");
    drop(client);
    until(|| held() == (0, 1));
    // So is the end of the server, which waits for no handler.
    service.stop(Duration::ZERO);
    assert_eq!(held(), (0, 1));
    open.send(()).expect("waits");
    until(|| held() == (0, 0));
}

// covers: B-173
#[test]
fn server_that_shuts_down_sends_its_responses_before_it_closes() {
    let (service, entered, open) = narrow();
    let mut client = joined(&service, Kind::Lines);
    line(&mut client, 7, "tools/call", r#""name":"stuck","arguments":{}"#);
    entered.recv_timeout(BOUND).expect("entered");
    let mut todo = Todo::default();
    let mut desk = service.lock();
    desk.engine.shutdown(service.clock.now(), Duration::ZERO);
    assert!(!desk.engine.is_terminated(), "the connection is open");
    desk.collect(&service.link, &mut todo, None);
    drop(desk);
    service.work(todo);
    let mut said = String::new();
    client.read_to_string(&mut said).expect("an end in order");
    assert!(said.contains(r#""id":7"#) && said.contains(r#""error""#), "{said:?}");
    drop(client);
    open.send(()).expect("waits");
    service.stop(Duration::ZERO);
    assert!(service.lock().engine.is_terminated());
}

// covers: B-141
#[test]
fn stopped_server_requests_no_further_admission() {
    let (told, asked) = mpsc::channel();
    let (open, gate) = mpsc::channel::<()>();
    let (told, gate) = (Mutex::new(told), Mutex::new(gate));
    let serving = ServerOptions::new().threads(1).on_admit(move |_, _| {
        lock(&told).send(()).expect("heard");
        lock(&gate).recv_timeout(BOUND).expect("opened");
        mcp_proto::input::Admission::Accept(None)
    });
    let service = Service::start(Router::new("guarded", "1"), serving).expect("a thread");
    let clients: Vec<_> = (0..3)
        .map(|_| {
            let mut client = joined(&service, Kind::HttpServer);
            let head =
                "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n";
            client.write_all(head.as_bytes()).expect("written");
            client
        })
        .collect();
    asked.recv_timeout(BOUND).expect("the first");
    until(|| service.admissions.waiting() == 2);
    drop(clients);
    service.stop(Duration::ZERO);
    (0..3).for_each(|_| open.send(()).expect("a thread is in it"));
    drop(service);
    // The asking thread has ended, and has not asked again.
    assert_eq!(asked.recv_timeout(BOUND), Err(mpsc::RecvTimeoutError::Disconnected));
}
