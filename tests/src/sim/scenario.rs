//! What determines a run: the numbers that all worlds have, and the settings of one.

use super::campaign::{self, Violation};
use super::fault::{Chaos, Fault};
use super::report::{InputKind, Life, LoginInput, Report, ServerInputKind, pairs, rare};
use super::rng::Rng;
use mcp_proto::auth::FlowState;
use mcp_proto::client::State;
use std::collections::BTreeSet;
use std::fmt;

/// Everything that determines a run.
#[derive(Clone, PartialEq, Debug)]
pub struct Scenario<S> {
    /// The seed of all choices.
    pub seed: u64,
    /// How many operations the applications make, before they close.
    pub operations: u64,
    /// Faults per thousand chances; zero for a clean run.
    pub faults: u64,
    /// Bytes that a link holds in one direction.
    pub capacity: usize,
    /// The omissions of the run.
    pub less: Less,
    /// What only this world has.
    pub settings: S,
}

/// Faults and operations that a run leaves out, each by its number in the order of the run, from
/// zero.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Less {
    /// Random faults that are not injected.
    pub faults: BTreeSet<u64>,
    /// Operations of the applications that are not made.
    pub operations: BTreeSet<u64>,
}

/// A kind of simulated world: its scenario for each seed, and the run of a scenario.
pub trait Settings: Clone + PartialEq + fmt::Debug + Send + Sync {
    /// The name of the kind, used in the names of files.
    const NAME: &'static str;
    /// The key of the first line of a scenario, which has the seed.
    const KEY: &'static str = Self::NAME;
    /// The states of its clients.
    const STATES: &'static [State];
    /// Whether its server is an engine, whose inputs count as well.
    const SERVES: bool = false;
    /// The states of its logins.
    const LOGIN_STATES: &'static [FlowState] = &[];

    /// Returns why an input of a login cannot come in a state. `None` if it can.
    fn impossible(_state: FlowState, _input: LoginInput) -> Option<&'static str> {
        None
    }

    /// The scenario of a seed.
    fn from_seed(seed: u64) -> Scenario<Self>;
    /// Runs a scenario to the end. With `trace`, everything that happens is printed.
    ///
    /// # Errors
    /// If a standing property is violated.
    fn attempt(scenario: &Scenario<Self>, trace: bool) -> Result<Report, Violation>;
    /// The lines of a scenario that only this world has, each with its key.
    fn lines(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }
    /// Reads one of these lines. `None` if it has another key, or no possible value.
    fn read(&mut self, _key: &str, _value: &str) -> Option<()> {
        None
    }
    /// Simpler settings.
    fn simpler(&self) -> Vec<Self> {
        Vec::new()
    }
}

impl<S: Settings> Scenario<S> {
    /// The scenario of a seed.
    pub fn from_seed(seed: u64) -> Self {
        S::from_seed(seed)
    }

    /// Reads the output of [`Display`](fmt::Display). What has no line follows from the seed.
    /// `None` also for an impossible world: without clients, or over links without capacity.
    pub fn parse(text: &str) -> Option<Self> {
        let lines = text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
        let mut lines = lines.map(|line| line.split_once('=').map(|(key, value)| (key.trim(), value.trim())));
        let (key, seed) = lines.next()??;
        let mut scenario = Self::from_seed(seed.parse().ok().filter(|_| key == S::KEY)?);
        for line in lines {
            let (key, value) = line?;
            let numbers = || value.split_whitespace().map(|number| number.parse().ok()).collect::<Option<_>>();
            match key {
                "operations" => scenario.operations = value.parse().ok()?,
                "faults" => scenario.faults = value.parse().ok()?,
                "capacity" => scenario.capacity = value.parse().ok().filter(|n| *n > 0)?,
                "skip_faults" => scenario.less.faults = numbers()?,
                "skip_operations" => scenario.less.operations = numbers()?,
                _ => scenario.settings.read(key, value)?,
            }
        }
        Some(scenario)
    }

    /// Returns the choice of its faults with this generator.
    pub(super) fn chaos(&self, rng: Rng) -> Chaos {
        let mut chaos = Chaos::new(rng, self.faults);
        chaos.skip.clone_from(&self.less.faults);
        chaos
    }

    /// Scenarios that are simpler in one of the numbers or settings.
    pub(super) fn simpler(&self) -> Vec<Self> {
        let settings = self.settings.simpler().into_iter().map(|settings| Self { settings, ..self.clone() });
        settings.chain([Self { faults: 0, ..self.clone() }, Self { capacity: 1 << 20, ..self.clone() }]).collect()
    }

    /// Runs to the end, and adds the results to `report`. With `trace`, every step is printed.
    ///
    /// # Panics
    /// If a standing property is violated. The scenario is written to a file first, and the command
    /// that repeats it is printed.
    pub fn run(&self, report: &mut Report, trace: bool) {
        match S::attempt(self, trace) {
            Ok(done) => report.add(&done),
            Err(violation) => campaign::fail(self, &violation),
        }
    }

    /// Returns what occurred too seldom: faults below `faults` times, pairs of a state and an input
    /// below `least` times. Also the pairs that occurred and cannot.
    pub fn missing(report: &Report, faults: u64, least: u64) -> Vec<String> {
        let mut missing = rare(&report.faults, Fault::menu(S::NAME), faults);
        missing.extend(rare(&report.pairs, pairs(S::STATES, InputKind::ALL), least));
        if S::SERVES {
            missing.extend(rare(&report.server_pairs, pairs(Life::ALL, ServerInputKind::ALL), least));
        }
        let is_possible = |(state, input): &(FlowState, LoginInput)| S::impossible(*state, *input).is_none();
        let (possible, others): (Vec<_>, Vec<_>) =
            pairs(S::LOGIN_STATES, LoginInput::ALL).into_iter().partition(is_possible);
        missing.extend(rare(&report.login_pairs, possible, least));
        let unexpected = others.into_iter().filter(|pair| report.login_pairs.contains_key(pair));
        missing.extend(unexpected.map(|pair| format!("{pair:?} occurred")));
        missing
    }
}

impl<S: Settings> fmt::Display for Scenario<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} = {}", S::KEY, self.seed)?;
        for (key, value) in self.settings.lines() {
            writeln!(f, "{key} = {value}")?;
        }
        writeln!(f, "operations = {}\nfaults = {}\ncapacity = {}", self.operations, self.faults, self.capacity)?;
        for (key, numbers) in [("skip_faults", &self.less.faults), ("skip_operations", &self.less.operations)] {
            if !numbers.is_empty() {
                let numbers: Vec<String> = numbers.iter().map(u64::to_string).collect();
                writeln!(f, "{key} = {}", numbers.join(" "))?;
            }
        }
        Ok(())
    }
}
