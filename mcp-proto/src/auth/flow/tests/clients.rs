//! Several clients of one issuer in one record: each configuration uses its own.

use super::rig::{EPOCH, ISSUER, World, config, query, with};
use crate::auth::flow::Tried;
use crate::auth::{AuthConfig, ClientAuth, GivenClient, Registration};
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::time::Duration;

/// The configuration of a client that is given.
fn of(client_id: &str) -> AuthConfig {
    with(config(), |config| {
        let (issuer, auth) = (ISSUER.into(), ClientAuth::None);
        config.registrations =
            alloc::vec![Registration::Given(GivenClient { issuer, client_id: client_id.into(), auth })];
    })
}

/// Returns the clients of the record and their access tokens, the latest first.
fn stored(world: &World) -> Vec<(String, String)> {
    let entries = world.store.record.iter().flat_map(|record| &record.entries);
    let pair = |entry: &crate::auth::Entry| {
        let token = entry.tokens.as_ref().map(|tokens| tokens.access_token.expose().to_string());
        (entry.client.client_id.clone(), token.unwrap_or_default())
    };
    entries.map(pair).collect()
}

fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(client, token)| (client.to_string(), token.to_string())).collect()
}

// covers: B-238
#[test]
fn given_clients_of_one_issuer_have_logins_of_their_own() {
    let mut world = World::with(of("one"), 1);
    world.log_in();
    world.restart(of("two"));
    // It has no token, although the record has one.
    world.log_in();
    assert_eq!(query(&world.pages[1].url, "client_id").as_deref(), Some("two"));
    assert_eq!(stored(&world), pairs(&[("two", "access-2"), ("one", "access-1")]));
    world.restart(of("one"));
    assert_eq!(world.token().as_deref(), Some("access-1"));
    world.pass(Duration::from_secs(3600));
    assert_eq!(world.token().as_deref(), Some("access-3"));
    let sent = |name: &str| {
        let form = world.issuer.requests.last().unwrap();
        form.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone())
    };
    assert_eq!((sent("refresh_token").as_deref(), sent("client_id").as_deref()), (Some("refresh-1"), Some("one")));
    // The end of one login is not that of the other, which has changed meanwhile.
    let other = &mut world.store.record.as_mut().unwrap().entries[1];
    other.tokens.as_mut().unwrap().access_token = "changed".into();
    world.store.version.0 += 1;
    let now = world.now;
    world.flows[0].logout(now);
    world.run();
    assert_eq!(stored(&world), pairs(&[("two", "changed")]));
    assert!(world.issuer.revocations.iter().all(|form| !form.contains("access-2") && !form.contains("refresh-2")));
    world.restart(of("two"));
    world.pass(Duration::from_secs(1));
    assert_eq!((world.token().as_deref(), world.pages.len()), (Some("access-4"), 2));
}

#[test]
fn refused_client_of_one_configuration_leaves_the_other() {
    let mut world = World::new();
    world.log_in();
    world.restart(of("given"));
    world.log_in();
    assert_eq!(stored(&world), pairs(&[("given", "access-2"), ("client-1", "access-1")]));
    world.pass(Duration::from_secs(3600));
    world.issuer.fault("/token", 400, "{\"error\":\"invalid_grant\"}");
    world.user = super::rig::User::Declines;
    assert_eq!(world.token(), None);
    assert_eq!(stored(&world), pairs(&[("given", ""), ("client-1", "access-1")]));
}

#[test]
fn client_without_an_identifier_keeps_the_login_of_a_given_one() {
    let mut world = World::with(of("given"), 1);
    world.log_in();
    world.restart(config());
    assert_eq!(world.token().as_deref(), Some("access-1"));
    // A registration of its own comes beside it.
    world.issuer.scopes_supported = Some("read");
    let now = world.now;
    world.flows[0].login(now);
    world.run();
    assert_eq!(stored(&world), pairs(&[("client-1", "access-2"), ("given", "access-1")]));
    // The next one replaces the registration.
    world.refuse(0, 403, "Bearer error=\"insufficient_scope\", scope=\"write\"", &mut Tried::default());
    world.run();
    assert_eq!(stored(&world), pairs(&[("client-2", "access-3"), ("given", "access-1")]));
}

#[test]
fn tokens_of_another_client_are_other_tokens() {
    let mut world = World::new();
    world.log_in();
    let record = world.store.record.as_mut().unwrap();
    let mut entry = record.entries[0].clone();
    entry.client.client_id = "other".into();
    let tokens = entry.tokens.as_mut().unwrap();
    (tokens.access_token, tokens.expires) = ("of-other".into(), Some(EPOCH + 10_000));
    // The same second, and so the same number.
    record.entries.insert(0, entry);
    world.pass(Duration::from_secs(3600));
    assert_eq!(world.token().as_deref(), Some("of-other"));
}
