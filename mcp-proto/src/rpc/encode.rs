//! Serialization: of any value to JSON text, and of a [`RawJson`] by any serializer.

use super::scalar::read_str;
use super::{EncodeError, JsonKind, Object, RawJson};
use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;
use core::any::type_name;
use serde::ser::{Error, Impossible, SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};

/// Serializes a value, once. The text of a [`RawJson`] is unchanged: serde has no way to write it.
pub(super) fn to_vec<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, EncodeError> {
    // If the name did not reveal the type, its numbers would be those of serde.
    let is_raw = type_name::<T>().trim_start_matches('&') == type_name::<RawJson>();
    let text = if is_raw { value.serialize(Verbatim) } else { serde_json::to_vec(value) };
    text.map_err(|e| EncodeError::new(e.to_string()))
}

impl Serialize for RawJson {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if !serializer.is_human_readable() {
            return serializer.serialize_str(self.as_str());
        }
        match self.kind() {
            JsonKind::Null => serializer.serialize_unit(),
            JsonKind::Bool => serializer.serialize_bool(self.as_bytes() == b"true"),
            JsonKind::Number => serialize_number(self.as_str(), serializer),
            JsonKind::String => match read_str(self.as_bytes()) {
                Some(text) => serializer.serialize_str(&text),
                None => Err(S::Error::custom("a string with a lone surrogate")),
            },
            JsonKind::Array => {
                let mut elements = serializer.serialize_seq(None)?;
                self.elements().try_for_each(|element| elements.serialize_element(&element))?;
                elements.end()
            }
            JsonKind::Object => {
                let object = Object::read(self).map_err(S::Error::custom)?;
                let mut members = serializer.serialize_map(Some(object.len()))?;
                object.iter().try_for_each(|(key, value)| members.serialize_entry(&key, &value))?;
                members.end()
            }
        }
    }
}

fn serialize_number<S: Serializer>(text: &str, serializer: S) -> Result<S::Ok, S::Error> {
    if text == "-0" {
        // An integer has no negative zero.
        return serializer.serialize_f64(-0.0);
    }
    if let Ok(number) = text.parse() {
        return serializer.serialize_i64(number);
    }
    if let Ok(number) = text.parse() {
        return serializer.serialize_u64(number);
    }
    if let Ok(number) = text.parse() {
        return serializer.serialize_i128(number);
    }
    if let Ok(number) = text.parse() {
        return serializer.serialize_u128(number);
    }
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() => serializer.serialize_f64(number),
        _ => Err(S::Error::custom(format!("the number {text} is out of range"))),
    }
}

/// Takes the text of a [`RawJson`]. It is not human-readable, so that it gets this text.
struct Verbatim;

/// A value of any other kind.
fn refuse<T>() -> Result<T, serde_json::Error> {
    Err(serde_json::Error::custom("not the text of JSON"))
}

/// Refuses values of one kind.
macro_rules! refuse {
    ($($method:ident($($type:ty),*) -> $ok:ty;)*) => {
        $(fn $method(self, $(_: $type),*) -> Result<$ok, Self::Error> {
            refuse()
        })*
    };
}

type Nothing = Impossible<Vec<u8>, serde_json::Error>;

impl Serializer for Verbatim {
    type Ok = Vec<u8>;
    type Error = serde_json::Error;
    type SerializeSeq = Nothing;
    type SerializeTuple = Nothing;
    type SerializeTupleStruct = Nothing;
    type SerializeTupleVariant = Nothing;
    type SerializeMap = Nothing;
    type SerializeStruct = Nothing;
    type SerializeStructVariant = Nothing;

    fn is_human_readable(&self) -> bool {
        false
    }

    fn serialize_str(self, text: &str) -> Result<Vec<u8>, Self::Error> {
        Ok(text.into())
    }

    refuse! {
        serialize_bool(bool) -> Vec<u8>;
        serialize_i8(i8) -> Vec<u8>;
        serialize_i16(i16) -> Vec<u8>;
        serialize_i32(i32) -> Vec<u8>;
        serialize_i64(i64) -> Vec<u8>;
        serialize_u8(u8) -> Vec<u8>;
        serialize_u16(u16) -> Vec<u8>;
        serialize_u32(u32) -> Vec<u8>;
        serialize_u64(u64) -> Vec<u8>;
        serialize_f32(f32) -> Vec<u8>;
        serialize_f64(f64) -> Vec<u8>;
        serialize_char(char) -> Vec<u8>;
        serialize_bytes(&[u8]) -> Vec<u8>;
        serialize_none() -> Vec<u8>;
        serialize_unit() -> Vec<u8>;
        serialize_unit_struct(&'static str) -> Vec<u8>;
        serialize_unit_variant(&'static str, u32, &'static str) -> Vec<u8>;
        serialize_seq(Option<usize>) -> Nothing;
        serialize_tuple(usize) -> Nothing;
        serialize_tuple_struct(&'static str, usize) -> Nothing;
        serialize_tuple_variant(&'static str, u32, &'static str, usize) -> Nothing;
        serialize_map(Option<usize>) -> Nothing;
        serialize_struct(&'static str, usize) -> Nothing;
        serialize_struct_variant(&'static str, u32, &'static str, usize) -> Nothing;
    }

    fn serialize_some<T: Serialize + ?Sized>(self, _: &T) -> Result<Vec<u8>, Self::Error> {
        refuse()
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, _: &T) -> Result<Vec<u8>, Self::Error> {
        refuse()
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: &T,
    ) -> Result<Vec<u8>, Self::Error> {
        refuse()
    }
}
