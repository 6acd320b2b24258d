//! Content blocks.

use super::lifecycle::meta;
use super::resources::{ResourceContents, is_base64};
use crate::rpc::{DecodeError, Glance, JsonValue, Object, RawJson, Write};
use crate::version::ProtocolVersion;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

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

/// For whom content or a resource is, and how important it is.
#[derive(Clone, PartialEq, Debug, Default)]
#[non_exhaustive]
pub struct Annotations {
    /// For whom it is. Empty: not specified.
    pub audience: Vec<Role>,
    /// How important it is, from 0 (optional) to 1 (required).
    pub priority: Option<f64>,
    /// When it was last changed, in ISO 8601: `2025-01-12T15:00:58Z`. From 2025-06-18 on.
    pub last_modified: Option<String>,
    /// Members that this type does not name, and an audience with an unknown role, unchanged.
    pub other: Object,
}

impl Annotations {
    const AUDIENCE: &str = "audience";
    const LAST_MODIFIED: &str = "lastModified";
    const MEMBER: &str = "annotations";

    /// Creates annotations for this audience.
    pub fn audience(roles: impl IntoIterator<Item = Role>) -> Self {
        Self { audience: roles.into_iter().collect(), ..Self::default() }
    }

    /// Sets how important it is, from 0 (optional) to 1 (required).
    #[must_use]
    pub const fn priority(mut self, priority: f64) -> Self {
        self.priority = Some(priority);
        self
    }

    /// Sets when it was last changed, in ISO 8601. Not sent before 2025-06-18, which introduced it.
    #[must_use]
    pub fn last_modified(mut self, time: impl Into<String>) -> Self {
        self.last_modified = Some(time.into());
        self
    }

    fn read(object: Object) -> Result<Self, DecodeError> {
        let names: Vec<String> = object.optional(Self::AUDIENCE)?.unwrap_or_default();
        // A role of a later revision does not make the whole content unreadable.
        let audience: Option<Vec<_>> = names.iter().map(|name| Role::parse(name)).collect();
        let named: &[&str] = match audience {
            Some(_) => &[Self::AUDIENCE, "priority", Self::LAST_MODIFIED],
            None => &["priority", Self::LAST_MODIFIED],
        };
        Ok(Self {
            audience: audience.unwrap_or_default(),
            priority: object.optional("priority")?,
            last_modified: object.optional(Self::LAST_MODIFIED)?,
            other: object.without(named),
        })
    }

    fn write(&self, version: ProtocolVersion) -> Object {
        let mut object = Object::new();
        if !self.audience.is_empty() {
            object.set(Self::AUDIENCE, self.audience.iter().map(|role| role.as_str()).collect::<Vec<_>>());
        }
        object = object.with_opt(
            "priority",
            self.priority.filter(|number| number.is_finite()).and_then(|number| RawJson::encode(&number).ok()),
        );
        if version.rules().titles {
            object = object.with_opt(Self::LAST_MODIFIED, self.last_modified.as_deref());
        }
        object.with_all(&self.other)
    }

    /// Decodes the member `annotations`, which may be absent.
    pub(super) fn member_of(object: &Object) -> Result<Self, DecodeError> {
        let read = |object| Self::read(object).map_err(|why| why.within(Self::MEMBER));
        object.optional_object(Self::MEMBER)?.map_or_else(|| Ok(Self::default()), read)
    }

    /// Adds the member `annotations`, if there are any.
    pub(super) fn add_to(&self, object: &mut Object, version: ProtocolVersion) {
        let annotations = self.write(version);
        if !annotations.is_empty() {
            object.set(Self::MEMBER, annotations);
        }
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
    /// A block of an unknown type, or one that cannot be decoded, unchanged. It may be any JSON
    /// value: the result of a call that has run is not lost for one block.
    Unknown(RawJson),
}

/// How most programs write a block of text, up to the text.
const ONLY_TEXT: &str = r#"{"type":"text","text":"#;

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

    /// Creates an image of these bytes, which it encodes.
    pub fn image_of(bytes: impl AsRef<[u8]>, mime_type: impl Into<String>) -> Self {
        Self::image(STANDARD.encode(bytes), mime_type)
    }

    /// Creates audio of these bytes, which it encodes.
    pub fn audio_of(bytes: impl AsRef<[u8]>, mime_type: impl Into<String>) -> Self {
        Self::audio(STANDARD.encode(bytes), mime_type)
    }

    /// Creates an embedded resource.
    pub const fn resource(contents: ResourceContents) -> Self {
        Self::Resource { resource: contents, other: Object::new() }
    }

    /// Creates a link to a resource.
    pub fn link(uri: impl Into<String>, name: impl Into<String>) -> Self {
        Self::ResourceLink { uri: uri.into(), name: name.into(), other: Object::new() }
    }

    /// Sets for whom it is, and how important it is.
    #[must_use]
    pub fn annotate(mut self, annotations: &Annotations) -> Self {
        self.edit(|other| annotations.add_to(other, ProtocolVersion::V2026_07_28));
        self
    }

    /// Returns for whom it is, and how important it is.
    ///
    /// # Errors
    /// [`DecodeError`] if its annotations have another shape.
    pub fn annotations(&self) -> Result<Annotations, DecodeError> {
        match self {
            Self::Text { other, .. }
            | Self::Image { other, .. }
            | Self::Audio { other, .. }
            | Self::Resource { other, .. }
            | Self::ResourceLink { other, .. } => Annotations::member_of(other),
            Self::Unknown(json) => Annotations::member_of(&Object::read(json).unwrap_or_default()),
        }
    }

    /// Sets a member of its `_meta`. Not sent before 2025-06-18, which introduced it.
    #[must_use]
    pub fn meta(mut self, key: &str, value: impl JsonValue) -> Self {
        self.edit(|other| meta::set_in(other, key, value));
        self
    }

    /// Changes the members that the variant does not name. An unknown block that is not an object
    /// has none.
    fn edit(&mut self, change: impl FnOnce(&mut Object)) {
        match self {
            Self::Text { other, .. }
            | Self::Image { other, .. }
            | Self::Audio { other, .. }
            | Self::Resource { other, .. }
            | Self::ResourceLink { other, .. } => change(other),
            Self::Unknown(json) => {
                if let Ok(mut object) = Object::read(json) {
                    change(&mut object);
                    *json = object.into();
                }
            }
        }
    }

    /// Returns the text of a block of text.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text { text, .. } => Some(text),
            _ => None,
        }
    }

    /// Checks what a prompt may contain (2024-11-05 prompts, data types): an image and audio have
    /// base64 data and a media type, and an embedded resource has a media type, and base64 data if
    /// it is binary.
    pub(crate) fn check(&self) -> Result<(), DecodeError> {
        let (data, mime_type) = match self {
            Self::Image { data, mime_type, .. } | Self::Audio { data, mime_type, .. } => (data.as_str(), &**mime_type),
            Self::Resource { resource, .. } => {
                resource.check()?;
                ("", resource.mime_type().unwrap_or_default())
            }
            Self::Text { .. } | Self::ResourceLink { .. } | Self::Unknown(_) => return Ok(()),
        };
        if !is_base64(data) {
            return Err(DecodeError::new("`data` is not base64"));
        }
        let is_token = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
        match mime_type.split_once('/') {
            Some((kind, format)) if is_token(kind) && is_token(format.split(';').next().unwrap_or_default().trim()) => {
                Ok(())
            }
            _ => Err(DecodeError::new("`mimeType` is not a media type")),
        }
    }

    /// Decodes a block.
    ///
    /// # Errors
    /// [`DecodeError`] if a required member of its type is missing. An unknown type is not an
    /// error. In a result, a block with an error is [`Unknown`](Self::Unknown) instead.
    pub fn read(json: &RawJson) -> Result<Self, DecodeError> {
        if let Some(text) = json.last_string(ONLY_TEXT).and_then(|text| serde_json::from_slice(text).ok()) {
            return Ok(Self::Text { text, other: Object::new() });
        }
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
                resource: ResourceContents::read(object.object("resource")?).map_err(|why| why.within("resource"))?,
                other: object.without(&["type", "resource"]),
            },
            "resource_link" => Self::ResourceLink {
                uri: object.required("uri")?,
                name: object.required("name")?,
                other: object.without(&["type", "uri", "name"]),
            },
            _ => return Ok(Self::Unknown(json.clone())),
        })
    }

    /// Decodes a block of a peer. One that cannot be decoded stays as it is.
    pub(super) fn read_any(json: &RawJson) -> Self {
        Self::read(json).unwrap_or_else(|_| Self::Unknown(json.clone()))
    }

    /// Returns why a block cannot be decoded. Unlike [`read`](Self::read), this copies no text.
    pub(super) fn fault(json: &RawJson) -> Option<DecodeError> {
        if json.last_string(ONLY_TEXT).is_some() {
            return None;
        }
        let block = Glance::at(json);
        let fits = match block.str("type").as_deref() {
            Some("text") => block.is_text("text"),
            Some("image" | "audio") => block.is_text("data") && block.is_text("mimeType"),
            Some("resource") => {
                block.get("resource").is_some_and(|contents| ResourceContents::fault(&contents).is_none())
            }
            Some("resource_link") => block.is_text("uri") && block.is_text("name"),
            Some(_) => true,
            None => false,
        };
        if fits { None } else { Self::read(json).err() }
    }

    /// Returns the block in a form that this revision can represent: audio and links become text
    /// where it has none, `_meta`, `lastModified` and the icons of a link are removed.
    #[must_use]
    pub fn lower(self, version: ProtocolVersion) -> Self {
        let rules = version.rules();
        let mut lowered = match self {
            Self::Audio { mime_type, .. } if !rules.audio => Self::text(format!("[audio: {mime_type}]")),
            Self::ResourceLink { uri, name, .. } if !rules.resource_links => Self::text(format!("[{name}: {uri}]")),
            Self::Resource { resource, other } => Self::Resource { resource: resource.lower(version), other },
            other => other,
        };
        let is_link = matches!(lowered, Self::ResourceLink { .. });
        // A block that loses nothing is not written again.
        if !rules.titles || is_link && !rules.icons {
            lowered.edit(|other| lower_members(other, is_link, version));
        }
        lowered
    }

    /// Encodes the block for the wire. It is an object, unless an [unknown](Self::Unknown) block is
    /// not.
    pub fn write(&self) -> RawJson {
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
            Self::Unknown(json) => return json.clone(),
        };
        object.with_all(other).into()
    }
}

impl From<&str> for Content {
    /// A block of text.
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl From<String> for Content {
    /// A block of text.
    fn from(text: String) -> Self {
        Self::text(text)
    }
}

impl From<ResourceContents> for Content {
    /// An embedded resource.
    fn from(contents: ResourceContents) -> Self {
        Self::resource(contents)
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
            Self::Unknown(json) => json.json_len(),
        }
    }
}

/// Removes the members that a revision does not have.
fn lower_members(other: &mut Object, is_link: bool, version: ProtocolVersion) {
    meta::lower(other, version);
    if is_link && !version.rules().icons {
        other.remove("icons");
    }
    if !version.rules().titles
        && let Ok(Some(mut annotations)) = other.optional_object(Annotations::MEMBER)
        && annotations.remove(Annotations::LAST_MODIFIED).is_some()
    {
        other.remove(Annotations::MEMBER);
        if !annotations.is_empty() {
            other.set(Annotations::MEMBER, annotations);
        }
    }
}

const TEXT: &[u8] = b"{\"type\":\"text\",\"text\":";

fn media(kind: &str, data: &str, mime_type: &str) -> Object {
    Object::new().with("type", kind).with("data", data).with("mimeType", mime_type)
}
