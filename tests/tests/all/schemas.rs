//! The validator against schemas and values of a hostile peer: time and stack are bounded.

use std::time::{Duration, Instant};

use mcp_proto::RawJson;
use mcp_proto::schema::{BadSchema, Checker, validator};

fn json(text: &str) -> RawJson {
    RawJson::parse(text.as_bytes().to_vec()).unwrap()
}

fn compile(schema: &str) -> Result<Checker, BadSchema> {
    validator().compile(&json(schema))
}

// covers: SCHEMA-B-010
#[test]
fn hostile_schema_and_value_are_checked_within_seconds() {
    let deep = |depth: usize| format!("{}1{}", r#"{"x":"#.repeat(depth), "}".repeat(depth));
    let numbers = |count: usize| format!("[{}]", vec!["1"; count].join(","));
    // Twice as much work for each level of the value.
    let recursive = r##"{"$ref":"#/$defs/n","$defs":{"n":{"properties":{"x":{"anyOf":[{"$ref":"#/$defs/n"},{"$ref":"#/$defs/n"}]}},"type":"object"}}}"##;
    let many = format!(r#"{{"items":{{"allOf":[{}]}}}}"#, vec![r#"{"type":"number"}"#; 4000].join(","));
    let choices: Vec<String> = (0..9000).map(|n| format!("{n}.5")).collect();
    let choice = format!(r#"{{"items":{{"enum":[{}]}}}}"#, choices.join(","));
    let long = format!("\"{}\"", "ab".repeat(1 << 20));
    let shared: String = (0..60)
        .map(|n| {
            let to = format!(r##"{{"$ref":"#/$defs/d{}"}}"##, n + 1);
            format!(r#""d{n}":{{"properties":{{"x":{to},"y":{to}}}}},"#)
        })
        .collect();
    let shared = format!(r##"{{"$ref":"#/$defs/d0","$defs":{{{shared}"d60":{{"type":"string"}}}}}}"##);
    // An expression without a short automaton.
    let slow = r#"{"pattern":"(a|b)*a(a|b){200}c$"}"#;
    for (schema, value, matches) in [
        (recursive, deep(20), false),
        (recursive, deep(120), false),
        (&*many, numbers(2_000), true),
        (&*many, numbers(100_000), false),
        (&*choice, numbers(100_000), false),
        (slow, format!("\"{}\"", "ab".repeat(500_000)), false),
        (slow, long, false),
        (&*shared, deep(60), false),
        (r#"{"items":{"multipleOf":1e-300}}"#, r#"[1e300]"#.into(), true),
        (r#"{"uniqueItems":true}"#, numbers(100_000), false),
    ] {
        let began = Instant::now();
        let checker = compile(schema).unwrap();
        let found = checker.check(&json(&value)).map_err(|e| e.why().len());
        assert!(began.elapsed() < Duration::from_secs(20), "{:?} {schema:.80}", began.elapsed());
        assert_eq!(found.is_ok(), matches, "{schema:.80}");
    }
}

#[test]
fn deep_value_is_refused_before_it_exhausts_the_stack() {
    // 16 schemas in a row for each level.
    let chain: String = (0..15).map(|n| format!(r##""d{n}":{{"$ref":"#/$defs/d{}"}},"##, n + 1)).collect();
    let schema = format!(r##"{{"$ref":"#/$defs/d0","$defs":{{{chain}"d15":{{"items":{{"$ref":"#/$defs/d0"}}}}}}}}"##);
    let check = |depth: usize| {
        let checker = compile(&schema).unwrap();
        let value = json(&format!("{}{}", "[".repeat(depth), "]".repeat(depth)));
        // Less than any thread has by default.
        std::thread::Builder::new()
            .stack_size(1 << 20)
            .spawn(move || checker.check(&value).is_ok())
            .unwrap()
            .join()
            .unwrap()
    };
    assert!(check(20));
    assert!(!check(120));
}
