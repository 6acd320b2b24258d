//! Files in the form that the documentation of each client shows.

use super::*;
use core::time::Duration;
use mcp_proto::client::ListenerTime;

// covers: S0-06
#[test]
fn claude_desktop_lists_programs() {
    let file = parsed(
        r#"{
            "mcpServers": {
                "files": {"command": "npx", "args": ["-y", "files-server", "/home/ann/notes"]},
                "mail": {"command": "C:\\tools\\mail.exe", "args": [], "env": {"MAIL_KEY": "k", "LANG": "de"}}
            },
            "globalShortcut": "Ctrl+Space"
        }"#,
    );
    assert_eq!(file.dialect(), Dialect::McpServers);
    assert_eq!(file.servers().map(|(name, _)| name).collect::<Vec<_>>(), ["files", "mail"]);
    assert_eq!(words(&config(&file, "files")), ["npx", "-y", "files-server", "/home/ann/notes"]);
    let mail = config(&file, "mail");
    assert_eq!(
        (words(&mail), env(&mail)),
        (["C:\\tools\\mail.exe"].into(), [("MAIL_KEY", Some("k")), ("LANG", Some("de"))].into())
    );
    assert_eq!(mail.timeout, ClientConfig::given().timeout);
    assert_eq!(ignored(&file), ["globalShortcut"]);
    assert!(file.server("other").is_none());
}

// covers: S0-06, S0-07, R-02, R-24
#[test]
fn claude_code_has_types_and_defaults() {
    let file = parsed(
        r#"{"mcpServers": {
            "local": {"type": "stdio", "command": "${HOME}/server", "args": ["--db", "${DB:-main}"], "env": {"T": "${TOKEN}"}},
            "api": {"type": "http", "url": "${API:-https://api.example}/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}, "timeout": 500},
            "same": {"type": "streamable-http", "url": "https://api.example/mcp"},
            "old": {"type": "sse", "url": "https://old.example/sse", "headersHelper": "/bin/helper"},
            "push": {"type": "ws", "url": "wss://push.example/mcp"}
        }}"#,
    );
    let local = config(&file, "local");
    assert_eq!(words(&local), ["/home/ann/server", "--db", "main"]);
    assert_eq!(env(&local), [("T", Some("t0ps3cret"))]);
    let api = config(&file, "api");
    assert_eq!(url(&api), ("https://api.example/mcp", HttpMode::Streamable));
    assert_eq!(api.headers.get("authorization"), Some("Bearer t0ps3cret"));
    assert_eq!(api.timeout, Some(Duration::from_millis(500)), "small values are no seconds");
    assert_eq!(url(&config(&file, "same")).1, HttpMode::Streamable);
    assert_eq!(url(&config(&file, "old")), ("https://old.example/sse", HttpMode::Auto));
    assert!(matches!(config(&file, "push").target, Target::Ws(_)));
    assert_eq!(ignored(&file), ["mcpServers.old.headersHelper"]);
}

// covers: S0-06, S0-07, R-02
#[test]
fn cursor_has_env_files_and_urls_without_a_type() {
    let file = parsed(
        r#"{"mcpServers": {
            "tools": {
                "type": "stdio", "command": "python", "args": ["${workspaceFolder}/tools.py", "${userHome}"],
                "env": {"A": "file", "KEY": "${env:TOKEN}"}, "envFile": "${workspaceFolder}/.env"
            },
            "remote": {"url": "https://api.example/mcp", "headers": {"Authorization": "Bearer ${env:TOKEN}"}, "auth": {"CLIENT_ID": "x"}}
        }}"#,
    );
    let tools = config(&file, "tools");
    assert_eq!(words(&tools), ["python", "/home/ann/tools.py", "/home/ann"]);
    assert_eq!(env(&tools), [("TOKEN", Some("t0ps3cret")), ("A", Some("file")), ("KEY", Some("t0ps3cret"))]);
    assert_eq!(entry(&file, "tools").env_file(), Some("${workspaceFolder}/.env"));
    let remote = config(&file, "remote");
    assert_eq!(url(&remote), ("https://api.example/mcp", HttpMode::Auto));
    assert_eq!(remote.headers.get("authorization"), Some("Bearer t0ps3cret"));
    assert!(ignored(&file).is_empty());
}

// covers: S0-07
#[test]
fn windsurf_has_server_urls_and_disabled_servers() {
    let file = parsed(
        r#"{"mcpServers": {
            "remote": {"serverUrl": "https://api.example/mcp", "headers": {"X-Key": "${env:TOKEN}"}, "disabledTools": ["a"]},
            "off": {"command": "npx", "args": ["-y", "off"], "disabled": true},
            "on": {"command": "npx", "disabled": false}
        }}"#,
    );
    assert_eq!(url(&config(&file, "remote")).0, "https://api.example/mcp");
    assert!(entry(&file, "off").is_disabled() && !entry(&file, "on").is_disabled());
    assert_eq!(words(&config(&file, "off")), ["npx", "-y", "off"], "the application decides");
    assert_eq!(ignored(&file), ["mcpServers.remote.disabledTools"]);
}

// covers: S0-06, S0-07, R-24
#[test]
fn gemini_cli_has_http_urls_and_bare_variables() {
    let text = r#"{
        "mcp": {"allowed": ["python", "http"]},
        "mcpServers": {
            "python": {"command": "python", "args": ["-m", "$HOME"], "cwd": "./server", "env": {"K": "$TOKEN", "L": "${NONE:-x}"}, "timeout": 15000, "trust": false},
            "http": {"httpUrl": "https://api.example/mcp", "headers": {"Authorization": "Bearer $TOKEN", "Content-Type": "application/json"}, "timeout": 0},
            "sse": {"url": "http://localhost:8080/sse", "includeTools": ["a"]}
        }
    }"#;
    let file = ConfigFile::parse_as(Dialect::GeminiCli, text).unwrap();
    assert_eq!(file.dialect(), Dialect::GeminiCli);
    let python = config(&file, "python");
    assert_eq!(words(&python), ["python", "-m", "/home/ann"]);
    assert_eq!(env(&python), [("K", Some("t0ps3cret")), ("L", Some("x"))]);
    assert_eq!(program(&python).current_dir.as_deref(), Some("./server"));
    assert_eq!(python.timeout, Some(Duration::from_secs(15)));
    let http = config(&file, "http");
    assert_eq!((url(&http), http.timeout), (("https://api.example/mcp", HttpMode::Streamable), None));
    assert_eq!(http.headers.get("authorization"), Some("Bearer t0ps3cret"));
    assert_eq!(url(&config(&file, "sse")).1, HttpMode::Auto);
    // The client writes that header field itself.
    assert_eq!(http.headers.iter().count(), 1);
    let of_http = "mcpServers.http.headers.Content-Type";
    assert_eq!(ignored(&file), ["mcp", "mcpServers.python.trust", of_http, "mcpServers.sse.includeTools"]);
    // By its keys it is any file of `mcpServers`, where such a text is no variable.
    let file = parsed(text);
    assert_eq!(words(&config(&file, "python")), ["python", "-m", "$HOME"]);
}

// covers: S0-06, S0-07
#[test]
fn vs_code_has_inputs_and_null_variables() {
    let text = r#"{
        // The values that the editor asks for.
        "inputs": [
            {"type": "promptString", "id": "key", "description": "A key", "password": true, "default": "dflt"},
            {"type": "pickString", "id": "region", "description": "A region", "options": ["eu", {"label": "US", "value": "us"}], "default": "eu"},
            {"type": "command", "id": "c", "command": "ext.value", "args": {"a": 1}},
            {"type": "promptString"},
        ],
        "servers": {
            "local": {
                "type": "stdio", "command": "npx", "args": ["server"], "envFile": "${workspaceFolder}/.env",
                "env": {"KEY": "${input:key}", "PORT": 80, "A": null}, "cwd": "${workspaceFolder}", "dev": {"watch": "**"},
            },
            "remote": {"type": "http", "url": "https://api.example/mcp", "headers": {"X-Key": "${input:key}"}},
        },
    }"#;
    let file = parsed(text);
    assert_eq!(file.dialect(), Dialect::VsCode);
    let inputs: Vec<_> = file.inputs().collect();
    let key = inputs[0].unwrap();
    assert_eq!((key.id.as_str(), &key.kind, key.is_password), ("key", &InputKind::Text, true));
    assert_eq!((key.description.as_deref(), key.default.as_deref()), (Some("A key"), Some("dflt")));
    assert!(!format!("{file:?}").contains("dflt"));
    assert_eq!(inputs[1].unwrap().kind, InputKind::Pick(["eu".into(), "us".into()].into()));
    assert_eq!(inputs[2].unwrap().kind, InputKind::Command("ext.value".into()));
    assert_eq!(inputs[3].unwrap_err().to_string(), "line 7, column 13, inputs[3]: `id` is missing");
    let local = config(&file, "local");
    assert_eq!(
        env(&local),
        [("TOKEN", Some("t0ps3cret")), ("KEY", Some("t0ps3cret")), ("PORT", Some("80")), ("A", None)]
    );
    assert_eq!(program(&local).current_dir.as_deref(), Some("/home/ann"));
    let remote = config(&file, "remote");
    assert_eq!(remote.headers.get("x-key"), Some("t0ps3cret"));
    assert_eq!(url(&remote).1, HttpMode::Auto, "it falls back to HTTP+SSE");
    assert_eq!(ignored(&file), ["inputs[2].args", "servers.local.dev"]);
    let asked = [Variable::Editor("workspaceFolder"), Variable::Input("key")];
    assert_eq!(entry(&file, "local").variables(), asked);
    // The older settings have both lists below `mcp`.
    let file = parsed(&format!("{{\"mcp\": {text}, \"editor.tabSize\": 4}}"));
    assert_eq!((file.dialect(), file.inputs().count()), (Dialect::VsCode, 4));
    assert_eq!(config(&file, "local"), local);
    assert_eq!(ignored(&file), ["mcp.inputs[2].args", "mcp.servers.local.dev", "[\"editor.tabSize\"]"]);
}

// covers: S0-06, S0-07, R-24
#[test]
fn zed_counts_timeouts_in_seconds_and_has_no_variables() {
    let file = parsed(
        r#"{
            "theme": "One Dark",
            "context_servers": {
                "local": {"source": "custom", "command": "sh", "args": ["-c", "echo ${HOME"], "env": {}, "timeout": 90},
                "remote": {"enabled": false, "url": "https://api.example/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}, "timeout": 0},
            },
        }"#,
    );
    assert_eq!(file.dialect(), Dialect::Zed);
    let local = config(&file, "local");
    assert_eq!((words(&local), local.timeout), (["sh", "-c", "echo ${HOME"].into(), Some(Duration::from_secs(90))));
    let remote = config(&file, "remote");
    assert_eq!((remote.headers.get("authorization"), remote.timeout), (Some("Bearer ${TOKEN}"), None));
    assert!(entry(&file, "remote").is_disabled());
    assert_eq!(ignored(&file), ["theme", "context_servers.local.source"]);
}

// covers: S0-06, S0-07, R-24
#[test]
fn opencode_has_commands_as_arrays() {
    let file = parsed(
        r#"{
            "$schema": "https://opencode.example/config.json",
            "mcp": {
                "local": {
                    "type": "local", "command": ["bun", "x", "{env:HOME}/a", "${HOME}"], "enabled": true,
                    "environment": {"K": "{env:TOKEN}", "L": "{file:~/.secrets/key}"}, "timeout": 5000,
                },
                "servers": {"type": "remote", "url": "https://api.example/mcp", "enabled": false, "headers": {"Authorization": "Bearer {env:TOKEN}"}, "oauth": false},
            },
        }"#,
    );
    assert_eq!(file.dialect(), Dialect::OpenCode);
    let local = config(&file, "local");
    assert_eq!(words(&local), ["bun", "x", "/home/ann/a", "${HOME}"]);
    // The end of the line in the file is no part of the secret.
    let secrets = [("K", Some("t0ps3cret")), ("L", Some("t0ps3cret"))];
    assert_eq!((env(&local), local.timeout), (secrets.into(), Some(Duration::from_secs(5))));
    let remote = config(&file, "servers");
    assert_eq!(url(&remote), ("https://api.example/mcp", HttpMode::Auto));
    assert_eq!(remote.headers.get("authorization"), Some("Bearer t0ps3cret"));
    assert!(entry(&file, "servers").is_disabled() && !entry(&file, "local").is_disabled());
    assert_eq!(ignored(&file), ["$schema"]);
}

// covers: S0-06, S0-07, R-24
#[test]
fn opencode_2_has_its_servers_below_mcp() {
    let text = r#"{
        "mcp": {
            "timeout": {"startup": 9000},
            "servers": {
                "local": {
                    "type": "local", "command": ["bun", "x", "{env:HOME}/a"], "cwd": "./tools", "environment": {"K": "{env:TOKEN}"},
                    "timeout": {"startup": 20000, "catalog": 4000, "execution": 90000},
                },
                "remote": {"type": "remote", "url": "https://api.example/mcp", "disabled": true, "timeout": {"request": 7000}},
                "quick": {"type": "remote", "url": "https://quick.example/mcp", "timeout": {"startup": 1000}},
            },
        },
    }"#;
    let file = parsed(text);
    assert_eq!(file.dialect(), Dialect::OpenCode);
    let local = config(&file, "local");
    assert_eq!((words(&local), env(&local)), (["bun", "x", "/home/ann/a"].into(), [("K", Some("t0ps3cret"))].into()));
    assert_eq!(
        (program(&local).current_dir.as_deref(), local.timeout),
        (Some("./tools"), Some(Duration::from_secs(90)))
    );
    assert_eq!(config(&file, "remote").timeout, Some(Duration::from_secs(7)));
    assert!(entry(&file, "remote").is_disabled());
    assert_eq!(entry(&file, "quick").timeout(), None, "only the start has a limit");
    let ignored_times = [
        "mcp.timeout",
        "mcp.servers.local.timeout.startup",
        "mcp.servers.local.timeout.catalog",
        "mcp.servers.quick.timeout.startup",
    ];
    assert_eq!(ignored(&file), ignored_times);
    assert_eq!(ConfigFile::parse_as(Dialect::OpenCode, text), Ok(file));
    // Without a server it may be either, unless the caller knows.
    let empty = r#"{"mcp": {"servers": {}}}"#;
    assert_eq!(parsed(empty).dialect(), Dialect::VsCode);
    assert_eq!(ConfigFile::parse_as(Dialect::OpenCode, empty).unwrap().servers().count(), 0);
    // The caller's dialect wins over the servers.
    let file = ConfigFile::parse_as(Dialect::VsCode, text).unwrap();
    assert!(matches!(file.server("local").unwrap().unwrap_err().kind, ConfigErrorKind::WrongType { .. }));
    let why = error(r#"{"mcp": {"a": {"type": "local", "command": ["x"], "timeout": {"execution": "1s"}}}}"#);
    assert_eq!(why, "line 1, column 76, mcp.a.timeout.execution: a number is required, not a string");
}

// covers: S0-06, S0-07
#[test]
fn older_settings_of_zed_have_the_program_in_an_object() {
    let file = parsed(
        r#"{"context_servers": {
            "a": {"command": {"path": "npx", "args": ["-y", "$HOME"], "env": {"K": "v"}, "x": 1}, "settings": {}},
            "b": {"command": {"path": "npx"}, "args": ["-y"], "enabled": false},
            "both": {"command": {"path": "npx", "args": ["in"]}, "args": ["out"]},
            "none": {"command": {"args": []}},
            "wrong": {"command": {"path": "npx", "args": [1]}}
        }}"#,
    );
    let a = config(&file, "a");
    assert_eq!((words(&a), env(&a)), (["npx", "-y", "$HOME"].into(), [("K", Some("v"))].into()));
    assert_eq!(words(&config(&file, "b")), ["npx", "-y"]);
    assert!(entry(&file, "b").is_disabled());
    assert_eq!(words(&config(&file, "both")), ["npx", "in"]);
    let why = |name| file.server(name).unwrap().unwrap_err().to_string();
    assert_eq!(why("none"), "line 5, column 33, context_servers.none.command: `path` is missing");
    assert_eq!(
        why("wrong"),
        "line 6, column 59, context_servers.wrong.command.args[0]: a string is required, not a number"
    );
    assert_eq!(
        ignored(&file),
        ["context_servers.a.command.x", "context_servers.a.settings", "context_servers.both.args"]
    );
}

// covers: S0-06
#[test]
fn argument_keeps_variables_that_the_program_gets() {
    // The program puts the value there itself, so that no list of processes shows it.
    let file = parsed(
        r#"{"mcpServers": {
            "bridge": {
                "command": "npx", "args": ["bridge", "--header", "Authorization:${AUTH}", "${TOKEN}", "${NONE:-d}"],
                "env": {"AUTH": "Bearer x", "TOKEN": "own"}
            },
            "client": {"command": "npx", "args": ["${env:AUTH}"], "env": {"AUTH": "x"}},
            "itself": {"command": "npx", "env": {"AUTH": "${AUTH}"}},
            "other": {"command": "npx", "args": ["${AUTH}"], "env": {"OTHER": "x"}}
        }}"#,
    );
    let bridge = config(&file, "bridge");
    let expected = ["npx", "bridge", "--header", "Authorization:${AUTH}", "t0ps3cret", "d"];
    assert_eq!(words(&bridge), expected, "a value of the look-up wins");
    assert_eq!(env(&bridge), [("AUTH", Some("Bearer x")), ("TOKEN", Some("own"))]);
    for name in ["client", "itself", "other"] {
        let why = entry(&file, name).client_config(&lookup, Trust::Trusted).unwrap_err();
        assert_eq!(why.kind, ConfigErrorKind::UnknownVariable("AUTH".into()), "{name}");
    }
}

// covers: S0-06
#[test]
fn codex_is_refused_by_name() {
    for text in [
        "# comment\n\n[mcp_servers.docs]\ncommand = \"npx\"\n",
        "model = \"gpt\"\n[mcp_servers.\"a b\"] # comment\n",
        "[[profiles]]\n",
    ] {
        let why = ConfigFile::parse(text).unwrap_err();
        assert_eq!(why.kind, ConfigErrorKind::Toml);
        assert_eq!(why.to_string(), "line 1, column 1: this is a TOML file, as Codex has; only JSON is read");
    }
    for text in ["[1, 2", "[mcp", "{\"a\" = 1}", "[\"a\"] x", "= 1", "//"] {
        let kind = ConfigFile::parse(text).unwrap_err().kind;
        assert!(matches!(kind, ConfigErrorKind::Syntax(_)) || text == "[\"a\"] x", "{text}: {kind:?}");
    }
}

// covers: S0-53, R-24
#[test]
fn timeout_of_zero_is_none() {
    let file = parsed(
        r#"{"mcpServers": {
            "off": {"command": "a", "timeout": 0},
            "both": {"command": "a", "timeout": 7, "requestTimeoutMs": 2e3},
            "none": {"command": "a"}
        }}"#,
    );
    let off = config(&file, "off");
    assert_eq!((off.timeout, off.compat.listener_start), (None, ListenerTime::Unlimited));
    assert_eq!(config(&file, "both").compat.listener_start, ListenerTime::default());
    assert_eq!(config(&file, "both").timeout, Some(Duration::from_secs(2)));
    assert_eq!(config(&file, "none").timeout, Some(Duration::from_secs(30)));
    let timeouts: Vec<_> = file.servers().map(|(_, server)| server.unwrap().timeout()).collect();
    assert_eq!(timeouts, [Some(None), Some(Some(Duration::from_secs(2))), None]);
    assert_eq!(ignored(&file), ["mcpServers.both.timeout"]);
}

// covers: S0-07
#[test]
fn members_of_another_kind_of_server_are_listed() {
    let file = parsed(
        "\u{feff}{\"mcpServers\": {\n  \"a b\": {\"url\": \"http://h/\", \"args\": [], \"env\": {\"K\": \"t0ps3cret\"}},\n  \"p\": \
         {\"headers\": {}, \"command\": \"x\"}}}",
    );
    assert_eq!(ignored(&file), ["mcpServers[\"a b\"].args", "mcpServers[\"a b\"].env", "mcpServers.p.headers"]);
    let env = &file.ignored()[1];
    assert_eq!((env.line, env.column), (2, 43));
    assert_eq!(env.value.as_ref().map(RawJson::as_str), Some("{\"K\": \"t0ps3cret\"}"));
    assert!(!format!("{file:?}").contains("t0ps3cret"));
}

#[test]
fn dialect_of_the_caller_decides_on_the_list() {
    let text = r#"{"mcpServers": {"a": {"command": "a"}}, "mcp": {"b": {"command": ["b"]}}}"#;
    let read = |dialect| {
        ConfigFile::parse_as(dialect, text).map(|file| file.servers().map(|(name, _)| name.to_string()).collect())
    };
    assert_eq!(read(Dialect::GeminiCli), Ok(Vec::from(["a".to_string()])));
    assert_eq!(read(Dialect::OpenCode), Ok(Vec::from(["b".to_string()])));
    let why = read(Dialect::Zed).unwrap_err();
    assert_eq!(why.to_string(), "line 1, column 1: the file has no list of servers: `context_servers` is missing");
    assert_eq!(read(Dialect::VsCode).unwrap_err().kind, ConfigErrorKind::NoServers("`servers`"));
}
