//! The parts of the rows: a run with a stub, and the invariants after a failed call.

use crate::hostile::client::{Client, Place, Seen, Setup, failed};
use crate::hostile::rows::{DRIVERS, expect, row_on, spent};
use crate::hostile::{Bench, Row};
use crate::stub::{Ask, SOON, Step, Stub, good_legacy, good_modern};
use mcp_driver::ConnectError;
use mcp_proto::client::Policy;
use mcp_proto::error::{NegotiationError, WaitReason};
use mcp_proto::exchange::{Closed, Sent};
use mcp_proto::{CallError, ClientConfig, tools};
use rustix::time::ClockId;
use std::error::Error;
use std::time::{Duration, Instant};

/// A row for every driver, with the usual memory.
pub(super) const fn row(name: &'static str, run: fn(&Bench) -> Result<String, String>) -> Row {
    row_on(name, DRIVERS, 32, run)
}

/// The timeout of a call that is never answered.
pub(super) const PATIENCE: Duration = Duration::from_millis(300);

/// The maximum time of a bounded operation: reading a body of the maximum size, unoptimised and
/// beside other tests, takes some seconds.
pub(super) const LONG: Duration = Duration::from_secs(60);

/// The configuration of a client of 2026-07-28.
pub(super) fn modern() -> Setup {
    let change = |config: &mut ClientConfig| config.limits.frame.open_timeout = LONG;
    Setup { policy: Policy::Modern, timeout: Some(LONG), handshake: LONG, change, ..Setup::default() }
}

/// The same, with a change.
pub(super) fn changed(change: fn(&mut ClientConfig)) -> Setup {
    Setup { change, ..modern() }
}

/// The same, with a short timeout of its calls.
pub(super) fn impatient() -> Setup {
    Setup { timeout: Some(PATIENCE), ..modern() }
}

/// The configuration of a client of 2025-11-25.
pub(super) fn legacy() -> Setup {
    Setup { policy: Policy::Legacy, ..modern() }
}

/// A correct server of 2025-11-25, except for the responses of the script.
pub(super) fn old_stub(script: impl Fn(&Ask) -> Option<Vec<Step>> + Send + Sync + 'static) -> Result<Stub, String> {
    Stub::start(move |ask| script(ask).unwrap_or_else(|| good_legacy(ask))).map_err(|e| e.to_string())
}

/// A server of 2026-07-28 with one bad tool, which answers like this.
pub(super) fn bad(steps: Vec<Step>) -> Result<Stub, String> {
    stub(move |ask| (ask.what == "tools/call bad").then(|| steps.clone()))
}

/// A correct server of 2026-07-28, except for the responses of the script.
pub(super) fn stub(script: impl Fn(&Ask) -> Option<Vec<Step>> + Send + Sync + 'static) -> Result<Stub, String> {
    Stub::start(move |ask| script(ask).unwrap_or_else(|| good_modern(ask))).map_err(|e| e.to_string())
}

impl Bench {
    /// A client of the stub after negotiation.
    pub(super) fn visit(&self, stub: &Stub, setup: Setup) -> Result<Client, String> {
        let seen = Seen::default();
        self.open(Place::Url(stub.url()), setup, &seen).map_err(|e| failed(&e, &seen))
    }
}

/// Checks how often the stub got such a request.
pub(super) fn sent(stub: &Stub, what: &str, times: usize) -> Result<(), String> {
    let sent = stub.times(what);
    expect(sent == times, || format!("{what} was sent {sent} times"))
}

/// Checks how many connections the stub has accepted.
pub(super) fn connected(stub: &Stub, count: usize) -> Result<(), String> {
    let connections = stub.connections();
    expect(connections == count, || format!("{connections} connections"))
}

/// Returns the error of a failed client of the stub, and its events.
pub(super) fn refused(bench: &Bench, stub: &Stub, setup: Setup) -> Result<NegotiationError, String> {
    match bench.open(Place::Url(stub.url()), setup, &Seen::default()) {
        Err(ConnectError::Negotiation(why)) => Ok(why),
        Err(other) => Err(format!("{other:?}")),
        Ok(_) => Err("it connects".into()),
    }
}

/// A call with such a response ends as `is_so` requires, without side effects: it was sent once,
/// the connection is closed, and the next call succeeds.
pub(super) fn ends(
    bench: &Bench,
    steps: Vec<Step>,
    setup: Setup,
    is_so: impl Fn(&CallError) -> bool,
) -> Result<String, String> {
    let stub = bad(steps)?;
    let mut client = bench.visit(&stub, setup)?;
    let error = fails(&mut client, "bad", is_so)?;
    good(&mut client)?;
    let_go(&stub, &mut client)?;
    sent(&stub, "tools/call bad", 1)?;
    client.close()?;
    Ok(error)
}

/// Checks that the call of a tool ends as `is_so` requires. Returns the text.
pub(super) fn fails(client: &mut Client, tool: &str, is_so: impl Fn(&CallError) -> bool) -> Result<String, String> {
    match client.call(tools::call(tool)) {
        Err(error) if is_so(&error) => Ok(text(&error)),
        other => Err(format!("the call ends with {other:?}")),
    }
}

/// Checks that a call succeeds as with any good server.
pub(super) fn good(client: &mut Client) -> Result<(), String> {
    answered(client, "good")
}

/// The call of a tool returns its name.
pub(super) fn answered(client: &mut Client, tool: &str) -> Result<(), String> {
    let answer = client.call(tools::call(tool).timeout(LONG));
    let is_so = answer.as_ref().is_ok_and(|answer| answer.first_text() == Some(tool));
    expect(is_so, || format!("the call of {tool} ends with {answer:?}"))
}

/// The client soon closes every endless response. Calls continue meanwhile.
pub(super) fn let_go(stub: &Stub, client: &mut Client) -> Result<(), String> {
    let end = Instant::now() + SOON;
    while !stub.is_done_within(Duration::from_millis(20)) {
        expect(Instant::now() < end, || "an answer is not let go of".into())?;
        // The loop runs only during a call.
        good(client)?;
    }
    Ok(())
}

/// An error and its cause.
pub(super) fn text(error: &CallError) -> String {
    match error.source() {
        Some(source) if !error.to_string().contains(&source.to_string()) => format!("{error}: {source}"),
        _ => error.to_string(),
    }
}

/// Invalid framing, with this reason.
pub(super) fn broken(says: &str) -> impl Fn(&CallError) -> bool {
    move |error| matches!(error, CallError::Closed { sent: Sent::Maybe, why: Closed::Broken(why) } if why.contains(says))
}

/// Nothing arrived in time, or the stream had too much that is no event: the call ends with
/// whichever comes first.
pub(super) fn idle_or_late(error: &CallError) -> bool {
    late(error) || broken("the event stream has no event")(error)
}

/// The connection was lost like this.
pub(super) fn closed(how: Closed) -> impl Fn(&CallError) -> bool {
    move |error| matches!(error, CallError::Closed { sent: Sent::Maybe, why } if *why == how)
}

/// No response arrived in time.
pub(super) fn late(error: &CallError) -> bool {
    *error == CallError::Timeout { after: PATIENCE, sent: Sent::Maybe, awaited: WaitReason::Response }
}

/// The status and the text of the response, as reported to the application.
pub(super) fn http(status: u16, says: &str) -> impl Fn(&CallError) -> bool {
    move |error| matches!(error, CallError::Http(e) if e.status == status) && error.to_string() == says
}

/// Without work, the process is idle, and the stub gets no request.
pub(super) fn idle(stub: &Stub) -> Result<(), String> {
    let (asks, began) = (stub.asks().len(), Instant::now());
    // The work of this thread beside it shows that a processor was free: another busy loop gets
    // about as much.
    let others = || spent(ClockId::ProcessCPUTime).saturating_sub(spent(ClockId::ThreadCPUTime));
    let (before, until) = (others(), spent(ClockId::ThreadCPUTime) + SHARE);
    while spent(ClockId::ThreadCPUTime) < until {
        std::hint::spin_loop();
    }
    let spun = others().saturating_sub(before);
    expect(spun < SHARE / 4, || format!("it took {spun:?} of the processor while this thread took {SHARE:?}"))?;
    std::thread::park_timeout(WATCH.saturating_sub(began.elapsed()));
    let more = stub.asks().len() - asks;
    expect(more == 0, || format!("{more} more requests"))
}

/// The processor time to compare an idle process with.
const SHARE: Duration = Duration::from_millis(100);

/// The duration of the check for idleness.
const WATCH: Duration = Duration::from_millis(500);
