//! Web servers that stall, and calls without a timeout: each wait ends by its own timer.

use super::raw::{DISCOVERED, json, read_message};
use super::*;
use mcp_proto::limits::FrameLimits;
use std::io::{BufReader, Write};
use std::net::TcpListener;
use std::sync::mpsc::{Sender, channel};
use std::thread;

/// How a server stalls at a call.
#[derive(Clone, Copy)]
enum Stop {
    /// It does not read the request.
    Deaf,
    /// It writes this and nothing more.
    After(&'static str),
}

/// Returns the URL of a server that responds to `server/discover`. It keeps its connections while
/// the sender lives.
fn server(stop: Stop) -> (String, Sender<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("listens");
    let url = format!("http://{}/mcp", listener.local_addr().expect("an address"));
    let (alive, ended) = channel();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a connection");
        let mut requests = BufReader::new(stream.try_clone().expect("a clone"));
        read_message(&mut requests).expect("a request");
        let discovered = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{DISCOVERED}}}"#);
        stream.write_all(json("200 OK", &discovered).as_bytes()).expect("written");
        if let Stop::After(text) = stop {
            read_message(&mut requests).expect("a request");
            stream.write_all(text.as_bytes()).expect("written");
        }
        // Fails when the test is over.
        let _ = ended.recv();
    });
    (url, alive)
}

/// Creates a client without a timeout, with a limit for one of its waits.
fn patient(url: String, set: fn(&mut FrameLimits)) -> Client {
    let config = ClientOptions::new().set(move |config| {
        config.timeout = None;
        set(&mut config.limits.frame);
    });
    connect_with(url, config).wait().expect("connected")
}

fn ends(stop: Stop, text: usize, set: fn(&mut FrameLimits)) {
    let _limit = limit();
    let (url, _alive) = server(stop);
    let client = patient(url, set);
    let call = tools::call("echo").arguments(&Text { text: "x".repeat(text) });
    let ended = client.call(call).wait().expect_err("no answer");
    assert_eq!(ended, CallError::Closed { sent: Sent::Maybe, why: Closed::Timeout });
}

/// Long enough for `server/discover` on a busy machine, which it applies to as well.
const SHORT: Duration = Duration::from_secs(2);

// covers: B-164
#[test]
fn server_that_reads_no_request_fails_the_call() {
    ends(Stop::Deaf, 8 << 20, |limits| limits.write_stall = SHORT);
}

// covers: B-164
#[test]
fn response_timeout_fails_the_call() {
    ends(Stop::After(""), 1, |limits| limits.response_timeout = Some(SHORT));
    ends(Stop::After("HTTP/1.1 200 O"), 1, |limits| limits.response_timeout = Some(SHORT));
}

// covers: B-164
#[test]
fn server_that_stalls_in_its_response_fails_the_call() {
    const HEAD: &str = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{";
    ends(Stop::After(HEAD), 1, |limits| limits.body_timeout = SHORT);
}
