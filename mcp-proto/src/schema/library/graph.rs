//! The schemas of a document, and which of them apply to the same value. It finds what a schema
//! from a hostile peer could cost before it is compiled, and what a check could cost before it runs
//! (2026-07-28, JSON Schema usage: composition keywords). It never says that a value matches.

use super::Bounds;
use super::keywords::{self, Applies, Shape};
use crate::schema::{BadSchema, SchemaLimit};
use alloc::borrow::ToOwned;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use iri_string::format::ToDedicatedString;
use iri_string::types::{UriAbsoluteString, UriReferenceStr, UriStr};
use serde_json::Value;

/// The base of the references in a document without `$id`.
const NO_BASE: &str = "json-schema:///";

/// See the [module](self). A schema that applies another one to the same value is before it.
#[derive(Debug, Default)]
pub(super) struct Graph {
    pub(super) nodes: Vec<Node>,
    pub(super) root: usize,
    /// The names of members in `properties`, with their numbers.
    pub(super) names: BTreeMap<String, usize>,
    /// The number of positions of elements with schemas of their own.
    pub(super) positions: usize,
}

#[derive(Debug, Default)]
pub(super) struct Node {
    /// The schemas that it applies to the same value.
    pub(super) same: Vec<usize>,
    /// The schemas that it applies to members, by the numbers of their names.
    pub(super) properties: BTreeMap<usize, usize>,
    /// The schemas that it applies to the elements at these positions.
    pub(super) elements: Vec<usize>,
    /// The schemas that it may apply to each member and each element.
    pub(super) inner: Vec<usize>,
    /// Number of JSON values in its other keywords, and 1.
    pub(super) weight: u64,
    /// Number of its regular expressions.
    pub(super) patterns: u64,
    /// Whether it compares the elements of an array.
    pub(super) unique: bool,
}

/// A schema of the document.
#[derive(Clone)]
struct Place<'a> {
    value: &'a Value,
    /// Its JSON Pointer, for errors.
    path: String,
    /// The URI of the resource that contains it.
    base: UriAbsoluteString,
}

/// A resource: a schema with `$id`, or the document.
struct Resource<'a> {
    root: &'a Value,
    path: String,
}

struct Reader<'a> {
    bounds: &'a Bounds,
    resources: BTreeMap<String, Resource<'a>>,
    /// The places of the anchors, by resource and name.
    anchors: BTreeMap<(String, String), Place<'a>>,
    /// The places of the dynamic anchors, by name.
    dynamic: BTreeMap<String, Vec<Place<'a>>>,
    /// The schemas found so far, by the address of their value.
    found: BTreeMap<usize, usize>,
    /// Those that have not been read.
    unread: VecDeque<Place<'a>>,
    paths: Vec<String>,
    nodes: Vec<Node>,
    names: BTreeMap<String, usize>,
    patterns: usize,
}

impl Graph {
    /// Reads a document.
    ///
    /// # Errors
    /// [`BadSchema`] for a limit, a reference out of the document, an unsupported dialect, or
    /// schemas that apply each other without end.
    pub(super) fn read(document: &Value, bounds: &Bounds) -> Result<Self, BadSchema> {
        measure(document, bounds)?;
        let mut reader = Reader {
            bounds,
            resources: BTreeMap::new(),
            anchors: BTreeMap::new(),
            dynamic: BTreeMap::new(),
            found: BTreeMap::new(),
            unread: VecDeque::new(),
            paths: Vec::new(),
            nodes: Vec::new(),
            names: BTreeMap::new(),
            patterns: 0,
        };
        let base = uri(NO_BASE).ok_or_else(|| BadSchema::reference(NO_BASE))?;
        let root = Place { value: document, path: String::new(), base };
        reader.survey(root.clone())?;
        let root = reader.place_of(root)?;
        reader.node(root.clone());
        while let Some(place) = reader.unread.pop_front() {
            reader.read(&place)?;
        }
        let positions = reader.nodes.iter().map(|node| node.elements.len()).max().unwrap_or_default();
        let graph = Self { nodes: reader.nodes, root: 0, names: reader.names, positions }.sorted(&reader.paths)?;
        match graph.applied() <= bounds.applied {
            true => Ok(graph),
            false => Err(BadSchema::Limit(SchemaLimit::Work)),
        }
    }

    /// Puts each schema before those that it applies to the same value.
    ///
    /// # Errors
    /// [`BadSchema::Cycle`] if there is no such order.
    fn sorted(mut self, paths: &[String]) -> Result<Self, BadSchema> {
        let mut before = alloc::vec![0_usize; self.nodes.len()];
        for node in &self.nodes {
            node.same.iter().for_each(|&to| before[to] += 1);
        }
        let mut ready: VecDeque<usize> = (0..before.len()).filter(|&at| before[at] == 0).collect();
        let (mut rank, mut ranked) = (alloc::vec![usize::MAX; before.len()], 0);
        while let Some(at) = ready.pop_front() {
            rank[at] = ranked;
            ranked += 1;
            for &to in &self.nodes[at].same {
                before[to] -= 1;
                if before[to] == 0 {
                    ready.push_back(to);
                }
            }
        }
        if let Some(at) = rank.iter().position(|&rank| rank == usize::MAX) {
            return Err(BadSchema::Cycle(paths[at].clone()));
        }
        let mut nodes: Vec<(usize, Node)> = rank.iter().copied().zip(core::mem::take(&mut self.nodes)).collect();
        nodes.sort_unstable_by_key(|(rank, _)| *rank);
        let moved = |to: &mut usize| *to = rank[*to];
        let nodes = nodes.into_iter().map(|(_, mut node)| {
            node.same.iter_mut().for_each(moved);
            node.properties.values_mut().for_each(moved);
            node.elements.iter_mut().for_each(moved);
            node.inner.iter_mut().for_each(moved);
            node
        });
        Ok(Self { nodes: nodes.collect(), root: rank[self.root], ..self })
    }

    /// Returns the largest number of schemas that one schema applies to one value, itself included,
    /// each counted as often as it applies.
    fn applied(&self) -> u64 {
        let mut applied = alloc::vec![0_u64; self.nodes.len()];
        for (at, node) in self.nodes.iter().enumerate().rev() {
            applied[at] = node.same.iter().fold(1, |sum, &to| sum.saturating_add(applied[to]));
        }
        applied.into_iter().max().unwrap_or_default()
    }
}

impl<'a> Reader<'a> {
    /// Registers the resources and anchors of a document, and checks its dialects.
    fn survey(&mut self, root: Place<'a>) -> Result<(), BadSchema> {
        let resource = Resource { root: root.value, path: String::new() };
        self.resources.insert(root.base.as_str().to_owned(), resource);
        let mut unread = alloc::vec![root];
        while let Some(mut place) = unread.pop() {
            let Value::Object(members) = place.value else {
                let Value::Array(elements) = place.value else { continue };
                unread.extend(elements.iter().enumerate().map(|(at, value)| place.inner(&at.to_string(), value)));
                continue;
            };
            if let Some(Value::String(dialect)) = members.get("$schema") {
                keywords::dialect(dialect)?;
            }
            if let Some(Value::String(id)) = members.get("$id") {
                self.identify(&mut place, id)?;
            }
            for keyword in ["$anchor", "$dynamicAnchor"] {
                if let Some(Value::String(name)) = members.get(keyword) {
                    let base = place.base.as_str().to_owned();
                    self.anchors.entry((base, name.clone())).or_insert_with(|| place.clone());
                    if keyword == "$dynamicAnchor" {
                        self.dynamic.entry(name.clone()).or_default().push(place.clone());
                    }
                }
            }
            if members.get("$recursiveAnchor") == Some(&Value::Bool(true)) {
                self.dynamic.entry(String::new()).or_default().push(place.clone());
            }
            let is_data = |name: &str| matches!(name, "enum" | "const" | "default" | "examples");
            let schemas = members.iter().filter(|(name, _)| !is_data(name));
            unread.extend(schemas.map(|(name, value)| place.inner(name, value)));
        }
        Ok(())
    }

    /// Registers the resource that `$id` names. In draft 7 an `$id` that is only a fragment is an
    /// anchor.
    fn identify(&mut self, place: &mut Place<'a>, id: &str) -> Result<(), BadSchema> {
        let (id, fragment) = id.split_once('#').unwrap_or((id, ""));
        if !id.is_empty() {
            place.base = resolve(&place.base, id)?;
            let resource = Resource { root: place.value, path: place.path.clone() };
            self.resources.entry(place.base.as_str().to_owned()).or_insert(resource);
        }
        if !fragment.is_empty() {
            let anchor = (place.base.as_str().to_owned(), fragment.to_owned());
            self.anchors.entry(anchor).or_insert_with(|| place.clone());
        }
        Ok(())
    }

    /// Returns a place with the base of its own `$id`.
    fn place_of(&self, mut place: Place<'a>) -> Result<Place<'a>, BadSchema> {
        if let Some(id) = place.value.get("$id").and_then(Value::as_str) {
            let id = id.split_once('#').map_or(id, |(id, _)| id);
            if !id.is_empty() {
                place.base = resolve(&place.base, id)?;
            }
        }
        Ok(place)
    }

    /// Returns the number of the schema at a place, which is read later.
    fn node(&mut self, place: Place<'a>) -> usize {
        let next = self.nodes.len();
        let at = *self.found.entry(core::ptr::from_ref(place.value) as usize).or_insert(next);
        if at == next {
            self.nodes.push(Node::default());
            self.paths.push(place.path.clone());
            self.unread.push_back(place);
        }
        at
    }

    fn read(&mut self, place: &Place<'a>) -> Result<(), BadSchema> {
        let at = self.node(place.clone());
        let mut node = Node { weight: 1, ..Node::default() };
        if let Value::Object(members) = place.value {
            for (keyword, value) in members {
                let inner = place.inner(keyword, value);
                match (keyword.as_str(), value) {
                    ("$ref" | "$recursiveRef" | "$dynamicRef", Value::String(to)) => {
                        self.refer(place, keyword, to, &mut node)?;
                    }
                    ("pattern", Value::String(pattern)) => {
                        self.pattern(pattern)?;
                        node.patterns += 1;
                    }
                    ("uniqueItems", Value::Bool(true)) => node.unique = true,
                    _ => match keywords::applies(keyword) {
                        Some(applies) => self.keyword(applies, &inner, &mut node)?,
                        None => node.weight += count(value),
                    },
                }
            }
            // These keywords apply the others once more, to find what they leave.
            if members.contains_key("unevaluatedProperties") || members.contains_key("unevaluatedItems") {
                node.same.extend(node.same.clone());
            }
            // It reads the names of members.
            node.patterns += u64::from(members.contains_key("propertyNames"));
        }
        self.nodes[at] = node;
        Ok(())
    }

    fn keyword(&mut self, applies: Applies, place: &Place<'a>, node: &mut Node) -> Result<(), BadSchema> {
        let to = match applies {
            Applies::Same(shape) => {
                node.weight += 1;
                node.same.extend(self.schemas(shape, place)?);
                return Ok(());
            }
            Applies::Properties => {
                let Value::Object(members) = place.value else { return Ok(()) };
                for (name, value) in members {
                    let schema = self.schema(place.inner(name, value))?;
                    let next = self.names.len();
                    let name = *self.names.entry(name.clone()).or_insert(next);
                    node.properties.insert(name, schema);
                }
                return Ok(());
            }
            Applies::Elements if place.value.is_array() => {
                node.elements.extend(self.schemas(Shape::Array, place)?);
                return Ok(());
            }
            Applies::Elements => self.schemas(Shape::One, place)?,
            Applies::Inner(shape) => {
                if let (Shape::Patterns, Value::Object(members)) = (shape, place.value) {
                    node.patterns += members.len() as u64;
                }
                self.schemas(shape, place)?
            }
            Applies::Definitions => {
                // Compiled only if a reference leads there.
                return Ok(());
            }
        };
        node.inner.extend(to);
        Ok(())
    }

    /// Returns the schemas in a keyword.
    fn schemas(&mut self, shape: Shape, place: &Place<'a>) -> Result<Vec<usize>, BadSchema> {
        match (shape, place.value) {
            (Shape::One, Value::Object(_) | Value::Bool(_)) => Ok(alloc::vec![self.schema(place.clone())?]),
            (Shape::Array, Value::Array(elements)) => {
                let elements = elements.iter().enumerate();
                elements.map(|(at, value)| self.schema(place.inner(&at.to_string(), value))).collect()
            }
            (Shape::Object | Shape::Patterns, Value::Object(members)) => {
                let mut schemas = Vec::new();
                for (name, value) in members {
                    if shape == Shape::Patterns {
                        self.pattern(name)?;
                    }
                    if !value.is_array() {
                        schemas.push(self.schema(place.inner(name, value))?);
                    }
                }
                Ok(schemas)
            }
            // Not valid in any dialect: compiling it says so.
            _ => Ok(Vec::new()),
        }
    }

    fn schema(&mut self, place: Place<'a>) -> Result<usize, BadSchema> {
        let place = self.place_of(place)?;
        Ok(self.node(place))
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
    fn refer(&mut self, place: &Place<'a>, keyword: &str, to: &str, node: &mut Node) -> Result<(), BadSchema> {
        let target = self.find(place, to)?;
        node.same.push(self.schema(target)?);
        if keyword != "$ref" {
            let name = to.rsplit_once('#').map_or("", |(_, name)| name).to_owned();
            for place in self.dynamic.get(&name).cloned().unwrap_or_default() {
                let schema = self.schema(place)?;
                if !node.same.contains(&schema) {
                    node.same.push(schema);
                }
            }
        }
        Ok(())
    }

    /// Returns the place that a reference leads to.
    ///
    /// # Errors
    /// [`BadSchema::Reference`] if it is not in this document.
    fn find(&self, from: &Place<'a>, to: &str) -> Result<Place<'a>, BadSchema> {
        let missing = || BadSchema::reference(to);
        let (uri, fragment) = to.split_once('#').unwrap_or((to, ""));
        let base = if uri.is_empty() { from.base.clone() } else { resolve(&from.base, uri)? };
        let resource = self.resources.get(base.as_str()).ok_or_else(missing)?;
        let fragment = decode(fragment).ok_or_else(missing)?;
        if !fragment.is_empty() && !fragment.starts_with('/') {
            let anchor = (base.as_str().to_owned(), fragment);
            return self.anchors.get(&anchor).cloned().ok_or_else(missing);
        }
        let mut place = Place { value: resource.root, path: resource.path.clone(), base };
        for key in fragment.split('/').skip(1) {
            let name = key.replace("~1", "/").replace("~0", "~");
            let value = match place.value {
                Value::Object(members) => members.get(&name),
                Value::Array(elements) => key.parse().ok().and_then(|at: usize| elements.get(at)),
                _ => None,
            };
            place = self.place_of(place.inner(&name, value.ok_or_else(missing)?))?;
        }
        Ok(place)
    }
}

impl<'a> Place<'a> {
    /// Returns the place of a member or an element.
    fn inner(&self, key: &str, value: &'a Value) -> Self {
        let key = key.replace('~', "~0").replace('/', "~1");
        Self { value, path: format!("{}/{key}", self.path), base: self.base.clone() }
    }
}

/// Checks the depth of a document, and the number of values in it.
fn measure(document: &Value, bounds: &Bounds) -> Result<(), BadSchema> {
    let (mut unread, mut nodes) = (alloc::vec![(document, 1)], 0);
    while let Some((value, depth)) = unread.pop() {
        nodes += 1;
        if depth > bounds.depth {
            return Err(BadSchema::Limit(SchemaLimit::Depth));
        }
        if nodes > bounds.nodes {
            return Err(BadSchema::Limit(SchemaLimit::Nodes));
        }
        match value {
            Value::Array(elements) => unread.extend(elements.iter().map(|inner| (inner, depth + 1))),
            Value::Object(members) => unread.extend(members.values().map(|inner| (inner, depth + 1))),
            _ => {}
        }
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

fn uri(text: &str) -> Option<UriAbsoluteString> {
    let uri = UriStr::new(text).ok()?;
    UriAbsoluteString::try_from(uri.normalize().to_dedicated_string().to_string()).ok()
}

/// Resolves a reference without a fragment against the URI of its resource.
fn resolve(base: &UriAbsoluteString, reference: &str) -> Result<UriAbsoluteString, BadSchema> {
    let resolved = UriReferenceStr::new(reference).ok().map(|to| to.resolve_against(base).to_string());
    resolved.and_then(|resolved| uri(&resolved)).ok_or_else(|| BadSchema::reference(reference))
}

/// Decodes the percent-encoding of a fragment.
fn decode(fragment: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(fragment.len());
    let mut rest = fragment.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        rest = after;
        if first == b'%' {
            let (digits, after) = rest.split_at_checked(2)?;
            bytes.push(u8::from_str_radix(core::str::from_utf8(digits).ok()?, 16).ok()?);
            rest = after;
        } else {
            bytes.push(first);
        }
    }
    String::from_utf8(bytes).ok()
}
