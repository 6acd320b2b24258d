//! Documents of MCP Apps: those that tools show exist, and handlers learn whether a client has any
//! use for them.

use super::{Cx, Router};
use crate::model::apps::{EXTENSION, UiResource, shows};
use crate::model::tools::Tool;

impl Router {
    /// Adds a document of MCP Apps as a resource. Add it before the tools that it shows. A document
    /// that is made when it is read is a [`resource`](Self::resource) or a
    /// [`template`](Self::template) with the media type
    /// [`apps::MIME_TYPE`](crate::apps::MIME_TYPE).
    ///
    /// # Panics
    /// If no server may offer it: see [`UiResource::check`].
    #[must_use]
    pub fn ui_resource(self, document: UiResource) -> Self {
        document.check().unwrap_or_else(|e| panic!("{e}"));
        let (resource, contents) = document.into_parts();
        self.inline(|router| router.resource(resource, move |_cx| Ok(contents.clone())))
    }

    /// Checks that the document of a tool exists (2026-01-26 apps, resource discovery).
    pub(super) fn check_app_of(&self, tool: &Tool) {
        if let Some(uri) = tool.ui_resource() {
            let exists = self.0.resources.has(&uri);
            assert!(exists, "the tool `{}` shows `{uri}`, which is no resource of the router", tool.name);
        }
    }

    /// Checks the documents of all tools.
    pub(super) fn check_apps(&self) {
        self.0.tools.all().for_each(|tool| self.check_app_of(tool));
    }
}

impl Cx {
    /// Returns whether the client shows documents of MCP Apps
    /// ([`apps::MIME_TYPE`](crate::apps::MIME_TYPE)), which it declares in every revision. A tool
    /// can return more text if it does not.
    pub fn supports_apps(&self) -> bool {
        self.context().capabilities().extensions.get(EXTENSION).is_some_and(|settings| shows(&settings))
    }
}

#[cfg(test)]
mod tests;
