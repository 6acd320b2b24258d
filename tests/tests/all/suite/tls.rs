//! `https` and `wss` over TCP, between this client and this server, and what a user reads where TLS
//! fails.

use super::raw::{dial, listening, read_until, say};
use super::transports::{options, use_all};
use super::*;
use mcp_proto::client::{HttpTransport, Policy};
use mcp_proto::error::DiagnosticKind;
use mcp_proto::exchange::TlsFailureKind;
use mcp_proto::server::SsePaths;
use mcp_tests::adapters::cause;
use mcp_tests::certificates::{Authority, Leaf};
use std::io::Write;
use std::net::{SocketAddr, TcpListener};

/// Returns a server with TLS that offers every transport.
fn serve(tls: impl Into<TlsAcceptor>) -> (Server, SocketAddr, Arc<Seen>) {
    let (router, seen) = router();
    let router = router.configure(|config| {
        config.sse = Some(SsePaths::default());
        config.web_socket = true;
        config.limits.frame.head_timeout = Duration::from_millis(700);
    });
    let server = Server::new(router, ServerOptions::new()).expect("a seed");
    let address = server.listen_https("127.0.0.1:0", tls).wait().expect("listens");
    (server, address, seen)
}

/// Returns why a client cannot connect.
fn failure(url: &str, options: ClientOptions) -> (TlsFailureKind, String) {
    let error = connect_with(url, options).wait().expect_err("no connection");
    match cause::<Closed>(&error) {
        Some(Closed::Tls(why)) => (why.kind, error.to_string()),
        other => panic!("{other:?}: {error}"),
    }
}

// covers: S2-21, TLS-C-001
#[test]
fn every_transport_runs_over_tls() {
    let _limit = limit();
    let authority = Authority::new("the tests");
    let (server, address, seen) = serve(authority.server(&Leaf::default()));
    let port = address.port();
    for (url, policy, transport) in [
        (format!("https://localhost:{port}/mcp"), Policy::Auto, HttpTransport::Streamable),
        (format!("https://127.0.0.1:{port}/mcp"), Policy::Legacy, HttpTransport::Streamable),
        (format!("https://localhost:{port}/sse"), Policy::Auto, HttpTransport::Sse),
        (format!("wss://localhost:{port}/mcp"), Policy::Auto, HttpTransport::Streamable),
        (format!("wss://localhost:{port}/mcp"), Policy::Legacy, HttpTransport::Streamable),
    ] {
        let client = connect_with(url.as_str(), options(policy).tls(authority.client())).wait().expect(&url);
        use_all(&client, &seen);
        if url.starts_with("https") {
            assert_eq!(client.verdict().expect("ready").transport, transport, "{url}");
        }
        client.close().wait();
    }
    stop(&server, BOUND);
}

// covers: B-187, B-189
#[test]
fn unfinished_handshakes_are_bounded() {
    // 1 MiB holds this many of 80 KiB each.
    const FIT: usize = 12;
    let _limit = limit();
    let authority = Authority::new("the tests");
    let router = router().0.configure(|config| config.limits.server.max_held = 1 << 20);
    let server = Server::new(router, ServerOptions::new()).expect("a seed");
    let tls: TlsAcceptor = authority.server(&Leaf::default()).into();
    let address = server.listen_https("127.0.0.1:0", tls).wait().expect("listens");
    let begin = || std::net::TcpStream::connect(address).expect("connected");
    let refused = |mut stream: std::net::TcpStream| {
        stream.set_read_timeout(Some(BOUND)).expect("a socket");
        let ended = std::io::Read::read(&mut stream, &mut [0; 1]);
        assert!(
            ended.as_ref().map_or_else(|e| e.kind() == std::io::ErrorKind::ConnectionReset, |n| *n == 0),
            "{ended:?}"
        );
    };
    let mut begun: Vec<_> = (0..FIT).map(|_| begin()).collect();
    until(|| server.stats().channels == FIT);
    (0..3).for_each(|_| refused(begin()));
    until(|| server.stats().channels == FIT);
    assert_eq!(server.stats().diagnostics.get(&DiagnosticKind::TooManyExchanges), Some(&3));
    // A client that completes its handshake does not count any more.
    drop(begun.pop());
    until(|| server.stats().channels == FIT - 1);
    let url = format!("https://localhost:{}/mcp", address.port());
    let client = connect_with(url.as_str(), options(Policy::Auto).tls(authority.client())).wait().expect("connected");
    assert_eq!(add(&client).as_deref(), Ok("3"));
    let connections = server.stats().channels;
    begun.push(begin());
    until(|| server.stats().channels == connections + 1);
    refused(begin());
    assert_eq!(add(&client).as_deref(), Ok("3"), "it goes on");
    client.close().wait();
    drop(begun);
    stop(&server, BOUND);
}

// covers: TLS-C-001
#[test]
fn user_reads_what_is_wrong_with_a_certificate() {
    let _limit = limit();
    let (trusted, other) = (Authority::new("the tests"), Authority::new("somebody else"));
    let good = Leaf::default;
    for (leaf, authority, kind, text) in [
        (Leaf { years: (2020, 2021), ..good() }, &trusted, TlsFailureKind::Expired, "has expired"),
        (Leaf { years: (3000, 3001), ..good() }, &trusted, TlsFailureKind::NotYetValid, "not valid yet"),
        (Leaf { names: &["b.test"], ..good() }, &trusted, TlsFailureKind::WrongName, "b.test"),
        (good(), &other, TlsFailureKind::UnknownIssuer, "no trusted authority"),
    ] {
        let (server, address, _) = serve(authority.server(&leaf));
        for scheme in ["https", "wss"] {
            let url = format!("{scheme}://localhost:{}/mcp", address.port());
            let (is, told) = failure(&url, options(Policy::Auto).tls(trusted.client()));
            assert_eq!(is, kind, "{told}");
            assert!(told.contains(text), "{told}");
        }
        // The roots of the system do not contain the authority of the tests.
        let url = format!("https://localhost:{}/mcp", address.port());
        let (is, told) = failure(&url, options(Policy::Auto));
        assert!(is == TlsFailureKind::UnknownIssuer || is == TlsFailureKind::Unavailable || is == kind, "{told}");
        stop(&server, Duration::ZERO);
    }
}

#[test]
fn plain_http_and_tls_are_told_apart() {
    let _limit = limit();
    let authority = Authority::new("the tests");
    let (server, address, _) = serve(authority.server(&Leaf::default()));
    let mut socket = dial(&server);
    say(&mut socket, "POST /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let answer = read_until(&mut socket, "plain HTTP.\n");
    assert!(answer.starts_with("HTTP/1.1 400 ") && answer.contains("HTTPS"), "{answer}");
    let refused = connect(format!("http://{address}/mcp")).wait().expect_err("no connection").to_string();
    assert!(refused.contains("HTTP 400") && refused.contains("HTTPS"), "{refused}");
    stop(&server, Duration::ZERO);
    let (router, _) = router();
    let server = listening(router, ServerOptions::new());
    let port = server.local_addr().expect("an address").port();
    let (kind, text) = failure(&format!("https://localhost:{port}/mcp"), options(Policy::Auto).tls(authority.client()));
    assert_eq!(kind, TlsFailureKind::NotTls, "{text}");
    assert!(text.contains("plain HTTP"), "{text}");
    stop(&server, Duration::ZERO);
}

#[test]
fn certificate_is_replaced_while_the_server_runs() {
    let _limit = limit();
    let (first, second) = (Authority::new("first"), Authority::new("second"));
    let acceptor = TlsAcceptor::new(first.server(&Leaf::default()));
    let (server, address, _) = serve(acceptor.clone());
    let url = format!("https://localhost:{}/mcp", address.port());
    let of_first = connect_with(url.as_str(), options(Policy::Auto).tls(first.client())).wait().expect("connected");
    acceptor.set(second.server(&Leaf::default()));
    assert_eq!(add(&of_first).as_deref(), Ok("3"), "its connection is open");
    let of_second = connect_with(url.as_str(), options(Policy::Auto).tls(second.client())).wait().expect("connected");
    assert_eq!(add(&of_second).as_deref(), Ok("3"));
    let (kind, _) = failure(&url, options(Policy::Auto).tls(first.client()));
    assert_eq!(kind, TlsFailureKind::UnknownIssuer);
    [of_first, of_second].into_iter().for_each(|client| drop(client.close().wait()));
    stop(&server, Duration::ZERO);
}

#[test]
fn handshake_that_stalls_ends_on_both_sides() {
    let _limit = limit();
    let authority = Authority::new("the tests");
    // A client that says nothing, and one that says a part of its first message.
    let (server, ..) = serve(authority.server(&Leaf::default()));
    let sockets: Vec<_> = [&b""[..], &[22, 3, 1, 2, 0, 1]]
        .map(|part| {
            let mut socket = dial(&server);
            socket.write_all(part).expect("written");
            socket
        })
        .into();
    until(|| server.stats().channels == 2);
    until(|| server.stats().channels == 0);
    drop(sockets);
    stop(&server, Duration::ZERO);
    // A server that accepts and says nothing.
    let listener = TcpListener::bind("127.0.0.1:0").expect("listens");
    let url = format!("https://localhost:{}/mcp", listener.local_addr().expect("an address").port());
    let options = options(Policy::Auto)
        .tls(authority.client())
        .set(|config| config.limits.frame.open_timeout = Duration::from_millis(300));
    let error = connect_with(url, options).wait().expect_err("no connection");
    assert_eq!(cause::<Closed>(&error), Some(&Closed::Timeout), "{error}");
}
