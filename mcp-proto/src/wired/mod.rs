//! Seam A: engines with their connections. Bytes and time in, actions out.
//!
//! A [`WiredClient`] or a [`WiredServer`] owns its engine and its [`Connection`]s. A driver opens,
//! reads, writes and closes sockets and processes, and sleeps. It makes no decision. Its loop:
//! report I/O with `handle_io`, call `handle_timeout` at the instant of `poll_timeout`, and execute
//! the actions of `poll_output`. To run each connection in a task or a thread of its own, use a
//! [`SharedServer`]: the task locks it, gives it a [`Turn`] and gets a [`TurnReply`].
//!
//! # What a driver may rely on
//!
//! * For a connection that the driver opens, the engine emits no
//!   [`Action::Write`](crate::exchange::Action::Write) before the driver has reported
//!   [`IoEvent::Opened`](crate::exchange::IoEvent::Opened). An accepted connection is open already.
//! * The writes to a connection come in their order, and must stay in it: use one writer.
//!
//! # What a driver must do
//!
//! * Report every written byte with [`IoEvent::Written`](crate::exchange::IoEvent::Written).
//!   Without it, the engine neither starts the next HTTP request on a connection nor ends a
//!   response.
//! * Continue to read after a failed write: the response may already be in the socket.
//! * Report [`IoEvent::Closed`](crate::exchange::IoEvent::Closed) exactly once for every
//!   connection, as its last event. That includes a connection that never opened.
//! * Report `Closed` of a socket once it has carried out a
//!   [`Shutdown::Abort`](crate::exchange::Shutdown::Abort), or once both directions have ended: the
//!   peer's, and the driver's by a [`Shutdown::WriteHalf`](crate::exchange::Shutdown::WriteHalf).
//! * Report `Closed` of a program once it has exited and its output was read to the end.
//!
//! `mcp_driver::check` makes an engine panic when its driver breaks one of these rules. Use it in
//! the tests of a driver.

mod client;
mod connection;
mod connections;
mod counts;
mod pool;
mod room;
mod server;
mod shared;
mod tally;
mod turn;

pub use crate::frame::Kind;
pub use client::{WiredClient, WiredTimer};
pub use connection::{Connection, ConnectionInput, ConnectionOutput, ConnectionTaken};
pub use room::HandshakeReservation;
pub use server::WiredServer;
pub use shared::{SharedServer, SharedServerInput, SharedServerTaken};
pub use turn::{Mail, Turn, TurnReply};

#[cfg(test)]
mod tests;
