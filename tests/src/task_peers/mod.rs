//! Calls that become tasks, with the clients and servers of others: `ext-tasks` in both
//! generations, `rmcp`, and FastMCP. And a client of ours that is killed while its task runs, in
//! another process. `tests/tasks` has their programs, and pins their packages; that of `rmcp` is
//! with the others of it.

mod ours;
mod rows;
mod theirs;

pub use ours::{CLIENT, SERVER, client, connect, router, serve};
pub use rows::ROWS;
pub use theirs::Ground;
