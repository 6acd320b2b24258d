//! Seam A: engines over channels. Bytes and ticks in, actions out.
//!
//! [`WiredClient`] and [`WiredServer`] are concrete values over [`Connection`]s, with no trait between them. A driver opens, reads, writes,
//! closes and sleeps; it decides nothing.
//!
//! What it may rely on: no [`Action::Write`](crate::exchange::Action::Write) before it reported `opened`; `closed` is the last fact of every
//! channel, also of one that never opened and of one that we closed; one writer per channel.
//!
//! What it owes: it reports every byte written with `written`, since what waits for it (the next request on a connection, the end of an
//! answer) waits for good; when a write fails it reads on, since the answer may be there; it reports `closed` once it has carried out a
//! [`Shutdown::Abort`](crate::exchange::Shutdown::Abort), or a [`Shutdown::WriteHalf`](crate::exchange::Shutdown::WriteHalf) after the other
//! side had ended too, and for a program once that has exited and its output was read to the end.

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
