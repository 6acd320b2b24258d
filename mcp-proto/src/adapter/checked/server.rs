//! The checked server.

use super::rules::ConnectionRules;
use super::{Checkable, Checked};
use crate::error::Refused;
use crate::exchange::{Action, ConnectionId, IoEvent, Peer};
use crate::input::*;
use crate::server::Event;
use crate::time::Instant;
use crate::wired::{Kind, WiredServer};
use core::time::Duration;

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
    /// Those of [`command`](Self::command). Events and ticks are never refused.
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
        let id = self.act(now, |server| server.accept(now, kind, peer));
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

    /// As [`WiredServer::command`].
    ///
    /// # Errors
    /// [`Refused`] with the command.
    #[track_caller]
    pub fn command(&mut self, now: Instant, command: ServerCommand) -> Result<Applied, Refused<ServerCommand>> {
        self.act(now, |server| server.command(now, command))
    }

    /// As [`WiredServer::respond`].
    #[track_caller]
    pub fn respond(&mut self, now: Instant, answer: Answer) {
        self.act(now, |server| server.respond(now, answer));
    }

    /// As [`WiredServer::notify`].
    ///
    /// # Errors
    /// [`Refused`] with the notification.
    #[track_caller]
    pub fn notify(&mut self, now: Instant, to: RequestKey, note: Note) -> Result<(), Refused<Note>> {
        self.act(now, |server| server.notify(now, to, note))
    }

    /// As [`WiredServer::publish`].
    #[track_caller]
    pub fn publish(&mut self, now: Instant, change: Change) {
        self.act(now, |server| server.publish(now, change));
    }

    /// As [`WiredServer::elicited`].
    #[track_caller]
    pub fn elicited(&mut self, now: Instant, id: &str) {
        self.act(now, |server| server.elicited(now, id));
    }

    /// As [`WiredServer::revoke`].
    #[track_caller]
    pub fn revoke(&mut self, now: Instant, principal: &Principal) {
        self.act(now, |server| server.revoke(now, principal));
    }

    /// As [`WiredServer::admit`].
    #[track_caller]
    pub fn admit(&mut self, now: Instant, to: AdmitToken, admission: Admission) {
        self.act(now, |server| server.admit(now, to, admission));
    }

    /// As [`WiredServer::shutdown`].
    #[track_caller]
    pub fn shutdown(&mut self, now: Instant, grace: Duration) {
        self.act(now, |server| server.shutdown(now, grace));
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
