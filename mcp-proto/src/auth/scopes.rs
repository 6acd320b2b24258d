//! Sets of scopes (RFC 6749 section 3.3).

use alloc::borrow::ToOwned;
use alloc::collections::BTreeSet;
use alloc::string::String;
use core::fmt;

/// A set of scopes (RFC 6749 section 3.3), at most 64 with at most 256 bytes each and 4 KiB
/// together. What is beyond that, or no scope token, is left out. Its `Display` has spaces between
/// them, in the order of their texts.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
pub struct Scopes(BTreeSet<String>);

/// The limits of one set.
const MAX: usize = 64;
const MAX_LEN: usize = 256;
const MAX_TOTAL: usize = 4096;

impl Scopes {
    /// No scopes.
    pub const fn new() -> Self {
        Self(BTreeSet::new())
    }

    /// Returns the scopes of a text with spaces between them.
    pub fn parse(text: &str) -> Self {
        text.split(' ').collect()
    }

    /// Returns the set of these scopes, which something demands.
    ///
    /// # Panics
    /// If one is no scope token, or beyond a limit: without it, less would be demanded.
    pub(crate) fn demanded<'a>(scopes: impl IntoIterator<Item = &'a str>) -> Self {
        scopes.into_iter().fold(Self::new(), |mut all, scope| {
            all.insert(scope);
            assert!(all.contains(scope), "{scope:?} is no scope, or one scope too many");
            all
        })
    }

    /// Adds a scope. Does nothing beyond a limit, or if it is no scope token.
    pub fn insert(&mut self, scope: &str) {
        // RFC 6749 appendix A.4: visible ASCII without quotation mark and backslash.
        let is_token = scope.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\');
        let total: usize = self.0.iter().map(|known| known.len() + 1).sum();
        let fits = self.0.len() < MAX && scope.len() <= MAX_LEN && total + scope.len() <= MAX_TOTAL;
        if is_token && fits && !scope.is_empty() {
            self.0.insert(scope.to_owned());
        }
    }

    /// Returns the scopes of both sets.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        let mut all = self.clone();
        other.iter().for_each(|scope| all.insert(scope));
        all
    }

    /// Returns whether all scopes of another set are in this one.
    pub fn contains_all(&self, other: &Self) -> bool {
        self.0.is_superset(&other.0)
    }

    /// Returns whether this scope is in the set.
    pub fn contains(&self, scope: &str) -> bool {
        self.0.contains(scope)
    }

    /// Returns whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the bytes that the set holds on the heap. A node of the tree is at least half full.
    pub(crate) fn heap_size(&self) -> usize {
        self.0.iter().map(|scope| 2 * size_of::<String>() + scope.capacity()).sum()
    }

    /// Returns the scopes in the order of their texts.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }
}

impl<'a> FromIterator<&'a str> for Scopes {
    fn from_iter<T: IntoIterator<Item = &'a str>>(scopes: T) -> Self {
        let mut all = Self::new();
        scopes.into_iter().for_each(|scope| all.insert(scope));
        all
    }
}

impl fmt::Display for Scopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut before = "";
        for scope in self.iter() {
            write!(f, "{before}{scope}")?;
            before = " ";
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn set_has_each_scope_once_and_no_bad_ones() {
        let scopes = Scopes::parse("b a  b a\"x a\\y \u{e9} c");
        assert_eq!(scopes.to_string(), "a b c");
        assert!(scopes.contains("b") && !scopes.contains("d") && !scopes.is_empty());
        assert_eq!(scopes.union(&Scopes::parse("d a")).to_string(), "a b c d");
        assert!(scopes.contains_all(&Scopes::parse("c a")) && !scopes.contains_all(&Scopes::parse("a d")));
        assert!(scopes.contains_all(&Scopes::new()));
    }

    #[test]
    fn set_has_a_limited_size() {
        let many: Scopes = (0..100).map(|number| alloc::format!("s{number}")).fold(Scopes::new(), |mut all, scope| {
            all.insert(&scope);
            all
        });
        assert_eq!(many.iter().count(), 64);
        assert!(Scopes::parse(&"x".repeat(257)).is_empty());
        let long: Scopes = (0..40).fold(Scopes::new(), |mut all, number| {
            all.insert(&alloc::format!("{number:0>200}"));
            all
        });
        assert!(long.to_string().len() <= 4096 && long.iter().count() == 20, "{}", long.iter().count());
    }
}
