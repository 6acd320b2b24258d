//! The commands of an application to its client that never wait.

use super::Watcher;
use super::shared::ClientShared;
use alloc::sync::Arc;
use core::fmt;
use mcp_proto::client::{ClientCommands, Verdict};
use mcp_proto::error::Refusal;
use mcp_proto::input::{CallId, Watch};
use mcp_proto::model::lifecycle::ServerInfo;
use mcp_proto::model::logging::LogLevel;

/// The commands of an application to its client that never wait. [`Client`](crate::Client)
/// derefs to it. It does not keep the client open, and after the end its commands do nothing.
pub struct ClientHandle(Arc<ClientShared>);

impl ClientHandle {
    pub(super) const fn new(shared: Arc<ClientShared>) -> Self {
        Self(shared)
    }

    pub(super) const fn shared(&self) -> &Arc<ClientShared> {
        &self.0
    }

    /// Cancels a call, also on the server, even if another thread waits for it. Does nothing if it
    /// has ended.
    pub fn cancel(&self, call: CallId, reason: Option<&str>) {
        self.0.with(|state, now, _| state.engine.cancel(now, call, reason));
    }

    /// The user says that the web page with this
    /// [`elicitation_id`](mcp_proto::UrlRequest::elicitation_id) is complete, or wants to try
    /// again: the client repeats the calls that need it. A server need not say so itself. Never
    /// waits.
    pub fn elicited(&self, id: &str) {
        self.0.with(|state, now, _| state.engine.elicited(now, id));
    }

    /// Watches these changes until the returned value is dropped. The client watches what all live
    /// watchers and [`ClientConfig::watch`](mcp_proto::client::ClientConfig::watch) name together.
    /// The callback for events receives [`Event::Watching`](mcp_proto::client::Event::Watching),
    /// what the server announces of it, and [`Event::Changed`](mcp_proto::client::Event::Changed).
    ///
    /// # Errors
    /// [`Refusal::Full`] with too many URIs
    /// ([`max_watched`](mcp_proto::limits::ClientLimits::max_watched)), [`Refusal::Closed`] after
    /// the end. Nothing has changed then.
    pub fn watch(&self, watch: Watch) -> Result<Watcher, Refusal> {
        let shared = Arc::clone(&self.0);
        let id = shared.with(|state, now, _| state.watch(now, watch))?;
        Ok(Watcher { shared, id })
    }

    /// Requests log messages of this level or above: see
    /// [`Client::log_level`](mcp_proto::ClientCommands::log_level). The callback for events
    /// receives them. Log messages are deprecated since 2026-07-28.
    pub fn log_level(&self, level: Option<LogLevel>) {
        self.0.with(|state, now, _| state.engine.log_level(now, level));
    }

    /// The application has other credentials, in header fields of its own: the cache drops what is
    /// not for everyone. See
    /// [`Client::credentials_changed`](mcp_proto::ClientCommands::credentials_changed). Never
    /// waits.
    pub fn credentials_changed(&self) {
        self.0.with(|state, now, _| state.engine.credentials_changed(now));
    }

    /// Notifies the server that the roots have changed, if its revision has that: see
    /// [`Client::roots_changed`](mcp_proto::ClientCommands::roots_changed). Roots are deprecated
    /// since 2026-07-28.
    ///
    /// # Errors
    /// [`Refusal`]: nothing was sent.
    pub fn roots_changed(&self) -> Result<(), Refusal> {
        self.0.with(|state, now, _| state.engine.roots_changed(now)).map_err(|refused| refused.why)
    }

    /// Returns the description of the server, from its latest start. `None` before the end of
    /// negotiation.
    pub fn server(&self) -> Option<ServerInfo> {
        self.0.look(|state, _| state.ready.clone())
    }

    /// Returns the result of the negotiation with the server, for a later client of the same
    /// server. `None` before the end of negotiation.
    pub fn verdict(&self) -> Option<Verdict> {
        self.0.look(|state, _| state.engine.client().verdict())
    }
}

impl fmt::Debug for ClientHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClientHandle(..)")
    }
}
