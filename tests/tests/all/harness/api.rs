//! Tests of the public API as text.

use mcp_tests::api::describe;
use mcp_tests::modules::Modules;
use mcp_tests::sources::Source;

#[test]
fn text_lists_the_items_that_users_reach() {
    let files = [
        ("c/src/lib.rs", "pub mod a;\nmod b;\npub use a::A;\npub use b::B as C;\npub use ext::E;"),
        (
            "c/src/a.rs",
            "#[non_exhaustive]\npub enum A {\n    One,\n    Two { x: u8 },\n    Three(#[a(b)] u8),\n}\nimpl A {\n    pub fn f(&self) {}\n    fn g() {}\n}\n\
             impl Clone for A {}\nimpl From<u8> for A {}\nimpl crate::b::Hidden for A {}\npub struct P(pub u8, u8);",
        ),
        (
            "c/src/b.rs",
            "pub struct B<T> {\n    pub a: T,\n    b: u8,\n}\nimpl<T: Send> B<T> {\n    pub fn h() {}\n}\npub trait Hidden {}\npub struct D;",
        ),
    ];
    let sources: Vec<Source> = files.iter().map(|(path, text)| Source::new(path, text)).collect();
    let expected = "c: pub mod\nc: pub struct C<T>\nc: pub use c::a::A\nc: pub use ext::E\n\
                    c::C: field pub a: T\nc::C: pub fn h() [impl<T: Send> B<T>]\n\
                    c::a: #[non_exhaustive] pub enum A\nc::a: pub mod\nc::a: pub struct P(pub u8, _)\n\
                    c::a::A: impl From<u8> for A\nc::a::A: pub fn f(&self)\nc::a::A: variant One\nc::a::A: variant Three(u8)\nc::a::A: variant Two { x: u8 }\n";
    assert_eq!(describe(&Modules::new(&sources, "c/src"), "c"), expected);
}
