//! Log messages (`notifications/message`). The specification calls logging deprecated since
//! 2026-07-28: new programs write to standard error, or use OpenTelemetry.

use crate::rpc::{DecodeError, Object, RawJson};
use alloc::borrow::ToOwned;
use alloc::string::String;

pub use crate::call::LogLevel;

/// A log message of a server. Its text is input of the peer.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct LogMessage {
    /// The severity.
    pub level: LogLevel,
    /// The name of the part of the server that logs.
    pub logger: Option<String>,
    /// What is logged: a text, or any other JSON value.
    pub data: RawJson,
    /// All other members of the params, such as `_meta`, unchanged.
    pub other: Object,
}

impl LogMessage {
    /// Creates a message without a logger.
    pub fn new(level: LogLevel, data: impl Into<RawJson>) -> Self {
        Self { level, logger: None, data: data.into(), other: Object::new() }
    }

    /// Sets the name of the part of the server that logs.
    #[must_use]
    pub fn logger(mut self, name: &str) -> Self {
        self.logger = Some(name.to_owned());
        self
    }

    /// Decodes the params of a notification. Data that is missing counts as `null`.
    pub(crate) fn read(params: Object) -> Result<Self, DecodeError> {
        let level = params.get("level").and_then(|level| LogLevel::read(&level));
        Ok(Self {
            level: level.ok_or_else(|| DecodeError::new("`level` is not one of the eight levels"))?,
            logger: params.optional("logger").ok().flatten(),
            data: params.get("data").map_or_else(RawJson::null, |data| data.detached()),
            other: params.without(&["level", "logger", "data"]),
        })
    }

    /// Encodes the params.
    pub(crate) fn write(&self) -> Object {
        let params = Object::new().with("level", self.level.as_str()).with_opt("logger", self.logger.as_deref());
        params.with("data", &self.data).with_all(&self.other)
    }

    /// Returns the bytes of memory behind this value.
    pub(crate) fn heap_size(&self) -> usize {
        self.logger.as_ref().map_or(0, String::capacity) + self.data.as_bytes().len() + self.other.heap_size()
    }
}
