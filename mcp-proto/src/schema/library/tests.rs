//! Schemas and values as text.

use super::*;
use alloc::string::String;
use alloc::vec;
use proptest::prelude::*;

fn json(text: &str) -> RawJson {
    RawJson::parse(text.as_bytes().to_vec()).unwrap_or_else(|e| panic!("{e}: {text}"))
}

fn compile(schema: &str) -> Result<Checker, BadSchema> {
    validator().compile(&json(schema))
}

fn bad(schema: &str) -> BadSchema {
    compile(schema).expect_err(schema)
}

/// Returns the path of the mismatch, if any.
fn mismatch(schema: &str, value: &str) -> Option<String> {
    let checker = compile(schema).unwrap_or_else(|e| panic!("{e}: {schema}"));
    checker.check(&json(value)).err().map(|e| e.path().into())
}

const WITHOUT_DIALECT: &str = "";
const DRAFT_7: &str = r#""$schema":"http://json-schema.org/draft-07/schema#","#;
const DRAFT_2019: &str = r#""$schema":"https://json-schema.org/draft/2019-09/schema","#;
const DRAFT_2020: &str = r#""$schema":"https://json-schema.org/draft/2020-12/schema","#;

// covers: SCHEMA-B-001, SCHEMA-B-002, SCHEMA-B-003
#[test]
fn schema_is_read_in_its_dialect_or_in_2020_12() {
    // `prefixItems` exists since 2020-12, an array of `items` until 2019-09, and siblings of `$ref`
    // count since 2019-09.
    let prefix = |dialect: &str| mismatch(&format!(r#"{{{dialect}"prefixItems":[{{"type":"string"}}]}}"#), "[1]");
    let items = |dialect: &str| mismatch(&format!(r#"{{{dialect}"items":[{{"type":"string"}}]}}"#), "[1]");
    let sibling = |dialect: &str| {
        let schema = format!(r##"{{{dialect}"definitions":{{"a":{{}}}},"$ref":"#/definitions/a","type":"string"}}"##);
        mismatch(&schema, "1")
    };
    let first = Some(String::from("/0"));
    for dialect in [WITHOUT_DIALECT, DRAFT_2020] {
        assert_eq!((prefix(dialect), sibling(dialect)), (first.clone(), Some(String::new())), "{dialect}");
        assert!(matches!(bad(&format!(r#"{{{dialect}"items":[{{"type":"string"}}]}}"#)), BadSchema::Invalid { .. }));
    }
    assert_eq!(
        (prefix(DRAFT_2019), items(DRAFT_2019), sibling(DRAFT_2019)),
        (None, first.clone(), Some(String::new()))
    );
    assert_eq!((prefix(DRAFT_7), items(DRAFT_7), sibling(DRAFT_7)), (None, first, None));
}

// covers: SCHEMA-B-003
#[test]
fn unsupported_dialect_is_an_error() {
    for name in [
        "http://json-schema.org/draft-04/schema#",
        "http://json-schema.org/draft-06/schema",
        "https://json-schema.org/draft/next/schema",
        "http://json-schema.org/schema",
        "https://example.com/dialect",
        "",
    ] {
        assert_eq!(bad(&format!(r#"{{"$schema":"{name}"}}"#)), BadSchema::Dialect(name.into()));
        let inner = format!(r#"{{"properties":{{"a":{{"$id":"urn:a","$schema":"{name}"}}}}}}"#);
        assert_eq!(bad(&inner), BadSchema::Dialect(name.into()));
    }
    assert!(matches!(bad(r#"{"$schema":1}"#), BadSchema::Invalid { .. }));
}

// covers: SCHEMA-B-005
#[test]
fn schema_that_is_not_valid_in_its_dialect_is_an_error() {
    for (schema, path) in [
        ("1", ""),
        ("null", ""),
        (r#""{}""#, ""),
        ("[]", ""),
        (r#"{"type":"nonsense"}"#, "/type"),
        (r#"{"properties":{"a":{"minLength":-1}}}"#, "/properties/a/minLength"),
        (r#"{"required":"a"}"#, "/required"),
        (r#"{"allOf":{}}"#, "/allOf"),
        (r#"{"pattern":"("}"#, "/pattern"),
        // Look-around and back-references cannot be matched in linear time.
        (r#"{"pattern":"(?=a)b"}"#, "/pattern"),
        (r#"{"pattern":"(a)\\1"}"#, "/pattern"),
    ] {
        assert!(
            matches!(bad(schema), BadSchema::Invalid { path: at, .. } if at == path),
            "{schema}: {:?}",
            bad(schema)
        );
    }
    assert!(compile("true").is_ok());
    assert_eq!(mismatch("false", "1"), Some(String::new()));
}

#[test]
fn mismatch_names_its_path_and_not_the_value() {
    for (schema, value, path, why) in [
        (r#"{"type":"object"}"#, "[]", "", r#"the value is not of type "object""#),
        (
            r#"{"properties":{"a/b":{"items":{"type":"integer"}}}}"#,
            r#"{"a/b":[1,"secret"]}"#,
            "/a~1b/1",
            r#"the value is not of type "integer""#,
        ),
        (r#"{"required":["a"]}"#, "{}", "", r#""a" is a required property"#),
        (
            r#"{"properties":{"a":{}},"additionalProperties":false}"#,
            r#"{"b":1}"#,
            "",
            "Additional properties are not allowed ('b' was unexpected)",
        ),
        (r#"{"pattern":"^a+$"}"#, r#""ab""#, "", r#"the value does not match "^a+$""#),
    ] {
        let e = compile(schema).unwrap().check(&json(value)).unwrap_err();
        assert_eq!((e.path(), e.why()), (path, why));
    }
}

#[test]
fn formats_are_annotations() {
    for dialect in [WITHOUT_DIALECT, DRAFT_7, DRAFT_2019] {
        assert_eq!(mismatch(&format!(r#"{{{dialect}"format":"date"}}"#), r#""not a date""#), None);
    }
}

#[test]
fn references_within_the_document_are_followed() {
    for schema in [
        r##"{"$ref":"#/$defs/n","$defs":{"n":{"type":"integer"}}}"##,
        r##"{"$ref":"#n","$defs":{"n":{"$anchor":"n","type":"integer"}}}"##,
        r##"{"$dynamicRef":"#n","$defs":{"n":{"$dynamicAnchor":"n","type":"integer"}}}"##,
        r##"{"$ref":"#/$defs/a~1b%20c","$defs":{"a/b c":{"type":"integer"}}}"##,
        r##"{"$ref":"#/allOf/0","allOf":[{"type":"integer"}]}"##,
        r##"{"$id":"https://example.com/a","$ref":"b","$defs":{"b":{"$id":"b","type":"integer"}}}"##,
        r##"{"$id":"https://example.com/a","$ref":"https://example.com/a#/$defs/b","$defs":{"b":{"type":"integer"}}}"##,
        r##"{"$ref":"urn:b#/$defs/c","$defs":{"b":{"$id":"urn:b","$defs":{"c":{"type":"integer"}}}}}"##,
        r##"{"$schema":"http://json-schema.org/draft-07/schema#","$ref":"#n","definitions":{"a":{"$id":"#n","type":"integer"}}}"##,
        r##"{"$schema":"https://json-schema.org/draft/2019-09/schema","anyOf":[{"type":"integer"},{"items":{"$recursiveRef":"#"},"type":"array"}]}"##,
    ] {
        assert_eq!(mismatch(schema, "1"), None, "{schema}");
        assert!(mismatch(schema, r#""a""#).is_some(), "{schema}");
    }
}

// covers: SCHEMA-B-006, SCHEMA-B-007, SCHEMA-B-009, TOOL-C-030
#[test]
fn reference_out_of_the_document_is_refused() {
    for to in [
        "https://example.com/schema.json",
        "http://127.0.0.1:1/schema",
        "http://169.254.169.254/latest/meta-data",
        "file:///etc/passwd",
        "schema.json",
        "//example.com/a",
        "#/$defs/missing",
        "#missing",
        "#%zz",
        "https://json-schema.org/draft/2020-12/schema",
        "https://example.com/a#/b",
        "urn:none",
        ":",
    ] {
        for schema in [
            format!(r#"{{"$ref":"{to}"}}"#),
            format!(r#"{{"$id":"https://example.org/x","properties":{{"a":{{"anyOf":[true,{{"$ref":"{to}"}}]}}}}}}"#),
            format!(r#"{{"$dynamicRef":"{to}"}}"#),
            format!(r#"{{{DRAFT_7}"items":[{{"$ref":"{to}"}}]}}"#),
        ] {
            assert_eq!(bad(&schema), BadSchema::Reference(to.into()), "{schema}");
        }
    }
}

// covers: SCHEMA-B-010
#[test]
fn schemas_that_apply_each_other_without_end_are_refused() {
    for schema in [
        r##"{"$ref":"#"}"##,
        r##"{"allOf":[{"$ref":"#"}]}"##,
        r##"{"not":{"anyOf":[{"$ref":"#/not"}]}}"##,
        r##"{"properties":{"a":{"$ref":"#/$defs/b"}},"$defs":{"b":{"$ref":"#/$defs/c"},"c":{"if":{"$ref":"#/$defs/b"}}}}"##,
        r##"{"dependentSchemas":{"a":{"$ref":"#"}}}"##,
        r##"{"$dynamicAnchor":"a","oneOf":[{"$dynamicRef":"#a"}]}"##,
        r##"{"$schema":"https://json-schema.org/draft/2019-09/schema","allOf":[{"$recursiveRef":"#"}]}"##,
        r##"{"$id":"urn:a","$anchor":"x","allOf":[{"$ref":"urn:a#x"}]}"##,
    ] {
        assert!(matches!(bad(schema), BadSchema::Cycle(_)), "{schema}: {:?}", bad(schema));
    }
    // Each of these applies itself to a part of the value.
    for schema in [
        r##"{"type":"object","properties":{"next":{"$ref":"#"}}}"##,
        r##"{"type":"object","additionalProperties":{"anyOf":[{"type":"null"},{"$ref":"#"}]}}"##,
        r##"{"type":"object","items":{"$ref":"#"}}"##,
    ] {
        assert_eq!(mismatch(schema, r#"{"next":{"next":{}}}"#), None, "{schema}");
    }
}

fn limit(schema: &str) -> SchemaLimit {
    match bad(schema) {
        BadSchema::Limit(limit) => limit,
        other => panic!("{other}"),
    }
}

/// `depth` schemas, each the only item of the one around it.
fn nested(depth: usize) -> String {
    format!("{}true{}", r#"{"items":"#.repeat(depth), "}".repeat(depth))
}

/// A schema that applies `count` others to the same value, each twice as often as the one before.
fn doubling(count: usize) -> String {
    let defs = (0..count).map(|n| {
        let to = format!(r##"{{"$ref":"#/$defs/d{}"}}"##, n + 1);
        format!(r#""d{n}":{{"allOf":[{to},{to}]}},"#)
    });
    let defs: String = defs.collect();
    format!(r##"{{"$ref":"#/$defs/d0","$defs":{{{defs}"d{count}":{{"type":"integer"}}}}}}"##)
}

// covers: SCHEMA-B-010
#[test]
fn schema_beyond_a_limit_is_refused() {
    let Bounds { size, depth, nodes, patterns, pattern_size, .. } = Bounds::default();
    let text = |length: usize| format!(r#"{{"title":"{}"}}"#, "x".repeat(length - 12));
    assert!(compile(&text(size)).is_ok());
    assert_eq!(limit(&text(size + 1)), SchemaLimit::Size);
    // The innermost schema has the depth of all around it and 1.
    assert!(compile(&nested(depth - 1)).is_ok());
    assert_eq!(limit(&nested(depth)), SchemaLimit::Depth);
    let values =
        |count: usize| format!(r#"{{"enum":[{}]}}"#, (2..count).map(|n| format!("{n}")).collect::<Vec<_>>().join(","));
    assert!(compile(&values(nodes)).is_ok());
    assert_eq!(limit(&values(nodes + 1)), SchemaLimit::Nodes);
    let expressions = |count: usize| format!(r#"{{"allOf":[{}]}}"#, vec![r#"{"pattern":"a"}"#; count].join(","));
    assert!(compile(&expressions(patterns)).is_ok());
    assert_eq!(limit(&expressions(patterns + 1)), SchemaLimit::Patterns);
    let long = |length: usize| "a".repeat(length);
    assert!(compile(&format!(r#"{{"pattern":"{}"}}"#, long(pattern_size))).is_ok());
    assert_eq!(limit(&format!(r#"{{"pattern":"{}"}}"#, long(pattern_size + 1))), SchemaLimit::PatternSize);
    assert_eq!(
        limit(&format!(r#"{{"patternProperties":{{"{}":{{}}}}}}"#, long(pattern_size + 1))),
        SchemaLimit::PatternSize
    );
    // A short expression may still need much memory.
    for pattern in ["(.{100}){100}", "a{100000}", "((a{100}){100}){100}"] {
        assert!(matches!(bad(&format!(r#"{{"pattern":"{pattern}"}}"#)), BadSchema::Invalid { .. }), "{pattern}");
    }
    assert!(compile(&doubling(8)).is_ok());
    for count in [16, 40, 1000] {
        assert_eq!(limit(&doubling(count)), SchemaLimit::Work, "{count}");
    }
}

/// Joins parts, with commas.
fn list(count: usize, part: impl Fn(usize) -> String) -> String {
    (0..count).map(part).collect::<Vec<_>>().join(",")
}

// covers: SCHEMA-B-010
#[test]
fn long_names_count_for_each_schema_below_them() {
    let Bounds { locations, .. } = Bounds::default();
    let name = |length: usize| "k".repeat(length);
    // Each property has a JSON Pointer, and so has each of its keywords.
    let below = |name: &str, count: usize| {
        let inner = list(count, |n| format!(r#""p{n}":{{"type":"string"}}"#));
        format!(r#"{{"properties":{{"{name}":{{"properties":{{{inner}}}}}}}}}"#)
    };
    for (length, count) in [(100_000, 18), (1000, 1800), (500, 3600)] {
        assert!(length * count * 2 < locations && compile(&below(&name(length), count)).is_ok(), "{length}");
        assert_eq!(limit(&below(&name(length), count * 6 / 5)), SchemaLimit::Locations, "{length}");
    }
    let long = name(100_000);
    let unused = list(1000, |n| format!(r#""p{n}":{{"$anchor":"a{n}"}}"#));
    for schema in [
        // The URI of a resource is a part of the location of each schema in it.
        format!(r#"{{"$id":"urn:{long}","properties":{{{}}}}}"#, list(1000, |n| format!(r#""p{n}":{{}}"#))),
        // Each is resolved against the one around it.
        format!(r#"{{"$id":"http://a/{long}/","$defs":{{{}}}}}"#, list(1000, |n| format!(r#""p{n}":{{"$id":"{n}"}}"#))),
        format!(
            r#"{{"$id":"http://a/{long}/","properties":{{{}}},"$defs":{{"b":{{"$id":"b"}}}}}}"#,
            list(1000, |n| format!(r#""p{n}":{{"$ref":"b"}}"#))
        ),
        // The library keeps the locations of all anchors, and of what looks like one.
        format!(r##"{{"$ref":"#a1","$defs":{{"{long}":{{{unused}}}}}}}"##),
        format!(r#"{{"const":{{"{long}":[{}]}}}}"#, list(1000, |_| r#"{"id":1}"#.into())),
        // The text itself, where it is compiled again.
        format!(
            r##"{{"$defs":{{"t":{{"additionalProperties":{{"const":"{long}"}}}}}},"properties":{{{}}}}}"##,
            list(100, |n| format!(r##""p{n}":{{"$ref":"#/$defs/t","unevaluatedProperties":false}}"##))
        ),
    ] {
        assert_eq!(limit(&schema), SchemaLimit::Locations, "{}", &schema[schema.len() - 200..]);
    }
    // Once, all of these are legal.
    assert!(compile(&format!(r#"{{"$id":"urn:{long}","properties":{{"a":{{}}}}}}"#)).is_ok());
    assert!(compile(&format!(r#"{{"title":"{long}","properties":{{"{long}":{{"const":"x"}}}}}}"#)).is_ok());
}

// covers: SCHEMA-B-010
#[test]
fn dynamic_references_do_not_multiply_by_anchors() {
    let read = |schema: &str| {
        let document: Value = json(schema).decode().unwrap();
        Graph::read(&document, &Bounds::default()).unwrap_or_else(|e| panic!("{e}"))
    };
    for (dialect, anchor, reference) in [
        (DRAFT_2020, r#""$dynamicAnchor":"x""#, r##""$dynamicRef":"#x""##),
        (DRAFT_2019, r#""$recursiveAnchor":true"#, r##""$recursiveRef":"#""##),
    ] {
        let of = |count: usize| {
            let anchors = list(count, |n| format!(r#""a{n}":{{{anchor}}}"#));
            let references = list(count, |n| format!(r#""r{n}":{{{reference}}}"#));
            format!(r#"{{{dialect}{anchor},"$defs":{{{anchors}}},"properties":{{{references}}}}}"#)
        };
        let edges = |count| {
            let nodes = read(&of(count)).nodes;
            (0..nodes.len()).map(|at| nodes.references(at).len()).sum::<usize>()
        };
        // Each reference leads to the first anchor and to what represents all of them.
        assert_eq!([edges(10), edges(1000)], [10 * 2 + 11, 1000 * 2 + 1001], "{dialect}");
        assert!(compile(&of(2000)).is_ok());
    }
}

// covers: SCHEMA-B-010
#[test]
fn schemas_that_are_compiled_again_count_again() {
    let target = |count: usize| list(count, |n| format!(r#"{{"properties":{{"a{n}":{{"type":"string"}}}}}}"#));
    // Each finds again what its reference evaluates.
    let beside = |keyword: &str, count: usize, targets: usize| {
        let sites = list(count, |n| format!(r##""p{n}":{{"$ref":"#/$defs/t","{keyword}":false}}"##));
        format!(r#"{{"$defs":{{"t":{{"allOf":[{}]}}}},"properties":{{{sites}}}}}"#, target(targets))
    };
    // The target of each reference has two references to the next, each evaluated on its own.
    let chain = |count: usize| {
        let part = |n: usize| {
            let next = format!(r##"{{"$ref":"#/$defs/d{}","unevaluatedProperties":false}}"##, n + 1);
            format!(r#""d{n}":{{"additionalProperties":{next},"unevaluatedProperties":{next}}}"#)
        };
        format!(r##"{{"$ref":"#/$defs/d0","$defs":{{{},"d{count}":{{}}}}}}"##, list(count, part))
    };
    // One resource is reached by two others from each one.
    let diamonds = |count: usize| {
        let part = |n: usize| {
            let next = format!(r#""items":{{"$ref":"r{}"}}"#, n + 1);
            let both = format!(r#""properties":{{"a":{{"$ref":"a{n}"}},"b":{{"$ref":"b{n}"}}}}"#);
            let ids = [("r", &both), ("a", &next), ("b", &next)];
            ids.map(|(id, rest)| format!(r#""{id}{n}":{{"$id":"{id}{n}",{rest}}}"#)).join(",")
        };
        let parts = list(count, part);
        format!(r#"{{"$id":"http://h/","$defs":{{{parts},"z":{{"$id":"r{count}"}}}},"items":{{"$ref":"r0"}}}}"#)
    };
    // Each of these resources refers to all of them.
    let complete = |count: usize| {
        let each = list(count, |n| format!(r#""q{n}":{{"$ref":"i{n}"}}"#));
        let parts = list(count, |n| format!(r#""a{n}":{{"$id":"i{n}","properties":{{{each}}}}}"#));
        format!(r#"{{"$id":"http://h/","$defs":{{{parts}}},"items":{{"$ref":"i0"}}}}"#)
    };
    // References in a row, which the library follows by calling itself.
    let row = |count: usize| {
        let parts = list(count, |n| format!(r##""d{n}":{{"$ref":"#/$defs/d{}"}}"##, n + 1));
        let start = r##""$ref":"#/$defs/d0","unevaluatedProperties":false"##;
        format!(r#"{{{start},"$defs":{{{parts},"d{count}":{{}}}}}}"#)
    };
    // References in a row, each deep in the target of the one before.
    let far = |depth: usize| {
        let part = |n: usize| {
            let next = format!(r##"{{"$ref":"#/$defs/d{}"}}"##, n + 1);
            format!(r#""d{n}":{}{next}{}"#, r#"{"items":"#.repeat(depth), "}".repeat(depth))
        };
        format!(r##"{{"$ref":"#/$defs/d0","$defs":{{{},"d9":{{}}}}}}"##, list(9, part))
    };
    for schema in [
        beside("unevaluatedProperties", 10, 50),
        beside("unevaluatedItems", 10, 50),
        chain(6),
        diamonds(5),
        complete(4),
        row(30),
        far(30),
        // Schemas that refer to each other, as the types of a program do.
        [
            r##"{"$ref":"#/$defs/a","$defs":{"a":{"allOf":[{"$ref":"#/$defs/b"}],"##,
            r##""properties":{"next":{"$ref":"#/$defs/a"}},"unevaluatedProperties":{"not":{}}},"##,
            r##""b":{"properties":{"a":{"$ref":"#/$defs/a"}},"additionalProperties":"##,
            r##"{"$ref":"#/$defs/a","unevaluatedProperties":false}}}}"##,
        ]
        .concat(),
    ] {
        assert!(compile(&schema).is_ok(), "{:?}: {schema}", compile(&schema).err());
    }
    for schema in [
        beside("unevaluatedProperties", 1000, 400),
        beside("unevaluatedItems", 1000, 400),
        beside("unevaluatedProperties", 300, 100),
        chain(30),
        diamonds(14),
        diamonds(60),
        complete(12),
        row(100),
        row(1000),
        far(35),
    ] {
        // The URIs of the resources on the way may reach their limit before.
        let limit = limit(&schema);
        assert!([SchemaLimit::Compiled, SchemaLimit::Locations].contains(&limit), "{limit:?}: {schema:.200}");
    }
}

/// Small schemas, of all keywords that matter here.
fn schema() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("true".into()),
        Just("false".into()),
        Just(r#"{"type":"integer"}"#.into()),
        Just(r#"{"type":["string","null"]}"#.into()),
        Just(r#"{"enum":[1,"a",null]}"#.into()),
        Just(r#"{"minItems":1,"uniqueItems":true}"#.into()),
        Just(r#"{"pattern":"^a*$"}"#.into()),
        Just(r##"{"$ref":"#/$defs/d"}"##.into()),
        Just(r##"{"$ref":"#"}"##.into()),
        Just(r##"{"$ref":"urn:other"}"##.into()),
    ];
    leaf.prop_recursive(4, 24, 3, |inner| {
        let two = (inner.clone(), inner.clone());
        prop_oneof![
            two.clone().prop_map(|(a, b)| format!(r#"{{"allOf":[{a},{b}]}}"#)),
            two.clone().prop_map(|(a, b)| format!(r#"{{"anyOf":[{a},{b}]}}"#)),
            two.clone().prop_map(|(a, b)| format!(r#"{{"oneOf":[{a},{b}],"unevaluatedProperties":{a}}}"#)),
            two.clone().prop_map(|(a, b)| format!(r#"{{"if":{a},"then":{b}}}"#)),
            two.clone().prop_map(|(a, b)| format!(r#"{{"properties":{{"a":{a}}},"additionalProperties":{b}}}"#)),
            two.clone().prop_map(|(a, b)| format!(r#"{{"prefixItems":[{a}],"items":{b}}}"#)),
            two.prop_map(|(a, b)| format!(r#"{{"not":{a},"$defs":{{"d":{b}}}}}"#)),
            inner.prop_map(|a| format!(r#"{{"patternProperties":{{"^a":{a}}},"propertyNames":{a},"contains":{a}}}"#)),
        ]
    })
}

fn value() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![Just("1"), Just("1.5"), Just("null"), Just("true"), Just(r#""a""#), Just(r#""b""#)];
    leaf.prop_map(String::from).prop_recursive(4, 24, 3, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..3).prop_map(|all| format!("[{}]", all.join(","))),
            (inner.clone(), inner).prop_map(|(a, b)| format!(r#"{{"a":{a},"b":{b}}}"#)),
        ]
    })
}

proptest! {
    // The bounds only refuse: what they let through is decided as the crate alone decides it.
    #[test]
    fn bounds_change_no_decision(schema in schema(), value in value()) {
        let alone = jsonschema::options().offline().should_validate_formats(false)
            .with_pattern_options(PatternOptions::regex());
        let plain: (Value, Value) = (json(&schema).decode().unwrap(), json(&value).decode().unwrap());
        if let Ok(checker) = compile(&schema) {
            let valid = alone.build(&plain.0).unwrap().is_valid(&plain.1);
            prop_assert_eq!(checker.check(&json(&value)).is_ok(), valid);
        }
    }
}
