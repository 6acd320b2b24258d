//! How often a client takes its lock.

use super::Client;
use crate::front::{DrivenConnection, DriverHandle, Task, TurnResult};
use crate::{ClientOptions, Step};
use alloc::boxed::Box;
use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;
use bytes::Bytes;
use core::future::{Future, pending};
use core::pin::pin;
use core::sync::atomic::Ordering;
use core::task::{Context, Waker};
use mcp_proto::client::{ClientConfig, Policy};
use mcp_proto::exchange::Peer;
use std::task::Wake;

/// The task of a driver. [`Waker::noop`] need not be equal to itself.
struct Woken;

impl Wake for Woken {
    fn wake(self: Arc<Self>) {}
}

/// What a driver on an executor does in one poll. The peer has sent this.
fn poll(driving: &DriverHandle, connections: &mut Vec<DrivenConnection>, task: &Waker, mut sent: Option<&str>) {
    let mut cx = Context::from_waker(task);
    loop {
        let mut moved = false;
        while let Some(task) = driving.next_task() {
            moved = true;
            if let Task::Open(mut connection, _) = task {
                let now = connection.clock().now();
                assert!(connection.transfer().opened(now, Peer::default(), false));
                connections.push(connection);
            }
        }
        for connection in &mut *connections {
            for _ in 0..2 {
                while connection.turn(task) != TurnResult::Done {}
                while connection.next_task().is_some() {}
                let written = connection.transfer().step().map(|step| match step {
                    Step::Write(pieces) => pieces.slices().iter().map(|slice| slice.len()).sum(),
                    Step::Flush | Step::End => 0,
                });
                let read = sent.filter(|_| connection.wants_read());
                match (written, read) {
                    (Some(n), _) => connection.transfer().wrote(Ok(n)),
                    (None, Some(text)) => {
                        connection.transfer().read(Ok(Bytes::copy_from_slice(text.as_bytes())));
                        sent = None;
                    }
                    (None, None) => break,
                }
                moved = true;
            }
        }
        if driving.poll_timeout().is_some_and(|due| due <= driving.clock().now()) {
            driving.handle_timeout();
            moved = true;
        }
        if !moved && driving.poll_woken(&mut cx).is_pending() {
            return;
        }
    }
}

/// Returns how often this takes the lock of the client.
fn locks<T>(client: &Client, run: impl FnOnce() -> T) -> (usize, T) {
    let count = || client.shared().looks.load(Ordering::Relaxed);
    let before = count();
    let value = run();
    (count() - before, value)
}

#[test]
fn line_of_an_event_stream_takes_few_locks() {
    const SERVER: &str = concat!(
        r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"#,
        r#""capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private"}}"#
    );
    const STREAM: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
    const RESULT: &str = r#"{"jsonrpc":"2.0","id":2,"result":{"resultType":"complete","content":[]}}"#;
    let mut config = ClientConfig::url("http://localhost/mcp").expect("a url");
    config.policy = Policy::Modern;
    let (client, driving) = Client::begin(config, ClientOptions::new(), |_| Box::pin(pending())).expect("a seed");
    let mut call = pin!(client.start(mcp_proto::tools::call("t")));
    let (mut connections, task) = (Vec::new(), Waker::from(Arc::new(Woken)));
    poll(&driving, &mut connections, &task, None);
    let head = format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n", SERVER.len());
    poll(&driving, &mut connections, &task, Some(&(head + SERVER)));
    poll(&driving, &mut connections, &task, Some(STREAM));
    let mut cx = Context::from_waker(Waker::noop());
    assert!(call.as_mut().poll(&mut cx).is_pending());
    let (idle, ()) = locks(&client, || poll(&driving, &mut connections, &task, None));
    let line = format!("data: {RESULT}\n\n");
    let rest = format!("{:x}\r\n{line}\r\n0\r\n\r\n", line.len());
    let (delivered, ()) = locks(&client, || poll(&driving, &mut connections, &task, Some(&rest)));
    let (collected, result) = locks(&client, || call.as_mut().poll(&mut cx));
    assert!(result.is_ready(), "it has its result");
    assert_eq!(locks(&client, || driving.next_task().is_none()), (0, true));
    assert!(idle <= 2 && delivered <= 4 && collected == 1, "{idle}, {delivered} and {collected} locks");
}
