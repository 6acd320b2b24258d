//! Redirects of the handshake (RFC 6455 section 4.1, RFC 9110 section 15.4).

use super::*;
use crate::client::{ClientCommands, Redirects};

const ALL: Redirects = Redirects::Follow { max: 5 };

/// A client with a header field of its own.
fn moving(redirects: Redirects) -> ClientPeer {
    let mut config = config(Policy::Modern);
    config.redirects = redirects;
    config.authorize = true;
    config.headers.push("X-Own", "1");
    let mut peer = ClientPeer::new(config);
    peer.client.call(peer.now, tools::call("x")).unwrap();
    peer.drain();
    peer
}

impl ClientPeer {
    /// The server answers the handshake with this status and fields, and closes the connection.
    /// Returns the head of the next handshake, if there is one.
    fn refuse(&mut self, status: u16, fields: &str) -> Option<String> {
        let old = self.id;
        self.written.clear();
        self.read(format!("HTTP/1.1 {status} x\r\n{fields}Content-Length: 0\r\n\r\n").as_bytes());
        self.client.handle_io(self.now, old, IoEvent::Closed(Closed::Aborted));
        self.drain();
        self.reopened(old)
    }

    fn redirect(&mut self, status: u16, location: &str) -> Option<String> {
        self.refuse(status, &format!("Location: {location}\r\n"))
    }

    /// Opens the connection that has taken the place of an old one. Returns the head that the
    /// client sends on it.
    fn reopened(&mut self, old: ConnectionId) -> Option<String> {
        if self.id == old {
            return None;
        }
        self.client.handle_io(self.now, self.id, IoEvent::Opened(Peer::default()));
        self.drain();
        Some(String::from_utf8(self.written.clone()).unwrap())
    }

    fn origin(&self) -> String {
        match &self.endpoint {
            Some(Endpoint::Origin(origin) | Endpoint::Within(origin, _)) => format!("{}:{}", origin.host, origin.port),
            other => panic!("{other:?}"),
        }
    }

    fn detail(&self) -> Vec<(DiagnosticKind, String)> {
        let diagnostics = self.events.iter().filter_map(|event| match event {
            client::Event::Diagnostic(diagnostic) => Some((diagnostic.kind, diagnostic.detail.to_string())),
            _ => None,
        });
        diagnostics.collect()
    }
}

// covers: WS-C-010, REDIR-C-001, REDIR-C-007
#[test]
fn handshake_follows_redirects_within_its_origin() {
    for status in [301, 302, 303, 307, 308] {
        for (location, target) in
            [("/mcp/", "/mcp/"), ("ws://LOCALHOST:80/a?b=1#c", "/a?b=1"), ("http://localhost/", "/")]
        {
            let mut peer = moving(Redirects::default());
            let head = peer.redirect(status, location).expect("another handshake");
            assert!(head.starts_with(&format!("GET {target} HTTP/1.1\r\nHost: localhost\r\n")), "{head}");
            assert!(head.contains("X-Own: 1\r\n") && peer.origin() == "localhost:80", "{head}");
            let detail = format!("{status} from ws://localhost/mcp to ws://localhost{target}");
            assert_eq!(peer.detail(), [(DiagnosticKind::Redirected, detail)]);
            peer.accept();
            assert_eq!(peer.written[0], 0x81, "the probe");
            assert!(peer.outcome().is_none());
        }
    }
}

// covers: WS-C-010, REDIR-C-003, REDIR-C-006, REDIR-C-007
#[test]
fn handshake_that_is_not_redirected_fails_with_its_reason() {
    for (redirects, fields, reason) in [
        (Redirects::None, "Location: /mcp/\r\n", " to /mcp/, not followed: redirects are off"),
        (Redirects::default(), "Location: ws://b/\r\n", " to ws://b/, not followed: it leads to another origin"),
        (
            Redirects::default(),
            "Location: wss://localhost/\r\n",
            " to wss://localhost/, not followed: it leads to another origin",
        ),
        (ALL, "Location: /mcp\r\n", " to /mcp, not followed: it leads back to where the request has been"),
        (ALL, "Location: ftp://b/\r\n", " to ftp://b/, not followed: the location is not one http: or https: URL"),
        (ALL, "", ", not followed: the location is not one http: or https: URL"),
        (ALL, "Location: /a\r\nLocation: /b\r\n", ", not followed: the location is not one http: or https: URL"),
    ] {
        let mut peer = moving(redirects);
        assert_eq!(peer.refuse(307, fields), None, "{fields}");
        let shown = peer.outcome().expect("the call ends").to_string();
        assert!(shown.contains(&format!("HTTP 307 in place of a websocket [redirected{reason}]")), "{shown}");
    }
}

// covers: WS-C-010, REDIR-C-007
#[test]
fn chain_of_redirected_handshakes_ends() {
    let mut peer = moving(Redirects::default());
    for n in 0..5 {
        assert!(peer.redirect(307, &format!("/{n}")).is_some(), "{n}");
    }
    assert_eq!(peer.redirect(307, "/5"), None);
    assert!(peer.outcome().unwrap().to_string().contains("too many redirects in a row"));
}

// covers: WS-C-010, REDIR-C-004, REDIR-C-005
#[test]
fn nothing_of_the_application_goes_to_another_origin() {
    let mut peer = moving(ALL);
    let head = peer.redirect(307, "ws://b:81/x").expect("another handshake");
    assert!(head.starts_with("GET /x HTTP/1.1\r\nHost: b:81\r\n") && peer.origin() == "b:81", "{head}");
    assert!(!head.contains("X-Own"), "{head}");
    // The application is not asked for credentials of that server.
    assert_eq!(peer.refuse(401, "WWW-Authenticate: Bearer\r\n"), None);
    assert!(!peer.events.iter().any(|event| matches!(event, client::Event::AuthNeeded { .. })));
    assert!(peer.outcome().unwrap().to_string().contains("HTTP 401"));
    // Back at its own origin, it sends its fields again.
    let mut peer = moving(ALL);
    peer.redirect(307, "ws://b:81/x");
    let head = peer.redirect(307, "http://localhost/y").expect("another handshake");
    assert!(head.starts_with("GET /y HTTP/1.1\r\nHost: localhost\r\n") && head.contains("X-Own: 1\r\n"), "{head}");
}

// covers: WS-C-010
#[test]
fn configured_url_is_tried_again_if_the_other_is_gone() {
    let mut config = config(Policy::Auto);
    config.redirects = ALL;
    let mut peer = ClientPeer::new(config);
    peer.client.call(peer.now, tools::call("x")).unwrap();
    peer.redirect(307, "ws://b:81/x");
    peer.accept();
    // The server of the other era ends the connection, and is gone when the next one is opened.
    let old = peer.id;
    peer.written.clear();
    peer.client.handle_io(peer.now, old, IoEvent::Closed(Closed::Eof));
    peer.drain();
    assert_eq!(peer.origin(), "b:81");
    assert_ne!(peer.id, old);
    peer.client.handle_io(peer.now, peer.id, IoEvent::Closed(Closed::Refused));
    peer.drain();
    assert_eq!(peer.origin(), "localhost:80");
    let head = peer.reopened(old).expect("another handshake");
    assert!(head.starts_with("GET /mcp HTTP/1.1\r\nHost: localhost\r\n"), "{head}");
    // Once: nothing is left where the client began.
    peer.client.handle_io(peer.now, peer.id, IoEvent::Closed(Closed::Refused));
    peer.drain();
    assert!(peer.outcome().unwrap().to_string().contains("refused"), "{:?}", peer.events);
}

// covers: WS-C-010, REDIR-C-006, B-237
#[test]
fn handshake_after_a_public_server_stays_public() {
    let mut config = config(Policy::Modern);
    (config.redirects, config.target) = (ALL, ClientConfig::url("ws://example.com/mcp").unwrap().target);
    let open = |config: &ClientConfig, address: &str| {
        let address = Peer::tcp(format!("{address}:80").parse().unwrap());
        let mut peer = ClientPeer::reaching(config.clone(), address);
        peer.client.call(peer.now, tools::call("x")).unwrap();
        peer.drain();
        peer
    };
    let mut peer = open(&config, "1.1.1.1");
    peer.redirect(307, "ws://example.org/");
    assert!(matches!(&peer.endpoint, Some(Endpoint::Within(origin, Reach::Public)) if &*origin.host == "example.org"));
    let mut peer = open(&config, "1.1.1.1");
    assert_eq!(peer.redirect(307, "ws://127.0.0.1/"), None);
    let ended = format!("{:?}", peer.events);
    assert!(ended.contains("NotPublic"), "{ended}");
    let mut peer = open(&config, "10.0.0.1");
    peer.redirect(307, "ws://127.0.0.1/");
    assert!(matches!(&peer.endpoint, Some(Endpoint::Origin(origin)) if &*origin.host == "127.0.0.1"));
}
