use super::*;
use alloc::string::ToString;

fn resource(identifier: &str) -> Resource {
    Resource::new(identifier, ["https://issuer.example"])
}

fn text(resource: &Resource) -> String {
    String::from_utf8(resource.document().unwrap().body.to_vec()).unwrap()
}

// covers: RSRC-S-011, AUTHD-S-001
#[test]
fn document_says_what_the_resource_is() {
    assert_eq!(
        text(&resource("https://host.example/mcp")),
        r#"{"resource":"https://host.example/mcp","authorization_servers":["https://issuer.example"],"bearer_methods_supported":["header"]}"#
    );
    let full = Resource::new("https://HOST.example/mcp/", ["https://a.example", "https://b.example/"])
        .scopes_supported(["write", "read"])
        .name("Files")
        .documentation("https://host.example/docs");
    let text = text(&full);
    for member in [
        // Byte for byte as configured.
        r#""resource":"https://HOST.example/mcp/""#,
        r#""authorization_servers":["https://a.example","https://b.example/"]"#,
        r#""scopes_supported":["read","write"]"#,
        r#""resource_name":"Files""#,
        r#""resource_documentation":"https://host.example/docs""#,
    ] {
        assert!(text.contains(member), "{member}: {text}");
    }
    assert!(!text.contains("dpop"), "{text}");
}

// covers: AUTHS-S-018
#[test]
fn document_does_not_offer_the_scope_for_refresh_tokens() {
    let both = resource("https://host.example/mcp").scopes_supported(["offline_access", "read"]);
    assert!(text(&both).contains(r#""scopes_supported":["read"]"#));
    let alone = resource("https://host.example/mcp").scopes_supported(["offline_access"]);
    assert!(!text(&alone).contains("scopes_supported"));
}

#[test]
fn document_names_proofs_if_they_are_accepted() {
    for required in [false, true] {
        let text = text(&resource("https://host.example/mcp").dpop(required));
        let member = r#""dpop_bound_access_tokens_required":"#.to_string() + if required { "true" } else { "false" };
        assert!(text.contains(&member) && text.contains(r#""dpop_signing_alg_values_supported":["ES256","#), "{text}");
    }
}

// covers: RSRC-S-011, B-195
#[test]
fn url_of_the_document_is_derived_from_the_identifier() {
    const ROOT: &str = "/.well-known/oauth-protected-resource";
    for (identifier, origin, path) in [
        ("https://host.example", "https://host.example", ROOT.to_string()),
        ("https://host.example/", "https://host.example", ROOT.to_string()),
        ("https://host.example/mcp", "https://host.example", ROOT.to_string() + "/mcp"),
        ("https://host.example:8443/a/mcp/", "https://host.example:8443", ROOT.to_string() + "/a/mcp/"),
        ("http://localhost:80/mcp?tenant=1", "http://localhost", ROOT.to_string() + "/mcp"),
    ] {
        let document = resource(identifier).document().unwrap();
        assert_eq!((document.url, document.path.clone()), (origin.to_string() + &path, path), "{identifier}");
    }
}

#[test]
fn bad_identifier_has_no_document() {
    for identifier in ["", "mcp", "/mcp", "ftp://host.example/mcp", "https://host.example/mcp#part", "https://"] {
        let resource = resource(identifier);
        assert!(resource.check().is_err() && resource.document().is_none(), "{identifier}");
    }
    assert!(resource("https://host.example/mcp").check().is_ok());
}

#[test]
#[should_panic(expected = "is no scope")]
fn scope_that_would_not_be_demanded_is_refused() {
    let _ = resource("https://host.example/mcp").scopes_required(["read write"]);
}
