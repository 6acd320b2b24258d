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

    /// Returns whether its test is compiled in a separate configuration, which shares nothing with
    /// others.
    pub fn is_apart(&self) -> bool {
        self.test.iter().any(|word| word == "--config")
    }

    /// Returns the filter that selects the test in its binary: a part of its path.
    pub fn filter(&self) -> &str {
        self.name_at().and_then(|at| self.test.get(at)).map_or("", String::as_str)
    }

    /// Returns the value of an option.
    fn option(&self, names: &[&str]) -> Option<&str> {
        self.test.windows(2).find(|pair| names.contains(&pair[0].as_str())).map(|pair| pair[1].as_str())
    }

    fn name_at(&self) -> Option<usize> {
        let words = self.test.iter().take_while(|word| *word != "--");
        let is_value = |at: usize| at > 0 && WITH_VALUE.contains(&self.test[at - 1].as_str());
        words.enumerate().filter(|(at, word)| !word.starts_with('-') && !is_value(*at)).map(|(at, _)| at).last()
    }

    /// Returns the files that can change the result: those that it patches, the one of its test,
    /// and its own.
    pub fn files(&self, exists: impl Fn(&str) -> bool) -> Vec<String> {
        let own = format!("tests/planted/{}.fault", self.name);
        self.edits.iter().map(|edit| edit.path.clone()).chain(self.test_file(exists)).chain([own]).collect()
    }

    /// Returns the file of the test: the innermost existing file of the modules in its path.
    fn test_file(&self, exists: impl Fn(&str) -> bool) -> Option<String> {
        let package = self.option(&["-p", "--package"])?;
        let folder = if package == "mcp-tests" { "tests" } else { package };
        let (mut file, mut below) = match self.option(&["--test"]) {
            None => (format!("{folder}/src/lib.rs"), format!("{folder}/src")),
            Some(test) => {
                let (alone, within) = (format!("{folder}/tests/{test}.rs"), format!("{folder}/tests/{test}"));
                match exists(&alone) {
                    true => (alone, format!("{folder}/tests")),
                    false => (format!("{within}/main.rs"), within),
                }
            }
        };
        let modules = self.filter().rsplit_once("::").map_or("", |(modules, _)| modules);
        for module in modules.split("::").filter(|module| !module.is_empty()) {
            below = format!("{below}/{module}");
            match [format!("{below}.rs"), format!("{below}/mod.rs")].into_iter().find(|path| exists(path)) {
                Some(found) => file = found,
                // The other segments are in this file.
                None => break,
            }
        }
        Some(file)
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Part {
    Head,
    Old,
    New,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_is_read() {
        let text = "# test: -p a --lib b -- --exact\n# breaks: B-044, a word\n\na.rs\n<<<<<<<\nold\n=======\n>>>>>>>\n<<<<<<<\n\nx\n=======\ny\n>>>>>>>\n";
        let fault = Fault::parse("n", text).unwrap();
        assert_eq!(fault.test, ["-p", "a", "--lib", "b", "--", "--exact"]);
        let edit = |old: &str, new: &str| Edit { path: "a.rs".into(), old: old.into(), new: new.into() };
        assert_eq!(fault.edits, [edit("old\n", ""), edit("\nx\n", "y\n")]);
    }

    #[test]
    fn an_incomplete_fault_is_refused() {
        let head = "# test: b\n# breaks: c\n";
        for text in ["", head, "# test: b\na.rs\n<<<<<<<\n=======\n>>>>>>>\n"] {
            assert!(Fault::parse("n", text).is_err());
        }
        assert!(Fault::parse("n", &format!("{head}<<<<<<<\n")).is_err());
        assert!(Fault::parse("n", &format!("{head}a.rs\n<<<<<<<\nold\n")).is_err());
    }

    fn fault(test: &str) -> Fault {
        Fault::parse("n", &format!("# test: {test}\n# breaks: b\na.rs\n<<<<<<<\nold\n=======\n>>>>>>>\n")).unwrap()
    }

    #[test]
    fn test_name_is_separated_from_the_options() {
        let plain = fault("-p mcp-proto --lib rpc::tests::x");
        assert_eq!((plain.build(), plain.filter()), (vec!["-p", "mcp-proto", "--lib"], "rpc::tests::x"));
        let model = fault("--release --config build.rustflags=\"--cfg=x\" -p a --lib t::y -- --exact");
        let build = ["--release", "--config", "build.rustflags=\"--cfg=x\"", "-p", "a", "--lib"];
        assert_eq!((model.build(), model.filter()), (build.to_vec(), "t::y"));
        assert_eq!(fault("-p mcp-tests --test web").filter(), "");
    }

    #[test]
    fn the_file_of_a_test_is_that_of_its_innermost_module() {
        let tree = [
            "mcp-proto/src/rpc/mod.rs",
            "mcp-proto/src/rpc/tests.rs",
            "tests/tests/web.rs",
            "tests/tests/suite/mod.rs",
            "tests/tests/suite/unix.rs",
            "tests/tests/own/unix.rs",
        ];
        let of = |test| fault(test).test_file(|path| tree.contains(&path)).unwrap();
        assert_eq!(of("-p mcp-proto --lib rpc::tests::x"), "mcp-proto/src/rpc/tests.rs");
        assert_eq!(of("-p mcp-proto --lib rpc::inner::x"), "mcp-proto/src/rpc/mod.rs");
        assert_eq!(of("-p mcp-proto --lib x"), "mcp-proto/src/lib.rs");
        assert_eq!(of("-p mcp-tests --test web x"), "tests/tests/web.rs");
        assert_eq!(of("-p mcp-tests --test web suite::unix::x"), "tests/tests/suite/unix.rs");
        assert_eq!(of("-p mcp-tests --test own unix::x"), "tests/tests/own/unix.rs");
        assert_eq!(of("-p mcp-tests --test own x"), "tests/tests/own/main.rs");
        let files = fault("-p mcp-tests --test web x").files(|path| tree.contains(&path));
        assert_eq!(files, ["a.rs", "tests/tests/web.rs", "tests/planted/n.fault"]);
    }
}
