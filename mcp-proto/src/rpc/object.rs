//! A JSON object with its members: params, results and the typed model are decoded from it and
//! encoded to it.

mod inner;

pub(super) use inner::Inner;

use super::scalar::read_str;
use super::value::{JsonValue, Slice};
use super::{DecodeError, EncodeError, Id, JsonKind, RawJson};
use alloc::borrow::Cow;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The members of a JSON object, in order: one JSON text, and the position of each member in it. An
/// object that was read shares the bytes that it was parsed from, and keeps unknown members
/// unchanged. The last value of a repeated key counts, as in most JSON parsers. Cloning shares
/// everything until one of them is changed.
#[derive(Clone, Default)]
pub struct Object(Option<Arc<Inner>>);

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

    /// Converts to the text of the object, whose members are not looked at.
    ///
    /// # Errors
    /// [`EncodeError`] as for [`to_object`](Self::to_object).
    fn to_object_json(&self) -> Result<RawJson, EncodeError> {
        self.to_object().map(RawJson::from)
    }
}

impl<T: Serialize + ?Sized> ToObject for T {
    fn to_object(&self) -> Result<Object, EncodeError> {
        Object::encode(self)
    }

    fn to_object_json(&self) -> Result<RawJson, EncodeError> {
        let json = RawJson::encode(self)?;
        if json.kind() == JsonKind::Object { Ok(json) } else { Err(EncodeError::new("not an object")) }
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
        let mut inner = Inner::with_capacity(key.len() + value.json_len() + 5 + room);
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
        Ok(Self(match json.members() {
            Some(inner) => Some(Arc::clone(inner)),
            None => Inner::read(json.to_bytes()).map(Arc::new),
        }))
    }

    /// Like [`read`](Self::read), for a value that is not needed any more: changing the object
    /// copies nothing that the value shares.
    pub(crate) fn from_json(json: RawJson) -> Result<Self, DecodeError> {
        json.into_members().map_or_else(|json| Self::read(&json), |inner| Ok(Self(Some(inner))))
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
        Self::from_json(RawJson::encode_object(value)?).map_err(|_| EncodeError::new("not an object"))
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
        // Few members are found faster one by one.
        const FEW: usize = 32;

        if self.len().saturating_add(other.len()) <= FEW {
            other.slices().for_each(|(key, value)| self.set(&key, Slice(value)));
            return self;
        }
        // A peer chooses how many there are: each is looked up in a tree, and written once.
        let (mut all, mut text) = (Inner::default(), Vec::with_capacity(self.text_len() + other.text_len()));
        let mut rest: BTreeMap<_, _> = other.slices().collect();
        for (key, value) in self.slices() {
            let value = rest.remove(&key).unwrap_or(value);
            all.push_to(&mut text, &key, &Slice(value));
        }
        for (key, value) in other.slices().filter(|(key, _)| rest.contains_key(key)) {
            all.push_to(&mut text, &key, &Slice(value));
        }
        all.set_text(text);
        Self(Some(Arc::new(all)))
    }

    /// Removes and returns a member.
    pub fn remove(&mut self, key: &str) -> Option<RawJson> {
        let inner = self.0.as_ref()?;
        let at = inner.position(key)?;
        let value = inner.value(inner.member(at));
        if self.len() == 1 {
            self.0 = None;
        } else if let Some(inner) = &mut self.0 {
            Arc::make_mut(inner).remove(at);
        }
        Some(value)
    }

    /// Returns it without these members.
    pub(crate) fn without(self, keys: &[&str]) -> Self {
        let Some(mut inner) = self.0 else { return self };
        let Some(other) = inner.without(keys) else { return Self::new() };
        match Arc::get_mut(&mut inner) {
            Some(own) => *own = other,
            None => inner = Arc::new(other),
        }
        Self(Some(inner))
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
        self.0.as_ref().map_or(0, |inner| inner.len())
    }

    /// Returns whether there are no members.
    pub const fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Returns the bytes on the heap, without a text that is shared with a message. Clones share
    /// them.
    pub(crate) fn heap_size(&self) -> usize {
        self.0.as_ref().map_or(0, |inner| size_of::<Inner>() + 2 * size_of::<usize>() + inner.heap_size())
    }

    /// Returns whether it keeps alive the text that it was read from.
    pub(crate) fn shares_text(&self) -> bool {
        self.0.as_ref().is_some_and(|inner| inner.shares_text())
    }

    fn slice(&self, key: &str) -> Option<&[u8]> {
        let inner = self.0.as_ref()?;
        inner.find(key).map(|member| &inner.bytes()[member.value()])
    }
}

/// The members of a value, for a look at their types. Unlike an [`Object`] it needs no memory of
/// its own if there are few members.
pub(crate) struct Glance(Option<Inner>);

impl Glance {
    /// Looks at a value. One that is not an object has no members.
    pub(crate) fn at(json: &RawJson) -> Self {
        Self(match json.kind() {
            JsonKind::Object => Inner::read(json.to_bytes()),
            _ => None,
        })
    }

    /// Returns a member.
    pub(crate) fn get(&self, key: &str) -> Option<RawJson> {
        let inner = self.0.as_ref()?;
        inner.find(key).map(|member| inner.value(member))
    }

    /// Returns whether a member is a string.
    pub(crate) fn is_text(&self, key: &str) -> bool {
        self.kind(key) == Some(JsonKind::String)
    }

    /// Returns whether a member is a string, absent or `null`.
    pub(crate) fn may_be_text(&self, key: &str) -> bool {
        matches!(self.kind(key), Some(JsonKind::String | JsonKind::Null) | None)
    }

    /// Returns the type of a member.
    pub(crate) fn kind(&self, key: &str) -> Option<JsonKind> {
        let inner = self.0.as_ref()?;
        inner.find(key).map(|member| JsonKind::of(inner.bytes()[member.value()].first().copied()))
    }

    /// Returns the text of a member that is a string.
    pub(crate) fn str(&self, key: &str) -> Option<Cow<'_, str>> {
        let inner = self.0.as_ref()?;
        inner.find(key).and_then(|member| read_str(&inner.bytes()[member.value()]))
    }
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
            inner::push(&mut text, &key, &value);
        }
        Self(Inner::read(text.into()).map(Arc::new))
    }
}

impl From<Object> for RawJson {
    fn from(object: Object) -> Self {
        match object.0.map(Arc::try_unwrap) {
            None => Self::empty_object(),
            Some(Ok(inner)) => inner.into_json(),
            Some(Err(shared)) => shared.to_json(),
        }
    }
}

#[cfg(test)]
mod tests;
