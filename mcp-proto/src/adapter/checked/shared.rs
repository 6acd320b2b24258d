//! The checked server that many tasks share.

use super::rules::ConnectionRules;
use super::{Checkable, Checked};
use crate::error::{Diagnostic, Refused};
use crate::exchange::{ConnectionId, Peer};
use crate::input::*;
use crate::server::{Event, ServerCommands};
use crate::time::Instant;
use crate::wired::{Connection, HandshakeReservation, Kind, SharedServer, Turn, TurnReply};

impl Checkable for SharedServer {
    fn connection(&self) -> Option<ConnectionRules> {
        None
    }

    fn next_timeout(&self) -> Option<Instant> {
        self.poll_timeout()
    }
}

impl Checked<SharedServer> {
    /// As [`SharedServer::accept`]. The connection has no checks: wrap it as well.
    #[track_caller]
    pub fn accept(&mut self, now: Instant, kind: Kind, peer: Peer) -> Connection {
        self.input(now, |server| server.accept(now, kind, peer))
    }

    /// As [`SharedServer::begin_handshake`].
    #[track_caller]
    pub fn begin_handshake(&mut self, now: Instant, connection: u64) -> Option<HandshakeReservation> {
        self.input(now, |server| server.begin_handshake(now, connection))
    }

    /// As [`SharedServer::exchange`].
    #[track_caller]
    pub fn exchange(&mut self, now: Instant, turn: Turn) -> TurnReply {
        if let Some(watch) = &mut self.watch {
            watch.exchanged(ConnectionId(turn.connection()));
        }
        self.input(now, |server| server.exchange(now, turn))
    }

    /// As [`SharedServer::poll_woken`].
    pub fn poll_woken(&mut self) -> Option<u64> {
        let woken = self.engine.poll_woken();
        if let Some(watch) = &mut self.watch {
            watch.took_output(woken.is_some());
            woken.into_iter().for_each(|number| watch.woken(ConnectionId(number)));
        }
        woken
    }

    /// As [`SharedServer::poll_event`].
    pub fn poll_event(&mut self) -> Option<Event> {
        let event = self.engine.poll_event();
        if let Some(watch) = &mut self.watch {
            // Connections may wait for their turn.
            watch.took_output(true);
            if let Some(Event::Terminated) = event {
                watch.terminated();
            }
        }
        event
    }

    /// As [`SharedServer::report`].
    #[track_caller]
    pub fn report(&mut self, now: Instant, diagnostic: Diagnostic) {
        self.input(now, |server| server.report(now, diagnostic));
    }

    /// As [`SharedServer::handle_timeout`].
    #[track_caller]
    pub fn handle_timeout(&mut self, now: Instant) {
        self.check_timeout(now);
        self.engine.handle_timeout(now);
        self.arm();
    }
}

impl ServerCommands for Checked<SharedServer> {
    #[track_caller]
    fn act(&mut self, now: Instant, command: ServerCommand) -> Result<Applied, Refused<ServerCommand>> {
        self.input(now, |engine| engine.act(now, command))
    }
}
