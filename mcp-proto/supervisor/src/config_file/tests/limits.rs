//! Limits, and texts of any kind.

use super::*;
use proptest::prelude::*;

fn of_servers(count: usize) -> String {
    let servers: Vec<_> = (0..count).map(|at| format!("\"s{at}\": {{\"command\": \"x\"}}")).collect();
    format!("{{\"mcpServers\": {{{}}}}}", servers.join(","))
}

#[test]
fn limits_hold_exactly() {
    assert_eq!(parsed(&of_servers(ConfigFile::MAX_SERVERS)).servers().count(), 1000);
    let why = ConfigFile::parse(&of_servers(1001)).unwrap_err();
    assert_eq!(why.to_string(), "line 1, column 16, mcpServers: the list has more than 1000 servers");
    let mut text = of_servers(1);
    text += &" ".repeat(ConfigFile::MAX_LEN - text.len());
    assert!(ConfigFile::parse(&text).is_ok());
    text.push(' ');
    assert_eq!(ConfigFile::parse(&text).unwrap_err().kind, ConfigErrorKind::TooLong);
    let nested = |depth| format!("{{\"mcpServers\": {{}}, \"x\": {}{}}}", "[".repeat(depth), "]".repeat(depth));
    assert!(ConfigFile::parse(&nested(127)).is_ok());
    let why = ConfigFile::parse(&nested(128)).unwrap_err();
    assert_eq!((why.kind, why.line, why.column), (ConfigErrorKind::TooDeep, 1, 152));
}

/// A file that is slow to read or large in memory takes seconds here, not milliseconds.
#[test]
fn large_files_of_any_shape_take_linear_time() {
    // A build with debug assertions takes ten times as long.
    let half = ConfigFile::MAX_LEN / if cfg!(debug_assertions) { 20 } else { 2 };
    let fill = |part: &str| part.repeat((half - 100) / part.len());
    let with = |members: String| format!("{{\"mcpServers\": {{\"a\": {{\"command\": \"x\"{members}}}}}}}");
    for text in [
        with(fill(",\"b\":1")),
        with(format!(",\"args\":[{}\"\"]", fill("\"\","))),
        with(format!(",\"env\":{{\"A\":\"{}\"}}", fill("${B}"))),
        with(format!(",\"args\":[\"{}\"]", fill("${"))),
        format!("{{\"mcpServers\": {{\"{}\": {{{}\"c\":1}}}}}}", "n".repeat(half), fill("\"b\":1,")),
        format!("{{\"mcp\": {{\"a\": {{\"command\": [\"{}\"]}}}}}}", fill("{env:")),
        format!("{{\"mcpServers\": {{}}}}{}", fill("//\n")),
        format!("{{\"mcpServers\": {{}}}}{}", fill("/**/")),
        fill("{\"a\":"),
        fill("\\\""),
        fill("/*/"),
        fill("[,"),
    ] {
        if let Ok(file) = ConfigFile::parse(&text) {
            for (_, server) in file.servers() {
                let _ = server
                    .map(|entry| (entry.preview().to_string(), entry.preview().confirmed(&|_| Some(String::new()))));
            }
        }
    }
}

/// Pieces of files, legal and not.
fn piece() -> impl Strategy<Value = &'static str> {
    prop::sample::select(
        [
            "{",
            "}",
            "[",
            "]",
            ",",
            ":",
            "\"",
            "\"a\"",
            "\"mcpServers\":",
            "\"servers\":",
            "\"mcp\":",
            "\"context_servers\":",
            "\"inputs\":",
            "\"command\":",
            "\"url\":",
            "\"args\":",
            "\"env\":",
            "\"headers\":",
            "\"type\":",
            "\"timeout\":",
            "\"http://h/\"",
            "\"stdio\"",
            "\"${A}\"",
            "\"${\"",
            "1",
            "null",
            "true",
            "// x\n",
            "/* x */",
            "\\",
            "\u{e9}",
            "\n",
            "\u{feff}",
            "{\"mcpServers\":{\"a\":{",
            "\"\\ud800\"",
            "-",
            "[mcp_servers.a]",
        ]
        .to_vec(),
    )
}

/// A server of a generated file, with whether it can be used.
fn server() -> impl Strategy<Value = (&'static str, bool)> {
    prop::sample::select(
        [
            (r#"{"command": "x"}"#, true),
            (r#"{"command": ""}"#, false),
            (r#"{"url": "http://h/", "x": [1, {}]}"#, true),
            (r#"{"url": "h"}"#, false),
            ("7", false),
            (r#"{"command": "x", "args": ["${A}"], "env": {"A": "${B:-c}"},}"#, true),
            (r#"{"command": "x", "args": ["${A"]}"#, false),
        ]
        .to_vec(),
    )
}

proptest! {
    // covers: S0-06
    #[test]
    fn any_text_is_parsed_or_refused(pieces in prop::collection::vec(piece(), 0..24)) {
        let text = pieces.concat();
        let dialects = [Dialect::McpServers, Dialect::GeminiCli, Dialect::VsCode, Dialect::Zed, Dialect::OpenCode];
        let forced = dialects.map(|dialect| ConfigFile::parse_as(dialect, &text));
        for file in [ConfigFile::parse(&text)].into_iter().chain(forced) {
            match file {
                Ok(file) => {
                    for (name, server) in file.servers() {
                        prop_assert!(file.server(name).is_some());
                        if let Ok(entry) = server {
                            let _ = entry.client_config(&|_| Some("v".into()), Trust::Trusted);
                            prop_assert!(entry.command().is_some() != entry.url().is_some());
                        }
                    }
                }
                Err(why) => {
                    let lines = text.matches('\n').count() as u32 + 1;
                    prop_assert!((1..=lines).contains(&why.line) && why.column >= 1, "{why}");
                }
            }
        }
    }

    // covers: S0-06
    #[test]
    fn every_server_of_a_file_is_listed_in_order(servers in prop::collection::vec(server(), 0..12)) {
        let list: Vec<_> = servers.iter().enumerate().map(|(at, (text, _))| format!("/**/\"s{at}\": {text}")).collect();
        let file = parsed(&format!("{{\"mcpServers\": {{{}}}}}", list.join(",\n")));
        let found: Vec<_> = file.servers().map(|(name, server)| (name.to_string(), server.is_ok())).collect();
        let expected: Vec<_> = servers.iter().enumerate().map(|(at, (_, is_ok))| (format!("s{at}"), *is_ok)).collect();
        prop_assert_eq!(found, expected);
    }
}
