//! The level of log messages that the application requests, in every revision. Up to 2025-11-25 a
//! session has a level (`logging/setLevel`) that no request can unset. From 2026-07-28 on each
//! request names its own level.

use super::call_table::{CallOwner, Errand};
use super::{Client, Event};
use crate::call::{CallOptions, RawCall, RawResult};
use crate::error::{CallError, DiagnosticKind};
use crate::exchange::ExchangeId;
use crate::input::CallId;
use crate::model::logging::{LogLevel, LogMessage};
use crate::rpc::Object;
use alloc::format;

/// The level of a session of an older revision.
#[derive(Debug, Default)]
pub(super) struct Logging {
    /// The request that waits for its response, and its level.
    open: Option<(CallId, LogLevel)>,
    /// Whether the application ever requested a level. Before, it receives what the server chooses
    /// to send.
    was_set: bool,
}

impl Logging {
    /// Ends the session, and its level.
    pub(super) fn end_session(&mut self) {
        self.open = None;
    }
}

impl Client {
    pub(super) fn on_log_level(&mut self, level: Option<LogLevel>) {
        if self.env.log_level != level {
            self.env.log_level = level;
            self.begin_logging();
        }
    }

    /// Sends the level to a server of an older revision, unless an earlier level is on its way.
    pub(super) fn begin_logging(&mut self) {
        let Some(level) = self.env.log_level else { return };
        self.logging.was_set = true;
        let logs = self.env.server_info().is_some_and(|info| info.capabilities.has_logging());
        if !logs || !self.env.is_legacy() || self.logging.open.is_some() {
            return;
        }
        let options = CallOptions { repeatable: true, ..CallOptions::default() };
        let params = Ok(Object::new().with("level", level.as_str()));
        let raw = RawCall { method: "logging/setLevel".into(), params, options };
        let call = self.admit(raw, CallOwner::Engine(Errand::Level));
        self.logging.open = Some((call, level));
        self.send_admitted(call);
    }

    /// Handles the end of the request that sets the level.
    pub(super) fn on_level(&mut self, call: CallId, outcome: Result<RawResult, CallError>) {
        let Some((_, level)) = self.logging.open.take_if(|(open, _)| *open == call) else { return };
        if let Err(e) = outcome {
            self.env.diagnose(DiagnosticKind::LevelRefused, format!("{level}: {e}"));
        }
        if self.env.log_level != Some(level) {
            self.begin_logging();
        }
    }

    /// Handles a log message.
    pub(super) fn on_log(&mut self, exchange: ExchangeId, params: Object) {
        let message = match LogMessage::read(params) {
            Ok(message) => message,
            Err(e) => return self.env.diagnose(DiagnosticKind::BadParams, format!("notifications/message: {e}")),
        };
        // A server of an older revision cannot be told to send none, need not know levels, and may
        // have sent the message before it learned of the level.
        let is_wanted = match self.env.log_level {
            _ if !self.env.is_legacy() => true,
            Some(least) => message.level >= least,
            None => !self.logging.was_set,
        };
        if is_wanted {
            let call = self.link.call_on(exchange).filter(|call| !self.calls.is_own(*call));
            self.env.event(Event::Log { call, message });
        }
    }
}
