//! `mcp-blocking` as a peer.

use super::{Clock, Drive, Echo, Failure, Report, Style, Task, To};
use mcp_blocking::{Client, ClientOptions, IntoCall, Program, Router, connect_with, serve_http, serve_stdio, tools};
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;
use std::{env, thread};

/// Carries out the task.
///
/// # Errors
/// The error of the task. Also a response that is not an echo.
pub fn run(task: Task) -> Result<(), Failure> {
    match task {
        Task::ServeStdio => serve_stdio(router())?,
        Task::ServeHttp(style) => serve(style)?,
        Task::Drive(drive) => println!("{}", busy(&drive)?),
    }
    Ok(())
}

fn router() -> Router {
    super::router("peer-blocking", "pool")
}

fn serve(style: Style) -> Result<(), Failure> {
    let server = serve_http(router().configure(|config| style.configure(config)), "127.0.0.1:0")?;
    println!("LISTENING {}", server.local_addr().expect("an address"));
    server.wait();
    Ok(())
}

/// Keeps the server busy.
fn busy(drive: &Drive) -> Result<Report, Failure> {
    let config = ClientOptions::new().set(drive.configure());
    let client = match &drive.to {
        To::Program(words) => connect_with(program(words)?, config)?,
        To::Url { url, .. } => connect_with(url.as_str(), config)?,
    };
    let echo = Echo::of(drive.payload);
    let window = drive.inflight > 1 && env::var("CALLS").is_ok_and(|calls| calls == "window");
    let clock = if window { from_one_thread(&client, drive, &echo)? } else { from_threads(&client, drive, &echo)? };
    // While the server exists, since the system reports its usage.
    let report = clock.report()?;
    client.close();
    Ok(report)
}

fn program(words: &[String]) -> Result<Program, Failure> {
    let (command, args) = words.split_first().ok_or("no program is named")?;
    Ok(Program::new(command).args(args))
}

fn call(echo: &Echo) -> impl IntoCall<Method = tools::CallTool> + use<> {
    tools::call("echo").arguments(echo)
}

fn from_threads(client: &Client, drive: &Drive, echo: &Echo) -> Result<Clock, Failure> {
    let clock = Mutex::new(Clock::start(drive));
    let caller = || -> Result<(), Failure> {
        loop {
            let began = Instant::now();
            check(echo, &client.call(call(echo))?)?;
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
        check(echo, &pending.wait()?)?;
        if !clock.ended(began) {
            break;
        }
        calls.push_back(start());
    }
    Ok(clock)
}

fn check(echo: &Echo, result: &mcp_blocking::CallToolResult) -> Result<(), Failure> {
    match result.first_text() {
        Some(text) if text == echo.text => Ok(()),
        other => Err(format!("this is no echo: {other:?}").into()),
    }
}
