//! Planted faults: breaks of the code, each with the test that must fail.
//!
//! A fault is a text file: a head, then for each changed file the path and one or more blocks with
//! the old and the new text. Blocks survive changes around them better than line numbers.
//!
//! ```text
//! # test: -p mcp-proto --lib rpc::tests::an_id_keeps_its_type
//! # breaks: RPC-B-009, the answer echoes the id as a string
//! mcp-proto/src/rpc/write.rs
//! <<<<<<<
//! the old text, exactly once
//! =======
//! the new text
//! >>>>>>>
//! ```
//!
//! [`choose`] selects the faults of a run, [`field`] plants them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

pub mod choose;
pub mod field;

/// A break of the code, and the test that must fail.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    /// The name of the file without its extension.
    pub name: String,
    /// The arguments of `cargo test` that run the one test.
    pub test: Vec<String>,
    /// The broken ids and a sentence.
    pub breaks: String,
    /// The changes, in order.
    pub edits: Vec<Edit>,
}

/// One replacement.
#[derive(Clone, Debug, PartialEq)]
pub struct Edit {
    /// The path below the root.
    pub path: String,
    /// The old text, which occurs exactly once.
    pub old: String,
    /// The new text.
    pub new: String,
}

/// The text of a file without and with a fault.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The text in the tree.
    pub before: String,
    /// The broken text.
    pub after: String,
}

/// The result of a fault.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// The named test failed, as required.
    Caught,
    /// The named test passed although the code was broken.
    Missed,
    /// The old text is not in the file exactly once.
    DoesNotApply(String),
    /// The broken code does not compile, which proves nothing about the test.
    DoesNotCompile(String),
    /// The arguments name no test, or name more than one.
    NotOneTest(usize),
    /// The test also fails without the fault.
    FailsUnbroken,
    /// The test did not end within two minutes.
    Hangs,
}

impl Fault {
    /// Reads all faults of a folder, in the order of their names.
    pub fn read_all(folder: &Path) -> Result<Vec<Self>, String> {
        let entries = fs::read_dir(folder).map_err(|why| format!("{}: {why}", folder.display()))?;
        let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        paths.retain(|path| path.extension().is_some_and(|ending| ending == "fault"));
        paths.sort();
        let read = |path: &PathBuf| {
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let text = fs::read_to_string(path).map_err(|why| format!("{}: {why}", path.display()))?;
            Self::parse(&name, &text)
        };
        paths.iter().map(read).collect()
    }

    /// Returns the text of each file that the fault changes, before and after, by its path below
    /// `root`. The error says which file does not contain the old text exactly once.
    pub fn apply(&self, root: &Path) -> Result<BTreeMap<&str, Change>, String> {
        let mut changes = BTreeMap::new();
        for Edit { path, old, new } in &self.edits {
            let change = changes.entry(path.as_str()).or_insert_with(|| {
                let before = fs::read_to_string(root.join(path)).unwrap_or_default();
                Change { after: before.clone(), before }
            });
            let count = if old.is_empty() { 0 } else { change.after.matches(old).count() };
            if count != 1 {
                return Err(format!("{path}: found {count} times"));
            }
            change.after = change.after.replace(old, new);
        }
        Ok(changes)
    }

    /// Parses the text of a fault. The error names the line.
    pub fn parse(name: &str, text: &str) -> Result<Self, String> {
        let mut fault = Self { name: name.to_owned(), test: Vec::new(), breaks: String::new(), edits: Vec::new() };
        let (mut path, mut part, mut old, mut new) = (String::new(), Part::Head, String::new(), String::new());
        for (at, line) in text.lines().enumerate() {
            part = match (part, line) {
                (Part::Head, "<<<<<<<") if path.is_empty() => {
                    return Err(format!("{name}:{}: no file is named", at + 1));
                }
                (Part::Head, "<<<<<<<") => Part::Old,
                (Part::Old, "=======") => Part::New,
                (Part::New, ">>>>>>>") => {
                    let (old, new) = (std::mem::take(&mut old), std::mem::take(&mut new));
                    fault.edits.push(Edit { path: path.clone(), old, new });
                    Part::Head
                }
                (Part::Head, line) => {
                    if let Some(test) = line.strip_prefix("# test:") {
                        fault.test = test.split_whitespace().map(str::to_owned).collect();
                    } else if let Some(breaks) = line.strip_prefix("# breaks:") {
                        fault.breaks = breaks.trim().to_owned();
                    } else if !line.trim().is_empty() && !line.starts_with('#') {
                        path = line.trim().to_owned();
                    }
                    Part::Head
                }
                (part, line) => {
                    let text = if part == Part::Old { &mut old } else { &mut new };
                    text.push_str(line);
                    text.push('\n');
                    part
                }
            };
        }
        match () {
            () if part != Part::Head => Err(format!("{name}: the last block has no end")),
            () if fault.test.is_empty() || fault.breaks.is_empty() => {
                Err(format!("{name}: `# test:` or `# breaks:` is missing"))
            }
            () if fault.edits.is_empty() => Err(format!("{name}: it changes nothing")),
            () => Ok(fault),
        }
    }
}

/// Options of cargo that take the next word as their value.
const WITH_VALUE: [&str; 8] =
    ["-p", "--package", "--test", "--bin", "--example", "--config", "--features", "--manifest-path"];

impl Fault {
    /// Returns the arguments that compile the test: all except its name. Faults with equal ones
    /// share a test binary.
    pub fn build(&self) -> Vec<&str> {
        let name = self.name_at();
        let words = self.test.iter().enumerate().filter(|(at, _)| Some(*at) != name);
        words.map(|(_, word)| word.as_str()).take_while(|word| *word != "--").collect()
    }

    /// Returns the filter that selects the test in its binary: a part of its path.
    pub fn filter(&self) -> &str {
        self.name_at().and_then(|at| self.test.get(at)).map_or("", String::as_str)
    }

    fn name_at(&self) -> Option<usize> {
        let words = self.test.iter().take_while(|word| *word != "--");
        let is_value = |at: usize| at > 0 && WITH_VALUE.contains(&self.test[at - 1].as_str());
        words.enumerate().filter(|(at, word)| !word.starts_with('-') && !is_value(*at)).map(|(at, _)| at).last()
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Part {
    Head,
    Old,
    New,
}
