//! URLs of servers, taken apart once (RFC 3986).

use crate::exchange::Origin;
use crate::redact::Url;
use alloc::format;
use alloc::string::String;

/// An `http:` or `https:` URL, taken apart. Its `Debug` shows no secret of the query.
#[derive(Clone, PartialEq, Eq)]
pub struct HttpTarget {
    /// Scheme, host and port.
    pub origin: Origin,
    /// The request target: path and query, at least `/`.
    pub path: String,
    /// The URL as it was given.
    pub original: String,
}

impl core::fmt::Debug for HttpTarget {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("HttpTarget")
            .field("origin", &self.origin)
            .field("path", &Url(&self.path))
            .field("original", &Url(&self.original))
            .finish()
    }
}

impl HttpTarget {
    /// Takes a URL apart (RFC 3986).
    ///
    /// # Errors
    /// [`BadUrl`] if it is not an absolute `http:` or `https:` URL, names a user, or has a port beyond 65535.
    pub fn parse(url: &str) -> Result<Self, BadUrl> {
        let parsed =
            iri_string::types::UriAbsoluteStr::new(url.split('#').next().unwrap_or(url)).map_err(|_| BadUrl)?;
        let tls = match parsed.scheme_str() {
            scheme if scheme.eq_ignore_ascii_case("http") => false,
            scheme if scheme.eq_ignore_ascii_case("https") => true,
            _ => return Err(BadUrl),
        };
        let authority = parsed.authority_components().ok_or(BadUrl)?;
        if authority.userinfo().is_some() || authority.host().is_empty() {
            return Err(BadUrl);
        }
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').into();
        let port = match authority.port() {
            None | Some("") => {
                if tls {
                    443
                } else {
                    80
                }
            }
            Some(port) => port.parse().map_err(|_| BadUrl)?,
        };
        let path = match parsed.path_str() {
            "" => "/",
            path => path,
        };
        let path = match parsed.query_str() {
            Some(query) => format!("{path}?{query}"),
            None => path.into(),
        };
        Ok(Self { origin: Origin { tls, host, port }, path, original: url.into() })
    }
}

impl HttpTarget {
    /// What `Host` says of it: the port is left out where it is the one that the scheme has anyway (RFC 9110 section 7.2).
    pub(super) fn authority(&self) -> String {
        let Origin { tls, host, port } = &self.origin;
        let host = if host.contains(':') { format!("[{host}]") } else { host.clone() };
        match (tls, port) {
            (false, 80) | (true, 443) => host,
            (_, port) => format!("{host}:{port}"),
        }
    }
}

/// A URL that no server can be reached by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BadUrl;

impl core::fmt::Display for BadUrl {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("not an absolute http: or https: URL without a user")
    }
}

impl core::error::Error for BadUrl {}
