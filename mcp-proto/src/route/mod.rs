//! What a server offers: a table of tools and methods that turns a request into an answer, or into a handler to run. It runs nothing
//! itself, holds no state between requests, and can serve any number of connections at once.

mod cx;
mod output;

#[cfg(test)]
mod tests;

pub use crate::model::tools::IntoSchema;
pub use cx::{Cx, Invocation, Port};
pub use output::{IntoOutput, Json, ToolError};

use crate::input::{Answer, Outcome};
use crate::model::lifecycle::Implementation;
use crate::model::tools::Tool;
use crate::rpc::{ErrorObject, JsonKind, Object, RawJson, code};
use crate::server::{Incoming, Responder, ServerConfig};
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

/// What a server offers, and who serves it: `H` is whatever the driver can run.
#[derive(Debug)]
pub struct Router<H> {
    config: ServerConfig,
    /// In the order of registration, which is the order of `tools/list`.
    tools: Vec<(Tool, H)>,
    by_name: BTreeMap<String, usize>,
    methods: BTreeMap<String, H>,
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

    /// Changes the configuration: limits, revisions, cache hints, the sealing key.
    #[must_use]
    pub fn configure(mut self, change: impl FnOnce(&mut ServerConfig)) -> Self {
        change(&mut self.config);
        self
    }

    /// Adds a tool; `tool` is `tool("add").describe(..)` or a [`Tool`]. One of the same name is replaced, in its place.
    #[must_use]
    pub fn add(mut self, tool: impl Into<Tool>, handler: H) -> Self {
        let tool = tool.into();
        match self.by_name.get(&tool.name).and_then(|&at| self.tools.get_mut(at)) {
            Some(entry) => *entry = (tool, handler),
            None => {
                self.by_name.insert(tool.name.clone(), self.tools.len());
                self.tools.push((tool, handler));
            }
        }
        self
    }

    /// Adds a tool that a function serves.
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

    /// Decides what a request comes to. Opens a sealed state, reads and writes JSON: do it outside any lock.
    pub fn route(&self, mut responder: Responder, mut incoming: Incoming) -> Routed<'_, H> {
        if let Err(error) = responder.open(&mut incoming) {
            return Routed::Answer(responder.write(Outcome::Error(error)));
        }
        if let Some(handler) = self.methods.get(&incoming.method) {
            let invocation = Invocation::of_method(incoming);
            return Routed::Handle { handler, invocation, responder };
        }
        let has_tools = responder.config().capabilities.tools.is_some() || !self.tools.is_empty();
        let routed = match incoming.method.as_str() {
            "tools/list" if has_tools => self.list(&responder, &incoming),
            "tools/call" if has_tools => match self.find(&incoming) {
                Ok((handler, arguments)) => {
                    let invocation = Invocation::of_tool(incoming, arguments);
                    return Routed::Handle { handler, invocation, responder };
                }
                Err(error) => Err(error),
            },
            _ => Err(ErrorObject::new(code::METHOD_NOT_FOUND, "Method not found")),
        };
        Routed::Answer(responder.write(routed.map_or_else(Outcome::Error, Outcome::Complete)))
    }

    /// One page of `tools/list`.
    fn list(&self, responder: &Responder, incoming: &Incoming) -> Result<Object, ErrorObject> {
        let config = responder.config();
        let start = match incoming.params.get("cursor") {
            None => 0,
            Some(cursor) if cursor.kind() == JsonKind::Null => 0,
            Some(cursor) => self.after(cursor).ok_or_else(|| invalid("the cursor is not valid"))?,
        };
        let size = config.limits.server.page_size.max(1);
        let rest = self.tools.get(start..).unwrap_or_default();
        let page: Vec<RawJson> =
            rest.iter().take(size).map(|(tool, _)| tool.write(responder.version()).into()).collect();
        let mut result = Object::new().with("tools", page);
        if let (true, Some((last, _))) = (rest.len() > size, rest.get(size - 1)) {
            result.set("nextCursor", URL_SAFE_NO_PAD.encode(&last.name).as_str().into());
        }
        if responder.version().era() == Era::Modern {
            config.list_cache.write(&mut result);
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
    fn find(&self, incoming: &Incoming) -> Result<(&H, RawJson), ErrorObject> {
        let name: String = incoming.params.required("name").map_err(|e| invalid(&format!("{e}")))?;
        let known = self.by_name.get(&name).and_then(|&at| self.tools.get(at));
        let (_, handler) = known.ok_or_else(|| invalid(&format!("Unknown tool: {name}")))?;
        let arguments = match incoming.params.get("arguments") {
            None => RawJson::empty_object(),
            Some(arguments) if arguments.kind() == JsonKind::Null => RawJson::empty_object(),
            Some(arguments) if arguments.kind() == JsonKind::Object => arguments.clone(),
            Some(_) => return Err(invalid("`arguments` is not an object")),
        };
        Ok((handler, arguments))
    }
}

fn invalid(message: &str) -> ErrorObject {
    ErrorObject::new(code::INVALID_PARAMS, message)
}
