//! Very many calls over real pipes and sockets, with everything that creates and ends resources:
//! calls that are cancelled or dropped, clients that connect and close, servers that stop and are
//! replaced, programs that exit. At the end heap, descriptors and threads must have their values
//! after the first rounds: a leak per call, however small, shows in a million calls.
//!
//! Each scene uses one adapter as client and server. Over HTTP both are in this process. Over stdio
//! the server is a separate process, and one server lives as long as the scene and reports its
//! heap.

pub(crate) mod meter;

pub use meter::Heap;

use crate::adapters::{Adapter, Client, Server};
use mcp_driver::ClientOptions;
use mcp_proto::client::Policy;
use mcp_proto::{CallError, Router, ToolError, tools};
use meter::{Held, settle};
use serde::{Deserialize, Serialize};
use smol::Timer;
use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Number of calls of one client before it is closed and another one connects.
const ROUND: u64 = 1000;
/// Number of threads that make the calls.
const CALLERS: u64 = 4;
/// Number of rounds after which everything that is created once exists.
const WARM: u64 = 3;
/// Maximum time for which calls may fail after their server was replaced.
const AGAIN: Duration = Duration::from_secs(10);
/// Maximum growth of the heap after the first rounds, in bytes: queues and tables that have grown
/// once.
const SLACK: i64 = 64 << 10;
/// One in this many calls uses the connection that lives as long as the scene.
const OF_LASTING: u64 = 20;

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

impl fmt::Display for Scene {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<9}{:<6}", self.adapter.name(), format!("{:?}", self.link).to_lowercase())
    }
}

/// The target of a client.
#[derive(Clone, Copy, Debug)]
enum To<'a> {
    /// The program `soak` as a server.
    Program(&'a Path),
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

/// Interval at which a tool checks whether its call was cancelled.
const LOOK: Duration = Duration::from_millis(1);

/// The tools of every server.
fn router(adapter: Adapter, heap: Heap) -> Router {
    let router = Router::new("soak", env!("CARGO_PKG_VERSION"));
    let router = adapter.add_tool(router, "echo", |_cx, echo: Echo| async move { Ok(echo.text) });
    let router = adapter.add_tool(router, "wait", |cx, _: Nothing| async move {
        while !cx.is_cancelled() {
            Timer::after(LOOK).await;
        }
        Ok("cancelled")
    });
    let router = adapter.add_tool(router, "exit", |_cx, _: Nothing| exited());
    adapter.add_tool(router, "held", move |_cx, _: Nothing| async move { Ok(heap().to_string()) })
}

async fn exited() -> Result<String, ToolError> {
    std::process::exit(0)
}

/// Serves over stdio until the end of its input.
///
/// # Errors
/// A standard stream fails.
pub fn serve_pipe(adapter: Adapter, heap: Heap) -> Result<(), String> {
    adapter.serve_stdio(router(adapter, heap)).map_err(|why| why.to_string())
}

fn serve(adapter: Adapter, address: SocketAddr) -> Result<Server, String> {
    adapter.serve_http(router(adapter, || 0), address).map_err(|why| format!("{address}: {why}"))
}

fn connect(adapter: Adapter, to: To<'_>) -> Result<Client, String> {
    let client = match to {
        To::Program(soak) => {
            let mut command = Command::new(soak);
            command.args(["soak", "serve", adapter.name()]);
            // Lets tables fill up within the first rounds, so that they do not grow after them.
            let options = ClientOptions::new().set(|config| config.limits.client.max_retired = 64);
            adapter.connect(command, options)
        }
        To::Url(address, in_session) => {
            let policy = if in_session { Policy::Legacy } else { Policy::Modern };
            let options = ClientOptions::new().set(move |config| config.policy = policy);
            adapter.connect(format!("http://{address}/mcp"), options)
        }
    };
    client.map_err(|why| why.to_string())
}

impl Client {
    fn text(&self, tool: &str) -> Result<String, CallError> {
        let result = self.call(tools::call(tool).arguments(&Nothing {}))?;
        Ok(result.first_text().unwrap_or_default().to_owned())
    }

    /// Calls `echo`, and checks its result.
    fn echo(&self, n: u64) -> Result<(), String> {
        let echo = Echo { text: format!("the text of call {n}") };
        let result = self.call(tools::call("echo").arguments(&echo)).map_err(|why| why.to_string())?;
        match result.first_text().unwrap_or_default() {
            same if same == echo.text => Ok(()),
            other => Err(format!("{:?} came back as {other:?}", echo.text)),
        }
    }

    /// Calls `wait`, cancels the call, and waits for its end.
    fn cancel(&self) -> Result<(), String> {
        let call = self.start(tools::call("wait").arguments(&Nothing {}));
        call.cancel(Some("enough"));
        match call.wait() {
            Err(CallError::Cancelled { .. }) => Ok(()),
            other => Err(format!("a cancelled call ended with {other:?}")),
        }
    }

    /// Calls `wait` and drops the call.
    fn forget(&self) -> Result<(), String> {
        drop(self.start(tools::call("wait").arguments(&Nothing {})));
        Ok(())
    }

    /// Calls `exit`, which has no response.
    fn exit(&self) -> Result<(), String> {
        match self.text("exit") {
            Err(CallError::Closed { .. }) => Ok(()),
            other => Err(format!("the call that ends the server ended with {other:?}")),
        }
    }

    /// Calls `held`, which returns the heap of the server in bytes.
    fn held(&self) -> Result<i64, String> {
        let text = self.text("held").map_err(|why| why.to_string())?;
        text.parse().map_err(|_| format!("{text:?} is no size"))
    }
}

/// How long a server may take to stop.
const GRACE: Duration = Duration::from_millis(100);

/// The counts of a scene.
#[derive(Default)]
struct Tally {
    calls: AtomicU64,
    cancelled: AtomicU64,
    /// Calls that were repeated because their server had exited.
    repeated: AtomicU64,
    clients: u64,
    /// Servers that ended in the middle of a round.
    ends: u64,
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
        let Tally { calls, cancelled, repeated, clients, ends } = run.end()?;
        let seconds = began.elapsed().as_secs_f64();
        let outcome = format!(
            "{calls} calls, {cancelled} cancelled, {clients} clients, {ends} servers ended, {repeated} made again; {before} before, {after} \
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
    server: Option<Server>,
    /// Over stdio.
    lasting: Option<Client>,
    tally: Tally,
}

impl Run {
    fn new(scene: Scene, soak: &Path) -> Result<Self, String> {
        let (adapter, soak) = (scene.adapter, soak.to_owned());
        let (server, lasting) = match scene.link {
            Link::Stdio => (None, Some(connect(adapter, To::Program(&soak))?)),
            Link::Http => (Some(serve(adapter, SocketAddr::from(([127, 0, 0, 1], 0)))?), None),
        };
        Ok(Self { scene, soak, server, lasting, tally: Tally::default() })
    }

    /// Makes the calls of a round, with an end of the server in between. Over HTTP one client makes
    /// all of them. Over stdio a client ends with its program, and another one makes the second
    /// half.
    fn round(&mut self, round: u64) -> Result<(), String> {
        let adapter = self.scene.adapter;
        let to = match &self.server {
            None => To::Program(&self.soak),
            Some(server) => To::Url(server.address(), round % 2 == 1),
        };
        let mut client = connect(adapter, to)?;
        self.tally.clients += 1;
        self.half(&client, 0)?;
        match self.server.take() {
            None => {
                client.exit()?;
                client.close()?;
                client = connect(adapter, To::Program(&self.soak))?;
                self.tally.clients += 1;
            }
            Some(server) => {
                let address = server.address();
                server.stop(GRACE);
                self.server = Some(serve(adapter, address)?);
            }
        }
        self.tally.ends += 1;
        self.half(&client, ROUND / 2)?;
        client.close().map(drop)
    }

    /// Makes half of the calls of a client, beginning with call number `first`.
    fn half(&self, client: &Client, first: u64) -> Result<(), String> {
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

    /// Makes one call. With `early` the server may just have been replaced, so that the call may
    /// have been sent to the previous one.
    fn call(&self, client: &Client, n: u64, early: bool) -> Result<(), String> {
        self.tally.calls.fetch_add(1, Ordering::Relaxed);
        if let Some(lasting) = self.lasting.as_ref().filter(|_| n.is_multiple_of(OF_LASTING)) {
            return lasting.echo(n);
        }
        match n % 10 {
            3 | 7 if !early => {
                self.tally.cancelled.fetch_add(1, Ordering::Relaxed);
                if n % 10 == 3 { client.cancel() } else { client.forget() }
            }
            _ => {
                let end = Instant::now() + AGAIN;
                let mut done = client.echo(n);
                while early && done.is_err() && Instant::now() < end {
                    self.tally.repeated.fetch_add(1, Ordering::Relaxed);
                    thread::sleep(Duration::from_millis(5));
                    done = client.echo(n);
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

    fn end(self) -> Result<Tally, String> {
        if let Some(client) = self.lasting {
            client.close()?;
        }
        if let Some(server) = self.server {
            server.stop(GRACE);
        }
        Ok(self.tally)
    }
}
