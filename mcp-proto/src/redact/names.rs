//! Which names hold secrets. Names compare without case, `_` and `-`: `api_key`, `apiKey` and `API-KEY` are one.

/// A name that ends like this holds a secret wherever it stands: as a JSON key, a query parameter, a header field.
const SECRET_ENDS: [&str; 22] = [
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
    "encryptionkey",
    "jwt",
    "passphrase",
    "passwd",
    "password",
    "privatekey",
    "requeststate",
    "secret",
    "secretkey",
    "sessionid",
    "signingkey",
    "token",
];

/// These hold one only as a whole name.
const SECRET: [&str; 4] = ["passwords", "pwd", "secrets", "tokens"];

/// These hold one where the value follows a `=`: in queries, forms, arguments of programs. As a JSON key they are too common.
const SECRET_IN_QUERY: [&str; 6] = ["auth", "code", "key", "pass", "sig", "signature"];

/// The values of these identify messages; they stay as they are.
const KEPT: [&str; 7] = ["cursor", "id", "jsonrpc", "method", "nextcursor", "progresstoken", "requestid"];

/// Header fields of parameters of tools (MCP 2026-07-28) begin so; what the parameters are is not known.
const PARAM: &str = "mcpparam";

/// What is known of the value that follows a name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Meaning {
    #[default]
    Plain,
    Kept,
    /// A link that is often a capability by itself: its host stays.
    Link,
    Secret,
}

/// Whether a value that is set under this name, as in `name=value`, is a secret.
pub(super) fn is_secret(name: &str) -> bool {
    let mut word = Word::default();
    name.bytes().for_each(|byte| word.push(byte));
    word.is_secret_parameter()
}

/// Whether the value of a header field of this name is a secret.
pub(super) fn is_secret_field(name: &str) -> bool {
    let mut word = Word::default();
    name.bytes().for_each(|byte| word.push(byte));
    word.is_secret_field()
}

/// The end of a name as it goes by, normalised. Bounded, however long the name is.
#[derive(Clone, Default)]
pub(super) struct Word {
    ring: [u8; Word::KEPT],
    len: usize,
    is_param: bool,
}

impl Word {
    /// At least the longest name of the lists.
    const KEPT: usize = 16;

    /// Adds a byte; `_` and `-` are skipped.
    pub(super) fn push(&mut self, byte: u8) {
        if matches!(byte, b'_' | b'-') {
            return;
        }
        self.ring[self.len % Self::KEPT] = byte.to_ascii_lowercase();
        self.len = self.len.wrapping_add(1);
        self.is_param |= self.is(PARAM);
    }

    pub(super) fn clear(&mut self) {
        self.len = 0;
        self.is_param = false;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(super) fn is(&self, name: &str) -> bool {
        self.len == name.len() && self.ends_with(name)
    }

    pub(super) fn ends_with(&self, end: &str) -> bool {
        let at = |back: usize| self.ring[self.len.wrapping_sub(back) % Self::KEPT];
        end.len() <= self.len && end.bytes().rev().zip(1..).all(|(byte, back)| at(back) == byte)
    }

    /// As the key of a JSON member.
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

    /// As the name in `name=value`.
    pub(super) fn is_secret_parameter(&self) -> bool {
        self.is_secret() || SECRET_IN_QUERY.iter().any(|name| self.is(name))
    }

    /// As the name of a header field.
    pub(super) fn is_secret_field(&self) -> bool {
        self.is_param || self.is_secret()
    }

    pub(super) fn is_secret(&self) -> bool {
        let ends = SECRET_ENDS.iter().any(|end| self.ends_with(end)) || SECRET.iter().any(|name| self.is(name));
        ends && !self.is("progresstoken")
    }
}
