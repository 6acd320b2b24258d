//! The memory of compiling schemas of the permitted size, from a peer that wants to exhaust it.

use mcp_proto::RawJson;
use mcp_proto::schema::{Bounds, validator, validator_with};
use mcp_tests::heap::{bytes, used};

const MAX: usize = 256 << 10;
const MIB: usize = 1 << 20;

/// Joins as many parts as fit into a schema, at most `count`.
fn filled(head: &str, tail: &str, count: usize, part: impl Fn(usize) -> String) -> String {
    let mut schema = String::from(head);
    for n in 0..count {
        let part = part(n);
        if schema.len() + part.len() + tail.len() + 1 > MAX {
            break;
        }
        schema.extend((n > 0).then_some(','));
        schema.push_str(&part);
    }
    schema + tail
}

/// A schema, where one that is refused names the reason.
type Case = (String, Option<&'static str>);

/// Schemas that are compiled once, in all that one may have.
fn wide() -> Vec<Case> {
    let defs = r##"{"$defs":{"a":{"type":"string"}},"properties":{"##;
    [
        filled(r#"{"properties":{"#, "}}", 9990, |n| format!(r#""{n:018}":{{}}"#)),
        filled(r#"{"properties":{"#, "}}", 4990, |n| format!(r#""{n:026}":{{"uniqueItems":true}}"#)),
        filled(r#"{"allOf":["#, "]}", 4990, |_| r#"{"not":{}}"#.into()),
        filled(r#"{"enum":["#, "]}", 9990, |n| format!("\"{n:020}\"")),
        filled(r#"{"properties":{"#, "}}", 4900, |n| format!(r#""p{n}":{{"unevaluatedProperties":false}}"#)),
        filled(defs, "}}", 4970, |n| format!(r##""p{n}":{{"$ref":"#/$defs/a"}}"##)),
        format!(
            r#"{{"properties":{{"{}":{{{}}}}}}}"#,
            "k".repeat(400),
            filled(r#""properties":{"#, "}", 4500, |n| format!(r#""p{n}":{{"type":"string"}}"#))
        ),
    ]
    .map(|schema| (schema, None))
    .into()
}

/// Schemas whose names, references or resources multiply.
fn hostile() -> Vec<Case> {
    const NAMES: &str = "the names and URIs of the schema are too long for the number of schemas below them";
    const COSTLY: &str = "the schema is too costly to compile";
    let long = "k".repeat(100_000);
    let anchors = |n| format!(r##""a{n}":{{"$dynamicAnchor":"x"}}"##);
    let references = |n| format!(r##""r{n}":{{"$dynamicRef":"#x"}}"##);
    let target = filled(r#"{"allOf":["#, "]}", 400, |n| format!(r#"{{"properties":{{"a{n}":{{}}}}}}"#));
    let beside = |keyword: &str| {
        let head = format!(r#"{{"$defs":{{"t":{target}}},"properties":{{"#);
        filled(&head, "}}", 1400, |n| format!(r##""p{n}":{{"$ref":"#/$defs/t","{keyword}":false}}"##))
    };
    let complete = filled(r#"{"$id":"http://h/","items":{"$ref":"i0"},"$defs":{"#, "}}", 12, |n| {
        let each = filled("{", "}", 12, |n| format!(r#""q{n}":{{"$ref":"i{n}"}}"#));
        format!(r#""a{n}":{{"$id":"i{n}","properties":{each}}}"#)
    });
    let nested = format!(r#"{{"properties":{{"{long}":{{"properties":{{"#);
    [
        (filled(&nested, "}}}}", 9000, |n| format!(r#""p{n}":{{}}"#)), Some(NAMES)),
        (
            filled(&format!(r#"{{"$id":"urn:{long}","properties":{{"#), "}}", 9000, |n| format!(r#""p{n}":{{}}"#)),
            Some(NAMES),
        ),
        (
            filled(&format!(r#"{{"$id":"http://a/{long}/","$defs":{{"#), "}}", 4900, |n| {
                format!(r#""p{n}":{{"$id":"{n}"}}"#)
            }),
            Some(NAMES),
        ),
        (
            format!(
                r#"{{"$dynamicAnchor":"x",{},{}}}"#,
                filled(r#""$defs":{"#, "}", 2250, anchors),
                filled(r#""properties":{"#, "}", 2250, references)
            ),
            None,
        ),
        (beside("unevaluatedProperties"), Some(COSTLY)),
        (beside("unevaluatedItems"), Some(COSTLY)),
        (complete, Some(COSTLY)),
    ]
    .into()
}

/// Compiles a schema. Returns the reason for which it is refused, the bytes that were ever
/// allocated, also those that were freed before the next, and those that are kept.
fn compiled(schema: String) -> (Option<String>, usize, usize) {
    // The schema of the dialect is compiled once, and stays.
    let first = RawJson::parse(r#"{"type":"object"}"#).expect("it is JSON");
    assert!(validator().compile(&first).is_ok());
    let schema = RawJson::parse(schema).expect("it is JSON");
    let (before, held) = (bytes(), used());
    let compiled = validator().compile(&schema);
    (compiled.as_ref().err().map(ToString::to_string), bytes() - before, used().saturating_sub(held))
}

// covers: SCHEMA-B-010
#[test]
fn memory_of_compiling_a_schema_is_bounded() {
    let _alone = crate::alone();
    for (schema, why) in wide().into_iter().chain(hostile()) {
        assert!(schema.len() <= MAX);
        let shown = schema[..80].to_owned();
        let (refusal, allocated, kept) = compiled(schema);
        assert!(allocated <= 64 * MIB, "{shown}: {} MiB", allocated / MIB);
        assert_eq!(refusal.as_deref(), why, "{shown}");
        assert!(kept <= if why.is_none() { 24 * MIB } else { 4096 }, "{shown}: {kept}");
    }
}

// covers: SCHEMA-B-010
#[test]
fn the_smallest_schemas_take_little_more_than_their_text() {
    let _alone = crate::alone();
    let mut bounds = Bounds::default();
    // It is refused when everything is known about it that is asked before it is compiled.
    bounds.compiled = 1;
    let parts: [&dyn Fn(usize) -> String; 6] = [
        &|_| r#"{"if":{}}"#.into(),
        &|_| r#"{"if":1}"#.into(),
        &|_| "1".into(),
        &|n| format!(r#"{{"$id":"{n:x}","if":{{}}}}"#),
        &|n| format!(r#"{{"$dynamicAnchor":"{n:x}","if":{{}}}}"#),
        &|n| format!(r##"{{"$anchor":"{n:x}","$ref":"#"}}"##),
    ];
    for (part, count) in parts.iter().flat_map(|part| [1000, 2300, 3300].map(|count| (part, count))) {
        let schema = filled(r#"{"items":["#, "]}", count, part);
        let length = schema.len();
        let (schema, before) = (RawJson::parse(schema).expect("it is JSON"), bytes());
        let value: serde_json::Value = schema.decode().expect("it is JSON");
        let decoded = bytes() - before;
        drop(value);
        let before = bytes();
        let refused = validator_with(bounds.clone()).compile(&schema).expect_err("it is over the bound");
        assert_eq!(refused.to_string(), "the schema is too costly to compile");
        // Most of it is freed before the rest is allocated: never are 16 bytes a byte in use.
        let each = (bytes() - before).saturating_sub(decoded) / length;
        assert!(each <= 24, "{}: {each} bytes a byte", part(0));
    }
}

// covers: SCHEMA-B-010
#[test]
fn regular_expressions_of_a_schema_are_compiled_one_by_one() {
    let _alone = crate::alone();
    let of = |count| filled(r#"{"allOf":["#, "]}", count, |n| format!(r#"{{"pattern":"{n}\\p{{L}}{{6}}"}}"#));
    let (refusal, allocated, _) = compiled(of(1));
    assert!(refusal.is_none() && allocated <= 2 * MIB, "{allocated}");
    // Each keeps less than it takes to compile one.
    let (refusal, _, kept) = compiled(of(64));
    assert!(refusal.is_none() && kept <= 32 * MIB, "{kept}");
}
