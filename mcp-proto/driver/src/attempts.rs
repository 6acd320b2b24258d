//! The order of connection attempts to the addresses of one host, and the time for each.

use alloc::collections::VecDeque;
use core::net::SocketAddr;
use core::time::Duration;
use mcp_proto::exchange::{Closed, Reach};

/// Time for each attempt of the first round. RFC 8305 section 8 recommends it as the delay before
/// the next attempt.
const FIRST: Duration = Duration::from_millis(250);
/// Factor by which each round is longer than the previous one.
const GROWTH: u32 = 4;

/// The addresses of one host. The driver tries them one after another, within one limit, until one
/// connects.
///
/// An unresponsive address must not use up the time of the others, and a distant one must get the
/// time that it needs. The attempts therefore form rounds. In the first round each address gets a
/// quarter of a second. Each further round gives four times as long to every address that timed
/// out. An address that refused is not tried again. An attempt always gets at least an equal share
/// of the remaining time.
///
/// There is one attempt at a time, so that no further thread or socket is needed.
#[derive(Debug)]
pub struct Attempts<A> {
    limit: Duration,
    patience: Duration,
    /// Addresses to try in this round.
    round: VecDeque<A>,
    /// Addresses that timed out in this round.
    silent: VecDeque<A>,
    why: Closed,
}

impl Attempts<SocketAddr> {
    /// Creates attempts at those of these addresses that may be reached, in order, within `limit`
    /// from now on. If there is an address, and none that may be, the reason is
    /// [`Closed::NotPublic`].
    pub fn within(reach: Reach, addresses: impl IntoIterator<Item = SocketAddr>, limit: Duration) -> Self {
        let mut refused = false;
        let allowed = |address: &SocketAddr| {
            let allows = reach.allows(address.ip());
            refused |= !allows;
            allows
        };
        let round: VecDeque<SocketAddr> = addresses.into_iter().filter(allowed).collect();
        let why = if refused && round.is_empty() { Closed::NotPublic } else { Closed::Unresolved };
        Self { limit, patience: FIRST, round, silent: VecDeque::new(), why }
    }
}

impl<A> Attempts<A> {
    /// Creates attempts at these addresses, in order, within `limit` from now on.
    pub fn new(addresses: impl IntoIterator<Item = A>, limit: Duration) -> Self {
        let round = addresses.into_iter().collect();
        Self { limit, patience: FIRST, round, silent: VecDeque::new(), why: Closed::Unresolved }
    }

    /// Returns the next address and the time for its attempt, `elapsed` after the beginning. `None`
    /// if no address connected in time.
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

    /// Reports that an attempt failed. After a [`Closed::Timeout`] the address is tried again in
    /// the next round.
    pub fn failed(&mut self, address: A, why: Closed) {
        if why == Closed::Timeout {
            self.silent.push_back(address);
        }
        self.why = why;
    }

    /// Returns the reason of the last failed attempt, or [`Closed::Unresolved`] if there was none.
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

    /// Returns the attempts with their times, if each host connects or fails after its delay. The
    /// last line is the outcome.
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

    // covers: REDIR-C-006, B-237
    #[test]
    fn address_that_may_not_be_reached_is_not_tried() {
        let addresses = ["127.0.0.1:1", "[::1]:2", "1.1.1.1:3", "10.0.0.1:4"].map(|text| text.parse().unwrap());
        let tried = |reach, addresses: &[SocketAddr]| {
            let mut attempts = Attempts::within(reach, addresses.iter().copied(), millis(10_000));
            let next = core::iter::from_fn(|| attempts.next(Duration::ZERO)).map(|(address, _)| address.port());
            (next.collect::<Vec<_>>(), attempts.why())
        };
        assert_eq!(tried(Reach::Any, &addresses).0, [1, 2, 3, 4]);
        assert_eq!(tried(Reach::Public, &addresses), ([3].into(), Closed::Unresolved));
        assert_eq!(tried(Reach::Public, &addresses[..2]), ([].into(), Closed::NotPublic));
        assert_eq!(tried(Reach::Public, &[]), ([].into(), Closed::Unresolved));
    }

    const NEVER: u64 = u64::MAX;

    // covers: B-165
    #[test]
    fn unresponsive_address_delays_next_by_a_quarter_second() {
        let hole = || ("hole", NEVER, None);
        assert_eq!(tried(&[hole(), ("live", 1, None)], 10_000), ["hole 250", "live 250", "connected after 251"]);
        let told = tried(&[hole(), hole(), hole(), ("live", 1, None)], 10_000);
        assert_eq!(told.last().map(String::as_str), Some("connected after 751"));
    }

    // covers: B-165
    #[test]
    fn refusing_address_costs_no_time_and_is_not_retried() {
        let refused = ("refused", 0, Some(Closed::Refused));
        let unreachable = ("unreachable", 0, Some(Closed::Unreachable("no route".into())));
        let told = tried(&[refused.clone(), unreachable, ("live", 1, None)], 10_000);
        assert_eq!(told, ["refused 250", "unreachable 250", "live 10000", "connected after 1"]);
        assert_eq!(tried(&[refused], 10_000), ["refused 10000", "Refused after 0"]);
    }

    // covers: B-165
    #[test]
    fn distant_address_gets_the_time_it_needs() {
        let (hole, far) = (("hole", NEVER, None), ("far", 600, None));
        assert_eq!(tried(core::slice::from_ref(&far), 10_000), ["far 10000", "connected after 600"]);
        let told = tried(&[hole, far], 10_000);
        assert_eq!(told, ["hole 250", "far 250", "hole 1000", "far 1000", "connected after 2100"]);
    }

    // covers: B-165
    #[test]
    fn any_number_of_addresses_is_tried_within_the_limit() {
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
    fn no_address_or_no_time_means_no_attempt() {
        assert_eq!(tried(&[], 10_000), ["Unresolved after 0"]);
        assert_eq!(tried(&[("live", 0, None)], 0), ["Unresolved after 0"]);
    }

    #[test]
    fn immediate_timeouts_end_the_attempts() {
        let at_once = ("hole", 0, Some(Closed::Timeout));
        let told = tried(&[at_once.clone(), at_once], 10_000);
        assert_eq!(told.last().map(String::as_str), Some("Timeout after 0"));
        assert!(told.len() < 20, "{told:?}");
    }
}
