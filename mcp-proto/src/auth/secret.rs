//! A text that must not be shown: a token, a code, a client secret.

use alloc::string::String;
use core::fmt;

/// A secret text: a token, a code, a verifier, or the secret of a client. Its `Debug` shows its
/// length only, it has no `Display`, and `==` takes the same time wherever two secrets of one
/// length differ.
#[derive(Clone, Default)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
pub struct Secret(String);

impl Secret {
    /// Wraps a secret text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns the text. It is for a [store](super::Record) of logins, and for an application that
    /// reads its own secrets.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Returns the length in bytes.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl PartialEq for Secret {
    fn eq(&self, other: &Self) -> bool {
        let differing = self.0.bytes().zip(other.0.bytes()).fold(0, |bits, (a, b)| bits | (a ^ b));
        core::hint::black_box(differing) == 0 && self.0.len() == other.0.len()
    }
}

impl Eq for Secret {}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secret({} bytes)", self.0.len())
    }
}

impl From<&str> for Secret {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;

    #[test]
    fn secret_shows_its_length_only() {
        let secret = Secret::new("canary-12345");
        assert_eq!(format!("{secret:?}"), "Secret(12 bytes)");
        assert_eq!((secret.expose(), secret.len(), secret.is_empty()), ("canary-12345", 12, false));
    }

    #[test]
    fn secrets_are_equal_if_their_texts_are() {
        let secret = Secret::new("abc");
        for (other, is_equal) in [("abc", true), ("abd", false), ("ab", false), ("abcd", false), ("", false)] {
            assert_eq!(secret == Secret::new(other), is_equal, "{other}");
        }
    }
}
