//! The counters of a wired engine while it runs, for its snapshot.

use crate::client;
use crate::error::DiagnosticKind;
use crate::exchange::{Body, Data, Inbound, Outbound, SseEvent};
use crate::server::{self, Server};
use crate::stats::{ServerStats, Traffic};
use alloc::collections::BTreeMap;

/// The counters of one wired engine.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) traffic: Traffic,
    pub(super) diagnostics: BTreeMap<DiagnosticKind, u64>,
    /// Calls of a client, requests of a server.
    pub(super) asked: u64,
    pub(super) reconnects: u64,
    pub(super) pings_missed: u64,
}

impl Counters {
    pub(super) fn diagnostic(&mut self, kind: DiagnosticKind) {
        *self.diagnostics.entry(kind).or_default() += 1;
    }

    /// Counts an event of a client engine.
    pub(super) fn client(&mut self, event: &client::Event) {
        match event {
            client::Event::Diagnostic(diagnostic) => self.diagnostic(diagnostic.kind),
            client::Event::Reconnecting { .. } => self.reconnects += 1,
            client::Event::PingMissed { .. } => self.pings_missed += 1,
            _ => {}
        }
    }

    /// Counts an event of a server engine.
    pub(super) fn server(&mut self, event: &server::Event) {
        match event {
            server::Event::Diagnostic(diagnostic) => self.diagnostic(diagnostic.kind),
            server::Event::Request(..) => self.asked += 1,
            _ => {}
        }
    }

    /// Returns the snapshot of a server.
    pub(super) fn snapshot(&self, server: &Server, channels: usize, queued: usize, lost: (u64, u64)) -> ServerStats {
        ServerStats {
            running: server.running(),
            abandoned_handlers: server.unheard().count(),
            waiting_handlers: 0,
            requests: self.asked,
            channels,
            sessions: server.sessions(),
            streams: server.streams(),
            traffic: self.traffic,
            queued,
            lost_notifications: lost.0,
            lost_diagnostics: lost.1,
            diagnostics: self.diagnostics.clone(),
            store: server.store_stats(),
        }
    }
}

/// Counts the messages in an item that was read, or the item as malformed.
pub(super) fn read(traffic: &mut Traffic, item: &Inbound) {
    match item {
        Inbound::Message(_) | Inbound::Event(SseEvent { data: Data::Message(_), .. }) => traffic.messages_in += 1,
        Inbound::Invalid(_) | Inbound::Event(SseEvent { data: Data::Invalid(_), .. }) => traffic.defects_in += 1,
        Inbound::Batch(elements) | Inbound::Event(SseEvent { data: Data::Batch(elements), .. }) => {
            let good = elements.iter().filter(|element| element.is_ok()).count();
            traffic.messages_in += good as u64;
            traffic.defects_in += (elements.len() - good) as u64;
        }
        _ => {}
    }
}

/// Counts the messages in an output.
pub(super) fn said(traffic: &mut Traffic, outgoing: &Outbound) {
    let is_message = match outgoing {
        Outbound::Message(_) => true,
        Outbound::Request { body, .. } | Outbound::Response { body: Body::Full(body), .. } => !body.is_empty(),
        Outbound::Event { data, .. } => !data.is_empty(),
        Outbound::Response { body: Body::Stream | Body::WebSocket(_), .. }
        | Outbound::Comment(_)
        | Outbound::Continue
        | Outbound::End => false,
    };
    traffic.messages_out += u64::from(is_message);
}
