#![forbid(unsafe_code)]
//! Plants each fault of `tests/planted` in a copy of the tree and runs the test that must fail. Fails when one passes, when a fault no
//! longer applies, and when the broken code does not compile. Arguments are names of faults; none means all.

use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::sync::Mutex;
use std::time::Duration;
use std::{env, fs, thread};

use mcp_tests::planted::{Fault, Field, Verdict};
use mcp_tests::sources;

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(why) => {
            eprintln!("planted: {why}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<bool, String> {
    let root = sources::root();
    let only: Vec<String> = env::args().skip(1).collect();
    let mut faults = faults(&root.join("tests/planted"))?;
    faults.retain(|fault| only.is_empty() || only.contains(&fault.name));
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from).join("planted");
    let files = tree()?;
    // Compiling a crate keeps little more than one core busy, so two copies of the tree are worked on side by side. The core's own tests
    // are about half of the work, and the copy that they run in never compiles what stands on the core.
    let (core, rest): (Vec<&Fault>, Vec<&Fault>) =
        faults.iter().partition(|fault| fault.test.iter().any(|word| word == "mcp-proto"));
    let told = Mutex::new(Told::default());
    let tell = |fault: &Fault, verdict: &Verdict, time: Duration| {
        told.lock().expect("invariant: nobody panics while telling").tell(fault, verdict, time);
    };
    let work = |place: &str, faults: &[&Fault]| Field::new(&root, &files, &target.join(place))?.run(faults, tell);
    thread::scope(|scope| {
        let core = scope.spawn(|| work("core", &core));
        work("rest", &rest)?;
        core.join().unwrap_or_else(|_| Err("the core's half panicked".to_owned()))
    })?;
    let Told { caught, others } = told.into_inner().expect("invariant: nobody panics while telling");
    for line in &others {
        println!("{line}");
    }
    println!("planted: {caught} passed, {} failed", others.len());
    Ok(others.is_empty() && caught > 0)
}

/// What was said so far.
#[derive(Default)]
struct Told {
    caught: usize,
    /// Lines of faults that were not caught. They are said again at the end, where a reader of a long log finds them.
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

fn faults(folder: &std::path::Path) -> Result<Vec<Fault>, String> {
    let entries = fs::read_dir(folder).map_err(|why| format!("{}: {why}", folder.display()))?;
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "fault"));
    paths.sort();
    let read = |path: &PathBuf| {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let text = fs::read_to_string(path).map_err(|why| format!("{}: {why}", path.display()))?;
        Fault::parse(&name, &text)
    };
    paths.iter().map(read).collect()
}

/// What git knows of the tree, changes not committed yet included.
fn tree() -> Result<Vec<PathBuf>, String> {
    let root = sources::root();
    let mut command = Command::new("git");
    command.current_dir(&root).args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
    let output = command.output().map_err(|why| format!("git: {why}"))?;
    if !output.status.success() {
        return Err(format!("git: {}", String::from_utf8_lossy(&output.stderr)));
    }
    let names = String::from_utf8(output.stdout).map_err(|why| format!("git: {why}"))?;
    Ok(names
        .split('\0')
        .filter(|name| !name.is_empty())
        .map(PathBuf::from)
        .filter(|path| root.join(path).is_file())
        .collect())
}
