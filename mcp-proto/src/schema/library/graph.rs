//! The schemas of a document, and which of them apply to the same value. It finds what a schema
//! from a hostile peer could cost before it is compiled, and what a check could cost before it runs
//! (2026-07-28, JSON Schema usage: composition keywords). It never says that a value matches.

use super::Bounds;
use super::compilation;
use super::nodes::{Nodes, narrow};
use super::places;
use super::reader::SchemaReader;
use crate::schema::{BadSchema, SchemaLimit};
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use serde_json::Value;

/// See the [module](self). A schema that applies another one to the same value is before it.
#[derive(Debug, Default)]
pub(super) struct Graph {
    pub(super) nodes: Nodes,
    pub(super) root: usize,
    /// The names of members in `properties`, with their numbers.
    pub(super) names: BTreeMap<String, usize>,
    /// The number of positions of elements with schemas of their own.
    pub(super) positions: usize,
}

impl Graph {
    /// Reads a document.
    ///
    /// # Errors
    /// [`BadSchema`] for a limit, a reference out of the document, an unsupported dialect, or
    /// schemas that apply each other without end.
    pub(super) fn read(document: &Value, bounds: &Bounds) -> Result<Self, BadSchema> {
        measure(document, bounds)?;
        let read = SchemaReader::read(document, bounds)?;
        let positions = read.nodes.positions();
        let mut graph = Self { nodes: read.nodes, root: read.root, names: read.names, positions };
        graph.sort().map_err(|at| {
            let value = read.values.get(at).copied().flatten();
            BadSchema::cycle(value.and_then(|value| places::pointer(document, value)).unwrap_or_default())
        })?;
        if graph.applied() > bounds.applied {
            return Err(BadSchema::Limit(SchemaLimit::Work));
        }
        compilation::measure(&graph, &read.uris, bounds)?;
        Ok(graph)
    }

    /// Puts each schema before those that it applies to the same value.
    ///
    /// # Errors
    /// A schema that cannot be put anywhere.
    fn sort(&mut self) -> Result<(), usize> {
        let nodes = &mut self.nodes;
        let mut before = alloc::vec![0_u32; nodes.len()];
        (0..nodes.len()).flat_map(|at| nodes.applies(at)).for_each(|to| before[to] += 1);
        let mut order: Vec<usize> = Vec::with_capacity(nodes.len());
        order.extend((0..nodes.len()).filter(|&at| before[at] == 0));
        let mut next = 0;
        while let Some(&at) = order.get(next) {
            next += 1;
            for to in nodes.applies(at) {
                before[to] -= 1;
                if before[to] == 0 {
                    order.push(to);
                }
            }
        }
        if let Some(at) = before.iter().position(|&before| before > 0) {
            return Err(at);
        }
        let mut rank = before;
        order.iter().enumerate().for_each(|(number, &at)| rank[at] = narrow(number));
        self.root = rank[self.root] as usize;
        nodes.reorder(rank);
        Ok(())
    }

    /// Returns the largest number of schemas that one schema applies to one value, itself included,
    /// each counted as often as it applies.
    fn applied(&self) -> u64 {
        let mut applied = alloc::vec![0_u64; self.nodes.len()];
        for at in (0..self.nodes.len()).rev() {
            applied[at] = self.nodes.applies(at).fold(1, |sum, to| sum.saturating_add(applied[to]));
        }
        applied.into_iter().max().unwrap_or_default()
    }
}

/// Checks the depth of a document, the number of values in it, and the length of the JSON Pointers
/// of everything that may be an anchor: the library keeps these even of schemas that it does not
/// compile.
fn measure(document: &Value, bounds: &Bounds) -> Result<(), BadSchema> {
    let nodes = bounds.nodes.min(u32::MAX as usize);
    Extent { nodes, locations: bounds.locations }.measure(document, bounds.depth, 0, 1)
}

/// What is left of a document's bounds.
struct Extent {
    nodes: usize,
    locations: usize,
}

impl Extent {
    /// Measures a value. `depth`: what is left of it. `pointer`: the length of its JSON Pointer.
    /// `resources`: the number of those around it.
    fn measure(&mut self, value: &Value, depth: usize, pointer: usize, resources: usize) -> Result<(), BadSchema> {
        /// The keywords that name a schema, in any dialect.
        const NAMES: [&str; 4] = ["$anchor", "$dynamicAnchor", "$id", "id"];
        let depth = depth.checked_sub(1).ok_or(BadSchema::Limit(SchemaLimit::Depth))?;
        self.nodes = self.nodes.checked_sub(1).ok_or(BadSchema::Limit(SchemaLimit::Nodes))?;
        match value {
            Value::Array(elements) => {
                let mut elements = elements.iter().enumerate();
                elements
                    .try_for_each(|(at, inner)| self.measure(inner, depth, pointer + places::element(at), resources))
            }
            Value::Object(members) => {
                if NAMES.iter().any(|name| members.contains_key(*name)) {
                    // Each resource around it keeps its own.
                    let left = self.locations.checked_sub(pointer * resources);
                    self.locations = left.ok_or(BadSchema::Limit(SchemaLimit::Locations))?;
                }
                let resources = resources + usize::from(members.contains_key("$id"));
                let mut members = members.iter();
                members.try_for_each(|(name, inner)| {
                    self.measure(inner, depth, pointer + places::segment(name), resources)
                })
            }
            _ => Ok(()),
        }
    }
}

/// Returns the number of JSON values in a value of limited depth, itself included.
pub(super) fn count(value: &Value) -> u64 {
    1 + match value {
        Value::Array(elements) => elements.iter().map(count).sum(),
        Value::Object(members) => members.values().map(count).sum(),
        _ => 0,
    }
}
