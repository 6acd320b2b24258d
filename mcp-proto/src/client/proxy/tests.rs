//! The settings of proxies: URLs, variables of an environment, and the proxy of each server.

use super::*;
use alloc::collections::BTreeMap;
use alloc::string::ToString;

/// Must be in no text.
const SECRET: &str = "s3cret";

fn origin(url: &str) -> Origin {
    let url = url.replacen("ws", "http", 1);
    crate::fetch::HttpTarget::parse(&url).expect("it is a URL").origin
}

/// Returns the proxies of an environment with these variables.
fn read(variables: &[(&str, &str)]) -> Proxies {
    let variables: BTreeMap<_, _> = variables.iter().copied().collect();
    Proxies::from_variables(|name| variables.get(name).map(ToString::to_string))
}

/// Returns the host of the proxy of a server.
fn proxy<'a>(proxies: &'a Proxies, url: &str) -> Option<&'a str> {
    proxies.route(&origin(url)).expect("it can be used").map(Proxy::host)
}

#[test]
fn url_of_a_proxy_has_a_host_and_perhaps_credentials() {
    for (url, host, port, credentials) in [
        ("http://proxy.test:3128", "proxy.test", 3128, None),
        ("http://proxy.test", "proxy.test", 80, None),
        ("HTTP://PROXY.test:8080/path/", "proxy.test", 8080, None),
        ("proxy.test:3128", "proxy.test", 3128, None),
        ("[2001:db8::1]:3128", "2001:db8::1", 3128, None),
        ("http://@proxy.test", "proxy.test", 80, None),
        // RFC 7617 section 2.
        ("http://Aladdin:open%20sesame@p", "p", 80, Some("Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==")),
        ("ann:a:b@p:1", "p", 1, Some("Basic YW5uOmE6Yg==")),
        ("http://ann@p", "p", 80, Some("Basic YW5uOg==")),
        ("http://a%C3%A9:%25%40@p", "p", 80, Some("Basic YcOpOiVA")),
    ] {
        let proxy = Proxy::parse(url).expect(url);
        assert_eq!((proxy.host(), proxy.port(), proxy.authorization()), (host, port, credentials), "{url}");
        assert_eq!(proxy.has_credentials(), credentials.is_some());
    }
    for (url, why) in [
        ("", BadProxy::Url),
        ("http://", BadProxy::Url),
        ("http://:80", BadProxy::Url),
        ("http://p:65536", BadProxy::Url),
        ("http://p:x", BadProxy::Url),
        ("http://p q", BadProxy::Url),
        ("http://ann:s3cret#1@p", BadProxy::Url),
        ("https://p", BadProxy::Scheme),
        ("socks5://ann:s3cret@p", BadProxy::Scheme),
        ("http://a%3Ab:s3cret@p", BadProxy::Credentials),
        ("http://ann:s3cret%0D%0AX:1@p", BadProxy::Credentials),
        ("http://ann:s3cret%00@p", BadProxy::Credentials),
        ("http://ann:s3cret%FF@p", BadProxy::Credentials),
    ] {
        assert_eq!(Proxy::parse(url), Err(why), "{url}");
        assert!(!why.to_string().contains(SECRET));
    }
}

// covers: PROXY-C-005
#[test]
fn credentials_of_a_proxy_are_in_no_text() {
    let encoded = STANDARD.encode("ann:s3cret");
    let proxies = read(&[("all_proxy", "http://ann:s3cret@p:3128")]);
    let mut config = crate::client::ClientConfig::url("https://server.test/mcp").expect("it is a URL");
    config.proxies = proxies.clone();
    let bad = read(&[("https_proxy", "https://ann:s3cret@p:3128")]);
    let error = format!("{:?}", bad.route(&origin("https://server.test/")));
    for text in [format!("{proxies:?}"), format!("{config:?}"), format!("{bad:?}"), error] {
        assert!(!text.contains(SECRET) && !text.contains(&encoded) && !text.contains("ann"), "{text}");
    }
    assert!(format!("{proxies:?}").contains("has_credentials: true"));
}

// covers: PROXY-C-006, PROXY-C-007
#[test]
fn variables_have_an_order() {
    let (http, https) = ("http://server.test/", "https://server.test/");
    for (variables, of_http, of_https) in [
        (&[][..], None, None),
        (&[("http_proxy", "a")], Some("a"), None),
        (&[("https_proxy", "a")], None, Some("a")),
        (&[("HTTPS_PROXY", "a"), ("HTTP_PROXY", "b")], Some("b"), Some("a")),
        (&[("http_proxy", "a"), ("HTTP_PROXY", "b")], Some("a"), None),
        (&[("https_proxy", "a"), ("HTTPS_PROXY", "b")], None, Some("a")),
        (&[("https_proxy", ""), ("HTTPS_PROXY", "b")], None, Some("b")),
        (&[("all_proxy", "a")], Some("a"), Some("a")),
        (&[("ALL_PROXY", "a"), ("all_proxy", "b")], Some("b"), Some("b")),
        (&[("all_proxy", "a"), ("HTTPS_PROXY", "b")], Some("a"), Some("b")),
        (&[("all_proxy", "a"), ("http_proxy", "")], Some("a"), Some("a")),
        // A program of CGI, whose client sets `HTTP_PROXY`.
        (&[("HTTP_PROXY", "evil"), ("REQUEST_METHOD", "GET")], None, None),
        (&[("HTTP_PROXY", "evil"), ("REQUEST_METHOD", "")], None, None),
        (&[("HTTP_PROXY", "evil"), ("REQUEST_METHOD", "GET"), ("ALL_PROXY", "a")], Some("a"), Some("a")),
        (&[("http_proxy", "a"), ("HTTPS_PROXY", "b"), ("REQUEST_METHOD", "GET")], Some("a"), Some("b")),
        (&[("all_proxy", "a"), ("no_proxy", "server.test")], None, None),
        (&[("all_proxy", "a"), ("NO_PROXY", "server.test")], None, None),
        (&[("all_proxy", "a"), ("no_proxy", "other"), ("NO_PROXY", "server.test")], Some("a"), Some("a")),
        (&[("all_proxy", "a"), ("no_proxy", "server.test:443")], Some("a"), None),
    ] {
        let proxies = read(variables);
        assert_eq!((proxy(&proxies, http), proxy(&proxies, https)), (of_http, of_https), "{variables:?}");
        let of_ws = (proxy(&proxies, "ws://server.test/"), proxy(&proxies, "wss://server.test/"));
        assert_eq!(of_ws, (of_http, of_https), "{variables:?}");
        assert_eq!(proxies.is_none(), !variables.iter().any(|(_, value)| ["a", "b"].contains(value)));
    }
}

#[test]
fn unusable_variable_stops_the_connections_of_its_scheme() {
    let proxies = read(&[("https_proxy", "socks5://p"), ("no_proxy", "inner.test")]);
    assert_eq!(proxies.route(&origin("https://server.test/")), Err(("https_proxy", BadProxy::Scheme)));
    for url in ["http://server.test/", "https://inner.test/", "https://localhost/"] {
        assert_eq!(proxies.route(&origin(url)), Ok(None), "{url}");
    }
    assert!(!proxies.is_none());
}

// covers: PROXY-C-008
#[test]
fn loopback_never_has_a_proxy() {
    let proxies = Proxies::all(Proxy::parse("proxy.test:3128").expect("it is a URL"));
    for host in ["localhost", "LOCALHOST", "a.localhost", "localhost.", "127.0.0.1", "127.9.8.7", "[::1]"] {
        assert_eq!(proxy(&proxies, &format!("http://{host}:1/")), None, "{host}");
        assert_eq!(proxy(&proxies, &format!("https://{host}/")), None, "{host}");
    }
    assert_eq!(proxy(&proxies, "https://[::ffff:127.0.0.1]/"), None);
    for host in ["notlocalhost", "localhost.test", "128.0.0.1", "[::2]", "0.0.0.0", "127.0.0.1.test"] {
        assert_eq!(proxy(&proxies, &format!("http://{host}/")), Some("proxy.test"), "{host}");
    }
}
