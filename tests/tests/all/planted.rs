//! Tests the program that plants faults on a crate of a few lines: each verdict once.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{fs, str};

use mcp_tests::planted::field::{End, Field, Queue};
use mcp_tests::planted::{Fault, Verdict};
use mcp_tests::sources;

const MANIFEST: &str = "[package]\nname = \"grain\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[workspace]\n";
const CODE: &str = "\
pub fn twice(n: u32) -> u32 {
    n * 2
}

#[test]
fn doubles() {
    assert_eq!(twice(3), 6);
}

#[test]
fn does_nothing() {}

#[test]
fn fails() {
    assert_eq!(twice(1), 1);
}
";

fn fault(name: &str, test: &str, old: &str, new: &str) -> Fault {
    let text = format!("# test: {test}\n# breaks: {name}\nsrc/lib.rs\n<<<<<<<\n{old}\n=======\n{new}\n>>>>>>>\n");
    Fault::parse(name, &text).expect("the fault is well formed")
}

#[test]
fn verdicts_are_distinguished() {
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join("planted");
    let from = place.join("from");
    fs::create_dir_all(from.join("src")).unwrap();
    fs::write(from.join("Cargo.toml"), MANIFEST).unwrap();
    fs::write(from.join("src/lib.rs"), CODE).unwrap();
    let files: Vec<PathBuf> = ["Cargo.toml", "src/lib.rs"].map(PathBuf::from).to_vec();
    let field = Field::new(&from, &files, &place).unwrap();

    let faults = [
        fault("caught", "--offline doubles", "    n * 2", "    n * 3"),
        fault("missed", "--offline does_nothing", "    n * 2", "    n * 3"),
        fault("gone", "--offline doubles", "    n * 4", "    n * 3"),
        fault("type", "--offline doubles", "    n * 2", "    \"n\""),
        fault("none", "--offline nowhere", "    n * 2", "    n * 3"),
        fault("two", "--offline do", "    n * 2", "    n * 3"),
        fault("unbroken", "--offline fails", "    n * 2", "    n * 3"),
    ];
    let mut verdicts = Vec::new();
    field
        .run(&Queue::new(faults.iter().collect()), End::Back, |fault, verdict, _| {
            verdicts.push((fault.name.clone(), verdict.clone()))
        })
        .unwrap();

    assert_eq!(verdicts.len(), faults.len(), "each fault has one verdict");
    for (name, verdict) in &verdicts {
        let kind = match verdict {
            Verdict::Caught => "caught",
            Verdict::Missed => "missed",
            Verdict::DoesNotApply(_) => "gone",
            Verdict::DoesNotCompile(_) => "type",
            Verdict::NotOneTest(0) => "none",
            Verdict::NotOneTest(_) => "two",
            Verdict::FailsUnbroken => "unbroken",
            Verdict::Hangs => "hangs",
        };
        assert_eq!(name, kind);
    }
    let tree = fs::read(place.join("tree/src/lib.rs")).unwrap();
    assert_eq!(str::from_utf8(&tree), Ok(CODE), "every fault is taken out again");
}

/// A change of the code that moves or rewords a patched line must also change the fault.
#[test]
fn kept_faults_apply_to_the_tree() {
    let faults = Fault::read_all(&sources::root().join("tests/planted")).unwrap();
    assert!((100..=150).contains(&faults.len()), "{} faults", faults.len());
    let broken: Vec<_> =
        faults.iter().filter_map(|fault| Some((&fault.name, fault.apply(&sources::root()).err()?))).collect();
    assert!(broken.is_empty(), "{broken:#?}");
}

/// A fault whose test has another name now proves nothing, and is found only when it is planted.
#[test]
fn kept_faults_name_existing_tests() {
    let folders = ["mcp-proto", "mcp-smol", "mcp-blocking", "tests"];
    let sources = folders.map(|folder| sources::files(&sources::root(), folder, ".rs"));
    let texts = sources.iter().flatten().flat_map(|(_, text)| text.split("fn ").skip(1));
    let functions: BTreeSet<&str> =
        texts.map(|rest| rest.split(|c: char| c != '_' && !c.is_ascii_alphanumeric()).next().unwrap_or("")).collect();
    let faults = Fault::read_all(&sources::root().join("tests/planted")).unwrap();
    let missing: Vec<_> = faults
        .iter()
        .filter(|fault| {
            let name = fault.filter().rsplit("::").next().unwrap_or("");
            // A binary of one test needs no name.
            !fault.filter().is_empty() && (name.is_empty() || !functions.contains(name))
        })
        .map(|fault| &fault.name)
        .collect();
    assert!(missing.is_empty(), "{missing:#?}");
}
