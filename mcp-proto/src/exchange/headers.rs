//! Header fields.

use super::{ShownHeaders, Side};
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;
use core::{fmt, iter};

/// Header fields, in order. Look-ups ignore the case of names (RFC 9110 section 5.1), `==` does
/// not.
#[derive(Clone, Default)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "record", serde(from = "Vec<(String, String)>", into = "Vec<(String, String)>"))]
pub struct Headers {
    /// The first fields, if this crate knows them. They take no memory.
    fixed: &'static [(&'static str, &'static str)],
    /// The other fields, in one piece of memory:
    ///
    /// ```text
    /// length of the name | length of the value | name | value | length of the next name | …
    /// ```
    text: String,
    /// The [`mark`] of each name: most look-ups are for a name that does not occur.
    marks: u64,
}

impl Headers {
    /// No fields.
    pub const fn new() -> Self {
        Self { fixed: &[], text: String::new(), marks: 0 }
    }

    /// No fields yet, and room for this number with names and values of this length together.
    pub(crate) fn with_room(fields: usize, len: usize) -> Self {
        Self { text: String::with_capacity(len + fields * LENGTHS), ..Self::new() }
    }

    /// Adds a field.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl AsRef<str>) -> Self {
        self.push(name, value);
        self
    }

    /// Adds fields. They take no memory if there are no others before them.
    #[must_use]
    pub(crate) fn with_fixed(mut self, fields: &'static [(&'static str, &'static str)]) -> Self {
        if self.fixed.is_empty() && self.text.is_empty() {
            self.fixed = fields;
            self.marks = fields.iter().fold(0, |marks, (name, _)| marks | mark(name));
        } else {
            fields.iter().for_each(|(name, value)| self.push(name, value));
        }
        self
    }

    /// Adds a field.
    pub fn push(&mut self, name: &str, value: impl AsRef<str>) {
        let value = value.as_ref();
        self.marks |= mark(name);
        self.text.reserve(name.len() + value.len() + LENGTHS);
        push_length(&mut self.text, name.len());
        push_length(&mut self.text, value.len());
        self.text.push_str(name);
        self.text.push_str(value);
    }

    /// Returns the value of the first field of this name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.named(name).next()
    }

    /// Returns the values of all fields of this name.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.named(name)
    }

    /// Returns `Retry-After` in seconds (RFC 9110 section 10.2.3). A date is ignored: the engine
    /// has no calendar that it could trust.
    pub(crate) fn retry_after(&self) -> Option<Duration> {
        let seconds = self.get("retry-after")?.trim().parse().ok()?;
        Some(Duration::from_secs(seconds))
    }

    fn named<'a, 'n>(&'a self, name: &'n str) -> NamedValues<'a, 'n> {
        let (fixed, text) = if self.marks & mark(name) == 0 { (&[][..], "") } else { (self.fixed, &*self.text) };
        NamedValues { name, fixed, text, at: 0 }
    }

    /// Removes the fields of these names that a peer has sent: none of them is a fixed one.
    pub(crate) fn remove(&mut self, names: &[&str]) {
        let mut at = 0;
        while let Some(field) = FieldPlace::read(self.text.as_bytes(), at) {
            let name = &self.text[field.name..field.value];
            if names.iter().any(|removed| name.eq_ignore_ascii_case(removed)) {
                self.text.drain(at..field.end);
            } else {
                at = field.end;
            }
        }
    }

    /// Returns all fields, as names and values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let (mut fixed, text, mut at) = (self.fixed.iter(), &*self.text, 0);
        iter::from_fn(move || {
            fixed.next().copied().or_else(|| {
                let field = FieldPlace::read(text.as_bytes(), at)?;
                at = field.end;
                Some((&text[field.name..field.value], &text[field.value..field.end]))
            })
        })
    }

    /// Returns the bytes that the fields hold on the heap.
    pub(crate) fn heap_size(&self) -> usize {
        self.text.capacity()
    }
}

/// The values of the fields of one name.
struct NamedValues<'a, 'n> {
    name: &'n str,
    /// The fields that were not compared: these, and those of the text from this position on.
    fixed: &'static [(&'static str, &'static str)],
    text: &'a str,
    at: usize,
}

impl<'a> Iterator for NamedValues<'a, '_> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        while let Some(((name, value), others)) = self.fixed.split_first() {
            self.fixed = others;
            if name.eq_ignore_ascii_case(self.name) {
                return Some(value);
            }
        }
        let (text, name) = (self.text.as_bytes(), self.name.as_bytes());
        while let Some(field) = FieldPlace::read(text, self.at) {
            self.at = field.end;
            // The cheap comparisons first: most fields have another name, or the common spelling.
            let is_it = |other: &[u8]| other == name || other.eq_ignore_ascii_case(name);
            if field.value - field.name == name.len() && is_it(&text[field.name..field.value]) {
                return Some(&self.text[field.value..field.end]);
            }
        }
        None
    }
}

/// Returns a bit that depends on the length of a name and its first letter. The names that requests
/// have and those that are looked up have different ones.
fn mark(name: &str) -> u64 {
    let letter = name.as_bytes().first().map_or(0, |byte| usize::from(byte & 0x1f));
    1 << ((name.len() + 8 * letter) % 64)
}

/// The place of a field in the text: its value begins at the end of its name.
struct FieldPlace {
    name: usize,
    value: usize,
    end: usize,
}

impl FieldPlace {
    /// Returns the field that begins at a position. `None` at the end of the text.
    fn read(text: &[u8], mut at: usize) -> Option<Self> {
        let (name, value) = match *text.get(at..)? {
            // Most fields are short.
            [name @ ..MORE, value @ ..MORE, ..] => {
                at += 2;
                (name.into(), value.into())
            }
            _ => (read_length(text, &mut at)?, read_length(text, &mut at)?),
        };
        Some(Self { name: at, value: at + name, end: at + name + value })
    }
}

/// Characters that the two lengths of most fields take.
const LENGTHS: usize = 4;

/// Bits of a length in one character, the lowest first. All characters are ASCII.
const BITS: u32 = 6;

/// The bit of a character of a length after which another one follows.
const MORE: u8 = 1 << BITS;

fn push_length(text: &mut String, mut len: usize) {
    while len >= MORE.into() {
        text.push(char::from(len as u8 & (MORE - 1) | MORE));
        len >>= BITS;
    }
    text.push(char::from(len as u8));
}

/// Reads the length at a position, and moves the position behind it. `None` at the end.
fn read_length(text: &[u8], at: &mut usize) -> Option<usize> {
    let (mut len, mut shift) = (0, 0);
    loop {
        let digit = *text.get(*at)?;
        *at += 1;
        len |= usize::from(digit & (MORE - 1)) << shift;
        if digit & MORE == 0 {
            return Some(len);
        }
        shift += BITS;
    }
}

impl PartialEq for Headers {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for Headers {}

impl From<Vec<(String, String)>> for Headers {
    fn from(fields: Vec<(String, String)>) -> Self {
        fields.iter().fold(Self::new(), |headers, (name, value)| headers.with(name, value))
    }
}

impl From<Headers> for Vec<(String, String)> {
    fn from(headers: Headers) -> Self {
        headers.iter().map(|(name, value)| (name.into(), value.into())).collect()
    }
}

impl fmt::Debug for Headers {
    /// Shows the values of the fields of a request that are known to hold no credential, and masks
    /// those of all others.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        ShownHeaders(self, Side::Request).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn fixed_fields_are_as_others_and_take_no_memory() {
        const FIXED: &[(&str, &str)] = &[("A", "1"), ("b", "2")];
        let fixed = Headers::new().with_fixed(FIXED);
        assert_eq!(fixed.heap_size(), 0);
        assert_eq!(fixed, Headers::new().with("A", "1").with("b", "2"));
        let more = fixed.with("B", "3").with_fixed(FIXED);
        assert_eq!(more, Headers::new().with("A", "1").with("b", "2").with("B", "3").with("A", "1").with("b", "2"));
        assert_eq!((more.get("B"), more.all("a").count()), (Some("2"), 2));
        assert_eq!(more.all("b").collect::<Vec<_>>(), ["2", "3", "2"]);
    }

    proptest! {
        #[test]
        fn fields_of_any_text_and_length_are_found(
            fields in proptest::collection::vec((any::<String>(), any::<String>()), 0..6),
            long in 0..300_000usize,
        ) {
            let mut fields = fields;
            fields.push(("long".into(), "é".repeat(long)));
            let headers = Headers::from(fields.clone());
            prop_assert!(headers.iter().eq(fields.iter().map(|(name, value)| (&**name, &**value))));
            for (name, _) in &fields {
                let same = fields.iter().filter(|(other, _)| other.eq_ignore_ascii_case(name));
                prop_assert!(headers.all(&name.to_ascii_uppercase()).eq(same.map(|(_, value)| value)));
            }
            for names in [&["long"][..], &[&*fields[0].0, "x"]] {
                let mut rest = headers.clone();
                rest.remove(names);
                let others = fields.iter().filter(|(name, _)| !names.iter().any(|one| name.eq_ignore_ascii_case(one)));
                prop_assert!(rest.iter().eq(others.map(|(name, value)| (&**name, &**value))));
            }
            prop_assert_eq!(Vec::from(headers), fields);
        }
    }
}
