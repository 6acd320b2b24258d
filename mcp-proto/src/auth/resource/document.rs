//! The metadata document of a resource (RFC 9728 section 2), and its URL.

use super::{ProofUse, Resource};
use crate::auth::Alg;
use crate::auth::identifier::resource_urls;
use crate::fetch::HttpTarget;
use crate::rpc::{Object, RawJson};
use alloc::string::String;
use alloc::vec::Vec;
use bytes::Bytes;

/// The scope for refresh tokens. It is a matter of the issuer, and not of a resource (2026-07-28
/// authorization, refresh tokens).
pub(super) const OFFLINE: &str = "offline_access";

/// The metadata document of a resource, and where it is served.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct ResourceDocument {
    /// Its URL.
    pub(crate) url: String,
    /// The path of that.
    pub(crate) path: String,
    /// Its text.
    pub(crate) body: Bytes,
}

impl Resource {
    /// Returns the document. `None` if the identifier is not valid.
    pub(crate) fn document(&self) -> Option<ResourceDocument> {
        // The first one is derived from the whole identifier (RFC 9728 section 3.1).
        let url = resource_urls(&self.target().ok()?).into_iter().next()?;
        let path = HttpTarget::parse(&url).ok()?.path;
        Some(ResourceDocument { url, path, body: self.metadata().to_json().to_bytes() })
    }

    fn metadata(&self) -> Object {
        let scopes = self.scopes_supported.iter().filter(|scope| *scope != OFFLINE);
        let scopes: Vec<RawJson> = scopes.map(RawJson::from).collect();
        let issuers = self.authorization_servers.iter().map(|issuer| issuer.as_str().into());
        let metadata = Object::new()
            .with("resource", self.identifier.as_str())
            .with("authorization_servers", issuers.collect::<Vec<RawJson>>())
            .with("bearer_methods_supported", alloc::vec!["header"])
            .with_opt("scopes_supported", (!scopes.is_empty()).then_some(scopes))
            .with_opt("resource_name", self.name.as_deref())
            .with_opt("resource_documentation", self.documentation.as_deref());
        match self.dpop {
            ProofUse::Off => metadata,
            ProofUse::Accepted | ProofUse::Required => metadata
                .with("dpop_signing_alg_values_supported", Alg::ALL.map(Alg::as_str).to_vec())
                .with("dpop_bound_access_tokens_required", self.dpop == ProofUse::Required),
        }
    }
}

#[cfg(test)]
mod tests;
