//! Both wired engines joined in memory, and the client against a peer that is played by hand.

mod hook;
mod ladder;
mod net;
mod pair;
#[cfg(feature = "http")]
mod pool;
#[cfg(feature = "http")]
mod serving;
mod stats;
