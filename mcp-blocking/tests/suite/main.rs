//! The adapter against real programs, pipes and sockets. One program, so that the peers it makes of itself are built with it.
#![cfg(target_os = "linux")]

mod common;
mod hook;
#[cfg(feature = "http")]
mod http;
mod observed;
mod own;
mod programs;
mod restarts;
mod served;
#[cfg(feature = "http")]
mod stalls;
mod stderr;
mod unix;
#[cfg(feature = "http")]
mod web;
