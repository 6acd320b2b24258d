//! The keywords of JSON Schema that contain schemas, in all supported dialects together, and the
//! names of the dialects.

use crate::schema::BadSchema;
use jsonschema::Draft;

/// The location of the schemas in a keyword, and the values that they apply to.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Applies {
    /// One schema, or several in an array or an object: to the same value.
    Same(Shape),
    /// To members of an object or elements of an array.
    Inner(Shape),
    /// To the members of these names.
    Properties,
    /// To the elements at these positions, if it is an array; to all, if it is a schema.
    Elements,
    /// To nothing, unless a reference leads there.
    Definitions,
}

/// How a keyword contains schemas.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Shape {
    One,
    Array,
    /// The members of an object. A member that is an array contains no schema (`dependencies`).
    Object,
    /// The members of an object, whose names are regular expressions.
    Patterns,
}

/// Returns what a keyword applies to. `None`: it contains no schema.
pub(super) fn applies(keyword: &str) -> Option<Applies> {
    Some(match keyword {
        "allOf" | "anyOf" | "oneOf" => Applies::Same(Shape::Array),
        "not" | "if" | "then" | "else" => Applies::Same(Shape::One),
        "dependentSchemas" | "dependencies" => Applies::Same(Shape::Object),
        "properties" => Applies::Properties,
        "patternProperties" => Applies::Inner(Shape::Patterns),
        "additionalProperties"
        | "unevaluatedProperties"
        | "propertyNames"
        | "additionalItems"
        | "unevaluatedItems"
        | "contains" => Applies::Inner(Shape::One),
        "items" | "prefixItems" => Applies::Elements,
        "$defs" | "definitions" => Applies::Definitions,
        _ => return None,
    })
}

/// Returns whether the value of a keyword is data, in which nothing is a schema.
pub(super) fn is_data(keyword: &str) -> bool {
    matches!(keyword, "enum" | "const" | "default" | "examples")
}

/// Returns whether the library keeps a copy of the value of a keyword with schemas: of `not`, and
/// of those that are unknown in an `old` dialect.
pub(super) fn is_copied(keyword: &str, old: bool) -> bool {
    match keyword {
        "not" => true,
        "$defs" | "dependentSchemas" | "prefixItems" | "unevaluatedItems" | "unevaluatedProperties" => old,
        _ => false,
    }
}

/// Returns the dialect of this name.
///
/// # Errors
/// [`BadSchema::Dialect`] for an unsupported one.
pub(super) fn dialect(name: &str) -> Result<Draft, BadSchema> {
    let bare = name.strip_suffix('#').unwrap_or(name);
    match bare.strip_prefix("https://").or_else(|| bare.strip_prefix("http://")) {
        Some("json-schema.org/draft-07/schema") => Ok(Draft::Draft7),
        Some("json-schema.org/draft/2019-09/schema") => Ok(Draft::Draft201909),
        Some("json-schema.org/draft/2020-12/schema") => Ok(Draft::Draft202012),
        _ => Err(BadSchema::dialect(name)),
    }
}
