//! Web servers that stall, and calls without a timeout: each wait ends by its own timer.

use crate::calc::Text;
use crate::common::run;
use mcp_proto::exchange::{Closed, Sent};
use mcp_proto::limits::FrameLimits;
use mcp_smol::{CallError, Client, ClientOptions, connect_driven, tools};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Duration;

const DISCOVERED: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private"}}"#;

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
        read(&mut requests);
        let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length";
        let discovered = format!("{head}: {}\r\n\r\n{DISCOVERED}", DISCOVERED.len());
        stream.write_all(discovered.as_bytes()).expect("written");
        if let Stop::After(text) = stop {
            read(&mut requests);
            stream.write_all(text.as_bytes()).expect("written");
        }
        // Fails when the test is over.
        let _ = ended.recv();
    });
    (url, alive)
}

fn read(requests: &mut BufReader<TcpStream>) {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert!(requests.read_line(&mut head).expect("readable") > 0, "the end");
    }
    let head = head.to_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:")).expect("a length");
    let mut body = vec![0; length.trim().parse().expect("a number")];
    requests.read_exact(&mut body).expect("a body");
}

/// Creates a client without a timeout, with a limit for one of its waits.
fn patient(url: String, set: fn(&mut FrameLimits)) -> Client {
    let config = ClientOptions::new().set(move |config| {
        config.timeout = None;
        set(&mut config.limits.frame);
    });
    let (client, driver) = connect_driven(url, config).expect("a target");
    smol::spawn(driver).detach();
    client
}

fn ends(stop: Stop, text: usize, set: fn(&mut FrameLimits)) {
    run(async move {
        let (url, _alive) = server(stop);
        let client = patient(url, set);
        let call = tools::call("echo").arguments(&Text { text: "x".repeat(text) });
        let ended = client.call(call).await.expect_err("no answer");
        assert_eq!(ended, CallError::Closed { sent: Sent::Maybe, why: Closed::Timeout });
    });
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
