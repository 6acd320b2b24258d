//! Peers for measurements: each adapter has a program that is a server, or a client that keeps one
//! busy. Both have the same arguments, so that a measurement can combine any two of them, and also
//! programs of other implementations with these arguments.
//!
//! ```text
//! PEER serve stdio
//! PEER serve http  [--style json|sse|session]       prints `LISTENING ADDRESS`
//! PEER drive stdio --era legacy|modern --inflight N --secs S --payload BYTES -- SERVER...
//! PEER drive http  --era … --inflight … --secs … --payload … --url URL --server-pid PID
//!     [--client default|tuned]
//! ```
//!
//! With `--calls N`, a client makes about this number of calls, however long they take.
//!
//! A server has one tool, `echo`, which returns its argument `text`. A client calls it with a
//! constant number of concurrent calls for some time after a short warm-up, checks each response,
//! and prints one line that begins with `REPORT`.
//!
//! Environment variables select how a program uses the crates. `RT=current`: the client of
//! `peer-smol` runs its driver on the thread of the calls, not on the global executor.
//! `HANDLER=inline|async|pool`: how a server runs its tool; by default `async` in `peer-smol`, and
//! `pool` in `peer-blocking`, which has no other than `inline` besides.
//! `CALLS=window`: the client of `peer-blocking` makes its calls from one thread, which waits for
//! the oldest, not from a thread for each. With the PEM files `TLS_CERT` and `TLS_KEY`, a server
//! has TLS; a client trusts the root `TLS_ROOT` for an `https` URL, instead of those of the
//! platform. Both have TLS 1.3 only.

mod blocking;
mod smol;
mod tls;
pub mod usage;
mod words;

pub use words::{Drive, Era, Style, Task, To};

use crate::adapters::Adapter;
use crate::exit_code;
use mcp_driver::{ClientOptions, IntoTarget, Target};
use mcp_proto::client::Policy;
use mcp_proto::exchange::Program;
use mcp_proto::server::Sessions;
use mcp_proto::{CallToolResult, Router, ServerConfig, tool};
use serde::{Deserialize, Serialize};
use std::process::ExitCode;
use std::time::{Duration, Instant};
use std::{env, fmt};
use usage::Usage;

/// The error of the programs.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// The arguments of the tool `echo`.
#[derive(Clone, Serialize, Deserialize, Debug)]
pub struct Echo {
    /// The returned text.
    pub text: String,
}

impl Echo {
    /// Returns a text of this many characters, without characters that JSON escapes. It is always
    /// the same.
    fn of(length: usize) -> Self {
        Self { text: "the same words again ".chars().cycle().take(length).collect() }
    }

    /// Checks the response to it.
    fn check(&self, result: &CallToolResult) -> Result<(), Failure> {
        match result.first_text() {
            Some(text) if text == self.text => Ok(()),
            other => Err(format!("this is no echo: {other:?}").into()),
        }
    }
}

/// Returns the tools of a server.
fn router(adapter: Adapter) -> Router {
    let usual = if adapter == Adapter::Smol { "async" } else { "pool" };
    let router = Router::new(&format!("peer-{}", adapter.name()), env!("CARGO_PKG_VERSION"));
    let tool = tool("echo").describe("Echo");
    match env::var("HANDLER").as_deref().unwrap_or(usual) {
        "inline" => router.inline(|router| router.tool(tool, |_cx, echo: Echo| Ok(echo.text))),
        "async" => router.tool_async(tool, |_cx, echo: Echo| async move { Ok(echo.text) }),
        _ => router.tool(tool, |_cx, echo: Echo| Ok(echo.text)),
    }
}

/// The `main` of a peer.
pub fn main(adapter: Adapter) -> ExitCode {
    let task = Task::read(env::args().skip(1));
    exit_code("peer", task.and_then(|task| run(adapter, task)).map(|()| true))
}

fn run(adapter: Adapter, task: Task) -> Result<(), Failure> {
    match task {
        Task::ServeStdio => adapter.serve_stdio(router(adapter))?,
        Task::ServeHttp(style) => {
            let router = router(adapter).configure(|config| style.configure(config));
            let server = match tls::server()? {
                Some(tls) => adapter.serve_https(router, "127.0.0.1:0", tls)?,
                None => adapter.serve_http(router, "127.0.0.1:0")?,
            };
            println!("LISTENING {}", server.address());
            server.wait();
        }
        Task::Drive(drive) => {
            let busy = if adapter == Adapter::Smol { smol::busy } else { blocking::busy };
            println!("{}", busy(&drive)?);
        }
    }
    Ok(())
}

impl Style {
    /// Configures how a server responds in this style. The engine decides per request between one
    /// JSON object and an event stream. `sse` is the closest to "always a stream", and affects
    /// sessions.
    fn configure(self, config: &mut ServerConfig) {
        match self {
            Self::Json => config.sessions = Sessions::Off,
            Self::Sse => config.stream_after = Duration::ZERO,
            Self::Session => {}
        }
    }
}

impl Drive {
    /// Returns its server.
    fn target<S>(&self) -> Result<Target<S>, Failure> {
        match &self.to {
            To::Program(words) => {
                let (command, args) = words.split_first().ok_or("no program is named")?;
                Ok(Program::new(command).args(args).into_target()?)
            }
            To::Url { url, .. } => Ok(url.as_str().into_target()?),
        }
    }

    fn options(&self) -> Result<ClientOptions, Failure> {
        let policy = match self.era {
            Era::Legacy => Policy::Legacy,
            Era::Modern => Policy::Modern,
        };
        let connections = match self.to {
            To::Url { tuned: true, .. } => Some(self.inflight),
            _ => None,
        };
        let options = ClientOptions::new().set(move |config| {
            config.policy = policy;
            if let Some(connections) = connections {
                config.limits.client.max_calls = config.limits.client.max_calls.max(connections);
                config.limits.frame.max_connections_per_origin = connections;
            }
        });
        Ok(match tls::client()? {
            Some(tls) => options.tls(tls),
            None => options,
        })
    }

    /// Returns the process of the server. For a program it is known once it was started.
    fn server(&self) -> Option<u32> {
        match self.to {
            To::Program(_) => usage::child(),
            To::Url { pid, .. } => Some(pid),
        }
    }
}

/// The clock of one run: a warm-up, then the measured time.
#[derive(Debug)]
struct Clock {
    warm: Instant,
    length: Duration,
    calls: usize,
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
        let (warm_up, length) = if drive.calls.is_some() { Default::default() } else { (warm_up, drive.length) };
        Self {
            warm: Instant::now() + warm_up,
            length,
            calls: drive.calls.unwrap_or_default(),
            server: drive.server(),
            began: None,
            // Enough for most runs, so that it does not grow during one.
            latencies: Vec::with_capacity(1 << 20),
        }
    }

    /// Records the end of a call that began at `call`. Returns whether to make another.
    fn ended(&mut self, call: Instant) -> bool {
        let now = Instant::now();
        match &self.began {
            Some(began) => {
                self.latencies.push(now - call);
                now - began.at < self.length || self.latencies.len() < self.calls
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

/// Returns the element of a sorted list below which this part of it lies.
fn quantile(sorted: &[Duration], part: f64) -> Duration {
    let at = (sorted.len().saturating_sub(1) as f64 * part).round() as usize;
    sorted.get(at).copied().unwrap_or_default()
}

/// The result of a run. Its text is the printed line.
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
