//! The elements of a peer's list that were left out, since they could not be decoded.

use crate::error::excerpt;
use crate::peer_text::Visible;
use crate::rpc::{DecodeError, Object, RawJson};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

/// An element of a list that could not be decoded. Its texts come from the peer, and are the first
/// 200 characters. Its `Display` has [escapes](crate::error#text-of-a-peer).
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct SkippedElement {
    /// Its position in the list, from 0 on.
    pub index: usize,
    /// Its `name`, or else its `uri` or `uriTemplate`. `None` if none of them is a text.
    pub name: Option<String>,
    /// The member that cannot be decoded. `None` if it is the element as a whole.
    pub member: Option<String>,
    /// Why, for people. It names the member.
    pub reason: String,
}

impl SkippedElement {
    fn new(index: usize, json: &RawJson, why: &DecodeError) -> Self {
        let element = Object::read(json).unwrap_or_default();
        let name =
            ["name", "uri", "uriTemplate"].into_iter().find_map(|key| element.str(key).map(|name| excerpt(&name)));
        Self { index, name, member: why.member().map(excerpt), reason: excerpt(&why.to_string()) }
    }
}

impl fmt::Display for SkippedElement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "element {}", self.index)?;
        if let Some(name) = &self.name {
            write!(f, " (`{}`)", Visible(name))?;
        }
        write!(f, ": {}", Visible(&self.reason))
    }
}

/// The elements that were left out of a list: the first [`MAX_NAMED`](Self::MAX_NAMED) of them, and
/// their number.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
pub struct SkippedList {
    named: Vec<SkippedElement>,
    count: usize,
}

impl SkippedList {
    /// Maximum number of elements that are named. Further ones are only counted.
    pub const MAX_NAMED: usize = 100;

    /// Maximum number of elements that diagnostics name.
    const MAX_REPORTED: usize = 4;

    /// Returns the first elements, in order.
    pub fn named(&self) -> &[SkippedElement] {
        &self.named
    }

    /// Returns the number of all elements that were left out.
    pub const fn len(&self) -> usize {
        self.count
    }

    /// Returns whether no element was left out.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Adds an element of this text.
    pub fn push(&mut self, index: usize, json: &RawJson, why: &DecodeError) {
        if self.named.len() < Self::MAX_NAMED {
            self.named.push(SkippedElement::new(index, json, why));
        }
        self.count += 1;
    }

    /// Adds those of the next page of the list, which begins at this position.
    pub(crate) fn append(&mut self, page: &Self, start: usize) {
        let room = Self::MAX_NAMED.saturating_sub(self.named.len());
        let next = page.named.iter().take(room).cloned();
        self.named.extend(next.map(|one| SkippedElement { index: one.index.saturating_add(start), ..one }));
        self.count = self.count.saturating_add(page.count);
    }

    /// Returns the details of the diagnostics about the list of this name: a few of them, whatever
    /// the number of elements is.
    pub(crate) fn details(&self, list: &str) -> impl Iterator<Item = String> {
        let named = self.named.iter().take(Self::MAX_REPORTED).map(move |one| format!("{list}: {one}"));
        let rest = self.count.saturating_sub(Self::MAX_REPORTED);
        named.chain((rest > 0).then(|| format!("{list}: {rest} further elements")))
    }
}
