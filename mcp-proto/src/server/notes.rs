//! Which notifications a handler may send on its request. The engine sends its own notifications in
//! their order and on their streams. The same method sent by a handler would contradict them.

use super::env::Env;
use super::requests::Requests;
use super::running::ServedRequest;
use super::transport::HttpState;
use crate::input::RequestKey;
use crate::model::capabilities::ServerCapabilities;
use crate::model::lifecycle::meta;
use crate::model::logging::LogLevel;
use crate::rpc::Object;
use crate::version::{Era, ProtocolVersion};

/// The notification that carries a log message.
const MESSAGE: &str = "notifications/message";
/// The request by which a legacy client sets the level of its log messages.
const SET_LEVEL: &str = "logging/setLevel";

/// Returns whether a handler may send this notification. The documentation of
/// [`Cx::notify`](crate::Cx::notify) has the table.
fn is_allowed(method: &str, version: ProtocolVersion, declared: &ServerCapabilities) -> bool {
    let rules = version.rules();
    match method {
        // Sent by the engine alone: on its own schedule, by another command, or on subscriptions.
        "notifications/progress"
        | "notifications/cancelled"
        | "notifications/tools/list_changed"
        | "notifications/prompts/list_changed"
        | "notifications/resources/list_changed"
        | "notifications/subscriptions/acknowledged"
        | "notifications/tasks" => false,
        // Sent by clients alone.
        "notifications/initialized" | "notifications/roots/list_changed" => false,
        // On 2026-07-28 the request itself asks for it.
        MESSAGE => rules.era == Era::Modern || declared.has_logging(),
        // On 2026-07-28 these belong on subscriptions. Before, the application knows who
        // subscribed.
        "notifications/resources/updated" => rules.era == Era::Legacy && declared.watches_resources(),
        // Only 2025-11-25 has these.
        "notifications/tasks/status" => rules.tasks && declared.has_tasks(),
        "notifications/elicitation/complete" => rules.elicitation_modes && rules.era == Era::Legacy,
        _ => true,
    }
}

impl ServedRequest {
    /// Returns the level at which a request wants log messages: `_meta` of 2026-07-28.
    pub(super) fn log_level_in(version: ProtocolVersion, request: &Object) -> Option<LogLevel> {
        request.get(meta::LOG_LEVEL).filter(|_| version.era() == Era::Modern).and_then(|level| LogLevel::read(&level))
    }

    /// Returns whether its handler may send this notification.
    pub(super) fn may_send(&self, env: &Env, http: &HttpState, method: &str, params: &Object) -> bool {
        is_allowed(method, self.version, &env.config.capabilities)
            && (method != MESSAGE || self.is_logged(env, http, params))
    }

    /// Returns whether the client wants a log message of this level. On 2026-07-28 the request
    /// names the level. Before, the session has it, and a client that has set none receives every
    /// message.
    fn is_logged(&self, env: &Env, http: &HttpState, message: &Object) -> bool {
        let Some(level) = message.get("level").and_then(|level| LogLevel::read(&level)) else { return false };
        match self.version.era() {
            Era::Modern => self.log_level.is_some_and(|least| level >= least),
            Era::Legacy => {
                let session = self.reply_to.session(http).and_then(|session_ref| session_ref.get(env, http));
                session.and_then(|session| session.log_level()).is_none_or(|least| level >= least)
            }
        }
    }
}

impl Requests {
    /// A request has succeeded. If it was `logging/setLevel`, its level applies from now on.
    pub(super) fn keep_log_level(&self, env: &mut Env, http: &mut HttpState, key: RequestKey) {
        let Some(running) = self.get(key) else { return };
        let Some(request) = running.request().filter(|request| request.method == SET_LEVEL) else { return };
        let Some(level) = request.params.get("level").and_then(|level| LogLevel::read(&level)) else { return };
        let reply_to = running.reply_to;
        if let Some(session) = reply_to.session_mut(env, http) {
            session.set_log_level(level);
        }
    }
}
