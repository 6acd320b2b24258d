//! What a call costs, in numbers that a busy machine does not change, and beside others.
//!
//! ```text
//! cost                  prints every row that needs only this tree, each as a line of JSON
//! cost codec            prints only the rows about reading messages, which are measured in time
//! cost tokens           prints only the rows about tokens that a server verifies, measured in time
//! cost supervised       prints only the rows about supervisors whose servers rest
//! cost instructions     compares the instructions of a call with `instructions.txt` (valgrind)
//! cost syscalls         the same for its system calls with `syscalls.txt` (strace)
//! cost --anchors DIR    prints rows beside a floor and another implementation, whose programs are
//!                       those of a built copy of the anchors. `--rounds N`, `--secs S`, and
//!                       `--only TEXT` of the names of setups
//! cost https            prints a table of calls over HTTPS beside the official Rust SDK, whose
//!                       program it compiles. `--rounds N` and `--secs S`
//! ```
//!
//! `UPDATE=1` writes the table that is compared.

use mcp_tests::cost::anchors::{self, Options};
use mcp_tests::cost::{codec, growth, https, instructions, programs, raw, resting, supervised, syscalls, tokens};
use mcp_tests::interop::setup::beside;
use mcp_tests::peer::Failure;
use std::env;
use std::path::Path;
use std::process::ExitCode;

pub(crate) fn main(args: Vec<String>) -> ExitCode {
    mcp_tests::exit_code("cost", run(&args))
}

fn run(args: &[String]) -> Result<bool, Failure> {
    let this = env::current_exe()?;
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match words[..] {
        [] => tree(&this)?,
        ["codec"] => codec::rows().iter().for_each(|row| println!("{row}")),
        ["tokens"] => tokens::rows().iter().for_each(|row| println!("{row}")),
        ["supervised"] => supervised::rows()?.iter().for_each(|row| println!("{row}")),
        ["instructions"] => return instructions::kept()?.compare(&instructions::rows(&this)?),
        ["syscalls"] => return syscalls::kept().compare(&syscalls::rows(&this)?),
        ["--anchors", anchors, ref rest @ ..] => beside_anchors(&this, anchors, rest)?,
        ["https", ref rest @ ..] => over_https(&this, rest)?,
        // What this program starts of itself.
        ["calls", transport, era, count] => instructions::calls(transport, era, count)?,
        ["growth", reader, length] => growth::read(reader, length)?,
        ["answer"] => raw::serve_stdio()?,
        _ => return Err("cost [codec | tokens | supervised | instructions | syscalls | https | --anchors DIR]".into()),
    }
    Ok(true)
}

/// The rows that need only this tree.
fn tree(this: &Path) -> Result<(), Failure> {
    let heap = beside("mcp-heap")?;
    programs::heap(&heap)?.iter().for_each(|row| println!("{row}"));
    programs::crates()?.iter().for_each(|row| println!("{row}"));
    resting::rows()?.iter().for_each(|row| println!("{row}"));
    supervised::rows()?.iter().for_each(|row| println!("{row}"));
    instructions::rows(this)?.iter().for_each(|row| println!("{row}"));
    syscalls::rows(this)?.iter().for_each(|row| println!("{row}"));
    codec::rows().iter().for_each(|row| println!("{row}"));
    tokens::rows().iter().for_each(|row| println!("{row}"));
    Ok(())
}

fn beside_anchors(this: &Path, anchors: &str, rest: &[&str]) -> Result<(), Failure> {
    let mut options = Options { anchors: anchors.into(), rounds: 5, secs: "0.5".into(), only: String::new() };
    for option in rest.chunks(2) {
        match option {
            ["--rounds", rounds] => options.rounds = rounds.parse()?,
            ["--secs", secs] => options.secs = (*secs).into(),
            ["--only", only] => options.only = (*only).into(),
            other => return Err(format!("{other:?} is no option").into()),
        }
    }
    anchors::print(this, &options)
}

fn over_https(this: &Path, rest: &[&str]) -> Result<(), Failure> {
    let (mut rounds, mut secs) = (5, "2");
    for option in rest.chunks(2) {
        match *option {
            ["--rounds", number] => rounds = number.parse()?,
            ["--secs", number] => secs = number,
            ref other => return Err(format!("{other:?} is no option").into()),
        }
    }
    https::print(this, rounds, secs)
}
