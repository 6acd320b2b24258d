//! When the rest of a broken event stream is asked for (2025-11-25 transports, resumability; the `retry` field of WHATWG HTML section 9.2).
//! Arithmetic only: no timer, no exchange.

use super::Resume;
use core::time::Duration;

/// What came of a stream, or of an attempt to go on with it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(super) enum Came {
    #[default]
    Nothing,
    /// A new event id, or a sign of life where that counts.
    Advance,
    Message,
}

/// A listener or a subscription that was open for so long has advanced, even if the server said nothing.
pub(super) const LONG: Duration = Duration::from_secs(10);

/// The longest wait that advancing attempts lead to, if the server does not name a longer one; and the wait after which a listener that was
/// given up is tried again.
const CEILING: Duration = Duration::from_secs(30);

/// What a server can make a wait: a shorter one would be a loop, a longer one for ever.
const SHORTEST: Duration = Duration::from_millis(10);
const LONGEST: Duration = Duration::from_secs(300);

/// The attempts of one stream.
#[derive(Clone, Debug)]
pub(super) struct Backoff {
    retry: Duration,
    /// Attempts since a message last came.
    attempts: u32,
    /// Attempts in a row of which nothing came.
    empty: u32,
    /// Attempts since a message last came that advanced.
    advanced: u32,
}

impl Default for Backoff {
    fn default() -> Self {
        Self { retry: Duration::from_secs(1), attempts: 0, empty: 0, advanced: 0 }
    }
}

impl Backoff {
    /// The server named a wait.
    #[cfg(feature = "http")]
    pub(super) fn set_retry(&mut self, retry: Duration) {
        self.retry = clamp(retry);
    }

    /// The stream, or the latest attempt, has ended: the number of the next attempt and the wait before it, `None` if there is to be none.
    /// `at_least` is what a response said of it, `random` any number.
    pub(super) fn next(
        &mut self,
        policy: Resume,
        came: Came,
        at_least: Option<Duration>,
        random: u64,
    ) -> Option<(u32, Duration)> {
        match came {
            Came::Message => *self = Self { retry: self.retry, ..Self::default() },
            // The stream itself is no attempt.
            _ if self.attempts == 0 => {}
            Came::Advance => (self.advanced, self.empty) = (self.advanced.saturating_add(1), 0),
            Came::Nothing => self.empty += 1,
        }
        let goes_on = match policy {
            Resume::Progress => self.empty < 2,
            Resume::Strict(most) => self.attempts < most,
            Resume::Never => false,
        };
        if !goes_on {
            return None;
        }
        let wait = match policy {
            Resume::Progress => {
                let wait = self.retry.saturating_mul(1 << self.advanced.min(15)).min(self.ceiling());
                let jitter = Duration::from_millis(random % (wait.as_millis() as u64 / 10 + 1));
                // Many clients of a server that has restarted do not come at once.
                (wait + jitter).min(self.ceiling())
            }
            Resume::Strict(_) | Resume::Never => self.retry,
        };
        self.attempts = self.attempts.saturating_add(1);
        Some((self.attempts, at_least.map_or(wait, |least| wait.max(clamp(least)))))
    }

    /// Attempts since a message last came.
    pub(super) const fn attempts(&self) -> u32 {
        self.attempts
    }

    /// It was given up: the wait before it is tried from the beginning, which is an attempt as well.
    pub(super) fn give_up(&mut self) -> Duration {
        *self = Self { retry: self.retry, attempts: 1, ..Self::default() };
        self.ceiling()
    }

    fn ceiling(&self) -> Duration {
        self.retry.max(CEILING)
    }
}

fn clamp(wait: Duration) -> Duration {
    wait.clamp(SHORTEST, LONGEST)
}

#[cfg(all(test, feature = "http"))]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn waits(backoff: &mut Backoff, came: &[Came]) -> Vec<Option<u64>> {
        let next = |came: &Came| backoff.next(Resume::Progress, *came, None, 0);
        came.iter().map(next).map(|next| next.map(|(_, wait)| wait.as_millis() as u64)).collect()
    }

    use Came::{Advance, Message, Nothing};
    use alloc::vec::Vec;

    // covers: S1-06, S1-08, S1-11, B-019, B-020
    #[test]
    fn two_empty_attempts_in_a_row_are_the_end() {
        assert_eq!(waits(&mut Backoff::default(), &[Nothing; 3]), [Some(1000), Some(1000), None]);
        // One that advances is between them.
        let came = [Nothing, Nothing, Advance, Nothing, Nothing];
        assert_eq!(waits(&mut Backoff::default(), &came), [Some(1000), Some(1000), Some(2000), Some(2000), None]);
    }

    // covers: B-019, B-022
    #[test]
    fn attempts_that_advance_go_on_and_each_doubles_the_wait_to_a_ceiling() {
        let mut backoff = Backoff::default();
        backoff.set_retry(ms(50));
        let waits = waits(&mut backoff, &[Advance; 40]);
        assert_eq!(waits[..5], [Some(50), Some(100), Some(200), Some(400), Some(800)]);
        assert_eq!(waits[11..], [Some(30_000); 29]);
        // A longer `retry` is its own ceiling.
        backoff.set_retry(ms(45_000));
        assert_eq!(backoff.next(Resume::Progress, Advance, None, 7).map(|(_, wait)| wait), Some(ms(45_000)));
    }

    // covers: S1-13, B-023
    #[test]
    fn a_message_resets_all_but_what_the_server_named() {
        let mut backoff = Backoff::default();
        backoff.set_retry(ms(200));
        assert_eq!(waits(&mut backoff, &[Nothing, Nothing, Message, Nothing]), [Some(200); 4]);
        assert_eq!(waits(&mut backoff, &[Advance, Message]), [Some(400), Some(200)]);
        assert_eq!(backoff.attempts(), 1);
    }

    // covers: B-022
    #[test]
    fn what_a_server_names_is_clamped_and_a_jitter_never_shortens_it() {
        let mut backoff = Backoff::default();
        for (named, taken) in [(ms(0), ms(10)), (Duration::MAX, ms(300_000)), (ms(500), ms(500))] {
            backoff.set_retry(named);
            for random in [0, 1, 49, u64::MAX] {
                let (_, wait) = backoff.next(Resume::Progress, Message, None, random).unwrap();
                assert!(wait >= taken && wait <= taken + taken / 10, "{wait:?}");
            }
        }
        assert_eq!(backoff.next(Resume::Progress, Message, Some(ms(2000)), 0).unwrap().1, ms(2000));
        assert_eq!(backoff.next(Resume::Progress, Message, Some(Duration::MAX), 0).unwrap().1, ms(300_000));
    }

    // covers: B-025
    #[test]
    fn clients_of_one_server_do_not_all_come_at_once() {
        let wait = |random| Backoff::default().next(Resume::Progress, Nothing, None, random).map(|(_, wait)| wait);
        assert_eq!([0, 17, 100, 101].map(wait), [ms(1000), ms(1017), ms(1100), ms(1000)].map(Some));
    }

    // covers: S1-08, S0-60, B-021
    #[test]
    fn strict_counts_every_attempt_without_a_message_and_never_is_never() {
        let mut backoff = Backoff::default();
        backoff.set_retry(ms(100));
        let strict = |backoff: &mut Backoff, came| backoff.next(Resume::Strict(2), came, None, 9).map(|next| next.1);
        assert_eq!(strict(&mut backoff, Advance), Some(ms(100)));
        assert_eq!(strict(&mut backoff, Advance), Some(ms(100)));
        assert_eq!(strict(&mut backoff, Advance), None);
        assert_eq!(strict(&mut backoff, Message), Some(ms(100)));
        for policy in [Resume::Strict(0), Resume::Never] {
            assert_eq!(Backoff::default().next(policy, Nothing, None, 0), None);
        }
    }
}
