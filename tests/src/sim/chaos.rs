//! The random choices of a run: the faults, and their numbers.

use super::rng::Rng;
use std::collections::{BTreeMap, BTreeSet};

/// Chooses faults at random, and counts them.
#[derive(Clone, Debug)]
pub struct Chaos<F> {
    /// The generator of all choices of a run.
    pub rng: Rng,
    /// How many of a thousand chances are taken; zero for a clean run.
    pub rate: u64,
    /// Steps that counted.
    pub steps: u64,
    /// Faults injected.
    pub faults: BTreeMap<F, u64>,
    /// The number of random faults.
    pub drawn: u64,
    /// Which of these are left out.
    pub skip: BTreeSet<u64>,
}

impl<F: Copy + Ord> Chaos<F> {
    /// A generator that takes this number of a thousand chances.
    pub const fn new(rng: Rng, rate: u64) -> Self {
        Self { rng, rate, steps: 0, faults: BTreeMap::new(), drawn: 0, skip: BTreeSet::new() }
    }

    /// Whether this fault happens here; `scale` is how much likelier than usual, in percent.
    pub fn hit(&mut self, fault: F, scale: u64) -> bool {
        let hit = self.draw(scale);
        if hit {
            self.count(fault);
        }
        hit
    }

    /// Which of these faults happens here, if any does.
    pub fn pick(&mut self, faults: &[F], scale: u64) -> Option<F> {
        let hit = self.draw(scale);
        let fault = *faults.get(self.rng.below(faults.len() as u64) as usize).filter(|_| hit)?;
        self.count(fault);
        Some(fault)
    }

    fn draw(&mut self, scale: u64) -> bool {
        let hit = self.rate > 0 && self.rng.below(100_000) < self.rate * scale;
        if hit {
            self.drawn += 1;
        }
        hit && !self.skip.contains(&(self.drawn - 1))
    }

    /// This fault happens.
    pub fn count(&mut self, fault: F) {
        self.steps += 1;
        *self.faults.entry(fault).or_default() += 1;
    }
}
