//! The public API of a crate as text: a line for each item, field, variant, method and impl block.
//!
//! The text is generated from the sources, with all features on. Derivable traits and
//! implementations by macros are omitted. An item of a private module has the path under which a
//! public module exports it.

use std::collections::{BTreeMap, BTreeSet};

use crate::items::Item;
use crate::modules::{Definition, Modules, Named};
use crate::sources::below;

/// Traits that a type can derive, and `Drop`.
const LEFT_OUT: [&str; 10] =
    ["Clone", "Copy", "Debug", "Default", "Drop", "Eq", "Hash", "Ord", "PartialEq", "PartialOrd"];

/// Returns the public API of a crate of this workspace.
pub fn api(name: &str) -> String {
    let folder = format!("{}/src", folder(name));
    describe(&Modules::new(&below(&folder), &folder), &name.replace('-', "_"))
}

/// Returns the folder of a crate of this workspace.
pub fn folder(name: &str) -> String {
    match name.strip_prefix("mcp-") {
        Some(inner @ ("driver" | "supervisor")) => format!("mcp-proto/{inner}"),
        _ => name.to_owned(),
    }
}

/// Returns the public API of a crate with these modules and this name.
pub fn describe(modules: &Modules, name: &str) -> String {
    let public = modules.public();
    let full = |path: &str| if path.is_empty() { name.to_owned() } else { format!("{name}::{path}") };
    let mut lines = BTreeSet::new();
    for (definition, paths) in &public {
        // Several items share a name if the platform selects the one to compile.
        let own = modules.0.get(&definition.0).into_iter().flat_map(|module| &module.items);
        for item in own.filter(|item| item.name == definition.1 && item.kind != "mod") {
            describe_item(item, &full(&paths[0]), &mut lines);
        }
        for path in &paths[1..] {
            lines.insert(format!("{}: pub use {}", full(split(path).0), full(&path_and_alias(&paths[0], path))));
        }
    }
    for (path, module) in modules.0.iter().filter(|(path, _)| modules.is_reachable(path)) {
        lines.insert(format!("{}: pub mod", full(path)));
        for (import, alias, _) in module.imports.iter().filter(|(.., is_public)| *is_public) {
            let named = modules.resolve(path, import);
            if !matches!(named, Some(Named::Item(_))) {
                let target = import.join("::");
                let alias = if import.last() == Some(alias) { String::new() } else { format!(" as {alias}") };
                lines.insert(format!("{}: pub use {target}{alias}", full(path)));
            }
        }
    }
    for (path, module) in &modules.0 {
        for item in module.items.iter().filter(|item| item.kind == "impl") {
            describe_impl(modules, &public, path, item, &full, &mut lines);
        }
    }
    lines.into_iter().fold(String::new(), |text, line| text + &line + "\n")
}

/// Returns the module and the name of a path.
fn split(path: &str) -> (&str, &str) {
    path.rsplit_once("::").unwrap_or(("", path))
}

/// Returns the target of an export as `path`, with its other name if it has one.
fn path_and_alias(first: &str, path: &str) -> String {
    let alias = split(path).1;
    if split(first).1 == alias { first.to_owned() } else { format!("{first} as {alias}") }
}

/// Adds the lines of an item and of its members.
fn describe_item(item: &Item, path: &str, lines: &mut BTreeSet<String>) {
    let (module, name) = split(path);
    let open = if item.attributes.iter().any(|text| text == "[non_exhaustive]") { "#[non_exhaustive] " } else { "" };
    let signature = match item.signature.split_once('(') {
        Some((head, fields)) if item.kind == "struct" && item.parts.is_empty() => {
            format!("{head}({}", public_fields(fields))
        }
        _ => item.signature.clone(),
    };
    let signature = signature.replacen(&item.name, name, 1);
    lines.insert(format!("{module}: {open}pub {signature}"));
    for part in &item.parts {
        match item.kind.as_str() {
            "enum" => lines.insert(format!("{path}: variant {}", without_attributes(part))),
            _ => part.starts_with("pub ") && lines.insert(format!("{path}: field {part}")),
        };
    }
    if item.kind == "trait" {
        lines.extend(item.children.iter().map(|child| format!("{path}: {}", child.signature)));
    }
}

/// Returns a variant without the attributes of its fields.
fn without_attributes(variant: &str) -> String {
    let (mut shown, mut rest) = (String::new(), variant);
    while let Some((before, attribute)) = rest.split_once("#[") {
        shown.push_str(before);
        rest = attribute.split_once("] ").map_or("", |(_, after)| after);
    }
    shown + rest
}

/// Returns the fields of a tuple struct, private ones as `_`.
fn public_fields(fields: &str) -> String {
    let end = fields.rfind(')').unwrap_or(fields.len());
    let mut depth = 0;
    let parts = fields[..end].split(|c| {
        depth += i32::from(matches!(c, '<' | '(' | '[')) - i32::from(matches!(c, '>' | ')' | ']'));
        c == ',' && depth == 0
    });
    let shown = parts.map(|part| if part.trim().starts_with("pub ") { part.trim() } else { "_" });
    shown.collect::<Vec<_>>().join(", ") + &fields[end..]
}

/// Adds the public methods of public types, and the implementations of public traits.
fn describe_impl(
    modules: &Modules,
    public: &BTreeMap<Definition, Vec<String>>,
    module: &str,
    item: &Item,
    full: &dyn Fn(&str) -> String,
    lines: &mut BTreeSet<String>,
) {
    let (head, of_trait, of_type) = parts(&item.signature);
    let named = |path: &str| match modules.resolve(module, &path.split("::").map(str::to_owned).collect::<Vec<_>>()) {
        Some(Named::Item(definition)) => Some(definition),
        _ => None,
    };
    let own = named(of_type);
    let path = own.as_ref().map(|definition| public.get(definition).map(|paths| full(&paths[0])));
    let Some(of_trait) = of_trait else {
        let Some(path) = path.flatten() else { return };
        let block = if head.contains('<') { format!(" [{head}]") } else { String::new() };
        for child in item.children.iter().filter(|child| child.is_public()) {
            // Whether a parameter is mutable is not part of the interface.
            let signature = child.signature.replace("(mut ", "(").replace(", mut ", ", ");
            lines.insert(format!("{path}: pub {signature}{block}"));
        }
        return;
    };
    let trait_path = named(of_trait).map(|definition| public.get(&definition).map(|paths| full(&paths[0])));
    let is_hidden = path == Some(None) || trait_path == Some(None) || LEFT_OUT.contains(&split(of_trait).1);
    // A trait of the crate lists its implementations for types of other crates.
    let at = path.flatten().or(trait_path.flatten());
    if let Some(at) = at.filter(|_| !is_hidden) {
        lines.insert(format!("{at}: {}", item.signature));
    }
}

/// Returns the head of an impl block, and the paths of its trait and of its type without arguments.
fn parts(signature: &str) -> (&str, Option<&str>, &str) {
    let rest = signature.trim_start_matches("impl").trim_start();
    let rest = if rest.starts_with('<') { &rest[close(rest)..] } else { rest }.trim_start();
    let path = |text: &'_ str| text.find(['<', ' ', '(']).unwrap_or(text.len());
    let end = path(rest);
    let after = &rest[end..];
    let after = if after.starts_with('<') { &after[close(after)..] } else { after };
    match after.trim_start().strip_prefix("for ") {
        Some(own) => {
            let own = own.trim_start_matches('&').trim_start_matches("mut ").trim_start();
            (signature, Some(&rest[..end]), &own[..path(own)])
        }
        None => (signature, None, &rest[..end]),
    }
}

/// Returns what follows the angle bracket that closes the first one.
fn close(text: &str) -> usize {
    let mut depth = 0;
    let mut before = ' ';
    for (at, c) in text.char_indices() {
        depth += i32::from(c == '<') - i32::from(c == '>' && before != '-');
        before = c;
        if depth == 0 {
            return at + 1;
        }
    }
    text.len()
}
