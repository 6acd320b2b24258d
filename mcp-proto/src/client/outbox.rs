//! The one queue of a client. Events of calls are never dropped; notifications and diagnostics that nobody takes are counted.

use super::{Event, Output};
use crate::droppable::{Droppable, EVENT, Weigh, Weight};
use crate::error::Diagnostic;
use crate::exchange::{ExchangeId, Outbound, Start};
use crate::limits::ClientLimits;
use crate::rpc::RawJson;
use alloc::collections::VecDeque;
use alloc::string::String;

#[derive(Debug)]
pub(super) struct Outbox {
    queue: VecDeque<Output>,
    /// How many outputs were taken.
    taken: u64,
    /// Those of the queue that may be dropped instead of queued.
    droppable: Droppable,
    lost_notifications: u64,
    lost_diagnostics: u64,
    finished: bool,
}

impl Outbox {
    pub(super) const fn new(limits: &ClientLimits) -> Self {
        Self {
            queue: VecDeque::new(),
            taken: 0,
            droppable: Droppable::new(limits.max_queued_events, limits.max_queued_event_bytes),
            lost_notifications: 0,
            lost_diagnostics: 0,
            finished: false,
        }
    }

    pub(super) fn start(&mut self, exchange: ExchangeId, start: Start) {
        self.queue.push_back(Output::Start(exchange, start));
    }

    pub(super) fn send(&mut self, exchange: ExchangeId, outgoing: Outbound) {
        self.queue.push_back(Output::Send(exchange, outgoing));
    }

    pub(super) fn abort(&mut self, exchange: ExchangeId) {
        self.queue.push_back(Output::Abort(exchange));
    }

    pub(super) fn event(&mut self, event: Event) {
        self.queue.push_back(Output::Event(event));
    }

    pub(super) fn notification(&mut self, method: String, params: Option<RawJson>) {
        // The rest of its message does not wait with it, and what waits is what is counted.
        let params = params.as_ref().map(RawJson::detached);
        self.soft(Event::Notification { method, params });
    }

    pub(super) fn diagnostic(&mut self, diagnostic: Diagnostic) {
        self.soft(Event::Diagnostic(diagnostic));
    }

    /// An event that is counted instead of queued if there is no room for it, as its [`Weigh`] says. What was lost before is told first, so
    /// that order is kept.
    pub(super) fn soft(&mut self, event: Event) {
        match event.weight() {
            Weight::Notification(size) if self.finished || !self.droppable.enter(size) => self.lost_notifications += 1,
            Weight::Diagnostic(size) if self.finished || !self.droppable.enter(size) => self.lost_diagnostics += 1,
            Weight::Kept | Weight::Notification(_) | Weight::Diagnostic(_) | Weight::Lost(..) => {
                self.tell_lost();
                self.event(event);
            }
        }
    }

    /// Queues the last event of all; what was lost is told before it.
    pub(super) fn finish(&mut self, last: Event) {
        self.tell_lost();
        self.event(last);
        self.finished = true;
    }

    /// How many outputs were taken.
    pub(super) const fn taken(&self) -> u64 {
        self.taken
    }

    /// How many outputs there were, those that wait included.
    pub(super) fn pushed(&self) -> u64 {
        self.taken + self.queue.len() as u64
    }

    pub(super) fn pop(&mut self) -> Option<Output> {
        if self.queue.is_empty() && !self.finished {
            self.tell_lost();
        }
        let output = self.queue.pop_front();
        self.taken += u64::from(output.is_some());
        if let Some(Output::Event(event)) = &output {
            self.droppable.leave(event.weight());
        }
        output
    }

    fn tell_lost(&mut self) {
        let lost = (core::mem::take(&mut self.lost_notifications), core::mem::take(&mut self.lost_diagnostics));
        if lost != (0, 0) {
            self.event(Event::Lost { notifications: lost.0, diagnostics: lost.1 });
        }
    }
}

impl Weigh for Event {
    fn weight(&self) -> Weight {
        match self {
            Self::Notification { method, params } => Weight::of_notification(method, params.as_ref()),
            Self::ToolsChanged => Weight::Notification(EVENT),
            Self::Diagnostic(diagnostic) => Weight::of_diagnostic(diagnostic),
            Self::Reconnecting { last_event, .. } => {
                Weight::Diagnostic(EVENT + last_event.as_ref().map_or(0, |id| id.len()))
            }
            // What a driver may see without end, and nobody waits for.
            Self::PingMissed { .. } | Self::ChannelClosing { .. } | Self::ChannelClosed { .. } => {
                Weight::Diagnostic(EVENT)
            }
            Self::Lost { notifications, diagnostics } => Weight::Lost(*notifications, *diagnostics),
            _ => Weight::Kept,
        }
    }

    fn lost(notifications: u64, diagnostics: u64) -> Self {
        Self::Lost { notifications, diagnostics }
    }
}
