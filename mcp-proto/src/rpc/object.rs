//! A JSON object with its members: params, results and the typed model are decoded from it and
//! encoded to it.

use super::grammar::{MAX_DEPTH, Scan};
use super::members::{Member, Members};
use super::parse::LARGE;
use super::scalar::{read_str, write_string};
use super::value::{JsonValue, Slice};
use super::{DecodeError, EncodeError, Id, JsonKind, RawJson};
use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use bytes::Bytes;
use core::fmt;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The members of a JSON object, in order: one JSON text, and the position of each member in it. An
/// object that was read shares the bytes that it was parsed from, and keeps unknown members
/// unchanged. The last value of a repeated key counts, as in most JSON parsers. Cloning shares
/// everything until one of them is changed.
#[derive(Clone, Default)]
pub struct Object(Option<Arc<Inner>>);

/// An object that is not empty.
#[derive(Clone, Default)]
struct Inner {
    text: Text,
    members: Members,
    /// Whether a key may have escapes in the text.
    has_escapes: bool,
}

/// The text of an object.
#[derive(Clone)]
enum Text {
    /// Written here: the members, in order, without white space.
    Own(Vec<u8>),
    /// The same in shared bytes.
    Shared(Bytes),
    /// Shared bytes that hold more than the members: white space, escapes in a key, a repeated key,
    /// or a member that was removed.
    Sparse(Bytes),
}

impl Default for Text {
    fn default() -> Self {
        Self::Own(Vec::new())
    }
}

impl Text {
    /// Returns the capacity of a text that is not shared.
    fn own_capacity(&self) -> usize {
        match self {
            Self::Own(text) => text.capacity(),
            Self::Shared(_) | Self::Sparse(_) => 0,
        }
    }
}

/// A value that converts to a JSON object: any value that serde serialises as one, and JSON text,
/// whose members stay unchanged.
///
/// ```
/// use mcp_proto::rpc::{Object, RawJson, ToObject};
///
/// let text = RawJson::parse(r#"{"price": 1.10}"#).unwrap();
/// assert_eq!(text.to_object().unwrap().to_json().as_str(), r#"{"price":1.10}"#);
/// assert!(Object::new().with("a", 1_i64).to_object().is_ok());
/// assert!([1, 2].to_object().is_err());
/// ```
pub trait ToObject {
    /// Converts to the object.
    ///
    /// # Errors
    /// [`EncodeError`] if it cannot be serialized or is not an object.
    fn to_object(&self) -> Result<Object, EncodeError>;
}

impl<T: Serialize + ?Sized> ToObject for T {
    fn to_object(&self) -> Result<Object, EncodeError> {
        Object::encode(self)
    }
}

impl ToObject for RawJson {
    fn to_object(&self) -> Result<Object, EncodeError> {
        Object::read(self).map_err(|_| EncodeError::new("not an object"))
    }
}

impl ToObject for Object {
    fn to_object(&self) -> Result<Object, EncodeError> {
        Ok(self.clone())
    }
}

impl fmt::Debug for Object {
    /// Shows the JSON text.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.to_json(), f)
    }
}

impl PartialEq for Object {
    /// Compares the keys and the texts of the values, in order.
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.slices().eq(other.slices())
    }
}

impl Object {
    /// `{}`.
    pub const fn new() -> Self {
        Self(None)
    }

    /// Creates an object with this member, and room for this number of bytes after it.
    pub(crate) fn with_room(room: usize, key: &str, value: impl JsonValue) -> Self {
        let text = Vec::with_capacity(key.len() + value.json_len() + 5 + room);
        let mut inner = Inner { text: Text::Own(text), ..Inner::default() };
        inner.set(key, &value);
        Self(Some(Arc::new(inner)))
    }

    /// Reads the members of an object.
    ///
    /// # Errors
    /// [`DecodeError`] if the value is not an object.
    pub fn read(json: &RawJson) -> Result<Self, DecodeError> {
        if json.kind() != JsonKind::Object {
            return Err(DecodeError::new("expected an object"));
        }
        Ok(Self(Inner::read(json.to_bytes()).map(Arc::new)))
    }

    /// Reads the members of an object that may be absent.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn read_opt(json: Option<&RawJson>) -> Result<Self, DecodeError> {
        json.map_or_else(|| Ok(Self::new()), Self::read)
    }

    /// Serializes `value`, which must become an object.
    ///
    /// # Errors
    /// [`EncodeError`] if it cannot be serialized or is not an object.
    pub fn encode<T: Serialize + ?Sized>(value: &T) -> Result<Self, EncodeError> {
        let json = RawJson::encode(value)?;
        Self::read(&json).map_err(|_| EncodeError::new("not an object"))
    }

    /// Returns the object as JSON text.
    pub fn to_json(&self) -> RawJson {
        self.0.as_deref().map_or_else(RawJson::empty_object, Inner::to_json)
    }

    /// Appends the object as JSON text.
    pub(super) fn write_to(&self, out: &mut Vec<u8>) {
        match self.0.as_deref() {
            None => out.extend_from_slice(b"{}"),
            Some(inner) => inner.write_to(out),
        }
    }

    /// Returns the length of the text that [`write_to`](Self::write_to) appends. Escapes in keys
    /// may make it a little longer or shorter.
    pub(super) fn text_len(&self) -> usize {
        self.0.as_deref().map_or(2, Inner::text_len)
    }

    /// Sets a member. An existing one keeps its position.
    pub fn set(&mut self, key: &str, value: impl JsonValue) {
        Arc::make_mut(self.0.get_or_insert_default()).set(key, &value);
    }

    /// Like [`set`](Self::set), for chaining.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl JsonValue) -> Self {
        self.set(key, value);
        self
    }

    /// Like [`with`](Self::with) if there is a value. An absent option is omitted, never `null`.
    #[must_use]
    pub fn with_opt(self, key: &str, value: Option<impl JsonValue>) -> Self {
        match value {
            Some(value) => self.with(key, value),
            None => self,
        }
    }

    /// Sets each member of `other`, in order.
    #[must_use]
    pub fn with_all(mut self, other: &Self) -> Self {
        other.slices().for_each(|(key, value)| self.set(&key, Slice(value)));
        self
    }

    /// Removes and returns a member.
    pub fn remove(&mut self, key: &str) -> Option<RawJson> {
        let inner = self.0.as_ref()?;
        let at = inner.position(key)?;
        let value = inner.value(inner.members.as_slice()[at]);
        if self.len() == 1 {
            self.0 = None;
        } else if let Some(inner) = &mut self.0 {
            Arc::make_mut(inner).remove(at);
        }
        Some(value)
    }

    /// Returns a member unchanged. `null` is a value, not an absence.
    pub fn get(&self, key: &str) -> Option<RawJson> {
        let inner = self.0.as_ref()?;
        inner.find(key).map(|member| inner.value(member))
    }

    /// Returns whether there is a member with this key.
    pub fn contains(&self, key: &str) -> bool {
        self.slice(key).is_some()
    }

    /// Returns the type of a member.
    pub fn kind(&self, key: &str) -> Option<JsonKind> {
        self.slice(key).map(|value| JsonKind::of(value.first().copied()))
    }

    /// Returns a member that is a string. `None` for any other value, and for a string with a lone
    /// surrogate.
    pub fn str(&self, key: &str) -> Option<Cow<'_, str>> {
        self.slice(key).and_then(read_str)
    }

    /// Returns a member that is an id or a progress token: a string or a 64-bit integer. `None` for
    /// any other value.
    pub fn id(&self, key: &str) -> Option<Id> {
        self.slice(key).and_then(Id::read)
    }

    /// Decodes a required member.
    ///
    /// # Errors
    /// [`DecodeError`] with the key, if the member is absent or has another type.
    pub fn required<T: DeserializeOwned>(&self, key: &str) -> Result<T, DecodeError> {
        decode(key, self.slice(key).ok_or_else(|| missing(key))?)
    }

    /// Returns a required member that is a string.
    ///
    /// # Errors
    /// [`DecodeError`] with the key, if the member is absent or has another type.
    pub fn required_str(&self, key: &str) -> Result<Cow<'_, str>, DecodeError> {
        self.str(key).map_or_else(|| self.required(key).map(Cow::Owned), Ok)
    }

    /// Decodes a member that may be absent or `null`.
    ///
    /// # Errors
    /// [`DecodeError`] with the key, if the member has another type.
    pub fn optional<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>, DecodeError> {
        self.slice(key).filter(|value| *value != b"null").map(|value| decode(key, value)).transpose()
    }

    /// Returns a required member that is an object.
    ///
    /// # Errors
    /// [`DecodeError`] with the key.
    pub fn object(&self, key: &str) -> Result<Self, DecodeError> {
        self.optional_object(key)?.ok_or_else(|| missing(key))
    }

    /// Returns a member that is an object, absent or `null`.
    ///
    /// # Errors
    /// [`DecodeError`] with the key.
    pub fn optional_object(&self, key: &str) -> Result<Option<Self>, DecodeError> {
        let value = self.get(key).filter(|value| value.kind() != JsonKind::Null);
        value.map(|value| Self::read(&value).map_err(|e| in_member(key, &e))).transpose()
    }

    /// Returns the elements of a required member that is an array.
    ///
    /// # Errors
    /// [`DecodeError`] with the key.
    pub fn array(&self, key: &str) -> Result<Vec<RawJson>, DecodeError> {
        self.optional_array(key)?.ok_or_else(|| missing(key))
    }

    /// Returns the elements of a member that is an array, absent or `null`.
    ///
    /// # Errors
    /// [`DecodeError`] with the key.
    pub fn optional_array(&self, key: &str) -> Result<Option<Vec<RawJson>>, DecodeError> {
        match self.kind(key) {
            Some(JsonKind::Array) => Ok(self.get(key).map(|value| value.elements().collect())),
            Some(JsonKind::Null) | None => Ok(None),
            Some(_) => Err(in_member(key, &"expected an array")),
        }
    }

    /// Returns the members, in order.
    pub fn iter(&self) -> impl Iterator<Item = (Cow<'_, str>, RawJson)> {
        let inner = self.0.as_deref();
        inner.into_iter().flat_map(|inner| inner.iter().map(|member| (member.name(inner.bytes()), inner.value(member))))
    }

    /// Returns the members with the texts of their values.
    pub(crate) fn slices(&self) -> impl Iterator<Item = (Cow<'_, str>, &[u8])> {
        self.0.as_deref().into_iter().flat_map(Inner::slices)
    }

    /// Returns the number of members.
    pub fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |inner| inner.members.as_slice().len())
    }

    /// Returns whether there are no members.
    pub const fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Returns the bytes on the heap, without a text that is shared with a message. Clones share
    /// them.
    pub(crate) fn heap_size(&self) -> usize {
        self.0.as_ref().map_or(0, |inner| {
            size_of::<Inner>() + 2 * size_of::<usize>() + inner.members.heap_size() + inner.text.own_capacity()
        })
    }

    /// Returns whether it keeps alive the text that it was read from.
    pub(crate) fn shares_text(&self) -> bool {
        self.0.as_ref().is_some_and(|inner| !matches!(inner.text, Text::Own(_)))
    }

    fn slice(&self, key: &str) -> Option<&[u8]> {
        let inner = self.0.as_ref()?;
        inner.find(key).map(|member| &inner.bytes()[member.value()])
    }
}

impl Inner {
    /// Reads an object from a text that is one. `None` if it is empty.
    fn read(text: Bytes) -> Option<Self> {
        let mut scan = Scan::new(&text, MAX_DEPTH);
        scan.open(b'{');
        let (mut members, mut is_dense) = (Members::default(), true);
        // The position of the next key, if there is no white space.
        let mut next = 1;
        while let Ok(Some(key)) = scan.member(next == 1) {
            let Ok(value) = scan.skip() else { break };
            is_dense &= key.start == next + 1 && value.start == key.end + 2;
            next = value.end + 1;
            members.push(Member::new(key, value));
        }
        // Values are skipped, so only keys count.
        let has_escapes = scan.escaped;
        let count = members.as_slice().len();
        members.drop_repeated(&text, has_escapes);
        is_dense &= !has_escapes && next == text.len() && members.as_slice().len() == count;
        let text = if is_dense { Text::Shared(text) } else { Text::Sparse(text) };
        (count > 0).then_some(Self { text, members, has_escapes })
    }

    fn bytes(&self) -> &[u8] {
        match &self.text {
            Text::Own(text) => text,
            Text::Shared(text) | Text::Sparse(text) => text,
        }
    }

    fn iter(&self) -> impl Iterator<Item = Member> {
        self.members.as_slice().iter().copied()
    }

    fn slices(&self) -> impl Iterator<Item = (Cow<'_, str>, &[u8])> {
        self.iter().map(|member| (member.name(self.bytes()), &self.bytes()[member.value()]))
    }

    fn position(&self, key: &str) -> Option<usize> {
        let text = self.bytes();
        self.iter().position(|member| match self.has_escapes {
            true => member.name(text) == key,
            false => &text[member.key()] == key.as_bytes(),
        })
    }

    fn find(&self, key: &str) -> Option<Member> {
        self.position(key).map(|at| self.members.as_slice()[at])
    }

    fn value(&self, member: Member) -> RawJson {
        RawJson::trusted(match &self.text {
            Text::Own(text) => Bytes::copy_from_slice(&text[member.value()]),
            Text::Shared(text) | Text::Sparse(text) => text.slice(member.value()),
        })
    }

    fn to_json(&self) -> RawJson {
        if let Text::Shared(text) = &self.text {
            return RawJson::trusted(text.clone());
        }
        let mut out = Vec::with_capacity(self.text_len());
        self.write_to(&mut out);
        RawJson::trusted(out.into())
    }

    fn write_to(&self, out: &mut Vec<u8>) {
        match &self.text {
            Text::Own(text) => out.extend_from_slice(text),
            Text::Shared(text) => out.extend_from_slice(text),
            Text::Sparse(_) => {
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

    fn text_len(&self) -> usize {
        match &self.text {
            Text::Own(text) => text.len(),
            Text::Shared(text) => text.len(),
            Text::Sparse(_) => {
                self.iter().map(|member| member.key().len() + member.value().len() + 4).sum::<usize>() + 1
            }
        }
    }

    fn set(&mut self, key: &str, value: &impl JsonValue) {
        let existing = self.position(key);
        self.has_escapes |= existing.is_none() && key.bytes().any(|byte| byte < 0x20 || matches!(byte, b'"' | b'\\'));
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

    /// Removes one of several members.
    fn remove(&mut self, at: usize) {
        let removed = self.members.remove(at);
        match core::mem::take(&mut self.text) {
            Text::Own(mut text) => {
                // With its quotes and one comma: the one after it if it was the first.
                let old = match at {
                    0 => 1..removed.value().end + 1,
                    _ => removed.key().start - 2..removed.value().end,
                };
                text.drain(old.clone());
                self.members.as_mut_slice().iter_mut().for_each(|member| member.shift(&old, 0));
                self.text = Text::Own(text);
            }
            Text::Shared(text) | Text::Sparse(text) => {
                let len = text.len();
                self.text = Text::Sparse(text);
                if len > LARGE && self.text_len() < len / 4 {
                    self.edit(|_, _| {});
                }
            }
        }
    }

    /// Changes the text and the positions, after copying a text that is shared.
    fn edit(&mut self, change: impl FnOnce(&mut Vec<u8>, &mut Members)) {
        let mut text = match core::mem::take(&mut self.text) {
            Text::Own(text) => text,
            Text::Shared(text) => text.into(),
            Text::Sparse(old) => {
                let mut text = Vec::new();
                for member in self.members.as_mut_slice() {
                    *member = push(&mut text, &member.name(&old), &Slice(&old[member.value()]));
                }
                text
            }
        };
        change(&mut text, &mut self.members);
        self.text = Text::Own(text);
    }
}

/// Appends a member to the text of an object. Returns its position.
fn push(text: &mut Vec<u8>, key: &str, value: &impl JsonValue) -> Member {
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
    Member::new(key, value)
}

fn decode<T: DeserializeOwned>(key: &str, value: &[u8]) -> Result<T, DecodeError> {
    serde_json::from_slice(value).map_err(|e| in_member(key, &e))
}

fn missing(key: &str) -> DecodeError {
    DecodeError::new(format!("`{key}` is missing"))
}

fn in_member(key: &str, why: &dyn fmt::Display) -> DecodeError {
    DecodeError::new(format!("`{key}`: {why}"))
}

impl FromIterator<(String, RawJson)> for Object {
    /// As for a text with these members.
    fn from_iter<I: IntoIterator<Item = (String, RawJson)>>(members: I) -> Self {
        let mut text = Vec::new();
        for (key, value) in members {
            push(&mut text, &key, &value);
        }
        Self(Inner::read(text.into()).map(Arc::new))
    }
}

impl From<Object> for RawJson {
    fn from(object: Object) -> Self {
        match object.0.map(Arc::try_unwrap) {
            None => Self::empty_object(),
            Some(Ok(Inner { text: Text::Own(text), .. })) => Self::trusted(text.into()),
            Some(Ok(Inner { text: Text::Shared(text), .. })) => Self::trusted(text),
            Some(Ok(inner)) => inner.to_json(),
            Some(Err(shared)) => shared.to_json(),
        }
    }
}

#[cfg(test)]
mod tests;
