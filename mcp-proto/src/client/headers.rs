//! The check of header fields that an application adds to its requests.

use super::config::ClientConfig;
use crate::exchange::{Headers, is_token};
use alloc::string::String;
use core::fmt;

/// Fields that a client and its connection write themselves, in small letters. Another value for
/// one of them would break the framing, the routing, or the agreement with the body.
const RESERVED: [&str; 16] = [
    "accept",
    "accept-encoding",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "expect",
    "host",
    "keep-alive",
    "last-event-id",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// The prefix of the fields that the protocol itself defines, now or later.
const RESERVED_PREFIX: &str = "mcp-";

impl ClientConfig {
    /// Adds a header field to every HTTP request of this client: `Authorization`, a tenant, a
    /// trace. The same name may be added more than once.
    ///
    /// # Errors
    /// [`BadHeader`] if the field cannot be sent, or is one that the client writes itself.
    pub fn header(mut self, name: &str, value: &str) -> Result<Self, BadHeader> {
        BadHeader::check(name, value)?;
        self.headers.push(name, value);
        Ok(self)
    }
}

/// A header field that a client cannot add to its requests. Its text names the field, never its
/// value, which may be a secret.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum BadHeader {
    /// The name is empty, or contains a character that the name of a field cannot contain (RFC 9110
    /// section 5.1).
    Name(String),
    /// The value contains a control character (CR, LF and NUL included), or begins or ends with
    /// white space (RFC 9110 section 5.5). The client sends any other text unchanged, in UTF-8.
    Value {
        /// The name of the field.
        name: String,
    },
    /// The client writes this field itself. It belongs to the message or the connection, such as
    /// `Accept`, `Content-Type` and `Host`, or its name begins with `Mcp-`.
    Reserved(String),
}

impl BadHeader {
    /// Checks whether a client can add this field to its requests.
    ///
    /// # Errors
    /// The reason why it cannot.
    pub fn check(name: &str, value: &str) -> Result<(), Self> {
        let lower = name.to_ascii_lowercase();
        let is_blank = |c: char| c == ' ' || c == '\t';
        if !is_token(name) {
            Err(Self::Name(name.into()))
        } else if RESERVED.contains(&lower.as_str()) || lower.starts_with(RESERVED_PREFIX) {
            Err(Self::Reserved(name.into()))
        } else if value.chars().any(|c| c != '\t' && c.is_control())
            || value.starts_with(is_blank)
            || value.ends_with(is_blank)
        {
            Err(Self::Value { name: name.into() })
        } else {
            Ok(())
        }
    }
}

impl fmt::Display for BadHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => write!(f, "{name:?} is not the name of a header field"),
            Self::Value { name } => {
                write!(
                    f,
                    "the value of the header field {name} holds a control character or begins or ends with white space"
                )
            }
            Self::Reserved(name) => write!(f, "the header field {name} is written by the client itself"),
        }
    }
}

impl core::error::Error for BadHeader {}

/// Returns the fields of the application that may be sent. Only a direct write to the public field
/// can have added one that [`BadHeader::check`] refuses.
pub(super) fn own(headers: &Headers) -> impl Iterator<Item = (&str, &str)> {
    headers.iter().filter(|(name, value)| BadHeader::check(name, value).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use alloc::vec::Vec;

    // covers: B-162, B-158, HDR-B-007, PROXY-C-005
    #[test]
    fn a_field_that_cannot_be_sent_is_refused_when_it_is_configured() {
        let config = || ClientConfig::url("http://h/").unwrap();
        for (name, value) in [
            ("X-User", "Jos\u{e9} \u{1f600}"),
            ("Authorization", "Bearer a.b-c=="),
            ("x-empty", ""),
            ("X-Tab", "a\tb"),
            ("Cookie", "a=b; c=d"),
            ("Origin", "https://h"),
        ] {
            let fields: Vec<(String, String)> = config()
                .header(name, value)
                .unwrap()
                .headers
                .iter()
                .map(|(name, value)| (name.into(), value.into()))
                .collect();
            assert_eq!(fields, [(name.to_string(), value.to_string())]);
        }
        for value in ["a\r\nInjected: 1", "a\nb", "a\rb", "a\0b", "\u{7f}", "a\u{85}b", " a", "a\t"] {
            let e = config().header("X-User", value).unwrap_err();
            assert_eq!(e, BadHeader::Value { name: "X-User".into() });
            assert!(!e.to_string().contains("Injected"));
        }
        for name in ["", "X User", "X-\u{dc}ser", "a:b", "a\r\nb", "(x)"] {
            assert_eq!(config().header(name, "v").unwrap_err(), BadHeader::Name(name.into()));
        }
        for name in [
            "Accept",
            "CONTENT-TYPE",
            "content-length",
            "Host",
            "Transfer-Encoding",
            "Connection",
            "Last-Event-ID",
            "MCP-Protocol-Version",
            "Mcp-Session-Id",
            "Mcp-Method",
            "mcp-param-x",
            "Proxy-Authorization",
        ] {
            assert_eq!(config().header(name, "v").unwrap_err(), BadHeader::Reserved(name.into()));
        }
    }

    // covers: B-158
    #[test]
    fn invalid_field_that_was_added_by_hand_is_not_sent() {
        let headers = Headers::new().with("accept", "*/*").with("X-A", "1").with("X-B", "a\r\nX-C: 2").with("X-A", "2");
        assert_eq!(own(&headers).collect::<Vec<_>>(), [("X-A", "1"), ("X-A", "2")]);
    }
}
