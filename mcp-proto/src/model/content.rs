//! Content blocks.

use super::resources::ResourceContents;
use crate::rpc::{DecodeError, Object, RawJson, Write};
use crate::version::ProtocolVersion;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// The author of a message.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Role {
    /// The user.
    User,
    /// The language model.
    Assistant,
}

impl Role {
    /// Returns the name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
        }
    }

    /// Returns the role of this name. `None` if there is none.
    pub fn parse(name: &str) -> Option<Self> {
        [Self::User, Self::Assistant].into_iter().find(|role| role.as_str() == name)
    }

    /// Decodes the member `role`.
    pub(crate) fn read(object: &Object) -> Result<Self, DecodeError> {
        Self::parse(&object.required_str("role")?).ok_or_else(|| DecodeError::new("`role`: unknown role"))
    }
}

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
        /// The contents.
        resource: ResourceContents,
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

    /// Creates an embedded resource.
    pub const fn resource(contents: ResourceContents) -> Self {
        Self::Resource { resource: contents, other: Object::new() }
    }

    /// Creates a link to a resource.
    pub fn link(uri: impl Into<String>, name: impl Into<String>) -> Self {
        Self::ResourceLink { uri: uri.into(), name: name.into(), other: Object::new() }
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
        let object = Object::read(json)?;
        Ok(match &*object.required_str("type")? {
            "text" => Self::Text { text: object.required("text")?, other: object.without(&["type", "text"]) },
            "image" => Self::Image {
                data: object.required("data")?,
                mime_type: object.required("mimeType")?,
                other: object.without(&["type", "data", "mimeType"]),
            },
            "audio" => Self::Audio {
                data: object.required("data")?,
                mime_type: object.required("mimeType")?,
                other: object.without(&["type", "data", "mimeType"]),
            },
            "resource" => Self::Resource {
                resource: ResourceContents::read(object.object("resource")?)?,
                other: object.without(&["type", "resource"]),
            },
            "resource_link" => Self::ResourceLink {
                uri: object.required("uri")?,
                name: object.required("name")?,
                other: object.without(&["type", "uri", "name"]),
            },
            _ => return Ok(Self::Unknown(object)),
        })
    }

    /// Returns the block in a form that this revision can represent.
    #[must_use]
    pub fn lower(self, version: ProtocolVersion) -> Self {
        let rules = version.rules();
        match self {
            Self::Audio { mime_type, .. } if !rules.audio => Self::text(format!("[audio: {mime_type}]")),
            Self::ResourceLink { uri, name, .. } if !rules.resource_links => Self::text(format!("[{name}: {uri}]")),
            other => other,
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

impl Write for Content {
    fn write_json(&self, out: &mut Vec<u8>) {
        match self {
            // The most frequent block, without an object for it.
            Self::Text { text, other } if other.is_empty() => {
                out.extend_from_slice(TEXT);
                text.write_json(out);
                out.push(b'}');
            }
            _ => self.write().write_json(out),
        }
    }

    fn json_len(&self) -> usize {
        match self {
            Self::Text { text, .. } => TEXT.len() + text.json_len() + 1,
            Self::Image { data, .. } | Self::Audio { data, .. } => data.json_len(),
            Self::Resource { resource, .. } => resource.json_len(),
            Self::ResourceLink { uri, .. } => uri.json_len(),
            Self::Unknown(object) => object.json_len(),
        }
    }
}

const TEXT: &[u8] = b"{\"type\":\"text\",\"text\":";

fn media(kind: &str, data: &str, mime_type: &str) -> Object {
    Object::new().with("type", kind).with("data", data).with("mimeType", mime_type)
}
