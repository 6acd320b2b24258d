//! Elicitation in form mode: what a server asks the user, and what the user said. From 2025-06-18 on.

use crate::rpc::{DecodeError, JsonKind, Object, RawJson};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use serde::de::DeserializeOwned;

/// A question to the user.
///
/// ```
/// # use mcp_proto::model::elicitation::{ElicitRequest, Field};
/// let question = ElicitRequest::form("Where shall it go?")
///     .text("path")
///     .field(Field::choice("mode", ["copy", "move"]).describe("what to do with the old one"))
///     .field(Field::boolean("force").optional());
/// assert_eq!(question.fields()?.len(), 3);
/// # Ok::<(), mcp_proto::rpc::DecodeError>(())
/// ```
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct ElicitRequest {
    /// What to tell the user. Never ask for secrets or credentials in a form.
    pub message: String,
    /// The JSON Schema of the form, byte for byte: a flat object of primitive fields.
    pub schema: RawJson,
}

/// What the user said.
#[derive(Clone, PartialEq, Debug)]
pub enum ElicitResult {
    /// The user filled the form in.
    Accept(Object),
    /// The user said no.
    Decline,
    /// The user closed the form without a choice.
    Cancel,
}

/// One field of a form.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct Field {
    /// Its name in the answer.
    pub name: String,
    /// Its name, for people.
    pub title: Option<String>,
    /// What it is for.
    pub description: Option<String>,
    /// Whether an answer must have it.
    pub required: bool,
    /// What it starts with.
    pub default: Option<RawJson>,
    /// What it holds.
    pub kind: FieldKind,
}

/// What a field holds.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum FieldKind {
    /// A string.
    Text {
        /// The fewest characters.
        min: Option<u64>,
        /// The most characters.
        max: Option<u64>,
        /// `email`, `uri`, `date` or `date-time`. Not checked by this crate.
        format: Option<String>,
    },
    /// Any number.
    Number {
        /// The least.
        min: Option<f64>,
        /// The greatest.
        max: Option<f64>,
    },
    /// A whole number.
    Integer {
        /// The least.
        min: Option<f64>,
        /// The greatest.
        max: Option<f64>,
    },
    /// Yes or no.
    Boolean,
    /// One of some strings.
    Choice(Vec<Choice>),
    /// Any of some strings; from 2025-11-25 on.
    Choices {
        /// What there is to choose from.
        options: Vec<Choice>,
        /// The fewest.
        min: Option<u64>,
        /// The most.
        max: Option<u64>,
    },
    /// A schema that no revision has here. Anything passes.
    Other(RawJson),
}

/// One thing to choose.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct Choice {
    /// Its value in the answer.
    pub value: String,
    /// Its name, for people.
    pub title: Option<String>,
}

impl ElicitRequest {
    /// A form without fields, which asks for consent alone.
    pub fn form(message: impl Into<String>) -> Self {
        let schema = Object::new().with("type", "object").with("properties", Object::new());
        Self { message: message.into(), schema: schema.into() }
    }

    /// A question with a schema of the caller's own.
    pub fn new(message: impl Into<String>, schema: RawJson) -> Self {
        Self { message: message.into(), schema }
    }

    /// Adds a field; one of the same name is replaced.
    #[must_use]
    pub fn field(mut self, field: Field) -> Self {
        let mut schema = Object::read(&self.schema).unwrap_or_default();
        let mut properties = schema.optional_object("properties").ok().flatten().unwrap_or_default();
        let mut required: Vec<String> = schema.optional("required").ok().flatten().unwrap_or_default();
        required.retain(|name| *name != field.name);
        if field.required {
            required.push(field.name.clone());
        }
        properties.set(&field.name, field.write().into());
        schema.set("properties", properties.into());
        schema.remove("required");
        if !required.is_empty() {
            schema.set("required", strings(&required));
        }
        self.schema = schema.into();
        self
    }

    /// Adds a required text.
    #[must_use]
    pub fn text(self, name: &str) -> Self {
        self.field(Field::text(name))
    }

    /// Adds a required number.
    #[must_use]
    pub fn number(self, name: &str) -> Self {
        self.field(Field::number(name))
    }

    /// Adds a required whole number.
    #[must_use]
    pub fn integer(self, name: &str) -> Self {
        self.field(Field::integer(name))
    }

    /// Adds a required yes or no.
    #[must_use]
    pub fn boolean(self, name: &str) -> Self {
        self.field(Field::boolean(name))
    }

    /// Adds a required choice of one.
    #[must_use]
    pub fn choice<S: Into<String>>(self, name: &str, options: impl IntoIterator<Item = S>) -> Self {
        self.field(Field::choice(name, options))
    }

    /// The fields of the form, in their order.
    ///
    /// # Errors
    /// [`DecodeError`] if the schema is no flat object.
    pub fn fields(&self) -> Result<Vec<Field>, DecodeError> {
        let schema = Object::read(&self.schema)?;
        let required: Vec<String> = schema.optional("required")?.unwrap_or_default();
        let required: BTreeSet<&str> = required.iter().map(String::as_str).collect();
        let properties = schema.optional_object("properties")?.unwrap_or_default();
        properties.iter().map(|(name, field)| Field::read(name, field, required.contains(name))).collect()
    }

    /// What the form starts with: the default of each field that has one which fits the field. Empty if the schema is no form.
    ///
    /// ```
    /// # use mcp_proto::model::elicitation::{ElicitRequest, Field};
    /// let form = ElicitRequest::form("Which copies?").field(Field::integer("count").default_value(2i64)).text("path");
    /// assert_eq!(form.defaults().to_json().as_str(), r#"{"count":2}"#);
    /// ```
    pub fn defaults(&self) -> Object {
        self.fill(Object::new())
    }

    /// The content with what it omits filled in from [`defaults`](Self::defaults). What it has stays as it is.
    #[must_use]
    pub fn fill(&self, content: Object) -> Object {
        let schema = Object::read(&self.schema).unwrap_or_default();
        let properties = schema.optional_object("properties").ok().flatten().unwrap_or_default();
        let given: BTreeSet<&str> = content.iter().map(|(name, _)| name).collect();
        // A field that cannot be read has no default, and takes none from the others.
        let omitted = properties.iter().filter(|(name, _)| !given.contains(name)).filter_map(|(name, field)| {
            let field = Field::read(name, field, false).ok()?;
            let default = field.default.filter(|default| is_value(default) && field.kind.accepts(default).is_ok())?;
            Some((field.name, default))
        });
        content.iter().map(|(name, value)| (String::from(name), value.clone())).chain(omitted).collect()
    }

    /// Checks an answer against the form: what is required is there, the types are right, choices are among the options, bounds are kept.
    /// Formats are not checked. Members that the form does not have are no error.
    ///
    /// # Errors
    /// [`DecodeError`] that names the field.
    pub fn check(&self, content: &Object) -> Result<(), DecodeError> {
        let content: BTreeMap<&str, &RawJson> = content.iter().collect();
        for field in self.fields()? {
            match content.get(field.name.as_str()) {
                Some(value) => {
                    let fits = field.kind.accepts(value);
                    fits.map_err(|why| DecodeError::new(format!("`{}`: {why}", field.name)))?;
                }
                None if field.required => return Err(DecodeError::new(format!("`{}` is missing", field.name))),
                None => {}
            }
        }
        Ok(())
    }

    /// Reads the params of `elicitation/create`. The schema is not judged.
    ///
    /// # Errors
    /// [`DecodeError`] if `mode` is another than `form`, or `message` or `requestedSchema` is missing.
    pub(crate) fn read(params: &Object) -> Result<Self, DecodeError> {
        let mode: Option<String> = params.optional("mode")?;
        if mode.as_deref().is_some_and(|mode| mode != "form") {
            return Err(DecodeError::new("`mode`: only `form` is supported"));
        }
        params.object("requestedSchema")?;
        let schema = params.get("requestedSchema").cloned().unwrap_or_else(RawJson::empty_object);
        Ok(Self { message: params.required("message")?, schema })
    }

    /// The params of `elicitation/create`. `mode` may be omitted in every revision, and does not exist in 2025-06-18.
    pub(crate) fn to_object(&self) -> Object {
        Object::new().with("message", self.message.as_str()).with("requestedSchema", self.schema.clone())
    }
}

impl ElicitResult {
    /// The user filled the form in and left the rest as it was: what `content` omits has its default.
    pub fn accept(request: &ElicitRequest, content: Object) -> Self {
        Self::Accept(request.fill(content))
    }

    /// The user sent the form off as it was.
    pub fn accept_defaults(request: &ElicitRequest) -> Self {
        Self::Accept(request.defaults())
    }

    /// What the user filled in, read as a `T`; `None` if the user did not accept.
    ///
    /// # Errors
    /// [`DecodeError`] if it is of another shape.
    pub fn content<T: DeserializeOwned>(&self) -> Result<Option<T>, DecodeError> {
        match self {
            Self::Accept(content) => content.to_json().decode().map(Some),
            Self::Decline | Self::Cancel => Ok(None),
        }
    }

    /// Reads a result. Absent content counts as empty.
    ///
    /// # Errors
    /// [`DecodeError`] if the action is unknown, or a value is neither a string, a number, a boolean nor an array of strings.
    pub(crate) fn read(result: &Object) -> Result<Self, DecodeError> {
        let action: String = result.required("action")?;
        match action.as_str() {
            "accept" => {
                let content = result.optional_object("content")?.unwrap_or_default();
                if let Some((name, _)) = content.iter().find(|(_, value)| !is_value(value)) {
                    return Err(DecodeError::new(format!("`content`: `{name}` is not of a type that a form has")));
                }
                Ok(Self::Accept(content))
            }
            "decline" => Ok(Self::Decline),
            "cancel" => Ok(Self::Cancel),
            _ => Err(DecodeError::new("`action` is none of `accept`, `decline` and `cancel`")),
        }
    }

    /// The result on the wire; `content` only where the user accepted.
    pub(crate) fn to_object(&self) -> Object {
        let action = |name: &str| Object::new().with("action", name);
        match self {
            Self::Accept(content) => action("accept").with("content", content.clone()),
            Self::Decline => action("decline"),
            Self::Cancel => action("cancel"),
        }
    }
}

impl Field {
    fn new(name: &str, kind: FieldKind) -> Self {
        Self { name: name.into(), title: None, description: None, required: true, default: None, kind }
    }

    /// A required text.
    pub fn text(name: &str) -> Self {
        Self::new(name, FieldKind::Text { min: None, max: None, format: None })
    }

    /// A required number.
    pub fn number(name: &str) -> Self {
        Self::new(name, FieldKind::Number { min: None, max: None })
    }

    /// A required whole number.
    pub fn integer(name: &str) -> Self {
        Self::new(name, FieldKind::Integer { min: None, max: None })
    }

    /// A required yes or no.
    pub fn boolean(name: &str) -> Self {
        Self::new(name, FieldKind::Boolean)
    }

    /// A required choice of one.
    pub fn choice<S: Into<String>>(name: &str, options: impl IntoIterator<Item = S>) -> Self {
        Self::new(name, FieldKind::Choice(options.into_iter().map(|value| Choice::new(value, None)).collect()))
    }

    /// A required choice of one; each option is a value and its name for people.
    pub fn titled_choice<V: Into<String>, T: Into<String>>(
        name: &str,
        options: impl IntoIterator<Item = (V, T)>,
    ) -> Self {
        let options = options.into_iter().map(|(value, title)| Choice::new(value, Some(title.into())));
        Self::new(name, FieldKind::Choice(options.collect()))
    }

    /// A required choice of any number; from 2025-11-25 on.
    pub fn choices<S: Into<String>>(name: &str, options: impl IntoIterator<Item = S>) -> Self {
        let options = options.into_iter().map(|value| Choice::new(value, None)).collect();
        Self::new(name, FieldKind::Choices { options, min: None, max: None })
    }

    /// It may be left out.
    #[must_use]
    pub fn optional(mut self) -> Self {
        self.required = false;
        self
    }

    /// Its name, for people.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// What it is for.
    #[must_use]
    pub fn describe(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// What it starts with. Before 2025-11-25 only a boolean has it.
    #[must_use]
    pub fn default_value(mut self, value: impl Into<RawJson>) -> Self {
        self.default = Some(value.into());
        self
    }

    /// The form of a text: `email`, `uri`, `date` or `date-time`. Nothing else has one.
    #[must_use]
    pub fn format(mut self, wanted: &str) -> Self {
        if let FieldKind::Text { format, .. } = &mut self.kind {
            *format = Some(wanted.into());
        }
        self
    }

    /// The least: of a number, or of the length of a text or the count of choices, where what is negative or not whole is cut.
    #[must_use]
    pub fn min(mut self, least: f64) -> Self {
        match &mut self.kind {
            FieldKind::Number { min, .. } | FieldKind::Integer { min, .. } => *min = Some(least),
            FieldKind::Text { min, .. } | FieldKind::Choices { min, .. } => *min = Some(least as u64),
            _ => {}
        }
        self
    }

    /// The greatest, as [`min`](Self::min).
    #[must_use]
    pub fn max(mut self, greatest: f64) -> Self {
        match &mut self.kind {
            FieldKind::Number { max, .. } | FieldKind::Integer { max, .. } => *max = Some(greatest),
            FieldKind::Text { max, .. } | FieldKind::Choices { max, .. } => *max = Some(greatest as u64),
            _ => {}
        }
        self
    }

    fn read(name: &str, json: &RawJson, required: bool) -> Result<Self, DecodeError> {
        let schema = Object::read(json)?;
        Ok(Self {
            name: name.into(),
            title: schema.optional("title")?,
            description: schema.optional("description")?,
            required,
            default: schema.get("default").cloned(),
            kind: FieldKind::read(json, &schema)?,
        })
    }

    fn write(&self) -> Object {
        let schema = self.kind.write();
        let schema =
            schema.with_opt("title", self.title.as_deref()).with_opt("description", self.description.as_deref());
        schema.with_opt("default", self.default.clone())
    }
}

impl FieldKind {
    fn read(json: &RawJson, schema: &Object) -> Result<Self, DecodeError> {
        let kind: Option<String> = schema.optional("type")?;
        Ok(match kind.as_deref() {
            Some("string") => match Choice::read_all(schema, "oneOf")? {
                Some(options) => Self::Choice(options),
                None => Self::Text {
                    min: schema.optional("minLength")?,
                    max: schema.optional("maxLength")?,
                    format: schema.optional("format")?,
                },
            },
            Some("number") => Self::Number { min: schema.optional("minimum")?, max: schema.optional("maximum")? },
            Some("integer") => Self::Integer { min: schema.optional("minimum")?, max: schema.optional("maximum")? },
            Some("boolean") => Self::Boolean,
            Some("array") => Self::Choices {
                options: Choice::read_all(&schema.object("items")?, "anyOf")?.unwrap_or_default(),
                min: schema.optional("minItems")?,
                max: schema.optional("maxItems")?,
            },
            _ => Self::Other(json.clone()),
        })
    }

    fn write(&self) -> Object {
        let typed = |kind: &str| Object::new().with("type", kind);
        match self {
            Self::Text { min, max, format } => typed("string")
                .with_opt("minLength", *min)
                .with_opt("maxLength", *max)
                .with_opt("format", format.as_deref()),
            Self::Number { min, max } => bounds(typed("number"), *min, *max),
            Self::Integer { min, max } => bounds(typed("integer"), *min, *max),
            Self::Boolean => typed("boolean"),
            Self::Choice(options) => {
                // `enum` with `enumNames` is the one titled form that every revision reads.
                let values: Vec<&String> = options.iter().map(|option| &option.value).collect();
                let schema = typed("string").with("enum", strings(&values));
                if options.iter().all(|option| option.title.is_none()) {
                    return schema;
                }
                let titles: Vec<&String> = options.iter().map(|o| o.title.as_ref().unwrap_or(&o.value)).collect();
                schema.with("enumNames", strings(&titles))
            }
            Self::Choices { options, min, max } => {
                let values: Vec<&String> = options.iter().map(|option| &option.value).collect();
                let items = typed("string").with("enum", strings(&values));
                typed("array").with("items", items).with_opt("minItems", *min).with_opt("maxItems", *max)
            }
            Self::Other(json) => Object::read(json).unwrap_or_default(),
        }
    }

    fn accepts(&self, value: &RawJson) -> Result<(), &'static str> {
        match self {
            Self::Text { min, max, .. } => {
                let text: String = value.decode().map_err(|_| "is not a string")?;
                let length = text.chars().count() as u64;
                within(length, *min, *max).then_some(()).ok_or("is too short or too long")
            }
            Self::Number { min, max } | Self::Integer { min, max } => {
                let number: f64 = value.decode().map_err(|_| "is not a number")?;
                if matches!(self, Self::Integer { .. }) && number % 1.0 != 0.0 {
                    return Err("is not a whole number");
                }
                within(number, *min, *max).then_some(()).ok_or("is out of its bounds")
            }
            Self::Boolean => (value.kind() == JsonKind::Bool).then_some(()).ok_or("is not a boolean"),
            Self::Choice(options) => {
                let chosen: String = value.decode().map_err(|_| "is not a string")?;
                options.iter().any(|option| option.value == chosen).then_some(()).ok_or("is not among the options")
            }
            Self::Choices { options, min, max } => {
                let chosen: Vec<String> = value.decode().map_err(|_| "is not an array of strings")?;
                let known: BTreeSet<&str> = options.iter().map(|option| option.value.as_str()).collect();
                if !chosen.iter().all(|one| known.contains(one.as_str())) {
                    return Err("is not among the options");
                }
                within(chosen.len() as u64, *min, *max).then_some(()).ok_or("are too few or too many")
            }
            Self::Other(_) => Ok(()),
        }
    }
}

impl Choice {
    fn new(value: impl Into<String>, title: Option<String>) -> Self {
        Self { value: value.into(), title }
    }

    /// The options of a schema: `enum`, perhaps with `enumNames`, or a list of `const` and `title` under `titled`.
    fn read_all(schema: &Object, titled: &str) -> Result<Option<Vec<Self>>, DecodeError> {
        if let Some(values) = schema.optional::<Vec<String>>("enum")? {
            let titles: Vec<String> = schema.optional("enumNames")?.unwrap_or_default();
            let mut titles = titles.into_iter();
            return Ok(Some(values.into_iter().map(|value| Self::new(value, titles.next())).collect()));
        }
        let Some(options) = schema.optional_array(titled)? else { return Ok(None) };
        let options = options.iter().map(|option| {
            let option = Object::read(option)?;
            Ok(Self { value: option.required("const")?, title: option.optional("title")? })
        });
        options.collect::<Result<_, DecodeError>>().map(Some)
    }
}

/// Whether an answer may hold this value at all.
fn is_value(json: &RawJson) -> bool {
    match json.kind() {
        JsonKind::String | JsonKind::Number | JsonKind::Bool => true,
        JsonKind::Array => json.decode::<Vec<String>>().is_ok(),
        JsonKind::Object | JsonKind::Null => false,
    }
}

fn within<N: PartialOrd>(n: N, min: Option<N>, max: Option<N>) -> bool {
    min.is_none_or(|min| n >= min) && max.is_none_or(|max| n <= max)
}

/// Adds the bounds of a number; JSON has no infinite ones.
fn bounds(schema: Object, min: Option<f64>, max: Option<f64>) -> Object {
    let bound = |bound: Option<f64>| bound.filter(|n| n.is_finite()).and_then(|n| RawJson::encode(&n).ok());
    schema.with_opt("minimum", bound(min)).with_opt("maximum", bound(max))
}

fn strings<S: AsRef<str>>(strings: &[S]) -> RawJson {
    let strings: Vec<RawJson> = strings.iter().map(|string| string.as_ref().into()).collect();
    strings.into()
}

#[cfg(test)]
mod tests;
