//! The commands about what is watched and logged, and about tracked notifications.

use super::WiredClient;
use crate::error::Refused;
use crate::input::{Applied, ClientCommand, Input, NotificationId, Watch};
use crate::model::logging::LogLevel;
use crate::time::Instant;

impl WiredClient {
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

    /// Stops tracking a notification: see [`Client::untrack`](crate::Client::untrack).
    pub fn untrack(&mut self, now: Instant, notification: NotificationId) {
        self.done(now, ClientCommand::Untrack(notification));
    }
}
