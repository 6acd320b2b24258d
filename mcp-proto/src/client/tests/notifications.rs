//! Notifications with a reported end, and pending notifications when the client is closed.

use super::*;
use crate::input::NotificationId;

impl Rig {
    pub(super) fn tracked(&mut self) -> NotificationId {
        let id = self.client.notify_tracked(self.now, "acme/note", Object::new()).expect("it is accepted");
        self.drain();
        id
    }

    /// Returns the ends of notifications, in order.
    pub(super) fn notified(&self) -> Vec<(u64, Result<(), CallError>)> {
        let end = |event: &Event| match event {
            Event::NotificationEnded { notification, outcome } => Some((notification.0, outcome.clone())),
            _ => None,
        };
        self.events.iter().filter_map(end).collect()
    }

    fn unsent(&mut self, bytes: usize) {
        self.handle_event(self.exchange(), ExchangeEvent::Unsent(bytes));
    }
}

#[test]
fn duplex_notification_ends_when_its_bytes_are_written() {
    let mut rig = Rig::modern();
    rig.unsent(100);
    let first = rig.tracked();
    rig.unsent(150);
    rig.unsent(50);
    assert_eq!(rig.notified(), [], "what was queued before it is written");
    let second = rig.tracked();
    // Another 50 bytes. The driver reports them only together with the next write.
    rig.unsent(80);
    rig.unsent(60);
    assert_eq!(rig.notified(), [], "20 bytes of the first are left");
    rig.unsent(30);
    assert_eq!(rig.notified(), [(first.0, Ok(()))]);
    rig.unsent(0);
    assert_eq!(rig.notified(), [(first.0, Ok(())), (second.0, Ok(()))]);
}

#[test]
fn duplex_notification_the_driver_has_not_taken_has_not_ended() {
    let mut rig = Rig::modern();
    rig.unsent(10);
    let id = rig.client.notify_tracked(rig.now, "acme/note", Object::new()).expect("it is accepted");
    // The driver reports earlier bytes before it takes the notification.
    rig.client.handle_event(rig.now, rig.exchange(), ExchangeEvent::Unsent(0));
    rig.drain();
    assert_eq!(rig.notified(), []);
    rig.unsent(40);
    rig.unsent(0);
    assert_eq!(rig.notified(), [(id.0, Ok(()))]);
}

#[test]
fn duplex_notification_ends_with_its_exchange() {
    let mut rig = Rig::modern();
    let id = rig.tracked();
    rig.unsent(40);
    rig.handle_event(rig.exchange(), ExchangeEvent::Failed { sent: Sent::Maybe, why: Closed::Reset });
    assert_eq!(rig.notified(), [(id.0, Err(CallError::Closed { sent: Sent::Maybe, why: Closed::Reset }))]);
    assert!(matches!(rig.events.last(), Some(Event::Terminated(_))), "{:?}", rig.events);
}

#[test]
fn notification_a_hook_refused_was_not_sent() {
    let mut rig = Rig::modern();
    let id = rig.tracked();
    rig.handle_event(rig.exchange(), ExchangeEvent::Unsendable { id: None, reason: "no".into() });
    rig.unsent(0);
    assert_eq!(rig.notified(), [(id.0, Err(CallError::Denied { sent: Sent::No, reason: "no".into() }))]);
}

#[test]
fn untracked_notification_is_sent_and_its_end_not_reported() {
    let mut rig = Rig::modern();
    let id = rig.tracked();
    rig.client.untrack(rig.now, id);
    rig.client.notify(rig.now, "acme/note", Object::new()).expect("it is accepted");
    rig.drain();
    rig.unsent(80);
    rig.unsent(0);
    assert_eq!(rig.methods(), ["acme/note", "acme/note"]);
    assert_eq!(rig.events, []);
}

#[test]
fn tracked_notifications_are_bounded() {
    let mut config = ClientConfig::given();
    config.limits.client.max_calls = 2;
    let mut rig = Rig::ready(ProtocolVersion::V2026_07_28, config);
    let first = rig.tracked();
    rig.tracked();
    let refused = rig.client.notify_tracked(rig.now, "acme/note", Object::new()).unwrap_err();
    assert_eq!(refused.why, Refusal::Full);
    rig.client.notify(rig.now, "acme/note", Object::new()).expect("one that is not tracked is accepted");
    rig.client.untrack(rig.now, first);
    rig.tracked();
}
