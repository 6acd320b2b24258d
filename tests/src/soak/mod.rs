//! Very many calls over real pipes and sockets, with everything that creates and ends resources:
//! calls that are cancelled or dropped, clients that connect and close, servers that stop and
//! restart, programs that exit. At the end heap, descriptors and threads must have their values
//! after the first rounds: a leak per call, however small, shows in a million calls.
//!
//! Each scene uses one adapter as client and server. Over HTTP both are in this process. Over stdio
//! the server is a separate process, and one server lives as long as the scene and reports its
//! heap.

pub mod blocking;
mod meter;
pub mod smol;

pub use meter::Heap;

use mcp_proto::ClientConfig;
use meter::{Held, settle};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Number of calls of one client before it is closed and another one connects.
const ROUND: u64 = 1000;
/// Number of threads that make the calls.
const CALLERS: u64 = 4;
/// Number of rounds after which everything that is created once exists.
const WARM: u64 = 3;
/// Maximum time for which calls may fail after a restart of their server, and the interval of the
/// attempts.
const AGAIN: Duration = Duration::from_secs(10);
/// Maximum growth of the heap after the first rounds, in bytes: queues and tables that have grown
/// once.
const SLACK: i64 = 64 << 10;
/// One in this many calls uses the connection that lives as long as the scene.
const OF_LASTING: u64 = 20;

/// The adapter of client and server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Adapter {
    /// `mcp-blocking`.
    Blocking,
    /// `mcp-smol`.
    Smol,
}

/// The transport between the two.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Link {
    /// Pipes to a program.
    Stdio,
    /// A loopback socket.
    Http,
}

/// One adapter over one link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Scene {
    /// The adapter.
    pub adapter: Adapter,
    /// The link.
    pub link: Link,
}

/// All scenes.
pub const SCENES: [Scene; 4] = [
    Scene { adapter: Adapter::Blocking, link: Link::Stdio },
    Scene { adapter: Adapter::Smol, link: Link::Stdio },
    Scene { adapter: Adapter::Blocking, link: Link::Http },
    Scene { adapter: Adapter::Smol, link: Link::Http },
];

impl Adapter {
    /// Returns its name in the arguments of the program.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Blocking => "blocking",
            Self::Smol => "smol",
        }
    }

    fn connect(self, to: To<'_>) -> Result<Box<dyn Client>, String> {
        match self {
            Self::Blocking => blocking::connect(to),
            Self::Smol => smol::connect(to),
        }
    }

    fn serve(self, address: SocketAddr) -> Result<Box<dyn Server>, String> {
        match self {
            Self::Blocking => blocking::serve(address),
            Self::Smol => smol::serve(address),
        }
    }
}

impl fmt::Display for Scene {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<9}{:<6}", self.adapter.name(), format!("{:?}", self.link).to_lowercase())
    }
}

/// The target of a client.
#[derive(Clone, Copy, Debug)]
enum To<'a> {
    /// The program `soak` as a server, which is restarted when it exits.
    Program(&'a Path, Adapter),
    /// A server at this address. `true` uses a legacy session.
    Url(SocketAddr, bool),
}

/// The arguments of `echo`.
#[derive(Clone, Serialize, Deserialize, Debug)]
struct Echo {
    text: String,
}

/// The arguments of the other tools.
#[derive(Clone, Copy, Serialize, Deserialize, Debug)]
struct Nothing {}

/// Lets tables fill up within the first rounds, so that they do not grow after them.
fn fill_soon(config: &mut ClientConfig) {
    config.limits.client.max_retired = 64;
}

/// A client of one adapter.
trait Client: Send + Sync {
    /// Calls `echo`, and returns its result.
    fn echo(&self, text: &str) -> Result<String, String>;
    /// Calls `wait`, cancels the call, and waits for its end.
    fn cancel(&self) -> Result<(), String>;
    /// Calls `wait` and drops the call.
    fn forget(&self) -> Result<(), String>;
    /// Calls `exit`, which has no response.
    fn exit(&self) -> Result<(), String>;
    /// Calls `held`, which returns the heap of the server in bytes.
    fn held(&self) -> Result<i64, String>;
    /// Closes the client in order.
    fn close(self: Box<Self>);
}

/// An HTTP server of one adapter.
trait Server: Send + Sync {
    fn address(&self) -> SocketAddr;
    /// Stops it, with every connection and session.
    fn stop(self: Box<Self>);
}

/// The counts of a scene.
#[derive(Default)]
struct Tally {
    calls: AtomicU64,
    cancelled: AtomicU64,
    /// Calls that were repeated because their server had exited.
    repeated: AtomicU64,
    clients: u64,
    restarts: u64,
}

impl Scene {
    /// Makes this many calls. `soak` is the program to start as a server.
    ///
    /// # Errors
    /// The fault: a failed call, or remaining heap, descriptors or threads.
    pub fn play(self, calls: u64, soak: &Path, heap: Heap) -> Result<String, String> {
        let began = Instant::now();
        let mut run = Run::new(self, soak)?;
        let rounds = calls.div_ceil(ROUND).max(WARM + 1);
        for round in 0..WARM {
            run.round(round)?;
        }
        let before = run.held(settle(heap, None))?;
        for round in WARM..rounds {
            run.round(round).map_err(|why| format!("round {round}: {why}"))?;
        }
        let after = run.held(settle(heap, Some(before)))?;
        let Tally { calls, cancelled, repeated, clients, restarts } = run.end();
        let seconds = began.elapsed().as_secs_f64();
        let outcome = format!(
            "{calls} calls, {cancelled} cancelled, {clients} clients, {restarts} restarts, {repeated} made again; {before} before, {after} \
             after; {seconds:.1} s",
            calls = calls.into_inner(),
            cancelled = cancelled.into_inner(),
            repeated = repeated.into_inner()
        );
        match after.exceeds(&before, SLACK) {
            false => Ok(outcome),
            true => Err(format!("something is left: {outcome}")),
        }
    }
}

/// A running scene.
struct Run {
    scene: Scene,
    soak: PathBuf,
    /// Over HTTP.
    server: Option<Box<dyn Server>>,
    /// Over stdio.
    lasting: Option<Box<dyn Client>>,
    tally: Tally,
}

impl Run {
    fn new(scene: Scene, soak: &Path) -> Result<Self, String> {
        let (adapter, soak) = (scene.adapter, soak.to_owned());
        let (server, lasting) = match scene.link {
            Link::Stdio => (None, Some(adapter.connect(To::Program(&soak, adapter))?)),
            Link::Http => (Some(adapter.serve(SocketAddr::from(([127, 0, 0, 1], 0)))?), None),
        };
        Ok(Self { scene, soak, server, lasting, tally: Tally::default() })
    }

    /// Runs one client from its connect to its close, with a restart of the server in between.
    fn round(&mut self, round: u64) -> Result<(), String> {
        let adapter = self.scene.adapter;
        let to = match &self.server {
            None => To::Program(&self.soak, adapter),
            Some(server) => To::Url(server.address(), round % 2 == 1),
        };
        let client = adapter.connect(to)?;
        self.tally.clients += 1;
        self.half(&*client, 0)?;
        match self.server.take() {
            None => client.exit()?,
            Some(server) => {
                let address = server.address();
                server.stop();
                self.server = Some(adapter.serve(address)?);
            }
        }
        self.tally.restarts += 1;
        self.half(&*client, ROUND / 2)?;
        client.close();
        Ok(())
    }

    /// Makes half of the calls of a client, beginning with call number `first`.
    fn half(&self, client: &dyn Client, first: u64) -> Result<(), String> {
        let share = ROUND / 2 / CALLERS;
        let caller = |caller: u64| {
            let numbers = (0..share).map(|n| first + n * CALLERS + caller);
            numbers.into_iter().try_for_each(|n| self.call(client, n, n < first + CALLERS))
        };
        thread::scope(|scope| {
            let callers: Vec<_> = (0..CALLERS)
                .map(|n| {
                    scope.spawn({
                        let caller = &caller;
                        move || caller(n)
                    })
                })
                .collect();
            callers.into_iter().try_for_each(|caller| caller.join().map_err(|_| "a caller panicked".to_owned())?)
        })
    }

    /// Makes one call. With `early` the server may just have restarted, so that the call may have
    /// been sent to the previous one.
    fn call(&self, client: &dyn Client, n: u64, early: bool) -> Result<(), String> {
        self.tally.calls.fetch_add(1, Ordering::Relaxed);
        if let Some(lasting) = self.lasting.as_ref().filter(|_| n.is_multiple_of(OF_LASTING)) {
            return echo(&**lasting, n);
        }
        match n % 10 {
            3 | 7 if !early => {
                self.tally.cancelled.fetch_add(1, Ordering::Relaxed);
                if n % 10 == 3 { client.cancel() } else { client.forget() }
            }
            _ => {
                let end = Instant::now() + AGAIN;
                let mut done = echo(client, n);
                while early && done.is_err() && Instant::now() < end {
                    self.tally.repeated.fetch_add(1, Ordering::Relaxed);
                    thread::sleep(Duration::from_millis(5));
                    done = echo(client, n);
                }
                done
            }
        }
        .map_err(|why| format!("call {n}: {why}"))
    }

    /// Returns the resources in use, including the heap of the server that lives as long as the
    /// scene.
    fn held(&self, held: Held) -> Result<Held, String> {
        let server = self.lasting.as_ref().map_or(Ok(0), |lasting| lasting.held())?;
        Ok(Held { server, ..held })
    }

    fn end(self) -> Tally {
        if let Some(client) = self.lasting {
            client.close();
        }
        if let Some(server) = self.server {
            server.stop();
        }
        self.tally
    }
}

fn echo(client: &dyn Client, n: u64) -> Result<(), String> {
    let text = format!("the text of call {n}");
    match client.echo(&text)? {
        same if same == text => Ok(()),
        other => Err(format!("{text:?} came back as {other:?}")),
    }
}
