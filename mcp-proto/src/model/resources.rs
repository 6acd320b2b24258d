//! Resources: `resources/list`, `resources/templates/list` and `resources/read`.

mod contents;

pub use contents::ResourceContents;
pub(super) use contents::is_base64;

use super::content::Annotations;
use super::described::described;
use super::icon::Icon;
use super::lifecycle::{CacheHints, meta};
use super::page::{List, ListElement};
use super::skipped::{SkippedList, read_list};
use super::uri_template::{UriTemplate, is_uri};
use crate::auth::Scopes;
use crate::call::{Call, Method, RawResult};
use crate::peer_text::Visible;
use crate::rpc::{DecodeError, JsonValue, Object, RawJson};
use crate::version::{Era, ProtocolVersion};
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

/// Creates a call of `resources/list`, which returns one page. [`Pages`](crate::Pages) fetches all
/// of them.
pub fn list() -> Call<List<Resource>> {
    List::call()
}

/// Creates a call of `resources/templates/list`, which returns one page. [`Pages`](crate::Pages)
/// fetches all of them.
pub fn templates() -> Call<List<ResourceTemplate>> {
    List::call()
}

/// Creates a call that reads the resource at this URI. A server responds to one that it does not
/// have with an error: see [`CallError::is_not_found`](crate::CallError::is_not_found).
pub fn read(uri: &str) -> Call<Read> {
    Call::new("resources/read", Ok(Object::new().with("uri", uri))).repeatable()
}

/// The method `resources/read`.
#[derive(Clone, Copy, Debug)]
pub struct Read;

impl Method for Read {
    type Output = ReadResult;

    fn decode(result: RawResult) -> Result<ReadResult, DecodeError> {
        ReadResult::from_object(Object::from_json(result.json)?)
    }
}

/// A resource, as a server describes it. Its members come from the server: show them with
/// [`escaped`](crate::error::escaped).
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct Resource {
    /// Its URI.
    pub uri: String,
    /// Its name, for programs.
    pub name: String,
    /// Its name, for people.
    pub title: Option<String>,
    /// What it contains, for a language model.
    pub description: Option<String>,
    /// Its media type.
    pub mime_type: Option<String>,
    /// Its size before base64, in bytes.
    pub size: Option<u64>,
    /// Its icons.
    pub icons: Vec<Icon>,
    /// For whom it is, and how important it is.
    pub annotations: Annotations,
    /// Its `_meta`.
    pub meta: Object,
    /// The scopes that a client needs to use it. Never sent, and empty if a server describes it.
    pub scopes: Scopes,
    /// Whether `resources/list` leaves it out. Never sent, and false if a server describes it.
    pub hidden: bool,
    /// Members that this type does not name, unchanged.
    pub other: Object,
}

/// A family of resources, as a server describes it.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct ResourceTemplate {
    /// The URIs of its resources, with variables (RFC 6570).
    pub uri_template: String,
    /// Its name, for programs.
    pub name: String,
    /// Its name, for people.
    pub title: Option<String>,
    /// What its resources contain, for a language model.
    pub description: Option<String>,
    /// The media type of its resources, if all have the same.
    pub mime_type: Option<String>,
    /// Its icons.
    pub icons: Vec<Icon>,
    /// For whom it is, and how important it is.
    pub annotations: Annotations,
    /// Its `_meta`.
    pub meta: Object,
    /// The scopes that a client needs to use it. Never sent, and empty if a server describes it.
    pub scopes: Scopes,
    /// Members that this type does not name, unchanged.
    pub other: Object,
}

impl Resource {
    const KEYS: [&str; 9] =
        ["uri", "name", "title", "description", "mimeType", "size", "icons", "annotations", meta::META];

    /// Creates a resource with this URI, which is also its name.
    pub fn new(uri: impl Into<String>) -> Self {
        let uri = uri.into();
        Self {
            name: uri.clone(),
            uri,
            title: None,
            description: None,
            mime_type: None,
            size: None,
            icons: Vec::new(),
            annotations: Annotations::default(),
            meta: Object::new(),
            scopes: Scopes::new(),
            hidden: false,
            other: Object::new(),
        }
    }

    /// Leaves it out of `resources/list`, and of the notifications that the list has changed.
    /// Clients that know its URI can read it.
    #[must_use]
    pub const fn hidden(mut self) -> Self {
        self.hidden = true;
        self
    }

    /// Sets its size before base64, in bytes.
    #[must_use]
    pub const fn size(mut self, bytes: u64) -> Self {
        self.size = Some(bytes);
        self
    }

    /// Checks that a server may offer it: its URI is one of RFC 3986, with a scheme (2025-06-18
    /// resources, custom URI schemes). Use this for a resource that you did not define yourself,
    /// before you add it to a [`Router`](crate::Router).
    ///
    /// # Errors
    /// [`BadResource`] for the URI.
    pub fn check(&self) -> Result<(), BadResource> {
        match is_uri(&self.uri) {
            true => Ok(()),
            false => Err(BadResource { uri: self.uri.clone(), why: "it is not a URI (RFC 3986)".into() }),
        }
    }
}

impl ListElement for Resource {
    const METHOD: &'static str = "resources/list";
    const MEMBER: &'static str = "resources";

    fn key(&self) -> &str {
        &self.uri
    }

    fn read(json: &RawJson) -> Result<Self, DecodeError> {
        let object = Object::read(json)?;
        Ok(Self {
            uri: object.required("uri")?,
            name: object.required("name")?,
            title: object.optional("title")?,
            description: object.optional("description")?,
            mime_type: object.optional("mimeType")?,
            size: object.optional("size")?,
            icons: Icon::read_all(&object)?,
            annotations: Annotations::member_of(&object)?,
            meta: object.optional_object(meta::META)?.unwrap_or_default(),
            scopes: Scopes::new(),
            hidden: false,
            other: object.without(&Self::KEYS),
        })
    }

    fn write(&self, version: ProtocolVersion) -> Object {
        let rules = version.rules();
        let object = self.with_texts(Object::new().with("uri", self.uri.as_str()), version);
        let mut object = object.with_opt("mimeType", self.mime_type.as_deref()).with_opt("size", self.size);
        Icon::add_all(&self.icons, &rules, &mut object);
        self.annotations.add_to(&mut object, version);
        meta::add(&self.meta, version, &mut object);
        object.with_all(&self.other)
    }
}

impl ResourceTemplate {
    const KEYS: [&str; 8] =
        ["uriTemplate", "name", "title", "description", "mimeType", "icons", "annotations", meta::META];

    /// Creates a template of these URIs, which are also its name.
    pub fn new(uri_template: impl Into<String>) -> Self {
        let uri_template = uri_template.into();
        Self {
            name: uri_template.clone(),
            uri_template,
            title: None,
            description: None,
            mime_type: None,
            icons: Vec::new(),
            annotations: Annotations::default(),
            meta: Object::new(),
            scopes: Scopes::new(),
            other: Object::new(),
        }
    }

    /// Checks that a [`Router`](crate::Router) can match URIs with it. Its variables are `{name}`,
    /// a text without `/`, `?` and `#`, and `{+name}`, any text.
    /// No name occurs twice, and between two variables there is text. With values for them it is a
    /// URI of RFC 3986. A variable ends where the text after it first occurs: `{a}-{b}` splits
    /// `1-2-3` into `1` and `2-3`.
    ///
    /// # Errors
    /// [`BadResource`] with the violated rule.
    pub fn check(&self) -> Result<(), BadResource> {
        self.parsed().map(drop)
    }

    pub(crate) fn parsed(&self) -> Result<UriTemplate, BadResource> {
        UriTemplate::parse(&self.uri_template).map_err(|why| BadResource { uri: self.uri_template.clone(), why })
    }
}

impl ListElement for ResourceTemplate {
    const METHOD: &'static str = "resources/templates/list";
    const MEMBER: &'static str = "resourceTemplates";

    fn key(&self) -> &str {
        &self.uri_template
    }

    fn read(json: &RawJson) -> Result<Self, DecodeError> {
        let object = Object::read(json)?;
        Ok(Self {
            uri_template: object.required("uriTemplate")?,
            name: object.required("name")?,
            title: object.optional("title")?,
            description: object.optional("description")?,
            mime_type: object.optional("mimeType")?,
            icons: Icon::read_all(&object)?,
            annotations: Annotations::member_of(&object)?,
            meta: object.optional_object(meta::META)?.unwrap_or_default(),
            scopes: Scopes::new(),
            other: object.without(&Self::KEYS),
        })
    }

    fn write(&self, version: ProtocolVersion) -> Object {
        let rules = version.rules();
        let object = self.with_texts(Object::new().with("uriTemplate", self.uri_template.as_str()), version);
        let mut object = object.with_opt("mimeType", self.mime_type.as_deref());
        Icon::add_all(&self.icons, &rules, &mut object);
        self.annotations.add_to(&mut object, version);
        meta::add(&self.meta, version, &mut object);
        object.with_all(&self.other)
    }
}

/// A resource or a resource template that no server may offer.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct BadResource {
    /// Its URI, or its URI template.
    pub uri: String,
    /// The violated rule, for people.
    pub why: String,
}

impl fmt::Display for BadResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the resource `{}` cannot be offered: {}", Visible(&self.uri), Visible(&self.why))
    }
}

impl core::error::Error for BadResource {}

described!(Resource, ResourceTemplate);
described!(located Resource, ResourceTemplate);

/// The result of `resources/read`.
#[derive(Clone, PartialEq, Debug, Default)]
#[non_exhaustive]
pub struct ReadResult {
    /// The contents: usually those of the resource, and several if the URI names a collection.
    pub contents: Vec<ResourceContents>,
    /// The contents that could not be decoded, which are not among the others. If none can be
    /// decoded, the call fails.
    pub skipped: SkippedList,
    /// How long the result may be cached. `None`: the server did not specify it. A server then adds
    /// [`ServerConfig::read_cache`](crate::ServerConfig::read_cache) on 2026-07-28, and nothing
    /// before.
    pub cache: Option<CacheHints>,
    /// Other members, such as `_meta`, unchanged.
    pub other: Object,
}

impl ReadResult {
    /// Creates a result with these contents.
    pub fn new(contents: impl IntoIterator<Item = ResourceContents>) -> Self {
        Self { contents: contents.into_iter().collect(), ..Self::default() }
    }

    /// Sets how long the result may be cached. Sent on 2026-07-28.
    #[must_use]
    pub fn cache(mut self, hints: CacheHints) -> Self {
        self.cache = Some(hints);
        self
    }

    /// Sets a member of its `_meta`.
    #[must_use]
    pub fn meta(mut self, key: &str, value: impl JsonValue) -> Self {
        meta::set_in(&mut self.other, key, value);
        self
    }

    /// Returns the text of the first contents that are text.
    pub fn first_text(&self) -> Option<&str> {
        self.contents.iter().find_map(ResourceContents::as_text)
    }

    fn from_object(object: Object) -> Result<Self, DecodeError> {
        let all = object.array("contents")?;
        let (contents, skipped) =
            read_list(all.iter().cloned(), |contents| ResourceContents::read(Object::read(contents)?));
        if let (true, Some(why)) = (contents.is_empty(), all.first().and_then(ResourceContents::fault)) {
            return Err(why);
        }
        let has_hints = object.contains("ttlMs") || object.contains("cacheScope");
        Ok(Self {
            contents,
            skipped,
            cache: has_hints.then(|| CacheHints::read(&object)),
            other: object.without(&["contents", "ttlMs", "cacheScope", "resultType"]),
        })
    }

    /// Encodes the result, without the members that the revision does not have.
    pub fn write(&self, version: ProtocolVersion) -> Object {
        let contents: Vec<_> = self.contents.iter().cloned().map(|contents| contents.lower(version)).collect();
        let mut object = Object::new().with("contents", contents);
        if let (Some(hints), Era::Modern) = (&self.cache, version.era()) {
            hints.add_to(&mut object);
        }
        object.with_all(&self.other)
    }
}

#[cfg(test)]
mod tests;
