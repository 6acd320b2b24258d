//! The media type application/x-www-form-urlencoded (WHATWG URL).

use super::secret::Secret;
use crate::redact::is_secret_name;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use bytes::Bytes;
use core::fmt;

/// The media type of a form.
pub(super) const MEDIA_TYPE: &str = "application/x-www-form-urlencoded";

/// Encodes a name or a value.
pub(super) fn encode_component(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    push_component(&mut encoded, text);
    encoded
}

/// Appends a name or a value, encoded.
fn push_component(out: &mut String, text: &str) {
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'*' | b'-' | b'.' | b'_' => out.push(char::from(byte)),
            b' ' => out.push('+'),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
}

/// A form that is written. Its `Debug` shows the names only.
#[derive(Clone, PartialEq, Eq, Default)]
pub(super) struct Form(String);

impl Form {
    /// A form without fields.
    pub(super) const fn new() -> Self {
        Self(String::new())
    }

    /// Like [`push`](Self::push), for chaining.
    #[must_use]
    pub(super) fn with(mut self, name: &str, value: &str) -> Self {
        self.push(name, value);
        self
    }

    /// Adds a field.
    pub(super) fn push(&mut self, name: &str, value: &str) {
        if !self.0.is_empty() {
            self.0.push('&');
        }
        push_component(&mut self.0, name);
        self.0.push('=');
        push_component(&mut self.0, value);
    }

    /// Returns the text, which is a query as well.
    pub(super) fn text(&self) -> &str {
        &self.0
    }

    /// Returns the values of the fields whose names denote secrets.
    pub(super) fn secrets(&self) -> impl Iterator<Item = Secret> {
        decode(&self.0).into_iter().filter(|(name, _)| is_secret_name(name)).map(|(_, value)| value.into())
    }

    /// Returns the text as the body of a request.
    pub(super) fn into_bytes(self) -> Bytes {
        self.0.into()
    }
}

impl fmt::Debug for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Form")?;
        f.debug_list().entries(pieces(&self.0).map(|(name, _)| component(name))).finish()
    }
}

/// Reads the fields of a query or a body, in order. What is no UTF-8 is replaced. The caller
/// limits the length.
pub(super) fn decode(text: &str) -> Vec<(String, String)> {
    pieces(text).map(|(name, value)| (component(name), component(value))).collect()
}

/// Returns the encoded names and values.
fn pieces(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let pieces = text.split('&').filter(|piece| !piece.is_empty());
    pieces.map(|piece| piece.split_once('=').unwrap_or((piece, "")))
}

/// Decodes a name or a value.
fn component(text: &str) -> String {
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let (byte, after) = match first {
            b'+' => (b' ', tail),
            b'%' => escaped(tail).unwrap_or((b'%', tail)),
            other => (*other, tail),
        };
        decoded.push(byte);
        rest = after;
    }
    String::from_utf8(decoded).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned())
}

/// Reads the two digits after a percent sign. Returns the byte and what follows.
fn escaped(text: &[u8]) -> Option<(u8, &[u8])> {
    let [high, low, after @ ..] = text else { return None };
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    Some(((digit(*high)? << 4) | digit(*low)?, after))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use proptest::prelude::*;

    #[test]
    fn component_has_no_byte_with_a_meaning() {
        for (text, encoded) in [
            ("", ""),
            ("aZ09*-._", "aZ09*-._"),
            ("a b", "a+b"),
            ("a+b&c=d%", "a%2Bb%26c%3Dd%25"),
            ("https://h/~x?y#z", "https%3A%2F%2Fh%2F%7Ex%3Fy%23z"),
            ("\u{e9}\u{1f600}\n\0", "%C3%A9%F0%9F%98%80%0A%00"),
        ] {
            assert_eq!(encode_component(text), encoded);
        }
    }

    #[test]
    fn form_has_its_fields_in_order() {
        let mut form = Form::new().with("grant_type", "authorization_code").with("scope", "a b");
        form.push("resource", "https://h/mcp");
        assert_eq!(form.text(), "grant_type=authorization_code&scope=a+b&resource=https%3A%2F%2Fh%2Fmcp");
        assert_eq!(form.clone().into_bytes(), form.text().as_bytes());
        assert_eq!((Form::new().text(), Form::new().into_bytes()), ("", Bytes::new()));
    }

    #[test]
    fn form_shows_names_only() {
        let form = Form::new().with("code", "canary-1").with("client_secret", "canary-2");
        assert_eq!(format!("{form:?}"), r#"Form["code", "client_secret"]"#);
    }

    #[test]
    fn fields_are_read_whatever_their_form() {
        for (text, fields) in [
            ("", &[][..]),
            ("&&", &[]),
            ("a=1&b=2", &[("a", "1"), ("b", "2")]),
            ("a=1&a=2&", &[("a", "1"), ("a", "2")]),
            ("a", &[("a", "")]),
            ("=1", &[("", "1")]),
            ("a=b=c", &[("a", "b=c")]),
            ("a+b=%63%2B+d", &[("a b", "c+ d")]),
            ("a=%&b=%4&c=%zz&d=%+1", &[("a", "%"), ("b", "%4"), ("c", "%zz"), ("d", "% 1")]),
            ("a=%C3%a9&b=%ff", &[("a", "\u{e9}"), ("b", "\u{fffd}")]),
        ] {
            let wanted: Vec<_> = fields.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
            assert_eq!(decode(text), wanted, "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(fields in prop::collection::vec((".*", ".*"), 0..5)) {
            let form = fields.iter().fold(Form::new(), |form, (name, value)| form.with(name, value));
            prop_assert!(form.text().is_ascii());
            prop_assert_eq!(decode(form.text()), fields);
        }

        #[test]
        fn any_text_is_read(text in ".*") {
            prop_assert!(decode(&text).len() <= text.len());
        }
    }
}
