//! The level of log messages that the application requests, in every revision. Up to 2025-11-25 a
//! session has a level (`logging/setLevel`) that no request can unset. From 2026-07-28 on each
//! request names its own level.

use super::Event;
use super::call_table::Errand;
use super::ctx::Ctx;
use crate::call::RawResult;
use crate::error::{CallError, DiagnosticKind};
use crate::exchange::ExchangeId;
use crate::input::CallId;
use crate::model::logging::{LogLevel, LogMessage};
use crate::rpc::Object;
use alloc::format;

/// The level of a session of an older revision.
#[derive(Debug, Default)]
pub(super) struct SessionLogLevel {
    /// The request that waits for its response, and its level.
    open: Option<(CallId, LogLevel)>,
    /// Whether the application ever requested a level. Before, it receives what the server chooses
    /// to send.
    was_set: bool,
}

impl SessionLogLevel {
    /// Ends the session, and its level.
    pub(super) fn end_session(&mut self) {
        self.open = None;
    }

    /// Sets the level that the application requests.
    pub(super) fn set_level(&mut self, cx: &mut Ctx, level: Option<LogLevel>) {
        if cx.env.log_level != level {
            cx.env.log_level = level;
            self.begin(cx);
        }
    }

    /// Sends the level to a server of an older revision, unless an earlier level is on its way.
    pub(super) fn begin(&mut self, cx: &mut Ctx) {
        let Some(level) = cx.env.log_level else { return };
        self.was_set = true;
        let logs = cx.env.server_info().is_some_and(|info| info.capabilities.has_logging());
        if !logs || !cx.env.is_legacy() || self.open.is_some() {
            return;
        }
        let params = Object::new().with("level", level.as_str());
        self.open = Some((cx.run_errand(Errand::Level, "logging/setLevel", params), level));
    }

    /// Handles the end of the request that sets the level.
    pub(super) fn on_end(&mut self, cx: &mut Ctx, call: CallId, outcome: Result<RawResult, CallError>) {
        let Some((_, level)) = self.open.take_if(|(open, _)| *open == call) else { return };
        if let Err(e) = outcome {
            cx.env.diagnose(DiagnosticKind::LevelRefused, format!("{level}: {e}"));
        }
        if cx.env.log_level != Some(level) {
            self.begin(cx);
        }
    }

    /// Handles a log message.
    pub(super) fn on_message(&self, cx: &mut Ctx, exchange: ExchangeId, params: Object) {
        let message = match LogMessage::read(params) {
            Ok(message) => message,
            Err(e) => return cx.env.diagnose(DiagnosticKind::BadParams, format!("notifications/message: {e}")),
        };
        // A server of an older revision cannot be told to send none, need not know levels, and may
        // have sent the message before it learned of the level.
        let is_wanted = match cx.env.log_level {
            _ if !cx.env.is_legacy() => true,
            Some(least) => message.level >= least,
            None => !self.was_set,
        };
        if is_wanted {
            let call = cx.link.call_on(exchange).filter(|call| !cx.calls.is_own(*call));
            cx.env.event(Event::Log { call, message });
        }
    }
}
