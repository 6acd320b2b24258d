//! The schema of an argument, in words.

use crate::output::one_line;
use serde_json::Value;

/// Maximum depth of references and alternatives that are followed: a schema may refer to itself.
const DEPTH: usize = 8;

/// Maximum number of schemas that are looked at for one argument: alternatives multiply.
const VISITS: usize = 64;

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
    collect(root, schema, (DEPTH, &mut { VISITS }), &mut all).then(|| all.into_iter().map(word).collect())
}

/// Adds the values that a schema lists. Returns whether it allows no other one.
fn collect<'a>(
    root: &'a Value,
    schema: &'a Value,
    (depth, visits): (usize, &mut usize),
    all: &mut Vec<&'a Value>,
) -> bool {
    let Some(left) = visits.checked_sub(1) else { return false };
    *visits = left;
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
        Some(some) => !some.is_empty() && some.iter().all(|one| collect(root, one, (depth - 1, visits), all)),
        None => false,
    }
}

/// Returns a value as a user writes it.
fn word(value: &Value) -> String {
    one_line(&value.as_str().map_or_else(|| value.to_string(), str::to_owned))
}

/// Maximum number of kinds that are shown of a schema.
const SHOWN: usize = 8;

/// Returns the types of a schema, or the words of an enum, in short: `integer`, `fast|slow|null`,
/// `any`.
pub(crate) fn kinds(root: &Value, schema: &Value) -> String {
    let mut all = Vec::new();
    add_kinds(root, schema, (DEPTH, &mut { VISITS }), &mut all);
    if all.len() > SHOWN {
        all.truncate(SHOWN);
        all.push("…".to_owned());
    }
    all.join("|")
}

/// Adds the kinds of a schema that are not there yet. One more than are shown is enough.
fn add_kinds(root: &Value, schema: &Value, (depth, visits): (usize, &mut usize), all: &mut Vec<String>) {
    let Some(left) = visits.checked_sub(1) else { return };
    *visits = left;
    let schema = resolved(root, schema);
    let mut add = |kind: String| {
        if all.len() <= SHOWN && !all.contains(&kind) {
            all.push(kind);
        }
    };
    if let Some(values) = schema["enum"].as_array() {
        values.iter().take(SHOWN + 1).for_each(|value| add(word(value)));
    } else if let Some(value) = schema.get("const") {
        add(word(value));
    } else if let Some(types) = types(schema) {
        types.into_iter().for_each(|kind| add(one_line(kind)));
    } else if let Some(some) = alternatives(schema).filter(|some| depth > 0 && !some.is_empty()) {
        some.iter().take(SHOWN + 1).for_each(|one| add_kinds(root, one, (depth - 1, visits), all));
    } else {
        add("any".to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn alternatives_that_multiply_are_cut() {
        let alternatives = vec![json!({"$ref": "#/$defs/a"}); 9];
        let root = json!({"properties": {"p": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"anyOf": alternatives}}});
        for _ in 0..10_000 {
            assert_eq!(kinds(&root, &root["properties"]["p"]), "any");
            assert_eq!(words(&root, &root["properties"]["p"]), None);
        }
    }
}
