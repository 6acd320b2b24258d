//! Tests of the checks of the prose.

use mcp_tests::prose::{markdown, rust};
use mcp_tests::sources::Source;

fn found(text: &str) -> Vec<(usize, usize)> {
    rust(&Source::new("c/src/a.rs", text)).iter().map(|fault| (fault.line, fault.rule)).collect()
}

#[test]
fn phrases_are_found_across_lines_and_in_names() {
    assert_eq!(found("fn a() {}\n/// The lists, of\n/// which b understands.\nfn b() {}"), [(2, 0)]);
    assert_eq!(found("fn a_client_is_told() {}\nconst A: &str = \"it stands\"; // anew"), [(1, 0), (2, 0), (2, 0)]);
    assert_eq!(markdown("a.md", "Is\ntold.\n```text\nanew\n```\n").len(), 1);
    assert_eq!(markdown("CHANGELOG.md", "| anew |\n").len(), 0);
}

#[test]
fn wide_comments_and_long_names_are_found() {
    let wide = format!("// a {}\n// | {} |\nfn {}() {{}}", "x ".repeat(50), "x ".repeat(50), "a".repeat(61));
    assert_eq!(found(&wide), [(1, 1), (3, 2)]);
}
