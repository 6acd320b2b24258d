//! How a forward proxy fails. It is never the answer of the server behind it.

use crate::peer_text::Visible;
use alloc::string::String;
use core::fmt;

/// Why a forward proxy did not pass on a connection or a request (RFC 9110 section 3.7). It
/// contains no credentials, and nothing that the proxy sent except its status. Its `Display` has
/// [escapes](crate::error#text-of-a-peer).
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct ProxyFailure {
    /// The kind, for programs.
    pub kind: ProxyFailureKind,
    /// The host and port of the proxy. For [`ProxyFailureKind::Misconfigured`], the setting.
    pub proxy: String,
    /// The status of its response, if it sent one.
    pub status: Option<u16>,
    /// The details, for people. Often empty.
    pub detail: String,
}

/// The kinds of [`ProxyFailure`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum ProxyFailureKind {
    /// The setting of the proxy cannot be used. The client connects to no server that it concerns,
    /// neither through a proxy nor without one.
    Misconfigured,
    /// No connection to the proxy could be opened.
    Unreachable,
    /// The proxy asks for credentials, or refuses those that it got: status 407 (RFC 9110 section
    /// 15.5.8).
    Unauthorized,
    /// The proxy refused to open a tunnel, with another status that is not a success (RFC 9110
    /// section 9.3.6).
    Refused,
    /// The proxy ended the connection, did not answer in time, or violated HTTP before the tunnel
    /// was open.
    Broken,
}

impl ProxyFailure {
    /// Creates a failure without a status.
    pub fn new(kind: ProxyFailureKind, proxy: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { kind, proxy: proxy.into(), status: None, detail: detail.into() }
    }
}

impl fmt::Display for ProxyFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, proxy, status, detail } = self;
        match kind {
            ProxyFailureKind::Misconfigured => write!(f, "the proxy setting {proxy} cannot be used")?,
            ProxyFailureKind::Unreachable => write!(f, "the proxy {proxy} cannot be reached")?,
            ProxyFailureKind::Unauthorized => write!(f, "the proxy {proxy} demands credentials")?,
            ProxyFailureKind::Refused => write!(f, "the proxy {proxy} refused the connection")?,
            ProxyFailureKind::Broken => write!(f, "the proxy {proxy} opened no connection")?,
        }
        if let Some(status) = status {
            write!(f, " (HTTP {status})")?;
        }
        if detail.is_empty() { Ok(()) } else { write!(f, ": {}", Visible(detail)) }
    }
}
