//! One greedy client beside a thousand others: it takes its maximum share of a limit, and keeps
//! asking for more. Each call of each other client is answered, and takes hardly longer than
//! without it. Every client is a principal.

use super::child::Child;
use super::fair::{self, quantile};
use super::raw::{self, Conn, by};
use super::scenes::{MARGIN, at_rest, echo, millis};
use super::{Scale, Shown};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// The maximum ratio of the 99th percentile beside the greedy client to the one without it.
const MOST: f64 = 10.0;

/// The principal of the one client.
const ONE: &str = "one";

/// The number of measurements. The best one counts, since other work on a core delays all callers.
const ROUNDS: usize = 3;

/// The resources of the greedy client, held until this is dropped.
#[derive(Default)]
struct Taken {
    /// Its description, for people.
    what: String,
    conns: Vec<Conn>,
    /// Its final result.
    last: Option<String>,
    /// The thread that runs while this value exists.
    goes_on: Option<GoesOn>,
}

/// Requests that are sent one after the other, without a pause.
struct GoesOn {
    stop: Arc<AtomicBool>,
    sent: Arc<AtomicU64>,
    thread: JoinHandle<Result<(), String>>,
}

impl GoesOn {
    fn start(address: SocketAddr, requests: Vec<String>) -> Result<Self, String> {
        let (stop, sent) = (Arc::<AtomicBool>::default(), Arc::<AtomicU64>::default());
        let (stopped, count) = (stop.clone(), sent.clone());
        let mut conn = Conn::open(address)?;
        let thread = thread::spawn(move || {
            for request in requests.iter().cycle() {
                if stopped.load(Ordering::Relaxed) {
                    break;
                }
                conn.ask(request)?;
                count.fetch_add(1, Ordering::Relaxed);
            }
            Ok(())
        });
        Ok(Self { stop, sent, thread })
    }

    /// How many were answered.
    fn end(self) -> Result<u64, String> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().map_err(|_| "it panicked")??;
        Ok(self.sent.load(Ordering::Relaxed))
    }
}

/// Running requests: a share of them, and one that is refused.
pub(super) fn requests(child: &mut Child, scale: &Scale) -> Result<Shown, String> {
    beside(child, scale, |child| {
        let taken = until_refused(child, &by(ONE, &raw::call(1, "wait", json!({}))))?;
        Ok(Taken { what: format!("{} requests that run", taken.len()), conns: taken, ..Taken::default() })
    })
}

/// Requests that run and hold much.
pub(super) fn bytes(child: &mut Child, scale: &Scale) -> Result<Shown, String> {
    beside(child, scale, |child| {
        let text = "x".repeat(3 << 20);
        let taken = until_refused(child, &by(ONE, &raw::call(1, "wait", json!({ "text": text }))))?;
        Ok(Taken { what: format!("{} requests of 3 MiB that run", taken.len()), conns: taken, ..Taken::default() })
    })
}

/// Admitted requests without their bodies.
pub(super) fn exchanges(child: &mut Child, scale: &Scale) -> Result<Shown, String> {
    beside(child, scale, |child| {
        let request = by(ONE, &raw::call(1, "echo", json!({ "text": "never" })));
        let head = request.split_once("\r\n\r\n").map(|(head, _)| format!("{head}\r\n\r\n")).ok_or("it has no head")?;
        let head = head.replace("Content-Length", "Expect: 100-continue\r\nContent-Length");
        let (mut conns, mut refused) = (Vec::new(), false);
        while !refused {
            let mut conn = Conn::open(child.address)?;
            conn.send(&head)?;
            match conn.head()?.status {
                100 => conns.push(conn),
                503 => refused = true,
                status => return Err(format!("it gets {status}")),
            }
        }
        Ok(Taken { what: format!("{} requests without a body", conns.len()), conns, ..Taken::default() })
    })
}

/// Subscriptions.
pub(super) fn streams(child: &mut Child, scale: &Scale) -> Result<Shown, String> {
    beside(child, scale, |child| {
        let conns = until_refused(child, &by(ONE, &raw::listen(1)))?;
        Ok(Taken { what: format!("{} subscriptions", conns.len()), conns, ..Taken::default() })
    })
}

/// Sessions, each with a second message, so that it lasts.
pub(super) fn sessions(child: &mut Child, scale: &Scale) -> Result<Shown, String> {
    beside(child, scale, |child| {
        let mut conn = Conn::open(child.address)?;
        let mut sessions = 0;
        while let Some(session) = begin_session(&mut conn, &json!({}))? {
            conn.ask(&by(ONE, &raw::initialized(&session)))?;
            sessions += 1;
        }
        let more = GoesOn::start(child.address, vec![by(ONE, &raw::initialize(1))])?;
        Ok(Taken { what: format!("{sessions} sessions"), conns: vec![conn], goes_on: Some(more), ..Taken::default() })
    })
}

/// The capabilities and the name of a client.
pub(super) fn client_data(child: &mut Child, scale: &Scale) -> Result<Shown, String> {
    beside(child, scale, |child| {
        let much = json!({ "experimental": { "x": "x".repeat(15 << 10) } });
        let mut conn = Conn::open(child.address)?;
        let mut sessions = 0;
        while begin_session(&mut conn, &much)?.is_some() {
            sessions += 1;
        }
        Ok(Taken {
            what: format!("{sessions} sessions that say 15 KiB of themselves"),
            conns: vec![conn],
            ..Taken::default()
        })
    })
}

/// Stored events of a client that does not resume its streams.
pub(super) fn histories(child: &mut Child, scale: &Scale) -> Result<Shown, String> {
    beside(child, scale, |child| {
        let mut conn = Conn::open(child.address)?;
        let mut sessions = Vec::new();
        for _ in 0..8 {
            let session = begin_session(&mut conn, &json!({}))?.ok_or("it has no session")?;
            sessions.push(by(ONE, &raw::call_in(&session, 2, "notes", json!({ "count": 900, "size": 10_000 }))));
        }
        for request in &sessions {
            let mut conn = Conn::open(child.address)?;
            conn.send(request)?;
            // Messages after its disconnect are stored.
            conn.head()?;
        }
        let more = GoesOn::start(child.address, vec![by(ONE, &raw::call(1, "echo", json!({ "text": "and again" })))])?;
        Ok(Taken { what: "8 histories of 9 MB".into(), conns: vec![conn], goes_on: Some(more), ..Taken::default() })
    })
}

/// Requests that ask a client which has gone.
pub(super) fn questions(child: &mut Child, scale: &Scale) -> Result<Shown, String> {
    beside(child, scale, |child| {
        let mut conn = Conn::open(child.address)?;
        let elicits = json!({ "elicitation": {} });
        let session = begin_session(&mut conn, &elicits)?.ok_or("it has no session")?;
        for id in 0..256 {
            let mut conn = Conn::open(child.address)?;
            conn.send(&by(ONE, &raw::call_in(&session, id, "ask", json!({}))))?;
            conn.head()?;
        }
        let running = child.look()?.running;
        Ok(Taken {
            what: format!("{running} questions to a client that has gone"),
            conns: vec![conn],
            last: Some(by(ONE, &raw::delete(&session))),
            ..Taken::default()
        })
    })
}

/// States that were never sealed, beside as much as is verified with one, and beside more.
pub(super) fn states(child: &mut Child, scale: &Scale) -> Result<Shown, String> {
    beside(child, scale, |child| {
        let junk = |size: usize| {
            let nested =
                format!("{}{}{}", "[".repeat(100), r#"{"a":1},"#.repeat(size / 8), "1".to_string() + &"]".repeat(100));
            let params = json!({ "name": "echo", "arguments": { "x": "nested" }, "requestState": JUNK });
            by(ONE, &raw::modern_with(1, "tools/call", Some("echo"), params, ("\"nested\"", &nested)))
        };
        let more = GoesOn::start(child.address, vec![junk(250 << 10), junk(4_000_000)])?;
        Ok(Taken { what: "junk for states".into(), goes_on: Some(more), ..Taken::default() })
    })
}

/// The form of a sealed state, and nothing in it.
const JUNK: &str = "AwAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

/// Notifications that the application takes one by one.
pub(super) fn notifications(child: &mut Child, scale: &Scale) -> Result<Shown, String> {
    beside(child, scale, |child| {
        let note = json!({ "text": "x".repeat(1000) });
        let more = GoesOn::start(child.address, vec![by(ONE, &raw::notification("acme/note", note))])?;
        Ok(Taken { what: "notifications".into(), goes_on: Some(more), ..Taken::default() })
    })
}

/// Bodies that are half there: as much as all connections may hold.
pub(super) fn held(child: &mut Child, scale: &Scale) -> Result<Shown, String> {
    beside(child, scale, |child| {
        let request = by(ONE, &raw::call(1, "echo", json!({ "text": "x".repeat(4_000_000) })));
        let mut conns = Vec::new();
        for _ in 0..80 {
            let mut conn = Conn::open(child.address)?;
            // A connection above the limit gets an error and is closed.
            let _ = conn.send(&request[..request.len() - 1]);
            conns.push(conn);
        }
        Ok(Taken { what: "80 bodies of 4 MB that lack a byte".into(), conns, ..Taken::default() })
    })
}

/// Sends requests, each on a new connection, until one is refused. The accepted ones are answered
/// later or not at all.
fn until_refused(child: &mut Child, request: &str) -> Result<Vec<Conn>, String> {
    let mut conns = Vec::new();
    while conns.len() < 2000 {
        let before = child.look()?.requests;
        let mut conn = Conn::open(child.address)?;
        conn.send(request)?;
        let end = Instant::now() + MARGIN;
        while !conn.has_input()? && child.look()?.requests == before {
            if Instant::now() >= end {
                return Err("a request is neither run nor answered".into());
            }
        }
        if conn.has_input()? {
            match conn.head()?.status {
                200 => {}
                503 => return Ok(conns),
                status => return Err(format!("it gets {status}")),
            }
        }
        conns.push(conn);
    }
    Err("it is never refused".into())
}

/// A session of the one client; `None` if it is refused.
fn begin_session(conn: &mut Conn, capabilities: &Value) -> Result<Option<String>, String> {
    let (head, _) = conn.ask(&by(ONE, &raw::initialize_with(1, capabilities)))?;
    match head.status {
        200 => Ok(head.field("mcp-session-id").map(str::to_string)),
        503 => Ok(None),
        status => Err(format!("a session is answered {status}")),
    }
}

/// Measures the calls of the others without the one client and beside it.
fn beside(
    child: &mut Child,
    scale: &Scale,
    take: impl FnOnce(&mut Child) -> Result<Taken, String>,
) -> Result<Shown, String> {
    let before = at_rest(child)?;
    let alone = measure(child, scale)?;
    let Taken { what, conns, last, goes_on } = take(child)?;
    let during = measure(child, scale)?;
    let sent = match goes_on {
        Some(goes_on) => format!(", {} requests meanwhile", goes_on.end()?),
        None => String::new(),
    };
    if let Some(last) = last {
        Conn::open(child.address)?.ask(&last)?;
    }
    drop(conns);
    let after = child.until("is everybody gone", scale.patience + MARGIN, |look| look.connections == 0)?;
    let ratio = during.as_secs_f64() / alone.as_secs_f64();
    let outcome =
        format!("{what}{sent}: p99 {} beside it, {} without, {ratio:.1} times", millis(during), millis(alone));
    if scale.timed && ratio > MOST {
        return Err(format!("it costs the others too much: {outcome}"));
    }
    let called = (2 * ROUNDS * scale.others * scale.calls_of_others) as u64;
    if after.echoed - before.echoed < called {
        return Err(format!("{} calls ran of {called}: {outcome}", after.echoed - before.echoed));
    }
    Ok(Shown { count: scale.others, outcome, ..Shown::default() })
}

/// The time in which 99 of 100 calls of the others are answered.
fn measure(child: &mut Child, scale: &Scale) -> Result<Duration, String> {
    let mut best = Duration::MAX;
    for _ in 0..ROUNDS {
        let mut callers = Vec::with_capacity(scale.others);
        for n in 0..scale.others {
            callers.push(fair::Caller::open_as(child, &format!("other-{n}"))?);
            // The queue of connections to accept has its own limit. An answered connection was
            // behind these.
            if callers.len() % 50 == 0 {
                echo(&mut Conn::open(child.address)?, 1, "accepted")?;
            }
        }
        let mut waits = fair::keep_asking(callers, scale.others * scale.calls_of_others)?;
        waits.sort_unstable_by_key(|wait| wait.time);
        best = best.min(quantile(&waits, 99).time);
    }
    Ok(best)
}
