//! URLs that a peer names, and bounds.

use super::*;

// covers: SEC-C-001, SEC-C-002, SEC-C-003, SEC-C-005, B-237, B-239
#[test]
fn url_that_may_not_be_used_is_skipped_with_its_reason() {
    // Of the challenge.
    for (hint, why) in [
        ("http://h/metadata", "it has no TLS"),
        ("javascript:alert(1)", "it is no absolute http: or https: URL"),
        ("https://user@h/metadata", "it names a user"),
        ("https://h/metadata#x", "it has a fragment"),
        ("https://169.254.169.254/latest", "its host is not one that this server may name"),
        ("https://10.0.0.9/metadata", "its host is not one that this server may name"),
    ] {
        let mut world = World::new(SERVER);
        (world.hint, world.peer) = (Some(hint), Some("1.1.1.1".parse().unwrap()));
        let (urls, error) = world.failed();
        assert_eq!(urls, [RESOURCE_PATH, RESOURCE_ROOT], "{hint}");
        assert_eq!(tried(error)[0], (hint.into(), None, why.into()));
    }
    // Issuers.
    for (name, why) in [
        ("https://i/?a=1", "it has a query"),
        ("https://i/#a", "it has a fragment"),
        ("http://i", "it has no TLS"),
        ("file:///etc/passwd", "it is no absolute http: or https: URL"),
        ("https://i/.well-known/openid-configuration", "it is a URL of metadata, and no issuer"),
        ("https://192.168.1.1/x", "its host is not one that this server may name"),
    ] {
        let mut world = World::new(SERVER).issuers(&[name, "https://i"]).body(OPENID, issuer("https://i"));
        world.peer = Some("1.1.1.1".parse().unwrap());
        assert_eq!(world.found().0, [RESOURCE_PATH, OAUTH, OPENID], "{name}");
        world.replies.remove(OPENID);
        assert_eq!(reasons(world.failed().1)[0], why, "{name}");
    }
    // Redirects.
    for to in ["http://i/doc", "https://169.254.169.254/doc"] {
        let moved = FetchResponse { body: issuer("https://i").into(), ..response(to, 200, "") };
        let world = World::new(SERVER).issuers(&["https://i"]).with(OAUTH, Reply::Response(moved));
        let why = &reasons(world.failed().1)[0];
        assert!(why.starts_with(&format!("redirect: the URL {to} cannot be used")), "{why}");
    }
}

// covers: SEC-C-003, SEC-C-005, B-239
#[test]
fn endpoint_that_may_not_be_used_is_not() {
    for (name, is_needed) in [
        ("token_endpoint", true),
        ("authorization_endpoint", true),
        ("registration_endpoint", false),
        ("revocation_endpoint", false),
    ] {
        for (url, why) in [
            ("javascript:alert(1)", "it is no absolute http: or https: URL"),
            ("http://i/x", "it has no TLS"),
            ("https://user@i/x", "it names a user"),
            ("https://169.254.169.254/x", "its host is not one that this server may name"),
        ] {
            // The last member of a name counts.
            let document = issuer_with("https://i", &format!(r#","{name}":"{url}""#));
            let world = World::new(SERVER).issuers(&["https://i"]).body(OAUTH, document);
            let text = format!("{name}: the URL {url} cannot be used: {why}");
            if is_needed {
                assert_eq!(reasons(world.failed().1), [text.as_str(), "HTTP 404"]);
                assert_eq!(world.body(OPENID, issuer("https://i")).found().0.last().unwrap(), OPENID);
            } else {
                let (_, found) = world.found();
                assert_eq!(found.reports, [AuthReport::Deviation(text)]);
                assert_eq!((found.issuer.registration_endpoint, found.issuer.revocation_endpoint), (None, None));
            }
        }
        // Another origin is bound by the document.
        let document = issuer_with("https://i", &format!(r#","{name}":"https://api.example/x?y=1""#));
        World::new(SERVER).issuers(&["https://i"]).body(OAUTH, document).found();
    }
}

#[test]
fn search_is_bounded_and_shows_no_endless_texts() {
    let long = format!("https://{}", "x".repeat(60_000));
    let world = World::new(SERVER).issuers(&[&long, "https://i/a", "https://i/b", "https://i/c", "https://i/d"]);
    let (urls, error) = world.failed();
    assert_eq!(urls.len(), 1 + 3 * 3);
    let tried = tried(error);
    assert_eq!((tried[0].2.as_str(), tried[0].0.len()), ("it is too long", 2048));
    let (_, error) = World::new(SERVER).issuers(&["https://i"]).body(OAUTH, issuer(&long)).failed();
    assert!(reasons(error)[0].len() < 2200);
    let (_, error) = World::new(SERVER).body(RESOURCE_PATH, resource(&long, &[])).failed();
    assert!(matches!(error, AuthError::ResourceMismatch { found, .. } if found.len() == 2048));
}

// covers: AUTHD-C-006
#[test]
fn local_server_is_searched_without_tls() {
    let server = "http://localhost:3000/mcp";
    let at = "http://localhost:3000/.well-known/oauth-protected-resource/mcp";
    let issuer_at = "http://localhost:4000/.well-known/oauth-authorization-server";
    let world = World::new(server).body(at, resource(server, &["http://localhost:4000"]));
    let world = world.body(issuer_at, issuer("http://localhost:4000"));
    let (requests, end) = world.requests();
    assert!(matches!(end, Next::Found(_)), "{end:?}");
    let reach = requests.iter().map(|request| (request.url.url(), request.reach));
    assert_eq!(reach.collect::<Vec<_>>(), [(at.into(), Reach::Near), (issuer_at.into(), Reach::Loopback)]);
}
