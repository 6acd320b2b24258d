//! What the tests of the sources share.

use mcp_tests::sources::{Line, Source, below};
use std::sync::LazyLock;

/// All sources, read once for all of these tests.
static ALL: LazyLock<Vec<Source>> =
    LazyLock::new(|| ["mcp-proto", "mcp-smol", "mcp-blocking", "tests", "fuzz"].into_iter().flat_map(below).collect());

pub(crate) fn within(folder: &str) -> Vec<Source> {
    ALL.iter().filter(|source| source.path.starts_with(folder)).cloned().collect()
}

pub(crate) fn core() -> Vec<Source> {
    within("mcp-proto/src/")
}

/// The crates on the core that need nothing of a runtime.
pub(crate) fn shared() -> Vec<Source> {
    [within("mcp-proto/driver/src/"), within("mcp-proto/supervisor/src/")].concat()
}

pub(crate) fn adapters() -> Vec<Source> {
    let bare = within("tests/src/poll_loop");
    [within("mcp-smol/src/"), within("mcp-blocking/src/"), bare].concat()
}

pub(crate) fn all() -> Vec<Source> {
    ALL.clone()
}

/// Fails with one line for each finding, or if there were no sources.
#[track_caller]
pub(crate) fn none_found(looked_at: &[Source], findings: Vec<String>) {
    assert!(looked_at.iter().any(|source| source.lines.len() > 1), "no source was read");
    assert!(findings.is_empty(), "{} found:\n{}", findings.len(), findings.join("\n"));
}

/// Returns the lines of `sources` with a fault, as `path:line: fault`.
pub(crate) fn faults(sources: &[Source], mut fault: impl FnMut(&Source, &Line) -> Option<String>) -> Vec<String> {
    let mut found = Vec::new();
    for source in sources {
        let faulty = source
            .numbered()
            .filter_map(|(number, line)| Some(format!("{}: {}", source.at(number), fault(source, line)?)));
        found.extend(faulty);
    }
    found
}

/// Returns the module of the core that contains a file.
pub(crate) fn module(source: &Source) -> &str {
    let inside = source.path.strip_prefix("mcp-proto/src/").expect("a file of the core");
    inside.split('/').next().unwrap_or(inside).trim_end_matches(".rs")
}
