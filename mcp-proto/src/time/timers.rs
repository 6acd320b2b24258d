//! The armed timers of one engine.

use super::Instant;
use alloc::collections::{BTreeMap, BTreeSet};

/// Number of timers that are kept outside of the trees.
const FEW: usize = 4;

/// The armed timers of one engine, by name. Arming takes O(log n), and so does the lookup of the
/// next deadline. Timers fire in the order of their deadlines.
///
/// Most timers are armed for a call, and disarmed at its end: those that were armed last are in a
/// short list, and only the others are in the trees.
#[derive(Debug)]
pub struct Timers<T> {
    recent: [Option<(Instant, T)>; FEW],
    /// The place in `recent` for the next timer. One that is there moves to the trees.
    place: usize,
    due: BTreeSet<(Instant, T)>,
    at: BTreeMap<T, Instant>,
}

impl<T: Copy + Ord> Default for Timers<T> {
    /// Creates a set in which no timer is armed.
    fn default() -> Self {
        Self { recent: [None; FEW], place: 0, due: BTreeSet::new(), at: BTreeMap::new() }
    }
}

impl<T: Copy + Ord> Timers<T> {
    /// Arms the timer for `at`, replacing an earlier time, or disarms it.
    pub fn set(&mut self, timer: T, at: Option<Instant>) {
        let is_it = |recent: &&mut Option<(Instant, T)>| recent.is_some_and(|(_, other)| other == timer);
        if let Some(recent) = self.recent.iter_mut().find(is_it) {
            *recent = at.map(|at| (at, timer));
            return;
        }
        if !self.at.is_empty()
            && let Some(before) = self.at.remove(&timer)
        {
            self.due.remove(&(before, timer));
        }
        if let Some(at) = at {
            self.add(at, timer);
        }
    }

    /// Adds a timer that is not armed.
    fn add(&mut self, at: Instant, timer: T) {
        let place = self.recent.iter().position(Option::is_none).unwrap_or(self.place);
        self.place = (place + 1) % FEW;
        if let Some((at, timer)) = self.recent[place].replace((at, timer)) {
            self.at.insert(timer, at);
            self.due.insert((at, timer));
        }
    }

    /// Returns when the timer fires, if it is armed.
    pub fn get(&self, timer: T) -> Option<Instant> {
        let recent = self.recent.iter().flatten().find(|(_, other)| *other == timer);
        recent.map(|(at, _)| *at).or_else(|| self.at.get(&timer).copied())
    }

    /// Returns the next deadline and its timer.
    pub fn next(&self) -> Option<(Instant, T)> {
        self.recent.iter().flatten().chain(self.due.first()).min().copied()
    }

    /// Disarms and returns the first timer that is due.
    pub fn pop_due(&mut self, now: Instant) -> Option<T> {
        let (at, timer) = self.next()?;
        (at <= now).then(|| {
            self.set(timer, None);
            timer
        })
    }

    /// Disarms all timers.
    pub fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn timers_fire_by_deadline_and_rearming_replaces() {
        let mut timers = Timers::default();
        timers.set('a', Some(Instant::from_millis(30)));
        timers.set('b', Some(Instant::from_millis(20)));
        timers.set('a', Some(Instant::from_millis(10)));
        timers.set('c', Some(Instant::from_millis(5)));
        timers.set('c', None);
        assert_eq!(timers.next(), Some((Instant::from_millis(10), 'a')));
        assert_eq!(timers.pop_due(Instant::from_millis(9)), None);
        assert_eq!(timers.pop_due(Instant::from_millis(20)), Some('a'));
        assert_eq!(timers.pop_due(Instant::from_millis(20)), Some('b'));
        assert_eq!(timers.next(), None);
    }

    proptest! {
        #[test]
        fn any_number_of_timers_is_as_one_list(
            steps in proptest::collection::vec((0..12_u8, proptest::option::weighted(0.7, 0..9_u64)), 0..80),
        ) {
            let (mut timers, mut model) = (Timers::default(), BTreeMap::new());
            for (timer, at) in steps {
                let at = at.map(Instant::from_millis);
                timers.set(timer, at);
                match at {
                    Some(at) => drop(model.insert(timer, at)),
                    None => drop(model.remove(&timer)),
                }
                prop_assert_eq!(timers.get(timer), at);
                prop_assert_eq!(timers.next(), model.iter().map(|(timer, at)| (*at, *timer)).min());
                prop_assert_eq!(timers.due.len(), timers.at.len());
            }
            while let Some((_, timer)) = model.iter().map(|(timer, at)| (*at, *timer)).min() {
                prop_assert_eq!(timers.pop_due(Instant::from_millis(9)), Some(timer));
                model.remove(&timer);
            }
            prop_assert_eq!(timers.next(), None);
        }
    }
}
