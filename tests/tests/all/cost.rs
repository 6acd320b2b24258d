//! What a call costs, compared with a kept table. A program of its own counts its heap.

use mcp_tests::cost::compiler;
use std::env;
use std::path::Path;
use std::process::Command;

#[test]
fn costs_are_those_of_the_kept_table() {
    let output = Command::new(env!("CARGO_BIN_EXE_mcp-heap")).arg("cost").output().expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let now = format!("{}\n{}", compiler(), String::from_utf8(output.stdout).expect("text"));
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("cost.txt");
    if env::var_os("UPDATE").is_some() {
        std::fs::write(&kept, &now).expect("it can be written");
    }
    let then = std::fs::read_to_string(&kept).unwrap_or_default();
    let line = |start: &str| now.lines().find(|line| line.starts_with(start)).expect("a line");
    let allocations = |start: &str| line(start).split_whitespace().rev().nth(3).map(str::to_owned);
    for of in ["2026-07-28, client", "2026-07-28, server", "2025-11-25, client", "2025-11-25, server"] {
        let [with, without] =
            ["call with a token, ", "call over HTTP, "].map(|call| allocations(&format!("{call}{of}")));
        assert_eq!(with, without, "a token makes no allocation more: {of}");
    }
    for era in ["2026-07-28", "2025-11-25"] {
        let of = |call: &str| -> f64 {
            let side = |side: &str| allocations(&format!("{call}, {era}, {side}")).expect("a number");
            ["client", "server"].map(|of| side(of).parse::<f64>().expect("a number")).iter().sum()
        };
        let more = of("call with spans") - of("call over stdio");
        assert!(more <= 3.0, "functions around a handler and telemetry take {more} allocations, {era}");
    }
    for transport in ["stdio", "HTTP"] {
        let of = |side: &str| allocations(&format!("cached list over {transport}, {side}")).expect("a number");
        let count: f64 = of("client").parse().expect("a number");
        assert!(count <= 5.0, "{count} allocations over {transport}");
        assert_eq!(of("server"), "0.00", "nothing is sent");
    }
    if then.lines().next() == now.lines().next() {
        assert_eq!(now, then, "UPDATE=1 writes the new table");
    } else {
        println!("{now}");
    }
}
