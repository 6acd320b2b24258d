//! One JSON text, and the positions of its members.

use super::RawJson;
use crate::rpc::grammar::{MAX_DEPTH, Scan};
use crate::rpc::members::{Layout, MemberPlace, Members};
use crate::rpc::parse::LARGE;
use crate::rpc::scalar::write_string;
use crate::rpc::value::{JsonValue, Slice};
use alloc::borrow::Cow;
use alloc::vec::Vec;
use bytes::Bytes;

/// An object that is not empty.
#[derive(Clone, Default)]
pub(in crate::rpc) struct Inner {
    text: ObjectText,
    members: Members,
    /// Whether a key may have escapes in the text.
    has_escapes: bool,
}

/// The text of an object.
#[derive(Clone)]
enum ObjectText {
    /// Written here: the members, in order, without white space.
    Own(Vec<u8>),
    /// The same in shared bytes.
    Shared(Bytes),
    /// Shared bytes that hold more than the members: white space, escapes in a key, a repeated key,
    /// or a member that was removed.
    Sparse(Bytes),
}

impl Default for ObjectText {
    fn default() -> Self {
        Self::Own(Vec::new())
    }
}

impl ObjectText {
    /// Returns the capacity of a text that is not shared.
    fn own_capacity(&self) -> usize {
        match self {
            Self::Own(text) => text.capacity(),
            Self::Shared(_) | Self::Sparse(_) => 0,
        }
    }
}

impl Inner {
    /// Creates an object without members, which gets some before it is used.
    pub(super) fn with_capacity(text: usize) -> Self {
        Self { text: ObjectText::Own(Vec::with_capacity(text)), ..Self::default() }
    }

    /// Reads an object from a text that is one. `None` if it is empty.
    pub(super) fn read(text: Bytes) -> Option<Self> {
        let mut layout = Layout::default();
        Scan::new(&text, MAX_DEPTH).members(&mut layout, usize::MAX, Scan::skip).ok()?;
        (!layout.is_empty()).then(|| Self::new(text, layout))
    }

    /// Creates an object from its text, and from what a pass over it has found.
    pub(in crate::rpc) fn new(text: Bytes, layout: Layout) -> Self {
        let Layout { members, mut is_dense, has_escapes } = layout;
        let count = members.as_slice().len();
        let mut inner = Self { text: ObjectText::default(), members, has_escapes };
        inner.members.drop_repeated(&text, has_escapes);
        is_dense &= !has_escapes && inner.len() == count;
        inner.text = if is_dense { ObjectText::Shared(text) } else { ObjectText::Sparse(text) };
        inner
    }

    /// Returns [`bytes`](Self::bytes), shared.
    pub(in crate::rpc) fn to_bytes(&self) -> Bytes {
        match &self.text {
            ObjectText::Own(text) => Bytes::copy_from_slice(text),
            ObjectText::Shared(text) | ObjectText::Sparse(text) => text.clone(),
        }
    }

    /// Returns the text. That of an object that was read is as received.
    pub(in crate::rpc) fn bytes(&self) -> &[u8] {
        match &self.text {
            ObjectText::Own(text) => text,
            ObjectText::Shared(text) | ObjectText::Sparse(text) => text,
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = MemberPlace> {
        self.members.as_slice().iter().copied()
    }

    pub(super) fn slices(&self) -> impl Iterator<Item = (Cow<'_, str>, &[u8])> {
        self.iter().map(|member| (member.name(self.bytes()), &self.bytes()[member.value()]))
    }

    pub(super) fn position(&self, key: &str) -> Option<usize> {
        self.members.as_slice().iter().position(|member| self.has_key(member, key))
    }

    fn has_key(&self, member: &MemberPlace, key: &str) -> bool {
        let text = self.bytes();
        match self.has_escapes {
            true => member.name(text) == key,
            false => &text[member.key()] == key.as_bytes(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.members.as_slice().len()
    }

    pub(super) fn member(&self, at: usize) -> MemberPlace {
        self.members.as_slice()[at]
    }

    /// Returns the bytes on the heap, without a shared text.
    pub(super) fn heap_size(&self) -> usize {
        self.members.heap_size() + self.text.own_capacity()
    }

    pub(super) const fn shares_text(&self) -> bool {
        !matches!(self.text, ObjectText::Own(_))
    }

    pub(super) fn find(&self, key: &str) -> Option<MemberPlace> {
        self.position(key).map(|at| self.members.as_slice()[at])
    }

    pub(super) fn value(&self, member: MemberPlace) -> RawJson {
        RawJson::trusted(match &self.text {
            ObjectText::Own(text) => Bytes::copy_from_slice(&text[member.value()]),
            ObjectText::Shared(text) | ObjectText::Sparse(text) => text.slice(member.value()),
        })
    }

    pub(super) fn to_json(&self) -> RawJson {
        if let ObjectText::Shared(text) = &self.text {
            return RawJson::trusted(text.clone());
        }
        let mut out = Vec::with_capacity(self.text_len());
        self.write_to(&mut out);
        RawJson::trusted(out.into())
    }

    pub(super) fn into_json(self) -> RawJson {
        match self.text {
            ObjectText::Own(text) => RawJson::trusted(text.into()),
            ObjectText::Shared(text) => RawJson::trusted(text),
            ObjectText::Sparse(_) => self.to_json(),
        }
    }

    pub(super) fn write_to(&self, out: &mut Vec<u8>) {
        match &self.text {
            ObjectText::Own(text) => out.extend_from_slice(text),
            ObjectText::Shared(text) => out.extend_from_slice(text),
            ObjectText::Sparse(_) => {
                let mut open = b'{';
                for (key, value) in self.slices() {
                    out.push(core::mem::replace(&mut open, b','));
                    write_string(out, &key);
                    out.push(b':');
                    out.extend_from_slice(value);
                }
                out.push(b'}');
            }
        }
    }

    pub(super) fn text_len(&self) -> usize {
        match &self.text {
            ObjectText::Own(text) => text.len(),
            ObjectText::Shared(text) => text.len(),
            ObjectText::Sparse(_) => {
                self.iter().map(|member| member.key().len() + member.value().len() + 4).sum::<usize>() + 1
            }
        }
    }

    pub(super) fn set(&mut self, key: &str, value: &impl JsonValue) {
        let existing = self.position(key);
        self.has_escapes |= existing.is_none() && needs_escapes(key);
        self.edit(|text, members| match existing {
            None => members.push(push(text, key, value)),
            Some(at) => {
                let old = members.as_slice()[at].value();
                let rest = text.split_off(old.end);
                text.truncate(old.start);
                value.write_json(text);
                let new = old.start..text.len();
                text.extend_from_slice(&rest);
                members.as_mut_slice().iter_mut().for_each(|member| member.shift(&old, new.len()));
                members.as_mut_slice()[at].set_value(new);
            }
        });
    }

    /// Appends a member to the text of an object that is being written, and that has none of this
    /// key. [`set_text`](Self::set_text) completes the object.
    pub(super) fn push_to(&mut self, text: &mut Vec<u8>, key: &str, value: &impl JsonValue) {
        self.has_escapes |= needs_escapes(key);
        self.members.push(push(text, key, value));
    }

    /// Sets the text that [`push_to`](Self::push_to) has written.
    pub(super) fn set_text(&mut self, text: Vec<u8>) {
        self.text = ObjectText::Own(text);
    }

    /// Removes one of several members.
    pub(super) fn remove(&mut self, at: usize) {
        let removed = self.members.remove(at);
        match core::mem::take(&mut self.text) {
            ObjectText::Own(mut text) => {
                // With its quotes and one comma: the one after it if it was the first.
                let old = match at {
                    0 => 1..removed.value().end + 1,
                    _ => removed.key().start - 2..removed.value().end,
                };
                text.drain(old.clone());
                self.members.as_mut_slice().iter_mut().for_each(|member| member.shift(&old, 0));
                self.text = ObjectText::Own(text);
            }
            ObjectText::Shared(text) | ObjectText::Sparse(text) => self.keep_part_of(text),
        }
    }

    /// Returns it without these members. `None` if nothing remains.
    pub(super) fn without(&self, keys: &[&str]) -> Option<Self> {
        let mut members = Members::default();
        let kept = |member: &&MemberPlace| !keys.iter().any(|key| self.has_key(member, key));
        self.members.as_slice().iter().filter(kept).for_each(|member| members.push(*member));
        (!members.as_slice().is_empty()).then(|| {
            let mut other = Self { text: ObjectText::default(), members, has_escapes: self.has_escapes };
            other.keep_part_of(self.to_bytes());
            other
        })
    }

    /// The text has more than the members. A small part does not keep a large text alive.
    fn keep_part_of(&mut self, text: Bytes) {
        let len = text.len();
        self.text = ObjectText::Sparse(text);
        if len > LARGE && self.text_len() < len / 4 {
            self.edit(|_, _| {});
        }
    }

    /// Changes the text and the positions, after copying a text that is shared.
    fn edit(&mut self, change: impl FnOnce(&mut Vec<u8>, &mut Members)) {
        let mut text = match core::mem::take(&mut self.text) {
            ObjectText::Own(text) => text,
            ObjectText::Shared(text) => text.into(),
            ObjectText::Sparse(old) => {
                let mut text = Vec::new();
                for member in self.members.as_mut_slice() {
                    *member = push(&mut text, &member.name(&old), &Slice(&old[member.value()]));
                }
                text
            }
        };
        change(&mut text, &mut self.members);
        self.text = ObjectText::Own(text);
    }
}

/// Returns whether a key has escapes in a text.
fn needs_escapes(key: &str) -> bool {
    key.bytes().any(|byte| byte < 0x20 || matches!(byte, b'"' | b'\\'))
}

/// Appends a member to the text of an object. Returns its position.
pub(super) fn push(text: &mut Vec<u8>, key: &str, value: &impl JsonValue) -> MemberPlace {
    let more = key.len() + value.json_len() + 5;
    match text.pop() {
        None => {
            // Most objects that are written are small.
            text.reserve_exact(more.max(64));
            text.push(b'{');
        }
        Some(_) => {
            text.reserve(more);
            text.push(b',');
        }
    }
    let start = text.len() + 1;
    write_string(text, key);
    let key = start..text.len() - 1;
    text.push(b':');
    let start = text.len();
    value.write_json(text);
    let value = start..text.len();
    text.push(b'}');
    MemberPlace::new(key, value)
}
