use super::*;
use crate::sizes::scaled;
use alloc::vec;
use proptest::prelude::*;
use serde_json::{Value, json};

const MAX: usize = 100;

fn lesson(mirrored: bool, max: usize) -> Lesson {
    Lesson { mirrored, hints: true, schemas: false, tasks: false, max }
}

fn raw(value: &Value) -> RawJson {
    RawJson::parse(value.to_string()).unwrap()
}

/// Returns the header fields of one schema, as paths and names.
fn annotated(schema: &Value) -> Result<Vec<(String, String)>, String> {
    fn walk(mirror: &Mirror, path: &str, found: &mut Vec<(String, String)>) {
        for (name, inner) in &mirror.inner {
            let path = format!("{path}/{name}");
            found.extend(inner.header.iter().map(|header| (path.clone(), header.clone())));
            walk(inner, &path, found);
        }
    }
    let mut found = vec![];
    walk(&mirror::read(&raw(schema))?, "", &mut found);
    Ok(found)
}

/// A schema with these properties.
fn with(properties: Value) -> Value {
    json!({"type": "object", "properties": properties})
}

fn text(header: &str) -> Value {
    json!({"type": "string", "x-mcp-header": header})
}

fn tool(name: &str, schema: &Value) -> Value {
    json!({"name": name, "inputSchema": schema})
}

fn page(tools: &[Value]) -> RawJson {
    raw(&json!({"resultType": "complete", "tools": tools, "ttlMs": 0}))
}

fn call(name: &str, arguments: &Value) -> Object {
    Object::new().with("name", name).with("arguments", raw(arguments))
}

/// The tools of a server with one tool, which has this schema.
fn knowing(schema: &Value) -> ToolIndex {
    let mut tools = ToolIndex::default();
    assert_eq!(tools.learn(&page(&[tool("t", schema)]), &lesson(true, MAX)), LearnedPage::default());
    tools
}

fn fields(tools: &ToolIndex, arguments: &Value) -> Vec<(String, String)> {
    tools.headers(&call("t", arguments)).unwrap()
}

fn pairs<const N: usize>(pairs: [(&str, &str); N]) -> Vec<(String, String)> {
    pairs.map(|(name, value)| (name.to_string(), value.to_string())).to_vec()
}

// covers: HDR-C-016, HDR-C-039, SEPX-C-007
#[test]
fn annotations_on_properties_are_found_at_any_depth() {
    let schema = with(json!({
        "region": text("Region"),
        "count": {"x-mcp-header": "Count", "type": "integer"},
        "dry": {"type": "boolean", "x-mcp-header": "Method"},
        "query": {"type": "string"},
        "where": with(json!({
            "items": {"type": ["string", "null"], "x-mcp-header": "X-~!"},
            "oneOf": with(json!({"deep": text("Deep")})),
        })),
    }));
    let found = pairs([
        ("/count", "Count"),
        ("/dry", "Method"),
        ("/region", "Region"),
        ("/where/items", "X-~!"),
        ("/where/oneOf/deep", "Deep"),
    ]);
    assert_eq!(annotated(&schema), Ok(found));
    let escaped = RawJson::parse(r#"{"properties":{"a":{"type":"string","x\u002dmcp-header":"A"}}}"#).unwrap();
    assert_eq!(mirror::read(&escaped).unwrap().inner["a"].header.as_deref(), Some("A"));
}

// covers: HDR-C-025, HDR-B-007
#[test]
fn invalid_annotation_is_reported_with_its_path() {
    let one = |property: Value| with(json!({"a": property}));
    let named = |header: Value| one(json!({"type": "string", "x-mcp-header": header}));
    let typed = |kind: Value| one(json!({"type": kind, "x-mcp-header": "A"}));
    let cases = [
        (named(json!("")), "is empty"),
        (named(json!("a b")), "is not a token"),
        (named(json!("a:b")), "is not a token"),
        (named(json!("ü")), "is not a token"),
        (named(json!("a\r\nX-Evil: 1")), "is not a token"),
        (named(json!("a\u{0}")), "is not a token"),
        (named(json!(1)), "is not a string"),
        (named(json!(null)), "is not a string"),
        (named(json!({"name": "A"})), "is not a string"),
        (typed(json!("number")), "is on a type other than"),
        (typed(json!("object")), "is on a type other than"),
        (typed(json!("array")), "is on a type other than"),
        (typed(json!("null")), "is on a type other than"),
        (typed(json!(["string", "number"])), "is on a type other than"),
        (typed(json!(["null"])), "is on a type other than"),
        (typed(json!([])), "is on a type other than"),
        (typed(json!({"string": "string"})), "is on a type other than"),
        (one(json!({"x-mcp-header": "A"})), "is on a type other than"),
        (one(json!({"anyOf": [{"type": "string"}, {"type": "null"}], "x-mcp-header": "A"})), "is on a type other than"),
        (with(json!({"a": text("Region"), "b": with(json!({"a": text("REGION")}))})), "occurs twice"),
    ];
    for (schema, why) in cases {
        let fault = annotated(&schema).unwrap_err();
        assert!(fault.contains(why) && fault.contains("`properties/"), "{schema}: {fault}");
    }
}

// covers: HDR-C-025
#[test]
fn annotation_outside_of_properties_is_invalid() {
    let inner = with(json!({"a": text("A")}));
    let holders = [
        "items",
        "additionalProperties",
        "unevaluatedProperties",
        "unevaluatedItems",
        "contains",
        "propertyNames",
        "not",
        "if",
        "then",
        "else",
        "contentSchema",
        "x-unknown",
    ];
    let lists = ["oneOf", "anyOf", "allOf", "prefixItems", "items"];
    let maps = ["$defs", "definitions", "patternProperties", "dependentSchemas", "dependencies"];
    let mut keyword = vec![];
    for holder in holders {
        keyword.push(json!({holder: inner}));
        keyword.push(json!({holder: text("A")}));
    }
    keyword.extend(lists.map(|list| json!({list: [true, inner]})));
    keyword.extend(maps.map(|map| json!({map: {"x": inner}})));
    keyword.extend(maps.map(|map| json!({map: {"x": text("A")}})));
    for schema in keyword {
        assert!(annotated(&schema).unwrap_err().contains("not reachable"), "{schema}");
        // Below a valid property, and next to a reference to it.
        assert!(annotated(&with(json!({"p": schema}))).is_err(), "{schema}");
        let mut schema = schema;
        schema["properties"] = json!({"r": {"$ref": "#/$defs/x"}, "ok": text("Ok")});
        assert!(annotated(&schema).is_err(), "{schema}");
    }
    let root = json!({"type": "string", "x-mcp-header": "A"});
    assert!(annotated(&root).unwrap_err().contains("not reachable"));
}

#[test]
fn names_and_data_are_not_annotations() {
    let looks = json!({"x-mcp-header": ""});
    let schema = json!({
        "type": "object",
        "default": looks, "const": looks, "enum": [looks], "examples": [{"properties": {"a": looks}}],
        "required": ["x-mcp-header"],
        "properties": {
            "x-mcp-header": {"type": "number"},
            "properties": {"type": "object", "properties": {"x-mcp-header": text("Inner")}},
            "default": {"type": "string", "default": "x-mcp-header", "examples": ["x-mcp-header"]},
            "anything": true,
        },
        "$defs": {"x-mcp-header": {"type": "array", "items": {"const": looks}}},
        "dependentRequired": {"a": ["x-mcp-header"]},
    });
    assert_eq!(annotated(&schema), Ok(pairs([("/properties/x-mcp-header", "Inner")])));
}

#[test]
fn last_of_duplicate_properties_counts() {
    let text = r#"{"properties":{"a":{"type":"string","x-mcp-header":"A"},"a":{"type":"number"}}}"#;
    assert!(mirror::read(&RawJson::parse(text).unwrap()).unwrap().is_empty());
}

#[test]
fn schema_of_maximum_depth_and_size_is_read_in_one_pass() {
    let deep = format!(
        "{}{}{}",
        r#"{"properties":{"a":"#.repeat(60),
        r#"{"type":"string","x-mcp-header":"A"}"#,
        "}}".repeat(60)
    );
    assert_eq!(annotated(&serde_json::from_str(&deep).unwrap()).unwrap().len(), 1);
    // Reading again at each level would take 6 GB.
    let wide = vec![r#""some text of no meaning""#; scaled(2_000_000)].join(",");
    let leaf = format!(r#"{{"examples":[{wide}],"not":{{"x-mcp-header":"A"}}}}"#);
    let both = format!("{}{leaf}{}", r#"{"properties":{"a":"#.repeat(60), "}}".repeat(60));
    assert!(mirror::read(&RawJson::parse(both).unwrap()).unwrap_err().contains("not reachable"));
}

// covers: HDR-C-016, HDR-C-028, HDR-C-029, HDR-C-034, HDR-C-035, HDR-C-036, HDR-C-039, HDR-B-022
#[test]
fn arguments_are_mirrored_from_their_exact_paths() {
    let tools = knowing(&with(json!({
        "s": text("S"),
        "n": {"type": "integer", "x-mcp-header": "N"},
        "b": {"type": "boolean", "x-mcp-header": "B"},
        "plain": {"type": "string"},
        "o": with(json!({"s": text("Inner")})),
    })));
    let all = json!({"s": "us-west1", "n": 42, "b": false, "plain": "p", "o": {"s": "Hello, 世界", "n": 7}, "more": 1});
    let expected = pairs([
        ("Mcp-Param-B", "false"),
        ("Mcp-Param-N", "42"),
        ("Mcp-Param-Inner", "=?base64?SGVsbG8sIOS4lueVjA==?="),
        ("Mcp-Param-S", "us-west1"),
    ]);
    // In the order of the schema, which the serializer of this test may have changed.
    let mut mirrored = fields(&tools, &all);
    mirrored.sort_by_key(|(name, _)| expected.iter().position(|(other, _)| other == name));
    assert_eq!(mirrored, expected);
    for nothing in
        [json!({}), json!({"s": null, "n": null, "b": null, "o": null}), json!({"o": {"s": null}, "x": {"s": "y"}})]
    {
        assert_eq!(fields(&tools, &nothing), [], "{nothing}");
    }
    assert_eq!(fields(&tools, &json!({"s": "", "o": "no object"})), pairs([("Mcp-Param-S", "")]));
    for (text, value) in
        [(" padded ", "=?base64?IHBhZGRlZCA=?="), ("a\r\nX: 1", "=?base64?YQ0KWDogMQ==?="), ("42", "42")]
    {
        assert_eq!(fields(&tools, &json!({"s": text})), pairs([("Mcp-Param-S", value)]));
    }
    for (number, value) in [
        ("0", "0"),
        ("-7", "-7"),
        ("42.0", "42"),
        ("1e2", "100"),
        ("9007199254740991", "9007199254740991"),
        ("-9007199254740991", "-9007199254740991"),
        ("true", "true"),
    ] {
        let arguments: Value = serde_json::from_str(&format!(r#"{{"n":{number}}}"#)).unwrap();
        let params = call("t", &arguments).with("arguments", RawJson::parse(format!(r#"{{"n":{number}}}"#)).unwrap());
        assert_eq!(tools.headers(&params).unwrap(), pairs([("Mcp-Param-N", value)]), "{number}");
    }
    assert_eq!(tools.headers(&call("unknown", &all)).unwrap(), []);
    assert_eq!(tools.headers(&Object::new().with("name", "t")).unwrap(), []);
}

// covers: HDR-B-022
#[test]
fn argument_unfit_for_a_field_is_an_error_with_its_name() {
    let tools = knowing(&with(json!({"n": {"type": "integer", "x-mcp-header": "N"}})));
    for number in ["9007199254740992", "-9007199254740992", "1e300", "1.5", "18446744073709551616", "[1]", "{}"] {
        let params = Object::new().with("name", "t");
        let arguments = RawJson::parse(format!(r#"{{"n":{number}}}"#)).unwrap();
        let e = tools.headers(&params.with("arguments", arguments)).unwrap_err().to_string();
        assert!(e.contains("`n`") && e.contains("Mcp-Param-N"), "{number}: {e}");
    }
}

// covers: HDR-C-025, HDR-C-026
#[test]
fn only_invalid_tools_are_left_out() {
    let good =
        r#"{ "name":"good" , "inputSchema":{"properties":{"a":{"type":"string","x-mcp-header":"A"}}},"x":[1 ,2] }"#;
    let bad = r#"{"name":"bad","inputSchema":{"properties":{"a":{"type":"number","x-mcp-header":"A"}}}}"#;
    let odd = r#"{"name":7,"inputSchema":3},"no tool""#;
    let list = |tools: &str| {
        RawJson::parse(format!(
            r#"{{"resultType":"complete", "tools" : [{tools}],"nextCursor":"c","_meta":{{"a" : 1}}}}"#
        ))
        .unwrap()
    };
    let mut tools = ToolIndex::default();
    let all = [bad, good, odd, bad].join(",");
    let page = tools.learn(&list(&all), &lesson(true, MAX));
    let names: Vec<&str> = page.invalid.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["bad", "bad"]);
    assert!(page.invalid[0].1.contains("`properties/a`"));
    assert_eq!(
        page.without.unwrap().as_str(),
        format!(r#"{{"resultType":"complete","tools":[{good},{odd}],"nextCursor":"c","_meta":{{"a" : 1}}}}"#)
    );
    assert_eq!(tools.learn(&list(good), &lesson(true, MAX)), LearnedPage::default());
    for whatever in ["[]", "1", r#"{"tools":{}}"#, "{}", r#"{"tools":null}"#] {
        assert_eq!(tools.learn(&RawJson::parse(whatever).unwrap(), &lesson(true, MAX)), LearnedPage::default());
    }
    assert_eq!(tools.headers(&call("good", &json!({"a": "1"}))).unwrap().len(), 1);
}

// covers: HDR-C-027
#[test]
fn hints_count_without_header_mirroring() {
    let mut bad = tool("t", &with(json!({"a": text("")})));
    bad["annotations"] = json!({"readOnlyHint": true});
    let mut tools = ToolIndex::default();
    assert_eq!(
        tools.learn(&page(&[bad, tool("u", &with(json!({"a": text("A")})))]), &lesson(false, MAX)),
        LearnedPage::default()
    );
    assert!(tools.is_repeatable(&call("t", &json!({}))));
    assert_eq!(tools.headers(&call("u", &json!({"a": "1"}))).unwrap(), []);
}

// covers: B-217
#[test]
fn newest_listing_of_a_tool_counts() {
    let mut tools = knowing(&with(json!({"a": text("Old")})));
    let arguments = json!({"a": "1"});
    tools.learn(&page(&[tool("t", &with(json!({"a": text("New")})))]), &lesson(true, MAX));
    assert_eq!(fields(&tools, &arguments), pairs([("Mcp-Param-New", "1")]));
    tools.learn(&page(&[tool("t", &with(json!({"a": text("")})))]), &lesson(true, MAX));
    assert_eq!(fields(&tools, &arguments), []);
    tools.learn(&page(&[tool("t", &with(json!({"a": text("New")})))]), &lesson(true, MAX));
    tools.learn(&page(&[tool("t", &json!({}))]), &lesson(true, MAX));
    assert_eq!(fields(&tools, &arguments), []);
    tools.learn(&page(&[tool("t", &with(json!({"a": text("New")})))]), &lesson(true, MAX));
    tools.clear();
    assert_eq!(fields(&tools, &arguments), []);
    assert!(tools.order.is_empty() && tools.weight == 0);
}

#[test]
fn read_only_or_idempotent_tools_may_run_twice() {
    let mut tools = ToolIndex::default();
    let cases = [
        (json!({"readOnlyHint": true}), true),
        (json!({"idempotentHint": true, "readOnlyHint": false}), true),
        (json!({"idempotentHint": false}), false),
        (json!({"readOnlyHint": "true"}), false),
        (json!({"destructiveHint": false, "title": "readOnlyHint"}), false),
        (json!(null), false),
        (json!([true]), false),
    ];
    for (annotations, repeatable) in cases {
        tools.learn(&page(&[json!({"name": "t", "inputSchema": {}, "annotations": annotations})]), &lesson(true, MAX));
        assert_eq!(tools.is_repeatable(&call("t", &json!({}))), repeatable, "{annotations}");
    }
    assert!(!tools.is_repeatable(&Object::new()));
}

#[test]
fn tool_listed_longest_ago_is_evicted_beyond_the_limit() {
    let mut tools = ToolIndex::default();
    let known = |tools: &ToolIndex| tools.order.values().cloned().collect::<Vec<_>>();
    let list = |names: &[&str]| {
        let all: Vec<Value> = names.iter().map(|name| tool(name, &with(json!({"a": text("A")})))).collect();
        page(&all)
    };
    tools.learn(&list(&["a", "b", "c"]), &lesson(true, 3));
    tools.learn(&list(&["a", "d"]), &lesson(true, 3));
    assert_eq!(known(&tools), ["c", "a", "d"]);
    // A listing that needs no place evicts nothing.
    tools.learn(&page(&[tool("e", &json!({}))]), &lesson(true, 3));
    assert_eq!(known(&tools), ["c", "a", "d"]);
    // A long name occupies several places, and one that is too long gets none.
    let long = "x".repeat(WEIGHT / 2);
    tools.learn(&list(&[&long]), &lesson(true, 3));
    assert_eq!(known(&tools), ["d", &long]);
    tools.learn(&list(&[&"y".repeat(3 * WEIGHT)]), &lesson(true, 3));
    assert!(known(&tools).is_empty() && tools.known.is_empty() && tools.weight == 0);
    tools.learn(&list(&["a"]), &lesson(true, 0));
    assert!(tools.known.is_empty());
}

/// A second implementation of the rules, over a tree: returns the fields of a schema by path, or an
/// error.
fn by_the_book(schema: &Value) -> Result<BTreeMap<String, String>, ()> {
    fn look(schema: &Value, path: &str, reachable: bool, found: &mut Vec<(String, String)>) -> Result<(), ()> {
        let Value::Object(members) = schema else {
            return schema.as_array().into_iter().flatten().try_for_each(|one| look(one, path, false, found));
        };
        if let Some(annotation) = members.get("x-mcp-header") {
            let name = annotation.as_str().filter(|name| crate::exchange::is_token(name)).ok_or(())?;
            let kinds = match members.get("type") {
                Some(Value::Array(kinds)) => kinds.clone(),
                Some(kind) => vec![kind.clone()],
                None => vec![],
            };
            let carried = ["string", "integer", "boolean"].map(Value::from);
            let some = kinds.iter().any(|kind| carried.contains(kind));
            let all = kinds.iter().all(|kind| carried.contains(kind) || kind == "null" && members["type"].is_array());
            if !reachable || path.is_empty() || !some || !all {
                return Err(());
            }
            found.push((path.into(), name.into()));
        }
        for (keyword, value) in members {
            match (keyword.as_str(), value) {
                ("x-mcp-header" | "type" | "default" | "enum", _) => {}
                ("properties" | "$defs", Value::Object(named)) => {
                    for (name, schema) in named {
                        look(schema, &format!("{path}/{name}"), reachable && keyword == "properties", found)?;
                    }
                }
                // Not a map of schemas, so it contains none.
                ("properties" | "$defs", _) => {}
                (_, value) => look(value, path, false, found)?,
            }
        }
        Ok(())
    }
    let mut found = vec![];
    look(schema, "", true, &mut found)?;
    let names: alloc::collections::BTreeSet<String> = found.iter().map(|(_, name)| name.to_ascii_lowercase()).collect();
    if names.len() == found.len() { Ok(found.into_iter().collect()) } else { Err(()) }
}

/// Schemas, mostly valid, with few words.
fn schemas() -> impl Strategy<Value = Value> {
    let kind = prop::sample::select(vec![
        json!("string"),
        json!("integer"),
        json!(["boolean", "null"]),
        json!("number"),
        json!(["string", "array"]),
    ]);
    let header = prop::sample::select(vec!["A", "B", "C", "D", "E", "a", "", "x y"]);
    let leaf = prop_oneof![
        4 => (kind, header).prop_map(|(kind, header)| json!({"type": kind, "x-mcp-header": header})),
        4 => Just(json!({"type": "string"})),
        1 => Just(json!(true)),
        1 => Just(json!([1, "x-mcp-header", {"default": 1}])),
    ];
    let key = prop_oneof![
        12 => Just("properties"),
        1 => prop::sample::select(vec!["items", "oneOf", "$defs", "default", "enum", "x-other", "x-mcp-header"]),
    ];
    let name = prop::sample::select(vec!["a", "b", "c", "items", "properties", "x-mcp-header"]);
    leaf.prop_recursive(4, 24, 4, move |inner| {
        let named = prop::collection::btree_map(name.clone(), inner, 0..4).prop_map(|named| json!(named));
        prop::collection::btree_map(key.clone(), named, 1..3).prop_map(|members| json!(members))
    })
}

proptest! {
    // covers: HDR-C-025
    #[test]
    fn schema_is_read_like_by_the_reference(schema in schemas()) {
        let read = annotated(&schema).map(|found| found.into_iter().collect::<BTreeMap<_, _>>());
        prop_assert_eq!(read.map_err(drop), by_the_book(&schema), "{}", schema);
    }
}
