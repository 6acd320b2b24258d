//! The conventions of all crates: no unsafe code, no protocol in an adapter, no error code of our
//! own, files of one subject.

use crate::checked_sources::{adapters, all, core, faults, none_found, shared, within};
use mcp_tests::sources::{Line, Source, has_word};

/// Words of the protocol, in any literal of an adapter, in small letters.
const PROTOCOL: [&str; 22] = [
    "tools/",
    "resources/",
    "prompts/",
    "notifications/",
    "completion/",
    "logging/",
    "sampling/",
    "elicitation/",
    "roots/",
    "tasks/",
    "subscriptions/",
    "server/discover",
    "jsonrpc",
    "mcp-session",
    "mcp-protocol",
    "mcp-method",
    "mcp-name",
    "mcp-param",
    "last-event-id",
    "application/json",
    "text/event-stream",
    "http/1.",
];

/// Whole literals that are method names, keys or header names.
const KEYS: [&str; 32] = [
    "initialize",
    "ping",
    "id",
    "method",
    "params",
    "result",
    "error",
    "code",
    "message",
    "data",
    "_meta",
    "name",
    "arguments",
    "content",
    "text",
    "type",
    "tools",
    "cursor",
    "nextCursor",
    "resultType",
    "inputRequests",
    "requestState",
    "progressToken",
    "protocolVersion",
    "capabilities",
    "clientInfo",
    "serverInfo",
    "accept",
    "content-type",
    "content-length",
    "host",
    "origin",
];

/// A file with more lines than this has more than one subject.
const LONGEST: usize = 600;

#[test]
fn crates_have_no_unsafe_code() {
    // The WebAssembly module exports names and has an allocator. It exists for the tests, and
    // explains each `unsafe` block.
    let roots = |source: &Source| {
        let root = source.path.ends_with("/src/lib.rs") || source.path.starts_with("fuzz/fuzz_targets/");
        root && source.path != "tests/wasm/src/lib.rs"
    };
    let sources: Vec<Source> = all().into_iter().filter(roots).collect();
    let forbids = |source: &Source| source.lines.iter().any(|line| line.code.trim() == "#![forbid(unsafe_code)]");
    let found = sources.iter().filter(|source| !forbids(source)).map(|source| source.at(1)).collect();
    assert!(sources.len() >= 6 + 6, "a crate root is missing");
    none_found(&sources, found);
}

#[test]
fn adapters_contain_no_protocol_words() {
    let sources = adapters();
    let found = faults(&sources, |_, line| {
        if line.test {
            return None;
        }
        let literal = line.strings.iter().find(|text| {
            let small = text.to_lowercase();
            PROTOCOL.iter().any(|word| small.contains(word)) || KEYS.iter().any(|key| key.eq_ignore_ascii_case(text))
        });
        literal
            .map(|text| format!("{text:?}"))
            .or_else(|| status(&line.code).map(|number| format!("{number} looks like a status")))
    });
    none_found(&sources, found);
}

/// Returns a number of the line that is a registered HTTP status. Milliseconds do not count.
fn status(code: &str) -> Option<u32> {
    let is_status =
        |number: u32| matches!(number, 200 | 202 | 204 | 400..=417 | 421..=429 | 431 | 451 | 500..=508 | 510 | 511);
    let words = code.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '.');
    let number = words
        .filter_map(|word| word.trim_end_matches("u16").trim_end_matches('_').parse().ok())
        .find(|number| is_status(*number));
    number.filter(|_| !code.contains("from_millis("))
}

#[test]
fn files_have_one_subject() {
    let shipped = [core(), shared(), adapters(), within("tests/src/")].concat().into_iter();
    let sources: Vec<Source> = shipped.filter(|source| source.shipped().next().is_some()).collect();
    let length = |source: &Source| source.shipped().count();
    let long = sources.iter().filter(|source| length(source) > LONGEST);
    let found = long.map(|source| format!("{}: {} lines without its tests", source.at(1), length(source))).collect();
    none_found(&sources, found);
}

/// Returns the numbers from -32000 down in a line of code.
fn error_codes(code: &str) -> Vec<i64> {
    let words = code.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '-');
    let number = |word: &str| word.trim_end_matches("i64").replace('_', "").parse::<i64>().ok();
    words.filter_map(number).filter(|code| (-32768..=-32000).contains(code)).collect()
}

// covers: RPC-B-032, RPC-B-033, RPC-B-035
#[test]
fn error_codes_are_registered() {
    const DEFINED: [i64; 10] = [-32700, -32600, -32601, -32602, -32603, -32002, -32020, -32021, -32022, -32042];
    let sources = [core(), shared(), adapters()].concat();
    // A code of an older revision that 2026-07-28 forbids is only recognised, to be replaced.
    let recognised = |code: i64, line: &Line| line.code.contains(&format!("{code} =>")) || line.code.contains("..=");
    let found = faults(&sources, |_, line| {
        let invented = |code: &i64| !DEFINED.contains(code) && !recognised(*code, line);
        let codes = if line.test { Vec::new() } else { error_codes(&line.code) };
        codes.into_iter().find(invented).map(|code| code.to_string())
    });
    none_found(&sources, found);
    let named = sources.iter().filter(|source| source.path.ends_with("rpc/code.rs"));
    let codes: Vec<i64> = named.flat_map(Source::shipped).flat_map(|(_, line)| error_codes(&line.code)).collect();
    assert_eq!(codes.len(), DEFINED.len(), "the codes are seen: {codes:?}");
}

#[test]
fn sources_have_no_open_ends_or_silenced_lints() {
    let sources = all();
    let found = faults(&sources, |_, line| {
        let words = ["#[ignore", "#[allow(", "#![allow(", "todo!", "unimplemented!"];
        words.into_iter().find(|word| has_word(&line.code, word)).map(str::to_owned)
    });
    none_found(&sources, found);
}

/// The checks above find nothing in correct sources. These lines show that one can find a breach.
#[test]
fn statuses_are_detected() {
    assert_eq!(status("if head.status == 404 {"), Some(404));
    assert_eq!(status("let head = Head::new(202u16);"), Some(202));
    assert_eq!(status("Duration::from_millis(500)"), None);
    assert_eq!(status("const WORKERS: usize = 512;"), None);
}
