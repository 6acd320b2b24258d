//! Clients behind a forward proxy, which is a thread of this program. The names of their servers
//! lead nowhere without it.

use super::transports::{options, use_all};
use super::*;
use mcp_proto::client::{NoProxy, Policy, Proxies, Proxy};
use mcp_proto::exchange::{ProxyFailureKind, TlsFailureKind};
use mcp_proto::server::Hosts;
use mcp_tests::adapters::cause;
use mcp_tests::certificates::{Authority, Leaf};
use mcp_tests::forward_proxy::{ForwardProxy, ForwardProxySettings};
use std::net::SocketAddr;
use std::process::Command;

/// The user and the password of the proxy, in its URL and in its field.
const USER: &str = "ann:s%40cret";
const BASIC: &str = "Basic YW5uOnNAY3JldA==";

/// A server to which no connection can be opened, without asking a resolver.
const NOWHERE: &str = "http://255.255.255.255/mcp";

/// Tells the child of a test whether it has a proxy.
const CHILD: &str = "MCP_TEST_HAS_PROXY";

/// Returns a server for `server.invalid`, with TLS if there is an authority.
fn serve(authority: Option<&Authority>) -> (Server, SocketAddr, Arc<Seen>) {
    let (router, seen) = router();
    let router = router.configure(|config| {
        config.web_socket = true;
        config.hosts = Hosts::Only(vec!["server.invalid".into(), "255.255.255.255".into()]);
    });
    let server = Server::new(router, ServerOptions::new()).expect("a seed");
    let leaf = Leaf { names: &["server.invalid"], ..Leaf::default() };
    let address = match authority {
        Some(authority) => server.listen_https("127.0.0.1:0", authority.server(&leaf)).wait(),
        None => server.listen_http("127.0.0.1:0").wait(),
    };
    (server, address.expect("listens"), seen)
}

fn proxy(server: SocketAddr, authorization: Option<&str>) -> ForwardProxy {
    let authorization = authorization.map(Into::into);
    ForwardProxy::start(server, ForwardProxySettings { authorization, response: None }).expect("listens")
}

/// Returns options for this proxy, with these credentials in front of its address.
fn through(proxy: &ForwardProxy, credentials: &str) -> ClientOptions {
    let proxy = Proxy::parse(&format!("http://{credentials}{}", proxy.address())).expect("a URL");
    options(Policy::Auto).checked().set(|config| config.proxies = Proxies::all(proxy))
}

/// Returns why a client cannot connect.
fn failure(url: &str, options: ClientOptions) -> (Closed, String) {
    let error = connect_with(url, options).wait().expect_err("no connection");
    let why = cause::<Closed>(&error).expect("a connection has failed");
    (why.clone(), error.to_string())
}

// covers: PROXY-C-001, PROXY-C-003, PROXY-C-005
#[test]
fn every_transport_runs_through_a_proxy() {
    let _limit = limit();
    let authority = Authority::new("the tests");
    for (tls, schemes) in [(None, ["http", "ws"]), (Some(&authority), ["https", "wss"])] {
        let (server, address, seen) = serve(tls);
        for (required, credentials) in [(None, String::new()), (Some(BASIC), format!("{USER}@"))] {
            for scheme in schemes {
                let proxy = proxy(address, required);
                let url = format!("{scheme}://server.invalid/mcp");
                let options = through(&proxy, &credentials).tls(authority.client());
                let client = connect_with(url.as_str(), options).wait().expect(&url);
                use_all(&client, &seen);
                client.close().wait();
                let port = if tls.is_some() { 443 } else { 80 };
                let line = match scheme {
                    "http" => "POST http://server.invalid/mcp HTTP/1.1".into(),
                    _ => format!("CONNECT server.invalid:{port} HTTP/1.1"),
                };
                let seen = proxy.seen();
                assert!(!seen.is_empty() && seen.iter().all(|seen| *seen == line), "{seen:?}");
            }
        }
        stop(&server, BOUND);
    }
}

// covers: PROXY-C-004, PROXY-C-005
#[test]
fn proxy_that_demands_credentials_is_named() {
    let _limit = limit();
    let (server, address, _) = serve(None);
    let proxy = proxy(address, Some(BASIC));
    for scheme in ["http", "https", "ws", "wss"] {
        for (credentials, why) in
            [("", "the configuration has none"), ("ann:wr0ng@", "it does not accept those of the configuration")]
        {
            let asked = Arc::new(Mutex::new(0));
            let count = Arc::clone(&asked);
            let options = through(&proxy, credentials).on_authorize(move |_challenge| {
                *count.lock().expect("no panic") += 1;
                Authorization::Refuse
            });
            let (closed, text) = failure(&format!("{scheme}://server.invalid/mcp"), options);
            let Closed::Proxy(failure) = closed else { panic!("{closed:?}: {text}") };
            assert_eq!((failure.kind, failure.status), (ProxyFailureKind::Unauthorized, Some(407)));
            assert!(text.contains(&proxy.address().to_string()) && text.contains(why), "{text}");
            assert!(!text.contains("ann") && !text.contains("wr0ng"), "{text}");
            assert_eq!(*asked.lock().expect("no panic"), 0, "it is no challenge of the server");
        }
    }
    stop(&server, Duration::ZERO);
}

// covers: PROXY-C-004
#[test]
fn certificate_inside_a_tunnel_is_that_of_the_server() {
    let _limit = limit();
    let (trusted, other) = (Authority::new("the tests"), Authority::new("somebody else"));
    let (server, address, _) = serve(Some(&trusted));
    let proxy = proxy(address, None);
    for (url, authority, kind) in [
        ("https://other.invalid/mcp", &trusted, TlsFailureKind::WrongName),
        ("wss://other.invalid/mcp", &trusted, TlsFailureKind::WrongName),
        ("https://server.invalid/mcp", &other, TlsFailureKind::UnknownIssuer),
    ] {
        let (closed, text) = failure(url, through(&proxy, "").tls(authority.client()));
        assert!(matches!(&closed, Closed::Tls(why) if why.kind == kind), "{closed:?}: {text}");
    }
    stop(&server, Duration::ZERO);
}

// covers: PROXY-C-004
#[test]
fn page_of_a_proxy_is_not_the_answer_of_the_server() {
    let _limit = limit();
    let page = "HTTP/1.1 503 No\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}";
    for (response, kind, told) in [
        (page, ProxyFailureKind::Refused, "HTTP 503"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\npage", ProxyFailureKind::Broken, "bytes after its response"),
        ("HTTP/1.1 200 OK\r\n", ProxyFailureKind::Broken, "closed the connection"),
        ("220 smtp\r\n", ProxyFailureKind::Broken, "not HTTP"),
    ] {
        let settings = ForwardProxySettings { response: Some(response.into()), ..Default::default() };
        let proxy = ForwardProxy::start(([127, 0, 0, 1], 9).into(), settings).expect("listens");
        for scheme in ["https", "wss", "ws"] {
            let (closed, text) = failure(&format!("{scheme}://server.invalid/mcp"), through(&proxy, ""));
            assert!(matches!(&closed, Closed::Proxy(why) if why.kind == kind), "{closed:?}: {text}");
            assert!(text.contains(told) && text.contains(&proxy.address().to_string()), "{text}");
        }
    }
}

// covers: PROXY-C-008
#[test]
fn servers_on_this_machine_have_no_proxy() {
    let _limit = limit();
    let (server, _, url) = raw::serving();
    let nobody = proxy(([127, 0, 0, 1], 9).into(), None);
    let client = connect_with(url.as_str(), through(&nobody, "")).wait().expect("connected");
    assert_eq!(add(&client).as_deref(), Ok("3"));
    client.close().wait();
    let except = |config: &mut ClientConfig| {
        config.proxies = std::mem::take(&mut config.proxies).except(NoProxy::parse("255.0.0.0/8"));
    };
    let (closed, text) = failure(NOWHERE, through(&nobody, "").set(except));
    assert!(!matches!(closed, Closed::Proxy(_)), "{text}");
    assert!(nobody.seen().is_empty(), "{:?}", nobody.seen());
    stop(&server, Duration::ZERO);
}

// covers: PROXY-C-006, PROXY-C-007
#[test]
fn proxies_of_the_environment_are_used_unless_turned_off() {
    let _limit = limit();
    if std::env::var_os(CHILD).is_some() {
        return connect_in_the_environment();
    }
    let (server, address, _) = serve(None);
    for (variable, cgi, is_used) in [
        ("http_proxy", false, true),
        ("HTTP_PROXY", false, true),
        ("ALL_PROXY", false, true),
        ("http_proxy", true, true),
        ("HTTP_PROXY", true, false),
    ] {
        let proxy = proxy(address, Some(BASIC));
        let url = format!("http://{USER}@{}", proxy.address());
        let mut child = Command::new(std::env::current_exe().expect("a path"));
        child.args(only(module_path!(), "proxies_of_the_environment_are_used_unless_turned_off"));
        for name in ["http_proxy", "https_proxy", "all_proxy", "no_proxy"] {
            child.env_remove(name).env_remove(name.to_uppercase());
        }
        child.env_remove("REQUEST_METHOD").env(CHILD, if is_used { "used" } else { "unused" }).env(variable, url);
        if cgi {
            child.env("REQUEST_METHOD", "GET");
        }
        let output = child.output().expect("a child");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{variable}: {text}{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(!proxy.seen().is_empty(), is_used, "{variable}");
    }
    stop(&server, Duration::ZERO);
}

/// Connects in the process whose environment names the proxy.
fn connect_in_the_environment() {
    let direct = |options: ClientOptions| {
        let (closed, text) = failure(NOWHERE, options);
        assert!(!matches!(closed, Closed::Proxy(_)), "{text}");
    };
    if std::env::var_os(CHILD).is_some_and(|value| value == "used") {
        let client = connect_with(NOWHERE, options(Policy::Auto)).wait().expect("connected");
        assert_eq!(add(&client).as_deref(), Ok("3"));
        client.close().wait();
    } else {
        direct(options(Policy::Auto));
    }
    direct(options(Policy::Auto).environment_proxies(false));
    // The configuration comes first.
    let proxy = Proxy::parse("127.0.0.1:1").expect("a URL");
    let (closed, text) = failure(NOWHERE, options(Policy::Auto).set(|config| config.proxies = Proxies::all(proxy)));
    assert!(matches!(&closed, Closed::Proxy(why) if why.kind == ProxyFailureKind::Unreachable), "{text}");
}
