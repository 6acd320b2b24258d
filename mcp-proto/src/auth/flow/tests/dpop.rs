//! Tokens that are bound to a key (RFC 9449): when they are, their proofs, and nonces.

use super::rig::{self, ISSUER, SERVER, World, claim, config, key};
use crate::auth::flow::{FlowState, Reaction, Tried};
use crate::auth::step::{Input, StoreFault};
use crate::auth::{Alg, AuthConfig, Dpop, KeyPair, SignKey, StepId, TokenType, Tokens};
use crate::error::AuthError;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

const DPOP: &str = "DPoP algs=\"ES256\"";

fn with(dpop: Dpop) -> AuthConfig {
    rig::with(config(), |config| config.dpop = dpop)
}

/// A world whose issuer binds tokens, and whose client is configured like this.
fn world(dpop: Dpop) -> World {
    let mut world = World::with(with(dpop), 1);
    world.issuer.dpop = Some("ES256 EdDSA");
    world
}

/// Has a request without a token refused by this challenge, which leads to a login.
fn log_in(world: &mut World, challenge: &str) -> Tried {
    assert_eq!(world.token(), None);
    world.ends.clear();
    let mut tried = Tried::default();
    assert_eq!(world.refuse(0, 401, challenge, &mut tried), Reaction::Wait);
    world.run();
    tried
}

fn tokens(world: &World) -> Tokens {
    world.store.record.as_ref().unwrap().entries[0].tokens.clone().unwrap()
}

/// Returns the texts with this name in the proofs of all token requests.
fn claims(world: &World, name: &str) -> Vec<Option<String>> {
    world.issuer.proofs.iter().map(|proof| claim(proof.as_ref()?, name)).collect()
}

fn bound(number: usize) -> Option<String> {
    Some(format!("DPoP access-{number}"))
}

// covers: DPOP-C-001, DPOP-C-004, DPOP-C-009
#[test]
fn login_refresh_and_requests_prove_the_same_key() {
    let mut world = world(Dpop::IfOffered);
    log_in(&mut world, DPOP);
    assert_eq!(world.token(), bound(1));
    assert_eq!((tokens(&world).token_type, &*world.keys), (TokenType::Dpop, &[Alg::Es256][..]));
    assert_eq!(tokens(&world).dpop_key, Some(key(1, Alg::Es256).into()));
    world.pass(Duration::from_secs(3590));
    assert_eq!(world.token(), bound(2));
    assert_eq!((world.pages.len(), world.keys.len()), (1, 1));
    assert_eq!(tokens(&world).dpop_key, Some(key(1, Alg::Es256).into()));
    assert_eq!(claims(&world, "htm"), [Some("POST".into()), Some("POST".into())]);
    assert_eq!(claims(&world, "htu"), [Some(format!("{ISSUER}/token")), Some(format!("{ISSUER}/token"))]);
    assert_eq!(claims(&world, "ath"), [None, None]);
    assert!(world.signed.iter().all(|request| request.key == SignKey::Pkcs8("key-1".into())));
    assert!(world.is_at_rest());
}

// covers: DPOP-C-002, DPOP-C-003
#[test]
fn each_request_has_a_proof_of_its_own() {
    let mut world = world(Dpop::IfOffered);
    log_in(&mut world, DPOP);
    let proofs: Vec<_> = (0..3).map(|_| world.prove(0).unwrap()).collect();
    let fields: Vec<_> = proofs.iter().map(|proof| proof.fields.get("DPoP").unwrap()).collect();
    for proof in &fields {
        assert_eq!(claim(proof, "htu").as_deref(), Some(SERVER));
        assert_eq!(claim(proof, "ath").unwrap().len(), 43);
        assert_eq!(proof.split('.').nth(2).map(str::len), Some(86), "{proof}");
    }
    let mut ids: Vec<_> = fields.iter().map(|proof| claim(proof, "jti").unwrap()).collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 3);
    assert!(proofs.iter().all(|proof| proof.fields.get("Authorization") == Some("DPoP access-1")));
}

#[test]
fn tokens_are_bound_if_the_server_asks_and_its_issuer_can() {
    for (dpop, challenge, issuer, is_bound) in [
        (Dpop::Off, DPOP, Some("ES256"), false),
        (Dpop::IfOffered, DPOP, Some("ES256"), true),
        (Dpop::IfOffered, "Bearer, DPoP", Some("EdDSA"), true),
        (Dpop::IfOffered, "Bearer", Some("ES256"), false),
        (Dpop::IfOffered, DPOP, None, false),
        (Dpop::IfOffered, DPOP, Some("RS256"), false),
        (Dpop::Required, "Bearer", Some("ES256"), true),
    ] {
        let mut world = world(dpop);
        world.issuer.dpop = issuer;
        log_in(&mut world, challenge);
        let wanted = if is_bound { bound(1) } else { Some("access-1".into()) };
        assert_eq!(world.token(), wanted, "{dpop:?} {challenge} {issuer:?}");
        assert_eq!((world.keys.len(), world.issuer.proofs[0].is_some()), (usize::from(is_bound), is_bound));
        assert_eq!(tokens(&world).dpop_key.is_some(), is_bound);
    }
}

#[test]
fn metadata_of_the_server_asks_for_bound_tokens() {
    for (member, alg) in [
        ("\"dpop_bound_access_tokens_required\":true", Some(Alg::Es256)),
        ("\"dpop_signing_alg_values_supported\":[\"EdDSA\"]", Some(Alg::EdDsa)),
        ("\"dpop_bound_access_tokens_required\":false", None),
    ] {
        let mut world = world(Dpop::IfOffered);
        let document = format!("{{\"resource\":\"{SERVER}\",\"authorization_servers\":[\"{ISSUER}\"],{member}}}");
        world.issuer.fault("/.well-known/oauth-protected-resource/mcp", 200, &document);
        log_in(&mut world, "Bearer");
        assert_eq!(world.keys.first().copied(), alg, "{member}");
    }
}

// covers: DPOP-C-008
#[test]
fn bearer_token_is_refused_where_bound_ones_are_required() {
    let mut world = world(Dpop::Required);
    world.issuer.dpop = None;
    log_in(&mut world, "Bearer");
    assert!(matches!(&*world.ends, [Err(AuthError::Token(_))]), "{:?}", world.ends);
    assert_eq!((world.token(), world.keys.len()), (None, 1));
}

#[test]
fn page_opens_only_if_required_proofs_are_possible() {
    let mut world = world(Dpop::Required);
    world.issuer.dpop = Some("RS256");
    log_in(&mut world, "Bearer");
    assert_eq!(world.ends, [Err(AuthError::NoDpop { issuer: ISSUER.into() })]);
    assert_eq!((world.pages.len(), world.issuer.registrations.len()), (0, 0));
}

// covers: DPOP-C-008
#[test]
fn bearer_token_after_a_proof_is_a_bearer_token() {
    let mut world = world(Dpop::IfOffered);
    let body = "{\"access_token\":\"plain\",\"token_type\":\"Bearer\",\"expires_in\":3600,\"refresh_token\":\"r\"}";
    world.issuer.fault("/token", 200, body);
    world.issuer.refresh.push("r".into());
    log_in(&mut world, DPOP);
    assert_eq!(world.token().as_deref(), Some("plain"));
    assert_eq!(tokens(&world).token_type, TokenType::Bearer);
    // Its refresh token may be bound.
    world.pass(Duration::from_secs(3590));
    assert_eq!(world.token(), bound(1));
    assert_eq!(world.keys.len(), 1);
}

#[test]
fn bound_token_without_a_proof_is_refused() {
    let mut world = world(Dpop::Off);
    world.issuer.fault("/token", 200, "{\"access_token\":\"a\",\"token_type\":\"DPoP\"}");
    log_in(&mut world, "Bearer");
    assert!(matches!(&*world.ends, [Err(AuthError::Token(_))]), "{:?}", world.ends);
}

#[test]
fn stored_bound_token_stays_bound_whatever_is_configured() {
    for dpop in [Dpop::Off, Dpop::IfOffered, Dpop::Required] {
        let mut world = world(Dpop::IfOffered);
        log_in(&mut world, DPOP);
        world.restart(with(dpop));
        assert_eq!(world.token(), bound(1));
        world.pass(Duration::from_secs(3590));
        assert_eq!(world.token(), bound(2), "{dpop:?}");
        assert_eq!((world.pages.len(), world.keys.len()), (1, 1));
    }
}

// covers: DPOP-C-008
#[test]
fn stored_bearer_token_is_not_used_if_bound_ones_are_required() {
    let mut world = world(Dpop::Off);
    log_in(&mut world, "Bearer");
    assert_eq!(world.token().as_deref(), Some("access-1"));
    world.restart(with(Dpop::Required));
    log_in(&mut world, "Bearer");
    assert_eq!((world.token(), world.pages.len()), (bound(2), 2));
    assert_eq!(claims(&world, "htm"), [None, Some("POST".into())], "the old refresh token is not used");
}

// covers: DPOP-C-005, DPOP-C-007
#[test]
fn token_request_is_repeated_once_with_the_nonce() {
    let mut world = world(Dpop::IfOffered);
    log_in(&mut world, DPOP);
    world.issuer.nonce = Some("first");
    world.pass(Duration::from_secs(3590));
    assert_eq!(world.token(), bound(2));
    assert_eq!(claims(&world, "nonce"), [None, None, Some("first".into())]);
    let ids = claims(&world, "jti");
    assert_ne!(ids[1], ids[2]);
    // The nonce is kept, until there is another one.
    world.pass(Duration::from_secs(3590));
    assert_eq!(world.token(), bound(3));
    assert_eq!(claims(&world, "nonce")[3..], [Some("first".into())]);
    // Without a nonce it is an error as any other.
    world.issuer.fault("/token", 400, "{\"error\":\"use_dpop_nonce\"}");
    world.pass(Duration::from_secs(3590));
    assert_eq!((world.token(), world.pages.len()), (bound(4), 2));
}

#[test]
fn second_demand_for_a_nonce_is_an_error() {
    let mut world = world(Dpop::IfOffered);
    log_in(&mut world, DPOP);
    // It names one, and wants another.
    world.issuer.nonce = Some("other");
    world.issuer.wants = Some("wanted");
    let now = world.now;
    world.flows[0].login(now);
    world.run();
    assert!(matches!(world.ends.last(), Some(Err(AuthError::Token(_)))), "{:?}", world.ends);
    assert_eq!(world.issuer.proofs.len(), 3);
    assert!(world.is_at_rest());
}

// covers: DPOP-C-006
#[test]
fn demand_of_the_server_for_a_nonce_is_no_challenge() {
    let mut world = world(Dpop::IfOffered);
    log_in(&mut world, DPOP);
    let demand = "DPoP error=\"use_dpop_nonce\"";
    let mut tried = Tried::default();
    let url = crate::fetch::HttpTarget::parse(SERVER).unwrap();
    world.flows[0].note_nonce(&url.origin, Some("n"));
    assert_eq!(world.refuse(0, 401, demand, &mut tried), Reaction::Again);
    let proof = world.prove(0).unwrap();
    assert_eq!(claim(proof.fields.get("DPoP").unwrap(), "nonce").as_deref(), Some("n"));
    assert_eq!(world.refuse(0, 401, demand, &mut tried), Reaction::Final(AuthError::ProofRefused));
    // The token is still as good as before.
    assert_eq!(world.refuse(0, 401, DPOP, &mut tried), Reaction::Wait);
    world.run();
    assert_eq!((world.token(), world.pages.len()), (bound(2), 1));
}

#[test]
fn refused_proof_leads_neither_to_a_refresh_nor_to_a_page() {
    let mut world = world(Dpop::IfOffered);
    log_in(&mut world, DPOP);
    let refused = "DPoP error=\"invalid_dpop_proof\"";
    assert_eq!(world.refuse(0, 401, refused, &mut Tried::default()), Reaction::Final(AuthError::ProofRefused));
    assert_eq!((world.token(), world.issuer.proofs.len()), (bound(1), 1));
}

#[test]
fn signer_that_fails_or_stalls_ends_login_and_requests() {
    let fails = Some(Err(StoreFault("no key".into())));
    for (signature, why) in [(fails.clone(), "no key"), (None, "it did not answer in time")] {
        let mut world = world(Dpop::IfOffered);
        world.signature = signature;
        log_in(&mut world, DPOP);
        world.pass(Duration::from_secs(30));
        assert_eq!(world.ends, [Err(AuthError::Signature(why.into()))]);
        assert!(world.is_at_rest());
    }
    let mut world = world(Dpop::IfOffered);
    log_in(&mut world, DPOP);
    world.signature = fails;
    assert_eq!(world.prove(0), Err(AuthError::Signature("no key".into())));
    world.signature = None;
    let url = crate::fetch::HttpTarget::parse(SERVER).unwrap();
    let step = world.flows[0].prove(world.now, "GET", &url).unwrap();
    world.pass(Duration::from_secs(29));
    assert_eq!(world.flows[0].poll_proof(), None);
    world.pass(Duration::from_secs(1));
    let late = AuthError::Signature("it took too long".into());
    assert_eq!(world.flows[0].poll_proof(), Some((step, Err(late))));
    assert!(world.is_at_rest());
    assert!(!world.flows[0].handle(world.now, Input::Signed(step, Ok(Vec::new()))));
}

#[test]
fn withdrawn_proof_is_not_waited_for() {
    let mut world = world(Dpop::IfOffered);
    log_in(&mut world, DPOP);
    world.signature = None;
    let url = crate::fetch::HttpTarget::parse(SERVER).unwrap();
    let steps: Vec<StepId> = (0..3).map(|_| world.flows[0].prove(world.now, "POST", &url).unwrap()).collect();
    assert!(world.flows[0].handle(world.now, Input::Signed(steps[0], Ok(Vec::new()))));
    for step in &steps[..2] {
        world.flows[0].withdraw_proof(*step);
    }
    assert_eq!(world.flows[0].poll_proof(), None);
    assert!(!world.is_at_rest());
    let now = world.now;
    world.flows[0].close(now);
    assert!(world.is_at_rest());
}

#[test]
fn key_of_another_kind_is_refused() {
    let mut world = world(Dpop::IfOffered);
    world.signature = None;
    log_in(&mut world, DPOP);
    assert_eq!((world.flows[0].state(), &*world.keys), (FlowState::Signing, &[Alg::Es256][..]));
    let pair: KeyPair = key(1, Alg::EdDsa);
    let step = world.asked.unwrap();
    let other = StepId(step.0 + 1);
    assert!(!world.flows[0].handle(world.now, Input::KeyMade(other, Ok(pair.clone().into()))));
    assert!(world.flows[0].handle(world.now, Input::KeyMade(step, Ok(pair.into()))));
    world.run();
    assert_eq!(world.ends, [Err(AuthError::Signature("the key is of another kind".into()))]);
}

// covers: DPOP-C-010
#[test]
fn private_key_is_shown_nowhere() {
    let mut world = world(Dpop::IfOffered);
    log_in(&mut world, DPOP);
    world.signature = None;
    let url = crate::fetch::HttpTarget::parse(SERVER).unwrap();
    world.flows[0].prove(world.now, "POST", &url).unwrap();
    for text in [format!("{:?}", world.flows[0]), format!("{:?}", world.signed), format!("{:?}", tokens(&world))] {
        assert!(!text.contains("key-1") && !text.contains("access-1"), "{text}");
    }
}
