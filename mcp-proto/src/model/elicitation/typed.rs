//! Forms of Rust types (feature `schema`): a struct of texts, numbers, booleans and enums without
//! data.

use super::field::{Choice, Field, FieldKind};
use super::{Form, is_value};
use crate::rpc::{JsonKind, Object, RawJson};
use crate::schema::{BadSchema, Property, properties};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use schemars::JsonSchema;

/// The formats of a text (2025-06-18 and later, elicitation: requested schema).
const FORMATS: [&str; 4] = ["email", "uri", "date", "date-time"];

/// Keywords that restrict nothing. The choices of a form are a set.
const IGNORED: [&str; 6] = ["examples", "deprecated", "readOnly", "writeOnly", "$comment", "uniqueItems"];

/// Keywords that every field has.
const COMMON: [&str; 4] = ["type", "title", "description", "default"];

impl Form {
    /// Creates the form of a struct, whose content [`ElicitResult::content`](super::ElicitResult)
    /// decodes.
    ///
    /// A field is a text, a number, a boolean, an enum without data, or a list or set of such
    /// enums. `Option<T>` is not required, and neither is a field with a serde default. Doc
    /// comments describe fields; those of the variants of an enum, or their titles, name its
    /// options. The fields are in the order of the schema: by name, unless the feature
    /// `preserve_order` of crate `schemars` is on.
    ///
    /// ```
    /// use mcp_proto::model::elicitation::Form;
    /// use mcp_proto::schema::schemars::{self, JsonSchema};
    ///
    /// #[derive(serde::Deserialize, JsonSchema)]
    /// struct Copy {
    ///     /// where it goes
    ///     path: String,
    ///     mode: Mode,
    ///     limit: Option<u32>,
    /// }
    ///
    /// #[derive(serde::Deserialize, JsonSchema)]
    /// #[serde(rename_all = "lowercase")]
    /// enum Mode {
    ///     Copy,
    ///     Move,
    /// }
    ///
    /// let form = Form::of::<Copy>("Where shall it go?")?;
    /// let fields = form.fields().unwrap();
    /// assert!(fields.iter().all(|field| field.required == (field.name != "limit")));
    /// # Ok::<(), mcp_proto::schema::BadSchema>(())
    /// ```
    ///
    /// # Errors
    /// [`BadSchema`] with the JSON Pointer of what a form cannot hold: objects, lists of anything
    /// else, maps, texts with a pattern or with a format other than `email`, `uri`, `date` and
    /// `date-time`, exclusive bounds.
    pub fn of<T: JsonSchema + ?Sized>(message: impl Into<String>) -> Result<Self, BadSchema> {
        properties::<T>()?.into_iter().try_fold(Self::new(message), |form, property| Ok(form.field(field(&property)?)))
    }
}

/// Returns the field of a property.
fn field(property: &Property) -> Result<Field, BadSchema> {
    let schema = &property.schema;
    let kind = kind(property, schema)?;
    let default = schema.get("default").filter(|default| is_value(default) && kind.accepts(default).is_ok());
    Ok(Field {
        name: property.name.clone(),
        title: schema.optional("title")?,
        description: schema.optional("description")?,
        required: property.required,
        default,
        kind,
    })
}

fn kind(property: &Property, schema: &Object) -> Result<FieldKind, BadSchema> {
    if let Some(options) = options(property, schema)? {
        return Ok(FieldKind::Choice(options));
    }
    match schema.str("type").as_deref() {
        Some("string") => {
            only(property, schema, &["minLength", "maxLength", "format"])?;
            let format: Option<String> = schema.optional("format")?;
            if let Some(format) = format.as_deref().filter(|format| !FORMATS.contains(format)) {
                return Err(property.unfit(&format!("a form has no texts of the format `{format}`")));
            }
            Ok(FieldKind::Text { min: schema.optional("minLength")?, max: schema.optional("maxLength")?, format })
        }
        Some(number @ ("number" | "integer")) => {
            // The format of a number is its Rust type.
            only(property, schema, &["minimum", "maximum", "format"])?;
            let (min, max) = (schema.optional("minimum")?, schema.optional("maximum")?);
            match number {
                "number" => Ok(FieldKind::Number { min, max }),
                _ => Ok(FieldKind::Integer { min, max }),
            }
        }
        Some("boolean") => only(property, schema, &[]).map(|()| FieldKind::Boolean),
        Some("array") => {
            only(property, schema, &["items", "minItems", "maxItems"])?;
            let items = schema.optional_object("items")?.unwrap_or_default();
            match options(property, &items)? {
                Some(options) => Ok(FieldKind::Choices {
                    options,
                    min: schema.optional("minItems")?,
                    max: schema.optional("maxItems")?,
                }),
                None => Err(property.unfit("a form has no lists but those of an enum without data")),
            }
        }
        _ => Err(property.unfit("a form has only texts, numbers, booleans and enums without data")),
    }
}

/// Returns the options of an enum: `enum`, `const`, or alternatives of them.
fn options(property: &Property, schema: &Object) -> Result<Option<Vec<Choice>>, BadSchema> {
    let is_text = |schema: &Object| schema.str("type").is_none_or(|kind| kind == "string");
    let unfit = || property.unfit("an option of a form is a text");
    let text = |value: &RawJson| match value.kind() {
        JsonKind::String => value.decode::<String>().map_err(|_| unfit()),
        _ => Err(unfit()),
    };
    if let Some(alternatives) = schema.optional_array("oneOf")? {
        only(property, schema, &["oneOf"])?;
        let mut all = Vec::new();
        for alternative in alternatives {
            let alternative = Object::read(&alternative).map_err(|_| unfit())?;
            all.extend(options(property, &alternative)?.ok_or_else(unfit)?);
        }
        return Ok(Some(all));
    }
    let values = match (schema.optional_array("enum")?, schema.get("const")) {
        (Some(values), _) => values,
        (None, Some(value)) => alloc::vec![value],
        (None, None) => return Ok(None),
    };
    only(property, schema, &["enum", "const"])?;
    if !is_text(schema) {
        return Err(unfit());
    }
    // The description of a whole enum is not the name of one of its options.
    let named = schema.contains("const");
    let title: Option<String> = schema.optional("title")?;
    let title = title.map_or_else(|| schema.optional("description"), |title| Ok(Some(title)))?.filter(|_| named);
    let options = values.iter().map(|value| Ok(Choice::new(text(value)?, title.clone())));
    options.collect::<Result<_, BadSchema>>().map(Some)
}

/// Checks that a schema has no keyword but these.
fn only(property: &Property, schema: &Object, known: &[&str]) -> Result<(), BadSchema> {
    let is_known = |keyword: &str| {
        let lists = [&COMMON[..], &IGNORED, known];
        lists.iter().any(|list| list.contains(&keyword)) || keyword.starts_with("x-")
    };
    match schema.iter().find(|(keyword, _)| !is_known(keyword)) {
        None => Ok(()),
        Some((keyword, _)) => Err(property.unfit(&format!("a form has no `{keyword}`"))),
    }
}

#[cfg(test)]
mod tests;
