//! The diagnostic codes are one list: the table in the documentation of `DiagnosticKind`. It agrees
//! with the code, and `tests/api/diagnostics.txt` keeps the codes, so that no renaming changes one.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use mcp_tests::sources;

/// The file that defines the kinds.
const PATH: &str = "mcp-proto/src/error/diagnostic.rs";

/// The codes, one a line.
const KEPT: &str = "tests/api/diagnostics.txt";

/// Codes that no code emits. They stay reserved.
const RESERVED: [&str; 1] = ["unknown-content-type"];

/// Code and action of each kind.
type Kinds = BTreeMap<String, (String, String)>;

/// Returns the kinds that the table documents.
fn documented(text: &str) -> Kinds {
    let rows = text.lines().filter_map(|line| line.trim().strip_prefix("/// | `"));
    let kinds = rows.filter_map(|row| {
        let mut cells = row.strip_suffix(" |")?.split(" | ");
        let (code, kind, _subject, action) = (cells.next()?, cells.next()?, cells.next()?, cells.next()?);
        Some((kind.trim_matches('`').to_owned(), (code.trim_end_matches('`').to_owned(), action.to_owned())))
    });
    kinds.collect()
}

/// Returns the kinds that `DiagnosticKind::row` maps to a code and an action.
fn mapped(text: &str) -> Kinds {
    let start = text.find("const fn row(self)").expect("the function exists");
    let arms = text[start..].split("Self::").skip(1).filter_map(|arm| {
        let (kind, row) = arm.split_once(" => ")?;
        // Code and action are literals in double quotes, without escapes.
        let mut literals = row.split('"').skip(1).step_by(2);
        Some((kind.to_owned(), (literals.next()?.to_owned(), literals.next()?.to_owned())))
    });
    arms.collect()
}

#[test]
fn table_of_diagnostics_agrees_with_the_code() {
    let text = fs::read_to_string(sources::root().join(PATH)).expect("the file exists");
    let (documented, mapped) = (documented(&text), mapped(&text));
    assert!(mapped.len() > 40, "only {} kinds were read", mapped.len());
    assert_eq!(documented, mapped);
}

#[test]
fn diagnostic_codes_are_the_kept_ones() {
    let text = fs::read_to_string(sources::root().join(PATH)).expect("the file exists");
    let kinds = mapped(&text);
    let codes: BTreeSet<_> = kinds.values().map(|(code, _)| code.as_str()).collect();
    assert_eq!(codes.len(), kinds.len(), "two kinds share a code");
    let kept = fs::read_to_string(sources::root().join(KEPT)).expect("the file exists");
    assert_eq!(codes, kept.lines().collect(), "{KEPT}: codes are added by hand, and none is removed");
}

#[test]
fn every_diagnostic_code_is_emitted() {
    let text = fs::read_to_string(sources::root().join(PATH)).expect("the file exists");
    let sources: Vec<_> = ["mcp-proto", "mcp-smol/src", "mcp-blocking/src"].map(sources::below).into();
    let shipped = || sources.iter().flatten().filter(|source| source.path != PATH).flat_map(|source| source.shipped());
    for (kind, (code, _)) in mapped(&text) {
        let name = format!("DiagnosticKind::{kind}");
        let is_emitted = shipped().any(|(_, line)| sources::has_word(&line.code, &name));
        assert_eq!(is_emitted, !RESERVED.contains(&code.as_str()), "{name}");
    }
}
