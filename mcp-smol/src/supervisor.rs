//! Several servers, kept connected.

use crate::clock::{Alarm, delay};
use crate::driver::Driver;
use crate::spawned::SharedDriver;
use mcp_driver::{self, Client, ConnectError, Delay, DriverHandle, Events, Spawn};
use mcp_supervisor::front::{Launch, SupervisorDriver, SupervisorOptions};
use smol::future::Future;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// Keeps several servers connected: see [`mcp_supervisor::front::Supervisor`]. [`supervise`]
/// returns one.
///
/// Dropping the last clone waits for the clients to end: this blocks until their programs have
/// exited, or were killed. [`close`](mcp_supervisor::front::Supervisor::close) does not block.
pub type Supervisor = mcp_supervisor::front::Supervisor<OnExecutor>;

/// Creates a supervisor without servers, whose clients run on smol's global executor.
///
/// ```
/// use mcp_supervisor::ServerSpec;
/// use mcp_smol::{ClientOptions, Program, SupervisorOptions, supervise};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # smol::block_on(async {
/// let options = SupervisorOptions::new()
///     .clients(|server| {
///         let server = server.to_owned();
///         ClientOptions::new().on_event(move |event| eprintln!("{server}: {event:?}"))
///     })
///     .on_event(|event| eprintln!("{event:?}"));
/// let supervisor = supervise(options)?;
/// let program = mcp_proto::ClientConfig::program(Program::new("no-such-program"));
/// supervisor.add("files", ServerSpec::new(program))?;
/// supervisor.settled().await;
/// assert!(supervisor.health("files").is_some_and(|health| health.cause.is_some()));
/// supervisor.close().await;
/// # Ok(())
/// # })
/// # }
/// ```
///
/// # Errors
/// [`ConnectError::System`]: the operating system provides no random bytes.
pub fn supervise(options: SupervisorOptions) -> Result<Supervisor, ConnectError> {
    supervise_on(options, Arc::new(crate::sync::spawn))
}

/// Like [`supervise`], on another executor: `spawn` passes it a task.
///
/// # Errors
/// As [`supervise`].
pub fn supervise_on(options: SupervisorOptions, spawn: Arc<Spawn>) -> Result<Supervisor, ConnectError> {
    let (supervisor, driver) = Supervisor::begin(options, OnExecutor::new(Arc::clone(&spawn)))?;
    spawn(Box::pin(SupervisorTask::new(driver)));
    Ok(supervisor)
}

/// The clients of a [`Supervisor`] run on an executor.
#[derive(Clone)]
pub struct OnExecutor(Arc<Spawn>);

impl OnExecutor {
    pub(crate) fn new(spawn: Arc<Spawn>) -> Self {
        Self(spawn)
    }
}

impl fmt::Debug for OnExecutor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OnExecutor").finish_non_exhaustive()
    }
}

/// The driver of a client. A thread that waits for its end can take it over.
#[derive(Clone)]
pub struct ClientTask(SharedDriver);

impl ClientTask {
    pub(crate) fn new(driver: SharedDriver) -> Self {
        Self(driver)
    }
}

impl fmt::Debug for ClientTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientTask").finish_non_exhaustive()
    }
}

impl Launch for OnExecutor {
    type Driver = ClientTask;

    fn delay(&self) -> Delay {
        delay
    }

    fn create(&self, client: &Client, driving: DriverHandle) -> ClientTask {
        ClientTask::new(SharedDriver::new(Driver::new(driving, client.open_timeout(), None, None)))
    }

    fn begin(&self, driver: &ClientTask) -> Result<(), ConnectError> {
        (self.0)(Box::pin(driver.0.clone()));
        Ok(())
    }

    fn run(&self, callback: Box<dyn FnOnce() + Send>) {
        smol::unblock(callback).detach();
    }

    fn deliver(&self, events: Events) {
        events.deliver();
    }

    fn finish(&self, client: &Client, driver: ClientTask) {
        driver.0.finish(client.end_time());
    }
}

/// Maximum number of turns per poll, so that other tasks of the executor can run.
const TURNS: usize = 32;

/// Drives a supervisor to its end.
pub(crate) struct SupervisorTask<L: Launch> {
    driver: SupervisorDriver<L>,
    alarm: Alarm,
}

impl<L: Launch> SupervisorTask<L> {
    pub(crate) fn new(driver: SupervisorDriver<L>) -> Self {
        Self { driver, alarm: Alarm::new() }
    }
}

impl<L: Launch> Future for SupervisorTask<L> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        for _ in 0..TURNS {
            if !this.driver.turn() {
                return Poll::Ready(());
            }
            let is_due = this.alarm.poll(cx, this.driver.clock(), this.driver.poll_timeout());
            if !is_due && this.driver.poll_woken(cx).is_pending() {
                return Poll::Pending;
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}
