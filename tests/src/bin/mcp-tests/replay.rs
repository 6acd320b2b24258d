//! Repeats a run, or makes many. `replay FILE` repeats a recorded client or supervisor, or the
//! scenario of a simulation, and prints everything that happens. `replay --shrink FILE` reduces a
//! failing scenario.
//!
//! `replay [--web | --both | --secured | --sse | --web-socket | --login | --nodes] (--steps N |
//! --runs N) [--seed S | --fresh] [--threads N] [--failures FOLDER]` simulates many scenarios, for
//! the seeds from S (1) on, or from a random one, which is printed. It runs all of them, writes
//! those that violate a property to the folder (`target/sim-failures`), counts them by kind, and
//! reduces one of each kind. It fails if there are any. With `--steps` it also fails if a kind of
//! fault, or a pair of state and input, occurred too seldom.
//!
//! `replay --digest FOLDER` applies the recorded inputs of many simulations to engines, and
//! compares hashes of their outputs with those in `digests.txt`: see `mcp_tests::sim::digest`. With
//! `--record` it records the simulations first. `--show WORLD SEED` prints the inputs and outputs
//! of one seed's engines, and `--diff WORLD SEED` the first difference from the program that
//! recorded.

use mcp_proto::record::{self, Log, Replay, Summary};
use mcp_proto::wired::WiredClient;
use mcp_supervisor::Supervisor;
use mcp_tests::sim::beside::{SseSettings, WebSocketSettings};
use mcp_tests::sim::campaign::{self, Campaign, Until};
use mcp_tests::sim::digest::command;
use mcp_tests::sim::scenario::{Scenario, Settings};
use mcp_tests::sim::secured::SecuredSettings;
use mcp_tests::sim::{both, duplex, login, nodes, web};
use std::hash::{BuildHasher, RandomState};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::{Duration, Instant};

const USAGE: &str = "usage: replay [--shrink] FILE | replay [--web | --both | --secured | --sse | --web-socket | --login | --nodes] (--steps N | --runs N) [--seed S | --fresh] \
                     [--threads N] [--failures FOLDER]";
/// Minimum number of occurrences of a kind of fault, and of a pair of state and input, in the runs
/// of `--steps`.
const OFTEN: (u64, u64) = (1000, 100);
/// Maximum number of runs for the reduction of a scenario.
const SHRINK_RUNS: u32 = 600;
/// Interval of the progress output of a campaign.
const PROGRESS: Duration = Duration::from_secs(60);

/// The command line.
#[derive(Default)]
struct Options {
    world: Option<String>,
    until: Option<Until>,
    seed: Option<u64>,
    threads: Option<u64>,
    failures: Option<PathBuf>,
    shrink: bool,
    file: Option<PathBuf>,
}

impl Options {
    /// Parses the arguments. `None` if one is unknown, or its value is missing.
    fn read(mut args: impl Iterator<Item = String>) -> Option<Self> {
        let mut options = Self::default();
        while let Some(arg) = args.next() {
            let mut number = || args.next()?.parse::<u64>().ok();
            match arg.as_str() {
                "--web" | "--both" | "--secured" | "--sse" | "--web-socket" | "--login" | "--nodes" => {
                    options.world = Some(arg)
                }
                "--steps" => options.until = Some(Until::Steps(number()?)),
                "--runs" => options.until = Some(Until::Runs(number()?)),
                "--seed" => options.seed = Some(number()?),
                // 40 bits: short enough to be typed.
                "--fresh" => options.seed = Some(RandomState::new().hash_one(std::time::SystemTime::now()) >> 24),
                "--threads" => options.threads = Some(number()?),
                "--failures" => options.failures = Some(args.next()?.into()),
                "--shrink" => options.shrink = true,
                file if !file.starts_with("--") && options.file.is_none() => options.file = Some(arg.into()),
                _ => return None,
            }
        }
        (options.until.is_some() != options.file.is_some()).then_some(options)
    }
}

pub(crate) fn main(args: Vec<String>) -> ExitCode {
    if let Some(("--digest", args)) = args.split_first().map(|(first, rest)| (first.as_str(), rest)) {
        return mcp_tests::exit_code("replay", command::run(args));
    }
    let Some(options) = Options::read(args.into_iter()) else {
        eprintln!("{USAGE}");
        return ExitCode::FAILURE;
    };
    match (&options.file, options.world.as_deref()) {
        (Some(file), _) => one(&std::fs::read(file).unwrap_or_default(), options.shrink),
        (None, Some("--web")) => many::<web::Settings>(&options),
        (None, Some("--both")) => many::<both::Settings>(&options),
        (None, Some("--secured")) => many::<SecuredSettings>(&options),
        (None, Some("--sse")) => many::<SseSettings>(&options),
        (None, Some("--login")) => many::<login::Settings>(&options),
        (None, Some("--nodes")) => many::<nodes::Settings>(&options),
        (None, Some(_)) => many::<WebSocketSettings>(&options),
        (None, None) => many::<duplex::Settings>(&options),
    }
}

fn one(file: &[u8], shrink: bool) -> ExitCode {
    match record::engine_of(file).as_deref() {
        Some("supervisor") => return recorded::<Supervisor<String>>(file),
        Some(_) => return recorded::<WiredClient>(file),
        None => {}
    }
    let text = std::str::from_utf8(file).unwrap_or_default();
    let done = repeat::<web::Settings>(text, shrink)
        .or_else(|| repeat::<both::Settings>(text, shrink))
        .or_else(|| repeat::<SecuredSettings>(text, shrink))
        .or_else(|| repeat::<SseSettings>(text, shrink))
        .or_else(|| repeat::<WebSocketSettings>(text, shrink))
        .or_else(|| repeat::<login::Settings>(text, shrink))
        .or_else(|| repeat::<nodes::Settings>(text, shrink))
        .or_else(|| repeat::<duplex::Settings>(text, shrink));
    done.unwrap_or_else(|| {
        eprintln!("{USAGE}");
        ExitCode::FAILURE
    })
}

/// Runs a scenario and prints what happens, or reduces it and prints the result. `None` if it is
/// none of this world.
fn repeat<S: Settings>(text: &str, shrink: bool) -> Option<ExitCode> {
    let scenario = Scenario::<S>::parse(text)?;
    campaign::quiet();
    Some(match S::attempt(&scenario, !shrink) {
        Ok(report) => {
            println!("{report:#?}");
            ExitCode::SUCCESS
        }
        Err(violation) if shrink => {
            let (scenario, violation) = campaign::shrink(&scenario, &violation, SHRINK_RUNS);
            eprintln!("{violation}");
            print!("{scenario}");
            ExitCode::FAILURE
        }
        Err(violation) => {
            eprintln!("{violation}");
            ExitCode::FAILURE
        }
    })
}

/// Makes many runs, and prints the results.
fn many<S: Settings>(options: &Options) -> ExitCode {
    let (Some(until), begun) = (options.until, Instant::now()) else { return ExitCode::FAILURE };
    let first = options.seed.unwrap_or(1);
    let threads = usize::try_from(options.threads.unwrap_or(1)).unwrap_or(1);
    let folder = options.failures.clone().unwrap_or_else(|| "target/sim-failures".into());
    let campaign = Campaign { first, until, threads, folder };
    println!("{}: {until:?} from seed {first} on, {threads} threads", S::NAME);
    campaign::quiet();
    let told = Mutex::new(begun);
    let summary = campaign.run::<S>(|summary| {
        let mut told = told.lock().unwrap();
        if told.elapsed() >= PROGRESS {
            *told = Instant::now();
            let failed: u64 = summary.found.values().map(|found| found.count).sum();
            println!("{} runs, {failed} failed, {:?}", summary.runs, begun.elapsed());
        }
    });
    campaign.shrink::<S>(&summary, SHRINK_RUNS);
    println!("seeds {first}..{}, {} steps, {:?}", first + summary.runs, summary.report.steps, begun.elapsed());
    let report = &summary.report;
    let numbers = report.numbers().into_iter().filter(|(name, n)| *name != "steps" && *n > 0);
    println!("{}", numbers.map(|(name, n)| format!("{n} {name}")).collect::<Vec<_>>().join(", "));
    if !report.statuses.is_empty() {
        println!("statuses: {:?}", report.statuses);
    }
    println!("faults: {:?}", report.faults);
    println!("pairs of state and input: {}", report.pairs.len() + report.server_pairs.len() + report.login_pairs.len());
    let missing = match until {
        Until::Steps(_) => Scenario::<S>::missing(report, OFTEN.0, OFTEN.1),
        Until::Runs(_) => Vec::new(),
    };
    println!("too seldom: {missing:?}");
    for (kind, found) in &summary.found {
        println!("{} x {kind} (first: seed {}, {})", found.count, found.seed, found.violation.place);
    }
    let failed: u64 = summary.found.values().map(|found| found.count).sum();
    println!("{} passed, {} failed", summary.runs - failed, failed + missing.len() as u64);
    if failed == 0 && missing.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Applies the recorded inputs to a client with the same configuration and seed, and compares its
/// outputs.
fn recorded<E: Replay>(file: &[u8]) -> ExitCode {
    let log = match Log::<E>::read(file) {
        Ok(log) => log,
        Err(e) => {
            eprintln!("{e}");
            return ExitCode::FAILURE;
        }
    };
    match log.replay() {
        Ok(summary) => {
            let Summary { inputs, outputs, bytes_read, bytes_written, time, complete, .. } = summary;
            println!(
                "{inputs} inputs, {outputs} outputs, the same again; {bytes_read} bytes read, {bytes_written} written, in {time:?}"
            );
            if !complete {
                println!("the recording stops before the end of the run");
            }
            ExitCode::SUCCESS
        }
        Err(difference) => {
            eprintln!("line {}: the replay acts differently{difference}", difference.line);
            if log.version != env!("CARGO_PKG_VERSION") {
                eprintln!("it was recorded by version {}", log.version);
            }
            ExitCode::FAILURE
        }
    }
}
