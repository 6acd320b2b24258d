//! The scopes that the elements of a server demand of its clients (2026-07-28 authorization,
//! runtime insufficient scope errors).

use super::Router;
use crate::auth::{Access, Scopes};
use crate::model::prompts::Prompt;
use crate::model::resources::{Resource, ResourceTemplate};
use crate::model::tools::Tool;
use crate::rpc::ErrorObject;
use crate::server::Context;

/// Why a request does not reach a handler.
#[derive(Debug)]
pub(super) enum RouteRefusal {
    Error(ErrorObject),
    /// The access of its client lacks one of these scopes, which are all that it needs.
    Scope(Scopes),
}

impl From<ErrorObject> for RouteRefusal {
    fn from(error: ErrorObject) -> Self {
        Self::Error(error)
    }
}

/// What demands scopes.
pub(super) trait ScopeDemand {
    fn scopes(&self) -> &Scopes;

    /// Returns whether lists leave it out.
    fn is_hidden(&self) -> bool {
        false
    }

    /// Returns whether a client with this access may use it. One without a token may.
    fn is_open_to(&self, access: Option<&Access>) -> bool {
        access.is_none_or(|access| access.scopes.contains_all(self.scopes()))
    }

    /// Checks that the client of a request may use it.
    fn check_scopes(&self, context: &Context) -> Result<(), RouteRefusal> {
        match self.is_open_to(context.access.as_deref()) {
            true => Ok(()),
            false => Err(RouteRefusal::Scope(self.scopes().clone())),
        }
    }
}

impl ScopeDemand for Tool {
    fn scopes(&self) -> &Scopes {
        &self.scopes
    }
}

impl ScopeDemand for Prompt {
    fn scopes(&self) -> &Scopes {
        &self.scopes
    }
}

impl ScopeDemand for Resource {
    fn scopes(&self) -> &Scopes {
        &self.scopes
    }

    fn is_hidden(&self) -> bool {
        self.hidden
    }
}

#[cfg(feature = "skills")]
impl ScopeDemand for crate::model::skills::Skill {
    fn scopes(&self) -> &Scopes {
        &self.scopes
    }

    fn is_hidden(&self) -> bool {
        self.hidden
    }
}

impl ScopeDemand for ResourceTemplate {
    fn scopes(&self) -> &Scopes {
        &self.scopes
    }
}

impl Router {
    /// Leaves out of lists what the token of the client does not suffice for: tools, prompts,
    /// resources and templates with [`scopes`](crate::Tool::scopes). By default clients see all of
    /// them, so that they know what more rights are good for. What a function lists stays, since
    /// the function knows the client too ([`Cx::granted`](crate::Cx::granted)).
    ///
    /// Set the cache of a list to private then (`list_cache` and its siblings in the
    /// [configuration](crate::ServerConfig)): it differs from client to client.
    #[must_use]
    pub fn hide_unscoped(mut self) -> Self {
        self.edit().hides_unscoped = true;
        self
    }
}

#[cfg(test)]
mod tests;
