//! Tests of planted faults: their files, their tests, and the results of these.

use mcp_tests::planted::field::Counts;
use mcp_tests::planted::{Edit, Fault};

#[test]
fn a_fault_is_read() {
    let text = "# test: -p a --lib b -- --exact\n# breaks: B-044, a word\n\na.rs\n<<<<<<<\nold\n=======\n>>>>>>>\n<<<<<<<\n\nx\n=======\ny\n>>>>>>>\n";
    let fault = Fault::parse("n", text).unwrap();
    assert_eq!(fault.test, ["-p", "a", "--lib", "b", "--", "--exact"]);
    let edit = |old: &str, new: &str| Edit { path: "a.rs".into(), old: old.into(), new: new.into() };
    assert_eq!(fault.edits, [edit("old\n", ""), edit("\nx\n", "y\n")]);
}

#[test]
fn an_incomplete_fault_is_refused() {
    let head = "# test: b\n# breaks: c\n";
    for text in ["", head, "# test: b\na.rs\n<<<<<<<\n=======\n>>>>>>>\n"] {
        assert!(Fault::parse("n", text).is_err());
    }
    assert!(Fault::parse("n", &format!("{head}<<<<<<<\n")).is_err());
    assert!(Fault::parse("n", &format!("{head}a.rs\n<<<<<<<\nold\n")).is_err());
}

fn fault(test: &str) -> Fault {
    Fault::parse("n", &format!("# test: {test}\n# breaks: b\na.rs\n<<<<<<<\nold\n=======\n>>>>>>>\n")).unwrap()
}

#[test]
fn test_name_is_separated_from_the_options() {
    let plain = fault("-p mcp-proto --lib rpc::tests::x");
    assert_eq!((plain.build(), plain.filter()), (vec!["-p", "mcp-proto", "--lib"], "rpc::tests::x"));
    let model = fault("--release --config build.rustflags=\"--cfg=x\" -p a --lib t::y -- --exact");
    let build = ["--release", "--config", "build.rustflags=\"--cfg=x\"", "-p", "a", "--lib"];
    assert_eq!((model.build(), model.filter()), (build.to_vec(), "t::y"));
    assert_eq!(fault("-p mcp-tests --test web").filter(), "");
}

#[test]
fn closing_lines_are_added_up() {
    let text =
        "test result: ok. 2 passed; 0 failed; 0 ignored\nnoise\ntest result: FAILED. 0 passed; 1 failed; 0 ignored\n";
    assert_eq!(Counts::of(text), Counts { passed: 2, failed: 1 });
}
