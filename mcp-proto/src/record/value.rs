//! The forms of the fields that serde cannot derive. JSON inside JSON is text, so that its bytes
//! and its depth are preserved. Such a field has the attribute
//! `#[serde(with = "crate::record::value")]`.

use crate::client::{HttpTarget, WsTarget};
use crate::exchange::Origin;
use crate::hook::MessageHook;
use crate::input::Key;
use crate::model::capabilities::{ClientCapabilities, ServerCapabilities};
use crate::model::roots::Roots;
use crate::model::sampling::SampleResult;
use crate::rpc::{DecodeError, EncodeError, Id, Object, RawJson};
use crate::schema::{Checker, Validator};
use crate::telemetry::{Observe, SpanEnd, Telemetry};
use crate::time::Instant;
use crate::version::{ProtocolVersion, Versions};
use alloc::string::String;
use alloc::vec::Vec;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use core::time::Duration;
use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The latest instant in a recording, in seconds: about a century. An engine could not tick through
/// more in a reasonable time.
const LAST_SECOND: u64 = u32::MAX as u64;

/// A value that is written as another one.
pub trait Value: Sized {
    /// What is written.
    type Form: Serialize + DeserializeOwned;

    /// Returns the form.
    fn form(&self) -> Self::Form;

    /// Reads the output of [`form`](Self::form).
    fn read(form: Self::Form) -> Result<Self, DecodeError>;
}

/// Writes a field.
pub fn serialize<T: Value, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
    value.form().serialize(serializer)
}

/// Reads a field.
pub fn deserialize<'de, T: Value, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    T::read(T::Form::deserialize(deserializer)?).map_err(D::Error::custom)
}

impl Value for Instant {
    type Form = Duration;

    fn form(&self) -> Duration {
        self.since_origin()
    }

    fn read(since: Duration) -> Result<Self, DecodeError> {
        if since.as_secs() > LAST_SECOND {
            return Err(DecodeError::new("too far ahead"));
        }
        Ok(Self::new(since))
    }
}

/// The form of an id.
#[derive(Serialize, Deserialize)]
pub enum IdForm {
    /// A number.
    Int(i64),
    /// A text.
    Text(String),
}

impl Value for Id {
    type Form = IdForm;

    fn form(&self) -> IdForm {
        match self {
            Self::Int(number) => IdForm::Int(*number),
            Self::Text(text) => IdForm::Text(text.clone()),
        }
    }

    fn read(form: IdForm) -> Result<Self, DecodeError> {
        Ok(match form {
            IdForm::Int(number) => Self::Int(number),
            IdForm::Text(text) => Self::Text(text),
        })
    }
}

/// The form of bytes: text if they are UTF-8.
#[derive(Serialize, Deserialize)]
pub enum BytesForm {
    /// UTF-8.
    Text(String),
    /// Anything else.
    Base64(String),
}

impl Value for Bytes {
    type Form = BytesForm;

    fn form(&self) -> BytesForm {
        match core::str::from_utf8(self) {
            Ok(text) => BytesForm::Text(text.into()),
            Err(_) => BytesForm::Base64(STANDARD.encode(self)),
        }
    }

    fn read(form: BytesForm) -> Result<Self, DecodeError> {
        match form {
            BytesForm::Text(text) => Ok(text.into()),
            BytesForm::Base64(text) => {
                STANDARD.decode(text).map(Into::into).map_err(|_| DecodeError::new("not base64"))
            }
        }
    }
}

impl Value for RawJson {
    type Form = String;

    fn form(&self) -> String {
        self.as_str().into()
    }

    fn read(text: String) -> Result<Self, DecodeError> {
        Self::parse(text).map_err(|defect| DecodeError::new(defect.kind.as_str()))
    }
}

impl Value for Object {
    type Form = String;

    fn form(&self) -> String {
        self.to_json().form()
    }

    fn read(text: String) -> Result<Self, DecodeError> {
        Self::read(&<RawJson as Value>::read(text)?)
    }
}

impl Value for ClientCapabilities {
    type Form = String;

    fn form(&self) -> String {
        self.write().form()
    }

    fn read(text: String) -> Result<Self, DecodeError> {
        <Object as Value>::read(text).map(|object| Self::read(&object))
    }
}

/// The only revision with every capability: the next one has no `tasks`.
pub(super) const EVERY_CAPABILITY: ProtocolVersion = ProtocolVersion::V2025_11_25;

impl Value for ServerCapabilities {
    type Form = String;

    fn form(&self) -> String {
        self.write(EVERY_CAPABILITY).form()
    }

    fn read(text: String) -> Result<Self, DecodeError> {
        <Object as Value>::read(text).map(Self::read)
    }
}

/// The newest revision can represent every result.
impl Value for SampleResult {
    type Form = String;

    fn form(&self) -> String {
        self.write(ProtocolVersion::V2026_07_28).form()
    }

    fn read(text: String) -> Result<Self, DecodeError> {
        Self::read(<Object as Value>::read(text)?)
    }
}

impl Value for Roots {
    type Form = String;

    fn form(&self) -> String {
        self.write().form()
    }

    fn read(text: String) -> Result<Self, DecodeError> {
        Self::read(<Object as Value>::read(text)?)
    }
}

impl<T: Value> Value for Option<T> {
    type Form = Option<T::Form>;

    fn form(&self) -> Self::Form {
        self.as_ref().map(Value::form)
    }

    fn read(form: Self::Form) -> Result<Self, DecodeError> {
        form.map(T::read).transpose()
    }
}

impl Value for Result<Object, EncodeError> {
    type Form = Result<String, EncodeError>;

    fn form(&self) -> Self::Form {
        self.as_ref().map(Value::form).map_err(Clone::clone)
    }

    fn read(form: Self::Form) -> Result<Self, DecodeError> {
        match form {
            Ok(text) => <Object as Value>::read(text).map(Ok),
            Err(e) => Ok(Err(e)),
        }
    }
}

/// A timeout that may be set to "no limit". The outer option is a list, since JSON has one `null`.
impl Value for Option<Option<Duration>> {
    type Form = Vec<Option<Duration>>;

    fn form(&self) -> Self::Form {
        self.iter().copied().collect()
    }

    fn read(mut form: Self::Form) -> Result<Self, DecodeError> {
        match (form.pop(), form.pop()) {
            (value, None) => Ok(value),
            _ => Err(DecodeError::new("more than one value")),
        }
    }
}

impl<K> Value for Key<K> {
    type Form = u64;

    fn form(&self) -> u64 {
        self.number()
    }

    fn read(number: u64) -> Result<Self, DecodeError> {
        Ok(Self::new(number))
    }
}

impl Value for Versions {
    type Form = Vec<ProtocolVersion>;

    fn form(&self) -> Self::Form {
        self.newest_first().collect()
    }

    fn read(form: Self::Form) -> Result<Self, DecodeError> {
        Ok(Self::new(form))
    }
}

impl Value for HttpTarget {
    type Form = (Origin, String, String);

    fn form(&self) -> Self::Form {
        (self.origin.clone(), self.path.clone(), self.original.clone())
    }

    fn read((origin, path, original): Self::Form) -> Result<Self, DecodeError> {
        Self::from_parts(origin, path, original).ok_or_else(|| DecodeError::new("HTTP is not compiled in"))
    }
}

impl Value for WsTarget {
    type Form = (Origin, String, String);

    fn form(&self) -> Self::Form {
        (self.origin.clone(), self.path.clone(), self.original.clone())
    }

    fn read((origin, path, original): Self::Form) -> Result<Self, DecodeError> {
        Self::from_parts(origin, path, original).ok_or_else(|| DecodeError::new("WebSocket is not compiled in"))
    }
}

/// Records only that there is a validator. Its findings are recorded as they happen.
impl Value for Validator {
    type Form = bool;

    fn form(&self) -> bool {
        true
    }

    fn read(_: bool) -> Result<Self, DecodeError> {
        Ok(Self::new(|_: &RawJson| Ok(Checker::new(|_: &RawJson| Ok(())))))
    }
}

/// Records only that there is a hook. Its refusals are recorded as they happen.
impl Value for MessageHook {
    type Form = bool;

    fn form(&self) -> bool {
        true
    }

    fn read(_: bool) -> Result<Self, DecodeError> {
        Ok(Self::new(|_| Ok(())))
    }
}

/// Records only that there is one. A recording calls nothing.
impl Value for Telemetry {
    type Form = bool;

    fn form(&self) -> bool {
        true
    }

    fn read(_: bool) -> Result<Self, DecodeError> {
        struct Nothing;
        impl Observe for Nothing {
            fn ended(&self, _: &SpanEnd<'_>) {}
        }
        Ok(Self::new(Nothing))
    }
}
