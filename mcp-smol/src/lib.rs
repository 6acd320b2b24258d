#![forbid(unsafe_code)]
//! Model Context Protocol clients and servers on [smol](https://docs.rs/smol): `mcp-proto` with
//! sockets, pipes, processes and timers.
//!
//! With these dependencies, where `../mcp` is a clone of the repository:
//!
//! ```toml
//! [dependencies]
//! mcp-smol = { path = "../mcp/mcp-smol" }
//! serde = { version = "1", features = ["derive"] }
//! smol = "2"
//! ```
//!
//! ```
//! use mcp_smol::{CallError, Router, ToolError, connect, tool, tools};
//! use std::future::pending;
//!
//! #[derive(serde::Serialize, serde::Deserialize)]
//! struct Add {
//!     a: i64,
//!     b: i64,
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let add = tool("add").describe("adds two integers");
//! let wait = tool("wait").describe("waits until it is cancelled");
//! let calc = Router::new("calc", "1.0")
//!     .tool_async(add, |_cx, add: Add| async move { Ok(add.a + add.b) })
//!     .tool_async(wait, |_cx, ()| pending::<Result<(), ToolError>>());
//! smol::block_on(async {
//!     // A router is served in this process. `Command::new("my-server")` starts a program, and
//!     // "http://…" connects.
//!     let client = connect(calc).await?;
//!     let sum = client.call(tools::call("add").arguments(&Add { a: 1, b: 2 })).await?;
//!     assert_eq!(sum.first_text(), Some("3"));
//!     // `start` makes a call now. `cancel` ends it, also on the server, as dropping it does.
//!     let waiting = client.start(tools::call("wait"));
//!     waiting.cancel(Some("it is not needed any more"));
//!     assert!(matches!(waiting.await, Err(CallError::Cancelled { .. })));
//!     client.close().await;
//!     Ok(())
//! })
//! # }
//! ```
//!
//! A handler takes a [`Cx`] and its arguments, and returns a `Result<_, ToolError>`, or a future of
//! one with [`Router::tool_async`]. [`Router::tool`] takes a function that may block, and runs it
//! on the blocking pool of smol; within [`Router::inline`], where it is routed.
//!
//! To serve, give the router to [`serve_stdio`], [`serve`] or [`serve_http`], or give a [`Server`]
//! the connections of your own listener. Handlers run concurrently. Cancelling a request drops the
//! future of its handler. A handler that panics answers with an error. A long computation belongs
//! in `smol::unblock`.
//!
//! The future that a callback of a client returns is polled by the [`Driver`]; a callback that
//! returns its answer runs on the blocking pool of smol. Callbacks for events run in the driver,
//! and those of a server in the tasks of its connections: they must not block.
//!
//! **The executor is yours.** [`connect`] uses smol's global executor. So do [`serve_http`] and
//! [`Server`], with one task for each connection and each pending handler, unless
//! [`ServerOptions::on_executor`] names another one. [`connect_driven`] returns a [`Driver`] to
//! spawn anywhere, and [`serve`] is a plain future that runs its handlers. No socket or pipe has a
//! thread. The blocking pool of smol resolves names, reads and writes standard input and output
//! (on Linux only if they are neither pipes nor sockets), and parses messages over 32 KiB, so that
//! other tasks do not wait for them.
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

mod client;
mod clock;
mod connection;
mod dial;
mod driver;
mod jobs;
mod pace;
mod process;
mod server;
mod source;
mod spawned;
mod stdio;
mod stream;
mod supervisor;
mod sync;
#[cfg(all(test, shuttle))]
mod tests;
mod transport;

pub use client::{Connecting, connect, connect_driven, connect_with, connecting};
pub use driver::Driver;
#[cfg(feature = "rustls")]
pub use mcp_driver::TlsAcceptor;
pub use mcp_driver::guide;
pub use mcp_driver::store;
pub use mcp_driver::{
    BadTimeout, Client, ClientHandle, ClientOptions, Closer, ConnectError, Elements, IntoTarget, PendingCall,
    PendingNotification, ServerHandle, ServerOptions, Service, Target, Watcher,
};
#[cfg(feature = "auth")]
pub use mcp_driver::{Browsed, FileStore, MemoryStore, OAuth, TokenStore};
#[cfg(feature = "skills")]
pub use mcp_driver::{SkillFolderError, read_skill};
#[cfg(feature = "auth")]
pub use mcp_proto::auth;
pub use mcp_proto::client::BadHeader;
pub use mcp_proto::client::{
    Cache, Event as ClientEvent, FetchError, FetchRequest, FetchResponse, HttpTarget, ListenerStart, OnMismatch,
    Policy, Redirects, Repeat, ResultValidation, Resume, Termination, Verdict,
};
#[cfg(feature = "auth")]
pub use mcp_proto::error::AuthError;
pub use mcp_proto::error::{HttpError, InvalidResult, StreamEnd, escaped};
pub use mcp_proto::exchange::{Credentials, Group, Inherit, Peer, Program, RequestHead, UnixSocket};
pub use mcp_proto::input::{Admission, Change, Principal, SessionKey};
pub use mcp_proto::model::elicitation::{Choice, Field, FieldKind, UrlRequest};
pub use mcp_proto::model::roots::Root;
pub use mcp_proto::model::sampling::{SampleRequest, SampleResult};
pub use mcp_proto::process::Stderr;
#[cfg(feature = "record")]
pub use mcp_proto::record::{Recorder, Redaction};
pub use mcp_proto::route::{BadReplacement, tool};
pub use mcp_proto::schema;
pub use mcp_proto::server::{Event as ServerEvent, Hosts, KeptEvent, ServerConfig, SessionEnd, Sessions, SsePaths};
pub use mcp_proto::stats::{CacheStats, ClientStats, ServerStats};
pub use mcp_proto::version::{ProtocolVersion, Versions};
pub use mcp_proto::{
    self, Authorization, Call, CallError, CallToolResult, Challenge, ClientConfig, Completion, Content, Cx, Denial,
    Direction, ElicitResult, ErrorObject, Form, GetPromptResult, Handler, Headers, Icon, IntoCall, IntoCompletion,
    IntoContents, IntoMessages, IntoOutput, Json, LogLevel, MessageHook, MessageKind, Object, Outcome, Progress,
    Prompt, PromptMessage, RawJson, ReadResult, Resource, ResourceContents, ResourceTemplate, Router, Ruling,
    ServerInfo, TaskHandle, TaskOptions, TaskSupport, Tool, ToolError, TraceContext, Watch, WireMessage, apps,
    completion, custom, ping, prompt, prompts, resource, resources, tasks, telemetry, template, tools, ui_resource,
};
#[cfg(feature = "skills")]
pub use mcp_proto::{Skill, skills};
pub use mcp_supervisor::front::SupervisorOptions;
pub use mcp_supervisor::{self, config_file};
pub use mcp_supervisor::{
    CallRefusal, Catalogue, Event as SupervisorEvent, Freshness, Health, ListKind, ServerSpec, ServerState,
    SupervisedError, Supervision,
};
#[cfg(feature = "rustls")]
pub use rustls;
#[cfg(feature = "http")]
pub use server::serve_http;
#[cfg(feature = "rustls")]
pub use server::serve_https;
#[cfg(unix)]
pub use server::serve_unix;
pub use server::{Server, serve, serve_stdio};
pub use stream::{Given, Stream};
pub use supervisor::{ClientTask, OnExecutor, Supervisor, supervise, supervise_on};
