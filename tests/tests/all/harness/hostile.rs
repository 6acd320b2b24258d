//! Tests of the tables of hostile peers, and of how the faults of a shim are reported.

use std::collections::BTreeSet;
use std::time::Duration;

use mcp_tests::hostile::shim::Shim;
use mcp_tests::hostile::{BESIDE, PROGRAMS, SERVER, WEB};

/// Rows are looked up by name.
#[test]
fn rows_have_different_names() {
    let mut seen = BTreeSet::new();
    for row in PROGRAMS.iter().chain(WEB).chain(SERVER).chain(BESIDE).copied().flatten() {
        assert!(seen.insert(row.name), "{:?} stands twice", row.name);
    }
}

/// Returns the fault of a shim that gets one command.
fn fault(command: &str) -> String {
    let shim = Shim::spawn(command, Duration::from_secs(1)).expect("a shell");
    assert!(!shim.answers(), "{command} answers");
    shim.kill().expect("it was killed");
    shim.fault().unwrap_or_default()
}

#[test]
fn shim_that_does_not_answer_is_named() {
    assert_eq!(fault("sleep 1000"), "the shim does not answer command 1 within 1 s");
}

#[test]
fn shim_that_ends_early_is_named() {
    assert_eq!(fault("true"), "the shim ended before its input did");
    assert_eq!(fault("no-such-shim"), "the shim ended before its input did");
}

#[test]
fn standard_error_explains_a_failure() {
    let shim = Shim::spawn("sh -c 'echo oh >&2; echo no >&2'", Duration::from_secs(1)).expect("a shell");
    assert_eq!(shim.explain("it fails"), "it fails; its standard error: oh | no");
    let shim = Shim::spawn("true", Duration::from_secs(1)).expect("a shell");
    assert_eq!(shim.explain("it fails"), "it fails");
}

#[test]
fn line_that_is_no_result_is_quoted() {
    assert!(fault("echo hello").starts_with(r#"the shim wrote a line that is no result: "hello""#));
    let other = r#"the shim wrote an event of client 7, which there is not"#;
    assert_eq!(fault(r#"echo '{"client":7,"event":"notification"}'"#), other);
}

#[test]
fn result_of_another_command_is_a_fault() {
    let shim = Shim::spawn(r#"echo '{"id":1,"done":"freed"}'"#, Duration::from_secs(1)).expect("a shell");
    shim.tools();
    assert_eq!(shim.fault().as_deref(), Some("the shim returned Freed for another command"));
}
