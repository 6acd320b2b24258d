//! Reads the graph of a document: the schemas that are reached from its root.

use super::Bounds;
use super::graph::{Node, Reference, Text, count};
use super::keywords::{self, Applies, Shape};
use super::places::{Place, Places, segment};
use crate::schema::{BadSchema, SchemaLimit};
use alloc::collections::{BTreeMap, VecDeque};
use alloc::string::String;
use alloc::vec::Vec;
use serde_json::Value;

/// The schemas of a document, in any order.
pub(super) struct Read<'a> {
    pub(super) nodes: Vec<Node>,
    pub(super) root: usize,
    /// The names of members in `properties`, with their numbers.
    pub(super) names: BTreeMap<String, usize>,
    /// The values of the schemas. `None` for those that represent several.
    pub(super) values: Vec<Option<&'a Value>>,
    /// The lengths of the URIs of the resources, by their numbers.
    pub(super) uris: Vec<usize>,
}

pub(super) struct Reader<'a> {
    bounds: &'a Bounds,
    places: Places<'a>,
    /// The schemas found so far, by the address of their value.
    found: BTreeMap<usize, usize>,
    /// The schemas without others, by their weights.
    leaves: BTreeMap<u64, usize>,
    /// The schemas that represent all dynamic anchors of a name.
    hubs: BTreeMap<&'a str, usize>,
    /// Those that have not been read.
    unread: VecDeque<(usize, Place<'a>)>,
    values: Vec<Option<&'a Value>>,
    nodes: Vec<Node>,
    names: BTreeMap<String, usize>,
    patterns: usize,
}

/// The lists of a node while it is read.
#[derive(Default)]
struct Lists {
    same: Vec<usize>,
    references: Vec<Reference>,
    properties: Vec<(usize, usize)>,
    elements: Vec<usize>,
    inner: Vec<usize>,
}

impl<'a> Reader<'a> {
    pub(super) fn read(document: &'a Value, bounds: &'a Bounds) -> Result<Read<'a>, BadSchema> {
        let mut reader = Self {
            bounds,
            places: Places::read(document, bounds)?,
            found: BTreeMap::new(),
            leaves: BTreeMap::new(),
            hubs: BTreeMap::new(),
            unread: VecDeque::new(),
            values: Vec::new(),
            nodes: Vec::new(),
            names: BTreeMap::new(),
            patterns: 0,
        };
        let root = reader.places.own(Place { value: document, resource: 0, pointer: 0 });
        let root = reader.target(root);
        while let Some((at, place)) = reader.unread.pop_front() {
            reader.nodes[at] = reader.node(place)?;
        }
        let uris = reader.places.lengths();
        let Self { nodes, names, values, .. } = reader;
        Ok(Read { nodes, root, names, values, uris })
    }

    /// Returns the number of the schema at a place, which is read later.
    fn target(&mut self, place: Place<'a>) -> usize {
        let next = self.nodes.len();
        let at = *self.found.entry(place.address()).or_insert(next);
        if at == next {
            self.add(Node::default(), Some(place.value));
            self.unread.push_back((at, place));
        }
        at
    }

    fn add(&mut self, node: Node, value: Option<&'a Value>) -> usize {
        // Doubled, the list could take more memory than all that it refers to.
        if self.nodes.len() == self.nodes.capacity() {
            self.nodes.reserve_exact(self.nodes.len() / 4 + 16);
        }
        self.nodes.push(node);
        self.values.push(value);
        self.nodes.len() - 1
    }

    /// Returns the number of a schema in another one. A schema without others is counted as a part
    /// of the one around it.
    fn schema(&mut self, place: Place<'a>, text: &mut Text) -> usize {
        let place = self.places.own(place);
        let Some(weight) = leaf(place.value) else { return self.target(place) };
        text.add(place, self.places.is_old());
        text.values += weight;
        match self.leaves.get(&weight) {
            Some(at) => *at,
            None => {
                let at = self.add(Node { weight, ..Node::default() }, None);
                self.leaves.insert(weight, at);
                at
            }
        }
    }

    fn node(&mut self, place: Place<'a>) -> Result<Node, BadSchema> {
        let mut text = Text { resource: place.resource, pointer: place.pointer, ..Text::default() };
        text.add(place, self.places.is_old());
        let mut node = Node { weight: 1, ..Node::default() };
        let mut lists = Lists::default();
        if let Value::Object(members) = place.value {
            for (keyword, value) in members {
                let inner = place.member(keyword, value);
                match (keyword.as_str(), value) {
                    ("$ref" | "$recursiveRef" | "$dynamicRef", Value::String(to)) => {
                        self.refer(place, keyword, to, &mut lists.references)?;
                    }
                    ("pattern", Value::String(pattern)) => {
                        self.pattern(pattern)?;
                        node.patterns += 1;
                    }
                    ("uniqueItems", Value::Bool(true)) => node.unique = true,
                    _ => match keywords::applies(keyword) {
                        Some(applies) => self.keyword(applies, inner, &mut node, &mut lists, &mut text)?,
                        None => node.weight += count(value),
                    },
                }
            }
            let is_some = |name: &str| members.get(name).is_some_and(|value| *value != Value::Bool(true));
            node.unevaluated = ["unevaluatedProperties", "unevaluatedItems"].map(is_some);
            // It reads the names of members.
            node.patterns += u64::from(members.contains_key("propertyNames"));
        }
        text.values += node.weight;
        let Lists { same, references, mut properties, elements, inner } = lists;
        properties.sort_unstable();
        Ok(Node {
            same: same.into(),
            references: references.into(),
            properties: properties.into(),
            elements: elements.into(),
            inner: inner.into(),
            text,
            ..node
        })
    }

    fn keyword(
        &mut self,
        applies: Applies,
        place: Place<'a>,
        node: &mut Node,
        lists: &mut Lists,
        text: &mut Text,
    ) -> Result<(), BadSchema> {
        match applies {
            Applies::Same(shape) => {
                node.weight += 1;
                self.schemas(shape, place, &mut lists.same, text)
            }
            Applies::Properties => {
                let Value::Object(members) = place.value else { return Ok(()) };
                for (name, value) in members {
                    let schema = self.schema(place.member(name, value), text);
                    let next = self.names.len();
                    let name = *self.names.entry(name.clone()).or_insert(next);
                    lists.properties.push((name, schema));
                }
                Ok(())
            }
            Applies::Elements if place.value.is_array() => self.schemas(Shape::Array, place, &mut lists.elements, text),
            Applies::Elements => self.schemas(Shape::One, place, &mut lists.inner, text),
            Applies::Inner(shape) => {
                if let (Shape::Patterns, Value::Object(members)) = (shape, place.value) {
                    node.patterns += members.len() as u64;
                }
                self.schemas(shape, place, &mut lists.inner, text)
            }
            // Compiled only if a reference leads there.
            Applies::Definitions => Ok(()),
        }
    }

    /// Adds the schemas in a keyword to a list.
    fn schemas(
        &mut self,
        shape: Shape,
        place: Place<'a>,
        list: &mut Vec<usize>,
        text: &mut Text,
    ) -> Result<(), BadSchema> {
        match (shape, place.value) {
            (Shape::One, Value::Object(_) | Value::Bool(_)) => list.push(self.schema(place, text)),
            (Shape::Array, Value::Array(elements)) => {
                let elements = elements.iter().enumerate();
                list.extend(elements.map(|(at, value)| self.schema(place.element(at, value), text)));
            }
            (Shape::Object | Shape::Patterns, Value::Object(members)) => {
                for (name, value) in members {
                    if shape == Shape::Patterns {
                        self.pattern(name)?;
                    }
                    if !value.is_array() {
                        list.push(self.schema(place.member(name, value), text));
                    }
                }
            }
            // Not valid in any dialect: compiling it says so.
            _ => {}
        }
        Ok(())
    }

    /// Counts a regular expression.
    fn pattern(&mut self, pattern: &str) -> Result<(), BadSchema> {
        self.patterns += 1;
        if pattern.len() > self.bounds.pattern_size {
            return Err(BadSchema::Limit(SchemaLimit::PatternSize));
        }
        match self.patterns > self.bounds.patterns {
            true => Err(BadSchema::Limit(SchemaLimit::Patterns)),
            false => Ok(()),
        }
    }

    /// Follows a reference. A dynamic one may lead to every anchor of its name.
    fn refer(
        &mut self,
        from: Place<'a>,
        keyword: &str,
        to: &'a str,
        references: &mut Vec<Reference>,
    ) -> Result<(), BadSchema> {
        let target = self.places.find(from, to)?;
        let leaves = target.leaves;
        references.push(Reference { to: self.target(target.place), leaves });
        if keyword != "$ref" {
            let name = to.rsplit_once('#').map_or("", |(_, name)| name);
            if let Some(hub) = self.hub(name) {
                references.push(Reference { to: hub, leaves });
            }
        }
        Ok(())
    }

    /// Returns the schema that represents all dynamic anchors of a name. `None` without one.
    /// Without it, every reference would refer to every anchor.
    fn hub(&mut self, name: &'a str) -> Option<usize> {
        if let Some(hub) = self.hubs.get(name) {
            return Some(*hub);
        }
        let anchors = self.places.dynamic(name).to_vec();
        let resource = anchors.first()?.resource;
        let to = anchors.into_iter().map(|place| Reference { to: self.target(place), leaves: false });
        let references = to.collect();
        let hub = self.add(Node { references, ..Node::default() }, None);
        self.nodes[hub].text.resource = resource;
        self.hubs.insert(name, hub);
        Some(hub)
    }
}

impl Text {
    /// Adds the JSON Pointers of a schema and of its keywords, and what is copied of those. `old`:
    /// the document has older dialects than 2020-12.
    fn add(&mut self, place: Place<'_>, old: bool) {
        self.pointers += 1;
        self.bytes += place.pointer;
        let Value::Object(members) = place.value else { return };
        for (keyword, value) in members {
            self.pointers += 1;
            self.bytes += place.pointer + segment(keyword);
            if keywords::is_copied(keyword, old) {
                self.values += count(value);
                self.bytes += length(value);
            }
            match (keywords::applies(keyword), value) {
                (None, value) => self.bytes += length(value),
                (Some(Applies::Properties), Value::Object(members)) => {
                    self.bytes += members.keys().map(String::len).sum::<usize>();
                    self.values += members.len() as u64;
                }
                (Some(_), _) => {}
            }
        }
    }
}

/// Returns the weight of a schema without others. `None` for one that has some, or whose check
/// reads more than the value itself.
fn leaf(schema: &Value) -> Option<u64> {
    let Value::Object(members) = schema else { return Some(1) };
    members.iter().try_fold(1, |weight, (keyword, value)| match keyword.as_str() {
        "$ref" | "$recursiveRef" | "$dynamicRef" | "pattern" | "uniqueItems" => None,
        keyword => match keywords::applies(keyword) {
            None => Some(weight + count(value)),
            Some(Applies::Definitions) => Some(weight),
            Some(_) => None,
        },
    })
}

/// Returns the length of all texts in a value.
fn length(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(elements) => elements.iter().map(length).sum(),
        Value::Object(members) => members.iter().map(|(name, value)| name.len() + length(value)).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}
