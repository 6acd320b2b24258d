//! How long a store takes to reply: the median and the 99th percentile of about the last thousand
//! replies, within a quarter.

use alloc::vec::Vec;
use core::time::Duration;

/// The number of replies after which each counts half as much.
const WINDOW: u32 = 1024;

/// The classes of an octave.
const CLASSES: u32 = 4;

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Latency {
    /// The number of replies of each class of times.
    counts: Vec<u32>,
    total: u32,
}

impl Latency {
    /// A reply came after this time.
    pub(super) fn add(&mut self, time: Duration) {
        let class = class(time);
        if self.counts.len() <= class {
            self.counts.resize(class + 1, 0);
        }
        self.counts[class] += 1;
        self.total += 1;
        if self.total >= WINDOW {
            self.counts.iter_mut().for_each(|count| *count /= 2);
            self.total = self.counts.iter().sum();
        }
    }

    /// Returns a time within which this part of a hundred replies came. Zero without a reply.
    pub(super) fn percentile(&self, percent: u32) -> Duration {
        let wanted = (self.total * percent).div_ceil(100);
        let mut sum = 0;
        let found = self.counts.iter().position(|count| {
            sum += count;
            sum >= wanted && wanted > 0
        });
        found.map_or(Duration::ZERO, end)
    }
}

/// Returns the class of a time: the octave of its microseconds, and the quarter of that.
fn class(time: Duration) -> usize {
    let micros = u32::try_from(time.as_micros()).unwrap_or(u32::MAX).max(CLASSES);
    let octave = micros.ilog2() - CLASSES.ilog2();
    (octave * CLASSES + (micros >> octave) - CLASSES) as usize
}

/// Returns the end of a class.
fn end(class: usize) -> Duration {
    let (octave, quarter) = (class as u32 / CLASSES, class as u32 % CLASSES);
    Duration::from_micros(u64::from(CLASSES + quarter + 1) << octave)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_near_what_was_measured() {
        let mut latency = Latency::default();
        assert_eq!(latency.percentile(99), Duration::ZERO);
        for micros in 1..=1000 {
            latency.add(Duration::from_micros(micros));
        }
        for (percent, micros) in [(50, 500), (99, 990), (1, 10)] {
            let found = latency.percentile(percent).as_micros();
            assert!(found >= micros && found <= micros * 5 / 4 + 5, "{percent}: {found}");
        }
    }

    #[test]
    fn old_replies_count_less_and_the_longest_has_a_class() {
        let mut latency = Latency::default();
        (0..10_000).for_each(|_| latency.add(Duration::from_secs(1)));
        (0..3000).for_each(|_| latency.add(Duration::from_millis(1)));
        assert!(latency.percentile(50) < Duration::from_millis(2));
        (0..3000).for_each(|_| latency.add(Duration::from_millis(1)));
        assert!(latency.percentile(99) < Duration::from_millis(2));
        latency.add(Duration::MAX);
        assert!(latency.percentile(100) > Duration::from_secs(4000), "{:?}", latency.percentile(100));
    }
}
