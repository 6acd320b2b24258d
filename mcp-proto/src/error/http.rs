//! The error of an HTTP response whose status is not a success.

use crate::exchange::RedirectRefusal;
use crate::peer_text::Visible;
use crate::rpc::{ErrorObject, Object, code};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use bytes::Bytes;
use core::fmt;
use core::time::Duration;

/// A response whose HTTP status is not a success, with the reason that it states (RFC 9110 section
/// 15). Its `Display` shows the reason with [escapes](crate::error#text-of-a-peer).
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct HttpError {
    /// The status.
    pub status: u16,
    /// The JSON-RPC error in the body, if there is one. It does not name the request; otherwise it
    /// would be [`CallError::Rpc`](crate::CallError::Rpc).
    pub error: Option<ErrorObject>,
    /// The header fields about authorization.
    pub auth: AuthHints,
    /// The target of a redirect that the client did not follow, as sent.
    pub location: Option<String>,
    /// Why it did not.
    pub redirect: Option<RedirectRefusal>,
    /// The `Retry-After` field, as sent (RFC 9110 section 10.2.3). `None` if there is none, or if
    /// it is a date.
    pub retry_after: Option<Duration>,
    /// The first bytes of the body, at most 8 KiB.
    #[cfg_attr(feature = "record", serde(with = "crate::record::value"))]
    pub body_head: Bytes,
}

/// The header fields of a response that concern authorization.
#[derive(Clone, PartialEq, Eq, Debug, Default, PartialOrd, Ord)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
pub struct AuthHints {
    /// The `WWW-Authenticate` fields, in order (RFC 9110 section 11.6.1).
    pub www_authenticate: Vec<String>,
    /// The `Mcp-Auth-Server` field, which some servers send.
    pub auth_server: Option<String>,
}

impl HttpError {
    /// Creates an error with a status and nothing else.
    pub const fn new(status: u16) -> Self {
        let auth = AuthHints { www_authenticate: Vec::new(), auth_server: None };
        let (location, redirect) = (None, None);
        Self { status, error: None, auth, location, redirect, retry_after: None, body_head: Bytes::new() }
    }

    /// Returns the JSON-RPC error of the body. If there is none, returns `-32603` with the status
    /// as `data.httpStatus`.
    pub fn to_rpc_error(&self) -> ErrorObject {
        self.error.clone().unwrap_or_else(|| {
            let data = Object::new().with("httpStatus", u64::from(self.status));
            ErrorObject { data: Some(data.into()), ..ErrorObject::new(code::INTERNAL_ERROR, format!("{self}")) }
        })
    }
}

/// Maximum number of characters of a body that `Display` shows.
const SHOWN: usize = 200;

impl fmt::Display for HttpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HTTP {}", self.status)?;
        match &self.error {
            Some(error) => write!(f, ": {error}")?,
            None if self.body_head.is_empty() => {}
            None => {
                // The body may be a whole page.
                let text = String::from_utf8_lossy(&self.body_head);
                let end = text.char_indices().nth(SHOWN).map_or(text.len(), |(end, _)| end);
                write!(f, ": {}", Visible(text[..end].trim_end()))?;
            }
        }
        if let Some(location) = &self.location {
            write!(f, " [redirected to {}, not followed", Visible(location))?;
            self.redirect.map_or(Ok(()), |why| write!(f, ": {why}"))?;
            f.write_str("]")?;
        }
        if let Some(after) = self.retry_after {
            write!(f, " [retry after {} s]", after.as_secs())?;
        }
        let challenges = self.auth.www_authenticate.iter().map(|challenge| ("WWW-Authenticate", challenge));
        let server = self.auth.auth_server.iter().map(|server| ("Mcp-Auth-Server", server));
        let mut before = " [";
        for (name, value) in challenges.chain(server) {
            write!(f, "{before}{name}: {}", Visible(value))?;
            before = "; ";
        }
        f.write_str(if self.auth == AuthHints::default() { "" } else { "]" })
    }
}

impl core::error::Error for HttpError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        self.error.as_ref().map(|error| error as _)
    }
}
