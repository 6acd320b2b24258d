#![forbid(unsafe_code)]
//! Model Context Protocol clients and servers on plain threads, for programs that block and use no
//! `async`.
//!
//! [`mcp_proto`] implements the protocol. This crate adds threads, pipes, processes and sockets. A
//! client is a handle for any number of threads. A call blocks its thread. The handlers of a server
//! run concurrently, each on a thread.
//!
//! With these dependencies, where `../mcp` is a clone of the repository:
//!
//! ```toml
//! [dependencies]
//! mcp-blocking = { path = "../mcp/mcp-blocking" }
//! serde = { version = "1", features = ["derive"] }
//! ```
//!
//! ```
//! use mcp_blocking::{CallError, Router, connect, tool, tools};
//! use std::{thread, time::Duration};
//!
//! #[derive(serde::Serialize, serde::Deserialize)]
//! struct Add {
//!     a: i64,
//!     b: i64,
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let server = Router::new("calc", "1.0")
//!     .tool(tool("add").describe("adds"), |_cx, add: Add| {
//!         Ok(add.a.checked_add(add.b).ok_or("the sum is too large")?)
//!     })
//!     .tool(tool("wait").describe("waits until it is cancelled"), |cx, ()| {
//!         while !cx.is_cancelled() {
//!             thread::sleep(Duration::from_millis(1));
//!         }
//!         Ok(())
//!     });
//!
//! // The argument is the target: a `Command`, a URL, a pair of streams or, as here, a router.
//! let client = connect(server)?;
//! let sum = client.call(tools::call("add").arguments(&Add { a: 1, b: 2 }))?;
//! assert_eq!(sum.first_text(), Some("3"));
//! for tool in client.pages(tools::list()) {
//!     println!("{}", tool?.name);
//! }
//! // `start` makes a call and does not wait for it. `cancel` ends it, also on the server.
//! let waiting = client.start(tools::call("wait"));
//! waiting.cancel(Some("it is not needed any more"));
//! assert!(matches!(waiting.wait(), Err(CallError::Cancelled { .. })));
//! client.close();
//! # Ok(())
//! # }
//! ```
//!
//! To serve over standard input and output, call [`serve_stdio`]`(server)`; over HTTP,
//! [`serve_http`]`(server, "127.0.0.1:8000")`; on a Unix domain socket, [`serve_unix`]`(server,
//! "/run/user/1000/calc")`. A [`Server`] takes the connections of your own listener.
//!
//! # Threads
//!
//! A client has one thread for timers, one or two for each connection, one that waits for the exit
//! of a program, and one for each callback that answers the server. A server has one thread for
//! timers, one that accepts, one or two for each connection, and one for each running handler, at
//! most [`ServerOptions::threads`]. A handler that does not return after its request was cancelled,
//! its client has left or its deadline is over keeps its thread, and another thread takes its place
//! among these: there are at most [`ServerOptions::abandoned_threads`] of them. A server has at
//! most as many of both again for [`ServerOptions::on_admit`].
//! Connections beyond [`max_exchanges`](mcp_proto::limits::ServerLimits::max_exchanges) have their
//! threads too while they are refused, at most 64 connections at a time. A client that does not
//! read blocks only the threads of its own connection. No thread polls while nothing happens.
//!
//! The thread of a connection reads. On Linux, a caller that waits for its answer reads a socket or
//! a program itself, unless another caller does: it needs no other thread then, and what the server
//! sends by itself in the first 10 ms after a call may be read at the end of that time. The thread
//! that has bytes for a connection writes them, a caller, a handler or the one that reads, if this
//! does not wait: on a socket, and on Linux also on a pipe. A second thread is started when a peer
//! does not read what it is sent, and for a stream that can only be waited for. Reading and writing
//! never wait for each other.
//!
//! A function of [`Router::inline`] runs on the thread that read its request, and an async handler
//! is polled there first: neither must block there, since nothing else of that connection is read
//! meanwhile. If an async handler is not ready then, a thread for handlers takes it over and is
//! parked while it waits; [`ServerOptions::on_executor`] runs it on an executor instead, from its
//! beginning. Any other handler runs on a thread for handlers. A request that had to wait, for its
//! admission or behind another one, is routed on the thread for timers, and an async handler then
//! begins on a thread for handlers.
//!
//! The callbacks for events run on one thread of their own, in order, and may block: events beyond
//! the limits of the engine are counted. A callback that answers the server may call the same
//! client.
//!
//! A thread can be stuck in the operating system, because a process that has left its group keeps a
//! pipe open. The client detaches it: closing does not wait for it, it owns only its end of the
//! pipe, and [`ClientStats::detached_threads`] counts it. A thread that still connects (a name that
//! is looked up, a socket whose peer does not accept) counts too, and keeps the memory of its
//! client until the system call returns.

mod client;
mod connection;
mod direct;
mod driver;
mod here;
mod os;
mod polled;
mod pool;
mod server;
mod socket;
mod stream;
mod supervisor;
mod sync;
#[cfg(all(test, shuttle))]
mod tests;
mod transport;
mod waiting;

pub use client::{
    Client, Closer, Connecting, Elements, PendingCall, PendingNotification, connect, connect_with, connecting,
};
#[cfg(feature = "rustls")]
pub use mcp_driver::TlsAcceptor;
pub use mcp_driver::guide;
pub use mcp_driver::store;
pub use mcp_driver::{
    BadTimeout, ClientHandle, ClientOptions, ConnectError, IntoTarget, ServerHandle, ServerOptions, Service, Target,
    Watcher,
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
pub use mcp_proto::exchange::{Credentials, Group, Inherit, Peer, RequestHead, UnixSocket};
pub use mcp_proto::input::{Admission, Change, Principal, SessionKey};
pub use mcp_proto::model::elicitation::{Choice, Field, FieldKind, UrlRequest};
pub use mcp_proto::model::roots::Root;
pub use mcp_proto::model::sampling::{SampleRequest, SampleResult};
pub use mcp_proto::process::Stderr;
#[cfg(feature = "record")]
pub use mcp_proto::record::{Recorder, Redaction};
pub use mcp_proto::route::BadReplacement;
pub use mcp_proto::schema;
pub use mcp_proto::server::{Event as ServerEvent, Hosts, KeptEvent, ServerConfig, SessionEnd, Sessions, SsePaths};
pub use mcp_proto::stats::{CacheStats, ClientStats, ServerStats};
pub use mcp_proto::version::{ProtocolVersion, Versions};
pub use mcp_proto::{
    self, Authorization, Call, CallError, CallToolResult, Challenge, ClientConfig, Completion, Content, Cx, Denial,
    Direction, ElicitResult, ErrorObject, Form, GetPromptResult, Handler, Headers, Icon, IntoCall, IntoCompletion,
    IntoContents, IntoMessages, IntoOutput, Json, LogLevel, MessageHook, MessageKind, Object, Outcome, Program,
    Progress, Prompt, PromptMessage, RawJson, ReadResult, Resource, ResourceContents, ResourceTemplate, Router, Ruling,
    ServerInfo, TaskHandle, TaskOptions, TaskSupport, Tool, ToolError, TraceContext, Watch, WireMessage, apps,
    completion, custom, ping, prompt, prompts, resource, resources, tasks, telemetry, template, tool, tools,
    ui_resource,
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
pub use supervisor::{Supervisor, supervise};
pub use transport::{Given, Stream};
