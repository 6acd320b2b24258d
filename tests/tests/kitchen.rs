#![forbid(unsafe_code)]
//! The examples of a server with everything and of its client, together.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Builds an example, which `cargo test --test` does not do, and returns its path.
fn example(name: &str) -> PathBuf {
    let built = Command::new(env!("CARGO")).args(["build", "--quiet", "-p", "mcp-tests", "--example", name]).status();
    assert!(built.expect("cargo runs").success(), "{name}");
    let test = std::env::current_exe().expect("a path");
    let profile = test.parent().and_then(Path::parent).expect("the directory of the profile");
    profile.join("examples").join(name).with_extension(std::env::consts::EXE_EXTENSION)
}

#[test]
fn client_uses_everything_that_the_server_offers() {
    let output = Command::new(example("kitchen_client")).arg(example("kitchen_server")).output().expect("it runs");
    let said = String::from_utf8(output.stdout).expect("unicode");
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(
        lines,
        [
            r#"Some("2 of soup"), Some("11 to 22"), Some("stew of the day")"#,
            r#"Some("Praise the salad."), ["salad", "soup", "stew"]"#,
        ]
    );
}

#[test]
fn examples_are_as_short_as_promised() {
    let server = include_str!("../examples/kitchen_server.rs");
    let client = include_str!("../examples/kitchen_client.rs");
    for (text, most) in [(server, 30), (client, 20)] {
        let lines = text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with("//!")).count();
        assert!(lines <= most, "{lines} of {most}");
    }
}
