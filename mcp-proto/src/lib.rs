#![cfg_attr(not(any(feature = "std", test)), no_std)]
#![forbid(unsafe_code)]
//! A sans-IO [Model Context Protocol](https://modelcontextprotocol.io) engine, client and server,
//! for every published revision from 2024-11-05 to 2026-07-28.
//!
//! The engine takes bytes and time as arguments and returns actions. It uses no socket, clock,
//! thread, environment variable or random source. It therefore runs in any event loop, in a
//! simulator and in a fuzzer, and the same inputs always produce the same outputs. `mcp-smol` and
//! `mcp-blocking` are adapters that add sockets, pipes, processes and a clock. Most programs use
//! one of them.
//!
//! # Words
//!
//! Nine nouns have one meaning throughout the documentation:
//!
//! * **engine**: a [`Client`] or a [`Server`], with or without its connections. It performs no I/O.
//! * **driver**: the code that performs the I/O for an engine: an adapter, or your event loop.
//! * **application**: the code that makes calls, or that serves requests.
//! * **client**, **server**: the two roles of the protocol.
//! * **peer**: the program at the other end of a connection.
//! * **connection**: one socket, pipe pair or process.
//! * **exchange**: messages in both directions for as long as a connection lives (*duplex*), or one
//!   HTTP request and its response.
//! * **request**: a JSON-RPC request. The request of an HTTP exchange is an *HTTP request*.
//!
//! All other terms are those of the specifications: session, stream, response, header field, era,
//! legacy, modern.
//!
//! ```text
//!   your event loop / mcp-smol / mcp-blocking          mcp-proto
//!  ┌──────────────────────────────────────┐  bytes   ┌───────────────────────────────────────────┐
//!  │ sockets, pipes, processes            │◀────────▶│ seam A, bring your own socket:            │
//!  │ one clock                            │  ticks   │ WiredClient, WiredServer                  │
//!  │                                      │          │ connections, pool, lines, HTTP, SSE       │
//!  └──────────────────────────────────────┘          ├──────────────── exchanges ────────────────┤
//!                                                    │ seam B, bring your own HTTP:              │
//!    application ──── call, cancel, answer ─────────▶│ Client or Server                          │
//!                ◀─── events ────────────────────────│ ids, deadlines, eras, retries, questions  │
//!                                                    └───────────────────────────────────────────┘
//! ```
//!
//! # A driving loop
//!
//! A driver reads its clock once per turn, and passes that instant to every method:
//!
//! 1. It carries out each [`Action`](exchange::Action) of
//!    [`poll_output`](wired::WiredClient::poll_output): opens, reads, writes and closes. It passes
//!    each [`client::Event`] and [`server::Event`] to the application. A [`Router`] takes the
//!    requests of a server.
//! 2. It reports what happened to a connection with [`handle_io`](wired::WiredClient::handle_io).
//!    The engine may then have further actions.
//! 3. Without actions, it sleeps until it can read or write, or until
//!    [`poll_timeout`](wired::WiredClient::poll_timeout), and then calls
//!    [`handle_timeout`](wired::WiredClient::handle_timeout).
//!
//! Without any I/O, an engine already says what it would write. With these dependencies, where
//! `../mcp` is a clone of the repository:
//!
//! ```toml
//! [dependencies]
//! mcp-proto = { path = "../mcp/mcp-proto" }
//! ```
//!
//! ```
//! use mcp_proto::exchange::Action;
//! use mcp_proto::wired::WiredClient;
//! use mcp_proto::{ClientCommands, ClientConfig, Instant, tools};
//! use std::sync::Arc;
//!
//! let config = Arc::new(ClientConfig::given());
//! let seed = [7; 32]; // in a program, bytes that cannot be guessed
//! let (mut engine, _connection) = WiredClient::over(config, seed, Instant::ZERO).unwrap();
//! engine.call(Instant::ZERO, tools::list()).unwrap();
//! let Some(Action::Write(_, bytes)) = engine.poll_output() else { panic!("nothing to write") };
//! // Negotiation comes first.
//! assert!(bytes.starts_with(br#"{"jsonrpc":"2.0","id":1,"method":"server/discover""#));
//! ```
//!
//! The documentation of [`wired`] has the rules. `mcp-driver` has what most drivers need: handles
//! for the application, connections, TLS, programs, and a guide with a loop over a socket. Its
//! `testing::Link` drives a client and a server in memory, in virtual time, for the tests of an
//! application. `mcp-supervisor` keeps several servers connected, and reads the configuration files
//! that list them. Both are in this folder, and depend on this crate.
//!
//! # The modules, in reading order
//!
//! A module uses only the modules above it.
//!
//! | module | contents |
//! |---|---|
//! | [`time`], [`seed`], [`limits`] | instants, random bytes, and every limit with the reason for its default |
//! | [`redact`] | masking of secrets in logs, `Debug` output and recordings |
//! | [`rpc`] | the JSON-RPC envelope, and raw JSON that was validated once |
//! | [`schema`] | the validation of values against JSON Schemas, by a validator that the application gives |
//! | [`version`] | the revisions, and one table of what each allows |
//! | [`exchange`] | the vocabulary of both seams: exchanges, connections, actions |
//! | `process` | programs as commands of the standard library (`std` only) |
//! | [`error`] | errors, by who caused them |
//! | [`hook`] | a function that sees every message and may refuse it |
//! | [`event_queue`] | events that wait for the application, within limits |
//! | [`observer`] | what enters and leaves an engine, for tests and recordings |
//! | [`stats`] | counters and gauges of an engine |
//! | [`frame`] | codecs: lines, HTTP/1.1 with content codings (feature `gzip`), server-sent events, WebSocket |
//! | [`auth`] | logins of clients, and tokens at servers: OAuth 2.1 (feature `auth`) |
//! | [`call`], [`model`] | calls as values, and the typed protocol |
//! | [`input`] | every input of an engine, as one enum |
//! | [`client`], [`server`] | the engines (seam B) |
//! | [`wired`] | engines with their connections (seam A) |
//! | `record` | recordings of an engine, replayed byte for byte (feature `record`) |
//! | [`route`] | tools and handlers |
//!
//! # Contracts
//!
//! * Reporting an event to an engine returns `()`. A driver needs no `?` on the protocol path. The
//!   engine emits a fault of the peer as an event and has already handled it.
//! * An engine may refuse a command. Nothing has changed then, and [`RefusedCommand`] returns the
//!   input.
//! * All outputs of an engine leave through one queue. Neither how the bytes are split nor when the
//!   driver drains the queue changes the outputs.
//! * Every call ends exactly once.
//! * Every queue, buffer and table has a limit in [`Limits`], which documents what happens at it.
//! * Time never moves back: an engine uses the latest instant that it was given. A response that
//!   arrives before the tick wins over the timer.

extern crate alloc;

pub mod auth;
pub mod call;
pub mod client;
pub mod error;
pub mod event_queue;
pub mod exchange;
mod fetch;
pub mod frame;
pub mod hook;
mod http_support;
pub mod input;
pub mod limits;
pub mod model;
pub mod observer;
pub mod peer_text;
#[cfg(feature = "std")]
pub mod process;
#[cfg(feature = "record")]
pub mod record;
pub mod redact;
pub mod route;
pub mod rpc;
pub mod schema;
pub mod seed;
pub mod server;
mod short_map;
mod short_queue;
mod short_set;
pub mod span;
pub mod stats;
pub mod telemetry;
pub mod time;
mod trace_context;
pub mod version;
pub mod wired;

pub use call::{Call, CallHandle, IntoCall, LogLevel, Method, Pages, custom, ping};
pub use client::{Client, ClientCommands, ClientConfig};
pub use error::{CallError, Diagnostic, Refusal, RefusedCommand};
pub use exchange::{Dialect, Group, Headers, Inherit, Program, UnixSocket, WsDialect};
pub use hook::{Denial, Direction, MessageHook, MessageKind, Ruling, WireMessage};
pub use input::{Authorization, Challenge, Change, InputAnswer, InputRequest, Outcome, Watch};
pub use limits::Limits;
pub use model::Progress;
pub use model::apps::{self, ui_resource};
pub use model::completion::{self, Completion};
pub use model::content::Content;
pub use model::elicitation::{ElicitRequest, ElicitResult, Form, UrlRequest};
pub use model::icon::Icon;
pub use model::lifecycle::{Implementation, ServerInfo};
pub use model::page::Page;
pub use model::prompts::{self, GetPromptResult, Prompt, PromptMessage};
pub use model::resources::{self, ReadResult, Resource, ResourceContents, ResourceTemplate};
#[cfg(feature = "skills")]
pub use model::skills::{self, Skill};
pub use model::tasks::{self, TaskHandle, TaskOptions, TaskSupport};
pub use model::tools::{self, CallToolResult, Tool};
#[cfg(feature = "std")]
pub use process::NotUnicode;
pub use route::{
    Cx, Handler, IntoCompletion, IntoContents, IntoMessages, IntoOutput, Json, Router, ToolError, prompt, resource,
    template, tool,
};
pub use rpc::{ErrorObject, Object, RawJson};
pub use server::{Server, ServerCommands, ServerConfig};
pub use time::Instant;
pub use trace_context::TraceContext;
pub use version::{Era, ProtocolVersion, Versions};

/// Sizes of large inputs in tests.
#[cfg(test)]
mod sizes {
    /// Returns a tenth of a size in a build with debug assertions, which takes ten times as long.
    /// An optimised build of the tests has the whole size.
    pub(crate) const fn scaled(whole: usize) -> usize {
        if cfg!(debug_assertions) { whole / 10 } else { whole }
    }
}
