//! Arguments of a tool: from words to a JSON object that fits the tool's schema.

use crate::failure::Failure;
use crate::output::{note, one_line};
use mcp_blocking::mcp_proto::rpc::JsonKind;
use mcp_blocking::{Object, RawJson, Tool, schema};
use serde_json::{Map, Value, json};
use std::fmt;
use std::io::Read;

/// Returns the object of these words, each a JSON object, `@FILE`, `-`, or `key=value`. The text of
/// a value is JSON where the schema accepts that, otherwise a string. Numbers keep their digits.
pub(crate) fn object(words: impl IntoIterator<Item = String>, schema: &RawJson) -> Result<Object, Failure> {
    let schema: Value = schema.decode().unwrap_or_default();
    let mut arguments = Object::new();
    for word in words {
        if word.starts_with('{') {
            arguments = arguments.with_all(&json_object(&word, "the argument")?);
        } else if word == "-" {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text).map_err(|e| Failure::usage(format!("standard input: {e}")))?;
            arguments = arguments.with_all(&json_object(&text, "standard input")?);
        } else if let Some(file) = word.strip_prefix('@') {
            let text = std::fs::read_to_string(file).map_err(|e| Failure::usage(format!("{}: {e}", one_line(file))))?;
            arguments = arguments.with_all(&json_object(&text, &one_line(file))?);
        } else if let Some((key, value)) = word.split_once('=') {
            arguments.set(key, typed(key, value, &schema)?);
        } else {
            let word = one_line(&word);
            return Err(Failure::usage(format!("`{word}` is no argument: key=value, a JSON object, @FILE, or -")));
        }
    }
    Ok(arguments)
}

fn json_object(text: &str, what: &str) -> Result<Object, Failure> {
    let wrong = |why: &dyn fmt::Display| Failure::usage(format!("{what} is no JSON object: {why}"));
    serde_json::from_str::<Map<String, Value>>(text).map_err(|e| wrong(&e))?;
    // Those values would have numbers of 64 bits. Between tokens, a space does as well.
    let json = RawJson::parse(text.replace(['\r', '\n'], " ")).map_err(|e| wrong(&e))?;
    Object::read(&json).map_err(|e| wrong(&e))
}

/// Returns the value of an argument, as its schema wants it.
fn typed(key: &str, text: &str, schema: &Value) -> Result<RawJson, Failure> {
    let fits = |value: &RawJson| fits(key, value, schema);
    let string = RawJson::from(text);
    let others = ["null", "true", "0", "[]", "{}"];
    let accepts_others = others.iter().any(|other| RawJson::parse(*other).is_ok_and(|other| fits(&other)));
    let json = RawJson::parse(text.to_owned()).ok();
    // Quotes make a string of a text that could be something else. A string keeps its own.
    let json = json.filter(|json| accepts_others || json.kind() != JsonKind::String);
    match json {
        Some(json) if fits(&json) => Ok(json),
        _ if fits(&string) => Ok(string),
        // The check of the whole says what is wrong inside.
        Some(json) if matches!(json.kind(), JsonKind::Object | JsonKind::Array) => Ok(json),
        json => match types(&schema["properties"][key]) {
            Some(types) => {
                let (key, text) = (one_line(key), one_line(text));
                Err(Failure::usage(format!("the argument `{key}` is of the type {types}, which `{text}` is not")))
            }
            None => Ok(json.unwrap_or(string)),
        },
    }
}

/// Returns whether the schema of an argument accepts this value.
fn fits(key: &str, value: &RawJson, schema: &Value) -> bool {
    let mut alone = Map::new();
    alone.insert("properties".into(), json!({ key: schema["properties"][key] }));
    // A schema may refer to these.
    for member in ["$schema", "$defs", "definitions"] {
        if let Some(member_value) = schema.get(member) {
            alone.insert(member.into(), member_value.clone());
        }
    }
    if alone["properties"][key].is_null() {
        return true;
    }
    let checker = RawJson::encode(&alone).ok().and_then(|schema| schema::validator().compile(&schema).ok());
    checker.is_none_or(|checker| checker.check(&Object::new().with(key, value.clone()).into()).is_ok())
}

/// Returns the types of a schema, for people. `None` if it does not name them.
fn types(schema: &Value) -> Option<String> {
    match &schema["type"] {
        Value::String(kind) => Some(one_line(kind)),
        Value::Array(kinds) => {
            Some(kinds.iter().filter_map(Value::as_str).map(one_line).collect::<Vec<_>>().join(" or "))
        }
        _ => None,
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
            note(format_args!("mcp: the arguments are not checked, since the schema of {name} cannot be used: {why}"));
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
        let schema = r##"{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":["string","null"]},"c":{"type":"array","items":{"type":"number"}},"d":{},
            "e":{"type":"string"},"f":{"enum":["1","x"]},"g":{"anyOf":[{"type":"string"},{"type":"null"}]},"h":{"$ref":"#/$defs/h"}},
            "required":["a"],"$defs":{"h":{"type":"string"}}}"##
            .replace('\n', "");
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
        // A string keeps its quotes, and is no number.
        assert_eq!(arguments(&["a=1", "e=\"x y\""]).as_deref(), Ok(r#"{"a":1,"e":"\"x y\""}"#));
        let strings = arguments(&["a=1", "e=12", "f=1", "g=012", "h=1.10"]);
        assert_eq!(strings.as_deref(), Ok(r#"{"a":1,"e":"12","f":"1","g":"012","h":"1.10"}"#));
        assert_eq!(arguments(&["a=1", "g=12"]).as_deref(), Ok(r#"{"a":1,"g":"12"}"#));
        // No digit is lost.
        let long = arguments(&["a=18446744073709551617", "{\"d\": 0.10000000000000000001}"]);
        assert_eq!(long.as_deref(), Ok(r#"{"a":18446744073709551617,"d":0.10000000000000000001}"#));
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
        assert!(wrong(&["a=1", "f=y"]).starts_with("the argument `f` does not fit the tool t: "));
        // The name of a type is a text of the server.
        let schema = RawJson::parse("{\"properties\":{\"a\":{\"type\":\"\\u001b[2J\"}}}").expect("JSON");
        let why = object(["a=1".to_owned()], &schema).map(|object| object.to_json().as_str().to_owned());
        assert!(!why.unwrap_or_else(|e| e.to_string()).contains('\u{1b}'));
    }
}
