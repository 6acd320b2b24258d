//! The checked client.

use super::rules::ConnectionRules;
use super::{Checkable, Checked};
use crate::call::{Call, Calling, Method};
use crate::client::{Event, FetchId, FetchRequest};
use crate::error::Refused;
use crate::exchange::{Action, ConnectionId, IoEvent};
use crate::input::*;
use crate::model::logging::LogLevel;
use crate::rpc::Object;
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
    /// Those of [`command`](Self::command). Events and ticks are never refused.
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

    /// As [`WiredClient::command`].
    ///
    /// # Errors
    /// [`Refused`] with the command.
    #[track_caller]
    pub fn command(&mut self, now: Instant, command: ClientCommand) -> Result<Applied, Refused<ClientCommand>> {
        self.act(now, |client| client.command(now, command))
    }

    /// As [`WiredClient::call`].
    ///
    /// # Errors
    /// [`Refused`] if the client is closed, a limit is reached, or the call cannot be encoded.
    #[track_caller]
    pub fn call<M: Method>(&mut self, now: Instant, call: Call<M>) -> Result<Calling<M>, Refused<Call<M>>> {
        self.act(now, |client| client.call(now, call))
    }

    /// As [`WiredClient::cancel`].
    #[track_caller]
    pub fn cancel(&mut self, now: Instant, call: CallId, reason: Option<&str>) {
        self.act(now, |client| client.cancel(now, call, reason));
    }

    /// As [`WiredClient::answer`].
    #[track_caller]
    pub fn answer(&mut self, now: Instant, to: InputToken, answer: InputAnswer) {
        self.act(now, |client| client.answer(now, to, answer));
    }

    /// As [`WiredClient::authorize`].
    #[track_caller]
    pub fn authorize(&mut self, now: Instant, to: AuthToken, with: Authorization) {
        self.act(now, |client| client.authorize(now, to, with));
    }

    /// As [`WiredClient::notify`].
    ///
    /// # Errors
    /// [`Refused`] with the params.
    #[track_caller]
    pub fn notify(&mut self, now: Instant, method: &str, params: Object) -> Result<(), Refused<Object>> {
        self.act(now, |client| client.notify(now, method, params))
    }

    /// As [`WiredClient::notify_tracked`].
    ///
    /// # Errors
    /// As [`notify`](Self::notify).
    #[track_caller]
    pub fn notify_tracked(
        &mut self,
        now: Instant,
        method: &str,
        params: Object,
    ) -> Result<NotificationId, Refused<Object>> {
        self.act(now, |client| client.notify_tracked(now, method, params))
    }

    /// As [`WiredClient::fetch`].
    ///
    /// # Errors
    /// As [`WiredClient::fetch`].
    #[track_caller]
    pub fn fetch(&mut self, now: Instant, id: FetchId, request: FetchRequest) -> Result<(), Refused<FetchRequest>> {
        self.act(now, |client| client.fetch(now, id, request))
    }

    /// As [`WiredClient::cancel_fetch`].
    #[track_caller]
    pub fn cancel_fetch(&mut self, now: Instant, id: FetchId) {
        self.act(now, |client| client.cancel_fetch(now, id));
    }

    /// As [`WiredClient::elicited`].
    #[track_caller]
    pub fn elicited(&mut self, now: Instant, id: &str) {
        self.act(now, |client| client.elicited(now, id));
    }

    /// As [`WiredClient::untrack`].
    #[track_caller]
    pub fn untrack(&mut self, now: Instant, notification: NotificationId) {
        self.act(now, |client| client.untrack(now, notification));
    }

    /// As [`WiredClient::watch`].
    ///
    /// # Errors
    /// [`Refused`] with the set.
    #[track_caller]
    pub fn watch(&mut self, now: Instant, watch: Watch) -> Result<(), Refused<Watch>> {
        self.act(now, |client| client.watch(now, watch))
    }

    /// As [`WiredClient::log_level`].
    #[track_caller]
    pub fn log_level(&mut self, now: Instant, level: Option<LogLevel>) {
        self.act(now, |client| client.log_level(now, level));
    }

    /// As [`WiredClient::roots_changed`].
    ///
    /// # Errors
    /// As [`WiredClient::roots_changed`].
    #[track_caller]
    pub fn roots_changed(&mut self, now: Instant) -> Result<(), Refused<()>> {
        self.act(now, |client| client.roots_changed(now))
    }

    /// As [`WiredClient::close`].
    #[track_caller]
    pub fn close(&mut self, now: Instant) {
        self.act(now, |client| client.close(now));
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
