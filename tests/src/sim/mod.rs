//! A deterministic simulation: real clients and a real server over links with virtual time and
//! faults.
//!
//! Nothing here sleeps or reads a clock. A run is a function of its
//! [`Scenario`](scenario::Scenario). A failing scenario is written to a file, and
//! `cargo run -p mcp-tests -- replay FILE` repeats it and prints every step. A step
//! counts only if it delivered bytes, fired a timer or injected a fault.

pub mod app;
pub mod beside;
pub mod both;
pub mod campaign;
pub mod client;
pub mod digest;
pub mod duplex;
pub mod fault;
pub mod fleet;
pub mod link;
pub mod login;
pub mod net;
pub mod nodes;
pub mod report;
pub mod rng;
pub mod scenario;
pub mod secured;
pub mod web;
pub mod world;

pub use report::Report;

use mcp_proto::Instant;
use mcp_proto::exchange::{Action, Closed, ConnectionId, IoEvent};
use mcp_proto::wired::{Kind, WiredServer};

/// The number of the first connection that a server refuses.
const FIRST_REFUSED: u64 = 1 << 40;

/// Returns whether a server refused the connection of this number.
pub(crate) const fn is_refused(connection: u64) -> bool {
    connection >= FIRST_REFUSED
}

/// Returns whether an action is one of a connection that a server refuses.
pub(crate) const fn is_of_refused<E>(action: &Action<E>) -> bool {
    match action {
        Action::Open(id, _)
        | Action::Secure(id, _)
        | Action::Write(id, _)
        | Action::Read(id, _)
        | Action::Close(id, _)
        | Action::Notice(id, _) => is_refused(id.0),
        Action::Event(_) => false,
    }
}

/// Accepts a connection. `None` if the server refuses it: the caller reads no response.
pub(crate) fn accept(server: &mut WiredServer, now: Instant, kind: Kind) -> Option<ConnectionId> {
    let is_over = server.is_terminated();
    let id = server.accept(now, kind, Default::default());
    if !is_refused(id.0) {
        return Some(id);
    }
    server.handle_io(now, id, IoEvent::Closed(Closed::Aborted));
    while is_over && let Some(action) = server.poll_output() {
        assert!(is_of_refused(&action), "{action:?} after the end");
    }
    None
}
