//! Both wired engines joined in memory, and the client against a scripted peer.

mod fetch;
mod hook;
mod ladder;
mod net;
mod observed;
mod pair;
mod pool;
mod proxied;
mod securing;
mod serving;
mod stats;
mod web_socket;
