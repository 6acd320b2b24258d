//! The offer of a server: a table of tools and methods that maps a request to an answer, or to a
//! handler that the driver runs. A router runs nothing itself, holds no state between requests, and
//! can serve any number of connections at once.

mod apps;
mod around;
mod completion;
mod cx;
mod handler;
mod mirrored;
mod output;
mod pages;
mod prompts;
#[cfg(target_has_atomic = "64")]
mod rate_limit;
mod replace;
mod resources;
mod scopes;
#[cfg(feature = "skills")]
mod skills;
mod target;
mod tasks;
mod tools;
mod validated;
mod watch;

#[cfg(test)]
mod tests;

pub use crate::model::tools::IntoSchema;
pub use around::{Before, Next};
pub use cx::{BlockingCall, Cx, Invocation, Port, block_here};
pub use handler::{AsyncHandlerFn, BoxFuture, Callback, Handler, HandlerFn, MaybeFuture};
pub use output::{IntoCompletion, IntoContents, IntoMessages, IntoOutput, Json, ToolError};
pub use prompts::prompt;
#[cfg(target_has_atomic = "64")]
pub use rate_limit::{Key, Rate, RateLimit};
pub use replace::BadReplacement;
pub use resources::{resource, template};
pub use tools::tool;

use self::around::Layers;
use self::completion::Completions;
use self::prompts::Prompts;
use self::resources::ResourceTable;
use self::scopes::RouteRefusal;
use self::target::HandlerTarget;
use self::tools::{ToolEntry, ToolTable};
use crate::input::{Answer, Outcome};
use crate::model::capabilities::BadExtension;
use crate::model::lifecycle::Implementation;
use crate::rpc::{ErrorObject, Object, RawJson, code};
use crate::server::{IncomingRequest, Responder, ServerConfig};
use crate::version::Era;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;
use cx::tool_outcome;
use serde::de::DeserializeOwned;
use validated::CallDefect;
use watch::OnWatch;

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
/// Tools, prompts, resources and templates have such a method, whose function gets a [`Cx`] of its
/// own. Every other function of a router returns a value or a future, and a future borrows nothing
/// of its arguments. [`inline`](Self::inline) is for functions that return at once.
///
/// Futures are `Send`. On a runtime whose futures are not, spawn locally in the handler, and await
/// a channel.
///
/// A router is a value: a clone is cheap, and a method that adds something to a clone leaves the
/// original as it is. A running server can [`replace`](Self::replace) its router.
#[derive(Clone, Debug)]
pub struct Router(Arc<Offer>);

/// What a router offers.
#[derive(Clone, Debug)]
struct Offer {
    config: ServerConfig,
    tools: ToolTable,
    resources: ResourceTable,
    prompts: Prompts,
    completions: Completions,
    #[cfg(feature = "skills")]
    skills: skills::SkillTable,
    methods: BTreeMap<String, Handler>,
    on_watch: Option<OnWatch>,
    layers: Layers,
    /// Whether functions that are added return at once.
    is_inline: bool,
    /// Whether lists leave out what their client may not use.
    hides_unscoped: bool,
}

/// The result of routing a request.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "it is taken apart at once; a box would be one allocation more for each call"
)]
pub enum RouteResult {
    /// The router has the answer.
    Answer(Answer),
    /// Run this handler with a [`Cx`] of this invocation. [`Cx::outcome`] turns its result into the
    /// answer.
    Handle {
        /// The handler.
        handler: Handler,
        /// The invocation.
        invocation: Invocation,
        /// The right to answer.
        responder: Responder,
    },
}

/// The handler or the result of a request.
enum Resolution<'a> {
    Tool(&'a ToolEntry, RawJson),
    /// Anything whose handler reads the params.
    Other(&'a Handler, HandlerTarget),
    /// Anything else that has arguments.
    WithArguments(&'a Handler, HandlerTarget, RawJson),
    Result(Object),
}

impl Router {
    /// Creates a router of this name and version without tools.
    pub fn new(name: &str, version: &str) -> Self {
        Self(Arc::new(Offer {
            config: ServerConfig::new(Implementation::new(name, version)),
            tools: ToolTable::default(),
            resources: ResourceTable::default(),
            prompts: Prompts::default(),
            completions: Completions::default(),
            #[cfg(feature = "skills")]
            skills: skills::SkillTable::default(),
            methods: BTreeMap::new(),
            on_watch: None,
            layers: Layers::default(),
            is_inline: false,
            hides_unscoped: false,
        }))
    }

    /// Sets the instructions for a language model.
    #[must_use]
    pub fn instructions(mut self, text: &str) -> Self {
        self.edit().config.instructions = Some(text.into());
        self
    }

    /// Declares an extension with its settings. A handler that needs a client with the extension
    /// calls [`Cx::require_extension`].
    ///
    /// # Errors
    /// [`BadExtension`] if the identifier has no prefix or is not valid.
    pub fn extension(mut self, id: &str, settings: Object) -> Result<Self, BadExtension> {
        self.edit().config.capabilities.extensions.declare(id, settings)?;
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
        let offer = self.edit();
        let before = offer.config.validate.clone();
        change(&mut offer.config);
        if offer.config.validate != before {
            offer.tools.compile(offer.config.validate.as_ref());
        }
        self
    }

    /// Serves a method that this crate does not know, in every revision, with a function that may
    /// block, or that returns a future. It returns [`Json`] of an object, or `()`. The router never
    /// receives `initialize`, `server/discover` and `ping`.
    #[must_use]
    pub fn method<A, O, R, M, F>(mut self, method: &str, f: F) -> Self
    where
        F: Fn(&Cx, A) -> R + Send + Sync + 'static,
        A: DeserializeOwned,
        R: MaybeFuture<Result<O, ToolError>, M>,
        O: IntoOutput + 'static,
    {
        let handler = self.in_mode(Handler::of(f, Cx::outcome));
        self.edit().methods.insert(method.into(), handler);
        self
    }

    /// Adds what `add` adds, for functions that return at once: a driver runs them on the thread
    /// that routes the request. A function that blocks stops every connection of that thread.
    ///
    /// ```
    /// # use mcp_proto::{Router, tool};
    /// let router = Router::new("sensor", "1.0").inline(|router| {
    ///     router
    ///         .tool(tool("unit"), |_cx, ()| Ok("degrees Celsius"))
    ///         .resource("sensor://unit", |_cx| Ok("degrees Celsius"))
    /// });
    /// # drop(router);
    /// ```
    #[must_use]
    pub fn inline(mut self, add: impl FnOnce(Self) -> Self) -> Self {
        let before = core::mem::replace(&mut self.edit().is_inline, true);
        let mut router = add(self);
        router.edit().is_inline = before;
        router
    }

    /// Adds a function that decides on every request before its handler runs: it may refuse it. It
    /// sees the [method](Cx::method), the [name](Cx::name) of what is called or read, and the
    /// principal ([`Cx::context`]). It runs at each entry of a handler, also with the answers that
    /// it has asked for ([`Cx::round`]).
    ///
    /// The functions of `before`, [`after`](Self::after) and [`around_async`](Self::around_async)
    /// surround each other in the order in which they are added, the first outermost, and all
    /// handlers, whether these are added before or after them. A request that the router refuses
    /// itself does not reach them: of an unknown tool, with arguments of another shape, or without
    /// a scope.
    ///
    /// A handler that is [inline](Self::inline) stays so only if all functions around it are.
    ///
    /// ```
    /// # use mcp_proto::{Router, tool};
    /// let router = Router::new("shop", "1.0")
    ///     .before(|cx: &mcp_proto::Cx| match cx.context().principal {
    ///         None if cx.method() == "tools/call" => Err("log in first".into()),
    ///         _ => Ok(()),
    ///     })
    ///     .tool(tool("buy"), |_cx, ()| Ok("bought"));
    /// # drop(router);
    /// ```
    #[must_use]
    pub fn before(mut self, f: impl Before) -> Self {
        let offer = self.edit();
        offer.layers.before(f, offer.is_inline);
        self
    }

    /// Adds a function that sees every outcome before it is sent, and may change it: see
    /// [`before`](Self::before). A question to the user is an outcome too
    /// ([`Outcome::NeedInput`]).
    #[must_use]
    pub fn after(mut self, f: impl Fn(&Cx, &mut Outcome) + Send + Sync + 'static) -> Self {
        let offer = self.edit();
        offer.layers.after(Arc::new(f), offer.is_inline);
        self
    }

    /// Adds an async function around every handler: see [`before`](Self::before). It runs the rest
    /// of the way with [`Next::run`], or answers by itself. All handlers then run in a future: one
    /// that may block does so where [`Port::block`] lets it.
    ///
    /// ```
    /// # use mcp_proto::{Router, tool};
    /// let router = Router::new("calc", "1.0")
    ///     .around_async(|cx, next| async move {
    ///         let outcome = next.run(cx).await;
    ///         // A span ends here.
    ///         outcome
    ///     })
    ///     .tool(tool("one"), |_cx, ()| Ok("1"));
    /// # drop(router);
    /// ```
    #[must_use]
    pub fn around_async<F, R>(mut self, f: F) -> Self
    where
        F: Fn(Cx, Next) -> R + Send + Sync + 'static,
        R: Future<Output = Outcome> + Send + 'static,
    {
        self.edit().layers.around(Arc::new(move |cx, next| Box::pin(f(cx, next))));
        self
    }

    /// Returns the configuration of a [`Server`](crate::Server) for this router. It declares
    /// `tools`, `resources`, `prompts`, `completions` and skills if there are any.
    pub fn config(&self) -> ServerConfig {
        let mut config = self.0.config.clone();
        let capabilities = &mut config.capabilities;
        if self.0.tools.are_offered() {
            capabilities.tools.get_or_insert_default();
        }
        if self.0.resources.are_offered() {
            capabilities.resources.get_or_insert_default();
        }
        if self.0.prompts.are_offered() {
            capabilities.prompts.get_or_insert_default();
        }
        if self.0.completions.are_offered() {
            capabilities.completions.get_or_insert_default();
        }
        #[cfg(feature = "skills")]
        self.0.skills.declare(capabilities);
        config.tasks |= self.0.tools.have_tasks();
        config
    }

    /// Routes a request. This compares header fields with arguments, opens sealed state, and reads
    /// and writes JSON: call it outside of any lock. A further round of a request up to 2025-11-25
    /// is routed by the router of its first round, even if this is another one.
    pub fn route(&self, mut responder: Responder, mut incoming: IncomingRequest) -> RouteResult {
        let began_with = responder.router().map(Self);
        let router = began_with.as_ref().unwrap_or(self);
        let found = router.look_up(&responder, &incoming);
        let opened = found.and_then(|found| {
            responder.open(&mut incoming)?;
            Ok(found)
        });
        let own;
        let (handler, invocation) = match opened {
            Ok(Resolution::Tool(ToolEntry { tool, handler, schemas, .. }, arguments)) => {
                let version = responder.version();
                let promised = tool.output_schema_in(version).is_some();
                let admitted = schemas.as_ref().map(|schemas| schemas.admit(version, &arguments, promised));
                let output = match admitted.transpose() {
                    Ok(output) => output.flatten(),
                    Err(CallDefect::Arguments(error)) => {
                        return RouteResult::Answer(responder.write(tool_outcome(version, Err(error))));
                    }
                    Err(CallDefect::Schema(bad)) => {
                        let (error, diagnostic) = bad.answer(tool);
                        return RouteResult::Answer(responder.fail(error, diagnostic));
                    }
                };
                if promised {
                    responder.expect_structure(output);
                }
                let begins_as = tool.begins_as(&incoming).ok().flatten();
                (
                    handler,
                    Invocation::new(incoming, HandlerTarget::Tool, arguments).beginning_as(begins_as, tool.reruns),
                )
            }
            Ok(Resolution::Other(handler, target)) => (handler, Invocation::of_params(incoming, target)),
            Ok(Resolution::WithArguments(handler, target, arguments)) => {
                (handler, Invocation::new(incoming, target, arguments))
            }
            Ok(Resolution::Result(result)) if router.0.layers.are_none() => {
                return RouteResult::Answer(responder.write(Outcome::Complete(result)));
            }
            Ok(Resolution::Result(result)) => {
                own = Handler::inline(move |_| Outcome::Complete(result.clone()));
                (&own, Invocation::of_params(incoming, HandlerTarget::Router))
            }
            Err(RouteRefusal::Error(error)) => return RouteResult::Answer(responder.write(Outcome::Error(error))),
            Err(RouteRefusal::Scope(scopes)) => return RouteResult::Answer(responder.deny(scopes)),
        };
        let (handler, invocation) = match router.0.layers.are_none() {
            true => (handler.clone(), invocation),
            false => router.0.layers.wrap(handler.clone(), invocation),
        };
        let invocation = invocation.received_at(responder.received_at());
        responder.keep_router(|| Arc::clone(&router.0) as _);
        RouteResult::Handle { handler, invocation, responder }
    }

    /// Returns the offer to change it. Copies it first if a clone of this router shares it.
    fn edit(&mut self) -> &mut Offer {
        Arc::make_mut(&mut self.0)
    }

    /// Returns the handler of a function that is added: see [`inline`](Self::inline).
    fn in_mode(&self, handler: Handler) -> Handler {
        match handler {
            Handler::Sync(f) if self.0.is_inline => Handler::Inline(f),
            handler => handler,
        }
    }

    /// Finds the handler of a request, or its result if the router has it.
    fn look_up(&self, responder: &Responder, incoming: &IncomingRequest) -> Result<Resolution<'_>, RouteRefusal> {
        let Offer { tools, resources, prompts, completions, methods, on_watch, .. } = &*self.0;
        self.agree(incoming)?;
        if let Some(decided) = on_watch.as_ref().and_then(|on_watch| on_watch.decide(incoming)) {
            return decided.map_err(RouteRefusal::Error);
        }
        let hides = self.0.hides_unscoped;
        if let Some(handler) = methods.get(&*incoming.method) {
            return Ok(Resolution::Other(handler, HandlerTarget::Method));
        }
        let declared = &responder.config().capabilities;
        #[cfg(feature = "skills")]
        if let Some(found) = self.0.skills.look_up(resources, responder, incoming, hides) {
            return found;
        }
        let has_tools = declared.tools.is_some() || tools.are_offered();
        let has_resources = declared.resources.is_some() || resources.are_offered();
        let has_prompts = declared.prompts.is_some() || prompts.are_offered();
        let completes = declared.completions.is_some() || completions.are_offered();
        match &*incoming.method {
            "tools/list" if has_tools => tools.list(responder, incoming, hides),
            "tools/call" if has_tools => tools.find(incoming),
            "resources/list" if has_resources => resources.list(responder, incoming, hides),
            "resources/templates/list" if has_resources => resources.list_templates(responder, incoming, hides),
            "resources/read" if has_resources => resources.find(responder, incoming),
            "prompts/list" if has_prompts => prompts.list(responder, incoming, hides),
            "prompts/get" if has_prompts => prompts.find(incoming),
            "completion/complete" if completes => self.find_completion(incoming),
            _ => Err(ErrorObject::new(code::METHOD_NOT_FOUND, "Method not found").into()),
        }
    }

    /// Checks that the header fields of a call of 2026-07-28 match its arguments. Other faults are
    /// reported later.
    fn agree(&self, incoming: &IncomingRequest) -> Result<(), ErrorObject> {
        let IncomingRequest { method, params, context, .. } = incoming;
        let Some(head) = context.http.as_ref().filter(|_| context.version.era() == Era::Modern) else { return Ok(()) };
        let name = params.str("name").filter(|_| method == "tools/call");
        match name.and_then(|name| self.0.tools.get(&name)) {
            Some(offered) => mirrored::check(&offered.mirror, params, head),
            None => Ok(()),
        }
    }
}

fn invalid(message: &str) -> ErrorObject {
    ErrorObject::new(code::INVALID_PARAMS, message)
}
