//! The official conformance suite against our client, in both adapters.
//!
//! `tests/conformance` pins the suite and lists what must come of it. The client programs are [`client`] on one adapter each, and do what
//! [`plan`] says; [`suite`] runs the suite, and [`checks`] judges what it writes down.

pub mod blocking;
pub mod checks;
pub mod client;
pub mod plan;
pub mod setup;
pub mod smol;
pub mod suite;
#[cfg(test)]
mod tests;
