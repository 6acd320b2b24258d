//! Metadata of a resource (RFC 9728) and of an issuer (RFC 8414).

use super::dpop::ProofAlgs;
use super::identifier;
use super::scopes::Scopes;
use crate::fetch::HttpTarget;
use crate::rpc::{Object, RawJson};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// The number of issuers of one resource that count.
const MAX_ISSUERS: usize = 4;

/// What the metadata of a resource says (RFC 9728 section 2).
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct ResourceMetadata {
    /// The identifier of the resource, as published.
    pub(super) resource: String,
    /// The issuers, in order, at most four.
    pub(super) authorization_servers: Vec<String>,
    pub(super) scopes_supported: Option<Scopes>,
    /// The algorithms of proofs, if it asks for tokens that are bound to a key.
    pub(super) dpop: Option<ProofAlgs>,
}

/// What the metadata of an issuer says (RFC 8414 section 2).
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct IssuerMetadata {
    /// The issuer, as published. Empty if the document names none.
    pub(super) issuer: String,
    pub(super) authorization_endpoint: Option<String>,
    pub(super) token_endpoint: String,
    pub(super) registration_endpoint: Option<String>,
    pub(super) revocation_endpoint: Option<String>,
    /// `device_authorization_endpoint` (RFC 8628 section 4).
    pub(super) device_endpoint: Option<String>,
    pub(super) scopes_supported: Option<Scopes>,
    /// `code_challenge_methods_supported`.
    pub(super) code_challenge_methods: Option<Vec<String>>,
    /// `token_endpoint_auth_methods_supported`.
    pub(super) token_auth_methods: Option<Vec<String>>,
    /// `token_endpoint_auth_signing_alg_values_supported`.
    pub(super) token_auth_algs: Option<Vec<String>>,
    /// `client_id_metadata_document_supported`.
    pub(super) client_id_metadata_document: bool,
    /// `authorization_response_iss_parameter_supported`.
    pub(super) iss_parameter: bool,
    /// `dpop_signing_alg_values_supported`.
    pub(super) dpop: Option<ProofAlgs>,
    /// Whether there is no document, and these are the default endpoints of 2025-03-26.
    pub(super) is_default: bool,
}

/// Why a document that is no JSON object is not used.
pub(super) const NO_OBJECT: &str = "it is no JSON object";

/// Returns a member of a document, or what is wrong with it. `null` counts as absent.
macro_rules! member {
    ($members:expr, $name:literal, $kind:literal) => {
        $members.optional($name).map_err(|_| concat!($name, " is no ", $kind))
    };
}

impl ResourceMetadata {
    /// Reads a document.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn read(document: &[u8]) -> Result<Self, &'static str> {
        let members = object(document)?;
        let issuers: Option<Vec<String>> = member!(members, "authorization_servers", "array of strings")?;
        let is_bound: Option<bool> = member!(members, "dpop_bound_access_tokens_required", "boolean")?;
        Ok(Self {
            resource: member!(members, "resource", "string")?.ok_or("it has no resource")?,
            authorization_servers: issuers.into_iter().flatten().take(MAX_ISSUERS).collect(),
            scopes_supported: scopes(&members)?,
            dpop: proof_algs(&members)?.or(is_bound.unwrap_or_default().then_some(ProofAlgs::ALL)),
        })
    }
}

impl IssuerMetadata {
    /// Reads a document.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn read(document: &[u8]) -> Result<Self, &'static str> {
        let members = object(document)?;
        let has_document: Option<bool> = member!(members, "client_id_metadata_document_supported", "boolean")?;
        let has_iss: Option<bool> = member!(members, "authorization_response_iss_parameter_supported", "boolean")?;
        let issuer: Option<String> = member!(members, "issuer", "string")?;
        Ok(Self {
            issuer: issuer.unwrap_or_default(),
            authorization_endpoint: member!(members, "authorization_endpoint", "string")?,
            token_endpoint: member!(members, "token_endpoint", "string")?.ok_or("it has no token_endpoint")?,
            registration_endpoint: member!(members, "registration_endpoint", "string")?,
            revocation_endpoint: member!(members, "revocation_endpoint", "string")?,
            device_endpoint: member!(members, "device_authorization_endpoint", "string")?,
            scopes_supported: scopes(&members)?,
            code_challenge_methods: member!(members, "code_challenge_methods_supported", "array of strings")?,
            token_auth_methods: member!(members, "token_endpoint_auth_methods_supported", "array of strings")?,
            token_auth_algs: member!(members, "token_endpoint_auth_signing_alg_values_supported", "array of strings")?,
            client_id_metadata_document: has_document.unwrap_or_default(),
            iss_parameter: has_iss.unwrap_or_default(),
            dpop: proof_algs(&members)?,
            is_default: false,
        })
    }

    /// Returns the default endpoints of 2025-03-26 at the origin of a server. That revision
    /// requires PKCE, so they count as listing S256.
    pub(super) fn first_revision(server: &HttpTarget) -> Self {
        let issuer = identifier::origin(server);
        Self {
            authorization_endpoint: Some(format!("{issuer}/authorize")),
            token_endpoint: format!("{issuer}/token"),
            registration_endpoint: Some(format!("{issuer}/register")),
            revocation_endpoint: None,
            device_endpoint: None,
            scopes_supported: None,
            code_challenge_methods: Some(alloc::vec!["S256".into()]),
            token_auth_methods: None,
            token_auth_algs: None,
            client_id_metadata_document: false,
            iss_parameter: false,
            dpop: None,
            is_default: true,
            issuer,
        }
    }
}

/// Reads a JSON object.
pub(super) fn object(document: &[u8]) -> Result<Object, &'static str> {
    let json = RawJson::parse_indented(document).map_err(|_| NO_OBJECT)?;
    Object::read(&json).map_err(|_| NO_OBJECT)
}

fn scopes(members: &Object) -> Result<Option<Scopes>, &'static str> {
    let names: Option<Vec<String>> = member!(members, "scopes_supported", "array of strings")?;
    Ok(names.map(|names| names.iter().map(String::as_str).collect()))
}

fn proof_algs(members: &Object) -> Result<Option<ProofAlgs>, &'static str> {
    let names: Option<Vec<String>> = member!(members, "dpop_signing_alg_values_supported", "array of strings")?;
    Ok(names.map(|names| ProofAlgs::listed(names.iter().map(String::as_str))))
}

#[cfg(test)]
mod tests;
