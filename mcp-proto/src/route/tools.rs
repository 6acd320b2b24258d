//! The tools of a router.

use super::pages;
use super::scopes::{RouteRefusal, ScopeDemand as _};
use super::validated::Schemas;
use super::{Cx, Handler, IntoOutput, Resolution, Router, ToolError, invalid};
use crate::model::mirror::Mirror;
use crate::model::tasks::TaskSupport;
use crate::model::tools::Tool;
use crate::rpc::{JsonKind, RawJson};
use crate::schema::{BadSchema, Validator};
use crate::server::{IncomingRequest, Responder};
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use core::future::Future;
use serde::de::DeserializeOwned;

/// Creates a tool of this name. Add its properties: `tool("add").describe("adds two integers")`.
pub fn tool(name: &str) -> Tool {
    Tool::new(name)
}

/// What a router knows of tools, by name.
#[derive(Clone, Debug, Default)]
pub(super) struct ToolTable(BTreeMap<String, ToolEntry>);

/// A tool and its handler.
#[derive(Clone, Debug)]
pub(super) struct ToolEntry {
    pub(super) tool: Tool,
    pub(super) handler: Handler,
    /// The arguments that header fields mirror.
    pub(super) mirror: Mirror,
    /// Present if the server validates.
    pub(super) schemas: Option<Schemas>,
}

impl ToolEntry {
    fn compile(&mut self, validator: Option<&Validator>) {
        self.schemas = validator.map(|validator| Schemas::compile(validator, &self.tool));
    }
}

impl AsRef<Tool> for ToolEntry {
    fn as_ref(&self) -> &Tool {
        &self.tool
    }
}

impl ToolTable {
    pub(super) fn are_offered(&self) -> bool {
        !self.0.is_empty()
    }

    /// Returns whether calls of any of them may become tasks.
    pub(super) fn have_tasks(&self) -> bool {
        self.0.values().any(|offered| offered.tool.task != TaskSupport::Never)
    }

    /// Returns them all.
    pub(super) fn all(&self) -> impl Iterator<Item = &Tool> {
        self.0.values().map(|offered| &offered.tool)
    }

    pub(super) fn get(&self, name: &str) -> Option<&ToolEntry> {
        self.0.get(name)
    }

    /// Returns whether `tools/list` has the same tools in another router.
    pub(super) fn lists_as(&self, other: &Self) -> bool {
        pages::same(&self.0, &other.0)
    }

    /// Compiles the schemas of all tools.
    pub(super) fn compile(&mut self, validator: Option<&Validator>) {
        self.0.values_mut().for_each(|offered| offered.compile(validator));
    }

    /// Returns a page of `tools/list`.
    pub(super) fn list(
        &self,
        responder: &Responder,
        incoming: &IncomingRequest,
        hides: bool,
    ) -> Result<Resolution<'_>, RouteRefusal> {
        pages::page::<Tool>(&self.0, None, responder, incoming, hides)
    }

    /// Returns the handler of a call and its arguments. A call of an unknown tool is an error in
    /// every revision.
    pub(super) fn find(&self, incoming: &IncomingRequest) -> Result<Resolution<'_>, RouteRefusal> {
        let name = incoming.params.required_str("name").map_err(|e| invalid(&format!("{e}")))?;
        let offered = self.get(&name).ok_or_else(|| invalid(&format!("Unknown tool: {name}")))?;
        offered.tool.check_scopes(&incoming.context)?;
        offered.tool.begins_as(incoming)?;
        let arguments = match incoming.params.get("arguments") {
            None => RawJson::empty_object(),
            Some(arguments) if arguments.kind() == JsonKind::Null || arguments.is_empty_array() => {
                RawJson::empty_object()
            }
            Some(arguments) if arguments.kind() == JsonKind::Object => arguments,
            Some(_) => return Err(invalid("`arguments` is not an object").into()),
        };
        Ok(Resolution::Tool(offered, arguments))
    }
}

impl Router {
    /// Adds a tool with a function, which may block: a driver runs it on a thread that may wait.
    /// `tool` is `tool("add").describe(..)` or a [`Tool`]. It replaces one of the same name. The
    /// list of tools is sorted by name.
    ///
    /// # Panics
    /// If no server may offer the tool. For a tool that you did not define yourself, call
    /// [`Tool::check`] first. Also if it shows a resource ([`Tool::ui`]) that was not added before.
    #[must_use]
    pub fn tool<A, O, F>(self, tool: impl Into<Tool>, f: F) -> Self
    where
        F: Fn(&Cx, A) -> Result<O, ToolError> + Send + Sync + 'static,
        A: DeserializeOwned,
        O: IntoOutput + 'static,
    {
        let handler = self.in_mode(Handler::of(f, Cx::outcome));
        self.add(tool, handler)
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
        self.add(tool, Handler::of(move |cx, arguments| f(cx.clone(), arguments), Cx::outcome))
    }

    /// Adds a tool with any handler.
    ///
    /// # Panics
    /// As [`tool`](Self::tool).
    #[must_use]
    pub fn add(mut self, tool: impl Into<Tool>, handler: Handler) -> Self {
        let tool = tool.into();
        let mirror = tool.mirror().unwrap_or_else(|e| panic!("{e}"));
        self.check_app_of(&tool);
        let offer = self.edit();
        let mut offered = ToolEntry { tool, handler, mirror, schemas: None };
        offered.compile(offer.config.validate.as_ref());
        offer.tools.0.insert(offered.tool.name.clone(), offered);
        self
    }

    /// Removes the tool of this name, if there is one.
    #[must_use]
    pub fn without_tool(mut self, name: &str) -> Self {
        self.edit().tools.0.remove(name);
        self
    }

    /// Returns the tools with a schema that the validator of this router cannot use, and the reason
    /// for each. A call of such a tool is answered with the error `-32603`, and the diagnostic
    /// `bad-schema`. Its handler does not run, since its result could not be checked. Other tools
    /// are not affected. Empty without [`ServerConfig::validate`](crate::server::ServerConfig).
    pub fn bad_schemas(&self) -> impl Iterator<Item = (&Tool, &BadSchema)> {
        self.0.tools.0.values().filter_map(|offered| Some((&offered.tool, offered.schemas.as_ref()?.bad()?)))
    }
}
