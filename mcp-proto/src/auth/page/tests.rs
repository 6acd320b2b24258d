use super::*;
use crate::auth::{Parameter, ParameterPlace};
use alloc::vec;
use proptest::prelude::*;

const ISSUER: &str = "https://as.example";
const CALLBACK: &str = "http://127.0.0.1:4000/callback";

/// The metadata of an issuer with this page.
fn issuer(endpoint: Option<&str>) -> IssuerMetadata {
    let json = format!(r#"{{"issuer":"{ISSUER}","token_endpoint":"{ISSUER}/token"}}"#);
    let metadata = IssuerMetadata::read(json.as_bytes()).unwrap();
    IssuerMetadata { authorization_endpoint: endpoint.map(Into::into), ..metadata }
}

/// The URL of a page at this endpoint, for a client with this source.
fn page(endpoint: Option<&str>, scopes: &str, source: ClientSource, config: &AuthConfig) -> Result<String, AuthError> {
    url(&PageRequest {
        issuer: &issuer(endpoint),
        client_id: "https://app.example/a b",
        source,
        redirect_uri: CALLBACK,
        scopes: &Scopes::parse(scopes),
        state: &Secret::from("the-state"),
        challenge: "the-challenge",
        resource: Some("https://example.com/mcp"),
        config,
    })
}

/// The parameters of a page at an ordinary endpoint, from the scopes on.
fn parameters(scopes: &str, source: ClientSource, config: &AuthConfig) -> Vec<(String, String)> {
    let url = page(Some("https://as.example/authorize"), scopes, source, config).unwrap();
    decode(url.split_once('?').unwrap().1).split_off(6)
}

// covers: AUTHF-C-001, AUTHF-C-002, AUTHF-C-005, AUTHF-C-009, AUTHL-C-008
#[test]
fn page_has_each_parameter_once() {
    let config = AuthConfig::new("app");
    let ours = concat!(
        "response_type=code&client_id=https%3A%2F%2Fapp.example%2Fa+b",
        "&redirect_uri=http%3A%2F%2F127.0.0.1%3A4000%2Fcallback&state=the-state",
        "&code_challenge=the-challenge&code_challenge_method=S256",
    );
    let resource = "resource=https%3A%2F%2Fexample.com%2Fmcp";
    for (endpoint, scopes, expected) in [
        ("https://as.example/authorize", "", format!("https://as.example/authorize?{ours}&{resource}")),
        ("https://as.example", "b a", format!("https://as.example?{ours}&scope=a+b&{resource}")),
        ("http://localhost:1/a?", "", format!("http://localhost:1/a?{ours}&{resource}")),
        // The query of the endpoint stays as it is.
        ("https://as.example/a?p=B2C%5f1&q", "", format!("https://as.example/a?p=B2C%5f1&q&{ours}&{resource}")),
        // But nothing is there twice.
        (
            "https://as.example/a?state=x&%73tate=y&code_challenge_method=plain&scope=z&resource=w",
            "",
            format!("https://as.example/a?scope=z&{ours}&{resource}"),
        ),
    ] {
        assert_eq!(page(Some(endpoint), scopes, ClientSource::Dynamic, &config), Ok(expected), "{endpoint}");
    }
}

// covers: AUTHF-C-005, AUTHF-C-007
#[test]
fn resource_is_left_out_only_without_one() {
    let (issuer, config) = (issuer(Some("https://as.example/authorize")), AuthConfig::new("app"));
    let request = PageRequest {
        issuer: &issuer,
        client_id: "id",
        source: ClientSource::Dynamic,
        redirect_uri: CALLBACK,
        scopes: &Scopes::new(),
        state: &Secret::from("the-state"),
        challenge: "the-challenge",
        resource: None,
        config: &config,
    };
    assert!(!url(&request).unwrap().contains("resource"));
    let resource = "HTTPS://Example.com/mcp/?a=b";
    let url = url(&PageRequest { resource: Some(resource), ..request }).unwrap();
    let last = decode(&url).pop();
    assert_eq!(last, Some(("resource".into(), resource.into())), "byte for byte");
}

// covers: B-193, B-239
#[test]
fn page_is_an_http_url_of_limited_length() {
    let config = AuthConfig::new("app");
    let long = |len| format!("https://as.example/{}", "x".repeat(len));
    let bad =
        |url: &str, fault| Err(AuthError::BadUrl { purpose: "authorization_endpoint".into(), url: url.into(), fault });
    for endpoint in
        ["", "/authorize", "javascript:alert(1)", "file:///etc/passwd", "https://u@as.example/", "https://a b/"]
    {
        assert_eq!(page(Some(endpoint), "", ClientSource::Dynamic, &config), bad(endpoint, UrlFault::Form));
    }
    let fragment = "https://as.example/#/login";
    assert_eq!(page(Some(fragment), "", ClientSource::Dynamic, &config), bad(fragment, UrlFault::Fragment));
    assert_eq!(page(None, "", ClientSource::Dynamic, &config), bad("", UrlFault::Form));
    let rest = page(Some(&long(0)), "", ClientSource::Dynamic, &config).unwrap().len();
    let longest = page(Some(&long(8192 - rest)), "", ClientSource::Dynamic, &config);
    assert_eq!(longest.map(|url| url.len()), Ok(8192));
    let found = page(Some(&long(8193 - rest)), "", ClientSource::Dynamic, &config);
    assert_eq!(found, Err(AuthError::Limit("8192 bytes for the URL of the page".into())));
}

#[test]
fn offline_access_asks_for_consent_unless_the_client_is_given() {
    use ClientSource::{Document, Dynamic, Given};
    let consent = Some("consent");
    for (scopes, source, prompt, expected) in [
        ("a offline_access", Dynamic, Prompt::Auto, consent),
        ("offline_access", Document, Prompt::Auto, consent),
        ("offline_access", Given, Prompt::Auto, None),
        ("a", Dynamic, Prompt::Auto, None),
        ("", Document, Prompt::Auto, None),
        ("offline_access", Dynamic, Prompt::Omit, None),
        ("offline_access", Dynamic, Prompt::Value("login".into()), Some("login")),
        ("a", Given, Prompt::Value("select_account".into()), Some("select_account")),
    ] {
        let mut config = AuthConfig::new("app");
        config.prompt = prompt.clone();
        let found = parameters(scopes, source, &config);
        let found: Vec<_> = found.iter().filter(|(name, _)| name == "prompt").map(|(_, value)| &**value).collect();
        assert_eq!(found, Vec::from_iter(expected), "{scopes} {source:?} {prompt:?}");
    }
}

#[test]
fn configured_parameters_replace_none_of_the_flow() {
    let parameter = |place, name: &str| Parameter { place, name: name.into(), value: "x y".into() };
    let mut config = AuthConfig::new("app");
    let names = "response_type client_id redirect_uri scope state code_challenge code_challenge_method resource prompt";
    config.parameters = names.split(' ').map(|name| parameter(ParameterPlace::Page, name)).collect();
    let secrets = "client_secret code code_verifier refresh_token";
    config.parameters.extend(secrets.split(' ').map(|name| parameter(ParameterPlace::Both, name)));
    config.parameters.extend([
        parameter(ParameterPlace::Page, "audience"),
        parameter(ParameterPlace::Token, "tenant"),
        parameter(ParameterPlace::Both, "access_type"),
    ]);
    let pair = |name: &str, value: &str| (name.into(), value.into());
    let expected = vec![
        pair("scope", "a"),
        pair("resource", "https://example.com/mcp"),
        pair("audience", "x y"),
        pair("access_type", "x y"),
    ];
    assert_eq!(parameters("a", ClientSource::Given, &config), expected);
    // One of the endpoint gives way to a configured one.
    let url = page(Some("https://as.example/a?audience=b&c=d"), "", ClientSource::Given, &config).unwrap();
    assert!(url.starts_with("https://as.example/a?c=d&response_type=code&") && !url.contains("audience=b"), "{url}");
}

/// What a login at [`ISSUER`] makes of this URL.
fn answered(url: &str, has_iss: bool) -> Answer {
    answer(url, CALLBACK, &Secret::from("the-state"), &IssuerMetadata { iss_parameter: has_iss, ..issuer(None) })
}

fn code() -> Answer {
    Answer::Code("the-code".into())
}

fn other_issuer(found: Option<&str>) -> Answer {
    Answer::WrongIssuer(AuthError::WrongIssuer { wanted: ISSUER.into(), found: found.map(Into::into) })
}

const NOT_OURS: Answer = Answer::Ignored("the URL is not the redirect URI");
const NO_STATE: Answer = Answer::Ignored("there is no state");
const OTHER_STATE: Answer = Answer::Ignored("the state is not that of this login");
const TWICE: Answer = Answer::Ignored("a parameter is there twice");

// covers: AUTHF-C-011, AUTHF-C-012, AUTHF-C-013, AUTHF-C-014, B-253
#[test]
fn issuer_of_a_redirect_is_compared_byte_for_byte() {
    let at = |iss: &str| format!("{CALLBACK}?code=the-code&state=the-state{iss}");
    for (iss, has_iss, expected) in [
        // The four rows of RFC 9207 and the MCP specification.
        ("&iss=https%3A%2F%2Fas.example", true, code()),
        ("&iss=https%3A%2F%2Fas.example", false, code()),
        ("", true, other_issuer(None)),
        ("", false, code()),
        ("&iss=https%3A%2F%2Fevil.example", true, other_issuer(Some("https://evil.example"))),
        ("&iss=https%3A%2F%2Fevil.example", false, other_issuer(Some("https://evil.example"))),
        // Form decoding only.
        ("&iss=https://as.example", true, code()),
        ("&%69ss=https://as%2Eexample", true, code()),
        ("&iss=https://as.example/", true, other_issuer(Some("https://as.example/"))),
        ("&iss=https://AS.example", true, other_issuer(Some("https://AS.example"))),
        ("&iss=HTTPS://as.example", true, other_issuer(Some("HTTPS://as.example"))),
        ("&iss=https://as.example:443", true, other_issuer(Some("https://as.example:443"))),
        ("&iss=https://as%252Eexample", true, other_issuer(Some("https://as%2Eexample"))),
        ("&iss=https://as.example+", true, other_issuer(Some("https://as.example "))),
        ("&iss=", false, other_issuer(Some(""))),
        ("&iss", false, other_issuer(Some(""))),
        ("&ISS=https://evil.example", true, other_issuer(None)),
        ("&iss=https://as.example&iss=https://as.example", true, TWICE),
    ] {
        assert_eq!(answered(&at(iss), has_iss), expected, "{iss} advertised: {has_iss}");
    }
    let long = answered(&at(&format!("&iss={}", "x".repeat(3000))), true);
    assert_eq!(long, other_issuer(Some(&"x".repeat(2048))));
}

// covers: AUTHF-C-015, B-253
#[test]
fn texts_of_another_issuer_are_not_used() {
    let texts = "error=access_denied&error_description=canary&error_uri=https://canary.example";
    for (iss, has_iss) in [("&iss=https://evil.example", true), ("&iss=https://evil.example", false), ("", true)] {
        let found = answered(&format!("{CALLBACK}?{texts}&state=the-state{iss}"), has_iss);
        let Answer::WrongIssuer(error) = &found else { panic!("{iss}: {found:?}") };
        for shown in [error.to_string(), format!("{found:?}")] {
            assert!(!shown.contains("canary") && !shown.contains("denied"), "{shown}");
        }
    }
}

// covers: AUTHF-C-009, B-253, B-254
#[test]
fn state_of_another_login_is_ignored() {
    for (query, expected) in [
        ("code=the-code&state=the-state", code()),
        ("state=the%2Dstate&code=the-code", code()),
        ("code=the-code", NO_STATE),
        ("code=the-code&state", OTHER_STATE),
        ("code=the-code&state=", OTHER_STATE),
        ("code=the-code&state=the-stat", OTHER_STATE),
        ("code=the-code&state=the-state2", OTHER_STATE),
        ("code=the-code&state=The-state", OTHER_STATE),
        ("code=the-code&State=the-state", NO_STATE),
        ("code=the-code&state=the-state&state=the-state", TWICE),
        ("code=the-code&state=the-state&state=x", TWICE),
        // Before the state is right, neither an error nor another issuer ends the login.
        ("error=access_denied&state=x", OTHER_STATE),
        ("error=access_denied", NO_STATE),
        ("code=x&state=x&iss=https://evil.example", OTHER_STATE),
        ("code=x&iss=https://evil.example", NO_STATE),
        ("", NO_STATE),
    ] {
        for has_iss in [false, true] {
            let iss = if has_iss && expected == code() { "&iss=https://as.example" } else { "" };
            assert_eq!(answered(&format!("{CALLBACK}?{query}{iss}"), has_iss), expected, "{query}{iss}");
        }
    }
}

// covers: B-254
#[test]
fn redirect_is_at_the_redirect_uri() {
    let query = "code=the-code&state=the-state";
    for (place, expected) in [
        (CALLBACK, code()),
        // As a browser spells it.
        ("HTTP://127.0.0.1:4000/callback", code()),
        ("http://127.0.0.1:4000/callback/", NOT_OURS),
        ("http://127.0.0.1:4000/Callback", NOT_OURS),
        ("http://127.0.0.1:4000/callback/x", NOT_OURS),
        ("http://127.0.0.1:4000/callback/../callback", NOT_OURS),
        ("http://127.0.0.1:4000/%63allback", NOT_OURS),
        ("http://127.0.0.1:4000/", NOT_OURS),
        ("http://127.0.0.1:4001/callback", NOT_OURS),
        ("http://127.0.0.1/callback", NOT_OURS),
        ("http://localhost:4000/callback", NOT_OURS),
        ("http://127.0.0.2:4000/callback", NOT_OURS),
        ("https://127.0.0.1:4000/callback", NOT_OURS),
        ("http://user@127.0.0.1:4000/callback", NOT_OURS),
        ("http://127.0.0.1:4000@evil.example/callback", NOT_OURS),
        ("/callback", NOT_OURS),
        ("", NOT_OURS),
    ] {
        assert_eq!(answered(&format!("{place}?{query}"), false), expected, "{place}");
    }
    for (redirect_uri, place, expected) in [
        ("https://App.example:443/cb", "https://app.example/cb", code()),
        ("https://app.example", "https://app.example/", code()),
        ("https://app.example/cb?tenant=1", "https://app.example/cb", code()),
        ("https://app.example/cb", "https://app.example/other", NOT_OURS),
        ("com.example.app:/cb", "com.example.app:/cb", code()),
        ("com.example.app:/cb", "com.example.app:/CB", NOT_OURS),
    ] {
        let found = answer(&format!("{place}?{query}"), redirect_uri, &Secret::from("the-state"), &issuer(None));
        assert_eq!(found, expected, "{place} for {redirect_uri}");
    }
    // Without the query it is no answer.
    assert_eq!(answered(CALLBACK, false), NO_STATE);
}

#[test]
fn pasted_url_can_have_white_space_and_a_fragment() {
    let query = "code=the-code&state=the-state";
    for (url, expected) in [
        (format!("  {CALLBACK}?{query}\r\n"), code()),
        (format!("\t{CALLBACK}?{query}#"), code()),
        (format!("{CALLBACK}?{query}#_=_ "), code()),
        // A fragment has no parameters, and hides none.
        (format!("{CALLBACK}#{query}"), NO_STATE),
        (format!("{CALLBACK}?code=the-code#?state=the-state"), NO_STATE),
        (format!("{CALLBACK}?{query}#&state=x"), code()),
        (query.into(), NOT_OURS),
        ("the-code".into(), NOT_OURS),
    ] {
        assert_eq!(answered(&url, false), expected, "{url:?}");
    }
}

// covers: B-253
#[test]
fn redirect_has_a_code_or_an_error() {
    let neither = || Answer::Ignored("there is neither a code nor an error");
    let refused = |error: &str, description: Option<&str>| {
        Answer::Refused(AuthError::Authorization(Problem {
            url: ISSUER.into(),
            error: Some(error.into()),
            description: description.map(Into::into),
            ..Problem::default()
        }))
    };
    let long = "x".repeat(3000);
    for (query, expected) in [
        ("code=a%2Bb+c", Answer::Code("a+b c".into())),
        ("code=x&session_state=y&scope=a+b", Answer::Code("x".into())),
        ("error=access_denied", refused("access_denied", None)),
        ("error=access_denied&error_description=not+now&error_uri=u:v", refused("access_denied", Some("not now"))),
        ("error=server_error&code=x", refused("server_error", None)),
        ("error=", refused("", None)),
        (&format!("error={long}&error_description={long}"), refused(&long[..256], Some(&long[..1024]))),
        ("code=", neither()),
        ("Code=x", neither()),
        ("other=x", neither()),
        ("code=x&code=x", TWICE),
        ("code=x&code=y", TWICE),
        ("code=x&%63ode=y", TWICE),
        ("error=x&error=y", TWICE),
        ("code=x&other=y&other=z", TWICE),
    ] {
        for iss in ["", "&iss=https://as.example"] {
            assert_eq!(answered(&format!("{CALLBACK}?{query}&state=the-state{iss}"), false), expected, "{query}{iss}");
        }
    }
}

#[test]
fn redirect_has_a_limited_length() {
    let rest = format!("{CALLBACK}?state=the-state&code=").len();
    for (len, expected) in [
        (16_384 - rest, Answer::Code("x".repeat(16_384 - rest).into())),
        (16_385 - rest, Answer::Ignored("the URL is too long")),
    ] {
        assert_eq!(answered(&format!("{CALLBACK}?state=the-state&code={}", "x".repeat(len)), false), expected);
    }
}

// covers: B-253
#[test]
fn each_issuer_has_a_callback_path_of_its_own() {
    for (base, issuer, expected) in [
        ("/callback", "abc", "/callback/ba7816bf8f01cfea"),
        ("/callback/", "abc", "/callback/ba7816bf8f01cfea"),
        ("/", "abc", "/ba7816bf8f01cfea"),
        ("/callback", "", "/callback/e3b0c44298fc1c14"),
    ] {
        assert_eq!(callback_path(base, issuer), expected, "{base} {issuer}");
    }
    let path = |issuer| format!("http://127.0.0.1:4000{}", callback_path("/callback", issuer));
    let redirect = format!("{}?code=the-code&state=the-state", path("https://evil.example"));
    let state = Secret::from("the-state");
    assert_eq!(answer(&redirect, &path(ISSUER), &state, &issuer(None)), NOT_OURS, "not even with the right state");
}

proptest! {
    // covers: B-254
    #[test]
    fn no_url_without_the_state_ends_a_login(url in ".{0,80}", query in "[a-z&=%#?+0-9]{0,40}") {
        for url in [url.clone(), format!("{CALLBACK}?{url}"), format!("{CALLBACK}?{query}")] {
            prop_assert!(matches!(answered(&url, true), Answer::Ignored(_)), "{}", url);
        }
    }
}
