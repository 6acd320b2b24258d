//! Whether callers that never pause are served in turn: each makes its next call when it has its
//! response.
//!
//! Client and server share one core, so that a server that continues with the same caller finds its
//! next request there. The wait of a call is counted in responses to others, which no other process
//! of the machine can change. Its time is printed as well.

use super::child::Child;
use super::raw::{self, SILENCE};
use super::scenes::{MARGIN, at_rest, millis, shown};
use super::{Scale, Shown};
use crate::adapters::Adapter;
use mcp_proto::client::Policy;
use mcp_proto::tools;
use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::Errno;
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde_json::json;
use smol::LocalExecutor;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use std::{fs, thread};

/// How many times the wait of half the calls 99 of 100 may take at most.
const MOST: f64 = 20.0;

/// Each round is judged by the order of its responses, the best one by its times: other work on the
/// core delays all callers at once, which are more than one in a hundred.
const ROUNDS: usize = 3;

/// The request of a caller, and its expected response.
const TEXT: &str = "the same words again";

/// How long a call waited for its answer.
pub(super) struct Wait {
    /// The answers to other calls meanwhile.
    others: u64,
    pub(super) time: Duration,
}

/// Callers with a connection each, of the server's adapter: its turns are fair.
pub(super) fn connections(child: &mut Child, scale: &Scale) -> Result<Shown, String> {
    rounds(child, scale, |child| {
        let callers = (0..scale.callers).map(|_| Caller::open(child));
        keep_asking(callers.collect::<Result<_, _>>()?, scale.unpaused)
    })
}

/// Callers that share one client, of the same adapter as the server: its calls are answered in
/// turn.
pub(super) fn calls(child: &mut Child, scale: &Scale) -> Result<Shown, String> {
    let url = format!("http://{}/mcp", child.address);
    rounds(child, scale, |child| match child.adapter {
        Adapter::Blocking => from_threads(&url, scale),
        Adapter::Smol => from_tasks(&url, scale),
    })
}

fn rounds(
    child: &mut Child,
    scale: &Scale,
    mut round: impl FnMut(&Child) -> Result<Vec<Wait>, String>,
) -> Result<Shown, String> {
    let before = at_rest(child)?;
    let core = OneCore::of(child.id())?;
    let (mut outcomes, mut quickest) = (Vec::new(), f64::INFINITY);
    for _ in 0..ROUNDS {
        let mut waits = round(child)?;
        if waits.len() != scale.unpaused {
            return Err(format!("{} calls of {} are answered", waits.len(), scale.unpaused));
        }
        waits.sort_unstable_by_key(|wait| wait.time);
        let (half, most) = (quantile(&waits, 50).time, quantile(&waits, 99).time);
        quickest = quickest.min(most.as_secs_f64() / half.as_secs_f64());
        waits.sort_unstable_by_key(|wait| wait.others);
        let (half_others, others) = (quantile(&waits, 50).others, quantile(&waits, 99).others);
        let ratio = others as f64 / half_others.max(1) as f64;
        let outcome = format!(
            "p50 {}, p99 {}; overtaken by {half_others}, by {others} ({ratio:.1} times)",
            millis(half),
            millis(most)
        );
        if ratio > MOST {
            return Err(format!("not served in turn: {outcome}"));
        }
        outcomes.push(outcome);
    }
    drop(core);
    let outcome = format!("p99 is {quickest:.1} times p50; {}", outcomes.swap_remove(0));
    if scale.timed && quickest > MOST {
        return Err(format!("some wait too long: {outcome}"));
    }
    let after = child.until("are the callers gone", MARGIN, |look| look.connections == 0)?;
    let all = (ROUNDS * scale.unpaused) as u64;
    if after.echoed - before.echoed != all {
        return Err(format!("{} calls ran of {all}", after.echoed - before.echoed));
    }
    let mut shown = shown(scale.callers, before, after, after, outcome);
    (shown.heap, shown.resident) = (None, None);
    Ok(shown)
}

/// Returns the percentile of a sorted list.
pub(super) fn quantile(sorted: &[Wait], hundredths: usize) -> &Wait {
    &sorted[(sorted.len() - 1) * hundredths / 100]
}

/// Keeps this thread, and all of another process, on one core while this value lives. Threads and
/// processes that they start inherit it.
struct OneCore(CpuSet);

impl OneCore {
    fn of(process: u32) -> Result<Self, String> {
        let before = sched_getaffinity(None).map_err(|e| format!("which cores there are: {e}"))?;
        let first = (0..CpuSet::MAX_CPU).find(|core| before.is_set(*core)).ok_or("there is no core")?;
        let mut one = CpuSet::new();
        one.set(first);
        let threads = fs::read_dir(format!("/proc/{process}/task")).map_err(|e| format!("its threads: {e}"))?;
        for id in threads.flatten().filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?)) {
            // An ended process needs no core.
            let _ = sched_setaffinity(Some(id), &one);
        }
        sched_setaffinity(None, &one).map_err(|e| format!("to one core: {e}"))?;
        Ok(Self(before))
    }
}

impl Drop for OneCore {
    fn drop(&mut self) {
        // It was allowed before.
        let _ = sched_setaffinity(None, &self.0);
    }
}

/// A connection that asks again as soon as it is answered.
pub(super) struct Caller {
    stream: TcpStream,
    request: String,
    answer: Vec<u8>,
    asked: (Instant, u64),
}

impl Caller {
    fn open(child: &Child) -> Result<Self, String> {
        Self::asking(child, raw::call(1, "echo", json!({ "text": TEXT })))
    }

    /// The same, which this principal makes.
    pub(super) fn open_as(child: &Child, principal: &str) -> Result<Self, String> {
        Self::asking(child, raw::by(principal, &raw::call(1, "echo", json!({ "text": TEXT }))))
    }

    fn asking(child: &Child, request: String) -> Result<Self, String> {
        let stream = TcpStream::connect_timeout(&child.address, SILENCE).map_err(|e| format!("no connection: {e}"))?;
        stream.set_nodelay(true).and_then(|()| stream.set_nonblocking(true)).map_err(|e| e.to_string())?;
        Ok(Self { stream, request, answer: Vec::new(), asked: (Instant::now(), 0) })
    }

    /// Asks after this number of answered calls.
    fn ask(&mut self, answered: u64) -> Result<(), String> {
        self.asked = (Instant::now(), answered);
        // A socket whose last answer was read has room for one request.
        self.stream.write_all(self.request.as_bytes()).map_err(|e| format!("not written: {e}"))
    }

    /// Reads the available bytes. Returns the wait of the call if its response is complete.
    fn read(&mut self, answered: u64) -> Result<Option<Wait>, String> {
        let mut buffer = [0; 4096];
        match self.stream.read(&mut buffer) {
            Ok(0) => return Err(format!("closed after {:?}", String::from_utf8_lossy(&self.answer))),
            Ok(n) => self.answer.extend_from_slice(&buffer[..n]),
            Err(e) if e.kind() == ErrorKind::WouldBlock => {}
            Err(e) => return Err(format!("not read: {e}")),
        }
        let text = std::str::from_utf8(&self.answer).map_err(|e| e.to_string())?;
        let Some((head, body)) = text.split_once("\r\n\r\n") else { return Ok(None) };
        let length = raw::field(head, "content-length").and_then(|length| length.parse().ok());
        if length != Some(body.len()) {
            return Ok(None);
        }
        if !head.starts_with("HTTP/1.1 200 ") || !body.contains(TEXT) {
            return Err(format!("a call is answered {text}"));
        }
        self.answer.clear();
        let (began, before) = self.asked;
        Ok(Some(Wait { others: answered - before, time: began.elapsed() }))
    }
}

/// Makes this number of calls, at any time one on each connection. The work between a response and
/// the next call gives the server time to turn to another connection, so it is small.
pub(super) fn keep_asking(mut callers: Vec<Caller>, calls: usize) -> Result<Vec<Wait>, String> {
    let system = |e: Errno| e.to_string();
    let ready = epoll::create(CreateFlags::CLOEXEC).map_err(system)?;
    for (at, caller) in callers.iter().enumerate() {
        epoll::add(&ready, &caller.stream, EventData::new_u64(at as u64), EventFlags::IN).map_err(system)?;
    }
    let limit = Timespec { tv_sec: SILENCE.as_secs() as i64, tv_nsec: 0 };
    let (mut waits, mut asked) = (Vec::with_capacity(calls), callers.len());
    callers.iter_mut().try_for_each(|caller| caller.ask(0))?;
    let mut events = Vec::with_capacity(callers.len());
    while waits.len() < calls {
        events.clear();
        match epoll::wait(&ready, spare_capacity(&mut events), Some(&limit)) {
            Ok(0) => return Err(format!("silence after {} answers", waits.len())),
            Ok(_) | Err(Errno::INTR) => {}
            Err(e) => return Err(system(e)),
        }
        for event in &events {
            let Some(caller) = callers.get_mut(event.data.u64() as usize) else { continue };
            let Some(wait) = caller.read(waits.len() as u64)? else { continue };
            waits.push(wait);
            if asked < calls {
                caller.ask(waits.len() as u64)?;
                asked += 1;
            }
        }
    }
    Ok(waits)
}

/// The calls of one round, as they are made and answered in many places.
#[derive(Default)]
struct Round {
    begun: AtomicUsize,
    answered: AtomicU64,
}

impl Round {
    /// Begins a call: when, and after how many answers. `None`: there are enough.
    fn begin(&self, calls: usize) -> Option<(Instant, u64)> {
        let wanted = self.begun.fetch_add(1, Ordering::Relaxed) < calls;
        wanted.then(|| (Instant::now(), self.answered.load(Ordering::SeqCst)))
    }

    fn end(&self, (began, before): (Instant, u64)) -> Wait {
        Wait { others: self.answered.fetch_add(1, Ordering::SeqCst) - before, time: began.elapsed() }
    }
}

fn check(text: Option<&str>) -> Result<(), String> {
    match text {
        Some(TEXT) => Ok(()),
        other => Err(format!("a call is answered {other:?}")),
    }
}

/// Calls of a blocking client, from as many threads as there are callers.
fn from_threads(url: &str, scale: &Scale) -> Result<Vec<Wait>, String> {
    let config = mcp_blocking::ClientOptions::new().set(|config| config.policy = Policy::Modern);
    let client = mcp_blocking::connect_with(url, config).map_err(|e| e.to_string())?;
    let round = Round::default();
    let caller = || -> Result<Vec<Wait>, String> {
        let mut waits = Vec::new();
        while let Some(begun) = round.begin(scale.unpaused) {
            let call = tools::call("echo").arguments(&json!({ "text": TEXT }));
            check(client.call(call).map_err(|e| e.to_string())?.first_text())?;
            waits.push(round.end(begun));
        }
        Ok(waits)
    };
    let waits: Result<Vec<_>, String> = thread::scope(|scope| {
        let callers: Vec<_> = (0..scale.callers).map(|_| scope.spawn(caller)).collect();
        callers.into_iter().map(|caller| caller.join().map_err(|_| "a caller panicked")?).collect()
    });
    client.close();
    Ok(waits?.into_iter().flatten().collect())
}

/// Calls of a client on smol, from as many tasks as there are callers, all on this thread.
fn from_tasks(url: &str, scale: &Scale) -> Result<Vec<Wait>, String> {
    let config = mcp_smol::ClientOptions::new().set(|config| config.policy = Policy::Modern);
    let (client, driver) = mcp_smol::connect_driven(url, config).map_err(|e| e.to_string())?;
    let round = Round::default();
    let caller = async || -> Result<Vec<Wait>, String> {
        let mut waits = Vec::new();
        while let Some(begun) = round.begin(scale.unpaused) {
            let call = tools::call("echo").arguments(&json!({ "text": TEXT }));
            check(client.call(call).await.map_err(|e| e.to_string())?.first_text())?;
            waits.push(round.end(begun));
        }
        Ok(waits)
    };
    let executor = LocalExecutor::new();
    let driver = executor.spawn(driver);
    smol::block_on(executor.run(async {
        let callers: Vec<_> = (0..scale.callers).map(|_| executor.spawn(caller())).collect();
        let mut waits = Vec::new();
        for caller in callers {
            waits.extend(caller.await?);
        }
        client.close().await;
        driver.await;
        Ok(waits)
    }))
}
