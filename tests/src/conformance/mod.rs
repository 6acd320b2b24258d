//! The official conformance suite against our client and our server, in both adapters.
//!
//! `tests/conformance` pins the suite and lists what must come of it. The client programs are [`client`] on one adapter each, and do what
//! [`plan`] says; the server programs are [`server`]. [`suite`] runs the suite, and [`checks`] judges what it writes down: of clients in
//! [`clients`], of servers in [`servers`].

pub mod blocking;
pub mod checks;
pub mod client;
pub mod clients;
pub mod failures;
pub mod plan;
pub mod refusing;
pub mod server;
pub mod servers;
pub mod setup;
pub mod smol;
pub mod started;
pub mod suite;
pub mod table;
#[cfg(test)]
mod tests;
