//! The README and the guide are correct: their examples compile (see `examples` of the crate), and
//! the table of limits equals that of the code.

use mcp_proto::Limits;
use mcp_tests::kitchen::KITCHENS;

const README: &str = include_str!("../../../README.md");

/// The code blocks of a text in Markdown that are Rust.
fn examples(text: &str) -> impl Iterator<Item = &str> {
    text.split("```rust").skip(1).filter_map(|rest| rest.split("```").next())
}

// covers: TOOL-S-007
#[test]
fn example_tools_have_schemas() {
    let quickstart =
        [include_str!("../../examples/quickstart/blocking.rs"), include_str!("../../examples/quickstart/smol.rs")];
    let mut tools = 0;
    let texts = [README, include_str!("../../../mcp-proto/driver/src/guide/servers.md")];
    for example in texts.into_iter().flat_map(examples).chain(quickstart) {
        let made = example.matches("tool(\"").count();
        assert_eq!(example.matches(".input::<").count(), made, "{example}");
        tools += made;
    }
    assert!(tools >= 10, "{tools}");
}

#[test]
fn table_of_limits_equals_that_of_the_code() {
    let guide = include_str!("../../../mcp-proto/driver/src/guide/limits.md");
    let limits = Limits::default();
    let groups = [
        ("client", format!("{:?}", limits.client)),
        ("server", format!("{:?}", limits.server)),
        ("frame", format!("{:?}", limits.frame)),
    ];
    let mut rows = 0;
    for (group, debug) in groups {
        let fields = debug.split_once('{').unwrap().1.trim_end_matches('}');
        for field in fields.split(',') {
            let (name, value) = field.trim().split_once(": ").unwrap();
            let cell = format!("| `{group}.{name}` | {value} |");
            assert!(guide.contains(&cell), "the guide lacks {cell}");
            rows += 1;
        }
    }
    assert_eq!(guide.matches("| `").count(), rows, "and has no other rows");
}

#[test]
fn driver_of_the_porting_guide_is_the_example() {
    let guide = include_str!("../../../mcp-proto/driver/src/porting.md");
    let example = guide.split("```standalone_crate\n").nth(1).expect("an example");
    let driver = example.split("\n// The rest uses the driver.").next().expect("a driver");
    assert_eq!(driver, include_str!("../../examples/threads/driver.rs"));
}

#[test]
fn examples_are_as_short_as_promised() {
    for (text, most) in KITCHENS[0].texts.iter().zip([30, 20]) {
        let lines = text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with("//!")).count();
        assert!(lines <= most, "{lines} of {most}");
    }
}

#[test]
fn guide_has_the_lines_of_each_kitchen() {
    let guide = include_str!("../../../mcp-proto/driver/src/guide/servers.md");
    for kitchen in KITCHENS {
        assert!(guide.contains(&format!("\n{kitchen}\n")), "the guide lacks {kitchen}");
    }
}
