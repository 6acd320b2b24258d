//! Tokens that their issuer is asked about.

use super::rig::{ISSUER, Rig, invalid, is_unavailable};
use super::seconds;
use crate::auth::{AccessDenial, CheckId, IssuerConfig, VerifierConfig, VerifierReport};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

const METADATA: &str = "https://as.example/.well-known/oauth-authorization-server";
const ASK: &str = "https://as.example/introspect";
const ACTIVE: &str = r#"{"active":true,"aud":"https://mcp.example/mcp","sub":"u1","client_id":"c1","scope":"read""#;

fn rig() -> Rig {
    let mut rig = Rig::new(VerifierConfig::introspection(ISSUER, "s1", "secret"));
    rig.opaque.insert("good".into(), format!("{ACTIVE}}}"));
    rig
}

// covers: RSRC-S-007
#[test]
fn issuer_is_asked_about_a_token() {
    let mut rig = rig();
    let access = rig.check("good").unwrap();
    assert_eq!(access.principal.as_str(), r#"["https://as.example","u1","c1"]"#);
    assert!(access.scopes.contains("read") && access.expires.is_none() && access.claims.contains("active"));
    assert_eq!(rig.urls, [METADATA, ASK]);
    assert_eq!(rig.bodies, ["token=good&token_type_hint=access_token"]);
    assert_eq!(rig.check("bad"), invalid("the token is not active"));
}

// covers: RSRC-S-007, AUTHT-S-004
#[test]
fn answer_is_checked_as_a_token() {
    let mut rig = rig();
    for (name, answer, why) in [
        ("a", r#"{"active":true,"sub":"u1"}"#.into(), "the token is for another audience"),
        ("b", format!(r#"{ACTIVE},"exp":1799999000}}"#), "the token has expired"),
        ("c", format!(r#"{ACTIVE},"nbf":1800001000}}"#), "the token is not valid yet"),
        ("d", format!(r#"{ACTIVE},"iss":"https://other.example"}}"#), "the token is of another issuer"),
        ("e", ACTIVE.replace("/mcp\"", "/\"") + "}", "the token is for another audience"),
    ] {
        rig.opaque.insert(name.into(), answer);
        assert_eq!(rig.check(name), invalid(why), "{name}");
    }
    rig.opaque.insert("f".into(), format!(r#"{ACTIVE},"iss":"{ISSUER}","exp":1800000030}}"#));
    assert!(rig.check("f").is_ok());
}

// covers: RSRC-S-008
#[test]
fn answer_is_remembered_for_a_short_time() {
    let mut rig = rig();
    let asked = |rig: &Rig| rig.bodies.len();
    rig.check("good").unwrap();
    rig.pass(seconds(59));
    assert!(rig.check("good").is_ok() && asked(&rig) == 1);
    rig.pass(seconds(1));
    assert!(rig.check("good").is_ok() && asked(&rig) == 2);
    // Not beyond its expiry, and inactive ones for 5 s.
    rig.opaque.insert("short".into(), format!(r#"{ACTIVE},"exp":1800000070}}"#));
    rig.check("short").unwrap();
    rig.check("bad").unwrap_err();
    rig.pass(seconds(4));
    assert!(rig.check("short").is_ok() && rig.check("bad").is_err() && asked(&rig) == 4);
    rig.pass(seconds(6));
    assert!(rig.check("short").is_ok() && rig.check("bad").is_err() && asked(&rig) == 6);
    // A token that was revoked meanwhile.
    rig.opaque.remove("good");
    rig.pass(seconds(60));
    assert_eq!(rig.check("good"), invalid("the token is not active"));
}

#[test]
fn bad_tokens_replace_no_good_one() {
    let mut rig = rig();
    rig.check("good").unwrap();
    for n in 0..1500 {
        rig.check(&format!("bad{n}")).unwrap_err();
    }
    let asked = rig.bodies.len();
    assert!(rig.check("good").is_ok() && rig.bodies.len() == asked);
}

#[test]
fn few_questions_are_open_at_a_time() {
    let mut rig = rig();
    rig.check("good").unwrap();
    rig.is_held = true;
    let ids: Vec<u64> = (0..300).map(|n| rig.begin(&[("Authorization", &format!("Bearer t{n}"))])).collect();
    assert_eq!(rig.held.len(), 16);
    assert!(ids[256..].iter().all(|id| is_unavailable(&rig.decisions[id])));
    assert!(ids[..256].iter().all(|id| !rig.decisions.contains_key(id)));
    // Some of those that wait are withdrawn: they are not asked about.
    ids[16..26].iter().for_each(|id| rig.verifier.withdraw(CheckId(*id)));
    rig.release();
    assert_eq!(rig.bodies.len(), 1 + 256 - 10);
    assert!(ids[26..256].iter().all(|id| rig.decisions[id] == invalid("the token is not active")));
    assert!(rig.verifier.issuers[0].queue.is_empty() && rig.verifier.issuers[0].asked == 0);
}

#[test]
fn withdrawn_request_leaves_no_place_in_the_queue() {
    let mut rig = rig();
    rig.is_held = true;
    for _ in 0..100 {
        let id = rig.begin(&[("Authorization", "Bearer good")]);
        rig.verifier.withdraw(CheckId(id));
    }
    assert!(rig.verifier.issuers[0].queue.is_empty() && rig.verifier.tokens.is_empty());
    rig.release();
    assert_eq!(rig.urls, [METADATA]);
    assert!(rig.check("good").is_ok());
}

// covers: RSRC-S-006
#[test]
fn issuer_that_fails_makes_the_server_unavailable() {
    let mut rig = rig();
    rig.faults = [200, 404].into();
    assert!(is_unavailable(&rig.check("good")));
    assert!(matches!(&*rig.reports, [VerifierReport::NoKeys(issuer, _)] if issuer == ISSUER));
    rig.pass(seconds(60));
    rig.check("good").unwrap();
    for status in [401, 500, 302] {
        rig.pass(seconds(60));
        rig.faults = [status].into();
        assert_eq!(rig.check("good"), Err(AccessDenial::Unavailable { retry_after: seconds(1) }), "{status}");
    }
    assert_eq!(rig.reports.len(), 4);
    assert_eq!(rig.reports[1].to_string(), "https://as.example could not be asked about a token: HTTP 401");
    assert!(rig.check("good").is_ok());
    assert!(!format!("{:?}", rig.reports).contains("secret"));
}

// covers: AUTHT-S-007
#[test]
fn token_goes_to_no_other_issuer() {
    let second = IssuerConfig::jwt("https://b.example");
    let mut rig = Rig::new(VerifierConfig::introspection(ISSUER, "s1", "secret").and_issuer(second));
    let named = |issuer: &str| super::token(super::HEADER, &[("iss", &format!("\"{issuer}\""))]);
    // A JSON Web Token of the issuer that is asked, of the other one, and of a third one.
    let own = named(ISSUER);
    rig.opaque.insert(own.clone(), format!("{ACTIVE}}}"));
    assert!(rig.check(&own).is_ok() && rig.verifications.is_empty());
    assert!(rig.check(&named("https://b.example")).is_ok() && rig.verifications.len() == 1);
    assert_eq!(rig.check(&named("https://c.example")), invalid("the token is of another issuer"));
    let asked: Vec<&String> = rig.bodies.iter().filter(|body| !body.contains(&own)).collect();
    assert!(asked.is_empty() && rig.bodies.len() == 1);
}
