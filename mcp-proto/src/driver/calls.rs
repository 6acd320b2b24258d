//! The calls and notifications that someone waits for, and what has come in for each.

use crate::call::{CallId, Progress, RawResult};
use crate::client::{Event, Termination};
use crate::error::CallError;
use crate::exchange::{Closed, Sent};
use crate::input::NotificationId;
use crate::model::lifecycle::ServerInfo;
use alloc::collections::{BTreeMap, VecDeque};

/// The calls and notifications of one client that someone waits for, and how the client itself fares. `W` is whatever wakes the one who waits.
#[derive(Debug)]
pub struct Calls<W> {
    waiting: BTreeMap<CallId, Waiting<W>>,
    notifications: BTreeMap<NotificationId, (Option<Result<(), CallError>>, W)>,
    ready: Option<ServerInfo>,
    terminated: Option<Termination>,
}

#[derive(Debug)]
struct Waiting<W> {
    progress: VecDeque<Progress>,
    outcome: Option<Result<RawResult, CallError>>,
    wake: W,
}

/// Whom an event concerns.
#[derive(Debug)]
pub enum Noted<'a, W> {
    /// Whoever waits for this call or notification; `None` if nobody does.
    Call(Option<&'a mut W>),
    /// Whoever waits for the start or the end of the client, and then the application.
    Milestone(Event),
    /// The application.
    Other(Event),
}

/// What has come in for one call since it was last asked for.
#[derive(Debug)]
pub struct Collected {
    /// Progress, oldest first. It came before the outcome.
    pub progress: VecDeque<Progress>,
    /// How it ended. If it has, it is forgotten.
    pub outcome: Option<Result<RawResult, CallError>>,
}

impl<W> Default for Calls<W> {
    fn default() -> Self {
        Self { waiting: BTreeMap::new(), notifications: BTreeMap::new(), ready: None, terminated: None }
    }
}

impl<W> Calls<W> {
    /// Progress of one call that waits for its caller. A caller that is slower than that misses the oldest, never the newest.
    pub const MAX_PROGRESS: usize = 256;

    /// Someone waits for this call from now on.
    pub fn begin(&mut self, call: CallId, wake: W) {
        self.waiting.insert(call, Waiting { progress: VecDeque::new(), outcome: None, wake });
    }

    /// Takes note of an event of the engine, and says whom it concerns.
    pub fn note(&mut self, event: Event) -> Noted<'_, W> {
        match event {
            Event::Progress { call, progress } => Noted::Call(self.waiting.get_mut(&call).map(|waiting| {
                if waiting.progress.len() >= Self::MAX_PROGRESS {
                    waiting.progress.pop_front();
                }
                waiting.progress.push_back(progress);
                &mut waiting.wake
            })),
            Event::Ended { call, outcome } => Noted::Call(self.waiting.get_mut(&call).map(|waiting| {
                // The first end counts.
                waiting.outcome.get_or_insert(outcome);
                &mut waiting.wake
            })),
            Event::NotificationEnded { notification, outcome } => {
                Noted::Call(self.notifications.get_mut(&notification).map(|(end, wake)| {
                    *end = Some(outcome);
                    wake
                }))
            }
            Event::Ready(info) => {
                self.ready = Some(info.clone());
                Noted::Milestone(Event::Ready(info))
            }
            Event::Terminated(why) => {
                self.terminated = Some(why.clone());
                Noted::Milestone(Event::Terminated(why))
            }
            other => Noted::Other(other),
        }
    }

    /// Takes what has come in for a call; `None` if nobody is known to wait for it.
    pub fn collect(&mut self, call: CallId) -> Option<Collected> {
        let waiting = self.waiting.get_mut(&call)?;
        let progress = core::mem::take(&mut waiting.progress);
        let outcome = waiting.outcome.take();
        if outcome.is_some() {
            self.waiting.remove(&call);
        }
        Some(Collected { progress, outcome })
    }

    /// Someone waits for the end of this notification from now on.
    pub fn begin_notification(&mut self, notification: NotificationId, wake: W) {
        self.notifications.insert(notification, (None, wake));
    }

    /// How a notification ended; it is forgotten then. `None`: it has not ended, or nobody is known to wait for it.
    pub fn collect_notification(&mut self, notification: NotificationId) -> Option<Result<(), CallError>> {
        let outcome = self.notifications.get_mut(&notification)?.0.take()?;
        self.notifications.remove(&notification);
        Some(outcome)
    }

    /// What wakes the one who waits for this notification.
    pub fn wake_notification(&mut self, notification: NotificationId) -> Option<&mut W> {
        self.notifications.get_mut(&notification).map(|(_, wake)| wake)
    }

    /// Nobody waits for this notification any more. Gives back what would have woken the one who did.
    pub fn forget_notification(&mut self, notification: NotificationId) -> Option<W> {
        self.notifications.remove(&notification).map(|(_, wake)| wake)
    }

    /// What wakes the one who waits for this call.
    pub fn wake(&mut self, call: CallId) -> Option<&mut W> {
        self.waiting.get_mut(&call).map(|waiting| &mut waiting.wake)
    }

    /// Nothing is driven any more: the client, and every call and notification that has not ended, ends as aborted by this side. Yields what wakes the
    /// ones who wait.
    pub fn abandon(&mut self) -> impl Iterator<Item = &mut W> {
        self.terminated.get_or_insert(Termination::Closed(Closed::Aborted));
        let aborted = || CallError::Closed { sent: Sent::Maybe, why: Closed::Aborted };
        let calls = self.waiting.values_mut().map(move |waiting| {
            waiting.outcome.get_or_insert_with(|| Err(aborted()));
            &mut waiting.wake
        });
        let notifications = self.notifications.values_mut().map(move |(end, wake)| {
            end.get_or_insert_with(|| Err(aborted()));
            wake
        });
        calls.chain(notifications)
    }

    /// Nobody waits for this call any more.
    pub fn forget(&mut self, call: CallId) {
        self.waiting.remove(&call);
    }

    /// The calls that someone waits for, in the order of their ids.
    pub fn ids(&self) -> impl ExactSizeIterator<Item = CallId> {
        self.waiting.keys().copied()
    }

    /// What the server said of itself, once the two sides have agreed.
    pub const fn ready(&self) -> Option<&ServerInfo> {
        self.ready.as_ref()
    }

    /// Why the client has ended, once it has.
    pub const fn terminated(&self) -> Option<&Termination> {
        self.terminated.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    const CALL: CallId = CallId(7);

    fn ended(why: Closed) -> Event {
        Event::Ended { call: CALL, outcome: Err(CallError::Closed { sent: Sent::No, why }) }
    }

    #[test]
    fn a_call_gets_its_progress_in_order_then_its_first_end_and_is_forgotten() {
        let mut calls = Calls::default();
        calls.begin(CALL, "waker");
        for n in 0..3 {
            let event = Event::Progress { call: CALL, progress: Progress::new(f64::from(n)) };
            assert!(matches!(calls.note(event), Noted::Call(Some(&mut "waker"))));
        }
        let early = calls.collect(CALL).expect("known");
        assert!(early.progress.iter().map(|told| told.progress).eq([0.0, 1.0, 2.0]) && early.outcome.is_none());
        assert!(matches!(calls.note(ended(Closed::Eof)), Noted::Call(Some(_))));
        assert!(matches!(calls.note(ended(Closed::Reset)), Noted::Call(Some(_))));
        let end = calls.collect(CALL).expect("known");
        assert_eq!(end.outcome, Some(Err(CallError::Closed { sent: Sent::No, why: Closed::Eof })));
        assert!(end.progress.is_empty() && calls.collect(CALL).is_none());
        assert!(matches!(calls.note(ended(Closed::Eof)), Noted::Call(None)));
    }

    #[test]
    fn a_slow_caller_misses_the_oldest_progress() {
        let mut calls = Calls::default();
        calls.begin(CALL, ());
        let count = Calls::<()>::MAX_PROGRESS + 2;
        for n in 0..count {
            calls.note(Event::Progress { call: CALL, progress: Progress::new(n as f64) });
        }
        let kept: Vec<f64> = calls.collect(CALL).expect("known").progress.iter().map(|told| told.progress).collect();
        assert_eq!((kept.len(), kept[0], kept[kept.len() - 1]), (count - 2, 2.0, (count - 1) as f64));
    }

    #[test]
    fn what_is_abandoned_ends_once() {
        let mut calls = Calls::default();
        calls.begin(CALL, 1);
        calls.begin(CallId(8), 2);
        calls.note(ended(Closed::Eof));
        assert!(calls.abandon().map(|wake| *wake).eq([1, 2]));
        assert_eq!(calls.terminated(), Some(&Termination::Closed(Closed::Aborted)));
        let mut end = |call| match calls.collect(call).and_then(|collected| collected.outcome) {
            Some(Err(CallError::Closed { why, .. })) => why,
            other => panic!("{other:?}"),
        };
        assert_eq!((end(CALL), end(CallId(8))), (Closed::Eof, Closed::Aborted));
    }

    #[test]
    fn what_concerns_no_call_is_handed_back() {
        let mut calls = Calls::<()>::default();
        let note = || Event::Notification { method: "m".into(), params: None };
        assert!(matches!(calls.note(note()), Noted::Other(event) if event == note()));
        let end = || Event::Terminated(Termination::Requested);
        assert!(matches!(calls.note(end()), Noted::Milestone(event) if event == end()));
        assert_eq!((calls.terminated(), calls.ready()), (Some(&Termination::Requested), None));
        calls.begin(CALL, ());
        calls.forget(CALL);
        assert_eq!(calls.ids().len(), 0);
    }
}
