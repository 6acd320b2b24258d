//! The adapter for real: child processes, pipes, sockets, and misbehaving peers. Nothing sleeps for a guessed time: each test waits for
//! what it expects, and fails if that takes longer than its bound.

#[cfg(feature = "http")]
mod asked;
mod calc;
mod common;
mod endings;
#[cfg(feature = "http")]
mod headers;
mod hook;
#[cfg(feature = "http")]
mod http;
mod observed;
mod processes;
mod restarts;
mod serve;
#[cfg(feature = "http")]
mod stalls;
mod stderr;
#[cfg(unix)]
mod unix;
#[cfg(all(unix, feature = "http"))]
mod web;
