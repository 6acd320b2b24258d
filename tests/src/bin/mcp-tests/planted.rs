//! Plants faults of `tests/planted` in a copy of the tree, and runs the test that must fail for
//! each. Fails if a test passes, if a fault no longer applies, and if the broken code does not
//! compile.
//!
//! * `planted`: all faults.
//! * `planted NAME...`: those faults.
//! * `planted --share K/N`: part K of N, counted from 1.

use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::sync::Mutex;
use std::time::Duration;
use std::{env, thread};

use mcp_tests::planted::choose::share;
use mcp_tests::planted::field::{End, Field, Queue};
use mcp_tests::planted::{Fault, Verdict};
use mcp_tests::sources;

/// The packages of this tree, which are not copied in compiled form.
const OURS: [&str; 6] = ["mcp-proto", "mcp-driver", "mcp-supervisor", "mcp-smol", "mcp-blocking", "mcp-tests"];

pub(crate) fn main(args: Vec<String>) -> ExitCode {
    mcp_tests::exit_code("planted", run(&args))
}

fn run(args: &[String]) -> Result<bool, String> {
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let faults = Fault::read_all(&sources::root().join("tests/planted"))?;
    match words[..] {
        [] => plant(faults.iter().collect()),
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

/// Returns the files that git knows, with uncommitted changes, and the lock file, which git
/// ignores.
fn tree() -> Result<Vec<PathBuf>, String> {
    let root = sources::root();
    let names = git(&["ls-files", "-z", "--cached", "--others", "--exclude-standard"])?;
    let names = names.split('\0').filter(|name| !name.is_empty()).chain(["Cargo.lock"]);
    Ok(names.map(PathBuf::from).filter(|path| root.join(path).is_file()).collect())
}
