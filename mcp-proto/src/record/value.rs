//! Values in a recording: JSON that a person can read, and that reads back exactly. JSON inside
//! JSON is text, so that its bytes and its depth are preserved.

use crate::rpc::{DecodeError, Object, RawJson};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use core::time::Duration;

/// A value that can be written and read back.
pub(super) trait Value: Sized {
    /// Writes it as JSON.
    fn write(&self) -> RawJson;

    /// Reads the output of [`write`](Self::write).
    fn read(json: &RawJson) -> Result<Self, DecodeError>;
}

/// Reads a required member. `null` is a value.
pub(super) fn member<T: Value>(object: &Object, key: &str) -> Result<T, DecodeError> {
    let value = object.get(key).ok_or_else(|| DecodeError::new(format!("`{key}` is missing")))?;
    T::read(value).map_err(|e| DecodeError::new(format!("`{key}`: {e}")))
}

/// Reads the name of a variant.
pub(super) fn name(json: &RawJson) -> Result<String, DecodeError> {
    json.decode()
}

/// Returns the error for an unknown name.
pub(super) fn unknown(name: &str) -> DecodeError {
    DecodeError::new(format!("{name:?} is not known"))
}

/// Writes a struct as an object, field by field. A missing field does not compile. If fields of an
/// inner struct are members of the same object, the first list is the pattern of both structs, and
/// the list after `as` is the order of the members.
macro_rules! fields {
    ($type:ident { $($field:ident),* $(,)? }) => {
        fields!($type { $($field),* } as { $($field),* });
    };
    ($type:ident { $($shape:tt)* } as { $($field:ident),* $(,)? }) => {
        impl Value for $type {
            fn write(&self) -> RawJson {
                let Self { $($shape)* } = self;
                Object::new()$(.with(stringify!($field), Value::write($field)))*.into()
            }

            fn read(json: &RawJson) -> Result<Self, DecodeError> {
                let object = Object::read(json)?;
                $(let $field = crate::record::value::member(&object, stringify!($field))?;)*
                Ok(Self { $($shape)* })
            }
        }
    };
}

/// Writes an enum without data as a name.
macro_rules! names {
    ($type:ident { $($variant:ident = $name:literal),* $(,)? }) => {
        impl Value for $type {
            fn write(&self) -> RawJson {
                match self {
                    $(Self::$variant => $name.into()),*
                }
            }

            fn read(json: &RawJson) -> Result<Self, DecodeError> {
                match crate::record::value::name(json)?.as_str() {
                    $($name => Ok(Self::$variant),)*
                    other => Err(crate::record::value::unknown(other)),
                }
            }
        }
    };
}

pub(super) use {fields, names};

/// Values that JSON represents directly, such as numbers.
macro_rules! plain {
    ($($type:ty),*) => {
        $(impl Value for $type {
            fn write(&self) -> RawJson {
                i64::from(*self).into()
            }

            fn read(json: &RawJson) -> Result<Self, DecodeError> {
                json.decode()
            }
        })*
    };
}

plain!(u16, u32, i32);

impl Value for bool {
    fn write(&self) -> RawJson {
        (*self).into()
    }

    fn read(json: &RawJson) -> Result<Self, DecodeError> {
        json.decode()
    }
}

impl Value for u64 {
    fn write(&self) -> RawJson {
        (*self).into()
    }

    fn read(json: &RawJson) -> Result<Self, DecodeError> {
        json.decode()
    }
}

impl Value for usize {
    fn write(&self) -> RawJson {
        (*self as u64).into()
    }

    /// Saturates, since `usize` may be larger on the machine that recorded.
    fn read(json: &RawJson) -> Result<Self, DecodeError> {
        u64::read(json).map(|n| Self::try_from(n).unwrap_or(Self::MAX))
    }
}

impl Value for String {
    fn write(&self) -> RawJson {
        self.as_str().into()
    }

    fn read(json: &RawJson) -> Result<Self, DecodeError> {
        json.decode()
    }
}

impl Value for Bytes {
    /// As text if it is UTF-8, otherwise in base64.
    fn write(&self) -> RawJson {
        match core::str::from_utf8(self) {
            Ok(text) => text.into(),
            Err(_) => Object::new().with("base64", STANDARD.encode(self).as_str()).into(),
        }
    }

    fn read(json: &RawJson) -> Result<Self, DecodeError> {
        if let Ok(text) = json.decode::<String>() {
            return Ok(text.into());
        }
        let text: String = Object::read(json)?.required("base64")?;
        STANDARD.decode(text).map(Into::into).map_err(|_| DecodeError::new("not base64"))
    }
}

impl Value for Duration {
    /// Seconds, exact to the nanosecond, as text: a JSON number could not represent all of them.
    fn write(&self) -> RawJson {
        let text = match self.subsec_nanos() {
            0 => format!("{}", self.as_secs()),
            nanos => format!("{}.{nanos:09}", self.as_secs()),
        };
        text.as_str().into()
    }

    fn read(json: &RawJson) -> Result<Self, DecodeError> {
        let text: String = json.decode()?;
        let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let (secs, nanos) = text.split_once('.').unwrap_or((&text, "000000000"));
        let nanos = Some(nanos).filter(|nanos| nanos.len() == 9 && digits(nanos)).and_then(|n| n.parse().ok());
        match (Some(secs).filter(|secs| digits(secs)).and_then(|secs| secs.parse().ok()), nanos) {
            (Some(secs), Some(nanos)) => Ok(Self::new(secs, nanos)),
            _ => Err(DecodeError::new("not seconds")),
        }
    }
}

impl<T: Value> Value for Option<T> {
    /// As a list with at most one element, so that options can be nested.
    fn write(&self) -> RawJson {
        self.iter().map(Value::write).collect::<Vec<_>>().into()
    }

    fn read(json: &RawJson) -> Result<Self, DecodeError> {
        let mut values = Vec::<T>::read(json)?;
        match (values.pop(), values.pop()) {
            (value, None) => Ok(value),
            _ => Err(DecodeError::new("more than one value")),
        }
    }
}

impl<T: Value> Value for Vec<T> {
    fn write(&self) -> RawJson {
        self.iter().map(Value::write).collect::<Vec<_>>().into()
    }

    fn read(json: &RawJson) -> Result<Self, DecodeError> {
        let list = Object::new().with("list", json.clone()).array("list")?;
        list.iter().map(T::read).collect()
    }
}

impl<A: Value, B: Value> Value for (A, B) {
    fn write(&self) -> RawJson {
        alloc::vec![self.0.write(), self.1.write()].into()
    }

    fn read(json: &RawJson) -> Result<Self, DecodeError> {
        match Object::new().with("pair", json.clone()).array("pair")?.as_slice() {
            [a, b] => Ok((A::read(a)?, B::read(b)?)),
            _ => Err(DecodeError::new("expected two values")),
        }
    }
}

impl Value for RawJson {
    fn write(&self) -> RawJson {
        self.as_str().into()
    }

    fn read(json: &RawJson) -> Result<Self, DecodeError> {
        let text: String = json.decode()?;
        Self::parse(text).map_err(|defect| DecodeError::new(defect.kind.as_str()))
    }
}

impl Value for Object {
    fn write(&self) -> RawJson {
        self.to_json().write()
    }

    fn read(json: &RawJson) -> Result<Self, DecodeError> {
        Self::read(&<RawJson as Value>::read(json)?)
    }
}

impl Value for [u8; 32] {
    /// In hexadecimal digits.
    fn write(&self) -> RawJson {
        let digits: String = self.iter().map(|byte| format!("{byte:02x}")).collect();
        digits.as_str().into()
    }

    fn read(json: &RawJson) -> Result<Self, DecodeError> {
        let text: String = json.decode()?;
        let digits: Vec<u32> = text.chars().filter_map(|c| c.to_digit(16)).collect();
        let mut seed = [0; 32];
        if digits.len() != 64 || text.len() != 64 {
            return Err(DecodeError::new("not 64 hexadecimal digits"));
        }
        for (byte, pair) in seed.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = (pair[0] << 4 | pair[1]) as u8;
        }
        Ok(seed)
    }
}
