//! The shape of the crates, read from their sources: the permitted dependencies, the limits of the
//! core, and those of the adapters.

use mcp_tests::sources::{Line, Source, below, has_word};
use std::collections::BTreeSet;
use std::sync::LazyLock;

/// The modules of the core, each using only those before it.
const ORDER: [&str; 34] = [
    "time",
    "short_map",
    "short_queue",
    "short_set",
    "seed",
    "limits",
    "peer_text",
    "http_support",
    "redact",
    "rpc",
    "schema",
    "version",
    "exchange",
    "process",
    "error",
    "event_queue",
    "observer",
    "hook",
    "stats",
    "frame",
    "fetch",
    "call",
    "model",
    "input",
    "client",
    "config_file",
    "supervise",
    "server",
    "wired",
    "record",
    "route",
    "adapter",
    "testing",
    "lib",
];

/// The files of feature `os`, which call the operating system for drivers. Only `adapter` uses
/// them.
const OS: &str = "mcp-proto/src/adapter/os/";

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
const RECORDED: [(&str, &[&str]); 4] = [
    ("#[cfg_attr(feature = \"\", derive(serde::Serialize, serde::Deserialize))]", &["record"]),
    ("#[cfg_attr(feature = \"\", derive(serde::Serialize))]", &["record"]),
    ("#[cfg_attr(feature = \"\", serde(with = \"\"))]", &["record", "crate::record::value"]),
    (
        "#[cfg_attr(feature = \"\", serde(from = \"\", into = \"\"))]",
        &["record", "Vec<(String, String)>", "Vec<(String, String)>"],
    ),
];

/// Parts of the core that only the core may use.
const INNER: [&str; 3] = ["rpc", "frame", "model"];

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

/// All sources, read once for all of these tests.
static ALL: LazyLock<Vec<Source>> =
    LazyLock::new(|| ["mcp-proto", "mcp-smol", "mcp-blocking", "tests", "fuzz"].into_iter().flat_map(below).collect());

fn within(folder: &str) -> Vec<Source> {
    ALL.iter().filter(|source| source.path.starts_with(folder)).cloned().collect()
}

fn core() -> Vec<Source> {
    within("mcp-proto/src/")
}

fn adapters() -> Vec<Source> {
    let bare = within("tests/src/poll_loop");
    [within("mcp-smol/src/"), within("mcp-blocking/src/"), bare].concat()
}

fn all() -> Vec<Source> {
    ALL.clone()
}

/// Fails with one line for each finding, or if there were no sources.
#[track_caller]
fn none_found(looked_at: &[Source], findings: Vec<String>) {
    assert!(looked_at.iter().any(|source| source.lines.len() > 1), "no source was read");
    assert!(findings.is_empty(), "{} found:\n{}", findings.len(), findings.join("\n"));
}

/// Returns the lines of `sources` with a fault, as `path:line: fault`.
fn faults(sources: &[Source], mut fault: impl FnMut(&Source, &Line) -> Option<String>) -> Vec<String> {
    let mut found = Vec::new();
    for source in sources {
        let faulty = source
            .numbered()
            .filter_map(|(number, line)| Some(format!("{}: {}", source.at(number), fault(source, line)?)));
        found.extend(faulty);
    }
    found
}

/// Returns the module of the core that contains a file.
fn module(source: &Source) -> &str {
    let inside = source.path.strip_prefix("mcp-proto/src/").expect("a file of the core");
    inside.split('/').next().unwrap_or(inside).trim_end_matches(".rs")
}

/// Returns the number of `super` from the file's own module to the root of the crate.
fn depth(source: &Source) -> usize {
    let inside = source.path.strip_prefix("mcp-proto/src/").expect("a file of the core");
    inside.trim_end_matches("mod.rs").trim_end_matches('/').split('/').count()
}

// covers: S0-65
#[test]
fn module_uses_only_earlier_modules() {
    let place = |name: &str| ORDER.iter().position(|known| *known == name);
    let sources = core();
    let mut found = Vec::new();
    for source in sources.iter().filter(|source| module(source) != "lib") {
        let own = module(source);
        let Some(at) = place(own) else {
            found.push(format!("{}: {own} has no place in the order", source.at(1)));
            continue;
        };
        let mut used = source.names_after("crate");
        // The same paths in their other spelling. A path outside of the crate's modules comes from
        // an inline module and is not checked.
        let up = vec!["super"; depth(source)].join("::");
        used.extend(source.names_after(&up).into_iter().filter(|(_, name)| place(name).is_some()));
        for (number, name) in used {
            match place(&name) {
                None => found
                    .push(format!("{}: crate::{name} is no module; name it where it is defined", source.at(number))),
                Some(there) if there > at => {
                    found.push(format!("{}: {own} uses {name}, which stands below it", source.at(number)))
                }
                Some(_) => {}
            }
        }
    }
    none_found(&sources, found);
}

#[test]
fn core_uses_no_clock_thread_environment_or_randomness() {
    let sources: Vec<Source> = core().into_iter().filter(|source| !source.path.starts_with(OS)).collect();
    assert!(sources.len() < core().len(), "the exception has files");
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
fn only_the_module_for_drivers_uses_the_operating_system() {
    let sources: Vec<Source> = core().into_iter().filter(|source| module(source) != "adapter").collect();
    let found = faults(&sources, |_, line| line.code.contains("adapter::os").then(|| "adapter::os".to_owned()));
    none_found(&sources, found);
    let features = |source: &Source| source.lines.iter().any(|line| line.strings.iter().any(|text| text == "os"));
    let gated: Vec<_> = core().into_iter().filter(features).map(|source| source.path).collect();
    assert_eq!(gated, ["mcp-proto/src/adapter/mod.rs"]);
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
    assert!(sources.len() >= 4 + 6, "a crate root is missing");
    none_found(&sources, found);
}

#[test]
fn adapters_import_only_the_public_core() {
    let sources = adapters();
    let mut found = Vec::new();
    for source in &sources {
        for (number, name) in
            source.names_after("mcp_proto").into_iter().filter(|(_, name)| INNER.contains(&name.as_str()))
        {
            // A re-export of the core is not a use of it.
            if !source.lines[number - 1].code.trim_start().starts_with("pub use mcp_proto::") {
                found.push(format!("{}: mcp_proto::{name}", source.at(number)));
            }
        }
    }
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

/// Returns the public functions of these files by the name of their type, without what only one
/// adapter has: the traits of its runtime, and whether a function waits in a future.
fn surface(files: &[&str]) -> BTreeSet<String> {
    let (sources, mut found) = ([core(), adapters()].concat(), BTreeSet::new());
    for source in sources.iter().filter(|source| files.contains(&&*source.path)) {
        let (mut of, mut text) = (String::new(), String::new());
        for (_, line) in source.shipped() {
            let code = line.code.trim();
            if line.code.starts_with("impl") {
                of = implementor(code).to_owned();
            } else if line.code.starts_with('}') {
                of.clear();
            }
            if !text.is_empty() || code.starts_with("pub fn ") || code.starts_with("pub async fn ") {
                text = format!("{text} {code}");
            }
            if !text.is_empty() && code.ends_with('{') {
                found.insert(format!("{of}: {}", arguments(&text)));
                text.clear();
            }
        }
    }
    found
}

/// Returns the name of the type, or of the trait, after `impl` and its parameters.
fn implementor(code: &str) -> &str {
    let mut depth = 0;
    let named = code.trim_start_matches("impl").trim_start_matches(|c: char| {
        depth += i32::from(c == '<') - i32::from(c == '>');
        depth > 0 || c == '>' || c == ' '
    });
    named.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default()
}

/// Returns the name and the arguments of a function, as both adapters could write them.
fn arguments(text: &str) -> String {
    let head = text.split(" -> ").next().unwrap_or_default().trim_end_matches(" {");
    let words = [
        ("pub async fn", "pub fn"),
        ("mut self", "self"),
        ("AsyncToSocketAddrs", "ToSocketAddrs"),
        ("AsyncRead + Send + Unpin", "Read + Send"),
        ("AsyncWrite + Send + Unpin", "Write + Send"),
        (", )", ")"),
        ("( ", "("),
    ];
    words.iter().fold(head.trim().to_owned(), |head, (from, to)| head.replace(from, to))
}

/// The public functions of one adapter that the other does not have: a driver that the application
/// polls, and ways to wait on a thread for a limited time.
const OF_ONE: [&str; 2] = ["connect_driven(", "wait"];

#[test]
fn both_adapters_have_one_public_surface() {
    let core = "mcp-proto/src/adapter/front/client.rs";
    let smol = surface(&[core, "mcp-smol/src/client.rs", "mcp-smol/src/server.rs"]);
    let blocking = surface(&["mcp-blocking/src/client.rs", "mcp-blocking/src/server.rs"]);
    let shared = |text: &&String| !OF_ONE.iter().any(|name| text.contains(&format!("fn {name}")));
    let missing: Vec<_> = blocking.difference(&smol).filter(shared).collect();
    assert!(missing.is_empty(), "only in mcp-blocking: {missing:#?}\n{smol:#?}");
    let of_the_core = surface(&[core]);
    let more: Vec<_> = smol.difference(&blocking).filter(|text| shared(text) && !of_the_core.contains(*text)).collect();
    assert!(more.is_empty(), "only in mcp-smol: {more:#?}");
    assert!(blocking.len() > 30, "{blocking:#?}");
}

#[test]
fn files_have_one_subject() {
    let shipped = [core(), adapters(), within("tests/src/")].concat().into_iter();
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
    let sources = [core(), adapters()].concat();
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

#[test]
fn core_and_its_tests_never_sleep() {
    let sources: Vec<Source> = [core(), within("tests/src/sim"), within("mcp-proto/tests/")].concat();
    let found = faults(&sources, |_, line| has_word(&line.code, "sleep").then(|| "sleep".to_owned()));
    none_found(&sources, found);
}

/// The checks above find nothing in correct sources. These lines show that each can find a breach.
#[test]
fn checks_detect_breaches() {
    let source = Source::new(
        "mcp-proto/src/frame/conn.rs",
        "use crate::{limits, wired::Connection};\nfn a() { super::super::server::b() }\n",
    );
    assert_eq!(source.names_after("crate"), [(1, "limits".to_owned()), (1, "wired".to_owned())]);
    assert_eq!((module(&source), depth(&source)), ("frame", 2));
    assert_eq!(source.names_after("super::super"), [(2, "server".to_owned())]);
    assert_eq!(depth(&Source::new("mcp-proto/src/frame/mod.rs", "")), 1);
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
    assert_eq!(status("if head.status == 404 {"), Some(404));
    assert_eq!(status("let head = Head::new(202u16);"), Some(202));
    assert_eq!(status("Duration::from_millis(500)"), None);
    assert_eq!(status("const WORKERS: usize = 512;"), None);
}
