//! Planted faults: breaks of the code, each with the test that must fail.
//!
//! A fault is a text file: a head, then for each file it changes the path and one or more blocks of what stands there and what stands
//! there instead. Blocks survive changes around them better than line numbers do.
//!
//! ```text
//! # test: -p mcp-proto --lib rpc::tests::an_id_keeps_its_type
//! # breaks: RPC-B-009, the answer echoes the id as a string
//! mcp-proto/src/rpc/write.rs
//! <<<<<<<
//! what stands there, exactly once
//! =======
//! what stands there instead
//! >>>>>>>
//! ```
//!
//! Faults are planted in a copy of the tree with its own target folder, since cargo would take artefacts of the copy for those of the tree.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How long one test may run. A test that takes longer waits without a bound, which is a fault of the test.
const TEST_TIME: Duration = Duration::from_secs(120);

/// One break and the test that must see it.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    /// The file's name without its ending.
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
    /// What stands there exactly once.
    pub old: String,
    /// What is put there.
    pub new: String,
}

/// What became of a fault.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// The named test failed, as it must.
    Caught,
    /// The named test passed although the code was broken.
    Missed,
    /// The old text is not in the file exactly once.
    DoesNotApply(String),
    /// The broken code does not compile, which proves nothing about the test.
    DoesNotCompile(String),
    /// The arguments name no test, or name more than one.
    NotOneTest(usize),
    /// The test fails without the fault as well.
    FailsUnbroken,
    /// The test did not end within two minutes.
    Hangs,
}

impl Fault {
    /// Reads the text of a fault. The error names the line.
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

#[derive(Clone, Copy, Debug, PartialEq)]
enum Part {
    Head,
    Old,
    New,
}

/// A copy of a tree in which faults are planted.
#[derive(Debug)]
pub struct Field {
    tree: PathBuf,
    target: PathBuf,
}

impl Field {
    /// Copies `files`, given relative to `from`, below `place`. Files that are there and equal stay untouched, so that a second run compiles
    /// little; files that are there and not in the list are removed.
    pub fn new(from: &Path, files: &[PathBuf], place: &Path) -> Result<Self, String> {
        let field = Self { tree: place.join("tree"), target: place.join("target") };
        let mut stale = Vec::new();
        list(&field.tree, &mut stale);
        for file in stale.iter().filter(|file| !files.iter().any(|kept| field.tree.join(kept) == **file)) {
            fs::remove_file(file).map_err(|why| format!("{}: {why}", file.display()))?;
        }
        for file in files {
            let bytes = fs::read(from.join(file)).map_err(|why| format!("{}: {why}", file.display()))?;
            let to = field.tree.join(file);
            if fs::read(&to).ok().as_ref() != Some(&bytes) {
                put(&to, &bytes)?;
            }
        }
        Ok(field)
    }

    /// Runs the tests of all `faults` in the unbroken copy, which compiles each of them once, then plants one fault after the other.
    /// `tell` hears of each verdict as soon as it stands.
    pub fn run(&self, faults: &[&Fault], mut tell: impl FnMut(&Fault, &Verdict, Duration)) -> Result<(), String> {
        let mut sound = Vec::new();
        for fault in faults {
            let began = Instant::now();
            match self.unbroken(fault)? {
                Some(verdict) => tell(fault, &verdict, began.elapsed()),
                None => sound.push(fault),
            }
        }
        for fault in sound {
            let began = Instant::now();
            let verdict = self.plant(fault)?;
            tell(fault, &verdict, began.elapsed());
        }
        Ok(())
    }

    /// `None` if the named test is one test and passes.
    fn unbroken(&self, fault: &Fault) -> Result<Option<Verdict>, String> {
        if let Err(why) = self.compile(fault)? {
            return Ok(Some(Verdict::DoesNotCompile(why)));
        }
        Ok(match self.test(fault)? {
            None => Some(Verdict::Hangs),
            Some(Counts { passed: 1, failed: 0 }) => None,
            Some(Counts { passed: 0, failed: 1 }) => Some(Verdict::FailsUnbroken),
            Some(Counts { passed, failed }) => Some(Verdict::NotOneTest(passed + failed)),
        })
    }

    /// Breaks the copy, runs the test, mends the copy.
    fn plant(&self, fault: &Fault) -> Result<Verdict, String> {
        let mut before: Vec<(PathBuf, String)> = Vec::new();
        let mut verdict = None;
        for edit in &fault.edits {
            let path = self.tree.join(&edit.path);
            let text = fs::read_to_string(&path).unwrap_or_default();
            let count = if edit.old.is_empty() { 0 } else { text.matches(&edit.old).count() };
            if count != 1 {
                verdict = Some(Verdict::DoesNotApply(format!("{}: found {count} times", edit.path)));
                break;
            }
            put(&path, text.replace(&edit.old, &edit.new).as_bytes())?;
            before.push((path, text));
        }
        let verdict = match verdict {
            Some(verdict) => Ok(verdict),
            None => self.judge(fault),
        };
        // The first text of a file that is edited twice is the one to go back to.
        for (path, text) in before.iter().rev() {
            put(path, text.as_bytes())?;
        }
        verdict
    }

    fn judge(&self, fault: &Fault) -> Result<Verdict, String> {
        if let Err(why) = self.compile(fault)? {
            return Ok(Verdict::DoesNotCompile(why));
        }
        Ok(match self.test(fault)? {
            None => Verdict::Hangs,
            Some(Counts { failed: 0, .. }) => Verdict::Missed,
            Some(_) => Verdict::Caught,
        })
    }

    /// The inner error is the compiler's.
    fn compile(&self, fault: &Fault) -> Result<Result<(), String>, String> {
        let build = fault.test.iter().take_while(|word| *word != "--");
        let output =
            self.cargo().args(build).args(["--no-run", "--quiet"]).output().map_err(|why| format!("cargo: {why}"))?;
        let error = || {
            let text = String::from_utf8_lossy(&output.stderr).into_owned();
            text.lines().find(|line| line.starts_with("error")).unwrap_or("it does not build").to_owned()
        };
        Ok(if output.status.success() { Ok(()) } else { Err(error()) })
    }

    /// What the runner counted; `None` when it had to be stopped.
    fn test(&self, fault: &Fault) -> Result<Option<Counts>, String> {
        let mut command = self.cargo();
        command.args(&fault.test).stdout(Stdio::piped()).stderr(Stdio::null());
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut child = command.spawn().map_err(|why| format!("cargo: {why}"))?;
        let mut stdout = child.stdout.take().expect("invariant: the output is piped");
        let reader = std::thread::spawn(move || {
            let mut text = Vec::new();
            // What was read before an error still counts.
            let _ = stdout.read_to_end(&mut text);
            String::from_utf8_lossy(&text).into_owned()
        });
        let end = Instant::now() + TEST_TIME;
        while child.try_wait().map_err(|why| format!("cargo: {why}"))?.is_none() {
            if Instant::now() >= end {
                stop(&child)?;
                child.wait().map_err(|why| format!("cargo: {why}"))?;
                return Ok(None);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let text = reader.join().map_err(|_| "the reader of the test's output panicked".to_owned())?;
        let status = child.wait().map_err(|why| format!("cargo: {why}"))?;
        let mut counts = Counts::of(&text);
        if !status.success() {
            // A test that takes the whole process with it is not counted.
            counts.failed = counts.failed.max(1);
        }
        Ok(Some(counts))
    }

    fn cargo(&self) -> Command {
        let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        command.arg("test").current_dir(&self.tree).env("CARGO_TARGET_DIR", &self.target).stdin(Stdio::null());
        // Each fault costs one compilation: what it is spent on is neither debugged nor thrown away.
        command.env("CARGO_INCREMENTAL", "1").env("CARGO_PROFILE_DEV_DEBUG", "0");
        command
    }
}

#[cfg(unix)]
fn stop(child: &std::process::Child) -> Result<(), String> {
    let group = rustix::process::Pid::from_child(child);
    rustix::process::kill_process_group(group, rustix::process::Signal::KILL).map_err(|why| format!("kill: {why}"))
}

#[cfg(not(unix))]
fn stop(_child: &std::process::Child) -> Result<(), String> {
    Err("a test hangs and cannot be stopped on this system".to_owned())
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Counts {
    passed: usize,
    failed: usize,
}

impl Counts {
    /// Adds up the closing lines of the runner: `test result: ok. 1 passed; 0 failed; …`.
    fn of(text: &str) -> Self {
        let number = |line: &str, word: &str| {
            let (before, _) = line.split_once(word)?;
            before.split_whitespace().next_back()?.parse::<usize>().ok()
        };
        text.lines().filter(|line| line.starts_with("test result:")).fold(Self::default(), |sum, line| Self {
            passed: sum.passed + number(line, " passed").unwrap_or(0),
            failed: sum.failed + number(line, " failed").unwrap_or(0),
        })
    }
}

fn put(path: &Path, bytes: &[u8]) -> Result<(), String> {
    let folder = path.parent().expect("invariant: a file stands in a folder");
    fs::create_dir_all(folder).and_then(|()| fs::write(path, bytes)).map_err(|why| format!("{}: {why}", path.display()))
}

fn list(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.path().is_dir() {
            list(&entry.path(), files);
        } else if entry.file_name() != "Cargo.lock" {
            files.push(entry.path());
        }
    }
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

    #[test]
    fn closing_lines_are_added_up() {
        let text = "test result: ok. 2 passed; 0 failed; 0 ignored\nnoise\ntest result: FAILED. 0 passed; 1 failed; 0 ignored\n";
        assert_eq!(Counts::of(text), Counts { passed: 2, failed: 1 });
    }
}
