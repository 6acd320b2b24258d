//! A JSON object with its members: params, results and the typed model are decoded from it and
//! encoded to it.

use super::scalar::write_string;
use super::{DecodeError, EncodeError, Id, JsonKind, RawJson};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The members of a JSON object, in order. Values share the bytes that they were parsed from, and
/// unknown members are kept unchanged. The last value of a repeated key counts, as in most JSON
/// parsers.
#[derive(Clone, PartialEq, Default)]
pub struct Object {
    members: Vec<(String, RawJson)>,
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

impl Object {
    /// `{}`.
    pub const fn new() -> Self {
        Self { members: Vec::new() }
    }

    /// Reads the members of an object.
    ///
    /// # Errors
    /// [`DecodeError`] if the value is not an object.
    pub fn read(json: &RawJson) -> Result<Self, DecodeError> {
        if json.kind() != JsonKind::Object {
            return Err(DecodeError::new("expected an object"));
        }
        let mut members = Vec::new();
        json.members(|key, value| members.push((key, value)));
        Ok(members.into_iter().collect())
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
        let mut out = Vec::new();
        self.write_to(&mut out);
        RawJson::trusted(out.into())
    }

    /// Appends the object as JSON text.
    pub(super) fn write_to(&self, out: &mut Vec<u8>) {
        out.push(b'{');
        for (n, (key, value)) in self.iter().enumerate() {
            if n > 0 {
                out.push(b',');
            }
            write_string(out, key);
            out.push(b':');
            out.extend_from_slice(value.as_bytes());
        }
        out.push(b'}');
    }

    /// Sets a member. An existing one keeps its position.
    pub fn set(&mut self, key: &str, value: RawJson) {
        match self.members.iter_mut().find(|(k, _)| k == key) {
            Some(member) => member.1 = value,
            None => self.members.push((key.into(), value)),
        }
    }

    /// Like [`set`](Self::set), for chaining.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<RawJson>) -> Self {
        self.set(key, value.into());
        self
    }

    /// Like [`with`](Self::with) if there is a value. An absent option is omitted, never `null`.
    #[must_use]
    pub fn with_opt(self, key: &str, value: Option<impl Into<RawJson>>) -> Self {
        match value {
            Some(value) => self.with(key, value),
            None => self,
        }
    }

    /// Removes and returns a member.
    pub fn remove(&mut self, key: &str) -> Option<RawJson> {
        let at = self.members.iter().position(|(k, _)| k == key)?;
        Some(self.members.remove(at).1)
    }

    /// Returns a member unchanged. `null` is a value, not an absence.
    pub fn get(&self, key: &str) -> Option<&RawJson> {
        self.members.iter().find(|(k, _)| k == key).map(|(_, value)| value)
    }

    /// Decodes a required member.
    ///
    /// # Errors
    /// [`DecodeError`] with the key, if the member is absent or has another type.
    pub fn required<T: DeserializeOwned>(&self, key: &str) -> Result<T, DecodeError> {
        let value = self.get(key).ok_or_else(|| DecodeError::new(format!("`{key}` is missing")))?;
        value.decode().map_err(|e| DecodeError::new(format!("`{key}`: {e}")))
    }

    /// Decodes a member that may be absent or `null`.
    ///
    /// # Errors
    /// [`DecodeError`] with the key, if the member has another type.
    pub fn optional<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>, DecodeError> {
        match self.get(key) {
            Some(value) if value.kind() != JsonKind::Null => {
                value.decode().map(Some).map_err(|e| DecodeError::new(format!("`{key}`: {e}")))
            }
            _ => Ok(None),
        }
    }

    /// Returns a required member that is an object.
    ///
    /// # Errors
    /// [`DecodeError`] with the key.
    pub fn object(&self, key: &str) -> Result<Self, DecodeError> {
        self.optional_object(key)?.ok_or_else(|| DecodeError::new(format!("`{key}` is missing")))
    }

    /// Returns a member that is an object, absent or `null`.
    ///
    /// # Errors
    /// [`DecodeError`] with the key.
    pub fn optional_object(&self, key: &str) -> Result<Option<Self>, DecodeError> {
        match self.get(key) {
            Some(value) if value.kind() != JsonKind::Null => {
                Self::read(value).map(Some).map_err(|e| DecodeError::new(format!("`{key}`: {e}")))
            }
            _ => Ok(None),
        }
    }

    /// Returns the elements of a required member that is an array.
    ///
    /// # Errors
    /// [`DecodeError`] with the key.
    pub fn array(&self, key: &str) -> Result<Vec<RawJson>, DecodeError> {
        self.optional_array(key)?.ok_or_else(|| DecodeError::new(format!("`{key}` is missing")))
    }

    /// Returns the elements of a member that is an array, absent or `null`.
    ///
    /// # Errors
    /// [`DecodeError`] with the key.
    pub fn optional_array(&self, key: &str) -> Result<Option<Vec<RawJson>>, DecodeError> {
        match self.get(key) {
            Some(value) if value.kind() == JsonKind::Array => Ok(Some(value.elements())),
            Some(value) if value.kind() != JsonKind::Null => {
                Err(DecodeError::new(format!("`{key}`: expected an array")))
            }
            _ => Ok(None),
        }
    }

    /// Returns a member that is an id or a progress token: a string or a 64-bit integer. `None` for
    /// any other value.
    pub fn id(&self, key: &str) -> Option<Id> {
        self.get(key).and_then(RawJson::id)
    }

    /// Returns the members, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &RawJson)> {
        self.members.iter().map(|(key, value)| (key.as_str(), value))
    }

    /// Returns the bytes on the heap, without the texts of the values, which are shared with the
    /// parsed text.
    pub(crate) fn heap_size(&self) -> usize {
        let keys: usize = self.members.iter().map(|(key, _)| key.capacity()).sum();
        self.members.capacity() * size_of::<(String, RawJson)>() + keys
    }

    /// Returns the bytes on the heap of a clone, without the texts of the values.
    pub(crate) fn clone_size(&self) -> usize {
        self.members.iter().map(|(key, _)| size_of::<(String, RawJson)>() + key.len()).sum()
    }

    /// Returns the number of members.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Returns whether there are no members.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }
}

impl FromIterator<(String, RawJson)> for Object {
    /// Takes O(n log n): an object of a peer may have a million members.
    fn from_iter<I: IntoIterator<Item = (String, RawJson)>>(members: I) -> Self {
        let mut members: Vec<_> = members.into_iter().collect();
        let mut by_key: Vec<usize> = (0..members.len()).collect();
        by_key.sort_by(|a, b| members[*a].0.cmp(&members[*b].0));
        let mut repeated = alloc::vec![false; members.len()];
        // The sort is stable, so the first of equal keys is first. It keeps its position and gets
        // the value of the last.
        let mut first = by_key.first().copied().unwrap_or_default();
        for &here in by_key.iter().skip(1) {
            if members[first].0 == members[here].0 {
                members[first].1 = members[here].1.clone();
                repeated[here] = true;
            } else {
                first = here;
            }
        }
        let mut repeated = repeated.into_iter();
        members.retain(|_| !repeated.next().unwrap_or(false));
        Self { members }
    }
}

impl From<Object> for RawJson {
    fn from(object: Object) -> Self {
        object.to_json()
    }
}

impl From<Vec<RawJson>> for RawJson {
    fn from(elements: Vec<RawJson>) -> Self {
        let mut out = alloc::vec![b'['];
        for (n, element) in elements.iter().enumerate() {
            if n > 0 {
                out.push(b',');
            }
            out.extend_from_slice(element.as_bytes());
        }
        out.push(b']');
        RawJson::trusted(out.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(text: &str) -> Object {
        Object::read(&RawJson::parse(text.as_bytes().to_vec()).unwrap()).unwrap()
    }

    // covers: B-292
    #[test]
    fn repeated_key_keeps_last_value_at_first_position() {
        let cases = [
            (r#"{"b":1,"a":2,"b":3,"c":4,"a":5,"b":6}"#, r#"{"b":6,"a":5,"c":4}"#),
            (r#"{"a":1,"a":2}"#, r#"{"a":2}"#),
            (r#"{"z":1,"y":2}"#, r#"{"z":1,"y":2}"#),
            ("{}", "{}"),
        ];
        for (text, expected) in cases {
            assert_eq!(object(text).to_json().as_str(), expected);
        }
    }

    #[test]
    fn object_of_a_million_members_is_read_in_linear_time() {
        let members: Vec<String> = (0..1_000_000).map(|n| format!("\"{}\":0", n / 2)).collect();
        assert_eq!(object(&format!("{{{}}}", members.join(","))).len(), 500_000);
    }
}
