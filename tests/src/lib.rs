#![forbid(unsafe_code)]
//! Tests of the three crates from outside: a driver on a bare loop, the simulator, checks of the
//! sources, the coverage of requirements, planted faults, peers of other SDKs, and a scripted web
//! server.

pub mod api;
pub mod conformance;
pub mod cost;
pub mod fuzz;
pub mod hostile;
pub mod interop;
pub mod items;
pub mod load;
pub mod modules;
pub mod orphans;
pub mod peer;
pub mod planted;
pub mod poll_loop;
pub mod prose;
pub mod shim;
pub mod sim;
pub mod soak;
pub mod sources;
pub mod stub;
pub mod survey;
pub mod trace;
#[cfg(feature = "validate")]
pub mod validate;

/// The examples of the README, compiled as tests.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
pub struct Readme;
