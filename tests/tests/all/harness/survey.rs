//! Tests of the survey of a source tree.

use mcp_tests::modules::Modules;
use mcp_tests::sources::Source;
use mcp_tests::survey::{code, methods, participles, twice};

#[test]
fn methods_are_counted_by_visibility() {
    let text = "impl Client {\n    pub fn a() {}\n    pub(super) fn b() {}\n    fn c() {}\n}\nimpl Drop for Client {\n    fn drop() {}\n}\n\
                pub(crate) fn d(client: &mut Client, a: u8) {}\nfn e(client: &mut ClientConfig) {}";
    let source = Source::new("mcp-proto/src/client/a.rs", text);
    let expected = "4 methods in 1 blocks of 1 files: 1 `pub`, 2 visible to other files";
    assert_eq!(methods(&[&source], "Client"), expected);
}

#[test]
fn only_names_of_several_modules_have_two_meanings() {
    let read = |path: &str, text: &str| Source::new(path, text);
    let sources = [
        read("c/src/a.rs", "struct A;\n#[cfg(unix)]\nstruct B;\n#[cfg(not(unix))]\nstruct B;"),
        read("c/src/b.rs", "enum A {}"),
    ];
    assert_eq!(twice(&Modules::new(&sources, "c/src")), ["A 2"]);
    assert_eq!((code(&sources[0], false), code(&sources[0], true)), (5, 0));
}

#[test]
fn participles_are_names_that_end_with_one() {
    let text =
        "struct Waiting;\nenum ClientFixed {}\ntrait Listing {}\nstruct WaitingJob;\nstruct Seed;\ntype Ended = u8;";
    let sources = [Source::new("c/src/a.rs", text)];
    assert_eq!(participles(&Modules::new(&sources, "c/src")), ["ClientFixed", "Ended", "Waiting"]);
}
