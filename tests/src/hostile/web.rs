//! Web servers that misbehave, against every driver: what a call comes to, what the server is asked, and that nothing else suffers.
//!
//! The server is a stub in the same process, since it holds next to nothing: a peak of memory is that of both.

mod answers;
mod doors;
mod links;
mod parts;
mod sessions;
mod statuses;
mod streams;

use super::Row;

/// The tables of rows, in their order.
pub const WEB: &[&[Row]] = &[answers::ROWS, statuses::ROWS, links::ROWS, doors::ROWS, streams::ROWS, sessions::ROWS];
