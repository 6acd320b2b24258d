//! The names of secrets. Names compare without case, `_` and `-`: `api_key`, `apiKey` and `API-KEY`
//! are equal. For header fields there is a list of those without secrets, since a server may expect
//! credentials in a field of any name.

use super::Side;

/// A name that contains one of these denotes a secret.
const SECRET_PARTS: [&str; 4] = ["passwd", "password", "secret", "token"];

/// These names of the protocol denote none: the first limits the response of a language model, the
/// second identifies a request.
const PLAIN: [&str; 2] = ["maxtokens", "progresstoken"];

/// Nor does a name with one of these endings. They belong to OAuth: its metadata (RFC 8414 section
/// 2, RFC 9728 section 2, OpenID Connect Discovery), registrations (RFC 7591) and responses, where
/// they say where a token is issued, of what type it is, to what it is bound, how long a secret
/// lasts, or what is supported.
const PLAIN_ENDS: [&str; 12] = [
    "authmethod",
    "authsigningalg",
    "boundaccesstokens",
    "responsealg",
    "responseenc",
    "secretexpiresat",
    "supported",
    "tokenendpoint",
    "tokenexpiresin",
    "tokensrequired",
    "tokentype",
    "tokentypehint",
];

/// A name with one of these endings denotes a secret everywhere: as a JSON key, a query parameter,
/// a header field.
const SECRET_ENDS: [&str; 19] = [
    "accesskey",
    "apikey",
    "assertion",
    "authorization",
    "bearer",
    "codeverifier",
    "cookie",
    "cookies",
    "credential",
    "credentials",
    "devicecode",
    "encryptionkey",
    "jwt",
    "passphrase",
    "privatekey",
    "requeststate",
    "sessionid",
    "signingkey",
    "usercode",
];

/// These denote one only as whole names.
const SECRETS: [&str; 2] = ["dpop", "pwd"];

/// These denote one if the value follows a `=`: in queries, forms, arguments of programs. As JSON
/// keys they are too common.
const SECRET_IN_QUERY: [&str; 6] = ["auth", "code", "key", "pass", "sig", "signature"];

/// The values of these identify messages. They are not masked.
const KEPT: [&str; 7] = ["cursor", "id", "jsonrpc", "method", "nextcursor", "progresstoken", "requestid"];

/// The parameters with which a challenge of the scheme `Bearer` may begin, in lower case. What
/// begins otherwise may be a token.
pub(super) const CHALLENGE: [&str; 9] = [
    "authorization_uri",
    "client_id",
    "error",
    "error_description",
    "error_uri",
    "realm",
    "resource",
    "resource_metadata",
    "scope",
];

/// Fields whose values are shown, in lower case. A client writes them itself and refuses them from
/// an application (`BadHeader`), so none of them can hold a credential of the application.
pub(super) const SHOWN: [&str; 17] = [
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
    "mcp-method",
    "mcp-name",
    "mcp-protocol-version",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Fields whose values are shown only in responses: in a request, the application has set them.
const SHOWN_IN_RESPONSES: [&str; 15] = [
    "access-control-allow-headers",
    "access-control-allow-methods",
    "access-control-allow-origin",
    "access-control-expose-headers",
    "access-control-max-age",
    "age",
    "allow",
    "cache-control",
    "date",
    "expires",
    "mcp-auth-server",
    "retry-after",
    "server",
    "vary",
    "www-authenticate",
];

/// The meaning of the value after a name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Meaning {
    #[default]
    Plain,
    Kept,
    /// A link, which often grants access by itself. Its host is shown.
    Link,
    Secret,
}

/// Returns whether a value under this name, as in `name=value`, is a secret.
pub(super) fn is_secret(name: &str) -> bool {
    let mut word = Word::default();
    name.bytes().for_each(|byte| word.push(byte));
    word.is_secret_parameter()
}

/// Returns whether the value of a header field of this name is shown.
pub(super) fn shows_field(name: &[u8], side: Side) -> bool {
    let listed = |list: &[&str]| list.iter().any(|known| name.eq_ignore_ascii_case(known.as_bytes()));
    listed(&SHOWN) || side == Side::Response && listed(&SHOWN_IN_RESPONSES)
}

/// The end of a name, byte by byte and normalized. Bounded, however long the name is.
#[derive(Clone, Default)]
pub(super) struct Word {
    ring: [u8; Word::KEPT],
    len: usize,
    /// Whether the name contains one of the parts.
    has_secret: bool,
}

impl Word {
    /// At least the length of the longest listed name.
    const KEPT: usize = 17;

    /// Adds a byte. Skips `_` and `-`.
    pub(super) fn push(&mut self, byte: u8) {
        if matches!(byte, b'_' | b'-') {
            return;
        }
        self.ring[self.len % Self::KEPT] = byte.to_ascii_lowercase();
        self.len = self.len.wrapping_add(1);
        self.has_secret |= SECRET_PARTS.iter().any(|part| self.ends_with(part));
    }

    pub(super) fn clear(&mut self) {
        self.len = 0;
        self.has_secret = false;
    }

    pub(super) fn is(&self, name: &str) -> bool {
        self.len == name.len() && self.ends_with(name)
    }

    pub(super) fn ends_with(&self, end: &str) -> bool {
        let at = |back: usize| self.ring[self.len.wrapping_sub(back) % Self::KEPT];
        end.len() <= self.len && end.bytes().rev().zip(1..).all(|(byte, back)| at(back) == byte)
    }

    /// Returns the meaning as the key of a JSON member.
    pub(super) fn meaning(&self) -> Meaning {
        if KEPT.iter().any(|name| self.is(name)) {
            Meaning::Kept
        } else if self.is("url") {
            Meaning::Link
        } else if self.is_secret() {
            Meaning::Secret
        } else {
            Meaning::Plain
        }
    }

    /// Returns whether it is a secret as the name in `name=value`.
    pub(super) fn is_secret_parameter(&self) -> bool {
        self.is_secret() || SECRET_IN_QUERY.iter().any(|name| self.is(name))
    }

    pub(super) fn is_secret(&self) -> bool {
        let listed = SECRETS.iter().any(|name| self.is(name)) || SECRET_ENDS.iter().any(|end| self.ends_with(end));
        let is_plain = || PLAIN.iter().any(|name| self.is(name)) || PLAIN_ENDS.iter().any(|end| self.ends_with(end));
        (self.has_secret || listed) && !is_plain()
    }
}
