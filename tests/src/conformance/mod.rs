//! The official conformance suite against our client and our server, in both adapters.
//!
//! `tests/conformance` pins the suite and lists the required results. The client programs are
//! [`client`] on one adapter each, and carry out a [`plan`], with a [`login`] where one is needed.
//! The server programs are [`server`]. [`suite`] runs the suite, and [`checks`] compares its
//! reports: for clients in [`clients`], for servers in [`servers`].

pub mod checks;
pub mod client;
pub mod clients;
pub mod failures;
pub mod login;
pub mod plan;
pub mod refusing;
pub mod server;
pub mod servers;
pub mod setup;
pub mod started;
pub mod suite;
pub mod table;
