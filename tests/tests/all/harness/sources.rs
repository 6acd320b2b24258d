//! Tests of the lexer of Rust sources.

use mcp_tests::sources::{Source, has_word};

fn source(text: &str) -> Source {
    Source::new("mcp-proto/src/a.rs", text)
}

#[test]
fn comments_and_literals_are_no_code() {
    let read = source(
        "let a = \"x // y\"; // HashMap\n/* b /* c */ d */ let e = r#\"f \"g\" h\"#;\nlet i = '\"'; let j: &'a str = '\\'';",
    );
    let code: Vec<_> = read.lines.iter().map(|line| line.code.trim()).collect();
    assert_eq!(code, ["let a = \"\";", "let e = \"\";", "let i = ' '; let j: &'a str = ' ';"]);
    assert_eq!(read.lines[0].strings, ["x // y"]);
    assert_eq!(read.lines[0].comment.as_deref(), Some(" HashMap"));
    assert_eq!(read.lines[1].strings, ["f \"g\" h"]);
}

#[test]
fn a_literal_over_several_lines_belongs_to_its_first() {
    let read = source("call(\n    \"one\n     two\",\n);");
    assert_eq!(read.lines[1].strings, ["one\n     two"]);
    assert_eq!(read.lines.len(), 4);
}

#[test]
fn test_items_end_where_their_braces_end() {
    let read =
        source("#[cfg(test)]\nmod tests;\nfn a() {}\n#[cfg(all(test, not(b)))]\nmod t {\n    fn b() {}\n}\nfn c() {}");
    let shipped: Vec<_> = read.shipped().map(|(number, _)| number).collect();
    assert_eq!(shipped, [3, 8]);
    assert_eq!(Source::new("mcp-proto/src/rpc/tests.rs", "fn a() {}").shipped().count(), 0);
    assert_eq!(Source::new("tests/tests/a.rs", "fn a() {}").shipped().count(), 0);
}

#[test]
fn test_field_ends_at_its_comma() {
    let read = source(
        "struct A {\n    #[cfg(test)]\n    pub(crate) b: C<D, E>,\n}\nfn f() {\n    A {\n        #[cfg(test)]\n        b: c(1, 2),\n    }\n}\nfn g() {}",
    );
    let shipped: Vec<_> = read.shipped().map(|(number, _)| number).collect();
    assert_eq!(shipped, [1, 4, 5, 6, 9, 10, 11]);
}

#[test]
fn names_are_found_in_paths_and_groups() {
    let read = source(
        "use crate::a::{B, c::D};\nuse crate::{\n    e::{F, G},\n    h,\n};\nfn i() { crate::j::k(); mycrate::l(); }",
    );
    let expected = [(1, "a"), (3, "e"), (4, "h"), (6, "j")].map(|(line, name)| (line, name.to_owned()));
    assert_eq!(read.names_after("crate"), expected);
}

#[test]
fn words_have_edges() {
    assert!(has_word("use rand::Rng;", "rand"));
    assert!(!has_word("let operand = 1;", "rand"));
    assert!(!has_word("let random = 1;", "rand"));
    assert!(has_word("#[ignore = \"\"]", "#[ignore"));
}
