//! Installs a real authorization server, and takes our client in both adapters through the life of
//! a login: `auth [WORDS]` takes only the steps whose name contains the words. A failed
//! installation fails the run.

use std::iter;
use std::process::ExitCode;
use std::sync::Mutex;
use std::thread;
use std::time::Instant;

use mcp_tests::adapters::Adapter;
use mcp_tests::authorization::{Ground, STEPS};
use mcp_tests::{exit_code, rows};

/// Number of steps that are taken at once: they wait most of the time.
const AT_ONCE: usize = 4;

pub(crate) fn main(args: Vec<String>) -> ExitCode {
    exit_code("auth", run(&args.join(" ")))
}

fn run(words: &str) -> Result<bool, String> {
    let began = Instant::now();
    let ground = Ground::new()?;
    println!("installed in {} s", began.elapsed().as_secs());
    let chosen = STEPS.iter().filter(|step| step.name.contains(words));
    let left = Mutex::new(chosen.flat_map(|step| Adapter::ALL.map(|adapter| (step, adapter))));
    // The lock is free before the step is taken.
    let next = || left.lock().ok()?.next();
    let worker = || {
        iter::from_fn(next)
            .map(|(step, adapter)| rows::run(step.name, adapter, || step.take(&ground, adapter)))
            .collect()
    };
    let taken: Vec<bool> = thread::scope(|scope| {
        let workers: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap_or_else(|_| vec![false])).collect()
    });
    Ok(rows::close("auth", taken))
}
