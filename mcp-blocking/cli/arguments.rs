//! Arguments of a tool: from words to a JSON object that fits the tool's schema.

use crate::failure::Failure;
use crate::output::{self, note, one_line};
use crate::schema_text;
use mcp_blocking::mcp_proto::rpc::JsonKind;
use mcp_blocking::schema::{Checker, Mismatch};
use mcp_blocking::{Object, RawJson, Tool, schema};
use serde::de::IgnoredAny;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::fmt;
use std::io::Read;

/// Returns the object of these words, each a JSON object, `@FILE`, `-`, `key=value`, `key=@FILE` or
/// `key:=JSON`. The text of a value is JSON where the schema accepts that, otherwise a string.
/// Numbers keep their digits.
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
            match (key.strip_suffix(':'), value.strip_prefix('@')) {
                (Some(key), _) => arguments.set(key, json_value(value, &format!("the argument `{}`", one_line(key)))?),
                (None, Some(file)) => arguments.set(key, of_file(key, file, &schema)?),
                (None, None) => arguments.set(key, typed(key, value, &schema)?),
            }
        } else {
            let (word, forms) = (output::word(&word), "key=value, key:=JSON, key=@FILE, a JSON object, @FILE, or -");
            return Err(Failure::usage(format!("`{word}` is no argument: {forms}")));
        }
    }
    Ok(arguments)
}

fn json_object(text: &str, what: &str) -> Result<Object, Failure> {
    let wrong = |why: &dyn fmt::Display| Failure::usage(format!("{what} is no JSON object: {why}"));
    serde_json::from_str::<Map<String, Value>>(text).map_err(|e| wrong(&e))?;
    Object::read(&json_value(text, what)?).map_err(|e| wrong(&e))
}

/// Returns JSON that may contain the ends of lines.
fn json_value(text: &str, what: &str) -> Result<RawJson, Failure> {
    let wrong = |why: &dyn fmt::Display| Failure::usage(format!("{what} is no JSON: {why}"));
    // A value of this type would have numbers of 64 bits.
    serde_json::from_str::<IgnoredAny>(text).map_err(|e| wrong(&e))?;
    // Between tokens, a space does as well.
    RawJson::parse(text.replace(['\r', '\n'], " ")).map_err(|e| wrong(&e))
}

/// Returns the content of a file as an argument: JSON where the schema accepts that, otherwise a
/// string.
fn of_file(key: &str, file: &str, schema: &Value) -> Result<RawJson, Failure> {
    let text = std::fs::read_to_string(file).map_err(|e| {
        let (key, file) = (one_line(key), one_line(file));
        Failure::usage(format!("{file}: {e}; for a text that begins with @ write {key}:='\"@…\"'"))
    })?;
    if let Ok(json) = json_value(&text, file)
        && typed(key, json.as_str(), schema)? == json
    {
        return Ok(json);
    }
    typed(key, &text, schema)
}

/// Returns the value of an argument, as its schema wants it.
fn typed(key: &str, text: &str, schema: &Value) -> Result<RawJson, Failure> {
    let property = Property::of(key, schema);
    let fits = |value: &RawJson| property.check(value).is_ok();
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
        json => Err(Failure::usage(property.refusal(json, string, text))),
    }
}

/// The schema of one argument.
struct Property<'a> {
    key: &'a str,
    root: &'a Value,
    schema: &'a Value,
    /// `None` if anything is accepted, or the schema cannot be used.
    checker: Option<Checker>,
}

impl<'a> Property<'a> {
    fn of(key: &'a str, root: &'a Value) -> Self {
        let schema = &root["properties"][key];
        Self { key, root, schema, checker: checker(key, schema, root) }
    }

    fn check(&self, value: &RawJson) -> Result<(), Mismatch> {
        check_alone(self.checker.as_ref(), self.key, value)
    }

    /// Returns which rule a value breaks that fits neither as JSON nor as a string: the words that
    /// are allowed, the type, or the rule of the schema.
    fn refusal(&self, json: Option<RawJson>, string: RawJson, text: &str) -> String {
        let (key, text) = (one_line(self.key), one_line(text));
        if let Some(words) = schema_text::words(self.root, self.schema) {
            return format!("the argument `{key}` is one of {}, and not `{text}`", words.join(", "));
        }
        // Of an alternative to null, the rules are those of the alternative.
        let schema = schema_text::core(self.root, self.schema);
        let types = schema_text::types(schema);
        let is_of_type = |value: &RawJson| types.as_ref().is_none_or(|types| types.iter().any(|t| is_of(value, t)));
        let Some(value) = json.into_iter().chain([string]).find(is_of_type) else {
            let types: Vec<_> = types.unwrap_or_default().into_iter().map(one_line).collect();
            return format!("the argument `{key}` is of the type {}, which `{text}` is not", types.join(" or "));
        };
        let checker = checker(self.key, schema, self.root);
        let broken = check_alone(checker.as_ref(), self.key, &value).err().or_else(|| self.check(&value).err());
        let why = broken.map_or_else(String::new, |mismatch| one_line(mismatch.why()));
        match why.strip_prefix("the value ") {
            Some(rule) => format!("the argument `{key}` does not fit: `{text}` {rule}"),
            None => format!("the argument `{key}` cannot be `{text}`: {why}"),
        }
    }
}

/// Returns a checker of an object with one argument, whose schema may refer to those of `root`.
fn checker(key: &str, schema: &Value, root: &Value) -> Option<Checker> {
    if schema.is_null() {
        return None;
    }
    let mut alone = Map::new();
    alone.insert("properties".into(), json!({ key: schema }));
    for member in ["$schema", "$defs", "definitions"] {
        if let Some(member_value) = root.get(member) {
            alone.insert(member.into(), member_value.clone());
        }
    }
    schema::validator().compile(&RawJson::encode(&alone).ok()?).ok()
}

fn check_alone(checker: Option<&Checker>, key: &str, value: &RawJson) -> Result<(), Mismatch> {
    checker.map_or(Ok(()), |checker| checker.check(&Object::new().with(key, value.clone()).into()))
}

/// Returns whether a value has this type of JSON Schema.
fn is_of(value: &RawJson, kind: &str) -> bool {
    match value.kind() {
        JsonKind::Object => kind == "object",
        JsonKind::Array => kind == "array",
        JsonKind::String => kind == "string",
        JsonKind::Bool => kind == "boolean",
        JsonKind::Null => kind == "null",
        JsonKind::Number => {
            kind == "number" || kind == "integer" && value.decode::<f64>().is_ok_and(|number| number.fract() == 0.0)
        }
    }
}

/// Checks arguments against the schema of a tool.
pub(crate) fn check(tool: &Tool, arguments: &Object) -> Result<(), Failure> {
    let name = one_line(&tool.name);
    let required = tool.required_arguments();
    let given = among(required.iter().cloned(), arguments.iter().map(|(name, _)| name.into_owned()));
    if let Some((missing, _)) = required.iter().zip(given).find(|(_, is_given)| !is_given) {
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
        let root: Value = tool.input_schema.decode().unwrap_or_default();
        if let Some(words) = schema_text::words(&root, &root["properties"][&field]) {
            let field = one_line(&field);
            return Failure::usage(format!(
                "the argument `{field}` is one of {}, for the tool {name}",
                words.join(", ")
            ));
        }
        let of = if field.is_empty() { String::new() } else { format!(" `{}`", one_line(&field)) };
        Failure::usage(format!("the argument{of} does not fit the tool {name}: {}", one_line(mismatch.why())))
    })
}

/// Returns the arguments of a tool with their types: `a: integer, b?: string`.
pub(crate) fn usage(tool: &Tool) -> String {
    let schema: Value = tool.input_schema.decode().unwrap_or_default();
    let required = tool.required_arguments();
    let Some(properties) = schema["properties"].as_object() else { return String::new() };
    let marks = among(properties.keys().map(String::as_str), required.iter().map(String::as_str));
    let shown = properties.iter().zip(marks).map(|((name, property), is_required)| {
        let kind = schema_text::kinds(&schema, property);
        let mark = if is_required { "" } else { "?" };
        format!("{}{mark}: {}", one_line(name), one_line(&kind))
    });
    shown.collect::<Vec<_>>().join(", ")
}

/// Returns for each of `names` whether it is one of `some`. A server chooses both, so this takes n
/// log n comparisons.
fn among<T: Ord>(names: impl Iterator<Item = T>, some: impl Iterator<Item = T>) -> Vec<bool> {
    let some: BTreeSet<T> = some.collect();
    names.map(|name| some.contains(&name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use mcp_blocking::mcp_proto::model::page::ListElement;
    use std::cell::Cell;
    use std::cmp;

    thread_local! {
        static COMPARISONS: Cell<usize> = const { Cell::new(0) };
    }

    /// A name that counts its comparisons.
    #[derive(PartialEq, Eq)]
    struct Counted(usize);

    impl Ord for Counted {
        fn cmp(&self, other: &Self) -> cmp::Ordering {
            COMPARISONS.set(COMPARISONS.get() + 1);
            self.0.cmp(&other.0)
        }
    }

    impl PartialOrd for Counted {
        fn partial_cmp(&self, other: &Self) -> Option<cmp::Ordering> {
            Some(self.cmp(other))
        }
    }

    // Twice the properties take at most 2.5 times the comparisons.
    #[test]
    fn required_arguments_are_found_in_linear_work() {
        let work = |n: usize| {
            COMPARISONS.set(0);
            // In an order that is not sorted.
            let names = |step: usize| (0..n).map(move |at| Counted(at * step % n));
            assert!(among(names(7919), names(104_729)).into_iter().all(|is_one| is_one));
            COMPARISONS.get() as f64
        };
        for n in [1000, 20_000] {
            assert!(work(2 * n) <= 2.5 * work(n), "{} for {n}, {} for twice as many", work(n), work(2 * n));
        }
        assert_eq!(among(["a", "b"].iter(), ["b", "c"].iter()), [false, true]);
    }

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
    fn value_is_json_or_the_content_of_a_file() {
        assert_eq!(arguments(&["a:=1", "d:={\"x\": [1,\n2]}"]).as_deref(), Ok(r#"{"a":1,"d":{"x": [1, 2]}}"#));
        assert_eq!(arguments(&["a=1", "e:=\"@x\""]).as_deref(), Ok(r#"{"a":1,"e":"@x"}"#));
        assert!(arguments(&["a=1", "e:=12"]).is_err(), "the type of the schema holds");
        let path = std::env::temp_dir().join(format!("mcp-argument-{}", std::process::id()));
        std::fs::write(&path, "[1,\n 2]\n").expect("written");
        let file = path.to_str().expect("unicode");
        let found = arguments(&["a=1", &format!("c=@{file}"), &format!("e=@{file}")]);
        std::fs::remove_file(&path).expect("removed");
        assert_eq!(found.as_deref(), Ok(r#"{"a":1,"c":[1,  2],"e":"[1,\n 2]\n"}"#));
    }

    #[test]
    fn usage_shows_the_words_of_an_enum() {
        let schema = r##"{"properties":{"a":{"anyOf":[{"$ref":"#/$defs/mode"},{"type":"null"}]},"b":{"enum":["x",1]},
            "c":{"oneOf":[{"type":"string"},{"type":"array"}]},"d":{"enum":["1","2","3","4","5","6","7","8","9","10"]},
            "e":{"$ref":"#/$defs/loop"}},"$defs":{"mode":{"enum":["fast","slow"]},"loop":{"$ref":"#/$defs/loop"}}}"##
            .replace('\n', "");
        let json = format!(r#"{{"name":"t","inputSchema":{schema}}}"#);
        let tool = Tool::read(&RawJson::parse(json).expect("JSON")).expect("a tool");
        let shown = "a?: fast|slow|null, b?: x|1, c?: string|array, d?: 1|2|3|4|5|6|7|8|…, e?: any";
        assert_eq!(usage(&tool), shown);
    }

    #[test]
    fn wrong_argument_is_named() {
        let wrong = |words: &[&str]| arguments(words).expect_err("wrong");
        assert_eq!(wrong(&["a=x"]), "the argument `a` is of the type integer, which `x` is not");
        assert!(wrong(&["b=x"]).starts_with("the tool t needs the argument `a`: a: integer, b?: string|null"));
        assert!(wrong(&["a=1", "c=[\"x\"]"]).starts_with("the argument `c.0` does not fit the tool t: "));
        let forms = "key=value, key:=JSON, key=@FILE, a JSON object, @FILE, or -";
        assert_eq!(wrong(&["a"]), format!("`a` is no argument: {forms}"));
        assert!(wrong(&["a:=x"]).starts_with("the argument `a` is no JSON: "));
        assert!(wrong(&["a=1", "e=@/no/such/file"]).contains("write e:='\"@…\"'"));
        assert!(wrong(&["{a}"]).starts_with("the argument is no JSON object: "));
        assert!(wrong(&["@/no/such/file"]).starts_with("/no/such/file: "));
        assert_eq!(wrong(&["a=1", "f=y"]), "the argument `f` is one of 1, x, and not `y`");
        // The name of a type is a text of the server.
        assert!(!refusal(r#"{"type":"\u001b[2J"}"#, "1").contains('\u{1b}'));
        assert!(!refusal(r#"{"enum":["\u001b[2J"]}"#, "1").contains('\u{1b}'));
    }

    /// Returns why a text is no value of an argument with this schema.
    fn refusal(property: &str, text: &str) -> String {
        let defs = r#""$defs":{"mode":{"enum":["fast","slow"]}}"#;
        let schema = RawJson::parse(format!(r#"{{"properties":{{"a":{property}}},{defs}}}"#)).expect("JSON");
        match object([format!("a={text}")], &schema) {
            Ok(object) => object.to_json().as_str().to_owned(),
            Err(why) => why.to_string(),
        }
    }

    // The rule that is broken, and not the type.
    #[test]
    fn refusal_names_the_rule_and_all_allowed_words() {
        let fit = "the argument `a` does not fit: ";
        let positive = r#"{"type":"integer","minimum":1}"#;
        assert_eq!(refusal(positive, "-5"), format!("{fit}`-5` is less than the minimum of 1"));
        assert_eq!(refusal(positive, "x"), "the argument `a` is of the type integer, which `x` is not");
        let pattern = r#"{"type":"string","pattern":"^[a-z]+$"}"#;
        assert_eq!(refusal(pattern, "A1"), format!("{fit}`A1` does not match \"^[a-z]+$\""));
        let short = refusal(r#"{"type":"string","maxLength":2}"#, "abc");
        assert_eq!(short, format!("{fit}`abc` is longer than 2 characters"));
        // An alternative to null has the rules of the alternative.
        let optional = format!(r#"{{"anyOf":[{positive},{{"type":"null"}}]}}"#);
        assert_eq!(refusal(&optional, "0"), format!("{fit}`0` is less than the minimum of 1"));
        assert_eq!(refusal(&optional, "null"), r#"{"a":null}"#);
        let words = "the argument `a` is one of fast, slow, null, and not `x`";
        for property in [
            r#"{"enum":["fast","slow",null]}"#,
            r#"{"type":["string","null"],"enum":["fast","slow",null]}"#,
            r##"{"anyOf":[{"$ref":"#/$defs/mode"},{"type":"null"}]}"##,
            r#"{"oneOf":[{"const":"fast"},{"const":"slow"},{"const":null}]}"#,
        ] {
            assert_eq!(refusal(property, "x"), words, "{property}");
        }
        // All words, however many there are.
        let many: Vec<String> = (0..40).map(|word| format!("\"w{word}\"")).collect();
        let all = refusal(&format!(r#"{{"enum":[{}]}}"#, many.join(",")), "x");
        assert!(all.contains("w0, w1, ") && all.contains("w39, and not"), "{all}");
    }
}
