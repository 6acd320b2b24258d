//! Load over real sockets: `load` plays every scene with a server on each adapter and prints its
//! resource usage, and the memory of the engine alone. `--only TEXT` selects scenes by name,
//! `engine` omits all of them.

use mcp_tests::adapters::Adapter;
use mcp_tests::heap::{made, used};
use mcp_tests::load::heap::{Meter, table};
use mcp_tests::load::{SCENES, Scale, Scene, Setup, server};
use std::process::ExitCode;
use std::time::Duration;
use std::{env, io};

pub(crate) fn main(args: Vec<String>) -> ExitCode {
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = match words[..] {
        ["serve", adapter, patience, setup] => serve(adapter, patience, setup),
        ["engine"] => all(|_| false),
        ["--only", only] => all(|scene| scene.contains(only)),
        [] => all(|_| true),
        _ => Err("load [engine | --only TEXT]".into()),
    };
    mcp_tests::exit_code("load", done)
}

fn serve(adapter: &str, patience: &str, setup: &str) -> Result<bool, String> {
    let adapter = Adapter::named(adapter).ok_or("there is no such adapter")?;
    let setup = Setup::ALL.into_iter().find(|one| one.name() == setup).ok_or("there is no such setup")?;
    let patience = patience.parse().map_err(|_| "that is no time in milliseconds")?;
    server::serve(adapter, Duration::from_millis(patience), setup, used).map_err(|e| e.to_string())?;
    Ok(true)
}

fn all(chosen: impl Fn(&str) -> bool) -> Result<bool, String> {
    let (mut passed, mut failed) = (0, 0);
    let mut count = |good: bool| if good { passed += 1 } else { failed += 1 };
    let this = env::current_exe().map_err(|e: io::Error| e.to_string())?;
    println!("{:<30}{:<9}{}", "scene", "server", Scene::columns());
    for scene in SCENES.iter().filter(|scene| chosen(scene.name)) {
        for adapter in Adapter::ALL {
            let shown = scene.show(&this, adapter, &Scale::FULL);
            count(shown.is_ok());
            let line = shown.unwrap_or_else(|why| format!("  FAILED: {why}"));
            println!("{:<30}{:<9}{line}", scene.name, adapter.name());
        }
    }
    println!("\nthe engine alone, of each of 1000");
    for (name, line) in table(Meter { used, made }) {
        count(line.is_ok());
        println!("{name:<39}{}", line.unwrap_or_else(|why| format!("  FAILED: {why}")));
    }
    println!("load: {passed} passed, {failed} failed");
    Ok(failed == 0 && passed > 0)
}
