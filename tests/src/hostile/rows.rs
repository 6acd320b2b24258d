//! The rows, and the required outcome of each.

use super::client::Setup;
use super::{Bench, Host, engine};
use crate::orphans::Adapter;
use mcp_proto::error::Refusal;
use mcp_proto::exchange::{Closed, Sent};
use mcp_proto::process::Stderr;
use mcp_proto::{CallError, Program, tools};
use rustix::time::{ClockId, clock_gettime};
use serde_json::json;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// One hostile peer.
#[derive(Clone, Copy)]
pub struct Row {
    /// Its name.
    pub name: &'static str,
    /// The hosts for this peer.
    pub hosts: &'static [Host],
    /// The maximum memory of the host, in MiB, at any time, without the code of the program.
    /// Without hostile input it takes 5 to 15.
    pub peak: u64,
    pub(super) run: fn(&Bench) -> Result<String, String>,
}

pub(super) const DRIVERS: &[Host] = &[BLOCKING, SMOL, Host::Driver(Adapter::Loop)];
/// The hosts that read standard error themselves, and report events of connections and of servers.
pub(super) const READERS: &[Host] = &[BLOCKING, SMOL];
const ENGINE: &[Host] = &[Host::Engine];
pub(super) const BLOCKING: Host = Host::Driver(Adapter::BLOCKING);
pub(super) const SMOL: Host = Host::Driver(Adapter::SMOL);

/// The messages, or bad lines, of a flood.
const MILLION: u64 = 1_000_000;
const NONSENSE: u64 = 100_000;

/// Terminal control sequences, in one line: the last words of a program are its last line.
pub(super) const OBEYED: &str = "\u{1b}]0;owned\u{7}\rall is well\u{9b}31m";

/// Maximum time of an event without a request, also on a busy machine.
const SOON: Duration = Duration::from_secs(10);

/// Maximum time of a server to load and respond, or to end, on a busy machine.
const LONG: Duration = Duration::from_secs(30);

/// The rows, in the order of the table.
pub(super) const ROWS: &[Row] = &[
    row_on("a line of 1 GiB", DRIVERS, 64, long_line),
    row_on("a resource of 1 GiB", DRIVERS, 64, large_resource),
    row_on("1,000,000 notifications", DRIVERS, 32, |bench| notes(bench, "notes")),
    row_on("1,000,000 log messages", DRIVERS, 32, |bench| notes(bench, "logs")),
    row_on("208 notifications of 4 MiB, not taken", DRIVERS, 64, heavy_notes),
    // The buffer itself is 40 MB, and exists twice: in the making, and as given.
    row_on("1,000,000 notifications in one read of a client", ENGINE, 160, |bench| timed(bench, engine::client_notes)),
    row_on("1,000,000 notifications in one read of a server", ENGINE, 140, |bench| timed(bench, engine::server_notes)),
    row_on("1,000,000 pings in one read of a server", ENGINE, 260, |bench| timed(bench, engine::server_pings)),
    row_on("100,000 diagnostics, outputs not taken", ENGINE, 16, |bench| {
        engine::client_nonsense(bench.scaled(NONSENSE))
    }),
    row_on("100,000 diagnostics, no listener", DRIVERS, 32, |bench| nonsense(bench, false)),
    row_on("100,000 diagnostics, a listener", DRIVERS, 32, |bench| nonsense(bench, true)),
    row_on("1 GiB to stderr, inherited", DRIVERS, 32, |bench| errors(bench, Stderr::Inherit)),
    row_on("1 GiB to stderr, discarded", READERS, 32, |bench| errors(bench, Stderr::Discard)),
    row_on("1 GiB to stderr, by lines", READERS, 32, lines),
    row_on("never reads stdin", DRIVERS, 64, deaf),
    row_on("closes stdout and lives on", DRIVERS, 32, closes),
    row_on("logs to stdout", DRIVERS, 32, logs),
    row_on("CRLF", DRIVERS, 32, |bench| good(bench, "--crlf")),
    row_on("a byte-order mark", DRIVERS, 32, |bench| good(bench, "--bom")),
    row_on("UTF-16", DRIVERS, 32, |bench| {
        let wait = Duration::from_secs(3);
        fails(bench, wait, &["--utf16"], &["initialize", "bad-message"])
    }),
    row_on("never answers", DRIVERS, 32, |bench| {
        let wait = Duration::from_secs(1);
        fails(bench, wait, &["--mute"], &["initialize", "no response"])
    }),
    row_on("agrees on no revision", DRIVERS, 32, |bench| fails(bench, LONG, &["--no-version"], &["initialize"])),
    row_on("exits at once with a message", READERS, 32, |bench| {
        fails(bench, LONG, &["--exit", "cannot open the database"], &["code 3", "cannot open the database"])
    }),
    row_on("exits with what a terminal would obey", READERS, 32, |bench| {
        let failed = fails(bench, LONG, &["--exit", OBEYED], &["code 3", r"\u{1b}]0;owned", r"\u{9b}31m"])?;
        harmless(&failed).map(|()| failed)
    }),
    row_on("crashes in a call", DRIVERS, 32, |bench| crashes(bench, &[])),
    row_on("crashes, and a grandchild holds the pipe", DRIVERS, 32, |bench| crashes(bench, &["--grandchild"])),
    row_on("does not exist", DRIVERS, 32, |bench| {
        cannot_start(bench, "/no/such/program", &["/no/such/program", "No such file"])
    }),
    row_on("is not executable", DRIVERS, 32, not_executable),
    row_on("is a directory", DRIVERS, 32, |bench| cannot_start(bench, "/usr", &["/usr", "ermission denied"])),
];

pub(super) const fn row_on(
    name: &'static str,
    hosts: &'static [Host],
    peak: u64,
    run: fn(&Bench) -> Result<String, String>,
) -> Row {
    Row { name, hosts, peak, run }
}

/// Prints the ratio of the times for four times the input.
fn timed(bench: &Bench, run: fn(u64) -> Result<String, String>) -> Result<String, String> {
    // Processor time, since the engine cannot affect the wait for a processor.
    let time = |count| {
        let began = spent(ClockId::ThreadCPUTime);
        run(count).map(|outcome| (outcome, (spent(ClockId::ThreadCPUTime) - began).as_secs_f64()))
    };
    let (_, quarter) = time(bench.scaled(MILLION) / 4)?;
    let (outcome, whole) = time(bench.scaled(MILLION))?;
    let factor = whole / quarter;
    // Twice the linear time, for the effects of caches and the allocator.
    if factor > 8.0 {
        return Err(format!("four times as many take {factor:.1} times as long"));
    }
    Ok(format!("{outcome}; {whole:.2} s, {factor:.1} times that of a quarter"))
}

/// The processor time that this clock has counted.
pub(super) fn spent(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    Duration::new(time.tv_sec.try_into().unwrap_or_default(), time.tv_nsec.try_into().unwrap_or_default())
}

pub(super) fn call(tool: &str, arguments: &serde_json::Value) -> mcp_proto::Call<tools::CallTool> {
    tools::call(tool).arguments(arguments)
}

pub(super) fn expect(is_so: bool, what: impl FnOnce() -> String) -> Result<(), String> {
    if is_so { Ok(()) } else { Err(what()) }
}

/// Makes a call that must succeed as with any good server.
pub(super) fn echo(client: &mut super::client::Client) -> Result<(), String> {
    let answer = client.call(call("echo", &json!({"text": "still here"})));
    let is_so = answer.as_ref().is_ok_and(|answer| answer.first_text() == Some("still here"));
    expect(is_so, || format!("a later call fails: {answer:?}"))
}

fn amount(client: &mut super::client::Client, tool: &str, amount: u64) -> Result<(), String> {
    let answer = client.call(call(tool, &json!({"amount": amount})));
    let is_so = answer.as_ref().is_ok_and(|answer| answer.first_text() == Some("done"));
    expect(is_so, || format!("the call ends with {answer:?}"))
}

fn long_line(bench: &Bench) -> Result<String, String> {
    let mut client = bench.start(&[], Setup::default())?;
    amount(&mut client, "line", bench.size)?;
    echo(&mut client)?;
    let seen = client.leave()?;
    soon(|| seen.of("bad-message") == 1);
    let bad = seen.of("bad-message");
    expect(bad == 1, || format!("{bad} bad messages"))?;
    Ok("1 bad-message; this call and later ones are answered".into())
}

/// The call ends at once, since its id precedes the part that is too long.
fn large_resource(bench: &Bench) -> Result<String, String> {
    let mut client = bench.start(&[], Setup { timeout: None, ..Setup::default() })?;
    let ended = client.call(call("large", &json!({"amount": bench.size})));
    let is_so = matches!(&ended, Err(CallError::Decode(e)) if e.to_string().contains("longer than the limit"));
    expect(is_so, || format!("the call ends with {ended:?}"))?;
    echo(&mut client)?;
    client.close()?;
    Ok(format!("{}; later calls are answered", ended.map_or_else(|e| e.to_string(), |_| String::new())))
}

fn notes(bench: &Bench, tool: &str) -> Result<String, String> {
    let count = bench.scaled(MILLION);
    let mut client = bench.start(&[], Setup::default())?;
    amount(&mut client, tool, count)?;
    echo(&mut client)?;
    let (told, lost) = client.leave()?.notes(count)?;
    Ok(format!("{told} told, {lost} counted as lost; calls are answered"))
}

/// Events that are not taken are bounded by their bytes.
fn heavy_notes(bench: &Bench) -> Result<String, String> {
    let count = bench.scaled(208);
    let mut client = bench.start(&[], Setup { timeout: None, ..Setup::default() })?;
    let answer = client.call_unheard(call("heavy", &json!({"amount": count})));
    let is_so = answer.as_ref().is_ok_and(|answer| answer.first_text() == Some("done"));
    expect(is_so, || format!("the call ends with {answer:?}"))?;
    echo(&mut client)?;
    let (told, lost) = client.leave()?.notes(count)?;
    let rests = bench.host != SMOL && bench.host != Host::Shim;
    expect(lost > 0 || !rests, || format!("{told} are told and {lost} lost of {count}"))?;
    Ok(format!("{told} told, {lost} counted as lost; calls are answered"))
}

/// A message for people contains no control characters for a terminal or a log.
pub(super) fn harmless(text: &str) -> Result<(), String> {
    expect(!text.contains(char::is_control), || format!("it is shown with control characters: {text:?}"))
}

fn nonsense(bench: &Bench, listens: bool) -> Result<String, String> {
    let count = bench.scaled(NONSENSE);
    let mut client = bench.start(&[], Setup { listens, ..Setup::default() })?;
    amount(&mut client, "nonsense", count)?;
    echo(&mut client)?;
    let seen = client.seen.clone();
    let sum = || seen.of("bad-message") + seen.counts().lost_diagnostics;
    if listens {
        // Before the end, which is reported in steps. A step that finds the queue full counts as a
        // lost diagnostic too.
        soon(|| sum() >= count);
    }
    client.close()?;
    if !listens {
        return Ok("dropped; calls are answered".into());
    }
    expect(sum() == count, || format!("{} of them", sum()))?;
    let (told, lost) = (seen.of("bad-message"), seen.counts().lost_diagnostics);
    Ok(format!("{told} told, {lost} counted as lost; calls are answered"))
}

fn errors(bench: &Bench, stderr: Stderr) -> Result<String, String> {
    let mut client = bench.start(&[], Setup { stderr, ..Setup::default() })?;
    amount(&mut client, "errors", bench.size)?;
    echo(&mut client)?;
    client.close()?;
    Ok("the call and later ones are answered".into())
}

fn lines(bench: &Bench) -> Result<String, String> {
    let told = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&told);
    let stderr = Stderr::Lines(Arc::new(move |line: &str| {
        count.fetch_add(line.len() as u64 + 1, Ordering::Relaxed);
    }));
    errors(bench, stderr)?;
    let told = || told.load(Ordering::Relaxed);
    // The last line has no newline. A separate thread may still read the rest of the pipe.
    soon(|| told() >= bench.size);
    expect(told().abs_diff(bench.size) <= 1, || format!("{} bytes of {}", told(), bench.size))?;
    Ok("every byte is reported; the call and later ones are answered".into())
}

fn deaf(bench: &Bench) -> Result<String, String> {
    let mut client = bench.start(&[], Setup::default())?;
    let pid = pid(&mut client)?;
    client.call(tools::call("deaf")).map_err(|e| e.to_string())?;
    let text = "x".repeat(1 << 20);
    let (mut timeouts, after) = (0, Duration::from_millis(50));
    // The first may still be read, and is dropped.
    let refused = loop {
        match client.call(call("echo", &json!({"text": text})).timeout(after)) {
            Err(CallError::Timeout { .. }) if timeouts < 64 => timeouts += 1,
            other => break other,
        }
    };
    expect(refused == Err(CallError::Refused(Refusal::Full)), || format!("{timeouts} timeouts, then {refused:?}"))?;
    let took = client.close()?;
    expect(took < SOON, || format!("the close takes {took:?}"))?;
    gone(&pid)?;
    Ok(format!("{timeouts} timeouts, then refused: full; closed in {:.1} s", took.as_secs_f64()))
}

fn closes(bench: &Bench) -> Result<String, String> {
    let mut client = bench.start(&["--ignore-eof"], Setup::default())?;
    let pid = pid(&mut client)?;
    let began = Instant::now();
    let ended = client.call(tools::call("close"));
    let took = began.elapsed();
    let Err(CallError::Closed { sent: Sent::Maybe, why }) = ended else { return Err(format!("{ended:?}")) };
    expect(took < SOON, || format!("it takes {took:?}"))?;
    client.close()?;
    gone(&pid)?;
    Ok(format!("the call ends in {:.1} s: {why}; the program is ended", took.as_secs_f64()))
}

fn logs(bench: &Bench) -> Result<String, String> {
    let mut client = bench.start(&["--logs"], Setup::default())?;
    echo(&mut client)?;
    echo(&mut client)?;
    let seen = client.leave()?;
    // The line after the last response may come too late.
    soon(|| seen.of("bad-message") >= 2);
    let bad = seen.of("bad-message");
    expect(bad >= 2, || format!("{bad} bad messages"))?;
    Ok("a bad-message for each line of the log; calls are answered".into())
}

fn good(bench: &Bench, style: &str) -> Result<String, String> {
    let mut client = bench.start(&[style], Setup::default())?;
    echo(&mut client)?;
    let seen = client.leave()?;
    seen.is_silent()?;
    Ok("understood".into())
}

/// The handshake fails with a reported cause. `handshake`: the timeout for a silent server.
fn fails(bench: &Bench, handshake: Duration, args: &[&str], says: &[&str]) -> Result<String, String> {
    let Err(failed) = bench.start(args, Setup { handshake, ..Setup::default() }) else {
        return Err("it connects".into());
    };
    expect(says.iter().all(|part| failed.contains(part)), || failed.clone())?;
    Ok(failed)
}

fn crashes(bench: &Bench, args: &[&str]) -> Result<String, String> {
    let mut client = bench.start(args, Setup::default())?;
    let began = Instant::now();
    let ended = client.call(tools::call("crash"));
    let took = began.elapsed();
    expect(took < SOON, || format!("it takes {took:?}"))?;
    let Err(CallError::Closed { sent: Sent::Maybe, why: Closed::Exited(status) }) = &ended else {
        return Err(format!("{ended:?}"));
    };
    expect(status.signal == Some(6), || format!("{status:?}"))?;
    let reads = bench.host != Host::Driver(Adapter::Loop);
    expect(!reads || status.stderr.contains("about to crash"), || format!("{status:?}"))?;
    Ok(format!("after {:.1} s: {}", took.as_secs_f64(), Closed::Exited(status.clone())))
}

fn cannot_start(bench: &Bench, program: &str, says: &[&str]) -> Result<String, String> {
    let began = Instant::now();
    let setup = Setup { handshake: 3 * SOON, ..Setup::default() };
    let Err(failed) = bench.connect(Program::new(program), setup) else {
        return Err("it connects".into());
    };
    expect(says.iter().all(|part| failed.contains(part)), || failed.clone())?;
    // At once, and not at the timeout of the handshake.
    expect(began.elapsed() < SOON, || format!("after {:?}", began.elapsed()))?;
    Ok(failed)
}

fn not_executable(bench: &Bench) -> Result<String, String> {
    let file = std::env::temp_dir().join(format!("mcp-plain-{}", std::process::id()));
    fs::write(&file, "not a program").map_err(|e| e.to_string())?;
    let path = file.to_str().ok_or("the path is not unicode")?;
    let shown = cannot_start(bench, path, &[path, "ermission denied"]);
    fs::remove_file(&file).map_err(|e| e.to_string())?;
    Ok(shown?.replace(path, "/tmp/plain"))
}

pub(super) fn pid(client: &mut super::client::Client) -> Result<String, String> {
    let pid = client.call(tools::call("pid")).map_err(|e| e.to_string())?;
    pid.first_text().map(str::to_string).ok_or_else(|| "it does not say".into())
}

/// Returns whether a program has ended, or ends soon.
pub(super) fn gone(pid: &str) -> Result<(), String> {
    becomes(|| !fs::exists(format!("/proc/{pid}")).unwrap_or(true), || format!("{pid} is still there"))
}

/// Checks that this holds soon.
pub(super) fn becomes(is_so: impl Fn() -> bool, what: impl FnOnce() -> String) -> Result<(), String> {
    soon(&is_so);
    expect(is_so(), what)
}

/// Waits for a while until this holds: a separate thread reports some events.
pub(super) fn soon(is_so: impl Fn() -> bool) {
    let end = Instant::now() + SOON;
    while !is_so() && Instant::now() < end {
        std::thread::park_timeout(Duration::from_millis(2));
    }
}
