//! The memory of a client whose application drops its fetches.

use crate::alone;
use mcp_smol::{Client, FetchRequest, HttpTarget, Router, connect, serve_http};
use mcp_tests::heap::used;
use smol::future::poll_once;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener};
use std::pin::pin;
use std::thread;
use std::time::{Duration, Instant};

const COUNT: u64 = 100;
const SIZE: usize = 900_000;
const BOUND: Duration = Duration::from_secs(30);

/// Returns the address of a web server that answers every request with a body of [`SIZE`].
fn web_server() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("it listens");
    let address = listener.local_addr().expect("an address");
    // It is memory of this process, too: before a test begins to count.
    let body = vec![b'x'; SIZE];
    thread::spawn(move || {
        for mut client in listener.incoming().flatten() {
            let mut lines = BufReader::new(client.try_clone().expect("a clone")).lines();
            while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
            let head = format!("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {SIZE}\r\n\r\n");
            // The client may abort the connection.
            let _ = client.write_all(head.as_bytes()).and_then(|()| client.write_all(&body));
        }
    });
    address
}

/// Begins a fetch, and drops it as soon as `ready` is true.
async fn drop_one(client: &Client, url: &str, ready: impl Fn(&Client) -> bool) {
    let request = FetchRequest::get(HttpTarget::parse(url).expect("it is a URL"));
    let mut fetch = pin!(client.fetch(request));
    // On a busy machine, the response may be there before the first poll.
    let outcome = poll_once(&mut fetch).await;
    assert!(outcome.as_ref().is_none_or(Result::is_ok), "{outcome:?}");
    drop(outcome);
    let end = Instant::now() + BOUND;
    while !ready(client) {
        assert!(Instant::now() < end, "it is not ready");
        smol::Timer::after(Duration::from_millis(1)).await;
    }
}

#[test]
fn dropped_fetches_hold_nothing() {
    let _alone = alone();
    let server = smol::block_on(serve_http(Router::new("held", "1"), "127.0.0.1:0")).expect("it listens");
    let url = format!("http://{}/mcp", server.local_addr().expect("an address"));
    let page = format!("http://{}/page", web_server());
    smol::block_on(async {
        let client = connect(&*url).await.expect("connected");
        let before = used();
        // Before the response, and after the whole of it.
        for _ in 0..COUNT {
            drop_one(&client, &page, |_| true).await;
        }
        for _ in 0..COUNT {
            let seen = client.stats().traffic.bytes_in;
            drop_one(&client, &page, |client| client.stats().traffic.bytes_in >= seen + SIZE as u64).await;
        }
        let end = Instant::now() + BOUND;
        while client.stats().channels > 1 {
            assert!(Instant::now() < end, "connections are left: {:?}", client.stats());
            smol::Timer::after(Duration::from_millis(1)).await;
        }
        let held = used().saturating_sub(before);
        assert!(held < SIZE, "{held} bytes are held");
        client.close().await;
        server.stop(Duration::ZERO).await;
    });
}
