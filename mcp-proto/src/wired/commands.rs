//! The commands of an application that a client never refuses.

use super::WiredClient;
use crate::input::{AuthToken, Authorization, CallId, ClientCommand, InputAnswer, InputToken, NotificationId};
use crate::time::Instant;

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

    /// The user says that a web page is complete: see
    /// [`Client::elicited`](crate::Client::elicited).
    pub fn elicited(&mut self, now: Instant, id: &str) {
        self.done(now, ClientCommand::Elicited(id.into()));
    }

    /// Stops tracking a notification: see [`Client::untrack`](crate::Client::untrack).
    pub fn untrack(&mut self, now: Instant, notification: NotificationId) {
        self.done(now, ClientCommand::Untrack(notification));
    }

    /// Shuts down in order. The last output is
    /// [`Event::Terminated`](crate::client::Event::Terminated). A second call does nothing.
    pub fn close(&mut self, now: Instant) {
        self.done(now, ClientCommand::Close);
    }
}
