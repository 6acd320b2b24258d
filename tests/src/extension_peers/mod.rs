//! Skills and MCP Apps with the clients and servers of others: `rmcp`, the TypeScript SDK, FastMCP,
//! and `ext-apps`. `tests/extensions` has their programs, and pins their packages; that of `rmcp`
//! is with the others of it.

mod ours;
mod rows;
mod theirs;

pub use ours::{SERVER, router, serve};
pub use rows::ROWS;
pub use theirs::Ground;
