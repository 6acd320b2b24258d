//! The start of the next round of a broken event stream (2025-11-25 transports, resumability; the
//! `retry` field of WHATWG HTML section 9.2). A round is one exchange of a stream. Arithmetic only:
//! no timer, no exchange.

use super::Resume;
use core::time::Duration;

/// The result of a round.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(super) enum Brought {
    #[default]
    Nothing,
    /// A new event id. On a listener or a subscription also a sign of life.
    Progress,
    /// A response, a notification, or a request other than `ping`, which is not a repeat.
    Message,
}

/// The purpose of the stream of a round.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Serves {
    /// A request whose response is awaited. On a duplex exchange no response is a stream.
    Request,
    /// A listener, or the subscription in its place.
    Listener,
    /// HTTP+SSE: all messages of the server. `call_waits`: a call waits for one.
    Messages { call_waits: bool },
}

/// A round that has ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Round {
    pub(super) serves: Serves,
    pub(super) brought: Brought,
    /// Time from the start of its exchange to the end.
    pub(super) lasted: Duration,
    /// The `Retry-After` of its response.
    pub(super) retry_after: Option<Duration>,
}

/// A round of this length or more resets the doubling. On a listener or a subscription, a round of
/// this length counts as progress.
pub(super) const LONG: Duration = Duration::from_secs(10);

/// Short rounds in a row before the wait doubles.
const FREE: u32 = 2;

/// Empty rounds in a row that end a stream.
const MAX_EMPTY: u32 = 2;

/// Ceilings of the doubling wait, unless `retry` is larger: after a round that delivered a message,
/// and after any other, by the purpose of the stream. The last one is also the wait before the
/// client tries again to open a listener that it has given up.
const AFTER_MESSAGE: Duration = Duration::from_secs(1);
const OF_REQUEST: Duration = Duration::from_secs(5);
const OF_LISTENER: Duration = Duration::from_secs(30);

/// Limits of the waits that a server names. A shorter wait would be a busy loop, a longer one would
/// never end.
const SHORTEST: Duration = Duration::from_millis(10);
const LONGEST: Duration = Duration::from_secs(300);

/// The rounds of one stream.
#[derive(Clone, Debug)]
pub(super) struct Backoff {
    retry: Duration,
    /// Reconnections since the last round that delivered.
    attempts: u32,
    /// Rounds in a row that were empty.
    empty: u32,
    /// Rounds in a row that were shorter than `LONG`.
    short: u32,
}

impl Default for Backoff {
    fn default() -> Self {
        Self { retry: Duration::from_secs(1), attempts: 0, empty: 0, short: 0 }
    }
}

impl Backoff {
    /// Stores the wait that the server named.
    pub(super) fn set_retry(&mut self, retry: Duration) {
        self.retry = clamp(retry);
    }

    /// Handles the end of a round, the first one included. Returns the number of the next attempt
    /// and the wait before it, or `None` if the stream has ended. `random` is any number.
    pub(super) fn next(&mut self, policy: Resume, round: Round, random: u64) -> Option<(u32, Duration)> {
        let delivered = round.brought == Brought::Message;
        self.empty = if round.brought == Brought::Nothing { self.empty + 1 } else { 0 };
        self.short = if round.lasted < LONG { self.short.saturating_add(1) } else { 0 };
        let goes_on = match policy {
            Resume::Progress => {
                if delivered {
                    self.attempts = 0;
                }
                self.empty < MAX_EMPTY
            }
            Resume::Strict(most) => {
                // The rule that `Strict` follows does not cover listeners. The client does not give
                // up a listener that delivers.
                if delivered && round.serves != Serves::Request {
                    self.attempts = 0;
                }
                self.attempts < most
            }
            Resume::Never => false,
        };
        if !goes_on {
            return None;
        }
        self.attempts = self.attempts.saturating_add(1);
        let at_least = round.retry_after.map_or(self.retry, |after| clamp(after).max(self.retry));
        let wait = match policy {
            Resume::Progress => {
                let ceiling = match round.serves {
                    _ if delivered => AFTER_MESSAGE,
                    Serves::Request | Serves::Messages { call_waits: true } => OF_REQUEST,
                    Serves::Listener | Serves::Messages { call_waits: false } => OF_LISTENER,
                };
                let doublings = self.short.saturating_sub(FREE).min(15);
                let wait = self.retry.saturating_mul(1 << doublings).min(ceiling).max(at_least);
                // The clients of a server that restarts must not all reconnect at once.
                wait + Duration::from_millis(random % (wait.as_millis() as u64 / 10 + 1))
            }
            Resume::Strict(_) | Resume::Never => at_least,
        };
        Some((self.attempts, wait))
    }

    /// Returns the attempts since the last round that delivered.
    pub(super) const fn attempts(&self) -> u32 {
        self.attempts
    }

    /// The client has given up the stream, after a round with this `Retry-After`. Returns the wait
    /// before the next try, which is also an attempt.
    pub(super) fn give_up(&mut self, retry_after: Option<Duration>) -> Duration {
        *self = Self { retry: self.retry, attempts: 1, ..Self::default() };
        self.retry.max(OF_LISTENER).max(retry_after.map_or(Duration::ZERO, clamp))
    }
}

fn clamp(wait: Duration) -> Duration {
    wait.clamp(SHORTEST, LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;
    use Brought::{Message, Nothing, Progress};
    use Serves::{Listener, Request};
    use alloc::vec::Vec;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    const fn round(serves: Serves, brought: Brought) -> Round {
        Round { serves, brought, lasted: ms(5), retry_after: None }
    }

    /// The waits after rounds of 5 ms, without jitter.
    fn waits(backoff: &mut Backoff, serves: Serves, brought: &[Brought]) -> Vec<Option<u64>> {
        let next = |brought: &Brought| backoff.next(Resume::Progress, round(serves, *brought), 0);
        brought.iter().map(next).map(|next| next.map(|(_, wait)| wait.as_millis() as u64)).collect()
    }

    fn named(retry: u64) -> Backoff {
        let mut backoff = Backoff::default();
        backoff.set_retry(ms(retry));
        backoff
    }

    // covers: S1-06, S1-08, S1-11, B-019, B-020
    #[test]
    fn two_empty_rounds_in_a_row_end_the_stream() {
        for serves in [Request, Listener] {
            let of = |brought: &[Brought]| waits(&mut Backoff::default(), serves, brought);
            assert_eq!(of(&[Nothing, Nothing]), [Some(1000), None]);
            assert_eq!(of(&[Progress, Nothing, Nothing]), [Some(1000), Some(1000), None]);
            assert_eq!(of(&[Message, Nothing, Progress, Nothing, Message, Nothing, Nothing]).last(), Some(&None));
            let count = of(&[Nothing, Progress].repeat(50)).into_iter().flatten().count();
            assert_eq!(count, 100, "any other round resets the count");
        }
    }

    // covers: B-019, B-020, B-022
    #[test]
    fn waits_double_after_two_short_rounds_up_to_their_ceiling() {
        let of = |serves, brought| waits(&mut named(50), serves, &[brought; 16]).into_iter().flatten().collect();
        let delivered: Vec<u64> = of(Request, Message);
        assert_eq!(delivered[..7], [50, 50, 100, 200, 400, 800, 1000]);
        assert_eq!(delivered[7..], [1000; 9]);
        assert_eq!(of(Listener, Message), delivered);
        let advanced: Vec<u64> = of(Request, Progress);
        assert_eq!(advanced[5..], [vec![800, 1600, 3200], vec![5000; 8]].concat());
        let listened: Vec<u64> = of(Listener, Progress);
        assert_eq!(listened[8..], [vec![6400, 12_800, 25_600], vec![30_000; 5]].concat());
        // An empty round has the ceiling of one that made progress.
        let mixed = waits(&mut named(50), Request, &[Progress, Nothing].repeat(8));
        assert_eq!(mixed.into_iter().flatten().collect::<Vec<_>>(), advanced);
        // A longer `retry` is its own ceiling.
        for (serves, brought) in [(Request, Message), (Request, Progress), (Listener, Progress)] {
            assert_eq!(waits(&mut named(45_000), serves, &[brought; 9]), [Some(45_000); 9]);
        }
    }

    // covers: B-019, B-023
    #[test]
    fn a_round_of_ten_seconds_resets_the_doubling_and_nothing_else() {
        for (lasted, wait) in [(ms(9_999), 3200), (ms(10_000), 50)] {
            let mut backoff = named(50);
            waits(&mut backoff, Request, &[Progress; 7]);
            let next = backoff.next(Resume::Progress, Round { lasted, ..round(Request, Progress) }, 0);
            assert_eq!(next, Some((8, ms(wait))));
        }
        let long = Round { lasted: ms(60_000), ..round(Request, Nothing) };
        let mut backoff = named(50);
        assert_eq!(backoff.next(Resume::Progress, long, 0), Some((1, ms(50))));
        assert_eq!(backoff.next(Resume::Progress, long, 0), None, "it was empty all the same");
        let mut backoff = named(50);
        waits(&mut backoff, Request, &[Progress; 7]);
        backoff.next(Resume::Progress, Round { brought: Progress, ..long }, 0);
        let after = waits(&mut backoff, Request, &[Progress; 4]);
        assert_eq!(after, [Some(50), Some(50), Some(100), Some(200)]);
    }

    // covers: B-022, B-023, B-025
    #[test]
    fn jitter_lengthens_a_wait_by_at_most_a_tenth() {
        for (retry, taken) in [(ms(0), ms(10)), (Duration::MAX, ms(300_000)), (ms(500), ms(500))] {
            for random in [0, 1, 49, u64::MAX] {
                let mut backoff = Backoff::default();
                backoff.set_retry(retry);
                for brought in [Message, Progress] {
                    let (_, wait) = backoff.next(Resume::Progress, round(Request, brought), random).unwrap();
                    assert!(wait >= taken && wait <= taken + taken / 10, "{wait:?}");
                }
            }
        }
        let wait =
            |random| Backoff::default().next(Resume::Progress, round(Request, Nothing), random).map(|next| next.1);
        assert_eq!([0, 17, 100, 101].map(wait), [ms(1000), ms(1017), ms(1100), ms(1000)].map(Some));
        // At the ceiling as well.
        let mut backoff = named(1000);
        waits(&mut backoff, Listener, &[Progress; 30]);
        let next = backoff.next(Resume::Progress, round(Listener, Progress), 3000);
        assert_eq!(next.map(|next| next.1), Some(ms(33_000)));
    }

    #[test]
    fn retry_after_lengthens_a_wait_within_the_same_bounds() {
        let after = |retry, after| {
            let round = Round { retry_after: Some(after), ..round(Request, Nothing) };
            named(retry).next(Resume::Progress, round, 0).map(|next| next.1)
        };
        assert_eq!(after(500, ms(2000)), Some(ms(2000)));
        assert_eq!(after(5000, ms(2000)), Some(ms(5000)), "never shorter than `retry`");
        assert_eq!(after(500, ms(8000)), Some(ms(8000)), "beyond the ceiling");
        assert_eq!(after(500, Duration::MAX), Some(ms(300_000)));
        assert_eq!(after(0, ms(0)), Some(ms(10)));
    }

    #[test]
    fn attempts_count_from_the_last_round_that_delivered() {
        let mut backoff = named(200);
        let mut attempt = |brought| backoff.next(Resume::Progress, round(Request, brought), 0).map(|next| next.0);
        assert_eq!([Progress, Nothing, Progress, Message, Nothing].map(&mut attempt), [1, 2, 3, 1, 2].map(Some));
    }

    // covers: S1-06, S1-08, S1-13, S0-60, B-021
    #[test]
    fn strict_limits_all_attempts_and_waits_as_the_server_named() {
        let strict = |backoff: &mut Backoff, serves, brought| {
            backoff.next(Resume::Strict(2), round(serves, brought), 99).map(|next| next.1)
        };
        for brought in [Nothing, Progress, Message] {
            let mut backoff = named(100);
            let next = [(); 3].map(|()| strict(&mut backoff, Request, brought));
            assert_eq!(next, [Some(ms(100)), Some(ms(100)), None], "{brought:?}");
        }
        let mut backoff = Backoff::default();
        assert_eq!(strict(&mut backoff, Request, Progress), Some(ms(1000)));
        // The client gives up a listener after this number of attempts that deliver nothing.
        let mut backoff = named(100);
        let brought = [Progress, Progress, Message, Message, Nothing, Progress];
        let next = brought.map(|brought| strict(&mut backoff, Listener, brought).is_some());
        assert_eq!(next, [true, true, true, true, true, false]);
        for policy in [Resume::Strict(0), Resume::Never] {
            assert_eq!(Backoff::default().next(policy, round(Request, Message), 0), None);
        }
    }

    // covers: B-025
    #[test]
    fn given_up_stream_is_tried_again_after_30_seconds_or_retry() {
        for (retry, wait) in [(50, 30_000), (30_001, 30_001), (u64::MAX, 300_000)] {
            let mut backoff = named(retry);
            waits(&mut backoff, Listener, &[Nothing; 2]);
            assert_eq!(backoff.give_up(None), ms(wait));
            assert!(waits(&mut backoff, Listener, &[Nothing; 2])[0].is_some(), "two rounds as before");
        }
        for (after, wait) in [(0, 30_000), (60_000, 60_000), (u64::MAX, 300_000)] {
            assert_eq!(named(50).give_up(Some(ms(after))), ms(wait));
        }
    }
}
