//! The work of a check, before it runs. It assumes that every alternative is checked, so a check
//! never does more.

use super::Bounds;
use super::graph::{Graph, count};
use super::nodes::Node;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use serde_json::Value;

/// The work of a byte of text that a regular expression reads, and of a value that is compared with
/// its neighbours.
const TEXT: u64 = 16;

/// The work of finding one schema of a set.
const SET: u64 = 16;

impl Graph {
    /// Returns the work of a check. `None` if it exceeds the bounds. Takes no longer than that
    /// work.
    pub(super) fn work(&self, value: &Value, bounds: &Bounds) -> Option<u64> {
        let mut work = ValidationWork { graph: self, bounds, done: 0, sets: Vec::new(), known: BTreeMap::new() };
        let root = work.set([(self.root, 1)].into())?;
        work.value(value, root, 0)?;
        Some(work.done)
    }
}

/// How often each schema applies to a value.
type SchemaCounts = BTreeMap<usize, u64>;

/// All schemas that apply to a value. Most parts of a value have the same as others.
struct Set {
    schemas: Vec<(usize, u64)>,
    /// The work of their keywords that is the same for every value.
    weight: u64,
    /// Those whose work depends on the value.
    readers: Vec<(usize, u64)>,
    /// The number of them that apply each other in a row.
    depth: usize,
    /// The sets of the parts of the value. `None`: no schema applies there.
    parts: BTreeMap<ValuePart, Option<usize>>,
}

/// Parts of a value with the same schemas.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum ValuePart {
    /// The member of this name, by its number in the graph.
    Member(usize),
    /// The element at this position.
    Element(usize),
    /// Members and elements that no schema names.
    Other,
}

struct ValidationWork<'a> {
    graph: &'a Graph,
    bounds: &'a Bounds,
    done: u64,
    sets: Vec<Set>,
    known: BTreeMap<SchemaCounts, usize>,
}

impl ValidationWork<'_> {
    fn add(&mut self, work: u64) -> Option<()> {
        self.done = self.done.saturating_add(work);
        (self.done <= self.bounds.work).then_some(())
    }

    /// Adds the work for a value and everything in it. `depth`: that of the recursion.
    fn value(&mut self, value: &Value, set: usize, depth: usize) -> Option<()> {
        let Set { weight, readers, depth: deeper, .. } = &self.sets[set];
        let depth = depth + deeper;
        let read = readers.iter().fold(*weight, |sum, &(at, times)| {
            sum.saturating_add(times.saturating_mul(self.graph.nodes.get(at).reads(value)))
        });
        self.add(read)?;
        if depth > self.bounds.stack {
            return None;
        }
        match value {
            Value::Array(elements) => {
                for (at, element) in elements.iter().enumerate() {
                    let part = if at < self.graph.positions { ValuePart::Element(at) } else { ValuePart::Other };
                    self.part(element, set, part, depth)?;
                }
            }
            Value::Object(members) => {
                for (name, member) in members {
                    let part = self.graph.names.get(name).map_or(ValuePart::Other, |&name| ValuePart::Member(name));
                    self.part(member, set, part, depth)?;
                }
            }
            _ => {}
        }
        Some(())
    }

    /// Adds the work for a part of a value with this set.
    fn part(&mut self, value: &Value, set: usize, part: ValuePart, depth: usize) -> Option<()> {
        let known = self.sets[set].parts.get(&part).copied();
        let inner = match known {
            Some(inner) => inner,
            None => {
                let inner = self.set(self.applied(set, part))?;
                let inner = (!self.sets[inner].schemas.is_empty()).then_some(inner);
                self.sets[set].parts.insert(part, inner);
                inner
            }
        };
        self.add(1)?;
        inner.map_or(Some(()), |inner| self.value(value, inner, depth))
    }

    /// Returns how often each schema applies to a part of a value with this set, without those that
    /// they apply in turn.
    fn applied(&self, set: usize, part: ValuePart) -> SchemaCounts {
        let mut applied = SchemaCounts::new();
        for &(at, times) in &self.sets[set].schemas {
            let nodes = &self.graph.nodes;
            let named = match part {
                ValuePart::Member(name) => nodes.property(at, name),
                ValuePart::Element(position) => nodes.element(at, position),
                ValuePart::Other => None,
            };
            for to in nodes.inner(at).chain(named) {
                let count = applied.entry(to).or_default();
                *count = count.saturating_add(times);
            }
        }
        applied
    }

    /// Returns the set of these schemas and all that they apply to the same value. Adds the work of
    /// finding a new one.
    fn set(&mut self, applied: SchemaCounts) -> Option<usize> {
        if let Some(&set) = self.known.get(&applied) {
            return Some(set);
        }
        let mut set = Set { schemas: Vec::new(), weight: 0, readers: Vec::new(), depth: 0, parts: BTreeMap::new() };
        let mut rest: BTreeMap<usize, (u64, usize)> = applied.iter().map(|(&at, &times)| (at, (times, 1))).collect();
        while let Some((at, (times, depth))) = rest.pop_first() {
            let nodes = &self.graph.nodes;
            let node = nodes.get(at);
            set.depth = set.depth.max(depth);
            set.weight = set.weight.saturating_add(times.saturating_mul(node.weight.into()));
            set.schemas.push((at, times));
            if node.patterns > 0 || node.unique {
                set.readers.push((at, times));
            }
            for to in nodes.applies(at) {
                let (count, deepest) = rest.entry(to).or_default();
                *count = count.saturating_add(times);
                *deepest = (*deepest).max(depth + 1);
            }
            self.add(SET + (nodes.applies(at).count() + nodes.inner(at).len()) as u64)?;
        }
        self.known.insert(applied, self.sets.len());
        self.sets.push(set);
        Some(self.sets.len() - 1)
    }
}

impl Node {
    /// Returns the work of its keywords that depends on the value.
    fn reads(&self, value: &Value) -> u64 {
        let patterns = u64::from(self.patterns);
        let read = match value {
            Value::String(text) => patterns.saturating_mul(text.len() as u64),
            Value::Object(members) if patterns > 0 => {
                patterns.saturating_mul(members.keys().map(|name| name.len() as u64).sum())
            }
            Value::Array(_) if self.unique => count(value),
            _ => 0,
        };
        read.saturating_mul(TEXT)
    }
}
