//! Our client at real authorization servers: `oidc-provider`, with a small MCP server that it
//! guards or with those of two SDKs, and two MCP servers that have one of their own. And a server
//! of ours that accepts the tokens of `oidc-provider`, with clients of ours and of two SDKs, over
//! every transport. And FastMCP with `oidc-provider` as the identity provider of an organization.
//! `tests/auth` has their programs, and pins their packages.
//!
//! A row is one [`Step`] of the life of a login, with one adapter. It has servers, a user and a
//! store of its own, and most check what the authorization server reports.

mod bound;
mod foreign;
mod grants;
mod ground;
mod identity;
mod leases;
mod ours;
pub mod program;
mod servers;
mod steps;
mod transports;
mod user;

pub use ground::Ground;
pub use steps::{STEPS, Step};
