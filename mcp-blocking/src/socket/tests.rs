//! Connecting, over real sockets: addresses that refuse, addresses that never answer, and clients that end while they connect.

use super::*;
use crate::{Client, Config, Router, connect, connect_with, serve_http, tools};
use mcp_proto::tool;
use rustix::net::{AddressFamily, SocketType, bind, getsockname, listen, socket};
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::OwnedFd;
use std::thread;
use std::time::Instant;

const LIMIT: Duration = Duration::from_secs(10);

/// An address where connections are neither accepted nor refused: the queue of its listener is full.
struct Hole {
    address: SocketAddr,
    _listener: OwnedFd,
    _queued: Vec<TcpStream>,
}

impl Hole {
    fn at(address: (Ipv4Addr, u16)) -> Self {
        let listener = socket(AddressFamily::INET, SocketType::STREAM, None).expect("a socket");
        rustix::net::sockopt::set_socket_reuseaddr(&listener, true).expect("an option");
        bind(&listener, &SocketAddr::from(address)).expect("a free port");
        listen(&listener, 0).expect("listens");
        let address = getsockname(&listener).expect("an address").try_into().expect("an address of the internet");
        let wait = Duration::from_millis(200);
        let queued = std::iter::from_fn(|| TcpStream::connect_timeout(&address, wait).ok()).collect();
        Self { address, _listener: listener, _queued: queued }
    }
}

/// Two addresses with one port, as a name has that is known by both.
fn pair() -> (Hole, TcpListener) {
    loop {
        let live = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("listens");
        let port = live.local_addr().expect("an address").port();
        let other = Ipv4Addr::new(127, 0, 0, 2);
        if TcpListener::bind((other, port)).is_ok() {
            return (Hole::at((other, port)), live);
        }
    }
}

fn dialled(addresses: &[SocketAddr]) -> (Result<TcpStream, Closed>, Duration) {
    let began = Instant::now();
    let end = dial(addresses.iter().copied(), LIMIT, || began.elapsed());
    (end, began.elapsed())
}

fn calc() -> Router {
    Router::new("calc", "1").add(tool("one"), crate::Handler::new(|cx| cx.outcome(Ok::<_, mcp_proto::ToolError>("1"))))
}

fn one(client: &Client) -> Option<String> {
    let result = client.call(tools::call("one")).ok()?;
    result.first_text().map(ToOwned::to_owned)
}

// covers: B-165
#[test]
fn an_address_that_does_not_answer_does_not_keep_the_next_one_waiting() {
    let (hole, live) = pair();
    let (socket, took) = dialled(&[hole.address, live.local_addr().expect("an address")]);
    assert_eq!(socket.expect("connected").peer_addr().ok(), live.local_addr().ok());
    assert!(took < LIMIT / 2, "{took:?}");
}

// covers: B-165
#[test]
fn an_address_that_refuses_is_passed_over() {
    let dead = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("an address");
    let live = TcpListener::bind("127.0.0.1:0").expect("listens");
    let (socket, took) = dialled(&[dead, live.local_addr().expect("an address")]);
    assert_eq!(socket.expect("connected").peer_addr().ok(), live.local_addr().ok());
    assert!(took < LIMIT / 2, "{took:?}");
    assert_eq!(dialled(&[dead, dead]).0.err(), Some(Closed::Refused));
}

#[test]
fn a_connection_waits_for_no_acknowledgement() {
    let live = TcpListener::bind("127.0.0.1:0").expect("listens");
    let (socket, _) = dialled(&[live.local_addr().expect("an address")]);
    assert_eq!(socket.expect("connected").nodelay().ok(), Some(true));
}

// `localhost` has an address of either family on most systems, and the other one comes first.
// covers: B-165
#[test]
fn a_server_on_one_family_is_found_by_a_name_that_has_both() {
    let server = serve_http(calc(), "127.0.0.1:0").expect("listens");
    let began = Instant::now();
    let client = connect(format!("http://localhost:{}/mcp", server.local_addr().port())).expect("connected");
    assert_eq!(one(&client).as_deref(), Some("1"));
    assert!(began.elapsed() < LIMIT / 2, "{:?}", began.elapsed());
}

// covers: B-165, B-087
#[test]
fn where_no_address_answers_the_connect_ends_in_time() {
    let hole = Hole::at((Ipv4Addr::LOCALHOST, 0));
    let config = Config::new().set(|config| config.limits.frame.open_timeout = Duration::from_millis(300));
    let began = Instant::now();
    let failed = connect_with(format!("http://{}/mcp", hole.address), config).expect_err("nobody answers");
    assert!(failed.to_string().contains(&Closed::Timeout.to_string()), "{failed}");
    assert!(began.elapsed() < LIMIT / 2, "{:?}", began.elapsed());
}

/// A client that has lost its connection, and whose next one is never answered: what its thread waits for, it cannot be woken from.
fn stuck() -> (Hole, Client) {
    let server = serve_http(calc(), "127.0.0.1:0").expect("listens");
    let address = server.local_addr();
    let client = connect(format!("http://{address}/mcp")).expect("connected");
    assert_eq!(one(&client).as_deref(), Some("1"));
    drop(server);
    let end = Instant::now() + LIMIT;
    while client.stats().channels > 0 {
        assert!(Instant::now() < end, "the connection has not ended");
        thread::park_timeout(Duration::from_millis(2));
    }
    (Hole::at((Ipv4Addr::LOCALHOST, address.port())), client)
}

#[test]
fn a_thread_that_cannot_connect_keeps_neither_close_nor_drop_waiting() {
    let (hole, client) = stuck();
    let began = Instant::now();
    let waiting = client.start(tools::call("one")).expect("begun");
    client.close();
    assert!(waiting.wait().is_err());
    assert_eq!(client.stats().detached_threads, 1, "it is left alone, and counted");
    drop(hole);

    let (_hole, client) = stuck();
    let waiting = client.start(tools::call("one")).expect("begun");
    drop(waiting);
    drop(client);
    assert!(began.elapsed() < LIMIT / 2, "{:?}", began.elapsed());
}
