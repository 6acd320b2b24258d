#![forbid(unsafe_code)]
//! Model Context Protocol clients and servers on plain threads: for programs that block, and want nothing to do with `async`.
//!
//! The protocol itself is [`mcp_proto`]; this crate adds threads, pipes, processes and sockets. A client is a handle that any thread may
//! use; a call blocks the thread that makes it. Handlers of a server run concurrently, each on a thread.
//!
//! ```
//! use mcp_blocking::{Router, connect, tool, tools};
//!
//! #[derive(serde::Serialize, serde::Deserialize)]
//! struct Add {
//!     a: i64,
//!     b: i64,
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let server = Router::new("calc", "1.0").tool(tool("add").describe("adds"), |_cx, add: Add| {
//!     add.a.checked_add(add.b).ok_or("the sum is too large")
//! });
//!
//! // One argument decides what is connected to: a `Command`, a URL, a pair of streams, or, as here, a server in this process.
//! let client = connect(server)?;
//! let sum = client.call(tools::call("add").arguments(&Add { a: 1, b: 2 }))?;
//! assert_eq!(sum.first_text(), Some("3"));
//! for tool in client.pages(tools::list()) {
//!     println!("{}", tool?.name);
//! }
//! client.close();
//! # Ok(())
//! # }
//! ```
//!
//! The same server as a program of its own is [`serve_stdio`]`(server)`, over HTTP [`serve_http`]`(server, "127.0.0.1:8000")`, on
//! a Unix domain socket [`serve_unix`]`(server, "/run/user/1000/calc")`, and behind a listener of your own a [`Server`].
//!
//! # Threads
//!
//! A client has one thread for its timers; for each channel one that reads and one that writes, for a program one that awaits its end;
//! and one for each question of the server that is being answered. A server has one for its timers, one that accepts, two
//! for each connection, and as many for handlers as run at once, up to [`Serving::threads`]; as many again at most for those who ask to be
//! let in ([`Serving::on_admit`]), and a few to tell clients that there is no room. A client that does not read holds the threads of its own
//! connection, and no other. Nothing spins, and nothing wakes without a reason.
//!
//! A thread that is stuck in the operating system, because a process that left its group still holds a pipe open, cannot be woken. It
//! is left alone, holds nothing but its end of the pipe, and is counted in [`ClientStats::detached_threads`]; closing does not wait for it.
//! One that still connects (a name that is looked up, a socket whose other side accepts nothing) is counted too, and keeps the memory of
//! its client until the system lets it go.

mod accepted;
mod callbacks;
mod channel;
mod client;
mod config;
mod connection;
mod driver;
mod events;
#[cfg(feature = "http")]
mod http;
#[cfg(any(unix, feature = "http"))]
mod listen;
mod os;
mod pool;
mod process;
mod server;
mod service;
mod socket;
mod stream;
mod sync;
mod target;
#[cfg(all(test, shuttle))]
mod tests;
#[cfg(unix)]
mod unix;

pub use accepted::Stream;
pub use client::{
    Client, Closer, Connecting, Elements, Pending, PendingNotification, connect, connect_with, connecting,
};
pub use config::Config;
#[cfg(feature = "http")]
pub use http::{HttpServer, serve_http, serve_http_with};
#[cfg(feature = "http")]
pub use mcp_proto::client::BadHeader;
pub use mcp_proto::client::{
    Event as ClientEvent, ListenerStart, Policy, Repeat, Restart, Resume, Termination, Verdict,
};
pub use mcp_proto::driver::ConnectError;
pub use mcp_proto::error::{HttpError, StreamEnd};
pub use mcp_proto::exchange::{Credentials, Group, Inherit, Peer, RequestHead, UnixSocket};
pub use mcp_proto::input::{Admission, Change, Principal, SessionKey};
pub use mcp_proto::process::Stderr;
pub use mcp_proto::record::{Recorder, Redaction};
pub use mcp_proto::server::{Append, Event as ServerEvent, Hosts, ServerConfig, SessionEnd, Sessions};
pub use mcp_proto::stats::{ClientStats, ServerStats};
pub use mcp_proto::version::{ProtocolVersion, Versions};
pub use mcp_proto::{
    self, Authorization, Call, CallError, CallToolResult, Challenge, Content, Cx, Denied, Direction, ElicitRequest,
    ElicitResult, ErrorObject, Headers, IntoCall, IntoOutput, Json, MessageHook, MessageKind, Object, Outcome, Program,
    Progress, RawJson, ServerInfo, Tool, ToolError, WireMessage, custom, ping, tool, tools,
};
pub use server::{Handler, Router, Server, Serving, serve, serve_stdio, serve_stdio_with, serve_with};
pub use target::{IntoTarget, Target};
#[cfg(unix)]
pub use unix::{UnixServer, serve_unix, serve_unix_with};
