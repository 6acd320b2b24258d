//! Refreshes: when they begin, what each outcome does, and what a program finds after a restart.

use super::rig::{User, World, config};
use crate::auth::flow::{FlowState, Reaction, Tried};
use crate::auth::step::{Generation, Purpose};
use crate::auth::{ClientSource, Scopes};
use crate::error::AuthError;
use crate::exchange::{Closed, Sent};
use crate::fetch::FetchError;
use alloc::string::{String, ToString};
use core::time::Duration;

const CHALLENGE: &str = "Bearer";
const MINUTE: Duration = Duration::from_secs(60);

fn sent(world: &World, at: usize, name: &str) -> Option<String> {
    world.issuer.requests.get(at)?.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone())
}

// covers: AUTHF-C-005, B-258
#[test]
fn token_is_renewed_when_a_request_needs_it() {
    let mut world = World::new();
    world.log_in();
    world.pass(MINUTE * 59 - Duration::from_secs(1));
    assert_eq!(world.token().as_deref(), Some("access-1"));
    world.run();
    assert_eq!(world.issuer.requests.len(), 1);
    world.pass(Duration::from_secs(1));
    // It waits, although the token is still valid: otherwise the program could end in between.
    assert_eq!(world.token().as_deref(), Some("access-2"));
    assert_eq!(world.issuer.requests.len(), 2);
    assert_eq!(sent(&world, 1, "grant_type").as_deref(), Some("refresh_token"));
    assert_eq!(sent(&world, 1, "resource").as_deref(), Some(super::rig::SERVER));
    assert_eq!(sent(&world, 1, "scope"), None);
    assert_eq!(world.pages.len(), 1);
    assert!(world.is_at_rest());
}

#[test]
fn idle_client_makes_no_request() {
    let mut world = World::new();
    world.log_in();
    let before = world.issuer.urls.len();
    world.pass(MINUTE * 60 * 24);
    assert_eq!(world.issuer.urls.len(), before);
    assert_eq!((world.token().as_deref(), world.pages.len()), (Some("access-2"), 1));
}

// covers: B-259
#[test]
fn short_lifetimes_cause_no_loop() {
    for lifetime in [0, 1, 5, 30] {
        let mut world = World::new();
        world.issuer.lifetime = Some(lifetime);
        world.log_in();
        for _ in 0..100 {
            world.token();
            world.run();
        }
        // At most one for each request, and none while the token is fresh.
        let refreshes = world.issuer.requests.len() - 1;
        assert!(refreshes <= if lifetime == 0 { 300 } else { 0 }, "{lifetime}: {refreshes}");
        assert_eq!(world.pages.len(), 1);
    }
}

#[test]
fn token_without_a_lifetime_is_used_until_it_is_refused() {
    let mut world = World::new();
    world.issuer.lifetime = None;
    world.log_in();
    world.pass(MINUTE * 60 * 24 * 365);
    assert_eq!(world.token().as_deref(), Some("access-1"));
    assert_eq!(world.refuse(0, 401, CHALLENGE, &mut Tried::default()), Reaction::Wait);
    world.run();
    assert_eq!((world.token().as_deref(), world.pages.len()), (Some("access-2"), 1));
}

// covers: AUTHS-C-016
#[test]
fn token_that_expires_without_a_refresh_token_leads_to_a_page() {
    let mut world = World::new();
    world.issuer.refreshes = false;
    world.log_in();
    world.pass(MINUTE * 61);
    // The server decides: a clock may be wrong.
    assert_eq!(world.token().as_deref(), Some("access-1"));
    assert_eq!(world.refuse(0, 401, CHALLENGE, &mut Tried::default()), Reaction::Wait);
    world.run();
    assert_eq!((world.token().as_deref(), world.pages.len()), (Some("access-2"), 2));
}

#[test]
fn refused_token_is_renewed_once_then_asked_for() {
    let mut world = World::new();
    world.log_in();
    let mut tried = Tried::default();
    assert_eq!(world.refuse(0, 401, CHALLENGE, &mut tried), Reaction::Wait);
    world.run();
    assert_eq!((world.token().as_deref(), world.pages.len()), (Some("access-2"), 1));
    assert_eq!(world.refuse(0, 401, CHALLENGE, &mut tried), Reaction::Wait);
    world.run();
    assert_eq!((world.token().as_deref(), world.pages.len()), (Some("access-3"), 2));
    assert_eq!(world.refuse(0, 401, CHALLENGE, &mut tried), Reaction::Final(AuthError::Rejected));
}

#[test]
fn request_with_an_older_token_is_repeated_with_the_present_one() {
    let mut world = World::new();
    world.log_in();
    world.refuse(0, 401, CHALLENGE, &mut Tried::default());
    world.run();
    let mut tried = Tried::default();
    assert_eq!(world.refuse_sent(0, 401, CHALLENGE, &mut tried, Generation(1)), Reaction::Again);
    assert_eq!(world.issuer.requests.len(), 2);
    // Not without end.
    for _ in 0..2 {
        world.refuse_sent(0, 401, CHALLENGE, &mut tried, Generation(1));
    }
    assert_eq!(world.refuse_sent(0, 401, CHALLENGE, &mut tried, Generation(1)), Reaction::Wait);
}

// covers: B-245
#[test]
fn answer_without_a_refresh_token_keeps_the_old_one() {
    let mut world = World::new();
    world.issuer.rotates = false;
    world.log_in();
    for number in 2..5 {
        world.pass(MINUTE * 61);
        assert_eq!(world.token(), Some(alloc::format!("access-{number}")));
        assert_eq!(sent(&world, number - 1, "refresh_token").as_deref(), Some("refresh-1"));
    }
}

// covers: B-243
#[test]
fn dead_refresh_token_is_removed_and_the_user_asked() {
    let mut world = World::new();
    world.log_in();
    world.issuer.refresh.clear();
    world.pass(MINUTE * 61);
    assert_eq!(world.token().as_deref(), Some("access-2"));
    assert_eq!((world.pages.len(), world.issuer.registrations.len()), (2, 1));
    assert!(world.is_at_rest());
}

#[test]
fn dead_refresh_token_without_a_user_is_an_error() {
    let mut world = World::new();
    world.log_in();
    world.issuer.refresh.clear();
    let mut quiet = config();
    quiet.interactive = false;
    world.restart(quiet);
    world.pass(MINUTE * 61);
    assert_eq!(world.token(), None);
    assert_eq!(world.ends.last(), Some(&Err(AuthError::LoginRequired)));
    let tokens = &world.store.record.as_ref().unwrap().entries[0].tokens;
    assert_eq!((tokens, world.pages.len()), (&None, 1));
}

// covers: B-244
#[test]
fn failure_of_the_server_destroys_nothing_and_is_tried_again() {
    let mut world = World::new();
    world.log_in();
    world.issuer.fault("/token", 503, "");
    let closed = FetchError::Closed { sent: Sent::No, why: Closed::Refused };
    world.issuer.faults.get_mut("/token").unwrap().push_back(Err(closed));
    world.issuer.fault("/token", 429, "{}");
    world.pass(MINUTE * 61);
    assert_eq!((world.token(), world.flows[0].state()), (None, FlowState::Waiting));
    world.pass(Duration::from_millis(999));
    assert_eq!(world.issuer.count("/token"), 2);
    world.pass(Duration::from_secs(10));
    assert_eq!((world.token().as_deref(), world.issuer.count("/token")), (Some("access-2"), 5));
    assert_eq!(world.pages.len(), 1);
    assert!(world.is_at_rest());
}

// covers: B-244
#[test]
fn server_that_stays_away_is_unavailable_and_the_login_is_kept() {
    let mut world = World::new();
    world.log_in();
    for _ in 0..100 {
        world.issuer.fault("/token", 503, "");
    }
    world.pass(MINUTE * 61);
    assert_eq!(world.token(), None);
    world.pass(MINUTE);
    assert!(matches!(world.ends.last(), Some(Err(AuthError::Unavailable(_)))), "{:?}", world.ends);
    assert!(world.issuer.count("/token") < 10, "{}", world.issuer.count("/token"));
    let tokens = world.store.record.as_ref().unwrap().entries[0].tokens.as_ref().unwrap();
    assert_eq!(tokens.refresh_token.as_ref().map(|token| token.expose()), Some("refresh-1"));
    assert!(world.is_at_rest() && world.pages.len() == 1);
    world.issuer.faults.clear();
    assert_eq!(world.refuse(0, 401, CHALLENGE, &mut Tried::default()), Reaction::Wait);
    world.run();
    assert_eq!(world.token().as_deref(), Some("access-2"));
}

#[test]
fn early_refresh_that_fails_leaves_the_valid_token_in_use() {
    let mut world = World::new();
    world.log_in();
    world.issuer.fault("/token", 503, "");
    world.pass(MINUTE * 59 + Duration::from_secs(30));
    assert_eq!(world.token().as_deref(), Some("access-1"));
    world.run();
    assert_eq!((world.token().as_deref(), world.issuer.count("/token")), (Some("access-1"), 2));
    assert_eq!(world.ends.last(), Some(&Ok(Generation(1))));
}

#[test]
fn other_refusals_of_a_refresh_ask_the_user_and_remove_nothing() {
    let mut world = World::new();
    world.log_in();
    world.issuer.fault("/token", 400, "{\"error\":\"invalid_request\"}");
    world.user = User::Declines;
    world.pass(MINUTE * 61);
    assert_eq!(world.token(), None);
    assert_eq!(world.ends.last(), Some(&Err(AuthError::Declined)));
    let tokens = world.store.record.as_ref().unwrap().entries[0].tokens.as_ref().unwrap();
    assert_eq!(tokens.refresh_token.as_ref().map(|token| token.expose()), Some("refresh-1"));
}

#[test]
fn firewall_is_no_end_of_a_refresh_token() {
    let mut world = World::new();
    world.log_in();
    world.issuer.fault("/token", 403, "<html>");
    world.issuer.fault("/token", 403, "<html>");
    world.pass(MINUTE * 61);
    world.token();
    world.pass(Duration::from_secs(20));
    assert_eq!((world.token().as_deref(), world.pages.len()), (Some("access-2"), 1));
}

#[test]
fn unknown_client_registers_again() {
    let mut world = World::new();
    world.log_in();
    world.issuer.fault("/token", 401, "{\"error\":\"invalid_client\"}");
    world.pass(MINUTE * 61);
    assert_eq!(world.token().as_deref(), Some("access-2"));
    assert_eq!((world.issuer.registrations.len(), world.pages.len()), (2, 2));
}

#[test]
fn stored_login_is_used_after_a_restart() {
    let mut world = World::new();
    world.issuer.scopes_supported = Some("a b");
    world.log_in();
    world.restart(config());
    assert_eq!(world.token().as_deref(), Some("access-1"));
    world.pass(MINUTE * 61);
    world.restart(config());
    assert_eq!(world.token().as_deref(), Some("access-2"));
    assert_eq!(world.pages.len(), 1);
    let entry = &world.store.record.as_ref().unwrap().entries[0];
    assert_eq!((entry.client.source, &entry.requested), (ClientSource::Dynamic, &Scopes::parse("a b")));
}

#[test]
fn clock_that_was_set_back_prolongs_no_token() {
    let mut world = World::new();
    world.log_in();
    let entry = &mut world.store.record.as_mut().unwrap().entries[0];
    entry.tokens.as_mut().unwrap().expires = Some(super::rig::EPOCH + 1_000_000);
    world.restart(config());
    assert_eq!(world.token().as_deref(), Some("access-1"));
    world.pass(MINUTE * 59);
    world.token();
    world.run();
    assert_eq!(world.token().as_deref(), Some("access-2"));
}

#[test]
fn lease_that_is_not_free_ends_the_refresh_after_its_time() {
    let mut world = World::with(config(), 2);
    world.log_in();
    assert_eq!(world.token_of(1).as_deref(), Some("access-1"));
    // The second flow holds the lease, and does not go on.
    world.pass(MINUTE * 61);
    world.stalls = true;
    world.flows[1].attach(world.now);
    world.run();
    world.flows[0].attach(world.now);
    world.run();
    assert_eq!(world.flows[0].state(), FlowState::Leasing, "{:?}", Purpose::Change);
    world.pass(Duration::from_secs(34));
    assert_eq!(world.flows[0].state(), FlowState::Leasing);
    world.pass(Duration::from_secs(2));
    assert!(world.ends.contains(&Err(AuthError::Busy)), "{:?}", world.ends);
    assert_eq!(AuthError::Busy.to_string(), "another process changes the same login");
}
