//! The queue of the outputs of a client.

use super::{Event, Output};
use crate::error::Diagnostic;
use crate::event_queue::EventQueue;
use crate::exchange::{ExchangeId, Outbound, Start};
use crate::rpc::RawJson;
use alloc::borrow::Cow;

impl EventQueue<Output> {
    pub(super) fn start(&mut self, exchange: ExchangeId, start: Start) {
        self.push(Output::Start(exchange, start));
    }

    pub(super) fn send(&mut self, exchange: ExchangeId, outgoing: Outbound) {
        self.push(Output::Send(exchange, outgoing));
    }

    pub(super) fn abort(&mut self, exchange: ExchangeId) {
        self.push(Output::Abort(exchange));
    }

    pub(super) fn event(&mut self, event: Event) {
        self.push(Output::Event(event));
    }

    pub(super) fn notification(&mut self, method: Cow<'static, str>, params: Option<RawJson>) {
        // The queue holds and counts the params without the rest of their message.
        let params = params.as_ref().map(RawJson::detached);
        self.event(Event::Notification { method, params });
    }

    pub(super) fn diagnostic(&mut self, diagnostic: Diagnostic) {
        self.event(Event::Diagnostic(diagnostic));
    }

    /// Queues the last event. Reports dropped events before it.
    pub(super) fn finish(&mut self, last: Event) {
        self.report_lost();
        self.event(last);
        self.close();
    }
}
