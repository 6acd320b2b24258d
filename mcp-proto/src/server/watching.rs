//! What a client of an older revision sets in its session: the level of its log messages, and the
//! resources that it watches (2025-11-25 logging, and resources: subscriptions). Never for a
//! principal: two sessions of one are independent.

use super::client::Bound;
use super::keys::SessionRef;
use super::listen::SubscriptionRequest;
use super::requests::Requests;
use super::response::{ErrorReply, SerializedResponse};
use super::store::SessionChange;
use super::watched::Watcher;
use super::wire::Wire;
use super::{Server, ServerConfig, weight};
use crate::error::DiagnosticKind;
use crate::exchange::ExchangeId;
use crate::input::{Answer, RequestAnswer, RequestKey, Watch};
use crate::model::logging::LogLevel;
use crate::rpc::{Object, code, error_response};
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;

/// The request of a legacy client for the level of its log messages.
pub(super) const SET_LEVEL: &str = "logging/setLevel";
/// The requests of a legacy client for the updates of a resource.
pub(super) const SUBSCRIBE: &str = "resources/subscribe";
pub(super) const UNSUBSCRIBE: &str = "resources/unsubscribe";

impl Server {
    /// Sets the level of the log messages of a session.
    pub(super) fn set_level(&mut self, session_ref: Option<SessionRef>, params: &Object) -> Result<(), ErrorReply> {
        if !self.shared.config.capabilities.has_logging() {
            return Err(ErrorReply::method(SET_LEVEL));
        }
        let level = params.get("level").and_then(|level| LogLevel::read(&level));
        let level = level.ok_or_else(|| ErrorReply::params("`level` is not one of the eight levels"))?;
        let session = session_ref.and_then(|session| self.wire.session_mut(session));
        let text = "the level belongs to a session, and there is none";
        let none = || ErrorReply::new(DiagnosticKind::BadSession, code::INTERNAL_ERROR, text);
        session.ok_or_else(none)?.set_log_level(level);
        if let Some(session) = session_ref {
            self.wire.note_change(session, SessionChange::Level(level));
        }
        Ok(())
    }

    /// Returns the session of a request about a watched resource, and the URI. The method exists
    /// only in a session, and only if the server declares it.
    pub(super) fn watched_uri(
        &self,
        session: Option<SessionRef>,
        method: &str,
        params: &Object,
    ) -> Result<(SessionRef, String), ErrorReply> {
        let session = session.filter(|_| self.shared.config.capabilities.watches_resources());
        let session = session.ok_or_else(|| ErrorReply::method(method))?;
        let uri = params.required_str("uri").map_err(|e| ErrorReply::params(format!("{e}")))?;
        Ok((session, uri.into_owned()))
    }

    /// Handles the answer of the application to a request, or its decision on a subscription.
    pub(super) fn on_answer(&mut self, answer: Answer) {
        let answered = match answer.what {
            RequestAnswer::Listen(filter) => return self.open_accepted(answer.key, filter),
            RequestAnswer::Message { .. } | RequestAnswer::Ask { .. } | RequestAnswer::Denied { .. } => {
                self.requests.answer(&mut self.wire, answer)
            }
        };
        answered.into_iter().for_each(|reply_to| self.end_if_quiet(reply_to));
    }

    /// Leaves out of a filter the tasks that the client of an exchange may not have.
    pub(super) fn keep_own_tasks(&self, x: ExchangeId, filter: &mut Watch) {
        self.wire.env.keep_own_tasks(x, filter, |id| self.shared.keys.has_made_session(id));
    }

    /// Opens the subscription of a request that the application has accepted.
    fn open_accepted(&mut self, key: RequestKey, filter: Watch) {
        if self.requests.in_handler(key).is_none() {
            return;
        }
        let Some(request) = self.requests.forget(&mut self.wire, key) else { return };
        let (exchange, reply_to, id, version) = (request.exchange, request.reply_to, request.id, request.version);
        let mut filter = self.shared.config.bounded(filter);
        // The application decides on resources only.
        self.keep_own_tasks(exchange, &mut filter);
        let wanted = SubscriptionRequest { exchange, id: id.clone(), version, filter, reply_to: Some(reply_to) };
        let opened = self.listens.open(&mut self.wire, &mut self.requests, wanted);
        if let Err(ErrorReply { error, kind, .. }) = opened {
            self.wire.env.diagnose(kind, &error.message);
            let message = error_response(Some(&id), &error);
            self.wire.reply(reply_to, SerializedResponse::new(message, Some(error.code)));
        }
        self.end_if_quiet(reply_to);
    }
}

impl ServerConfig {
    /// Returns what a request for a subscription asks for, as far as the server announces it. Of
    /// too many URIs the first ones remain.
    pub(super) fn filter(&self, params: &Object) -> Result<Watch, ErrorReply> {
        let filter = params.object("notifications").and_then(|filter| Watch::read(&filter));
        filter.map(|filter| self.bounded(filter)).map_err(|e| ErrorReply::params(format!("{e}")))
    }

    fn bounded(&self, filter: Watch) -> Watch {
        let mut filter = filter.declared(&self.capabilities);
        let max = self.limits.server.max_watched;
        if filter.uris.len() > max {
            filter.uris = filter.uris.into_iter().take(max).collect::<BTreeSet<_>>();
        }
        let max = if self.tasks { max } else { 0 };
        filter.tasks = filter.tasks.into_iter().take(max).collect();
        filter
    }
}

impl Wire {
    /// The client of a session has changed it: the servers that share the session learn of it.
    pub(super) fn note_change(&mut self, session_ref: SessionRef, change: SessionChange) {
        self.http.note_change(&mut self.env, session_ref, change);
    }

    /// The client of a session may have missed a change of a resource that it watches.
    pub(super) fn mark_updated(&mut self, session_ref: SessionRef, uri: &str) {
        let (uri, max): (Arc<str>, _) = (uri.into(), self.env.config.limits.server.max_watched);
        if let Some(session) = self.session_mut(session_ref) {
            session.watched_mut().mark(&uri, &uri, max);
        }
    }

    /// A session watches a resource from now on.
    pub(super) fn watch(&mut self, session_ref: SessionRef, uri: &str) -> Result<(), ErrorReply> {
        let watched = self.session(session_ref).and_then(|session| session.watched());
        if watched.is_some_and(|watched| watched.contains(uri)) {
            return Ok(());
        }
        if watched.map_or(0, |watched| watched.len()) >= self.env.config.limits.server.max_watched {
            return Err(ErrorReply { status: None, ..ErrorReply::full("the client watches too many resources") });
        }
        let Some(client) = self.holder(session_ref) else { return Ok(()) };
        let weight = weight::of_watched(uri);
        if let Some(identity) = self.env.shares.client(client).cloned() {
            let checked = self.env.check_share(&identity, Bound::ClientData, weight);
            let full = |error: ErrorReply| ErrorReply { status: None, ..error };
            checked.map_err(|by| full(by.reject("there is no room for what clients watch")))?;
        }
        let mut index = core::mem::take(&mut self.env.watched);
        if let Some(session) = self.session_mut(session_ref) {
            session.watched_mut().insert(&mut index, uri, Watcher::Session(session_ref), weight);
        }
        self.env.watched = index;
        self.env.shares.add(client, Bound::ClientData, weight);
        Ok(())
    }

    /// A session watches a resource no longer.
    pub(super) fn unwatch(&mut self, session_ref: SessionRef, uri: &str) {
        let Some(client) = self.holder(session_ref) else { return };
        let weight = weight::of_watched(uri);
        let mut index = core::mem::take(&mut self.env.watched);
        let watched = self.session_mut(session_ref).filter(|session| session.watched().is_some());
        let was_watched = watched.is_some_and(|session| {
            session.watched_mut().remove(&mut index, uri, Watcher::Session(session_ref), weight)
        });
        self.env.watched = index;
        if was_watched {
            self.env.shares.give_back(client, Bound::ClientData, weight);
        }
    }
}

impl Requests {
    /// The application has answered a request. If it has accepted that its client watches a
    /// resource, the client does from now on.
    pub(super) fn watch_accepted(&self, wire: &mut Wire, key: RequestKey, code: Option<i64>) -> Result<(), ErrorReply> {
        let Some(running) = self.get(key).filter(|_| code.is_none()) else { return Ok(()) };
        let Some(request) = running.request().filter(|request| request.method == SUBSCRIBE) else { return Ok(()) };
        let (session, uri) = (wire.session_of(running.reply_to), request.params.str("uri"));
        let (Some(session), Some(uri)) = (session, uri.as_deref()) else { return Ok(()) };
        wire.watch(session, uri)?;
        wire.note_change(session, SessionChange::Watch(uri.into()));
        Ok(())
    }
}
