use super::*;
use crate::auth::IssuerConfig;
use crate::auth::resource::source::{Answer, Progress, Source};
use crate::exchange::Headers;
use crate::time::Instant;
use alloc::borrow::ToOwned;

/// Returns the metadata of an issuer with these further members.
fn metadata(more: &str) -> Metadata {
    let mut source = Source::new(&IssuerConfig::introspection("https://as.example", "s1", "x"));
    let Answer::Wait = source.endpoint(Instant::ZERO) else { panic!("nothing is known yet") };
    let Progress::Fetch(request) = source.next(Instant::ZERO) else { panic!("it is fetched") };
    let body =
        format!(r#"{{"issuer":"https://as.example","introspection_endpoint":"https://as.example/introspect"{more}}}"#);
    let response = FetchResponse::new(200, Headers::new(), body, request.url.original.clone());
    let Progress::Ended(Ok(())) = source.fetched(Instant::ZERO, &Ok(response.into())) else { panic!("it is read") };
    let Answer::Found(metadata) = source.endpoint(Instant::ZERO) else { panic!("it is known") };
    metadata
}

fn body(request: &FetchRequest) -> &str {
    core::str::from_utf8(&request.body).unwrap()
}

// covers: RSRC-S-007
#[test]
fn question_has_the_authentication_of_this_server() {
    let (id, secret, token) = ("s:1", Secret::new("a b"), Secret::new("t+k"));
    for (more, is_basic) in [
        ("", true),
        (r#","introspection_endpoint_auth_methods_supported":["client_secret_post","client_secret_basic"]"#, true),
        (r#","introspection_endpoint_auth_methods_supported":["client_secret_post"]"#, false),
        (r#","introspection_endpoint_auth_methods_supported":["private_key_jwt"]"#, true),
    ] {
        let request = request(&metadata(more), &token, id, &secret).unwrap();
        assert_eq!((&*request.method, request.url.original.as_str()), ("POST", "https://as.example/introspect"));
        assert_eq!(request.headers.get("content-type"), Some("application/x-www-form-urlencoded"));
        let (field, form) = if is_basic {
            // `s%3A1:a+b`.
            (Some("Basic cyUzQTE6YSti".to_owned()), "")
        } else {
            (None, "&client_id=s%3A1&client_secret=a+b")
        };
        assert_eq!(request.headers.get("authorization").map(String::from), field, "{more}");
        assert_eq!(body(&request), format!("token=t%2Bk&token_type_hint=access_token{form}"), "{more}");
        assert!(matches!(request.redirects, crate::fetch::Redirects::None));
    }
    let mut plain = metadata("");
    plain.endpoint = "http://as.example/introspect".into();
    assert!(request(&plain, &token, id, &secret).is_err());
}

// covers: RSRC-S-007
#[test]
fn only_an_answer_that_says_so_is_active() {
    let read = |status, body: &'static str| {
        read(&Ok(FetchResponse::new(status, Headers::new(), body, "https://as.example/introspect").into()))
    };
    assert_eq!(read(200, r#"{"active":true,"sub":"u1"}"#).unwrap().unwrap().str("sub").as_deref(), Some("u1"));
    assert_eq!(read(200, r#"{"active":false}"#), Ok(None));
    for (status, body) in [
        (200, r#"{"active":"true"}"#),
        (200, r#"{"active":1}"#),
        (200, r#"{"sub":"u1"}"#),
        (200, "[]"),
        (200, ""),
        (401, r#"{"active":true}"#),
        (500, r#"{"active":true}"#),
        (302, ""),
    ] {
        assert!(read(status, body).is_err(), "{status} {body}");
    }
    assert!(super::read(&Err(FetchError::TooLong)).is_err());
}
