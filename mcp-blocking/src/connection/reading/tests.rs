use super::*;
use std::io::Result;

/// A stream that is never read.
struct Silent;

impl crate::polled::ReadNow for Silent {
    fn wait(&self, _: Option<Duration>) -> Result<bool> {
        Ok(false)
    }

    fn read_now(&self) -> Result<Bytes> {
        Ok(Bytes::new())
    }

    fn wake(&self) {}

    fn is_socket(&self) -> bool {
        true
    }
}

const ON: Option<bool> = Some(true);

/// Returns a connection whose thread has just read the answer of its only follower.
fn served() -> ReadHalf {
    let mut reading = ReadHalf::default();
    reading.begin(Some(Arc::new(Silent)));
    assert_eq!(reading.look(ON, &mut None), ReadStep::Read);
    assert!(matches!(reading.enter(ON), (Wait::Follow, false)));
    reading.begin_report(Instant::ZERO);
    (reading.followers, reading.served) = (0, true);
    reading.end_report(false);
    reading
}

/// Returns one that a caller reads.
fn led() -> ReadHalf {
    let mut reading = served();
    assert!(matches!(reading.enter(ON), (Wait::Lead(_), false)));
    reading
}

// covers: B-066
#[test]
fn thread_leaves_the_stream_to_the_next_caller_for_a_while() {
    let (mut reading, mut seen) = (served(), None);
    assert_eq!(reading.look(ON, &mut seen), ReadStep::Wait(Some(OPEN)));
    assert_eq!(reading.look(ON, &mut seen), ReadStep::Read, "no caller came");
    let (mut reading, mut seen) = (served(), None);
    for _ in 0..3 {
        assert_eq!(reading.look(ON, &mut seen), ReadStep::Wait(Some(OPEN)));
        assert!(matches!(reading.enter(ON), (Wait::Lead(_), false)));
        assert!(!reading.leave(Instant::ZERO, false), "the thread is not woken for a call");
    }
}

// covers: B-066
#[test]
fn thread_reads_on_while_anybody_waits() {
    let mut reading = served();
    reading.who = Who::Thread;
    assert_eq!(reading.look(ON, &mut None), ReadStep::Read);
    reading.begin_report(Instant::ZERO);
    reading.end_report(false);
    assert_eq!(reading.look(ON, &mut None), ReadStep::Read, "what it has read was for nobody");
    for (followers, has_others) in [(1, false), (0, true)] {
        let mut reading = served();
        reading.begin_report(Instant::ZERO);
        (reading.followers, reading.served) = (followers, true);
        reading.end_report(has_others);
        assert_eq!(reading.look(ON, &mut None), ReadStep::Read);
    }
}

// covers: B-066, B-131
#[test]
fn caller_hands_the_stream_over_if_others_wait() {
    let (mut reading, mut seen) = (led(), None);
    assert_eq!(reading.look(ON, &mut seen), ReadStep::Wait(Some(OPEN)));
    assert!(matches!(reading.enter(ON), (Wait::Follow, false)));
    assert!(reading.leave(Instant::ZERO, false), "the thread is woken");
    assert_eq!(reading.look(ON, &mut seen), ReadStep::Read);
    let mut reading = led();
    assert_eq!(reading.look(ON, &mut None), ReadStep::Wait(Some(OPEN)));
    assert!(reading.leave(Instant::ZERO, true), "a caller waits elsewhere");
    assert_eq!(reading.look(ON, &mut None), ReadStep::Read);
}

// covers: B-066
#[test]
fn thread_sleeps_during_a_long_call_and_is_woken_after_it() {
    let (mut reading, mut seen) = (led(), None);
    assert_eq!(reading.look(ON, &mut seen), ReadStep::Wait(Some(OPEN)));
    assert_eq!(reading.look(ON, &mut seen), ReadStep::Wait(None));
    assert!(reading.leave(Instant::ZERO, false));
    assert_eq!(reading.look(ON, &mut seen), ReadStep::Wait(Some(OPEN)));
}

// covers: B-131, B-133
#[test]
fn caller_does_not_read_what_the_engine_does_not_accept() {
    let mut reading = served();
    assert_eq!(reading.look(ON, &mut None), ReadStep::Wait(Some(OPEN)));
    assert!(matches!(reading.enter(None), (Wait::Follow, true)), "the thread waits for it");
    assert_eq!(reading.look(None, &mut None), ReadStep::Wait(None));
    assert!(matches!(served().enter(Some(false)), (Wait::Elsewhere, false)));
    for reads in [None, Some(false)] {
        assert!(led().changed(reads, false).is_none(), "it does not wait");
        let mut reading = led();
        reading.waits = true;
        assert!(reading.changed(ON, false).is_none());
        assert!(reading.changed(reads, false).is_some(), "it is woken");
        assert!(reading.changed(reads, false).is_none(), "once");
    }
    assert_eq!(led().look(Some(false), &mut None), ReadStep::End);
}

// covers: B-143
#[test]
fn only_the_thread_reads_what_cannot_be_polled() {
    let mut reading = ReadHalf::default();
    assert_eq!(reading.look(ON, &mut None), ReadStep::Read);
    assert!(matches!(reading.enter(ON), (Wait::Follow, false)));
    reading.begin_report(Instant::ZERO);
    (reading.followers, reading.served) = (0, true);
    reading.end_report(false);
    assert_eq!(reading.look(ON, &mut None), ReadStep::Read);
}

// covers: B-048
#[test]
fn free_socket_is_looked_at_before_a_request() {
    let at = |micros| Instant::new(Duration::from_micros(micros));
    let mut reading = served();
    assert!(!reading.is_stale(at(100)) && reading.is_stale(at(101)));
    assert!(matches!(reading.enter(ON), (Wait::Lead(_), false)));
    assert!(!reading.is_stale(at(101)), "a caller reads");
    reading.leave(at(101), false);
    assert!(!reading.is_stale(at(200)) && reading.is_stale(at(202)));
    assert!(reading.changed(ON, true).is_none());
    assert!(!reading.is_stale(at(202)), "a caller will read the answer");
    let mut reading = served();
    reading.who = Who::Thread;
    assert!(!reading.is_stale(at(202)), "the thread reads");
}
