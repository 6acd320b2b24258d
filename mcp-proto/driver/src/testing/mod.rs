//! For the tests of a program: a client and a server in one thread, connected in memory, in virtual
//! time. Feature `testing`.
//!
//! A [`Link`] drives both engines. It runs the handlers of a [`Router`](mcp_proto::Router) and the
//! callbacks of the client, carries the bytes between the two sides, and fires every timer at its
//! exact instant. The test decides when time passes, so that a minute costs nothing and a run is
//! always the same:
//!
//! ```
//! use mcp_driver::testing::Link;
//! use mcp_proto::{CallError, ClientConfig, Router, tool, tools};
//! use std::time::Duration;
//!
//! let router = Router::new("greeter", "1.0").tool(tool("hello"), |_cx, ()| Ok("hello"));
//! let mut link = Link::new(router, ClientConfig::given());
//! link.delay_handlers(Duration::from_secs(60));
//! let call = link.call(tools::call("hello").timeout(Duration::from_secs(5))).unwrap();
//! link.advance(Duration::from_nanos(4_999_999_999));
//! assert!(link.outcome(&call).is_none());
//! link.advance(Duration::from_nanos(1));
//! assert!(matches!(link.outcome(&call), Some(Err(CallError::Timeout { .. }))), "{}", link.log());
//! ```
//!
//! The target of the configuration selects the transport. With
//! [`ClientConfig::given`](mcp_proto::ClientConfig::given) it is a pair of streams, with
//! [`program`](mcp_proto::ClientConfig::program) a program that the client starts, and with
//! [`unix`](mcp_proto::ClientConfig::unix) a Unix socket: each message is a line. With
//! [`url`](mcp_proto::ClientConfig::url) it is Streamable HTTP, HTTP+SSE or WebSocket, as the URL
//! says and as the router [serves](mcp_proto::ServerConfig::sse) it. Nothing leaves the process: no
//! program is started, no name is resolved, and the TLS of `https` and `wss` succeeds at once
//! without any cryptography. A server over HTTP answers only to loopback hosts, as in
//! `http://localhost/mcp`, unless [`ServerConfig::hosts`](mcp_proto::ServerConfig::hosts) has
//! others.
//!
//! A blocking handler runs to its end at one instant: what it sleeps takes real time and no time of
//! the link, and one that loops until it is cancelled never returns. Test its timeout with
//! [`Link::delay_handlers`], or write it as an async handler. An async handler that waits for a
//! time uses [`Time`]. A future that waits for anything else, such as a thread, a socket or real
//! time, is polled when it is woken, but the link does not wait for it: a call that times out
//! meanwhile names its handler in the error.

mod callbacks;
mod connection;
mod link;
mod log;
mod network;
mod options;
mod pipe;
mod time;

#[cfg(all(test, feature = "http", not(shuttle)))]
mod tests;

pub use link::Link;
pub use log::Log;
pub use options::{Flow, LinkOptions};
pub use time::{After, Time};

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks. Ignores poisoning: every change is complete before anything that may panic.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
