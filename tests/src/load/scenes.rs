//! The scenes of load on a server.

use super::child::{Child, Look};
use super::raw::{self, Conn};
use super::{Scale, Scene, Shown, fair, one, streams};
use serde_json::json;
use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

/// All scenes.
pub const SCENES: &[Scene] = &[
    plain("half-open connections", 96, half_open),
    plain("resting connections", 64, resting),
    plain("resting sessions", 64, streams::sessions),
    plain("streams of sessions", 64, streams::of_sessions),
    plain("subscriptions", 64, streams::subscriptions),
    plain("callers beside slow readers", 384, callers),
    plain("connections without a pause", 64, fair::connections),
    plain("calls without a pause", 64, fair::calls),
    shared("one client: requests", 384, one::requests),
    shared("one client: bytes of requests", 512, one::bytes),
    shared("one client: exchanges", 384, one::exchanges),
    shared("one client: streams", 384, one::streams),
    shared("one client: sessions", 256, one::sessions),
    shared("one client: what clients say", 256, one::client_data),
    shared("one client: histories", 512, one::histories),
    shared("one client: questions", 256, one::questions),
    shared("one client: junk states", 512, one::states),
    shared("one client: notifications", 256, one::notifications),
    shared("one client: half bodies", 1024, one::held),
];

type Run = fn(&mut Child, &Scale) -> Result<Shown, String>;

const fn plain(name: &'static str, peak: u64, run: Run) -> Scene {
    Scene { name, peak, principals: false, run }
}

/// About principals.
const fn shared(name: &'static str, peak: u64, run: Run) -> Scene {
    Scene { name, peak, principals: true, run }
}

/// Maximum delay of a server's own action after its timeout.
pub(super) const MARGIN: Duration = Duration::from_secs(10);

/// What connections begin and never finish: nothing, half a head, half a body.
const BEGUN: [&str; 3] = [
    "",
    "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-",
    "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
     Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\n\
     Mcp-Name: echo\r\nContent-Length: 1000\r\n\r\n{\"jsonrpc\":",
];

/// The characters of the answers that are too large for a socket whose other side reads nothing.
const BIG: usize = 4 << 20;

/// Answers that are asked for at once by a reader that never reads.
const PIPELINED: u64 = 4;

/// Connections that never complete a request: each is closed at its timeout, and others are served
/// meanwhile.
fn half_open(child: &mut Child, scale: &Scale) -> Result<Shown, String> {
    let before = at_rest(child)?;
    let began = Instant::now();
    let mut open = Vec::with_capacity(scale.half_open);
    for begun in BEGUN.iter().cycle().take(scale.half_open) {
        let mut conn = Conn::open(child.address)?;
        conn.send(begun)?;
        open.push(conn);
        // The queue of connections to accept has its own limit, at which the system makes them
        // wait.
        if open.len() % 50 == 0 {
            child.until("are these open", MARGIN, |look| look.connections == open.len())?;
        }
    }
    let during = child.until("are all of them open", MARGIN, |look| look.connections == scale.half_open)?;
    if began.elapsed() >= scale.patience {
        return Err("it took longer to open them than the server has patience".into());
    }
    let Tally { answered, slowest, .. } = call(child, scale, 1)?;
    let (mut told, mut closed) = (0, 0);
    for mut conn in open {
        match conn.until_closed()? {
            rest if rest.is_empty() => closed += 1,
            rest if rest.starts_with(b"HTTP/1.1 408 ") => told += 1,
            rest => return Err(format!("a connection gets {}", String::from_utf8_lossy(&rest))),
        }
    }
    let after = child.until("are they gone", MARGIN, |look| look.connections == 0)?;
    let outcome = format!(
        "{told} are told 408, {closed} closed; {answered} calls beside them, the slowest in {}",
        millis(slowest)
    );
    Ok(shown(scale.half_open, before, during, after, outcome))
}

/// Connections that have asked once, and are kept.
fn resting(child: &mut Child, scale: &Scale) -> Result<Shown, String> {
    let before = at_rest(child)?;
    let mut open = Vec::with_capacity(scale.resting);
    for n in 0..scale.resting {
        let mut conn = Conn::open(child.address)?;
        echo(&mut conn, n as u64, "rest")?;
        open.push(conn);
    }
    let during = child.until("are all of them open", MARGIN, |look| look.connections == scale.resting)?;
    // Each still works.
    for (n, conn) in open.iter_mut().enumerate() {
        echo(conn, n as u64, "again")?;
    }
    let errors = open.into_iter().filter_map(|conn| conn.finish().err()).count();
    let after = child.until("are they gone", MARGIN, |look| look.connections == 0)?;
    let twice = 2 * scale.resting as u64;
    if errors > 0 || after.echoed - before.echoed != twice {
        return Err(format!("{errors} errors, {} calls of {twice}", after.echoed - before.echoed));
    }
    Ok(shown(scale.resting, before, during, after, format!("{twice} calls, 0 errors")))
}

/// Callers beside readers that never read: such readers delay only themselves, and are closed at
/// their timeout.
fn callers(child: &mut Child, scale: &Scale) -> Result<Shown, String> {
    let before = at_rest(child)?;
    let mut readers = Vec::with_capacity(scale.readers);
    for n in 0..scale.readers {
        let mut conn = Conn::open(child.address)?;
        rustix::net::sockopt::set_socket_recv_buffer_size(conn.stream(), 4096).map_err(|e| e.to_string())?;
        match n % 2 {
            0 => (0..PIPELINED).try_for_each(|id| conn.send(&raw::call(id, "big", json!({ "size": BIG }))))?,
            _ => conn.send(&raw::watched(1, "flood", json!({ "size": BIG })))?,
        }
        readers.push(conn);
    }
    let asked = before.requests + scale.readers as u64;
    child.until("have all readers asked", MARGIN, |look| look.requests >= asked)?;
    let Tally { answered, slowest, median } = call(child, scale, scale.calls)?;
    let during = child.look()?;
    let beside = during.connections;
    let after = child.until("are the readers cut off", scale.patience + MARGIN, |look| look.connections == 0)?;
    // The next pipelined request is not begun before the answer to the one before it is written.
    if after.requests != asked + answered {
        return Err(format!("{} requests were handed over, not {}", after.requests, asked + answered));
    }
    // Until here, and never read: through so small a window that would take minutes.
    drop(readers);
    let outcome = format!(
        "{answered} calls, 0 errors, half of them in {}, the slowest in {}; {beside} of {} readers then still there, and all cut off later",
        millis(median),
        millis(slowest),
        scale.readers
    );
    let mut shown = shown(scale.callers, before, after, after, outcome);
    (shown.heap, shown.resident) = (None, None);
    Ok(shown)
}

/// The server after a first call, when whatever is made once has been made.
pub(super) fn at_rest(child: &mut Child) -> Result<Look, String> {
    let mut conn = Conn::open(child.address)?;
    echo(&mut conn, 1, "first")?;
    conn.finish()?;
    child.until("is the first caller gone", MARGIN, |look| look.connections == 0)
}

pub(super) fn shown(count: usize, before: Look, during: Look, after: Look, outcome: String) -> Shown {
    let each = |now: i64, before: i64| Some((now - before) / count.max(1) as i64);
    Shown {
        count,
        heap: each(during.heap, before.heap),
        resident: each(during.resident, before.resident),
        left: each(after.heap, before.heap),
        outcome,
    }
}

pub(super) fn millis(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1e3)
}

/// What became of the calls of all callers.
struct Tally {
    answered: u64,
    slowest: Duration,
    median: Duration,
}

/// Each caller makes this number of calls. Each must be answered once, with its own text, having
/// run once.
fn call(child: &mut Child, scale: &Scale, calls: usize) -> Result<Tally, String> {
    let before = child.look()?.echoed;
    let address = child.address;
    let took: Vec<Result<Vec<Duration>, String>> = thread::scope(|scope| {
        let callers: Vec<_> =
            (0..scale.callers).map(|caller| scope.spawn(move || caller_of(address, caller, calls))).collect();
        let joined = callers.into_iter().map(|caller| caller.join().unwrap_or_else(|_| Err("it panicked".into())));
        joined.collect()
    });
    let wrong: Vec<&String> = took.iter().filter_map(|took| took.as_ref().err()).collect();
    if let Some(first) = wrong.first() {
        return Err(format!("{} of {} callers failed, one since: {first}", wrong.len(), scale.callers));
    }
    let mut took: Vec<Duration> = took.into_iter().flatten().flatten().collect();
    took.sort_unstable();
    let (answered, ran) = (took.len() as u64, child.look()?.echoed - before);
    if ran != answered || took.len() != scale.callers * calls {
        return Err(format!("of {} calls {answered} were answered, and {ran} ran", scale.callers * calls));
    }
    let median = took.get(took.len() / 2).copied().unwrap_or_default();
    Ok(Tally { answered, slowest: took.last().copied().unwrap_or_default(), median })
}

/// One caller: every other one makes a connection for each call. How long each call took.
fn caller_of(address: SocketAddr, caller: usize, calls: usize) -> Result<Vec<Duration>, String> {
    let mut took = Vec::with_capacity(calls);
    let mut kept = None;
    for n in 0..calls {
        let began = Instant::now();
        let mut conn = match kept.take() {
            Some(conn) => conn,
            None => Conn::open(address)?,
        };
        echo(&mut conn, (caller * calls + n) as u64, &format!("call {n} of caller {caller}"))?;
        took.push(began.elapsed());
        match caller % 2 {
            0 => kept = Some(conn),
            _ => nothing_more(conn)?,
        }
    }
    kept.map_or(Ok(()), nothing_more)?;
    Ok(took)
}

/// Makes a call, and looks whether the answer is its own.
pub(super) fn echo(conn: &mut Conn, id: u64, text: &str) -> Result<(), String> {
    let (head, answer) = conn.ask(&raw::call(id, "echo", json!({ "text": text })))?;
    let said = answer.pointer("/result/content/0/text").and_then(|text| text.as_str());
    match head.status {
        200 if answer["id"] == id && said == Some(text) => Ok(()),
        status => Err(format!("call {id} with {text:?} is answered {status}: {answer}")),
    }
}

/// A second answer to anything would be seen here.
fn nothing_more(conn: Conn) -> Result<(), String> {
    match conn.finish()? {
        rest if rest.is_empty() => Ok(()),
        rest => Err(format!("after the last answer comes {}", String::from_utf8_lossy(&rest))),
    }
}
