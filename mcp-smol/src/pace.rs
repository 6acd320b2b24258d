//! When to read: a read that only says "would block" is a wasted system call, and so is a wait for
//! what is there already.

use crate::stream::Reader;
use crate::sync::{Mutex, locked};
use std::sync::Arc;
use std::task::{Context, Wake, Waker};

/// Decides when to read from one stream.
///
/// After a read that did not fill its buffer, there is usually nothing more. But the peer of a
/// response often sends its next request at once, and to find that with a read costs one system
/// call, where waiting for it costs seven. So one read after each write is a guess, made rarely
/// while guesses fail.
pub(crate) struct Pace {
    /// Wait before the next read.
    waits: bool,
    /// The stream will ring when there is something to read.
    is_armed: bool,
    /// The next read is a guess.
    guesses: bool,
    /// The system has said "would block" once. Before, it may not tell the end: Linux does not, for
    /// a named pipe whose writers had all gone when it was opened.
    is_told: bool,
    /// The latest guesses that failed.
    failed: u8,
    /// Writes after which not to guess.
    skips: u8,
    /// The latest guesses that succeeded.
    hits: u8,
    bell: Arc<Bell>,
}

/// Wakes a task, and knows that the reader did it: everything else that wakes the task is no reason
/// to read.
struct Bell(Mutex<Rung>);

struct Rung {
    is_rung: bool,
    task: Waker,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        let task = locked(&self.0, |rung| {
            rung.is_rung = true;
            rung.task.clone()
        });
        task.wake();
    }
}

impl Bell {
    /// Rings for this task from now on. Returns whether it has rung.
    fn answer(&self, task: &Waker) -> bool {
        let (is_rung, _before) = locked(&self.0, |rung| {
            let before = (!rung.task.will_wake(task)).then(|| std::mem::replace(&mut rung.task, task.clone()));
            (std::mem::take(&mut rung.is_rung), before)
        });
        is_rung
    }
}

impl Pace {
    /// Maximum number of guesses before a wait, during which the executor looks at all streams:
    /// otherwise it would serve those whose peers are quick, and the others would starve.
    const HITS: u8 = 64;
    /// After this many guesses that failed, the pause between guesses stays the same: 14 writes.
    const FAILED: u8 = 4;

    pub(crate) fn new() -> Self {
        let rung = Rung { is_rung: false, task: Waker::noop().clone() };
        let (waits, is_armed, guesses, is_told, failed, skips, hits) = (false, false, false, false, 0, 0, 0);
        Self { waits, is_armed, guesses, is_told, failed, skips, hits, bell: Arc::new(Bell(Mutex::new(rung))) }
    }

    /// Returns whether to read. If not, the task is woken when there is something to read.
    pub(crate) fn is_due(&mut self, reader: &Reader, task: &Waker) -> bool {
        if self.bell.answer(task) {
            (self.waits, self.is_armed, self.hits) = (false, false, 0);
        }
        if self.waits && !self.is_armed {
            let bell = self.bell();
            let poll = || reader.poll_readable(&mut Context::from_waker(&bell));
            // async-io reports the event that rang once more, whose bytes were read.
            match poll().is_ready() && poll().is_ready() {
                true => (self.waits, self.hits) = (false, 0),
                false => self.is_armed = true,
            }
        }
        !self.waits
    }

    /// Returns the waker for the next read.
    pub(crate) fn bell(&self) -> Waker {
        self.bell.clone().into()
    }

    /// Returns whether something may be left to read: nothing wakes the task for it.
    pub(crate) fn may_have_more(&self) -> bool {
        !self.waits
    }

    /// A read has returned bytes, and possibly `all` that there were.
    pub(crate) fn read(&mut self, all: bool) {
        if std::mem::take(&mut self.guesses) {
            (self.failed, self.hits) = (0, self.hits + 1);
        }
        self.waits = all && self.is_told;
    }

    /// A read would have blocked, and the bell will ring.
    pub(crate) fn blocked(&mut self) {
        if std::mem::take(&mut self.guesses) {
            self.failed = Self::FAILED.min(self.failed + 1);
            self.skips = (1 << self.failed) - 2;
        }
        (self.waits, self.is_armed, self.is_told, self.hits) = (true, true, true, 0);
    }

    /// Something was written: the peer may respond at once.
    pub(crate) fn wrote(&mut self) {
        if self.waits && self.hits < Self::HITS {
            self.guesses = self.skips == 0;
            self.waits = !self.guesses;
            self.skips = self.skips.saturating_sub(1);
        }
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Returns a pace after the first wait of a connection.
    fn told() -> Pace {
        let mut pace = Pace::new();
        pace.blocked();
        ring(&mut pace);
        pace
    }

    /// There is something to read.
    fn ring(pace: &mut Pace) {
        pace.bell().wake();
        assert!(pace.is_due(&Reader::new(smol::io::empty()), Waker::noop()));
    }

    #[test]
    fn first_reads_do_not_wait_until_one_would_block() {
        let mut pace = Pace::new();
        pace.read(true);
        assert!(pace.may_have_more());
        pace.blocked();
        assert!(!pace.may_have_more());
    }

    #[test]
    fn read_of_everything_is_followed_by_a_wait() {
        let mut pace = told();
        pace.read(false);
        assert!(pace.may_have_more());
        pace.read(true);
        assert!(!pace.may_have_more());
    }

    #[test]
    fn only_the_reader_makes_a_read_due() {
        let (mut pace, reader) = (Pace::new(), Reader::new(smol::io::empty()));
        let (first, second) = (Arc::<Count>::default(), Arc::<Count>::default());
        let (task, later) = (first.clone().into(), second.clone().into());
        assert!(pace.is_due(&reader, &task));
        pace.blocked();
        assert!(!pace.is_due(&reader, &task));
        // The task has moved to another executor.
        assert!(!pace.is_due(&reader, &later));
        pace.bell().wake();
        assert_eq!((first.0.load(Ordering::SeqCst), second.0.load(Ordering::SeqCst)), (0, 1));
        assert!(pace.is_due(&reader, &later));
    }

    /// Returns how many of these responses a guess follows, if each guess ends with `read`.
    fn guesses(responses: usize, read: fn(&mut Pace)) -> usize {
        let mut pace = told();
        let guess = |_: &usize| {
            ring(&mut pace);
            pace.read(true);
            pace.wrote();
            let guesses = pace.may_have_more();
            if guesses {
                read(&mut pace);
            }
            guesses
        };
        (0..responses).filter(guess).count()
    }

    #[test]
    fn guesses_that_fail_become_rare() {
        assert_eq!(guesses(1_000, Pace::blocked), 69);
        assert_eq!(guesses(1_000, |pace| pace.read(true)), 1_000);
    }

    #[test]
    fn guesses_that_succeed_are_interrupted_by_a_wait() {
        let mut pace = told();
        pace.read(true);
        for _ in 0..Pace::HITS {
            pace.wrote();
            assert!(pace.may_have_more());
            pace.read(true);
        }
        pace.wrote();
        assert!(!pace.may_have_more());
        ring(&mut pace);
        pace.read(true);
        pace.wrote();
        assert!(pace.may_have_more());
    }
}
