//! Parsed URLs of servers (RFC 3986).

use crate::exchange::Origin;
use crate::frame::WsSupport;
use crate::http_support::HttpSupport;
use crate::redact::Url;
use alloc::format;
use alloc::string::{String, ToString};

/// A parsed `http:` or `https:` URL. Its `Debug` shows no secret of the query.
#[derive(Clone, PartialEq, Eq)]
pub struct HttpTarget {
    /// Scheme, host and port.
    pub origin: Origin,
    /// The request target: path and query, at least `/`.
    pub path: String,
    /// The URL as it was given.
    pub original: String,
    support: HttpSupport,
}

impl HttpTarget {
    pub(crate) const fn support(&self) -> HttpSupport {
        self.support
    }
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
    /// Parses a URL (RFC 3986).
    ///
    /// # Errors
    /// [`BadUrl`] if it is not an absolute `http:` or `https:` URL, names a user, or has a port
    /// beyond 65535. Always without the feature `http`.
    pub fn parse(url: &str) -> Result<Self, BadUrl> {
        let (origin, path) = parse(url, ["http", "https"])?;
        Self::from_parts(origin, path, url.into()).ok_or(BadUrl)
    }

    /// Returns the URL with these parts. `None` without the feature `http`.
    pub(crate) fn from_parts(origin: Origin, path: String, original: String) -> Option<Self> {
        HttpSupport::get().map(|support| Self { origin, path, original, support })
    }

    /// Returns the URL, without a fragment.
    pub(crate) fn url(&self) -> String {
        let scheme = if self.origin.tls { "https" } else { "http" };
        format!("{scheme}://{}{}", self.authority(), self.path)
    }

    /// Returns the value of `Host`. It omits the default port of the scheme (RFC 9110 section 7.2).
    pub(crate) fn authority(&self) -> String {
        authority(&self.origin)
    }
}

/// A parsed `ws:` or `wss:` URL (RFC 6455 section 3). Its `Debug` shows no secret of the query.
#[derive(Clone, PartialEq, Eq)]
pub struct WsTarget {
    /// Scheme, host and port.
    pub origin: Origin,
    /// The request target: path and query, at least `/`.
    pub path: String,
    /// The URL as it was given.
    pub original: String,
    _support: WsSupport,
}

impl core::fmt::Debug for WsTarget {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("WsTarget")
            .field("origin", &self.origin)
            .field("path", &Url(&self.path))
            .field("original", &Url(&self.original))
            .finish()
    }
}

impl WsTarget {
    /// Parses a URL (RFC 3986).
    ///
    /// # Errors
    /// [`BadUrl`] if it is not an absolute `ws:` or `wss:` URL, names a user, or has a port beyond
    /// 65535. Always without the feature `ws`.
    pub fn parse(url: &str) -> Result<Self, BadUrl> {
        let (origin, path) = parse(url, ["ws", "wss"])?;
        Self::from_parts(origin, path, url.into()).ok_or(BadUrl)
    }

    /// Returns the URL with these parts. `None` without the feature `ws`.
    pub(crate) fn from_parts(origin: Origin, path: String, original: String) -> Option<Self> {
        WsSupport::get().map(|support| Self { origin, path, original, _support: support })
    }

    /// Returns the value of `Host`.
    pub(crate) fn authority(&self) -> String {
        authority(&self.origin)
    }

    /// Returns the URL, without a fragment.
    pub(crate) fn url(&self) -> String {
        let scheme = if self.origin.tls { "wss" } else { "ws" };
        format!("{scheme}://{}{}", self.authority(), self.path)
    }
}

/// Takes an absolute URL with one of two schemes apart: without TLS, and with it.
fn parse(url: &str, [plain, tls]: [&str; 2]) -> Result<(Origin, String), BadUrl> {
    let parsed = iri_string::types::UriAbsoluteStr::new(url.split('#').next().unwrap_or(url)).map_err(|_| BadUrl)?;
    let tls = match parsed.scheme_str() {
        scheme if scheme.eq_ignore_ascii_case(plain) => false,
        scheme if scheme.eq_ignore_ascii_case(tls) => true,
        _ => return Err(BadUrl),
    };
    let authority = parsed.authority_components().ok_or(BadUrl)?;
    if authority.userinfo().is_some() || authority.host().is_empty() {
        return Err(BadUrl);
    }
    // Names of hosts have no case (RFC 3986 section 3.2.2).
    let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase().into();
    let port = match authority.port() {
        None | Some("") if tls => 443,
        None | Some("") => 80,
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
    Ok((Origin { tls, host, port }, path))
}

fn authority(Origin { tls, host, port }: &Origin) -> String {
    let host = if host.contains(':') { format!("[{host}]") } else { host.to_string() };
    match (tls, port) {
        (false, 80) | (true, 443) => host,
        (_, port) => format!("{host}:{port}"),
    }
}

/// Returns host and port, with brackets around an IPv6 address.
pub(crate) fn authority_with_port(host: &str, port: u16) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

/// A URL that is not one of a server, or any URL without the feature `http`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
pub struct BadUrl;

impl core::fmt::Display for BadUrl {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match HttpSupport::get() {
            Some(_) if WsSupport::get().is_some() => "not an absolute http:, https:, ws: or wss: URL without a user",
            Some(_) => "not an absolute http: or https: URL without a user (ws: and wss: need the feature `ws`)",
            None => "HTTP is not compiled in",
        })
    }
}

impl core::error::Error for BadUrl {}
