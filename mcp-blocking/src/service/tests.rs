//! What waits inside, which cannot be seen from outside.

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

/// A server with one thread and a tool that is stuck: tells when it is entered, and waits to be let go.
fn narrow() -> (Arc<Service>, mpsc::Receiver<()>, mpsc::Sender<()>) {
    let (told, entered) = mpsc::channel();
    let (open, gate) = mpsc::channel::<()>();
    let (told, gate) = (Mutex::new(told), Mutex::new(gate));
    let router = Router::new("narrow", "1").tool(tool("stuck"), move |_cx, (): ()| {
        lock(&told).send(()).expect("heard");
        lock(&gate).recv_timeout(BOUND).expect("opened");
    });
    (Service::start(router, Serving::new().threads(1)).expect("a thread"), entered, open)
}

/// A client of it.
fn joined(service: &Arc<Service>, kind: Kind) -> UnixStream {
    let (client, stream) = UnixStream::pair().expect("a pair");
    service.join(kind, Peer::default(), stream.into()).expect("threads").expect("room");
    client
}

// covers: B-174, B-187
#[test]
fn a_request_that_is_cancelled_waits_for_no_thread() {
    let (service, entered, open) = narrow();
    let mut client = joined(&service, Kind::Lines);
    line(&mut client, 0, "tools/call", r#""name":"stuck","arguments":{}"#);
    entered.recv_timeout(BOUND).expect("entered");
    for id in 1..=20 {
        line(&mut client, id, "tools/call", r#""name":"stuck","arguments":{}"#);
    }
    until(|| service.tasks.waiting() == 20);
    for id in 1..=20 {
        line(&mut client, id, "notifications/cancelled", &format!(r#""requestId":{id}"#));
    }
    until(|| service.tasks.waiting() == 0);
    assert_eq!(service.stats().running, 1);
    open.send(()).expect("waits");
    until(|| service.stats().running == 0);
    assert!(entered.try_recv().is_err(), "a handler of a cancelled request was run");
    service.stop(Duration::ZERO);
}

// covers: B-174, B-187
#[test]
fn handler_that_ignores_its_cancellation_is_counted_until_it_returns() {
    let (service, entered, open) = narrow();
    let held = || (service.stats().running, service.stats().abandoned_handlers);
    let mut client = joined(&service, Kind::Lines);
    line(&mut client, 1, "tools/call", r#""name":"stuck","arguments":{}"#);
    entered.recv_timeout(BOUND).expect("entered");
    assert_eq!(held(), (1, 0));
    line(&mut client, 1, "notifications/cancelled", r#""requestId":1"#);
    until(|| held() == (0, 1));
    // One that waits for the thread holds none.
    line(&mut client, 2, "tools/call", r#""name":"stuck","arguments":{}"#);
    until(|| held() == (1, 1));
    line(&mut client, 2, "notifications/cancelled", r#""requestId":2"#);
    until(|| held() == (0, 1));
    open.send(()).expect("waits");
    until(|| held() == (0, 0));
    // A client that leaves has cancelled.
    line(&mut client, 3, "tools/call", r#""name":"stuck","arguments":{}"#);
    entered.recv_timeout(BOUND).expect("entered");
    drop(client);
    until(|| held() == (0, 1));
    // So does the end of the server, which waits for no handler.
    service.stop(Duration::ZERO);
    assert_eq!(held(), (0, 1));
    open.send(()).expect("waits");
    until(|| held() == (0, 0));
}

// covers: B-173
#[test]
fn what_the_engine_has_said_is_delivered_before_a_connection_is_closed() {
    let (service, entered, open) = narrow();
    let mut client = joined(&service, Kind::Lines);
    line(&mut client, 7, "tools/call", r#""name":"stuck","arguments":{}"#);
    entered.recv_timeout(BOUND).expect("entered");
    // The engine answers and has ended, and whoever made it do so has not come to its deliveries yet.
    let mut desk = service.lock();
    desk.engine.shutdown(service.clock.now(), Duration::ZERO);
    assert!(desk.engine.is_terminated());
    let mut late = Todo::default();
    desk.collect(&mut late, None);
    let connections: Vec<_> = desk.connections.values().cloned().collect();
    drop(desk);
    connections.iter().for_each(|connection| connection.close(&service));
    let mut said = String::new();
    client.read_to_string(&mut said).expect("an end in order");
    assert!(said.contains(r#""id":7"#) && said.contains(r#""error""#), "{said:?}");
    drop(client);
    service.work(late);
    open.send(()).expect("waits");
    service.stop(Duration::ZERO);
}

// covers: B-141
#[test]
fn a_server_that_was_stopped_asks_about_no_further_request() {
    let (told, asked) = mpsc::channel();
    let (open, gate) = mpsc::channel::<()>();
    let (told, gate) = (Mutex::new(told), Mutex::new(gate));
    let serving = Serving::new().threads(1).on_admit(move |_, _| {
        lock(&told).send(()).expect("heard");
        lock(&gate).recv_timeout(BOUND).expect("opened");
        Admission::Accept(None)
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
    until(|| service.admissions.as_ref().is_some_and(|asked| asked.waiting() == 2));
    drop(clients);
    service.stop(Duration::ZERO);
    (0..3).for_each(|_| open.send(()).expect("a thread is in it"));
    drop(service);
    // Whoever asks is gone, and has asked no more.
    assert_eq!(asked.recv_timeout(BOUND), Err(mpsc::RecvTimeoutError::Disconnected));
}
