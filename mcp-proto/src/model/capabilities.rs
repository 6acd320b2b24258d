//! The capabilities that both sides declare: in `initialize`, in the result of `server/discover`,
//! and in `_meta` of each request of 2026-07-28.

use crate::rpc::{DecodeError, JsonKind, Object, RawJson};
use crate::version::{Era, ProtocolVersion};
use alloc::borrow::Cow;
use alloc::string::String;
use core::fmt;

/// The capabilities of a client. An absent one is not supported.
#[derive(Clone, PartialEq, Debug, Default)]
#[non_exhaustive]
pub struct ClientCapabilities {
    /// Requests to the user, from 2025-06-18 on.
    pub elicitation: Option<ElicitationCapability>,
    /// Requests to a language model.
    pub sampling: Option<SamplingCapability>,
    /// The list of roots.
    pub roots: Option<RootsCapability>,
    /// The supported extensions.
    pub extensions: Extensions,
    /// All other members, such as `experimental`, unchanged.
    pub other: Object,
}

/// The capability `elicitation`. The default is forms only.
#[derive(Clone, PartialEq, Debug, Default)]
#[non_exhaustive]
pub struct ElicitationCapability {
    /// Forms. They are also supported if `url` is absent, which is how 2025-06-18 declares them.
    pub form: Option<Object>,
    /// Web pages, from 2025-11-25 on. For an earlier revision it is omitted.
    pub url: Option<Object>,
    /// All other members, unchanged.
    pub other: Object,
}

/// The capability `sampling`. The default is sampling without tools.
#[derive(Clone, PartialEq, Debug, Default)]
#[non_exhaustive]
pub struct SamplingCapability {
    /// The model can use tools of the request, from 2025-11-25 on.
    pub tools: Option<Object>,
    /// The client can include context of servers: `includeContext`, from 2025-11-25 on. Earlier
    /// revisions have no capability for it.
    pub context: Option<Object>,
    /// All other members, unchanged.
    pub other: Object,
}

/// The capability `roots`.
#[derive(Clone, PartialEq, Debug, Default)]
#[non_exhaustive]
pub struct RootsCapability {
    /// The client sends `notifications/roots/list_changed`. Up to 2025-11-25.
    pub list_changed: bool,
    /// All other members, unchanged.
    pub other: Object,
}

/// The capabilities of a server. An absent one is not supported.
#[derive(Clone, PartialEq, Debug, Default)]
#[non_exhaustive]
pub struct ServerCapabilities {
    /// Tools.
    pub tools: Option<ListCapability>,
    /// Prompts.
    pub prompts: Option<ListCapability>,
    /// Resources.
    pub resources: Option<ResourcesCapability>,
    /// Log messages.
    pub logging: Option<Object>,
    /// Completion of arguments, from 2025-03-26 on. In 2024-11-05 the method exists without a
    /// capability.
    pub completions: Option<Object>,
    /// The supported extensions.
    pub extensions: Extensions,
    /// All other members, such as `experimental` and `tasks`, unchanged.
    pub other: Object,
}

/// The capability of a server that has a list: `tools` or `prompts`.
#[derive(Clone, PartialEq, Debug, Default)]
#[non_exhaustive]
pub struct ListCapability {
    /// The server notifies clients when the list changes.
    pub list_changed: bool,
    /// All other members, unchanged.
    pub other: Object,
}

/// The capability `resources` of a server.
#[derive(Clone, PartialEq, Debug, Default)]
#[non_exhaustive]
pub struct ResourcesCapability {
    /// Clients can subscribe to single resources.
    pub subscribe: bool,
    /// The server notifies clients when the list changes.
    pub list_changed: bool,
    /// All other members, unchanged.
    pub other: Object,
}

/// The extensions that a side supports, by identifier, each with its settings (2026-07-28
/// versioning, extension negotiation). Declared on every revision. Empty settings mean that the
/// extension is supported and has no settings.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Extensions(Object);

/// An identifier that no extension may have. The identifier follows the rules for the keys of
/// `_meta`, and needs a prefix: `com.example/name`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BadExtension(String);

impl ClientCapabilities {
    /// Decodes the capabilities. A member that is neither an object nor an empty array counts as
    /// absent.
    pub fn read(object: &Object) -> Self {
        Self {
            elicitation: member(object, "elicitation").map(|object| ElicitationCapability {
                form: member(&object, "form"),
                url: member(&object, "url"),
                other: object.without(&["form", "url"]),
            }),
            sampling: member(object, "sampling").map(|object| SamplingCapability {
                tools: member(&object, "tools"),
                context: member(&object, "context"),
                other: object.without(&["tools", "context"]),
            }),
            roots: member(object, "roots").map(|object| RootsCapability {
                list_changed: flag(&object, "listChanged"),
                other: object.without(&["listChanged"]),
            }),
            extensions: Extensions::read(object),
            other: object.clone().without(&["elicitation", "sampling", "roots", "extensions"]),
        }
    }

    /// Returns whether the client supports forms: `elicitation` is present, and has `form` or lacks
    /// `url`.
    pub fn elicits_forms(&self) -> bool {
        self.elicitation.as_ref().is_some_and(|modes| modes.form.is_some() || modes.url.is_none())
    }

    /// Returns whether the client shows web pages to the user: `elicitation.url`.
    pub fn elicits_urls(&self) -> bool {
        self.elicitation.as_ref().is_some_and(|modes| modes.url.is_some())
    }

    /// Returns whether the client accepts tools in a request for sampling: `sampling.tools`.
    pub fn samples_with_tools(&self) -> bool {
        self.sampling.as_ref().is_some_and(|sampling| sampling.tools.is_some())
    }

    /// Returns the capabilities that this revision has.
    pub(crate) fn lower(&self, version: ProtocolVersion) -> Self {
        let rules = version.rules();
        let mut lowered = self.clone();
        if !rules.elicitation || !(rules.elicitation_modes || self.elicits_forms()) {
            lowered.elicitation = None;
        }
        match &mut lowered.elicitation {
            Some(modes) if !rules.elicitation_modes => *modes = ElicitationCapability::default(),
            _ => {}
        }
        match &mut lowered.sampling {
            Some(sampling) if !rules.sampling_tools => (sampling.tools, sampling.context) = (None, None),
            _ => {}
        }
        if let Some(roots) = &mut lowered.roots {
            roots.list_changed &= rules.era == Era::Legacy;
        }
        lowered.other = without_tasks(lowered.other, version);
        lowered
    }

    /// Returns the bytes of memory behind this value.
    pub(crate) fn heap_size(&self) -> usize {
        let Self { elicitation, sampling, roots, extensions, other } = self;
        let elicitation = elicitation.as_ref().map(|modes| (&modes.form, &modes.url, &modes.other));
        let sampling = sampling.as_ref().map(|sampling| (&sampling.tools, &sampling.context, &sampling.other));
        let options = [elicitation, sampling].into_iter().flatten();
        let options = options.flat_map(|(a, b, other)| a.iter().chain(b).chain([other]));
        let options = options.chain(roots.as_ref().map(|roots| &roots.other)).chain([other]);
        extensions.heap_size() + options.map(Object::heap_size).sum::<usize>()
    }

    /// Encodes the capabilities.
    pub(crate) fn write(&self) -> Object {
        let mut object = self.other.clone();
        if let Some(ElicitationCapability { form, url, other }) = &self.elicitation {
            let modes = other.clone().with_opt("form", form.as_ref()).with_opt("url", url.as_ref());
            object.set("elicitation", modes);
        }
        if let Some(SamplingCapability { tools, context, other }) = &self.sampling {
            let options = other.clone().with_opt("tools", tools.as_ref()).with_opt("context", context.as_ref());
            object.set("sampling", options);
        }
        if let Some(RootsCapability { list_changed, other }) = &self.roots {
            object.set("roots", flagged(other.clone(), "listChanged", *list_changed));
        }
        self.extensions.add_to(object)
    }
}

impl SamplingCapability {
    /// Creates the capability of a client whose model can use tools.
    pub fn with_tools() -> Self {
        Self { tools: Some(Object::new()), ..Self::default() }
    }
}

impl ServerCapabilities {
    /// Returns whether the server notifies clients when its list of tools changes:
    /// `tools.listChanged`.
    pub fn announces_tools(&self) -> bool {
        self.tools.as_ref().is_some_and(|tools| tools.list_changed)
    }

    /// Returns whether the server notifies clients when its list of prompts changes:
    /// `prompts.listChanged`.
    pub fn announces_prompts(&self) -> bool {
        self.prompts.as_ref().is_some_and(|prompts| prompts.list_changed)
    }

    /// Returns whether the server notifies clients when its list of resources changes:
    /// `resources.listChanged`.
    pub fn announces_resources(&self) -> bool {
        self.resources.as_ref().is_some_and(|resources| resources.list_changed)
    }

    /// Returns whether clients can subscribe to single resources: `resources.subscribe`.
    pub fn watches_resources(&self) -> bool {
        self.resources.as_ref().is_some_and(|resources| resources.subscribe)
    }

    /// Returns whether the server sends log messages: `logging`.
    pub fn has_logging(&self) -> bool {
        self.logging.is_some()
    }

    /// Returns whether the server has the tasks of 2025-11-25: `tasks`.
    pub(crate) fn has_tasks(&self) -> bool {
        member(&self.other, "tasks").is_some()
    }

    /// Returns whether calls of tools may be tasks (2025-11-25): `tasks.requests.tools.call`.
    pub(crate) fn has_task_calls(&self) -> bool {
        let path = ["tasks", "requests", "tools", "call"];
        path.iter().try_fold(self.other.clone(), |object, key| member(&object, key)).is_some()
    }

    /// Decodes the capabilities. A member that is neither an object nor an empty array counts as
    /// absent.
    pub(crate) fn read(object: Object) -> Self {
        let list = |key: &str| {
            member(&object, key).map(|object| ListCapability {
                list_changed: flag(&object, "listChanged"),
                other: object.without(&["listChanged"]),
            })
        };
        let resources = member(&object, "resources").map(|object| ResourcesCapability {
            subscribe: flag(&object, "subscribe"),
            list_changed: flag(&object, "listChanged"),
            other: object.without(&["subscribe", "listChanged"]),
        });
        Self {
            tools: list("tools"),
            prompts: list("prompts"),
            resources,
            logging: member(&object, "logging"),
            completions: member(&object, "completions"),
            extensions: Extensions::read(&object),
            other: object.without(&["tools", "prompts", "resources", "logging", "completions", "extensions"]),
        }
    }

    /// Returns the capabilities as this revision has them on the wire.
    pub(crate) fn write(&self, version: ProtocolVersion) -> Object {
        let mut object = without_tasks(self.other.clone(), version);
        for (key, list) in [("tools", &self.tools), ("prompts", &self.prompts)] {
            if let Some(list) = list {
                object.set(key, flagged(list.other.clone(), "listChanged", list.list_changed));
            }
        }
        if let Some(resources) = &self.resources {
            let declared = flagged(resources.other.clone(), "subscribe", resources.subscribe);
            object.set("resources", flagged(declared, "listChanged", resources.list_changed));
        }
        let completions = self.completions.as_ref().filter(|_| version.rules().completions);
        object = object.with_opt("logging", self.logging.as_ref()).with_opt("completions", completions);
        self.extensions.add_to(object)
    }
}

impl Extensions {
    /// Creates a declaration of no extension.
    pub const fn new() -> Self {
        Self(Object::new())
    }

    /// Declares an extension with its settings, replacing an earlier declaration of it.
    ///
    /// ```
    /// # use mcp_proto::Object;
    /// # use mcp_proto::model::capabilities::Extensions;
    /// let mut extensions = Extensions::new();
    /// extensions.declare("com.example/prices", Object::new().with("currency", "EUR"))?;
    /// assert!(extensions.declare("prices", Object::new()).is_err());
    /// # Ok::<(), mcp_proto::model::capabilities::BadExtension>(())
    /// ```
    ///
    /// # Errors
    /// [`BadExtension`] if the identifier has no prefix or is not valid.
    pub fn declare(&mut self, id: &str, settings: Object) -> Result<(), BadExtension> {
        if !is_extension_id(id) {
            return Err(BadExtension(id.into()));
        }
        self.0.set(id, settings);
        Ok(())
    }

    /// Adds declarations, which replace earlier ones.
    pub fn add(&mut self, other: Self) {
        self.0 = core::mem::take(&mut self.0).with_all(&other.0);
    }

    /// Returns the settings of an extension. `None` if it is not declared.
    pub fn get(&self, id: &str) -> Option<Object> {
        member(&self.0, id)
    }

    /// Returns whether an extension is declared.
    pub fn contains(&self, id: &str) -> bool {
        self.0.contains(id)
    }

    /// Returns the identifiers of the declared extensions.
    pub fn ids(&self) -> impl Iterator<Item = Cow<'_, str>> {
        self.0.iter().map(|(id, _)| id)
    }

    /// Returns whether no extension is declared.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the bytes of memory behind this value.
    pub(crate) fn heap_size(&self) -> usize {
        self.0.heap_size()
    }

    /// Decodes the member `extensions`. Ignores an extension whose identifier is not valid or whose
    /// settings are not an object.
    fn read(capabilities: &Object) -> Self {
        let declared = member(capabilities, "extensions").unwrap_or_default();
        let is_declared = |id: &str, settings: &RawJson| {
            is_extension_id(id) && (settings.kind() == JsonKind::Object || settings.is_empty_array())
        };
        if declared.iter().all(|(id, settings)| is_declared(&id, &settings)) {
            return Self(declared);
        }
        // One pass, however many there are.
        let valid = declared.iter().filter(|(id, settings)| is_declared(id, settings));
        Self(valid.map(|(id, settings)| (id.into_owned(), settings)).collect())
    }

    fn add_to(&self, mut capabilities: Object) -> Object {
        if !self.is_empty() {
            capabilities.set("extensions", &self.0);
        }
        capabilities
    }
}

impl fmt::Display for BadExtension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let id = crate::peer_text::Visible(&self.0);
        write!(f, "`{id}` is not an identifier of an extension, such as `com.example/name`")
    }
}

impl core::error::Error for BadExtension {}

/// Returns whether the text is a key of `_meta` with a prefix (2025-11-25 basic, `_meta`): labels
/// that are separated by dots, a slash, and a name, which may be empty.
pub(crate) fn is_extension_id(id: &str) -> bool {
    let is_alphanumeric = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let is_label = |label: &str| {
        let bytes = label.as_bytes();
        bytes.first().is_some_and(u8::is_ascii_alphabetic)
            && is_alphanumeric(bytes.last())
            && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-')
    };
    let is_name = |name: &str| {
        let bytes = name.as_bytes();
        bytes.is_empty()
            || is_alphanumeric(bytes.first())
                && is_alphanumeric(bytes.last())
                && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte))
    };
    id.split_once('/').is_some_and(|(prefix, name)| prefix.split('.').all(is_label) && is_name(name))
}

/// Removes the capability `tasks`, which only 2025-11-25 has. The tasks of 2026-07-28 are an
/// extension.
fn without_tasks(object: Object, version: ProtocolVersion) -> Object {
    if version.rules().tasks { object } else { object.without(&["tasks"]) }
}

/// Returns whether capabilities declare an extension, without decoding the others.
pub(crate) fn declares(capabilities: &Object, extension: &str) -> bool {
    member(capabilities, "extensions").is_some_and(|extensions| member(&extensions, extension).is_some())
}

/// Returns a member that is an object. An empty array is the empty object of a language that has no
/// other empty collection.
fn member(object: &Object, key: &str) -> Option<Object> {
    let value = object.get(key)?;
    if value.is_empty_array() { Some(Object::new()) } else { Object::read(&value).ok() }
}

/// Decodes the member `capabilities`, which may be absent or `null`.
///
/// # Errors
/// [`DecodeError`] if it is neither an object nor an empty array.
pub(crate) fn read_member(object: &Object) -> Result<Option<Object>, DecodeError> {
    match object.get("capabilities") {
        Some(value) if value.is_empty_array() => Ok(Some(Object::new())),
        _ => object.optional_object("capabilities"),
    }
}

fn flag(object: &Object, key: &str) -> bool {
    matches!(object.optional(key), Ok(Some(true)))
}

fn flagged(mut object: Object, key: &'static str, value: bool) -> Object {
    if value {
        object.set(key, true);
    }
    object
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use alloc::vec::Vec;

    fn read(json: &str) -> Object {
        Object::read(&RawJson::parse(json.to_string()).unwrap()).unwrap()
    }

    // covers: VER-B-011
    #[test]
    fn identifier_of_an_extension_has_a_prefix() {
        for id in ["io.modelcontextprotocol/ui", "a/b", "com.example/a-b_c.d", "x1/"] {
            assert!(is_extension_id(id), "{id}");
        }
        for id in ["", "ui", "/ui", "1a/b", "a./b", "a..b/c", "a-/b", "a/-b", "a/b-", "a/b/c", "a b/c", "a/ü"] {
            assert!(!is_extension_id(id), "{id}");
        }
    }

    #[test]
    fn empty_array_is_an_empty_capability() {
        let told = read(r#"{"tools":[],"prompts":[ ],"elicitation":[],"sampling":{"tools":[]},"extensions":[]}"#);
        let server = ServerCapabilities::read(told.clone());
        assert!(server.tools.is_some() && server.prompts.is_some() && server.resources.is_none());
        let client = ClientCapabilities::read(&told);
        assert!(client.elicits_forms() && client.samples_with_tools() && client.roots.is_none());
        assert!(client.extensions.is_empty());
        let extension = ServerCapabilities::read(read(r#"{"extensions":{"a.b/c":[]}}"#)).extensions;
        assert_eq!(extension.get("a.b/c"), Some(Object::new()));
        let odd = ServerCapabilities::read(read(r#"{"tools":[1],"prompts":true,"resources":"x"}"#));
        assert!(odd.tools.is_none() && odd.prompts.is_none() && odd.resources.is_none());
        assert_eq!(read_member(&read(r#"{"capabilities":[]}"#)), Ok(Some(Object::new())));
        assert_eq!(read_member(&read(r#"{"capabilities":null}"#)), Ok(None));
        assert!(read_member(&read(r#"{"capabilities":[1]}"#)).is_err());
    }

    // covers: VER-B-011, VER-B-014
    #[test]
    fn declared_extensions_are_read_on_both_sides() {
        let told = read(r#"{"extensions":{"a.b/c":{},"bad":{},"a.b/d":{"x":1},"a.b/e":true}}"#);
        for extensions in [ClientCapabilities::read(&told).extensions, ServerCapabilities::read(told).extensions] {
            assert_eq!(extensions.ids().collect::<Vec<_>>(), ["a.b/c", "a.b/d"]);
            assert_eq!(extensions.get("a.b/c"), Some(Object::new()));
            assert!(!extensions.contains("a.b/e") && extensions.get("a.b/f").is_none());
        }
    }

    #[test]
    fn capabilities_are_written_as_they_were_read() {
        let client = r#"{"experimental":{"x":{}},"elicitation":{"form":{"a":1},"url":{},"more":{}},"sampling":{"tools":{},"context":{}},"roots":{"listChanged":true},"extensions":{"a.b/c":{}}}"#;
        let read_back = ClientCapabilities::read(&read(client)).write();
        assert_eq!(ClientCapabilities::read(&read_back), ClientCapabilities::read(&read(client)));
        let server = r#"{"experimental":{},"tools":{"listChanged":true},"prompts":{},"resources":{"subscribe":true,"listChanged":true,"x":1},"logging":{},"completions":{},"extensions":{"a.b/c":{}}}"#;
        let read_back = ServerCapabilities::read(read(server)).write(ProtocolVersion::V2026_07_28);
        assert_eq!(ServerCapabilities::read(read_back), ServerCapabilities::read(read(server)));
    }

    // covers: SEPX-S-012
    #[test]
    fn only_one_revision_has_the_capability_tasks() {
        let all = read(r#"{"tasks":{"list":{}},"x":{}}"#);
        for version in ProtocolVersion::ALL {
            let expected =
                if version == ProtocolVersion::V2025_11_25 { all.clone() } else { all.clone().without(&["tasks"]) };
            assert_eq!(ServerCapabilities::read(all.clone()).write(version), expected, "{version:?}");
            assert_eq!(ClientCapabilities::read(&all).lower(version).write(), expected, "{version:?}");
        }
    }

    #[test]
    fn capability_that_a_revision_lacks_is_not_declared() {
        let all = read(r#"{"elicitation":{"url":{}},"sampling":{"tools":{}},"roots":{"listChanged":true}}"#);
        let all = ClientCapabilities::read(&all);
        let written = |version| all.lower(version).write().to_json().as_str().to_string();
        assert_eq!(written(ProtocolVersion::V2025_06_18), r#"{"sampling":{},"roots":{"listChanged":true}}"#);
        assert_eq!(
            written(ProtocolVersion::V2026_07_28),
            r#"{"elicitation":{"url":{}},"sampling":{"tools":{}},"roots":{}}"#
        );
    }
}
