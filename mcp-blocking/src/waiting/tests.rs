//! Callers that read for themselves, on the streams of the system.

use crate::{Client, Router, connect, serve_http, tool, tools};
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

fn router() -> Router {
    Router::new("waiting", "1").tool(tool("say"), |_cx, ()| Ok("text"))
}

fn say(client: &Client) {
    let said = client.call(tools::call("say")).expect("an answer");
    assert_eq!(said.first_text(), Some("text"));
}

/// Reads one message, whose body has a length.
fn message(stream: &mut TcpStream) -> Vec<u8> {
    let (mut read, mut byte) = (Vec::new(), [0]);
    while !read.ends_with(b"\r\n\r\n") {
        if stream.read(&mut byte).expect("read") == 0 {
            return Vec::new();
        }
        read.push(byte[0]);
    }
    let head = String::from_utf8(read.clone()).expect("text").to_lowercase();
    let length = head.split("content-length:").nth(1).and_then(|rest| rest.lines().next()?.trim().parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    stream.read_exact(&mut body).expect("read");
    [read, body].concat()
}

/// Passes each request on to a server, and closes the connection after three answers, which do
/// not say so. Reports each close.
fn closing_proxy(server: SocketAddr, closed: &mpsc::Sender<()>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("an address");
    let (address, closed) = (listener.local_addr().expect("an address"), closed.clone());
    thread::spawn(move || {
        for client in listener.incoming() {
            let (mut client, closed) = (client.expect("a client"), closed.clone());
            thread::spawn(move || {
                let mut to = TcpStream::connect(server).expect("a server");
                // A caller reads the third answer itself.
                for _ in 0..3 {
                    to.write_all(&message(&mut client)).expect("written");
                    client.write_all(&message(&mut to)).expect("written");
                }
                client.shutdown(Shutdown::Both).expect("shut down");
                let _ = closed.send(());
            });
        }
    });
    address
}

/// The reading thread has not noticed it yet, since it leaves the socket to callers for a while.
#[test]
fn request_is_not_sent_to_a_socket_that_its_peer_closed() {
    let server = serve_http(router(), "127.0.0.1:0").expect("an address");
    let (closed, closes) = mpsc::channel();
    let proxy = closing_proxy(server.local_addr().expect("an address"), &closed);
    let client = connect(format!("http://{proxy}/mcp")).expect("connected");
    for _ in 0..100 {
        say(&client);
        while closes.recv_timeout(Duration::from_millis(5)).is_ok() {}
    }
    client.close();
}

#[test]
fn call_that_is_made_long_after_another_is_answered() {
    let client = connect(router()).expect("connected");
    for pause in [0, 0, 5, 15, 30, 0, 0] {
        thread::sleep(Duration::from_millis(pause));
        say(&client);
    }
    client.close();
}

#[test]
fn cancelled_call_does_not_wait_for_its_answer() {
    let router = router().tool_async(tool("never"), |_cx, ()| std::future::pending::<Result<String, _>>());
    let client = connect(router).expect("connected");
    (0..3).for_each(|_| say(&client));
    let pending = client.start(tools::call("never"));
    let id = pending.id().expect("a call");
    let other = client.clone();
    let cancelling = thread::spawn(move || {
        thread::sleep(Duration::from_millis(50));
        other.cancel(id, None);
    });
    let began = Instant::now();
    pending.wait().expect_err("cancelled");
    assert!(began.elapsed() < Duration::from_secs(10));
    cancelling.join().expect("no panic");
    let pending = client.start(tools::call("never"));
    let pending = pending.wait_timeout(Duration::from_millis(20)).expect_err("no answer");
    drop(pending);
    say(&client);
    client.close();
}
