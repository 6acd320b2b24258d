//! The schemas of Rust types, by the crate `schemars`.

use super::BadSchema;
use crate::rpc::{EncodeError, JsonKind, Object, RawJson};
use alloc::string::String;
use alloc::vec::Vec;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;

/// Returns the schema of what serde reads as a `T`, in the dialect 2020-12 and without `$schema`.
///
/// # Errors
/// [`EncodeError`] if it is nested deeper than 128.
pub fn input_schema<T: JsonSchema + ?Sized>() -> Result<RawJson, EncodeError> {
    encoded::<T>(settings().for_deserialize())
}

/// Returns the schema of what serde writes for a `T`, in the dialect 2020-12 and without `$schema`.
///
/// # Errors
/// [`EncodeError`] if it is nested deeper than 128.
pub fn output_schema<T: JsonSchema + ?Sized>() -> Result<RawJson, EncodeError> {
    encoded::<T>(settings().for_serialize())
}

/// Clients of revisions up to 2025-06-18 that validate may know no `$schema` but that of draft 7,
/// and every revision since has 2020-12 as the default.
fn settings() -> SchemaSettings {
    SchemaSettings::draft2020_12().with(|settings| settings.meta_schema = None)
}

fn encoded<T: JsonSchema + ?Sized>(settings: SchemaSettings) -> Result<RawJson, EncodeError> {
    RawJson::encode(&settings.into_generator().into_root_schema_for::<T>())
}

/// One property of an object whose properties contain no objects.
#[derive(Debug)]
pub(crate) struct Property {
    pub(crate) name: String,
    /// Whether the object must have it. `null` is as good as absent.
    pub(crate) required: bool,
    /// Its schema, without the alternative `null`.
    pub(crate) schema: Object,
}

impl Property {
    /// Returns the JSON Pointer of its schema.
    fn path(&self) -> String {
        alloc::format!("/properties/{}", self.name.replace('~', "~0").replace('/', "~1"))
    }

    /// Returns the error about a part of it that its place cannot hold.
    pub(crate) fn unfit(&self, why: &str) -> BadSchema {
        BadSchema::invalid(self.path(), why)
    }
}

/// Returns the properties of a type, in the order of its schema, without references.
///
/// # Errors
/// [`BadSchema`] if its schema is not that of an object with fixed properties.
pub(crate) fn properties<T: JsonSchema + ?Sized>() -> Result<Vec<Property>, BadSchema> {
    let settings = settings().for_deserialize().with(|settings| settings.inline_subschemas = true);
    let json = encoded::<T>(settings).map_err(|e| BadSchema::invalid("", alloc::format!("{e}")))?;
    let schema = Object::read(&json).map_err(|_| not_an_object())?;
    if schema.str("type").as_deref() != Some("object") {
        return Err(not_an_object());
    }
    // A recursive type keeps its references. `additionalProperties` only forbids what is not asked.
    const KNOWN: [&str; 7] =
        ["type", "title", "description", "properties", "required", "additionalProperties", "$defs"];
    if let Some((keyword, _)) = schema.iter().find(|(keyword, _)| !KNOWN.contains(&&**keyword)) {
        return Err(BadSchema::invalid("", alloc::format!("`{keyword}` beside its properties")));
    }
    let required: Vec<String> = schema.optional("required")?.unwrap_or_default();
    let properties = schema.optional_object("properties")?.unwrap_or_default();
    properties
        .iter()
        .map(|(name, json)| {
            let name = String::from(name);
            let bare = Property { required: false, schema: Object::read(&json).unwrap_or_default(), name };
            let (schema, nullable) = without_null(&bare.schema)?;
            Ok(Property { required: !nullable && required.contains(&bare.name), schema, ..bare })
        })
        .collect()
}

/// A member of a struct of texts, such as the arguments of a prompt.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct TextMember {
    /// Its name.
    pub name: String,
    /// Its name, for people.
    pub title: Option<String>,
    /// Its description: the doc comment of the field.
    pub description: Option<String>,
    /// Whether it must be present. `Option<T>` and a field with a serde default need not be.
    pub required: bool,
}

/// Returns the members of a struct whose fields are texts and enums without data, in the order of
/// its schema.
///
/// # Errors
/// [`BadSchema`] with the JSON Pointer of a field of another type, or if `T` is no struct.
pub fn text_members<T: JsonSchema + ?Sized>() -> Result<Vec<TextMember>, BadSchema> {
    let members = properties::<T>()?.into_iter().map(|property| {
        if !is_text(&property.schema) {
            return Err(property.unfit("not a text"));
        }
        let (title, description) = (property.schema.optional("title")?, property.schema.optional("description")?);
        Ok(TextMember { name: property.name, title, description, required: property.required })
    });
    members.collect()
}

/// Returns whether every value of a schema is a text: by its type, or by that of its alternatives.
fn is_text(schema: &Object) -> bool {
    if let Ok(Some(alternatives)) = schema.optional_array("oneOf") {
        return alternatives.iter().all(|one| Object::read(one).is_ok_and(|one| is_text(&one)));
    }
    schema.str("type").as_deref() == Some("string")
}

fn not_an_object() -> BadSchema {
    BadSchema::invalid("", "the type is not an object with properties")
}

/// Returns a schema without its alternative `null`, and whether it had one.
fn without_null(schema: &Object) -> Result<(Object, bool), BadSchema> {
    let is_null = |json: &RawJson| *json == RawJson::null();
    let mut schema = schema.clone();
    let mut nullable = false;
    if schema.kind("type") == Some(JsonKind::Array) {
        let mut types = schema.array("type")?;
        types.retain(|kind| *kind != "null".into());
        nullable = true;
        if let [only] = &types[..] {
            schema.set("type", only);
        }
    }
    if schema.kind("enum") == Some(JsonKind::Array) {
        let mut values = schema.array("enum")?;
        values.retain(|value| !is_null(value));
        schema.set("enum", values);
    }
    let alternatives = schema.optional_array("anyOf")?.unwrap_or_default();
    let null: RawJson = Object::new().with("type", "null").into();
    if let [one, other] = &alternatives[..]
        && let Some(inner) = [(one, other), (other, one)].iter().find(|(_, other)| **other == null).map(|(one, _)| one)
    {
        schema.remove("anyOf");
        schema = Object::read(inner)?.with_all(&schema);
        nullable = true;
    }
    if schema.get("default").as_ref().is_some_and(is_null) {
        schema.remove("default");
    }
    Ok((schema, nullable))
}

#[cfg(test)]
mod tests;
