//! MCP Apps: HTML documents of a server that a host shows beside the results of its tools
//! (extension `io.modelcontextprotocol/ui`, 2026-01-26). This crate has what passes between client
//! and server. It shows nothing, and runs no script: frames, their policies and their messages are
//! those of the host.

use super::lifecycle::meta;
use super::resources::{BadResource, Read, Resource, ResourceContents, read};
use super::tools::Tool;
use super::uri_template::is_uri;
use crate::call::Call;
use crate::peer_text::Visible;
use crate::rpc::{JsonKind, JsonValue, Object, RawJson};
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

/// The identifier of the extension.
pub const EXTENSION: &str = "io.modelcontextprotocol/ui";

/// The media type of a document.
pub const MIME_TYPE: &str = "text/html;profile=mcp-app";

/// The member of `_meta` for apps, and the deprecated one that only names the document.
const UI: &str = "ui";
const FLAT: &str = "ui/resourceUri";

/// Creates a document that the results of tools are shown with: `ui_resource("ui://clock", HTML)`.
/// Add its properties, and the whole with [`Router::ui_resource`](crate::Router::ui_resource).
pub fn ui_resource(uri: &str, html: impl Into<String>) -> UiResource {
    UiResource { resource: Resource::new(uri).mime(MIME_TYPE), html: html.into(), ui: Object::new() }
}

/// Returns the settings with which a client declares that it shows documents of these media types
/// besides [`MIME_TYPE`].
pub fn settings<'a>(mime_types: impl IntoIterator<Item = &'a str>) -> Object {
    let others = mime_types.into_iter().filter(|mime| *mime != MIME_TYPE);
    let all: Vec<RawJson> = core::iter::once(MIME_TYPE).chain(others).map(RawJson::from).collect();
    Object::new().with("mimeTypes", all)
}

/// Returns whether a client with these settings shows documents of [`MIME_TYPE`].
pub(crate) fn shows(settings: &Object) -> bool {
    let types: Vec<String> = settings.optional("mimeTypes").ok().flatten().unwrap_or_default();
    types.iter().any(|mime| mime == MIME_TYPE)
}

/// Returns whether this is the URI of a document.
pub(crate) fn is_ui(uri: &str) -> bool {
    uri.starts_with("ui://") && is_uri(uri)
}

/// Who may use a tool.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Visibility {
    /// The model: the tool is in its list.
    Model,
    /// The documents of the same server.
    App,
}

impl Visibility {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Model => "model",
            Self::App => "app",
        }
    }
}

impl Tool {
    /// Shows its results with the document at this URI, where the host can. A host that cannot
    /// shows what other tools return too: the content says everything that matters. Ask
    /// [`Cx::supports_apps`](crate::Cx::supports_apps) to return another variant.
    ///
    /// ```
    /// use mcp_proto::{Router, tool, ui_resource};
    ///
    /// const HTML: &str = "<!doctype html><title>Clock</title><p id=now>";
    /// let router = Router::new("clock", "1.0")
    ///     .ui_resource(ui_resource("ui://clock/face", HTML).prefers_border(false))
    ///     .tool(tool("time").ui("ui://clock/face"), |_cx, ()| Ok("12:00"));
    /// # drop(router);
    /// ```
    #[must_use]
    pub fn ui(mut self, uri: &str) -> Self {
        self.meta.remove(FLAT);
        self.with_ui("resourceUri", uri)
    }

    /// Sets who may use it. Default: the model and documents.
    #[must_use]
    pub fn visibility(self, visible_to: impl IntoIterator<Item = Visibility>) -> Self {
        let words: Vec<RawJson> = visible_to.into_iter().map(|who| RawJson::from(who.as_str())).collect();
        self.with_ui("visibility", words)
    }

    fn with_ui(mut self, key: &str, value: impl JsonValue) -> Self {
        let ui = self.ui_meta().with(key, value);
        self.meta.set(UI, ui);
        self
    }

    fn ui_meta(&self) -> Object {
        self.meta.optional_object(UI).ok().flatten().unwrap_or_default()
    }

    /// Returns the URI of the document that shows its results, if there is one. Also reads the
    /// deprecated member `ui/resourceUri` of `_meta`. Fetch it with [`document`].
    pub fn ui_resource(&self) -> Option<String> {
        let nested = self.ui_meta().str("resourceUri").map(|uri| uri.into_owned());
        nested.or_else(|| self.meta.str(FLAT).map(|uri| uri.into_owned()))
    }

    /// Returns whether the model may use it. A host leaves the others out of what it shows the
    /// model. Lists of this crate have them all.
    pub fn is_for_model(&self) -> bool {
        self.is_visible_to(Visibility::Model)
    }

    /// Returns whether documents of the same server may use it: see [`AppCalls`].
    pub fn is_for_apps(&self) -> bool {
        self.is_visible_to(Visibility::App)
    }

    /// Something other than a list counts as none, which is the default: everyone.
    fn is_visible_to(&self, who: Visibility) -> bool {
        match self.ui_meta().get("visibility").filter(|words| words.kind() == JsonKind::Array) {
            Some(words) => words.elements().any(|word| word == who.as_str().into()),
            None => true,
        }
    }
}

/// Creates a call that reads the document of a tool. `None`: it has none, or its URI is not one of
/// a document.
pub fn document(tool: &Tool) -> Option<Call<Read>> {
    tool.ui_resource().filter(|uri| is_ui(uri)).map(|uri| read(&uri))
}

/// A document of a server: [`ui_resource`] creates one.
#[derive(Clone, PartialEq, Debug)]
#[must_use]
pub struct UiResource {
    pub(crate) resource: Resource,
    html: String,
    /// The member `ui` of its `_meta`.
    ui: Object,
}

impl UiResource {
    /// Sets its name, for programs.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.resource = self.resource.name(name);
        self
    }

    /// Sets its name, for people. Not sent before 2025-06-18.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.resource = self.resource.title(title);
        self
    }

    /// Sets its description.
    pub fn describe(mut self, description: impl Into<String>) -> Self {
        self.resource = self.resource.describe(description);
        self
    }

    /// Sets the origins that it needs. Without this a host lets it reach none.
    pub fn csp(self, csp: Csp) -> Self {
        self.with("csp", csp.0)
    }

    /// Sets the abilities of a browser that it asks for. A host may refuse them.
    pub fn permissions(self, permissions: impl IntoIterator<Item = Permission>) -> Self {
        let asked = permissions.into_iter().map(|permission| (permission.as_str().to_string(), Object::new().into()));
        self.with("permissions", asked.collect::<Object>())
    }

    /// Sets the origin of its frame, in the form that the host documents.
    pub fn domain(self, domain: &str) -> Self {
        self.with("domain", domain)
    }

    /// Sets whether the host draws a border and a background.
    pub fn prefers_border(self, border: bool) -> Self {
        self.with("prefersBorder", border)
    }

    /// Leaves it out of `resources/list`: clients find it through its tool.
    pub fn hidden(mut self) -> Self {
        self.resource = self.resource.hidden();
        self
    }

    fn with(mut self, key: &str, value: impl JsonValue) -> Self {
        self.ui.set(key, value);
        self
    }

    /// Checks that a server may offer it: its URI is a `ui://` URI, and it is a document of HTML5,
    /// which begins with `<!doctype html>`.
    ///
    /// # Errors
    /// [`BadResource`] with the violated rule.
    pub fn check(&self) -> Result<(), BadResource> {
        let why = match (is_ui(&self.resource.uri), is_html5(&self.html)) {
            (true, true) => return Ok(()),
            (false, _) => "it is no valid `ui://` URI",
            (true, false) => "it does not begin with `<!doctype html>`",
        };
        Err(BadResource { uri: self.resource.uri.clone(), why: why.into() })
    }

    /// Returns it as it is listed, and its contents. Both have its `_meta`: hosts read either.
    pub(crate) fn into_parts(self) -> (Resource, ResourceContents) {
        let Self { mut resource, html, ui } = self;
        let mut contents = ResourceContents::text(&resource.uri, html).mime(MIME_TYPE);
        if !ui.is_empty() {
            resource.meta.set(UI, &ui);
            contents = contents.meta(UI, ui);
        }
        (resource, contents)
    }
}

/// Returns whether a text begins as a document of HTML5 does: comments and white space may come
/// before its type.
fn is_html5(text: &str) -> bool {
    let mut rest = text.strip_prefix('\u{feff}').unwrap_or(text).trim_start();
    while let Some((_, after)) = rest.strip_prefix("<!--").and_then(|comment| comment.split_once("-->")) {
        rest = after.trim_start();
    }
    let has = |start: &str, word: &str| start.get(..word.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(word));
    let kind = rest.get("<!doctype".len()..).map(str::trim_start);
    has(rest, "<!doctype") && kind.is_some_and(|kind| has(kind, "html"))
}

/// The origins that a document needs (`csp`).
#[derive(Clone, PartialEq, Debug, Default)]
#[must_use]
pub struct Csp(Object);

impl Csp {
    /// Creates one without origins.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the origins of requests and WebSockets (`connectDomains`).
    pub fn connect<'a>(self, origins: impl IntoIterator<Item = &'a str>) -> Self {
        self.with("connectDomains", origins)
    }

    /// Sets the origins of scripts, styles, images, fonts and media (`resourceDomains`).
    pub fn resources<'a>(self, origins: impl IntoIterator<Item = &'a str>) -> Self {
        self.with("resourceDomains", origins)
    }

    /// Sets the origins of frames in it (`frameDomains`).
    pub fn frames<'a>(self, origins: impl IntoIterator<Item = &'a str>) -> Self {
        self.with("frameDomains", origins)
    }

    /// Sets the origins of its base URI (`baseUriDomains`).
    pub fn base_uris<'a>(self, origins: impl IntoIterator<Item = &'a str>) -> Self {
        self.with("baseUriDomains", origins)
    }

    fn with<'a>(mut self, key: &str, origins: impl IntoIterator<Item = &'a str>) -> Self {
        self.0.set(key, origins.into_iter().map(RawJson::from).collect::<Vec<_>>());
        self
    }
}

/// An ability of a browser that a document asks for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum Permission {
    /// The camera.
    Camera,
    /// The microphone.
    Microphone,
    /// The place of the device.
    Geolocation,
    /// Writing to the clipboard.
    ClipboardWrite,
}

impl Permission {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Camera => "camera",
            Self::Microphone => "microphone",
            Self::Geolocation => "geolocation",
            Self::ClipboardWrite => "clipboardWrite",
        }
    }
}

/// What a document may ask of its host: requests to the one server that it is from. A host checks
/// each message of a frame with it before it forwards anything.
///
/// ```
/// use mcp_proto::apps::AppCalls;
///
/// let calls = AppCalls::new("clock"); // what this host calls the server of the document
/// assert!(calls.check(&"time".into(), "clock").is_ok());
/// assert!(calls.check(&"time".into(), "bank").is_err());
/// assert!(calls.check_method("ui/open-link").is_err());
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AppCalls {
    server: String,
}

/// Why a message of a document is not forwarded.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum AppRefusal {
    /// The tool is not for documents.
    NotForApps {
        /// Its name.
        tool: String,
    },
    /// The tool is of another server than the document.
    OtherServer {
        /// That server.
        server: String,
    },
    /// The method is between the document and its host, and no server ever sees it.
    HostMethod {
        /// Its name.
        method: String,
    },
}

impl AppCalls {
    /// Creates the rules for a document of this server, under the name that the host gave to it.
    pub fn new(server: impl Into<String>) -> Self {
        Self { server: server.into() }
    }

    /// Checks a `tools/call` of the document: this tool of this server.
    ///
    /// # Errors
    /// [`AppRefusal::OtherServer`], [`AppRefusal::NotForApps`].
    pub fn check(&self, tool: &Tool, server: &str) -> Result<(), AppRefusal> {
        if server != self.server {
            return Err(AppRefusal::OtherServer { server: server.into() });
        }
        match tool.is_for_apps() {
            true => Ok(()),
            false => Err(AppRefusal::NotForApps { tool: tool.name.clone() }),
        }
    }

    /// Checks the method of any message of the document.
    ///
    /// # Errors
    /// [`AppRefusal::HostMethod`] for one that begins with `ui/`.
    pub fn check_method(&self, method: &str) -> Result<(), AppRefusal> {
        match method.starts_with("ui/") {
            true => Err(AppRefusal::HostMethod { method: method.into() }),
            false => Ok(()),
        }
    }
}

impl fmt::Display for AppRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotForApps { tool } => write!(f, "the tool `{}` is not for documents", Visible(tool)),
            Self::OtherServer { server } => {
                write!(f, "the document is not of the server `{}`", Visible(server))
            }
            Self::HostMethod { method } => write!(f, "the method `{}` is for the host", Visible(method)),
        }
    }
}

impl core::error::Error for AppRefusal {}

/// Reads the member `ui` of the `_meta` of contents: what a document asks of its host (`csp`,
/// `permissions`, `domain`, `prefersBorder`), unchanged.
pub fn requested(contents: &ResourceContents) -> Object {
    let (ResourceContents::Text { other, .. } | ResourceContents::Blob { other, .. }) = contents;
    let own = other.optional_object(meta::META).ok().flatten().unwrap_or_default();
    own.optional_object(UI).ok().flatten().unwrap_or_default()
}

#[cfg(test)]
mod tests;
