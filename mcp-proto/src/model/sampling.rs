//! Sampling: the request of a server to the language model of its client
//! (`sampling/createMessage`), and its result. 2026-07-28 deprecates it: new servers call a model
//! themselves.

mod preferences;

use super::content::{Content, Role};
use super::page::ListElement;
use super::tools::Tool;
use crate::rpc::{DecodeError, JsonKind, Object, RawJson};
use crate::version::ProtocolVersion;
use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;
use preferences::number;

pub use preferences::ModelPreferences;

/// A request to a language model (`CreateMessageRequestParams`).
///
/// ```
/// # use mcp_proto::model::sampling::SampleRequest;
/// let request = SampleRequest::new(400).system("Answer in one sentence.").user("What is MCP?");
/// assert_eq!(request.messages.len(), 1);
/// ```
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct SampleRequest {
    /// The conversation, oldest message first.
    pub messages: Vec<SamplingMessage>,
    /// Maximum number of tokens that the model may generate.
    pub max_tokens: u64,
    /// The system prompt. The client may change or ignore it.
    pub system_prompt: Option<String>,
    /// The preferred models.
    pub model_preferences: Option<ModelPreferences>,
    /// The context of servers that the client adds: `none`, `thisServer` or `allServers`. The last
    /// two need `sampling.context` from 2025-11-25 on, and are deprecated.
    pub include_context: Option<String>,
    /// The sampling temperature.
    pub temperature: Option<f64>,
    /// Texts at which the model stops.
    pub stop_sequences: Option<Vec<String>>,
    /// Options for the provider of the model.
    pub metadata: Option<Object>,
    /// The tools that the model may use. They need `sampling.tools`, and the server runs them. From
    /// 2025-11-25 on.
    pub tools: Option<Vec<Tool>>,
    /// Whether the model uses tools. From 2025-11-25 on.
    pub tool_choice: Option<ToolChoice>,
    /// Members that this type does not name, unchanged.
    pub other: Object,
}

/// A message of a conversation with a model.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct SamplingMessage {
    /// The author.
    pub role: Role,
    /// The content. Revisions before 2025-11-25 have one block in each message.
    pub content: Vec<Block>,
    /// Other members, such as `_meta`, unchanged.
    pub other: Object,
}

/// A block of content in a conversation with a model.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum Block {
    /// Text, an image or audio. In the result of a client, also a block of any type that cannot be
    /// decoded: [`Content::Unknown`].
    Content(Content),
    /// The model wants to use a tool. From 2025-11-25 on.
    ToolUse(ToolUse),
    /// The result of a tool. From 2025-11-25 on.
    ToolResult(ToolResult),
}

/// The wish of a model to use a tool. Keep `other` when you send it back in a later request: it may
/// hold what the client needs (`_meta`).
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct ToolUse {
    /// Identifies this use in its result.
    pub id: String,
    /// The name of the tool.
    pub name: String,
    /// The arguments.
    pub input: Object,
    /// Other members, such as `_meta`, unchanged.
    pub other: Object,
}

/// The result of a tool that a model used.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct ToolResult {
    /// The [`id`](ToolUse::id) of the use.
    pub tool_use_id: String,
    /// The content.
    pub content: Vec<Content>,
    /// The result as data.
    pub structured: Option<RawJson>,
    /// Whether the tool failed.
    pub is_error: bool,
    /// Other members, such as `_meta`, unchanged.
    pub other: Object,
}

/// Whether a model uses the tools of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum ToolChoice {
    /// The model decides.
    #[default]
    Auto,
    /// The model uses at least one tool.
    Required,
    /// The model uses no tool.
    None,
}

/// The result of a language model (`CreateMessageResult`).
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct SampleResult {
    /// The author, usually the assistant.
    pub role: Role,
    /// The content. Revisions before 2025-11-25 have one block.
    pub content: Vec<Block>,
    /// The name of the model.
    pub model: String,
    /// Why the model stopped: `endTurn`, `stopSequence`, `maxTokens`, `toolUse` or another reason.
    pub stop_reason: Option<String>,
    /// Other members, such as `_meta`, unchanged.
    pub other: Object,
}

impl SampleRequest {
    const KEYS: [&str; 10] = [
        "messages",
        "maxTokens",
        "systemPrompt",
        "modelPreferences",
        "includeContext",
        "temperature",
        "stopSequences",
        "metadata",
        "tools",
        "toolChoice",
    ];

    /// Creates a request without messages.
    pub const fn new(max_tokens: u64) -> Self {
        Self {
            messages: Vec::new(),
            max_tokens,
            system_prompt: None,
            model_preferences: None,
            include_context: None,
            temperature: None,
            stop_sequences: None,
            metadata: None,
            tools: None,
            tool_choice: None,
            other: Object::new(),
        }
    }

    /// Adds a message.
    #[must_use]
    pub fn message(mut self, message: SamplingMessage) -> Self {
        self.messages.push(message);
        self
    }

    /// Adds a text of the user.
    #[must_use]
    pub fn user(self, text: impl Into<String>) -> Self {
        self.message(SamplingMessage::user(text))
    }

    /// Adds a text of the model.
    #[must_use]
    pub fn assistant(self, text: impl Into<String>) -> Self {
        self.message(SamplingMessage::assistant(text))
    }

    /// Sets the system prompt.
    #[must_use]
    pub fn system(mut self, prompt: impl Into<String>) -> Self {
        self.system_prompt = Some(prompt.into());
        self
    }

    /// Sets the preferred models.
    #[must_use]
    pub fn prefer(mut self, preferences: ModelPreferences) -> Self {
        self.model_preferences = Some(preferences);
        self
    }

    /// Adds a tool that the model may use.
    #[must_use]
    pub fn tool(mut self, tool: impl Into<Tool>) -> Self {
        self.tools.get_or_insert_with(Vec::new).push(tool.into());
        self
    }

    /// Sets whether the model uses tools.
    #[must_use]
    pub const fn tool_choice(mut self, choice: ToolChoice) -> Self {
        self.tool_choice = Some(choice);
        self
    }

    /// Returns whether it needs a client that declares `sampling.tools`: it has tools, a choice of
    /// tools, or messages with uses or results of tools.
    pub fn uses_tools(&self) -> bool {
        let is_of_tools = |block: &Block| matches!(block, Block::ToolUse(_) | Block::ToolResult(_));
        self.tools.is_some()
            || self.tool_choice.is_some()
            || self.messages.iter().any(|message| message.content.iter().any(is_of_tools))
    }

    /// Checks that each use of a tool has its result (2025-11-25 sampling, tool use and result
    /// balance): after a message of the assistant with uses, the next message is one of the user
    /// that has only results, one for each use. No other message has results.
    ///
    /// # Errors
    /// [`DecodeError`] with the first message that violates it.
    pub fn check(&self) -> Result<(), DecodeError> {
        let mut open = BTreeSet::new();
        for message in &self.messages {
            let results = message.result_ids();
            let distinct: BTreeSet<&str> = results.iter().copied().collect();
            match results.len() {
                0 if !open.is_empty() => return Err(DecodeError::new("a use of a tool has no result")),
                0 => {}
                _ if message.role != Role::User => {
                    return Err(DecodeError::new("a message of the assistant has results of tools"));
                }
                n if n < message.content.len() => {
                    return Err(DecodeError::new("a message mixes results of tools with other content"));
                }
                n if n != open.len() || distinct != open => {
                    return Err(DecodeError::new("the results of tools do not match their uses"));
                }
                _ => {}
            }
            open = message.uses().map(|used| used.id.as_str()).collect();
            if open.len() < message.uses().count() {
                return Err(DecodeError::new("two uses of a tool have the same id"));
            }
            if !open.is_empty() && message.role != Role::Assistant {
                return Err(DecodeError::new("a message of the user uses tools"));
            }
        }
        if open.is_empty() { Ok(()) } else { Err(DecodeError::new("a use of a tool has no result")) }
    }

    /// Decodes the params of `sampling/createMessage`.
    ///
    /// # Errors
    /// [`DecodeError`] if a required member is missing, or if a member has another shape.
    pub(crate) fn read(params: Object) -> Result<Self, DecodeError> {
        let preferences = params.optional_object("modelPreferences")?;
        let choice = params.optional_object("toolChoice")?;
        let tools = params.optional_array("tools")?;
        Ok(Self {
            messages: params.array("messages")?.iter().map(SamplingMessage::read).collect::<Result<_, _>>()?,
            max_tokens: params.required("maxTokens")?,
            system_prompt: params.optional("systemPrompt")?,
            model_preferences: preferences.map(ModelPreferences::read).transpose()?,
            include_context: params.optional("includeContext")?,
            temperature: params.optional("temperature")?,
            stop_sequences: params.optional("stopSequences")?,
            metadata: params.optional_object("metadata")?,
            tools: tools.map(|tools| tools.iter().map(Tool::read).collect()).transpose()?,
            tool_choice: choice.map(|choice| ToolChoice::read(&choice)).transpose()?,
            other: params.without(&Self::KEYS),
        })
    }

    /// Encodes the params of `sampling/createMessage` for this revision. A message that the
    /// revision cannot represent becomes one message for each block.
    pub(crate) fn write(&self, version: ProtocolVersion) -> Object {
        let messages: Vec<_> = self.messages.iter().flat_map(|message| message.write(version)).collect();
        let tools = self.tools.as_ref();
        let tools = tools.map(|tools| tools.iter().map(|tool| tool.write(version)).collect::<Vec<_>>());
        Object::new()
            .with("messages", messages)
            .with("maxTokens", self.max_tokens)
            .with_opt("systemPrompt", self.system_prompt.as_deref())
            .with_opt("modelPreferences", self.model_preferences.as_ref().map(ModelPreferences::write))
            .with_opt("includeContext", self.include_context.as_deref())
            .with_opt("temperature", number(self.temperature))
            .with_opt("stopSequences", self.stop_sequences.as_ref())
            .with_opt("metadata", self.metadata.as_ref())
            .with_opt("tools", tools)
            .with_opt("toolChoice", self.tool_choice.map(ToolChoice::write))
            .with_all(&self.other)
    }
}

impl SamplingMessage {
    /// Creates a message with this content.
    pub const fn new(role: Role, content: Vec<Block>) -> Self {
        Self { role, content, other: Object::new() }
    }

    /// Creates a text of the user.
    pub fn user(text: impl Into<String>) -> Self {
        Self::new(Role::User, alloc::vec![Block::text(text)])
    }

    /// Creates a text of the model.
    pub fn assistant(text: impl Into<String>) -> Self {
        Self::new(Role::Assistant, alloc::vec![Block::text(text)])
    }

    /// Creates the message that answers the uses of tools in the message before it.
    pub fn results(results: impl IntoIterator<Item = ToolResult>) -> Self {
        Self::new(Role::User, results.into_iter().map(Block::ToolResult).collect())
    }

    fn uses(&self) -> impl Iterator<Item = &ToolUse> {
        uses(&self.content)
    }

    /// Returns the ids of its results.
    fn result_ids(&self) -> Vec<&str> {
        let results = self.content.iter().filter_map(|block| match block {
            Block::ToolResult(result) => Some(result.tool_use_id.as_str()),
            Block::Content(_) | Block::ToolUse(_) => None,
        });
        results.collect()
    }

    fn read(json: &RawJson) -> Result<Self, DecodeError> {
        let object = Object::read(json)?;
        let (role, content) = (Role::read(&object)?, read_content(&object, Block::read)?);
        Ok(Self { role, content, other: object.without(&["role", "content"]) })
    }

    fn write(&self, version: ProtocolVersion) -> Vec<RawJson> {
        let write = |content: &[Block]| -> RawJson {
            let object = Object::new().with("role", self.role.as_str());
            object.with("content", write_content(content, version)).with_all(&self.other).into()
        };
        match version.rules().sampling_tools {
            true => alloc::vec![write(&self.content)],
            false => self.content.chunks(1).map(write).collect(),
        }
    }
}

impl Block {
    /// Creates a block of text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Content(Content::text(text))
    }

    /// Returns the text of a block of text.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Content(content) => content.as_text(),
            Self::ToolUse(_) | Self::ToolResult(_) => None,
        }
    }

    /// Returns why a block cannot be decoded.
    pub(super) fn fault(json: &RawJson) -> Option<DecodeError> {
        Self::read(json).err()
    }

    fn read(json: &RawJson) -> Result<Self, DecodeError> {
        let object = Object::read(json)?;
        Ok(match &*object.required_str("type")? {
            "tool_use" => Self::ToolUse(ToolUse {
                id: object.required("id")?,
                name: object.required("name")?,
                input: object.object("input")?,
                other: object.without(&["type", "id", "name", "input"]),
            }),
            "tool_result" => Self::ToolResult(ToolResult {
                tool_use_id: object.required("toolUseId")?,
                content: object.array("content")?.iter().map(Content::read).collect::<Result<_, _>>()?,
                structured: object.get("structuredContent"),
                is_error: object.optional("isError")?.unwrap_or(false),
                other: object.without(&["type", "toolUseId", "content", "structuredContent", "isError"]),
            }),
            _ => Self::Content(Content::read(json)?),
        })
    }

    fn write(&self, version: ProtocolVersion) -> RawJson {
        match self {
            Self::Content(content) => content.clone().lower(version).write(),
            Self::ToolUse(ToolUse { id, name, input, other }) => {
                let used = Object::new().with("type", "tool_use").with("id", id.as_str()).with("name", name.as_str());
                used.with("input", input).with_all(other).into()
            }
            Self::ToolResult(ToolResult { tool_use_id, content, structured, is_error, other }) => {
                let content: Vec<_> = content.iter().map(|block| block.clone().lower(version)).collect();
                let result = Object::new().with("type", "tool_result").with("toolUseId", tool_use_id.as_str());
                let result = result.with("content", &content).with_opt("structuredContent", structured.as_ref());
                result.with_opt("isError", is_error.then_some(true)).with_all(other).into()
            }
        }
    }
}

impl ToolResult {
    /// Creates the result of a use: a block of text.
    pub fn text(used: &ToolUse, text: impl Into<String>) -> Self {
        Self {
            tool_use_id: used.id.clone(),
            content: alloc::vec![Content::text(text)],
            structured: None,
            is_error: false,
            other: Object::new(),
        }
    }

    /// Creates the failure of a use: a block of text.
    pub fn error(used: &ToolUse, text: impl Into<String>) -> Self {
        Self { is_error: true, ..Self::text(used, text) }
    }
}

impl ToolUse {
    /// Creates a use with these arguments.
    pub fn new(id: impl Into<String>, name: impl Into<String>, input: Object) -> Self {
        Self { id: id.into(), name: name.into(), input, other: Object::new() }
    }
}

impl ToolChoice {
    const NAMES: [(&str, Self); 3] = [("auto", Self::Auto), ("required", Self::Required), ("none", Self::None)];

    /// Decodes `toolChoice`. Without a mode the model decides.
    fn read(object: &Object) -> Result<Self, DecodeError> {
        let Some(mode) = object.optional::<String>("mode")? else { return Ok(Self::Auto) };
        let known = Self::NAMES.iter().find(|(name, _)| *name == mode);
        known.map(|(_, choice)| *choice).ok_or_else(|| DecodeError::new("`toolChoice`: unknown mode"))
    }

    fn write(self) -> Object {
        let name = Self::NAMES.iter().find(|(_, choice)| *choice == self).map_or("auto", |(name, _)| name);
        Object::new().with("mode", name)
    }
}

impl SampleResult {
    /// Creates the result of a model that answered with a text.
    pub fn text(model: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            role: Role::Assistant,
            content: alloc::vec![Block::text(text)],
            model: model.into(),
            stop_reason: Some("endTurn".into()),
            other: Object::new(),
        }
    }

    /// Creates the result of a model that uses tools: `stopReason` is `toolUse`.
    pub fn tool_use(model: impl Into<String>, uses: impl IntoIterator<Item = ToolUse>) -> Self {
        Self {
            role: Role::Assistant,
            content: uses.into_iter().map(Block::ToolUse).collect(),
            model: model.into(),
            stop_reason: Some("toolUse".into()),
            other: Object::new(),
        }
    }

    /// Returns the text of the first block of text.
    pub fn first_text(&self) -> Option<&str> {
        self.content.iter().find_map(Block::as_text)
    }

    /// Returns the tools that the model wants to use.
    pub fn uses(&self) -> impl Iterator<Item = &ToolUse> {
        uses(&self.content)
    }

    /// Returns the message that continues the conversation in a later request.
    pub fn into_message(self) -> SamplingMessage {
        SamplingMessage::new(self.role, self.content)
    }

    /// Checks that it answers this request on this revision: it has content, several blocks only
    /// if the revision has them, and uses tools only if the request has tools.
    pub(crate) fn check(&self, request: &SampleRequest, version: ProtocolVersion) -> Result<(), DecodeError> {
        if self.content.is_empty() {
            return Err(DecodeError::new("it has no content"));
        }
        if self.content.len() > 1 && !version.rules().sampling_tools {
            return Err(DecodeError::new("the revision has one block of content in it"));
        }
        if self.uses().next().is_some() && request.tools.is_none() {
            return Err(DecodeError::new("it uses a tool, and the request has none"));
        }
        if self.content.iter().any(|block| matches!(block, Block::ToolResult(_))) {
            return Err(DecodeError::new("it has a result of a tool"));
        }
        Ok(())
    }

    /// Decodes the result of `sampling/createMessage`. A block that cannot be decoded stays as it
    /// is.
    ///
    /// # Errors
    /// [`DecodeError`] if a required member is missing, or if a member has another shape.
    pub(crate) fn read(result: Object) -> Result<Self, DecodeError> {
        // The model has answered: its answer is not lost for one block.
        let any =
            |json: &RawJson| Ok(Block::read(json).unwrap_or_else(|_| Block::Content(Content::Unknown(json.clone()))));
        Ok(Self {
            role: Role::read(&result)?,
            content: read_content(&result, any)?,
            model: result.required("model")?,
            stop_reason: result.optional("stopReason")?,
            other: result.without(&["role", "content", "model", "stopReason", "resultType"]),
        })
    }

    /// Encodes the result of `sampling/createMessage` for this revision.
    pub(crate) fn write(&self, version: ProtocolVersion) -> Object {
        let content = write_content(&self.content, version);
        Object::new()
            .with("role", self.role.as_str())
            .with("content", content)
            .with("model", self.model.as_str())
            .with_opt("stopReason", self.stop_reason.as_deref())
            .with_all(&self.other)
    }
}

fn uses(content: &[Block]) -> impl Iterator<Item = &ToolUse> {
    content.iter().filter_map(|block| match block {
        Block::ToolUse(used) => Some(used),
        Block::Content(_) | Block::ToolResult(_) => None,
    })
}

/// Decodes one block, or from 2025-11-25 on several.
fn read_content(
    object: &Object,
    read: impl Fn(&RawJson) -> Result<Block, DecodeError>,
) -> Result<Vec<Block>, DecodeError> {
    match object.kind("content") {
        Some(JsonKind::Array) => object.array("content")?.iter().map(read).collect(),
        Some(_) => Ok(alloc::vec![read(&object.object("content")?.into())?]),
        None => Err(DecodeError::new("`content` is missing")),
    }
}

/// Encodes one block as itself, which every revision can represent.
fn write_content(content: &[Block], version: ProtocolVersion) -> RawJson {
    let write = |block: &Block| block.write(version);
    match content {
        [block] => write(block),
        blocks => blocks.iter().map(write).collect::<Vec<_>>().into(),
    }
}

#[cfg(test)]
mod tests;
