//! The values that a connection and a server that many tasks share pass to each other in a turn.

use crate::error::Diagnostic;
use crate::exchange::{ExchangeEvent, ExchangeId, Outbound};
use crate::stats::Traffic;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// The events of a connection since the last turn: from
/// [`Connection::take_turn`](super::Connection::take_turn), for
/// [`SharedServer::exchange`](super::SharedServer::exchange).
#[derive(Debug)]
#[must_use = "the server does not learn what happened"]
pub struct Turn {
    pub(super) connection: u64,
    pub(super) events: Vec<(ExchangeId, ExchangeEvent)>,
    pub(super) diagnostics: Vec<Diagnostic>,
    pub(super) traffic: Traffic,
    pub(super) is_closed: bool,
}

impl Turn {
    /// Returns the number of the connection.
    pub fn connection(&self) -> u64 {
        self.connection
    }

    /// Returns whether the turn has no events. Counted bytes do not matter.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty() && self.diagnostics.is_empty() && !self.is_closed
    }
}

/// The outputs of the server for a connection: from
/// [`SharedServer::exchange`](super::SharedServer::exchange), for
/// [`Connection::apply`](super::Connection::apply).
#[derive(Debug)]
#[must_use = "the client does not get it"]
pub struct TurnReply(pub(super) VecDeque<Mail>);

impl TurnReply {
    /// Returns whether there is nothing to send.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns its parts, in order, for a log.
    pub fn iter(&self) -> impl Iterator<Item = &Mail> {
        self.0.iter()
    }
}

/// One part of a [`TurnReply`].
#[derive(Clone, PartialEq, Debug)]
pub enum Mail {
    /// Send this on an exchange.
    Send(ExchangeId, Outbound),
    /// Abort an exchange.
    Abort(ExchangeId),
    /// Close the connection: the server has shut down.
    Close,
    /// Abort the connection: it did not close in time.
    Terminate,
}
