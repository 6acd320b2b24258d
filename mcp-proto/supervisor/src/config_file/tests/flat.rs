//! Files that are the list of servers themselves.

use super::*;

// covers: S0-06, S0-07
#[test]
fn file_whose_members_are_servers_is_the_list() {
    let file = parsed(
        r#"{
            "linear": {"type": "http", "url": "https://mcp.example.com/mcp"},
            "files": {"command": "npx", "args": ["-y", "files-server"]}
        }"#,
    );
    assert_eq!(file.dialect(), Dialect::McpServers);
    assert_eq!(file.servers().map(|(name, _)| name).collect::<Vec<_>>(), ["linear", "files"]);
    assert_eq!(url(&config(&file, "linear")), ("https://mcp.example.com/mcp", HttpMode::Streamable));
    assert_eq!(words(&config(&file, "files")), ["npx", "-y", "files-server"]);
    assert_eq!(ignored(&file), Vec::<&str>::new());
}

// covers: S0-06, S0-07
#[test]
fn servers_of_a_flat_file_are_read_as_in_a_list() {
    let file = parsed(
        r#"{
            // A plugin's file.
            "$schema": "https://schema.example/mcp.json", "_comment": "url", "//": "",
            "mcp": {"command": "${HOME}/server", "env": {"T": "${TOKEN}"}, "disabled": true, "x": 1},
            "servers": {"serverUrl": "https://api.example/mcp"},
            "mcpServers": {"httpUrl": "https://api.example/mcp", "headers": {"A": "${TOKEN}"}},
            "inputs": {"url": "wss://push.example/mcp"},
            "a": {"command": "x", "args": 1},
            "b": {"command": "x", "url": "http://h"},
        }"#,
    );
    assert_eq!(words(&config(&file, "mcp")), ["/home/ann/server"]);
    assert!(entry(&file, "mcp").is_disabled() && entry(&file, "mcp").needs_confirmation());
    assert_eq!(url(&config(&file, "servers")).0, "https://api.example/mcp");
    assert_eq!(url(&config(&file, "mcpServers")).1, HttpMode::Streamable);
    assert!(matches!(config(&file, "inputs").target, Target::Ws(_)));
    let why = |name| file.server(name).unwrap().unwrap_err().to_string();
    assert_eq!(why("a"), "line 8, column 43, a.args: an array of strings is required, not a number");
    assert_eq!(why("b"), "line 9, column 35, b: `command` and `url` exclude each other: remove one");
    assert_eq!(ignored(&file), ["$schema", "_comment", "//", "mcp.x"]);
    // A name that occurs twice is an error of that server, as in a list.
    let file = parsed(r#"{"a": {"command": "x"}, "a": {"command": "y"}, "b": {"command": "z"}}"#);
    assert_eq!(file.server("a").unwrap().unwrap_err().kind, ConfigErrorKind::Duplicate);
    assert_eq!(words(&config(&file, "b")), ["z"]);
}

// covers: S0-06, S0-07
#[test]
fn flat_file_has_the_dialect_of_the_caller() {
    let text = r#"{"a": {"command": "x", "args": ["$TOKEN", "{env:TOKEN}"], "timeout": 2}}"#;
    let read = |dialect| ConfigFile::parse_as(dialect, text).unwrap();
    let file = read(Dialect::GeminiCli);
    assert_eq!(
        (file.dialect(), words(&config(&file, "a"))),
        (Dialect::GeminiCli, ["x", "t0ps3cret", "{env:TOKEN}"].into())
    );
    let file = read(Dialect::Zed);
    assert_eq!(words(&config(&file, "a")), ["x", "$TOKEN", "{env:TOKEN}"]);
    assert_eq!(config(&file, "a").timeout, Some(core::time::Duration::from_secs(2)));
}

// covers: S0-06, S0-07
#[test]
fn other_files_without_a_list_are_refused() {
    for text in [
        "{}",
        r#"{"$schema": "https://schema.example/mcp.json"}"#,
        r#"{"a": {}}"#,
        // Not all are servers, so that it may be any file.
        r#"{"a": {"command": "x"}, "b": {"name": "x"}}"#,
        r#"{"a": {"command": "x"}, "version": 1}"#,
        r#"{"a": {"command": "x"}, "title": "x"}"#,
        r#"{"a": {"command": "x"}, "b": []}"#,
        r#"{"a": {"command": {"path": "x"}}}"#,
        r#"{"a": {"url": null}}"#,
        // A server without a name.
        r#"{"command": "npx", "args": ["-y", "x"]}"#,
        r#"{"url": "https://x.example/", "headers": {"url": "x"}}"#,
        r#"[{"command": "npx"}]"#,
    ] {
        let kind = ConfigFile::parse(text).unwrap_err().kind;
        assert!(matches!(kind, ConfigErrorKind::NoServers(_) | ConfigErrorKind::WrongType { .. }), "{text}: {kind:?}");
    }
    // A list wins over servers beside it.
    let file = parsed(r#"{"mcpServers": {"b": {"command": "y"}}, "a": {"command": "x"}}"#);
    assert_eq!(file.servers().map(|(name, _)| name).collect::<Vec<_>>(), ["b"]);
    assert_eq!(ignored(&file), ["a"]);
}
