//! Which notifications a handler may send on its request. The engine sends its own notifications in
//! their order and on their streams. The same method sent by a handler would contradict them.

use super::env::ServerEnv;
use super::requests::Requests;
use super::running::ServedRequest;
use super::wire::Wire;
use crate::error::{DiagnosticKind, Refusal};
use crate::input::RequestKey;
use crate::model::capabilities::ServerCapabilities;
use crate::model::lifecycle::meta;
use crate::model::logging::{LogLevel, LogMessage};
use crate::rpc::{Object, notification};
use crate::version::{Era, ProtocolVersion};
use alloc::format;

/// The notification that carries a log message.
const MESSAGE: &str = "notifications/message";

/// Returns whether a handler may send this notification. The documentation of
/// [`Cx::notify`](crate::Cx::notify) has the table.
fn is_allowed(method: &str, version: ProtocolVersion, declared: &ServerCapabilities) -> bool {
    let rules = version.rules();
    match method {
        // Sent by the engine alone: on its own schedule, by another command, or on subscriptions.
        MESSAGE
        | "notifications/resources/updated"
        | "notifications/progress"
        | "notifications/cancelled"
        | "notifications/tools/list_changed"
        | "notifications/prompts/list_changed"
        | "notifications/resources/list_changed"
        | "notifications/subscriptions/acknowledged"
        | "notifications/elicitation/complete"
        | "notifications/tasks" => false,
        // Sent by clients alone.
        "notifications/initialized" | "notifications/roots/list_changed" => false,
        // Only 2025-11-25 has it.
        "notifications/tasks/status" => rules.tasks && declared.has_tasks(),
        _ => true,
    }
}

impl ServedRequest {
    /// Returns the level at which a request wants log messages: `_meta` of 2026-07-28.
    pub(super) fn log_level_in(version: ProtocolVersion, request: &Object) -> Option<LogLevel> {
        request.get(meta::LOG_LEVEL).filter(|_| version.era() == Era::Modern).and_then(|level| LogLevel::read(&level))
    }

    /// Returns whether its handler may send this notification.
    pub(super) fn may_send(&self, env: &ServerEnv, method: &str) -> bool {
        is_allowed(method, self.version, &env.config.capabilities)
    }

    /// Returns whether the client wants a log message of this level. On 2026-07-28 the request
    /// names the level. Before, the session has it, and a client that has set none receives every
    /// message. A server that sends log messages declares that.
    fn is_logged(&self, wire: &Wire, level: LogLevel) -> bool {
        !self.is_silent()
            && wire.env.config.capabilities.has_logging()
            && match self.version.era() {
                Era::Modern => self.log_level.is_some_and(|least| level >= least),
                Era::Legacy => {
                    let session = wire.session_of(self.reply_to).and_then(|session_ref| wire.session(session_ref));
                    session.and_then(|session| session.log_level()).is_none_or(|least| level >= least)
                }
            }
    }

    /// Reports the log messages that were dropped.
    pub(super) fn report_dropped_logs(&self, env: &mut ServerEnv) {
        if self.dropped_logs > 0 {
            env.diagnose(DiagnosticKind::DroppedLog, &format!("{} log messages", self.dropped_logs));
        }
    }
}

impl Requests {
    /// Sends a log message of a handler on its request, and on nothing else. Drops and counts it
    /// while there is no room for it: a client that does not read must not hold up the handler.
    pub(super) fn send_log(&mut self, wire: &mut Wire, key: RequestKey, message: &LogMessage) -> Result<(), Refusal> {
        let running = self.in_handler(key).ok_or(Refusal::Gone)?;
        if !running.is_logged(wire, message.level) {
            return Err(Refusal::NotWanted);
        }
        let bytes = notification(MESSAGE, Some(&message.write()));
        let reply_to = running.reply_to;
        if !wire.has_room(reply_to, bytes.len()) {
            running.dropped_logs = running.dropped_logs.saturating_add(1);
            return Err(Refusal::Full);
        }
        running.report_dropped_logs(&mut wire.env);
        running.dropped_logs = 0;
        wire.send(reply_to, bytes);
        Ok(())
    }
}
