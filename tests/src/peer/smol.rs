//! `mcp-smol` as a peer.

use super::{Clock, Drive, Echo, Failure, Report, Style, Task, To};
use mcp_smol::{Client, ClientOptions, Program, Router, connect_driven, serve_http, serve_stdio, tools};
use smol::LocalExecutor;
use std::cell::RefCell;
use std::env;
use std::rc::Rc;
use std::time::Instant;

/// Carries out the task.
///
/// # Errors
/// The error of the task. Also a response that is not an echo.
pub fn run(task: Task) -> Result<(), Failure> {
    match task {
        Task::ServeStdio => smol::block_on(serve_stdio(router()))?,
        Task::ServeHttp(style) => smol::block_on(serve(style))?,
        Task::Drive(drive) => println!("{}", busy(&drive)?),
    }
    Ok(())
}

fn router() -> Router {
    super::router("peer-smol", "async")
}

async fn serve(style: Style) -> Result<(), Failure> {
    let server = serve_http(router().configure(|config| style.configure(config)), "127.0.0.1:0").await?;
    println!("LISTENING {}", server.local_addr().expect("an address"));
    server.wait().await;
    Ok(())
}

/// Keeps the server busy. This thread makes the calls. The driver runs on the global executor,
/// unless it has to run here too.
fn busy(drive: &Drive) -> Result<Report, Failure> {
    let config = ClientOptions::new().set(drive.configure());
    let (client, driver) = match &drive.to {
        To::Program(words) => connect_driven(program(words)?, config)?,
        To::Url { url, .. } => connect_driven(url.as_str(), config)?,
    };
    let executor = LocalExecutor::new();
    let driver = match env::var("RT").as_deref() {
        Ok("current") => executor.spawn(driver),
        _ => smol::spawn(driver),
    };
    smol::block_on(executor.run(async {
        client.ready().await?;
        let clock = Rc::new(RefCell::new(Clock::start(drive)));
        let echo = Echo::of(drive.payload);
        let callers: Vec<_> = (0..drive.inflight)
            .map(|_| executor.spawn(calls(client.clone(), echo.clone(), Rc::clone(&clock))))
            .collect();
        for caller in callers {
            caller.await?;
        }
        // While the server exists, since the system reports its usage.
        let report = Rc::into_inner(clock).ok_or("a caller is left")?.into_inner().report()?;
        client.close().await;
        driver.await;
        Ok(report)
    }))
}

fn program(words: &[String]) -> Result<Program, Failure> {
    let (command, args) = words.split_first().ok_or("no program is named")?;
    Ok(Program::new(command).args(args))
}

async fn calls(client: Client, echo: Echo, clock: Rc<RefCell<Clock>>) -> Result<(), Failure> {
    loop {
        let began = Instant::now();
        let result = client.call(tools::call("echo").arguments(&echo)).await?;
        match result.first_text() {
            Some(text) if text == echo.text => {}
            other => return Err(format!("this is no echo: {other:?}").into()),
        }
        if !clock.borrow_mut().ended(began) {
            return Ok(());
        }
    }
}
