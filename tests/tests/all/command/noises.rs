//! What a program prints on standard output beside messages.

use super::peers::{ECHO, initialized, script, with};
use super::run_with;

fn list(before: &str, words: &[&str]) -> super::Printed {
    let initialized = initialized(r#"{"tools":{}}"#);
    let script = script(before, &[("initialize", &initialized), ("tools/list", ECHO)]);
    run_with(&with(&[&["list"][..], words].concat(), &script), "")
}

const BANNER: &str = "for i in 1 2 3 4 5 6 7 8 9 10; do echo \"Listening $i\"; done";

// The first three lines, then a count.
#[test]
fn lines_that_are_no_messages_are_folded() {
    let printed = list(BANNER, &[]);
    assert_eq!(printed.err.matches("Listening").count(), 3, "{}", printed.err);
    printed.is(0, &["echo"], &["[mcp] a line on standard output is no JSON: Listening 3", "[mcp] and 7 more lines"]);
    let quiet = list(BANNER, &["--quiet"]);
    assert_eq!(quiet.err, "");
}

// An error after them counts them, and shows the first.
#[test]
fn error_after_noise_counts_the_lines() {
    for words in [&["--quiet"][..], &[]] {
        let printed = list(&format!("{BANNER}; exit 7"), words);
        printed.is(3, &[], &["exit 7", "lines that are no JSON; the first: Listening 1\n"]);
    }
    let doctor = run_with(&with(&["doctor"], &format!("{BANNER}; exit 7")), "");
    doctor.is(3, &["FAIL  protocol", "lines that are no JSON; the first: Listening 1"], &[]);
}

// Other framings are named as what they are.
#[test]
fn foreign_framing_is_named() {
    let length = r#"printf 'Content-Length: 38\r\n\r\n{"jsonrpc":"2.0","id":1,"result":{}}\r\n'; cat >/dev/null; exit"#;
    let words = ["--connect-timeout", "5"];
    list(length, &words).is(4, &[], &["its messages have a head with Content-Length"]);
    let pretty = r#"printf '{\n  "jsonrpc": "2.0",\n  "id": 1,\n  "result": {}\n}\n'; cat >/dev/null; exit"#;
    list(pretty, &words).is(4, &[], &["it prints JSON over several lines: a message of MCP is one line"]);
}
