//! The queue of the outputs of a server.

use super::{Event, Output};
use crate::error::{Diagnostic, DiagnosticKind, excerpt};
use crate::event_queue::EventQueue;
use crate::exchange::ExchangeId;
use crate::rpc::RawJson;
use alloc::borrow::Cow;

impl EventQueue<Output> {
    pub(super) fn notification(&mut self, exchange: ExchangeId, method: Cow<'static, str>, params: Option<&RawJson>) {
        // The queue holds the params without the rest of their message, and counts them.
        let params = params.map(RawJson::detached);
        self.push(Output::Event(Event::Notification { exchange, method, params }));
    }

    pub(super) fn diagnostic(&mut self, kind: DiagnosticKind, detail: &str) {
        self.report(Diagnostic::new(kind, excerpt(detail)));
    }

    pub(super) fn report(&mut self, diagnostic: Diagnostic) {
        self.push(Output::Event(Event::Diagnostic(diagnostic)));
    }

    /// Queues the last output. First reports the number of dropped events.
    pub(super) fn terminate(&mut self) {
        self.report_lost();
        self.push(Output::Event(Event::Terminated));
    }
}
