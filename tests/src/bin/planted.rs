#![forbid(unsafe_code)]
//! Plants faults of `tests/planted` in a copy of the tree, and runs the test that must fail for
//! each. Fails if a test passes, if a fault no longer applies, and if the broken code does not
//! compile.
//!
//! * `planted`: all faults. If all were caught and nothing in the tree is uncommitted,
//!   `tests/planted/PROVED` then names this commit.
//! * `planted NAME...`: those faults.
//! * `planted --gate`: faults whose patched file, test file or own file has changed since the
//!   commit of `PROVED`, then others, 12 in all, which the hash of the tree of HEAD selects.
//! * `planted --share K/N`: part K of N, counted from 1.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::sync::Mutex;
use std::time::Duration;
use std::{env, fs, thread};

use mcp_tests::planted::choose::{Choice, gate, share};
use mcp_tests::planted::field::{End, Field, Queue};
use mcp_tests::planted::{Fault, Verdict};
use mcp_tests::sources;

/// The latest commit at which all faults were caught.
const PROVED: &str = "tests/planted/PROVED";

/// The packages of this tree, which are not copied in compiled form.
const OURS: [&str; 4] = ["mcp-proto", "mcp-smol", "mcp-blocking", "mcp-tests"];

fn main() -> ExitCode {
    mcp_tests::exit_code("planted", run())
}

fn run() -> Result<bool, String> {
    let args: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let faults = Fault::read_all(&sources::root().join("tests/planted"))?;
    match words[..] {
        [] => {
            let before = clean_commit()?;
            let caught = plant(faults.iter().collect())?;
            match before {
                Some(commit) if caught && clean_commit()?.as_ref() == Some(&commit) => {
                    fs::write(sources::root().join(PROVED), format!("{commit}\n"))
                        .map_err(|why| format!("{PROVED}: {why}"))?;
                    println!("{PROVED} now names {commit}");
                }
                _ => println!("{PROVED} stays as it is"),
            }
            Ok(caught)
        }
        ["--gate"] => {
            let (changed, tree) = (changed()?, git(&["rev-parse", "HEAD^{tree}"])?.trim().to_owned());
            let exists = |path: &str| sources::root().join(path).is_file();
            let is_changed = |fault: &Fault| {
                changed.as_ref().is_none_or(|changed| fault.files(exists).iter().any(|file| changed.contains(file)))
            };
            let Choice { planted, left_out } = gate(&faults, is_changed, &tree);
            let of_changed = planted.iter().filter(|fault| is_changed(fault)).count();
            println!("{of_changed} faults of changed files, {} of others", planted.len() - of_changed);
            for fault in left_out {
                println!("left out: {}", fault.name);
            }
            plant(planted)
        }
        ["--share", share_of] => {
            let numbers = share_of.split_once('/').and_then(|(part, of)| Some((part.parse().ok()?, of.parse().ok()?)));
            let (part, of) = numbers.filter(|(part, of)| (1..=*of).contains(part)).ok_or("--share K/N")?;
            plant(share(&faults, part, of))
        }
        _ => {
            let unknown: Vec<_> = words.iter().filter(|word| faults.iter().all(|fault| fault.name != **word)).collect();
            match unknown.is_empty() {
                true => plant(faults.iter().filter(|fault| words.contains(&fault.name.as_str())).collect()),
                false => Err(format!("there is no fault {unknown:?}")),
            }
        }
    }
}

/// Plants these in two copies of the tree in parallel, since compiling a crate uses little more
/// than one core.
fn plant(faults: Vec<&Fault>) -> Result<bool, String> {
    let root = sources::root();
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let files = tree()?;
    let told = Mutex::new(Told::default());
    let tell = |fault: &Fault, verdict: &Verdict, time: Duration| {
        told.lock().expect("invariant: no thread panics under the lock").tell(fault, verdict, time);
    };
    let queue = Queue::new(faults);
    let work = |place: &str, end: End| {
        let field = Field::new(&root, &files, &target.join("planted").join(place))?;
        field.take_over(&target, &OURS)?;
        field.run(&queue, end, tell)
    };
    thread::scope(|scope| {
        let front = scope.spawn(|| work("front", End::Front));
        work("back", End::Back)?;
        front.join().unwrap_or_else(|_| Err("one half panicked".to_owned()))
    })?;
    let Told { caught, others } = told.into_inner().expect("invariant: no thread panics under the lock");
    for line in &others {
        println!("{line}");
    }
    println!("planted: {caught} passed, {} failed", others.len());
    Ok(others.is_empty() && caught > 0)
}

/// The output so far.
#[derive(Default)]
struct Told {
    caught: usize,
    /// Lines of faults that were not caught. They are repeated at the end of a long log.
    others: Vec<String>,
}

impl Told {
    fn tell(&mut self, fault: &Fault, verdict: &Verdict, time: Duration) {
        let text = match verdict {
            Verdict::Caught => "caught".to_owned(),
            Verdict::Missed => "MISSED: the test passes with the fault".to_owned(),
            Verdict::DoesNotApply(why) => format!("DOES NOT APPLY: {why}"),
            Verdict::DoesNotCompile(why) => format!("DOES NOT COMPILE: {why}"),
            Verdict::NotOneTest(count) => format!("NAMES {count} TESTS in place of one"),
            Verdict::FailsUnbroken => "FAILS without the fault as well".to_owned(),
            Verdict::Hangs => "HANGS: the test has no bound".to_owned(),
        };
        let line = format!("{:<34} {:>4} s  {text}  ({})", fault.name, time.as_secs(), fault.breaks);
        println!("{line}");
        match verdict {
            Verdict::Caught => self.caught += 1,
            _ => self.others.push(line),
        }
    }
}

/// Returns the output of git.
fn git(args: &[&str]) -> Result<String, String> {
    let output =
        Command::new("git").current_dir(sources::root()).args(args).output().map_err(|why| format!("git: {why}"))?;
    match output.status.success() {
        true => String::from_utf8(output.stdout).map_err(|why| format!("git: {why}")),
        false => Err(format!("git: {}", String::from_utf8_lossy(&output.stderr))),
    }
}

/// Returns the current commit. `None` if something is not committed.
fn clean_commit() -> Result<Option<String>, String> {
    let clean = git(&["status", "--porcelain"])?.is_empty();
    Ok(clean.then_some(git(&["rev-parse", "HEAD"])?.trim().to_owned()))
}

/// Returns the files that differ from the commit of `PROVED`. `None` if that commit does not exist
/// here.
fn changed() -> Result<Option<BTreeSet<String>>, String> {
    let commit = fs::read_to_string(sources::root().join(PROVED)).unwrap_or_default();
    let commit = format!("{}^{{commit}}", commit.trim());
    let Ok(commit) = git(&["rev-parse", "--verify", "--quiet", &commit]) else {
        println!("{PROVED} names no commit that is known here: every file counts as changed");
        return Ok(None);
    };
    let differing = git(&["diff", "--name-only", "-z", commit.trim()])?;
    let new = git(&["ls-files", "-z", "--others", "--exclude-standard"])?;
    Ok(Some(differing.split('\0').chain(new.split('\0')).map(str::to_owned).collect()))
}

/// Returns the files that git knows, with uncommitted changes, and the lock file, which git
/// ignores.
fn tree() -> Result<Vec<PathBuf>, String> {
    let root = sources::root();
    let names = git(&["ls-files", "-z", "--cached", "--others", "--exclude-standard"])?;
    let names = names.split('\0').filter(|name| !name.is_empty()).chain(["Cargo.lock"]);
    Ok(names.map(PathBuf::from).filter(|path| root.join(path).is_file()).collect())
}
