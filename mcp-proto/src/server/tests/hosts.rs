//! The hosts and origins that a request may name.

use super::*;
use crate::exchange::{Headers, RequestHead};

fn only(entries: &[&str]) -> Hosts {
    Hosts::Only(entries.iter().map(ToString::to_string).collect())
}

/// Returns the status of a request with these fields, and the details of the diagnostics.
fn asked(hosts: &Hosts, target: &str, fields: &[(&str, &str)]) -> (u16, Vec<String>) {
    asked_by(&Peer::default(), hosts, target, fields)
}

/// Like [`asked`], for a request of this peer.
fn asked_by(peer: &Peer, hosts: &Hosts, target: &str, fields: &[(&str, &str)]) -> (u16, Vec<String>) {
    let mut bench = Bench::with(|config| {
        config.hosts = hosts.clone();
        config.path = None;
    });
    let headers = Headers::new()
        .with("Content-Type", "application/json")
        .with("Accept", "application/json, text/event-stream")
        .with("MCP-Protocol-Version", "2026-07-28")
        .with("Mcp-Method", "server/discover");
    let headers = fields.iter().fold(headers, |headers, (name, value)| headers.with(name, *value));
    bench.handle_event(A, ExchangeEvent::From(peer.clone().into()));
    bench.item(A, Inbound::Request(RequestHead { method: "POST".into(), target: target.into(), headers }));
    bench.item(A, read(&modern("1", "server/discover", "")));
    bench.item(A, Inbound::End);
    let (mut status, mut told) = (0, vec![]);
    for output in bench.outputs() {
        match output {
            Output::Send(A, Outbound::Response { head, .. }) => status = head.status,
            Output::Event(Event::Diagnostic(Diagnostic { kind: DiagnosticKind::ForeignHost, detail, .. })) => {
                told.push(detail)
            }
            _ => {}
        }
    }
    assert!(bench.server.wire.env.exchanges.is_empty());
    (status, told)
}

// covers: HTTP-S-002, SHTTP-S-002, B-180, B-181, B-182
#[test]
fn loopback_names_are_unambiguous() {
    let local = Hosts::default();
    assert_eq!(local, Hosts::Loopback);
    for host in [
        "localhost",
        "LocalHost:80",
        "127.0.0.1",
        "127.255.0.9:8000",
        "[::1]",
        "[0:0::1]:1",
        "localhost:",
        " localhost\t",
    ] {
        assert!(local.allows_host(host), "{host}");
        for scheme in ["http", "https", "HTTP"] {
            assert!(local.allows_origin(&format!("{scheme}://{}", host.trim())), "{host}");
        }
    }
    for host in [
        "",
        ":80",
        ".",
        "localhost.",
        "localhost.evil.example",
        "evil.example",
        "evil.localhost",
        "localhostx",
        "127.0.0.1.evil.example",
        "127.0.0.1.",
        "127.1",
        "127.0.0.01",
        "0x7f.0.0.1",
        "2130706433",
        "0x7f000001",
        "128.0.0.1",
        "0.0.0.0",
        "0.0.0.0:80",
        "[::]",
        "[::]:80",
        "[::ffff:0.0.0.0]",
        "::1",
        "[::1",
        "[::1]x",
        "[::1].evil.example",
        "[::1%25lo]",
        "[127.0.0.1]",
        "localhost:80:80",
        "localhost:+80",
        "localhost:80a",
        "localhost:65536",
        "localhost:80@evil.example",
        "user@localhost",
        "localhost/",
        "localhost?",
        "localhost#",
        "localhost\\",
        "local host",
        "localhost, evil.example",
        "%6cocalhost",
        "loc\u{e0}lhost",
        "localhost\u{3002}evil.example",
        "localhost\0",
    ] {
        assert!(!local.allows_host(host), "{host}");
        assert!(!local.allows_origin(&format!("http://{host}")), "{host}");
        assert_eq!(asked(&local, "/mcp", &[("hOST", host)]).0, 403, "{host}");
        assert_eq!(asked(&local, "/mcp", &[("Host", "localhost"), ("oRIGIN", &format!("http://{host}"))]).0, 403);
    }
    for origin in [
        "null",
        "",
        "localhost",
        "://localhost",
        "ftp://localhost",
        "file://",
        "http:localhost",
        "*",
        "http:// localhost",
    ] {
        assert!(!local.allows_origin(origin), "{origin}");
    }
}

// covers: B-181, B-182, B-184
#[test]
fn host_list_allows_its_hosts_at_its_ports() {
    let hosts =
        only(&["example.com", "Api.Example:8443", "2001:db8::1", "[2001:db8::2]:81", "10.0.0.1", "tls.example:443"]);
    for host in [
        "example.com",
        "EXAMPLE.com:1",
        "api.example:8443",
        "[2001:DB8:0::1]",
        "[2001:db8::1]:9",
        "[2001:db8::2]:81",
        "10.0.0.1:80",
        "tls.example",
        "tls.example:443",
    ] {
        assert!(hosts.allows_host(host), "{host}");
    }
    for host in [
        "api.example",
        "api.example:844",
        "api.example:84430",
        "example.com.evil.example",
        "example.comx",
        "wwwexample.com",
        "www.example.com",
        "[2001:db8::2]",
        "[2001:db8::2]:80",
        "2001:db8::1",
        "10.0.0.10",
        "tls.example:80",
        "localhost",
        "127.0.0.1",
    ] {
        assert!(!hosts.allows_host(host), "{host}");
    }
    assert!(hosts.allows_origin("https://tls.example") && !hosts.allows_origin("http://tls.example"));
    assert!(hosts.allows_origin("http://example.com") && hosts.allows_origin("https://api.example:8443"));
    // An address to listen on is not a name to connect to, and an invalid host is not an entry.
    let odd = only(&["0.0.0.0", "::", "[::]:80", "", "*", "*.example.com", "http://example.com", "a@b", "127.1"]);
    for host in ["0.0.0.0", "[::]", "[::]:80", "", "*", "www.example.com", "example.com", "b", "127.1", "127.0.0.1"] {
        assert!(!odd.allows_host(host) && !odd.allows_origin(&format!("http://{host}")), "{host}");
    }
    assert!(!only(&[]).allows_host("localhost"));
}

// covers: HTTP-S-003, SHTTP-S-003, S3-43, B-180, B-183, B-184
#[test]
fn every_host_and_origin_is_checked_and_reported() {
    let local = Hosts::Loopback;
    // A client other than a browser sends no origin.
    for fields in
        [&[][..], &[("Host", "localhost:3000")], &[("Host", "localhost"), ("Origin", "http://127.0.0.1:5173")]]
    {
        assert_eq!(asked(&local, "/mcp", fields), (200, vec![]));
    }
    let refused: [(&[(&str, &str)], &str); 6] = [
        (&[("Host", "evil.example:80")], r#"the host "evil.example:80""#),
        (&[("Host", "localhost"), ("Host", "evil.example")], r#"the host "evil.example""#),
        (&[("Host", "localhost"), ("Origin", "https://evil.example")], r#"the origin "https://evil.example""#),
        (&[("Origin", "http://localhost"), ("origin", "http://evil.example")], r#"the origin "http://evil.example""#),
        (
            &[("Origin", "http://localhost, http://evil.example")],
            r#"the origin "http://localhost, http://evil.example""#,
        ),
        (&[("Origin", "null")], r#"the origin "null""#),
    ];
    for (fields, told) in refused {
        assert_eq!(asked(&local, "/mcp", fields), (403, vec![told.to_string()]), "{fields:?}");
    }
    // A target in absolute form names the host, regardless of the field.
    let fields = [("Host", "localhost")];
    assert_eq!(
        asked(&local, "http://evil.example/mcp", &fields),
        (403, vec![r#"the host "evil.example""#.to_string()])
    );
    assert_eq!(asked(&local, "http://localhost@evil.example?/", &fields).0, 403);
    assert_eq!(asked(&local, "http://localhost/mcp", &fields).0, 200);
    assert_eq!(asked(&local, "http://localhost/mcp", &[("Host", "evil.example")]).0, 200);
    assert_eq!(asked(&local, "/mcp?url=http://evil.example/", &fields).0, 200);
    // With checks elsewhere, any host is allowed.
    let all = [("Host", "0.0.0.0"), ("Host", "a@b"), ("Origin", "null"), ("Origin", "app://x")];
    assert_eq!(asked(&Hosts::Any, "/mcp", &all), (200, vec![]));
    assert_eq!(asked(&only(&["mcp.example"]), "/mcp", &[("Host", "mcp.example"), ("Origin", "null")]).0, 403);
}

// covers: B-180
#[test]
fn loopback_serves_only_local_clients() {
    let host = [("Host", "localhost")];
    let of = |address: &str| Peer { address: Some(address.parse().unwrap()), ..Peer::default() };
    let lists = [Hosts::Any, only(&["localhost"])];
    for near in ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"] {
        assert_eq!(asked_by(&of(near), &Hosts::Loopback, "/mcp", &host), (200, vec![]), "{near}");
    }
    for far in ["192.0.2.1", "10.0.0.1", "0.0.0.0", "::", "fd00::2", "::ffff:192.0.2.1", "::127.0.0.1"] {
        let told = format!("the client address {}", of(far).address.unwrap());
        assert_eq!(asked_by(&of(far), &Hosts::Loopback, "/mcp", &host), (403, vec![told]), "{far}");
        for hosts in &lists {
            assert_eq!(asked_by(&of(far), hosts, "/mcp", &host), (200, vec![]), "{far} {hosts:?}");
        }
    }
    // Without an address of the peer, the names decide: a Unix socket, or a driver that does not
    // report addresses.
    assert_eq!(asked_by(&Peer::unix(None), &Hosts::Loopback, "/mcp", &host), (200, vec![]));
}
