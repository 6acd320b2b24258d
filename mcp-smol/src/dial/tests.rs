//! Connecting over real sockets: addresses that refuse, unresponsive addresses, and clients that
//! end while they connect.

use super::*;
use crate::{Client, ClientOptions, Router, Server, connect, connect_driven, serve_http, tool, tools};
use rustix::net::{AddressFamily, SocketType, bind, getsockname, listen, socket};
use serde::Deserialize;
use smol::Timer;
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::OwnedFd;
use std::time::Instant;

const LIMIT: Duration = Duration::from_secs(10);

#[derive(Deserialize)]
struct Nothing {}

/// An unresponsive address: the queue of its listener is full.
struct Hole {
    address: SocketAddr,
    _listener: OwnedFd,
    _queued: Vec<std::net::TcpStream>,
}

impl Hole {
    fn at(address: (Ipv4Addr, u16)) -> Self {
        let listener = socket(AddressFamily::INET, SocketType::STREAM, None).expect("a socket");
        rustix::net::sockopt::set_socket_reuseaddr(&listener, true).expect("an option");
        bind(&listener, &SocketAddr::from(address)).expect("a free port");
        listen(&listener, 0).expect("listens");
        let address = getsockname(&listener).expect("an address").try_into().expect("an address of the internet");
        let wait = Duration::from_millis(200);
        let queued = std::iter::from_fn(|| std::net::TcpStream::connect_timeout(&address, wait).ok()).collect();
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

/// Runs a test, which fails if it exceeds the time limit.
fn run<T>(test: impl Future<Output = T>) -> T {
    let bound = async {
        Timer::after(LIMIT * 2).await;
        panic!("the test takes too long")
    };
    smol::block_on(smol::future::or(test, bound))
}

async fn dialled(addresses: &[SocketAddr]) -> (Result<SocketAddr, Closed>, Duration) {
    let began = Instant::now();
    let end = dial(Attempts::new(addresses.iter().copied(), LIMIT), || began.elapsed()).await;
    (end.map(|(_, address)| address), began.elapsed())
}

async fn served() -> (Server, SocketAddr) {
    let router = Router::new("calc", "1").tool_async(tool("one"), |_cx, _: Nothing| async { Ok("1") });
    let server = serve_http(router, "127.0.0.1:0").await.expect("listens");
    let address = server.local_addr().expect("an address");
    (server, address)
}

async fn one(client: &Client) -> Option<String> {
    let result = client.call(tools::call("one")).await.ok()?;
    result.first_text().map(ToOwned::to_owned)
}

// covers: B-165
#[test]
fn unresponsive_address_does_not_block_the_next() {
    let (hole, live) = pair();
    let live_address = live.local_addr().expect("an address");
    let (address, took) = run(dialled(&[hole.address, live_address]));
    assert_eq!(address, Ok(live_address));
    assert!(took < LIMIT / 2, "{took:?}");
}

// covers: B-165
#[test]
fn refusing_address_is_skipped() {
    let dead = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("an address");
    let live = TcpListener::bind("127.0.0.1:0").expect("listens");
    let live_address = live.local_addr().expect("an address");
    let (address, took) = run(dialled(&[dead, live_address]));
    assert_eq!(address, Ok(live_address));
    assert!(took < LIMIT / 2, "{took:?}");
    assert_eq!(run(dialled(&[dead, dead])).0, Err(Closed::Refused));
}

#[test]
fn connection_disables_the_nagle_algorithm() {
    let live = TcpListener::bind("127.0.0.1:0").expect("listens");
    let addresses = [live.local_addr().expect("an address")];
    let (stream, _) = run(dial(Attempts::new(addresses, LIMIT), || Duration::ZERO)).expect("connected");
    assert_eq!(stream.nodelay().ok(), Some(true));
}

// On most systems `localhost` has an address of each family, and the other one is first.
// covers: B-165
#[test]
fn name_with_two_families_reaches_server_on_one() {
    run(async {
        let (_server, address) = served().await;
        let began = Instant::now();
        let client = connect(format!("http://localhost:{}/mcp", address.port())).await.expect("connected");
        assert_eq!(one(&client).await.as_deref(), Some("1"));
        assert!(began.elapsed() < LIMIT / 2, "{:?}", began.elapsed());
    });
}

// covers: B-165, B-087
#[test]
fn connect_times_out_if_no_address_responds() {
    let hole = Hole::at((Ipv4Addr::LOCALHOST, 0));
    let config = ClientOptions::new().set(|config| config.limits.frame.open_timeout = Duration::from_millis(300));
    run(async {
        let began = Instant::now();
        let (client, driver) = connect_driven(format!("http://{}/mcp", hole.address), config).expect("a target");
        let _driver = smol::spawn(driver);
        let failed = client.ready().await.expect_err("no address accepts");
        assert!(failed.to_string().contains(&Closed::Timeout.to_string()), "{failed}");
        assert!(began.elapsed() < LIMIT / 2, "{:?}", began.elapsed());
    });
}

/// A client that has lost its connection, and whose next one is never answered.
async fn stuck() -> (Hole, Client) {
    let (server, address) = served().await;
    let client = connect(format!("http://{address}/mcp")).await.expect("connected");
    assert_eq!(one(&client).await.as_deref(), Some("1"));
    server.stop(Duration::ZERO).await;
    while client.stats().channels > 0 {
        Timer::after(Duration::from_millis(2)).await;
    }
    (Hole::at((Ipv4Addr::LOCALHOST, address.port())), client)
}

#[test]
fn pending_connect_delays_neither_close_nor_drop() {
    run(async {
        let (hole, client) = stuck().await;
        let began = Instant::now();
        let waiting = client.start(tools::call("one"));
        client.close().await;
        waiting.await.expect_err("no answer");
        drop((hole, client));

        let (_hole, client) = stuck().await;
        drop(client.start(tools::call("one")));
        drop(client);
        assert!(began.elapsed() < LIMIT / 2, "{:?}", began.elapsed());
    });
}
