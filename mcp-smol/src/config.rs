//! A router with the options of its server.

use mcp_proto::Router;
use mcp_proto::adapter::ServerOptions;
use std::fmt;

/// A router with the options of its server. A [`Router`] converts to one with the defaults.
pub struct Service {
    pub(crate) router: Router,
    pub(crate) options: ServerOptions,
}

impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Service").field("options", &self.options).finish_non_exhaustive()
    }
}

impl From<Router> for Service {
    fn from(router: Router) -> Self {
        Self { router, options: ServerOptions::new() }
    }
}

impl From<(Router, ServerOptions)> for Service {
    fn from((router, options): (Router, ServerOptions)) -> Self {
        Self { router, options }
    }
}
