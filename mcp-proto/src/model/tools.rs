//! `tools/list` and `tools/call`.

use super::content::Content;
use super::described::described;
use super::icon::Icon;
use super::lifecycle::meta;
use super::mirror::{self, Mirror};
use super::page::{List, ListElement};
use super::tasks::TaskSupport;
use crate::auth::Scopes;
use crate::call::{Call, Method, RawResult};
use crate::peer_text::Visible;
use crate::rpc::{DecodeError, EncodeError, JsonKind, JsonValue, Object, RawJson, ToObject};
use crate::version::ProtocolVersion;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Creates a call of `tools/list`, which returns one page. [`Pages`](crate::Pages) fetches all of
/// them.
pub fn list() -> Call<List<Tool>> {
    List::call()
}

/// Creates a call of the tool of this name.
pub fn call(name: &str) -> Call<CallTool> {
    // For small arguments.
    const ROOM: usize = 120;

    Call::new("tools/call", Ok(Object::with_room(ROOM, "name", name)))
}

/// The method `tools/call`.
#[derive(Clone, Copy, Debug)]
pub struct CallTool;

impl Call<CallTool> {
    /// Sets the arguments: a serde value, an [`Object`] or a [`RawJson`] that serializes to a JSON
    /// object. They are serialized at once. The engine reports an error when the call is made.
    #[must_use]
    pub fn arguments<T: ToObject + ?Sized>(self, arguments: &T) -> Self {
        self.param("arguments", arguments.to_object_json())
    }
}

impl Call<CallTool> {
    /// Asks for a task as the response, which only 2025-11-25 has, if the client and the tool have
    /// tasks: see [`ClientConfig::tasks`](crate::ClientConfig::tasks). A tool that requires it is
    /// always called so. On 2026-07-28 the server decides.
    #[must_use]
    pub fn as_task(self) -> Self {
        self.with_options(|options| options.as_task = true)
    }
}

impl Method for CallTool {
    type Output = CallToolResult;

    fn decode(result: RawResult) -> Result<CallToolResult, DecodeError> {
        CallToolResult::from_object(Object::from_json(result.json)?)
    }
}

/// A tool, as a server describes it.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct Tool {
    /// Its name, for calls.
    pub name: String,
    /// Its name, for people.
    pub title: Option<String>,
    /// What it does, for a language model.
    pub description: Option<String>,
    /// The JSON Schema of its arguments, unchanged.
    pub input_schema: RawJson,
    /// The JSON Schema of its structured result, unchanged.
    pub output_schema: Option<RawJson>,
    /// The effects that the server declares. Rely on them only if you trust the server.
    pub annotations: ToolAnnotations,
    /// Its icons.
    pub icons: Vec<Icon>,
    /// Its `_meta`.
    pub meta: Object,
    /// Whether its calls may become tasks. On the wire `execution.taskSupport`, which only
    /// 2025-11-25 has.
    pub task: TaskSupport,
    /// Whether a call becomes a task before its handler runs. Never sent.
    pub at_once: bool,
    /// Whether its tasks may run again: see [`rerun`](Self::rerun). Never sent.
    pub reruns: bool,
    /// The scopes that a client needs to use it. Never sent, and empty if a server describes it.
    pub scopes: Scopes,
    /// Members that this type does not name, unchanged.
    pub other: Object,
}

/// The declared effects of a tool (`ToolAnnotations`). All are hints, and all are optional.
#[derive(Clone, PartialEq, Debug, Default)]
#[non_exhaustive]
pub struct ToolAnnotations {
    /// It changes nothing.
    pub read_only: Option<bool>,
    /// It may destroy data. Meaningful if it is not read-only.
    pub destructive: Option<bool>,
    /// A second call with the same arguments has no further effect.
    pub idempotent: Option<bool>,
    /// It interacts with systems outside of the server.
    pub open_world: Option<bool>,
    /// Other members, including `title`.
    pub other: Object,
}

/// The keys of [`ToolAnnotations`] on the wire.
const HINTS: [&str; 4] = ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"];

impl ToolAnnotations {
    fn read(object: Object) -> Result<Self, DecodeError> {
        let [read_only, destructive, idempotent, open_world] = HINTS.map(|key| object.optional(key));
        Ok(Self {
            read_only: read_only?,
            destructive: destructive?,
            idempotent: idempotent?,
            open_world: open_world?,
            other: object.without(&HINTS),
        })
    }

    fn write(&self) -> Object {
        let values = [self.read_only, self.destructive, self.idempotent, self.open_world];
        HINTS.iter().zip(values).fold(self.other.clone(), |object, (key, value)| object.with_opt(key, value))
    }
}

impl Tool {
    const KEYS: [&str; 8] =
        ["name", "title", "description", "inputSchema", "outputSchema", "annotations", "icons", meta::META];

    /// Creates a tool of this name, which accepts any object.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            title: None,
            description: None,
            input_schema: Object::new().with("type", "object").into(),
            output_schema: None,
            annotations: ToolAnnotations::default(),
            icons: Vec::new(),
            meta: Object::new(),
            task: TaskSupport::Never,
            at_once: false,
            reruns: false,
            scopes: Scopes::new(),
            other: Object::new(),
        }
    }

    /// Lets its calls become tasks: the client gets a response at once, and asks for the result
    /// later. On 2026-07-28 the handler decides when ([`Cx::into_task`](crate::Cx::into_task)), and
    /// on 2025-11-25 the client, with its request. Revisions before 2025-11-25 have no tasks.
    ///
    /// ```
    /// # use mcp_proto::{Router, TaskSupport, tool};
    /// # use mcp_proto::model::tasks::TaskOptions;
    /// let router = Router::new("builder", "1.0").tool(
    ///     tool("build").task(TaskSupport::Optional),
    ///     |cx, ()| {
    ///         cx.into_task(TaskOptions::new())?; // false: the client waits for the result
    ///         cx.status("compiling").ok();
    ///         Ok("built")
    ///     },
    /// );
    /// # drop(router);
    /// ```
    #[must_use]
    pub const fn task(mut self, support: TaskSupport) -> Self {
        self.task = support;
        self
    }

    /// Makes a task of each call before its handler runs, where [`task`](Self::task) lets it. A
    /// handler that asks its client first must not use this: it would ask in the task.
    #[must_use]
    pub const fn at_once(mut self) -> Self {
        self.at_once = true;
        self
    }

    /// Lets the handler of a task run again from the beginning at another server of a
    /// [store](crate::server::store), if its own is lost. It runs at least once: its effects may
    /// happen twice. It gets the answers that it got in the task, and asks again in the task for
    /// those of earlier rounds of a request of 2026-07-28.
    /// [`TaskOptions::rerun`](crate::model::tasks::TaskOptions::rerun) does so for one task.
    #[must_use]
    pub const fn rerun(mut self, reruns: bool) -> Self {
        self.reruns = reruns;
        self
    }

    /// Declares that it changes nothing. Hints are not sent before 2025-03-26, which introduced
    /// them.
    #[must_use]
    pub const fn read_only(mut self) -> Self {
        self.annotations.read_only = Some(true);
        self
    }

    /// Declares that a second call with the same arguments has no further effect.
    #[must_use]
    pub const fn idempotent(mut self) -> Self {
        self.annotations.idempotent = Some(true);
        self
    }

    /// Declares whether it may destroy data.
    #[must_use]
    pub const fn destructive(mut self, destructive: bool) -> Self {
        self.annotations.destructive = Some(destructive);
        self
    }

    /// Declares whether it interacts with systems outside of the server.
    #[must_use]
    pub const fn open_world(mut self, open_world: bool) -> Self {
        self.annotations.open_world = Some(open_world);
        self
    }

    /// Sets the JSON Schema of the arguments: a [`RawJson`], a string of JSON text, or a value that
    /// serializes to the schema, such as the result of `schemars::schema_for!(Arguments)`. A schema
    /// without `type` gets `"type":"object"`, which MCP requires.
    ///
    /// # Panics
    /// If it is not JSON, not an object, or has a `type` other than `"object"`.
    #[must_use]
    pub fn input_schema(mut self, schema: impl IntoSchema) -> Self {
        let json = schema.into_schema().expect("an input schema is a JSON object");
        let object = Object::read(&json).unwrap_or_default();
        self.input_schema = match object.get("type") {
            None => Object::new().with("type", "object").with_all(&object).into(),
            Some(kind) => {
                assert!(kind == "object".into(), "the type of an input schema is \"object\"");
                json
            }
        };
        self
    }

    /// Sets the JSON Schema of its structured result. Not sent before 2025-06-18. Until 2025-11-25
    /// it is sent only if its `type` is `"object"`.
    ///
    /// In revisions that have output schemas, a result needs structured content: return
    /// [`Json`](crate::route::Json). The engine sends a complete result without it, and without
    /// `isError`, as an error of the tool, and emits the diagnostic `missing-structure`. The
    /// content is validated against the schema if the server has a validator:
    /// [`ServerConfig::validate`](crate::ServerConfig::validate).
    ///
    /// # Panics
    /// If it is not JSON or not an object.
    #[must_use]
    pub fn output_schema(mut self, schema: impl IntoSchema) -> Self {
        self.output_schema = Some(schema.into_schema().expect("an output schema is a JSON object"));
        self
    }

    /// Sets the input schema to that of a type, which the handler takes as its arguments.
    ///
    /// ```
    /// use mcp_proto::schema::schemars::{self, JsonSchema};
    /// use mcp_proto::{Json, Router, tool};
    /// use serde::{Deserialize, Serialize};
    ///
    /// #[derive(Deserialize, JsonSchema)]
    /// struct Add {
    ///     a: i64,
    ///     /// what is added
    ///     b: i64,
    /// }
    ///
    /// #[derive(Serialize, JsonSchema)]
    /// struct Sum {
    ///     sum: i64,
    /// }
    ///
    /// let add = tool("add").input::<Add>().output::<Sum>();
    /// assert_eq!(add.required_arguments(), ["a", "b"]);
    /// let router = Router::new("calc", "1.0")
    ///     .tool(add, |_cx, add: Add| Ok(Json(Sum { sum: add.a + add.b })));
    /// # drop(router);
    /// ```
    ///
    /// # Panics
    /// As [`input_schema`](Self::input_schema): if the schema has a `type` other than `"object"`.
    #[cfg(feature = "schema")]
    #[must_use]
    pub fn input<T: schemars::JsonSchema + ?Sized>(self) -> Self {
        self.input_schema(crate::schema::input_schema::<T>().expect("a schema of limited depth"))
    }

    /// Sets the output schema to that of a type, which the handler returns in
    /// [`Json`](crate::route::Json). See [`output_schema`](Self::output_schema).
    ///
    /// # Panics
    /// If the schema of the type is not an object.
    #[cfg(feature = "schema")]
    #[must_use]
    pub fn output<T: schemars::JsonSchema + ?Sized>(self) -> Self {
        self.output_schema(crate::schema::output_schema::<T>().expect("a schema of limited depth"))
    }

    /// Checks that a server may offer this tool: its input schema is an object of `type`
    /// `"object"`, and its `x-mcp-header` annotations are valid (2026-07-28 transports, schema
    /// extension). Clients ignore a tool with invalid annotations. Use this for a tool that you did
    /// not define yourself, before you add it to a [`Router`](crate::Router). Do not annotate
    /// secrets: intermediaries see and may log header fields.
    ///
    /// # Errors
    /// [`BadTool`] for the schema, or for the first invalid annotation. The value of an annotation
    /// is a token, and no two are equal, regardless of case. The property has the type `string`,
    /// `integer` or `boolean`, and only `properties` lead to it.
    pub fn check(&self) -> Result<(), BadTool> {
        self.mirror().map(drop)
    }

    /// Returns its annotated arguments.
    pub(crate) fn mirror(&self) -> Result<Mirror, BadTool> {
        if self.ui_resource().is_some_and(|uri| !super::apps::is_ui(&uri)) {
            let why = "its `_meta.ui.resourceUri` is no valid `ui://` URI".into();
            return Err(BadTool { name: self.name.clone(), why });
        }
        let schema = Object::read(&self.input_schema);
        let mirror = match schema.is_ok_and(|schema| schema.str("type").as_deref() == Some("object")) {
            true => mirror::read(&self.input_schema),
            false => Err("the type of its input schema is not \"object\"".into()),
        };
        mirror.map_err(|why| BadTool { name: self.name.clone(), why })
    }

    /// Returns the output schema, if this revision can represent it.
    pub(crate) fn output_schema_in(&self, version: ProtocolVersion) -> Option<&RawJson> {
        let rules = version.rules();
        let is_object =
            |schema: &RawJson| Object::read(schema).is_ok_and(|schema| schema.str("type").as_deref() == Some("object"));
        self.output_schema.as_ref().filter(|schema| rules.titles && (rules.any_structured || is_object(schema)))
    }

    /// Returns the names of the required arguments, from the top level of its schema.
    pub fn required_arguments(&self) -> Vec<String> {
        Object::read(&self.input_schema)
            .ok()
            .and_then(|schema| schema.optional("required").ok().flatten())
            .unwrap_or_default()
    }
}

impl ListElement for Tool {
    const METHOD: &'static str = "tools/list";
    const MEMBER: &'static str = "tools";

    fn key(&self) -> &str {
        &self.name
    }

    fn read(json: &RawJson) -> Result<Self, DecodeError> {
        let object = Object::read(json)?;
        Ok(Self {
            name: object.required("name")?,
            title: object.optional("title")?,
            description: object.optional("description")?,
            input_schema: object
                .object("inputSchema")
                .map(|_| object.get("inputSchema"))?
                .unwrap_or_else(RawJson::empty_object),
            output_schema: object.optional_object("outputSchema")?.and_then(|_| object.get("outputSchema")),
            annotations: ToolAnnotations::read(object.optional_object("annotations")?.unwrap_or_default())
                .map_err(|why| why.within("annotations"))?,
            icons: Icon::read_all(&object)?,
            meta: object.optional_object(meta::META)?.unwrap_or_default(),
            task: TaskSupport::read(object.optional_object("execution").ok().flatten().as_ref()),
            at_once: false,
            reruns: false,
            scopes: Scopes::new(),
            other: object.without(&Self::KEYS),
        })
    }

    fn write(&self, version: ProtocolVersion) -> Object {
        let rules = version.rules();
        let mut object = self.with_texts(Object::new(), version);
        object.set("inputSchema", &self.input_schema);
        if let Some(schema) = self.output_schema_in(version) {
            object.set("outputSchema", schema);
        }
        let annotations = self.annotations.write();
        if rules.tool_annotations && !annotations.is_empty() {
            object.set("annotations", annotations);
        }
        Icon::add_all(&self.icons, &rules, &mut object);
        meta::add(&self.meta, version, &mut object);
        let mut object = object.with_all(&self.other);
        if rules.tasks
            && let Some(support) = self.task.as_str()
        {
            let execution = object.optional_object("execution").ok().flatten().unwrap_or_default();
            object.set("execution", execution.with("taskSupport", support));
        }
        object
    }
}

described!(Tool);

/// A tool that no server may offer.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct BadTool {
    /// Its name.
    pub name: String,
    /// The violated rule, for people.
    pub why: String,
}

impl fmt::Display for BadTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the tool `{}` cannot be offered: {}", Visible(&self.name), Visible(&self.why))
    }
}

impl core::error::Error for BadTool {}

impl From<&str> for Tool {
    /// Creates a tool of this name, which accepts any object.
    fn from(name: &str) -> Self {
        Self::new(name)
    }
}

impl From<String> for Tool {
    /// Creates a tool of this name, which accepts any object.
    fn from(name: String) -> Self {
        Self::new(name)
    }
}

/// A value that converts to a JSON Schema.
pub trait IntoSchema {
    /// Returns the schema as it is sent.
    ///
    /// # Errors
    /// [`EncodeError`] if it is not a JSON object.
    fn into_schema(self) -> Result<RawJson, EncodeError>;
}

impl<T: Serialize> IntoSchema for T {
    fn into_schema(self) -> Result<RawJson, EncodeError> {
        let mut json = RawJson::encode(&self)?;
        if json.kind() == JsonKind::String {
            let text: String = json.decode().map_err(|e| EncodeError::new(alloc::format!("{e}")))?;
            json = RawJson::parse(text.into_bytes()).map_err(|e| EncodeError::new(alloc::format!("{e}")))?;
        }
        if json.kind() == JsonKind::Object { Ok(json) } else { Err(EncodeError::new("not an object")) }
    }
}

/// The result of a tool.
#[derive(Clone, PartialEq, Debug, Default)]
#[non_exhaustive]
pub struct CallToolResult {
    /// The content, for a language model. May be empty.
    pub content: Vec<Content>,
    /// The result as data. From 2026-07-28 on it may be any JSON value, including `null`. In
    /// 2025-06-18 and 2025-11-25 it is an object. Earlier revisions do not have it.
    pub structured: Option<RawJson>,
    /// Whether the tool failed. Such a result is for the model, which may try something else.
    pub is_error: bool,
    /// The `_meta` member and others, unchanged.
    pub other: Object,
}

impl CallToolResult {
    /// Creates a result with one block of text.
    pub fn text(text: impl Into<String>) -> Self {
        Self { content: alloc::vec![Content::text(text)], ..Self::default() }
    }

    /// Creates a failure with one block of text.
    pub fn error(text: impl Into<String>) -> Self {
        Self { is_error: true, ..Self::text(text) }
    }

    /// Adds the result as data, beside its content. [`Json`](crate::route::Json) also adds a block
    /// of text.
    ///
    /// # Errors
    /// [`EncodeError`] if it cannot be serialized.
    pub fn with_structured<T: Serialize + ?Sized>(self, value: &T) -> Result<Self, EncodeError> {
        Ok(Self { structured: Some(RawJson::encode(value)?), ..self })
    }

    /// Sets a member of its `_meta`.
    #[must_use]
    pub fn meta(mut self, key: &str, value: impl JsonValue) -> Self {
        meta::set_in(&mut self.other, key, value);
        self
    }

    /// Returns the text of the first block of text.
    pub fn first_text(&self) -> Option<&str> {
        self.content.iter().find_map(Content::as_text)
    }

    /// Decodes the structured result as a `T`.
    ///
    /// # Errors
    /// [`DecodeError`] if there is none, or if it has another shape.
    pub fn structured<T: DeserializeOwned>(&self) -> Result<T, DecodeError> {
        self.structured.as_ref().ok_or_else(|| DecodeError::new("no structured content"))?.decode()
    }

    /// Decodes a result. Absent `content` counts as empty. A block that cannot be decoded is
    /// [`Content::Unknown`].
    ///
    /// # Errors
    /// [`DecodeError`] if it does not have this shape.
    pub fn read(json: &RawJson) -> Result<Self, DecodeError> {
        Self::from_object(Object::read(json)?)
    }

    fn from_object(object: Object) -> Result<Self, DecodeError> {
        let content = match object.kind("content") {
            Some(JsonKind::Array) => {
                let blocks = object.get("content").into_iter().flat_map(|content| content.elements());
                blocks.map(|block| Content::read_any(&block)).collect()
            }
            Some(JsonKind::Null) | None => Vec::new(),
            Some(_) => return Err(DecodeError::new("`content`: expected an array")),
        };
        let is_error = object.optional("isError")?.unwrap_or(false);
        let structured = object.get("structuredContent");
        let other = object.without(&["content", "structuredContent", "isError", "resultType"]);
        Ok(Self { content, structured, is_error, other })
    }

    /// Returns the result in a form that this revision can represent. Structured content that it
    /// cannot represent becomes a block of text if there is none.
    #[must_use]
    pub fn lower(self, version: ProtocolVersion) -> Self {
        let rules = version.rules();
        let mut content: Vec<_> = self.content.into_iter().map(|block| block.lower(version)).collect();
        let object = |json: &RawJson| json.kind() == JsonKind::Object;
        let carries = |json: &RawJson| rules.any_structured || (rules.titles && object(json));
        if let (Some(json), true) = (&self.structured, content.is_empty()) {
            content.push(Content::text(json.as_str()));
        }
        Self { content, structured: self.structured.filter(carries), is_error: self.is_error, other: self.other }
    }

    /// Encodes the result.
    pub fn write(&self) -> Object {
        // For what a server adds.
        const ROOM: usize = 240;

        let mut object = Object::with_room(ROOM, "content", &self.content);
        if let Some(structured) = &self.structured {
            object.set("structuredContent", structured);
        }
        if self.is_error {
            object.set("isError", true);
        }
        object.with_all(&self.other)
    }
}
