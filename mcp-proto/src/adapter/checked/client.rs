//! The checked client.

use super::rules::ConnectionRules;
use super::{Checkable, Checked};
use crate::client::{ClientCommands, Event};
use crate::error::Refused;
use crate::exchange::{Action, ConnectionId, IoEvent};
use crate::input::*;
use crate::time::Instant;
use crate::wired::{Tape, WiredClient};
use alloc::boxed::Box;

impl Checkable for WiredClient {
    fn connection(&self) -> Option<ConnectionRules> {
        self.given().map(|id| ConnectionRules::open(id, false))
    }

    fn next_timeout(&self) -> Option<Instant> {
        self.poll_timeout()
    }
}

impl Checked<WiredClient> {
    /// As [`WiredClient::show`].
    pub fn show(&mut self, tape: Box<dyn Tape>) {
        self.engine.show(tape);
    }

    /// As [`WiredClient::apply`].
    ///
    /// # Errors
    /// Those of [`act`](ClientCommands::act). Events and ticks are never refused.
    #[track_caller]
    pub fn apply(&mut self, now: Instant, input: WiredClientInput) -> Result<Applied, Refused<WiredClientInput>> {
        match &input {
            Input::Event(connection, event) => self.check_event(now, *connection, event),
            Input::Command(_) => self.check_input(now),
            Input::Tick => self.check_timeout(now),
        }
        let applied = self.engine.apply(now, input);
        self.arm();
        applied
    }

    /// As [`WiredClient::handle_io`].
    #[track_caller]
    pub fn handle_io(&mut self, now: Instant, connection: ConnectionId, event: IoEvent) {
        self.check_event(now, connection, &event);
        self.engine.handle_io(now, connection, event);
        self.arm();
    }

    /// As [`WiredClient::handle_timeout`].
    #[track_caller]
    pub fn handle_timeout(&mut self, now: Instant) {
        self.check_timeout(now);
        self.engine.handle_timeout(now);
        self.arm();
    }

    /// As [`WiredClient::poll_output`].
    pub fn poll_output(&mut self) -> Option<Action<Event>> {
        let action = self.engine.poll_output();
        if let Some(watch) = &mut self.watch {
            watch.took_action(action.as_ref());
            if let Some(Action::Event(Event::Terminated(_))) = action {
                watch.terminated();
            }
        }
        action
    }
}

impl ClientCommands for Checked<WiredClient> {
    #[track_caller]
    fn act(&mut self, now: Instant, command: ClientCommand) -> Result<Applied, Refused<ClientCommand>> {
        self.input(now, |engine| engine.act(now, command))
    }
}
