#![forbid(unsafe_code)]
//! What tests the three crates from outside: a driver on a bare loop, the simulator, what reads the sources, what counts and breaks the
//! tests, other peoples' servers, and a web server that says anything.

pub mod conformance;
pub mod fuzz;
pub mod hostile;
pub mod interop;
pub mod load;
pub mod orphans;
pub mod peer;
pub mod planted;
pub mod poll_loop;
pub mod sim;
pub mod soak;
pub mod sources;
pub mod stub;
pub mod trace;
#[cfg(feature = "validate")]
pub mod validate;

/// The examples of the README, compiled as tests.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
pub struct Readme;
