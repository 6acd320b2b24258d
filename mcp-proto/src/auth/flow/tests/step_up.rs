//! Demands for more scopes that a login cannot satisfy.

use super::rig::World;
use crate::auth::flow::{MAX_REFUSED, Reaction, Tried};
use crate::error::AuthError;
use alloc::format;
use core::time::Duration;

const WRITE: &str = "Bearer error=\"insufficient_scope\", scope=\"write\"";
const ADMIN: &str = "Bearer error=\"insufficient_scope\", scope=\"admin\"";

/// A login whose issuer grants this scope alone, whatever is requested.
fn with_read_only() -> World {
    let mut world = World::new();
    for number in 0..6 {
        let token = format!("{{\"access_token\":\"a{number}\",\"token_type\":\"Bearer\",\"scope\":\"read\"}}");
        world.issuer.fault("/token", 200, &token);
    }
    world.issuer.scopes_supported = Some("read");
    world.log_in();
    world
}

fn refused(scopes: &str) -> Reaction {
    Reaction::Final(AuthError::Scope { scopes: scopes.into() })
}

// covers: AUTHS-C-012
#[test]
fn refused_demand_is_remembered_for_its_operation_and_scopes() {
    let mut world = with_read_only();
    let mut tried = Tried::default();
    assert_eq!(world.refuse_operation("POST tools/call a", WRITE, &mut tried), Reaction::Wait);
    assert_eq!(world.refuse_operation("POST tools/call a", WRITE, &mut tried), refused("write"));
    assert_eq!(world.pages.len(), 2);
    let mut refuse = |operation: &str, field: &str, pages: usize| {
        let reaction = world.refuse_operation(operation, field, &mut Tried::default());
        assert_eq!(world.pages.len(), pages, "{operation}");
        reaction
    };
    // The same at once, and neither another operation nor other scopes.
    assert_eq!(refuse("POST tools/call a", WRITE, 2), refused("write"));
    assert_eq!(refuse("POST tools/call b", WRITE, 3), Reaction::Wait);
    assert_eq!(refuse("POST resources/read a", WRITE, 4), Reaction::Wait);
    assert_eq!(refuse("POST tools/call a", ADMIN, 5), Reaction::Wait);
    world.pass(Duration::from_secs(299));
    assert_eq!(world.refuse_operation("POST tools/call a", WRITE, &mut Tried::default()), refused("write"));
    world.pass(Duration::from_secs(1));
    assert_eq!(world.refuse_operation("POST tools/call a", WRITE, &mut Tried::default()), Reaction::Wait);
    assert_eq!(world.pages.len(), 6);
}

#[test]
fn number_of_remembered_demands_is_bounded() {
    let mut world = with_read_only();
    for number in 0..=MAX_REFUSED {
        let mut tried = Tried { stepped: true, ..Tried::default() };
        assert_eq!(world.refuse_operation(&format!("{number}"), WRITE, &mut tried), refused("write"));
    }
    for (number, expected) in [(1, refused("write")), (MAX_REFUSED, refused("write")), (0, Reaction::Wait)] {
        let reaction = world.refuse_operation(&format!("{number}"), WRITE, &mut Tried::default());
        assert_eq!(reaction, expected, "{number}");
    }
}
