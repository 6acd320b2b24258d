//! Reads the graph of a document: the schemas that are reached from its root.

use super::Bounds;
use super::graph::count;
use super::keywords::{self, Applies, Shape};
use super::nodes::{CompiledText, Lists, Node, Nodes, Reference, narrow};
use super::places::{Places, SchemaPlace, segment};
use crate::schema::{BadSchema, SchemaLimit};
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use serde_json::Value;

/// The schemas of a document, in any order.
pub(super) struct SchemaSet<'a> {
    pub(super) nodes: Nodes,
    pub(super) root: usize,
    /// The names of members in `properties`, with their numbers.
    pub(super) names: BTreeMap<String, usize>,
    /// The values of the schemas, without those that represent several.
    pub(super) values: Vec<Option<&'a Value>>,
    /// The lengths of the URIs of the resources, by their numbers.
    pub(super) uris: Vec<usize>,
}

pub(super) struct SchemaReader<'a> {
    bounds: &'a Bounds,
    places: Places<'a>,
    /// The schemas found so far, by the address of their value.
    found: BTreeMap<usize, u32>,
    /// The schemas without others, by their weights.
    leaves: BTreeMap<u32, usize>,
    /// The schemas that represent all dynamic anchors of a name.
    hubs: BTreeMap<&'a str, usize>,
    values: Vec<Option<&'a Value>>,
    nodes: Nodes,
    names: BTreeMap<String, usize>,
    patterns: usize,
}

impl<'a> SchemaReader<'a> {
    pub(super) fn read(document: &'a Value, bounds: &'a Bounds) -> Result<SchemaSet<'a>, BadSchema> {
        let mut reader = Self {
            bounds,
            places: Places::read(document, bounds)?,
            found: BTreeMap::new(),
            leaves: BTreeMap::new(),
            hubs: BTreeMap::new(),
            values: Vec::new(),
            nodes: Nodes::default(),
            names: BTreeMap::new(),
            patterns: 0,
        };
        let root = reader.places.own(SchemaPlace { value: document, resource: 0, pointer: 0 });
        let root = reader.target(root);
        // They are read in the order in which they are found.
        let mut next = 0;
        while let Some(&value) = reader.values.get(next) {
            if let Some(value) = value {
                reader.node(next, value)?;
            }
            next += 1;
        }
        let uris = reader.places.lengths();
        let Self { nodes, names, values, .. } = reader;
        Ok(SchemaSet { nodes, root, names, values, uris })
    }

    /// Returns the number of the schema at a place, which is read later.
    fn target(&mut self, place: SchemaPlace<'a>) -> usize {
        let next = self.nodes.len();
        let at = *self.found.entry(place.address()).or_insert(narrow(next)) as usize;
        if at == next {
            let text = CompiledText {
                resource: narrow(place.resource),
                pointer: narrow(place.pointer),
                ..CompiledText::default()
            };
            self.add(Node { text, ..Node::default() }, Some(place.value));
        }
        at
    }

    fn add(&mut self, node: Node, value: Option<&'a Value>) -> usize {
        self.values.push(value);
        self.nodes.add(node)
    }

    /// Returns the number of a schema in another one. A schema without others is counted as a part
    /// of the one around it.
    fn schema(&mut self, place: SchemaPlace<'a>, text: &mut CompiledText) -> usize {
        let place = self.places.own(place);
        let Some(weight) = leaf(place.value) else { return self.target(place) };
        text.add(place, self.places.is_old());
        text.values = text.values.saturating_add(weight);
        match self.leaves.get(&weight) {
            Some(at) => *at,
            None => {
                let at = self.add(Node { weight, ..Node::default() }, None);
                self.leaves.insert(weight, at);
                at
            }
        }
    }

    /// Reads a schema that was found.
    fn node(&mut self, at: usize, value: &'a Value) -> Result<(), BadSchema> {
        let mut text = self.nodes.get(at).text;
        let place = SchemaPlace { value, resource: text.resource as usize, pointer: text.pointer as usize };
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
                        None => node.weight = node.weight.saturating_add(narrow(count(value))),
                    },
                }
            }
            let is_some = |name: &str| members.get(name).is_some_and(|value| *value != Value::Bool(true));
            node.unevaluated = ["unevaluatedProperties", "unevaluatedItems"].map(is_some);
            // It reads the names of members.
            node.patterns += u32::from(members.contains_key("propertyNames"));
        }
        text.values = text.values.saturating_add(node.weight);
        self.nodes.set(at, Node { text, ..node }, lists);
        Ok(())
    }

    fn keyword(
        &mut self,
        applies: Applies,
        place: SchemaPlace<'a>,
        node: &mut Node,
        lists: &mut Lists,
        text: &mut CompiledText,
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
                    node.patterns += narrow(members.len());
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
        place: SchemaPlace<'a>,
        list: &mut Vec<usize>,
        text: &mut CompiledText,
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
        from: SchemaPlace<'a>,
        keyword: &str,
        to: &'a str,
        references: &mut Vec<Reference>,
    ) -> Result<(), BadSchema> {
        let target = self.places.find(from, to)?;
        let leaves = target.leaves;
        references.push(Reference::new(self.target(target.place), leaves));
        if keyword != "$ref" {
            let name = to.rsplit_once('#').map_or("", |(_, name)| name);
            if let Some(hub) = self.hub(name) {
                references.push(Reference::new(hub, leaves));
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
        let references = anchors.into_iter().map(|place| Reference::new(self.target(place), false)).collect();
        let text = CompiledText { resource: narrow(resource), ..CompiledText::default() };
        let hub = self.add(Node::default(), None);
        self.nodes.set(hub, Node { text, ..Node::default() }, Lists { references, ..Lists::default() });
        self.hubs.insert(name, hub);
        Some(hub)
    }
}

impl CompiledText {
    /// Adds the JSON Pointers of a schema and of its keywords, and what is copied of those. `old`:
    /// the document has older dialects than 2020-12.
    fn add(&mut self, place: SchemaPlace<'_>, old: bool) {
        let (mut pointers, mut bytes, mut values) = (1, place.pointer, 0_u64);
        if let Value::Object(members) = place.value {
            for (keyword, value) in members {
                pointers += 1;
                bytes += place.pointer + segment(keyword);
                if keywords::is_copied(keyword, old) {
                    values += count(value);
                    bytes += length(value);
                }
                match (keywords::applies(keyword), value) {
                    (None, value) => bytes += length(value),
                    (Some(Applies::Properties), Value::Object(members)) => {
                        bytes += members.keys().map(String::len).sum::<usize>();
                        values += members.len() as u64;
                    }
                    (Some(_), _) => {}
                }
            }
        }
        self.pointers = self.pointers.saturating_add(pointers);
        self.bytes = self.bytes.saturating_add(narrow(bytes));
        self.values = self.values.saturating_add(narrow(values));
    }
}

/// Returns the weight of a schema without others. `None` for one that has some, or whose check
/// reads more than the value itself.
fn leaf(schema: &Value) -> Option<u32> {
    let Value::Object(members) = schema else { return Some(1) };
    members.iter().try_fold(1, |weight: u32, (keyword, value)| match keyword.as_str() {
        "$ref" | "$recursiveRef" | "$dynamicRef" | "pattern" | "uniqueItems" => None,
        keyword => match keywords::applies(keyword) {
            None => Some(weight.saturating_add(narrow(count(value)))),
            Some(Applies::Definitions) => Some(weight),
            // Not valid in any dialect, with any of these keywords.
            Some(_) if !matches!(value, Value::Object(_) | Value::Array(_) | Value::Bool(_)) => Some(weight + 1),
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
