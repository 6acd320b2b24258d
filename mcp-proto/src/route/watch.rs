//! What a router announces: changes of its lists and of single resources, and log messages.

use super::{Resolution, Router};
use crate::input::Watch;
use crate::rpc::{ErrorObject, Object, code};
use crate::schema::guarded;
use crate::server::{Context, IncomingRequest};
use alloc::format;
use alloc::sync::Arc;
use core::fmt;

/// The decision whether a client may watch a resource.
#[derive(Clone)]
pub(super) struct OnWatch(Arc<Decide>);

type Decide = dyn Fn(&Context, &str) -> Result<(), ErrorObject> + Send + Sync;

impl Router {
    /// Declares that the list of tools may change while the server runs, so that clients can
    /// subscribe to the change: see [`Server::publish`](crate::ServerCommands::publish).
    #[must_use]
    pub fn tools_change(mut self) -> Self {
        self.edit().config.capabilities.tools.get_or_insert_default().list_changed = true;
        self
    }

    /// Declares that the list of prompts may change while the server runs, as
    /// [`tools_change`](Self::tools_change) does for tools.
    #[must_use]
    pub fn prompts_change(mut self) -> Self {
        self.edit().config.capabilities.prompts.get_or_insert_default().list_changed = true;
        self
    }

    /// Declares that the list of resources, or that of resource templates, may change while the
    /// server runs, as [`tools_change`](Self::tools_change) does for tools.
    #[must_use]
    pub fn resources_change(mut self) -> Self {
        self.edit().config.capabilities.resources.get_or_insert_default().list_changed = true;
        self
    }

    /// Declares that clients can watch single resources: `publish` of
    /// [`Change::Resource`](crate::input::Change::Resource) notifies those that do. A client may
    /// watch any URI: see [`on_watch`](Self::on_watch).
    #[must_use]
    pub fn watchable(mut self) -> Self {
        self.edit().config.capabilities.resources.get_or_insert_default().subscribe = true;
        self
    }

    /// Like [`watchable`](Self::watchable), with a function that decides whether a client may watch
    /// the resource of this URI. It runs where the request is routed, so it must not block. On
    /// 2026-07-28 a client learns that the server does not announce the resource, before that it
    /// receives the error.
    ///
    /// ```
    /// # use mcp_proto::{ErrorObject, Router};
    /// let router = Router::new("notes", "1.0").on_watch(|_context, uri| {
    ///     let is_note = uri.starts_with("note://");
    ///     if is_note { Ok(()) } else { Err(ErrorObject::new(-32602, "no note")) }
    /// });
    /// # drop(router);
    /// ```
    #[must_use]
    pub fn on_watch(
        mut self,
        decide: impl Fn(&Context, &str) -> Result<(), ErrorObject> + Send + Sync + 'static,
    ) -> Self {
        self.edit().config.admit_watch = true;
        self.edit().on_watch = Some(OnWatch(Arc::new(decide)));
        self.watchable()
    }

    /// Declares that handlers send log messages: [`Cx::log`](crate::Cx::log). Log messages are
    /// deprecated since 2026-07-28.
    #[must_use]
    pub fn logging(mut self) -> Self {
        self.edit().config.capabilities.logging.get_or_insert_default();
        self
    }
}

impl OnWatch {
    /// Decides on a request of a client to watch resources. `None` if it is another request.
    pub(super) fn decide<'a>(&self, incoming: &IncomingRequest) -> Option<Result<Resolution<'a>, ErrorObject>> {
        let decided = match &*incoming.method {
            "resources/subscribe" => self.decide_one(incoming),
            "subscriptions/listen" => self.decide_all(incoming),
            _ => return None,
        };
        Some(decided.map(Resolution::Result))
    }

    fn decide_one(&self, incoming: &IncomingRequest) -> Result<Object, ErrorObject> {
        let uri = incoming.params.required_str("uri");
        let uri = uri.map_err(|e| ErrorObject::new(code::INVALID_PARAMS, format!("{e}")))?;
        self.ask(incoming, &uri).map(|()| Object::new())
    }

    /// A panic refuses.
    fn ask(&self, incoming: &IncomingRequest, uri: &str) -> Result<(), ErrorObject> {
        let panicked = || Err(ErrorObject::new(code::INTERNAL_ERROR, "the callback panicked"));
        guarded(|| (self.0)(&incoming.context, uri)).unwrap_or_else(panicked)
    }

    /// The accepted filter is without the refused resources.
    fn decide_all(&self, incoming: &IncomingRequest) -> Result<Object, ErrorObject> {
        let filter = incoming.params.object("notifications").and_then(|filter| Watch::read(&filter));
        let mut filter = filter.map_err(|e| ErrorObject::new(code::INVALID_PARAMS, format!("{e}")))?;
        filter.uris.retain(|uri| self.ask(incoming, uri).is_ok());
        Ok(Object::new().with("notifications", filter.write()))
    }
}

impl fmt::Debug for OnWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OnWatch").finish_non_exhaustive()
    }
}
