//! What a driver gives to a connection and takes from it, also for an observer.

use super::Connection;
use crate::exchange::IoEvent;
use crate::observer::{Observable, Observer};
use crate::time::Instant;
use crate::wired::connection::Arc;
use crate::wired::connection::Shutdown;
use alloc::boxed::Box;
use bytes::Bytes;

/// An instruction of a connection for its driver, in order.
#[derive(Clone, PartialEq, Debug)]
#[must_use]
pub enum ConnectionOutput {
    /// Begin TLS with the server of this name: see
    /// [`Action::Secure`](crate::exchange::Action::Secure).
    Secure(Arc<str>),
    /// Write these bytes.
    Write(Bytes),
    /// Stop reading (`false`), or read again (`true`). A driver reads from the start. Only changes
    /// are emitted.
    Read(bool),
    /// Close the connection in this way.
    Close(Shutdown),
}

/// What a driver gives to a [`Connection`], for its observer.
#[derive(Clone, PartialEq, Debug)]
pub enum ConnectionInput {
    /// [`Connection::handle_io`].
    Event(IoEvent),
    /// An output of the engine, or the end of the connection.
    Command,
    /// [`Connection::handle_timeout`].
    Tick,
}

/// What a driver takes from a [`Connection`], for its observer.
#[derive(Clone, PartialEq, Debug)]
pub enum ConnectionTaken {
    /// An instruction: [`Connection::poll_output`]. There was none if this is absent.
    Output(ConnectionOutput),
    /// An event, after which others may wait: [`Connection::poll_event`].
    Event,
    /// All events: [`Connection::take_turn`].
    Turn,
}

impl Observable for Connection {
    type Input = ConnectionInput;
    type Returned = ();
    type Output = ConnectionTaken;

    fn observe(&mut self, mut observer: Box<dyn Observer<Self>>) {
        observer.begin(self);
        self.observers.push(observer);
    }
}

impl Connection {
    /// Passes an input to the observers, before the connection applies it.
    #[track_caller]
    pub(super) fn observe_input(&mut self, now: Instant, input: impl FnOnce() -> ConnectionInput) {
        if !self.observers.is_empty() {
            let timer = self.next_timeout();
            self.observers.input(now, timer, &input());
        }
    }
}
