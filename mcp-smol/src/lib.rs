#![forbid(unsafe_code)]
//! Model Context Protocol clients and servers on [smol](https://docs.rs/smol): `mcp-proto` with sockets, pipes, processes and timers.
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
//! let calc = Router::new("calc", "1.0").tool(tool("add").describe("adds two integers"), |_cx, add: Add| async move {
//!     Ok(add.a + add.b)
//! });
//! smol::block_on(async {
//!     // A router is served in this process. `Command::new("my-server")` would be started, "http://…" connected to.
//!     let client = connect(calc).await?;
//!     let sum = client.call(tools::call("add").arguments(&Add { a: 1, b: 2 })).await?;
//!     assert_eq!(sum.first_text(), Some("3"));
//!     client.close().await;
//!     Ok(())
//! })
//! # }
//! ```
//!
//! A handler is a closure from [`Cx`] and its arguments to a future of a `Result<_, ToolError>`; of the types only that of the arguments
//! must be written. `?` works in it on everything that turns into a [`ToolError`].
//!
//! To serve, hand the router to [`serve_stdio`], [`serve`] or [`serve_http`]. Handlers of one connection run concurrently, inside the
//! future that serves it; cancelling a request drops its handler's future, and a handler that panics answers with an error. What computes for
//! long belongs into `smol::unblock`.
//!
//! **The executor is yours.** [`connect`] and [`serve_http`] use smol's global executor; [`connect_with`] gives a [`Driver`] to spawn
//! anywhere, and [`serve`] is a plain future. No socket and no pipe has a thread; the blocking pool of smol resolves names, and reads and
//! writes standard input and output, which may be files.
//!
//! **Cancelling is dropping.** The future of a call may be dropped at any time: the server is told. So may every other future here: none
//! holds protocol state across an await.
//!
//! **Programs** run in a process group of their own. However a client ends (closed, dropped, its driver dropped, a panic), the group
//! ends with it: closing goes down the ladder end of input, `SIGTERM`, `SIGKILL`; dropping the driver kills at once. A process that
//! leaves the group (`setsid`) is beyond reach. With [`connect_with`] it is the driver that must run to its end, or be dropped, before
//! `main` returns.
//!
//! Unix only: programs need process groups, a router in this process a socket pair.

#[cfg(not(unix))]
compile_error!("mcp-smol needs Unix: process groups and socket pairs");

mod channel;
mod client;
mod clock;
mod config;
mod connection;
mod driver;
#[cfg(feature = "http")]
mod http;
mod process;
mod server;
mod spawned;
mod stdio;
mod target;
mod tasks;

pub use client::{Client, Pending};
pub use config::{Config, Service};
pub use driver::Driver;
#[cfg(feature = "http")]
pub use http::{HttpServer, serve_http};
pub use mcp_proto::client::{Event as ClientEvent, Policy, Termination, Verdict};
pub use mcp_proto::driver::ConnectError;
pub use mcp_proto::exchange::Program;
pub use mcp_proto::process::Stderr;
pub use mcp_proto::route::tool;
pub use mcp_proto::server::Event as ServerEvent;
pub use mcp_proto::{
    self, Call, CallError, CallToolResult, Content, Cx, ElicitRequest, ElicitResult, ErrorObject, IntoCall, IntoOutput,
    Json, Object, Outcome, Progress, RawJson, ServerInfo, Tool, ToolError, custom, ping, tools,
};
pub use server::{Handler, serve, serve_stdio};
pub use target::{IntoTarget, Target};

use client::Shared;
use config::BoxFuture;
use mcp_proto::client::{ClientConfig, Target as Wanted};
use mcp_proto::exchange::Endpoint;
use mcp_proto::wired::WiredClient;
use spawned::Spawned;
use std::sync::Arc;
use target::Place;

/// What a server offers: its tools, and the closures that serve them.
pub type Router = mcp_proto::Router<Handler>;

/// Connects to a server, with the defaults, and waits until the two sides have agreed. The [`Driver`] runs on smol's global executor.
/// Dropping the future before that ends the attempt, and leaves nothing.
///
/// # Errors
/// [`ConnectError`] says at which stage it failed, and how a program ended.
pub async fn connect(target: impl IntoTarget) -> Result<Client, ConnectError> {
    let (shared, driver) = build(target, Config::new())?;
    let driver = Spawned::new(driver);
    let client = Client::new(shared, Some(driver.clone()));
    smol::spawn(driver).detach();
    client.ready().await?;
    Ok(client)
}

/// Connects to a server. Nothing happens before the [`Driver`] is polled, on whatever executor; calls may be made at once, and
/// [`Client::ready`] tells when the two sides have agreed.
///
/// # Errors
/// [`ConnectError`] if the target cannot be understood, or the system does not provide what is needed.
pub fn connect_with(target: impl IntoTarget, config: Config) -> Result<(Client, Driver), ConnectError> {
    let (shared, driver) = build(target, config)?;
    Ok((Client::new(shared, None), driver))
}

fn build(target: impl IntoTarget, config: Config) -> Result<(Arc<Shared>, Driver), ConnectError> {
    let system = |e: std::io::Error| ConnectError::System(e.to_string());
    let (mut given, mut guest) = (None, None);
    let wanted = match target.into_target()?.0 {
        Place::Known(target) => target,
        Place::Pair(reader, writer) => {
            given = Some((reader, writer));
            Wanted::Duplex(Endpoint::Given)
        }
        Place::Here(service) => {
            let (ours, theirs) = smol::net::unix::UnixStream::pair().map_err(system)?;
            given = Some((Box::new(ours.clone()) as _, Box::new(ours) as _));
            let serving = serve(*service, theirs.clone(), theirs);
            // How it ends, the client sees on the channel.
            guest = Some(Box::pin(async { drop(serving.await) }) as BoxFuture<()>);
            Wanted::Duplex(Endpoint::Given)
        }
    };
    let origin = clock::Origin::new();
    let mut settings = ClientConfig::new(wanted);
    settings.origin_unix = origin.unix;
    let Config { changes, hooks, stderr } = config;
    changes.into_iter().for_each(|change| change(&mut settings));
    let engine = WiredClient::new(Arc::new(settings), clock::seed().map_err(system)?, origin.now());
    let shared = Arc::new(Shared::new(engine, origin));
    let driver = Driver::new(shared.clone(), hooks, stderr, given, guest);
    Ok((shared, driver))
}
