//! What is wrong with a file, and where.

use super::*;

/// Returns a file whose server `a` has these members, on its second line.
fn of_members(members: &str) -> String {
    format!("{{\"mcpServers\": {{\"a\":\n{{{members}}}}}}}")
}

// covers: S0-06
#[test]
fn errors_of_a_file_have_line_and_column() {
    for (text, why) in [
        ("", "line 1, column 1: the text ends too early: a quote or a closing bracket is missing"),
        (
            "{\n  \"mcpServers\": {",
            "line 2, column 18: the text ends too early: a quote or a closing bracket is missing",
        ),
        ("{\n  \"é\": 1 \"b\"}", "line 2, column 10: a string is not expected here: a comma or colon may be missing"),
        ("{'a': 1}", "line 1, column 2: JSON has double quotes around strings, not single ones"),
        ("{\"a\": \"b\n\"}", "line 1, column 9: the line ends inside a string: a quote may be missing"),
        ("{\"a\": \u{1b}}", "line 1, column 7: `\\u{1b}` is not expected here"),
        ("{\"a\": tru}", "line 1, column 7: `t` is not expected here"),
        ("{,}", "line 1, column 2: `,` is not expected here"),
        ("{}\n/* x", "line 2, column 1: the comment has no end: `*/` is missing"),
        ("[]", "line 1, column 1: an object is required, not an array"),
        (
            "\n{\"a\": 1}",
            "line 2, column 1: the file has no list of servers: `mcpServers`, `servers`, `context_servers` or `mcp` is \
             missing",
        ),
        ("{\"mcpServers\": []}", "line 1, column 16, mcpServers: an object is required, not an array"),
        ("{\"mcp\": 1}", "line 1, column 9, mcp: an object is required, not a number"),
        (
            "{\"mcpServers\": {},\n \"mcpServers\": {}}",
            "line 2, column 2, mcpServers: it occurs twice: remove or rename one",
        ),
        (
            "{\"servers\": {},\n \"mcpServers\": {}}",
            "line 2, column 2: `mcpServers` and `servers` exclude each other: remove one",
        ),
        (
            "{\"mcpServers\": {\"\\ud800\": {}}}",
            "line 1, column 17, mcpServers: the string contains half of a surrogate pair",
        ),
    ] {
        assert_eq!(ConfigFile::parse(text).unwrap_err().to_string(), why);
    }
}

// covers: S0-06, S0-07
#[test]
fn errors_of_a_server_name_its_member() {
    for (members, why) in [
        ("", "1, mcpServers.a: `command` or `url` is missing"),
        ("\"type\": \"http\"", "1, mcpServers.a: the type `http` needs `url`"),
        ("\"type\": \"stdio\", \"url\": \"http://h\"", "1, mcpServers.a: the type `stdio` needs `command`"),
        ("\"type\": \"ws\", \"command\": \"x\"", "1, mcpServers.a: the type `ws` needs `url`"),
        ("\"type\": \"tcp\", \"url\": \"http://h\"", "10, mcpServers.a.type: the type `tcp` is unknown"),
        ("\"type\": null, \"url\": \"http://h\"", "10, mcpServers.a.type: a string is required, not null"),
        (
            "\"command\": \"x\", \"url\": \"http://h\"",
            "18, mcpServers.a: `command` and `url` exclude each other: remove one",
        ),
        (
            "\"httpUrl\": \"http://h\", \"url\": \"http://h\"",
            "25, mcpServers.a: `url` and `httpUrl` exclude each other: remove one",
        ),
        ("\"command\": \"x\", \"command\": \"y\"", "18, mcpServers.a.command: it occurs twice: remove or rename one"),
        ("\"command\": \" \"", "13, mcpServers.a.command: the command is empty"),
        ("\"command\": [\"x\"]", "13, mcpServers.a.command: a string is required, not an array"),
        ("\"command\": \"x\", \"args\": \"y\"", "26, mcpServers.a.args: an array of strings is required, not a string"),
        ("\"command\": \"x\", \"args\": [\"y\", 1]", "32, mcpServers.a.args[1]: a string is required, not a number"),
        (
            "\"command\": \"x\", \"args\": [\"\\ud800\"]",
            "27, mcpServers.a.args[0]: the string contains half of a surrogate pair",
        ),
        (
            "\"command\": \"x\", \"args\": [\"\\u0000\"]",
            "27, mcpServers.a.args[0]: a program cannot be given the character NUL",
        ),
        (
            "\"command\": \"x\", \"args\": [\"${A\"]",
            "27, mcpServers.a.args[0]: a variable begins with `${` and has no `}`",
        ),
        (
            "\"command\": \"x\", \"args\": [\"${A:-${B}}\"]",
            "27, mcpServers.a.args[0]: a variable needs a name, and its default cannot contain another variable",
        ),
        ("\"command\": \"x\", \"cwd\": true", "25, mcpServers.a.cwd: a string is required, not a boolean"),
        ("\"command\": \"x\", \"env\": {\"A\": 1}", "31, mcpServers.a.env.A: a string is required, not a number"),
        (
            "\"command\": \"x\", \"env\": {\"A=B\": \"\"}",
            "26, mcpServers.a.env[\"A=B\"]: the name of an environment variable is not empty, and contains no `=` or NUL",
        ),
        (
            "\"command\": \"x\", \"env\": {\"A\": \"\", \"A\": \"\"}",
            "35, mcpServers.a.env.A: it occurs twice: remove or rename one",
        ),
        ("\"command\": \"x\", \"timeout\": \"1\"", "29, mcpServers.a.timeout: a number is required, not a string"),
        ("\"command\": \"x\", \"timeout\": -1", "29, mcpServers.a.timeout: a whole number from 0 is required"),
        ("\"command\": \"x\", \"timeout\": 1.5", "29, mcpServers.a.timeout: a whole number from 0 is required"),
        ("\"command\": \"x\", \"disabled\": 1", "30, mcpServers.a.disabled: a boolean is required, not a number"),
        ("\"type\": \"ws\", \"url\": \"http://h\"", "23, mcpServers.a.url: the type needs a ws: or wss: URL"),
        ("\"type\": \"http\", \"url\": \"ws://h\"", "25, mcpServers.a.url: the type needs an http: or https: URL"),
        (
            "\"url\": \"http://h\", \"headers\": {\"A B\": \"\"}",
            "33, mcpServers.a.headers[\"A B\"]: \"A B\" is not the name of a header field",
        ),
        (
            "\"url\": \"http://h\", \"headers\": {\"X-A\": \"1\", \"x-a\": \"2\"}",
            "45, mcpServers.a.headers.x-a: it occurs twice: remove or rename one",
        ),
        (
            "\"url\": \"http://h\", \"headers\": {\"Host\": \"h\"}",
            "33, mcpServers.a.headers.Host: the header field Host is written by the client itself",
        ),
        (
            "\"url\": \"http://h\", \"headers\": {\"A\": \"s\\n\"}",
            "33, mcpServers.a.headers.A: the value of the header field A holds a control character or begins or ends with \
             white space",
        ),
    ] {
        assert_eq!(error(&of_members(members)), format!("line 2, column {why}"), "{members}");
    }
    for url in ["h", "unix:///a", "http://ann:secret@h/", "http://h:99999/"] {
        let why = error(&of_members(&format!("\"url\": \"{url}\"")));
        assert!(why.starts_with("line 2, column 9, mcpServers.a.url: the URL cannot be used: "), "{why}");
        assert!(!why.contains("secret"));
    }
}

// covers: S0-06
#[test]
fn error_of_one_server_does_not_hide_the_others() {
    let file = parsed(
        r#"{"mcpServers": {
            "bad": {"command": 1}, "good": {"command": "x"}, "worse": 7, "twice": {"command": "x"},
            "twice": {"command": "y"}, "last": {"url": "http://h/"}
        }}"#,
    );
    let found: Vec<_> = file.servers().map(|(name, server)| (name, server.is_ok())).collect();
    let expected = [("bad", false), ("good", true), ("worse", false), ("twice", false), ("last", true)];
    assert_eq!(found, expected);
    let why = file.server("twice").unwrap().unwrap_err();
    assert_eq!(why.to_string(), "line 3, column 13, mcpServers.twice: it occurs twice: remove or rename one");
}

// covers: S0-07
#[test]
fn values_of_variables_are_checked_too() {
    let file = parsed(
        r#"{"mcpServers": {
            "none": {"command": "x", "args": ["a ${NONE} b"]},
            "empty": {"command": "${env:EMPTY}"},
            "nul": {"command": "x", "env": {"A": "${NUL}"}},
            "url": {"url": "${EMPTY}"},
            "scheme": {"type": "ws", "url": "${WEB}"},
            "field": {"url": "http://h/", "headers": {"A": "${LINES}"}},
            "file": {"command": "x", "envFile": "${WEB}"},
            "lines": {"command": "x", "envFile": "lines"}
        }}"#,
    );
    let lookup = |variable: Variable<'_>| match variable {
        Variable::Environment("EMPTY") => Some(String::new()),
        Variable::Environment("NUL") => Some("t0ps3cret\0".into()),
        Variable::Environment("WEB") => Some("http://t0ps3cret/".into()),
        Variable::Environment("LINES") => Some("t0ps3cret\r\n".into()),
        Variable::EnvFile("lines") => Some("A=1\nt0ps3cret\n".into()),
        _ => None,
    };
    let expected = [
        "line 2, column 47, mcpServers.none.args[0]: the variable `NONE` has no value",
        "line 3, column 34, mcpServers.empty.command: the command is empty",
        "line 4, column 50, mcpServers.nul.env.A: a program cannot be given the character NUL",
        "line 5, column 28, mcpServers.url.url: the URL cannot be used: not an absolute http:, https:, ws: or wss: URL \
         without a user",
        "line 6, column 45, mcpServers.scheme.url: the type needs a ws: or wss: URL",
        "line 7, column 60, mcpServers.field.headers.A: the value of the header field A holds a control character or \
         begins or ends with white space",
        "line 8, column 49, mcpServers.file.envFile: this file of variables was not found",
        "line 9, column 50, mcpServers.lines.envFile: line 2 of this file: NAME=value is required",
    ];
    for ((_, server), expected) in file.servers().zip(expected) {
        let why = server.unwrap().client_config(&lookup, Trust::Trusted).unwrap_err();
        assert_eq!(why.to_string(), expected);
        assert!(!format!("{why:?}").contains("t0ps3cret"));
    }
}

// covers: S2-44
#[test]
fn secrets_are_in_no_debug_and_no_error() {
    let file = parsed(
        r#"{"mcpServers": {
            "p": {"command": "x", "args": ["--token", "t0ps3cret", "--api-key=t0ps3cret"], "env": {"K": "t0ps3cret"}, "envFile": "/home/ann/.env"},
            "u": {"url": "https://h/?api_key=t0ps3cret", "headers": {"Authorization": "t0ps3cret", "X-A": "t0ps3cret"}, "oauth": {"clientSecret": "t0ps3cret"}},
            "e": {"command": "x", "args": 1, "env": {"K": "t0ps3cret"}}
        }}"#,
    );
    let mut shown = format!("{file:?}");
    for name in ["p", "u"] {
        let entry = entry(&file, name);
        let preview = entry.preview();
        shown += &format!("{entry:?} {preview:?} {:?}", entry.client_config(&lookup, Trust::Trusted).unwrap());
    }
    shown += &entry(&file, "u").preview().to_string();
    assert!(!shown.contains("t0ps3cret"), "{shown}");
    assert!(shown.contains("Authorization") && shown.contains("--token"));
}

#[test]
fn inputs_have_errors_of_their_own() {
    let file = parsed(
        r#"{"servers": {"a": {"command": "x"}}, "inputs": [
            7, {"id": "a", "type": "radio"}, {"id": "a", "type": "promptString"}, {"id": "a", "type": "promptString"},
            {"id": "b", "type": "pickString"}, {"id": "c", "type": "pickString", "options": [1]},
            {"id": "d", "type": "pickString", "options": [{"label": "EU"}]}
        ]}"#,
    );
    let errors: Vec<_> = file.inputs().map(|input| input.map_err(ToString::to_string).err()).collect();
    let errors: Vec<_> = errors.iter().map(|why| why.as_deref().unwrap_or("")).collect();
    assert_eq!(
        errors,
        [
            "line 2, column 13, inputs[0]: an object is required, not a number",
            "line 2, column 36, inputs[1].type: the type `radio` is unknown",
            "",
            "line 2, column 83, inputs[3]: it occurs twice: remove or rename one",
            "line 3, column 13, inputs[4]: `options` is missing",
            "line 3, column 94, inputs[5].options[0]: a string is required, not a number",
            "line 4, column 59, inputs[6].options[0]: `value` is missing",
        ]
    );
    let file = parsed(r#"{"servers": {}, "inputs": {}}"#);
    assert!(file.inputs().next().unwrap().is_err());
}
