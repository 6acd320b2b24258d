use super::*;
use alloc::format;

fn at(url: &str) -> HttpTarget {
    HttpTarget::parse(url).unwrap()
}

const REMOTE: &str = "https://example.com/mcp";
const LOCAL: &str = "http://localhost:3000/mcp";

// covers: SEC-C-002, SEC-C-003, SEC-C-005, B-237, B-239
#[test]
fn url_is_used_if_it_has_tls_or_both_ends_are_this_machine() {
    let policy = UrlPolicy::default();
    for (url, of_remote, of_local) in [
        ("https://auth.example.com/x?y=1", Ok(()), Ok(())),
        ("HTTPS://Auth.Example.COM", Ok(()), Ok(())),
        ("https://localhost:8443/x", Ok(()), Ok(())),
        ("http://localhost/x", Err(UrlFault::Plain), Ok(())),
        ("http://LOCALHOST:8080/x", Err(UrlFault::Plain), Ok(())),
        ("http://127.0.0.1/x", Err(UrlFault::Plain), Ok(())),
        ("http://127.9.8.7:5/x", Err(UrlFault::Plain), Ok(())),
        ("http://[::1]:5/x", Err(UrlFault::Plain), Ok(())),
        ("http://example.com/mcp", Err(UrlFault::Plain), Err(UrlFault::Plain)),
        ("http://localhost.example.com/", Err(UrlFault::Plain), Err(UrlFault::Plain)),
        ("http://127.0.0.1.example.com/", Err(UrlFault::Plain), Err(UrlFault::Plain)),
        ("http://128.0.0.1/", Err(UrlFault::Plain), Err(UrlFault::Plain)),
        ("http://[::2]/", Err(UrlFault::Plain), Err(UrlFault::Plain)),
        ("http://2130706433/", Err(UrlFault::Plain), Err(UrlFault::Plain)),
        ("https://user@example.com/", Err(UrlFault::User), Err(UrlFault::User)),
        ("https://user:word@example.com/", Err(UrlFault::User), Err(UrlFault::User)),
        ("https://example.com@evil.example/", Err(UrlFault::User), Err(UrlFault::User)),
        ("https://@example.com/", Err(UrlFault::User), Err(UrlFault::User)),
        ("https://example.com/#part", Err(UrlFault::Fragment), Err(UrlFault::Fragment)),
        ("https://example.com/#", Err(UrlFault::Fragment), Err(UrlFault::Fragment)),
        ("https://example.com:0/", Err(UrlFault::Form), Err(UrlFault::Form)),
        ("https://example.com:70000/", Err(UrlFault::Form), Err(UrlFault::Form)),
        ("https://", Err(UrlFault::Form), Err(UrlFault::Form)),
        ("https:///path", Err(UrlFault::Form), Err(UrlFault::Form)),
        ("https:example.com", Err(UrlFault::Form), Err(UrlFault::Form)),
        ("//example.com/", Err(UrlFault::Form), Err(UrlFault::Form)),
        ("/path", Err(UrlFault::Form), Err(UrlFault::Form)),
        ("", Err(UrlFault::Form), Err(UrlFault::Form)),
        (" https://example.com/", Err(UrlFault::Form), Err(UrlFault::Form)),
        ("https://example.com/\r\nX: y", Err(UrlFault::Form), Err(UrlFault::Form)),
        ("https://example.com\\@evil.example/", Err(UrlFault::Form), Err(UrlFault::Form)),
        ("https://b\u{fc}cher.example/", Err(UrlFault::Form), Err(UrlFault::Form)),
        ("javascript:alert(1)", Err(UrlFault::Form), Err(UrlFault::Form)),
        ("javascript://example.com/%0aalert(1)", Err(UrlFault::Form), Err(UrlFault::Form)),
        ("data:text/html,x", Err(UrlFault::Form), Err(UrlFault::Form)),
        ("file:///etc/passwd", Err(UrlFault::Form), Err(UrlFault::Form)),
        ("vbscript:x", Err(UrlFault::Form), Err(UrlFault::Form)),
        ("ws://localhost/", Err(UrlFault::Form), Err(UrlFault::Form)),
    ] {
        let found = |server| policy.check(url, &at(server)).map(|_| ());
        assert_eq!((found(REMOTE), found(LOCAL)), (of_remote, of_local), "{url}");
    }
    // The host of the server is this machine in each of its spellings.
    for server in ["http://127.0.0.1:1/", "http://[::1]/", "https://localhost/", "http://127.3.2.1/"] {
        assert!(policy.check("http://localhost:5/x", &at(server)).is_ok(), "{server}");
    }
    for server in ["http://10.0.0.1/", "http://intranet.example/mcp"] {
        for url in ["http://localhost:5/x", server] {
            assert_eq!(policy.check(url, &at(server)), Err(UrlFault::Plain), "{url} of {server}");
        }
    }
    let long = |len: usize| format!("https://a/{}", "x".repeat(len - 10));
    assert!(policy.check(&long(2048), &at(REMOTE)).is_ok());
    assert_eq!(policy.check(&long(2049), &at(REMOTE)), Err(UrlFault::TooLong));
}

// covers: SEC-C-001, SEC-C-002, B-237
#[test]
fn address_beyond_the_reach_of_a_server_is_refused() {
    let policy = UrlPolicy::default();
    let beyond = Err(UrlFault::Reach);
    for (server, url, expected) in [
        // Link addresses, with the metadata services of clouds, from no server.
        (REMOTE, "https://169.254.169.254/latest", beyond),
        (LOCAL, "https://169.254.169.254/latest", beyond),
        ("https://10.0.0.1/mcp", "https://169.254.169.254/", beyond),
        (REMOTE, "https://[fe80::1]/", beyond),
        (LOCAL, "https://[fd00:ec2::254]/", beyond),
        (LOCAL, "https://[::ffff:169.254.169.254]/", beyond),
        (LOCAL, "https://0.0.0.0/", beyond),
        ("https://1.1.1.1/mcp", "https://10.0.0.1/", beyond),
        ("https://1.1.1.1/mcp", "https://127.0.0.1/", beyond),
        ("https://1.1.1.1/mcp", "https://1.0.0.1/", Ok(())),
        ("https://10.0.0.1/mcp", "https://127.0.0.1/", beyond),
        ("https://10.0.0.1/mcp", "https://10.0.0.2/", Ok(())),
        (LOCAL, "https://127.0.0.1/", Ok(())),
        (LOCAL, "https://10.0.0.1/", Ok(())),
        // Where this server is, only its connection tells.
        (REMOTE, "https://10.0.0.1/", Ok(())),
        // The origin of the server is where the client is already.
        ("https://169.254.1.1/mcp", "https://169.254.1.1/x", Ok(())),
        ("https://169.254.1.1/mcp", "https://169.254.1.1:8443/x", beyond),
    ] {
        assert_eq!(policy.check(url, &at(server)).map(|_| ()), expected, "{url} of {server}");
    }
    let fixed = |reach| UrlPolicy { reach: AuthReach::Fixed(reach), ..UrlPolicy::default() };
    assert_eq!(fixed(Reach::Public).check("https://10.0.0.1/", &at(LOCAL)).map(|_| ()), beyond);
    assert!(fixed(Reach::Near).check("https://10.0.0.1/", &at("https://1.1.1.1/")).is_ok());
}

// covers: SEC-C-001, B-237
#[test]
fn reach_follows_the_address_of_the_server() {
    let policy = UrlPolicy::default();
    let other = "https://auth.example.com/";
    for (server, url, peer, expected) in [
        (LOCAL, other, Some("127.0.0.1"), Reach::Near),
        (REMOTE, other, Some("127.0.0.1"), Reach::Near),
        (REMOTE, other, Some("::1"), Reach::Near),
        (REMOTE, other, Some("::ffff:127.0.0.1"), Reach::Near),
        (REMOTE, other, Some("10.1.2.3"), Reach::Site),
        (REMOTE, other, Some("192.168.1.1"), Reach::Site),
        (REMOTE, other, Some("fd12::1"), Reach::Site),
        (REMOTE, other, Some("1.1.1.1"), Reach::Public),
        (REMOTE, other, Some("2606:4700::1"), Reach::Public),
        (REMOTE, other, Some("169.254.1.1"), Reach::Public),
        (REMOTE, other, Some("0.0.0.0"), Reach::Public),
        // Unknown, as behind a proxy: the host of the server, if it is an address.
        (REMOTE, other, None, Reach::Public),
        (LOCAL, other, None, Reach::Near),
        ("https://[::1]/mcp", other, None, Reach::Near),
        ("https://10.0.0.1/mcp", other, None, Reach::Site),
        ("https://1.1.1.1/mcp", other, None, Reach::Public),
        // The connection tells more than the name.
        (LOCAL, other, Some("10.0.0.1"), Reach::Site),
        // The origin of the server, from where it may redirect.
        (REMOTE, "https://example.com/.well-known/x", Some("1.1.1.1"), Reach::Public),
        (REMOTE, "https://example.com/.well-known/x", Some("10.0.0.1"), Reach::Site),
        (REMOTE, "https://example.com/.well-known/x", Some("169.254.1.1"), Reach::Any),
        (REMOTE, "https://example.com:443/x", None, Reach::Any),
        (REMOTE, "https://example.com:8443/x", None, Reach::Public),
        (LOCAL, "http://localhost:3000/x", None, Reach::Near),
        (LOCAL, "http://localhost:3001/x", None, Reach::Loopback),
        (LOCAL, "http://127.0.0.1:3000/x", Some("127.0.0.1"), Reach::Loopback),
    ] {
        let peer = peer.map(|peer| peer.parse().unwrap());
        assert_eq!(policy.reach(&at(url), &at(server), peer), expected, "{url} of {server} at {peer:?}");
    }
    let fixed = UrlPolicy { reach: AuthReach::Fixed(Reach::Site), ..UrlPolicy::default() };
    let reach = |url, peer: &str| fixed.reach(&at(url), &at(LOCAL), Some(peer.parse().unwrap()));
    assert_eq!([reach(other, "1.1.1.1"), reach(other, "127.0.0.1")], [Reach::Site; 2]);
    assert_eq!(reach("http://localhost:3000/x", "127.0.0.1"), Reach::Any);
    assert_eq!(reach("http://localhost:3001/x", "127.0.0.1"), Reach::Loopback);
}

// covers: SEC-C-002
#[test]
fn plain_hosts_are_used_without_tls() {
    let policy = UrlPolicy {
        plain_hosts: ["Dev.Example".into(), "10.0.0.1".into(), "[fd12::1]".into()].into(),
        ..UrlPolicy::default()
    };
    for url in ["http://dev.example:8080/x", "http://DEV.example/", "http://10.0.0.1/", "http://[fd12::1]/"] {
        assert!(policy.check(url, &at(REMOTE)).is_ok(), "{url}");
    }
    for url in ["http://x.dev.example/", "http://dev.example.com/", "http://10.0.0.11/", "http://localhost/"] {
        assert_eq!(policy.check(url, &at(REMOTE)), Err(UrlFault::Plain), "{url}");
    }
    let peer = Some("10.0.0.9".parse().unwrap());
    assert_eq!(policy.reach(&at("http://dev.example/x"), &at(REMOTE), peer), Reach::Site);
}
