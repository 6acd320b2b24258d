//! An honest call beside a peer that pours: a host has several clients, and one server must not
//! take the time of the others.

use super::coding::bomb;
use super::rows::{BLOCKING, READERS, expect, row_on, spent};
use super::web::{EVENTS_IN_GZIP, SocketStub};
use super::{Bench, Row};
use crate::frames::{PING, plain};
use crate::stub::{Step, Stub, good_modern, say};
use mcp_driver::{ClientOptions, ConnectError};
use mcp_proto::client::Policy;
use mcp_proto::process::Stderr;
use mcp_proto::{ClientConfig, Program, tools};
use rustix::time::ClockId;
use serde_json::json;
use smol::future::or;
use smol::{LocalExecutor, block_on};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

pub(super) const ROWS: &[Row] = &[
    row_on("a call beside 200 MiB of line feeds in gzip", READERS, 64, |b| beside_web(b, &LINE_FEEDS)),
    row_on("a call beside 200 MiB of comments in gzip", READERS, 64, |b| beside_web(b, &COMMENTS)),
    row_on("a call beside pings over a websocket", READERS, 64, beside_pings),
    row_on("a call beside blank lines of a program", READERS, 64, beside_lines),
];

/// Number of honest calls.
const CALLS: usize = 200;

/// Maximum time of each in an optimized program: measured as processor time of a thread that runs
/// everything, and with blocking threads as time, which a busy machine may take.
const MOST: Duration = Duration::from_millis(5);
const MOST_BLOCKING: Duration = Duration::from_millis(50);

/// Number of series of calls. One must keep the limit: in another one, the system may have let the
/// honest server wait.
const SERIES: usize = 5;

static LINE_FEEDS: LazyLock<Vec<u8>> = LazyLock::new(|| bomb("", "\n", 200));
static COMMENTS: LazyLock<Vec<u8>> = LazyLock::new(|| bomb("", ":\n", 200));

/// What the other client does again and again. The first call of this tool pours.
#[derive(Clone)]
enum Flood {
    Url(String),
    Program(Program, u64),
}

impl Flood {
    fn call(&self) -> mcp_proto::Call<tools::CallTool> {
        match self {
            Self::Url(_) => tools::call("bad"),
            Self::Program(_, amount) => tools::call("blank").arguments(&json!({"amount": amount})),
        }
    }

    fn options(&self) -> ClientOptions {
        let policy = match self {
            Self::Url(_) => Policy::Modern,
            Self::Program(..) => Policy::Legacy,
        };
        options(policy)
    }
}

fn options(policy: Policy) -> ClientOptions {
    ClientOptions::new().stderr(Stderr::Discard).set(move |config: &mut ClientConfig| {
        config.policy = policy;
        config.timeout = Some(Duration::from_secs(60));
    })
}

fn beside_web(bench: &Bench, body: &'static [u8]) -> Result<String, String> {
    let bad = move |ask: &crate::stub::Ask| {
        let pours = ask.what == "tools/call bad";
        pours.then(|| vec![say(EVENTS_IN_GZIP), Step::Bytes(body), Step::Hold])
    };
    let stub = Stub::start(move |ask| bad(ask).unwrap_or_else(|| good_modern(ask))).map_err(|e| e.to_string())?;
    beside(bench, &Flood::Url(stub.url()))
}

fn beside_pings(bench: &Bench) -> Result<String, String> {
    let part = plain(PING, b"");
    let stub = SocketStub::start(move |wire, _| wire.pour_beside(b"", &part, u64::MAX, b""))?;
    beside(bench, &Flood::Url(stub.url()))
}

fn beside_lines(bench: &Bench) -> Result<String, String> {
    let child = bench.child.to_str().ok_or("the path is not unicode")?;
    beside(bench, &Flood::Program(Program::new(child), 12 << 20))
}

/// Makes the honest calls while the other client pours.
fn beside(bench: &Bench, flood: &Flood) -> Result<String, String> {
    let stub = Stub::start(good_modern).map_err(|e| e.to_string())?;
    let most = if bench.host == BLOCKING { MOST_BLOCKING } else { MOST };
    let mut worst = Duration::MAX;
    for _ in 0..SERIES {
        let (slowest, floods) = match bench.host {
            BLOCKING => blocking(&stub.url(), flood)?,
            _ => smol(&stub.url(), flood)?,
        };
        expect(floods > 0, || "nothing poured".into())?;
        worst = worst.min(slowest);
        if worst <= most {
            return Ok(format!("the slowest of {CALLS} calls takes {:.2} ms", worst.as_secs_f64() * 1e3));
        }
    }
    Err(format!("the slowest of {CALLS} calls takes at least {worst:?}"))
}

/// Both clients on one thread. Returns the most processor time that it spends during a call, and
/// how often the other one was asked to pour.
fn smol(url: &str, flood: &Flood) -> Result<(Duration, usize), String> {
    let executor = LocalExecutor::new();
    let connect = |url: &str| -> Result<_, ConnectError> {
        let (client, driver) = mcp_smol::connect_driven(url, options(Policy::Modern))?;
        executor.spawn(driver).detach();
        Ok(client)
    };
    let floods = std::cell::Cell::new(0);
    let pours = async {
        loop {
            let connected = match flood {
                Flood::Url(url) => mcp_smol::connect_driven(url.as_str(), flood.options()),
                Flood::Program(program, _) => mcp_smol::connect_driven(program.clone(), flood.options()),
            };
            let (client, driver) = connected.map_err(|e| e.to_string())?;
            let driver = executor.spawn(driver);
            client.ready().await.map_err(|e| e.to_string())?;
            loop {
                floods.set(floods.get() + 1);
                if client.call(flood.call()).await.is_err() {
                    break;
                }
            }
            client.closer().close().await;
            driver.await;
        }
    };
    let calls = async {
        let client = connect(url).map_err(|e| e.to_string())?;
        client.ready().await.map_err(|e| e.to_string())?;
        client.call(tools::call("good")).await.map_err(|e| e.to_string())?;
        while floods.get() == 0 {
            smol::future::yield_now().await;
        }
        let mut worst = Duration::ZERO;
        for _ in 0..CALLS {
            let began = spent(ClockId::ThreadCPUTime);
            client.call(tools::call("good")).await.map_err(|e| e.to_string())?;
            worst = worst.max(spent(ClockId::ThreadCPUTime).saturating_sub(began));
        }
        client.closer().close().await;
        Ok((worst, floods.get()))
    };
    block_on(executor.run(or(calls, pours)))
}

/// Both clients on their threads. Returns the longest time of a call.
fn blocking(url: &str, flood: &Flood) -> Result<(Duration, usize), String> {
    let honest = mcp_blocking::connect_with(url, options(Policy::Modern)).map_err(|e| e.to_string())?;
    let (is_over, floods) = (AtomicBool::new(false), AtomicUsize::new(0));
    let pour = || {
        while !is_over.load(Ordering::SeqCst) {
            let connected = match flood {
                Flood::Url(url) => mcp_blocking::connect_with(url.as_str(), flood.options()),
                Flood::Program(program, _) => mcp_blocking::connect_with(program.clone(), flood.options()),
            };
            let client = connected.map_err(|e| e.to_string())?;
            while !is_over.load(Ordering::SeqCst) {
                floods.fetch_add(1, Ordering::SeqCst);
                if client.call(flood.call()).is_err() {
                    break;
                }
            }
            client.close();
        }
        Ok::<_, String>(())
    };
    thread::scope(|scope| {
        let pouring = scope.spawn(pour);
        while floods.load(Ordering::SeqCst) == 0 && !pouring.is_finished() {
            thread::yield_now();
        }
        let mut worst = Duration::ZERO;
        let called = (0..CALLS).try_for_each(|_| {
            let began = Instant::now();
            honest.call(tools::call("good")).map_err(|e| e.to_string())?;
            worst = worst.max(began.elapsed());
            Ok::<_, String>(())
        });
        is_over.store(true, Ordering::SeqCst);
        pouring.join().map_err(|_| "the other client panics")??;
        called.map(|()| (worst, floods.load(Ordering::SeqCst)))
    })
}
