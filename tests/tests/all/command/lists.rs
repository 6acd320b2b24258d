//! `mcp list` with servers that have less than they declare, and files that say more than is used.

use super::peers::{ECHO, legacy, with};
use super::{Printed, Temp, run_with};

const RESOURCE: &str = r#""result":{"resources":[{"uri":"x://1","name":"one"}]}"#;
const REFUSED: &str = r#""error":{"code":-32603,"message":"the disk is full"}"#;

fn list(words: &[&str], answers: &[(&str, &str)]) -> Printed {
    let script = legacy(r#"{"tools":{},"resources":{},"prompts":{}}"#, answers);
    run_with(&with(&[&["list"][..], words].concat(), &script), "")
}

// The report `templates-not-found`: a list that is not there costs no other one.
#[test]
fn missing_list_is_a_note() {
    let answers = [("tools/list", ECHO), ("resources/list", RESOURCE), ("prompts/list", r#""result":{"prompts":[]}"#)];
    let notes = ["tools: 1", "resources: 1", "templates: none (the server has no resources/templates/list)"];
    list(&[], &answers).is(0, &notes, &[]);
    list(&["--json"], &answers).is(0, &[r#""resources":[{"#, r#""resourceTemplates":[]"#], &[]);
    let script = legacy(r#"{"tools":{},"resources":{}}"#, &answers[..2]);
    let doctor = run_with(&with(&["doctor"], &script), "");
    doctor.is(1, &["tools: 1, resources: 1, templates: 0, without resources/templates/list, in "], &[]);
}

// A list that fails costs no other one, and decides about the exit code.
#[test]
fn lists_that_were_loaded_are_printed_before_an_error() {
    let mut answers = vec![("tools/list", REFUSED), ("resources/list", RESOURCE), ("prompts/list", REFUSED)];
    answers.push(("resources/templates/list", r#""result":{"resourceTemplates":[]}"#));
    let printed = list(&[], &answers);
    assert!(!printed.out.contains("tools:"), "{}", printed.out);
    let shown = ["resources: 1\n  x://1", "templates: 0"];
    printed.is(1, &shown, &["mcp: tools/list: MCP error -32603: the disk is full"]);
    // What came before the error is there too.
    let pages = "!case $line in *cursor*) printf '{\"jsonrpc\":\"2.0\",\"id\":%s,\"error\":{\"code\":-32603,\"message\":\"no\"}}\\n' \"$id\";; \
                 *) printf '{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"tools\":[{\"name\":\"first\",\"inputSchema\":{\"type\":\"object\"}}],\
                 \"nextCursor\":\"c\"}}\\n' \"$id\";; esac";
    list(&["tools"], &[("tools/list", pages)]).is(
        1,
        &["tools: 1\n  first()"],
        &["mcp: tools/list: MCP error -32603: no"],
    );
}

// The command does not exit before its last diagnostic is shown.
#[test]
fn last_diagnostic_is_never_lost() {
    let last = format!("!printf 'goodbye\\n{{\"jsonrpc\":\"2.0\",\"id\":%s,{ECHO}}}\\n' \"$id\"");
    for _ in 0..10 {
        list(&["tools"], &[("tools/list", &last)]).is(0, &["tools: 1"], &["goodbye"]);
    }
}

// The command mentions members without an effect, without their values, and `disabled`.
#[test]
fn members_without_effect_are_told() {
    let script = Temp::new("ignored-script", &legacy(r#"{"tools":{}}"#, &[("tools/list", ECHO)]));
    let server = format!(r#""command": "/bin/sh", "args": ["{}"]"#, script.path());
    let text = format!(
        r#"{{"mcpServers": {{
            "a": {{{server}, "disabled": true, "autoApprove": ["hunter2"], "headers": {{"X-A": "1"}}}},
            "b": {{"command": "true", "colour": "red"}}
        }}, "theme": "dark"}}"#
    );
    let file = Temp::new("ignored", &text);
    let printed = run_with(&["list", "--yes", "--config", file.path(), "a"], "");
    assert!(!printed.err.contains("hunter2") && !printed.err.contains("colour"), "{}", printed.err);
    let told = ["turns the server a off", "mcpServers.a.autoApprove has no effect", "theme has no effect"];
    printed.is(0, &["tools: 1"], &told);
}
