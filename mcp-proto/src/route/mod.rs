//! What a server offers: a table of tools and methods that turns a request into an answer, or into a handler to run. It runs nothing
//! itself, holds no state between requests, and can serve any number of connections at once.

mod cx;
#[cfg(feature = "http")]
mod mirrored;
mod output;

#[cfg(test)]
mod tests;

pub use crate::model::tools::IntoSchema;
pub use cx::{Cx, Invocation, Port};
pub use output::{IntoOutput, Json, ToolError};

use crate::input::{Answer, Outcome};
use crate::model::lifecycle::Implementation;
use crate::model::mirror::Mirror;
use crate::model::tools::Tool;
use crate::rpc::{ErrorObject, JsonKind, Object, RawJson, code};
use crate::server::{Incoming, Responder, ServerConfig};
#[cfg(feature = "http")]
use crate::version::Era;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// A tool of this name, to be described further: `tool("add").describe("adds two integers")`.
pub fn tool(name: &str) -> Tool {
    Tool::new(name)
}

/// What a server offers, and who serves it: `H` is whatever the driver can run. An adapter has a `Router` of its own handlers; without one
/// say it at the beginning, `Router::<fn(&Cx) -> Outcome>::new(..)`, since each closure has a type of its own.
#[derive(Debug)]
pub struct Router<H> {
    config: ServerConfig,
    /// In the order of registration, which is the order of `tools/list`.
    tools: Vec<Offered<H>>,
    by_name: BTreeMap<String, usize>,
    methods: BTreeMap<String, H>,
}

/// A tool, and who serves it.
#[derive(Debug)]
struct Offered<H> {
    tool: Tool,
    handler: H,
    /// The arguments that must stand in header fields as well.
    #[cfg_attr(not(feature = "http"), expect(dead_code, reason = "only HTTP has fields"))]
    mirror: Mirror,
}

/// What a request comes to.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "it is taken apart at once; a box would be one allocation more for each call"
)]
pub enum Routed<'a, H> {
    /// The router knows the answer.
    Answer(Answer),
    /// Run this handler with a [`Cx`] of this invocation, and answer with what [`Cx::outcome`] makes of its result.
    Handle {
        /// The handler.
        handler: &'a H,
        /// What to run it on.
        invocation: Invocation,
        /// The right to answer.
        responder: Responder,
    },
}

/// What serves a request.
enum Found<'a, H> {
    Tool(&'a Offered<H>, RawJson),
    Method(&'a H),
    Result(Object),
}

/// A handler made from a function of the user: `A` is its type of arguments. Each adapter implements it for its own `H`.
pub trait FromFn<F, A>: Sized {
    /// Wraps the function.
    fn from_fn(f: F) -> Self;
}

impl<H> Router<H> {
    /// A server of this name and version that offers nothing yet.
    pub fn new(name: &str, version: &str) -> Self {
        Self {
            config: ServerConfig::new(Implementation::new(name, version)),
            tools: Vec::new(),
            by_name: BTreeMap::new(),
            methods: BTreeMap::new(),
        }
    }

    /// How to use the server, for a language model.
    #[must_use]
    pub fn instructions(mut self, text: &str) -> Self {
        self.config.instructions = Some(text.into());
        self
    }

    /// Declares that the list of tools may change while the server runs, so that clients want to be told: see
    /// [`Server::publish`](crate::server::Server::publish).
    #[must_use]
    pub fn tools_change(mut self) -> Self {
        let tools = self.config.capabilities.tools.get_or_insert_with(Object::new);
        tools.set("listChanged", true.into());
        self
    }

    /// Changes the configuration: limits, revisions, cache hints, the sealing key; of a server over HTTP its hosts, path and sessions.
    ///
    /// ```
    /// # use mcp_proto::{Cx, Outcome, Router};
    /// # let router = Router::<fn(&Cx) -> Outcome>::new("calc", "1.0");
    /// let router = router.configure(|config| {
    ///     config.limits.server.max_running_requests = 64;
    ///     config.limits.frame.max_request_body = 1 << 20;
    /// });
    /// # assert_eq!(router.config().limits.server.max_running_requests, 64);
    /// ```
    #[must_use]
    pub fn configure(mut self, change: impl FnOnce(&mut ServerConfig)) -> Self {
        change(&mut self.config);
        self
    }

    /// Adds a tool; `tool` is `tool("add").describe(..)` or a [`Tool`]. One of the same name is replaced, in its place.
    ///
    /// # Panics
    /// If no server may offer the tool: the program is wrong. Ask [`Tool::check`] first about one that comes from elsewhere.
    #[must_use]
    pub fn add(mut self, tool: impl Into<Tool>, handler: H) -> Self {
        let tool = tool.into();
        let mirror = tool.mirror().unwrap_or_else(|e| panic!("{e}"));
        let offered = Offered { tool, handler, mirror };
        match self.by_name.get(&offered.tool.name).and_then(|&at| self.tools.get_mut(at)) {
            Some(entry) => *entry = offered,
            None => {
                self.by_name.insert(offered.tool.name.clone(), self.tools.len());
                self.tools.push(offered);
            }
        }
        self
    }

    /// Adds a tool that a function serves.
    ///
    /// # Panics
    /// As [`add`](Self::add).
    #[must_use]
    pub fn tool<F, A>(self, tool: impl Into<Tool>, f: F) -> Self
    where
        H: FromFn<F, A>,
    {
        self.add(tool, H::from_fn(f))
    }

    /// Serves a method that this crate does not know, in every revision. Its handler returns [`Json`] of an object, or `()`. `initialize`,
    /// `server/discover` and `ping` never get here.
    #[must_use]
    pub fn add_method(mut self, method: &str, handler: H) -> Self {
        self.methods.insert(method.into(), handler);
        self
    }

    /// As [`add_method`](Self::add_method), with a function.
    #[must_use]
    pub fn method<F, A>(self, method: &str, f: F) -> Self
    where
        H: FromFn<F, A>,
    {
        self.add_method(method, H::from_fn(f))
    }

    /// The configuration of a [`Server`](crate::Server) for this router. It declares `tools` if there are any.
    pub fn config(&self) -> ServerConfig {
        let mut config = self.config.clone();
        if !self.tools.is_empty() && config.capabilities.tools.is_none() {
            config.capabilities.tools = Some(Object::new());
        }
        config
    }

    /// Decides what a request comes to. Compares header fields with arguments, opens a sealed state, reads and writes JSON: do it outside
    /// any lock.
    pub fn route(&self, mut responder: Responder, mut incoming: Incoming) -> Routed<'_, H> {
        let found = self.look_up(&responder, &incoming);
        match found.and_then(|found| responder.open(&mut incoming).map(|()| found)) {
            Ok(Found::Tool(Offered { tool, handler, .. }, arguments)) => {
                if tool.output_schema_in(responder.version()).is_some() {
                    responder.expect_structure();
                }
                Routed::Handle { handler, invocation: Invocation::of_tool(incoming, arguments), responder }
            }
            Ok(Found::Method(handler)) => {
                Routed::Handle { handler, invocation: Invocation::of_method(incoming), responder }
            }
            Ok(Found::Result(result)) => Routed::Answer(responder.write(Outcome::Complete(result))),
            Err(error) => Routed::Answer(responder.write(Outcome::Error(error))),
        }
    }

    /// Who serves a request, if the router does not know the answer.
    fn look_up(&self, responder: &Responder, incoming: &Incoming) -> Result<Found<'_, H>, ErrorObject> {
        #[cfg(feature = "http")]
        self.agree(incoming)?;
        let has_tools = responder.config().capabilities.tools.is_some() || !self.tools.is_empty();
        match (self.methods.get(&incoming.method), incoming.method.as_str()) {
            (Some(handler), _) => Ok(Found::Method(handler)),
            (None, "tools/list") if has_tools => self.list(responder, incoming).map(Found::Result),
            (None, "tools/call") if has_tools => self.find(incoming),
            (None, _) => Err(ErrorObject::new(code::METHOD_NOT_FOUND, "Method not found")),
        }
    }

    /// Whether the header fields of a call of 2026-07-28 agree with its arguments. What else may be wrong with it comes later.
    #[cfg(feature = "http")]
    fn agree(&self, incoming: &Incoming) -> Result<(), ErrorObject> {
        let Incoming { method, params, context, .. } = incoming;
        let Some(head) = context.http.as_ref().filter(|_| context.version.era() == Era::Modern) else { return Ok(()) };
        let name = params.optional::<String>("name").ok().flatten().filter(|_| method == "tools/call");
        match name.and_then(|name| self.offered(&name)) {
            Some(offered) => mirrored::check(&offered.mirror, params, head),
            None => Ok(()),
        }
    }

    /// One page of `tools/list`.
    fn list(&self, responder: &Responder, incoming: &Incoming) -> Result<Object, ErrorObject> {
        let start = match incoming.params.get("cursor") {
            None => 0,
            Some(cursor) if cursor.kind() == JsonKind::Null => 0,
            Some(cursor) => self.after(cursor).ok_or_else(|| invalid("the cursor is not valid"))?,
        };
        let size = responder.config().limits.server.page_size.max(1);
        let rest = self.tools.get(start..).unwrap_or_default();
        let page: Vec<RawJson> =
            rest.iter().take(size).map(|offered| offered.tool.write(responder.version()).into()).collect();
        let mut result = Object::new().with("tools", page);
        if let (true, Some(last)) = (rest.len() > size, rest.get(size - 1)) {
            result.set("nextCursor", URL_SAFE_NO_PAD.encode(&last.tool.name).as_str().into());
        }
        Ok(result)
    }

    /// Where a page begins. A cursor names the last tool of the page before it, so that it stays good when other tools come and go.
    fn after(&self, cursor: &RawJson) -> Option<usize> {
        let cursor: String = cursor.decode().ok()?;
        let name = String::from_utf8(URL_SAFE_NO_PAD.decode(cursor).ok()?).ok()?;
        self.by_name.get(&name).map(|at| at + 1)
    }

    /// The handler of a call, and its arguments. A call that names no tool of ours is wrong in every revision.
    fn find(&self, incoming: &Incoming) -> Result<Found<'_, H>, ErrorObject> {
        let name: String = incoming.params.required("name").map_err(|e| invalid(&format!("{e}")))?;
        let offered = self.offered(&name).ok_or_else(|| invalid(&format!("Unknown tool: {name}")))?;
        let arguments = match incoming.params.get("arguments") {
            None => RawJson::empty_object(),
            Some(arguments) if arguments.kind() == JsonKind::Null => RawJson::empty_object(),
            Some(arguments) if arguments.kind() == JsonKind::Object => arguments.clone(),
            Some(_) => return Err(invalid("`arguments` is not an object")),
        };
        Ok(Found::Tool(offered, arguments))
    }

    fn offered(&self, name: &str) -> Option<&Offered<H>> {
        self.by_name.get(name).and_then(|&at| self.tools.get(at))
    }
}

fn invalid(message: &str) -> ErrorObject {
    ErrorObject::new(code::INVALID_PARAMS, message)
}
