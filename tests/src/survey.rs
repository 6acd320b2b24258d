//! A survey of a source tree: sizes, wide interfaces, words with two meanings, faults of the prose.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::api::folder;
use crate::items::{Item, items};
use crate::modules::Modules;
use crate::prose::{self, RULES};
use crate::sources::{Source, under};

/// The crates, and what the survey calls them.
const CRATES: [&str; 5] = ["mcp-proto", "mcp-driver", "mcp-supervisor", "mcp-smol", "mcp-blocking"];

/// Above this many lines a function is long.
const LONG: usize = 40;

/// One row: what is measured, and its number.
type Row = (String, String);

/// Returns the survey of the tree below `root` as a Markdown table.
pub fn survey(root: &Path) -> String {
    let crates = CRATES.map(|name| (name, under(root, &format!("{}/src", folder(name)))));
    let mut rows = sizes(root, &crates);
    for (name, folder) in [("Client", "client"), ("Server", "server")] {
        let own = format!("mcp-proto/src/{folder}/");
        let files: Vec<&Source> = crates[0].1.iter().filter(|source| source.path.starts_with(&own)).collect();
        rows.push((format!("`impl {name}` of the core"), methods(&files, name)));
    }
    let core = Modules::new(&crates[0].1, "mcp-proto/src");
    let public = core.public();
    let root_names = public.values().filter(|paths| paths.iter().any(|path| !path.contains("::"))).count();
    rows.push(("public names of mcp-proto".into(), public.len().to_string()));
    rows.push(("public names at the root of mcp-proto".into(), root_names.to_string()));
    let is_http = |source: &&Source| {
        source
            .lines
            .iter()
            .filter(|line| line.code.contains("feature = \"\"") && line.strings.iter().any(|text| text == "http"))
            .count()
    };
    let http: usize = crates.iter().flat_map(|(_, sources)| sources).map(|source| is_http(&source)).sum();
    rows.push(("lines with `feature = \"http\"` in the src trees".into(), http.to_string()));
    for (name, sources) in &crates {
        let modules = Modules::new(sources, &format!("{}/src", folder(name)));
        let twice = twice(&modules);
        rows.push((format!("type names with two meanings in {name}"), list(&twice)));
        rows.push((format!("types of {name} that are named by participles"), list(&participles(&modules))));
        let short = |path: &&str| path.trim_start_matches(&*folder(name)).trim_start_matches("/src/").to_owned();
        for (with_own, what) in [(false, ""), (true, ", submodules included")] {
            let circles = modules.circles(with_own);
            let largest = circles.iter().max_by_key(|circle| circle.len());
            let example = largest.filter(|_| !with_own).map_or(String::new(), |circle| {
                format!(": {}", circle.iter().map(short).collect::<Vec<_>>().join(", "))
            });
            let (count, size) = (circles.len(), largest.map_or(0, BTreeSet::len));
            rows.push((format!("circles of imports in {name}{what}"), format!("{count}; largest {size}{example}")));
        }
    }
    let functions: Vec<Item> = crates.iter().flat_map(|(_, sources)| sources).flat_map(functions).collect();
    let long = functions.iter().filter(|item| item.lines.len() > LONG).count();
    rows.push((format!("functions above {LONG} lines in the src trees"), format!("{long} of {}", functions.len())));
    let faults = prose::faults(root);
    for (rule, name) in RULES.iter().enumerate() {
        let of = |folder: &str| {
            let found = faults.iter().filter(|(path, _)| path.starts_with(folder)).flat_map(|(_, found)| found);
            found.filter(|fault| fault.rule == rule).count()
        };
        let name = match *name {
            "banned" => "banned phrases",
            "wide" => "comment lines wider than 100 columns",
            _ => "function names longer than 60 characters",
        };
        let crates = CRATES.map(|name| format!("{name} {}", of(name))).join(", ");
        rows.push((name.into(), format!("{} ({crates}, tests {})", of(""), of("tests/"))));
    }
    let rows: String = rows.iter().map(|(name, value)| format!("| {name} | {value} |\n")).collect();
    format!("| what | number |\n|---|---|\n{rows}")
}

/// The lines of code of a source: of what is shipped, or of its tests.
pub fn code(source: &Source, of_tests: bool) -> usize {
    source.lines.iter().filter(|line| line.test == of_tests && !line.code.trim().is_empty()).count()
}

/// Lines of code of each module and each crate.
fn sizes(root: &Path, crates: &[(&str, Vec<Source>)]) -> Vec<Row> {
    let mut rows = Vec::new();
    let tests = under(root, "tests/src");
    let crates = crates.iter().map(|(name, sources)| (*name, sources)).chain([("tests", &tests)]);
    let mut in_tests = 0;
    for (name, sources) in crates {
        let mut modules: BTreeMap<&str, usize> = BTreeMap::new();
        for source in sources {
            let inside = source.path.trim_start_matches(&*folder(name)).trim_start_matches("/src/");
            let module = inside.split('/').next().unwrap_or(inside).trim_end_matches(".rs");
            *modules.entry(module).or_default() += code(source, false);
            in_tests += code(source, true);
        }
        rows.push((format!("lines of code, {name}/src"), modules.values().sum::<usize>().to_string()));
        let each: Vec<String> =
            modules.iter().filter(|(_, size)| **size > 0).map(|(module, size)| format!("{module} {size}")).collect();
        rows.push((format!("its modules, {name}"), each.join(", ")));
    }
    let folders = ["tests/tests", "tests/examples", "mcp-proto/tests"];
    in_tests += folders.iter().flat_map(|folder| under(root, folder)).map(|source| code(&source, true)).sum::<usize>();
    rows.push(("lines of code of tests (modules for tests, `tests/` of each crate)".into(), in_tests.to_string()));
    rows
}

/// All shipped functions of a source, methods included.
fn functions(source: &Source) -> Vec<Item> {
    let (mut found, mut open) = (Vec::new(), items(source));
    while let Some(item) = open.pop() {
        open.extend(item.children.iter().cloned());
        if item.kind == "fn" {
            found.push(item);
        }
    }
    found
}

/// Counts the methods of a type: those of its impl blocks, and functions that change a value of it.
pub fn methods(sources: &[&Source], name: &str) -> String {
    let (mut found, mut blocks, mut files) = (Vec::new(), 0, BTreeSet::new());
    for source in sources {
        for item in items(source) {
            let of_type = |text: &str| text.trim_start_matches("impl").trim() == name;
            if item.kind == "impl" && of_type(&item.signature) {
                blocks += 1;
                files.insert(&source.path);
                found.extend(item.children.into_iter().filter(|item| item.kind == "fn"));
            } else if item.kind == "fn" && takes(&item.signature, name) {
                files.insert(&source.path);
                found.push(item);
            }
        }
    }
    let public = found.iter().filter(|item| item.is_public()).count();
    let wide = found.iter().filter(|item| item.visibility.contains('(')).count();
    let (methods, files) = (found.len(), files.len());
    format!("{methods} methods in {blocks} blocks of {files} files: {public} `pub`, {wide} visible to other files")
}

/// Whether a parameter is a mutable reference to the type.
fn takes(signature: &str, name: &str) -> bool {
    signature
        .split(": &mut ")
        .skip(1)
        .any(|rest| rest.strip_prefix(name).is_some_and(|rest| rest.starts_with([',', ')'])))
}

/// The names of types that several modules define.
pub fn twice(modules: &Modules) -> Vec<String> {
    let mut places: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (path, module) in &modules.0 {
        for item in module.items.iter().filter(|item| item.is_type()) {
            places.entry(&item.name).or_default().insert(path);
        }
    }
    let places = places.into_iter().filter(|(_, places)| places.len() > 1);
    places.map(|(name, places)| format!("{name} {}", places.len())).collect()
}

/// Nouns that end like participles.
const NOUNS: [&str; 13] = [
    "Anything",
    "Binding",
    "Coding",
    "Ending",
    "Finding",
    "Framing",
    "Listing",
    "Meaning",
    "Nothing",
    "Ping",
    "Recording",
    "Seed",
    "Setting",
];

/// The names of types that end with a participle: `Waiting`, `ClientFixed`.
pub fn participles(modules: &Modules) -> Vec<String> {
    let types = modules.0.values().flat_map(|module| module.items.iter().filter(|item| item.is_type()));
    let names: BTreeSet<&str> = types.map(|item| item.name.as_str()).collect();
    let is_participle = |name: &&str| {
        let word = name.rfind(char::is_uppercase).map_or(*name, |at| &name[at..]);
        (word.ends_with("ed") || word.ends_with("ing")) && !NOUNS.contains(&word)
    };
    names.into_iter().filter(is_participle).map(str::to_owned).collect()
}

fn list(names: &[String]) -> String {
    if names.is_empty() { "0".to_owned() } else { format!("{}: {}", names.len(), names.join(", ")) }
}
