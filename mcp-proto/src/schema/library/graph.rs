//! The schemas of a document, and which of them apply to the same value. It finds what a schema
//! from a hostile peer could cost before it is compiled, and what a check could cost before it runs
//! (2026-07-28, JSON Schema usage: composition keywords). It never says that a value matches.

use super::Bounds;
use super::compilation;
use super::places;
use super::reader::Reader;
use crate::schema::{BadSchema, SchemaLimit};
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::string::String;
use serde_json::Value;

/// See the [module](self). A schema that applies another one to the same value is before it.
#[derive(Debug, Default)]
pub(super) struct Graph {
    pub(super) nodes: Box<[Node]>,
    pub(super) root: usize,
    /// The names of members in `properties`, with their numbers.
    pub(super) names: BTreeMap<String, usize>,
    /// The number of positions of elements with schemas of their own.
    pub(super) positions: usize,
}

/// A schema. All schemas without others, without regular expressions and of the same weight are
/// one node.
#[derive(Debug, Default)]
pub(super) struct Node {
    /// The schemas in it that it applies to the same value.
    pub(super) same: Box<[usize]>,
    /// The schemas that its references apply to the same value.
    pub(super) references: Box<[Reference]>,
    /// The schemas that it applies to members, by the numbers of their names, in their order.
    pub(super) properties: Box<[(usize, usize)]>,
    /// The schemas that it applies to the elements at these positions.
    pub(super) elements: Box<[usize]>,
    /// The schemas that it may apply to each member and each element.
    pub(super) inner: Box<[usize]>,
    /// Number of JSON values in its other keywords, and 1.
    pub(super) weight: u64,
    /// Number of its regular expressions.
    pub(super) patterns: u64,
    /// Whether it compares the elements of an array.
    pub(super) unique: bool,
    /// Whether it has `unevaluatedProperties`, and `unevaluatedItems`.
    pub(super) unevaluated: [bool; 2],
    pub(super) text: Text,
}

/// A reference to a schema.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reference {
    pub(super) to: usize,
    /// Whether it names another resource than the one it is in.
    pub(super) leaves: bool,
}

/// What the library makes when it compiles a schema.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Text {
    /// The number of the resource that contains the schema.
    pub(super) resource: usize,
    /// Length of the JSON Pointer of the schema.
    pub(super) pointer: usize,
    /// Number of JSON values that it compiles for it.
    pub(super) values: u64,
    /// Number of JSON Pointers.
    pub(super) pointers: usize,
    /// Length of all of them, and of the texts of the schema that it copies.
    pub(super) bytes: usize,
}

impl Node {
    /// Returns the schemas that it applies to the same value, each as often as it is applied.
    pub(super) fn applies(&self) -> impl Iterator<Item = usize> {
        // These keywords apply the others once more, to find what they leave.
        let times = if self.unevaluated == [false; 2] { 1 } else { 2 };
        let once = || self.same.iter().copied().chain(self.references.iter().map(|reference| reference.to));
        (0..times).flat_map(move |_| once())
    }

    /// Returns the schemas in it.
    pub(super) fn children(&self) -> impl Iterator<Item = usize> {
        let properties = self.properties.iter().map(|(_, schema)| *schema);
        let others = [&self.same, &self.inner, &self.elements].into_iter().flatten().copied();
        others.chain(properties)
    }

    /// Returns the schema that it applies to the member of this number.
    pub(super) fn property(&self, name: usize) -> Option<usize> {
        let at = self.properties.binary_search_by_key(&name, |(name, _)| *name).ok()?;
        Some(self.properties[at].1)
    }

    fn renumber(&mut self, rank: &[usize]) {
        let lists = [&mut self.same, &mut self.inner, &mut self.elements].into_iter().flatten();
        let references = self.references.iter_mut().map(|reference| &mut reference.to);
        let properties = self.properties.iter_mut().map(|(_, schema)| schema);
        lists.chain(references).chain(properties).for_each(|to| *to = rank[*to]);
    }
}

impl Graph {
    /// Reads a document.
    ///
    /// # Errors
    /// [`BadSchema`] for a limit, a reference out of the document, an unsupported dialect, or
    /// schemas that apply each other without end.
    pub(super) fn read(document: &Value, bounds: &Bounds) -> Result<Self, BadSchema> {
        measure(document, bounds)?;
        let read = Reader::read(document, bounds)?;
        let positions = read.nodes.iter().map(|node| node.elements.len()).max().unwrap_or_default();
        let mut graph = Self { nodes: read.nodes.into(), root: read.root, names: read.names, positions };
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
        let mut before = alloc::vec![0_usize; self.nodes.len()];
        for node in &self.nodes {
            node.applies().for_each(|to| before[to] += 1);
        }
        let mut ready: VecDeque<usize> = (0..before.len()).filter(|&at| before[at] == 0).collect();
        let (mut rank, mut ranked) = (alloc::vec![usize::MAX; before.len()], 0);
        while let Some(at) = ready.pop_front() {
            rank[at] = ranked;
            ranked += 1;
            for to in self.nodes[at].applies() {
                before[to] -= 1;
                if before[to] == 0 {
                    ready.push_back(to);
                }
            }
        }
        if let Some(at) = rank.iter().position(|&rank| rank == usize::MAX) {
            return Err(at);
        }
        self.nodes.iter_mut().for_each(|node| node.renumber(&rank));
        self.root = rank[self.root];
        for at in 0..rank.len() {
            while rank[at] != at {
                let to = rank[at];
                self.nodes.swap(at, to);
                rank.swap(at, to);
            }
        }
        Ok(())
    }

    /// Returns the largest number of schemas that one schema applies to one value, itself included,
    /// each counted as often as it applies.
    fn applied(&self) -> u64 {
        let mut applied = alloc::vec![0_u64; self.nodes.len()];
        for (at, node) in self.nodes.iter().enumerate().rev() {
            applied[at] = node.applies().fold(1, |sum, to| sum.saturating_add(applied[to]));
        }
        applied.into_iter().max().unwrap_or_default()
    }
}

/// Checks the depth of a document, the number of values in it, and the length of the JSON Pointers
/// of everything that may be an anchor: the library keeps these even of schemas that it does not
/// compile.
fn measure(document: &Value, bounds: &Bounds) -> Result<(), BadSchema> {
    /// The keywords that name a schema, in any dialect.
    const NAMES: [&str; 4] = ["$anchor", "$dynamicAnchor", "$id", "id"];
    let (mut unread, mut nodes, mut locations) = (alloc::vec![(document, 1, 0, 1)], 0, 0_usize);
    while let Some((value, depth, pointer, resources)) = unread.pop() {
        nodes += 1;
        if depth > bounds.depth {
            return Err(BadSchema::Limit(SchemaLimit::Depth));
        }
        if nodes > bounds.nodes {
            return Err(BadSchema::Limit(SchemaLimit::Nodes));
        }
        match value {
            Value::Array(elements) => {
                let inner = |(at, inner)| (inner, depth + 1, pointer + places::element(at), resources);
                unread.extend(elements.iter().enumerate().map(inner));
            }
            Value::Object(members) => {
                if NAMES.iter().any(|name| members.contains_key(*name)) {
                    // Each resource around it keeps its own.
                    locations = locations.saturating_add(pointer * resources);
                }
                let resources = resources + usize::from(members.contains_key("$id"));
                let inner =
                    |(name, inner): (&String, _)| (inner, depth + 1, pointer + places::segment(name), resources);
                unread.extend(members.iter().map(inner));
            }
            _ => {}
        }
    }
    if locations > bounds.locations {
        return Err(BadSchema::Limit(SchemaLimit::Locations));
    }
    Ok(())
}

/// Returns the number of JSON values in a value of limited depth, itself included.
pub(super) fn count(value: &Value) -> u64 {
    1 + match value {
        Value::Array(elements) => elements.iter().map(count).sum(),
        Value::Object(members) => members.values().map(count).sum(),
        _ => 0,
    }
}
