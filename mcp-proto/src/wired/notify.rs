//! The notifications of a client over its connections: commands, and nothing else.

use super::WiredClient;
use crate::error::Refused;
use crate::input::{Applied, ClientCommand, Input, NotificationId};
use crate::rpc::Object;
use crate::time::Instant;

impl WiredClient {
    /// Sends a notification of a custom method, without a report of its delivery: see [`Client::notify`](crate::client::Client::notify).
    ///
    /// # Errors
    /// [`Refused`] if the client is closed or not yet ready, or a limit is reached.
    pub fn notify(&mut self, now: Instant, method: &str, params: Object) -> Result<(), Refused<Object>> {
        match self.apply(now, Input::Command(ClientCommand::Notify(method.into(), params))) {
            Ok(_) => Ok(()),
            Err(Refused { value: Input::Command(ClientCommand::Notify(_, params)), why }) => {
                Err(Refused { value: params, why })
            }
            Err(other) => unreachable!("invariant: what was refused is handed back: {other:?}"),
        }
    }

    /// Like [`notify`](Self::notify), and [`Event::NotificationEnded`](crate::client::Event::NotificationEnded) reports the delivery: see
    /// [`Client::notify_tracked`](crate::client::Client::notify_tracked).
    ///
    /// # Errors
    /// As [`notify`](Self::notify).
    pub fn notify_tracked(
        &mut self,
        now: Instant,
        method: &str,
        params: Object,
    ) -> Result<NotificationId, Refused<Object>> {
        match self.apply(now, Input::Command(ClientCommand::NotifyTracked(method.into(), params))) {
            Ok(Applied::Notification(id)) => Ok(id),
            Err(Refused { value: Input::Command(ClientCommand::NotifyTracked(_, params)), why }) => {
                Err(Refused { value: params, why })
            }
            other => unreachable!("invariant: a notification has an id or is handed back: {other:?}"),
        }
    }

    /// Stops tracking a notification: see [`Client::untrack`](crate::client::Client::untrack).
    pub fn untrack(&mut self, now: Instant, notification: NotificationId) {
        // It cannot be refused.
        let _ = self.apply(now, Input::Command(ClientCommand::Untrack(notification)));
    }
}
