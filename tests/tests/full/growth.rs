//! The work of each reader of a peer's lists grows with the length of the list.

use mcp_tests::cost::growth::{LENGTHS, MAX_RATIO, instructions, readers};
use std::path::Path;

#[test]
fn work_grows_with_the_length_of_a_list() {
    let program = Path::new(env!("CARGO_BIN_EXE_mcp-tests"));
    let mut failed = Vec::new();
    for reader in readers() {
        let [one, two] = LENGTHS.map(|length| instructions(program, reader, length).expect("valgrind counts"));
        let ratio = two as f64 / one as f64;
        println!("{reader:<24} {one:>12} {two:>12} {ratio:.2}");
        if ratio > MAX_RATIO {
            failed.push((reader, ratio));
        }
    }
    assert!(failed.is_empty(), "{failed:?}");
}
