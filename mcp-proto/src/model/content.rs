//! Content blocks.

use crate::rpc::{DecodeError, Object, RawJson};
use crate::version::ProtocolVersion;
use alloc::format;
use alloc::string::String;

/// One block of content. `other` keeps the members that a variant does not name (`annotations`,
/// `_meta`, …).
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum Content {
    /// Text.
    Text {
        /// The text.
        text: String,
        /// Other members.
        other: Object,
    },
    /// An image.
    Image {
        /// Base64.
        data: String,
        /// Its media type.
        mime_type: String,
        /// Other members.
        other: Object,
    },
    /// Audio, from 2025-03-26 on. For an earlier revision it becomes a line of text that names it.
    Audio {
        /// Base64.
        data: String,
        /// Its media type.
        mime_type: String,
        /// Other members.
        other: Object,
    },
    /// An embedded resource.
    Resource {
        /// The `resource` member, with the contents.
        resource: Object,
        /// Other members.
        other: Object,
    },
    /// A link to a resource, from 2025-06-18 on. For an earlier revision it becomes a line of text
    /// with the URI.
    ResourceLink {
        /// Its URI.
        uri: String,
        /// Its name.
        name: String,
        /// Other members.
        other: Object,
    },
    /// A block of an unknown type, unchanged.
    Unknown(Object),
}

impl Content {
    /// Creates a block of text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into(), other: Object::new() }
    }

    /// Creates an image from base64 data.
    pub fn image(data: impl Into<String>, mime_type: impl Into<String>) -> Self {
        Self::Image { data: data.into(), mime_type: mime_type.into(), other: Object::new() }
    }

    /// Creates audio from base64 data.
    pub fn audio(data: impl Into<String>, mime_type: impl Into<String>) -> Self {
        Self::Audio { data: data.into(), mime_type: mime_type.into(), other: Object::new() }
    }

    /// Returns the text of a block of text.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text { text, .. } => Some(text),
            _ => None,
        }
    }

    /// Decodes a block.
    ///
    /// # Errors
    /// [`DecodeError`] if a required member of its type is missing. An unknown type is not an
    /// error.
    pub fn read(json: &RawJson) -> Result<Self, DecodeError> {
        let mut object = Object::read(json)?;
        let kind: String = object.required("type")?;
        Ok(match kind.as_str() {
            "text" => {
                let text = object.required("text")?;
                let _ = (object.remove("type"), object.remove("text"));
                Self::Text { text, other: object }
            }
            "image" | "audio" => {
                let (data, mime_type) = (object.required("data")?, object.required("mimeType")?);
                let _ = (object.remove("type"), object.remove("data"), object.remove("mimeType"));
                if kind == "image" {
                    Self::Image { data, mime_type, other: object }
                } else {
                    Self::Audio { data, mime_type, other: object }
                }
            }
            "resource" => {
                let resource = object.object("resource")?;
                let _ = (object.remove("type"), object.remove("resource"));
                Self::Resource { resource, other: object }
            }
            "resource_link" => {
                let (uri, name) = (object.required("uri")?, object.required("name")?);
                let _ = (object.remove("type"), object.remove("uri"), object.remove("name"));
                Self::ResourceLink { uri, name, other: object }
            }
            _ => Self::Unknown(object),
        })
    }

    /// Returns the block in a form that this revision can represent.
    #[must_use]
    pub fn lower(&self, version: ProtocolVersion) -> Self {
        let rules = version.rules();
        match self {
            Self::Audio { mime_type, .. } if !rules.audio => Self::text(format!("[audio: {mime_type}]")),
            Self::ResourceLink { uri, name, .. } if !rules.resource_links => Self::text(format!("[{name}: {uri}]")),
            other => other.clone(),
        }
    }

    /// Encodes the block for the wire.
    pub fn write(&self) -> Object {
        let (object, other) = match self {
            Self::Text { text, other } => (Object::new().with("type", "text").with("text", text.as_str()), other),
            Self::Image { data, mime_type, other } => (media("image", data, mime_type), other),
            Self::Audio { data, mime_type, other } => (media("audio", data, mime_type), other),
            Self::Resource { resource, other } => {
                (Object::new().with("type", "resource").with("resource", resource), other)
            }
            Self::ResourceLink { uri, name, other } => {
                let link = Object::new().with("type", "resource_link");
                (link.with("uri", uri.as_str()).with("name", name.as_str()), other)
            }
            Self::Unknown(object) => return object.clone(),
        };
        object.with_all(other)
    }
}

fn media(kind: &str, data: &str, mime_type: &str) -> Object {
    Object::new().with("type", kind).with("data", data).with("mimeType", mime_type)
}
