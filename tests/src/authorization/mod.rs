//! Our client at a real authorization server, `oidc-provider`, with a small MCP server that it
//! guards. `tests/auth` has the program of both, and pins its packages.
//!
//! A row is one [`Step`] of the life of a login, with one adapter. It has servers, a user and a
//! store of its own, and checks what the authorization server reports.

mod ground;
pub mod program;
mod servers;
mod steps;
mod user;

pub use ground::Ground;
pub use steps::{STEPS, Step};
