//! The contents of resources.

use crate::model::lifecycle::meta;
use crate::rpc::{DecodeError, Glance, JsonKind, JsonValue, Object, RawJson, Write};
use crate::version::ProtocolVersion;
use alloc::string::String;
use alloc::vec::Vec;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// The contents of a resource, or of a part of one: text or binary data.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum ResourceContents {
    /// Text.
    Text {
        /// The URI of the resource.
        uri: String,
        /// The text.
        text: String,
        /// Its media type.
        mime_type: Option<String>,
        /// Other members, such as `_meta`.
        other: Object,
    },
    /// Binary data.
    Blob {
        /// The URI of the resource.
        uri: String,
        /// Base64.
        blob: String,
        /// Its media type.
        mime_type: Option<String>,
        /// Other members, such as `_meta`.
        other: Object,
    },
}

impl ResourceContents {
    /// Creates contents of text.
    pub fn text(uri: impl Into<String>, text: impl Into<String>) -> Self {
        Self::Text { uri: uri.into(), text: text.into(), mime_type: None, other: Object::new() }
    }

    /// Creates binary contents from base64 data.
    pub fn blob(uri: impl Into<String>, base64: impl Into<String>) -> Self {
        Self::Blob { uri: uri.into(), blob: base64.into(), mime_type: None, other: Object::new() }
    }

    /// Creates binary contents of these bytes, which it encodes.
    pub fn bytes(uri: impl Into<String>, bytes: impl AsRef<[u8]>) -> Self {
        Self::blob(uri, STANDARD.encode(bytes))
    }

    /// Sets the media type.
    #[must_use]
    pub fn mime(mut self, name: impl Into<String>) -> Self {
        match &mut self {
            Self::Text { mime_type, .. } | Self::Blob { mime_type, .. } => *mime_type = Some(name.into()),
        }
        self
    }

    /// Returns the URI.
    pub fn uri(&self) -> &str {
        match self {
            Self::Text { uri, .. } | Self::Blob { uri, .. } => uri,
        }
    }

    /// Returns the media type.
    pub fn mime_type(&self) -> Option<&str> {
        match self {
            Self::Text { mime_type, .. } | Self::Blob { mime_type, .. } => mime_type.as_deref(),
        }
    }

    /// Returns the text. `None` for binary data.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text { text, .. } => Some(text),
            Self::Blob { .. } => None,
        }
    }

    /// Returns the bytes of the text, or the decoded binary data.
    ///
    /// # Errors
    /// [`DecodeError`] if the binary data is not base64.
    pub fn to_bytes(&self) -> Result<Vec<u8>, DecodeError> {
        match self {
            Self::Text { text, .. } => Ok(text.as_bytes().to_vec()),
            Self::Blob { blob, .. } => STANDARD.decode(blob).map_err(|_| DecodeError::new("`blob` is not base64")),
        }
    }

    /// Sets a member of its `_meta`. Not sent before 2025-06-18, which introduced it.
    #[must_use]
    pub fn meta(mut self, key: &str, value: impl JsonValue) -> Self {
        let (Self::Text { other, .. } | Self::Blob { other, .. }) = &mut self;
        meta::set_in(other, key, value);
        self
    }

    /// Checks that binary data is base64, which the protocol requires.
    pub(crate) fn check(&self) -> Result<(), DecodeError> {
        match self {
            Self::Blob { blob, .. } if !is_base64(blob) => Err(DecodeError::new("`blob` is not base64")),
            _ => Ok(()),
        }
    }

    /// Returns the contents in a form that this revision can represent: without `_meta` before
    /// 2025-06-18.
    #[must_use]
    pub fn lower(mut self, version: ProtocolVersion) -> Self {
        let (Self::Text { other, .. } | Self::Blob { other, .. }) = &mut self;
        meta::lower(other, version);
        self
    }

    /// Decodes contents. An object with both `text` and `blob` counts as text.
    ///
    /// # Errors
    /// [`DecodeError`] if it has no URI, or neither `text` nor `blob`.
    pub fn read(object: Object) -> Result<Self, DecodeError> {
        let (uri, mime_type) = (object.required("uri")?, object.optional("mimeType")?);
        if let Some(text) = object.optional("text")? {
            return Ok(Self::Text { uri, text, mime_type, other: object.without(&["uri", "text", "mimeType"]) });
        }
        let blob = object.optional("blob")?.ok_or_else(|| DecodeError::new("neither `text` nor `blob` is present"))?;
        Ok(Self::Blob { uri, blob, mime_type, other: object.without(&["uri", "blob", "mimeType"]) })
    }

    /// Returns why contents cannot be decoded. Unlike [`read`](Self::read), this copies no text.
    pub(in crate::model) fn fault(json: &RawJson) -> Option<DecodeError> {
        let contents = Glance::at(json);
        let has_data = match contents.kind("text") {
            Some(JsonKind::String) => true,
            Some(JsonKind::Null) | None => contents.is_text("blob"),
            Some(_) => false,
        };
        let fits = contents.is_text("uri") && contents.may_be_text("mimeType") && has_data;
        if fits { None } else { Object::read(json).and_then(Self::read).err() }
    }

    /// Encodes the contents.
    pub fn write(&self) -> Object {
        let (uri, key, data, mime_type, other) = match self {
            Self::Text { uri, text, mime_type, other } => (uri, "text", text, mime_type, other),
            Self::Blob { uri, blob, mime_type, other } => (uri, "blob", blob, mime_type, other),
        };
        let object = Object::new().with("uri", uri.as_str()).with_opt("mimeType", mime_type.as_deref());
        object.with(key, data.as_str()).with_all(other)
    }
}

impl Write for ResourceContents {
    fn write_json(&self, out: &mut Vec<u8>) {
        self.write().write_json(out);
    }

    fn json_len(&self) -> usize {
        match self {
            Self::Text { text, .. } => text.json_len(),
            Self::Blob { blob, .. } => blob.json_len(),
        }
    }
}

/// Returns whether this is base64 with padding, in the standard alphabet (RFC 4648 section 4).
pub(in crate::model) fn is_base64(text: &str) -> bool {
    let data = text.trim_end_matches('=');
    let is_data = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/';
    text.len().is_multiple_of(4) && text.len() - data.len() <= 2 && data.bytes().all(is_data)
}
