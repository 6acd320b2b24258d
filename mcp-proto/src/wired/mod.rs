//! Seam A: engines with their connections. Bytes and ticks in, actions out.
//!
//! [`WiredClient`] and [`WiredServer`] are concrete values over [`Connection`]s, with no trait between
//! them. A driver opens, reads, writes, closes and sleeps. It makes no decision.
//!
//! # What a driver may rely on
//!
//! * The engine emits no [`Action::Write`](crate::exchange::Action::Write) before the driver reported
//!   `opened`.
//! * The engine writes to a connection through one queue, so a connection needs one writer.
//!
//! # What a driver must do
//!
//! * Report every written byte with `written`. The next HTTP request on a connection and the end of a
//!   response wait for that report.
//! * Continue to read after a failed write: the response may already be in the socket.
//! * Report `closed` exactly once for every connection, as its last event. That includes a connection
//!   that never opened.
//! * Report `closed` after it has carried out a [`Shutdown::Abort`](crate::exchange::Shutdown::Abort), or
//!   when both sides of a socket have ended, after a
//!   [`Shutdown::WriteHalf`](crate::exchange::Shutdown::WriteHalf). For a program, report it after the
//!   program has exited and its output was read to the end.

mod client;
mod connection;
mod counts;
mod deadlines;
mod notify;
mod outbox;
mod pool;
mod refusal;
mod room;
mod server;
mod tally;
mod tape;

pub use crate::droppable::{Weigh, Weight};
pub use crate::frame::Kind;
pub use client::WiredClient;
pub use connection::{Connection, ConnectionOutput};
pub use outbox::Outbox;
pub use refusal::refusal;
pub use server::{Mail, SharedServer, WiredServer};
pub use tape::Tape;

#[cfg(test)]
mod tests;
