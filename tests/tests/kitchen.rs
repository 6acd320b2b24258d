#![forbid(unsafe_code)]
//! The examples of a server with everything and of its client, together, and their lines beside
//! those of other SDKs. The program `kitchen` runs the clients and servers of these.

use mcp_tests::kitchen::{KITCHENS, meet};
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
    assert_eq!(meet(&[example("kitchen_client")], &[example("kitchen_server")]), Ok(()));
}

#[test]
fn examples_are_as_short_as_promised() {
    for (text, most) in KITCHENS[0].texts.iter().zip([30, 20]) {
        let lines = text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with("//!")).count();
        assert!(lines <= most, "{lines} of {most}");
    }
}

#[test]
fn readme_has_the_lines_of_each_kitchen() {
    let readme = include_str!("../../README.md");
    for kitchen in KITCHENS {
        assert!(readme.contains(&format!("\n{kitchen}\n")), "the README lacks {kitchen}");
    }
}
