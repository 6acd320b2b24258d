//! Load over real sockets, on loopback and bounded: connections that never complete a request, idle
//! connections and streams, callers beside readers that never read, callers that never pause, and
//! one greedy client beside a thousand others. Each scene runs with each adapter as a server in a
//! separate process. It reports the memory, the errors, and that nothing was lost.

mod child;
mod fair;
pub mod heap;
mod one;
mod raw;
mod scenes;
pub mod server;
mod streams;

pub use scenes::SCENES;

use crate::adapters::Adapter;
use child::Child;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::fmt;
use std::path::Path;
use std::time::{Duration, Instant};

/// How the server of a scene is set up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Setup {
    /// Without admission.
    Plain,
    /// The token of each request names its principal.
    Principals,
    /// The same, with bounds that are soon reached.
    Small,
    /// Without admission, and with room for very many from one address.
    Many,
}

impl Setup {
    /// All.
    pub const ALL: [Self; 4] = [Self::Plain, Self::Principals, Self::Small, Self::Many];

    /// Its name, as the arguments of a program have it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Principals => "principals",
            Self::Small => "small",
            Self::Many => "many",
        }
    }
}

/// How much of everything there is.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    /// Connections that never finish a request.
    pub half_open: usize,
    /// Connections, sessions and streams that rest.
    pub resting: usize,
    /// Callers.
    pub callers: usize,
    /// Calls of each.
    pub calls: usize,
    /// Readers that never read.
    pub readers: usize,
    /// Clients beside a greedy one.
    pub others: usize,
    /// Calls of each of them in one round.
    pub calls_of_others: usize,
    /// Calls of callers that never pause, of all together, in one round.
    pub unpaused: usize,
    /// Whether their times are judged, which also depend on the machine. The order of their
    /// responses is always judged.
    pub timed: bool,
    /// How long the server is patient with each of those: for a head, for a body, for a write.
    pub patience: Duration,
}

impl Scale {
    /// The promised limits.
    pub const FULL: Self = Self {
        half_open: 1000,
        resting: 500,
        callers: 64,
        calls: 50,
        readers: 20,
        others: 1000,
        calls_of_others: 5,
        unpaused: 10_000,
        timed: true,
        patience: Duration::from_secs(4),
    };

    /// Enough to check the scenes themselves.
    pub const SMALL: Self = Self {
        half_open: 30,
        resting: 12,
        callers: 8,
        calls: 10,
        readers: 4,
        others: 20,
        calls_of_others: 5,
        unpaused: 800,
        timed: false,
        patience: Duration::from_secs(3),
    };

    /// Descriptors that one process needs: of a server on threads each connection takes three.
    const fn descriptors(&self, adapter: Adapter) -> u64 {
        let each = match adapter {
            Adapter::Blocking => 3,
            Adapter::Smol => 1,
        };
        let most = if self.half_open > self.resting { self.half_open } else { self.resting };
        // A share of all connections beside the others.
        each * (most + self.others + self.callers + self.readers + 1024) as u64 + 100
    }
}

/// One thing that is done to a server.
#[derive(Clone, Copy)]
pub struct Scene {
    /// Its name.
    pub name: &'static str,
    /// The most memory that the server may take, in MiB, at [`Scale::FULL`].
    peak: u64,
    /// Whether it is about principals.
    principals: bool,
    run: fn(&mut Child, &Scale) -> Result<Shown, String>,
}

impl fmt::Debug for Scene {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scene").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The results of a scene.
#[derive(Clone, Debug, Default)]
pub struct Shown {
    /// The number of items of the scene.
    count: usize,
    /// What each of them takes of the heap of the server while it is there, in bytes.
    heap: Option<i64>,
    /// What each takes of its resident memory, in bytes: with the stacks of threads.
    resident: Option<i64>,
    /// Heap bytes left of each after its end.
    left: Option<i64>,
    /// The findings.
    outcome: String,
}

impl Scene {
    /// Runs it with a server of its own, which the program `load` is started as.
    ///
    /// # Errors
    /// The faults.
    pub fn show(&self, load: &Path, adapter: Adapter, scale: &Scale) -> Result<String, String> {
        descriptors(scale.descriptors(adapter))?;
        let began = Instant::now();
        let setup = match (self.principals, scale.timed) {
            (false, _) => Setup::Plain,
            (true, true) => Setup::Principals,
            (true, false) => Setup::Small,
        };
        let mut child = Child::start(load, adapter, scale.patience, setup)?;
        let shown = (self.run)(&mut child, scale)?;
        let peak = child.usage().peak;
        child.end()?;
        let took = began.elapsed().as_secs_f64();
        if peak > self.peak << 10 {
            return Err(format!("{}; but it took {peak} KiB, more than {} MiB", shown.outcome, self.peak));
        }
        let each = |bytes: Option<i64>| bytes.map_or_else(|| "-".into(), |bytes| bytes.to_string());
        let Shown { count, heap, resident, left, outcome } = shown;
        let (heap, resident, left) = (each(heap), each(resident), each(left));
        let peak = peak as f64 / 1024.0;
        Ok(format!("{count:>6}{heap:>9}{resident:>9}{left:>7}{peak:>9.1}{took:>7.1}  {outcome}"))
    }

    /// Runs it likewise, whatever memory it takes, and returns the heap of each item, in bytes.
    ///
    /// # Errors
    /// The faults.
    pub fn heap(&self, load: &Path, adapter: Adapter, scale: &Scale) -> Result<i64, String> {
        descriptors(scale.descriptors(adapter))?;
        let mut child = Child::start(load, adapter, scale.patience, Setup::Many)?;
        let shown = (self.run)(&mut child, scale)?;
        child.end()?;
        shown.heap.ok_or_else(|| "the heap is not known".into())
    }

    /// The heads of the columns.
    pub fn columns() -> String {
        let (each, peak) = ("heap each", "peak MiB");
        format!("{:>6}{each:>9}{:>9}{:>7}{peak:>9}{:>7}  outcome", "count", "RSS each", "left", "s")
    }
}

/// Raises the limit of descriptors for this process and its children to this number.
fn descriptors(needed: u64) -> Result<(), String> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current.is_none_or(|current| current >= needed) {
        return Ok(());
    }
    if maximum.is_some_and(|maximum| maximum < needed) {
        return Err(format!("it needs {needed} descriptors, and the system gives {maximum:?} at most"));
    }
    setrlimit(Resource::Nofile, Rlimit { current: Some(needed), maximum }).map_err(|e| format!("descriptors: {e}"))
}
