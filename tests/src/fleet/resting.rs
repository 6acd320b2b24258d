//! What a supervisor of servers at rest costs.

use crate::adapters::Adapter;
use crate::soak::Heap;
use crate::soak::meter::settle;
use mcp_driver::ClientOptions;
use mcp_proto::process::Stderr;
use mcp_proto::{ClientConfig, Program};
use mcp_supervisor::front::SupervisorOptions;
use mcp_supervisor::{ServerSpec, ServerState};
use rustix::time::{ClockId, clock_gettime};
use std::path::Path;
use std::time::Duration;
use std::{fmt, fs, process, thread};

/// The costs of a supervisor whose servers rest.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    /// Number of servers.
    pub servers: usize,
    /// The heap that it takes with them, in bytes.
    pub heap: i64,
    /// Its threads, and those of its clients.
    pub threads: u64,
    /// How often a thread of this process was given the processor while it rested.
    pub switches: u64,
    /// The processor time of that, in whole milliseconds.
    pub time: Duration,
}

/// Starts this number of servers of the program `mcp-tests` with a supervisor, and measures it for
/// some time at rest.
///
/// # Errors
/// A server does not connect.
pub fn cost(adapter: Adapter, server: &Path, servers: usize, length: Duration, heap: Heap) -> Result<Cost, String> {
    // What is created once exists before the first measurement.
    let first = supervised(adapter, server, 1)?;
    first.close();
    drop(first);
    let before = settle(heap, None);
    let supervisor = supervised(adapter, server, servers)?;
    let held = settle(heap, None);
    let (switches, time) = (switches(), others_time());
    thread::sleep(length);
    let (switches, time) = (self::switches() - switches, others_time().saturating_sub(time));
    let threads = held.threads - before.threads;
    drop(supervisor);
    Ok(Cost { servers, heap: held.heap - before.heap, threads, switches, time })
}

fn supervised(adapter: Adapter, server: &Path, servers: usize) -> Result<crate::adapters::Supervisor, String> {
    let options = SupervisorOptions::new().clients(|_| ClientOptions::new().stderr(Stderr::Discard));
    let supervisor = adapter.supervise(options).map_err(|why| why.to_string())?;
    let keys: Vec<String> = (0..servers).map(|number| format!("server-{number}")).collect();
    for key in &keys {
        let config = ClientConfig::program(Program::new(server.to_string_lossy()).args(["bare-server"]));
        supervisor.add(key, ServerSpec::new(config)).map_err(|why| why.to_string())?;
    }
    supervisor.settled();
    for key in &keys {
        let health = supervisor.health(key).ok_or("a server is missing")?;
        if !matches!(health.state, ServerState::Ready { .. }) {
            return Err(format!("{key} is not connected: {health:?}"));
        }
    }
    Ok(supervisor)
}

/// Returns how often the threads of this process but the first, which measures, were given the
/// processor.
fn switches() -> u64 {
    let Ok(threads) = fs::read_dir("/proc/self/task") else { return 0 };
    let own = process::id().to_string();
    let others = threads.flatten().filter(|thread| thread.file_name().to_str() != Some(&own));
    let status = others.filter_map(|thread| fs::read_to_string(thread.path().join("status")).ok());
    let of = |status: String| -> u64 {
        let fields = status.lines().filter_map(|line| line.split_once("voluntary_ctxt_switches:"));
        fields.filter_map(|(_, number)| number.trim().parse::<u64>().ok()).sum()
    };
    status.map(of).sum()
}

/// Returns the processor time of all threads of this process but this one.
fn others_time() -> Duration {
    let read = |clock| {
        let time = clock_gettime(clock);
        Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32)
    };
    let own = read(ClockId::ThreadCPUTime);
    read(ClockId::ProcessCPUTime).saturating_sub(own)
}

/// The line that [`read`](Cost::read) understands.
impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { servers, heap, threads, switches, time } = self;
        write!(f, "{servers} {heap} {threads} {switches} {}", time.as_millis())
    }
}

impl Cost {
    /// Reads the line of a program.
    pub fn read(line: &str) -> Option<Self> {
        let numbers: Vec<u64> = line.split_whitespace().filter_map(|number| number.parse().ok()).collect();
        let [servers, heap, threads, switches, time] = numbers[..] else { return None };
        let (servers, heap, time) = (servers as usize, heap as i64, Duration::from_millis(time));
        Some(Self { servers, heap, threads, switches, time })
    }
}
