//! Clients that call all the time, and check each answer.

use crate::adapters::Adapter;
use crate::sim::rng::Rng;
use mcp_driver::ClientOptions;
use mcp_proto::client::Policy;
use mcp_proto::{CallError, ElicitResult, Object, tools};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The timeout of each call, that of clients on other SDKs too, and how much longer it may take on
/// a busy machine.
const TIMEOUT: Duration = Duration::from_secs(40);
const MARGIN: Duration = Duration::from_secs(5);
/// The longest that a call may take whose result is a task, which the timeout does not limit.
const TOTAL: Duration = Duration::from_secs(120);
/// The longest that a call may take.
pub(super) const LONGEST: Duration = TIMEOUT.saturating_add(MARGIN);

/// How the calls ended.
#[derive(Clone, Debug, Default, serde::Deserialize)]
pub(super) struct Tally {
    pub(super) begun: u64,
    pub(super) answered: u64,
    /// Calls that failed, by their cause.
    pub(super) failed: BTreeMap<String, u64>,
    /// In seconds.
    pub(super) slowest: f64,
    /// What must not be.
    pub(super) faults: Vec<String>,
    /// Clients whose last call, once nothing was killed any more, was answered.
    pub(super) alive: usize,
}

/// Clients that run.
pub(super) struct Callers {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<bool>>,
}

struct Shared {
    url: String,
    stop: AtomicBool,
    numbers: AtomicU64,
    tally: Mutex<Tally>,
}

impl Callers {
    pub(super) fn start(url: String, count: usize) -> Result<Self, String> {
        let (stop, numbers, tally) = Default::default();
        let shared = Arc::new(Shared { url, stop, numbers, tally });
        let start = |nth: usize| {
            let shared = Arc::clone(&shared);
            thread::Builder::new().spawn(move || shared.run(nth)).map_err(|why| why.to_string())
        };
        let threads = (0..count).map(start).collect::<Result<_, _>>()?;
        Ok(Self { shared, threads })
    }

    /// Ends them. Returns the numbers.
    pub(super) fn end(self) -> Tally {
        self.shared.stop.store(true, Ordering::Relaxed);
        let alive = self.threads.into_iter().filter_map(|thread| thread.join().ok()).filter(|alive| *alive).count();
        let tally = self.shared.tally.lock().unwrap_or_else(PoisonError::into_inner);
        Tally { alive, ..tally.clone() }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { begun, answered, failed, slowest, .. } = self;
        write!(f, "{begun:>5} calls, {answered:>5} answered, the slowest {slowest:.1} s")?;
        failed.iter().try_for_each(|(cause, count)| write!(f, "\n    {count:>4} × {cause}"))
    }
}

/// Returns a text with those of its numbers that are statuses.
fn with_statuses(text: &str) -> String {
    let is_status = |number: &str| number.len() == 3 && number.starts_with(['4', '5']);
    let parts = text.split_inclusive(|c: char| !c.is_ascii_digit()).map(|part| {
        let (number, rest) = part.split_at(part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len()));
        if is_status(number) { part } else { rest }
    });
    parts.collect::<String>().split_whitespace().collect::<Vec<_>>().join(" ")
}

impl Shared {
    /// Is one client. Returns whether its last call is answered.
    fn run(&self, nth: usize) -> bool {
        let adapter = Adapter::ALL[nth % 2];
        let policy = if (nth / 2).is_multiple_of(2) { Policy::Modern } else { Policy::Legacy };
        let word = format!("word-{nth}");
        let answer = word.clone();
        let options = ClientOptions::new().tasks().set(move |config| config.policy = policy);
        let options = options.on_elicit(move |_| ElicitResult::accept(&Object::new().with("word", answer.as_str())));
        let client = match adapter.connect(self.url.clone(), options) {
            Ok(client) => client,
            Err(why) => {
                self.fault(format!("client {nth} does not connect: {why}"));
                return false;
            }
        };
        let mut rng = Rng::new(nth as u64);
        while !self.stop.load(Ordering::Relaxed) {
            let tool = if policy == Policy::Modern {
                rng.of(&["echo", "slow", "ask", "job"])
            } else {
                rng.of(&["echo", "slow", "ask"])
            };
            self.call(&client, nth, tool, &word, &mut rng);
            thread::sleep(Duration::from_millis(rng.below(200)));
        }
        self.call(&client, nth, "echo", &word, &mut rng)
    }

    /// Calls a tool. Returns whether it is answered.
    fn call(&self, client: &crate::adapters::Client, nth: usize, tool: &str, word: &str, rng: &mut Rng) -> bool {
        let text = format!("{nth} {}", self.numbers.fetch_add(1, Ordering::Relaxed));
        let expected = if tool == "ask" { format!("{text} {word}") } else { text.clone() };
        let arguments = Object::new().with("text", text.as_str()).with("millis", rng.below(3000));
        let begun = Instant::now();
        let result = client.call(tools::call(tool).arguments(&arguments).timeout(TIMEOUT).max_total(TOTAL));
        let took = begun.elapsed();
        let mut tally = self.tally.lock().unwrap_or_else(PoisonError::into_inner);
        tally.begun += 1;
        tally.slowest = tally.slowest.max(took.as_secs_f64());
        // A task may lose its server more than once.
        if took > LONGEST && tool != "job" {
            tally.faults.push(format!("{tool} took {took:?}"));
        }
        match result {
            Ok(result) if result.first_text() == Some(expected.as_str()) => {
                tally.answered += 1;
                return true;
            }
            Ok(result) => tally.faults.push(format!("{tool} of {expected:?} gave {:?}", result.first_text())),
            Err(CallError::Timeout { .. }) => {
                let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
                tally.faults.push(format!("{tool} of client {nth}, {text:?}, has a timeout at {unix} s"));
            }
            Err(why) => {
                let cause: String = format!("{tool}: {}", with_statuses(&why.to_string())).chars().take(200).collect();
                *tally.failed.entry(cause).or_default() += 1;
            }
        }
        false
    }

    fn fault(&self, text: String) {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner).faults.push(text);
    }
}
