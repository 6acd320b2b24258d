//! Elicitation: the request of a server to the user, by a form or a web page, and the response of
//! the user. From 2025-06-18 on.

mod field;
#[cfg(feature = "schema")]
mod typed;
mod url;

use crate::rpc::{DecodeError, JsonKind, Object, RawJson, ToObject};
use crate::version::{Era, ProtocolVersion};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
pub use field::{Choice, Field, FieldKind};
use serde::de::DeserializeOwned;
pub use url::UrlRequest;

/// A request to the user.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum ElicitRequest {
    /// The client shows a form.
    Form(Form),
    /// The client shows a web page. From 2025-11-25 on.
    Url(UrlRequest),
}

/// A form, for data that is no secret.
///
/// ```
/// # use mcp_proto::model::elicitation::{Field, Form};
/// let form = Form::new("Where shall it go?")
///     .text("path")
///     .field(Field::choice("mode", ["copy", "move"]).describe("what to do with the old one"))
///     .field(Field::boolean("force").optional());
/// assert_eq!(form.fields()?.len(), 3);
/// # Ok::<(), mcp_proto::rpc::DecodeError>(())
/// ```
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct Form {
    /// The message to the user. Never request secrets or credentials in a form.
    pub message: String,
    /// The JSON Schema of the form, unchanged: a flat object of primitive fields.
    pub schema: RawJson,
}

/// The response of the user.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
pub enum ElicitResult {
    /// The user submitted the form, or consented to open the web page: nothing is known of what
    /// happens there. For a web page the content is empty, and not sent.
    Accept(#[cfg_attr(feature = "record", serde(with = "crate::record::value"))] Object),
    /// The user declined.
    Decline,
    /// The user dismissed the request without a decision.
    Cancel,
}

impl ElicitRequest {
    /// Decodes the params of `elicitation/create`. Does not validate the schema or the URL.
    ///
    /// # Errors
    /// [`DecodeError`] if `mode` is neither `form` nor `url`, or if a required member is missing.
    pub(crate) fn read(params: &Object) -> Result<Self, DecodeError> {
        let message = params.required("message")?;
        match params.optional::<String>("mode")?.as_deref() {
            None | Some("form") => {
                params.object("requestedSchema")?;
                let schema = params.get("requestedSchema").unwrap_or_else(RawJson::empty_object);
                Ok(Self::Form(Form { message, schema }))
            }
            Some("url") => {
                let (url, elicitation_id) = (params.required("url")?, params.optional("elicitationId")?);
                Ok(Self::Url(UrlRequest { message, url, elicitation_id }))
            }
            Some(_) => Err(DecodeError::new("`mode` is neither `form` nor `url`")),
        }
    }

    /// Encodes the params of `elicitation/create` for this revision. Omits `mode` of a form, which
    /// is optional in every revision and does not exist in 2025-06-18. Omits `elicitationId` on
    /// 2026-07-28, which does not have it.
    pub(crate) fn write(&self, version: ProtocolVersion) -> Object {
        match self {
            Self::Form(form) => {
                Object::new().with("message", form.message.as_str()).with("requestedSchema", form.schema.clone())
            }
            Self::Url(UrlRequest { message, url, elicitation_id }) => {
                let object = Object::new().with("mode", "url").with("message", message.as_str());
                let id = elicitation_id.as_deref().filter(|_| version.era() == Era::Legacy);
                object.with("url", url.as_str()).with_opt("elicitationId", id)
            }
        }
    }
}

impl From<Form> for ElicitRequest {
    fn from(form: Form) -> Self {
        Self::Form(form)
    }
}

impl From<UrlRequest> for ElicitRequest {
    fn from(request: UrlRequest) -> Self {
        Self::Url(request)
    }
}

impl Form {
    /// Creates a form without fields, which only requests consent.
    pub fn new(message: impl Into<String>) -> Self {
        let schema = Object::new().with("type", "object").with("properties", Object::new());
        Self { message: message.into(), schema: schema.into() }
    }

    /// Creates a form with a custom schema. The engine refuses to send a form whose schema is not a
    /// flat object of texts, numbers, booleans and choices.
    pub fn with_schema(message: impl Into<String>, schema: RawJson) -> Self {
        Self { message: message.into(), schema }
    }

    /// Adds a field, replacing one of the same name.
    #[must_use]
    pub fn field(mut self, field: Field) -> Self {
        let mut schema = Object::read(&self.schema).unwrap_or_default();
        let mut properties = schema.optional_object("properties").ok().flatten().unwrap_or_default();
        let mut required: Vec<String> = schema.optional("required").ok().flatten().unwrap_or_default();
        required.retain(|name| *name != field.name);
        if field.required {
            required.push(field.name.clone());
        }
        properties.set(&field.name, field.write());
        schema.set("properties", properties);
        schema.remove("required");
        if !required.is_empty() {
            schema.set("required", &required);
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

    /// Adds a required integer.
    #[must_use]
    pub fn integer(self, name: &str) -> Self {
        self.field(Field::integer(name))
    }

    /// Adds a required boolean.
    #[must_use]
    pub fn boolean(self, name: &str) -> Self {
        self.field(Field::boolean(name))
    }

    /// Adds a required choice of one option.
    #[must_use]
    pub fn choice<S: Into<String>>(self, name: &str, options: impl IntoIterator<Item = S>) -> Self {
        self.field(Field::choice(name, options))
    }

    /// Returns the fields of the form, in order.
    ///
    /// # Errors
    /// [`DecodeError`] if the schema is not a flat object.
    pub fn fields(&self) -> Result<Vec<Field>, DecodeError> {
        let schema = Object::read(&self.schema)?;
        let required: Vec<String> = schema.optional("required")?.unwrap_or_default();
        let required: BTreeSet<&str> = required.iter().map(String::as_str).collect();
        let properties = schema.optional_object("properties")?.unwrap_or_default();
        properties.iter().map(|(name, field)| Field::read(&name, &field, required.contains(&*name))).collect()
    }

    /// Checks that the schema is a flat object of texts, numbers, booleans and choices with
    /// options.
    pub(crate) fn check_schema(&self) -> Result<(), DecodeError> {
        if Object::read(&self.schema)?.optional::<String>("type")?.as_deref() != Some("object") {
            return Err(DecodeError::new("the schema of a form must have the type `object`"));
        }
        let unsupported = |field: &Field| match &field.kind {
            FieldKind::Choice(options) | FieldKind::Choices { options, .. } => options.is_empty(),
            FieldKind::Other(_) => true,
            FieldKind::Text { .. } | FieldKind::Number { .. } | FieldKind::Integer { .. } | FieldKind::Boolean => false,
        };
        match self.fields()?.iter().find(|field| unsupported(field)) {
            Some(Field { name, .. }) => {
                Err(DecodeError::new(format!("`{name}` is neither a text, a number, a boolean nor a choice")))
            }
            None => Ok(()),
        }
    }

    /// Returns the initial content of the form: each default that is valid for its field. Empty if
    /// the schema is not a form.
    ///
    /// ```
    /// # use mcp_proto::model::elicitation::{Field, Form};
    /// let count = Field::integer("count").default_value(2i64);
    /// let form = Form::new("Which copies?").field(count).text("path");
    /// assert_eq!(form.defaults().to_json().as_str(), r#"{"count":2}"#);
    /// ```
    pub fn defaults(&self) -> Object {
        self.fill(Object::new())
    }

    /// Fills in the fields that the content omits with their [`defaults`](Self::defaults). Existing
    /// members are unchanged.
    #[must_use]
    pub fn fill(&self, content: Object) -> Object {
        let schema = Object::read(&self.schema).unwrap_or_default();
        let properties = schema.optional_object("properties").ok().flatten().unwrap_or_default();
        let given: BTreeSet<_> = content.slices().map(|(name, _)| name).collect();
        // A field that cannot be decoded has no default, and does not affect the others.
        let omitted = properties.iter().filter(|(name, _)| !given.contains(name)).filter_map(|(name, field)| {
            let field = Field::read(&name, &field, false).ok()?;
            let default = field.default.filter(|default| is_value(default) && field.kind.accepts(default).is_ok())?;
            Some((field.name, default))
        });
        content.iter().map(|(name, value)| (name.into_owned(), value)).chain(omitted).collect()
    }

    /// Checks content against the form: required fields, types, options and bounds. Formats are not
    /// checked. Members that the form does not have are allowed.
    ///
    /// # Errors
    /// [`DecodeError`] with the name of the field.
    pub fn check(&self, content: &Object) -> Result<(), DecodeError> {
        let content: BTreeMap<_, _> = content.iter().collect();
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
}

impl ElicitResult {
    /// Creates the response of a user who submits the form with these values: a serde value or an
    /// [`Object`]. The response has no other fields: [`Form::fill`] adds the defaults of a form.
    ///
    /// ```
    /// use mcp_proto::{ElicitResult, Form};
    ///
    /// #[derive(serde::Serialize)]
    /// struct Answer {
    ///     sure: bool,
    /// }
    ///
    /// let ask = |form: Form| match form.message.contains("delete") {
    ///     true => ElicitResult::Decline,
    ///     false => ElicitResult::accept(&Answer { sure: true }),
    /// };
    /// assert!(matches!(ask(Form::new("Copy it?")), ElicitResult::Accept(_)));
    /// ```
    ///
    /// # Panics
    /// If the value does not serialize to a JSON object. A callback that panics answers the server
    /// with an error.
    pub fn accept<T: ToObject + ?Sized>(values: &T) -> Self {
        Self::Accept(values.to_object().unwrap_or_else(|e| panic!("{e}")))
    }

    /// Creates the response of a user who submits the form unchanged: each field with a default has
    /// it.
    pub fn accept_defaults(form: &Form) -> Self {
        Self::Accept(form.defaults())
    }

    /// Decodes the content as a `T`. `None` if the user did not accept.
    ///
    /// # Errors
    /// [`DecodeError`] if the content has another shape.
    pub fn content<T: DeserializeOwned>(&self) -> Result<Option<T>, DecodeError> {
        match self {
            Self::Accept(content) => content.to_json().decode().map(Some),
            Self::Decline | Self::Cancel => Ok(None),
        }
    }

    /// Decodes a response. Absent content counts as empty.
    ///
    /// # Errors
    /// [`DecodeError`] if the action is unknown, or if a value is neither a string, a number, a
    /// boolean nor an array of strings.
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

    /// Encodes the response. It has `content` only if the user accepted.
    pub(crate) fn to_object(&self) -> Object {
        let action = |name: &str| Object::new().with("action", name);
        match self {
            Self::Accept(content) => action("accept").with("content", content.clone()),
            Self::Decline => action("decline"),
            Self::Cancel => action("cancel"),
        }
    }
}

/// Returns whether content may contain a value of this type.
fn is_value(json: &RawJson) -> bool {
    match json.kind() {
        JsonKind::String | JsonKind::Number | JsonKind::Bool => true,
        JsonKind::Array => json.decode::<Vec<String>>().is_ok(),
        JsonKind::Object | JsonKind::Null => false,
    }
}

#[cfg(test)]
mod tests;
