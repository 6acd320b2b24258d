//! The order and the time in which the addresses of one host are tried.

use crate::exchange::Closed;
use alloc::collections::VecDeque;
use core::time::Duration;

/// How long each address is tried in the first round: what RFC 8305 section 8 recommends before the next is tried.
const FIRST: Duration = Duration::from_millis(250);
/// How many times longer each round lasts than the one before.
const GROWTH: u32 = 4;

/// The addresses of one host, tried one after another until one answers, all of them within one bound.
///
/// An address that does not answer must not use up the time of the others, and one that is far must get the time it needs. So they are tried
/// in rounds: the first gives each a quarter of a second, every further one four times as long to each that has not answered. One that
/// refused is not tried again. What is left of the time is never less than a fair share for each that is still to be tried.
///
/// Each attempt is one connection at a time: no thread and no socket beside it.
#[derive(Debug)]
pub struct Attempts<A> {
    limit: Duration,
    patience: Duration,
    /// To be tried in this round.
    round: VecDeque<A>,
    /// Those of this round that did not answer.
    silent: VecDeque<A>,
    why: Closed,
}

impl<A> Attempts<A> {
    /// These addresses, in their order, within `limit` from now on.
    pub fn new(addresses: impl IntoIterator<Item = A>, limit: Duration) -> Self {
        let round = addresses.into_iter().collect();
        Self { limit, patience: FIRST, round, silent: VecDeque::new(), why: Closed::Unresolved }
    }

    /// Which address to try next, and for how long, so much time after the beginning. `None`: none of them answered in time.
    pub fn next(&mut self, elapsed: Duration) -> Option<(A, Duration)> {
        if self.round.is_empty() && self.patience < self.limit {
            self.round = core::mem::take(&mut self.silent);
            self.patience = self.patience.saturating_mul(GROWTH);
        }
        let left = self.limit.saturating_sub(elapsed);
        let waiting = u32::try_from(self.round.len()).unwrap_or(u32::MAX);
        let share = left.checked_div(waiting)?;
        let address = self.round.pop_front().filter(|_| !share.is_zero())?;
        let alone = self.round.is_empty() && self.silent.is_empty();
        Some((address, if alone { left } else { share.min(self.patience) }))
    }

    /// That attempt failed, for this reason. After a [`Closed::Timeout`] the address is tried again in the next round.
    pub fn failed(&mut self, address: A, why: Closed) {
        if why == Closed::Timeout {
            self.silent.push_back(address);
        }
        self.why = why;
    }

    /// Why no address answered: what was said of the attempt that failed last, [`Closed::Unresolved`] if there was none.
    pub fn why(self) -> Closed {
        self.why
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;
    use alloc::string::String;
    use alloc::vec::Vec;

    fn millis(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    /// What is tried and for how long, if each address answers, or refuses, after so long; the last line tells the end.
    fn tried(hosts: &[(&'static str, u64, Option<Closed>)], limit: u64) -> Vec<String> {
        let mut attempts = Attempts::new(hosts, millis(limit));
        let (mut elapsed, mut told) = (Duration::ZERO, Vec::new());
        while let Some((host, patience)) = attempts.next(elapsed) {
            let (name, after, end) = host;
            told.push(format!("{name} {}", patience.as_millis()));
            let in_time = millis(*after) <= patience;
            elapsed += patience.min(millis(*after));
            match end {
                None if in_time => {
                    told.push(format!("connected after {}", elapsed.as_millis()));
                    return told;
                }
                Some(why) if in_time => attempts.failed(host, why.clone()),
                _ => attempts.failed(host, Closed::Timeout),
            }
            assert!(elapsed <= millis(limit));
        }
        told.push(format!("{:?} after {}", attempts.why(), elapsed.as_millis()));
        told
    }

    const NEVER: u64 = u64::MAX;

    // covers: B-165
    #[test]
    fn an_address_that_does_not_answer_costs_the_next_a_quarter_of_a_second() {
        let hole = || ("hole", NEVER, None);
        assert_eq!(tried(&[hole(), ("live", 1, None)], 10_000), ["hole 250", "live 250", "connected after 251"]);
        let told = tried(&[hole(), hole(), hole(), ("live", 1, None)], 10_000);
        assert_eq!(told.last().map(String::as_str), Some("connected after 751"));
    }

    // covers: B-165
    #[test]
    fn an_address_that_refuses_costs_nothing_and_is_not_tried_again() {
        let refused = ("refused", 0, Some(Closed::Refused));
        let unreachable = ("unreachable", 0, Some(Closed::Unreachable("no route".into())));
        let told = tried(&[refused.clone(), unreachable, ("live", 1, None)], 10_000);
        assert_eq!(told, ["refused 250", "unreachable 250", "live 10000", "connected after 1"]);
        assert_eq!(tried(&[refused], 10_000), ["refused 10000", "Refused after 0"]);
    }

    // covers: B-165
    #[test]
    fn an_address_that_is_far_gets_the_time_it_needs() {
        let (hole, far) = (("hole", NEVER, None), ("far", 600, None));
        assert_eq!(tried(core::slice::from_ref(&far), 10_000), ["far 10000", "connected after 600"]);
        let told = tried(&[hole, far], 10_000);
        assert_eq!(told, ["hole 250", "far 250", "hole 1000", "far 1000", "connected after 2100"]);
    }

    // covers: B-165
    #[test]
    fn no_number_of_addresses_takes_more_than_the_limit_or_leaves_one_untried() {
        for count in 1..50 {
            for limit in [1, 100, 1_000, 10_000] {
                let mut holes = alloc::vec![("hole", NEVER, None); count];
                let told = tried(&holes, limit);
                let least = count + 1;
                assert!(told.len() >= least, "{count} addresses in {limit} ms: {told:?}");
                assert_eq!(told.last(), Some(&format!("Timeout after {limit}")));
                holes.push(("live", 0, None));
                let told = tried(&holes, limit);
                assert!(told.last().is_some_and(|end| end.starts_with("connected")), "{told:?}");
            }
        }
    }

    #[test]
    fn without_an_address_or_time_nothing_is_tried() {
        assert_eq!(tried(&[], 10_000), ["Unresolved after 0"]);
        assert_eq!(tried(&[("live", 0, None)], 0), ["Unresolved after 0"]);
    }

    #[test]
    fn failing_at_once_without_an_answer_comes_to_an_end() {
        let at_once = ("hole", 0, Some(Closed::Timeout));
        let told = tried(&[at_once.clone(), at_once], 10_000);
        assert_eq!(told.last().map(String::as_str), Some("Timeout after 0"));
        assert!(told.len() < 20, "{told:?}");
    }
}
