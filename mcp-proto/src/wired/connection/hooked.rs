//! Outputs that a connection does not write: those that the [`MessageHook`] of the application
//! refuses, and parts that are out of place.

use super::{Connection, ConnectionRole};
use crate::error::{Diagnostic, DiagnosticKind};
use crate::exchange::{ExchangeEvent, ExchangeId, Outbound};
use crate::frame::CloseCode;
use crate::hook::{BlockedMessage, HookDecision, MessageHook};
use alloc::format;

impl Connection {
    /// Sets the hook that checks every message. For the request of an HTTP client, the caller has
    /// checked it before it starts the exchange.
    #[must_use]
    pub fn with_hook(mut self, hook: Option<MessageHook>) -> Self {
        self.hook = hook;
        self
    }

    /// The codec could not write a part at this point.
    pub(super) fn out_of_place(&mut self, exchange: ExchangeId, why: &'static str) {
        self.diagnostics.push_back(Diagnostic::new(DiagnosticKind::OutOfPlace, why));
        // The engine counts its output as unwritten until this event.
        self.events.push_back((exchange, ExchangeEvent::Unsent(self.unsent)));
        // The peer would wait for it.
        self.conn.close(CloseCode::Internal);
        self.collect();
    }

    /// Returns the output that the hook allows. Reports a refusal to the engine.
    pub(super) fn rule(&mut self, exchange: ExchangeId, outgoing: Outbound) -> Option<Outbound> {
        let Some(hook) = self.hook.as_ref().filter(|_| self.role != ConnectionRole::HttpClient) else {
            return Some(outgoing);
        };
        let HookDecision { send, denials } = hook.outgoing(outgoing);
        for BlockedMessage { request, what, why } in denials {
            match request {
                Some(id) => {
                    self.events.push_back((exchange, ExchangeEvent::Unsendable { id: Some(id), reason: why.0 }))
                }
                None => {
                    let detail = format!("{what}: {}", why.0);
                    self.diagnostics.push_back(Diagnostic::new(DiagnosticKind::Denied, detail));
                    if matches!(self.role, ConnectionRole::DuplexClient { .. }) {
                        self.events.push_back((exchange, ExchangeEvent::Unsendable { id: None, reason: why.0 }));
                    }
                }
            }
        }
        if send.is_none() {
            // The engine counts its output as unwritten until this event.
            self.events.push_back((exchange, ExchangeEvent::Unsent(self.unsent)));
        }
        send
    }
}
