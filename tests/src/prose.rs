//! Faults of the prose that can be counted: banned phrases, wide comments, long names of functions.

use std::collections::BTreeMap;
use std::path::Path;

use crate::sources::{Source, files, has_word};

/// Phrases that are banned in comments, documentation, literals and names.
const BANNED: [&str; 12] = [
    "whoever",
    "nobody",
    "of which",
    "so many",
    "so long",
    "anew",
    "stands",
    "for good",
    "gone on with",
    "all the same",
    "is told",
    "at the most",
];

/// The widest line of a comment, in columns.
const WIDEST: usize = 100;

/// The longest name of a function.
const LONGEST: usize = 60;

/// The rules, in the order of the counts.
pub const RULES: [&str; 3] = ["banned", "wide", "names"];

/// One fault.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    /// The line number.
    pub line: usize,
    /// The index in [`RULES`].
    pub rule: usize,
    /// The finding.
    pub what: String,
}

/// The faults of each file that has one.
pub type Faults = BTreeMap<String, Vec<Fault>>;

/// Returns the faults of all Rust and Markdown files below `root`.
pub fn faults(root: &Path) -> Faults {
    let rust = files(root, "", ".rs").into_iter().map(|(path, text)| (rust(&Source::new(&path, &text)), path));
    let markdown = files(root, "", ".md").into_iter().map(|(path, text)| (markdown(&path, &text), path));
    rust.chain(markdown).filter(|(found, _)| !found.is_empty()).map(|(found, path)| (path, found)).collect()
}

/// Returns the banned phrases of some lines that form one text. The first has the number `line`.
fn banned(lines: &[String], line: usize) -> Vec<Fault> {
    let (mut text, mut starts) = (String::new(), Vec::new());
    for part in lines {
        starts.push(text.len());
        text.extend(part.trim().chars().map(|c| c.to_ascii_lowercase()).chain([' ']));
    }
    let mut found = Vec::new();
    for phrase in BANNED {
        for (at, _) in text.match_indices(phrase) {
            // With the characters around it, since the edge of a word is not the edge of this
            // slice.
            let before = text[..at].chars().next_back().map_or(at, |c| at - c.len_utf8());
            let after = text[at + phrase.len()..].chars().next().map_or(0, char::len_utf8);
            if has_word(&text[before..at + phrase.len() + after], phrase) {
                let number = line + starts.partition_point(|start| *start <= at) - 1;
                found.push(Fault { line: number, rule: 0, what: phrase.to_owned() });
            }
        }
    }
    found
}

/// Returns the faults of a Rust file.
pub fn rust(source: &Source) -> Vec<Fault> {
    let (mut found, mut comment) = (Vec::new(), Vec::new());
    // The list of the phrases itself does not count.
    let is_list = source.path == "tests/src/prose.rs";
    for (number, line) in source.numbered() {
        let text = line.comment.as_ref().map(|text| text.trim_start_matches(['/', '!']).to_owned());
        // A table row and an address cannot be wrapped.
        let is_whole = text.as_ref().is_some_and(|text| {
            let text = text.trim();
            text.starts_with('|') || text.contains("://") && !text.contains(' ')
        });
        if line.code.trim().is_empty() && text.is_some() && line.width > WIDEST && !is_whole {
            found.push(Fault { line: number, rule: 1, what: format!("{} columns", line.width) });
        }
        if !line.code.trim().is_empty() || text.is_none() {
            found.extend(banned(&comment, number - comment.len()));
            comment.clear();
        }
        comment.extend(text);
        let mut names = Vec::new();
        for (at, _) in line.code.match_indices("fn ") {
            let is_keyword = !line.code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
            let rest = line.code[at + 3..].split(|c: char| !c.is_alphanumeric() && c != '_').next();
            names.extend(rest.filter(|name| is_keyword && !name.is_empty()));
        }
        for name in names {
            if name.chars().count() > LONGEST {
                found.push(Fault { line: number, rule: 2, what: name.to_owned() });
            }
            found.extend(banned(&[name.replace('_', " ")], number));
        }
        for text in line.strings.iter().filter(|_| !line.test && !is_list) {
            found.extend(banned(&[text.replace('\n', " ")], number));
        }
    }
    found.extend(banned(&comment, source.lines.len() + 1 - comment.len()));
    found.sort_by_key(|fault| (fault.line, fault.rule));
    found
}

/// Returns the banned phrases of a Markdown file outside of code. Tables of the changelog contain
/// old names and do not count.
pub fn markdown(path: &str, text: &str) -> Vec<Fault> {
    let mut is_code = false;
    let mut prose = Vec::new();
    for line in text.lines() {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        let is_left_out = is_code || is_fence || path == "CHANGELOG.md" && line.starts_with('|');
        prose.push(if is_left_out { String::new() } else { line.to_owned() });
    }
    banned(&prose, 1)
}
