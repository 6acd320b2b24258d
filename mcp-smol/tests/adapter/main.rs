//! The adapter with real child processes, pipes, sockets, and misbehaving peers. No test sleeps for
//! a fixed time: each waits for its condition, and fails at its time limit.

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
