#![forbid(unsafe_code)]
//! Plants each fault of `tests/planted` in a copy of the tree and runs the test that must fail. Fails when one passes, when a fault no
//! longer applies, and when the broken code does not compile. Arguments are names of faults; none means all.

use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::{env, fs};

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
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let field = Field::new(&root, &tree()?, &target.join("planted"))?;
    let (mut passed, mut failed) = (0, 0);
    field.run(&faults, |fault, verdict, time| {
        let (count, text) = match verdict {
            Verdict::Caught => (&mut passed, "caught".to_owned()),
            Verdict::Missed => (&mut failed, "MISSED: the test passes with the fault".to_owned()),
            Verdict::DoesNotApply(why) => (&mut failed, format!("DOES NOT APPLY: {why}")),
            Verdict::DoesNotCompile(why) => (&mut failed, format!("DOES NOT COMPILE: {why}")),
            Verdict::NotOneTest(count) => (&mut failed, format!("NAMES {count} TESTS in place of one")),
            Verdict::FailsUnbroken => (&mut failed, "FAILS without the fault as well".to_owned()),
            Verdict::Hangs => (&mut failed, "HANGS: the test has no bound".to_owned()),
        };
        *count += 1;
        println!("{:<34} {:>4} s  {text}  ({})", fault.name, time.as_secs(), fault.breaks);
    })?;
    println!("planted: {passed} passed, {failed} failed");
    Ok(failed == 0 && passed > 0)
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
