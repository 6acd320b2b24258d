//! Prints the outcome of misbehaving peers: `hostile` for programs, `hostile web` for web servers,
//! `hostile server` for web clients, `hostile beside` for honest calls beside them, `hostile
//! orphans` for remaining processes. `--size BYTES` is
//! the size of a gibibyte, `--only TEXT` selects rows. Build the other programs of this package
//! first: it starts them.
//!
//! `hostile --driver COMMAND` runs all rows of drivers against a driver that is not of this
//! repository, `hostile web --driver COMMAND` and `hostile server --driver COMMAND` those tables.
//! COMMAND starts its shim: see `tests/hostile.md`.

use mcp_tests::hostile::{BESIDE, Bench, Host, PROGRAMS, Row, SERVER, Shown, WEB};
use mcp_tests::interop::setup::beside;
use mcp_tests::orphans::groups;
use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::{env, thread};

/// Number of rows of web servers or web clients that run at once: most of them wait. A row measures
/// its own memory, and no row is about speed.
const WORKERS: usize = 4;

pub(crate) fn main(args: Vec<String>) -> ExitCode {
    mcp_tests::exit_code("hostile", run(&args))
}

fn run(args: &[String]) -> Result<bool, String> {
    let value = |flag: &str| args.iter().skip_while(|arg| *arg != flag).nth(1);
    let size = value("--size").map_or(Ok(1 << 30), |size| size.parse()).map_err(|_| "that is no size")?;
    let only = value("--only").map_or("", String::as_str);
    let shim = value("--driver");
    match args.first().map(String::as_str) {
        _ if shim.is_none() && args.iter().any(|arg| arg == "--driver") => Err("--driver COMMAND".into()),
        Some("row") => {
            let [_, name, host, size, shim @ ..] = args else { return Err("row NAME HOST SIZE [SHIM]".into()) };
            one(name, host, size.parse().map_err(|_| "that is no size")?, shim.first())
        }
        Some("orphans") => orphans(only),
        Some("web") => table(&WEB.concat(), size, only, WORKERS, shim),
        Some("beside") => table(&BESIDE.concat(), size, only, 1, None),
        Some("server") => table(&SERVER.concat(), size, only, WORKERS, shim),
        _ if shim.is_some() => table(&[PROGRAMS, WEB, SERVER].concat().concat(), size, only, WORKERS, shim),
        _ => table(&PROGRAMS.concat(), size, only, 1, None),
    }
}

fn one(name: &str, host: &str, size: u64, shim: Option<&String>) -> Result<bool, String> {
    let mut rows = PROGRAMS.iter().chain(WEB).chain(SERVER).chain(BESIDE).copied().flatten();
    let row = rows.find(|row| row.name == name).ok_or("there is no such row")?;
    let bench = |host| Ok::<_, String>(Bench { host, child: beside("misbehaving")?, size });
    let said = match shim {
        Some(shim) => row.run_shim(&bench(Host::Shim)?, shim),
        None => {
            let host = row.hosts.iter().find(|one| one.name() == host).ok_or("it does not meet this row")?;
            row.run(&bench(*host)?)
        }
    };
    println!("{}", said.as_deref().unwrap_or_else(|e| e));
    Ok(said.is_ok())
}

/// Prints a line for each row and host, or for each row of drivers and this shim. As many run at
/// once as there are workers.
fn table(rows: &[Row], size: u64, only: &str, workers: usize, shim: Option<&String>) -> Result<bool, String> {
    let this = env::current_exe().map_err(|e| e.to_string())?;
    let rows = rows.iter().filter(|row| row.name.contains(only));
    let cases: Vec<(&Row, Host)> = match shim {
        Some(_) => rows.filter(|row| row.is_for_drivers()).map(|row| (row, Host::Shim)).collect(),
        None => rows.flat_map(|row| row.hosts.iter().map(move |host| (row, *host))).collect(),
    };
    let width = cases.iter().map(|(row, _)| row.name.len() + 2).max().unwrap_or(20);
    println!("{:<width$}{:<9}{:>7} {:>8}  outcome", "peer or bytes", "host", "MiB", "s");
    let (next, told) = (AtomicUsize::new(0), Mutex::new(Told { width, ..Told::default() }));
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some((at, (row, host))) = take(&next, &cases) {
                    let shown = match shim {
                        Some(shim) => row.show_shim(&this, shim, size),
                        None => row.show(&this, *host, size),
                    };
                    told.lock().unwrap_or_else(PoisonError::into_inner).tell(at, row.name, *host, shown);
                }
            });
        }
    });
    let Told { passed, failed, absent, .. } = told.into_inner().unwrap_or_else(PoisonError::into_inner);
    let absent = if shim.is_some() { format!(", {absent} not offered") } else { String::new() };
    println!("hostile: {passed} passed, {failed} failed{absent}");
    Ok(failed == 0 && passed > 0)
}

fn take<'a, T>(next: &AtomicUsize, cases: &'a [T]) -> Option<(usize, &'a T)> {
    let at = next.fetch_add(1, Ordering::Relaxed);
    cases.get(at).map(|case| (at, case))
}

/// Lines that are found in any order and printed in their own.
#[derive(Default)]
struct Told {
    width: usize,
    passed: usize,
    failed: usize,
    /// Those that the shim does not offer.
    absent: usize,
    printed: usize,
    waiting: BTreeMap<usize, String>,
}

impl Told {
    fn tell(&mut self, at: usize, name: &str, host: Host, shown: Result<Shown, String>) {
        let (count, text) = match shown {
            Ok(shown) if shown.offered => (&mut self.passed, shown.to_string()),
            Ok(shown) => (&mut self.absent, shown.to_string()),
            Err(why) => (&mut self.failed, format!("FAILED: {why}")),
        };
        *count += 1;
        self.waiting.insert(at, format!("{name:<width$}{:<9}{text}", host.name(), width = self.width));
        while let Some(line) = self.waiting.remove(&self.printed) {
            println!("{line}");
            self.printed += 1;
        }
    }
}

/// Prints a line for each case: the number of processes, the number of remaining ones, and the time
/// of the end.
fn orphans(only: &str) -> Result<bool, String> {
    let (host, child) = (beside("mcp-tests")?, beside("misbehaving")?);
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
