//! Notifications of the application whose end is reported (`notify_tracked`): taken by the server over HTTP, written on a duplex exchange, or
//! given up. Those that nobody tracks leave nothing here.

use super::era::Phase;
use super::{Client, Event};
use crate::error::{CallError, Refusal};
use crate::exchange::{Closed, Sent};
use crate::input::NotificationId;
use crate::rpc::Object;
use alloc::collections::BTreeMap;
use alloc::string::String;

/// The tracked notifications that have not ended, in the order in which they were sent.
#[derive(Debug, Default)]
pub(super) struct Notifications {
    last: u64,
    open: BTreeMap<NotificationId, Place>,
}

/// Where a tracked notification is.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// On an HTTP exchange of its own, which has the id.
    Http,
    /// Among the outputs of the engine, or taken by the driver, which has not reported since how much it has to write. It is taken once so
    /// many outputs are.
    Queued(u64),
    /// It is written once so many bytes of the duplex exchange are.
    Handed(u64),
}

impl Notifications {
    /// How many have not ended.
    fn len(&self) -> usize {
        self.open.len()
    }
}

impl Client {
    fn may_notify(&self) -> Result<(), Refusal> {
        let Phase::Ready(_) = self.phase else { return Err(Refusal::Closed) };
        if self.is_full() || self.has_many_exchanges() { Err(Refusal::Full) } else { Ok(()) }
    }

    pub(super) fn on_notify(&mut self, method: &str, params: &Object) -> Result<(), Refusal> {
        self.may_notify()?;
        self.send_notification(method, params, None);
        Ok(())
    }

    pub(super) fn on_notify_tracked(&mut self, method: &str, params: &Object) -> Result<NotificationId, Refusal> {
        self.may_notify()?;
        if self.notifications.len() >= self.config.limits.client.max_calls.max(1) {
            return Err(Refusal::Full);
        }
        let id = self.track();
        self.send_notification(method, params, Some(id));
        Ok(id)
    }

    /// A new id. The notification is sent next.
    fn track(&mut self) -> NotificationId {
        self.notifications.last += 1;
        let id = NotificationId(self.notifications.last);
        let place = if self.is_duplex() { Place::Queued(self.out.pushed() + 1) } else { Place::Http };
        self.notifications.open.insert(id, place);
        id
    }

    /// Nobody wants to know the end of this notification any more.
    pub(super) fn on_untrack(&mut self, id: NotificationId) {
        self.notifications.open.remove(&id);
    }

    /// A notification has ended; nothing happens if it is not tracked.
    pub(super) fn end_notification(&mut self, id: NotificationId, outcome: Result<(), CallError>) {
        if self.notifications.open.remove(&id).is_some() {
            self.out.event(Event::NotificationEnded { notification: id, outcome });
        }
    }

    /// The driver reported how much of the duplex exchange is written, and with what it has yet to write.
    pub(super) fn on_written(&mut self, written: u64, with_unsent: u64) {
        let taken = self.out.taken();
        for place in self.notifications.open.values_mut().rev() {
            match place {
                Place::Queued(output) if *output <= taken => *place = Place::Handed(with_unsent),
                Place::Queued(_) => {}
                Place::Handed(_) | Place::Http => break,
            }
        }
        while let Some((&id, &Place::Handed(end))) = self.notifications.open.first_key_value()
            && end <= written
        {
            self.end_notification(id, Ok(()));
        }
    }

    /// A hook refused what the driver took last, and that is no request: the notification, if one was taken last.
    pub(super) fn on_notification_denied(&mut self, reason: String) {
        let taken = self.out.taken();
        let denied =
            self.notifications.open.iter().find(|(_, place)| matches!(place, Place::Queued(at) if *at <= taken));
        if let Some(id) = denied.map(|(id, _)| *id) {
            self.end_notification(id, Err(CallError::Denied { sent: Sent::No, reason }));
        }
    }

    /// The exchange on which they are has ended, or the client has.
    pub(super) fn end_notifications(&mut self, why: &Closed) {
        while let Some((&id, _)) = self.notifications.open.first_key_value() {
            self.end_notification(id, Err(CallError::Closed { sent: Sent::Maybe, why: why.clone() }));
        }
    }
}
