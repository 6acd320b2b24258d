//! Header fields.

use super::{ShownHeaders, Side};
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

/// Header fields, in order. Look-ups ignore the case of names (RFC 9110 section 5.1), `==` does
/// not.
#[derive(Clone, PartialEq, Eq, Default)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "record", serde(from = "Vec<(String, String)>", into = "Vec<(String, String)>"))]
pub struct Headers {
    /// The name and the value of each field, without anything between them.
    text: String,
    fields: Vec<Field>,
}

/// The ends of a name and of its value in the text. The name begins where the previous value ends.
#[derive(Clone, PartialEq, Eq)]
struct Field {
    name: usize,
    value: usize,
}

impl Headers {
    /// No fields.
    pub const fn new() -> Self {
        Self { text: String::new(), fields: Vec::new() }
    }

    /// No fields yet, and room for this number with names and values of this length together.
    pub(crate) fn with_room(fields: usize, len: usize) -> Self {
        Self { text: String::with_capacity(len), fields: Vec::with_capacity(fields) }
    }

    /// Adds a field.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl AsRef<str>) -> Self {
        self.push(name, value);
        self
    }

    /// Adds a field.
    pub fn push(&mut self, name: &str, value: impl AsRef<str>) {
        self.text.reserve(name.len() + value.as_ref().len());
        self.text.push_str(name);
        let name = self.text.len();
        self.text.push_str(value.as_ref());
        self.fields.push(Field { name, value: self.text.len() });
    }

    /// Returns the value of the first field of this name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.find(name, 0).map(|at| self.value(at))
    }

    /// Returns the values of all fields of this name.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let found = core::iter::successors(self.find(name, 0), |at| self.find(name, at + 1));
        found.map(|at| self.value(at))
    }

    /// Returns all fields, as names and values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let mut start = 0;
        self.fields.iter().map(move |field| {
            let name = &self.text[start..field.name];
            start = field.value;
            (name, &self.text[field.name..field.value])
        })
    }

    /// Returns the position of a field of this name, from this position on.
    fn find(&self, name: &str, from: usize) -> Option<usize> {
        let is_it = |at: &usize| {
            let (start, end) = (self.start(*at), self.fields[*at].name);
            end - start == name.len() && self.text.as_bytes()[start..end].eq_ignore_ascii_case(name.as_bytes())
        };
        (from..self.fields.len()).find(is_it)
    }

    /// Returns where the name of a field begins.
    fn start(&self, at: usize) -> usize {
        at.checked_sub(1).map_or(0, |before| self.fields[before].value)
    }

    fn value(&self, at: usize) -> &str {
        &self.text[self.fields[at].name..self.fields[at].value]
    }

    /// Returns the bytes that the fields hold on the heap.
    pub(crate) fn heap_size(&self) -> usize {
        self.fields.capacity() * size_of::<Field>() + self.text.capacity()
    }
}

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
