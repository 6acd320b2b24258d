//! Connections to a forward proxy: what is written where, and whose answer a response is.

use crate::client::{
    ClientCommands, ClientConfig, Event, FetchError, FetchId, FetchRequest, HttpTarget, NoProxy, Policy, Proxies,
    Proxy, Termination,
};
use crate::error::CallError;
use crate::exchange::*;
use crate::time::Instant;
use crate::tools;
use crate::wired::WiredClient;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use bytes::Bytes;
use core::time::Duration;

const ID: ConnectionId = ConnectionId(1);
const GRANTED: &str = "HTTP/1.1 200 Connection established\r\n\r\n";
/// `ann:s3cret`.
const BASIC: &str = "Basic YW5uOnMzY3JldA==";

/// A client behind a proxy, and what it was asked for.
struct Behind {
    client: WiredClient,
    now: Instant,
    /// Bytes that the driver took and did not report as written.
    unwritten: usize,
}

impl Behind {
    /// A client that has begun to connect, with a call.
    fn new(url: &str, proxy: &str) -> Self {
        Self::with(url, Proxies::all(Proxy::parse(proxy).expect("it is a URL")), |_| {})
    }

    fn with(url: &str, proxies: Proxies, change: impl FnOnce(&mut ClientConfig)) -> Self {
        let mut config = ClientConfig::url(url).expect("it is a URL");
        config.proxies = proxies;
        change(&mut config);
        let mut client = WiredClient::new(Arc::new(config), [1; 32], Instant::ZERO);
        client.call(Instant::ZERO, tools::call("x")).expect("it is accepted");
        Self { client, now: Instant::ZERO, unwritten: 0 }
    }

    /// Returns what the driver is asked for, and how calls have ended. Of a head, all lines but
    /// those of the same in every request.
    fn told(&mut self) -> Vec<String> {
        let mut told = Vec::new();
        while let Some(action) = self.client.poll_output() {
            told.push(match action {
                Action::Open(_, Endpoint::Origin(to)) => format!("open {} {} {}", to.host, to.port, to.tls),
                Action::Secure(_, name) => format!("secure {name}"),
                Action::Write(_, bytes) => {
                    self.unwritten += bytes.len();
                    let text = String::from_utf8_lossy(&bytes).into_owned();
                    let head = text.split("\r\n\r\n").next().unwrap_or_default();
                    let shown = |line: &&str| {
                        ["host", "proxy", "connection: close"].iter().any(|name| line.to_lowercase().starts_with(name))
                            || line.ends_with(" HTTP/1.1")
                    };
                    head.split("\r\n").filter(shown).collect::<Vec<_>>().join("|")
                }
                Action::Close(_, how) => format!("close {how:?}"),
                Action::Event(Event::Ended { outcome: Err(e), .. }) => match &e {
                    CallError::Negotiation(_) => format!("failed {:?}: {e}", e.sent()),
                    _ => e.to_string(),
                },
                Action::Event(Event::AuthNeeded { .. }) => "challenged".into(),
                _ => continue,
            });
        }
        told
    }

    fn handle(&mut self, event: IoEvent) -> Vec<String> {
        self.client.handle_io(self.now, ID, event);
        self.told()
    }

    fn open(&mut self) -> Vec<String> {
        self.handle(IoEvent::Opened(Peer::default()))
    }

    fn written(&mut self) -> Vec<String> {
        let n = core::mem::take(&mut self.unwritten);
        self.handle(IoEvent::Written(n))
    }

    fn read(&mut self, text: &str) -> Vec<String> {
        self.handle(IoEvent::Read(Bytes::copy_from_slice(text.as_bytes())))
    }

    /// Opens the connection, and writes the request for a tunnel.
    fn asking(url: &str) -> Self {
        let mut behind = Self::new(url, "http://ann:s3cret@proxy.test:3128");
        behind.told();
        behind.open();
        behind.written();
        behind
    }
}

/// Returns the last of some lines. There must be one.
fn last(told: &[String]) -> &str {
    told.last().expect("something was told")
}

const NOTHING: [&str; 0] = [];

// covers: PROXY-C-003, PROXY-C-005
#[test]
fn tunnel_comes_before_tls_and_before_a_websocket() {
    for (url, server, begins) in [
        ("https://server.test/mcp", "server.test:443", "secure server.test"),
        ("https://[2001:db8::1]:8443/mcp", "[2001:db8::1]:8443", "secure 2001:db8::1"),
        ("wss://server.test/mcp", "server.test:443", "secure server.test"),
        ("ws://server.test/mcp", "server.test:80", "GET /mcp HTTP/1.1|Host: server.test"),
        ("ws://server.test:81/mcp", "server.test:81", "GET /mcp HTTP/1.1|Host: server.test:81"),
    ] {
        for (credentials, field) in [("", String::new()), ("ann:s3cret@", format!("|Proxy-Authorization: {BASIC}"))] {
            let mut behind = Behind::new(url, &format!("http://{credentials}proxy.test:3128"));
            let tls = !url.starts_with("ws:");
            assert_eq!(behind.told(), [format!("open proxy.test 3128 {tls}")]);
            assert_eq!(behind.open(), [format!("CONNECT {server} HTTP/1.1|Host: {server}{field}")]);
            assert_eq!(behind.written(), NOTHING);
            assert_eq!(behind.read(GRANTED), [begins], "{url}");
            if tls {
                let told = behind.handle(IoEvent::Secured);
                assert_eq!(told.len(), 1, "{told:?}");
                assert!(!told[0].to_lowercase().contains("proxy"), "{told:?}");
                assert!(told[0].contains(" /mcp HTTP/1.1"), "{told:?}");
            }
        }
    }
}

#[test]
fn response_of_a_proxy_may_be_cut_anywhere() {
    for response in [
        GRANTED,
        "\r\nHTTP/1.0 204 x\r\n\r\n",
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 x\r\nLink: a\r\n\r\nHTTP/1.1 200\r\n\r\n",
        // Of a success, lengths mean nothing.
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n",
        "HTTP/1.1 299 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 5, 6\r\nConnection: close\r\n\r\n",
    ] {
        for at in 1..response.len() {
            let mut behind = Behind::asking("https://server.test/mcp");
            let (one, two) = response.split_at(at);
            assert_eq!(behind.read(one), NOTHING, "{one:?}");
            assert_eq!(behind.read(two), ["secure server.test"], "{one:?}");
        }
        let mut behind = Behind::asking("ws://server.test/mcp");
        let told: Vec<_> = response.split_inclusive(|_| true).flat_map(|byte| behind.read(byte)).collect();
        assert_eq!(told, ["GET /mcp HTTP/1.1|Host: server.test"]);
    }
}

// covers: PROXY-C-004, PROXY-C-005
#[test]
fn what_a_proxy_answers_is_never_the_answer_of_the_server() {
    let result = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"Method not found"}}"#;
    let json = format!("Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{result}", result.len());
    let challenge = "WWW-Authenticate: Bearer realm=\"m\"\r\n";
    for url in ["https://server.test/mcp", "wss://server.test/mcp", "ws://server.test/mcp"] {
        for (response, told) in [
            (
                format!("HTTP/1.1 407 No\r\nProxy-Authenticate: Basic\r\n{challenge}{json}"),
                "demands credentials (HTTP 407): it does not accept those of",
            ),
            (format!("HTTP/1.1 401 No\r\n{challenge}{json}"), "refused the connection (HTTP 401)"),
            (format!("HTTP/1.1 404 No\r\n{json}"), "refused the connection (HTTP 404)"),
            (format!("HTTP/1.1 403 No\r\n{challenge}{json}"), "refused the connection (HTTP 403)"),
            ("HTTP/1.1 502 No\r\n\r\n".into(), "refused the connection (HTTP 502)"),
            ("HTTP/1.1 302 No\r\nLocation: https://evil.test/\r\n\r\n".into(), "refused the connection (HTTP 302)"),
            ("HTTP/1.1 101 No\r\n\r\n".into(), "opened no connection: it switched protocols"),
            (format!("HTTP/1.1 200 OK\r\n{json}"), "opened no connection: it sent bytes after"),
            ("SSH-2.0-x\r\n".into(), "opened no connection: its response is not HTTP"),
            ("\u{15}\u{3}\u{3}".into(), "opened no connection: its response is not HTTP"),
            ("HTTP/1.1 2000 OK\r\n\r\n".into(), "opened no connection: the head is not legal"),
            (format!("HTTP/1.1 200 {}\r\n\r\n", "x".repeat(70_000)), "opened no connection: the head is too large"),
            ("HTTP/1.1 100 x\r\n\r\n".repeat(5_000), "opened no connection: too many interim responses"),
        ] {
            let mut behind = Behind::asking(url);
            behind.client.call(behind.now, tools::call("y")).expect("it is accepted");
            let outputs = behind.read(&response);
            assert_eq!(outputs[0], "close Abort", "{response:?}");
            let failures = &outputs[1..];
            assert_eq!(failures.len(), 2, "{outputs:?}");
            for failure in failures {
                assert!(failure.starts_with("failed No: ") && failure.contains(told), "{failure}");
                assert!(failure.contains("proxy.test:3128") && !failure.contains("s3cret"), "{failure}");
                assert!(!failure.contains("Method not found") && !failure.contains("realm"), "{failure}");
            }
        }
    }
}

// covers: PROXY-C-004
#[test]
fn refusals_of_a_tunnel_are_no_challenge_and_tell_of_no_era() {
    for status in [400, 401, 403, 404, 405, 407] {
        for url in ["https://server.test/mcp", "wss://server.test/mcp"] {
            let proxies = Proxies::all(Proxy::parse("proxy.test").expect("it is a URL"));
            let mut behind = Behind::with(url, proxies, |config| config.authorize = true);
            behind.told();
            behind.open();
            behind.written();
            let challenge = "WWW-Authenticate: Bearer error=\"insufficient_scope\"\r\nContent-Length: 0\r\n\r\n";
            let told = behind.read(&format!("HTTP/1.1 {status} No\r\n{challenge}"));
            assert!(told.len() == 2 && told[0] == "close Abort" && told[1].starts_with("failed No: "), "{told:?}");
        }
    }
}

#[test]
fn tunnel_that_ends_early_is_an_error_of_the_proxy() {
    for part in ["", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 100 x\r\n\r\n"] {
        for (event, why) in [
            (IoEvent::ReadClosed, "opened no connection: it closed the connection"),
            (IoEvent::Closed(Closed::Reset), "opened no connection: the connection was reset"),
        ] {
            let mut behind = Behind::asking("https://server.test/mcp");
            if !part.is_empty() {
                assert_eq!(behind.read(part), NOTHING);
            }
            let told = behind.handle(event);
            assert!(last(&told).starts_with("failed No: ") && last(&told).contains(why), "{told:?}");
        }
    }
    let mut behind = Behind::new("https://server.test/mcp", "proxy.test:3128");
    behind.told();
    let told = behind.handle(IoEvent::Closed(Closed::Refused));
    assert!(
        last(&told).contains("the proxy proxy.test:3128 cannot be reached: the connection was refused"),
        "{told:?}"
    );
    // Before the connection is opened, the driver finds that it has no TLS.
    let mut behind = Behind::new("https://server.test/mcp", "proxy.test:3128");
    behind.told();
    let told = behind.handle(IoEvent::Closed(Closed::Tls(TlsFailure::new(TlsFailureKind::Unavailable, ""))));
    assert!(last(&told).contains("TLS is not available") && !last(&told).contains("proxy"), "{told:?}");
}

#[test]
fn tunnel_counts_toward_the_time_to_open() {
    for part in ["", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 100 x\r\n\r\n", GRANTED] {
        let mut behind = Behind::asking("https://server.test/mcp");
        let limit = behind.client.client().config().limits.frame.open_timeout;
        behind.now = Instant::new(limit - Duration::from_nanos(1));
        if !part.is_empty() {
            behind.read(part);
        }
        behind.client.handle_timeout(behind.now);
        assert_eq!(behind.told(), NOTHING);
        behind.now = Instant::new(limit);
        behind.client.handle_timeout(behind.now);
        let told = behind.told();
        assert!(told[0] == "close Abort" && last(&told).contains("timed out"), "{told:?}");
        assert_eq!(last(&told).contains("proxy.test"), part != GRANTED, "{told:?}");
    }
}

#[test]
fn request_for_a_tunnel_is_written_before_the_tunnel_is_used() {
    let mut behind = Behind::new("https://server.test/mcp", "proxy.test:3128");
    behind.told();
    behind.open();
    // One thread reports what it has read before another reports what it has written.
    let all = core::mem::replace(&mut behind.unwritten, 1);
    assert_eq!(behind.handle(IoEvent::Written(all - 1)), NOTHING);
    assert_eq!(behind.read(GRANTED), NOTHING);
    assert_eq!(behind.written(), ["secure server.test"]);
    let mut late = Behind::new("https://server.test/mcp", "proxy.test:3128");
    late.told();
    late.open();
    assert_eq!(late.read(GRANTED), NOTHING);
    let told = late.read("x");
    assert!(last(&told).contains("it sent bytes after its response"), "{told:?}");
    assert_eq!(late.written(), NOTHING);
}

/// Returns how a call ended whose request is the first: a client of this dialect negotiates
/// nothing.
fn sent(events: &[IoEvent]) -> Option<Sent> {
    let proxies = Proxies::all(Proxy::parse("proxy.test").expect("it is a URL"));
    let mut behind = Behind::with("https://server.test/mcp", proxies, |config| config.dialect = Dialect::ToolStream);
    behind.told();
    behind.open();
    behind.written();
    for event in events {
        behind.client.handle_io(behind.now, ID, event.clone());
    }
    core::iter::from_fn(|| behind.client.poll_output()).find_map(|action| match action {
        Action::Event(Event::Ended { outcome: Err(CallError::Closed { sent, .. }), .. }) => Some(sent),
        _ => None,
    })
}

#[test]
fn bytes_of_the_tunnel_are_none_of_the_exchange() {
    let read = |text: &'static str| IoEvent::Read(Bytes::from_static(text.as_bytes()));
    let reset = || IoEvent::Closed(Closed::Reset);
    for (events, expected) in [
        (&[reset()][..], Sent::No),
        (&[IoEvent::ReadClosed], Sent::No),
        (&[read("HTTP/1.1 403 No\r\n\r\n")], Sent::No),
        (&[read(GRANTED), reset()], Sent::No),
        (&[read(GRANTED), IoEvent::Closed(Closed::Tls(TlsFailure::new(TlsFailureKind::WrongName, "")))], Sent::No),
        (&[read(GRANTED), IoEvent::Secured, reset()], Sent::Maybe),
    ] {
        assert_eq!(sent(events), Some(expected), "{events:?}");
    }
    let mut behind = Behind::asking("https://server.test/mcp");
    behind.read(GRANTED);
    let traffic = behind.client.stats().traffic;
    assert!(traffic.bytes_out > 0 && traffic.bytes_in == GRANTED.len() as u64, "{traffic:?}");
}

#[test]
fn client_that_closes_aborts_the_tunnel() {
    let mut behind = Behind::asking("wss://server.test/mcp");
    behind.client.close(Instant::ZERO);
    let told = behind.told();
    assert!(told.contains(&"close Abort".to_string()), "{told:?}");
    assert_eq!(behind.read(GRANTED), NOTHING);
    assert_eq!(behind.handle(IoEvent::ReadClosed), NOTHING);
}

/// Returns the response of a server of 2025-11-25 to the first request.
fn initialized(is_last: bool) -> String {
    let body = r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}"#;
    let close = if is_last { "Connection: close\r\n" } else { "" };
    format!("HTTP/1.1 200 OK\r\n{close}Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

// covers: PROXY-C-001
#[test]
fn requests_over_http_have_the_absolute_form() {
    for (url, target, host) in [
        ("http://server.test/mcp?a=b", "http://server.test/mcp?a=b", "server.test"),
        ("http://server.test:8080/mcp", "http://server.test:8080/mcp", "server.test:8080"),
        ("http://[2001:db8::1]/", "http://[2001:db8::1]/", "[2001:db8::1]"),
    ] {
        let proxies = Proxies::all(Proxy::parse("ann:s3cret@proxy.test:3128").expect("it is a URL"));
        let mut behind = Behind::with(url, proxies, |config| config.policy = Policy::Legacy);
        assert_eq!(behind.told(), ["open proxy.test 3128 false"]);
        let line = format!("POST {target} HTTP/1.1|Host: {host}|Proxy-Authorization: {BASIC}|connection: close");
        assert_eq!(behind.open(), [&*line]);
        behind.written();
        // The connection is not used again, whatever the proxy says of it.
        let told = behind.read(&initialized(false));
        assert_eq!(told, ["close Abort", "open proxy.test 3128 false"]);
    }
}

// covers: PROXY-C-005
#[test]
fn demand_for_credentials_over_http_is_an_error_of_the_proxy() {
    for (proxy, why) in
        [("p:1", "the configuration has none"), ("ann:s3cret@p:1", "it does not accept those of the configuration")]
    {
        for policy in [Policy::Auto, Policy::Legacy, Policy::Modern] {
            let proxies = Proxies::all(Proxy::parse(proxy).expect("it is a URL"));
            let mut behind = Behind::with("http://server.test/mcp", proxies, |config| {
                (config.policy, config.authorize) = (policy, true);
            });
            behind.told();
            behind.open();
            behind.written();
            let fields = "Proxy-Authenticate: Basic\r\nWWW-Authenticate: Bearer\r\n";
            let told = behind.read(&format!("HTTP/1.1 407 No\r\n{fields}Content-Length: 2\r\n\r\n{{}}"));
            let text = format!("the proxy p:1 demands credentials (HTTP 407): {why}");
            assert!(told.len() == 2 && told[0] == "close Abort" && told[1].contains(&text), "{told:?}");
            assert!(!told[1].contains("s3cret"), "{told:?}");
        }
    }
}

#[test]
fn refusal_with_407_tells_of_no_era() {
    // The proxy is not in the configuration.
    let mut behind = Behind::with("http://server.test/mcp", Proxies::none(), |config| config.authorize = true);
    assert_eq!(behind.told(), ["open server.test 80 false"]);
    behind.open();
    behind.written();
    let told = behind.read("HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n");
    assert!(told[0].starts_with("failed ") && told[0].contains("HTTP 407"), "{told:?}");
    assert!(!told.iter().any(|line| line.contains("challenged") || line.starts_with("POST")), "{told:?}");
}

#[test]
fn servers_without_a_proxy_are_reached_directly() {
    let proxy = || Proxies::all(Proxy::parse("ann:s3cret@proxy.test").expect("it is a URL"));
    for (url, proxies, target) in [
        ("http://localhost/mcp", proxy(), "localhost 80 false"),
        ("https://127.0.0.1/mcp", proxy(), "127.0.0.1 443 true"),
        ("https://a.server.test/mcp", proxy().except(NoProxy::parse("server.test")), "a.server.test 443 true"),
        ("http://server.test/mcp", Proxies::none(), "server.test 80 false"),
    ] {
        let mut behind = Behind::with(url, proxies, |_| {});
        assert_eq!(behind.told(), [format!("open {target}")]);
        if url.starts_with("http:") {
            let told = behind.open();
            assert!(told[0].starts_with("POST /mcp HTTP/1.1|Host: ") && !told[0].contains("Proxy"), "{told:?}");
        }
    }
}

// covers: PROXY-C-005
#[test]
fn fetch_through_a_proxy_reaches_no_private_address() {
    for (url, opened) in [
        ("https://server.test/", Some("proxy.test")),
        ("http://1.1.1.1/", Some("proxy.test")),
        ("https://10.0.0.1/", None),
        ("http://[::ffff:192.168.0.1]/", None),
        // Without a proxy, the driver checks the addresses.
        ("http://localhost/", Some("localhost")),
    ] {
        let mut config = ClientConfig::url("http://127.0.0.1/mcp").expect("it is a URL");
        config.proxies = Proxies::all(Proxy::parse("proxy.test").expect("it is a URL"));
        let mut client = WiredClient::new(Arc::new(config), [1; 32], Instant::ZERO);
        let mut request = FetchRequest::get(HttpTarget::parse(url).expect("it is a URL"));
        request.reach = Reach::Public;
        request.headers.push("Proxy-Authorization", "Basic s3cret");
        client.fetch(Instant::ZERO, FetchId(1), request).expect("it is accepted");
        let mut actions: Vec<_> = core::iter::from_fn(|| client.poll_output()).skip(1).collect();
        let (id, host) = match actions.remove(0) {
            Action::Open(id, Endpoint::Origin(origin)) if &*origin.host == "proxy.test" => (id, Some(origin.host)),
            Action::Open(id, Endpoint::Within(origin, Reach::Public)) => (id, Some(origin.host)),
            Action::Event(Event::Fetched {
                outcome: Err(FetchError::Closed { sent: Sent::No, why: Closed::NotPublic }),
                ..
            }) => (ConnectionId(77), None),
            other => panic!("{url}: {other:?}"),
        };
        assert_eq!(host.as_deref(), opened, "{url}");
        // The credentials for a proxy are those of the configuration, or none.
        client.handle_io(Instant::ZERO, id, IoEvent::Opened(Peer::default()));
        let text = format!("{:?}", core::iter::from_fn(|| client.poll_output()).collect::<Vec<_>>());
        assert!(!text.contains("s3cret"), "{text}");
        assert_eq!(text.contains("HTTP/1.1"), opened.is_some(), "{text}");
    }
}

#[test]
fn setting_that_cannot_be_used_opens_nothing() {
    for url in ["http://server.test/mcp", "https://server.test/mcp", "ws://server.test/mcp"] {
        let mut config = ClientConfig::url(url).expect("it is a URL");
        config.proxies =
            Proxies::from_variables(|name| (name == "all_proxy").then(|| "socks5://ann:s3cret@proxy.test".into()));
        let mut client = WiredClient::new(Arc::new(config), [1; 32], Instant::ZERO);
        let Some(Action::Event(Event::Terminated(Termination::Negotiation(why)))) = client.poll_output() else {
            panic!("nothing else happens")
        };
        let text = why.to_string();
        assert!(text.contains("the proxy setting all_proxy cannot be used: its scheme is not `http`"), "{text}");
        assert!(!text.contains("s3cret"), "{text}");
        assert_eq!(client.poll_output(), None);
    }
}
