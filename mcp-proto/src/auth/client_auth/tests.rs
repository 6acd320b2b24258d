use super::*;
use crate::auth::{ClientSource, Scopes, Secret};
use alloc::vec::Vec;

const BASIC: &str = "client_secret_basic";
const POST: &str = "client_secret_post";
const KEY: &str = "private_key_jwt";

/// An issuer that lists these methods.
fn issuer(methods: Option<&[&str]>) -> IssuerMetadata {
    let json = br#"{"issuer":"https://as.example","token_endpoint":"https://as.example/token"}"#;
    let mut issuer = IssuerMetadata::read(json).unwrap();
    issuer.token_auth_methods = methods.map(|methods| methods.iter().copied().map(Into::into).collect());
    issuer
}

// covers: B-256
#[test]
fn method_is_the_first_of_ours_that_the_issuer_lists() {
    for (listed, with_secret, without) in [
        (None, Some(AuthMethod::Basic), Some(AuthMethod::None)),
        (Some(&[][..]), Some(AuthMethod::Basic), Some(AuthMethod::None)),
        (Some(&[BASIC]), Some(AuthMethod::Basic), Some(AuthMethod::None)),
        (Some(&[POST]), Some(AuthMethod::Post), Some(AuthMethod::None)),
        (Some(&["none"]), Some(AuthMethod::None), Some(AuthMethod::None)),
        (Some(&[POST, BASIC, "none"]), Some(AuthMethod::Basic), Some(AuthMethod::None)),
        (Some(&["none", POST]), Some(AuthMethod::Post), Some(AuthMethod::None)),
        (Some(&[KEY, POST]), Some(AuthMethod::Post), Some(AuthMethod::None)),
        (Some(&[KEY]), None, Some(AuthMethod::None)),
        (Some(&["Client_Secret_Basic"]), None, Some(AuthMethod::None)),
    ] {
        let issuer = issuer(listed);
        for (has_secret, expected) in [(true, with_secret), (false, without)] {
            let offered = listed.unwrap_or_default().iter().copied().map(Into::into).collect();
            let none = AuthError::NoClientAuth { issuer: "https://as.example".into(), offered };
            assert_eq!(method(&issuer, has_secret), expected.ok_or(none), "{listed:?}, secret: {has_secret}");
        }
    }
}

// covers: B-256
#[test]
fn registration_asks_for_no_secret_where_the_issuer_offers_that() {
    for (listed, expected) in [
        (None, Some(AuthMethod::Basic)),
        (Some(&[BASIC, POST, "none"][..]), Some(AuthMethod::None)),
        (Some(&[POST, BASIC]), Some(AuthMethod::Basic)),
        (Some(&[POST]), Some(AuthMethod::Post)),
        (Some(&[KEY]), None),
    ] {
        assert_eq!(method_to_register(&issuer(listed)).ok(), expected, "{listed:?}");
    }
}

/// The form and the fields of a request with this client.
fn applied(id: &str, secret: Option<&str>, method: AuthMethod) -> (String, Vec<(String, String)>) {
    let client = RegisteredClient {
        client_id: id.into(),
        client_secret: secret.map(Secret::from),
        secret_expires: None,
        method,
        redirect_uri: None,
        scopes: Scopes::new(),
        source: ClientSource::Given,
    };
    let (mut form, mut headers) = (Form::new().with("grant_type", "x"), Headers::new());
    apply(&client, &mut form, &mut headers);
    (form.text().into(), headers.iter().map(|(name, value)| (name.into(), value.into())).collect())
}

// covers: B-256
#[test]
fn secret_goes_where_the_method_says() {
    let basic = |pair: &str| alloc::vec![("Authorization".into(), format!("Basic {}", STANDARD.encode(pair)))];
    let (url, url_form) = ("https://c/x:1", "client_id=https%3A%2F%2Fc%2Fx%3A1");
    for (id, secret, method, form, fields) in [
        ("id", None, AuthMethod::None, "client_id=id", Vec::new()),
        ("id", Some("secret"), AuthMethod::None, "client_id=id", Vec::new()),
        ("id", Some("a b&c"), AuthMethod::Post, "client_id=id&client_secret=a+b%26c", Vec::new()),
        ("id", Some("secret"), AuthMethod::Basic, "client_id=id", basic("id:secret")),
        // Form-encoded, then Base64.
        (url, Some("p:q r/+%\u{e9}"), AuthMethod::Basic, url_form, {
            basic("https%3A%2F%2Fc%2Fx%3A1:p%3Aq+r%2F%2B%25%C3%A9")
        }),
        // An empty secret is none.
        ("id", Some(""), AuthMethod::Basic, "client_id=id", Vec::new()),
        ("id", Some(""), AuthMethod::Post, "client_id=id", Vec::new()),
        ("id", None, AuthMethod::Basic, "client_id=id", Vec::new()),
        ("id", None, AuthMethod::Post, "client_id=id", Vec::new()),
    ] {
        let found = applied(id, secret, method);
        assert_eq!(found, (format!("grant_type=x&{form}"), fields), "{id} {secret:?} {method:?}");
    }
    let (_, fields) = applied("s6BhdRkqt3", Some("gX1fBat3bV"), AuthMethod::Basic);
    assert_eq!(fields[0].1, "Basic czZCaGRSa3F0MzpnWDFmQmF0M2JW", "the example of RFC 6749 section 2.3.1");
}
