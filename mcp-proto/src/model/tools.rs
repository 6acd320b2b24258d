//! `tools/list` and `tools/call`.

use super::content::Content;
use super::lifecycle::CacheHints;
use super::mirror::{self, Mirror};
use crate::call::{Call, Method, Paged, RawResult};
use crate::peer_text::Visible;
use crate::rpc::{DecodeError, EncodeError, JsonKind, Object, RawJson, ToObject};
use crate::version::ProtocolVersion;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Lists the tools, one page a call; see [`Pages`](crate::Pages) for all of them.
pub fn list() -> Call<List> {
    Call::new("tools/list", Ok(Object::new())).repeatable()
}

/// Calls the tool of this name.
pub fn call(name: &str) -> Call<CallTool> {
    Call::new("tools/call", Ok(Object::new().with("name", name)))
}

/// The method `tools/list`.
#[derive(Clone, Copy, Debug)]
pub struct List;

/// The method `tools/call`.
#[derive(Clone, Copy, Debug)]
pub struct CallTool;

impl Call<CallTool> {
    /// The arguments: a value that serde serialises, an [`Object`] or a [`RawJson`]. They are read at once and must become a JSON object. A
    /// failure shows when the call is made.
    #[must_use]
    pub fn arguments<T: ToObject + ?Sized>(self, arguments: &T) -> Self {
        self.param("arguments", arguments.to_object().map(RawJson::from))
    }
}

impl Method for List {
    type Output = Page;

    fn decode(result: &RawResult) -> Result<Page, DecodeError> {
        let object = Object::read(&result.json)?;
        let tools = object.array("tools")?;
        Ok(Page {
            tools: tools.iter().map(Tool::read).collect::<Result<_, _>>()?,
            next_cursor: object.optional("nextCursor")?,
            cache: CacheHints::read(&object),
        })
    }
}

impl Paged for List {
    type Element = Tool;

    fn page(output: Page) -> (Vec<Tool>, Option<String>) {
        (output.tools, output.next_cursor)
    }
}

impl Method for CallTool {
    type Output = CallToolResult;

    fn decode(result: &RawResult) -> Result<CallToolResult, DecodeError> {
        CallToolResult::read(&result.json)
    }
}

/// One page of `tools/list`.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct Page {
    /// The tools of this page.
    pub tools: Vec<Tool>,
    /// The cursor of the next page; the empty string is one.
    pub next_cursor: Option<String>,
    /// How long the page may be kept. Stale at once where the server did not say.
    pub cache: CacheHints,
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
    /// The JSON Schema of its arguments, byte for byte.
    pub input_schema: RawJson,
    /// The JSON Schema of its structured result, byte for byte.
    pub output_schema: Option<RawJson>,
    /// What the server says of its effects; believe it only of a server that you trust.
    pub annotations: Annotations,
    /// Members that this type does not name, as they were.
    pub other: Object,
}

/// What a server says of the effects of a tool (`ToolAnnotations`). All are hints, and all are optional.
#[derive(Clone, PartialEq, Debug, Default)]
#[non_exhaustive]
pub struct Annotations {
    /// It changes nothing.
    pub read_only: Option<bool>,
    /// What it changes may be lost; meaningful if it is not read-only.
    pub destructive: Option<bool>,
    /// Calling it again with the same arguments changes nothing more.
    pub idempotent: Option<bool>,
    /// It reaches out to things the server does not know.
    pub open_world: Option<bool>,
    /// Other members, `title` among them.
    pub other: Object,
}

/// The members on the wire of [`Annotations`].
const HINTS: [&str; 4] = ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"];

impl Annotations {
    fn read(mut other: Object) -> Result<Self, DecodeError> {
        let [read_only, destructive, idempotent, open_world] = HINTS.map(|key| other.optional(key));
        HINTS.iter().for_each(|key| drop(other.remove(key)));
        Ok(Self {
            read_only: read_only?,
            destructive: destructive?,
            idempotent: idempotent?,
            open_world: open_world?,
            other,
        })
    }

    fn write(&self) -> Object {
        let values = [self.read_only, self.destructive, self.idempotent, self.open_world];
        HINTS.iter().zip(values).fold(self.other.clone(), |object, (key, value)| object.with_opt(key, value))
    }
}

impl Tool {
    /// A tool of this name that takes any object.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            title: None,
            description: None,
            input_schema: Object::new().with("type", "object").into(),
            output_schema: None,
            annotations: Annotations::default(),
            other: Object::new(),
        }
    }

    /// What it does, for a language model.
    #[must_use]
    pub fn describe(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// Its name, for people. Not sent before 2025-06-18, which introduced it.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// Says that it changes nothing. Hints are not sent before 2025-03-26, which introduced them.
    #[must_use]
    pub const fn read_only(mut self) -> Self {
        self.annotations.read_only = Some(true);
        self
    }

    /// Says that calling it again with the same arguments changes nothing more.
    #[must_use]
    pub const fn idempotent(mut self) -> Self {
        self.annotations.idempotent = Some(true);
        self
    }

    /// Says whether what it changes may be lost.
    #[must_use]
    pub const fn destructive(mut self, destructive: bool) -> Self {
        self.annotations.destructive = Some(destructive);
        self
    }

    /// Says whether it reaches out to things the server does not know.
    #[must_use]
    pub const fn open_world(mut self, open_world: bool) -> Self {
        self.annotations.open_world = Some(open_world);
        self
    }

    /// Sets the JSON Schema of the arguments: a [`RawJson`], a string of JSON text, or a value that serialises to the schema, such as the
    /// result of `schemars::schema_for!(Arguments)`. A schema without `type` gets `"type":"object"`, which MCP requires.
    ///
    /// # Panics
    /// If it is not JSON, not an object, or its `type` is another than `"object"`: the program is wrong.
    #[must_use]
    pub fn input_schema(mut self, schema: impl IntoSchema) -> Self {
        let json = schema.into_schema().expect("an input schema is a JSON object");
        let object = Object::read(&json).unwrap_or_default();
        self.input_schema = match object.get("type") {
            None => object.iter().fold(Object::new().with("type", "object"), |o, (k, v)| o.with(k, v.clone())).into(),
            Some(kind) => {
                assert!(*kind == "object".into(), "the type of an input schema is \"object\"");
                json
            }
        };
        self
    }

    /// The JSON Schema of its structured result. Not sent before 2025-06-18; until 2025-11-25 only one whose `type` is `"object"` is.
    ///
    /// In revisions that carry the schema, a result needs structured content: return [`Json`](crate::route::Json). The engine sends a complete
    /// result without it, and without `isError`, as an error of the tool, and emits the diagnostic `missing-structure`. The engine does not
    /// validate the content against the schema.
    ///
    /// # Panics
    /// If it is not JSON or not an object: the program is wrong.
    #[must_use]
    pub fn output_schema(mut self, schema: impl IntoSchema) -> Self {
        self.output_schema = Some(schema.into_schema().expect("an output schema is a JSON object"));
        self
    }

    /// Reads a tool.
    ///
    /// # Errors
    /// [`DecodeError`] if it has no name or no input schema.
    pub fn read(json: &RawJson) -> Result<Self, DecodeError> {
        let mut object = Object::read(json)?;
        let tool = Self {
            name: object.required("name")?,
            title: object.optional("title")?,
            description: object.optional("description")?,
            input_schema: object
                .object("inputSchema")
                .map(|_| object.get("inputSchema").cloned())?
                .unwrap_or_else(RawJson::empty_object),
            output_schema: object.optional_object("outputSchema")?.and_then(|_| object.get("outputSchema").cloned()),
            annotations: Annotations::read(object.optional_object("annotations")?.unwrap_or_default())?,
            other: Object::new(),
        };
        for key in ["name", "title", "description", "inputSchema", "outputSchema", "annotations"] {
            object.remove(key);
        }
        Ok(Self { other: object, ..tool })
    }

    /// Checks that a server may offer this tool: its input schema is an object of `type` `"object"`, and the `x-mcp-header` annotations in it
    /// follow the rules (2026-07-28 transports,
    /// schema extension). Clients leave out a tool whose annotations do not. For a tool that was not written here, before it is given to
    /// a [`Router`](crate::Router). What is secret is not annotated: whoever is on the way sees and may log a header field.
    ///
    /// # Errors
    /// [`BadTool`]: the schema, or the first annotation that is against the rules. Its value is a token that no other has, not even in another case, and
    /// it stands on a property of the type `string`, `integer` or `boolean` to which `properties` alone lead.
    pub fn check(&self) -> Result<(), BadTool> {
        self.mirror().map(drop)
    }

    /// The arguments that it wants mirrored.
    pub(crate) fn mirror(&self) -> Result<Mirror, BadTool> {
        let schema = Object::read(&self.input_schema);
        let mirror = match schema.is_ok_and(|schema| schema.get("type") == Some(&"object".into())) {
            true => mirror::read(&self.input_schema),
            false => Err("the type of its input schema is not \"object\"".into()),
        };
        mirror.map_err(|why| BadTool { name: self.name.clone(), why })
    }

    /// The tool on the wire, without what the revision does not have.
    pub fn write(&self, version: ProtocolVersion) -> Object {
        let rules = version.rules();
        let mut object = Object::new().with("name", self.name.as_str());
        if rules.titles {
            object = object.with_opt("title", self.title.as_deref());
        }
        object = object.with_opt("description", self.description.as_deref());
        object.set("inputSchema", self.input_schema.clone());
        if let Some(schema) = self.output_schema_in(version) {
            object.set("outputSchema", schema.clone());
        }
        let annotations = self.annotations.write();
        if rules.tool_annotations && !annotations.is_empty() {
            object.set("annotations", annotations.into());
        }
        self.other.iter().fold(object, |object, (key, value)| object.with(key, value.clone()))
    }

    /// The output schema, if this revision can carry it.
    pub(crate) fn output_schema_in(&self, version: ProtocolVersion) -> Option<&RawJson> {
        let rules = version.rules();
        let is_object =
            |schema: &RawJson| Object::read(schema).is_ok_and(|schema| schema.get("type") == Some(&"object".into()));
        self.output_schema.as_ref().filter(|schema| rules.titles && (rules.any_structured || is_object(schema)))
    }

    /// The names of the arguments that a call must have, as its schema says at the top level.
    pub fn required_arguments(&self) -> Vec<String> {
        Object::read(&self.input_schema)
            .ok()
            .and_then(|schema| schema.optional("required").ok().flatten())
            .unwrap_or_default()
    }
}

/// A tool that no server may offer.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct BadTool {
    /// Its name.
    pub name: String,
    /// What is against the rules, for people.
    pub why: String,
}

impl fmt::Display for BadTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the tool `{}` cannot be offered: {}", Visible(&self.name), Visible(&self.why))
    }
}

impl core::error::Error for BadTool {}

impl From<&str> for Tool {
    /// A tool of this name that takes any object.
    fn from(name: &str) -> Self {
        Self::new(name)
    }
}

/// What a JSON Schema can be given as.
pub trait IntoSchema {
    /// The schema as it is sent.
    ///
    /// # Errors
    /// [`EncodeError`] if it is not a JSON object.
    fn into_schema(self) -> Result<RawJson, EncodeError>;
}

impl IntoSchema for RawJson {
    fn into_schema(self) -> Result<RawJson, EncodeError> {
        if self.kind() == JsonKind::Object { Ok(self) } else { Err(EncodeError::new("not an object")) }
    }
}

impl<T: Serialize> IntoSchema for T {
    fn into_schema(self) -> Result<RawJson, EncodeError> {
        let json = RawJson::encode(&self)?;
        if json.kind() != JsonKind::String {
            return json.into_schema();
        }
        let text: String = json.decode().map_err(|e| EncodeError::new(alloc::format!("{e}")))?;
        RawJson::parse(text.into_bytes()).map_err(|e| EncodeError::new(alloc::format!("{e}")))?.into_schema()
    }
}

/// What a tool returned.
#[derive(Clone, PartialEq, Debug, Default)]
#[non_exhaustive]
pub struct CallToolResult {
    /// The content, for a language model; may be empty.
    pub content: Vec<Content>,
    /// The result as data: any JSON value, `null` among them, from 2026-07-28 on; an object in 2025-06-18 and 2025-11-25; else absent.
    pub structured: Option<RawJson>,
    /// Whether the tool failed. Such a result is meant for the model, which may try otherwise.
    pub is_error: bool,
    /// The `_meta` member and others, as they were.
    pub other: Object,
}

impl CallToolResult {
    /// A result of one block of text.
    pub fn text(text: impl Into<String>) -> Self {
        Self { content: alloc::vec![Content::text(text)], ..Self::default() }
    }

    /// A failure, told in text.
    pub fn error(text: impl Into<String>) -> Self {
        Self { is_error: true, ..Self::text(text) }
    }

    /// The text of its first block of text.
    pub fn first_text(&self) -> Option<&str> {
        self.content.iter().find_map(Content::as_text)
    }

    /// Reads the structured result as a `T`.
    ///
    /// # Errors
    /// [`DecodeError`] if there is none, or it is of another shape.
    pub fn structured<T: DeserializeOwned>(&self) -> Result<T, DecodeError> {
        self.structured.as_ref().ok_or_else(|| DecodeError::new("no structured content"))?.decode()
    }

    /// Reads a result. Absent `content` counts as empty.
    ///
    /// # Errors
    /// [`DecodeError`] if it is not of this shape.
    pub fn read(json: &RawJson) -> Result<Self, DecodeError> {
        let mut other = Object::read(json)?;
        let content = other.optional_array("content")?.unwrap_or_default();
        let content = content.iter().map(Content::read).collect::<Result<_, _>>()?;
        let is_error = other.optional("isError")?.unwrap_or(false);
        let structured = other.remove("structuredContent");
        for key in ["content", "isError", "resultType"] {
            other.remove(key);
        }
        Ok(Self { content, structured, is_error, other })
    }

    /// The result as this revision can carry it. Structured content that it cannot carry becomes a block of text if there is none.
    #[must_use]
    pub fn lower(&self, version: ProtocolVersion) -> Self {
        let rules = version.rules();
        let mut content: Vec<_> = self.content.iter().map(|block| block.lower(version)).collect();
        let object = |json: &RawJson| json.kind() == JsonKind::Object;
        let carries = |json: &RawJson| rules.any_structured || (rules.titles && object(json));
        if let (Some(json), true) = (&self.structured, content.is_empty()) {
            content.push(Content::text(json.as_str()));
        }
        let structured = self.structured.clone().filter(carries);
        Self { content, structured, is_error: self.is_error, other: self.other.clone() }
    }

    /// The result on the wire.
    pub fn write(&self) -> Object {
        let content: Vec<RawJson> = self.content.iter().map(|block| block.write().to_json()).collect();
        let mut object = Object::new().with("content", content);
        if let Some(structured) = &self.structured {
            object.set("structuredContent", structured.clone());
        }
        if self.is_error {
            object.set("isError", true.into());
        }
        self.other.iter().fold(object, |object, (key, value)| object.with(key, value.clone()))
    }
}
