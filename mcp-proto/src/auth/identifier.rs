//! Identifiers of resources and issuers, and the URLs of their metadata (RFC 9728, RFC 8414).

use super::policy::MAX_URL;
use crate::fetch::HttpTarget;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

const RESOURCE: &str = "/.well-known/oauth-protected-resource";
const ISSUER: &str = "/.well-known/oauth-authorization-server";
const OPENID: &str = "/.well-known/openid-configuration";

/// Returns the origin of a URL, without a slash at its end.
pub(super) fn origin(target: &HttpTarget) -> String {
    let scheme = if target.origin.tls { "https" } else { "http" };
    format!("{scheme}://{}", target.authority())
}

/// Returns the URLs of the metadata of a server, in order (RFC 9728 section 3.1).
pub(super) fn resource_urls(server: &HttpTarget) -> Vec<String> {
    let root = format!("{}{RESOURCE}", origin(server));
    let path = path(server);
    let bare = path.trim_end_matches('/');
    if bare.is_empty() || is_well_known(path) {
        return vec![root];
    }
    // Only a slash right after the host is left out.
    let end = if bare.len() < path.len() { "/" } else { "" };
    vec![format!("{root}{bare}{end}"), root]
}

/// Returns the URLs of the metadata of an issuer, in order (RFC 8414 section 3, and OpenID Connect
/// Discovery section 4). No URLs if the issuer is a well-known URL itself.
pub(super) fn issuer_urls(issuer: &HttpTarget) -> Vec<String> {
    let origin = origin(issuer);
    match path(issuer).trim_end_matches('/') {
        "" => vec![format!("{origin}{ISSUER}"), format!("{origin}{OPENID}")],
        path if is_well_known(path) => Vec::new(),
        path => {
            vec![
                format!("{origin}{ISSUER}{path}"),
                format!("{origin}{OPENID}{path}"),
                format!("{origin}{path}{OPENID}"),
            ]
        }
    }
}

/// Returns the URL of the metadata of the issuer at the origin of a server (2025-03-26).
pub(super) fn first_revision_url(server: &HttpTarget) -> String {
    format!("{}{ISSUER}", origin(server))
}

/// Returns the identifier of a server without metadata.
pub(super) fn own_identifier(server: &HttpTarget) -> String {
    let path = path(server);
    format!("{}{}", origin(server), if path == "/" { "" } else { path })
}

/// Returns a URL without its query.
pub(super) fn without_query(target: &HttpTarget) -> String {
    format!("{}{}", origin(target), path(target))
}

/// Returns whether an identifier is one of this server: its URL, or a parent of that at a border of
/// segments. A slash at the end does not count. With the query it must be the very URL.
pub(super) fn fits(identifier: &str, server: &HttpTarget) -> bool {
    if identifier.len() > MAX_URL || identifier.contains('#') {
        return false;
    }
    let Ok(resource) = HttpTarget::parse(identifier) else { return false };
    let rest = path(server).strip_prefix(path(&resource).trim_end_matches('/'));
    let is_parent = rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    let is_same = if resource.path.contains('?') { resource.path == server.path } else { is_parent };
    resource.origin == server.origin && is_same
}

/// How the issuer in a document compares with the one that was asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum IssuerMatch {
    Equal,
    /// One of them has a slash more at its end.
    Slash,
    Different,
}

/// Compares two issuers (RFC 8414 section 3.3).
pub(super) fn same_issuer(found: &str, asked: &str, slash: bool) -> IssuerMatch {
    match () {
        () if found == asked => IssuerMatch::Equal,
        () if slash && (found.strip_suffix('/') == Some(asked) || asked.strip_suffix('/') == Some(found)) => {
            IssuerMatch::Slash
        }
        () => IssuerMatch::Different,
    }
}

/// Returns the path of a URL, without its query.
fn path(target: &HttpTarget) -> &str {
    target.path.split('?').next().unwrap_or_default()
}

/// Returns whether a path is that of a well-known URL, or below one (RFC 8615).
fn is_well_known(path: &str) -> bool {
    path.split('/').any(|segment| segment == ".well-known")
}

#[cfg(test)]
mod tests;
