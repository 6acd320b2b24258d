//! What the library would compile for a schema, before it does. It compiles most schemas once. It
//! compiles these again, and all schemas in them:
//!
//! * what a reference leads to, beside the schema around it;
//! * what a reference leads to, for each sequence of resources on the way there;
//! * for `unevaluatedProperties` and `unevaluatedItems`, all schemas that are applied to the same
//!   value, and those again at each place from which a reference leads to them.
//!
//! All of these multiply: a schema of 2 KB can take any time and memory. So the steps of the
//! library are gone through and counted, until the bounds are reached.

use super::Bounds;
use super::graph::Graph;
use super::nodes::{CompiledText, Node, Reference};
use crate::schema::{BadSchema, SchemaLimit};
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;

/// Maximum number of schemas that are compiled for each other in a row. The library calls itself
/// for each, which takes 2 to 3 KiB of the stack in a release build.
const DEPTH: usize = 320;

/// The number of references in a row that the library follows by calling itself.
const NESTED: usize = 8;

/// Checks that the library compiles this graph within the bounds. `uris`: the lengths of the URIs
/// of the resources. Takes no longer than the bounds allow.
///
/// # Errors
/// [`SchemaLimit::Compiled`] or [`SchemaLimit::Locations`].
pub(super) fn measure(graph: &Graph, uris: &[usize], bounds: &Bounds) -> Result<(), BadSchema> {
    let start = CompilationStart { target: graph.root, scope: 0, path: 0 };
    let mut compilation = Compilation {
        graph,
        uris,
        values: bounds.compiled,
        bytes: bounds.locations,
        depth: 0,
        deepest: 0,
        unread: [start].into(),
        started: BTreeSet::new(),
        compiled: BTreeSet::new(),
        evaluating: Vec::new(),
        sites: BTreeMap::new(),
        scopes: BTreeMap::new(),
        lengths: [0].into(),
        paths: [(graph.root, 0)].into(),
    };
    while let Some(start) = compilation.unread.pop_front() {
        compilation.start(start)?;
    }
    // Each target may be reached at the deepest place of another one.
    let nested = compilation.started.len().min(NESTED) + 1;
    match compilation.deepest * nested <= DEPTH {
        true => Ok(()),
        false => Err(BadSchema::Limit(SchemaLimit::Compiled)),
    }
}

struct Compilation<'a> {
    graph: &'a Graph,
    uris: &'a [usize],
    /// What is left of [`Bounds::compiled`].
    values: u64,
    /// What is left of [`Bounds::locations`].
    bytes: usize,
    /// The number of schemas that are compiled for each other at the moment.
    depth: usize,
    deepest: usize,
    unread: VecDeque<CompilationStart>,
    /// The targets of references, each with its scope.
    started: BTreeSet<(usize, usize)>,
    /// The schemas that were compiled since the last start, each with its site and scope.
    compiled: BTreeSet<(usize, usize, usize)>,
    /// The schemas whose evaluated members or elements are being found.
    evaluating: Vec<(usize, usize)>,
    /// The sites, by the site and the schema of the reference.
    sites: BTreeMap<(usize, usize), usize>,
    /// The scopes, by the scope before them and the resource that they add.
    scopes: BTreeMap<(usize, usize), usize>,
    /// The lengths of the URIs in the scopes.
    lengths: Vec<usize>,
    /// The targets on the way to a target, each with the way to it.
    paths: Vec<(usize, usize)>,
}

/// The target of a reference: the library compiles it on its own.
struct CompilationStart {
    target: usize,
    /// The resources on the way to it, by their number.
    scope: usize,
    /// The targets on the way to it, by their number.
    path: usize,
}

/// Where a schema is compiled.
#[derive(Clone, Copy)]
struct Site {
    /// Its number. 0 is that of the schema.
    number: usize,
    /// Length of the JSON Pointer of the target there, and that of the target itself.
    pointers: (usize, usize),
    scope: usize,
    path: usize,
}

impl Site {
    /// Returns the length of the JSON Pointer of a schema there.
    fn pointer(&self, node: &Node) -> usize {
        let (there, target) = self.pointers;
        (there + node.text.pointer as usize).saturating_sub(target)
    }
}

impl Compilation<'_> {
    fn start(&mut self, CompilationStart { target, scope, path }: CompilationStart) -> Result<(), BadSchema> {
        self.compiled.clear();
        self.sites.clear();
        self.compile(target, Site { number: 0, pointers: (0, 0), scope, path })
    }

    fn compile(&mut self, at: usize, site: Site) -> Result<(), BadSchema> {
        let graph = self.graph;
        let node = graph.nodes.get(at);
        if !self.compiled.insert((at, site.number, site.scope)) {
            return Ok(());
        }
        self.spend(at, site)?;
        self.deeper(|compilation| {
            graph.nodes.children(at).try_for_each(|child| compilation.compile(child, site))?;
            graph.nodes.references(at).iter().try_for_each(|reference| compilation.refer(node, *reference, site))?;
            let mut kinds = (0..2).filter(|&kind| node.unevaluated[kind]);
            kinds.try_for_each(|kind| compilation.evaluate(at, site, kind))
        })
    }

    /// Compiles what finds the members (`kind` 0) or elements (1) that a schema evaluates.
    fn evaluate(&mut self, at: usize, site: Site, kind: usize) -> Result<(), BadSchema> {
        let graph = self.graph;
        let node = graph.nodes.get(at);
        self.spend(at, site)?;
        self.evaluating.push((at, kind));
        self.deeper(|compilation| {
            for child in graph.nodes.same(at) {
                compilation.compile(child, site)?;
                compilation.evaluate(child, site, kind)?;
            }
            graph.nodes.inner(at).try_for_each(|child| compilation.compile(child, site))?;
            for &reference in graph.nodes.references(at) {
                if compilation.evaluating.contains(&(reference.to(), kind)) {
                    continue;
                }
                let next = compilation.sites.len() + 1;
                let number = *compilation.sites.entry((site.number, at)).or_insert(next);
                let pointers = (site.pointer(node), graph.nodes.get(reference.to()).text.pointer as usize);
                let scope = compilation.scope(node, reference, site.scope);
                compilation.evaluate(reference.to(), Site { number, pointers, scope, ..site }, kind)?;
            }
            Ok(())
        })?;
        self.evaluating.pop();
        Ok(())
    }

    /// Starts the target of a reference, unless it is compiled in this scope, or on the way there.
    fn refer(&mut self, node: &Node, reference: Reference, site: Site) -> Result<(), BadSchema> {
        let target = reference.to();
        let scope = self.scope(node, reference, site.scope);
        let is_new = self.started.range((target, 0)..=(target, usize::MAX)).next().is_none();
        if !is_new {
            // The references of one name to many anchors multiply.
            self.values = self.values.checked_sub(1).ok_or(BadSchema::Limit(SchemaLimit::Compiled))?;
            if self.started.contains(&(target, scope)) || self.is_on(site.path, target) {
                return Ok(());
            }
        }
        self.started.insert((target, scope));
        self.paths.push((target, site.path));
        self.unread.push_back(CompilationStart { target, scope, path: self.paths.len() - 1 });
        Ok(())
    }

    /// Returns whether a target is on a path.
    fn is_on(&self, mut path: usize, target: usize) -> bool {
        while path != 0 && self.paths[path].0 != target {
            path = self.paths[path].1;
        }
        path != 0
    }

    /// Returns the scope of the target of a reference in this scope.
    fn scope(&mut self, node: &Node, reference: Reference, scope: usize) -> usize {
        if scope != 0 && !reference.leaves {
            return scope;
        }
        let resource = node.text.resource as usize;
        let next = self.lengths.len();
        let found = *self.scopes.entry((scope, resource)).or_insert(next);
        if found == next {
            self.lengths.push(self.lengths[scope] + self.uris[resource]);
        }
        found
    }

    /// Counts what the library makes for a schema.
    fn spend(&mut self, at: usize, site: Site) -> Result<(), BadSchema> {
        let CompiledText { resource, values, pointers, bytes, .. } = self.graph.nodes.get(at).text;
        self.values = self.values.checked_sub(values.into()).ok_or(BadSchema::Limit(SchemaLimit::Compiled))?;
        // The first resource has no URI.
        let uri = if resource == 0 { 0 } else { self.uris[resource as usize] };
        let (there, target) = site.pointers;
        let pointers = pointers as usize;
        let pointers = (bytes as usize).saturating_sub(pointers * target) + pointers * (there + uri);
        // The library looks schemas up by their scopes.
        let bytes = pointers + self.graph.nodes.references(at).len() * uri + self.lengths[site.scope];
        self.bytes = self.bytes.checked_sub(bytes).ok_or(BadSchema::Limit(SchemaLimit::Locations))?;
        Ok(())
    }

    fn deeper(&mut self, f: impl FnOnce(&mut Self) -> Result<(), BadSchema>) -> Result<(), BadSchema> {
        if self.depth == DEPTH {
            return Err(BadSchema::Limit(SchemaLimit::Compiled));
        }
        self.depth += 1;
        self.deepest = self.deepest.max(self.depth);
        f(self)?;
        self.depth -= 1;
        Ok(())
    }
}
