//! Callers of random tools of random servers, and how their calls end.

use super::file::Entry;
use crate::adapters::Supervisor;
use crate::sim::rng::Rng;
use mcp_proto::{CallError, Refusal, tools};
use mcp_supervisor::{CallRefusal, SupervisedError};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Number of callers.
const CALLERS: u64 = 4;
/// The timeout of each call.
pub(super) const TIMEOUT: Duration = Duration::from_secs(4);
/// The time after its timeout within which a call must have ended. Interpreters that start keep all
/// processors busy.
pub(super) const MARGIN: Duration = Duration::from_millis(1500);
/// The longest pause of a caller between two calls, in milliseconds: the calls leave the processors
/// to the programs that start.
const PAUSE: u64 = 20;
/// Interval of the looks at a caller that has to stop.
const LOOK: Duration = Duration::from_millis(5);

/// How the calls ended.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    pub(super) begun: u64,
    pub(super) answered: u64,
    /// Calls that the supervisor refused, by kind.
    pub(super) refused: BTreeMap<&'static str, u64>,
    /// Calls that failed on a client, by kind.
    pub(super) failed: BTreeMap<&'static str, u64>,
    /// The time of the slowest.
    pub(super) slowest: Duration,
    /// What must not be.
    pub(super) faults: Vec<String>,
}

impl Tally {
    /// Returns the number of calls that have ended.
    pub(super) fn ended(&self) -> u64 {
        let sum = |kinds: &BTreeMap<_, u64>| kinds.values().sum::<u64>();
        self.answered + sum(&self.refused) + sum(&self.failed)
    }

    fn add(&mut self, entry: &Entry, took: Duration, end: End) {
        self.slowest = self.slowest.max(took);
        if took > TIMEOUT + MARGIN {
            self.faults.push(format!("a call of {} took {} ms", entry.key, took.as_millis()));
        }
        match end {
            End::Answered => self.answered += 1,
            End::Refused(kind) => *self.refused.entry(kind).or_default() += 1,
            End::Failed(kind) => *self.failed.entry(kind).or_default() += 1,
            End::Fault(why) => self.faults.push(format!("a call of {}: {why}", entry.key)),
        }
    }
}

/// The end of a call.
enum End {
    Answered,
    Refused(&'static str),
    Failed(&'static str),
    /// One that the death of a server does not explain.
    Fault(String),
}

/// Makes a random call, and returns its end.
fn call(supervisor: &Supervisor, entry: &Entry, number: u32, rng: &mut Rng) -> End {
    let asked = entry.offer.ask(number, rng);
    let call = tools::call(asked.tool).arguments(&asked.arguments).timeout(TIMEOUT);
    match supervisor.call(&entry.key, call) {
        Ok(result) => match result.first_text() {
            Some(text) if !result.is_error && text.contains(&asked.answer) => End::Answered,
            other => End::Fault(format!("{} gave {other:?}, not {:?}", asked.tool, asked.answer)),
        },
        Err(SupervisedError::Refused(CallRefusal::Unavailable { .. })) => End::Refused("down"),
        Err(SupervisedError::Refused(CallRefusal::Timeout { .. })) => End::Refused("not connected in time"),
        Err(SupervisedError::Call(error)) => match error {
            CallError::Closed { .. } => End::Failed("connection closed"),
            CallError::NoResponse { .. } => End::Failed("no response"),
            CallError::SessionEnded => End::Failed("session ended"),
            // The client had lost its session, and its server was not there for another one.
            CallError::Negotiation(_) => End::Failed("no new session"),
            CallError::Refused(Refusal::Closed | Refusal::Gone) => End::Failed("client ended"),
            // Over HTTP+SSE the client itself opens a lost stream again, after delays of its own,
            // which may be longer than the timeout. Meanwhile the server counts as connected.
            CallError::Timeout { .. } => End::Failed("timeout"),
            error => End::Fault(format!("{error:?}")),
        },
        Err(error) => End::Fault(format!("{error:?}")),
    }
}

/// Calls a server once, and returns whether it answers.
pub(super) fn answers(supervisor: &Supervisor, entry: &Entry, rng: &mut Rng) -> Result<(), String> {
    match call(supervisor, entry, rng.below(1 << 20) as u32, rng) {
        End::Answered => Ok(()),
        End::Refused(why) | End::Failed(why) => Err(why.to_owned()),
        End::Fault(why) => Err(why),
    }
}

/// Callers that run.
pub(super) struct Callers {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

struct Shared {
    supervisor: Supervisor,
    entries: Arc<[Entry]>,
    stop: AtomicBool,
    numbers: AtomicU32,
    tally: Mutex<Tally>,
}

impl Shared {
    fn tally<T>(&self, change: impl FnOnce(&mut Tally) -> T) -> T {
        change(&mut self.tally.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn run(&self, mut rng: Rng) {
        while !self.stop.load(Ordering::Relaxed) {
            let entry = &self.entries[rng.below(self.entries.len() as u64) as usize];
            let number = self.numbers.fetch_add(1, Ordering::Relaxed);
            self.tally(|tally| tally.begun += 1);
            let began = Instant::now();
            let end = call(&self.supervisor, entry, number, &mut rng);
            self.tally(|tally| tally.add(entry, began.elapsed(), end));
            thread::sleep(Duration::from_millis(rng.below(PAUSE)));
        }
    }
}

impl Callers {
    pub(super) fn start(supervisor: &Supervisor, entries: &Arc<[Entry]>, rng: &mut Rng) -> Self {
        let shared = Arc::new(Shared {
            supervisor: supervisor.clone(),
            entries: Arc::clone(entries),
            stop: AtomicBool::new(false),
            numbers: AtomicU32::new(0),
            tally: Mutex::default(),
        });
        let start = |_| {
            let (shared, rng) = (Arc::clone(&shared), Rng::new(rng.draw()));
            thread::spawn(move || shared.run(rng))
        };
        let threads = (0..CALLERS).map(start).collect();
        Self { shared, threads }
    }

    /// Waits for the calls that run, and returns how all ended.
    ///
    /// # Errors
    /// A call does not end. Its thread goes on.
    pub(super) fn stop(self) -> Result<Tally, String> {
        self.shared.stop.store(true, Ordering::Relaxed);
        let until = Instant::now() + TIMEOUT + MARGIN + Duration::from_millis(PAUSE);
        while !self.threads.iter().all(JoinHandle::is_finished) {
            if Instant::now() > until {
                return Err(format!("a call does not end: {:?}", self.shared.tally(|tally| tally.clone())));
            }
            thread::sleep(LOOK);
        }
        for thread in self.threads {
            thread.join().map_err(|_| "a caller panicked".to_owned())?;
        }
        let tally = self.shared.tally(|tally| tally.clone());
        Ok(tally)
    }
}
