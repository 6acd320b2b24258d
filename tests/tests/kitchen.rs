#![forbid(unsafe_code)]
//! The examples of a server with everything and of its client, together, and their lines beside
//! those of other SDKs. The program `kitchen` runs the clients and servers of these.

use mcp_tests::example;
use mcp_tests::kitchen::{KITCHENS, meet};

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
