//! The identity of both sides: `initialize` and `server/discover`.

use super::capabilities::ServerCapabilities;
use crate::rpc::{DecodeError, Object};
use crate::version::ProtocolVersion;
use alloc::string::String;

/// The name and version of a program (`Implementation`).
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Implementation {
    /// Its name, for programs.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Its name, for people.
    pub title: Option<String>,
    /// Members that this type does not name, unchanged.
    #[cfg_attr(feature = "record", serde(with = "crate::record::value"))]
    pub other: Object,
}

impl Implementation {
    /// Creates a description of a program.
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        Self { name: name.into(), version: version.into(), title: None, other: Object::new() }
    }

    pub(crate) fn read(object: Object) -> Result<Self, DecodeError> {
        let (name, version) = (object.required("name")?, object.required("version")?);
        let title = object.optional("title")?;
        Ok(Self { name, version, title, other: object.without(&["name", "version", "title"]) })
    }

    pub(crate) fn write(&self, version: ProtocolVersion) -> Object {
        let mut object = Object::new().with("name", self.name.as_str()).with("version", self.version.as_str());
        if version.rules().titles {
            object = object.with_opt("title", self.title.as_deref());
        }
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
