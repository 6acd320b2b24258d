//! The identity and the capabilities of both sides: `initialize` and `server/discover`.

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

/// The capabilities of a client. An absent one is not supported; an empty object is supported,
/// without options.
#[derive(Clone, PartialEq, Debug, Default)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct ClientCapabilities {
    /// Requests to the user. An empty object, or one with `form`, means forms. `url` has to be
    /// named.
    #[cfg_attr(feature = "record", serde(with = "crate::record::value"))]
    pub elicitation: Option<Object>,
    /// Requests to a language model.
    #[cfg_attr(feature = "record", serde(with = "crate::record::value"))]
    pub sampling: Option<Object>,
    /// The list of roots.
    #[cfg_attr(feature = "record", serde(with = "crate::record::value"))]
    pub roots: Option<Object>,
    /// All other members: `experimental`, `extensions`.
    #[cfg_attr(feature = "record", serde(with = "crate::record::value"))]
    pub other: Object,
}

impl ClientCapabilities {
    /// Decodes the capabilities. A member that is not an object counts as absent.
    pub fn read(object: &Object) -> Self {
        let member = |key: &str| object.optional_object(key).ok().flatten();
        let other = object.clone().without(&["elicitation", "sampling", "roots"]);
        Self { elicitation: member("elicitation"), sampling: member("sampling"), roots: member("roots"), other }
    }

    /// Returns whether the client supports forms: `elicitation` is present, and is empty or has
    /// `form`.
    pub fn elicits_forms(&self) -> bool {
        self.elicitation.as_ref().is_some_and(|modes| modes.contains("form") || !modes.contains("url"))
    }

    /// Returns whether the client has the capability of this name.
    pub fn has(&self, capability: &str) -> bool {
        match capability {
            "elicitation" => self.elicits_forms(),
            "sampling" => self.sampling.is_some(),
            "roots" => self.roots.is_some(),
            other => self.other.contains(other),
        }
    }

    pub(crate) fn write(&self, version: ProtocolVersion) -> Object {
        let mut object = self.other.clone();
        if let (Some(modes), true) = (&self.elicitation, version.rules().elicitation) {
            let modes = if version.rules().elicitation_modes { modes.clone() } else { Object::new() };
            object.set("elicitation", modes);
        }
        for (key, value) in [("sampling", &self.sampling), ("roots", &self.roots)] {
            if let Some(value) = value {
                object.set(key, value);
            }
        }
        object
    }
}

/// The capabilities of a server. An absent one is not supported.
#[derive(Clone, PartialEq, Debug, Default)]
#[non_exhaustive]
pub struct ServerCapabilities {
    /// Tools.
    pub tools: Option<Object>,
    /// All other members: `resources`, `prompts`, `logging`, `completions`, `experimental`,
    /// `extensions`.
    pub other: Object,
}

impl ServerCapabilities {
    /// Returns whether the server notifies clients when its list of tools changes:
    /// `tools.listChanged`.
    pub fn announces_tools(&self) -> bool {
        self.tools.as_ref().is_some_and(|tools| matches!(tools.optional("listChanged"), Ok(Some(true))))
    }

    /// Returns whether the server sends log messages: `logging`.
    pub(crate) fn has_logging(&self) -> bool {
        self.object("logging").is_some()
    }

    /// Returns whether clients can subscribe to single resources: `resources.subscribe`.
    pub(crate) fn watches_resources(&self) -> bool {
        let resources = self.object("resources");
        resources.is_some_and(|resources| matches!(resources.optional("subscribe"), Ok(Some(true))))
    }

    /// Returns whether the server has the tasks of 2025-11-25: `tasks`.
    pub(crate) fn has_tasks(&self) -> bool {
        self.object("tasks").is_some()
    }

    fn object(&self, name: &str) -> Option<Object> {
        self.other.optional_object(name).ok().flatten()
    }

    pub(crate) fn read(object: Object) -> Self {
        let tools = object.optional_object("tools").ok().flatten();
        let mut other = object;
        other.remove("tools");
        Self { tools, other }
    }

    pub(crate) fn write(&self) -> Object {
        let mut object = self.other.clone();
        if let Some(tools) = &self.tools {
            object.set("tools", tools);
        }
        object
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
    pub(crate) const META: &str = "_meta";
    pub(crate) const PROGRESS_TOKEN: &str = "progressToken";
    pub(crate) const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
    pub(crate) const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
    pub(crate) const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
    pub(crate) const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
    pub(crate) const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
    pub(crate) const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
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
