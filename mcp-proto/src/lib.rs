#![cfg_attr(not(any(feature = "std", test)), no_std)]
#![forbid(unsafe_code)]
//! A sans-IO [Model Context Protocol](https://modelcontextprotocol.io) engine: client and server, every published revision from
//! 2024-11-05 to 2026-07-28.
//!
//! The core takes bytes and time in and gives actions out. It touches no socket, clock, thread, environment or random source: what it
//! needs is an argument. So it runs under any event loop, in a simulator, in a fuzzer, and the same inputs always give the same outputs.
//! `mcp-smol` and `mcp-blocking` are adapters that add the sockets, pipes, processes and clocks; programs mostly use one of them.
//!
//! ```text
//!   your event loop / mcp-smol / mcp-blocking          mcp-proto
//!  ┌──────────────────────────────────────┐  bytes   ┌────────────────────────────────────────────┐
//!  │ sockets, pipes, processes            │◀────────▶│ WiredClient, WiredServer: connections, pool      │  seam A: bring your own socket
//!  │ one clock                            │  ticks   │  (lines · http+sse)                        │
//!  └──────────────────────────────────────┘          ├──────────────── exchanges ─────────────────┤
//!                                                    │ Client  or  Server                         │  seam B: bring your own HTTP
//!    application ──── call, cancel, answer ─────────▶│ ids, deadlines, eras, retries, questions   │
//!                ◀─── events ────────────────────────│                                            │
//!                                                    └────────────────────────────────────────────┘
//! ```
//!
//! # A driving loop
//!
//! A driver carries out [`Action`](exchange::Action)s, tells what happened, and sleeps until
//! [`poll_timeout`](wired::WiredClient::poll_timeout). Here both ends run in one thread, and the "socket" is a variable. A server over HTTP
//! differs in one word, `Kind::HttpServer`, and has a channel for each connection.
//!
//! ```
//! use mcp_proto::exchange::{Action, ConnectionId, Closed, Peer, Shutdown};
//! use mcp_proto::route::Routed;
//! use mcp_proto::wired::{Kind, WiredClient, WiredServer};
//! use mcp_proto::{ClientConfig, Cx, Instant, Outcome, Router, client, server, tool, tools};
//! use std::sync::Arc;
//!
//! // A server: what it offers, and who serves it. Here handlers are plain functions; an adapter brings its own kind.
//! let router = Router::<fn(&Cx) -> Outcome>::new("calc", "1.0")
//!     .add(tool("hello").describe("says hello"), |cx: &Cx| cx.outcome("hello"));
//! let now = Instant::ZERO; // a real driver reads its clock once a turn
//! let mut server = WiredServer::new(Arc::new(router.config()), [1; 32], now); // 32 unguessable bytes
//! let mut client = WiredClient::new(Arc::new(ClientConfig::given()), [2; 32], now);
//!
//! // 1. Calls are values. This one waits until the two sides have agreed.
//! let hello = client.call(now, tools::call("hello")).unwrap();
//!
//! let (mut at_client, mut at_server) = (ConnectionId(0), ConnectionId(0));
//! let mut answer = None;
//! loop {
//!     let mut idle = true;
//!     // 2. Do what the client wants, and tell what came of it.
//!     while let Some(action) = client.poll_output() {
//!         idle = false;
//!         match action {
//!             Action::Open(channel, _endpoint) => {
//!                 at_client = channel;
//!                 at_server = server.accept(now, Kind::Lines, Peer::default()).unwrap();
//!                 client.opened(now, channel, Peer::default());
//!             }
//!             Action::Write(channel, bytes) => {
//!                 client.written(now, channel, bytes.len());
//!                 server.bytes(now, at_server, bytes);
//!             }
//!             Action::Close(_, Shutdown::WriteHalf) => server.eof(now, at_server),
//!             Action::Close(channel, _) => client.closed(now, channel, Closed::Aborted),
//!             Action::Event(client::Event::Ended { call, outcome }) if call == hello.id() => answer = Some(outcome),
//!             Action::Event(_) => {}
//!         }
//!     }
//!     // 3. The same for the server; requests go to the router.
//!     while let Some(action) = server.poll_output() {
//!         idle = false;
//!         match action {
//!             Action::Write(channel, bytes) => {
//!                 server.written(now, channel, bytes.len());
//!                 client.bytes(now, at_client, bytes);
//!             }
//!             Action::Event(server::Event::Request(responder, incoming)) => match router.route(responder, incoming) {
//!                 Routed::Answer(answer) => server.respond(now, answer),
//!                 Routed::Handle { handler, invocation, responder } => {
//!                     // One that takes time runs elsewhere, with `Cx::linked`, and its answer is handed in when it comes.
//!                     let outcome = handler(&Cx::detached(invocation));
//!                     server.respond(now, responder.write(outcome));
//!                 }
//!             },
//!             _ => {}
//!         }
//!     }
//!     // 4. Nothing to do: a real driver sleeps until bytes come or `poll_timeout` is due, and then calls `handle_timeout`.
//!     if idle {
//!         break;
//!     }
//! }
//! let result = hello.finish(answer.expect("every call ends exactly once")).unwrap();
//! assert_eq!(result.first_text(), Some("hello"));
//! ```
//!
//! # The modules, in reading order
//!
//! Each uses only those above it.
//!
//! | module | what it holds |
//! |---|---|
//! | [`time`], [`seed`], [`limits`] | what the engine is given: instants, unguessable bytes, every bound and why that number |
//! | [`redact`] | what must not be logged, shown or kept: secrets, found by their names |
//! | [`rpc`] | the JSON-RPC envelope, read in one pass of our own, and raw JSON that was checked once |
//! | [`version`] | the revisions, and one table of what each allows |
//! | [`exchange`] | the vocabulary: exchanges, channels, items, facts, actions |
//! | `process` | what drivers that start programs share (`std` only) |
//! | [`error`] | what can go wrong, sorted by whose fault it is |
//! | [`hook`] | a function that sees, and may refuse, every message |
//! | [`stats`] | what an engine holds and has done, as numbers |
//! | [`frame`] | codecs: lines, HTTP/1.1, server-sent events |
//! | [`call`], [`model`] | requests as data, and the typed protocol |
//! | [`input`] | everything that can be told to an engine, as one enum |
//! | [`client`], [`server`] | the engines (seam B) |
//! | [`wired`] | engines over channels (seam A) |
//! | [`record`] | a run of a client on file, to be replayed to the byte |
//! | [`route`] | tools and handlers |
//! | [`driver`] | what drivers share: waiting calls, write queues, why connecting failed |
//!
//! # Contracts
//!
//! * Telling what happened returns `()`: a driver has no `?` on the protocol path. A peer's fault is an event, and the engine has already
//!   decided what to do about it.
//! * A command may be refused; then nothing has changed, and the input comes back in [`Refused`].
//! * All outputs of an engine leave through one queue. Where bytes are cut and when the queue is drained never change what comes out.
//! * Every call ends exactly once.
//! * Every queue, buffer and table has a bound in [`Limits`], which says what happens there.
//! * Time never moves back: the latest instant counts. An answer that arrives before the tick wins over the timer.

extern crate alloc;

pub mod call;
pub mod client;
pub mod driver;
mod droppable;
pub mod error;
pub mod exchange;
pub mod frame;
pub mod hook;
pub mod input;
pub mod limits;
pub mod model;
mod peer_text;
#[cfg(feature = "std")]
pub mod process;
pub mod record;
pub mod redact;
pub mod route;
pub mod rpc;
pub mod seed;
pub mod server;
pub mod stats;
pub mod time;
pub mod version;
pub mod wired;

pub use call::{Call, Calling, IntoCall, Method, Pages, custom, ping};
pub use client::{Client, ClientConfig};
pub use error::{CallError, Diagnostic, Refusal, Refused};
pub use exchange::{Group, Headers, Inherit, Program, UnixSocket};
pub use hook::{Denied, Direction, MessageHook, MessageKind, WireMessage};
pub use input::{Authorization, Challenge, InputAnswer, InputRequest, Outcome};
pub use limits::Limits;
pub use model::Progress;
pub use model::content::Content;
pub use model::elicitation::{ElicitRequest, ElicitResult};
pub use model::lifecycle::{Implementation, ServerInfo};
pub use model::tools::{self, CallToolResult, Tool};
#[cfg(feature = "std")]
pub use process::NotUnicode;
pub use route::{Cx, IntoOutput, Json, Router, ToolError, tool};
pub use rpc::{ErrorObject, Object, RawJson};
pub use server::{Server, ServerConfig};
pub use time::Instant;
pub use version::{Era, ProtocolVersion, Versions};
