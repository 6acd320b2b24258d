//! `mcp-smol` as a peer.

use super::{Clock, Drive, Echo, Failure, Report};
use mcp_smol::{Client, connect_driven, tools};
use smol::LocalExecutor;
use std::cell::RefCell;
use std::env;
use std::rc::Rc;
use std::time::Instant;

/// Keeps the server busy. This thread makes the calls. The driver runs on the global executor,
/// unless it has to run here too.
pub(super) fn busy(drive: &Drive) -> Result<Report, Failure> {
    let (client, driver) = connect_driven(drive.target()?, drive.options()?)?;
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

async fn calls(client: Client, echo: Echo, clock: Rc<RefCell<Clock>>) -> Result<(), Failure> {
    loop {
        let began = Instant::now();
        echo.check(&client.call(tools::call("echo").arguments(&echo)).await?)?;
        if !clock.borrow_mut().ended(began) {
            return Ok(());
        }
    }
}
