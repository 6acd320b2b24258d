//! The one queue of outputs, and the bound on what the application has not taken.

use super::{Event, Output};
use crate::error::{Diagnostic, DiagnosticKind, excerpt};
use alloc::collections::VecDeque;

/// Outputs in their order. Notifications and diagnostics beyond a bound are counted instead of kept; everything else is kept.
#[derive(Debug)]
pub(super) struct Queue {
    outputs: VecDeque<Output>,
    /// How many of `outputs` fall under the bound.
    bounded: usize,
    max_bounded: usize,
    lost_notifications: u64,
    lost_diagnostics: u64,
}

impl Queue {
    pub(super) fn new(max_bounded: usize) -> Self {
        Self { outputs: VecDeque::new(), bounded: 0, max_bounded, lost_notifications: 0, lost_diagnostics: 0 }
    }

    pub(super) fn push(&mut self, output: Output) {
        self.outputs.push_back(output);
    }

    pub(super) fn notification(&mut self, event: Event) {
        if self.has_room() {
            self.push_bounded(event);
        } else {
            self.lost_notifications += 1;
        }
    }

    pub(super) fn diagnostic(&mut self, kind: DiagnosticKind, detail: &str) {
        self.report(Diagnostic::new(kind, excerpt(detail)));
    }

    pub(super) fn report(&mut self, diagnostic: Diagnostic) {
        if self.has_room() {
            self.push_bounded(Event::Diagnostic(diagnostic));
        } else {
            self.lost_diagnostics += 1;
        }
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
        if matches!(output, Output::Event(Event::Notification { .. } | Event::Diagnostic(_))) {
            self.bounded -= 1;
        }
        Some(output)
    }

    fn has_room(&self) -> bool {
        self.bounded < self.max_bounded
    }

    /// What was lost is told at its place in the order: before the first event that is kept again.
    fn push_bounded(&mut self, event: Event) {
        if let Some(lost) = self.take_lost() {
            self.push(lost);
        }
        self.bounded += 1;
        self.push(Output::Event(event));
    }

    fn take_lost(&mut self) -> Option<Output> {
        let (notifications, diagnostics) = (self.lost_notifications, self.lost_diagnostics);
        (self.lost_notifications, self.lost_diagnostics) = (0, 0);
        (notifications + diagnostics > 0).then_some(Output::Event(Event::Lost { notifications, diagnostics }))
    }
}
