use super::*;
use alloc::string::ToString;
use alloc::vec;

fn resource(document: &str) -> Result<ResourceMetadata, &'static str> {
    ResourceMetadata::read(document.as_bytes())
}

fn issuer(document: &str) -> Result<IssuerMetadata, &'static str> {
    IssuerMetadata::read(document.as_bytes())
}

// covers: AUTHD-C-002
#[test]
fn resource_document_names_resource_issuers_and_scopes() {
    let document = r#"{
        "resource": "https://H/mcp", "authorization_servers": ["https://a", "https://b/t/"],
        "scopes_supported": ["read", "write", "no scope"], "bearer_methods_supported": ["header"], "x": [1]
    }"#;
    let found = resource(document).unwrap();
    assert_eq!(found.resource, "https://H/mcp", "as published");
    assert_eq!(found.authorization_servers, ["https://a", "https://b/t/"]);
    assert_eq!(found.scopes_supported.unwrap().to_string(), "read write");
    let found = resource(r#"{"resource":"r","authorization_servers":null,"scopes_supported":null}"#).unwrap();
    assert_eq!((found.authorization_servers, found.scopes_supported), (vec![], None));
    let found = resource(r#"{"resource":"r","authorization_servers":["1","2","3","4","5","6"]}"#).unwrap();
    assert_eq!(found.authorization_servers, ["1", "2", "3", "4"], "the first four");
}

// covers: AUTHD-C-010, AUTHD-C-012
#[test]
fn issuer_document_names_endpoints_and_abilities() {
    let document = r#"{
        "issuer": "https://i/", "authorization_endpoint": "https://i/a?x=1", "token_endpoint": "https://i/t",
        "registration_endpoint": "https://i/r", "revocation_endpoint": "https://i/v",
        "device_authorization_endpoint": "https://i/d", "token_endpoint_auth_signing_alg_values_supported": ["ES256"],
        "scopes_supported": ["s"], "code_challenge_methods_supported": ["plain", "S256"],
        "token_endpoint_auth_methods_supported": ["none", "private_key_jwt"],
        "client_id_metadata_document_supported": true, "authorization_response_iss_parameter_supported": true,
        "id_token_signing_alg_values_supported": ["RS256"], "dpop_signing_alg_values_supported": ["RS256", "EdDSA"]
    }"#;
    let text = |text: &str| Some(text.to_string());
    let expected = IssuerMetadata {
        issuer: "https://i/".into(),
        authorization_endpoint: text("https://i/a?x=1"),
        token_endpoint: "https://i/t".into(),
        registration_endpoint: text("https://i/r"),
        revocation_endpoint: text("https://i/v"),
        device_endpoint: text("https://i/d"),
        scopes_supported: Some(Scopes::parse("s")),
        code_challenge_methods: Some(vec!["plain".into(), "S256".into()]),
        token_auth_methods: Some(vec!["none".into(), "private_key_jwt".into()]),
        token_auth_algs: Some(vec!["ES256".into()]),
        client_id_metadata_document: true,
        iss_parameter: true,
        dpop: Some(ProofAlgs::listed(["EdDSA"].into_iter())),
        is_default: false,
    };
    assert_eq!(issuer(document), Ok(expected));
    let least = issuer(r#"{"token_endpoint":"t","issuer":null,"authorization_endpoint":null}"#).unwrap();
    let expected = IssuerMetadata {
        issuer: String::new(),
        authorization_endpoint: None,
        token_endpoint: "t".into(),
        registration_endpoint: None,
        revocation_endpoint: None,
        device_endpoint: None,
        scopes_supported: None,
        code_challenge_methods: None,
        token_auth_methods: None,
        token_auth_algs: None,
        client_id_metadata_document: false,
        iss_parameter: false,
        dpop: None,
        is_default: false,
    };
    assert_eq!(least, expected);
}

// covers: B-232
#[test]
fn document_of_another_form_is_an_error() {
    for document in ["", "<html>", "[]", "\"x\"", "{", "{}{}", "null", "\u{feff}{}"] {
        assert_eq!(resource(document), Err(NO_OBJECT), "{document}");
        assert_eq!(issuer(document), Err(NO_OBJECT), "{document}");
    }
    let deep = ["[".repeat(200), "]".repeat(200)].concat();
    assert_eq!(resource(&["{\"resource\":", &deep, "}"].concat()), Err(NO_OBJECT));
    assert_eq!(ResourceMetadata::read(b"{\"resource\":\"\xff\"}"), Err(NO_OBJECT));
    for (document, fault) in [
        (r"{}", "it has no resource"),
        (r#"{"resource":null}"#, "it has no resource"),
        (r#"{"resource":["r"]}"#, "resource is no string"),
        (r#"{"resource":"\ud800"}"#, NO_OBJECT),
        (r#"{"resource":"r","authorization_servers":"a"}"#, "authorization_servers is no array of strings"),
        (r#"{"resource":"r","authorization_servers":["a",1]}"#, "authorization_servers is no array of strings"),
        (r#"{"resource":"r","scopes_supported":"a b"}"#, "scopes_supported is no array of strings"),
    ] {
        assert_eq!(resource(document), Err(fault), "{document}");
    }
    assert_eq!(issuer("{}"), Err("it has no token_endpoint"));
    for (member, value, fault) in [
        ("issuer", "1", "issuer is no string"),
        ("authorization_endpoint", "{}", "authorization_endpoint is no string"),
        ("token_endpoint", "[]", "token_endpoint is no string"),
        ("registration_endpoint", "true", "registration_endpoint is no string"),
        ("revocation_endpoint", "1.5", "revocation_endpoint is no string"),
        ("device_authorization_endpoint", "7", "device_authorization_endpoint is no string"),
        ("scopes_supported", "{}", "scopes_supported is no array of strings"),
        ("code_challenge_methods_supported", "\"S256\"", "code_challenge_methods_supported is no array of strings"),
        (
            "token_endpoint_auth_methods_supported",
            "[0]",
            "token_endpoint_auth_methods_supported is no array of strings",
        ),
        ("client_id_metadata_document_supported", "1", "client_id_metadata_document_supported is no boolean"),
        (
            "authorization_response_iss_parameter_supported",
            "\"true\"",
            "authorization_response_iss_parameter_supported is no boolean",
        ),
    ] {
        assert_eq!(issuer(&format!("{{\"token_endpoint\":\"t\",\"{member}\":{value}}}")), Err(fault), "{member}");
    }
}

// covers: AUTHL-C-004, AUTHL-C-005, B-240
#[test]
fn default_endpoints_are_at_the_origin_of_the_server() {
    for (server, origin) in [
        ("https://Example.com:443/mcp/x?y=1", "https://example.com"),
        ("http://localhost:8080", "http://localhost:8080"),
        ("http://[::1]:80/mcp", "http://[::1]"),
    ] {
        let found = IssuerMetadata::first_revision(&HttpTarget::parse(server).unwrap());
        assert_eq!(found.issuer, origin);
        assert_eq!(found.authorization_endpoint, Some(format!("{origin}/authorize")));
        assert_eq!(found.token_endpoint, format!("{origin}/token"));
        assert_eq!(found.registration_endpoint, Some(format!("{origin}/register")));
        assert_eq!(found.code_challenge_methods, Some(vec!["S256".into()]));
        assert!(found.is_default && !found.iss_parameter && !found.client_id_metadata_document);
    }
}
