use super::*;
use alloc::collections::BTreeSet;
use proptest::prelude::*;

fn at(url: &str) -> HttpTarget {
    HttpTarget::parse(url).unwrap()
}

// covers: AUTHD-C-006, B-233
#[test]
fn resource_metadata_is_below_the_path_or_at_the_root() {
    for (server, expected) in [
        ("https://h", &["https://h/.well-known/oauth-protected-resource"][..]),
        ("https://h/", &["https://h/.well-known/oauth-protected-resource"]),
        ("https://h//", &["https://h/.well-known/oauth-protected-resource"]),
        ("https://h/?a=1", &["https://h/.well-known/oauth-protected-resource"]),
        (
            "https://h/mcp",
            &["https://h/.well-known/oauth-protected-resource/mcp", "https://h/.well-known/oauth-protected-resource"],
        ),
        (
            "https://h/mcp/",
            &["https://h/.well-known/oauth-protected-resource/mcp/", "https://h/.well-known/oauth-protected-resource"],
        ),
        (
            "https://h/mcp//",
            &["https://h/.well-known/oauth-protected-resource/mcp/", "https://h/.well-known/oauth-protected-resource"],
        ),
        (
            "HTTP://LocalHost:80/A/b%2Fc?x=/y",
            &[
                "http://localhost/.well-known/oauth-protected-resource/A/b%2Fc",
                "http://localhost/.well-known/oauth-protected-resource",
            ],
        ),
        (
            "http://[::1]:8080/mcp",
            &[
                "http://[::1]:8080/.well-known/oauth-protected-resource/mcp",
                "http://[::1]:8080/.well-known/oauth-protected-resource",
            ],
        ),
        ("https://h/.well-known/oauth-protected-resource/mcp", &["https://h/.well-known/oauth-protected-resource"]),
    ] {
        assert_eq!(resource_urls(&at(server)), expected, "{server}");
    }
}

// covers: AUTHD-C-012, AUTHD-C-013, AUTHD-C-014, B-233
#[test]
fn issuer_metadata_has_the_specified_order() {
    for (issuer, expected) in [
        (
            "https://h",
            &["https://h/.well-known/oauth-authorization-server", "https://h/.well-known/openid-configuration"][..],
        ),
        (
            "https://h/",
            &["https://h/.well-known/oauth-authorization-server", "https://h/.well-known/openid-configuration"],
        ),
        (
            "https://h:8443//",
            &[
                "https://h:8443/.well-known/oauth-authorization-server",
                "https://h:8443/.well-known/openid-configuration",
            ],
        ),
        (
            "https://h/t",
            &[
                "https://h/.well-known/oauth-authorization-server/t",
                "https://h/.well-known/openid-configuration/t",
                "https://h/t/.well-known/openid-configuration",
            ],
        ),
        (
            "https://h/t/",
            &[
                "https://h/.well-known/oauth-authorization-server/t",
                "https://h/.well-known/openid-configuration/t",
                "https://h/t/.well-known/openid-configuration",
            ],
        ),
        (
            "https://H:443/a/B//",
            &[
                "https://h/.well-known/oauth-authorization-server/a/B",
                "https://h/.well-known/openid-configuration/a/B",
                "https://h/a/B/.well-known/openid-configuration",
            ],
        ),
        ("https://h/.well-known/oauth-authorization-server", &[]),
        ("https://h/t/.well-known/openid-configuration", &[]),
    ] {
        assert_eq!(issuer_urls(&at(issuer)), expected, "{issuer}");
    }
    assert_eq!(
        first_revision_url(&at("https://h:8443/mcp?x")),
        "https://h:8443/.well-known/oauth-authorization-server"
    );
}

proptest! {
    // covers: B-233
    #[test]
    fn candidates_are_well_formed_and_all_different(
        segments in prop::collection::vec("[a-z0-9.~%-]{0,3}[a-z0-9]", 0..4),
        slashes in 0..4_usize,
        port in prop::option::of(1..u16::MAX),
        tls in any::<bool>(),
        place in prop::option::of(0..4_usize),
    ) {
        let mut segments: Vec<String> = segments.into_iter().map(|segment| segment.replace('%', "%20")).collect();
        if let Some(place) = place.filter(|place| *place < segments.len()) {
            segments[place] = ".well-known".into();
        }
        let scheme = if tls { "https" } else { "http" };
        let port = port.map_or_else(String::new, |port| format!(":{port}"));
        let path: String = segments.iter().map(|segment| format!("/{segment}")).collect();
        let url = at(&format!("{scheme}://host.example{port}{path}{}", "/".repeat(slashes)));
        let (resource, issuer) = (resource_urls(&url), issuer_urls(&url));
        let is_nested = segments.iter().any(|segment| segment == ".well-known");
        prop_assert_eq!(resource.len(), if segments.is_empty() || is_nested { 1 } else { 2 });
        prop_assert_eq!(issuer.len(), if is_nested { 0 } else if segments.is_empty() { 2 } else { 3 });
        for urls in [&resource, &issuer] {
            prop_assert_eq!(urls.iter().collect::<BTreeSet<_>>().len(), urls.len());
            for candidate in urls {
                let target = at(candidate);
                prop_assert_eq!(&target.origin, &url.origin);
                prop_assert_eq!(&target.url(), candidate);
                prop_assert!(!target.path.contains("//"), "{}", candidate);
                prop_assert_eq!(candidate.matches("/.well-known/").count(), 1, "{}", candidate);
            }
        }
        // Both spellings of an issuer have the same candidates.
        prop_assert_eq!(issuer, issuer_urls(&at(&format!("{}/", url.url()))));
        prop_assert!(fits(&own_identifier(&url), &url));
    }
}

// covers: AUTHF-C-006
#[test]
fn identifier_without_metadata_is_the_url_of_the_server() {
    for (server, expected) in [
        ("HTTPS://Example.COM:443/MCP?a=1", "https://example.com/MCP"),
        ("https://example.com/", "https://example.com"),
        ("https://example.com", "https://example.com"),
        ("https://example.com/?a=1", "https://example.com"),
        ("https://example.com/mcp/", "https://example.com/mcp/"),
        ("http://localhost:8080/mcp#part", "http://localhost:8080/mcp"),
        ("http://[::1]:80/a/b", "http://[::1]/a/b"),
    ] {
        assert_eq!(own_identifier(&at(server)), expected, "{server}");
    }
}

// covers: RSRC-C-012, B-236
#[test]
fn identifier_fits_a_server_at_or_below_it() {
    let server = at("https://example.com/a/mcp?tenant=1");
    for (identifier, expected) in [
        ("https://example.com/a/mcp", true),
        ("HTTPS://EXAMPLE.com:443/a/mcp", true),
        ("https://example.com/a/mcp/", true),
        ("https://example.com/a/mcp?tenant=1", true),
        ("https://example.com/a/", true),
        ("https://example.com/a", true),
        ("https://example.com/", true),
        ("https://example.com", true),
        ("https://example.com/a/mcp?tenant=2", false),
        ("https://example.com/a/mcp?", false),
        ("https://example.com/a?tenant=1", false),
        ("https://example.com/a/mc", false),
        ("https://example.com/a/mcp2", false),
        ("https://example.com/a/mcp/x", false),
        ("https://example.com/A/mcp", false),
        ("https://example.com/b", false),
        ("https://example.com/a/mcp#part", false),
        ("https://example.com:8443/a/mcp", false),
        ("http://example.com/a/mcp", false),
        ("http://example.com:443/a/mcp", false),
        ("https://evil.example/a/mcp", false),
        ("https://example.com.evil.example/a/mcp", false),
        ("https://example.com@evil.example/a/mcp", false),
        ("https://user@example.com/a/mcp", false),
        ("wss://example.com/a/mcp", false),
        ("/a/mcp", false),
        ("example.com", false),
        ("", false),
    ] {
        assert_eq!(fits(identifier, &server), expected, "{identifier}");
    }
    for server in ["https://example.com", "https://example.com/"] {
        for (identifier, expected) in
            [("https://example.com", true), ("https://example.com/", true), ("https://example.com/mcp", false)]
        {
            assert_eq!(fits(identifier, &at(server)), expected, "{identifier} at {server}");
        }
    }
    let long = format!("https://example.com/{}", "x".repeat(2048));
    assert!(!fits(&long, &at(&long)));
}

// covers: AUTHD-C-015, B-229
#[test]
fn issuers_are_equal_but_for_one_slash() {
    use IssuerMatch::{Different, Equal, Slash};
    for (found, asked, expected) in [
        ("https://h", "https://h", Equal),
        ("https://h/", "https://h/", Equal),
        ("https://h/", "https://h", Slash),
        ("https://h", "https://h/", Slash),
        ("https://h/t/", "https://h/t", Slash),
        ("https://h/t", "https://h/t/", Slash),
        ("https://h//", "https://h", Different),
        ("https://h", "https://h//", Different),
        ("https://h/t", "https://h", Different),
        ("https://H", "https://h", Different),
        ("https://h:443", "https://h", Different),
        ("http://h", "https://h", Different),
        ("https://attacker.example", "https://h", Different),
        ("", "https://h", Different),
    ] {
        assert_eq!(same_issuer(found, asked, true), expected, "{found} for {asked}");
        let strict = if expected == Slash { Different } else { expected };
        assert_eq!(same_issuer(found, asked, false), strict, "{found} for {asked}");
    }
}
