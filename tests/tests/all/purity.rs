//! What the core does not use: clock, threads, environment, randomness, global state, and decoding
//! that depends on the features of others.

use crate::checked_sources::{core, faults, module, none_found, within};
use mcp_tests::sources::{Line, Source, has_word};

/// Names that a core without clock, threads, environment, randomness and global state never uses.
const IMPURE: [&str; 18] = [
    "std::time",
    "std::thread",
    "std::net",
    "std::env",
    "std::fs",
    "Instant::now",
    "SystemTime",
    "HashMap",
    "HashSet",
    "RandomState",
    "static mut",
    "thread_local",
    "OnceLock",
    "OnceCell",
    "LazyLock",
    "LazyCell",
    "rand",
    "getrandom",
];

/// Ways of decoding that break when a user's build turns on features of serde_json, or that accept
/// input that the core must refuse.
const FRAGILE: [&str; 6] = ["RawValue", "flatten", "untagged", "tag", "content", "remote"];

/// The attributes for recordings: externally tagged derives, and fields that `record` writes. The
/// types of the protocol are decoded without them.
const RECORDED: [(&str, &[&str]); 5] = [
    ("#[cfg_attr(feature = \"\", derive(serde::Serialize, serde::Deserialize))]", &["record"]),
    ("#[cfg_attr(feature = \"\", derive(serde::Serialize))]", &["record"]),
    // A recording from before a limit existed.
    ("#[cfg_attr(feature = \"\", serde(default))]", &["record"]),
    ("#[cfg_attr(feature = \"\", serde(with = \"\"))]", &["record", "crate::record::value"]),
    (
        "#[cfg_attr(feature = \"\", serde(from = \"\", into = \"\"))]",
        &["record", "Vec<(String, String)>", "Vec<(String, String)>"],
    ),
];

#[test]
fn core_uses_no_clock_thread_environment_or_randomness() {
    let sources = core();
    let found = faults(&sources, |source, line| {
        let process = has_word(&line.code, "std::process") && module(source) != "process";
        let state = line.code.trim_start().trim_start_matches("pub ").starts_with("static ")
            && ["Atomic", "Mutex", "RwLock", "Cell"].iter().any(|kind| line.code.contains(kind));
        let word = IMPURE.into_iter().find(|word| has_word(&line.code, word));
        word.or(process.then_some("std::process")).or(state.then_some("a static that changes")).map(str::to_owned)
    });
    none_found(&sources, found);
}

#[test]
fn core_uses_no_fragile_decoding() {
    let sources = core();
    let found = faults(&sources, |source, line| if line.test { None } else { fragile(source, line) });
    none_found(&sources, found);
}

/// Returns the attribute of serde in a line that is not for a recording, or breaks one.
fn fragile(source: &Source, line: &Line) -> Option<String> {
    let recorded = |(code, strings): &(&str, &[&str])| line.code.contains(code) && line.strings == *strings;
    let is_derive = line.code.contains("derive(") && line.code.contains("ialize");
    let is_attribute = is_derive || line.code.contains("serde(");
    let word = FRAGILE.into_iter().find(|word| is_attribute && has_word(&line.code, word));
    let word = word.or(Some("RawValue").filter(|word| has_word(&line.code, word)));
    let elsewhere = is_attribute && module(source) != "record" && !RECORDED.iter().any(recorded);
    word.or(elsewhere.then_some("serde")).map(|word| format!("{word} is not used here"))
}

#[test]
fn core_and_its_tests_never_sleep() {
    let sources: Vec<Source> = [core(), within("tests/src/sim"), within("mcp-proto/tests/")].concat();
    let found = faults(&sources, |_, line| has_word(&line.code, "sleep").then(|| "sleep".to_owned()));
    none_found(&sources, found);
}

/// The checks above find nothing in correct sources. These lines show that one can find a breach.
#[test]
fn fragile_decoding_is_detected() {
    let is_fragile = |path: &str, text: &str| {
        let source = Source::new(path, text);
        fragile(&source, &source.lines[0]).is_some()
    };
    let derive = "#[cfg_attr(feature = \"record\", derive(serde::Serialize, serde::Deserialize))]";
    assert!(!is_fragile("mcp-proto/src/call.rs", derive));
    assert!(!is_fragile("mcp-proto/src/record/line.rs", "#[derive(Serialize)]"));
    for line in [
        "#[derive(Clone, serde::Serialize)]",
        "#[cfg_attr(feature = \"std\", derive(serde::Serialize))]",
        "#[cfg_attr(feature = \"record\", serde(untagged))]",
        "#[cfg_attr(feature = \"record\", serde(with = \"other\"))]",
    ] {
        assert!(is_fragile("mcp-proto/src/call.rs", line), "{line}");
    }
    for line in ["#[serde(tag = \"type\")]", "#[serde(flatten)]", "let raw: &RawValue;"] {
        assert!(is_fragile("mcp-proto/src/record/line.rs", line), "{line}");
    }
}
