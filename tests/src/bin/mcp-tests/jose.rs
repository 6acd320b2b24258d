//! Compares tokens, proofs and keys with two other libraries: `jose [--cases N] [--seed N]`.
//! Default 8,000 cases, seed 1.

use std::process::ExitCode;
use std::time::Instant;

pub(crate) fn main(args: Vec<String>) -> ExitCode {
    mcp_tests::exit_code("jose", run(&args))
}

fn run(args: &[String]) -> Result<bool, String> {
    let value = |flag: &str, default: u64| match args.iter().skip_while(|arg| *arg != flag).nth(1) {
        Some(value) => value.parse().map_err(|_| format!("{flag} takes a number")),
        None => Ok(default),
    };
    let cases = usize::try_from(value("--cases", 8_000)?).map_err(|_| "too many cases")?;
    let (seed, began) = (value("--seed", 1)?, Instant::now());
    let outcome = mcp_tests::jose::run(cases, seed);
    println!("seed {seed}, {:.1} s", began.elapsed().as_secs_f64());
    outcome
}
