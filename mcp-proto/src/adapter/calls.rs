//! The calls, notifications and fetches that have a waiter, and the events received for each.

use crate::call::{CallId, Progress, RawResult};
use crate::client::{Event, FetchError, FetchId, FetchResponse, Termination};
use crate::error::CallError;
use crate::exchange::{Closed, Sent};
use crate::input::NotificationId;
use crate::model::lifecycle::ServerInfo;
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};

/// The calls and notifications of one client that have a waiter, and the state of the client
/// itself. `W` wakes a waiter.
#[derive(Debug)]
pub struct Calls<W> {
    waiting: BTreeMap<CallId, Waiting<W>>,
    notifications: BTreeMap<NotificationId, (Option<Result<(), CallError>>, W)>,
    fetches: BTreeMap<FetchId, (Option<Fetched>, W)>,
    ready: Option<ServerInfo>,
    terminated: Option<Termination>,
}

/// The outcome of a fetch.
pub(crate) type Fetched = Result<Box<FetchResponse>, FetchError>;

#[derive(Debug)]
struct Waiting<W> {
    progress: VecDeque<Progress>,
    outcome: Option<Result<RawResult, CallError>>,
    wake: W,
}

/// The receiver of an event.
#[derive(Debug)]
pub enum Noted<'a, W> {
    /// The waiter of this call, notification or fetch. `None` if there is none.
    Call(Option<&'a mut W>),
    /// The waiters for the start or the end of the client, and then the application.
    Milestone(Event),
    /// The application.
    Other(Event),
}

/// What was received for one call since the last [`collect`](Calls::collect).
#[derive(Debug)]
pub struct Collected {
    /// Progress, oldest first. It precedes the outcome.
    pub progress: VecDeque<Progress>,
    /// The outcome. Once returned, the call is forgotten.
    pub outcome: Option<Result<RawResult, CallError>>,
}

impl<W> Default for Calls<W> {
    fn default() -> Self {
        let (waiting, notifications, fetches) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Self { waiting, notifications, fetches, ready: None, terminated: None }
    }
}

impl<W> Calls<W> {
    /// Maximum number of progress notifications that wait for one caller. A slower caller misses
    /// the oldest ones, never the newest.
    pub const MAX_PROGRESS: usize = 256;

    /// Adds a waiter for this call.
    pub fn begin(&mut self, call: CallId, wake: W) {
        self.waiting.insert(call, Waiting { progress: VecDeque::new(), outcome: None, wake });
    }

    /// Records an event of the engine, and returns its receiver.
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
                // The first outcome counts.
                waiting.outcome.get_or_insert(outcome);
                &mut waiting.wake
            })),
            Event::NotificationEnded { notification, outcome } => {
                Noted::Call(self.notifications.get_mut(&notification).map(|(end, wake)| {
                    *end = Some(outcome);
                    wake
                }))
            }
            Event::Fetched { fetch, outcome } => Noted::Call(self.fetches.get_mut(&fetch).map(|(end, wake)| {
                *end = Some(outcome);
                wake
            })),
            Event::Ready(info) => {
                self.ready = Some(ServerInfo::clone(&info));
                Noted::Milestone(Event::Ready(info))
            }
            Event::Terminated(why) => {
                self.terminated = Some(why.clone());
                Noted::Milestone(Event::Terminated(why))
            }
            other => Noted::Other(other),
        }
    }

    /// Returns what was received for a call. `None` if it has no waiter.
    pub fn collect(&mut self, call: CallId) -> Option<Collected> {
        let waiting = self.waiting.get_mut(&call)?;
        let progress = core::mem::take(&mut waiting.progress);
        let outcome = waiting.outcome.take();
        if outcome.is_some() {
            self.waiting.remove(&call);
        }
        Some(Collected { progress, outcome })
    }

    /// Adds a waiter for the end of this notification.
    pub fn begin_notification(&mut self, notification: NotificationId, wake: W) {
        self.notifications.insert(notification, (None, wake));
    }

    /// Returns the outcome of a notification, and forgets it. `None` if it has not ended or has no
    /// waiter.
    pub fn collect_notification(&mut self, notification: NotificationId) -> Option<Result<(), CallError>> {
        let outcome = self.notifications.get_mut(&notification)?.0.take()?;
        self.notifications.remove(&notification);
        Some(outcome)
    }

    /// Returns the waker for this notification.
    pub fn wake_notification(&mut self, notification: NotificationId) -> Option<&mut W> {
        self.notifications.get_mut(&notification).map(|(_, wake)| wake)
    }

    /// Removes the waiter of this notification. Returns its waker.
    pub fn forget_notification(&mut self, notification: NotificationId) -> Option<W> {
        self.notifications.remove(&notification).map(|(_, wake)| wake)
    }

    /// Adds a waiter for the end of this fetch.
    pub fn begin_fetch(&mut self, fetch: FetchId, wake: W) {
        self.fetches.insert(fetch, (None, wake));
    }

    /// Returns the outcome of a fetch, and forgets it. `None` if it has not ended or has no waiter.
    pub fn collect_fetch(&mut self, fetch: FetchId) -> Option<Fetched> {
        let outcome = self.fetches.get_mut(&fetch)?.0.take()?;
        self.fetches.remove(&fetch);
        Some(outcome)
    }

    /// Returns the waker for this fetch.
    pub fn wake_fetch(&mut self, fetch: FetchId) -> Option<&mut W> {
        self.fetches.get_mut(&fetch).map(|(_, wake)| wake)
    }

    /// Removes the waiter of this fetch, with an outcome that was not collected. Returns its waker.
    /// `None` if it has none, as when its outcome was collected.
    pub fn forget_fetch(&mut self, fetch: FetchId) -> Option<W> {
        self.fetches.remove(&fetch).map(|(_, wake)| wake)
    }

    /// Returns the waker for this call.
    pub fn wake(&mut self, call: CallId) -> Option<&mut W> {
        self.waiting.get_mut(&call).map(|waiting| &mut waiting.wake)
    }

    /// Ends the client, and every call and notification that has not ended, as aborted by this
    /// side, since its driver has stopped. Returns the wakers.
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
        let fetches = self.fetches.values_mut().map(|(end, wake)| {
            end.get_or_insert_with(|| Err(FetchError::Closed { sent: Sent::Maybe, why: Closed::Aborted }));
            wake
        });
        calls.chain(notifications).chain(fetches)
    }

    /// Removes the waiter of this call.
    pub fn forget(&mut self, call: CallId) {
        self.waiting.remove(&call);
    }

    /// Returns the calls that have a waiter, in the order of their ids.
    pub fn ids(&self) -> impl ExactSizeIterator<Item = CallId> {
        self.waiting.keys().copied()
    }

    /// Returns the description of the server, once negotiation has succeeded.
    pub const fn ready(&self) -> Option<&ServerInfo> {
        self.ready.as_ref()
    }

    /// Returns why the client ended, once it has.
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
    fn call_gets_progress_in_order_then_its_first_outcome() {
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
    fn slow_caller_misses_the_oldest_progress() {
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
    fn abandoned_calls_end_once() {
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
    fn forgotten_fetch_keeps_nothing_and_its_end_has_no_receiver() {
        let mut calls = Calls::default();
        let end = || Event::Fetched { fetch: FetchId(1), outcome: Err(FetchError::TooLong) };
        calls.begin_fetch(FetchId(1), "waker");
        assert_eq!(calls.forget_fetch(FetchId(1)), Some("waker"));
        assert!(matches!(calls.note(end()), Noted::Call(None)));
        // Forgotten after its end.
        calls.begin_fetch(FetchId(1), "waker");
        assert!(matches!(calls.note(end()), Noted::Call(Some(_))));
        assert_eq!(calls.forget_fetch(FetchId(1)), Some("waker"));
        // Nothing is left to forget of one whose outcome was collected.
        calls.begin_fetch(FetchId(1), "waker");
        calls.note(end());
        assert!(calls.collect_fetch(FetchId(1)).is_some() && calls.forget_fetch(FetchId(1)).is_none());
        assert!(calls.fetches.is_empty());
    }

    #[test]
    fn events_of_no_call_are_returned() {
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
