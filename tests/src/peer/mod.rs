//! Peers for measurements: for each adapter one program that is a server, or a client that keeps one busy. Both take the same arguments,
//! so whatever measures can put any two together, and programs of other implementations that take them too.
//!
//! ```text
//! PEER serve stdio
//! PEER serve http  [--style json|sse|session]       prints `LISTENING ADDRESS`
//! PEER drive stdio --era legacy|modern --inflight N --secs S --payload BYTES -- SERVER...
//! PEER drive http  --era … --inflight … --secs … --payload … --url URL --server-pid PID [--client default|tuned]
//! ```
//!
//! A server has one tool, `echo`, which returns its argument `text`. A client calls it, with so many calls under way at any time, for so
//! long after a short warm-up, checks each answer, and prints one line that begins with `REPORT`.
//!
//! Variables of the environment choose between ways in which a program may use the crates. `RT=current`: the client of `peer-smol` runs
//! its driver on the thread of the calls, not on the global executor. `CALLS=window`: the client of `peer-blocking` has its calls under
//! way from one thread, which waits for the oldest, not from a thread for each.

pub mod blocking;
pub mod smol;
pub mod usage;
mod words;

pub use words::{Drive, Era, Style, Task, To};

use mcp_proto::client::Policy;
use mcp_proto::server::Sessions;
use mcp_proto::{ClientConfig, ServerConfig};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use usage::Usage;

/// What the programs fail with.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// The arguments of the tool `echo`.
#[derive(Clone, Serialize, Deserialize, Debug)]
pub struct Echo {
    /// What is returned.
    pub text: String,
}

impl Echo {
    /// A text of so many characters, none of which JSON escapes; the same one every time.
    fn of(length: usize) -> Self {
        Self { text: "the same words again ".chars().cycle().take(length).collect() }
    }
}

/// The `main` of a peer.
pub fn main(run: fn(Task) -> Result<(), Failure>) -> ExitCode {
    match Task::read(std::env::args().skip(1)).and_then(run) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("peer: {why}");
            ExitCode::FAILURE
        }
    }
}

impl Style {
    /// How a server answers in this style. Whether an answer is one JSON object or an event stream is decided by the engine, from what a
    /// request needs; `sse` is as near to "always a stream" as it gets, and concerns sessions.
    fn configure(self, config: &mut ServerConfig) {
        match self {
            Self::Json => config.sessions = Sessions::Off,
            Self::Sse => config.stream_after = Duration::ZERO,
            Self::Session => {}
        }
    }
}

impl Drive {
    fn configure(&self) -> impl FnOnce(&mut ClientConfig) + Send + 'static {
        let policy = match self.era {
            Era::Legacy => Policy::Legacy,
            Era::Modern => Policy::Modern,
        };
        let connections = match self.to {
            To::Url { tuned: true, .. } => Some(self.inflight),
            _ => None,
        };
        move |config| {
            config.policy = policy;
            if let Some(connections) = connections {
                config.limits.client.max_calls = config.limits.client.max_calls.max(connections);
                config.limits.frame.max_connections_per_origin = connections;
            }
        }
    }

    /// The process of the server. That of a program is known once it was started.
    fn server(&self) -> Option<u32> {
        match self.to {
            To::Program(_) => usage::child(),
            To::Url { pid, .. } => Some(pid),
        }
    }
}

/// The clock of one run: a warm-up, then the time that counts.
#[derive(Debug)]
struct Clock {
    warm: Instant,
    length: Duration,
    server: Option<u32>,
    began: Option<Began>,
    latencies: Vec<Duration>,
}

#[derive(Debug)]
struct Began {
    at: Instant,
    own: Usage,
    server: Usage,
}

impl Clock {
    fn start(drive: &Drive) -> Self {
        let warm_up = (drive.length / 5).clamp(Duration::from_millis(50), Duration::from_millis(500));
        Self {
            warm: Instant::now() + warm_up,
            length: drive.length,
            server: drive.server(),
            began: None,
            // Enough for most runs, so that growing it falls into none.
            latencies: Vec::with_capacity(1 << 20),
        }
    }

    /// A call that began then has ended now; whether to make another.
    fn ended(&mut self, call: Instant) -> bool {
        let now = Instant::now();
        match &self.began {
            Some(began) => {
                self.latencies.push(now - call);
                now - began.at < self.length
            }
            None => {
                if now >= self.warm {
                    self.began = Some(Began { at: now, own: Usage::own(), server: Usage::of(self.server) });
                }
                true
            }
        }
    }

    fn report(mut self) -> Result<Report, Failure> {
        let began = self.began.ok_or("the run did not outlive its warm-up")?;
        let length = began.at.elapsed();
        let (own, server) = (Usage::own(), Usage::of(self.server));
        self.latencies.sort_unstable();
        let calls = self.latencies.len() as f64;
        let each = |now: &Usage, before: &Usage| micros(now.time.saturating_sub(before.time)) / calls;
        Ok(Report {
            ops: calls,
            secs: length.as_secs_f64(),
            p50_us: micros(quantile(&self.latencies, 0.5)),
            p99_us: micros(quantile(&self.latencies, 0.99)),
            client_cpu_us: each(&own, &began.own),
            server_cpu_us: each(&server, &began.server),
            client_rss_kb: own.resident as f64,
            server_rss_kb: server.resident as f64,
        })
    }
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

/// The element of a sorted list below which this part of it lies.
fn quantile(sorted: &[Duration], part: f64) -> Duration {
    let at = (sorted.len().saturating_sub(1) as f64 * part).round() as usize;
    sorted.get(at).copied().unwrap_or_default()
}

/// What a run came to. Its text is the line that is printed.
#[derive(Clone, PartialEq, Debug)]
struct Report {
    ops: f64,
    secs: f64,
    p50_us: f64,
    p99_us: f64,
    client_cpu_us: f64,
    server_cpu_us: f64,
    client_rss_kb: f64,
    server_rss_kb: f64,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { ops, secs, p50_us, p99_us, client_cpu_us, server_cpu_us, client_rss_kb, server_rss_kb } = self;
        write!(f, "REPORT ops={ops} secs={secs} p50_us={p50_us} p99_us={p99_us} ")?;
        write!(f, "client_cpu_us={client_cpu_us} server_cpu_us={server_cpu_us} ")?;
        write!(f, "client_rss_kb={client_rss_kb} server_rss_kb={server_rss_kb}")
    }
}
