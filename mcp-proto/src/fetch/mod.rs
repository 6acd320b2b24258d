//! What an HTTP request that is not MCP consists of: URLs, redirects, and the request and response
//! of [`Client::fetch`](crate::ClientCommands::fetch). No exchange, no state.

mod redirect;
mod url;

pub use redirect::Redirects;
pub(crate) use redirect::{HopFrom, Hops, is_redirect};
pub(crate) use url::authority_with_port;
pub use url::{BadUrl, HttpTarget, WsTarget};

use crate::error::Refusal;
use crate::exchange::{Closed, Headers, Reach, RedirectRefusal, Sent};
use crate::redact::Url;
use alloc::string::String;
use bytes::Bytes;
use core::fmt;
use core::time::Duration;

/// Identifies a fetch of a client. The application chooses it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
pub struct FetchId(pub u64);

/// An HTTP request for [`Client::fetch`](crate::ClientCommands::fetch). Its `Debug` shows no secret
/// of the URL and the fields, and not the body.
#[derive(Clone, PartialEq)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct FetchRequest {
    /// The URL.
    #[cfg_attr(feature = "record", serde(with = "crate::record::value"))]
    pub url: HttpTarget,
    /// The method: a token (RFC 9110 section 9.1).
    pub method: String,
    /// The header fields. The connection adds `Host` and what frames the body; a field of these
    /// names is not sent, nor one that cannot be. Default none.
    pub headers: Headers,
    /// The body. Default empty.
    #[cfg_attr(feature = "record", serde(with = "crate::record::value"))]
    pub body: Bytes,
    /// The redirects that are followed. Default: up to five to any origin for a GET, none for
    /// another method. To another origin only `Accept`, `Accept-Language`, `Content-Type` and
    /// `User-Agent` are sent along.
    pub redirects: Redirects,
    /// The addresses to which the connection may lead, also after a redirect. Default
    /// [`Reach::Any`]. Use [`Reach::Public`] for a URL that comes from a peer.
    pub reach: Reach,
    /// Maximum time until the end of the response. Default 30 s.
    pub timeout: Duration,
    /// Maximum length of the body of the response, in bytes. Default 1 MiB. The
    /// [`max_response_body`](crate::limits::FrameLimits::max_response_body) of the client holds as
    /// well.
    pub max_body: usize,
}

impl FetchRequest {
    /// Returns a GET of this URL.
    pub fn get(url: HttpTarget) -> Self {
        Self {
            url,
            method: "GET".into(),
            headers: Headers::new(),
            body: Bytes::new(),
            redirects: Redirects::Follow { max: 5 },
            reach: Reach::Any,
            timeout: Duration::from_secs(30),
            max_body: 1 << 20,
        }
    }

    /// Returns a POST of this body, with its media type. It follows no redirect.
    pub fn post(url: HttpTarget, content_type: &str, body: impl Into<Bytes>) -> Self {
        Self {
            method: "POST".into(),
            headers: Headers::new().with("Content-Type", content_type),
            body: body.into(),
            redirects: Redirects::None,
            ..Self::get(url)
        }
    }
}

impl fmt::Debug for FetchRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { url, method, headers, body, redirects, reach, timeout, max_body } = self;
        f.debug_struct("FetchRequest")
            .field("url", url)
            .field("method", method)
            .field("headers", headers)
            .field("body", &body.len())
            .field("redirects", redirects)
            .field("reach", reach)
            .field("timeout", timeout)
            .field("max_body", max_body)
            .finish()
    }
}

/// The response to a [`FetchRequest`], whatever its status. Its `Debug` shows the length of the
/// body: it may have tokens in it.
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub struct FetchResponse {
    /// The status.
    pub status: u16,
    /// The header fields.
    pub headers: Headers,
    /// The whole body.
    pub body: Bytes,
    /// The URL that it came from: that of the request, or the last one of its redirects.
    pub url: String,
    /// Why it is a redirect that was not followed.
    pub redirect: Option<RedirectRefusal>,
}

impl FetchResponse {
    /// Creates the response of the request at this URL, for what makes requests without a client,
    /// such as the driver of a [`Flow`](crate::auth::Flow).
    pub fn new(status: u16, headers: Headers, body: impl Into<Bytes>, url: impl Into<String>) -> Self {
        Self { status, headers, body: body.into(), url: url.into(), redirect: None }
    }
}

impl fmt::Debug for FetchResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { status, headers, body, url, redirect } = self;
        f.debug_struct("FetchResponse")
            .field("status", status)
            .field("headers", headers)
            .field("body", &body.len())
            .field("url", &Url(url))
            .field("redirect", redirect)
            .finish()
    }
}

/// Why a [`FetchRequest`] has no response. Its `Display` has
/// [escapes](crate::error#text-of-a-peer).
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum FetchError {
    /// It did not begin.
    Refused(Refusal),
    /// The connection failed, or the client was closed.
    Closed {
        /// Whether the request can have reached the server.
        sent: Sent,
        /// How it failed.
        why: Closed,
    },
    /// It took longer than [`FetchRequest::timeout`].
    Timeout(Sent),
    /// The body is longer than [`FetchRequest::max_body`].
    TooLong,
}

impl fmt::Display for FetchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(why) => why.fmt(f),
            Self::Closed { why, .. } => why.fmt(f),
            Self::Timeout(_) => f.write_str("the response took too long"),
            Self::TooLong => f.write_str("the body of the response is longer than the limit"),
        }
    }
}

impl core::error::Error for FetchError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Closed { why, .. } => Some(why),
            Self::Refused(why) => Some(why),
            Self::Timeout(_) | Self::TooLong => None,
        }
    }
}
