//! A connection as the task of a [`SharedServer`](crate::wired::SharedServer) owns it.

use super::{Connection, ConnectionRole};
use crate::stats::Traffic;
use crate::time::Instant;
use crate::wired::ConnectionInput;
use crate::wired::ConnectionTaken;
use crate::wired::turn::{Mail, Turn, TurnReply};
use alloc::vec::Vec;
use core::iter::from_fn;

/// A text of this size takes about a millisecond to parse in the worst case: brackets, in a build
/// without optimization.
const LONG: usize = 32 << 10;

impl Connection {
    /// Parses the bytes that were read, and returns the events since the last turn. The first step
    /// of a turn.
    pub fn take_turn(&mut self) -> Turn {
        let mut events = Vec::new();
        while let Some(event) = self.poll_event() {
            events.push(event);
            // A connection does not request the body of a client that expects `100 Continue` before
            // the engine has the head. A complete request is passed on in the same turn: no event
            // of another connection comes between a request and its peer.
            if self.conn.expects() && self.events.is_empty() {
                break;
            }
        }
        let diagnostics = from_fn(|| self.poll_diagnostic()).collect();
        self.observers.made_output(|| ConnectionTaken::Turn);
        let is_closed = self.is_closed() && !core::mem::replace(&mut self.left, true);
        Turn { connection: self.number, events, diagnostics, traffic: self.take_traffic(), is_closed }
    }

    /// Frames the outputs of the server. The third step of a turn.
    #[track_caller]
    pub fn apply(&mut self, now: Instant, reply: TurnReply) {
        self.observe_input(now, || ConnectionInput::Command);
        for mail in reply.0 {
            self.deliver(now, mail);
        }
    }

    pub(in crate::wired) fn deliver(&mut self, now: Instant, mail: Mail) {
        match mail {
            Mail::Send(exchange, part) => self.send(now, exchange, part),
            Mail::Abort(exchange) => self.abort(now, exchange),
            Mail::Close => self.close(now),
            Mail::Terminate => self.abort_channel(),
        }
    }

    /// Returns whether [`take_turn`](Self::take_turn) and the exchange with the server may take
    /// longer than about a millisecond, since a message of more than 32 KiB may be complete. An
    /// executor should let a thread of its own do both.
    pub fn takes_long(&self) -> bool {
        self.backlog > 0 && self.conn.buffered() > LONG
    }

    /// Returns whether the driver has reported that the connection is open, or accepted it.
    pub fn is_open(&self) -> bool {
        self.open
    }

    /// Returns whether the connection leads to a program.
    pub fn is_program(&self) -> bool {
        self.role == ConnectionRole::DuplexClient { program: true }
    }

    /// Takes the traffic of the connection since the last call. Bytes that were read and not yet
    /// parsed count as bytes, not as messages.
    pub(in crate::wired) fn take_traffic(&mut self) -> Traffic {
        core::mem::take(&mut self.traffic)
    }
}
