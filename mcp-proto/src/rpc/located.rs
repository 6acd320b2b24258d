//! Values of a validated text with their positions, for errors that show where a value is.

use super::grammar::{MAX_DEPTH, Scan};
use super::scalar::{read_integer, unescape};
use super::{InvalidKind, JsonKind};
use alloc::string::String;
use core::iter;

/// One JSON value inside a text that is known to be JSON. A string in it may have a lone surrogate.
#[derive(Clone, Copy)]
pub struct LocatedValue<'a> {
    text: &'a str,
    start: usize,
    end: usize,
}

/// A member of an object.
#[derive(Clone)]
pub struct LocatedMember<'a> {
    /// The position of the key, in bytes.
    pub at: usize,
    /// The key. `None` if it has a lone surrogate.
    pub key: Option<String>,
    /// The value.
    pub value: LocatedValue<'a>,
}

impl<'a> LocatedValue<'a> {
    /// Validates a text that is one JSON value, nested at most 128 deep.
    ///
    /// # Errors
    /// The fault, and its position in the text, in bytes.
    pub fn parse(text: &'a str) -> Result<Self, (InvalidKind, usize)> {
        let mut scan = Scan::new(text.as_bytes(), MAX_DEPTH);
        match scan.value(0).and_then(|value| scan.end().map(|()| value)) {
            Ok(value) => Ok(Self { text, start: value.start, end: value.end }),
            Err(kind) => Err((kind, scan.at)),
        }
    }

    /// Returns the position of the value in the text, in bytes.
    pub const fn at(self) -> usize {
        self.start
    }

    /// Returns the JSON text of the value.
    pub fn raw(self) -> &'a str {
        self.text.get(self.start..self.end).unwrap_or_default()
    }

    /// Returns the type of the value.
    pub fn kind(self) -> JsonKind {
        JsonKind::of(self.raw().bytes().next())
    }

    /// Returns the text of a string. `None` for another value, or for a lone surrogate.
    pub fn text(self) -> Option<String> {
        unescape(self.raw().as_bytes().strip_prefix(b"\"")?.strip_suffix(b"\"")?)
    }

    /// Returns the value of a number that is an integer, also of one such as `1.0` or `1e2`.
    pub fn integer(self) -> Option<i64> {
        read_integer(self.raw().as_bytes())
    }

    /// Returns the members of an object, in their order. None for another value.
    pub fn members(self) -> impl Iterator<Item = LocatedMember<'a>> {
        let (mut scan, mut first) = (self.inside(b'{'), true);
        iter::from_fn(move || {
            let scan = scan.as_mut()?;
            let key = scan.member(first).ok()??;
            first = false;
            let (at, key) = (key.start - 1, unescape(&scan.text[key]));
            Some(LocatedMember { at, key, value: self.next(scan)? })
        })
    }

    /// Returns the elements of an array. None for another value.
    pub fn elements(self) -> impl Iterator<Item = Self> {
        let (mut scan, mut first) = (self.inside(b'['), true);
        iter::from_fn(move || {
            let scan = scan.as_mut()?;
            scan.element(first).ok()?.then_some(())?;
            first = false;
            self.next(scan)
        })
    }

    /// Returns a pass over the inside of this value, if it begins with `bracket`.
    fn inside(self, bracket: u8) -> Option<Scan<'a>> {
        let mut scan = Scan::new(self.text.as_bytes().get(..self.end)?, MAX_DEPTH);
        scan.at = self.start;
        scan.open(bracket).then_some(scan)
    }

    fn next(self, scan: &mut Scan<'a>) -> Option<Self> {
        let value = scan.skip().ok()?;
        Some(Self { text: self.text, start: value.start, end: value.end })
    }
}

impl LocatedMember<'_> {
    /// Returns whether it has this key.
    pub fn is(&self, key: &str) -> bool {
        self.key.as_deref() == Some(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn values_have_their_positions() {
        let root = LocatedValue::parse(" {\"a\" : [1, {\"b\": null} ,\"\u{e9}\"], \"\\ud800\":true}\n").unwrap();
        let members: Vec<_> = root.members().collect();
        let found: Vec<_> = members.iter().map(|m| (m.at, m.key.as_deref(), m.value.at(), m.value.raw())).collect();
        let list = "[1, {\"b\": null} ,\"\u{e9}\"]";
        assert_eq!(found, [(2, Some("a"), 8, list), (32, None, 41, "true")]);
        let elements: Vec<_> = members[0].value.elements().map(|value| (value.at(), value.kind())).collect();
        assert_eq!(elements, [(9, JsonKind::Number), (12, JsonKind::Object), (25, JsonKind::String)]);
        assert_eq!(members[0].value.members().count() + members[1].value.elements().count(), 0);
    }

    #[test]
    fn faults_have_their_positions() {
        for (text, fault) in [
            ("{\"a\" 1}", (InvalidKind::Syntax, 5)),
            ("[1 2]", (InvalidKind::Syntax, 3)),
            ("[1", (InvalidKind::Truncated, 2)),
            ("{} x", (InvalidKind::Syntax, 3)),
            ("[\"a\nb\"]", (InvalidKind::Syntax, 3)),
        ] {
            assert_eq!(LocatedValue::parse(text).err(), Some(fault), "{text}");
        }
        assert_eq!(LocatedValue::parse(&"[".repeat(200)).err(), Some((InvalidKind::TooDeep, 128)));
    }
}
