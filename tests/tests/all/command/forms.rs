//! The forms of the command line and of the output.

use super::peers::{ECHO, legacy, with};
use super::{MCP, Printed, Temp, output_of, run, run_with, terminal};
use rustix::termios::{Winsize, tcsetwinsize};
use serde_json::Value;
use std::io::Read;
use std::process::{Command, Stdio};

impl Printed {
    /// Standard output is one line of JSON.
    #[track_caller]
    fn json(&self) -> Value {
        assert_eq!(self.out.lines().count(), 1, "{}\n{}", self.out, self.err);
        serde_json::from_str(&self.out).expect("JSON")
    }
}

// With `--json` a failure has one shape, whatever fails.
#[test]
fn failure_is_json_for_a_program() {
    let refused = r#""error":{"code":-32603,"message":"the disk is full"}"#;
    let script = legacy(r#"{"tools":{},"prompts":{}}"#, &[("tools/list", ECHO), ("tools/call", refused)]);
    let of = |words: &[&str]| run_with(&with(words, &script), "");
    let cases = [
        (run_with(&["list", "--json", "http://127.0.0.1:1/"], ""), "connection", 3),
        (of(&["call", "--json", "echo"]), "server", 1),
        (of(&["call", "--json", "none"]), "usage", 2),
        (run_with(&["list", "--json", "--config", "/no/such", "x"], ""), "usage", 2),
        (run_with(&["list", "--json", "--frobnicate"], ""), "usage", 2),
        (
            run_with(&["list", "--json", "--connect-timeout", "0.2", "--", "/bin/sh", "-c", "cat >/dev/null"], ""),
            "timeout",
            4,
        ),
    ];
    for (printed, kind, code) in cases {
        let error = &printed.json()["error"];
        assert_eq!((printed.code, &error["kind"], &error["exitCode"]), (code, &kind.into(), &code.into()), "{error}");
        assert!(
            error["message"].as_str().is_some_and(|text| !text.is_empty()) && error["advice"].is_array(),
            "{error}"
        );
        assert!(!printed.err.contains("mcp: "), "{}", printed.err);
    }
    let called = of(&["call", "--json", "echo"]).json();
    assert_eq!((&called["error"]["request"], &called["error"]["code"]), (&"tools/call echo".into(), &(-32603).into()));
    // Of lists, what was loaded is beside the error.
    let failing = legacy(r#"{"tools":{},"prompts":{}}"#, &[("tools/list", ECHO), ("prompts/list", refused)]);
    let listed = run_with(&with(&["list", "--json"], &failing), "");
    assert_eq!(listed.code, 1);
    let listed = listed.json();
    assert_eq!((&listed["tools"][0]["name"], &listed["error"]["request"]), (&"echo".into(), &"prompts/list".into()));
    assert_eq!((&listed["server"]["name"], &listed["revision"]), (&"peer".into(), &"2025-06-18".into()));
}

#[test]
fn doctor_is_json_for_a_program() {
    let found = run("doctor --json STDIO");
    assert_eq!(found.code, 0, "{}", found.err);
    let found = found.json();
    assert_eq!((&found["exitCode"], &found["findings"][0]["what"]), (&0.into(), &"connect".into()));
    let of = |name: &str| found["findings"].as_array().expect("a list").iter().any(|finding| finding["what"] == name);
    assert!(of("lists") && of("2024-11-05"), "{found}");
    let dead = run_with(&["doctor", "--json", "--", "/bin/sh", "-c", "echo bye >&2; exit 7"], "");
    assert_eq!(dead.code, 3);
    let dead = dead.json();
    let first = &dead["findings"][0];
    assert_eq!((&first["verdict"], &dead["stderr"][0], &dead["exitCode"]), (&"fail".into(), &"bye".into(), &3.into()));
    assert!(!first["advice"].as_array().expect("a list").is_empty(), "{first}");
}

// A word in the wrong place is put into the right one.
#[test]
fn right_form_is_suggested() {
    let program = "a program goes after --: mcp list -- npx -y x";
    run("list npx -y x").is(2, &[], &["unexpected argument '-y'", program]);
    run("list localhost:80/mcp").is(2, &[], &["a URL has a scheme: mcp list http://localhost:80/mcp"]);
    run("list mcp.json").is(2, &[], &["a configuration file needs --config: mcp list --config mcp.json NAME"]);
    run("--help").is(0, &["Exit codes: 0 success", "With --json a failure is one line"], &[]);
}

// Without a terminal the answers of a file come from the command line or the environment.
#[test]
fn inputs_are_answered_without_a_terminal() {
    let script = legacy(r#"{"tools":{}}"#, &[("tools/list", ECHO)]);
    let script = format!("[ \"$KEY/$MODE\" = hunter2/fast ] || exit 9\n{script}");
    let script = Temp::new("inputs-script", &script);
    let env = r#"{"KEY": "${input:api-key}", "MODE": "${input:mode}"}"#;
    let inputs = r#"[{"type": "promptString", "id": "api-key", "password": true},
        {"type": "pickString", "id": "mode", "options": ["fast", "slow"]}]"#;
    let server = format!(r#"{{"command": "/bin/sh", "args": ["{}"], "env": {env}}}"#, script.path());
    let file = Temp::new("inputs", &format!(r#"{{"inputs": {inputs}, "servers": {{"s": {server}}}}}"#));
    let of = |inputs: &[&str], key: Option<&str>| {
        let mut command = Command::new(MCP);
        command.args(["list", "--yes", "--config", file.path(), "s"]).args(inputs).stdin(Stdio::null());
        command.envs(key.map(|key| ("MCP_INPUT_API_KEY", key)));
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("mcp");
        let output = output_of(child);
        let text = |bytes| String::from_utf8(bytes).expect("text");
        Printed { code: output.status.code().expect("a code"), out: text(output.stdout), err: text(output.stderr) }
    };
    of(&["--input", "api-key=hunter2", "--input", "mode=fast"], None).is(0, &["tools: 1"], &[]);
    of(&["--input", "mode=fast"], Some("hunter2")).is(0, &["tools: 1"], &[]);
    let missing = "the input api-key needs --input api-key=VALUE, or the variable MCP_INPUT_API_KEY";
    of(&["--input", "mode=fast"], None).is(2, &[], &[missing]);
    let wrong = of(&["--input", "mode=hunter3"], Some("hunter2"));
    assert!(!wrong.err.contains("hunter"), "{}", wrong.err);
    wrong.is(2, &[], &["the input mode is one of fast, slow"]);
    of(&["--input", "x=1"], None).is(2, &[], &["the file has no input x; its inputs: api-key, mode"]);
    of(&["--input", "x"], None).is(2, &[], &["--input is written as ID=VALUE"]);
}

/// Runs the command with its output on a terminal of 40 columns. Returns what it shows.
fn on_narrow_terminal(words: &[&str], no_color: &str) -> String {
    let (mut user, shows) = terminal();
    tcsetwinsize(&shows, Winsize { ws_row: 24, ws_col: 40, ws_xpixel: 0, ws_ypixel: 0 }).expect("a size");
    let mut command = Command::new(MCP);
    command.args(words).env("NO_COLOR", no_color).env("TERM", "xterm");
    let child = command.stdin(Stdio::null()).stdout(shows).stderr(Stdio::piped()).spawn().expect("mcp");
    // It holds the end of the program, which ends what is shown.
    drop(command);
    let output = output_of(child);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut shown = Vec::new();
    // It ends with an error, since nothing else is there.
    let _ = user.read_to_end(&mut shown);
    String::from_utf8(shown).expect("text")
}

// Lines fit the terminal, and colours are for terminals whose user wants them.
#[test]
fn output_fits_the_terminal() {
    let described = ECHO.replace(
        r#""inputSchema":{"type":"object"}"#,
        r#""description":"Says the same thing again, as often as anybody wants to listen","inputSchema":{"type":"object",
        "properties":{"loudness":{"type":"integer"},"message":{"type":"string"},"repeat":{"type":"integer"}}}"#,
    );
    let script = legacy(r#"{"tools":{}}"#, &[("tools/list", &described.replace('\n', ""))]);
    let words = with(&["list"], &script);
    let plain = on_narrow_terminal(&words, "1");
    assert!(!plain.contains('\u{1b}') && plain.contains('…'), "{plain}");
    assert!(plain.lines().all(|line| line.trim_end().chars().count() <= 40), "{plain}");
    assert!(plain.contains("message?: string") && plain.contains("repeat?: integer"), "{plain}");
    let painted = on_narrow_terminal(&words, "");
    assert!(painted.contains("\u{1b}[1mtools:\u{1b}[0m 1"), "{painted}");
    let piped = run_with(&words, "");
    assert!(!piped.out.contains('\u{1b}'), "{}", piped.out);
}

// An argument as JSON, or as the content of a file.
#[test]
fn argument_is_json_or_a_file() {
    let file = Temp::new("value", "from a file");
    let of = |value: &str| run_with(&["call", "test_custom_header", value, "STDIO"], "");
    of(&format!("value=@{}", file.path())).is(0, &["from a file"], &[]);
    of("value:=\"7\"").is(0, &["7"], &[]);
    of("value:=7").is(2, &[], &["the argument `value` does not fit the tool"]);
}
