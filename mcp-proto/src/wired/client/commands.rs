//! The commands of an application that make no call.

use super::WiredClient;
use crate::client::{FetchId, FetchRequest};
use crate::error::Refused;
use crate::input::{
    Applied, AuthToken, Authorization, CallId, ClientCommand, Input, InputAnswer, InputToken, NotificationId, Watch,
};
use crate::model::logging::LogLevel;
use crate::time::Instant;
use alloc::boxed::Box;

impl WiredClient {
    /// Cancels a call. Does nothing if it has ended.
    pub fn cancel(&mut self, now: Instant, call: CallId, reason: Option<&str>) {
        self.done(now, ClientCommand::Cancel(call, reason.map(Into::into)));
    }

    /// Answers a request of the server for input. Does nothing if the server withdrew the request.
    pub fn answer(&mut self, now: Instant, to: InputToken, answer: InputAnswer) {
        self.done(now, ClientCommand::Answer(to.key(), answer));
    }

    /// Answers a challenge of the server. Does nothing if it was answered, or after the end.
    pub fn authorize(&mut self, now: Instant, to: AuthToken, with: Authorization) {
        self.done(now, ClientCommand::Authorize(to.key(), with));
    }

    /// Makes an HTTP request that is not MCP: see [`Client::fetch`](crate::Client::fetch).
    ///
    /// # Errors
    /// As [`Client::fetch`](crate::Client::fetch).
    pub fn fetch(&mut self, now: Instant, id: FetchId, request: FetchRequest) -> Result<(), Refused<FetchRequest>> {
        self.begin(now, || Input::Command(ClientCommand::Fetch(id, Box::new(request.clone()))));
        let begun = self.client.fetch(self.now, id, request);
        self.end(begun.as_ref().map(|()| Applied::Done).map_err(|refused| &refused.why));
        begun
    }

    /// Cancels such a request: see [`Client::cancel_fetch`](crate::Client::cancel_fetch). Does
    /// nothing if it has ended.
    pub fn cancel_fetch(&mut self, now: Instant, id: FetchId) {
        self.done(now, ClientCommand::CancelFetch(id));
    }

    /// The user says that a web page is complete: see
    /// [`Client::elicited`](crate::Client::elicited).
    pub fn elicited(&mut self, now: Instant, id: &str) {
        self.done(now, ClientCommand::Elicited(id.into()));
    }

    /// Stops tracking a notification: see [`Client::untrack`](crate::Client::untrack).
    pub fn untrack(&mut self, now: Instant, notification: NotificationId) {
        self.done(now, ClientCommand::Untrack(notification));
    }

    /// Sets the changes that the application watches: see [`Client::watch`](crate::Client::watch).
    ///
    /// # Errors
    /// As [`Client::watch`](crate::Client::watch).
    pub fn watch(&mut self, now: Instant, watch: Watch) -> Result<(), Refused<Watch>> {
        self.begin(now, || Input::Command(ClientCommand::Watch(watch.clone())));
        let watched = self.client.watch(self.now, watch);
        self.end(watched.as_ref().map(|()| Applied::Done).map_err(|refused| &refused.why));
        watched
    }

    /// Requests log messages of this level or above: see
    /// [`Client::log_level`](crate::Client::log_level).
    pub fn log_level(&mut self, now: Instant, level: Option<LogLevel>) {
        self.done(now, ClientCommand::LogLevel(level));
    }

    /// Notifies the server that the roots have changed: see
    /// [`Client::roots_changed`](crate::Client::roots_changed).
    ///
    /// # Errors
    /// As [`Client::roots_changed`](crate::Client::roots_changed).
    pub fn roots_changed(&mut self, now: Instant) -> Result<(), Refused<()>> {
        self.begin(now, || Input::Command(ClientCommand::RootsChanged));
        let notified = self.client.roots_changed(self.now);
        self.end(notified.as_ref().map(|()| Applied::Done).map_err(|refused| &refused.why));
        notified
    }

    /// Shuts down in order. The last output is
    /// [`Event::Terminated`](crate::client::Event::Terminated). A second call does nothing.
    pub fn close(&mut self, now: Instant) {
        self.done(now, ClientCommand::Close);
    }
}
