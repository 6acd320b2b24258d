//! What waits inside, which cannot be seen from outside.

use super::*;
use mcp_proto::tool;
use std::io::Write;
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

// covers: B-174, B-187
#[test]
fn a_request_that_is_cancelled_waits_for_no_thread() {
    let (told, entered) = mpsc::channel();
    let (open, gate) = mpsc::channel::<()>();
    let (told, gate) = (Mutex::new(told), Mutex::new(gate));
    let router = Router::new("narrow", "1").tool(tool("stuck"), move |_cx, (): ()| {
        lock(&told).send(()).expect("heard");
        lock(&gate).recv_timeout(BOUND).expect("opened");
    });
    let service = Service::start(router, Serving::new().threads(1)).expect("a thread");
    let (mut client, stream) = UnixStream::pair().expect("a pair");
    service.join(Kind::Lines, Peer::default(), stream.into()).expect("threads").expect("room");
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
