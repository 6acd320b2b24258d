//! The checked connection of a server that many tasks share.

use super::rules::ConnectionRules;
use super::{Checkable, Checked};
use crate::error::Diagnostic;
use crate::exchange::{ConnectionId, ExchangeEvent, ExchangeId, IoEvent, Outbound};
use crate::time::Instant;
use crate::wired::{Connection, ConnectionOutput, Turn, TurnReply};

impl Checkable for Connection {
    fn connection(&self) -> Option<ConnectionRules> {
        let id = ConnectionId(self.number());
        let rules = if self.is_open() { ConnectionRules::open } else { ConnectionRules::opening };
        Some(rules(id, self.is_program()))
    }

    fn next_timeout(&self) -> Option<Instant> {
        self.poll_timeout()
    }
}

impl Checked<Connection> {
    /// As [`Connection::begin`].
    pub fn begin(&mut self, exchange: ExchangeId) {
        self.engine.begin(exchange);
        self.arm();
    }

    /// As [`Connection::handle_io`].
    #[track_caller]
    pub fn handle_io(&mut self, now: Instant, event: IoEvent) {
        self.check_event(now, self.id(), &event);
        let is_last = matches!(event, IoEvent::Closed(_));
        self.engine.handle_io(now, event);
        self.needs_turn();
        if let Some(watch) = self.watch.as_mut().filter(|_| is_last) {
            watch.terminated();
        }
    }

    /// As [`Connection::handle_timeout`].
    #[track_caller]
    pub fn handle_timeout(&mut self, now: Instant) {
        self.check_timeout(now);
        self.engine.handle_timeout(now);
        self.needs_turn();
    }

    /// As [`Connection::take_turn`].
    pub fn take_turn(&mut self) -> Turn {
        let turn = self.engine.take_turn();
        self.took_turn(true);
        turn
    }

    /// As [`Connection::apply`].
    #[track_caller]
    pub fn apply(&mut self, now: Instant, reply: TurnReply) {
        self.input(now, |connection| connection.apply(now, reply));
    }

    /// As [`Connection::send`].
    #[track_caller]
    pub fn send(&mut self, now: Instant, exchange: ExchangeId, outgoing: Outbound) {
        self.input(now, |connection| connection.send(now, exchange, outgoing));
    }

    /// As [`Connection::abort`].
    #[track_caller]
    pub fn abort(&mut self, now: Instant, exchange: ExchangeId) {
        self.input(now, |connection| connection.abort(now, exchange));
    }

    /// As [`Connection::close`].
    #[track_caller]
    pub fn close(&mut self, now: Instant) {
        self.input(now, |connection| connection.close(now));
    }

    /// As [`Connection::poll_event`].
    pub fn poll_event(&mut self) -> Option<(ExchangeId, ExchangeEvent)> {
        let event = self.engine.poll_event();
        self.took_turn(event.is_none());
        event
    }

    /// As [`Connection::poll_output`].
    pub fn poll_output(&mut self) -> Option<ConnectionOutput> {
        let output = self.engine.poll_output();
        let id = self.id();
        if let Some(watch) = &mut self.watch {
            watch.took_connection_output(id, output.as_ref());
        }
        output
    }

    /// As [`Connection::poll_diagnostic`].
    pub fn poll_diagnostic(&mut self) -> Option<Diagnostic> {
        self.engine.poll_diagnostic()
    }

    fn id(&self) -> ConnectionId {
        ConnectionId(self.number())
    }

    fn needs_turn(&mut self) {
        let id = self.id();
        if let Some(watch) = &mut self.watch {
            watch.needs_turn(id);
        }
        self.arm();
    }

    fn took_turn(&mut self, is_whole: bool) {
        if let Some(watch) = &mut self.watch {
            watch.took_turn(is_whole);
        }
        self.arm();
    }
}
