//! The offer of a server: a table of tools and methods that maps a request to an answer, or to a
//! handler that the driver runs. A router runs nothing itself, holds no state between requests, and
//! can serve any number of connections at once.

mod completion;
mod cx;
mod handler;
mod mirrored;
mod output;
mod pages;
mod prompts;
mod resources;
mod target;
mod validated;
mod watch;

#[cfg(test)]
mod tests;

pub use crate::model::tools::IntoSchema;
pub use cx::{Cx, Invocation, Port};
pub use handler::{AsyncHandlerFn, BoxFuture, Handler, HandlerFn};
pub use output::{IntoCompletion, IntoContents, IntoMessages, IntoOutput, Json, ToolError};
pub use prompts::prompt;
pub use resources::{resource, template};

use self::completion::Completions;
use self::prompts::Prompts;
use self::resources::Resources;
use self::target::Target;
use crate::input::{Answer, Outcome};
use crate::model::capabilities::BadExtension;
use crate::model::lifecycle::Implementation;
use crate::model::mirror::Mirror;
use crate::model::tools::Tool;
use crate::rpc::{ErrorObject, JsonKind, Object, RawJson, code};
use crate::schema::{BadSchema, Validator};
use crate::server::{Incoming, Responder, ServerConfig};
use crate::version::Era;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use core::future::Future;
use cx::tool_outcome;
use serde::de::DeserializeOwned;
use validated::{Refusal, Schemas};
use watch::OnWatch;

/// Creates a tool of this name. Add its properties: `tool("add").describe("adds two integers")`.
pub fn tool(name: &str) -> Tool {
    Tool::new(name)
}

/// The tools and methods of a server, with their handlers. It belongs to no runtime: every driver
/// serves it.
///
/// A handler is a function of a [`Cx`] and the arguments, and returns a `Result<_, ToolError>`. The
/// arguments are decoded from a JSON object: a struct, a map, or `()` for none. Only their type
/// must be written. `?` converts a text, an I/O error and an error of the protocol into a
/// [`ToolError`]. A panic answers with an error.
///
/// ```
/// # #[cfg(feature = "std")] {
/// use mcp_proto::{Json, Router, tool};
///
/// #[derive(serde::Deserialize)]
/// struct Add {
///     a: i64,
///     b: i64,
/// }
///
/// #[derive(serde::Deserialize)]
/// struct File {
///     path: String,
/// }
///
/// let router = Router::new("calc", "1.0")
///     .tool(tool("add"), |_cx, add: Add| Ok(add.a.checked_add(add.b).ok_or("too large")?))
///     .tool(tool("size"), |_cx, file: File| Ok(Json(std::fs::metadata(file.path)?.len())))
///     .tool_async(tool("later"), |cx, add: Add| async move {
///         std::future::ready(()).await; // of any executor
///         if cx.is_cancelled() { Err("cancelled".into()) } else { Ok(add.a + add.b) }
///     });
/// # drop(router);
/// # }
/// ```
///
/// A closure with captures that returns a future clones them for each call:
///
/// ```
/// # use mcp_proto::{Router, tool};
/// #[derive(serde::Deserialize)]
/// struct Guest {
///     name: String,
/// }
///
/// let greeting = String::from("hello");
/// let greet = move |_cx, guest: Guest| {
///     let greeting = greeting.clone();
///     async move { Ok(format!("{greeting}, {}", guest.name)) }
/// };
/// let router = Router::new("greeter", "1.0").tool_async(tool("greet"), greet);
/// # drop(router);
/// ```
///
/// Futures are `Send`. On a runtime whose futures are not, spawn locally in the handler, and await
/// a channel.
#[derive(Debug)]
pub struct Router {
    config: ServerConfig,
    /// In the order of registration, which is the order of `tools/list`.
    tools: Vec<Offered>,
    by_name: BTreeMap<String, usize>,
    resources: Resources,
    prompts: Prompts,
    completions: Completions,
    methods: BTreeMap<String, Handler>,
    on_watch: Option<OnWatch>,
}

/// A tool and its handler.
#[derive(Debug)]
struct Offered {
    tool: Tool,
    handler: Handler,
    /// The arguments that header fields mirror.
    mirror: Mirror,
    /// Present if the server validates.
    schemas: Option<Schemas>,
}

impl Offered {
    fn compile(&mut self, validator: Option<&Validator>) {
        self.schemas = validator.map(|validator| Schemas::compile(validator, &self.tool));
    }
}

/// The result of routing a request.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "it is taken apart at once; a box would be one allocation more for each call"
)]
pub enum Routed<'a> {
    /// The router has the answer.
    Answer(Answer),
    /// Run this handler with a [`Cx`] of this invocation. [`Cx::outcome`] turns its result into the
    /// answer.
    Handle {
        /// The handler.
        handler: &'a Handler,
        /// The invocation.
        invocation: Invocation,
        /// The right to answer.
        responder: Responder,
    },
}

/// The handler or the result of a request.
enum Resolved<'a> {
    Tool(&'a Offered, RawJson),
    /// Anything whose handler reads the params.
    Other(&'a Handler, Target),
    /// Anything else that has arguments.
    WithArguments(&'a Handler, Target, RawJson),
    Result(Object),
}

impl Router {
    /// Creates a router of this name and version without tools.
    pub fn new(name: &str, version: &str) -> Self {
        Self {
            config: ServerConfig::new(Implementation::new(name, version)),
            tools: Vec::new(),
            by_name: BTreeMap::new(),
            resources: Resources::default(),
            prompts: Prompts::default(),
            completions: Completions::default(),
            methods: BTreeMap::new(),
            on_watch: None,
        }
    }

    /// Sets the instructions for a language model.
    #[must_use]
    pub fn instructions(mut self, text: &str) -> Self {
        self.config.instructions = Some(text.into());
        self
    }

    /// Declares an extension with its settings. A handler that needs a client with the extension
    /// calls [`Cx::require_extension`].
    ///
    /// # Errors
    /// [`BadExtension`] if the identifier has no prefix or is not valid.
    pub fn extension(mut self, id: &str, settings: Object) -> Result<Self, BadExtension> {
        self.config.capabilities.extensions.declare(id, settings)?;
        Ok(self)
    }

    /// Changes the configuration: limits, revisions, cache hints, the sealing key, the validator,
    /// and for HTTP the hosts, the path and sessions. With a new validator, the schemas of all
    /// tools are compiled, once.
    ///
    /// ```
    /// # use mcp_proto::Router;
    /// # let router = Router::new("calc", "1.0");
    /// let router = router.configure(|config| {
    ///     config.limits.server.max_running_requests = 64;
    ///     config.limits.frame.max_request_body = 1 << 20;
    /// });
    /// # assert_eq!(router.config().limits.server.max_running_requests, 64);
    /// ```
    #[must_use]
    pub fn configure(mut self, change: impl FnOnce(&mut ServerConfig)) -> Self {
        let before = self.config.validate.clone();
        change(&mut self.config);
        if self.config.validate != before {
            self.tools.iter_mut().for_each(|offered| offered.compile(self.config.validate.as_ref()));
        }
        self
    }

    /// Returns the tools with a schema that the validator of this router cannot use, and the reason
    /// for each. A call of such a tool is answered with the error `-32603`, and the diagnostic
    /// `bad-schema`. Its handler does not run, since its result could not be checked. Other tools
    /// are not affected. Empty without [`ServerConfig::validate`].
    pub fn bad_schemas(&self) -> impl Iterator<Item = (&Tool, &BadSchema)> {
        self.tools.iter().filter_map(|offered| Some((&offered.tool, offered.schemas.as_ref()?.bad()?)))
    }

    /// Adds a tool with a function, which may block: a driver runs it on a thread that may wait.
    /// `tool` is `tool("add").describe(..)` or a [`Tool`]. It replaces one of the same name, at the
    /// same position.
    ///
    /// # Panics
    /// If no server may offer the tool. For a tool that you did not define yourself, call
    /// [`Tool::check`] first.
    #[must_use]
    pub fn tool<A, O, F>(self, tool: impl Into<Tool>, f: F) -> Self
    where
        F: Fn(&Cx, A) -> Result<O, ToolError> + Send + Sync + 'static,
        A: DeserializeOwned,
        O: IntoOutput,
    {
        self.add(tool, Handler::Sync(Handler::function(f)))
    }

    /// Like [`tool`](Self::tool), for a function that returns at once: a driver runs it on the
    /// thread that routes the request. A function that blocks stops every connection of that
    /// thread.
    ///
    /// # Panics
    /// As [`tool`](Self::tool).
    #[must_use]
    pub fn tool_inline<A, O, F>(self, tool: impl Into<Tool>, f: F) -> Self
    where
        F: Fn(&Cx, A) -> Result<O, ToolError> + Send + Sync + 'static,
        A: DeserializeOwned,
        O: IntoOutput,
    {
        self.add(tool, Handler::Inline(Handler::function(f)))
    }

    /// Like [`tool`](Self::tool), for a function that returns a future. Cancelling the request
    /// drops the future. A driver may poll it first on the thread that reads its connection, so
    /// neither the function nor the future may block.
    ///
    /// # Panics
    /// As [`tool`](Self::tool).
    #[must_use]
    pub fn tool_async<A, O, R, F>(self, tool: impl Into<Tool>, f: F) -> Self
    where
        F: Fn(Cx, A) -> R + Send + Sync + 'static,
        A: DeserializeOwned,
        R: Future<Output = Result<O, ToolError>> + Send + 'static,
        O: IntoOutput + 'static,
    {
        self.add(tool, Handler::async_function(f))
    }

    /// Adds a tool with any handler.
    ///
    /// # Panics
    /// As [`tool`](Self::tool).
    #[must_use]
    pub fn add(mut self, tool: impl Into<Tool>, handler: Handler) -> Self {
        let tool = tool.into();
        let mirror = tool.mirror().unwrap_or_else(|e| panic!("{e}"));
        let mut offered = Offered { tool, handler, mirror, schemas: None };
        offered.compile(self.config.validate.as_ref());
        match self.by_name.get(&offered.tool.name).and_then(|&at| self.tools.get_mut(at)) {
            Some(entry) => *entry = offered,
            None => {
                self.by_name.insert(offered.tool.name.clone(), self.tools.len());
                self.tools.push(offered);
            }
        }
        self
    }

    /// Serves a method that this crate does not know, in every revision, with a function that may
    /// block. It returns [`Json`] of an object, or `()`. The router never receives `initialize`,
    /// `server/discover` and `ping`.
    #[must_use]
    pub fn method<A, O, F>(self, method: &str, f: F) -> Self
    where
        F: Fn(&Cx, A) -> Result<O, ToolError> + Send + Sync + 'static,
        A: DeserializeOwned,
        O: IntoOutput,
    {
        self.add_method(method, Handler::Sync(Handler::function(f)))
    }

    /// Like [`method`](Self::method), for a function that returns a future.
    #[must_use]
    pub fn method_async<A, O, R, F>(self, method: &str, f: F) -> Self
    where
        F: Fn(Cx, A) -> R + Send + Sync + 'static,
        A: DeserializeOwned,
        R: Future<Output = Result<O, ToolError>> + Send + 'static,
        O: IntoOutput + 'static,
    {
        self.add_method(method, Handler::async_function(f))
    }

    /// Serves a method with any handler.
    #[must_use]
    pub fn add_method(mut self, method: &str, handler: Handler) -> Self {
        self.methods.insert(method.into(), handler);
        self
    }

    /// Returns the configuration of a [`Server`](crate::Server) for this router. It declares
    /// `tools`, `resources`, `prompts` and `completions` if there are any.
    pub fn config(&self) -> ServerConfig {
        let mut config = self.config.clone();
        let capabilities = &mut config.capabilities;
        if !self.tools.is_empty() {
            capabilities.tools.get_or_insert_default();
        }
        if self.resources.are_offered() {
            capabilities.resources.get_or_insert_default();
        }
        if self.prompts.are_offered() {
            capabilities.prompts.get_or_insert_default();
        }
        if self.completions.are_offered() {
            capabilities.completions.get_or_insert_default();
        }
        config
    }

    /// Routes a request. This compares header fields with arguments, opens sealed state, and reads
    /// and writes JSON: call it outside of any lock.
    pub fn route(&self, mut responder: Responder, mut incoming: Incoming) -> Routed<'_> {
        let found = self.look_up(&responder, &incoming);
        match found.and_then(|found| responder.open(&mut incoming).map(|()| found)) {
            Ok(Resolved::Tool(Offered { tool, handler, schemas, .. }, arguments)) => {
                let version = responder.version();
                let promised = tool.output_schema_in(version).is_some();
                let admitted = schemas.as_ref().map(|schemas| schemas.admit(version, &arguments, promised));
                let output = match admitted.transpose() {
                    Ok(output) => output.flatten(),
                    Err(Refusal::Arguments(error)) => {
                        return Routed::Answer(responder.write(tool_outcome(version, Err(error))));
                    }
                    Err(Refusal::Schema(bad)) => {
                        let (error, diagnostic) = bad.answer(tool);
                        return Routed::Answer(responder.fail(error, diagnostic));
                    }
                };
                if promised {
                    responder.expect_structure(output);
                }
                Routed::Handle { handler, invocation: Invocation::new(incoming, Target::Tool, arguments), responder }
            }
            Ok(Resolved::Other(handler, target)) => {
                Routed::Handle { handler, invocation: Invocation::of_params(incoming, target), responder }
            }
            Ok(Resolved::WithArguments(handler, target, arguments)) => {
                Routed::Handle { handler, invocation: Invocation::new(incoming, target, arguments), responder }
            }
            Ok(Resolved::Result(result)) => Routed::Answer(responder.write(Outcome::Complete(result))),
            Err(error) => Routed::Answer(responder.write(Outcome::Error(error))),
        }
    }

    /// Finds the handler of a request, or its result if the router has it.
    fn look_up(&self, responder: &Responder, incoming: &Incoming) -> Result<Resolved<'_>, ErrorObject> {
        self.agree(incoming)?;
        if let Some(decided) = self.on_watch.as_ref().and_then(|on_watch| on_watch.decide(incoming)) {
            return decided;
        }
        if let Some(handler) = self.methods.get(&*incoming.method) {
            return Ok(Resolved::Other(handler, Target::Method));
        }
        let declared = &responder.config().capabilities;
        let has_tools = declared.tools.is_some() || !self.tools.is_empty();
        let has_resources = declared.resources.is_some() || self.resources.are_offered();
        let has_prompts = declared.prompts.is_some() || self.prompts.are_offered();
        let completes = declared.completions.is_some() || self.completions.are_offered();
        match &*incoming.method {
            "tools/list" if has_tools => self.list(responder, incoming).map(Resolved::Result),
            "tools/call" if has_tools => self.find(incoming),
            "resources/list" if has_resources => self.resources.list(responder, incoming),
            "resources/templates/list" if has_resources => self.resources.list_templates(responder, incoming),
            "resources/read" if has_resources => self.resources.find(responder, incoming),
            "prompts/list" if has_prompts => self.prompts.list(responder, incoming),
            "prompts/get" if has_prompts => self.prompts.find(incoming),
            "completion/complete" if completes => self.find_completion(incoming),
            _ => Err(ErrorObject::new(code::METHOD_NOT_FOUND, "Method not found")),
        }
    }

    /// Checks that the header fields of a call of 2026-07-28 match its arguments. Other faults are
    /// reported later.
    fn agree(&self, incoming: &Incoming) -> Result<(), ErrorObject> {
        let Incoming { method, params, context, .. } = incoming;
        let Some(head) = context.http.as_ref().filter(|_| context.version.era() == Era::Modern) else { return Ok(()) };
        let name = params.str("name").filter(|_| method == "tools/call");
        match name.and_then(|name| self.offered(&name)) {
            Some(offered) => mirrored::check(&offered.mirror, params, head),
            None => Ok(()),
        }
    }

    /// Returns one page of `tools/list`.
    fn list(&self, responder: &Responder, incoming: &Incoming) -> Result<Object, ErrorObject> {
        let start = match incoming.params.get("cursor") {
            None => 0,
            Some(cursor) if cursor.kind() == JsonKind::Null => 0,
            Some(cursor) => self.after(&cursor).ok_or_else(|| invalid("the cursor is not valid"))?,
        };
        let size = responder.config().limits.server.page_size.max(1);
        let rest = self.tools.get(start..).unwrap_or_default();
        let page: Vec<Object> = rest.iter().take(size).map(|offered| offered.tool.write(responder.version())).collect();
        let mut result = Object::new().with("tools", page);
        if let (true, Some(last)) = (rest.len() > size, rest.get(size - 1)) {
            result.set("nextCursor", URL_SAFE_NO_PAD.encode(&last.tool.name).as_str());
        }
        Ok(result)
    }

    /// Returns the start of a page. A cursor names the last tool of the previous page, so that it
    /// stays valid when other tools are added or removed.
    fn after(&self, cursor: &RawJson) -> Option<usize> {
        let cursor: String = cursor.decode().ok()?;
        let name = String::from_utf8(URL_SAFE_NO_PAD.decode(cursor).ok()?).ok()?;
        self.by_name.get(&name).map(|at| at + 1)
    }

    /// Returns the handler of a call and its arguments. A call of an unknown tool is an error in
    /// every revision.
    fn find(&self, incoming: &Incoming) -> Result<Resolved<'_>, ErrorObject> {
        let name = incoming.params.required_str("name").map_err(|e| invalid(&format!("{e}")))?;
        let offered = self.offered(&name).ok_or_else(|| invalid(&format!("Unknown tool: {name}")))?;
        let arguments = match incoming.params.get("arguments") {
            None => RawJson::empty_object(),
            Some(arguments) if arguments.kind() == JsonKind::Null => RawJson::empty_object(),
            Some(arguments) if arguments.kind() == JsonKind::Object => arguments,
            Some(_) => return Err(invalid("`arguments` is not an object")),
        };
        Ok(Resolved::Tool(offered, arguments))
    }

    fn offered(&self, name: &str) -> Option<&Offered> {
        self.by_name.get(name).and_then(|&at| self.tools.get(at))
    }
}

fn invalid(message: &str) -> ErrorObject {
    ErrorObject::new(code::INVALID_PARAMS, message)
}
