//! Arguments of a tool: from words to a JSON object that fits the tool's schema.

use crate::failure::Failure;
use crate::output::one_line;
use mcp_blocking::{Object, RawJson, Tool, schema};
use serde_json::{Map, Value};
use std::io::Read;

/// Returns the object of these words, each a JSON object, `@FILE`, `-`, or `key=value`. A value has
/// the type that the schema requires; without one it is JSON if it can be, otherwise a text.
pub(crate) fn object(words: impl IntoIterator<Item = String>, schema: &RawJson) -> Result<Object, Failure> {
    let schema: Value = schema.decode().unwrap_or_default();
    let mut arguments = Map::new();
    for word in words {
        if word.starts_with('{') {
            arguments.append(&mut json_object(&word, "the argument")?);
        } else if word == "-" {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text).map_err(|e| Failure::usage(format!("standard input: {e}")))?;
            arguments.append(&mut json_object(&text, "standard input")?);
        } else if let Some(file) = word.strip_prefix('@') {
            let text = std::fs::read_to_string(file).map_err(|e| Failure::usage(format!("{}: {e}", one_line(file))))?;
            arguments.append(&mut json_object(&text, &one_line(file))?);
        } else if let Some((key, value)) = word.split_once('=') {
            arguments.insert(key.to_owned(), typed(key, value, &schema)?);
        } else {
            let word = one_line(&word);
            return Err(Failure::usage(format!("`{word}` is no argument: key=value, a JSON object, @FILE, or -")));
        }
    }
    Object::encode(&arguments).map_err(|e| Failure::usage(e.to_string()))
}

fn json_object(text: &str, what: &str) -> Result<Map<String, Value>, Failure> {
    serde_json::from_str(text).map_err(|e| Failure::usage(format!("{what} is no JSON object: {e}")))
}

/// Returns the value of an argument, with a type of its schema.
fn typed(key: &str, text: &str, schema: &Value) -> Result<Value, Failure> {
    let property = &schema["properties"][key];
    let types: Vec<&str> = match &property["type"] {
        Value::String(one) => vec![one.as_str()],
        Value::Array(several) => several.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let json = serde_json::from_str::<Value>(text).ok();
    if types.is_empty() {
        return Ok(json.unwrap_or_else(|| text.into()));
    }
    match json {
        Some(json) if types.iter().any(|kind| is_of(&json, kind)) => Ok(json),
        _ if types.contains(&"string") => Ok(text.into()),
        _ => {
            let (key, text, types) = (one_line(key), one_line(text), types.join(" or "));
            Err(Failure::usage(format!("the argument `{key}` is of the type {types}, which `{text}` is not")))
        }
    }
}

fn is_of(value: &Value, kind: &str) -> bool {
    match kind {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "number" => value.is_number(),
        "integer" => value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|number| number.fract() == 0.0),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        // `"1"` in quotes is a string, `1` is the text.
        "string" => value.is_string(),
        _ => false,
    }
}

/// Checks arguments against the schema of a tool.
pub(crate) fn check(tool: &Tool, arguments: &Object) -> Result<(), Failure> {
    let name = one_line(&tool.name);
    if let Some(missing) = tool.required_arguments().iter().find(|required| !arguments.contains(required)) {
        let usage = usage(tool);
        return Err(Failure::usage(format!("the tool {name} needs the argument `{}`: {usage}", one_line(missing))));
    }
    let checker = match schema::validator().compile(&tool.input_schema) {
        Ok(checker) => checker,
        Err(why) => {
            eprintln!("mcp: the arguments are not checked, since the schema of {name} cannot be used: {why}");
            return Ok(());
        }
    };
    checker.check(&arguments.clone().into()).map_err(|mismatch| {
        let field = mismatch.path().trim_start_matches('/').replace('/', ".");
        let of = if field.is_empty() { String::new() } else { format!(" `{}`", one_line(&field)) };
        Failure::usage(format!("the argument{of} does not fit the tool {name}: {}", one_line(mismatch.why())))
    })
}

/// Returns the arguments of a tool with their types: `a: integer, b?: string`.
pub(crate) fn usage(tool: &Tool) -> String {
    let schema: Value = tool.input_schema.decode().unwrap_or_default();
    let required = tool.required_arguments();
    let Some(properties) = schema["properties"].as_object() else { return String::new() };
    let shown = properties.iter().map(|(name, property)| {
        let kind = match &property["type"] {
            Value::String(kind) => kind.clone(),
            Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("|"),
            _ if property["enum"].is_array() => "enum".to_owned(),
            _ => "any".to_owned(),
        };
        let mark = if required.contains(name) { "" } else { "?" };
        format!("{}{mark}: {}", one_line(name), one_line(&kind))
    });
    shown.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool() -> Tool {
        let schema = r#"{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":["string","null"]},"c":{"type":"array","items":{"type":"number"}},"d":{}},"required":["a"]}"#;
        let json = format!(r#"{{"name":"t","inputSchema":{schema}}}"#);
        Tool::read(&RawJson::parse(json).expect("JSON")).expect("a tool")
    }

    fn arguments(words: &[&str]) -> Result<String, String> {
        let tool = tool();
        let object =
            object(words.iter().map(|word| (*word).to_owned()), &tool.input_schema).map_err(|e| e.to_string())?;
        check(&tool, &object).map_err(|e| e.to_string())?;
        Ok(object.to_json().as_str().to_owned())
    }

    #[test]
    fn value_has_the_type_of_its_schema() {
        assert_eq!(
            arguments(&["a=1", "b=2", "c=[1,2]", "d=true"]).as_deref(),
            Ok(r#"{"a":1,"b":"2","c":[1,2],"d":true}"#)
        );
        assert_eq!(arguments(&["a=1", "b=null", "d=x=y"]).as_deref(), Ok(r#"{"a":1,"b":null,"d":"x=y"}"#));
        assert_eq!(arguments(&["{\"a\": 1,\n \"d\": {}}"]).as_deref(), Ok(r#"{"a":1,"d":{}}"#));
        assert_eq!(arguments(&["a=1", "b=\"1\""]).as_deref(), Ok(r#"{"a":1,"b":"1"}"#));
    }

    #[test]
    fn wrong_argument_is_named() {
        let wrong = |words: &[&str]| arguments(words).expect_err("wrong");
        assert_eq!(wrong(&["a=x"]), "the argument `a` is of the type integer, which `x` is not");
        assert!(wrong(&["b=x"]).starts_with("the tool t needs the argument `a`: a: integer, b?: string|null"));
        assert!(wrong(&["a=1", "c=[\"x\"]"]).starts_with("the argument `c.0` does not fit the tool t: "));
        assert_eq!(wrong(&["a"]), "`a` is no argument: key=value, a JSON object, @FILE, or -");
        assert!(wrong(&["{a}"]).starts_with("the argument is no JSON object: "));
        assert!(wrong(&["@/no/such/file"]).starts_with("/no/such/file: "));
    }
}
