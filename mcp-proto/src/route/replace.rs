//! A running server gets another router. What it declared to its clients stays as it is, and its
//! requests keep the router that they began with.

use super::{Router, ToolError};
use crate::input::Change;
use crate::model::capabilities::ServerCapabilities;
use crate::server::ServerConfig;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

/// Why a router cannot replace that of a running server. The server keeps the one that it has.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum BadReplacement {
    /// It offers what the server has not declared to its clients: `prompts`, `tools.listChanged`,
    /// or the identifier of an extension.
    Undeclared(String),
    /// Only one of the two routers decides what clients may watch: [`Router::on_watch`].
    OnWatch,
    /// The driver of the handler has no way to replace a router.
    Unsupported,
}

impl Router {
    /// Declares capabilities beyond those of what this router offers, so that one that
    /// [replaces](Self::replace) it can offer more. [`tools_change`](Self::tools_change),
    /// [`prompts_change`](Self::prompts_change), [`resources_change`](Self::resources_change),
    /// [`watchable`](Self::watchable) and [`logging`](Self::logging) declare the most common ones.
    ///
    /// ```
    /// # use mcp_proto::Router;
    /// let router = Router::new("editor", "1.0").declare(|capabilities| {
    ///     capabilities.completions.get_or_insert_default();
    /// });
    /// # assert!(router.config().capabilities.completions.is_some());
    /// ```
    #[must_use]
    pub fn declare(mut self, declare: impl FnOnce(&mut ServerCapabilities)) -> Self {
        declare(&mut self.edit().config.capabilities);
        self
    }

    /// Replaces this router, which serves an engine with this configuration. Returns the lists that
    /// differ: announce each with [`Server::publish`](crate::ServerCommands::publish). With an
    /// adapter use `replace` of its server, which does so.
    ///
    /// Requests that run keep the router that they began with, also in their further rounds up to
    /// 2025-11-25. On 2026-07-28 each round is a request of its own: if its tool is gone, its
    /// answer is `-32602`. Cursors of earlier pages stay valid: they name the last element of their
    /// page.
    ///
    /// Everything that [`configure`](Self::configure) sets stays as it is, also the validator and
    /// the capabilities. A list is compared by what clients receive of it and by the scopes of its
    /// elements, and not by its handlers. One that has a function, as with
    /// [`resources_from`](Self::resources_from), differs if the function is not that of a clone.
    /// Clients learn of a list only if the server declared that it changes: see
    /// [`tools_change`](Self::tools_change).
    ///
    /// ```
    /// use mcp_proto::input::Change;
    /// use mcp_proto::{Router, tool};
    ///
    /// let mut router = Router::new("calc", "1.0")
    ///     .tools_change()
    ///     .tool(tool("one"), |_cx, ()| Ok(1));
    /// let config = router.config(); // of the engine
    /// let next = router.clone().tool(tool("two"), |_cx, ()| Ok(2));
    /// assert_eq!(router.replace(next, &config)?, [Change::Tools]);
    /// # Ok::<(), mcp_proto::route::BadReplacement>(())
    /// ```
    ///
    /// # Errors
    /// [`BadReplacement`]. Nothing has changed then.
    pub fn replace(&mut self, next: Self, config: &ServerConfig) -> Result<Vec<Change>, BadReplacement> {
        let next_capabilities = next.config().capabilities;
        if let Some(name) = undeclared(&next_capabilities, &config.capabilities) {
            return Err(BadReplacement::Undeclared(name));
        }
        if self.0.on_watch.is_some() != next.0.on_watch.is_some() {
            return Err(BadReplacement::OnWatch);
        }
        let next = next.configure(|own| own.clone_from(config));
        let before = core::mem::replace(self, next);
        let (before, after) = (&*before.0, &*self.0);
        let lists = [
            (Change::Tools, before.tools.lists_as(&after.tools)),
            (Change::Prompts, before.prompts.lists_as(&after.prompts)),
            (Change::Resources, before.resources.lists_as(&after.resources)),
        ];
        Ok(lists.into_iter().filter_map(|(change, is_same)| (!is_same).then_some(change)).collect())
    }

    /// Returns whether this is a clone of the other router, to which nothing was added.
    pub fn is_clone_of(&self, other: &Self) -> bool {
        alloc::sync::Arc::ptr_eq(&self.0, &other.0)
    }
}

/// Returns the first capability that is offered and was not declared.
fn undeclared(offered: &ServerCapabilities, declared: &ServerCapabilities) -> Option<String> {
    let names = |capabilities: &ServerCapabilities| {
        [
            ("tools", capabilities.tools.is_some()),
            ("tools.listChanged", capabilities.announces_tools()),
            ("prompts", capabilities.prompts.is_some()),
            ("prompts.listChanged", capabilities.announces_prompts()),
            ("resources", capabilities.resources.is_some()),
            ("resources.listChanged", capabilities.announces_resources()),
            ("resources.subscribe", capabilities.watches_resources()),
            ("logging", capabilities.has_logging()),
            ("completions", capabilities.completions.is_some()),
        ]
    };
    let known = names(offered).into_iter().zip(names(declared));
    let known = known.filter(|((_, is_offered), (_, is_declared))| *is_offered && !is_declared);
    let extensions = offered.extensions.ids().filter(|id| !declared.extensions.contains(id));
    let others = offered.other.iter().map(|(name, _)| name).filter(|name| !declared.other.contains(name));
    known.map(|((name, _), _)| name.to_string()).chain(extensions.chain(others).map(String::from)).next()
}

impl fmt::Display for BadReplacement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Undeclared(name) => write!(f, "the server did not declare `{name}` when it started"),
            Self::OnWatch => f.write_str("only one of the two routers decides what clients may watch"),
            Self::Unsupported => f.write_str("the driver replaces no router"),
        }
    }
}

impl core::error::Error for BadReplacement {}

impl From<BadReplacement> for ToolError {
    fn from(e: BadReplacement) -> Self {
        Self::Failed(format!("{e}"))
    }
}
