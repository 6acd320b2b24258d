//! The guide for applications: a chapter a module. The README of the repository has the first
//! examples and says which crate is for whom.

/// Calls, cancellation, options, HTTP, TLS, proxies, and how a client starts.
///
#[cfg_attr(not(doctest), doc = include_str!("guide/clients.md"))]
pub mod clients {}

/// OAuth 2.1: logins of users, where they are kept, scopes, errors, providers.
///
#[cfg_attr(not(doctest), doc = include_str!("guide/login.md"))]
pub mod login {}

/// Accept the tokens of an OAuth 2.1 authorization server.
///
#[cfg_attr(not(doctest), doc = include_str!("guide/guard.md"))]
pub mod guard {}

/// Handlers, schemas, questions to the user, resources, prompts, HTTP, and replacing a router.
///
#[cfg_attr(not(doctest), doc = include_str!("guide/servers.md"))]
pub mod servers {}

/// Skills, and documents beside the results of tools (MCP Apps).
///
#[cfg_attr(not(doctest), doc = include_str!("guide/extensions.md"))]
pub mod extensions {}

/// The servers of a configuration file, and several servers that stay connected.
///
#[cfg_attr(not(doctest), doc = include_str!("guide/hosts.md"))]
pub mod hosts {}

/// When your program is interrupted: what becomes of programs and requests.
///
#[cfg_attr(not(doctest), doc = include_str!("guide/interrupts.md"))]
pub mod interrupts {}

/// Several servers behind a load balancer, with their sessions, streams and tasks on Redis.
///
#[cfg_attr(not(doctest), doc = include_str!("guide/nodes.md"))]
pub mod nodes {}

/// Every limit and timeout with its default.
///
#[cfg_attr(not(doctest), doc = include_str!("guide/limits.md"))]
pub mod limits {}

/// Spans, metrics and statistics.
///
#[cfg_attr(not(doctest), doc = include_str!("guide/telemetry.md"))]
pub mod telemetry {}

/// Tests in virtual time, and recordings of runs.
///
#[cfg_attr(not(doctest), doc = include_str!("guide/tests.md"))]
pub mod tests {}

/// An engine in your own loop, and porting to another runtime.
///
#[cfg_attr(not(doctest), doc = include_str!("guide/loops.md"))]
pub mod loops {}

/// The command `mcp`.
///
#[cfg_attr(not(doctest), doc = include_str!("guide/command.md"))]
pub mod command {}

/// Versions of Rust, and systems.
///
#[cfg_attr(not(doctest), doc = include_str!("guide/platforms.md"))]
pub mod platforms {}

/// Names and places that have changed.
///
#[cfg_attr(not(doctest), doc = include_str!("guide/renames.md"))]
pub mod renames {}
