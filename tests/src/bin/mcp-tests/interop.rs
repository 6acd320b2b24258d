//! Installs clients and servers of other projects, and runs ours with each, over stdio and HTTP, in
//! both adapters and every era of the peer. A failed installation fails the run. `interop [--steps]
//! [--newest | --short] [--adapter NAME] [WORDS]` runs only the peers whose name, followed by
//! `server` or `client`, contains the words. `--steps` prints all steps. `--newest` runs only the
//! newest TypeScript and Python peers and installs nothing else. `--short` runs only one line of
//! each of these over stdio and one over HTTP. `--adapter` runs only one of our adapters,
//! `blocking` or `smol`. `--tls` runs the lines over HTTP with TLS, of the peers whose programs are
//! our own.
//!
//! Prints the matrix: a line for each peer, era and adapter. Those over stdio come first, one by
//! one, since they check all descendants of this process. Those over HTTP run several at once,
//! since they mostly wait. All steps of a faulty line are shown, with the peer's standard error.
//! The known deviations of peers are listed at the end with their reasons.

use std::collections::BTreeSet;
use std::env;
use std::process::{Command, ExitCode};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Instant;

use mcp_proto::client::Policy;
use mcp_tests::adapters::Adapter;
use mcp_tests::exit_code;
use mcp_tests::interop::callers::{self, callers};
use mcp_tests::interop::clients::{self, Client, Ours, Reach, clients};
use mcp_tests::interop::servers::{Server, servers};
use mcp_tests::interop::setup::{Installed, Which};
use mcp_tests::interop::steps;
use mcp_tests::interop::{Mark, Row, Shows, setup, tls, traces, web};

/// Number of lines over HTTP that run at once.
const AT_ONCE: usize = 3;

/// The beginnings of the newest TypeScript and Python peers' names.
const NEWEST: [&str; 4] = ["client 2.", "server 2.", "server-everything", "mcp 2."];

/// A planned line of the table.
#[derive(Clone, Copy)]
enum Plan<'a> {
    /// Our client connects to this server.
    Reach(&'a Server, Policy, &'static str, Adapter),
    /// This server refuses our client.
    Refuse(&'a Server, Policy, Adapter),
    /// This client connects to our server.
    Meet(&'a Client, Reach, Adapter),
}

impl Plan<'_> {
    /// Returns the peer and its role.
    fn name(&self) -> String {
        match self {
            Self::Reach(server, ..) | Self::Refuse(server, ..) => format!("{} server", server.name),
            Self::Meet(client, ..) => format!("{} client", client.name),
        }
    }

    fn is_web(&self) -> bool {
        match self {
            Self::Reach(server, ..) | Self::Refuse(server, ..) => server.web.is_some(),
            Self::Meet(client, ..) => client.web.is_some(),
        }
    }

    /// Returns whether the peer is an official SDK over stdio, or over HTTP without a variation.
    fn is_plain(&self) -> bool {
        let name = match self {
            Self::Reach(server, ..) | Self::Refuse(server, ..) => server.name,
            Self::Meet(client, ..) => client.name,
        };
        let variation = name.split_once(',').map_or("", |(_, variation)| variation.trim());
        matches!(variation, "" | "HTTP") && !name.starts_with("server-everything")
    }

    /// Returns whether the peer can use TLS.
    fn can_use_tls(&self) -> bool {
        let name = self.name();
        self.is_web() && !name.starts_with("server-everything") && !name.starts_with("rmcp")
    }

    /// Returns how the two connect.
    fn how(&self) -> String {
        match self {
            Self::Reach(_, policy, ..) | Self::Refuse(_, policy, _) => format!("{policy:?}").to_lowercase(),
            Self::Meet(_, Reach { ours: Ours::Older, .. }, _) => "fallback".to_owned(),
            Self::Meet(_, Reach { mode, .. }, _) => (*mode).to_owned(),
        }
    }

    fn run(self, installed: &Installed) -> Row {
        let began = Instant::now();
        let mut row = match (self, self.is_web()) {
            (Self::Reach(server, policy, revision, adapter), true) => web::run(server, policy, revision, adapter),
            (Self::Reach(server, policy, revision, adapter), false) => steps::run(server, policy, revision, adapter),
            (Self::Refuse(server, policy, adapter), true) => web::refuse(server, policy, adapter),
            (Self::Refuse(server, policy, adapter), false) => steps::refuse(server, policy, adapter),
            (Self::Meet(client, reached, adapter), true) => callers::run(client, reached, adapter, installed),
            (Self::Meet(client, reached, adapter), false) => clients::run(client, reached, adapter, installed),
        };
        row.time = began.elapsed();
        row
    }
}

/// The arguments.
#[derive(Default)]
struct Chosen {
    steps: bool,
    newest: bool,
    short: bool,
    tls: bool,
    only: Option<Adapter>,
    words: String,
}

impl Chosen {
    fn read(mut args: impl Iterator<Item = String>) -> Result<Self, String> {
        let (mut chosen, mut words) = (Self::default(), Vec::new());
        while let Some(arg) = args.next() {
            match arg.as_str() {
                "--steps" => chosen.steps = true,
                "--newest" => chosen.newest = true,
                "--short" => (chosen.newest, chosen.short) = (true, true),
                "--tls" => chosen.tls = true,
                "--adapter" => {
                    let known = Adapter::named(&args.next().unwrap_or_default());
                    chosen.only = Some(known.ok_or("--adapter takes blocking or smol")?);
                }
                flag if flag.starts_with("--") => return Err(format!("unknown flag {flag}")),
                _ => words.push(arg),
            }
        }
        chosen.words = words.join(" ");
        Ok(chosen)
    }

    fn peer(&self, name: &str) -> bool {
        name.contains(&self.words) && (!self.newest || NEWEST.iter().any(|peer| name.starts_with(peer)))
    }

    /// Keeps the chosen ones. Of the short form, these are the first of each official SDK over
    /// stdio and over plain HTTP, in each role.
    fn retain(&self, plans: &mut Vec<Plan<'_>>) {
        plans.retain(|plan| self.peer(&plan.name()) && (!self.tls || plan.can_use_tls()));
        if self.short {
            let mut seen = BTreeSet::new();
            plans.retain(|plan| plan.is_plain() && seen.insert(plan.name()));
        }
    }
}

pub(crate) fn main(args: Vec<String>) -> ExitCode {
    exit_code("interop", run(args))
}

/// The program in the middle of a trace.
pub(crate) fn relay(args: Vec<String>) -> ExitCode {
    match Adapter::first_of(args) {
        Some((adapter, args)) => traces::relay(adapter, &args),
        None => {
            eprintln!("{}: the first argument is blocking or smol", traces::RELAY);
            ExitCode::from(2)
        }
    }
}

fn run(args: Vec<String>) -> Result<bool, String> {
    let chosen = Chosen::read(args.into_iter())?;
    if chosen.tls && !tls::is_on() {
        return run_again_with_tls();
    }
    let began = Instant::now();
    let installed = setup::install(if chosen.newest { Which::Newest } else { Which::All })?;
    println!("installed in {} s", began.elapsed().as_secs());
    println!("{:<34} {:<7} {:<8} {:<11} {:<13} time    steps passed", "peer", "role", "how", "revision", "adapter");
    let (mut servers, mut clients) = (servers(&installed), clients(&installed));
    servers.extend(web::servers(&installed));
    clients.extend(callers(&installed));
    let mut plans = Vec::new();
    let adapters: Vec<Adapter> =
        Adapter::ALL.into_iter().filter(|adapter| chosen.only.is_none_or(|only| only == *adapter)).collect();
    for (server, adapter) in servers.iter().flat_map(|server| adapters.iter().map(move |adapter| (server, *adapter))) {
        plans.extend(server.reached.iter().map(|(policy, revision)| Plan::Reach(server, *policy, revision, adapter)));
        plans.extend(server.refuses.iter().map(|policy| Plan::Refuse(server, *policy, adapter)));
    }
    for (client, adapter) in clients.iter().flat_map(|client| adapters.iter().map(move |adapter| (client, *adapter))) {
        plans.extend(client.reached.iter().map(|reached| Plan::Meet(client, *reached, adapter)));
    }
    chosen.retain(&mut plans);
    let (web, stdio): (Vec<Plan<'_>>, Vec<Plan<'_>>) = plans.into_iter().partition(Plan::is_web);
    let mut rows = Vec::new();
    let mut show = |plan: Plan<'_>, row: Row| {
        print(&plan.how(), &row, chosen.steps);
        rows.push(row);
    };
    for plan in stdio {
        show(plan, plan.run(&installed));
    }
    println!("over stdio {} s", began.elapsed().as_secs());
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        let (done, rows) = mpsc::channel();
        for _ in 0..AT_ONCE {
            let (done, web, next, installed) = (done.clone(), &web, &next, &installed);
            scope.spawn(move || {
                while let Some(plan) = web.get(next.fetch_add(1, Ordering::Relaxed)) {
                    // There is no receiver only if the main thread has panicked.
                    let _ = done.send((*plan, plan.run(installed)));
                }
            });
        }
        drop(done);
        for (plan, row) in rows {
            show(plan, row);
        }
    });
    // Not over HTTP, and with the newest SDK only.
    if !chosen.tls && "trace".contains(&chosen.words) {
        for adapter in &adapters {
            let row = traces::row(&installed, *adapter);
            print("stdio", &row, chosen.steps);
            rows.push(row);
        }
    }
    let known: BTreeSet<_> = rows.iter().flat_map(deviations).collect();
    for (peer, step, reason) in known {
        println!("known of {peer}: {step}: {reason}");
    }
    let listed = servers.iter().map(|server| (server.name, "server", server.deviations));
    let listed = listed.chain(clients.iter().map(|client| (client.name, "client", client.deviations)));
    let mut stale = 0;
    for (peer, role, (revision, step, _, shows_when)) in
        listed.flat_map(|(peer, role, known)| known.iter().map(move |known| (peer, role, known)))
    {
        let shows = |row: &&Row| row.revision == *revision && deviations(row).any(|(_, name, _)| name == *step);
        let mut of_it = rows.iter().filter(|row| row.peer == peer && row.role == role).peekable();
        if *shows_when == Shows::Always && of_it.peek().is_some() && of_it.find(shows).is_none() {
            stale += 1;
            println!("FAIL {peer} {role}, {revision}: {step} is listed as wrong, and was right in every row");
        }
    }
    let sum = rows.iter().map(Row::count).fold((0, stale), |sum, (passed, failed, _)| (sum.0 + passed, sum.1 + failed));
    println!("took {} s", began.elapsed().as_secs());
    println!("interop: {} passed, {} failed", sum.0, sum.1);
    Ok(sum.1 == 0 && sum.0 > 0)
}

/// Runs this program with certificates in its environment.
fn run_again_with_tls() -> Result<bool, String> {
    let (program, folder) = (env::current_exe(), setup::place("tls"));
    let mut again = Command::new(program.map_err(|why| why.to_string())?);
    again.args(env::args_os().skip(1)).envs(tls::environment(&folder?)?);
    again.status().map(|status| status.success()).map_err(|why| why.to_string())
}

/// Returns the known deviations in a row.
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
        row.peer,
        row.role,
        row.revision,
        row.adapter.package()
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
