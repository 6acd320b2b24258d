//! The positions of the members of an object in its text.

use super::InvalidKind;
use super::grammar::Scan;
use super::scalar::unescape;
use alloc::borrow::Cow;
use alloc::vec::Vec;
use core::ops::Range;

/// The positions of a key and its value.
#[derive(Clone, Copy, Default)]
pub(super) struct MemberPlace {
    key: [usize; 2],
    value: [usize; 2],
}

impl MemberPlace {
    /// The key is without its quotes.
    pub(super) fn new(key: Range<usize>, value: Range<usize>) -> Self {
        Self { key: [key.start, key.end], value: [value.start, value.end] }
    }

    /// Returns the range of the key, without its quotes.
    pub(super) const fn key(&self) -> Range<usize> {
        self.key[0]..self.key[1]
    }

    pub(super) const fn value(&self) -> Range<usize> {
        self.value[0]..self.value[1]
    }

    /// Returns the key of this member of `text`, unescaped.
    pub(super) fn name<'a>(&self, text: &'a [u8]) -> Cow<'a, str> {
        let raw = &text[self.key()];
        match raw.contains(&b'\\') {
            true => unescape(raw).map_or_else(Default::default, Cow::Owned),
            false => core::str::from_utf8(raw).map_or_else(|_| Cow::default(), Cow::Borrowed),
        }
    }

    pub(super) fn set_value(&mut self, value: Range<usize>) {
        self.value = [value.start, value.end];
    }

    /// Moves it if it is behind a part of the text that was replaced.
    pub(super) fn shift(&mut self, old: &Range<usize>, new_len: usize) {
        for at in self.key.iter_mut().chain(&mut self.value).filter(|at| **at >= old.end) {
            *at = *at - old.len() + new_len;
        }
    }
}

/// What a pass over the text of an object finds.
#[derive(Default)]
pub(super) struct Layout {
    /// In order, with repeated keys.
    pub(super) members: Members,
    /// Whether the text has only members, without white space.
    pub(super) is_dense: bool,
    /// Whether a key has escapes.
    pub(super) has_escapes: bool,
}

impl Layout {
    pub(super) fn is_empty(&self) -> bool {
        self.members.as_slice().is_empty()
    }
}

impl Scan<'_> {
    /// Passes over an object, from its bracket on. Returns whether `layout` has what it found: not
    /// if there are more than `max` members. Positions are those in the object. `value` passes over
    /// a value.
    pub(super) fn members(
        &mut self,
        layout: &mut Layout,
        max: usize,
        mut value: impl FnMut(&mut Self) -> Result<Range<usize>, InvalidKind>,
    ) -> Result<bool, InvalidKind> {
        let (start, mut count) = (self.at, 0);
        *layout = Layout { is_dense: true, ..Layout::default() };
        // The position of the next key, if there is no white space.
        let mut next = start + 1;
        self.at += 1;
        while let Some(key) = self.member(count == 0)? {
            layout.has_escapes |= self.escaped;
            let value = value(self)?;
            layout.is_dense &= key.start == next + 1 && value.start == key.end + 2;
            next = value.end + 1;
            count += 1;
            if count <= max {
                let here = |range: Range<usize>| range.start - start..range.end - start;
                layout.members.push(MemberPlace::new(here(key), here(value)));
            }
        }
        layout.is_dense &= next == self.at;
        Ok(count <= max)
    }
}

/// The members of an object. Most have few, and need no memory of their own.
#[derive(Clone)]
pub(super) enum Members {
    Few { members: [MemberPlace; FEW], len: usize },
    Many(Vec<MemberPlace>),
}

const FEW: usize = 4;

/// Maximum number of members that are compared with each other to find repeated keys.
const COMPARED: usize = 16;

impl Default for Members {
    fn default() -> Self {
        Self::Few { members: Default::default(), len: 0 }
    }
}

impl Members {
    pub(super) fn as_slice(&self) -> &[MemberPlace] {
        match self {
            Self::Few { members, len } => &members[..*len],
            Self::Many(members) => members,
        }
    }

    pub(super) fn as_mut_slice(&mut self) -> &mut [MemberPlace] {
        match self {
            Self::Few { members, len } => &mut members[..*len],
            Self::Many(members) => members,
        }
    }

    pub(super) fn push(&mut self, member: MemberPlace) {
        match self {
            Self::Few { members, len } if *len < FEW => {
                members[*len] = member;
                *len += 1;
            }
            Self::Few { members, .. } => {
                let mut many = Vec::with_capacity(4 * FEW);
                many.extend_from_slice(members);
                many.push(member);
                *self = Self::Many(many);
            }
            Self::Many(members) => members.push(member),
        }
    }

    pub(super) fn remove(&mut self, at: usize) -> MemberPlace {
        match self {
            Self::Few { members, len } => {
                let removed = members[at];
                members.copy_within(at + 1..*len, at);
                *len -= 1;
                removed
            }
            Self::Many(members) => members.remove(at),
        }
    }

    /// Returns the bytes on the heap.
    pub(super) fn heap_size(&self) -> usize {
        match self {
            Self::Few { .. } => 0,
            Self::Many(members) => members.capacity() * size_of::<MemberPlace>(),
        }
    }

    /// Removes repeated keys of this text. The first keeps its position and gets the value of the
    /// last. Takes O(n log n): an object of a peer may have a million members.
    pub(super) fn drop_repeated(&mut self, text: &[u8], has_escapes: bool) {
        if self.as_slice().len() <= COMPARED {
            let mut at = 1;
            while at < self.as_slice().len() {
                let (before, rest) = self.as_mut_slice().split_at_mut(at);
                let here = rest[0];
                let found = before.iter_mut().find(|member| match has_escapes {
                    true => member.name(text) == here.name(text),
                    false => text[member.key()] == text[here.key()],
                });
                match found {
                    Some(first) => {
                        first.value = here.value;
                        self.remove(at);
                    }
                    None => at += 1,
                }
            }
            return;
        }
        let members = self.as_mut_slice();
        let mut by_name: Vec<usize> = (0..members.len()).collect();
        by_name.sort_by(|a, b| members[*a].name(text).cmp(&members[*b].name(text)));
        let mut kept = alloc::vec![true; members.len()];
        // The sort is stable, so the first of equal keys is first.
        let mut first = by_name[0];
        for &here in &by_name[1..] {
            if members[first].name(text) == members[here].name(text) {
                members[first].value = members[here].value;
                kept[here] = false;
            } else {
                first = here;
            }
        }
        if kept.contains(&false) {
            *self = Self::Many(members.iter().zip(kept).filter(|(_, kept)| *kept).map(|(member, _)| *member).collect());
        }
    }
}
