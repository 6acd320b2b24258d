//! The schema of an argument, in words.

use crate::output::one_line;
use serde_json::Value;

/// Maximum depth of references and alternatives that are followed: a schema may refer to itself.
const DEPTH: usize = 8;

/// Returns what a schema that refers to a part of `root` refers to.
fn resolved<'a>(root: &'a Value, schema: &'a Value) -> &'a Value {
    let mut schema = schema;
    for _ in 0..DEPTH {
        let Some(pointer) = schema["$ref"].as_str().and_then(|to| to.strip_prefix('#')) else { break };
        match root.pointer(pointer) {
            Some(target) => schema = target,
            None => break,
        }
    }
    schema
}

/// Returns the alternatives of a schema, if it consists of some.
fn alternatives(schema: &Value) -> Option<&Vec<Value>> {
    schema["anyOf"].as_array().or_else(|| schema["oneOf"].as_array())
}

/// Returns the schema whose rules matter: without references, and of one alternative to null that
/// alternative.
pub(crate) fn core<'a>(root: &'a Value, schema: &'a Value) -> &'a Value {
    let mut schema = resolved(root, schema);
    for _ in 0..DEPTH {
        let Some(all) = alternatives(schema) else { break };
        let mut others = all.iter().map(|one| resolved(root, one)).filter(|one| one["type"] != "null");
        match (others.next(), others.next()) {
            (Some(one), None) => schema = one,
            _ => break,
        }
    }
    schema
}

/// Returns the types that a schema names. `None` if it names none.
pub(crate) fn types(schema: &Value) -> Option<Vec<&str>> {
    match &schema["type"] {
        Value::String(kind) => Some(vec![kind]),
        Value::Array(kinds) => Some(kinds.iter().filter_map(Value::as_str).collect()),
        _ => None,
    }
}

/// Returns the values that a schema allows, if it lists all of them, also behind references and
/// alternatives.
pub(crate) fn words(root: &Value, schema: &Value) -> Option<Vec<String>> {
    let mut all = Vec::new();
    collect(root, schema, DEPTH, &mut all).then(|| all.into_iter().map(word).collect())
}

/// Adds the values that a schema lists. Returns whether it allows no other one.
fn collect<'a>(root: &'a Value, schema: &'a Value, depth: usize, all: &mut Vec<&'a Value>) -> bool {
    let schema = resolved(root, schema);
    if let Some(values) = schema["enum"].as_array() {
        all.extend(values);
        return true;
    }
    if let Some(value) = schema.get("const") {
        all.push(value);
        return true;
    }
    if schema["type"] == "null" {
        all.push(&Value::Null);
        return true;
    }
    match alternatives(schema).filter(|_| depth > 0) {
        Some(some) => !some.is_empty() && some.iter().all(|one| collect(root, one, depth - 1, all)),
        None => false,
    }
}

/// Returns a value as a user writes it.
fn word(value: &Value) -> String {
    one_line(&value.as_str().map_or_else(|| value.to_string(), str::to_owned))
}
