//! The examples `host` and `host_smol`: a host of tools over the servers of a configuration file.

use std::io::Write;
use std::process::{Command, Stdio};
use std::{env, fs};

const TESTS: &str = env!("CARGO_BIN_EXE_mcp-tests");

/// Runs an example with this configuration file and this input. Returns what it printed.
fn run(example: &str, config: &str, input: &str) -> (String, String) {
    let file = env::temp_dir().join(format!("mcp-{example}-{}.json", std::process::id()));
    fs::write(&file, config).expect("written");
    let mut command = Command::new(mcp_tests::example(example).expect("built"));
    let piped = command.arg(&file).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = piped.spawn().expect("the example runs");
    child.stdin.take().expect("a pipe").write_all(input.as_bytes()).expect("written");
    let output = child.wait_with_output().expect("its end");
    fs::remove_file(&file).expect("removed");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    let (out, err) = (text(output.stdout), text(output.stderr));
    assert!(output.status.success(), "{out}\n{err}");
    (out, err)
}

// covers: S0-05, TOOL-C-012, TOOL-C-013
#[test]
fn model_calls_the_tools_of_all_servers_by_their_names() {
    let config = format!(
        r#"{{"mcpServers": {{
            "one": {{"command": {TESTS:?}, "args": ["everything-server", "blocking", "--stdio"]}},
            "two": {{"command": {TESTS:?}, "args": ["everything-server", "smol", "--stdio"]}},
            "lost": {{"command": "/no/such/program"}},
            "wrong": {{"command": 7}},
            "off": {{"command": "/no/such/program", "disabled": true}}
        }}}}"#
    );
    let input = "one__test_simple_text; two__test_error_handling\n\
                 two__test_elicitation message=Who?\nAnn\nann@example.com\n\
                 nonsense\n";
    for example in ["host", "host_smol"] {
        let (out, err) = run(example, &config, input);
        let known = out.split_once("The model knows these tools: ").map_or("", |(_, rest)| rest);
        let tools = known.lines().next().unwrap_or_default().matches("one__").count();
        assert!(tools > 20, "{out}\n{err}");
        let expected = [
            &format!("one: ready, {tools} tools | two: ready, {tools} tools"),
            "one__test_simple_text: This is a simple text response for testing.",
            "two__test_error_handling: This tool intentionally returns an error for testing",
            "two asks: Who?",
            "action=accept",
            "The model knows these tools: one__",
        ];
        for text in expected {
            assert!(out.contains(text), "{example}: {text:?} is not in\n{out}\n{err}");
        }
        assert!(err.contains("line 5, column 34, mcpServers.wrong.command: a string is required"), "{err}");
        assert!(err.contains("[lost: ") && err.contains("/no/such/program"), "{err}");
        // It was never connected.
        assert!(err.contains("; it is tried again]") && !err.contains("connected again"), "{err}");
        assert!(!out.contains("off:"), "{out}");
    }
}
