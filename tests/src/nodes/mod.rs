//! Servers that share a store, as real processes: Redis, nginx before six servers, and clients that
//! check each answer while servers are killed and Redis goes back in time.
//!
//! [`server`] is the program of a server.

mod callers;
mod ground;
pub mod server;

use crate::sim::rng::Rng;
use callers::{Callers, Tally};
use ground::Ground;
use std::time::{Duration, Instant};
use std::{fmt, thread};

/// The interval of the kills.
const KILLS: Duration = Duration::from_secs(15);
/// The number of clients.
const CLIENTS: usize = 40;

/// The numbers of a run.
#[derive(Debug)]
pub struct Report {
    kills: u32,
    rollbacks: u32,
    tally: Tally,
    /// Clients whose last call, once nothing was killed any more, was answered.
    alive: usize,
}

/// Runs it for a time.
///
/// # Errors
/// What is wrong.
pub fn run(length: Duration, seed: u64) -> Result<Report, String> {
    let mut ground = Ground::start()?;
    let mut rng = Rng::new(seed);
    let callers = Callers::start(ground.url(), CLIENTS)?;
    let begun = Instant::now();
    let (mut kills, mut rollbacks) = (0, 0);
    while begun.elapsed() < length {
        thread::sleep(KILLS.min(length));
        ground.kill(rng.below(ground::SERVERS as u64) as usize)?;
        kills += 1;
        if rollbacks == 0 && begun.elapsed() >= length / 2 {
            ground.roll_back()?;
            rollbacks += 1;
        }
    }
    // A lease ends, and what has run there is settled.
    thread::sleep(Duration::from_secs(25));
    let (tally, alive) = callers.end();
    Ok(Report { kills, rollbacks, tally, alive })
}

impl Report {
    /// Returns the number of answers.
    pub fn answered(&self) -> u64 {
        self.tally.answered
    }

    /// Returns what must not be.
    pub fn faults(&self) -> Vec<String> {
        let mut faults = self.tally.faults.clone();
        if self.alive != CLIENTS {
            faults.push(format!("{} of {CLIENTS} clients are answered at the end", self.alive));
        }
        faults
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kills, rollbacks, tally, alive } = self;
        writeln!(f, "{kills} kills, {rollbacks} times back, {alive} clients alive")?;
        writeln!(f, "{} calls, {} answered, the slowest {:?}", tally.begun, tally.answered, tally.slowest)?;
        write!(f, "failed: {:?}", tally.failed)
    }
}
