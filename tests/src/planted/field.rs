//! A copy of a tree in which faults are planted.
//!
//! It has its own target directory, since cargo would confuse artefacts of the copy with those of
//! the tree. Each fault needs one compilation and one run of one test, so everything else must be
//! cheap: the tests of all faults that share a test binary run once, together, before the first
//! fault is planted; test binaries run without cargo; and dependencies are copied in compiled form.

use super::{Fault, Verdict};
use serde_json::Value;
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Maximum time of one test. A test that takes longer waits without a limit, which is a fault of
/// the test.
const TEST_TIME: Duration = Duration::from_secs(120);

/// The faults of a run. Two copies of the tree take them from both ends until they meet, so that
/// neither compiles much of what the other compiles.
#[derive(Debug)]
pub struct Queue<'a> {
    all: Vec<&'a Fault>,
    waiting: Mutex<VecDeque<&'a Fault>>,
}

/// An end of a [`Queue`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// From the first one.
    Front,
    /// From the last one, backwards.
    Back,
}

impl<'a> Queue<'a> {
    /// Creates a queue of these faults. Those that share a test binary or a patched file are
    /// adjacent.
    pub fn new(mut faults: Vec<&'a Fault>) -> Self {
        faults.sort_by_key(|fault| (fault.build(), fault.edits.first().map(|edit| edit.path.clone())));
        Self { waiting: Mutex::new(faults.iter().copied().collect()), all: faults }
    }

    fn take(&self, end: End) -> Option<&'a Fault> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        match end {
            End::Front => waiting.pop_front(),
            End::Back => waiting.pop_back(),
        }
    }
}

/// A copy of a tree.
#[derive(Debug)]
pub struct Field {
    tree: PathBuf,
    target: PathBuf,
    /// The results without a fault, by the arguments that build the test binary.
    sound: RefCell<BTreeMap<Vec<String>, Sound>>,
}

/// The path of each fault's test by the name of the fault, or why the fault cannot be planted.
type Sound = BTreeMap<String, Result<String, Verdict>>;

impl Field {
    /// Copies `files`, which are relative to `from`, below `place`. Equal files stay untouched, so
    /// that a second run compiles little. Files that are not listed are removed.
    pub fn new(from: &Path, files: &[PathBuf], place: &Path) -> Result<Self, String> {
        let field = Self { tree: place.join("tree"), target: place.join("target"), sound: RefCell::default() };
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

    /// Copies the compiled dependencies of a target directory, which are all packages except
    /// `ours`, unless this copy has compiled something before. Cargo recompiles what it cannot use.
    pub fn take_over(&self, from: &Path, ours: &[&str]) -> Result<(), String> {
        let (from, to) = (from.join("debug"), self.target.join("debug"));
        if to.exists() {
            return Ok(());
        }
        let told = |why: io::Error| format!("{}: {why}", to.display());
        let others = |name: &str| {
            let package = name.rsplit_once('-').map_or(name, |(package, _)| package);
            !ours.contains(&package)
        };
        let mut hashes = Vec::new();
        for folder in [".fingerprint", "build"] {
            for entry in fs::read_dir(from.join(folder)).into_iter().flatten().flatten() {
                let name = entry.file_name().to_string_lossy().into_owned();
                if others(&name) {
                    copy(&entry.path(), &to.join(folder).join(&name)).map_err(told)?;
                    hashes.extend(name.rsplit_once('-').map(|(_, hash)| hash.to_owned()));
                }
            }
        }
        for entry in fs::read_dir(from.join("deps")).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let stem = name.split('.').next().unwrap_or_default();
            if stem.rsplit_once('-').is_some_and(|(_, hash)| hashes.iter().any(|known| known == hash)) {
                copy(&entry.path(), &to.join("deps").join(&name)).map_err(told)?;
            }
        }
        Ok(())
    }

    /// Plants the faults of a queue one after the other, from one of its ends. `tell` receives each
    /// result at once.
    pub fn run(
        &self,
        queue: &Queue<'_>,
        end: End,
        mut tell: impl FnMut(&Fault, &Verdict, Duration),
    ) -> Result<(), String> {
        while let Some(fault) = queue.take(end) {
            let began = Instant::now();
            let verdict = match self.sound(fault, &queue.all)? {
                Ok(test) => self.plant(fault, &test)?,
                Err(verdict) => verdict,
            };
            tell(fault, &verdict, began.elapsed());
        }
        Ok(())
    }

    /// Returns the path of a fault's test, which must be a single test that passes in the unbroken
    /// copy.
    fn sound(&self, fault: &Fault, all: &[&Fault]) -> Result<Result<String, Verdict>, String> {
        let build: Vec<String> = fault.build().into_iter().map(str::to_owned).collect();
        let mut sound = self.sound.borrow_mut();
        if !sound.contains_key(&build) {
            let group: Vec<&Fault> = all.iter().copied().filter(|other| other.build() == build).collect();
            sound.insert(build.clone(), self.unbroken(&group)?);
        }
        let group = sound.get(&build).expect("invariant: just inserted");
        Ok(group.get(&fault.name).cloned().expect("invariant: a fault is of its own group"))
    }

    /// Compiles the unbroken copy and runs the tests of all faults that share a test binary.
    fn unbroken(&self, group: &[&Fault]) -> Result<Sound, String> {
        let binary = match self.compile(group[0])? {
            Ok(binary) => binary,
            Err(why) => {
                let verdict = |fault: &&Fault| (fault.name.clone(), Err(Verdict::DoesNotCompile(why.clone())));
                return Ok(group.iter().map(verdict).collect());
            }
        };
        let tests = binary.list()?;
        let named = |fault: &Fault| {
            let exact = fault.test.iter().any(|word| word == "--exact");
            let fits = |test: &&String| if exact { *test == fault.filter() } else { test.contains(fault.filter()) };
            let mut fitting = tests.iter().filter(fits);
            match (fitting.next(), fitting.count()) {
                (Some(test), 0) => Ok(test.clone()),
                (first, others) => Err(Verdict::NotOneTest(usize::from(first.is_some()) + others)),
            }
        };
        let mut named: Sound = group.iter().map(|fault| (fault.name.clone(), named(fault))).collect();
        let mut wanted: Vec<String> = named.values().flatten().cloned().collect();
        wanted.sort();
        wanted.dedup();
        if binary.run(&wanted, group[0])? != Some(Counts { passed: wanted.len(), failed: 0 }) {
            // One by one, to find the failing one.
            for fault in group {
                let Some(Ok(test)) = named.get(&fault.name) else { continue };
                let verdict = match binary.run(std::slice::from_ref(test), fault)? {
                    None => Verdict::Hangs,
                    Some(Counts { passed: 1, failed: 0 }) => continue,
                    Some(_) => Verdict::FailsUnbroken,
                };
                named.insert(fault.name.clone(), Err(verdict));
            }
        }
        Ok(named)
    }

    /// Breaks the copy, runs the test, and restores the copy.
    fn plant(&self, fault: &Fault, test: &str) -> Result<Verdict, String> {
        let changes = match fault.apply(&self.tree) {
            Ok(changes) => changes,
            Err(why) => return Ok(Verdict::DoesNotApply(why)),
        };
        for (path, change) in &changes {
            put(&self.tree.join(path), change.after.as_bytes())?;
        }
        let verdict = self.judge(fault, test);
        for (path, change) in &changes {
            put(&self.tree.join(path), change.before.as_bytes())?;
        }
        verdict
    }

    fn judge(&self, fault: &Fault, test: &str) -> Result<Verdict, String> {
        let binary = match self.compile(fault)? {
            Ok(binary) => binary,
            Err(why) => return Ok(Verdict::DoesNotCompile(why)),
        };
        Ok(match binary.run(&[test.to_owned()], fault)? {
            None => Verdict::Hangs,
            Some(Counts { failed: 0, passed: 0 }) => Verdict::NotOneTest(0),
            Some(Counts { failed: 0, .. }) => Verdict::Missed,
            Some(_) => Verdict::Caught,
        })
    }

    /// Returns the test binary of a fault. The inner error is the compiler's.
    fn compile(&self, fault: &Fault) -> Result<Result<Binary, String>, String> {
        let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        command.arg("test").args(fault.build()).args([
            "--no-run",
            "--quiet",
            "--message-format=json-render-diagnostics",
        ]);
        command.current_dir(&self.tree).env("CARGO_TARGET_DIR", &self.target).stdin(Stdio::null());
        // Each fault needs one compilation, of a binary that is neither debugged nor kept.
        command.env("CARGO_INCREMENTAL", "1").env("CARGO_PROFILE_DEV_DEBUG", "0");
        let output = command.output().map_err(|why| format!("cargo: {why}"))?;
        if !output.status.success() {
            let text = String::from_utf8_lossy(&output.stderr).into_owned();
            return Ok(Err(text
                .lines()
                .find(|line| line.starts_with("error"))
                .unwrap_or("it does not build")
                .to_owned()));
        }
        let artefacts = String::from_utf8_lossy(&output.stdout).into_owned();
        let mut tests = artefacts.lines().filter_map(|line| {
            let artefact: Value = serde_json::from_str(line).ok()?;
            let test = artefact.pointer("/profile/test")?.as_bool()?;
            let (program, manifest) = (artefact["executable"].as_str()?, artefact["manifest_path"].as_str()?);
            test.then(|| Binary { program: program.into(), folder: Path::new(manifest).with_file_name("") })
        });
        match (tests.next(), tests.count()) {
            (Some(binary), 0) => Ok(Ok(binary)),
            (None, _) => Ok(Err("no test binary is built".to_owned())),
            (_, more) => Ok(Err(format!("{} test binaries are built in place of one", more + 1))),
        }
    }
}

/// A compiled test binary.
struct Binary {
    program: PathBuf,
    /// The directory of its package, where cargo would run it.
    folder: PathBuf,
}

impl Binary {
    /// Returns the paths of all tests in it.
    fn list(&self) -> Result<Vec<String>, String> {
        let output =
            self.command().args(["--list", "--format", "terse"]).output().map_err(|why| format!("test: {why}"))?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        Ok(text.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect())
    }

    /// Returns the test runner's counts for these tests. `None` if it had to be killed.
    fn run(&self, tests: &[String], fault: &Fault) -> Result<Option<Counts>, String> {
        let mut command = self.command();
        command.args(tests).arg("--exact").stdout(Stdio::piped()).stderr(Stdio::null());
        // The variables that `--config env.NAME="VALUE"` sets.
        for (name, value) in fault.test.iter().filter_map(|word| word.strip_prefix("env.")?.split_once('=')) {
            command.env(name, value.trim_matches('"'));
        }
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut child = command.spawn().map_err(|why| format!("test: {why}"))?;
        let mut stdout = child.stdout.take().expect("invariant: the output is piped");
        let reader = thread::spawn(move || {
            let mut text = Vec::new();
            // Output before an error still counts.
            let _ = stdout.read_to_end(&mut text);
            String::from_utf8_lossy(&text).into_owned()
        });
        let end = Instant::now() + TEST_TIME;
        while child.try_wait().map_err(|why| format!("test: {why}"))?.is_none() {
            if Instant::now() >= end {
                stop(&child)?;
                child.wait().map_err(|why| format!("test: {why}"))?;
                return Ok(None);
            }
            thread::sleep(Duration::from_millis(5));
        }
        let text = reader.join().map_err(|_| "the reader of the test's output panicked".to_owned())?;
        let status = child.wait().map_err(|why| format!("test: {why}"))?;
        let mut counts = Counts::of(&text);
        if !status.success() {
            // A test that ends the whole process is not counted.
            counts.failed = counts.failed.max(1);
        }
        Ok(Some(counts))
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.current_dir(&self.folder).env("CARGO_MANIFEST_DIR", &self.folder).stdin(Stdio::null());
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

/// The numbers of tests of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Counts {
    /// Those that passed.
    pub passed: usize,
    /// Those that failed.
    pub failed: usize,
}

impl Counts {
    /// Adds up the last lines of the test runner: `test result: ok. 1 passed; 0 failed; …`.
    pub fn of(text: &str) -> Self {
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
    let folder = path.parent().expect("invariant: a file is in a folder");
    fs::create_dir_all(folder).and_then(|()| fs::write(path, bytes)).map_err(|why| format!("{}: {why}", path.display()))
}

/// Copies a file or a directory, with the modification times that cargo checks.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    if from.is_dir() {
        fs::create_dir_all(to)?;
        return fs::read_dir(from)?.try_for_each(|entry| {
            let entry = entry?;
            copy(&entry.path(), &to.join(entry.file_name()))
        });
    }
    to.parent().map_or(Ok(()), fs::create_dir_all)?;
    fs::copy(from, to)?;
    File::options().write(true).open(to)?.set_modified(fs::metadata(from)?.modified()?)
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
