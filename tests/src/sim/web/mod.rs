//! HTTP under faults: a real client, connections that are cut, delayed, stalled, refused and reset,
//! and a model of a server with every possible error. Everything is in virtual time, and a function
//! of its [`Scenario`].
//!
//! The invariants are in `tap` (the bytes on the connections) and in `run` (the events of the
//! application and the runs of the server). [`net::Web`] also works without random faults and
//! without the model, to measure a client against a server of a few lines.

pub mod fault;
pub mod model;
pub mod net;
pub mod report;
mod run;
pub mod stub;
pub mod tap;
pub mod wire;

pub use fault::{Chaos, Fault};
pub use model::{Flavour, Model};
pub use net::{Conn, Net, Site, Web};
pub use report::Report;
pub use stub::{Stub, Turn};
pub use tap::Tap;

use super::campaign::{self, Simulation, Tally, Violation};
use super::digest::log::Entry;
use super::less::Less;
use super::rng::Rng;
use mcp_proto::client::{ListenerStart, Policy, Repeat, Resume, SseDecode};
use mcp_proto::{ClientConfig, Era};
use run::Run;
use std::fmt;
use std::time::Duration;

/// Everything that determines a run.
#[derive(Clone, PartialEq, Debug)]
pub struct Scenario {
    /// The seed of all choices, those of [`flavour`](Self::flavour) included.
    pub seed: u64,
    /// How the server behaves when it does nothing wrong.
    pub flavour: Flavour,
    /// How the client negotiates.
    pub policy: Policy,
    /// Whether the application answers challenges.
    pub authorize: bool,
    /// Whether it wants to know when the tools change.
    pub watch_tools: bool,
    /// Whether and when the listener is opened.
    pub listener: ListenerStart,
    /// How often the rest of a stream is asked for.
    pub resume: Resume,
    /// Which calls are made a second time.
    pub repeat: Repeat,
    /// The treatment of an event without a message.
    pub sse_decode: SseDecode,
    /// How often the client pings.
    pub ping: Option<Duration>,
    /// How long a listener may be silent.
    pub idle: Duration,
    /// How many operations the application makes, before it closes.
    pub operations: u64,
    /// Faults per thousand chances; zero for a clean run.
    pub faults: u64,
    /// Bytes that a link holds in one direction.
    pub capacity: usize,
    /// The omissions of the run.
    pub less: Less,
}

impl Scenario {
    /// The scenario of a seed.
    pub fn from_seed(seed: u64) -> Self {
        let mut rng = Rng::new(seed ^ 0x0077_6562);
        let flavour = Flavour::draw(&mut rng);
        let policy = match (rng.below(3), flavour.era) {
            (0, _) => Policy::Auto,
            (_, Era::Modern) => Policy::Modern,
            (_, Era::Legacy) => Policy::Legacy,
        };
        let capacity = [64, 1024, 16 << 10, 1 << 20][rng.below(4) as usize];
        let faults = [0, 40, 100][rng.below(3) as usize];
        let operations = 5 + rng.below(40);
        let (authorize, watch_tools) = (rng.per_mille(400), rng.per_mille(500));
        let listener = match rng.below(10) {
            0 => ListenerStart::Never,
            1 => ListenerStart::BeforeInitialized,
            _ => ListenerStart::AfterInitialized,
        };
        let resume = match rng.below(10) {
            0 => Resume::Never,
            1 | 2 => Resume::Strict(2),
            _ => Resume::Progress,
        };
        let repeat = match rng.below(10) {
            0 => Repeat::Never,
            1 => Repeat::Always,
            _ => Repeat::Safe,
        };
        let sse_decode = if rng.per_mille(200) { SseDecode::Reject } else { SseDecode::Skip };
        let ping = rng.per_mille(150).then_some(Duration::from_secs(10));
        let idle = Duration::from_secs([25, 300][rng.below(2) as usize]);
        Self {
            seed,
            sse_decode,
            ping,
            idle,
            flavour,
            policy,
            authorize,
            watch_tools,
            listener,
            resume,
            repeat,
            operations,
            faults,
            capacity,
            less: Less::default(),
        }
    }

    /// Reads the output of [`Display`](fmt::Display). Values that follow from the seed are not
    /// written.
    pub fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
        let seed = lines.next()?.strip_prefix("web = ")?.trim().parse().ok()?;
        let mut scenario = Self::from_seed(seed);
        for line in lines {
            let (key, value) = line.split_once('=')?;
            if scenario.less.read(key.trim(), value).is_some() {
                continue;
            }
            let number = value.trim().parse::<u64>().ok()?;
            match key.trim() {
                "operations" => scenario.operations = number,
                "faults" => scenario.faults = number,
                "capacity" => scenario.capacity = usize::try_from(number).ok().filter(|n| *n > 0)?,
                _ => return None,
            }
        }
        Some(scenario)
    }
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "web = {}", self.seed)?;
        writeln!(f, "operations = {}\nfaults = {}\ncapacity = {}", self.operations, self.faults, self.capacity)?;
        self.less.fmt(f)
    }
}

impl Flavour {
    fn draw(rng: &mut Rng) -> Self {
        let legacy = rng.per_mille(700);
        let mut may = |n: u64| legacy && rng.per_mille(n);
        let sessions = may(750);
        let listener = sessions && may(750);
        let ids = sessions && may(750);
        let polling = ids && may(400);
        let asks_on_listener = listener && may(300);
        let version = ["2025-11-25", "2025-11-25", "2025-06-18", "2025-03-26"][rng.below(4) as usize];
        Self {
            version,
            era: if legacy { Era::Legacy } else { Era::Modern },
            streams: [0, 500, 1000][rng.below(3) as usize],
            sessions,
            listener,
            ids,
            polling,
            retry: [None, Some(20), Some(500), Some(3_000)][rng.below(4) as usize],
            asks_on_listener,
            chunked: rng.per_mille(850),
            beats: rng.per_mille(700),
        }
    }
}

/// The configuration of the client of a scenario.
pub(super) fn configure(scenario: &Scenario) -> ClientConfig {
    run::configure(scenario)
}

/// Runs one scenario to its end, and returns the inputs of its client.
pub(super) fn record(scenario: &Scenario) -> Vec<Entry> {
    Run::record(scenario)
}

/// Runs one scenario to its end, and adds its results to `report`. With `trace`, every step is
/// printed.
///
/// # Panics
/// If a standing property is violated. The scenario is written to a file first, and the command
/// that repeats it is printed.
pub fn run(scenario: &Scenario, report: &mut Report, trace: bool) {
    campaign::run(scenario, report, trace);
}

impl Simulation for Scenario {
    const NAME: &'static str = "web";
    type Report = Report;

    fn from_seed(seed: u64) -> Self {
        Self::from_seed(seed)
    }

    fn seed(&self) -> u64 {
        self.seed
    }

    fn attempt(&self, trace: bool) -> Result<Report, Violation> {
        campaign::attempt(|| Run::new(self, trace), Run::run, Run::drawn)
    }

    fn operations(&mut self) -> &mut u64 {
        &mut self.operations
    }

    fn less(&mut self) -> &mut Less {
        &mut self.less
    }

    fn simpler(&self) -> Vec<Self> {
        vec![Self { faults: 0, ..self.clone() }, Self { capacity: 1 << 20, ..self.clone() }]
    }
}

impl Tally for Report {
    fn steps(&self) -> u64 {
        self.steps
    }

    fn add(&mut self, other: &Self) {
        self.add(other);
    }

    fn missing(&self, faults: u64, pairs: u64) -> Vec<String> {
        self.missing(faults, pairs)
    }
}
