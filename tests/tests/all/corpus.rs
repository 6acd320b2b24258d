//! The kept corpus of the fuzz targets as input of their checks, so that the checks run without a
//! fuzzer.

use mcp_proto::record::Log;
use mcp_supervisor::Supervisor;
use mcp_tests::fuzz::TARGETS;
use mcp_tests::sim::rng::Rng;
use mcp_tests::sources::root;
use std::fs;

// covers: B-281, B-116
#[test]
fn the_corpus_of_every_target_holds() {
    let mut size = 0;
    for (name, check) in TARGETS {
        let folder = root().join("fuzz/corpus").join(name);
        let entries = fs::read_dir(&folder).unwrap_or_else(|why| panic!("{}: {why}", folder.display()));
        let mut count = 0;
        for entry in entries {
            let path = entry.expect("a folder can be listed").path();
            let data = fs::read(&path).expect("a file can be read");
            println!("{}", path.display());
            check(&data);
            size += data.len();
            count += 1;
        }
        assert!(count >= 5, "{name} has {count} inputs");
    }
    assert!(size < 100 << 10, "the corpus stays small: {size} bytes");
}

/// A recording that cannot be read is refused at its first input: nothing of it is tested then.
#[test]
fn recordings_in_the_corpus_are_read_and_repeat_their_outputs() {
    for name in ["supervisor", "supervisor-never"] {
        let data = fs::read(root().join("fuzz/corpus/replay").join(name)).expect("a file can be read");
        let log = Log::<Supervisor<String>>::read(&data).unwrap_or_else(|why| panic!("{name}: {why}"));
        let summary = log.replay().unwrap_or_else(|difference| panic!("{name}: {difference}"));
        assert!(summary.complete && summary.inputs > 10, "{name}");
    }
}

// covers: B-281
#[test]
fn random_bytes_keep_the_invariants() {
    let mut rng = Rng::new(5);
    for (name, check) in TARGETS {
        println!("{name}");
        for _ in 0..200 {
            let length = rng.below(300) as usize;
            let data: Vec<u8> = (0..length).map(|_| rng.draw() as u8).collect();
            check(&data);
        }
    }
}

/// Every target has a folder, a checker here, and its invariant in the first line of its program.
#[test]
fn every_target_is_listed_with_its_invariant() {
    let folder = root().join("fuzz/fuzz_targets");
    let mut names: Vec<String> = Vec::new();
    for entry in fs::read_dir(folder).expect("the targets are there") {
        let path = entry.expect("a folder can be listed").path();
        let text = fs::read_to_string(&path).expect("a file can be read");
        let first = text.lines().next().unwrap_or_default();
        assert!(first.starts_with("// ") && first.len() > 40, "{}: {first}", path.display());
        names.push(path.file_stem().expect("a name").to_string_lossy().into_owned());
    }
    names.sort();
    assert_eq!(names, TARGETS.map(|(name, _)| name));
}
