//! The one queue of a client. Events of calls are never dropped; notifications and diagnostics that nobody takes are counted.

use super::{Event, Output};
use crate::error::Diagnostic;
use crate::exchange::{ExchangeId, Outgoing, Start};
use crate::rpc::RawJson;
use alloc::collections::VecDeque;
use alloc::string::String;

#[derive(Debug)]
pub(super) struct Outbox {
    queue: VecDeque<Output>,
    /// How many outputs were taken.
    taken: u64,
    /// How many of the queue may be dropped instead of queued.
    waiting: usize,
    max_soft: usize,
    lost_notifications: u64,
    lost_diagnostics: u64,
    finished: bool,
}

impl Outbox {
    pub(super) const fn new(max_soft: usize) -> Self {
        let queue = VecDeque::new();
        Self { queue, taken: 0, waiting: 0, max_soft, lost_notifications: 0, lost_diagnostics: 0, finished: false }
    }

    pub(super) fn start(&mut self, exchange: ExchangeId, start: Start) {
        self.queue.push_back(Output::Start(exchange, start));
    }

    pub(super) fn send(&mut self, exchange: ExchangeId, outgoing: Outgoing) {
        self.queue.push_back(Output::Send(exchange, outgoing));
    }

    pub(super) fn abort(&mut self, exchange: ExchangeId) {
        self.queue.push_back(Output::Abort(exchange));
    }

    pub(super) fn event(&mut self, event: Event) {
        self.queue.push_back(Output::Event(event));
    }

    pub(super) fn notification(&mut self, method: String, params: Option<RawJson>) {
        self.note(Event::Notification { method, params });
    }

    /// An event that counts as a notification where nobody takes it.
    pub(super) fn note(&mut self, event: Event) {
        match self.room() {
            true => self.event(event),
            false => self.lost_notifications += 1,
        }
    }

    pub(super) fn diagnostic(&mut self, diagnostic: Diagnostic) {
        self.soft(Event::Diagnostic(diagnostic));
    }

    /// An event that counts as a diagnostic where nobody takes it.
    pub(super) fn soft(&mut self, event: Event) {
        match self.room() {
            true => self.event(event),
            false => self.lost_diagnostics += 1,
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
        let soft = |event: &Event| {
            matches!(
                event,
                Event::Notification { .. }
                    | Event::ToolsChanged
                    | Event::Diagnostic(_)
                    | Event::PingMissed { .. }
                    | Event::Reconnecting { .. }
            )
        };
        if matches!(&output, Some(Output::Event(event)) if soft(event)) {
            self.waiting -= 1;
        }
        output
    }

    /// Takes a place for something that may be dropped. What was lost before is told first, so that order is kept.
    fn room(&mut self) -> bool {
        if self.waiting >= self.max_soft || self.finished {
            return false;
        }
        self.tell_lost();
        self.waiting += 1;
        true
    }

    fn tell_lost(&mut self) {
        let lost = (core::mem::take(&mut self.lost_notifications), core::mem::take(&mut self.lost_diagnostics));
        if lost != (0, 0) {
            self.event(Event::Lost { notifications: lost.0, diagnostics: lost.1 });
        }
    }
}
