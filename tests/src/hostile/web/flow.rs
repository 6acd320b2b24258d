//! What no check of an engine sees: whether a driver reports what it has written, and whether it
//! closes a connection that is aborted.

use super::parts::{answered, changed, good, let_go, modern, row, sent, stub};
use crate::hostile::rows::expect;
use crate::hostile::{Bench, Row};
use crate::stub::{Step, good_modern};
use mcp_proto::{CallError, tools};
use std::time::Duration;

pub(super) const ROWS: &[Row] =
    &[row("takes longer to answer than to read", takes_longer), row("a call is cancelled while it waits", cancelled)];

/// A request whose bytes are not reported as written counts as one that the server does not read.
fn takes_longer(bench: &Bench) -> Result<String, String> {
    let stub = stub(|ask| {
        let late = || [Step::Wait(Duration::from_secs(4))].into_iter().chain(good_modern(ask)).collect();
        (ask.what == "tools/call late").then(late)
    })?;
    let stall = |config: &mut mcp_proto::ClientConfig| config.limits.frame.write_stall = Duration::from_secs(2);
    let mut client = bench.visit(&stub, changed(stall))?;
    answered(&mut client, "late")?;
    good(&mut client)?;
    client.close()?;
    Ok("answered after 4 s, with a limit of 2 s for writes".into())
}

/// The client ends the connection of the call, and no other.
fn cancelled(bench: &Bench) -> Result<String, String> {
    let stub = stub(|ask| (ask.what == "tools/call bad").then(|| vec![Step::Hold]))?;
    let mut client = bench.visit(&stub, modern())?;
    good(&mut client)?;
    let is_sent = || {
        stub.was_asked("tools/call bad", 1);
    };
    let ended = client.call_and_cancel(tools::call("bad"), is_sent);
    expect(matches!(ended, Err(CallError::Cancelled { .. })), || format!("the call ends with {ended:?}"))?;
    let_go(&stub, &mut client)?;
    good(&mut client)?;
    sent(&stub, "tools/call bad", 1)?;
    client.close()?;
    Ok("cancelled; its connection is closed, and calls are answered".into())
}
