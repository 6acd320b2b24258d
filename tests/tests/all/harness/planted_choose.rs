//! Tests of the division of planted faults.

use std::collections::BTreeSet;

use mcp_tests::planted::Fault;
use mcp_tests::planted::choose::share;

fn faults(count: usize) -> Vec<Fault> {
    let text = |n: usize| {
        let package = if n.is_multiple_of(3) { "mcp-smol" } else { "mcp-proto" };
        format!("# test: -p {package} --lib a::b{n}\n# breaks: b\na.rs\n<<<<<<<\nold\n=======\n>>>>>>>\n")
    };
    (0..count).map(|n| Fault::parse(&format!("fault{n}"), &text(n)).unwrap()).collect()
}

#[test]
fn shares_hold_each_fault_once_and_the_last_other_builds() {
    let all = faults(90);
    let shares: Vec<_> = (1..=3).map(|part| share(&all, part, 3)).collect();
    assert_eq!(shares.iter().map(Vec::len).collect::<Vec<_>>(), [30, 30, 30]);
    let names: BTreeSet<&str> = shares.concat().iter().map(|fault| fault.name.as_str()).collect();
    assert_eq!(names.len(), 90);
    assert!(shares[2].iter().all(|fault| fault.build().contains(&"mcp-smol")));
    assert_eq!(share(&all, 1, 1).len(), 90);
}
