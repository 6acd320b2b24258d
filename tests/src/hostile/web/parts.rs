//! What the rows are made of: a visit to a stub, and what must be so after a call that went wrong.

use crate::hostile::client::{Client, Place, Seen, Setup, failed};
use crate::hostile::rows::{expect, spent};
use crate::hostile::{Bench, Host};
use crate::orphans::Adapter;
use crate::stub::{Ask, SOON, Step, Stub, good_legacy, good_modern};
use mcp_proto::client::Policy;
use mcp_proto::driver::ConnectError;
use mcp_proto::error::{Awaited, NegotiationError};
use mcp_proto::exchange::{Closed, Sent};
use mcp_proto::{CallError, ClientConfig, tools};
use rustix::time::ClockId;
use std::error::Error;
use std::time::{Duration, Instant};

pub(super) const DRIVERS: &[Host] =
    &[Host::Driver(Adapter::Blocking), Host::Driver(Adapter::Smol), Host::Driver(Adapter::Loop)];

/// How long a call waits that is never answered.
pub(super) const PATIENCE: Duration = Duration::from_millis(300);

/// How long what ends by itself may take: a body of the largest size is read, unoptimised and beside other tests, in some seconds.
pub(super) const LONG: Duration = Duration::from_secs(60);

/// How a client of 2026-07-28 is set up.
pub(super) fn modern() -> Setup {
    let change = |config: &mut ClientConfig| config.limits.frame.open_timeout = LONG;
    Setup { policy: Policy::Modern, timeout: Some(LONG), handshake: LONG, change, ..Setup::default() }
}

/// The same, with something changed.
pub(super) fn changed(change: fn(&mut ClientConfig)) -> Setup {
    Setup { change, ..modern() }
}

/// The same, and its calls give up soon.
pub(super) fn impatient() -> Setup {
    Setup { timeout: Some(PATIENCE), ..modern() }
}

/// How a client of 2025-11-25 is set up.
pub(super) fn legacy() -> Setup {
    Setup { policy: Policy::Legacy, ..modern() }
}

/// A server of 2025-11-25 that does as it should but for what the script says.
pub(super) fn old_stub(script: impl Fn(&Ask) -> Option<Vec<Step>> + Send + Sync + 'static) -> Result<Stub, String> {
    Stub::start(move |ask| script(ask).unwrap_or_else(|| good_legacy(ask))).map_err(|e| e.to_string())
}

/// A server of 2026-07-28 of which one tool is bad: it answers like this.
pub(super) fn bad(steps: Vec<Step>) -> Result<Stub, String> {
    stub(move |ask| (ask.what == "tools/call bad").then(|| steps.clone()))
}

/// A server of 2026-07-28 that does as it should but for what the script says.
pub(super) fn stub(script: impl Fn(&Ask) -> Option<Vec<Step>> + Send + Sync + 'static) -> Result<Stub, String> {
    Stub::start(move |ask| script(ask).unwrap_or_else(|| good_modern(ask))).map_err(|e| e.to_string())
}

impl Bench {
    /// A client of the stub that has agreed with it.
    pub(super) fn visit(&self, stub: &Stub, setup: Setup) -> Result<Client, String> {
        let seen = Seen::default();
        self.open(Place::Url(stub.url()), setup, &seen).map_err(|e| failed(&e, &seen))
    }
}

/// Says why no client of the stub comes about, and what was told of it.
pub(super) fn refused(bench: &Bench, stub: &Stub, setup: Setup) -> Result<NegotiationError, String> {
    match bench.open(Place::Url(stub.url()), setup, &Seen::default()) {
        Err(ConnectError::Negotiation(why)) => Ok(why),
        Err(other) => Err(format!("{other:?}")),
        Ok(_) => Err("it connects".into()),
    }
}

/// A call that is answered like this ends as `is_so` has it, and nothing else suffers: it was sent once, the connection is let go of, and
/// the next call is answered.
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
    let asked = stub.times("tools/call bad");
    expect(asked == 1, || format!("the call was sent {asked} times"))?;
    client.close()?;
    Ok(error)
}

/// The call of a tool ends as `is_so` has it; gives the text.
pub(super) fn fails(client: &mut Client, tool: &str, is_so: impl Fn(&CallError) -> bool) -> Result<String, String> {
    match client.call(tools::call(tool)) {
        Err(error) if is_so(&error) => Ok(text(&error)),
        other => Err(format!("the call ends with {other:?}")),
    }
}

/// A call is answered as by any good server.
pub(super) fn good(client: &mut Client) -> Result<(), String> {
    answered(client, "good")
}

/// The call of a tool is answered with its name.
pub(super) fn answered(client: &mut Client, tool: &str) -> Result<(), String> {
    let answer = client.call(tools::call(tool).timeout(LONG));
    let is_so = answer.as_ref().is_ok_and(|answer| answer.first_text() == Some(tool));
    expect(is_so, || format!("the call of {tool} ends with {answer:?}"))
}

/// The client soon lets go of every answer that does not end. Calls go on meanwhile.
pub(super) fn let_go(stub: &Stub, client: &mut Client) -> Result<(), String> {
    let end = Instant::now() + SOON;
    while !stub.is_done_within(Duration::from_millis(20)) {
        expect(Instant::now() < end, || "an answer is not let go of".into())?;
        // The loop turns only in a call.
        good(client)?;
    }
    Ok(())
}

/// An error and what it comes from.
pub(super) fn text(error: &CallError) -> String {
    match error.source() {
        Some(source) if !error.to_string().contains(&source.to_string()) => format!("{error}: {source}"),
        _ => error.to_string(),
    }
}

/// The framing was broken, in a way that says this.
pub(super) fn broken(says: &str) -> impl Fn(&CallError) -> bool {
    move |error| matches!(error, CallError::Closed { sent: Sent::Maybe, why: Closed::Broken(why) } if why.contains(says))
}

/// The connection was lost like this.
pub(super) fn closed(how: Closed) -> impl Fn(&CallError) -> bool {
    move |error| matches!(error, CallError::Closed { sent: Sent::Maybe, why } if *why == how)
}

/// No answer came in time.
pub(super) fn late(error: &CallError) -> bool {
    *error == CallError::Timeout { after: PATIENCE, sent: Sent::Maybe, awaited: Awaited::Response }
}

/// The status and the text of the answer, as the application is told it.
pub(super) fn http(status: u16, says: &str) -> impl Fn(&CallError) -> bool {
    move |error| matches!(error, CallError::Http(e) if e.status == status) && error.to_string() == says
}

/// With nothing to do, the process does nothing, and the stub is asked nothing.
pub(super) fn idle(stub: &Stub) -> Result<(), String> {
    let (asks, began) = (stub.asks().len(), Instant::now());
    // What this thread computes beside it shows that there was a processor to be had: whatever else spins gets about as much.
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

/// The processor time against which that of a process with nothing to do is held.
const SHARE: Duration = Duration::from_millis(100);

/// How long it is watched whether nothing happens.
const WATCH: Duration = Duration::from_millis(500);
