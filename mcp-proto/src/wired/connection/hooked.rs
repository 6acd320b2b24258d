//! What a connection does not write: what the [`MessageHook`] of the application refuses, and parts out of their place.

use super::{Connection, Side};
use crate::error::{Diagnostic, DiagnosticKind};
use crate::exchange::{ExchangeEvent, ExchangeId, Outbound};
use crate::hook::{Blocked, HookDecision, MessageHook};
use alloc::format;

impl Connection {
    /// Asks this hook about every message; about the request of an HTTP client whoever begins the exchange has asked.
    #[must_use]
    pub fn with_hook(mut self, hook: Option<MessageHook>) -> Self {
        self.hook = hook;
        self
    }

    /// A part that the codec could not write where it stands.
    pub(super) fn out_of_place(&mut self, exchange: ExchangeId, why: &'static str) {
        self.diagnostics.push_back(Diagnostic::new(DiagnosticKind::OutOfPlace, why));
        // The engine counts what it says as unwritten until it hears of it.
        self.facts.push_back((exchange, ExchangeEvent::Unsent(self.unsent)));
    }

    /// What the hook lets out. Who waits for what it does not is told.
    pub(super) fn rule(&mut self, exchange: ExchangeId, outgoing: Outbound) -> Option<Outbound> {
        let Some(hook) = self.hook.as_ref().filter(|_| self.side != Side::HttpClient) else { return Some(outgoing) };
        let HookDecision { send, denials } = hook.outgoing(outgoing);
        for Blocked { request, what, why } in denials {
            match request {
                Some(id) => self.facts.push_back((exchange, ExchangeEvent::Unsendable { id: Some(id), reason: why.0 })),
                None => {
                    let detail = format!("{what}: {}", why.0);
                    self.diagnostics.push_back(Diagnostic::new(DiagnosticKind::Denied, detail));
                    if matches!(self.side, Side::DuplexClient { .. }) {
                        self.facts.push_back((exchange, ExchangeEvent::Unsendable { id: None, reason: why.0 }));
                    }
                }
            }
        }
        if send.is_none() {
            // The engine counts what it says as unwritten until it hears of it.
            self.facts.push_back((exchange, ExchangeEvent::Unsent(self.unsent)));
        }
        send
    }
}
