//! The checked server.

use super::rules::ConnectionRules;
use super::{Checkable, Checked};
use crate::error::Refused;
use crate::exchange::{Action, ConnectionId, IoEvent, Peer};
use crate::input::*;
use crate::server::{Event, ServerCommands};
use crate::time::Instant;
use crate::wired::{Kind, WiredServer};

impl Checkable for WiredServer {
    fn connection(&self) -> Option<ConnectionRules> {
        None
    }

    fn next_timeout(&self) -> Option<Instant> {
        self.poll_timeout()
    }
}

impl Checked<WiredServer> {
    /// As [`WiredServer::apply`].
    ///
    /// # Errors
    /// Those of [`act`](ServerCommands::act). Events and ticks are never refused.
    #[track_caller]
    pub fn apply(&mut self, now: Instant, input: WiredServerInput) -> Result<Applied, Refused<WiredServerInput>> {
        match &input {
            Input::Event(connection, event) => self.check_event(now, *connection, event),
            Input::Command(_) => self.check_input(now),
            Input::Tick => self.check_timeout(now),
        }
        let applied = self.engine.apply(now, input);
        self.arm();
        applied
    }

    /// As [`WiredServer::accept`].
    #[track_caller]
    pub fn accept(&mut self, now: Instant, kind: Kind, peer: Peer) -> ConnectionId {
        let id = self.input(now, |server| server.accept(now, kind, peer));
        if let Some(watch) = &mut self.watch {
            watch.add(ConnectionRules::open(id, false));
        }
        id
    }

    /// As [`WiredServer::handle_io`].
    #[track_caller]
    pub fn handle_io(&mut self, now: Instant, connection: ConnectionId, event: IoEvent) {
        self.check_event(now, connection, &event);
        self.engine.handle_io(now, connection, event);
        self.arm();
    }

    /// As [`WiredServer::handle_timeout`].
    #[track_caller]
    pub fn handle_timeout(&mut self, now: Instant) {
        self.check_timeout(now);
        self.engine.handle_timeout(now);
        self.arm();
    }

    /// As [`WiredServer::poll_output`].
    pub fn poll_output(&mut self) -> Option<Action<Event>> {
        let action = self.engine.poll_output();
        if let Some(watch) = &mut self.watch {
            watch.took_action(action.as_ref());
            if let Some(Action::Event(Event::Terminated)) = action {
                watch.terminated();
            }
        }
        action
    }
}

impl ServerCommands for Checked<WiredServer> {
    #[track_caller]
    fn act(&mut self, now: Instant, command: ServerCommand) -> Result<Applied, Refused<ServerCommand>> {
        self.input(now, |engine| engine.act(now, command))
    }
}
