//! The resources of a router.

use super::pages::{self, RouterEntry};
use super::scopes::{RouteRefusal, ScopeDemand};
use super::target::ReadTarget;
use super::{Cx, Handler, HandlerTarget, IntoContents, MaybeFuture, Resolution, Router, ToolError, invalid};
use crate::input::Outcome;
use crate::model::resources::{Resource, ResourceTemplate};
use crate::model::uri_template::{UriTemplate, is_plain_path, is_uri, stays_below};
use crate::rpc::{ErrorObject, Object, code};
use crate::server::{Context, IncomingRequest, Responder};
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::future::Future;
use core::str::FromStr;

/// Creates a resource with this URI. Add its properties:
/// `resource("file:///readme").title("Read me").mime("text/markdown")`.
pub fn resource(uri: &str) -> Resource {
    Resource::new(uri)
}

/// Creates a template of resources with these URIs: `template("db://{table}/{id}")`. `{name}`
/// is a text without `/`, `?` and `#`, and `{+name}` any text.
pub fn template(uri_template: &str) -> ResourceTemplate {
    ResourceTemplate::new(uri_template)
}

/// What a router knows of resources.
#[derive(Clone, Debug, Default)]
pub(super) struct ResourceTable {
    /// By URI.
    registered: BTreeMap<String, RouterEntry<Resource>>,
    /// By URI template.
    templates: BTreeMap<String, RouterEntry<ResourceTemplate>>,
    /// The templates in the order of registration, in which they are matched.
    matched: Vec<(UriTemplate, String)>,
    source: Option<Handler>,
}

impl ResourceTable {
    pub(super) fn are_offered(&self) -> bool {
        !self.registered.is_empty() || !self.matched.is_empty() || self.source.is_some()
    }

    /// Returns whether `resources/list` and `resources/templates/list` have the same elements in
    /// another router. Lists of different functions count as different.
    pub(super) fn lists_as(&self, other: &Self) -> bool {
        pages::same(&self.registered, &other.registered)
            && pages::same(&self.templates, &other.templates)
            && Handler::same(self.source.as_ref(), other.source.as_ref())
    }

    /// Returns whether there is a resource with this URI, now or through a template.
    pub(super) fn has(&self, uri: &str) -> bool {
        self.look_up(uri).is_some()
    }

    /// Returns the resources that were added by their URI.
    #[cfg(feature = "skills")]
    pub(super) const fn registered(&self) -> &BTreeMap<String, RouterEntry<Resource>> {
        &self.registered
    }

    /// Returns them to change them.
    #[cfg(feature = "skills")]
    pub(super) const fn registered_mut(&mut self) -> &mut BTreeMap<String, RouterEntry<Resource>> {
        &mut self.registered
    }

    /// Returns whether there is a resource with this URI, or a template that is written like this.
    pub(super) fn knows(&self, uri: &str) -> bool {
        self.registered.contains_key(uri) || self.templates.contains_key(uri)
    }

    /// Returns a page of `resources/list`.
    pub(super) fn list(
        &self,
        responder: &Responder,
        incoming: &IncomingRequest,
        hides: bool,
    ) -> Result<Resolution<'_>, RouteRefusal> {
        pages::page::<Resource>(&self.registered, self.source.as_ref(), responder, incoming, hides)
    }

    /// Returns a page of `resources/templates/list`.
    pub(super) fn list_templates(
        &self,
        responder: &Responder,
        incoming: &IncomingRequest,
        hides: bool,
    ) -> Result<Resolution<'_>, RouteRefusal> {
        pages::page::<ResourceTemplate>(&self.templates, None, responder, incoming, hides)
    }

    /// Returns the handler that reads the resource of a request.
    pub(super) fn find(
        &self,
        responder: &Responder,
        incoming: &IncomingRequest,
    ) -> Result<Resolution<'_>, RouteRefusal> {
        let uri = incoming.params.required_str("uri").map_err(|e| invalid(&format!("{e}")))?;
        let max = responder.config().limits.server.max_uri;
        if uri.len() > max {
            return Err(invalid(&format!("the URI is longer than {max} bytes")).into());
        }
        if !is_uri(&uri) {
            let error = invalid("the URI is not valid (RFC 3986)");
            return Err(error.with_data(Object::new().with("uri", &*uri).into()).into());
        }
        let FoundResource { handler, mime_type, variables, scoped } =
            self.look_up(&uri).ok_or_else(|| not_found(&uri))?;
        scoped.check_scopes(&incoming.context)?;
        let target = ReadTarget { uri: uri.into_owned(), mime_type: mime_type.cloned(), variables };
        Ok(Resolution::Other(handler, HandlerTarget::Resource(Box::new(target))))
    }

    /// Checks that the client of a request may use what has this URI or URI template.
    pub(super) fn check_scopes(&self, uri: &str, context: &Context) -> Result<(), RouteRefusal> {
        self.registered.get(uri).map_or(Ok(()), |resource| resource.listed.check_scopes(context))?;
        self.templates.get(uri).map_or(Ok(()), |template| template.listed.check_scopes(context))
    }

    fn look_up(&self, uri: &str) -> Option<FoundResource<'_>> {
        if let Some(RouterEntry { listed, handler }) = self.registered.get(uri) {
            let mime_type = listed.mime_type.as_ref();
            return Some(FoundResource { handler, mime_type, variables: Vec::new(), scoped: listed });
        }
        if !is_plain_path(uri) {
            return None;
        }
        let (template, values) =
            self.matched.iter().find_map(|(template, name)| template.values(uri).map(|values| (name, values)))?;
        let RouterEntry { listed, handler } = self.templates.get(template)?;
        Some(FoundResource { handler, mime_type: listed.mime_type.as_ref(), variables: values, scoped: listed })
    }
}

/// What a router knows of the resource with some URI.
struct FoundResource<'a> {
    handler: &'a Handler,
    mime_type: Option<&'a String>,
    /// The variables of its template.
    variables: Vec<(String, String)>,
    /// What was registered: it, or its template.
    scoped: &'a dyn ScopeDemand,
}

/// Returns the error for a resource that does not exist. Its code is that of older revisions; on
/// 2026-07-28 the engine sends `-32602` instead.
fn not_found(uri: &str) -> ErrorObject {
    let error = ErrorObject::new(code::RESOURCE_NOT_FOUND, "Resource not found");
    error.with_data(Object::new().with("uri", uri).into())
}

impl Router {
    /// Adds a resource with a function that reads it, which may block. `resource` is
    /// `resource("file:///readme").mime(..)` or a [`Resource`]. It replaces one with the same URI.
    /// The list of resources is sorted by URI. The function returns text, bytes, [`Json`] of data,
    /// [`ResourceContents`], several of them, or a [`ReadResult`]. `None`, no contents, and
    /// [`ToolError::NotFound`] mean that the resource does not exist now.
    ///
    /// ```
    /// use mcp_proto::{Router, resource, template};
    ///
    /// let router = Router::new("shop", "1.0")
    ///     .resource(resource("shop://hours").title("Opening hours"), |_cx| Ok("8 to 18"))
    ///     .template(template("shop://orders/{id}").mime("text/plain"), |cx| {
    ///         let id: u32 = cx.variable("id")?;
    ///         Ok((id == 7).then(|| format!("the order {id}")))
    ///     });
    /// # drop(router);
    /// ```
    ///
    /// [`Json`]: super::Json
    /// [`ResourceContents`]: crate::model::resources::ResourceContents
    /// [`ReadResult`]: crate::model::resources::ReadResult
    ///
    /// # Panics
    /// If its URI is not valid: see [`Resource::check`].
    #[must_use]
    pub fn resource<O, F>(self, resource: impl Into<Resource>, f: F) -> Self
    where
        F: Fn(&Cx) -> Result<O, ToolError> + Send + Sync + 'static,
        O: IntoContents + 'static,
    {
        let handler = self.in_mode(reading(f));
        self.add_resource(resource, handler)
    }

    /// Like [`resource`](Self::resource), for a function that returns a future.
    ///
    /// # Panics
    /// As [`resource`](Self::resource).
    #[must_use]
    pub fn resource_async<O, R, F>(self, resource: impl Into<Resource>, f: F) -> Self
    where
        F: Fn(Cx) -> R + Send + Sync + 'static,
        R: Future<Output = Result<O, ToolError>> + Send + 'static,
        O: IntoContents + 'static,
    {
        self.add_resource(resource, reading(move |cx| f(cx.clone())))
    }

    pub(super) fn add_resource(mut self, resource: impl Into<Resource>, handler: Handler) -> Self {
        let listed = resource.into();
        listed.check().unwrap_or_else(|e| panic!("{e}"));
        self.edit().resources.registered.insert(listed.uri.clone(), RouterEntry { listed, handler });
        self
    }

    /// Removes the resource with this URI, if one was added by its URI.
    ///
    /// # Panics
    /// If a tool shows it ([`Tool::ui`](crate::Tool::ui)): remove the tool first.
    #[must_use]
    pub fn without_resource(mut self, uri: &str) -> Self {
        self.edit().resources.registered.remove(uri);
        self.check_apps();
        self
    }

    /// Adds a family of resources with a function that reads one of them, which may block. The
    /// function gets the variables with [`Cx::variable`], and returns what that of
    /// [`resource`](Self::resource) returns. The router tries the resources first, then the
    /// templates in the order in which they were added. It refuses a `file:` URI with `..` in its
    /// path, or with an encoded separator. The list of templates is sorted by URI template.
    ///
    /// # Panics
    /// If the router cannot match the template: see [`ResourceTemplate::check`].
    #[must_use]
    pub fn template<O, F>(self, template: impl Into<ResourceTemplate>, f: F) -> Self
    where
        F: Fn(&Cx) -> Result<O, ToolError> + Send + Sync + 'static,
        O: IntoContents + 'static,
    {
        let handler = self.in_mode(reading(f));
        self.add_template(template, handler)
    }

    /// Like [`template`](Self::template), for a function that returns a future.
    ///
    /// # Panics
    /// As [`template`](Self::template).
    #[must_use]
    pub fn template_async<O, R, F>(self, template: impl Into<ResourceTemplate>, f: F) -> Self
    where
        F: Fn(Cx) -> R + Send + Sync + 'static,
        R: Future<Output = Result<O, ToolError>> + Send + 'static,
        O: IntoContents + 'static,
    {
        self.add_template(template, reading(move |cx| f(cx.clone())))
    }

    fn add_template(mut self, template: impl Into<ResourceTemplate>, handler: Handler) -> Self {
        let listed = template.into();
        let parsed = listed.parsed().unwrap_or_else(|e| panic!("{e}"));
        let resources = &mut self.edit().resources;
        let key = listed.uri_template.clone();
        if resources.templates.insert(key.clone(), RouterEntry { listed, handler }).is_none() {
            resources.matched.push((parsed, key));
        }
        self
    }

    /// Removes the family of resources with this URI template, if there is one.
    #[must_use]
    pub fn without_template(mut self, uri_template: &str) -> Self {
        let resources = &mut self.edit().resources;
        resources.templates.remove(uri_template);
        resources.matched.retain(|(_, key)| key != uri_template);
        self
    }

    /// Adds resources that a function lists, for many of them, or for those of a database. The
    /// function may block, or returns a future. It gets the URI of the last resource of the page
    /// before, `None` at the beginning, and returns the resources after it, in an order that does
    /// not change, such as by URI. The router takes as many of them as a page has
    /// ([`page_size`](crate::limits::ServerLimits::page_size)), and one more: an iterator does not
    /// make the others. The URI comes from the client, and a resource with it may no longer exist.
    ///
    /// They follow the resources that were added one by one. Add a [`template`](Self::template)
    /// that reads them.
    ///
    /// ```
    /// use mcp_proto::{Router, resource};
    ///
    /// let router = Router::new("numbers", "1.0")
    ///     .resources_from(|_cx, after| {
    ///         let last = after.and_then(|uri| uri.strip_prefix("n:")?.parse::<u64>().ok());
    ///         Ok((last.unwrap_or(0)..).map(|n| resource(&format!("n:{}", n + 1))))
    ///     })
    ///     .template("n:{number}", |cx| Ok(cx.variable::<u64>("number")?.to_string()));
    /// # drop(router);
    /// ```
    #[must_use]
    pub fn resources_from<I, R, M, F>(mut self, f: F) -> Self
    where
        F: Fn(&Cx, Option<&str>) -> R + Send + Sync + 'static,
        R: MaybeFuture<Result<I, ToolError>, M>,
        I: IntoIterator<Item = Resource> + 'static,
    {
        let source = self.in_mode(pages::source(f));
        self.edit().resources.source = Some(source);
        self
    }
}

pub(super) fn reading<O, R, M>(f: impl Fn(&Cx) -> R + Send + Sync + 'static) -> Handler
where
    R: MaybeFuture<Result<O, ToolError>, M>,
    O: IntoContents + 'static,
{
    R::handler(move |cx| Ok(f(cx)), Cx::outcome_of_read)
}

impl Cx {
    /// Returns the URI of the resource that is read. Empty for every other request.
    pub fn uri(&self) -> &str {
        self.read_target().map_or("", |target| &target.uri)
    }

    /// Returns a variable of the template in the URI that is read, decoded. Its value is not empty.
    /// It may contain any character, also a `/` that was encoded: see [`path`](Self::path).
    ///
    /// # Errors
    /// [`ToolError::NotFound`] if the value is not a `T`: there is no such resource.
    /// [`ToolError::Failed`] if the template has no variable of this name.
    pub fn variable<T: FromStr>(&self, name: &str) -> Result<T, ToolError> {
        self.variable_text(name)?.parse().map_err(|_| ToolError::NotFound)
    }

    /// Returns a variable as a relative path that stays below the directory that it is joined to
    /// (2026-07-28 resources, security considerations). A link in that directory may still lead
    /// out of it: compare the canonical path if others can create one.
    ///
    /// # Errors
    /// [`ToolError::NotFound`] if it is absolute, or has a segment `.` or `..`, a `\` or a NUL.
    /// [`ToolError::Failed`] if the template has no variable of this name.
    pub fn path(&self, name: &str) -> Result<&str, ToolError> {
        let path = self.variable_text(name)?;
        if stays_below(path) { Ok(path) } else { Err(ToolError::NotFound) }
    }

    fn variable_text(&self, name: &str) -> Result<&str, ToolError> {
        let variables = self.read_target().map_or(&[][..], |target| &target.variables);
        let value = variables.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
        value.ok_or_else(|| ToolError::Failed(format!("the template has no variable `{name}`")))
    }

    /// Converts the return value of a handler of `resources/read` to an outcome that the revision
    /// of the request can represent. Contents that are not base64 become the error `-32603`.
    fn outcome_of_read(&self, output: impl IntoContents) -> Outcome {
        let (uri, mime_type) = match self.read_target() {
            Some(target) => (target.uri.as_str(), target.mime_type.as_deref()),
            None => ("", None),
        };
        let result = match output.into_contents(uri, mime_type) {
            Ok(result) if result.contents.is_empty() => return self.failed(ToolError::NotFound),
            Ok(result) => result,
            Err(e) => return self.failed(e),
        };
        match result.contents.iter().try_for_each(|contents| contents.check()) {
            Ok(()) => Outcome::Complete(result.write(self.context().version)),
            Err(e) => self.failed(ToolError::Failed(e.to_string())),
        }
    }

    fn read_target(&self) -> Option<&ReadTarget> {
        match self.target() {
            HandlerTarget::Resource(target) => Some(target),
            _ => None,
        }
    }

    /// Returns the error for what this request names and the handler does not have.
    pub(super) fn not_found(&self) -> ErrorObject {
        match self.target() {
            HandlerTarget::Resource(target) => not_found(&target.uri),
            HandlerTarget::Prompt(target) => invalid(&format!("Unknown prompt: {}", target.name)),
            _ => invalid("not found"),
        }
    }
}

#[cfg(test)]
mod tests;
