//! Tests of the reader of items.

use mcp_tests::items::{Item, items};
use mcp_tests::sources::Source;

fn read(text: &str) -> Vec<Item> {
    items(&Source::new("mcp-proto/src/a.rs", text))
}

#[test]
fn items_have_signatures_and_parts() {
    let found = read(
        "use a::{b, c};\n#[derive(Debug)]\npub struct A<T> {\n    #[x]\n    pub a: Map<u8, T>,\n    b: (u8, u8),\n}\n\
         m! { fn no() {} }\npub(crate) const fn f(\n    a: u8,\n) -> u8 {\n    if a { 1 } else { 2 }\n}\nconst N: [u8; 2] = [1, 2];",
    );
    let signatures: Vec<_> = found.iter().map(|item| item.signature.as_str()).collect();
    assert_eq!(signatures, ["use a::{b, c}", "struct A<T>", "const fn f(a: u8) -> u8", "const N: [u8; 2]"]);
    assert_eq!(found[1].parts, ["pub a: Map<u8, T>", "b: (u8, u8)"]);
    assert_eq!(found[1].attributes, ["[derive(Debug)]"]);
    assert_eq!((found[2].visibility.as_str(), found[2].lines.clone()), ("pub(crate)", 9..14));
}

#[test]
fn blocks_have_children_and_tests_are_left_out() {
    let found =
        read("impl A {\n    fn a(&self) {}\n}\ntrait T {\n    fn b();\n}\n#[cfg(test)]\nmod t {\n    fn c() {}\n}");
    let children: Vec<_> = found.iter().flat_map(|item| &item.children).map(|item| item.name.as_str()).collect();
    assert_eq!(children, ["a", "b"]);
    assert_eq!(found.len(), 2);
}
