//! The handshake of a WebSocket that was answered by something else (RFC 6455 section 4.1), and why
//! a redirect was not followed.

use crate::peer_text::Visible;
use crate::redact::Url;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::net::IpAddr;
use core::time::Duration;

/// The response of a server to the handshake of a WebSocket, if it is not `101`. Its `Display`
/// has [escapes](crate::error#text-of-a-peer).
#[derive(Clone, PartialEq, Eq)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct UpgradeRefusal {
    /// The status.
    pub status: u16,
    /// The `WWW-Authenticate` fields.
    pub challenges: Vec<String>,
    /// The `DPoP-Nonce` field (RFC 9449 section 9).
    pub dpop_nonce: Option<String>,
    /// The `Retry-After` field, as sent (RFC 9110 section 10.2.3). `None` if there is none, or if
    /// it is a date.
    pub retry_after: Option<Duration>,
    /// The target of a redirect, as sent. `None` without a `Location` field, or with several.
    pub location: Option<String>,
    /// Why the client did not follow the redirect. The engine adds it.
    pub redirect: Option<RedirectRefusal>,
    /// The address that the connection led to. `None` behind a proxy, and if the driver did not
    /// report it.
    pub address: Option<IpAddr>,
}

impl UpgradeRefusal {
    /// Creates one with a status and nothing else.
    pub const fn new(status: u16) -> Self {
        Self {
            status,
            challenges: Vec::new(),
            dpop_nonce: None,
            retry_after: None,
            location: None,
            redirect: None,
            address: None,
        }
    }
}

impl fmt::Debug for UpgradeRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NotUpgraded")
            .field("status", &self.status)
            .field("challenges", &self.challenges)
            .field("dpop_nonce", &self.dpop_nonce)
            .field("retry_after", &self.retry_after)
            .field("location", &self.location.as_deref().map(Url))
            .field("redirect", &self.redirect)
            .field("address", &self.address)
            .finish()
    }
}

impl fmt::Display for UpgradeRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HTTP {} in place of a websocket", self.status)?;
        if let Some(after) = self.retry_after {
            write!(f, " [retry after {} s]", after.as_secs())?;
        }
        let Some(why) = self.redirect else { return Ok(()) };
        f.write_str(" [redirected")?;
        if let Some(location) = &self.location {
            write!(f, " to {}", Visible(location))?;
        }
        write!(f, ", not followed: {why}]")
    }
}

/// Why a client did not follow a redirect (RFC 9110 section 15.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum RedirectRefusal {
    /// It follows none: [`Redirects::None`](crate::client::Redirects::None).
    Off,
    /// The response has no `Location`, or several, or one that is no `http:` or `https:` URL
    /// without a user.
    Location,
    /// It would turn a POST or a DELETE into a GET.
    Method,
    /// It leads from `https:` to `http:`.
    Insecure,
    /// It leads to another origin, and the client follows only redirects within one:
    /// [`Redirects::SameOrigin`](crate::client::Redirects::SameOrigin).
    Origin,
    /// The request has already been at that URL.
    Loop,
    /// It is one more than the maximum.
    TooMany,
    /// The rest of a stream is only at the server that began it.
    Stream,
    /// It leads from a public address to one that is not:
    /// [`Reach::Public`](crate::exchange::Reach::Public).
    NotPublic,
}

impl fmt::Display for RedirectRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Off => "redirects are off",
            Self::Location => "the location is not one http: or https: URL",
            Self::Method => "this status would change the method",
            Self::Insecure => "it leads from https: to http:; the server does not know that it is behind TLS",
            Self::Origin => "it leads to another origin",
            Self::Loop => "it leads back to where the request has been",
            Self::TooMany => "too many redirects in a row",
            Self::Stream => "a stream continues only at its server",
            Self::NotPublic => "it leads to an address that is not public",
        })
    }
}

impl core::error::Error for RedirectRefusal {}
