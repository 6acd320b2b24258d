//! Several flows with one record: processes of one user.

use super::device::{OFFERED, device};
use super::rig::{User, World, config};
use crate::auth::flow::{Reaction, Tried};
use crate::auth::step::{AuthReport, Input, Output, StoreFault};
use crate::error::AuthError;
use alloc::string::String;
use core::time::Duration;

const CHALLENGE: &str = "Bearer";

// covers: B-242
#[test]
fn one_of_many_processes_opens_a_page() {
    let mut world = World::with(config(), 8);
    world.user = User::Absent;
    for at in 0..8 {
        assert_eq!(world.token_of(at), None);
        assert_eq!(world.refuse(at, 401, CHALLENGE, &mut Tried::default()), Reaction::Wait);
    }
    world.run();
    assert_eq!(world.pages.len(), 1);
    assert_eq!(world.reports.iter().filter(|report| **report == AuthReport::OtherLogin).count(), 7);
    let (at, step) = world.open[0];
    let page = world.pages[0].clone();
    let url = world.issuer.page(&page);
    let now = world.now;
    world.flows[at].handle(now, Input::Redirected(step, url.into()));
    world.run();
    for at in 0..8 {
        assert_eq!(world.token_of(at).as_deref(), Some("access-1"));
    }
    assert_eq!((world.pages.len(), world.issuer.requests.len()), (1, 1));
    assert!(world.is_at_rest());
}

#[test]
fn process_that_gives_up_its_page_leaves_it_to_another() {
    let mut world = World::with(config(), 2);
    world.user = User::Absent;
    for at in 0..2 {
        assert_eq!(world.token_of(at), None);
        world.refuse(at, 401, CHALLENGE, &mut Tried::default());
    }
    world.run();
    let now = world.now;
    world.user = User::Accepts;
    world.flows[0].close(now);
    world.run();
    assert_eq!((world.pages.len(), world.token_of(1).as_deref()), (2, Some("access-1")));
}

// covers: B-229
#[test]
fn rotated_token_is_refreshed_by_one_process_at_a_time() {
    let mut world = World::with(config(), 8);
    world.log_in();
    for at in 0..8 {
        assert_eq!(world.token_of(at).as_deref(), Some("access-1"));
    }
    for round in 2..30 {
        world.pass(Duration::from_secs(3660));
        for at in 0..8 {
            // All at once: nothing is handled before each one has begun.
            world.flows[at].attach(world.now);
        }
        world.run();
        for at in 0..8 {
            assert_eq!(world.token_of(at), Some(alloc::format!("access-{round}")));
        }
        assert_eq!(world.issuer.requests.len(), round);
    }
    assert_eq!(world.pages.len(), 1);
    assert!(world.is_at_rest());
}

// covers: B-243
#[test]
fn loser_of_a_race_keeps_the_tokens_of_the_winner() {
    let mut world = World::with(config(), 2);
    world.log_in();
    assert_eq!(world.token_of(1).as_deref(), Some("access-1"));
    world.pass(Duration::from_secs(3660));
    // The first one has renewed the tokens. The second one still has the old ones, and finds the
    // new ones under the lease.
    assert_eq!(world.token_of(0).as_deref(), Some("access-2"));
    assert_eq!(world.token_of(1).as_deref(), Some("access-2"));
    assert_eq!((world.issuer.requests.len(), world.pages.len()), (2, 1));
}

// covers: B-249
#[test]
fn conflict_loses_no_scopes_that_others_requested() {
    let mut world = World::with(config(), 2);
    world.log_in();
    assert_eq!(world.token_of(1).as_deref(), Some("access-1"));
    let more = r#"Bearer error="insufficient_scope", scope="files:write""#;
    assert_eq!(world.refuse(0, 403, more, &mut Tried::default()), Reaction::Wait);
    world.run();
    // The second process cannot read what the first one has stored.
    let now = world.now;
    world.flows[1].login(now);
    while let Some(output) = world.flows[1].poll_output() {
        match output {
            Output::Load(step, _) => {
                assert!(world.flows[1].handle(now, Input::Loaded(step, Err(StoreFault("busy".into())))));
            }
            other => world.handle(1, other),
        }
    }
    assert_eq!(world.pages.len(), 3);
    let entry = &world.store.record.as_ref().unwrap().entries[0];
    assert!(entry.requested.contains("files:write"), "{:?}", entry.requested);
    assert_eq!(entry.tokens.as_ref().unwrap().access_token.expose(), "access-3");
}

/// Runs a flow until it stores the record. Returns that output.
fn save_of(world: &mut World, at: usize) -> Output {
    loop {
        match world.flows[at].poll_output() {
            Some(save @ Output::Save(..)) => return save,
            Some(other) => world.handle(at, other),
            None => panic!("nothing is stored"),
        }
    }
}

/// A process refreshes its token, and others do something before it stores the new one. Returns the
/// world after it, with what the second process carries then.
fn meanwhile(interactive: bool, others: impl FnOnce(&mut World)) -> (World, Option<String>) {
    let mut config = device();
    config.interactive = interactive;
    let mut world = World::with(config, 2);
    world.issuer.more = OFFERED;
    let now = world.now;
    world.flows[0].login(now);
    world.pass(Duration::from_secs(5));
    assert_eq!(world.token_of(1).as_deref(), Some("access-1"));
    world.pass(Duration::from_secs(3660));
    world.flows[1].attach(world.now);
    let save = save_of(&mut world, 1);
    others(&mut world);
    world.handle(1, save);
    world.run();
    let token = world.token_of(1);
    (world, token)
}

// covers: B-249
#[test]
fn refresh_does_not_replace_a_login_with_more_scopes() {
    let more = r#"Bearer error="insufficient_scope", scope="files:write""#;
    let (world, token) = meanwhile(true, |world| {
        assert_eq!(world.refuse(0, 403, more, &mut Tried::default()), Reaction::Wait);
        world.pass(Duration::from_secs(5));
    });
    assert_eq!((token.as_deref(), world.codes.len()), (Some("access-3"), 2));
    let tokens = world.store.record.as_ref().unwrap().entries[0].tokens.as_ref().unwrap();
    assert_eq!(tokens.access_token.expose(), "access-3");
    assert!(tokens.granted.contains("files:write"), "{:?}", tokens.granted);
    assert!(world.is_at_rest());
}

#[test]
fn refresh_does_not_undo_a_logout() {
    let (world, token) = meanwhile(false, |world| {
        let now = world.now;
        world.flows[0].logout(now);
        world.run();
    });
    assert_eq!((token, &world.store.record), (None, &None));
    assert_eq!(world.ends.last(), Some(&Err(AuthError::LoginRequired)));
}

#[test]
fn refresh_is_stored_after_a_change_that_leaves_its_tokens() {
    let (world, token) = meanwhile(true, |world| {
        world.store.version.0 += 1;
    });
    assert_eq!(token.as_deref(), Some("access-2"));
    let tokens = world.store.record.as_ref().unwrap().entries[0].tokens.as_ref().unwrap();
    assert_eq!((tokens.access_token.expose(), world.codes.len()), ("access-2", 1));
}

#[test]
fn new_client_does_not_replace_tokens_of_another_process() {
    let mut other = World::new();
    other.log_in();
    let mut world = World::new();
    world.user = User::Declines;
    let now = world.now;
    world.flows[0].login(now);
    let save = save_of(&mut world, 0);
    (world.store.record, world.store.version) = (other.store.record, other.store.version);
    world.handle(0, save);
    world.run();
    let tokens = world.store.record.as_ref().unwrap().entries[0].tokens.as_ref();
    assert_eq!(tokens.map(|tokens| tokens.access_token.expose()), Some("access-1"));
    assert_eq!(world.ends, [Err(AuthError::Declined)]);
    assert_eq!(world.token().as_deref(), Some("access-1"));
}

#[test]
fn logout_ends_the_login_of_another_process() {
    let mut quiet = config();
    quiet.interactive = false;
    let mut world = World::with(quiet, 2);
    let now = world.now;
    world.flows[0].login(now);
    world.run();
    assert_eq!(world.token_of(1).as_deref(), Some("access-1"));
    world.flows[0].logout(now);
    world.run();
    world.pass(Duration::from_secs(3660));
    assert_eq!(world.token_of(1), None);
    assert!(world.ends.contains(&Err(AuthError::LoginRequired)), "{:?}", world.ends);
    assert_eq!(world.store.record, None);
}
