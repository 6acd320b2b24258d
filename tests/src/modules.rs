//! The modules of one crate: their items and imports, the targets of paths, and the public names.

use std::collections::{BTreeMap, BTreeSet};

use crate::items::{Item, is_word, items};
use crate::sources::Source;

/// Where an item is defined: the path of its module, empty for the root, and its name.
pub type Definition = (String, String);

/// One module.
#[derive(Debug, Default)]
pub struct Module {
    /// The path of its file.
    pub file: String,
    /// Its items, without those for tests.
    pub items: Vec<Item>,
    /// Its imports as path, name in this module, and whether they are public.
    pub imports: Vec<(Vec<String>, String, bool)>,
    is_public: bool,
}

/// The modules of one crate by path; the root is the empty path.
#[derive(Debug, Default)]
pub struct Modules(pub BTreeMap<String, Module>);

/// What a path names inside the crate.
#[derive(Clone, Debug, PartialEq)]
pub enum Named {
    /// A module.
    Module(String),
    /// An item of a module.
    Item(Definition),
}

fn join(module: &str, name: &str) -> String {
    if module.is_empty() { name.to_owned() } else { format!("{module}::{name}") }
}

fn parent(module: &str) -> &str {
    module.rsplit_once("::").map_or("", |(parent, _)| parent)
}

/// Returns the paths of a tree of imports, each with the name that it gets; `*` for all names.
fn leaves(tree: &str, prefix: &[String]) -> Vec<(Vec<String>, String)> {
    let tree = tree.trim().trim_start_matches("::");
    if let Some(inner) = tree.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) {
        let mut depth = 0;
        let split = inner.split(|c| {
            depth += i32::from(c == '{') - i32::from(c == '}');
            c == ',' && depth == 0
        });
        return split.filter(|part| !part.trim().is_empty()).flat_map(|part| leaves(part, prefix)).collect();
    }
    let word = tree.find(|c| !is_word(c) && c != '*').unwrap_or(tree.len());
    let mut path = prefix.to_vec();
    if &tree[..word] != "self" || prefix.is_empty() {
        path.push(tree[..word].to_owned());
    }
    match tree[word..].trim() {
        "" => vec![(path.clone(), path.last().cloned().unwrap_or_default())],
        rest if rest.starts_with("::") => leaves(&rest[2..], &path),
        rest => vec![(path, rest.trim_start_matches("as ").trim().to_owned())],
    }
}

impl Modules {
    /// Reads the modules from the files below `folder`, the `src` of a crate.
    pub fn new(sources: &[Source], folder: &str) -> Self {
        let mut modules = Self::default();
        for source in sources.iter().filter(|source| source.shipped().next().is_some()) {
            let inside = source.path.trim_start_matches(folder).trim_start_matches('/').trim_end_matches(".rs");
            let path = inside.trim_end_matches("mod").trim_end_matches('/').replace('/', "::");
            let path = if path == "lib" { String::new() } else { path };
            if !path.starts_with("bin::") {
                modules.add(&path, &source.path, items(source));
            }
        }
        let declared: Vec<(String, bool)> = modules
            .0
            .iter()
            .flat_map(|(path, module)| {
                module
                    .items
                    .iter()
                    .filter(|item| item.kind == "mod")
                    .map(|item| (join(path, &item.name), item.is_public()))
            })
            .collect();
        for (path, is_public) in declared {
            modules.0.entry(path).or_default().is_public = is_public;
        }
        modules.0.entry(String::new()).or_default().is_public = true;
        modules
    }

    fn add(&mut self, path: &str, file: &str, items: Vec<Item>) {
        let mut imports = Vec::new();
        for item in &items {
            if item.kind == "mod" && !item.children.is_empty() {
                self.add(&join(path, &item.name), file, item.children.clone());
            } else if item.kind == "use" {
                let tree = item.signature.trim_start_matches("use ");
                imports.extend(leaves(tree, &[]).into_iter().map(|(path, name)| (path, name, item.is_public())));
            }
        }
        let module = self.0.entry(path.to_owned()).or_default();
        (module.file, module.items, module.imports) = (file.to_owned(), items, imports);
    }

    /// Returns the target of a path that is written in `module`, or `None` if it leaves the crate.
    pub fn resolve(&self, module: &str, path: &[String]) -> Option<Named> {
        self.resolve_within(module, path, 12)
    }

    fn resolve_within(&self, module: &str, path: &[String], steps: usize) -> Option<Named> {
        let (mut at, mut rest) = (module.to_owned(), path);
        let mut is_relative = true;
        while let Some(first) = rest.first() {
            match first.as_str() {
                "crate" => at.clear(),
                "super" => at = parent(&at).to_owned(),
                "self" => {}
                _ => break,
            }
            (rest, is_relative) = (&rest[1..], false);
        }
        let Some((name, rest)) = rest.split_first() else { return Some(Named::Module(at)) };
        // The same name can be a module and an item: the module if the path goes on.
        let below = join(&at, name);
        let named = if self.0.contains_key(&below) {
            Named::Module(below)
        } else if self.item(&(at.clone(), name.clone())).is_some() {
            Named::Item((at.clone(), name.clone()))
        } else {
            let imports = &self.0.get(&at)?.imports;
            let found = imports.iter().find(|(_, alias, _)| alias == name);
            if let Some((path, ..)) = found {
                let is_itself = is_relative && path.first() == Some(name);
                let path = path.clone();
                if steps == 0 || is_itself {
                    return None;
                }
                self.resolve_within(&at, &path, steps - 1)?
            } else {
                imports.iter().filter(|(_, alias, _)| alias == "*" && steps > 0).find_map(|(path, ..)| {
                    let full: Vec<String> = path[..path.len() - 1].iter().chain([name]).cloned().collect();
                    self.resolve_within(&at, &full, steps - 1)
                })?
            }
        };
        match named {
            Named::Module(inner) if !rest.is_empty() && steps > 0 => {
                let path: Vec<String> = ["self".to_owned()].into_iter().chain(rest.iter().cloned()).collect();
                self.resolve_within(&inner, &path, steps - 1)
            }
            named => Some(named),
        }
    }

    /// Returns the item of a definition.
    pub fn item(&self, (module, name): &Definition) -> Option<&Item> {
        self.0.get(module)?.items.iter().find(|item| item.name == *name && item.kind != "mod")
    }

    /// Whether users can name the module.
    pub fn is_reachable(&self, module: &str) -> bool {
        let is_public = self.0.get(module).is_some_and(|module| module.is_public);
        is_public && (module.is_empty() || self.is_reachable(parent(module)))
    }

    /// Returns the definitions that users can name, each with its paths, the own one first.
    pub fn public(&self) -> BTreeMap<Definition, Vec<String>> {
        let mut found: BTreeMap<Definition, Vec<String>> = BTreeMap::new();
        let reachable: Vec<_> = self.0.iter().filter(|(path, _)| self.is_reachable(path)).collect();
        for (path, module) in &reachable {
            for item in
                module.items.iter().filter(|item| item.is_public() && !["mod", "use"].contains(&item.kind.as_str()))
            {
                found.entry(((*path).clone(), item.name.clone())).or_default().push(join(path, &item.name));
            }
        }
        for (path, module) in &reachable {
            for (import, name, _) in module.imports.iter().filter(|(.., is_public)| *is_public) {
                if let Some(Named::Item(definition)) = self.resolve(path, import) {
                    let paths = found.entry(definition).or_default();
                    if !paths.contains(&join(path, name)) {
                        paths.push(join(path, name));
                    }
                }
            }
        }
        found
    }

    /// Returns the circles of imports: sets of files that import each other, directly or not.
    /// Imports of a module from its own submodules count only `with_own`.
    pub fn circles(&self, with_own: bool) -> Vec<BTreeSet<&str>> {
        let mut uses: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for (path, module) in &self.0 {
            for (import, ..) in &module.imports {
                let named = match self.resolve(path, import) {
                    Some(Named::Module(module) | Named::Item((module, _))) => module,
                    None => continue,
                };
                let is_own = format!("{named}::").starts_with(&format!("{path}::")) && named != *path;
                if is_own && !with_own {
                    continue;
                }
                let target = self.0.get(&named).map_or("", |module| &module.file);
                uses.entry(&module.file).or_default().insert(target);
            }
        }
        let reaches = |from: &'_ str| {
            let (mut seen, mut open) = (BTreeSet::new(), vec![from]);
            while let Some(next) = open.pop() {
                open.extend(uses.get(next).into_iter().flatten().filter(|file| seen.insert(**file)));
            }
            seen.into_iter().map(str::to_owned).collect::<BTreeSet<_>>()
        };
        let reached: BTreeMap<&str, BTreeSet<String>> = uses.keys().map(|file| (*file, reaches(file))).collect();
        let mut circles = BTreeSet::new();
        for (file, to) in &reached {
            let circle: BTreeSet<&str> =
                uses.keys().copied().filter(|other| to.contains(*other) && reached[other].contains(*file)).collect();
            if circle.len() > 1 {
                circles.insert(circle);
            }
        }
        circles.into_iter().collect()
    }
}
