use super::*;
use crate::exchange::Headers;
use alloc::format;
use alloc::vec;

const ISSUER: &str = "https://as.example";
const CALLBACK: &str = "http://127.0.0.1:4000/callback";
const DOCUMENT: &str = "https://app.example/client.json";

/// Members of metadata: the ways to register.
const DYNAMIC: &str = r#","registration_endpoint":"https://as.example/register""#;
const DOCUMENTS: &str = r#","client_id_metadata_document_supported":true"#;

/// The metadata of an issuer, with further members.
fn issuer(more: &str) -> IssuerMetadata {
    let json = format!(r#"{{"issuer":"{ISSUER}","token_endpoint":"{ISSUER}/token"{more}}}"#);
    IssuerMetadata::read(json.as_bytes()).unwrap()
}

fn methods(methods: &str) -> String {
    format!(r#","token_endpoint_auth_methods_supported":[{methods}]"#)
}

fn given(issuer: &str, secret: Option<&str>) -> Registration {
    let auth = secret.map_or(ClientAuth::None, |secret| ClientAuth::Secret(secret.into()));
    Registration::Given(GivenClient { issuer: issuer.into(), client_id: format!("given at {issuer}"), auth })
}

fn document() -> Registration {
    Registration::Document(DOCUMENT.into())
}

fn config(registrations: Vec<Registration>) -> AuthConfig {
    let mut config = AuthConfig::new("app");
    config.registrations = registrations;
    config
}

fn stored(source: ClientSource, secret_expires: Option<u64>) -> RegisteredClient {
    RegisteredClient {
        client_id: "stored".into(),
        client_secret: Some("secret".into()),
        secret_expires,
        method: AuthMethod::Post,
        redirect_uri: Some(CALLBACK.into()),
        scopes: Scopes::parse("a"),
        source,
    }
}

/// The choice as a text: the identifier of the client, `register`, or what is wrong.
fn chosen(ways: &[Registration], metadata: &str, stored: Option<&RegisteredClient>, now: u64) -> String {
    match choose(&config(ways.into()), &issuer(metadata), stored, now) {
        Ok(Choice::Client(client)) => client.client_id,
        Ok(Choice::Register) => "register".into(),
        Err(AuthError::NoRegistration { issuer }) => format!("none at {issuer}"),
        Err(AuthError::OtherIssuer { given, issuer }) => format!("{}, not {issuer}", given.join(", ")),
        Err(AuthError::NoClientAuth { offered, .. }) => format!("only {}", offered.join(", ")),
        Err(other) => format!("{other:?}"),
    }
}

// covers: AUTHR-C-002, AUTHR-C-003, AUTHR-C-011, AUTHR-C-012, AUTHR-C-013, AUTHR-C-014, X-60
#[test]
fn client_is_given_then_stored_then_a_document_then_dynamic() {
    let all = [Registration::Dynamic, document(), given(ISSUER, None)];
    let open = &all[..2];
    let both = &format!("{DYNAMIC}{DOCUMENTS}");
    let known = &stored(ClientSource::Dynamic, None);
    let none = "none at https://as.example";
    for (ways, metadata, stored, expected) in [
        (&all[..], &**both, Some(known), "given at https://as.example"),
        (&all, "", None, "given at https://as.example"),
        (open, both, Some(known), "stored"),
        (open, "", Some(known), "stored"),
        (open, both, None, DOCUMENT),
        (open, DOCUMENTS, None, DOCUMENT),
        (open, DYNAMIC, None, "register"),
        (open, r#","registration_endpoint":null"#, None, none),
        (open, r#","client_id_metadata_document_supported":false"#, None, none),
        (&all[..1], both, None, "register"),
        (&all[..1], DOCUMENTS, None, none),
        (&all[1..2], DYNAMIC, None, none),
        (&[], both, Some(known), none),
    ] {
        assert_eq!(chosen(ways, metadata, stored, 0), expected, "{ways:?} {metadata}");
    }
}

// covers: AUTHL-B-007
#[test]
fn client_registers_at_the_default_endpoints() {
    let server = HttpTarget::parse("https://example.com/mcp").unwrap();
    let found = choose(&config(vec![Registration::Dynamic]), &IssuerMetadata::first_revision(&server), None, 0);
    assert_eq!(found, Ok(Choice::Register));
}

// covers: AUTHR-C-020, AUTHR-C-021, AUTHR-C-022, AUTHR-C-023, B-229, B-238, B-257
#[test]
fn client_given_for_another_issuer_is_not_used() {
    let other = || given("https://other.example", Some("secret"));
    for (ways, metadata, expected) in [
        (vec![other()], DYNAMIC, "https://other.example, not https://as.example"),
        (
            vec![other(), given("https://b.example", None)],
            "",
            "https://other.example, https://b.example, not https://as.example",
        ),
        (vec![other(), given(ISSUER, None)], "", "given at https://as.example"),
        (vec![given("https://as.example/", None)], "", "given at https://as.example/"),
        (vec![given("https://as.example/x", None)], "", "https://as.example/x, not https://as.example"),
        (vec![given("https://AS.example", None)], "", "https://AS.example, not https://as.example"),
        // Other ways are used instead, if the issuer offers them.
        (vec![other(), Registration::Dynamic], DYNAMIC, "register"),
        (vec![other(), document()], DOCUMENTS, DOCUMENT),
        (vec![other(), Registration::Dynamic], DOCUMENTS, "https://other.example, not https://as.example"),
    ] {
        assert_eq!(chosen(&ways, metadata, None, 0), expected, "{ways:?}");
    }
    let mut exact = config(vec![given("https://as.example/", None)]);
    exact.compat.issuer_slash = false;
    assert!(matches!(choose(&exact, &issuer(""), None, 0), Err(AuthError::OtherIssuer { .. })));
}

// covers: AUTHR-C-002
#[test]
fn stored_client_is_used_until_its_secret_expires() {
    let ways = [Registration::Dynamic, document()];
    for (expires, now, is_usable) in
        [(None, u64::MAX, true), (Some(100), 99, true), (Some(100), 100, false), (Some(100), u64::MAX, false)]
    {
        let known = stored(ClientSource::Dynamic, expires);
        for (metadata, otherwise) in [(DYNAMIC, "register"), (DOCUMENTS, DOCUMENT), ("", "none at https://as.example")]
        {
            let expected = if is_usable { "stored" } else { otherwise };
            assert_eq!(chosen(&ways, metadata, Some(&known), now), expected, "{expires:?} at {now}, {metadata}");
        }
        if is_usable {
            let found = choose(&config(ways.to_vec()), &issuer(""), Some(&known), now);
            assert_eq!(found, Ok(Choice::Client(known)), "unchanged");
        }
    }
    // The configuration can have changed since.
    for source in [ClientSource::Given, ClientSource::Document] {
        assert_eq!(chosen(&ways, DYNAMIC, Some(&stored(source, None)), 0), "register", "{source:?}");
    }
}

// covers: AUTHR-C-004
#[test]
fn document_has_an_https_url_with_a_path() {
    for (url, fault) in [
        ("https://app.example/client.json", None),
        ("https://app.example:8443/a/b?c=d", None),
        ("http://app.example/client.json", Some(UrlFault::Plain)),
        ("http://localhost/client.json", Some(UrlFault::Plain)),
        ("https://app.example", Some(UrlFault::Form)),
        ("https://app.example/", Some(UrlFault::Form)),
        ("https://app.example?a=b", Some(UrlFault::Form)),
        ("https://app.example/client.json#", Some(UrlFault::Fragment)),
        ("https://user@app.example/client.json", Some(UrlFault::Form)),
        ("client.json", Some(UrlFault::Form)),
        ("", Some(UrlFault::Form)),
    ] {
        let ways = vec![Registration::Document(url.into()), Registration::Dynamic];
        let found = choose(&config(ways.clone()), &issuer(DOCUMENTS), None, 0);
        match (fault, found) {
            (None, Ok(Choice::Client(client))) => assert_eq!(client.client_id, url),
            (Some(fault), found) => {
                assert_eq!(found, Err(AuthError::BadUrl { purpose: "client_id".into(), url: url.into(), fault }));
            }
            (None, found) => panic!("{url}: {found:?}"),
        }
        assert_eq!(chosen(&ways, DYNAMIC, None, 0), "register", "it is not used");
    }
}

// covers: AUTHR-C-012, B-256
#[test]
fn client_without_a_registration_has_a_method_of_the_issuer() {
    let secret = || Some(Secret::from("secret"));
    for (way, listed, expected) in [
        (given(ISSUER, Some("secret")), String::new(), (AuthMethod::Basic, secret())),
        (given(ISSUER, Some("secret")), methods(r#""none","client_secret_post""#), (AuthMethod::Post, secret())),
        (given(ISSUER, Some("secret")), methods(r#""none""#), (AuthMethod::None, None)),
        (given(ISSUER, Some("")), String::new(), (AuthMethod::None, None)),
        (given(ISSUER, None), methods(r#""client_secret_basic","none""#), (AuthMethod::None, None)),
        (document(), String::new(), (AuthMethod::None, None)),
        (document(), methods(r#""client_secret_basic","none""#), (AuthMethod::None, None)),
    ] {
        let source = if way == document() { ClientSource::Document } else { ClientSource::Given };
        let metadata = issuer(&format!("{DOCUMENTS}{listed}"));
        let Ok(Choice::Client(client)) = choose(&config(vec![way.clone()]), &metadata, None, 0) else {
            panic!("{way:?} {listed}")
        };
        assert_eq!((client.method, client.client_secret), expected, "{way:?} {listed}");
        assert_eq!((client.source, client.secret_expires, client.redirect_uri), (source, None, None));
    }
    // No page, and no registration, for a client that cannot redeem its code.
    let metadata = format!("{DYNAMIC}{}", methods(r#""private_key_jwt""#));
    for way in [Registration::Dynamic, given(ISSUER, Some("secret"))] {
        assert_eq!(chosen(&[way], &metadata, None, 0), "only private_key_jwt");
    }
}

// covers: AUTHR-C-015, AUTHR-C-016, AUTHR-C-024, AUTHS-C-014
#[test]
fn request_names_all_that_an_issuer_needs() {
    let whole = |method: &str, scope: &str| {
        format!(
            concat!(
                r#"{{"client_name":"app","redirect_uris":["http://127.0.0.1:4000/callback"],"#,
                r#""grant_types":["authorization_code","refresh_token"],"response_types":["code"],"#,
                r#""token_endpoint_auth_method":"{}","application_type":"native",{}"software_id":"app"}}"#
            ),
            method, scope
        )
    };
    let (basic, post) = ("client_secret_basic", "client_secret_post");
    for (metadata, scopes, expected) in [
        (String::new(), "", whole(basic, "")),
        (String::new(), "b a", whole(basic, r#""scope":"a b","#)),
        (methods(r#""client_secret_basic","none""#), "", whole("none", "")),
        (methods(r#""client_secret_post","private_key_jwt""#), "", whole(post, "")),
    ] {
        let body = request(&config(vec![]), Some(CALLBACK), &issuer(&metadata), &Scopes::parse(scopes));
        assert_eq!(core::str::from_utf8(&body), Ok(&*expected), "{metadata} {scopes}");
    }
}

// covers: AUTHR-C-015, AUTHR-C-016
#[test]
fn client_is_a_web_server_if_its_redirect_uri_is_on_the_network() {
    for (redirect_uri, expected) in [
        ("http://127.0.0.1:4000/callback", "native"),
        ("http://127.1.2.3/callback", "native"),
        ("http://[::1]:4000/callback", "native"),
        ("http://localhost:4000/callback", "native"),
        ("http://LOCALHOST:4000/callback", "native"),
        ("com.example.app:/callback", "native"),
        ("https://app.example/callback", "web"),
        ("https://localhost.example/callback", "web"),
        ("http://10.0.0.1/callback", "web"),
    ] {
        let body = request(&config(vec![]), Some(redirect_uri), &issuer(""), &Scopes::new());
        let body = Object::read(&RawJson::parse(body).unwrap()).unwrap();
        assert_eq!(body.str("application_type").as_deref(), Some(expected), "{redirect_uri}");
        assert_eq!(body.array("redirect_uris"), Ok(vec![redirect_uri.into()]));
    }
}

fn response(status: u16, body: &str) -> FetchResponse {
    FetchResponse {
        status,
        headers: Headers::new(),
        body: Bytes::copy_from_slice(body.as_bytes()),
        url: "https://as.example/register".into(),
        redirect: None,
    }
}

fn answered(status: u16, body: &str) -> Result<RegisteredClient, Problem> {
    read(&response(status, body), &issuer(""), Some(CALLBACK), &Scopes::parse("a b"))
}

// covers: B-255
#[test]
fn registration_succeeds_by_200_and_201() {
    for status in [200, 201] {
        let client = RegisteredClient {
            client_id: "new".into(),
            client_secret: None,
            secret_expires: None,
            method: AuthMethod::None,
            redirect_uri: Some(CALLBACK.into()),
            scopes: Scopes::parse("a b"),
            source: ClientSource::Dynamic,
        };
        for body in ["{\r\n  \"client_id\": \"new\"\n}\n", r#"{"client_id":"new","error":null,"other":[]}"#] {
            assert_eq!(answered(status, body).as_ref(), Ok(&client), "{status} {body}");
        }
    }
}

// covers: B-255, AUTHR-C-018
#[test]
fn registration_that_failed_says_why() {
    let (no_object, no_id) = (Some("the response is no JSON object"), Some("the response has no client_id"));
    let redirect = "invalid_redirect_uri";
    let described = r#"{"error":"invalid_client_metadata","error_description":"the scope x"}"#;
    for (status, body, error, description, why) in [
        (400, r#"{"error":"invalid_redirect_uri"}"#, Some(redirect), None, None),
        (200, r#"{"client_id":"new","error":"invalid_redirect_uri"}"#, Some(redirect), None, None),
        (201, r#"{"client_id":"new","error":""}"#, Some(""), None, None),
        (201, r#"{"error":{"code":1}}"#, Some(r#"{"code":1}"#), None, None),
        (400, described, Some("invalid_client_metadata"), Some("the scope x"), None),
        (400, r#"{"client_id":"new"}"#, None, None, None),
        (202, r#"{"client_id":"new"}"#, None, None, None),
        (307, "", None, None, None),
        (403, "<html>", None, None, None),
        (500, "", None, None, None),
        (201, "", None, None, no_object),
        (201, r#"["client_id"]"#, None, None, no_object),
        (201, "{}", None, None, no_id),
        (201, r#"{"client_id":""}"#, None, None, no_id),
        (201, r#"{"client_id":7}"#, None, None, no_id),
    ] {
        let problem = Problem {
            url: "https://as.example/register".into(),
            status: Some(status),
            error: error.map(Into::into),
            description: description.map(Into::into),
            why: why.map(Into::into),
        };
        assert_eq!(answered(status, body), Err(problem), "{status} {body}");
    }
    let error = AuthError::Registration(answered(400, described).unwrap_err()).to_string();
    let url = "https://as.example/register";
    assert_eq!(error, format!("the registration failed: {url}: HTTP 400: invalid_client_metadata: the scope x"));
}

// covers: B-256
#[test]
fn secret_and_method_are_those_of_the_answer() {
    let secret = |expires: Option<u64>| (Some(Secret::from("s")), expires);
    let basic = r#""token_endpoint_auth_method":"client_secret_basic""#;
    let post = r#""token_endpoint_auth_method":"client_secret_post""#;
    for (members, method, expected) in [
        (r#""client_secret":"s""#.into(), AuthMethod::Basic, secret(None)),
        (format!(r#""client_secret":"s",{basic}"#), AuthMethod::Basic, secret(None)),
        (format!(r#""client_secret":"s",{post}"#), AuthMethod::Post, secret(None)),
        (r#""client_secret":"s","token_endpoint_auth_method":"none""#.into(), AuthMethod::None, (None, None)),
        (format!(r#""client_secret":"",{basic}"#), AuthMethod::None, (None, None)),
        (format!(r#""client_secret":null,{post}"#), AuthMethod::None, (None, None)),
        (basic.into(), AuthMethod::None, (None, None)),
        (r#""client_secret_expires_at":9"#.into(), AuthMethod::None, (None, None)),
        (format!(r#""client_secret":"s","client_secret_expires_at":0,{basic}"#), AuthMethod::Basic, secret(None)),
        (format!(r#""client_secret":"s","client_secret_expires_at":9,{basic}"#), AuthMethod::Basic, secret(Some(9))),
        (format!(r#""client_secret":"s","client_secret_expires_at":"x",{basic}"#), AuthMethod::Basic, secret(None)),
        (format!(r#""client_secret":"s","client_secret_expires_at":-1,{basic}"#), AuthMethod::Basic, secret(None)),
    ] {
        let body = format!(r#"{{"client_id":"new",{members}}}"#);
        let client = answered(201, &body).unwrap();
        assert_eq!((client.method, (client.client_secret, client.secret_expires)), (method, expected), "{body}");
    }
}

// covers: B-256
#[test]
fn answer_without_a_method_has_that_of_the_metadata() {
    let read = |listed: &str, members: &str| {
        let body = format!(r#"{{"client_id":"new",{members}}}"#);
        let read = read(&response(201, &body), &issuer(&methods(listed)), Some(CALLBACK), &Scopes::new());
        read.map(|client| client.method).map_err(|problem| problem.why.unwrap_or_default())
    };
    let unknown = "the response names a way of authentication that this client does not have";
    let none = "https://as.example has no way to authenticate this client; it offers private_key_jwt";
    for (listed, members, expected) in [
        (r#""client_secret_post""#, r#""client_secret":"s""#, Ok(AuthMethod::Post)),
        (r#""client_secret_post""#, r#""client_secret":"s","token_endpoint_auth_method":null"#, Ok(AuthMethod::Post)),
        (r#""client_secret_post""#, r#""client_secret":"""#, Ok(AuthMethod::None)),
        (r#""private_key_jwt""#, r#""client_secret":"s""#, Err(none)),
        (r#""none""#, r#""token_endpoint_auth_method":"private_key_jwt""#, Err(unknown)),
        (r#""none""#, r#""token_endpoint_auth_method":"x","client_secret":"s""#, Err(unknown)),
    ] {
        assert_eq!(read(listed, members), expected.map_err(Into::into), "{listed} {members}");
    }
}

// covers: B-255
#[test]
fn texts_of_an_answer_are_bounded() {
    let long = "\u{e9}".repeat(3000);
    let problem = answered(400, &format!(r#"{{"error":"{long}","error_description":"{long}"}}"#)).unwrap_err();
    assert_eq!(problem.error.map(|text| text.len()), Some(256));
    assert_eq!(problem.description.map(|text| text.len()), Some(1024));
    for member in ["client_id", "client_secret"] {
        let body = |len| format!(r#"{{"client_id":"new","{member}":"{}"}}"#, "x".repeat(len));
        assert!(answered(201, &body(4096)).is_ok(), "{member}");
        let problem = answered(201, &body(4097)).unwrap_err();
        assert_eq!(problem.why.as_deref(), Some("a credential is too long"), "{member}");
    }
}
