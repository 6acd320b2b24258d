//! The schemas of a document, and how they contain and apply each other.
//!
//! A document of small schemas takes many times its own length here. So the lists of all schemas
//! are parts of three vectors, and numbers take four bytes: what is beyond them stays at the
//! largest one, which exceeds every limit.

use alloc::vec::Vec;

/// See the [module](self). Schemas are known by their numbers.
#[derive(Debug, Default)]
pub(super) struct Nodes {
    nodes: Vec<Node>,
    contained: Vec<u32>,
    references: Vec<Reference>,
    properties: Vec<PropertyNode>,
}

/// A schema. All schemas without others, without regular expressions and of the same weight are
/// one node.
#[derive(Debug, Default)]
pub(super) struct Node {
    pub(super) parts: SchemaLists,
    /// Number of JSON values in its other keywords, and 1.
    pub(super) weight: u32,
    /// Number of its regular expressions.
    pub(super) patterns: u32,
    /// Whether it compares the elements of an array.
    pub(super) unique: bool,
    /// Whether it has `unevaluatedProperties`, and `unevaluatedItems`.
    pub(super) unevaluated: [bool; 2],
    pub(super) text: CompiledText,
}

/// What the library makes when it compiles a schema.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CompiledText {
    /// The number of the resource that contains the schema.
    pub(super) resource: u32,
    /// Length of the JSON Pointer of the schema.
    pub(super) pointer: u32,
    /// Number of JSON values that it compiles for it.
    pub(super) values: u32,
    /// Number of JSON Pointers.
    pub(super) pointers: u32,
    /// Length of all of them, and of the texts of the schema that it copies.
    pub(super) bytes: u32,
}

/// The schemas that one schema contains and refers to, by their numbers.
#[derive(Default)]
pub(super) struct Lists {
    /// Those in it that it applies to the same value.
    pub(super) same: Vec<usize>,
    /// Those that it applies to the elements at these positions.
    pub(super) elements: Vec<usize>,
    /// Those that it may apply to each member and each element.
    pub(super) inner: Vec<usize>,
    /// Those that its references apply to the same value.
    pub(super) references: Vec<Reference>,
    /// Those that it applies to members, with the numbers of their names.
    pub(super) properties: Vec<(usize, usize)>,
}

/// A reference to a schema.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reference {
    to: u32,
    /// Whether it names another resource than the one it is in.
    pub(super) leaves: bool,
}

#[derive(Clone, Copy, Debug)]
struct PropertyNode {
    name: u32,
    schema: u32,
}

/// The lists of a schema, in those of all.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SchemaLists {
    same: ListPart,
    elements: ListPart,
    inner: ListPart,
    references: ListPart,
    properties: ListPart,
}

/// A part of a list of all schemas.
#[derive(Clone, Copy, Debug, Default)]
struct ListPart {
    start: u32,
    end: u32,
}

impl ListPart {
    /// Adds these to a list.
    fn add<T>(list: &mut Vec<T>, added: impl ExactSizeIterator<Item = T>) -> Self {
        reserve(list, added.len());
        let start = narrow(list.len());
        list.extend(added);
        Self { start, end: narrow(list.len()) }
    }

    fn of<T>(self, list: &[T]) -> &[T] {
        &list[self.start as usize..self.end as usize]
    }
}

impl Reference {
    pub(super) fn new(to: usize, leaves: bool) -> Self {
        Self { to: narrow(to), leaves }
    }

    pub(super) const fn to(self) -> usize {
        self.to as usize
    }
}

impl Nodes {
    pub(super) const fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Adds a schema. Returns its number.
    pub(super) fn add(&mut self, node: Node) -> usize {
        reserve(&mut self.nodes, 1);
        self.nodes.push(node);
        self.nodes.len() - 1
    }

    /// Sets what a schema is and what it contains.
    pub(super) fn set(&mut self, at: usize, node: Node, lists: Lists) {
        let Lists { same, elements, inner, references, mut properties } = lists;
        let contained = &mut self.contained;
        let [same, elements, inner] =
            [same, elements, inner].map(|list| ListPart::add(contained, list.into_iter().map(narrow)));
        properties.sort_unstable();
        let property = |(name, schema)| PropertyNode { name: narrow(name), schema: narrow(schema) };
        let properties = ListPart::add(&mut self.properties, properties.into_iter().map(property));
        let references = ListPart::add(&mut self.references, references.into_iter());
        let parts = SchemaLists { same, elements, inner, references, properties };
        self.nodes[at] = Node { parts, ..node };
    }

    /// Returns what a schema is.
    pub(super) fn get(&self, at: usize) -> &Node {
        &self.nodes[at]
    }

    /// Returns the schemas in one that it applies to the same value.
    pub(super) fn same(&self, at: usize) -> impl Iterator<Item = usize> {
        numbers(self.nodes[at].parts.same.of(&self.contained))
    }

    /// Returns the schemas that one may apply to each member and each element.
    pub(super) fn inner(&self, at: usize) -> impl ExactSizeIterator<Item = usize> {
        numbers(self.nodes[at].parts.inner.of(&self.contained))
    }

    /// Returns the references of a schema, which apply others to the same value.
    pub(super) fn references(&self, at: usize) -> &[Reference] {
        self.nodes[at].parts.references.of(&self.references)
    }

    /// Returns the schema that one applies to the member of this number.
    pub(super) fn property(&self, at: usize, name: usize) -> Option<usize> {
        let properties = self.nodes[at].parts.properties.of(&self.properties);
        let found = properties.binary_search_by_key(&narrow(name), |property| property.name).ok()?;
        Some(properties[found].schema as usize)
    }

    /// Returns the schema that one applies to the element at this position.
    pub(super) fn element(&self, at: usize, position: usize) -> Option<usize> {
        Some(*self.nodes[at].parts.elements.of(&self.contained).get(position)? as usize)
    }

    /// Returns the largest number of positions of elements with schemas of their own.
    pub(super) fn positions(&self) -> usize {
        let positions = self.nodes.iter().map(|node| node.parts.elements.end - node.parts.elements.start);
        positions.max().unwrap_or_default() as usize
    }

    /// Returns the schemas that one applies to the same value, each as often as it is applied.
    pub(super) fn applies(&self, at: usize) -> impl Iterator<Item = usize> {
        // These keywords apply the others once more, to find what they leave.
        let times = if self.nodes[at].unevaluated == [false; 2] { 1 } else { 2 };
        let once = move || self.same(at).chain(self.references(at).iter().map(|reference| reference.to()));
        (0..times).flat_map(move |_| once())
    }

    /// Returns the schemas in one.
    pub(super) fn children(&self, at: usize) -> impl Iterator<Item = usize> {
        let SchemaLists { elements, properties, .. } = self.nodes[at].parts;
        let properties = properties.of(&self.properties).iter().map(|property| property.schema as usize);
        self.same(at).chain(self.inner(at)).chain(numbers(elements.of(&self.contained))).chain(properties)
    }

    /// Puts each schema at its new number.
    pub(super) fn reorder(&mut self, mut rank: Vec<u32>) {
        let references = self.references.iter_mut().map(|reference| &mut reference.to);
        let properties = self.properties.iter_mut().map(|property| &mut property.schema);
        self.contained.iter_mut().chain(references).chain(properties).for_each(|to| *to = rank[*to as usize]);
        for at in 0..rank.len() {
            while rank[at] as usize != at {
                let to = rank[at] as usize;
                self.nodes.swap(at, to);
                rank.swap(at, to);
            }
        }
    }
}

fn numbers(list: &[u32]) -> impl ExactSizeIterator<Item = usize> {
    list.iter().map(|&number| number as usize)
}

/// Returns a number in four bytes.
pub(super) fn narrow(number: impl TryInto<u32>) -> u32 {
    number.try_into().unwrap_or(u32::MAX)
}

/// Reserves room. Doubled, a list could take more memory than all that it refers to.
fn reserve<T>(list: &mut Vec<T>, added: usize) {
    if list.capacity() - list.len() < added {
        list.reserve_exact(added.max(list.len() / 8 + 16));
    }
}
