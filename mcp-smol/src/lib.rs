#![forbid(unsafe_code)]
//! Model Context Protocol clients and servers on [smol](https://docs.rs/smol): `mcp-proto` with
//! sockets, pipes, processes and timers.
//!
//! ```
//! use mcp_smol::{Router, connect, tool, tools};
//!
//! #[derive(serde::Serialize, serde::Deserialize)]
//! struct Add {
//!     a: i64,
//!     b: i64,
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let add = tool("add").describe("adds two integers");
//! let calc = Router::new("calc", "1.0").tool_async(add, |_cx, add: Add| async move {
//!     Ok(add.a + add.b)
//! });
//! smol::block_on(async {
//!     // A router is served in this process. `Command::new("my-server")` starts a program, and
//!     // "http://…" connects.
//!     let client = connect(calc).await?;
//!     let sum = client.call(tools::call("add").arguments(&Add { a: 1, b: 2 })).await?;
//!     assert_eq!(sum.first_text(), Some("3"));
//!     client.close().await;
//!     Ok(())
//! })
//! # }
//! ```
//!
//! A handler takes a [`Cx`] and its arguments, and returns a `Result<_, ToolError>`, or a future of
//! one with [`Router::tool_async`]. [`Router::tool`] takes a function that may block, and runs it
//! on the blocking pool of smol; [`Router::tool_inline`] takes one that returns at once.
//!
//! To serve, give the router to [`serve_stdio`], [`serve`] or [`serve_http`], or give a [`Server`]
//! the connections of your own listener. Handlers run concurrently. Cancelling a request drops the
//! future of its handler. A handler that panics answers with an error. A long computation belongs
//! in `smol::unblock`.
//!
//! A callback of a client that returns a future (`on_elicit_async`) is polled by the [`Driver`]; a
//! function runs on the blocking pool of smol. Callbacks for events run in the driver, and those of
//! a server under its lock: they must not block.
//!
//! **The executor is yours.** [`connect`] uses smol's global executor. So do [`serve_http`] and
//! [`Server`], with one task for each connection and each pending handler, unless
//! [`ServerOptions::on_executor`] names another one. [`connect_driven`] returns a [`Driver`] to
//! spawn anywhere, and [`serve`] is a plain future that runs its handlers. No socket or pipe has a
//! thread. The blocking pool of smol resolves names, reads and writes standard input and output,
//! which may be files, and parses messages over 32 KiB, so that other tasks do not wait for them.
//!
//! **To cancel is to drop.** The future of a call may be dropped at any time, and the client then
//! cancels the request. Every other future may be dropped too: none holds protocol state across an
//! await.
//!
//! **Programs** run in a process group of their own. When a client ends (closed, dropped, its
//! driver dropped, a panic), the group ends: closing ends its input, then sends `SIGTERM`, then
//! `SIGKILL`; dropping the driver kills it at once. The client cannot end a process that has left
//! the group (`setsid`). With [`connect_driven`] the driver must complete, or be dropped, before
//! `main` returns.
//!
//! **On Windows** a program runs in a job, which ends with the client. It is found as the shell
//! finds it (`npx.cmd` for `npx`), and opens no window. There is no `SIGTERM`. Threads of the
//! blocking pool read and write pipes.

#[cfg(any(unix, feature = "http"))]
mod accept;
mod channel;
mod client;
mod clock;
mod config;
mod connection;
mod dial;
mod driver;
mod ends;
mod future;
#[cfg(feature = "http")]
mod http;
mod process;
mod server;
mod serving;
mod shared;
mod spawned;
mod stdio;
mod sync;
mod target;
#[cfg(all(test, shuttle))]
mod tests;
#[cfg(unix)]
mod unix;

pub use client::{Client, Closer, Connecting, Pending, PendingNotification};
pub use config::Service;
pub use driver::Driver;
#[cfg(feature = "http")]
pub use http::{HttpServer, serve_http};
pub use mcp_proto::adapter::{ClientOptions, ConnectError, ServerOptions};
pub use mcp_proto::client::BadHeader;
pub use mcp_proto::client::{
    Event as ClientEvent, ListenerStart, Policy, Repeat, Restart, Resume, Termination, Verdict,
};
pub use mcp_proto::error::{HttpError, StreamEnd};
pub use mcp_proto::exchange::{Credentials, Group, Inherit, Peer, Program, RequestHead, UnixSocket};
pub use mcp_proto::input::{Admission, Change, Principal, SessionKey};
pub use mcp_proto::process::Stderr;
#[cfg(feature = "record")]
pub use mcp_proto::record::{Recorder, Redaction};
pub use mcp_proto::route::tool;
pub use mcp_proto::server::{Append, Event as ServerEvent, Hosts, ServerConfig, SessionEnd, Sessions};
pub use mcp_proto::stats::{ClientStats, ServerStats};
pub use mcp_proto::version::{ProtocolVersion, Versions};
pub use mcp_proto::{
    self, Authorization, Call, CallError, CallToolResult, Challenge, Content, Cx, Denied, Direction, ElicitRequest,
    ElicitResult, ErrorObject, Handler, Headers, IntoCall, IntoOutput, Json, MessageHook, MessageKind, Object, Outcome,
    Progress, RawJson, Router, ServerInfo, Tool, ToolError, WireMessage, custom, ping, tools,
};
pub use serving::{Server, serve, serve_stdio};
pub use target::{IntoTarget, Target};
#[cfg(unix)]
pub use unix::{UnixServer, serve_unix};

use future::BoxFuture;
use mcp_proto::client::{ClientConfig, Target as Wanted};
use mcp_proto::exchange::Endpoint;
use shared::Shared;
use std::sync::Arc;
use target::Place;

/// Capacity of the channel to a server in this process, in bytes per direction.
const PIPE: usize = 64 << 10;

/// Connects to a server with the default configuration, and waits for the end of negotiation. The
/// [`Driver`] runs on smol's global executor. Dropping the future before it completes ends the
/// attempt and leaves nothing behind.
///
/// # Errors
/// [`ConnectError`], with the step that failed and the exit status of a program.
pub async fn connect(target: impl IntoTarget) -> Result<Client, ConnectError> {
    connect_with(target, ClientOptions::new()).await
}

/// Like [`connect`], with options.
///
/// ```
/// use mcp_smol::{ClientOptions, Router, connect_with, tool, tools};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # smol::block_on(async {
/// let server = Router::new("clock", "1.0").tool(tool("tick"), |_cx, ()| Ok("tock"));
/// let options = ClientOptions::new().on_event(|event| eprintln!("{event:?}"));
/// let client = connect_with(server, options).await?;
/// assert_eq!(client.call(tools::call("tick")).await?.first_text(), Some("tock"));
/// client.close().await;
/// # Ok(())
/// # })
/// # }
/// ```
///
/// # Errors
/// As [`connect`].
pub async fn connect_with(target: impl IntoTarget, options: ClientOptions) -> Result<Client, ConnectError> {
    connecting(target, options)?.await
}

/// Like [`connect_with`], in two steps. The returned value has started nothing yet, and another
/// task or a signal handler can close it before and while it connects.
/// [`ClientConfig::connect_timeout`](mcp_proto::ClientConfig::connect_timeout) counts from this
/// call.
///
/// ```
/// use mcp_smol::{ClientOptions, Router, connecting};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # smol::block_on(async {
/// let connecting = connecting(Router::new("calc", "1.0"), ClientOptions::new())?;
/// // For a handler of Ctrl-C: `move || smol::block_on(closer.exit(130))`.
/// let closer = connecting.closer();
/// let client = connecting.await?;
/// closer.close().await;
/// # drop(client);
/// # Ok(())
/// # })
/// # }
/// ```
///
/// # Errors
/// [`ConnectError`] if the target is invalid, or the system lacks a resource.
pub fn connecting(target: impl IntoTarget, options: ClientOptions) -> Result<Connecting, ConnectError> {
    let (shared, driver) = build(target, options)?;
    Ok(Connecting::new(shared, driver))
}

/// Creates a client and its [`Driver`]. Nothing happens before the driver is polled, on any
/// executor. Calls may be made at once. [`Client::ready`] waits for the end of negotiation.
///
/// # Errors
/// [`ConnectError`] if the target is invalid, or the system lacks a resource.
pub fn connect_driven(target: impl IntoTarget, options: ClientOptions) -> Result<(Client, Driver), ConnectError> {
    let (shared, driver) = build(target, options)?;
    Ok((Client::new(shared, None), driver))
}

fn build(target: impl IntoTarget, mut options: ClientOptions) -> Result<(Arc<Shared>, Driver), ConnectError> {
    let system = |e: std::io::Error| ConnectError::System(e.to_string());
    let (mut given, mut guest) = (None, None);
    let wanted = match target.into_target()?.0 {
        Place::Known(target) => target,
        Place::Pair(reader, writer) => {
            given = Some((reader, writer));
            Wanted::Duplex(Endpoint::Given)
        }
        Place::Here(service) => {
            let ((reader, their_writer), (their_reader, writer)) = (piper::pipe(PIPE), piper::pipe(PIPE));
            given = Some((Box::new(reader) as _, Box::new(writer) as _));
            let serving = serve(*service, their_reader, their_writer);
            // The client notices the end of the server on its connection.
            guest = Some(Box::pin(async { drop(serving.await) }) as BoxFuture<()>);
            Wanted::Duplex(Endpoint::Given)
        }
    };
    let clock = clock::Clock::start();
    let mut settings = ClientConfig::new(wanted);
    settings.origin_unix = clock.unix();
    let engine = options.create(settings, clock::seed().map_err(system)?, clock.now());
    let shared = Shared::new(engine, clock);
    let driver = Driver::new(shared.clone(), options, given, guest);
    Ok((shared, driver))
}
