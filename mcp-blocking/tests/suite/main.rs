//! The adapter with real programs, pipes and sockets. It is one program, so that its peers, which
//! are the same program, are built with it.
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
