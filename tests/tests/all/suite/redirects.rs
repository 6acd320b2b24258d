//! Redirects and fetches over TCP: a server behind another path, as frameworks mount them, and
//! requests that are not MCP.

use super::raw::{read_until, say, serving};
use super::transports::options;
use super::*;
use mcp_proto::client::Policy;
use mcp_proto::exchange::{Reach, RedirectRefusal};
use std::io::copy;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread;

/// Returns the address of a front: it answers requests for `/old` with this response, and passes
/// every other connection on to `behind`.
fn front(response: impl Into<Arc<str>>, behind: SocketAddr) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("it listens");
    let (address, response) = (listener.local_addr().expect("an address"), response.into());
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let response = Arc::clone(&response);
            thread::spawn(move || pass(&response, behind, client));
        }
    });
    address
}

fn pass(response: &str, behind: SocketAddr, mut client: TcpStream) {
    let head = read_until(&mut client, "\r\n\r\n");
    if head.split(' ').nth(1).is_some_and(|target| target.starts_with("/old")) {
        return say(&mut client, response);
    }
    let mut server = TcpStream::connect(behind).expect("connected");
    say(&mut server, &head);
    let (mut from, mut to) = (server.try_clone().expect("a clone"), client.try_clone().expect("a clone"));
    let back = thread::spawn(move || copy(&mut from, &mut to).and_then(|_| to.shutdown(Shutdown::Both)));
    // The ends are those of the two peers.
    let _ = copy(&mut client, &mut server).and_then(|_| server.shutdown(Shutdown::Write));
    let _ = back.join();
}

const MOVED: &str =
    "HTTP/1.1 307 Temporary Redirect\r\nLocation: /mcp\r\nConnection: close\r\nContent-Length: 5\r\n\r\nmoved";
const ELSEWHERE: &str = "HTTP/1.1 307 Temporary Redirect\r\nLocation: http://127.0.0.1:9/mcp\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";

fn at(url: &str) -> FetchRequest {
    FetchRequest::get(HttpTarget::parse(url).expect("it is a URL"))
}

// covers: REDIR-C-001, B-157
#[test]
fn server_behind_a_redirect_is_reached_in_both_eras() {
    let _limit = limit();
    let (server, _, url) = serving();
    let behind = server.local_addr().expect("an address");
    let front = front(MOVED, behind);
    for policy in [Policy::Auto, Policy::Legacy] {
        let client = connect_with(format!("http://{front}/old"), options(policy)).wait().expect("connected");
        assert_eq!(add(&client).as_deref(), Ok("3"));
        client.close().wait();
    }
    // It may be turned off.
    let off = options(Policy::Auto).set(|config| config.redirects = Redirects::None);
    let error = connect_with(format!("http://{front}/old"), off).wait().expect_err("redirects are off");
    let said = error.to_string();
    assert!(said.contains("HTTP 307") && said.contains("/mcp, not followed: redirects are off"), "{said}");
    assert!(url.ends_with("/mcp"));
    stop(&server, BOUND);
}

// covers: REDIR-C-005, REDIR-C-006, B-156
#[test]
fn redirect_to_another_origin_is_an_error() {
    let _limit = limit();
    let (server, _, _) = serving();
    let front = front(ELSEWHERE, server.local_addr().expect("an address"));
    let error = connect(format!("http://{front}/old")).wait().expect_err("another origin");
    let said = error.to_string();
    assert!(said.contains("http://127.0.0.1:9/mcp, not followed: it leads to another origin"), "{said}");
    stop(&server, BOUND);
}

// covers: B-260, REDIR-C-006, B-237
#[test]
fn fetch_returns_a_response_and_keeps_within_its_reach() {
    let _limit = limit();
    let (server, _, url) = serving();
    let front = front(MOVED, server.local_addr().expect("an address"));
    let client = connect(url).wait().expect("connected");
    // The server has no page there.
    let response = client.fetch(at(&format!("http://{front}/nothing"))).wait().expect("a response");
    assert_eq!((response.status, response.redirect), (404, None));
    let moved =
        FetchRequest::post(HttpTarget::parse(&format!("http://{front}/old")).expect("a URL"), "text/plain", "x");
    let response = client.fetch(moved).wait().expect("a response");
    let found = (response.status, &*response.body, response.redirect);
    assert_eq!(found, (307, &b"moved"[..], Some(RedirectRefusal::Off)));
    // A name leads to no address that may not be reached, and a number does not either.
    for host in ["127.0.0.1", "localhost", "[::1]"] {
        let mut request = at(&format!("http://{host}:{}/mcp", front.port()));
        request.reach = Reach::Public;
        let error = client.fetch(request).wait().expect_err("a private address");
        assert_eq!(error, FetchError::Closed { sent: Sent::No, why: Closed::NotPublic }, "{host}");
    }
    assert_eq!(add(&client).as_deref(), Ok("3"), "the client goes on");
    client.close().wait();
    let refused = client.fetch(at(&format!("http://{front}/nothing"))).wait();
    assert!(matches!(refused, Err(FetchError::Refused(_))), "{refused:?}");
    stop(&server, BOUND);
}

// covers: B-237
#[test]
fn fetch_reaches_addresses_of_this_machine_only_if_it_may() {
    let _limit = limit();
    let (server, _, url) = serving();
    let port = server.local_addr().expect("an address").port();
    let client = connect(url).wait().expect("connected");
    let refused = FetchError::Closed { sent: Sent::No, why: Closed::NotPublic };
    for (reach, is_reached) in
        [(Reach::Any, true), (Reach::Near, true), (Reach::Loopback, true), (Reach::Site, false), (Reach::Public, false)]
    {
        for host in ["127.0.0.1", "localhost"] {
            let mut request = at(&format!("http://{host}:{port}/nothing"));
            request.reach = reach;
            let outcome = client.fetch(request).wait().map(|response| response.status);
            let expected = if is_reached { Ok(404) } else { Err(refused.clone()) };
            assert_eq!(outcome, expected, "{host} within {reach:?}");
        }
    }
    // A metadata service of a cloud is refused before anything is sent there.
    for reach in [Reach::Near, Reach::Site, Reach::Loopback] {
        let mut request = at("http://169.254.169.254/");
        request.reach = reach;
        assert_eq!(client.fetch(request).wait().expect_err("an address of a link"), refused, "{reach:?}");
    }
    stop(&server, BOUND);
}

/// The engine knows the address to which a connection led: only then may a redirect from a name
/// lead to this machine.
// covers: REDIR-C-006, B-237
#[test]
fn address_of_the_server_is_known_to_the_engine() {
    let _limit = limit();
    let (server, _, url) = serving();
    let behind = server.local_addr().expect("an address");
    let moved = format!(
        "HTTP/1.1 302 Found\r\nLocation: http://{behind}/nothing\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
    );
    let front = front(moved, behind);
    let client = connect(url).wait().expect("connected");
    // A system resolves this as a name, and the engine takes it for one.
    let mut request = at(&format!("http://127.1:{}/old", front.port()));
    request.redirects = Redirects::Follow { max: 1 };
    let response = client.fetch(request).wait().expect("a response");
    assert_eq!((response.status, response.redirect), (404, None));
    assert_eq!(response.url, format!("http://{behind}/nothing"));
    stop(&server, BOUND);
}
