//! The identity of both sides: `initialize` and `server/discover`.

use super::capabilities::ServerCapabilities;
use super::icon::Icon;
use crate::error::excerpt;
use crate::rpc::{DecodeError, JsonKind, Object, RawJson};
use crate::version::ProtocolVersion;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

/// The name and version of a program (`Implementation`), and what a user interface shows of it.
/// That of a peer is untrusted: neither compare it with that of another program, nor open its
/// website unasked.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Implementation {
    /// Its name, for programs.
    pub name: String,
    /// Its version. That of a peer that reports none is empty, and a number is its text.
    pub version: String,
    /// Its name, for people. Not sent before 2025-06-18, which introduced it.
    pub title: Option<String>,
    /// Most programs have nothing of this, and a server keeps those of all its clients.
    profile: Option<Box<Profile>>,
    /// Members that this type does not name, unchanged. Also a description, website or icons of a
    /// peer that are malformed, since a connection does not depend on them.
    #[cfg_attr(feature = "record", serde(with = "crate::record::value"))]
    pub other: Object,
}

/// What a user interface shows of a program beside its name.
#[derive(Clone, PartialEq, Debug, Default)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
struct Profile {
    description: Option<String>,
    website_url: Option<String>,
    icons: Vec<Icon>,
}

impl Implementation {
    /// Creates a description of a program.
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        Self { name: name.into(), version: version.into(), title: None, profile: None, other: Object::new() }
    }

    /// Sets its name, for people.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// Sets what it is for. Not sent before 2025-11-25, which introduced it.
    #[must_use]
    pub fn describe(mut self, description: impl Into<String>) -> Self {
        self.profile.get_or_insert_default().description = Some(description.into());
        self
    }

    /// Sets the URL of its website. Not sent before 2025-11-25, which introduced it.
    #[must_use]
    pub fn website(mut self, url: impl Into<String>) -> Self {
        self.profile.get_or_insert_default().website_url = Some(url.into());
        self
    }

    /// Adds an icon. Not sent before 2025-11-25, which introduced them.
    #[must_use]
    pub fn icon(mut self, icon: impl Into<Icon>) -> Self {
        self.profile.get_or_insert_default().icons.push(icon.into());
        self
    }

    /// Returns what it is for.
    pub fn description(&self) -> Option<&str> {
        self.profile.as_ref()?.description.as_deref()
    }

    /// Returns the URL of its website.
    pub fn website_url(&self) -> Option<&str> {
        self.profile.as_ref()?.website_url.as_deref()
    }

    /// Returns its icons.
    pub fn icons(&self) -> &[Icon] {
        self.profile.as_ref().map_or(&[], |profile| &profile.icons)
    }

    /// Returns the bytes of memory behind this value.
    pub(crate) fn heap_size(&self) -> usize {
        let Self { name, version, title, profile, other } = self;
        let text = |text: &Option<String>| text.as_ref().map_or(0, String::capacity);
        let profile = profile.as_ref().map_or(0, |profile| {
            let icons: usize = profile.icons.iter().map(Icon::heap_size).sum();
            let icons = icons + profile.icons.capacity() * size_of::<Icon>();
            size_of::<Profile>() + text(&profile.description) + text(&profile.website_url) + icons
        });
        name.capacity() + version.capacity() + text(title) + profile + other.heap_size()
    }

    pub(crate) fn read(object: Object) -> Result<Self, DecodeError> {
        let version = match object.kind("version") {
            // A connection does not depend on it, and there is nothing else that it could mean.
            Some(JsonKind::Null) | None => String::new(),
            Some(JsonKind::Number) => object.get("version").map(|number| number.as_str().into()).unwrap_or_default(),
            Some(_) => object.required("version")?,
        };
        let mut read = Self::new(object.required::<String>("name")?, version);
        read.title = object.optional("title")?;
        let (mut other, mut profile) = (object.without(&["name", "version", "title"]), Profile::default());
        if let Ok(description) = other.optional("description") {
            profile.description = description;
            other.remove("description");
        }
        if let Ok(url) = other.optional("websiteUrl") {
            profile.website_url = url;
            other.remove("websiteUrl");
        }
        if let Ok(icons) = Icon::read_all(&other) {
            profile.icons = icons;
            other.remove("icons");
        }
        read.profile = (profile != Profile::default()).then(|| Box::new(profile));
        Ok(Self { other, ..read })
    }

    pub(crate) fn write(&self, version: ProtocolVersion) -> Object {
        let rules = version.rules();
        let mut object = Object::new().with("name", self.name.as_str()).with("version", self.version.as_str());
        if rules.titles {
            object = object.with_opt("title", self.title.as_deref());
        }
        if rules.icons {
            object = object.with_opt("description", self.description()).with_opt("websiteUrl", self.website_url());
        }
        Icon::add_all(self.icons(), &rules, &mut object);
        object.with_all(&self.other)
    }
}

/// What a client knows about its server after negotiation.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct ServerInfo {
    /// The revision in use.
    pub version: ProtocolVersion,
    /// The name and version that the server reports. A modern server may omit them. For people: do
    /// not base decisions on them.
    pub implementation: Option<Implementation>,
    /// Its capabilities.
    pub capabilities: ServerCapabilities,
    /// Instructions for a language model.
    pub instructions: Option<String>,
}

/// Returns the first part of a handshake that deviates from the specification, and whose meaning is
/// certain: an implementation (under this name) without a version, or with a number, and
/// capabilities that are an empty array, or have a member that is one.
pub(crate) fn deviation(
    name: &str,
    implementation: Option<&RawJson>,
    capabilities: Option<&RawJson>,
) -> Option<String> {
    let version = implementation.and_then(|info| Object::read(info).ok()).map(|info| info.kind("version"));
    match version {
        Some(Some(JsonKind::Null) | None) => return Some(alloc::format!("`{name}` has no version")),
        Some(Some(JsonKind::Number)) => return Some(alloc::format!("the version in `{name}` is a number")),
        Some(Some(_)) | None => {}
    }
    let capabilities = capabilities?;
    if capabilities.is_empty_array() {
        return Some("`capabilities` is an array".into());
    }
    let members = Object::read(capabilities).ok()?;
    let (key, _) = members.iter().find(|(_, member)| member.is_empty_array())?;
    Some(alloc::format!("the capability `{}` is an array", excerpt(&key)))
}

/// The keys of `_meta` that the specification reserves.
pub(crate) mod meta {
    use crate::rpc::{JsonValue, Object};
    use crate::version::ProtocolVersion;

    pub(crate) const META: &str = "_meta";
    pub(crate) const PROGRESS_TOKEN: &str = "progressToken";
    pub(crate) const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
    pub(crate) const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
    pub(crate) const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
    pub(crate) const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
    pub(crate) const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
    pub(crate) const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
    pub(crate) const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";

    /// Sets a member of the `_meta` of this object.
    pub(crate) fn set_in(object: &mut Object, key: &str, value: impl JsonValue) {
        let meta = object.optional_object(META).ok().flatten().unwrap_or_default();
        object.set(META, meta.with(key, value));
    }

    /// Adds this `_meta` to an element of a list or of a result, if the revision has it there.
    pub(crate) fn add(meta: &Object, version: ProtocolVersion, object: &mut Object) {
        if version.rules().titles && !meta.is_empty() {
            object.set(META, meta);
        }
    }

    /// Removes the `_meta` of an element of a list or of a result, if the revision has none there.
    pub(crate) fn lower(object: &mut Object, version: ProtocolVersion) {
        if !version.rules().titles {
            object.remove(META);
        }
    }
}

/// How long a result may be cached, and for whom (2026-07-28, caching).
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct CacheHints {
    /// Milliseconds for which the result is fresh. Zero: it must not be cached.
    pub ttl_ms: u64,
    /// Whether the result may be shared.
    pub scope: CacheScope,
}

/// The users of a cached result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CacheScope {
    /// Everyone.
    Public,
    /// Only the user whose request it answers.
    Private,
}

impl Default for CacheHints {
    /// Stale at once and private, which guarantees nothing.
    fn default() -> Self {
        Self { ttl_ms: 0, scope: CacheScope::Private }
    }
}

impl CacheHints {
    /// Creates hints with these values.
    pub const fn new(ttl_ms: u64, scope: CacheScope) -> Self {
        Self { ttl_ms, scope }
    }

    /// Decodes the hints leniently: an absent, negative or invalid `ttlMs` is 0, an absent or
    /// unknown scope is private.
    pub(crate) fn read(result: &Object) -> Self {
        let ttl_ms = result.optional::<f64>("ttlMs").ok().flatten().filter(|ms| *ms > 0.0).unwrap_or(0.0) as u64;
        let scope = result.optional::<String>("cacheScope").ok().flatten();
        let public = scope.as_deref() == Some("public");
        Self { ttl_ms, scope: if public { CacheScope::Public } else { CacheScope::Private } }
    }

    /// Adds the hints that the result lacks.
    pub(crate) fn add_to(&self, result: &mut Object) {
        if !result.contains("ttlMs") {
            result.set("ttlMs", self.ttl_ms);
        }
        if !result.contains("cacheScope") {
            let scope = match self.scope {
                CacheScope::Public => "public",
                CacheScope::Private => "private",
            };
            result.set("cacheScope", scope);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rpc::RawJson;

    fn read(json: &str) -> Result<Implementation, DecodeError> {
        Implementation::read(Object::read(&RawJson::parse(String::from(json)).unwrap()).unwrap())
    }

    // covers: ICON-C-004
    #[test]
    fn program_is_described_as_far_as_its_revision_can() {
        let made = Implementation::new("n", "1")
            .title("N")
            .describe("does it")
            .website("https://n.example")
            .icon(Icon::new("https://n.example/i.png").size("any"));
        let with_other = Implementation { other: Object::new().with("x", 1_i64), ..made.clone() };
        let [base, title, rest] = [
            r#""name":"n","version":"1""#,
            r#","title":"N""#,
            r#","description":"does it","websiteUrl":"https://n.example","icons":[{"src":"https://n.example/i.png","sizes":["any"]}]"#,
        ];
        for version in ProtocolVersion::ALL {
            let title = if version >= ProtocolVersion::V2025_06_18 { title } else { "" };
            let rest = if version >= ProtocolVersion::V2025_11_25 { rest } else { "" };
            let written = alloc::format!("{{{base}{title}{rest},\"x\":1}}");
            assert_eq!(with_other.write(version).to_json().as_str(), written, "{version}");
        }
        let whole = with_other.write(ProtocolVersion::V2026_07_28).to_json();
        assert_eq!(read(whole.as_str()), Ok(with_other));
        assert_eq!(read(r#"{"name":"n","version":"1","icons":null}"#), Ok(Implementation::new("n", "1")));
    }

    #[test]
    fn program_without_a_version_is_read() {
        for (version, expected) in [("", ""), (r#","version":null"#, ""), (r#","version":1.10"#, "1.10")] {
            let read = read(&alloc::format!(r#"{{"name":"n"{version},"x":1}}"#)).unwrap();
            assert_eq!((read.name.as_str(), read.version.as_str()), ("n", expected));
            assert_eq!(read.other, Object::new().with("x", 1_i64));
        }
        assert!(read(r#"{"name":"n","version":[1]}"#).is_err() && read(r#"{"version":"1"}"#).is_err());
    }

    #[test]
    fn malformed_ornaments_of_a_peer_stay_as_they_are() {
        let odd = r#""description":7,"websiteUrl":{},"icons":[{"src":1}]"#;
        let read = read(&alloc::format!(r#"{{"name":"n","version":"1",{odd}}}"#)).unwrap();
        assert_eq!((read.description(), read.website_url(), read.icons().len()), (None, None, 0));
        assert_eq!(read.other.to_json().as_str(), alloc::format!("{{{odd}}}"));
    }
}
