//! Connecting over real sockets: addresses that refuse, unresponsive addresses, and clients that
//! end while they connect.

use super::*;
use crate::{Client, ClientOptions, Router, connect, connect_with, serve_http, tools};
use mcp_proto::tool;
use rustix::net::{AddressFamily, SocketType, bind, getsockname, listen, socket};
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::OwnedFd;
use std::thread;
use std::time::Instant;

const LIMIT: Duration = Duration::from_secs(10);

/// An unresponsive address: the queue of its listener is full.
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

/// Returns two addresses with one port, like those of a name with two addresses.
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
    let end = dial(Attempts::new(addresses.iter().copied(), LIMIT), || began.elapsed());
    (end.map(|(socket, _)| socket), began.elapsed())
}

fn calc() -> Router {
    Router::new("calc", "1").tool(tool("one"), |_cx, ()| Ok("1"))
}

fn one(client: &Client) -> Option<String> {
    let result = client.call(tools::call("one")).ok()?;
    result.first_text().map(ToOwned::to_owned)
}

// covers: B-165
#[test]
fn unresponsive_address_does_not_block_the_next() {
    let (hole, live) = pair();
    let (socket, took) = dialled(&[hole.address, live.local_addr().expect("an address")]);
    assert_eq!(socket.expect("connected").peer_addr().ok(), live.local_addr().ok());
    assert!(took < LIMIT / 2, "{took:?}");
}

// covers: B-165
#[test]
fn refusing_address_is_skipped() {
    let dead = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("an address");
    let live = TcpListener::bind("127.0.0.1:0").expect("listens");
    let (socket, took) = dialled(&[dead, live.local_addr().expect("an address")]);
    assert_eq!(socket.expect("connected").peer_addr().ok(), live.local_addr().ok());
    assert!(took < LIMIT / 2, "{took:?}");
    assert_eq!(dialled(&[dead, dead]).0.err(), Some(Closed::Refused));
}

#[test]
fn connection_disables_the_nagle_algorithm() {
    let live = TcpListener::bind("127.0.0.1:0").expect("listens");
    let (socket, _) = dialled(&[live.local_addr().expect("an address")]);
    assert_eq!(socket.expect("connected").nodelay().ok(), Some(true));
}

// On most systems `localhost` has an address of each family, and the other one is first.
// covers: B-165
#[test]
fn name_with_two_families_reaches_server_on_one() {
    let server = serve_http(calc(), "127.0.0.1:0").expect("listens");
    let began = Instant::now();
    let client = connect(format!("http://localhost:{}/mcp", server.local_addr().expect("an address").port()))
        .expect("connected");
    assert_eq!(one(&client).as_deref(), Some("1"));
    assert!(began.elapsed() < LIMIT / 2, "{:?}", began.elapsed());
}

// covers: B-165, B-087
#[test]
fn connect_times_out_if_no_address_responds() {
    let hole = Hole::at((Ipv4Addr::LOCALHOST, 0));
    let config = ClientOptions::new().set(|config| config.limits.frame.open_timeout = Duration::from_millis(300));
    let began = Instant::now();
    let failed = connect_with(format!("http://{}/mcp", hole.address), config).expect_err("no address accepts");
    assert!(failed.to_string().contains(&Closed::Timeout.to_string()), "{failed}");
    assert!(began.elapsed() < LIMIT / 2, "{:?}", began.elapsed());
}

/// Creates a client that has lost its connection, and whose next one is never accepted. Its thread
/// cannot be woken.
fn stuck() -> (Hole, Client) {
    let server = serve_http(calc(), "127.0.0.1:0").expect("listens");
    let address = server.local_addr().expect("an address");
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
fn pending_connect_delays_neither_close_nor_drop() {
    let (hole, client) = stuck();
    let began = Instant::now();
    let waiting = client.start(tools::call("one"));
    client.close();
    assert!(waiting.wait().is_err());
    assert_eq!(client.stats().detached_threads, 1, "it is left alone, and counted");
    drop(hole);

    let (_hole, client) = stuck();
    let waiting = client.start(tools::call("one"));
    drop(waiting);
    drop(client);
    assert!(began.elapsed() < LIMIT / 2, "{:?}", began.elapsed());
}
