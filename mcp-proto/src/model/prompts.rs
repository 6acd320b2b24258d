//! Prompts: `prompts/list` and `prompts/get`.

use super::content::{Content, Role};
use super::described::described;
use super::icon::Icon;
use super::lifecycle::meta;
use super::page::{List, ListElement};
use crate::auth::Scopes;
use crate::call::{Call, Method, RawResult};
use crate::rpc::{DecodeError, JsonValue, Object, RawJson};
use crate::version::ProtocolVersion;
use alloc::string::String;
use alloc::vec::Vec;

/// Creates a call of `prompts/list`, which returns one page. [`Pages`](crate::Pages) fetches all of
/// them.
pub fn list() -> Call<List<Prompt>> {
    List::call()
}

/// Creates a call that gets the messages of the prompt of this name.
pub fn get(name: &str) -> Call<Get> {
    Call::new("prompts/get", Ok(Object::new().with("name", name))).repeatable()
}

/// The method `prompts/get`.
#[derive(Clone, Copy, Debug)]
pub struct Get;

impl Call<Get> {
    /// Sets an argument. The values of all arguments are texts.
    #[must_use]
    pub fn argument(self, name: &str, value: &str) -> Self {
        self.change(|params| {
            let arguments = params.optional_object("arguments").ok().flatten().unwrap_or_default();
            params.set("arguments", arguments.with(name, value));
        })
    }
}

impl Method for Get {
    type Output = GetPromptResult;

    fn decode(result: RawResult) -> Result<GetPromptResult, DecodeError> {
        GetPromptResult::from_object(Object::from_json(result.json)?)
    }
}

/// A prompt or a template for prompts, as a server describes it. Its members come from the server:
/// show them with [`escaped`](crate::error::escaped).
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct Prompt {
    /// Its name, for programs.
    pub name: String,
    /// Its name, for people.
    pub title: Option<String>,
    /// What it is for.
    pub description: Option<String>,
    /// Its arguments.
    pub arguments: Vec<PromptArgument>,
    /// Its icons.
    pub icons: Vec<Icon>,
    /// Its `_meta`.
    pub meta: Object,
    /// The scopes that a client needs to use it. Never sent, and empty if a server describes it.
    pub scopes: Scopes,
    /// Members that this type does not name, unchanged.
    pub other: Object,
}

/// An argument of a prompt.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct PromptArgument {
    /// Its name, for programs.
    pub name: String,
    /// Its name, for people.
    pub title: Option<String>,
    /// What it is for.
    pub description: Option<String>,
    /// Whether it must be given.
    pub required: bool,
    /// Members that this type does not name, unchanged.
    pub other: Object,
}

impl Prompt {
    const KEYS: [&str; 6] = ["name", "title", "description", "arguments", "icons", meta::META];

    /// Creates a prompt of this name without arguments.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            title: None,
            description: None,
            arguments: Vec::new(),
            icons: Vec::new(),
            meta: Object::new(),
            scopes: Scopes::new(),
            other: Object::new(),
        }
    }

    /// Adds an argument: the name of a required one, or a [`PromptArgument`].
    ///
    /// ```
    /// # use mcp_proto::prompt;
    /// # use mcp_proto::prompts::PromptArgument;
    /// let tone = PromptArgument::new("tone").optional();
    /// let greet = prompt("greet").argument("name").argument(tone);
    /// assert!(greet.arguments[0].required && !greet.arguments[1].required);
    /// ```
    #[must_use]
    pub fn argument(mut self, argument: impl Into<PromptArgument>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// Adds an argument for each field of a struct, which the handler gets: a text, or an enum
    /// without data. `Option<T>` is not required, and neither is a field with a serde default. Doc
    /// comments describe the arguments. They are in the order of the schema: by name, unless the
    /// feature `preserve_order` of crate `schemars` is on.
    ///
    /// ```
    /// use mcp_proto::schema::schemars::{self, JsonSchema};
    /// use mcp_proto::{Router, prompt};
    ///
    /// #[derive(serde::Deserialize, JsonSchema)]
    /// struct Guest {
    ///     /// who is greeted
    ///     name: String,
    ///     tone: Option<Tone>,
    /// }
    ///
    /// #[derive(serde::Deserialize, JsonSchema)]
    /// #[serde(rename_all = "lowercase")]
    /// enum Tone {
    ///     Formal,
    ///     Friendly,
    /// }
    ///
    /// let greet = prompt("greet").arguments_of::<Guest>();
    /// assert_eq!(greet.arguments[0].description.as_deref(), Some("who is greeted"));
    /// assert!(greet.arguments[0].required && !greet.arguments[1].required);
    /// let router = Router::new("greeter", "1.0").prompt(greet, |_cx, guest: Guest| {
    ///     Ok(match guest.tone {
    ///         Some(Tone::Formal) => format!("Greet {} formally.", guest.name),
    ///         _ => format!("Greet {}.", guest.name),
    ///     })
    /// });
    /// # drop(router);
    /// ```
    ///
    /// # Panics
    /// If a field is anything else, since the arguments of prompts are texts. The message has the
    /// JSON Pointer of the field in the schema.
    #[cfg(feature = "schema")]
    #[must_use]
    pub fn arguments_of<T: schemars::JsonSchema + ?Sized>(mut self) -> Self {
        let members = crate::schema::text_members::<T>().unwrap_or_else(|e| panic!("{e}"));
        let arguments = members.into_iter().map(|member| PromptArgument {
            name: member.name,
            title: member.title,
            description: member.description,
            required: member.required,
            other: Object::new(),
        });
        self.arguments.extend(arguments);
        self
    }
}

impl ListElement for Prompt {
    const METHOD: &'static str = "prompts/list";
    const MEMBER: &'static str = "prompts";

    fn key(&self) -> &str {
        &self.name
    }

    fn read(json: &RawJson) -> Result<Self, DecodeError> {
        let object = Object::read(json)?;
        let arguments = object.optional_array("arguments")?.unwrap_or_default();
        let arguments: Result<_, _> = arguments.iter().map(PromptArgument::read).collect();
        Ok(Self {
            name: object.required("name")?,
            title: object.optional("title")?,
            description: object.optional("description")?,
            arguments: arguments.map_err(|why: DecodeError| why.within("arguments"))?,
            icons: Icon::read_all(&object)?,
            meta: object.optional_object(meta::META)?.unwrap_or_default(),
            scopes: Scopes::new(),
            other: object.without(&Self::KEYS),
        })
    }

    fn write(&self, version: ProtocolVersion) -> Object {
        let rules = version.rules();
        let mut object = self.with_texts(Object::new(), version);
        if !self.arguments.is_empty() {
            let arguments: Vec<_> = self.arguments.iter().map(|argument| argument.write(version)).collect();
            object.set("arguments", arguments);
        }
        Icon::add_all(&self.icons, &rules, &mut object);
        meta::add(&self.meta, version, &mut object);
        object.with_all(&self.other)
    }
}

impl From<&str> for Prompt {
    /// Creates a prompt of this name without arguments.
    fn from(name: &str) -> Self {
        Self::new(name)
    }
}

described!(Prompt);

impl PromptArgument {
    /// Creates a required argument of this name.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), title: None, description: None, required: true, other: Object::new() }
    }

    /// Declares that it may be absent.
    #[must_use]
    pub const fn optional(mut self) -> Self {
        self.required = false;
        self
    }

    /// Sets its name, for people. Not sent before 2025-06-18, which introduced it.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// Sets its description.
    #[must_use]
    pub fn describe(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    fn read(json: &RawJson) -> Result<Self, DecodeError> {
        let object = Object::read(json)?;
        Ok(Self {
            name: object.required("name")?,
            title: object.optional("title")?,
            description: object.optional("description")?,
            required: object.optional("required")?.unwrap_or(false),
            other: object.without(&["name", "title", "description", "required"]),
        })
    }

    fn write(&self, version: ProtocolVersion) -> Object {
        let mut object = Object::new().with("name", self.name.as_str());
        if version.rules().titles {
            object = object.with_opt("title", self.title.as_deref());
        }
        object = object.with_opt("description", self.description.as_deref());
        object.with("required", self.required).with_all(&self.other)
    }
}

impl From<&str> for PromptArgument {
    /// Creates a required argument of this name.
    fn from(name: &str) -> Self {
        Self::new(name)
    }
}

/// A message of a prompt.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct PromptMessage {
    /// Its author.
    pub role: Role,
    /// Its content.
    pub content: Content,
    /// Members that this type does not name, unchanged.
    pub other: Object,
}

impl PromptMessage {
    /// Creates a message of this author: a text, or a [`Content`].
    pub fn new(role: Role, content: impl Into<Content>) -> Self {
        Self { role, content: content.into(), other: Object::new() }
    }

    /// Creates a message of the user: a text, or a [`Content`].
    pub fn user(content: impl Into<Content>) -> Self {
        Self::new(Role::User, content)
    }

    /// Creates a message of the language model: a text, or a [`Content`].
    pub fn assistant(content: impl Into<Content>) -> Self {
        Self::new(Role::Assistant, content)
    }

    /// Decodes a message. Content that cannot be decoded is [`Content::Unknown`].
    ///
    /// # Errors
    /// [`DecodeError`] if it has no role or no content.
    pub fn read(json: &RawJson) -> Result<Self, DecodeError> {
        let object = Object::read(json)?;
        let content = object.get("content").ok_or_else(|| DecodeError::new("`content` is missing"))?;
        Ok(Self {
            role: Role::read(&object)?,
            content: Content::read_any(&content),
            other: object.without(&["role", "content"]),
        })
    }

    /// Encodes the message, in a form that this revision can represent: see [`Content::lower`].
    pub fn write(&self, version: ProtocolVersion) -> Object {
        let content = self.content.clone().lower(version);
        Object::new().with("role", self.role.as_str()).with("content", content).with_all(&self.other)
    }
}

/// The messages of a prompt.
#[derive(Clone, PartialEq, Debug, Default)]
#[non_exhaustive]
pub struct GetPromptResult {
    /// What the prompt is for.
    pub description: Option<String>,
    /// The messages, in order. Treat them as text of the server: a user should see them before a
    /// model does.
    pub messages: Vec<PromptMessage>,
    /// Other members, such as `_meta`, unchanged.
    pub other: Object,
}

impl GetPromptResult {
    /// Creates a result with these messages.
    pub fn new(messages: impl IntoIterator<Item = PromptMessage>) -> Self {
        Self { messages: messages.into_iter().collect(), ..Self::default() }
    }

    /// Sets its description.
    #[must_use]
    pub fn describe(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// Sets a member of its `_meta`.
    #[must_use]
    pub fn meta(mut self, key: &str, value: impl JsonValue) -> Self {
        meta::set_in(&mut self.other, key, value);
        self
    }

    /// Returns the text of the first message whose content is text.
    pub fn first_text(&self) -> Option<&str> {
        self.messages.iter().find_map(|message| message.content.as_text())
    }

    fn from_object(object: Object) -> Result<Self, DecodeError> {
        Ok(Self {
            description: object.optional("description")?,
            messages: object.array("messages")?.iter().map(PromptMessage::read).collect::<Result<_, _>>()?,
            other: object.without(&["description", "messages", "resultType"]),
        })
    }

    /// Encodes the result, in a form that this revision can represent.
    pub fn write(&self, version: ProtocolVersion) -> Object {
        let messages: Vec<_> = self.messages.iter().map(|message| message.write(version)).collect();
        let object = Object::new().with_opt("description", self.description.as_deref());
        object.with("messages", messages).with_all(&self.other)
    }
}

#[cfg(test)]
mod tests;
