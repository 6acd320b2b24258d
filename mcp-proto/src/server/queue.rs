//! The one queue of outputs, and the bound on what the application has not taken.

use super::{Event, Output};
use crate::droppable::{Droppable, Weigh, Weight};
use crate::error::{Diagnostic, DiagnosticKind, excerpt};
use crate::exchange::ExchangeId;
use crate::limits::ServerLimits;
use crate::rpc::RawJson;
use alloc::collections::VecDeque;
use alloc::string::String;

/// Outputs in their order. Notifications and diagnostics beyond their bounds are counted instead of
/// kept; everything else is kept.
#[derive(Debug)]
pub(super) struct Queue {
    outputs: VecDeque<Output>,
    /// Those of `outputs` that may be dropped instead of queued.
    droppable: Droppable,
    lost_notifications: u64,
    lost_diagnostics: u64,
}

impl Queue {
    pub(super) const fn new(limits: &ServerLimits) -> Self {
        let droppable = Droppable::new(limits.max_queued_events, limits.max_queued_event_bytes);
        Self { outputs: VecDeque::new(), droppable, lost_notifications: 0, lost_diagnostics: 0 }
    }

    pub(super) fn push(&mut self, output: Output) {
        self.outputs.push_back(output);
    }

    pub(super) fn notification(&mut self, exchange: ExchangeId, method: String, params: Option<&RawJson>) {
        // The rest of its message does not wait with it, and what waits is what is counted.
        self.push_droppable(Event::Notification { exchange, method, params: params.map(RawJson::detached) });
    }

    pub(super) fn diagnostic(&mut self, kind: DiagnosticKind, detail: &str) {
        self.report(Diagnostic::new(kind, excerpt(detail)));
    }

    pub(super) fn report(&mut self, diagnostic: Diagnostic) {
        self.push_droppable(Event::Diagnostic(diagnostic));
    }

    /// The last output of all; what was lost is told before it.
    pub(super) fn terminate(&mut self) {
        if let Some(lost) = self.take_lost() {
            self.push(lost);
        }
        self.push(Output::Event(Event::Terminated));
    }

    pub(super) fn pop(&mut self) -> Option<Output> {
        let Some(output) = self.outputs.pop_front() else { return self.take_lost() };
        if let Output::Event(event) = &output {
            self.droppable.leave(event.weight());
        }
        Some(output)
    }

    /// What was lost is told at its place in the order: before the first event that is kept again.
    fn push_droppable(&mut self, event: Event) {
        match event.weight() {
            Weight::Notification(size) if !self.droppable.enter(size) => self.lost_notifications += 1,
            Weight::Diagnostic(size) if !self.droppable.enter(size) => self.lost_diagnostics += 1,
            Weight::Kept | Weight::Notification(_) | Weight::Diagnostic(_) | Weight::Lost(..) => {
                if let Some(lost) = self.take_lost() {
                    self.push(lost);
                }
                self.push(Output::Event(event));
            }
        }
    }

    fn take_lost(&mut self) -> Option<Output> {
        let (notifications, diagnostics) = (self.lost_notifications, self.lost_diagnostics);
        (self.lost_notifications, self.lost_diagnostics) = (0, 0);
        (notifications + diagnostics > 0).then_some(Output::Event(Event::Lost { notifications, diagnostics }))
    }
}

impl Weigh for Event {
    fn weight(&self) -> Weight {
        match self {
            Self::Notification { method, params, .. } => Weight::of_notification(method, params.as_ref()),
            Self::Diagnostic(diagnostic) => Weight::of_diagnostic(diagnostic),
            Self::Lost { notifications, diagnostics } => Weight::Lost(*notifications, *diagnostics),
            _ => Weight::Kept,
        }
    }

    fn lost(notifications: u64, diagnostics: u64) -> Self {
        Self::Lost { notifications, diagnostics }
    }
}
