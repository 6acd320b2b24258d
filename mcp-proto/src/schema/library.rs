//! A validator on the crate `jsonschema`, without its resolvers: nothing is fetched. The crate
//! bounds neither a schema nor the time of a check, so [`graph`] does, before the crate sees
//! either.

mod compilation;
mod graph;
mod keywords;
mod nodes;
mod places;
mod reader;
mod work;

#[cfg(test)]
mod tests;

use super::{BadSchema, Check, Checker, Compile, Mismatch, SchemaLimit, Validator};
use crate::rpc::{JsonKind, RawJson};
use alloc::format;
use alloc::string::ToString;
use graph::Graph;
use jsonschema::{Draft, PatternOptions};
use serde_json::Value;

/// The limits of [`validator`]. A schema beyond one is a [`BadSchema::Limit`], and a value beyond
/// `work` or `stack` does not match. Start from the default, and set fields.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Bounds {
    /// Maximum length of a schema, in bytes. Default 256 KiB.
    pub size: usize,
    /// Maximum depth of its nesting. Default 64.
    pub depth: usize,
    /// Maximum number of JSON values in it. Default 10,000.
    pub nodes: usize,
    /// Maximum number of its regular expressions. Default 64.
    pub patterns: usize,
    /// Maximum length of a regular expression, in bytes. Default 1024.
    pub pattern_size: usize,
    /// Maximum memory of a compiled regular expression, in bytes. Default 256 KiB: `.{1000}` does
    /// not fit.
    pub pattern_memory: usize,
    /// Maximum length of the JSON Pointers and URIs of everything that is compiled, and of the
    /// texts in it, together, in bytes. Each schema and each keyword has a JSON Pointer from the
    /// root, and in a resource with `$id` its URI; so a long name costs as much as it has schemas
    /// below it. Default 4 MiB.
    pub locations: usize,
    /// Maximum number of JSON values that are compiled, counted as often as they are: a schema is
    /// compiled again for each `unevaluatedProperties` or `unevaluatedItems` that a reference leads
    /// from to it, and for each sequence of resources on the way there. A reference that is
    /// followed again counts as one value. Default 30,000. Schemas that would be compiled for each
    /// other too deep in a row, for threads with a small stack, exceed this limit too.
    pub compiled: u64,
    /// Maximum number of schemas that apply to one value, counted as often as they apply: a schema
    /// that doubles itself 30 times by `allOf` and `$ref` applies a thousand million. Default
    /// 10,000.
    pub applied: u64,
    /// Maximum work of one check: the sum over all parts of the value of the schemas that may apply
    /// to each, with their keywords, and of the texts that regular expressions read. Default 16
    /// million, below a second for most schemas.
    pub work: u64,
    /// Maximum depth of the recursion of one check: the depth of the value times the schemas that
    /// apply each other there. Default 512, for threads with a small stack.
    pub stack: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            size: 256 << 10,
            depth: 64,
            nodes: 10_000,
            patterns: 64,
            pattern_size: 1024,
            pattern_memory: 256 << 10,
            locations: 4 << 20,
            compiled: 30_000,
            applied: 10_000,
            work: 16 << 20,
            stack: 512,
        }
    }
}

/// Returns a validator for the dialects draft 7, 2019-09 and 2020-12 of JSON Schema, with the
/// default [`Bounds`]. A schema without `$schema` is of 2020-12 (MCP 2025-11-25 and 2026-07-28,
/// JSON Schema usage).
///
/// It fetches nothing. A `$ref` to anything outside of the schema is [`BadSchema::Reference`], also
/// one to a meta-schema. `format` is an annotation in every dialect, and not checked. Regular
/// expressions are matched in linear time, so those with look-around or back-references are
/// [`BadSchema::Invalid`].
///
/// ```
/// use mcp_proto::{RawJson, schema};
///
/// let schema = r#"{"type":"object","properties":{"sum":{"type":"integer"}}}"#;
/// let schema = RawJson::parse(schema).unwrap();
/// let checker = schema::validator().compile(&schema)?;
/// let mismatch = checker.check(&RawJson::parse(r#"{"sum":"3"}"#).unwrap()).unwrap_err();
/// assert_eq!(mismatch.path(), "/sum");
/// # Ok::<(), schema::BadSchema>(())
/// ```
pub fn validator() -> Validator {
    validator_with(Bounds::default())
}

/// Returns a validator as [`validator`] does, with other [`Bounds`].
pub fn validator_with(bounds: Bounds) -> Validator {
    Validator::new(Library(bounds))
}

struct Library(Bounds);

struct CompiledSchema {
    graph: Graph,
    validator: jsonschema::Validator,
    bounds: Bounds,
}

/// Checks that do more work than this report no path: the crate collects the errors of every
/// alternative, which takes several times as long as the check itself.
const EXPLAINED: u64 = 100_000;

/// The value in an error, which may be long, and secret.
const VALUE: &str = "the value";

/// The reason without a path.
const UNEXPLAINED: &str = "the value does not match the schema";

impl Compile for Library {
    fn compile(&self, schema: &RawJson) -> Result<Checker, BadSchema> {
        let Self(bounds) = self;
        if schema.as_bytes().len() > bounds.size {
            return Err(BadSchema::Limit(SchemaLimit::Size));
        }
        if !matches!(schema.kind(), JsonKind::Object | JsonKind::Bool) {
            return Err(BadSchema::invalid("", "a schema is an object or a boolean"));
        }
        let value: Value = schema.decode()?;
        let draft = dialect(&value)?;
        let graph = Graph::read(&value, bounds)?;
        let patterns = PatternOptions::regex().size_limit(bounds.pattern_memory).dfa_size_limit(bounds.pattern_memory);
        let options = jsonschema::options()
            .with_draft(draft)
            .offline()
            .should_validate_formats(false)
            .with_pattern_options(patterns);
        let validator = options.build(&value).map_err(|e| invalid(&e))?;
        Ok(Checker::new(CompiledSchema { graph, validator, bounds: bounds.clone() }))
    }
}

/// Returns the dialect of a schema.
///
/// # Errors
/// [`BadSchema::Dialect`] for an unsupported one.
fn dialect(schema: &Value) -> Result<Draft, BadSchema> {
    match schema.get("$schema") {
        None => Ok(Draft::Draft202012),
        Some(Value::String(name)) => keywords::dialect(name),
        Some(other) => Err(BadSchema::invalid("/$schema", format!("{other} is not a string"))),
    }
}

/// Returns the error for a schema that the crate refuses.
fn invalid(e: &jsonschema::ValidationError<'_>) -> BadSchema {
    match e.kind() {
        jsonschema::error::ValidationErrorKind::Referencing(e) => BadSchema::reference(e.to_string()),
        jsonschema::error::ValidationErrorKind::Format { format } if format == "regex" => {
            BadSchema::invalid(e.instance_path().as_str(), "the regular expression is not supported, or too large")
        }
        _ => BadSchema::invalid(e.instance_path().as_str(), e.masked_with(VALUE).to_string()),
    }
}

impl Check for CompiledSchema {
    fn check(&self, value: &RawJson) -> Result<(), Mismatch> {
        let value: Value = value.decode().map_err(|e| Mismatch::new("", e.to_string()))?;
        let Some(work) = self.graph.work(&value, &self.bounds) else {
            return Err(Mismatch::new("", "the value is too large to be checked against this schema"));
        };
        if work > EXPLAINED {
            return if self.validator.is_valid(&value) { Ok(()) } else { Err(Mismatch::new("", UNEXPLAINED)) };
        }
        self.validator
            .validate(&value)
            .map_err(|e| Mismatch::new(e.instance_path().as_str(), e.masked_with(VALUE).to_string()))
    }
}
