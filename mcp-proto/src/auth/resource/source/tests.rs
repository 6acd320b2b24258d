use super::*;
use crate::auth::IssuerConfig;
use crate::exchange::Closed;
use alloc::vec;

const EC: &str = r#"{"kty":"EC","crv":"P-256","x":"l8tFrhx-34tV3hRICRDY9zCkDlpBhF42UQUfWVAWBFs","y":"9VE4jf_Ok_o64zbTTlcuNJajHmt6v9TDVrU0CdvGRDA","kid":"a"}"#;

const fn at(seconds: u64) -> Instant {
    Instant::from_millis(seconds * 1000)
}

type Outcome = Result<Box<FetchResponse>, FetchError>;

fn response(status: u16, body: impl Into<bytes::Bytes>) -> Outcome {
    Ok(FetchResponse::new(status, Headers::new(), body, "https://as.example/").into())
}

fn keys() -> Outcome {
    response(200, format!(r#"{{"keys":[{EC}]}}"#))
}

fn metadata() -> Outcome {
    response(200, r#"{"issuer":"https://as.example","jwks_uri":"https://as.example/jwks"}"#)
}

fn down() -> Outcome {
    response(503, "")
}

/// Requests a key. Returns the name of the answer, and the URL of the next fetch.
fn ask(source: &mut Source, now: Instant, kid: &str) -> (&'static str, Option<String>) {
    let said = match source.key(now, Alg::Es256, Some(kid)) {
        Answer::Found(_) => "found",
        Answer::Wait => "wait",
        Answer::Unknown => "unknown",
        Answer::Unavailable(_) => "unavailable",
    };
    (said, url(&source.next(now)))
}

fn url(progress: &Progress) -> Option<String> {
    match progress {
        Progress::Fetch(request) => Some(request.url.original.clone()),
        Progress::Nothing | Progress::Ended(_) => None,
    }
}

/// Returns a source with keys, fetched at this instant.
fn loaded(now: Instant) -> Source {
    let mut source = Source::new(&IssuerConfig::jwt("https://as.example"));
    assert_eq!(ask(&mut source, now, "a").0, "wait");
    assert!(matches!(source.fetched(now, &metadata()), Progress::Fetch(_)));
    assert!(matches!(source.fetched(now, &keys()), Progress::Ended(Ok(()))));
    source
}

const KEYS: &str = "https://as.example/jwks";

// covers: RSRC-S-002
#[test]
fn keys_come_from_the_metadata_of_the_issuer() {
    let mut source = Source::new(&IssuerConfig::jwt("https://as.example/t"));
    let first = "https://as.example/.well-known/oauth-authorization-server/t";
    assert_eq!(ask(&mut source, at(0), "a"), ("wait", Some(first.into())));
    // Others share the fetch.
    assert_eq!(ask(&mut source, at(0), "b"), ("wait", None));
    let mut asked = vec![];
    for body in [
        "<html>",
        r#"{"issuer":"https://other.example/t","jwks_uri":"https://other.example/jwks"}"#,
        r#"{"issuer":"https://as.example/t","jwks_uri":"http://as.example/jwks"}"#,
    ] {
        let progress = source.fetched(at(0), &response(200, body));
        if let Progress::Ended(Err(why)) = &progress {
            assert_eq!(why.matches("https://as.example").count(), 3, "{why}");
            assert!(why.contains("another issuer"), "{why}");
        }
        asked.extend(url(&progress));
    }
    assert_eq!(
        asked,
        [
            "https://as.example/.well-known/openid-configuration/t",
            "https://as.example/t/.well-known/openid-configuration"
        ]
    );
    assert_eq!(ask(&mut source, at(0), "a"), ("unavailable", None));
}

// covers: RSRC-S-002
#[test]
fn issuer_is_spelled_as_in_its_metadata() {
    let mut source = Source::new(&IssuerConfig::jwt("https://as.example"));
    ask(&mut source, at(0), "a");
    let slash = r#"{"issuer":"https://as.example/","jwks_uri":"https://keys.example/jwks"}"#;
    let progress = source.fetched(at(0), &response(200, slash));
    assert_eq!(url(&progress).as_deref(), Some("https://keys.example/jwks"));
    source.fetched(at(0), &keys());
    let Answer::Found((_, issuer)) = source.key(at(0), Alg::Es256, Some("a")) else { panic!("no key") };
    assert_eq!(issuer, "https://as.example/");
    // With a configured URL there is no metadata.
    let mut source = Source::new(&IssuerConfig::jwt("https://as.example").jwks_uri("https://as.example/own"));
    assert_eq!(ask(&mut source, at(0), "a"), ("wait", Some("https://as.example/own".into())));
    source.fetched(at(0), &keys());
    let Answer::Found((_, issuer)) = source.key(at(0), Alg::Es256, Some("a")) else { panic!("no key") };
    assert_eq!(issuer, "https://as.example");
}

// covers: RSRC-S-006
#[test]
fn unknown_key_is_fetched_once_in_30_seconds() {
    let mut source = loaded(at(0));
    assert_eq!(ask(&mut source, at(1), "a"), ("found", None));
    for second in 0..30 {
        assert_eq!(ask(&mut source, at(second), "b"), ("unknown", None));
    }
    assert_eq!(ask(&mut source, at(30), "b"), ("wait", Some(KEYS.into())));
    // A known one does not wait for that.
    assert_eq!(ask(&mut source, at(30), "a"), ("found", None));
    assert_eq!(ask(&mut source, at(30), "c"), ("wait", None));
    assert!(matches!(source.fetched(at(31), &keys()), Progress::Ended(Ok(()))));
    assert_eq!(ask(&mut source, at(31), "b"), ("unknown", None));
    // If it cannot be fetched, it is not known whether there is one.
    assert_eq!(ask(&mut source, at(61), "b").0, "wait");
    assert!(matches!(source.fetched(at(61), &down()), Progress::Ended(Err(_))));
    assert_eq!(ask(&mut source, at(61), "b"), ("unavailable", None));
    assert_eq!(ask(&mut source, at(61), "a"), ("found", None));
}

// covers: RSRC-S-006
#[test]
fn keys_are_fetched_again_and_kept_while_that_fails() {
    let mut source = loaded(at(0));
    assert_eq!(ask(&mut source, at(599), "a"), ("found", None));
    assert_eq!(ask(&mut source, at(600), "a"), ("wait", Some(KEYS.into())));
    source.fetched(at(600), &down());
    // The old ones are used, and fetched again beside that, with growing pauses.
    let mut fetches = vec![];
    for second in 600..720 {
        let (said, url) = ask(&mut source, at(second), "a");
        assert_eq!(said, "found", "{second}");
        if url.is_some() {
            fetches.push(second - 600);
            source.fetched(at(second), &down());
        }
    }
    assert_eq!(fetches, [1, 3, 7, 15, 31, 61, 91]);
    assert_eq!(ask(&mut source, at(24 * 3600 - 1), "a").0, "found");
    // By now the metadata is fetched again, too, at both of its URLs.
    assert!(matches!(source.fetched(at(24 * 3600 - 1), &down()), Progress::Fetch(_)));
    assert!(matches!(source.fetched(at(24 * 3600 - 1), &down()), Progress::Ended(Err(_))));
    assert_eq!(ask(&mut source, at(24 * 3600), "a").0, "unavailable");
    assert_eq!(ask(&mut source, at(25 * 3600), "a").0, "wait");
    assert!(matches!(source.fetched(at(25 * 3600), &metadata()), Progress::Fetch(_)));
    source.fetched(at(25 * 3600), &keys());
    assert_eq!(ask(&mut source, at(25 * 3600 + 599), "a"), ("found", None));
}

#[test]
fn metadata_is_fetched_again_after_an_hour_or_a_lost_url() {
    let metadata_url = "https://as.example/.well-known/oauth-authorization-server";
    let mut source = loaded(at(0));
    assert_eq!(ask(&mut source, at(3600), "a").1.as_deref(), Some(metadata_url));
    let mut source = loaded(at(0));
    assert_eq!(ask(&mut source, at(600), "a").1.as_deref(), Some(KEYS));
    source.fetched(at(600), &response(404, ""));
    assert_eq!(ask(&mut source, at(601), "a").1.as_deref(), Some(metadata_url));
}

// covers: B-237
#[test]
fn url_of_an_issuer_has_tls_or_is_of_this_machine() {
    for (url, reach) in [
        ("https://as.example", Some(Reach::Any)),
        ("https://10.0.0.1:8443/t", Some(Reach::Any)),
        ("http://localhost:4400", Some(Reach::Loopback)),
        ("http://127.0.0.1:4400/t", Some(Reach::Loopback)),
        ("http://as.example", None),
        ("http://10.0.0.1", None),
        ("https://u@as.example", None),
        ("https://as.example/#a", None),
        ("ftp://as.example", None),
        ("", None),
    ] {
        let mut source = Source::new(&IssuerConfig::jwt(url));
        let Answer::Wait = source.key(at(0), Alg::Es256, None) else { panic!("{url}") };
        match source.next(at(0)) {
            Progress::Fetch(request) => {
                assert_eq!((Some(request.reach), request.method.as_str()), (reach, "GET"), "{url}");
                assert_eq!((request.max_body, request.timeout), (64 << 10, Duration::from_secs(10)));
            }
            Progress::Ended(Err(why)) => assert!(reach.is_none() && !why.is_empty(), "{url}"),
            other => panic!("{url}: {other:?}"),
        }
    }
}

#[test]
fn failure_names_each_url_and_its_reason() {
    let mut source = Source::new(&IssuerConfig::jwt("https://as.example"));
    ask(&mut source, at(0), "a");
    source.fetched(at(0), &response(404, ""));
    let lost = Err(FetchError::Closed { sent: crate::exchange::Sent::No, why: Closed::NotPublic });
    let Progress::Ended(Err(why)) = source.fetched(at(0), &lost) else { panic!("it goes on") };
    let urls = ["oauth-authorization-server: HTTP 404; ", "openid-configuration: "];
    assert!(urls.iter().all(|part| why.contains(part)), "{why}");
    // An answer that nothing waits for changes nothing.
    assert!(matches!(source.fetched(at(0), &keys()), Progress::Nothing));
}
