mod opaque;
mod possession;
mod random;
mod rig;

use super::*;
use crate::auth::IssuerConfig;
use crate::error::AuthError;
use alloc::format;
use rig::{EPOCH, HEADER, ISSUER, Rig, invalid, is_unavailable, token};

fn rig() -> Rig {
    Rig::new(VerifierConfig::jwt(ISSUER))
}

const METADATA: &str = "https://as.example/.well-known/oauth-authorization-server";
const KEYS: &str = "https://as.example/jwks";

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

// covers: AUTHT-S-003, RSRC-S-002
#[test]
fn token_is_verified_with_the_key_of_its_issuer() {
    let mut rig = rig();
    let token = token(HEADER, &[("scope", "\"read\"")]);
    let access = rig.check(&token).unwrap();
    assert_eq!(access.principal.as_str(), r#"["https://as.example","u1","c1"]"#);
    assert_eq!((access.scopes.contains("read"), access.expires), (true, Some(seconds(EPOCH + 3660))));
    assert_eq!(rig.urls, [METADATA, KEYS]);
    let [Verification { alg, key, input, signature }] = &*rig.verifications else { panic!("not one") };
    assert_eq!((*alg, &*key.thumbprint(), &signature[..]), (crate::auth::Alg::Es256, rig::JKT, &b"sig"[..]));
    assert_eq!(&input[..], token.rsplit_once('.').unwrap().0.as_bytes());
    assert!(rig.reports.is_empty());
}

// covers: RSRC-S-009, RSRC-S-010
#[test]
fn request_without_a_token_is_decided_at_once() {
    let mut rig = rig();
    for (fields, denial) in [
        (&[][..], AccessDenial::Missing),
        (&[("Authorization", "Basic YTpi")], AccessDenial::Missing),
        (
            &[("Authorization", "Bearer a"), ("authorization", "Bearer a")],
            AccessDenial::Malformed("more than one token"),
        ),
    ] {
        let id = rig.begin(fields);
        assert_eq!(rig.decisions.remove(&id), Some(Err(denial)));
    }
    assert!(rig.urls.is_empty());
}

// covers: AUTHT-S-004, AUTHT-S-005, RSRC-S-001, RSRC-S-003, RSRC-S-004, RSRC-S-005
#[test]
fn unfit_token_is_refused_before_anything_is_fetched() {
    let mut rig = rig();
    for (header, claims, why) in [
        (HEADER, ("aud", "\"https://other.example\""), "the token is for another audience"),
        (HEADER, ("exp", "1799999000"), "the token has expired"),
        (HEADER, ("nbf", "1800001000"), "the token is not valid yet"),
        (HEADER, ("iss", "\"https://evil.example\""), "the token is of another issuer"),
        (r#"{"alg":"none","typ":"at+jwt"}"#, ("a", "1"), "the algorithm of the token is not accepted"),
        (r#"{"alg":"HS256","typ":"at+jwt","kid":"a"}"#, ("a", "1"), "the algorithm of the token is not accepted"),
        (r#"{"alg":"ES256","typ":"JWT"}"#, ("a", "1"), "the token is no access token"),
        (r#"{"alg":"ES256","typ":"at+jwt","crit":["b64"]}"#, ("a", "1"), "the token demands an extension"),
        (r#"{"alg":"ES256","typ":"at+jwt","kid":1}"#, ("a", "1"), "the token names no key"),
    ] {
        assert_eq!(rig.check(&token(header, &[claims])), invalid(why), "{header} {claims:?}");
    }
    assert_eq!(rig.check("opaque"), invalid("the token is no JSON Web Token"));
    assert_eq!(rig.check(&"a".repeat(9000)), invalid("the token is too long"));
    assert!(rig.urls.is_empty() && rig.verifications.is_empty());
}

// covers: AUTHT-S-003, RSRC-S-002, RSRC-S-006
#[test]
fn forged_token_is_refused() {
    let mut rig = rig();
    let forged = token(HEADER, &[]).replace(".c2ln", ".Zm9v");
    assert_eq!(rig.check(&forged), invalid("the signature of the token is not valid"));
    // A key in the token, or at a URL in it, does not count.
    let header = r#"{"alg":"ES256","typ":"at+jwt","kid":"b","jku":"https://evil.example/jwks","jwk":{}}"#;
    assert_eq!(rig.check(&token(header, &[])), invalid("the key of the token is not known"));
    assert_eq!(rig.urls, [METADATA, KEYS]);
    assert_eq!(rig.verifications.len(), 1);
}

// covers: AUTHT-S-003
#[test]
fn valid_token_is_remembered_for_a_time() {
    let mut rig = rig();
    let (token, other) = (token(HEADER, &[]), token(HEADER, &[("jti", "\"2\"")]));
    rig.check(&token).unwrap();
    rig.pass(seconds(299));
    assert!(rig.check(&token).is_ok() && rig.verifications.len() == 1);
    rig.pass(seconds(1));
    assert!(rig.check(&token).is_ok() && rig.verifications.len() == 2);
    // Not beyond its expiry, with the leeway.
    rig.pass(seconds(3350));
    assert!(rig.check(&other).is_ok());
    rig.pass(seconds(10));
    assert_eq!(rig.check(&other), invalid("the token has expired"));
}

// covers: RSRC-S-006
#[test]
fn requests_share_the_verification_of_their_token() {
    let mut rig = rig();
    rig.is_held = true;
    let (one, other) = (token(HEADER, &[]), token(HEADER, &[("jti", "\"2\"")]));
    let field = |token: &str| format!("Bearer {token}");
    for _ in 0..5 {
        rig.begin(&[("Authorization", &field(&one))]);
        rig.begin(&[("Authorization", &field(&other))]);
    }
    assert!(rig.decisions.is_empty() && rig.held.len() == 1);
    rig.release();
    assert!(rig.decisions.len() == 10 && rig.decisions.values().all(Result::is_ok));
    assert_eq!((rig.urls.len(), rig.verifications.len()), (2, 2));
}

// covers: RSRC-S-006
#[test]
fn storm_of_bad_tokens_costs_little() {
    let mut rig = rig();
    let good = token(HEADER, &[]);
    rig.check(&good).unwrap();
    for n in 0..1000 {
        let header = format!(r#"{{"alg":"ES256","typ":"at+jwt","kid":"x{n}"}}"#);
        assert_eq!(rig.check(&token(&header, &[])), invalid("the key of the token is not known"));
        rig.pass(Duration::from_millis(29));
    }
    // One further fetch could have been made at 30 s, and was not due before.
    assert_eq!(rig.urls.len(), 2);
    let forged = good.replace(".c2ln", ".Zm9v");
    for _ in 0..1000 {
        assert!(rig.check(&forged).is_err());
    }
    assert_eq!(rig.verifications.len(), 2);
    // The good one is still known.
    assert!(rig.check(&good).is_ok() && rig.verifications.len() == 2);
    // After 5 s the forged one is looked at again.
    rig.pass(seconds(5));
    assert!(rig.check(&forged).is_err() && rig.verifications.len() == 3);
}

// covers: RSRC-S-006
#[test]
fn new_key_of_an_issuer_is_found() {
    let mut rig = rig();
    rig.check(&token(HEADER, &[])).unwrap();
    rig.kids = ["b"].into();
    let newer = token(&HEADER.replace("\"a\"", "\"b\""), &[]);
    assert_eq!(rig.check(&newer), invalid("the key of the token is not known"));
    rig.pass(seconds(30));
    assert!(rig.check(&newer).is_ok());
    assert_eq!(rig.urls, [METADATA, KEYS, KEYS]);
    // The old one is gone.
    assert!(rig.check(&token(HEADER, &[("jti", "\"2\"")])).is_err());
}

// covers: RSRC-S-006
#[test]
fn keys_that_cannot_be_fetched_make_the_server_unavailable() {
    let mut rig = rig();
    rig.faults = [503, 503].into();
    let token = token(HEADER, &[]);
    assert_eq!(rig.check(&token), Err(AccessDenial::Unavailable { retry_after: seconds(1) }));
    rig.pass(Duration::from_millis(400));
    assert_eq!(rig.check(&token), Err(AccessDenial::Unavailable { retry_after: Duration::from_millis(600) }));
    let [VerifierReport::NoKeys(issuer, why)] = &*rig.reports else { panic!("{:?}", rig.reports) };
    assert!(issuer == ISSUER && why.contains("HTTP 503"), "{why}");
    rig.faults = [500, 500].into();
    rig.pass(Duration::from_millis(600));
    assert!(is_unavailable(&rig.check(&token)) && rig.reports.len() == 1);
    // Nothing was remembered against the token.
    rig.pass(seconds(2));
    assert!(rig.check(&token).is_ok());
}

#[test]
fn server_without_cryptography_is_unavailable() {
    let mut rig = rig();
    rig.check(&token(HEADER, &[])).unwrap();
    rig.is_held = true;
    let others: Vec<u64> = (0..3)
        .map(|n| {
            let token = token(HEADER, &[("jti", &format!("\"{n}\""))]);
            rig.begin(&[("Authorization", &format!("Bearer {token}"))])
        })
        .collect();
    rig.fail_verifications();
    assert!(others.iter().all(|id| is_unavailable(&rig.decisions[id])));
    assert_eq!(rig.reports, [VerifierReport::NoCryptography("no provider".into())]);
    assert_eq!(rig.reports[0].to_string(), "signatures cannot be verified: no provider");
}

#[test]
fn waiting_requests_are_limited() {
    let mut config = VerifierConfig::jwt(ISSUER);
    config.max_waiting = 3;
    let mut rig = Rig::new(config);
    rig.is_held = true;
    let begin = |rig: &mut Rig, n: u64| {
        let token = token(HEADER, &[("jti", &n.to_string())]);
        rig.begin(&[("Authorization", &format!("Bearer {token}"))])
    };
    let ids: Vec<u64> = (0..5).map(|n| begin(&mut rig, n)).collect();
    assert!(ids[..3].iter().all(|id| !rig.decisions.contains_key(id)));
    assert!(ids[3..].iter().all(|id| is_unavailable(&rig.decisions[id])));
    // One that is withdrawn makes room, and gets no decision.
    rig.verifier.withdraw(CheckId(ids[0]));
    let later = begin(&mut rig, 6);
    rig.release();
    assert!([ids[1], ids[2], later].iter().all(|id| rig.decisions[id].is_ok()));
    assert!(!rig.decisions.contains_key(&ids[0]));
    assert_eq!((rig.verifier.tokens.len(), rig.verifier.waiting.len(), rig.verifier.steps.len()), (0, 0, 0));
}

#[test]
fn withdrawn_request_leaves_its_step_in_the_limit() {
    let mut config = VerifierConfig::jwt(ISSUER);
    config.max_waiting = 2;
    let mut rig = Rig::new(config);
    rig.check(&token(HEADER, &[])).unwrap();
    rig.is_held = true;
    for n in 0..2 {
        let token = token(HEADER, &[("jti", &n.to_string())]);
        let id = rig.begin(&[("Authorization", &format!("Bearer {token}"))]);
        rig.verifier.withdraw(CheckId(id));
    }
    let held = rig.begin(&[("Authorization", &format!("Bearer {}", token(HEADER, &[("jti", "9")])))]);
    assert!(is_unavailable(&rig.decisions[&held]));
    // A token that is known needs no room.
    assert!(rig.check(&token(HEADER, &[])).is_ok());
    rig.release();
    // What was verified for a request that was withdrawn is known.
    let before = rig.verifications.len();
    assert!(rig.check(&token(HEADER, &[("jti", "1")])).is_ok() && rig.verifications.len() == before);
}

#[test]
fn forgotten_principal_is_verified_again() {
    let mut rig = rig();
    let (one, other) = (token(HEADER, &[]), token(HEADER, &[("sub", "\"u2\"")]));
    let access = rig.check(&one).unwrap();
    rig.check(&other).unwrap();
    rig.verifier.forget(&access.principal);
    assert!(rig.check(&other).is_ok() && rig.verifications.len() == 2);
    assert!(rig.check(&one).is_ok() && rig.verifications.len() == 3);
}

// covers: RSRC-S-002
#[test]
fn issuers_are_told_apart() {
    let second = IssuerConfig::jwt("https://b.example").jwks_uri("https://b.example/jwks").audience("api://b");
    let mut rig = Rig::new(VerifierConfig::jwt(ISSUER).and_issuer(second));
    assert_eq!(&*rig.check(&token(HEADER, &[])).unwrap().issuer, ISSUER);
    let of_b = [("iss", "\"https://b.example\""), ("aud", "\"api://b\"")];
    let access = rig.check(&token(HEADER, &of_b)).unwrap();
    assert_eq!(access.principal.as_str(), r#"["https://b.example","u1","c1"]"#);
    assert_eq!(rig.urls, [METADATA, KEYS, "https://b.example/jwks"]);
    let mixed = [("iss", "\"https://b.example\""), ("aud", "\"https://mcp.example/mcp\"")];
    assert_eq!(rig.check(&token(HEADER, &mixed)), invalid("the token is for another audience"));
}

// covers: RSRC-S-002
#[test]
fn issuer_in_a_token_is_spelled_as_in_the_metadata() {
    let mut rig = Rig::new(VerifierConfig::jwt("https://as.example/"));
    // The metadata says `https://as.example`.
    assert!(rig.check(&token(HEADER, &[])).is_ok());
    let slash = token(HEADER, &[("iss", "\"https://as.example/\"")]);
    assert_eq!(rig.check(&slash), invalid("the token is of another issuer"));
}

// covers: AUTHS-S-013
#[test]
fn implied_scopes_are_granted() {
    let config = VerifierConfig::jwt(ISSUER).implies("write", ["read"]).implies("admin", ["write"]);
    let config = config.implies("read", ["list", "admin2"]);
    let scopes = |scope: &str| config.implied.get(scope).map(ToString::to_string);
    assert_eq!(scopes("admin").as_deref(), Some("admin2 list read write"));
    assert_eq!(scopes("write").as_deref(), Some("admin2 list read"));
    let mut rig = Rig::new(config);
    let access = rig.check(&token(HEADER, &[("scope", "\"admin x\"")])).unwrap();
    assert_eq!(access.scopes.to_string(), "admin admin2 list read write x");
    // A circle ends.
    let circle = VerifierConfig::jwt(ISSUER).implies("a", ["b"]).implies("b", ["a"]);
    assert_eq!(circle.implied["a"].to_string(), "a b");
}

#[test]
fn bad_url_of_an_issuer_is_found_at_once() {
    let fault = |issuer: IssuerConfig| match VerifierConfig::jwt(ISSUER).and_issuer(issuer).check() {
        Err(AuthError::BadUrl { purpose, .. }) => Some(purpose),
        Err(other) => panic!("{other:?}"),
        Ok(()) => None,
    };
    let local = || IssuerConfig::jwt("http://localhost:4400");
    assert_eq!(fault(local().jwks_uri("https://b.example/jwks")), None);
    assert_eq!(fault(IssuerConfig::jwt("http://b.example")).as_deref(), Some("issuer"));
    assert_eq!(fault(local().jwks_uri("http://b.example/jwks")).as_deref(), Some("jwks_uri"));
    let asked = IssuerConfig::introspection("https://b.example", "s1", "x").introspection_endpoint("/introspect");
    assert_eq!(fault(asked).as_deref(), Some("introspection_endpoint"));
}

#[test]
fn memory_is_empty_when_all_has_expired() {
    let mut rig = rig();
    assert_eq!(rig.verifier.poll_timeout(), None);
    rig.check(&token(HEADER, &[])).unwrap();
    rig.check("x").unwrap_err();
    assert_eq!(rig.verifier.poll_timeout(), Some(Instant::new(seconds(300))));
    rig.pass(seconds(600));
    assert_eq!(rig.verifier.poll_timeout(), None);
    assert!(rig.verifier.grants.is_empty() && rig.verifier.refused.is_empty());
}

#[test]
fn answer_to_no_step_changes_nothing() {
    let mut rig = rig();
    rig.is_held = true;
    let id = rig.begin(&[("Authorization", &format!("Bearer {}", token(HEADER, &[])))]);
    rig.answer_stale(99);
    // A verification is no answer to a fetch.
    rig.verifier.verified(rig.now, StepId(1), Ok(true));
    rig.run();
    assert!(!rig.decisions.contains_key(&id));
    rig.release();
    assert!(rig.decisions[&id].is_ok());
}

#[test]
fn no_debug_output_shows_a_token() {
    let mut rig = rig();
    rig.is_held = true;
    let token = token(HEADER, &[]);
    rig.begin(&[("Authorization", &format!("Bearer {token}"))]);
    let parts: Vec<&str> = token.split('.').collect();
    let shows = |text: String| parts.iter().any(|part| text.contains(part));
    assert!(!shows(format!("{:?}", rig.verifier)));
    while let Some(VerifierOutput::Fetch(..)) = rig.held.front() {
        rig.release();
    }
    let verification = &rig.verifications[0];
    assert!(!shows(format!("{verification:?}")) && !shows(format!("{:?}", rig.verifier)));
}
