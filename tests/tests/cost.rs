#![forbid(unsafe_code)]
//! What a call costs, compared with a kept table.

use mcp_tests::cost::{Heap, compiler, held, table};
use mcp_tests::heap::{COUNTED, Counted, bytes, made, used};
use std::env;
use std::path::Path;

#[global_allocator]
static HEAP: Counted = COUNTED;

fn heap() -> Heap {
    Heap { count: made(), bytes: bytes() }
}

#[test]
fn costs_are_those_of_the_kept_table() {
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("cost.txt");
    let now = format!("{}\n{}{}", compiler(), table(heap), held(used));
    if env::var_os("UPDATE").is_some() {
        std::fs::write(&kept, &now).expect("it can be written");
    }
    let then = std::fs::read_to_string(&kept).unwrap_or_default();
    if then.lines().next() == now.lines().next() {
        assert_eq!(now, then, "UPDATE=1 writes the new table");
    } else {
        println!("{now}");
    }
}
