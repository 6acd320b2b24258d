//! Recordings of simulated clients: they are replayed exactly, and any damage to the file is
//! detected.

use crate::sized;
use mcp_proto::record::{ReadProblem, Recording, Redaction};
use mcp_tests::sim::app::SECRET;
use mcp_tests::sim::duplex::{Scenario, Settings, Transport, World};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use std::sync::LazyLock;

/// The recordings of the clients of this number of runs, from this seed on.
fn recordings(first: u64, runs: u64, redaction: Redaction) -> Vec<Vec<u8>> {
    let mut recordings = Vec::new();
    for seed in first..first + runs {
        let mut world = World::taped(&Scenario::from_seed(seed), redaction);
        world.run();
        recordings.extend((0..world.clients.len()).map(|client| world.tape(client)));
    }
    recordings
}

fn recording(bytes: &[u8]) -> Recording {
    Recording::read(bytes).unwrap_or_else(|e| panic!("{e}"))
}

fn replays(redaction: Redaction) {
    let (mut inputs, mut outputs) = (0, 0);
    for bytes in recordings(1, sized(300), redaction) {
        let recording = recording(&bytes);
        let summary = recording.replay().unwrap_or_else(|difference| panic!("{difference}"));
        assert!(summary.complete && recording.redaction == redaction);
        inputs += summary.inputs;
        outputs += summary.outputs;
    }
    assert!(inputs > sized(15_000) && outputs > sized(5_000), "{inputs} inputs, {outputs} outputs");
}

// covers: B-283
#[test]
fn every_run_is_replayed_exactly() {
    replays(Redaction::Raw);
}

// covers: S2-44
#[test]
fn redacted_run_is_replayed_exactly() {
    replays(Redaction::Redacted);
}

// covers: S2-44
#[test]
fn only_a_raw_recording_holds_secrets() {
    let holds = |bytes: &Vec<u8>| String::from_utf8_lossy(bytes).contains(SECRET);
    assert!(!recordings(1, 30, Redaction::Redacted).iter().any(holds));
    assert!(recordings(1, 30, Redaction::Raw).iter().all(holds));
}

/// A recording under faults with some results.
fn sample() -> Vec<String> {
    let lines = |seed| {
        let scenario = Scenario::from_seed(seed);
        let settings = Settings { transport: Transport::Lines, clients: 1, ..scenario.settings };
        let mut world = World::taped(&Scenario { faults: 40, capacity: 1 << 10, settings, ..scenario }, Redaction::Raw);
        world.run();
        let text = String::from_utf8(world.tape(0)).expect("text");
        text.split_inclusive('\n').map(str::to_owned).collect::<Vec<_>>()
    };
    (1..)
        .map(lines)
        .find(|lines| lines.len() > 80 && lines.len() < 120 && lines.concat().contains("completed"))
        .expect("a long one")
}

#[test]
fn altered_output_is_reported_with_its_line() {
    let lines = sample();
    let outputs = lines.iter().enumerate().filter(|(_, line)| line.starts_with("{\"Output\""));
    for (at, _) in outputs {
        let mut lines = lines.clone();
        lines[at] = "{\"Output\":\"something else\"}\n".into();
        let difference = recording(lines.concat().as_bytes()).replay().expect_err("altered");
        assert_eq!(difference.line, at + 1, "{difference}");
        assert_eq!(difference.recorded.as_deref(), Some("{\"Output\":\"something else\"}"));
    }
}

#[test]
fn missing_or_moved_line_is_detected() {
    let lines = sample();
    assert!(lines.len() > 80, "{}", lines.len());
    for at in 1..lines.len() - 1 {
        let mut fewer = lines.clone();
        fewer.remove(at);
        let e = Recording::read(fewer.concat().as_bytes()).expect_err("a line is missing");
        assert_eq!((e.line, e.why), (fewer.len(), ReadProblem::Count));
        let mut moved = lines.clone();
        moved.swap(at, at + 1);
        // An input may come sooner or later without a consequence, but outputs have one order.
        if [at, at + 1].iter().all(|at| moved[*at].starts_with("{\"Output\"")) && moved != lines {
            let noticed = Recording::read(moved.concat().as_bytes()).map(|recording| recording.replay());
            let line = match noticed {
                Err(e) => e.line,
                Ok(Err(difference)) => difference.line,
                Ok(Ok(summary)) => panic!("line {} passes: {summary:?}\n{}{}", at + 1, moved[at], moved[at + 1]),
            };
            assert!((at + 1..=at + 3).contains(&line), "{at}: {line}");
        }
    }
}

#[test]
fn truncated_recording_is_replayed_up_to_the_cut() {
    let text = sample().concat();
    let mut whole = 0;
    // Each line end, and positions within lines: a prime apart, so that every part of a line is
    // hit.
    for end in (0..text.len()).step_by(31).chain(ends(&text)) {
        let cut = &text.as_bytes()[..end];
        match Recording::read(cut) {
            Ok(recording) => {
                assert!(cut.ends_with(b"\n"));
                let summary = recording.replay().unwrap_or_else(|difference| panic!("{difference}"));
                assert_eq!(summary.complete, end == text.len());
                whole += 1;
            }
            Err(e) if end < text.find('\n').expect("lines") => assert_eq!(e.line, 1),
            Err(e) => {
                let lines = cut.iter().filter(|byte| **byte == b'\n').count();
                assert_eq!((e.line, e.why), (lines + 1, ReadProblem::Cut));
            }
        }
    }
    assert!(whole > 50, "{whole}");
}

/// Returns the positions of the line ends.
fn ends(text: &str) -> impl Iterator<Item = usize> {
    text.match_indices('\n').map(|(at, _)| at + 1)
}

/// Reads a recording, and replays it if it is readable.
fn attempt(bytes: &[u8]) {
    if let Ok(Err(difference)) = Recording::read(bytes).map(|recording| recording.replay()) {
        assert!(difference.line > 1 && !difference.to_string().is_empty());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn any_bytes_are_a_valid_recording_or_an_error(bytes in vec(any::<u8>(), 0..512), headed in any::<bool>()) {
        let head = SAMPLE.split_inclusive(|byte| *byte == b'\n').next().filter(|_| headed);
        attempt(&[head.unwrap_or_default(), &bytes].concat());
    }

    #[test]
    fn damaged_recording_is_replayed_or_an_error(
        damage in vec((any::<Index>(), prop_oneof![any::<u8>(), b'0'..=b'9', Just(b'"')]), 1..8),
        cut in any::<Index>(),
    ) {
        let mut bytes = SAMPLE.clone();
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        attempt(&bytes);
        let (head, tail) = bytes.split_at(cut.index(bytes.len()));
        attempt(&[head, &tail[tail.len() / 2..]].concat());
    }
}

/// The sample, made once.
static SAMPLE: LazyLock<Vec<u8>> = LazyLock::new(|| sample().concat().into_bytes());
