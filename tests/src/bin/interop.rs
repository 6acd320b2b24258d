#![forbid(unsafe_code)]
//! Installs clients and servers that this project did not write, and runs ours against each, over stdio and HTTP, in both adapters and every
//! era that the peer has. What cannot be installed fails. `interop [--steps] [WORD]`: only the peers whose name contains the word, and
//! all their steps.
//!
//! Prints the matrix: a line for each peer, era and adapter. All steps of a line that is not as it must be are shown, with what the peer wrote
//! to standard error; what a peer is known to get wrong is listed below with the reason.

use std::collections::BTreeSet;
use std::env;
use std::process::ExitCode;
use std::time::Instant;

use mcp_tests::interop::clients::{self, clients};
use mcp_tests::interop::servers::servers;
use mcp_tests::interop::steps::{self, Connect};
use mcp_tests::interop::{Mark, Row, Shows, blocking, setup, smol, web};

/// The adapters by name.
const ADAPTERS: [(&str, Connect); 2] = [("mcp-blocking", blocking::connect), ("mcp-smol", smol::connect)];

fn main() -> ExitCode {
    let (flags, words): (Vec<String>, Vec<String>) = env::args().skip(1).partition(|word| word.starts_with("--"));
    let (all, word) = (flags.iter().any(|flag| flag == "--steps"), words.concat());
    let began = Instant::now();
    let installed = match setup::install() {
        Ok(installed) => installed,
        Err(why) => {
            eprintln!("interop: {why}");
            return ExitCode::FAILURE;
        }
    };
    println!("installed in {} s", began.elapsed().as_secs());
    println!("{:<34} {:<7} {:<8} {:<11} {:<13} time    steps passed", "peer", "role", "how", "revision", "adapter");
    let (mut servers, clients) = (servers(&installed), clients(&installed));
    servers.extend(web::servers(&installed));
    let mut rows = Vec::new();
    let mut last = Instant::now();
    let mut show = |how: &str, mut row: Row| {
        row.time = last.elapsed();
        last = Instant::now();
        print(how, &row, all);
        rows.push(row);
    };
    for (server, (adapter, connect)) in servers.iter().flat_map(|server| ADAPTERS.map(|adapter| (server, adapter))) {
        for (policy, revision) in server.reached.iter().filter(|_| server.name.contains(&word)) {
            let run = if server.web.is_some() { web::run } else { steps::run };
            show(&format!("{policy:?}").to_lowercase(), run(server, *policy, revision, adapter, connect));
        }
        for policy in server.refuses.iter().filter(|_| server.name.contains(&word)) {
            let refuse = if server.web.is_some() { web::refuse } else { steps::refuse };
            show(&format!("{policy:?}").to_lowercase(), refuse(server, *policy, adapter, connect));
        }
    }
    for (client, (adapter, _)) in clients.iter().flat_map(|client| ADAPTERS.map(|adapter| (client, adapter))) {
        for (mode, old, revision) in client.reached.iter().filter(|_| client.name.contains(&word)) {
            let how = if *old { "fallback" } else { *mode };
            show(how, clients::run(client, (mode, *old, revision), adapter, &installed));
        }
    }
    let known: BTreeSet<_> = rows.iter().flat_map(deviations).collect();
    for (peer, step, reason) in known {
        println!("known of {peer}: {step}: {reason}");
    }
    let listed = servers.iter().map(|server| (server.name, server.deviations));
    let listed = listed.chain(clients.iter().map(|client| (client.name, client.deviations)));
    let mut stale = 0;
    for (peer, (revision, step, _, shows_when)) in
        listed.flat_map(|(peer, known)| known.iter().map(move |known| (peer, known)))
    {
        let shows = |row: &&Row| row.revision == *revision && deviations(row).any(|(_, name, _)| name == *step);
        let mut of_it = rows.iter().filter(|row| row.peer == peer).peekable();
        if *shows_when == Shows::Always && of_it.peek().is_some() && of_it.find(shows).is_none() {
            stale += 1;
            println!("FAIL {peer}, {revision}: {step} is listed as wrong, and was right in every row");
        }
    }
    let sum = rows.iter().map(Row::count).fold((0, stale), |sum, (passed, failed, _)| (sum.0 + passed, sum.1 + failed));
    println!("took {} s", began.elapsed().as_secs());
    println!("interop: {} passed, {} failed", sum.0, sum.1);
    if sum.1 == 0 && sum.0 > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// What the peer of a row got wrong as it is known to.
fn deviations(row: &Row) -> impl Iterator<Item = (&str, &str, &str)> {
    row.steps.iter().filter_map(|(step, mark)| match mark {
        Mark::Deviates(_, reason) => Some((row.peer.as_str(), step.as_str(), *reason)),
        _ => None,
    })
}

fn print(how: &str, row: &Row, all: bool) {
    let (passed, failed, deviating) = row.count();
    let mut result = format!("{passed} of {}", row.steps.len());
    if deviating > 0 {
        let names: Vec<&str> = deviations(row).map(|(_, step, _)| step).collect();
        result = format!("{result}, known: {}", names.join(", "));
    }
    if failed > 0 {
        result = format!("{result}, {failed} FAILED");
    }
    let time = row.time.as_secs_f64();
    println!(
        "{:<34} {:<7} {how:<8} {:<11} {:<13} {time:4.1} s  {result}",
        row.peer, row.role, row.revision, row.adapter
    );
    if failed > 0 || all {
        for (step, mark) in &row.steps {
            match mark {
                Mark::Passed(what) => println!("    ok    {step}: {what}"),
                Mark::Failed(why) => println!("    FAIL  {step}: {why}"),
                Mark::Deviates(what, reason) => println!("    known {step}: {what} ({reason})"),
            }
        }
        for line in &row.stderr {
            println!("    stderr {line}");
        }
    }
}
