//! Runs many scenarios on several threads. A violation does not stop the campaign: its scenario is
//! written to a file, counted by kind, and made smaller at the end.

use super::report::Report;
use super::scenario::{Less, Scenario, Settings};
use std::any::Any;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Scenario files written for one kind of violation. Later ones are only counted.
const FILES: u64 = 20;

/// A standing property that did not hold.
#[derive(Clone, Debug)]
pub struct Violation {
    /// The message of the check.
    pub message: String,
    /// The line of the check, if [`quiet`] was called.
    pub place: String,
    /// The number of random faults until then.
    pub faults: u64,
    /// Operations that were made until then.
    pub operations: u64,
}

impl Violation {
    /// The message without the parts that differ from run to run: numbers, quoted text, and the
    /// fields of printed values.
    pub fn kind(&self) -> String {
        let line = self.message.trim_start_matches("assertion `left == right` failed: ");
        let mut kind = String::new();
        let (mut depth, mut is_quoted) = (0_u32, false);
        for c in line.lines().next().unwrap_or_default().chars() {
            match c {
                '"' => is_quoted = !is_quoted,
                _ if is_quoted => {}
                '{' | '[' | '(' => depth += 1,
                '}' | ']' | ')' => depth = depth.saturating_sub(1),
                _ if depth > 0 => {}
                '0'..='9' if kind.ends_with('N') => {}
                '0'..='9' => kind.push('N'),
                ' ' if kind.ends_with(' ') => {}
                c => kind.push(c),
            }
        }
        kind.trim_end().chars().take(100).collect()
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.place, self.message)
    }
}

thread_local! {
    static PLACE: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Panics of this process are no longer printed; [`Violation::place`] names their line.
pub fn quiet() {
    std::panic::set_hook(Box::new(|info| {
        let place = info.location().map(|at| format!("{}:{}", at.file(), at.line())).unwrap_or_default();
        PLACE.with_borrow_mut(|last| *last = place);
    }));
}

/// Runs a world, whose checks panic. `drawn` returns the number of faults and of operations.
pub(super) fn attempt<W, R>(
    new: impl FnOnce() -> W,
    run: impl FnOnce(&mut W) -> R,
    drawn: impl FnOnce(&W) -> (u64, u64),
) -> Result<R, Violation> {
    let mut world = None;
    let ran = catch_unwind(AssertUnwindSafe(|| run(world.insert(new()))));
    ran.map_err(|panic| {
        let (faults, operations) = world.as_ref().map_or((0, 0), drawn);
        let place = PLACE.with_borrow_mut(std::mem::take);
        // A world may panic again while it is dropped halfway through a step.
        let _ = catch_unwind(AssertUnwindSafe(|| drop(world)));
        Violation { message: text(&*panic), place, faults, operations }
    })
}

fn text(panic: &(dyn Any + Send)) -> String {
    match (panic.downcast_ref::<String>(), panic.downcast_ref::<&str>()) {
        (Some(text), _) => text.clone(),
        (None, Some(text)) => (*text).into(),
        (None, None) => "a panic without a message".into(),
    }
}

/// Writes a scenario to a file, and panics with its violation.
pub(super) fn fail<S: Settings>(scenario: &Scenario<S>, violation: &Violation) -> ! {
    let file = std::env::temp_dir().join(format!("mcp-{}-{}.txt", S::NAME, scenario.seed));
    let _ = std::fs::write(&file, written(scenario, violation));
    eprintln!("repeat with: cargo run -p mcp-tests -- replay {}", file.display());
    std::panic::resume_unwind(Box::new(violation.message.clone()));
}

/// The scenario as a file, the violation in comments above it.
fn written<S: Settings>(scenario: &Scenario<S>, violation: &Violation) -> String {
    let mut text = String::new();
    for line in violation.to_string().lines() {
        text.extend(["# ", line.trim_end(), "\n"]);
    }
    text + &scenario.to_string()
}

/// Which runs a campaign makes.
#[derive(Clone, Debug)]
pub struct Campaign {
    /// The first seed. Each run takes the next one.
    pub first: u64,
    /// When it ends.
    pub until: Until,
    /// Threads that run scenarios at the same time. The runs do not depend on it.
    pub threads: usize,
    /// The folder for scenarios that fail.
    pub folder: PathBuf,
}

/// When a campaign ends.
#[derive(Clone, Copy, Debug)]
pub enum Until {
    /// After this number of runs.
    Runs(u64),
    /// After the run that reaches this number of counted steps.
    Steps(u64),
}

/// The violations of one kind.
#[derive(Clone, Debug)]
pub struct Found {
    /// How many there were.
    pub count: u64,
    /// The seed of the first one.
    pub seed: u64,
    /// The first one.
    pub violation: Violation,
}

/// The results of a campaign.
#[derive(Debug, Default)]
pub struct Summary {
    /// Runs that were made.
    pub runs: u64,
    /// The numbers of those that violated nothing.
    pub report: Report,
    /// Violations by kind.
    pub found: BTreeMap<String, Found>,
}

impl Campaign {
    /// Makes the runs. Writes and prints each violation when it occurs, and calls `progress` after
    /// each run that counts.
    pub fn run<S: Settings>(&self, progress: impl Fn(&Summary) + Sync) -> Summary {
        let next = AtomicU64::new(self.first);
        let is_over = AtomicBool::new(matches!(self.until, Until::Runs(0) | Until::Steps(0)));
        // Results wait for those of lower seeds, so that the counted runs do not depend on the
        // threads.
        let state = Mutex::new((Summary::default(), BTreeMap::new()));
        std::thread::scope(|scope| {
            for _ in 0..self.threads.max(1) {
                scope.spawn(|| {
                    while !is_over.load(Ordering::Relaxed) {
                        let seed = next.fetch_add(1, Ordering::Relaxed);
                        let ran = S::attempt(&S::from_seed(seed), false);
                        let mut state = state.lock().expect("no panic while it is held");
                        let (summary, waiting) = &mut *state;
                        waiting.insert(seed, ran);
                        while let Some(ran) = waiting.remove(&(self.first + summary.runs)) {
                            if is_over.load(Ordering::Relaxed) {
                                break;
                            }
                            self.take::<S>(summary, ran);
                            is_over.store(self.is_over(summary), Ordering::Relaxed);
                            progress(summary);
                        }
                    }
                });
            }
        });
        state.into_inner().expect("as above").0
    }

    fn is_over(&self, summary: &Summary) -> bool {
        match self.until {
            Until::Runs(runs) => summary.runs >= runs,
            Until::Steps(steps) => summary.report.steps >= steps,
        }
    }

    fn take<S: Settings>(&self, summary: &mut Summary, ran: Result<Report, Violation>) {
        let seed = self.first + summary.runs;
        summary.runs += 1;
        match ran {
            Ok(report) => summary.report.add(&report),
            Err(violation) => {
                let new = || Found { count: 0, seed, violation: violation.clone() };
                let found = summary.found.entry(violation.kind()).or_insert_with(new);
                found.count += 1;
                if found.count <= FILES {
                    keep(&self.folder, &S::from_seed(seed), "", &violation);
                }
            }
        }
    }

    /// Makes the first scenario of each kind smaller and writes it beside the original one.
    pub fn shrink<S: Settings>(&self, summary: &Summary, most: u32) {
        for found in summary.found.values() {
            let (smaller, violation) = shrink(&S::from_seed(found.seed), &found.violation, most);
            keep(&self.folder, &smaller, "-small", &violation);
        }
    }
}

fn keep<S: Settings>(folder: &Path, scenario: &Scenario<S>, suffix: &str, violation: &Violation) {
    let file = folder.join(format!("{}-{}{suffix}.txt", S::NAME, scenario.seed));
    let kept = std::fs::create_dir_all(folder).and_then(|()| std::fs::write(&file, written(scenario, violation)));
    match kept {
        Ok(()) => eprintln!("{}: {}", file.display(), violation.kind()),
        Err(e) => eprintln!("{}: {e}\n{}", file.display(), written(scenario, violation)),
    }
}

/// A smaller scenario that violates the same property, after at most `most` runs.
pub fn shrink<S: Settings>(scenario: &Scenario<S>, violation: &Violation, most: u32) -> (Scenario<S>, Violation) {
    let mut smallest = Smallest { scenario: scenario.clone(), violation: violation.clone(), runs_left: most };
    loop {
        let before = smallest.runs_left;
        let mut changed = smallest.cut_operations();
        for simpler in smallest.scenario.simpler() {
            changed |= smallest.take(simpler);
        }
        changed |= smallest.skip(smallest.violation.faults, |less| &mut less.faults);
        changed |= smallest.skip(smallest.violation.operations, |less| &mut less.operations);
        if !changed || smallest.runs_left == 0 || smallest.runs_left == before {
            return (smallest.scenario, smallest.violation);
        }
    }
}

struct Smallest<S> {
    scenario: Scenario<S>,
    violation: Violation,
    runs_left: u32,
}

impl<S: Settings> Smallest<S> {
    /// Whether the scenario violates the same property. Then it is the smallest one.
    fn take(&mut self, scenario: Scenario<S>) -> bool {
        if self.runs_left == 0 {
            return false;
        }
        self.runs_left -= 1;
        match S::attempt(&scenario, false) {
            Err(violation) if violation.kind() == self.violation.kind() => {
                (self.scenario, self.violation) = (scenario, violation);
                true
            }
            _ => false,
        }
    }

    /// Leaves out the last operations.
    fn cut_operations(&mut self) -> bool {
        let mut changed = false;
        let mut step = self.scenario.operations.div_ceil(2);
        while step > 0 {
            let mut fewer = self.scenario.clone();
            let left = fewer.operations.checked_sub(step);
            let taken = left.is_some_and(|left| {
                fewer.operations = left;
                self.take(fewer)
            });
            changed |= taken;
            step = if taken { step } else { step / 2 };
        }
        changed
    }

    /// Leaves out the items with the numbers below `end`, the last first: the earlier ones stay the
    /// same.
    fn skip(&mut self, end: u64, set: impl Fn(&mut Less) -> &mut BTreeSet<u64>) -> bool {
        let mut changed = false;
        let mut size = end.div_ceil(2);
        while size > 0 {
            let mut upper = end;
            while upper > 0 && self.runs_left > 0 {
                let lower = upper.saturating_sub(size);
                let mut fewer = self.scenario.clone();
                let numbers = set(&mut fewer.less);
                let before = numbers.len();
                numbers.extend(lower..upper);
                if numbers.len() > before {
                    changed |= self.take(fewer);
                }
                upper = lower;
            }
            size /= 2;
        }
        changed
    }
}
