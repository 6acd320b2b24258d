//! Prints what comes of servers that misbehave: `hostile` one table, `hostile orphans` another. `--size BYTES` says how much a gibibyte
//! is, `--only TEXT` which rows are run. Build the other programs of this package first: it starts them.
#![forbid(unsafe_code)]

use mcp_tests::hostile::{Bench, ROWS};
use mcp_tests::orphans::groups;
use std::path::PathBuf;
use std::process::ExitCode;
use std::{env, io};

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    match run(&args) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(why) => {
            eprintln!("hostile: {why}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &[String]) -> Result<bool, String> {
    let value = |flag: &str| args.iter().skip_while(|arg| *arg != flag).nth(1);
    let size = value("--size").map_or(Ok(1 << 30), |size| size.parse()).map_err(|_| "that is no size")?;
    let only = value("--only").map_or("", String::as_str);
    match args.first().map(String::as_str) {
        Some("row") => {
            let [_, name, host, size] = args else { return Err("row NAME HOST SIZE".into()) };
            one(name, host, size.parse().map_err(|_| "that is no size")?)
        }
        Some("orphans") => orphans(only),
        _ => table(size, only),
    }
}

/// A program that lies beside this one.
fn beside(name: &str) -> Result<PathBuf, String> {
    Ok(env::current_exe().map_err(|e: io::Error| e.to_string())?.with_file_name(name))
}

fn one(name: &str, host: &str, size: u64) -> Result<bool, String> {
    let row = ROWS.iter().find(|row| row.name == name).ok_or("there is no such row")?;
    let host = row.hosts.iter().find(|one| one.name() == host).ok_or("it does not meet this row")?;
    let said = row.run(&Bench { host: *host, child: beside("misbehaving")?, size });
    println!("{}", said.as_deref().unwrap_or_else(|e| e));
    Ok(said.is_ok())
}

fn table(size: u64, only: &str) -> Result<bool, String> {
    let this = env::current_exe().map_err(|e| e.to_string())?;
    println!("{:<48}{:<9}{:>7} {:>8}  outcome", "server or bytes", "host", "MiB", "s");
    let (mut passed, mut failed) = (0, 0);
    for row in ROWS.iter().filter(|row| row.name.contains(only)) {
        for host in row.hosts {
            let shown = row.show(&this, *host, size);
            let (count, text) = match shown {
                Ok(shown) => (&mut passed, shown.to_string()),
                Err(why) => (&mut failed, format!("FAILED: {why}")),
            };
            *count += 1;
            println!("{:<48}{:<9}{text}", row.name, host.name());
        }
    }
    println!("hostile: {passed} passed, {failed} failed");
    Ok(failed == 0 && passed > 0)
}

/// A line for each case: how many processes there were, how many are left, and how long the end took.
fn orphans(only: &str) -> Result<bool, String> {
    let (host, child) = (beside("host")?, beside("misbehaving")?);
    println!("{:<30}{:<66}{:>8}{:>6}{:>8}", "end of the host", "adapter, end, flags, program", "started", "left", "s");
    let (mut passed, mut failed) = (0, 0);
    for group in groups().iter().filter(|group| group.name.contains(only)) {
        for (case, found) in group.run(&host, &child) {
            let name = format!("{:<30}{:<66}", group.name, case.to_string());
            match found {
                Ok(found) => {
                    passed += 1;
                    println!("{name}{:>8}{:>6}{:>8.2}", found.started, found.left, found.took.as_secs_f64());
                }
                Err(why) => {
                    failed += 1;
                    println!("{name}FAILED: {why}");
                }
            }
        }
    }
    println!("orphans: {passed} passed, {failed} failed");
    Ok(failed == 0 && passed > 0)
}
