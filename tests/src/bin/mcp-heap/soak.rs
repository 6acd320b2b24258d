//! Very many calls with cancellations, reconnections and servers that end, in both adapters over
//! stdio and HTTP, and the resources in use after them: `soak [--calls N] [--only TEXT]`, with N
//! calls in all scenes together. `soak serve ADAPTER` is the server over stdio.

use mcp_tests::adapters::Adapter;
use mcp_tests::heap::used;
use mcp_tests::soak::{SCENES, serve_pipe};
use std::env;
use std::process::ExitCode;

pub(crate) fn main(args: Vec<String>) -> ExitCode {
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = match words[..] {
        ["serve", name] => Adapter::named(name)
            .ok_or_else(|| format!("there is no adapter {name}"))
            .and_then(|adapter| serve_pipe(adapter, used).map(|()| true)),
        [] => play("100000", ""),
        ["--calls", calls] => play(calls, ""),
        ["--calls", calls, "--only", only] => play(calls, only),
        _ => Err("soak [--calls N [--only TEXT]]".into()),
    };
    mcp_tests::exit_code("soak", done)
}

fn play(calls: &str, only: &str) -> Result<bool, String> {
    let calls: u64 = calls.parse().map_err(|_| "that is no number of calls")?;
    let this = env::current_exe().map_err(|why| why.to_string())?;
    let (mut passed, mut failed) = (0, 0);
    for scene in SCENES.iter().filter(|scene| scene.to_string().contains(only)) {
        match scene.play(calls / SCENES.len() as u64, &this, used) {
            Ok(outcome) => {
                passed += 1;
                println!("{scene}{outcome}");
            }
            Err(why) => {
                failed += 1;
                println!("{scene}FAILED: {why}");
            }
        }
    }
    println!("soak: {passed} passed, {failed} failed");
    Ok(failed == 0 && passed > 0)
}
