//! `mcp-blocking` as a peer.

use super::{Clock, Drive, Echo, Failure, Report};
use mcp_blocking::{Client, IntoCall, connect_with, tools};
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;
use std::{env, thread};

/// Keeps the server busy.
pub(super) fn busy(drive: &Drive) -> Result<Report, Failure> {
    let client = connect_with(drive.target()?, drive.options()?)?;
    let echo = Echo::of(drive.payload);
    let window = drive.inflight > 1 && env::var("CALLS").is_ok_and(|calls| calls == "window");
    let clock = if window { from_one_thread(&client, drive, &echo)? } else { from_threads(&client, drive, &echo)? };
    // While the server exists, since the system reports its usage.
    let report = clock.report()?;
    client.close();
    Ok(report)
}

fn call(echo: &Echo) -> impl IntoCall<Method = tools::CallTool> + use<> {
    tools::call("echo").arguments(echo)
}

fn from_threads(client: &Client, drive: &Drive, echo: &Echo) -> Result<Clock, Failure> {
    let clock = Mutex::new(Clock::start(drive));
    let caller = || -> Result<(), Failure> {
        loop {
            let began = Instant::now();
            echo.check(&client.call(call(echo))?)?;
            if !clock.lock().unwrap_or_else(PoisonError::into_inner).ended(began) {
                return Ok(());
            }
        }
    };
    thread::scope(|scope| {
        let callers: Vec<_> = (0..drive.inflight).map(|_| scope.spawn(caller)).collect();
        callers.into_iter().try_for_each(|caller| caller.join().map_err(|_| "a caller panicked")?)
    })?;
    Ok(clock.into_inner().unwrap_or_else(PoisonError::into_inner))
}

fn from_one_thread(client: &Client, drive: &Drive, echo: &Echo) -> Result<Clock, Failure> {
    let mut clock = Clock::start(drive);
    let start = || (Instant::now(), client.start(call(echo)));
    let mut calls: VecDeque<_> = (0..drive.inflight).map(|_| start()).collect();
    while let Some((began, pending)) = calls.pop_front() {
        echo.check(&pending.wait()?)?;
        if !clock.ended(began) {
            break;
        }
        calls.push_back(start());
    }
    Ok(clock)
}
