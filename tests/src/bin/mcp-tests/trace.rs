//! Lists for each area which requirements have tests and which do not. Fails if a binding
//! requirement has neither a test nor a waiver, and if a mark names an unknown id.

use std::fs;
use std::process::ExitCode;

use mcp_tests::sources;
use mcp_tests::trace::Trace;

pub(crate) fn main(_args: Vec<String>) -> ExitCode {
    let list = |name: &str| {
        let path = sources::root().join("tests/trace").join(name);
        fs::read_to_string(&path).unwrap_or_else(|why| panic!("{}: {why}", path.display()))
    };
    let sources: Vec<_> =
        ["mcp-proto", "mcp-smol", "mcp-blocking", "tests", "fuzz"].into_iter().flat_map(sources::below).collect();
    let trace = Trace::new(&list("ids.tsv"), &list("waived.tsv"), &list("areas.tsv"), &sources);
    print!("{}", trace.report());
    let binding = trace.wanted.iter().filter(|wanted| wanted.binds()).count();
    let failed = trace.uncovered().count() + trace.defects.len();
    println!("trace: {} passed, {failed} failed", binding - trace.uncovered().count());
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
