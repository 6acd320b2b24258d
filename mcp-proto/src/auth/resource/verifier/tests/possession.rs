//! Tokens that are bound to a key of their client.

use super::rig::{EPOCH, HEADER, ISSUER, JKT, Rig, SELF, invalid, proof, token};
use super::seconds;
use crate::auth::{AccessDenial, CheckId, Resource, VerifierConfig};
use alloc::format;
use alloc::string::String;

fn rig(is_required: bool) -> Rig {
    Rig::with(VerifierConfig::jwt(ISSUER), Resource::new(SELF, [ISSUER]).dpop(is_required))
}

fn bound() -> String {
    token(HEADER, &[("cnf", &format!(r#"{{"jkt":"{JKT}"}}"#))])
}

// covers: DPOP-S-012, DPOP-S-013
#[test]
fn bound_token_needs_a_new_proof_each_time() {
    let (mut rig, token) = (rig(false), bound());
    assert!(rig.check_proof(&token, &proof(&token, "1", EPOCH, None)).is_ok());
    assert!(rig.check_proof(&token, &proof(&token, "2", EPOCH, None)).is_ok());
    // The token once, each proof.
    assert_eq!(rig.verifications.len(), 3);
    assert_eq!(
        rig.check_proof(&token, &proof(&token, "1", EPOCH, None)),
        Err(AccessDenial::Proof("the proof was used before"))
    );
    rig.pass(seconds(299));
    assert!(rig.check_proof(&token, &proof(&token, "1", EPOCH, None)).is_err());
    assert!(rig.check_proof(&token, &proof(&token, "1", EPOCH + 299, None)).is_err());
    rig.pass(seconds(1));
    assert!(rig.check_proof(&token, &proof(&token, "1", EPOCH + 300, None)).is_ok());
}

// covers: DPOP-S-012, DPOP-S-014, DPOP-S-015
#[test]
fn token_and_proof_fit_each_other() {
    let (mut rig, token, plain) = (rig(false), bound(), token(HEADER, &[]));
    let of = |text: &str| proof(text, "1", EPOCH, None);
    assert_eq!(rig.check(&token), invalid("the token is bound to a key, and needs its proof"));
    assert_eq!(rig.check_proof(&plain, &of(&plain)), invalid("the token is not bound to a key"));
    let other = super::token(HEADER, &[("cnf", r#"{"jkt":"other"}"#)]);
    assert_eq!(rig.check_proof(&other, &of(&other)), invalid("the token is bound to another key"));
    assert_eq!(rig.check_proof(&token, &of(&plain)), Err(AccessDenial::Proof("the proof is for another token")));
    let forged = of(&token).replace(".c2ln", ".Zm9v");
    assert_eq!(rig.check_proof(&token, &forged), Err(AccessDenial::Proof("the signature of the proof is not valid")));
    // A forged proof uses up no identifier.
    assert!(rig.check_proof(&token, &of(&token)).is_ok());
    let foreign = super::token(HEADER, &[("aud", "\"https://x\""), ("cnf", &format!(r#"{{"jkt":"{JKT}"}}"#))]);
    assert_eq!(rig.check_proof(&foreign, &of(&foreign)), invalid("the token is for another audience"));
    assert!(rig.check(&plain).is_ok());
}

// covers: DPOP-S-015
#[test]
fn resource_says_whether_tokens_are_bound() {
    let (token, plain) = (bound(), token(HEADER, &[]));
    let of_token = proof(&token, "1", EPOCH, None);
    let mut required = rig(true);
    assert!(required.check_proof(&token, &of_token).is_ok());
    assert_eq!(required.check(&plain), invalid("the token is not bound to a key of its client"));
    let mut off = Rig::new(VerifierConfig::jwt(ISSUER));
    assert_eq!(off.check_proof(&token, &of_token), invalid("the server accepts no tokens that are bound to a key"));
    assert!(off.check(&token).is_err() && off.check(&plain).is_ok());
}

// covers: DPOP-S-013, DPOP-S-014
#[test]
fn proof_has_the_nonce_of_the_server() {
    let resource = Resource::new(SELF, [ISSUER]).dpop(true);
    let mut rig = Rig::with(VerifierConfig::jwt(ISSUER).with_nonces(), resource);
    let token = bound();
    let Err(AccessDenial::Nonce(nonce)) = rig.check_proof(&token, &proof(&token, "1", EPOCH, None)) else {
        panic!("it needs a nonce")
    };
    assert!(rig.check_proof(&token, &proof(&token, "2", EPOCH, Some(&nonce))).is_ok());
    let again = rig.check_proof(&token, &proof(&token, "2", EPOCH, Some(&nonce)));
    assert_eq!(again, Err(AccessDenial::Proof("the proof was used before")));
    rig.pass(seconds(240));
    let Err(AccessDenial::Nonce(newer)) = rig.check_proof(&token, &proof(&token, "3", EPOCH, Some(&nonce))) else {
        panic!("it needs another nonce")
    };
    assert_ne!(newer, nonce);
}

#[test]
fn withdrawn_proof_decides_nothing() {
    let (mut rig, token) = (rig(false), bound());
    rig.check_proof(&token, &proof(&token, "1", EPOCH, None)).unwrap();
    rig.is_held = true;
    let field = format!("DPoP {token}");
    let fields = proof(&token, "2", EPOCH, None);
    let id = rig.begin(&[("Authorization", &field), ("DPoP", &fields)]);
    rig.verifier.withdraw(CheckId(id));
    rig.release();
    assert!(rig.decisions.is_empty() && rig.verifier.steps.is_empty());
    // It was not used.
    assert!(rig.check_proof(&token, &fields).is_ok());
}

#[test]
fn same_proof_at_the_same_time_is_accepted_once() {
    let (mut rig, token) = (rig(false), bound());
    rig.is_held = true;
    let (field, fields) = (format!("DPoP {token}"), proof(&token, "1", EPOCH, None));
    for _ in 0..3 {
        rig.begin(&[("Authorization", &field), ("DPoP", &fields)]);
    }
    rig.release();
    assert_eq!(rig.decisions.values().filter(|decision| decision.is_ok()).count(), 1);
    assert_eq!(rig.decisions.len(), 3);
}
