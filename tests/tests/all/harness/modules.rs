//! Tests of modules, their imports and public names.

use std::collections::BTreeSet;

use mcp_tests::modules::{Modules, Named};
use mcp_tests::sources::Source;

fn modules() -> Modules {
    let files = [
        ("c/src/lib.rs", "pub mod a;\nmod b;\npub use b::{B as C, d::*};\npub use ext::E;\nfn f() {}"),
        ("c/src/a.rs", "use crate::b::B;\npub struct A;\nstruct P;"),
        ("c/src/b/mod.rs", "pub mod d;\nuse super::a::A;\npub struct B;"),
        ("c/src/b/d.rs", "pub struct D;"),
    ];
    let sources: Vec<Source> = files.iter().map(|(path, text)| Source::new(path, text)).collect();
    Modules::new(&sources, "c/src")
}

#[test]
fn imports_lead_to_definitions() {
    let modules = modules();
    let path = |text: &str| text.split("::").map(str::to_owned).collect::<Vec<_>>();
    let item = |module: &str, name: &str| Some(Named::Item((module.to_owned(), name.to_owned())));
    assert_eq!(modules.resolve("a", &path("B")), item("b", "B"));
    assert_eq!(modules.resolve("a", &path("super::C")), item("b", "B"));
    assert_eq!(modules.resolve("", &path("D")), item("b::d", "D"));
    assert_eq!(modules.resolve("", &path("ext::E")), None);
    assert_eq!(modules.circles(false), [BTreeSet::from(["c/src/a.rs", "c/src/b/mod.rs"])]);
}

#[test]
fn public_names_include_reexports() {
    let paths: Vec<String> = modules().public().into_values().flatten().collect();
    assert_eq!(paths, ["a::A", "C"]);
}
