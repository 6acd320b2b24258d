//! The queue of the outputs of a client, and the weights of its events, which determine the events
//! that may be dropped.

use super::{Event, Output};
use crate::error::Diagnostic;
use crate::event_queue::{EVENT, EventQueue, Weigh, Weight};
use crate::exchange::{ExchangeId, Outbound, Start};
use crate::input::Change;
use crate::rpc::RawJson;
use alloc::borrow::Cow;
use alloc::string::String;

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

impl Weigh for Output {
    fn weight(&self) -> Weight {
        match self {
            Self::Event(event) => event.weight(),
            Self::Start(..) | Self::Send(..) | Self::Abort(_) => Weight::Kept,
        }
    }

    fn lost(notifications: u64, diagnostics: u64) -> Self {
        Self::Event(Event::lost(notifications, diagnostics))
    }
}

impl Weigh for Event {
    fn weight(&self) -> Weight {
        match self {
            Self::Notification { method, params } => Weight::of_notification(method, params.as_ref()),
            Self::Changed(Change::Resource(uri)) => Weight::Notification(EVENT + uri.capacity()),
            Self::Changed(_) => Weight::Notification(EVENT),
            Self::Log { message, .. } => Weight::Notification(EVENT + message.heap_size()),
            Self::Control(control) => {
                let id = control.id.as_ref().map_or(0, String::len);
                Weight::Notification(EVENT + control.event.len() + id + control.data.len())
            }
            Self::Elicited(id) => Weight::Notification(EVENT + id.len()),
            Self::Diagnostic(diagnostic) => Weight::of_diagnostic(diagnostic),
            Self::Reconnecting { last_event, .. } => {
                Weight::Diagnostic(EVENT + last_event.as_ref().map_or(0, |id| id.len()))
            }
            // Pings may be missed without end, and no application waits for these events.
            Self::PingMissed { .. } => Weight::Diagnostic(EVENT),
            Self::Lost { notifications, diagnostics } => Weight::Lost(*notifications, *diagnostics),
            _ => Weight::Kept,
        }
    }

    fn lost(notifications: u64, diagnostics: u64) -> Self {
        Self::Lost { notifications, diagnostics }
    }
}
